//! The interval of equity scaling u / (1 + D).
//!
//! D adds absolute distances, which noise makes positive: value and replicates of equal groups lie below the true value,
//! and the quantiles of the replicates contain it in 8 to 16 of 100 cohorts with four groups. D is a seminorm, so that the
//! distance of its estimate from its true value is at most D of the errors of the group values. The interval takes u and
//! D from the region `|u - true u| <= c a` and `D(errors) <= c b`, which contains the truth with the probability of the
//! level: a and b are the quantiles of both sides in the replicates, c is the quantile of the larger of the two quotients.
//! Coverage is at least the level, for large samples, and close to 1 where groups are few and differ.

use super::{Signed, deviations};
use crate::Direction;
use crate::fairness::EquityScaling;
use crate::resampling::bootstrap::quantile;

/// `None` without groups or replicates, or if an end is not a finite number. O(groups x replicates).
pub(super) fn interval(
    form: EquityScaling,
    groups: &[Signed],
    overall: &Signed,
    direction: Direction,
    level: f64,
) -> Option<(f64, f64)> {
    if groups.is_empty() {
        return None;
    }
    let errors = deviations(&groups.iter().chain([overall]).collect::<Vec<_>>())?;
    let (of_overall, of_groups) = errors.split_last()?;
    let replicate = |k: usize| {
        let of_groups: Vec<f64> = of_groups.iter().map(|errors| errors[k]).collect();
        (of_overall[k].abs(), form.distance(&of_groups, of_overall[k]))
    };
    let (utility, distance) = radii(&(0..of_overall.len()).map(replicate).collect::<Vec<_>>(), level);

    let values: Vec<f64> = groups.iter().map(|group| group.value).collect();
    let found = form.distance(&values, overall.value);
    let (smallest, largest) = ((found - distance).max(0.0), found + distance);
    let (first, second) = overall.within_replicates((overall.value - utility, overall.value + utility));
    let corners = [first, second]
        .into_iter()
        .flat_map(|overall| [smallest, largest].map(|distance| form.utility(overall, direction) / (1.0 + distance)));
    let ends = corners.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| (low.min(end), high.max(end)));
    (ends.0.is_finite() && ends.1.is_finite()).then_some(ends)
}

/// The two radii that both errors of a replicate keep in a share `level` of the replicates.
fn radii(errors: &[(f64, f64)], level: f64) -> (f64, f64) {
    let (first, second): (Vec<f64>, Vec<f64>) = errors.iter().copied().unzip();
    let (first, second) = (ordered_quantile(first, level), ordered_quantile(second, level));
    let quotient = |error: f64, scale: f64| if scale > 0.0 { error / scale } else { 0.0 };
    let larger = errors.iter().map(|error| quotient(error.0, first).max(quotient(error.1, second))).collect();
    let c = ordered_quantile(larger, level);
    (c * first, c * second)
}

fn ordered_quantile(mut numbers: Vec<f64>, level: f64) -> f64 {
    numbers.sort_by(f64::total_cmp);
    quantile(&numbers, level)
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;
    use crate::Direction::{HigherIsBetter, LowerIsBetter};

    fn number(value: f64, errors: &[f64]) -> Signed {
        Signed { value, replicates: errors.iter().map(|error| Some(value + error)).collect(), is_distance: false }
    }

    /// Replicates with one error each, so that all quantiles are that error and c is 1.
    fn constant(form: EquityScaling, direction: Direction) -> (f64, f64) {
        let groups = [number(0.7, &[0.02; 3]), number(0.9, &[-0.03; 3])];
        interval(form, &groups, &number(0.8, &[0.01; 3]), direction, 0.95).unwrap()
    }

    #[test]
    fn the_ends_are_the_corners_of_utility_and_distance() {
        // D of the values 0.1 + 0.1, of the errors |0.01 - 0.02| + |0.01 + 0.03| = 0.05; overall 0.8 to 0.81 (replicates).
        let (lower, upper) = constant(EquityScaling::FairTte, HigherIsBetter);
        assert_relative_eq!(lower, 0.8 / 1.25, max_relative = 1e-12);
        assert_relative_eq!(upper, 0.81 / 1.15, max_relative = 1e-12);
        // Where lower is better the utility is 1 - overall: 0.19 to 0.2.
        let (lower, upper) = constant(EquityScaling::FairTte, LowerIsBetter);
        assert_relative_eq!(lower, 0.19 / 1.25, max_relative = 1e-12);
        assert_relative_eq!(upper, 0.2 / 1.15, max_relative = 1e-12);
        assert_relative_eq!(constant(EquityScaling::FairSeg, LowerIsBetter).0, 0.8 / 1.25, max_relative = 1e-12);
        // Standard deviation of 0.7 and 0.9, and of the errors 0.02 and -0.03.
        let (value, error) = (0.2 / 2.0_f64.sqrt(), 0.05 / 2.0_f64.sqrt());
        let (lower, upper) = constant(EquityScaling::FairSegDeviation, HigherIsBetter);
        assert_relative_eq!(lower, 0.8 / (1.0 + value + error), max_relative = 1e-12);
        assert_relative_eq!(upper, 0.81 / (1.0 + value - error), max_relative = 1e-12);
    }

    #[test]
    fn the_utility_of_a_distance_may_lie_below_its_replicates() {
        let of = |is_distance: bool| {
            let groups = [number(0.1, &[0.02; 3]), number(0.2, &[0.02; 3])];
            let overall = Signed { is_distance, ..number(0.15, &[0.03; 3]) };
            interval(EquityScaling::FairSeg, &groups, &overall, LowerIsBetter, 0.95).unwrap()
        };
        // Off by 0.03 on either side; all replicates lie at 0.18. D of the values is 0.1, of the errors 0.02.
        assert_relative_eq!(of(true).0, 0.12 / 1.12, max_relative = 1e-12);
        assert_relative_eq!(of(false).0, 0.15 / 1.12, max_relative = 1e-12);
        assert_relative_eq!(of(true).1, of(false).1, max_relative = 1e-12);
    }

    #[test]
    fn a_distance_that_errors_explain_may_be_none_at_all() {
        let groups = [number(0.79, &[0.02; 3]), number(0.81, &[-0.03; 3])];
        let (lower, upper) =
            interval(EquityScaling::FairTte, &groups, &number(0.8, &[0.0; 3]), HigherIsBetter, 0.95).unwrap();
        assert_relative_eq!(upper, 0.8, max_relative = 1e-12);
        assert_relative_eq!(lower, 0.8 / 1.07, max_relative = 1e-12);
    }

    #[test]
    fn both_errors_lie_within_their_radii_in_the_share_of_the_level() {
        // 1,000 replicates whose two errors are never large together.
        let errors: Vec<(f64, f64)> = (0..1_000).map(|k| (f64::from(k), f64::from((k + 500) % 1_000) * 0.1)).collect();
        let (first, second) = radii(&errors, 0.9);
        let inside = errors.iter().filter(|error| error.0 <= first && error.1 <= second).count();
        assert!((895..=905).contains(&inside), "{inside}");
        assert_relative_eq!(second, first * 0.1, max_relative = 1e-12);
        assert_eq!(radii(&[(0.0, 0.0), (0.0, 2.0)], 0.5).0, 0.0);
    }

    #[test]
    fn without_groups_or_complete_replicates_there_is_none() {
        let none = Signed { value: 0.5, replicates: vec![None, Some(0.5)], is_distance: false };
        let other = Signed { value: 0.5, replicates: vec![Some(0.5), None], is_distance: false };
        let of = |groups: &[Signed], overall: &Signed| {
            interval(EquityScaling::FairTte, groups, overall, HigherIsBetter, 0.95)
        };
        assert_eq!(of(&[], &number(0.5, &[0.0])), None);
        assert_eq!(of(&[none], &other), None);
    }
}
