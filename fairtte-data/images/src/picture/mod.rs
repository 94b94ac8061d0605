//! JPEG, PNG, TIFF and DICOM pictures, recognised by content and not by the name of the file.
//!
//! | format | read | refused with a sentence |
//! |---|---|---|
//! | JPEG | baseline, progressive, lossless; gray, colour, CMYK, YCCK; restart intervals | truncated, 12-bit DCT, arithmetic |
//! | PNG | 1 to 16 bits, palette, transparency, interlaced; checksums hold | truncated |
//! | TIFF | 1, 8 and 16 bits, gray, RGB, CMYK; strips, tiles, LZW, deflate, `PackBits` | several pages, a thumbnail first, palette, signed, float |
//! | DICOM (feature `dicom`) | uncompressed, deflated, RLE, JPEG, JPEG lossless; gray and colour | several frames, JPEG 2000, JPEG-LS, VOI LUT without window |
//!
//! GIF, BMP, WebP and others are refused by name. [`decode_picture_full`] returns the full content of the file;
//! [`DecodedPicture::into_picture`] converts it to the upright 8-bit picture that is resized for a model.

#[cfg(feature = "dicom")]
pub(super) mod dicom;
mod eight_bits;
mod exif;
mod jpeg;
mod jpeg_markers;
mod kind;
mod orient;
mod png;
mod statistics;
mod tiff;
mod tiff_directory;
#[cfg(feature = "turbojpeg")]
mod turbo;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};

use self::eight_bits::Rendering;
pub(super) use self::kind::Kind;
pub use self::statistics::Statistics;
use super::{Limits, Undecodable};
use crate::Fault;

/// A decoded picture, 8 bits per channel, upright.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Pixels per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// 1 (gray) or 3 (red, green, blue).
    pub channels: usize,
    /// `[height, width, channels]`, row by row from the top left.
    pub pixels: Vec<u8>,
}

/// The file formats of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PictureFormat {
    /// JPEG, ITU-T T.81.
    Jpeg,
    /// Portable Network Graphics.
    Png,
    /// Tagged Image File Format.
    Tiff,
    /// Digital Imaging and Communications in Medicine, PS3.10 files.
    Dicom,
}

impl PictureFormat {
    /// The common name: `JPEG`, `PNG`, `TIFF` or `DICOM`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::Tiff => "TIFF",
            Self::Dicom => "DICOM",
        }
    }
}

/// The meaning of the channels of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Colour {
    /// One channel, brighter is larger (except DICOM `MONOCHROME1`, where it is darker).
    Gray,
    /// Gray and opacity.
    GrayAlpha,
    /// Red, green, blue; also palettes, which are looked up.
    Rgb,
    /// Red, green, blue, opacity.
    Rgba,
    /// Cyan, magenta, yellow, black as amounts of ink: 0 is white.
    Cmyk,
}

impl Colour {
    /// Channels per pixel: 1 to 4.
    pub fn n_channels(self) -> usize {
        match self {
            Self::Gray => 1,
            Self::GrayAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba | Self::Cmyk => 4,
        }
    }
}

/// The samples of a picture, `[height, width, channels]` as stored, before any rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Samples {
    /// Up to 8 bits.
    U8(Vec<u8>),
    /// 9 to 16 bits.
    U16(Vec<u16>),
    /// Signed numbers, in DICOM files only.
    I16(Vec<i16>),
}

/// The content of a picture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedPicture {
    /// The file format.
    pub format: PictureFormat,
    /// Pixels per row as stored.
    pub width: usize,
    /// Rows as stored.
    pub height: usize,
    /// EXIF orientation 1 to 8: 1 is upright, 6 must be turned by 90 degrees clockwise; 1 if the file names none.
    pub orientation: u8,
    /// Bits per sample in the file, 1 to 16; of a DICOM file the bits stored, of a palette the bits of an index.
    pub bit_depth: u8,
    /// The meaning of the channels.
    pub colour: Colour,
    /// The values. One bit gives 0 and 1; 2 and 4 bits of gray are widened to 8 (times 85 and 17, as in the PNG
    /// standard); palettes are looked up without their transparency; CMYK is amounts of ink; a TIFF whose zero is white
    /// is inverted; everything else is as stored.
    pub samples: Samples,
    pub(super) rendering: Rendering,
}

impl DecodedPicture {
    /// Channels per pixel: 1 to 4.
    pub fn n_channels(&self) -> usize {
        self.colour.n_channels()
    }

    /// `bool`, `uint8`, `uint16` or `int16`: numpy's name for the type of the samples.
    pub fn dtype(&self) -> &'static str {
        match self.samples {
            Samples::U8(_) if self.bit_depth == 1 && self.colour == Colour::Gray => "bool",
            Samples::U8(_) => "uint8",
            Samples::U16(_) => "uint16",
            Samples::I16(_) => "int16",
        }
    }

    /// Width and height of the upright picture.
    pub fn oriented_size(&self) -> [usize; 2] {
        if self.orientation >= 5 { [self.height, self.width] } else { [self.width, self.height] }
    }
}

/// Decodes a picture and keeps all its properties in the file.
///
/// # Errors
/// A reason code and a sentence: empty, not a picture, truncated, of an unsupported kind, too large, or a volume.
/// A damaged file never causes a panic.
///
/// # Cost
/// One decoding at full size; the size is compared with `limits` before any memory is allocated.
pub fn decode_picture_full(bytes: &[u8], limits: &Limits) -> Result<DecodedPicture, Undecodable> {
    guarded(|| match Kind::of(bytes)? {
        Kind::Jpeg => jpeg::decode(bytes, limits),
        Kind::Png => png::decode(bytes, limits),
        Kind::Tiff => tiff::decode(bytes, limits),
        Kind::Dicom => decode_dicom(bytes, limits),
    })
}

/// Decodes a picture to 8 bits per channel, upright.
///
/// # Errors
/// As [`decode_picture_full`].
pub fn decode_picture(bytes: &[u8], limits: &Limits) -> Result<Picture, Undecodable> {
    Ok(decode_picture_full(bytes, limits)?.into_picture())
}

/// Decodes a picture that will be shrunk to `height` x `width`: a JPEG file at the smallest of 1/8, 1/4, 1/2 and full
/// size that leaves at least twice that, everything else at full size.
pub(super) fn decode_picture_for(
    bytes: &[u8],
    limits: &Limits,
    height: usize,
    width: usize,
) -> Result<Picture, Undecodable> {
    let decoded = guarded(|| match Kind::of(bytes)? {
        Kind::Jpeg => jpeg::decode_scaled(bytes, limits, height, width),
        _ => decode_picture_full(bytes, limits),
    });
    Ok(decoded?.into_picture())
}

/// The decoders that are used, with their versions and rules; `exact` as in the settings.
pub(super) fn decoders(exact: bool) -> String {
    let dicom = if cfg!(feature = "dicom") { "; dicom" } else { "" };
    format!("{}; png and tiff image 0.25.10{dicom}", jpeg::describe(exact))
}

/// Third-party decoders work on arbitrary bytes. A panic in one of them would abort a long run because of one damaged
/// file, so it is turned into an error like every other failure.
fn guarded(decode: impl FnOnce() -> Result<DecodedPicture, Undecodable>) -> Result<DecodedPicture, Undecodable> {
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(unreadable("the decoder stopped on an internal error")))
}

#[cfg(feature = "dicom")]
fn decode_dicom(bytes: &[u8], limits: &Limits) -> Result<DecodedPicture, Undecodable> {
    dicom::decode(bytes, limits)
}

#[cfg(not(feature = "dicom"))]
fn decode_dicom(_: &[u8], _: &Limits) -> Result<DecodedPicture, Undecodable> {
    Err(unsupported("the file is a DICOM picture, and this program was built without the feature `dicom`"))
}

fn unreadable(detail: impl Into<String>) -> Undecodable {
    Undecodable::new(Fault::Unreadable, detail)
}

fn unsupported(detail: impl Into<String>) -> Undecodable {
    Undecodable::new(Fault::Unsupported, detail)
}

#[cfg(test)]
#[expect(clippy::print_stdout, reason = "a skipped test says so, and how much was compared")]
mod tests;
