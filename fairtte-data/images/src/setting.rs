//! A setting outside its range.

use std::fmt;

/// The settings that have a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settings {
    /// [`ImageConfig`](crate::ImageConfig).
    Image,
    /// [`AugmentationConfig`](crate::augment::AugmentationConfig).
    Augmentation,
    /// [`GaussianBlur`](crate::GaussianBlur).
    Blur,
}

/// A setting is outside its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}, expected {expected}")]
pub struct InvalidSetting {
    /// The settings that have the field.
    pub of: Settings,
    /// The field in kebab case (`limits.max-pixels`).
    pub field: &'static str,
    /// The value found.
    pub value: String,
    /// What is allowed.
    pub expected: &'static str,
}

impl InvalidSetting {
    pub(crate) fn new(of: Settings, field: &'static str, value: impl fmt::Display, expected: &'static str) -> Self {
        Self { of, field, value: value.to_string(), expected }
    }
}
