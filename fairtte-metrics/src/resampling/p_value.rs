//! The p value that belongs to a bootstrap interval: the smallest error level at which the interval excludes 0.
//!
//! An interval of level 1 - a contains 0 exactly if p > a, because p solves "an end of the interval is 0". With F the
//! inverse of the quantile function of the replicates: percentile p = 2 min(F(0), 1 - F(0)); basic the same with
//! F(2 v), 0 reflected at the value v; `BCa` the same with Phi(w / (1 + a w) - z0) for F, where w = Phi^-1(F(0)) - z0,
//! z0 is the bias and a the acceleration of the interval; studentised the same with Ft(v / se), Ft that of the replicates' distances in
//! standard errors. Sources: Efron & Tibshirani (1993), section 15.4 ("achieved
//! significance level"); Hall (1992), section 3.12 (tests by inversion of intervals).
//!
//! B replicates cannot resolve levels below 1 / (B + 1), so no p value is smaller (Davison & Hinkley 1997, equation
//! 4.11); where 1 / (B + 1) is not below a, there is no p value. Checked against the intervals themselves, by bisection.

use crate::MetricError;
use crate::estimators::kaplan_meier::check_level;
use crate::finite::finite;
use crate::resampling::intervals::Bca;
use crate::resampling::{IntervalMethod, Replicated};

impl Replicated<'_> {
    /// The two-sided p value of "the number is 0" in \[1 / (B + 1), 1\], for B defined replicates: the interval of level
    /// 1 - a of the same method contains 0 exactly if it is above a. `None` if B is too small for an interval of `level`,
    /// 1 / (B + 1) >= 1 - `level`. Cost: O(B log B).
    ///
    /// ```
    /// use fairtte_metrics::resampling::{IntervalMethod, Replicated};
    ///
    /// let replicates: Vec<Option<f64>> = (-1..=99).map(|k| Some(f64::from(k))).collect();
    /// let number = Replicated::new(49.0, &replicates);
    /// // 0 is the quantile 0.01 of the replicates.
    /// assert_eq!(number.p_value(0.95, IntervalMethod::Percentile)?, Some(0.02));
    /// assert!(number.interval(0.98, IntervalMethod::Percentile)?.lower.abs() < 1e-12);
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Replicated::interval`].
    pub fn p_value(&self, level: f64, method: IntervalMethod) -> Result<Option<f64>, MetricError> {
        check_level(level)?;
        let value = finite("value", self.value)?;
        let mut sorted = self.sorted()?;
        let mut zero = if method == IntervalMethod::Basic { 2.0 * value } else { 0.0 };
        if method == IntervalMethod::Studentised {
            let error;
            (error, sorted) = self.studentised()?;
            zero = value / error;
        }
        let resolution = 1.0 / (sorted.len() + 1) as f64;
        // 1 - 0.95 is a little above 1 / 20 in floating point.
        if resolution * (1.0 + 1e-9) >= 1.0 - level {
            return Ok(None);
        }
        let (mut up_to, mut from) = (share_up_to(&sorted, zero), share_from(&sorted, zero));
        if method == IntervalMethod::Bca {
            let bca = Bca::new(&sorted, value, self.jackknife)?;
            (up_to, from) = (bca.nominal(up_to), 1.0 - bca.nominal(1.0 - from));
        }
        Ok(Some((2.0 * up_to.min(from)).clamp(resolution, 1.0)))
    }
}

/// The largest p in \[0, 1\] whose quantile is at most `target`; 0 if there is none.
fn share_up_to(sorted: &[f64], target: f64) -> f64 {
    let after = sorted.iter().filter(|replicate| **replicate <= target).count();
    if after == 0 || after == sorted.len() {
        return if after == 0 { 0.0 } else { 1.0 };
    }
    let (below, above) = (sorted[after - 1], sorted[after]);
    place(after - 1, (target - below) / (above - below), sorted.len())
}

/// 1 - p for the smallest p in \[0, 1\] whose quantile is at least `target`; 0 if there is none. Counted from the upper
/// end, so that mirrored replicates have the same p value to the last bit.
fn share_from(sorted: &[f64], target: f64) -> f64 {
    let n = sorted.iter().filter(|replicate| **replicate >= target).count();
    if n == 0 || n == sorted.len() {
        return if n == 0 { 0.0 } else { 1.0 };
    }
    let (above, below) = (sorted[sorted.len() - n], sorted[sorted.len() - n - 1]);
    place(n - 1, (above - target) / (above - below), sorted.len())
}

fn place(below: usize, share: f64, n: usize) -> f64 {
    (below as f64 + share) / (n - 1) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::SubjectId;
    use crate::resampling::{Bootstrap, JackknifeValues, Nested, Resample};

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    proptest! {
        // Replicates on a coarse grid have ties, also with 0 and with the value.
        #[test]
        fn an_interval_contains_0_exactly_if_the_p_value_is_above_its_error_level(
            grid in prop::collection::vec(-20_i32..40, 60..120),
            coarse in any::<bool>(),
            value in -10_i32..30,
            blocks in prop::collection::vec(-8_i32..9, 5..30),
            alpha in 0.02_f64..0.98,
        ) {
            let jitter = |k: usize| if coarse { 0.0 } else { (k as f64 * 0.37).sin() };
            let replicates = grid.iter().enumerate().map(|(k, g)| Some(f64::from(*g) + jitter(k))).collect::<Vec<_>>();
            let jackknife = JackknifeValues::new(blocks.iter().map(|block| Some(f64::from(*block))).collect());
            let subjects: Vec<SubjectId> = (0..blocks.len()).map(|block| SubjectId::new(format!("s{block:02}"))).collect();
            let bootstrap = Bootstrap::new(&subjects, Resample::Subject, replicates.len(), 1);
            let nested = Nested::new(&bootstrap, blocks.len());
            // The standard errors of the replicates differ by up to a factor of 3.
            let left_out = |k: usize| {
                let (replicate, block) = (k / blocks.len(), k % blocks.len());
                let spread = 0.5 + (replicate % 7) as f64 / 6.0;
                replicates[replicate].map(|value| value + spread * ((3 * block + replicate) % 5) as f64)
            };
            let nested = nested.collect(jackknife.clone(), (0..nested.n()).map(left_out).collect()).unwrap();
            let number = Replicated::new(f64::from(value), &replicates).with_jackknife(&jackknife).with_nested(&nested);
            for method in
                [IntervalMethod::Percentile, IntervalMethod::Basic, IntervalMethod::Bca, IntervalMethod::Studentised]
            {
                let found = number.interval(1.0 - alpha, method).and_then(|i| Ok((i, number.p_value(0.95, method)?)));
                let Ok((interval, Some(p))) = found else {
                    let has_error = blocks.iter().any(|block| *block != blocks[0]);
                    let may_be_undefined = method == IntervalMethod::Bca
                        || (method == IntervalMethod::Studentised && !has_error);
                    prop_assert!(may_be_undefined, "{:?}: {:?}", method, found);
                    continue;
                };
                let contains = interval.lower <= 0.0 && interval.upper >= 0.0;
                prop_assume!((p - alpha).abs() > 1e-9);
                prop_assert_eq!(contains, p > alpha, "{:?} {} {:?}", method, p, interval);
            }
        }
    }

    #[test]
    fn few_replicates_have_no_p_value_and_many_none_below_their_resolution() {
        let p = |n: usize, level| {
            Replicated::new(1.0, &some(&vec![1.0; n])).p_value(level, IntervalMethod::Percentile).unwrap()
        };
        assert_eq!((p(19, 0.95), p(20, 0.95), p(4, 0.5)), (None, Some(1.0 / 21.0), Some(0.2)));
        assert!(Replicated::new(1.0, &[None]).p_value(0.95, IntervalMethod::Basic).is_err());
        let no_jackknife = Replicated::new(1.0, &some(&[1.0; 30])).p_value(0.95, IntervalMethod::Bca);
        assert!(matches!(no_jackknife, Err(MetricError::BcaUndefined { .. })));
    }
}
