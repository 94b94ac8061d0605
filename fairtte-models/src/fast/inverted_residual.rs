//! Inverted residual blocks in inference, where all layers of a sample are computed before those of the next.

use burn::nn::BatchNorm;
use burn::nn::conv::Conv2d;
use burn::tensor::{Device, Tensor};

use super::calls::{self, Any, any};
use super::operation::{InvertedResidual, Operation};
use super::{Activation, has_kernels_on_host, infers_on_kernels, norm, settings_2d};
use crate::kernels::conv::ConvKind;
use crate::kernels::conv::inverted_residual::BlockShape;

/// A convolution without bias and its batch norm.
pub(crate) type Normed<'a> = (&'a Conv2d, &'a BatchNorm);

/// The layers of a block.
#[derive(Debug)]
pub(crate) struct Layers<'a> {
    /// 1 x 1, to the channels of the depthwise convolution, if there is one.
    pub(crate) expand: Option<Normed<'a>>,
    pub(crate) depthwise: Normed<'a>,
    /// 1 x 1, from the means of the channels.
    pub(crate) squeeze: &'a Conv2d,
    /// 1 x 1, to the factors of the channels.
    pub(crate) excite: &'a Conv2d,
    /// 1 x 1, to the output.
    pub(crate) project: Normed<'a>,
    /// After the first three.
    pub(crate) activation: Activation,
    /// Whether the input is added to the output.
    pub(crate) residual: bool,
}

/// The output of the block with the bits of its layers one after the other; `None` where something is trained, where kernels do not
/// cover all layers, and where it would not be faster.
pub(crate) fn inverted_residual(layers: &Layers, x: &Tensor<4>) -> Option<Tensor<4>> {
    let Layers { expand, depthwise, squeeze, project, activation, residual, .. } = *layers;
    if !is_served(layers, x) {
        return None;
    }
    let of_depthwise = settings_2d(depthwise.0)?;
    let settings = InvertedResidual {
        expands: expand.is_some(),
        stride: of_depthwise.stride[1],
        padding: of_depthwise.padding[1],
        epsilons: [expand.map_or(0.0, |(_, norm)| norm.epsilon), depthwise.1.epsilon, project.1.epsilon],
        activation,
        residual,
    };
    let sizes = |conv: &Conv2d| conv.weight.val().dims();
    let shape = settings.shape(&x.dims(), &sizes(depthwise.0), &sizes(squeeze), &sizes(project.0));
    let tensors = if fits(layers, &shape) && shape.pays() { tensors(layers, &x.device())? } else { return None };
    Some(calls::chain(x.clone(), vec![(Operation::InvertedResidual(settings), tensors)]))
}

/// Whether nothing is trained, and `x` and all weights are on devices with kernels.
fn is_served(layers: &Layers, x: &Tensor<4>) -> bool {
    let Layers { expand, depthwise, squeeze, excite, project, .. } = *layers;
    let convs =
        [squeeze, excite].into_iter().chain([depthwise, project].into_iter().chain(expand).map(|normed| normed.0));
    let norms = [depthwise, project].into_iter().chain(expand).map(|normed| normed.1);
    let weights = convs.map(|conv| conv.weight.val()).all(|weight| infers_on_kernels(&weight));
    weights
        && infers_on_kernels(x)
        && has_kernels_on_host(x)
        && norms.map(|norm| norm.gamma.val()).all(|gamma| infers_on_kernels(&gamma))
}

/// Whether every convolution is the one that the shape says, and its batch norm goes into its weights (`host::conv::normed`).
fn fits(layers: &Layers, shape: &BlockShape) -> bool {
    let Layers { expand, depthwise, squeeze, excite, project, residual, .. } = *layers;
    let deep = shape.depthwise();
    if deep.kind() != Some(ConvKind::Depthwise) {
        return false;
    }
    let is = |conv: &Conv2d, of_weight: [usize; 4], groups: usize, size: [usize; 3], kind: ConvKind| {
        let of_x = [shape.batch, of_weight[1] * groups, size[1], size[2]];
        let found = settings_2d(conv).and_then(|settings| settings.shape(&of_x, &of_weight).kind());
        conv.weight.val().dims() == of_weight && conv.groups == groups && found == Some(kind)
    };
    let point = |conv: &Conv2d, [inputs, outputs]: [usize; 2], size: [usize; 3]| {
        is(conv, [outputs, inputs, 1, 1], 1, size, ConvKind::Pointwise)
    };
    let BlockShape { inputs, wide, narrow, outputs, side, .. } = *shape;
    let (size, output) = (deep.size, deep.output());
    is(depthwise.0, [wide, 1, side, side], wide, size, ConvKind::Depthwise)
        && expand.map_or(inputs == wide, |(conv, _)| point(conv, [inputs, wide], size))
        && point(squeeze, [wide, narrow], [1; 3])
        && point(excite, [narrow, wide], [1; 3])
        && point(project.0, [wide, outputs], output)
        && (!residual || (inputs == outputs && size == output))
        && [depthwise, project].into_iter().chain(expand).all(|(conv, _)| conv.bias.is_none())
        && shape.scales_weights()
}

/// The tensors of all layers, if squeeze and excite have a bias and all batch norms fit.
fn tensors(layers: &Layers, device: &Device) -> Option<Vec<Any>> {
    let mut tensors = Vec::new();
    let normed = |(conv, norm): Normed| {
        let weight = conv.weight.val();
        let of_norm = norm::parameters(norm, weight.dims()[0], device)?;
        Some(std::iter::once(any(weight)).chain(of_norm.map(any)).collect::<Vec<_>>())
    };
    let plain = |conv: &Conv2d| {
        let (weight, bias) = (conv.weight.val(), conv.bias.as_ref()?.val());
        norm::fits(&bias, weight.dims()[0]).then(|| vec![any(weight), any(bias)])
    };
    if let Some(expand) = layers.expand {
        tensors.extend(normed(expand)?);
    }
    tensors.extend(normed(layers.depthwise)?);
    tensors.extend(plain(layers.squeeze)?);
    tensors.extend(plain(layers.excite)?);
    tensors.extend(normed(layers.project)?);
    Some(tensors)
}
