//! LAFTR: learning adversarially fair and transferable representations (Madras et al. 2018, section 4, arXiv 1802.06309).
//!
//! Acts on the representation; needs the attribute in training only. Encoder and head minimise `L_task` + gamma `L_adv`, an
//! adversary that reads the representation z maximises `L_adv` = J - (2 / G) sum over cells of the mean of 1 - p(own
//! group): G groups, J strata, one cell per (group, stratum). For two groups that is 1 - sum of mean |h - a| (`dp`) and
//! 2 - sum of mean |h - a| (`eqodd`) of the paper. A step: (1) encoder and head, the adversary fixed; (2) a new forward pass,
//! then `aud-steps` steps of the adversary on `L_adv` times gamma. With gradient accumulation the further steps are
//! made with the last batch only; they are skipped if it does not contain two groups, as may happen with a small batch
//! at the end of an epoch. Adversary: Linear 128, leaky `ReLU`, Linear.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `mode` | `eqodd` | `dp`, `eqodd`, `eqopp0`, `eqopp1` | parity over all samples, within strata, within one of two strata |
//! | `gamma` | 0.3 | >= 0, search [0.01, 5] | weight of the adversary; source 1 |
//! | `aud-steps` | 5 | >= 1 | steps of the adversary per batch; source 1 |
//! | `adversary-learning-rate` | 1e-3 | > 0 | its step size (Adam); source 1e-3; without weight decay |
//! | `stratum` | `status-at-horizon` | see `strata.rs` | what takes the place of the class; not read for `dp` |
//! | `balanced-sampler` | false | | every group is drawn equally often: rare groups are in every batch |
//!
//! Masks: the representation is the pooled bottleneck, and only `dp` has a meaning.
//!
//! Survival: the class becomes the stratum, appended to the input of the adversary (as J - 1 indicators). A sample
//! without one enters the task loss only. A cell missing from the batch adds nothing; without two groups in the batch
//! only the task is trained. Beyond the source: more than two groups; means over cells of the batch in place of weights by
//! the groups' shares, which counted a majority twice. MEDFAIR's code lets the adversary minimise the encoder's loss;
//! here it maximises `L_adv`. The second pass moves the running statistics of batch norm too. Golden values: our worked
//! cases `golden/laftr.json`.

mod settings;

use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use burn::tensor::activation::softmax;
use fairtte_data::Sampling;
use fairtte_survival::Targets;

use super::adversary::{Activation, Adversary, AdversarySpec, idle_adversary};
use super::batch_cells::BatchCells;
use super::compared::ComparedGroups;
use super::numbers::constant;
use super::one_network::of_one_network;
use super::pass::{Pass, task_alone};
use super::step::named;
use super::{
    Accumulation, NETWORK, NamedPart, StepContext, StepReport, Strata, Strategy, StrategySettings as _, TrainingCells,
    Watch,
};
use crate::trainable::Trainable;
use crate::{Batch, EncoderNetwork as _, FairnessError, Learner, LearnerSpec, SurvivalNetwork};

pub use settings::{LaftrConfig, LaftrMode};

/// An adversary predicts the group from the representation; encoder and head are trained against it.
#[derive(Debug)]
pub struct Laftr {
    config: LaftrConfig,
    learner: Learner,
    adversary: Trainable<Adversary>,
    strata: Option<Strata>,
    groups: ComparedGroups,
}

impl Laftr {
    /// Draws the weights of both networks.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] and [`FairnessError::OneGroup`]
    /// without two groups in training, those of [`Strata::fit`].
    pub fn new(config: &LaftrConfig, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Self, FairnessError> {
        config.validate()?;
        let groups = ComparedGroups::new(cells, config.balanced_sampler, "laftr")?;
        let strata = match config.mode {
            LaftrMode::Dp => None,
            _ => Some(Strata::fit(&config.stratum, cells, "laftr")?),
        };
        let of_adversary = AdversarySpec {
            n_inputs: spec.network.encoder.n_representation() + strata.map_or(0, |strata| strata.n() - 1),
            width: 128,
            activation: Activation::LeakyRelu,
            n_groups: groups.n_levels,
        };
        let learner = Learner::new(spec, NETWORK)?;
        let adversary = of_adversary.trainable(spec, ADVERSARY, config.adversary_learning_rate);
        Ok(Self { config: *config, learner, adversary, strata, groups })
    }

    /// Encoder and head with their present weights.
    pub fn network(&self) -> &SurvivalNetwork {
        self.learner.network()
    }

    /// Stratum of every sample, and the number of strata.
    fn strata(&self, targets: &Targets) -> (Vec<Option<usize>>, usize) {
        match &self.strata {
            Some(strata) => (strata.of(&targets.intervals), strata.n()),
            None => (vec![None; targets.n()], 1),
        }
    }

    /// `L_adv` with the present adversary, `[1]`.
    fn gain(
        &self,
        representation: Tensor<2>,
        strata: &[Option<usize>],
        n_strata: usize,
        cells: &BatchCells,
    ) -> Tensor<1> {
        let inputs = with_strata(representation, strata, n_strata);
        gain_of_logits(self.adversary.module().forward(inputs), cells, self.groups.n_trained)
    }
}

const ADVERSARY: &str = "adversary";
const ADVANTAGE: &str = "adversary advantage";

impl Strategy for Laftr {
    fn name(&self) -> &'static str {
        "laftr"
    }

    fn sampling(&self) -> Sampling {
        self.groups.sampling.clone()
    }

    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        let noise = &mut context.noise(NETWORK);
        let pass = Pass::new(batch, context, |query| self.learner.forward(batch, query, noise))?;
        let (strata, n_strata) = self.strata(&pass.targets);
        let cells = self.config.mode.cells(&batch.groups, &strata, (self.groups.n_levels, n_strata));
        let (task, absent_groups) = (pass.task(), cells.n_absent_groups());
        if !cells.can_compare() {
            let descent = self.learner.descend_reading(&task, &[], context)?;
            self.adversary.update(GradientsParams::new(), context)?; // gradients of earlier batches of this step
            return Ok(task_alone(&descent, descent.loss, absent_groups));
        }
        let gain = self.gain(pass.representation, &strata, n_strata, &cells);
        let loss = for_network(task.clone(), gain.clone(), self.config.gamma);
        let descent = self.learner.descend_reading(&loss, &[task, gain], context)?;

        let encoder = self.learner.network().encoder();
        let representation = encoder.forward(batch.pixels.clone(), &mut context.noise(ADVERSARY))?.detach();
        let n_further = if context.accumulation.last { self.config.aud_steps - 1 } else { 0 };
        let alone = StepContext { accumulation: Accumulation::default(), ..*context };
        for step in std::iter::once(context).chain(std::iter::repeat_n(&alone, n_further)) {
            let gain = self.gain(representation.clone(), &strata, n_strata, &cells);
            self.adversary.descend(&for_adversary(gain, self.config.gamma), step)?;
        }
        let (objective, gradient_norm) = (descent.loss, descent.norm);
        let advantage = advantage_of_gain(descent.also[1], &cells, self.groups.n_trained);
        let terms = named([("adversary gain", descent.also[1]), (ADVANTAGE, advantage)]);
        Ok(StepReport { task_loss: descent.also[0], objective, gradient_norm, absent_groups, terms })
    }

    fn watches(&self) -> Vec<Watch> {
        let means = "the adversary was never better than guessing the group, so it had no effect on the representation";
        let change = "raise `aud-steps` or `adversary-learning-rate`, or set \
                      `balanced-sampler` if a group is rare; if the inputs do not show the group, there is \
                      nothing to remove";
        vec![idle_adversary(ADVANTAGE, means, change)]
    }

    of_one_network!();

    fn parts(&mut self) -> Vec<NamedPart<'_>> {
        vec![NamedPart::weights(NETWORK, &mut self.learner), NamedPart::training(ADVERSARY, &mut self.adversary)]
    }
}

/// Representation `[batch, representation]` with an indicator of every stratum but the first.
fn with_strata(representation: Tensor<2>, strata: &[Option<usize>], n_strata: usize) -> Tensor<2> {
    if n_strata < 2 {
        return representation;
    }
    let indicators = strata.iter().flat_map(|stratum| (1..n_strata).map(move |y| f64::from(*stratum == Some(y))));
    let indicators = constant(indicators.collect(), [strata.len(), n_strata - 1], &representation);
    Tensor::cat(vec![representation, indicators], 1)
}

/// Error of the adversary on every sample, 1 - p(own group): probabilities `[batch, n_groups]` -> `[batch]`.
fn errors(probabilities: Tensor<2>, cells: &BatchCells) -> Tensor<1> {
    cells.own(probabilities).neg() + 1.0
}

/// `L_adv` = J - (2 / G) sum over cells of the cell's mean error, `[1]`: J strata, G groups in training.
fn adversary_gain(errors: Tensor<1>, cells: &BatchCells, n_groups: usize) -> Tensor<1> {
    let coefficients = cells.coefficients(|y, g| 2.0 / (n_groups * cells.n(y, g)) as f64);
    let coefficients = constant(coefficients, errors.dims(), &errors);
    (errors * coefficients).sum().neg() + cells.n_strata() as f64
}

/// The position of the adversary's mean error over the cells of the batch between that of guessing, 1 - 1/G (0), and 0 (1).
fn advantage_of_gain(gain: f64, cells: &BatchCells, n_groups: usize) -> f64 {
    let n_present = cells.counts().iter().flatten().filter(|n| **n > 0).count() as f64;
    let (n_strata, n_groups) = (cells.n_strata() as f64, n_groups as f64);
    let mean_error = (n_strata - gain) * n_groups / (2.0 * n_present);
    1.0 - mean_error / (1.0 - 1.0 / n_groups)
}

/// `L_adv` of the adversary's logits `[batch, n_groups]`, `[1]`.
fn gain_of_logits(logits: Tensor<2>, cells: &BatchCells, n_groups: usize) -> Tensor<1> {
    adversary_gain(errors(softmax(logits, 1), cells), cells, n_groups)
}

/// The objective of encoder and head: the task and, times gamma, the adversary's gain.
fn for_network(task: Tensor<1>, gain: Tensor<1>, gamma: f64) -> Tensor<1> {
    task + gain * gamma
}

/// The loss of the adversary: minus gamma times its gain.
fn for_adversary(gain: Tensor<1>, gamma: f64) -> Tensor<1> {
    gain * -gamma
}

#[cfg(test)]
#[path = "../../../tests/inside/laftr.rs"]
mod tests;
