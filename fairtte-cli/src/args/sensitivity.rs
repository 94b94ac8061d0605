//! Arguments of `evaluate` for informative censoring.

use clap::Args;
use fairtte_metrics::EvaluationSettings;
use fairtte_metrics::sensitivity::{SensitivitySettings, TiltedGroup};
use serde::Serialize;

/// How the censored are tilted; other settings by `--set sensitivity.model=..` and so on.
#[derive(Args, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Informative censoring")]
pub struct Sensitivity {
    /// Metrics and gaps if those who drop out have a different hazard from those who stay, as a function of the hazard
    /// ratio, and the ratio at which a gap appears or vanishes
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sensitivity: bool,
    /// Logarithms of the hazard ratio, ascending, 0 among them (-1.5 to 1.5 in steps of 0.5 if not given)
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, requires = "sensitivity")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deltas: Vec<f64>,
    /// Group whose drop-outs have the different hazard; drop-outs of the other groups have that of those who stay (all
    /// groups if not given)
    #[arg(long, value_name = "ATTRIBUTE=LEVEL", value_parser = group, requires = "sensitivity")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tilt: Option<TiltedGroup>,
    /// End of follow-up: those who are observed up to it did not drop out, and nothing is imputed beyond it (the earliest of the
    /// last observed times of the groups if not given)
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, requires = "sensitivity")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub administrative: Option<f64>,
    /// Imputations behind every value (20 if not given)
    #[arg(long, value_name = "N", requires = "sensitivity")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imputations: Option<usize>,
}

/// `ATTRIBUTE=LEVEL`, split at the first `=`.
fn group(text: &str) -> Result<TiltedGroup, String> {
    let (attribute, level) = text.split_once('=').ok_or("expected ATTRIBUTE=LEVEL, for example race=black")?;
    Ok(TiltedGroup { attribute: attribute.trim().to_owned(), level: level.trim().to_owned() })
}

impl Sensitivity {
    /// Writes what is given into `settings`.
    pub(crate) fn apply(&self, settings: &mut EvaluationSettings) {
        if !self.sensitivity {
            return;
        }
        let tilt = settings.sensitivity.get_or_insert_with(SensitivitySettings::default);
        if !self.deltas.is_empty() {
            tilt.deltas.clone_from(&self.deltas);
        }
        tilt.group = self.tilt.clone().or(tilt.group.take());
        tilt.administrative = self.administrative.or(tilt.administrative);
        tilt.imputations = self.imputations.unwrap_or(tilt.imputations);
    }
}
