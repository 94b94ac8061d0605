//! The functions of `foreign.cpp` on tensors of the crate `tch`.
#![expect(unsafe_code, reason = "functions of C++ that the crate tch does not offer")]

use std::ffi::{CStr, c_char};
use std::ptr;

use tch::Tensor;

use super::{Norm, integer};

/// A tensor of `ATen`, of which `tch::Tensor` holds a pointer.
type Foreign = *const std::ffi::c_void;

unsafe extern "C" {
    fn fairtte_aten_convolution_backward(
        gradient: Foreign,
        x: Foreign,
        weight: Foreign,
        stride: *const i64,
        padding: *const i64,
        axes: i64,
        groups: i64,
        wanted: *const bool,
        found: *mut Foreign,
    ) -> *const c_char;
    fn fairtte_aten_batch_norm_backward(
        gradient: Foreign,
        x: Foreign,
        gamma: Foreign,
        mean: Foreign,
        inverse_deviation: Foreign,
        epsilon: f64,
        found: *mut Foreign,
    ) -> *const c_char;
    fn fairtte_aten_layer_norm_backward(
        gradient: Foreign,
        x: Foreign,
        gamma: Foreign,
        mean: Foreign,
        inverse_deviation: Foreign,
        found: *mut Foreign,
    ) -> *const c_char;
    fn fairtte_aten_adamw(
        parameter: Foreign,
        gradient: Foreign,
        first: Foreign,
        second: Foreign,
        time: Foreign,
        learning_rate: f64,
        beta_1: f64,
        beta_2: f64,
        epsilon: f64,
        weight_decay: f64,
    ) -> *const c_char;
    fn fairtte_aten_reserved(index: i8, bytes: *mut i64) -> *const c_char;
    fn fairtte_aten_channels_last(x: Foreign, found: *mut Foreign) -> *const c_char;
}

fn foreign(tensor: &Tensor) -> Foreign {
    tensor.as_ptr().cast()
}

/// The tensors that a function wrote to the places given to `call`.
///
/// # Panics
/// With the message of `LibTorch` if the function failed, as the functions of `tch` do.
fn found<const N: usize>(call: impl FnOnce(*mut Foreign) -> *const c_char) -> [Option<Tensor>; N] {
    let mut places = [ptr::null(); N];
    let message = call(places.as_mut_ptr());
    if !message.is_null() {
        // SAFETY: a function that fails returns a string that lasts until this thread calls another.
        let message = unsafe { CStr::from_ptr(message) };
        panic!("LibTorch: {}", message.to_string_lossy());
    }
    places.map(|place| {
        // SAFETY: the function made this tensor for the caller, who frees it as tch frees its own.
        (!place.is_null()).then(|| unsafe { Tensor::from_ptr(place.cast_mut().cast()) })
    })
}

/// Gradients of a convolution with respect to `x`, `weight` and the bias, as `wanted`.
pub(super) fn convolution_gradients(
    gradient: &Tensor,
    [x, weight]: [&Tensor; 2],
    [stride, padding]: [&[i64]; 2],
    groups: i64,
    wanted: [bool; 3],
) -> [Option<Tensor>; 3] {
    let axes = x.dim() - 2;
    assert!([stride, padding].iter().all(|of_axes| of_axes.len() == axes), "one stride and padding for each axis");
    // SAFETY: the tensors live until the call returns, and the arrays are as long as is said.
    found(|places| unsafe {
        fairtte_aten_convolution_backward(
            foreign(gradient),
            foreign(x),
            foreign(weight),
            stride.as_ptr(),
            padding.as_ptr(),
            integer(axes),
            groups,
            wanted.as_ptr(),
            places,
        )
    })
}

/// Gradients of batch norm by the statistics of the batch with respect to `x`, `gamma` and `beta`.
pub(super) fn batch_norm_gradients(gradient: &Tensor, norm: &Norm, epsilon: f64) -> [Option<Tensor>; 3] {
    let Norm { x, gamma, mean, inverse_deviation } = *norm;
    // SAFETY: the tensors live until the call returns, and three places are given.
    found(|places| unsafe {
        fairtte_aten_batch_norm_backward(
            foreign(gradient),
            foreign(x),
            foreign(gamma),
            foreign(mean),
            foreign(inverse_deviation),
            epsilon,
            places,
        )
    })
}

/// Gradients of layer norm over the last axis with respect to `x`, `gamma` and `beta`.
pub(super) fn layer_norm_gradients(gradient: &Tensor, norm: &Norm) -> [Option<Tensor>; 3] {
    let Norm { x, gamma, mean, inverse_deviation } = *norm;
    // SAFETY: the tensors live until the call returns, and three places are given.
    found(|places| unsafe {
        fairtte_aten_layer_norm_backward(
            foreign(gradient),
            foreign(x),
            foreign(gamma),
            foreign(mean),
            foreign(inverse_deviation),
            places,
        )
    })
}

/// Changes `parameter` and its moments in place by step `time`, from 1, of `AdamW`.
pub(super) fn adamw(
    [parameter, gradient, first, second]: [&Tensor; 4],
    time: &Tensor,
    [learning_rate, beta_1, beta_2, epsilon, weight_decay]: [f64; 5],
) {
    // SAFETY: the tensors live until the call returns.
    let [] = found(|_| unsafe {
        fairtte_aten_adamw(
            foreign(parameter),
            foreign(gradient),
            foreign(first),
            foreign(second),
            foreign(time),
            learning_rate,
            beta_1,
            beta_2,
            epsilon,
            weight_decay,
        )
    });
}

/// The same values with those of one place of all channels one after the other in memory; unchanged if they are.
pub(super) fn channels_last(x: &Tensor) -> Tensor {
    // SAFETY: the tensor lives until the call returns, and one place is given.
    let [found] = found(|places| unsafe { fairtte_aten_channels_last(foreign(x), places) });
    found.expect("the same tensor in another layout")
}

/// The most bytes that `LibTorch` had reserved on a GPU; `None` before it computed there.
pub(super) fn reserved(index: usize) -> Option<u64> {
    let mut bytes = 0;
    // SAFETY: one number is written.
    let message = unsafe { fairtte_aten_reserved(index.try_into().ok()?, &raw mut bytes) };
    if message.is_null() { bytes.try_into().ok() } else { None }
}
