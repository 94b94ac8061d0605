//! The evaluation of predictions in memory: baselines beside a model, and the page and the JSON of `evaluate`, for programs
//! that hold curves and outcomes themselves.

use fairtte_metrics::evaluation::{ClassGroups, ClassReport, Coverage, HorizonReport, ScoredCohort};
use fairtte_metrics::{EvaluationReport, EvaluationSettings, MetricError, Outcomes, SurvivalCurves};
use fairtte_records::Warning;
use serde::{Deserialize, Serialize};

use crate::CliError;
use crate::baseline::{self, CovariateColumn};
use crate::commands::warnings_of_class;
use crate::report::{ClassNumbers, ClassPage, Page, render_class_page, render_page, threshold_sentence};
use crate::scored::{Scored, equal_curves};
use crate::training_sample::about_training;

/// Covariates by name; `None` where a value is missing. Columns of more than ten different numbers are numbers, all others
/// levels.
pub type Columns = Vec<(String, Vec<Option<String>>)>;

/// A Cox model of covariates and the Kaplan-Meier curve beside the model that is evaluated.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Baseline(baseline::Baseline);

impl Baseline {
    /// The baselines of the samples, fitted on `train` if it is given, and otherwise on the other folds of the samples. A Cox
    /// model that cannot be fitted is part of the result, with its reason.
    ///
    /// # Errors
    /// Those of [`evaluate_models`](fairtte_metrics::evaluation::evaluate_models).
    pub fn new(
        input: &ScoredCohort<'_>,
        columns: Columns,
        train: Option<(Outcomes, Columns)>,
        settings: &EvaluationSettings,
    ) -> Result<Self, CliError> {
        let train = train.map(|(outcomes, columns)| baseline::Training { outcomes, columns: named(columns) });
        Ok(Self(baseline::Baseline::new(input, &named(columns), train.as_ref(), settings)?))
    }
}

fn named(columns: Columns) -> Vec<CovariateColumn> {
    columns.into_iter().map(|(name, values)| CovariateColumn { name, values }).collect()
}

/// The text around the numbers of a page.
#[derive(Clone, Debug)]
pub struct About {
    /// Heading.
    pub title: String,
    /// Unit of all times; may be empty.
    pub time_unit: String,
    /// The sample that the censoring curve was fitted on.
    pub censoring: String,
    /// Name and value of what a reader should know of the model.
    pub facts: Vec<(String, String)>,
    /// What must be read before the numbers, one paragraph each: [`warnings`] or [`class_warnings`].
    pub warnings: Vec<String>,
    /// Remarks, one paragraph each.
    pub notes: Vec<String>,
}

impl About {
    fn warnings(&self) -> Vec<Warning> {
        self.warnings.iter().map(|text| Warning { name: String::new(), text: text.clone() }).collect()
    }
}

/// Checks that curves and outcomes are in the same unit of time, and says which samples the curves do not cover.
///
/// # Errors
/// [`MetricError::TimesDisagree`] with the factor that would make the times agree.
pub fn coverage_notes(input: &ScoredCohort<'_>, settings: &EvaluationSettings) -> Result<Vec<String>, MetricError> {
    fairtte_metrics::evaluation::check_units(input.outcomes, input.curves, settings.reading)?;
    Ok(Coverage::of(input.outcomes, input.curves, settings.reading).sentences(settings.reading))
}

/// Checks that the times of a training sample are in the unit of the evaluated ones, and says what its weights mean if it has no events or
/// no censored samples.
///
/// # Errors
/// [`MetricError::TrainingTimesDisagree`] with the factor that would make the times agree.
pub fn training_warnings(train: &Outcomes, evaluated: &Outcomes) -> Result<Vec<String>, MetricError> {
    Ok(about_training(Some(train), evaluated)?.into_iter().map(|warning| warning.text).collect())
}

/// What must be read before the numbers of an evaluation: that all curves are equal, that the ranking is not shown to be better
/// than guessing, that groups are censored differently.
pub fn warnings(report: &EvaluationReport, curves: &SurvivalCurves) -> Vec<String> {
    let sample = "evaluated sample";
    let equal = equal_curves(curves, sample).into_iter().collect();
    let found = Scored::with_censoring(report, Scored::with_ranking(report, sample, None, equal));
    found.into_iter().map(|warning| warning.text).collect()
}

/// The same of probabilities of a class.
pub fn class_warnings(report: &ClassReport, groups: &ClassGroups) -> Vec<String> {
    warnings_of_class(report, groups, 0).into_iter().map(|warning| warning.text).collect()
}

/// The page that `fairtte evaluate` writes: one HTML file that needs no other.
///
/// # Errors
/// [`CliError`] if a figure cannot be drawn, which no input should cause.
pub fn page(report: &EvaluationReport, about: &About, baseline: Option<&Baseline>) -> Result<String, CliError> {
    Ok(render_page(&Page {
        title: &about.title,
        subtitle: "",
        facts: &about.facts,
        evaluation: report,
        baseline: baseline.map(|baseline| &baseline.0),
        sensitivity: None,
        bias: None,
        time_unit: &about.time_unit,
        censoring: &about.censoring,
        epochs: &[],
        monitor: "",
        flow: &[],
        warnings: &about.warnings(),
        notes: &about.notes,
        csv: "evaluation.csv",
    })?)
}

/// Where the threshold of a class comes from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ThresholdChoice {
    /// It was not chosen.
    Default,
    /// It was given.
    Given,
    /// It has the highest F1 on other samples.
    F1OnValidation {
        /// Those samples with a class.
        n: usize,
        /// Positive ones among them.
        n_positive: usize,
        /// Their F1.
        f1: f64,
    },
}

/// The page that `fairtte evaluate --task binary` writes of one model: one HTML file that needs no other. `horizon` is there where the
/// class is made from times; `about` has their unit and the sample of the censoring curve.
///
/// # Errors
/// [`CliError`] if a figure cannot be drawn, which no input should cause.
pub fn class_page(
    report: &ClassReport,
    groups: &ClassGroups,
    horizon: Option<&HorizonReport>,
    choice: ThresholdChoice,
    about: &About,
) -> Result<String, CliError> {
    let validation = match choice {
        ThresholdChoice::F1OnValidation { n, n_positive, f1 } => Some(("the validation sample", f1, n, n_positive)),
        ThresholdChoice::Default | ThresholdChoice::Given => None,
    };
    let threshold = threshold_sentence(report.class.threshold, choice == ThresholdChoice::Given, validation);
    let facts = [about.facts.clone(), vec![("threshold".to_owned(), threshold.clone())]].concat();
    Ok(render_class_page(&ClassPage {
        title: &about.title,
        subtitle: "",
        facts: &facts,
        numbers: ClassNumbers {
            report,
            evaluation: &EvaluationReport::of_class(report, groups),
            groups,
            horizon,
            time_unit: &about.time_unit,
        },
        censoring: &about.censoring,
        threshold: &threshold,
        warnings: &about.warnings(),
        notes: &about.notes,
        csv: "evaluation.csv",
    })?)
}
