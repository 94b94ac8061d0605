//! The settings of `[augmentation]` and their ranges.

use serde::{Deserialize, Serialize};

use super::Flip;
use crate::ImageConfig;
use crate::blur::WIDEST;
use crate::{InvalidSetting, Settings};

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
    /// Largest change of brightness, 0 to 1: intensities in \[0, 1\] are multiplied by a number drawn uniformly from
    /// 1 - `brightness` to 1 + `brightness` and cut to \[0, 1\]. 0 if not given.
    pub brightness: f64,
    /// Largest change of contrast, 0 to 1: the distance of every intensity from the mean of its image is multiplied by a
    /// number drawn uniformly from 1 - `contrast` to 1 + `contrast`, and the result cut to \[0, 1\]. 0 if not given.
    pub contrast: f64,
    /// Gaussian blur; none if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blur: Option<BlurConfig>,
    /// Elastic deformation; none if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elastic: Option<ElasticConfig>,
    /// Squares or cubes that are blanked; none if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cutout: Option<CutoutConfig>,
    /// Allows a flip that the anatomy of the data set forbids; `false` if not given.
    pub force: bool,
}

/// `blur = { probability = 0.5, sigma = [0.1, 2.0] }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BlurConfig {
    /// Probability that an image is blurred, 0 to 1.
    pub probability: f64,
    /// Smallest and largest standard deviation in pixels, in (0, 100]; drawn uniformly between them.
    pub sigma: [f64; 2],
}

/// `elastic = { alpha = 60.0, sigma = 6.0 }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ElasticConfig {
    /// Factor of the smoothed displacements, in pixels, 0 to 10000.
    pub alpha: f64,
    /// Standard deviation in pixels of the Gaussian that smooths the displacements, in (0, 100].
    pub sigma: f64,
}

/// `cutout = { holes = 1, size = 0.25 }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CutoutConfig {
    /// Number of holes of every image, 0 to 16.
    pub holes: usize,
    /// Side of a hole as a share of the same side of the model's image, above 0 and below 1; at least one pixel.
    pub size: f64,
}

impl AugmentationConfig {
    /// Checks every setting for images of `image` of the data set named `data_set`.
    pub(super) fn check(&self, image: &ImageConfig, data_set: &str) -> Result<(), InvalidSetting> {
        if let Some(size) = &self.crop {
            let fits = size.len() == image.size.len()
                && size.iter().zip(&image.size).all(|(side, stored)| (1..=*stored).contains(side));
            let expected = "as many sides as image.size, each at least 1 and at most that of image.size";
            within(fits, "crop", format!("{size:?} with image.size = {:?}", image.size), expected)?;
        }
        let range = |field, value: f64, range: std::ops::RangeInclusive<f64>, expected| {
            within(range.contains(&value), field, value.to_string(), expected)
        };
        range("rotation", self.rotation, 0.0..=15.0, "degrees from 0 to 15")?;
        if let Some(expected) = self.flip.forbidden(data_set).filter(|_| !self.force) {
            return within(false, "flip", format!("\"{}\" for {data_set}", self.flip), expected);
        }
        range("brightness", self.brightness, 0.0..=1.0, "a number from 0 to 1")?;
        range("contrast", self.contrast, 0.0..=1.0, "a number from 0 to 1")?;
        if let Some(BlurConfig { probability, sigma: [first, second] }) = self.blur {
            range("blur.probability", probability, 0.0..=1.0, "a probability from 0 to 1")?;
            let fits = first > 0.0 && first <= second && second <= WIDEST;
            let expected = "the smallest and the largest standard deviation in pixels, above 0 and at most 100";
            within(fits, "blur.sigma", format!("[{first}, {second}]"), expected)?;
        }
        if let Some(ElasticConfig { alpha, sigma }) = self.elastic {
            range("elastic.alpha", alpha, 0.0..=10_000.0, "a number of pixels from 0 to 10000")?;
            let expected = "a number of pixels above 0 and at most 100";
            within(sigma > 0.0 && sigma <= WIDEST, "elastic.sigma", sigma.to_string(), expected)?;
        }
        if let Some(CutoutConfig { holes, size }) = self.cutout {
            let expected = "a whole number from 0 to 16";
            within(holes <= 16, "cutout.holes", holes.to_string(), expected)?;
            let expected = "a share of the side above 0 and below 1";
            within(size > 0.0 && size < 1.0, "cutout.size", size.to_string(), expected)?;
        }
        Ok(())
    }

    /// Whether any setting beside the crop changes an image.
    pub(super) fn changes_images(&self) -> bool {
        self.flip != Flip::None
            || self.rotation > 0.0
            || self.brightness > 0.0
            || self.contrast > 0.0
            || self.blur.is_some_and(|blur| blur.probability > 0.0)
            || self.elastic.is_some_and(|elastic| elastic.alpha > 0.0)
            || self.cutout.is_some_and(|cutout| cutout.holes > 0)
    }
}

fn within(fits: bool, field: &'static str, value: String, expected: &'static str) -> Result<(), InvalidSetting> {
    if fits { Ok(()) } else { Err(InvalidSetting::new(Settings::Augmentation, field, value, expected)) }
}
