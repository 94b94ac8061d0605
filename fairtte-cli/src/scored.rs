//! Predictions that are scored: the rows of a part with their outcomes, groups, curves and weights for censoring. Evaluation
//! and selection score through it.

use std::path::Path;

use fairtte_data::predictions::{PredictionTable, Rising, match_predictions, read_incidence, read_predictions};
use fairtte_data::{Cohort, Part, Split};
use fairtte_metrics::competing::{AalenJohansen, IncidenceCurves, IncidenceVariance};
use fairtte_metrics::estimators::KaplanMeier;
use fairtte_metrics::evaluation::{
    Coverage, SampledMetrics, ScoredCohort, check_units, evaluate_cause, sample_metrics, sample_metrics_of_cause,
    times_read,
};
use fairtte_metrics::scores::kaplan_meier_curves;
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationReport, EvaluationSettings, Groups, Outcomes, Reading, SURVIVAL_TOLERANCE,
    SubjectId, SurvivalCurves, evaluate,
};
use fairtte_records::{EQUAL_PREDICTIONS, NO_RANKING, UNEQUAL_CENSORING, Warning};
use ndarray::{Array2, Axis};

use crate::CliError;
use crate::baseline::with_observed;
use crate::plural::counted;
use crate::report::p_relation;

/// The rows that are scored, with everything their metrics need.
pub(crate) struct Scored {
    /// The cause that is evaluated, if events have several: then the curves are 1 minus its cumulative incidence.
    pub(crate) cause: Option<u32>,
    pub(crate) rows: Vec<usize>,
    pub(crate) cohort: Cohort,
    pub(crate) groups: Vec<Groups>,
    pub(crate) curves: SurvivalCurves,
    pub(crate) censoring: CensoringCurve,
}

/// What may help a network that does not rank.
pub(crate) const NETWORK_ADVICE: &str =
    "more epochs, larger images, pre-trained weights or training.monitor = \"c-td\"";
/// The same of an estimator on columns.
pub(crate) const ESTIMATOR_ADVICE: &str =
    "other covariates, another estimator, or a stronger penalty where there are many columns";

impl Scored {
    /// The evaluated samples, with the subjects and outcomes of these rows.
    pub(crate) fn with<'a>(&'a self, subjects: &'a [SubjectId], outcomes: &'a Outcomes) -> ScoredCohort<'a> {
        let Self { curves, censoring, groups, .. } = self;
        ScoredCohort { subjects, outcomes, curves, censoring, groups }
    }

    /// The rows of `part`, or all rows without a split; the censoring curve is that of the training part, or of all.
    pub(crate) fn new(
        predictions: PredictionTable,
        cohort: &Cohort,
        groups: &[Groups],
        split: Option<&Split>,
        part: Part,
    ) -> Result<Self, CliError> {
        let rows = split.map_or_else(|| cohort.all_rows(), |split| split.rows(part).to_vec());
        let fitted_on = split.map_or_else(|| cohort.all_rows(), |split| split.rows(Part::Train).to_vec());
        Self::of_rows(predictions, cohort, groups, rows, &fitted_on)
    }

    /// These `rows`; the censoring curve is that of the rows `fitted_on`.
    pub(crate) fn of_rows(
        predictions: PredictionTable,
        cohort: &Cohort,
        groups: &[Groups],
        rows: Vec<usize>,
        fitted_on: &[usize],
    ) -> Result<Self, CliError> {
        let order = match_predictions(cohort, &rows, &predictions.samples)?;
        let censoring = CensoringCurve::fit(&cohort.outcomes_of_any_cause(fitted_on)?, CensoringTies::EventsFirst)?;
        Ok(Self {
            cause: cohort.cause,
            groups: groups.iter().map(|groups| restrict(groups, &rows)).collect::<Result<_, _>>()?,
            rows,
            cohort: cohort.clone(),
            curves: SurvivalCurves::new(predictions.grid, predictions.survival.select(Axis(0), &order))?,
            censoring,
        })
    }

    /// `grid` with the times at which metrics read the curves, up to 20 million values of all curves.
    pub(crate) fn with_times_read(
        &self,
        mut grid: Vec<f64>,
        settings: &EvaluationSettings,
    ) -> Result<Vec<f64>, CliError> {
        let (subjects, outcomes) = (self.cohort.subjects(&self.rows), self.cohort.outcomes_of_event(&self.rows)?);
        let last = grid.iter().copied().fold(0.0, f64::max);
        grid.extend(times_read(&self.with(&subjects, &outcomes), settings)?.into_iter().filter(|time| *time <= last));
        Ok(with_observed(grid, outcomes.time().to_vec(), outcomes.n(), outcomes.n()))
    }

    pub(crate) fn evaluate(&self, settings: &EvaluationSettings) -> Result<EvaluationReport, CliError> {
        let subjects = self.cohort.subjects(&self.rows);
        if let Some(cause) = self.cause {
            let outcomes = self.cohort.competing_outcomes(&self.rows, cause)?;
            let curves = IncidenceCurves::of_survival(self.curves.clone());
            let (groups, censoring) = (&self.groups, &self.censoring);
            return Ok(evaluate_cause(&subjects, &outcomes, cause, &curves, censoring, groups, settings)?);
        }
        let outcomes = self.cohort.outcomes(&self.rows)?;
        Ok(evaluate(&subjects, &outcomes, &self.curves, &self.censoring, &self.groups, settings)?)
    }

    /// As [`evaluate`](Self::evaluate), but evaluation times or a horizon that are given and cannot be used are an error, and not
    /// an undefined part of the report.
    pub(crate) fn evaluate_at_given_times(&self, settings: &EvaluationSettings) -> Result<EvaluationReport, CliError> {
        let report = self.evaluate(settings)?;
        check_given_times(&report)?;
        Ok(report)
    }

    /// The evaluation of a model that was trained elsewhere: its times may be in another unit than the outcomes, which is
    /// an error.
    pub(crate) fn evaluate_outside(&self, settings: &EvaluationSettings) -> Result<EvaluationReport, CliError> {
        self.check_units(settings.reading)?;
        self.evaluate_at_given_times(settings)
    }

    /// Checks that curves and outcomes are in the same unit of time.
    pub(crate) fn check_units(&self, reading: Reading) -> Result<(), CliError> {
        Ok(check_units(&self.cohort.outcomes_of_event(&self.rows)?, &self.curves, reading)?)
    }

    /// The samples outside the times of the curves.
    pub(crate) fn coverage(&self, reading: Reading) -> Result<Coverage, CliError> {
        Ok(Coverage::of(&self.cohort.outcomes_of_event(&self.rows)?, &self.curves, reading))
    }

    /// Returns `warnings`, with an additional one if the curves of all samples are equal; `sample` names the scored
    /// samples.
    pub(crate) fn with_warning(&self, mut warnings: Vec<Warning>, sample: &str) -> Vec<Warning> {
        warnings.extend(equal_curves(&self.curves, sample));
        warnings
    }

    /// Adds a warning if the concordance of the `sample` is not distinguishable from 0.5, unless all curves are equal, which is
    /// said already. `advice` is what may help the model, if that is known.
    pub(crate) fn with_ranking(
        report: &EvaluationReport,
        sample: &str,
        advice: Option<&str>,
        mut warnings: Vec<Warning>,
    ) -> Vec<Warning> {
        let c_td = report.metric("c_td_antolini_strict").map(|metric| &metric.overall);
        let is_said = warnings.iter().any(|warning| warning.name == EQUAL_PREDICTIONS);
        let numbers = c_td.and_then(|c_td| Some((c_td.value?, c_td.lower?, c_td.upper?)));
        if let Some((value, lower, upper)) = numbers.filter(|(_, lower, _)| *lower <= 0.5 && !is_said) {
            let events = c_td.map(|c_td| counted(c_td.n_events, "event")).unwrap_or_default();
            let text = format!(
                "C^td of the {sample} is {value:.3} ({lower:.3} to {upper:.3}; {events}): it is not shown to be better than 0.5, \
                 the value of random guessing, and gaps between groups of a model that guesses say nothing about fairness. {}ith \
                 few events it may be that no setting helps.",
                advice.map_or_else(|| "W".to_owned(), |advice| format!("Try {advice}; w"))
            );
            warnings.push(Warning { name: NO_RANKING.to_owned(), text });
        }
        warnings
    }

    /// Adds a warning for every attribute whose groups are censored so differently that one censoring curve is right for none
    /// of them; see `docs/src/honesty.md`.
    pub(crate) fn with_censoring(report: &EvaluationReport, mut warnings: Vec<Warning>) -> Vec<Warning> {
        for of in report.censoring_by_group.iter().filter(|of| of.is_unequal()) {
            let Some((p, (most, least))) = of.p_value.zip(of.extremes()) else { continue };
            let faster = of.times_as_fast().filter(|times| times.is_finite()).map_or_else(
                || format!("censored, {} is not", least.level),
                |times| format!("censored {times:.1} times as fast as {}", least.level),
            );
            let text = format!(
                "The groups of {} are censored differently: {} is {faster} (log-rank test p {}). One censoring curve weighs all \
                 groups, so that a gap of the IBS may come from follow-up alone, and those of C^td and AUC^td partly; the \
                 permutation test then says that groups differ, not that the model does.",
                of.attribute,
                most.level,
                p_relation(p),
            );
            warnings.push(Warning { name: UNEQUAL_CENSORING.to_owned(), text });
        }
        warnings
    }

    /// C^td, AUC^td and IBS with their bootstrap replicates; of a cause those of the cause.
    pub(crate) fn sample(&self, settings: &EvaluationSettings) -> Result<SampledMetrics, CliError> {
        let subjects = self.cohort.subjects(&self.rows);
        if let Some(cause) = self.cause {
            let outcomes = self.cohort.competing_outcomes(&self.rows, cause)?;
            let curves = IncidenceCurves::of_survival(self.curves.clone());
            let settings = EvaluationSettings { metrics: chosen_metrics(Some(cause)), ..settings.clone() };
            let (censoring, groups) = (&self.censoring, &self.groups);
            return Ok(sample_metrics_of_cause(&subjects, (&outcomes, cause), &curves, censoring, groups, &settings)?);
        }
        let outcomes = self.cohort.outcomes(&self.rows)?;
        Ok(sample_metrics(&subjects, &outcomes, &self.curves, &self.censoring, &self.groups, settings)?)
    }

    /// Returns the rows, each with the Kaplan-Meier curve of the rows `train` at the times of the curves; of a cause with 1 minus
    /// their Aalen-Johansen curve.
    pub(crate) fn with_one_curve(self, train: &[usize]) -> Result<Self, CliError> {
        let (grid, n) = (self.curves.grid(), self.rows.len());
        let curves = match self.cause {
            None => kaplan_meier_curves(&KaplanMeier::fit(&self.cohort.outcomes(train)?)?, grid, n)?,
            Some(cause) => {
                let outcomes = self.cohort.competing_outcomes(train, cause)?;
                let observed = AalenJohansen::fit(&outcomes, cause, IncidenceVariance::Delta)?;
                let without = Array2::from_shape_fn((n, grid.len()), |(_, time)| 1.0 - observed.at(grid[time]));
                SurvivalCurves::new(grid.to_vec(), without)?
            }
        };
        Ok(Self { curves, ..self })
    }
}

/// The warning that the curves of all samples are equal; `sample` names the scored samples.
pub(crate) fn equal_curves(curves: &SurvivalCurves, sample: &str) -> Option<Warning> {
    curves.spread().filter(|spread| *spread <= SURVIVAL_TOLERANCE)?;
    let text = format!(
        "All {} curves of the {sample} are equal: the model does not distinguish any samples. C^td, AUC^td and their gaps \
         between groups are those of random guessing and say nothing about fairness.",
        curves.n()
    );
    Some(Warning { name: EQUAL_PREDICTIONS.to_owned(), text })
}

/// Evaluation times or a horizon that were given and cannot be used are an error, and not an undefined part of a report.
///
/// # Errors
/// [`CliError::Config`] that names the setting.
pub(crate) fn check_given_times(report: &EvaluationReport) -> Result<(), CliError> {
    match report.refused_setting() {
        Some((setting, reason)) => Err(CliError::setting(setting, reason.to_owned(), None)),
        None => Ok(()),
    }
}

/// Names in settings of the metrics by which models are chosen: C^td (where one kind of event happens also with ties as 1/2),
/// AUC^td and IBS.
pub(crate) fn chosen_metrics(cause: Option<u32>) -> Vec<String> {
    let names: &[&str] = match cause {
        None => &["c-td", "c-td-half", "auc-td", "ibs"],
        Some(_) => &["cause-c-td", "cause-auc-td", "cause-ibs"],
    };
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The curves of a file for `cohort`: survival, or 1 - F of the cause that is predicted where events have several.
///
/// # Errors
/// [`CliError::Data`] as of [`read_predictions`] and [`read_incidence`].
pub(crate) fn read_curves(path: &Path, cohort: &Cohort) -> Result<PredictionTable, CliError> {
    Ok(match cohort.cause {
        Some(cause) => read_incidence(path, cause)?,
        None => read_predictions(path, Rising::Refuse)?,
    })
}

/// The groups of these rows.
pub(crate) fn restrict(groups: &Groups, rows: &[usize]) -> Result<Groups, CliError> {
    let membership = rows.iter().map(|row| groups.membership()[*row]).collect();
    Ok(Groups::new(groups.attribute(), groups.levels().to_vec(), membership)?)
}
