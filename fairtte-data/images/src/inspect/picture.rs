//! The description of a picture file.

use std::path::Path;

use super::{Inspection, Number, PixelValue, ValueAt, outside, shown_size};
use crate::{DecodedPicture, Fault, Limits, Undecodable, decode_picture_full};

pub(super) fn inspect(path: &Path, limits: &Limits, at: &[Vec<usize>]) -> Result<Inspection, Undecodable> {
    let bytes = std::fs::read(path).map_err(|error| Undecodable::new(Fault::Unopened, error.to_string()))?;
    let picture = decode_picture_full(&bytes, limits)?;
    let at = at.iter().map(|index| value_at(&picture, index)).collect::<Result<_, _>>()?;
    let statistics = picture.statistics();
    Ok(Inspection {
        path: path.to_owned(),
        format: picture.format.name().to_owned(),
        gzip: false,
        byte_order: None,
        n_slices: None,
        stored_size: vec![picture.width, picture.height],
        oriented_size: Some(picture.oriented_size().to_vec()),
        dtype: picture.dtype().to_owned(),
        channels: picture.n_channels(),
        slope: None,
        intercept: None,
        min: Some(statistics.min),
        max: Some(statistics.max),
        mean: Some(statistics.mean),
        n_non_finite: 0,
        spacing: None,
        axis_codes: None,
        affine: None,
        affine_source: None,
        canonical_affine: None,
        exif_orientation: Some(picture.orientation),
        at,
        notes: Vec::new(),
    })
}

/// The samples of one pixel in the stored and in the upright picture; it must be inside one of them.
fn value_at(picture: &DecodedPicture, index: &[usize]) -> Result<ValueAt, Undecodable> {
    let size = shown_size(&[picture.width, picture.height]);
    let &[column, row] = index else { return Err(outside(index, &size)) };
    let value = |samples: Vec<f64>| match samples.as_slice() {
        [one] => PixelValue::One(Number(*one)),
        several => PixelValue::Several(several.iter().map(|sample| Number(*sample)).collect()),
    };
    let (stored, oriented) = (picture.stored_at([column, row]), picture.upright_at([column, row]));
    if stored.is_none() && oriented.is_none() {
        return Err(outside(index, &size));
    }
    Ok(ValueAt { index: index.to_vec(), stored: stored.map(value), oriented: oriented.map(value) })
}
