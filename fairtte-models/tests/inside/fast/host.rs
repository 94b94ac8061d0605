//! Tensors as slices: which are changed in place, and which are copied because they are shared.

use burn::backend::TensorMetadata as _;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{Shape, Slice, TensorData};

use super::super::host::{Host, overwritten};

const NUMBERS: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

/// `[2, 3]`.
fn numbers<B: Host>() -> FloatTensor<B> {
    B::float_from_data(TensorData::new(NUMBERS.to_vec(), [2, 3]), &B::Device::default())
}

/// The negated values.
fn negated<B: Host>(tensor: FloatTensor<B>) -> (Vec<f32>, *const f32) {
    let tensor = overwritten::<B>(tensor, |values| values.iter_mut().for_each(|value| *value = -*value));
    (B::values(&tensor).to_vec(), B::values(&tensor).as_ptr())
}

fn a_tensor_is_changed_in_place_only_if_nobody_else_holds_its_memory<B: Host>() {
    let alone = numbers::<B>();
    let place = B::values(&alone).as_ptr();
    assert_eq!(negated::<B>(alone), (NUMBERS.map(|value| -value).to_vec(), place));

    let whole = numbers::<B>();
    let row = |n: isize| B::float_slice(whole.clone(), &[Slice::new(n, Some(n + 1), 1), Slice::new(0, None, 1)]);
    let views = [
        ("a clone", whole.clone(), vec![-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]),
        ("the first row", row(0), vec![-1.0, -2.0, -3.0]),
        ("the second row", row(1), vec![-4.0, -5.0, -6.0]),
        ("a row of a row", B::float_reshape(row(1), Shape::from([3])), vec![-4.0, -5.0, -6.0]),
        ("another shape", B::float_reshape(whole.clone(), Shape::from([6])), NUMBERS.map(|value| -value).to_vec()),
        ("axes exchanged", B::float_swap_dims(whole.clone(), 0, 1), vec![-1.0, -4.0, -2.0, -5.0, -3.0, -6.0]),
        ("a row twice", B::float_expand(row(0), Shape::from([2, 3])), vec![-1.0, -2.0, -3.0, -1.0, -2.0, -3.0]),
    ];
    for (what, view, expected) in views {
        assert_eq!(negated::<B>(view).0, expected, "{what}");
        assert_eq!(B::values(&whole), NUMBERS, "{what}: the whole has changed");
    }
    // No longer shared, but with every value twice.
    let twice = B::float_expand(row(0), Shape::from([2, 3]));
    drop(whole);
    assert_eq!(negated::<B>(twice).0, [-1.0, -2.0, -3.0, -1.0, -2.0, -3.0]);
}

fn no_numbers_are_a_slice_too<B: Host>() {
    let empty = B::blank(Shape::from([2, 0, 3]));
    assert_eq!(empty.shape(), Shape::from([2, 0, 3]));
    assert_eq!(negated::<B>(empty).0, [0.0; 0]);
}

fn indices_come_back_as_they_were<B: Host>() {
    let indices = B::of_indices(Shape::from([2, 2]), |indices| indices.copy_from_slice(&[0, 7, u32::MAX, 1 << 31]));
    assert_eq!(B::indices(&B::contiguous(indices.clone())), [0, 7, u32::MAX, 1 << 31]);
}

macro_rules! on {
    ($name:ident, $back_end:ty) => {
        #[test]
        fn $name() {
            a_tensor_is_changed_in_place_only_if_nobody_else_holds_its_memory::<$back_end>();
            no_numbers_are_a_slice_too::<$back_end>();
            indices_come_back_as_they_were::<$back_end>();
        }
    };
}

#[cfg(feature = "flex")]
on!(tensors_of_flex_are_slices, burn::backend::Flex);

#[cfg(feature = "tch")]
mod torch {
    use super::*;

    on!(tensors_of_libtorch_are_slices, burn::backend::LibTorch);
}
