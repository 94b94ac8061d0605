//! `fairtte study clean`: removes the models that no rule chooses.

use std::collections::BTreeSet;

use serde_json::json;

use super::planned;
use super::status::Counts;
use crate::CliError;
use crate::args::StudyClean;
use crate::commands::{print, print_json};
use crate::plural::counted;
use crate::run_folder::remove_file;
use crate::study::{Points, Study};

pub(super) fn run(arguments: &StudyClean) -> Result<(), CliError> {
    let plan = planned(&arguments.folder)?;
    let counts = Counts::of(&plan)?;
    if !counts.is_finished() {
        let problem = format!(
            "the study is not finished ({}), so any model may still be chosen; `fairtte study run` finishes it",
            counts.sentence()
        );
        return Err(CliError::RunFolder { path: arguments.folder.clone(), problem });
    }
    let points = Points::read(&plan)?;
    let chosen = Study::new(&plan, &points).chosen()?;
    let chosen: BTreeSet<&String> =
        chosen.into_iter().flat_map(|model| plan.folds_of(model.place)).map(|place| &plan.ids()[place]).collect();
    let (mut n_removed, mut n_bytes) = (0, 0);
    for id in plan.ids().iter().collect::<BTreeSet<_>>() {
        let model = plan.folder().trial(id).model();
        let Ok(about) = std::fs::metadata(&model) else { continue };
        if chosen.contains(id) {
            continue;
        }
        n_removed += 1;
        n_bytes += about.len();
        if !arguments.dry_run {
            remove_file(&model)?;
        }
    }
    if arguments.json {
        let key = if arguments.dry_run { "would" } else { "did" };
        return print_json(&json!({ key: "remove", "models": n_removed, "bytes": n_bytes, "kept": chosen.len() }));
    }
    let what = if arguments.dry_run { "dry run: would remove" } else { "removed" };
    let (models, kept) = (counted(n_removed, "model"), counted(chosen.len(), "training"));
    print(format!("{what} {models}, {:.1} MB; those of {kept} that a rule chooses stay", n_bytes as f64 / 1e6));
    Ok(())
}
