//! Losses, gradients and curves of every head against pycox 0.3.0 (commit 3eccdd7, torch 2.9 CPU, float32),
//! against finite differences, and at the edges of the number range.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use crate::common::{gradient, losses, mean_loss};
use approx::assert_abs_diff_eq;
use fairtte_metrics::rank::{TieTest, TiedPairs, TiedPredictions, concordance_td, harrell_concordance};
use fairtte_metrics::{Outcomes, Reading, Risk, SurvivalCurves};
use fairtte_survival::{
    Baseline, Cox, CoxConfig, CoxTime, CoxTimeConfig, CutPoints, DeepHit, DeepHitConfig, Interpolation, NnetSurvival,
    PcHazard, Pmf, PredictionGrid, Ranking, SurvivalHead, Targets, TiedTimes, marginal_hazard,
};
use ndarray::{Array2, array};
use proptest::prelude::*;

// pycox adds 1e-7 inside its logarithms and works in f32.
const TOLERANCE: f32 = 2e-6;

fn logits() -> Array2<f32> {
    array![[0.5, -1.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [-2.0, 1.0, 0.3, -0.7], [3.0, 0.1, -0.2, 1.5]]
}

/// `n` cut points at 0, 1, .., n - 1.
fn whole_cuts(n: usize) -> CutPoints {
    let train = Outcomes::new(vec![0.5, (n - 1) as f64], vec![true, false]).unwrap();
    CutPoints::equidistant(&train, n).unwrap()
}

/// Targets at whole times, so that time and index are the same number.
fn targets_of(n_cuts: usize, index: &[usize], event: &[u8]) -> Targets {
    let time: Vec<f64> = index.iter().map(|index| *index as f64).collect();
    let event: Vec<bool> = event.iter().map(|event| *event == 1).collect();
    whole_cuts(n_cuts).targets("test", &time, &event).unwrap()
}

fn targets(index: &[usize], event: &[u8]) -> Targets {
    targets_of(4, index, event)
}

fn mean(values: &[f32]) -> f32 {
    values.iter().sum::<f32>() / values.len() as f32
}

fn deephit(alpha: f64, sigma: f64) -> DeepHit {
    DeepHit::new(&DeepHitConfig { alpha, sigma, ranking: Ranking::Pycox }).unwrap()
}

fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
    crate::common::assert_close(found, expected, tolerance.into(), "value");
}

/// Every head, with settings that make all its terms count.
fn heads() -> Vec<Box<dyn SurvivalHead>> {
    let cox = |ties| Cox::new(&CoxConfig { ties });
    vec![
        Box::new(Pmf),
        Box::new(deephit(0.4, 0.5)),
        Box::new(DeepHit::new(&DeepHitConfig { alpha: 0.4, sigma: 0.5, ranking: Ranking::Paper }).unwrap()),
        Box::new(NnetSurvival),
        Box::new(cox(TiedTimes::Efron)),
        Box::new(cox(TiedTimes::Breslow)),
        Box::new(CoxTime::new(&CoxTimeConfig { shrink: 0.1, ..CoxTimeConfig::default() }).unwrap()),
        Box::new(PcHazard),
    ]
}

/// The columns of `x` that a network for `head` would give.
fn outputs_for(head: &dyn SurvivalHead, x: &Array2<f32>, targets: &Targets) -> Array2<f32> {
    let n = head.n_outputs(&whole_cuts(4)).max(head.query_times(targets).len());
    x.slice(ndarray::s![.., ..n]).to_owned()
}

/// Baseline of a Cox head from the same samples.
fn baseline(head: &dyn SurvivalHead, x: &Array2<f32>, targets: &Targets) -> Option<Baseline> {
    let train = Outcomes::new(targets.time.clone(), targets.event.clone()).unwrap();
    let mut fit = head.baseline_fit(&train)?;
    fit.add(&x.view(), train.time(), train.event());
    Some(fit.finish().unwrap())
}

#[test]
fn pmf_losses_are_those_of_pycox() {
    let first = targets(&[2, 0, 3, 3], &[1, 1, 0, 1]);
    let found = losses(&Pmf, &logits(), &first);
    assert_close(&found, &[0.434_109_5, 1.609_438, 1.740_476_7, 1.813_863_4], TOLERANCE);
    assert_abs_diff_eq!(mean(&found), 1.399_471_9, epsilon = TOLERANCE);
    let second = targets(&[1, 0, 3, 2], &[0, 0, 1, 0]);
    assert_close(&losses(&Pmf, &logits(), &second), &[0.194_564_7, 0.223_143_5, 2.440_477, 1.612_449_8], TOLERANCE);
}

#[test]
fn nnet_survival_losses_are_those_of_pycox() {
    let first = targets(&[2, 0, 3, 3], &[1, 1, 0, 1]);
    let found = losses(&NnetSurvival, &logits(), &first);
    assert_close(&found, &[1.414_266_7, std::f32::consts::LN_2, 2.697_731, 4.592_536], TOLERANCE);
    assert_abs_diff_eq!(mean(&found), 2.349_420_3, epsilon = TOLERANCE);
    let second = targets(&[1, 0, 3, 2], &[0, 0, 1, 0]);
    assert_close(
        &losses(&NnetSurvival, &logits(), &second),
        &[1.287_338_7, std::f32::consts::LN_2, 3.397_731, 4.391_123],
        TOLERANCE,
    );
}

#[test]
fn the_mean_deephit_loss_is_that_of_pycox() {
    let targets = targets(&[2, 0, 3, 3], &[1, 1, 0, 1]);
    let ranking = losses(&deephit(0.0, 0.1), &logits(), &targets);
    assert_close(&ranking, &[0.301_089_1, 50.581_63, 0.0, 0.062_230_6], TOLERANCE);
    assert_abs_diff_eq!(mean(&ranking), 12.736_238, epsilon = 2e-5);
    assert_abs_diff_eq!(mean(&losses(&deephit(0.0, 1.0), &logits(), &targets)), 0.390_459_5, epsilon = TOLERANCE);
    assert_abs_diff_eq!(mean(&losses(&deephit(0.2, 0.1), &logits(), &targets)), 10.468_885, epsilon = 2e-5);
    assert_abs_diff_eq!(mean(&losses(&deephit(0.5, 1.0), &logits(), &targets)), 0.894_965_7, epsilon = TOLERANCE);
}

#[test]
fn gradients_of_the_first_row_are_those_of_pycox() {
    let targets = targets(&[2, 0, 3, 3], &[1, 1, 0, 1]);
    let pmf = gradient(&Pmf, &logits(), &targets);
    assert_close(&pmf[..4], &[0.036_138_2, 0.008_063_5, -0.088_039_7, 0.021_918_9], TOLERANCE);
    let hazard = gradient(&NnetSurvival, &logits(), &targets);
    assert_close(&hazard[..4], &[0.155_614_8, 0.067_235_4, -0.029_800_7, 0.0], TOLERANCE);
    // The second row is an event at index 0 with outputs of exactly 0: (sigmoid(0) - 1) / 4.
    assert_close(&hazard[4..8], &[-0.125, 0.0, 0.0, 0.0], TOLERANCE);
}

/// Times of the subjects 1, 2, .. of which two thirds have their event before a two-hundredth of the follow-up, and a risk
/// that orders most of them.
#[test]
fn early_events_are_ordered_by_heads_whose_curves_begin_at_one() {
    let n = 300;
    let at = |i: usize| if i % 3 < 2 { 1.0 + (i % 97) as f64 / 40.0 } else { 700.0 + i as f64 };
    let time: Vec<f64> = (0..n).map(at).collect();
    let event: Vec<bool> = (0..n).map(|i| i % 3 < 2 || i % 2 == 0).collect();
    #[expect(clippy::cast_possible_truncation, reason = "outputs are f32")]
    let outputs = Array2::from_shape_fn((n, 1), |(i, _)| (-(at(i)).ln() + ((i * 29) % 11) as f64 / 8.0) as f32);
    let outcomes = Outcomes::new(time.clone(), event.clone()).unwrap();
    let risk = Risk::new(outputs.iter().map(|x| f64::from(*x)).collect()).unwrap();
    let harrell = harrell_concordance(&outcomes, &risk, TieTest::Exact, TiedPairs::Predictions).unwrap().value;
    let cuts = CutPoints::equidistant(&outcomes, 20).unwrap();
    let cox = Cox::new(&CoxConfig { ties: TiedTimes::Efron });
    let mut fit = cox.baseline_fit(&outcomes).unwrap();
    fit.add(&outputs.view(), &time, &event);
    let baseline = fit.finish().unwrap();
    let same_in_each_interval = Array2::from_shape_fn((n, 19), |(i, _)| outputs[[i, 0]]);
    for (head, outputs) in [(&cox as &dyn SurvivalHead, &outputs), (&PcHazard, &same_in_each_interval)] {
        let c_td = |grid: PredictionGrid| {
            let survival = head.survival(outputs.view(), &grid, Some(&baseline)).unwrap();
            let curves = SurvivalCurves::new(grid.times().to_vec(), survival).unwrap();
            concordance_td(&outcomes, &curves, Reading::default(), TiedPredictions::Strict).unwrap().value
        };
        let plain = c_td(PredictionGrid::at_cut_points(&cuts));
        let early = c_td(PredictionGrid::at_cut_points(&cuts).with_early(head, &outcomes));
        assert!(plain < harrell - 0.2, "{}: {plain} without the early time, {harrell}", head.name());
        assert!((early - harrell).abs() < 0.01, "{}: {early} with the early time, {harrell}", head.name());
    }
}

#[test]
fn only_heads_whose_curves_begin_at_one_get_the_early_time() {
    let train = Outcomes::new(vec![0.25, 0.5, 4.0], vec![false, true, true]).unwrap();
    let grid = |head: &dyn SurvivalHead, points| {
        let cuts = CutPoints::equidistant(&train, 3).unwrap();
        PredictionGrid::new(&cuts, points, Interpolation::Linear).unwrap().with_early(head, &train)
    };
    assert_eq!(grid(&Pmf, 1).times(), [0.0, 2.0, 4.0]);
    assert_eq!(grid(&PcHazard, 1).times(), [0.0, 0.5, 2.0, 4.0]);
    assert_eq!(grid(&PcHazard, 2).times(), [0.0, 0.5, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!(grid(&PcHazard, 4).times()[..3], [0.0, 0.5, 1.0], "the grid has it already");
    let at_0 = Outcomes::new(vec![0.0, 0.5, 4.0], vec![true; 3]).unwrap();
    let plain = PredictionGrid::at_cut_points(&CutPoints::equidistant(&at_0, 3).unwrap());
    assert_eq!(plain.with_early(&PcHazard, &at_0).times(), [0.0, 0.5, 2.0, 4.0], "0 is a time of the grid");
    // Hazards softplus(x) = 1 and 2 per interval: H = 1/4 at 0.5, 1/2 at 1, 1 at 2, 2 at 3, 3 at 4.
    let x = array![[(1_f32.exp() - 1.0).ln(), (2_f32.exp() - 1.0).ln()]];
    let survival = PcHazard.survival(x.view(), &grid(&PcHazard, 2), None).unwrap();
    for (s, h) in survival.iter().zip([0.0_f64, 0.25, 0.5, 1.0, 2.0, 3.0]) {
        assert_abs_diff_eq!(*s, (-h).exp(), epsilon = 1e-6);
    }
}

// A mean loss of about 1 in f32 is known to 1e-7; a central difference over 2e-2 turns that into 1e-5, and its own
// truncation error is about 1e-4 times the third derivative.
#[test]
fn gradients_agree_with_finite_differences() {
    let targets = targets(&[2, 1, 3, 0, 1], &[1, 1, 0, 0, 1]);
    let x = array![
        [0.5, -1.0, 2.0, 0.0],
        [0.2, -0.3, 0.1, 0.4],
        [-2.0, 1.0, 0.3, -0.7],
        [0.9, 0.1, -0.2, 1.5],
        [-0.4, 0.8, 0.6, -1.1]
    ];
    for head in heads() {
        let (head, x) = (head.as_ref(), outputs_for(head.as_ref(), &x, &targets));
        let analytic = gradient(head, &x, &targets);
        let width = x.ncols();
        assert!(analytic.iter().any(|g| g.abs() > 1e-2), "{}: nothing to compare", head.name());
        for (position, analytic) in analytic.into_iter().enumerate() {
            let moved = |by: f32| {
                let mut x = x.clone();
                x[[position / width, position % width]] += by;
                mean_loss(head, &x, &targets)
            };
            let numeric = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            let close = (f64::from(analytic) - numeric).abs() < 3e-4 * numeric.abs().max(1.0);
            assert!(close, "{} {position}: {analytic} {numeric}", head.name());
        }
    }
}

#[test]
fn curves_are_those_of_pycox() {
    let first_row = logits().slice_move(ndarray::s![..1, ..]);
    let grid = PredictionGrid::at_cut_points(&whole_cuts(4));
    let pmf = Pmf.survival(first_row.view(), &grid, None).unwrap();
    let expected = [0.855_447_1, 0.823_193, 0.175_351_7, 0.087_675_9];
    for (found, expected) in pmf.iter().zip(expected) {
        assert_abs_diff_eq!(*found, expected, epsilon = 1e-6);
    }
    let hazard = NnetSurvival.survival(first_row.view(), &grid, None).unwrap();
    let expected = [0.377_540_7, 0.276_004_5, 0.032_900_6, 0.016_450_3];
    for (found, expected) in hazard.iter().zip(expected) {
        assert_abs_diff_eq!(*found, expected, epsilon = 2e-7);
    }
}

// Seven samples, computed by hand: at risk 7, 6, 4; events 0, 1, 2.
#[test]
fn training_starts_at_the_marginal_distribution() {
    let targets = targets_of(3, &[0, 1, 1, 2, 2, 2, 2], &[0, 1, 0, 1, 1, 0, 0]);
    let hazard = marginal_hazard(&targets.intervals, 3);
    for (found, expected) in hazard.iter().zip([0.05 / 7.1, 1.05 / 6.1, 2.05 / 4.1]) {
        assert_abs_diff_eq!(*found, expected, epsilon = 1e-15);
    }
    let grid = PredictionGrid::at_cut_points(&whole_cuts(3));
    let heads: [&dyn SurvivalHead; 4] = [&Pmf, &deephit(0.2, 0.1), &NnetSurvival, &PcHazard];
    for head in heads {
        #[expect(clippy::cast_possible_truncation, reason = "outputs are f32")]
        let outputs: Vec<f32> = head.starting_outputs(&hazard).unwrap().iter().map(|output| *output as f32).collect();
        let outputs = Array2::from_shape_vec((1, outputs.len()), outputs).unwrap();
        let curve = head.survival(outputs.view(), &grid, None).unwrap();
        // pc-hazard starts at S(0) = 1: what happens at time 0 is not part of it.
        let at_0 = if head.name() == "pc-hazard" { 1.0 - hazard[0] } else { 1.0 };
        let mut survival = 1.0;
        for (found, hazard) in curve.iter().zip(&hazard) {
            survival *= 1.0 - hazard;
            assert_abs_diff_eq!(*found * at_0, survival, epsilon = 1e-6);
        }
    }
    assert!(Cox::default().starting_outputs(&hazard).is_none());
}

#[test]
fn batches_that_hold_nothing_to_learn_from_have_a_defined_loss() {
    let x = array![[0.5, -1.0, 2.0, 0.0], [0.2, -0.3, 0.1, 0.4], [-2.0, 1.0, 0.3, -0.7]];
    let censored = targets(&[1, 2, 3], &[0, 0, 0]);
    let tied = targets(&[2, 2, 2], &[1, 1, 1]);
    for head in heads() {
        for targets in [&censored, &tied] {
            let x = outputs_for(head.as_ref(), &x, targets);
            assert!(losses(head.as_ref(), &x, targets).iter().all(|loss| loss.is_finite()), "{}", head.name());
            assert!(gradient(head.as_ref(), &x, targets).iter().all(|g| g.is_finite()), "{}", head.name());
        }
        if head.name().starts_with("cox") {
            let x = outputs_for(head.as_ref(), &x, &censored);
            assert_eq!(losses(head.as_ref(), &x, &censored), [0.0; 3]);
            assert_eq!(gradient(head.as_ref(), &x, &censored), vec![0.0; x.len()]);
            assert_eq!(head.counted(&censored), [false; 3]);
        }
    }
    // No comparable pair: the ranking term is 0, so half the likelihood is left.
    for ranking in [Ranking::Pycox, Ranking::Paper] {
        let head = DeepHit::new(&DeepHitConfig { alpha: 0.5, sigma: 0.1, ranking }).unwrap();
        assert_abs_diff_eq!(mean_loss(&head, &x, &tied), 0.5 * mean_loss(&Pmf, &x, &tied), epsilon = 1e-7);
    }
}

#[test]
fn controls_are_drawn_from_the_given_stream_and_never_twice() {
    let targets = targets(&[1, 1, 2, 3, 3], &[1, 0, 1, 0, 0]);
    let x = array![[0.5, 1.5], [-0.5, 0.3], [1.0, -0.2], [0.2, 0.8], [-1.0, 0.1]];
    let head = |controls| CoxTime::new(&CoxTimeConfig { controls, ..CoxTimeConfig::default() }).unwrap();
    let one = losses(&head(1), &x, &targets);
    assert_eq!(one, losses(&head(1), &x, &targets));
    // Two comparisons are possible for the event of sample 2, at time 2: with sample 3 or with sample 4.
    let softplus = |difference: f32| difference.exp().ln_1p();
    let possible = [softplus(0.8 + 0.2), softplus(0.1 + 0.2)];
    assert!(possible.iter().any(|loss| (loss - one[2]).abs() < 1e-6), "{one:?}");
    // With two controls, all comparisons are used.
    assert_abs_diff_eq!(losses(&head(2), &x, &targets)[2], losses(&head(0), &x, &targets)[2], epsilon = 1e-6);
}

#[test]
fn tied_events_are_controls_of_each_other_and_a_copy_of_a_case_has_no_say() {
    let head = |controls| CoxTime::new(&CoxTimeConfig { controls, ..CoxTimeConfig::default() }).unwrap();
    // Two events at the last time: no other sample is at risk.
    let tied = targets(&[1, 3, 3], &[0, 1, 1]);
    let of = |a: f32, b: f32| (b - a).exp().ln_1p();
    for controls in [0, 1, 2] {
        let found = losses(&head(controls), &array![[0.4], [0.7], [-0.5]], &tied);
        for (found, expected) in found.iter().zip([0.0, of(0.7, -0.5), of(-0.5, 0.7)]) {
            assert_abs_diff_eq!(*found, expected, epsilon = 1e-6);
        }
        // The second event as a copy of the first.
        let copies = array![[0.4], [0.7], [0.7]];
        for (found, expected) in losses(&head(controls), &copies, &tied).iter().zip([0.0, 2.0_f32.ln(), 2.0_f32.ln()]) {
            assert_abs_diff_eq!(*found, expected, epsilon = 1e-6);
        }
        assert!(gradient(&head(controls), &copies, &tied).iter().all(|g| g.abs() < 1e-6));
    }
}

#[test]
fn a_large_batch_is_ranked_without_a_tensor_of_pairs_and_intervals() {
    // One tensor of 2048 x 2048 x 4096 numbers would take 64 GiB, which no test machine has.
    let (n, width) = (2_048, 4_096);
    let x = Array2::from_shape_fn((n, width), |(i, m)| ((i * 31 + m * 17) % 101) as f32 / 50.0 - 1.0);
    let index: Vec<usize> = (0..n).map(|i| i * 7 % width).collect();
    let event: Vec<u8> = (0..n).map(|i| u8::from(i % 3 == 0)).collect();
    let targets = targets_of(width, &index, &event);
    let head = deephit(0.2, 0.1);
    assert!(gradient(&head, &x, &targets).iter().all(|g| g.is_finite()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn losses_and_curves_stay_finite_at_large_outputs(
        x in prop::collection::vec(-100.0_f32..100.0, 12),
        index in prop::collection::vec(0_usize..4, 3),
        event in prop::collection::vec(0_u8..2, 3),
    ) {
        let x = Array2::from_shape_vec((3, 4), x).unwrap();
        let targets = targets(&index, &event);
        let mut all = heads();
        all.push(Box::new(deephit(0.2, 0.02)));
        for head in all {
            let (head, x) = (head.as_ref(), outputs_for(head.as_ref(), &x, &targets));
            let own = losses(head, &x, &targets);
            // With Efron's rule the loss of one of two tied events may be negative, their sum may not.
            let fits = |l: &f32| l.is_finite() && (*l >= -1e-4 || head.name() == "cox");
            prop_assert!(own.iter().all(fits) && own.iter().sum::<f32>() >= -1e-4, "{} {own:?}", head.name());
            prop_assert!(gradient(head, &x, &targets).iter().all(|g| g.is_finite()), "{}", head.name());
            let baseline = if event.contains(&1) { baseline(head, &x, &targets) } else { None };
            if head.name().starts_with("cox") && baseline.is_none() {
                continue;
            }
            for points in [1, 3] {
                let grid = PredictionGrid::new(&whole_cuts(4), points, Interpolation::Linear).unwrap();
                for curve in head.survival(x.view(), &grid, baseline.as_ref()).unwrap().rows() {
                    prop_assert!(curve.iter().all(|s| (0.0..=1.0).contains(s)), "{} {curve}", head.name());
                    let falling = curve.iter().zip(curve.iter().skip(1)).all(|(now, later)| later <= now);
                    prop_assert!(falling, "{} {curve}", head.name());
                }
            }
        }
    }

    #[test]
    fn permuting_a_batch_permutes_its_losses(
        x in prop::collection::vec(-3.0_f32..3.0, 24),
        index in prop::collection::vec(0_usize..4, 6),
        event in prop::collection::vec(0_u8..2, 6),
        order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let x = Array2::from_shape_vec((6, 4), x).unwrap();
        let permuted = targets(
            &order.iter().map(|i| index[*i]).collect::<Vec<_>>(),
            &order.iter().map(|i| event[*i]).collect::<Vec<_>>(),
        );
        let targets = targets(&index, &event);
        for head in heads() {
            let x = outputs_for(head.as_ref(), &x, &targets);
            let straight = losses(head.as_ref(), &x, &targets);
            let crooked = losses(head.as_ref(), &x.select(ndarray::Axis(0), &order), &permuted);
            for (position, sample) in order.iter().enumerate() {
                let (found, expected) = (crooked[position], straight[*sample]);
                let close = (found - expected).abs() <= 1e-5 * expected.abs().max(1.0);
                prop_assert!(close, "{} {found} {expected}", head.name());
            }
        }
    }

    #[test]
    fn a_shift_of_all_outputs_changes_nothing_for_the_cox_heads(
        x in prop::collection::vec(-3.0_f32..3.0, 24),
        index in prop::collection::vec(0_usize..4, 6),
        event in prop::collection::vec(0_u8..2, 6),
        shift in -20.0_f32..20.0,
    ) {
        prop_assume!(event.contains(&1));
        let x = Array2::from_shape_vec((6, 4), x).unwrap();
        let targets = targets(&index, &event);
        let cox = |ties| Cox::new(&CoxConfig { ties });
        let cox_time = CoxTime::new(&CoxTimeConfig::default()).unwrap();
        let heads: [&dyn SurvivalHead; 3] = [&cox(TiedTimes::Efron), &cox(TiedTimes::Breslow), &cox_time];
        let grid = PredictionGrid::at_cut_points(&whole_cuts(4));
        for head in heads {
            let here = outputs_for(head, &x, &targets);
            let there = &here + shift;
            for (a, b) in losses(head, &here, &targets).iter().zip(losses(head, &there, &targets)) {
                prop_assert!((a - b).abs() < 2e-5, "{} {a} {b}", head.name());
            }
            let curves = |x: &Array2<f32>| {
                head.survival(x.view(), &grid, baseline(head, x, &targets).as_ref()).unwrap()
            };
            for (a, b) in curves(&here).iter().zip(curves(&there)) {
                prop_assert!((a - b).abs() < 2e-5, "{} {a} {b}", head.name());
            }
        }
    }
}
