//! Shared by the Cox heads: comparisons of events with their risk sets within a batch.
//!
//! A row represents one comparison: a column of the outputs (its time) and a weight for every sample in the risk set.
//! The term of a row is log `sum_j` `w_j` exp(`g_j`), computed row by row in logarithms: a single shift for the whole
//! batch would make the exponentials of outputs of +-100 underflow. Memory O(rows x batch), with at most one row per
//! event.

use burn::tensor::{Int, Tensor, TensorData};

use super::{Comparators, NEVER, constant, log_sum_exp};
use crate::Targets;

/// Risk sets of a batch.
#[derive(Debug)]
pub(super) struct RiskSets {
    n: usize,
    columns: Vec<i64>,
    /// `[n_rows, n]`
    log_weights: Vec<f64>,
    /// Share of every row in every sample's loss, `[n, n_rows]` by rows and their cases.
    shares: Vec<Vec<(usize, f64)>>,
}

impl RiskSets {
    pub(super) fn new(n: usize) -> Self {
        Self { n, columns: Vec::new(), log_weights: Vec::new(), shares: Vec::new() }
    }

    /// Adds a row: the column of its time, samples with the logarithms of their weights, and the shares that samples have
    /// in the row.
    pub(super) fn push(&mut self, column: usize, weights: &[(usize, f64)], shares: Vec<(usize, f64)>) {
        self.columns.push(i64::try_from(column).expect("a column of a tensor in memory"));
        let start = self.log_weights.len();
        self.log_weights.resize(start + self.n, f64::from(NEVER));
        for (sample, log_weight) in weights {
            self.log_weights[start + sample] = *log_weight;
        }
        self.shares.push(shares);
    }

    pub(super) fn n_rows(&self) -> usize {
        self.columns.len()
    }

    /// Outputs `[n, n_columns]` -> outputs of all samples at the time of every row, `[n_rows, n]`.
    pub(super) fn rows(&self, outputs: Tensor<2>) -> Tensor<2> {
        let device = outputs.device();
        let columns = Tensor::<1, Int>::from_data(TensorData::new(self.columns.clone(), [self.n_rows()]), &device);
        outputs.transpose().select(0, columns)
    }

    /// The term of every row, `[n_rows]`, from the outputs [`rows`](Self::rows).
    pub(super) fn terms(&self, rows: Tensor<2>) -> Tensor<1> {
        let log_weights = constant(self.log_weights.clone(), [self.n_rows(), self.n], &rows);
        log_sum_exp(rows + log_weights)
    }

    /// The term that every sample would get from its rows if all outputs were 0, `[n]`: from log 1 for an event with no
    /// other sample at risk up to the logarithm of the number at risk.
    pub(super) fn null_terms(&self) -> Vec<f64> {
        let mut terms = vec![0.0; self.n];
        for (row, shares) in self.shares.iter().enumerate() {
            let log_weights = &self.log_weights[row * self.n..(row + 1) * self.n];
            let term = log_weights.iter().map(|log_weight| log_weight.exp()).sum::<f64>().ln();
            for (sample, share) in shares {
                terms[*sample] += share * term;
            }
        }
        terms
    }

    /// Returns the `losses` (`[n]`) of the events, plus log n, with n the samples of the batch, minus the loss at equal
    /// risks, so that they do not depend on the sizes of the risk sets. Samples without a row have 0.
    pub(super) fn misfits(&self, losses: Tensor<1>) -> Tensor<1> {
        let mut corrections = vec![0.0; self.n];
        let null = self.null_terms();
        for (sample, _) in self.shares.iter().flatten() {
            corrections[*sample] = (self.n as f64).ln() - null[*sample];
        }
        let corrections = constant(corrections, [self.n], &losses);
        losses + corrections
    }

    /// Sums values of rows, `[n_rows]`, into their samples: `[n]`.
    pub(super) fn spread(&self, values: Tensor<1>) -> Tensor<1> {
        let mut shares = vec![0.0; self.n * self.n_rows()];
        for (row, of_row) in self.shares.iter().enumerate() {
            for (sample, share) in of_row {
                shares[sample * self.n_rows() + row] = *share;
            }
        }
        let shares = constant(shares, [self.n, self.n_rows()], &values);
        shares.matmul(values.unsqueeze_dim(1)).flatten(0, 1)
    }
}

/// Events that share one risk set.
#[derive(Debug)]
pub(super) struct Comparison {
    /// Position of their time among the distinct event times of the batch.
    pub(super) column: usize,
    /// The events whose losses the comparison gives.
    pub(super) cases: Vec<usize>,
    /// The events at that time, cases included, ascending.
    pub(super) tied: Vec<usize>,
    /// The samples at risk (observed time at or after it), tied events included, ascending.
    pub(super) at_risk: Vec<usize>,
}

/// Every event with its risk set: one comparison for each distinct event time within a batch, or one for each event
/// against the other half, to which each event is added alone.
pub(super) fn comparisons(targets: &Targets, comparators: Comparators<'_>) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for (column, time) in targets.event_times().into_iter().enumerate() {
        let all = || targets.time.iter().zip(&targets.event).enumerate();
        let tied: Vec<usize> =
            all().filter(|(_, (t, event))| **event && t.total_cmp(&time).is_eq()).map(|(i, _)| i).collect();
        let at_risk: Vec<usize> = all().filter(|(_, (t, _))| **t >= time).map(|(i, _)| i).collect();
        if let Comparators::Batch = comparators {
            comparisons.push(Comparison { column, cases: tied.clone(), tied, at_risk });
            continue;
        }
        for case in tied.iter().copied() {
            let admitted = |samples: &[usize]| {
                samples.iter().copied().filter(|j| *j == case || comparators.admit(case, *j)).collect()
            };
            let (tied, at_risk) = (admitted(&tied), admitted(&at_risk));
            comparisons.push(Comparison { column, cases: vec![case], tied, at_risk });
        }
    }
    comparisons
}

/// 1 for an event and 0 otherwise, `[n]`.
pub(super) fn event_indicator(targets: &Targets, like: &Tensor<2>) -> Tensor<1> {
    constant(targets.event.iter().map(|event| f64::from(u8::from(*event))).collect(), [targets.n()], like)
}
