//! Friedman's test: do the average ranks of several models differ by more than chance?
//!
//! With k models, N data sets, rank sums `R_j` and ties of t models within a data set,
//! `chi^2 = 12 sum((R_j - N (k+1) / 2)^2) / (N k (k+1)) / (1 - sum(t^3 - t) / (N k (k^2 - 1)))` with k - 1 degrees of freedom
//! (Friedman, Journal of the American Statistical Association 32 (1937) 675-701, DOI 10.1080/01621459.1937.10503522);
//! the last factor is the tie correction, which `critdd` and Demšar (2006) leave out. Iman & Davenport, Communications in
//! Statistics 9 (1980) 571-595: `F = (N - 1) chi^2 / (N (k - 1) - chi^2)` with k - 1 and (k - 1)(N - 1) degrees.
//!
//! All sums here are whole numbers, so a statistic is rounded once, where other packages subtract numbers of the size of
//! 3 N (k + 1). Golden values: `scipy.stats.friedmanchisquare` 1.17.1, R 4.2.2 `friedman.test`, critdd 0.0.5.

use serde::{Deserialize, Serialize};

use super::RankTable;
use super::tails::f_upper;
use crate::MetricError;
use crate::chi_square::chi_square_upper_tail;

/// Whether ties within a data set enlarge the statistic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankTies {
    /// scipy and R.
    #[default]
    Corrected,
    /// critdd, and the text of Demšar (2006).
    Uncorrected,
}

/// Friedman's chi-square.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FriedmanTest {
    /// The statistic, between 0 and N (k - 1).
    pub chi_square: f64,
    /// Degrees of freedom, k - 1.
    pub degrees: usize,
    /// Upper tail of the chi-square distribution; an approximation, rough for small N and k.
    pub p_value: f64,
}

/// The F statistic of Iman and Davenport.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ImanDavenportTest {
    /// The statistic.
    pub f: f64,
    /// k - 1 and (k - 1)(N - 1).
    pub degrees: (usize, usize),
    /// Upper tail of the F distribution.
    pub p_value: f64,
}

/// Friedman's test of equal average ranks.
///
/// ```
/// use fairtte_metrics::Direction;
/// use fairtte_metrics::statistics::{RankTable, RankTies, friedman};
/// use ndarray::array;
///
/// // Both data sets rank the models 1, 2, 3: chi^2 = N (k - 1) = 4, p = exp(-4 / 2).
/// let table = RankTable::new(array![[0.1, 0.2, 0.3], [0.5, 0.6, 0.7]], Direction::LowerIsBetter)?;
/// let test = friedman(&table, RankTies::Corrected)?;
/// assert_eq!((test.chi_square, test.degrees), (4.0, 2));
/// assert!((test.p_value - (-2_f64).exp()).abs() < 1e-15);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// With the tie correction, if all models tie on every data set.
pub fn friedman(table: &RankTable, ties: RankTies) -> Result<FriedmanTest, MetricError> {
    let Parts { scatter, largest } = Parts::of(table, ties);
    if largest == 0 {
        return Err(MetricError::AllModelsTied { n_models: table.n_models(), n_data_sets: table.n_data_sets() });
    }
    let degrees = table.n_models() - 1;
    let chi_square = (degrees as u128 * scatter) as f64 / largest as f64;
    Ok(FriedmanTest { chi_square, degrees, p_value: chi_square_upper_tail(chi_square, degrees) })
}

/// The F test of Iman and Davenport, less conservative than [`friedman`].
///
/// # Errors
/// If there is only one data set, all data sets rank the models alike (F is infinite), or, with the tie correction, all
/// models tie on every data set.
pub fn iman_davenport(table: &RankTable, ties: RankTies) -> Result<ImanDavenportTest, MetricError> {
    let (n_data_sets, n_models) = (table.n_data_sets(), table.n_models());
    if n_data_sets < 2 {
        let expected = "2 models on 2 data sets";
        return Err(MetricError::TooSmallComparison { n_models, n_data_sets, expected });
    }
    let Parts { scatter, largest } = Parts::of(table, ties);
    if largest == 0 {
        return Err(MetricError::AllModelsTied { n_models, n_data_sets });
    }
    let rest = n_data_sets as u128 * largest - scatter;
    if rest == 0 {
        return Err(MetricError::PerfectAgreement { n_data_sets });
    }
    let f = ((n_data_sets as u128 - 1) * scatter) as f64 / rest as f64;
    let degrees = (n_models - 1, (n_models - 1) * (n_data_sets - 1));
    Ok(ImanDavenportTest { f, degrees, p_value: f_upper(f, degrees.0, degrees.1) })
}

/// Whole numbers with `chi^2 = (k - 1) scatter / largest` and `N largest - scatter` proportional to `N (k - 1) - chi^2`.
struct Parts {
    /// 12 times the sum of the squared deviations of the rank sums.
    scatter: u128,
    /// `N k (k^2 - 1)`, less the ties if they are corrected for; 0 if nothing but ties is left.
    largest: u128,
}

impl Parts {
    fn of(table: &RankTable, ties: RankTies) -> Self {
        let (n, k) = (table.n_data_sets() as u128, table.n_models() as u128);
        let left_out = if ties == RankTies::Corrected { table.tie_sum() } else { 0 };
        Self { scatter: 3 * table.squared_deviations(), largest: n * k * (k * k - 1) - left_out }
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use ndarray::{Array2, array};

    use super::*;
    use crate::Direction;

    fn table(values: Array2<f64>) -> RankTable {
        RankTable::new(values, Direction::LowerIsBetter).unwrap()
    }

    // Expected values of the next two tests: `scipy.stats.friedmanchisquare` of scipy 1.17.1.

    #[test]
    fn ties_one_data_set_and_many_data_sets_match_scipy() {
        let tied = table(array![[1., 2., 2.], [3., 3., 3.], [5., 4., 6.], [1., 2., 3.]]);
        let test = friedman(&tied, RankTies::Corrected).unwrap();
        assert_relative_eq!(test.chi_square, 3.818_181_818_181_818_3, max_relative = 1e-15);
        assert_relative_eq!(test.p_value, 0.148_215_066_337_520_16, max_relative = 1e-13);
        let one = friedman(&table(array![[1., 2., 3.]]), RankTies::Corrected).unwrap();
        assert_eq!(one.chi_square, 2.0);
        assert_relative_eq!(one.p_value, 0.367_879_441_171_442_45, max_relative = 1e-14);
    }

    #[test]
    fn a_small_statistic_of_many_data_sets_keeps_its_digits() {
        // Average ranks within 0.03 of each other over 200 data sets: scipy subtracts 3,600 and keeps 12 digits.
        let value = |(set, model): (usize, usize)| (set * (model + 3) * 7 + model * model) % 11;
        let many = table(Array2::from_shape_fn((200, 5), |at| value(at) as f64));
        let test = friedman(&many, RankTies::Corrected).unwrap();
        assert_relative_eq!(test.chi_square, 0.031_430_068_098_690_506, max_relative = 1e-10);
        assert_relative_eq!(test.p_value, 0.999_877_804_934_087_4, max_relative = 1e-12);
    }

    #[test]
    fn two_models_give_the_squared_sign_statistic() {
        // 7 of 10 data sets favour one model: chi^2 = (7 - 3)^2 / 10, and F = 9 * 1.6 / (10 - 1.6).
        let values = Array2::from_shape_fn((10, 2), |(set, model)| if (set < 7) == (model == 0) { 0.0 } else { 1.0 });
        let table = table(values);
        for ties in [RankTies::Corrected, RankTies::Uncorrected] {
            assert_relative_eq!(friedman(&table, ties).unwrap().chi_square, 1.6, max_relative = 1e-15);
            assert_relative_eq!(iman_davenport(&table, ties).unwrap().f, 14.4 / 8.4, max_relative = 1e-15);
        }
    }

    #[test]
    fn models_that_all_tie_have_no_corrected_statistic_and_an_uncorrected_one_of_zero() {
        let tied = table(Array2::from_elem((4, 3), 2.0));
        let error = friedman(&tied, RankTies::Corrected).unwrap_err();
        assert_eq!(error, MetricError::AllModelsTied { n_models: 3, n_data_sets: 4 });
        let test = friedman(&tied, RankTies::Uncorrected).unwrap();
        assert_eq!((test.chi_square, test.p_value), (0.0, 1.0));
        let test = iman_davenport(&tied, RankTies::Uncorrected).unwrap();
        assert_eq!((test.f, test.degrees, test.p_value), (0.0, (2, 6), 1.0));
    }

    #[test]
    fn f_is_refused_where_it_divides_by_zero() {
        let alike = table(array![[1., 2., 3.], [4., 5., 6.]]);
        let error = iman_davenport(&alike, RankTies::Uncorrected).unwrap_err();
        assert_eq!(error, MetricError::PerfectAgreement { n_data_sets: 2 });
        let one = iman_davenport(&table(array![[1., 2., 3.]]), RankTies::Uncorrected).unwrap_err();
        assert_eq!(one.to_string(), "number of models: 3, of data sets: 1, expected at least 2 models on 2 data sets");
    }
}
