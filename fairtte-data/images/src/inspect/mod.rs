//! Description of an image file or the folder of a series: format, size, numbers, orientation, and values at chosen
//! indices.
//!
//! The format is recognised by the content; the name is only used to report a file named like a volume that is not one.
//! Nothing is scaled to \[0, 1\] or resized: the values are those of the file (after slope and intercept for volumes,
//! the stored samples for pictures), so that they can be compared with any other reader. A series (4D) is described as
//! a whole although ingestion requires that one of its volumes is selected.

mod number;
mod picture;
mod text;
mod volume;

use std::fs::File;
use std::io::{self, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use number::{Number, PixelValue};

use super::Limits;
use super::nifti::{AffineSource, ByteOrder, Matrix};
use super::prepare::sniff;
use crate::{Fault, Undecodable};

/// The description of a file; JSON by `serde`, one line per property by `Display`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Inspection {
    /// The file, or the folder of a series.
    pub path: PathBuf,
    /// `NIfTI-1`, `NIfTI-2`, `dicom-series` (a folder), `JPEG`, `PNG`, `TIFF` or `DICOM`.
    pub format: String,
    /// Whether the file, or a half of a pair, is gzipped.
    pub gzip: bool,
    /// Byte order of the numbers; `null` for pictures and series.
    pub byte_order: Option<ByteOrder>,
    /// Slices of a series; `null` for files.
    pub n_slices: Option<usize>,
    /// Extents as stored: `[x, y, z, ..]` of volumes, `[width, height]` of pictures.
    pub stored_size: Vec<usize>,
    /// Extents after bringing volumes to right, anterior, superior (RAS+) and rotating pictures by EXIF; `null` for
    /// arrays of fewer than three dimensions that are not stored in this orientation.
    pub oriented_size: Option<Vec<usize>>,
    /// Type of the stored numbers, as numpy names it, for example `int16`.
    pub dtype: String,
    /// Numbers per pixel; 1 for volumes.
    pub channels: usize,
    /// Factor that stored numbers are multiplied with; `null` for none.
    pub slope: Option<f64>,
    /// Offset that is added after the factor; `null` for none.
    pub intercept: Option<f64>,
    /// Lowest finite value; `null` if there is none.
    pub min: Option<f64>,
    /// Highest finite value; `null` if there is none.
    pub max: Option<f64>,
    /// Mean of the finite values; `null` if there is none.
    pub mean: Option<f64>,
    /// Values that are NaN or infinite.
    pub n_non_finite: u64,
    /// Distance of neighbours along each stored axis in the units of the header (millimetres, seconds); `null` for
    /// pictures.
    pub spacing: Option<Vec<Number>>,
    /// The directions of the stored axes, for example `LAS`; `null` for pictures.
    pub axis_codes: Option<String>,
    /// From stored voxel index to millimetres; `null` for pictures.
    pub affine: Option<Matrix>,
    /// Where the matrix comes from; `null` for pictures.
    pub affine_source: Option<AffineSource>,
    /// From voxel index of the reoriented (RAS+) volume to millimetres; `null` as `oriented-size`.
    pub canonical_affine: Option<Matrix>,
    /// EXIF orientation 1 to 8 of a picture; `null` for volumes.
    pub exif_orientation: Option<u8>,
    /// The requested values.
    pub at: Vec<ValueAt>,
    /// Notes on ignored or replaced data.
    pub notes: Vec<String>,
}

/// The values at one index.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ValueAt {
    /// `[x, y, z, ..]` of volumes, `[x, y]` (column, row) of pictures, counted from 0.
    pub index: Vec<usize>,
    /// In the array as stored; `null` if the index is outside of it.
    pub stored: Option<PixelValue>,
    /// At the same index of the oriented image; `null` if it is outside of it or there is none.
    pub oriented: Option<PixelValue>,
}

/// Describes the image at `path`, a file or the folder of a DICOM series; `at` lists the indices whose values are
/// wanted.
///
/// An index may leave out trailing zeros (`[3, 4, 5]` in a series is its first volume). It must be inside the stored or
/// the oriented image.
///
/// Cost: one pass over the values. A volume is not held in memory, so its size is only bounded by the length of its
/// file; pictures and series are decoded and compared with `limits`.
///
/// # Errors
/// A reason code and a sentence why the file is refused.
pub fn inspect_file(path: &Path, limits: &Limits, at: &[Vec<usize>]) -> Result<Inspection, Undecodable> {
    // Third-party decoders work on arbitrary bytes here, as in `prepare_image`.
    catch_unwind(AssertUnwindSafe(|| inspect(path, limits, at)))
        .unwrap_or_else(|_| Err(Undecodable::new(Fault::Unreadable, "the decoder stopped on an internal error")))
}

fn inspect(path: &Path, limits: &Limits, at: &[Vec<usize>]) -> Result<Inspection, Undecodable> {
    let unopened = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Undecodable::new(Fault::Missing, "there is no such file"),
        _ => Undecodable::new(Fault::Unopened, error.to_string()),
    };
    if path.is_dir() {
        return volume::inspect_series(path, limits, at);
    }
    let mut start = Vec::new();
    File::open(path).and_then(|file| file.take(512).read_to_end(&mut start)).map_err(unopened)?;
    if start.is_empty() {
        return Err(Undecodable::new(Fault::Empty, "the file has no bytes"));
    }
    let kind = sniff(&start);
    if let Some(kind) = kind.filter(|kind| kind.ends_with("picture")) {
        if is_named_volume(path) {
            let detail = format!("the file is named like a NIfTI volume but is {kind}");
            return Err(Undecodable::new(Fault::WrongDimensions, detail));
        }
        return picture::inspect(path, limits, at);
    }
    if is_named_volume(path) || is_volume(&start) {
        return volume::inspect(path, limits, at);
    }
    picture::inspect(path, limits, at)
}

fn is_volume(start: &[u8]) -> bool {
    let first = matches!(start.get(344..348), Some(b"n+1\0" | b"ni1\0"));
    let second = matches!(start.get(4..8), Some(b"n+2\0" | b"ni2\0"));
    first || second || start.starts_with(&[0x1f, 0x8b])
}

fn is_named_volume(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [".nii", ".hdr", ".img", ".mgh", ".mgz"].iter().any(|ending| name.ends_with(ending))
}

/// The refusal of an index outside an image.
fn outside(index: &[usize], size: &str) -> Undecodable {
    let shown = index.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let detail = format!("index {shown} lies outside the image of {size}, counted from 0");
    Undecodable::new(Fault::WrongDimensions, detail)
}

fn shown_size(size: &[usize]) -> String {
    size.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ")
}
