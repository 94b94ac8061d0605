//! Intervals, strata and paired differences of whole evaluations.

use super::cohort::{Cohort, cohort, groups, halves, settings};
use fairtte_metrics::evaluation::ModelComparison;
use fairtte_metrics::rank::{TiedPredictions, concordance_td};
use fairtte_metrics::resampling::{Bootstrap, IntervalMethod, Jackknife, Replicated, Resample, Stratify};
use fairtte_metrics::{EvaluationSettings, MetricError, Reading, SurvivalCurves, compare_models};

fn compare(cohort: &Cohort, models: &[(&str, &SurvivalCurves)], settings: &EvaluationSettings) -> ModelComparison {
    let sex = [halves(cohort.n())];
    compare_models(models, &cohort.subjects, &cohort.outcomes, &cohort.censoring, &sex, settings).unwrap()
}

/// The curves, in every `nth` row replaced by that of the next sample.
fn worsened(cohort: &Cohort, nth: usize) -> SurvivalCurves {
    let n = cohort.n();
    let index: Vec<usize> = (0..n).map(|row| if row % nth == 0 { (row + 1) % n } else { row }).collect();
    cohort.curves.select(&index)
}

#[test]
fn a_model_does_not_differ_from_itself() {
    let cohort = cohort(120, 1);
    let found = compare(&cohort, &[("a", &cohort.curves), ("b", &cohort.curves)], &settings(60));
    assert_eq!((found.models.len(), found.pairs.len()), (2, 4));
    for pair in &found.pairs {
        let sex = &pair.attributes[0];
        for difference in [&pair.overall, &sex.gap, &sex.worst, &sex.groups[0].1, &sex.groups[1].1] {
            assert_eq!((difference.value, difference.lower, difference.upper), (Some(0.0), Some(0.0), Some(0.0)));
            assert_eq!(difference.p_value, Some(1.0));
        }
    }
}

#[test]
fn the_difference_of_two_models_is_known_better_than_either() {
    let cohort = cohort(300, 2);
    let settings = settings(200);
    let worse = worsened(&cohort, 5);
    let found = compare(&cohort, &[("model", &cohort.curves), ("worsened", &worse)], &settings);
    let c_td = &found.pairs[0].overall;
    let report = cohort.evaluate(&[halves(300)], &settings);
    let own = &report.metric("c_td_antolini_strict").unwrap().overall;
    let width = |lower: Option<f64>, upper: Option<f64>| upper.unwrap() - lower.unwrap();
    assert!(width(c_td.lower, c_td.upper) < 0.7 * width(own.lower, own.upper), "{c_td:?} {own:?}");
    let guess = worsened(&cohort, 1); // every sample has the curve of another
    let clear = compare(&cohort, &[("model", &cohort.curves), ("guess", &guess)], &settings);
    let clear = &clear.pairs[0].overall;
    assert!(clear.lower.unwrap() > 0.0 && clear.p_value.unwrap() < 0.05, "{clear:?}");
    let mirrored = compare(&cohort, &[("worsened", &worse), ("model", &cohort.curves)], &settings);
    let mirror = &mirrored.pairs[0].overall;
    assert_eq!((mirror.value, mirror.p_value), (c_td.value.map(|v| -v), c_td.p_value));
    assert!((mirror.lower.unwrap() + c_td.upper.unwrap()).abs() < 1e-12);
}

#[test]
fn the_difference_of_two_groups_has_the_size_of_the_gap() {
    let cohort = cohort(200, 3);
    let report = cohort.evaluate(&[halves(200)], &settings(50));
    for metric in &report.metrics {
        let sex = &metric.attributes[0];
        assert_eq!(sex.differences.len(), 1);
        let difference = &sex.differences[0];
        assert_eq!((difference.first.as_str(), difference.second.as_str()), ("F", "M"));
        let value = difference.difference.value.unwrap();
        assert!((value.abs() - sex.gap.value.unwrap()).abs() < 1e-15);
        let expected = sex.groups[0].estimate.value.unwrap() - sex.groups[1].estimate.value.unwrap();
        assert!((value - expected).abs() < 1e-15);
        // A gap cannot be below 0, a difference can.
        assert!(sex.gap.lower.unwrap() >= 0.0 && difference.difference.lower < difference.difference.upper);
        assert!(sex.ratio.value.unwrap() <= 1.0 && sex.ratio_to_overall.lower.unwrap() <= 1.0);
        assert!(sex.gap_to_overall.value.unwrap() <= sex.gap.value.unwrap() + 1e-15);
    }
}

#[test]
fn bca_and_basic_intervals_are_those_of_the_replicates_and_the_jackknife() {
    let cohort = cohort(90, 4);
    let settings = |interval| EvaluationSettings { interval, reading: Reading::Step, ..settings(100) };
    let bootstrap = Bootstrap::new(&cohort.subjects, Resample::Subject, 100, 0);
    let c_td = |weights: &[u32]| {
        let drawn = (0..90).flat_map(|row| std::iter::repeat_n(row, weights[row] as usize));
        let drawn: Vec<usize> = drawn.collect();
        let (outcomes, curves) = (cohort.outcomes.select(&drawn), cohort.curves.select(&drawn));
        concordance_td(&outcomes, &curves, Reading::Step, TiedPredictions::Strict).ok().map(|found| found.value)
    };
    let replicates: Vec<Option<f64>> = (0..100).map(|k| c_td(&bootstrap.weights(k))).collect();
    let jackknife = Jackknife::new(&bootstrap, Jackknife::DEFAULT_BLOCKS);
    let without_a_block = (0..jackknife.n_blocks()).map(|block| c_td(&jackknife.weights(block))).collect();
    let values = jackknife.collect(without_a_block).unwrap();
    let sampled = Replicated::new(c_td(&[1; 90]).unwrap(), &replicates).with_jackknife(&values);
    let mut ends = Vec::new();
    for method in [IntervalMethod::Percentile, IntervalMethod::Basic, IntervalMethod::Bca] {
        let expected = sampled.interval(0.95, method).unwrap();
        let report = cohort.evaluate(&[halves(90)], &settings(method));
        let found = &report.metrics[0].overall;
        assert!((found.lower.unwrap() - expected.lower).abs() < 1e-12, "{method:?}");
        assert!((found.upper.unwrap() - expected.upper).abs() < 1e-12, "{method:?}");
        ends.push((expected.lower, expected.upper));
    }
    assert!(ends[0] != ends[1] && ends[0] != ends[2] && ends[1] != ends[2]);
}

#[test]
fn strata_keep_every_group_in_every_replicate() {
    // Two of 60 subjects are in the small group: without strata many replicates miss it.
    let cohort = cohort(60, 5);
    let small = groups("site", &["large", "small"], |row| Some(u32::from(row < 3)), 60);
    let undefined = |stratify| {
        let settings = EvaluationSettings { stratify, ..settings(200) };
        let report = cohort.evaluate(std::slice::from_ref(&small), &settings);
        report.metric("ibs").unwrap().attributes[0].groups[1].estimate.undefined_replicates
    };
    assert!(undefined(Stratify::None) > 0);
    assert_eq!(undefined(Stratify::Attribute("site".to_owned())), 0);
}

#[test]
fn models_need_two_different_names() {
    let cohort = cohort(20, 6);
    let compare = |models: &[(&str, &SurvivalCurves)]| {
        compare_models(models, &cohort.subjects, &cohort.outcomes, &cohort.censoring, &[], &settings(0))
    };
    let one = compare(&[("a", &cohort.curves)]);
    assert!(matches!(one, Err(MetricError::InvalidSetting { setting: "number of models to compare", .. })));
    let twice = compare(&[("a", &cohort.curves), ("a", &cohort.curves)]);
    assert_eq!(twice, Err(MetricError::RepeatedModel { model: "a".to_owned() }));
    // Without replicates there are differences and no intervals.
    let found = compare(&[("a", &cohort.curves), ("b", &cohort.curves)]).unwrap();
    let overall = &found.pairs[0].overall;
    assert_eq!((overall.value, overall.lower, overall.p_value), (Some(0.0), None, None));
}
