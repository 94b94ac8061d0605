//! Inverted residual blocks in inference, where all layers of a sample are computed before those of the next.

use burn::nn::BatchNorm;
use burn::nn::conv::Conv2d;
use burn::tensor::{Device, Tensor};

use super::calls::{self, Any, any};
use super::norm::statistics;
use super::operation::{InvertedResidual, Operation};
use super::{Activation, has_kernels, settings_2d};
use crate::kernels::conv::ConvKind;

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
    let Layers { expand, depthwise, squeeze, excite, project, activation, residual } = *layers;
    let convs = [squeeze, excite, depthwise.0, project.0].into_iter().chain(expand.map(|(conv, _)| conv));
    let norms = [depthwise.1, project.1].into_iter().chain(expand.map(|(_, norm)| norm));
    let devices = convs.clone().map(|conv| conv.weight.val().device());
    let trained = std::iter::once(x.device()).chain(devices).any(|device| device.is_autodiff())
        || norms.clone().any(|norm| norm.gamma.val().device().is_autodiff());
    let served = has_kernels(x) && convs.clone().all(|conv| has_kernels(&conv.weight.val()));
    if trained || !served || !norms.clone().all(|norm| has_kernels(&norm.gamma.val())) {
        return None;
    }
    let sizes = |conv: &Conv2d| conv.weight.val().dims();
    let of_depthwise = settings_2d(depthwise.0)?;
    let settings = InvertedResidual {
        expands: expand.is_some(),
        stride: of_depthwise.stride[1],
        padding: of_depthwise.padding[1],
        epsilons: [expand.map_or(0.0, |(_, norm)| norm.epsilon), depthwise.1.epsilon, project.1.epsilon],
        activation,
        residual,
    };
    let shape = settings.shape(&x.dims(), &sizes(depthwise.0), &sizes(squeeze), &sizes(project.0));
    // Each convolution is the one that the shape says, and its batch norm goes into the weights (`host::conv::normed`).
    let is = |conv: &Conv2d, of_weight: [usize; 4], size: [usize; 3], kind: ConvKind| {
        let inputs = of_weight[1] * conv.groups;
        let of_x = [shape.batch, inputs, size[1], size[2]];
        let found = settings_2d(conv).map(|settings| settings.shape(&of_x, &sizes(conv)));
        sizes(conv) == of_weight && found.and_then(|found| found.kind()) == Some(kind)
    };
    let deep = shape.depthwise();
    let (size, output) = (deep.size, deep.output());
    let one = |outputs, inputs| [outputs, inputs, 1, 1];
    let point = |conv: &Conv2d, weight, size| conv.groups == 1 && is(conv, weight, size, ConvKind::Pointwise);
    let covered = is(depthwise.0, [shape.wide, 1, shape.side, shape.side], size, ConvKind::Depthwise)
        && expand.is_none_or(|(conv, _)| point(conv, one(shape.wide, shape.inputs), size))
        && (expand.is_some() || shape.inputs == shape.wide)
        && point(squeeze, one(shape.narrow, shape.wide), [1; 3])
        && point(excite, one(shape.wide, shape.narrow), [1; 3])
        && point(project.0, one(shape.outputs, shape.wide), output)
        && (!residual || (shape.inputs == shape.outputs && size == output))
        && convs_without_bias(layers)
        && shape.scales_weights()
        && shape.pays();
    let device = x.device();
    let tensors = covered.then(|| tensors(layers, &device)).flatten()?;
    Some(calls::chain(x.clone(), vec![(Operation::InvertedResidual(settings), tensors)]))
}

/// Whether the convolutions with a batch norm have no bias.
fn convs_without_bias(layers: &Layers) -> bool {
    let convs = [layers.depthwise, layers.project].into_iter().chain(layers.expand);
    convs.into_iter().all(|(conv, _)| conv.bias.is_none())
}

/// The tensors of all layers, if squeeze and excite have a bias and all batch norms fit.
fn tensors(layers: &Layers, device: &Device) -> Option<Vec<Any>> {
    let mut tensors = Vec::new();
    let normed = |(conv, norm): Normed| {
        let weight = conv.weight.val();
        let [mean, variance] = statistics(norm, device);
        let of_norm = [norm.gamma.val(), norm.beta.val(), mean, variance];
        let fits = of_norm.iter().all(|of_norm| has_kernels(of_norm) && of_norm.dims() == [weight.dims()[0]]);
        fits.then(|| std::iter::once(any(weight)).chain(of_norm.map(any)).collect::<Vec<_>>())
    };
    let plain = |conv: &Conv2d| {
        let (weight, bias) = (conv.weight.val(), conv.bias.as_ref()?.val());
        let fits = has_kernels(&bias) && bias.dims() == [weight.dims()[0]];
        fits.then(|| vec![any(weight), any(bias)])
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
