//! Range of k independent standard normal variables (the studentized range with infinite degrees of freedom).
//!
//! With the smallest of the k at z,
//! `P(range > q) = k * integral over z of phi(z) [U(z)^(k-1) - (U(z) - U(z+q))^(k-1)]`, U the upper normal tail: the
//! complement of Lund & Lund, Algorithm AS 190, Applied Statistics 32 (1983) 204-210, written as one positive integrand
//! so that a small p keeps its digits. The trapezoid rule converges geometrically in its step for this integrand
//! (smooth, vanishing at both ends): step 1/20 agrees with mpmath 1.4.1 (40 digits) to 1e-12 for k up to 1,000 and p
//! down to 1e-100. scipy 1.17.1 forms `1 - cdf` from a cdf that is good to 3e-16, so its tails are good to about 1e-15
//! absolute and no better; its quantiles agree to 5e-16.
//!
//! [`gleason_quantile`] is the approximation behind `statsmodels` (`qsturng`) and `autorank`: Gleason, "An accurate,
//! non-iterative approximation for studentized range quantiles", Computational Statistics & Data Analysis 31 (1999)
//! 147-158, with the coefficients of statsmodels 0.15 for infinite degrees of freedom.

use std::f64::consts::{PI, SQRT_2};

use super::tails::normal_upper;
use crate::normal::normal_quantile;

const STEP: f64 = 0.05;
/// The integrand is negligible where the smallest of the variables is above this, for any k and q.
const LAST: f64 = 9.5;
const MAX_STEPS: usize = 200;

/// P(range > q) of `k >= 2` standard normal variables, and its density at q, for finite `q >= 0`.
fn tail_and_density(q: f64, k: usize) -> (f64, f64) {
    let others = k as f64 - 1.0;
    // Below this the normal density is under 1e-19 of the result, which is at least of the size of exp(-q^2 / 4).
    let first = -(0.5 * q * q + 90.0).sqrt();
    let density_at = |z: f64| (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
    let (mut tail, mut density, mut z) = (0.0, 0.0, first);
    while z < LAST {
        let (above, beyond) = (normal_upper(z), normal_upper(z + q));
        // ln of the chance that one of the others lies within q above z, given that it lies above z.
        // Kept finite, as 0 times an infinity has no value.
        let within = (-beyond / above).ln_1p().max(-800.0);
        // Far below, `above` is 1 up to a rounding that many variables would make large.
        let ln_above = if z < 0.0 { (-normal_upper(-z)).ln_1p() } else { above.ln() };
        let weight = density_at(z) * (others * ln_above).exp();
        tail -= weight * (others * within).exp_m1();
        density += weight / above * ((others - 1.0) * within).exp() * density_at(z + q);
        z += STEP;
    }
    let k = k as f64;
    (k * STEP * tail, k * others * STEP * density)
}

/// P(range > q) of `k >= 2` standard normal variables, for finite `q >= 0`.
pub(super) fn range_upper(q: f64, k: usize) -> f64 {
    if q <= 0.0 {
        return 1.0;
    }
    tail_and_density(q, k).0.min(1.0)
}

/// The q >= 0 with P(range > q) = `alpha`, for `alpha` in [1e-100, 1); finite for any k.
pub(super) fn range_quantile(alpha: f64, k: usize) -> f64 {
    // The sum over all pairs bounds the tail from above, so this start lies at or beyond the solution; the logarithm of
    // the tail is concave, so Newton's steps approach from there without overshooting.
    let pairs = k as f64 * (k as f64 - 1.0);
    let mut q = -SQRT_2 * normal_quantile(alpha / pairs);
    // Near alpha = 1 the tail and its density are rounding noise, and so are Newton's steps: those that leave the
    // current bracket are replaced by its midpoint.
    let (mut low, mut high) = (0.0, q);
    for _ in 0..MAX_STEPS {
        let (tail, density) = tail_and_density(q, k);
        let mut step = (tail / alpha).ln() * tail / density;
        if tail > alpha {
            low = q;
        } else {
            high = q;
        }
        if !(low..=high).contains(&(q + step)) {
            step = f64::midpoint(low, high) - q;
        }
        q += step;
        if step.abs() <= 2.0 * f64::EPSILON * q {
            break;
        }
    }
    q
}

/// Significance levels of the table, and its coefficients for infinite degrees of freedom.
const GLEASON: [(f64, [f64; 4]); 6] = [
    (
        0.1,
        [
            -0.353_118_063_430_571_67,
            -0.009_625_402_009_214_535,
            0.005_454_859_120_817_718,
            -0.000_453_439_166_349_684_93,
        ],
    ),
    (
        0.05,
        [
            -0.278_855_700_641_692_96,
            -0.007_812_245_552_484_922,
            0.004_179_853_805_362_345,
            -0.000_346_949_488_177_460_9,
        ],
    ),
    (
        0.025,
        [
            -0.230_041_050_931_192_68,
            -0.006_711_258_517_413_357,
            0.003_276_025_163_891_943_5,
            -0.000_262_440_013_194_629_9,
        ],
    ),
    (
        0.01,
        [
            -0.186_020_702_557_871_37,
            -0.006_212_115_516_536_319,
            0.002_632_829_342_076_659_3,
            -0.000_204_533_665_298_671_3,
        ],
    ),
    (
        0.005,
        [
            -0.162_139_218_754_524_6,
            -0.005_898_599_863_049_614_4,
            0.002_260_581_936_368_909_3,
            -0.000_168_962_114_911_191_14,
        ],
    ),
    (
        0.001,
        [-0.123_972_135_626_666_73, -0.005_690_120_160_415, 0.001_826_068_940_695_712_9, -0.000_132_634_525_679_954_85],
    ),
];

/// Gleason's approximation of [`range_quantile`], within about 0.02 %; `None` for a level that is not in the table.
pub(super) fn gleason_quantile(alpha: f64, k: usize) -> Option<f64> {
    let (level, coefficients) = GLEASON.iter().find(|(level, _)| (level - alpha).abs() < 1e-12)?;
    let x = (k as f64 - 1.0).ln();
    let mut correction = coefficients.iter().rev().fold(0.0, |sum, coefficient| (sum + coefficient) * x);
    if k == 3 {
        // The correction for three means; its second part, 1 / (191 df), vanishes.
        correction -= 0.002 / (1.0 + 12.0 * normal_quantile(*level).powi(2));
    }
    Some(-SQRT_2 * (1.0 - correction) * normal_quantile(level / 2.0))
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;

    #[test]
    fn the_range_of_two_is_a_normal_difference() {
        for q in [1e-6, 0.3, 1.0, 3.5, 9.0, 30.0] {
            assert_relative_eq!(range_upper(q, 2), 2.0 * normal_upper(q / SQRT_2), max_relative = 1e-12);
        }
        for alpha in [0.9, 0.05, 1e-8, 1e-100] {
            assert_relative_eq!(range_quantile(alpha, 2), -SQRT_2 * normal_quantile(alpha / 2.0), max_relative = 1e-13);
        }
    }

    #[test]
    fn tails_match_forty_digit_arithmetic_from_one_half_to_1e_minus_100() {
        // mpmath 1.4.1, 40 digits, trapezoid rule with step 1/25.
        let golden = [
            (3.314_493, 3, 0.050_000_013_903_938_06),
            (0.5, 4, 0.984_849_911_894_407_3),
            (5.01, 20, 0.050_195_229_336_023_856),
            (8.0, 8, 4.296_486_157_200_391e-7),
            (12.0, 6, 3.227_951_238_813_398e-16),
            (20.0, 40, 1.629_020_236_357_909_4e-42),
            (6.0, 1_000, 0.839_236_242_348_677_2),
            (10.0, 1_000, 7.506_635_079_250_979e-7),
            (30.0, 5, 1.600_097_388_380_873_5e-100),
        ];
        for (q, k, expected) in golden {
            assert_relative_eq!(range_upper(q, k), expected, max_relative = 1e-12);
        }
    }

    #[test]
    fn a_quantile_is_the_inverse_of_the_tail() {
        for k in [2, 3, 7, 50, 1_000] {
            for alpha in [0.999, 0.3, 0.01, 1e-12, 1e-60] {
                assert_relative_eq!(range_upper(range_quantile(alpha, k), k), alpha, max_relative = 1e-12);
            }
        }
    }

    #[test]
    fn nothing_and_everything_are_the_ends_of_the_tail() {
        assert_eq!((range_upper(0.0, 5), range_upper(200.0, 5)), (1.0, 0.0));
        assert_relative_eq!(range_upper(1e-3, 5), 1.0, max_relative = 1e-11);
    }

    #[test]
    fn the_approximation_knows_its_table_only() {
        assert!(gleason_quantile(0.05, 4).is_some() && gleason_quantile(0.02, 4).is_none());
        // Two means need no correction.
        assert_relative_eq!(gleason_quantile(0.01, 2).unwrap(), range_quantile(0.01, 2), max_relative = 1e-14);
    }

    #[test]
    fn a_level_next_to_one_and_any_number_of_variables_have_a_quantile() {
        for k in [2, 3, 40, 1_000, 1 << 32, usize::MAX] {
            let mut before = f64::INFINITY;
            for alpha in [1e-100, 0.05, 0.999_999_999, 1.0_f64.next_down()] {
                let q = range_quantile(alpha, k);
                assert!((0.0..=before).contains(&q), "k {k}, alpha {alpha}: {q} after {before}");
                before = q;
            }
        }
        // Of two variables the tail at q is 1 - q / sqrt(pi) near 0, so q = 1e-9 sqrt(pi).
        assert_relative_eq!(range_quantile(1.0 - 1e-9, 2), 1e-9 * PI.sqrt(), max_relative = 1e-6);
    }
}
