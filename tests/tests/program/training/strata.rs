//! Categories of an estimator: strata by the name of their column, samples that are in none, and levels beside missing values.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::{Path, PathBuf};

use fairtte_tests::{fail, patients, succeed};
use serde_json::Value;

const DATA: i32 = 4;

/// A run file on the columns of a made-up table whose cells `change` changes: sex and age are categories.
fn config(folder: &Path, change: impl Fn(usize, &mut [String; 9]), further: &str) -> String {
    patients(folder, 400, change);
    let text = format!(
        "output = '{0}/run'\n[data.tabular]\ntable = '{0}/patients.csv'\nsubject = \"pid\"\ntime-unit = \"years\"\n\
         numeric = [\"x0\", \"x1\"]\ncategorical = [\"sex\", \"age\"]\n[time]\nintervals = 8\n\
         [evaluation]\nreplicates = 0\npermutations = 0\n{further}\n",
        folder.display()
    );
    let path = folder.join("run.toml");
    std::fs::write(&path, text).unwrap();
    words(&path)
}

fn words(path: &Path) -> String {
    path.display().to_string()
}

/// The Cox model of a run with these changes of its run file.
fn fitted(config: &str, output: &Path, sets: &[&str]) -> Value {
    let mut arguments = vec!["train", "--config", config];
    let path = words(output);
    arguments.extend(["--output", &path]);
    arguments.extend(sets.iter().flat_map(|set| ["--set", *set]));
    succeed(arguments);
    let text = std::fs::read_to_string(output.join("model/epoch-00001/estimator.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["cox"].clone()
}

fn names(model: &Value) -> Vec<&str> {
    model["coefficients"].as_array().unwrap().iter().map(|term| term["name"].as_str().unwrap()).collect()
}

fn coefficient(model: &Value, name: &str) -> f64 {
    let terms = model["coefficients"].as_array().unwrap();
    terms.iter().find(|term| term["name"] == name).unwrap()["value"].as_f64().unwrap()
}

/// A table of new people with a sex and an age each.
fn people(folder: &Path, people: &[[&str; 2]]) -> String {
    let line = |(row, [sex, age]): (usize, &[&str; 2])| format!("n{row},{sex},{age},0.1,-0.2\n");
    let lines: String = people.iter().enumerate().map(line).collect();
    let path: PathBuf = folder.join("people.csv");
    std::fs::write(&path, format!("pid,sex,age,x0,x1\n{lines}")).unwrap();
    words(&path)
}

#[test]
fn strata_are_named_as_their_column_and_samples_of_none_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Of young and old, C has no old and A no young.
    let change = |row: usize, cells: &mut [String; 9]| {
        cells[3] = ["A", "B", "C"][row % 3].to_owned();
        cells[4] = match row % 3 {
            0 => "old",
            1 if row.is_multiple_of(2) => "old",
            _ => "young",
        }
        .to_owned();
    };
    let config = config(folder, change, "[estimator.cox]\nstrata = [\"sex\", \"age\"]");
    let run = folder.join("run");
    let model = fitted(&config, &run, &[]);
    assert_eq!(names(&model), ["x0", "x1"]);
    assert_eq!(model["baselines"].as_array().unwrap().len(), 4);
    let by_level =
        fitted(&config, &folder.join("levels"), &["estimator.cox.strata=[\"sex=B\", \"sex=C\", \"age=young\"]"]);
    assert_eq!(by_level, model);

    let predict = |people: &str| {
        let output = words(&folder.join("predicted"));
        ["predict", &words(&run), "--table", people, "--output", &output].map(str::to_owned)
    };
    let known = "which is no stratum of the fit: expected one of A, B, C";
    let unknown = people(folder, &[["A", "old"], ["Z", "old"]]);
    fail(predict(&unknown), DATA, &format!("sex is \"Z\" in sample \"n1\", {known}"));
    let missing = people(folder, &[["A", "old"], ["B", "young"], ["", "old"]]);
    fail(predict(&missing), DATA, &format!("sex is missing in sample \"n2\", {known}"));
    // Both levels are known, but not together.
    let apart = people(folder, &[["A", "old"], ["A", "young"]]);
    let sentence = "sample \"n1\" is in the stratum sex=B=0, sex=C=0, age=young=1, expected one with events in the fit";
    fail(predict(&apart), DATA, sentence);
    succeed(predict(&people(folder, &[["A", "old"], ["C", "young"]])));
}

#[test]
fn a_stratum_that_only_the_test_part_has_is_refused_by_the_training() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let part = |row: usize| ["train", "train", "train", "validation", "test"][row % 5];
    let lines: Vec<String> = (0..400).map(|row| format!("p{row:04},{}", part(row))).collect();
    std::fs::write(folder.join("parts.csv"), format!("subject_id,part\n{}\n", lines.join("\n"))).unwrap();
    let change = |row: usize, cells: &mut [String; 9]| {
        cells[3] = if row == 14 { "Z" } else { ["A", "B"][row % 2] }.to_owned();
        cells[4] = ["old", "young"][row % 3 / 2].to_owned();
    };
    let config = config(folder, change, "[split]\nfile = \"parts.csv\"\n[estimator.cox]\nstrata = [\"sex\"]");
    let sentence = "sex is \"Z\" in sample \"p0014\", which is no stratum of the fit: expected one of A, B";
    fail(["train", "--config", &config], DATA, sentence);
    assert!(!folder.join("run/predictions.parquet").exists());
    // A coefficient is predicted as that of the reference, with a note.
    let other = words(&folder.join("other"));
    let by_age = "estimator.cox.strata=[\"age\"]";
    let said = succeed(["train", "--config", &config, "--set", by_age, "--output", &other]).stderr;
    assert!(said.contains("1 sample has sex \"Z\", which no training sample has"), "{said}");
}

#[test]
fn a_missing_category_is_not_taken_for_the_first_level() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let change = |row: usize, cells: &mut [String; 9]| {
        if row % 7 == 3 {
            cells[3].clear();
        }
        cells[4] = ["old", "young"][row % 3 / 2].to_owned();
    };
    let config_of_sex = config(folder, change, "[estimator.cox]");
    let told = fitted(&config_of_sex, &folder.join("told"), &[]);
    assert_eq!(names(&told), ["sex=M", "sex:missing", "age=young", "x0", "x1"]);
    let untold = fitted(&config_of_sex, &folder.join("untold"), &["data.tabular.missing=mean"]);
    assert_eq!(names(&untold), ["sex=F", "sex=M", "age=young", "x0", "x1"]);
    // The same model against another reference: those without a sex in place of women.
    let likelihood = |model: &Value| model["log-likelihood"].as_f64().unwrap();
    assert!((likelihood(&told) - likelihood(&untold)).abs() < 1e-6);
    let (women, men) = (coefficient(&untold, "sex=F"), coefficient(&untold, "sex=M"));
    assert!((women + coefficient(&told, "sex:missing")).abs() < 1e-6);
    assert!((men - women - coefficient(&told, "sex=M")).abs() < 1e-6);
    // Of two categories that are missing together the second has a reference again.
    let together = |row: usize, cells: &mut [String; 9]| {
        change(row, cells);
        if row % 7 == 3 {
            cells[4].clear();
        }
    };
    let config_of_both = config(folder, together, "[estimator.cox]");
    let both = fitted(&config_of_both, &folder.join("both"), &["data.tabular.missing=mean"]);
    assert_eq!(names(&both), ["sex=F", "sex=M", "age=young", "x0", "x1"]);
}
