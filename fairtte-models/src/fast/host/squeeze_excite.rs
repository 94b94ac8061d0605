//! Batch norm by the statistics of the batch with squeeze and excitation after it.

use burn::backend::TensorMetadata as _;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;

use super::super::operation::Forward;
use super::norm::{applied, layer, measured, normalisation};
use super::{Host, exactly, made, overwritten, vector};
use crate::kernels::Activation;
use crate::kernels::norm::batch_norm::Statistics;
use crate::kernels::norm::squeeze_excite::{self, Dense, Gates, Kept, SqueezeExcite};

/// What is saved: the input, the parameters, five tensors of statistics, and what the gates were computed from.
const SAVED: usize = 15;

/// `parameters` are gamma, beta, and weight and bias of both layers.
pub(super) fn forward<B: Host>(
    x: &FloatTensor<B>,
    parameters: &[FloatTensor<B>],
    epsilon: f64,
    activation: Activation,
    keep: bool,
) -> Forward<B> {
    let block = block::<B>(x, parameters, activation);
    let mut found = None;
    let output = made::<B>(x.shape(), |y| found = Some(squeeze_excite::forward(B::values(x), &block, epsilon, y)));
    let (statistics, gates): (Statistics, Gates) = found.expect("was computed");
    let inputs: Vec<_> = std::iter::once(x).chain(parameters).collect();
    let mut result = measured::<B>(output, &statistics, &inputs, keep);
    if keep {
        result.saved.extend([gates.means, gates.squeezed, gates.excited].map(|values| vector::<B>(&values)));
    }
    result
}

/// The output of [`forward`] from what that saved.
pub(super) fn repeated<B: Host>(saved: &[FloatTensor<B>; SAVED], activation: Activation) -> FloatTensor<B> {
    let [x, gamma, beta, _, _, _, _, mean, _, _, scale, shift, _, _, excited] = saved;
    let layer = layer::<B>([x, gamma, beta], activation);
    let applied = applied::<B>([mean, scale, shift]);
    made::<B>(x.shape(), |y| squeeze_excite::repeat(B::values(x), &layer, applied, B::values(excited), y))
}

/// Gradients of all inputs from what [`forward`] saved, and perhaps its output after that.
pub(super) fn gradients<B: Host>(
    mut saved: Vec<FloatTensor<B>>,
    activation: Activation,
    gradient: FloatTensor<B>,
) -> Vec<Option<FloatTensor<B>>> {
    let output = if saved.len() > SAVED { saved.pop() } else { None };
    let saved: [FloatTensor<B>; SAVED] = exactly(saved);
    let [x, parameters @ .., mean, inverse_deviation, offset, scale, shift, means, squeezed, excited] = &saved;
    let block = block::<B>(x, parameters, activation);
    let kept = Kept { means: B::values(means), squeezed: B::values(squeezed), excited: B::values(excited) };
    let measured = (normalisation::<B>([mean, inverse_deviation, offset]), applied::<B>([mean, scale, shift]));
    let mut found = squeeze_excite::ParameterGradients::default();
    let dx = overwritten::<B>(gradient, |dx| {
        let y = output.as_ref().map(B::values);
        found = squeeze_excite::gradients(B::values(x), &block, measured, kept, y, dx);
    });
    let of_norm = [found.norm.gamma, found.norm.beta];
    let found = of_norm.into_iter().chain(found.squeeze).chain(found.excite);
    let shaped = |(values, parameter): (Vec<f32>, &FloatTensor<B>)| {
        let shape: Shape = parameter.shape();
        Some(made::<B>(shape, |place| place.copy_from_slice(&values)))
    };
    std::iter::once(Some(dx)).chain(found.zip(parameters).map(shaped)).collect()
}

fn block<'a, B: Host>(
    x: &'a FloatTensor<B>,
    parameters: &'a [FloatTensor<B>],
    activation: Activation,
) -> SqueezeExcite<'a> {
    let [gamma, beta, of_squeeze @ .., excite, bias] = parameters else { unreachable!("the number was asked for") };
    let [squeeze, squeeze_bias] = of_squeeze else { unreachable!("the number was asked for") };
    let dense = |weight, bias| Dense { weight: B::values(weight), bias: B::values(bias) };
    SqueezeExcite {
        layer: layer::<B>([x, gamma, beta], activation),
        squeeze: dense(squeeze, squeeze_bias),
        excite: dense(excite, bias),
    }
}
