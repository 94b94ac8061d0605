//! The pixels of a true and a predicted mask: extents, spacing, and the class of every pixel.

use std::collections::BTreeSet;

use crate::MetricError;

/// Extents and spacing of a picture `[height, width]` or a volume `[depth, height, width]`, the last axis running fastest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaskGrid {
    /// Of a picture the first is 1.
    extents: [usize; 3],
    /// Distance of neighbours along each axis.
    spacing: [f64; 3],
    n_axes: usize,
}

impl MaskGrid {
    /// Checks and keeps one to three extents with their spacing.
    ///
    /// An axis of extent 1 has no neighbours: pixels are on no surface because of it, so that a volume of one slice is a
    /// picture.
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`] for another number of axes, an extent of 0, too many pixels for the memory, or a spacing
    /// that is no finite number > 0; [`MetricError::LengthMismatch`] unless every axis has a spacing.
    pub fn new(extents: &[usize], spacing: &[f64]) -> Result<Self, MetricError> {
        let invalid = |setting, value: String, expected| Err(MetricError::InvalidSetting { setting, value, expected });
        if !(1..=3).contains(&extents.len()) {
            return invalid("number of axes", extents.len().to_string(), "1 to 3");
        }
        let n = extents.iter().try_fold(1_usize, |n, extent| n.checked_mul(*extent));
        if n.is_none_or(|n| n == 0 || n > isize::MAX as usize / 8) {
            return invalid("extents", format!("{extents:?}"), "at least 1 each, and as many pixels as fit in memory");
        }
        if spacing.len() != extents.len() {
            let (what, found, expected) = ("spacing", spacing.len(), extents.len());
            return Err(MetricError::LengthMismatch { what, found, expected });
        }
        if let Some(distance) = spacing.iter().find(|distance| !(distance.is_finite() && **distance > 0.0)) {
            return invalid("spacing", distance.to_string(), "finite numbers > 0");
        }
        let (mut all_extents, mut all_spacing) = ([1; 3], [1.0; 3]);
        all_extents[3 - extents.len()..].copy_from_slice(extents);
        all_spacing[3 - spacing.len()..].copy_from_slice(spacing);
        Ok(Self { extents: all_extents, spacing: all_spacing, n_axes: extents.len() })
    }

    /// The part of the grid from `first` to `last`, both included.
    pub(super) fn crop(&self, first: [usize; 3], last: [usize; 3]) -> Self {
        let extents = std::array::from_fn(|axis| last[axis] + 1 - first[axis]);
        Self { extents, ..*self }
    }

    /// Number of pixels.
    pub fn n_pixels(&self) -> usize {
        self.extents.iter().product()
    }

    /// Extents, as given.
    pub fn extents(&self) -> &[usize] {
        &self.extents[3 - self.n_axes..]
    }

    /// Spacing, as given.
    pub fn spacing(&self) -> &[f64] {
        &self.spacing[3 - self.n_axes..]
    }

    /// `[depth, height, width]`, missing ones 1.
    pub(super) fn all_extents(&self) -> [usize; 3] {
        self.extents
    }

    pub(super) fn all_spacing(&self) -> [f64; 3] {
        self.spacing
    }

    /// Steps from a pixel to the next one along each axis.
    pub(super) fn strides(&self) -> [usize; 3] {
        [self.extents[1] * self.extents[2], self.extents[2], 1]
    }
}

/// The values of all pixels, last axis fastest.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// Of the true mask.
    pub truth: &'a [i32],
    /// Of the predicted mask.
    pub predicted: &'a [i32],
}

/// A true and a predicted mask on one grid.
#[derive(Clone, Copy, Debug)]
pub struct LabelPair<'a> {
    pub(super) grid: MaskGrid,
    pub(super) labels: Labels<'a>,
}

impl<'a> LabelPair<'a> {
    /// Checks that both masks have the pixels of `grid`.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] naming the mask.
    pub fn new(grid: MaskGrid, labels: Labels<'a>) -> Result<Self, MetricError> {
        let expected = grid.n_pixels();
        for (what, found) in
            [("pixels of the true mask", labels.truth.len()), ("pixels of the predicted mask", labels.predicted.len())]
        {
            if found != expected {
                return Err(MetricError::LengthMismatch { what, found, expected });
            }
        }
        Ok(Self { grid, labels })
    }

    /// The grid of both masks.
    pub fn grid(&self) -> MaskGrid {
        self.grid
    }

    /// The values that occur in the true and in the predicted mask, ascending; more than `most` of one are not looked for.
    pub fn values(&self, most: usize) -> [BTreeSet<i32>; 2] {
        [self.labels.truth, self.labels.predicted].map(|labels| {
            let mut found = BTreeSet::new();
            // Neighbours mostly have the same value.
            let mut last = None;
            for label in labels {
                if last != Some(*label) {
                    last = Some(*label);
                    found.insert(*label);
                    if found.len() > most {
                        break;
                    }
                }
            }
            found
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_that_cannot_be_are_refused() {
        let error = |extents: &[usize], spacing: &[f64]| MaskGrid::new(extents, spacing).unwrap_err().to_string();
        assert!(error(&[], &[]).contains("number of axes"));
        assert!(error(&[1; 4], &[1.0; 4]).contains("number of axes"));
        assert!(error(&[3, 0], &[1.0; 2]).contains("extents"));
        assert!(error(&[usize::MAX, 2], &[1.0; 2]).contains("extents"));
        assert!(error(&[3, 3], &[1.0]).contains("spacing"));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(error(&[3, 3], &[1.0, wrong]).contains("spacing"), "{wrong}");
        }
        let grid = MaskGrid::new(&[3, 4], &[2.0, 0.5]).unwrap();
        assert_eq!((grid.n_pixels(), grid.extents(), grid.spacing()), (12, &[3, 4][..], &[2.0, 0.5][..]));
    }

    #[test]
    fn masks_of_other_sizes_are_named_and_values_are_found_in_each() {
        let grid = MaskGrid::new(&[2, 2], &[1.0; 2]).unwrap();
        let pair = |truth, predicted| LabelPair::new(grid, Labels { truth, predicted });
        let message = pair(&[0, 1, 2], &[0; 4]).unwrap_err().to_string();
        assert!(message.contains("true mask"), "{message}");
        let message = pair(&[0; 4], &[0, 1, 2]).unwrap_err().to_string();
        assert!(message.contains("predicted mask"), "{message}");
        let found = pair(&[0, 2, 2, -1], &[7, 7, 7, 7]).unwrap().values(9);
        assert_eq!(found, [BTreeSet::from([-1, 0, 2]), BTreeSet::from([7])]);
        assert_eq!(pair(&[0, 2, 2, -1], &[7; 4]).unwrap().values(1)[0].len(), 2);
    }
}
