//! The facts of a picture file.

use std::path::Path;

use super::{Inspection, Number, PixelValue, ValueAt, outside, shown_size};
use crate::Reason;
use crate::image::{Limits, Undecodable, decode_picture};

pub(super) fn inspect(path: &Path, _limits: &Limits, at: &[Vec<usize>]) -> Result<Inspection, Undecodable> {
    let bytes = std::fs::read(path).map_err(|error| Undecodable::new(Reason::ImageUnopened, error.to_string()))?;
    let picture = decode_picture(&bytes)?;
    let size = vec![picture.width, picture.height];
    let value = |index: &[usize]| {
        let &[x, y] = index else { return Err(outside(index, &shown_size(&size))) };
        if x >= picture.width || y >= picture.height {
            return Err(outside(index, &shown_size(&size)));
        }
        let first = (y * picture.width + x) * picture.channels;
        let channels = picture.pixels[first..first + picture.channels].iter().map(|v| Number(f64::from(*v)));
        Ok(PixelValue::Several(channels.collect()))
    };
    let at = at.iter().map(|index| {
        let value = value(index)?;
        Ok(ValueAt { index: index.clone(), stored: Some(value.clone()), oriented: Some(value) })
    });
    let at = at.collect::<Result<_, _>>()?;
    let n = picture.pixels.len() as f64;
    Ok(Inspection {
        path: path.to_owned(),
        format: "picture".to_owned(),
        gzip: false,
        byte_order: None,
        stored_size: size.clone(),
        oriented_size: Some(size),
        dtype: "uint8".to_owned(),
        channels: picture.channels,
        slope: None,
        intercept: None,
        min: picture.pixels.iter().copied().min().map(f64::from),
        max: picture.pixels.iter().copied().max().map(f64::from),
        mean: Some(picture.pixels.iter().copied().map(f64::from).sum::<f64>() / n),
        n_non_finite: 0,
        spacing: None,
        axis_codes: None,
        affine: None,
        affine_source: None,
        canonical_affine: None,
        exif_orientation: None,
        at,
        notes: Vec::new(),
    })
}
