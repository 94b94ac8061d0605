//! Batches of pixels with the identities, outcomes and groups of their samples.
//!
//! The order of an epoch depends on nothing but seed and epoch (the `order` stream), so a run that is interrupted and
//! started again at any epoch sees the same batches. A last batch of one sample is joined to the one before: batch
//! normalisation needs two.

use std::ops::Range;

use fairtte_metrics::seeds::stream;
use fairtte_metrics::{GroupId, SampleId};
use rand::RngExt as _;
use rand::seq::SliceRandom as _;

use crate::DataError;
use crate::cohort::Cohort;
use crate::image::{ImageStore, StoredPixels};
use crate::intensity::{Intensity, full_scale, store_position};

/// In which order an epoch visits the rows of a part.
#[derive(Clone, Debug, PartialEq)]
pub enum Sampling {
    /// As given; for prediction.
    Sequential,
    /// Every row once, in random order.
    Shuffled,
    /// As many draws as there are rows, with replacement, row `i` with probability proportional to weight `i`
    /// (finite, >= 0, not all 0; one per row).
    Weighted(Vec<f64>),
}

/// One batch in host memory; entry `i` of every field is about the same sample.
#[derive(Clone, Debug, PartialEq)]
pub struct HostBatch {
    /// Rows of the cohort.
    pub rows: Vec<usize>,
    /// Identities.
    pub sample_ids: Vec<SampleId>,
    /// Intensities after the transformation, in the order of [`shape`](Self::shape).
    pub pixels: Vec<f32>,
    /// `[batch, channels, height, width]` or `[batch, channels, depth, height, width]`.
    pub shape: Vec<usize>,
    /// Time to event or censoring, in the time unit of the cohort.
    pub time: Vec<f64>,
    /// `true` = event observed.
    pub event: Vec<bool>,
    /// Group of each sample; `None` where it belongs to none.
    pub groups: Vec<Option<GroupId>>,
}

/// Makes batches of a cohort; the only one there is.
#[derive(Debug)]
pub struct Loader<'a> {
    store: &'a ImageStore,
    cohort: &'a Cohort,
    groups: Vec<Option<GroupId>>,
    positions: Vec<usize>,
    scaling: Scaling,
}

impl<'a> Loader<'a> {
    /// A loader over the samples of `cohort`, with one group per row of the cohort.
    ///
    /// # Errors
    /// [`DataError::ShapeMismatch`] if `groups` or `intensity` do not fit, [`DataError::ImageNotStored`] for a sample
    /// without pixels.
    pub fn new(
        store: &'a ImageStore,
        cohort: &'a Cohort,
        groups: Vec<Option<GroupId>>,
        intensity: &Intensity,
    ) -> Result<Self, DataError> {
        for (what, found, expected) in [
            ("list of groups", groups.len(), cohort.n()),
            ("list of channel means", intensity.mean.len(), store.n_channels()),
            ("list of channel deviations", intensity.standard_deviation.len(), store.n_channels()),
        ] {
            if found != expected {
                return Err(DataError::ShapeMismatch { what, found, expected });
            }
        }
        let positions = (0..cohort.n()).map(|row| store_position(store, cohort, row));
        let positions = positions.collect::<Result<_, _>>()?;
        Ok(Self { store, cohort, groups, positions, scaling: Scaling::new(store, intensity) })
    }

    /// The batches of one epoch over `rows` of the cohort, each of `batch_size` samples but for the last, which has
    /// between 1 and `batch_size + 1`: a lone last sample joins the batch before it.
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`] for a batch size of 0 or weights out of range, [`DataError::ShapeMismatch`] if the
    /// weights are not one per row.
    ///
    /// # Panics
    /// If a row is not below the number of samples.
    pub fn batches(
        &self,
        rows: &[usize],
        batch_size: usize,
        sampling: &Sampling,
        seed: u64,
        epoch: u64,
    ) -> Result<Batches<'_>, DataError> {
        if batch_size == 0 {
            return Err(DataError::InvalidSetting {
                key: "batch-size",
                value: "0".to_owned(),
                expected: "a whole number >= 1",
            });
        }
        let order = epoch_order(rows, sampling, seed, epoch)?;
        let ranges = batch_ranges(order.len(), batch_size);
        Ok(Batches { loader: self, order, ranges: ranges.into_iter() })
    }

    fn batch(&self, rows: &[usize]) -> HostBatch {
        let n_channels = self.store.n_channels();
        let n_values = n_channels * self.store.size().iter().product::<usize>();
        let mut pixels = vec![0.0; rows.len() * n_values];
        for (&row, image) in rows.iter().zip(pixels.chunks_exact_mut(n_values)) {
            self.scaling.convert(self.store.pixels(self.positions[row]), image);
        }
        let samples = || rows.iter().map(|&row| &self.cohort.samples[row]);
        HostBatch {
            rows: rows.to_vec(),
            sample_ids: samples().map(|sample| sample.sample_id.clone()).collect(),
            pixels,
            shape: [rows.len(), n_channels].iter().chain(self.store.size()).copied().collect(),
            time: samples().map(|sample| sample.time).collect(),
            event: samples().map(|sample| sample.event).collect(),
            groups: rows.iter().map(|&row| self.groups[row]).collect(),
        }
    }
}

/// The batches of one epoch, see [`Loader::batches`]. Skipping batches does not read them.
#[derive(Debug)]
pub struct Batches<'l> {
    loader: &'l Loader<'l>,
    order: Vec<usize>,
    ranges: std::vec::IntoIter<Range<usize>>,
}

impl Batches<'_> {
    /// The rows of the epoch in their order.
    pub fn order(&self) -> &[usize] {
        &self.order
    }
}

impl Iterator for Batches<'_> {
    type Item = HostBatch;

    fn next(&mut self) -> Option<HostBatch> {
        self.nth(0)
    }

    fn nth(&mut self, n: usize) -> Option<HostBatch> {
        let range = self.ranges.nth(n)?;
        Some(self.loader.batch(&self.order[range]))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ranges.size_hint()
    }
}

impl ExactSizeIterator for Batches<'_> {}

fn epoch_order(rows: &[usize], sampling: &Sampling, seed: u64, epoch: u64) -> Result<Vec<usize>, DataError> {
    let mut rng = stream(seed, "order", &[epoch]);
    match sampling {
        Sampling::Sequential => Ok(rows.to_vec()),
        Sampling::Shuffled => {
            let mut order = rows.to_vec();
            order.shuffle(&mut rng);
            Ok(order)
        }
        Sampling::Weighted(weights) => {
            let cumulative = cumulative_weights(weights, rows.len())?;
            let total = cumulative.last().copied().unwrap_or(0.0);
            // The first entry above the draw: a row of weight 0 has no entry of its own and is never drawn.
            let draw = |_| {
                let at: f64 = rng.random::<f64>() * total;
                rows[cumulative.partition_point(|sum| *sum <= at).min(rows.len() - 1)]
            };
            Ok((0..rows.len()).map(draw).collect())
        }
    }
}

fn cumulative_weights(weights: &[f64], n_rows: usize) -> Result<Vec<f64>, DataError> {
    if weights.len() != n_rows {
        return Err(DataError::ShapeMismatch { what: "list of weights", found: weights.len(), expected: n_rows });
    }
    let invalid =
        |value: f64, expected| DataError::InvalidSetting { key: "weights", value: value.to_string(), expected };
    if let Some(&weight) = weights.iter().find(|weight| !(weight.is_finite() && **weight >= 0.0)) {
        return Err(invalid(weight, "finite numbers >= 0"));
    }
    let sums = weights.iter().scan(0.0, |sum, weight| {
        *sum += weight;
        Some(*sum)
    });
    let cumulative: Vec<f64> = sums.collect();
    match cumulative.last() {
        Some(total) if !(total.is_finite() && *total > 0.0) => Err(invalid(*total, "weights with a finite sum > 0")),
        _ => Ok(cumulative),
    }
}

fn batch_ranges(n: usize, batch_size: usize) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> =
        (0..n).step_by(batch_size).map(|begin| begin..n.min(begin + batch_size)).collect();
    if batch_size > 1 && ranges.len() > 1 && ranges.last().is_some_and(|last| last.len() == 1) {
        ranges.pop();
        ranges.last_mut().expect("at least one batch is left").end = n;
    }
    ranges
}

/// From stored values to transformed intensities.
#[derive(Debug)]
enum Scaling {
    /// The intensity of each of the 256 values, per channel.
    Table(Vec<[f32; 256]>),
    /// (factor, offset) per channel.
    Affine(Vec<(f32, f32)>),
}

impl Scaling {
    fn new(store: &ImageStore, intensity: &Intensity) -> Self {
        let full_scale = full_scale(store);
        let channels = intensity.mean.iter().zip(&intensity.standard_deviation);
        let affine = channels.map(|(mean, deviation)| (1.0 / (full_scale * deviation), -mean / deviation));
        if store.size().len() == 3 {
            return Self::Affine(affine.map(|(factor, offset)| (single(factor), single(offset))).collect());
        }
        let table =
            |(factor, offset): (f64, f64)| std::array::from_fn(|value| single((value as f64).mul_add(factor, offset)));
        Self::Table(affine.map(table).collect())
    }

    /// Fills `image`, `[channels, ..]`.
    fn convert(&self, stored: StoredPixels<'_>, image: &mut [f32]) {
        match (self, stored) {
            (Self::Table(tables), StoredPixels::Picture(pixels)) => {
                for ((intensity, pixel), table) in channels(image, pixels, tables) {
                    for (intensity, pixel) in intensity.iter_mut().zip(pixel) {
                        *intensity = table[usize::from(*pixel)];
                    }
                }
            }
            (Self::Affine(affine), StoredPixels::Volume(voxels)) => {
                // A volume is stored once and repeated for every channel.
                let n = voxels.len();
                for (intensity, (factor, offset)) in image.chunks_exact_mut(n).zip(affine) {
                    for (intensity, voxel) in intensity.iter_mut().zip(voxels) {
                        *intensity = f32::from(*voxel) * factor + offset;
                    }
                }
            }
            _ => unreachable!("the kind of scaling follows the kind of the store"),
        }
    }
}

fn channels<'i, T>(
    image: &'i mut [f32],
    pixels: &'i [u8],
    tables: &'i [T],
) -> impl Iterator<Item = ((&'i mut [f32], &'i [u8]), &'i T)> {
    let n = pixels.len() / tables.len();
    image.chunks_exact_mut(n).zip(pixels.chunks_exact(n)).zip(tables)
}

#[expect(clippy::cast_possible_truncation, reason = "models compute in f32")]
fn single(value: f64) -> f32 {
    value as f32
}
