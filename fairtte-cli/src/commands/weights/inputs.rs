//! What the inputs of an exported network are: how a file or a row of a table becomes its numbers.

use fairtte_data::features::TabularFeatures;
use fairtte_data::image::recipe;
use fairtte_data::loader::Intensity;
use serde::Serialize;

use crate::CliError;
use crate::run_file::RunFile;
use crate::run_folder::ModelRecord;

/// The inputs, by their kind.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(super) enum Input<'a> {
    /// Pictures or volumes.
    #[serde(rename_all = "kebab-case")]
    Image {
        channels: usize,
        /// `[height, width]` or `[depth, height, width]` of what the network reads.
        size: Vec<usize>,
        axes: &'static str,
        /// Size to which a file is resized, before the crop.
        resized_to: &'a [usize],
        /// How a file becomes stored values.
        decoding: String,
        resizing: &'static str,
        colours: &'static str,
        /// First entry of the crop along every axis; `None` without a crop.
        #[serde(skip_serializing_if = "Option::is_none")]
        crop_begin: Option<Vec<usize>>,
        /// Stored value of intensity 1.
        full_scale: u32,
        intensity: &'a Intensity,
        intensity_formula: &'static str,
    },
    /// Columns of a table.
    #[serde(rename_all = "kebab-case")]
    Table {
        /// Names of the features, in the order of the inputs.
        names: Vec<String>,
        encodings: &'a TabularFeatures,
        encoding_rules: &'static str,
    },
}

const OF_PICTURE: &str = "triangle filter with antialiasing (as Pillow's BILINEAR), in 8 bits, of the upright picture";
const ANTIALIASED: &str = "triangle filter as wide as a target voxel when shrinking, along every axis";
const TRILINEAR: &str = "linear between the eight nearest voxels, align_corners = false, without antialiasing";
const INTENSITY: &str = "x = (value / full-scale - mean) / standard-deviation, per channel";
const PER_IMAGE: &str = "x = (value / full-scale - mean) / standard-deviation, then every channel of every image minus its own \
mean over its own population standard deviation (over 1 if that is at most 1e-6)";
const ENCODINGS: &str = "numeric: (value - mean) / standard_deviation; categorical: 1 for the level of the sample, 0 for the \
others and for a level that the training part lacks; presence: no feature. A column with an indicator has one more feature, 1 \
if the value is missing; a missing value is 0 everywhere else";

impl<'a> Input<'a> {
    /// # Errors
    /// [`CliError`] if settings and record do not fit each other.
    pub(super) fn new(run: &'a RunFile, record: &'a ModelRecord, channels: usize) -> Result<Self, CliError> {
        if let Some(encodings) = &record.features {
            return Ok(Self::Table { names: encodings.names(), encodings, encoding_rules: ENCODINGS });
        }
        let intensity = record.intensity.as_ref();
        let intensity = intensity.ok_or_else(|| CliError::Bug("images without a scale of intensities".to_owned()))?;
        let stored = &run.image.size;
        let size = run.augmentation()?.map_or_else(|| stored.clone(), |changes| changes.size().to_vec());
        let begin: Vec<usize> = stored.iter().zip(&size).map(|(stored, side)| (stored - side) / 2).collect();
        let is_volume = run.image.is_volume();
        let is_trilinear = run.image.volume.resample == fairtte_data::image::Resampling::Trilinear;
        Ok(Self::Image {
            channels,
            axes: if is_volume { "batch, channels, depth, height, width" } else { "batch, channels, height, width" },
            resized_to: stored,
            decoding: recipe(&run.image),
            resizing: match (is_volume, is_trilinear) {
                (false, _) => OF_PICTURE,
                (true, false) => ANTIALIASED,
                (true, true) => TRILINEAR,
            },
            colours: match (is_volume, channels) {
                (true, 1) => "one channel",
                (true, _) => "the volume is repeated in every channel",
                (false, 1) => "colour becomes luma (ITU-R BT.601)",
                (false, _) => "gray is repeated in every channel, colour is kept",
            },
            crop_begin: (size != *stored).then_some(begin),
            size,
            full_scale: if is_volume { u32::from(u16::MAX) } else { u32::from(u8::MAX) },
            intensity,
            intensity_formula: if intensity.per_image { PER_IMAGE } else { INTENSITY },
        })
    }
}
