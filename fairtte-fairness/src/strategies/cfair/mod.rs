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
//! | `weights` | `batch` | `batch`, `training` | a sample counts 1/n of its cell in the batch, or 1/P(group given stratum) in training, as samples are drawn |
//! | `stratum` | `status-at-horizon` | see `strata.rs` | what takes the place of the class |
//! | `balanced-sampler` | false | | every group is drawn equally often: rare groups are in every batch |
//!
//! Survival: the class becomes the stratum; without one a sample keeps its share 1/n of the task loss and enters no
//! adversary. Balancing the task over strata shifts the predicted event rate, so `cfair` trades calibration for balance;
//! `cfair-eo` does not. An adversary without a sample in the batch is unchanged; without two groups only the task is
//! trained. Beyond the source: more than two groups; the weights of its code are 1/P(stratum given group), group and
//! stratum exchanged. Adam nearly cancels a common factor of an adversary's gradients, so `scaling` acts through
//! clipping most. Golden values: our worked cases `golden/cfair.json`.

mod losses;
mod settings;

use burn::module::Module;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use fairtte_data::Sampling;
use fairtte_models::ImageEncoder;
use fairtte_survival::{Baseline, IntervalTargets};

use self::losses::{Weights, adversary_losses, mean_over_strata, training_weights};
use super::adversary::{Activation, Adversary, AdversarySpec, advantage, idle_adversary};
use super::batch_cells::{BatchCells, indices};
use super::compared::ComparedGroups;
use super::one_network::of_one_network;
use super::pass::{Pass, task_alone};
use super::reversal::reverse_gradient;
use super::step::named;
use super::{
    NETWORK, NamedPart, StepContext, StepReport, Strata, Strategy, StrategySettings as _, TrainingCells, Watch,
};
use crate::{Batch, EncoderNetwork, Export, FairnessError, Learner, LearnerSpec, PredictingNetwork, SurvivalNetwork};

pub use settings::{CfairConfig, CfairMode, CfairScaling, CfairWeights};

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

impl PredictingNetwork for CfairNetwork {
    fn evaluated(&self, batch: &Batch, query: &[f64]) -> Result<Tensor<2>, FairnessError> {
        self.survival.evaluated(batch, query)
    }

    fn export(&self, baseline: Option<&Baseline>) -> Result<Export, FairnessError> {
        self.survival.export(baseline)
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
    groups: ComparedGroups,
}

impl Cfair {
    /// Draws the weights of network and adversaries.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] and [`FairnessError::OneGroup`]
    /// without two groups in training, those of [`Strata::fit`].
    pub fn new(config: &CfairConfig, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Self, FairnessError> {
        config.validate()?;
        let groups = ComparedGroups::new(cells, config.balanced_sampler, "cfair")?;
        let strata = Strata::fit(&config.stratum, cells, "cfair")?;
        let (n_levels, n_strata) = (groups.n_levels, strata.n());
        let weights = match config.weights {
            CfairWeights::Batch => Weights::Batch,
            CfairWeights::Training => {
                let outcomes = IntervalTargets { index: cells.interval.clone(), event: cells.event.clone() };
                let of_part = BatchCells::new(&cells.groups, &strata.of(&outcomes), (n_levels, n_strata));
                // By the balanced sampler all samples of a group together are drawn as often as those of any other.
                let rate = |n: &usize| if config.balanced_sampler && *n > 0 { 1.0 / *n as f64 } else { 1.0 };
                training_weights(of_part.counts(), &cells.counts().iter().map(rate).collect::<Vec<_>>())
            }
        };
        let learner = Learner::with_network(spec, |device| CfairNetwork::drawn(spec, n_levels, n_strata, device))?;
        Ok(Self { config: *config, learner, strata, weights, groups })
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
        self.groups.sampling.clone()
    }

    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        let noise = &mut context.noise(NETWORK);
        let pass = Pass::new(batch, context, |query| self.learner.network().survival.forward(batch, query, noise))?;
        let strata = self.strata.of(&pass.targets.intervals);
        let cells = BatchCells::new(&batch.groups, &strata, (self.groups.n_levels, self.strata.n()));
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
        let advantage = advantage(adversaries, (self.groups.n_trained as f64).ln());
        let terms = named([("adversary loss", adversaries), (ADVANTAGE, advantage)]);
        Ok(StepReport { task_loss, objective, gradient_norm: descent.norm, absent_groups, terms })
    }

    fn watches(&self) -> Vec<Watch> {
        let means =
            "the adversaries were never better than guessing the group, so they had no effect on the representation";
        let change = "raise `epochs` or `learning-rate`, which is theirs too, or set \
                      `balanced-sampler` if a group is rare; if the inputs do not show the group, there is \
                      nothing to remove";
        vec![idle_adversary(ADVANTAGE, means, change)]
    }

    of_one_network!();

    fn parts(&mut self) -> Vec<NamedPart<'_>> {
        vec![NamedPart::weights(NETWORK, &mut self.learner)]
    }
}

#[cfg(test)]
#[path = "../../../tests/inside/cfair.rs"]
mod tests;
