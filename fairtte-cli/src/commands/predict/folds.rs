//! `fairtte predict RUN RUN .. --out-of-fold`: the test parts of the folds of a cross-validation as one prediction.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use fairtte_data::cohort::{Exclusions, FittedAttribute};
use fairtte_data::predictions::{
    CurveRepairs, PredictionTable, ProbabilityTable, read_probabilities, write_incidence, write_predictions,
    write_probabilities,
};
use fairtte_data::{Cohort, DataError, FittedAttributes, Part, Sample, Split, read_cohort};
use fairtte_metrics::Groups;
use ndarray::Array2;

use super::publish::{Kind, Predicted, Risks, RunEntry, check_horizons};
use super::{PREDICTIONS, WORK, planned, probability_of, refuse_horizons, show};
use crate::CliError;
use crate::args::Predict;
use crate::pooled::{self, FoldRows, common_times};
use crate::progress::say;
use crate::run_file::RunFile;
use crate::run_folder::{OpenRun, RunFolder};
use crate::scored::{read_curves, restrict};

/// The test part of one run.
struct Fold {
    run: RunFile,
    folder: RunFolder,
    cohort: Cohort,
    rules: Vec<FittedAttribute>,
    /// The groups of all samples as the run recorded them.
    groups: Vec<Groups>,
    /// Rows of the cohort in the test part.
    rows: Vec<usize>,
    predictions: PredictionTable,
}

impl Fold {
    fn read(path: &Path) -> Result<Self, CliError> {
        let OpenRun { file: run, folder } = OpenRun::read(path)?;
        run.require_no_masks("pooling of folds")?;
        let rules = folder.model_record()?.attributes;
        let (cohort, groups) = read_cohort(&folder.cohort())?;
        let rows = Split::read_csv(&folder.split(), &cohort)?.rows(Part::Test).to_vec();
        let path = folder.predictions();
        let predictions =
            if run.is_of_class() { of_class(read_probabilities(&path)?) } else { read_curves(&path, &cohort)? };
        Ok(Self { run, folder, cohort, rules, groups, rows, predictions })
    }

    /// The groups of these samples as the run recorded them: a record does not have all from which they were made, such as the
    /// race by the rules of a data set, so that they are not made again.
    fn groups_of(&self, rows: &[usize], kept: &Cohort) -> Result<FittedAttributes, CliError> {
        let groups = self.groups.iter().map(|groups| restrict(groups, rows)).collect::<Result<Vec<_>, _>>()?;
        Ok(FittedAttributes::recorded(&self.rules, &groups, kept)?)
    }

    /// The rows that left the data before there were folds, the same in every fold, beside `n_kept` samples.
    fn exclusions(&self, n_kept: usize) -> Result<Exclusions, CliError> {
        let reasons = self.cohort.provenance.as_ref().map(|provenance| provenance.reasons.as_slice());
        Ok(Exclusions::read_csv(&self.folder.exclusions(), n_kept, reasons.unwrap_or_default())?)
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
    let first = arguments.runs[0].display();
    // One name of a group has one meaning for all pooled samples, so that all are in the groups of one fold.
    let differing = differing_attributes(&folds);
    if !differing.is_empty() {
        let names = differing.join(", ");
        notes.push(format!(
            "thresholds or levels of {names} differ between the folds: all pooled samples are in the groups of {first}"
        ));
    }
    let what = if of_class { "probability" } else { "curve" };
    notes.push(format!(
        "the censoring curve is that of the pooled samples, their groups are those that {first} recorded; each {what} is of the run \
         that did not train on its sample"
    ));
    for note in &notes {
        say(format!("note: {note}"));
    }
    // Shows that files of an interrupted call are its own.
    let work = arguments.output.join(WORK);
    std::fs::create_dir_all(&work).map_err(|source| DataError::Write { path: work.clone(), source })?;
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
    let kept = cohort.select(&predicted);
    let fitted = folds[0].groups_of(&predicted, &kept)?;
    let entry = |(path, fold): (&std::path::PathBuf, &Fold)| RunEntry {
        path: std::path::absolute(path).unwrap_or_else(|_| path.clone()),
        name: fold.run.name.clone(),
        epoch: None,
        weights: None,
        weights_blake3: None,
        time_unit: fold.cohort.time_unit.clone(),
    };
    let exclusions = folds[0].exclusions(kept.n())?;
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
    let published = published.write(&arguments.output)?;
    std::fs::remove_dir_all(&work).map_err(|source| DataError::Write { path: work, source })?;
    show(arguments, &published, started)
}

/// The attributes whose thresholds or levels are not the same in all folds.
fn differing_attributes(folds: &[Fold]) -> Vec<&str> {
    let differs = |rule: &&FittedAttribute| folds.iter().any(|fold| !fold.rules.contains(rule));
    folds[0].rules.iter().filter(differs).map(|rule| rule.name.as_str()).collect()
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
