//! Mean and standard deviation of the intensities, per channel, over the training images only.
//!
//! Intensities are in \[0, 1\] before. Sums are taken over whole numbers, so the result does not depend on the order of
//! the images or the number of threads.

use serde::{Deserialize, Serialize};

use crate::DataError;
use crate::cohort::Cohort;
use crate::image::{ImageStore, StoredPixels};

/// What is done to intensities after they are scaled to \[0, 1\].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntensityConfig {
    /// Subtract the training mean and divide by the training standard deviation, per channel.
    #[default]
    Standardise,
    /// Nothing.
    None,
}

impl IntensityConfig {
    /// The transformation this setting asks for, fitted on the samples of `cohort` at `train_rows`.
    ///
    /// # Errors
    /// See [`Intensity::fit`].
    pub fn fit(self, store: &ImageStore, cohort: &Cohort, train_rows: &[usize]) -> Result<Intensity, DataError> {
        match self {
            Self::Standardise => Intensity::fit(store, cohort, train_rows),
            Self::None => Ok(Intensity::none(store.n_channels())),
        }
    }
}

/// `(intensity - mean) / standard_deviation` per channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Intensity {
    /// Mean of every channel, in \[0, 1\] units.
    pub mean: Vec<f64>,
    /// Standard deviation of every channel, > 0; 1 where the channel is constant over the training images.
    pub standard_deviation: Vec<f64>,
}

impl Intensity {
    /// The transformation that changes nothing.
    pub fn none(n_channels: usize) -> Self {
        Self { mean: vec![0.0; n_channels], standard_deviation: vec![1.0; n_channels] }
    }

    /// Mean and (population) standard deviation over all pixels of the samples of `cohort` at `train_rows`.
    ///
    /// # Errors
    /// [`DataError::ImageNotStored`] for a sample without pixels, [`DataError::ShapeMismatch`] for no training sample.
    ///
    /// # Panics
    /// If a row is not below `cohort.n()`.
    pub fn fit(store: &ImageStore, cohort: &Cohort, train_rows: &[usize]) -> Result<Self, DataError> {
        if train_rows.is_empty() {
            return Err(DataError::ShapeMismatch { what: "training part", found: 0, expected: 1 });
        }
        let n_stored = store.n_stored_channels();
        let mut sums = vec![(0_u128, 0_u128); n_stored];
        for &row in train_rows {
            match store.pixels(store_position(store, cohort, row)?) {
                StoredPixels::Picture(pixels) => add(&mut sums, pixels),
                StoredPixels::Volume(voxels) => add(&mut sums, voxels),
            }
        }
        let n = (train_rows.len() * store.size().iter().product::<usize>()) as f64;
        let full_scale = full_scale(store);
        let moments = sums.into_iter().map(|(sum, sum_of_squares)| {
            let mean = sum as f64 / n;
            let variance = (sum_of_squares as f64 / n - mean * mean).max(0.0);
            let deviation = variance.sqrt() / full_scale;
            // Below a quarter of a storage step the spread is rounding; division by it would blow up other images.
            (mean / full_scale, if deviation * full_scale > 0.25 / n.sqrt() { deviation } else { 1.0 })
        });
        let (mean, standard_deviation): (Vec<f64>, Vec<f64>) = moments.unzip();
        let n_channels = store.n_channels();
        let repeat = |values: Vec<f64>| values.iter().copied().cycle().take(n_channels).collect();
        Ok(Self { mean: repeat(mean), standard_deviation: repeat(standard_deviation) })
    }
}

/// The stored value of intensity 1.
pub(crate) fn full_scale(store: &ImageStore) -> f64 {
    if store.size().len() == 3 { f64::from(u16::MAX) } else { f64::from(u8::MAX) }
}

/// Where the pixels of `row` are.
pub(crate) fn store_position(store: &ImageStore, cohort: &Cohort, row: usize) -> Result<usize, DataError> {
    let sample = &cohort.samples[row].sample_id;
    store
        .position(sample)
        .ok_or_else(|| DataError::ImageNotStored { sample: sample.to_string(), store: store.path().to_owned() })
}

fn add<T: Copy + Into<u64>>(sums: &mut [(u128, u128)], pixels: &[T]) {
    let n_per_channel = pixels.len() / sums.len();
    for ((sum, sum_of_squares), channel) in sums.iter_mut().zip(pixels.chunks_exact(n_per_channel)) {
        // One image holds fewer than 2^32 pixels of at most 2^16, so 64 bits hold its sums.
        let (first, second) = channel.iter().fold((0_u64, 0_u64), |(first, second), pixel| {
            let pixel: u64 = (*pixel).into();
            (first + pixel, second + pixel * pixel)
        });
        *sum += u128::from(first);
        *sum_of_squares += u128::from(second);
    }
}
