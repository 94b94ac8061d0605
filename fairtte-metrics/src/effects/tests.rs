//! Closed forms of exponential curves, and the theorems D.1 and D.2 of the benchmark as laws.

use ndarray::{Array2, array};
use proptest::prelude::*;

use super::*;
use crate::{GroupId, Groups, Outcomes};

fn exponential(rates: &[f64], grid: &[f64]) -> SurvivalCurves {
    let survival = Array2::from_shape_fn((rates.len(), grid.len()), |(row, k)| (-rates[row] * grid[k]).exp());
    SurvivalCurves::new(grid.to_vec(), survival).unwrap()
}

fn grid(n: usize, last: f64) -> Vec<f64> {
    (0..=n).map(|k| last * k as f64 / n as f64).collect()
}

#[test]
fn hazards_of_exponential_curves_are_the_same_in_every_interval() {
    let found = IntervalHazards::of(&exponential(&[0.4, 1e-9], &[0.0, 0.5, 1.0, 2.0]));
    assert_eq!(found.ends, [0.5, 1.0, 2.0]);
    for (k, width) in [0.5_f64, 0.5, 1.0].into_iter().enumerate() {
        assert!((found.hazards[[0, k]] - (1.0 - (-0.4 * width).exp())).abs() < 1e-14);
        assert_eq!(found.hazards[[1, k]], 1e-7);
    }
    assert_eq!(found.n_clipped, 3);
    // Without a time 0 the first interval starts at 0 all the same.
    let later = IntervalHazards::of(&exponential(&[0.4], &[0.5, 1.0]));
    assert!((later.hazards[[0, 0]] - (1.0 - (-0.2_f64).exp())).abs() < 1e-14);
    let ended = SurvivalCurves::new(vec![1.0, 2.0], array![[0.0, 0.0]]).unwrap();
    assert_eq!(IntervalHazards::of(&ended).hazards, array![[1.0 - 1e-7, 1.0 - 1e-7]]);
}

#[test]
fn intervals_without_events_or_anybody_at_risk_are_left_out() {
    let times = [1.0, 2.0, 3.0, 4.0, 5.0];
    let (truth, predicted) = (exponential(&[0.5, 0.5, 0.5], &times), exponential(&[0.5, 1.0, 2.0], &times));
    // Events in the first and in the third interval; no one is observed after 3.
    let outcomes = Outcomes::new(vec![1.0, 2.5, 3.0], vec![true, true, false]).unwrap();
    let found = LogitErrors::new(&truth, &predicted, &outcomes).unwrap();
    let counts: Vec<(usize, usize)> = found.by_interval().iter().map(|at| (at.n_at_risk, at.n_events)).collect();
    assert_eq!(counts, [(3, 1), (2, 0), (2, 1), (0, 0), (0, 0)]);
    let logit = |rate: f64| rate.exp_m1().ln();
    let ale = [0.0, logit(1.0) - logit(0.5), logit(2.0) - logit(0.5)];
    let expected = (ale[1] + ale[2]) / 3.0;
    let by_interval = found.by_interval();
    assert!((by_interval[1].error.unwrap() - expected).abs() < 1e-12 && by_interval[3].error.is_none());
    let mean = found.mean(0.0, 5.0).unwrap();
    assert!((mean.value - expected).abs() < 1e-12 && mean.n_intervals == 2);
    assert_eq!(found.mean(1.0, 2.0), None);
    assert_eq!(found.mean(1.0, 3.0).unwrap().n_intervals, 1);
    assert!((found.mean_of(&[2], 0.0, 5.0).unwrap().value - ale[2]).abs() < 1e-12);
    assert_eq!([0.5, 0.75, 1.0].map(|q| found.event_time_quantile(q)), [Some(1.0), Some(2.5), Some(2.5)]);
    assert_eq!((found.n_clipped_true, found.n_clipped_predicted), (0, 0));
}

#[test]
fn an_event_in_the_last_moment_of_an_interval_belongs_to_it_and_one_beyond_the_curves_to_none() {
    let curves = exponential(&[0.5; 3], &[0.0, 1.0, 2.0]);
    let outcomes = Outcomes::new(vec![0.0, 1.0, 7.0], vec![true; 3]).unwrap();
    let found = LogitErrors::new(&curves, &curves, &outcomes).unwrap();
    let counts: Vec<(usize, usize)> = found.by_interval().iter().map(|at| (at.n_at_risk, at.n_events)).collect();
    assert_eq!(counts, [(3, 2), (1, 0)]);
}

#[test]
fn curves_of_other_times_or_samples_are_refused() {
    let (one, outcomes) = (exponential(&[1.0], &[1.0, 2.0]), Outcomes::new(vec![1.0], vec![true]).unwrap());
    let error = LogitErrors::new(&one, &exponential(&[1.0], &[1.0, 3.0]), &outcomes).unwrap_err();
    assert_eq!(error.to_string(), "time 1 of the curves is 3, expected 2 as in the curves that they are compared with");
    assert!(LogitErrors::new(&one, &exponential(&[1.0], &[1.0]), &outcomes).is_err());
    assert!(LogitErrors::new(&one, &exponential(&[1.0; 2], &[1.0, 2.0]), &outcomes).is_err());
    assert!(Contrasts::new(one.clone(), exponential(&[1.0; 2], &[1.0, 2.0])).is_err());
    let contrasts = Contrasts::new(one.clone(), one).unwrap();
    let bad = [
        Contrast::HazardRatio { interval: 2 },
        Contrast::SurvivalDifference { place: 2 },
        Contrast::RelativeRisk { place: 9 },
        Contrast::RestrictedMeanDifference { until: 2.5, rule: MeanRule::Trapezoid },
        Contrast::RestrictedMeanDifference { until: f64::NAN, rule: MeanRule::Trapezoid },
    ];
    for contrast in bad {
        assert!(matches!(contrasts.by_person(contrast), Err(MetricError::InvalidSetting { .. })), "{contrast:?}");
    }
}

#[test]
fn contrasts_of_exponential_curves_have_closed_forms() {
    let times = grid(2_000, 4.0);
    let contrasts = Contrasts::new(exponential(&[0.5, 1.0], &times), exponential(&[0.25, 1.5], &times)).unwrap();
    let of = |contrast| contrasts.by_person(contrast).unwrap();
    let close = |found: Vec<Option<f64>>, expected: [f64; 2], tolerance: f64| {
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found.unwrap() - expected).abs() < tolerance, "{found:?} {expected}");
        }
    };
    // Short intervals: the ratio of their hazards approaches that of the rates.
    close(of(Contrast::HazardRatio { interval: 700 }), [0.5, 1.5], 1e-3);
    close(
        of(Contrast::SurvivalDifference { place: 500 }),
        [0.25_f64, 1.5]
            .map(|r| (-r).exp())
            .into_iter()
            .zip([0.5_f64, 1.0].map(|r| (-r).exp()))
            .map(|(a, b)| a - b)
            .collect::<Vec<_>>()
            .try_into()
            .unwrap(),
        1e-12,
    );
    close(of(Contrast::RelativeRisk { place: 500 }), [(0.25_f64).exp(), (-0.5_f64).exp()], 1e-12);
    let mean = |rate: f64, until: f64| (1.0 - (-rate * until).exp()) / rate;
    for (rule, tolerance) in [(MeanRule::Trapezoid, 1e-6), (MeanRule::EndOfInterval, 2e-3)] {
        let expected = [mean(0.25, 3.0) - mean(0.5, 3.0), mean(1.5, 3.0) - mean(1.0, 3.0)];
        close(of(Contrast::RestrictedMeanDifference { until: 3.0, rule }), expected, tolerance);
    }
    let marginal = contrasts.of_population(Contrast::RelativeRisk { place: 500 }).unwrap().unwrap();
    let expected = ((-0.25_f64).exp() + (-1.5_f64).exp()) / ((-0.5_f64).exp() + (-1.0_f64).exp());
    assert!((marginal - expected).abs() < 1e-12);
}

#[test]
fn both_rules_of_the_mean_are_exact_on_paper() {
    let untreated = SurvivalCurves::new(vec![1.0, 2.0], array![[0.5, 0.25]]).unwrap();
    let treated = SurvivalCurves::new(vec![1.0, 2.0], array![[1.0, 0.5]]).unwrap();
    let contrasts = Contrasts::new(untreated, treated).unwrap();
    let of = |until, rule| contrasts.by_person(Contrast::RestrictedMeanDifference { until, rule }).unwrap()[0].unwrap();
    assert_eq!(of(2.0, MeanRule::EndOfInterval), 0.75);
    assert_eq!(of(1.5, MeanRule::EndOfInterval), 0.5);
    // From (0, 1) lines: 1.75 - (0.75 + 0.375).
    assert_eq!(of(2.0, MeanRule::Trapezoid), 0.625);
    // Up to 1.5: 1 + (1 + 0.75) / 4 - (0.75 + (0.5 + 0.375) / 4).
    assert_eq!(of(1.5, MeanRule::Trapezoid), 0.46875);
    let ended = SurvivalCurves::new(vec![1.0], array![[0.0]]).unwrap();
    let undefined = Contrasts::new(ended.clone(), ended).unwrap();
    assert_eq!(undefined.by_person(Contrast::RelativeRisk { place: 0 }).unwrap(), [None]);
}

#[test]
fn errors_of_effects_by_group_are_those_of_paper() {
    let times = [0.0, 1.0];
    let truth = Contrasts::new(exponential(&[1.0; 3], &times), exponential(&[0.5; 3], &times)).unwrap();
    let estimate = Contrasts::new(exponential(&[1.0; 3], &times), exponential(&[0.5, 0.7, 0.2], &times)).unwrap();
    let membership = vec![Some(GroupId(0)), Some(GroupId(1)), Some(GroupId(1))];
    let groups = Groups::new("arm", vec!["a".into(), "b".into(), "none".into()], membership).unwrap();
    let found = contrast_errors(&truth, &estimate, Contrast::RelativeRisk { place: 1 }, Some(&groups)).unwrap();
    // log(S1 / S0) is minus the difference of the rates.
    let of_b = found.groups[1].unwrap();
    assert!((of_b.bias - 0.05).abs() < 1e-12 && (of_b.mean_absolute - 0.25).abs() < 1e-12);
    assert!((of_b.root_mean_square - (0.13_f64 / 2.0).sqrt()).abs() < 1e-12 && (of_b.mean_truth - 0.5).abs() < 1e-12);
    assert_eq!((of_b.n, found.groups[0].unwrap().n, found.groups[2]), (2, 1, None));
    assert!(found.groups[0].unwrap().mean_absolute < 1e-15 && (found.overall.unwrap().bias - 0.1 / 3.0).abs() < 1e-12);
    let ended = SurvivalCurves::new(vec![0.0, 1.0], array![[1.0, 0.0], [1.0, 0.5], [1.0, 0.5]]).unwrap();
    let undefined = Contrasts::new(ended.clone(), ended).unwrap();
    let found = contrast_errors(&truth, &undefined, Contrast::RelativeRisk { place: 1 }, None).unwrap();
    assert_eq!((found.overall.unwrap().n, found.overall.unwrap().n_undefined), (2, 1));
    let other = Contrasts::new(exponential(&[1.0], &times), exponential(&[1.0], &times)).unwrap();
    assert!(contrast_errors(&truth, &other, Contrast::RelativeRisk { place: 1 }, None).is_err());
}

/// Theorem D.3: hazards whose squared error stays the same can give probabilities as far apart as one likes, which ALE shows.
#[test]
fn the_squared_error_of_hazards_bounds_no_ratio_of_probabilities() {
    let outcomes = Outcomes::new(vec![1.0], vec![true]).unwrap();
    let of = |true_hazard: f64| {
        let curve = |hazard: f64| SurvivalCurves::new(vec![1.0], array![[1.0 - hazard]]).unwrap();
        let (truth, predicted) = (curve(true_hazard), curve(true_hazard + 0.1));
        LogitErrors::new(&truth, &predicted, &outcomes).unwrap().errors()[[0, 0]]
    };
    for (hazard, ratio) in [(0.1, 2.0_f64), (0.01, 11.0), (0.000_1, 1001.0)] {
        assert!(of(hazard) >= ratio.ln(), "{hazard}");
    }
}

proptest! {
    /// Theorem D.1: MALE is 0 where the hazards are equal, and above 0 where any differs.
    #[test]
    fn male_is_zero_only_for_the_truth(hazards in prop::collection::vec(0.001_f64..0.999, 1..12), k in 0_usize..12, by in 0.001_f64..0.3) {
        let times: Vec<f64> = (1..=hazards.len()).map(|k| k as f64).collect();
        let outcomes = Outcomes::new(times.clone(), vec![true; times.len()]).unwrap();
        let curves = |hazards: &[f64]| {
            let mut survival = 1.0;
            let row: Vec<f64> = hazards.iter().map(|h| { survival *= 1.0 - h; survival }).collect();
            SurvivalCurves::new(times.clone(), Array2::from_shape_fn((times.len(), times.len()), |(_, k)| row[k])).unwrap()
        };
        let truth = curves(&hazards);
        let last = *times.last().unwrap();
        let male = |predicted: &SurvivalCurves| LogitErrors::new(&truth, predicted, &outcomes).unwrap().mean(0.0, last).unwrap().value;
        prop_assert_eq!(male(&truth), 0.0);
        let mut other = hazards.clone();
        let place = k % other.len();
        other[place] = if other[place] < 0.5 { other[place] + by } else { other[place] - by };
        prop_assert!(male(&curves(&other)) > 0.0);
    }

    /// Theorem D.2: the logarithm of predicted over true probability to fail in an interval is at most the sum of ALE up to it.
    #[test]
    fn errors_bound_the_ratio_of_probabilities(both in prop::collection::vec((0.001_f64..0.9, 0.001_f64..0.9), 1..10)) {
        let times: Vec<f64> = (1..=both.len()).map(|k| k as f64).collect();
        let outcomes = Outcomes::new(vec![*times.last().unwrap()], vec![true]).unwrap();
        let curve = |hazards: Vec<f64>| {
            let mut survival = 1.0;
            let row: Vec<f64> = hazards.iter().map(|h| { survival *= 1.0 - h; survival }).collect();
            SurvivalCurves::new(times.clone(), Array2::from_shape_vec((1, row.len()), row).unwrap()).unwrap()
        };
        let (truth, predicted) = (curve(both.iter().map(|h| h.0).collect()), curve(both.iter().map(|h| h.1).collect()));
        let errors = LogitErrors::new(&truth, &predicted, &outcomes).unwrap();
        let (mut sum, mut of_truth, mut of_predicted) = (0.0, 1.0, 1.0);
        for (k, (h, g)) in both.iter().enumerate() {
            sum += errors.errors()[[0, k]];
            let ratio = (of_predicted * g / (of_truth * h)).ln().abs();
            prop_assert!(ratio <= sum + 1e-6, "{} {} {}", k, ratio, sum);
            of_truth *= 1.0 - h;
            of_predicted *= 1.0 - g;
        }
    }
}
