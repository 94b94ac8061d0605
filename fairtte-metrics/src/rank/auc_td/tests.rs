use ndarray::array;

use super::*;
use crate::CensoringTies;

#[test]
fn cases_are_weighted_by_the_censoring_curve() {
    // G = 1 at time 1 and 1/2 from time 2 on, so the case at 3 counts twice. At 3.5: case 0 (S 0.1) is below
    // the control (0.5), case 2 (S 0.9) above it: AUC = 1 / (1 + 2).
    let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![true, false, true, true]).unwrap();
    let train = Outcomes::new(vec![2.0, 5.0], vec![false, true]).unwrap();
    let curves = SurvivalCurves::new(vec![1.0], array![[0.1], [0.2], [0.9], [0.5]]).unwrap();
    let censoring = CensoringCurve::fit(&train, CensoringTies::default()).unwrap();
    let auc = auc_td(&outcomes, &curves, &censoring, Reading::Step, &[3.5]).unwrap();
    assert!((auc.time_average.unwrap() - 1.0 / 3.0).abs() < 1e-15);
}

#[test]
fn a_time_without_cases_controls_or_weights_is_named() {
    let outcomes = Outcomes::new(vec![2.0, 3.0, 4.0], vec![true, false, true]).unwrap();
    let curves = SurvivalCurves::new(vec![1.0], array![[0.1], [0.2], [0.9]]).unwrap();
    let train = Outcomes::new(vec![1.0, 3.0], vec![true, false]).unwrap();
    let censoring = CensoringCurve::fit(&train, CensoringTies::default()).unwrap();
    let auc = auc_td(&outcomes, &curves, &censoring, Reading::Step, &[1.0, 3.5, 4.0]).unwrap();
    let zero = MetricError::ZeroCensoringSurvival { time: 4.0 };
    assert_eq!(auc.values, [Err(MetricError::NoCases { time: 1.0 }), Ok(1.0), Err(zero)]);
    let none = auc_td(&outcomes, &curves, &censoring, Reading::Step, &[0.5, 1.0]).unwrap();
    let first = Box::new(MetricError::NoCases { time: 0.5 });
    assert_eq!(none.time_average, Err(MetricError::UndefinedAtEveryTime { n_times: 2, first }));
}

#[test]
fn the_drop_weighted_mean_skips_undefined_times_only_where_survival_is_flat() {
    let survival =
        KaplanMeier::fit(&Outcomes::new(vec![2.0, 3.0, 4.0, 5.0], vec![true, true, true, true]).unwrap()).unwrap();
    let undefined = Err(MetricError::NoCases { time: 1.0 });
    let early = AucTd::new(&[1.0, 2.0, 4.0], vec![undefined.clone(), Ok(0.5), Ok(0.8)]);
    assert!((early.drop_weighted_mean(&survival).unwrap() - (0.5 * 0.25 + 0.8 * 0.5) / 0.75).abs() < 1e-15);
    let late = AucTd::new(&[2.0, 4.0], vec![Ok(0.5), undefined.clone()]);
    assert_eq!(late.drop_weighted_mean(&survival), undefined);
    let flat = AucTd::new(&[0.5, 1.0], vec![Ok(0.5), Ok(0.5)]);
    assert_eq!(flat.drop_weighted_mean(&survival), Err(MetricError::NoSurvivalDrop { time: 1.0 }));
}

#[test]
fn fields_filled_in_by_hand_are_checked_before_the_mean() {
    let survival = KaplanMeier::fit(&Outcomes::new(vec![2.0, 3.0], vec![true, true]).unwrap()).unwrap();
    let mean = |times: &[f64], values: &[f64]| {
        let values = values.iter().copied().map(Ok).collect();
        AucTd { times: times.to_vec(), values, time_average: Ok(0.5) }.drop_weighted_mean(&survival)
    };
    assert_eq!(mean(&[], &[]), Err(MetricError::EmptyGrid));
    assert!(matches!(mean(&[2.0], &[f64::NAN]), Err(MetricError::NotFinite { .. })));
    assert!(matches!(mean(&[2.0, 3.0], &[0.5, f64::NAN]), Err(MetricError::NotFinite { .. })));
    assert!(matches!(mean(&[2.0, 3.0], &[0.5]), Err(MetricError::LengthMismatch { found: 1, expected: 2, .. })));
    assert!(matches!(mean(&[2.0, f64::NAN], &[0.5, 0.5]), Err(MetricError::InvalidGrid { index: 1, .. })));
}

#[test]
fn the_earliest_event_without_a_weight_spoils_the_times_from_it_on() {
    // G = 0 from 3 on. By falling S the event at 5 comes before the one at 4.
    let outcomes = Outcomes::new(vec![1.0, 4.0, 5.0, 6.0], vec![true, true, true, false]).unwrap();
    let curves = SurvivalCurves::new(vec![1.0], array![[0.1], [0.3], [0.9], [0.95]]).unwrap();
    let train = Outcomes::new(vec![1.0, 3.0], vec![true, false]).unwrap();
    let censoring = CensoringCurve::fit(&train, CensoringTies::default()).unwrap();
    let prepared = AucTd::prepare(&outcomes, &curves, &censoring, Reading::Step, &[2.0, 4.5, 5.5]).unwrap();
    let zero = |time| Err(MetricError::ZeroCensoringSurvival { time });
    assert_eq!(prepared.weighted(&[1; 4]).unwrap().values, [Ok(1.0), zero(4.0), zero(4.0)]);
    // Without that event the case at 1 is below both controls at 4.5.
    assert_eq!(prepared.weighted(&[1, 0, 1, 1]).unwrap().values, [Ok(1.0), Ok(1.0), zero(5.0)]);
}

#[test]
fn arguments_that_do_not_fit_together_are_refused() {
    let outcomes = Outcomes::new(vec![1.0, 2.0], vec![true, false]).unwrap();
    let curves = SurvivalCurves::new(vec![1.0], array![[0.1], [0.3]]).unwrap();
    let censoring = CensoringCurve::fit(&outcomes, CensoringTies::default()).unwrap();
    let prepare =
        |curves: &SurvivalCurves, reading, times: &[f64]| AucTd::prepare(&outcomes, curves, &censoring, reading, times);
    let short = prepare(&curves.select(&[0]), Reading::Step, &[1.0]).unwrap_err();
    assert!(matches!(short, MetricError::LengthMismatch { .. }), "{short:?}");
    let factor = prepare(&curves, Reading::Refined { factor: 0 }, &[1.0]).unwrap_err();
    assert!(matches!(factor, MetricError::InvalidSetting { .. }), "{factor:?}");
    assert_eq!(prepare(&curves, Reading::Step, &[]).unwrap_err(), MetricError::EmptyGrid);
    let weights = prepare(&curves, Reading::Step, &[1.0]).unwrap().weighted(&[1]);
    assert_eq!(weights, Err(MetricError::LengthMismatch { what: "weights", found: 1, expected: 2 }));
}
