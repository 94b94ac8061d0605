//! The fused operations on `flex`, by [`kernels`](crate::kernels).

mod conv;
mod norm;
mod tokens;

use burn::backend::{Flex, TensorMetadata as _};
use burn::tensor::{Shape, TensorData};
use burn_flex::FlexTensor;

use super::operation::{Forward, Kernels, Operation};
use crate::kernels;

impl Kernels for Flex {
    fn forward(operation: Operation, inputs: Vec<FlexTensor>, keep: bool) -> Forward<Self> {
        let inputs: Vec<_> = inputs.iter().map(FlexTensor::to_contiguous).collect();
        let kept = |tensors: &[&FlexTensor]| if keep { tensors.iter().map(|&t| t.clone()).collect() } else { vec![] };
        let plain = |output, saved| Forward { output, statistics: None, saved };
        match (operation, inputs.as_slice()) {
            (Operation::Conv(settings), [x, weight, bias @ ..]) => {
                let saved = kept(&[x, weight]);
                plain(conv::conv(settings, x, weight, bias.first()), saved)
            }
            (Operation::BatchNorm { epsilon, activation }, [x, gamma, beta]) => {
                norm::batch_norm([x, gamma, beta], epsilon, activation, keep)
            }
            (Operation::Affine { activation }, [x, scale, shift]) => {
                let saved = kept(&[x, scale, shift]);
                let layer = norm::layer([x, scale, shift], activation);
                let output = made(x.shape(), |y| kernels::batch_norm::apply(values(x), &layer, y));
                plain(output, saved)
            }
            (Operation::Activate(activation), [x]) => {
                let output = made(x.shape(), |y| kernels::activation::forward(activation, values(x), y));
                plain(output, kept(&[x]))
            }
            (Operation::Gate, [x, gate]) => {
                let output = made(x.shape(), |y| kernels::gate::forward(values(x), planes(x).1, values(gate), y));
                plain(output, kept(&[x, gate]))
            }
            (Operation::AddRelu, [a, b]) => {
                let output = made(a.shape(), |y| kernels::residual::add_relu(values(a), values(b), y));
                let saved = kept(&[&output]);
                plain(output, saved)
            }
            (Operation::LayerNorm { epsilon }, [x, gamma, beta]) => norm::layer_norm([x, gamma, beta], epsilon, keep),
            (Operation::Linear, [x, weight, bias]) => plain(tokens::linear([x, weight, bias]), kept(&[x, weight])),
            (Operation::Attention { heads }, [qkv]) => tokens::attention(qkv, heads, keep),
            (Operation::MaxPool(settings), [x]) => conv::maximum(settings, x, keep),
            (Operation::Average { .. }, [x]) => {
                let mut shape = x.shape().to_vec();
                shape[2..].fill(1);
                let output = made(Shape::from(shape), |y| kernels::pooling::average(values(x), planes(x).1, y));
                plain(output, vec![])
            }
            (operation, inputs) => unreachable!("{operation:?} of {} tensors", inputs.len()),
        }
    }

    fn backward(
        operation: Operation,
        saved: Vec<FlexTensor>,
        gradient: FlexTensor,
        needed: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        if operation == Operation::Linear {
            let [x, weight] = saved.try_into().unwrap_or_else(|saved| unreachable!("a linear layer with {saved:?}"));
            return tokens::linear_gradients(x, &weight, &gradient, needed);
        }
        match (operation, saved.as_slice()) {
            (Operation::Conv(settings), [x, weight]) => conv::conv_gradients(settings, x, weight, &gradient, needed),
            (Operation::BatchNorm { activation, .. }, [x, gamma, beta, mean, inverse_deviation, offset]) => {
                let normalisation = [mean, inverse_deviation, offset];
                norm::batch_norm_gradients([x, gamma, beta], normalisation, activation, gradient)
            }
            (Operation::Affine { activation }, [x, scale, shift]) => {
                norm::affine_gradients([x, scale, shift], activation, gradient)
            }
            (Operation::LayerNorm { .. }, [x, gamma, mean, inverse_deviation]) => {
                norm::layer_norm_gradients([x, gamma, mean, inverse_deviation], gradient)
            }
            (Operation::Attention { heads }, [qkv, output, rows]) => {
                tokens::attention_gradient([qkv, output, rows], heads, &gradient)
            }
            (Operation::Activate(activation), [x]) => vec![Some(overwritten(gradient, |gradient| {
                kernels::activation::gradient(activation, values(x), gradient);
            }))],
            (Operation::Gate, [x, gate]) => {
                let mut d_gate = vec![0.0; gate.shape().num_elements()];
                let dx = overwritten(gradient, |gradient| {
                    kernels::gate::gradients(values(x), planes(x).1, values(gate), gradient, &mut d_gate);
                });
                vec![Some(dx), Some(tensor(d_gate, gate.shape()))]
            }
            (Operation::AddRelu, [y]) => {
                let gradient =
                    overwritten(gradient, |gradient| kernels::residual::add_relu_gradient(values(y), gradient));
                vec![Some(gradient.clone()), Some(gradient)]
            }
            (Operation::MaxPool(settings), [indices]) => conv::maximum_gradient(settings.size, indices, &gradient),
            (Operation::Average { size }, []) => {
                let gradient = gradient.to_contiguous();
                let mut shape = gradient.shape().to_vec();
                let space = shape.len() - 2;
                shape[2..].copy_from_slice(&size[3 - space..]);
                vec![Some(made(Shape::from(shape), |dx| {
                    kernels::pooling::average_gradient(values(&gradient), size.iter().product(), dx);
                }))]
            }
            (operation, saved) => unreachable!("{operation:?} with {} saved tensors", saved.len()),
        }
    }
}

/// Channels, and elements of one channel of one sample.
fn planes(x: &FlexTensor) -> (usize, usize) {
    let sizes = x.shape().to_vec();
    (sizes[1], sizes[2..].iter().product())
}

pub(super) fn values(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice().expect("contiguous single precision, seen to before the kernels are called")
}

fn tensor(values: Vec<f32>, shape: Shape) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}

fn vector(values: Vec<f32>) -> FlexTensor {
    let shape = Shape::from([values.len()]);
    tensor(values, shape)
}

/// A new tensor whose values `fill` writes.
fn made(shape: Shape, fill: impl FnOnce(&mut [f32])) -> FlexTensor {
    let mut values = vec![0.0; shape.num_elements()];
    fill(&mut values);
    tensor(values, shape)
}

/// The tensor with its values changed in place; a copy of it where it is shared or laid out otherwise.
pub(super) fn overwritten(tensor: FlexTensor, change: impl FnOnce(&mut [f32])) -> FlexTensor {
    let n = tensor.shape().num_elements();
    let mut tensor = if tensor.is_contiguous() { tensor } else { tensor.to_contiguous() };
    if let Some(values) = tensor.try_storage_mut::<f32>().filter(|values| values.len() == n) {
        change(values);
        return tensor;
    }
    let mut copy = values(&tensor).to_vec();
    change(&mut copy);
    self::tensor(copy, tensor.shape())
}
