//! `fairtte evaluate`: step 10 from saved files alone, for our runs and for the curves of any other model.

mod baseline;
mod classes;
mod cohort_attributes;
mod external;
mod fit;
pub(super) mod masks;
mod models;
mod notes;
mod outside;
pub(super) mod own_table;
mod predicted;
mod prediction_record;
mod publish;
mod published;

use std::path::Path;
use std::time::Instant;

use fairtte_data::cohort::{Exclusions, FlowStep};
use fairtte_data::shift::ShiftRecord;
use fairtte_data::{Cohort, Part, Split, read_cohort};
use fairtte_metrics::{EvaluationReport, EvaluationSettings, Groups};
use fairtte_records::Monitor;
use serde::{Deserialize, Serialize};

pub(crate) use self::classes::{SETTINGS_OF_CLASSES, warnings_of_class};
use self::fit::facts_of_fit;
use self::notes::{fact_of_cause, note_on_causes};
pub(super) use self::outside::{attributes_to_compare, with_help, with_pairs};
pub(super) use self::prediction_record::PredictionRecord;
use self::publish::{About, Target, publish};
pub(super) use self::published::{Published, PublishedThreshold};
use super::{print, print_json, use_threads};
use crate::CliError;
use crate::args::{Evaluate, EvaluatedPart, Scores};
use crate::merged::Merged;
use crate::plural::counted;
use crate::prepared::choose_groups;
use crate::progress::say;
use crate::report::bias::BiasSection;
use crate::report::{EpochPoint, FlowRow, Page};
use crate::run_file::RunFile;
use crate::run_folder::{OpenRun, RunFolder, read_json};
use crate::scored::{ESTIMATOR_ADVICE, NETWORK_ADVICE, Scored, read_curves};
use crate::sensitivity::Sensitivity;
use crate::shell::quoted_path;

/// How results are shown.
pub(super) struct Outputs {
    pub(super) shown: Shown,
    pub(super) part: Part,
    pub(super) started: Instant,
}

/// The part of a result that is printed; its files are always written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Table,
    Json,
    /// Nothing: the run is one of many.
    Nothing,
    /// Nothing, and the run is not evaluated either: it is scored elsewhere.
    #[cfg(feature = "train")]
    Unscored,
}

impl Shown {
    pub(super) fn json(json: bool) -> Self {
        if json { Self::Json } else { Self::Table }
    }
}

pub(super) fn run(arguments: &Evaluate) -> Result<(), CliError> {
    use_threads(arguments.threads)?;
    let part = match arguments.part {
        Some(EvaluatedPart::Validation) => Part::Validation,
        Some(EvaluatedPart::Test) | None => Part::Test,
    };
    let outputs = Outputs { shown: Shown::json(arguments.json), part, started: Instant::now() };
    if let Some(output) = &arguments.output {
        Target::named(output, part).require_folder()?;
    }
    match &arguments.run {
        Some(path) if path.is_file() => {
            let file = quoted_path(path);
            let problem = format!(
                "this is a file, expected the folder of a run; `fairtte evaluate --predictions {file} --output DIR` scores the curves of a \
                 table"
            );
            Err(CliError::RunFolder { path: path.clone(), problem })
        }
        Some(path) if predicted::is_predicted(path) => predicted::run(arguments, path, &outputs),
        Some(path) => {
            predicted::require_no_external(arguments, path)?;
            let mut open = OpenRun::read(path)?;
            if !open.folder.done().exists() && !open.file.is_of_masks() {
                open.folder.require_trained(&open.folder.predictions())?;
            }
            if open.file.is_of_class() {
                return classes::run_of_arguments(arguments, &open, &outputs);
            }
            if open.file.is_of_masks() {
                return masks::run_of_arguments(arguments, &open, &outputs);
            }
            open.file.evaluation = settings(Some(&open.file.evaluation), &arguments.set, Some(&arguments.scores))?;
            let in_folder = || Target::in_folder(&open.folder, part);
            let target = arguments.output.as_ref().map_or_else(in_folder, |output| Target::named(output, part));
            let target = target.with_exports(&arguments.exports);
            if arguments.dry_run {
                let what = format!("the {} part of {}", part.name(), path.display());
                return dry_run(&what, arguments, &target, &open.file.evaluation);
            }
            let asked = Asked {
                covariates: &arguments.scores.baseline,
                evaluate: Scored::evaluate_at_given_times,
                sensitivity: Sensitivity::required,
            };
            evaluate_into(&open, &target, &outputs, &asked)
        }
        None => outside::run(arguments, &outputs),
    }
}

/// Prints the arguments, the resolved settings and the files that would be written.
fn dry_run(what: &str, arguments: &Evaluate, target: &Target, settings: &impl Serialize) -> Result<(), CliError> {
    #[derive(Serialize)]
    struct Planned<'a, S> {
        would: String,
        evaluation: &'a Path,
        report: &'a Path,
        arguments: &'a Evaluate,
        settings: &'a S,
    }
    let (evaluation, report) = (target.evaluation(), target.report());
    let planned = Planned { would: format!("evaluate {what}"), evaluation, report, arguments, settings };
    if arguments.json {
        return print_json(&planned);
    }
    print(toml::to_string(&planned).map_err(|error| CliError::Bug(error.to_string()))?.trim_end());
    say(format!("dry run: would evaluate {what} into {}", report.display()));
    Ok(())
}

/// The settings of a run, or the defaults, changed by `--set` and by the arguments.
pub(super) fn settings(
    base: Option<&EvaluationSettings>,
    sets: &[String],
    scores: Option<&Scores>,
) -> Result<EvaluationSettings, CliError> {
    let mut merged = Merged::default();
    if let Some(base) = base {
        let text = toml::to_string(base).map_err(|error| CliError::Bug(error.to_string()))?;
        merged.add_text(&text, "run.toml")?;
    }
    merged.set_all(sets)?;
    let mut settings: EvaluationSettings = merged.into_config()?;
    if let Some(scores) = scores {
        scores.apply(&mut settings);
    }
    settings.validate()?;
    Ok(settings)
}

/// Evaluates a run folder from its saved files and writes `evaluation.json` and `report.html` into it.
pub(super) fn evaluate_run(open: &OpenRun, outputs: &Outputs) -> Result<(), CliError> {
    let asked = Asked { covariates: &[], evaluate: Scored::evaluate, sensitivity: Sensitivity::new };
    evaluate_into(open, &Target::in_folder(&open.folder, outputs.part), outputs, &asked)
}

/// What evaluates predictions.
type Evaluation<T> = fn(&Scored, &EvaluationSettings) -> Result<T, CliError>;

/// What is computed, and what is an error: after a training, which is not lost, less is.
struct Asked<'a> {
    /// Of the baseline, empty for those of the run.
    covariates: &'a [String],
    /// [`Scored::evaluate`] after a training, also where the report cannot use the given times.
    evaluate: Evaluation<EvaluationReport>,
    /// [`Sensitivity::new`] after a training, also where there is none.
    sensitivity: Evaluation<Option<Sensitivity>>,
}

fn evaluate_into(open: &OpenRun, target: &Target, outputs: &Outputs, asked: &Asked<'_>) -> Result<(), CliError> {
    let OpenRun { file: run, folder } = open;
    if run.is_of_class() {
        return classes::evaluate_run(open, target, outputs);
    }
    if run.is_of_masks() {
        return masks::evaluate_run(open, target, outputs);
    }
    let (cohort, groups) = read_cohort(&folder.cohort())?;
    let split = Split::read_csv(&folder.split(), &cohort)?;
    let groups = with_intersections(groups, run)?;
    let predictions = read_curves(&folder.predictions(), &cohort)?;
    let scored = Scored::new(predictions, &cohort, &groups, Some(&split), outputs.part)?;
    let report = (asked.evaluate)(&scored, &run.evaluation)?;
    let sensitivity = (asked.sensitivity)(&scored, &run.evaluation)?;
    let covariates = if asked.covariates.is_empty() { &run.baseline.covariates } else { asked.covariates };
    let data = (&cohort, groups.as_slice(), Some(&split));
    let baseline = match cohort.cause {
        // A model of one kind of event says nothing about the incidence of one of several.
        Some(_) if asked.covariates.is_empty() => None,
        _ => baseline::of_cohort(covariates, Some(run), data, &scored, &run.evaluation)?,
    };
    let coverage = scored.coverage(run.evaluation.reading)?;
    let reasons = cohort.provenance.as_ref().map(|provenance| provenance.reasons.as_slice()).unwrap_or_default();
    let exclusions = Exclusions::read_csv(&folder.exclusions(), cohort.n(), reasons)?;
    let epochs = folder.epochs()?;
    let mut facts = facts_of_run(run);
    facts.extend(fact_of_cause(&report));
    facts.extend(facts_of_fit(open, run.evaluation.level)?);
    facts.extend(fact_of_time_grid(folder)?);
    facts.extend(facts_of_labels(&cohort));
    facts.extend(facts_of_shift(folder)?);
    facts.extend(facts_of_parts(&cohort, &split));
    if !epochs.is_empty() {
        let (total, data) = epochs.iter().fold((0.0, 0.0), |(t, d), e| (t + e.seconds, d + e.data_seconds));
        let share = 100.0 * data / total.max(f64::MIN_POSITIVE);
        facts.push(("training time".to_owned(), format!("{total:.1} s, {share:.1} % of it for making batches")));
    }
    let chosen = epochs.iter().rev().find(|epoch| epoch.best).map(|epoch| epoch.epoch);
    let epochs: Vec<EpochPoint> = epochs
        .iter()
        .map(|epoch| EpochPoint {
            epoch: epoch.epoch,
            train_loss: epoch.train_loss,
            validation_nll: epoch.validation.nll,
            validation_c_td: epoch.validation.value(Monitor::CTd),
            best: Some(epoch.epoch) == chosen,
        })
        .collect();
    let flow = flow_rows(&exclusions, run.is_tabular());
    let section = folder.bias_section();
    let bias: Option<BiasSection> = if section.exists() { Some(read_json(&section)?) } else { None };
    let sample = format!("{} part", outputs.part.name());
    let advice = if run.estimator.is_some() { ESTIMATOR_ADVICE } else { NETWORK_ADVICE };
    let warnings =
        Scored::with_ranking(&report, &sample, Some(advice), scored.with_warning(folder.warnings()?, &sample));
    let warnings = Scored::with_censoring(&report, warnings);
    let mut notes: Vec<String> = note_on_causes(&report).into_iter().collect();
    notes.extend(coverage.sentences(run.evaluation.reading));
    let page = Page {
        title: &run.name,
        subtitle: &format!("{} part of {}", outputs.part.name(), cohort.name),
        facts: &facts,
        evaluation: &report,
        baseline: baseline.as_ref(),
        sensitivity: sensitivity.as_ref(),
        bias: bias.as_ref(),
        time_unit: &cohort.time_unit,
        censoring: "the training part",
        epochs: &epochs,
        monitor: &run.written().word("training.monitor"),
        flow: &flow,
        warnings: &warnings,
        notes: &notes,
        csv: &target.csv_name(),
    };
    let about = About { part: Some(outputs.part), run: Some(run), input: None, coverage };
    publish(target, &page, &about, outputs)
}

pub(super) fn with_intersections(mut groups: Vec<Groups>, run: &RunFile) -> Result<Vec<Groups>, CliError> {
    let single = groups.clone();
    for names in &run.groups.intersections {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        groups.extend(choose_groups(&single, &names, "groups.intersections")?);
    }
    Ok(groups)
}

/// The flow from rows read to samples.
pub(super) fn flow_rows(exclusions: &Exclusions, is_tabular: bool) -> Vec<FlowRow> {
    let flow = if is_tabular { exclusions.flow_of_tables() } else { exclusions.flow() };
    let row = |step: FlowStep| FlowRow {
        label: step.label,
        n_kept: step.n_kept,
        n_excluded: step.n_excluded,
        reasons: step.reasons.into_iter().map(|(reason, n)| (reason.to_owned(), n)).collect(),
    };
    flow.into_iter().map(row).collect()
}

fn facts_of_run(run: &RunFile) -> Vec<(String, String)> {
    let written = run.written();
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let inputs = if run.is_tabular() {
        fact("inputs", "columns of a table".to_owned())
    } else if run.estimator.is_some() {
        fact("inputs", format!("covariates of the images: {}", run.covariates().join(", ")))
    } else {
        fact("image size", run.image.size.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x "))
    };
    let model = if run.estimator.is_some() {
        vec![fact("estimator", written.choice_with_settings("estimator")), inputs]
    } else {
        vec![
            fact("backbone", written.word("model.backbone")),
            inputs,
            fact("head", written.choice_with_settings("head")),
            fact("strategy", written.choice_with_settings("strategy")),
        ]
    };
    let others = [
        fact("time intervals", written.word("time.intervals")),
        fact(
            "seed",
            match run.training_seed {
                Some(training) => format!("{}, of the training {training}", run.seed),
                None => run.seed.to_string(),
            },
        ),
        fact("device", run.device.clone()),
        fact("fairtte", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    model.into_iter().chain(others).collect()
}

/// How the cut points were placed; `None` for a run that was only prepared.
fn fact_of_time_grid(folder: &RunFolder) -> Result<Option<(String, String)>, CliError> {
    #[derive(Deserialize)]
    struct Record {
        sentence: String,
    }
    let path = folder.time_grid();
    if !path.exists() {
        return Ok(None);
    }
    let record: Record = read_json(&path)?;
    Ok(Some(("time grid".to_owned(), record.sentence)))
}

/// The source of the labels, and the hash of everything that they depend on.
pub(super) fn facts_of_labels(cohort: &Cohort) -> Vec<(String, String)> {
    let Some(provenance) = &cohort.provenance else { return Vec::new() };
    let options: Vec<String> = provenance.options.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let mut facts = vec![("labels".to_owned(), provenance.rule.clone())];
    if !options.is_empty() {
        facts.push(("label options".to_owned(), options.join(", ")));
    }
    facts.push(("content hash".to_owned(), provenance.content_hash.clone()));
    facts
}

/// The distribution shift applied to the training samples of one group, if the run has one.
fn facts_of_shift(folder: &RunFolder) -> Result<Vec<(String, String)>, CliError> {
    let path = folder.shift();
    if !path.exists() {
        return Ok(Vec::new());
    }
    let record: ShiftRecord = read_json(&path)?;
    Ok(vec![("distribution shift".to_owned(), record.to_string())])
}

fn facts_of_parts(cohort: &Cohort, split: &Split) -> Vec<(String, String)> {
    Part::ALL
        .into_iter()
        .map(|part| {
            let rows = split.rows(part);
            let events = rows.iter().filter(|row| cohort.samples[**row].event).count();
            let (samples, subjects) = (counted(rows.len(), "sample"), counted(split.n_subjects(part), "subject"));
            let text = format!("{samples} of {subjects}, {}", counted(events, "event"));
            (format!("{} part", part.name()), text)
        })
        .collect()
}
