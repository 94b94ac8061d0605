//! NIfTI-1 and NIfTI-2: header, byte order, voxel types, the matrix to body axes, gzip and pairs of files.
//!
//! This folder reads the content of a file, independently of whether a model can use it: `volume.rs` makes a volume
//! with intensities in \[0, 1\] from it, `inspect/` a description.

mod affine;
mod file;
mod gzip;
mod header;
mod orientation;
mod voxel_type;

#[cfg(feature = "dicom")]
pub(super) use affine::Affine;
pub use affine::{AffineSource, Matrix};
pub use file::halves_of_pair;
pub(super) use file::{Opened, Span};
#[cfg(test)]
pub(super) use header::Header;
pub(super) use header::{Grid, Version};
pub(super) use orientation::Orientation;
pub use voxel_type::ByteOrder;
#[cfg(feature = "dicom")]
pub(super) use voxel_type::VoxelType;

#[cfg(test)]
#[expect(clippy::cast_possible_wrap, reason = "extents of made-up volumes are small")]
mod make;
#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::ref_option,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::type_complexity,
    reason = "a failing unwrap is a failing test; made-up values are small and exact"
)]
mod tests;
