//! The evaluation of any metric: the same numbers as those of the fast path where both exist.

use super::cohort::{Cohort, cohort, groups, halves, settings};
use fairtte_metrics::evaluation::{
    AttributeDifferences, AttributeReport, Difference, Estimate, MetricDescription, MetricReport, RowMetric,
    compare_metric, evaluate_metric,
};
use fairtte_metrics::rank::{TiedPredictions, concordance_td};
use fairtte_metrics::resampling::IntervalMethod;
use fairtte_metrics::{Direction, EvaluationSettings, Groups, MetricError, Reading, SurvivalCurves, compare_models};

const C_TD: MetricDescription<'static> = MetricDescription {
    name: "slow_c_td",
    label: "C^td",
    convention: "as the fast path, one replicate at a time",
    direction: Direction::HigherIsBetter,
};

fn c_td(cohort: &Cohort, curves: &SurvivalCurves, rows: &[usize]) -> Result<f64, MetricError> {
    let (outcomes, curves) = (cohort.outcomes.select(rows), curves.select(rows));
    Ok(concordance_td(&outcomes, &curves, Reading::Step, TiedPredictions::Strict)?.value)
}

fn slow(cohort: &Cohort, groups: &[Groups], settings: &EvaluationSettings) -> MetricReport {
    let metric = |rows: &[usize]| c_td(cohort, &cohort.curves, rows);
    evaluate_metric(C_TD, metric, &cohort.subjects, &cohort.outcomes, groups, settings).unwrap()
}

fn step(interval: IntervalMethod) -> EvaluationSettings {
    EvaluationSettings { interval, reading: Reading::Step, ..settings(60) }
}

fn close(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-12,
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Equal up to the count of pairs, which only the fast path knows.
fn same_estimate(fast: &Estimate, slow: &Estimate) -> bool {
    let numbers = close(fast.value, slow.value) && close(fast.lower, slow.lower) && close(fast.upper, slow.upper);
    let fast = Estimate { value: slow.value, lower: slow.lower, upper: slow.upper, n_comparable: None, ..fast.clone() };
    numbers && fast == *slow
}

fn same_difference(fast: &Difference, slow: &Difference) -> bool {
    let numbers = close(fast.value, slow.value) && close(fast.lower, slow.lower) && close(fast.upper, slow.upper);
    numbers && close(fast.p_value, slow.p_value) && fast.undefined_replicates == slow.undefined_replicates
}

fn comparisons(report: &AttributeReport) -> [&Estimate; 7] {
    let AttributeReport { gap, worst, gap_to_overall, ratio, ratio_to_overall, .. } = report;
    [gap, worst, gap_to_overall, ratio, ratio_to_overall, &report.equity_scaling, &report.equity_scaling_fair_seg]
}

fn differences(found: &AttributeDifferences) -> [&Difference; 7] {
    let AttributeDifferences { gap, worst, gap_to_overall, ratio, ratio_to_overall, .. } = found;
    [gap, worst, gap_to_overall, ratio, ratio_to_overall, &found.equity_scaling, &found.equity_scaling_fair_seg]
}

/// Three levels, the last without a sample, and one sample in no group.
fn sites(n: usize) -> Groups {
    groups("site", &["A", "B", "none"], |row| if row == 7 { None } else { Some(u32::from(row % 5 < 2)) }, n)
}

#[test]
fn c_td_row_by_row_is_the_entry_of_the_report_in_every_number() {
    let cohort = cohort(90, 21);
    let groups = [halves(90), sites(90)];
    for interval in [IntervalMethod::Percentile, IntervalMethod::Bca] {
        let settings = step(interval);
        let report = cohort.evaluate(&groups, &settings);
        let (fast, slow) = (report.metric("c_td_antolini_strict").unwrap(), slow(&cohort, &groups, &settings));
        assert_eq!((slow.name.as_str(), slow.higher_is_better, slow.attributes.len()), ("slow_c_td", true, 2));
        assert!(same_estimate(&fast.overall, &slow.overall), "{:?} {:?}", fast.overall, slow.overall);
        assert!(slow.overall.lower < slow.overall.value && slow.overall.upper > slow.overall.value);
        for (fast, slow) in fast.attributes.iter().zip(&slow.attributes) {
            assert_eq!((&fast.worst_group, fast.n_missing), (&slow.worst_group, slow.n_missing));
            for (fast, slow) in fast.groups.iter().zip(&slow.groups) {
                assert!(same_estimate(&fast.estimate, &slow.estimate), "{interval:?} {fast:?} {slow:?}");
            }
            for (fast, slow) in comparisons(fast).into_iter().zip(comparisons(slow)) {
                assert!(same_estimate(fast, slow), "{interval:?} {fast:?} {slow:?}");
            }
            assert_eq!(fast.differences.len(), 1);
            let (fast, slow) = (&fast.differences[0], &slow.differences[0]);
            assert_eq!((&fast.first, &fast.second), (&slow.first, &slow.second));
            assert!(same_difference(&fast.difference, &slow.difference), "{interval:?} {fast:?} {slow:?}");
        }
    }
}

#[test]
fn two_models_row_by_row_differ_as_in_the_fast_path() {
    let cohort = cohort(80, 22);
    let worse = cohort.curves.select(&(0..80).map(|row| (row + 1) % 80).collect::<Vec<_>>());
    let groups = [halves(80)];
    let first: &RowMetric<'_> = &|rows| c_td(&cohort, &cohort.curves, rows);
    let second: &RowMetric<'_> = &|rows| c_td(&cohort, &worse, rows);
    for interval in [IntervalMethod::Percentile, IntervalMethod::Bca] {
        let settings = step(interval);
        let (subjects, outcomes) = (&cohort.subjects, &cohort.outcomes);
        let curves = [("model", &cohort.curves), ("worse", &worse)];
        let fast = compare_models(&curves, subjects, outcomes, &cohort.censoring, &groups, &settings).unwrap();
        let models = [("model", first), ("worse", second)];
        let slow = compare_metric(C_TD, &models, subjects, outcomes, &groups, &settings).unwrap();
        assert_eq!((slow.pairs.len(), slow.pairs[0].metric.as_str()), (1, "slow_c_td"));
        let (fast, slow) = (&fast.pairs[0], &slow.pairs[0]);
        assert!(same_difference(&fast.overall, &slow.overall), "{:?} {:?}", fast.overall, slow.overall);
        let (fast, slow) = (&fast.attributes[0], &slow.attributes[0]);
        for (fast, slow) in differences(fast).into_iter().zip(differences(slow)) {
            assert!(slow.value.is_some() && same_difference(fast, slow), "{interval:?} {fast:?} {slow:?}");
        }
        for (fast, slow) in fast.groups.iter().zip(&slow.groups) {
            assert!(same_difference(&fast.1, &slow.1), "{interval:?} {fast:?} {slow:?}");
        }
    }
    let settings = step(IntervalMethod::Percentile);
    let one = compare_metric(C_TD, &[("a", first)], &cohort.subjects, &cohort.outcomes, &groups, &settings);
    assert!(matches!(one, Err(MetricError::InvalidSetting { setting: "number of models to compare", .. })));
}

#[test]
fn a_difference_of_models_in_a_comparison_is_that_of_their_reports() {
    let cohort = cohort(80, 23);
    let worse = cohort.curves.select(&(0..80).map(|row| (row + 3) % 80).collect::<Vec<_>>());
    let (settings, groups) = (step(IntervalMethod::Percentile), [halves(80)]);
    let models = [("model", &cohort.curves), ("worse", &worse)];
    let found =
        compare_models(&models, &cohort.subjects, &cohort.outcomes, &cohort.censoring, &groups, &settings).unwrap();
    let first = cohort.evaluate(&groups, &settings);
    let second = Cohort { curves: worse.clone(), ..cohort }.evaluate(&groups, &settings);
    for ((pair, first), second) in found.pairs.iter().zip(&first.metrics).zip(&second.metrics) {
        let (first, second) = (comparisons(&first.attributes[0]), comparisons(&second.attributes[0]));
        for ((difference, first), second) in differences(&pair.attributes[0]).iter().zip(first).zip(second) {
            let expected = first.value.unwrap() - second.value.unwrap();
            assert!((difference.value.unwrap() - expected).abs() < 1e-15, "{}", pair.metric);
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing_and_without_replicates_there_is_no_interval() {
    let cohort = cohort(40, 24);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| slow(&cohort, &[halves(40)], &step(IntervalMethod::Bca)))
    };
    assert_eq!(run(1), run(3));
    let without = slow(&cohort, &[halves(40)], &EvaluationSettings { replicates: 0, ..step(IntervalMethod::Bca) });
    assert_eq!((without.overall.lower, without.attributes[0].gap.upper), (None, None));
    assert!(without.overall.value.is_some() && without.attributes[0].differences[0].difference.value.is_some());
}

#[test]
fn a_metric_sees_drawn_rows_in_order_and_never_none() {
    let cohort = cohort(30, 25);
    let one_in_ten = groups("site", &["rare", "common", "nobody"], |row| Some(u32::from(row % 10 != 0)), 30);
    let metric = |rows: &[usize]| {
        assert!(!rows.is_empty() && rows.is_sorted());
        if rows.len() < 30 && rows.contains(&0) { Ok(f64::NAN) } else { Ok(rows.len() as f64) }
    };
    let found = evaluate_metric(C_TD, metric, &cohort.subjects, &cohort.outcomes, &[one_in_ten], &settings(200));
    let found = found.unwrap();
    // Every replicate has 30 rows.
    assert_eq!((found.overall.value, found.overall.lower, found.overall.upper), (Some(30.0), Some(30.0), Some(30.0)));
    let estimate = |level: usize| &found.attributes[0].groups[level].estimate;
    assert_eq!(estimate(0).undefined.as_deref(), Some("value of the metric is NaN, expected a finite number"));
    assert_eq!((estimate(1).value, estimate(1).undefined_replicates), (Some(27.0), 0));
    // Row 0 is drawn in 1 - (29/30)^30 = 0.638 of the replicates, no rare row in 0.9^30 = 0.042: 136 of 200, +- 6.6.
    assert!((116..=156).contains(&estimate(0).undefined_replicates), "{}", estimate(0).undefined_replicates);
    assert_eq!(estimate(2).undefined.as_deref(), Some("no samples, expected at least one"));
    assert_eq!(estimate(2).undefined_replicates, 200);
}

#[test]
fn only_groups_with_a_value_are_in_pairs_and_narrower_windows_show_in_comparisons() {
    let mut cohort = cohort(120, 26);
    // Group "late" has no case at the first evaluation times, so its AUC is the average over the others.
    let time: Vec<f64> =
        cohort.outcomes.time().iter().zip(0..).map(|(t, row)| if row % 2 == 0 { *t } else { t + 0.5 }).collect();
    cohort.outcomes = fairtte_metrics::Outcomes::new(time, cohort.outcomes.event().to_vec()).unwrap();
    let wing = groups("wing", &["early", "late", "empty", "closed"], |row| Some(u32::from(row % 2 == 1)), 120);
    let report = cohort.evaluate(&[wing], &settings(20));
    for metric in &report.metrics {
        let wing = &metric.attributes[0];
        let pairs: Vec<_> = wing.differences.iter().map(|pair| (pair.first.as_str(), pair.second.as_str())).collect();
        assert_eq!((pairs, wing.groups.len()), (vec![("early", "late")], 4));
        let late = wing.groups[1].estimate.undefined_times;
        assert_eq!(
            (late > 0, wing.groups[0].estimate.undefined_times),
            (metric.name == "auc_td", 0),
            "{}",
            metric.name
        );
        assert!(comparisons(wing).iter().all(|estimate| estimate.undefined_times == late), "{}", metric.name);
    }
}
