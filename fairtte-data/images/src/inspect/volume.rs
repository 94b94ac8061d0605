//! The description of a NIfTI file or a DICOM series, in one pass over the voxels.

use std::path::Path;

use super::{Inspection, Number, PixelValue, ValueAt, outside, shown_size};
use crate::dicom_series::{self, Series};
use crate::nifti::{Grid, Opened, Orientation, Version};
use crate::{Fault, Limits, Undecodable};

pub(super) fn inspect(path: &Path, limits: &Limits, at: &[Vec<usize>]) -> Result<Inspection, Undecodable> {
    let opened = Opened::open(path)?;
    let (grid, version, is_gzip) = (opened.header.grid.clone(), opened.header.version, opened.is_gzip);
    let inspection = describe(path, &grid, at, |summary| {
        let has_trailing_bytes = opened.for_each_piece(limits, |piece| summary.add(&grid, piece))?;
        Ok(has_trailing_bytes.then(|| "bytes after the gzip stream were ignored".to_owned()).into_iter().collect())
    })?;
    let format = match version {
        Version::One => "NIfTI-1",
        Version::Two => "NIfTI-2",
    };
    Ok(Inspection { format: format.to_owned(), gzip: is_gzip, byte_order: Some(grid.byte_order), ..inspection })
}

/// Of the folder of a series, which is held in memory.
pub(super) fn inspect_series(folder: &Path, limits: &Limits, at: &[Vec<usize>]) -> Result<Inspection, Undecodable> {
    let Series { grid, stored, notes } = dicom_series::read(folder, limits)?;
    let n_slices = grid.space()[2];
    let inspection = describe(folder, &grid, at, |summary| {
        summary.add(&grid, &stored);
        Ok(notes)
    })?;
    Ok(Inspection { format: "dicom-series".to_owned(), n_slices: Some(n_slices), ..inspection })
}

/// The description of a grid; `pass` feeds its voxels to the summary and returns further notes.
fn describe(
    path: &Path,
    grid: &Grid,
    at: &[Vec<usize>],
    pass: impl FnOnce(&mut Summary) -> Result<Vec<String>, Undecodable>,
) -> Result<Inspection, Undecodable> {
    let affine = grid.affine.clone().map_err(|detail| Undecodable::new(Fault::Unreadable, detail))?;
    let oriented_size = oriented_size(grid, affine.orientation);
    let wanted = at.iter().map(|index| Wanted::new(index, grid, affine.orientation)).collect::<Result<Vec<_>, _>>()?;
    let mut summary = Summary::new(&wanted);
    let mut notes: Vec<String> = affine.note.into_iter().collect();
    notes.extend(pass(&mut summary)?);
    let (min, max, mean) = summary.finite();
    let found = |position: Option<u64>| {
        let position = position?;
        let (_, value) = summary.values.iter().find(|(wanted, _)| *wanted == position)?;
        value.map(|value| PixelValue::One(Number(value)))
    };
    let at = wanted.iter().zip(at).map(|(wanted, index)| ValueAt {
        index: index.clone(),
        stored: found(wanted.stored),
        oriented: found(wanted.oriented),
    });
    let at = at.collect();
    Ok(Inspection {
        path: path.to_owned(),
        format: String::new(),
        gzip: false,
        byte_order: None,
        n_slices: None,
        dtype: grid.voxel_type.name().to_owned(),
        channels: 1,
        slope: grid.scaling.map(|[slope, _]| slope),
        intercept: grid.scaling.map(|[_, intercept]| intercept),
        min,
        max,
        mean,
        n_non_finite: summary.n - summary.n_finite,
        spacing: Some(grid.spacing.iter().copied().map(Number).collect()),
        axis_codes: Some(affine.orientation.codes()),
        affine: Some(affine.matrix),
        affine_source: Some(affine.source),
        canonical_affine: oriented_size.as_ref().map(|_| affine.orientation.reorient(&affine.matrix, grid.space())),
        exif_orientation: None,
        at,
        notes,
        oriented_size,
        stored_size: grid.shape.clone(),
    })
}

/// Fewer than three axes are kept if they already run to right and anterior; otherwise they cannot be permuted.
fn oriented_size(grid: &Grid, orientation: Orientation) -> Option<Vec<usize>> {
    let Some((_, rest)) = grid.shape.split_first_chunk::<3>() else {
        return (orientation == Orientation::RAS).then(|| grid.shape.clone());
    };
    Some([orientation.size(grid.space()).as_slice(), rest].concat())
}

/// Positions in the file of the voxels of one index, counted in voxels.
struct Wanted {
    stored: Option<u64>,
    oriented: Option<u64>,
}

impl Wanted {
    fn new(index: &[usize], grid: &Grid, orientation: Orientation) -> Result<Self, Undecodable> {
        let stored = position(index, &grid.shape);
        let oriented = oriented_size(grid, orientation).and_then(|size| {
            position(index, &size)?;
            let entry = |axis: usize| index.get(axis).copied().unwrap_or(0);
            let [x, y, z] = orientation.stored_index([entry(0), entry(1), entry(2)], grid.space());
            let rest = index.get(3..).unwrap_or_default();
            position(&[&[x, y, z], rest].concat(), &grid.shape)
        });
        if stored.is_none() && oriented.is_none() {
            return Err(outside(index, &shown_size(&grid.shape)));
        }
        Ok(Self { stored, oriented })
    }
}

/// Number of the voxel at `index`, the first axis running fastest; entries beyond the axes must be 0,
/// missing ones are 0.
fn position(index: &[usize], shape: &[usize]) -> Option<u64> {
    if index.iter().skip(shape.len()).any(|entry| *entry > 0) {
        return None;
    }
    let mut position = 0_u64;
    for (axis, extent) in shape.iter().enumerate().rev() {
        let entry = index.get(axis).copied().unwrap_or(0);
        if entry >= *extent {
            return None;
        }
        position = position.checked_mul(*extent as u64)?.checked_add(entry as u64)?;
    }
    Some(position)
}

/// Statistics that are collected in one pass over the voxels.
struct Summary {
    n: u64,
    n_finite: u64,
    lowest: f64,
    highest: f64,
    sum: f64,
    /// Requested voxels, and their values once they have been read.
    values: Vec<(u64, Option<f64>)>,
}

impl Summary {
    fn new(wanted: &[Wanted]) -> Self {
        let positions = wanted.iter().flat_map(|wanted| [wanted.stored, wanted.oriented]).flatten();
        let values = positions.map(|position| (position, None)).collect();
        Self { n: 0, n_finite: 0, lowest: f64::INFINITY, highest: f64::NEG_INFINITY, sum: 0.0, values }
    }

    fn add(&mut self, grid: &Grid, piece: &[u8]) {
        let (voxel_type, order) = (grid.voxel_type, grid.byte_order);
        let n_bytes = voxel_type.n_bytes();
        for (position, found) in &mut self.values {
            let begin =
                position.checked_sub(self.n).and_then(|begin| usize::try_from(begin).ok()?.checked_mul(n_bytes));
            if let Some(number) = begin.and_then(|begin| piece.get(begin..begin + n_bytes)) {
                voxel_type.for_each(order, number, |number| *found = Some(grid.scaled(number)));
            }
        }
        // A sum per chunk keeps the rounding error of millions of additions small.
        let (mut n, mut n_finite, mut sum) = (0, 0, 0.0);
        voxel_type.for_each(order, piece, |number| {
            let value = grid.scaled(number);
            n += 1;
            if value.is_finite() {
                n_finite += 1;
                sum += value;
                self.lowest = self.lowest.min(value);
                self.highest = self.highest.max(value);
            }
        });
        self.n += n;
        self.n_finite += n_finite;
        self.sum += sum;
    }

    /// Minimum, maximum and mean of the finite values.
    fn finite(&self) -> (Option<f64>, Option<f64>, Option<f64>) {
        if self.n_finite == 0 {
            return (None, None, None);
        }
        // The sum of finite numbers near the maximum of f64 may overflow; then there is no mean.
        let mean = Some(self.sum / self.n_finite as f64).filter(|mean| mean.is_finite());
        (Some(self.lowest), Some(self.highest), mean)
    }
}
