//! How a curve that is known at some times is averaged over time.
//!
//! ```text
//! average = sum over k of  weight_k * value_k
//! ```
//!
//! Every rule is linear, so its weights depend on the times alone. The two Simpson rules are those of `SciPy`, because
//! published integrated scores depend on which one was used: with an even number of points (an odd number of intervals)
//! `SciPy` before 1.11 averages the two ways of giving one end interval to a trapezoid, `SciPy` 1.11 and later
//! integrates the last interval with the parabola through the last three points (Cartwright 2017, "Simpson's rule
//! cumulative integration with MS Excel and irregularly-spaced data", J. Math. Sci. Math. Educ. 12(2), 1-9).
//! Golden values: `SciPy` 1.17.1 `simpson`; the older rule is checked against worked examples.

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::curves::check_grid;
use crate::scores::integrate::{in_safe_range, trapezoid_weights};

/// A rule that averages a curve over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntegrationRule {
    /// Trapezoids, divided by the range of the times.
    #[default]
    Trapezoid,
    /// Parabolas, divided by the range; `scipy.integrate.simpson` since `SciPy` 1.11.
    Simpson,
    /// Parabolas, divided by the range; `scipy.integrate.simps(even="avg")` before `SciPy` 1.11.
    SimpsonAveraged,
    /// Every time counts the same, however far apart (`mlr3proba` `method = 1`); for scores that leave samples out,
    /// every pair of sample and time counts the same.
    PlainMean,
    /// A step function that is 0 until the first time and keeps each value until the next, divided by the last time
    /// (the `IBS` of R `riskRegression`).
    LeftStepsFromZero,
}

impl IntegrationRule {
    /// The average of `values` given at `times`, both of the same length.
    ///
    /// ```
    /// use fairtte_metrics::scores::IntegrationRule;
    ///
    /// // t^2 on [0, 2]: the integral is 8/3, and parabolas are exact.
    /// let (times, values) = ([0.0, 1.0, 2.0], [0.0, 1.0, 4.0]);
    /// assert!((IntegrationRule::Simpson.average(&times, &values)? - 4.0 / 3.0).abs() < 1e-15);
    /// assert_eq!(IntegrationRule::Trapezoid.average(&times, &values)?, 1.5);
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    ///
    /// # Errors
    /// [`MetricError::EmptyGrid`] or [`MetricError::InvalidGrid`] for the times, [`MetricError::LengthMismatch`] if
    /// there is not one value per time, [`MetricError::TooFewTimes`] for a single time under a rule that needs two,
    /// [`MetricError::EmptyWindow`] for steps from zero that end at time 0, [`MetricError::NotFinite`] if a value is not
    /// finite or the sum overflows.
    pub fn average(self, times: &[f64], values: &[f64]) -> Result<f64, MetricError> {
        if values.len() != times.len() {
            let (found, expected) = (values.len(), times.len());
            return Err(MetricError::LengthMismatch { what: "values over time", found, expected });
        }
        let value = self.weights(times)?.iter().zip(values).map(|(weight, value)| weight * value).sum::<f64>();
        // Parabolas through times at very different distances have weights beyond the range of `f64`.
        if value.is_finite() { Ok(value) } else { Err(MetricError::NotFinite { what: "average over time", value }) }
    }

    /// The weight of each time; they sum to 1 unless the rule starts at zero.
    pub(crate) fn weights(self, times: &[f64]) -> Result<Vec<f64>, MetricError> {
        self.check(times)?;
        let times = &*in_safe_range(times);
        let (n, last) = (times.len(), times[times.len() - 1]);
        let range = last - times[0];
        let (weights, divisor) = match self {
            Self::Trapezoid => (trapezoid_weights(times).collect(), range),
            Self::Simpson => (simpson(times), range),
            Self::SimpsonAveraged => (simpson_averaged(times), range),
            Self::PlainMean => (vec![1.0; n], n as f64),
            Self::LeftStepsFromZero => (widths(times), last),
        };
        Ok(weights.into_iter().map(|weight| weight / divisor).collect())
    }

    /// Whether the rule can average over these times.
    pub(crate) fn check(self, times: &[f64]) -> Result<(), MetricError> {
        check_grid(times)?;
        match self {
            Self::LeftStepsFromZero if times[times.len() - 1] <= 0.0 => {
                Err(MetricError::EmptyWindow { lower: 0.0, upper: 0.0 })
            }
            Self::PlainMean | Self::LeftStepsFromZero => Ok(()),
            _ if times.len() < 2 => Err(MetricError::TooFewTimes { n_times: times.len() }),
            _ => Ok(()),
        }
    }
}

/// The distance to the next time; 0 for the last.
fn widths(times: &[f64]) -> Vec<f64> {
    let mut widths: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    widths.push(0.0);
    widths
}

/// Adds the weights of parabolas through points `first`, `first + 1`, `first + 2`, then the next three, as far as
/// whole pairs of intervals reach before `end` (exclusive).
fn add_parabolas(weights: &mut [f64], times: &[f64], first: usize, end: usize) {
    let mut k = first;
    while k + 2 < end {
        let (h0, h1) = (times[k + 1] - times[k], times[k + 2] - times[k + 1]);
        let sixth = (h0 + h1) / 6.0;
        weights[k] += sixth * (2.0 - h1 / h0);
        weights[k + 1] += sixth * (2.0 + h0 / h1 + h1 / h0);
        weights[k + 2] += sixth * (2.0 - h0 / h1);
        k += 2;
    }
}

fn simpson(times: &[f64]) -> Vec<f64> {
    let n = times.len();
    if n == 2 {
        return trapezoid_weights(times).collect();
    }
    let mut weights = vec![0.0; n];
    if n % 2 == 1 {
        add_parabolas(&mut weights, times, 0, n);
        return weights;
    }
    add_parabolas(&mut weights, times, 0, n - 1);
    // The last interval under the parabola through the last three points.
    let last = times[n - 1] - times[n - 2];
    let ratio = last / (times[n - 2] - times[n - 3]);
    weights[n - 1] += last * (2.0 * ratio + 3.0) / (6.0 * (1.0 + ratio));
    weights[n - 2] += last * (ratio + 3.0) / 6.0;
    weights[n - 3] -= last * ratio * (ratio / (6.0 * (1.0 + ratio)));
    weights
}

fn simpson_averaged(times: &[f64]) -> Vec<f64> {
    let n = times.len();
    if n % 2 == 1 {
        return simpson(times);
    }
    let mut weights = vec![0.0; n];
    add_parabolas(&mut weights, times, 0, n - 1);
    add_parabolas(&mut weights, times, 1, n);
    for end in [0, n - 2] {
        let half = 0.5 * (times[end + 1] - times[end]);
        weights[end] += half;
        weights[end + 1] += half;
    }
    weights.into_iter().map(|weight| 0.5 * weight).collect()
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    #[test]
    fn simpson_matches_scipy_for_odd_and_even_numbers_of_points() {
        // scipy 1.17.1: simpson([1, 4, 2, 7, 3], x=[0, 1, 2.5, 3, 5]) and the same without the last point.
        let times = [0.0, 1.0, 2.5, 3.0, 5.0];
        let values = [1.0, 4.0, 2.0, 7.0, 3.0];
        let odd = IntegrationRule::Simpson.average(&times, &values).unwrap();
        assert_abs_diff_eq!(odd * 5.0, 27.013_888_888_888_893, epsilon = 1e-13);
        let even = IntegrationRule::Simpson.average(&times[..4], &values[..4]).unwrap();
        assert_abs_diff_eq!(even * 3.0, 10.395_833_333_333_336, epsilon = 1e-13);
    }

    #[test]
    fn both_simpson_rules_are_exact_for_a_straight_line_and_the_new_one_for_a_parabola() {
        for n in 2..9_u32 {
            let times: Vec<f64> = (0..n).map(|k| f64::from(k) + 0.1 * f64::from(k * k)).collect();
            let last = times[times.len() - 1];
            for rule in [IntegrationRule::Simpson, IntegrationRule::SimpsonAveraged] {
                assert_abs_diff_eq!(rule.average(&times, &times).unwrap(), last / 2.0, epsilon = 1e-12);
            }
            if n > 2 {
                let squares: Vec<f64> = times.iter().map(|t| t * t).collect();
                let found = IntegrationRule::Simpson.average(&times, &squares).unwrap();
                assert_abs_diff_eq!(found, last * last / 3.0, epsilon = 1e-10);
            }
        }
    }

    #[test]
    fn the_averaged_rule_gives_each_end_interval_to_a_trapezoid_once() {
        // Values 0, 0, 0, 6 at 0..3: trapezoid at the end gives 3, parabola at the end 2; their mean is 2.5.
        let found = IntegrationRule::SimpsonAveraged.average(&[0.0, 1.0, 2.0, 3.0], &[0.0, 0.0, 0.0, 6.0]).unwrap();
        assert_abs_diff_eq!(found * 3.0, 2.5, epsilon = 1e-15);
    }

    #[test]
    fn steps_from_zero_leave_out_the_last_value_and_the_time_before_the_first() {
        let found = IntegrationRule::LeftStepsFromZero.average(&[1.0, 2.0, 4.0], &[1.0, 3.0, 9.0]).unwrap();
        assert_abs_diff_eq!(found, (1.0 + 6.0) / 4.0, epsilon = 1e-15);
        assert_eq!(IntegrationRule::LeftStepsFromZero.average(&[2.0], &[1.0]), Ok(0.0));
        let at_zero = IntegrationRule::LeftStepsFromZero.average(&[0.0], &[1.0]);
        assert_eq!(at_zero, Err(MetricError::EmptyWindow { lower: 0.0, upper: 0.0 }));
    }

    #[test]
    fn a_single_time_and_a_missing_value_are_refused() {
        assert_eq!(IntegrationRule::Simpson.average(&[1.0], &[1.0]), Err(MetricError::TooFewTimes { n_times: 1 }));
        assert_eq!(IntegrationRule::PlainMean.average(&[1.0], &[0.25]), Ok(0.25));
        assert!(matches!(
            IntegrationRule::Trapezoid.average(&[1.0, 2.0], &[1.0]),
            Err(MetricError::LengthMismatch { found: 1, expected: 2, .. })
        ));
        let not_a_number = IntegrationRule::Trapezoid.average(&[1.0, 2.0], &[1.0, f64::NAN]);
        assert!(matches!(not_a_number, Err(MetricError::NotFinite { .. })));
    }

    #[test]
    fn the_shortest_and_the_longest_range_average_like_any_other() {
        let least = f64::from_bits(1);
        for times in [[0.0, least, 2.0 * least], [0.0, f64::MAX / 2.0, f64::MAX], [0.0, 1.0, 2.0]] {
            let average = |rule: IntegrationRule| rule.average(&times, &[0.0, 3.0, 0.0]).unwrap();
            assert_eq!(average(IntegrationRule::Trapezoid), 1.5);
            assert!((average(IntegrationRule::Simpson) - 2.0).abs() < 1e-15);
            assert_eq!(average(IntegrationRule::LeftStepsFromZero), 1.5);
        }
    }
}
