//! `fairtte experiment` from files: tables of results, resumption, refusals, and a planted degradation that is found.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fairtte_tests::{fail, files, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const DATA: i32 = 4;

/// Samples whose first covariate orders the times, a quarter censored.
fn table(folder: &Path, name: &str, n: u32) -> String {
    let mut text = "time,event,x,noise,ward\n".to_owned();
    for i in 0..n {
        let (rank, noise) = ((i * 37) % n, (i * 53) % 101);
        writeln!(
            text,
            "{}.5,{},{},{noise},{}",
            1 + rank,
            u8::from(i % 4 != 0),
            rank + noise % 31,
            ["a", "b", "c"][i as usize % 3]
        )
        .unwrap();
    }
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn biasing(tables: &[&str], more: &[&str]) -> Value {
    let arguments = ["experiment", "biasing"].iter().chain(tables).chain(more).chain(&["--json"]).copied();
    serde_json::from_str(&succeed(arguments).stdout).unwrap()
}

const FAST: [&str; 6] = ["--trees", "20", "--repeats", "2", "--shares", "0,0.45,0.9"];

#[test]
fn harrells_c_notices_permuted_covariates_and_every_file_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (table(folder.path(), "first.csv", 211), table(folder.path(), "second.csv", 311));
    let out = folder.path().join("out");
    let output = out.display().to_string();
    let found = biasing(&[&first, &second], &[&FAST[..], &["--output", &output]].concat());
    assert_eq!(found["tables"][1]["name"], "second");
    assert_eq!(found["tables"][1]["n"], 311);
    // A number, a number, and three levels.
    assert_eq!(found["tables"][1]["n-columns"], 5);
    let measures = found["analysis"]["measures"].as_array().unwrap();
    assert_eq!(measures.len(), 2 * 8);
    let c = measures.iter().find(|of| of["method"] == "permutation" && of["measure"] == "harrell-c").unwrap();
    // All but a tenth of the samples of a half have another one's covariates: C falls from about 0.9 towards 0.55.
    assert!(c["of-means"]["line"]["slope"].as_f64().unwrap() > 0.2, "{c}");
    let names = files(&out);
    for name in ["biasing.csv", "biasing.html", "biasing.json", "cells.jsonl", "settings.json"] {
        assert!(names.iter().any(|known| known == name), "{name} is missing of {names:?}");
    }
    for name in ["figures/f-permutation.svg", "figures/rho-undersampling.svg", "tables/means-permutation.md"] {
        assert!(names.iter().any(|known| known == name), "{name} is missing of {names:?}");
    }
    let rows = std::fs::read_to_string(out.join("biasing.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + 2 * 2 * 3 * 2 * 8);
}

#[test]
fn cox_takes_the_place_of_the_forest() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), "people.csv", 311);
    let shares = ["--estimator", "cox", "--repeats", "2", "--shares", "0,0.45,0.9", "--measures", "harrell-c"];
    let found = biasing(&[&path], &[&shares[..], &["--methods", "permutation"]].concat());
    // One column per level but one.
    assert_eq!(found["tables"][0]["n-columns"], 4);
    let c = &found["analysis"]["measures"][0];
    assert_eq!(c["shares"][0]["n-undefined"], 0);
    assert!(c["of-means"]["line"]["slope"].as_f64().unwrap() > 0.2, "{c}");
}

#[test]
fn an_interrupted_experiment_is_continued_and_gives_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), "people.csv", 211);
    let whole = biasing(&[&path], &FAST);
    let out = folder.path().join("out");
    let more = [&FAST[..], &["--output", out.to_str().unwrap()]].concat();
    assert_eq!(biasing(&[&path], &more), whole);
    let (cells, rows) = (out.join("cells.jsonl"), std::fs::read(out.join("biasing.csv")).unwrap());
    let text = std::fs::read_to_string(&cells).unwrap();
    // Seven of twelve cells, and a line that was being written.
    let kept: Vec<&str> = text.lines().take(7).collect();
    std::fs::write(&cells, format!("{}\n{}", kept.join("\n"), &text.lines().nth(7).unwrap()[..40])).unwrap();
    let arguments = ["experiment", "biasing", &path].into_iter().chain(more.iter().copied());
    let outcome = succeed(arguments);
    assert!(outcome.stderr.contains("7 cells of 12 are there already"), "{}", outcome.stderr);
    assert_eq!(std::fs::read(out.join("biasing.csv")).unwrap(), rows);
    assert_eq!(std::fs::read_to_string(&cells).unwrap().lines().count(), 12);
    // Another table may be added, other settings may not.
    let other = table(folder.path(), "others.csv", 151);
    assert_eq!(biasing(&[&path, &other], &more)["tables"].as_array().unwrap().len(), 2);
    let changed = ["experiment", "biasing", &path, "--seed", "3"].into_iter().chain(more.iter().copied());
    fail(changed, CONFIG, "holds a run with other settings");
    for (option, value, difference) in [
        ("--seed", "3", "seed is 0 there and 3 here"),
        ("--trees", "2", "trees is 20 there and 2 here"),
        ("--estimator", "cox", "estimator is forest there and cox here"),
    ] {
        // Of an option that FAST has, another value.
        let mut words = vec!["experiment", "biasing", &path];
        words.extend(more.iter().copied());
        let place = words.iter().position(|word| *word == option);
        match place {
            Some(place) => words[place + 1] = value,
            None => words.extend([option, value]),
        }
        if option == "--estimator" {
            let trees = words.iter().position(|word| *word == "--trees").unwrap();
            words.drain(trees..trees + 2);
        }
        let said = fail(&words, CONFIG, "holds a run with other settings").stderr;
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(difference) && !said.contains("BiasingSettings"), "{said}");
    }
    std::fs::write(&cells, "{}\n").unwrap();
    fail(["experiment", "biasing", &path].into_iter().chain(more.iter().copied()), DATA, "cells.jsonl: line 1");
    // Of cells whose settings are not known nothing is taken over.
    std::fs::write(&cells, &text).unwrap();
    std::fs::remove_file(out.join("settings.json")).unwrap();
    let sentence = "cells.jsonl: there is no settings.json beside it";
    fail(["experiment", "biasing", &path].into_iter().chain(more.iter().copied()), DATA, sentence);
}

#[test]
fn what_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(folder.path(), "people.csv", 61);
    let refused = |more: &[&str], code: i32, sentence: &str| {
        fail(["experiment", "biasing", &path].into_iter().chain(more.iter().copied()), code, sentence);
    };
    refused(&["--shares", "1"], CONFIG, "--shares is 1, expected numbers in [0, 1)");
    refused(&["--repeats", "0"], CONFIG, "--repeats is 0, expected a whole number from 1 to 100000");
    refused(&["--trees", "0"], CONFIG, "--trees is 0, expected a whole number from 1 to 1000000");
    refused(&["--exclude", "x,noise,ward"], CONFIG, "has no covariate, expected a column beside time and event");
    refused(&["--time", "tim"], DATA, "nearest is \"time\"");
    refused(&[&path], CONFIG, "\"people\" is the name of two tables");
    refused(&["--estimator", "coxx"], CONFIG, "expected one of cox, ");
    refused(&["--estimator", "cox", "--trees", "3"], CONFIG, "--trees: it is about a forest, but --estimator is cox");
    refused(&["--methods", "blur"], 2, "expected one of permutation");
    let none = folder.path().join("none.csv");
    std::fs::write(&none, "time,event,x\n1,0,1\n2,0,2\n3,0,4\n").unwrap();
    fail(["experiment", "biasing", none.to_str().unwrap()], DATA, "no sample has an event");
}

/// Curves that order the times well, and half of the people in each group.
fn curves(folder: &Path) -> PathBuf {
    let mut text = "sample,time,event,sex,0,1,2,3,4\n".to_owned();
    for i in 0..200_u32 {
        let rank = f64::from((i * 37) % 200) / 200.0;
        let hazard = 0.1 + 2.0 * (1.0 - rank);
        let curve: Vec<String> = (0..5).map(|t| format!("{:.6}", (-hazard * f64::from(t)).exp())).collect();
        let wobble = f64::from((i * 71) % 50) / 100.0;
        let sex = if (i * 13) % 7 < 3 { "F" } else { "M" };
        writeln!(text, "s{i},{:.4},{},{sex},{}", 0.2 + 3.0 * rank + wobble, u8::from(i % 4 != 0), curve.join(","))
            .unwrap();
    }
    let path = folder.join("curves.csv");
    std::fs::write(&path, text).unwrap();
    path
}

fn power(path: &Path, more: &[&str]) -> Value {
    let path = path.to_str().unwrap();
    let shared = ["experiment", "power", "--predictions", path, "--attribute", "sex", "--level", "f", "--json"];
    serde_json::from_str(&succeed(shared.into_iter().chain(more.iter().copied())).stdout).unwrap()
}

#[test]
fn exchanged_predictions_are_found_and_untouched_ones_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = curves(folder.path());
    let out = folder.path().join("out");
    let settings = ["--metrics", "c-td,observed-expected", "--set", "replicates=0", "--set", "permutations=39"];
    let more = [&settings[..], &["--shares", "0,1", "--repeats", "60", "--output", out.to_str().unwrap()]].concat();
    let found = power(&path, &more);
    assert_eq!((found["level"].as_str(), found["n"].as_u64()), (Some("F"), Some(200)));
    let rate = |metric: usize, share: usize| {
        found["metrics"][metric]["shares"][share]["by-permutation"]["rate"].as_f64().unwrap()
    };
    // At the level of 5 % up to four standard errors of 60 repeats.
    assert!(rate(0, 0) <= 0.17 && rate(1, 0) <= 0.17, "{found}");
    assert!(rate(0, 1) > 0.95, "{found}");
    assert_eq!(found["metrics"][0]["smallest-by-permutation"], 1.0);
    assert!(found["metrics"][0]["shares"][0]["by-interval"].is_null());
    let names = files(&out);
    for name in ["power.html", "power.json", "figures/power.svg", "tables/power.csv", "tables/smallest.tex"] {
        assert!(names.iter().any(|known| known == name), "{name} is missing of {names:?}");
    }
}

#[test]
fn the_interval_finds_exchanged_predictions_and_leaves_untouched_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = curves(folder.path());
    let out = folder.path().join("out");
    let settings = ["--metrics", "c-td,observed-expected", "--set", "replicates=100", "--set", "permutations=0"];
    let more = [&settings[..], &["--shares", "0,1", "--repeats", "60", "--output", out.to_str().unwrap()]].concat();
    let found = power(&path, &more);
    let at = |metric: usize, share: usize| &found["metrics"][metric]["shares"][share];
    let rate = |metric: usize, share: usize| at(metric, share)["by-interval"]["rate"].as_f64().unwrap();
    // Intervals of 100 replicates exclude 0 in 5 to 8 % where there is no gap; up to four standard errors of 60 repeats.
    assert!(rate(0, 0) <= 0.22 && rate(1, 0) <= 0.22, "{found}");
    // Exchanged curves are no prediction, and leave the mean as it is.
    assert!(rate(0, 1) > 0.95 && rate(1, 1) <= 0.22, "{found}");
    assert_eq!(
        (found["metrics"][0]["smallest-by-interval"].as_f64(), at(0, 1)["by-permutation"].as_f64()),
        (Some(1.0), None)
    );
    assert!(
        found["metrics"][1]["smallest-by-interval"].is_null()
            && found["metrics"][0]["smallest-by-permutation"].is_null()
    );
    // The table has the rate with its interval in the columns of the interval, and none in those of the permutation test.
    let table = std::fs::read_to_string(out.join("tables/power.csv")).unwrap();
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = |name: &str| header.iter().position(|of| *of == name).unwrap();
    let last: Vec<&str> = lines.nth(1).unwrap();
    for (name, key) in [("interval", "rate"), ("interval_lower", "lower"), ("interval_upper", "upper")] {
        let (shown, expected) =
            (last[column(name)].parse::<f64>().unwrap(), at(0, 1)["by-interval"][key].as_f64().unwrap());
        assert!((shown - expected).abs() < 1e-9, "{name}: {table}");
    }
    assert_eq!(last[column("permutation")], "");
    let figure = std::fs::read_to_string(out.join("figures/power.svg")).unwrap();
    assert!(figure.contains("interval excludes 0"), "{figure}");
}

#[test]
fn a_group_that_does_not_exist_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = curves(folder.path()).display().to_string();
    let refused = |attribute: &str, level: &str, more: &[&str], (code, sentence): (i32, &str)| {
        let start = ["experiment", "power", "--predictions", &path, "--attribute", attribute, "--level", level];
        fail(start.into_iter().chain(more.iter().copied()), code, sentence);
    };
    refused("sex", "X", &[], (CONFIG, "\"X\" is no level of sex, expected one of [\"F\", \"M\"]"));
    refused("race", "X", &[], (DATA, "race"));
    refused("sex", "F", &["--shares", "0.5,0.2"], (CONFIG, "ascending"));
    refused("sex", "F", &["--target", "1"], (CONFIG, "target is 1"));
    let neither = ["--set", "replicates=0", "--set", "permutations=0"];
    refused("sex", "F", &neither, (CONFIG, "replicates or permutations"));
    // Groups of a cohort are not made again.
    for grouping in ["age:60", "age=old"] {
        let sentence = "--attribute: the groups of \"age\" are those of --cohort, expected its name alone";
        refused(grouping, "old", &["--cohort", &path], (CONFIG, sentence));
    }
}
