//! Summaries of the values of several groups in one number: gap, ratios, worst group, equity scaling.
//!
//! For group values v(a) and overall value v: gap = max - min (`FairTTE`, Equation 1 and E.2); gap to overall =
//! max |v(a) - v|; ratio = min / max; ratio to overall = min over groups of min(v(a) / v, v / v(a)); worst = min where
//! higher is better, max where lower is better. Equity scaling comes in three forms, see [`EquityScaling`]. The same
//! functions serve the sample and every bootstrap replicate. Groups without a value are left out by the caller, who
//! counts them.
//!
//! Sources: `FairTTE`, E.2 and E.3; Tian et al., `FairSeg` (ICLR 2024), Equations 4, 5 and 7. Golden values:
//! `fairlearn` 0.15.0 `MetricFrame` (differences and ratios), and the tables of `FairSeg` for its two forms.
//!
//! Where we differ: the ratio of negative values, and that of two zeros, is an error; `fairlearn` returns a number
//! outside [0, 1] or NaN.

use serde::{Deserialize, Serialize};

use crate::Direction;

/// How differences between groups reduce an equity-scaled metric. Only groups with a value count; one is enough.
///
/// ```
/// use fairtte_metrics::Direction;
/// use fairtte_metrics::fairness::EquityScaling;
///
/// // IBS 0.25 overall, 0.2 and 0.3 in the groups: the distances add up to 0.1.
/// let scaled = |form: EquityScaling| form.of(&[0.2, 0.3], 0.25, Direction::LowerIsBetter).unwrap();
/// assert!((scaled(EquityScaling::FairTte) - 0.75 / 1.1).abs() < 1e-15);
/// assert!((scaled(EquityScaling::FairSeg) - 0.25 / 1.1).abs() < 1e-15);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EquityScaling {
    /// `u / (1 + sum over groups |v - v(a)|)` with u = v where higher is better and u = 1 - v where lower is better,
    /// so that higher is always better (`FairTTE`, E.3).
    #[default]
    FairTte,
    /// `v / (1 + sum over groups |v - v(a)|)` whatever the direction (`FairSeg`, Equations 4 and 5, where every metric
    /// is better when higher). Of a metric where lower is better it *falls* with unfairness, so compare it with care.
    FairSeg,
    /// `v / (1 + s)`, s the standard deviation of the group values (`FairSeg`, Equation 7). The paper does not say
    /// which one: its Table 6 is reproduced by the divisor (number of groups - 1). Of one group s is 0.
    FairSegDeviation,
}

impl EquityScaling {
    /// The scaled value; `None` without any group, if it is not a finite number, or if what would be divided is below 0, where
    /// a distance would make it better.
    pub fn of(self, values: &[f64], overall: f64, direction: Direction) -> Option<f64> {
        if values.is_empty() {
            return None;
        }
        let distance = finite(self.distance(values, overall))?;
        let utility = self.utility(overall, direction);
        if utility < 0.0 { None } else { finite(utility / (1.0 + distance)) }
    }

    /// What is added to 1 in the denominator. A seminorm of (values, overall): it is 0 or more, doubles if both double, and
    /// of a sum it is at most the sum of the two.
    pub(crate) fn distance(self, values: &[f64], overall: f64) -> f64 {
        match self {
            Self::FairTte | Self::FairSeg => values.iter().map(|value| (overall - value).abs()).sum(),
            Self::FairSegDeviation => deviation(values),
        }
    }

    /// The numerator.
    pub(crate) fn utility(self, overall: f64, direction: Direction) -> f64 {
        match (self, direction) {
            (Self::FairTte, Direction::LowerIsBetter) => 1.0 - overall,
            _ => overall,
        }
    }
}

/// A number that compares the groups of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// Largest minus smallest value; needs two groups.
    Gap,
    /// Largest distance from the overall value; needs two groups.
    GapToOverall,
    /// Smallest divided by largest value; needs two groups and values >= 0.
    Ratio,
    /// Smallest ratio to the overall value, turned so that it is at most 1; needs two groups and values >= 0.
    RatioToOverall,
    /// The worst value; needs two groups.
    Worst,
    /// Utility and equity in one number; needs one group.
    EquityScaling(EquityScaling),
}

impl Comparison {
    /// All comparisons, with every form of equity scaling.
    pub const ALL: [Self; 8] = [
        Self::Gap,
        Self::GapToOverall,
        Self::Ratio,
        Self::RatioToOverall,
        Self::Worst,
        Self::EquityScaling(EquityScaling::FairTte),
        Self::EquityScaling(EquityScaling::FairSeg),
        Self::EquityScaling(EquityScaling::FairSegDeviation),
    ];

    /// The comparison of the defined group values with each other or with `overall`; `None` where it does not exist.
    ///
    /// Intended for bootstrap replicates; [`PerGroup::compare`](crate::fairness::PerGroup::compare) also returns the
    /// reason.
    pub fn of(self, values: &[f64], overall: f64, direction: Direction) -> Option<f64> {
        match self {
            Self::Gap => gap_of(values),
            Self::GapToOverall => gap_to_overall_of(values, overall),
            Self::Ratio => ratio_of(values),
            Self::RatioToOverall => ratio_to_overall_of(values, overall),
            Self::Worst => worst_of(values, direction),
            Self::EquityScaling(form) => form.of(values, overall, direction),
        }
    }

    /// Number of groups with a value that the comparison needs.
    pub fn n_needed(self) -> usize {
        if matches!(self, Self::EquityScaling(_)) { 1 } else { 2 }
    }

    /// Whether the comparison uses the overall value.
    pub fn needs_overall(self) -> bool {
        matches!(self, Self::GapToOverall | Self::RatioToOverall | Self::EquityScaling(_))
    }
}

/// Smallest and largest of at least two finite values.
fn extremes(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    Some(values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v))))
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Standard deviation with the divisor (number of values - 1); 0 of a single value.
fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}

/// [`Comparison::Gap`] of the defined values.
fn gap_of(values: &[f64]) -> Option<f64> {
    let (low, high) = extremes(values)?;
    finite(high - low)
}

/// [`Comparison::Worst`] of the defined values.
fn worst_of(values: &[f64], direction: Direction) -> Option<f64> {
    extremes(values).map(|(low, high)| match direction {
        Direction::HigherIsBetter => low,
        Direction::LowerIsBetter => high,
    })
}

fn gap_to_overall_of(values: &[f64], overall: f64) -> Option<f64> {
    extremes(values)?;
    finite(overall)?;
    finite(values.iter().map(|value| (value - overall).abs()).fold(0.0, f64::max))
}

fn ratio_of(values: &[f64]) -> Option<f64> {
    let (low, high) = extremes(values)?;
    share(low, high)
}

fn ratio_to_overall_of(values: &[f64], overall: f64) -> Option<f64> {
    extremes(values)?;
    let ratios = values.iter().map(|&value| share(value.min(overall), value.max(overall)));
    ratios.collect::<Option<Vec<f64>>>().map(|ratios| ratios.into_iter().fold(1.0, f64::min))
}

/// `low / high` of ordered values >= 0 that are not both 0.
fn share(low: f64, high: f64) -> Option<f64> {
    if low >= 0.0 && high > 0.0 && high.is_finite() { Some(low / high) } else { None }
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    const UP: Direction = Direction::HigherIsBetter;

    #[test]
    fn both_forms_of_fairseg_reproduce_its_tables() {
        // Dice of Asian, Black and White groups: Table 2, TransUNet, cup: ES 0.8281; Table 6, nnUNet, cup: 0.8625.
        let sum = EquityScaling::FairSeg.of(&[0.8270, 0.8489, 0.8503], 0.8481, UP).unwrap();
        assert_abs_diff_eq!(sum, 0.8281, epsilon = 1e-4);
        let deviation = EquityScaling::FairSegDeviation.of(&[0.8675, 0.8855, 0.8697], 0.8710, UP).unwrap();
        assert_abs_diff_eq!(deviation, 0.8625, epsilon = 1e-4);
    }

    #[test]
    fn every_comparison_of_two_groups_by_hand() {
        let of = |comparison: Comparison| comparison.of(&[0.5, 0.8], 0.64, UP).unwrap();
        assert_abs_diff_eq!(of(Comparison::Gap), 0.3, epsilon = 1e-15);
        assert_abs_diff_eq!(of(Comparison::GapToOverall), 0.16, epsilon = 1e-15);
        assert_abs_diff_eq!(of(Comparison::Ratio), 0.625, epsilon = 1e-15);
        // 0.5 / 0.64 = 0.78125 and 0.64 / 0.8 = 0.8.
        assert_abs_diff_eq!(of(Comparison::RatioToOverall), 0.781_25, epsilon = 1e-15);
        assert_eq!(of(Comparison::Worst), 0.5);
        assert_eq!(Comparison::Worst.of(&[0.5, 0.8], 0.64, Direction::LowerIsBetter), Some(0.8));
        assert_abs_diff_eq!(of(Comparison::EquityScaling(EquityScaling::FairTte)), 0.64 / 1.3, epsilon = 1e-15);
    }

    #[test]
    fn one_group_has_an_equity_scaling_and_no_gap() {
        // The smallest golden sample: overall 0.25, one group with 0.
        assert_eq!(EquityScaling::FairTte.of(&[0.0], 0.25, UP), Some(0.2));
        assert_eq!(EquityScaling::FairSegDeviation.of(&[0.0], 0.25, UP), Some(0.25));
        assert_eq!(EquityScaling::FairTte.of(&[], 0.25, UP), None);
        for comparison in [Comparison::Gap, Comparison::GapToOverall, Comparison::Ratio, Comparison::Worst] {
            assert_eq!(comparison.of(&[0.5], 0.5, UP), None);
        }
    }

    #[test]
    fn a_utility_below_0_is_not_scaled() {
        // A loss of 4.5, whose utility is -3.5: more distance would bring it nearer to 0.
        let loss = |form: EquityScaling| form.of(&[4.0, 5.0], 4.5, Direction::LowerIsBetter);
        assert_eq!(loss(EquityScaling::FairTte), None);
        assert_abs_diff_eq!(loss(EquityScaling::FairSeg).unwrap(), 4.5 / 2.0, epsilon = 1e-15);
        assert_eq!(EquityScaling::FairSeg.of(&[-0.2, 0.0], -0.1, UP), None);
        assert_eq!(EquityScaling::FairTte.of(&[1.0, 1.0], 1.0, Direction::LowerIsBetter), Some(0.0));
    }

    #[test]
    fn what_is_no_finite_number_is_no_value() {
        let sum = Comparison::EquityScaling(EquityScaling::FairTte);
        let deviation = Comparison::EquityScaling(EquityScaling::FairSegDeviation);
        for values in [[f64::NAN, 0.5], [0.5, f64::INFINITY], [f64::MAX, f64::MIN]] {
            for comparison in [Comparison::Gap, Comparison::Ratio, sum, deviation] {
                assert_eq!(comparison.of(&values, 0.5, UP), None, "{comparison:?} {values:?}");
            }
        }
        assert_eq!(Comparison::Ratio.of(&[-0.5, 0.5], 0.5, UP), None);
        assert_eq!(Comparison::RatioToOverall.of(&[0.0, 0.5], 0.0, UP), None);
        assert_eq!(Comparison::GapToOverall.of(&[0.1, 0.5], f64::NAN, UP), None);
    }

    #[test]
    fn distances_and_ratios_to_the_overall_value_and_scalings_read_it() {
        let reads = [Comparison::GapToOverall, Comparison::RatioToOverall].into_iter();
        let scaled = [EquityScaling::FairTte, EquityScaling::FairSeg, EquityScaling::FairSegDeviation];
        assert!(reads.chain(scaled.map(Comparison::EquityScaling)).all(Comparison::needs_overall));
        assert!(![Comparison::Gap, Comparison::Ratio, Comparison::Worst].into_iter().any(Comparison::needs_overall));
    }
}
