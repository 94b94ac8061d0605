//! Errors of estimated effects against true ones, of all persons and by group.

use super::{Contrast, Contrasts};
use crate::{Groups, MetricError};

/// Errors of an effect: estimate minus truth, for ratios of their logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorSummary {
    /// Persons of whom truth and estimate are defined.
    pub n: usize,
    /// Persons of whom one of them is not, because a survival is 0.
    pub n_undefined: usize,
    /// Mean error.
    pub bias: f64,
    /// Mean of the absolute errors.
    pub mean_absolute: f64,
    /// Root of the mean of the squared errors (the precision in estimating heterogeneous effects, PEHE, of Hill 2011,
    /// <https://doi.org/10.1198/jcgs.2010.08162>).
    pub root_mean_square: f64,
    /// Mean of the true effects, for ratios of their logarithms.
    pub mean_truth: f64,
}

/// Errors of all persons and by level of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct ContrastErrors {
    /// All persons; `None` if the effect is undefined for all.
    pub overall: Option<ErrorSummary>,
    /// By level, in level order; `None` if the effect is undefined for all of it, or no person belongs to it.
    pub groups: Vec<Option<ErrorSummary>>,
}

/// Compares estimated with true effects of the same persons. O(n times).
///
/// ```
/// use fairtte_metrics::SurvivalCurves;
/// use fairtte_metrics::effects::{Contrast, Contrasts, contrast_errors};
/// use ndarray::array;
///
/// let curves = |value: f64| SurvivalCurves::new(vec![1.0], array![[value]]);
/// let (truth, estimate) = (Contrasts::new(curves(0.5)?, curves(0.75)?)?, Contrasts::new(curves(0.5)?, curves(0.5)?)?);
/// let found = contrast_errors(&truth, &estimate, Contrast::SurvivalDifference { place: 0 }, None)?;
/// assert_eq!(found.overall.unwrap().bias, -0.25);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] for other persons, and those of [`Contrasts::by_person`].
pub fn contrast_errors(
    truth: &Contrasts,
    estimate: &Contrasts,
    contrast: Contrast,
    groups: Option<&Groups>,
) -> Result<ContrastErrors, MetricError> {
    let mismatch = |what, found| Err(MetricError::LengthMismatch { what, found, expected: truth.n() });
    if estimate.n() != truth.n() {
        return mismatch("estimated effects", estimate.n());
    }
    if let Some(groups) = groups.filter(|groups| groups.n() != truth.n()) {
        return mismatch("group memberships", groups.n());
    }
    let scale = |value: f64| if contrast.is_ratio() { value.ln() } else { value };
    // The logarithm of a ratio of 0 is not finite: such a person has no error.
    let of = |values: Vec<Option<f64>>| -> Vec<Option<f64>> {
        values.into_iter().map(|value| value.map(scale).filter(|value| value.is_finite())).collect()
    };
    let (truth, estimate) = (of(truth.by_person(contrast)?), of(estimate.by_person(contrast)?));
    let pairs: Vec<Option<(f64, f64)>> = truth.into_iter().zip(estimate).map(|(t, e)| t.zip(e)).collect();
    let by_level = |groups: &Groups| -> Vec<Option<ErrorSummary>> {
        groups.ids().map(|level| summary(groups.rows(level).into_iter().map(|row| pairs[row]))).collect()
    };
    Ok(ContrastErrors { overall: summary(pairs.iter().copied()), groups: groups.map(by_level).unwrap_or_default() })
}

fn summary(pairs: impl Iterator<Item = Option<(f64, f64)>>) -> Option<ErrorSummary> {
    let (defined, undefined): (Vec<_>, Vec<_>) = pairs.partition(Option::is_some);
    let pairs: Vec<(f64, f64)> = defined.into_iter().flatten().collect();
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    (!pairs.is_empty()).then(|| ErrorSummary {
        n: pairs.len(),
        n_undefined: undefined.len(),
        bias: mean(|(truth, estimate)| estimate - truth),
        mean_absolute: mean(|(truth, estimate)| (estimate - truth).abs()),
        root_mean_square: mean(|(truth, estimate)| (estimate - truth).powi(2)).sqrt(),
        mean_truth: mean(|(truth, _)| *truth),
    })
}
