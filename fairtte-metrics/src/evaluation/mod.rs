//! The whole evaluation of one model, or of several, and its report.

pub(crate) mod any_metric;
pub(crate) mod evaluate;
pub(crate) mod evaluated;
pub(crate) mod model_comparison;
pub(crate) mod report;
pub(crate) mod sampled_metrics;
pub(crate) mod settings;
pub(crate) mod summary;
pub(crate) mod time_window;
