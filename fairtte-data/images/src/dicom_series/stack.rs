//! The order of the slices, their matrix, and their voxels.
//!
//! With the directions x (columns are counted along it) and y (rows) of the plane and its normal n = x * y (cross
//! product), slices are ordered by position . n. The distance of neighbours may differ from the median distance by 1 %
//! of it or 0.01 mm, whichever is more (positions are decimal texts, which scanners round); a slice may be as far off
//! the line from the first position to the last. In patient coordinates the matrix has the columns x * column spacing,
//! y * row spacing, (last position - first position) / (number of slices - 1), first position. A tilted stack (gantry
//! tilt) thus keeps its shear; nothing is resampled.
//!
//! Slices without a position are refused: their instance numbers give an order but not its direction, and a brain whose
//! left and right are exchanged looks like any other.

use std::path::PathBuf;

use super::{Series, files, name, named};
use crate::nifti::{Affine, AffineSource, ByteOrder, Grid, VoxelType};
use crate::picture::dicom::{Slice, slice_samples};
use crate::{Fault, Limits, Samples, Undecodable};

/// Share of the spacing, and millimetres, by which a slice may be off its position.
const TOLERANCE: (f64, f64) = (0.01, 0.01);

/// Difference of two direction cosines that counts as rounding error.
const SAME_DIRECTION: f64 = 1e-4;

/// How far a direction may be from length 1, and two of them from perpendicular.
const UNIT: f64 = 1e-3;

type Vector = [f64; 3];

/// A slice and its file.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub path: PathBuf,
    pub header: Slice,
}

/// Slices in order, and the interpretation of their numbers.
pub(super) struct Stack {
    slices: Vec<Placed>,
    affine: Affine,
    spacing: [f64; 3],
    notes: Vec<String>,
}

/// Position of the first slice and the step to the next, in patient coordinates.
struct Line {
    first: Vector,
    step: Vector,
}

fn unreadable(detail: impl Into<String>) -> Undecodable {
    Undecodable::new(Fault::Unreadable, detail)
}

impl Placed {
    fn name(&self) -> String {
        name(&self.path)
    }

    /// Returns an error if `other` is not a slice of the same volume.
    pub(super) fn check_agreement(&self, other: &Self) -> Result<(), Undecodable> {
        let (a, b) = (&self.header, &other.header);
        let are_close = |a: &[f64], b: &[f64], most: f64| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= most);
        let differs = if a.series != b.series {
            "series (SeriesInstanceUID)"
        } else if (a.rows, a.columns) != (b.rows, b.columns) {
            "size"
        } else if !are_close(a.orientation.as_flattened(), b.orientation.as_flattened(), SAME_DIRECTION) {
            "orientation"
        } else if !are_close(&a.pixel_spacing, &b.pixel_spacing, SAME_DIRECTION * a.pixel_spacing[0]) {
            "pixel spacing"
        } else if a.voxel_type != b.voxel_type {
            "number type"
        } else if a.is_inverted != b.is_inverted {
            // Values of one series have one meaning: dark is small in all slices, or large in all.
            "photometric interpretation (MONOCHROME1 and MONOCHROME2)"
        } else {
            return Ok(());
        };
        let (one, other) = (self.name(), other.name());
        let detail = format!("the slices {one} and {other} differ in {differs}, expected one series in a folder");
        Err(unreadable(detail))
    }
}

impl Stack {
    /// Orders slices that agree with one another.
    pub(super) fn new(mut slices: Vec<Placed>) -> Result<Self, Undecodable> {
        if slices.len() < 2 {
            let detail = format!("the folder holds {} DICOM slice, expected 2 or more", slices.len());
            return Err(Undecodable::new(Fault::WrongDimensions, detail));
        }
        let header = slices[0].header.clone();
        let normal = normal(header.orientation)?;
        let without = slices.iter().filter(|slice| slice.header.position.is_none()).count();
        if without > 0 {
            let n = slices.len();
            return Err(unreadable(format!(
                "slices without Image Position (Patient): {without} of {n}; the direction of the stack is unknown"
            )));
        }
        let line = by_position(&mut slices, normal)?;
        let [x, y] = header.orientation;
        let [row_spacing, column_spacing] = header.pixel_spacing;
        let row = |axis: usize| {
            // From left to right and from back to front; the vertical axis is the same in both.
            let sign = if axis < 2 { -1.0 } else { 1.0 };
            [x[axis] * column_spacing, y[axis] * row_spacing, line.step[axis], line.first[axis]]
                .map(|entry| sign * entry)
        };
        let affine = Affine::new([row(0), row(1), row(2)], AffineSource::Slices)
            .ok_or_else(|| unreadable("the matrix of the DICOM slices is not invertible"))?;
        let notes = notes(&line, normal);
        Ok(Self { affine, spacing: [column_spacing, row_spacing, length(line.step)], notes, slices })
    }

    /// Decodes the slices one after the other into one array.
    pub(super) fn read(mut self, limits: &Limits) -> Result<Series, Undecodable> {
        let Slice { rows, columns, voxel_type, scaling, .. } = self.slices[0].header;
        #[expect(clippy::float_cmp, reason = "one pair of numbers for all slices, or not")]
        let is_scaling_shared = self.slices.iter().all(|slice| slice.header.scaling == scaling);
        let stored_type = if is_scaling_shared { voxel_type } else { VoxelType::F64 };
        let shape = vec![columns, rows, self.slices.len()];
        let extents: Vec<u64> = shape.iter().map(|extent| *extent as u64).collect();
        limits.admit(&extents, stored_type.n_bytes() as u64 + 4)?;
        let mut stored = Vec::with_capacity(shape.iter().product::<usize>() * stored_type.n_bytes());
        for Placed { path, header } in &self.slices {
            let samples = files::bytes(path, u64::MAX, limits).and_then(|(bytes, _)| slice_samples(&bytes, limits));
            let samples = samples.map_err(|refused| named(path, &refused))?;
            if (n_samples(&samples), type_of(&samples)) != (rows * columns, voxel_type) {
                return Err(unreadable(format!("{}: the file changed while it was read", name(path))));
            }
            if is_scaling_shared {
                append(&mut stored, &samples);
            } else {
                append_scaled(&mut stored, &samples, header.scaling);
            }
        }
        if !is_scaling_shared {
            self.notes.push(
                "slope and intercept change from slice to slice: the stored values are those after scaling".to_owned(),
            );
        }
        #[expect(clippy::float_cmp, reason = "exactly these numbers change nothing")]
        let is_scaled = is_scaling_shared && scaling != [1.0, 0.0];
        let grid = Grid {
            byte_order: ByteOrder::Little,
            shape,
            voxel_type: stored_type,
            spacing: self.spacing.to_vec(),
            scaling: is_scaled.then_some(scaling),
            affine: Ok(self.affine),
        };
        Ok(Series { grid, stored, notes: self.notes })
    }
}

/// Notes on the assumptions of the matrix.
fn notes(line: &Line, normal: Vector) -> Vec<String> {
    let mut notes = Vec::new();
    let aside = length(beside(line.step, normal));
    if aside > tolerance(dot(line.step, normal)) {
        notes.push(format!(
            "neighbouring slices are shifted by {aside:.3} mm in their plane (gantry tilt): nothing is resampled"
        ));
    }
    notes
}

/// Sorts by the distance along the normal, and refuses slices that are not evenly spaced on a line.
fn by_position(slices: &mut [Placed], normal: Vector) -> Result<Line, Undecodable> {
    let position = |slice: &Placed| slice.header.position.unwrap_or_default();
    let depth = |slice: &Placed| dot(position(slice), normal);
    slices.sort_by(|a, b| depth(a).total_cmp(&depth(b)));
    let gaps: Vec<f64> = slices.windows(2).map(|pair| depth(&pair[1]) - depth(&pair[0])).collect();
    let names = |at: usize| format!("{} and {}", slices[at].name(), slices[at + 1].name());
    if let Some(at) = gaps.iter().position(|gap| *gap <= TOLERANCE.1) {
        let detail = format!(
            "the slices {} lie at the same place, expected one slice for each (is it a series over time or of several echoes?)",
            names(at)
        );
        return Err(Undecodable::new(Fault::WrongDimensions, detail));
    }
    let usual = median(&gaps);
    if let Some(at) = gaps.iter().position(|gap| (gap - usual).abs() > tolerance(usual)) {
        let gap = gaps[at];
        let what = if gap > 1.5 * usual { "a slice is missing" } else { "the slices are unevenly spaced" };
        let detail = format!("{what}: {} are {gap:.3} mm apart, expected {usual:.3} mm as most neighbours", names(at));
        return Err(unreadable(detail));
    }
    let (first, last) = (position(&slices[0]), position(&slices[slices.len() - 1]));
    let n_steps = gaps.len() as f64;
    let step: Vector = std::array::from_fn(|axis| (last[axis] - first[axis]) / n_steps);
    for (at, slice) in slices.iter().enumerate() {
        let here = position(slice);
        let off = beside(std::array::from_fn(|axis| here[axis] - first[axis] - step[axis] * at as f64), normal);
        if length(off) > tolerance(usual) {
            let (name, off) = (slice.name(), length(off));
            return Err(unreadable(format!("the slice {name} is {off:.3} mm off the line of the others")));
        }
    }
    Ok(Line { first, step })
}

/// The unit normal of the plane.
fn normal([x, y]: [Vector; 2]) -> Result<Vector, Undecodable> {
    let is_unit = |direction: Vector| (length(direction) - 1.0).abs() <= UNIT;
    if !is_unit(x) || !is_unit(y) || dot(x, y).abs() > UNIT {
        let detail = format!(
            "the Image Orientation (Patient) is {x:?} and {y:?}, expected two perpendicular directions of length 1"
        );
        return Err(unreadable(detail));
    }
    let cross = [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]];
    let length = length(cross);
    Ok(cross.map(|entry| entry / length))
}

fn tolerance(spacing: f64) -> f64 {
    (TOLERANCE.0 * spacing).max(TOLERANCE.1)
}

/// The lower median of one or more numbers.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() - 1) / 2]
}

/// The component of a vector perpendicular to the normal.
fn beside(vector: Vector, normal: Vector) -> Vector {
    let along = dot(vector, normal);
    std::array::from_fn(|axis| vector[axis] - along * normal[axis])
}

fn dot(a: Vector, b: Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn length(vector: Vector) -> f64 {
    dot(vector, vector).sqrt()
}

fn n_samples(samples: &Samples) -> usize {
    match samples {
        Samples::U8(samples) => samples.len(),
        Samples::U16(samples) => samples.len(),
        Samples::I16(samples) => samples.len(),
    }
}

fn type_of(samples: &Samples) -> VoxelType {
    match samples {
        Samples::U8(_) => VoxelType::U8,
        Samples::U16(_) => VoxelType::U16,
        Samples::I16(_) => VoxelType::I16,
    }
}

/// In little endian.
fn append(stored: &mut Vec<u8>, samples: &Samples) {
    match samples {
        Samples::U8(samples) => stored.extend_from_slice(samples),
        Samples::U16(samples) => stored.extend(samples.iter().flat_map(|sample| sample.to_le_bytes())),
        Samples::I16(samples) => stored.extend(samples.iter().flat_map(|sample| sample.to_le_bytes())),
    }
}

fn append_scaled(stored: &mut Vec<u8>, samples: &Samples, [slope, intercept]: [f64; 2]) {
    let scaled = |sample: f64| (slope * sample + intercept).to_le_bytes();
    match samples {
        Samples::U8(samples) => stored.extend(samples.iter().flat_map(|sample| scaled(f64::from(*sample)))),
        Samples::U16(samples) => stored.extend(samples.iter().flat_map(|sample| scaled(f64::from(*sample)))),
        Samples::I16(samples) => stored.extend(samples.iter().flat_map(|sample| scaled(f64::from(*sample)))),
    }
}
