//! Layout of a store file: a fixed header, the pixels of all images one after the other, and an index in JSON.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `FTTESTR1` |
//! | 8..16, 16..24 | begin and length of the index, 64-bit little endian |
//! | 24..56 | BLAKE3 hash of the pixels |
//! | 56..88 | BLAKE3 hash of the index |
//! | 128.. | pixels, 8-bit, or 16-bit in the byte order of the machine |
//! | index | [`Index`] |

use std::io::{self, SeekFrom, Write};

use fairtte_metrics::SampleId;
use serde::{Deserialize, Serialize};

use crate::Exclusion;

const MAGIC: &[u8; 8] = b"FTTESTR1";
pub(super) const PIXELS_BEGIN: usize = 128;

/// How a pixel is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Element {
    /// Pictures: intensity = value / 255.
    U8,
    /// Volumes: intensity = value / 65535.
    U16,
}

impl Element {
    pub(super) fn n_bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
        }
    }
}

/// What stands in the store, in the order of the pixels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Index {
    /// Fingerprint of settings and files.
    pub key: String,
    pub element: Element,
    /// `[channels, height, width]` or `[1, depth, height, width]` as stored.
    pub shape: Vec<usize>,
    pub samples: Vec<SampleId>,
    pub exclusions: Vec<Exclusion>,
}

impl Index {
    /// Bytes of one image; `None` if they do not fit into memory addresses.
    pub(super) fn n_image_bytes(&self) -> Option<usize> {
        self.shape.iter().try_fold(self.element.n_bytes(), |product, extent| product.checked_mul(*extent))
    }
}

/// Writes the pixels as they come and the index and header at the end.
pub(super) struct StoreWriter<'w, W> {
    writer: &'w mut W,
    hasher: blake3::Hasher,
    n_pixel_bytes: usize,
}

impl<'w, W: Write + io::Seek> StoreWriter<'w, W> {
    pub(super) fn new(writer: &'w mut W) -> io::Result<Self> {
        writer.write_all(&[0; PIXELS_BEGIN])?;
        Ok(Self { writer, hasher: blake3::Hasher::new(), n_pixel_bytes: 0 })
    }

    pub(super) fn write_image(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.n_pixel_bytes += bytes.len();
        self.writer.write_all(bytes)
    }

    pub(super) fn finish(self, index: &Index) -> io::Result<()> {
        let json = serde_json::to_vec(index).map_err(io::Error::other)?;
        self.writer.write_all(&json)?;
        let begin = (PIXELS_BEGIN + self.n_pixel_bytes) as u64;
        let mut header = Vec::with_capacity(PIXELS_BEGIN);
        header.extend(MAGIC);
        header.extend(begin.to_le_bytes());
        header.extend((json.len() as u64).to_le_bytes());
        header.extend(self.hasher.finalize().as_bytes());
        header.extend(blake3::hash(&json).as_bytes());
        self.writer.seek(SeekFrom::Start(0))?;
        self.writer.write_all(&header)
    }
}

/// The index of a store file, and the hash of its pixels; the sentence of an error says what is damaged.
pub(super) fn read_index(file: &[u8]) -> Result<(Index, [u8; 32]), String> {
    let header = file.first_chunk::<PIXELS_BEGIN>().ok_or("the file is shorter than its header")?;
    if &header[..8] != MAGIC {
        return Err("the file does not begin like an image store of this version".to_owned());
    }
    let number = |at: usize| -> Option<usize> {
        let bytes = header.get(at..at + 8)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let hash = |at: usize| -> [u8; 32] { std::array::from_fn(|i| header[at + i]) };
    let span = number(8).zip(number(16)).and_then(|(begin, length)| Some((begin, begin.checked_add(length)?)));
    let (begin, end) = span.ok_or("the header holds an impossible size")?;
    let json = file.get(begin..end).filter(|_| end == file.len()).ok_or("the file does not have its full length")?;
    if blake3::hash(json).as_bytes() != &hash(56) {
        return Err("the index does not have its checksum".to_owned());
    }
    let index: Index = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let n_pixel_bytes = index.n_image_bytes().and_then(|n| n.checked_mul(index.samples.len()));
    if n_pixel_bytes.and_then(|n| n.checked_add(PIXELS_BEGIN)) != Some(begin) {
        return Err("the number of pixels does not fit the index".to_owned());
    }
    Ok((index, hash(24)))
}
