//! Losses, gradients and curves of every head against pycox 0.3.0 (commit 3eccdd7, torch 2.9 CPU, float32; the inputs and
//! outputs stand in datasets.md 3.2-3.5), against finite differences, and at the edges of the number range.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use approx::assert_abs_diff_eq;
use burn::tensor::{Device, Tensor, TensorData};
use fairtte_survival::{DeepHit, DeepHitConfig, IntervalTargets, NnetSurvival, Pmf, SurvivalHead, marginal_hazard};
use ndarray::{Array2, array};
use proptest::prelude::*;

// pycox adds 1e-7 inside its logarithms and works in f32.
const TOLERANCE: f32 = 2e-6;

fn logits() -> Array2<f32> {
    array![[0.5, -1.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [-2.0, 1.0, 0.3, -0.7], [3.0, 0.1, -0.2, 1.5]]
}

fn targets(index: &[usize], event: &[u8]) -> IntervalTargets {
    IntervalTargets { index: index.to_vec(), event: event.iter().map(|e| *e == 1).collect() }
}

fn tensor(values: &Array2<f32>, device: &Device) -> Tensor<2> {
    let shape = [values.nrows(), values.ncols()];
    Tensor::from_data(TensorData::new(values.iter().copied().collect::<Vec<f32>>(), shape), device)
}

fn losses(head: &dyn SurvivalHead, logits: &Array2<f32>, targets: &IntervalTargets) -> Vec<f32> {
    head.subject_losses(tensor(logits, &Device::flex()), targets).into_data().try_to_vec().unwrap()
}

fn gradient(head: &dyn SurvivalHead, logits: &Array2<f32>, targets: &IntervalTargets) -> Vec<f32> {
    let x = tensor(logits, &Device::flex().autodiff()).require_grad();
    let gradients = head.subject_losses(x.clone(), targets).mean().backward();
    x.grad(&gradients).unwrap().into_data().try_to_vec().unwrap()
}

fn mean(values: &[f32]) -> f32 {
    values.iter().sum::<f32>() / values.len() as f32
}

fn deephit(alpha: f64, sigma: f64) -> DeepHit {
    DeepHit::new(&DeepHitConfig { alpha, sigma }).unwrap()
}

fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= tolerance * expected.abs().max(1.0), "{found} is not {expected}");
    }
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
    let heads: [&dyn SurvivalHead; 3] = [&Pmf, &deephit(0.4, 0.5), &NnetSurvival];
    for head in heads {
        let analytic = gradient(head, &x, &targets);
        for (position, analytic) in analytic.into_iter().enumerate() {
            let moved = |by: f32| {
                let mut x = x.clone();
                x[[position / 4, position % 4]] += by;
                mean(&losses(head, &x, &targets))
            };
            let numeric = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            assert!((analytic - numeric).abs() < 2e-4, "{} {position}: {analytic} {numeric}", head.name());
        }
    }
}

#[test]
fn curves_are_those_of_pycox() {
    let first_row = logits().slice_move(ndarray::s![..1, ..]);
    let pmf = Pmf.survival(first_row.view());
    let expected = [0.855_447_1, 0.823_193, 0.175_351_7, 0.087_675_9];
    for (found, expected) in pmf.iter().zip(expected) {
        assert_abs_diff_eq!(*found, expected, epsilon = 1e-6);
    }
    let hazard = NnetSurvival.survival(first_row.view());
    let expected = [0.377_540_7, 0.276_004_5, 0.032_900_6, 0.016_450_3];
    for (found, expected) in hazard.iter().zip(expected) {
        assert_abs_diff_eq!(*found, expected, epsilon = 2e-7);
    }
}

// Seven samples by hand: at risk 7, 6, 4; events 0, 1, 2.
#[test]
fn training_starts_at_the_marginal_distribution() {
    let targets = targets(&[0, 1, 1, 2, 2, 2, 2], &[0, 1, 0, 1, 1, 0, 0]);
    let hazard = marginal_hazard(&targets, 3);
    for (found, expected) in hazard.iter().zip([0.05 / 7.1, 1.05 / 6.1, 2.05 / 4.1]) {
        assert_abs_diff_eq!(*found, expected, epsilon = 1e-15);
    }
    let heads: [&dyn SurvivalHead; 3] = [&Pmf, &deephit(0.2, 0.1), &NnetSurvival];
    for head in heads {
        #[expect(clippy::cast_possible_truncation, reason = "logits are f32")]
        let logits: Vec<f32> = head.logits_of(&hazard).iter().map(|logit| *logit as f32).collect();
        let curve = head.survival(Array2::from_shape_vec((1, 3), logits).unwrap().view());
        let mut survival = 1.0;
        for (found, hazard) in curve.iter().zip(&hazard) {
            survival *= 1.0 - hazard;
            assert_abs_diff_eq!(*found, survival, epsilon = 1e-6);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn losses_and_curves_stay_finite_at_large_logits(
        x in prop::collection::vec(-100.0_f32..100.0, 12),
        index in prop::collection::vec(0_usize..4, 3),
        event in prop::collection::vec(0_u8..2, 3),
    ) {
        let x = Array2::from_shape_vec((3, 4), x).unwrap();
        let targets = targets(&index, &event);
        let heads: [&dyn SurvivalHead; 3] = [&Pmf, &deephit(0.2, 0.02), &NnetSurvival];
        for head in heads {
            prop_assert!(losses(head, &x, &targets).iter().all(|l| l.is_finite() && *l >= -1e-4), "{}", head.name());
            prop_assert!(gradient(head, &x, &targets).iter().all(|g| g.is_finite()), "{}", head.name());
            for curve in head.survival(x.view()).rows() {
                prop_assert!(curve.iter().all(|s| (0.0..=1.0).contains(s)));
                prop_assert!(curve.iter().zip(curve.iter().skip(1)).all(|(now, later)| later <= now));
            }
        }
    }
}
