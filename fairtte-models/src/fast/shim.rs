//! The functions of `shim.cpp`.
#![expect(unsafe_code, reason = "calls into C++; tensors are passed by the pointers that tch holds, results are owned")]

use std::ffi::{CStr, c_char, c_void};

use tch::Tensor;

type Borrowed = *const c_void;
type Owned = *mut c_void;

unsafe extern "C" {
    fn fairtte_convolution_gradients(
        gradient: Borrowed,
        x: Borrowed,
        weight: Borrowed,
        stride: *const i64,
        padding: *const i64,
        dimensions: usize,
        groups: i64,
        needed: *const bool,
        results: *mut Owned,
        reason: *mut c_char,
        capacity: usize,
    ) -> i32;
    fn fairtte_batch_norm_gradients(
        gradient: Borrowed,
        x: Borrowed,
        gamma: Borrowed,
        mean: Borrowed,
        inverse_deviation: Borrowed,
        epsilon: f64,
        results: *mut Owned,
        reason: *mut c_char,
        capacity: usize,
    ) -> i32;
    fn fairtte_layer_norm_gradients(
        gradient: Borrowed,
        x: Borrowed,
        gamma: Borrowed,
        beta: Borrowed,
        mean: Borrowed,
        inverse_deviation: Borrowed,
        results: *mut Owned,
        reason: *mut c_char,
        capacity: usize,
    ) -> i32;
}

/// Gradients of a convolution with respect to input, weight and bias, those that are `needed`.
pub(super) fn convolution_gradients(
    gradient: &Tensor,
    x: &Tensor,
    weight: &Tensor,
    stride: &[i64],
    padding: &[i64],
    groups: i64,
    needed: &[bool],
) -> Vec<Option<Tensor>> {
    assert_eq!(stride.len(), padding.len(), "stride and padding of the same axes");
    let needed = [0, 1, 2].map(|n| needed.get(n).copied().unwrap_or(false));
    call(|results, reason, capacity| {
        // SAFETY: the tensors outlive the call; `stride` and `padding` hold as many numbers as is said, `needed` three,
        // `results` and `reason` are those of `call`.
        unsafe {
            fairtte_convolution_gradients(
                gradient.as_ptr().cast(),
                x.as_ptr().cast(),
                weight.as_ptr().cast(),
                stride.as_ptr(),
                padding.as_ptr(),
                stride.len(),
                groups,
                needed.as_ptr(),
                results,
                reason,
                capacity,
            )
        }
    })
}

/// Gradients of batch norm by the statistics of the batch with respect to input, gamma and beta.
pub(super) fn batch_norm_gradients(
    gradient: &Tensor,
    x: &Tensor,
    gamma: &Tensor,
    mean: &Tensor,
    inverse_deviation: &Tensor,
    epsilon: f64,
) -> Vec<Option<Tensor>> {
    call(|results, reason, capacity| {
        // SAFETY: the tensors outlive the call; `results` and `reason` are those of `call`.
        unsafe {
            fairtte_batch_norm_gradients(
                gradient.as_ptr().cast(),
                x.as_ptr().cast(),
                gamma.as_ptr().cast(),
                mean.as_ptr().cast(),
                inverse_deviation.as_ptr().cast(),
                epsilon,
                results,
                reason,
                capacity,
            )
        }
    })
}

/// Gradients of layer norm with respect to input, gamma and beta; `saved` are those three, mean and inverse deviation.
pub(super) fn layer_norm_gradients(gradient: &Tensor, saved: [&Tensor; 5]) -> Vec<Option<Tensor>> {
    let [x, gamma, beta, mean, inverse_deviation] = saved.map(|tensor| tensor.as_ptr().cast());
    call(|results, reason, capacity| {
        // SAFETY: the tensors outlive the call; `results` and `reason` are those of `call`.
        unsafe {
            fairtte_layer_norm_gradients(
                gradient.as_ptr().cast(),
                x,
                gamma,
                beta,
                mean,
                inverse_deviation,
                results,
                reason,
                capacity,
            )
        }
    })
}

/// Gives the call room for three results and a reason; panics with the reason, as tch itself does, if ATen threw one.
fn call(function: impl FnOnce(*mut Owned, *mut c_char, usize) -> i32) -> Vec<Option<Tensor>> {
    let mut results = [std::ptr::null_mut(); 3];
    let mut reason: [c_char; 1024] = [0; 1024];
    if function(results.as_mut_ptr(), reason.as_mut_ptr(), reason.len()) != 0 {
        // SAFETY: the shim ends the text with a zero within the capacity.
        let reason = unsafe { CStr::from_ptr(reason.as_ptr()) };
        panic!("LibTorch: {}", reason.to_string_lossy());
    }
    // SAFETY: each pointer is null or a tensor that the shim made with `new` and gives away.
    results.into_iter().map(|result| (!result.is_null()).then(|| unsafe { Tensor::from_ptr(result.cast()) })).collect()
}
