//! The test part is used only after the choice: if its outcomes and inputs are replaced by noise, nothing before the
//! choice changes. For every strategy with every head, through the program.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "the number of compared trainings is printed")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use fairtte_data::predictions::{Rising, read_probabilities};
use fairtte_data::read_predictions;
use fairtte_tests::{SmallRun, patients, succeed};
use serde_json::Value;

const N: usize = 160;

fn is_test(row: usize) -> bool {
    row % 4 == 3
}

/// A given split, which does not depend on outcomes.
fn write_split(folder: &Path) -> String {
    let mut rows = "subject_id,part\n".to_owned();
    for row in 0..N {
        let part = if is_test(row) { "test" } else { ["train", "validation", "train"][row % 4] };
        writeln!(rows, "p{row:04},{part}").unwrap();
    }
    let path = folder.join("split.csv");
    std::fs::write(&path, rows).unwrap();
    path.display().to_string()
}

fn names(what: &str) -> Vec<String> {
    let listed: Value = serde_json::from_str(&succeed(["list", what, "--json"]).stdout).unwrap();
    listed[what].as_object().unwrap().keys().cloned().collect()
}

/// The settings of a strategy for these data: the default of this method needs larger batches and, with the Cox heads, many
/// events in them.
fn setting(strategy: &str) -> Option<&'static str> {
    (strategy == "dro-chi-square").then_some("alpha = 0.6")
}

/// A run on the table in `folder`, whose test part is noise if it `is_poisoned`.
fn small_run(folder: &Path, head: &str, is_poisoned: bool) -> SmallRun {
    let noise = |row: usize, k: usize| ((row * 7919 + k * 104_729) as f64 * 0.377).sin();
    let run = patients(folder, N, |row, cells| {
        if !(is_poisoned && is_test(row)) {
            return;
        }
        cells[1] = format!("{:.4}", 2.0 + 1.9 * noise(row, 1));
        cells[2] = u8::from(noise(row, 2) > 0.0).to_string();
        for (k, cell) in cells[4..].iter_mut().enumerate() {
            *cell = format!("{:.6}", 50.0 * noise(row, 3 + k));
        }
    });
    let run = if head == "binary" { of_a_class(run) } else { run };
    run.set(&format!("head={head}"))
        .set(&format!("split.file='{}'", write_split(folder)))
        .set("training.epochs=2")
        .set("optimiser.learning-rate=0.01")
        .set("evaluation.replicates=0")
}

/// The event within a horizon, which has no time grid.
fn of_a_class(run: SmallRun) -> SmallRun {
    let file = run.folder.join("run.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let (before, time) = text.split_once("[time]").unwrap();
    let (_, after) = time.split_once("\n[").unwrap();
    std::fs::write(&file, format!("{before}[{after}")).unwrap();
    run.set("task.kind=binary").set("task.binary.horizon=1.5")
}

/// Compares all strategies with `head` in `folder`; returns the choice.
fn compare(folder: &Path, head: &str, strategies: &[String], is_poisoned: bool) -> Value {
    let run = small_run(folder, head, is_poisoned);
    let mut table = "\n[compare]\nattributes = [\"sex\"]\nseeds = [1]\n".to_owned();
    for strategy in strategies {
        writeln!(table, "[compare.strategy.{strategy}]\n{}", setting(strategy).unwrap_or_default()).unwrap();
    }
    let file = folder.join("run.toml");
    std::fs::write(&file, std::fs::read_to_string(&file).unwrap() + &table).unwrap();
    let outcome = succeed([run.arguments("compare"), vec!["--json".to_owned()]].concat());
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// The log of a training without its durations.
fn log(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("steps.jsonl")).unwrap();
    let epoch = |line: &str| {
        let mut epoch: Value = serde_json::from_str(line).unwrap();
        epoch.as_object_mut().unwrap().retain(|key, _| key != "ended" && !key.ends_with("seconds"));
        epoch
    };
    text.lines().map(epoch).collect()
}

/// The bits of what a file of predictions says of its samples: curves, or the probability of a class.
fn bits_by_sample(path: &Path, is_class: bool) -> Vec<(String, Vec<u64>)> {
    if is_class {
        let table = read_probabilities(path).unwrap();
        let samples = table.samples.iter().zip(&table.probability);
        return samples.map(|(sample, p)| (sample.to_string(), vec![p.to_bits()])).collect();
    }
    let table = read_predictions(path, Rising::Refuse).unwrap();
    let samples = table.samples.iter().zip(table.survival.rows());
    samples.map(|(sample, curve)| (sample.to_string(), curve.iter().map(|s| s.to_bits()).collect())).collect()
}

/// The bits of the predictions of the validation part, by file and sample.
fn validation_predictions(run: &Path, is_class: bool) -> BTreeMap<(String, String), Vec<u64>> {
    let split = std::fs::read_to_string(run.join("split.csv")).unwrap();
    let is_validated = |sample: &str| split.lines().any(|line| line == format!("{sample},validation"));
    let mut predictions = BTreeMap::new();
    for entry in std::fs::read_dir(run).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with("predictions") {
            continue;
        }
        for (sample, bits) in bits_by_sample(&path, is_class) {
            if is_validated(&sample) {
                predictions.insert((name.clone(), sample), bits);
            }
        }
    }
    predictions
}

#[test]
fn noise_in_the_test_part_changes_nothing_before_the_choice() {
    // Masks have another task; `compare` refuses them.
    let heads: Vec<String> = names("heads").into_iter().filter(|head| head != "segmentation").collect();
    let strategies = names("strategies");
    let mut n_compared = 0;
    for head in &heads {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let is_class = head == "binary";
        let [clean, poisoned] =
            [(0, false), (1, true)].map(|(k, is_poisoned)| compare(folders[k].path(), head, &strategies, is_poisoned));
        let [a, b] = [&folders[0], &folders[1]].map(|folder| folder.path().join("run").join("sex"));
        for strategy in &strategies {
            let name = format!("{strategy}-seed1");
            let what = format!("{strategy} with {head}");
            let runs = [a.join(&name), b.join(&name)];
            assert_eq!(runs[0].join("done").exists(), runs[1].join("done").exists(), "{what}");
            if !runs[0].join("done").exists() {
                println!("{what}: not trained");
                continue;
            }
            let text = |run: &Path, name: &str| std::fs::read_to_string(run.join(name)).unwrap();
            let logs = [&runs[0], &runs[1]].map(|run| (log(run), text(run, "selection.json")));
            assert_eq!(logs[0].0, logs[1].0, "{what}: the log");
            assert_eq!(logs[0].1, logs[1].1, "{what}: the choice of the rules");
            let predicted = [&runs[0], &runs[1]].map(|run| validation_predictions(run, is_class));
            assert!(
                predicted[0].len() >= N / 4 && predicted[0] == predicted[1],
                "{what}: the predictions of the validation part"
            );
            // The control: the noise has an effect.
            assert_ne!(text(&runs[0], "evaluation.json"), text(&runs[1], "evaluation.json"), "{what}");
            n_compared += 1;
        }
        let blocks = |verdict: &Value| verdict["blocks"].as_array().unwrap().clone();
        assert!(!blocks(&clean).is_empty(), "{head}");
        for (clean, poisoned) in blocks(&clean).iter().zip(blocks(&poisoned)) {
            assert_eq!(clean["contrast"], poisoned["contrast"], "{head}");
            for (clean, poisoned) in clean["rows"].as_array().unwrap().iter().zip(poisoned["rows"].as_array().unwrap())
            {
                for key in ["run", "weights", "kept-by", "validation"] {
                    assert_eq!(clean["chosen"][key], poisoned["chosen"][key], "{head}: {key} of {}", clean["strategy"]);
                }
                let of_seeds = |row: &Value| -> Vec<(Value, Value)> {
                    let seeds = row["seeds"].as_array().unwrap().iter();
                    seeds.map(|seed| (seed["run"].clone(), seed["weights"].clone())).collect()
                };
                assert_eq!(of_seeds(clean), of_seeds(poisoned), "{head}: {}", clean["strategy"]);
            }
        }
    }
    println!("{n_compared} trainings compared, {} heads and {} strategies", heads.len(), strategies.len());
    assert!(n_compared >= heads.len() * strategies.len() - 8, "only {n_compared} were trained");
}
