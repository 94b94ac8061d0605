//! Evaluations of the same model on other data.

use std::path::Path;

use fairtte_data::Part;
use fairtte_metrics::EvaluationReport;
use serde::Deserialize;

use super::super::evaluate::{PredictionRecord, Published};
use crate::CliError;
use crate::report::card::External;
use crate::run_folder::{KeptWeights, RunFolder, read_json};

/// What is read of `external.json`, the comparison of other data with the test part of a run.
#[derive(Deserialize)]
struct Compared {
    external: EvaluationReport,
    #[serde(default)]
    warnings: Vec<String>,
}

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
    let files = RunFolder::new(folder);
    let shown_by = predicted_by(&files, &RunFolder::new(run))?;
    let (alone, beside) = (files.evaluation(Part::Test), folder.join("external.json"));
    let of_folder = || {
        let absolute = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        absolute.file_name().map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned())
    };
    let named = |title: Option<String>| name.map(|name| name.trim().to_owned()).or(title).unwrap_or_else(of_folder);
    if alone.exists() {
        let Published { part, title, warnings, report, .. } = Published::read(&alone)?;
        let warnings = warnings.into_iter().map(|warning| warning.text).collect();
        return Ok(External { name: named(title), part, report, warnings, shown_by });
    }
    if beside.exists() {
        let Compared { external: report, warnings } = read_json(&beside)?;
        return Ok(External { name: named(None), part: "all".to_owned(), report, warnings, shown_by });
    }
    let shown = folder.display();
    let help = if shown_by.is_some() { format!("evaluate {shown}") } else { "evaluate .. --output".to_owned() };
    let with = if shown_by.is_some() { "" } else { " with this folder" };
    let problem = format!("there is no evaluation.json and no external.json; `fairtte {help}`{with} writes it");
    Err(CliError::RunFolder { path: folder.to_owned(), problem })
}

/// How the record of a prediction shows that its curves are those of the run; `None` if the folder has no record.
///
/// # Errors
/// [`CliError::RunFolder`] if it shows that they are of other weights.
fn predicted_by(folder: &RunFolder, run: &RunFolder) -> Result<Option<String>, CliError> {
    if !folder.prediction_record().exists() {
        return Ok(None);
    }
    let record = PredictionRecord::read(folder)?;
    let kept = run.kept_weights()?;
    let same_path = |path: &Path| matches!((path.canonicalize(), run.path().canonicalize()), (Ok(a), Ok(b)) if a == b);
    let n = record.runs.len();
    let of_run = record.runs.iter().find_map(|by| match (&by.weights_blake3, &kept) {
        (Some(hash), Some(kept)) => kept.epoch_of(hash).map(|epoch| of_weights(epoch, hash, kept)),
        // Folds that were pooled have no weights of their own; runs of earlier versions kept none.
        _ => same_path(&by.path).then(|| "curves of this run".to_owned()),
    });
    match of_run {
        Some(sentence) if n == 1 => Ok(Some(sentence)),
        Some(sentence) => Ok(Some(format!("{sentence}, as one of {n} runs ({})", record.prediction))),
        None => {
            let (by, run) = (record.by(), run.path().display());
            let problem = format!("its predict.json says that it was predicted by {by}, expected weights of {run}");
            Err(CliError::RunFolder { path: folder.path().to_owned(), problem })
        }
    }
}

fn of_weights(epoch: usize, hash: &str, kept: &KeptWeights) -> String {
    let other = if epoch == kept.epoch {
        String::new()
    } else {
        format!(", where the test part is predicted by those of epoch {}", kept.epoch)
    };
    format!("curves of the weights of epoch {epoch} (BLAKE3 {hash}){other}")
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
