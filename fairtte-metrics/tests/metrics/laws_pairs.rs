//! Concordances of every convention against a plain double loop over pairs, with near ties of predictions, tiny steps,
//! and times of 0 with either sign.

#![expect(clippy::unwrap_used, reason = "a value that must exist and does not fails the test")]

use fairtte_metrics::rank::{
    ConventionTd, TieTest, TiedPairs, TiedPredictions, concordance_td_ipcw, concordance_td_with, harrell_concordance,
};
use fairtte_metrics::{CensoringCurve, CensoringTies, Outcomes, Reading, Risk, SurvivalCurves};
use ndarray::Array2;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const GRID: [f64; 3] = [1.0, 3.0, 6.0];
const TIES: [TiedPairs; 4] = [TiedPairs::Dropped, TiedPairs::Predictions, TiedPairs::Times, TiedPairs::All];

#[derive(Clone, Debug)]
struct Sample {
    time: Vec<f64>,
    event: Vec<bool>,
    survival: Vec<[f64; 3]>,
}

/// Times on a lattice, next to it, 0 with either sign, or far away; predictions tied, tied within 1e-8, or just not.
fn samples() -> impl Strategy<Value = Sample> {
    let time = prop_oneof![
        10 => (0..16_u8).prop_map(|k| f64::from(k) / 2.0),
        1 => (1..16_u8).prop_map(|k| f64::from(k) / 2.0 + 1e-9),
        1 => Just(-0.0),
        1 => Just(1e6),
    ];
    let offset = prop_oneof![
        5 => Just(0.0), 1 => Just(1e-15), 1 => Just(1e-12), 1 => Just(3e-9), 1 => Just(8e-9), 1 => Just(1.9e-8)
    ];
    let step = prop_oneof![5 => Just(0.1), 1 => Just(1.3e-11)];
    let row = (time, any::<bool>(), [0..4_u8, 0..4_u8, 0..3_u8], step, offset);
    prop::collection::vec(row, 2..30).prop_map(|rows| {
        let curve = |drops: [u8; 3], step: f64, offset: f64| {
            let mut dropped = 0;
            drops.map(|drop| {
                dropped += i32::from(drop);
                1.0 - f64::from(dropped) * step - offset
            })
        };
        Sample {
            time: rows.iter().map(|row| row.0).collect(),
            event: rows.iter().map(|row| row.1).collect(),
            survival: rows.iter().map(|row| curve(row.2, row.3, row.4)).collect(),
        }
    })
}

/// What the pairs of a double loop add up to.
#[derive(Default)]
struct Pairs {
    concordant: f64,
    discordant: f64,
    tied: f64,
    /// Unordered pairs of two events at one time.
    tied_events: f64,
}

impl Pairs {
    /// `ahead(i, j)` is above 0 where the earlier i is rightly predicted to be at higher risk.
    fn count(
        sample: &Sample,
        tolerance: f64,
        weight: impl Fn(f64) -> f64,
        ahead: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let (time, event) = (&sample.time, &sample.event);
        let mut pairs = Self::default();
        for i in (0..time.len()).filter(|&i| event[i]) {
            let weight = weight(time[i]);
            for j in (0..time.len()).filter(|&j| j != i && time[j] >= time[i]) {
                let together = time[j] <= time[i];
                if together && event[j] {
                    pairs.tied_events += 0.5 * weight;
                } else if ahead(i, j).abs() <= tolerance {
                    pairs.tied += weight;
                } else if ahead(i, j) > 0.0 {
                    pairs.concordant += weight;
                } else {
                    pairs.discordant += weight;
                }
            }
        }
        pairs
    }

    fn share(&self, ties: TiedPairs) -> (f64, f64) {
        let untied = self.concordant + self.discordant;
        let halves = match ties {
            TiedPairs::Dropped => 0.0,
            TiedPairs::Predictions => self.tied,
            TiedPairs::Times => self.tied_events,
            TiedPairs::All => self.tied + self.tied_events,
        };
        (self.concordant + halves / 2.0, untied + halves)
    }
}

/// Both exist and are equal, or nothing was counted and there is none.
fn agree(found: Option<f64>, (score, total): (f64, f64)) -> bool {
    match found {
        Some(found) => (found * total - score).abs() <= 1e-12 * total.max(1.0),
        None => total <= 0.0,
    }
}

/// S by the step: the last grid point at or before t, or the first at or after it.
fn step(curve: &[f64; 3], t: f64, next: bool) -> f64 {
    if next {
        return curve[GRID.iter().position(|point| *point >= t).unwrap_or(2)];
    }
    curve[GRID.iter().rposition(|point| *point <= t).unwrap_or(0)]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_500,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn harrell_of_any_score_is_that_of_a_double_loop(sample in samples()) {
        let outcomes = Outcomes::new(sample.time.clone(), sample.event.clone()).unwrap();
        let score: Vec<f64> = sample.survival.iter().map(|curve| 0.5 - curve[1]).collect();
        let risk = Risk::new(score.clone()).unwrap();
        for test in [TieTest::Near, TieTest::Exact] {
            let pairs = Pairs::count(&sample, test.tolerance(), |_| 1.0, |i, j| score[i] - score[j]);
            for ties in TIES {
                let found = harrell_concordance(&outcomes, &risk, test, ties).ok();
                if let Some(found) = &found {
                    let counts = [found.n_concordant, found.n_discordant, found.n_tied_predictions, found.n_tied_events];
                    let expected = [pairs.concordant, pairs.discordant, pairs.tied, pairs.tied_events];
                    let same = counts.iter().zip(expected).all(|(count, expected)| (*count as f64 - expected).abs() < 0.5);
                    prop_assert!(same, "{:?} {:?}", counts, expected);
                }
                prop_assert!(agree(found.map(|found| found.value), pairs.share(ties)), "{:?} {:?}", test, ties);
            }
        }
    }

    #[test]
    fn every_convention_of_c_td_is_that_of_a_double_loop(sample in samples()) {
        let outcomes = Outcomes::new(sample.time.clone(), sample.event.clone()).unwrap();
        let survival = Array2::from_shape_vec((sample.time.len(), 3), sample.survival.concat()).unwrap();
        let curves = SurvivalCurves::new(GRID.to_vec(), survival).unwrap();
        // One more sample, censored after all others, so that all events have weights.
        let longer = [sample.time.as_slice(), &[2e6]].concat();
        let events = [sample.event.as_slice(), &[false]].concat();
        let train = Outcomes::new(longer, events).unwrap();
        let censoring = CensoringCurve::fit(&train, CensoringTies::EventsFirst).unwrap();
        for (reading, next) in [(Reading::Step, false), (Reading::NextGridPoint, true)] {
            let ahead = |i: usize, j: usize| {
                let t = sample.time[i];
                step(&sample.survival[j], t, next) - step(&sample.survival[i], t, next)
            };
            let value = |convention| concordance_td_with(&outcomes, &curves, reading, convention).ok().map(|c| c.value);
            let (exact, near) =
                (Pairs::count(&sample, 0.0, |_| 1.0, ahead), Pairs::count(&sample, 1e-8, |_| 1.0, ahead));
            let strict = (exact.concordant, exact.concordant + exact.discordant + exact.tied);
            prop_assert!(agree(value(ConventionTd::Antolini(TiedPredictions::Strict)), strict));
            prop_assert!(agree(
                value(ConventionTd::Antolini(TiedPredictions::Half)),
                exact.share(TiedPairs::Predictions)
            ));
            prop_assert!(agree(value(ConventionTd::Adjusted), adjusted(&sample, ahead)));
            let weighted = |time: f64| censoring.left_limit(time).unwrap().powi(-2);
            let weighted = Pairs::count(&sample, 1e-8, weighted, ahead);
            for ties in TIES {
                prop_assert!(agree(value(ConventionTd::SurvivalEval(ties)), near.share(ties)), "{:?}", ties);
                let found = concordance_td_ipcw(&outcomes, &curves, reading, &censoring, None, ties);
                prop_assert!(agree(found.ok().map(|c| c.value), weighted.share(ties)), "weighted {:?}", ties);
            }
        }
    }
}

/// Sums over ordered pairs: those at one time come up twice, and two events score 1 if tied, else 1/2.
fn adjusted(sample: &Sample, ahead: impl Fn(usize, usize) -> f64) -> (f64, f64) {
    let (time, event) = (&sample.time, &sample.event);
    let (mut score, mut total) = (0.0, 0.0);
    for i in (0..time.len()).filter(|&i| event[i]) {
        for j in (0..time.len()).filter(|&j| j != i && time[j] >= time[i]) {
            let (together, ahead) = (time[j] <= time[i], ahead(i, j));
            let tied = ahead.abs() <= 0.0;
            if together && event[j] {
                score += if tied { 1.0 } else { 0.5 };
                total += 1.0;
            } else {
                let weight = if together { 2.0 } else { 1.0 };
                score += weight * if tied { 0.5 } else { f64::from(u8::from(ahead > 0.0)) };
                total += weight;
            }
        }
    }
    (score, total)
}
