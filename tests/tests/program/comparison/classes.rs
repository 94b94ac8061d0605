//! The choice among runs that predict a class, worked again from the files of the runs: by every rule, and, where the class is made
//! from times, beside the AUC with weights for censoring.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fairtte_data::Part;
use fairtte_tests::classes::{
    ClassPatient, PredictedPatient, auc_by_pairs, auc_with_weights, class_run, patients_of, predicted_patients,
};
use fairtte_tests::succeed;
use serde_json::Value;

const N: usize = 500;
const HORIZON: f64 = 4.0;
const STRATEGIES: [&str; 6] = ["erm", "group-dro", "laftr", "cfair", "end", "recalibration"];

fn words(path: &Path) -> String {
    path.display().to_string()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// AUC of all, of F and of M, of those who have a class.
fn aucs(predicted: &[PredictedPatient], class: fn(&ClassPatient) -> Option<bool>) -> [f64; 3] {
    ["", "F", "M"].map(|sex| {
        let of_sex = predicted.iter().filter(|row| sex.is_empty() || row.patient.sex == sex);
        let known: Vec<(f64, bool)> = of_sex.filter_map(|row| Some((row.probability, class(&row.patient)?))).collect();
        auc_by_pairs(&known)
    })
}

/// Weights that a run kept, with the AUCs of their validation and test part.
struct Kept {
    epoch: u64,
    file: String,
    validation: [f64; 3],
    test: [f64; 3],
}

/// Everything that the run of a strategy kept.
fn kept(run: &Path, class: fn(&ClassPatient) -> Option<bool>) -> Vec<Kept> {
    let record = json(&run.join("selection.json"));
    let mut files = BTreeMap::from([(record["epoch"].as_u64().unwrap(), "predictions.parquet".to_owned())]);
    for choice in record["rules"].as_object().unwrap().values() {
        files.entry(choice["epoch"].as_u64().unwrap()).or_insert_with(|| choice["file"].as_str().unwrap().to_owned());
    }
    let of = |(epoch, file): (u64, String)| {
        let [validation, test] =
            [Part::Validation, Part::Test].map(|part| aucs(&predicted_patients(run, &file, part), class));
        Kept { epoch, file, validation, test }
    };
    files.into_iter().map(of).collect()
}

/// What a rule minimises over the candidates of a strategy, by AUC of all, F and M; infinite where it admits none.
fn cost(rule: &str, [all, f, m]: [f64; 3], pool: &[Kept], base: f64) -> f64 {
    let best = |group: usize| pool.iter().map(|kept| kept.validation[group]).fold(0.0, f64::max);
    match rule {
        "overall" => -all,
        // The best worst group lies on the Pareto front.
        "minimax" => -f.min(m),
        "dto" => ((best(1) - f) / best(1)).hypot((best(2) - m) / best(2)),
        "fairest" if all < 0.95 * base => f64::INFINITY,
        "fairest" => (f - m).abs(),
        other => panic!("no rule {other}"),
    }
}

fn train_all(folder: &Path, config: &str) {
    for strategy in STRATEGIES {
        let output = words(&folder.join("all").join(strategy));
        succeed(["train", "--config", config, "--set", &format!("strategy={strategy}"), "--output", &output]);
    }
}

fn select(folder: &Path, rule: &str, more: &[&str]) -> Value {
    let all = words(&folder.join("all"));
    let arguments = ["select", &all, "--rule", rule, "--set", "replicates=20", "--json"];
    serde_json::from_str(&succeed(arguments.iter().chain(more)).stdout).unwrap()
}

fn close(found: &Value, expected: f64, what: &str) {
    assert!((found.as_f64().unwrap() - expected).abs() < 1e-9, "{what}: {found} is not {expected}");
}

#[test]
fn every_rule_chooses_the_epoch_that_is_best_by_it_in_the_validation_part() {
    let folder = tempfile::tempdir().unwrap();
    let config = class_run(folder.path(), N, "label = \"disease\"\nlabel-value = \"yes\"", "");
    train_all(folder.path(), &config);
    let recalibrated = std::fs::read_to_string(folder.path().join("all/recalibration/run.toml")).unwrap();
    assert!(recalibrated.contains("method = \"platt\""), "{recalibrated}");
    let of_strategy = |strategy: &str| kept(&folder.path().join("all").join(strategy), |of| Some(of.positive));
    let candidates: BTreeMap<&str, Vec<Kept>> = STRATEGIES.map(|name| (name, of_strategy(name))).into();
    let best_erm = candidates["erm"].iter().map(|kept| kept.validation[0]).fold(0.0, f64::max);
    let mut choices: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for rule in ["fairest", "overall", "minimax", "dto"] {
        let verdict = select(folder.path(), rule, &[]);
        assert!(verdict.get("horizon").is_none(), "a class of a column has no horizon");
        let blocks = verdict["blocks"].as_array().unwrap();
        assert_eq!(blocks.len(), 1, "{rule}");
        assert_eq!((&blocks[0]["metric"], &blocks[0]["attribute"]), (&Value::from("auc"), &Value::from("sex")));
        let rows = blocks[0]["rows"].as_array().unwrap();
        // The base by the best metric is a row of its own with the rule of the paper.
        assert_eq!(rows.len(), STRATEGIES.len() + usize::from(rule == "fairest"));
        for row in rows {
            let strategy = row["strategy"].as_str().unwrap();
            let what = format!("{strategy} by {rule}");
            let own_rule = if row["role"] == "base" && rule == "fairest" { "overall" } else { rule };
            let pool = &candidates[strategy];
            let costs: Vec<f64> = pool.iter().map(|kept| cost(own_rule, kept.validation, pool, best_erm)).collect();
            let lowest = costs.iter().copied().fold(f64::INFINITY, f64::min);
            let Some(chosen) = row["chosen"].as_object() else {
                assert!(lowest.is_infinite(), "{what}: nothing was chosen");
                continue;
            };
            let epoch = chosen["epoch"].as_u64().unwrap();
            let place = pool.iter().position(|kept| kept.epoch == epoch).unwrap();
            assert!(costs[place] <= lowest + 1e-12, "{what}: epoch {epoch} of {costs:?}");
            let [all, f, m] = pool[place].validation;
            close(&chosen["validation"]["value"], all, &what);
            close(&chosen["validation"]["gap"], (f - m).abs(), &what);
            let [all, f, m] = pool[place].test;
            close(&chosen["test"]["value"], all, &what);
            close(&chosen["test"]["gap"], (f - m).abs(), &what);
            assert!(chosen.get("weighted").is_none(), "{what}");
            choices.entry(strategy.to_owned()).or_default().insert(epoch);
        }
    }
    assert!(choices.values().any(|epochs| epochs.len() > 1), "all rules choose the same: {choices:?}");
}

fn at_horizon(of: &ClassPatient) -> Option<bool> {
    if of.time > HORIZON { Some(false) } else { of.event.then_some(true) }
}

#[test]
fn of_a_class_from_times_both_aucs_are_shown_and_the_one_that_chooses_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let config = class_run(folder.path(), N, "", "binary = { horizon = 4 }\n");
    train_all(folder.path(), &config);
    let output = words(&folder.path().join("choice"));
    let verdict = select(folder.path(), "minimax", &["--output", &output]);
    let run = folder.path().join("all/erm");
    let test = predicted_patients(&run, "predictions.parquet", Part::Test);
    let n_left_out = test.iter().filter(|row| at_horizon(&row.patient).is_none()).count();
    assert!(n_left_out > 10, "{n_left_out}");
    assert_eq!(verdict["horizon"], serde_json::json!({ "time": 4.0, "n": test.len(), "n-left-out": n_left_out }));
    assert_eq!(verdict["n-test"], test.len() - n_left_out);
    let train: Vec<(f64, bool)> = patients_of(&run, Part::Train).iter().map(|of| (of.time, of.event)).collect();
    let mut n_differing = 0;
    for row in verdict["blocks"][0]["rows"].as_array().unwrap() {
        let (strategy, chosen) = (row["strategy"].as_str().unwrap(), &row["chosen"]);
        let run = folder.path().join("all").join(strategy);
        let epoch = chosen["epoch"].as_u64().unwrap();
        let of_epoch = kept(&run, at_horizon).into_iter().find(|kept| kept.epoch == epoch).unwrap();
        let predicted = predicted_patients(&run, &of_epoch.file, Part::Test);
        let [all, f, m] = ["", "F", "M"].map(|sex| {
            let of_sex = predicted.iter().filter(|row| sex.is_empty() || row.patient.sex == sex);
            let rows: Vec<(f64, bool, f64)> =
                of_sex.map(|row| (row.patient.time, row.patient.event, row.probability)).collect();
            auc_with_weights(&train, &rows, HORIZON)
        });
        close(&chosen["test"]["value"], of_epoch.test[0], strategy);
        let weighted = &chosen["weighted"];
        close(&weighted["value"], all, strategy);
        close(&weighted["gap"], (f - m).abs(), strategy);
        close(&weighted["naive-minus-this"], of_epoch.test[0] - all, strategy);
        assert!(weighted["lower"].as_f64() < weighted["upper"].as_f64(), "{strategy}: {weighted}");
        n_differing += usize::from((of_epoch.test[0] - all).abs() > 1e-4);
    }
    assert!(n_differing > 0, "both AUCs are the same");
    let said = format!("{n_left_out} of {} samples of the test part are censored by the horizon 4", test.len());
    for name in ["choice.md", "choice.html"] {
        let content = std::fs::read_to_string(Path::new(&output).join(name)).unwrap();
        assert!(content.contains(&said) && content.contains("AUC - with weights"), "{name}: {content}");
        assert!(content.contains("as in the validation part where models are chosen by it"), "{name}");
    }
}
