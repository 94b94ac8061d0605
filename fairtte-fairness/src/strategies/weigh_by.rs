//! The measure of fit by which some methods weight groups or samples.
//!
//! The loss of a sample is the source's choice, and appropriate for heads whose losses do not depend on other samples.
//! With `cox` and `cox-time` the loss of an event is about the logarithm of the number at risk in its batch, with
//! `deephit` it is ranked against the later samples: a group with early events then has large losses even if it is fitted
//! well, and gains weight for that. `likelihood` weights by
//! [`misfits`](fairtte_survival::SurvivalHead::misfits), in which an uninformative model fits every event equally, and
//! still minimises the losses.

use burn::tensor::Tensor;
use fairtte_survival::Targets;
use serde::{Deserialize, Serialize};

use super::StepContext;
use super::groups::on_host;

/// What weights are computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WeighBy {
    /// The losses that are minimised.
    #[default]
    Loss,
    /// The likelihood part of the head, for the Cox heads without the part that depends on the size of the risk set.
    Likelihood,
}

impl WeighBy {
    /// One number per sample on the host, `[batch]`, for the given `losses` and the input of the head, `outputs`;
    /// `half` as in [`losses_against_other_half`](StepContext::losses_against_other_half).
    pub(crate) fn of(
        self,
        losses: &Tensor<1>,
        outputs: &Tensor<2>,
        (targets, half): (&Targets, Option<&[bool]>),
        context: &StepContext<'_>,
    ) -> Vec<f64> {
        match self {
            Self::Loss => on_host(losses),
            Self::Likelihood => on_host(&context.misfits(outputs.clone().detach(), targets, half)),
        }
    }
}

#[cfg(test)]
#[path = "../../tests/inside/weigh_by.rs"]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests;
