//! The training pass that the strategies with a second network share.

use crate::Batch;
use burn::tensor::Tensor;
use fairtte_survival::Targets;

use super::{StepContext, StepReport};
use crate::trainable::Descent;
use crate::{FairnessError, Forward, Learner};

/// The result of a training pass.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    /// Outcome of every sample.
    pub(crate) targets: Targets,
    /// Input of the classifier, `[batch, representation]`.
    pub(crate) representation: Tensor<2>,
    /// Loss of every sample, `[batch]`; 0 for those that are not counted.
    pub(crate) losses: Tensor<1>,
    /// Which samples have a loss term, `[batch]`.
    pub(crate) counted: Vec<bool>,
}

impl Pass {
    /// Losses of the outputs of `forward` at the query times of the head.
    pub(crate) fn new(
        batch: &Batch,
        context: &StepContext<'_>,
        forward: impl FnOnce(&[f64]) -> Result<Forward, FairnessError>,
    ) -> Result<Self, FairnessError> {
        let targets = context.targets(batch)?;
        let Forward { representation, outputs, .. } = forward(&context.query_times(&targets))?;
        let losses = context.subject_losses(outputs, &targets);
        let counted = context.outputs.head.counted(&targets);
        Ok(Self { targets, representation, losses, counted })
    }

    /// Mean loss of the samples with a loss term, `[1]`.
    pub(crate) fn task(&self) -> Tensor<1> {
        let n_counted = self.counted.iter().filter(|counted| **counted).count().max(1);
        self.losses.clone().sum() / n_counted as f64
    }
}

/// The report of a step that trained the task only, because the batch has fewer than two groups.
pub(crate) fn task_alone(descent: &Descent, task_loss: f64, absent_groups: usize) -> StepReport {
    let Descent { loss: objective, norm: gradient_norm, .. } = *descent;
    StepReport { task_loss, objective, gradient_norm, absent_groups, terms: Vec::new() }
}

/// One step of empirical risk minimisation, with the dropout of `noise`.
///
/// # Errors
/// As [`Learner::forward`] and [`Learner::descend`].
pub(crate) fn plain_step(
    learner: &mut Learner,
    noise: &str,
    batch: &Batch,
    context: &StepContext<'_>,
) -> Result<StepReport, FairnessError> {
    let pass = Pass::new(batch, context, |query| learner.forward(batch, query, &mut context.noise(noise)))?;
    let descent = learner.descend_reading(&pass.task(), &[], context)?;
    Ok(task_alone(&descent, descent.loss, 0))
}
