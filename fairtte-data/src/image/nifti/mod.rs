//! NIfTI-1 and NIfTI-2: header, byte order, voxel types, the matrix to body axes, gzip and pairs of files.
//!
//! This folder reads what a file says, without judgement of whether a model can use it: `volume.rs` makes a volume with
//! intensities in \[0, 1\] of it, `inspect.rs` a list of facts.

mod affine;
mod file;
mod gzip;
mod header;
mod orientation;
mod voxel_type;

pub use affine::{AffineSource, Matrix};
pub(super) use file::{Opened, Span};
pub(super) use header::{Header, Version};
pub(super) use orientation::Orientation;
pub use voxel_type::ByteOrder;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod case_tests;
#[cfg(test)]
mod make;
#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests;
