//! `evaluate` of a folder that `fairtte predict` writes: the ordinary report of other data, and the comparison with the test
//! part of the run (`--internal`).
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::{Path, PathBuf};

use fairtte_data::table::Table;
use fairtte_tests::validation::{Person, part, people, write_curves, write_predicted, write_run};
use fairtte_tests::{Outcome, fail, files, succeed};
use serde_json::{Value, json};

const CONFIG: i32 = 3;
const DATA: i32 = 4;

/// A run in `run` and other data in `other`.
struct Place {
    folder: tempfile::TempDir,
    people: Vec<Person>,
}

impl Place {
    fn new(other: impl Fn(&[Person]) -> Vec<Person>) -> Self {
        let (folder, people) = (tempfile::tempdir().unwrap(), people("a", 300, 1.0));
        let place = Self { folder, people };
        write_run(&place.at("run"), &place.people);
        write_predicted(&place.at("other"), &place.at("run"), &other(&place.people), "years");
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }

    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let own = [self.path("other"), "--internal".to_owned(), self.path("run")];
        let more = more.iter().map(|text| (*text).to_owned());
        std::iter::once("evaluate".to_owned()).chain(own).chain(more).collect()
    }

    /// Compares the other data with the run.
    fn compare(&self, more: &[&str]) -> (Outcome, Value) {
        let outcome = succeed(self.arguments(more));
        (outcome, read(&self.at("other/external.json")))
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn test_part(all: &[Person]) -> Vec<Person> {
    all.iter().enumerate().filter(|(row, _)| part(*row) == "test").map(|(_, person)| person.clone()).collect()
}

fn others(_: &[Person]) -> Vec<Person> {
    people("other", 160, 1.0)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Every difference of a metric: everybody, groups, gaps, changes.
fn differences(metric: &Value) -> Vec<&Value> {
    let mut found = vec![&metric["overall"]["difference"]];
    for attribute in metric["attributes"].as_array().unwrap() {
        found.extend(attribute["groups"].as_array().unwrap().iter().map(|group| &group[1]["difference"]));
        found.push(&attribute["gap"]["difference"]);
        found.extend(attribute["changes"].as_array().unwrap().iter().map(|change| &change["difference"]));
    }
    found
}

#[test]
fn the_test_part_beside_itself_differs_by_0_and_the_page_claims_nothing() {
    let place = Place::new(test_part);
    let (outcome, found) = place.compare(&[]);
    let metrics = found["metrics"].as_array().unwrap();
    assert_eq!(metrics.len(), 7, "those of a run");
    let mut n_intervals = 0;
    for difference in metrics.iter().flat_map(differences) {
        assert!(number(&difference["value"]).abs() <= 0.0, "{difference}");
        if difference["lower"].is_null() {
            assert!(difference["undefined"].is_string(), "{difference}");
            continue;
        }
        assert!(number(&difference["lower"]) <= 0.0 && number(&difference["upper"]) >= 0.0, "{difference}");
        assert!(number(&difference["p-value"]) > 0.5, "{difference}");
        n_intervals += 1;
    }
    assert!(n_intervals > 40, "{n_intervals}");
    assert_eq!(found["internal"]["metrics"], found["external"]["metrics"]);
    for line in found["case-mix"]["lines"].as_array().unwrap() {
        assert!(line["smd"].is_null() || number(&line["smd"]) == 0.0, "{line}");
    }
    let verdict: Vec<&str> = found["verdict"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    assert_eq!(verdict.len(), 3);
    assert!(verdict[0].contains("which may be chance"), "{}", verdict[0]);
    assert!(verdict[1].starts_with("No group is shown to change more in C^td"), "{}", verdict[1]);
    // All 100 people are in the test part of the run.
    assert_eq!(found["in-both-cohorts"]["test-subjects"], 100);
    assert_eq!(
        (&found["in-both-cohorts"]["training-subjects"], &found["in-both-cohorts"]["samples"]),
        (&0.into(), &100.into())
    );
    assert!(
        outcome.stderr.contains("100 subjects in the test part of the run, 0 subjects in its training"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn shuffled_curves_make_the_metric_fall_and_the_verdict_says_so() {
    let shuffled = |_: &[Person]| {
        let right = people("other", 300, 1.0);
        let person = |row: usize| Person { predicted: right[(row * 71) % 300].predicted, ..right[row].clone() };
        (0..300).map(person).collect()
    };
    let place = Place::new(shuffled);
    let (outcome, found) = place.compare(&["--set", "replicates=400"]);
    let c_td = &found["metrics"][0];
    assert_eq!(c_td["name"], "c_td_antolini_strict");
    let both = &c_td["overall"];
    let of = |cohort: &str| number(&both[cohort]["value"]);
    assert!(of("internal") > 0.6 && of("external") < 0.56, "{both}");
    assert!((number(&both["difference"]["value"]) - (of("external") - of("internal"))).abs() < 1e-12);
    assert!(number(&both["difference"]["upper"]) < 0.0 && number(&both["difference"]["p-holm"]) < 0.05);
    let verdict = found["verdict"][0].as_str().unwrap();
    assert!(verdict.starts_with("C^td falls from 0."), "{verdict}");
    // Everybody's curves were shuffled.
    assert!(
        found["verdict"][1].as_str().unwrap().starts_with("No group is shown to change more"),
        "{}",
        found["verdict"][1]
    );
    assert!(!outcome.stderr.contains("occur in both"), "{}", outcome.stderr);
    for line in outcome.stdout.lines().filter(|line| !line.starts_with("report: ")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(outcome.stdout.contains("C^td falls from 0."), "{}", outcome.stdout);
}

#[test]
fn a_group_that_is_worse_is_named_and_a_higher_risk_is_seen_in_the_calibration() {
    let worse_for_women = |_: &[Person]| {
        let right = people("other", 400, 2.0);
        let person = |row: usize| if right[row].sex == "F" { right[row].turned() } else { right[row].clone() };
        (0..400).map(person).collect()
    };
    let place = Place::new(worse_for_women);
    let (_, found) = place.compare(&["--set", "replicates=200"]);
    let verdict = |place: usize| found["verdict"][place].as_str().unwrap();
    assert!(
        verdict(1).starts_with("sex = F fares worse in the external data than sex = M: the change of C^td for F minus"),
        "{}",
        verdict(1)
    );
    // Twice the rate.
    assert!(
        verdict(2).contains("the model underestimates the risk in the external data: observed / expected 1."),
        "{}",
        verdict(2)
    );
    let lines = found["case-mix"]["lines"].as_array().unwrap();
    let risk = lines.iter().find(|line| line["name"] == "observed risk at the horizon").unwrap();
    assert!(number(&risk["smd"]) > 0.2, "{risk}");
    let share = |line: &Value, cohort: &str| number(&line[cohort]["share"]);
    let women = lines.iter().find(|line| line["attribute"] == "sex" && line["name"] == "F").unwrap();
    assert_eq!((share(women, "external"), share(women, "internal")), (0.4, 0.4));
}

#[test]
fn all_files_are_written_and_the_flat_table_has_every_cohort() {
    let place = Place::new(others);
    let (outcome, found) = place.compare(&["--figures", &place.path("figures"), "--tables", &place.path("tables")]);
    let written = [
        "cohort.parquet",
        "exclusions.csv",
        "external.csv",
        "external.html",
        "external.json",
        "predict.json",
        "predictions.parquet",
    ];
    assert_eq!(files(&place.at("other")), written);
    assert!(outcome.stdout.contains(&format!("report: {}", place.path("other/external.html"))), "{}", outcome.stdout);
    let tables = files(&place.at("tables"));
    for name in ["case-mix.md", "external-c-td.tex", "changes-c-td.md"] {
        assert!(tables.iter().any(|table| table == name), "{tables:?}");
    }
    let figures = files(&place.at("figures"));
    for name in ["calibration-internal-sex.svg", "calibration-external-sex.svg", "forest-ibs.svg"] {
        assert!(figures.iter().any(|figure| figure == name), "{figures:?}");
    }
    let flat = Table::read(&place.at("other/external.csv")).unwrap();
    let column =
        |name: &str| -> Vec<String> { flat.text(name).unwrap().into_iter().map(Option::unwrap_or_default).collect() };
    let (cohort, metric, kind, level, value) =
        (column("cohort"), column("metric"), column("kind"), column("level"), column("value"));
    let find = |of: [&str; 4]| -> f64 {
        let row = (0..cohort.len()).find(|&row| [&cohort[row], &metric[row], &kind[row], &level[row]] == of);
        value[row.unwrap_or_else(|| panic!("{of:?}"))].parse().unwrap()
    };
    let of_women = |cohort: &str| find([cohort, "ibs", "group", "F"]);
    let change = find(["external minus internal", "ibs", "group", "F"]);
    assert!((of_women("external") - of_women("internal") - change).abs() < 1e-12);
    assert!((find(["external", "samples", "case-mix-n", ""]) - 160.0).abs() < 1e-9);
    assert!(find(["external minus internal", "sex", "case-mix-smd", ""]).abs() < 0.2);
    assert!(find(["internal", "age", "case-mix-value", ""]) > 40.0);
    find(["external minus internal", "c_td_antolini_strict", "change", "F minus M"]);

    // The same page under another name.
    let page = place.path("page.html");
    succeed(place.arguments(&["--output", &page]));
    assert!(place.at("page.json").exists() && place.at("page.csv").exists());
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("page.csv"), "the embedded table has the name of the file beside the page");
    let other = std::fs::read_to_string(place.at("other/external.html")).unwrap();
    assert_eq!(html.replace("page.csv", "external.csv"), other);
    assert!(html.contains("G of the external data on the training part of the run"), "the censoring curve is named");
    assert_eq!(found["external-censoring"]["fitted-on"], "train");
}

#[test]
fn the_censoring_curve_is_that_of_the_training_part_or_of_the_other_data() {
    // No sample of the other data is censored before 4 years.
    let late = |_: &[Person]| {
        let person = |mut person: Person| {
            person.event = person.event || person.time < 4.0;
            person
        };
        people("other", 160, 1.0).into_iter().map(person).collect()
    };
    let place = Place::new(late);
    let (outcome, train) = place.compare(&["--metrics", "ibs,c-td"]);
    assert!(
        outcome.stdout.contains("censoring curve of the external data: the training part of the run"),
        "{}",
        outcome.stdout
    );
    let (outcome, own) = place.compare(&["--metrics", "ibs,c-td", "--censoring", "own"]);
    assert!(outcome.stdout.contains("censoring curve of the external data: the other data"), "{}", outcome.stdout);
    assert_eq!(own["external-censoring"]["fitted-on"], "evaluated");
    assert_eq!(own["external-censoring"]["n"], 160);
    assert_eq!(own["internal-censoring"], train["internal-censoring"]);
    let value = |found: &Value, metric: usize| number(&found["metrics"][metric]["overall"]["external"]["value"]);
    assert!((value(&own, 0) - value(&train, 0)).abs() > 1e-4, "IBS is weighted");
    assert!((value(&own, 1) - value(&train, 1)).abs() < 1e-12, "C^td is not");
}

#[test]
fn other_data_alone_have_an_ordinary_report_with_the_settings_of_the_run() {
    let place = Place::new(others);
    let outcome = succeed(["evaluate", &place.path("other")]);
    let found = read(&place.at("other/evaluation.json"));
    assert_eq!(
        (&found["part"], &found["n"], &found["settings"]["replicates"]),
        (&"all".into(), &160.into(), &60.into())
    );
    assert_eq!(found["input"]["censoring"]["fitted-on"], "train");
    // Half of 300.
    assert_eq!(found["input"]["censoring"]["n"], 150);
    assert_eq!(found["baseline"]["fitted-on"], "train");
    let html = std::fs::read_to_string(place.at("other/report.html")).unwrap();
    assert!(html.contains("G was fitted on the training part of the run"), "named on the page");
    assert!(outcome.stdout.contains("report: "), "{}", outcome.stdout);
    succeed(["evaluate", &place.path("other"), "--censoring", "own"]);
    assert_eq!(read(&place.at("other/evaluation.json"))["input"]["censoring"]["n"], 160);

    std::fs::rename(place.at("run"), place.at("moved")).unwrap();
    let outcome = succeed(["evaluate", &place.path("other"), "--set", "replicates=20"]);
    assert!(
        outcome.stderr.contains("note: The run is not there: the censoring curve is fitted on the other data"),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("note: The settings are the defaults, because the run cannot be read"),
        "{}",
        outcome.stderr
    );
    assert_eq!(read(&place.at("other/evaluation.json"))["settings"]["n-times"], 100);
    fail(
        ["evaluate", &place.path("other"), "--censoring", "train"],
        CONFIG,
        "--censoring: the run that predicted these data is not there any more",
    );
    // It is somewhere else.
    let outcome = succeed(["evaluate", &place.path("other"), "--internal", &place.path("moved")]);
    assert!(outcome.stderr.contains("is not the run that predicted the external data"), "{}", outcome.stderr);
}

#[test]
fn curves_of_the_same_weights_are_compared() {
    let place = Place::new(others);
    let epoch = |epoch: usize, best: bool| {
        json!({
            "epoch": epoch, "best": best, "n_steps": 3, "train_loss": 1.0, "objective": 1.0, "gradient_norm": 0.5,
            "validation": { "nll": 1.0, "c_td": 0.6, "auc_td": 0.6, "ibs": 0.2, "monitored": 1.0, "groups": [] },
            "absent_groups": 0, "terms": {}, "seconds": 1.0, "data_seconds": 0.1,
        })
    };
    let steps = |best: usize| format!("{}\n{}\n", epoch(5, true), epoch(7, best == 7));
    std::fs::write(place.at("run/steps.jsonl"), steps(7)).unwrap();
    let (outcome, same) = place.compare(&[]);
    assert!(!outcome.stderr.contains("epoch"), "{}", outcome.stderr);
    std::fs::write(place.at("run/steps.jsonl"), steps(5)).unwrap();
    let (outcome, _) = place.compare(&[]);
    let other = "The external curves are of epoch 7, the internal ones of epoch 5";
    assert!(outcome.stderr.contains(other), "{}", outcome.stderr);
    // Curves that rank the wrong way round.
    write_curves(
        &place.at("run/predictions-epoch-00007.parquet"),
        &place.people.iter().map(Person::turned).collect::<Vec<_>>(),
    );
    let (outcome, found) = place.compare(&[]);
    assert!(outcome.stderr.contains("Both cohorts are predicted with the weights of epoch 7."), "{}", outcome.stderr);
    let internal = |found: &Value| number(&found["metrics"][0]["overall"]["internal"]["value"]);
    assert!(internal(&found) < 0.5 && internal(&same) > 0.5, "{} {}", internal(&found), internal(&same));
}

#[test]
fn what_cannot_be_compared_is_refused_in_one_sentence() {
    let place = Place::new(others);
    let (run, other) = (place.path("run"), place.path("other"));
    let internal = |more: &[&str], code: i32, sentence: &str| fail(place.arguments(more), code, sentence);
    internal(&["--part", "validation"], CONFIG, "has no parts: all of its samples are evaluated");
    internal(
        &["--baseline", "sex"],
        CONFIG,
        "--baseline: a baseline stands beside one evaluation, expected no --internal",
    );
    fail(
        ["evaluate", &run, "--internal", &run],
        CONFIG,
        "has no predict.json, expected a folder that `fairtte predict` wrote",
    );
    fail(["evaluate", &run, "--censoring", "own"], CONFIG, "--censoring: ");
    fail(
        ["evaluate", &other, "--internal", &other],
        DATA,
        "this is a folder of `fairtte predict`, expected the folder of the run",
    );
    fail(["evaluate", &other, "--internal", &place.path("nothing")], DATA, "there is no such folder");
    internal(&["--set", "times=[1,200]"], CONFIG, "times");

    write_predicted(&place.at("days"), &place.at("run"), &others(&[]), "days");
    let outcome = fail(
        ["evaluate", &place.path("days"), "--internal", &run],
        CONFIG,
        "the times of clinic B are in days, those of",
    );
    assert!(outcome.stderr.contains("--time-factor 0.0027"), "{}", outcome.stderr);
    std::fs::remove_file(place.at("other/cohort.parquet")).unwrap();
    internal(&[], DATA, "there are no outcomes (no cohort.parquet): the other data have no labels");
    std::fs::write(place.at("other/predict.json"), "{\"version\": 2, \"runs\": [], \"n-predicted\": 1}").unwrap();
    internal(&[], DATA, "version is 2, expected 1");
}

#[test]
fn predicted_samples_without_an_outcome_are_left_out_and_counted() {
    let place = Place::new(others);
    // Curves of 170 people, outcomes of 160.
    write_predicted(&place.at("more"), &place.at("run"), &people("other", 170, 1.0), "years");
    for name in ["predictions.parquet", "predict.json"] {
        std::fs::copy(place.at("more").join(name), place.at("other").join(name)).unwrap();
    }
    let (outcome, found) = place.compare(&[]);
    assert!(
        outcome.stderr.contains("note: 10 predicted samples are without an outcome; 160 samples are evaluated."),
        "{}",
        outcome.stderr
    );
    assert_eq!(found["external"]["n"], 160);
}
