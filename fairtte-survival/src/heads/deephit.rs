//! `DeepHit` for one event type (Lee et al. 2018, AAAI; the paper's D.1.2).
//!
//! `l_i` = alpha * `nll_i` + (1 - alpha) * `r_i`, with F the cumulative mass of the padded softmax and a ranking term
//! `ranking = "pycox"`: `r_i` = (1/n) `sum_j` `R_ij` exp(-(F_i(q_i) - `F_j(q_i)`) / sigma), `R_ij` = 1 if i has an event and
//! (`q_i` < `q_j`, or `q_i` = `q_j` and j is censored): both F are read at i's interval, and the row sum carries 1/n, so that
//! the mean over the batch is pycox's loss (a mean over n^2 entries).
//! `ranking = "paper"`: `r_i` = n `sum_j` `E_ij` exp(-(F_i(q_i) - `F_j(q_j)`) / sigma), `E_ij` = 1 if i has an event and
//! `y_i` < `y_j` in continuous time: each F at its own interval, and the mean over the batch is the printed sum over pairs. It
//! grows with the square of the batch: alpha near 1 or a small learning rate belongs to it.
//! Without a comparable pair the ranking term is 0. Memory O(n L + n^2).
//! A sample's term depends on the rest of its batch, or on the other half of it, in which case n is the size of that
//! half. Two copies of a resampled event are never compared with each other.
//! Golden values: pycox 0.3.0 `DeepHitSingle`; the printed term: its formula in torch.

use burn::tensor::Tensor;
use burn::tensor::activation::softmax;
use ndarray::{Array2, ArrayView2};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::pmf::{logits_of, negative_log_likelihood, pad, survival};
use super::{Comparators, HeadSettings, SurvivalHead, constant, indicator, mask};
use crate::{Baseline, CutPoints, IntervalTargets, PredictionGrid, SurvivalError, Targets};

/// The form of the ranking term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Ranking {
    /// Both curves at the interval of the event, mean over all n^2 pairs (pycox).
    #[default]
    Pycox,
    /// Each curve at its own interval, summed over the comparable pairs (as the paper prints it).
    Paper,
}

/// Settings of `DeepHit`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DeepHitConfig {
    /// Share of the likelihood in the loss, in [0, 1]; the rest is the ranking term. pycox: 0.2.
    pub alpha: f64,
    /// Width of the ranking term, at least 0.02 (below, its exponential leaves `f32`). pycox: 0.1.
    pub sigma: f64,
    /// The form of the ranking term: `pycox` or `paper`.
    pub ranking: Ranking,
}

impl Default for DeepHitConfig {
    fn default() -> Self {
        Self { alpha: 0.2, sigma: 0.1, ranking: Ranking::Pycox }
    }
}

impl HeadSettings for DeepHitConfig {
    fn name(&self) -> &'static str {
        "deephit"
    }

    fn summary(&self) -> &'static str {
        "probability mass with a ranking term (Lee et al. 2018)"
    }

    fn build(&self) -> Result<Box<dyn SurvivalHead>, SurvivalError> {
        Ok(Box::new(DeepHit::new(self)?))
    }
}

/// Probability mass with a ranking term.
#[derive(Clone, Copy, Debug)]
pub struct DeepHit {
    alpha: f64,
    sigma: f64,
    ranking: Ranking,
}

impl DeepHit {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`SurvivalError::Setting`] naming the key, its value and its range.
    pub fn new(config: &DeepHitConfig) -> Result<Self, SurvivalError> {
        let DeepHitConfig { alpha, sigma, ranking } = *config;
        if !(0.0..=1.0).contains(&alpha) {
            let expected = "a number in [0, 1]";
            return Err(SurvivalError::Setting { key: "alpha", value: alpha, expected });
        }
        if !(0.02..f64::INFINITY).contains(&sigma) {
            let expected = "a number of at least 0.02";
            return Err(SurvivalError::Setting { key: "sigma", value: sigma, expected });
        }
        Ok(Self { alpha, sigma, ranking })
    }

    fn losses(&self, logits: Tensor<2>, targets: &Targets, comparators: Comparators<'_>) -> Tensor<1> {
        let padded = pad(logits);
        let likelihood = negative_log_likelihood(padded.clone(), &targets.intervals);
        likelihood * self.alpha + self.ranking(padded, targets, comparators) * (1.0 - self.alpha)
    }

    /// The ranking term of every sample, `[batch]`.
    fn ranking(&self, padded: Tensor<2>, targets: &Targets, comparators: Comparators<'_>) -> Tensor<1> {
        let [batch, width] = padded.dims();
        let device = padded.device();
        let (IntervalTargets { index, event }, time) = (&targets.intervals, &targets.time);
        let up_to = indicator(batch, width, &padded, |i, m| m <= index[i]); // [batch, width]
        let mass = softmax(padded, 1);
        let own = (mass.clone() * up_to.clone()).sum_dim(1); // F_i(q_i), [batch, 1]
        // n: the number of samples that each one is compared with, or 1 if there is none (then no pair is comparable).
        let n = |i: usize| (0..batch).filter(|j| comparators.admit(i, *j)).count().max(1) as f64;
        let (other, comparable, factor) = match self.ranking {
            Ranking::Pycox => (
                up_to.matmul(mass.transpose()), // F_j(q_i), [batch i, batch j]
                mask(batch, batch, &device, |i, j| {
                    let later = index[i] < index[j] || (index[i] == index[j] && !event[j]);
                    event[i] && later && comparators.admit(i, j)
                }),
                (0..batch).map(|i| 1.0 / n(i)).collect(),
            ),
            Ranking::Paper => (
                own.clone().transpose(), // F_j(q_j), [1, batch j]
                mask(batch, batch, &device, |i, j| targets.event[i] && time[i] < time[j] && comparators.admit(i, j)),
                (0..batch).map(n).collect(),
            ),
        };
        let penalty = ((other - own) / self.sigma).exp(); // [batch i, batch j]
        let zeros = Tensor::zeros([batch, batch], (&device, penalty.dtype()));
        let factor = constant(factor, [batch], &penalty);
        zeros.mask_where(comparable, penalty).sum_dim(1).flatten(0, 1) * factor
    }
}

impl SurvivalHead for DeepHit {
    fn name(&self) -> &'static str {
        "deephit"
    }

    fn n_outputs(&self, cut_points: &CutPoints) -> usize {
        cut_points.n()
    }

    fn subject_losses(&self, logits: Tensor<2>, targets: &Targets, _stream: &mut ChaCha8Rng) -> Tensor<1> {
        self.losses(logits, targets, Comparators::Batch)
    }

    /// Each sample forms pairs only with the samples of the other half.
    fn losses_against_other_half(
        &self,
        logits: Tensor<2>,
        targets: &Targets,
        half: &[bool],
        _stream: &mut ChaCha8Rng,
    ) -> Tensor<1> {
        self.losses(logits, targets, Comparators::OtherHalf(half))
    }

    /// The negative log-likelihood, not multiplied by alpha. The ranking term is left out, as that of an early event is
    /// a sum over more pairs.
    fn misfits(
        &self,
        logits: Tensor<2>,
        targets: &Targets,
        _half: Option<&[bool]>,
        _stream: &mut ChaCha8Rng,
    ) -> Tensor<1> {
        negative_log_likelihood(pad(logits), &targets.intervals)
    }

    fn survival(
        &self,
        logits: ArrayView2<'_, f32>,
        grid: &PredictionGrid,
        _baseline: Option<&Baseline>,
    ) -> Result<Array2<f64>, SurvivalError> {
        Ok(grid.refine(survival(&logits)))
    }

    fn starting_outputs(&self, hazard: &[f64]) -> Option<Vec<f64>> {
        Some(logits_of(hazard))
    }

    fn depends_on_batch(&self) -> bool {
        true
    }
}
