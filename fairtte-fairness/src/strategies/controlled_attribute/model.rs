//! The network of one group: its steps, and the choice of its best epoch.

use burn::module::Module as _;
use burn::optim::GradientsParams;
use fairtte_metrics::{GroupId, Outcomes};
use fairtte_survival::PredictionGrid;
use ndarray::{Axis, concatenate};

use super::NAME;
use crate::gradients::{add, scale};
use crate::monitor::{event_blocks, negative_log_likelihoods};
use crate::predict::{CurveRule, EvaluationPart, Outputs, Parts};
use crate::strategies::pass::{Pass, plain_step, task_alone};
use crate::strategies::{Accumulation, NamedPart, StepContext, StepReport};
use crate::{Batch, FairnessError, Learner, LearnerSpec, SurvivalNetwork};

/// The network of one group.
#[derive(Debug)]
pub(super) struct GroupModel {
    pub(super) group: GroupId,
    pub(super) level: String,
    /// In training.
    pub(super) current: Learner,
    /// The network used for prediction: the best so far on the group's validation rows.
    pub(super) chosen: Learner,
    /// The same weights with their negative log-likelihood, for the end of the training.
    pub(super) best: Option<(SurvivalNetwork, f64)>,
    /// Sum of the gradients of the batches so far, if several make one step.
    pub(super) pending: Option<(GradientsParams, usize)>,
}

/// Name of the stream of weights, of the noise and of the files of a group's network.
fn name_of(group: GroupId) -> String {
    format!("group-{}", group.0)
}

impl GroupModel {
    /// Two copies of the network of `group`, with the same weights.
    pub(super) fn new(spec: &LearnerSpec, group: GroupId, level: &str) -> Result<Self, FairnessError> {
        let learner = || Learner::new(spec, &name_of(group));
        let (current, chosen) = (learner()?, learner()?);
        Ok(Self { group, level: level.to_owned(), current, chosen, best: None, pending: None })
    }

    pub(super) fn parts(&mut self) -> [NamedPart<'_>; 2] {
        let chosen = name_of(self.group);
        let training = format!("{chosen}-training");
        [NamedPart::fixed(chosen, &mut self.chosen), NamedPart::training(training, &mut self.current)]
    }

    /// One step on a batch of the group; the weights move with the last batch of the optimiser's step.
    pub(super) fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        let noise = name_of(self.group);
        if context.accumulation.of == 1 {
            return plain_step(&mut self.current, &noise, batch, context);
        }
        let pass = Pass::new(batch, context, |query| self.current.forward(batch, query, &mut context.noise(&noise)))?;
        let (mut gradients, descent) = self.current.gradients_reading(&pass.task(), context)?;
        let mut n = 1;
        if let Some((others, n_others)) = self.pending.take() {
            add(self.current.network(), &mut gradients, others);
            n += n_others;
        }
        self.pending = Some((gradients, n));
        Ok(task_alone(&descent, descent.loss, 0))
    }

    /// Makes a step along the mean of the accumulated gradients.
    pub(super) fn move_on(&mut self, context: &StepContext<'_>) -> Result<(), FairnessError> {
        let Some((mut gradients, n)) = self.pending.take() else { return Ok(()) };
        scale(self.current.network(), &mut gradients, 1.0 / n as f64);
        self.current.update(gradients, &StepContext { accumulation: Accumulation::default(), ..*context })?;
        Ok(())
    }

    /// Scores the present weights on the group's validation rows and keeps them if they are the best.
    pub(super) fn choose(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        let train = GroupPart::new(&parts.train, self.group);
        let validation = GroupPart::new(&parts.validation, self.group);
        if validation.rows.is_empty() {
            let (group, part) = (self.level.clone(), "validation");
            return Err(FairnessError::EmptyGroup { strategy: NAME, group, part });
        }
        self.current.fit_baseline(&train.part(&parts.train))?;
        let Outputs { head, cut_points } = parts.outputs();
        let targets = |outcomes: &Outcomes| cut_points.targets("group", outcomes.time(), outcomes.event());
        let blocks = event_blocks(cut_points.n(), &targets(&train.outcomes)?.intervals, head.needs_baseline());
        let grid = PredictionGrid::at_cut_points(cut_points);
        let mut curves = Vec::new();
        validation.part(&parts.validation).for_each_batch(|batch| {
            curves.push(self.current.survival(batch, &CurveRule { head, grid: &grid })?);
            Ok(())
        })?;
        let views: Vec<_> = curves.iter().map(|block| block.view()).collect();
        let curves = concatenate(Axis(0), &views).expect("one grid");
        let terms = negative_log_likelihoods(&curves, &targets(&validation.outcomes)?.intervals, &blocks);
        let nll = terms.iter().sum::<f64>() / terms.len() as f64;
        if self.best.as_ref().is_none_or(|(_, best)| nll < *best) {
            // Two copies: clones of one would share the running statistics of batch norm.
            self.best = Some((self.current.network().valid(), nll));
            self.chosen.replace(self.current.network().valid());
            self.chosen.set_baseline(self.current.baseline().cloned());
        }
        Ok(())
    }
}

/// The rows of one group in a part.
pub(super) struct GroupPart {
    rows: Vec<usize>,
    outcomes: Outcomes,
}

impl GroupPart {
    pub(super) fn new(part: &EvaluationPart<'_>, group: GroupId) -> Self {
        let groups = part.loader.groups();
        let positions: Vec<usize> = (0..part.rows.len()).filter(|i| groups[part.rows[*i]] == Some(group)).collect();
        let rows = positions.iter().map(|i| part.rows[*i]).collect();
        Self { rows, outcomes: part.outcomes.select(&positions) }
    }

    pub(super) fn part<'a>(&'a self, whole: &EvaluationPart<'a>) -> EvaluationPart<'a> {
        EvaluationPart { rows: &self.rows, outcomes: &self.outcomes, ..*whole }
    }
}
