//! Predicted cumulative incidence of one cause.

use ndarray::Array2;

use crate::curves::SURVIVAL_TOLERANCE;
use crate::{MetricError, Reading, SurvivalCurves};

/// F(t), the probability of an event of one cause by t, of `n` samples on a shared grid of times.
///
/// Where other causes exist, 1 - F is not the probability of being free of every event: it is that of not having had this
/// cause, which never falls to 0 if some samples have another cause. Between grid points 1 - F is read as survival curves
/// are ([`Reading`]).
///
/// ```
/// use fairtte_metrics::Reading;
/// use fairtte_metrics::competing::IncidenceCurves;
/// use ndarray::array;
///
/// let curves = IncidenceCurves::new(vec![0.0, 1.0, 2.0], array![[0.0, 0.25, 0.5]])?;
/// assert_eq!(curves.at(0, 1.5, Reading::Step), 0.25);
/// assert_eq!(curves.at(0, 1.5, Reading::Linear), 0.375);
/// assert!(IncidenceCurves::new(vec![0.0, 1.0], array![[1.0, 0.75]]).is_err());
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct IncidenceCurves {
    /// 1 - F.
    without: SurvivalCurves,
}

impl IncidenceCurves {
    /// Checks and keeps `incidence` `[n, n_times]` on `grid` `[n_times]`.
    ///
    /// Values may leave [0, 1] or fall between columns by up to [`SURVIVAL_TOLERANCE`]; such noise is removed.
    ///
    /// # Errors
    /// [`MetricError::EmptyGrid`], [`MetricError::InvalidGrid`] or [`MetricError::GridMismatch`] as in
    /// [`SurvivalCurves::new`]; [`MetricError::InvalidIncidence`] or [`MetricError::FallingIncidence`] with row and column
    /// of the first bad value.
    pub fn new(grid: Vec<f64>, incidence: Array2<f64>) -> Result<Self, MetricError> {
        for (row, curve) in incidence.rows().into_iter().enumerate() {
            let mut highest = 0.0_f64;
            for (column, value) in curve.iter().copied().enumerate() {
                if !(-SURVIVAL_TOLERANCE..=1.0 + SURVIVAL_TOLERANCE).contains(&value) {
                    return Err(MetricError::InvalidIncidence { row, column, value });
                }
                if value < highest - SURVIVAL_TOLERANCE {
                    return Err(MetricError::FallingIncidence { row, column, before: highest, value });
                }
                highest = highest.max(value);
            }
        }
        Ok(Self { without: SurvivalCurves::new(grid, incidence.mapv_into(|value| 1.0 - value))? })
    }

    /// The curves F = 1 - S of a model of the only cause there is.
    #[must_use]
    pub fn of_survival(survival: SurvivalCurves) -> Self {
        Self { without: survival }
    }

    /// 1 - F, the probability of not having had this cause.
    pub fn without(&self) -> &SurvivalCurves {
        &self.without
    }

    /// Times of the columns, in the unit of the data set.
    pub fn grid(&self) -> &[f64] {
        self.without.grid()
    }

    /// Cumulative incidence, `[n, n_times]`.
    pub fn incidence(&self) -> Array2<f64> {
        self.without.survival().mapv(|without| 1.0 - without)
    }

    /// Number of samples.
    pub fn n(&self) -> usize {
        self.without.n()
    }

    /// The rows at `index`, in that order; a row may be taken more than once.
    ///
    /// # Panics
    /// If an index is not below [`n`](Self::n).
    #[must_use]
    pub fn select(&self, index: &[usize]) -> Self {
        Self { without: self.without.select(index) }
    }

    /// F of sample `row` at time `t`.
    ///
    /// # Panics
    /// If `row` is not below [`n`](Self::n).
    pub fn at(&self, row: usize, t: f64, reading: Reading) -> f64 {
        1.0 - self.without.at(row, t, reading)
    }

    /// F of every sample at time `t`, `[n]`.
    pub fn all_at(&self, t: f64, reading: Reading) -> Vec<f64> {
        self.without.risk_at(t, reading)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn survival_in_place_of_incidence_is_named_with_its_values() {
        let grid = vec![1.0, 2.0, 3.0];
        let falling = IncidenceCurves::new(grid.clone(), array![[0.1, 0.2, 0.3], [0.25, 0.75, 0.5]]);
        let expected = MetricError::FallingIncidence { row: 1, column: 2, before: 0.75, value: 0.5 };
        assert_eq!(falling, Err(expected.clone()));
        assert!(expected.to_string().contains("falls from 0.75 to 0.5 in column 2"));
        let negative = IncidenceCurves::new(grid, array![[-0.25, 0.2, 0.3]]);
        assert_eq!(negative, Err(MetricError::InvalidIncidence { row: 0, column: 0, value: -0.25 }));
        assert!(IncidenceCurves::new(vec![1.0], array![[f64::NAN]]).is_err());
    }

    #[test]
    fn noise_is_removed_and_values_come_back() {
        let curves = IncidenceCurves::new(vec![0.0, 1.0, 2.0], array![[-1e-7, 0.5, 0.499_999_9]]).unwrap();
        assert_eq!(curves.incidence(), array![[0.0, 0.5, 0.5]]);
        assert_eq!(curves.all_at(0.5, Reading::Linear), [0.25]);
        assert_eq!(curves.select(&[0, 0]).n(), 2);
    }
}
