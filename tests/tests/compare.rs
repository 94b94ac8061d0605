//! Strategies compared through the program: one split for all, the choice in the validation part, its results in the
//! test part.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;

use fairtte_tests::{SmallRun, fail, succeed};
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

    // A second call trains nothing and gives the same result.
    let before = std::fs::read(output.join("choice.json")).unwrap();
    let again = succeed(&arguments);
    assert!(again.stderr.contains("this run is done") && !again.stderr.contains("epoch   1"), "{}", again.stderr);
    assert_eq!(std::fs::read(output.join("choice.json")).unwrap(), before);
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
    assert!(!folder.path().join("run").exists());
}
