//! Intervals of numbers that are a largest or smallest over groups: gap, ratio, worst value.
//!
//! The bootstrap replicates of a gap are larger than the gap itself, and never 0: their quantiles do not contain the
//! true gap of equal groups. An interval comes therefore from simultaneous intervals of the signed differences d of all
//! pairs of groups, `d - c se(d)` to `d + c se(d)`, with se the standard error in the replicates and c the quantile of
//! the largest `|d* - d| / se(d)` over all pairs: with the probability of the level all true differences lie inside, and
//! then the true gap lies between the largest of the lower ends and the largest of the upper ends of |d|. It contains 0
//! exactly if every pair's interval does. Of two groups it is the interval of their signed difference, folded at 0.
//!
//! The same holds for the distance from the whole sample (d = group minus whole sample), for ratios (differences of
//! logarithms), for the worst value (the values themselves) and, in [`equity_scaling`], for equity scaling, whose
//! denominator adds such distances. Coverage is at least the level, for large samples.
//!
//! A distance (D-calibration, ECE) is too large in small groups, and more so in its replicates, which may all lie above the true
//! value: its intervals reach down to 0, not to the smallest replicate. The logarithm of a distance near 0 has an error of no known
//! size, so that the ratio of distances lies between ratios of the ends of their intervals.
//! Source: Westfall & Young (1993), Resampling-based multiple testing, section 2.5; Romano & Wolf (2005),
//! doi:10.1111/j.1468-0262.2005.00615.x (studentised maxima).

mod difference_of_models;
mod equity_scaling;
mod region;

pub(crate) use difference_of_models::{OfModel, difference_of_models, p_by_bisection};

use crate::evaluation::evaluated::{Evaluated, Sampled};
use crate::evaluation::summary::difference;
use crate::fairness::Comparison;
use crate::resampling::bootstrap::quantile;
use crate::{Direction, EvaluationSettings};

/// A signed number with its replicates.
struct Signed {
    value: f64,
    replicates: Vec<Option<f64>>,
    /// Whether it is a distance, whose true value may lie below all replicates.
    is_distance: bool,
}

impl Signed {
    fn of(sampled: &Sampled) -> Option<Self> {
        let (value, replicates) = (*sampled.value.as_ref().ok()?, sampled.replicates.clone());
        Some(Self { value, replicates, is_distance: sampled.is_distance })
    }

    fn minus(&self, other: &Self) -> Self {
        let pairs = self.replicates.iter().zip(&other.replicates);
        let replicates = pairs.map(|(own, other)| Some((*own)? - (*other)?)).collect();
        Self { value: self.value - other.value, replicates, is_distance: false }
    }

    /// The part of an interval that lies within the range of value and replicates: a number has no further range, but a distance has
    /// one down to 0.
    fn within_replicates(&self, (lower, upper): (f64, f64)) -> (f64, f64) {
        let known = self.replicates.iter().flatten().chain([&self.value]).copied();
        let (least, most) = known.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        (lower.max(if self.is_distance { 0.0 } else { least }), upper.min(most))
    }

    /// The logarithm; `None` of a value that is not above 0.
    fn ln(&self) -> Option<Self> {
        let ln = |value: f64| (value > 0.0).then(|| value.ln());
        let replicates = self.replicates.iter().map(|v| (*v).and_then(ln)).collect();
        Some(Self { value: ln(self.value)?, replicates, is_distance: false })
    }
}

impl Evaluated<'_> {
    /// The interval of a comparison of the groups with at least `min_events` events; `None` without replicates, where it
    /// does not exist, and of the worst value of a metric with a target.
    pub(crate) fn simultaneous_interval(
        &self,
        metric: usize,
        attribute: usize,
        comparison: Comparison,
        min_events: usize,
        settings: &EvaluationSettings,
    ) -> Option<(f64, f64)> {
        let compared = self.compared(metric, attribute, min_events);
        let levels = (0..compared.groups.len()).filter(|level| compared.groups[*level].value.is_ok());
        let sampled: Vec<Sampled> = levels.map(|level| self.group(metric, attribute, level)).collect();
        if comparison == Comparison::Gap {
            return gap_interval(&sampled, settings);
        }
        let overall = self.overall(metric);
        let groups = sampled.iter().map(Signed::of).collect::<Option<Vec<Signed>>>()?;
        let direction = self.metrics[metric].direction;
        if let Comparison::EquityScaling(form) = comparison {
            return equity_scaling::interval(form, &groups, &Signed::of(&overall)?, direction, settings.level);
        }
        if groups.len() < 2 {
            return None;
        }
        let logarithms = || groups.iter().map(Signed::ln).collect::<Option<Vec<Signed>>>();
        let from =
            |whole: &Signed, groups: &[Signed]| groups.iter().map(|group| group.minus(whole)).collect::<Vec<_>>();
        match comparison {
            Comparison::GapToOverall => largest(&from(&Signed::of(&overall)?, &groups), settings.level),
            Comparison::Ratio if self.kinds[metric].is_distance => ratio_of_distances(groups, None, settings.level),
            Comparison::RatioToOverall if self.kinds[metric].is_distance => {
                ratio_of_distances(groups, Signed::of(&overall), settings.level)
            }
            Comparison::Ratio => largest(&pairs(&logarithms()?), settings.level).map(inverted),
            Comparison::RatioToOverall => {
                largest(&from(&Signed::of(&overall)?.ln()?, &logarithms()?), settings.level).map(inverted)
            }
            Comparison::Worst if self.kinds[metric].target.is_none() => worst(&groups, direction, settings.level),
            Comparison::Gap | Comparison::Worst | Comparison::EquityScaling(_) => None,
        }
    }
}

impl Evaluated<'_> {
    /// How far the interval of the gap excludes 0, which it does above 0: the largest of l and -u over the signed intervals
    /// `[l, u]` behind it. `None` where the gap has no interval.
    pub(crate) fn gap_margin(
        &self,
        metric: usize,
        attribute: usize,
        min_events: usize,
        settings: &EvaluationSettings,
    ) -> Option<f64> {
        let compared = self.compared(metric, attribute, min_events);
        let levels = (0..compared.groups.len()).filter(|level| compared.groups[*level].value.is_ok());
        let sampled: Vec<Sampled> = levels.map(|level| self.group(metric, attribute, level)).collect();
        let margin = |(lower, upper): (f64, f64)| lower.max(-upper);
        if let [first, second] = &sampled[..] {
            let found = difference(first, second, settings);
            return Some(margin((found.lower?, found.upper?)));
        }
        let groups = sampled.iter().map(Signed::of).collect::<Option<Vec<Signed>>>()?;
        simultaneous(&pairs(&groups), settings.level)?.into_iter().map(margin).reduce(f64::max)
    }
}

/// The interval of the largest difference between two of `groups`; `None` without replicates, with fewer than two groups,
/// or if one has no value.
pub(crate) fn gap_interval(groups: &[Sampled], settings: &EvaluationSettings) -> Option<(f64, f64)> {
    if let [first, second] = groups {
        let found = difference(first, second, settings);
        return Some(folded((found.lower?, found.upper?)));
    }
    let groups = groups.iter().map(Signed::of).collect::<Option<Vec<Signed>>>()?;
    largest(&pairs(&groups), settings.level)
}

/// From an interval of d to that of |d|.
fn folded((lower, upper): (f64, f64)) -> (f64, f64) {
    let (low, high) = (lower.abs().min(upper.abs()), lower.abs().max(upper.abs()));
    (if lower <= 0.0 && upper >= 0.0 { 0.0 } else { low }, high)
}

/// From an interval of |log ratio| to that of the ratio that is at most 1.
fn inverted((lower, upper): (f64, f64)) -> (f64, f64) {
    ((-upper).exp(), (-lower).exp())
}

fn pairs(groups: &[Signed]) -> Vec<Signed> {
    let from = |first: usize| groups[first + 1..].iter().map(move |second| groups[first].minus(second));
    (0..groups.len()).flat_map(from).collect()
}

/// The interval of the largest |d|.
fn largest(differences: &[Signed], level: f64) -> Option<(f64, f64)> {
    let intervals = simultaneous(differences, level)?;
    Some(
        intervals.into_iter().map(folded).fold((0.0, 0.0), |(low, high), (l, h)| (f64::max(low, l), f64::max(high, h))),
    )
}

/// The interval of the worst value.
fn worst(groups: &[Signed], direction: Direction, level: f64) -> Option<(f64, f64)> {
    let within = |(interval, group): ((f64, f64), &Signed)| group.within_replicates(interval);
    simultaneous(groups, level)?.into_iter().zip(groups).map(within).reduce(|(low, high), (l, h)| match direction {
        Direction::HigherIsBetter => (low.min(l), high.min(h)),
        Direction::LowerIsBetter => (low.max(l), high.max(h)),
    })
}

/// The interval of the ratio of the smallest to the largest of some distances, or (`overall`) of the smallest ratio of a distance to
/// that of the whole sample, the smaller one divided by the larger. `None` without replicates, or if all may be 0 only.
fn ratio_of_distances(mut numbers: Vec<Signed>, overall: Option<Signed>, level: f64) -> Option<(f64, f64)> {
    let n_groups = numbers.len();
    numbers.extend(overall);
    let found = simultaneous(&numbers, level)?;
    let ends: Vec<(f64, f64)> = found.into_iter().zip(&numbers).map(|(ends, of)| of.within_replicates(ends)).collect();
    let (of_groups, of_overall) = ends.split_at(n_groups);
    let Some(overall) = of_overall.first() else { return ratio_of_ends(of_groups) };
    let ratios = of_groups.iter().map(|ends| ratio_of_ends(&[*ends, *overall])).collect::<Option<Vec<_>>>()?;
    ratios.into_iter().reduce(|(low, high), (l, h)| (low.min(l), high.min(h)))
}

/// From intervals of numbers that are not negative to that of the ratio of the smallest to the largest; `None` if all are 0.
fn ratio_of_ends(ends: &[(f64, f64)]) -> Option<(f64, f64)> {
    let smallest = |of: fn(&(f64, f64)) -> f64| ends.iter().map(of).reduce(f64::min);
    let largest = |of: fn(&(f64, f64)) -> f64| ends.iter().map(of).reduce(f64::max);
    let (lower, upper) = (smallest(|of| of.0)? / largest(|of| of.1)?, smallest(|of| of.1)? / largest(|of| of.0)?);
    // Of a largest one that may be 0, the ratio may be 1.
    (!lower.is_nan()).then_some((lower, if upper < 1.0 { upper } else { 1.0 }))
}

/// By number, what each replicate adds to its value; replicates that lack one of the numbers are left out. `None` without
/// numbers or replicates.
fn deviations(numbers: &[&Signed]) -> Option<Vec<Vec<f64>>> {
    let n = numbers.first()?.replicates.len();
    let complete: Vec<usize> =
        (0..n).filter(|replicate| numbers.iter().all(|number| number.replicates[*replicate].is_some())).collect();
    let of = |number: &&Signed| -> Vec<f64> {
        complete.iter().filter_map(|replicate| number.replicates[*replicate]).map(|v| v - number.value).collect()
    };
    (!complete.is_empty()).then(|| numbers.iter().map(of).collect())
}

/// Intervals that contain all true values together. `None` without replicates.
fn simultaneous(numbers: &[Signed], level: f64) -> Option<Vec<(f64, f64)>> {
    Some(Simultaneous::new(numbers)?.intervals(numbers, level))
}

/// What simultaneous intervals of any level are computed from.
struct Simultaneous {
    /// The standard error of every number.
    errors: Vec<f64>,
    /// By replicate, the largest deviation of a number in standard errors; ascending.
    largest: Vec<f64>,
}

impl Simultaneous {
    /// `None` without numbers or replicates. O(numbers x replicates).
    fn new(numbers: &[Signed]) -> Option<Self> {
        let deviations = deviations(&numbers.iter().collect::<Vec<_>>())?;
        let error = |of: &Vec<f64>| {
            let mean = of.iter().sum::<f64>() / of.len() as f64;
            (of.iter().map(|deviation| (deviation - mean).powi(2)).sum::<f64>() / of.len() as f64).sqrt()
        };
        let errors: Vec<f64> = deviations.iter().map(error).collect();
        let studentised = |place: usize| {
            let of_number = deviations.iter().zip(&errors).filter(|(_, error)| **error > 0.0);
            of_number.map(|(deviations, error)| deviations[place].abs() / error).fold(0.0, f64::max)
        };
        let mut largest: Vec<f64> = (0..deviations[0].len()).map(studentised).collect();
        largest.sort_by(f64::total_cmp);
        Some(Self { errors, largest })
    }

    /// Replicates that define all numbers.
    fn n_replicates(&self) -> usize {
        self.largest.len()
    }

    /// One interval per number, of the numbers that the errors are those of.
    fn intervals(&self, numbers: &[Signed], level: f64) -> Vec<(f64, f64)> {
        let c = quantile(&self.largest, level);
        let interval = |(number, error): (&Signed, &f64)| (number.value - c * error, number.value + c * error);
        numbers.iter().zip(&self.errors).map(interval).collect()
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;
    use crate::normal::normal_quantile;

    fn number(value: f64, replicates: Vec<Option<f64>>) -> Signed {
        Signed { value, replicates, is_distance: false }
    }

    /// A number with normal replicates of standard error `error`; `step` decides their order.
    fn signed(value: f64, error: f64, step: usize) -> Signed {
        let of_replicate = |k: usize| value + error * normal_quantile(((k * step % 9_973) as f64 + 0.5) / 9_973.0);
        number(value, (0..9_973).map(|k| Some(of_replicate(k))).collect())
    }

    #[test]
    fn one_number_has_the_normal_interval_and_three_independent_ones_a_wider_one() {
        let [(lower, upper)] = simultaneous(&[signed(1.0, 0.5, 1)], 0.95).unwrap()[..] else { panic!("one interval") };
        assert_relative_eq!(lower, 1.0 - 1.96 * 0.5, max_relative = 1e-2);
        assert_relative_eq!(upper, 1.0 + 1.96 * 0.5, max_relative = 1e-3);
        let three = [signed(1.0, 0.5, 1), signed(0.0, 0.1, 2_741), signed(-1.0, 2.0, 7_013)];
        let found = simultaneous(&three, 0.95).unwrap();
        // The two-sided normal quantile at 0.95^(1/3) (Sidak): 2.388.
        for ((lower, upper), (number, error)) in found.into_iter().zip(three.iter().zip([0.5, 0.1, 2.0])) {
            assert_relative_eq!((upper - lower) / 2.0, 2.388 * error, max_relative = 0.02);
            assert_relative_eq!(f64::midpoint(upper, lower), number.value, epsilon = 1e-12);
        }
    }

    #[test]
    fn the_largest_difference_lies_between_the_largest_ends() {
        assert_eq!([(-0.2, 0.1), (0.1, 0.2), (-0.3, -0.1)].map(folded), [(0.0, 0.2), (0.1, 0.2), (0.1, 0.3)]);
        let ratio = inverted((0.0, 0.5_f64.ln().abs()));
        assert_relative_eq!(ratio.0, 0.5);
        assert_relative_eq!(ratio.1, 1.0);
        // A precise small difference is the lower end, a noisy one the upper end.
        let found = largest(&[signed(0.5, 0.01, 1), signed(0.6, 1.0, 2_741)], 0.95).unwrap();
        let c = 2.236; // two-sided normal quantile at 0.95^(1/2)
        assert_relative_eq!(found.0, 0.5 - c * 0.01, max_relative = 0.01);
        assert_relative_eq!(found.1, 0.6 + c * 1.0, max_relative = 0.02);
        let worst_of = |direction| worst(&[signed(0.7, 0.01, 1), signed(0.6, 0.1, 2_741)], direction, 0.95).unwrap();
        assert_relative_eq!(worst_of(Direction::HigherIsBetter).0, 0.6 - c * 0.1, max_relative = 0.02);
        assert_relative_eq!(worst_of(Direction::HigherIsBetter).1, 0.7 + c * 0.01, max_relative = 0.02);
        assert_relative_eq!(worst_of(Direction::LowerIsBetter).0, 0.7 - c * 0.01, max_relative = 0.02);
    }

    #[test]
    fn the_interval_of_a_worst_value_stays_within_its_replicates() {
        let skewed = |k: usize| Some(1.0 - 0.2 * (k as f64 / 1_000.0).powi(4));
        let group = number(0.99, (0..1_000).map(skewed).collect());
        let (lower, upper) = worst(&[group], Direction::HigherIsBetter, 0.95).unwrap();
        assert!(lower > 0.8 && upper <= 1.0, "{lower} {upper}");
    }

    #[test]
    fn the_interval_of_a_distance_reaches_below_its_replicates_but_not_below_0() {
        // Noise adds 0.02 to the value, and as much again to its replicates: 0.05 to 0.07, all above the true value of 0.02.
        let distance = |value: f64| {
            let replicates = (0..1_000).map(|k| Some(value + 0.01 + 0.02 * f64::from(k) / 999.0)).collect();
            Signed { value, replicates, is_distance: true }
        };
        let (lower, upper) = worst(&[distance(0.04)], Direction::LowerIsBetter, 0.95).unwrap();
        assert!(lower < 0.02 && lower > 0.0 && upper > 0.065 && upper <= 0.07, "{lower} {upper}");
        assert_eq!(worst(&[distance(0.01)], Direction::LowerIsBetter, 0.95).unwrap().0, 0.0);
        // 0.04 and 0.4, each within 0.03 of its value: from (0.04 - 0.03) / 0.43 to 0.07 / 0.37.
        let (lower, upper) = ratio_of_distances(vec![distance(0.04), distance(0.4)], None, 1.0).unwrap();
        assert_relative_eq!(lower, 0.01 / 0.43, max_relative = 1e-9);
        assert_relative_eq!(upper, 0.07 / 0.37, max_relative = 1e-9);
        // The smallest ratio to 0.3 is that of 0.04.
        let of_overall = ratio_of_distances(vec![distance(0.04), distance(0.4)], Some(distance(0.3)), 1.0).unwrap();
        assert_relative_eq!(of_overall.0, 0.01 / 0.33, max_relative = 1e-9);
        assert_relative_eq!(of_overall.1, 0.07 / 0.27, max_relative = 1e-9);
    }

    #[test]
    fn a_ratio_of_numbers_that_may_be_0_reaches_1() {
        assert_eq!(ratio_of_ends(&[(0.0, 0.5), (0.0, 2.0)]), Some((0.0, 1.0)));
        assert_eq!(ratio_of_ends(&[(0.5, 1.0), (2.0, 4.0)]), Some((0.125, 0.5)));
        assert_eq!(ratio_of_ends(&[(0.5, 3.0), (2.0, 4.0)]), Some((0.125, 1.0)));
        assert_eq!(ratio_of_ends(&[(0.0, 0.0), (0.0, 0.0)]), None);
    }

    #[test]
    fn replicates_that_lack_a_number_are_left_out_and_constant_numbers_have_no_width() {
        let mut first = signed(1.0, 0.5, 1);
        first.replicates[5] = None;
        let constant = number(0.25, vec![Some(0.25); 9_973]);
        let found = simultaneous(&[first, constant], 0.95).unwrap();
        assert_eq!(found[1], (0.25, 0.25));
        assert_relative_eq!(found[0].1 - found[0].0, 2.0 * 1.96 * 0.5, max_relative = 1e-2);
        assert_eq!(simultaneous(&[number(0.5, vec![None; 3])], 0.95), None);
        assert_eq!(simultaneous(&[number(0.5, vec![])], 0.95), None);
    }
}
