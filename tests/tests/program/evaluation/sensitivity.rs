//! `evaluate --sensitivity`: the ends of the scale by hand, who is tilted, all outputs, and what is refused.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;

use fairtte_data::table::Table;
use fairtte_tests::{SmallRun, fail, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const N: usize = 120;
/// Of each group, who drops out: at a time before the horizon, while every later event is still to come.
const EVERY: usize = 4;

/// Time and event of a sample: events at 1 to 3, drop-outs at 0.5 to 0.75, the others followed to 4.
fn outcome(k: usize) -> (f64, u8) {
    let share = ((k * 37) % 101) as f64 / 101.0;
    match k % EVERY {
        0 => (0.5 + 0.25 * share, 0),
        1 | 2 => (1.0 + 2.0 * share, 1),
        _ => (4.0, 0),
    }
}

fn sex(k: usize) -> &'static str {
    if (k / EVERY).is_multiple_of(2) { "F" } else { "M" }
}

/// Those of site A are followed to the horizon.
fn site(k: usize) -> &'static str {
    if k % EVERY == 3 { "A" } else { "B" }
}

/// S at 2 of a model that knows a little.
fn survival_at_two(k: usize) -> f64 {
    0.3 + 0.4 * ((k * 13) % 29) as f64 / 29.0 + if k % EVERY == 3 { 0.1 } else { 0.0 }
}

fn table(folder: &Path) -> String {
    let line = |k: usize| {
        let ((time, event), s) = (outcome(k), survival_at_two(k));
        format!("p{k:03},{time},{event},{},{},1,{s},{}", sex(k), site(k), s * s)
    };
    let lines: Vec<String> = (0..N).map(line).collect();
    let path = folder.join("curves.csv");
    std::fs::write(&path, format!("sample,time,event,sex,site,0,2,4\n{}\n", lines.join("\n"))).unwrap();
    path.display().to_string()
}

fn arguments(folder: &Path, extra: &[&str]) -> Vec<String> {
    let (table, page) = (table(folder), folder.join("scores.html").display().to_string());
    let fixed = ["evaluate", "--predictions", &table, "--output", &page, "--attributes", "sex", "--horizon", "2"];
    let few = ["--metrics", "observed-expected,brier", "--set", "replicates=0", "--set", "permutations=0"];
    let fast = ["--set", "sensitivity.replicates=12", "--imputations", "3", "--sensitivity"];
    fixed.iter().chain(&few).chain(&fast).chain(extra).map(|text| (*text).to_owned()).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Observed divided by expected at 2 if the drop-outs of the groups in `as_events` have the event at once and those of the others
/// never; of the samples that `is_in`.
fn by_hand(as_events: &[&str], is_in: impl Fn(usize) -> bool) -> f64 {
    let rows: Vec<usize> = (0..N).filter(|k| is_in(*k)).collect();
    let has_event = |k: &&usize| match outcome(**k) {
        (time, 1) => time <= 2.0,
        (time, _) => time < 4.0 && as_events.contains(&sex(**k)),
    };
    let expected: f64 = rows.iter().map(|k| 1.0 - survival_at_two(*k)).sum();
    rows.iter().filter(has_event).count() as f64 / expected
}

#[test]
fn at_the_ends_of_the_scale_drop_outs_have_the_event_at_once_or_never() {
    let folder = tempfile::tempdir().unwrap();
    succeed(arguments(folder.path(), &["--deltas", "-50,0,50"]));
    let text = std::fs::read_to_string(folder.path().join("scores.json")).unwrap();
    let found: Value = serde_json::from_str(&text).unwrap();
    let report = &found["sensitivity"]["report"];
    let by_sex = &report["attributes"][0];
    assert_eq!((&by_sex["attribute"], &by_sex["end"]), (&"sex".into(), &4.0.into()));
    let counts = |level: usize| {
        ["n", "n-events", "n-dropouts", "n-tilted", "n-administrative"]
            .map(|key| by_sex["follow-up"][level][key].as_u64())
    };
    assert_eq!(counts(0), [120, 60, 30, 30, 30].map(Some));
    assert_eq!(counts(1), [60, 30, 15, 15, 15].map(Some));
    let points = &by_sex["metrics"][0]["points"];
    for (place, as_events) in [(0, &[][..]), (2, &["F", "M"])] {
        let point = &points[place];
        assert!((number(&point["overall"]["value"]) - by_hand(as_events, |_| true)).abs() < 1e-12);
        for (level, name) in ["F", "M"].into_iter().enumerate() {
            let value = number(&point["groups"][level]["estimate"]["value"]);
            assert!((value - by_hand(as_events, |k| sex(k) == name)).abs() < 1e-12, "{name}");
        }
    }
    // At random, between the two ends.
    let at_random = number(&points[1]["overall"]["value"]);
    assert!(by_hand(&[], |_| true) < at_random && at_random < by_hand(&["F", "M"], |_| true));
}

#[test]
fn one_tilted_group_makes_a_gap_that_every_output_says() {
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("tables").display().to_string();
    let extra = ["--deltas=-1,0,8", "--tilt", "sex=F", "--tables", &tables];
    let outcome = succeed(arguments(folder.path(), &extra));
    assert!(outcome.stdout.contains("\nif censoring is informative\n"), "{}", outcome.stdout);
    // Sentences are wrapped.
    let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("the hazard of the drop-outs of sex F multiplied"), "{said}");
    assert!(said.contains("a gap appears above a hazard ratio of"), "{said}");
    assert!(outcome.stderr.contains("81 evaluations of completed data"), "{}", outcome.stderr);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let found: Value = serde_json::from_str(&read("scores.json")).unwrap();
    let by_sex = &found["sensitivity"]["report"]["attributes"][0];
    let tilted = [0, 1, 2].map(|level: usize| by_sex["follow-up"][level]["n-tilted"].as_u64());
    assert_eq!(tilted, [15, 15, 0].map(Some));
    let points = by_sex["metrics"][0]["points"].as_array().unwrap();
    let values = |level: usize| points.iter().map(move |point| number(&point["groups"][level]["estimate"]["value"]));
    let (women, men): (Vec<f64>, Vec<f64>) = (values(0).collect(), values(1).collect());
    assert!(women[0] < women[1] && women[1] < women[2], "{women:?}");
    assert!(men.iter().all(|value| value.to_bits() == men[0].to_bits()), "{men:?}");
    let tipping = &by_sex["metrics"][0]["tipping"].as_array().unwrap()[0];
    assert_eq!(tipping["verdict"], "gap-appears");
    let delta = number(&tipping["delta"]);
    assert!(delta > 0.0 && delta < 8.0, "{delta}");
    let html = read("scores.html");
    assert!(html.contains("<h2>If censoring is informative</h2>"));
    assert!(html.contains(&format!("turns at {:.2}", delta.exp())), "the tipping point in the figure");
    let kinds = Table::read(&folder.path().join("scores.csv")).unwrap().text("kind").unwrap();
    let n = |kind: &str| kinds.iter().filter(|found| found.as_deref() == Some(kind)).count();
    // Two metrics at three deltas, two groups, one pair.
    assert_eq!((n("sensitivity-all"), n("sensitivity-group"), n("sensitivity-gap")), (6, 12, 6));
    assert_eq!((n("sensitivity-worst"), n("sensitivity-difference")), (6, 6));
    assert!(n("sensitivity-tipping-delta") >= 1);
    assert!(read("tables/sensitivity-observed-expected_sex.md").contains("| hazard ratio of the censored | all |"));
}

#[test]
fn draws_are_those_of_the_evaluation_within_the_levels_of_another_attribute_too() {
    let folder = tempfile::tempdir().unwrap();
    let of_sex = |extra: &[&str]| {
        let fixed = ["--deltas", "-1,0,1", "--attributes", "site", "--set", "sensitivity.replicates=40"];
        succeed(arguments(folder.path(), &[&fixed, extra].concat()));
        let text = std::fs::read_to_string(folder.path().join("scores.json")).unwrap();
        let found: Value = serde_json::from_str(&text).unwrap();
        std::fs::remove_file(folder.path().join("scores.html")).unwrap();
        let by_sex = &found["sensitivity"]["report"]["attributes"][0];
        assert_eq!(by_sex["attribute"], "sex");
        let overall = &by_sex["metrics"][0]["points"][1]["overall"];
        ["value", "lower", "upper"].map(|key| number(&overall[key]))
    };
    let [value, lower, upper] = of_sex(&[]);
    let [within, from, to] = of_sex(&["--set", "stratify={ attribute = \"site\" }"]);
    assert!(lower < within && within < upper, "{within} {value} {lower} {upper}");
    assert!((from - lower).abs() > 1e-3 && (to - upper).abs() > 1e-3, "the same draws: {from} {to}");
    let by_event = of_sex(&["--set", "stratify=event"]);
    assert!((by_event[1] - from).abs() > 1e-3, "the same strata: {by_event:?} {from}");
}

#[test]
fn a_run_file_asks_for_it_and_the_run_and_a_later_evaluation_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path())
        .set("evaluation.sensitivity.imputations=3")
        .set("evaluation.sensitivity.replicates=4")
        .set("evaluation.sensitivity.deltas=[-1, 0, 1]")
        .set("evaluation.sensitivity.model.risk-strata.n=2");
    run.train();
    let read = |name: &str| std::fs::read_to_string(run.output().join(name)).unwrap();
    let (trained, html) = (read("evaluation.json"), read("report.html"));
    let found: Value = serde_json::from_str(&trained).unwrap();
    let report = &found["sensitivity"]["report"];
    assert_eq!(report["settings"]["model"]["risk-strata"]["n"], 2);
    assert!(!report["attributes"].as_array().unwrap().is_empty(), "{report}");
    assert!(html.contains("Kaplan-Meier in every group and 2 strata of the predicted risk"), "the method");
    let path = run.output().display().to_string();
    succeed(["evaluate", &path]);
    assert!(read("evaluation.json") == trained, "the same numbers from the saved files");
    let elsewhere = folder.path().join("again").display().to_string();
    succeed(["evaluate", &path, "--output", &elsewhere, "--set", "sensitivity.model=kaplan-meier"]);
    let again: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("again/evaluation.json")).unwrap()).unwrap();
    assert_eq!(again["sensitivity"]["report"]["settings"]["model"], "kaplan-meier");
}

#[test]
fn what_cannot_be_analysed_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 9] = [
        (&["--tilt", "sex=X"], "attribute \"sex\" has no level \"X\", expected one of: F, M"),
        (&["--tilt", "race=X"], "no attribute is called \"race\", expected one of: sex"),
        (&["--deltas", "-1,1"], "sensitivity.deltas is [-1.0, 1.0], expected ascending numbers in [-50, 50] with 0"),
        (&["--administrative", "9"], "sensitivity.administrative is 9 with a last observed time of"),
        (&["--administrative", "1.5"], "time 2 is not before 1.5, the administrative end of follow-up"),
        (&["--administrative", "-1"], "sensitivity.administrative is -1, expected a finite number > 0"),
        (&["--imputations", "1"], "sensitivity.imputations is 1, expected a whole number from 2 to 10000"),
        (&["--set", "sensitivity.replicates=-1"], "replicates"),
        (&["--set", "sensitivity.delta=1"], "deltas"),
    ];
    for (extra, sentence) in cases {
        let mut call = arguments(folder.path(), &[]);
        if extra[0] == "--imputations" {
            let place = call.iter().position(|word| word == "--imputations").unwrap();
            call.drain(place..place + 2);
        }
        fail(call.iter().map(String::as_str).chain(extra.iter().copied()), CONFIG, sentence);
        assert!(!folder.path().join("scores.json").exists(), "{extra:?}");
    }
    let call = arguments(folder.path(), &[]);
    let without = call.iter().filter(|word| *word != "--sensitivity");
    fail(without, 2, "--sensitivity");
    let table = folder.path().join("curves.csv").display().to_string();
    let twice = call.iter().map(String::as_str).chain(["--predictions", table.as_str(), "--names", "a,b"]);
    fail(twice, CONFIG, "sensitivity to informative censoring is computed for one model");
}
