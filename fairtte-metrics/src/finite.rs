//! The one check behind "no function returns NaN".

use crate::MetricError;

/// The value itself, if it is a finite number; `what` names it in the error.
pub(crate) fn finite(what: &'static str, value: f64) -> Result<f64, MetricError> {
    if value.is_finite() { Ok(value) } else { Err(MetricError::NotFinite { what, value }) }
}
