//! `fairtte cohort check`: compares a cohort with Table A1 of the paper.

use fairtte_data::cohort::{CohortSummary, compare_with_paper};
use serde_json::json;

use super::{print, print_json};
use crate::CliError;
use crate::args::CohortCheck;
use crate::prepared::read_tables;
use crate::run_file::RunFile;
use crate::run_folder::{RunFolder, read_json};

pub(super) fn check(arguments: &CohortCheck) -> Result<(), CliError> {
    let summary = if let Some(path) = &arguments.run {
        let folder = RunFolder::new(path);
        folder.require_folder()?;
        read_summary(&folder)?
    } else {
        let run = RunFile::read(&arguments.config, &arguments.set)?;
        let (cohort, exclusions, attributes) = read_tables(&run)?;
        CohortSummary::new(&cohort, &exclusions, &attributes)
    };
    let check = compare_with_paper(&summary).ok_or_else(|| {
        CliError::Check(format!(
            "{} is not in the paper's Table A1, expected a cohort of mimic-cxr, adni or areds",
            summary.name
        ))
    })?;
    if arguments.json {
        return print_json(&json!({ "cohort": summary, "comparison": check }));
    }
    print(&summary);
    print(check);
    Ok(())
}

fn read_summary(folder: &RunFolder) -> Result<CohortSummary, CliError> {
    read_json(&folder.summary()).map_err(|error| match error {
        CliError::RunFolder { path, problem } if !path.exists() => {
            CliError::RunFolder { path, problem: format!("{problem}; `fairtte prepare` writes it into a run folder") }
        }
        other => other,
    })
}
