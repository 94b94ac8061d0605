//! `fairtte study restore`: a finished trial as an ordinary run folder, with its curves and its report.
//!
//! The data are prepared again and the kept weights predict again, which gives the curves that the training scored.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use fairtte_data::Part;

use super::planned;
use crate::CliError;
use crate::args::StudyRestore;
use crate::commands::evaluate::{Outputs, Shown, evaluate_run};
use crate::commands::predict::member::Member;
use crate::commands::select::refuse_run_folder;
use crate::commands::train::{predicted_rows, write_predicted};
use crate::commands::use_threads;
use crate::prepared::{Care, Prepared, prepare};
use crate::progress::say;
use crate::run_folder::{OpenRun, write_text};
use crate::study::{Planned, TrialFolder};

pub(super) fn run(arguments: &StudyRestore) -> Result<(), CliError> {
    let started = Instant::now();
    let plan = planned(&arguments.folder)?;
    use_threads(arguments.threads)?;
    plan.check_place(arguments.index)?;
    let planned = plan.resolve(arguments.index)?;
    let trial = plan.folder().trial(&planned.id);
    let archive = trial.model();
    if !archive.exists() {
        let problem = "the trial keeps no model: it is not finished, execute.keep is not \"weights\", or `study clean` removed it";
        return Err(CliError::RunFolder { path: archive, problem: problem.to_owned() });
    }
    refuse_run_folder(&arguments.output)?;
    let open = rebuild(planned, &trial, &arguments.output)?;
    let shown = Shown::json(arguments.json);
    evaluate_run(&open, &Outputs { shown, part: Part::Test, started })?;
    say(format!("restored: {}", open.folder.path().display()));
    Ok(())
}

/// A finished trial that kept its model as a run folder at `output`, with its data and its curves, but not evaluated.
///
/// # Errors
/// The errors of preparation and prediction.
pub(super) fn rebuild(planned: Planned, trial: &TrialFolder, output: &Path) -> Result<OpenRun, CliError> {
    let mut run = planned.run;
    output.clone_into(&mut run.output);
    run.evaluation.replicates = planned.replicates;
    let open = OpenRun::open(run)?;
    unpack(trial, &open)?;
    let prepared = prepare(&open, Care::Usual)?;
    predict(&open, &prepared)?;
    write_text(&open.folder.done(), "")?;
    Ok(open)
}

/// Model, choice and log of the trial.
fn unpack(trial: &TrialFolder, open: &OpenRun) -> Result<(), CliError> {
    let path = trial.model();
    let failed = |error: std::io::Error| CliError::RunFolder { path: path.clone(), problem: error.to_string() };
    tar::Archive::new(File::open(&path).map_err(failed)?).unpack(open.folder.path()).map_err(failed)?;
    let steps = trial.path().join("steps.jsonl");
    std::fs::copy(&steps, open.folder.steps()).map(|_| ()).map_err(failed)
}

/// Predicts with the weights of every kept epoch.
fn predict(open: &OpenRun, prepared: &Prepared) -> Result<(), CliError> {
    let OpenRun { file: run, folder } = open;
    let kept = folder.kept()?;
    let (loader, _) = prepared.loader(run, prepared.membership())?;
    let rows = predicted_rows(prepared);
    for (epoch, path) in folder.files_of(&kept) {
        let member = Member::open(folder.path(), Some(&epoch.to_string()), None)?;
        let predicted = member.curves(&prepared.inputs, &loader, &rows)?;
        let others = (epoch == kept.epoch).then_some(folder);
        write_predicted(prepared, &path, member.times(), &predicted, others)?;
    }
    Ok(())
}
