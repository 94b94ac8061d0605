//! `fairtte predict RUN RUN .. --out-of-fold`: the test parts of the folds of a cross-validation as one prediction.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use fairtte_data::cohort::Exclusions;
use fairtte_data::predictions::{PredictionTable, Rising, match_predictions, write_predictions};
use fairtte_data::{Cohort, FittedAttributes, Part, Split, read_cohort, read_predictions};
use fairtte_metrics::SampleId;
use ndarray::{Array2, Axis, concatenate};

use super::publish::{Kind, Predicted, RunEntry, check_horizons};
use super::{PREDICTIONS, at_times, common_times, planned, show};
use crate::CliError;
use crate::args::Predict;
use crate::progress::say;
use crate::run_file::RunFile;
use crate::run_folder::OpenRun;

/// The test part of one run.
struct Fold {
    run: RunFile,
    cohort: Cohort,
    rules: Vec<fairtte_data::cohort::FittedAttribute>,
    /// Rows of the cohort in the test part.
    rows: Vec<usize>,
    predictions: PredictionTable,
}

impl Fold {
    fn read(path: &Path) -> Result<Self, CliError> {
        let OpenRun { file: run, folder } = OpenRun::read(path)?;
        let rules = folder.model_record()?.attributes;
        let (cohort, _) = read_cohort(&folder.cohort())?;
        let rows = Split::read_csv(&folder.split(), &cohort)?.rows(Part::Test).to_vec();
        let predictions = read_predictions(&folder.predictions(), Rising::Refuse)?;
        Ok(Self { run, cohort, rules, rows, predictions })
    }
}

pub(super) fn run(arguments: &Predict) -> Result<(), CliError> {
    let started = Instant::now();
    let folds = arguments.runs.iter().map(|path| Fold::read(path)).collect::<Result<Vec<_>, _>>()?;
    require_same_cohort(arguments, &folds)?;
    let fold_of = fold_of_rows(arguments, &folds)?;
    let grid = common_times(folds.iter().map(|fold| fold.predictions.grid.as_slice()));
    check_horizons(&arguments.horizon, &grid)?;
    if arguments.dry_run {
        return planned(arguments, &format!("pool {} samples of {} folds", fold_of.len(), folds.len()));
    }
    let (samples, survival) = pooled(&folds, &grid)?;
    let cohort = &folds[0].cohort;
    let mut notes = Vec::new();
    let predicted: Vec<usize> = (0..cohort.n()).filter(|row| fold_of.contains_key(row)).collect();
    let n_missing = cohort.n() - predicted.len();
    if n_missing > 0 {
        notes.push(format!("{n_missing} of {} samples are in no test part and are left out", cohort.n()));
    }
    if folds.iter().any(|fold| fold.rules != folds[0].rules) {
        let first = arguments.runs[0].display();
        notes.push(format!(
            "thresholds or levels of the attributes differ between the folds; the groups are those of {first}"
        ));
    }
    notes.push("censoring curves and groups are those of the pooled samples; each curve is of the run that did not train on its sample".to_owned());
    for note in &notes {
        say(format!("note: {note}"));
    }
    write_predictions(&arguments.output.join(PREDICTIONS), &samples, &grid, survival.view())?;
    let kept = select(cohort, &predicted);
    let fitted = FittedAttributes::apply(&folds[0].rules, &kept, &[])?;
    let entry = |(path, fold): (&std::path::PathBuf, &Fold)| RunEntry {
        path: std::path::absolute(path).unwrap_or_else(|_| path.clone()),
        name: fold.run.name.clone(),
        epoch: None,
        weights: None,
        weights_blake3: None,
        time_unit: fold.cohort.time_unit.clone(),
    };
    let exclusions = Exclusions::new(kept.n());
    let published = Predicted {
        kind: Kind::OutOfFold,
        runs: arguments.runs.iter().zip(&folds).map(entry).collect(),
        source: cohort.source.display().to_string(),
        inputs: Vec::new(),
        time_factor: None,
        levels: &[],
        n_training_images: 0,
        has_outcomes: true,
        cohort: &kept,
        exclusions: &exclusions,
        groups: &fitted,
        grid: &grid,
        reading: folds[0].run.evaluation.reading,
        horizons: &arguments.horizon,
        notes: &notes,
    };
    show(arguments, &published.write(&arguments.output)?, started)
}

/// The cohort with these rows.
fn select(cohort: &Cohort, rows: &[usize]) -> Cohort {
    Cohort {
        name: cohort.name.clone(),
        time_unit: cohort.time_unit.clone(),
        source: cohort.source.clone(),
        samples: rows.iter().map(|row| cohort.samples[*row].clone()).collect(),
        attributes: cohort.attributes.iter().map(|attribute| attribute.select(rows)).collect(),
        provenance: cohort.provenance.clone(),
    }
}

/// All folds have the samples and outcomes of the first, in its order.
fn require_same_cohort(arguments: &Predict, folds: &[Fold]) -> Result<(), CliError> {
    let outcomes = |fold: &Fold| {
        let samples = fold.cohort.samples.iter();
        samples.map(|sample| (sample.sample_id.clone(), sample.time.to_bits(), sample.event)).collect::<Vec<_>>()
    };
    let first = outcomes(&folds[0]);
    match folds.iter().position(|fold| outcomes(fold) != first || fold.cohort.time_unit != folds[0].cohort.time_unit) {
        Some(other) => {
            let [first, other] = [0, other].map(|index| arguments.runs[index].display());
            let message = format!("{other} has other samples or outcomes than {first}, expected folds of one cohort");
            Err(CliError::setting("RUN", message, None))
        }
        None => Ok(()),
    }
}

/// The fold whose test part has each row; a row in two of them is an error.
fn fold_of_rows(arguments: &Predict, folds: &[Fold]) -> Result<HashMap<usize, usize>, CliError> {
    let mut fold_of = HashMap::new();
    for (index, fold) in folds.iter().enumerate() {
        for row in &fold.rows {
            if let Some(other) = fold_of.insert(*row, index) {
                let [first, second] = [other, index].map(|index| arguments.runs[index].display());
                let sample = &fold.cohort.samples[*row].sample_id;
                let message = format!("\"{sample}\" is in the test parts of {first} and {second}, expected one");
                return Err(CliError::setting("RUN", message, None));
            }
        }
    }
    Ok(fold_of)
}

/// The curves of all folds, in the order of the cohort.
fn pooled(folds: &[Fold], grid: &[f64]) -> Result<(Vec<SampleId>, Array2<f64>), CliError> {
    let (mut rows, mut blocks) = (Vec::<usize>::new(), Vec::new());
    for fold in folds {
        let order = match_predictions(&fold.cohort, &fold.rows, &fold.predictions.samples)?;
        let curves = fold.predictions.survival.select(Axis(0), &order);
        blocks.push(at_times(&fold.predictions.grid, curves, grid, fold.run.evaluation.reading)?);
        rows.extend(&fold.rows);
    }
    let views: Vec<_> = blocks.iter().map(|block| block.view()).collect();
    let all = concatenate(Axis(0), &views).map_err(|error| CliError::Bug(error.to_string()))?;
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|position| rows[*position]);
    let samples = order.iter().map(|position| folds[0].cohort.samples[rows[*position]].sample_id.clone()).collect();
    Ok((samples, all.select(Axis(0), &order)))
}
