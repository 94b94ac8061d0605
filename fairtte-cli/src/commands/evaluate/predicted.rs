//! `fairtte evaluate DIR` of a folder that `fairtte predict` wrote: the curves of a trained run for other data.
//!
//! All samples with outcomes are evaluated, with the settings of the run if it is still there. The censoring curve is that
//! of its training part, or with `--censoring own` that of the other data; the one used is named on the page, on the terminal
//! and in the JSON. Pooled folds have no training part of their own, since that of a fold consists of samples that are evaluated:
//! their censoring curve and the fits of their baseline are those of the pooled samples. With `--internal` the page of `external.rs`
//! is written beside the report.

use std::collections::HashSet;
use std::path::Path;

use fairtte_data::cohort::Exclusions;
use fairtte_data::predictions::{CurveRepairs, PredictionTable, match_predictions};
use fairtte_data::{Cohort, Part, Split, read_cohort};
use fairtte_metrics::evaluation::unit_factor;
use fairtte_metrics::{CensoringCurve, CensoringTies, Groups, Outcomes, SampleId, SurvivalCurves};
use ndarray::Axis;

use super::notes::{about_censoring, fact_of_cause, grid_fact, note_on_causes};
use super::outside::Call;
use super::own_table::notes_on_groups;
use super::prediction_record::PredictionRecord;
use super::publish::{About, CensoringSample, Input, Target, show, write};
use super::{Outputs, baseline, classes, dry_run, external, facts_of_labels, flow_rows, settings, with_intersections};
use crate::CliError;
use crate::args::{CensoringOf, Evaluate};
use crate::plural::counted;
use crate::report::{FlowRow, Page};
use crate::run_folder::{OpenRun, RunFolder};
use crate::scored::{Scored, read_curves};
use crate::sensitivity::Sensitivity;

/// The samples of pooled folds, in words.
pub(super) const POOLED: &str = "the pooled samples";

/// The other data with their curves.
pub(super) struct Predicted {
    pub(super) folder: RunFolder,
    pub(super) record: PredictionRecord,
    pub(super) cohort: Cohort,
    /// Of the cohort file, then the intersections that the run reports.
    pub(super) groups: Vec<Groups>,
    predictions: PredictionTable,
    pub(super) notes: Vec<String>,
}

/// Samples whose censoring curve is used, and what they are.
pub(super) struct CensoringSource {
    pub(super) of: CensoringOf,
    pub(super) outcomes: Outcomes,
    /// In words, for a page.
    pub(super) words: &'static str,
}

impl CensoringSource {
    /// What the JSON says.
    pub(super) fn about(&self) -> CensoringSample {
        let fitted_on = if self.of == CensoringOf::Train { "train" } else { "evaluated" };
        about_censoring(&self.outcomes, fitted_on)
    }
}

/// A run whose training part is there.
pub(super) struct TrainedOn {
    pub(super) cohort: Cohort,
    pub(super) groups: Vec<Groups>,
    pub(super) split: Split,
}

impl TrainedOn {
    pub(super) fn read(folder: &RunFolder) -> Result<Self, CliError> {
        let (cohort, groups) = read_cohort(&folder.cohort())?;
        let split = Split::read_csv(&folder.split(), &cohort)?;
        Ok(Self { cohort, groups, split })
    }

    /// Who is censored in a part: an event of any cause is one.
    pub(super) fn outcomes(&self, part: Part) -> Result<Outcomes, CliError> {
        Ok(self.cohort.outcomes_of_any_cause(self.split.rows(part))?)
    }
}

/// Whether a folder was written by `fairtte predict`.
pub(super) fn is_predicted(path: &Path) -> bool {
    let folder = RunFolder::new(path);
    folder.prediction_record().exists() && !folder.split().exists()
}

/// Refuses the options that need a folder of `fairtte predict`.
pub(super) fn require_no_external(arguments: &Evaluate, path: &Path) -> Result<(), CliError> {
    let external = &arguments.external;
    let given = [("--internal", external.internal.is_some()), ("--censoring", external.censoring.is_some())];
    let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
    let message = format!(
        "{} has no predict.json, expected a folder that `fairtte predict` wrote for other data",
        path.display()
    );
    let help =
        "fairtte predict RUN --data OTHER.toml --output DIR writes one; then fairtte evaluate DIR --internal RUN";
    Err(CliError::setting(option, message, Some(help)))
}

/// Evaluates the other data in `path`, and compares them with the run of `--internal`.
pub(super) fn run(arguments: &Evaluate, path: &Path, outputs: &Outputs) -> Result<(), CliError> {
    if arguments.part.is_some() {
        let message = format!("{} has no parts: all of its samples are evaluated", path.display());
        return Err(CliError::setting("--part", message, None));
    }
    if arguments.external.internal.is_some() {
        refuse_what_is_not_compared(arguments)?;
    }
    let record = PredictionRecord::with_outcomes(&RunFolder::new(path))?;
    if record.task.is_some() {
        return classes::run_of_predicted(arguments, path, &record, outputs);
    }
    let mut predicted = Predicted::read(path, record)?;
    if arguments.external.internal.is_some() && predicted.cohort.cause.is_some() {
        let message =
            "two cohorts are compared by events of one kind, expected no --internal for one of several causes";
        return Err(CliError::setting("--internal", message.to_owned(), None));
    }
    let internal = arguments.external.internal.as_ref();
    let internal = internal.map(|run| external::Internal::read(run, &mut predicted)).transpose()?;
    let of_run = match &internal {
        Some(internal) => Some(internal.open.clone()),
        None => predicted.run(),
    };
    let settings = settings(of_run.as_ref().map(|run| &run.file.evaluation), &arguments.set, Some(&arguments.scores))?;
    let output = arguments.output.as_deref().unwrap_or(path);
    let target = if internal.is_some() { Target::external(output) } else { Target::named(output, outputs.part) };
    let target = target.with_exports(&arguments.exports);
    if arguments.dry_run {
        return dry_run(&format!("the data of {}", path.display()), arguments, &target, &settings);
    }
    if let Some(run) = &of_run {
        predicted.add_intersections(run)?;
    }
    let call = Call { target: &target, settings: &settings, outputs };
    let Some(internal) = internal else {
        return alone(arguments, &predicted, of_run.as_ref(), &call);
    };
    external::run(arguments, &predicted, &internal, &call)
}

/// Refuses what only the report of one evaluation has.
fn refuse_what_is_not_compared(arguments: &Evaluate) -> Result<(), CliError> {
    let is_set =
        |key: &str| arguments.set.iter().any(|set| set.split(['=', '.']).next().is_some_and(|name| name.trim() == key));
    let given = [
        ("--sensitivity", arguments.scores.sensitivity.sensitivity, "sensitivity to informative censoring"),
        ("sensitivity", is_set("sensitivity"), "sensitivity to informative censoring"),
        ("--baseline", !arguments.scores.baseline.is_empty(), "a baseline"),
        ("--permutations", arguments.scores.permutations.is_some(), "the gap by chance"),
        ("permutations", is_set("permutations"), "the gap by chance"),
        ("over-time", is_set("over-time"), "a curve over time"),
    ];
    let Some((option, _, what)) = given.into_iter().find(|(_, is_given, _)| *is_given) else { return Ok(()) };
    let message = format!("{what} stands beside one evaluation, expected no --internal");
    Err(CliError::setting(
        option,
        message,
        Some("without --internal, fairtte evaluate DIR reports the other data alone"),
    ))
}

/// The ordinary report of the other data.
fn alone(arguments: &Evaluate, predicted: &Predicted, run: Option<&OpenRun>, call: &Call<'_>) -> Result<(), CliError> {
    let mut notes = predicted.notes.clone();
    let is_pooled = predicted.record.is_pooled();
    let is_read = !is_pooled || arguments.external.censoring == Some(CensoringOf::Train);
    let trained_on = run.filter(|_| is_read).map(|run| TrainedOn::read(&run.folder)).transpose();
    let trained_on = match (trained_on, arguments.external.censoring) {
        (Ok(found), _) => found,
        (Err(error), Some(CensoringOf::Train)) => return Err(error),
        (Err(error), _) => {
            notes.push(format!("The training part of the run cannot be read: {error}."));
            None
        }
    };
    let source = predicted.censoring(arguments.external.censoring, trained_on.as_ref())?;
    if source.of == CensoringOf::Own && arguments.external.censoring.is_none() && !is_pooled {
        notes.push(
            "The run is not there: the censoring curve is fitted on the other data themselves, and not on the sample that \
             the model was trained on."
                .to_owned(),
        );
    }
    let scored = predicted.scored(&source)?;
    let report = scored.evaluate_outside(call.settings)?;
    let sensitivity = Sensitivity::required(&scored, call.settings)?;
    let cohorts = (&predicted.cohort, predicted.groups.as_slice());
    // A fit on the training part of a fold would have seen most of the pooled samples.
    let of_run = trained_on.as_ref().filter(|_| !is_pooled);
    let of_run = of_run.map(|run| (&run.cohort, run.groups.as_slice(), run.split.rows(Part::Train)));
    let baseline = match predicted.cohort.cause {
        Some(_) if arguments.scores.baseline.is_empty() => None,
        _ => {
            let file = run.map(|run| &run.file);
            baseline::of_cohorts(&arguments.scores.baseline, file, cohorts, of_run, &scored, call.settings)?
        }
    };
    notes.extend(note_on_causes(&report));
    notes.extend(notes_on_groups(&predicted.groups));
    let coverage = scored.coverage(call.settings.reading)?;
    notes.extend(coverage.sentences(call.settings.reading));
    let input = Predicted::input(&source, notes);
    let mut facts = predicted.facts();
    facts.extend(fact_of_cause(&report));
    facts.push(("censoring curve fitted on".to_owned(), source.fact()));
    facts.extend(facts_of_labels(&predicted.cohort));
    let warnings = Scored::with_censoring(&report, scored.with_warning(Vec::new(), "evaluated sample"));
    let title = format!("Predictions for {}", predicted.cohort.name);
    let page = Page {
        title: &title,
        subtitle: &predicted.subtitle(),
        facts: &facts,
        evaluation: &report,
        baseline: baseline.as_ref(),
        sensitivity: sensitivity.as_ref(),
        bias: None,
        time_unit: &predicted.cohort.time_unit,
        censoring: source.words,
        epochs: &[],
        monitor: "",
        flow: &predicted.flow(run)?,
        warnings: &warnings,
        notes: &input.notes,
        csv: &call.target.csv_name(),
    };
    let about = About { part: None, run: None, input: Some(&input), coverage };
    let text = write(call.target, &page, &about)?;
    show(call.target, &page, &text, call.outputs);
    Ok(())
}

impl CensoringSource {
    /// The samples in words, with their number.
    pub(super) fn fact(&self) -> String {
        let (n, events) = (counted(self.outcomes.n(), "sample"), counted(self.outcomes.n_events(), "event"));
        format!("{}: {n}, {events}", self.words)
    }
}

impl Predicted {
    fn read(path: &Path, record: PredictionRecord) -> Result<Self, CliError> {
        let folder = RunFolder::new(path);
        let (cohort, groups) = read_cohort(&folder.cohort())?;
        for run in &record.runs {
            let unit = run.time_unit.as_deref().unwrap_or(&cohort.time_unit);
            require_same_unit(&cohort, unit, &format!("the curves of {}", run.path.display()))?;
        }
        let (predictions, left_out) = of_cohort(read_curves(&folder.predictions(), &cohort)?, &cohort);
        let mut notes = record.notes.clone();
        if record.n_predicted > cohort.n() || left_out > 0 {
            let without = left_out.max(record.n_predicted.saturating_sub(cohort.n()));
            notes.push(format!(
                "{} without an outcome; {} evaluated.",
                if without == 1 {
                    "1 predicted sample is".to_owned()
                } else {
                    format!("{without} predicted samples are")
                },
                if cohort.n() == 1 { "1 sample is".to_owned() } else { format!("{} samples are", cohort.n()) },
            ));
        }
        if record.runs.len() > 1 {
            let n = record.runs.len();
            notes.push(format!("The curves come from {n} runs: {}.", record.prediction));
        }
        Ok(Self { folder, record, cohort, groups, predictions, notes })
    }

    /// The first run behind the curves that is still there.
    fn run(&mut self) -> Option<OpenRun> {
        let mut problem = None;
        for by in &self.record.runs {
            match OpenRun::read(&by.path) {
                Ok(run) => return Some(run),
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        let problem = problem.map_or_else(String::new, |error| format!(" ({error})"));
        self.notes.push(format!("The settings are the defaults, because the run cannot be read{problem}."));
        None
    }

    fn add_intersections(&mut self, run: &OpenRun) -> Result<(), CliError> {
        let known: Vec<&str> = self.groups.iter().map(Groups::attribute).collect();
        let mut file = run.file.clone();
        file.groups.intersections.retain(|names| names.iter().all(|name| known.contains(&name.as_str())));
        self.groups = with_intersections(std::mem::take(&mut self.groups), &file)?;
        Ok(())
    }

    /// The samples whose censoring curve is used: those requested, otherwise the training part if it is there; of pooled folds the
    /// pooled samples.
    pub(super) fn censoring(
        &self,
        asked: Option<CensoringOf>,
        run: Option<&TrainedOn>,
    ) -> Result<CensoringSource, CliError> {
        let asked = asked.or_else(|| self.record.is_pooled().then_some(CensoringOf::Own));
        match (asked, run) {
            (Some(CensoringOf::Train) | None, Some(run)) => {
                require_same_unit(&self.cohort, &run.cohort.time_unit, "the run")?;
                let outcomes = run.outcomes(Part::Train)?;
                let words = if self.record.is_pooled() {
                    "the training part of the first fold"
                } else {
                    "the training part of the run"
                };
                Ok(CensoringSource { of: CensoringOf::Train, outcomes, words })
            }
            (Some(CensoringOf::Train), None) => {
                let message = "the run that predicted these data is not there any more, expected `own`".to_owned();
                Err(CliError::setting("--censoring", message, None))
            }
            (Some(CensoringOf::Own), _) | (None, None) => {
                let outcomes = self.cohort.outcomes_of_any_cause(&self.cohort.all_rows())?;
                let words = if self.record.is_pooled() { POOLED } else { "the other data" };
                Ok(CensoringSource { of: CensoringOf::Own, outcomes, words })
            }
        }
    }

    /// All samples with their curves.
    pub(super) fn scored(&self, source: &CensoringSource) -> Result<Scored, CliError> {
        let rows = self.cohort.all_rows();
        let order = match_predictions(&self.cohort, &rows, &self.predictions.samples)?;
        let survival = self.predictions.survival.select(Axis(0), &order);
        Ok(Scored {
            cause: self.cohort.cause,
            rows,
            groups: self.groups.clone(),
            curves: SurvivalCurves::new(self.predictions.grid.clone(), survival)?,
            censoring: CensoringCurve::fit(&source.outcomes, CensoringTies::EventsFirst)?,
            cohort: self.cohort.clone(),
        })
    }

    fn input(source: &CensoringSource, notes: Vec<String>) -> Input {
        Input {
            has_subjects: true,
            censoring: source.about(),
            repair: "none",
            repairs: CurveRepairs::default(),
            ignored_columns: Vec::new(),
            title: None,
            notes,
        }
    }

    /// What is evaluated, in words.
    fn subtitle(&self) -> String {
        let by = self.record.by();
        if self.record.is_pooled() {
            return format!("pooled test parts of {by}");
        }
        format!("external data: all samples with outcomes, predicted by {by}")
    }

    pub(super) fn facts(&self) -> Vec<(String, String)> {
        let what = if self.record.is_pooled() { "pooled folds" } else { "external data" };
        let mut facts = vec![(what.to_owned(), self.folder.path().display().to_string())];
        facts.extend(self.record.data.iter().map(|data| ("run file of the data".to_owned(), data.clone())));
        facts.push(("predicted by".to_owned(), self.record.by()));
        facts.push(grid_fact(&self.predictions.grid));
        facts.push(("fairtte".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
        facts
    }

    fn flow(&self, run: Option<&OpenRun>) -> Result<Vec<FlowRow>, CliError> {
        let path = self.folder.exclusions();
        if !path.exists() {
            return Ok(Vec::new());
        }
        let reasons = self.cohort.provenance.as_ref().map(|provenance| provenance.reasons.as_slice());
        let exclusions = Exclusions::read_csv(&path, self.cohort.n(), reasons.unwrap_or_default())?;
        Ok(flow_rows(&exclusions, run.is_some_and(|run| run.file.is_tabular())))
    }
}

/// The curves of the samples of `cohort`, and how many others there are.
fn of_cohort(table: PredictionTable, cohort: &Cohort) -> (PredictionTable, usize) {
    let known: HashSet<&SampleId> = cohort.samples.iter().map(|sample| &sample.sample_id).collect();
    let rows: Vec<usize> = (0..table.samples.len()).filter(|row| known.contains(&table.samples[*row])).collect();
    let left_out = table.samples.len() - rows.len();
    if left_out == 0 {
        return (table, 0);
    }
    let samples = rows.iter().map(|row| table.samples[*row].clone()).collect();
    let survival = table.survival.select(Axis(0), &rows);
    (PredictionTable { samples, survival, ..table }, left_out)
}

/// Requires that the times of the other data have the unit of `other`, where both are known.
pub(super) fn require_same_unit(cohort: &Cohort, unit: &str, whose: &str) -> Result<(), CliError> {
    let other = Cohort { time_unit: unit.to_owned(), ..cohort.clone() };
    if cohort.time_unit == unit || !cohort.has_time_unit() || !other.has_time_unit() {
        return Ok(());
    }
    let own = &cohort.time_unit;
    let message = format!("the times of {} are in {own}, those of {whose} in {unit}, expected one unit", cohort.name);
    let help = match unit_factor(own, unit) {
        Some(factor) => format!("predict again with the times of the other data in {unit}: --time-factor {factor}"),
        None => format!("predict again with the times of the other data in {unit} (--time-factor)"),
    };
    Err(CliError::setting("time-unit", message, Some(&help)))
}
