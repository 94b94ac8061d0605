//! JPEG pictures, at full size or, for ingestion, at 1/2, 1/4 or 1/8 of it straight from the coefficients.
//!
//! * Colour (YCbCr) and gray at full size: `zune-jpeg`, which is the faster one there, in its strict mode; streams that
//!   it refuses, except those that end too early, are passed to `jpeg-decoder`.
//! * Everything else (shrunk, CMYK, YCCK, RGB, lossless): `jpeg-decoder`, with the colour space given, because its own
//!   guess differs from libjpeg's.
//! * With the feature `turbojpeg`: shrunk gray and colour by libjpeg-turbo.
//!
//! Shrinking while decoding leaves at least twice the target size for the resizing filter; against full decoding
//! the result differs by about 0.1 gray levels in the mean.

use jpeg_decoder::{ColorTransform, PixelFormat};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::eight_bits::Rendering;
use super::jpeg_markers::{self, Coding, Markers, Space};
use super::{Colour, DecodedPicture, PictureFormat, Samples, unreadable, unsupported};
use crate::{Limits, Undecodable};

/// Samples of a JPEG stream, and their size, which is smaller than stored if shrunk.
pub(super) struct Pixels {
    pub width: usize,
    pub height: usize,
    pub colour: Colour,
    pub samples: Samples,
}

/// Decodes a JPEG file at full size.
pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<DecodedPicture, Undecodable> {
    let markers = jpeg_markers::read(bytes)?;
    admit(&markers, limits)?;
    let pixels = decode_pixels(bytes, &markers, limits)?;
    Ok(picture(&markers, pixels))
}

/// Decodes a JPEG file at the smallest size that still has at least twice `height` x `width` pixels.
pub(super) fn decode_scaled(
    bytes: &[u8],
    limits: &Limits,
    height: usize,
    width: usize,
) -> Result<DecodedPicture, Undecodable> {
    let markers = jpeg_markers::read(bytes)?;
    admit(&markers, limits)?;
    let divisor = divisor(&markers, height, width);
    let pixels = match (markers.coding, markers.space) {
        (Coding::Baseline | Coding::Progressive, Space::Gray | Space::YCbCr)
            if is_worth_shrinking(&markers, divisor) =>
        {
            decode_shrunk(bytes, &markers, divisor, limits)?
        }
        _ => decode_pixels(bytes, &markers, limits)?,
    };
    Ok(picture(&markers, pixels))
}

/// Names of decoders and rules, for the record of a run.
pub(super) fn describe(exact: bool) -> String {
    let full = "jpeg zune-jpeg 0.5.15, jpeg-decoder 0.3.2";
    if exact {
        return format!("{full}, full size");
    }
    if cfg!(feature = "turbojpeg") {
        return format!("{full}, shrunk by 8, 4 or 2 to at least twice the size by turbojpeg 1.5.1");
    }
    format!("{full}, shrunk by 8, 4 or (gray) 2 to at least twice the size by jpeg-decoder 0.3.2")
}

/// Decodes a stream whose markers have been read and accepted.
pub(super) fn decode_pixels(bytes: &[u8], markers: &Markers, limits: &Limits) -> Result<Pixels, Undecodable> {
    let is_usual = markers.coding != Coding::Lossless && matches!(markers.space, Space::Gray | Space::YCbCr);
    if is_usual {
        match decode_by_zune(bytes, markers) {
            Ok(Some(pixels)) => return Ok(pixels),
            Ok(None) => {}
            Err(refused) => return Err(refused),
        }
    }
    decode_by_jpeg_decoder(bytes, markers, 1, limits)
}

/// Returns an error if the picture is too large; a progressive picture needs its coefficients, 2 bytes each, all at
/// once.
pub(super) fn admit(markers: &Markers, limits: &Limits) -> Result<(), Undecodable> {
    let n_components: u64 = match markers.space {
        Space::Gray => 1,
        Space::YCbCr | Space::Rgb => 3,
        Space::Cmyk | Space::Ycck => 4,
    };
    // Samples of the components before and after colour conversion.
    let bytes_per_sample = match markers.coding {
        Coding::Baseline => 2,
        Coding::Progressive | Coding::Lossless => 4,
    };
    limits.admit(&[markers.width.into(), markers.height.into()], n_components * bytes_per_sample)
}

fn picture(markers: &Markers, pixels: Pixels) -> DecodedPicture {
    DecodedPicture {
        format: PictureFormat::Jpeg,
        width: pixels.width,
        height: pixels.height,
        orientation: markers.orientation,
        bit_depth: markers.precision,
        colour: pixels.colour,
        samples: pixels.samples,
        rendering: Rendering::DepthInUse,
    }
}

/// The largest of 8, 4, 2 and 1 by which the picture can be shrunk so that twice `height` x `width` pixels are left.
fn divisor(markers: &Markers, height: usize, width: usize) -> u16 {
    // The target size is that of the upright picture.
    let (height, width) = if markers.orientation >= 5 { (width, height) } else { (height, width) };
    let leaves_enough = |divisor: &u16| {
        usize::from(markers.width.div_ceil(*divisor)) >= 2 * width
            && usize::from(markers.height.div_ceil(*divisor)) >= 2 * height
    };
    [8, 4, 2].into_iter().find(leaves_enough).unwrap_or(1)
}

/// Colour at half size by `jpeg-decoder` is no faster than at full size by `zune-jpeg` (measured), and less accurate.
fn is_worth_shrinking(markers: &Markers, divisor: u16) -> bool {
    let is_cheap = cfg!(feature = "turbojpeg") || markers.space == Space::Gray;
    divisor > if is_cheap { 1 } else { 2 }
}

#[cfg(feature = "turbojpeg")]
fn decode_shrunk(bytes: &[u8], markers: &Markers, divisor: u16, _: &Limits) -> Result<Pixels, Undecodable> {
    super::turbo::decode(bytes, markers, divisor)
}

#[cfg(not(feature = "turbojpeg"))]
fn decode_shrunk(bytes: &[u8], markers: &Markers, divisor: u16, limits: &Limits) -> Result<Pixels, Undecodable> {
    decode_by_jpeg_decoder(bytes, markers, divisor, limits)
}

/// `None` if this decoder cannot read the stream and another one should be tried.
fn decode_by_zune(bytes: &[u8], markers: &Markers) -> Result<Option<Pixels>, Undecodable> {
    let is_gray = markers.space == Space::Gray;
    let (input, output) =
        if is_gray { (ColorSpace::Luma, ColorSpace::Luma) } else { (ColorSpace::YCbCr, ColorSpace::RGB) };
    let options = DecoderOptions::default()
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .set_strict_mode(true)
        .jpeg_set_max_scans(jpeg_markers::MAX_SCANS)
        .jpeg_set_out_colorspace(output);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    if decoder.decode_headers().is_err() || decoder.input_colorspace() != Some(input) {
        return Ok(None);
    }
    match decoder.decode() {
        Ok(samples) => Ok(Some(Pixels {
            width: markers.width.into(),
            height: markers.height.into(),
            colour: if is_gray { Colour::Gray } else { Colour::Rgb },
            samples: Samples::U8(samples),
        })),
        Err(error) if error.to_string().contains("Premature end") => {
            Err(unreadable("the JPEG stream ends before all of its pixels: the file is truncated"))
        }
        Err(_) => Ok(None),
    }
}

fn decode_by_jpeg_decoder(
    bytes: &[u8],
    markers: &Markers,
    divisor: u16,
    limits: &Limits,
) -> Result<Pixels, Undecodable> {
    let refused = |error: jpeg_decoder::Error| match error {
        jpeg_decoder::Error::Unsupported(_) => unsupported(format!("the JPEG picture is not supported: {error}")),
        _ => unreadable(format!("the JPEG stream is damaged: {error}")),
    };
    let mut decoder = jpeg_decoder::Decoder::new(bytes);
    decoder.set_max_decoding_buffer_size(usize::try_from(limits.max_bytes).unwrap_or(usize::MAX));
    decoder.set_color_transform(match markers.space {
        Space::Gray => ColorTransform::Grayscale,
        Space::YCbCr => ColorTransform::YCbCr,
        Space::Rgb => ColorTransform::RGB,
        Space::Cmyk => ColorTransform::CMYK,
        Space::Ycck => ColorTransform::YCCK,
    });
    let (mut width, mut height) = (markers.width, markers.height);
    if divisor > 1 {
        (width, height) = decoder.scale(width.div_ceil(divisor), height.div_ceil(divisor)).map_err(refused)?;
    }
    let bytes = decoder.decode().map_err(refused)?;
    let format = decoder.info().map(|info| info.pixel_format);
    let (colour, samples) = match format {
        Some(PixelFormat::L8) => (Colour::Gray, Samples::U8(bytes)),
        // Lossless only, in the byte order of the machine.
        Some(PixelFormat::L16) => (Colour::Gray, Samples::U16(pairs(&bytes))),
        Some(PixelFormat::RGB24) => (Colour::Rgb, Samples::U8(bytes)),
        Some(PixelFormat::CMYK32) => (Colour::Cmyk, Samples::U8(bytes)),
        None => return Err(unreadable("the JPEG stream has no frame")),
    };
    let (width, height) = (usize::from(width), usize::from(height));
    let n_samples = match &samples {
        Samples::U8(samples) => samples.len(),
        Samples::U16(samples) => samples.len(),
        Samples::I16(samples) => samples.len(),
    };
    if n_samples != width * height * colour.n_channels() {
        let bits = markers.precision;
        return Err(unsupported(format!("the JPEG picture has {bits} bits in {colour:?}, expected 8 bits or gray")));
    }
    Ok(Pixels { width, height, colour, samples })
}

fn pairs(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).map(|pair| u16::from_ne_bytes([pair[0], pair[1]])).collect()
}

#[cfg(test)]
mod tests;
