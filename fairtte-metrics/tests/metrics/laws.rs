//! Laws that hold for every input: against a plain double loop, under permutation, negation and duplication.

#![expect(clippy::unwrap_used, reason = "a value that must exist and does not fails the test")]

use fairtte_metrics::rank::{AucTd, ConcordanceTd, TiedPredictions, auc_td, concordance_td};
use fairtte_metrics::scores::{PreparedBrier, brier_score, integrated_brier_score};
use fairtte_metrics::{CensoringCurve, CensoringTies, Outcomes, Reading, SurvivalCurves, seeds};
use ndarray::Array2;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const GRID: [f64; 4] = [1.0, 2.0, 4.0, 7.0];
const TIMES: [f64; 5] = [0.5, 2.0, 3.3, 5.0, 8.5];

/// A sample with many ties: times and predictions lie on coarse lattices, so that every tie rule is used.
#[derive(Clone, Debug)]
struct Sample {
    time: Vec<f64>,
    event: Vec<bool>,
    survival: Vec<[f64; 4]>,
}

impl Sample {
    fn n(&self) -> usize {
        self.time.len()
    }

    fn outcomes(&self) -> Outcomes {
        Outcomes::new(self.time.clone(), self.event.clone()).unwrap()
    }

    fn curves(&self) -> SurvivalCurves {
        let values = Array2::from_shape_vec((self.n(), 4), self.survival.concat()).unwrap();
        SurvivalCurves::new(GRID.to_vec(), values).unwrap()
    }

    fn censoring(&self) -> CensoringCurve {
        // Two more samples, censored after everything else, so that weights exist at every time.
        let last = self.time.iter().copied().fold(9.0, f64::max);
        let time = [self.time.as_slice(), &[last + 0.5, last + 1.0]].concat();
        let event = [self.event.as_slice(), &[false, false]].concat();
        CensoringCurve::fit(&Outcomes::new(time, event).unwrap(), CensoringTies::EventsFirst).unwrap()
    }

    fn select(&self, index: &[usize]) -> Self {
        Self {
            time: index.iter().map(|&row| self.time[row]).collect(),
            event: index.iter().map(|&row| self.event[row]).collect(),
            survival: index.iter().map(|&row| self.survival[row]).collect(),
        }
    }
}

fn samples() -> impl Strategy<Value = Sample> {
    let row = (times(), any::<bool>(), [0..5_u8, 0..5_u8, 0..5_u8, 0..5_u8], step_size(), near_tie());
    prop::collection::vec(row, 2..40).prop_map(|rows| Sample {
        time: rows.iter().map(|row| row.0).collect(),
        event: rows.iter().map(|row| row.1).collect(),
        survival: rows.iter().map(|row| falling(row.2, row.3).map(|survival| survival - row.4)).collect(),
    })
}

/// Mostly a lattice, so that events and censorings tie; also 0 with either sign, steps of 1e-9, and one far away.
fn times() -> impl Strategy<Value = f64> {
    prop_oneof![
        12 => (0..18_u8).prop_map(|k| f64::from(k) / 2.0),
        2 => (1..18_u8, 1..3_u8).prop_map(|(k, j)| f64::from(k) / 2.0 + f64::from(j) * 1e-9),
        1 => Just(-0.0),
        1 => Just(1e6),
    ]
}

/// How far a curve falls at a step: as a rule 1/20, sometimes next to nothing.
fn step_size() -> impl Strategy<Value = f64> {
    prop_oneof![6 => Just(0.05), 1 => Just(1e-3), 1 => Just(1.3e-11)]
}

/// Below a curve on the lattice by less than the tolerance of 1e-8 of the AUC, or by just more.
fn near_tie() -> impl Strategy<Value = f64> {
    prop_oneof![6 => Just(0.0), 1 => Just(1e-15), 1 => Just(1e-12), 1 => Just(3e-9), 1 => Just(8e-9), 1 => Just(1.9e-8)]
}

/// Drops of 0 to 4 steps at every grid point.
fn falling(drops: [u8; 4], step: f64) -> [f64; 4] {
    let mut dropped = 0;
    drops.map(|drop| {
        dropped += i32::from(drop);
        1.0 - f64::from(dropped) * step
    })
}

fn readings() -> impl Strategy<Value = Reading> {
    prop_oneof![
        Just(Reading::Step),
        (1..6_usize).prop_map(|factor| Reading::Refined { factor }),
        Just(Reading::Linear),
        Just(Reading::ConstantHazard),
    ]
}

/// Comparable, concordant and tied pairs by a plain double loop over the definition.
fn count_pairs(sample: &Sample, reading: Reading) -> (u64, u64, u64) {
    let curves = sample.curves();
    let (mut comparable, mut concordant, mut tied) = (0, 0, 0);
    for i in (0..sample.n()).filter(|&i| sample.event[i]) {
        let here = curves.at(i, sample.time[i], reading);
        for j in 0..sample.n() {
            let outlived = sample.time[j] > sample.time[i];
            if outlived || (sample.time[j] >= sample.time[i] && !sample.event[j]) {
                let other = curves.at(j, sample.time[i], reading);
                comparable += 1;
                concordant += u64::from(here < other);
                tied += u64::from(here.total_cmp(&other).is_eq());
            }
        }
    }
    (comparable, concordant, tied)
}

/// AUC at time t by a plain double loop over the definition.
fn auc_by_pairs(sample: &Sample, reading: Reading, t: f64) -> Option<f64> {
    let (curves, censoring) = (sample.curves(), sample.censoring());
    let (mut won, mut total) = (0.0, 0.0);
    for i in (0..sample.n()).filter(|&i| sample.event[i] && sample.time[i] <= t) {
        let weight = 1.0 / censoring.at(sample.time[i]).unwrap();
        for j in (0..sample.n()).filter(|&j| sample.time[j] > t) {
            let difference = curves.at(j, t, reading) - curves.at(i, t, reading);
            won += weight * if difference.abs() <= 1e-8 { 0.5 } else { f64::from(u8::from(difference > 0.0)) };
            total += weight;
        }
    }
    (total > 0.0).then(|| won / total)
}

fn brier_by_hand(sample: &Sample, reading: Reading, t: f64) -> f64 {
    let (curves, censoring) = (sample.curves(), sample.censoring());
    let loss = |row: usize| {
        let survival = curves.at(row, t, reading);
        if sample.time[row] > t {
            (1.0 - survival).powi(2) / censoring.at(t).unwrap()
        } else if sample.event[row] {
            survival.powi(2) / censoring.at(sample.time[row]).unwrap()
        } else {
            0.0
        }
    };
    (0..sample.n()).map(loss).sum::<f64>() / sample.n() as f64
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12
}

/// All summary values; `None` where undefined.
fn summaries(sample: &Sample, reading: Reading) -> [Option<f64>; 4] {
    let (outcomes, curves, censoring) = (sample.outcomes(), sample.curves(), sample.censoring());
    let concordance = |ties| concordance_td(&outcomes, &curves, reading, ties).ok().map(|found| found.value);
    [
        concordance(TiedPredictions::Strict),
        concordance(TiedPredictions::Half),
        auc_td(&outcomes, &curves, &censoring, reading, &TIMES).unwrap().time_average.ok(),
        integrated_brier_score(&outcomes, &curves, &censoring, reading, &TIMES).ok(),
    ]
}

fn all_close(a: [Option<f64>; 4], b: [Option<f64>; 4]) -> bool {
    a.into_iter().zip(b).all(|pair| match pair {
        (Some(a), Some(b)) => close(a, b),
        (None, None) => true,
        _ => false,
    })
}

/// The same cases in every run.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(2_500))]

    #[test]
    fn concordance_counts_equal_a_double_loop(sample in samples(), reading in readings()) {
        let (comparable, concordant, tied) = count_pairs(&sample, reading);
        let found = concordance_td(&sample.outcomes(), &sample.curves(), reading, TiedPredictions::Half);
        prop_assert_eq!(found.is_ok(), comparable > 0);
        if let Ok(found) = found {
            let counts = (found.n_comparable, found.n_concordant, found.n_tied_predictions);
            prop_assert_eq!(counts, (comparable, concordant, tied));
            let expected = (concordant as f64 + 0.5 * tied as f64) / comparable as f64;
            prop_assert!(close(found.value, expected));
        }
    }

}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn auc_and_brier_equal_their_definitions(sample in samples(), reading in readings()) {
        let (outcomes, curves, censoring) = (sample.outcomes(), sample.curves(), sample.censoring());
        let auc = auc_td(&outcomes, &curves, &censoring, reading, &TIMES).unwrap();
        let brier = brier_score(&outcomes, &curves, &censoring, reading, &TIMES).unwrap();
        for (k, t) in TIMES.into_iter().enumerate() {
            match auc_by_pairs(&sample, reading, t) {
                Some(expected) => prop_assert!(close(auc.values[k].clone().unwrap(), expected)),
                None => prop_assert!(auc.values[k].is_err()),
            }
            prop_assert!(close(brier.values[k], brier_by_hand(&sample, reading, t)));
        }
        let integral: f64 = (1..TIMES.len())
            .map(|k| (TIMES[k] - TIMES[k - 1]) * f64::midpoint(brier.values[k], brier.values[k - 1]))
            .sum();
        let found = integrated_brier_score(&outcomes, &curves, &censoring, reading, &TIMES).unwrap();
        prop_assert!(close(found, integral / (TIMES[4] - TIMES[0])));
    }

    #[test]
    fn a_negative_zero_is_the_time_0(sample in samples(), reading in readings(), zeros in prop::collection::vec(any::<bool>(), 40)) {
        let mut signed = sample.clone();
        for (time, negative) in signed.time.iter_mut().zip(zeros) {
            if *time <= 0.0 {
                *time = if negative { -0.0 } else { 0.0 };
            }
        }
        prop_assert_eq!(summaries(&sample, reading), summaries(&signed, reading));
    }

    #[test]
    fn the_order_of_samples_changes_nothing(sample in samples(), reading in readings(), seed in any::<u64>()) {
        let mut order: Vec<usize> = (0..sample.n()).collect();
        order.sort_by_key(|row| (*row as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
        prop_assert!(all_close(summaries(&sample, reading), summaries(&sample.select(&order), reading)));
    }

    #[test]
    fn a_weight_is_a_number_of_copies(
        sample in samples(),
        reading in readings(),
        weights in prop::collection::vec(0..4_u32, 40),
    ) {
        let weights = &weights[..sample.n()];
        let copies: Vec<usize> =
            (0..sample.n()).flat_map(|row| std::iter::repeat_n(row, weights[row] as usize)).collect();
        // The censoring curve stays that of the original sample, as it does in a bootstrap.
        let (outcomes, curves, censoring) = (sample.outcomes(), sample.curves(), sample.censoring());
        let (copied, copied_curves) = (outcomes.select(&copies), curves.select(&copies));
        let prepared = ConcordanceTd::prepare(&outcomes, &curves, reading).unwrap();
        for ties in [TiedPredictions::Strict, TiedPredictions::Half] {
            prop_assert_eq!(prepared.weighted(weights, ties), concordance_td(&copied, &copied_curves, reading, ties));
        }
        let auc = AucTd::prepare(&outcomes, &curves, &censoring, reading, &TIMES).unwrap().weighted(weights).unwrap();
        let copied_auc = auc_td(&copied, &copied_curves, &censoring, reading, &TIMES).unwrap();
        for (weighted, written_out) in auc.values.iter().zip(&copied_auc.values) {
            match (weighted, written_out) {
                (Ok(a), Ok(b)) => prop_assert!(close(*a, *b)),
                (a, b) => prop_assert_eq!(a, b),
            }
        }
        let brier = PreparedBrier::new(&outcomes, &curves, &censoring, reading, &TIMES).unwrap().weighted(weights);
        match integrated_brier_score(&copied, &copied_curves, &censoring, reading, &TIMES) {
            Ok(expected) => prop_assert!(close(brier.unwrap(), expected)),
            Err(error) => prop_assert_eq!(brier, Err(error)),
        }
    }

    #[test]
    fn reversed_predictions_mirror_concordance_and_auc(sample in samples()) {
        // Proportional hazards curves: reversing the rates reverses every ranking at every time.
        let rate = |row: usize, reverse: bool| {
            let rate = f64::from(sample.time[row].to_bits().count_ones() % 5 + 1) + f64::from(u8::from(row.is_multiple_of(3)));
            if reverse { 7.0 - rate } else { rate }
        };
        let curves = |reverse| {
            let values = Array2::from_shape_fn((sample.n(), 4), |(row, k)| (-0.1 * rate(row, reverse) * GRID[k]).exp());
            SurvivalCurves::new(GRID.to_vec(), values).unwrap()
        };
        let (outcomes, censoring) = (sample.outcomes(), sample.censoring());
        let concordance =
            |reverse| concordance_td(&outcomes, &curves(reverse), Reading::Step, TiedPredictions::Half);
        if let Ok(found) = concordance(false) {
            prop_assert!(close(found.value + concordance(true).unwrap().value, 1.0));
        }
        let auc = |reverse| auc_td(&outcomes, &curves(reverse), &censoring, Reading::Step, &TIMES).unwrap();
        for (a, b) in auc(false).values.iter().zip(&auc(true).values) {
            if let (Ok(a), Ok(b)) = (a, b) {
                prop_assert!(close(a + b, 1.0));
            }
        }
    }

    #[test]
    fn another_unit_of_time_changes_no_rank_metric(sample in samples(), reading in readings(), power in -8..9_i32) {
        // Powers of two, so that times and grid are scaled without rounding and ties stay ties.
        let unit = f64::from(power).exp2();
        let scale = |times: &[f64]| times.iter().map(|time| time * unit).collect::<Vec<f64>>();
        let (outcomes, curves) = (sample.outcomes(), sample.curves());
        let scaled = Outcomes::new(scale(outcomes.time()), outcomes.event().to_vec()).unwrap();
        let scaled_curves = SurvivalCurves::new(scale(&GRID), curves.survival().to_owned()).unwrap();
        let train = Outcomes::new(vec![1.5, 3.0, 9.5], vec![false, true, false]).unwrap();
        let scaled_train = Outcomes::new(scale(train.time()), train.event().to_vec()).unwrap();
        let ties = TiedPredictions::Half;
        prop_assert_eq!(
            concordance_td(&outcomes, &curves, reading, ties),
            concordance_td(&scaled, &scaled_curves, reading, ties)
        );
        let auc = |outcomes, curves, train, times: &[f64]| {
            let censoring = CensoringCurve::fit(train, CensoringTies::EventsFirst).unwrap();
            let found = auc_td(outcomes, curves, &censoring, reading, times).unwrap();
            found.values.into_iter().map(Result::ok).collect::<Vec<_>>()
        };
        let in_new_unit = auc(&scaled, &scaled_curves, &scaled_train, &scale(&TIMES));
        prop_assert_eq!(auc(&outcomes, &curves, &train, &TIMES), in_new_unit);
    }

    #[test]
    fn every_reading_stays_in_the_unit_interval_and_never_rises(sample in samples(), reading in readings()) {
        let curves = sample.curves();
        for row in 0..sample.n() {
            let mut before = 1.0;
            for step in 0..100 {
                let here = curves.at(row, f64::from(step) / 10.0, reading);
                prop_assert!((0.0..=before).contains(&here));
                before = here;
            }
        }
    }

    #[test]
    fn values_lie_in_their_ranges(sample in samples(), reading in readings()) {
        let [strict, half, auc, brier] = summaries(&sample, reading);
        for value in [strict, half, auc].into_iter().flatten() {
            prop_assert!((0.0..=1.0).contains(&value));
        }
        prop_assert!(strict <= half);
        prop_assert!(brier.unwrap() >= 0.0);
    }
}

#[test]
fn a_bin_with_hundreds_of_distinct_predictions_is_counted_like_a_double_loop() {
    let n = 700;
    let spread = |row: usize, factor: usize| row * factor % n;
    let sample = Sample {
        time: (0..n).map(|row| 1.0 + spread(row, 37) as f64 / n as f64).collect(),
        event: (0..n).map(|row| row % 4 > 0).collect(),
        // 350 distinct values, all read from the first column.
        survival: (0..n).map(|row| [1.0 - (spread(row, 101) / 2) as f64 / n as f64, 0.0, 0.0, 0.0]).collect(),
    };
    let (comparable, concordant, tied) = count_pairs(&sample, Reading::Step);
    let found = concordance_td(&sample.outcomes(), &sample.curves(), Reading::Step, TiedPredictions::Strict).unwrap();
    let counts = (found.n_comparable, found.n_concordant, found.n_tied_predictions);
    assert_eq!(counts, (comparable, concordant, tied));
    assert!(tied > 0);
}

#[test]
fn concordance_of_the_true_curves_converges_to_its_closed_form() {
    // Rates a and b with probability 1/2 each, exponential censoring with rate c. A pair is comparable if the first of
    // its four times is an event, with probability (r + r') / (r + r' + 2 c); of two different rates the higher one is
    // first with probability a / (a + b); equal rates tie.
    let (a, b, c) = (1.5, 0.5, 0.4);
    let comparable = |first: f64, second: f64| (first + second) / (first + second + 2.0 * c);
    let (same, different) = (0.25 * (comparable(a, a) + comparable(b, b)), 0.5 * comparable(a, b));
    let truth_half = (0.5 * same + a / (a + b) * different) / (same + different);
    let truth_strict = a / (a + b) * different / (same + different);

    let n = 40_000;
    let mut rng = seeds::stream(5, "convergence", &[]);
    let mut exponential = |rate: f64| -(1.0 - rng.random::<f64>()).ln() / rate;
    let rate = |row: usize| if row.is_multiple_of(2) { a } else { b };
    let times: Vec<(f64, f64)> = (0..n).map(|row| (exponential(rate(row)), exponential(c))).collect();
    let observed = times.iter().map(|(event, censored)| event.min(*censored)).collect();
    let outcomes = Outcomes::new(observed, times.iter().map(|(event, censored)| event <= censored).collect()).unwrap();
    let grid: Vec<f64> = (1..=40).map(|k| 0.1 * f64::from(k)).collect();
    let survival = Array2::from_shape_fn((n, grid.len()), |(row, k)| (-rate(row) * grid[k]).exp());
    let curves = SurvivalCurves::new(grid, survival).unwrap();
    let found = concordance_td(&outcomes, &curves, Reading::Step, TiedPredictions::Half).unwrap();
    // The standard error at this size is about 0.002.
    assert!((found.value - truth_half).abs() < 0.008, "{} against {truth_half}", found.value);
    let strict = found.value_with(TiedPredictions::Strict);
    assert!((strict - truth_strict).abs() < 0.008, "{strict} against {truth_strict}");
}
