//! A part of the data with the predictions of a candidate: survival curves, or the probability of a class.

use std::path::PathBuf;

use fairtte_data::cohort::Classes;
use fairtte_data::predictions::{match_predictions, read_probabilities};
use fairtte_data::{Cohort, Part, Split};
use fairtte_metrics::classification::ClassPredictions;
use fairtte_metrics::evaluation::{
    ClassReport, ClassSettings, SampledMetrics, describe_classes, evaluate_classes, sample_classes,
};
use fairtte_metrics::{EvaluationReport, EvaluationSettings, Groups, SubjectId};

use crate::CliError;
use crate::scored::{Scored, restrict};

/// What a candidate predicted of a part.
pub(super) enum ScoredPart {
    Curves(Box<Scored>),
    Class(OfClass),
}

/// The samples of a part that have a class.
pub(crate) struct OfClass {
    predictions: ClassPredictions,
    subjects: Vec<SubjectId>,
    groups: Vec<Groups>,
}

impl OfClass {
    /// With folds every sample has the probability of the fold in whose part it is.
    ///
    /// # Errors
    /// The errors of reading.
    pub(crate) fn read(
        (cohort, groups, classes): (&Cohort, &[Groups], &Classes),
        splits: &[Split],
        paths: &[PathBuf],
        part: Part,
    ) -> Result<Self, CliError> {
        let (mut rows, mut probability, mut positive) = (Vec::new(), Vec::new(), Vec::new());
        for (split, path) in splits.iter().zip(paths) {
            let of_split = split.rows(part).iter().filter_map(|row| Some((*row, classes.positive[*row]?)));
            let (of_fold, of_class): (Vec<usize>, Vec<bool>) = of_split.unzip();
            let found = read_probabilities(path)?;
            let order = match_predictions(cohort, &of_fold, &found.samples)?;
            probability.extend(order.into_iter().map(|place| found.probability[place]));
            rows.extend(of_fold);
            positive.extend(of_class);
        }
        Ok(Self {
            predictions: ClassPredictions::new(probability, positive)?,
            subjects: cohort.subjects(&rows),
            groups: groups.iter().map(|groups| restrict(groups, &rows)).collect::<Result<_, _>>()?,
        })
    }

    /// The settings of a class whose threshold has the highest F1 in these samples.
    ///
    /// # Errors
    /// [`CliError::Metric`] without samples of both classes.
    #[cfg(feature = "train")]
    pub(crate) fn settings(&self) -> Result<ClassSettings, CliError> {
        let threshold = fairtte_metrics::classification::best_f1_threshold(&self.predictions)?.threshold;
        Ok(ClassSettings { threshold, ..ClassSettings::default() })
    }

    /// All metrics of a class.
    ///
    /// # Errors
    /// As [`evaluate_classes`].
    pub(crate) fn report(&self, class: &ClassSettings, settings: &EvaluationSettings) -> Result<ClassReport, CliError> {
        Ok(evaluate_classes(&self.predictions, &self.subjects, &self.groups, class, settings)?)
    }

    /// Values and replicates of all metrics of a class.
    ///
    /// # Errors
    /// As [`sample_classes`].
    pub(crate) fn sample(
        &self,
        class: &ClassSettings,
        settings: &EvaluationSettings,
    ) -> Result<SampledMetrics, CliError> {
        Ok(sample_classes(&self.predictions, &self.subjects, &self.groups, class, settings)?)
    }
}

impl ScoredPart {
    pub(super) fn evaluate(&self, settings: &EvaluationSettings) -> Result<EvaluationReport, CliError> {
        match self {
            Self::Curves(scored) => scored.evaluate(settings),
            Self::Class(of @ OfClass { predictions, subjects, groups }) => {
                let class = ClassSettings::default();
                let report = of.report(&class, settings)?;
                let groups = describe_classes(predictions, subjects, groups, &class, settings.level)?;
                Ok(EvaluationReport::of_class(&report, &groups))
            }
        }
    }

    pub(super) fn sample(&self, settings: &EvaluationSettings) -> Result<SampledMetrics, CliError> {
        match self {
            Self::Curves(scored) => scored.sample(settings),
            Self::Class(of) => of.sample(&ClassSettings::default(), settings),
        }
    }
}
