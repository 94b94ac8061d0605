//! The content of the markers of a JPEG stream, read without decoding: size, coding, colours, orientation,
//! completeness.
//!
//! The decoders fill the missing part of a truncated file with gray and report success; half an image would then count
//! as a valid sample. So the markers must lead to the end-of-image marker, and the entropy-coded bytes must be enough
//! for the declared blocks: every block of 8 x 8 samples takes at least one bit.
//!
//! Marker structure after ITU-T T.81 (1992), annex B; the Adobe segment after Adobe Technical Note 5116 (1992).

use super::{exif, unreadable, unsupported};
use crate::Undecodable;

/// Maximum number of scans of a progressive file. Encoders write about ten; each one passes over all blocks, so
/// thousands of empty scans would keep a decoder busy for hours.
pub(super) const MAX_SCANS: usize = 256;

/// How the samples are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Baseline,
    Progressive,
    Lossless,
}

/// The colour space of the components, by libjpeg's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Gray,
    YCbCr,
    Rgb,
    Cmyk,
    Ycck,
}

/// The content of the markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Markers {
    pub width: u16,
    pub height: u16,
    /// Bits per sample.
    pub precision: u8,
    pub coding: Coding,
    pub space: Space,
    /// Whether the colour space is given by a JFIF or Adobe segment rather than guessed.
    pub space_is_told: bool,
    pub orientation: u8,
}

#[derive(Default)]
struct Walk {
    frame: Option<Frame>,
    is_jfif: bool,
    adobe_transform: Option<u8>,
    orientation: Option<u8>,
    n_scans: usize,
    n_entropy_bytes: u64,
}

#[derive(Clone)]
struct Frame {
    marker: u8,
    precision: u8,
    width: u16,
    height: u16,
    /// Identifier, horizontal and vertical sampling factor.
    components: Vec<[u8; 3]>,
}

const END_OF_IMAGE: u8 = 0xd9;
const START_OF_SCAN: u8 = 0xda;

/// Reads all markers to the end of the image; bytes after it do not matter.
///
/// Segments are skipped by their length, so the end marker of an embedded thumbnail is not mistaken for the end.
pub(super) fn read(bytes: &[u8]) -> Result<Markers, Undecodable> {
    let truncated = || unreadable("the JPEG stream ends before its end-of-image marker: the file is truncated");
    let mut walk = Walk::default();
    let mut at = 2;
    loop {
        let marker = next_marker(bytes, &mut at).ok_or_else(truncated)?;
        match marker {
            END_OF_IMAGE => return walk.markers(),
            // Markers without a segment: restart, start of image, temporary.
            0xd0..=0xd8 | 0x01 => continue,
            _ => {}
        }
        let length = bytes.get(at..at + 2).ok_or_else(truncated)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        if length < 2 {
            return Err(unreadable(format!("a JPEG segment has length {length}, expected at least 2")));
        }
        let content = bytes.get(at + 2..at + length).ok_or_else(truncated)?;
        walk.segment(marker, content)?;
        at += length;
        if marker == START_OF_SCAN {
            let begin = at;
            skip_entropy_coded(bytes, &mut at);
            walk.n_entropy_bytes += (at - begin) as u64;
        }
    }
}

impl Walk {
    fn segment(&mut self, marker: u8, content: &[u8]) -> Result<(), Undecodable> {
        match marker {
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf if self.frame.is_none() => {
                self.frame = Some(Frame::read(marker, content)?);
            }
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Err(unreadable("the JPEG stream has more than one frame header"));
            }
            START_OF_SCAN => {
                self.n_scans += 1;
                if self.n_scans > MAX_SCANS {
                    return Err(unsupported(format!("the JPEG stream has more than {MAX_SCANS} scans")));
                }
            }
            0xe0 if content.starts_with(b"JFIF\0") => self.is_jfif = true,
            // The first block is used: later ones are continuations or belong to thumbnails.
            0xe1 if content.starts_with(b"Exif\0\0") && self.orientation.is_none() => {
                self.orientation = Some(exif::orientation(content).unwrap_or(1));
            }
            0xee if content.starts_with(b"Adobe") => self.adobe_transform = content.get(11).copied(),
            _ => {}
        }
        Ok(())
    }

    fn markers(self) -> Result<Markers, Undecodable> {
        let space_is_told = self.is_jfif || self.adobe_transform.is_some();
        let orientation = self.orientation.unwrap_or(1);
        let Some(frame) = &self.frame else {
            return Err(unreadable("the JPEG stream ends before its frame header"));
        };
        let coding = frame.coding()?;
        let space = self.space(frame)?;
        let &Frame { width, height, precision, .. } = frame;
        if width == 0 || height == 0 {
            return Err(unreadable(format!(
                "the picture has {width} x {height} pixels, expected at least 1 along each side"
            )));
        }
        if self.n_entropy_bytes.saturating_mul(8) < frame.n_least_bits(coding) {
            let n = self.n_entropy_bytes;
            return Err(unreadable(format!(
                "the header announces {width} x {height} pixels, which {n} bytes of compressed data cannot hold"
            )));
        }
        Ok(Markers { width, height, precision, coding, space, space_is_told, orientation })
    }

    fn space(&self, frame: &Frame) -> Result<Space, Undecodable> {
        let identifiers: Vec<u8> = frame.components.iter().map(|component| component[0]).collect();
        Ok(match (frame.components.len(), self.adobe_transform) {
            (1, _) => Space::Gray,
            (3, _) if self.is_jfif => Space::YCbCr,
            (3, Some(0)) => Space::Rgb,
            (3, None) if identifiers == *b"RGB" || frame.marker == 0xc3 => Space::Rgb,
            (3, _) => Space::YCbCr,
            (4, Some(2)) => Space::Ycck,
            (4, _) => Space::Cmyk,
            (n, _) => return Err(unsupported(format!("the JPEG picture has {n} components, expected 1, 3 or 4"))),
        })
    }
}

impl Frame {
    fn read(marker: u8, content: &[u8]) -> Result<Self, Undecodable> {
        let short = || unreadable("the JPEG frame header is too short");
        let fixed = content.first_chunk::<6>().ok_or_else(short)?;
        let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let components = content.get(6..6 + 3 * usize::from(fixed[5])).ok_or_else(short)?;
        let components: Vec<_> = components.chunks_exact(3).map(|c| [c[0], c[1] >> 4, c[1] & 15]).collect();
        if components.iter().any(|[_, across, down]| !(1..=4).contains(across) || !(1..=4).contains(down)) {
            return Err(unreadable("a JPEG sampling factor is outside 1 to 4"));
        }
        Ok(Self { marker, precision: fixed[0], height: half(1), width: half(3), components })
    }

    fn coding(&self) -> Result<Coding, Undecodable> {
        let coding = match self.marker {
            0xc0 | 0xc1 => Coding::Baseline,
            0xc2 => Coding::Progressive,
            0xc3 => Coding::Lossless,
            0xc9..=0xcb => return Err(unsupported("the JPEG picture uses arithmetic coding, expected Huffman coding")),
            _ => {
                return Err(unsupported(
                    "the JPEG picture is hierarchical, expected baseline, progressive or lossless",
                ));
            }
        };
        let is_read = if coding == Coding::Lossless { (2..=16).contains(&self.precision) } else { self.precision == 8 };
        if !is_read {
            let precision = self.precision;
            return Err(unsupported(format!("the JPEG picture has {precision} bits per sample, expected 8")));
        }
        Ok(coding)
    }

    /// Bits that the smallest possible stream of this size takes: one for each block, or for each sample if lossless.
    fn n_least_bits(&self, coding: Coding) -> u64 {
        let largest = |at: usize| self.components.iter().map(|component| u64::from(component[at])).max().unwrap_or(1);
        let (across, down) = (largest(1), largest(2));
        let side = if coding == Coding::Lossless { 1 } else { 8 };
        let n_units = |component: &[u8; 3]| {
            let width = (u64::from(self.width) * u64::from(component[1])).div_ceil(across);
            let height = (u64::from(self.height) * u64::from(component[2])).div_ceil(down);
            width.div_ceil(side) * height.div_ceil(side)
        };
        self.components.iter().map(n_units).sum()
    }
}

/// The marker at or after `at` (fill bytes and garbage between segments are skipped); `at` moves past it.
fn next_marker(bytes: &[u8], at: &mut usize) -> Option<u8> {
    loop {
        let start = *at + bytes.get(*at..)?.iter().position(|byte| *byte == 0xff)?;
        let code = start + bytes[start..].iter().position(|byte| *byte != 0xff)?;
        *at = code + 1;
        if bytes[code] != 0 {
            return Some(bytes[code]);
        }
    }
}

/// Moves `at` to the next marker that is neither a stuffed byte (`ff 00`) nor a restart.
fn skip_entropy_coded(bytes: &[u8], at: &mut usize) {
    const STRIDE: usize = 64;
    while *at + 1 < bytes.len() {
        // Whole strides without `ff` first: an image has megabytes of these, and the test is vectorised.
        while let Some(stride) = bytes.get(*at..*at + STRIDE) {
            #[expect(clippy::needless_bitwise_bool, reason = "a lazy or would not be vectorised")]
            let has_marker = stride.iter().fold(false, |found, byte| found | (*byte == 0xff));
            if has_marker {
                break;
            }
            *at += STRIDE;
        }
        let Some(found) = bytes[*at..].iter().take(STRIDE).position(|byte| *byte == 0xff) else {
            *at = (*at + STRIDE).min(bytes.len());
            continue;
        };
        *at += found;
        match bytes.get(*at + 1) {
            None => break,
            Some(0xff) => *at += 1,
            Some(0x00 | 0xd0..=0xd7) => *at += 2,
            Some(_) => return,
        }
    }
    *at = bytes.len();
}
