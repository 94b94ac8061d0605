//! Validation metrics for early stopping and selection, from predicted curves alone: the same for every head and strategy.
//!
//! C^td, AUC^td and IBS are those of [`evaluate`](fairtte_metrics::evaluate) on the validation part: same reading of the
//! curves, same evaluation times, weights for censoring from the training part. The negative log-likelihood is that of the
//! curves at the cut points.

use fairtte_metrics::{
    CensoringCurve, EvaluationReport, EvaluationSettings, Groups, MetricError, Outcomes, SubjectId, SurvivalCurves,
    evaluate,
};
use fairtte_survival::IntervalTargets;
use ndarray::Array2;

use crate::FairnessError;
pub use fairtte_records::{AttributeValidation, GroupValidation, Monitor, Validation};

/// The data against which validation curves are scored.
#[derive(Debug)]
pub(crate) struct Truth<'a> {
    pub(crate) subjects: &'a [SubjectId],
    /// Times and events.
    pub(crate) outcomes: &'a Outcomes,
    /// The same on the cut points.
    pub(crate) intervals: &'a IntervalTargets,
    /// As [`event_blocks`] gives them.
    pub(crate) blocks: &'a [(usize, usize)],
    /// Groups that the strategy works on, or those of every attribute for which epochs are kept.
    pub(crate) groups: &'a [Groups],
    /// Weights for censoring, from the training part.
    pub(crate) censoring: &'a CensoringCurve,
    pub(crate) settings: &'a EvaluationSettings,
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

    /// The scores with the value of the watched metric. If no group has a defined concordance, the
    /// overall one replaces that of the worst group.
    pub(crate) fn watched(self, monitor: Monitor, epoch: usize) -> Result<Validation, FairnessError> {
        let Self { mut validation, undefined } = self;
        let stands_in = || (monitor == Monitor::WorstGroupCTd).then_some(validation.c_td).flatten();
        let Some(value) = validation.value(monitor).or_else(stands_in) else {
            let asked = if monitor == Monitor::WorstGroupCTd { Monitor::CTd } else { monitor };
            let reason = undefined.into_iter().find(|(metric, _)| *metric == asked).map(|(_, reason)| reason);
            let reason = reason.unwrap_or_default();
            return Err(FairnessError::Monitor { monitor: monitor.name(), epoch: epoch + 1, reason });
        };
        validation.monitored = value;
        Ok(validation)
    }
}

/// Scores validation curves: `survival`, `[n, n_times]` at its times, and `at_cuts`, `[n, n_cut_points]`.
pub(crate) fn validate(
    (survival, times): (&Array2<f64>, &[f64]),
    at_cuts: &Array2<f64>,
    truth: &Truth<'_>,
) -> Result<Scores, MetricError> {
    let terms = negative_log_likelihoods(at_cuts, truth.intervals, truth.blocks);
    let mean = |rows: &[usize]| rows.iter().map(|row| terms[*row]).sum::<f64>() / rows.len() as f64;
    let curves = SurvivalCurves::new(times.to_vec(), survival.clone())?;
    let report = evaluate(truth.subjects, truth.outcomes, &curves, truth.censoring, truth.groups, truth.settings)?;
    let by_group = |of: usize, g: usize, level: &String| {
        let membership = truth.groups[of].membership();
        let is_member = |row: &usize| membership[*row].is_some_and(|group| group.index() == g);
        let rows: Vec<usize> = (0..membership.len()).filter(is_member).collect();
        let [c_td, auc_td, ibs] = METRICS.map(|(_, name)| of_group(&report, name, (of, g)));
        let (n, n_events) = (rows.len(), truth.outcomes.select(&rows).n_events());
        (n > 0).then(|| GroupValidation { level: level.clone(), n, n_events, nll: mean(&rows), c_td, auc_td, ibs })
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
    let [c_td, auc_td, ibs] = METRICS.map(|(_, name)| report.metric(name).and_then(|metric| metric.overall.value));
    let reason = |name| report.metric(name).and_then(|metric| metric.overall.undefined.clone());
    let undefined = METRICS.into_iter().filter_map(|(metric, name)| Some((metric, reason(name)?))).collect();
    let spread = curves.spread();
    Ok(Scores {
        validation: Validation { nll, c_td, auc_td, ibs, monitored: nll, spread, groups, attributes },
        undefined,
    })
}

/// The names of the metrics in an evaluation.
const METRICS: [(Monitor, &str); 3] =
    [(Monitor::CTd, "c_td_antolini_strict"), (Monitor::AucTd, "auc_td"), (Monitor::Ibs, "ibs")];

fn of_group(report: &EvaluationReport, name: &str, (attribute, level): (usize, usize)) -> Option<f64> {
    report.metric(name)?.attributes.get(attribute)?.groups.get(level)?.estimate.value
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

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

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
