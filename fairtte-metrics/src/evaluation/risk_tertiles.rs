//! Observed and predicted survival of the samples with low, middle and high predicted risk.
//!
//! The thirds are those of the predicted risk at the horizon in the whole sample, so that "high" means the same risk in
//! every group. Samples with equal risks are in one third. The display is that of Royston & Altman (2013),
//! doi:10.1186/1471-2288-13-33: well separated curves show discrimination, agreement of observed and predicted ones
//! calibration.

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::evaluation::evaluated::{AtHorizon, Input, Predictions};
use crate::evaluation::report::{BandedCurve, Curve, GroupCurves};
use crate::resampling::bootstrap::quantile;

const NAMES: [&str; 3] = ["low", "middle", "high"];

/// The thirds of the predicted risk in one group (or in the whole sample: no attribute, no level).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RiskTertiles {
    /// Name of the attribute.
    pub attribute: Option<String>,
    /// Name of the level.
    pub level: Option<String>,
    /// From low to high risk.
    pub tertiles: Vec<RiskTertile>,
}

/// The samples of one third.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RiskTertile {
    /// `low`, `middle` or `high`.
    pub name: String,
    /// Predicted risks at the horizon are above this one; `None` of the lowest third.
    pub above: Option<f64>,
    /// Predicted risks are at most this one; `None` of the highest third.
    pub at_most: Option<f64>,
    /// Samples.
    pub n: usize,
    /// Events.
    pub n_events: usize,
    /// Kaplan-Meier curve, of one of several causes 1 - Aalen-Johansen; empty without samples.
    pub kaplan_meier: BandedCurve,
    /// Mean of the predicted curves; empty without samples.
    pub predicted: Curve,
}

/// First of the whole sample, then of every group; empty without a horizon, or if more than a third of all samples have
/// the lowest or the highest risk, so that there are no thirds. O(n log n), and O(n L) for the mean curves.
///
/// # Errors
/// Those of [`KaplanMeier::interval`](crate::estimators::KaplanMeier::interval) for the level of the settings.
pub(crate) fn risk_tertiles(
    input: &Input<'_>,
    predictions: &Predictions<'_>,
    at: Result<&AtHorizon, &MetricError>,
) -> Result<Vec<RiskTertiles>, MetricError> {
    let Ok(at) = at else { return Ok(Vec::new()) };
    let risk = at.risk();
    let mut sorted = risk.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cuts = [1.0, 2.0].map(|third| quantile(&sorted, third / 3.0));
    let third_of: Vec<usize> = risk.iter().map(|risk| cuts.iter().filter(|cut| risk > *cut).count()).collect();
    if (0..NAMES.len()).any(|third| !third_of.contains(&third)) {
        return Ok(Vec::new());
    }
    let tertile = |rows: &[usize], third: usize| {
        let rows: Vec<usize> = rows.iter().copied().filter(|row| third_of[*row] == third).collect();
        let (outcomes, curves) = (input.outcomes.select(&rows), predictions.curves.select(&rows));
        let competing = input.competing_of(&rows);
        let GroupCurves { n, n_events, kaplan_meier, predicted, .. } =
            GroupCurves::new(None, (&outcomes, competing.as_deref()), &curves, input.settings.level, &[])?;
        let (above, at_most) = (third.checked_sub(1).map(|below| cuts[below]), cuts.get(third).copied());
        Ok(RiskTertile { name: NAMES[third].to_owned(), above, at_most, n, n_events, kaplan_meier, predicted })
    };
    let of_slice = |(name, rows): (Option<(&str, &str)>, Vec<usize>)| {
        Ok(RiskTertiles {
            attribute: name.map(|(attribute, _)| attribute.to_owned()),
            level: name.map(|(_, level)| level.to_owned()),
            tertiles: (0..NAMES.len()).map(|third| tertile(&rows, third)).collect::<Result<_, MetricError>>()?,
        })
    };
    input.slices().map(of_slice).collect()
}
