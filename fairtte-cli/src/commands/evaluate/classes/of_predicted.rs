//! The class of samples that a run was not trained on, in a folder of `fairtte predict`: the generalisation of a model to other
//! data, with the numbers and the page of every class.
//!
//! The threshold is the one with the highest F1 in the validation part of the run; the weights for censoring are those of its
//! training part. Where the run is gone, and of several runs the threshold, the page says what takes their place.

use std::collections::HashSet;
use std::path::Path;

use fairtte_data::predictions::{match_predictions, read_probabilities};
use fairtte_data::{Cohort, Part, Sample, read_cohort};
use fairtte_metrics::{EvaluationSettings, Groups, SampleId, SubjectId};

use super::super::own_table::notes_on_groups;
use super::super::predicted::{POOLED, require_same_unit};
use super::super::prediction_record::PredictionRecord;
use super::super::publish::Target;
use super::super::{Outputs, dry_run, facts_of_labels, with_intersections};
use super::Evaluated;
use super::external::{self, Compared, Internal};
use super::of_run::Saved;
use super::publish::{Source, publish};
use super::read::Tables;
use super::settings::Settings;
use super::trained::{Censoring, Trained};
use crate::CliError;
use crate::args::{CensoringOf, Evaluate};
use crate::plural::counted;
use crate::run_folder::{OpenRun, RunFolder};

/// `fairtte evaluate DIR` of a folder whose runs predict a class; with `--internal` beside the test part of a run.
pub(in super::super) fn run_of_predicted(
    arguments: &Evaluate,
    path: &Path,
    record: &PredictionRecord,
    outputs: &Outputs,
) -> Result<(), CliError> {
    let folder = RunFolder::new(path);
    let mut notes = record.notes.clone();
    let horizon = record.task.as_ref().and_then(|task| task.binary).map(|binary| binary.horizon);
    let internal = arguments.external.internal.as_deref();
    let internal = internal.map(|run| Internal::open(run, record, &folder, horizon, &mut notes)).transpose()?;
    let mut open = internal.as_ref().map(|internal| internal.open.clone());
    if open.is_none() {
        match OpenRun::read(&record.runs[0].path) {
            Ok(found) => open = Some(found),
            Err(error) => {
                notes.push(format!("The settings are the defaults, because the run cannot be read ({error})."));
            }
        }
    }
    let usual = EvaluationSettings::default();
    let base = open.as_ref().map_or(&usual, |open| &open.file.evaluation);
    let settings = Settings::of_run(arguments, base, horizon)?;
    let output = arguments.output.as_deref().unwrap_or(path);
    let target = if internal.is_some() { Target::external(output) } else { Target::named(output, outputs.part) };
    let target = target.with_exports(&arguments.exports);
    if arguments.dry_run {
        return dry_run(&format!("the data of {}", path.display()), arguments, &target, &settings);
    }
    let saved = open.map(|open| {
        let predictions = internal.as_ref().map_or_else(|| open.folder.predictions(), |of| of.predictions.clone());
        let saved = Saved::read(&open, &predictions)?;
        Ok::<_, CliError>((open, saved))
    });
    let saved = saved.transpose()?;
    let call = Call { arguments, folder: &folder, record, horizon, saved: saved.as_ref() };
    let (mut tables, mut settings) = (call.tables(notes)?, settings);
    if settings.threshold.chosen == "default" {
        call.choose_threshold(internal.is_some(), &mut tables, &mut settings)?;
    }
    if let (Some(_), Some((open, saved))) = (&internal, &saved) {
        return external::run(&Compared { open, saved, record, folder: &folder, tables }, &settings, &target, outputs);
    }
    let evaluated = Evaluated::new(&tables, &settings, 0)?;
    let title = format!("Predictions for {}", tables.cohort.name);
    let source = Source { title: Some(&title), part: "all", warnings: &[] };
    publish(&source, &tables, &evaluated, &settings, &target, outputs)
}

/// The other data, and the run if it is still there.
struct Call<'a> {
    arguments: &'a Evaluate,
    folder: &'a RunFolder,
    record: &'a PredictionRecord,
    horizon: Option<f64>,
    saved: Option<&'a (OpenRun, Saved)>,
}

impl Call<'_> {
    /// What is evaluated.
    fn tables(&self, mut notes: Vec<String>) -> Result<Tables, CliError> {
        let (cohort, mut groups) = read_cohort(&self.folder.cohort())?;
        if let Some((open, _)) = self.saved {
            groups = with_known_intersections(groups, open)?;
        }
        let predictions = read_probabilities(&self.folder.predictions())?;
        let order = match_predictions(&cohort, &cohort.all_rows(), &predictions.samples)?;
        let censoring = self.censoring(&cohort, &mut notes)?;
        notes.extend(notes_on_groups(&groups));
        let facts = facts(self.folder, self.record, &cohort, censoring.as_ref());
        let trained = Trained {
            name: self.record.by(),
            path: self.folder.predictions(),
            positive: cohort.classes(self.horizon)?.positive,
            probability: order.into_iter().map(|row| predictions.probability[row]).collect(),
            groups,
            cohort,
            censoring,
        };
        Ok(Tables { notes, facts, ..trained.tables()? })
    }

    /// The sample of the censoring curve, where the class is made from times.
    fn censoring(&self, cohort: &Cohort, notes: &mut Vec<String>) -> Result<Option<Censoring>, CliError> {
        let asked = self.arguments.external.censoring;
        let refused = |message: &str| Err(CliError::setting("--censoring", message.to_owned(), None));
        // A run on a column of labels has no times of which a curve could be that of the censoring.
        let trained = self.saved.filter(|(open, _)| open.file.task.binary.is_some());
        let has_no_times = self.saved.is_some() && trained.is_none();
        match (self.horizon, trained, asked) {
            (None, _, None) => Ok(None),
            (None, _, Some(_)) => refused("the class was read and not made from times, so that nobody is censored"),
            // The training parts of the folds are the pooled samples.
            (Some(horizon), Some((_, saved)), asked)
                if asked == Some(CensoringOf::Train) || asked.is_none() && !self.record.is_pooled() =>
            {
                require_same_unit(cohort, &saved.cohort.time_unit, "the run")?;
                let outcomes = saved.cohort.outcomes(saved.split.rows(Part::Train))?;
                Ok(Some(Censoring { horizon, outcomes, fitted_on: "train" }))
            }
            (Some(_), None, Some(CensoringOf::Train)) if has_no_times => {
                refused("the run predicts a class that was read from a column and has no times, expected `own`")
            }
            (Some(_), None, Some(CensoringOf::Train)) => {
                refused("the run that predicted these data is not there any more, expected `own`")
            }
            (Some(horizon), _, _) => {
                let why = if has_no_times { "The run has no times: the" } else { "The" };
                notes.push(format!(
                    "{why} censoring curve of the weighted AUC is fitted on the predicted samples themselves."
                ));
                Ok(Some(Censoring { horizon, outcomes: cohort.outcomes(&cohort.all_rows())?, fitted_on: "evaluated" }))
            }
        }
    }

    /// That of the validation part of the run; of several runs there is none unless one of them `is_internal`.
    fn choose_threshold(
        &self,
        is_internal: bool,
        tables: &mut Tables,
        settings: &mut Settings,
    ) -> Result<(), CliError> {
        match self.saved {
            Some((open, saved)) if is_internal || self.record.runs.len() == 1 => {
                // People of other data may have the same names.
                let own: HashSet<(&SampleId, &SubjectId)> = tables.ids.iter().zip(&tables.subjects).collect();
                let is_shared = |sample: &Sample| own.contains(&(&sample.sample_id, &sample.subject_id));
                settings.threshold = saved.threshold(open, is_shared)?;
                settings.class.threshold = settings.threshold.value;
            }
            _ => tables.notes.push(format!(
                "The threshold is {}, because no validation part has these predictions: --threshold sets another.",
                settings.threshold.value
            )),
        }
        Ok(())
    }
}

/// The intersections that the run reports, as far as the other data have their attributes.
fn with_known_intersections(groups: Vec<Groups>, open: &OpenRun) -> Result<Vec<Groups>, CliError> {
    let known: Vec<&str> = groups.iter().map(Groups::attribute).collect();
    let mut file = open.file.clone();
    file.groups.intersections.retain(|names| names.iter().all(|name| known.contains(&name.as_str())));
    with_intersections(groups, &file)
}

/// What a censoring curve was fitted on, in words.
pub(super) fn of_sample(fitted_on: &str) -> &'static str {
    if fitted_on == "train" { "the training part of the run" } else { "the other data" }
}

fn facts(
    folder: &RunFolder,
    record: &PredictionRecord,
    cohort: &Cohort,
    censoring: Option<&Censoring>,
) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let what = if record.is_pooled() { "pooled folds" } else { "external data" };
    let mut facts = vec![fact(what, folder.path().display().to_string())];
    facts.extend(record.data.iter().map(|data| fact("run file of the data", data.clone())));
    facts.push(fact("predicted by", record.by()));
    facts.extend(facts_of_labels(cohort));
    facts.extend(censoring.map(|censoring| {
        let is_pooled = record.is_pooled() && censoring.fitted_on == "evaluated";
        let whose = if is_pooled { POOLED } else { of_sample(censoring.fitted_on) };
        let (n, events) = (censoring.outcomes.n(), counted(censoring.outcomes.n_events(), "event"));
        fact("censoring curve fitted on", format!("{whose}: {}, {events}", counted(n, "sample")))
    }));
    facts.push(fact("fairtte", env!("CARGO_PKG_VERSION").to_owned()));
    facts
}
