//! Against scikit-learn, fairlearn and direct definitions; `golden/classification.json` says which and how.

use proptest::prelude::*;
use serde_json::Value;

use super::replicates::{Readings, SortedClasses};
use super::*;
use crate::resampling::lanes::{LANES, LaneWeights};
use crate::{CensoringCurve, CensoringTies, MetricError, Outcomes};

struct Case(Value);

impl Case {
    fn all() -> Vec<Self> {
        let recorded: Value = serde_json::from_str(include_str!("../../tests/golden/classification.json")).unwrap();
        recorded["cases"].as_array().unwrap().iter().cloned().map(Self).collect()
    }

    fn list(&self, name: &str) -> Vec<f64> {
        self.0[name].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    }

    fn predictions(&self, name: &str) -> ClassPredictions {
        let positive = self.list("label").into_iter().map(|label| label > 0.5).collect();
        ClassPredictions::new(self.list(name), positive).unwrap()
    }

    fn is(&self, name: &str, found: f64, tolerance: f64) {
        let expected = self.0[name].as_f64().unwrap();
        assert!((found - expected).abs() < tolerance, "{} {name}: {found}, {expected}", self.0["name"]);
    }
}

#[test]
fn metrics_are_those_of_scikit_learn() {
    for case in Case::all() {
        let found = case.predictions("probability");
        case.is("auc", auc(&found).unwrap(), 1e-12);
        case.is("average_precision", average_precision(&found).unwrap(), 1e-12);
        case.is("log_loss", cross_entropy(&found).unwrap(), 1e-12);
        case.is("brier", brier_score(&found).unwrap(), 1e-12);
        let ece = |bins, confidence| {
            expected_calibration_error(&found, CalibrationError { bins, confidence, n_bins: 15 }).unwrap()
        };
        case.is("ece_uniform", ece(Bins::EqualWidth, BinConfidence::Positive), 1e-12);
        case.is("ece_quantile", ece(Bins::EqualMass, BinConfidence::Positive), 1e-12);
        case.is("ece_predicted", ece(Bins::EqualWidth, BinConfidence::Predicted), 1e-12);
        let line = calibration_line(&found).unwrap();
        case.is("slope", line.slope, 1e-7);
        case.is("intercept", line.intercept, 1e-7);
        case.is("intercept_in_the_large", calibration_intercept(&found).unwrap(), 1e-9);
        case.is("tpr_at_80_interpolated", tpr_at_tnr(&found, 0.8, RocReading::Interpolated).unwrap(), 1e-12);
        case.is("tpr_at_80_step", tpr_at_tnr(&found, 0.8, RocReading::Step).unwrap(), 1e-12);
        let best = best_f1_threshold(&found).unwrap();
        case.is("best_f1", best.f1, 1e-12);
        case.is("best_f1_threshold", best.threshold, 1e-12);
    }
}

#[test]
fn decisions_are_those_of_scikit_learn() {
    for case in Case::all() {
        let counts = confusion(&case.predictions("probability"), case.0["threshold"].as_f64().unwrap()).unwrap();
        case.is("accuracy", counts.accuracy().unwrap(), 1e-12);
        case.is("balanced_accuracy", counts.balanced_accuracy().unwrap(), 1e-12);
        case.is("f1", counts.f1().unwrap(), 1e-12);
        case.is("fpr", counts.false_positive_rate().unwrap(), 1e-12);
        case.is("fnr", counts.false_negative_rate().unwrap(), 1e-12);
        assert_eq!(Underdiagnosis::MissedDisease.rate(&counts), counts.false_negative_rate());
        assert_eq!(Underdiagnosis::CalledNoFinding.rate(&counts), counts.false_positive_rate());
    }
}

#[test]
fn variances_are_those_of_delong_pair_by_pair() {
    for case in Case::all() {
        let (first, second) = (case.predictions("probability"), case.predictions("second"));
        case.is("delong_variance", delong(&first).unwrap().variance, 1e-12);
        let test = delong_test(&first, &second).unwrap();
        case.is("delong_difference", test.difference, 1e-12);
        case.is("delong_difference_variance", test.variance, 1e-12);
        let z = test.difference / test.variance.sqrt();
        let tail = 2.0 * crate::statistics::normal_upper(z.abs());
        assert!((test.z - z).abs() < 1e-12 && (test.p_value - tail).abs() < 1e-12);
    }
    let one = ClassPredictions::new(vec![0.1, 0.2, 0.3, 0.4], vec![false, true, false, true]).unwrap();
    assert!(delong_test(&one, &one).is_err());
}

#[test]
fn criteria_are_those_of_fairlearn() {
    for case in Case::all() {
        let (all, group) = (case.predictions("probability"), case.list("group"));
        let of_group = |k: f64| {
            let rows: Vec<usize> = (0..all.n()).filter(|row| (group[*row] - k).abs() < 0.5).collect();
            let counts = confusion(&all.select(&rows), case.0["threshold"].as_f64().unwrap()).unwrap();
            GroupRates::of(&counts).unwrap()
        };
        let rates = [0.0, 1.0, 2.0].map(of_group);
        let recorded = &case.0["fairlearn"];
        let is = |name: &str, found: f64| {
            let expected = recorded[name].as_f64().unwrap();
            assert!((found - expected).abs() < 1e-12, "{} {name}: {found}, {expected}", case.0["name"]);
        };
        for (k, rates) in rates.iter().enumerate() {
            let found = [rates.false_positive, rates.false_negative, rates.selection];
            for (name, found) in ["fpr", "fnr", "selection"].into_iter().zip(found) {
                assert!((recorded[name][k].as_f64().unwrap() - found).abs() < 1e-12);
            }
        }
        let parity = Parity::of(&rates).unwrap();
        is("demographic_parity_difference", parity.demographic_parity_difference);
        is("demographic_parity_ratio", parity.demographic_parity_ratio.unwrap());
        is("equal_opportunity_difference", 1.0 - parity.equal_opportunity_positive);
        is("equalized_odds_difference_mean", 1.0 - parity.equalised_odds);
    }
    assert!(Parity::of(&[]).is_err());
}

#[test]
fn what_does_not_exist_has_a_reason() {
    let of = |p: &[f64], y: &[u8]| ClassPredictions::new(p.to_vec(), y.iter().map(|y| *y > 0).collect()).unwrap();
    let one_class = Err(MetricError::OneClass { n_positive: 2, n: 2 });
    assert_eq!(auc(&of(&[0.2, 0.3], &[1, 1])), one_class);
    assert_eq!(auc(&of(&[], &[])), Err(MetricError::NoSamples));
    let certain = calibration_line(&of(&[0.0, 0.3, 0.4, 1.0], &[1, 0, 1, 0]));
    assert_eq!(certain, Err(MetricError::NoLogit { n_certain: 2, n: 4 }));
    assert_eq!(calibration_line(&of(&[0.1, 0.3, 0.4], &[0, 1, 1])), Err(MetricError::SeparatedClasses));
    // A tie between the classes alone leaves no maximum either.
    assert_eq!(calibration_line(&of(&[0.1, 0.3, 0.3, 0.4], &[0, 0, 1, 1])), Err(MetricError::SeparatedClasses));
    assert!(ClassPredictions::new(vec![f64::NAN], vec![true]).is_err());
    assert!(tpr_at_tnr(&of(&[0.1, 0.3], &[0, 1]), 1.0, RocReading::Step).is_err());
}

/// Two predictions: the line goes through the observed share of each.
#[test]
fn the_line_of_nearly_equal_predictions_is_found() {
    let logit = |p: f64| p.ln() - (-p).ln_1p();
    for (p, n_positive) in [([0.018, 0.019], [150, 220]), ([0.982, 0.9821], [9_780, 9_850])] {
        let class = |k: usize| k / 2 < n_positive[k % 2];
        let all = ClassPredictions::new((0..20_000).map(|k| p[k % 2]).collect(), (0..20_000).map(class).collect());
        let line = calibration_line(&all.unwrap()).unwrap();
        let share = n_positive.map(|n| logit(n as f64 / 10_000.0));
        let slope = (share[1] - share[0]) / (logit(p[1]) - logit(p[0]));
        assert!((line.slope / slope - 1.0).abs() < 1e-9, "{line:?}, {slope}");
        assert!((line.intercept / (share[0] - slope * logit(p[0])) - 1.0).abs() < 1e-9, "{line:?}");
    }
}

/// A slope of 156 over logits that differ by 0.02: replicates have it too, from wherever they start.
#[test]
fn replicates_have_the_line_of_nearly_equal_predictions() {
    let probability = (0..400).map(|k| 0.018 + 1e-6 * f64::from(k)).collect();
    let class = |k: u32| f64::from(k * 7919 % 1000) / 1000.0 < 0.1 + 0.002 * f64::from(k);
    let all = ClassPredictions::new(probability, (0..400).map(class).collect()).unwrap();
    let line = calibration_line(&all).unwrap();
    assert!(line.slope > 100.0);
    for start in [[line.intercept, line.slope], [0.0, 1.0]] {
        let readings = Readings { threshold: 0.5, tnr: 0.8, error: CalibrationError::default() };
        let sorted = SortedClasses::new(&all, readings, [start, [0.0, 1.0]]);
        let found = sorted.values(&vec![[1; LANES]; all.n()], 1)[0][5].unwrap();
        assert!((found / line.slope - 1.0).abs() < 1e-9, "{found}, {line:?}");
    }
}

#[test]
fn at_a_horizon_whoever_is_censored_before_is_counted_and_weighted_for() {
    let outcomes =
        Outcomes::new(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], vec![true, false, true, true, false, true]).unwrap();
    let probability = [0.9, 0.5, 0.3, 0.4, 0.35, 0.2];
    let classes = binary_at_horizon(&outcomes, 3.5).unwrap();
    assert_eq!((classes.rows.clone(), classes.n_left_out), (vec![0, 2, 3, 4, 5], 1));
    let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
    let found = classes.auc(&outcomes, &probability, &censoring).unwrap();
    // Cases 0.9 and 0.3 against 0.4, 0.35 and 0.2: 3 + 1 of 6. One of five is censored at 2: G = 4/5 at the case at 3, whose
    // weight is 5/4 of that of the case at 1.
    assert!((found.naive - 4.0 / 6.0).abs() < 1e-12);
    assert!((found.weighted - (3.0 + 1.25) / (2.25 * 3.0)).abs() < 1e-12);
    assert!(binary_at_horizon(&outcomes, 0.0).is_err() && classes.predictions(&[0.5]).is_err());
}

fn samples() -> impl Strategy<Value = (ClassPredictions, Vec<u32>)> {
    prop::collection::vec((1_u32..40, any::<bool>(), 0_u32..4), 2..60).prop_map(|rows| {
        let probability = rows.iter().map(|row| f64::from(row.0) / 41.0).collect();
        let positive = rows.iter().map(|row| row.1).collect();
        (ClassPredictions::new(probability, positive).unwrap(), rows.iter().map(|row| row.2).collect())
    })
}

proptest! {
    #[test]
    fn a_weight_is_a_repeated_row((all, weights) in samples(), threshold in 0.0..1.0_f64, mass in any::<bool>(), predicted in any::<bool>()) {
        let bins = if mass { Bins::EqualMass } else { Bins::EqualWidth };
        let confidence = if predicted { BinConfidence::Predicted } else { BinConfidence::Positive };
        let error = CalibrationError { n_bins: 7, bins, confidence };
        let sorted = SortedClasses::new(&all, Readings { threshold, tnr: 0.8, error }, [[0.0, 1.0]; 2]);
        let mut lanes: Vec<LaneWeights> = vec![[0; LANES]; all.n()];
        for (row, weight) in lanes.iter_mut().zip(&weights) {
            // The last lane only, so that a wrong lane shows.
            row[LANES - 1] = u16::try_from(*weight).unwrap();
        }
        let found = sorted.values(&lanes, LANES)[LANES - 1];
        let drawn = |(row, weight): (usize, &u32)| std::iter::repeat_n(row, *weight as usize);
        let rows: Vec<usize> = weights.iter().enumerate().flat_map(drawn).collect();
        let of_rows = all.select(&rows);
        let counts = confusion(&of_rows, threshold);
        let at = |read: fn(&Confusion) -> Result<f64, MetricError>| counts.clone().and_then(|counts| read(&counts)).ok();
        let expected = [
            auc(&of_rows).ok(),
            average_precision(&of_rows).ok(),
            cross_entropy(&of_rows).ok(),
            brier_score(&of_rows).ok(),
            expected_calibration_error(&of_rows, error).ok(),
            calibration_line(&of_rows).ok().map(|line| line.slope),
            calibration_intercept(&of_rows).ok(),
            at(Confusion::accuracy),
            at(Confusion::balanced_accuracy),
            at(Confusion::f1),
            at(Confusion::false_positive_rate),
            at(Confusion::false_negative_rate),
            tpr_at_tnr(&of_rows, 0.8, RocReading::Interpolated).ok(),
            at(Confusion::selection_rate),
        ];
        for (place, (found, expected)) in found.into_iter().zip(expected).enumerate() {
            match (found, expected) {
                (Some(found), Some(expected)) => {
                    let size = 1.0_f64.max(expected.abs());
                    prop_assert!((found - expected).abs() < 1e-8 * size, "{place}: {found}, {expected}");
                }
                (found, expected) => prop_assert_eq!(found, expected, "{}", place),
            }
        }
    }
}
