//! Step 9: the times at which curves are predicted: the cut points, or `points` times as many between them.
//!
//! Between two cut points a discrete-time curve is undefined; two rules fill it (pycox 0.3.0, `interpolation.py`):
//! linear S (the event times spread evenly over the interval, pycox's `const_pdf`), or a constant hazard (S falls
//! exponentially, pycox's `const_hazard`, which adds 1e-7 inside its logarithm; we do not). Both keep the values at the
//! cut points. pycox offers the second for `nnet-survival` only; here it serves every discrete head. `pc-hazard` has a
//! constant hazard by its definition and the Cox models a step at every event time: the rule does not touch them.
//! A finer grid has (`n_cut_points` - 1) `points` + 1 times, evenly spaced within each interval.
//!
//! Curves that begin at 1 do not distinguish subjects at time 0: for events before the next time of the grid all
//! predictions would be S = 1, and tie. The grid of these heads has the first event time of the training part as an
//! additional time, see [`PredictionGrid::with_early`]. The curves of `cox` and `cox-time` can be written at any times, such
//! as all event times: [`PredictionGrid::at_times`].

use fairtte_metrics::Outcomes;
use ndarray::{Array2, ArrayView1};
use serde::{Deserialize, Serialize};

use crate::{CutPoints, SurvivalError, SurvivalHead};

/// How a discrete-time curve is interpolated between two cut points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Interpolation {
    /// S is a straight line.
    #[default]
    Linear,
    /// The hazard is constant: log S is a straight line.
    ConstantHazard,
}

/// Times of predicted curves, ascending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "Written")]
pub struct PredictionGrid {
    times: Vec<f64>,
    points: usize,
    rule: Interpolation,
    /// A time between 0 and the next, as a share of the first interval.
    early: Option<f64>,
}

/// The form of a grid in a file, before it is checked.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    times: Vec<f64>,
    points: usize,
    rule: Interpolation,
    early: Option<f64>,
}

impl TryFrom<Written> for PredictionGrid {
    type Error = String;

    fn try_from(Written { times, points, rule, early }: Written) -> Result<Self, String> {
        Self::check(points).map_err(|error| error.to_string())?;
        // Many points between two close cut points may be equal when rounded.
        let ascend = times.first() == Some(&0.0) && times.windows(2).all(|pair| pair[0] <= pair[1]);
        if !ascend || times.iter().any(|time| !time.is_finite()) {
            return Err("times of predictions that do not ascend from 0, or are not finite".to_owned());
        }
        let n_even = times.len() - usize::from(early.is_some());
        if n_even < 2 || !(n_even - 1).is_multiple_of(points) {
            let n = times.len();
            return Err(format!("number of times of predictions: {n}, expected whole intervals of {points} points"));
        }
        if early.is_some_and(|share| !(0.0..1.0).contains(&share)) {
            return Err("an early time of predictions that is not in the first interval".to_owned());
        }
        Ok(Self { times, points, rule, early })
    }
}

impl PredictionGrid {
    /// The permitted numbers of points per interval.
    pub const RANGE: std::ops::RangeInclusive<usize> = 1..=1_000;

    /// The cut points themselves.
    pub fn at_cut_points(cut_points: &CutPoints) -> Self {
        Self::at_times(cut_points.times().to_vec())
    }

    /// `times` themselves, ascending from 0: for models that have a curve at any time.
    pub fn at_times(times: Vec<f64>) -> Self {
        Self { times, points: 1, rule: Interpolation::Linear, early: None }
    }

    /// `points` evenly spaced times in each interval, its left cut point included, and the last cut point.
    ///
    /// # Errors
    /// [`SurvivalError::Setting`] unless `points` is in [`RANGE`](Self::RANGE).
    pub fn new(cut_points: &CutPoints, points: usize, rule: Interpolation) -> Result<Self, SurvivalError> {
        Self::check(points)?;
        let cuts = cut_points.times();
        let step = |pair: &[f64], k: usize| pair[0] + k as f64 * ((pair[1] - pair[0]) / points as f64);
        let inner = cuts.windows(2).flat_map(|pair| (0..points).map(move |k| step(pair, k)));
        let times = inner.chain(cuts.last().copied()).collect();
        Ok(Self { times, points, rule, early: None })
    }

    /// The same grid for `head`: with the first event time of `train` above 0 between 0 and the next time, if the curves of
    /// the head begin at 1 and the grid does not contain that time yet.
    #[must_use]
    pub fn with_early(mut self, head: &dyn SurvivalHead, train: &Outcomes) -> Self {
        let events = train.time().iter().zip(train.event()).filter(|(time, event)| **event && **time > 0.0);
        let first = events.map(|(time, _)| *time).fold(f64::INFINITY, f64::min);
        if head.starts_at_one() && self.early.is_none() && first < self.times[1] {
            self.early = Some(first / (self.times[1] * self.points as f64));
            self.times.insert(1, first);
        }
        self
    }

    /// Checks a number of points per interval.
    ///
    /// # Errors
    /// [`SurvivalError::Setting`] unless `points` is in [`RANGE`](Self::RANGE).
    pub fn check(points: usize) -> Result<(), SurvivalError> {
        if Self::RANGE.contains(&points) {
            return Ok(());
        }
        let expected = "a whole number from 1 to 1000";
        Err(SurvivalError::Setting { key: "points-per-interval", value: points as f64, expected })
    }

    /// The times, ascending, first 0.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Survival at the cut points, `[n, n_cut_points]`, to survival at [`times`](Self::times), `[n, n_times]`, for discrete
    /// heads.
    ///
    /// # Panics
    /// If `survival` has fewer columns than there are cut points.
    pub fn refine(&self, survival: Array2<f64>) -> Array2<f64> {
        match self.rule {
            _ if self.points == 1 => survival,
            Interpolation::Linear => self.lines(&survival),
            Interpolation::ConstantHazard => {
                let cumulative = survival.mapv_into(|s| -s.ln());
                self.lines(&cumulative).mapv_into(|h| (-h).exp())
            }
        }
    }

    /// Straight lines between the values at the cut points.
    pub(crate) fn lines(&self, values: &Array2<f64>) -> Array2<f64> {
        let mut finer = Array2::zeros((values.nrows(), self.times.len()));
        for (row, filled) in values.rows().into_iter().zip(finer.rows_mut()) {
            let even = (0..self.times.len() - usize::from(self.early.is_some())).map(|position| {
                let within = (position % self.points) as f64 / self.points as f64;
                between(&row, position / self.points, within)
            });
            let early = self.early.map(|within| between(&row, 0, within));
            let first = even.clone().take(1);
            for (value, at) in filled.into_iter().zip(first.chain(early).chain(even.skip(1))) {
                *value = at;
            }
        }
        finer
    }
}

/// The value on the line from value `interval` to the next, at the fraction `within`.
fn between(row: &ArrayView1<'_, f64>, interval: usize, within: f64) -> f64 {
    let left = row[interval];
    if within == 0.0 {
        return left;
    }
    let right = row[interval + 1];
    // Equal values first: the cumulative hazard may be infinite on both sides.
    if left.total_cmp(&right).is_eq() { left } else { left + (right - left) * within }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;
    use ndarray::array;

    fn grid(points: usize, rule: Interpolation) -> PredictionGrid {
        let train = Outcomes::new(vec![1.0, 4.0], vec![true, false]).unwrap();
        PredictionGrid::new(&CutPoints::equidistant(&train, 3).unwrap(), points, rule).unwrap()
    }

    #[test]
    fn every_interval_gets_its_points_and_the_last_cut_stays() {
        assert_eq!(grid(2, Interpolation::Linear).times(), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(grid(1, Interpolation::Linear).times(), [0.0, 2.0, 4.0]);
    }

    #[test]
    fn a_curve_that_has_reached_0_stays_there_under_both_rules() {
        let survival = array![[1.0, 0.25, 0.0], [0.5, 0.0, 0.0]];
        let linear = grid(2, Interpolation::Linear).refine(survival.clone());
        assert_eq!(linear, array![[1.0, 0.625, 0.25, 0.125, 0.0], [0.5, 0.25, 0.0, 0.0, 0.0]]);
        let exponential = grid(2, Interpolation::ConstantHazard).refine(survival);
        assert_eq!(exponential, array![[1.0, 0.5, 0.25, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0, 0.0]]);
    }

    #[test]
    fn a_file_that_is_no_grid_is_refused() {
        let read = |text: &str| serde_json::from_str::<PredictionGrid>(text).map_err(|error| error.to_string());
        let train = Outcomes::new(vec![0.5, 4.0], vec![true, false]).unwrap();
        let finer = grid(2, Interpolation::ConstantHazard).with_early(&crate::PcHazard, &train);
        assert_eq!(finer.times(), [0.0, 0.5, 1.0, 2.0, 3.0, 4.0]);
        // Points between two close cut points are equal when rounded.
        let rounded = PredictionGrid::at_times(vec![0.0, 2.0, 2.0]);
        for written in [finer, PredictionGrid::at_times(vec![0.0, 0.5, 0.75]), rounded] {
            assert_eq!(read(&serde_json::to_string(&written).unwrap()).unwrap(), written);
        }
        let of = |times: &str, points: usize, early: &str| {
            let rest = format!(r#""points": {points}, "rule": "linear", "early": {early}"#);
            read(&format!(r#"{{"times": {times}, {rest}}}"#)).unwrap_err()
        };
        assert!(of("[0.0, 1.0]", 0, "null").starts_with("points-per-interval is 0"));
        for times in ["[]", "[1.0, 2.0]", "[0.0, 2.0, 1.0]"] {
            assert!(of(times, 1, "null").starts_with("times of predictions that do not ascend from 0"), "{times}");
        }
        let expected = "number of times of predictions: 4, expected whole intervals of 2 points";
        assert!(of("[0.0, 1.0, 2.0, 3.0]", 2, "null").starts_with(expected));
        assert!(of("[0.0, 1.0]", 1, "0.5").starts_with("number of times of predictions: 2"));
        assert!(of("[0.0, 1.0, 2.0]", 1, "1.5").starts_with("an early time"));
    }

    #[test]
    fn a_number_of_points_outside_its_range_is_refused() {
        let error = PredictionGrid::check(0).unwrap_err();
        assert_eq!(error.to_string(), "points-per-interval is 0, expected a whole number from 1 to 1000");
    }
}
