//! Shrunk JPEG decoding by libjpeg-turbo, with the feature `turbojpeg`.

use turbojpeg::{Decompressor, Image, PixelFormat, ScalingFactor};

use super::jpeg::Pixels;
use super::jpeg_markers::{MAX_SCANS, Markers, Space};
use super::{Colour, Samples, unreadable};
use crate::Undecodable;

/// Decodes a gray or YCbCr stream at 1 / `divisor` of its size.
pub(super) fn decode(bytes: &[u8], markers: &Markers, divisor: u16) -> Result<Pixels, Undecodable> {
    let refused = |error: turbojpeg::Error| unreadable(format!("the JPEG stream is damaged: {error}"));
    let factor = ScalingFactor::new(1, usize::from(divisor));
    let (width, height) = (factor.scale(markers.width.into()), factor.scale(markers.height.into()));
    let (colour, format) =
        if markers.space == Space::Gray { (Colour::Gray, PixelFormat::GRAY) } else { (Colour::Rgb, PixelFormat::RGB) };
    let mut decoder = Decompressor::new().map_err(refused)?;
    decoder.set_scan_limit(u32::try_from(MAX_SCANS).unwrap_or(u32::MAX)).map_err(refused)?;
    decoder.read_header(bytes).map_err(refused)?;
    decoder.set_scaling_factor(factor).map_err(refused)?;
    let pitch = width * colour.n_channels();
    let mut samples = vec![0; pitch * height];
    let image = Image { pixels: samples.as_mut_slice(), width, pitch, height, format };
    decoder.decompress(bytes, image).map_err(refused)?;
    Ok(Pixels { width, height, colour, samples: Samples::U8(samples) })
}
