//! The fused operations by [`kernels`](crate::kernels), for back ends whose tensors are in the memory of this process.

mod conv;
mod inverted_residual;
mod norm;
mod squeeze_excite;
mod tokens;

use burn::backend::TensorMetadata as _;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;

use super::operation::{Forward, Kernels, Operation};
use crate::kernels;

/// A back end whose tensors can be read and written as slices.
pub(super) trait Host: Kernels {
    /// The tensor as a contiguous one; unchanged if it is contiguous.
    fn contiguous(tensor: FloatTensor<Self>) -> FloatTensor<Self>;

    /// The values of a contiguous tensor of single precision.
    fn values(tensor: &FloatTensor<Self>) -> &[f32];

    /// The values as a mutable slice; `None` if the tensor is shared or not contiguous.
    fn values_mut(tensor: &mut FloatTensor<Self>) -> Option<&mut [f32]>;

    /// A new tensor with unspecified values, all of which the caller must write.
    fn blank(shape: Shape) -> FloatTensor<Self>;

    /// A new tensor of the indices that `fill` writes; only [`indices`](Self::indices) reads it.
    fn of_indices(shape: Shape, fill: impl FnOnce(&mut [u32])) -> FloatTensor<Self>;

    /// The indices of a tensor made by [`of_indices`](Self::of_indices).
    fn indices(tensor: &FloatTensor<Self>) -> &[u32];
}

pub(super) fn forward<B: Host>(operation: Operation, inputs: Vec<FloatTensor<B>>, keep: bool) -> Forward<B> {
    let inputs: Vec<_> = inputs.into_iter().map(B::contiguous).collect();
    let kept = |tensors: &[&FloatTensor<B>]| if keep { tensors.iter().map(|&t| t.clone()).collect() } else { vec![] };
    let plain = |output, saved| Forward { output, statistics: None, saved };
    match (operation, inputs.as_slice()) {
        (Operation::Conv(settings), [x, weight, bias @ ..]) => {
            plain(conv::conv::<B>(settings, x, weight, bias.first()), kept(&[x, weight]))
        }
        (Operation::NormedConv { settings, epsilon }, [x, weight, of_norm @ ..]) => {
            plain(conv::normed::<B>(settings, [x, weight], of_norm, epsilon), vec![])
        }
        (Operation::InvertedResidual(settings), [x, layers @ ..]) => {
            plain(inverted_residual::block::<B>(settings, x, layers), vec![])
        }
        (Operation::BatchNorm { epsilon, activation }, [x, gamma, beta]) => {
            norm::batch_norm::<B>([x, gamma, beta], epsilon, activation, keep)
        }
        (Operation::NormedDepthwise { epsilon, activation, settings }, [x, gamma, beta, weight]) => {
            norm::depthwise::<B>([x, gamma, beta], weight, epsilon, activation, settings, keep)
        }
        (Operation::NormedSqueezeExcite { epsilon, activation }, [x, parameters @ ..]) => {
            squeeze_excite::forward::<B>(x, parameters, epsilon, activation, keep)
        }
        (Operation::Affine { activation }, [x, scale, shift]) => {
            let layer = norm::layer::<B>([x, scale, shift], activation);
            let output = made::<B>(x.shape(), |y| kernels::norm::batch_norm::apply(B::values(x), &layer, y));
            plain(output, kept(&[x, scale, shift]))
        }
        (Operation::Activate(activation), [x]) => {
            let output = made::<B>(x.shape(), |y| kernels::activation::forward(activation, B::values(x), y));
            plain(output, kept(&[x]))
        }
        (Operation::Gate, [x, gate]) => {
            let plane = plane::<B>(x);
            let output = made::<B>(x.shape(), |y| kernels::gate::forward(B::values(x), plane, B::values(gate), y));
            plain(output, kept(&[x, gate]))
        }
        (Operation::AddRelu, [a, b]) => {
            let output = made::<B>(a.shape(), |y| kernels::residual::add_relu(B::values(a), B::values(b), y));
            let saved = kept(&[&output]);
            plain(output, saved)
        }
        (Operation::LayerNorm { epsilon }, [x, gamma, beta]) => norm::layer_norm::<B>([x, gamma, beta], epsilon, keep),
        (Operation::Linear, [x, weight, bias]) => plain(tokens::linear::<B>([x, weight, bias]), kept(&[x, weight])),
        (Operation::Attention { heads }, [qkv]) => tokens::attention::<B>(qkv, heads, keep),
        (Operation::DoubleBeside { .. }, [x, beside @ ..]) => plain(conv::doubled::<B>(x, beside.first()), vec![]),
        (Operation::MaxPool(settings), [x]) => conv::maximum::<B>(settings, x, keep),
        (Operation::Average { .. }, [x]) => {
            let mut shape = x.shape().to_vec();
            shape[2..].fill(1);
            let plane = plane::<B>(x);
            plain(made::<B>(Shape::from(shape), |y| kernels::pooling::average(B::values(x), plane, y)), vec![])
        }
        (operation, inputs) => unreachable!("{operation:?} of {} tensors", inputs.len()),
    }
}

/// The output of an operation that [repeats](Operation::repeats), from what it saved.
pub(super) fn repeat<B: Host>(operation: Operation, saved: &[FloatTensor<B>]) -> FloatTensor<B> {
    let saved: Vec<_> = saved.iter().map(|tensor| B::contiguous(tensor.clone())).collect();
    match operation {
        Operation::BatchNorm { activation, .. } => norm::repeated_batch_norm::<B>(&exactly(saved), activation),
        Operation::NormedSqueezeExcite { activation, .. } => squeeze_excite::repeated::<B>(&exactly(saved), activation),
        operation => unreachable!("{operation:?} does not repeat"),
    }
}

pub(super) fn backward<B: Host>(
    operation: Operation,
    saved: Vec<FloatTensor<B>>,
    gradient: FloatTensor<B>,
    needed: &[bool],
) -> Vec<Option<FloatTensor<B>>> {
    let saved: Vec<_> = saved.into_iter().map(B::contiguous).collect();
    let gradient = B::contiguous(gradient);
    match operation {
        Operation::Conv(settings) => conv::conv_gradients::<B>(settings, exactly(saved), &gradient, needed),
        Operation::NormedConv { .. } | Operation::InvertedResidual(_) => {
            unreachable!("an operation of inference has no gradient")
        }
        Operation::BatchNorm { activation, .. } => {
            norm::batch_norm_gradients::<B>(exactly(saved), activation, gradient)
        }
        Operation::NormedDepthwise { activation, settings, .. } => {
            norm::depthwise_gradients::<B>(exactly(saved), activation, settings, &gradient)
        }
        Operation::NormedSqueezeExcite { activation, .. } => {
            squeeze_excite::gradients::<B>(saved, activation, gradient)
        }
        Operation::Affine { activation } => norm::affine_gradients::<B>(exactly(saved), activation, gradient),
        Operation::Activate(activation) => {
            let [x] = exactly(saved);
            let change = |gradient: &mut [f32]| kernels::activation::gradient(activation, B::values(&x), gradient);
            vec![Some(overwritten::<B>(gradient, change))]
        }
        Operation::Gate => {
            let [x, gate] = exactly(saved);
            let mut dx = None;
            let d_gate = made::<B>(gate.shape(), |d_gate| {
                dx = Some(overwritten::<B>(gradient, |gradient| {
                    kernels::gate::gradients(B::values(&x), plane::<B>(&x), B::values(&gate), gradient, d_gate);
                }));
            });
            vec![dx, Some(d_gate)]
        }
        Operation::AddRelu => {
            let [y] = exactly(saved);
            let change = |gradient: &mut [f32]| kernels::residual::add_relu_gradient(B::values(&y), gradient);
            let gradient = overwritten::<B>(gradient, change);
            vec![Some(gradient.clone()), Some(gradient)]
        }
        Operation::LayerNorm { .. } => norm::layer_norm_gradients::<B>(exactly(saved), gradient),
        Operation::Linear => tokens::linear_gradients::<B>(exactly(saved), &gradient, needed),
        Operation::Attention { heads } => tokens::attention_gradient::<B>(exactly(saved), heads, &gradient),
        Operation::DoubleBeside { channels } => conv::doubled_gradients::<B>(channels, &gradient, needed),
        Operation::MaxPool(settings) => conv::maximum_gradient::<B>(settings.size, exactly(saved), &gradient),
        Operation::Average { size } => {
            let mut shape = gradient.shape().to_vec();
            let space = shape.len() - 2;
            shape[2..].copy_from_slice(&size[3 - space..]);
            vec![Some(made::<B>(Shape::from(shape), |dx| {
                kernels::pooling::average_gradient(B::values(&gradient), size.iter().product(), dx);
            }))]
        }
    }
}

/// The tensors that an operation saved, whose number is fixed, as an array.
fn exactly<T, const N: usize>(saved: Vec<T>) -> [T; N] {
    saved.try_into().unwrap_or_else(|saved: Vec<T>| unreachable!("{} saved tensors, expected {N}", saved.len()))
}

/// Number of values of one channel of one sample.
fn plane<B: Host>(x: &FloatTensor<B>) -> usize {
    x.shape().to_vec()[2..].iter().product()
}

fn vector<B: Host>(values: &[f32]) -> FloatTensor<B> {
    made::<B>(Shape::from([values.len()]), |place| place.copy_from_slice(values))
}

/// A new tensor whose values `fill` writes, all of them.
fn made<B: Host>(shape: Shape, fill: impl FnOnce(&mut [f32])) -> FloatTensor<B> {
    let mut tensor = B::blank(shape);
    let values = B::values_mut(&mut tensor).expect("a new tensor");
    // This exposes kernels that rely on zeros or leave a value unwritten.
    #[cfg(test)]
    values.fill(f32::NAN);
    fill(values);
    tensor
}

/// As [`made`] if the tensor is wanted; otherwise `fill` gets `None`.
fn made_if<B: Host>(wanted: bool, shape: Shape, fill: impl FnOnce(Option<&mut [f32]>)) -> Option<FloatTensor<B>> {
    if !wanted {
        fill(None);
        return None;
    }
    Some(made::<B>(shape, |values| fill(Some(values))))
}

/// The tensor with its values changed in place; a changed copy if it is shared or not contiguous.
pub(super) fn overwritten<B: Host>(tensor: FloatTensor<B>, change: impl FnOnce(&mut [f32])) -> FloatTensor<B> {
    let mut tensor = B::contiguous(tensor);
    if let Some(values) = B::values_mut(&mut tensor) {
        change(values);
        return tensor;
    }
    made::<B>(tensor.shape(), |copy| {
        copy.copy_from_slice(B::values(&tensor));
        change(copy);
    })
}
