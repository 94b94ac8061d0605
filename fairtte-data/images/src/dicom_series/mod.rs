//! A folder of DICOM slices read as one volume.
//!
//! Every file of the folder that may be a slice (`files.rs`) must belong to the same series and have the same size,
//! direction, pixel spacing and number type. Slices are ordered by their positions (`stack.rs`), whatever their names,
//! and must be evenly spaced: missing, repeated or mixed slices are an error that names two of the files. The result is
//! that of a NIfTI file: stored numbers with slope and intercept, and a matrix to right, anterior, superior (DICOM
//! counts to the left and to the back, so its first two rows change sign). Nothing is interpolated.
//!
//! Source: PS3.3 C.7.6.2.1.1 (image plane). Differs from dcm2niix and dicom2nifti: no series is divided, cropped or
//! resampled to make it fit. The private fields of manufacturers are not read, so mosaics are refused; so are files of
//! several frames, localisers and colours. Sub-folders, hidden files, `DICOMDIR` and files with another ending are
//! skipped. Values recorded in tests: `SimpleITK` 2.5.7 with nibabel 5.4.2.

mod files;
#[cfg(feature = "dicom")]
mod stack;
#[cfg(all(test, feature = "dicom"))]
#[expect(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "a failing unwrap is a failing test; made-up values are small and exact"
)]
mod tests;

use std::path::Path;

pub use self::files::slice_files;
use super::nifti::Grid;
use super::{Limits, Undecodable};
use crate::Fault;

/// The voxels of a series, and their positions.
pub(super) struct Series {
    pub grid: Grid,
    /// Numbers of type `grid.voxel_type`, `[slices, rows, columns]`.
    pub stored: Vec<u8>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Maximum number of slices of a volume; a folder with more holds many series.
#[cfg(feature = "dicom")]
const MOST_SLICES: usize = 10_000;

/// Bytes at the beginning of a file that usually hold everything except the pixels.
#[cfg(feature = "dicom")]
const HEADER_BYTES: u64 = 1 << 16;

/// Reads the series in `folder`.
///
/// Files are read twice: their headers, before memory is allocated for the volume, and their pixels. Memory: the stored
/// numbers of the volume (as `f64` if slope or intercept change from slice to slice) and one file.
///
/// # Errors
/// A reason code and a sentence why the folder is not a volume.
#[cfg(feature = "dicom")]
pub(super) fn read(folder: &Path, limits: &Limits) -> Result<Series, Undecodable> {
    let stack = stack::Stack::new(headers(folder, limits)?)?;
    stack.read(limits)
}

/// Reads the series in `folder`; not available in this build.
///
/// # Errors
/// Always.
#[cfg(not(feature = "dicom"))]
pub(super) fn read(_: &Path, _: &Limits) -> Result<Series, Undecodable> {
    let detail = "the path is a folder, and this program was built without the feature `dicom` that reads DICOM series";
    Err(Undecodable::new(Fault::Unopened, detail))
}

/// The headers of all slices; each agrees with the first.
#[cfg(feature = "dicom")]
fn headers(folder: &Path, limits: &Limits) -> Result<Vec<stack::Placed>, Undecodable> {
    let files = slice_files(folder).map_err(|error| Undecodable::new(Fault::Unopened, error.to_string()))?;
    if files.is_empty() {
        let detail =
            "the folder holds no DICOM slices (files that end in .dcm, or without an ending that begin like DICOM)";
        return Err(Undecodable::new(Fault::Unopened, detail));
    }
    if files.len() > MOST_SLICES {
        let n = files.len();
        let detail = format!("the folder holds {n} DICOM files, expected one series of at most {MOST_SLICES} slices");
        return Err(Undecodable::new(Fault::Unsupported, detail));
    }
    let n_files = files.len();
    let mut slices: Vec<stack::Placed> = Vec::new();
    for path in files {
        let header = files::header(&path, limits).map_err(|refused| named(&path, &refused))?;
        let slice = stack::Placed { path, header };
        if let Some(first) = slices.first() {
            first.check_agreement(&slice)?;
        } else {
            let extents = [slice.header.columns, slice.header.rows, n_files].map(|extent| extent as u64);
            limits.admit(&extents, slice.header.voxel_type.n_bytes() as u64 + 4)?;
        }
        slices.push(slice);
    }
    Ok(slices)
}

/// A refusal with the name of its file.
#[cfg(feature = "dicom")]
fn named(path: &Path, refused: &Undecodable) -> Undecodable {
    Undecodable::new(refused.fault, format!("{}: {}", name(path), refused.detail))
}

#[cfg(feature = "dicom")]
fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().display().to_string()
}
