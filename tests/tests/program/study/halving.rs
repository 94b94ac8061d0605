//! Successive halving of the trials of a study, through the program.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fairtte_tests::{fail, succeed};
use serde_json::Value;

const RUN_FILE: &str = "seed = 3\n[data.simulated]\nn-subjects = 400\nsize = [24, 24]\n[[attribute]]\nname = \"sex\"\n\
    [image]\nsize = [24, 24]\n[time]\nintervals = 8\n[model]\nbackbone = \"small-2d\"\n\
    [training]\nepochs = 8\nbatch-size = 64\nmonitor = \"c-td\"\n";

const STUDY: &str = "trials = 8\nblocks = [\"base\", \"fair\"]\n[[data]]\nrun-file = \"films.toml\"\n\
    [strategies]\nnames = [\"group-dro\"]\n[search]\n\"optimiser.learning-rate\" = { log-uniform = [1e-4, 1e-1] }\n";

const HALVING: &str = "[halving]\nrungs = [2, 4]\nkeep = 0.5\naudit = 0.3\n";

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The folders of all trainings, by id.
fn trainings(study: &Path) -> BTreeMap<String, PathBuf> {
    let entries = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let all = entries(study.join("trials")).flat_map(entries);
    all.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path)).collect()
}

fn n_epochs(training: &Path) -> usize {
    std::fs::read_to_string(training.join("steps.jsonl")).unwrap().lines().count()
}

/// The decisions, by the words of their cell and their epoch.
fn decisions(study: &Path) -> BTreeMap<(String, u64), Value> {
    let files = std::fs::read_dir(study.join("rungs")).unwrap().map(|entry| json(&entry.unwrap().path()));
    files.map(|of| ((of["cell"].as_str().unwrap().to_owned(), of["epochs"].as_u64().unwrap()), of)).collect()
}

#[test]
fn trials_that_fall_behind_stop_and_the_others_are_as_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("films.toml"), RUN_FILE).unwrap();
    std::fs::write(path("plain.toml"), STUDY).unwrap();
    std::fs::write(path("halving.toml"), format!("{STUDY}{HALVING}")).unwrap();
    let study = |file: &str, output: &str, jobs: &str| {
        succeed(["study", "run", &path(file), "--output", &path(output), "--jobs", jobs]);
        succeed(["study", "collect", &path(output)]);
    };
    let plan = succeed(["study", "plan", &path("halving.toml"), "--output", &path("a"), "--dry-run"]).stdout;
    assert!(plan.contains("of the 8 trials of a cell, 4 continue after epoch 2, 2 continue after epoch 4"), "{plan}");
    study("halving.toml", "a", "2");
    study("halving.toml", "b", "1");
    let results = |study: &str| std::fs::read(Path::new(&path(study)).join("results.parquet")).unwrap();
    assert!(results("a") == results("b"), "the order of arrival matters");
    let a = PathBuf::from(path("a"));
    let audited = the_best_by_either_value_continue(&a);
    assert!(audited > 0, "the seed of the study is one that audits");
    let status = succeed(["study", "status", &path("a")]).stdout;
    let stopped = 16 - 4 - audited;
    assert_eq!(status.trim(), format!("{} done, {stopped} stopped early", 4 + audited));
    // Pausing and resuming change nothing, and what has stopped keeps no state.
    study("plain.toml", "plain", "2");
    let (with, without) = (trainings(&a), trainings(Path::new(&path("plain"))));
    assert!(with.keys().eq(without.keys()), "halving is no part of what is trained");
    let mut n_compared = 0;
    for (id, training) in &with {
        let n_files = std::fs::read_dir(training).unwrap().count();
        if training.join("scores.json").exists() {
            let scores = |of: &PathBuf| std::fs::read(of.join("scores.json")).unwrap();
            assert!(scores(training) == scores(&without[id]), "{id}");
            assert!(n_epochs(training) > 4 || n_epochs(training) == n_epochs(&without[id]), "{id}");
            n_compared += 1;
        } else {
            assert!([2, 4].contains(&n_epochs(training)) && training.join("rung.json").exists(), "{id}");
            assert!(n_files <= 5 && !training.join("checkpoint").exists(), "{n_files} files in {id}");
        }
    }
    assert_eq!(n_compared, 4 + audited);
    let said = succeed(["study", "report", &path("a")]).stdout;
    assert!(said.contains(&format!("{stopped} of 16 trainings stopped early.")), "{said}");
    let of_audit = if audited == 1 { "1 trial that had".to_owned() } else { format!("{audited} trials that had") };
    // Base, base by the rule of the others, and strategy, each by three metrics, unless no model is within the tolerated loss,
    // which depends on rounding and so on the processor.
    let table = std::fs::read_to_string(a.join("tables/strategies.csv")).unwrap();
    let values = |line: &str| line.split(',').skip(3).take(3).filter(|value| !value.is_empty()).count();
    let n_choices: usize = table.lines().skip(1).map(values).sum();
    assert!((6..=9).contains(&n_choices), "{table}");
    let of_choices = format!("of {n_choices} choices, one of them would have been chosen");
    assert!(said.contains(&format!("{of_audit} stopped")) && said.contains(&of_choices), "{said}");
    // A choice is among the two of every cell that reached the end, not among the audited.
    for line in table.lines().skip(1) {
        assert_eq!(line.split(',').nth(2), Some("2"), "{line}");
    }
}

/// Checks the decisions against the logs of the trainings; returns the number of audited trials.
fn the_best_by_either_value_continue(study: &Path) -> usize {
    let decisions = decisions(study);
    assert_eq!(decisions.len(), 4, "two rungs of two cells");
    let numbers = |of: &Value| -> Vec<u64> { of.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect() };
    let mut n_audited = 0;
    for ((cell, epochs), decision) in &decisions {
        let entrants = decision["entrants"].as_array().unwrap();
        let promoted = numbers(&decision["promoted"]);
        assert_eq!((entrants.len(), promoted.len()), if *epochs == 2 { (8, 4) } else { (4, 2) }, "{cell}");
        for value in ["overall", "worst"] {
            let best = entrants.iter().max_by(|a, b| a[value].as_f64().unwrap().total_cmp(&b[value].as_f64().unwrap()));
            assert!(promoted.contains(&best.unwrap()["trial"].as_u64().unwrap()), "{value} of {cell}");
        }
        if *epochs == 4 {
            let before = numbers(&decisions[&(cell.clone(), 2)]["promoted"]);
            assert_eq!(entrants.iter().map(|of| of["trial"].as_u64().unwrap()).collect::<Vec<_>>(), before);
        }
        let audited = numbers(&decision["audited"]);
        assert!(audited.iter().all(|trial| !promoted.contains(trial)));
        n_audited += audited.len();
    }
    // The values are those of the logs: the best of the first two epochs.
    let first = &decisions[&("base, films, sex, nnet-survival, scratch, erm".to_owned(), 2)]["entrants"][0];
    let manifest = std::fs::read_to_string(study.join("manifest.csv")).unwrap();
    let id = manifest.lines().nth(1).unwrap().split(',').nth(1).unwrap().trim_matches('"').to_owned();
    let log = std::fs::read_to_string(trainings(study)[&id].join("steps.jsonl")).unwrap();
    let epochs: Vec<Value> = log.lines().take(2).map(|line| serde_json::from_str(line).unwrap()).collect();
    let best = |of: &dyn Fn(&Value) -> f64| epochs.iter().map(of).fold(f64::MIN, f64::max);
    let overall = best(&|epoch| epoch["validation"]["c_td"].as_f64().unwrap());
    let worst = best(&|epoch| {
        let groups = epoch["validation"]["groups"].as_array().unwrap();
        groups.iter().map(|group| group["c_td"].as_f64().unwrap()).fold(f64::MAX, f64::min)
    });
    let near = |found: &Value, expected: f64| (found.as_f64().unwrap() - expected).abs() < 1e-12;
    assert!(near(&first["overall"], overall) && near(&first["worst"], worst), "{first} {overall} {worst}");
    n_audited
}

#[test]
fn wrong_rungs_are_refused_by_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("films.toml"), RUN_FILE).unwrap();
    for (halving, expected) in [
        ("[halving]\nrungs = [4, 2]\n", "halving.rungs: [4, 2]"),
        ("[halving]\nrungs = [2]\nkeep = 1.0\n", "halving.keep: 1 is no share"),
        ("[halving]\nrungs = [2]\naudit = -0.1\n", "halving.audit: -0.1 is no share"),
        ("[halving]\nrungs = [2]\nby = \"gap\"\n", "by"),
        ("[halving]\nrungs = [4, 8]\n", "halving.rungs: the last is 8, expected less than the 8 epochs"),
    ] {
        std::fs::write(path("study.toml"), format!("{STUDY}{halving}")).unwrap();
        fail(["study", "plan", &path("study.toml"), "--output", &path("a")], 3, expected);
    }
    // The settings of a strategy that is in no cell of a narrowed study stay in the file.
    let narrowed = STUDY.replace("[search]\n", "[search]\n\"strategy.sam.rho\" = { uniform = [0.1, 0.2] }\n");
    std::fs::write(path("study.toml"), narrowed).unwrap();
    succeed(["study", "plan", &path("study.toml"), "--output", &path("a")]);
    fail(["study", "run", &path("a")], 3, "it is a folder, expected a file such as its study.toml");
}

/// A training that serves two attributes is compared for each by its own worst group; an estimator has no epochs to be compared after.
#[test]
fn every_attribute_has_its_own_decision_and_estimators_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let age = "[[attribute]]\nname = \"age\"\nthreshold = 60.0\n[image]";
    std::fs::write(path("films.toml"), RUN_FILE.replace("[image]", age).replace("epochs = 8", "epochs = 3")).unwrap();
    let study = "trials = 4\nblocks = [\"base\", \"fair\"]\n[[data]]\nrun-file = \"films.toml\"\n\
        [estimators]\nnames = [\"cox\"]\n[search]\n\"optimiser.learning-rate\" = { log-uniform = [1e-4, 1e-1] }\n\
        \"estimator.cox.ridge\" = { log-uniform = [1e-3, 1.0] }\n[halving]\nrungs = [1]\nkeep = 0.5\naudit = 0.0\n";
    std::fs::write(path("study.toml"), study).unwrap();
    succeed(["study", "run", &path("study.toml"), "--output", &path("a"), "--jobs", "2"]);
    let decisions = decisions(Path::new(&path("a")));
    let cells: Vec<&String> = decisions.keys().map(|(cell, _)| cell).collect();
    assert_eq!(cells.len(), 2, "{cells:?}");
    assert!(
        cells.iter().any(|cell| cell.contains("sex")) && cells.iter().any(|cell| cell.contains("age")),
        "{cells:?}"
    );
    let scored =
        trainings(Path::new(&path("a"))).into_values().filter(|training| training.join("scores.json").exists());
    let estimators = scored.filter(|training| n_epochs(training) == 0).count();
    assert_eq!(estimators, 4, "all trials of the estimator are finished");
}
