//! How survival curves are read at event times by the rank metrics of other packages: two readings in addition to those
//! of this crate, [`NextGridPoint`](ReadingTd::NextGridPoint) of `pycox` and
//! [`LinearFromOne`](ReadingTd::LinearFromOne) of `SurvivalEvaluator`.
//!
//! Golden values: `pycox` 0.3.0 `concordance_td` with steps "pre", `SurvivalEVAL` 0.9.0
//! `SurvivalEvaluator.concordance_time_dependent`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::curves::SurvivalCurves;
use crate::rank::comparable_pairs::Predictions;
use crate::reading::{Position, Reading};
use crate::{MetricError, Outcomes};

/// How a curve is read at an event time: by a [`Reading`], or in one of two ways that only rank metrics of other
/// packages use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadingTd {
    /// One of the readings of this crate.
    Grid(Reading),
    /// The first grid point that is not before t, beyond the grid the last column (`pycox`, steps "pre").
    NextGridPoint,
    /// Linear from (0, 1) through the grid points; beyond the grid the line through (0, 1) and the last point, not below
    /// 0 (`SurvivalEvaluator`). A grid that starts at 0 keeps its value there; if it has no other point that value holds
    /// everywhere.
    LinearFromOne,
}

impl fmt::Display for ReadingTd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grid(reading) => reading.fmt(f),
            Self::NextGridPoint => f.write_str("next-grid-point"),
            Self::LinearFromOne => f.write_str("linear-from-one"),
        }
    }
}

/// Curves under a reading, for [`for_each_event`](crate::rank::comparable_pairs::for_each_event).
pub(crate) struct CurvesRead<'a> {
    curves: &'a SurvivalCurves,
    reading: ReadingTd,
}

/// The position of a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    Within(Position),
    /// This share of the way from (0, 1) to the first column.
    Before(f64),
    /// This multiple of the last grid time.
    Beyond(f64),
}

impl<'a> CurvesRead<'a> {
    pub(crate) fn new(
        outcomes: &Outcomes,
        curves: &'a SurvivalCurves,
        reading: ReadingTd,
    ) -> Result<Self, MetricError> {
        curves.check_rows(outcomes.n())?;
        if let ReadingTd::Grid(reading) = reading {
            reading.validate()?;
        }
        Ok(Self { curves, reading })
    }
}

impl Predictions for CurvesRead<'_> {
    type Place = Place;

    fn place(&self, time: f64) -> Place {
        let grid = self.curves.grid();
        let (first, last) = (grid[0], grid[grid.len() - 1]);
        match self.reading {
            ReadingTd::Grid(reading) => Place::Within(reading.position(grid, time)),
            ReadingTd::NextGridPoint => {
                let column = grid.partition_point(|point| *point < time).min(grid.len() - 1);
                Place::Within(Position { column, fraction: 0.0 })
            }
            ReadingTd::LinearFromOne if time < first => Place::Before(time / first),
            ReadingTd::LinearFromOne if time > last && last > 0.0 => Place::Beyond(time / last),
            ReadingTd::LinearFromOne => Place::Within(Reading::Linear.position(grid, time)),
        }
    }

    fn at(&self, row: usize, place: Place) -> f64 {
        let survival = self.curves.survival();
        match (place, self.reading) {
            (Place::Within(position), ReadingTd::Grid(reading)) => self.curves.read(row, position, reading),
            (Place::Within(position), _) => self.curves.read(row, position, Reading::Linear),
            (Place::Before(fraction), _) => Reading::Linear.blend(1.0, survival[[row, 0]], fraction),
            (Place::Beyond(multiple), _) => {
                let last = survival[[row, survival.ncols() - 1]];
                line_from_one(last, multiple)
            }
        }
    }
}

/// The line through (0, 1) and the last point of a curve, which is at `survival`, at a `multiple` of its time.
pub(crate) fn line_from_one(survival: f64, multiple: f64) -> f64 {
    // A flat line stays flat at any distance; the product of 0 and an infinite multiple would be NaN.
    if survival >= 1.0 { 1.0 } else { (1.0 - (1.0 - survival) * multiple).max(0.0) }
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
            let read = CurvesRead::new(&outcomes, &curves, ReadingTd::LinearFromOne).unwrap();
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
        let read = CurvesRead::new(&outcomes, &curves, ReadingTd::NextGridPoint).unwrap();
        assert_eq!([0.5, 1.0, 1.5, 2.0, 7.0].map(|time| read.at(0, read.place(time))), [0.9, 0.9, 0.4, 0.4, 0.4]);
    }
}
