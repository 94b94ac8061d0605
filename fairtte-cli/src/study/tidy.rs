//! What stays of a finished trial: at most six files, so that 20,000 trials fit into the quota of a file system.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use tar::{Builder, HeaderMode};

use super::file::Keep;
use super::folder::TrialFolder;
use crate::CliError;
use crate::run_folder::RunFolder;

/// What of a run folder goes into the file of the model, so that the run can be restored.
const WITH_THE_MODEL: [&str; 3] = ["selection.json", "warnings.json", "time-grid.json"];

/// Puts the trained model, and what chose its epochs, into one file.
///
/// # Errors
/// [`CliError::RunFolder`] if a file cannot be read or written.
pub(crate) fn pack_model(folder: &TrialFolder) -> Result<(), CliError> {
    let run = RunFolder::new(folder.path());
    let mut all =
        files(&run.model()).map_err(|error| CliError::RunFolder { path: run.model(), problem: error.to_string() })?;
    all.extend(WITH_THE_MODEL.map(|name| folder.path().join(name)));
    let path = folder.model();
    let failed = |error: std::io::Error| CliError::RunFolder { path: path.clone(), problem: error.to_string() };
    let temporary = path.with_extension("part");
    let mut archive = Builder::new(File::create(&temporary).map_err(failed)?);
    // The same bytes on every machine and at every time.
    archive.mode(HeaderMode::Deterministic);
    for file in all.iter().filter(|file| file.exists()) {
        let name = file.strip_prefix(folder.path()).unwrap_or(file);
        archive.append_path_with_name(file, name).map_err(failed)?;
    }
    archive.into_inner().and_then(|file| file.sync_all()).map_err(failed)?;
    std::fs::rename(&temporary, &path).map_err(failed)
}

/// All files of a folder and its folders, in the order of their names.
fn files(folder: &Path) -> std::io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.insert(path);
        }
    }
    Ok(found)
}

/// Removes what a finished trial does not keep.
///
/// # Errors
/// [`CliError::RunFolder`] if a file cannot be removed.
pub(crate) fn keep_only(folder: &TrialFolder, keep: Keep) -> Result<(), CliError> {
    if keep == Keep::Everything {
        return Ok(());
    }
    let failed =
        |error: std::io::Error| CliError::RunFolder { path: folder.path().to_owned(), problem: error.to_string() };
    for entry in std::fs::read_dir(folder.path()).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_kept = name.starts_with("lease.")
            || ["run.toml", "steps.jsonl", "scores.json", "refused.json", "failed.json", "rung.json"]
                .contains(&name.as_str())
            || (name == "model.tar" && keep == Keep::Weights);
        if is_kept {
            continue;
        }
        let path = entry.path();
        let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        match removed {
            // Another process may have tidied up too.
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    Ok(())
}
