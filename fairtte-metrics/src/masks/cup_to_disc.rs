//! The vertical cup-to-disc ratio of an eye, and its error: the measure that glaucoma is graded by.
//!
//! The vertical diameter of a mask is the largest number of its pixels in one column of the picture; the ratio is that of cup
//! and disc, where the disc contains the cup. The spacing cancels.
//!
//! Source: Orlando et al. (2020), REFUGE challenge, doi:10.1016/j.media.2019.101570 (mean absolute error of the ratio; diameters as
//! its published evaluation computes them). Where we differ: that code adds 1e-8 to an empty disc; here the ratio of an empty
//! disc is undefined.

use super::{LabelPair, MaskClass, MaskGrid};
use crate::MetricError;

/// The largest number of pixels with one of `values` in one column of a picture (the last axis counts columns); 0 of an empty
/// mask.
///
/// # Errors
/// [`MetricError::InvalidSetting`] for a volume, which has no vertical axis; [`MetricError::LengthMismatch`] unless there is one
/// label per pixel.
pub fn vertical_diameter(grid: &MaskGrid, labels: &[i32], values: &[i32]) -> Result<usize, MetricError> {
    let [depth, _, width] = grid.all_extents();
    if depth != 1 {
        let (setting, expected) = ("axes of a mask with a vertical diameter", "2, those of a picture");
        return Err(MetricError::InvalidSetting { setting, value: "3".to_owned(), expected });
    }
    if labels.len() != grid.n_pixels() {
        let what = "pixels of the mask";
        return Err(MetricError::LengthMismatch { what, found: labels.len(), expected: grid.n_pixels() });
    }
    let mut columns = vec![0_usize; width];
    for row in labels.chunks_exact(width) {
        columns.iter_mut().zip(row).for_each(|(n, label)| *n += usize::from(values.contains(label)));
    }
    Ok(columns.into_iter().max().unwrap_or(0))
}

/// |predicted - true vertical cup-to-disc ratio|, in \[0, 1\] where the disc contains the cup.
///
/// ```
/// use fairtte_metrics::masks::{LabelPair, Labels, MaskClass, MaskGrid, vertical_cup_to_disc_error};
///
/// // One column of four pixels. Truth: a disc of 4 with a cup of 2; prediction: a disc of 4 with a cup of 1.
/// let grid = MaskGrid::new(&[4, 1], &[1.0; 2])?;
/// let labels = Labels { truth: &[1, 2, 2, 1], predicted: &[1, 1, 2, 1] };
/// let class = |name: &str, values: &[i32]| MaskClass { name: name.to_owned(), values: values.to_vec() };
/// let pair = LabelPair::new(grid, labels)?;
/// assert_eq!(vertical_cup_to_disc_error(&pair, &class("cup", &[2]), &class("disc", &[1, 2])), Ok(0.25));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::EmptyMask`] if a disc has no pixels; those of [`vertical_diameter`].
pub fn vertical_cup_to_disc_error(pair: &LabelPair<'_>, cup: &MaskClass, disc: &MaskClass) -> Result<f64, MetricError> {
    let ratio = |labels: &[i32], which: &'static str| {
        let diameter = |class: &MaskClass| vertical_diameter(&pair.grid, labels, &class.values);
        match (diameter(cup)?, diameter(disc)?) {
            (_, 0) => Err(MetricError::EmptyMask { which }),
            (cup, disc) => Ok(cup as f64 / disc as f64),
        }
    };
    Ok((ratio(pair.labels.predicted, "the predicted disc")? - ratio(pair.labels.truth, "the true disc")?).abs())
}

#[cfg(test)]
mod tests {
    use super::super::Labels;
    use super::*;

    fn class(values: &[i32]) -> MaskClass {
        MaskClass { name: "class".to_owned(), values: values.to_vec() }
    }

    #[test]
    fn the_diameter_is_that_of_the_fullest_column() {
        let grid = MaskGrid::new(&[3, 4], &[1.0, 9.0]).unwrap();
        let labels = [
            1, 1, 1, 1, //
            0, 2, 0, 0, //
            0, 2, 0, 1,
        ];
        assert_eq!(vertical_diameter(&grid, &labels, &[1]), Ok(2));
        assert_eq!(vertical_diameter(&grid, &labels, &[1, 2]), Ok(3));
        assert_eq!(vertical_diameter(&grid, &labels, &[7]), Ok(0));
        assert!(vertical_diameter(&grid, &labels[1..], &[1]).is_err());
        let volume = MaskGrid::new(&[2, 2, 3], &[1.0; 3]).unwrap();
        assert!(vertical_diameter(&volume, &labels, &[1]).unwrap_err().to_string().contains("picture"));
    }

    #[test]
    fn an_empty_disc_has_no_ratio_and_an_empty_cup_has_the_ratio_0() {
        let grid = MaskGrid::new(&[3, 1], &[1.0; 2]).unwrap();
        let error = |truth: &[i32], predicted: &[i32]| {
            let pair = LabelPair::new(grid, Labels { truth, predicted }).unwrap();
            vertical_cup_to_disc_error(&pair, &class(&[2]), &class(&[1, 2]))
        };
        assert_eq!(error(&[1, 2, 1], &[1, 1, 0]), Ok(1.0 / 3.0));
        assert_eq!(error(&[1, 1, 0], &[1, 2, 0]), Ok(0.5), "it has no sign");
        assert_eq!(error(&[1, 2, 1], &[0, 0, 0]), Err(MetricError::EmptyMask { which: "the predicted disc" }));
        assert_eq!(error(&[0, 0, 0], &[1, 2, 1]), Err(MetricError::EmptyMask { which: "the true disc" }));
    }
}
