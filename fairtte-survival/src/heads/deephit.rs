//! `DeepHit` (Lee et al. 2018, AAAI, doi:10.1609/aaai.v32i1.11842; for one event the paper's D.1.2).
//!
//! One softmax over the intervals of all causes and over surviving the grid, whose logit is 0, gives the joint probability f(k, m)
//! of an event of cause k in interval m; `F_k` is its cumulative sum, the incidence of cause k. Survival of one event is 1 - `F_1`.
//! `l_i` = alpha * `nll_i` + (1 - alpha) * `r_i`: the likelihood is -log f(`k_i`, `q_i`) of an event and -log(1 - `sum_k` `F_k(q_i)`) of
//! a censoring (their `L_1`); the ranking term compares only by the cause of i (their `L_2` with all weights of causes 1).
//! `ranking = "pycox"`: `r_i` = (1/n) `sum_j` `R_ij` exp(-(F_ki(q_i) - `F_kj(q_i)`) / sigma), k the cause of i, `R_ij` = 1 if i has an
//! event and (`q_i` < `q_j`, or `q_i` = `q_j` and j is censored): both F are read at i's interval, as Lee et al. print it, and the
//! row sum carries 1/n, so that the mean over the batch is pycox's loss (a mean over n^2 entries).
//! `ranking = "paper"`: `r_i` = n `sum_j` `E_ij` exp(-(F_ki(q_i) - `F_kj(q_j)`) / sigma), `E_ij` = 1 if i has an event and
//! `y_i` < `y_j` in continuous time: each F at its own interval, and the mean over the batch is the printed sum over pairs. It
//! grows with the square of the batch: alpha near 1 or a small learning rate belongs to it.
//! Without a comparable pair the ranking term is 0. Memory O(n K L + n^2) for K causes.
//! A sample's term depends on the rest of its batch, or on the other half of it, in which case n is the size of that
//! half. Two copies of a resampled event are never compared with each other.
//! The softmax of Lee et al. has no survivors: of everybody it gives an event within the grid, and the likelihood of a censoring
//! at its end is 0. Here, as in pycox, they have a mass of their own.
//! Golden values: pycox 0.3.0 `DeepHitSingle` and `DeepHitLoss`; the printed term: its formula in torch.

use burn::tensor::Tensor;
use burn::tensor::activation::softmax;
use ndarray::{Array2, ArrayView2, Axis, concatenate, s};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::pmf::{logits_of, negative_log_likelihood, pad, without_events};
use super::{Comparators, HeadSettings, SurvivalHead, constant, indicator, mask};
use crate::{Baseline, CutPoints, PredictionGrid, SurvivalError, Targets};

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

    fn build_for_causes(&self, n: usize) -> Result<Option<Box<dyn SurvivalHead>>, SurvivalError> {
        Ok(Some(Box::new(DeepHit::new(self)?.for_causes(n))))
    }
}

/// Probability mass with a ranking term, of one event or of several causes.
#[derive(Clone, Copy, Debug)]
pub struct DeepHit {
    n_causes: usize,
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
        Ok(Self { n_causes: 1, alpha, sigma, ranking })
    }

    /// The same head for `n` causes of an event, at least 1: outputs of one cause after the other, `[batch, n n_cut_points]`.
    #[must_use]
    pub fn for_causes(self, n: usize) -> Self {
        Self { n_causes: n.max(1), ..self }
    }

    fn losses(&self, logits: Tensor<2>, targets: &Targets, comparators: Comparators<'_>) -> Tensor<1> {
        let padded = pad(logits);
        let likelihood = negative_log_likelihood(padded.clone(), targets, self.n_causes);
        likelihood * self.alpha + self.ranking(padded, targets, comparators) * (1.0 - self.alpha)
    }

    /// The ranking term of every sample, `[batch]`.
    fn ranking(&self, padded: Tensor<2>, targets: &Targets, comparators: Comparators<'_>) -> Tensor<1> {
        let [batch, width] = padded.dims();
        let (device, n_intervals) = (padded.device(), (width - 1) / self.n_causes);
        let (index, time) = (&targets.intervals.index, &targets.time);
        // An event of a cause that the outputs do not have ends the observation, as in the likelihood.
        let known = |cause: &usize| if *cause <= self.n_causes { *cause } else { 0 };
        let causes: Vec<usize> = targets.causes.iter().map(known).collect();
        let up_to = indicator(batch, n_intervals, &padded, |i, m| m <= index[i]); // [batch, n_intervals]
        let mass = softmax(padded, 1);
        // n: the number of samples that each one is compared with, or 1 if there is none (then no pair is comparable).
        let n = |i: usize| (0..batch).filter(|j| comparators.admit(i, *j)).count().max(1) as f64;
        let is_later = |i: usize, j: usize| match self.ranking {
            Ranking::Pycox => index[i] < index[j] || (index[i] == index[j] && causes[j] == 0),
            Ranking::Paper => time[i] < time[j],
        };
        // In continuous time an event beyond the grid is one; its cause is known only if there is one kind.
        let beyond = |i: usize| self.n_causes == 1 && self.ranking == Ranking::Paper && targets.event[i];
        let of_cause = |cause: usize| {
            let from = (cause - 1) * n_intervals;
            let mass = mass.clone().slice([0..batch, from..from + n_intervals]);
            let own = (mass.clone() * up_to.clone()).sum_dim(1); // F_ki(q_i), [batch, 1]
            let other = match self.ranking {
                Ranking::Pycox => up_to.clone().matmul(mass.transpose()), // F_kj(q_i), [batch i, batch j]
                Ranking::Paper => own.clone().transpose(),                // F_kj(q_j), [1, batch j]
            };
            let comparable = mask(batch, batch, &device, |i, j| {
                (causes[i] == cause || beyond(i)) && is_later(i, j) && comparators.admit(i, j)
            });
            let penalty = ((other - own) / self.sigma).exp(); // [batch i, batch j]
            let zeros = Tensor::zeros([batch, batch], (&device, penalty.dtype()));
            zeros.mask_where(comparable, penalty).sum_dim(1).flatten::<1>(0, 1)
        };
        let sum = (2..=self.n_causes).fold(of_cause(1), |sum, cause| sum + of_cause(cause));
        let factor = |i: usize| if self.ranking == Ranking::Pycox { 1.0 / n(i) } else { n(i) };
        let factor = constant((0..batch).map(factor).collect(), [batch], &sum);
        sum * factor
    }
}

impl SurvivalHead for DeepHit {
    fn name(&self) -> &'static str {
        "deephit"
    }

    fn n_causes(&self) -> usize {
        self.n_causes
    }

    fn n_outputs(&self, cut_points: &CutPoints) -> usize {
        self.n_causes * cut_points.n()
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
        negative_log_likelihood(pad(logits), targets, self.n_causes)
    }

    fn survival(
        &self,
        logits: ArrayView2<'_, f32>,
        grid: &PredictionGrid,
        _baseline: Option<&Baseline>,
    ) -> Result<Array2<f64>, SurvivalError> {
        let curves = without_events(&logits, self.n_causes);
        if self.n_causes == 1 {
            return Ok(grid.refine(curves));
        }
        let width = curves.ncols() / self.n_causes;
        let block = |cause: usize| grid.refine(curves.slice(s![.., cause * width..(cause + 1) * width]).to_owned());
        let blocks: Vec<Array2<f64>> = (0..self.n_causes).map(block).collect();
        let views: Vec<_> = blocks.iter().map(|block| block.view()).collect();
        Ok(concatenate(Axis(1), &views).expect("blocks of the same rows"))
    }

    fn starting_outputs(&self, hazard: &[f64]) -> Option<Vec<f64>> {
        Some(logits_of(hazard))
    }

    fn starting_outputs_of_causes(&self, hazards: &[Vec<f64>]) -> Option<Vec<f64>> {
        Some(joint_logits_of(hazards))
    }

    fn depends_on_batch(&self) -> bool {
        true
    }
}

/// log f(k, m) - log of the probability of surviving the grid, from the hazards of every cause.
fn joint_logits_of(hazards: &[Vec<f64>]) -> Vec<f64> {
    let n_intervals = hazards.first().map_or(0, Vec::len);
    let mut log_survival = vec![0.0]; // before every interval, and after the last
    for interval in 0..n_intervals {
        let any: f64 = hazards.iter().map(|hazard| hazard[interval]).sum();
        log_survival.push(log_survival[interval] + (-any).ln_1p());
    }
    let last = log_survival[n_intervals];
    let of_cause = |hazard: &Vec<f64>| {
        hazard.iter().zip(&log_survival).map(|(h, before)| before + h.ln() - last).collect::<Vec<f64>>()
    };
    hazards.iter().flat_map(of_cause).collect()
}
