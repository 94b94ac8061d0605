//! `evaluate --threshold`: the numbers of decisions in all outputs, by hand, and thresholds that are refused.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;

use fairtte_tests::{fail, run, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;

/// Eight people, none censored by time 2; the column 2 is S(2).
const TABLE: &str = "sample,time,event,sex,0,2,4\n\
    a,1,1,F,1,0.2,0.1\nb,1.5,1,F,1,0.8,0.7\nc,3,1,F,1,0.4,0.3\nd,4,0,F,1,0.9,0.8\n\
    e,1,1,M,1,0.3,0.2\nf,2,1,M,1,0.5,0.4\ng,3,1,M,1,0.7,0.6\nh,4,0,M,1,0.9,0.5\n";

fn arguments(folder: &Path, extra: &[&str]) -> Vec<String> {
    let table = folder.join("curves.csv");
    std::fs::write(&table, TABLE).unwrap();
    let (table, page) = (table.display().to_string(), folder.join("scores.html").display().to_string());
    let fixed = ["evaluate", "--predictions", &table, "--output", &page, "--attributes", "sex", "--min-events", "0"];
    let few = ["--set", "replicates=20", "--set", "reading=step"];
    fixed.iter().chain(&few).chain(extra).map(|text| (*text).to_owned()).collect()
}

fn near(found: &Value, expected: f64) {
    assert!((found.as_f64().unwrap() - expected).abs() < 1e-12, "{found}, expected {expected}");
}

#[test]
fn decisions_by_hand_are_in_json_table_page_and_csv() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = succeed(arguments(folder.path(), &["--horizon", "2", "--threshold", "0.5,0.2"]));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let numbers: Value = serde_json::from_str(&read("scores.json")).unwrap();
    let metric = |name: &str| {
        let metrics = numbers["metrics"].as_array().unwrap();
        metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("no {name}"))
    };
    // At 0.5 a, c, e and f are positive (the risk of f is 0.5): of the women one of two cases and one of two controls, of
    // the men both cases and no control.
    for (name, all, women, men) in [
        ("sensitivity:0.5", 0.75, 0.5, 1.0),
        ("specificity:0.5", 0.75, 0.5, 1.0),
        ("false-positive-rate:0.5", 0.25, 0.5, 0.0),
        ("ppv:0.5", 0.75, 0.5, 1.0),
        ("npv:0.5", 0.75, 0.5, 1.0),
        ("selection-rate:0.5", 0.5, 0.5, 0.5),
        ("net-benefit:0.5", 0.25, 0.0, 0.5),
        // At 0.2 b and g are positive too (the risk of b is 1 - 0.8), and a false positive costs 1/4.
        ("net-benefit:0.2", 0.4375, 0.4375, 0.4375),
    ] {
        near(&metric(name)["overall"]["value"], all);
        let groups = &metric(name)["attributes"][0]["groups"];
        near(&groups[0]["estimate"]["value"], women);
        near(&groups[1]["estimate"]["value"], men);
        assert!(read("scores.csv").contains(&format!("{name},sex,gap,")), "{name}");
    }
    assert_eq!(metric("sensitivity:0.5")["gap-name"], "equal opportunity difference");
    assert_eq!(metric("selection-rate:0.5")["no-best"], true);
    let at = &numbers["decisions"]["thresholds"][0];
    near(&at["attributes"][0]["equalized-odds-difference"]["value"], 0.5);
    near(&at["overall"]["net-benefit-of-all"], 0.0);
    assert_eq!(numbers["decisions"]["thresholds"][1]["overall"]["n-positive"], 6);
    assert!(read("scores.csv").contains("equalized-odds:0.5,sex,gap,,0.5,"), "{}", read("scores.csv"));
    let words = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["Horizon: 2.", "Equalised-odds difference of sex at 50 %: 0.500", "no value is better than another"] {
        assert!(words.contains(part), "{part} is missing in\n{}", outcome.stdout);
    }
    for part in ["<section id=\"decisions\">", "Net benefit by threshold, sex: F", "Horizon: 2."] {
        assert!(read("scores.html").contains(part), "{part} is missing on the page");
    }
}

#[test]
fn without_a_horizon_the_default_is_named_and_without_a_threshold_nothing_is_said() {
    let folder = tempfile::tempdir().unwrap();
    // The event times are 1, 1, 1.5, 2, 3 and 3.
    let outcome = succeed(arguments(folder.path(), &["--threshold", "0.5"]));
    assert!(outcome.stdout.contains("Horizon: 1.75, the default"), "{}", outcome.stdout);
    let plain = succeed(arguments(folder.path(), &[]));
    assert!(!plain.stdout.contains("decisions") && !plain.stdout.contains("Sensitivity"), "{}", plain.stdout);
    let numbers: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("scores.json")).unwrap()).unwrap();
    assert!(numbers.get("decisions").is_none() && numbers["settings"].get("thresholds").is_none());
}

#[test]
fn thresholds_that_are_no_risks_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (extra, sentence) in [
        (["--threshold", "0"], "predicted risks above 0 and below 1"),
        (["--threshold", "1.5"], "predicted risks above 0 and below 1"),
        (["--threshold", "0.2,0.2"], "each threshold once"),
        (["--metrics", "sensitivity"], "a threshold of the predicted risk, as in sensitivity:0.2"),
        (["--metrics", "ibs:0.2"], "no colon: this metric makes no decisions at a threshold"),
        (["--metrics", "ppv:2"], "a number between 0 and 1 after the colon"),
    ] {
        fail(arguments(folder.path(), &extra), CONFIG, sentence);
    }
    assert_eq!(run(arguments(folder.path(), &["--metrics", "ppv:0.5,npv@2:0.5"])).code, 0);
}
