//! Wilcoxon signed-rank test: do paired values differ systematically?
//!
//! The absolute differences are ranked (mid-ranks for ties); W+ and W- are the rank sums of the positive and of the
//! negative differences. Null hypothesis: the differences are symmetric around 0. Normal approximation:
//! `z = (W+ - m(m+1)/4 - c) / sqrt((m(m+1)(2m+1) - sum(t^3 - t) / 2) / 24)` over m ranked differences with ties of t, with
//! c = 1/2 towards 0 as continuity correction (Wilcoxon, Biometrics Bulletin 1 (1945) 80-83, DOI 10.2307/3001968).
//!
//! Zero differences: [`ZeroDifferences`]. "Exact" has three meanings in the packages, see [`SignedRankMethod`]: the
//! permutation distribution given ties and zeros (ours at every size, scipy's only up to n = 13), scipy's `exact`, which
//! uses the table for untied ranks even for tied ones, and R's, which turns to the normal approximation then.
//!
//! Golden values: `scipy.stats.wilcoxon` 1.17.1 and `stats::wilcox.test(paired = TRUE)` of R 4.2.2.

use serde::{Deserialize, Serialize};

use super::ranks::MidRanks;
use super::signed_rank_distribution::SignedRankDistribution;
use super::signed_rank_settings::{Alternative, SignedRankMethod, SignedRankNull, SignedRankSettings, ZeroDifferences};
use super::tails::normal_upper;
use crate::MetricError;

/// Sample sizes in the rules of other packages.
const SCIPY_LARGEST_EXACT: usize = 50;
const SCIPY_LARGEST_PERMUTATION: usize = 13;
const R_FIRST_NORMAL: usize = 50;

/// Rank sums, p value and the counts behind them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SignedRankTest {
    /// W+, the rank sum of the positive differences (R's V if zeros are dropped).
    pub positive_rank_sum: f64,
    /// W-, the rank sum of the negative differences.
    pub negative_rank_sum: f64,
    /// p value in [0, 1].
    pub p_value: f64,
    /// The standardised W+, positive if the first values are larger; only for the normal approximation.
    pub z: Option<f64>,
    /// The null distribution that p was taken from.
    pub null: SignedRankNull,
    /// Pairs.
    pub n: usize,
    /// Pairs without a difference.
    pub n_zero: usize,
    /// Differences other than 0 whose size occurs more than once.
    pub n_tied: usize,
}

impl SignedRankTest {
    /// The smaller rank sum: what scipy reports for the two-sided test.
    pub fn smaller_rank_sum(&self) -> f64 {
        self.positive_rank_sum.min(self.negative_rank_sum)
    }
}

/// Tests whether `first` and `second`, `n` values each in the same order, differ systematically.
///
/// Ties are exact equality of the absolute differences as computed in `f64`; round first if values that should tie were
/// computed in different ways.
///
/// ```
/// use fairtte_metrics::statistics::{SignedRankSettings, wilcoxon_signed_rank};
///
/// // Differences 1, 2, 3, -4: W+ = 6 and W- = 4. Of the 16 sign patterns 7 have W- <= 4, so p = 2 * 7 / 16.
/// let test = wilcoxon_signed_rank(&[11., 12., 13., 14.], &[10., 10., 10., 18.], &SignedRankSettings::default())?;
/// assert_eq!((test.positive_rank_sum, test.negative_rank_sum, test.p_value), (6.0, 4.0, 0.875));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// If the lengths differ, there is no pair, a difference is not finite, no z exists because all ranked differences are
/// 0, or an exact distribution is asked for more than
/// [`MAX_EXACT_DIFFERENCES`](super::MAX_EXACT_DIFFERENCES) ranked differences.
///
/// Cost: O(n log n) for the normal approximation, up to O(n^3) for exact ones (n = 200: a few milliseconds).
pub fn wilcoxon_signed_rank(
    first: &[f64],
    second: &[f64],
    settings: &SignedRankSettings,
) -> Result<SignedRankTest, MetricError> {
    if first.len() != second.len() {
        let what = "values of the second sample";
        return Err(MetricError::LengthMismatch { what, found: second.len(), expected: first.len() });
    }
    let differences: Vec<f64> = first.iter().zip(second).map(|(first, second)| first - second).collect();
    wilcoxon_of_differences(&differences, settings)
}

/// As [`wilcoxon_signed_rank`], from the `n` differences first minus second.
///
/// # Errors
/// As [`wilcoxon_signed_rank`].
pub fn wilcoxon_of_differences(
    differences: &[f64],
    settings: &SignedRankSettings,
) -> Result<SignedRankTest, MetricError> {
    let signed = SignedRanks::of(differences, settings.zeros)?;
    let null = signed.choose(settings.method);
    let (p_value, z) = match null {
        SignedRankNull::Exact => (signed.exact(settings.alternative)?, None),
        SignedRankNull::UntiedTable => (signed.untied_table(settings.alternative)?, None),
        SignedRankNull::Normal => signed.normal(settings.alternative, false)?,
        SignedRankNull::NormalCorrected => signed.normal(settings.alternative, true)?,
    };
    Ok(SignedRankTest {
        positive_rank_sum: (2 * signed.positive + signed.zero_quarters()) as f64 / 4.0,
        negative_rank_sum: (2 * signed.negative + signed.zero_quarters()) as f64 / 4.0,
        p_value,
        z,
        null,
        n: differences.len(),
        n_zero: signed.n_zero,
        n_tied: signed.n_tied,
    })
}

/// The ranked differences.
struct SignedRanks {
    zeros: ZeroDifferences,
    /// Twice the ranks of the differences other than 0.
    doubled: Vec<u64>,
    /// Twice the rank sums of the positive and the negative differences, without any share of the zeros.
    positive: u64,
    negative: u64,
    n_zero: usize,
    n_tied: usize,
    /// Sum of `t^3 - t` over the ties among the differences other than 0.
    tie_sum: u128,
}

impl SignedRanks {
    fn of(differences: &[f64], zeros: ZeroDifferences) -> Result<Self, MetricError> {
        if differences.is_empty() {
            return Err(MetricError::NoSamples);
        }
        if let Some((row, &value)) = differences.iter().enumerate().find(|(_, difference)| !difference.is_finite()) {
            return Err(MetricError::InvalidDifference { row, value });
        }
        let other: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
        let n_zero = differences.len() - other.len();
        let sizes: Vec<f64> = other.iter().map(|difference| difference.abs()).collect();
        let MidRanks { mut doubled, tie_sum, n_tied } = MidRanks::of(&sizes);
        if zeros != ZeroDifferences::Drop {
            // The zeros take the first places, so every other rank moves up by their number.
            for rank in &mut doubled {
                *rank += 2 * n_zero as u64;
            }
        }
        let sum_where = |positive: bool| {
            let of_sign = other.iter().zip(&doubled).filter(|(difference, _)| (**difference > 0.0) == positive);
            of_sign.map(|(_, rank)| rank).sum()
        };
        Ok(Self { zeros, positive: sum_where(true), negative: sum_where(false), doubled, n_zero, n_tied, tie_sum })
    }

    /// Ranked differences: the ranks are 1 to this number.
    fn n_ranked(&self) -> usize {
        self.doubled.len() + if self.zeros == ZeroDifferences::Drop { 0 } else { self.n_zero }
    }

    /// Four times what either rank sum gets from the zeros.
    fn zero_quarters(&self) -> u64 {
        let n = self.n_zero as u64;
        if self.zeros == ZeroDifferences::Split { n * (n + 1) } else { 0 }
    }

    /// The null distribution that a method takes for these differences.
    fn choose(&self, method: SignedRankMethod) -> SignedRankNull {
        let normal = |continuity_correction| {
            if continuity_correction { SignedRankNull::NormalCorrected } else { SignedRankNull::Normal }
        };
        let (n_other, n) = (self.doubled.len(), self.doubled.len() + self.n_zero);
        let clean = self.n_zero == 0 && self.n_tied == 0;
        let (exact, continuity_correction) = match method {
            SignedRankMethod::UntiedTable => return SignedRankNull::UntiedTable,
            SignedRankMethod::Exact => (true, false),
            SignedRankMethod::Normal { continuity_correction } => (false, continuity_correction),
            SignedRankMethod::ScipyAuto { continuity_correction } => {
                let largest = if clean { SCIPY_LARGEST_EXACT } else { SCIPY_LARGEST_PERMUTATION };
                (n <= largest, continuity_correction)
            }
            SignedRankMethod::ExactUnlessTied { continuity_correction } => (clean, continuity_correction),
            SignedRankMethod::RDefault { continuity_correction } => {
                (clean && n_other < R_FIRST_NORMAL, continuity_correction)
            }
        };
        if exact { SignedRankNull::Exact } else { normal(continuity_correction) }
    }

    fn exact(&self, alternative: Alternative) -> Result<f64, MetricError> {
        // The zeros' share of a rank sum is the same under all sign patterns, so it plays no part.
        let null = SignedRankDistribution::of(&self.doubled, self.n_ranked())?;
        Ok(tail(alternative, || null.at_most(self.positive), || null.at_least(self.positive)))
    }

    fn untied_table(&self, alternative: Alternative) -> Result<f64, MetricError> {
        let null = SignedRankDistribution::untied(self.n_ranked())?;
        // Quarters of a rank arise when zeros are split; both roundings below go to whole ranks.
        let quarters = 2 * self.positive + self.zero_quarters();
        let (up, down) = (2 * quarters.div_ceil(4), 2 * (quarters / 4));
        Ok(tail(alternative, || null.at_most(up), || null.at_least(down)))
    }

    fn normal(&self, alternative: Alternative, corrected: bool) -> Result<(f64, Option<f64>), MetricError> {
        let deviation = self.normal_deviation();
        // W+ minus its mean is half the difference of the rank sums, also when zeros are dropped or split.
        let excess = (self.positive as f64 - self.negative as f64) / 4.0;
        let correction = match alternative {
            _ if !corrected => 0.0,
            Alternative::Greater => 0.5,
            Alternative::Less => -0.5,
            Alternative::TwoSided if excess == 0.0 => 0.0,
            Alternative::TwoSided => 0.5_f64.copysign(excess),
        };
        if deviation == 0.0 {
            // W+ can only be 0. Moved away from the alternative by 1/2 it is infinitely many standard deviations off: p
            // is 1.
            let error = MetricError::NoSignedRanks { n: self.doubled.len() + self.n_zero };
            return if correction == 0.0 { Err(error) } else { Ok((1.0, None)) };
        }
        let z = (excess - correction) / deviation;
        let p = match alternative {
            Alternative::TwoSided => (2.0 * normal_upper(z.abs())).min(1.0),
            Alternative::Greater => normal_upper(z),
            Alternative::Less => normal_upper(-z),
        };
        Ok((p, Some(z)))
    }

    /// Standard deviation of W+ as in scipy: ranked zeros are taken out of it with Pratt's treatment (Cureton, JASA 62
    /// (1967) 1068-1069), and count as one more tie when they are split.
    fn normal_deviation(&self) -> f64 {
        // Twice n (n + 1) (2 n + 1), in whole numbers: with many zeros two large ones are subtracted.
        let pyramid = |n: usize| 2 * n as u128 * (n as u128 + 1) * (2 * n as u128 + 1);
        let n_zero = self.n_zero as u128;
        let taken_out = match self.zeros {
            ZeroDifferences::Drop => 0,
            ZeroDifferences::Pratt => pyramid(self.n_zero),
            ZeroDifferences::Split => n_zero.pow(3) - n_zero,
        };
        ((pyramid(self.n_ranked()) - taken_out - self.tie_sum) as f64 / 48.0).sqrt()
    }
}

fn tail(alternative: Alternative, at_most: impl Fn() -> f64, at_least: impl Fn() -> f64) -> f64 {
    match alternative {
        Alternative::TwoSided => (2.0 * at_most().min(at_least())).min(1.0),
        Alternative::Greater => at_least(),
        Alternative::Less => at_most(),
    }
}

#[cfg(test)]
mod tests;
