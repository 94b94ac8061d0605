//! One class of a true and a predicted mask: overlap and distances.

use super::surface::{distances_between, surface};
use super::{Hausdorff, LabelPair, MaskClass, MaskGrid, MaskSettings};
use crate::MetricError;
use crate::resampling::bootstrap::quantile;

const PERCENTILE: f64 = 0.95;
/// A distance may exceed the tolerance by this share: the headers of volumes hold their spacing in single precision.
const ROUNDING: f64 = 1e-6;

/// The pixels of a class in both masks, and the distances of the surfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairScore {
    /// Pixels of the true mask.
    pub n_truth: usize,
    /// Pixels of the predicted mask.
    pub n_predicted: usize,
    /// Pixels of both.
    pub n_common: usize,
    /// `None` if a mask is empty.
    pub surface: Option<SurfaceScore>,
}

/// Distances of two surfaces, in the unit of the spacing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfaceScore {
    /// 95th percentile of the distances, by [`MaskSettings::hausdorff`].
    pub hd95: f64,
    /// Mean distance of the pixels of both surfaces.
    pub asd: f64,
    /// Share of the pixels of both surfaces within the tolerance of the other one, in \[0, 1\].
    pub nsd: f64,
}

impl PairScore {
    /// 2 |A and B| / (|A| + |B|); 1 if both masks are empty.
    pub fn dice(&self) -> f64 {
        let n = self.n_truth + self.n_predicted;
        if n == 0 { 1.0 } else { 2.0 * self.n_common as f64 / n as f64 }
    }

    /// |A and B| / |A or B|; 1 if both masks are empty.
    pub fn iou(&self) -> f64 {
        let n = self.n_truth + self.n_predicted - self.n_common;
        if n == 0 { 1.0 } else { self.n_common as f64 / n as f64 }
    }

    /// Share of both surfaces within the tolerance; 1 if both masks are empty, 0 if one is.
    pub fn nsd(&self) -> f64 {
        self.surface.map_or_else(|| f64::from(u8::from(self.n_truth + self.n_predicted == 0)), |surface| surface.nsd)
    }

    /// 95th percentile of the distances of the surfaces.
    ///
    /// # Errors
    /// [`MetricError::EmptyMask`] if a mask is empty.
    pub fn hd95(&self) -> Result<f64, MetricError> {
        self.surface().map(|surface| surface.hd95)
    }

    /// Mean distance of the surfaces.
    ///
    /// # Errors
    /// [`MetricError::EmptyMask`] if a mask is empty.
    pub fn asd(&self) -> Result<f64, MetricError> {
        self.surface().map(|surface| surface.asd)
    }

    fn surface(&self) -> Result<SurfaceScore, MetricError> {
        let which = match (self.n_truth, self.n_predicted) {
            (0, 0) => "both masks",
            (0, _) => "the true mask",
            _ => "the predicted mask",
        };
        self.surface.ok_or(MetricError::EmptyMask { which })
    }
}

/// Overlap and distances of the pixels of `class` in both masks.
///
/// Cost: one pass over the pixels, then O(pixels of the smallest box around both masks).
///
/// ```
/// use fairtte_metrics::masks::{LabelPair, Labels, MaskClass, MaskGrid, MaskSettings, score_pair};
///
/// // A row of five pixels: the truth has two of class 2, the prediction three, two of them right.
/// let grid = MaskGrid::new(&[1, 5], &[1.0, 0.5])?;
/// let labels = Labels { truth: &[0, 2, 2, 0, 0], predicted: &[0, 2, 2, 2, 1] };
/// let cup = MaskClass { name: "cup".to_owned(), values: vec![2] };
/// let found = score_pair(&LabelPair::new(grid, labels)?, &cup, &MaskSettings::default());
/// assert_eq!((found.dice(), found.iou()), (0.8, 2.0 / 3.0));
/// // Both pixels of the truth are its surface, and the first and the last of the prediction: two are on the other surface, two 0.5
/// // from it.
/// let surface = found.surface.expect("both masks have pixels");
/// assert_eq!(surface.asd, 0.25);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
pub fn score_pair(pair: &LabelPair<'_>, class: &MaskClass, settings: &MaskSettings) -> PairScore {
    let mut found = PairScore::default();
    let mut bounds = Bounds::new();
    let is_inside = |label: i32| class.values.contains(&label);
    let width = pair.grid.all_extents()[2];
    let rows = pair.labels.truth.chunks_exact(width).zip(pair.labels.predicted.chunks_exact(width));
    for (row, (truth, predicted)) in rows.enumerate() {
        for (column, (truth, predicted)) in truth.iter().zip(predicted).enumerate() {
            let (truth, predicted) = (is_inside(*truth), is_inside(*predicted));
            if truth || predicted {
                found.n_truth += usize::from(truth);
                found.n_predicted += usize::from(predicted);
                found.n_common += usize::from(truth && predicted);
                bounds.include(row, column, &pair.grid);
            }
        }
    }
    if found.n_truth > 0 && found.n_predicted > 0 {
        // Beyond the box there is no surface, and outside it is outside both masks.
        let grid = pair.grid.crop(bounds.first, bounds.last);
        let mask = |labels: &[i32]| bounds.crop(&pair.grid, labels, is_inside);
        let [truth, predicted] =
            [pair.labels.truth, pair.labels.predicted].map(|labels| surface_in(pair, &grid, &mask(labels)));
        found.surface = Some(surface_score(&grid, &truth, &predicted, settings));
    }
    found
}

/// The surface within a box around the mask: an axis of the image has neighbours even where the box is one pixel wide.
fn surface_in(pair: &LabelPair<'_>, grid: &MaskGrid, mask: &[bool]) -> Vec<bool> {
    let (all, boxed) = (pair.grid.all_extents(), grid.all_extents());
    let is_thin = (0..3).any(|axis| all[axis] > 1 && boxed[axis] == 1);
    if is_thin { mask.to_vec() } else { surface(grid, mask) }
}

fn surface_score(grid: &MaskGrid, truth: &[bool], predicted: &[bool], settings: &MaskSettings) -> SurfaceScore {
    let mut from_truth = distances_between(grid, truth, predicted);
    let mut from_predicted = distances_between(grid, predicted, truth);
    let n = (from_truth.len() + from_predicted.len()) as f64;
    let all = || from_truth.iter().chain(&from_predicted);
    let asd = all().sum::<f64>() / n;
    let most = settings.tolerance * (1.0 + ROUNDING);
    let nsd = all().filter(|distance| **distance <= most).count() as f64 / n;
    let hd95 = match settings.hausdorff {
        Hausdorff::Medpy => percentile(&mut all().copied().collect::<Vec<_>>()),
        Hausdorff::Monai => percentile(&mut from_truth).max(percentile(&mut from_predicted)),
    };
    SurfaceScore { hd95, asd, nsd }
}

fn percentile(distances: &mut [f64]) -> f64 {
    distances.sort_unstable_by(f64::total_cmp);
    quantile(distances, PERCENTILE)
}

/// The smallest box around the pixels of both masks, both ends included.
struct Bounds {
    first: [usize; 3],
    last: [usize; 3],
}

impl Bounds {
    fn new() -> Self {
        Self { first: [usize::MAX; 3], last: [0; 3] }
    }

    /// The pixel at `column` of the row with this number, counted over all slices.
    fn include(&mut self, row: usize, column: usize, grid: &MaskGrid) {
        let height = grid.all_extents()[1];
        for (axis, place) in [row / height, row % height, column].into_iter().enumerate() {
            self.first[axis] = self.first[axis].min(place);
            self.last[axis] = self.last[axis].max(place);
        }
    }

    fn crop(&self, grid: &MaskGrid, labels: &[i32], is_inside: impl Fn(i32) -> bool) -> Vec<bool> {
        let ([first_slice, first_row, first_column], [last_slice, last_row, last_column]) = (self.first, self.last);
        let strides = grid.strides();
        let mut mask = Vec::new();
        for slice in first_slice..=last_slice {
            for row in first_row..=last_row {
                let begin = slice * strides[0] + row * strides[1];
                mask.extend(labels[begin + first_column..=begin + last_column].iter().map(|label| is_inside(*label)));
            }
        }
        mask
    }
}
