//! Why a file gave no image.

/// What is wrong with an image file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// There is no file at the path.
    Missing,
    /// The file has no bytes.
    Empty,
    /// The file exists but cannot be opened or read.
    Unopened,
    /// The file is truncated, damaged or not an image.
    Unreadable,
    /// An image of a kind that is not supported (complex voxels, header without voxels, larger than the limits, ..).
    Unsupported,
    /// A picture where a volume is expected, a volume where a picture is expected, a 4D series, a single slice.
    WrongDimensions,
    /// The image has values that are not finite numbers.
    NonFinite,
}

impl Fault {
    /// The code in exclusion lists and reports, `image_missing` and so on.
    pub fn code(self) -> &'static str {
        match self {
            Self::Missing => "image_missing",
            Self::Empty => "image_empty",
            Self::Unopened => "image_unopened",
            Self::Unreadable => "image_unreadable",
            Self::Unsupported => "image_unsupported",
            Self::WrongDimensions => "image_wrong_dimensions",
            Self::NonFinite => "image_non_finite",
        }
    }
}

/// The reason why a file gave no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Undecodable {
    /// What is wrong.
    pub fault: Fault,
    /// One sentence.
    pub detail: String,
}

impl Undecodable {
    pub(crate) fn new(fault: Fault, detail: impl Into<String>) -> Self {
        Self { fault, detail: detail.into() }
    }
}
