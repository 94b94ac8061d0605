//! Host constants in formulas on the device. No precision is fixed: training runs in `f32`, checks of the formulas in
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
