use approx::assert_abs_diff_eq;
use ndarray::Array2;

use super::*;

const RAW: OneCalibrationSettings = OneCalibrationSettings {
    n_bins: 2,
    binning: RiskBinning::EqualSize,
    observed: ObservedRisk::KaplanMeier,
    variance: BinVariance::ExpectedBinomial,
};

/// Samples (time, event, predicted risk at time 2), evaluated at time 2.
fn calibrate(rows: &[(f64, bool, f64)], settings: OneCalibrationSettings) -> Result<OneCalibration, MetricError> {
    let survival = Array2::from_shape_vec((rows.len(), 1), rows.iter().map(|row| 1.0 - row.2).collect()).unwrap();
    let curves = SurvivalCurves::new(vec![2.0], survival).unwrap();
    let outcomes = Outcomes::new(rows.iter().map(|r| r.0).collect(), rows.iter().map(|r| r.1).collect()).unwrap();
    one_calibration(&outcomes, &curves, 2.0, Reading::Step, settings)
}

#[test]
fn equal_size_bins_run_down_from_the_highest_risk_and_the_first_are_larger() {
    let risk = [0.1, 0.9, 0.5, 0.6, 0.7];
    assert_eq!(equal_size(&risk, 2), (vec![vec![1, 4, 3], vec![2, 0]], 0));
    assert_eq!(equal_size(&risk, 7).0.len(), 5);
    let tied = [0.1, 0.9, 0.5, 0.5, 0.7];
    assert_eq!(equal_size(&tied, 2), (vec![vec![1, 4, 2, 3], vec![0]], 1));
    assert_eq!(equal_size(&tied, 5), (vec![vec![1], vec![4], vec![2, 3], vec![0]], 1));
}

#[test]
fn a_model_of_two_risks_has_two_bins_in_any_order_of_rows() {
    let rows: Vec<(f64, bool, f64)> =
        (0..60).map(|k| (0.1 + f64::from(k % 7) / 2.0, k % 3 != 0, if k % 2 == 0 { 0.25 } else { 0.75 })).collect();
    let settings = OneCalibrationSettings { n_bins: 10, ..RAW };
    let found = calibrate(&rows, settings).unwrap();
    assert_eq!((found.bins.len(), found.degrees_of_freedom, found.n_moved_edges), (2, 1, 8));
    assert_eq!(found.bins.iter().map(|bin| (bin.n, bin.expected)).collect::<Vec<_>>(), [(30, 0.75), (30, 0.25)]);
    let turned: Vec<_> = rows.into_iter().rev().collect();
    let again = calibrate(&turned, settings).unwrap();
    assert_abs_diff_eq!(found.statistic.unwrap(), again.statistic.unwrap(), epsilon = 1e-12);
}

#[test]
fn equal_width_bins_run_up_and_own_their_lower_edge() {
    let bins = equal_width(&[0.5, 1.0, 0.0, 0.49], 2);
    assert_eq!(bins, [vec![2, 3], vec![0, 1]]);
}

#[test]
fn the_observed_risk_of_a_bin_is_one_minus_kaplan_meier_with_its_greenwood_variance() {
    // Three at risk, one event at 1, one censored at 1.5, one alive: 1 - KM(2) = 1/3, variance (4/9) (1 / (3 * 2)).
    let rows = [(1.0, true, 0.25), (1.5, false, 0.25), (4.0, true, 0.25)];
    let found = calibrate(&rows, OneCalibrationSettings { n_bins: 1, ..OneCalibrationSettings::default() }).unwrap();
    assert_abs_diff_eq!(found.bins[0].observed, 1.0 / 3.0, epsilon = 1e-15);
    assert_abs_diff_eq!(found.bins[0].variance, 2.0 / 27.0, epsilon = 1e-15);
    assert_abs_diff_eq!(found.statistic.unwrap(), (1.0 / 144.0) * 27.0 / 2.0, epsilon = 1e-14);
    assert_eq!((found.degrees_of_freedom, found.n_left_out), (1, 0));
    // Without the sample that is censored before 2, half of the others had the event.
    let uncensored =
        OneCalibrationSettings { n_bins: 1, observed: ObservedRisk::Uncensored, ..OneCalibrationSettings::default() };
    let found = calibrate(&rows, uncensored).unwrap();
    assert_eq!((found.bins[0].observed, found.bins[0].variance, found.n_left_out), (0.5, 0.125, 1));
}

#[test]
fn degrees_of_freedom_follow_method_variance_and_number_of_bins() {
    use BinVariance::{Estimated, ExpectedBinomial};
    let rows: Vec<(f64, bool, f64)> = (0..64).map(|k| (f64::from(k % 4), true, f64::from(k) / 100.0)).collect();
    let freedom = |n_bins, observed, variance| {
        let settings = OneCalibrationSettings { n_bins, observed, variance, ..RAW };
        calibrate(&rows, settings).unwrap().degrees_of_freedom
    };
    assert_eq!(freedom(15, ObservedRisk::KaplanMeier, ExpectedBinomial), 14);
    assert_eq!(freedom(16, ObservedRisk::KaplanMeier, ExpectedBinomial), 14);
    assert_eq!(freedom(4, ObservedRisk::Uncensored, ExpectedBinomial), 2);
    assert_eq!(freedom(16, ObservedRisk::Uncensored, Estimated), 16);
}

#[test]
fn a_refuted_certainty_has_p_zero_and_no_statistic() {
    let rows = [(1.0, true, 0.0), (3.0, true, 0.0), (1.0, true, 0.5), (3.0, true, 0.5)];
    let found = calibrate(&rows, RAW).unwrap();
    let expected = MetricError::VanishingBinVariance { bin: 1, observed: 0.5, expected: 0.0, variance: 0.0 };
    assert_eq!((found.statistic, found.p_value), (Err(expected), Ok(0.0)));
}

#[test]
fn an_estimated_variance_of_zero_gives_no_p_value_and_its_reason() {
    // The first bin has no event by time 2, as predicted; the second one has the variance of a half.
    let rows = [(3.0, true, 0.0), (3.0, true, 0.0), (1.0, true, 0.75), (3.0, true, 0.75)];
    let found = calibrate(&rows, OneCalibrationSettings { variance: BinVariance::Estimated, ..RAW }).unwrap();
    assert_eq!(found.statistic, Ok(0.5));
    assert!(matches!(found.p_value, Err(MetricError::VanishingBinVariance { bin: 1, .. })));
    let alone = calibrate(&rows, OneCalibrationSettings { n_bins: 1, ..RAW }).unwrap();
    assert_eq!(alone.p_value, Err(MetricError::NoDegreesOfFreedom { n_bins: 1 }));
}

#[test]
fn bad_settings_and_samples_are_named() {
    let rows = [(1.0, false, 0.5), (1.5, false, 0.25)];
    let uncensored = OneCalibrationSettings { observed: ObservedRisk::Uncensored, ..RAW };
    assert_eq!(calibrate(&rows, uncensored), Err(MetricError::AllCensoredBefore { time: 2.0, n: 2 }));
    assert_eq!(calibrate(&[], RAW), Err(MetricError::NoSamples));
    let no_bins = OneCalibrationSettings { n_bins: 0, ..RAW };
    assert!(matches!(calibrate(&rows, no_bins), Err(MetricError::InvalidSetting { .. })));
    assert!(matches!(check(f64::NAN, 2), Err(MetricError::InvalidSetting { .. })));
}
