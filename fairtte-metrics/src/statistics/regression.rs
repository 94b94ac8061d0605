//! A straight line through points by least squares, with the test of its slope.
//!
//! ```text
//! y = alpha + beta x,   beta = Sxy / Sxx,   se(beta)^2 = RSS / (n - 2) / Sxx,   t = beta / se(beta) with n - 2 degrees of freedom
//! ```
//!
//! Source: Draper & Smith (1998), Applied Regression Analysis, chapter 1. Golden values: scipy 1.17.1 `stats.linregress`.

use serde::{Deserialize, Serialize};

use super::tails::f_upper;
use crate::MetricError;
use crate::finite::finite;

/// A fitted line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LinearFit {
    /// Value of the line at 0, alpha.
    pub intercept: f64,
    /// Rise of the line, beta.
    pub slope: f64,
    /// Standard error of the slope, >= 0.
    pub slope_error: f64,
    /// p value of the two-sided test that the slope is 0; 0 if all points lie on a line that is not flat, 1 if on a flat one.
    pub p_value: f64,
    /// Points.
    pub n: usize,
}

/// The line through the points (`x`, `y`) with the least sum of squared vertical distances. O(n). `None` with fewer than three
/// points, or if all of `x` are equal.
///
/// ```
/// use fairtte_metrics::statistics::linear_fit;
///
/// // scipy 1.17.1: linregress([0, 1, 2, 3], [1, 3, 2, 5]), slope 1.1.
/// let line = linear_fit(&[0.0, 1.0, 2.0, 3.0], &[1.0, 3.0, 2.0, 5.0])?.expect("four points");
/// assert!((line.slope - 1.1).abs() < 1e-12 && (line.intercept - 1.1).abs() < 1e-12);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] if the lengths differ, [`MetricError::NotFinite`] if a value is not a finite number or the
/// sums overflow.
pub fn linear_fit(x: &[f64], y: &[f64]) -> Result<Option<LinearFit>, MetricError> {
    let (found, n) = (y.len(), x.len());
    if found != n {
        return Err(MetricError::LengthMismatch { what: "paired values", found, expected: n });
    }
    x.iter().chain(y).try_for_each(|value| finite("paired value", *value).map(drop))?;
    let is_constant = x.windows(2).all(|pair| pair[0].total_cmp(&pair[1]).is_eq());
    if n < 3 || is_constant {
        return Ok(None);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / n as f64;
    let (mean_x, mean_y) = (mean(x), mean(y));
    let squares: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    let products: f64 = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let slope = finite("slope", products / squares)?;
    let intercept = finite("intercept", mean_y - slope * mean_x)?;
    let residual = |(x, y): (&f64, &f64)| (y - mean_y - slope * (x - mean_x)).powi(2);
    let rest: f64 = x.iter().zip(y).map(residual).sum();
    let degrees = n - 2;
    let slope_error = finite("standard error of the slope", (rest / degrees as f64 / squares).sqrt())?;
    let ratio = if slope_error > 0.0 { (slope / slope_error).powi(2) } else { f64::INFINITY };
    let p_value = match () {
        () if slope.abs() <= 0.0 => 1.0,
        () if ratio.is_finite() => f_upper(ratio, 1, degrees).clamp(0.0, 1.0),
        () => 0.0,
    };
    Ok(Some(LinearFit { intercept, slope, slope_error, p_value, n }))
}

/// p value of the two-sided test that a rank correlation `rho` of `n` pairs is 0, from the t distribution with n - 2 degrees of
/// freedom of `rho sqrt((n - 2) / (1 - rho^2))` (scipy `spearmanr`, R `Hmisc::rcorr`), but not below 2 / n!, the probability that
/// n pairs are in the same or in the opposite order by chance: those packages return 0 at -1 and 1. `None` with fewer than three
/// pairs.
///
/// # Errors
/// [`MetricError::InvalidSetting`] if `rho` is not in [-1, 1].
pub fn spearman_p_value(rho: f64, n: usize) -> Result<Option<f64>, MetricError> {
    if !(-1.0..=1.0).contains(&rho) {
        let (setting, expected) = ("rank correlation", "a number in [-1, 1]");
        return Err(MetricError::InvalidSetting { setting, value: rho.to_string(), expected });
    }
    if n < 3 {
        return Ok(None);
    }
    let rest = 1.0 - rho * rho;
    let ratio = (n - 2) as f64 * rho * rho / rest;
    let least = (3..=n).fold(1.0, |least, k| least / k as f64);
    Ok(Some(if ratio.is_finite() { f_upper(ratio, 1, n - 2).clamp(least, 1.0) } else { least }))
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;

    #[test]
    fn a_line_matches_scipy() {
        // scipy 1.17.1 linregress(x, y) of the values below.
        let x = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
        let y = [0.034, 0.036, 0.046, 0.054, 0.073, 0.089, 0.102, 0.118, 0.131, 0.138];
        let line = linear_fit(&x, &y).unwrap().unwrap();
        assert_relative_eq!(line.slope, 0.128_545_454_545_454_55, max_relative = 1e-12);
        assert_relative_eq!(line.intercept, 0.024_254_545_454_545_445, max_relative = 1e-12);
        assert_relative_eq!(line.slope_error, 0.005_911_654_455_582_107, max_relative = 1e-11);
        assert_relative_eq!(line.p_value, 2.109_603_249_126_049e-8, max_relative = 1e-10);
        assert_eq!(line.n, 10);
        let falling: Vec<f64> = y.iter().map(|y| -y).collect();
        let other = linear_fit(&x, &falling).unwrap().unwrap();
        assert_eq!((other.slope, other.p_value), (-line.slope, line.p_value));
    }

    #[test]
    fn points_on_a_line_and_points_without_one() {
        let line = linear_fit(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]).unwrap().unwrap();
        assert_eq!((line.slope, line.intercept, line.slope_error, line.p_value), (2.0, 0.0, 0.0, 0.0));
        let flat = linear_fit(&[1.0, 2.0, 3.0], &[5.0; 3]).unwrap().unwrap();
        assert_eq!((flat.slope, flat.intercept, flat.p_value), (0.0, 5.0, 1.0));
        assert_eq!(linear_fit(&[1.0, 2.0], &[1.0, 2.0]).unwrap(), None);
        assert_eq!(linear_fit(&[1.0; 4], &[1.0, 2.0, 3.0, 4.0]).unwrap(), None);
        assert!(matches!(linear_fit(&[1.0], &[]), Err(MetricError::LengthMismatch { .. })));
        assert!(matches!(linear_fit(&[1.0; 3], &[f64::NAN; 3]), Err(MetricError::NotFinite { .. })));
        assert!(matches!(linear_fit(&[0.0, 1.0, 2.0], &[f64::MAX; 3]), Err(MetricError::NotFinite { .. })));
    }

    #[test]
    fn the_test_of_a_rank_correlation_matches_scipy() {
        // scipy 1.17.1 spearmanr, p value.
        for (rho, expected) in
            [(0.975_757_575_757_575_7, 1.467_546_187_404_215e-6), (0.248_484_848_484_848_47, 0.488_776_304_519_243_2)]
        {
            assert_relative_eq!(spearman_p_value(rho, 10).unwrap().unwrap(), expected, max_relative = 1e-10);
            assert_eq!(spearman_p_value(-rho, 10), spearman_p_value(rho, 10));
        }
        // All of 3 pairs in order: 2 of 6 orders. scipy 1.17.1 `permutation_test` of 5 pairs: 2 / 120.
        assert_relative_eq!(spearman_p_value(1.0, 3).unwrap().unwrap(), 1.0 / 3.0, max_relative = 1e-15);
        assert_relative_eq!(spearman_p_value(-1.0, 5).unwrap().unwrap(), 1.0 / 60.0, max_relative = 1e-14);
        assert!(spearman_p_value(1.0, 10_000).unwrap().is_some_and(|p| p >= 0.0));
        assert_eq!(spearman_p_value(0.0, 10), Ok(Some(1.0)));
        assert_eq!(spearman_p_value(0.5, 2), Ok(None));
        assert!(spearman_p_value(1.5, 9).is_err());
    }
}
