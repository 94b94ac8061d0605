//! Values of several models on several data sets, ranked within each data set.

use ndarray::{Array2, ArrayView2};

use super::ranks::MidRanks;
use crate::{Direction, MetricError};

/// Values of `n_models` models on `n_data_sets` data sets and their ranks: 1 for the best, mid-ranks for ties.
#[derive(Clone, Debug)]
pub struct RankTable {
    values: Array2<f64>,
    /// Twice the rank sum of every model.
    doubled_rank_sums: Vec<u64>,
    /// Sum of `t^3 - t` over all sets of `t` tied models of one data set.
    tie_sum: u128,
}

impl RankTable {
    /// Ranks `values` (`[n_data_sets, n_models]`) within each row; `direction` says which end gets rank 1.
    ///
    /// ```
    /// use fairtte_metrics::Direction;
    /// use fairtte_metrics::statistics::RankTable;
    /// use ndarray::array;
    ///
    /// let c_td = array![[0.71, 0.75, 0.70], [0.64, 0.66, 0.66]];
    /// let table = RankTable::new(c_td, Direction::HigherIsBetter)?;
    /// assert_eq!(table.average_ranks(), [2.5, 1.25, 2.25]);
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    ///
    /// # Errors
    /// If there are fewer than two models or no data set, or a value is not finite.
    pub fn new(values: Array2<f64>, direction: Direction) -> Result<Self, MetricError> {
        let (n_data_sets, n_models) = values.dim();
        if n_data_sets == 0 || n_models < 2 {
            let expected = "2 models on 1 data set";
            return Err(MetricError::TooSmallComparison { n_models, n_data_sets, expected });
        }
        if let Some(((data_set, model), &value)) = values.indexed_iter().find(|(_, value)| !value.is_finite()) {
            return Err(MetricError::InvalidModelValue { data_set, model, value });
        }
        let mut table = Self { doubled_rank_sums: vec![0; n_models], tie_sum: 0, values };
        for row in table.values.rows() {
            let upwards: Vec<f64> = match direction {
                Direction::LowerIsBetter => row.to_vec(),
                Direction::HigherIsBetter => row.iter().map(|value| -value).collect(),
            };
            let ranks = MidRanks::of(&upwards);
            table.tie_sum += ranks.tie_sum;
            table.doubled_rank_sums.iter_mut().zip(&ranks.doubled).for_each(|(sum, rank)| *sum += rank);
        }
        Ok(table)
    }

    /// Number of models k.
    pub fn n_models(&self) -> usize {
        self.values.ncols()
    }

    /// Number of data sets N.
    pub fn n_data_sets(&self) -> usize {
        self.values.nrows()
    }

    /// The values as given, `[n_data_sets, n_models]`.
    pub fn values(&self) -> ArrayView2<'_, f64> {
        self.values.view()
    }

    /// Mean rank of every model, between 1 (best everywhere) and `n_models`.
    pub fn average_ranks(&self) -> Vec<f64> {
        let doubled_sets = 2.0 * self.n_data_sets() as f64;
        self.doubled_rank_sums.iter().map(|&sum| sum as f64 / doubled_sets).collect()
    }

    /// Models from the lowest average rank to the highest, ties in column order.
    pub fn by_rank(&self) -> Vec<usize> {
        let mut models: Vec<usize> = (0..self.n_models()).collect();
        models.sort_by_key(|&model| self.doubled_rank_sums[model]);
        models
    }

    /// Sum of the squared deviations of the doubled rank sums from their mean, `N (k + 1)`; exact.
    pub(super) fn squared_deviations(&self) -> u128 {
        let mean = self.n_data_sets() as u64 * (self.n_models() as u64 + 1);
        self.doubled_rank_sums.iter().map(|&sum| u128::from(sum.abs_diff(mean)).pow(2)).sum()
    }

    /// Sum of `t^3 - t` over all ties.
    pub(super) fn tie_sum(&self) -> u128 {
        self.tie_sum
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn the_direction_says_which_end_gets_rank_one() {
        let values = array![[1.0, 2.0, 3.0], [5.0, 4.0, 6.0]];
        let low = RankTable::new(values.clone(), Direction::LowerIsBetter).unwrap();
        let high = RankTable::new(values, Direction::HigherIsBetter).unwrap();
        assert_eq!((low.average_ranks(), low.by_rank()), (vec![1.5, 1.5, 3.0], vec![0, 1, 2]));
        assert_eq!((high.average_ranks(), high.by_rank()), (vec![2.5, 2.5, 1.0], vec![2, 0, 1]));
        assert_eq!(low.squared_deviations(), 4 + 4 + 16);
    }

    #[test]
    fn a_table_without_enough_models_or_with_a_gap_is_refused() {
        let one = RankTable::new(array![[1.0], [2.0]], Direction::LowerIsBetter).unwrap_err();
        assert_eq!(one.to_string(), "number of models: 1, of data sets: 2, expected at least 2 models on 1 data set");
        let gap = RankTable::new(array![[1.0, 2.0], [1.0, f64::NAN]], Direction::LowerIsBetter).unwrap_err();
        assert_eq!(gap.to_string(), "the value of model 1 on data set 1 is NaN, expected a finite number");
    }
}
