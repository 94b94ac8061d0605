//! Averages over time.

/// Time average of a curve given at `times`: trapezoids divided by the range; the value itself for a single time.
///
/// Both slices have the same length, at least 1, and `times` increases strictly.
pub(crate) fn time_average(times: &[f64], values: &[f64]) -> f64 {
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
}
