//! Sums of exponentials on the host, and host constants in formulas on the device. No precision is fixed: training runs in `f32`, checks of the formulas in
//! `f64`.

use burn::tensor::{Tensor, TensorData};

/// Host values in the precision of `like`, on its device and without gradient.
pub(super) fn constant<const D: usize, const E: usize>(
    values: Vec<f64>,
    shape: [usize; D],
    like: &Tensor<E>,
) -> Tensor<D> {
    let data = TensorData::new(values, shape).convert_dtype(like.dtype());
    Tensor::from_data(data, (&like.device(), like.dtype()))
}

/// The logarithm of the sum of exp(x), minus infinity for no values; large values do not overflow.
pub(super) fn log_sum_exp(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = values.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + values.map(|x| (x - largest).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_large_exponentials_stay_finite_and_an_empty_sum_is_zero() {
        assert!((log_sum_exp([1000.0, 1000.0].into_iter()) - (1000.0 + 2.0_f64.ln())).abs() < 1e-12);
        assert!((log_sum_exp([f64::NEG_INFINITY, 0.5].into_iter()) - 0.5).abs() <= 0.0);
        assert!(log_sum_exp(std::iter::empty()) <= f64::NEG_INFINITY);
    }
}
