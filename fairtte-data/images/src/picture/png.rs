//! PNG pictures by the `image` crate, after a pass over the chunks for properties that the crate does not report.
//!
//! The pass finds the bits per sample, whether a transparent colour is only declared (then no opacity channel is
//! kept, as in the file), the orientation in an `eXIf` chunk anywhere in the file, whether the file is complete, and
//! whether it can hold the declared number of pixels: deflate packs at most 1032 bytes into one.
//!
//! Source: Portable Network Graphics, third edition (W3C 2025), sections 5.3 (chunks) and 11.2.1 (IHDR).

use std::io::Cursor;

use image::codecs::png::PngDecoder;
use image::{ColorType, ImageDecoder as _};

use super::eight_bits::{Rendering, without_last};
use super::{Colour, DecodedPicture, PictureFormat, Samples, exif, unreadable, unsupported};
use crate::{Limits, Undecodable};

/// Maximum number of bytes from one byte of a deflate stream (RFC 1951: a copy of 258 bytes takes at least 2 bits).
pub(super) const DEFLATE_RATIO: u64 = 1032;

struct Header {
    width: u32,
    height: u32,
    bit_depth: u8,
    colour_type: u8,
    orientation: u8,
    n_packed_bytes: u64,
}

/// Decodes a PNG file.
pub(super) fn decode(bytes: &[u8], limits: &Limits) -> Result<DecodedPicture, Undecodable> {
    let header = read_header(bytes)?;
    let stored = stored_colour(&header)?;
    // Palettes and declared transparency are expanded by the decoder: up to four channels.
    let bytes_per_pixel = if header.bit_depth == 16 { 8 } else { 4 };
    limits.admit(&[header.width.into(), header.height.into()], bytes_per_pixel)?;
    check_plausible(&header)?;
    let mut decoder_limits = image::Limits::default();
    decoder_limits.max_alloc = Some(limits.max_bytes);
    let decoder = PngDecoder::with_limits(Cursor::new(bytes), decoder_limits).map_err(refused)?;
    let given = match decoder.color_type() {
        ColorType::L8 | ColorType::L16 => Colour::Gray,
        ColorType::La8 | ColorType::La16 => Colour::GrayAlpha,
        ColorType::Rgb8 | ColorType::Rgb16 => Colour::Rgb,
        _ => Colour::Rgba,
    };
    let samples = read_samples(decoder)?;
    let samples = match samples {
        _ if given == stored => samples,
        Samples::U8(samples) => Samples::U8(without_last(&samples, given.n_channels())),
        Samples::U16(samples) => Samples::U16(without_last(&samples, given.n_channels())),
        Samples::I16(_) => return Err(unreadable("a PNG file has no signed samples")),
    };
    let samples = match samples {
        Samples::U8(samples) if header.bit_depth == 1 && header.colour_type == 0 => {
            Samples::U8(samples.into_iter().map(|sample| u8::from(sample > 0)).collect())
        }
        samples => samples,
    };
    Ok(DecodedPicture {
        format: PictureFormat::Png,
        width: header.width as usize,
        height: header.height as usize,
        orientation: header.orientation,
        bit_depth: header.bit_depth,
        colour: stored,
        samples,
        rendering: Rendering::DepthInUse,
    })
}

/// All samples from a decoder of the `image` crate, of 8 or 16 bits.
pub(super) fn read_samples(decoder: impl image::ImageDecoder) -> Result<Samples, Undecodable> {
    let colour = decoder.color_type();
    let n_samples = usize::try_from(decoder.total_bytes()).map_err(|error| unreadable(error.to_string()))?;
    if colour.bytes_per_pixel() == colour.channel_count() {
        let mut samples = vec![0_u8; n_samples];
        decoder.read_image(&mut samples).map_err(refused)?;
        return Ok(Samples::U8(samples));
    }
    if colour.bytes_per_pixel() != 2 * colour.channel_count() {
        return Err(unsupported(format!("the samples are {colour:?}, expected whole numbers of up to 16 bits")));
    }
    let mut samples = vec![0_u16; n_samples / 2];
    decoder.read_image(bytemuck::cast_slice_mut(&mut samples)).map_err(refused)?;
    Ok(Samples::U16(samples))
}

/// The error message of the `image` crate, with its reason code.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn refused(error: image::ImageError) -> Undecodable {
    match error {
        image::ImageError::Unsupported(_) => unsupported(error.to_string()),
        // The decoder prints the values of its own types.
        _ if error.to_string().contains("CRC error") => {
            unreadable("a checksum of the PNG file is wrong: its content has changed since it was written")
        }
        _ => unreadable(error.to_string()),
    }
}

fn stored_colour(header: &Header) -> Result<Colour, Undecodable> {
    let depths: &[u8] = match header.colour_type {
        0 => &[1, 2, 4, 8, 16],
        3 => &[1, 2, 4, 8],
        2 | 4 | 6 => &[8, 16],
        other => return Err(unreadable(format!("the PNG colour type is {other}, expected 0, 2, 3, 4 or 6"))),
    };
    if !depths.contains(&header.bit_depth) {
        let (depth, colour) = (header.bit_depth, header.colour_type);
        return Err(unreadable(format!(
            "the PNG bit depth is {depth}, expected one of {depths:?} for colour type {colour}"
        )));
    }
    Ok(match header.colour_type {
        0 => Colour::Gray,
        4 => Colour::GrayAlpha,
        6 => Colour::Rgba,
        _ => Colour::Rgb,
    })
}

fn check_plausible(header: &Header) -> Result<(), Undecodable> {
    let n_channels = match header.colour_type {
        2 => 3,
        4 => 2,
        6 => 4,
        _ => 1,
    };
    let (width, height) = (u64::from(header.width), u64::from(header.height));
    let n_bytes = (width * n_channels * u64::from(header.bit_depth)).div_ceil(8) * height;
    if header.n_packed_bytes.saturating_add(1).saturating_mul(DEFLATE_RATIO) < n_bytes {
        let n_packed = header.n_packed_bytes;
        return Err(unreadable(format!(
            "the header announces {width} x {height} pixels, which {n_packed} bytes of compressed data cannot hold"
        )));
    }
    Ok(())
}

/// Reads all chunks up to the end chunk.
fn read_header(bytes: &[u8]) -> Result<Header, Undecodable> {
    let mut header = None;
    let (mut orientation, mut n_packed_bytes) = (1, 0_u64);
    let mut at = 8;
    loop {
        let Some((kind, content)) = chunk(bytes, at) else {
            return Err(unreadable("the PNG file ends before its end chunk: it is truncated"));
        };
        match (&kind, header) {
            (b"IHDR", None) => header = Some(size_and_kind(content)?),
            (_, None) => return Err(unreadable("the PNG file does not begin with its header chunk")),
            (b"IDAT", _) => n_packed_bytes += content.len() as u64,
            (b"eXIf", _) => orientation = exif::orientation(content).unwrap_or(orientation),
            (b"IEND", Some((width, height, bit_depth, colour_type))) => {
                return Ok(Header { width, height, bit_depth, colour_type, orientation, n_packed_bytes });
            }
            _ => {}
        }
        at += 12 + content.len();
    }
}

/// Name and content of the chunk at `at`, if the file holds all of it.
fn chunk(bytes: &[u8], at: usize) -> Option<([u8; 4], &[u8])> {
    let length = u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?);
    let kind = *bytes.get(at + 4..)?.first_chunk()?;
    let begin = at + 8;
    let end = begin.checked_add(usize::try_from(length).ok()?)?;
    // The checksum after it must be complete as well.
    bytes.get(end..end.checked_add(4)?)?;
    Some((kind, &bytes[begin..end]))
}

fn size_and_kind(content: &[u8]) -> Result<(u32, u32, u8, u8), Undecodable> {
    let Some(fields) = content.first_chunk::<13>() else {
        return Err(unreadable("the PNG header chunk is too short"));
    };
    let number = |at: usize| u32::from_be_bytes([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]]);
    Ok((number(0), number(4), fields[8], fields[9]))
}
