//! A part of the data with the predictions of a candidate: survival curves, or the probability of a class.

use std::path::PathBuf;

use fairtte_data::cohort::Classes;
use fairtte_data::predictions::{match_predictions, read_probabilities};
use fairtte_data::{Cohort, Part, Split};
use fairtte_metrics::classification::ClassPredictions;
use fairtte_metrics::evaluation::{
    ClassReport, ClassSettings, HorizonReport, SampledMetrics, describe_classes, evaluate_at_horizon, evaluate_classes,
    sample_classes,
};
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationReport, EvaluationSettings, Groups, Outcomes, SubjectId,
};

use crate::CliError;
use crate::scored::{Scored, restrict};

/// What a candidate predicted of a part.
pub(super) enum ScoredPart {
    Curves(Box<Scored>),
    Class(Box<OfClass>),
}

/// The samples of a part that have a class.
pub(crate) struct OfClass {
    predictions: ClassPredictions,
    subjects: Vec<SubjectId>,
    groups: Vec<Groups>,
    /// Where the class is made from times.
    timed: Option<Timed>,
}

/// All samples of a part, also those that are censored by the horizon and have no class.
struct Timed {
    horizon: f64,
    probability: Vec<f64>,
    outcomes: Outcomes,
    censoring: CensoringCurve,
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
        let (mut rows, mut probability) = (Vec::new(), Vec::new());
        for (split, path) in splits.iter().zip(paths) {
            let of_fold = split.rows(part);
            let found = read_probabilities(path)?;
            let order = match_predictions(cohort, of_fold, &found.samples)?;
            probability.extend(order.into_iter().map(|place| found.probability[place]));
            rows.extend_from_slice(of_fold);
        }
        let restricted = |rows: &[usize]| groups.iter().map(|of| restrict(of, rows)).collect::<Result<Vec<_>, _>>();
        let with_class =
            rows.iter().zip(&probability).filter_map(|(row, p)| Some((*row, (*p, classes.positive[*row]?))));
        let (known, (of_known, positive)): (Vec<usize>, (Vec<f64>, Vec<bool>)) = with_class.unzip();
        let timed = |horizon: f64| {
            let outcomes = cohort.outcomes(&rows)?;
            // As of curves: that of the training part, with folds that of all samples which are evaluated.
            let fitted_on =
                if let [split] = splits { cohort.outcomes(split.rows(Part::Train))? } else { outcomes.clone() };
            let censoring = CensoringCurve::fit(&fitted_on, CensoringTies::EventsFirst)?;
            let (subjects, groups) = (cohort.subjects(&rows), restricted(&rows)?);
            Ok::<_, CliError>(Timed { horizon, probability, outcomes, censoring, subjects, groups })
        };
        Ok(Self {
            predictions: ClassPredictions::new(of_known, positive)?,
            subjects: cohort.subjects(&known),
            groups: restricted(&known)?,
            timed: classes.horizon.map(timed).transpose()?,
        })
    }

    /// The AUC of the class beside that of all samples of the part with weights for censoring; `None` of a class that was read.
    ///
    /// # Errors
    /// As [`evaluate_at_horizon`].
    pub(crate) fn at_horizon(&self, settings: &EvaluationSettings) -> Result<Option<HorizonReport>, CliError> {
        let Some(Timed { horizon, probability, outcomes, censoring, subjects, groups }) = &self.timed else {
            return Ok(None);
        };
        // Gaps by chance are those of the metrics of the class.
        let settings = EvaluationSettings { permutations: 0, ..settings.clone() };
        Ok(Some(evaluate_at_horizon(probability, outcomes, censoring, *horizon, subjects, groups, &settings)?))
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
            Self::Class(of) => {
                let OfClass { predictions, subjects, groups, .. } = &**of;
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

    /// As [`OfClass::at_horizon`]; `None` of curves.
    pub(super) fn at_horizon(&self, settings: &EvaluationSettings) -> Result<Option<HorizonReport>, CliError> {
        match self {
            Self::Curves(_) => Ok(None),
            Self::Class(of) => of.at_horizon(settings),
        }
    }
}
