//! p values adjusted for having made several tests.
//!
//! With m p values sorted upwards, the i-th becomes: Bonferroni `m p`; Holm `max over j <= i of (m - j + 1) p_j` (Scandinavian
//! Journal of Statistics 6 (1979) 65-70); Benjamini-Hochberg `min over j >= i of m p_j / j` (Journal of the Royal
//! Statistical Society B 57 (1995) 289-300, DOI 10.1111/j.2517-6161.1995.tb02031.x); each at most 1.
//! `critdd` does not cut Holm off at 1, which decides nothing but shows in its tables.
//!
//! Golden values: statsmodels 0.15.0 `multipletests`, R 4.2.2 `p.adjust`, critdd 0.0.5.

use serde::{Deserialize, Serialize};

use crate::MetricError;

/// How p values are adjusted; a test rejects if its adjusted p is at most the level (statsmodels, R).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adjustment {
    /// Family-wise error, step-down (statsmodels and R).
    #[default]
    Holm,
    /// Holm without the cut-off at 1 (critdd): results may exceed 1.
    HolmUnclipped,
    /// Family-wise error, one step.
    Bonferroni,
    /// False discovery rate for independent tests.
    BenjaminiHochberg,
}

/// The adjusted p values, in the order given; none for none.
///
/// ```
/// use fairtte_metrics::statistics::{Adjustment, adjust_p_values};
///
/// assert_eq!(adjust_p_values(&[0.5, 0.125, 0.25], Adjustment::Holm)?, [0.5, 0.375, 0.5]);
/// assert_eq!(adjust_p_values(&[0.5, 0.125, 0.25], Adjustment::Bonferroni)?, [1.0, 0.375, 0.75]);
/// assert_eq!(adjust_p_values(&[0.5, 0.125, 0.25], Adjustment::BenjaminiHochberg)?, [0.5, 0.375, 0.375]);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// If a p value is not a number in [0, 1].
pub fn adjust_p_values(p_values: &[f64], adjustment: Adjustment) -> Result<Vec<f64>, MetricError> {
    if let Some((index, &value)) = p_values.iter().enumerate().find(|(_, p)| !(0.0..=1.0).contains(*p)) {
        return Err(MetricError::InvalidPValue { index, value });
    }
    let m = p_values.len();
    let mut order: Vec<usize> = (0..m).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; m];
    match adjustment {
        Adjustment::Bonferroni => adjusted = p_values.iter().map(|p| p * m as f64).collect(),
        Adjustment::Holm | Adjustment::HolmUnclipped => {
            let mut largest = 0.0_f64;
            for (before, row) in order.into_iter().enumerate() {
                largest = largest.max(p_values[row] * (m - before) as f64);
                adjusted[row] = largest;
            }
        }
        Adjustment::BenjaminiHochberg => {
            let mut smallest = 1.0_f64;
            for (before, row) in order.into_iter().enumerate().rev() {
                smallest = smallest.min(p_values[row] * m as f64 / (before + 1) as f64);
                adjusted[row] = smallest;
            }
        }
    }
    if adjustment != Adjustment::HolmUnclipped {
        for p in &mut adjusted {
            *p = p.min(1.0);
        }
    }
    Ok(adjusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_unclipped_form_exceeds_one() {
        let p = [0.75, 0.5, 1.0];
        assert_eq!(adjust_p_values(&p, Adjustment::HolmUnclipped).unwrap(), [1.5, 1.5, 1.5]);
        assert_eq!(adjust_p_values(&p, Adjustment::Holm).unwrap(), [1.0, 1.0, 1.0]);
    }

    #[test]
    fn equal_p_values_stay_equal_and_one_test_changes_nothing() {
        for adjustment in [Adjustment::Holm, Adjustment::HolmUnclipped, Adjustment::BenjaminiHochberg] {
            let adjusted = adjust_p_values(&[0.25, 0.0625, 0.25], adjustment).unwrap();
            assert_eq!(adjusted[0], adjusted[2]);
            assert_eq!(adjust_p_values(&[0.3], adjustment).unwrap(), [0.3]);
            assert!(adjust_p_values(&[], adjustment).unwrap().is_empty());
        }
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        for value in [-0.1, 1.5, f64::NAN] {
            let error = adjust_p_values(&[0.5, value], Adjustment::Holm).unwrap_err().to_string();
            assert_eq!(error, format!("p value 1 is {value}, expected a number in [0, 1]"));
        }
    }
}
