//! Differences of two numbers of independent samples, for example of one model in two cohorts.
//!
//! With d = first - second, every cohort is resampled by itself, and d*(b) = first*(b) - second*(b + 1), where the last
//! replicate of the first goes with the first one of the second. The draws of a [`Bootstrap`](crate::resampling::Bootstrap)
//! depend on its seed and on b only: paired as b with b, two cohorts of equally many subjects would be drawn at the same
//! places, and a cohort would differ from itself by exactly 0 in every replicate. Neighbouring replicates are independent
//! under any seeds, so every number keeps the replicates of its own interval. Interval and two-sided p value are those of
//! the d*(b) ([`Replicated::interval`], [`Replicated::p_value`]): the interval of level 1 - a contains 0 exactly if p > a.
//! The acceleration of `BCa` is that of both samples together.
//! Sources: Efron & Tibshirani (1993), sections 8.3 and 16.2 (two samples, each resampled by itself); Davison & Hinkley
//! (1997), sections 3.2 and 5.3.2. The acceleration is that of `scipy.stats.bootstrap` 1.17.1 with two samples.
//!
//! A largest difference between groups (a gap) is not a smooth number: its replicates are too large, the more the smaller a
//! cohort is, so that a small cohort would seem to have the larger gap. [`recovered_interval`] needs no replicates of the
//! difference, only an interval of each number that is right by itself.

use serde::{Deserialize, Serialize};

use crate::MetricError;
use crate::finite::finite;
use crate::resampling::{Interval, IntervalMethod, JackknifeValues, Replicated};

/// A difference of two independent samples with its interval and p value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct UnpairedDifference {
    /// First value minus second.
    pub value: f64,
    /// Its bootstrap interval; `n_undefined` counts the replicates in which either number is undefined.
    pub interval: Interval,
    /// Two-sided p value of a difference of 0, in (0, 1], that of the interval; `None` if the replicates are too few for
    /// the level.
    pub p_value: Option<f64>,
}

/// The difference of two numbers of independent samples, each with replicates (and jackknife values) of its own sample.
///
/// ```
/// use fairtte_metrics::SubjectId;
/// use fairtte_metrics::resampling::{Bootstrap, IntervalMethod, Replicated, Resample, unpaired_difference};
///
/// let mean = |values: &[f64], weights: &[u32]| {
///     Some(values.iter().zip(weights).map(|(value, weight)| value * f64::from(*weight)).sum::<f64>() / 40.0)
/// };
/// let subjects: Vec<SubjectId> = (0..40).map(|k| SubjectId::new(format!("s{k:02}"))).collect();
/// let bootstrap = Bootstrap::new(&subjects, Resample::Subject, 400, 1);
/// let values: Vec<f64> = (0..40).map(f64::from).collect();
/// let replicates = bootstrap.map(|weights| mean(&values, weights));
/// let number = Replicated::new(19.5, &replicates);
/// // The same values twice, as two cohorts: no difference, but an interval as wide as that of two samples.
/// let found = unpaired_difference(&number, &number, 0.95, IntervalMethod::Percentile)?;
/// assert_eq!(found.value, 0.0);
/// assert!(found.interval.lower < -5.0 && found.interval.upper > 5.0);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::NotAligned`] if the two have different numbers of replicates, and those of [`Replicated::interval`].
pub fn unpaired_difference(
    first: &Replicated<'_>,
    second: &Replicated<'_>,
    level: f64,
    method: IntervalMethod,
) -> Result<UnpairedDifference, MetricError> {
    if first.replicates.len() != second.replicates.len() {
        let (first, second) = (first.replicates.len(), second.replicates.len());
        return Err(MetricError::NotAligned { what: "bootstrap replicates", first, second });
    }
    let value = finite("difference", finite("first value", first.value)? - finite("second value", second.value)?)?;
    let replicates = unpaired_replicates(first.replicates, second.replicates);
    let jackknife = first.jackknife.zip(second.jackknife);
    let jackknife = jackknife.map(|(own, other)| JackknifeValues::unpaired((first.value, own), (second.value, other)));
    let nested = first.nested.zip(second.nested).map(|(first, second)| first.unpaired(second));
    let difference =
        Replicated { value, replicates: &replicates, jackknife: jackknife.as_ref(), nested: nested.as_ref() };
    let interval = difference.interval(level, method)?;
    Ok(UnpairedDifference { value, interval, p_value: difference.p_value(level, method)? })
}

/// Replicate b of the first minus replicate b + 1 of the second; `None` where either is undefined.
pub(crate) fn unpaired_replicates(first: &[Option<f64>], second: &[Option<f64>]) -> Vec<Option<f64>> {
    let next = second.iter().cycle().skip(1);
    first.iter().zip(next).map(|(first, second)| Some((*first)? - (*second)?)).collect()
}

/// The interval of first - second of independent samples from an interval of each number, given as (value, lower end,
/// upper end): with distances `l` and `u` of the ends from the value,
/// `[d - sqrt(l1^2 + u2^2), d + sqrt(u1^2 + l2^2)]`, d = first - second. An end beyond its value counts as the value.
///
/// Source: Zou & Donner (2008), Construction of confidence limits about effect measures: a general approach, Statistics in
/// Medicine 27, 1693-1702, doi:10.1002/sim.3095 ("method of variance estimates recovery"): it keeps the asymmetry of both
/// intervals; of two normal intervals it is the normal interval of the difference.
///
/// ```
/// use fairtte_metrics::resampling::recovered_interval;
///
/// assert_eq!(recovered_interval((10.0, 7.0, 14.0), (4.0, 1.0, 8.0)), (1.0, 11.0));
/// ```
pub fn recovered_interval(first: (f64, f64, f64), second: (f64, f64, f64)) -> (f64, f64) {
    let distances = |(value, lower, upper): (f64, f64, f64)| ((value - lower).max(0.0), (upper - value).max(0.0));
    let ((below, above), (other_below, other_above)) = (distances(first), distances(second));
    let difference = first.0 - second.0;
    (difference - below.hypot(other_above), difference + above.hypot(other_below))
}

#[cfg(test)]
mod tests {
    use approx::{assert_abs_diff_eq, assert_relative_eq};
    use rand::RngExt as _;

    use super::*;
    use crate::normal::normal_quantile;
    use crate::resampling::{Bootstrap, Jackknife, Resample};
    use crate::{SubjectId, seeds};

    const METHODS: [IntervalMethod; 3] = [IntervalMethod::Percentile, IntervalMethod::Basic, IntervalMethod::Bca];

    /// The mean of values with its replicates and jackknife values.
    struct Mean {
        value: f64,
        replicates: Vec<Option<f64>>,
        jackknife: JackknifeValues,
    }

    impl Mean {
        fn of(values: &[f64], n_replicates: usize, seed: u64) -> Self {
            let mean = |weights: &[u32]| {
                let sum: f64 = values.iter().zip(weights).map(|(value, weight)| value * f64::from(*weight)).sum();
                sum / f64::from(weights.iter().sum::<u32>())
            };
            let subjects: Vec<SubjectId> = (0..values.len()).map(|k| SubjectId::new(format!("{k:04}"))).collect();
            let bootstrap = Bootstrap::new(&subjects, Resample::Subject, n_replicates, seed);
            let jackknife = Jackknife::new(&bootstrap, values.len());
            let left_out = (0..jackknife.n_blocks()).map(|block| Some(mean(&jackknife.weights(block)))).collect();
            Self {
                value: mean(&vec![1; values.len()]),
                replicates: bootstrap.map(|weights| Some(mean(weights))),
                jackknife: jackknife.collect(left_out).unwrap(),
            }
        }

        fn number(&self) -> Replicated<'_> {
            Replicated::new(self.value, &self.replicates).with_jackknife(&self.jackknife)
        }

        fn minus(&self, other: &Self, method: IntervalMethod) -> UnpairedDifference {
            unpaired_difference(&self.number(), &other.number(), 0.95, method).unwrap()
        }
    }

    /// `n` normal values of mean 0 whose mean has the standard error `error`.
    fn normal(n: usize, error: f64) -> Vec<f64> {
        let noise: Vec<f64> = (0..n).map(|k| normal_quantile((k as f64 + 0.5) / n as f64)).collect();
        let spread = (noise.iter().map(|x| x * x).sum::<f64>() / n as f64).sqrt();
        noise.into_iter().map(|x| x / spread * error * (n as f64).sqrt()).collect()
    }

    #[test]
    fn the_interval_of_two_means_is_that_of_the_variances_added() {
        // Standard errors 0.3 and 0.4: that of the difference is 0.5; paired draws of equal places would have another one.
        let first: Vec<f64> = normal(200, 0.3).into_iter().map(|x| x + 1.0).collect();
        let (first, second) = (Mean::of(&first, 4_000, 5), Mean::of(&normal(200, 0.4), 4_000, 5));
        for method in METHODS {
            let found = first.minus(&second, method);
            assert_abs_diff_eq!(found.value, 1.0, epsilon = 1e-12);
            assert_abs_diff_eq!(found.interval.lower, 1.0 - 1.96 * 0.5, epsilon = 0.05);
            assert_abs_diff_eq!(found.interval.upper, 1.0 + 1.96 * 0.5, epsilon = 0.05);
            assert_abs_diff_eq!(found.p_value.unwrap(), 0.0455, epsilon = 0.015); // normal: z = 2
        }
    }

    #[test]
    fn a_sample_minus_itself_is_zero_with_the_interval_of_two_samples() {
        let number = Mean::of(&normal(100, 0.3), 4_000, 0);
        for method in METHODS {
            let found = number.minus(&number, method);
            assert_eq!(found.value, 0.0);
            let half = (found.interval.upper - found.interval.lower) / 2.0;
            assert_relative_eq!(half, 1.96 * 0.3 * 2.0_f64.sqrt(), max_relative = 0.06);
            assert!(found.p_value.unwrap() > 0.9, "{found:?}");
        }
    }

    #[test]
    fn the_acceleration_is_that_of_scipy_with_two_samples() {
        // scipy 1.17.1, _bca_interval of mean([1, 2, 4, 8, 16]) - mean([3, 5, 4, 10]).
        let (first, second) = (Mean::of(&[1.0, 2.0, 4.0, 8.0, 16.0], 1, 0), Mean::of(&[3.0, 5.0, 4.0, 10.0], 1, 0));
        let both = JackknifeValues::unpaired((first.value, &first.jackknife), (second.value, &second.jackknife))
            .acceleration();
        assert_relative_eq!(both.unwrap(), 0.035_808_467_745_946_62, max_relative = 1e-13);
    }

    #[test]
    fn neighbouring_replicates_are_subtracted_and_undefined_ones_counted() {
        let first = [Some(1.0), Some(2.0), None, Some(4.0)];
        let second = [Some(0.25), Some(0.5), Some(0.75), None];
        assert_eq!(unpaired_replicates(&first, &second), [Some(0.5), Some(1.25), None, Some(3.75)]);
        assert!(unpaired_replicates(&[], &[]).is_empty());
        let (first, second) = (Replicated::new(2.0, &first), Replicated::new(0.5, &second));
        let found = unpaired_difference(&first, &second, 0.5, IntervalMethod::Percentile).unwrap();
        // Quartiles of 0.5, 1.25, 3.75.
        assert_eq!((found.interval.lower, found.interval.upper, found.interval.n_undefined), (0.875, 2.5, 1));
        let short = Replicated::new(0.5, &second.replicates[..2]);
        let expected = MetricError::NotAligned { what: "bootstrap replicates", first: 4, second: 2 };
        assert_eq!(unpaired_difference(&first, &short, 0.5, IntervalMethod::Percentile), Err(expected));
    }

    /// 300 pairs of cohorts of 40 and 80 subjects with one true mean: the 95 % interval excludes 0 in about 1 of 20.
    #[test]
    fn equal_populations_are_told_apart_as_rarely_as_the_level_says() {
        let mut rng = seeds::stream(11, "unpaired size", &[]);
        let mut sample =
            |n: usize| -> Vec<f64> { (0..n).map(|_| normal_quantile(rng.random_range(1e-9..1.0))).collect() };
        let mut rejected = 0;
        for trial in 0..300 {
            let (first, second) = (sample(40), sample(80));
            let found = Mean::of(&first, 300, trial).minus(&Mean::of(&second, 300, trial), IntervalMethod::Percentile);
            let excludes = found.interval.lower > 0.0 || found.interval.upper < 0.0;
            assert_eq!(excludes, found.p_value.unwrap() < 0.05, "{found:?}");
            rejected += usize::from(excludes);
        }
        // 15 expected; 4 standard errors of a share of 300 are 15.
        assert!((5..=30).contains(&rejected), "{rejected} of 300");
    }

    #[test]
    fn the_recovered_interval_of_symmetric_intervals_adds_variances() {
        let (lower, upper) = recovered_interval((1.0, 1.0 - 0.3, 1.0 + 0.3), (0.5, 0.5 - 0.4, 0.5 + 0.4));
        assert_abs_diff_eq!(lower, 0.0, epsilon = 1e-12);
        assert_abs_diff_eq!(upper, 1.0, epsilon = 1e-12);
        // Zou & Donner's ends of two different widths: lower end from l1 and u2, upper end from u1 and l2.
        assert_eq!(recovered_interval((10.0, 7.0, 14.0), (4.0, 1.0, 8.0)), (1.0, 11.0));
        assert_eq!(recovered_interval((0.5, 0.6, 0.7), (0.5, 0.5, 0.5)).0, 0.0, "an end beyond its value");
    }
}
