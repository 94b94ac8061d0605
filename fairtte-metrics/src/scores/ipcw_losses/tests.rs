use approx::assert_abs_diff_eq;

use super::*;
use crate::CensoringTies;

#[test]
fn point_losses_are_those_of_the_probability_of_what_happened() {
    assert_abs_diff_eq!(PointLoss::Squared.of(0.75, true), 0.0625, epsilon = 1e-15);
    assert_abs_diff_eq!(PointLoss::Squared.of(0.75, false), 0.5625, epsilon = 1e-15);
    assert_abs_diff_eq!(PointLoss::Absolute.of(0.75, false), 0.75, epsilon = 1e-15);
    assert_abs_diff_eq!(PointLoss::Log { floor: 1e-3 }.of(1.0, false), 1000.0_f64.ln(), epsilon = 1e-12);
    assert_eq!(PointLoss::Log { floor: 1e-3 }.of(1.0, true), 0.0);
    let clipped = PointLoss::ClippedLog { clip: 0.25 };
    assert_abs_diff_eq!(clipped.of(1.0, true), (4.0_f64 / 3.0).ln(), epsilon = 1e-15);
    assert_abs_diff_eq!(clipped.of(1.0, false), 4.0_f64.ln(), epsilon = 1e-15);
}

#[test]
fn a_curve_that_starts_at_time_zero_has_no_one_before_it() {
    let outcomes = Outcomes::new(vec![0.0, 1.0, 2.0, 2.0], vec![false, true, false, true]).unwrap();
    let flipped = CensoringCurve::fit(&outcomes, CensoringTies::Flipped).unwrap();
    assert_eq!(left_limit_of_pycox(&flipped, 0.0), Ok(0.75));
    assert_eq!(left_limit_of_pycox(&flipped, 1.0), Ok(0.75));
    // Events first: 3/4 at 0 and 0 from 2 on.
    let events_first = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
    assert_eq!(left_limit_on_a_line(&events_first, 2.0), Ok(0.75));
    assert_eq!(left_limit_on_a_line(&events_first, 3.0), Ok(0.0));
}

#[test]
fn a_line_too_steep_for_a_slope_still_reaches_its_value() {
    // G = 1 - 1/3 from 2 units on, its last time is 4 units: at 6 units 1 - 1/3 - 1/3 * 2/4 = 1/2.
    let unit = f64::from_bits(1);
    let outcomes = Outcomes::new([2.0, 4.0, 4.0].map(|k| k * unit).to_vec(), vec![false, true, true]).unwrap();
    let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
    assert_abs_diff_eq!(left_limit_on_a_line(&censoring, 6.0 * unit).unwrap(), 0.5, epsilon = 1e-15);
}

/// Censored at 1 and at 2, S = 0.8 and 0.6; G = 1/2 from 1 on.
fn censored_only() -> (Outcomes, SurvivalCurves, CensoringCurve) {
    let outcomes = Outcomes::new(vec![1.0, 2.0], vec![false, false]).unwrap();
    let curves = SurvivalCurves::new(vec![0.1], ndarray::array![[0.8], [0.6]]).unwrap();
    let train = Outcomes::new(vec![1.0, 5.0], vec![false, true]).unwrap();
    (outcomes, curves, CensoringCurve::fit(&train, CensoringTies::Flipped).unwrap())
}

#[test]
fn a_time_at_which_nobody_counts_adds_no_pairs_to_a_plain_mean() {
    let (outcomes, curves, censoring) = censored_only();
    let weighting = Weighting::PerTime(BrierConvention::Pycox);
    let times = [0.5, 1.5, 3.0];
    let losses = IpcwLosses::new(weighting, PointLoss::Squared, &outcomes, &curves, &censoring, Reading::Step, &times);
    let losses = losses.unwrap();
    // Both at 0.5: (0.04 + 0.16) / 2; one with weight 2 at 1.5: 0.16; none at 3. Each mean is of 2 samples.
    let mean = mean_over_time(&losses, IntegrationRule::PlainMean, &times).unwrap();
    assert_abs_diff_eq!(mean.value, (2.0 * 0.1 + 2.0 * 0.16) / 4.0, epsilon = 1e-15);
    let counted: Vec<usize> = losses.means(&times).unwrap().iter().map(|mean| mean.n_counted).collect();
    assert_eq!(counted, [2, 2, 0]);
}

#[test]
fn arguments_that_do_not_fit_together_are_refused() {
    let (outcomes, curves, censoring) = censored_only();
    let new = |outcomes: &Outcomes, curves: &SurvivalCurves, reading, times: &[f64]| {
        let weighting = Weighting::PerTime(BrierConvention::Pycox);
        IpcwLosses::new(weighting, PointLoss::Squared, outcomes, curves, &censoring, reading, times).err()
    };
    let short = new(&outcomes, &curves.select(&[0]), Reading::Step, &[1.0]);
    assert!(matches!(short, Some(MetricError::LengthMismatch { .. })), "{short:?}");
    let factor = new(&outcomes, &curves, Reading::Refined { factor: 0 }, &[1.0]);
    assert!(matches!(factor, Some(MetricError::InvalidSetting { .. })), "{factor:?}");
    assert_eq!(new(&outcomes, &curves, Reading::Step, &[]), Some(MetricError::EmptyGrid));
    let nobody = new(&outcomes.select(&[]), &curves.select(&[]), Reading::Step, &[1.0]);
    assert_eq!(nobody, Some(MetricError::NoSamples));
}
