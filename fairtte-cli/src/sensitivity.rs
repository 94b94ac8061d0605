//! How metrics and gaps change if censoring is informative, beside the evaluation of one model.

use fairtte_metrics::sensitivity::{SensitivityReport, sensitivity_of};
use fairtte_metrics::{EvaluationSettings, Groups};
use serde::Serialize;

use crate::CliError;
use crate::progress::say;
use crate::scored::Scored;

/// The analysis, or why there is none.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Sensitivity {
    /// Its numbers.
    Report(SensitivityReport),
    /// Why it does not exist.
    Undefined(String),
}

impl Sensitivity {
    /// The analysis that the settings name, `None` if they do not. Intersections are analysed only where one of their groups
    /// is tilted: their levels are small, and each takes as long as an attribute.
    ///
    /// # Errors
    /// [`CliError`] if the outcomes cannot be read; why there is no analysis is in [`Sensitivity::Undefined`].
    pub(crate) fn new(scored: &Scored, settings: &EvaluationSettings) -> Result<Option<Self>, CliError> {
        let Some(tilt) = &settings.sensitivity else { return Ok(None) };
        let names: Vec<&str> = scored.groups.iter().map(Groups::attribute).collect();
        let is_analysed = |name: &&str| match &tilt.group {
            Some(tilted) => tilted.attribute == **name,
            None => !name.split_once(" x ").is_some_and(|(first, _)| names.contains(&first)),
        };
        let analysed: Vec<&str> = names.iter().copied().filter(is_analysed).collect();
        let n = tilt.deltas.len() * (tilt.imputations + 2 * tilt.replicates) * analysed.len().max(1);
        say(format!("sensitivity to informative censoring: {n} evaluations of completed data"));
        let (subjects, outcomes) = (scored.cohort.subjects(&scored.rows), scored.cohort.outcomes(&scored.rows)?);
        let found = sensitivity_of(&scored.with(&subjects, &outcomes), &analysed, settings, tilt);
        Ok(Some(found.map_or_else(|reason| Self::Undefined(reason.to_string()), Self::Report)))
    }

    /// The same, where one that does not exist is an error.
    ///
    /// # Errors
    /// [`CliError`] as above, or with the reason.
    pub(crate) fn required(scored: &Scored, settings: &EvaluationSettings) -> Result<Option<Self>, CliError> {
        match Self::new(scored, settings)? {
            Some(Self::Undefined(reason)) => Err(CliError::setting("--sensitivity", reason, None)),
            found => Ok(found),
        }
    }
}
