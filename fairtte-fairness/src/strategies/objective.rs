//! Strategies that only change the loss: one network, one pass, one optimiser.

use std::path::Path;

use crate::Batch;
use burn::tensor::Tensor;
use fairtte_data::Sampling;
use fairtte_metrics::GroupId;
use fairtte_survival::Targets;

use super::one_network::of_one_network;
use super::{ExpectedBatch, NETWORK, NamedPart, Part, Saved, State, StepContext, StepReport, Strategy, Watch, WeighBy};
use crate::network::Forward;
use crate::trainable::Descent;
use crate::{FairnessError, Learner, LearnerSpec};

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
    objective: Stateful<O>,
    learner: Learner,
}

impl<O: Objective> ObjectiveStrategy<O> {
    /// Combines an objective and the network that it trains.
    pub fn new(objective: O, learner: Learner) -> Self {
        Self { objective: Stateful(objective), learner }
    }
}

impl<O: Objective + 'static> ObjectiveStrategy<O> {
    /// The strategy that descends `objective` with a network of freshly drawn weights.
    ///
    /// # Errors
    /// As [`Learner::new`].
    pub fn boxed(objective: O, spec: &LearnerSpec) -> Result<Box<dyn Strategy>, FairnessError> {
        Ok(Box::new(Self::new(objective, Learner::new(spec, NETWORK)?)))
    }
}

/// An objective whose state is saved as numbers in `NAME.json`.
#[derive(Debug)]
struct Stateful<O>(O);

impl<O: Objective> Part for Stateful<O> {
    fn save(&self, folder: &Path, name: &str, what: Saved) -> Result<(), FairnessError> {
        State(self.0.state()).save(folder, name, what)
    }

    fn load(&mut self, folder: &Path, name: &str, what: Saved) -> Result<(), FairnessError> {
        let mut state = State(Vec::<f64>::new());
        state.load(folder, name, what)?;
        if self.0.restore(&state.0) {
            return Ok(());
        }
        let reason = format!("{} numbers do not fit strategy {}", state.0.len(), self.0.name());
        Err(FairnessError::Checkpoint { path: folder.join(format!("{name}.json")), reason })
    }
}

impl<O: Objective> Strategy for ObjectiveStrategy<O> {
    fn name(&self) -> &'static str {
        self.objective.0.name()
    }

    fn sampling(&self) -> Sampling {
        self.objective.0.sampling()
    }

    fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        self.objective.0.check_batches(expected)
    }

    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        let targets = context.targets(batch)?;
        let forward = self.learner.forward(batch, &context.query_times(&targets), &mut context.noise(NETWORK))?;
        let losses = context.subject_losses(forward.outputs.clone(), &targets); // [batch]
        let counted = context.outputs.head.counted(&targets);
        let Forward { outputs, representation, before_dropout } = forward;
        let (counted, targets, groups) = (&counted[..], &targets, &batch.groups[..]);
        let terms = Terms { losses, counted, outputs, representation, before_dropout, targets, groups, context };
        let task_loss = terms.mean();
        let Value { objective, absent_groups, mut terms, unread } = self.objective.0.value(&terms)?;
        let (names, unread): (Vec<String>, Vec<Tensor<1>>) = unread.into_iter().unzip();
        let read: Vec<Tensor<1>> = std::iter::once(task_loss).chain(unread).collect();
        let descent = self.learner.descend_reading(&objective, &read, context)?;
        let Descent { loss: objective, norm: gradient_norm, also } = descent;
        terms.extend(names.into_iter().zip(also[1..].iter().copied()));
        Ok(StepReport { task_loss: also[0], objective, gradient_norm, absent_groups, terms })
    }

    fn watches(&self) -> Vec<Watch> {
        self.objective.0.watches()
    }

    of_one_network!();

    fn parts(&mut self) -> Vec<NamedPart<'_>> {
        vec![NamedPart::weights(NETWORK, &mut self.learner), NamedPart::training("objective", &mut self.objective)]
    }
}
