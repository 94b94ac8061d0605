//! Evaluations of the same model on other data.

use std::path::Path;

use fairtte_data::Part;

use super::super::evaluate::Published;
use crate::CliError;
use crate::report::card::External;
use crate::run_folder::RunFolder;

/// Reads the evaluation that `--external` names, `DIR` or `NAME=DIR`, for the card of `run`.
///
/// # Errors
/// [`CliError::Config`] for the folder of the run itself or an empty name, [`CliError::RunFolder`] if there is no evaluation.
pub(super) fn read_external(text: &str, run: &Path) -> Result<External, CliError> {
    let (name, folder) = named(text);
    if name.is_some_and(|name| name.trim().is_empty()) {
        let message = format!("\"{text}\" has an empty name, expected DIR or NAME=DIR");
        return Err(CliError::setting("--external", message, None));
    }
    let is_run = matches!((folder.canonicalize(), run.canonicalize()), (Ok(folder), Ok(run)) if folder == run);
    if is_run {
        let message = format!("{} is the run itself, expected an evaluation on other data", folder.display());
        return Err(CliError::setting("--external", message, None));
    }
    let path = RunFolder::new(folder).evaluation(Part::Test);
    if !path.exists() {
        let problem =
            "there is no evaluation.json; `fairtte evaluate .. --output` with this folder writes it".to_owned();
        return Err(CliError::RunFolder { path: folder.to_owned(), problem });
    }
    let published = Published::read(&path)?;
    let of_folder = || {
        let absolute = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        absolute.file_name().map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned())
    };
    let name = name.map(|name| name.trim().to_owned()).or(published.title).unwrap_or_else(of_folder);
    Ok(External { name, part: published.part, report: published.report, warnings: published.warnings })
}

/// The name, if there is one, and the folder. A folder whose path has an equals sign is no name.
fn named(text: &str) -> (Option<&str>, &Path) {
    match text.split_once('=') {
        Some((name, folder)) if !Path::new(text).exists() => (Some(name), Path::new(folder)),
        _ => (None, Path::new(text)),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_the_first_equals_sign_unless_it_is_part_of_a_path() {
        assert_eq!(named("B=c=d"), (Some("B"), Path::new("c=d")));
        assert_eq!(named("folder"), (None, Path::new("folder")));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a=b");
        std::fs::create_dir(&path).unwrap();
        assert_eq!(named(path.to_str().unwrap()), (None, path.as_path()));
    }
}
