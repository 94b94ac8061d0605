//! Errors of building a network, feeding it a batch, and reading or writing its weights.

use std::path::PathBuf;

use crate::Precision;

/// Why a network could not be built or a batch could not be fed to it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A batch has the wrong number of axes for this backbone.
    #[error("backbone {backbone} got a batch of shape {shape:?}, expected {expected}")]
    WrongInput {
        /// Name of the backbone.
        backbone: &'static str,
        /// Shape of the batch.
        shape: Vec<usize>,
        /// The expected axes in words.
        expected: &'static str,
    },
    /// A setting is outside its range.
    #[error("{key} is {value}, expected {expected}")]
    Setting {
        /// Name of the setting as it is written: the field in kebab case, `gradient-clip`.
        key: &'static str,
        /// Value found.
        value: String,
        /// Range in words.
        expected: &'static str,
    },
    /// A device does not compute in a precision.
    #[error("precision is {precision}, expected one in which the device computes: {supported}")]
    Precision {
        /// The precision that was requested.
        precision: Precision,
        /// What it supports, with commas between.
        supported: String,
    },
    /// The pixels do not fill the stated shape.
    #[error("the number of values for a batch of shape {shape:?} is {found}")]
    IncompleteBatch {
        /// Stated shape.
        shape: Vec<usize>,
        /// Number of values.
        found: usize,
    },
    /// A batch has another number of channels than the network was built for.
    #[error("backbone {backbone} got a batch of shape {shape:?}, expected {expected} channels (columns of a table)")]
    WrongChannels {
        /// Name of the backbone.
        backbone: &'static str,
        /// Shape of the batch.
        shape: Vec<usize>,
        /// Number of channels that it reads.
        expected: usize,
    },
    /// A backbone without maps at several scales was to be read by the decoder of a U-Net.
    #[error("backbone {backbone} gives no maps for the decoder of a U-Net, expected resnet18")]
    NoMaps {
        /// Name of the backbone.
        backbone: &'static str,
    },
    /// The decoder of a U-Net cannot return to the size of these pictures.
    #[error("a U-Net got a batch of shape {shape:?}, expected heights and widths that are multiples of {multiple}")]
    WrongSides {
        /// Shape of the batch.
        shape: Vec<usize>,
        /// What the sides must be multiples of.
        multiple: usize,
    },
    /// The settings of one backbone were given together with the name of another.
    #[error("{table} is given, but backbone is \"{backbone}\", expected no settings of another backbone")]
    OtherBackbone {
        /// Name of the table.
        table: &'static str,
        /// Name of the backbone.
        backbone: &'static str,
    },
    /// A file of weights cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    ReadWeights {
        /// The file.
        path: PathBuf,
        /// Message of the operating system.
        reason: String,
    },
    /// A file of weights is damaged, truncated, malicious, or not a file of weights.
    #[error("{}, {place}: expected {expected}, found {found}", path.display())]
    DamagedWeights {
        /// The file.
        path: PathBuf,
        /// The byte at which the problem was noticed.
        place: String,
        /// What was expected there.
        expected: String,
        /// What was found there.
        found: String,
    },
    /// A file of weights is valid but does not contain the weights of the backbone.
    #[error("{} does not hold the weights of {backbone}: {problem}", path.display())]
    WeightsDoNotFit {
        /// The file.
        path: PathBuf,
        /// Name of the backbone.
        backbone: &'static str,
        /// What does not fit.
        problem: String,
    },
    /// A parameter has no name in the layout that it is to be written in.
    #[error("parameter {parameter} of {backbone} has no name in the layout {layout}")]
    NoName {
        /// Name of the parameter here.
        parameter: String,
        /// Name of the backbone.
        backbone: &'static str,
        /// Name of the layout.
        layout: &'static str,
    },
    /// Weights cannot be written.
    #[error("the weights cannot be written: {reason}")]
    WriteWeights {
        /// Message of the operating system.
        reason: String,
    },
}
