//! The files of a prediction; `predict.json` is written last and marks the folder.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fairtte_data::cohort::{Classes, CohortSummary, Exclusions, RenamedLevel};
use fairtte_data::table::{ColumnValues, write_csv};
use fairtte_data::{Cohort, DataError, FittedAttributes, write_cohort};
use fairtte_metrics::{Reading, SurvivalCurves};
use ndarray::Array2;
use serde::Serialize;

use super::member::Member;
use super::{PREDICTIONS, WORK};
use crate::CliError;
use crate::plural::counted;
use crate::run_file::TaskConfig;
use crate::run_folder::{RunFolder, write_json};
use crate::shell::quoted_path;

const VERSION: u32 = 1;
const RECORD: &str = "predict.json";
const EXCLUSIONS: &str = "exclusions.csv";
const COHORT: &str = "cohort.parquet";
const SUMMARY: &str = "cohort.json";
const RISK: &str = "risk.csv";
/// What is written beside the record; some of it only with outcomes, or with horizons.
const FILES: [&str; 5] = [PREDICTIONS, EXCLUSIONS, COHORT, SUMMARY, RISK];

/// How curves were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Kind {
    /// The network of one run.
    #[serde(rename = "network")]
    Network,
    /// The estimator of one run.
    #[serde(rename = "estimator")]
    Estimator,
    /// The mean of the survival of several runs.
    #[serde(rename = "ensemble mean")]
    EnsembleMean,
    /// For each sample the run that has it in its test part.
    #[serde(rename = "out of fold")]
    OutOfFold,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Estimator => "estimator",
            Self::EnsembleMean => "ensemble mean",
            Self::OutOfFold => "out of fold",
        }
    }
}

/// A run whose curves were used.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct RunEntry {
    pub(super) path: PathBuf,
    pub(super) name: String,
    /// Epoch of the weights, counted from 1; absent where finished predictions were pooled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) epoch: Option<usize>,
    /// Description of the weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) weights: Option<String>,
    /// One hash over the files of the weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) weights_blake3: Option<String>,
    pub(super) time_unit: String,
}

impl RunEntry {
    pub(super) fn of(member: &Member) -> Self {
        let kept = &member.record.epochs[&member.epoch];
        Self {
            path: std::path::absolute(&member.path).unwrap_or_else(|_| member.path.clone()),
            name: member.run.name.clone(),
            epoch: Some(member.epoch),
            weights: Some(kept.weights.clone()),
            weights_blake3: Some(kept.hash()),
            time_unit: member.record.time_unit.clone(),
        }
    }
}

/// Everything that the files say.
pub(super) struct Predicted<'a> {
    pub(super) kind: Kind,
    pub(super) runs: Vec<RunEntry>,
    pub(super) source: String,
    /// Hash of the inputs of every run.
    pub(super) inputs: Vec<String>,
    pub(super) time_factor: Option<f64>,
    pub(super) levels: &'a [RenamedLevel],
    pub(super) n_training_images: usize,
    pub(super) has_outcomes: bool,
    pub(super) cohort: &'a Cohort,
    pub(super) exclusions: &'a Exclusions,
    pub(super) groups: &'a FittedAttributes,
    /// The cause whose incidence the curves are; `None` of survival.
    pub(super) cause: Option<u32>,
    /// How the class is made whose probability was predicted; `None` of curves.
    pub(super) task: Option<TaskConfig>,
    /// The class of every sample, if they have outcomes.
    pub(super) classes: Option<&'a Classes>,
    pub(super) grid: &'a [f64],
    pub(super) risks: Risks,
    pub(super) notes: &'a [String],
}

/// The risk of every sample at some horizons: 1 - S, or the incidence of the cause.
pub(super) struct Risks {
    horizons: Vec<f64>,
    reading: Reading,
    /// One entry per horizon: the risks of the samples so far, in their order.
    of_samples: Vec<Vec<f64>>,
}

impl Risks {
    /// Of no sample yet; `reading` says what a curve is between its times.
    pub(super) fn new(horizons: &[f64], reading: Reading) -> Self {
        Self { horizons: horizons.to_vec(), reading, of_samples: vec![Vec::new(); horizons.len()] }
    }

    /// Adds the next samples, whose curves at the times of `grid` are `survival` `[n, n_times]`.
    ///
    /// # Errors
    /// [`DataError`] if they are no curves.
    pub(super) fn add(&mut self, grid: &[f64], survival: &Array2<f64>) -> Result<(), DataError> {
        if self.horizons.is_empty() {
            return Ok(());
        }
        let curves = SurvivalCurves::new(grid.to_vec(), survival.clone())?;
        for (horizon, risks) in self.horizons.iter().zip(&mut self.of_samples) {
            risks.extend(curves.all_at(*horizon, self.reading).into_iter().map(|survival| 1.0 - survival));
        }
        Ok(())
    }
}

/// The content of `predict.json`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Published {
    version: u32,
    fairtte: &'static str,
    prediction: Kind,
    runs: Vec<RunEntry>,
    data: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_hash: Option<String>,
    inputs_blake3: Vec<String>,
    n_read: usize,
    n_excluded: usize,
    n_predicted: usize,
    /// Samples with an outcome: all, or none.
    n_labelled: usize,
    n_events: usize,
    /// The cause whose cumulative incidence the curves are; absent of survival.
    #[serde(skip_serializing_if = "Option::is_none")]
    incidence_of_cause: Option<u32>,
    /// How the class is made whose probability was predicted; absent of curves.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskConfig>,
    /// Positive samples, and samples that are censored by the horizon of the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    n_positive: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n_without_class: Option<usize>,
    time_unit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_factor: Option<f64>,
    levels: Vec<RenamedLevel>,
    n_training_images: usize,
    /// Absent of a class, which has no times.
    #[serde(skip_serializing_if = "Option::is_none")]
    n_times: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_time: Option<f64>,
    horizons: Vec<f64>,
    notes: Vec<String>,
}

/// Refuses a folder that has other results, or files of these names: only those of a prediction that was interrupted, whose blocks are
/// there, are our own.
pub(super) fn require_free(output: &Path) -> Result<(), CliError> {
    let taken = |name: &str, what: &str| {
        let path = output.join(name);
        if !path.exists() {
            return Ok(());
        }
        let problem = format!("there is already {what} here; choose another --output");
        Err(CliError::RunFolder { path, problem })
    };
    taken(RECORD, "a prediction")?;
    let run = RunFolder::new(output).run_file();
    taken(&run.file_name().unwrap_or_default().to_string_lossy(), "a run")?;
    if output.join(WORK).exists() {
        return Ok(());
    }
    FILES.iter().try_for_each(|name| taken(name, "a file of this name"))
}

/// Horizons are times of the curves.
pub(crate) fn check_horizons(horizons: &[f64], grid: &[f64]) -> Result<(), CliError> {
    let last = grid.last().copied().unwrap_or_default();
    match horizons.iter().find(|horizon| !(**horizon > 0.0 && **horizon <= last)) {
        Some(horizon) => {
            let message = format!("{horizon} is no time of the curves, expected a number above 0 and up to {last}");
            Err(CliError::setting("--horizon", message, None))
        }
        None => Ok(()),
    }
}

impl Predicted<'_> {
    /// Writes everything except for the curves, which are there.
    pub(super) fn write(self, output: &Path) -> Result<Published, CliError> {
        self.exclusions.write_csv(&output.join(EXCLUSIONS))?;
        if self.has_outcomes {
            write_cohort(&output.join(COHORT), self.cohort, self.groups)?;
            let summary = CohortSummary::new(self.cohort, self.exclusions, self.groups);
            write_json(&output.join(SUMMARY), &summary)?;
        }
        if !self.risks.horizons.is_empty() {
            self.write_risk(output)?;
        }
        let published = self.published();
        write_json(&output.join(RECORD), &published)?;
        Ok(published)
    }

    /// Predicted risk of every sample, for people who open a table.
    fn write_risk(&self, output: &Path) -> Result<(), CliError> {
        let samples = &self.cohort.samples;
        let unit = if self.cohort.has_time_unit() { format!("_{}", self.cohort.time_unit) } else { String::new() };
        let mut columns = vec![
            ("sample_id".to_owned(), ColumnValues::text(samples.iter().map(|sample| &sample.sample_id))),
            ("subject_id".to_owned(), ColumnValues::text(samples.iter().map(|sample| &sample.subject_id))),
        ];
        for (horizon, risks) in self.risks.horizons.iter().zip(&self.risks.of_samples) {
            columns.push((format!("risk_at_{horizon}{unit}"), ColumnValues::Number(risks.clone())));
        }
        Ok(write_csv(&output.join(RISK), columns)?)
    }

    fn published(self) -> Published {
        let Self { cohort, exclusions, .. } = self;
        Published {
            version: VERSION,
            fairtte: env!("CARGO_PKG_VERSION"),
            prediction: self.kind,
            runs: self.runs,
            data: self.source,
            name: cohort.name.clone(),
            content_hash: cohort.provenance.as_ref().map(|provenance| provenance.content_hash.clone()),
            inputs_blake3: self.inputs,
            n_read: exclusions.n_read(),
            n_excluded: exclusions.n(),
            n_predicted: cohort.n(),
            n_labelled: if self.has_outcomes { cohort.n() } else { 0 },
            n_events: cohort.n_events(),
            incidence_of_cause: self.cause,
            n_positive: self.classes.map(|of| of.positive.iter().filter(|class| **class == Some(true)).count()),
            n_without_class: self.classes.map(|of| of.left_out().len()),
            time_unit: cohort.time_unit.clone(),
            time_factor: self.time_factor,
            levels: self.levels.to_vec(),
            n_training_images: self.n_training_images,
            n_times: self.task.is_none().then_some(self.grid.len()),
            last_time: self.grid.last().copied().filter(|_| self.task.is_none()),
            task: self.task,
            horizons: self.risks.horizons,
            notes: self.notes.to_vec(),
        }
    }
}

impl Published {
    /// What was predicted, and the command that evaluates it.
    pub(super) fn summary(&self, output: &Path, run: &Path) -> String {
        let mut text = String::new();
        let (samples, kind) = (counted(self.n_predicted, "sample"), self.prediction.name());
        let _ = writeln!(
            text,
            "{samples} of {} predicted ({kind}); rows read: {}, excluded: {}",
            self.name, self.n_read, self.n_excluded
        );
        if let Some((n_times, last)) = self.n_times.zip(self.last_time) {
            let _ = writeln!(text, "curves: {n_times} times up to {last} {}", self.time_unit);
        }
        if let Some((n_positive, n_without)) = self.n_positive.zip(self.n_without_class) {
            let _ = writeln!(text, "probabilities of a class: {n_positive} positive, {n_without} without a class");
        }
        let (output, folder) = (output.display(), quoted_path(output));
        let _ = writeln!(text, "written: {output}/{PREDICTIONS}");
        if !self.horizons.is_empty() {
            let _ = writeln!(text, "written: {output}/{RISK}");
        }
        let _ = if self.n_labelled == 0 {
            let what = if self.task.is_some() { "probabilities" } else { "curves" };
            write!(text, "there are no outcomes: the {what} cannot be evaluated")
        } else if self.prediction == Kind::OutOfFold || self.task.is_some() || self.incidence_of_cause.is_some() {
            write!(text, "evaluate: fairtte evaluate {folder}")
        } else {
            write!(text, "evaluate: fairtte evaluate {folder} --internal {}", quoted_path(run))
        };
        text
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
    use super::*;

    #[test]
    fn a_file_that_a_prediction_would_replace_is_refused_unless_a_prediction_was_interrupted() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path();
        std::fs::write(output.join("notes.txt"), "").unwrap();
        require_free(output).unwrap();
        for name in FILES {
            std::fs::write(output.join(name), "").unwrap();
            let error = require_free(output).unwrap_err().to_string();
            let expected = format!("{name}: there is already a file of this name here; choose another --output");
            assert!(error.ends_with(&expected), "{error}");
            std::fs::create_dir(output.join(WORK)).unwrap();
            require_free(output).unwrap();
            std::fs::remove_dir(output.join(WORK)).unwrap();
            std::fs::remove_file(output.join(name)).unwrap();
        }
        // A finished prediction is not overwritten, even if its blocks could not be removed.
        std::fs::create_dir(output.join(WORK)).unwrap();
        std::fs::write(output.join(RECORD), "").unwrap();
        assert!(require_free(output).unwrap_err().to_string().contains("there is already a prediction here"));
    }
}
