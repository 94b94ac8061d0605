//! Inverted residual blocks.

use burn::backend::TensorMetadata as _;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;

use super::super::operation::InvertedResidual;
use super::conv::scale_and_shift;
use super::{Host, made};
use crate::kernels::conv::inverted_residual::{Layer, Layers, forward};

/// Tensors of a convolution with its batch norm: weight, gamma, beta, mean and variance.
const NORMED: usize = 5;
/// Tensors of a convolution alone: weight and bias.
const PLAIN: usize = 2;

/// The block of `x`; `tensors` are those of its layers, as [`Operation::InvertedResidual`](super::Operation) says.
pub(super) fn block<B: Host>(
    settings: InvertedResidual,
    x: &FloatTensor<B>,
    tensors: &[FloatTensor<B>],
) -> FloatTensor<B> {
    let (expand, rest) = tensors.split_at(if settings.expands { NORMED } else { 0 });
    let (depthwise, rest) = rest.split_at(NORMED);
    let (squeeze, rest) = rest.split_at(PLAIN);
    let (excite, project) = rest.split_at(PLAIN);
    let sizes = |tensor: &FloatTensor<B>| tensor.shape().to_vec();
    let shape = settings.shape(&sizes(x), &sizes(&depthwise[0]), &sizes(&squeeze[0]), &sizes(&project[0]));
    let [of_expand, of_depthwise, of_project] = settings.epsilons;
    let factors = |layer: &[FloatTensor<B>], epsilon| scale_and_shift::<B>(&layer[1..], epsilon);
    let factors_of_expand = settings.expands.then(|| factors(expand, of_expand));
    let (factors_of_depthwise, factors_of_project) = (factors(depthwise, of_depthwise), factors(project, of_project));
    let layers = Layers {
        expand: factors_of_expand.as_ref().map(|factors| normed::<B>(&expand[0], factors)),
        depthwise: normed::<B>(&depthwise[0], &factors_of_depthwise),
        squeeze: plain::<B>(squeeze),
        excite: plain::<B>(excite),
        project: normed::<B>(&project[0], &factors_of_project),
        activation: settings.activation,
        residual: settings.residual,
    };
    let [_, height, width] = shape.depthwise().output();
    made::<B>(Shape::from([shape.batch, shape.outputs, height, width]), |y| forward(B::values(x), &shape, &layers, y))
}

fn normed<'a, B: Host>(weight: &'a FloatTensor<B>, (scale, shift): &'a (Vec<f32>, Vec<f32>)) -> Layer<'a> {
    Layer { weights: B::values(weight), scale: Some(scale), bias: shift }
}

fn plain<B: Host>(layer: &[FloatTensor<B>]) -> Layer<'_> {
    Layer { weights: B::values(&layer[0]), scale: None, bias: B::values(&layer[1]) }
}
