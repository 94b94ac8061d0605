//! Several models: reports, paired differences from the reference, and the Pareto front.

use fairtte_metrics::evaluation::{Difference, ModelPair, ModelReports, evaluate_models};
use fairtte_metrics::statistics::{Adjustment, adjust_p_values};
use fairtte_metrics::{EvaluationSettings, MetricError, SurvivalCurves, compare_models, evaluate};

use super::cohort::{Cohort, cohort, groups, halves, settings};

const N: usize = 160;

/// Metrics of both kinds: those that share sorted samples, and others; one with a target.
fn every_kind(replicates: usize) -> EvaluationSettings {
    let metrics = ["c-td", "ibs", "brier@2", "observed-expected", "harrell-c"].map(str::to_owned).to_vec();
    EvaluationSettings { metrics, ..settings(replicates) }
}

/// The curves with those of every `nth` row exchanged with the next; on a grid of its own.
fn other_model(cohort: &Cohort, nth: usize) -> SurvivalCurves {
    let index: Vec<usize> = (0..N).map(|row| if row % nth == 0 { (row + 1) % N } else { row }).collect();
    let curves = cohort.curves.select(&index);
    let (grid, n) = (curves.grid()[..10].to_vec(), curves.n());
    let survival = ndarray::Array2::from_shape_fn((n, 10), |(row, time)| curves.survival()[[row, time]]);
    SurvivalCurves::new(grid, survival).unwrap()
}

fn found(
    cohort: &Cohort,
    models: &[(&str, &SurvivalCurves)],
    reference: usize,
    of: &EvaluationSettings,
) -> ModelReports {
    let attributes = [halves(N), groups("site", &["a", "b", "c"], |row| u32::try_from(row % 3).ok(), N)];
    evaluate_models(models, reference, &cohort.subjects, &cohort.outcomes, &cohort.censoring, &attributes, of).unwrap()
}

/// The differences whose p values are adjusted together.
fn tested(pair: &ModelPair) -> Vec<&Difference> {
    let of_attributes = pair.attributes.iter().flat_map(|of| of.groups.iter().map(|(_, d)| d).chain([&of.gap]));
    std::iter::once(&pair.overall).chain(of_attributes).collect()
}

#[test]
fn a_difference_is_that_of_two_evaluations_on_the_same_samples_and_times() {
    let cohort = cohort(N, 1);
    let other = other_model(&cohort, 3);
    let of = every_kind(30);
    let found = found(&cohort, &[("long", &cohort.curves), ("short", &other)], 0, &of);
    assert_eq!(found.reference, "long");
    let times = found.models[0].1.times.clone().unwrap();
    assert!(times.upper <= 4.5, "the shorter curves end at 4.5, the times at {}", times.upper);
    // Given these times and horizon, each model alone has the same report.
    let given =
        EvaluationSettings { times: Some(times.times.clone()), horizon: found.models[0].1.horizon, ..of.clone() };
    let attributes = [halves(N), groups("site", &["a", "b", "c"], |row| u32::try_from(row % 3).ok(), N)];
    let alone = |curves| {
        evaluate(&cohort.subjects, &cohort.outcomes, curves, &cohort.censoring, &attributes, &given).unwrap().metrics
    };
    let (first, second) = (alone(&cohort.curves), alone(&other));
    assert_eq!((&found.models[0].1.metrics, &found.models[1].1.metrics), (&first, &second));
    assert_eq!(found.pairs.len(), of.metrics.len());
    let minus = |a: Option<f64>, b: Option<f64>| Some(b? - a?);
    for (pair, (first, second)) in found.pairs.iter().zip(first.iter().zip(&second)) {
        assert_eq!((pair.first.as_str(), pair.second.as_str(), &pair.metric), ("short", "long", &first.name));
        assert_eq!(pair.overall.value, minus(first.overall.value, second.overall.value), "{}", pair.metric);
        for ((of_pair, first), second) in pair.attributes.iter().zip(&first.attributes).zip(&second.attributes) {
            assert_eq!(of_pair.gap.value, minus(first.gap.value, second.gap.value));
            for (((level, difference), first), second) in of_pair.groups.iter().zip(&first.groups).zip(&second.groups) {
                assert_eq!(level, &first.level);
                assert_eq!(difference.value, minus(first.estimate.value, second.estimate.value));
            }
        }
    }
}

#[test]
fn exchanging_the_models_flips_every_sign_and_keeps_every_p_value() {
    let cohort = cohort(N, 2);
    let other = other_model(&cohort, 4);
    let models = [("a", &cohort.curves), ("b", &other)];
    let (there, back) = (found(&cohort, &models, 0, &every_kind(60)), found(&cohort, &models, 1, &every_kind(60)));
    for (there, back) in there.pairs.iter().zip(&back.pairs) {
        assert_eq!((&there.first, &there.second), (&back.second, &back.first));
        for (there, back) in tested(there).into_iter().zip(tested(back)) {
            assert_eq!(there.value, back.value.map(|value| -value));
            assert_eq!((there.p_value, there.p_holm), (back.p_value, back.p_holm));
            let mirrored = back.lower.zip(back.upper).map(|(lower, upper)| (-upper, -lower));
            let (lower, upper) = (there.lower.unwrap(), there.upper.unwrap());
            let (low, high) = mirrored.unwrap();
            assert!((lower - low).abs() < 1e-12 && (upper - high).abs() < 1e-12);
        }
    }
}

#[test]
fn a_model_under_two_names_differs_by_nothing_with_p_value_one() {
    let cohort = cohort(N, 3);
    let found = found(&cohort, &[("a", &cohort.curves), ("b", &cohort.curves)], 0, &every_kind(40));
    for difference in found.pairs.iter().flat_map(tested) {
        assert_eq!((difference.value, difference.lower, difference.upper), (Some(0.0), Some(0.0), Some(0.0)));
        assert_eq!((difference.p_value, difference.p_holm), (Some(1.0), Some(1.0)));
    }
    assert!(found.trade_offs.iter().flat_map(|of| &of.points).all(|point| point.on_front));
}

#[test]
fn an_interval_contains_0_exactly_if_p_is_above_the_error_level() {
    let (mut inside, mut outside) = (0, 0);
    for seed in 0..6 {
        let cohort = cohort(N, 10 + seed);
        let others = [1, 2, 5, 9].map(|nth| other_model(&cohort, nth));
        for other in &others {
            let found = found(&cohort, &[("a", &cohort.curves), ("b", other)], 0, &every_kind(99));
            for difference in found.pairs.iter().flat_map(tested) {
                let (Some(lower), Some(upper), Some(p)) = (difference.lower, difference.upper, difference.p_value)
                else {
                    continue;
                };
                // An end at 0 within rounding, or p at the level, is both.
                if lower.abs() < 1e-12 || upper.abs() < 1e-12 || (p - 0.05).abs() < 1e-9 {
                    continue;
                }
                let contains = lower < 0.0 && 0.0 < upper;
                assert_eq!(contains, p > 0.05, "{difference:?}");
                *(if contains { &mut inside } else { &mut outside }) += 1;
            }
        }
    }
    assert!(inside > 50 && outside > 50, "{inside} {outside}");
}

#[test]
fn p_values_of_one_metric_are_one_family_of_holm() {
    let cohort = cohort(N, 4);
    let (near, far) = (other_model(&cohort, 6), other_model(&cohort, 1));
    let found = found(&cohort, &[("a", &cohort.curves), ("b", &near), ("c", &far)], 0, &every_kind(80));
    for pairs in found.pairs.chunks(2) {
        assert_eq!(pairs[0].metric, pairs[1].metric);
        let family: Vec<&Difference> = pairs.iter().flat_map(tested).filter(|d| d.p_value.is_some()).collect();
        let p: Vec<f64> = family.iter().filter_map(|difference| difference.p_value).collect();
        let expected = adjust_p_values(&p, Adjustment::Holm).unwrap();
        assert_eq!(family.iter().filter_map(|difference| difference.p_holm).collect::<Vec<_>>(), expected);
        // Two models, each over all samples, in five groups and in two gaps.
        assert_eq!(family.len(), 16);
    }
}

#[test]
fn the_front_knows_the_better_direction_of_every_metric() {
    let cohort = cohort(N, 5);
    let guess = other_model(&cohort, 1);
    let found = found(&cohort, &[("model", &cohort.curves), ("guess", &guess)], 0, &every_kind(0));
    for trade_off in &found.trade_offs {
        let report = found.models[0].1.metric(&trade_off.metric).unwrap();
        let utility = |point: usize| {
            let value = trade_off.points[point].value.unwrap();
            match report.target {
                Some(target) => -(value - target).abs(),
                None if report.higher_is_better => value,
                None => -value,
            }
        };
        let (model, guess) = (&trade_off.points[0], &trade_off.points[1]);
        let dominated = utility(0) >= utility(1) && model.gap <= guess.gap;
        assert_eq!(guess.on_front, !dominated, "{trade_off:?}");
    }
    assert_eq!(found.trade_offs.len(), 5 * 2);
}

#[test]
fn small_groups_have_differences_without_intervals_and_unusable_requests_are_refused() {
    let cohort = cohort(N, 6);
    let other = other_model(&cohort, 3);
    let of = EvaluationSettings { min_events: 50, ..every_kind(20) };
    let models = [("a", &cohort.curves), ("b", &other)];
    let small = found(&cohort, &models, 0, &of);
    let difference = &small.pairs[0].attributes[1].groups[0].1;
    assert!(difference.value.is_some() && difference.lower.is_none() && difference.p_value.is_none());
    assert!(difference.undefined.as_ref().unwrap().contains("50"), "{difference:?}");
    let evaluate = |models: &[(&str, &SurvivalCurves)], reference| {
        evaluate_models(models, reference, &cohort.subjects, &cohort.outcomes, &cohort.censoring, &[], &of)
    };
    assert!(matches!(evaluate(&models, 2), Err(MetricError::InvalidSetting { .. })));
    assert!(matches!(evaluate(&models[..1], 0), Err(MetricError::InvalidSetting { .. })));
    let short = cohort.curves.select(&[0, 1]);
    assert!(evaluate(&[("a", &cohort.curves), ("b", &short)], 0).is_err());
}

#[test]
fn every_two_models_are_compared_in_every_requested_metric() {
    let cohort = cohort(N, 7);
    let (near, far) = (other_model(&cohort, 6), other_model(&cohort, 2));
    let (models, of) = ([("a", &cohort.curves), ("b", &near), ("c", &far)], every_kind(20));
    let all =
        compare_models(&models, &cohort.subjects, &cohort.outcomes, &cohort.censoring, &[halves(N)], &of).unwrap();
    assert_eq!(all.pairs.len(), 3 * of.metrics.len());
    let from_c = evaluate_models(&models, 2, &cohort.subjects, &cohort.outcomes, &cohort.censoring, &[halves(N)], &of);
    let of_c = |pair: &&ModelPair| pair.second == "c";
    let (every, from_c) = (all.pairs.iter().filter(of_c), from_c.unwrap().pairs);
    for (every, from_c) in every.zip(&from_c) {
        assert_eq!(
            (&every.first, &every.metric, every.overall.value),
            (&from_c.first, &from_c.metric, from_c.overall.value)
        );
        assert_eq!(every.overall.p_value, from_c.overall.p_value);
    }
}
