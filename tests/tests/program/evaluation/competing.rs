//! `evaluate --cause`: the cumulative incidence of one of several causes, in one table or beside a cohort.

use std::fmt::Write as _;
use std::path::Path;

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::competing::{
    AalenJohansen, CompetingOutcomes, IncidenceCurves, IncidenceVariance, cause_brier_score, cause_concordance,
};
use fairtte_metrics::{CensoringCurve, CensoringTies, Reading, Risk};
use fairtte_tests::{fail, run, succeed};
use ndarray::Array2;

const CONFIG: i32 = 3;
const N: usize = 240;
const GRID: [f64; 4] = [0.0, 2.0, 5.0, 9.0];

/// Time, cause, sex and risk of row `k`: women have cause 2 often, men seldom; the risk says something about cause 1.
fn row(k: usize) -> (f64, u32, &'static str, f64) {
    let mixed = |factor: usize, modulus: usize| (k * factor % modulus) as f64 / modulus as f64;
    let (woman, u, v) = (k.is_multiple_of(2), mixed(37, 97), mixed(61, 89));
    let cause = if u < 0.2 {
        0
    } else if v < if woman { 0.5 } else { 0.15 } {
        2
    } else {
        1
    };
    let time = 0.5 + (9.0 * mixed(53, 211) * 100.0).round() / 100.0;
    let risk = 0.15 + 0.3 * mixed(29, 83) + if cause == 1 { 0.2 } else { 0.0 };
    (time, cause, if woman { "F" } else { "M" }, risk)
}

fn incidence(k: usize, t: f64) -> f64 {
    let risk = row(k).3;
    risk * t / GRID[3]
}

fn table(cell: impl Fn(usize, f64) -> f64) -> String {
    let mut text = "sample,time,event,sex,0,2,5,9\n".to_owned();
    for k in 0..N {
        let (time, cause, sex, _) = row(k);
        let cells = GRID.map(|t| cell(k, t).to_string()).join(",");
        writeln!(text, "s{k},{time},{cause},{sex},{cells}").expect("a text grows");
    }
    text
}

fn read(path: &Path) -> EvaluationReport {
    serde_json::from_str(&std::fs::read_to_string(path).expect("the numbers were written")).expect("they are a report")
}

fn outcomes() -> CompetingOutcomes {
    let (time, cause) = (0..N).map(|k| (row(k).0, row(k).1)).unzip();
    CompetingOutcomes::new(time, cause).expect("valid outcomes")
}

fn curves() -> IncidenceCurves {
    let values = Array2::from_shape_fn((N, GRID.len()), |(k, column)| incidence(k, GRID[column]));
    IncidenceCurves::new(GRID.to_vec(), values).expect("rising curves")
}

fn evaluate(folder: &Path, text: &str, more: &[&str]) -> Vec<String> {
    let predictions = folder.join("incidence.csv");
    std::fs::write(&predictions, text).expect("the folder can be written");
    let (predictions, output) = (predictions.display().to_string(), folder.join("page.html").display().to_string());
    let words = ["evaluate", "--predictions", &predictions, "--output", &output, "--set", "replicates=40"];
    let words = words.into_iter().chain(["--permutations", "19"]).chain(more.iter().copied());
    words.map(str::to_owned).collect()
}

#[test]
fn one_table_gives_the_metrics_of_the_cause_by_group_with_gaps_and_intervals() {
    let folder = tempfile::tempdir().expect("a folder");
    let more = ["--cause", "1", "--attributes", "sex", "--horizon", "5", "--set", "reading=linear"];
    let shown = succeed(evaluate(folder.path(), &table(incidence), &more));
    let report = read(&folder.path().join("page.json"));
    let about = report.cause.expect("a cause");
    let n_other = (0..N).filter(|k| row(*k).1 == 2).count();
    assert_eq!((about.cause, about.n_causes, about.n_competing), (1, 2, n_other));
    assert_eq!(report.n_events, (0..N).filter(|k| row(*k).1 == 1).count());
    let names: Vec<&str> = report.metrics.iter().map(|metric| metric.name.as_str()).collect();
    let expected = ["cause-c", "cause-c-td", "cause-auc-td", "cause-ibs", "cause-ici", "cause-observed-expected"];
    assert_eq!(names, expected);
    // Against the library, which is checked against other packages.
    let (outcomes, curves) = (outcomes(), curves());
    let censoring = CensoringCurve::fit(outcomes.all_causes(), CensoringTies::EventsFirst).expect("samples");
    let risk = Risk::new(curves.all_at(5.0, Reading::Linear)).expect("finite");
    let c = cause_concordance(&outcomes, 1, &risk, &censoring, Some(5.0)).expect("pairs");
    let value = |name: &str| report.metric(name).and_then(|metric| metric.overall.value).expect("a value");
    assert!((value("cause-c") - c.value).abs() < 1e-9 && c.value > 0.6);
    let aalen_johansen = AalenJohansen::fit(&outcomes, 1, IncidenceVariance::Delta).expect("samples").at(5.0);
    let mean = curves.all_at(5.0, Reading::Linear).iter().sum::<f64>() / N as f64;
    assert!((value("cause-observed-expected") - aalen_johansen / mean).abs() < 1e-9);
    for metric in &report.metrics {
        let sex = &metric.attributes[0];
        assert!(sex.gap.value.is_some_and(|gap| gap > 0.0) && sex.gap.lower.is_some(), "{}", metric.name);
        assert!(sex.groups.iter().all(|group| group.estimate.lower < group.estimate.value), "{}", metric.name);
        assert!(sex.gap_by_chance.is_some() && sex.worst_group.is_some() && sex.differences.len() == 1);
    }
    // 1 - Aalen-Johansen, not Kaplan-Meier: it stays above it.
    let last = report.curves[0].kaplan_meier.survival.last().copied().expect("steps");
    let last_time = report.curves[0].kaplan_meier.times.last().copied().expect("steps");
    let curve = AalenJohansen::fit(&outcomes, 1, IncidenceVariance::Delta).expect("samples");
    assert!((last - 1.0 + curve.at(last_time)).abs() < 1e-12);
    let women = report.groups_summary.iter().find(|group| group.level.as_deref() == Some("F")).expect("women");
    assert_eq!(women.n_competing, Some((0..N).step_by(2).filter(|k| row(*k).1 == 2).count()));
    assert!(shown.stdout.contains("of cause 1,") && shown.stdout.contains("C of the cause (5)"), "{}", shown.stdout);
    let page = std::fs::read_to_string(folder.path().join("page.html")).expect("a page");
    for words in ["Aalen-Johansen incidence of cause 1", "1 - incidence of cause 1", "without cause 1"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("survival probability"), "nothing on the page is called survival");
    let csv = std::fs::read_to_string(folder.path().join("page.csv")).expect("a table");
    assert!(csv.contains("cause-auc-td,sex,gap,") && csv.contains("events-of-other-causes,sex,group,F,"), "{csv}");
}

#[test]
fn a_cohort_with_causes_gives_the_same_numbers_and_other_times_are_those_of_brier_scores() {
    let folder = tempfile::tempdir().expect("a folder");
    let more =
        ["--cause", "2", "--attributes", "sex", "--set", "reading=linear", "--metrics", "cause-brier@5,cause-auc@5"];
    succeed(evaluate(folder.path(), &table(incidence), &more));
    let alone = read(&folder.path().join("page.json"));
    let (mut cohort, mut predictions) =
        ("sample_id,subject_id,time,event,sex_group\n".to_owned(), "sample_id,0,2,5,9\n".to_owned());
    for k in 0..N {
        let (time, cause, sex, _) = row(k);
        writeln!(cohort, "s{k},s{k},{time},{cause},{sex}").expect("a text grows");
        writeln!(predictions, "s{k},{}", GRID.map(|t| incidence(k, t).to_string()).join(",")).expect("a text grows");
    }
    let path = folder.path().join("cohort.csv");
    std::fs::write(&path, cohort).expect("the folder can be written");
    let path = path.display().to_string();
    let more = ["--cause", "2", "--cohort", &path, "--set", "reading=linear", "--metrics", "cause-brier@5,cause-auc@5"];
    succeed(evaluate(folder.path(), &predictions, &more));
    let beside = read(&folder.path().join("page.json"));
    assert_eq!(alone.metrics, beside.metrics);
    let outcomes = outcomes();
    let censoring = CensoringCurve::fit(outcomes.all_causes(), CensoringTies::EventsFirst).expect("samples");
    let brier = cause_brier_score(&outcomes, 2, &curves(), &censoring, Reading::Linear, &[5.0]).expect("a score");
    let found = alone.metric("cause-brier@5").and_then(|metric| metric.overall.value).expect("a value");
    assert!((found - brier.values[0]).abs() < 1e-9);
}

#[test]
fn survival_in_place_of_incidence_is_refused_and_so_are_words_that_do_not_fit() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |text: &str, more: &[&str]| {
        let outcome = run(evaluate(folder.path(), text, more));
        assert!(outcome.code > 0, "{}", outcome.stdout);
        outcome.stderr
    };
    let survival = table(|k, t| 1.0 - incidence(k, t));
    let said = refused(&survival, &["--cause", "1"]);
    assert!(
        said.contains("look like survival (240 of 240 rows), expected the cumulative incidence of the cause"),
        "{said}"
    );
    let falls = table(|k, t| if k == 7 && t > 5.0 { 0.01 } else { incidence(k, t) });
    let said = refused(&falls, &["--cause", "1"]);
    assert!(said.contains("incidence of sample \"s7\" falls from") && said.contains("row 9"), "{said}");
    let said = refused(&table(incidence), &["--cause", "1", "--metrics", "ibs"]);
    assert!(said.contains("metric \"ibs\" would count events of other causes as censorings"), "{said}");
    let said = refused(&table(incidence), &[]);
    assert!(said.contains("is 2, expected 1 (observed) or 0 (censored)") || said.contains("look like risk"), "{said}");
    let half = table(incidence).replacen(",1,", ",1.5,", 1);
    let said = refused(&half, &["--cause", "1"]);
    assert!(said.contains("is 1.5, expected 0 (censored) or the number of a cause"), "{said}");
    let said = refused(&table(incidence), &["--cause", "0"]);
    assert!(said.contains("0 is not in"), "{said}");
    let said = refused(&table(incidence), &["--cause", "1", "--repair", "monotone"]);
    assert!(said.contains("cannot be used with"), "{said}");
    let single = "sample,time,event,1\na,1,1,0.5\nb,2,0,0.75\n";
    let said = refused(single, &["--metrics", "cause-c"]);
    assert!(said.contains("metric \"cause-c\" needs outcomes with causes"), "{said}");
}

#[test]
fn a_cause_that_no_event_has_is_refused_with_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = table(incidence);
    let refused = |more: &[&str]| {
        fail(evaluate(folder.path(), &text, &[&["--cause", "11"][..], more].concat()), CONFIG, "--cause: no event of")
    };
    let expected = "incidence.csv has cause 11, expected one of 1, 2";
    let of_one = refused(&[]).stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(of_one.contains(expected), "{of_one}");
    let second = folder.path().join("second.csv");
    std::fs::write(&second, &text).expect("the folder can be written");
    refused(&["--predictions", &second.display().to_string()]);
    let cohort = folder.path().join("cohort.csv");
    std::fs::write(&cohort, "sample_id,subject_id,time,event\na,a,1,1\nb,b,2,2\n").expect("the folder can be written");
    refused(&["--cohort", &cohort.display().to_string()]);
    assert!(!folder.path().join("page.html").exists());
}
