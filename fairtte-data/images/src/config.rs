//! Size, channels and limits to which the images of a cohort are converted.

use serde::{Deserialize, Serialize};

use crate::{InvalidSetting, Limits, Settings, VolumeConfig};

/// Size and channels to which every image of a cohort is converted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ImageConfig {
    /// `[height, width]` of pictures or `[depth, height, width]` of volumes, in pixels, each in 1..=4096;
    /// `[64, 64]` if not given.
    pub size: Vec<usize>,
    /// 1: colour becomes luma (ITU-R BT.601, as Pillow's `convert("L")`); 3: gray is repeated, colour is kept. 1 if not
    /// given.
    pub channels: usize,
    /// `true`: JPEG files are always decoded at full size. `false`: large ones at 1/2, 1/4 or 1/8 of it when that still
    /// leaves twice the wanted size, which is faster and differs by a fraction of a gray level. `false` if not given.
    pub exact: bool,
    /// How volumes are read; not used for pictures.
    pub volume: VolumeConfig,
    /// Limits on the size of an image.
    pub limits: Limits,
    /// Whether the files are masks, whose pixels are classes; no setting of a run file.
    #[serde(skip)]
    pub is_mask: bool,
}

impl Default for ImageConfig {
    fn default() -> Self {
        Self {
            size: vec![64, 64],
            channels: 1,
            exact: false,
            volume: VolumeConfig::default(),
            limits: Limits::default(),
            is_mask: false,
        }
    }
}

impl ImageConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`InvalidSetting`] naming the key.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        if !matches!(self.size.len(), 2 | 3) || self.size.iter().any(|extent| !(1..=4096).contains(extent)) {
            let expected = "[height, width] or [depth, height, width], each from 1 to 4096";
            return Err(InvalidSetting::new(Settings::Image, "size", format!("{:?}", self.size), expected));
        }
        if !matches!(self.channels, 1 | 3) {
            return Err(InvalidSetting::new(Settings::Image, "channels", self.channels, "1 or 3"));
        }
        self.limits.check()
    }

    /// The settings for the masks of these images: one class per pixel, in their size.
    #[must_use]
    pub fn of_masks(&self) -> Self {
        Self { channels: 1, is_mask: true, ..self.clone() }
    }

    /// Whether the images are volumes.
    pub fn is_volume(&self) -> bool {
        self.size.len() == 3
    }

    /// Pixels of one channel of one image.
    pub fn n_pixels(&self) -> usize {
        self.size.iter().product()
    }
}
