//! Malformed and inconsistent tables and folders: exact messages, and which files are found.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::io::Write as _;
use std::path::Path;

use super::super::image_files::ImageFiles;
use super::super::*;
use super::fixtures::{changed_tables, fixtures, outcome};
use super::options::{folder, lines};

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
fn a_cell_that_decides_a_label_and_cannot_be_read_is_named_with_person_value_file_and_row() {
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
    ] {
        assert_eq!(message(from, to), expected);
    }
}

/// The notes of the folder, without its path.
fn notes(folder: &Path) -> Vec<String> {
    let notes = Adni::new(AdniConfig::new(folder)).read().unwrap().provenance.notes;
    notes.into_iter().map(|note| note.replace(&format!("{}/", folder.display()), "")).collect()
}

const TWO_SCANS: &str = "I1,1_S_0001,F,70,MRI,x,1/1/2010\nI2,1_S_0001,F,72,MRI,x,1/1/2012\n";

#[test]
fn a_cell_that_holds_no_code_is_passed_over_and_counted_whoever_it_is_about() {
    let header = "RID,EXAMDATE,DIAGNOSIS,DXCHANGE,DXCURREN\n";
    // No code in one column: the next one is used.
    for odd in ["0", "7", "9", "-2", "1:3", "1|3", "3|1", "dementia?", "3.5", "99999999999"] {
        let dxsum =
            format!("{header}1,2010-01-01,{odd},1,\n1,2011-01-01,{odd},{odd}x,3\n2,soon,{odd},{odd},{odd}\nx,,,,9\n");
        let folder = folder(TWO_SCANS, &[("DXSUM.csv", &dxsum)]);
        assert_eq!(lines(&AdniConfig::new(folder.path())), ["I1 2 1", "I2 at_or_after_event"], "{odd}");
        let expected = [
            "rows of DXSUM.csv without PTID and RID, which are not used: 1".to_owned(),
            format!(
                "cells of column DIAGNOSIS of DXSUM.csv without a known value, which count as missing: 2, the first is \
                 \"{odd}\" in row 2"
            ),
            format!(
                "cells of column DXCHANGE of DXSUM.csv without a known value, which count as missing: 1, the first is \
                 \"{odd}x\" in row 3"
            ),
        ];
        assert_eq!(notes(folder.path()), expected, "{odd}");
    }
    // A row with only unexpected cells holds no diagnosis; an unreadable date has no effect there.
    let folder = folder(TWO_SCANS, &[("DXSUM.csv", &format!("{header}1,soon,0,0,7\n1,later,-4,,\n"))]);
    assert_eq!(lines(&AdniConfig::new(folder.path())), ["I1 no_diagnosis", "I2 no_diagnosis"]);
    assert_eq!(notes(folder.path()).len(), 4, "three columns of codes and the dates");
}

#[test]
fn blank_lines_and_surplus_commas_change_nothing() {
    let expected = outcome(AdniConfig::new(fixtures())).unwrap();
    for blank in ["", ",,,", "\"\",\"\"", "  ", ",,,,,,,,,,,,,,,,,,,,,,,,,,"] {
        let folder = changed_tables(|_, text| {
            let lines: Vec<&str> = text.lines().collect();
            let (start, end) = lines.split_at(5);
            format!("{}\n{blank}\n{}\n{blank}\n\n", start.join("\n"), end.join(",\n"))
        });
        assert_eq!(outcome(AdniConfig::new(folder.path())).unwrap(), expected, "{blank:?}");
        assert_eq!(notes(folder.path()), Vec::<String>::new(), "{blank:?}");
        let rows = Adni::new(AdniConfig::new(folder.path())).read().unwrap().manifest.rows;
        assert_eq!((rows[3].source_row, rows[4].source_row), (5, 7), "the rows keep their numbers");
    }
}

#[test]
fn tables_found_by_themselves_that_are_of_no_use_are_left_out_with_a_note() {
    let dxsum = ("DXSUM.csv", "RID,VISCODE2,EXAMDATE,DIAGNOSIS\n1,bl,2010-01-01,2\n1,m24,,3\n");
    for (name, text, why) in [
        ("REGISTRY.csv", "RID,VISCODE2,EXAMDATE\n", "REGISTRY.csv has no rows, expected at least one"),
        ("ADNIMERGE.csv", "RID,VISCODE,EXAMDATE\n,,\n\n", "ADNIMERGE.csv has no rows, expected at least one"),
        ("REGISTRY.csv", "RID,VISCODE2\n1,m24\n", "column \"EXAMDATE\" is not in REGISTRY.csv"),
        ("ADNIMERGE.csv", "VISCODE,EXAMDATE\nm24,2011-01-01\n", "column \"RID\" is not in ADNIMERGE.csv"),
    ] {
        let folder = folder(TWO_SCANS, &[dxsum, (name, text)]);
        assert_eq!(lines(&AdniConfig::new(folder.path())), ["I1 4 0", "I2 final_visit"], "{why}");
        let notes = notes(folder.path());
        assert!(
            notes.len() == 1 && notes[0].starts_with(&format!("{name} was found and is not used: {why}")),
            "{notes:?}"
        );
        let mut named = AdniConfig::new(folder.path());
        let key = if name == "REGISTRY.csv" { &mut named.registry } else { &mut named.adnimerge };
        *key = Some(folder.path().join(name));
        assert!(message_of(&named, folder.path()).starts_with(why), "{why}");
    }
    // Cells without a date or finding are skipped in a table that is used.
    let registry = ("REGISTRY.csv", "RID,VISCODE2,EXAMDATE\n1,bl,soon\n,,\n1,m24,1/2/2011\n,m24,1/2/2010\n");
    let merge = ("ADNIMERGE.csv", "RID,VISCODE,EXAMDATE,AGE,EXAMDATE_bl,M\n1,bl,someday,old,before,first\n");
    let folder = folder(TWO_SCANS, &[dxsum, registry, merge]);
    assert_eq!(lines(&AdniConfig::new(folder.path())), ["I1 2 1", "I2 at_or_after_event"]);
    assert_eq!(notes(folder.path()).len(), 6, "{:?}", notes(folder.path()));
}

#[test]
fn several_image_lists_are_read_as_one() {
    let dxsum = ("DXSUM.csv", "RID,EXAMDATE,DIAGNOSIS\n1,2010-01-01,1\n2,2010-01-01,1\n");
    let header = "Image Data ID,Subject,Sex,Age,Modality,Description,Acq Date\n";
    let second = format!(
        "{header}2,1_S_0001,F,72,MRI,x,1/1/2012\nI3,2_S_0002,M,72,MRI,x,1/1/2012\nI4,2_S_0002,M,72,MRI,x,1/1/2013\n"
    );
    let notes_of_mine = "Image Data ID,Subject,quality\nI1,1_S_0001,good\n";
    let folder = folder(
        TWO_SCANS,
        &[dxsum, ("scans_ADNI2.csv", &second), ("mine.csv", notes_of_mine), ("scans_ADNI3.csv", header)],
    );
    let expected = ["I1 4 0", "I2 final_visit", "I2 duplicate_image_id", "I3 2 0", "I4 final_visit"];
    assert_eq!(lines(&AdniConfig::new(folder.path())), expected);
    assert_eq!(notes(folder.path()), ["the image list scans_ADNI3.csv has no rows"]);
    let read = Adni::new(AdniConfig::new(folder.path())).read().unwrap();
    let Label::Excluded { detail, .. } = read.rule.label(&read.manifest, 2).unwrap() else { panic!("excluded") };
    let place = |name: &str| folder.path().join(name).display().to_string();
    let expected =
        format!("the same image is in row 3 of {} ({}, row 2)", place("scans.csv"), place("scans_ADNI2.csv"));
    assert_eq!(detail, expected);

    let named = |text: &str| -> AdniConfig {
        let mut config: AdniConfig = toml::from_str(&format!("root = '.'\nimage-list = {text}")).unwrap();
        config.resolve_paths(folder.path());
        config
    };
    assert_eq!(lines(&named("'scans.csv'")), ["I1 4 0", "I2 final_visit"]);
    let both = named("['scans_ADNI2.csv', 'scans.csv']");
    let expected = ["I2 final_visit", "I3 2 0", "I4 final_visit", "I1 4 0", "I2 duplicate_image_id"];
    assert_eq!(lines(&both), expected);
    assert_eq!(toml::from_str::<AdniConfig>(&toml::to_string(&both).unwrap()).unwrap(), both);
    assert_eq!(
        message_of(&named("'scans_ADNI3.csv'"), folder.path()),
        "scans_ADNI3.csv has no rows, expected at least one"
    );
    let error = toml::from_str::<AdniConfig>("root = '.'\nimage-list = 3").unwrap_err().to_string();
    assert!(error.contains("a path, or several in brackets"), "{error}");
}

#[test]
fn a_ptid_that_the_list_lacks_is_looked_up_by_its_rid() {
    let dxsum = "PTID,RID,EXAMDATE,DIAGNOSIS\n941_S_0001,1,2010-01-01,2\nunknown,1.0,2011-01-01,3\n077_S_0077,77,2010-01-01,3\n";
    let folder = folder(TWO_SCANS, &[("DXSUM.csv", dxsum)]);
    assert_eq!(lines(&AdniConfig::new(folder.path())), ["I1 2 1", "I2 at_or_after_event"]);
    let expected = "rows of DXSUM.csv whose PTID is not in the image list and whose subject was found by RID: 2";
    assert_eq!(notes(folder.path()), [expected]);
    // If two subjects share the number, an unknown PTID stays unknown.
    let list = "I1,1_S_0001,F,70,MRI,x,1/1/2010\nI2,2_S_0001,F,72,MRI,x,1/1/2012\n";
    std::fs::write(
        folder.path().join("scans.csv"),
        format!("Image Data ID,Subject,Sex,Age,Modality,Description,Acq Date\n{list}"),
    )
    .unwrap();
    assert_eq!(lines(&AdniConfig::new(folder.path())), ["I1 no_diagnosis", "I2 no_diagnosis"]);
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
fn of_two_rows_of_one_image_the_first_counts_and_a_contradiction_is_noted() {
    let dxsum = ("DXSUM.csv", "RID,EXAMDATE,DIAGNOSIS\n1,2010-01-01,1\n");
    let rest = "I2,1_S_1,F,72,MRI,x,1/1/2012\n";
    let expected = ["I1 4 0", "I1 duplicate_image_id", "I2 final_visit"];
    let same = folder(&format!("I1,1_S_1,F,70,MRI,x,1/1/2010\n1,1_s_1,F,70,MRI,x,2010-01-01\n{rest}"), &[dxsum]);
    assert_eq!(lines(&AdniConfig::new(same.path())), expected);
    assert_eq!(notes(same.path()), Vec::<String>::new());
    for (subject, date) in [("1_S_1", "1/2/2014"), ("1_S_2", "1/1/2010")] {
        let list = format!("I1,1_S_1,F,70,MRI,x,1/1/2010\n1,{subject},F,70,MRI,x,{date}\n{rest}");
        let other = folder(&list, &[dxsum]);
        assert_eq!(lines(&AdniConfig::new(other.path())), expected, "{subject} {date}");
        let expected = "rows of the image list that contradict the first row of their image about subject or day: 1; the first row is used";
        assert_eq!(notes(other.path()), [expected]);
    }
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
    let expected = "the table of diagnoses of ADNI (key dxsum) was not found: looked for \
                    DXSUM_PDXCONV_ADNIALL[_date]{.csv|.csv.gz} or DXSUM_PDXCONV[_date]{.csv|.csv.gz} or \
                    DXSUM[_date]{.csv|.csv.gz} in FOLDER and the folders below";
    assert_eq!(message_of(&AdniConfig::new(lone.path()), lone.path()), expected);
    let twice = folder(list, &[dxsum, ("DXSUM_PDXCONV_ADNIALL.csv", dxsum.1)]);
    let expected = "the table of diagnoses of ADNI (key dxsum) could be DXSUM_PDXCONV_ADNIALL.csv or dxsum.csv, expected \
                    one file: remove or name one";
    assert_eq!(message_of(&AdniConfig::new(twice.path()), twice.path()), expected);
    let named = AdniConfig { dxsum: Some(twice.path().join(dxsum.0)), ..AdniConfig::new(twice.path()) };
    assert_eq!(lines(&named), ["I1 4 0", "I2 final_visit"]);
    std::fs::remove_file(twice.path().join("scans.csv")).unwrap();
    let message = message_of(&named, twice.path());
    assert!(
        message.starts_with("the image list of ADNI (key image-list) was not found")
            && message.contains("\"Image Data ID\""),
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
    let files = ImageFiles::find(root.path());
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
    assert_eq!(found(12_091), None, "part of a number is a different number");
    assert_eq!(ImageFiles::find(&root.path().join("nowhere")).path(55).unwrap(), None);
}

#[cfg(unix)]
#[test]
fn links_to_nothing_and_locked_folders_stop_no_reading_of_tables() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = folder(TWO_SCANS, &[("dxsum.csv", "RID,EXAMDATE,DIAGNOSIS\n1,2010-01-01,1\n")]);
    let locked = folder.path().join("lost+found");
    std::fs::create_dir(&locked).unwrap();
    std::fs::write(folder.path().join("x_I2.nii"), "image").unwrap();
    std::os::unix::fs::symlink(folder.path().join("nothing"), folder.path().join("x_I1.nii")).unwrap();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o0)).unwrap();
    // A user with all permissions sees an empty folder.
    let is_locked = std::fs::read_dir(&locked).is_err();
    let read = Adni::new(AdniConfig::new(folder.path())).read();
    let notes = notes(folder.path());
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o700)).unwrap();
    let rows = read.unwrap().manifest.rows;
    assert_eq!(rows[0].image, Some(folder.path().join("1_S_0001").join("*_I1.*")));
    assert_eq!(rows[1].image, Some(folder.path().join("x_I2.nii")));
    let expected = is_locked.then(|| "images below lost+found are not found: it cannot be listed".to_owned());
    assert_eq!(notes, expected.into_iter().collect::<Vec<_>>());
}

#[test]
fn of_copies_the_first_path_is_taken_and_two_different_files_are_a_missing_image_with_a_note() {
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
    assert_eq!(rows[1].image, Some(sought), "if nothing was found, the path shows what was searched for");
    std::fs::write(folder.path().join("b/x_I1.nii"), "longer").unwrap();
    assert_eq!(lines(&config), ["I1 4 0", "I2 final_visit"], "the tables can still be read");
    let rows = Adni::new(config.clone()).read().unwrap().manifest.rows;
    assert_eq!(rows[0].image, Some(folder.path().join("1_S_1").join("*_I1.*")));
    let expected = "images that count as missing because each was found in two different files: 1; image I1 is in \
                    a/x_I1.nii and in b/x_I1.nii; keep one, or set the key images to the folder of the right ones";
    assert_eq!(notes(folder.path()), [expected]);
    std::fs::write(folder.path().join("b/x_I1.nii.gz"), "another kind").unwrap();
    std::fs::remove_file(folder.path().join("b/x_I1.nii")).unwrap();
    assert_eq!(notes(folder.path()), Vec::<String>::new(), "plain NIfTI is preferred to gzipped NIfTI");
    let elsewhere = AdniConfig { images: Some(folder.path().join("nowhere")), ..config };
    assert_eq!(lines(&elsewhere), ["I1 4 0", "I2 final_visit"], "the tables alone decide the labels");
}
