//! The probability of a class: logistic regression on the representation.
//!
//! A class is the outcome of one interval (`CutPoints::of_class`): positive = event in it, negative = followed to its end.
//! The one output x is the logit of the hazard of this interval, p = `sigmoid(x)`, and survival at its end is 1 - p.
//! With z = x for a positive and -x for a negative sample, `p_t` = `sigmoid(z)` is the probability of the class it has, and
//! `l_i` = `w_i` (1 - `p_t`)^gamma softplus(-z), with `w_i` = `positive-weight` of a positive sample, 1 of a negative one.
//! gamma = 0 and weight 1 (the defaults) is the binary cross-entropy, which is the loss of `nnet-survival` with one interval.
//! `positive-weight` is `pos_weight` of PyTorch's `BCEWithLogitsLoss`; gamma is that of the focal loss (Lin et al. 2017,
//! equation 4; its class weight alpha = w / (1 + w) up to a common factor). Both change what probabilities mean: they
//! are calibrated with the defaults alone. `misfits` are softplus(-z), without both. A sample's term does not depend on the
//! rest of the batch.
//! Golden values: torch 2.9 (`fairtte-survival/tests/survival/binary.rs`).
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `positive-weight` | 1 | (0, 1e6] | weight of the positive samples in the loss |
//! | `focal-gamma` | 0 | [0, 100] | exponent of the focal loss |

use burn::tensor::Tensor;
use ndarray::{Array2, ArrayView2};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::nnet_survival::{softplus, softplus_of};
use super::{HeadSettings, SurvivalHead, constant};
use crate::{Baseline, CutPoints, PredictionGrid, SurvivalError, Targets};

/// Settings of the head of a class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct BinaryConfig {
    /// Weight of the positive samples in the loss, in (0, 1e6].
    pub positive_weight: f64,
    /// Exponent of the focal loss, in [0, 100]; 0 = cross-entropy.
    pub focal_gamma: f64,
}

impl Default for BinaryConfig {
    fn default() -> Self {
        Self { positive_weight: 1.0, focal_gamma: 0.0 }
    }
}

impl HeadSettings for BinaryConfig {
    fn name(&self) -> &'static str {
        "binary"
    }

    fn summary(&self) -> &'static str {
        "probability of a class, cross-entropy or focal loss (Lin et al. 2017); [task] kind = \"binary\""
    }

    fn build(&self) -> Result<Box<dyn SurvivalHead>, SurvivalError> {
        Ok(Box::new(Binary::new(self)?))
    }
}

/// Probability of a class.
#[derive(Clone, Copy, Debug)]
pub struct Binary {
    config: BinaryConfig,
}

impl Binary {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`SurvivalError::Setting`] naming the setting, its value and its range.
    pub fn new(config: &BinaryConfig) -> Result<Self, SurvivalError> {
        let BinaryConfig { positive_weight, focal_gamma } = *config;
        if !(positive_weight > 0.0 && positive_weight <= 1e6) {
            let expected = "a number in (0, 1e6]";
            return Err(SurvivalError::Setting { key: "positive-weight", value: positive_weight, expected });
        }
        if !(0.0..=100.0).contains(&focal_gamma) {
            let expected = "a number in [0, 100]";
            return Err(SurvivalError::Setting { key: "focal-gamma", value: focal_gamma, expected });
        }
        Ok(Self { config: *config })
    }
}

impl SurvivalHead for Binary {
    fn name(&self) -> &'static str {
        "binary"
    }

    fn predicts_class(&self) -> bool {
        true
    }

    fn n_outputs(&self, _cut_points: &CutPoints) -> usize {
        1
    }

    fn subject_losses(&self, logits: Tensor<2>, targets: &Targets, _stream: &mut ChaCha8Rng) -> Tensor<1> {
        let BinaryConfig { positive_weight, focal_gamma } = self.config;
        let z = of_own_class(&logits, targets);
        let mut losses = softplus(-z.clone());
        if focal_gamma > 0.0 {
            losses = losses * (softplus(z) * -focal_gamma).exp(); // 1 - p_t = exp(-softplus(z))
        }
        if positive_weight.to_bits() != 1.0_f64.to_bits() {
            losses = losses * by_class(targets, positive_weight, 1.0, &logits);
        }
        losses.flatten(0, 1)
    }

    /// The cross-entropy, without `positive-weight` and the factor of the focal loss.
    fn misfits(
        &self,
        logits: Tensor<2>,
        targets: &Targets,
        _half: Option<&[bool]>,
        _stream: &mut ChaCha8Rng,
    ) -> Tensor<1> {
        softplus(-of_own_class(&logits, targets)).flatten(0, 1)
    }

    fn survival(
        &self,
        logits: ArrayView2<'_, f32>,
        grid: &PredictionGrid,
        _baseline: Option<&Baseline>,
    ) -> Result<Array2<f64>, SurvivalError> {
        let at_cuts = Array2::from_shape_fn((logits.nrows(), 2), |(row, cut)| {
            if cut == 0 { 1.0 } else { (-softplus_of(logits[[row, 0]])).exp() }
        });
        Ok(grid.refine(at_cuts))
    }

    fn starting_outputs(&self, hazard: &[f64]) -> Option<Vec<f64>> {
        let prevalence = hazard.last()?;
        Some(vec![prevalence.ln() - (-prevalence).ln_1p()])
    }

    fn starts_at_one(&self) -> bool {
        true
    }
}

/// z, the logit of the class that a sample has, `[batch, 1]`.
fn of_own_class(logits: &Tensor<2>, targets: &Targets) -> Tensor<2> {
    logits.clone() * by_class(targets, 1.0, -1.0, logits)
}

/// One number for positive and one for negative samples, `[batch, 1]`.
fn by_class(targets: &Targets, positive: f64, negative: f64, like: &Tensor<2>) -> Tensor<2> {
    let values = targets.event.iter().map(|event| if *event { positive } else { negative }).collect();
    constant(values, [targets.n(), 1], like)
}
