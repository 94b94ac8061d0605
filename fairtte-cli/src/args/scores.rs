//! Arguments of `evaluate` that say what is computed, in words shorter than `--set`.

use clap::Args;
use fairtte_metrics::EvaluationSettings;
use serde::Serialize;

use super::sensitivity::Sensitivity;

/// What is computed.
#[derive(Args, Debug, Serialize)]
#[command(next_help_heading = "Scores")]
pub struct Scores {
    /// Metrics (`fairtte list metrics`); those about one time as `brier@365` or, at the horizon, as `brier`
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Time of the metrics about one time; the median of the event times if not given
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub horizon: Option<f64>,
    /// Predicted risks at the horizon at or above which a sample is called positive: adds sensitivity, specificity, predictive
    /// values, selection rate and net benefit
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true)]
    pub threshold: Vec<f64>,
    /// Events that a group needs to be compared; smaller groups stay visible (10 if not given)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub min_events: Option<usize>,
    /// Level to compare the other groups of an attribute with, each minus it, in place of every two groups
    #[arg(long, value_name = "ATTRIBUTE=LEVEL", value_parser = reference)]
    pub reference: Vec<(String, String)>,
    /// Covariates of a baseline, columns of the samples: a Cox model of them alone is shown beside the model, for everybody and
    /// every group. A run has one of all its attributes if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub baseline: Vec<String>,
    /// Random exchanges of the group labels that show which gaps chance alone makes (199 if not given; 0 = none)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub permutations: Option<usize>,
    /// Informative censoring
    #[command(flatten)]
    #[serde(flatten)]
    pub sensitivity: Sensitivity,
}

/// `ATTRIBUTE=LEVEL`, split at the first `=`.
pub(super) fn reference(text: &str) -> Result<(String, String), String> {
    let (attribute, level) = text.split_once('=').ok_or("expected ATTRIBUTE=LEVEL, for example race=White")?;
    Ok((attribute.trim().to_owned(), level.trim().to_owned()))
}

impl Scores {
    /// Writes what is given into `settings`.
    pub(crate) fn apply(&self, settings: &mut EvaluationSettings) {
        if !self.metrics.is_empty() {
            settings.metrics.clone_from(&self.metrics);
        }
        if !self.threshold.is_empty() {
            settings.thresholds.clone_from(&self.threshold);
        }
        settings.horizon = self.horizon.or(settings.horizon);
        settings.min_events = self.min_events.unwrap_or(settings.min_events);
        settings.permutations = self.permutations.unwrap_or(settings.permutations);
        settings.reference.extend(self.reference.iter().cloned());
        self.sensitivity.apply(settings);
    }
}
