//! Steps 6 to 9 of a run that fits an estimator on columns in place of a network: one fit, and its curves, in the same files.

use std::collections::BTreeMap;
use std::time::Instant;

use fairtte_classical::{ClassicalError, Estimator, FitChecks, FittedEstimator, SurvivalModel as _};
use fairtte_data::adapters::Tabular;
use fairtte_data::features::FeatureTable;
use fairtte_data::{DataConfig, Part};
use fairtte_fairness::{Outputs, TrainingData, choices, score_validation};
use fairtte_metrics::evaluation::Stop;
use fairtte_survival::{CutPoints, PredictionGrid};
use ndarray::Array2;

use super::selected::{ChosenEpoch, of_validation, predicted_rows, selection, write_curves};
use super::{kept_model, scoring_of, times};
use crate::plural::counted;
use crate::prepared::{Inputs, Prepared};
use crate::progress::say;
use crate::run_file::RunFile;
use crate::run_folder::{EstimatorModel, FittedKind, Methods, ModelWriter, OpenRun, RunFolder, write_json, write_text};
use crate::{CliError, design, device};

/// The only epoch of an estimator.
const EPOCH: usize = 1;

/// Fits `estimator` to the training part and predicts validation and test part.
///
/// # Errors
/// [`CliError::Estimator`] if it cannot be fitted, and those of writing.
pub(super) fn fit_estimator(
    open: &OpenRun,
    prepared: &Prepared,
    estimator: &Estimator,
    cut_points: &CutPoints,
) -> Result<(), CliError> {
    let OpenRun { file: run, folder } = open;
    let rows = predicted_rows(prepared);
    let of_any_cause = prepared.cohort.outcomes_of_any_cause(prepared.split.rows(Part::Train))?;
    let grid = times::of_steps(run, cut_points, &of_any_cause, rows.len())?;
    let Inputs::Features { matrix, encodings } = &prepared.inputs else {
        return Err(CliError::Bug("an estimator on images".to_owned()));
    };
    let train = prepared.split.rows(Part::Train);
    let inputs = prepared.inputs_of(train);
    let names = design::chosen(encodings, estimator.columns(), matrix, &inputs);
    let (n, p) = (counted(train.len(), "sample"), counted(names.len(), "column"));
    say(format!("fitting {} to {n} with {p}", estimator.name()));
    let started = Instant::now();
    let estimator = estimator.clone().with_seed(run.training_seed());
    let estimator = estimator.with_columns(|name| design::named(name, &names, encodings));
    let (fitted, checks) = fit(prepared, &estimator, &design::columns(matrix, &names, &inputs)?, &names)?;
    say(format!("fitted and checked in {:.1} s", started.elapsed().as_secs_f64()));
    write_json(&folder.fit_checks(), &checks)?;
    design::require_known_strata(fitted.strata(), (matrix, encodings), &rows, || cells(run, prepared))?;
    let samples = prepared.cohort.sample_ids(&rows);
    let curves = fitted
        .survival_curves(&design::columns(matrix, &names, &rows)?, grid.times())
        .map_err(|error| CliError::of_estimator(&estimator, error.with_samples(&samples)))?;
    let survival = curves.into_survival();
    let path = folder.predictions();
    write_curves(&path, &samples, grid.times(), survival.clone(), prepared.cohort.cause)?;

    let weights = format!("the fit of {}", estimator.name());
    let rules = choice_of_epoch(open, prepared, (cut_points, &grid), &survival, &weights)?;
    let mut model = ModelWriter::new(folder)?;
    model.add_estimator(&fitted, EPOCH, &weights)?;
    let names_of_rules: Vec<String> = rules.keys().cloned().collect();
    let kind = FittedKind::Estimator(EstimatorModel { columns: names.clone(), cut_points: cut_points.clone(), grid });
    model.finish(kept_model(prepared, None, kind), EPOCH, names_of_rules.into_iter().map(|rule| (rule, EPOCH)))?;
    let methods = Methods { estimator: Some(estimator.summary().to_owned()), ..Methods::default() };
    // Files that readers of a run expect; there are no epochs and no warnings of a training.
    write_text(&folder.steps(), "")?;
    folder.write_warnings(&[])?;
    write_json(&folder.selection(), &selection(run, EPOCH, weights, rules, methods))
}

/// The fit of `estimator` to the training part, whose `covariates` have these `names`, and what the samples say about it.
///
/// # Errors
/// [`CliError::Estimator`] naming columns and samples.
fn fit(
    prepared: &Prepared,
    estimator: &Estimator,
    covariates: &Array2<f64>,
    names: &[String],
) -> Result<(FittedEstimator, FitChecks), CliError> {
    let (cohort, train) = (prepared.training_cohort(), prepared.split.rows(Part::Train));
    let subjects = prepared.cohort.subjects(train);
    let of_samples = |error: ClassicalError| {
        CliError::of_estimator(estimator, error.with_samples(&prepared.cohort.sample_ids(train)))
    };
    if let Some(cause) = cohort.cause {
        let outcomes = cohort.competing_outcomes(train, cause)?;
        let fitted = estimator.fit_causes(covariates, &outcomes, cause, names, &subjects).map_err(of_samples)?;
        return Ok((fitted, FitChecks::new(names, &subjects)));
    }
    let outcomes = cohort.outcomes(train)?;
    let fitted = estimator.fit_named(covariates, &outcomes, names, &subjects, &Stop::default()).map_err(of_samples)?;
    let checks = fitted.checks(covariates, &outcomes, names, &subjects);
    Ok((fitted, checks))
}

/// The cells of the columns that an estimator reads, of all samples.
///
/// # Errors
/// [`CliError::Data`] if the table cannot be read again.
fn cells(run: &RunFile, prepared: &Prepared) -> Result<FeatureTable, CliError> {
    match &run.data {
        DataConfig::Tabular(config) => Ok(Tabular::new(config.clone()).features()?.aligned(&prepared.cohort)?),
        _ => design::covariates(&run.covariates(), &prepared.cohort, &prepared.attributes),
    }
}

/// Name of the file of the curves.
fn file_of_curves(folder: &RunFolder) -> String {
    folder.predictions().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The choice of the only epoch by every rule, with its values in the validation part, as of a training. An estimator predicts the
/// incidence of its cause alone, which has no likelihood: that rule then has no value.
fn choice_of_epoch(
    open: &OpenRun,
    prepared: &Prepared,
    (cut_points, grid): (&CutPoints, &PredictionGrid),
    survival: &Array2<f64>,
    weights: &str,
) -> Result<BTreeMap<String, ChosenEpoch>, CliError> {
    let OpenRun { file: run, folder } = open;
    let device = device::open(&run.device)?;
    let (loader, _) = prepared.loader(run, prepared.membership())?;
    // Curves are scored as they are: the head only says how outputs of a network become curves.
    let head = run.head.build()?;
    let levels = prepared.training_groups.as_ref().map_or(&[][..], |groups| groups.levels());
    let scoring = scoring_of(run, prepared, grid.clone(), cut_points)?;
    let kept_for = prepared.kept_for(run)?;
    let data = TrainingData {
        loader: &loader,
        train: prepared.split.rows(Part::Train),
        validation: prepared.split.rows(Part::Validation),
        levels,
        kept_for: &kept_for,
        outputs: Outputs { head: head.as_ref(), cut_points },
        scoring: &scoring,
        seed: run.training_seed(),
        device: &device,
    };
    let validation = score_validation(&data, &of_validation(prepared, data.validation, survival)?)?;
    let file = file_of_curves(folder);
    let rules = choices(&[&validation])?.into_keys().map(|rule| {
        let (value, gap) = (rule.value(&validation).filter(|value| value.is_finite()), rule.gap(&validation));
        let gap = gap.filter(|gap| gap.is_finite());
        (rule.name(), ChosenEpoch { epoch: EPOCH, weights: weights.to_owned(), value, gap, file: file.clone() })
    });
    Ok(rules.collect())
}
