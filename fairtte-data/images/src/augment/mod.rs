//! Random changes to training images: rotation, crop and flip, as in MEDFAIR (Zong, Yang & Hospedales 2023, appendix
//! B.2.1, arXiv 2210.01725): pictures stored at 256 x 256, random crops of 224 x 224, random horizontal flips, random
//! rotations of up to 15 degrees; beside them elastic deformation, blur, brightness, contrast and cutout.
//!
//! `image.size` is the stored size, `augmentation.crop` the input size of the model: a crop at a random position in
//! training, the centre in prediction. Here the whole stored picture is rotated before cropping, whereas MEDFAIR
//! rotates the crop, so fewer of the corners that a rotation empties are in the input. Anatomically invalid flips
//! are refused (`flip.rs`).
//!
//! | order | change | of | file |
//! |---|---|---|---|
//! | 1 | rotation, then elastic deformation, in one interpolation | stored image, intensities in \[0, 1\] | `resample.rs`, `elastic.rs` |
//! | 2 | crop, flip | stored image | `resample.rs` |
//! | 3 | blur, brightness, contrast | image of the model, intensities in \[0, 1\] | `appearance.rs` |
//! | 4 | `intensity` of the run file | image of the model | [`Conversion`](crate::Conversion) |
//! | 5 | cutout | image of the model, scaled | `appearance.rs` |
//!
//! The random numbers of a draw come from three streams, `augmentation`, `augmentation-elastic` and `augmentation-cutout`, so
//! that no setting moves the numbers of another.

mod appearance;
mod elastic;
mod flip;
mod resample;
mod settings;

use std::ops::Range;

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use self::elastic::Displacement;
pub use self::flip::Flip;
pub use self::settings::{AugmentationConfig, BlurConfig, CutoutConfig, ElasticConfig};
use crate::{ImageConfig, InvalidSetting};

/// Checked settings of augmentation for images of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Augmentation {
    stored: Vec<usize>,
    size: Vec<usize>,
    config: AugmentationConfig,
}

/// The random change of one image.
#[derive(Clone, Debug, PartialEq)]
pub struct Draw {
    /// First stored pixel of the crop, one per side.
    begin: Vec<usize>,
    mirror_width: bool,
    mirror_height: bool,
    /// Counterclockwise, in degrees.
    angle: f64,
    displacement: Option<Displacement>,
    /// Standard deviation of the blur.
    blur: Option<f64>,
    /// Factor of the intensities.
    brightness: Option<f64>,
    /// Factor of the distances from the mean intensity.
    contrast: Option<f64>,
    /// `[begin, end)` per side of `[depth, height, width]`.
    holes: Vec<[Range<usize>; 3]>,
}

impl Augmentation {
    /// Augmentation of images of `image` that come from the data set named `data_set` (`mimic-cxr`, `adni`, ..).
    ///
    /// # Errors
    /// [`InvalidSetting`] for a crop that does not fit into `image.size`, a setting out of range, or a flip
    /// that the anatomy of the data set forbids, unless forced.
    ///
    /// ```
    /// use fairtte_images::ImageConfig;
    /// use fairtte_images::augment::{Augmentation, AugmentationConfig, Flip};
    ///
    /// let image = ImageConfig { size: vec![256, 256], ..ImageConfig::default() };
    /// let settings = AugmentationConfig { crop: Some(vec![224, 224]), flip: Flip::Horizontal, ..Default::default() };
    /// assert_eq!(Augmentation::new(&settings, &image, "areds")?.size(), [224, 224]);
    /// let refused = Augmentation::new(&settings, &image, "mimic-cxr").unwrap_err();
    /// assert!(refused.to_string().contains("heart"));
    /// # Ok::<(), fairtte_images::InvalidSetting>(())
    /// ```
    pub fn new(config: &AugmentationConfig, image: &ImageConfig, data_set: &str) -> Result<Self, InvalidSetting> {
        config.check(image, data_set)?;
        let size = config.crop.clone().unwrap_or_else(|| image.size.clone());
        Ok(Self { stored: image.size.clone(), size, config: config.clone() })
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
        self.size == self.stored && !self.config.changes_images()
    }

    /// Whether images are only cut and mirrored, so that their values stay the stored ones.
    pub fn keeps_values(&self) -> bool {
        let AugmentationConfig { rotation, brightness, contrast, blur, elastic, cutout, .. } = &self.config;
        let is_on = |amount: f64| amount != 0.0;
        !is_on(*rotation)
            && !is_on(*brightness)
            && !is_on(*contrast)
            && blur.is_none()
            && elastic.is_none()
            && cutout.is_none()
    }

    /// A random change; `stream` makes the stream of random numbers of this image with a name.
    pub fn draw(&self, stream: &dyn Fn(&str) -> ChaCha8Rng) -> Draw {
        let mut rng = stream("augmentation");
        let mut begin = Vec::with_capacity(self.size.len());
        for (stored, side) in self.stored.iter().zip(&self.size) {
            begin.push(offset(rng.random_range(0..=(stored - side) as u64)));
        }
        // All numbers are always drawn, so that one setting does not change the effect of another.
        let (mirror_width, mirror_height): (bool, bool) = (rng.random(), rng.random());
        let [turn, chance, width, brightness, contrast]: [f64; 5] = std::array::from_fn(|_| rng.random());
        let config = &self.config;
        let blur = config.blur.filter(|blur| chance < blur.probability);
        let elastic = config.elastic.filter(|elastic| elastic.alpha > 0.0);
        let holes = config.cutout.iter().flat_map(|cutout| {
            let mut rng = stream("augmentation-cutout");
            (0..cutout.holes).map(move |_| self.hole(cutout.size, &mut rng))
        });
        Draw {
            begin,
            mirror_width: mirror_width && config.flip.mirrors_width(),
            mirror_height: mirror_height && config.flip.mirrors_height(),
            angle: (2.0 * turn - 1.0) * config.rotation,
            displacement: elastic
                .map(|elastic| Displacement::draw(elastic, &self.stored, &mut stream("augmentation-elastic"))),
            blur: blur.map(|blur| blur.sigma[0] + width * (blur.sigma[1] - blur.sigma[0])),
            brightness: factor(brightness, config.brightness),
            contrast: factor(contrast, config.contrast),
            holes: holes.collect(),
        }
    }

    /// The centre, for prediction; if it cannot be exactly centred, it is one pixel nearer to the beginning.
    pub fn centre(&self) -> Draw {
        Draw {
            begin: self.stored.iter().zip(&self.size).map(|(stored, side)| (stored - side) / 2).collect(),
            mirror_width: false,
            mirror_height: false,
            angle: 0.0,
            displacement: None,
            blur: None,
            brightness: None,
            contrast: None,
            holes: Vec::new(),
        }
    }
}

/// A factor from `1 - most` to `1 + most` for a number drawn from \[0, 1).
fn factor(drawn: f64, most: f64) -> Option<f64> {
    (most > 0.0).then_some(1.0 + (2.0 * drawn - 1.0) * most)
}

/// `[depth, height, width]`, depth 1 for a picture.
fn extent(size: &[usize]) -> [usize; 3] {
    if let [depth, height, width] = *size { [depth, height, width] } else { [1, size[0], size[1]] }
}

fn offset(drawn: u64) -> usize {
    usize::try_from(drawn).expect("at most a side of an image")
}

#[cfg(test)]
mod tests;
