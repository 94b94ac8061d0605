//! Runs that predict a class: read from a column, or made from times by a horizon; their predictions, evaluation, choice among
//! them, and what refuses them.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::{Path, PathBuf};

use fairtte_data::{Part, read_cohort};
use fairtte_metrics::classification::{ClassPredictions, auc, best_f1_threshold, cross_entropy};
use fairtte_tests::classes::{
    ClassPatient, auc_with_weights, class_patient, class_run, patients_of, predicted_patients,
};
use fairtte_tests::{fail, run, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const N: usize = 500;
const HORIZON: f64 = 4.0;

/// A run file on 500 patients, in a table with times and with labels.
fn config(folder: &Path, data: &str, further: &str) -> String {
    class_run(folder, N, data, further)
}

fn labelled(folder: &Path) -> String {
    config(folder, "label = \"disease\"\nlabel-value = \"yes\"", "")
}

fn by_horizon(folder: &Path) -> String {
    config(folder, "", "binary = { horizon = 4 }\n")
}

fn words(path: &Path) -> String {
    path.display().to_string()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn metric(evaluation: &Value, name: &str) -> f64 {
    let metrics = evaluation["metrics"].as_array().unwrap();
    metrics.iter().find(|metric| metric["name"] == name).unwrap()["overall"]["value"].as_f64().unwrap()
}

/// Probabilities and classes of a part, as the test knows them: `class` of a patient, `None` without one.
fn predicted(run: &Path, part: Part, class: fn(&ClassPatient) -> Option<bool>) -> ClassPredictions {
    let known = predicted_patients(run, "predictions.parquet", part);
    let known = known.iter().filter_map(|of| Some((of.probability, class(&of.patient)?)));
    let (probability, positive) = known.unzip();
    ClassPredictions::new(probability, positive).unwrap()
}

fn at_horizon(of: &ClassPatient) -> Option<bool> {
    if of.time > HORIZON { Some(false) } else { of.event.then_some(true) }
}

#[test]
fn a_class_of_a_column_is_learnt_predicted_and_evaluated() {
    let folder = tempfile::tempdir().unwrap();
    succeed(["train", "--config", &labelled(folder.path())]);
    let run: PathBuf = folder.path().join("run");
    let evaluation = json(&run.join("evaluation.json"));
    assert_eq!((&evaluation["task"], &evaluation["part"]), (&Value::from("binary"), &Value::from("test")));
    let class = |of: &ClassPatient| Some(of.positive);
    let (test, validation) = (predicted(&run, Part::Test, class), predicted(&run, Part::Validation, class));
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
    close(metric(&evaluation, "auc"), auc(&test).unwrap());
    close(metric(&evaluation, "bce"), cross_entropy(&test).unwrap());
    // The best logistic model has an AUC of 0.87 in 10^6 of these patients.
    assert!(auc(&test).unwrap() > 0.78, "{}", auc(&test).unwrap());
    let threshold = &evaluation["threshold"];
    assert_eq!(threshold["chosen"], "f1-on-validation");
    close(threshold["value"].as_f64().unwrap(), best_f1_threshold(&validation).unwrap().threshold);
    assert!(evaluation.get("horizon").is_none() && !run.join("without-class.csv").exists());
    // The last line of the log is of a class, and the epochs are those of its metrics.
    let steps = std::fs::read_to_string(run.join("steps.jsonl")).unwrap();
    let epoch: Value = serde_json::from_str(steps.lines().last().unwrap()).unwrap();
    assert!(epoch["validation"]["auc"].as_f64().is_some() && epoch["validation"].get("c_td").is_none(), "{epoch}");
    let selection = json(&run.join("selection.json"));
    let rules: Vec<&String> = selection["rules"].as_object().unwrap().keys().collect();
    for rule in ["bce", "auc", "balanced-accuracy", "worst-group-auc", "gap-auc", "gap-balanced-accuracy"] {
        assert!(rules.iter().any(|known| *known == rule), "{rule}: {rules:?}");
    }
    assert_eq!(selection["monitor"], "bce");
    let best = selection["rules"]["auc"]["epoch"].as_u64().unwrap();
    assert!(best >= 1);
    // `evaluate RUN` gives the same numbers, and a threshold of its own where one is given.
    let again = succeed(["evaluate", &words(&run), "--threshold", "0.25", "--json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    close(metric(&again, "auc"), auc(&test).unwrap());
    assert_eq!(
        (&again["threshold"]["value"], &again["threshold"]["chosen"]),
        (&Value::from(0.25), &Value::from("given"))
    );
    assert!(run.join("report.html").exists() && run.join("evaluation.csv").exists());
}

#[test]
fn a_class_of_times_leaves_out_and_counts_who_is_censored_and_both_aucs_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let trained = succeed(["train", "--config", &by_horizon(folder.path())]);
    let run = folder.path().join("run");
    let left_out: Vec<usize> = (0..N).filter(|row| at_horizon(&class_patient(*row)).is_none()).collect();
    assert!(left_out.len() > 50, "{}", left_out.len());
    let said = format!("with a class at the horizon  (-{0}: censored_by_horizon {0})", left_out.len());
    assert!(trained.stdout.contains(&said), "{}", trained.stdout);
    let listed = std::fs::read_to_string(run.join("without-class.csv")).unwrap();
    let names: Vec<usize> = listed.lines().skip(1).map(|line| line[1..5].parse().unwrap()).collect();
    assert_eq!(names, left_out);
    assert!(listed.lines().skip(1).all(|line| line.contains("censored_by_horizon")));
    let evaluation = json(&run.join("evaluation.json"));
    let test = predicted(&run, Part::Test, at_horizon);
    // The size of a part is that of the samples with a class, and its positives are those of the class.
    let n_positive = test.positive().iter().filter(|positive| **positive).count();
    let said = format!("{0:>8}  in the test part ({0} subjects, {n_positive} positive)", test.n());
    assert!(trained.stdout.contains(&said), "{said}: {}", trained.stdout);
    let horizon = &evaluation["horizon"];
    assert!((metric(&evaluation, "auc") - auc(&test).unwrap()).abs() < 1e-12);
    let naive = auc(&test).unwrap();
    let of_test = predicted_patients(&run, "predictions.parquet", Part::Test);
    let timed: Vec<(f64, bool, f64)> =
        of_test.iter().map(|of| (of.patient.time, of.patient.event, of.probability)).collect();
    let train: Vec<(f64, bool)> = patients_of(&run, Part::Train).iter().map(|of| (of.time, of.event)).collect();
    let weighted = auc_with_weights(&train, &timed, HORIZON);
    assert!((naive - weighted).abs() > 1e-4, "both are {naive}");
    let number = |value: &Value| value.as_f64().unwrap();
    for (found, expected) in [
        (number(&horizon["naive"]["overall"]["value"]), naive),
        (number(&horizon["weighted"]["overall"]["value"]), weighted),
        (number(&horizon["differences"][0]["value"]), naive - weighted),
    ] {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }
    let n_without = of_test.iter().filter(|of| at_horizon(&of.patient).is_none()).count();
    let counts = &horizon["left-out"][0];
    assert_eq!((&counts["n"], &counts["n-left-out"]), (&of_test.len().into(), &n_without.into()));
    assert_eq!(evaluation["censoring"]["fitted-on"], "train");
    assert_eq!(evaluation["n"], test.n());
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("censored_by_horizon") && page.contains("Weights") | page.contains("weights"));
}

/// The validation part is scored as the evaluation scores it.
#[test]
fn the_metrics_of_an_epoch_are_those_of_its_validation_part() {
    let folder = tempfile::tempdir().unwrap();
    succeed(["train", "--config", &by_horizon(folder.path()), "--set", "training.monitor=auc"]);
    let run = folder.path().join("run");
    let validation = predicted(&run, Part::Validation, at_horizon);
    let selection = json(&run.join("selection.json"));
    let value = |rule: &str| selection["rules"][rule]["value"].as_f64().unwrap();
    assert_eq!(selection["monitor"], "auc");
    assert!((value("auc") - auc(&validation).unwrap()).abs() < 1e-12);
    let steps = std::fs::read_to_string(run.join("steps.jsonl")).unwrap();
    let epochs: Vec<Value> = steps.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let best: usize = selection["rules"]["auc"]["epoch"].as_u64().and_then(|epoch| epoch.try_into().ok()).unwrap();
    let nll = epochs[best - 1]["validation"]["nll"].as_f64().unwrap();
    assert!((nll - cross_entropy(&validation).unwrap()).abs() < 1e-9, "{nll}");
}

#[test]
fn what_does_not_fit_a_class_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let (label, times) = ("label = \"disease\"\nlabel-value = \"yes\"", "binary = { horizon = 4 }\n");
    let refused = |data: &str, further: &str, set: &str, sentence: &str| {
        let config = config(folder.path(), data, further);
        let sets: &[&str] = if set.is_empty() { &[] } else { &["--set", set] };
        fail(["train", "--dry-run", "--config", &config].into_iter().chain(sets.iter().copied()), CONFIG, sentence);
    };
    refused("", "", "", "task: there is no class, expected binary = { horizon = TIME }");
    refused(label, times, "", "task.binary: the class is made from times");
    refused("label-value = \"yes\"", times, "", "data.tabular.label-value: it has no effect without label");
    refused("", "binary = { horizon = 0 }\n", "", "task.binary.horizon is 0, expected a finite number > 0");
    refused(label, "", "head=pmf", "head: pmf predicts survival curves, expected [head.binary]");
    refused(
        label,
        "",
        "training.monitor=c-td",
        "training.monitor: c-td is no metric of a class, expected one of bce, auc",
    );
    refused(label, "", "time.intervals=7", "time: it has no effect on a class");
    refused(label, "", "evaluation.horizon=3", "evaluation.horizon: it has no effect on a class");
    refused(label, "", "estimator=cox", "estimator");
    refused(label, "", "strategy.recalibration.method=oe", "expected platt or isotonic");
    refused(label, "", "strategy.laftr.stratum.kind=event-x-bin", "stratum.kind");
    refused(label, "", "task.kind=time-to-event", "data.tabular.label: it names a class");
    refused("", times, "task.kind=time-to-event", "task.binary: it makes a class from times");
}

#[test]
fn commands_that_need_curves_refuse_a_run_of_a_class() {
    let folder = tempfile::tempdir().unwrap();
    let config = labelled(folder.path());
    succeed(["train", "--config", &config]);
    let folder_of_run = words(&folder.path().join("run"));
    let sentence = "predicts a class ([task] kind = \"binary\")";
    fail(["bias", &folder_of_run], CONFIG, sentence);
    let maps = words(&folder.path().join("maps"));
    fail(["explain", &folder_of_run, "--output", &maps, "--horizon", "1", "--samples", "p0001"], CONFIG, sentence);
    fail(["evaluate", &folder_of_run, "--horizon", "3"], CONFIG, "--horizon: the class of a run is that of its [task]");
    let cohort = folder.path().join("run/cohort.parquet");
    let (cohort, _) = read_cohort(&cohort).unwrap();
    assert!(cohort.outcomes(&[0]).unwrap_err().to_string().contains("has a class (column \"disease\")"));
    // An unreadable label is an error with its row, an empty one is counted.
    let table = folder.path().join("patients.csv");
    let text = std::fs::read_to_string(&table).unwrap();
    std::fs::write(&table, text.replacen(",no,", ",,", 3)).unwrap();
    let found = run(["prepare", "--config", &config, "--output", &words(&folder.path().join("prepared"))]);
    assert!(found.stdout.contains("(-3: missing_label 3)"), "{}\n{}", found.stdout, found.stderr);
}
