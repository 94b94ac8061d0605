//! The interval of a comparison of the groups in one model minus that in another, on the same samples.
//!
//! A gap is the largest |a| over the pairs of groups, with a the signed difference of two groups; that of the second model is
//! the largest |b|. The replicates of a gap are larger than the gap, the more the nearer groups are to equality, so that the
//! quantiles of a difference of two gaps are no interval. Here all a, b and changes c = a - b have simultaneous intervals
//! ([`Simultaneous`]); with the probability of the level all true values lie inside, and then the difference of the gaps lies
//! in its range over these values. The draws are paired, so a change is known better than a and b: where the sign of the
//! differences is known, the interval is about that of the change, and a model differs from its copy by 0 to 0.
//!
//! For one pair the range of |a| - |b| is exact: the function is linear between the axes, so its extremes are at corners of
//! the region, or where its edges meet an axis. For several pairs it is a bound: the largest |a| is that of a pair whose
//! interval of |a| reaches the largest lower end, and max |a| - max |b| is at most |a| - |b| of this pair; the same for the
//! lower end with b. The other comparisons differ in their numbers and in the size in place of |a|:
//!
//! | comparison | numbers | size |
//! |---|---|---|
//! | distance from the whole sample | group minus whole sample | the same |
//! | ratio, ratio to the whole sample | the same of the logarithms | -exp(-abs(a)): the ratio is the smallest exp(-abs(a)) |
//! | worst value | the groups | a, or -a where higher is better |
//!
//! All sizes are monotone between and along the edges of the region and the axes, so that their extremes are at the same points.
//!
//! Equity scaling u / (1 + D) has the region of the two values of the whole sample, from which both u come, and one of the
//! two D: each lies between sums of the ends of |a|, and their difference between sums of the ends of |a| - |b|. For given
//! u the difference is monotone in both D; along an edge, where `D_a - D_b` is fixed, it can turn where
//! `(1 + D_a)^2 / (1 + D_b)^2` is `u_a / u_b`. For given D it is linear in both u.
//!
//! Coverage is at least the level, for large samples, and near 1 where groups are many and nearly equal. Of gaps: written
//! again with numpy 2.4.6, 97 to 100 % of 300 draws of five cases as those of the tests contain the difference, at 1.2 to 2.1
//! times the width of the percentile intervals of the replicates, of which 86 to 100 % contain it.

#[cfg(test)]
mod tests;

use super::region::{Interval, Region};
use super::{Signed, Simultaneous, folded, pairs};
use crate::evaluation::evaluated::Sampled;
use crate::evaluation::report::Difference;
use crate::evaluation::summary::difference;
use crate::fairness::{Comparison, EquityScaling};
use crate::{Direction, EvaluationSettings};

/// Halvings of the interval in which a p value lies: more than the digits of the result.
const N_HALVINGS: usize = 40;

/// The groups of one model and what is said of them.
pub(crate) struct OfModel {
    /// The number that compares the groups.
    pub(crate) compared: Sampled,
    /// Those with a value; the same groups in both models.
    pub(crate) groups: Vec<Sampled>,
    pub(crate) overall: Sampled,
}

/// A comparison of the groups in one model minus that in another: with interval and p value.
pub(crate) fn difference_of_models(
    comparison: Comparison,
    direction: Direction,
    [first, second]: [&OfModel; 2],
    settings: &EvaluationSettings,
) -> Difference {
    let found = difference(&first.compared, &second.compared, settings);
    let Some(value) = found.value.filter(|_| !first.compared.replicates.is_empty()) else { return found };
    let Some(models) = Models::new(comparison, direction, [first, second]) else {
        let no_logarithm = || "no interval: a group has a value of 0 or less, which has no logarithm".to_owned();
        let undefined = found.undefined.clone().or_else(|| Some(no_logarithm()));
        return Difference { undefined, lower: None, upper: None, p_value: None, caution: None, ..found };
    };
    let (lower, upper) = models.difference(settings.level);
    let resolution = 1.0 / (models.simultaneous.n_replicates() + 1) as f64;
    let p_value = (resolution * (1.0 + 1e-9) < 1.0 - settings.level).then(|| {
        let contains_zero = |level| contains_zero(models.difference(level));
        if value.abs() <= 0.0 { 1.0 } else { p_by_bisection(contains_zero).max(resolution) }
    });
    Difference { undefined: None, lower: Some(lower), upper: Some(upper), p_value, ..found }
}

/// The largest error level 1 - `level` at which the interval of `level` contains 0.
pub(crate) fn p_by_bisection(contains_zero: impl Fn(f64) -> bool) -> f64 {
    let (mut contained, mut excluded) = (0.0, 1.0);
    for _ in 0..N_HALVINGS {
        let error = f64::midpoint(contained, excluded);
        if contains_zero(1.0 - error) {
            contained = error;
        } else {
            excluded = error;
        }
    }
    f64::midpoint(contained, excluded)
}

fn contains_zero((lower, upper): Interval) -> bool {
    lower <= 0.0 && upper >= 0.0
}

/// How a comparison follows from its numbers.
#[derive(Clone, Copy)]
enum Form {
    /// The largest `size` of a number.
    Largest(fn(f64) -> f64),
    /// Minus the largest `size` of a number.
    MinusLargest(fn(f64) -> f64),
    /// The last number is the whole sample, the others are the groups minus it.
    EquityScaling(EquityScaling, Direction),
}

impl Form {
    fn of(comparison: Comparison, direction: Direction) -> Self {
        match (comparison, direction) {
            (Comparison::Gap | Comparison::GapToOverall, _) => Self::Largest(f64::abs),
            (Comparison::Ratio | Comparison::RatioToOverall, _) => Self::MinusLargest(|a| -(-a.abs()).exp()),
            (Comparison::Worst, Direction::LowerIsBetter) => Self::Largest(|a| a),
            (Comparison::Worst, Direction::HigherIsBetter) => Self::MinusLargest(|a| -a),
            (Comparison::EquityScaling(form), _) => Self::EquityScaling(form, direction),
        }
    }
}

impl OfModel {
    /// `None` where one does not exist.
    fn numbers(&self, comparison: Comparison) -> Option<Vec<Signed>> {
        let groups = self.groups.iter().map(Signed::of).collect::<Option<Vec<Signed>>>()?;
        let logarithms = || groups.iter().map(Signed::ln).collect::<Option<Vec<Signed>>>();
        let from =
            |whole: &Signed, groups: &[Signed]| groups.iter().map(|group| group.minus(whole)).collect::<Vec<_>>();
        let overall = || Signed::of(&self.overall);
        Some(match comparison {
            Comparison::Gap => pairs(&groups),
            Comparison::GapToOverall => from(&overall()?, &groups),
            Comparison::Ratio => pairs(&logarithms()?),
            Comparison::RatioToOverall => from(&overall()?.ln()?, &logarithms()?),
            Comparison::Worst => groups,
            Comparison::EquityScaling(_) => {
                let overall = overall()?;
                from(&overall, &groups).into_iter().chain([overall]).collect()
            }
        })
    }
}

/// The numbers behind a comparison in both models, and their changes.
struct Models {
    /// All of the first model, then of the second, then the changes.
    numbers: Vec<Signed>,
    simultaneous: Simultaneous,
    form: Form,
}

impl Models {
    /// `None` without replicates, or where a number does not exist.
    fn new(comparison: Comparison, direction: Direction, [first, second]: [&OfModel; 2]) -> Option<Self> {
        let (mut numbers, others) = (first.numbers(comparison)?, second.numbers(comparison)?);
        if numbers.len() != others.len() {
            return None;
        }
        let changes: Vec<Signed> = numbers.iter().zip(&others).map(|(own, other)| own.minus(other)).collect();
        numbers.extend(others.into_iter().chain(changes));
        let form = Form::of(comparison, direction);
        Some(Self { simultaneous: Simultaneous::new(&numbers)?, numbers, form })
    }

    /// The interval of the difference.
    fn difference(&self, level: f64) -> Interval {
        let regions = self.regions(level);
        match self.form {
            Form::Largest(size) => difference_of_largest(&regions, size),
            Form::MinusLargest(size) => {
                let (lower, upper) = difference_of_largest(&regions, size);
                (-upper, -lower)
            }
            Form::EquityScaling(form, direction) => {
                let Some((overall, distances)) = regions.split_last() else { return (f64::NAN, f64::NAN) };
                difference_of_scaled(*overall, distances, |overall| form.utility(overall, direction))
            }
        }
    }

    /// What each number may be in both models.
    fn regions(&self, level: f64) -> Vec<Region> {
        let intervals = self.simultaneous.intervals(&self.numbers, level);
        let n = intervals.len() / 3;
        let region = |k: usize| Region {
            a: intervals[k],
            b: intervals[n + k],
            change: intervals[2 * n + k],
            estimates: [self.numbers[k].value, self.numbers[n + k].value],
        };
        (0..n).map(region).collect()
    }
}

/// The largest size of a minus the largest size of b.
fn difference_of_largest(regions: &[Region], size: fn(f64) -> f64) -> Interval {
    let of = |region: &Region| region.range(&[], |[a, b]| size(a) - size(b));
    let of_a = can_be_largest(regions.iter().map(|region| region.a), size);
    let of_b = can_be_largest(regions.iter().map(|region| region.b), size);
    let upper = of_a.map(|k| of(&regions[k]).1).fold(f64::NEG_INFINITY, f64::max);
    let lower = of_b.map(|k| of(&regions[k]).0).fold(f64::INFINITY, f64::min);
    (lower, upper)
}

/// The numbers whose size may be the largest of all.
fn can_be_largest(intervals: impl Iterator<Item = Interval>, size: fn(f64) -> f64) -> impl Iterator<Item = usize> {
    // Sizes are monotone on each side of 0.
    let sizes = |(lower, upper): Interval| {
        let zero = (lower <= 0.0 && upper >= 0.0).then_some(0.0);
        let ends = [lower, upper].into_iter().chain(zero).map(size);
        ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), size| (low.min(size), high.max(size)))
    };
    let sizes: Vec<Interval> = intervals.map(sizes).collect();
    let least = sizes.iter().map(|(lower, _)| *lower).fold(f64::NEG_INFINITY, f64::max);
    sizes.into_iter().enumerate().filter(move |(_, (_, upper))| *upper >= least).map(|(k, _)| k)
}

/// u / (1 + D) of a minus that of b, with u from the whole sample and D the sum of the sizes of `distances`.
fn difference_of_scaled(overall: Region, distances: &[Region], utility: impl Fn(f64) -> f64) -> Interval {
    let sum = |ends: &dyn Fn(&Region) -> Interval| -> Interval {
        distances.iter().map(ends).fold((0.0, 0.0), |(low, high), (lower, upper)| (low + lower, high + upper))
    };
    let estimate = |model: usize| distances.iter().map(|distance| distance.estimates[model].abs()).sum::<f64>();
    let distance = Region {
        a: sum(&|of| folded(of.a)),
        b: sum(&|of| folded(of.b)),
        change: sum(&|of| of.range(&[], |[a, b]| a.abs() - b.abs())),
        estimates: [estimate(0), estimate(1)],
    };
    let of_utilities = |[own, other]: [f64; 2]| {
        // Where the difference may turn along an edge of the change: (1 + D_a) = root (1 + D_b).
        let root = (own / other).sqrt();
        let turns = if root.is_finite() { vec![[1.0, -root, root - 1.0]] } else { Vec::new() };
        distance.range(&turns, |[a, b]| own / (1.0 + a) - other / (1.0 + b))
    };
    let corners = overall.corners(&[]).into_iter().map(|corner| of_utilities(corner.map(&utility)));
    corners.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (lower, upper)| (low.min(lower), high.max(upper)))
}
