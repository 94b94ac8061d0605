//! Laws of the split.

use std::collections::{BTreeMap, BTreeSet};

use fairtte_data::{Cohort, Part, Split, SplitConfig, split_by_subject};
use fairtte_metrics::SubjectId;
use proptest::prelude::*;

use crate::make::cohort_of_subjects;

fn people(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("person {i}")).collect()
}

fn split(subjects: &[String], seed: u64) -> (Cohort, Split) {
    let cohort = cohort_of_subjects(subjects);
    let split = split_by_subject(&cohort, &SplitConfig::default(), seed).unwrap();
    (cohort, split)
}

fn parts(subjects: &[String], seed: u64) -> BTreeMap<String, Part> {
    let (_, split) = split(subjects, seed);
    subjects.iter().map(|s| (s.clone(), split.part(&SubjectId::from(s.as_str())).unwrap())).collect()
}

fn counts(split: &Split) -> [usize; 3] {
    Part::ALL.map(|part| split.n_subjects(part))
}

#[test]
fn ten_subjects_are_6_2_2_and_eleven_6_2_3() {
    assert_eq!(counts(&split(&people(10), 1).1), [6, 2, 2]);
    assert_eq!(counts(&split(&people(11), 1).1), [6, 2, 3]);
}

#[test]
fn default_counts_are_the_integer_divisions_for_every_size() {
    for n in 5..1500 {
        assert_eq!(counts(&split(&people(n), 0).1), [n * 6 / 10, n * 2 / 10, n - n * 6 / 10 - n * 2 / 10], "{n}");
    }
}

#[test]
fn fractions_that_floating_point_rounds_down_still_give_whole_counts() {
    let config = SplitConfig { train: 0.57, validation: 0.14, test: 0.29, ..SplitConfig::default() };
    let cohort = cohort_of_subjects(&people(100));
    assert_eq!(counts(&split_by_subject(&cohort, &config, 0).unwrap()), [57, 14, 29]);
}

#[test]
fn too_few_subjects_are_refused_by_the_name_of_the_empty_part() {
    let cohort = cohort_of_subjects(&people(3));
    let message = split_by_subject(&cohort, &SplitConfig::default(), 1).unwrap_err().to_string();
    assert!(message.starts_with("empty validation part: too few subjects for this split (3)"), "{message}");
    let message = split_by_subject(&cohort_of_subjects(&people(1)), &SplitConfig::default(), 1).unwrap_err();
    assert!(message.to_string().starts_with("empty train part"), "{message}");
}

#[test]
fn fractions_out_of_range_are_refused() {
    let cohort = cohort_of_subjects(&people(10));
    let refused = |train, validation, test| {
        let config = SplitConfig { train, validation, test, ..SplitConfig::default() };
        split_by_subject(&cohort, &config, 1).unwrap_err().to_string()
    };
    assert_eq!(refused(0.0, 0.5, 0.5), "train is 0, expected a number in (0, 1)");
    assert_eq!(refused(0.6, f64::NAN, 0.2), "validation is NaN, expected a number in (0, 1)");
    assert!(refused(0.6, 0.2, 0.3).contains("expected fractions that add up to 1"));
}

#[test]
fn the_seed_decides_and_nothing_else() {
    let subjects = people(50);
    let shuffled: Vec<String> = subjects.iter().rev().cloned().collect();
    assert_eq!(parts(&subjects, 4), parts(&shuffled, 4));
    assert_ne!(parts(&subjects, 4), parts(&subjects, 5));
}

/// A change here would move subjects between the parts of every earlier run.
#[test]
fn the_order_of_subjects_is_fixed_for_all_versions() {
    let parts = parts(&people(10), 7);
    let train: Vec<_> = parts.iter().filter(|(_, part)| **part == Part::Train).map(|(s, _)| s.as_str()).collect();
    assert_eq!(train, ["person 0", "person 1", "person 2", "person 3", "person 4", "person 6"]);
}

proptest! {
    #[test]
    fn parts_are_disjoint_and_cover_every_row(
        subjects in prop::collection::vec("[a-h][0-9]", 30..120),
        seed in any::<u64>(),
    ) {
        let n_subjects = subjects.iter().collect::<BTreeSet<_>>().len();
        prop_assume!(n_subjects >= 5);
        let (cohort, split) = split(&subjects, seed);
        let mut rows: Vec<usize> = Part::ALL.iter().flat_map(|part| split.rows(*part).to_vec()).collect();
        rows.sort_unstable();
        prop_assert_eq!(rows, cohort.all_rows());
        let subjects_of = |part| cohort.subjects(split.rows(part)).into_iter().collect::<BTreeSet<_>>();
        let [train, validation, test] = Part::ALL.map(subjects_of);
        prop_assert!(train.is_disjoint(&validation) && train.is_disjoint(&test) && validation.is_disjoint(&test));
        prop_assert_eq!(train.len() + validation.len() + test.len(), n_subjects);
    }

    #[test]
    fn adding_images_never_moves_a_subject(
        n in 5_usize..60,
        extra in prop::collection::vec(0_usize..1000, 1..80),
        seed in any::<u64>(),
    ) {
        let subjects = people(n);
        let mut more = subjects.clone();
        more.extend(extra.into_iter().map(|i| subjects[i % n].clone()));
        prop_assert_eq!(parts(&subjects, seed), parts(&more, seed));
    }

    #[test]
    fn adding_one_subject_moves_at_most_three(n in 5_usize..200, seed in any::<u64>()) {
        let before = parts(&people(n), seed);
        let after = parts(&people(n + 1), seed);
        let moved = before.iter().filter(|(subject, part)| after[*subject] != **part).count();
        prop_assert!(moved <= 3, "{} subjects moved", moved);
    }
}

#[test]
fn a_written_split_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("split.csv");
    let subjects: Vec<String> = people(20).into_iter().chain(["with, comma".to_owned()]).collect();
    let (cohort, split) = split(&subjects, 3);
    split.write_csv(&path).unwrap();
    assert_eq!(Split::read_csv(&path, &cohort).unwrap(), split);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("subject_id,part\nperson 0,"), "{text}");
}

#[test]
fn a_bad_split_file_names_subject_and_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("split.csv");
    let cohort = cohort_of_subjects(&["a".to_owned(), "b".to_owned(), "c".to_owned()]);
    let message = |rows: &str| {
        std::fs::write(&path, format!("subject_id,part\n{rows}")).unwrap();
        Split::read_csv(&path, &cohort).unwrap_err().to_string()
    };
    let place = |row: usize| format!("({}, row {row})", path.display());
    assert_eq!(
        message("a,train\nb,validation\nc,test\na,test\n"),
        format!(
            "{}: subject \"a\" is in the test part and in the train part, expected one part (rows 5 and 2)",
            path.display()
        )
    );
    let without = message("a,train\nb,test\n");
    assert!(without.starts_with("subject \"c\" of the cohort is not in "), "{without}");
    assert_eq!(
        message("a,train\nb,dev\nc,test\n"),
        format!("part of sample \"b\" is \"dev\", expected train, validation (valid, val) or test {}", place(3))
    );
    assert!(message("a,train\nb,test\nc,test\n").starts_with("empty validation part"));
}
