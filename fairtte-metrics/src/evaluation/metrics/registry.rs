//! Names to metrics: the built-in ones and those of the program.

use std::sync::{PoisonError, RwLock};

use super::{Metric, built_in_metrics, cause_metrics};
use crate::MetricError;

static REGISTERED: RwLock<Vec<&'static dyn Metric>> = RwLock::new(Vec::new());

/// Makes `metric` available by its name in settings and run files, beside the built-in ones. Registering the same name
/// again replaces the metric.
///
/// # Errors
/// [`MetricError::InvalidSetting`] for a name that is not in kebab-case, or is that of a built-in metric.
pub fn register_metric(metric: &'static dyn Metric) -> Result<(), MetricError> {
    let name = metric.name();
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let expected = if name.is_empty() || !name.chars().all(letters) {
        "lower-case letters, digits and hyphens"
    } else if built_in_metrics().chain(cause_metrics()).any(|metric| metric.name() == name) {
        "a name that no built-in metric has"
    } else {
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        registered.retain(|other| other.name() != name);
        registered.push(metric);
        return Ok(());
    };
    Err(MetricError::InvalidSetting { setting: "name of a metric", value: name.to_owned(), expected })
}

/// All metrics that can be named, the built-in ones first, then those of one of several causes.
pub fn known_metrics() -> Vec<&'static dyn Metric> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    built_in_metrics().chain(cause_metrics()).chain(registered.iter().copied()).collect()
}
