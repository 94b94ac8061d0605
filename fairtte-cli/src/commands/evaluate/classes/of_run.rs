//! The class that a run predicted: the same numbers and page as those of any other model, from the files of the run.
//!
//! The threshold is the one with the highest F1 in the validation part. Where the class is made from times, the weights for
//! censoring are those of the whole training part, with those who have no class.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use fairtte_data::cohort::{Classes, Exclusions};
use fairtte_data::predictions::{ProbabilityTable, match_predictions, read_probabilities};
use fairtte_data::{Cohort, Part, Sample, Split, read_cohort};
use fairtte_metrics::classification::{ClassPredictions, best_f1_threshold};
use fairtte_metrics::{Groups, Outcomes, SubjectId};

use super::super::publish::Target;
use super::super::{Outputs, dry_run, facts_of_labels, facts_of_parts, facts_of_run, with_intersections};
use super::Evaluated;
use super::publish::{Source, publish};
use super::read::Tables;
use super::settings::{Settings, Threshold, Validation};
use super::trained::{Censoring, Trained};
use crate::CliError;
use crate::args::Evaluate;
use crate::plural::counted;
use crate::run_folder::OpenRun;
use crate::scored::restrict;

/// `fairtte evaluate RUN` of a run that predicts a class.
pub(in super::super) fn run_of_arguments(
    arguments: &Evaluate,
    open: &OpenRun,
    outputs: &Outputs,
) -> Result<(), CliError> {
    let in_folder = || Target::in_folder(&open.folder, outputs.part);
    let target = arguments.output.as_ref().map_or_else(in_folder, |output| Target::named(output, outputs.part));
    let target = target.with_exports(&arguments.exports);
    let settings = Settings::of_run(arguments, &open.file.evaluation, horizon_of(open))?;
    if arguments.dry_run {
        let what = format!("the {} part of {}", outputs.part.name(), open.folder.path().display());
        return dry_run(&what, arguments, &target, &settings);
    }
    evaluate(open, settings, &target, outputs)
}

/// Evaluates a run after its training.
pub(in super::super) fn evaluate_run(open: &OpenRun, target: &Target, outputs: &Outputs) -> Result<(), CliError> {
    let settings = Settings::after_training(&open.file.evaluation, horizon_of(open))?;
    evaluate(open, settings, target, outputs)
}

fn horizon_of(open: &OpenRun) -> Option<f64> {
    open.file.task.binary.map(|binary| binary.horizon)
}

fn evaluate(open: &OpenRun, mut settings: Settings, target: &Target, outputs: &Outputs) -> Result<(), CliError> {
    let saved = Saved::read(open, &open.folder.predictions())?;
    let tables = saved.tables(open, outputs.part)?;
    if settings.threshold.chosen == "default" {
        let subjects: HashSet<&SubjectId> = tables.subjects.iter().collect();
        settings.threshold = saved.threshold(open, |sample| subjects.contains(&sample.subject_id))?;
        settings.class.threshold = settings.threshold.value;
    }
    let evaluated = Evaluated::new(&tables, &settings, 0)?;
    let warnings = open.folder.warnings()?;
    let source = Source { title: Some(&open.file.name), part: outputs.part.name(), warnings: &warnings };
    publish(&source, &tables, &evaluated, &settings, target, outputs)
}

/// The files of a run.
pub(super) struct Saved {
    pub(super) cohort: Cohort,
    groups: Vec<Groups>,
    pub(super) split: Split,
    classes: Classes,
    /// File of the probabilities.
    pub(super) path: PathBuf,
    predictions: ProbabilityTable,
}

impl Saved {
    /// Those of a run, with the probabilities in `predictions`.
    pub(super) fn read(open: &OpenRun, predictions: &Path) -> Result<Self, CliError> {
        let OpenRun { file: run, folder } = open;
        let (cohort, groups) = read_cohort(&folder.cohort())?;
        let split = Split::read_csv(&folder.split(), &cohort)?;
        let groups = with_intersections(groups, run)?;
        let classes = run.classes(&cohort)?;
        let classes = classes.ok_or_else(|| CliError::Bug("a run without a class was evaluated as one".to_owned()))?;
        let (path, predictions) = (predictions.to_owned(), read_probabilities(predictions)?);
        Ok(Self { cohort, groups, split, classes, path, predictions })
    }

    /// The probabilities of `rows`.
    fn probability(&self, rows: &[usize]) -> Result<Vec<f64>, CliError> {
        let order = match_predictions(&self.cohort, rows, &self.predictions.samples)?;
        Ok(order.into_iter().map(|row| self.predictions.probability[row]).collect())
    }

    /// The rows of a part that have a class.
    fn with_class(&self, part: Part) -> (Vec<usize>, Vec<bool>) {
        let rows = self.split.rows(part).iter();
        rows.filter_map(|row| Some((*row, self.classes.positive[*row]?))).unzip()
    }

    /// The samples of a part.
    ///
    /// # Errors
    /// As [`Trained::tables`].
    pub(super) fn tables(&self, open: &OpenRun, part: Part) -> Result<Tables, CliError> {
        let Self { cohort, groups, split, classes, .. } = self;
        let run = &open.file;
        let all = split.rows(part);
        let mut of_part = cohort.select(all);
        of_part.name = format!("{} part of {}", part.name(), cohort.name);
        let censoring = classes.horizon.map(|horizon| {
            let outcomes = cohort.outcomes(split.rows(Part::Train))?;
            Ok::<_, CliError>(Censoring { horizon, outcomes, fitted_on: "train" })
        });
        let trained = Trained {
            name: run.name.clone(),
            path: self.path.clone(),
            cohort: of_part,
            groups: groups.iter().map(|of| restrict(of, all)).collect::<Result<_, CliError>>()?,
            positive: all.iter().map(|row| classes.positive[*row]).collect(),
            probability: self.probability(all)?,
            censoring: censoring.transpose()?,
        };
        Ok(Tables { facts: self.facts(open)?, ..trained.tables()? })
    }

    fn facts(&self, open: &OpenRun) -> Result<Vec<(String, String)>, CliError> {
        let OpenRun { file: run, folder } = open;
        let Self { cohort, split, classes, .. } = self;
        let mut facts = facts_of_run(run);
        facts.retain(|(name, _)| name != "time intervals");
        facts.extend(facts_of_labels(cohort));
        let reasons = cohort.provenance.as_ref().map(|provenance| provenance.reasons.as_slice()).unwrap_or_default();
        let mut exclusions = Exclusions::read_csv(&folder.exclusions(), cohort.n(), reasons)?;
        exclusions.extend(classes.exclusions(cohort));
        let n_kept = exclusions.n_read() - exclusions.n();
        let rows = format!(
            "{} read, {n_kept} with a class, left out: {}",
            counted(exclusions.n_read(), "row"),
            exclusions.summary()
        );
        facts.push(("rows".to_owned(), rows));
        if classes.horizon.is_none() {
            facts.extend(facts_of_parts(cohort, split).into_iter().map(of_positives));
        } else {
            facts.extend(Part::ALL.map(|part| self.fact_of_part(part)));
        }
        if let Some(train) = classes.horizon.map(|_| cohort.outcomes(split.rows(Part::Train))).transpose()? {
            facts.push(("censoring curve fitted on".to_owned(), censoring_fact(&train)));
        }
        let epochs = folder.epochs()?;
        if let Some(best) = epochs.iter().rev().find(|epoch| epoch.best) {
            let n = counted(epochs.len(), "epoch");
            let text = format!("{n}, the weights are those of epoch {}, chosen by {}", best.epoch, monitor(open));
            facts.push(("training".to_owned(), text));
        }
        Ok(facts)
    }

    fn fact_of_part(&self, part: Part) -> (String, String) {
        let (rows, positive) = self.with_class(part);
        let n_positive = positive.iter().filter(|positive| **positive).count();
        let n_left_out = self.split.rows(part).len() - rows.len();
        let (samples, subjects) = (counted(rows.len(), "sample"), counted(self.split.n_subjects(part), "subject"));
        let text = format!("{samples} of {subjects}, {n_positive} positive, {n_left_out} left out without a class");
        (format!("{} part", part.name()), text)
    }

    /// The threshold with the highest F1 in the validation part, of whose samples some may be among those that are evaluated.
    pub(super) fn threshold(&self, open: &OpenRun, is_shared: impl Fn(&Sample) -> bool) -> Result<Threshold, CliError> {
        let (rows, positive) = self.with_class(Part::Validation);
        let n_positive = positive.iter().filter(|positive| **positive).count();
        let n_left_out = self.split.rows(Part::Validation).len() - rows.len();
        let predictions = ClassPredictions::new(self.probability(&rows)?, positive)?;
        let best = best_f1_threshold(&predictions)?;
        let n_shared = rows.iter().filter(|row| is_shared(&self.cohort.samples[**row])).count();
        let validation = Validation {
            file: format!("the validation part of {}", open.folder.path().display()).into(),
            n: rows.len(),
            n_positive,
            n_left_out: self.classes.horizon.map(|_| n_left_out),
            f1: best.f1,
            n_shared,
        };
        Ok(Threshold { value: best.threshold, chosen: "f1-on-validation", validation: Some(validation) })
    }
}

fn monitor(open: &OpenRun) -> String {
    open.file.written().word("training.monitor")
}

fn censoring_fact(train: &Outcomes) -> String {
    format!("the training part: {}, {}", counted(train.n(), "sample"), counted(train.n_events(), "event"))
}

/// An event of a class is a positive sample.
fn of_positives((name, text): (String, String)) -> (String, String) {
    let text = text.trim_end_matches(" events").trim_end_matches(" event").to_owned();
    (name, format!("{text} positive"))
}
