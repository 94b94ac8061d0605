//! Scores of the validation part between the steps of a training.

use std::sync::atomic::AtomicBool;

use fairtte_data::Sampling;
use fairtte_metrics::competing::CompetingOutcomes;
use fairtte_metrics::{CensoringCurve, CensoringTies, EvaluationSettings, GroupId, Groups, Outcomes, SubjectId};
use fairtte_survival::{CutPoints, PredictionGrid, Segmentation, SurvivalError, Targets};
use ndarray::{Array2, Axis};

use super::TrainingData;
use crate::monitor::{Monitor, OfMasks, Scores, Truth, Validation, event_blocks, mean_dice, validate, validate_masks};
use crate::predict::{EvaluationPart, Outputs, Parts, of_cause, targets_of};
use crate::strategies::{ExpectedBatch, Strategy};
use crate::{FairnessError, check};

/// How validation curves are scored: on the times of the predictions, with the settings of the evaluation, so that the
/// numbers are those of `fairtte evaluate --part validation`.
#[derive(Clone, Debug)]
pub struct Scoring {
    grid: PredictionGrid,
    /// Place of every cut point in the grid.
    cuts: Vec<usize>,
    settings: EvaluationSettings,
    censoring: CensoringCurve,
}

impl Scoring {
    /// `grid` holds all `cut_points`; `train` are the outcomes of the training part as the data have them, events of any cause as
    /// events, from which the weights for censoring come. Neither intervals nor gaps by chance are computed, regardless of the settings.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] if a cut point is not in the grid, [`FairnessError::Metric`] if there is no censoring
    /// curve.
    pub fn new(
        grid: PredictionGrid,
        cut_points: &CutPoints,
        settings: &EvaluationSettings,
        train: &Outcomes,
    ) -> Result<Self, FairnessError> {
        let mut cuts = Vec::with_capacity(cut_points.n());
        for cut in cut_points.times() {
            let place = grid.times().iter().position(|time| time.total_cmp(cut).is_eq());
            check("time", cut, place.is_some(), "cut points that are times of the prediction grid")?;
            cuts.extend(place);
        }
        let points = EvaluationSettings {
            interval: EvaluationSettings::default().interval,
            stratify: EvaluationSettings::default().stratify,
            // Of differences of groups, which are not computed here; its attribute may be another one than that of the training.
            reference: EvaluationSettings::default().reference,
            ..settings.values_only()
        };
        let censoring = CensoringCurve::fit(train, CensoringTies::EventsFirst)?;
        Ok(Self { grid, cuts, settings: points, censoring })
    }

    /// Times of predicted curves.
    pub fn grid(&self) -> &PredictionGrid {
        &self.grid
    }
}

/// Scores the validation part.
pub(super) struct Validator<'a> {
    data: &'a TrainingData<'a>,
    train: Outcomes,
    outcomes: Outcomes,
    /// The cause that is predicted with the outcomes of all causes, if events have several.
    causes: Option<(u32, CompetingOutcomes)>,
    subjects: Vec<SubjectId>,
    targets: Targets,
    blocks: Vec<(usize, usize)>,
    groups: Vec<Groups>,
}

impl<'a> Validator<'a> {
    pub(super) fn new(data: &'a TrainingData<'a>) -> Result<Self, FairnessError> {
        let TrainingData { outputs: Outputs { head, cut_points }, loader, .. } = *data;
        let cohort = loader.cohort();
        let outcomes = cohort.outcomes_of_event(data.validation)?;
        if outcomes.n_events() == 0 {
            return Err(SurvivalError::NoEvent { part: "validation", n: outcomes.n() }.into());
        }
        let train = cohort.outcomes_of_event(data.train)?;
        let intervals = targets_of("training", cohort, data.train, cut_points)?.intervals;
        let of_causes = |cause| Ok::<_, FairnessError>((cause, cohort.competing_outcomes(data.validation, cause)?));
        let part = |groups: &[Option<GroupId>]| data.validation.iter().map(|row| groups[*row]).collect();
        let of_attribute =
            |groups: &Groups| Groups::new(groups.attribute(), groups.levels().to_vec(), part(groups.membership()));
        let mut groups = data.kept_for.iter().map(of_attribute).collect::<Result<Vec<_>, _>>()?;
        if groups.is_empty() && !data.levels.is_empty() {
            groups.push(Groups::new("groups", data.levels.to_vec(), part(loader.groups()))?);
        }
        Ok(Self {
            data,
            train,
            targets: targets_of("validation", cohort, data.validation, cut_points)?,
            causes: cohort.cause.map(of_causes).transpose()?,
            outcomes,
            subjects: cohort.subjects(data.validation),
            blocks: event_blocks(cut_points.n(), &intervals, head.needs_baseline()),
            groups,
        })
    }

    /// The expected content of a batch of the training part.
    pub(super) fn expected_batch(&self, size: usize) -> Result<ExpectedBatch<'a>, FairnessError> {
        let Outputs { head, cut_points } = self.data.outputs;
        let train = targets_of("training", self.data.loader.cohort(), self.data.train, cut_points)?;
        Ok(ExpectedBatch::of_training(size, head, &train))
    }

    /// The data that a strategy may use; passes over them end early once `stop` is set.
    pub(super) fn parts<'p>(&'p self, stop: Option<&'p AtomicBool>) -> Parts<'p> {
        let TrainingData { loader, train, validation, levels, outputs, device, .. } = *self.data;
        let part = |rows, outcomes| EvaluationPart { loader, rows, outcomes, outputs, device, stop };
        let (train, validation) = (part(train, &self.train), part(validation, &self.outcomes));
        Parts { train, validation, levels }
    }

    /// Metrics of the validation part, which are also passed to the strategy. A pass that `stop` ended early leaves the
    /// state of the training as it was.
    pub(super) fn score(
        &self,
        strategy: &mut dyn Strategy,
        monitor: Monitor,
        epoch: usize,
        stop: Option<&AtomicBool>,
    ) -> Result<Validation, FairnessError> {
        let parts = self.parts(stop);
        strategy.before_validation(&parts)?;
        let scores = match self.data.outputs.head.of_masks() {
            Some(head) => self.score_masks(head, strategy, &parts.validation)?,
            None => self.score_curves(&parts.validation.survival(strategy, &self.data.scoring.grid)?)?,
        };
        let scores = scores.watched(monitor, epoch)?;
        strategy.after_validation(&scores)?;
        Ok(scores)
    }

    /// Metrics of curves of the validation part, `[n_validation, n_times]` at the times of the predictions; of several causes with
    /// a block for each, or for the predicted one alone.
    pub(super) fn score_curves(&self, survival: &Array2<f64>) -> Result<Scores, FairnessError> {
        let scoring = self.data.scoring;
        let truth = Truth {
            subjects: &self.subjects,
            outcomes: &self.outcomes,
            causes: self.causes.as_ref().map(|(cause, outcomes)| (*cause, outcomes)),
            targets: &self.targets,
            blocks: &self.blocks,
            groups: &self.groups,
            censoring: &scoring.censoring,
            settings: &scoring.settings,
            of_class: self.data.outputs.head.predicts_class(),
        };
        let n_times = scoring.grid.times().len();
        let places =
            (0..survival.ncols() / n_times).flat_map(|cause| scoring.cuts.iter().map(move |cut| cause * n_times + cut));
        let at_cuts = survival.select(Axis(1), &places.collect::<Vec<_>>());
        Ok(validate((&of_cause(survival, 0, n_times), scoring.grid.times()), &at_cuts, &truth)?)
    }

    /// Metrics of the masks of the validation part, batch by batch, so that memory holds the probabilities of one batch.
    pub(super) fn score_masks(
        &self,
        head: &Segmentation,
        strategy: &dyn Strategy,
        part: &EvaluationPart<'_>,
    ) -> Result<Scores, FairnessError> {
        let rule = self.data.outputs.on(&self.data.scoring.grid);
        let mut of = OfMasks::default();
        part.for_each_batch(|batch| {
            let masks = batch.masks.as_ref().ok_or(FairnessError::MasksAndHead { head: "segmentation" })?;
            let probabilities = strategy.predict(batch, &rule)?;
            of.losses.extend(head.losses_of(&probabilities.view(), masks));
            let predicted = probabilities.rows().into_iter().map(|row| head.classes_of(&row));
            let scored = predicted.enumerate().map(|(row, found)| mean_dice(masks.of(row), &found, head.n_classes()));
            of.dice.extend(scored);
            Ok(())
        })?;
        Ok(validate_masks(&of, &self.groups))
    }

    /// Batches of an epoch.
    pub(super) fn n_batches(&self, batch_size: usize, sampling: &Sampling) -> Result<usize, FairnessError> {
        Ok(self.data.loader.batches(self.data.train, batch_size, sampling, self.data.seed, 0)?.len())
    }
}
