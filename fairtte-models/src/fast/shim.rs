//! The function of `shim.cpp`, and the numbers of a tensor as a slice.
#![expect(
    unsafe_code,
    reason = "calls into C++, where tensors are passed by the pointers that tch holds and results are owned; slices of C++'s memory"
)]

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{Ordering, fence};

use burn_tch::TchTensor;
use tch::{Device, Kind, Tensor};

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
        needed: *const bool,
        results: *mut Owned,
        reason: *mut c_char,
        capacity: usize,
    ) -> i32;
}

/// What a tensor can hold: the kind, and the type of a slice of it, for which any bits are a number.
pub(super) trait Number {
    const KIND: Kind;
}

impl Number for f32 {
    const KIND: Kind = Kind::Float;
}

impl Number for u32 {
    // Such a tensor lives in a node of the graph alone, where no operation of ATen sees the numbers.
    const KIND: Kind = Kind::Int;
}

/// The numbers of a contiguous tensor on the CPU.
///
/// # Panics
/// If it is laid out otherwise, or of another kind or device.
pub(super) fn slice<T: Number>(tensor: &TchTensor) -> &[T] {
    let (place, length) = checked::<T>(&tensor.tensor);
    // SAFETY: as `checked` says; the borrow keeps the tensor, and with it the memory, and whoever changes a tensor looks first
    // whether burn counts another one of the same memory.
    unsafe { std::slice::from_raw_parts(place, length) }
}

/// As [`slice`], to be changed; `None` if another tensor shares the memory or the numbers are not one after the other.
pub(super) fn slice_mut<T: Number>(tensor: &mut TchTensor) -> Option<&mut [T]> {
    if !tensor.can_mut() || !tensor.tensor.is_contiguous() {
        return None;
    }
    // What those wrote or read who held the memory until now comes before what is done with it here.
    fence(Ordering::Acquire);
    let (place, length) = checked::<T>(&tensor.tensor);
    // SAFETY: as `checked` says; by burn's count no other tensor has this memory, and this one is lent out as a whole.
    Some(unsafe { std::slice::from_raw_parts_mut(place, length) })
}

/// Start and length of the numbers of a tensor, which are all there: memory of C++ is uninitialised until it is written.
fn checked<T: Number>(tensor: &Tensor) -> (*mut T, usize) {
    assert!(tensor.is_contiguous(), "numbers one after the other, found strides {:?}", tensor.stride());
    assert_eq!((tensor.kind(), tensor.device()), (T::KIND, Device::Cpu), "kind and device of a tensor");
    let place: *mut T = tensor.data_ptr().cast();
    // No numbers may lie nowhere, which a slice must not.
    if place.is_null() { (std::ptr::dangling_mut(), 0) } else { (place, tensor.numel()) }
}

/// Gradients of a convolution without groups with respect to input, weight and bias, those that are `needed`.
pub(super) fn convolution_gradients(
    [gradient, x, weight]: [&Tensor; 3],
    stride: &[i64],
    padding: &[i64],
    needed: &[bool],
) -> Vec<Option<Tensor>> {
    assert_eq!(stride.len(), padding.len(), "stride and padding of the same axes");
    let needed = [0, 1, 2].map(|n| needed.get(n).copied().unwrap_or(false));
    let mut results = [std::ptr::null_mut(); 3];
    let mut reason: [c_char; 1024] = [0; 1024];
    // SAFETY: the tensors outlive the call; `stride` and `padding` hold as many numbers as is said, `needed` and `results`
    // three, `reason` as many as its capacity.
    let failed = unsafe {
        fairtte_convolution_gradients(
            gradient.as_ptr().cast(),
            x.as_ptr().cast(),
            weight.as_ptr().cast(),
            stride.as_ptr(),
            padding.as_ptr(),
            stride.len(),
            needed.as_ptr(),
            results.as_mut_ptr(),
            reason.as_mut_ptr(),
            reason.len(),
        )
    };
    if failed != 0 {
        // SAFETY: the shim ends the text with a zero within the capacity.
        let reason = unsafe { CStr::from_ptr(reason.as_ptr()) };
        // As tch itself does.
        panic!("LibTorch: {}", reason.to_string_lossy());
    }
    // SAFETY: each pointer is null or a tensor that the shim made with `new` and gives away.
    results.into_iter().map(|result| (!result.is_null()).then(|| unsafe { Tensor::from_ptr(result.cast()) })).collect()
}
