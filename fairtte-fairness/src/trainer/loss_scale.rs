//! Scaling of losses for gradients in f16 (Micikevicius et al. 2018, arXiv 1710.03740, section 3.2).
//!
//! Gradients of activations are often below 6e-8, the smallest number of f16. All losses are multiplied by one factor before
//! their gradients are taken, and the gradients of the parameters, which are in single precision, are divided by it. A factor
//! that is too large gives a gradient that is not finite: the step is then left out and the factor halved. It is doubled after
//! 2,000 steps without that. Factors are powers of two, so that the scaling rounds nothing (start, interval and factors of
//! PyTorch's `GradScaler`).

use serde::{Deserialize, Serialize};

use crate::FairnessError;
use crate::trainable::GRADIENT_NORM;

const START: f64 = 65_536.0;
const INTERVAL: usize = 2_000;
/// Large enough for any loss, and far from the end of single precision.
const LARGEST: f64 = 16_777_216.0;

/// The factor and its history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LossScale {
    factor: f64,
    /// Steps since the factor changed.
    n_good: usize,
    /// Steps that were left out.
    n_left_out: usize,
}

impl Default for LossScale {
    fn default() -> Self {
        Self { factor: START, n_good: 0, n_left_out: 0 }
    }
}

impl LossScale {
    pub(crate) fn factor(&self) -> f64 {
        self.factor
    }

    /// What the log says of it.
    pub(crate) fn terms(&self) -> [(String, f64); 2] {
        [("loss scale".to_owned(), self.factor), ("steps left out".to_owned(), self.n_left_out as f64)]
    }

    /// Counts a step whose gradients were finite.
    pub(crate) fn good(&mut self) {
        self.n_good += 1;
        if self.n_good >= INTERVAL {
            (self.factor, self.n_good) = ((2.0 * self.factor).min(LARGEST), 0);
        }
    }

    /// Whether a step that failed with `error` is to be left out; the factor is then halved. Losses and their terms are not multiplied
    /// by it, so one that is not finite where the gradients before it are finite is not its effect; at a factor of 1 the gradients overflow
    /// without it.
    pub(crate) fn forgives(&mut self, error: &FairnessError) -> bool {
        let overflowed = matches!(error, FairnessError::NotFinite { what, .. } if *what == GRADIENT_NORM);
        if !overflowed || self.factor <= 1.0 {
            return false;
        }
        (self.factor, self.n_good) = (self.factor / 2.0, 0);
        self.n_left_out += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_finite(what: &'static str) -> FairnessError {
        FairnessError::NotFinite { what, value: f64::INFINITY, epoch: 1, step: 1, samples: Vec::new() }
    }

    #[test]
    fn a_factor_halves_with_every_overflow_until_it_cannot_be_the_cause() {
        let mut scale = LossScale::default();
        for n in 1..=16 {
            assert!(scale.forgives(&not_finite("the gradient norm")));
            assert!((scale.factor() - f64::from(1 << (16 - n))).abs() < 1e-12);
        }
        assert!(!scale.forgives(&not_finite("the gradient norm")), "at 1 there is no scaling");
        assert_eq!((scale.factor().to_bits(), scale.n_left_out), (1.0_f64.to_bits(), 16));
        let mut scale = LossScale::default();
        for what in ["the loss", "the loss of a sample", "a term of the loss"] {
            assert!(!scale.forgives(&not_finite(what)), "{what}");
        }
        assert!(!scale.forgives(&FairnessError::Interrupted { epoch: 1, step: 1, n_steps: 1 }));
    }

    #[test]
    fn a_factor_doubles_after_two_thousand_steps_since_its_last_change() {
        let mut scale = LossScale::default();
        (0..1_999).for_each(|_| scale.good());
        assert!(scale.forgives(&not_finite("the gradient norm")));
        (0..1_999).for_each(|_| scale.good());
        assert!((scale.factor() - 32_768.0).abs() < 1e-12);
        scale.good();
        assert!((scale.factor() - 65_536.0).abs() < 1e-12);
        (0..100_000).for_each(|_| scale.good());
        assert!((scale.factor() - LARGEST).abs() < 1e-12, "not without end");
    }
}
