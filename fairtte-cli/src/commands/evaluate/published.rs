//! `evaluation.json`, read back.

use std::path::Path;

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::Coverage;
use fairtte_records::Warning;
use serde::Deserialize;

use crate::CliError;
use crate::run_folder::read_json;

/// An evaluation that was written earlier, with what the card of a model says of it.
pub(in crate::commands) struct Published {
    /// The part that was evaluated; `all` without a split.
    pub(in crate::commands) part: String,
    /// Title of the page of an outside model, if one was given.
    pub(in crate::commands) title: Option<String>,
    pub(in crate::commands) coverage: Option<Coverage>,
    pub(in crate::commands) warnings: Vec<Warning>,
    pub(in crate::commands) report: EvaluationReport,
}

/// What is in the file beside the report.
#[derive(Deserialize)]
struct Around {
    part: String,
    #[serde(default)]
    task: Option<String>,
    #[serde(default)]
    input: Option<Input>,
    #[serde(default)]
    coverage: Option<Coverage>,
    #[serde(default)]
    warnings: Vec<Warning>,
}

#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    title: Option<String>,
}

impl Published {
    /// Reads the file.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if it is missing or is not the evaluation of one model.
    pub(in crate::commands) fn read(path: &Path) -> Result<Self, CliError> {
        let not_one = |error: CliError| match error {
            CliError::RunFolder { path, problem } => {
                CliError::RunFolder { path, problem: format!("{problem}; expected the evaluation of one model") }
            }
            other => other,
        };
        let Around { part, task, input, coverage, warnings } = read_json(path).map_err(not_one)?;
        if let Some(task) = task {
            let problem = format!("it is the evaluation of the task \"{task}\", expected that of survival curves");
            return Err(CliError::RunFolder { path: path.to_owned(), problem });
        }
        let report = read_json(path).map_err(not_one)?;
        Ok(Self { part, title: input.and_then(|input| input.title), coverage, warnings, report })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;

    #[test]
    fn the_evaluation_of_a_class_is_no_evaluation_of_curves() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("evaluation.json");
        std::fs::write(&path, r#"{"task": "binary", "part": "all", "n": 3}"#).unwrap();
        let message = Published::read(&path).err().map(|error| error.to_string()).unwrap();
        assert!(
            message.ends_with("it is the evaluation of the task \"binary\", expected that of survival curves"),
            "{message}"
        );
    }
}
