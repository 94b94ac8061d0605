//! Step 9 for every epoch that a selection rule chose: curves, and the record of the choice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fairtte_data::predictions::{write_incidence, write_probabilities};
use fairtte_data::{Part, write_predictions};
use fairtte_fairness::{
    Choice, FairnessError, Strategy, TOLERATED_LOSS, TrainedRun, TrainingData, Validation, of_cause, predict,
    score_validation, score_validation_masks, use_epoch,
};
use fairtte_metrics::SampleId;
use ndarray::{Array2, Axis};
use serde::Serialize;

use super::masks;
use crate::CliError;
use crate::prepared::Prepared;
use crate::run_file::RunFile;
use crate::run_folder::{Fitted, Methods, ModelWriter, OpenRun, RunFolder, write_json};

/// The choice of the selection rules, `selection.json`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct SelectionRecord {
    /// Name of `training.monitor`, whose best epoch made `predictions.parquet`.
    monitor: &'static str,
    /// That epoch, counted from 1.
    epoch: usize,
    /// Description of the weights of `predictions.parquet`.
    weights: String,
    /// Whether the strategy reads groups.
    reads_groups: bool,
    /// Share of the best value that the rules of the smallest gap may lose.
    tolerated_loss: f64,
    /// By name of the rule.
    rules: BTreeMap<String, ChosenEpoch>,
    /// The version that trained.
    fairtte: &'static str,
    /// What was trained.
    methods: Methods,
}

/// The choice of one rule: the epoch, by the validation at its end, and the values of the curves in the file, which
/// some strategies compute from averaged weights, from the best epoch of each group or from recalibrated curves.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ChosenEpoch {
    /// Epoch, counted from 1.
    pub(super) epoch: usize,
    /// Description of the weights, for example `averaged over epochs 9 to 12`.
    pub(super) weights: String,
    /// The rule's metric in the validation part; absent where it is undefined.
    pub(super) value: Option<f64>,
    /// Its gap between the groups.
    pub(super) gap: Option<f64>,
    /// File of the predictions.
    pub(super) file: String,
}

/// The record of the choice of `rules`, of which the epoch of the monitor made `predictions.parquet`.
pub(super) fn selection(
    run: &RunFile,
    epoch: usize,
    weights: String,
    rules: BTreeMap<String, ChosenEpoch>,
    methods: Methods,
) -> SelectionRecord {
    SelectionRecord {
        monitor: run.training.monitor.name(),
        epoch,
        weights,
        reads_groups: run.strategy_reads_groups(),
        tolerated_loss: TOLERATED_LOSS,
        rules,
        fairtte: env!("CARGO_PKG_VERSION"),
        methods,
    }
}

/// Predictions of one epoch that have been written.
struct Written {
    file: String,
    weights: String,
    validation: Validation,
}

/// Predicts validation and test with the weights of every epoch that a rule chose. `strategy` initially has those of
/// the best epoch by the watched metric. The weights and what was `fitted` become the trained model, `model/`.
pub(super) fn predict_all(
    open: &OpenRun,
    prepared: &Prepared,
    strategy: &mut dyn Strategy,
    data: &TrainingData<'_>,
    trained: &TrainedRun,
    fitted: Fitted,
) -> Result<(), CliError> {
    let OpenRun { file: run, folder } = open;
    let mut model = ModelWriter::new(folder)?;
    let of_masks = data.outputs.head.of_masks().is_some();
    let write = |strategy: &dyn Strategy, path: &Path, epoch: usize| -> Result<Written, CliError> {
        if of_masks {
            let of_epoch = (epoch != trained.best_epoch).then_some(epoch);
            return Ok(Written {
                file: masks::write(open, prepared, strategy, data, of_epoch)?,
                weights: strategy.describe_weights(epoch),
                validation: score_validation_masks(data, strategy)?,
            });
        }
        let survival = curves(prepared, strategy, data)?;
        let others = (epoch == trained.best_epoch).then_some(folder);
        write_predicted(prepared, path, data.scoring.grid().times(), &survival, others)?;
        Ok(Written {
            file: path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            weights: strategy.describe_weights(epoch),
            validation: score_validation(data, &of_validation(prepared, data.validation, &survival)?)?,
        })
    };
    let best = trained.best_epoch;
    let mut written = BTreeMap::from([(best, write(strategy, &folder.predictions(), best)?)]);
    model.add(strategy, best)?;
    let chosen: BTreeSet<usize> = trained.choices.values().map(|choice| choice.epoch).collect();
    for epoch in chosen.into_iter().filter(|epoch| *epoch != best) {
        super::stop_as_asked(trained)?;
        use_epoch(strategy, data, folder.path(), epoch)?;
        written.insert(epoch, write(strategy, &folder.predictions_of(epoch), epoch)?);
        model.add(strategy, epoch)?;
    }
    let rules = trained.choices.iter().map(|(rule, Choice { epoch, .. })| {
        let Written { file, weights, validation } = &written[epoch];
        let (value, gap) = (rule.value(validation), rule.gap(validation));
        let (file, weights) = (file.clone(), weights.clone());
        (rule.name(), ChosenEpoch { epoch: *epoch, weights, value, gap, file })
    });
    let weights = written[&best].weights.clone();
    let methods = Methods {
        estimator: None,
        backbone: run.model.backbone.summary().to_owned(),
        head: run.head.settings().summary().to_owned(),
        strategy: run.strategy.settings().summary().to_owned(),
    };
    let record = selection(run, best, weights, rules.collect(), methods);
    let epochs = trained.choices.iter().map(|(rule, choice)| (rule.name(), choice.epoch));
    model.finish(fitted, best, epochs)?;
    write_json(&folder.selection(), &record)
}

/// The probability of the class, 1 - survival at the end of its one interval, of every row of `survival`.
pub(in crate::commands) fn probability_of(survival: &Array2<f64>) -> Vec<f64> {
    let end = survival.ncols().saturating_sub(1);
    survival.column(end).iter().map(|survival| 1.0 - survival).collect()
}

/// The curves of the validation part in the order of its rows.
pub(super) fn of_validation(
    prepared: &Prepared,
    validation: &[usize],
    survival: &Array2<f64>,
) -> Result<Array2<f64>, CliError> {
    let rows = predicted_rows(prepared);
    let place = |row: &usize| {
        let missing = || CliError::Bug(format!("no prediction of row {row} of the validation part"));
        rows.binary_search(row).map_err(|_| missing())
    };
    let places = validation.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    Ok(survival.select(Axis(0), &places))
}

/// Rows of validation and test, in the order of the cohort.
pub(in crate::commands) fn predicted_rows(prepared: &Prepared) -> Vec<usize> {
    let mut rows = [Part::Validation, Part::Test].map(|part| prepared.split.rows(part)).concat();
    rows.sort_unstable();
    rows
}

fn curves(prepared: &Prepared, strategy: &dyn Strategy, data: &TrainingData<'_>) -> Result<Array2<f64>, FairnessError> {
    let rule = data.outputs.on(data.scoring.grid());
    predict(strategy, data.loader, &predicted_rows(prepared), &rule, data.device)
}

/// Writes what the weights of an epoch predict for validation and test, `[n, n_causes n_times]`: the probability of a class, survival, or
/// the incidence of the predicted cause; and with a folder in it the incidence of each other cause of the prediction.
pub(in crate::commands) fn write_predicted(
    prepared: &Prepared,
    path: &Path,
    times: &[f64],
    predicted: &Array2<f64>,
    others: Option<&RunFolder>,
) -> Result<(), CliError> {
    let samples = prepared.cohort.sample_ids(&predicted_rows(prepared));
    if prepared.classes.is_some() {
        return Ok(write_probabilities(path, &samples, &probability_of(predicted))?);
    }
    let of = |place| of_cause(predicted, place, times.len());
    write_curves(path, &samples, times, of(0), prepared.cohort.cause)?;
    let Some(folder) = others else { return Ok(()) };
    // An estimator, and a network of one cause, predicts that of the run alone.
    let n_predicted = predicted.ncols() / times.len();
    for (place, cause) in prepared.training_cohort().causes().into_iter().enumerate().take(n_predicted).skip(1) {
        write_curves(&folder.predictions_of_cause(cause), &samples, times, of(place), Some(cause))?;
    }
    Ok(())
}

/// Writes survival, or of a cause its incidence, which is 1 minus `curves`, `[n, n_times]`.
pub(super) fn write_curves(
    path: &Path,
    samples: &[SampleId],
    times: &[f64],
    curves: Array2<f64>,
    cause: Option<u32>,
) -> Result<(), CliError> {
    let Some(cause) = cause else { return Ok(write_predictions(path, samples, times, curves.view())?) };
    let incidence = curves.mapv_into(|without| 1.0 - without);
    Ok(write_incidence(path, samples, times, incidence.view(), cause)?)
}
