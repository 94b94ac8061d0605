//! The run that `fairtte train` trains: a run file, or with `--resume-from` the settings of a run folder.

use crate::CliError;
use crate::args::Train;
use crate::commands::override_run;
use crate::run_file::RunFile;
use crate::run_folder::RunFolder;

/// The settings of the folder to resume, then the run files, then the other arguments; later ones win. Without
/// another output the run is resumed in the folder itself, wherever the folder is now.
pub(super) fn read(arguments: &Train) -> Result<RunFile, CliError> {
    let origin = arguments.resume_from.as_deref();
    if let Some(origin) = origin {
        RunFolder::new(origin).require_run()?;
    }
    let kept = origin.map(|origin| RunFolder::new(origin).run_file());
    let files: Vec<_> = kept.into_iter().chain(arguments.config.iter().cloned()).collect();
    let mut run = RunFile::read(&files, &arguments.common.set)?;
    override_run(&mut run, &arguments.common);
    let here = match origin {
        Some(origin) if RunFile::read(&[RunFolder::new(origin).run_file()], &[])?.output == run.output => Some(origin),
        _ => None,
    };
    if let Some(output) = arguments.output.as_deref().or(here) {
        output.clone_into(&mut run.output);
    }
    Ok(run)
}
