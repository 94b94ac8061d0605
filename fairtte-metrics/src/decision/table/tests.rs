//! Decisions against plain counts and hand-made weights.

use approx::assert_relative_eq;
use ndarray::Array2;
use proptest::prelude::*;

use super::*;
use crate::CensoringTies;

fn curves(risks: &[f64]) -> SurvivalCurves {
    SurvivalCurves::new(vec![2.0], Array2::from_shape_fn((risks.len(), 1), |(row, _)| 1.0 - risks[row])).unwrap()
}

fn table(rows: &[(f64, bool, f64)], threshold: f64) -> Result<DecisionTable, MetricError> {
    let (time, event) = rows.iter().map(|row| (row.0, row.1)).unzip();
    let outcomes = Outcomes::new(time, event).unwrap();
    let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
    let risks: Vec<f64> = rows.iter().map(|row| row.2).collect();
    decision_table(&outcomes, &curves(&risks), &censoring, Reading::Step, 2.0, threshold)
}

/// Censored at 1 of five: G is 1 before and 3/4 from then on.
const CENSORED: [(f64, bool, f64); 5] =
    [(0.5, true, 0.9), (1.0, false, 0.6), (1.5, true, 0.2), (3.0, true, 0.4), (4.0, false, 0.1)];

#[test]
fn a_censored_sample_is_made_up_for_by_those_that_stay_longer() {
    let found = table(&CENSORED, 0.3).unwrap();
    // The first case weighs 1, the other case and both controls 4/3 each: 5 in all.
    assert_eq!((found.n, found.n_positive, found.n_unknown), (5, 3, 1));
    assert_relative_eq!(found.weight, 1.0, max_relative = 1e-12);
    assert_relative_eq!(found.true_positive, 1.0 / 5.0, max_relative = 1e-12);
    for share in [found.false_negative, found.false_positive, found.true_negative] {
        assert_relative_eq!(share, 4.0 / 15.0, max_relative = 1e-12);
    }
    assert_relative_eq!(found.sensitivity().unwrap(), 3.0 / 7.0, max_relative = 1e-12);
    assert_relative_eq!(found.specificity().unwrap(), 0.5, max_relative = 1e-12);
    assert_relative_eq!(found.positive_predictive_value().unwrap(), 3.0 / 7.0, max_relative = 1e-12);
    assert_relative_eq!(found.negative_predictive_value().unwrap(), 0.5, max_relative = 1e-12);
    assert_relative_eq!(found.net_benefit(), 0.2 - 4.0 / 15.0 * 3.0 / 7.0, max_relative = 1e-12);
    // 7/15 have the event, as 1 - Kaplan-Meier says: 1 - 4/5 * 2/3.
    assert_relative_eq!(found.event_rate(), 7.0 / 15.0, max_relative = 1e-12);
    assert_relative_eq!(found.net_benefit_of_all(), 7.0 / 15.0 - 8.0 / 15.0 * 3.0 / 7.0, max_relative = 1e-12);
}

#[test]
fn a_risk_equal_to_the_threshold_is_positive_and_one_below_is_not() {
    let rate = |threshold| table(&CENSORED, threshold).unwrap().selection_rate();
    assert_eq!((rate(0.4), rate(0.400_1), rate(0.1)), (0.6, 0.4, 1.0));
}

#[test]
fn an_event_at_the_horizon_is_a_case_and_a_censoring_there_is_unknown() {
    let rows = [(2.0, true, 0.5), (2.0, false, 0.5), (3.0, true, 0.5)];
    let found = table(&rows, 0.3).unwrap();
    assert_eq!(found.n_unknown, 1);
    // The case weighs 1, the control 1 / G(2) = 2.
    assert_relative_eq!(found.event_rate(), 1.0 / 3.0, max_relative = 1e-12);
}

#[test]
fn what_cannot_be_decided_says_why() {
    let nobody = table(&CENSORED, 0.95).unwrap();
    assert!(matches!(nobody.positive_predictive_value(), Err(MetricError::NoDecision { called: "positive", .. })));
    let everybody = table(&CENSORED, 0.05).unwrap();
    assert!(matches!(everybody.negative_predictive_value(), Err(MetricError::NoDecision { called: "negative", .. })));
    let no_case = table(&[(3.0, true, 0.5), (4.0, true, 0.5)], 0.3).unwrap();
    assert_eq!(no_case.sensitivity(), Err(MetricError::NoCases { time: 2.0 }));
    assert_eq!(table(&[(1.0, true, 0.5), (1.5, false, 0.5)], 0.3), Err(MetricError::NoControls { time: 2.0 }));
    for threshold in [0.0, 1.0, f64::NAN] {
        assert!(matches!(table(&CENSORED, threshold), Err(MetricError::InvalidSetting { setting: "threshold", .. })));
    }
}

proptest! {
    #[test]
    fn without_censoring_the_table_counts_and_weights_are_copies(
        rows in prop::collection::vec((0.5_f64..4.0, 0.0_f64..1.0, 0_u32..4), 2..40),
        threshold in 0.05_f64..0.95,
    ) {
        let of = |rows: &[(f64, f64, u32)]| rows.iter().map(|row| (row.0, true, row.1)).collect::<Vec<_>>();
        let found = table(&of(&rows), threshold).unwrap();
        let share = |is: &dyn Fn(&(f64, f64, u32)) -> bool| rows.iter().filter(|row| is(row)).count() as f64 / rows.len() as f64;
        let positive = |row: &(f64, f64, u32)| row.1 >= threshold;
        prop_assert!((found.true_positive - share(&|row| row.0 <= 2.0 && positive(row))).abs() < 1e-12);
        prop_assert!((found.false_positive - share(&|row| row.0 > 2.0 && positive(row))).abs() < 1e-12);
        prop_assert!((found.false_negative - share(&|row| row.0 <= 2.0 && !positive(row))).abs() < 1e-12);
        prop_assert!((found.selection_rate() - share(&positive)).abs() < 1e-12);
        let (cost, rate) = (threshold / (1.0 - threshold), share(&|row| row.0 <= 2.0));
        prop_assert!((found.net_benefit_of_all() - (rate - (1.0 - rate) * cost)).abs() < 1e-12);

        let repeated: Vec<_> = rows.iter().flat_map(|row| std::iter::repeat_n(*row, row.2 as usize)).collect();
        prop_assume!(!repeated.is_empty());
        let (outcomes, risks): (Vec<f64>, Vec<f64>) = rows.iter().map(|row| (row.0, row.1)).unzip();
        let outcomes = Outcomes::new(outcomes, vec![true; rows.len()]).unwrap();
        let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
        let prepared = PreparedDecisions::new(&outcomes, risks, &censoring, 2.0).unwrap();
        let weights: Vec<u32> = rows.iter().map(|row| row.2).collect();
        let (weighted, plain) = (prepared.weighted(&weights, threshold).unwrap(), table(&of(&repeated), threshold).unwrap());
        prop_assert!((weighted.net_benefit() - plain.net_benefit()).abs() < 1e-12);
        prop_assert_eq!(weighted.n_positive, plain.n_positive);
    }
}
