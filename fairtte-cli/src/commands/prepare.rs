//! `fairtte prepare`: read, exclude, split and decode, and show how many rows each step kept.

use std::collections::BTreeSet;
use std::path::PathBuf;

use fairtte_data::cohort::{FlowStep, OutcomeKind};
use fairtte_data::split::SplitTable;
use fairtte_data::{Cohort, FittedAttributes, Part, write_cohort};
use serde_json::json;

use super::{override_run, print, print_json, use_threads};
use crate::CliError;
use crate::args::{Prepare, Run};
use crate::plural::counted;
use crate::prepared::{Care, Prepared, prepare, prepare_tables};
use crate::progress::say;
use crate::run_file::RunFile;
use crate::run_folder::{OpenRun, RunFolder, remove_file, write_text};
use crate::samples::contact_sheet;

/// Samples of every group and part that are shown, if no number is given.
const SAMPLES: usize = 2;

pub(super) fn run(arguments: &Prepare) -> Result<(), CliError> {
    let run = read(&arguments.run)?;
    run.check()?;
    let of_images = [("--verify", arguments.verify, "verify"), ("--samples", arguments.samples.is_some(), "show")];
    if let Some((option, _, verb)) = of_images.into_iter().find(|(_, is_given, _)| *is_given && run.is_tabular()) {
        let problem = format!("the inputs are columns of a table, so there are no decoded images to {verb}");
        return Err(CliError::setting(option, problem, None));
    }
    use_threads(run.threads)?;
    say(format!("preparing \"{}\" in {}", run.name, run.output.display()));
    if arguments.run.common.dry_run {
        return dry_run(&run, &what(arguments, &run), arguments.run.common.json);
    }
    let open = OpenRun::for_preparation(run)?;
    if arguments.tables_only {
        return tables_only(arguments, &open);
    }
    let care = if arguments.verify { Care::Verify } else { Care::Identical };
    let prepared = prepare(&open, care)?;
    write_csv(arguments, &open.folder, &prepared.cohort, &prepared.attributes)?;
    let samples = write_samples(n_samples(arguments, &open.file), &open, &prepared)?;
    let (cohort, split) = prepared.counted();
    let table = SplitTable::new(&cohort, prepared.attributes.all(), &split)?;
    if arguments.run.common.json {
        let parts = Part::ALL.map(|part| (part.name(), split.rows(part).len()));
        return print_json(&json!({
            "n": prepared.cohort.n(), "n-events": prepared.cohort.n_events(),
            "n-subjects": prepared.cohort.n_subjects(), "flow": prepared.flow(&open.file),
            "samples-per-part": parts.into_iter().collect::<std::collections::BTreeMap<_, _>>(), "parts": table,
            "cohort": prepared.summary, "samples": samples,
        }));
    }
    print_summary(&open.file, &prepared);
    print(format!("\n{table}"));
    print(format!("\nfiles: {}", open.folder.path().display()));
    if let Some(path) = samples {
        print(format!("pictures: {}", path.display()));
    }
    Ok(())
}

/// How many samples of every group and part are shown.
fn n_samples(arguments: &Prepare, run: &RunFile) -> usize {
    let usual = if run.is_tabular() || arguments.tables_only { 0 } else { SAMPLES };
    arguments.samples.unwrap_or(usual)
}

/// Writes `samples.html` and returns its path, or removes one of an earlier call, which may show other pictures.
fn write_samples(n: usize, open: &OpenRun, prepared: &Prepared) -> Result<Option<PathBuf>, CliError> {
    let path = open.folder.samples();
    if n == 0 {
        remove_file(&path)?;
        return Ok(None);
    }
    write_text(&path, &contact_sheet(&open.file, prepared, n)?)?;
    Ok(Some(path))
}

/// What the command does, in words.
fn what(arguments: &Prepare, run: &RunFile) -> String {
    let csv = if arguments.csv { ", and cohort.csv" } else { "" };
    if arguments.tables_only {
        return format!("read the tables, write cohort and exclusions{csv}");
    }
    let verified = if arguments.verify { ", compare every image with its checksum" } else { "" };
    let samples = match n_samples(arguments, run) {
        0 => String::new(),
        n => format!(", and samples.html with {} of every group and part", counted(n, "sample")),
    };
    format!(
        "read the data, decode its images into the cache{verified}, write cohort, exclusions and split{csv}{samples}"
    )
}

fn tables_only(arguments: &Prepare, open: &OpenRun) -> Result<(), CliError> {
    let (cohort, exclusions, attributes, summary) = prepare_tables(open)?;
    write_csv(arguments, &open.folder, &cohort, &attributes)?;
    if arguments.run.common.json {
        return print_json(&json!({ "cohort": summary, "flow": exclusions.flow_of_tables() }));
    }
    print_flow(exclusions.flow_of_tables());
    print(format!("\n{summary}"));
    print(format!("\nfiles: {}", open.folder.path().display()));
    Ok(())
}

/// Writes `cohort.csv` if requested; otherwise removes one of an earlier call, which may describe another cohort.
fn write_csv(
    arguments: &Prepare,
    folder: &RunFolder,
    cohort: &Cohort,
    attributes: &FittedAttributes,
) -> Result<(), CliError> {
    let path = folder.cohort_csv();
    if arguments.csv {
        return Ok(write_cohort(&path, cohort, attributes)?);
    }
    remove_file(&path)
}

/// The run file of `train` and `prepare` with the arguments that take precedence over it.
pub(super) fn read(arguments: &Run) -> Result<RunFile, CliError> {
    let mut run = RunFile::read(&arguments.config, &arguments.common.set)?;
    override_run(&mut run, &arguments.common);
    if let Some(output) = &arguments.output {
        run.output.clone_from(output);
    }
    Ok(run)
}

/// Prints the resolved run file and what would be done.
pub(super) fn dry_run(run: &RunFile, what: &str, json: bool) -> Result<(), CliError> {
    if json {
        return print_json(&json!({
            "would": what, "cache": run.cache(), "run-folder": run.output, "run-file": resolved(run)?,
        }));
    }
    print(run.to_toml()?.trim_end());
    say(format!("dry run: would {what}; cache {}, run folder {}", run.cache().display(), run.output.display()));
    Ok(())
}

/// The resolved run file, for JSON.
pub(super) fn resolved(run: &RunFile) -> Result<toml::Value, CliError> {
    run.table().map(toml::Value::Table).map_err(|error| CliError::Bug(error.to_string()))
}

/// Exclusion flow and sizes of the parts.
pub(super) fn print_summary(run: &RunFile, prepared: &Prepared) {
    print_flow(prepared.flow(run));
    let (cohort, split) = prepared.counted();
    for part in Part::ALL {
        let samples: Vec<_> = split.rows(part).iter().map(|row| &cohort.samples[*row]).collect();
        let n_events = samples.iter().filter(|sample| sample.event).count();
        let events = match cohort.outcome_kind() {
            OutcomeKind::Times => format!(", {}", counted(n_events, "event")),
            OutcomeKind::Class => format!(", {n_events} positive"),
            OutcomeKind::Masks => String::new(),
        };
        let subjects: BTreeSet<_> = samples.iter().map(|sample| &sample.subject_id).collect();
        let subjects = counted(subjects.len(), "subject");
        print(format!("{:>8}  in the {} part ({subjects}{events})", samples.len(), part.name()));
    }
}

fn print_flow(flow: Vec<FlowStep>) {
    for FlowStep { label, n_kept, n_excluded, reasons } in flow {
        let reasons: Vec<String> = reasons.iter().map(|(reason, n)| format!("{reason} {n}")).collect();
        let lost = if n_excluded == 0 { String::new() } else { format!("  (-{n_excluded}: {})", reasons.join(", ")) };
        print(format!("{n_kept:>8}  {label}{lost}"));
    }
}
