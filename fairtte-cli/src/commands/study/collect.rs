//! `fairtte study collect`: the scores of all finished trials as one table.

use super::plan::resolve;
use super::planned;
use super::status::Counts;
use crate::CliError;
use crate::args::StudyFolderArgument;
use crate::commands::{print, print_json};
use crate::plural::counted;
use crate::study::write_results;

pub(super) fn run(arguments: &StudyFolderArgument) -> Result<(), CliError> {
    let plan = planned(&arguments.folder)?;
    let planned = resolve(&plan)?;
    let path = plan.folder().results();
    let n_rows = write_results(&plan, &planned, &path)?;
    let counts = Counts::of(&plan)?;
    if arguments.json {
        return print_json(&serde_json::json!({ "results": path, "rows": n_rows, "trials": counts }));
    }
    print(format!("{} of {}", counted(n_rows, "row"), counts.sentence()));
    print(format!("written: {}", path.display()));
    Ok(())
}
