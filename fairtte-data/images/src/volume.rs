//! NIfTI volumes and DICOM series to voxels in \[0, 1\] with body-aligned axes.
//!
//! Slope and intercept of the header are applied, the axes are brought to right, anterior, superior (see `nifti/`), and
//! the intensities of each volume are scaled by its own range, because the units of magnetic resonance are arbitrary:
//! by its minimum and maximum, or by the 0.5th and 99.5th percentile with clipping, which are robust to a few bright
//! vessels or metal. A constant volume becomes 0 everywhere. All arithmetic is in f64 on the stored numbers and rounded
//! once.
//!
//! A series (4D) is refused unless the settings select one of its volumes: which time point of a series represents the
//! subject is a decision of the study.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::dicom_series::{self, Series};
use super::nifti::{Grid, Opened, Orientation, Span};
use super::prepare::sniff;
use super::{Limits, Resampling};
use crate::{Fault, Undecodable};

/// A decoded volume with intensities in \[0, 1\].
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// `[depth, height, width]`: inferior to superior, posterior to anterior, left to right.
    pub size: [usize; 3],
    /// `[depth, height, width]`, width running fastest.
    pub voxels: Vec<f32>,
}

/// How volumes are read, `[image.volume]`.
///
/// ```
/// use fairtte_images::{Resampling, VolumeConfig, VolumeRange};
///
/// let config: VolumeConfig = toml::from_str("range = \"percentile\"\nframe = 0")?;
/// assert_eq!((config.range, config.frame), (VolumeRange::Percentile, Some(0)));
/// assert_eq!(config.resample, Resampling::Antialiased);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct VolumeConfig {
    /// Which volume of a series (4D file) is taken, counted from 0; if not given, a series is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<u32>,
    /// Which intensities become 0 and 1; `min-max` if not given.
    pub range: VolumeRange,
    /// How a volume with NaN or infinite voxels is treated; `exclude` if not given.
    pub non_finite: NonFinite,
    /// How a volume is brought to `image.size`; `antialiased` if not given.
    pub resample: Resampling,
}

/// Which intensities of a volume become 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VolumeRange {
    /// The lowest and the highest.
    #[default]
    MinMax,
    /// The 0.5th and the 99.5th percentile of all finite voxels (linear between neighbours, as numpy counts them);
    /// values outside are clipped. If the two are equal, the lowest and the highest.
    Percentile,
}

/// How a volume with voxels that are not finite numbers is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NonFinite {
    /// Excluded with reason `image_non_finite`.
    #[default]
    Exclude,
    /// Such voxels become 0, the darkest intensity, and do not count for the range: for software that writes NaN
    /// outside the brain. A volume without any finite voxel is still excluded.
    Zero,
}

/// Decodes a `.nii` or `.nii.gz` stream with the default settings and limits; see [`decode_volume_file`].
///
/// # Errors
/// As [`decode_volume_file`]; also the header of a `.hdr/.img` pair, whose voxels are not in the stream.
pub fn decode_volume(file: impl Read) -> Result<Volume, Undecodable> {
    decode(Opened::from_stream(file)?, &VolumeConfig::default(), &Limits::default())
}

/// Decodes the NIfTI-1 or NIfTI-2 file at `path`: `.nii`, `.nii.gz`, or either half of a `.hdr/.img` pair; or the
/// folder of a DICOM series (with the cargo feature `dicom`).
///
/// Memory: the stored numbers of one volume, 4 bytes per voxel for the result, and 4 more for percentiles.
///
/// # Errors
/// A reason code and a sentence: missing, unreadable, empty, not NIfTI, truncated, larger than the limits, damaged gzip
/// stream, colour or complex voxels, no usable matrix, a series without `frame`, fewer than two voxels along an axis,
/// voxels that are not finite; for a folder, also slices that do not form one evenly spaced stack.
pub fn decode_volume_file(path: &Path, config: &VolumeConfig, limits: &Limits) -> Result<Volume, Undecodable> {
    if path.is_dir() {
        return decode_series(path, config, limits);
    }
    let opened = Opened::open(path).map_err(|refused| pictured(path, refused))?;
    decode(opened, config, limits)
}

/// Adds the setting that requires volumes to the refusal of a file that is a picture.
fn pictured(path: &Path, refused: Undecodable) -> Undecodable {
    let mut start = [0; 16];
    let n = File::open(path).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    match sniff(&start[..n]).filter(|kind| kind.ends_with("picture")) {
        Some(kind) => {
            let detail = format!("the file is {kind}, expected a NIfTI volume because image.size has three entries");
            Undecodable::new(Fault::WrongDimensions, detail)
        }
        None => refused,
    }
}

fn decode<R: Read>(opened: Opened<R>, config: &VolumeConfig, limits: &Limits) -> Result<Volume, Undecodable> {
    let grid = opened.header.grid.clone();
    let orientation = orientation(&grid)?;
    let n_all = opened.n_voxel_bytes()?;
    let (frame, n_frames) = frame_of(&grid, config.frame)?;
    limits.admit(&grid.space().map(|extent| extent as u64), grid.voxel_type.n_bytes() as u64 + 4)?;
    let n_bytes = n_all / n_frames;
    let (stored, _) = opened.read(Span { begin: n_bytes * frame, n_bytes }, limits)?;
    let range = range(&grid, &stored, config)?;
    Ok(place(&grid, &stored, orientation, range))
}

fn decode_series(folder: &Path, config: &VolumeConfig, limits: &Limits) -> Result<Volume, Undecodable> {
    let Series { grid, stored, .. } = dicom_series::read(folder, limits)?;
    let orientation = orientation(&grid)?;
    frame_of(&grid, config.frame)?;
    let range = range(&grid, &stored, config)?;
    Ok(place(&grid, &stored, orientation, range))
}

fn orientation(grid: &Grid) -> Result<Orientation, Undecodable> {
    let affine = grid.affine.as_ref();
    Ok(affine.map_err(|detail| Undecodable::new(Fault::Unreadable, detail.clone()))?.orientation)
}

/// The index of the selected volume of the file, and the number of volumes.
fn frame_of(grid: &Grid, frame: Option<u32>) -> Result<(u64, u64), Undecodable> {
    let shown = grid.shown_shape();
    let refuse = |expected: &str| {
        let detail = format!("the volume has {shown} voxels, expected {expected}");
        Err(Undecodable::new(Fault::WrongDimensions, detail))
    };
    let Some((space, rest)) = grid.shape.split_first_chunk::<3>() else { return refuse("three dimensions") };
    if rest.iter().filter(|extent| **extent > 1).count() > 1 {
        return refuse("three dimensions, or four of which image.volume.frame picks one volume");
    }
    let n_frames = rest.iter().product::<usize>() as u64;
    let frame = match frame {
        None if n_frames > 1 => {
            return refuse("three dimensions (a series over time: image.volume.frame picks one volume)");
        }
        None => 0,
        Some(frame) if u64::from(frame) >= n_frames => {
            return refuse(&format!("a volume at image.volume.frame = {frame}, counted from 0"));
        }
        Some(frame) => u64::from(frame),
    };
    if space.iter().any(|extent| *extent < 2) {
        return refuse("at least 2 along each axis");
    }
    Ok((frame, n_frames))
}

/// The scaled values that become 0 and 1.
fn range(grid: &Grid, stored: &[u8], config: &VolumeConfig) -> Result<[f64; 2], Undecodable> {
    let (mut lowest, mut highest, mut n_finite) = (f64::INFINITY, f64::NEG_INFINITY, 0_usize);
    grid.voxel_type.for_each(grid.byte_order, stored, |number| {
        let value = grid.scaled(number);
        if value.is_finite() {
            n_finite += 1;
            lowest = lowest.min(value);
            highest = highest.max(value);
        }
    });
    let n = stored.len() / grid.voxel_type.n_bytes();
    if n_finite == 0 || (n_finite < n && config.non_finite == NonFinite::Exclude) {
        let detail = format!("voxels that are not finite numbers: {} of {n}", n - n_finite);
        return Err(Undecodable::new(Fault::NonFinite, detail));
    }
    Ok(match config.range {
        VolumeRange::MinMax => [lowest, highest],
        VolumeRange::Percentile => {
            Some(percentiles(grid, stored, n_finite)).filter(|[low, high]| low < high).unwrap_or([lowest, highest])
        }
    })
}

/// The 0.5th and the 99.5th percentile of the finite values, kept in f32 to halve the memory.
fn percentiles(grid: &Grid, stored: &[u8], n_finite: usize) -> [f64; 2] {
    let mut values = Vec::with_capacity(n_finite);
    grid.voxel_type.for_each(grid.byte_order, stored, |number| {
        let value = grid.scaled(number);
        if value.is_finite() {
            #[expect(clippy::cast_possible_truncation, reason = "rounded to f32")]
            values.push(value as f32);
        }
    });
    [0.005, 0.995].map(|share| {
        let position = share * (n_finite - 1) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index of `values`")]
        let below = position as usize;
        let (_, &mut value, above) = values.select_nth_unstable_by(below, f32::total_cmp);
        let next = above.iter().copied().min_by(f32::total_cmp).unwrap_or(value);
        f64::from(value) + (f64::from(next) - f64::from(value)) * (position - below as f64)
    })
}

/// Stored numbers, `x` running fastest, to intensities at their index in `[superior, anterior, right]`.
fn place(grid: &Grid, stored: &[u8], orientation: Orientation, [lowest, highest]: [f64; 2]) -> Volume {
    let extents = grid.space();
    let [width, height, depth] = orientation.size(extents);
    // For each stored axis: the index of its first voxel in the result, and the stride of its neighbours.
    let (mut first, mut step) = (0_usize, [0_isize; 3]);
    for ((axis, flipped), stride) in orientation.0.into_iter().zip([1, width, width * height]) {
        first += if flipped { stride * (extents[axis] - 1) } else { 0 };
        step[axis] = if flipped { -stride.cast_signed() } else { stride.cast_signed() };
    }
    // Halves before the subtraction: the range of two finite f64 may overflow.
    let half_range = highest / 2.0 - lowest / 2.0;
    let unit = |value: f64| {
        let unit = if half_range > 0.0 { (value / 2.0 - lowest / 2.0) / half_range } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1")]
        let unit = unit.clamp(0.0, 1.0) as f32;
        if value.is_finite() { unit } else { 0.0 }
    };
    let mut voxels = vec![0.0; width * height * depth];
    for (i, row) in stored.chunks_exact(extents[0] * grid.voxel_type.n_bytes()).enumerate() {
        let along = |axis: usize, index: usize| step[axis].wrapping_mul(index.cast_signed());
        let mut at = first.wrapping_add_signed(along(1, i % extents[1])).wrapping_add_signed(along(2, i / extents[1]));
        grid.voxel_type.for_each(grid.byte_order, row, |number| {
            voxels[at] = unit(grid.scaled(number));
            at = at.wrapping_add_signed(step[0]);
        });
    }
    Volume { size: [depth, height, width], voxels }
}
