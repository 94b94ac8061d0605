//! TIFF pictures by the `image` crate, after a check of the directories.
//!
//! Read are 1, 8 and 16 bits, gray and RGB with or without opacity, and CMYK; in strips or tiles; uncompressed, LZW,
//! deflate or `PackBits`. A file of several pages is refused, because it is unknown which one is meant; reduced
//! versions of the first page and masks do not count as pages. Floating-point and signed samples have no agreed black
//! and white, so they are refused instead of guessed.

use std::io::Cursor;

use image::codecs::tiff::TiffDecoder;
use image::{ColorType, ImageDecoder as _};

use super::eight_bits::Rendering;
use super::png::{DEFLATE_RATIO, read_samples, refused};
use super::tiff_directory::{self, Page};
use super::{Colour, DecodedPicture, PictureFormat, Samples, unreadable, unsupported};
use crate::{Limits, Undecodable};

/// Decodes a TIFF file.
pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<DecodedPicture, Undecodable> {
    let pages = tiff_directory::read(bytes)?;
    let n_pages = pages.iter().filter(|page| !page.is_auxiliary).count();
    if n_pages > 1 {
        return Err(unsupported(format!("the TIFF file has {n_pages} pages, expected one")));
    }
    let page = &pages[0];
    let bit_depth = check_kind(page)?;
    // A tile or strip is decoded into a separate buffer, and tiles may be larger than the picture.
    let bytes_per_pixel = 2 * page.n_samples.saturating_mul(if bit_depth == 16 { 2 } else { 1 });
    limits.admit(&[page.width, page.height], bytes_per_pixel)?;
    limits.admit(&page.tile, bytes_per_pixel)?;
    check_plausible(page, bytes.len() as u64)?;
    let mut decoder = TiffDecoder::new(Cursor::new(bytes)).map_err(refused)?;
    let mut decoder_limits = image::Limits::default();
    decoder_limits.max_alloc = Some(limits.max_bytes);
    decoder.set_limits(decoder_limits).map_err(refused)?;
    let colour = match decoder.color_type() {
        ColorType::L8 | ColorType::L16 => Colour::Gray,
        ColorType::La8 | ColorType::La16 => Colour::GrayAlpha,
        ColorType::Rgb8 | ColorType::Rgb16 => Colour::Rgb,
        ColorType::Rgba8 | ColorType::Rgba16 => Colour::Rgba,
        other => {
            return Err(unsupported(format!("the TIFF samples are {other:?}, expected gray or RGB of up to 16 bits")));
        }
    };
    let samples = match read_samples(decoder)? {
        Samples::U8(samples) if bit_depth == 1 => {
            Samples::U8(samples.into_iter().map(|bit| u8::from(bit > 0)).collect())
        }
        samples => samples,
    };
    Ok(DecodedPicture {
        format: PictureFormat::Tiff,
        width: usize::try_from(page.width).map_err(|_| unreadable("the picture is too wide"))?,
        height: usize::try_from(page.height).map_err(|_| unreadable("the picture is too high"))?,
        orientation: u8::try_from(page.orientation).ok().filter(|value| (1..=8).contains(value)).unwrap_or(1),
        bit_depth,
        colour,
        samples,
        rendering: Rendering::DepthInUse,
    })
}

/// The bits per sample, if pages of this kind are read.
fn check_kind(page: &Page) -> Result<u8, Undecodable> {
    let bits = page.bits_per_sample[0];
    if page.bits_per_sample.iter().any(|other| *other != bits) {
        return Err(unsupported(format!(
            "the TIFF channels have {:?} bits, expected the same for all",
            page.bits_per_sample
        )));
    }
    let kind = match page.sample_format {
        1 | 4 => "unsigned",
        2 => "signed",
        3 => "floating-point",
        _ => "complex",
    };
    let is_gray = page.photometric <= 1;
    if kind != "unsigned" || !(matches!(bits, 8 | 16) || bits == 1 && is_gray && page.n_samples == 1) {
        return Err(unsupported(format!(
            "the TIFF samples are {kind} of {bits} bits, expected unsigned of 8 or 16 bits"
        )));
    }
    let photometric = match page.photometric {
        0 | 1 | 2 | 5 => None,
        3 => Some("a palette"),
        4 => Some("a transparency mask"),
        6 => Some("YCbCr"),
        8..=10 => Some("CIELab"),
        _ => Some("an unknown colour space"),
    };
    if let Some(photometric) = photometric {
        return Err(unsupported(format!("the TIFF picture is stored as {photometric}, expected gray, RGB or CMYK")));
    }
    let (n, fewest) = (
        page.n_samples,
        match page.photometric {
            0 | 1 => 1,
            2 => 3,
            _ => 4,
        },
    );
    if n < fewest || n > 4 {
        return Err(unsupported(format!("the number of channels of the TIFF picture is {n}, expected {fewest} to 4")));
    }
    u8::try_from(bits).map_err(|_| unsupported(format!("the TIFF samples have {bits} bits")))
}

/// Refuses a file that cannot hold its declared pixels, given the best ratio of its compression.
fn check_plausible(page: &Page, n_file_bytes: u64) -> Result<(), Undecodable> {
    let ratio = match page.compression {
        1 => 1,
        // A code of at most 12 bits stands for at most 4096 bytes.
        5 => 4096,
        // A run of 128 bytes takes 2.
        32_773 => 64,
        _ => DEFLATE_RATIO,
    };
    let n_bits = page.width.saturating_mul(page.n_samples).saturating_mul(page.bits_per_sample[0]);
    let n_bytes = n_bits.div_ceil(8).saturating_mul(page.height);
    // Strips may be shared between rows of a malicious file, so the declared bytes count only up to the size of the
    // file.
    let n_packed = page.n_packed_bytes.min(n_file_bytes);
    if n_packed.saturating_add(16).saturating_mul(ratio) < n_bytes {
        let Page { width, height, .. } = page;
        return Err(unreadable(format!(
            "the TIFF directory announces {width} x {height} pixels, which {n_packed} bytes of data cannot hold"
        )));
    }
    Ok(())
}
