//! Strategies that only change the loss: one network, one pass, one optimiser.

use std::path::Path;

use crate::Batch;
use burn::tensor::Tensor;
use fairtte_data::{Sampling, write_atomically};
use fairtte_metrics::GroupId;
use fairtte_survival::Targets;
use ndarray::Array2;

use super::{ExpectedBatch, Saved, StepContext, StepReport, Strategy, Watch, WeighBy};
use crate::network::Forward;
use crate::predict::{CurveRule, Parts};
use crate::trainable::Descent;
use crate::{FairnessError, Learner};

/// The terms that an objective may combine.
#[derive(Clone, Debug)]
pub struct Terms<'a> {
    /// Loss of every sample, `[batch]`; 0 for those that are not counted.
    pub losses: Tensor<1>,
    /// Which samples have a loss term, `[batch]`: means leave out the others.
    pub counted: &'a [bool],
    /// Input of the head: `[batch, n_outputs]`, or one column per query time.
    pub outputs: Tensor<2>,
    /// Input of the classifier, `[batch, representation]`.
    pub representation: Tensor<2>,
    /// The same before its dropout.
    pub before_dropout: Tensor<2>,
    /// Outcome of every sample.
    pub targets: &'a Targets,
    /// Group of every sample, `[batch]`.
    pub groups: &'a [Option<GroupId>],
    /// Head, time grid, seed and position of the step.
    pub context: &'a StepContext<'a>,
}

impl Terms<'_> {
    /// Number of samples with a loss term, at least 1: the divisor of a mean over the batch. Without any, all losses are 0.
    pub fn n_counted(&self) -> usize {
        self.counted.iter().filter(|counted| **counted).count().max(1)
    }

    /// One number per sample on the host, `[batch]`: its loss, or its misfit by the likelihood.
    pub(crate) fn weigh_by(&self, by: WeighBy) -> Vec<f64> {
        by.of(&self.losses, &self.outputs, (self.targets, None), self.context)
    }

    /// Mean loss of the samples with a loss term, `[1]`.
    pub fn mean(&self) -> Tensor<1> {
        self.losses.clone().sum() / self.n_counted() as f64
    }
}

/// The result of an objective.
#[derive(Clone, Debug)]
pub struct Value {
    /// The value to minimise, `[1]`.
    pub objective: Tensor<1>,
    /// Groups without a sample in the batch that has a loss term.
    pub absent_groups: usize,
    /// Further terms by name, for the log.
    pub terms: Vec<(String, f64)>,
    /// Further terms (`[1]` each) that are still on the device: they are read together with the objective.
    pub unread: Vec<(String, Tensor<1>)>,
}

/// A strategy that turns the losses of a batch into one value.
pub trait Objective {
    /// Name in run files.
    fn name(&self) -> &'static str;

    /// How the training samples of an epoch are drawn.
    fn sampling(&self) -> Sampling {
        Sampling::Shuffled
    }

    /// Rejects batches, or a head, with which the method cannot work; called before training.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the key, its value and what was expected.
    fn check_batches(&self, _expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        Ok(())
    }

    /// Combines the losses of one batch; may change the objective's state.
    ///
    /// # Errors
    /// [`FairnessError::NotFinite`] if a value that the method computes on the host is not finite.
    fn value(&mut self, terms: &Terms<'_>) -> Result<Value, FairnessError>;

    /// Parts of the method that may be without effect although there is no error, with the terms that show it.
    fn watches(&self) -> Vec<Watch> {
        Vec::new()
    }

    /// State that a resumed run needs (numbers only).
    fn state(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Restores what [`state`](Self::state) returned; false if it does not fit.
    fn restore(&mut self, state: &[f64]) -> bool {
        state.is_empty()
    }
}

/// The full strategy around an objective.
#[derive(Debug)]
pub struct ObjectiveStrategy<O> {
    objective: O,
    learner: Learner,
}

impl<O: Objective> ObjectiveStrategy<O> {
    /// Combines an objective and the network that it trains.
    pub fn new(objective: O, learner: Learner) -> Self {
        Self { objective, learner }
    }
}

const NETWORK: &str = "network";
const STATE_FILE: &str = "objective.json";

impl<O: Objective> Strategy for ObjectiveStrategy<O> {
    fn name(&self) -> &'static str {
        self.objective.name()
    }

    fn sampling(&self) -> Sampling {
        self.objective.sampling()
    }

    fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        self.objective.check_batches(expected)
    }

    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        let targets = context.targets(batch)?;
        let forward = self.learner.forward(batch, &context.query_times(&targets), &mut context.noise(NETWORK))?;
        let losses = context.subject_losses(forward.outputs.clone(), &targets); // [batch]
        let counted = context.head.counted(&targets);
        let Forward { outputs, representation, before_dropout } = forward;
        let (counted, targets, groups) = (&counted[..], &targets, &batch.groups[..]);
        let terms = Terms { losses, counted, outputs, representation, before_dropout, targets, groups, context };
        let task_loss = terms.mean();
        let Value { objective, absent_groups, mut terms, unread } = self.objective.value(&terms)?;
        let (names, unread): (Vec<String>, Vec<Tensor<1>>) = unread.into_iter().unzip();
        let read: Vec<Tensor<1>> = std::iter::once(task_loss).chain(unread).collect();
        let descent = self.learner.descend_reading(&objective, &read, context)?;
        let Descent { loss: objective, norm: gradient_norm, also } = descent;
        terms.extend(names.into_iter().zip(also[1..].iter().copied()));
        Ok(StepReport { task_loss: also[0], objective, gradient_norm, absent_groups, terms })
    }

    fn watches(&self) -> Vec<Watch> {
        self.objective.watches()
    }

    fn before_validation(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        self.learner.fit_baseline(&parts.train)
    }

    fn predict(&self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Array2<f64>, FairnessError> {
        self.learner.survival(batch, rule)
    }

    fn save(&self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        self.learner.save(folder, NETWORK, what)?;
        if what == Saved::Everything {
            let state = self.objective.state();
            write_atomically(&folder.join(STATE_FILE), |file| Ok(serde_json::to_writer(file, &state)?))?;
        }
        Ok(())
    }

    fn load(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        self.learner.load(folder, NETWORK, what)?;
        if what == Saved::Everything {
            let path = folder.join(STATE_FILE);
            let unusable = |reason: String| FairnessError::Checkpoint { path: path.clone(), reason };
            let text = std::fs::read(&path).map_err(|error| unusable(error.to_string()))?;
            let state: Vec<f64> = serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
            if !self.objective.restore(&state) {
                return Err(unusable(format!("{} numbers do not fit strategy {}", state.len(), self.name())));
            }
        }
        Ok(())
    }
}
