//! Strategies compared through the program: one split for all, the choice in the validation part, its results in the
//! test part.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;

use fairtte_data::predictions::{Rising, match_predictions};
use fairtte_data::{Part, Split, read_cohort, read_predictions};
use fairtte_metrics::rank::{TiedPredictions, concordance_td};
use fairtte_metrics::{Reading, SurvivalCurves};
use fairtte_tests::{SmallRun, fail, succeed};
use ndarray::{Array2, Axis};
use serde_json::Value;

const COMPARE: &str = "
[compare]
seeds = [1, 2]
attributes = [\"sex\"]
[compare.strategy.group-dro]
eta = 0.1
[compare.strategy.dro-chi-square]
[compare.strategy.recalibration]
[compare.strategy.laftr]
stratum = { kind = \"event-x-bin\", bins = 9 }
";

/// A comparison in `folder`, and its arguments.
fn comparison(folder: &Path) -> Vec<String> {
    let run = SmallRun::new(folder).set("training.monitor=c-td");
    let file = folder.join("run.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text + COMPARE).unwrap();
    run.arguments("compare")
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn strategies_are_trained_on_one_split_and_chosen_among() {
    let folder = tempfile::tempdir().unwrap();
    let (arguments, output) = (comparison(folder.path()), folder.path().join("run"));
    let table = succeed(&arguments).stdout;
    assert!(table.contains("sex, C^td (higher is better)"), "{table}");
    let splits: Vec<String> = ["sex/erm-seed1", "sex/erm-seed2", "sex/group-dro-seed2", "sex/dro-chi-square-seed1"]
        .iter()
        .map(|run| std::fs::read_to_string(output.join(run).join("split.csv")).unwrap())
        .collect();
    assert!(splits.iter().all(|split| *split == splits[0]), "one split for all");
    let refused = "strategy laftr needs 10 training samples in every cell of group and stratum";
    let verdict = json(&output.join("choice.json"));
    let not_trained = &verdict["not-trained"][0];
    assert!(not_trained["because"].as_str().unwrap().starts_with(refused), "{not_trained}");
    assert_eq!(not_trained["runs"], serde_json::json!(["sex/laftr-seed1", "sex/laftr-seed2"]));

    // A second call tries only the refused again and gives the same result.
    let before = std::fs::read(output.join("choice.json")).unwrap();
    let again = succeed(&arguments);
    assert!(again.stderr.contains("2 of 10 trainings to run"), "{}", again.stderr);
    assert_eq!(std::fs::read(output.join("choice.json")).unwrap(), before);
    // It is a study, with its page and its state.
    assert!(std::fs::read_to_string(output.join("study.html")).unwrap().contains("group-dro"));
    let status = succeed(["study", "status", &output.display().to_string()]).stdout;
    assert!(status.contains("8 done, 2 not trained"), "{status}");
    // A training with other settings is not treated as one of these.
    let other = [arguments.clone(), vec!["--set".to_owned(), "compare.strategy.group-dro.eta=0.2".to_owned()]].concat();
    fail(other, 3, "strategy.group-dro.eta");
    the_other_rules_choose_too(&output);
}

fn the_other_rules_choose_too(runs: &Path) {
    let runs = runs.display().to_string();
    let choose = |rule: &str| -> Value {
        let outcome = succeed(["select", &runs, "--rule", rule, "--set", "replicates=0", "--json"]);
        serde_json::from_str(&outcome.stdout).unwrap()
    };
    let value = |verdict: &Value| verdict["blocks"][0]["rows"][0]["chosen"]["validation"]["value"].as_f64().unwrap();
    let [overall, minimax, dto] = ["overall", "minimax", "dto"].map(choose);
    let best = value(&overall);
    assert!(best >= value(&minimax) && best >= value(&dto), "{best}: none beats the best");
    // The rule of the others is also that of the base, so there is no control row.
    let roles: Vec<&Value> = overall["blocks"][0]["rows"].as_array().unwrap().iter().map(|row| &row["role"]).collect();
    assert_eq!(roles, ["base", "strategy", "strategy", "strategy"]);
    let sentence = "--base: no finished run has strategy \"swad\", only dro-chi-square, erm, group-dro, recalibration";
    fail(["select", &runs, "--base", "swad"], 3, sentence);
    fail(["select", &runs, "--attribute", "height"], 3, "\"height\" is not an [[attribute]] of this run");
    fail(
        ["select", &runs, "--tolerated-loss", "5"],
        3,
        "--tolerated-loss: 5 is no share, expected a number from 0 to 1",
    );
    for set in ["permutations=99", "metrics=[\"c-td\"]"] {
        let sentence = format!("{}: it has no effect on a choice", set.split('=').next().unwrap());
        fail(["select", &runs, "--set", set], 3, &sentence);
    }
}

#[test]
fn runs_on_other_samples_or_parts_are_no_comparison() {
    let folder = tempfile::tempdir().unwrap();
    for (name, seed) in [("a", "seed=1"), ("b", "seed=2")] {
        SmallRun::new(&folder.path().join(name)).set(seed).set("training.epochs=1").train();
    }
    let runs = folder.path().display().to_string();
    fail(["select", &runs], 4, "; runs of one comparison share them");
    let other_groups = tempfile::tempdir().unwrap();
    for (name, threshold) in [("a", 60), ("b", 50)] {
        let run = SmallRun::new(&other_groups.path().join(name)).set("training.epochs=1");
        run.set(&format!("attribute=[{{ name = \"age\", threshold = {threshold} }}]")).train();
    }
    let runs = other_groups.path().display().to_string();
    fail(["select", &runs], 4, "the groups differ from those of");
    let empty = tempfile::tempdir().unwrap();
    fail(["select", &empty.path().display().to_string()], 4, "there is no finished run in it");
}

#[test]
fn a_comparison_names_what_is_wrong_before_anything_is_trained() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = comparison(folder.path());
    let with = |set: &str| [arguments.clone(), vec!["--set".to_owned(), set.to_owned()]].concat();
    fail(with("compare.strategy.group-dro.eta=0"), 3, "strategy.group-dro.eta is 0, expected a finite number > 0");
    fail(with("compare.strategy.group-drro={}"), 3, "did you mean \"group-dro\"?");
    fail(with("compare.attributes=[\"age\"]"), 3, "compare.attributes");
    fail(with("compare.seeds=[]"), 3, "compare.seeds");
    fail(with("compare.tolerated-loss=5"), 3, "compare.tolerated-loss: 5 is no share, expected a number from 0 to 1");
    fail(with("groups.train=[\"sex\"]"), 3, "groups.train");
    fail(
        with("compare.tolerated-loss-of=\"gap\""),
        3,
        "tolerated-loss-of: unknown variant \"gap\", expected \"metric\" or \"skill\"",
    );
    // A setting of one strategy does not remove the others.
    let planned = |arguments: Vec<String>| {
        let dry = [arguments, vec!["--dry-run".to_owned()]].concat();
        succeed(dry).stderr.lines().filter(|line| line.contains("-seed")).count()
    };
    assert_eq!((planned(arguments.clone()), planned(with("compare.strategy.group-dro.eta=0.2"))), (10, 10));
    assert_eq!(planned(with("compare.strategy.sam={}")), 12);
    let train = [vec!["train".to_owned()], arguments[1..].to_vec()].concat();
    fail(train, 3, "run this file with `fairtte compare`");
    let file = folder.path().join("run.toml");
    let of_a_run = std::fs::read_to_string(&file).unwrap().replace(COMPARE, "");
    std::fs::write(&file, of_a_run).unwrap();
    let refused = fail(&arguments, 3, "compare: not given, expected a table [compare]");
    assert!(refused.stderr.contains("`fairtte train` runs this file"), "{}", refused.stderr);
    fail(with("compare.seeds=[1]"), 3, "compare: nothing to compare, expected a table [compare.strategy.NAME]");
    // An estimator is compared with the base, which needs no table.
    assert_eq!(planned(with("compare.estimator.cox={}")), 2);
    assert!(!folder.path().join("run").exists());
}

/// C^td of the test samples of all folds, every curve read at the event times on the grid of its own fold, up to the last time that all
/// grids have; and the number of grids.
fn each_on_its_own_grid(folds: &[String]) -> (f64, usize) {
    let (cohort, _) = read_cohort(&Path::new(&folds[0]).join("cohort.parquet")).unwrap();
    let outcomes = cohort.outcomes(&cohort.all_rows()).unwrap();
    let mut times = outcomes.time().to_vec();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let mut survival = Array2::zeros((cohort.n(), times.len()));
    let read = |fold: &String| read_predictions(&Path::new(fold).join("predictions.parquet"), Rising::Refuse).unwrap();
    let tables: Vec<_> = folds.iter().map(read).collect();
    let end = tables.iter().map(|table| table.grid[table.grid.len() - 1]).fold(f64::INFINITY, f64::min);
    for (fold, table) in folds.iter().zip(&tables) {
        let split = Split::read_csv(&Path::new(fold).join("split.csv"), &cohort).unwrap();
        let order = match_predictions(&cohort, split.rows(Part::Test), &table.samples).unwrap();
        let curves = SurvivalCurves::new(table.grid.clone(), table.survival.select(Axis(0), &order)).unwrap();
        for (place, time) in times.iter().enumerate() {
            for (row, value) in split.rows(Part::Test).iter().zip(curves.all_at(time.min(end), Reading::default())) {
                survival[[*row, place]] = value;
            }
        }
    }
    let mut grids: Vec<_> = tables.into_iter().map(|table| table.grid).collect();
    grids.dedup();
    let curves = SurvivalCurves::new(times, survival).unwrap();
    (concordance_td(&outcomes, &curves, Reading::Step, TiedPredictions::Strict).unwrap().value, grids.len())
}

#[test]
fn folds_are_trained_and_evaluated_together() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path())
        .set("training.epochs=2")
        .set("compare.folds=3")
        .set("compare.seeds=[1]")
        .set("evaluation.reference.sex='F'");
    let file = folder.path().join("run.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let compare = "\n[compare]\nattributes = [\"sex\"]\n[compare.strategy.group-dro]\n";
    std::fs::write(&file, text + compare).unwrap();
    let output = folder.path().join("run");
    succeed(run.arguments("compare"));
    let verdict = json(&output.join("choice.json"));
    let cohort = std::fs::read_to_string(output.join("sex/erm-seed1-fold1/split.csv")).unwrap().lines().count() - 1;
    assert_eq!((verdict["n-folds"].as_u64(), verdict["n-test"].as_u64()), (Some(3), Some(cohort as u64)));
    let chosen = &verdict["blocks"][0]["rows"][0]["chosen"];
    assert_eq!(chosen["run"], "sex/erm-seed1, 3 folds");
    assert_eq!(chosen["weights"].as_str().unwrap().split("; ").count(), 3, "an epoch per fold: {chosen}");

    // The value of a model that every fold kept by the validation loss is that of the pooled predictions, evaluated alone.
    let folds: Vec<String> =
        (1..=3).map(|fold| output.join(format!("sex/erm-seed1-fold{fold}")).display().to_string()).collect();
    let pooled = folder.path().join("pooled");
    let mut predict = vec!["predict".to_owned()];
    predict.extend(folds.iter().cloned());
    predict.extend(["--out-of-fold".to_owned(), "--output".to_owned(), pooled.display().to_string()]);
    succeed(&predict);
    let evaluated = succeed(["evaluate", &pooled.display().to_string(), "--set", "replicates=0", "--json"]).stdout;
    let evaluated: Value = serde_json::from_str(&evaluated).unwrap();
    let selected = succeed(["select", &output.display().to_string(), "--set", "replicates=0", "--json"]).stdout;
    let selected: Value = serde_json::from_str(&selected).unwrap();
    assert_eq!(selected["n-folds"], 3, "select finds the folds too");
    let scores = json(&output.join("sex/erm-seed1-fold1/selection.json"));
    let of_alone = evaluated["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .find(|metric| metric["name"] == "c_td_antolini_strict")
        .unwrap();
    let by_select = selected["blocks"].as_array().unwrap().iter().flat_map(|block| block["rows"].as_array().unwrap());
    let values: Vec<f64> = by_select.filter_map(|row| row["chosen"]["test"]["value"].as_f64()).collect();
    let alone = of_alone["overall"]["value"].as_f64().unwrap();
    assert!(values.iter().any(|value| (value - alone).abs() < 1e-12), "{alone} not in {values:?}, {scores}");
    let (expected, n_grids) = each_on_its_own_grid(&folds);
    assert!(n_grids > 1, "the folds share their times, so that nothing is tested");
    assert!((alone - expected).abs() < 1e-12, "{alone}, {expected}");

    // Means over the folds, with standard errors.
    let table = std::fs::read_to_string(output.join("tables/folds.csv")).unwrap();
    assert!(table.starts_with("setting,strategy,c-td,c-td-se,"), "{table}");

    // A fold that is missing leaves its training out.
    std::fs::remove_file(output.join("sex/group-dro-seed1-fold2/done")).unwrap();
    let partial = succeed(["select", &output.display().to_string(), "--set", "replicates=0"]);
    assert!(partial.stderr.contains("has folds 1, 3 of 3"), "{}", partial.stderr);
    fail(run.set("compare.folds=0").arguments("compare"), 3, "compare.folds: 0 folds");
}
