//! Averages over time.

use std::borrow::Cow;

/// Time average of a curve given at `times`: trapezoids divided by the range; the value itself for a single time.
///
/// Both slices have the same length, at least 1, and `times` increases strictly.
pub(crate) fn time_average(times: &[f64], values: &[f64]) -> f64 {
    let times = &*in_safe_range(times);
    let range = times[times.len() - 1] - times[0];
    if range <= 0.0 {
        return values[0];
    }
    let average = trapezoid_weights(times).zip(values).map(|(weight, value)| weight * value).sum::<f64>() / range;
    // An average lies between the extremes; rounding must not carry it beyond them.
    let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
    average.clamp(low, high)
}

/// The weight that the trapezoid rule gives to the value at each time.
pub(crate) fn trapezoid_weights(times: &[f64]) -> impl Iterator<Item = f64> {
    let last = times.len() - 1;
    (0..times.len()).map(move |k| 0.5 * (times[(k + 1).min(last)] - times[k.saturating_sub(1)]))
}

/// The times in another unit if their range is so short that half of it would be rounded to 0, or so long that a
/// weighted sum over it would overflow. Averages do not depend on the unit, and a power of 2 leaves every digit as it is.
pub(crate) fn in_safe_range(times: &[f64]) -> Cow<'_, [f64]> {
    const SHORT: f64 = 1e-150;
    const LONG: f64 = 1e150;
    let range = times[times.len() - 1] - times[0];
    let unit = if range > LONG {
        2.0_f64.powi(-500)
    } else if range > 0.0 && range < SHORT {
        2.0_f64.powi(500)
    } else {
        return Cow::Borrowed(times);
    };
    times.iter().map(|time| time * unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_averages_to_its_middle_on_any_grid() {
        assert_eq!(time_average(&[1.0, 1.5, 3.0, 5.0], &[2.0, 3.0, 6.0, 10.0]), 6.0);
        assert_eq!(time_average(&[4.0], &[0.25]), 0.25);
    }

    #[test]
    fn a_constant_averages_to_itself_exactly() {
        let times: Vec<f64> = (0..50).map(|k| 0.1 + f64::from(k * k) / 7.0).collect();
        assert_eq!(time_average(&times, &[1.0; 50]), 1.0);
    }

    #[test]
    fn the_shortest_and_the_longest_range_average_like_any_other() {
        let least = f64::from_bits(1);
        assert_eq!(time_average(&[0.0, least], &[0.25, 0.75]), 0.5);
        assert_eq!(time_average(&[0.0, least, 2.0 * least], &[0.0, 1.0, 0.0]), 0.5);
        assert_eq!(time_average(&[0.0, f64::MAX / 2.0, f64::MAX], &[8.0, 16.0, 8.0]), 12.0);
    }
}
