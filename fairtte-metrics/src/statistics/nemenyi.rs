//! Nemenyi's post-hoc test: which average ranks differ, with all pairs tested at once?
//!
//! Two of k models over N data sets differ if their average ranks are apart by more than the critical difference
//! `CD = q sqrt(k (k + 1) / (12 N))`, q the upper quantile of the range of k standard normal variables; the p value of a
//! pair is the tail of that range at `|difference| / sqrt(k (k + 1) / (12 N))` (Nemenyi, thesis, Princeton 1963; Demšar,
//! Journal of Machine Learning Research 7 (2006) 1-30, section 3.2.2, whose q is ours divided by sqrt(2)).
//!
//! Golden values: scikit-posthocs 0.17.1 `posthoc_nemenyi_friedman`, `scipy.stats.studentized_range` 1.17.1 with infinite
//! degrees of freedom, and autorank 1.3.0, which takes q from Gleason's approximation.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::studentized_range::{gleason_quantile, range_quantile, range_upper};
use super::{RankTable, check_alpha};
use crate::MetricError;

/// Where the quantile behind a critical difference comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RangeQuantile {
    /// Solved to full precision (scipy).
    #[default]
    Exact,
    /// Gleason's approximation (statsmodels, autorank), for alpha 0.1, 0.05, 0.025, 0.01, 0.005 or 0.001.
    Gleason,
}

/// The difference of average ranks above which `n_models` models on `n_data_sets` data sets differ at level `alpha`.
///
/// ```
/// use fairtte_metrics::statistics::{RangeQuantile, critical_difference};
///
/// // Two models: the normal quantile 1.96 times sqrt(2) sqrt(2 * 3 / (12 * 25)) = 0.2.
/// let difference = critical_difference(2, 25, 0.05, RangeQuantile::Exact)?;
/// assert!((difference - 0.2 * 1.959963984540054).abs() < 1e-14);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// If there are fewer than two models or no data set, or `alpha` is not in [1e-100, 1) or not in Gleason's table.
pub fn critical_difference(
    n_models: usize,
    n_data_sets: usize,
    alpha: f64,
    quantile: RangeQuantile,
) -> Result<f64, MetricError> {
    if n_models < 2 || n_data_sets == 0 {
        let expected = "2 models on 1 data set";
        return Err(MetricError::TooSmallComparison { n_models, n_data_sets, expected });
    }
    check_alpha(alpha)?;
    let q = match quantile {
        RangeQuantile::Exact => range_quantile(alpha, n_models),
        RangeQuantile::Gleason => gleason_quantile(alpha, n_models).ok_or_else(|| MetricError::InvalidSetting {
            setting: "alpha",
            value: alpha.to_string(),
            expected: "0.1, 0.05, 0.025, 0.01, 0.005 or 0.001 for Gleason's approximation",
        })?,
    };
    Ok(q * rank_deviation(n_models, n_data_sets))
}

/// p values of all pairs of models, `[n_models, n_models]`, symmetric with 1 on the diagonal.
///
/// Ties need no correction: they bring average ranks closer together. Cost: about 1 ms per ten pairs.
pub fn nemenyi(table: &RankTable) -> Array2<f64> {
    let (ranks, k) = (table.average_ranks(), table.n_models());
    let deviation = rank_deviation(k, table.n_data_sets());
    let mut p = Array2::ones((k, k));
    for (i, j) in (0..k).flat_map(|i| (0..i).map(move |j| (i, j))) {
        let tail = range_upper((ranks[i] - ranks[j]).abs() / deviation, k);
        (p[[i, j]], p[[j, i]]) = (tail, tail);
    }
    p
}

/// Standard deviation of an average rank, up to a common shift.
fn rank_deviation(n_models: usize, n_data_sets: usize) -> f64 {
    let k = n_models as f64;
    (k * (k + 1.0) / (12.0 * n_data_sets as f64)).sqrt()
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use ndarray::array;

    use super::*;
    use crate::Direction;

    #[test]
    fn critical_differences_match_scipy_for_sizes_from_two_to_a_hundred_models() {
        // scipy 1.17.1: studentized_range.ppf(1 - alpha, k, inf) * sqrt(k * (k + 1) / (12 * N)).
        let golden = [
            (2, 1, 0.05, 1.959_963_984_540_053_8),
            (2, 20, 0.5, 0.150_820_493_156_529_07),
            (3, 7, 0.01, 1.557_328_230_067_928_3),
            (10, 4, 0.05, 6.773_041_892_092_303),
            (50, 200, 0.01, 6.420_080_150_750_186),
            (100, 3, 0.05, 101.916_417_413_656_16),
            (100, 3, 0.5, 83.212_059_266_303_63),
        ];
        for (k, n, alpha, expected) in golden {
            let found = critical_difference(k, n, alpha, RangeQuantile::Exact).unwrap();
            assert_relative_eq!(found, expected, max_relative = 1e-12);
        }
    }

    #[test]
    fn a_pair_at_the_critical_difference_has_p_equal_to_alpha() {
        // Average ranks 1, 2, 3 over n data sets that agree: pairs one and two ranks apart.
        let table = RankTable::new(array![[1., 2., 3.], [4., 5., 6.], [7., 8., 9.]], Direction::LowerIsBetter).unwrap();
        let p = nemenyi(&table);
        for alpha in [p[[0, 1]], p[[0, 2]]] {
            let apart = critical_difference(3, 3, alpha, RangeQuantile::Exact).unwrap();
            assert_relative_eq!(apart, if alpha == p[[0, 1]] { 1.0 } else { 2.0 }, max_relative = 1e-12);
        }
        assert_eq!((p[[1, 1]], p[[0, 1]], p[[2, 1]]), (1.0, p[[1, 0]], p[[0, 1]]));
    }

    #[test]
    fn levels_out_of_range_and_out_of_the_table_are_refused() {
        for alpha in [0.0, 1.0, -0.1, f64::NAN, f64::INFINITY] {
            let error = critical_difference(3, 9, alpha, RangeQuantile::Exact).unwrap_err().to_string();
            assert!(error.ends_with("expected a significance level in [1e-100, 1)"), "{error}");
        }
        let error = critical_difference(3, 9, 0.02, RangeQuantile::Gleason).unwrap_err().to_string();
        assert!(error.starts_with("alpha is 0.02, expected 0.1, 0.05"), "{error}");
        assert!(critical_difference(1, 9, 0.05, RangeQuantile::Exact).is_err());
    }

    #[test]
    fn any_number_of_models_has_a_finite_critical_difference() {
        for quantile in [RangeQuantile::Exact, RangeQuantile::Gleason] {
            assert!(critical_difference(usize::MAX, 1, 0.05, quantile).unwrap().is_finite());
        }
    }
}
