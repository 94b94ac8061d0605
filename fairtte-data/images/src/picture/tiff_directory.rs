//! The directories of a TIFF file: properties of its pictures, read before decoding.
//!
//! Source: TIFF 6.0 (Adobe 1992), section 2 and appendix A; `BigTIFF` has 64-bit counts and offsets.

use super::{unreadable, unsupported};
use crate::Undecodable;

/// Maximum number of pages read; a file with more is refused anyway, and a directory may point back at itself.
const MAX_PAGES: usize = 1000;

/// One picture of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub width: u64,
    pub height: u64,
    pub bits_per_sample: Vec<u64>,
    pub n_samples: u64,
    /// 1 unsigned, 2 signed, 3 floating point.
    pub sample_format: u64,
    pub compression: u64,
    /// 0 gray with white as 0, 1 gray, 2 RGB, 3 palette, 5 CMYK, 6 YCbCr.
    pub photometric: u64,
    pub orientation: u64,
    /// A smaller version of another page or a mask.
    pub is_auxiliary: bool,
    /// Declared number of compressed bytes.
    pub n_packed_bytes: u64,
    /// Width and height of a tile, or of the picture if it is stored in strips.
    pub tile: [u64; 2],
}

struct File<'a> {
    bytes: &'a [u8],
    is_big_endian: bool,
    is_big_tiff: bool,
}

/// All pages of a TIFF file, the first one first.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Page>, Undecodable> {
    let truncated = || unreadable("a TIFF directory lies outside of the file: it is truncated");
    let mut file = File { bytes, is_big_endian: bytes.first() == Some(&b'M'), is_big_tiff: false };
    file.is_big_tiff = file.number(2, 2) == Some(43);
    let mut next = if file.is_big_tiff { file.number(8, 8) } else { file.number(4, 4) }.ok_or_else(truncated)?;
    let mut pages = Vec::new();
    while next != 0 {
        if pages.len() == MAX_PAGES {
            return Err(unsupported(format!("the TIFF file has more than {MAX_PAGES} pages, expected one")));
        }
        let (tags, following) = file.directory(next, pages.is_empty()).ok_or_else(truncated)?;
        pages.push(tags.page()?);
        next = following;
    }
    if pages.is_empty() {
        return Err(unreadable("the TIFF file has no page"));
    }
    Ok(pages)
}

impl File<'_> {
    /// `size` bytes at `at` as a number.
    fn number(&self, at: u64, size: usize) -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(size)?)?;
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(if self.is_big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) })
    }

    /// The tags of the directory at `at`, and the offset of the next directory. Of pages after the first one, only the
    /// tags for their kind (auxiliary or not) and size.
    fn directory(&self, at: u64, is_first: bool) -> Option<(Tags, u64)> {
        let (count_size, entry_size, offset_size) = if self.is_big_tiff { (8, 20, 8) } else { (2, 12, 4) };
        let n_entries = self.number(at, count_size)?;
        if n_entries > u64::from(u16::MAX) {
            return None;
        }
        let first = at.checked_add(count_size as u64)?;
        let mut tags = Tags::default();
        for index in 0..n_entries {
            let entry = first + index * entry_size;
            let tag = self.number(entry, 2)?;
            if let Some(place) = tags.place(tag).filter(|_| is_first || tag <= 257) {
                *place = self.values(entry, offset_size)?;
            }
        }
        let following = self.number(first + n_entries * entry_size, offset_size)?;
        Some((tags, following))
    }

    /// The whole numbers of an entry; none if it is of another kind. Samples have at most 4, strips any number.
    fn values(&self, entry: u64, offset_size: usize) -> Option<Vec<u64>> {
        let size = match self.number(entry + 2, 2)? {
            1 | 6 => 1,
            3 | 8 => 2,
            4 | 9 | 13 => 4,
            16..=18 => 8,
            _ => return Some(Vec::new()),
        };
        let count = self.number(entry + 4, offset_size)?;
        let inline = entry + 4 + offset_size as u64;
        let n_bytes = count.checked_mul(size as u64)?;
        let begin = if n_bytes <= offset_size as u64 { inline } else { self.number(inline, offset_size)? };
        // A count of millions in a short file must not allocate memory.
        if begin.checked_add(n_bytes)? > self.bytes.len() as u64 {
            return None;
        }
        (0..count).map(|index| self.number(begin + index * size as u64, size)).collect()
    }
}

/// The values of the tags that matter here.
#[derive(Default)]
struct Tags {
    subfile: Vec<u64>,
    width: Vec<u64>,
    height: Vec<u64>,
    bits: Vec<u64>,
    compression: Vec<u64>,
    photometric: Vec<u64>,
    orientation: Vec<u64>,
    n_samples: Vec<u64>,
    sample_format: Vec<u64>,
    byte_counts: Vec<u64>,
    tile_width: Vec<u64>,
    tile_height: Vec<u64>,
}

impl Tags {
    fn place(&mut self, tag: u64) -> Option<&mut Vec<u64>> {
        Some(match tag {
            254 => &mut self.subfile,
            256 => &mut self.width,
            257 => &mut self.height,
            258 => &mut self.bits,
            259 => &mut self.compression,
            262 => &mut self.photometric,
            274 => &mut self.orientation,
            277 => &mut self.n_samples,
            279 | 325 => &mut self.byte_counts,
            322 => &mut self.tile_width,
            323 => &mut self.tile_height,
            339 => &mut self.sample_format,
            _ => return None,
        })
    }

    fn page(self) -> Result<Page, Undecodable> {
        let first = |values: &[u64]| values.first().copied();
        let (Some(width), Some(height)) = (first(&self.width), first(&self.height)) else {
            return Err(unreadable("a TIFF page has no width and height"));
        };
        let tile = [first(&self.tile_width).unwrap_or(width), first(&self.tile_height).unwrap_or(height)];
        Ok(Page {
            width,
            height,
            bits_per_sample: if self.bits.is_empty() { vec![1] } else { self.bits },
            n_samples: first(&self.n_samples).unwrap_or(1),
            // The largest kind, if the channels differ.
            sample_format: self.sample_format.into_iter().max().unwrap_or(1),
            compression: first(&self.compression).unwrap_or(1),
            photometric: first(&self.photometric).unwrap_or(1),
            orientation: first(&self.orientation).unwrap_or(1),
            is_auxiliary: first(&self.subfile).unwrap_or(0) & 0b101 != 0,
            n_packed_bytes: self.byte_counts.iter().fold(0, |sum, count| sum.saturating_add(*count)),
            tile,
        })
    }
}
