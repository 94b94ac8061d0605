//! `fairtte predict RUN RUN .. --out-of-fold`: the test parts of the folds of a cross-validation as one prediction.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use fairtte_data::cohort::Exclusions;
use fairtte_data::predictions::{
    CurveRepairs, PredictionTable, ProbabilityTable, read_probabilities, write_incidence, write_predictions,
    write_probabilities,
};
use fairtte_data::{Cohort, FittedAttributes, Part, Sample, Split, read_cohort};
use ndarray::Array2;

use super::publish::{Kind, Predicted, Risks, RunEntry, check_horizons};
use super::{PREDICTIONS, planned, probability_of, refuse_horizons, show};
use crate::CliError;
use crate::args::Predict;
use crate::pooled::{self, FoldRows, common_times};
use crate::progress::say;
use crate::run_file::RunFile;
use crate::run_folder::OpenRun;
use crate::scored::read_curves;

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
        run.require_no_masks("pooling of folds")?;
        let rules = folder.model_record()?.attributes;
        let (cohort, _) = read_cohort(&folder.cohort())?;
        let rows = Split::read_csv(&folder.split(), &cohort)?.rows(Part::Test).to_vec();
        let path = folder.predictions();
        let predictions =
            if run.is_of_class() { of_class(read_probabilities(&path)?) } else { read_curves(&path, &cohort)? };
        Ok(Self { run, cohort, rules, rows, predictions })
    }

    fn rows(&self) -> FoldRows<'_> {
        FoldRows { rows: &self.rows, predictions: &self.predictions, reading: self.run.evaluation.reading }
    }
}

/// Probabilities of a class as survival of its one interval, from 1 to 1 - p, of which `probability_of` makes them again, to the bit.
fn of_class(table: ProbabilityTable) -> PredictionTable {
    let ProbabilityTable { samples, probability } = table;
    let survival =
        Array2::from_shape_fn((samples.len(), 2), |(row, time)| if time == 0 { 1.0 } else { 1.0 - probability[row] });
    PredictionTable { samples, grid: vec![0.0, 1.0], survival, repairs: CurveRepairs::default() }
}

pub(super) fn run(arguments: &Predict) -> Result<(), CliError> {
    let started = Instant::now();
    let folds = arguments.runs.iter().map(|path| Fold::read(path)).collect::<Result<Vec<_>, _>>()?;
    require_same_cohort(arguments, &folds)?;
    let fold_of = fold_of_rows(arguments, &folds)?;
    let grid = common_times(folds.iter().map(|fold| fold.predictions.grid.as_slice()));
    let of_class = folds[0].run.is_of_class();
    if of_class {
        refuse_horizons(arguments)?;
    } else {
        check_horizons(&arguments.horizon, &grid)?;
    }
    if arguments.dry_run {
        return planned(arguments, &format!("pool {} samples of {} folds", fold_of.len(), folds.len()));
    }
    let cohort = &folds[0].cohort;
    let rows: Vec<FoldRows<'_>> = folds.iter().map(Fold::rows).collect();
    let (_, table) = pooled::pooled(cohort, &rows, &folds[0].run.evaluation, &arguments.horizon)?;
    let grid = table.grid;
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
    let what = if of_class { "probability" } else { "curve" };
    notes.push(format!(
        "censoring curves and groups are those of the pooled samples; each {what} is of the run that did not train on its sample"
    ));
    for note in &notes {
        say(format!("note: {note}"));
    }
    let path = arguments.output.join(PREDICTIONS);
    let mut risks = Risks::new(&arguments.horizon, folds[0].run.evaluation.reading);
    if !of_class {
        risks.add(&grid, &table.survival)?;
    }
    match cohort.cause {
        _ if of_class => write_probabilities(&path, &table.samples, &probability_of(&table.survival))?,
        Some(cause) => write_incidence(&path, &table.samples, &grid, (1.0 - table.survival).view(), cause)?,
        None => write_predictions(&path, &table.samples, &grid, table.survival.view())?,
    }
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
    let classes = folds[0].run.classes(&kept)?;
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
        cause: cohort.cause,
        task: of_class.then(|| folds[0].run.task.clone()),
        classes: classes.as_ref(),
        grid: &grid,
        risks,
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
        cause: cohort.cause,
    }
}

/// All folds have the samples and outcomes of the first, in its order.
fn require_same_cohort(arguments: &Predict, folds: &[Fold]) -> Result<(), CliError> {
    let outcomes = |fold: &Fold| {
        let samples = fold.cohort.samples.iter();
        let of = |sample: &Sample| (sample.sample_id.clone(), sample.time.to_bits(), sample.event, sample.competing);
        (fold.run.task.clone(), fold.cohort.cause, samples.map(of).collect::<Vec<_>>())
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
    let in_two = |(row, folds_of_row): (usize, [usize; 2])| {
        let [first, second] = folds_of_row.map(|index| arguments.runs[index].display());
        let sample = &folds[0].cohort.samples[row].sample_id;
        let message = format!("\"{sample}\" is in the test parts of {first} and {second}, expected one");
        CliError::setting("RUN", message, None)
    };
    pooled::fold_of_rows(folds.iter().map(|fold| &fold.rows[..])).map_err(in_two)
}
