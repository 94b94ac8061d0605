//! Limits on the size of an image, against files of a few bytes whose header claims gigabytes.
//!
//! Every decoder compares the size in the header with these limits before it reserves memory, and with the number of
//! bytes that follow: a file too short for the size in its header is refused as truncated without being decoded.

use serde::{Deserialize, Serialize};

use super::Undecodable;
use crate::{Fault, InvalidSetting, Settings};

/// The largest image that is decoded, `[image.limits]`.
///
/// ```
/// use fairtte_images::Limits;
///
/// let limits: Limits = toml::from_str("max-pixels = 1000000")?;
/// assert_eq!(limits, Limits { max_pixels: 1_000_000, ..Limits::default() });
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Limits {
    /// Pixels (width x height) of a picture or voxels of a volume, 1 or more; 2^28 = 268,435,456 if not given, four
    /// times the largest film in use (43 x 35 cm at 50 micrometres) and a volume of 512 x 512 x 1024.
    pub max_pixels: u64,
    /// Bytes that the decoded samples and the decoder's own buffers of one image may take, 1 or more;
    /// 2^31 = 2 GiB if not given. As many images as there are cores are decoded at once.
    pub max_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_pixels: 1 << 28, max_bytes: 2 << 30 }
    }
}

impl Limits {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`InvalidSetting`] naming the key.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        for (field, value) in [("limits.max-pixels", self.max_pixels), ("limits.max-bytes", self.max_bytes)] {
            if value == 0 {
                return Err(InvalidSetting::new(Settings::Image, field, value, "1 or more"));
            }
        }
        Ok(())
    }

    /// Refuses an image of these extents whose decoding needs `bytes_per_pixel` bytes for each pixel.
    ///
    /// # Errors
    /// [`Fault::Unreadable`] if an extent is 0, [`Fault::Unsupported`] above a limit, naming the setting.
    pub fn admit(&self, extents: &[u64], bytes_per_pixel: u64) -> Result<(), Undecodable> {
        let shown = || extents.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
        if extents.contains(&0) {
            let detail = format!("the image has {} pixels, expected at least 1 along each side", shown());
            return Err(Undecodable::new(Fault::Unreadable, detail));
        }
        let n_pixels = extents.iter().fold(1, |product: u64, extent| product.saturating_mul(*extent));
        if n_pixels > self.max_pixels {
            let limit = self.max_pixels;
            let detail = format!("the image has {} pixels, more than image.limits.max-pixels = {limit}", shown());
            return Err(Undecodable::new(Fault::Unsupported, detail));
        }
        let n_bytes = n_pixels.saturating_mul(bytes_per_pixel);
        if n_bytes > self.max_bytes {
            let (shown, limit) = (shown(), self.max_bytes);
            let detail = format!(
                "decoding {shown} pixels takes {n_bytes} bytes of memory, more than image.limits.max-bytes = {limit}"
            );
            return Err(Undecodable::new(Fault::Unsupported, detail));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_at_the_limit_is_admitted_and_one_above_is_not() {
        let limits = Limits { max_pixels: 12, max_bytes: 30 };
        assert_eq!(limits.admit(&[4, 3], 2), Ok(()));
        let refused = limits.admit(&[13, 1], 1).expect_err("13 pixels");
        assert!(refused.detail.contains("13 x 1 pixels, more than image.limits.max-pixels = 12"), "{}", refused.detail);
        let refused = limits.admit(&[4, 3], 3).expect_err("36 bytes");
        assert!(refused.detail.contains("36 bytes of memory, more than image.limits.max-bytes = 30"));
        assert_eq!(limits.admit(&[4, 0], 1).expect_err("no pixels").fault, Fault::Unreadable);
        assert!(Limits::default().admit(&[u64::MAX, u64::MAX], u64::MAX).is_err(), "no overflow");
    }

    #[test]
    fn a_limit_of_zero_is_refused_by_its_key() {
        let error = Limits { max_bytes: 0, ..Limits::default() }.check().expect_err("0 bytes").to_string();
        assert!(error.contains("limits.max-bytes"), "{error}");
        assert!(Limits::default().check().is_ok());
    }
}
