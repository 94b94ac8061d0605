//! Intervals of a proportion.

use super::normal_interval_quantile;
use crate::MetricError;
use crate::estimators::kaplan_meier::check_level;

/// The interval of `level` (for example 0.95) of a probability of which `n_successes` of `n` trials are seen, in [0, 1]:
///
/// ```text
/// (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n),   p = n_successes / n
/// ```
///
/// Source: Wilson (1927), <https://doi.org/10.1080/01621459.1927.10502953>. Golden values: statsmodels `proportion_confint`,
/// method `wilson`. `None` without trials.
///
/// ```
/// use fairtte_metrics::statistics::wilson_interval;
///
/// // statsmodels: proportion_confint(8, 10, method="wilson").
/// let (lower, upper) = wilson_interval(8, 10, 0.95)?.expect("ten trials");
/// assert!((lower - 0.490_162_471_536_641_83).abs() < 1e-9 && (upper - 0.943_317_848_545_624_7).abs() < 1e-9);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::InvalidSetting`] if `level` is not in (0, 1) or there are more successes than trials.
pub fn wilson_interval(n_successes: usize, n: usize, level: f64) -> Result<Option<(f64, f64)>, MetricError> {
    check_level(level)?;
    if n_successes > n {
        let (setting, expected) = ("successes", "at most the number of trials");
        return Err(MetricError::InvalidSetting { setting, value: n_successes.to_string(), expected });
    }
    if n == 0 {
        return Ok(None);
    }
    let (z, n, p) = (normal_interval_quantile(level), n as f64, n_successes as f64 / n as f64);
    let centre = p + z * z / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    let lower = if n_successes == 0 { 0.0 } else { ((centre - half) / scale).max(0.0) };
    let upper = if p < 1.0 { ((centre + half) / scale).min(1.0) } else { 1.0 };
    Ok(Some((lower, upper)))
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    #[test]
    fn intervals_match_statsmodels_and_stay_in_range() {
        // statsmodels 0.15.0 proportion_confint(k, n, alpha = 1 - level, method = "wilson").
        for (k, n, level, lower, upper) in [
            (8, 10, 0.95, 0.490_162_471_536_641_83, 0.943_317_848_545_624_7),
            (10, 200, 0.95, 0.027_382_645_600_763_93, 0.089_578_148_138_775_99),
            (0, 20, 0.95, 0.0, 0.161_125_158_052_819_38),
            (20, 20, 0.95, 0.838_874_841_947_180_6, 1.0),
            (37, 100, 0.9, 0.294_988_491_953_312_45, 0.451_860_615_450_312_86),
        ] {
            let found = wilson_interval(k, n, level).unwrap().unwrap();
            assert_abs_diff_eq!(found.0, lower, epsilon = 1e-12);
            assert_abs_diff_eq!(found.1, upper, epsilon = 1e-12);
        }
        assert_eq!(wilson_interval(0, 20, 0.95).unwrap().unwrap().0, 0.0);
        assert_eq!(wilson_interval(20, 20, 0.95).unwrap().unwrap().1, 1.0);
    }

    #[test]
    fn trials_that_cannot_be_are_refused() {
        assert_eq!(wilson_interval(0, 0, 0.95), Ok(None));
        let error = wilson_interval(3, 2, 0.95).unwrap_err().to_string();
        assert!(error.contains("successes"), "{error}");
        assert!(wilson_interval(1, 2, 1.0).is_err());
    }
}
