//! The blur of the training images of one group.

use fairtte_images::GaussianBlur;
use fairtte_metrics::GroupId;

use crate::loader::PixelTransform;

/// Blurs the training images of one group and leaves all other images unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupBlur {
    blur: GaussianBlur,
    blurred: Vec<bool>,
}

impl GroupBlur {
    /// The blur for the samples of `membership` that are in `group` and among `train_rows`.
    ///
    /// # Panics
    /// If a row is not below the number of samples.
    pub(super) fn new(
        blur: GaussianBlur,
        membership: &[Option<GroupId>],
        group: GroupId,
        train_rows: &[usize],
    ) -> Self {
        let mut blurred = vec![false; membership.len()];
        for &row in train_rows {
            blurred[row] = membership[row] == Some(group);
        }
        Self { blur, blurred }
    }

    /// Whether the image of the sample at `row` of the cohort is blurred.
    pub fn is_blurred(&self, row: usize) -> bool {
        self.blurred.get(row).copied().unwrap_or(false)
    }
}

impl PixelTransform for GroupBlur {
    /// Blurs `intensities`, of shape `[channels, ..]`, if the sample at `row` is to be blurred.
    ///
    /// # Panics
    /// If the length of `intensities` is not the product of `shape`.
    fn apply(&self, row: usize, _epoch: u64, intensities: &mut [f32], shape: &[usize]) {
        if self.is_blurred(row) {
            self.blur.apply(intensities, shape);
        }
    }

    fn concerns(&self, row: usize) -> bool {
        self.is_blurred(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> Vec<f32> {
        (0..30).map(|i| ((37 * i + 11) % 101) as f32 / 100.0).collect()
    }

    #[test]
    fn a_group_blur_touches_only_training_samples_of_its_group() {
        let membership = [Some(GroupId(0)), Some(GroupId(1)), None, Some(GroupId(0))];
        let blur = GroupBlur::new(GaussianBlur::new(1.0).expect("a valid width"), &membership, GroupId(0), &[0, 1, 2]);
        for row in 0..4 {
            let mut image = picture();
            blur.apply(row, 3, &mut image, &[1, 5, 6]);
            assert_eq!(image != picture(), row == 0, "row {row}");
        }
        assert!(!blur.is_blurred(99));
    }
}
