//! `fairtte evaluate-masks`: the masks that any model predicted, beside the true ones.
//!
//! A table names the files of both masks of every sample. They are read and compared one pair after another, in parallel, so that
//! memory holds as many pairs as there are threads (`score.rs`); everything from the numbers of a sample on is the evaluation of all
//! metrics.

mod of_run;
mod publish;
mod score;
mod settings;

use std::time::Instant;

use fairtte_data::predictions::{MaskColumns, MaskTable, OutsideTable as _, read_mask_table};
use fairtte_data::{AttributeConfig, DataError, Part};
use fairtte_metrics::evaluation::{MaskSamples, evaluate_masks};
use fairtte_metrics::{Groups, SubjectId};
use serde::Serialize;

pub(super) use self::of_run::{evaluate_run, run_of_arguments};
use self::publish::Source;
use self::score::Scored;
use self::settings::Settings;
use super::super::{print, print_json, use_threads};
use super::notes::{note_on_ignored, notes_on_samples};
use super::outside::{attributes_to_compare, with_pairs};
use super::own_table::{self, require_different};
use super::publish::Target;
use super::{Outputs, Shown};
use crate::CliError;
use crate::args::EvaluateMasks;
use crate::progress::say;
use crate::shell::quoted;

/// Scores the masks of a table.
///
/// # Errors
/// [`CliError`] for settings, the table, a mask that cannot be read or compared, and files that cannot be written.
pub(in super::super) fn run(arguments: &EvaluateMasks) -> Result<(), CliError> {
    use_threads(arguments.threads)?;
    let outputs = Outputs { shown: Shown::json(arguments.json), part: Part::Test, started: Instant::now() };
    let target = Target::named(&arguments.output, Part::Test).with_samples().apart_from([&arguments.table])?;
    let target = target.with_exports(&arguments.exports);
    let configs = attributes_to_compare(&arguments.attributes, arguments.intersections)?;
    let settings = Settings::new(arguments)?;
    if arguments.dry_run {
        return dry_run(arguments, &settings, &target);
    }
    let input = Input::read(arguments, &configs)?;
    evaluate(&Source::of_arguments(arguments), &input, &settings, &target, &outputs)
}

/// Compares the masks of a table and writes the results.
fn evaluate(
    source: &Source<'_>,
    input: &Input,
    settings: &Settings,
    target: &Target,
    outputs: &Outputs,
) -> Result<(), CliError> {
    let scored = Scored::new(&input.table, settings)?;
    let samples = MaskSamples {
        classes: &scored.classes,
        scores: &scored.scores,
        cup_to_disc: scored.cup_to_disc.as_deref(),
        unit: &scored.unit,
    };
    let metrics = settings.metrics();
    let report =
        evaluate_masks(&samples, &input.subjects, &input.groups, &metrics, &settings.masks, &settings.evaluation)?;
    publish::publish(source, input, &scored, &report, target, outputs)
}

/// The table, with what is compared.
struct Input {
    table: MaskTable,
    subjects: Vec<SubjectId>,
    groups: Vec<Groups>,
    notes: Vec<String>,
    facts: Vec<(String, String)>,
}

impl Input {
    fn read(arguments: &EvaluateMasks, configs: &[AttributeConfig]) -> Result<Self, CliError> {
        let own = &arguments.own;
        require_different(columns(arguments).into_iter().map(|(option, _, named)| (option, named)))?;
        let columns = MaskColumns {
            sample: own.sample.clone(),
            subject: own.subject.clone(),
            truth: own.truth.clone(),
            predicted: own.predicted.clone(),
            missing: own.missing.clone(),
        };
        let names: Vec<&str> = configs.iter().map(|config| config.name.as_str()).collect();
        let table = read_mask_table(&arguments.table, &names, &columns).map_err(|error| with_help(error, arguments))?;
        let fitted = table.fit_attributes(configs).map_err(|error| with_help(error, arguments))?;
        let mut notes = notes_on_samples(configs, table.has_subjects, &table.changing_attributes(configs));
        notes.extend(note_on_ignored(&table.ignored));
        notes.extend(fitted.ungrouped().iter().map(|value| format!("{value}.")));
        notes.extend(own_table::notes_on_columns(table.likely_subjects(), &table.doubtful_levels()));
        Ok(Self {
            subjects: table.cohort.subjects(&table.cohort.all_rows()),
            groups: with_pairs(fitted.all(), arguments.intersections)?,
            facts: vec![("table".to_owned(), arguments.table.display().to_string())],
            table,
            notes,
        })
    }
}

/// The options that name a column, each with the usual name and the one that was given.
fn columns(arguments: &EvaluateMasks) -> [(&'static str, &'static str, Option<&String>); 4] {
    let own = &arguments.own;
    [
        ("--sample", "sample", own.sample.as_ref()),
        ("--subject", "subject", own.subject.as_ref()),
        ("--truth", "truth", own.truth.as_ref()),
        ("--predicted", "predicted", own.predicted.as_ref()),
    ]
}

/// Adds the option that names the right column.
fn with_help(error: DataError, arguments: &EvaluateMasks) -> CliError {
    let DataError::MissingColumn { column, nearest: Some(nearest), .. } = &error else {
        return super::outside::with_help(error);
    };
    let option = columns(arguments).into_iter().find(|(_, usual, named)| usual == column && named.is_none());
    match option.map(|(option, ..)| format!("name it with {option} {}", quoted(nearest))) {
        Some(help) => CliError::Curves { source: Box::new(error), help },
        None => error.into(),
    }
}

fn dry_run(arguments: &EvaluateMasks, settings: &Settings, target: &Target) -> Result<(), CliError> {
    #[derive(Serialize)]
    struct Planned<'a> {
        would: String,
        evaluation: &'a std::path::Path,
        report: &'a std::path::Path,
        arguments: &'a EvaluateMasks,
        settings: &'a Settings,
    }
    let (evaluation, report) = (target.evaluation(), target.report());
    let would = format!("evaluate the masks of {}", arguments.table.display());
    let planned = Planned { would, evaluation, report, arguments, settings };
    if arguments.json {
        return print_json(&planned);
    }
    print(toml::to_string(&planned).map_err(|error| CliError::Bug(error.to_string()))?.trim_end());
    say(format!("dry run: would evaluate the masks of {} into {}", arguments.table.display(), report.display()));
    Ok(())
}
