//! Survival curves under a reading, as predictions of pairs.
//!
//! Golden values: `pycox` 0.3.0 `concordance_td` with steps "pre", `SurvivalEVAL` 0.9.0
//! `SurvivalEvaluator.concordance_time_dependent`.

use crate::curves::SurvivalCurves;
use crate::rank::comparable_pairs::Predictions;
use crate::reading::{Position, Reading};
use crate::{MetricError, Outcomes};

/// Curves under a reading, for [`for_each_event`](crate::rank::comparable_pairs::for_each_event).
pub(crate) struct CurvesRead<'a> {
    curves: &'a SurvivalCurves,
    reading: Reading,
}

impl<'a> CurvesRead<'a> {
    pub(crate) fn new(outcomes: &Outcomes, curves: &'a SurvivalCurves, reading: Reading) -> Result<Self, MetricError> {
        curves.check_rows(outcomes.n())?;
        reading.validate()?;
        Ok(Self { curves, reading })
    }
}

impl Predictions for CurvesRead<'_> {
    type Place = Position;

    fn place(&self, time: f64) -> Position {
        self.reading.position(self.curves.grid(), time)
    }

    fn at(&self, row: usize, place: Position) -> f64 {
        self.curves.read(row, place, self.reading)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;

    #[test]
    fn the_line_from_one_is_read_before_within_and_beyond_the_grid() {
        let outcomes = Outcomes::new(vec![1.0], vec![true]).unwrap();
        let read = |grid: Vec<f64>, values: Array2<f64>, times: &[f64]| -> Vec<f64> {
            let curves = SurvivalCurves::new(grid, values).unwrap();
            let read = CurvesRead::new(&outcomes, &curves, Reading::LinearFromOne).unwrap();
            times.iter().map(|&time| read.at(0, read.place(time))).collect()
        };
        // Beyond the grid: 1 - t / 8, 0 from 8 on.
        let values = read(vec![2.0, 4.0], array![[0.75, 0.5]], &[0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 20.0]);
        assert_eq!(values, [1.0, 0.875, 0.75, 0.625, 0.5, 0.25, 0.0, 0.0]);
        assert_eq!(read(vec![0.0], array![[0.5]], &[0.0, 3.0]), [0.5, 0.5]);
        // 3 is an infinite multiple of the smallest number.
        let least = vec![f64::from_bits(1)];
        assert_eq!(read(least.clone(), array![[1.0]], &[3.0]), [1.0]);
        assert_eq!(read(least, array![[0.5]], &[3.0]), [0.0]);
    }

    #[test]
    fn the_next_grid_point_is_the_first_not_before_the_time() {
        let outcomes = Outcomes::new(vec![1.0], vec![true]).unwrap();
        let curves = SurvivalCurves::new(vec![1.0, 2.0], array![[0.9, 0.4]]).unwrap();
        let read = CurvesRead::new(&outcomes, &curves, Reading::NextGridPoint).unwrap();
        assert_eq!([0.5, 1.0, 1.5, 2.0, 7.0].map(|time| read.at(0, read.place(time))), [0.9, 0.9, 0.4, 0.4, 0.4]);
    }
}
