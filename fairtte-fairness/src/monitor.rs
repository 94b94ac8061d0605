//! Validation metrics for early stopping and selection, from predictions alone: the same for every head and strategy.
//!
//! Of masks the loss is that of the head, and the Dice of a sample the mean over the values other than the background, at the size of
//! the model; of a value that neither mask has it is 1.
//!
//! The probability of a class is 1 minus the curve of its one interval: AUC, and balanced accuracy at the threshold with the
//! highest F1 in the part, the same for all groups. For curves C^td, AUC^td and IBS are those of
//! [`evaluate`](fairtte_metrics::evaluate) on the validation part: same reading of the curves, same evaluation times, weights for
//! censoring from the training part. The negative log-likelihood is that of the curves at the cut points. Where events have several
//! causes, they are those of the cause that is predicted ([`evaluate_cause`](fairtte_metrics::evaluation::evaluate_cause)), and the
//! likelihood is the joint one of all causes.

use fairtte_metrics::classification::{ClassPredictions, auc, best_f1_threshold, confusion};
use fairtte_metrics::competing::{CompetingOutcomes, IncidenceCurves};
use fairtte_metrics::evaluation::{SampledMetrics, sample_metrics, sample_metrics_of_cause};
use fairtte_metrics::masks::PairScore;
use fairtte_metrics::{CensoringCurve, EvaluationSettings, Groups, MetricError, Outcomes, SubjectId, SurvivalCurves};
use fairtte_survival::{IntervalTargets, Targets};
use ndarray::Array2;

use crate::FairnessError;
pub use fairtte_records::{AttributeValidation, GroupValidation, Metrics, Monitor, Predicted, Validation, metrics_of};

/// The data against which validation curves are scored.
#[derive(Debug)]
pub(crate) struct Truth<'a> {
    pub(crate) subjects: &'a [SubjectId],
    /// Times and events.
    pub(crate) outcomes: &'a Outcomes,
    /// The cause that is predicted with the outcomes of all causes, if events have several.
    pub(crate) causes: Option<(u32, &'a CompetingOutcomes)>,
    /// The same on the cut points.
    pub(crate) targets: &'a Targets,
    /// As [`event_blocks`] gives them.
    pub(crate) blocks: &'a [(usize, usize)],
    /// Groups that the strategy works on, or those of every attribute for which epochs are kept.
    pub(crate) groups: &'a [Groups],
    /// Weights for censoring, from the training part.
    pub(crate) censoring: &'a CensoringCurve,
    pub(crate) settings: &'a EvaluationSettings,
    /// Whether the curves are those of a class.
    pub(crate) of_class: bool,
}

/// Scores before the watched metric is chosen, with the reasons why metrics are undefined.
#[derive(Debug)]
pub(crate) struct Scores {
    validation: Validation,
    undefined: Vec<(Monitor, String)>,
}

impl Scores {
    /// The scores, with the likelihood as the watched metric.
    pub(crate) fn unwatched(self) -> Validation {
        self.validation
    }

    /// The scores with the value of the watched metric. If it is defined in no group, the overall one replaces that of the
    /// worst group.
    pub(crate) fn watched(self, monitor: Monitor, epoch: usize) -> Result<Validation, FairnessError> {
        let Self { mut validation, undefined } = self;
        let overall = monitor.overall();
        let Some(value) = validation.value(monitor).or_else(|| validation.value(overall)) else {
            let reason = undefined.into_iter().find(|(metric, _)| *metric == overall).map(|(_, reason)| reason);
            let reason = reason.unwrap_or_default();
            return Err(FairnessError::Monitor { monitor: monitor.name(), epoch: epoch + 1, reason });
        };
        validation.monitored = value;
        Ok(validation)
    }
}

/// Scores validation curves: `survival`, `[n, n_times]` at its times, and `at_cuts`, `[n, n_cut_points]`, which of several causes
/// has a block for each; without those of the others there is no likelihood, and it counts as infinite.
pub(crate) fn validate(
    (survival, times): (&Array2<f64>, &[f64]),
    at_cuts: &Array2<f64>,
    truth: &Truth<'_>,
) -> Result<Scores, MetricError> {
    let n_cuts = truth.blocks.len();
    let terms = match truth.causes {
        None => negative_log_likelihoods(at_cuts, &truth.targets.intervals, truth.blocks),
        Some((_, outcomes)) if at_cuts.ncols() == n_cuts * outcomes.n_known() => {
            joint_negative_log_likelihoods(at_cuts, truth.targets, n_cuts)
        }
        Some(_) => vec![f64::INFINITY; at_cuts.nrows()],
    };
    let mean = |rows: &[usize]| rows.iter().map(|row| terms[*row]).sum::<f64>() / rows.len() as f64;
    let curves = SurvivalCurves::new(times.to_vec(), survival.clone())?;
    let scored = if truth.of_class { of_class(at_cuts, truth)? } else { of_curves(&curves, truth)? };
    let by_group = |of: usize, g: usize, level: &String| {
        let rows = rows_of(&truth.groups[of], g);
        let (n, n_events) = (rows.len(), truth.outcomes.select(&rows).n_events());
        let metrics = || metrics_of(scored.by_group[of][g].iter().copied());
        (n > 0).then(|| GroupValidation { level: level.clone(), n, n_events, nll: mean(&rows), metrics: metrics() })
    };
    let by_attribute = |(of, groups): (usize, &Groups)| AttributeValidation {
        attribute: groups.attribute().to_owned(),
        groups: groups.levels().iter().enumerate().filter_map(|(g, level)| by_group(of, g, level)).collect(),
    };
    let mut attributes: Vec<AttributeValidation> = truth.groups.iter().enumerate().map(by_attribute).collect();
    let groups = attributes.first().map(|of| of.groups.clone()).unwrap_or_default();
    if attributes.len() < 2 {
        attributes.clear();
    }
    let nll = mean(&(0..terms.len()).collect::<Vec<_>>());
    let metrics = metrics_of(scored.overall);
    let spread = curves.spread();
    let validation = Validation { nll, metrics, monitored: nll, spread, groups, attributes };
    Ok(Scores { validation, undefined: scored.undefined })
}

/// Loss and Dice of every sample of the validation part.
#[derive(Debug, Default)]
pub(crate) struct OfMasks {
    pub(crate) losses: Vec<f64>,
    pub(crate) dice: Vec<f64>,
}

/// Scores predicted masks: means over the samples, and over those of every group.
pub(crate) fn validate_masks(of: &OfMasks, groups: &[Groups]) -> Scores {
    let mean = |values: &[f64], rows: &[usize]| rows.iter().map(|row| values[*row]).sum::<f64>() / rows.len() as f64;
    let metrics = |rows: &[usize]| metrics_of([(Monitor::Dice, Some(mean(&of.dice, rows)))]);
    let by_group = |groups: &Groups, (g, level): (usize, &String)| {
        let rows = rows_of(groups, g);
        let n = rows.len();
        let (level, nll) = (level.clone(), mean(&of.losses, &rows));
        (n > 0).then(|| GroupValidation { level, n, n_events: n, nll, metrics: metrics(&rows) })
    };
    let by_attribute = |groups: &Groups| AttributeValidation {
        attribute: groups.attribute().to_owned(),
        groups: groups.levels().iter().enumerate().filter_map(|level| by_group(groups, level)).collect(),
    };
    let mut attributes: Vec<AttributeValidation> = groups.iter().map(by_attribute).collect();
    let groups = attributes.first().map(|of| of.groups.clone()).unwrap_or_default();
    if attributes.len() < 2 {
        attributes.clear();
    }
    let all: Vec<usize> = (0..of.losses.len()).collect();
    let nll = mean(&of.losses, &all);
    let validation = Validation { nll, metrics: metrics(&all), monitored: nll, spread: None, groups, attributes };
    Scores { validation, undefined: Vec::new() }
}

/// Mean Dice of the classes of pixels other than 0, of one sample.
pub(crate) fn mean_dice(truth: &[u8], predicted: &[u8], n_classes: usize) -> f64 {
    let mut counts = vec![PairScore::default(); n_classes];
    for (truth, predicted) in truth.iter().zip(predicted) {
        counts[usize::from(*truth)].n_truth += 1;
        counts[usize::from(*predicted)].n_predicted += 1;
        counts[usize::from(*truth)].n_common += usize::from(truth == predicted);
    }
    counts[1..].iter().map(PairScore::dice).sum::<f64>() / (n_classes - 1) as f64
}

fn rows_of(groups: &Groups, g: usize) -> Vec<usize> {
    let membership = groups.membership();
    (0..membership.len()).filter(|row| membership[*row].is_some_and(|group| group.index() == g)).collect()
}

type Value = (Monitor, Option<f64>);

/// The metrics of a task besides its likelihood.
struct Scored {
    overall: Vec<Value>,
    /// Of every attribute, every level.
    by_group: Vec<Vec<Vec<Value>>>,
    /// Why one is undefined in the whole part.
    undefined: Vec<(Monitor, String)>,
}

/// The names of the metrics of curves in an evaluation. They do not depend on `evaluation.metrics`, which is about the report.
const METRICS: [(Monitor, &str); 3] =
    [(Monitor::CTd, "c_td_antolini_strict"), (Monitor::AucTd, "auc_td"), (Monitor::Ibs, "ibs")];

/// The same of one of several causes.
const METRICS_OF_CAUSE: [(Monitor, &str); 3] =
    [(Monitor::CTd, "cause-c-td"), (Monitor::AucTd, "cause-auc-td"), (Monitor::Ibs, "cause-ibs")];

fn of_curves(curves: &SurvivalCurves, truth: &Truth<'_>) -> Result<Scored, MetricError> {
    let Truth { subjects, outcomes, censoring, groups, settings, .. } = *truth;
    let names = if truth.causes.is_some() { METRICS_OF_CAUSE } else { METRICS };
    let found = match truth.causes {
        None => sample_metrics(subjects, outcomes, curves, censoring, groups, settings)?,
        Some((cause, outcomes)) => {
            let incidence = IncidenceCurves::of_survival(curves.clone());
            let metrics = names.map(|(_, name)| name.to_owned()).to_vec();
            let settings = EvaluationSettings { metrics, ..settings.clone() };
            sample_metrics_of_cause(subjects, (outcomes, cause), &incidence, censoring, groups, &settings)?
        }
    };
    let overall = |name| found.metric(name).map(|metric| &metric.overall.value);
    let value = |(monitor, name)| (monitor, overall(name).and_then(|value| value.clone().ok()));
    let reason = |(monitor, name)| Some((monitor, overall(name)?.as_ref().err()?.to_string()));
    let of = |of: usize, level: &String| names.map(|(monitor, name)| (monitor, of_group(&found, name, (of, level))));
    let by_attribute = |(of_attribute, groups): (usize, &Groups)| {
        groups.levels().iter().map(|level| of(of_attribute, level).to_vec()).collect()
    };
    Ok(Scored {
        overall: names.map(value).to_vec(),
        by_group: groups.iter().enumerate().map(by_attribute).collect(),
        undefined: names.into_iter().filter_map(reason).collect(),
    })
}

/// The value of a metric in a level of the attribute at a place.
fn of_group(found: &SampledMetrics, name: &str, (attribute, level): (usize, &str)) -> Option<f64> {
    let groups = &found.metric(name)?.attributes.get(attribute)?.groups;
    groups.iter().find(|group| group.level == level)?.value.value.clone().ok()
}

/// The metrics of a class, whose probability is 1 minus the end of the curve of its interval.
fn of_class(at_cuts: &Array2<f64>, truth: &Truth<'_>) -> Result<Scored, MetricError> {
    let end = at_cuts.ncols().saturating_sub(1);
    let probability = at_cuts.column(end).iter().map(|survival| 1.0 - survival).collect();
    let all = ClassPredictions::new(probability, truth.outcomes.event().to_vec())?;
    let threshold = best_f1_threshold(&all).map(|best| best.threshold);
    let balanced = |of: &ClassPredictions| {
        threshold.clone().and_then(|threshold| confusion(of, threshold)).and_then(|counts| counts.balanced_accuracy())
    };
    let values = |of: &ClassPredictions| [(Monitor::Auc, auc(of)), (Monitor::BalancedAccuracy, balanced(of))];
    let defined =
        |values: [(Monitor, Result<f64, MetricError>); 2]| values.map(|(of, value)| (of, value.ok())).to_vec();
    let of = |groups: &Groups, g: usize| {
        let rows = rows_of(groups, g);
        if rows.is_empty() { Vec::new() } else { defined(values(&all.select(&rows))) }
    };
    let by_attribute = |groups: &Groups| (0..groups.levels().len()).map(|g| of(groups, g)).collect();
    let reason = |(monitor, value): (Monitor, Result<f64, MetricError>)| Some((monitor, value.err()?.to_string()));
    Ok(Scored {
        overall: defined(values(&all)),
        by_group: truth.groups.iter().map(by_attribute).collect(),
        undefined: values(&all).into_iter().filter_map(reason).collect(),
    })
}

/// For every cut point the block (first, last) that it is scored in: itself for heads with a mass in every interval. The
/// curve of a Cox head is a step function that falls at training events only; an interval without one has no mass, and a
/// validation event in it would have probability 0. So each such interval joins the next one that has a training event (at
/// the end of the grid: the last one), and the block's mass is spread evenly over its intervals.
pub(crate) fn event_blocks(n_cut_points: usize, train: &IntervalTargets, steps: bool) -> Vec<(usize, usize)> {
    if !steps {
        return (0..n_cut_points).map(|q| (q, q)).collect();
    }
    let events = train.index.iter().zip(&train.event).filter(|(_, event)| **event);
    let ends: std::collections::BTreeSet<usize> = events.map(|(q, _)| *q).collect();
    let last = ends.last().copied().unwrap_or(n_cut_points - 1);
    let block = |q: usize| {
        let within = q.min(last);
        let first = ends.range(..within).next_back().map_or(0, |end| end + 1);
        let end = ends.range(within..).next().copied().unwrap_or(last);
        (first, if end == last { n_cut_points - 1 } else { end })
    };
    (0..n_cut_points).map(block).collect()
}

/// For each sample -log(S(q-1) - S(q)) if it has an event and -log S(q) if it is censored, with S(-1) = 1: the likelihood of
/// the predicted curve on the cut points; an interval's mass is that of its block, divided by the number of its intervals. A
/// probability of exactly 0 counts as the smallest positive number (708 nats).
pub(crate) fn negative_log_likelihoods(
    survival: &Array2<f64>,
    targets: &IntervalTargets,
    blocks: &[(usize, usize)],
) -> Vec<f64> {
    let rows = survival.rows().into_iter().zip(targets.index.iter().zip(&targets.event));
    let term = |(curve, (&q, &event)): (ndarray::ArrayView1<'_, f64>, (&usize, &bool))| {
        let (first, last) = blocks[q];
        let before = if first == 0 { 1.0 } else { curve[first - 1] };
        let mass = (before - curve[last]) / (last + 1 - first) as f64;
        let probability = if event { mass } else { curve[q] };
        -probability.max(f64::MIN_POSITIVE).ln()
    };
    rows.map(term).collect()
}

/// As [`negative_log_likelihoods`], of several causes: `curves` `[n, n_causes n_cuts]` are 1 minus the incidence of each. An event
/// has the mass of its cause in its interval, a censoring 1 minus the incidences of all causes.
fn joint_negative_log_likelihoods(curves: &Array2<f64>, targets: &Targets, n_cuts: usize) -> Vec<f64> {
    let n_causes = curves.ncols() / n_cuts;
    let term = |(row, curve): (usize, ndarray::ArrayView1<'_, f64>)| {
        let (q, cause) = (targets.intervals.index[row], targets.causes[row]);
        let without = |cause: usize, q: usize| curve[cause * n_cuts + q];
        let probability = match cause.checked_sub(1) {
            Some(cause) if q == 0 => 1.0 - without(cause, 0),
            Some(cause) => without(cause, q - 1) - without(cause, q),
            None => 1.0 - (0..n_causes).map(|cause| 1.0 - without(cause, q)).sum::<f64>(),
        };
        -probability.max(f64::MIN_POSITIVE).ln()
    };
    curves.rows().into_iter().enumerate().map(term).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;
    use fairtte_survival::CutPoints;
    use ndarray::array;

    #[test]
    fn the_dice_of_a_sample_is_the_mean_over_the_values_but_the_background() {
        // Value 1: 2 true, 1 predicted, 1 common: 2/3. Value 2: 1 true, 2 predicted, 1 common: 2/3. Value 3: in neither, 1.
        let found = mean_dice(&[0, 1, 1, 2], &[0, 1, 2, 2], 4);
        assert!((found - (2.0 / 3.0 + 2.0 / 3.0 + 1.0) / 3.0).abs() < 1e-15, "{found}");
        assert!(mean_dice(&[0, 0], &[0, 1], 2).abs() < 1e-15, "what is not there was found");
    }

    #[test]
    fn masks_are_scored_by_group() {
        let of = OfMasks { losses: vec![1.0, 2.0, 6.0], dice: vec![0.5, 0.75, 1.0] };
        let group = |g| Some(fairtte_metrics::GroupId(g));
        let groups = Groups::new("sex", vec!["F".into(), "M".into()], vec![group(0), group(0), None]).unwrap();
        let found = validate_masks(&of, &[groups]).watched(Monitor::WorstGroupDice, 0).unwrap();
        assert_eq!((found.nll, found.value(Monitor::Dice), found.monitored), (3.0, Some(0.75), 0.625));
        assert_eq!((found.groups.len(), found.groups[0].n, found.groups[0].nll), (1, 2, 1.5));
    }

    // F_1 = 0.1, 0.3, 0.4 and F_2 = 0, 0.2, 0.5 at the cut points 0, 1, 2: an event of cause 1 at 0.5, of cause 2 at 2, and a
    // censoring at 1.5.
    #[test]
    fn the_joint_likelihood_of_two_causes_worked_by_hand() {
        let train = Outcomes::new(vec![1.0, 2.0], vec![true, false]).unwrap();
        let cuts = CutPoints::equidistant(&train, 3).unwrap();
        let targets =
            cuts.targets_of_causes("test", &[0.5, 2.0, 1.5, 0.0], &[true, false, false, true], &[0, 2, 0, 0]).unwrap();
        let curves = array![[0.9, 0.7, 0.6, 1.0, 0.8, 0.5]];
        let curves = ndarray::concatenate![ndarray::Axis(0), curves, curves, curves, curves];
        let found = joint_negative_log_likelihoods(&curves, &targets, 3);
        for (found, probability) in found.iter().zip([0.2_f64, 0.3, 0.5, 0.1]) {
            assert!((found + probability.ln()).abs() < 1e-12, "{found} of {probability}");
        }
    }

    #[test]
    fn the_likelihood_of_a_curve_worked_by_hand() {
        let survival = array![[0.9, 0.6, 0.2], [1.0, 0.5, 0.5]];
        let targets = IntervalTargets { index: vec![1, 2], event: vec![true, false] };
        let expected = (-(0.3_f64.ln()) - 0.5_f64.ln()) / 2.0;
        let terms = negative_log_likelihoods(&survival, &targets, &[(0, 0), (1, 1), (2, 2)]);
        assert!((terms.iter().sum::<f64>() / 2.0 - expected).abs() < 1e-15);
    }

    // Training events at cuts 1 and 3 of 0 .. 5: blocks 0-1 and 2-5.
    #[test]
    fn intervals_without_a_training_event_share_the_mass_of_their_block() {
        let train = IntervalTargets { index: vec![1, 2, 3, 5], event: vec![true, false, true, false] };
        let blocks = event_blocks(6, &train, true);
        assert_eq!(blocks, [(0, 1), (0, 1), (2, 5), (2, 5), (2, 5), (2, 5)]);
        assert_eq!(event_blocks(3, &train, false), [(0, 0), (1, 1), (2, 2)]);
        let survival = array![[1.0, 0.8, 0.8, 0.4, 0.4, 0.4]];
        let nll = |q| {
            let target = IntervalTargets { index: vec![q], event: vec![true] };
            negative_log_likelihoods(&survival, &target, &blocks)[0]
        };
        assert!((nll(0) + 0.1_f64.ln()).abs() < 1e-12 && (nll(5) + 0.1_f64.ln()).abs() < 1e-12);
    }
}
