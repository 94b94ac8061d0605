//! Shared by the tests of losses and curves.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use burn::tensor::{Device, Tensor, TensorData};
use fairtte_metrics::seeds::stream;
use fairtte_survival::{SurvivalHead, Targets};
use ndarray::Array2;

pub fn tensor(values: &Array2<f32>, device: &Device) -> Tensor<2> {
    let shape = [values.nrows(), values.ncols()];
    Tensor::from_data(TensorData::new(values.iter().copied().collect::<Vec<f32>>(), shape), device)
}

pub fn losses(head: &dyn SurvivalHead, outputs: &Array2<f32>, targets: &Targets) -> Vec<f32> {
    let losses = head.subject_losses(tensor(outputs, &Device::flex()), targets, &mut stream(1, "controls", &[]));
    losses.into_data().try_to_vec().unwrap()
}

/// Mean over the samples that count; 0 if none does.
pub fn mean_loss(head: &dyn SurvivalHead, outputs: &Array2<f32>, targets: &Targets) -> f64 {
    let n = head.counted(targets).iter().filter(|counted| **counted).count().max(1);
    losses(head, outputs, targets).iter().map(|loss| f64::from(*loss)).sum::<f64>() / n as f64
}

/// Gradient of [`mean_loss`], row by row.
pub fn gradient(head: &dyn SurvivalHead, outputs: &Array2<f32>, targets: &Targets) -> Vec<f32> {
    let n = head.counted(targets).iter().filter(|counted| **counted).count().max(1);
    let x = tensor(outputs, &Device::flex().autodiff()).require_grad();
    let losses = head.subject_losses(x.clone(), targets, &mut stream(1, "controls", &[]));
    let gradients = (losses.sum() / n as f64).backward();
    x.grad(&gradients).unwrap().into_data().try_to_vec().unwrap()
}

/// Agreement to `tolerance`, relative above 1.
pub fn assert_close<A: Copy + Into<f64>, B: Copy + Into<f64>>(found: &[A], expected: &[B], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (position, (found, expected)) in found.iter().zip(expected).enumerate() {
        let (found, expected): (f64, f64) = ((*found).into(), (*expected).into());
        let close = (found - expected).abs() <= tolerance * expected.abs().max(1.0);
        assert!(close, "{what} {position}: {found} is not {expected}");
    }
}
