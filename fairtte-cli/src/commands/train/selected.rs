//! Step 9 for every epoch that a selection rule chose: curves, and the record of what was chosen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fairtte_data::{Part, write_predictions};
use fairtte_fairness::{
    Choice, CurveRule, FairnessError, Strategy, TOLERATED_LOSS, TrainedRun, TrainingData, predict, use_epoch,
};
use ndarray::Array2;
use serde::Serialize;

use crate::CliError;
use crate::prepare::Prepared;
use crate::run_folder::{RunFolder, write_text};

/// What the selection rules chose, `selection.json`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct SelectionRecord {
    /// Name of `training.monitor`, whose best epoch made `predictions.parquet`.
    monitor: &'static str,
    /// That epoch, counted from 1.
    epoch: usize,
    /// Share of the best value that the rules of the smallest gap may lose.
    tolerated_loss: f64,
    /// By name of the rule.
    rules: BTreeMap<String, ChosenEpoch>,
}

/// What one rule chose.
#[derive(Serialize)]
struct ChosenEpoch {
    #[serde(flatten)]
    choice: Choice,
    /// File of its predictions.
    file: String,
}

/// Predicts validation and test by the weights of every epoch that a rule chose. `strategy` comes with those of the best
/// epoch by the watched metric.
pub(super) fn predict_all(
    folder: &RunFolder,
    prepared: &Prepared,
    strategy: &mut dyn Strategy,
    data: &TrainingData<'_>,
    trained: &TrainedRun,
    monitor: &'static str,
) -> Result<(), CliError> {
    write_curves(&folder.predictions(), prepared, &curves(prepared, strategy, data)?, data)?;
    let chosen: BTreeSet<usize> = trained.choices.values().map(|choice| choice.epoch).collect();
    for epoch in chosen.into_iter().filter(|epoch| *epoch != trained.best_epoch) {
        use_epoch(strategy, data, folder.path(), epoch)?;
        write_curves(&folder.predictions_of(epoch), prepared, &curves(prepared, strategy, data)?, data)?;
    }
    let file = |choice: &Choice| {
        let is_main = choice.epoch == trained.best_epoch;
        let path = if is_main { folder.predictions() } else { folder.predictions_of(choice.epoch) };
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let rules = trained.choices.iter().map(|(rule, choice)| {
        let chosen = ChosenEpoch { choice: choice.clone(), file: file(choice) };
        (rule.name(), chosen)
    });
    let record =
        SelectionRecord { monitor, epoch: trained.best_epoch, tolerated_loss: TOLERATED_LOSS, rules: rules.collect() };
    let text = serde_json::to_string_pretty(&record).map_err(|error| CliError::Bug(error.to_string()))?;
    write_text(&folder.selection(), &format!("{text}\n"))
}

/// Rows of validation and test, in the order of the cohort.
pub(super) fn predicted_rows(prepared: &Prepared) -> Vec<usize> {
    let mut rows = [Part::Validation, Part::Test].map(|part| prepared.split.rows(part)).concat();
    rows.sort_unstable();
    rows
}

fn curves(prepared: &Prepared, strategy: &dyn Strategy, data: &TrainingData<'_>) -> Result<Array2<f64>, FairnessError> {
    let rule = CurveRule { head: data.head, grid: data.scoring.grid() };
    predict(strategy, data.loader, &predicted_rows(prepared), &rule, data.device)
}

fn write_curves(
    path: &Path,
    prepared: &Prepared,
    survival: &Array2<f64>,
    data: &TrainingData<'_>,
) -> Result<(), CliError> {
    let samples = prepared.cohort.sample_ids(&predicted_rows(prepared));
    Ok(write_predictions(path, &samples, data.scoring.grid().times(), survival.view())?)
}
