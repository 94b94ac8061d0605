//! The transformation of intensities in \[0, 1\] before they enter a model: `(intensity - mean) / standard_deviation`.
//!
//! | setting | mean and standard deviation |
//! |---|---|
//! | `standardise` | of every channel, over the training images only |
//! | `per-image` | of every channel of every image, as it enters the model |
//! | `imagenet` | 0.485, 0.456, 0.406 and 0.229, 0.224, 0.225: torchvision's weights for pictures (and MEDFAIR's) |
//! | `kinetics` | 0.43216, 0.394666, 0.37645 and 0.22803, 0.22145, 0.216989: torchvision's `r3d_18` weights for Kinetics-400 |
//! | `unit`, `none` | 0 and 1: intensities stay in \[0, 1\] |
//! | `symmetric` | 0.5 and 0.5: intensities in \[-1, 1\] |
//!
//! Sums over the training images are taken over whole numbers, so the result does not depend on the order of the images
//! or the number of threads. They are taken over whole stored images, even if augmentation crops them.

use fairtte_images::full_scale;
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use serde::{Deserialize, Serialize};

use crate::cohort::Cohort;
use crate::image::{ImageConfig, ImageStore};
use crate::{DataError, SettingsOf};

/// The transformation of intensities after they are scaled to \[0, 1\].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IntensityConfig {
    /// Subtract the training mean and divide by the training standard deviation, per channel.
    #[default]
    Standardise,
    /// Subtract the image's own mean and divide by its own standard deviation, per channel.
    PerImage,
    /// The constants of weights that were pre-trained on `ImageNet`; three channels.
    #[serde(rename = "imagenet")]
    ImageNet,
    /// The constants of weights that were pre-trained on Kinetics-400; three channels.
    Kinetics,
    /// Nothing: intensities from 0 to 1.
    Unit,
    /// Intensities from -1 to 1.
    Symmetric,
    /// The same as `unit`.
    None,
}

/// torchvision, `ResNet18_Weights.IMAGENET1K_V1.transforms()`.
const IMAGENET: ([f64; 3], [f64; 3]) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
/// torchvision, `R3D_18_Weights.KINETICS400_V1.transforms()`.
const KINETICS: ([f64; 3], [f64; 3]) = ([0.43216, 0.394_666, 0.37645], [0.22803, 0.22145, 0.216_989]);

impl IntensityConfig {
    /// Checks that this setting suits images of `config`; to be called before decoding.
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`] for constants of three channels and images of one.
    pub fn check(self, config: &ImageConfig) -> Result<(), DataError> {
        self.constants(config.channels).map(|_| ())
    }

    /// The transformation of this setting, fitted on the samples of `cohort` at `train_rows`.
    ///
    /// # Errors
    /// See [`Intensity::fit`] and [`check`](Self::check).
    pub fn fit(self, store: &ImageStore, cohort: &Cohort, train_rows: &[usize]) -> Result<Intensity, DataError> {
        match self.constants(store.n_channels())? {
            Some(intensity) => Ok(intensity),
            None => Intensity::fit(store, cohort, train_rows),
        }
    }

    /// `None` for the setting that depends on the training images.
    fn constants(self, n_channels: usize) -> Result<Option<Intensity>, DataError> {
        let same = |mean, deviation| Intensity {
            mean: vec![mean; n_channels],
            standard_deviation: vec![deviation; n_channels],
            per_image: false,
        };
        let three = |name: &str, (mean, deviation): ([f64; 3], [f64; 3])| {
            if n_channels == 3 {
                return Ok(Some(Intensity::of(mean.to_vec(), deviation.to_vec())));
            }
            let value = format!("\"{name}\" with image.channels = {n_channels}");
            let expected = "image.channels = 3, because its constants belong to red, green and blue";
            Err(DataError::setting(SettingsOf::Intensity, "intensity", value, expected))
        };
        match self {
            Self::Standardise => Ok(None),
            Self::PerImage => Ok(Some(Intensity { per_image: true, ..same(0.0, 1.0) })),
            Self::ImageNet => three("imagenet", IMAGENET),
            Self::Kinetics => three("kinetics", KINETICS),
            Self::Unit | Self::None => Ok(Some(same(0.0, 1.0))),
            Self::Symmetric => Ok(Some(same(0.5, 0.5))),
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
    /// Whether each image is then also standardised by its own mean and standard deviation, 1 for a constant channel.
    #[serde(default)]
    pub per_image: bool,
}

impl Intensity {
    /// The same transformation for every image.
    pub fn of(mean: Vec<f64>, standard_deviation: Vec<f64>) -> Self {
        Self { mean, standard_deviation, per_image: false }
    }

    /// The identity transformation.
    pub fn none(n_channels: usize) -> Self {
        Self::of(vec![0.0; n_channels], vec![1.0; n_channels])
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
        let none = || vec![(0_u128, 0_u128); n_stored];
        let image = |row: &usize| Ok::<_, DataError>(store.pixels(store_position(store, cohort, *row)?).sums(n_stored));
        let both = |first: Vec<(u128, u128)>, second: Vec<(u128, u128)>| {
            let sums = first.into_iter().zip(second);
            Ok(sums.map(|((sum, squares), more)| (sum + more.0, squares + more.1)).collect())
        };
        let sums: Vec<(u128, u128)> = train_rows.par_iter().map(image).try_reduce(none, both)?;
        let n = (train_rows.len() * store.size().iter().product::<usize>()) as f64;
        let full_scale = full_scale(store.stored_shape());
        let moments = sums.into_iter().map(|(sum, sum_of_squares)| {
            let mean = sum as f64 / n;
            let variance = (sum_of_squares as f64 / n - mean * mean).max(0.0);
            let deviation = variance.sqrt() / full_scale;
            // Below a quarter of a storage step the spread is rounding error; dividing by it would scale other images
            // excessively.
            (mean / full_scale, if deviation * full_scale > 0.25 / n.sqrt() { deviation } else { 1.0 })
        });
        let (mean, standard_deviation): (Vec<f64>, Vec<f64>) = moments.unzip();
        let n_channels = store.n_channels();
        let repeat = |values: Vec<f64>| values.iter().copied().cycle().take(n_channels).collect();
        Ok(Self::of(repeat(mean), repeat(standard_deviation)))
    }
}

/// The position in the store of the pixels of `row`.
pub(crate) fn store_position(store: &ImageStore, cohort: &Cohort, row: usize) -> Result<usize, DataError> {
    let sample = &cohort.samples[row].sample_id;
    store
        .position(sample)
        .ok_or_else(|| DataError::ImageNotStored { sample: sample.to_string(), store: store.path().to_owned() })
}
