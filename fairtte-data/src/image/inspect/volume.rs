//! The facts of a NIfTI file, in one pass over its voxels.

use std::path::Path;

use super::{Inspection, Number, PixelValue, ValueAt, outside, shown_size};
use crate::Reason;
use crate::image::nifti::{Header, Opened, Orientation, Version};
use crate::image::{Limits, Undecodable};

pub(super) fn inspect(path: &Path, limits: &Limits, at: &[Vec<usize>]) -> Result<Inspection, Undecodable> {
    let opened = Opened::open(path)?;
    let header = opened.header.clone();
    let affine = header.affine.clone().map_err(|detail| Undecodable::new(Reason::ImageUnreadable, detail))?;
    let is_gzip = opened.is_gzip;
    let oriented_size = oriented_size(&header, affine.orientation);
    let wanted =
        at.iter().map(|index| Wanted::new(index, &header, affine.orientation)).collect::<Result<Vec<_>, _>>()?;
    let mut summary = Summary::new(&wanted);
    let has_trailing_bytes = opened.for_each_piece(limits, |piece| summary.add(&header, piece))?;
    let mut notes: Vec<String> = affine.note.into_iter().collect();
    if has_trailing_bytes {
        notes.push("bytes after the gzip stream were ignored".to_owned());
    }
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
        format: match header.version {
            Version::One => "NIfTI-1",
            Version::Two => "NIfTI-2",
        }
        .to_owned(),
        gzip: is_gzip,
        byte_order: Some(header.byte_order),
        dtype: header.voxel_type.name().to_owned(),
        channels: 1,
        slope: header.scaling.map(|[slope, _]| slope),
        intercept: header.scaling.map(|[_, intercept]| intercept),
        min,
        max,
        mean,
        n_non_finite: summary.n - summary.n_finite,
        spacing: Some(header.spacing.iter().copied().map(Number).collect()),
        axis_codes: Some(affine.orientation.codes()),
        affine: Some(affine.matrix),
        affine_source: Some(affine.source),
        canonical_affine: oriented_size.as_ref().map(|_| affine.orientation.reorient(&affine.matrix, header.space())),
        exif_orientation: None,
        at,
        notes,
        oriented_size,
        stored_size: header.shape,
    })
}

/// Fewer than three axes stay if they run to right and anterior already, and else cannot be permuted.
fn oriented_size(header: &Header, orientation: Orientation) -> Option<Vec<usize>> {
    let Some((_, rest)) = header.shape.split_first_chunk::<3>() else {
        return (orientation == Orientation::RAS).then(|| header.shape.clone());
    };
    Some([orientation.size(header.space()).as_slice(), rest].concat())
}

/// Where the voxels of one index stand in the file, counted in voxels.
struct Wanted {
    stored: Option<u64>,
    oriented: Option<u64>,
}

impl Wanted {
    fn new(index: &[usize], header: &Header, orientation: Orientation) -> Result<Self, Undecodable> {
        let stored = position(index, &header.shape);
        let oriented = oriented_size(header, orientation).and_then(|size| {
            position(index, &size)?;
            let entry = |axis: usize| index.get(axis).copied().unwrap_or(0);
            let [x, y, z] = orientation.stored_index([entry(0), entry(1), entry(2)], header.space());
            let rest = index.get(3..).unwrap_or_default();
            position(&[&[x, y, z], rest].concat(), &header.shape)
        });
        if stored.is_none() && oriented.is_none() {
            return Err(outside(index, &shown_size(&header.shape)));
        }
        Ok(Self { stored, oriented })
    }
}

/// Number of the voxel at `index`, the first axis running fastest; entries beyond the axes must be 0, missing ones are 0.
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

/// What is gathered while the voxels pass by.
struct Summary {
    n: u64,
    n_finite: u64,
    lowest: f64,
    highest: f64,
    sum: f64,
    /// Voxels asked for, and their values once they have passed.
    values: Vec<(u64, Option<f64>)>,
}

impl Summary {
    fn new(wanted: &[Wanted]) -> Self {
        let positions = wanted.iter().flat_map(|wanted| [wanted.stored, wanted.oriented]).flatten();
        let values = positions.map(|position| (position, None)).collect();
        Self { n: 0, n_finite: 0, lowest: f64::INFINITY, highest: f64::NEG_INFINITY, sum: 0.0, values }
    }

    fn add(&mut self, header: &Header, piece: &[u8]) {
        let (voxel_type, order) = (header.voxel_type, header.byte_order);
        let n_bytes = voxel_type.n_bytes();
        for (position, found) in &mut self.values {
            let begin =
                position.checked_sub(self.n).and_then(|begin| usize::try_from(begin).ok()?.checked_mul(n_bytes));
            if let Some(number) = begin.and_then(|begin| piece.get(begin..begin + n_bytes)) {
                voxel_type.for_each(order, number, |number| *found = Some(header.scaled(number)));
            }
        }
        // A sum per piece keeps the rounding of millions of additions small.
        let (mut n, mut n_finite, mut sum) = (0, 0, 0.0);
        voxel_type.for_each(order, piece, |number| {
            let value = header.scaled(number);
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
        // The sum of finite numbers near the largest of f64 may overflow: then there is no mean to show.
        let mean = Some(self.sum / self.n_finite as f64).filter(|mean| mean.is_finite());
        (Some(self.lowest), Some(self.highest), mean)
    }
}
