//! Spearman's rank correlation.

use super::ranks::MidRanks;
use crate::MetricError;
use crate::finite::finite;

/// Spearman's rank correlation of paired values, in [-1, 1]: Pearson's correlation of the mid-ranks. `None` with fewer than two
/// pairs or if all values of one side are equal. O(n log n).
///
/// Source: Spearman (1904), <https://doi.org/10.2307/1412159>; ties as `scipy.stats.spearmanr`.
///
/// ```
/// use fairtte_metrics::statistics::spearman;
///
/// // scipy 1.17.1: spearmanr([1, 2, 2, 4], [1, 3, 2, 4]).
/// let correlation = spearman(&[1.0, 2.0, 2.0, 4.0], &[1.0, 3.0, 2.0, 4.0])?;
/// assert!(correlation.is_some_and(|rho| (rho - 0.948_683_298_050_513_9).abs() < 1e-12));
/// assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0])?, None);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] if the lengths differ, [`MetricError::NotFinite`] if a value is not a finite number.
pub fn spearman(first: &[f64], second: &[f64]) -> Result<Option<f64>, MetricError> {
    let (found, expected) = (second.len(), first.len());
    if found != expected {
        return Err(MetricError::LengthMismatch { what: "paired values", found, expected });
    }
    first.iter().chain(second).try_for_each(|value| finite("paired value", *value).map(drop))?;
    let centre = (expected + 1) as f64; // twice the mean rank
    let centred = |values: &[f64]| -> Vec<f64> {
        MidRanks::of(values).doubled.into_iter().map(|rank| rank as f64 - centre).collect()
    };
    let (a, b) = (centred(first), centred(second));
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let scale = product(&a, &a) * product(&b, &b);
    Ok((scale > 0.0).then(|| (product(&a, &b) / scale.sqrt()).clamp(-1.0, 1.0)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;

    #[test]
    fn order_alone_counts() {
        assert_eq!(spearman(&[1.0, 2.0, 30.0], &[0.1, 0.2, 0.3]).unwrap(), Some(1.0));
        assert_eq!(spearman(&[1.0, 2.0, 30.0], &[3.0, 2.0, 1.0]).unwrap(), Some(-1.0));
        // 1 - 6 * (sum of squared differences of ranks = 2) / (4 * 15), without ties.
        assert_eq!(spearman(&[1.0, 2.0, 3.0, 4.0], &[1.0, 3.0, 2.0, 4.0]).unwrap(), Some(0.8));
        assert_eq!(spearman(&[], &[]).unwrap(), None);
        assert_eq!(spearman(&[1.0], &[1.0]).unwrap(), None);
        assert!(matches!(spearman(&[1.0], &[]), Err(MetricError::LengthMismatch { .. })));
        assert!(matches!(spearman(&[f64::NAN], &[1.0]), Err(MetricError::NotFinite { .. })));
    }
}
