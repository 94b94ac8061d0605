use ndarray::{Array2, array};
use proptest::prelude::*;

use super::*;
use crate::rank::comparable_pairs::Predictions;
use crate::rank::concordance_td;
use crate::{CensoringTies, Reading};

#[test]
fn no_event_nothing_but_ties_and_wrong_lengths_are_errors() {
    let curves = SurvivalCurves::new(vec![1.0], array![[0.5], [0.5]]).unwrap();
    let value = |time: Vec<f64>, event: Vec<bool>, convention| {
        let outcomes = Outcomes::new(time, event).unwrap();
        concordance_td_with(&outcomes, &curves, Reading::NextGridPoint, convention).map(|c| c.value)
    };
    let dropped = ConventionTd::SurvivalEval(TiedPairs::Dropped);
    assert_eq!(value(vec![1.0, 2.0], vec![true, false], dropped), Err(MetricError::OnlyTiedPairs { n_tied: 1 }));
    assert_eq!(value(vec![1.0, 2.0], vec![false; 2], ConventionTd::Adjusted), Err(MetricError::NoEvents { n: 2 }));
    let tied_events = value(vec![1.0, 1.0], vec![true; 2], dropped);
    assert_eq!(tied_events, Err(MetricError::NoComparablePairs { n: 2, n_events: 2 }));
    assert_eq!(value(vec![1.0, 1.0], vec![true; 2], ConventionTd::Adjusted), Ok(1.0));
    let short = value(vec![1.0], vec![true], ConventionTd::Adjusted);
    assert!(matches!(short, Err(MetricError::LengthMismatch { found: 2, expected: 1, .. })));
    let zero = Reading::Refined { factor: 0 };
    let outcomes = Outcomes::new(vec![1.0, 2.0], vec![true, false]).unwrap();
    let value = concordance_td_with(&outcomes, &curves, zero, ConventionTd::Adjusted);
    assert!(matches!(value, Err(MetricError::InvalidSetting { .. })));
}

#[test]
fn a_weighted_value_has_the_counts_of_its_pairs() {
    // Three events at 1 and a survivor: a pair each, and three pairs among themselves.
    let outcomes = Outcomes::new(vec![1.0, 1.0, 1.0, 2.0], vec![true, true, true, false]).unwrap();
    let curves = SurvivalCurves::new(vec![1.0], array![[0.5], [0.6], [0.7], [0.6]]).unwrap();
    let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
    let value = |tau| {
        let reading = Reading::NextGridPoint;
        concordance_td_ipcw(&outcomes, &curves, reading, &censoring, tau, TiedPairs::Predictions)
    };
    let found = value(None).unwrap();
    assert_eq!((found.n_comparable, found.n_concordant, found.n_discordant), (3, 1, 1));
    assert_eq!((found.n_tied_predictions, found.n_tied_events), (1, 3));
    assert_eq!((found.numerator, found.denominator), (1.5, 3.0));
    assert!(value(Some(1.0)).is_err());
}

#[test]
fn an_event_that_is_compared_with_nobody_needs_no_weight() {
    // G = 0 from 3 on: the event at 5 would have none.
    let outcomes = Outcomes::new(vec![1.0, 5.0], vec![true, true]).unwrap();
    let curves = SurvivalCurves::new(vec![1.0], array![[0.5], [0.6]]).unwrap();
    let train = Outcomes::new(vec![1.0, 3.0], vec![true, false]).unwrap();
    let censoring = CensoringCurve::fit(&train, CensoringTies::EventsFirst).unwrap();
    let reading = Reading::NextGridPoint;
    let found = concordance_td_ipcw(&outcomes, &curves, reading, &censoring, None, TiedPairs::All).unwrap();
    assert_eq!((found.value, found.n_tied_events), (1.0, 0));
}

/// Numerator and denominator from all ordered pairs.
fn by_double_loop(
    outcomes: &Outcomes,
    prediction: impl Fn(usize, f64) -> f64,
    convention: ConventionTd,
    weight: impl Fn(f64) -> f64,
) -> (f64, f64) {
    let (time, event) = (outcomes.time(), outcomes.event());
    let (mut score, mut total) = (0.0, 0.0);
    for i in 0..outcomes.n() {
        for j in (0..outcomes.n()).filter(|&j| j != i) {
            let (own, other) = (prediction(i, time[i]), prediction(j, time[i]));
            let same_time = time[i] == time[j];
            let comparable = event[i] && (time[i] < time[j] || same_time && !event[j]);
            let two_events = event[i] && event[j] && same_time;
            let half_if_equal = if own < other {
                1.0
            } else if own == other {
                0.5
            } else {
                0.0
            };
            let (credit, counts) = match convention {
                ConventionTd::Antolini(TiedPredictions::Strict) if comparable => {
                    (f64::from(u8::from(own < other)), 1.0)
                }
                ConventionTd::Antolini(_) | ConventionTd::Adjusted if comparable => (half_if_equal, 1.0),
                ConventionTd::Adjusted if two_events => (if own == other { 1.0 } else { 0.5 }, 1.0),
                // The censored one as the first of the pair: its curve is read at the same time.
                ConventionTd::Adjusted if same_time && event[j] => (1.0 - half_if_equal, 1.0),
                ConventionTd::SurvivalEval(ties) => {
                    let is_tied = (own - other).abs() <= 1e-8;
                    let (tied_count, event_count) = match ties {
                        TiedPairs::Dropped => (0.0, 0.0),
                        TiedPairs::Predictions => (1.0, 0.0),
                        TiedPairs::Times => (0.0, 1.0),
                        TiedPairs::All => (1.0, 1.0),
                    };
                    if two_events {
                        // Half from each of the two events.
                        (0.25 * event_count, 0.5 * event_count)
                    } else if comparable && is_tied {
                        (0.5 * tied_count, tied_count)
                    } else if comparable {
                        (f64::from(u8::from(own < other)), 1.0)
                    } else {
                        (0.0, 0.0)
                    }
                }
                _ => (0.0, 0.0),
            };
            score += credit * weight(time[i]);
            total += counts * weight(time[i]);
        }
    }
    (score, total)
}

fn conventions() -> impl Strategy<Value = ConventionTd> {
    let ties = [TiedPairs::Dropped, TiedPairs::Predictions, TiedPairs::Times, TiedPairs::All];
    prop_oneof![
        prop::sample::select(vec![TiedPredictions::Strict, TiedPredictions::Half]).prop_map(ConventionTd::Antolini),
        Just(ConventionTd::Adjusted),
        prop::sample::select(ties.to_vec()).prop_map(ConventionTd::SurvivalEval),
    ]
}

fn readings() -> impl Strategy<Value = Reading> {
    let grid = [Reading::Step, Reading::Refined { factor: 3 }, Reading::Linear, Reading::ConstantHazard];
    prop_oneof![prop::sample::select(grid.to_vec()), Just(Reading::NextGridPoint), Just(Reading::LinearFromOne),]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_convention_equals_a_double_loop(
        rows in prop::collection::vec((0..12_u8, any::<bool>(), [0..4_u8, 0..4_u8, 0..4_u8]), 2..40),
        unit in prop::sample::select(vec![0.1, 0.6e-8]),
        reading in readings(),
        convention in conventions(),
        tau in prop::option::of(0..13_u8),
    ) {
        let time = rows.iter().map(|row| f64::from(row.0) / 2.0).collect();
        let outcomes = Outcomes::new(time, rows.iter().map(|row| row.1).collect()).unwrap();
        let values = Array2::from_shape_fn((rows.len(), 3), |(row, k)| {
            0.97 - unit * rows[row].2[..=k].iter().map(|&fall| f64::from(fall)).sum::<f64>()
        });
        let curves = SurvivalCurves::new(vec![1.0, 2.0, 4.0], values.mapv(|v| v.max(0.0))).unwrap();
        let read = CurvesRead::new(&outcomes, &curves, reading).unwrap();
        let prediction = |row, t| read.at(row, read.place(t));

        let found = concordance_td_with(&outcomes, &curves, reading, convention);
        let (score, total) = by_double_loop(&outcomes, prediction, convention, |_| 1.0);
        if let Ok(found) = &found {
            prop_assert_eq!((found.numerator, found.denominator), (score, total));
            prop_assert_eq!(found.value, score / total);
        } else {
            prop_assert_eq!(total, 0.0);
        }
        if let ConventionTd::Antolini(ties) = convention {
            let other = concordance_td(&outcomes, &curves, reading, ties);
            prop_assert_eq!(found.map(|c| (c.value, c.n_concordant)), other.map(|c| (c.value, c.n_concordant)));
        }

        if let ConventionTd::SurvivalEval(ties) = convention {
            // One more sample, censored after everything else, so that weights exist at every time.
            let train_time = outcomes.time().iter().copied().chain([9.0]).collect();
            let train_event = outcomes.event().iter().copied().chain([false]).collect();
            let train = Outcomes::new(train_time, train_event).unwrap();
            let censoring = CensoringCurve::fit(&train, CensoringTies::EventsFirst).unwrap();
            let tau = tau.map(|tau| f64::from(tau) / 2.0);
            let weight = |t: f64| {
                if t < tau.unwrap_or(99.0) { censoring.left_limit(t).unwrap().powi(-2) } else { 0.0 }
            };
            let (score, total) = by_double_loop(&outcomes, prediction, convention, weight);
            if let Ok(found) = concordance_td_ipcw(&outcomes, &curves, reading, &censoring, tau, ties) {
                prop_assert!((found.numerator - score).abs() <= 1e-12 * total);
                prop_assert!((found.denominator - total).abs() <= 1e-12 * total);
            } else {
                prop_assert_eq!(total, 0.0);
            }
        }
    }
}
