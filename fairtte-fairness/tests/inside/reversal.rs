//! Tests of `src/strategies/reversal.rs`; they need a back end, which `src` does not name.
use burn::tensor::{DType, Device, TensorData};

use super::super::adversary_cases::values;
use super::*;

fn tensor(rows: Vec<f64>, shape: [usize; 2]) -> Tensor<2> {
    Tensor::from_data(TensorData::new(rows, shape), (&Device::flex().autodiff(), DType::F64))
}

// In the other common form, x' (1 + scale) - scale x, 0.1 with scale 3 would be 0.09999999999999998.
#[test]
fn the_value_is_kept_to_the_last_bit() {
    let x = [0.1, -1.0 / 3.0, 1e-300, 1e300, 0.0, 7.25];
    for scale in [0.1, 3.0, 1e6] {
        let reversed = reverse_gradient(tensor(x.to_vec(), [2, 3]).require_grad(), scale);
        assert_eq!(values(&reversed), x);
    }
    let single: Tensor<1> = Tensor::from_data(TensorData::from([0.1_f32, 3.3]), &Device::flex().autodiff());
    let reversed = reverse_gradient(single.require_grad(), 0.7).into_data();
    assert_eq!(reversed.try_to_vec::<f32>().ok(), Some(vec![0.1, 3.3]));
}

// z = x W, adversary s = z u, loss = 1/2 sum s^2. Derived manually: dL/dW = x^T s u^T, dL/du = z^T s. With the reversal
// the first is multiplied by -scale and the second is unchanged.
#[test]
fn on_a_linear_model_the_encoder_gets_minus_scale_times_the_gradient_and_the_adversary_its_own() {
    let scale = 0.3;
    let (inputs, matrix, vector) = ([[1.0, 2.0], [-0.5, 0.25], [3.0, -1.0]], [[0.5, -0.25], [2.0, 0.75]], [0.4, -1.5]);
    let weight = tensor(matrix.concat(), [2, 2]).require_grad();
    let adversary = tensor(vector.to_vec(), [2, 1]).require_grad();
    let read = reverse_gradient(tensor(inputs.concat(), [3, 2]).matmul(weight.clone()), scale);
    let gradients = (read.matmul(adversary.clone()).square().sum() / 2.0).backward();

    let z: Vec<[f64; 2]> = inputs.iter().map(|x| [0, 1].map(|k| x[0] * matrix[0][k] + x[1] * matrix[1][k])).collect();
    let outputs: Vec<f64> = z.iter().map(|z| z[0] * vector[0] + z[1] * vector[1]).collect();
    let sum = |term: &dyn Fn(usize) -> f64| (0..3).map(term).sum::<f64>();
    let of_weight =
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(j, k)| -scale * sum(&|i| inputs[i][j] * outputs[i] * vector[k]));
    let of_adversary = [0, 1].map(|k| sum(&|i| z[i][k] * outputs[i]));
    let found = [weight.grad(&gradients), adversary.grad(&gradients)].map(|gradient| gradient.map(|g| values(&g)));
    for (found, expected) in found.iter().flatten().flatten().zip(of_weight.iter().chain(&of_adversary)) {
        approx::assert_relative_eq!(*found, *expected, max_relative = 1e-14);
    }
    assert_eq!(found.iter().flatten().flatten().count(), 6);
}
