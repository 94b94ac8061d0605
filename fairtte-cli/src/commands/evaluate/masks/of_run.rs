//! The masks that a run predicted: the evaluation of `evaluate-masks` on the table of a part, with the groups of the run.

use std::collections::HashMap;

use fairtte_data::predictions::{MaskColumns, read_mask_table};
use fairtte_data::{Cohort, Split, read_cohort};
use fairtte_metrics::{EvaluationSettings, SampleId};

use super::super::publish::Target;
use super::super::{Outputs, dry_run, facts_of_labels, facts_of_parts, facts_of_run, settings, with_intersections};
use super::publish::Source;
use super::settings::{SHARED, Settings};
use super::{Input, evaluate};
use crate::CliError;
use crate::args::Evaluate;
use crate::plural::counted;
use crate::run_folder::OpenRun;
use crate::scored::restrict;

/// `fairtte evaluate RUN` of a run that predicts masks.
pub(in super::super) fn run_of_arguments(
    arguments: &Evaluate,
    open: &OpenRun,
    outputs: &Outputs,
) -> Result<(), CliError> {
    let in_folder = || Target::in_folder(&open.folder, outputs.part);
    let target = arguments.output.as_ref().map_or_else(in_folder, |output| Target::named(output, outputs.part));
    let target = target.with_samples().with_exports(&arguments.exports);
    let changed = changed(arguments, &open.file.evaluation)?;
    let settings = settings_of(open, changed)?;
    if arguments.dry_run {
        let what = format!("the {} part of {}", outputs.part.name(), open.folder.path().display());
        return dry_run(&what, arguments, &target, &settings);
    }
    evaluate_part(open, &settings, &target, outputs)
}

/// Evaluates a run after its training.
pub(in super::super) fn evaluate_run(open: &OpenRun, target: &Target, outputs: &Outputs) -> Result<(), CliError> {
    let settings = settings_of(open, open.file.evaluation.clone())?;
    evaluate_part(open, &settings, target, outputs)
}

fn settings_of(open: &OpenRun, evaluation: EvaluationSettings) -> Result<Settings, CliError> {
    let task = open.file.task.segmentation.as_ref();
    let task = task.ok_or_else(|| CliError::Bug("a run without masks was evaluated as one".to_owned()))?;
    Settings::of_run(task, evaluation)
}

/// The settings of the run, changed by those arguments that have an effect on masks.
fn changed(arguments: &Evaluate, base: &EvaluationSettings) -> Result<EvaluationSettings, CliError> {
    let scores = &arguments.scores;
    let given = [
        (
            "--metrics",
            !scores.metrics.is_empty(),
            "a run shows all metrics of masks; evaluate-masks chooses among them",
        ),
        ("--horizon", scores.horizon.is_some(), "masks have no times"),
        ("--threshold", !scores.threshold.is_empty(), "masks have no risks"),
        ("--baseline", !scores.baseline.is_empty(), "a Cox model predicts no masks"),
        ("--sensitivity", scores.sensitivity.sensitivity, "masks are not censored"),
    ];
    if let Some((option, _, why)) = given.into_iter().find(|(_, is_given, _)| *is_given) {
        return Err(CliError::setting(option, format!("{why}, expected it to be left out"), None));
    }
    for set in &arguments.set {
        let key = set.split(['.', '=']).next().unwrap_or_default();
        if !SHARED.contains(&key) {
            let message = format!("it has no effect on masks, expected one of {}", SHARED.join(", "));
            return Err(CliError::setting(&format!("--set {key}"), message, None));
        }
    }
    settings(Some(base), &arguments.set, Some(scores))
}

fn evaluate_part(open: &OpenRun, settings: &Settings, target: &Target, outputs: &Outputs) -> Result<(), CliError> {
    let OpenRun { file: run, folder } = open;
    let path = folder.mask_table(outputs.part, None);
    let (cohort, groups) = read_cohort(&folder.cohort())?;
    let groups = with_intersections(groups, run)?;
    let mut table = read_mask_table(&path, &[], &MaskColumns::default())?;
    table.ignored.clear(); // The attributes, which are compared by the groups of the run.
    let places: HashMap<&SampleId, usize> = (0..cohort.n()).map(|row| (&cohort.samples[row].sample_id, row)).collect();
    let row = |sample: &SampleId| {
        let message = || format!("sample \"{}\" is not in the cohort of the run", sample.as_str());
        places.get(sample).copied().ok_or_else(|| CliError::RunFolder { path: path.clone(), problem: message() })
    };
    let samples = table.cohort.samples.iter();
    let rows = samples.map(|sample| row(&sample.sample_id)).collect::<Result<Vec<_>, _>>()?;
    table.cohort.name = format!("{} part of {}", outputs.part.name(), cohort.name);
    let input = Input {
        subjects: cohort.subjects(&rows),
        groups: groups.iter().map(|groups| restrict(groups, &rows)).collect::<Result<_, _>>()?,
        facts: facts(open, &cohort)?,
        notes: Vec::new(),
        table,
    };
    let warnings = folder.warnings()?;
    let source = Source { table: &path, title: Some(&run.name), spacing: &[], warnings };
    evaluate(&source, &input, settings, target, outputs)
}

fn facts(open: &OpenRun, cohort: &Cohort) -> Result<Vec<(String, String)>, CliError> {
    let OpenRun { file: run, folder } = open;
    let split = Split::read_csv(&folder.split(), cohort)?;
    let mut facts = facts_of_run(run);
    facts.retain(|(name, _)| !["time intervals", "fairtte"].contains(&name.as_str()));
    facts.extend(facts_of_labels(cohort));
    // Every sample has a mask; that is an event only for what counts events.
    let without_events = |(name, text): (String, String)| {
        let text = text.rsplit_once(", ").map_or(text.clone(), |(before, _)| before.to_owned());
        (name, text)
    };
    facts.extend(facts_of_parts(cohort, &split).into_iter().map(without_events));
    let epochs = folder.epochs()?;
    if let Some(best) = epochs.iter().rev().find(|epoch| epoch.best) {
        let (n, monitor) = (counted(epochs.len(), "epoch"), run.written().word("training.monitor"));
        let text = format!("{n}, the weights are those of epoch {}, chosen by {monitor}", best.epoch);
        facts.push(("training".to_owned(), text));
    }
    Ok(facts)
}
