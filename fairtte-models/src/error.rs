//! What can go wrong when a network is built or fed.

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
        /// Name of the setting.
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
    #[error("{table} is given, but model.backbone is \"{backbone}\", expected no settings of another backbone")]
    OtherBackbone {
        /// Name of the table.
        table: &'static str,
        /// Name of the backbone.
        backbone: &'static str,
    },
}
