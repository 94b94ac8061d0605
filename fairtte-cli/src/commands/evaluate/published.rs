//! `evaluation.json`, read back.

use std::path::Path;

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::{ClassGroups, ClassReport, Coverage, HorizonReport};
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
    /// What only a class has.
    pub(in crate::commands) class: Option<PublishedClass>,
}

/// What the evaluation of a class has beside the common form of its numbers.
#[derive(Deserialize)]
pub(in crate::commands) struct PublishedClass {
    /// Where the threshold comes from.
    pub(in crate::commands) threshold: PublishedThreshold,
    #[serde(flatten)]
    pub(in crate::commands) report: ClassReport,
    pub(in crate::commands) groups: ClassGroups,
    /// Where the class is made from times.
    #[serde(default)]
    pub(in crate::commands) horizon: Option<HorizonReport>,
}

#[derive(Deserialize)]
pub(in crate::commands) struct PublishedThreshold {
    pub(in crate::commands) value: f64,
    pub(in crate::commands) chosen: String,
    #[serde(default)]
    pub(in crate::commands) validation: Option<PublishedValidation>,
}

/// The samples on which a threshold was chosen.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::commands) struct PublishedValidation {
    pub(in crate::commands) n: usize,
    pub(in crate::commands) n_positive: usize,
    pub(in crate::commands) f1: f64,
}

/// What is in the file beside the report.
#[derive(Deserialize)]
struct Around {
    part: String,
    #[serde(default)]
    task: Option<String>,
    /// Of a class; curves have it in `input`.
    #[serde(default)]
    title: Option<String>,
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
        let Around { part, task, title, input, coverage, warnings } = read_json(path).map_err(not_one)?;
        let title = title.or_else(|| input.and_then(|input| input.title));
        let (report, class) = match task.as_deref() {
            None => (read_json(path).map_err(not_one)?, None),
            Some("binary") => {
                let class: PublishedClass = read_json(path).map_err(not_one)?;
                (EvaluationReport::of_class(&class.report, &class.groups), Some(class))
            }
            Some(task) => {
                let problem = format!(
                    "it is the evaluation of the task \"{task}\", expected that of survival curves or of a class"
                );
                return Err(CliError::RunFolder { path: path.to_owned(), problem });
            }
        };
        Ok(Self { part, title, coverage, warnings, report, class })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;

    #[test]
    fn the_evaluation_of_masks_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("evaluation.json");
        std::fs::write(&path, r#"{"task": "masks", "part": "all", "n": 3}"#).unwrap();
        let message = Published::read(&path).err().map(|error| error.to_string()).unwrap();
        assert!(
            message.ends_with(
                "it is the evaluation of the task \"masks\", expected that of survival curves or of a class"
            ),
            "{message}"
        );
    }
}
