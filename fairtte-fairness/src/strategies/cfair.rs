//! Conditional learning of fair representations (Zhao, Coston, Adel & Gordon 2020, sections 3 and 4, arXiv 1910.07162).
//!
//! Acts on the representation; needs the attribute in training only. Each stratum has an adversary that predicts the group
//! from relu(z). With `E_y` the balanced error of the adversary of stratum y, the encoder minimises `L_task` - lambda
//! mean over y of `E_y` and the adversaries minimise mean over y of `E_y`, in one pass by gradient reversal and with one
//! optimiser. Surrogate of `E_y`: the mean over groups of the mean cross-entropy of cell (y, group). Adversary: Linear
//! 128, `ReLU`, Linear.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `mode` | `cfair` | `cfair`, `cfair-eo` | task loss: every stratum weighs the same, or plain mean |
//! | `lambda` | 0.1 | >= 0, search [0.01, 5] | weight of the adversaries; source 10, MEDFAIR 0.1 |
//! | `scaling` | `reversal` | `reversal`, `both` | lambda scales what reaches the encoder, or the adversaries' steps too (source) |
//! | `weights` | `batch` | `batch`, `training` | a sample counts 1/n of its cell in the batch, or 1/P(group given stratum) in training |
//! | `stratum` | `status-at-horizon` | see `strata.rs` | what takes the place of the class |
//! | `balanced-sampler` | false | | every group is drawn equally often: rare groups are in every batch |
//!
//! Survival: the class becomes the stratum; without one a sample keeps its share 1/n of the task loss and enters no
//! adversary. Balancing the task over strata shifts the predicted event rate, so `cfair` trades calibration for balance;
//! `cfair-eo` does not. An adversary without a sample in the batch is unchanged; without two groups only the task is
//! trained. Beyond the source: more than two groups; the weights of its code are 1/P(stratum given group), group and
//! stratum exchanged. Adam nearly cancels a common factor of an adversary's gradients, so `scaling` acts through
//! clipping most. Golden values: our worked cases `golden/cfair.json`.

use crate::Batch;
use crate::explain::Traced;
use burn::module::Module;
use burn::tensor::activation::{log_softmax, relu};
use burn::tensor::{Device, Tensor};
use fairtte_data::Sampling;
use fairtte_models::{ImageEncoder, Noise};
use fairtte_survival::IntervalTargets;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::adversary::{Activation, Adversary, AdversarySpec, advantage, idle_adversary, n_trained_groups};
use super::batch_cells::{BatchCells, indices, own_column};
use super::numbers::constant;
use super::pass::{Pass, survival_of, task_alone};
use super::reversal::reverse_gradient;
use super::{
    ExpectedBatch, NETWORK, NamedPart, StepContext, StepReport, Strata, Strategy, StrategySettings, StratumConfig,
    TrainingCells, Watch,
};
use crate::features::Layer;
use crate::learner::EncoderNetwork;
use crate::predict::{CurveRule, Parts, fit_baseline};
use crate::{Export, FairnessError, Learner, LearnerSpec, SurvivalNetwork, check};

/// How the task loss is weighted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CfairMode {
    /// All strata have the same weight.
    #[default]
    Cfair,
    /// The plain mean.
    CfairEo,
}

impl CfairMode {
    /// Task loss of `losses`, `[batch]`, whose plain mean is `plain`, `[1]`.
    fn task(self, losses: &Tensor<1>, plain: &Tensor<1>, strata: &[Option<usize>], counted: &[bool]) -> Tensor<1> {
        match self {
            Self::Cfair => {
                let coefficients = task_coefficients(strata, counted);
                (losses.clone() * constant(coefficients, losses.dims(), losses)).sum()
            }
            Self::CfairEo => plain.clone(),
        }
    }
}

/// What lambda scales.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CfairScaling {
    /// The gradient that reaches the encoder; that of the adversaries is not scaled.
    #[default]
    Reversal,
    /// The loss of the adversaries, and thereby both gradients.
    Both,
}

impl CfairScaling {
    /// Factors of the reversed gradient that reaches the encoder, and of the adversaries' loss before that.
    fn factors(self, lambda: f64) -> (f64, f64) {
        match self {
            Self::Reversal => (lambda, 1.0),
            Self::Both => (1.0, lambda),
        }
    }
}

/// The source of the weights of an adversary's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CfairWeights {
    /// The cells of the batch.
    #[default]
    Batch,
    /// The cells of the training part.
    Training,
}

/// Settings of `CFair`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CfairConfig {
    /// How the task loss is weighted.
    pub mode: CfairMode,
    /// Weight of the adversaries, at least 0.
    pub lambda: f64,
    /// What lambda scales.
    pub scaling: CfairScaling,
    /// The source of the weights of an adversary's samples.
    pub weights: CfairWeights,
    /// What takes the place of the class.
    pub stratum: StratumConfig,
    /// Draw every group equally often.
    pub balanced_sampler: bool,
}

impl Default for CfairConfig {
    fn default() -> Self {
        Self {
            mode: CfairMode::default(),
            lambda: 0.1,
            scaling: CfairScaling::default(),
            weights: CfairWeights::default(),
            stratum: StratumConfig::default(),
            balanced_sampler: false,
        }
    }
}

impl StrategySettings for CfairConfig {
    fn name(&self) -> &'static str {
        "cfair"
    }

    fn summary(&self) -> &'static str {
        "one adversary per stratum through gradient reversal, balanced errors (Zhao et al. 2020)"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        let in_range = self.lambda >= 0.0 && self.lambda.is_finite();
        check("lambda", self.lambda, in_range, "a finite number >= 0")?;
        self.stratum.validate("stratum.bins")
    }

    fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        self.stratum.check_head(expected.head)
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        Ok(Box::new(Cfair::new(self, spec, cells)?))
    }
}

/// A survival network and one adversary per stratum.
#[derive(Module, Debug)]
pub struct CfairNetwork {
    survival: SurvivalNetwork,
    adversaries: Vec<Adversary>,
}

impl EncoderNetwork for CfairNetwork {
    fn encoder(&self) -> &ImageEncoder {
        self.survival.encoder()
    }

    fn with_encoder(self, encoder: ImageEncoder) -> Self {
        Self { survival: self.survival.with_encoder(encoder), ..self }
    }
}

impl CfairNetwork {
    fn drawn(spec: &LearnerSpec, n_groups: usize, n_strata: usize, device: &Device) -> Self {
        let of_adversary = AdversarySpec {
            n_inputs: spec.network.encoder.n_representation(),
            width: 128,
            activation: Activation::Relu,
            n_groups,
        };
        let adversary = |y| Adversary::drawn(&of_adversary, spec.weights(&format!("adversary-{y}")), device);
        Self {
            survival: SurvivalNetwork::new(&spec.network, spec.weights(NETWORK), device),
            adversaries: (0..n_strata).map(adversary).collect(),
        }
    }
}

/// Removes the group from the representation by the balanced errors within strata.
#[derive(Debug)]
pub struct Cfair {
    config: CfairConfig,
    learner: Learner<CfairNetwork>,
    strata: Strata,
    weights: Weights,
    /// Levels of the attribute, and those with a training sample.
    n_levels: usize,
    n_groups: usize,
    sampling: Sampling,
}

impl Cfair {
    /// Draws the weights of network and adversaries.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] and [`FairnessError::OneGroup`]
    /// without two groups in training, those of [`Strata::fit`].
    pub fn new(config: &CfairConfig, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Self, FairnessError> {
        config.validate()?;
        let n_groups = n_trained_groups(cells, "cfair")?;
        let strata = Strata::fit(&config.stratum, cells, "cfair")?;
        let (n_levels, n_strata) = (cells.levels.len(), strata.n());
        let weights = match config.weights {
            CfairWeights::Batch => Weights::Batch,
            CfairWeights::Training => {
                let outcomes = IntervalTargets { index: cells.interval.clone(), event: cells.event.clone() };
                let of_part = BatchCells::new(&cells.groups, &strata.of(&outcomes), (n_levels, n_strata));
                training_weights(of_part.counts())
            }
        };
        let learner = Learner::with_network(spec, |device| CfairNetwork::drawn(spec, n_levels, n_strata, device))?;
        let sampling = cells.sampling(config.balanced_sampler);
        Ok(Self { config: *config, learner, strata, weights, n_levels, n_groups, sampling })
    }

    /// Encoder and head with their present weights.
    pub fn network(&self) -> &SurvivalNetwork {
        &self.learner.network().survival
    }

    /// Mean loss of the adversaries, and the term that one pass minimises besides the task: its gradients are those of
    /// the adversaries, and the gradient of `representation` is that of -lambda times the mean loss. `None` without a cell
    /// in the batch.
    fn adversaries(&self, representation: Tensor<2>, cells: &BatchCells) -> Option<(Tensor<1>, Tensor<1>)> {
        let (reversal, factor) = self.config.scaling.factors(self.config.lambda);
        let read = relu(reverse_gradient(representation, reversal));
        let device = read.device();
        let logits = |stratum: usize, rows: &[usize]| {
            self.learner.network().adversaries[stratum].forward(read.clone().select(0, indices(rows, &device)))
        };
        let mean = mean_over_strata(adversary_losses(cells, &self.weights, logits))?;
        Some((mean.clone(), mean * factor))
    }
}

const ADVANTAGE: &str = "adversary advantage";

impl Strategy for Cfair {
    fn name(&self) -> &'static str {
        "cfair"
    }

    fn sampling(&self) -> Sampling {
        self.sampling.clone()
    }

    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        let noise = &mut context.noise(NETWORK);
        let pass = Pass::new(batch, context, |query| self.learner.network().survival.forward(batch, query, noise))?;
        let strata = self.strata.of(&pass.targets.intervals);
        let cells = BatchCells::new(&batch.groups, &strata, (self.n_levels, self.strata.n()));
        let (plain, absent_groups) = (pass.task(), cells.n_absent_groups());
        let task = self.config.mode.task(&pass.losses, &plain, &strata, &pass.counted);
        let adversaries = cells.can_compare().then(|| self.adversaries(pass.representation, &cells)).flatten();
        let Some((adversaries, term)) = adversaries else {
            let descent = self.learner.descend_reading(&task, &[plain], context)?;
            return Ok(task_alone(&descent, descent.also[0], absent_groups));
        };
        // The value of the encoder's objective; adversaries and encoder minimise different ones in one pass.
        let objective = task.clone() - adversaries.clone() * self.config.lambda;
        let loss = task + term;
        let descent = self.learner.descend_reading(&loss, &[plain, objective, adversaries], context)?;
        let [task_loss, objective, adversaries] = descent.also[..] else { unreachable!("three numbers were read") };
        // Groups have the same weight within a stratum: the best constant guess gives each 1/G.
        let advantage = advantage(adversaries, (self.n_groups as f64).ln());
        let terms = vec![("adversary loss".to_owned(), adversaries), (ADVANTAGE.to_owned(), advantage)];
        Ok(StepReport { task_loss, objective, gradient_norm: descent.norm, absent_groups, terms })
    }

    fn watches(&self) -> Vec<Watch> {
        let means =
            "the adversaries were never better than guessing the group, so they had no effect on the representation";
        let change = "raise training.epochs or optimiser.learning-rate, which is theirs too, or set \
                      strategy.cfair.balanced-sampler if a group is rare; if the inputs do not show the group, there is \
                      nothing to remove";
        vec![idle_adversary(ADVANTAGE, means, change)]
    }

    fn before_validation(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        let network = self.learner.network().survival.valid();
        let baseline = fit_baseline(&parts.train, |batch, query| network.outputs(batch, query))?;
        self.learner.set_baseline(baseline);
        Ok(())
    }

    fn predict(&self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Array2<f64>, FairnessError> {
        let network = self.learner.network().survival.valid();
        survival_of(&self.learner, rule, |query| network.outputs(batch, query))
    }

    fn traced<'a>(&'a self, batch: &'a Batch, rule: &CurveRule<'_>) -> Result<Traced<'a>, FairnessError> {
        let network = self.learner.network().survival.clone().freeze();
        self.learner.traced_by(rule, |query| Ok(network.forward(batch, query, &mut Noise::Off)?.outputs))
    }

    fn features(&self, batch: &Batch, layer: Layer) -> Result<Array2<f32>, FairnessError> {
        self.learner.features(batch, layer)
    }

    fn export(&self) -> Result<Export, FairnessError> {
        Export::of_network(self.network(), self.learner.baseline())
    }

    fn parts(&mut self) -> Vec<NamedPart<'_>> {
        vec![NamedPart::weights(NETWORK, &mut self.learner)]
    }
}

/// Weight of a sample in the loss of its stratum, which is divided by their sum.
#[derive(Clone, Debug, PartialEq)]
enum Weights {
    /// 1 / number of samples of its cell in the batch: every group there has the same weight.
    Batch,
    /// 1 / P(group | stratum) in training, `[n_strata][n_groups]`: equal weights of the groups on average.
    Training(Vec<Vec<f64>>),
}

impl Weights {
    fn of(&self, cells: &BatchCells, stratum: usize, group: usize) -> f64 {
        match self {
            Self::Batch => 1.0 / cells.n(stratum, group) as f64,
            Self::Training(table) => table[stratum][group],
        }
    }
}

/// Weights 1 / P(group | stratum) from the number of training samples, `[n_strata][n_groups]`. A cell without one gets 0: no
/// batch has a sample of it.
fn training_weights(counts: &[Vec<usize>]) -> Weights {
    let of_stratum = |counts: &Vec<usize>| {
        let n = counts.iter().sum::<usize>() as f64;
        counts.iter().map(|of_cell| if *of_cell > 0 { n / *of_cell as f64 } else { 0.0 }).collect()
    };
    Weights::Training(counts.iter().map(of_stratum).collect())
}

/// Loss of the adversary of every stratum in the batch, `[1]` each; `logits(stratum, rows)` returns its logits for
/// these rows of the batch, `[n, n_groups]`. An adversary without a sample is not evaluated, so neither momentum nor
/// weight decay changes it.
fn adversary_losses(
    cells: &BatchCells,
    weights: &Weights,
    logits: impl Fn(usize, &[usize]) -> Tensor<2>,
) -> Vec<Tensor<1>> {
    let of_stratum = |stratum| {
        let (rows, groups) = cells.members(stratum);
        let ask = || stratum_loss(logits(stratum, &rows), &groups, |group| weights.of(cells, stratum, group));
        (!rows.is_empty()).then(ask)
    };
    (0..cells.n_strata()).filter_map(of_stratum).collect()
}

/// Mean over the strata in the batch; `None` without any.
fn mean_over_strata(losses: Vec<Tensor<1>>) -> Option<Tensor<1>> {
    let n = losses.len();
    losses.into_iter().reduce(|sum, loss| sum + loss).map(|sum| sum * (1.0 / n as f64))
}

/// Weighted mean cross-entropy of the samples of one stratum: logits `[n, n_groups]`, groups `[n]` and the weight of each
/// group -> `[1]`.
fn stratum_loss(logits: Tensor<2>, groups: &[usize], weight: impl Fn(usize) -> f64) -> Tensor<1> {
    let weights: Vec<f64> = groups.iter().map(|group| weight(*group)).collect();
    let sum: f64 = weights.iter().sum();
    let shares: Vec<f64> = weights.into_iter().map(|weight| weight / sum).collect();
    let losses = own_column(log_softmax(logits, 1), groups).neg(); // [n]
    let shares = constant(shares, losses.dims(), &losses);
    (losses * shares).sum()
}

/// Coefficient of the task loss of every sample, `[batch]`: every stratum in the batch gets the same total weight.
/// Samples without a stratum keep their share 1/n; those that are not counted get 0.
fn task_coefficients(strata: &[Option<usize>], counted: &[bool]) -> Vec<f64> {
    let mut counts = vec![0_usize; strata.iter().flatten().max().map_or(0, |last| last + 1)];
    for stratum in strata.iter().zip(counted).filter_map(|(stratum, counted)| stratum.filter(|_| *counted)) {
        counts[stratum] += 1;
    }
    let n = counted.iter().filter(|counted| **counted).count().max(1) as f64;
    let share = counts.iter().sum::<usize>() as f64 / n;
    let n_present = counts.iter().filter(|n| **n > 0).count() as f64;
    let of_sample = |(stratum, counted): (&Option<usize>, &bool)| match stratum {
        _ if !counted => 0.0,
        Some(stratum) => share / (n_present * counts[*stratum] as f64),
        None => 1.0 / n,
    };
    strata.iter().zip(counted).map(of_sample).collect()
}

#[cfg(test)]
#[path = "../../tests/inside/cfair.rs"]
mod tests;
