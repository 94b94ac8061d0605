//! Standardised differences: how far apart two samples are in one variable, in standard deviations of the mean variance of
//! both.
//!
//! Numbers: `(m1 - m2) / sqrt((s1^2 + s2^2) / 2)`, s^2 with divisor n - 1. Shares: the same with s^2 = p (1 - p). K levels:
//! `sqrt(d' S^-1 d)`, d the differences of the shares of K - 1 levels and S the mean of their multinomial covariance
//! matrices, `S_kk = (p1k (1 - p1k) + p2k (1 - p2k)) / 2`, `S_kl = -(p1k p1l + p2k p2l) / 2`; it has no sign, does not depend
//! on which level is left out, and of two levels is the absolute value of that of a share. 0.1 is the usual limit of a
//! small difference. Unlike a p value it does not grow with the size of the samples.
//! Sources: Austin (2009), Balance diagnostics for comparing the distribution of baseline covariates between treatment
//! groups in propensity-score matched samples, Statistics in Medicine 28, 3083-3107, doi:10.1002/sim.3697; levels: Yang &
//! Dalton (2012), A unified approach to measuring the effect size between two groups using SAS, SAS Global Forum, paper
//! 335-2012.

use ndarray::{Array1, Array2};

use crate::MetricError;
use crate::finite::finite;
use crate::linear_algebra::{cholesky, solve_lower};

/// Rounding of a pivot, relative to its diagonal cell, below which a matrix has no inverse.
const SINGULAR: f64 = 1e-12;

/// The standardised difference of the means of two samples, first minus second; 0 if all values are equal. O(n).
///
/// ```
/// use fairtte_metrics::statistics::standardised_difference_of_means;
///
/// // Means 2 and 4, variances 1 and 9: -2 / sqrt(5).
/// let found = standardised_difference_of_means(&[1.0, 2.0, 3.0], &[1.0, 4.0, 7.0])?;
/// assert!((found + 2.0 / 5.0_f64.sqrt()).abs() < 1e-15);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::InvalidSetting`] with fewer than two values in a sample, [`MetricError::NotFinite`] if one is not a finite
/// number, [`MetricError::NoVariation`] if the values of each sample are equal, but not those of both.
pub fn standardised_difference_of_means(first: &[f64], second: &[f64]) -> Result<f64, MetricError> {
    let ((mean, variance), (other_mean, other_variance)) = (moments(first)?, moments(second)?);
    divided(mean - other_mean, f64::midpoint(variance, other_variance))
}

/// The standardised difference of two shares in \[0, 1\], first minus second; 0 if they are equal.
///
/// ```
/// use fairtte_metrics::statistics::standardised_difference_of_shares;
///
/// assert_eq!(standardised_difference_of_shares(0.9, 0.1)?, 0.8 / 0.09_f64.sqrt());
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::InvalidSetting`] for a share outside \[0, 1\], [`MetricError::NoVariation`] of 0 and 1.
pub fn standardised_difference_of_shares(first: f64, second: f64) -> Result<f64, MetricError> {
    for share in [first, second] {
        if !(0.0..=1.0).contains(&share) {
            let (setting, value) = ("share", share.to_string());
            return Err(MetricError::InvalidSetting { setting, value, expected: "a number in [0, 1]" });
        }
    }
    divided(first - second, f64::midpoint(first * (1.0 - first), second * (1.0 - second)))
}

/// The standardised difference of two samples in an attribute with levels, of how often each level occurs in both; >= 0.
/// Levels that occur in neither sample do not count. O(K^3).
///
/// ```
/// use fairtte_metrics::statistics::standardised_difference_of_levels;
///
/// assert_eq!(standardised_difference_of_levels(&[50, 30, 20], &[50, 30, 20])?, 0.0);
/// let of_two = standardised_difference_of_levels(&[90, 10], &[10, 90])?;
/// assert!((of_two - 0.8 / 0.3).abs() < 1e-12);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] if the two have different numbers of levels, [`MetricError::NoSamples`] if one is empty,
/// [`MetricError::NoVariation`] if the level of every sample says which of the two it is from, so that S has no inverse.
pub fn standardised_difference_of_levels(first: &[usize], second: &[usize]) -> Result<f64, MetricError> {
    if first.len() != second.len() {
        return Err(MetricError::LengthMismatch { what: "levels", found: second.len(), expected: first.len() });
    }
    let (n, other_n) = (first.iter().sum::<usize>(), second.iter().sum::<usize>());
    if n == 0 || other_n == 0 {
        return Err(MetricError::NoSamples);
    }
    let occurring = first.iter().zip(second).filter(|(own, other)| **own + **other > 0);
    let shares: Vec<(f64, f64)> =
        occurring.map(|(own, other)| (*own as f64 / n as f64, *other as f64 / other_n as f64)).collect();
    // The shares add up to 1, so that one of them says nothing.
    let shares = &shares[1..];
    let difference: Array1<f64> = shares.iter().map(|(own, other)| own - other).collect();
    if difference.iter().all(|difference| difference.abs() <= f64::EPSILON) {
        return Ok(0.0);
    }
    let covariance = |(k, l): (usize, usize)| {
        let ((own, other), (own_l, other_l)) = (shares[k], shares[l]);
        if k == l {
            f64::midpoint(own * (1.0 - own), other * (1.0 - other))
        } else {
            -f64::midpoint(own * own_l, other * other_l)
        }
    };
    let matrix = Array2::from_shape_fn((shares.len(), shares.len()), covariance);
    let lower = cholesky(matrix, SINGULAR).map_err(|_| MetricError::NoVariation)?;
    finite("standardised difference", difference.dot(&solve_lower(&lower, &difference)).max(0.0).sqrt())
}

/// Mean and variance with divisor n - 1.
fn moments(values: &[f64]) -> Result<(f64, f64), MetricError> {
    if values.len() < 2 {
        let (setting, value) = ("number of values", values.len().to_string());
        return Err(MetricError::InvalidSetting { setting, value, expected: "at least 2" });
    }
    values.iter().try_for_each(|value| finite("value", *value).map(drop))?;
    let n = values.len() as f64;
    // Equal values have their own value as mean, without rounding.
    let mean = values[0] + values.iter().map(|value| value - values[0]).sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n - 1.0);
    Ok((finite("mean", mean)?, finite("variance", variance)?))
}

fn divided(difference: f64, variance: f64) -> Result<f64, MetricError> {
    if variance > 0.0 {
        return finite("standardised difference", difference / variance.sqrt());
    }
    if difference.abs() > 0.0 { Err(MetricError::NoVariation) } else { Ok(0.0) }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;

    #[test]
    fn levels_by_hand() {
        // Shares (0.5, 0.3, 0.2) and (0.2, 0.3, 0.5); without the first level d = (0, -0.3),
        // S = [[0.21, -0.105], [-0.105, 0.205]], S^-1[1][1] = 0.21 / (0.04305 - 0.011025) = 6.557377..:
        // sqrt(0.09 * 6.557377) = 0.768221.
        let found = standardised_difference_of_levels(&[50, 30, 20], &[20, 30, 50]).unwrap();
        assert_relative_eq!(found, (0.09_f64 * 0.21 / 0.032_025).sqrt(), max_relative = 1e-12);
        // The level that is left out does not matter.
        let turned = standardised_difference_of_levels(&[20, 50, 30], &[50, 20, 30]).unwrap();
        assert_relative_eq!(found, turned, max_relative = 1e-12);
    }

    #[test]
    fn values_of_numpy() {
        // numpy 2.4.6: sqrt(d @ solve(S, d)), S = (diag(p) - outer(p, p) + diag(q) - outer(q, q)) / 2 without any one level.
        let found = standardised_difference_of_levels(&[37, 21, 5, 12], &[18, 40, 9, 3]).unwrap();
        assert_relative_eq!(found, 0.775_432_071_922_747, max_relative = 1e-13);
        // (x.mean() - y.mean()) / sqrt((x.var(ddof=1) + y.var(ddof=1)) / 2)
        let found = standardised_difference_of_means(&[1.5, 2.25, 7.0, 3.125, 4.5], &[2.0, 9.5, 8.25, 6.0]).unwrap();
        assert_relative_eq!(found, -0.990_755_825_577_349_4, max_relative = 1e-14);
    }

    #[test]
    fn two_levels_are_a_share_without_its_sign() {
        let of_levels = standardised_difference_of_levels(&[25, 75], &[60, 40]).unwrap();
        let of_share = standardised_difference_of_shares(0.25, 0.6).unwrap();
        assert_relative_eq!(of_levels, -of_share, max_relative = 1e-12);
        // -0.35 / sqrt((0.1875 + 0.24) / 2)
        assert_relative_eq!(of_share, -0.35 / 0.213_75_f64.sqrt(), max_relative = 1e-14);
    }

    #[test]
    fn levels_of_neither_or_of_one_sample() {
        let found = standardised_difference_of_levels(&[0, 25, 75], &[0, 60, 40]).unwrap();
        assert_relative_eq!(found, standardised_difference_of_levels(&[25, 75], &[60, 40]).unwrap());
        // A level of one sample only: d = (-0.5, 0.5), S = [[0.125, 0], [0, 0.125]].
        assert_relative_eq!(standardised_difference_of_levels(&[50, 0, 50], &[50, 50, 0]).unwrap(), 2.0);
        assert_eq!(standardised_difference_of_levels(&[5, 0], &[0, 5]), Err(MetricError::NoVariation));
        assert_eq!(standardised_difference_of_levels(&[5, 5, 0, 0], &[0, 0, 5, 5]), Err(MetricError::NoVariation));
        assert_eq!(standardised_difference_of_levels(&[5], &[7]), Ok(0.0));
        assert_eq!(standardised_difference_of_levels(&[0], &[7]), Err(MetricError::NoSamples));
        let uneven = standardised_difference_of_levels(&[1, 2], &[7]);
        assert!(matches!(uneven, Err(MetricError::LengthMismatch { found: 1, expected: 2, .. })));
    }

    #[test]
    fn values_without_variation() {
        assert_eq!(standardised_difference_of_means(&[0.1; 3], &[0.1; 5]), Ok(0.0));
        assert_eq!(standardised_difference_of_means(&[0.1; 3], &[0.2; 5]), Err(MetricError::NoVariation));
        assert!(standardised_difference_of_means(&[1.0], &[1.0, 2.0]).is_err());
        assert!(standardised_difference_of_means(&[1.0, f64::NAN], &[1.0, 2.0]).is_err());
        assert_eq!(standardised_difference_of_shares(0.0, 0.0), Ok(0.0));
        assert_eq!(standardised_difference_of_shares(0.0, 1.0), Err(MetricError::NoVariation));
        assert!(standardised_difference_of_shares(-0.1, 0.5).is_err());
    }
}
