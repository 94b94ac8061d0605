//! Changes from one row to another in the test part, with intervals and p values.
//!
//! A draw has subjects and trainings: in draw b both rows have the model that their rule chooses among the trainings of the
//! draw, scored on its subjects. So an interval says what other test subjects and other training seeds would have given. The
//! gap max - min is not compared: it has a kink where groups are equal, and there a bootstrap interval of it is not valid.
//! The signed difference of two fixed groups has none.

use fairtte_metrics::{
    Adjustment, IntervalMethod, Replicated, SampledValue, adjust_p_values, paired_difference, relative_change,
};

use super::verdict::{Change, Standing};
use crate::CliError;

/// The change of a metric (`relative`: in percent too) or of a signed difference, `first` minus `second`. The intervals are
/// percentile intervals: draws of trainings have no jackknife, which `BCa` would need.
pub(super) fn change(first: &SampledValue, second: &SampledValue, level: f64, relative: bool) -> Change {
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
            found.p_value = Some(paired.p_value);
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
pub(super) fn adjust(rows: &mut [Standing], level: f64) -> Result<(), CliError> {
    let mut changes: Vec<&mut Change> = rows
        .iter_mut()
        .filter_map(|row| row.chosen.as_mut())
        .flat_map(|chosen| [chosen.change.as_mut(), chosen.difference_change.as_mut()])
        .flatten()
        .filter(|change| change.p_value.is_some())
        .collect();
    let p_values: Vec<f64> = changes.iter().filter_map(|change| change.p_value).collect();
    let adjusted = adjust_p_values(&p_values, Adjustment::Holm)?;
    for (change, p) in changes.iter_mut().zip(adjusted) {
        change.p_holm = Some(p);
        change.different = p <= 1.0 - level;
    }
    Ok(())
}
