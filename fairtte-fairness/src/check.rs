//! Checks of settings. The error names the setting, its value and its range.

use std::fmt::Display;

use serde::Serialize;

use crate::FairnessError;

/// A setting in its range.
///
/// # Errors
/// [`FairnessError::Setting`] if it is not.
pub(crate) fn check(
    key: &'static str,
    value: impl Display,
    in_range: bool,
    expected: &str,
) -> Result<(), FairnessError> {
    if in_range {
        return Ok(());
    }
    Err(FairnessError::Setting { key, value: value.to_string(), expected: expected.to_owned() })
}

/// A choice as it is written in a run file, for messages.
pub(crate) fn written(choice: impl Serialize) -> String {
    serde_json::to_value(choice).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A weight or a rate that may be 0.
pub(crate) fn check_not_negative(key: &'static str, value: f64) -> Result<(), FairnessError> {
    check(key, value, value >= 0.0 && value.is_finite(), "a finite number >= 0")
}

/// A step size, a radius or a factor.
pub(crate) fn check_positive(key: &'static str, value: f64) -> Result<(), FairnessError> {
    check(key, value, value > 0.0 && value.is_finite(), "a finite number > 0")
}

/// A number of things.
pub(crate) fn check_at_least(key: &'static str, value: usize, least: usize) -> Result<(), FairnessError> {
    check(key, value, value >= least, &format!("at least {least}"))
}
