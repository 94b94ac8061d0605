//! The check that keeps every function from returning NaN.

use crate::MetricError;

/// Returns `value` if it is a finite number; `what` names it in the error.
pub(crate) fn finite(what: &'static str, value: f64) -> Result<f64, MetricError> {
    if value.is_finite() { Ok(value) } else { Err(MetricError::NotFinite { what, value }) }
}
