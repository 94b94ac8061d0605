//! `evaluate --baseline`: a Cox model of covariates beside the model that is evaluated.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;

use fairtte_classical::{CovariateValues, Covariates, CoxRegression, CoxTies};
use fairtte_data::table::Table;
use fairtte_metrics::Outcomes;
use fairtte_tests::{fail, patients, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const DATA: i32 = 4;
/// Times are multiples of this, so that curves on all of them are exact.
const STEP: f64 = 0.25;
const N: usize = 120;

/// Age in years, sex, time and event; old men have the event early.
struct Samples {
    age: Vec<f64>,
    sex: Vec<&'static str>,
    time: Vec<f64>,
    event: Vec<bool>,
}

/// The samples from number `first` on.
fn samples(first: usize) -> Samples {
    let rows = || first..first + N;
    let noise = |k: usize| ((k * 7919) % 101) as f64 / 101.0;
    let age: Vec<f64> = rows().map(|k| 40.0 + ((k * 31) % 45) as f64).collect();
    let sex: Vec<&str> = rows().map(|k| if (k * 17) % 5 < 2 { "F" } else { "M" }).collect();
    let rate = |k: usize| (0.05 * (age[k - first] - 60.0)).exp() * if sex[k - first] == "M" { 0.4 } else { 0.2 };
    let time = rows().map(|k| ((-(1.0 - noise(k)).ln() / rate(k) / STEP).ceil() * STEP).clamp(STEP, 8.0)).collect();
    let event = rows().map(|k| (k * 13) % 6 != 0).collect();
    Samples { age, sex, time, event }
}

impl Samples {
    fn covariates(&self) -> Covariates {
        let sex = self.sex.iter().map(|sex| (*sex).to_owned()).collect();
        let columns = vec![
            ("age".to_owned(), CovariateValues::Numbers(self.age.clone())),
            ("sex".to_owned(), CovariateValues::Levels(sex)),
        ];
        Covariates::new(columns).unwrap()
    }

    /// The table, with the cells of `more` after those of the samples.
    fn write(&self, path: &Path, header: &str, more: impl Fn(usize) -> String) -> String {
        let line = |k: usize| {
            let event = u8::from(self.event[k]);
            format!("s{k},{},{},{},{event}{}", self.age[k], self.sex[k], self.time[k], more(k))
        };
        let lines: Vec<String> = (0..N).map(line).collect();
        std::fs::write(path, format!("sample,age,sex,time,event{header}\n{}\n", lines.join("\n"))).unwrap();
        path.display().to_string()
    }
}

fn grid() -> Vec<f64> {
    (0..=32).map(|k| f64::from(k) * STEP).collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Tables of training and of predictions by the Cox model of age and sex, and the model.
fn tables(folder: &Path) -> (String, String, CoxRegression) {
    let (train, test) = (samples(0), samples(N));
    let outcomes = Outcomes::new(train.time.clone(), train.event.clone()).unwrap();
    let model = CoxRegression::fit(&outcomes, &train.covariates(), CoxTies::Efron).unwrap();
    let curves = model.survival_curves(&test.covariates(), &grid()).unwrap();
    let cells = |k: usize| curves.survival().row(k).iter().flat_map(|s| [",".to_owned(), s.to_string()]).collect();
    let header: String = grid().iter().flat_map(|time| [",".to_owned(), time.to_string()]).collect();
    let predictions = test.write(&folder.join("curves.csv"), &header, cells);
    (train.write(&folder.join("train.csv"), "", |_| String::new()), predictions, model)
}

#[test]
fn a_model_that_is_the_baseline_does_not_differ_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let (train, predictions, model) = tables(folder.path());
    let output = folder.path().join("scores");
    let shown = output.display().to_string();
    let files = ["evaluate", "--predictions", &predictions, "--train", &train, "--output", &shown];
    let asked = ["--attributes", "sex", "--baseline", "age,sex", "--set", "replicates=40", "--set", "over-time=0"];
    let step = ["--set", "reading=step"];
    let outcome = succeed(files.iter().chain(&asked).chain(&step));
    assert!(
        outcome.stdout.contains("what the model adds to age and sex\n  fitted on the training"),
        "{}",
        outcome.stdout
    );
    let found = json(&output.join("evaluation.json"));
    let baseline = &found["baseline"];
    assert_eq!(baseline["fitted-on"], "train");
    let terms = baseline["cox"]["coefficients"].as_array().unwrap();
    for (found, expected) in terms.iter().zip(&model.coefficients) {
        assert_eq!(found["name"], expected.name.as_str());
        assert!((found["value"].as_f64().unwrap() - expected.value).abs() < 1e-9);
    }
    let differences = baseline["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 7);
    for pair in differences {
        assert_eq!((&pair["first"], &pair["second"]), (&"model".into(), &"Cox (age, sex)".into()));
        let groups = pair["attributes"][0]["groups"].as_array().unwrap().iter().map(|group| &group[1]);
        for of in std::iter::once(&pair["overall"]).chain(groups) {
            assert!(of["value"].as_f64().unwrap().abs() < 1e-9, "{pair}");
        }
    }
    let models = baseline["models"].as_array().unwrap();
    let metrics = |model: usize| models[model]["metrics"].as_array().unwrap().len();
    assert_eq!((&models[0]["name"], &models[1]["name"]), (&"Cox (age, sex)".into(), &"Kaplan-Meier".into()));
    assert_eq!((metrics(0), metrics(1)), (7, 4), "a curve that is the same for all samples orders none");
    let ibs = |model: usize, place: usize| models[model]["metrics"][place]["overall"]["value"].as_f64().unwrap();
    assert!(ibs(1, 0) > ibs(0, 3) + 0.01, "age and sex predict");
    let html = std::fs::read_to_string(output.join("report.html")).unwrap();
    assert!(html.contains("<h2>What the model adds to age and sex</h2>"));
    let kinds = Table::read(&output.join("evaluation.csv")).unwrap().text("kind").unwrap();
    let n = |kind: &str| kinds.iter().filter(|found| found.as_deref() == Some(kind)).count();
    assert_eq!((n("baseline"), n("baseline-difference"), n("baseline-difference-of-gaps")), ((7 + 4) * 3, 7 * 3, 7));
}

/// On its own grid a model may be coarse; the covariates are not made as coarse for it.
#[test]
fn the_covariates_are_predicted_at_the_times_of_the_metrics_and_ties_count_half() {
    let folder = tempfile::tempdir().unwrap();
    let (train, predictions, _) = tables(folder.path());
    let output = folder.path().join("scores");
    let shown = output.display().to_string();
    let text = std::fs::read_to_string(&predictions).unwrap();
    // Of the 33 times the first, the one in the middle and the last.
    let coarse = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let kept = [0, 16, 32].map(|time| cells[5 + time]);
        [&cells[..5], &kept[..]].concat().join(",")
    };
    let lines: Vec<String> = text.lines().map(coarse).collect();
    let path = folder.path().join("coarse.csv");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let path = path.display().to_string();
    let ibs_of_cox = |predictions: &str, covariates: &str| {
        let call =
            ["evaluate", "--predictions", predictions, "--train", &train, "--baseline", covariates, "--output", &shown];
        let asked = ["--set", "reading=step", "--set", "replicates=0", "--metrics", "c-td,c-td-half,ibs,rcll"];
        let outcome = succeed(call.iter().chain(&asked));
        let baseline = &json(&output.join("evaluation.json"))["baseline"];
        let metrics = baseline["models"][0]["metrics"].as_array().unwrap();
        let names: Vec<&str> = metrics.iter().map(|metric| metric["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["c_td_antolini_strict", "c_td_half", "ibs"], "a density depends on the grid");
        assert!(outcome.stdout.contains("Not compared: rcll (a density"), "{}", outcome.stdout);
        (metrics[2]["overall"]["value"].as_f64().unwrap(), outcome.stdout)
    };
    let (fine, _) = ibs_of_cox(&predictions, "age,sex");
    let (of_coarse, _) = ibs_of_cox(&path, "age,sex");
    assert!((of_coarse - fine).abs() < 0.01 * fine, "{of_coarse} beside a coarse model, {fine} beside a fine one");
    let (_, of_sex) = ibs_of_cox(&predictions, "sex");
    let added = of_sex.split("what the model adds").nth(1).unwrap();
    assert!(added.contains("C^td (ties 1/2): model") && !added.contains("C^td: model"), "{added}");
}

#[test]
fn without_covariates_in_the_training_table_every_sample_is_predicted_by_the_other_folds() {
    let folder = tempfile::tempdir().unwrap();
    let (_, predictions, _) = tables(folder.path());
    let output = folder.path().join("scores");
    let shown = output.display().to_string();
    let few = folder.path().join("outcomes.csv");
    std::fs::write(&few, "time,event\n1,1\n2,1\n9,0\n").unwrap();
    let few = few.display().to_string();
    let call = ["evaluate", "--predictions", &predictions, "--baseline", "age", "--output", &shown, "--train", &few];
    let fast = ["--set", "replicates=0", "--set", "over-time=0"];
    let outcome = succeed(call.iter().chain(&fast));
    assert!(outcome.stderr.contains("--train does not have all of the columns age"), "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("every sample predicted by a fit of the other 9 of 10 folds"),
        "{}",
        outcome.stdout
    );
    let baseline = &json(&output.join("evaluation.json"))["baseline"];
    assert_eq!((&baseline["fitted-on"], &baseline["cox"]["n"]), (&"evaluated".into(), &N.into()));
    let size = baseline["differences"][0]["overall"]["value"].as_f64().unwrap().abs();
    assert!(size > 1e-6, "sex says more than age alone");
}

#[test]
fn covariates_that_do_not_exist_are_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (_, predictions, _) = tables(folder.path());
    let output = folder.path().join("scores");
    let shown = output.display().to_string();
    let files = ["evaluate", "--predictions", &predictions, "--output", &shown];
    let cases = [
        ("aeg", DATA, "\"aeg\""),
        ("age,age", CONFIG, "\"age\" is named twice"),
        ("age,,sex", CONFIG, "covariate 2 is empty"),
    ];
    for (list, code, sentence) in cases {
        fail(files.iter().chain(&["--baseline", list]), code, sentence);
        assert!(!output.exists(), "{list}");
    }
}

/// Beside several models the Cox model is one more: the two files are that model itself and curves that are the same for all.
#[test]
fn beside_several_models_the_cox_model_of_the_covariates_is_one_more() {
    let folder = tempfile::tempdir().unwrap();
    let (train, predictions, _) = tables(folder.path());
    let flat = folder.path().join("flat.csv");
    let text = std::fs::read_to_string(&predictions).unwrap();
    let header = text.lines().next().unwrap();
    let n_before = header.split(',').count() - grid().len();
    let same = |line: &str| {
        let cells: Vec<String> = line.split(',').take(n_before).map(str::to_owned).collect();
        let curve = (0..grid().len()).map(|place| (1.0 - 0.02 * place as f64).to_string());
        cells.into_iter().chain(curve).collect::<Vec<_>>().join(",")
    };
    let rows: Vec<String> = text.lines().skip(1).map(same).collect();
    std::fs::write(&flat, format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    let (flat, output) = (flat.display().to_string(), folder.path().join("scores"));
    let shown = output.display().to_string();
    let files = ["evaluate", "--predictions", &predictions, "--predictions", &flat, "--names", "own,flat"];
    let asked = ["--train", &train, "--attributes", "sex", "--baseline", "age,sex", "--output", &shown];
    let fast = ["--set", "replicates=40", "--set", "over-time=0", "--set", "reading=step", "--metrics", "c-td,ibs"];
    let outcome = succeed(files.iter().chain(&asked).chain(&fast));
    assert!(outcome.stdout.contains("Cox (age, sex) minus own"), "{}", outcome.stdout);
    let found = json(&output.join("evaluation.json"));
    let models = found["models"].as_array().unwrap();
    let names: Vec<&str> = models.iter().map(|model| model["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["own", "flat", "Cox (age, sex)"]);
    assert_eq!((&models[2]["fitted-on"], &models[2]["predictions"]), (&"train".into(), &Value::Null));
    assert_eq!((&models[0]["fitted-on"], models[0]["predictions"].is_string()), (&Value::Null, true));
    // Per metric "flat" and the Cox model, each minus "own", which is that model.
    let pairs = found["differences"].as_array().unwrap();
    let firsts: Vec<&str> = pairs.iter().map(|pair| pair["first"].as_str().unwrap()).collect();
    assert_eq!(firsts, ["flat", "Cox (age, sex)", "flat", "Cox (age, sex)"]);
    for pair in pairs {
        let is_itself = pair["first"] == "Cox (age, sex)";
        let size = |of: &Value| of["value"].as_f64().unwrap().abs();
        assert_eq!(size(&pair["overall"]) < 1e-9, is_itself, "{pair}");
        assert!(!is_itself || size(&pair["attributes"][0]["gap"]) < 1e-9, "{pair}");
    }
    let html = std::fs::read_to_string(output.join("report.html")).unwrap();
    assert!(html.contains("Cox (age, sex)") && html.contains("fitted on the training sample"));
    let missing = ["--baseline", "weight", "--output", &shown];
    fail(files.iter().chain(&missing), DATA, "\"weight\"");
}

#[test]
fn the_baseline_of_a_run_has_its_attributes_and_not_the_columns_that_only_its_split_reads() {
    let folder = tempfile::tempdir().unwrap();
    let site = |row: usize, cells: &mut [String; 9]| cells[8] = ["a", "b"][row % 2].to_owned();
    let run = patients(folder.path(), 120, site).set("split.stratify=[\"x3\"]").set("training.epochs=1");
    run.train();
    let covariates = || json(&run.output().join("evaluation.json"))["baseline"]["covariates"].clone();
    assert_eq!(covariates(), serde_json::json!(["sex"]));
    // Asked for, it is one.
    succeed(["evaluate", &run.output().display().to_string(), "--baseline", "sex,x3", "--permutations", "0"]);
    assert_eq!(covariates(), serde_json::json!(["sex", "x3"]));
}

#[test]
fn a_text_for_a_missing_value_is_one_in_the_training_table_too() {
    let folder = tempfile::tempdir().unwrap();
    let (train, predictions, _) = tables(folder.path());
    // In a column of numbers a text would be an invalid cell.
    for path in [&train, &predictions] {
        let text = std::fs::read_to_string(path).unwrap();
        let with_unknown = |line: &str| {
            let mut cells: Vec<&str> = line.split(',').collect();
            if cells[0].trim_start_matches('s').parse::<usize>().is_ok_and(|row| row % 7 == 3) {
                cells[1] = "unknown";
            }
            cells.join(",")
        };
        std::fs::write(path, text.lines().map(with_unknown).collect::<Vec<_>>().join("\n")).unwrap();
    }
    let output = folder.path().join("scores");
    let shown = output.display().to_string();
    let files = ["evaluate", "--predictions", &predictions, "--train", &train, "--output", &shown];
    let asked = [
        "--attributes",
        "sex",
        "--baseline",
        "age,sex",
        "--missing",
        "Unknown",
        "--set",
        "replicates=0",
        "--permutations",
        "0",
    ];
    succeed(files.iter().chain(&asked));
    let baseline = &json(&output.join("evaluation.json"))["baseline"];
    assert_eq!(baseline["fitted-on"], "train");
    let terms = baseline["cox"]["coefficients"].as_array().unwrap();
    assert!(terms.iter().any(|term| term["name"] == "age missing"), "{terms:?}");
}
