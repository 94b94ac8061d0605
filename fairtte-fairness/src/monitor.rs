//! Validation metrics for early stopping, from predicted curves alone: the same for every head and strategy.

use fairtte_metrics::{GroupId, MetricError, Outcomes, Reading, SurvivalCurves, TiedPredictions, concordance_td};
use fairtte_survival::{CutPoints, IntervalTargets};
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
}

/// Scores the validation curves, `[n, n_intervals]`.
pub(crate) fn validate(
    monitor: Monitor,
    survival: &Array2<f64>,
    cut_points: &CutPoints,
    outcomes: &Outcomes,
    groups: &[Option<GroupId>],
) -> Result<Validation, MetricError> {
    let targets = cut_points.discretise(outcomes.time(), outcomes.event());
    let nll = mean_negative_log_likelihood(survival, &targets);
    let curves = SurvivalCurves::new(cut_points.times().to_vec(), survival.clone())?;
    let concordance = |outcomes: &Outcomes, curves: &SurvivalCurves| {
        concordance_td(outcomes, curves, Reading::default(), TiedPredictions::Strict).map(|c| c.value)
    };
    let c_td = concordance(outcomes, &curves);
    let monitored = match monitor {
        Monitor::Nll => nll,
        Monitor::CTd => c_td.clone()?,
        Monitor::WorstGroupCTd => {
            let n_groups = groups.iter().flatten().map(|g| g.0 + 1).max().unwrap_or(0);
            let of_group = |g: u32| {
                let rows: Vec<usize> = (0..groups.len()).filter(|row| groups[*row] == Some(GroupId(g))).collect();
                concordance(&outcomes.select(&rows), &curves.select(&rows)).ok()
            };
            match (0..n_groups).filter_map(of_group).reduce(f64::min) {
                Some(worst) => worst,
                None => c_td.clone()?,
            }
        }
    };
    Ok(Validation { nll, c_td: c_td.ok(), monitored })
}

/// Mean of -log(S(q-1) - S(q)) for events and -log S(q) for censorings, with S(-1) = 1: the likelihood that every head
/// here maximises, in terms of its curve. A probability of exactly 0 counts as the smallest positive number (708 nats).
fn mean_negative_log_likelihood(survival: &Array2<f64>, targets: &IntervalTargets) -> f64 {
    let rows = survival.rows().into_iter().zip(targets.index.iter().zip(&targets.event));
    let terms = rows.map(|(curve, (&q, &event))| {
        let before = if q == 0 { 1.0 } else { curve[q - 1] };
        let probability = if event { before - curve[q] } else { curve[q] };
        -probability.max(f64::MIN_POSITIVE).ln()
    });
    terms.sum::<f64>() / targets.index.len() as f64
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
        assert!((mean_negative_log_likelihood(&survival, &targets) - expected).abs() < 1e-15);
    }
}
