//! TIFF pictures by the `image` crate, after a check of the directories.
//!
//! Read are 1, 8 and 16 bits, gray and RGB with or without opacity, and CMYK; in strips or tiles; uncompressed, LZW,
//! deflate or `PackBits`. A file of several pages is refused, because it is unknown which one is meant; reduced
//! versions of the first page and masks do not count as pages. Where the first page is one of these, as in raw files of
//! cameras (DNG), the picture is elsewhere in the file, which is refused. Floating-point and signed samples have no
//! agreed black and white, so they are refused instead of guessed.

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
    if page.is_auxiliary {
        return Err(unsupported(
            "the first page of the TIFF file is a reduced version or a mask (as in raw camera files, DNG), expected the \
             picture itself",
        ));
    }
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;
    use crate::Fault;

    /// An uncompressed file of one gray pixel per page: the kind of each page (1 a reduced version, 4 a mask) and its value.
    fn tiff(pages: &[(u32, u8)]) -> Vec<u8> {
        const N_ENTRIES: u16 = 10;
        const DIRECTORY_BYTES: usize = 2 + 12 * N_ENTRIES as usize + 4;
        let place = |page: usize| u32::try_from(8 + page * (DIRECTORY_BYTES + 2)).unwrap();
        let mut bytes = [b"II".as_slice(), &42_u16.to_le_bytes(), &8_u32.to_le_bytes()].concat();
        for (i, (kind, value)) in pages.iter().enumerate() {
            let pixel = place(i) + u32::try_from(DIRECTORY_BYTES).unwrap();
            let entries: [(u16, u32); N_ENTRIES as usize] = [
                (254, *kind),
                (256, 1),
                (257, 1),
                (258, 8),
                (259, 1),
                (262, 1),
                (273, pixel),
                (277, 1),
                (278, 1),
                (279, 1),
            ];
            bytes.extend(N_ENTRIES.to_le_bytes());
            for (tag, value) in entries {
                // One number of four bytes.
                bytes.extend([tag.to_le_bytes(), 4_u16.to_le_bytes()].concat());
                bytes.extend([1_u32.to_le_bytes(), value.to_le_bytes()].concat());
            }
            let next = if i + 1 < pages.len() { place(i + 1) } else { 0 };
            bytes.extend(next.to_le_bytes());
            bytes.extend([*value, 0]);
        }
        bytes
    }

    #[test]
    fn a_reduced_version_or_a_mask_is_not_taken_for_the_picture() {
        let limits = Limits::default();
        let samples = |pages: &[(u32, u8)]| decode(&tiff(pages), &limits).map(|picture| picture.samples);
        assert_eq!(samples(&[(0, 7)]), Ok(Samples::U8(vec![7])));
        assert_eq!(samples(&[(0, 7), (1, 9), (4, 255)]), Ok(Samples::U8(vec![7])), "what follows is no page");
        for pages in [[(1, 9), (0, 7)].as_slice(), &[(4, 255), (0, 7)], &[(1, 9)]] {
            let refused = samples(pages).unwrap_err();
            assert_eq!(refused.fault, Fault::Unsupported);
            assert!(refused.detail.contains("the first page of the TIFF file is a reduced version or a mask"));
        }
    }
}
