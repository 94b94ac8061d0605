//! `fairtte study`: the axes of a study as trials in one folder, run on this machine or by the engine of a cluster.

mod causes;
mod clean;
mod collect;
mod doctor;
mod estimate;
mod intervals;
mod plan;
mod report;
mod restore;
mod run;
mod status;
mod submit;
mod template;
mod trial;

use std::path::Path;
use std::time::Duration;

pub(super) use self::plan::resolve;
pub(super) use self::report::write as write_report;
pub(super) use self::run::{Share, summary, train};

use crate::CliError;
use crate::args::{StudyCommand, StudyFileArguments};
use crate::study::{Plan, StudyFile, StudyFolder, Timing};

pub(super) fn run(command: &StudyCommand) -> Result<(), CliError> {
    match command {
        StudyCommand::Template(arguments) => template::run(arguments),
        StudyCommand::Plan(arguments) => plan::run(arguments),
        StudyCommand::Run(arguments) => run::run(arguments),
        StudyCommand::Submit(arguments) => submit::run(arguments),
        StudyCommand::Doctor(arguments) => doctor::run(arguments),
        StudyCommand::Trial(arguments) => trial::run(arguments),
        StudyCommand::Status(arguments) => status::run(arguments),
        StudyCommand::Commands(arguments) => status::commands(arguments),
        StudyCommand::Collect(arguments) => collect::run(arguments),
        StudyCommand::Report(arguments) => report::run(arguments),
        StudyCommand::Restore(arguments) => restore::run(arguments),
        StudyCommand::Clean(arguments) => clean::run(arguments),
    }
}

fn read(arguments: &StudyFileArguments) -> Result<Plan, CliError> {
    let mut study = StudyFile::read(&arguments.file, &arguments.set)?;
    if let Some(output) = &arguments.output {
        study.output.clone_from(output);
    }
    Plan::make(study)
}

/// The plan in a folder; the message for one that has none names the command that writes it.
fn planned(folder: &Path) -> Result<Plan, CliError> {
    if !StudyFolder::new(folder).plan().exists() {
        let problem = "this is not the folder of a study; `fairtte study plan FILE` makes one".to_owned();
        return Err(CliError::RunFolder { path: folder.to_owned(), problem });
    }
    Plan::read(folder)
}

fn timing(plan: &Plan) -> Timing {
    let execute = &plan.study().execute;
    Timing {
        heartbeat: Duration::from_secs_f64(execute.heartbeat_seconds),
        stale: Duration::from_secs_f64(execute.stale_minutes * 60.0),
    }
}
