//! What covariates alone predict: a Cox model of them and the Kaplan-Meier curve, beside the model that is evaluated.
//!
//! Both are fitted on the training samples where these have the covariates, otherwise on the evaluated samples, each of
//! which is then predicted by models that did not see its subject.

mod covariates;

use fairtte_classical::{ClassicalError, Covariates, CoxRegression, CoxTies, CrossFitted, cross_fitted_curves};
use fairtte_metrics::estimators::KaplanMeier;
use fairtte_metrics::evaluation::{
    MetricReport, ModelPair, ModelReports, RequestedMetric, ScoredCohort, evaluate_models, times_read,
};
use fairtte_metrics::scores::kaplan_meier_curves;
use fairtte_metrics::{EvaluationSettings, MetricError, Outcomes, SurvivalCurves, evaluate};
use serde::Serialize;

use crate::CliError;
use crate::report::list;

pub(crate) use covariates::{CovariateColumn, CovariateKind};

/// Folds where the models are fitted on the evaluated samples.
const N_FOLDS: usize = 10;
/// Name of the evaluated model beside its baselines.
const MODEL: &str = "model";
const KAPLAN_MEIER: &str = "Kaplan-Meier";
/// Metrics of the order of predictions: a curve that is the same for all samples has none.
const RANKING: [&str; 6] = ["c_td_antolini_strict", "c_td_half", "auc_td", "harrell-c", "uno-c", "auc"];

/// Metrics of the density of the event time, which is a slope between two points of the grid: on another grid it is another number.
const OF_DENSITY: [&str; 2] = ["rcll", "snl"];
const THE_GRID: &str = "(a density, whose value depends on the points of the grid)";
/// Fewest and most observed times at which baselines and estimators are predicted; between them they are interpolated.
pub(crate) const OWN_TIMES: [usize; 2] = [20, 500];
/// Most values of the curves of a model at observed times, above the fewest times: 160 MB.
pub(crate) const MOST_VALUES: usize = 20_000_000;

/// The baselines of one evaluation.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Baseline {
    /// Names of the covariates.
    pub(crate) covariates: Vec<String>,
    /// `train`, or `evaluated`: then every sample is predicted by models of the other folds.
    pub(crate) fitted_on: &'static str,
    /// The Cox model of all samples of the fit; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cox: Option<CoxRegression>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) undefined: Option<String>,
    /// By baseline its metrics.
    models: Vec<BaselineModel>,
    /// By metric the evaluated model minus the Cox model.
    differences: Vec<ModelPair>,
    /// Requested metrics that baselines do not have.
    #[serde(skip)]
    left_out: Vec<String>,
    /// The same with the metrics of the model, for tables and figures.
    #[serde(skip)]
    pub(crate) reports: Option<ModelReports>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct BaselineModel {
    name: String,
    metrics: Vec<MetricReport>,
}

/// The samples that the baselines are fitted on.
pub(crate) struct Training {
    pub(crate) outcomes: Outcomes,
    pub(crate) columns: Vec<CovariateColumn>,
}

/// The curves of both baselines, and the Cox model.
struct Predicted {
    curves: CrossFitted,
    cox: CoxRegression,
}

impl Baseline {
    /// The baselines of the samples that are scored, whose covariates are `columns`.
    ///
    /// # Errors
    /// [`CliError`] if the evaluation fails; a Cox model that cannot be fitted is [`Baseline::undefined`].
    pub(crate) fn new(
        scored: &ScoredCohort<'_>,
        columns: &[CovariateColumn],
        train: Option<&Training>,
        settings: &EvaluationSettings,
    ) -> Result<Self, CliError> {
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let none = Self {
            covariates: names,
            fitted_on: fitted_on(train),
            cox: None,
            undefined: None,
            models: Vec::new(),
            differences: Vec::new(),
            reports: None,
            left_out: Vec::new(),
        };
        let left_out = of_density(settings);
        let mut settings = settings.clone();
        settings.metrics.retain(|metric| !left_out.contains(metric));
        if settings.metrics.is_empty() {
            let undefined = Some(format!("there is nothing to compare: {} {THE_GRID}", list(&left_out)));
            return Ok(Self { undefined, left_out, ..none });
        }
        let grid = grid(scored, &settings)?;
        let predicted = match predict(scored, &grid, columns, train, &settings) {
            Ok(predicted) => predicted,
            Err(reason) => return Ok(Self { undefined: Some(reason.to_string()), ..none }),
        };
        let reports = compare(scored, &predicted.curves, &none.name(), &settings)?;
        let others = reports.models.iter().filter(|(name, _)| name != MODEL);
        let models = others.map(|(name, report)| BaselineModel {
            name: name.clone(),
            metrics: report.metrics.iter().filter(|metric| is_shown(name, metric)).cloned().collect(),
        });
        Ok(Self {
            models: models.collect(),
            differences: reports.pairs.clone(),
            cox: Some(predicted.cox),
            reports: Some(reports),
            left_out,
            ..none
        })
    }

    /// Name of the Cox model: `Cox (age, sex)`.
    pub(crate) fn name(&self) -> String {
        cox_name(&self.covariates)
    }

    /// What the models were fitted on, in words.
    pub(crate) fn fit(&self) -> String {
        fit_in_words(self.fitted_on)
    }

    /// The requested metrics that are not compared, and why; `None` without any.
    pub(crate) fn not_compared(&self) -> Option<String> {
        (!self.left_out.is_empty()).then(|| format!("Not compared: {} {THE_GRID}.", list(&self.left_out)))
    }
}

/// The Cox model of the covariates as one more of several models.
pub(crate) struct CoxModel {
    pub(crate) name: String,
    /// `train` or `evaluated`, as in [`Baseline`].
    pub(crate) fitted_on: &'static str,
    pub(crate) curves: SurvivalCurves,
}

impl CoxModel {
    /// That of the samples that are scored, whose covariates are `columns`.
    ///
    /// # Errors
    /// [`ClassicalError`] if it cannot be fitted, or for settings that are refused.
    pub(crate) fn new(
        scored: &ScoredCohort<'_>,
        columns: &[CovariateColumn],
        train: Option<&Training>,
        settings: &EvaluationSettings,
    ) -> Result<Self, ClassicalError> {
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        // Metrics of the density compare it with the models of the files, which have a coarse grid too.
        let grid =
            if of_density(settings).is_empty() { grid(scored, settings)? } else { scored.curves.grid().to_vec() };
        let curves = predict(scored, &grid, columns, train, settings)?.curves.curves;
        Ok(Self { name: cox_name(&names), fitted_on: fitted_on(train), curves })
    }

    /// What it was fitted on, in words.
    pub(crate) fn fit(&self) -> String {
        fit_in_words(self.fitted_on)
    }
}

fn cox_name(covariates: &[String]) -> String {
    format!("Cox ({})", covariates.join(", "))
}

fn fitted_on(train: Option<&Training>) -> &'static str {
    if train.is_some() { "train" } else { "evaluated" }
}

fn fit_in_words(fitted_on: &str) -> String {
    match fitted_on {
        "train" => "fitted on the training sample".to_owned(),
        _ => format!("every sample predicted by a fit of the other {} of {N_FOLDS} folds", N_FOLDS - 1),
    }
}

/// Whether a number of this model says something.
pub(crate) fn is_shown(model: &str, metric: &MetricReport) -> bool {
    let name = metric.name.split('@').next().unwrap_or_default();
    model != KAPLAN_MEIER || !RANKING.contains(&name)
}

/// The requested metrics of the density.
pub(crate) fn of_density(settings: &EvaluationSettings) -> Vec<String> {
    let is_of_density = |text: &&String| {
        RequestedMetric::parse(text).is_ok_and(|requested| OF_DENSITY.contains(&requested.metric.name()))
    };
    settings.metrics.iter().filter(is_of_density).cloned().collect()
}

/// The points at which the baselines are predicted: those of the model, and all at which metrics read a curve. On the points of the model
/// alone they would be as coarse as it, and the model would be compared with a worse Cox model than there is.
fn grid(scored: &ScoredCohort<'_>, settings: &EvaluationSettings) -> Result<Vec<f64>, MetricError> {
    let mut points = scored.curves.grid().to_vec();
    points.extend(times_read(scored, settings)?);
    Ok(with_observed(points, scored.outcomes.time().to_vec(), OWN_TIMES[1], scored.outcomes.n()))
}

/// `points` with those of the `observed` times that are not after the last point, or at most `most` evenly chosen ones of them, fewer if
/// `n` curves need too much memory; ascending.
pub(crate) fn with_observed(mut points: Vec<f64>, mut observed: Vec<f64>, most: usize, n: usize) -> Vec<f64> {
    let last = points.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    observed.retain(|time| *time <= last);
    observed.sort_by(f64::total_cmp);
    observed.dedup();
    let most = (MOST_VALUES / n.max(1)).max(OWN_TIMES[0]).min(most.max(1));
    points.extend(observed.iter().step_by(observed.len().div_ceil(most).max(1)));
    points.sort_by(f64::total_cmp);
    points.dedup();
    points
}

fn predict(
    scored: &ScoredCohort<'_>,
    grid: &[f64],
    columns: &[CovariateColumn],
    train: Option<&Training>,
    settings: &EvaluationSettings,
) -> Result<Predicted, ClassicalError> {
    let n = scored.outcomes.n();
    if let Some(Training { outcomes, columns: of_train }) = train {
        let all = covariates::covariates(of_train, Some(columns))?;
        let rows: Vec<usize> = (0..all.n()).collect();
        let (fitted, scored) = rows.split_at(outcomes.n());
        let cox = CoxRegression::fit_with_levels_of(&all, outcomes, &all.select(fitted), CoxTies::Efron)?;
        let curves = cox.survival_curves(&all.select(scored), grid)?;
        let kaplan_meier = kaplan_meier_curves(&KaplanMeier::fit(outcomes)?, grid, n)?;
        return Ok(Predicted { curves: CrossFitted { curves, kaplan_meier }, cox });
    }
    let all: Covariates = covariates::covariates(columns, None)?;
    let cox = CoxRegression::fit_with_levels_of(&all, scored.outcomes, &all, CoxTies::Efron)?;
    let curves = cross_fitted_curves(scored.subjects, scored.outcomes, &all, grid, (N_FOLDS, settings.seed))?;
    Ok(Predicted { curves, cox })
}

/// The reports of the model and its baselines, and the differences of the model from the Cox model.
fn compare(
    scored: &ScoredCohort<'_>,
    found: &CrossFitted,
    cox: &str,
    settings: &EvaluationSettings,
) -> Result<ModelReports, CliError> {
    let settings = settings.metrics_only();
    let models: [(&str, &SurvivalCurves); 2] = [(MODEL, scored.curves), (cox, &found.curves)];
    let ScoredCohort { subjects, outcomes, censoring, groups, .. } = *scored;
    let mut reports = evaluate_models(&models, 1, subjects, outcomes, censoring, groups, &settings)?;
    // Its differences would join the family of the p values that are adjusted.
    let kaplan_meier = evaluate(subjects, outcomes, &found.kaplan_meier, censoring, groups, &settings)?;
    reports.models.push((KAPLAN_MEIER.to_owned(), kaplan_meier));
    Ok(reports)
}
