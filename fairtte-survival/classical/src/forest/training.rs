//! The training data of a forest in the form in which trees grow: ranks of values and of times.

use fairtte_metrics::Outcomes;
use ndarray::Array2;

use crate::ClassicalError;
use crate::estimator::check_samples;

/// Columns, times and events.
pub(super) struct Training {
    /// By column, the rank of every row's value among the different values, `[p][n]`.
    pub(super) ranks: Vec<Vec<u32>>,
    /// By column, the different values, ascending.
    pub(super) values: Vec<Vec<f64>>,
    /// By column, rows by value, ascending, those with the same value by time.
    pub(super) by_value: Vec<Vec<u32>>,
    /// By row, the place of its time among the different times.
    pub(super) time: Vec<u32>,
    pub(super) event: Vec<bool>,
    /// Different times, ascending.
    pub(super) times: Vec<f64>,
    /// Rows by time, ascending.
    pub(super) by_time: Vec<u32>,
}

impl Training {
    pub(super) fn new(columns: &Array2<f64>, outcomes: &Outcomes) -> Result<Self, ClassicalError> {
        check_samples(columns, outcomes)?;
        let n = outcomes.n();
        if u32::try_from(n).is_err() {
            return Err(ClassicalError::TooMany { n });
        }
        let of_columns: Vec<(Vec<u32>, Vec<f64>)> =
            columns.columns().into_iter().map(|column| ranked(column.iter().copied())).collect();
        let (ranks, values): (Vec<Vec<u32>>, _) = of_columns.into_iter().unzip();
        let (time, times) = ranked(outcomes.time().iter().copied());
        let mut by_time: Vec<u32> = (0..).take(n).collect();
        by_time.sort_by_key(|row| time[*row as usize]);
        let sorted = |ranks: &Vec<u32>| {
            let mut rows = by_time.clone();
            rows.sort_by_key(|row| ranks[*row as usize]);
            rows
        };
        let by_value = ranks.iter().map(sorted).collect();
        Ok(Self { ranks, values, by_value, time, event: outcomes.event().to_vec(), times, by_time })
    }

    pub(super) fn n(&self) -> usize {
        self.event.len()
    }

    pub(super) fn n_columns(&self) -> usize {
        self.ranks.len()
    }

    /// By place of a time, the different event times that are not before it.
    pub(super) fn event_times_from(&self) -> Vec<u32> {
        let mut later = vec![0; self.times.len()];
        for (time, _) in self.time.iter().zip(&self.event).filter(|(_, event)| **event) {
            later[*time as usize] = 1;
        }
        let mut n = 0;
        for count in later.iter_mut().rev() {
            n += *count;
            *count = n;
        }
        later
    }
}

/// The rank of every value among the different ones, and these, ascending.
fn ranked(values: impl Iterator<Item = f64>) -> (Vec<u32>, Vec<f64>) {
    let values: Vec<f64> = values.collect();
    let mut different = values.clone();
    different.sort_by(f64::total_cmp);
    #[expect(clippy::float_cmp, reason = "0 and -0 are equal, and nothing else that differs in a bit")]
    different.dedup_by(|a, b| a == b);
    let rank = |value: &f64| different.partition_point(|known| known < value);
    let ranks = values.iter().map(|value| u32::try_from(rank(value)).unwrap_or(u32::MAX)).collect();
    (ranks, different)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_rank() {
        assert_eq!(ranked([2.0, -0.0, 2.0, 0.0, -1.0].into_iter()), (vec![2, 1, 2, 1, 0], vec![-1.0, -0.0, 2.0]));
    }
}
