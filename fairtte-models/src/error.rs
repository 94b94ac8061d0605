//! What can go wrong when a network is built or fed.

use std::path::PathBuf;

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
    /// The pixels do not fill the stated shape.
    #[error("a batch of shape {shape:?} came with {found} values")]
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
    /// The settings of one backbone were given beside the name of another.
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
        /// What the operating system said.
        reason: String,
    },
    /// A file of weights is damaged, cut short, hostile, or something else.
    #[error("{}, {place}: expected {expected}, found {found}", path.display())]
    DamagedWeights {
        /// The file.
        path: PathBuf,
        /// The byte at which it was noticed.
        place: String,
        /// What should stand there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A file of weights is sound but does not hold the weights of a backbone.
    #[error("{} does not hold the weights of {backbone}: {problem}", path.display())]
    WeightsDoNotFit {
        /// The file.
        path: PathBuf,
        /// Name of the backbone.
        backbone: &'static str,
        /// What does not fit.
        problem: String,
    },
    /// Weights cannot be written.
    #[error("the weights cannot be written: {reason}")]
    WriteWeights {
        /// What the operating system said.
        reason: String,
    },
}
