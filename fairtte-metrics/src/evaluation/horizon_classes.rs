//! A class made from times: the AUC of those with a class beside the one of all samples with weights for censoring.
//!
//! Both come from the same draws, so that their difference, which is what leaving samples out does to the AUC, is paired.

use serde::{Deserialize, Serialize};

use crate::classification::horizon::curves_at;
use crate::classification::{ClassPredictions, HorizonClasses, binary_at_horizon};
use crate::evaluation::classes::COUNTED;
use crate::evaluation::evaluated::{Evaluated, Input};
use crate::evaluation::metrics::PreparedMetric;
use crate::evaluation::prepared::{Prepared, Visit};
use crate::evaluation::report::{Difference, MetricDescription, MetricReport};
use crate::evaluation::summary::{Summary, difference, judged};
use crate::rank::{AucConvention, AucTd, PreparedAucTd};
use crate::{CensoringCurve, Direction, EvaluationSettings, Groups, MetricError, Outcomes, Reading, SubjectId};

/// In the order of [`evaluate_at_horizon`].
const BOTH: [MetricDescription<'static>; 2] = [
    MetricDescription {
        name: "auc-naive",
        label: "AUC of the class",
        convention: "area under the ROC curve of those with a class: censored by the horizon are left out without compensation",
        direction: Direction::HigherIsBetter,
    },
    MetricDescription {
        name: "auc-weighted",
        label: "AUC with weights",
        convention: "cumulative/dynamic AUC at the horizon: cases weigh 1 / G(T-), controls 1 / G(t) (riskRegression)",
        direction: Direction::HigherIsBetter,
    },
];

/// What leaving out the censored does to the AUC of a class made from times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HorizonReport {
    /// The horizon, in the unit of the data set.
    pub horizon: f64,
    /// The samples with a class and those without, of all samples, then of every group.
    pub left_out: Vec<LeftOut>,
    /// The AUC of those with a class; counts are those of all samples, and events those by the horizon.
    pub naive: MetricReport,
    /// The AUC of all samples with weights.
    pub weighted: MetricReport,
    /// AUC of the class minus that with weights, in the order of `left_out`; without interval with too few samples of one class.
    pub differences: Vec<Difference>,
}

/// The samples of one group (or all: no attribute, no level) at the horizon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LeftOut {
    /// Name of the attribute.
    pub attribute: Option<String>,
    /// Name of the level.
    pub level: Option<String>,
    /// Samples.
    pub n: usize,
    /// With an event by the horizon.
    pub n_positive: usize,
    /// Followed beyond the horizon.
    pub n_negative: usize,
    /// Censored by the horizon, without a class.
    pub n_left_out: usize,
}

/// The AUC of the class "event by `horizon`" of those with a class, that of all samples with weights for censoring, and their
/// difference, of the whole sample and of every group with intervals from the same draws.
///
/// `probability` is that of the event by the horizon; row `i` of every argument is the same sample. `censoring` is fitted on the
/// training sample. Cost: O(n log n), and O(n) per replicate and attribute.
///
/// ```
/// use fairtte_metrics::evaluation::evaluate_at_horizon;
/// use fairtte_metrics::{CensoringCurve, CensoringTies, EvaluationSettings, Outcomes, SubjectId};
///
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0, 4.0, 5.0], vec![true, false, true, false, true])?;
/// let subjects = ["a", "b", "c", "d", "e"].map(SubjectId::from);
/// let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst)?;
/// let settings = EvaluationSettings { replicates: 0, permutations: 0, ..EvaluationSettings::default() };
/// let probability = [0.9, 0.5, 0.3, 0.4, 0.1];
/// let found = evaluate_at_horizon(&probability, &outcomes, &censoring, 3.5, &subjects, &[], &settings)?;
/// assert_eq!((found.left_out[0].n_positive, found.left_out[0].n_left_out), (2, 1));
/// assert_eq!(found.naive.overall.value, Some(0.75));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of [`binary_at_horizon`] and [`HorizonClasses::predictions`], and of [`evaluate`](crate::evaluate) for subjects, groups
/// and settings.
pub fn evaluate_at_horizon(
    probability: &[f64],
    outcomes: &Outcomes,
    censoring: &CensoringCurve,
    horizon: f64,
    subjects: &[SubjectId],
    groups: &[Groups],
    settings: &EvaluationSettings,
) -> Result<HorizonReport, MetricError> {
    binary_at_horizon(outcomes, horizon)?.predictions(probability)?;
    // Only events by the horizon make a class, so only they count for `min-events` and in what is shown.
    let by_horizon = outcomes.event().iter().zip(outcomes.time()).map(|(event, time)| *event && *time <= horizon);
    let counted = Outcomes::new(outcomes.time().to_vec(), by_horizon.collect())?;
    let input = Input { subjects, outcomes: &counted, competing: None, groups, settings };
    input.check()?;
    let prepare = |rows: &[usize], visit: Visit<'_, 'static>| {
        let outcomes = outcomes.select(rows);
        let own: Vec<f64> = rows.iter().map(|row| probability[*row]).collect();
        let naive = || -> Prepared<'static> { Ok(Box::new(Naive::new(&outcomes, &own, horizon)?)) };
        let weighted = || -> Prepared<'static> { Ok(Box::new(Weighted::new(&outcomes, &own, censoring, horizon)?)) };
        visit(naive());
        visit(weighted());
    };
    let evaluated = Evaluated::of_prepared(&input, &BOTH, prepare, true)?;
    let summary = Summary { input: &input, evaluated: &evaluated };
    let left_out = input.slices().map(|(name, rows)| left_out(name, &outcomes.select(&rows), horizon));
    let left_out = left_out.collect::<Result<Vec<_>, _>>()?;
    let levels =
        groups.iter().enumerate().flat_map(|(k, groups)| (0..groups.levels().len()).map(move |level| (k, level)));
    let pairs = std::iter::once([evaluated.overall(0), evaluated.overall(1)])
        .chain(levels.map(|(k, level)| [evaluated.group(0, k, level), evaluated.group(1, k, level)]));
    let differences = pairs.zip(&left_out).map(|([naive, weighted], counts)| {
        let n_rarer = counts.n_positive.min(counts.n_negative);
        judged(difference(&naive, &weighted, settings), COUNTED, n_rarer, settings.min_events)
    });
    let differences = differences.collect();
    Ok(HorizonReport { horizon, differences, left_out, naive: summary.metric(0), weighted: summary.metric(1) })
}

fn left_out(name: Option<(&str, &str)>, outcomes: &Outcomes, horizon: f64) -> Result<LeftOut, MetricError> {
    let HorizonClasses { positive, n_left_out, .. } = binary_at_horizon(outcomes, horizon)?;
    let n_positive = positive.iter().filter(|positive| **positive).count();
    Ok(LeftOut {
        attribute: name.map(|(attribute, _)| attribute.to_owned()),
        level: name.map(|(_, level)| level.to_owned()),
        n: outcomes.n(),
        n_positive,
        n_negative: positive.len() - n_positive,
        n_left_out,
    })
}

/// Those with a class by falling probability: row, class, and whether the next one has the same probability.
struct Naive {
    rows: Vec<(usize, bool, bool)>,
}

impl Naive {
    fn new(outcomes: &Outcomes, probability: &[f64], horizon: f64) -> Result<Self, MetricError> {
        let classes = binary_at_horizon(outcomes, horizon)?;
        let predictions: ClassPredictions = classes.predictions(probability)?;
        let order = predictions.falling();
        let p = |place: usize| order.get(place).map(|row| predictions.probability()[*row]);
        let row = |(place, row): (usize, &usize)| {
            let is_tied = p(place).zip(p(place + 1)).is_some_and(|(own, next)| own.total_cmp(&next).is_eq());
            (classes.rows[*row], classes.positive[*row], is_tied)
        };
        Ok(Self { rows: order.iter().enumerate().map(row).collect() })
    }
}

impl PreparedMetric for Naive {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        let (mut totals, mut run, mut twice) = ([0_u64; 2], [0_u64; 2], 0.0);
        for (row, positive, is_tied) in &self.rows {
            run[usize::from(*positive)] += u64::from(weights[*row]);
            if !is_tied {
                twice += run[0] as f64 * (2 * totals[1] + run[1]) as f64;
                totals = [totals[0] + run[0], totals[1] + run[1]];
                run = [0; 2];
            }
        }
        let [negative, positive] = totals.map(|total| total as f64);
        if negative > 0.0 && positive > 0.0 {
            return Ok(twice / (2.0 * negative * positive));
        }
        #[expect(clippy::cast_possible_truncation, reason = "a number of samples in memory")]
        let [n_positive, n] = [totals[1] as usize, (totals[0] + totals[1]) as usize];
        Err(MetricError::OneClass { n_positive, n })
    }
}

struct Weighted(PreparedAucTd);

impl Weighted {
    fn new(
        outcomes: &Outcomes,
        probability: &[f64],
        censoring: &CensoringCurve,
        horizon: f64,
    ) -> Result<Self, MetricError> {
        let curves = curves_at(horizon, probability)?;
        let (times, convention) = ([horizon], AucConvention::RiskRegression);
        Ok(Self(AucTd::prepare_with(outcomes, &curves, censoring, Reading::Step, &times, convention)?))
    }
}

impl PreparedMetric for Weighted {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        self.0.weighted(weights)?.values.into_iter().next().unwrap_or(Err(MetricError::NoSamples))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CensoringTies, GroupId, seeds};
    use rand::RngExt as _;

    /// Censoring depends on the risk; without it if `censored` is 0.
    fn report(censored: f64) -> (HorizonReport, Outcomes, Vec<f64>, CensoringCurve) {
        let n = 400;
        let mut rng = seeds::stream(5, "horizon-classes", &[]);
        let (mut time, mut event, mut probability) = (vec![], vec![], vec![]);
        for _ in 0..n {
            let risk = rng.random::<f64>();
            let own = -(1.0 - rng.random::<f64>()).ln() / (0.2 + risk);
            let end = if rng.random::<f64>() < censored { 2.0 * rng.random::<f64>() } else { 9.0 };
            time.push(own.min(end));
            event.push(own <= end);
            // Rounded, so that there are ties.
            probability.push((risk * 20.0).round() / 20.0);
        }
        let outcomes = Outcomes::new(time, event).unwrap();
        let subjects: Vec<SubjectId> = (0..n).map(|row| SubjectId::new(format!("p{row}"))).collect();
        let membership = (0..n).map(|row| Some(GroupId(crate::ids::to_u32(row % 2)))).collect();
        let groups = Groups::new("sex", vec!["F".into(), "M".into()], membership).unwrap();
        let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
        let settings = EvaluationSettings { replicates: 60, permutations: 0, ..EvaluationSettings::default() };
        let found =
            evaluate_at_horizon(&probability, &outcomes, &censoring, 1.5, &subjects, &[groups], &settings).unwrap();
        (found, outcomes, probability, censoring)
    }

    #[test]
    fn both_are_those_of_their_functions_and_counts_add_up() {
        let (found, outcomes, probability, censoring) = report(0.6);
        let expected = binary_at_horizon(&outcomes, 1.5).unwrap().auc(&outcomes, &probability, &censoring).unwrap();
        let near = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 1e-12);
        assert!(
            near(found.naive.overall.value, expected.naive) && near(found.weighted.overall.value, expected.weighted)
        );
        let overall = &found.differences[0];
        assert!(near(overall.value, expected.naive - expected.weighted));
        assert!(overall.lower < overall.value && overall.value < overall.upper);
        let counts: Vec<usize> = found.left_out.iter().map(|c| c.n_positive + c.n_negative + c.n_left_out).collect();
        assert_eq!((counts, found.differences.len()), (vec![400, 200, 200], 3));
        let left: Vec<usize> = found.left_out.iter().map(|counts| counts.n_left_out).collect();
        assert!(left[0] > 50 && left[0] == left[1] + left[2]);
    }

    #[test]
    fn without_censoring_by_the_horizon_nothing_differs() {
        let (found, ..) = report(0.0);
        assert_eq!(found.left_out[0].n_left_out, 0);
        for difference in &found.differences {
            assert!([difference.value, difference.lower, difference.upper].iter().flatten().all(|v| v.abs() < 1e-12));
        }
    }
}
