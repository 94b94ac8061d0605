//! Predicted against observed risk at the horizon, for a figure.
//!
//! The smooth curve is the one behind the integrated calibration index: o = 1 - exp(-H0(t) exp(f(log(-log S)))), f a
//! restricted cubic spline of a Cox model (`calibration/calibration_index.rs`; Austin, Harrell & van Klaveren 2020,
//! doi:10.1002/sim.8570), of one of several causes a model of the subdistribution hazard. The points are 1 - Kaplan-Meier (of
//! one of several causes, Aalen-Johansen) in bins of equal size by predicted risk, as many as have
//! [`EVENTS_PER_BIN`] events by the horizon each on average, at most ten; fewer where many predictions are equal, because these stay in one
//! bin.

use serde::{Deserialize, Serialize};

use crate::calibration::bins_of_risk::equal_bins;
use crate::calibration::calibration_index::index_of_risk;
use crate::competing::observed_without;
use crate::evaluation::evaluated::{AtHorizon, Input};
use crate::evaluation::groups_summary::observed_interval;
use crate::{MetricError, Outcomes};

/// Average number of events by the horizon per bin.
pub(crate) const EVENTS_PER_BIN: usize = 10;
/// With fewer events by the horizon there is no smooth curve: it would be an arbitrary one.
pub(crate) const FEWEST_EVENTS: usize = 20;
pub(crate) const MOST_BINS: usize = 10;
/// Points of the smooth curve: quantiles of the predicted risk.
pub(crate) const CURVE_POINTS: usize = 51;

/// Predicted against observed risk of one group with at least 20 events by the horizon (or of all samples: no attribute, no level).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CalibrationCurve {
    /// Name of the attribute.
    pub attribute: Option<String>,
    /// Name of the level.
    pub level: Option<String>,
    /// Observed events by the horizon.
    pub n_events: usize,
    /// Integrated calibration index: mean |smoothed observed - predicted|, in [0, 1].
    pub ici: Option<f64>,
    /// Why there is no index and no curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
    /// Predicted risks, ascending; the ends are the smallest and the largest of the group.
    pub predicted: Vec<f64>,
    /// Smoothed observed risk at each.
    pub observed: Vec<f64>,
    /// Bins by predicted risk, ascending; empty with too few events for two.
    pub bins: Vec<CalibrationPoint>,
}

/// One bin of samples with similar predicted risks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CalibrationPoint {
    /// Samples.
    pub n: usize,
    /// Mean predicted risk, in [0, 1].
    pub predicted: f64,
    /// 1 - Kaplan-Meier, of one of several causes Aalen-Johansen, in [0, 1].
    pub observed: f64,
    /// Lower end of its pointwise interval; `None` without an event by the horizon and where no sample is left.
    pub lower: Option<f64>,
    /// Upper end.
    pub upper: Option<f64>,
}

/// All samples, then every group of every attribute; none without a horizon. O(n log n) per attribute.
///
/// # Errors
/// Those of [`KaplanMeier::interval`] for the level of the settings.
pub(crate) fn calibration_curves(
    input: &Input<'_>,
    at: Result<&AtHorizon, &MetricError>,
) -> Result<Vec<CalibrationCurve>, MetricError> {
    let Ok(at) = at else { return Ok(Vec::new()) };
    input.slices().map(|(name, rows)| of_rows(name, &rows, input, at)).collect()
}

fn of_rows(
    name: Option<(&str, &str)>,
    rows: &[usize],
    input: &Input<'_>,
    at: &AtHorizon,
) -> Result<CalibrationCurve, MetricError> {
    let outcomes = input.outcomes.select(rows);
    let n_events = outcomes.n_events_by(at.time);
    let mut curve = CalibrationCurve {
        attribute: name.map(|(attribute, _)| attribute.to_owned()),
        level: name.map(|(_, level)| level.to_owned()),
        n_events,
        ici: None,
        undefined: None,
        predicted: Vec::new(),
        observed: Vec::new(),
        bins: Vec::new(),
    };
    if n_events < FEWEST_EVENTS {
        let reason = format!("number of events by the horizon: {n_events}, fewer than {FEWEST_EVENTS}");
        return Ok(CalibrationCurve { undefined: Some(reason), ..curve });
    }
    let competing = input.competing_of(rows);
    let index = match index_of_risk(&outcomes, competing.as_deref().unwrap_or_default(), at.risk_of(rows), at.time) {
        Ok(index) => index,
        Err(reason) => return Ok(CalibrationCurve { undefined: Some(reason.to_string()), ..curve }),
    };
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|a, b| index.predicted[*a].total_cmp(&index.predicted[*b]));
    let last = order.len() - 1;
    let places = (0..CURVE_POINTS).map(|k| order[k * last / (CURVE_POINTS - 1)]);
    let mut points: Vec<(f64, f64)> = places.map(|row| (index.predicted[row], index.observed[row])).collect();
    points.dedup_by(|a, b| a.0.total_cmp(&b.0).is_eq());
    (curve.predicted, curve.observed) = points.into_iter().unzip();
    curve.ici = Some(index.ici);
    let n_bins = (n_events / EVENTS_PER_BIN).min(MOST_BINS);
    if n_bins > 1 {
        let (samples, at) = ((&outcomes, competing.as_deref()), (at.time, input.settings.level));
        curve.bins = points_in_bins(samples, &index.predicted, &order, n_bins, at)?;
    }
    Ok(curve)
}

/// Bins of equal size of the rows in `order`, those of the same risk in one; a bin that is not followed to the horizon is left out.
pub(crate) fn points_in_bins(
    (outcomes, competing): (&Outcomes, Option<&[bool]>),
    risk: &[f64],
    order: &[usize],
    n_bins: usize,
    (horizon, level): (f64, f64),
) -> Result<Vec<CalibrationPoint>, MetricError> {
    let mut points = Vec::with_capacity(n_bins);
    for rows in equal_bins(order, risk, n_bins) {
        let of_bin = outcomes.select(rows);
        let followed = of_bin.time().iter().any(|time| *time >= horizon);
        let competing: Option<Vec<bool>> = competing.map(|competing| rows.iter().map(|row| competing[*row]).collect());
        let samples = (&of_bin, competing.as_deref());
        let survival = observed_without(&of_bin, competing.as_deref())?.at(horizon);
        if !followed && ends_censored(samples) {
            continue;
        }
        let interval = observed_interval(samples, horizon, level)?;
        points.push(CalibrationPoint {
            n: rows.len(),
            predicted: rows.iter().map(|row| risk[*row]).sum::<f64>() / rows.len() as f64,
            observed: 1.0 - survival,
            lower: interval.map(|ends| ends.0),
            upper: interval.map(|ends| ends.1),
        });
    }
    Ok(points)
}

/// Whether a sample is censored at the last time, so that nothing is known of the risk after it.
fn ends_censored((outcomes, competing): (&Outcomes, Option<&[bool]>)) -> bool {
    let last = outcomes.time().iter().copied().fold(0.0, f64::max);
    let is_competing = |row: usize| competing.is_some_and(|competing| competing[row]);
    (0..outcomes.n()).any(|row| outcomes.time()[row] >= last && !outcomes.event()[row] && !is_competing(row))
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::Array2;

    use super::*;
    use crate::{EvaluationSettings, Reading, SubjectId, SurvivalCurves};

    /// Everybody is observed; samples with risk 0.2 and 0.6 have the event by 1 as often as `right` says.
    fn curve(n: usize, right: [usize; 2]) -> CalibrationCurve {
        let (mut time, mut survival) = (Vec::new(), Vec::new());
        for (risk, events) in [0.2, 0.6].into_iter().zip(right) {
            for k in 0..n {
                time.push(if k < events { 0.5 + 0.4 * k as f64 / n as f64 } else { 2.0 });
                survival.push(1.0 - risk);
            }
        }
        let outcomes = Outcomes::new(time.clone(), time.iter().map(|time| *time < 1.0).collect()).unwrap();
        let curves = SurvivalCurves::new(vec![1.0], Array2::from_shape_vec((2 * n, 1), survival).unwrap()).unwrap();
        let subjects: Vec<SubjectId> = (0..2 * n).map(|k| SubjectId::from(k.to_string().as_str())).collect();
        let settings = EvaluationSettings { reading: Reading::Step, ..EvaluationSettings::default() };
        let input =
            Input { subjects: &subjects, outcomes: &outcomes, competing: None, groups: &[], settings: &settings };
        calibration_curves(&input, Ok(&AtHorizon::new(&curves, Reading::Step, 1.0))).unwrap().remove(0)
    }

    #[test]
    fn bins_by_predicted_risk_have_the_observed_share_where_all_are_followed() {
        let found = curve(50, [5, 20]);
        assert_eq!((found.n_events, found.bins.len()), (25, 2));
        assert_eq!([found.bins[0].n, found.bins[1].n], [50, 50]);
        assert_abs_diff_eq!(found.bins[0].predicted, 0.2, epsilon = 1e-12);
        assert_abs_diff_eq!(found.bins[0].observed, 0.1, epsilon = 1e-12);
        assert_abs_diff_eq!(found.bins[1].observed, 0.4, epsilon = 1e-12);
        assert!(found.bins.iter().all(|bin| bin.lower.unwrap() < bin.observed && bin.observed < bin.upper.unwrap()));
        // Two predictions: the curve is two points, and a Cox model of two groups is close to their shares.
        assert_abs_diff_eq!(found.predicted[..], [0.2, 0.6], epsilon = 1e-12);
        assert!((found.observed[0] - 0.1).abs() < 0.02 && (found.observed[1] - 0.4).abs() < 0.02, "{found:?}");
        let ici = f64::midpoint(found.predicted[0] - found.observed[0], found.predicted[1] - found.observed[1]);
        assert_abs_diff_eq!(found.ici.unwrap(), ici, epsilon = 1e-12);
    }

    #[test]
    fn too_few_events_have_neither_curve_nor_bins() {
        assert!(curve(50, [5, 15]).ici.is_some());
        let few = curve(50, [5, 14]);
        assert!(few.ici.is_none() && few.predicted.is_empty() && few.bins.is_empty());
        assert_eq!(few.undefined.unwrap(), "number of events by the horizon: 19, fewer than 20");
    }
}
