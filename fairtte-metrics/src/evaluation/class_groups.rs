//! Who the samples of a class are, group by group, with the curves of a page: ROC, and predicted probability against observed share.

use serde::{Deserialize, Serialize};

use crate::calibration::bins_of_risk::equal_bins;
use crate::classification::smoothed::smoothed;
use crate::classification::{ClassPredictions, Confusion, confusion};
use crate::evaluation::calibration_curve::{
    CURVE_POINTS, CalibrationCurve, CalibrationPoint, EVENTS_PER_BIN, FEWEST_EVENTS, MOST_BINS,
};
use crate::evaluation::classes::ClassSettings;
use crate::evaluation::evaluated::count_subjects;
use crate::statistics::wilson_interval;
use crate::{Groups, MetricError, SubjectId};

/// A ROC curve in a figure has about this many points.
const ROC_POINTS: usize = 200;

/// What is shown of the whole sample, then of every group of every attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClassGroups {
    /// Counts, shares and decisions.
    pub summary: Vec<ClassSummary>,
    /// True against false positive rates.
    pub roc: Vec<RocCurve>,
    /// Observed shares against predicted probabilities.
    pub calibration: Vec<CalibrationCurve>,
}

/// The samples of one group (or all: no attribute, no level).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClassSummary {
    /// Name of the attribute.
    pub attribute: Option<String>,
    /// Name of the level.
    pub level: Option<String>,
    /// Samples.
    pub n: usize,
    /// Distinct subjects among them.
    pub n_subjects: usize,
    /// Positive samples.
    pub n_positive: usize,
    /// Share of positive samples, in [0, 1]; `None` without samples.
    pub observed: Option<f64>,
    /// Its interval (Wilson), which takes samples as independent.
    pub observed_interval: Option<(f64, f64)>,
    /// Mean predicted probability.
    pub predicted: Option<f64>,
    /// Who is called what at the threshold; `None` without samples.
    pub decisions: Option<Confusion>,
    /// Probabilities of 0 or 1, which have no logit.
    pub n_certain: usize,
}

/// The ROC curve of one group (or of all: no attribute, no level).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RocCurve {
    /// Name of the attribute.
    pub attribute: Option<String>,
    /// Name of the level.
    pub level: Option<String>,
    /// Positive samples.
    pub n_positive: usize,
    /// Negative samples.
    pub n_negative: usize,
    /// False positive rates, ascending from 0 to 1; empty without both classes.
    pub false_positive: Vec<f64>,
    /// True positive rate at each.
    pub true_positive: Vec<f64>,
    /// False and true positive rate at the threshold.
    pub at_threshold: Option<(f64, f64)>,
}

/// The whole sample, then every group; row `i` of every argument is the same sample. `level` is that of the intervals. O(n log n)
/// per attribute.
///
/// ```
/// use fairtte_metrics::classification::ClassPredictions;
/// use fairtte_metrics::evaluation::{ClassSettings, describe_classes};
/// use fairtte_metrics::SubjectId;
///
/// let predictions = ClassPredictions::new(vec![0.1, 0.4, 0.6, 0.9], vec![false, true, false, true])?;
/// let subjects = ["a", "b", "c", "d"].map(SubjectId::from);
/// let found = describe_classes(&predictions, &subjects, &[], &ClassSettings::default(), 0.95)?;
/// assert_eq!((found.summary[0].n_positive, found.summary[0].observed), (2, Some(0.5)));
/// // From 0.5 on: one of two negatives, and one of two positives.
/// assert_eq!(found.roc[0].at_threshold, Some((0.5, 0.5)));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of [`ClassSettings::validate`]; [`MetricError::LengthMismatch`] unless there is one subject per sample;
/// [`MetricError::InvalidSetting`] for the level.
pub fn describe_classes(
    predictions: &ClassPredictions,
    subjects: &[SubjectId],
    groups: &[Groups],
    class: &ClassSettings,
    level: f64,
) -> Result<ClassGroups, MetricError> {
    class.validate()?;
    let n = predictions.n();
    let lengths = groups.iter().map(|groups| ("members of an attribute", groups.membership().len()));
    for (what, found) in std::iter::once(("subjects", subjects.len())).chain(lengths) {
        if found != n {
            return Err(MetricError::LengthMismatch { what, found, expected: n });
        }
    }
    let mut slices: Vec<Slice<'_>> = vec![(None, (0..n).collect())];
    for groups in groups {
        let name = |level: usize| Some((groups.attribute(), groups.levels()[level].as_str()));
        slices.extend(groups.ids().map(|group| (name(group.index()), groups.rows(group))));
    }
    let mut found = ClassGroups { summary: Vec::new(), roc: Vec::new(), calibration: Vec::new() };
    for (name, rows) in &slices {
        let of_slice = predictions.select(rows);
        found.summary.push(summary(*name, &of_slice, count_subjects(subjects, rows), class, level)?);
        found.roc.push(roc(*name, &of_slice, class));
        found.calibration.push(calibration(*name, &of_slice, level)?);
    }
    Ok(found)
}

/// Attribute and level of a group (`None`: all samples), and its rows.
type Slice<'a> = (Option<(&'a str, &'a str)>, Vec<usize>);

fn owned(name: Option<(&str, &str)>) -> (Option<String>, Option<String>) {
    name.map(|(attribute, level)| (attribute.to_owned(), level.to_owned())).unzip()
}

fn summary(
    name: Option<(&str, &str)>,
    found: &ClassPredictions,
    n_subjects: usize,
    class: &ClassSettings,
    interval: f64,
) -> Result<ClassSummary, MetricError> {
    let (n, n_positive) = (found.n(), found.n_positive());
    let (attribute, level) = owned(name);
    let of_samples = |sum: f64| (n > 0).then(|| sum / n as f64);
    Ok(ClassSummary {
        attribute,
        level,
        n,
        n_subjects,
        n_positive,
        observed: of_samples(n_positive as f64),
        observed_interval: wilson_interval(n_positive, n, interval)?,
        predicted: of_samples(found.probability().iter().sum()),
        decisions: confusion(found, class.threshold).ok(),
        n_certain: found.probability().iter().filter(|p| **p <= 0.0 || **p >= 1.0).count(),
    })
}

fn roc(name: Option<(&str, &str)>, found: &ClassPredictions, class: &ClassSettings) -> RocCurve {
    let (attribute, level) = owned(name);
    let n_positive = found.n_positive();
    let n_negative = found.n() - n_positive;
    let mut curve = RocCurve {
        attribute,
        level,
        n_positive,
        n_negative,
        false_positive: Vec::new(),
        true_positive: Vec::new(),
        at_threshold: None,
    };
    if n_positive == 0 || n_negative == 0 {
        return curve;
    }
    let (mut hits, mut false_alarms) = (0.0, 0.0);
    let mut points = vec![(0.0, 0.0)];
    curve.at_threshold = Some((0.0, 0.0));
    for (p, positive, negative) in found.runs() {
        hits += positive;
        false_alarms += negative;
        let point = (false_alarms / n_negative as f64, hits / n_positive as f64);
        points.push(point);
        if p >= class.threshold {
            curve.at_threshold = Some(point);
        }
    }
    let step = points.len().div_ceil(ROC_POINTS);
    let last = points.len() - 1;
    let kept = points.into_iter().enumerate().filter(|(k, _)| k % step == 0 || *k == last);
    (curve.false_positive, curve.true_positive) = kept.map(|(_, point)| point).unzip();
    curve
}

/// The smoothed curve where both classes have [`FEWEST_EVENTS`] samples, and bins of equal size with [`EVENTS_PER_BIN`] of the
/// rarer class each on average.
fn calibration(
    name: Option<(&str, &str)>,
    found: &ClassPredictions,
    interval: f64,
) -> Result<CalibrationCurve, MetricError> {
    let (attribute, level) = owned(name);
    let n_rarer = found.n_positive().min(found.n() - found.n_positive());
    let mut curve = CalibrationCurve {
        attribute,
        level,
        n_events: found.n_positive(),
        ici: None,
        undefined: None,
        predicted: Vec::new(),
        observed: Vec::new(),
        bins: Vec::new(),
    };
    if n_rarer < FEWEST_EVENTS {
        let reason = format!("samples of the rarer class: {n_rarer}, fewer than {FEWEST_EVENTS}");
        return Ok(CalibrationCurve { undefined: Some(reason), ..curve });
    }
    let mut order = found.falling();
    order.reverse();
    let p = found.probability();
    match smoothed(found) {
        Ok(observed) => {
            curve.ici = Some(observed.iter().zip(p).map(|(o, p)| (o - p).abs()).sum::<f64>() / p.len() as f64);
            let last = order.len() - 1;
            let places = (0..CURVE_POINTS).map(|k| order[k * last / (CURVE_POINTS - 1)]);
            let mut points: Vec<(f64, f64)> = places.map(|row| (p[row], observed[row])).collect();
            points.dedup_by(|a, b| a.0.total_cmp(&b.0).is_eq());
            (curve.predicted, curve.observed) = points.into_iter().unzip();
        }
        Err(reason) => curve.undefined = Some(reason.to_string()),
    }
    let n_bins = (n_rarer / EVENTS_PER_BIN).min(MOST_BINS);
    for rows in equal_bins(&order, p, n_bins) {
        let n = rows.len();
        let n_positive = rows.iter().filter(|row| found.positive()[**row]).count();
        let ends = wilson_interval(n_positive, n, interval)?;
        curve.bins.push(CalibrationPoint {
            n,
            predicted: rows.iter().map(|row| p[*row]).sum::<f64>() / n as f64,
            observed: n_positive as f64 / n as f64,
            lower: ends.map(|ends| ends.0),
            upper: ends.map(|ends| ends.1),
        });
    }
    Ok(curve)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GroupId;
    use crate::classification::auc;
    use approx::assert_abs_diff_eq;

    fn found(n: usize, threshold: f64) -> (ClassPredictions, ClassGroups) {
        // Probabilities k / n; positive where (7 k) mod n is below it, so that both classes are everywhere.
        let probability: Vec<f64> = (0..n).map(|k| k as f64 / n as f64).collect();
        let positive = (0..n).map(|k| (7 * k) % n < k).collect();
        let predictions = ClassPredictions::new(probability, positive).unwrap();
        let subjects: Vec<SubjectId> = (0..n).map(|k| SubjectId::new(format!("p{}", k / 2))).collect();
        let membership = (0..n).map(|k| if k % 5 == 0 { None } else { Some(GroupId(u32::from(k >= n - 8))) }).collect();
        let groups = Groups::new("site", vec!["a".into(), "b".into()], membership).unwrap();
        let class = ClassSettings { threshold, ..ClassSettings::default() };
        let found = describe_classes(&predictions, &subjects, &[groups], &class, 0.95).unwrap();
        (predictions, found)
    }

    #[test]
    fn counts_are_those_of_the_rows_and_the_decisions_add_up() {
        let (predictions, found) = found(300, 0.5);
        let all = &found.summary[0];
        assert_eq!((all.n, all.n_subjects, all.n_positive, all.n_certain), (300, 150, predictions.n_positive(), 1));
        assert_abs_diff_eq!(all.predicted.unwrap(), 299.0 / 600.0, epsilon = 1e-12);
        let ends = all.observed_interval.unwrap();
        assert!(ends.0 < all.observed.unwrap() && all.observed.unwrap() < ends.1);
        let decisions = all.decisions.unwrap();
        assert_abs_diff_eq!(decisions.true_positive + decisions.false_positive, 150.0);
        assert_abs_diff_eq!(decisions.true_positive + decisions.false_negative, all.n_positive as f64);
        assert_eq!([found.summary[1].n, found.summary[2].n], [233, 7], "every fifth is in no group");
        assert_eq!(found.summary[2].level.as_deref(), Some("b"));
    }

    /// The area under the piecewise linear curve is the AUC.
    #[test]
    fn the_area_below_the_roc_curve_is_the_auc_and_the_threshold_is_on_it() {
        let (predictions, found) = found(150, 0.5);
        let curve = &found.roc[0];
        assert_eq!((curve.false_positive.len(), curve.false_positive[0], curve.true_positive[150]), (151, 0.0, 1.0));
        let area: f64 = (1..curve.false_positive.len())
            .map(|k| {
                let width = curve.false_positive[k] - curve.false_positive[k - 1];
                0.5 * width * (curve.true_positive[k] + curve.true_positive[k - 1])
            })
            .sum();
        assert_abs_diff_eq!(area, auc(&predictions).unwrap(), epsilon = 1e-12);
        let decisions = found.summary[0].decisions.unwrap();
        let rates = (decisions.false_positive_rate().unwrap(), 1.0 - decisions.false_negative_rate().unwrap());
        let at = curve.at_threshold.unwrap();
        assert_abs_diff_eq!(at.0, rates.0, epsilon = 1e-12);
        assert_abs_diff_eq!(at.1, rates.1, epsilon = 1e-12);
        let (_, many) = self::found(2000, 1.0);
        assert!(many.roc[0].false_positive.len() <= 202 && many.roc[0].true_positive.last() == Some(&1.0));
        assert_eq!(many.roc[0].at_threshold, Some((0.0, 0.0)), "no sample has a probability of 1");
    }

    #[test]
    fn bins_are_of_equal_size_and_a_small_group_says_why_it_has_no_curve() {
        let (_, found) = found(300, 0.5);
        let all = &found.calibration[0];
        assert_eq!((all.bins.len(), all.bins.iter().map(|bin| bin.n).sum::<usize>()), (10, 300));
        let mean: f64 = all.bins.iter().map(|bin| bin.predicted).sum::<f64>() / 10.0;
        assert_abs_diff_eq!(mean, 299.0 / 600.0, epsilon = 1e-12);
        assert!(all.ici.unwrap() < 0.05 && all.predicted.len() == 51, "{all:?}");
        let small = &found.calibration[2];
        assert_eq!(small.undefined.as_deref(), Some("samples of the rarer class: 0, fewer than 20"));
        assert!(found.roc[2].false_positive.is_empty() && found.roc[2].at_threshold.is_none());
    }

    #[test]
    fn one_subject_per_sample_is_needed() {
        let predictions = ClassPredictions::new(vec![0.5], vec![true]).unwrap();
        let found = describe_classes(&predictions, &[], &[], &ClassSettings::default(), 0.95);
        assert!(matches!(found, Err(MetricError::LengthMismatch { what: "subjects", .. })));
    }
}
