//! Learning not to learn (Kim, Kim, Kim, Kim & Kim 2019, section 3, arXiv 1812.10352).
//!
//! Acts on the representation; needs the attribute in training only. A predictor of the group reads the representation z.
//! Phase 1: encoder and head minimise `L_task` + lambda mean of sum over groups of p log p, p the predictor's
//! probabilities, the predictor frozen. Phase 2, on a new forward pass: the predictor minimises its cross-entropy; the
//! encoder receives mu times the reversed gradient of it. Predictor: Linear 64, `ReLU`, Linear, with its own optimiser.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `lambda` | 0.01 | >= 0, search [0.001, 3] | weight of the predictor's negative entropy; source 0.01 |
//! | `mu` | 0.1 | >= 0 | scale of the reversed gradient; source 0.1 |
//! | `predictor-learning-rate` | 1e-2 | > 0 | step size of the predictor (Adam); without weight decay |
//! | `balanced-sampler` | false | | every group is drawn equally often: rare groups are in every batch |
//!
//! Survival: no class is read, so nothing changes. Samples without the attribute enter the task loss only; a batch without
//! two groups trains the task only. The encoder takes two steps per batch with one `AdamW`, as in the source's code:
//! its moments see both gradients, and weight decay acts in both, so it changes and decays faster than the head (with
//! `mu` = 0 it takes the first step only). With gradient accumulation each phase averages its own gradients. The second
//! pass moves the running statistics of batch norm too. MEDFAIR's code takes the predictor's features for its
//! probabilities and gives the predictor's optimiser the main network's parameters. Golden values: our worked cases
//! `golden/lnl.json`.

use std::path::Path;

use crate::Batch;
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use fairtte_data::Sampling;
use serde::{Deserialize, Serialize};

use super::adversary::{
    Activation, Adversary, AdversarySpec, advantage, cross_entropy, guess, idle_adversary, negative_entropy,
};
use super::batch_cells::BatchCells;
use super::compared::ComparedGroups;
use super::one_network::of_one_network;
use super::pass::{Pass, task_alone};
use super::reversal::reverse_gradient;
use super::step::named;
use super::{
    Accumulation, NETWORK, NamedPart, Saved, StepContext, StepReport, Strategy, StrategySettings, TrainingCells, Watch,
    load_parts,
};
use crate::gradients::{add, scale};
use crate::learner::EncoderNetwork;
use crate::trainable::Trainable;
use crate::{FairnessError, Learner, LearnerSpec, SurvivalNetwork, check_not_negative, check_positive};

/// Settings of LNL.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LnlConfig {
    /// Weight of the predictor's negative entropy, at least 0.
    pub lambda: f64,
    /// Scale of the reversed gradient, at least 0.
    pub mu: f64,
    /// Step size of the predictor, above 0.
    pub predictor_learning_rate: f64,
    /// Draw every group equally often.
    pub balanced_sampler: bool,
}

impl Default for LnlConfig {
    fn default() -> Self {
        Self { lambda: 0.01, mu: 0.1, predictor_learning_rate: 1e-2, balanced_sampler: false }
    }
}

impl StrategySettings for LnlConfig {
    fn name(&self) -> &'static str {
        "lnl"
    }

    fn summary(&self) -> &'static str {
        "the representation is trained to hide the group from a predictor (Kim et al. 2019)"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        let Self { lambda, mu, predictor_learning_rate: rate, .. } = *self;
        check_not_negative("lambda", lambda)?;
        check_not_negative("mu", mu)?;
        check_positive("predictor-learning-rate", rate)
    }

    fn models_causes(&self) -> bool {
        true
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        Ok(Box::new(Lnl::new(self, spec, cells)?))
    }
}

/// Removes from the representation the information by which a predictor recognises the group.
#[derive(Debug)]
pub struct Lnl {
    config: LnlConfig,
    learner: Learner,
    predictor: Trainable<Adversary>,
    groups: ComparedGroups,
    /// Sum of the encoder's gradients of phase 2 since its last step, if several batches make one.
    pending: Option<GradientsParams>,
}

impl Lnl {
    /// Draws the weights of both networks.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] and [`FairnessError::OneGroup`]
    /// without two groups in training.
    pub fn new(config: &LnlConfig, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Self, FairnessError> {
        config.validate()?;
        let groups = ComparedGroups::new(cells, config.balanced_sampler, "lnl")?;
        let of_predictor = AdversarySpec {
            n_inputs: spec.network.encoder.n_representation(),
            width: 64,
            activation: Activation::Relu,
            n_groups: groups.n_levels,
        };
        let learner = Learner::new(spec, NETWORK)?;
        let predictor = of_predictor.trainable(spec, PREDICTOR, config.predictor_learning_rate);
        Ok(Self { config: *config, learner, predictor, groups, pending: None })
    }

    /// Encoder and head with their present weights.
    pub fn network(&self) -> &SurvivalNetwork {
        self.learner.network()
    }

    /// Phase 2 on a new forward pass; without `cells` only the gradients of earlier batches of this step.
    fn second_phase(
        &mut self,
        batch: &Batch,
        cells: Option<&BatchCells>,
        context: &StepContext<'_>,
    ) -> Result<(), FairnessError> {
        let (mut of_network, mut of_predictor) = (GradientsParams::new(), GradientsParams::new());
        if let Some(cells) = cells {
            let encoder = self.learner.network().encoder();
            let representation = encoder.forward(batch.pixels.clone(), &mut context.noise(PREDICTOR))?;
            // With a gradient of 0, momentum and weight decay would still change the encoder.
            let representation = if self.config.mu > 0.0 { representation } else { representation.detach() };
            let loss = for_predictor(representation, self.config.mu, |z| self.predictor.module().forward(z), cells);
            let mut gradients = context.backward(&loss);
            of_network = context.of_module(&mut gradients, self.learner.network());
            of_predictor = context.of_module(&mut gradients, self.predictor.module());
        }
        self.predictor.update(of_predictor, context)?;
        // The learner averages the gradients of phase 1 over batches; those of phase 2 must be kept apart.
        let Accumulation { of, last } = context.accumulation;
        scale(self.learner.network(), &mut of_network, 1.0 / of as f64);
        if let Some(pending) = self.pending.take() {
            add(self.learner.network(), &mut of_network, pending);
        }
        if !last {
            self.pending = Some(of_network);
            return Ok(());
        }
        let alone = StepContext { accumulation: Accumulation::default(), ..*context };
        self.learner.update(of_network, &alone)?;
        Ok(())
    }
}

const PREDICTOR: &str = "predictor";
const ADVANTAGE: &str = "predictor advantage";

impl Strategy for Lnl {
    fn name(&self) -> &'static str {
        "lnl"
    }

    fn sampling(&self) -> Sampling {
        self.groups.sampling.clone()
    }

    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        let noise = &mut context.noise(NETWORK);
        let pass = Pass::new(batch, context, |query| self.learner.forward(batch, query, noise))?;
        let cells = BatchCells::of_groups(&batch.groups, self.groups.n_levels);
        let (task, absent_groups) = (pass.task(), cells.n_absent_groups());
        if !cells.can_compare() {
            let descent = self.learner.descend_reading(&task, &[], context)?;
            self.second_phase(batch, None, context)?;
            return Ok(task_alone(&descent, descent.loss, absent_groups));
        }
        let logits = self.predictor.module().forward(pass.representation);
        let read = [task.clone(), negative_entropy(logits.clone(), &cells), cross_entropy(logits.detach(), &cells)];
        let loss = for_network(task, read[1].clone(), self.config.lambda);
        let descent = self.learner.descend_reading(&loss, &read, context)?;
        self.second_phase(batch, Some(&cells), context)?;
        let terms = named([
            ("predictor negative entropy", descent.also[1]),
            ("predictor cross-entropy", descent.also[2]),
            (ADVANTAGE, advantage(descent.also[2], guess(&batch.groups, &self.groups.shares))),
        ]);
        let (task_loss, objective, gradient_norm) = (descent.also[0], descent.loss, descent.norm);
        Ok(StepReport { task_loss, objective, gradient_norm, absent_groups, terms })
    }

    fn watches(&self) -> Vec<Watch> {
        let means = "the predictor was never better than guessing the group, so it had no effect on the representation";
        let change = "raise `predictor-learning-rate`, or set `balanced-sampler` if a group is rare; \
                      if the inputs do not show the group, there is nothing to remove";
        vec![idle_adversary(ADVANTAGE, means, change)]
    }

    of_one_network!();

    fn parts(&mut self) -> Vec<NamedPart<'_>> {
        vec![NamedPart::weights(NETWORK, &mut self.learner), NamedPart::training(PREDICTOR, &mut self.predictor)]
    }

    fn load(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        self.pending = None;
        load_parts(self.parts(), folder, what)
    }
}

/// The objective of encoder and head in phase 1: the task and, times lambda, the negative entropy of the predictor.
fn for_network(task: Tensor<1>, negative_entropy: Tensor<1>, lambda: f64) -> Tensor<1> {
    task + negative_entropy * lambda
}

/// The loss that the predictor minimises in phase 2, and that the encoder maximises times mu: the cross-entropy of the
/// groups.
fn for_predictor(
    representation: Tensor<2>,
    mu: f64,
    predictor: impl Fn(Tensor<2>) -> Tensor<2>,
    cells: &BatchCells,
) -> Tensor<1> {
    cross_entropy(predictor(reverse_gradient(representation, mu)), cells)
}

#[cfg(test)]
#[path = "../../tests/inside/lnl.rs"]
mod tests;
