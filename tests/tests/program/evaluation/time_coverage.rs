//! Curves and outcomes that do not cover the same times, or are in other units: what is refused, what is scored, and what
//! is reported.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::Path;

use fairtte_data::predictions::Rising;
use fairtte_data::{read_predictions, write_predictions};
use fairtte_tests::{Outcome, fail, files, patients, run, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const DATA: i32 = 4;

/// 100 samples with a hazard of 0.3 per year that are followed for 5 years, and curves on 11 times up to `horizon` years;
/// `per_outcome` and `per_curve` are the units of each in a year.
fn table(horizon: f64, per_outcome: f64, per_curve: f64) -> String {
    let grid: Vec<f64> = (0..=10).map(|k| horizon * f64::from(k) / 10.0).collect();
    let names: Vec<String> = grid.iter().map(|time| (time * per_curve).to_string()).collect();
    let mut text = format!("sample,time,event,{}\n", names.join(","));
    for i in 0..100 {
        let event_time = -(1.0 - (f64::from((i * 37) % 100) + 0.5) / 100.0).ln() / 0.3;
        let hazard = 0.3 * if i % 2 == 0 { 1.2 } else { 0.8 };
        let curve: Vec<String> = grid.iter().map(|time| (-hazard * time).exp().to_string()).collect();
        let (time, event) = (event_time.min(5.0) * per_outcome, u8::from(event_time < 5.0));
        writeln!(text, "s{i},{time},{event},{}", curve.join(",")).unwrap();
    }
    text
}

/// Arguments that evaluate `table` in `folder`.
fn arguments(folder: &Path, table: &str, extra: &[&str]) -> Vec<String> {
    let file = folder.join("curves.csv");
    std::fs::write(&file, table).unwrap();
    let [file, page] = [file, folder.join("scores.html")].map(|path| path.display().to_string());
    let fixed = ["evaluate", "--predictions", &file, "--output", &page, "--set", "replicates=5"];
    fixed.iter().chain(extra).map(|text| (*text).to_owned()).collect()
}

fn numbers(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("scores.json")).unwrap()).unwrap()
}

#[test]
fn outcomes_in_another_unit_than_the_curves_are_refused_with_the_factor() {
    let folder = tempfile::tempdir().unwrap();
    for (per_outcome, per_curve, advice) in [
        (1.0, 365.0, "they look like days and years; multiply the outcome times by 365.25"),
        (365.0, 1.0, "they look like years and days; divide the outcome times by 365.25"),
        (1.0, 12.0, "they look like months and years; multiply the outcome times by 12;"),
        (365.0, 12.0, "they look like months and days; divide the outcome times by 30.4375;"),
    ] {
        let outcome =
            fail(arguments(folder.path(), &table(5.0, per_outcome, per_curve), &[]), DATA, "curves go from 0 to");
        // The message is wrapped to the width of a page.
        let message = outcome.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(message.contains(advice), "{message}");
        assert_eq!(files(folder.path()), ["curves.csv"], "nothing is written");
    }
}

#[test]
fn training_times_in_another_unit_are_refused_and_a_training_sample_without_events_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let train = |scale: f64, event: fn(bool) -> bool| {
        let table = table(5.0, scale, 1.0);
        let rows = table.lines().skip(1).map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            format!("{},{}\n", cells[1], u8::from(event(cells[2] == "1")))
        });
        let path = folder.path().join("train.csv");
        std::fs::write(&path, format!("time,event\n{}", rows.collect::<String>())).unwrap();
        arguments(folder.path(), &self::table(5.0, 1.0, 1.0), &["--train", &path.display().to_string()])
    };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let outcome = fail(train(365.25, |event| event), DATA, "the training times go up to");
    let advice = "they look like days and years; divide the training times by 365.25;";
    assert!(words(&outcome.stderr).contains(advice), "{}", outcome.stderr);
    assert_eq!(files(folder.path()), ["curves.csv", "train.csv"], "nothing is written");
    // Ranges that overlap may be those of another risk.
    let outcome = succeed(train(1.0 / 12.0, |event| event));
    let advice = "they look like years and months; multiply the training times by 12;";
    assert!(words(&outcome.stderr).contains(advice), "{}", outcome.stderr);
    std::fs::remove_file(folder.path().join("scores.html")).unwrap();
    for (event, said) in [(false, "The training sample has no event"), (true, "all weights are 1")] {
        let of: fn(bool) -> bool = if event { |_| true } else { |_| false };
        let outcome = succeed(train(1.0, of));
        assert!(outcome.stderr.contains("warning: ") && outcome.stderr.contains(said), "{}", outcome.stderr);
        let warnings = &numbers(folder.path())["warnings"];
        assert_eq!(warnings[0]["name"], "training-sample", "{warnings}");
        std::fs::remove_file(folder.path().join("scores.html")).unwrap();
    }
    let outcome = succeed(train(1.0, |event| event));
    assert!(!outcome.stderr.contains("training sample"), "{}", outcome.stderr);
}

#[test]
fn curves_that_end_early_are_scored_up_to_their_end_and_the_rest_is_told_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = succeed(arguments(folder.path(), &table(1.0, 1.0, 1.0), &[]));
    let found = numbers(folder.path());
    assert_eq!(found["times"]["upper"], 1.0);
    let rule = found["times"]["rule"].as_str().unwrap();
    assert!(
        rule.contains("; upper end clipped from ") && rule.ends_with(" to 1, the last time of the curves"),
        "{rule}"
    );
    let coverage = &found["coverage"];
    let n = |key: &str| coverage[key].as_u64().unwrap();
    assert_eq!((n("n"), n("n-before"), n("n-beyond")), (100, 0, 74), "exp(-0.3) of 100 samples live for a year");
    assert_eq!(n("n-events") - n("n-events-beyond"), 26);
    let note = format!(
        "74 % of the samples (74 of 100) and {:.0} % of the events ({} of {}) are observed beyond the last time of the \
         curves (1): C^td reads the curves there at their last value",
        100.0 * n("n-events-beyond") as f64 / n("n-events") as f64,
        n("n-events-beyond"),
        n("n-events")
    );
    let page = std::fs::read_to_string(folder.path().join("scores.html")).unwrap();
    assert!(outcome.stderr.contains(&note), "{note}\n{}", outcome.stderr);
    let as_shown = note.replace("C^td", "C<sup>td</sup>").replace(" % ", "\u{a0}% ");
    assert!(page.contains(&as_shown), "{as_shown} is missing on the page");
    assert!(found["input"]["notes"].to_string().contains(&note), "{note} is missing in the JSON");
}

#[test]
fn curves_over_the_whole_follow_up_are_scored_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = succeed(arguments(folder.path(), &table(5.0, 1.0, 1.0), &[]));
    assert!(!outcome.stderr.contains("observed beyond"), "{}", outcome.stderr);
    assert_eq!(numbers(folder.path()).get("coverage"), None);
    assert!(!numbers(folder.path())["times"]["rule"].as_str().unwrap().contains("curves"));
}

#[test]
fn given_times_outside_the_curves_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let evaluate = |times: &str| run(arguments(folder.path(), &table(1.0, 1.0, 1.0), &["--set", times]));
    assert_eq!(evaluate("times=[0.4,0.9]").code, 0);
    let Outcome { code, stderr, .. } = evaluate("times=[0.5,2]");
    assert_eq!(code, CONFIG, "{stderr}");
    assert!(stderr.contains("times: evaluation time 2 lies outside [0, 1], the times of the curves"), "{stderr}");
}

#[test]
fn a_run_says_what_its_curves_do_not_cover() {
    let folder = tempfile::tempdir().unwrap();
    let trained = patients(folder.path(), 160, |_, _| {}).set("training.epochs=1").set("evaluation.replicates=5");
    let first = succeed(trained.arguments("train"));
    let folder = trained.output();
    let path = folder.join("predictions.parquet");
    let curves = read_predictions(&path, Rising::Refuse).unwrap();
    let n = curves.grid.len() / 3;
    let survival = curves.survival.slice_move(ndarray::s![.., ..n]);
    write_predictions(&path, &curves.samples, &curves.grid[..n], survival.view()).unwrap();
    let again = succeed(["evaluate", &folder.display().to_string()]);
    let last = curves.grid[n - 1];
    let told = format!("are observed beyond the last time of the curves ({last}): C^td reads the curves there");
    assert!(!first.stderr.contains("beyond the last time") && again.stderr.contains(&told), "{}", again.stderr);
    let found: Value = serde_json::from_slice(&std::fs::read(folder.join("evaluation.json")).unwrap()).unwrap();
    assert!(found["coverage"]["n-beyond"].as_u64().unwrap() > 0);
    assert!(found["times"]["upper"].as_f64().unwrap() <= last);
    let times = format!("times=[{last},{}]", 2.0 * last);
    fail(["evaluate", &folder.display().to_string(), "--set", &times], CONFIG, "the times of the curves");
}

#[test]
fn a_horizon_beyond_the_curves_or_the_follow_up_is_refused_and_a_metric_there_is_undefined() {
    let folder = tempfile::tempdir().unwrap();
    let short = table(2.0, 1.0, 1.0);
    for (table, horizon, sentence) in [
        (&short, "2.5", "horizon: evaluation time 2.5 lies outside [0, 2], the times of the curves"),
        (&table(9.0, 1.0, 1.0), "6", "horizon: time 6 lies beyond 5, the last observed time"),
    ] {
        fail(arguments(folder.path(), table, &["--horizon", horizon]), CONFIG, sentence);
        assert_eq!(files(folder.path()), ["curves.csv"], "nothing is written");
        let twice = folder.path().join("curves.csv").display().to_string();
        let models = ["--horizon", horizon, "--predictions", &twice, "--names", "a,b"];
        fail(arguments(folder.path(), table, &models), CONFIG, sentence);
    }
    succeed(arguments(folder.path(), &short, &["--metrics", "brier@2,brier@2.5,observed-expected@2.5"]));
    let found = numbers(folder.path());
    assert!(found["metrics"][0]["overall"]["value"].is_number());
    for (place, label) in [(1, "Brier (2.5)"), (2, "O/E (2.5)")] {
        let metric = &found["metrics"][place];
        let reason = "evaluation time 2.5 lies outside [0, 2], the times of the curves";
        assert_eq!((&metric["label"], &metric["overall"]["undefined"]), (&label.into(), &reason.into()));
    }
}
