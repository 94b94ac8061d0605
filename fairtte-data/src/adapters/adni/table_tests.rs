//! Hostile and sloppy tables and folders: exact messages, and what is found where.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::io::Write as _;
use std::path::Path;

use super::fixture_tests::{changed_tables, fixtures, outcome};
use super::image_files::ImageFiles;
use super::option_tests::{folder, lines};
use super::*;

/// The message for the fixture tables with `from` replaced by `to`, without the path of the folder.
fn message(from: &str, to: &str) -> String {
    let folder = changed_tables(|_, text| text.replacen(from, to, 1));
    message_of(&AdniConfig::new(folder.path()), folder.path())
}

fn message_of(config: &AdniConfig, folder: &Path) -> String {
    let message = Adni::new(config.clone()).read().err().unwrap().to_string();
    message.replace(&format!("{}/", folder.display()), "").replace(&folder.display().to_string(), "FOLDER")
}

#[test]
fn a_cell_that_cannot_be_read_is_named_with_person_value_file_and_row() {
    let dxsum = "DXSUM_PDXCONV_ADNIALL.csv";
    for (from, to, expected) in [
        (
            "7/12/2006",
            "13/7/2006",
            "Acq Date of sample \"I900002\" is \"13/7/2006\", expected a date: YYYY-MM-DD, YYYY/MM/DD or M/D/YYYY \
             (adni_images.csv, row 3)"
                .to_owned(),
        ),
        (
            "\"I900006\"",
            "\"X900006\"",
            "Image Data ID of sample \"X900006\" is \"X900006\", expected a number, with or without I before it \
             (adni_images.csv, row 7)"
                .to_owned(),
        ),
        (
            "\"F\",\"81\"",
            "\"F\",\"eighty\"",
            "Age of sample \"I900007\" is \"eighty\", expected an age in years from 0 to 130, or missing (empty, -4, -1, \
             NA, ?) (adni_images.csv, row 8)"
                .to_owned(),
        ),
        (
            "\"2006-07-20\",\"\",\"2006-07-20\"",
            "\"2006-07-20\",\"\",\"20 July\"",
            format!(
                "EXAMDATE of sample \"901_S_0001\" is \"20 July\", expected a date: YYYY-MM-DD, YYYY/MM/DD or M/D/YYYY \
                 ({dxsum}, row 3)"
            ),
        ),
        (
            "\"2012-04-01\",\"4\"",
            "\"2012-04-01\",\"10\"",
            format!(
                "DXCHANGE of sample \"904_S_4004\" is \"10\", expected 1 to 9, or missing (empty, -4, -1, NA, ?) \
                 ({dxsum}, row 11)"
            ),
        ),
        (
            "\"2\",\"2019-06-01 00:00:00.0\"",
            "\"7\",\"2019-06-01 00:00:00.0\"",
            format!(
                "DIAGNOSIS of sample \"905_S_6005\" is \"7\", expected 1 (CN), 2 (MCI), 3 (dementia), or missing (empty, \
                 -4, -1, NA, ?) ({dxsum}, row 14)"
            ),
        ),
        (
            "\"1\",\"1\",\"901_S_0001\"",
            "\"1\",\"one\",\"\"",
            format!(
                "RID of sample \"RID one\" is \"one\", expected the number of a person, or a PTID beside it ({dxsum}, row 2)"
            ),
        ),
    ] {
        assert_eq!(message(from, to), expected);
    }
}

#[test]
fn a_missing_or_repeated_column_is_named() {
    for (from, to, expected) in [
        ("Acq Date", "Acq Day", "column \"Acq Date\" is not in adni_images.csv, nearest is \"Acq Day\""),
        ("EXAMDATE", "EXAM", "column \"EXAMDATE\" is not in DXSUM_PDXCONV_ADNIALL.csv, nearest is \"EXAM\""),
        (
            "\"Group\"",
            "\"Subject\"",
            "column \"Subject\" appears more than once in adni_images.csv, expected each name once",
        ),
        (
            "\"SITEID\"",
            "\"exam_date\"",
            "column \"EXAMDATE\" appears more than once in DXSUM_PDXCONV_ADNIALL.csv, expected each name once",
        ),
    ] {
        assert_eq!(message(from, to), expected);
    }
    let folder = folder("I1,1_S_1,F,70,MRI,x,1/1/2010\n", &[("DXSUM.csv", "RID,EXAMDATE,DIAGNOSE\n1,2010-01-01,1\n")]);
    let expected = "column \"DIAGNOSIS\" is not in DXSUM.csv, nearest is \"DIAGNOSE\"";
    assert_eq!(message_of(&AdniConfig::new(folder.path()), folder.path()), expected);
    std::fs::write(folder.path().join("DXSUM.csv"), "PERSON,EXAMDATE,DIAGNOSIS\n1,2010-01-01,1\n").unwrap();
    assert!(
        message_of(&AdniConfig::new(folder.path()), folder.path()).starts_with("column \"RID\" is not in DXSUM.csv")
    );
    std::fs::write(folder.path().join("DXSUM.csv"), "RID,EXAMDATE,DIAGNOSIS\n1,2010-01-01,1\n").unwrap();
    let mut config = AdniConfig::new(folder.path());
    config.dementia_cause = DementiaCause::Alzheimer;
    assert!(message_of(&config, folder.path()).starts_with("column \"DXDDUE\" is not in DXSUM.csv"));
}

#[test]
fn empty_tables_are_refused() {
    let folder = folder("", &[("DXSUM.csv", "RID,EXAMDATE,DIAGNOSIS\n1,2010-01-01,1\n")]);
    let message = || message_of(&AdniConfig::new(folder.path()), folder.path());
    assert_eq!(message(), "scans.csv has no rows, expected at least one");
    std::fs::write(folder.path().join("scans.csv"), "Image Data ID,Subject,Modality,Acq Date\nI1,1_S_1,MRI,1/1/2010\n")
        .unwrap();
    std::fs::write(folder.path().join("DXSUM.csv"), "RID,EXAMDATE,DIAGNOSIS\n").unwrap();
    assert_eq!(message(), "DXSUM.csv has no rows, expected at least one");
    std::fs::write(folder.path().join("DXSUM.csv"), "").unwrap();
    assert!(message().starts_with("DXSUM.csv cannot be read as a table: "), "{}", message());
}

#[test]
fn two_rows_of_one_image_that_disagree_are_refused_and_two_that_agree_are_one() {
    let dxsum = ("DXSUM.csv", "RID,EXAMDATE,DIAGNOSIS\n1,2010-01-01,1\n");
    let rest = "I2,1_S_1,F,72,MRI,x,1/1/2012\n";
    let same = folder(&format!("I1,1_S_1,F,70,MRI,x,1/1/2010\n1,1_s_1,F,70,MRI,x,2010-01-01\n{rest}"), &[dxsum]);
    let expected = ["I1 4 0", "I1 duplicate_image_id", "I2 final_visit"];
    assert_eq!(lines(&AdniConfig::new(same.path())), expected);
    let other = folder(&format!("I1,1_S_1,F,70,MRI,x,1/1/2010\n1,1_S_1,F,70,MRI,x,1/2/2010\n{rest}"), &[dxsum]);
    let message = message_of(&AdniConfig::new(other.path()), other.path());
    let expected = "Acq Date of sample \"I1\" is \"2010-01-02\", expected what the other row of this image says (scans.csv, row 3)";
    assert_eq!(message, expected);
    let other = folder(&format!("I1,1_S_1,F,70,MRI,x,1/1/2010\n1,1_S_2,F,70,MRI,x,1/1/2010\n{rest}"), &[dxsum]);
    assert!(
        message_of(&AdniConfig::new(other.path()), other.path()).starts_with("Subject of sample \"I1\" is \"1_S_2\"")
    );
}

#[test]
fn a_number_that_two_subjects_share_needs_a_ptid_beside_it() {
    let list = "I1,1_S_0007,F,70,MRI,x,1/1/2010\nI2,2_S_0007,F,72,MRI,x,1/1/2012\n";
    let folder = folder(list, &[("dxsum.csv", "RID,EXAMDATE,DIAGNOSIS\n7,2010-01-01,1\n")]);
    let expected = "RID of sample \"RID 7\" is \"7\", expected a number that only one subject of the image list has, or a \
                    PTID beside it (dxsum.csv, row 2)";
    assert_eq!(message_of(&AdniConfig::new(folder.path()), folder.path()), expected);
    std::fs::write(folder.path().join("dxsum.csv"), "RID,PTID,EXAMDATE,DIAGNOSIS\n7,2_S_0007,2010-01-01,1\n").unwrap();
    assert_eq!(lines(&AdniConfig::new(folder.path())), ["I1 no_diagnosis", "I2 final_visit"]);
}

#[test]
fn gaps_are_counted_and_other_modalities_are_left_alone() {
    let list = ",1_S_1,F,70,MRI,x,1/1/2010\nI2,,F,70,MRI,x,1/1/2010\nI3,1_S_1,F,70,MRI,x,\nD4,,F,old,PET,x,soon\n\
                I5,1_S_1,F,70,fMRI,x,1/1/2016\nI6,1_S_1,F,70,,x,1/1/2016\nI7,1_S_1,X,,mri,x,1/1/2010\n\
                I8,1_S_1,F,70,MRI,x,1/1/2011\n";
    let folder = folder(list, &[("DXSUM.csv", "RID,EXAMDATE,DIAGNOSIS\n1,2010-01-01,1:2\n1,2010-01-01,1.0\n")]);
    let expected = [
        "row 2 missing_sample",
        "I2 missing_subject",
        "I3 missing_date",
        "D4 not_mri",
        "I5 not_mri",
        "I6 not_mri",
        "I7 2 0",
        "I8 final_visit",
    ];
    assert_eq!(lines(&AdniConfig::new(folder.path())), expected);
    let read = Adni::new(AdniConfig::new(folder.path())).read().unwrap();
    let Label::Excluded { detail, .. } = read.rule.label(&read.manifest, 3).unwrap() else { panic!("excluded") };
    assert!(detail.starts_with("Modality is \"PET\" (") && detail.ends_with("scans.csv, row 5)"), "{detail}");
    assert_eq!(read.manifest.attributes[1].values[6], None, "a sex other than F and M is missing");
}

#[test]
fn tables_are_found_by_their_dated_names_and_the_list_by_its_header() {
    let expected = outcome(AdniConfig::new(fixtures())).unwrap();
    let [list, dxsum] = ["adni_images.csv", "DXSUM_PDXCONV_ADNIALL.csv"]
        .map(|name| std::fs::read_to_string(fixtures().join(name)).unwrap());
    for name in
        ["DXSUM_PDXCONV_ADNIALL_12Oct2023.csv", "DXSUM_20Nov2024.csv", "dxsum.csv", "Tables/DXSUM-2024-11-20.CSV"]
    {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("Tables")).unwrap();
        std::fs::write(folder.path().join("ADNI1_Screening_1.5T_7_02_2022.csv"), &list).unwrap();
        std::fs::write(folder.path().join(name), &dxsum).unwrap();
        std::fs::write(folder.path().join("DXSUM_DICT.csv"), "FLDNAME\nRID\n").unwrap();
        std::fs::write(folder.path().join("notes.csv"), "a,b\n1,2\n").unwrap();
        assert_eq!(outcome(AdniConfig::new(folder.path())).unwrap(), expected, "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("scans.csv.gz", list), ("DXSUM.csv.gz", dxsum)] {
        let file = std::fs::File::create(folder.path().join(name)).unwrap();
        let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap();
    }
    assert_eq!(outcome(AdniConfig::new(folder.path())).unwrap(), expected, "gzipped");
}

#[test]
fn a_table_that_is_missing_or_twice_there_is_named_with_what_was_looked_for() {
    let list = "I1,1_S_1,F,70,MRI,x,1/1/2010\nI2,1_S_1,F,72,MRI,x,1/1/2012\n";
    let dxsum = ("dxsum.csv", "RID,EXAMDATE,DIAGNOSIS\n1,2010-01-01,1\n");
    let lone = folder(list, &[]);
    let expected = "the table of diagnoses of ADNI (key dxsum) is not to be found: looked for \
                    DXSUM_PDXCONV_ADNIALL[_date]{.csv|.csv.gz} or DXSUM_PDXCONV[_date]{.csv|.csv.gz} or \
                    DXSUM[_date]{.csv|.csv.gz} in FOLDER and the folders below";
    assert_eq!(message_of(&AdniConfig::new(lone.path()), lone.path()), expected);
    let twice = folder(list, &[dxsum, ("DXSUM_PDXCONV_ADNIALL.csv", dxsum.1)]);
    let expected = "the table of diagnoses of ADNI (key dxsum) could be DXSUM_PDXCONV_ADNIALL.csv or dxsum.csv, expected \
                    one file: remove or name one";
    assert_eq!(message_of(&AdniConfig::new(twice.path()), twice.path()), expected);
    let named = AdniConfig { dxsum: Some(twice.path().join(dxsum.0)), ..AdniConfig::new(twice.path()) };
    assert_eq!(lines(&named), ["I1 4 0", "I2 final_visit"]);
    std::fs::copy(twice.path().join("scans.csv"), twice.path().join("again.csv")).unwrap();
    let message = message_of(&named, twice.path());
    assert!(message.contains(" could be again.csv or scans.csv, expected one file"), "{message}");
    std::fs::remove_file(twice.path().join("again.csv")).unwrap();
    std::fs::remove_file(twice.path().join("scans.csv")).unwrap();
    let message = message_of(&named, twice.path());
    assert!(
        message.starts_with("the image list of ADNI (key image-list) is not") && message.contains("\"Image Data ID\""),
        "{message}"
    );
    let mut absent = AdniConfig::new(twice.path().join("nowhere"));
    assert!(message_of(&absent, twice.path()).starts_with("cannot read nowhere: "));
    absent.resolve_paths(Path::new("/runs"));
    assert_eq!(absent.root, twice.path().join("nowhere"));
}

#[test]
fn image_files_are_found_in_every_documented_shape() {
    let root = tempfile::tempdir().unwrap();
    let touch = |path: &str, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let scaled = "ADNI/002_S_0413/MPR__GradWarp__B1_Correction__N3__Scaled/2008-07-31_14_39_56.0/S54591";
    touch(&format!("{scaled}/ADNI_002_S_0413_MR_MPR__Scaled_Br_20080801_S54591_I120917.nii"), "v");
    touch(&format!("{scaled}/ADNI_002_S_0413_MPR__Scaled_S54591_I120917.xml"), "x");
    touch("ADNI/003_S_4288/MPRAGE/2011-10-11_10_00_00.0/I260000/ADNI_003_S_4288_raw_1_S1_I260000.dcm", "1");
    touch("ADNI/003_S_4288/MPRAGE/2011-10-11_10_00_00.0/I260000/ADNI_003_S_4288_raw_2_S1_I260000.dcm", "2");
    touch("ADNI/003_S_4288/conv/I260001/brain.nii.gz", "renamed, in a folder of its number");
    touch("ADNI/003_S_4288/a/ADNI_x_I77.dcm", "slice");
    touch("ADNI/003_S_4288/a/ADNI_x_I77.nii.gz", "converted");
    touch("I1234567890.nii", "long number");
    touch("ADNI/004_S_1/ADNI_v1.5_Br_I55.mnc", "minc");
    let files = ImageFiles::find(root.path()).unwrap();
    let found = |id| {
        let path = files.path(id).unwrap()?;
        Some(path.strip_prefix(root.path()).unwrap().display().to_string())
    };
    let image = format!("{scaled}/ADNI_002_S_0413_MR_MPR__Scaled_Br_20080801_S54591_I120917.nii");
    assert_eq!(found(120_917), Some(image));
    assert_eq!(found(260_000).as_deref(), Some("ADNI/003_S_4288/MPRAGE/2011-10-11_10_00_00.0/I260000"));
    assert_eq!(found(260_001).as_deref(), Some("ADNI/003_S_4288/conv/I260001/brain.nii.gz"));
    assert_eq!(found(77).as_deref(), Some("ADNI/003_S_4288/a/ADNI_x_I77.nii.gz"), "NIfTI before DICOM");
    assert_eq!(found(1_234_567_890).as_deref(), Some("I1234567890.nii"));
    assert_eq!(found(55).as_deref(), Some("ADNI/004_S_1/ADNI_v1.5_Br_I55.mnc"));
    assert_eq!(found(12_091), None, "part of a number is another number");
    assert_eq!(ImageFiles::find(&root.path().join("nowhere")).unwrap().path(55).unwrap(), None);
}

#[test]
fn of_copies_the_first_path_is_taken_and_two_different_files_are_named() {
    let list = "I1,1_S_1,F,70,MRI,x,1/1/2010\nI2,1_S_1,F,72,MRI,x,1/1/2012\n";
    let folder = folder(list, &[("dxsum.csv", "RID,EXAMDATE,DIAGNOSIS\n1,2010-01-01,1\n")]);
    for place in ["a", "b"] {
        std::fs::create_dir(folder.path().join(place)).unwrap();
        std::fs::write(folder.path().join(place).join("x_I1.nii"), "same").unwrap();
    }
    let config = AdniConfig::new(folder.path());
    let rows = Adni::new(config.clone()).read().unwrap().manifest.rows;
    assert_eq!(rows[0].image, Some(folder.path().join("a/x_I1.nii")));
    let sought = folder.path().join("1_S_1").join("*_I2.*");
    assert_eq!(rows[1].image, Some(sought), "where nothing was found, the path says what was looked for");
    std::fs::write(folder.path().join("b/x_I1.nii"), "longer").unwrap();
    let expected = "image I1 is in a/x_I1.nii and in b/x_I1.nii, which differ, expected one file (or copies of it)";
    assert_eq!(message_of(&config, folder.path()), expected);
    let elsewhere = AdniConfig { images: Some(folder.path().join("nowhere")), ..config };
    assert_eq!(lines(&elsewhere), ["I1 4 0", "I2 final_visit"], "the tables alone decide the labels");
}
