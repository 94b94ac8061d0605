//! Differences of two numbers that share their bootstrap replicates: two groups, or two models on the same samples.
//!
//! With d = first - second and d*(b) their difference in replicate b, the interval is that of the d*(b), so whatever
//! moves both numbers together cancels. The two-sided p value of "no difference" is that of the same interval
//! ([`Replicated::p_value`]): the interval of level 1 - a contains 0 exactly if p > a.
//!
//! [`relative_change`] is first / second - 1 with the interval of the ratios of the replicates, so that it includes the
//! uncertainty of the second number: an interval of the difference divided by the second value would treat that value
//! as known.

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::finite::finite;
use crate::resampling::{Interval, IntervalMethod, Replicated};

/// A difference with its interval and p value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PairedDifference {
    /// First value minus second.
    pub value: f64,
    /// Its bootstrap interval; `n_undefined` counts the replicates in which either number is undefined.
    pub interval: Interval,
    /// Two-sided p value of a difference of 0, in (0, 1], that of the interval; `None` if the replicates are too few for
    /// the level.
    pub p_value: Option<f64>,
}

/// The difference of two numbers whose replicates (and jackknife values) come from the same
/// [`Bootstrap`](crate::resampling::Bootstrap): replicate b of both is the same draw.
///
/// ```
/// use fairtte_metrics::resampling::{IntervalMethod, Replicated, paired_difference};
///
/// let women = [Some(0.80), Some(0.90), None, Some(0.85)];
/// let men = [Some(0.70), Some(0.75), Some(0.7), Some(0.80)];
/// let (women, men) = (Replicated::new(0.85, &women), Replicated::new(0.75, &men));
/// let gap = paired_difference(&women, &men, 0.95, IntervalMethod::Percentile)?;
/// assert!((gap.value - 0.1).abs() < 1e-12);
/// assert_eq!(gap.interval.n_undefined, 1);
/// assert_eq!(gap.p_value, None); // three replicates are too few for the level 0.95
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::NotAligned`] if the two have different numbers of replicates or jackknife values, and those of
/// [`Replicated::interval`].
pub fn paired_difference(
    first: &Replicated<'_>,
    second: &Replicated<'_>,
    level: f64,
    method: IntervalMethod,
) -> Result<PairedDifference, MetricError> {
    if first.replicates.len() != second.replicates.len() {
        let (first, second) = (first.replicates.len(), second.replicates.len());
        return Err(MetricError::NotAligned { what: "bootstrap replicates", first, second });
    }
    let value = finite("difference", finite("first value", first.value)? - finite("second value", second.value)?)?;
    let pairs = first.replicates.iter().zip(second.replicates);
    let replicates: Vec<Option<f64>> = pairs.map(|(first, second)| Some((*first)? - (*second)?)).collect();
    let jackknife = first.jackknife.zip(second.jackknife).map(|(first, second)| first.minus(second)).transpose()?;
    let nested = first.nested.zip(second.nested).map(|(first, second)| first.minus(second)).transpose()?;
    let difference =
        Replicated { value, replicates: &replicates, jackknife: jackknife.as_ref(), nested: nested.as_ref() };
    let interval = difference.interval(level, method)?;
    Ok(PairedDifference { value, interval, p_value: difference.p_value(level, method)? })
}

/// The relative change first / second - 1 of two numbers from the same draws, with the interval of the replicates' ratios.
///
/// ```
/// use fairtte_metrics::resampling::{IntervalMethod, Replicated, relative_change};
///
/// let first = [Some(0.75), Some(0.5), None];
/// let second = [Some(0.5), Some(0.5), Some(0.5)];
/// let (first, second) = (Replicated::new(0.625, &first), Replicated::new(0.5, &second));
/// let (change, interval) = relative_change(&first, &second, 0.95, IntervalMethod::Percentile)?;
/// assert_eq!((change, interval.n_undefined), (0.25, 1));
/// // The ratios are 1.5 and 1.
/// assert!((interval.lower - 0.0125).abs() < 1e-12 && (interval.upper - 0.4875).abs() < 1e-12);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// A replicate whose second number is not above 0 has no ratio and counts as undefined. `BCa` and studentised intervals
/// need leave-out values of the ratio, which these arguments do not contain: they are refused.
///
/// # Errors
/// [`MetricError::NotAligned`] for different numbers of replicates; [`MetricError::NotFinite`] if a value or the ratio
/// is not a finite number (for example, if the second value is 0); those of [`Replicated::interval`].
pub fn relative_change(
    first: &Replicated<'_>,
    second: &Replicated<'_>,
    level: f64,
    method: IntervalMethod,
) -> Result<(f64, Interval), MetricError> {
    if first.replicates.len() != second.replicates.len() {
        let (first, second) = (first.replicates.len(), second.replicates.len());
        return Err(MetricError::NotAligned { what: "bootstrap replicates", first, second });
    }
    let ratio = finite("first value", first.value)? / finite("second value", second.value)?;
    let value = finite("relative change", ratio - 1.0)?;
    let pairs = first.replicates.iter().zip(second.replicates);
    let of_replicate = |(first, second): (&Option<f64>, &Option<f64>)| {
        let second = (*second).filter(|second| *second > 0.0)?;
        Some((*first)? / second - 1.0)
    };
    let replicates: Vec<Option<f64>> = pairs.map(of_replicate).collect();
    Ok((value, Replicated::new(value, &replicates).interval(level, method)?))
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use rand::RngExt as _;

    use super::*;
    use crate::normal::normal_quantile;
    use crate::resampling::{Bootstrap, Jackknife, JackknifeValues, Resample};
    use crate::{SubjectId, seeds};

    const METHODS: [IntervalMethod; 3] = [IntervalMethod::Percentile, IntervalMethod::Basic, IntervalMethod::Bca];

    fn mean(values: &[f64], weights: &[u32]) -> f64 {
        let sum: f64 = values.iter().zip(weights).map(|(value, weight)| value * f64::from(*weight)).sum();
        sum / f64::from(weights.iter().sum::<u32>())
    }

    #[test]
    fn a_number_minus_itself_is_zero_with_p_value_one() {
        let replicates: Vec<Option<f64>> = (0..30).map(|k| (k > 0).then(|| 0.5 + f64::from(k % 7) / 50.0)).collect();
        let jackknife = JackknifeValues::new(vec![Some(0.5), Some(0.7)]);
        let number = Replicated::new(0.55, &replicates).with_jackknife(&jackknife);
        for method in METHODS {
            let found = paired_difference(&number, &number, 0.95, method).unwrap();
            assert_eq!((found.value, found.interval.lower, found.interval.upper), (0.0, 0.0, 0.0));
            assert_eq!((found.p_value, found.interval.n_undefined), (Some(1.0), 1));
        }
    }

    #[test]
    fn a_relative_change_is_as_uncertain_as_both_numbers() {
        let (first, second) = ([Some(0.25), Some(0.75)], [Some(0.5), Some(0.25)]);
        let found = |second: &[Option<f64>], value| {
            let (first, second) = (Replicated::new(0.5, &first), Replicated::new(value, second));
            relative_change(&first, &second, 0.5, IntervalMethod::Percentile)
        };
        // Ratios 1/2 and 3: the quartiles of -0.5 and 2 are 0.125 and 1.375.
        let (value, interval) = found(&second, 0.25).unwrap();
        assert_eq!((value, interval.lower, interval.upper), (1.0, 0.125, 1.375));
        assert_eq!(found(&[Some(0.0), Some(0.25)], 0.25).unwrap().1.n_undefined, 1);
        assert!(matches!(found(&second, 0.0), Err(MetricError::NotFinite { .. })));
        assert!(matches!(found(&second[..1], 0.25), Err(MetricError::NotAligned { .. })));
    }

    #[test]
    fn exchanging_the_two_mirrors_the_interval_and_keeps_the_p_value() {
        let first = [Some(0.5), None, Some(0.625), Some(0.75), Some(0.875)];
        let second = [Some(0.5), Some(0.5), None, Some(0.5), Some(0.375)];
        let (first, second) = (Replicated::new(0.75, &first), Replicated::new(0.5, &second));
        let there = paired_difference(&first, &second, 0.5, IntervalMethod::Basic).unwrap();
        let back = paired_difference(&second, &first, 0.5, IntervalMethod::Basic).unwrap();
        // Differences 0, 0.25, 0.5: 0 is the first, and the smallest p value of three replicates is 1 / 4.
        assert_eq!((there.value, there.p_value, there.interval.n_undefined), (0.25, Some(0.25), 2));
        assert_eq!((there.interval.lower, there.interval.upper), (-back.interval.upper, -back.interval.lower));
        assert_eq!(there.p_value, back.p_value);
    }

    #[test]
    fn the_p_value_and_interval_of_paired_means_are_close_to_the_t_test() {
        // 200 pairs whose difference has mean 0.1385 and standard error 0.0694: t = 2, two-sided p = 0.0465.
        let n = 200;
        let noise: Vec<f64> = (0..n).map(|k| normal_quantile((f64::from(k) + 0.5) / f64::from(n))).collect();
        let mut rng = seeds::stream(3, "paired means", &[]);
        let shared: Vec<f64> = (0..n).map(|_| 10.0 * rng.random::<f64>()).collect();
        let spread = (noise.iter().map(|x| x * x).sum::<f64>() / f64::from(n - 1)).sqrt() / f64::from(n).sqrt();
        let first: Vec<f64> = shared.iter().zip(&noise).map(|(s, x)| s + x + 2.0 * spread).collect();
        let subjects: Vec<SubjectId> = (0..n).map(|k| SubjectId::new(format!("{k:03}"))).collect();
        let bootstrap = Bootstrap::new(&subjects, Resample::Subject, 4_000, 1);
        let jackknife = Jackknife::new(&bootstrap, 200);
        let replicated = |values: &[f64]| {
            let left_out = |block| Some(mean(values, &jackknife.weights(block)));
            let left_out = (0..jackknife.n_blocks()).map(left_out).collect();
            (bootstrap.map(|weights| Some(mean(values, weights))), jackknife.collect(left_out).unwrap())
        };
        let (a, b) = (replicated(&first), replicated(&shared));
        let value = |values: &[f64]| values.iter().sum::<f64>() / f64::from(n);
        let a = Replicated::new(value(&first), &a.0).with_jackknife(&a.1);
        let b = Replicated::new(value(&shared), &b.0).with_jackknife(&b.1);
        for method in METHODS {
            let found = paired_difference(&a, &b, 0.95, method).unwrap();
            assert_abs_diff_eq!(found.value, 2.0 * spread, epsilon = 1e-12);
            assert_abs_diff_eq!(found.p_value.unwrap(), 0.0465, epsilon = 0.015);
            assert_abs_diff_eq!(found.interval.lower, (2.0 - 1.96) * spread, epsilon = 0.2 * spread);
            assert_abs_diff_eq!(found.interval.upper, (2.0 + 1.96) * spread, epsilon = 0.2 * spread);
        }
    }

    #[test]
    fn replicates_of_different_draws_are_refused() {
        let (long, short) = ([Some(0.5); 3], [Some(0.5); 2]);
        let found = paired_difference(
            &Replicated::new(0.5, &long),
            &Replicated::new(0.5, &short),
            0.95,
            IntervalMethod::Percentile,
        );
        let expected = MetricError::NotAligned { what: "bootstrap replicates", first: 3, second: 2 };
        assert_eq!(found, Err(expected));
        let nan = Replicated::new(f64::NAN, &long);
        assert!(paired_difference(&nan, &nan, 0.95, IntervalMethod::Percentile).is_err());
    }
}
