//! Confidence intervals from bootstrap replicates: percentile, basic, `BCa` and studentised.
//!
//! With value v, defined replicates v*(b), b = 1..B, alpha = (1 - level) / 2 and Q the linear quantile of the
//! replicates (the default of `numpy.quantile`):
//! percentile [Q(alpha), Q(1 - alpha)]; basic [2 v - Q(1 - alpha), 2 v - Q(alpha)]; `BCa` [Q(a1), Q(a2)] with
//! a1 = Phi(z0 + (z0 + z) / (1 - a (z0 + z))), z = Phi^-1(alpha), and a2 the same with -z;
//! z0 = Phi^-1((#{v* < v} + #{v* <= v}) / 2 B), so replicates equal to v count one half; a from `jackknife.rs`;
//! studentised [v - se Qt(1 - alpha), v - se Qt(alpha)] with Qt the quantile of t*(b) = (v*(b) - v) / se*(b), and se, se*(b) the
//! standard errors of `nested.rs`; replicates without a standard error are left out and counted.
//! Sources: Efron (1987), doi:10.1080/01621459.1987.10478410; Efron & Tibshirani (1993), sections 13.3 and 14.3;
//! Davison & Hinkley (1997), section 5.2; studentised: Hall (1988), doi:10.1214/aos/1176350933. Golden values: `scipy.stats.bootstrap` 1.17.1 and `numpy.quantile` 2.4.
//!
//! Where we differ from scipy: it returns NaN (or the two smallest replicates) where `BCa` does not exist. Here equal
//! jackknife values mean a = 0, so that replicates which all equal v give [v, v], and what is left is an error:
//! all replicates on one side of v (z0 infinite), or a level so high that 1 - a (z0 + z) <= 0. A replicate in which the
//! value is undefined is left out and counted; the interval then describes the replicates that define it.

use serde::{Deserialize, Serialize};

use crate::estimators::kaplan_meier::check_level;
use crate::normal::normal_quantile;
use crate::resampling::bootstrap::quantile;
use crate::resampling::jackknife::JackknifeValues;
use crate::resampling::nested::NestedValues;
use crate::{MetricError, finite::finite};

/// How replicates become an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IntervalMethod {
    /// Quantiles of the replicates. Never leaves the range of the metric; too narrow in small samples.
    #[default]
    Percentile,
    /// The quantiles reflected at the value: corrects a bias of the replicates, but may leave the range of the metric.
    Basic,
    /// Bias-corrected and accelerated: the quantiles shifted for bias and skewness. Needs jackknife values.
    Bca,
    /// Quantiles of the distance from the value in standard errors of the replicate. Needs leave-out values of every replicate,
    /// so that it costs about 20 times as much; may leave the range of the metric.
    Studentised,
}

/// A bootstrap interval and the number of replicates behind it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Interval {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// How it was computed.
    pub method: IntervalMethod,
    /// Replicates drawn.
    pub n_replicates: usize,
    /// Replicates in which the value does not exist; the interval is computed from the others.
    pub n_undefined: usize,
}

/// A number with its bootstrap replicates and, for `BCa`, its jackknife values.
///
/// ```
/// use fairtte_metrics::resampling::{IntervalMethod, Replicated};
///
/// let replicates: Vec<Option<f64>> = [1.0, 2.0, 4.0, 8.0].map(Some).to_vec();
/// let interval = Replicated::new(3.0, &replicates).interval(0.5, IntervalMethod::Percentile)?;
/// assert_eq!((interval.lower, interval.upper), (1.75, 5.0)); // places 0.75 and 2.25 of 0, 1, 2, 3
/// let interval = Replicated::new(3.0, &replicates).interval(0.5, IntervalMethod::Basic)?;
/// assert_eq!((interval.lower, interval.upper), (1.0, 4.25));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Replicated<'a> {
    /// The value of the sample itself.
    pub value: f64,
    /// Its value in every bootstrap replicate; `None` where it does not exist.
    pub replicates: &'a [Option<f64>],
    /// Its values with one block of units left out at a time.
    pub jackknife: Option<&'a JackknifeValues>,
    /// Its values and those of every replicate with one block left out at a time.
    pub nested: Option<&'a NestedValues>,
}

impl<'a> Replicated<'a> {
    /// A value and its replicates.
    pub fn new(value: f64, replicates: &'a [Option<f64>]) -> Self {
        Self { value, replicates, jackknife: None, nested: None }
    }

    /// The same with the jackknife values that `BCa` needs.
    #[must_use]
    pub fn with_jackknife(self, jackknife: &'a JackknifeValues) -> Self {
        Self { jackknife: Some(jackknife), ..self }
    }

    /// The same with the leave-out values that a studentised interval needs.
    #[must_use]
    pub fn with_nested(self, nested: &'a NestedValues) -> Self {
        Self { nested: Some(nested), ..self }
    }

    /// The interval of `level`, for example 0.95. Cost: O(B log B).
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`] if `level` is not in (0, 1), [`MetricError::NoDefinedReplicate`] without any
    /// defined replicate, [`MetricError::NotFinite`] if the value, a replicate or an end of the interval is not a
    /// finite number; for `BCa` [`MetricError::BcaUndefined`] and those of [`JackknifeValues::acceleration`]; for studentised
    /// intervals [`MetricError::StudentisedUndefined`].
    pub fn interval(&self, level: f64, method: IntervalMethod) -> Result<Interval, MetricError> {
        check_level(level)?;
        let value = finite("value", self.value)?;
        let mut sorted = self.sorted()?;
        let alpha = (1.0 - level) / 2.0;
        let (lower, upper) = match method {
            IntervalMethod::Percentile => (quantile(&sorted, alpha), quantile(&sorted, 1.0 - alpha)),
            IntervalMethod::Basic => {
                (2.0 * value - quantile(&sorted, 1.0 - alpha), 2.0 * value - quantile(&sorted, alpha))
            }
            IntervalMethod::Bca => {
                let (low, high) = Bca::new(&sorted, value, self.jackknife)?.levels(alpha)?;
                (quantile(&sorted, low), quantile(&sorted, high))
            }
            IntervalMethod::Studentised => {
                let error;
                (error, sorted) = self.studentised()?;
                (value - error * quantile(&sorted, 1.0 - alpha), value - error * quantile(&sorted, alpha))
            }
        };
        Ok(Interval {
            lower: finite("lower end of the interval", lower)?,
            upper: finite("upper end of the interval", upper)?,
            method,
            n_replicates: self.replicates.len(),
            n_undefined: self.replicates.len() - sorted.len(),
        })
    }

    /// Standard deviation of the defined replicates, with divisor B - 1.
    ///
    /// # Errors
    /// [`MetricError::NoDefinedReplicate`] with fewer than two of them, [`MetricError::NotFinite`] if one is not a
    /// finite number.
    pub fn standard_error(&self) -> Result<f64, MetricError> {
        let sorted = self.sorted()?;
        if sorted.len() < 2 {
            return Err(MetricError::NoDefinedReplicate { n_defined: 1, n_replicates: self.replicates.len() });
        }
        let n = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let squares: f64 = sorted.iter().map(|value| (value - mean) * (value - mean)).sum();
        finite("standard error", (squares / (n - 1.0)).sqrt())
    }

    /// The standard error of the value, and the distances of the replicates from it in standard errors of their own, in ascending
    /// order, at least one.
    pub(super) fn studentised(&self) -> Result<(f64, Vec<f64>), MetricError> {
        let undefined = |reason| MetricError::StudentisedUndefined { reason };
        let nested = self.nested.ok_or(undefined("no leave-out values of replicates were given"))?;
        let error =
            nested.standard_error().ok_or(undefined("the standard error of the value does not exist or is 0"))?;
        let errors = nested.standard_errors(self.replicates.len());
        let in_errors = self.replicates.iter().zip(errors).filter_map(|(replicate, error)| {
            Some(finite("bootstrap replicate in standard errors", ((*replicate)? - self.value) / error?))
        });
        let mut sorted = in_errors.collect::<Result<Vec<f64>, _>>()?;
        if sorted.is_empty() {
            return Err(undefined("no replicate has a standard error"));
        }
        sorted.sort_by(f64::total_cmp);
        Ok((error, sorted))
    }

    /// The defined replicates in ascending order, at least one.
    pub(super) fn sorted(&self) -> Result<Vec<f64>, MetricError> {
        let defined = self.replicates.iter().flatten();
        let mut sorted = defined.map(|&value| finite("bootstrap replicate", value)).collect::<Result<Vec<f64>, _>>()?;
        if sorted.is_empty() {
            return Err(MetricError::NoDefinedReplicate { n_defined: 0, n_replicates: self.replicates.len() });
        }
        sorted.sort_by(f64::total_cmp);
        Ok(sorted)
    }
}

const NO_JACKKNIFE: MetricError = MetricError::BcaUndefined { reason: "no jackknife values were given" };

/// The two corrections of `BCa`.
pub(super) struct Bca {
    /// z0.
    bias: f64,
    /// a.
    acceleration: f64,
}

impl Bca {
    pub(super) fn new(sorted: &[f64], value: f64, jackknife: Option<&JackknifeValues>) -> Result<Self, MetricError> {
        let acceleration = jackknife.ok_or(NO_JACKKNIFE)?.acceleration()?;
        // Comparisons, not partition points of the sorted values: -0.0 and 0.0 are equal here.
        let (below, up_to) = sorted.iter().fold((0_usize, 0_usize), |(below, up_to), replicate| {
            (below + usize::from(*replicate < value), up_to + usize::from(*replicate <= value))
        });
        if up_to == 0 || below == sorted.len() {
            let reason = "all replicates lie on one side of the value, so that its bias cannot be estimated";
            return Err(MetricError::BcaUndefined { reason });
        }
        let bias = normal_quantile((below + up_to) as f64 / (2 * sorted.len()) as f64);
        Ok(Self { bias, acceleration })
    }

    /// The levels of the quantiles that an interval with `alpha` on each side takes, in ascending order.
    fn levels(&self, alpha: f64) -> Result<(f64, f64), MetricError> {
        let Self { bias, acceleration } = *self;
        let moved = |z: f64| {
            let slope = 1.0 - acceleration * (bias + z);
            (slope > 0.0).then(|| normal_share(bias + (bias + z) / slope))
        };
        let z = normal_quantile(alpha);
        moved(z).zip(moved(-z)).ok_or(MetricError::BcaUndefined {
            reason: "the level is too high for the skewness of the value: the accelerated quantile does not exist",
        })
    }

    /// The inverse of [`levels`](Self::levels): the nominal share of which the corrected one is `share`.
    pub(super) fn nominal(&self, share: f64) -> f64 {
        if share <= 0.0 || share >= 1.0 {
            return share;
        }
        let moved = normal_quantile(share) - self.bias;
        let slope = 1.0 + self.acceleration * moved;
        if slope > 0.0 {
            normal_share(moved / slope - self.bias)
        } else {
            // No level reaches it.
            if moved < 0.0 { 0.0 } else { 1.0 }
        }
    }
}

/// The probability that a standard normal variable is at most `z`, to an absolute 1e-15, which is what the place of a
/// quantile needs: the series 1/2 + phi(z) (z + z^3 / 3 + z^5 / (3 * 5) + ..), whose terms all have the sign of z
/// (Marsaglia 2004, doi:10.18637/jss.v011.i04). The error function of statrs 0.18 is only good to 1e-10.
fn normal_share(z: f64) -> f64 {
    let z = z.clamp(-9.0, 9.0); // less than 1e-18 is beyond
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while term.abs() > 0.1 * f64::EPSILON * sum.abs() {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    (0.5 + density * sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use approx::{assert_abs_diff_eq, assert_relative_eq};

    use super::*;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn bca_matches_scipy() {
        // scipy 1.17.1: scipy.stats.bootstrap((x,), np.mean, n_resamples=0, method="BCa", bootstrap_result=r) where the
        // distribution of r is the list of replicates and x = [1, 2, 4, 8, 16].
        let replicates = some(&REPLICATES);
        // The mean of x with one value left out at a time.
        let jackknife = JackknifeValues::new(some(&[7.5, 7.25, 6.75, 5.75, 3.75]));
        let interval = Replicated::new(6.2, &replicates).with_jackknife(&jackknife);
        let found = |level| interval.interval(level, IntervalMethod::Bca).unwrap();
        for (level, lower, upper) in SCIPY_BCA {
            assert_relative_eq!(found(level).lower, lower, max_relative = 1e-13);
            assert_relative_eq!(found(level).upper, upper, max_relative = 1e-13);
        }
        assert_relative_eq!(interval.standard_error().unwrap(), SCIPY_SE, max_relative = 1e-14);
    }

    #[test]
    fn normal_shares_match_scipy() {
        // scipy.special.ndtr 1.17.1.
        let golden = [
            (-1.23, 0.109_348_552_425_691_91),
            (-0.3, 0.382_088_577_811_047_4),
            (0.7, 0.758_036_347_776_927),
            (1.5, 0.933_192_798_731_141_9),
            (-2.7, 0.003_466_973_803_040_664_7),
            (-6.0, 9.865_876_450_376_946e-10),
        ];
        for (z, expected) in golden {
            assert_abs_diff_eq!(normal_share(z), expected, epsilon = 1e-15);
        }
        assert_eq!(normal_share(0.0), 0.5);
        assert_abs_diff_eq!(normal_share(1e200), 1.0, epsilon = 1e-15);
        assert_abs_diff_eq!(normal_share(f64::NEG_INFINITY), 0.0, epsilon = 1e-15);
    }

    #[test]
    fn undefined_replicates_are_left_out_and_counted() {
        let replicates = [Some(1.0), None, Some(3.0), None, Some(2.0)];
        let interval = Replicated::new(2.0, &replicates).interval(0.5, IntervalMethod::Percentile).unwrap();
        assert_eq!((interval.lower, interval.upper), (1.5, 2.5));
        assert_eq!((interval.n_replicates, interval.n_undefined), (5, 2));
        let none = Replicated::new(2.0, &[None, None]).interval(0.5, IntervalMethod::Basic);
        assert_eq!(none, Err(MetricError::NoDefinedReplicate { n_defined: 0, n_replicates: 2 }));
        let one = Replicated::new(2.0, &[None, Some(1.0)]).standard_error();
        assert_eq!(one, Err(MetricError::NoDefinedReplicate { n_defined: 1, n_replicates: 2 }));
    }

    #[test]
    fn replicates_that_all_equal_the_value_give_a_point() {
        let (replicates, jackknife) = (some(&[0.1; 7]), JackknifeValues::new(some(&[0.1; 5])));
        let number = Replicated::new(0.1, &replicates).with_jackknife(&jackknife);
        for method in [IntervalMethod::Percentile, IntervalMethod::Basic, IntervalMethod::Bca] {
            let interval = number.interval(0.95, method).unwrap();
            assert_abs_diff_eq!(interval.lower, 0.1, epsilon = 1e-16);
            assert_abs_diff_eq!(interval.upper, 0.1, epsilon = 1e-16);
        }
    }

    #[test]
    fn bca_says_why_it_does_not_exist() {
        let replicates = some(&[1.0, 2.0, 3.0]);
        let jackknife = JackknifeValues::new(some(&[1.0, 1.0, 4.0]));
        let reason = |value, level, jackknife: Option<&JackknifeValues>| {
            let number = Replicated { value, replicates: &replicates, jackknife, nested: None };
            match number.interval(level, IntervalMethod::Bca).unwrap_err() {
                MetricError::BcaUndefined { reason } => reason,
                other => panic!("{other}"),
            }
        };
        assert!(reason(2.0, 0.95, None).contains("no jackknife"));
        assert!(reason(0.5, 0.95, Some(&jackknife)).contains("one side"));
        assert!(reason(3.5, 0.95, Some(&jackknife)).contains("one side"));
        // The acceleration of 100 values of which one is smaller is 0.164, and z = 8.2 exceeds 1 / 0.164 = 6.1.
        let mut values = vec![1.0; 100];
        values[0] = 0.0;
        assert!(reason(2.0, 1.0 - f64::EPSILON, Some(&JackknifeValues::new(some(&values)))).contains("level"));
    }

    #[test]
    fn what_is_no_finite_number_is_refused() {
        let interval = |value, replicate| {
            Replicated::new(value, &[Some(replicate), Some(0.5)]).interval(0.9, IntervalMethod::Basic)
        };
        assert!(matches!(interval(f64::NAN, 0.5), Err(MetricError::NotFinite { what: "value", .. })));
        assert!(matches!(
            interval(0.5, f64::INFINITY),
            Err(MetricError::NotFinite { what: "bootstrap replicate", .. })
        ));
        assert!(matches!(interval(f64::MAX, 0.5), Err(MetricError::NotFinite { .. })));
        assert!(matches!(interval(0.5, f64::MAX), Ok(Interval { .. })));
        assert!(Replicated::new(0.5, &[Some(0.5)]).interval(1.0, IntervalMethod::Percentile).is_err());
    }

    const REPLICATES: [f64; 12] = [3.0, 4.4, 5.0, 5.8, 6.0, 6.2, 6.2, 7.0, 8.2, 9.6, 10.0, 12.4];
    const SCIPY_BCA: [(f64, f64, f64); 2] =
        [(0.9, 4.062_784_832_329_815, 11.543_558_167_306_921), (0.6, 5.271_568_192_321_25, 9.529_814_005_613_703)];
    const SCIPY_SE: f64 = 2.642_943_721_525_586;
}
