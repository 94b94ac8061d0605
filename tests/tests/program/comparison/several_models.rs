//! `evaluate` with several `--predictions`: the same samples for all models, differences, and files that do not fit together.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;

use fairtte_data::table::Table;
use fairtte_tests::{fail, files, run, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const DATA: i32 = 4;
const TIMES: [f64; 5] = [0.0, 0.5, 1.0, 2.0, 3.0];

/// Cells of 60 samples by row: sample, subject, time, event, sex, and the curve of a model that mixes up every `nth`
/// sample with the next.
fn rows(nth: usize) -> Vec<Vec<String>> {
    let row = |i: usize| {
        let known = if i.is_multiple_of(nth) { i + 1 } else { i };
        let hazard = |i: usize| 0.2 + 1.6 * ((i * 7) % 60) as f64 / 60.0;
        let time = 3.2 - 3.0 * ((i * 7) % 60) as f64 / 60.0;
        let sex = if i % 4 < 2 { "F" } else { "M" };
        let cells = [format!("s{i}"), format!("p{i}"), time.to_string(), u8::from(!i.is_multiple_of(3)).to_string()];
        let curve = TIMES.map(|t| format!("{:.6}", (-hazard(known) * t).exp()));
        cells.into_iter().chain([sex.to_owned()]).chain(curve).collect()
    };
    (0..60).map(row).collect()
}

/// A table of these rows; of the times the first `n_times`.
fn table(path: &Path, rows: &[Vec<String>], n_times: usize) -> String {
    let times = TIMES[..n_times].iter().map(f64::to_string).collect::<Vec<_>>().join(",");
    let lines = rows.iter().map(|row| row[..5 + n_times].join(","));
    let lines: Vec<String> = std::iter::once(format!("sample,subject,time,event,sex,{times}")).chain(lines).collect();
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
    path.display().to_string()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

const SHARED: [&str; 6] = ["--attributes", "sex", "--metrics", "c-td,ibs,observed-expected", "--set", "replicates=30"];

#[test]
fn differences_are_those_of_two_evaluations_of_the_common_samples() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (exact, mixed) = (rows(1000), rows(2));
    // The first file lacks 4 samples, the second 2 others and the last time; it is in another order.
    let first = table(&at("exact.csv"), &exact[4..], 5);
    let reversed: Vec<Vec<String>> = mixed[..58].iter().rev().cloned().collect();
    let second = table(&at("mixed.csv"), &reversed, 4);
    let output = at("both").display().to_string();
    let files_of = ["evaluate", "--predictions", &first, "--predictions", &second, "--output", &output];
    let outcome = succeed(files_of.iter().chain(&SHARED));
    assert!(outcome.stderr.contains("mixed has no curve for 2 of 60 samples (first \"s58\")."), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("evaluated on the 54 samples that every file has"), "{}", outcome.stderr);
    let tables = outcome.stdout.lines().filter(|line| !line.starts_with("report: "));
    tables.for_each(|line| assert!(line.chars().count() <= 80, "{line}"));
    assert_eq!(files(&at("both")), ["evaluation.csv", "evaluation.json", "report.html"]);
    let found = json(&at("both/evaluation.json"));
    assert_eq!((&found["reference"], &found["samples"]["n-known"]), (&"exact".into(), &60.into()));
    assert_eq!(found["samples"]["missing"][0]["n"], 4);

    // The common samples, scored one model at a time at the same times and horizon.
    let times = found["models"][0]["times"]["times"].to_string();
    let (times, horizon) = (format!("times={times}"), found["models"][0]["horizon"].to_string());
    let alone = |name: &str, rows: &[Vec<String>], n_times| {
        let path = table(&at(&format!("{name}-common.csv")), rows, n_times);
        let output = at(&format!("{name}-alone")).display().to_string();
        let fixed = ["evaluate", "--predictions", &path, "--output", &output, "--horizon", &horizon, "--set", &times];
        succeed(fixed.iter().chain(&SHARED));
        json(&at(&format!("{name}-alone/evaluation.json")))
    };
    let models = [alone("exact", &exact[4..58], 5), alone("mixed", &mixed[4..58], 4)];
    assert_eq!(found["differences"].as_array().unwrap().len(), 3);
    for (k, pair) in found["differences"].as_array().unwrap().iter().enumerate() {
        assert_eq!((&pair["first"], &pair["second"]), (&"mixed".into(), &"exact".into()));
        let number =
            |model: usize, pointer: &str| models[model]["metrics"][k].pointer(pointer).unwrap().as_f64().unwrap();
        let close = |found: &Value, pointer: &str| {
            let expected = number(1, pointer) - number(0, pointer);
            assert!((found["value"].as_f64().unwrap() - expected).abs() < 1e-12, "{pointer} of metric {k}");
        };
        close(&pair["overall"], "/overall/value");
        close(&pair["attributes"][0]["gap"], "/attributes/0/gap/value");
        close(&pair["attributes"][0]["groups"][1][1], "/attributes/0/groups/1/estimate/value");
    }
    // The model that mixes samples up is worse, and the other alone on the front of C^td unless its gap is larger.
    assert!(found["differences"][0]["overall"]["value"].as_f64().unwrap() < -0.05);
    assert_eq!(found["trade-offs"][0]["points"][0]["on-front"], true);
    let flat = Table::read(&at("both/evaluation.csv")).unwrap();
    let minus = flat.text("minus").unwrap();
    assert_eq!(minus.iter().flatten().collect::<std::collections::BTreeSet<_>>().len(), 1);
}

#[test]
fn models_of_a_cohort_are_scored_in_its_test_part_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let path = |name: &str| at(name).display().to_string();
    let curves = |name: &str, rows: &[Vec<String>]| {
        let lines: Vec<String> = rows.iter().map(|row| format!("{},{}", row[0], row[5..].join(","))).collect();
        std::fs::write(at(name), format!("sample,0,0.5,1,2,3\n{}\n", lines.join("\n"))).unwrap();
        path(name)
    };
    let all = rows(1000);
    let (first, second) = (curves("a.csv", &all), curves("b.csv", &rows(2)[..59]));
    let cohort: Vec<String> = all.iter().map(|row| row[..5].join(",")).collect();
    std::fs::write(at("cohort.csv"), format!("sample_id,subject_id,time,event,sex_group\n{}\n", cohort.join("\n")))
        .unwrap();
    let part = |i: usize| if i == 1 { "validation" } else { ["train", "test", "test"][i % 3] };
    let split: Vec<String> = (0..60).map(|i| format!("p{i},{}", part(i))).collect();
    std::fs::write(at("split.csv"), format!("subject_id,part\n{}\n", split.join("\n"))).unwrap();
    let fixed = [
        "evaluate",
        "--predictions",
        &first,
        "--predictions",
        &second,
        "--cohort",
        &path("cohort.csv"),
        "--split",
        &path("split.csv"),
        "--names",
        "Cox,<i>net</i>",
        "--reference-model",
        "<i>net</i>",
        "--set",
        "replicates=20",
        "--set",
        "min-events=3",
        "--output",
        &path("page.html"),
    ];
    succeed(fixed);
    let found = json(&at("page.json"));
    assert_eq!((&found["part"], &found["reference"]), (&"test".into(), &"<i>net</i>".into()));
    // Row 59 is in the test part: 39 samples, of which the second file has 38.
    assert_eq!((&found["samples"]["n-evaluated"], &found["censoring"]["n"]), (&38.into(), &20.into()));
    assert_eq!(found["differences"][0]["first"], "Cox");
    let page = std::fs::read_to_string(at("page.html")).unwrap();
    assert!(page.contains("<h1>Comparison of Cox and &lt;i&gt;net&lt;&#x2f;i&gt;</h1>"), "names are escaped");
    let of_net = ["--reference-model", "GRU"];
    let wrong: Vec<&str> = fixed[..11].iter().copied().chain(of_net).chain(["--output", "x"]).collect();
    fail(wrong, CONFIG, "--reference-model: there is no model \"GRU\", expected one of Cox, <i>net</i>");
}

#[test]
fn files_that_do_not_fit_together_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let base = rows(1000);
    let first = table(&at("a.csv"), &base, 5);
    let output = at("out").display().to_string();
    let refused = |change: &dyn Fn(&mut Vec<Vec<String>>), extra: &[&str], code: i32, sentence: &str| {
        let mut other = base.clone();
        change(&mut other);
        let second = table(&at("b.csv"), &other, 5);
        let fixed = ["evaluate", "--predictions", &first, "--predictions", &second, "--output", &output];
        fail(fixed.iter().chain(&SHARED).copied().chain(extra.iter().copied()), code, sentence);
        assert!(!at("out").exists(), "nothing is written");
    };
    refused(&|rows| rows[5][2] = "2.5".to_owned(), &[], DATA, "time of sample \"s5\" (row 7) is 2.5 there and");
    refused(&|rows| rows[5][3] = "0".to_owned(), &[], DATA, "event of sample \"s5\" (row 7) is 0 there and 1 in");
    refused(&|rows| rows[5][4] = "M".to_owned(), &[], DATA, "sex of sample \"s5\" (row 7) is M there and");
    refused(&|rows| rows[5][1] = "p4".to_owned(), &[], DATA, "subject of sample \"s5\" (row 7) is p4 there and p5 in");
    let rename = |rows: &mut Vec<Vec<String>>| rows.iter_mut().for_each(|row| row[0].push('x'));
    refused(&rename, &[], CONFIG, "no sample is in all files: of 120 samples a lacks 60");
    refused(&|_| (), &["--names", "one"], CONFIG, "--names: number of names: 1, expected 2, one per --predictions");
    refused(&|_| (), &["--names", "one,one"], CONFIG, "--names: two models are named \"one\"");
    // The same number written differently is the same.
    let second = table(
        &at("c.csv"),
        &{
            let mut rows = base.clone();
            rows[5][2] += "0";
            rows
        },
        5,
    );
    let fixed = ["evaluate", "--predictions", &first, "--predictions", &second, "--output", &output];
    assert_eq!(run(fixed.iter().chain(&SHARED)).code, 0);
    let same = ["evaluate", "--predictions", &first, "--predictions", &first, "--output", &output];
    fail(same, CONFIG, "--names: two models are named \"a\"");
    let one = ["evaluate", "--predictions", &first, "--output", &output];
    for (option, value) in [("--names", "a"), ("--reference-model", "a")] {
        let sentence = format!("{option}: there is one model, expected two --predictions or more");
        fail(one.iter().copied().chain([option, value]), CONFIG, &sentence);
    }
}
