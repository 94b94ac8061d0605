//! From inputs to the outputs of networks in the graph of burn, and from there to curves on the host.

use burn::tensor::{Tensor, TensorData};
use fairtte_models::Pixels;
use ndarray::Array2;

use super::RiskAt;
use crate::FairnessError;
use crate::network::on_host;
use crate::predict::CurveRule;

/// From the outputs of all networks, `[batch, n_outputs]` each, to curves `[batch, n_times]`.
type Curves<'a> = Box<dyn Fn(&[Array2<f32>], &CurveRule<'_>) -> Result<Array2<f64>, FairnessError> + 'a>;

/// Largest step of a central difference, as a share of an output; below an output of 1, of 1.
const STEP: f32 = 1.0 / 1024.0;

/// The outputs of the networks of a strategy on a batch, in evaluation mode and in the graph of its pixels, and what makes
/// curves of them. With the outputs as they are, the curves are those of `Strategy::predict`.
pub struct Traced<'a> {
    outputs: Vec<Tensor<2>>,
    curves: Curves<'a>,
}

impl std::fmt::Debug for Traced<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traced").field("n_outputs", &self.outputs.len()).finish_non_exhaustive()
    }
}

impl<'a> Traced<'a> {
    /// `outputs`, one tensor per network, and the function that makes curves of their values in the same order.
    pub fn new(
        outputs: Vec<Tensor<2>>,
        curves: impl Fn(&[Array2<f32>], &CurveRule<'_>) -> Result<Array2<f64>, FairnessError> + 'a,
    ) -> Self {
        Self { outputs, curves: Box::new(curves) }
    }

    /// The same outputs, with a change of the curves: `change` gets the rule and a function that makes the unchanged curves
    /// by any rule.
    #[must_use]
    pub fn then(
        self,
        change: impl Fn(
            &CurveRule<'_>,
            &dyn Fn(&CurveRule<'_>) -> Result<Array2<f64>, FairnessError>,
        ) -> Result<Array2<f64>, FairnessError>
        + 'a,
    ) -> Self {
        let Self { outputs, curves } = self;
        Self::new(outputs, move |values, rule| change(rule, &|rule| curves(values, rule)))
    }

    /// The parts of a strategy with several networks, whose curves, by their
    /// place, are combined by `combine`.
    pub(crate) fn joined(
        parts: Vec<Self>,
        combine: impl Fn(
            &CurveRule<'_>,
            &dyn Fn(usize) -> Result<Array2<f64>, FairnessError>,
        ) -> Result<Array2<f64>, FairnessError>
        + 'a,
    ) -> Self {
        let sizes: Vec<usize> = parts.iter().map(|part| part.outputs.len()).collect();
        let (outputs, curves): (Vec<_>, Vec<_>) = parts.into_iter().map(|part| (part.outputs, part.curves)).unzip();
        Self::new(outputs.concat(), move |values, rule| {
            combine(rule, &|part| {
                let begin: usize = sizes[..part].iter().sum();
                curves[part](&values[begin..begin + sizes[part]], rule)
            })
        })
    }

    /// The risks, and for every network their derivatives for its outputs, `[batch, n_outputs]`. The risk of a sample
    /// depends on its own outputs only, so one call changes an output of all samples.
    pub(super) fn derivatives(
        &self,
        rule: &CurveRule<'_>,
        at: RiskAt,
    ) -> Result<(Vec<f64>, Vec<Array2<f64>>), FairnessError> {
        let mut values: Vec<Array2<f32>> = self.outputs.iter().map(|outputs| on_host(outputs.clone())).collect();
        let risks_of = |values: &[Array2<f32>]| at.of(rule.grid.times(), &(self.curves)(values, rule)?);
        let risks = risks_of(&values)?;
        let mut derivatives = Vec::with_capacity(values.len());
        for network in 0..values.len() {
            let mut derivative = Array2::zeros(values[network].dim());
            for column in 0..values[network].ncols() {
                let own = values[network].column(column).to_owned();
                let mut moved = |sign: f32| {
                    let place = own.mapv(|value| value + sign * STEP * value.abs().max(1.0));
                    values[network].column_mut(column).assign(&place);
                    Ok::<_, FairnessError>((place, risks_of(&values)?))
                };
                let ((above, more), (below, less)) = (moved(1.0)?, moved(-1.0)?);
                values[network].column_mut(column).assign(&own);
                for (row, of_row) in derivative.column_mut(column).iter_mut().enumerate() {
                    // By the step that was made: adding to a single-precision number rounds it.
                    *of_row = (more[row] - less[row]) / (f64::from(above[row]) - f64::from(below[row]));
                }
            }
            derivatives.push(derivative);
        }
        Ok((risks, derivatives))
    }

    /// The gradient for the inputs of the sum of all outputs times `weights`, in the order of `pixels`.
    #[expect(clippy::cast_possible_truncation, reason = "gradients of a network are f32")]
    pub(super) fn pull_back(&self, weights: &[Array2<f64>], pixels: &Pixels) -> Vec<f32> {
        let weighted = |(outputs, weights): (&Tensor<2>, &Array2<f64>)| {
            let shape = [weights.nrows(), weights.ncols()];
            let weights = TensorData::new(weights.iter().map(|weight| *weight as f32).collect::<Vec<_>>(), shape);
            (outputs.clone() * Tensor::from_data(weights, (&outputs.device(), outputs.dtype()))).sum()
        };
        let total = self.outputs.iter().zip(weights).map(weighted).reduce(|sum, part| sum + part);
        let gradient = total.and_then(|total| pixels.gradient(&total.backward()));
        // Inputs on which no output depends.
        gradient.unwrap_or_else(|| vec![0.0; pixels.shape().iter().product()])
    }
}
