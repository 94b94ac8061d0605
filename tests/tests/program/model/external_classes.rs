//! `evaluate DIR --internal RUN` and `card` of a run that predicts a class: the test part of the run beside other data, with the
//! numbers that each has by itself.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::{Path, PathBuf};

use fairtte_data::Part;
use fairtte_tests::classes::{
    CLASS_COLUMNS, ClassPatient, PredictedPatient, auc_by_pairs, auc_with_weights, class_patient, class_run,
    class_table, patients_of, predicted_patients,
};
use fairtte_tests::{fail, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const LABEL: &str = "label = \"disease\"\nlabel-value = \"yes\"";
/// Patients of the other data.
const OTHER: std::ops::Range<usize> = 1000..1240;

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn close(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap();
    assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
}

fn metric<'a>(of: &'a Value, name: &str) -> &'a Value {
    of["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == name).unwrap()
}

/// Whether the class of a woman in the other data is the opposite of what it would be elsewhere.
fn is_positive(patient: &ClassPatient) -> bool {
    patient.positive != (patient.sex == "F")
}

/// A run, and other data in which the classes of women are exchanged.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Self { folder };
        succeed(["train", "--config", &class_run(place.folder.path(), 600, LABEL, "")]);
        let table = place.at("other.csv");
        class_table(&table, OTHER, &["disease", "sex", "x0", "x1"]);
        let exchanged = std::fs::read_to_string(&table).unwrap().replace(",Yes,F,", ",?,F,");
        let exchanged = exchanged.replace(",no,F,", ",Yes,F,").replace(",?,F,", ",no,F,");
        std::fs::write(&table, exchanged).unwrap();
        succeed(["predict", &place.run(), "--table", &text(&table), "--output", &place.other()]);
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self) -> String {
        text(&self.at("run"))
    }

    fn other(&self) -> String {
        text(&self.at("other"))
    }

    fn compare(&self, more: &[&str]) -> (String, Value) {
        let (run, other) = (self.run(), self.other());
        let call = ["evaluate", &other, "--internal", &run].into_iter().chain(more.iter().copied());
        let said = succeed(call.collect::<Vec<_>>()).stdout;
        (said, json(&self.at("other/external.json")))
    }

    /// Probability and class of the other data, of those who are `wanted`.
    fn outside(&self, wanted: impl Fn(&ClassPatient) -> bool) -> Vec<(f64, bool)> {
        let table = fairtte_data::predictions::read_probabilities(&self.at("other/predictions.parquet")).unwrap();
        let rows = table
            .samples
            .iter()
            .zip(table.probability)
            .map(|(sample, probability)| (class_patient(sample.as_str()[1..].parse().unwrap()), probability));
        rows.filter(|(patient, _)| wanted(patient)).map(|(patient, p)| (p, is_positive(&patient))).collect()
    }

    /// The same of the test part of the run.
    fn inside(&self, wanted: impl Fn(&ClassPatient) -> bool) -> Vec<(f64, bool)> {
        let all = predicted_patients(&self.at("run"), "predictions.parquet", Part::Test);
        let own = all.into_iter().filter(|of| wanted(&of.patient));
        own.map(|PredictedPatient { patient, probability }| (probability, patient.positive)).collect()
    }
}

#[test]
fn each_cohort_has_its_own_numbers_and_the_change_is_external_minus_internal() {
    let place = Place::new();
    let (said, found) = place.compare(&["--min-events", "1", "--set", "replicates=200"]);
    let auc = metric(&found, "auc");
    let own = json(&place.at("run/evaluation.json"));
    for (of, wanted) in [
        (&auc["overall"], None),
        (&auc["attributes"][0]["groups"][0][1], Some("F")),
        (&auc["attributes"][0]["groups"][1][1], Some("M")),
    ] {
        let is_wanted = |patient: &ClassPatient| wanted.is_none_or(|sex| patient.sex == sex);
        let (inside, outside) = (auc_by_pairs(&place.inside(is_wanted)), auc_by_pairs(&place.outside(is_wanted)));
        close(&of["internal"]["value"], inside);
        close(&of["external"]["value"], outside);
        close(&of["difference"]["value"], outside - inside);
    }
    // The Brier score by its definition: a metric of which less is better.
    let brier = |rows: &[(f64, bool)]| {
        let square = |(p, positive): &(f64, bool)| (p - f64::from(u8::from(*positive))).powi(2);
        rows.iter().map(square).sum::<f64>() / rows.len() as f64
    };
    let all = metric(&found, "brier");
    close(&all["overall"]["internal"]["value"], brier(&place.inside(|_| true)));
    close(&all["overall"]["external"]["value"], brier(&place.outside(|_| true)));
    // One threshold, that of the run.
    assert_eq!(found["threshold"]["value"], own["threshold"]["value"]);
    let threshold = own["threshold"]["value"].as_f64().unwrap();
    let negatives: Vec<f64> =
        place.outside(|_| true).iter().filter(|(_, positive)| !positive).map(|(p, _)| *p).collect();
    let called = negatives.iter().filter(|p| **p >= threshold).count();
    close(&metric(&found, "fpr")["overall"]["external"]["value"], called as f64 / negatives.len() as f64);
    // Women are ranked the wrong way round, and only outside.
    let women = &auc["attributes"][0]["groups"][0][1];
    assert!(women["external"]["value"].as_f64().unwrap() < 0.4 && women["internal"]["value"].as_f64().unwrap() > 0.6);
    let verdict = found["verdict"].to_string();
    assert!(verdict.contains("AUC falls from") && verdict.contains("sex = F fares worse"), "{verdict}");
    assert!(said.contains("positive sample") && said.contains("Criteria of fairness"), "{said}");
    assert!(!said.contains("curves read") && !said.contains("evaluation times"), "{said}");
    // Both sides have what their own evaluation has.
    assert_eq!(found["internal-class"]["groups"], own["groups"]);
    succeed(["evaluate", &place.other(), "--min-events", "1", "--set", "replicates=200"]);
    let alone = json(&place.at("other/evaluation.json"));
    assert_eq!(found["external-class"]["groups"], alone["groups"]);
    assert_eq!(found["external-class"]["parity"], alone["parity"]);
}

#[test]
fn page_table_and_case_mix_have_both_cohorts() {
    let place = Place::new();
    let figures = text(&place.at("figures"));
    let (_, found) = place.compare(&["--set", "replicates=20", "--figures", &figures]);
    let page = std::fs::read_to_string(place.at("other/external.html")).unwrap();
    for part in
        ["<h2>Calibration</h2>", "Probabilities and shares of positive samples", "<th scope=\"col\">positive</th>"]
    {
        assert!(page.contains(part), "{part}");
    }
    for of_curves in ["Kaplan-Meier", "Curves read", "evaluation times", "C<sup>td</sup>"] {
        assert!(!page.contains(of_curves), "{of_curves}");
    }
    for name in ["calibration-internal-sex.svg", "calibration-external-sex.svg", "forest-auc.svg"] {
        assert!(place.at("figures").join(name).exists(), "{name}");
    }
    let lines = found["case-mix"]["lines"].as_array().unwrap();
    let line = |name: &str| lines.iter().find(|line| line["name"] == name).unwrap();
    let (inside, outside) = (place.inside(|_| true), place.outside(|_| true));
    let n_positive = |rows: &[(f64, bool)]| rows.iter().filter(|(_, positive)| *positive).count();
    let positives = line("positive samples");
    assert_eq!(positives["internal"]["n"], n_positive(&inside));
    assert_eq!(positives["external"]["n"], n_positive(&outside));
    let share = |rows: &[(f64, bool)]| n_positive(rows) as f64 / rows.len() as f64;
    let shares = line("positive samples, share");
    close(&shares["internal"]["share"], share(&inside));
    close(&shares["external"]["share"], share(&outside));
    assert_eq!(shares["smd"].as_f64().unwrap() > 0.0, share(&outside) > share(&inside), "{shares}");
    let mean = |rows: &[(f64, bool)]| rows.iter().map(|(p, _)| p).sum::<f64>() / rows.len() as f64;
    close(&line("predicted probability")["external"]["value"], mean(&outside));
    let women = patients_of(&place.at("run"), Part::Test).iter().filter(|patient| patient.sex == "F").count();
    assert_eq!(line("F")["internal"]["n"], women);
    // The flat table has every cohort.
    let csv = std::fs::read_to_string(place.at("other/external.csv")).unwrap();
    let rows = |start: &str| csv.lines().filter(|line| line.starts_with(start)).count();
    assert!(rows("internal,auc,") > 3 && rows("external,auc,") > 3, "{csv}");
    assert!(rows("external minus internal,auc,") > 3, "{csv}");
    assert!(rows("internal,equalised-odds,") == 1 && rows("external,equalised-odds,") == 1, "{csv}");
}

#[test]
fn a_class_of_times_has_the_auc_with_weights_of_both_cohorts() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let config = class_run(folder, 500, "", "binary = { horizon = 4 }\n");
    let (run, table, other) = (folder.join("run"), folder.join("other.csv"), folder.join("other"));
    succeed(["train", "--config", &config]);
    class_table(&table, OTHER, &["time", "event", "sex", "x0", "x1"]);
    succeed(["predict", &text(&run), "--table", &text(&table), "--output", &text(&other)]);
    succeed(["evaluate", &text(&other), "--internal", &text(&run), "--set", "replicates=20"]);
    let found = json(&other.join("external.json"));
    let own = json(&run.join("evaluation.json"));
    let weighted = |of: &Value| of["horizon"]["weighted"]["overall"]["value"].clone();
    assert_eq!(weighted(&found["internal-class"]), weighted(&own));
    let train: Vec<(f64, bool)> =
        patients_of(&run, Part::Train).iter().map(|patient| (patient.time, patient.event)).collect();
    let table = fairtte_data::predictions::read_probabilities(&other.join("predictions.parquet")).unwrap();
    let rows = table.samples.iter().zip(&table.probability).map(|(sample, p)| {
        let patient = class_patient(sample.as_str()[1..].parse().unwrap());
        (patient.time, patient.event, *p)
    });
    let rows: Vec<(f64, bool, f64)> = rows.collect();
    close(&weighted(&found["external-class"]), auc_with_weights(&train, &rows, 4.0));
    assert_eq!(found["external-censoring"]["fitted-on"], "train");
    let page = std::fs::read_to_string(other.join("external.html")).unwrap();
    assert!(
        page.contains("internal: Who has a class at 4 years") && page.contains("external: Who has a class at 4 years")
    );
    let lines = found["case-mix"]["lines"].as_array().unwrap();
    let without = lines.iter().find(|line| line["name"] == "censored by the horizon, without a class").unwrap();
    let n_without = rows.iter().filter(|(time, event, _)| !event && *time <= 4.0).count();
    close(&without["external"]["share"], n_without as f64 / rows.len() as f64);
}

#[test]
fn runs_that_predict_something_else_are_refused() {
    let place = Place::new();
    let folder = place.folder.path();
    let (other, run) = (place.other(), place.run());
    let config = folder.join("classes.toml");
    // A run of curves, and one whose class is made at a time.
    let written = std::fs::read_to_string(&config).unwrap().replace("/run'", "/curves'").replace(LABEL, "");
    let curves = folder.join("curves.toml");
    std::fs::write(&curves, written.replace("[task]\nkind = \"binary\"\n", "")).unwrap();
    succeed(["train", "--config", &text(&curves), "--set", "training.epochs=1"]);
    fail(["evaluate", &other, "--internal", &text(&folder.join("curves"))], CONFIG, "is of the task \"time-to-event\"");
    let at_four = folder.join("at-four.toml");
    std::fs::write(&at_four, written.replace("/curves'", "/at-four'") + "binary = { horizon = 4 }\n").unwrap();
    succeed(["train", "--config", &text(&at_four), "--set", "training.epochs=1"]);
    fail(["evaluate", &other, "--internal", &text(&folder.join("at-four"))], CONFIG, "is at 4, that of");
    for option in ["--permutations=9", "--baseline=sex"] {
        fail(["evaluate", &other, "--internal", &run, option], CONFIG, "expected no --internal");
    }
    // The card of one task has no evaluation of the other.
    succeed(["evaluate", &other, "--set", "replicates=0"]);
    let card = ["card", &text(&folder.join("curves")), "--external", &other];
    fail(card, 4, "was predicted by");
    std::fs::remove_file(place.at("other/predict.json")).unwrap();
    fail(card, CONFIG, "is the evaluation of a class");
}

/// The cells of a row of a Markdown table whose first cell is `name`, after the line `heading`.
fn cells<'a>(card: &'a str, heading: &str, name: &str) -> Vec<&'a str> {
    let rest = card.split(heading).nth(1).unwrap();
    let is_named =
        |line: &&str| line.starts_with(&format!("| {name} |")) || line.starts_with(&format!("| {name}<sup>"));
    rest.lines()
        .find(is_named)
        .unwrap_or_else(|| panic!("no row {name} after {heading}\n{card}"))
        .split(" | ")
        .collect()
}

#[test]
fn the_card_of_a_class_has_its_metrics_counts_and_other_data() {
    let place = Place::new();
    place.compare(&["--set", "replicates=20"]);
    let said = succeed(["card", &place.run(), "--external", &format!("Clinic B={}", place.other())]).stdout;
    assert!(said.contains("model card: "), "{said}");
    let card = std::fs::read_to_string(place.at("run/model-card.md")).unwrap();
    let own = json(&place.at("run/evaluation.json"));
    let auc = metric(&own, "auc");
    let shown = |of: &Value| format!("{:.3} (", of["value"].as_f64().unwrap());
    let all = cells(&card, "### Unitary results", "all");
    assert_eq!((all[1], all[2]), (own["n"].to_string().as_str(), own["n-positive"].to_string().as_str()));
    assert!(all[3].starts_with(&shown(&auc["overall"])), "{all:?}");
    let women = cells(&card, "### Unitary results", "&emsp;F");
    assert!(women[3].starts_with(&shown(&auc["attributes"][0]["groups"][0]["estimate"])), "{women:?}");
    // Inside and outside are not exchanged.
    let outside = json(&place.at("other/external.json"));
    let (inside, outside) = (&auc["overall"], &metric(&outside, "auc")["overall"]["external"]);
    let rows = card.split("### External results").nth(1).unwrap();
    assert!(cells(rows, "test part of this run", "&emsp;all")[3].starts_with(&shown(inside)));
    assert!(cells(rows, "**Clinic B**", "&emsp;all")[3].starts_with(&shown(outside)));
    // Counts of the test part by class.
    let patients = patients_of(&place.at("run"), Part::Test);
    let n_positive = patients.iter().filter(|patient| patient.positive).count();
    let test = cells(&card, "Who is in the test part", "all");
    assert_eq!(
        test[1..5],
        [patients.len(), patients.len(), n_positive, patients.len() - n_positive].map(|n| n.to_string())
    );
    for part in [
        "- **prediction**: for every sample the probability of the positive class\n",
        "- **threshold**: Threshold ",
        " of the validation part, ",
        "groups with at least",
        "samples of the rarer class",
        "Criteria of fairness at the threshold",
        "Decisions at the threshold",
    ] {
        assert!(card.contains(part), "{part}\n{card}");
    }
    for of_curves in ["evaluation times", "cut points", "Median follow-up", "survival model"] {
        assert!(!card.contains(of_curves), "{of_curves}\n{card}");
    }
    let folder = text(place.folder.path());
    assert!(!card.contains(&folder), "a card is published: it has no paths\n{card}");
}

#[test]
fn a_run_on_labels_predicts_data_with_times_in_their_own_unit_and_with_their_own_censoring() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let config = class_run(folder, 500, LABEL, "");
    succeed(["train", "--config", &config]);
    class_table(&folder.join("other.csv"), OTHER, &CLASS_COLUMNS);
    let of_times = std::fs::read_to_string(&config).unwrap();
    let of_times = of_times.replace(LABEL, "").replace("patients.csv", "other.csv").replace("\"years\"", "\"days\"");
    let of_times = of_times.replace("kind = \"binary\"\n", "kind = \"binary\"\nbinary = { horizon = 4 }\n");
    let (other, output) = (folder.join("other.toml"), folder.join("other"));
    std::fs::write(&other, of_times).unwrap();
    let (run, other, output) = (text(&folder.join("run")), text(&other), text(&output));
    let call = ["predict", &run, "--data", &other, "--output", &output];
    let factor = |factor| call.iter().copied().chain(["--time-factor", factor]).collect::<Vec<_>>();
    fail(factor("2"), CONFIG, "--time-factor: 2 has no effect, because the run predicts a class");
    fail(factor("0"), CONFIG, "--time-factor: 0 is no factor of times, expected a finite number > 0");
    succeed(call);
    assert_eq!(json(&folder.join("other/predict.json"))["time-unit"], "days");
    succeed(["evaluate", &output]);
    let found = json(&folder.join("other/evaluation.json"));
    assert_eq!(
        (&found["censoring"]["fitted-on"], &found["censoring"]["n"]),
        (&"evaluated".into(), &OTHER.len().into())
    );
    assert!(found["notes"].to_string().contains("The run has no times: the censoring curve"), "{}", found["notes"]);
    fail(["evaluate", &output, "--censoring", "train"], CONFIG, "has no times, expected `own`");
    // Labels have no times either.
    let labels = folder.join("labels.csv");
    class_table(&labels, OTHER, &["disease", "sex", "x0", "x1"]);
    let (labels, output) = (text(&labels), text(&folder.join("labels")));
    let call = ["predict", &run, "--table", &labels, "--output", &output, "--time-factor", "2"];
    fail(call, CONFIG, "--time-factor: 2 has no effect, because the outcome is a label");
}
