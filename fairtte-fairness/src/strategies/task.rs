//! The plain mean loss, which most methods descend in one form or another.

use burn::tensor::Tensor;
use fairtte_models::Batch;
use fairtte_survival::Targets;

use super::{StepContext, StepReport};
use crate::trainable::Descent;
use crate::{FairnessError, Learner};

/// Mean loss of the samples that count, `[1]`; 0 if none does.
pub(super) fn mean_loss(context: &StepContext<'_>, outputs: Tensor<2>, targets: &Targets) -> Tensor<1> {
    let n_counted = context.head.counted(targets).iter().filter(|counted| **counted).count().max(1);
    context.subject_losses(outputs, targets).sum() / n_counted as f64
}

/// One step of empirical risk minimisation, with the dropout of `noise`.
///
/// # Errors
/// As [`Learner::forward`] and [`Learner::descend`].
pub(super) fn plain_step(
    learner: &mut Learner,
    noise: &str,
    batch: &Batch,
    context: &StepContext<'_>,
) -> Result<StepReport, FairnessError> {
    let targets = context.targets(batch)?;
    let outputs = learner.forward(batch, &context.query_times(&targets), &mut context.noise(noise))?.outputs;
    let loss = mean_loss(context, outputs, &targets);
    let Descent { loss, norm, .. } = learner.descend_reading(&loss, &[], context)?;
    Ok(StepReport { task_loss: loss, objective: loss, gradient_norm: norm, absent_groups: 0, terms: Vec::new() })
}
