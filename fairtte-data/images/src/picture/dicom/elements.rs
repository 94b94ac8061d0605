//! The data elements of a DICOM file that a picture needs (PS3.5 section 7 and annex A, PS3.10 section 7.1).
//!
//! Sequences are skipped with a count of the open ones instead of recursion; every length is compared with the
//! remaining bytes of the file; values are borrowed. Explicit and implicit value representation, either byte order.

use std::io::Read as _;

use flate2::read::DeflateDecoder;

use super::super::{unreadable, unsupported};
use crate::{Limits, Undecodable};

/// Group and element number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(pub u16, pub u16);

impl Tag {
    pub const IMAGE_TYPE: Self = Self(0x0008, 0x0008);
    /// Private to Siemens: how many slices one mosaic holds.
    pub const IMAGES_IN_MOSAIC: Self = Self(0x0019, 0x100a);
    pub const SERIES_INSTANCE_UID: Self = Self(0x0020, 0x000e);
    pub const IMAGE_POSITION: Self = Self(0x0020, 0x0032);
    pub const IMAGE_ORIENTATION: Self = Self(0x0020, 0x0037);
    pub const PIXEL_SPACING: Self = Self(0x0028, 0x0030);
    const TRANSFER_SYNTAX: Self = Self(0x0002, 0x0010);
    pub const SAMPLES_PER_PIXEL: Self = Self(0x0028, 0x0002);
    pub const PHOTOMETRIC: Self = Self(0x0028, 0x0004);
    pub const PLANAR_CONFIGURATION: Self = Self(0x0028, 0x0006);
    pub const NUMBER_OF_FRAMES: Self = Self(0x0028, 0x0008);
    pub const ROWS: Self = Self(0x0028, 0x0010);
    pub const COLUMNS: Self = Self(0x0028, 0x0011);
    pub const BITS_ALLOCATED: Self = Self(0x0028, 0x0100);
    pub const BITS_STORED: Self = Self(0x0028, 0x0101);
    pub const HIGH_BIT: Self = Self(0x0028, 0x0102);
    pub const PIXEL_REPRESENTATION: Self = Self(0x0028, 0x0103);
    pub const WINDOW_CENTER: Self = Self(0x0028, 0x1050);
    pub const WINDOW_WIDTH: Self = Self(0x0028, 0x1051);
    pub const RESCALE_INTERCEPT: Self = Self(0x0028, 0x1052);
    pub const RESCALE_SLOPE: Self = Self(0x0028, 0x1053);
    pub const VOI_LUT_FUNCTION: Self = Self(0x0028, 0x1056);
    pub const MODALITY_LUT_SEQUENCE: Self = Self(0x0028, 0x3000);
    pub const VOI_LUT_SEQUENCE: Self = Self(0x0028, 0x3010);
    const PIXEL_DATA: Self = Self(0x7fe0, 0x0010);
    const ITEM: Self = Self(0xfffe, 0xe000);
    const ITEM_END: Self = Self(0xfffe, 0xe00d);
    const SEQUENCE_END: Self = Self(0xfffe, 0xe0dd);
}

/// How the pixels are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Native,
    RunLength,
    Jpeg,
}

/// The content of the transfer syntax.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syntax {
    pub is_explicit: bool,
    pub is_big_endian: bool,
    pub is_deflated: bool,
    pub coding: Coding,
}

/// The transfer syntax and the bytes after the file meta information.
pub(super) struct Meta<'a> {
    pub syntax: Syntax,
    pub data_set: &'a [u8],
}

/// Pixels as stored.
pub(super) enum PixelData<'a> {
    Native(&'a [u8]),
    /// Without the offset table.
    Fragments(Vec<&'a [u8]>),
}

/// The elements of the outermost level.
pub(super) struct Elements<'a> {
    values: Vec<(Tag, &'a [u8])>,
    pub pixels: Option<PixelData<'a>>,
    is_big_endian: bool,
}

const UNDEFINED: u32 = u32::MAX;

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    is_explicit: bool,
    is_big_endian: bool,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(n)?)?;
        self.at += n;
        Some(taken)
    }

    fn half(&mut self) -> Option<u16> {
        let bytes = *self.take(2)?.first_chunk()?;
        Some(if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn word(&mut self) -> Option<u32> {
        let bytes = *self.take(4)?.first_chunk()?;
        Some(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Tag, whether it is a sequence by its representation, and length.
    fn header(&mut self) -> Option<(Tag, bool, u32)> {
        let tag = Tag(self.half()?, self.half()?);
        if tag.0 == 0xfffe || !self.is_explicit {
            return Some((tag, false, self.word()?));
        }
        let kind: [u8; 2] = *self.take(2)?.first_chunk()?;
        let is_long = matches!(
            &kind,
            b"OB" | b"OD" | b"OF" | b"OL" | b"OV" | b"OW" | b"SQ" | b"SV" | b"UC" | b"UN" | b"UR" | b"UT" | b"UV"
        );
        if is_long {
            self.take(2)?;
            return Some((tag, &kind == b"SQ", self.word()?));
        }
        Some((tag, false, self.half()?.into()))
    }
}

fn truncated() -> Undecodable {
    unreadable("a DICOM element ends beyond the end of the file: it is truncated or damaged")
}

/// Reads the file meta information; a file without one is taken to be implicit little endian, or explicit if its first
/// element is.
pub(super) fn read_meta(bytes: &[u8]) -> Result<Meta<'_>, Undecodable> {
    let begin = if bytes.get(128..132) == Some(b"DICM") { 132 } else { 0 };
    let mut reader = Reader { bytes, at: begin, is_explicit: true, is_big_endian: false };
    let mut uid = None;
    // Group 2 is explicit little endian in every file.
    while bytes.get(reader.at..reader.at + 2) == Some(&[2, 0]) {
        let (tag, _, length) = reader.header().ok_or_else(truncated)?;
        let value = reader.take(length as usize).ok_or_else(truncated)?;
        if tag == Tag::TRANSFER_SYNTAX {
            uid = Some(text(value));
        }
    }
    let syntax = if let Some(uid) = uid {
        syntax(&uid)?
    } else {
        let is_explicit =
            bytes.get(reader.at + 4..reader.at + 6).is_some_and(|kind| kind.iter().all(u8::is_ascii_uppercase));
        Syntax { is_explicit, is_big_endian: false, is_deflated: false, coding: Coding::Native }
    };
    Ok(Meta { syntax, data_set: &bytes[reader.at..] })
}

/// Transfer syntaxes of PS3.5 annex A and PS3.6 table A-1.
fn syntax(uid: &str) -> Result<Syntax, Undecodable> {
    let plain = Syntax { is_explicit: true, is_big_endian: false, is_deflated: false, coding: Coding::Native };
    let refuse = |name: &str| Err(unsupported(format!("the DICOM pixels are compressed by {name}, which is not read")));
    let Some(kind) = uid.strip_prefix("1.2.840.10008.1.2") else {
        return refuse(&format!("the private transfer syntax {uid}"));
    };
    match kind {
        "" => Ok(Syntax { is_explicit: false, ..plain }),
        ".1" => Ok(plain),
        ".1.99" => Ok(Syntax { is_deflated: true, ..plain }),
        ".2" => Ok(Syntax { is_big_endian: true, ..plain }),
        ".5" => Ok(Syntax { coding: Coding::RunLength, ..plain }),
        ".4.50" | ".4.51" | ".4.53" | ".4.55" | ".4.57" | ".4.70" => Ok(Syntax { coding: Coding::Jpeg, ..plain }),
        ".4.80" | ".4.81" => refuse("JPEG-LS"),
        ".4.90" | ".4.91" | ".4.92" | ".4.93" => refuse("JPEG 2000"),
        ".4.110" | ".4.111" | ".4.112" => refuse("JPEG XL"),
        _ if kind.starts_with(".4.20") => refuse("High-Throughput JPEG 2000"),
        _ if kind.starts_with(".4.10") => refuse("MPEG video"),
        _ => refuse(&format!("the transfer syntax {uid}")),
    }
}

/// A deflated data set, up to the limit of memory.
pub(super) fn inflate(packed: &[u8], limits: &Limits) -> Result<Vec<u8>, Undecodable> {
    let mut bytes = Vec::new();
    let read = DeflateDecoder::new(packed).take(limits.max_bytes).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(format!("the deflated DICOM data set is damaged: {error}")))?;
    if bytes.len() as u64 >= limits.max_bytes {
        let limit = limits.max_bytes;
        return Err(unsupported(format!(
            "the deflated DICOM data set is larger than image.limits.max-bytes = {limit}"
        )));
    }
    Ok(bytes)
}

impl<'a> Elements<'a> {
    /// Reads a data set up to its pixel data; the elements after it do not matter.
    pub(super) fn read(bytes: &'a [u8], syntax: Syntax) -> Result<Self, Undecodable> {
        let (mut elements, pixels) = Self::before_pixels(bytes, syntax)?;
        if let Some((mut reader, length)) = pixels {
            elements.pixels = Some(pixel_data(&mut reader, length)?);
        }
        Ok(elements)
    }

    /// The elements before the pixel data, of which `bytes` need not hold any; `None` if `bytes` end before them.
    pub(super) fn read_header(bytes: &'a [u8], syntax: Syntax) -> Result<Option<Self>, Undecodable> {
        let (elements, pixels) = Self::before_pixels(bytes, syntax)?;
        Ok(pixels.is_some().then_some(elements))
    }

    /// Elements up to the pixel data, and the reader at its first byte with its declared length.
    fn before_pixels(bytes: &'a [u8], syntax: Syntax) -> Result<(Self, Option<(Reader<'a>, u32)>), Undecodable> {
        let Syntax { is_explicit, is_big_endian, .. } = syntax;
        let mut reader = Reader { bytes, at: 0, is_explicit, is_big_endian };
        let mut elements = Self { values: Vec::new(), pixels: None, is_big_endian };
        // Sequences and items of undefined length that are open; those of a known length are skipped.
        let mut n_open = 0_usize;
        while reader.at < bytes.len() {
            let (tag, is_sequence, length) = reader.header().ok_or_else(truncated)?;
            match tag {
                Tag::ITEM if length == UNDEFINED => n_open += 1,
                Tag::ITEM_END | Tag::SEQUENCE_END => n_open = n_open.saturating_sub(1),
                Tag::PIXEL_DATA if n_open == 0 => {
                    return Ok((elements, Some((reader, length))));
                }
                _ if length == UNDEFINED => {
                    n_open += 1;
                    if n_open == 1 {
                        elements.values.push((tag, &[]));
                    }
                }
                _ => {
                    let value = reader.take(length as usize).ok_or_else(truncated)?;
                    if n_open == 0 {
                        elements.values.push((tag, if is_sequence { &[] } else { value }));
                    }
                }
            }
        }
        Ok((elements, None))
    }

    fn value(&self, tag: Tag) -> Option<&'a [u8]> {
        self.values.iter().find(|(other, _)| *other == tag).map(|(_, value)| *value)
    }

    pub(super) fn has(&self, tag: Tag) -> bool {
        self.value(tag).is_some()
    }

    /// The first 16-bit number of an element.
    pub(super) fn number(&self, tag: Tag) -> Option<u32> {
        let bytes = *self.value(tag)?.first_chunk()?;
        Some(u32::from(if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }))
    }

    /// The first value of a text, without padding; none if it is empty.
    pub(super) fn text(&self, tag: Tag) -> Option<String> {
        self.texts(tag).into_iter().next().filter(|first| !first.is_empty())
    }

    /// All values of a text, without padding; none if the element is absent or empty.
    pub(super) fn texts(&self, tag: Tag) -> Vec<String> {
        let text = self.value(tag).map(text).filter(|text| !text.is_empty());
        text.map(|text| text.split('\\').map(|part| part.trim().to_owned()).collect()).unwrap_or_default()
    }

    /// The first value of a decimal string, none if it is absent or empty.
    pub(super) fn decimal(&self, tag: Tag, name: &str) -> Result<Option<f64>, Undecodable> {
        self.text(tag).map(|text| decimal(&text, name)).transpose()
    }

    /// The `N` values of a decimal string, none if the element is absent or empty.
    pub(super) fn decimals<const N: usize>(&self, tag: Tag, name: &str) -> Result<Option<[f64; N]>, Undecodable> {
        let texts = self.texts(tag);
        if texts.is_empty() {
            return Ok(None);
        }
        let values = texts.iter().map(|text| decimal(text, name)).collect::<Result<Vec<f64>, _>>()?;
        let n = values.len();
        let values = values.try_into().ok();
        values
            .map(Some)
            .ok_or_else(|| unreadable(format!("the number of values of the DICOM {name} is {n}, expected {N}")))
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_matches(|letter: char| letter == '\0' || letter == ' ').to_owned()
}

fn decimal(text: &str, name: &str) -> Result<f64, Undecodable> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
    value.ok_or_else(|| unreadable(format!("the DICOM {name} is `{text}`, expected a finite number")))
}

fn pixel_data<'a>(reader: &mut Reader<'a>, length: u32) -> Result<PixelData<'a>, Undecodable> {
    if length != UNDEFINED {
        let left = reader.bytes.len() - reader.at;
        if length as usize > left {
            return Err(unreadable(format!(
                "the DICOM pixel data has {left} bytes, expected {length}: it is truncated"
            )));
        }
        return reader.take(length as usize).map(PixelData::Native).ok_or_else(truncated);
    }
    let mut items = Vec::new();
    loop {
        match reader.header().ok_or_else(truncated)? {
            (Tag::ITEM, _, length) => items.push(reader.take(length as usize).ok_or_else(truncated)?),
            (Tag::SEQUENCE_END, ..) => break,
            _ => return Err(unreadable("the DICOM pixel data holds an item that is not a fragment")),
        }
    }
    if items.is_empty() {
        return Err(unreadable("the DICOM pixel data has no offset table"));
    }
    items.remove(0);
    Ok(PixelData::Fragments(items))
}
