//! Signed-rank tests of all pairs of models over the data sets, and their adjustment as one family.
//!
//! Demšar (2006) compares average ranks; Benavoli, Corani & Mangili, "Should We Really Use Post-Hoc Tests Based on
//! Mean-Ranks?", Journal of Machine Learning Research 17 (2016) 1-10, recommend these tests, because a pair's verdict then
//! does not depend on the other models. Golden values: scipy 1.17.1, statsmodels 0.15.0, critdd 0.0.5.

use ndarray::Array2;

use super::{
    Adjustment, Alternative, RankTable, SignedRankMethod, SignedRankSettings, ZeroDifferences, adjust_p_values,
    wilcoxon_of_differences,
};
use crate::MetricError;
use crate::finite::finite;

/// Two-sided signed-rank p values of all pairs, `[n_models, n_models]`, symmetric with 1 on the diagonal.
///
/// critdd: [`ZeroDifferences::Pratt`] with [`SignedRankMethod::UntiedTable`]; as there, the later column is the first
/// sample, which that method is sensitive to.
///
/// # Errors
/// If the test of a pair fails: see [`wilcoxon_signed_rank`](super::wilcoxon_signed_rank).
pub fn pairwise_wilcoxon(
    table: &RankTable,
    zeros: ZeroDifferences,
    method: SignedRankMethod,
) -> Result<Array2<f64>, MetricError> {
    let settings = SignedRankSettings { alternative: Alternative::TwoSided, zeros, method };
    let (values, k) = (table.values(), table.n_models());
    let mut p = Array2::ones((k, k));
    for (i, j) in pairs(k) {
        let differences = (&values.column(i) - &values.column(j)).to_vec();
        let p_value = wilcoxon_of_differences(&differences, &settings)?.p_value;
        (p[[i, j]], p[[j, i]]) = (p_value, p_value);
    }
    Ok(p)
}

/// A symmetric matrix of pairwise p values with its pairs adjusted as one family; the diagonal stays.
///
/// # Errors
/// If the matrix is not square, an entry below the diagonal is not in [0, 1] or one on it is not a finite number.
pub fn adjust_pairwise(p_values: &Array2<f64>, adjustment: Adjustment) -> Result<Array2<f64>, MetricError> {
    let (rows, columns) = p_values.dim();
    if rows != columns {
        return Err(MetricError::PairwiseShape { rows, columns, n_models: rows });
    }
    p_values.diag().iter().try_for_each(|&own| finite("p value on the diagonal", own).map(drop))?;
    let family: Vec<f64> = pairs(rows).map(|pair| p_values[pair]).collect();
    let mut adjusted = p_values.clone();
    for ((i, j), p) in pairs(rows).zip(adjust_p_values(&family, adjustment)?) {
        (adjusted[[i, j]], adjusted[[j, i]]) = (p, p);
    }
    Ok(adjusted)
}

/// The entries below the diagonal, row by row.
fn pairs(n_models: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n_models).flat_map(|i| (0..i).map(move |j| (i, j)))
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::Direction;

    #[test]
    fn three_data_sets_that_agree_give_a_quarter_for_every_pair() {
        // All three differences have one sign: p = 2 / 2^3 = 1/4; Holm: 3/4 for all.
        let values = array![[1.0, 2.0, 4.0], [1.0, 3.0, 7.0], [1.0, 5.0, 12.0]];
        let table = RankTable::new(values, Direction::HigherIsBetter).unwrap();
        let p = pairwise_wilcoxon(&table, ZeroDifferences::Drop, SignedRankMethod::Exact).unwrap();
        assert_eq!(p, array![[1.0, 0.25, 0.25], [0.25, 1.0, 0.25], [0.25, 0.25, 1.0]]);
        let adjusted = adjust_pairwise(&p, Adjustment::Holm).unwrap();
        assert_eq!(adjusted, array![[1.0, 0.75, 0.75], [0.75, 1.0, 0.75], [0.75, 0.75, 1.0]]);
    }

    #[test]
    fn a_matrix_that_is_not_square_is_refused() {
        let error = adjust_pairwise(&Array2::zeros((2, 3)), Adjustment::Holm).unwrap_err();
        assert_eq!(error, MetricError::PairwiseShape { rows: 2, columns: 3, n_models: 2 });
    }

    #[test]
    fn a_diagonal_that_is_no_number_is_refused() {
        let error = adjust_pairwise(&array![[f64::NAN, 0.5], [0.5, 1.0]], Adjustment::Holm).unwrap_err();
        assert!(matches!(error, MetricError::NotFinite { .. }));
    }
}
