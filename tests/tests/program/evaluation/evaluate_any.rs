//! Scoring one table of curves, outcomes and attributes of any model: formats, attributes, censoring, repairs, and bad
//! tables, each of which gets one sentence that names column and row.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;

use fairtte_data::table::{ColumnValues, write_parquet};
use fairtte_tests::{Outcome, c_td, fail, files, run, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const DATA: i32 = 4;

/// A table of text cells; row 0 is the header, so that row `i` here is row `i + 1` of the file.
type Cells = Vec<Vec<String>>;

const HEADER: &str = "sample,subject,time,event,sex,age,site,0,0.5,1,2";
// Positions of columns.
const SAMPLE: usize = 0;
const SUBJECT: usize = 1;
const TIME: usize = 2;
const EVENT: usize = 3;
const SEX: usize = 4;
const AGE: usize = 5;
const SITE: usize = 6;
const FIRST_TIME: usize = 7;

/// 40 samples of 20 subjects whose curves have some discrimination.
fn cells() -> Cells {
    let row = |i: usize| {
        let rank = (i * 7) % 40;
        let hazard = 0.2 + 1.5 * ((rank * 11) % 40) as f64 / 40.0;
        let curve = [0.0, 0.5, 1.0, 2.0].map(|t: f64| (-hazard * t).exp().to_string());
        let sex = if (i / 2).is_multiple_of(2) { "F" } else { "M" };
        let mut cells = vec![format!("s{i}"), format!("p{}", i / 2), (3.0 - rank as f64 / 14.0).to_string()];
        cells.extend([
            usize::from(!i.is_multiple_of(3)).to_string(),
            sex.to_owned(),
            (50 + i).to_string(),
            "x".to_owned(),
        ]);
        cells.extend(curve);
        cells
    };
    std::iter::once(HEADER.split(',').map(str::to_owned).collect()).chain((0..40).map(row)).collect()
}

fn write_csv(path: &Path, cells: &Cells) -> String {
    let lines: Vec<String> = cells.iter().map(|row| row.join(",")).collect();
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
    path.display().to_string()
}

/// `evaluate` on a CSV file of `cells`, with few replicates, into `scores.html`.
fn evaluate(folder: &Path, cells: &Cells, extra: &[&str]) -> Outcome {
    run(arguments(folder, cells, extra))
}

fn arguments(folder: &Path, cells: &Cells, extra: &[&str]) -> Vec<String> {
    let table = write_csv(&folder.join("curves.csv"), cells);
    let page = folder.join("scores.html").display().to_string();
    let fixed = ["evaluate", "--predictions", &table, "--output", &page, "--set", "replicates=20"];
    fixed.iter().chain(extra).map(|text| (*text).to_owned()).collect()
}

fn numbers(folder: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("scores.json")).unwrap()).unwrap()
}

/// Names of the attributes of the first metric, each with its levels.
fn groups(numbers: &Value) -> Vec<(String, Vec<String>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let levels = |a: &Value| a["groups"].as_array().unwrap().iter().map(|group| text(&group["level"])).collect();
    let attributes = numbers["metrics"][0]["attributes"].as_array().unwrap();
    attributes.iter().map(|a| (text(&a["attribute"]), levels(a))).collect()
}

/// Changes the table and requires that its evaluation fails with `sentence` and writes nothing.
fn fails(change: impl FnOnce(&mut Cells), extra: &[&str], sentence: &str) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let mut cells = cells();
    change(&mut cells);
    let outcome = fail(arguments(folder.path(), &cells, extra), DATA, sentence);
    assert_eq!(files(folder.path()), ["curves.csv"], "nothing is left");
    outcome
}

#[test]
fn csv_and_parquet_give_the_same_numbers_byte_by_byte() {
    let folder = tempfile::tempdir().unwrap();
    let mut cells = cells();
    cells[5][SEX] = String::new();
    let table = write_csv(&folder.path().join("curves.csv"), &cells);
    let parquet = folder.path().join("curves.parquet");
    let column = |c: usize| {
        let values = cells[1..].iter().map(|row| row[c].clone());
        let values = match c {
            EVENT | AGE => ColumnValues::Integer(values.map(|text| text.parse().unwrap()).collect()),
            TIME | FIRST_TIME.. => ColumnValues::Number(values.map(|text| text.parse().unwrap()).collect()),
            _ => ColumnValues::Text(values.map(|text| Some(text).filter(|text| !text.is_empty())).collect()),
        };
        (cells[0][c].clone(), values)
    };
    write_parquet(&parquet, (0..cells[0].len()).map(column).collect(), &[]).unwrap();
    let scored = |table: &str, name: &str| {
        let output = folder.path().join(name).display().to_string();
        let attributes = ["--attributes", "sex,age:median", "--intersections", "--set", "replicates=20"];
        let arguments = ["evaluate", "--predictions", table, "--output", &output].into_iter().chain(attributes);
        succeed(arguments);
        assert_eq!(
            files(output.as_ref()),
            ["evaluation.csv", "evaluation.json", "report.html"],
            "any other name is a folder"
        );
        std::fs::read_to_string(folder.path().join(name).join("evaluation.json")).unwrap()
    };
    let first = scored(&table, "from-csv");
    assert_eq!(first, scored(&parquet.display().to_string(), "from-parquet"));
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!((&first["n"], &first["n-subjects"]), (&Value::from(40), &Value::from(20)));
    assert_eq!(first["metrics"][0]["attributes"][0]["n-missing"], 1);
}

#[test]
fn a_table_without_subjects_and_attributes_is_scored_by_hand_and_says_what_it_assumed() {
    let folder = tempfile::tempdir().unwrap();
    // Comparable pairs are (a,b), (a,c), (a,d), (b,c), (b,d); the curve of d is below b's at time 2.
    let text = "sample_id,time,event,0,1,2,3,4\nd,4,TRUE,1,0.9,0.3,0.2,0.1\na,1,true,1,0.4,0.3,0.2,0.1\n\
                b,2,1,1,0.6,0.5,0.4,0.3\nc,3,FALSE,1,0.8,0.7,0.6,0.5\n";
    let cells: Cells = text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
    let outcome = succeed(arguments(folder.path(), &cells, &["--json"]));
    let report: fairtte_metrics::EvaluationReport = serde_json::from_str(&outcome.stdout).unwrap();
    assert!((c_td(&report) - 4.0 / 5.0).abs() < 1e-12, "{}", outcome.stdout);
    assert_eq!(
        files(folder.path()),
        ["curves.csv", "scores.csv", "scores.html", "scores.json"],
        "the page and the numbers next to it"
    );
    let page = std::fs::read_to_string(folder.path().join("scores.html")).unwrap();
    for note in [
        "There are no --attributes: only the whole sample is evaluated.",
        "every sample counts as a subject of its own",
        "There is no --train: the censoring curve is fitted on the evaluated sample itself",
    ] {
        assert!(outcome.stderr.contains(note), "{note} is missing in\n{}", outcome.stderr);
        assert!(page.contains(note), "{note} is missing on the page");
        assert!(outcome.stdout.contains(note), "{note} is missing in the JSON");
    }
    let input = &numbers(folder.path())["input"];
    assert_eq!((&input["has-subjects"], &input["censoring"]["fitted-on"]), (&false.into(), &"evaluated".into()));
}

#[test]
fn attributes_are_levels_cut_numbers_or_one_value_against_all_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut cells = cells();
    cells[0][SITE] = "stage".to_owned();
    (1..=40).for_each(|i| cells[i][SITE] = ["10.0", "2.0", "1.0"][i % 3].to_owned());
    cells[2][SITE] = "NA".to_owned();
    let outcome = succeed(arguments(folder.path(), &cells, &["--attributes", "sex=m,age:60,stage"]));
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let expected = [
        ("sex".to_owned(), owned(&["Non-m", "m"])),
        ("age".to_owned(), owned(&["<= 60", "> 60"])),
        ("stage".to_owned(), owned(&["1", "2", "10"])),
    ];
    assert_eq!(groups(&numbers(folder.path())), expected);
    assert!(outcome.stderr.contains("samples without stage, in no group: 1."), "{}", outcome.stderr);
    let changing = "19 subjects have more than one value of stage (the first: \"p1\" with 10, 2)";
    assert!(outcome.stderr.contains(changing), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("of age"), "a subject may grow older: {}", outcome.stderr);
    assert!(!outcome.stderr.contains("of sex"), "{}", outcome.stderr);
}

#[test]
fn intersections_are_all_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let cells = cells();
    succeed(arguments(folder.path(), &cells, &["--attributes", "sex,age:60,site", "--intersections"]));
    let names: Vec<String> = groups(&numbers(folder.path())).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["sex", "age", "site", "sex x age", "sex x site", "age x site"]);

    let cohort = folder.path().join("cohort.csv");
    std::fs::write(&cohort, "sample_id,subject_id,time,event,sex_group,age_group\na,1,1,1,F,old\nb,2,2,1,M,new\n")
        .unwrap();
    let curves = folder.path().join("pairs.csv");
    std::fs::write(&curves, "sample,0,1,2\na,1,0.5,0.2\nb,1,0.6,0.7\n").unwrap();
    let output = folder.path().join("scores.html");
    let [curves, cohort, output] = [curves, cohort, output].map(|path| path.display().to_string());
    let arguments = ["evaluate", "--predictions", &curves, "--cohort", &cohort, "--output", &output];
    let outcome = fail(arguments, DATA, "survival of sample \"b\" rises from 0.6 at time 1 to 0.7 at time 2");
    assert!(outcome.stderr.contains("--repair monotone"), "{}", outcome.stderr);
    succeed(arguments.iter().chain(&["--intersections", "--repair", "monotone:all"]));
    let found = numbers(folder.path());
    assert_eq!(groups(&found)[2].1, ["F & new", "F & old", "M & new", "M & old"]);
    assert_eq!(found["input"]["repairs"]["n-cells"], 1);
}

#[test]
fn the_censoring_curve_is_fitted_on_the_training_outcomes_if_they_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let cells = cells();
    let ibs = || numbers(folder.path())["metrics"][3]["overall"]["value"].as_f64().unwrap();
    succeed(arguments(folder.path(), &cells, &["--attributes", "sex"]));
    let on_itself = ibs();
    let train = folder.path().join("train.csv");
    let write = |text: &str| std::fs::write(&train, text).unwrap();
    let rows: Vec<String> = (1..=60).map(|i| format!("{},{},x\n", f64::from(i) / 15.0, i % 2)).collect();
    write(&format!("time,event,other\n{}", rows.concat()));
    let path = train.display().to_string();
    let extra = ["--attributes", "sex", "--train", &path];
    let outcome = succeed(arguments(folder.path(), &cells, &extra));
    assert!(!outcome.stderr.contains("There is no --train"), "{}", outcome.stderr);
    let censoring = &numbers(folder.path())["input"]["censoring"];
    assert_eq!(*censoring, serde_json::json!({"fitted-on": "train", "n": 60, "n-events": 30}));
    assert!((ibs() - on_itself).abs() > 1e-6, "other weights give another value");
    for (text, sentence) in [
        ("time,event\n1,1\n-2,0\n", "time of sample \"row 3\" is -2, expected a finite number >= 0 ("),
        ("time,event\n1,1\n2,?\n", "event of sample \"row 3\" is ?, expected 1 (observed) or 0 (censored) ("),
        ("time,evnt\n1,1\n", "column \"event\" is not in "),
        ("time,event\n", "train.csv has no rows, expected at least one"),
    ] {
        write(text);
        fail(arguments(folder.path(), &cells, &extra), DATA, sentence);
    }
}

#[test]
fn rising_curves_are_refused_or_repaired_and_the_repair_is_told_everywhere() {
    let rise = |cells: &mut Cells| {
        cells[3][FIRST_TIME + 2] = "0.9".to_owned();
        cells[3][FIRST_TIME + 1] = "0.65".to_owned();
        cells[3][FIRST_TIME + 3] = "0.7".to_owned();
        cells[9][FIRST_TIME..].fill("0.5".to_owned());
        cells[9][FIRST_TIME + 3] = "0.5625".to_owned();
    };
    let sentence =
        "survival of sample \"s2\" rises from 0.65 at time 0.5 to 0.9 at time 1, expected a curve that never rises (";
    let outcome = fails(rise, &[], sentence);
    assert!(
        outcome.stderr.contains("curves.csv, row 4)") && outcome.stderr.contains("--repair monotone"),
        "{outcome:?}"
    );

    let folder = tempfile::tempdir().unwrap();
    let mut cells = cells();
    rise(&mut cells);
    let outcome = succeed(arguments(folder.path(), &cells, &["--repair", "monotone"]));
    let note = "changed cells of survival: 3, in 2 of 40 rows, by at most 0.250; --repair monotone made every curve \
                its running minimum.";
    assert!(outcome.stderr.contains(note), "{}", outcome.stderr);
    let page = std::fs::read_to_string(folder.path().join("scores.html")).unwrap();
    assert!(page.contains(note) && page.contains("monotone: changed cells 3, rows 2, largest change 0.250"));
    let input = &numbers(folder.path())["input"];
    assert_eq!(input["repair"], "monotone");
    assert_eq!(input["repairs"], serde_json::json!({"n-rows": 2, "n-cells": 3, "largest-change": 0.25}));

    let outcome = succeed(arguments(folder.path(), &self::cells(), &["--repair", "monotone"]));
    assert!(outcome.stderr.contains("--repair monotone found nothing to change."), "{}", outcome.stderr);
}

#[test]
fn numerical_noise_is_accepted_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut cells = cells();
    cells[1][FIRST_TIME] = "1.0000001".to_owned();
    let outcome = succeed(arguments(folder.path(), &cells, &[]));
    let note = "changed cells of survival: 1, in 1 of 40 rows, by at most 1.00e-7; numerical noise up to 1e-6 is \
                accepted and removed.";
    assert!(outcome.stderr.contains(note), "{}", outcome.stderr);
    assert_eq!(numbers(folder.path())["input"]["repairs"]["n-cells"], 1);
}

#[test]
fn a_bad_grid_names_its_columns() {
    let rename = |column: usize, name: &'static str| move |cells: &mut Cells| cells[0][column] = name.to_owned();
    let sentence = "columns \"0.5\" and \"0.50\" of ";
    fails(rename(FIRST_TIME + 2, "0.50"), &[], sentence);
    fails(rename(FIRST_TIME + 2, "0.50"), &[], "both name the time 0.5, expected each grid time once");
    let outcome = fails(rename(FIRST_TIME + 1, "1.5"), &[], "column \"1\" of ");
    let expected = "comes after column \"1.5\", expected the grid times in ascending order";
    assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    fails(rename(FIRST_TIME, "-1"), &[], "its name is no finite number >= 0");
    fails(rename(FIRST_TIME, "0.5"), &[], "column \"0.5\" appears more than once in ");
    let r_names = |cells: &mut Cells| cells[0][FIRST_TIME..].iter_mut().for_each(|name| *name = format!("X{name}"));
    fails(r_names, &[], "whose name is a plain number such as 0.5 (rename \"X0\" to \"0\")");
}

#[test]
fn a_bad_cell_names_sample_column_value_and_row() {
    let set =
        |row: usize, column: usize, text: &'static str| move |cells: &mut Cells| cells[row][column] = text.to_owned();
    let probability = "expected a probability in [0, 1] (";
    for (value, shown) in
        [("1.2", "1.2"), ("-0.1", "-0.1"), ("high", "high"), ("", "empty"), ("NaN", "NaN"), ("NA", "NA")]
    {
        let sentence = format!("survival of sample \"s3\" at time 0.5 is {shown}, {probability}");
        let outcome = fails(set(4, FIRST_TIME + 1, value), &["--repair", "monotone"], &sentence);
        assert!(outcome.stderr.contains("curves.csv, row 5)"), "{}", outcome.stderr);
    }
    for (column, value, sentence) in [
        (TIME, "-3", "time of sample \"s3\" is -3, expected a finite number >= 0 ("),
        (TIME, "", "time of sample \"s3\" is empty, expected a finite number >= 0 ("),
        (TIME, "soon", "time of sample \"s3\" is soon, expected a finite number >= 0 ("),
        (EVENT, "2", "event of sample \"s3\" is 2, expected 1 (observed) or 0 (censored) ("),
        (EVENT, "", "event of sample \"s3\" is empty, expected 1 (observed) or 0 (censored) ("),
        (SUBJECT, "", "subject of sample \"s3\" is empty, expected the name of a subject ("),
        (SAMPLE, "", "the name of the sample is empty, expected one in every row ("),
        (SAMPLE, "s1", "sample \"s1\" appears twice, expected each sample once ("),
        (AGE, "old", "age of sample \"s3\" is old, expected a number like most cells of the column ("),
        (SEX, "1", "sex of sample \"s3\" is 1, expected text like most cells of the column ("),
    ] {
        let outcome = fails(set(4, column, value), &["--attributes", "sex,age:60"], sentence);
        assert!(outcome.stderr.contains("curves.csv, row 5"), "{}", outcome.stderr);
    }
}

#[test]
fn a_column_that_is_missing_or_not_fit_is_named_with_the_nearest() {
    let rename = |column: usize, name: &'static str| move |cells: &mut Cells| cells[0][column] = name.to_owned();
    let near = |change, extra: &[&str], column: &str, nearest: &str| {
        let outcome = fails(change, extra, &format!("column \"{column}\" is not in "));
        assert!(outcome.stderr.contains(&format!("nearest is \"{nearest}\"")), "{}", outcome.stderr);
    };
    near(rename(TIME, "tiem"), &[], "time", "tiem");
    near(rename(EVENT, "evnt"), &[], "event", "evnt");
    near(rename(SAMPLE, "sampel"), &[], "sample", "sampel");
    near(rename(SEX, "sex"), &["--attributes", "sexx"], "sexx", "sex");
    let both = "\"sample_id\" and \"sample\" are both columns of ";
    fails(rename(AGE, "sample_id"), &[], both);
    let empty = |cells: &mut Cells| cells[1..].iter_mut().for_each(|row| row[SEX].clear());
    fails(empty, &["--attributes", "sex"], "is empty in every row, expected a value in some");
    fails(|cells| cells.truncate(1), &[], "curves.csv has no rows, expected at least one");
}

#[test]
fn arguments_that_cannot_be_meant_are_refused_before_any_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut cells = cells();
    for (extra, code, sentence) in [
        (&["--attributes", "age"][..], CONFIG, "attribute \"age\" has 40 different values, expected at most 20 levels"),
        (&["--attributes", "time"], CONFIG, "it is an identity or an outcome, expected a property of the subjects"),
        (&["--attributes", "sex=X"], CONFIG, "attribute \"sex\": no sample has the value \"X\", expected one of F, M"),
        (&["--attributes", "sex,sex"], CONFIG, "--attributes: \"sex\" is named twice, expected once"),
        (&["--attributes", "sex", "--intersections"], CONFIG, "number of --attributes: 1, expected at least two"),
        (&["--attributes", "age:old"], 2, "expected a number or median after the colon, as in age:60"),
        (&["--attributes", "sex="], 2, "expected a value after the =, as in sex=White"),
        (&["--repair", "everything"], 2, "invalid value 'everything' for '--repair <REPAIR>'"),
        (&["--part", "test"], CONFIG, "there are no parts without --split"),
    ] {
        fail(arguments(folder.path(), &cells, extra), code, sentence);
    }
    let outcome = evaluate(folder.path(), &cells, &["--attributes", "age"]);
    assert!(outcome.stderr.contains("--attributes age:median"), "{}", outcome.stderr);
    cells.truncate(3);
    fail(arguments(folder.path(), &cells, &["--cohort", "c.csv", "--train", "t.csv"]), 2, "cannot be used with");
    assert_eq!(files(folder.path()), ["curves.csv"]);
}

/// On a full disk an exit code of 0 would hide that results are missing.
#[test]
#[cfg(target_os = "linux")]
fn results_that_cannot_be_printed_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let arguments = arguments(folder.path(), &cells(), &["--json"]);
    let ended = fairtte_tests::fairtte().args(arguments).stdout(full).output().unwrap();
    let message = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(DATA), "{message}");
    assert!(message.contains("cannot write standard output"), "{message}");
}
