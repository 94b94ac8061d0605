//! NIfTI-1 volumes (`.nii`, `.nii.gz`, told apart by content) to voxels in \[0, 1\] with body-aligned axes.
//!
//! Slope and intercept of the header are applied (a slope of 0 or NaN means none), the axes are brought to right,
//! anterior, superior (see `orientation.rs`), and the intensities of each volume are scaled by its own minimum and
//! maximum, because the units of magnetic resonance are arbitrary. A constant volume becomes 0 everywhere.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;
use ndarray::{Array3, Axis, Ix3};
use nifti::{InMemNiftiVolume, IntoNdArray as _, NiftiHeader, NiftiType};

use super::orientation::Orientation;
use super::prepare::{Undecodable, sniff};
use crate::Reason;

/// A decoded volume with intensities in \[0, 1\].
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// `[depth, height, width]`: inferior to superior, posterior to anterior, left to right.
    pub size: [usize; 3],
    /// `[depth, height, width]`, width running fastest.
    pub voxels: Vec<f32>,
}

/// Voxel bytes that one volume may have; whole-body scans at sub-millimetre resolution stay below 2 GiB.
const MAX_BYTES: u64 = 4 << 30;
const HEADER_BYTES: usize = 348;

/// Decodes a NIfTI-1 file.
///
/// # Errors
/// A reason code and a sentence: empty, not NIfTI-1, truncated, damaged gzip stream, colour or complex voxels, more than
/// three dimensions, fewer than two voxels along an axis, voxels that are not finite.
pub fn decode_volume(file: impl Read) -> Result<Volume, Undecodable> {
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let start = reader.fill_buf().map_err(|error| unreadable(&error))?;
    if start.is_empty() {
        return Err(Undecodable::new(Reason::ImageEmpty, "the file has no bytes"));
    }
    if start.starts_with(&[0x1f, 0x8b]) { decode_stream(GzDecoder::new(reader)) } else { decode_stream(reader) }
}

fn unreadable(error: &dyn std::fmt::Display) -> Undecodable {
    Undecodable::new(Reason::ImageUnreadable, error.to_string())
}

fn decode_stream(mut stream: impl Read) -> Result<Volume, Undecodable> {
    let (header, voxel_type) = read_header(&mut stream)?;
    let [width, height, depth] = spatial_size(&header)?;
    let raw = read_voxels(&mut stream, &header, voxel_type, width * height * depth)?;
    // To the end of the stream: only there does gzip say whether its checksum holds.
    io::copy(&mut stream, &mut io::sink()).map_err(|error| unreadable(&error))?;
    let dim = [3, header.dim[1], header.dim[2], header.dim[3], 1, 1, 1, 1];
    let (slope, intercept) = scaling(&header)?;
    let volume = InMemNiftiVolume::from_raw_fields(dim, voxel_type, slope, intercept, raw, header.endianness)
        .map_err(|error| unreadable(&error))?;
    let stored = volume.into_ndarray::<f32>().map_err(|error| unreadable(&error))?;
    let stored = stored.into_dimensionality::<Ix3>().map_err(|error| unreadable(&error))?;
    scale_to_unit(&body_aligned(stored, Orientation::of(&header)))
}

/// The header, checked for everything that does not depend on the size, and the type of the voxels.
fn read_header(stream: &mut impl Read) -> Result<(NiftiHeader, NiftiType), Undecodable> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    stream.take(HEADER_BYTES as u64).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if let Some(kind) = sniff(&bytes).filter(|kind| kind.ends_with("picture")) {
        let detail = format!("the file is {kind}, expected a NIfTI volume because image.size has three entries");
        return Err(Undecodable::new(Reason::ImageWrongDimensions, detail));
    }
    let announced = bytes.get(..4).map(|size| [size[0], size[1], size[2], size[3]]).unwrap_or_default();
    if [i32::from_le_bytes(announced), i32::from_be_bytes(announced)].contains(&540) {
        return Err(Undecodable::new(Reason::ImageUnsupported, "the file is NIfTI-2, expected NIfTI-1"));
    }
    if bytes.len() < HEADER_BYTES {
        let detail = format!("the file holds {} bytes, a NIfTI-1 header alone has {HEADER_BYTES}", bytes.len());
        return Err(Undecodable::new(Reason::ImageUnreadable, detail));
    }
    let header = NiftiHeader::from_reader(bytes.as_slice()).map_err(|error| unreadable(&error))?;
    if &header.magic == b"ni1\0" {
        let detail = "the file is the header of a .hdr/.img pair, expected one .nii or .nii.gz file";
        return Err(Undecodable::new(Reason::ImageUnsupported, detail));
    }
    let voxel_type = header.data_type().map_err(|error| unreadable(&error))?;
    if !is_real_number(voxel_type) {
        let detail = format!("voxels are {voxel_type:?}, expected whole or floating-point numbers");
        return Err(Undecodable::new(Reason::ImageUnsupported, detail));
    }
    Ok((header, voxel_type))
}

fn is_real_number(voxel_type: NiftiType) -> bool {
    use NiftiType::{Float32, Float64, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64};
    matches!(voxel_type, Uint8 | Int8 | Uint16 | Int16 | Uint32 | Int32 | Uint64 | Int64 | Float32 | Float64)
}

/// `[x, y, z]`; further dimensions must be 1.
fn spatial_size(header: &NiftiHeader) -> Result<[usize; 3], Undecodable> {
    let dim = header.dim().map_err(|error| unreadable(&error))?;
    let shown = dim.iter().map(u16::to_string).collect::<Vec<_>>().join(" x ");
    let refuse = |expected: &str| {
        let detail = format!("the volume has {shown} voxels, expected {expected}");
        Err(Undecodable::new(Reason::ImageWrongDimensions, detail))
    };
    if dim.iter().any(|extent| *extent > 0x7fff) {
        return Err(Undecodable::new(Reason::ImageUnreadable, format!("the header holds a negative size: {shown}")));
    }
    let Some((space, rest)) = dim.split_first_chunk::<3>() else { return refuse("three dimensions") };
    if rest.iter().any(|extent| *extent != 1) {
        return refuse("three dimensions (a series over time must be reduced to one volume first)");
    }
    if space.iter().any(|extent| *extent < 2) {
        return refuse("at least 2 along each axis");
    }
    Ok(space.map(usize::from))
}

fn read_voxels(
    stream: &mut impl Read,
    header: &NiftiHeader,
    voxel_type: NiftiType,
    n_voxels: usize,
) -> Result<Vec<u8>, Undecodable> {
    let n_bytes = n_voxels as u64 * voxel_type.size_of() as u64;
    if n_bytes > MAX_BYTES {
        let detail = format!("the header announces {n_bytes} bytes of voxels, expected at most {MAX_BYTES}");
        return Err(Undecodable::new(Reason::ImageUnreadable, detail));
    }
    let offset = header.vox_offset;
    if !(offset.is_finite() && (HEADER_BYTES as f32..=1e9).contains(&offset)) {
        let detail = format!("vox_offset is {offset}, expected at least {HEADER_BYTES}");
        return Err(Undecodable::new(Reason::ImageUnreadable, detail));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 348 and 1e9")]
    let n_between = offset as u64 - HEADER_BYTES as u64;
    io::copy(&mut stream.take(n_between), &mut io::sink()).map_err(|error| unreadable(&error))?;
    // Not reserved in advance: a header may announce gigabytes over a stream of a few bytes.
    let mut raw = Vec::new();
    stream.take(n_bytes).read_to_end(&mut raw).map_err(|error| unreadable(&error))?;
    if raw.len() as u64 != n_bytes {
        let detail = format!("the file holds {} bytes of voxels, expected {n_bytes}: it is truncated", raw.len());
        return Err(Undecodable::new(Reason::ImageUnreadable, detail));
    }
    Ok(raw)
}

/// Slope and intercept, (0, 0) for none.
fn scaling(header: &NiftiHeader) -> Result<(f32, f32), Undecodable> {
    let (slope, intercept) = (header.scl_slope, header.scl_inter);
    if slope == 0.0 || !slope.is_finite() {
        return Ok((0.0, 0.0));
    }
    if !intercept.is_finite() {
        let detail = format!("scl_inter is {intercept}, expected a finite number");
        return Err(Undecodable::new(Reason::ImageUnreadable, detail));
    }
    Ok((slope, intercept))
}

/// `[x, y, z]` in stored order -> `[superior, anterior, right]`.
fn body_aligned(stored: Array3<f32>, Orientation([right, anterior, superior]): Orientation) -> Array3<f32> {
    let axes = [superior, anterior, right];
    let mut volume = stored.permuted_axes(axes.map(|(axis, _)| axis));
    for (axis, (_, flipped)) in axes.into_iter().enumerate() {
        if flipped {
            volume.invert_axis(Axis(axis));
        }
    }
    volume
}

fn scale_to_unit(volume: &Array3<f32>) -> Result<Volume, Undecodable> {
    let (depth, height, width) = volume.dim();
    let mut voxels: Vec<f32> = volume.as_standard_layout().iter().copied().collect();
    let n_bad = voxels.iter().filter(|voxel| !voxel.is_finite()).count();
    if n_bad > 0 {
        let detail = format!("{n_bad} of {} voxels are not finite numbers", voxels.len());
        return Err(Undecodable::new(Reason::ImageNonFinite, detail));
    }
    let lowest = voxels.iter().copied().fold(f32::INFINITY, f32::min);
    let highest = voxels.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    // In f64: the range of two finite f32 may overflow f32.
    let (lowest, range) = (f64::from(lowest), f64::from(highest) - f64::from(lowest));
    for voxel in &mut voxels {
        let unit = if range > 0.0 { (f64::from(*voxel) - lowest) / range } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1")]
        let unit = unit as f32;
        *voxel = unit;
    }
    Ok(Volume { size: [depth, height, width], voxels })
}
