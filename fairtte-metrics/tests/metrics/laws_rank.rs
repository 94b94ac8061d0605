//! Laws of the rank metrics: what permuting, negating and scaling change, and where they converge to.

#![expect(clippy::unwrap_used, reason = "a value that must exist and does not fails the test")]

use fairtte_metrics::rank::{
    AucConvention, ConventionTd, TieTest, TiedPairs, TiedPredictions, UnoConvention, auc_td_with, concordance_td,
    concordance_td_ipcw, concordance_td_with, harrell_concordance, harrell_variance, uno_concordance,
};
use fairtte_metrics::{CensoringCurve, CensoringTies, Outcomes, Reading, Risk, SurvivalCurves};
use ndarray::{Array2, array};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const UNO: [UnoConvention; 3] = [UnoConvention::ScikitSurvival, UnoConvention::SurvivalEval, UnoConvention::R];

/// Times and scores on coarse lattices, so that every tie rule is used.
fn samples() -> impl Strategy<Value = Vec<(u8, bool, u8)>> {
    prop::collection::vec((1..12_u8, any::<bool>(), 0..6_u8), 2..40)
}

fn outcomes(rows: &[(u8, bool, u8)], unit: f64) -> Outcomes {
    let time = rows.iter().map(|row| f64::from(row.0) * unit).collect();
    Outcomes::new(time, rows.iter().map(|row| row.1).collect()).unwrap()
}

fn risk(rows: &[(u8, bool, u8)], sign: f64) -> Risk {
    Risk::new(rows.iter().map(|row| sign * f64::from(row.2)).collect()).unwrap()
}

/// The censoring curve of the sample and one more that is censored after all others, so that all have weights.
fn censoring(rows: &[(u8, bool, u8)], unit: f64) -> CensoringCurve {
    let longer: Vec<_> = rows.iter().copied().chain([(20, false, 0)]).collect();
    CensoringCurve::fit(&outcomes(&longer, unit), CensoringTies::EventsFirst).unwrap()
}

fn curves(rows: &[(u8, bool, u8)], unit: f64) -> SurvivalCurves {
    let survival = |(row, k): (usize, usize)| {
        let (time, _, score) = rows[row];
        (-0.05 * (f64::from(score) + f64::from(time % 3)) * (k + 1) as f64).exp()
    };
    let grid = [2.0, 4.0, 7.0, 11.0].map(|point| point * unit).to_vec();
    SurvivalCurves::new(grid, Array2::from_shape_fn((rows.len(), 4), survival)).unwrap()
}

/// Every rank metric, `None` where it is undefined.
fn all_values(rows: &[(u8, bool, u8)], unit: f64) -> Vec<Option<f64>> {
    let (outcomes, risk, censoring, curves) =
        (outcomes(rows, unit), risk(rows, 1.0), censoring(rows, unit), curves(rows, unit));
    let mut values = vec![
        harrell_concordance(&outcomes, &risk, TieTest::Near, TiedPairs::All).ok().map(|c| c.value),
        harrell_variance(&outcomes, &risk, TieTest::Exact).ok(),
    ];
    for convention in UNO {
        let uno = uno_concordance(&outcomes, &risk, &censoring, Some(8.0 * unit), convention);
        values.push(uno.ok().map(|c| c.value));
    }
    for reading in [Reading::default(), Reading::NextGridPoint, Reading::LinearFromOne] {
        for convention in [ConventionTd::Adjusted, ConventionTd::SurvivalEval(TiedPairs::Times)] {
            values.push(concordance_td_with(&outcomes, &curves, reading, convention).ok().map(|c| c.value));
        }
        let ipcw = concordance_td_ipcw(&outcomes, &curves, reading, &censoring, None, TiedPairs::Predictions);
        values.push(ipcw.ok().map(|c| c.value));
    }
    let times = [3.0, 6.0, 9.0].map(|time| time * unit);
    for convention in [AucConvention::SurvivalEval, AucConvention::SurvivalEvalNaive, AucConvention::RiskRegression] {
        let auc = auc_td_with(&outcomes, &curves, &censoring, Reading::Step, &times, convention).unwrap();
        values.extend(auc.values.into_iter().map(Result::ok));
    }
    values
}

fn all_close(a: &[Option<f64>], b: &[Option<f64>]) -> bool {
    a.iter().zip(b).all(|pair| match pair {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-12,
        (a, b) => a == b,
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_order_of_samples_changes_nothing(rows in samples(), seed in any::<u64>()) {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|row| (*row as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
        let permuted: Vec<_> = order.into_iter().map(|row| rows[row]).collect();
        prop_assert!(all_close(&all_values(&rows, 1.0), &all_values(&permuted, 1.0)));
    }

    #[test]
    fn the_unit_of_time_changes_nothing(rows in samples()) {
        // A power of two, so that no time falls on the other side of a grid point.
        prop_assert!(all_close(&all_values(&rows, 1.0), &all_values(&rows, 0.125)));
    }

    #[test]
    fn a_negated_risk_mirrors_the_value_and_keeps_its_variance(rows in samples()) {
        let (outcomes, censoring) = (outcomes(&rows, 1.0), censoring(&rows, 1.0));
        let harrell = |sign| harrell_concordance(&outcomes, &risk(&rows, sign), TieTest::Near, TiedPairs::All);
        if let Ok(found) = harrell(1.0) {
            let negated = harrell(-1.0).unwrap();
            prop_assert!((found.value + negated.value - 1.0).abs() <= 1e-12);
            prop_assert_eq!((found.n_concordant, found.n_discordant), (negated.n_discordant, negated.n_concordant));
        }
        let variance = |sign| harrell_variance(&outcomes, &risk(&rows, sign), TieTest::Near).ok();
        prop_assert!(all_close(&[variance(1.0)], &[variance(-1.0)]));
        for convention in UNO {
            let uno = |sign| uno_concordance(&outcomes, &risk(&rows, sign), &censoring, None, convention);
            if let Ok(found) = uno(1.0) {
                prop_assert!((found.value + uno(-1.0).unwrap().value - 1.0).abs() <= 1e-12);
            }
        }
    }

    #[test]
    fn without_censoring_weights_change_nothing(rows in samples()) {
        let events: Vec<_> = rows.iter().map(|row| (row.0, true, row.2)).collect();
        let (outcomes, risk, curves) = (outcomes(&events, 1.0), risk(&events, 1.0), curves(&events, 1.0));
        let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
        let harrell = harrell_concordance(&outcomes, &risk, TieTest::Near, TiedPairs::Predictions).map(|c| c.value);
        for convention in UNO {
            prop_assert_eq!(uno_concordance(&outcomes, &risk, &censoring, None, convention).map(|c| c.value), harrell.clone());
        }
        let reading = Reading::Step;
        let weighted = concordance_td_ipcw(&outcomes, &curves, reading, &censoring, None, TiedPairs::Predictions);
        let plain = concordance_td(&outcomes, &curves, Reading::Step, TiedPredictions::Half);
        prop_assert_eq!(weighted.map(|c| c.value), plain.map(|c| c.value));
    }

    #[test]
    fn curves_that_never_cross_give_the_concordance_of_a_score(rows in samples()) {
        let (outcomes, risk) = (outcomes(&rows, 1.0), risk(&rows, 1.0));
        let survival = |(row, k): (usize, usize)| (-0.1 * (f64::from(rows[row].2) + 1.0) * (k + 1) as f64).exp();
        let curves = SurvivalCurves::new(vec![1.0, 12.0], Array2::from_shape_fn((rows.len(), 2), survival)).unwrap();
        for ties in [TiedPairs::Dropped, TiedPairs::Predictions, TiedPairs::Times, TiedPairs::All] {
            let harrell = harrell_concordance(&outcomes, &risk, TieTest::Near, ties).map(|c| c.value);
            let reading = Reading::LinearFromOne;
            let c = concordance_td_with(&outcomes, &curves, reading, ConventionTd::SurvivalEval(ties));
            prop_assert_eq!(c.map(|c| c.value), harrell);
        }
    }
}

#[test]
fn weighted_values_converge_to_the_truth_that_censoring_hides_from_harrell() {
    // Two groups of equal size with constant hazards; censoring is heavy and exponential. Up to tau the pairs of two groups
    // with hazards a and b are compared with probability 1 - exp(-(a + b) tau), and the one with hazard a is first with
    // probability a / (a + b); the score knows the group only, so pairs within a group count 1/2.
    let (slow, fast, tau) = (0.05_f64, 2.0_f64, 1.5_f64);
    let compared = |a: f64, b: f64| 1.0 - (-(a + b) * tau).exp();
    let (within, across) = (0.25 * (compared(slow, slow) + compared(fast, fast)), 0.5 * compared(slow, fast));
    let truth = (0.5 * within + across * fast / (slow + fast)) / (within + across);

    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut exponential = |rate: f64| -(1.0 - random.random::<f64>()).ln() / rate;
    let (mut time, mut event, mut score) = (Vec::new(), Vec::new(), Vec::new());
    for sample in 0..40_000 {
        let is_fast = sample % 2 == 0;
        let (happens, leaves) = (exponential(if is_fast { fast } else { slow }), exponential(1.0));
        time.push(happens.min(leaves));
        event.push(happens <= leaves);
        score.push(f64::from(u8::from(is_fast)));
    }
    let n = time.len();
    let curve = |row: usize| if row.is_multiple_of(2) { [(-fast).exp(), 0.0] } else { [(-slow).exp(), 0.1] };
    let survival = Array2::from_shape_fn((n, 2), |(row, k)| curve(row)[k]);
    let (outcomes, risk) = (Outcomes::new(time, event).unwrap(), Risk::new(score).unwrap());
    let curves = SurvivalCurves::new(vec![1.0, 9.0], survival).unwrap();
    let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();

    let uno = uno_concordance(&outcomes, &risk, &censoring, Some(tau), UnoConvention::default()).unwrap().value;
    let reading = Reading::Step;
    let weighted = concordance_td_ipcw(&outcomes, &curves, reading, &censoring, Some(tau), TiedPairs::Predictions);
    assert!((uno - truth).abs() < 0.005, "{uno} {truth}");
    assert!((weighted.unwrap().value - truth).abs() < 0.005);
    let harrell = harrell_concordance(&outcomes, &risk, TieTest::Near, TiedPairs::Predictions).unwrap().value;
    assert!((harrell - truth).abs() > 0.01, "{harrell} {truth}");
}

#[test]
fn one_sample_or_none_has_no_pair() {
    let risk = Risk::new(vec![0.5]).unwrap();
    let one = Outcomes::new(vec![1.0], vec![true]).unwrap();
    assert!(harrell_concordance(&one, &risk, TieTest::Near, TiedPairs::All).is_err());
    assert!(harrell_variance(&one, &risk, TieTest::Near).is_err());
    let curves = SurvivalCurves::new(vec![1.0], array![[0.5]]).unwrap();
    assert!(concordance_td_with(&one, &curves, Reading::LinearFromOne, ConventionTd::Adjusted).is_err());
}
