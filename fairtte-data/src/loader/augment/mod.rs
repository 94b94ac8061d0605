//! Random changes to training images: rotation, crop and flip, as in MEDFAIR (Zong, Yang & Hospedales 2023, appendix
//! B.2.1, arXiv 2210.01725): pictures stored at 256 x 256, random crops of 224 x 224, random horizontal flips, random
//! rotations of up to 15 degrees.
//!
//! `image.size` is the stored size, `augmentation.crop` the input size of the model: a crop at a random position in
//! training, the centre in prediction. Here the whole stored picture is rotated before cropping, whereas MEDFAIR
//! rotates the crop, so fewer of the corners that a rotation empties are in the input. The random numbers of a sample
//! come from a separate stream (seed, epoch, sample, number of earlier draws in the epoch). Anatomically invalid flips
//! are refused (`flip.rs`).

mod flip;
mod resample;

use fairtte_metrics::SampleId;
use fairtte_metrics::seeds::stream;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

pub use self::flip::Flip;
use crate::DataError;
use crate::image::ImageConfig;

/// The settings of `[augmentation]`; the defaults change nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct AugmentationConfig {
    /// Size of the model's images, `[height, width]` or `[depth, height, width]`, each side from 1 to that of
    /// `image.size`; the stored size if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crop: Option<Vec<usize>>,
    /// Mirror images that may replace an image, each with probability 1/2; `none` if not given.
    pub flip: Flip,
    /// Largest angle of rotation in degrees, 0 to 15, drawn uniformly in both directions; volumes rotate in the axial
    /// plane. 0 if not given.
    pub rotation: f64,
    /// Allows a flip that the anatomy of the data set forbids; `false` if not given.
    pub force: bool,
}

/// Checked settings of augmentation for images of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Augmentation {
    stored: Vec<usize>,
    size: Vec<usize>,
    flip: Flip,
    rotation: f64,
}

/// The random change of one image.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Draw {
    /// First stored pixel of the crop, one per side.
    begin: Vec<usize>,
    mirror_width: bool,
    mirror_height: bool,
    /// Counterclockwise, in degrees.
    angle: f64,
}

impl Augmentation {
    /// Augmentation of images of `image` that come from the data set named `data_set` (`mimic-cxr`, `adni`, ..).
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`] for a crop that does not fit into `image.size`, a rotation out of range, or a flip
    /// that the anatomy of the data set forbids, unless forced.
    ///
    /// ```
    /// use fairtte_data::ImageConfig;
    /// use fairtte_data::loader::{Augmentation, AugmentationConfig, Flip};
    ///
    /// let image = ImageConfig { size: vec![256, 256], ..ImageConfig::default() };
    /// let settings = AugmentationConfig { crop: Some(vec![224, 224]), flip: Flip::Horizontal, ..Default::default() };
    /// assert_eq!(Augmentation::new(&settings, &image, "areds")?.size(), [224, 224]);
    /// let refused = Augmentation::new(&settings, &image, "mimic-cxr").unwrap_err();
    /// assert!(refused.to_string().contains("heart"));
    /// # Ok::<(), fairtte_data::DataError>(())
    /// ```
    pub fn new(config: &AugmentationConfig, image: &ImageConfig, data_set: &str) -> Result<Self, DataError> {
        let size = config.crop.clone().unwrap_or_else(|| image.size.clone());
        let fits = size.len() == image.size.len()
            && size.iter().zip(&image.size).all(|(side, stored)| (1..=*stored).contains(side));
        if !fits {
            return Err(DataError::InvalidSetting {
                key: "augmentation.crop",
                value: format!("{size:?} with image.size = {:?}", image.size),
                expected: "as many sides as image.size, each at least 1 and at most that of image.size",
            });
        }
        if !(0.0..=15.0).contains(&config.rotation) {
            return Err(DataError::InvalidSetting {
                key: "augmentation.rotation",
                value: config.rotation.to_string(),
                expected: "degrees from 0 to 15",
            });
        }
        if let Some(expected) = config.flip.forbidden(data_set).filter(|_| !config.force) {
            let value = format!("\"{}\" for {data_set}", config.flip);
            return Err(DataError::InvalidSetting { key: "augmentation.flip", value, expected });
        }
        Ok(Self { stored: image.size.clone(), size, flip: config.flip, rotation: config.rotation })
    }

    /// `[height, width]` or `[depth, height, width]` of the images that a model sees.
    pub fn size(&self) -> &[usize] {
        &self.size
    }

    /// The size of the stored images.
    pub fn stored_size(&self) -> &[usize] {
        &self.stored
    }

    /// Whether no image is ever changed.
    pub fn is_identity(&self) -> bool {
        self.size == self.stored && self.flip == Flip::None && self.rotation == 0.0
    }

    /// The random change of the `earlier + 1`-th draw of `sample` in `epoch`.
    pub(crate) fn draw(&self, seed: u64, epoch: u64, sample: &SampleId, earlier: u64) -> Draw {
        let mut rng = stream(seed, "augmentation", &[epoch, identity(sample), earlier]);
        let mut begin = Vec::with_capacity(self.size.len());
        for (stored, side) in self.stored.iter().zip(&self.size) {
            begin.push(offset(rng.random_range(0..=(stored - side) as u64)));
        }
        // All numbers are always drawn, so that one setting does not change the effect of another.
        let (mirror_width, mirror_height, turn): (bool, bool, f64) = (rng.random(), rng.random(), rng.random());
        Draw {
            begin,
            mirror_width: mirror_width && self.flip.mirrors_width(),
            mirror_height: mirror_height && self.flip.mirrors_height(),
            angle: (2.0 * turn - 1.0) * self.rotation,
        }
    }

    /// The centre, for prediction; if it cannot be exactly centred, it is one pixel nearer to the beginning.
    pub(crate) fn centre(&self) -> Draw {
        let begin = self.stored.iter().zip(&self.size).map(|(stored, side)| (stored - side) / 2).collect();
        Draw { begin, mirror_width: false, mirror_height: false, angle: 0.0 }
    }
}

fn offset(drawn: u64) -> usize {
    usize::try_from(drawn).expect("at most a side of an image")
}

/// A number for the identity of a sample: row numbers change when a cohort grows, identities do not.
fn identity(sample: &SampleId) -> u64 {
    let hash = blake3::hash(sample.as_str().as_bytes());
    u64::from_le_bytes(std::array::from_fn(|i| hash.as_bytes()[i]))
}

#[cfg(test)]
mod tests;
