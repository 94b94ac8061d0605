//! What methods that weigh groups or samples by how badly they are fitted take for that.
//!
//! The loss of a sample is the source's choice, and right for heads whose losses stand alone. With `cox` and `cox-time` an event
//! pays about the logarithm of the number at risk in its batch, with `deephit` it is ranked against the later samples: a group
//! whose events come early then has large losses however well it is fitted, and gains weight for that. `likelihood` weighs by
//! [`misfits`](fairtte_survival::SurvivalHead::misfits), in which a model without any knowledge fits every event alike, and still
//! descends the losses.

use burn::tensor::Tensor;
use fairtte_survival::Targets;
use serde::{Deserialize, Serialize};

use super::StepContext;
use super::groups::on_host;

/// What weights are computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WeighBy {
    /// The losses that are descended.
    #[default]
    Loss,
    /// The likelihood part of the head, for the Cox heads without what an event owes to the size of its risk set.
    Likelihood,
}

impl WeighBy {
    /// One number per sample on the host, `[batch]`, for the given `losses` and what the head reads, `outputs`; `half` as in
    /// [`losses_against_other_half`](StepContext::losses_against_other_half).
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
