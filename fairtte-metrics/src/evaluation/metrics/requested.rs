//! What a user asks for: a metric by name, perhaps at a time, and the risk that rank metrics take from a curve.

use serde::{Deserialize, Serialize};

use super::{Metric, ScoredSample, known_metrics};
use crate::scores::integrate::time_average;
use crate::{MetricError, Risk};

/// A metric as it is named in settings: `ibs`, `brier`, `brier@365`, `sensitivity:0.2`, `sensitivity@365:0.2`.
#[derive(Clone, Copy, Debug)]
pub struct RequestedMetric {
    /// The metric.
    pub metric: &'static dyn Metric,
    /// The horizon, in place of that of the settings.
    pub at: Option<f64>,
    /// The threshold of the predicted risk, of a metric of decisions.
    pub threshold: Option<f64>,
}

impl RequestedMetric {
    /// Reads a name.
    ///
    /// # Errors
    /// [`MetricError::UnknownMetric`], listing what is known; [`MetricError::InvalidSetting`] for a time that is not a
    /// finite number > 0, or of a metric without a horizon; or for a threshold that is not between 0 and 1, or of a metric
    /// that makes no decisions.
    pub fn parse(text: &str) -> Result<Self, MetricError> {
        let (rest, threshold) = split(text, ':');
        let (name, at) = split(rest, '@');
        let known = known_metrics();
        let Some(metric) = known.iter().find(|metric| metric.name() == name).copied() else {
            let known = known.iter().map(|metric| metric.name()).collect::<Vec<_>>().join(", ");
            return Err(MetricError::UnknownMetric { name: name.to_owned(), known });
        };
        let invalid = |expected| MetricError::InvalidSetting { setting: "metrics", value: text.to_owned(), expected };
        if at.is_some() && !metric.has_horizon() {
            return Err(invalid("no @: this metric is not about one time"));
        }
        if threshold.is_some() && !metric.has_threshold() {
            return Err(invalid("no colon: this metric makes no decisions at a threshold"));
        }
        let number = |text: &str, high: f64, expected| {
            let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0 && *number < high);
            number.ok_or_else(|| invalid(expected))
        };
        Ok(Self {
            metric,
            at: at.map(|at| number(at, f64::INFINITY, "a finite number > 0 after the @")).transpose()?,
            threshold: threshold.map(|at| number(at, 1.0, "a number between 0 and 1 after the colon")).transpose()?,
        })
    }
}

/// What is before and after the first `mark`.
fn split(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// The risk that a rank metric of one number per sample takes from a survival curve; higher = earlier event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RiskOfCurve {
    /// The negative mean survival over the evaluation times, by trapezoids: the negative restricted mean survival time
    /// between the first and the last of them, divided by their range.
    #[default]
    NegativeRestrictedMean,
    /// The sum of the cumulative hazards -log S at the evaluation times (Ishwaran et al. 2008, "ensemble mortality"); S
    /// not below 1e-12.
    ExpectedMortality,
    /// 1 - S at the horizon.
    AtHorizon,
}

impl RiskOfCurve {
    /// Its name in a convention, in which `{risk}` stands for it.
    fn in_words(self) -> &'static str {
        match self {
            Self::NegativeRestrictedMean => {
                "the negative restricted mean survival time (mean survival over the evaluation times, with its sign turned)"
            }
            Self::ExpectedMortality => "the expected mortality (sum of the cumulative hazards at the evaluation times)",
            Self::AtHorizon => "the predicted risk at the horizon, 1 - S",
        }
    }

    /// The convention of a metric with this risk in the place of `{risk}`.
    pub(crate) fn named_in(self, convention: &str) -> String {
        convention.replace("{risk}", self.in_words())
    }

    pub(super) fn of(self, sample: &ScoredSample<'_>) -> Result<Risk, MetricError> {
        let (curves, reading) = (sample.curves, sample.reading);
        let of_row = |times: &[f64], row: usize| -> Vec<f64> {
            times.iter().map(|time| curves.at(row, *time, reading)).collect()
        };
        let over_times = |of: fn(&[f64], &[f64]) -> f64| {
            let times = sample.times()?;
            Risk::new((0..curves.n()).map(|row| of(times, &of_row(times, row))).collect())
        };
        match self {
            Self::NegativeRestrictedMean => over_times(|times, survival| match survival {
                [only] => -only,
                survival => -time_average(times, survival),
            }),
            Self::ExpectedMortality => {
                over_times(|_, survival| survival.iter().map(|survival| -survival.max(1e-12).ln()).sum())
            }
            Self::AtHorizon => Risk::new(sample.risk_at(sample.horizon()?)),
        }
    }
}
