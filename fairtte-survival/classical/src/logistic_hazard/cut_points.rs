//! The intervals of a discrete time scale.

use fairtte_metrics::Outcomes;
use fairtte_metrics::estimators::KaplanMeier;
use serde::{Deserialize, Serialize};

use crate::ClassicalError;

/// Where the cut points of a discrete time scale are placed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CutPointRule {
    /// At these times, ascending from above 0: the ends of the intervals, the first of which begins at 0.
    Given(Vec<f64>),
    /// This many intervals of equal length, to the largest observed time, 1 to 10,000.
    Equidistant(usize),
    /// At quantiles of the Kaplan-Meier curve, so that about the same share of events falls into each of this many intervals,
    /// 1 to 10,000; fewer where quantiles coincide. The curve's range is divided equally; a cut point is the last observed
    /// time at which the curve is not below such a value, and the last is the largest observed time (Kvamme & Borgan 2021,
    /// section 3.4, <https://doi.org/10.1007/s10985-021-09532-6>).
    Quantile(usize),
}

impl Default for CutPointRule {
    /// 20 intervals at quantiles.
    fn default() -> Self {
        Self::Quantile(20)
    }
}

/// Ends of intervals, ascending from above 0: interval j reaches from the cut point before it, or 0, to cut point j, which
/// belongs to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct CutPoints {
    times: Vec<f64>,
}

impl From<CutPoints> for Vec<f64> {
    fn from(cut_points: CutPoints) -> Self {
        cut_points.times
    }
}

impl TryFrom<Vec<f64>> for CutPoints {
    type Error = ClassicalError;

    fn try_from(times: Vec<f64>) -> Result<Self, ClassicalError> {
        let before = |index: usize| if index == 0 { 0.0 } else { times[index - 1] };
        match (0..times.len()).find(|index| !(times[*index].is_finite() && times[*index] > before(*index))) {
            Some(index) => Err(ClassicalError::CutPoints { index, time: times[index] }),
            None if times.is_empty() => Err(too_many_or_few("number of intervals", 0)),
            None => Ok(Self { times }),
        }
    }
}

fn too_many_or_few(setting: &'static str, found: usize) -> ClassicalError {
    ClassicalError::Setting { setting, value: found.to_string(), expected: "1 to 10000" }
}

impl CutPointRule {
    /// Checks the number of intervals or the times.
    ///
    /// # Errors
    /// [`ClassicalError::Setting`], [`ClassicalError::CutPoints`].
    pub fn check(&self) -> Result<(), ClassicalError> {
        match self {
            Self::Given(times) => CutPoints::try_from(times.clone()).map(drop),
            Self::Equidistant(n) | Self::Quantile(n) if (1..=10_000).contains(n) => Ok(()),
            Self::Equidistant(n) => Err(too_many_or_few("cut-points.equidistant", *n)),
            Self::Quantile(n) => Err(too_many_or_few("cut-points.quantile", *n)),
        }
    }

    /// The cut points for these outcomes; O(n log n).
    ///
    /// # Errors
    /// Those of [`check`](Self::check); [`ClassicalError::CutPoints`] if all observed times are 0.
    pub fn cut_points(&self, outcomes: &Outcomes) -> Result<CutPoints, ClassicalError> {
        self.check()?;
        let largest = outcomes.time().iter().copied().fold(0.0, f64::max);
        let times = match self {
            Self::Given(times) => times.clone(),
            Self::Equidistant(n) => {
                let share = |k: usize| if k == *n { 1.0 } else { k as f64 / *n as f64 };
                (1..=*n).map(|k| largest * share(k)).collect()
            }
            Self::Quantile(n) => quantiles(&KaplanMeier::fit(outcomes)?, *n, largest),
        };
        CutPoints::try_from(times)
    }
}

fn quantiles(curve: &KaplanMeier, n: usize, largest: f64) -> Vec<f64> {
    let lowest = curve.survival().last().copied().unwrap_or(1.0);
    let time = |k: usize| {
        let wanted = 1.0 - (1.0 - lowest) * (k as f64 / n as f64);
        let n_not_below = curve.survival().partition_point(|survival| *survival >= wanted);
        n_not_below.checked_sub(1).map(|place| curve.times()[place])
    };
    let mut times: Vec<f64> = (1..n).filter_map(time).filter(|time| *time > 0.0 && *time < largest).collect();
    times.push(largest);
    times.dedup();
    times
}

impl CutPoints {
    /// Ends of the intervals.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Number of intervals.
    pub fn n_intervals(&self) -> usize {
        self.times.len()
    }

    /// Intervals that end before `time`: the place of the interval that contains it.
    pub(super) fn n_before(&self, time: f64) -> usize {
        self.times.partition_point(|end| *end < time)
    }

    /// Intervals that end at or before `time`.
    pub(super) fn n_by(&self, time: f64) -> usize {
        self.times.partition_point(|end| *end <= time)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;

    fn outcomes(rows: &[(f64, bool)]) -> Outcomes {
        let (time, event) = rows.iter().copied().unzip();
        Outcomes::new(time, event).unwrap()
    }

    #[test]
    fn rules_place_cut_points_where_they_say() {
        let rows =
            outcomes(&[(1.0, true), (2.0, true), (3.0, false), (4.0, true), (5.0, false), (9.0, true), (10.0, false)]);
        let cuts = |rule: CutPointRule| rule.cut_points(&rows).unwrap().times().to_vec();
        assert_eq!(cuts(CutPointRule::Equidistant(4)), [2.5, 5.0, 7.5, 10.0]);
        assert_eq!(cuts(CutPointRule::Given(vec![0.5, 20.0])), [0.5, 20.0]);
        // The curve: 6/7 from 1, 5/7 from 2 to 3, 15/28 from 4 to 5, 15/56 from 9. Its range in three: 0.756, 0.512.
        assert_eq!(cuts(CutPointRule::Quantile(3)), [1.0, 5.0, 10.0]);
        assert_eq!(cuts(CutPointRule::Quantile(1)), [10.0]);
        // Values between the same two of the curve give one cut point; above 6/7 there is no time.
        assert_eq!(cuts(CutPointRule::Quantile(100)), [1.0, 3.0, 5.0, 10.0]);
    }

    #[test]
    fn cut_points_that_do_not_ascend_from_above_0_are_refused() {
        let refused = |times: &[f64]| CutPoints::try_from(times.to_vec()).unwrap_err().to_string();
        assert_eq!(refused(&[0.0, 1.0]), "cut point 0 is 0, expected finite times that ascend from above 0");
        assert_eq!(refused(&[1.0, 1.0]), "cut point 1 is 1, expected finite times that ascend from above 0");
        assert_eq!(refused(&[1.0, f64::NAN]), "cut point 1 is NaN, expected finite times that ascend from above 0");
        assert_eq!(refused(&[]), "number of intervals is 0, expected 1 to 10000");
        assert!(CutPointRule::Quantile(0).check().is_err() && CutPointRule::Equidistant(10_001).check().is_err());
        assert!(CutPointRule::Given(vec![2.0, 1.0]).check().is_err());
        let zero = outcomes(&[(0.0, true), (0.0, false)]);
        for rule in [CutPointRule::Quantile(5), CutPointRule::Equidistant(2)] {
            assert_eq!(rule.cut_points(&zero), Err(ClassicalError::CutPoints { index: 0, time: 0.0 }));
        }
        assert!(serde_json::from_str::<CutPoints>("[1.0, 0.5]").is_err());
        assert_eq!(serde_json::from_str::<CutPointRule>("{\"quantile\": 7}").unwrap(), CutPointRule::Quantile(7));
    }
}
