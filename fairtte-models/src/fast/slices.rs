//! The numbers of a `LibTorch` tensor on the CPU as a slice.
#![expect(unsafe_code, reason = "the memory of a tensor belongs to LibTorch, which gives its address alone")]

use std::sync::atomic::{Ordering, fence};

use burn_tch::TchTensor;
use tch::{Device, Kind, Tensor};

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
    // SAFETY: as `checked` says; the borrow keeps the tensor, and with it the memory, and code that changes a tensor checks first
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

/// Start and length of the numbers of a tensor, which are all there: memory of `LibTorch` is uninitialised until it is
/// written.
fn checked<T: Number>(tensor: &Tensor) -> (*mut T, usize) {
    assert!(tensor.is_contiguous(), "numbers one after the other, found strides {:?}", tensor.stride());
    assert_eq!((tensor.kind(), tensor.device()), (T::KIND, Device::Cpu), "kind and device of a tensor");
    let place: *mut T = tensor.data_ptr().cast();
    // A tensor without numbers may have a null address, which a slice must not.
    if place.is_null() { (std::ptr::dangling_mut(), 0) } else { (place, tensor.numel()) }
}
