//! The header of one DICOM slice of a volume: its series, its position, and the interpretation of its numbers.
//!
//! Positions and directions stay in the patient coordinates of DICOM (millimetres to the left, posterior and superior;
//! PS3.3 C.7.6.2.1.1). Window and `MONOCHROME1` only affect the display of a slice, not its values, and are not
//! applied.

use super::super::{unreadable, unsupported};
use super::elements::{self, Elements, Syntax, Tag};
use super::window::rescaling;
use super::{Layout, Samples, gray, stored_words};
use crate::nifti::VoxelType;
use crate::{Limits, Undecodable};

/// The header of one slice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slice {
    /// `SeriesInstanceUID`.
    pub series: Option<String>,
    pub rows: usize,
    pub columns: usize,
    /// `U8`, `U16` or `I16`.
    pub voxel_type: VoxelType,
    /// Whether the smallest value is shown white (`MONOCHROME1`).
    pub is_inverted: bool,
    /// Slope and intercept.
    pub scaling: [f64; 2],
    /// Centre of the first pixel.
    pub position: Option<[f64; 3]>,
    /// Direction in which columns are counted, then the one in which rows are.
    pub orientation: [[f64; 3]; 2],
    /// Distance of rows, then of columns; both positive.
    pub pixel_spacing: [f64; 2],
}

impl Slice {
    /// Reads the header from `bytes`, the beginning of a file; `None` if the pixel data begin later.
    ///
    /// # Errors
    /// A file that cannot be a slice of a volume: several frames, mosaics, localisers, colours, no orientation or
    /// spacing. An element may seem truncated because `bytes` end within it.
    pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<Option<Self>, Undecodable> {
        with_data_set(bytes, limits, |data_set, syntax| {
            Elements::read_header(data_set, syntax)?.map(|elements| Self::of(&elements)).transpose()
        })
    }

    fn of(elements: &Elements) -> Result<Self, Undecodable> {
        refuse_what_is_no_slice(elements)?;
        let layout = Layout::read(elements)?;
        if layout.n_channels != 1 {
            return Err(unsupported(format!("the DICOM slice is {}, expected gray", layout.photometric)));
        }
        let missing = |name: &str| unreadable(format!("the DICOM slice has no {name}, so its place is unknown"));
        let name = "Image Orientation (Patient)";
        let orientation: [f64; 6] = elements.decimals(Tag::IMAGE_ORIENTATION, name)?.ok_or_else(|| missing(name))?;
        let [x0, x1, x2, y0, y1, y2] = orientation;
        let pixel_spacing: [f64; 2] =
            elements.decimals(Tag::PIXEL_SPACING, "Pixel Spacing")?.ok_or_else(|| missing("Pixel Spacing"))?;
        if let Some(spacing) = pixel_spacing.iter().find(|spacing| **spacing <= 0.0) {
            return Err(unreadable(format!("the DICOM Pixel Spacing is {spacing} mm, expected a number > 0")));
        }
        Ok(Self {
            series: elements.text(Tag::SERIES_INSTANCE_UID),
            rows: layout.height,
            columns: layout.width,
            voxel_type: match (layout.is_signed, layout.bits_allocated) {
                (true, _) => VoxelType::I16,
                (false, 8) => VoxelType::U8,
                (false, _) => VoxelType::U16,
            },
            is_inverted: layout.photometric == "MONOCHROME1",
            scaling: rescaling(elements)?,
            position: elements.decimals(Tag::IMAGE_POSITION, "Image Position (Patient)")?,
            orientation: [[x0, x1, x2], [y0, y1, y2]],
            pixel_spacing,
        })
    }
}

/// The error for files that hold more or less than one slice of a volume.
fn refuse_what_is_no_slice(elements: &Elements) -> Result<(), Undecodable> {
    let n_frames = elements.text(Tag::NUMBER_OF_FRAMES).and_then(|text| text.parse::<i64>().ok()).unwrap_or(1);
    if n_frames > 1 {
        return Err(unsupported(format!(
            "the DICOM file holds {n_frames} frames (enhanced or multi-frame), expected one slice per file: convert it to \
             NIfTI"
        )));
    }
    let image_type = elements.texts(Tag::IMAGE_TYPE);
    if image_type.iter().any(|part| part == "MOSAIC") || elements.has(Tag::IMAGES_IN_MOSAIC) {
        return Err(unsupported(
            "the DICOM file is a Siemens mosaic of many slices in one picture, expected one slice per file: convert it to \
             NIfTI",
        ));
    }
    if image_type.iter().any(|part| part == "LOCALIZER") {
        return Err(unsupported("the DICOM slice is a localiser (Image Type LOCALIZER), expected a volume"));
    }
    Ok(())
}

/// The stored numbers of the slice in `bytes`, a whole file: `[rows, columns]`.
///
/// # Errors
/// As for a picture: truncated, an unsupported compression, larger than the limits.
pub(crate) fn slice_samples(bytes: &[u8], limits: &Limits) -> Result<Samples, Undecodable> {
    with_data_set(bytes, limits, |data_set, syntax| {
        let elements = Elements::read(data_set, syntax)?;
        let (words, layout) = stored_words(&elements, syntax, limits)?;
        if layout.n_channels != 1 {
            return Err(unsupported(format!("the DICOM slice is {}, expected gray", layout.photometric)));
        }
        Ok(gray(&words, &layout))
    })
}

/// Passes on the bytes after the file meta information, inflated if they were deflated.
fn with_data_set<T>(
    bytes: &[u8],
    limits: &Limits,
    then: impl FnOnce(&[u8], Syntax) -> Result<T, Undecodable>,
) -> Result<T, Undecodable> {
    let file = elements::read_meta(bytes)?;
    if file.syntax.is_deflated {
        return then(&elements::inflate(file.data_set, limits)?, file.syntax);
    }
    then(file.data_set, file.syntax)
}
