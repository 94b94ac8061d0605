//! Comparisons and studies of models of a class: chosen by MEDFAIR's rules, with ranges of a strategy's own and several training
//! seeds; the template of its protocol.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fairtte_data::Part;
use fairtte_data::table::Table;
use fairtte_tests::classes::{auc_by_pairs, auc_with_weights, class_run, patients_of, predicted_patients};
use fairtte_tests::{fail, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const LABEL: &str = "label = \"disease\"\nlabel-value = \"yes\"";

const STUDY: &str = "
name = \"classes\"
trials = 2
repeats = 2
rule = \"minimax\"
[[data]]
run-file = \"classes.toml\"
[strategies]
names = [\"group-dro\", \"sam\"]
[search]
\"optimiser.learning-rate\" = { log-uniform = [1e-3, 1e-2] }
\"strategy.group-dro.eta\" = { log-uniform = [1e-2, 1] }
[strategies.search.sam]
\"optimiser.learning-rate\" = { log-uniform = [0.02, 0.1] }
\"strategy.sam.rho\" = { uniform = [0.01, 0.1] }
[set.training]
epochs = 3
";

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The rows of a CSV file by the names of its columns.
fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    let table = Table::read(path).unwrap();
    let columns: Vec<(String, Vec<Option<String>>)> =
        table.names().into_iter().map(|name| (name.to_owned(), table.text(name).unwrap())).collect();
    let row = |row: usize| {
        let cells = columns.iter().map(|(name, cells)| (name.clone(), cells[row].clone().unwrap_or_default()));
        cells.collect()
    };
    (0..table.n_rows()).map(row).collect()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap()
}

/// Place in the manifest of a row of the results.
fn place_of(row: &BTreeMap<String, String>) -> usize {
    row["index"].parse().unwrap()
}

#[test]
fn strategies_on_a_class_are_compared_by_auc() {
    let place = tempfile::tempdir().unwrap();
    let config = class_run(place.path(), 400, LABEL, "");
    let sets = ["compare.strategy.group-dro={}", "compare.seeds=[1,2]", "training.epochs=2"];
    let mut call = vec!["compare".to_owned(), "--config".to_owned(), config, "--json".to_owned()];
    call.extend(sets.into_iter().flat_map(|set| ["--set".to_owned(), set.to_owned()]));
    let verdict: Value = serde_json::from_str(&succeed(call).stdout).unwrap();
    let blocks = verdict["blocks"].as_array().unwrap();
    assert_eq!((blocks.len(), &blocks[0]["metric"]), (1, &"auc".into()));
    let folder = place.path().join("run");
    for name in ["choice.html", "study.html", "tables/strategies.csv", "sex/group-dro-seed2/evaluation.json"] {
        assert!(folder.join(name).exists(), "{name}");
    }
    let page = std::fs::read_to_string(folder.join("study.html")).unwrap();
    assert!(page.contains("balanced acc.") && !page.contains("IBS"), "the metrics are those of a class");
}

#[test]
fn a_study_of_a_class_draws_by_strategy_repeats_and_chooses_by_the_rule() {
    let place = tempfile::tempdir().unwrap();
    class_run(place.path(), 400, LABEL, "");
    let file = place.path().join("study.toml");
    std::fs::write(&file, STUDY).unwrap();
    let study = place.path().join("study");
    succeed(["study", "run", &text(&file), "--output", &text(&study), "--jobs", "2"]);
    let manifest = rows(&study.join("manifest.csv"));
    // erm as the base and two strategies, two trials with two seeds each.
    assert_eq!(manifest.len(), 3 * 2 * 2);
    assert!(manifest.iter().all(|row| row["head"] == "binary"), "the head of a class, which the file does not name");
    let rates = |strategy: &str| -> BTreeSet<&str> {
        let of = manifest.iter().filter(|row| row["strategy"] == strategy);
        of.map(|row| row["optimiser.learning-rate"].as_str()).collect()
    };
    let between = |strategy: &str, low: f64, high: f64| {
        let found = rates(strategy);
        assert_eq!(found.len(), 2, "a draw per trial, with both seeds: {found:?}");
        assert!(found.iter().all(|rate| (low..high).contains(&number(rate))), "{strategy}: {found:?}");
    };
    between("erm", 1e-3, 1e-2);
    between("group-dro", 1e-3, 1e-2);
    between("sam", 0.02, 0.1);
    assert!(manifest.iter().all(|row| (row["strategy"] == "sam") != row["strategy.sam.rho"].is_empty()));
    let seeds: BTreeSet<(&str, &str)> =
        manifest.iter().map(|row| (row["trial"].as_str(), row["repeat"].as_str())).collect();
    assert_eq!(seeds, BTreeSet::from([("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]));
    let ids: BTreeSet<&str> = manifest.iter().map(|row| row["id"].as_str()).collect();
    assert_eq!(ids.len(), manifest.len(), "a repeat is another training");

    succeed(["study", "collect", &text(&study)]);
    let results = rows(&study.join("results.parquet"));
    let metrics: BTreeSet<&str> = results.iter().map(|row| row["metric"].as_str()).collect();
    for metric in ["auc", "ece", "bce", "fpr", "fnr", "tpr-at-tnr", "balanced-accuracy"] {
        assert!(metrics.contains(metric), "{metric}: {metrics:?}");
    }
    succeed(["study", "report", &text(&study)]);
    let analysis = json(&study.join("study.json"))["analysis"].clone();
    assert!(analysis["gaps-against-control"].is_null(), "chosen by one rule, the base is its own control");
    let ranked: Vec<&str> =
        analysis["metrics"]["metrics"].as_array().unwrap().iter().map(|of| of["metric"].as_str().unwrap()).collect();
    assert!(ranked.contains(&"AUC") && ranked.contains(&"AUC of the worst group"), "{ranked:?}");
    // The chosen erm has the best worst group: means over the two seeds of each draw, worked from the table of all scores.
    let value = |place: usize, epoch: &str, part: &str, group: &str| -> f64 {
        let is = |row: &&BTreeMap<String, String>| {
            place_of(row) == place
                && row["epoch"] == epoch
                && row["part"] == part
                && row["metric"] == "auc"
                && row["group"] == group
                && row["of"] == if group.is_empty() { "all" } else { "group" }
        };
        number(&results.iter().find(is).unwrap()["value"])
    };
    let mut best: Option<(f64, f64, f64)> = None;
    for trial in ["1", "2"] {
        let places: Vec<usize> = (0..manifest.len())
            .filter(|place| manifest[*place]["strategy"] == "erm" && manifest[*place]["trial"] == trial)
            .collect();
        let rules: BTreeSet<String> = results
            .iter()
            .filter(|row| place_of(row) == places[0])
            .flat_map(|row| row["kept-by"].split(' ').map(str::to_owned).collect::<Vec<_>>())
            .collect();
        for rule in rules {
            let epoch = |place: usize| {
                let is = |row: &&BTreeMap<String, String>| {
                    place_of(row) == place && row["kept-by"].split(' ').any(|known| known == rule)
                };
                results.iter().find(is).map(|row| row["epoch"].clone())
            };
            let Some(epochs) = places.iter().map(|place| epoch(*place)).collect::<Option<Vec<_>>>() else { continue };
            let mean = |part: &str, group: &str| {
                places.iter().zip(&epochs).map(|(place, epoch)| value(*place, epoch, part, group)).sum::<f64>() / 2.0
            };
            let worst = mean("validation", "F").min(mean("validation", "M"));
            let found = (worst, mean("validation", ""), mean("test", ""));
            if best.is_none_or(|known| (found.0, found.1) > (known.0, known.1)) {
                best = Some(found);
            }
        }
    }
    let table = rows(&study.join("tables/strategies.csv"));
    let erm = table.iter().find(|row| row["strategy"] == "erm").unwrap();
    assert!((number(&erm["auc"]) - best.unwrap().2).abs() < 1e-9, "{erm:?} {best:?}");
    assert!(!table.iter().any(|row| row["strategy"].contains("same rule")));

    // A finished trial becomes a run whose evaluation has the scores of the trial, and which predicts other data.
    let restored = place.path().join("restored");
    let dro = manifest.iter().position(|row| row["strategy"] == "group-dro").unwrap();
    succeed(["study", "restore", &text(&study), &dro.to_string(), "--output", &text(&restored)]);
    let evaluation = json(&restored.join("evaluation.json"));
    let epoch = json(&restored.join("selection.json"))["epoch"].to_string();
    let auc = evaluation["metrics"][0]["overall"]["value"].as_f64().unwrap();
    assert!((auc - value(dro, &epoch, "test", "")).abs() < 1e-12);
    let other = place.path().join("other");
    let config = text(&place.path().join("classes.toml"));
    succeed(["predict", &text(&restored), "--data", &config, "--output", &text(&other)]);
}

/// The AUC that chooses is of those with a class; the one with weights is shown beside it, worked again from a restored trial.
#[test]
fn a_study_of_a_class_from_times_has_both_aucs_and_names_its_models() {
    let place = tempfile::tempdir().unwrap();
    class_run(place.path(), 400, "", "binary = { horizon = 4 }\n");
    let file = place.path().join("study.toml");
    let of_one_seed = STUDY.replace("trials = 2\nrepeats = 2\n", "trials = 1\n");
    assert_ne!(of_one_seed, STUDY);
    std::fs::write(&file, of_one_seed).unwrap();
    let study = place.path().join("study");
    succeed(["study", "run", &text(&file), "--output", &text(&study), "--jobs", "2"]);
    succeed(["study", "collect", &text(&study)]);
    succeed(["study", "report", &text(&study)]);
    let results = rows(&study.join("results.parquet"));
    let beside = rows(&study.join("tables/auc-with-weights.csv"));
    let chosen = rows(&study.join("tables/chosen.csv"));
    assert_eq!((beside.len(), chosen.len()), (3, 9), "three strategies, and three metrics");
    let mut n_differing = 0;
    for row in chosen.iter().filter(|row| row["metric"] == "auc") {
        let strategy = &row["strategy"];
        let restored = place.path().join(strategy);
        succeed(["study", "restore", &text(&study), &row["index"], "--output", &text(&restored)]);
        let record = json(&restored.join("selection.json"));
        let kept = &record["rules"][&row["rule"]];
        assert_eq!(kept["epoch"].to_string(), row["epoch"], "{strategy}: {record}");
        // The epoch can be named by its rule.
        let (config, other) =
            (text(&place.path().join("classes.toml")), text(&place.path().join(format!("{strategy}-other"))));
        succeed(["predict", &text(&restored), "--epoch", &row["rule"], "--data", &config, "--output", &other]);
        let test = predicted_patients(&restored, kept["file"].as_str().unwrap(), Part::Test);
        let train: Vec<(f64, bool)> =
            patients_of(&restored, Part::Train).iter().map(|of| (of.time, of.event)).collect();
        let of = |sex: &str| {
            let of_sex = || test.iter().filter(|row| sex.is_empty() || row.patient.sex == sex);
            let timed: Vec<(f64, bool, f64)> =
                of_sex().map(|row| (row.patient.time, row.patient.event, row.probability)).collect();
            let known = timed.iter().filter(|(time, event, _)| *event || *time > 4.0);
            let known: Vec<(f64, bool)> = known.map(|(time, _, p)| (*p, *time <= 4.0)).collect();
            (auc_by_pairs(&known), auc_with_weights(&train, &timed, 4.0), of_sex().count())
        };
        let ((naive, weighted, n), (_, of_f, n_f), (_, of_m, _)) = (of(""), of("F"), of("M"));
        let same = |found: &str, expected: f64| assert!((number(found) - expected).abs() < 1e-9, "{strategy}: {found}");
        let shown = beside.iter().find(|other| other["strategy"] == *strategy).unwrap();
        same(&shown["AUC"], naive);
        same(&shown["AUC-with-weights"], weighted);
        same(&shown["difference"], naive - weighted);
        same(&shown["worst-group-with-weights"], of_f.min(of_m));
        same(&shown["gap-with-weights"], (of_f - of_m).abs());
        n_differing += usize::from((naive - weighted).abs() > 1e-4);
        let recorded = |of: &str, group: &str| {
            let is = |other: &&BTreeMap<String, String>| {
                other["index"] == row["index"]
                    && other["epoch"] == row["epoch"]
                    && (other["part"].as_str(), other["metric"].as_str()) == ("test", "auc-weighted")
                    && (other["of"].as_str(), other["group"].as_str()) == (of, group)
            };
            results.iter().find(is).unwrap()
        };
        same(&recorded("all", "")["value"], weighted);
        assert_eq!(recorded("all", "")["n"], n.to_string(), "all samples of the part");
        same(&recorded("group", "F")["value"], of_f);
        assert_eq!(recorded("group", "F")["n"], n_f.to_string());
    }
    assert!(n_differing > 0, "both AUCs are the same");
    let page = std::fs::read_to_string(study.join("study.html")).unwrap();
    assert!(page.contains("models are not chosen or ranked by it") && page.contains("has the AUC of all"));
}

#[test]
fn what_a_study_of_a_class_cannot_have_is_refused() {
    let place = tempfile::tempdir().unwrap();
    class_run(place.path(), 100, LABEL, "");
    let file = place.path().join("study.toml");
    std::fs::write(&file, STUDY).unwrap();
    let of_curves = place.path().join("curves.toml");
    let text_of_run = std::fs::read_to_string(place.path().join("classes.toml")).unwrap();
    std::fs::write(&of_curves, text_of_run.replace(LABEL, "").replace("[task]\nkind = \"binary\"\n", "")).unwrap();
    let output = text(&place.path().join("study"));
    let two = "data=[{run-file=\"classes.toml\",name=\"a\"},{run-file=\"curves.toml\",name=\"b\"}]";
    for (set, sentence) in [
        ("bias={}", "bias: it is of survival curves"),
        ("estimators={names=[\"cox\"]}", "estimators: it is of survival curves"),
        ("heads={names=[\"pmf\"]}", "pmf predicts survival curves, expected [head.binary]"),
        ("repeats=0", "repeats: 0 repeats"),
        ("seeds=[1,2]", "seeds: they name one training seed per trial"),
        ("rule=\"best\"", "rule"),
        ("strategies.search.laftr={\"strategy.laftr.gamma\"={fixed=1}}", "strategies.search.laftr"),
        (
            "strategies.search.sam={\"strategy.sam.rho\"={uniform=[2,1]}}",
            "strategies.search.sam.\"strategy.sam.rho\" is [2, 1]",
        ),
        (two, "data: a and b are of two tasks"),
    ] {
        fail(["study", "plan", &text(&file), "--output", &output, "--set", set], CONFIG, sentence);
    }
}

/// Image tables with the columns that the run files of the template name; the pictures are not opened by a plan.
#[test]
fn the_template_of_medfair_plans_its_eighteen_settings() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    succeed(["study", "template", "medfair", "--output", &text(folder)]);
    for name in ["resnet18-f37072fd.pth", "r3d_18-b3b3357e.pth"] {
        std::fs::write(folder.join(name), name).unwrap();
    }
    let files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.strip_suffix(".toml").is_some_and(|stem| stem != "study"))
        .collect();
    assert_eq!(files.len(), 10, "nine data sets, and ADNI at 3 tesla for prediction");
    for name in files {
        let stem = name.trim_end_matches(".toml");
        let mut rows = "image,subject_id,label,three_partition_label,sex,age,race,skin_type\n".to_owned();
        for row in 0..60 {
            let (sex, race) = (["F", "M"][row % 2], ["White", "Black"][row / 2 % 2]);
            let partition = ["malignant", "benign", "non-neoplastic"][row % 3];
            let line =
                format!("{row}.png,p{row},{},{partition},{sex},{},{race},{}\n", row / 3 % 2, 10 + row, row % 6 + 1);
            rows.push_str(&line);
        }
        std::fs::write(folder.join(format!("{stem}.csv")), rows).unwrap();
    }
    let file = folder.join("study.toml");
    let study = folder.join("study");
    let plan = ["study", "plan", &text(&file), "--output", &text(&study), "--set", "trials=2"];
    let said = succeed(plan).stdout;
    let manifest = rows(&study.join("manifest.csv"));
    let settings: BTreeSet<(&str, &str)> =
        manifest.iter().map(|row| (row["data"].as_str(), row["attribute"].as_str())).collect();
    let strategies: BTreeSet<&str> = manifest.iter().map(|row| row["strategy"].as_str()).collect();
    assert_eq!((settings.len(), strategies.len()), (18, 11), "{said}");
    assert_eq!(manifest.len(), 18 * 11 * 2 * 3, "two trials with three seeds");
    let searched: BTreeSet<&str> = manifest[0].keys().map(String::as_str).filter(|key| key.contains('.')).collect();
    assert_eq!(searched.len(), 16, "{searched:?}");
    // The ranges of the paper, B.2.2.
    for row in &manifest {
        let range = match row["strategy"].as_str() {
            "erm" | "subgroup-rebalancing" | "domain-independent" => 1e-5..1e-3,
            "sam" => 1e-4..1e-1,
            _ => 1e-4..1e-3,
        };
        assert!(range.contains(&number(&row["optimiser.learning-rate"])), "{row:?}");
        let decay = &row["optimiser.weight-decay"];
        assert_eq!(row["strategy"] == "group-dro", !decay.is_empty());
    }
    // A run file of the template is one that trains.
    for name in ["fitzpatrick17k.toml", "oct.toml", "adni-3t.toml"] {
        succeed(["train", "--dry-run", "--config", &text(&folder.join(name))]);
    }
}
