//! Leaks of every kind in split files and between image files, with the exact messages.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::Path;

use super::super::*;
use crate::cohort::Sample;

/// Samples as (sample, subject, eye).
fn cohort(samples: &[(&str, &str, Option<&str>)]) -> Cohort {
    let sample = |(i, (sample, subject, unit)): (usize, &(&str, &str, Option<&str>))| Sample {
        sample_id: (*sample).into(),
        subject_id: (*subject).into(),
        unit: unit.map(str::to_owned),
        image: format!("/nowhere/{i}.png").into(),
        time: 1.0,
        event: false,
        competing: None,
        source_row: i + 2,
    };
    Cohort {
        name: "made-up".to_owned(),
        time_unit: "days".to_owned(),
        source: "made-up.csv".into(),
        samples: samples.iter().enumerate().map(sample).collect(),
        attributes: Vec::new(),
        provenance: None,
        cause: None,
    }
}

fn eyes() -> Cohort {
    cohort(&[
        ("a1", "9001", Some("9001-LE")),
        ("a2", "9001", Some("9001-RE")),
        ("b1", "9002", Some("9002-LE")),
        ("b2", "9002", Some("9002-LE")),
        ("c1", "9003", Some("9003-RE")),
        ("d1", "9004", None),
    ])
}

fn read(text: &str) -> Result<(Split, SplitFileReport), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("split.csv");
    std::fs::write(&path, text).unwrap();
    let shorten = |error: DataError| error.to_string().replace(&path.display().to_string(), "split.csv");
    Split::from_file(&path, &eyes()).map_err(shorten)
}

fn refused(text: &str) -> String {
    read(text).unwrap_err()
}

#[test]
fn a_file_by_subject_gives_every_sample_the_part_of_its_subject() {
    let (split, report) = read("subject_id,part\n9001,TRAIN\n9002,Val\n9003,test\n9004,valid\n").unwrap();
    assert_eq!(split.rows(Part::Train), [0, 1]);
    assert_eq!(split.rows(Part::Validation), [2, 3, 5]);
    assert_eq!(split.rows(Part::Test), [4]);
    assert_eq!((report.key, report.n_rows, report.notes()), (FileKey::Subject, 4, Vec::new()));
    assert_eq!(report.blake3.len(), 64);
}

#[test]
fn a_file_by_sample_may_lack_samples_of_a_known_subject() {
    let text = "sample_id,split\nb1,validate\na1,train\nc1,test\nd1,test\nzz,test\na1,train\n";
    let (split, report) = read(text).unwrap();
    assert_eq!(split.rows(Part::Train), [0, 1]);
    assert_eq!(split.rows(Part::Validation), [2, 3]);
    assert_eq!(
        report.notes(),
        [
            "rows with a sample_id that the cohort does not have: 1 (\"zz\")",
            "rows that repeat an earlier row: 1",
            "samples not in the file that follow their subject: 2",
        ]
    );
}

#[test]
fn a_split_by_file_is_recorded_with_its_hash_and_notes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.tsv");
    let text = "subject_id\tpart\n9001\ttrain\n9002\tval\n9003\ttest\n9004\ttest\n9009\ttest\n";
    std::fs::write(&path, text).unwrap();
    let config = SplitConfig { file: Some(path), ..SplitConfig::default() };
    let (split, record) = make_split(&eyes(), &config, &[], 1).unwrap();
    assert_eq!(split.rows(Part::Test), [4, 5]);
    assert_eq!(record.notes, ["rows with a subject_id that the cohort does not have: 1 (\"9009\")"]);
    assert_eq!(record.file.unwrap().blake3, blake3::hash(text.as_bytes()).to_hex().to_string());
}

#[test]
fn a_subject_in_two_parts_is_refused_with_both_rows() {
    assert_eq!(
        refused("subject_id,part\n9001,train\n9002,val\n9003,test\n9004,test\n9001,test\n"),
        "split.csv: subject \"9001\" is in the test part and in the train part, expected one part (rows 6 and 2)"
    );
}

#[test]
fn one_eye_in_two_parts_is_refused_with_both_samples() {
    assert_eq!(
        refused("sample_id,part\na1,train\nb1,val\nb2,test\n"),
        "split.csv: subject \"9002\" is in the test part (sample \"b2\") and in the validation part (sample \"b1\"), \
         expected one part (rows 4 and 3)"
    );
}

#[test]
fn the_fellow_eye_in_another_part_is_refused() {
    assert_eq!(
        refused("sample_id,part\na1,train\na2,test\nb1,val\nc1,test\nd1,test\n"),
        "split.csv: \"9001-RE\" of subject \"9001\" is in the test part (sample \"a2\") and its fellow \"9001-LE\" in \
         the train part (sample \"a1\"), expected one part (rows 3 and 2)"
    );
}

#[test]
fn a_file_by_eye_counts_for_the_subject_and_is_refused_where_the_eyes_differ() {
    let rest = "9002-LE,val\n9003,test\n9004,test\n";
    let (split, report) = read(&format!("subject_id,part\n9001-LE,train\n{rest}")).unwrap();
    assert_eq!(split.rows(Part::Train), [0, 1]);
    assert_eq!(report.notes(), ["rows that name a unit (an eye) and assign its whole subject: 2"]);
    assert_eq!(
        refused(&format!("subject_id,part\n9001-LE,train\n{rest}9001-RE,test\n")),
        "split.csv: \"9001-RE\" of subject \"9001\" is in the test part and its fellow \"9001-LE\" in the train part, \
         expected one part (rows 6 and 2)"
    );
}

#[test]
fn the_first_few_of_many_leaks_are_named_and_all_are_counted() {
    let row = |i: usize| format!("x{i},train\n");
    let again = |i: usize| format!("x{i},test\n");
    let text: String = (0..7).map(row).chain((0..7).rev().map(again)).collect();
    let message = refused(&format!("subject_id,part\n{text}"));
    assert!(message.starts_with("split.csv: subject \"x6\" is in the test part"), "{message}");
    assert_eq!(message.matches("expected one part").count(), 5);
    assert!(message.ends_with("(rows 13 and 4); .. (7 leaks in all)"), "{message}");
}

#[test]
fn subjects_that_the_file_lacks_are_named_and_counted() {
    assert_eq!(
        refused("subject_id,part\n9001,train\n9002,val\n9003,test\n"),
        "subject \"9004\" of the cohort is not in split.csv, expected every subject with its part"
    );
    assert_eq!(
        refused("sample_id,part\na1,train\nd1,test\n"),
        "subjects \"9002\", \"9003\" of the cohort are not in split.csv, expected every subject with its part"
    );
}

#[test]
fn cells_that_say_nothing_are_refused_with_their_row() {
    assert_eq!(
        refused("subject_id,part\n9001,train\n9002,holdout\n"),
        "part of sample \"9002\" is \"holdout\", expected train, validation (valid, val) or test (split.csv, row 3)"
    );
    assert_eq!(
        refused("subject_id,part\n,train\n9002,test\n"),
        "subject_id of sample \"row 2\" is empty, expected an identity (split.csv, row 2)"
    );
    assert_eq!(
        refused("sample_id,subject_id,part\na1,9002,train\n"),
        "subject_id of sample \"a1\" is \"9002\", expected the subject that the cohort gives the sample (split.csv, row 2)"
    );
    assert_eq!(
        refused("subject_id,part,split\n9001,train,train\n"),
        "\"part\" and \"split\" are both columns of split.csv, expected one of the two"
    );
    assert_eq!(
        refused("subject,part\n9001,train\n"),
        "column \"subject_id\" is not in split.csv, nearest is \"subject\""
    );
    let message = refused("subject_id,part\n9001,train\n9002,train\n9003,test\n9004,test\n");
    assert!(message.starts_with("empty validation part"), "{message}");
}

fn image_cohort(folder: &Path, images: &[(&str, &str)]) -> Cohort {
    let samples: Vec<_> = images.iter().map(|(subject, image)| (*image, *subject, None)).collect();
    let mut cohort = cohort(&samples);
    for (i, (sample, (_, image))) in cohort.samples.iter_mut().zip(images).enumerate() {
        sample.sample_id = format!("s{i}").as_str().into();
        sample.image = folder.join(image);
    }
    cohort
}

fn split_of(cohort: &Cohort, parts: &[(&str, Part)]) -> Split {
    Split::new(cohort, parts.iter().map(|(subject, part)| ((*subject).into(), *part)).collect()).unwrap()
}

#[test]
fn the_same_file_under_two_patients_is_found_by_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let long = |middle: u8| {
        let mut bytes = vec![7; 500_000];
        bytes[100_000] = middle;
        bytes
    };
    write("a.png", b"film one");
    write("b.png", b"film two");
    write("copy of a.png", b"film one");
    write("c.png", &long(1));
    write("d.png", &long(2));
    write("copy of c.png", &long(1));
    let images = [
        ("p1", "a.png"),
        ("p2", "b.png"),
        ("p3", "copy of a.png"),
        ("p1", "c.png"),
        ("p2", "d.png"),
        ("p1", "copy of c.png"),
        ("p3", "lost.png"),
    ];
    let cohort = image_cohort(folder.path(), &images);
    let split = split_of(&cohort, &[("p1", Part::Train), ("p2", Part::Validation), ("p3", Part::Test)]);
    let found = check_identical_files(&cohort, &split);
    let rows: Vec<&[usize]> = found.sets.iter().map(|set| set.rows.as_slice()).collect();
    assert_eq!(rows, [&[0, 2], &[3, 5]], "c and d differ in a byte that no window shows");
    assert_eq!((found.n_compared, found.n_unread, found.n_leaks()), (6, 1, 1));
    assert_eq!(
        found.to_string(),
        "images compared: 6, shared by more than one sample: 2 (by more than one subject: 1, in more than \
         one part: 1), unreadable: 1"
    );
    assert_eq!(
        found.refuse_leaks(Path::new("split.csv")).unwrap_err().to_string(),
        "split.csv: sample \"s2\" (subject \"p3\", test part) has the same image as sample \"s0\" (subject \"p1\", train \
         part), expected each image in one part"
    );
    let together = split_of(&cohort, &[("p1", Part::Train), ("p2", Part::Validation), ("p3", Part::Train)]);
    check_identical_files(&cohort, &together).refuse_leaks(Path::new("split.csv")).unwrap();
}

#[test]
fn headers_are_compared_with_their_voxels_and_series_as_folders() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    for name in ["a", "b", "c"] {
        write(&format!("{name}.hdr"), b"the same shape");
        write(&format!("{name}.img"), if name == "b" { b"voxels 2" } else { b"voxels 1" });
    }
    // The slices of the third series have other names, in another order; the other files there are not slices.
    for (series, names, slice) in
        [("s1", ["1.dcm", "2.dcm"], b"x"), ("s2", ["1.dcm", "2.dcm"], b"y"), ("s3", ["b.dcm", "a.dcm"], b"x")]
    {
        write(&format!("{series}/{}", names[0]), b"1");
        write(&format!("{series}/{}", names[1]), slice);
        write(&format!("{series}/notes.txt"), series.as_bytes());
    }
    let images = [("p1", "a.hdr"), ("p2", "b.hdr"), ("p3", "c.hdr"), ("p1", "s1"), ("p2", "s2"), ("p3", "s3")];
    let cohort = image_cohort(folder.path(), &images);
    let split = split_of(&cohort, &[("p1", Part::Train), ("p2", Part::Validation), ("p3", Part::Test)]);
    let found = check_identical_files(&cohort, &split);
    let rows: Vec<&[usize]> = found.sets.iter().map(|set| set.rows.as_slice()).collect();
    assert_eq!(rows, [&[0, 2], &[3, 5]]);
    assert_eq!(found.n_unread, 0);
}

#[test]
fn either_half_of_a_pair_is_the_image_of_both() {
    let folder = tempfile::tempdir().unwrap();
    for (name, header, voxels) in [("a", "a shape", "voxels"), ("b", "b shape", "voxels")] {
        std::fs::write(folder.path().join(format!("{name}.hdr")), header).unwrap();
        std::fs::write(folder.path().join(format!("{name}.img")), voxels).unwrap();
    }
    let cohort = image_cohort(folder.path(), &[("p1", "a.hdr"), ("p2", "a.img"), ("p3", "b.img")]);
    let split = split_of(&cohort, &[("p1", Part::Train), ("p2", Part::Validation), ("p3", Part::Test)]);
    let found = check_identical_files(&cohort, &split);
    let rows: Vec<&[usize]> = found.sets.iter().map(|set| set.rows.as_slice()).collect();
    assert_eq!(rows, [&[0, 1]], "the voxels of b are those of a in another shape");
}

#[test]
fn hashes_at_hand_serve_as_well_as_files() {
    let cohort = eyes();
    let parts = [("9001", Part::Train), ("9002", Part::Validation), ("9003", Part::Test), ("9004", Part::Test)];
    let split = split_of(&cohort, &parts);
    let found = check_identical_images(&cohort, &split, |row| [Some(1), Some(2), Some(1), None, Some(3), Some(3)][row]);
    assert_eq!((found.n_compared, found.n_unread, found.sets.len(), found.n_leaks()), (5, 1, 2, 1));
    assert_eq!(found.sets[1].n_subjects(), 2);
    assert_eq!(found.leaks().len(), 1);
    assert!(matches!(&found.leaks()[0], Leak::Image { subjects, .. } if subjects[1].as_str() == "9002"));
}
