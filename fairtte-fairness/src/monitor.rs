//! Validation metrics for early stopping, from predicted curves alone: the same for every head and strategy.

use fairtte_metrics::{GroupId, MetricError, Outcomes, Reading, SurvivalCurves, TiedPredictions, concordance_td};
use fairtte_survival::IntervalTargets;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// The named validation metric that early stopping watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Monitor {
    /// Mean negative log-likelihood of the predicted curves on the time grid; lower is better.
    #[default]
    Nll,
    /// Time-dependent concordance (Antolini et al. 2005), strict, refined reading; higher is better.
    CTd,
    /// The lowest concordance of any group in which it is defined; higher is better.
    WorstGroupCTd,
}

impl Monitor {
    /// All of them, in the order in which they are listed to users.
    pub const ALL: [Self; 3] = [Self::Nll, Self::CTd, Self::WorstGroupCTd];

    /// Name in run files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nll => "nll",
            Self::CTd => "c-td",
            Self::WorstGroupCTd => "worst-group-c-td",
        }
    }

    /// One line for `fairtte list`.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Nll => "mean negative log-likelihood of the curves on the time grid (lower is better)",
            Self::CTd => "time-dependent concordance (higher is better)",
            Self::WorstGroupCTd => "lowest time-dependent concordance of any group (higher is better)",
        }
    }

    /// Whether `value` is better than `best`.
    pub(crate) fn is_better(self, value: f64, best: f64) -> bool {
        match self {
            Self::Nll => value < best,
            Self::CTd | Self::WorstGroupCTd => value > best,
        }
    }
}

/// Metrics of the validation part after one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Mean negative log-likelihood.
    pub nll: f64,
    /// Concordance; absent where it is undefined.
    pub c_td: Option<f64>,
    /// The value of the watched metric.
    pub monitored: f64,
    /// The same for every group that has a sample in the part.
    #[serde(default)]
    pub groups: Vec<GroupValidation>,
}

/// Metrics of one group of the validation part after one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupValidation {
    /// Name of the group.
    pub level: String,
    /// Number of samples.
    pub n: usize,
    /// Number of events.
    pub n_events: usize,
    /// Mean negative log-likelihood.
    pub nll: f64,
    /// Concordance within the group; absent where it is undefined.
    pub c_td: Option<f64>,
}

/// What validation curves are scored against.
#[derive(Debug)]
pub(crate) struct Truth<'a> {
    /// Times and events.
    pub(crate) outcomes: &'a Outcomes,
    /// The same on the cut points.
    pub(crate) intervals: &'a IntervalTargets,
    /// As [`event_blocks`] gives them.
    pub(crate) blocks: &'a [(usize, usize)],
    /// Group of every sample.
    pub(crate) groups: &'a [Option<GroupId>],
    /// Names of the groups.
    pub(crate) levels: &'a [String],
    /// For C^td: curves that begin at 1 need [`Reading::Linear`], or events before the first time after 0 at which the
    /// others are read would tie.
    pub(crate) reading: Reading,
}

/// Scores the validation curves, `[n, n_cut_points]` at the times of the cut points.
pub(crate) fn validate(
    monitor: Monitor,
    (survival, times): (&Array2<f64>, &[f64]),
    truth: &Truth<'_>,
) -> Result<Validation, MetricError> {
    let terms = negative_log_likelihoods(survival, truth.intervals, truth.blocks);
    let mean = |rows: &[usize]| rows.iter().map(|row| terms[*row]).sum::<f64>() / rows.len() as f64;
    let curves = SurvivalCurves::new(times.to_vec(), survival.clone())?;
    let concordance = |outcomes: &Outcomes, curves: &SurvivalCurves| {
        concordance_td(outcomes, curves, truth.reading, TiedPredictions::Strict).map(|c| c.value)
    };
    let c_td = concordance(truth.outcomes, &curves);
    let of_group = |(g, level): (usize, &String)| {
        let is_member = |row: &usize| truth.groups[*row].is_some_and(|group| group.index() == g);
        let rows: Vec<usize> = (0..truth.groups.len()).filter(is_member).collect();
        let outcomes = truth.outcomes.select(&rows);
        let (n, n_events) = (rows.len(), outcomes.n_events());
        let c_td = concordance(&outcomes, &curves.select(&rows)).ok();
        (n > 0).then(|| GroupValidation { level: level.clone(), n, n_events, nll: mean(&rows), c_td })
    };
    let groups: Vec<GroupValidation> = truth.levels.iter().enumerate().filter_map(of_group).collect();
    let nll = mean(&(0..terms.len()).collect::<Vec<_>>());
    let monitored = match monitor {
        Monitor::Nll => nll,
        Monitor::CTd => c_td.clone()?,
        Monitor::WorstGroupCTd => match groups.iter().filter_map(|group| group.c_td).reduce(f64::min) {
            Some(worst) => worst,
            None => c_td.clone()?,
        },
    };
    Ok(Validation { nll, c_td: c_td.ok(), monitored, groups })
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
