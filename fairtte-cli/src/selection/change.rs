//! Changes from one row to another in the test part, with intervals and p values.
//!
//! A draw has subjects and trainings: in draw b both rows have the model that their rule chooses among the trainings of the
//! draw, scored on its subjects. So an interval shows how results vary with other test subjects and other training
//! seeds. The gap max - min is not compared: it is not differentiable where groups are equal, and a bootstrap interval
//! of it is not valid there. The signed difference of two fixed groups has no such point.

use fairtte_metrics::evaluation::SampledValue;
use fairtte_metrics::resampling::{IntervalMethod, Replicated, paired_difference, relative_change};
use fairtte_metrics::statistics::{Adjustment, adjust_p_values};

use super::verdict::{Change, Role, Standing};
use crate::CliError;

/// Training seeds that a strategy needs before a change is called different.
const FEWEST_SEEDS: usize = 2;

/// The change of a metric (`relative`: in percent too) or of a signed difference, `first` minus `second`. The intervals are
/// percentile intervals: draws of trainings have no jackknife, which `BCa` would need.
pub(crate) fn change(first: &SampledValue, second: &SampledValue, level: f64, relative: bool) -> Change {
    let difference = first.minus(second);
    let undefined_replicates = difference.replicates.iter().filter(|value| value.is_none()).count();
    let mut found = Change { undefined_replicates, ..Change::default() };
    let (first_value, second_value) = match (&first.value, &second.value) {
        (Ok(first), Ok(second)) => (*first, *second),
        (Err(reason), _) | (_, Err(reason)) => return Change { undefined: Some(reason.to_string()), ..found },
    };
    found.value = Some(first_value - second_value);
    if relative && second_value > 0.0 {
        found.percent = Some(100.0 * (first_value / second_value - 1.0));
    }
    if difference.replicates.is_empty() {
        return found;
    }
    let own = Replicated::new(first_value, &first.replicates);
    let other = Replicated::new(second_value, &second.replicates);
    match paired_difference(&own, &other, level, IntervalMethod::Percentile) {
        Ok(paired) => {
            (found.lower, found.upper) = (Some(paired.interval.lower), Some(paired.interval.upper));
            found.p_value = paired.p_value;
        }
        Err(error) => found.undefined = Some(error.to_string()),
    }
    if found.percent.is_some()
        && let Ok((_, interval)) = relative_change(&own, &other, level, IntervalMethod::Percentile)
    {
        (found.percent_lower, found.percent_upper) = (Some(100.0 * interval.lower), Some(100.0 * interval.upper));
    }
    found
}

/// Holm's adjustment over all changes of the rows, metric and difference together.
///
/// A strategy is called different only if it and the control were trained with two seeds or more: two trainings of the same
/// strategy are different models, and a large test part is enough to distinguish them.
pub(super) fn adjust(rows: &mut [Standing], level: f64) -> Result<(), CliError> {
    let control = rows.iter().find(|row| row.role == Role::Control).or(rows.first());
    let n_seeds_of_control = control.map_or(0, |row| row.seeds.len());
    let mut changes: Vec<(&mut Change, bool)> = Vec::new();
    for row in rows.iter_mut() {
        let has_seeds = row.seeds.len().min(n_seeds_of_control) >= FEWEST_SEEDS;
        let of_row = row.chosen.iter_mut().flat_map(|chosen| [&mut chosen.change, &mut chosen.difference_change]);
        let with_p = of_row.flatten().filter(|change| change.p_value.is_some());
        changes.extend(with_p.map(|change| (change, has_seeds)));
    }
    let p_values: Vec<f64> = changes.iter().filter_map(|(change, _)| change.p_value).collect();
    let adjusted = adjust_p_values(&p_values, Adjustment::Holm)?;
    for ((change, has_seeds), p) in changes.iter_mut().zip(adjusted) {
        change.p_holm = Some(p);
        change.different = *has_seeds && p <= 1.0 - level;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use fairtte_metrics::MetricError;

    use super::super::verdict::{Chosen, OfSeed, OverSeeds, Scores};
    use super::*;

    fn sampled(value: f64, replicates: &[f64]) -> SampledValue {
        SampledValue { value: Ok(value), replicates: replicates.iter().copied().map(Some).collect() }
    }

    #[test]
    fn a_metric_changes_by_the_ratio_and_a_difference_in_its_own_units() {
        let (own, other) = (sampled(0.75, &[0.5, 1.0]), sampled(0.5, &[0.5, 0.5]));
        let found = change(&own, &other, 0.5, true);
        assert_eq!((found.value, found.percent), (Some(0.25), Some(50.0)));
        // Differences 0 and 0.5, ratios 1 and 2: the quartiles.
        assert_eq!((found.lower, found.upper), (Some(0.125), Some(0.375)));
        assert_eq!((found.percent_lower, found.percent_upper), (Some(25.0), Some(75.0)));
        // The smallest p value of two replicates: the smaller difference is 0.
        assert_eq!(found.p_value, Some(1.0 / 3.0));
        let of_groups = change(&own, &other, 0.5, false);
        assert_eq!((of_groups.value, of_groups.percent, of_groups.percent_lower), (Some(0.25), None, None));
    }

    #[test]
    fn what_is_undefined_is_counted_and_named() {
        let own = SampledValue { value: Ok(0.5), replicates: vec![Some(0.5), None, Some(0.75)] };
        let found = change(&own, &sampled(0.25, &[0.25; 3]), 0.95, false);
        assert_eq!((found.value, found.undefined_replicates), (Some(0.25), 1));
        let none = SampledValue { value: Err(MetricError::NoSamples), replicates: vec![None; 3] };
        let found = change(&own, &none, 0.95, false);
        assert_eq!((found.value, found.undefined), (None, Some(MetricError::NoSamples.to_string())));
        let without_draws = change(&sampled(0.5, &[]), &sampled(0.25, &[]), 0.95, true);
        assert_eq!((without_draws.percent, without_draws.p_value), (Some(100.0), None));
        let from_nothing = change(&sampled(0.5, &[]), &sampled(0.0, &[]), 0.95, true);
        assert_eq!((from_nothing.value, from_nothing.percent), (Some(0.5), None), "no percent of 0");
    }

    fn row(n_seeds: u64, p_values: [Option<f64>; 2]) -> Standing {
        let [change, difference_change] = p_values.map(|p_value| Some(Change { p_value, ..Change::default() }));
        let chosen = Chosen {
            run: String::new(),
            epoch: 1,
            weights: String::new(),
            kept_by: String::new(),
            validation: Scores::default(),
            test: Scores::default(),
            weighted: None,
            change,
            difference_change,
            change_from_base: None,
            difference_change_from_base: None,
        };
        Standing {
            strategy: String::new(),
            role: Role::Strategy,
            n_candidates: 1,
            none_because: None,
            chosen: Some(chosen),
            seeds: (0..n_seeds)
                .map(|seed| OfSeed { seed, run: None, weights: None, test: Scores::default() })
                .collect(),
            over_seeds: OverSeeds::default(),
        }
    }

    // Holm over four p values: 4 x 0.0125, 3 x 0.02, then no smaller than before.
    #[test]
    fn both_questions_of_a_block_are_one_family() {
        let mut rows = [row(2, [Some(0.0125), Some(0.5)]), row(2, [None, None]), row(2, [Some(0.02), Some(0.04)])];
        adjust(&mut rows, 0.95).unwrap();
        let of = |row: &Standing| {
            let chosen = row.chosen.as_ref().unwrap();
            [&chosen.change, &chosen.difference_change].map(|change| {
                let change = change.as_ref().unwrap();
                (change.p_holm, change.different)
            })
        };
        assert_eq!(of(&rows[0]), [(Some(0.05), true), (Some(0.5), false)]);
        assert_eq!(of(&rows[1]), [(None, false), (None, false)]);
        assert_eq!(of(&rows[2]), [(Some(0.06), false), (Some(0.08), false)]);
    }

    // `febs` with gamma 0 and one seed, another than that of `erm`: 19 of 45 changes of a metric on SUPPORT had p <= 0.05
    // after the adjustment.
    #[test]
    fn one_training_is_no_strategy() {
        let is_different = |n_seeds: [u64; 2]| {
            let mut rows = n_seeds.map(|n| row(n, [Some(0.001), None]));
            adjust(&mut rows, 0.95).unwrap();
            rows[1].chosen.as_ref().unwrap().change.as_ref().unwrap().different
        };
        // The seeds of the row of comparison count, wherever it is in the list.
        let mut rows = [row(1, [None, None]), row(2, [None, None]), row(2, [Some(0.001), None])];
        rows[1].role = Role::Control;
        adjust(&mut rows, 0.95).unwrap();
        assert!(rows[2].chosen.as_ref().unwrap().change.as_ref().unwrap().different);
        assert!(is_different([2, 2]));
        assert!(!is_different([2, 1]) && !is_different([1, 2]));
    }
}
