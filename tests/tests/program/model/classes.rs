//! `predict` of a run that predicts a class: the probabilities are those of its training, and `evaluate` says how they generalise to
//! other data, with the threshold and the censoring curve of the run.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fairtte_data::predictions::read_probabilities;
use fairtte_metrics::classification::{ClassPredictions, auc, average_precision};
use fairtte_tests::classes::{CLASS_COLUMNS, ClassPatient, class_patient, class_run, class_table};
use fairtte_tests::{fail, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const LABEL: &str = "label = \"disease\"\nlabel-value = \"yes\"";
/// Patients of the other data.
const OTHER: std::ops::Range<usize> = 1000..1200;

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn probabilities(folder: &Path) -> HashMap<String, f64> {
    let table = read_probabilities(&folder.join("predictions.parquet")).unwrap();
    table.samples.iter().map(ToString::to_string).zip(table.probability).collect()
}

fn metric(evaluation: &Value, name: &str) -> f64 {
    let metrics = evaluation["metrics"].as_array().unwrap();
    metrics.iter().find(|metric| metric["name"] == name).unwrap()["overall"]["value"].as_f64().unwrap()
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
}

/// The other data in a folder of `predict`.
fn predicted(folder: &Path, run: &Path, columns: &[&str], name: &str) -> PathBuf {
    let (table, output) = (folder.join(format!("{name}.csv")), folder.join(name));
    class_table(&table, OTHER, columns);
    succeed(["predict", &text(run), "--table", &text(&table), "--output", &text(&output)]);
    output
}

/// Probability and class of the rows of the other data that have one.
fn with_class(folder: &Path, class: impl Fn(&ClassPatient) -> Option<bool>) -> ClassPredictions {
    let all = probabilities(folder);
    assert_eq!(all.len(), OTHER.len());
    let of_row = |row: usize| Some((all[&format!("p{row:04}")], class(&class_patient(row))?));
    let (probability, positive) = OTHER.filter_map(of_row).unzip();
    ClassPredictions::new(probability, positive).unwrap()
}

#[test]
fn a_class_of_a_column_is_predicted_for_other_data_and_evaluated_with_the_threshold_of_the_run() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let config = class_run(folder, 500, LABEL, "");
    let run = folder.join("run");
    succeed(["train", "--config", &config]);
    // The run's own table gives the probabilities that the training wrote.
    let again = folder.join("again");
    succeed(["predict", &text(&run), "--data", &config, "--output", &text(&again)]);
    let (trained, predicted_again) = (probabilities(&run), probabilities(&again));
    assert!(trained.len() < predicted_again.len());
    for (sample, probability) in &trained {
        assert_eq!(predicted_again[sample].to_bits(), probability.to_bits(), "{sample}");
    }

    let other = predicted(folder, &run, &["disease", "sex", "x0", "x1"], "other");
    let record = json(&other.join("predict.json"));
    let n_positive = OTHER.filter(|row| class_patient(*row).positive).count();
    assert_eq!((&record["task"]["kind"], &record["n-positive"]), (&"binary".into(), &n_positive.into()));
    assert!(record.get("n-times").is_none() && record["n-without-class"] == 0);
    let said = succeed(["evaluate", &text(&other), "--min-events", "1", "--set", "replicates=20"]).stdout;
    assert!(said.contains("200 samples"), "{said}");
    let evaluation = json(&other.join("evaluation.json"));
    let expected = with_class(&other, |patient| Some(patient.positive));
    close(metric(&evaluation, "auc"), auc(&expected).unwrap());
    close(metric(&evaluation, "average-precision"), average_precision(&expected).unwrap());
    assert!(auc(&expected).unwrap() > 0.8, "{}", auc(&expected).unwrap());
    let of_run = json(&run.join("evaluation.json"));
    assert_eq!(evaluation["threshold"]["value"], of_run["threshold"]["value"]);
    assert_eq!(evaluation["threshold"]["chosen"], "f1-on-validation");
    assert_eq!((&evaluation["part"], evaluation["n"].as_u64()), (&"all".into(), Some(200)));
    assert!(evaluation.get("horizon").is_none());
    let groups = evaluation["metrics"][0]["attributes"][0]["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    // Without the run its settings and its threshold are gone, which is reported.
    std::fs::rename(&run, folder.join("gone")).unwrap();
    succeed(["evaluate", &text(&other)]);
    let evaluation = json(&other.join("evaluation.json"));
    assert_eq!(
        (&evaluation["threshold"]["value"], &evaluation["threshold"]["chosen"]),
        (&0.5.into(), &"default".into())
    );
    let notes = evaluation["notes"].to_string();
    assert!(notes.contains("the run cannot be read") && notes.contains("The threshold is 0.5"), "{notes}");
}

#[test]
fn what_other_data_of_a_class_cannot_have_is_refused_in_a_sentence() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let run = folder.join("run");
    succeed(["train", "--config", &class_run(folder, 300, LABEL, "")]);
    let (run, output) = (text(&run), text(&folder.join("never")));
    let table = folder.join("table.csv");
    class_table(&table, OTHER, &CLASS_COLUMNS);
    let predict = ["predict", &run, "--table", &text(&table), "--output", &output];
    fail(predict.into_iter().chain(["--horizon", "1"]), CONFIG, "--horizon: the run predicts a class");
    let other = predicted(folder, folder.join("run").as_path(), &["disease", "sex", "x0", "x1"], "other");
    let evaluate = ["evaluate", &text(&other)];
    fail(evaluate.into_iter().chain(["--censoring", "own"]), CONFIG, "--censoring: the class was read");
    fail(evaluate.into_iter().chain(["--part", "test"]), CONFIG, "--part");
    // Without labels there are probabilities and nothing to evaluate.
    let without = predicted(folder, folder.join("run").as_path(), &["sex", "x0", "x1"], "without");
    assert_eq!(probabilities(&without).len(), OTHER.len());
    let said = fail(["evaluate", &text(&without)], 4, "there are no outcomes");
    assert!(said.stderr.contains("without"), "{}", said.stderr);
    // A run of curves does not predict a class.
    let curves = folder.join("curves");
    let config = folder.join("classes.toml");
    let of_times =
        std::fs::read_to_string(&config).unwrap().replace(LABEL, "").replace("[task]\nkind = \"binary\"\n", "");
    let of_times = of_times.replace("/run'", "/curves'");
    let path = folder.join("curves.toml");
    std::fs::write(&path, of_times).unwrap();
    succeed(["train", "--config", &text(&path), "--set", "training.epochs=1"]);
    let call = ["predict", &text(&curves), "--data", &text(&config), "--output", &output];
    fail(call, CONFIG, "task: the data have a class");
}

#[test]
fn the_mean_of_several_runs_is_that_of_their_probabilities() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let config = class_run(folder, 300, LABEL, "");
    let runs: Vec<String> = (1..=2).map(|seed| text(&folder.join(format!("run-{seed}")))).collect();
    for (seed, run) in runs.iter().enumerate() {
        let seed = format!("training-seed={seed}");
        succeed(["train", "--config", &config, "--set", &seed, "--output", run, "--set", "training.epochs=2"]);
    }
    let table = folder.join("table.csv");
    class_table(&table, OTHER, &["disease", "sex", "x0", "x1"]);
    let all: Vec<HashMap<String, f64>> = [&runs[..1], &runs[1..], &runs[..]]
        .into_iter()
        .enumerate()
        .map(|(place, runs)| {
            let output = folder.join(format!("predicted-{place}"));
            let mut call = vec!["predict".to_owned()];
            call.extend(runs.iter().cloned());
            call.extend(["--table".to_owned(), text(&table), "--output".to_owned(), text(&output)]);
            succeed(call);
            probabilities(&output)
        })
        .collect();
    let mut largest: f64 = 0.0;
    for (sample, mean) in &all[2] {
        close(*mean, 0.5 * (all[0][sample] + all[1][sample]));
        largest = largest.max((all[0][sample] - all[1][sample]).abs());
    }
    assert!(largest > 1e-3, "the two runs are one");
    let output = folder.join("predicted-2");
    succeed(["evaluate", &text(&output)]);
    let notes = json(&output.join("evaluation.json"))["notes"].to_string();
    assert!(notes.contains("no validation part has these predictions"), "{notes}");
}

#[test]
fn a_class_of_times_generalises_with_the_censoring_curve_of_the_run_or_its_own() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let run = folder.join("run");
    let config = class_run(folder, 500, "", "binary = { horizon = 4 }\n");
    succeed(["train", "--config", &config]);
    let other = predicted(folder, &run, &["time", "event", "sex", "x0", "x1"], "other");
    let at_horizon = |patient: &ClassPatient| {
        if patient.time > 4.0 { Some(false) } else { patient.event.then_some(true) }
    };
    let n_without = OTHER.filter(|row| at_horizon(&class_patient(*row)).is_none()).count();
    assert!(n_without > 20 && json(&other.join("predict.json"))["n-without-class"] == n_without);
    succeed(["evaluate", &text(&other)]);
    let evaluation = json(&other.join("evaluation.json"));
    close(metric(&evaluation, "auc"), auc(&with_class(&other, at_horizon)).unwrap());
    assert_eq!(evaluation["n"], 200 - n_without);
    let weighted = |evaluation: &Value| evaluation["horizon"].to_string();
    assert_eq!(evaluation["censoring"]["fitted-on"], "train");
    let of_run = weighted(&evaluation);
    succeed(["evaluate", &text(&other), "--censoring", "own"]);
    let evaluation = json(&other.join("evaluation.json"));
    assert_eq!(evaluation["censoring"]["fitted-on"], "evaluated");
    assert_ne!(weighted(&evaluation), of_run, "other weights give another AUC");
    // The class of another horizon is another question.
    let at_five = folder.join("five.toml");
    std::fs::write(&at_five, std::fs::read_to_string(&config).unwrap().replace("horizon = 4", "horizon = 5")).unwrap();
    let output = text(&folder.join("never"));
    let sentence = "task.binary.horizon: the class of the data is at 5";
    fail(["predict", &text(&run), "--data", &text(&at_five), "--output", &output], CONFIG, sentence);
}

#[test]
fn the_folds_of_a_class_are_pooled_to_the_bit() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let config = class_run(folder, 400, "", "binary = { horizon = 4 }\n");
    let folds: Vec<PathBuf> = (1..=3).map(|fold| folder.join(format!("fold-{fold}"))).collect();
    for (place, fold) in folds.iter().enumerate() {
        let set = format!("split.k-fold={{folds=3,fold={place}}}");
        succeed(["train", "--config", &config, "--set", &set, "--output", &text(fold), "--set", "training.epochs=2"]);
    }
    let pooled = folder.join("pooled");
    let mut call = vec!["predict".to_owned(), "--out-of-fold".to_owned(), "--output".to_owned(), text(&pooled)];
    call.extend(folds.iter().map(|fold| text(fold)));
    succeed(call);
    let found = probabilities(&pooled);
    assert_eq!(found.len(), 400, "every sample is in one test part");
    let mut n = 0;
    for fold in &folds {
        let of_fold = probabilities(fold);
        let split = std::fs::read_to_string(fold.join("split.csv")).unwrap();
        for line in split.lines().filter(|line| line.contains("test")) {
            let sample = line.split(',').find(|cell| of_fold.contains_key(*cell)).unwrap();
            assert_eq!(found[sample].to_bits(), of_fold[sample].to_bits(), "{sample}");
            n += 1;
        }
    }
    assert_eq!(n, 400);
    succeed(["evaluate", &text(&pooled)]);
    let evaluation = json(&pooled.join("evaluation.json"));
    assert_eq!(evaluation["censoring"]["fitted-on"], "evaluated");
    assert!(evaluation["horizon"].to_string().contains("naive"));
}
