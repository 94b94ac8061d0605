//! Losses, gradients and curves against their closed forms in `f64`.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use burn::tensor::Device;
use fairtte_metrics::Outcomes;
use fairtte_metrics::seeds::stream;
use ndarray::array;

use super::*;

/// Outputs over the whole range, none of them beside the bound of the series.
const OUTPUTS: [f32; 9] = [-100.0, -20.0, -7.5, -3.25, -2.75, -1.0, 0.0, 1.5, 4.0];

/// Cut points at 0, 1, 2.
fn cuts() -> CutPoints {
    CutPoints::equidistant(&Outcomes::new(vec![1.0, 2.0], vec![true, true]).unwrap(), 3).unwrap()
}

/// Loss and gradient of one sample with the given outputs.
fn of_sample(outputs: [f32; 3], time: f64, event: bool) -> (f64, Vec<f64>) {
    let targets = cuts().targets("test", &[time], &[event]).unwrap();
    let outputs = Tensor::<2>::from_data([outputs], &Device::flex().autodiff()).require_grad();
    let losses = Cloglog.subject_losses(outputs.clone(), &targets, &mut stream(1, "controls", &[]));
    let loss: f32 = losses.clone().into_data().iter().next().unwrap();
    let gradients = losses.sum().backward();
    (f64::from(loss), outputs.grad(&gradients).unwrap().into_data().iter().collect())
}

fn assert_close(found: f64, expected: f64, what: &str) {
    let tolerance = 2e-6 * expected.abs().max(f64::from(f32::MIN_POSITIVE));
    assert!((found - expected).abs() <= tolerance, "{what}: {found}, expected {expected}");
}

#[test]
fn losses_and_gradients_are_those_of_the_formula() {
    for x in OUTPUTS {
        let others = [0.5_f32, x, -0.25];
        let (before, c) = (0.5_f64.exp(), f64::from(x).exp());
        // An event in the second interval: survives the first one.
        let (loss, gradient) = of_sample(others, 1.0, true);
        let log_hazard = if x < -50.0 { f64::from(x) } else { (-(-c).exp_m1()).ln() };
        assert_close(loss, before - log_hazard, &format!("event, {x}"));
        let slope = if x < -50.0 { 1.0 } else { c / c.exp_m1() };
        for (found, expected) in gradient.iter().zip([before, -slope, 0.0]) {
            assert_close(*found, expected, &format!("gradient, event, {x}"));
        }
        // A censoring there: survives both.
        let (loss, gradient) = of_sample(others, 1.5, false);
        assert_close(loss, before + c, &format!("censored, {x}"));
        for (found, expected) in gradient.iter().zip([before, c, 0.0]) {
            assert_close(*found, expected, &format!("gradient, censored, {x}"));
        }
    }
}

#[test]
fn losses_and_gradients_stay_finite_at_extreme_outputs() {
    for x in [-100.0, 100.0] {
        for event in [true, false] {
            let (loss, gradient) = of_sample([x; 3], 2.0, event);
            assert!(loss.is_finite() && gradient.iter().all(|slope| slope.is_finite()), "{x}: {loss}, {gradient:?}");
        }
    }
}

#[test]
fn training_starts_at_the_given_hazards_and_a_constant_multiplies_the_hazard() {
    let hazard = [0.05, 0.2, 0.5];
    #[expect(clippy::cast_possible_truncation, reason = "outputs are f32")]
    let start: Vec<f32> = Cloglog.starting_outputs(&hazard).unwrap().iter().map(|x| *x as f32).collect();
    let outputs = array![[start[0], start[1], start[2]]];
    let grid = PredictionGrid::at_cut_points(&cuts());
    let survival = Cloglog.survival(outputs.view(), &grid, None).unwrap();
    let of_doubled = Cloglog.survival((outputs + 2.0_f32.ln()).view(), &grid, None).unwrap();
    for (j, expected) in [0.95, 0.95 * 0.8, 0.95 * 0.8 * 0.5].into_iter().enumerate() {
        assert_close(survival[[0, j]], expected, "S");
        assert_close(of_doubled[[0, j]], expected * expected, "S with twice the hazard");
    }
}
