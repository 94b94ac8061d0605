//! Standard distributions of the noise of log time: logarithms of density and survival with two derivatives.

use std::f64::consts::{LN_2, TAU};

use fairtte_metrics::statistics::normal_upper;
use serde::{Deserialize, Serialize};

/// The distribution of time, by that of its logarithm: log T = mu + x b + sigma W.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AftDistribution {
    /// W has the smallest-extreme-value distribution, P(W > z) = exp(-exp(z)); with sigma = 1 the times are exponential. Also a
    /// proportional-hazards model, with log hazard ratios -b / sigma (default).
    #[default]
    Weibull,
    /// W is standard normal.
    LogNormal,
    /// W is standard logistic, P(W > z) = 1 / (1 + exp(z)); exp(-b / sigma) is a ratio of the odds of an event by any time.
    LogLogistic,
}

/// A function of z with its first two derivatives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Terms {
    pub(super) value: f64,
    pub(super) first: f64,
    pub(super) second: f64,
}

/// From here on the ratio of density to upper tail of the normal distribution is a continued fraction.
const FAR: f64 = 3.0;
/// Its depth, enough for the rounding of numbers at [`FAR`].
const DEPTH: i32 = 60;

impl AftDistribution {
    /// Logarithm of the density of W.
    pub(super) fn log_density(self, z: f64) -> Terms {
        match self {
            Self::Weibull => {
                let growth = z.exp();
                Terms { value: z - growth, first: 1.0 - growth, second: -growth }
            }
            Self::LogNormal => Terms { value: log_normal_density(z), first: -z, second: -1.0 },
            Self::LogLogistic => {
                let p = logistic(z);
                Terms { value: z - 2.0 * softplus(z), first: 1.0 - 2.0 * p, second: -2.0 * p * (1.0 - p) }
            }
        }
    }

    /// Logarithm of P(W > z).
    pub(super) fn log_survival(self, z: f64) -> Terms {
        match self {
            Self::Weibull => {
                let growth = z.exp();
                Terms { value: -growth, first: -growth, second: -growth }
            }
            Self::LogNormal => {
                let (value, hazard, beyond) = normal_tail(z);
                Terms { value, first: -hazard, second: -hazard * beyond }
            }
            Self::LogLogistic => {
                let p = logistic(z);
                Terms { value: -softplus(z), first: -p, second: -p * (1.0 - p) }
            }
        }
    }

    /// P(W > z), also of infinite z.
    pub(super) fn survival(self, z: f64) -> f64 {
        match self {
            Self::Weibull => (-z.exp()).exp(),
            Self::LogNormal => normal_upper(z),
            Self::LogLogistic => logistic(-z),
        }
    }

    /// Median of W: log(log 2) of the smallest extreme value, otherwise 0.
    pub(super) fn median(self) -> f64 {
        match self {
            Self::Weibull => LN_2.ln(),
            Self::LogNormal | Self::LogLogistic => 0.0,
        }
    }
}

/// log(1 + exp(z)) without overflow.
fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}

fn logistic(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

fn log_normal_density(z: f64) -> f64 {
    -0.5 * z * z - 0.5 * TAU.ln()
}

/// Of the normal distribution at z: logarithm of the upper tail Q, hazard phi / Q, and hazard - z, each to the last digits at
/// any z. Far out the continued fraction of Laplace, phi / Q = z + 1 / (z + 2 / (z + 3 / ..)) (Abramowitz & Stegun 26.2.14).
fn normal_tail(z: f64) -> (f64, f64, f64) {
    let density = log_normal_density(z);
    if z >= FAR {
        let beyond = (1..=DEPTH).rev().fold(0.0, |rest, k| f64::from(k) / (z + rest));
        let hazard = z + beyond;
        return (density - hazard.ln(), hazard, beyond);
    }
    let log_tail = if z < 0.0 { (-normal_upper(-z)).ln_1p() } else { normal_upper(z).ln() };
    let hazard = (density - log_tail).exp();
    (log_tail, hazard, hazard - z)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [AftDistribution; 3] =
        [AftDistribution::Weibull, AftDistribution::LogNormal, AftDistribution::LogLogistic];

    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance * expected.abs().max(1e-300), "{found} for {expected}");
    }

    #[test]
    fn derivatives_are_those_of_finite_differences() {
        for distribution in ALL {
            for function in [AftDistribution::log_density, AftDistribution::log_survival] {
                for z in [-30.0, -3.0, -0.7, 0.0, 0.4, 2.99, 3.01, 4.5] {
                    let (h, here) = (1e-5, function(distribution, z));
                    let (below, above) = (function(distribution, z - h), function(distribution, z + h));
                    let slope = (above.value - below.value) / (2.0 * h);
                    assert!((here.first - slope).abs() < 1e-8 * (1.0 + here.first.abs()), "{distribution:?} {z}");
                    let bend = (above.first - below.first) / (2.0 * h);
                    assert!((here.second - bend).abs() < 1e-8 * (1.0 + here.second.abs()), "{distribution:?} {z}");
                }
            }
        }
    }

    #[test]
    fn density_is_the_slope_of_survival_and_the_median_halves() {
        for distribution in ALL {
            close(distribution.survival(distribution.median()), 0.5, 1e-15);
            for z in [-4.0, -1.0, 0.0, 0.5, 1.5] {
                let h = 1e-5;
                let slope = (distribution.survival(z - h) - distribution.survival(z + h)) / (2.0 * h);
                close(distribution.log_density(z).value.exp(), slope, 1e-8);
                close(distribution.log_survival(z).value.exp(), distribution.survival(z), 1e-13);
            }
            let ends = [f64::NEG_INFINITY, f64::INFINITY].map(|z| distribution.survival(z).to_bits());
            assert_eq!(ends, [1.0_f64.to_bits(), 0.0_f64.to_bits()], "{distribution:?}");
        }
    }

    #[test]
    fn the_tail_of_the_normal_distribution_is_that_of_mpmath() {
        // mpmath 1.4.1 with 60 digits: log(erfc(z / sqrt 2) / 2), phi / Q and phi / Q - z.
        let golden = [
            (-8.0, -6.220_960_574_271_786e-16, 5.052_271_083_536_895e-15, 8.000_000_000_000_005),
            (-1.0, -0.172_753_779_023_449_9, 0.287_599_970_939_178_4, 1.287_599_970_939_178_4),
            (0.5, -1.175_911_761_593_618_6, 1.141_077_770_368_064_5, 0.641_077_770_368_064_5),
            (1.999, -3.780_811_560_999_765, 2.372_329_841_607_757, 0.373_329_841_607_757_1),
            (2.0, -3.783_184_333_682_032, 2.373_215_532_822_841, 0.373_215_532_822_840_87),
            (2.5, -5.081_648_277_278_69, 2.822_744_797_663_907, 0.322_744_797_663_907_25),
            (3.0, -6.607_726_221_510_349, 3.283_098_654_930_436_3, 0.283_098_654_930_436_4),
            (6.0, -20.736_768_949_974_706, 6.158_482_604_544_599, 0.158_482_604_544_598_9),
            (38.0, -726.557_216_018_820_1, 38.026_279_466_575_87, 0.026_279_466_575_868_99),
            (1e3, -500_007.826_694_812_2, 1_000.000_999_998, 0.000_999_998_000_009_999_9),
            (1e6, -500_000_000_014.734_44, 1_000_000.000_001, 9.999_999_999_98e-7),
        ];
        for (z, log_tail, hazard, beyond) in golden {
            let found = normal_tail(z);
            close(found.0, log_tail, 2e-13);
            close(found.1, hazard, 4e-13);
            close(found.2, beyond, 3e-12);
        }
    }
}
