//! Laws of stratified splits, repeats, folds and sites, and the refusals of split files and identical images.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

mod leak;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::cohort::{AttributeColumn, Sample};
use crate::cohort::{FittedAttributes, Threshold};

/// One sample: subject, event, sex, site.
type Row = (String, bool, Option<&'static str>, Option<&'static str>);

fn cohort(rows: &[Row]) -> Cohort {
    let sample = |(i, (subject, event, ..)): (usize, &Row)| Sample {
        sample_id: format!("s{i}").into(),
        subject_id: subject.as_str().into(),
        unit: None,
        image: PathBuf::new(),
        time: 1.0,
        event: *event,
        competing: None,
        source_row: i + 2,
    };
    let column = |name, value: fn(&Row) -> Option<&'static str>| {
        AttributeColumn::new(name, rows.iter().map(|row| value(row).map(str::to_owned)).collect())
    };
    Cohort {
        name: "made-up".to_owned(),
        time_unit: "days".to_owned(),
        source: "made-up.csv".into(),
        samples: rows.iter().enumerate().map(sample).collect(),
        attributes: vec![column("sex", |row| row.2), column("site", |row| row.3)],
        provenance: None,
        cause: None,
    }
}

/// `n` subjects with one sample each; a third has the event, sexes F, M and missing, sites A, B and C.
fn people(n: usize) -> Cohort {
    let row = |i: usize| -> Row {
        let sex = [Some("F"), Some("M"), Some("F"), None][i % 4];
        (format!("p{i}"), i.is_multiple_of(3), sex, [Some("A"), Some("B"), Some("C")][(i / 3) % 3])
    };
    cohort(&(0..n).map(row).collect::<Vec<_>>())
}

fn by_event_and_sex() -> SplitConfig {
    SplitConfig { stratify: vec!["event".to_owned(), "sex".to_owned()], ..SplitConfig::default() }
}

fn fold(folds: usize, fold: usize) -> SplitConfig {
    SplitConfig { k_fold: Some(KFold { folds, fold }), ..SplitConfig::default() }
}

fn without(site: &str) -> SplitConfig {
    let left_out = LeaveSiteOut { site: "site".to_owned(), leave_out: site.to_owned() };
    SplitConfig { leave_site_out: Some(left_out), ..SplitConfig::default() }
}

fn in_part(split: &Split, part: Part) -> BTreeSet<String> {
    split.parts.iter().filter(|(_, p)| **p == part).map(|(subject, _)| subject.to_string()).collect()
}

fn counts(split: &Split) -> [usize; 3] {
    Part::ALL.map(|part| split.n_subjects(part))
}

fn parsed(text: &str) -> Result<SplitConfig, String> {
    let config: SplitConfig = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    config.check().map_err(|error| error.to_string())?;
    Ok(config)
}

#[test]
fn the_settings_of_every_run_before_still_parse_and_print_the_same() {
    let text = "train = 0.7\nvalidation = 0.1\ntest = 0.2\n";
    let config = parsed(text).unwrap();
    assert_eq!(config, SplitConfig { train: 0.7, validation: 0.1, ..SplitConfig::default() });
    assert_eq!(toml::to_string(&config).unwrap(), text);
    assert_eq!(parsed("").unwrap(), SplitConfig::default());
}

#[test]
fn every_way_is_written_and_read_back() {
    for text in [
        "stratify = [\"event\", \"sex\"]\nrepeat = 3",
        "[k-fold]\nfolds = 5\nfold = 4",
        "[leave-site-out]\nsite = \"site\"\nleave-out = \"B\"",
        "file = \"split.csv\"",
    ] {
        let config = parsed(text).unwrap();
        assert_eq!(parsed(&toml::to_string(&config).unwrap()).unwrap(), config);
    }
    assert_eq!(parsed("k-fold.folds = 3").unwrap(), fold(3, 0));
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let refused = |text| parsed(text).unwrap_err();
    assert_eq!(
        refused("file = \"a.csv\"\nk-fold.folds = 5"),
        "split is k-fold and file, expected at most one of k-fold, leave-site-out and file"
    );
    assert_eq!(
        refused("k-fold = { folds = 5, fold = 5 }"),
        "k-fold.fold is 5, expected a whole number from 0 to folds - 1"
    );
    assert_eq!(refused("k-fold.folds = 1"), "k-fold.folds is 1, expected a whole number from 2 to 1000");
    assert_eq!(
        refused("train = 0.5\nvalidation = 0.2\ntest = 0.3\nk-fold.folds = 5"),
        "test is 0.3, expected 1 / folds beside k-fold, whose test part is one fold"
    );
    assert_eq!(
        refused("file = \"a.csv\"\nrepeat = 1"),
        "file is a.csv, expected no fractions, stratify or repeat beside a file that gives the parts"
    );
    assert_eq!(
        refused("stratify = [\"sex\", \"sex\"]"),
        "stratify is [\"sex\", \"sex\"], expected \"event\" and names of attributes, each once"
    );
    assert_eq!(
        refused("leave-site-out = { site = \"site\", leave-out = \"\" }"),
        "leave-site-out.leave-out is \"\", expected a value of the column of the site"
    );
    for text in ["folds = 5", "k-fold = { folds = 5, seed = 1 }", "leave-site-out = { site = \"a\" }", "k-fold = {}"] {
        assert!(toml::from_str::<SplitConfig>(text).is_err(), "{text}");
    }
}

#[test]
fn columns_are_those_the_cohort_must_carry() {
    let config = SplitConfig { stratify: ["event", "sex"].map(str::to_owned).to_vec(), ..without("A") };
    assert_eq!(config.columns(), ["sex", "site"]);
    assert!(SplitConfig::default().columns().is_empty());
    let config = SplitConfig { stratify: vec!["site".to_owned()], ..without("A") };
    assert_eq!(config.columns(), ["site"]);
}

#[test]
fn a_relative_file_is_relative_to_the_run_file() {
    let mut config = parsed("file = \"split.csv\"").unwrap();
    config.resolve_paths(Path::new("/runs"));
    assert_eq!(config.file.unwrap(), Path::new("/runs/split.csv"));
}

#[test]
fn too_few_subjects_are_an_error_and_no_panic_whatever_the_way() {
    let stratified = by_event_and_sex();
    for n in 1..4 {
        for config in [SplitConfig::default(), stratified.clone(), fold(2, 0), fold(5, 1), fold(1000, 999)] {
            let error = split_by_subject(&people(n), &config, 1).unwrap_err().to_string();
            assert!(
                error.starts_with("empty ") && error.contains(&format!("too few subjects for this split ({n})")),
                "{n} {config}: {error}"
            );
        }
    }
    let (_, record) = make_split(&people(11), &SplitConfig::default(), &[], 1).unwrap();
    assert_eq!(record.subjects, PartCounts { train: 6, validation: 2, test: 3 });
}

#[test]
fn a_subject_has_the_event_if_any_sample_has_it_and_the_most_frequent_level() {
    let row = |subject: &str, event, sex| -> Row { (subject.to_owned(), event, sex, None) };
    let rows = [
        row("a", false, Some("M")),
        row("a", true, None),
        row("b", false, Some("M")),
        row("b", false, Some("F")),
        row("b", false, Some("F")),
        row("c", false, None),
        row("d", true, Some("M")),
        row("d", true, Some("F")),
    ];
    let cohort = cohort(&rows);
    let strata = strata::strata(&cohort, &by_event_and_sex().stratify, &[]).unwrap();
    let names: Vec<String> = strata.values().map(|stratum| strata::name_of(stratum)).collect();
    assert_eq!(names, ["event=1, sex=M", "event=0, sex=F", "event=0, sex missing", "event=1, sex=F"]);
}

#[test]
fn an_attribute_is_stratified_by_its_groups_and_a_number_without_settings_is_refused() {
    let mut cohort = people(60);
    let ages = (0..60).map(|i| Some((30 + i).to_string())).collect();
    cohort.attributes.push(AttributeColumn::new("age", ages));
    let config = SplitConfig { stratify: vec!["age".to_owned()], ..SplitConfig::default() };
    let message = make_split(&cohort, &config, &[], 1).unwrap_err().to_string();
    assert_eq!(
        message,
        "attribute \"age\" has 60 different values, expected at most 20 levels, or a number cut in two"
    );
    let age = AttributeConfig { threshold: Some(Threshold::Value(59.5)), ..AttributeConfig::new("age") };
    let (_, record) = make_split(&cohort, &config, &[age], 1).unwrap();
    let subjects = PartCounts { train: 18, validation: 6, test: 6 };
    assert_eq!(record.strata.len(), 2);
    assert!(record.strata.iter().all(|stratum| stratum.subjects == subjects), "{:?}", record.strata);
    let unknown = SplitConfig { stratify: vec!["sx".to_owned()], ..SplitConfig::default() };
    let message = make_split(&cohort, &unknown, &[], 1).unwrap_err().to_string();
    assert!(message.starts_with("attribute \"sx\" is not among the columns of cohort \"made-up\""), "{message}");
}

#[test]
fn coded_levels_make_strata_without_settings() {
    let mut cohort = people(40);
    let codes = (0..40).map(|i| [Some("White"), Some("Non-White")][i % 2]).collect();
    let mut race = AttributeColumn::new("race", (0..40).map(|i| Some(format!("RACE {i}"))).collect());
    race.coded = Some(codes);
    cohort.attributes.push(race);
    let config = SplitConfig { stratify: vec!["race".to_owned()], ..SplitConfig::default() };
    let (_, record) = make_split(&cohort, &config, &[], 1).unwrap();
    let names: Vec<&str> = record.strata.iter().map(|stratum| stratum.stratum.as_str()).collect();
    assert_eq!(names, ["race=Non-White", "race=White"]);
    assert!(record.strata.iter().all(|stratum| stratum.subjects.train == 12));
}

#[test]
fn a_repeat_is_another_draw_and_repeat_0_the_first() {
    let cohort = people(50);
    let repeat = |repeat| {
        let config = SplitConfig { repeat, ..SplitConfig::default() };
        split_by_subject(&cohort, &config, 1).unwrap()
    };
    assert_eq!(repeat(0), split_by_subject(&cohort, &SplitConfig::default(), 1).unwrap());
    assert_ne!(repeat(0), repeat(1));
    assert_ne!(repeat(1), repeat(2));
    assert_eq!(repeat(2), repeat(2));
}

#[test]
fn ten_subjects_in_five_folds_are_6_2_2_and_the_next_fold_validates() {
    let cohort = people(10);
    let tests: Vec<BTreeSet<String>> =
        (0..5).map(|j| in_part(&split_by_subject(&cohort, &fold(5, j), 3).unwrap(), Part::Test)).collect();
    for j in 0..5 {
        let split = split_by_subject(&cohort, &fold(5, j), 3).unwrap();
        assert_eq!(counts(&split), [6, 2, 2]);
        assert_eq!(in_part(&split, Part::Validation), tests[(j + 1) % 5]);
    }
}

#[test]
fn the_subjects_of_the_site_left_out_are_the_test_part() {
    let row = |subject: &str, site| -> Row { (subject.to_owned(), true, None, site) };
    let mut rows: Vec<Row> = (0..12).map(|i| row(&format!("p{i}"), Some(["A", "B"][i % 2]))).collect();
    rows.push(row("p1", Some("A")));
    rows.push(row("p2", None));
    let both = cohort(&rows);
    let (split, record) = make_split(&both, &without("A"), &[], 1).unwrap();
    assert_eq!(in_part(&split, Part::Test), ["p0", "p1", "p10", "p2", "p4", "p6", "p8"].map(str::to_owned).into());
    assert_eq!(
        record.notes,
        [
            "subjects with site \"A\" that also have samples of other sites: 1 of 7; those samples are in the test part too"
        ]
    );
    assert_eq!(record.method, "subjects with site \"A\" as test part");
    let (split, _) = make_split(&people(90), &without("B"), &[], 1).unwrap();
    assert_eq!(counts(&split), [45, 15, 30]);
}

#[test]
fn an_unknown_or_missing_site_is_refused() {
    let message = |cohort: &Cohort, config: &SplitConfig| split_by_subject(cohort, config, 1).unwrap_err().to_string();
    assert_eq!(
        message(&people(9), &without("b")),
        "site \"b\" to leave out is not in column \"site\" of the cohort, nearest is \"B\""
    );
    let mut lacking = people(9);
    lacking.attributes[1].values[4] = None;
    assert_eq!(
        message(&lacking, &without("B")),
        "subjects without site: 1 (the first is \"p4\"), expected a site for every subject when one site is left out"
    );
    lacking.attributes.pop();
    assert!(message(&lacking, &without("B")).starts_with("attribute \"site\" is not among the columns"));
}

#[test]
fn a_sweep_lists_every_fold_site_and_repeat_once() {
    let cohort = people(30);
    let sweep = |config: SplitConfig, n| config.sweep(&cohort, n).unwrap();
    let folds = sweep(fold(5, 3), 2);
    assert_eq!(folds.len(), 10);
    assert_eq!(folds[6], SplitConfig { repeat: 1, ..fold(5, 1) });
    let sites: Vec<String> = sweep(without("A"), 1).iter().map(ToString::to_string).collect();
    assert_eq!(sites, ["A", "B", "C"].map(|site| format!("subjects with site \"{site}\" as test part")));
    assert_eq!(sweep(SplitConfig::default(), 3).iter().map(|config| config.repeat).collect::<Vec<_>>(), [0, 1, 2]);
    let file = SplitConfig { file: Some("a.csv".into()), ..SplitConfig::default() };
    assert_eq!(sweep(file.clone(), 9), [file]);
    for config in folds {
        split_by_subject(&cohort, &config, 1).unwrap();
    }
}

#[test]
fn the_table_of_a_split_adds_up_and_can_be_read() {
    let cohort = people(20);
    let (split, _) = make_split(&cohort, &by_event_and_sex(), &[], 1).unwrap();
    let sex = FittedAttributes::fit(&[AttributeConfig::new("sex")], &cohort, &cohort.all_rows()).unwrap();
    let table = SplitTable::new(&cohort, sex.all(), &split).unwrap();
    let names: Vec<String> = table.rows.iter().map(SplitRow::name).collect();
    assert_eq!(names, ["all", "sex F", "sex M", "sex missing"]);
    for part in Part::ALL {
        let of = |count: fn(&PartSize) -> usize| {
            let sizes: Vec<usize> = table.rows.iter().map(|row| count(&row.size(part))).collect();
            assert_eq!(sizes[0], sizes[1..].iter().sum::<usize>(), "{part}");
            sizes[0]
        };
        assert_eq!(of(|size| size.subjects), split.n_subjects(part));
        assert_eq!(of(|size| size.samples), split.rows(part).len());
        of(|size| size.events);
    }
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6);
    assert!(lines[0].trim_start().starts_with("train") && lines[0].ends_with("test"), "{text}");
    assert_eq!(lines[2].split_whitespace().take(3).collect::<Vec<_>>(), ["all", "12", "12"]);
    assert!(lines[1..].iter().all(|line| line.len() == lines[1].len()), "{text}");
    assert!(SplitTable::new(&people(21), sex.all(), &split).is_err());
}

#[test]
fn a_record_is_written_and_read_back() {
    let (_, record) = make_split(&people(20), &by_event_and_sex(), &[], 7).unwrap();
    let json = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<SplitRecord>(&json).unwrap(), record);
    assert!(json.contains("{\"stratum\":\"event=0, sex missing\",\"subjects\":{\"train\":"), "{json}");
    assert_eq!(
        record.to_string(),
        "train 0.6, validation 0.2, test 0.2 of the subjects, stratified by event, sex (seed 7): 12 train, 4 validation, 4 test"
    );
    let of_strata: usize = record.strata.iter().map(|stratum| stratum.subjects.total()).sum();
    assert_eq!(of_strata, 20);
}

/// Subjects with 1 to 3 samples, events, sexes and sites.
fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    let sample = (0..40_usize, any::<bool>(), 0..3_usize, 0..3_usize);
    prop::collection::vec(sample, 30..120).prop_map(|samples| {
        let row = |(subject, event, sex, site): (usize, bool, usize, usize)| -> Row {
            (format!("p{subject}"), event, [Some("F"), Some("M"), None][sex], Some(["A", "B", "C"][site]))
        };
        samples.into_iter().map(row).collect()
    })
}

fn ways() -> [SplitConfig; 5] {
    let strata = by_event_and_sex().stratify;
    [
        by_event_and_sex(),
        fold(4, 1),
        SplitConfig { stratify: strata.clone(), ..fold(4, 2) },
        without("B"),
        SplitConfig { stratify: strata, ..without("B") },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parts_are_disjoint_and_hold_everybody_whatever_the_order_of_the_rows(rows in any_rows(), seed in any::<u64>()) {
        let given = cohort(&rows);
        let reversed = cohort(&rows.iter().rev().cloned().collect::<Vec<_>>());
        for config in ways() {
            let Ok(split) = split_by_subject(&given, &config, seed) else { continue };
            let mut seen: Vec<usize> = Part::ALL.iter().flat_map(|part| split.rows(*part).to_vec()).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, given.all_rows());
            let subjects = Part::ALL.map(|part| given.subjects(split.rows(part)).into_iter().collect::<BTreeSet<_>>());
            prop_assert!(subjects[0].is_disjoint(&subjects[1]) && subjects[0].is_disjoint(&subjects[2]));
            prop_assert!(subjects[1].is_disjoint(&subjects[2]));
            prop_assert_eq!(subjects.iter().map(BTreeSet::len).sum::<usize>(), given.n_subjects());
            let again = split_by_subject(&reversed, &config, seed).unwrap();
            prop_assert_eq!(again.parts, split.parts);
        }
    }

    #[test]
    fn adding_images_that_change_no_stratum_never_moves_a_subject(rows in any_rows(), seed in any::<u64>()) {
        let mut more = rows.clone();
        more.extend(rows.iter().cloned());
        for config in ways() {
            let Ok(split) = split_by_subject(&cohort(&rows), &config, seed) else { continue };
            prop_assert_eq!(split_by_subject(&cohort(&more), &config, seed).unwrap().parts, split.parts);
        }
    }

    #[test]
    fn without_strata_no_image_of_a_known_subject_moves_anybody(rows in any_rows(), seed in any::<u64>()) {
        let mut more = rows.clone();
        let other = |row: &Row| -> Row { (row.0.clone(), !row.1, Some("other"), row.3) };
        more.extend(rows.iter().map(other));
        for config in [SplitConfig::default(), fold(4, 1)] {
            let Ok(split) = split_by_subject(&cohort(&rows), &config, seed) else { continue };
            prop_assert_eq!(split_by_subject(&cohort(&more), &config, seed).unwrap().parts, split.parts);
        }
    }

    #[test]
    fn stratified_counts_are_within_one_of_the_exact_shares(rows in any_rows(), seed in any::<u64>()) {
        let given = cohort(&rows);
        let n = given.n_subjects() as f64;
        if let Ok((_, record)) = make_split(&given, &by_event_and_sex(), &[], seed) {
            for (part, share) in Part::ALL.into_iter().zip([0.6, 0.2, 0.2]) {
                prop_assert!((record.subjects.get(part) as f64 - share * n).abs() < 1.0);
                for StratumCounts { stratum, subjects } in &record.strata {
                    let exact = share * subjects.total() as f64;
                    prop_assert!((subjects.get(part) as f64 - exact).abs() < 1.0, "{}: {:?}", stratum, subjects);
                }
            }
        }
    }

    #[test]
    fn folds_are_of_equal_size_and_test_every_subject_once(
        rows in any_rows(), seed in any::<u64>(), folds in 2..7_usize, is_stratified in any::<bool>(),
    ) {
        let given = cohort(&rows);
        let stratify = if is_stratified { by_event_and_sex().stratify } else { Vec::new() };
        let config = SplitConfig { stratify, ..fold(folds, 0) };
        let mut tested: BTreeMap<String, usize> = BTreeMap::new();
        for config in config.sweep(&given, 1).unwrap() {
            let Ok((split, record)) = make_split(&given, &config, &[], seed) else { return Ok(()) };
            for subject in in_part(&split, Part::Test) {
                *tested.entry(subject).or_default() += 1;
            }
            for StratumCounts { subjects, .. } in &record.strata {
                let exact = subjects.total() as f64 / folds as f64;
                prop_assert!((subjects.test as f64 - exact).abs() < 1.0, "{:?}", subjects);
                let exact = (subjects.total() - subjects.test) as f64 / 4.0;
                prop_assert!((subjects.validation as f64 - exact).abs() < 1.0, "{:?}", subjects);
            }
            let exact = given.n_subjects() as f64 / folds as f64;
            prop_assert!((split.n_subjects(Part::Test) as f64 - exact).abs() < 1.0);
        }
        prop_assert_eq!(tested.len(), given.n_subjects());
        prop_assert!(tested.values().all(|n| *n == 1));
    }
}
