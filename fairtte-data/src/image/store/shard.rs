//! Layout of a shard file. All numbers are little endian, whatever the machine.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `FTTESHD2` |
//! | 8..40 | length of the header, begin of the pixels, begin and length of the footer, 64 bits each |
//! | 40..72 | BLAKE3 hash of bytes 0..40, the header and the footer |
//! | 72.. | header: [`ShardHeader`] in JSON |
//! | multiple of 4096 | pixels of the images, one after the other |
//! | at the end | footer: [`ShardFooter`] in JSON, with the BLAKE3 hash of every image |
//!
//! In numpy: `np.memmap(path, "<u2", "r", begin, (n, *shape))` for volumes, `"u1"` for pictures.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fairtte_metrics::SampleId;
use memmap2::Mmap;
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};
use serde::{Deserialize, Serialize};

use super::mmap;
use super::plan::Layout;
use crate::cohort::Exclusion;
use crate::{DataError, write_atomically};

const MAGIC: &[u8; 8] = b"FTTESHD2";
const NUMBERS_END: usize = 40;
const PRELUDE: usize = 72;
/// A page of memory: pixels in a map are then aligned for any element.
const PAGE: usize = 4096;

/// The header, known before the first image is decoded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct ShardHeader {
    /// Fingerprint of settings and image files.
    pub key: String,
    pub layout: Layout,
}

/// One stored image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredImage {
    pub sample: SampleId,
    /// Hash of the pixels, in hexadecimal digits.
    pub blake3: String,
}

/// The results of decoding the image files, in the order of the pixels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShardFooter {
    pub images: Vec<StoredImage>,
    pub exclusions: Vec<Exclusion>,
}

/// Writes a shard; `images` are the pixels of `footer.images`. The hash identifies header and footer.
pub(super) fn write_shard(
    path: &Path,
    header: &ShardHeader,
    footer: &ShardFooter,
    images: &[Vec<u8>],
) -> Result<(), DataError> {
    write_atomically(path, |writer| {
        let header = serde_json::to_vec(header).map_err(io::Error::other)?;
        let footer = serde_json::to_vec(footer).map_err(io::Error::other)?;
        let begin = (PRELUDE + header.len()).next_multiple_of(PAGE);
        let end = begin + images.iter().map(Vec::len).sum::<usize>();
        let mut prelude = MAGIC.to_vec();
        for number in [header.len(), begin, end, footer.len()] {
            prelude.extend((number as u64).to_le_bytes());
        }
        let digest = digest(&prelude, &header, &footer);
        writer.write_all(&prelude)?;
        writer.write_all(digest.as_bytes())?;
        writer.write_all(&header)?;
        writer.write_all(&vec![0; begin - PRELUDE - header.len()])?;
        images.iter().try_for_each(|image| writer.write_all(image))?;
        writer.write_all(&footer)
    })
}

fn digest(numbers: &[u8], header: &[u8], footer: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(numbers).update(header).update(footer);
    hasher.finalize()
}

/// A complete shard in memory.
#[derive(Debug)]
pub(super) struct Shard {
    pub path: PathBuf,
    pub footer: ShardFooter,
    map: Mmap,
    begin: usize,
    n_image_bytes: usize,
}

impl Shard {
    /// Opens the shard of `header`; checks lengths, header and footer, but reads no pixel.
    ///
    /// # Errors
    /// [`DataError::DamagedFile`], also for a shard with another header, [`DataError::Read`].
    pub(super) fn open(path: &Path, header: &ShardHeader) -> Result<Self, DataError> {
        let file = File::open(path).map_err(|source| DataError::read(path, source))?;
        let map = mmap::map(&file).map_err(|source| DataError::read(path, source))?;
        let n_image_bytes = header.layout.n_image_bytes();
        let (begin, footer) = read(&map, header).map_err(|detail| DataError::damaged(path, detail))?;
        Ok(Self { path: path.to_owned(), footer, map, begin, n_image_bytes })
    }

    pub(super) fn n(&self) -> usize {
        self.footer.images.len()
    }

    /// Byte of the file at which the pixels begin.
    pub(super) fn pixels_begin(&self) -> usize {
        self.begin
    }

    /// The bytes of the image at `slot`, which is below [`n`](Self::n).
    pub(super) fn image(&self, slot: usize) -> &[u8] {
        let begin = self.begin + slot * self.n_image_bytes;
        &self.map[begin..begin + self.n_image_bytes]
    }

    /// Whether the pixels at `slot` match the checksum in the footer. Reads them all.
    pub(super) fn is_intact(&self, slot: usize) -> bool {
        blake3::hash(self.image(slot)).to_hex().as_str() == self.footer.images[slot].blake3
    }

    /// [`is_intact`](Self::is_intact) of every image, on all cores.
    pub(super) fn is_all_intact(&self) -> bool {
        (0..self.n()).into_par_iter().all(|slot| self.is_intact(slot))
    }
}

/// Begin of the pixels, and the footer; the error is a sentence on the damage.
fn read(file: &[u8], header: &ShardHeader) -> Result<(usize, ShardFooter), String> {
    let prelude = file.first_chunk::<PRELUDE>().ok_or("the file is shorter than its header")?;
    if &prelude[..8] != MAGIC {
        return Err("the file does not begin like a shard of this version".to_owned());
    }
    let number = |at: usize| -> Result<usize, String> {
        let bytes = std::array::from_fn(|i| prelude[at + i]);
        usize::try_from(u64::from_le_bytes(bytes)).map_err(|error| error.to_string())
    };
    let (header_length, begin, end, footer_length) = (number(8)?, number(16)?, number(24)?, number(32)?);
    let cut = || "the file does not have its full length".to_owned();
    let stored_header = PRELUDE.checked_add(header_length).and_then(|end| file.get(PRELUDE..end)).ok_or_else(cut)?;
    let footer = end.checked_add(footer_length).filter(|end| *end == file.len());
    let footer = footer.and_then(|file_end| file.get(end..file_end)).ok_or_else(cut)?;
    if digest(&prelude[..NUMBERS_END], stored_header, footer).as_bytes() != &prelude[NUMBERS_END..] {
        return Err("header and footer do not have their checksum".to_owned());
    }
    let stored_header: ShardHeader = serde_json::from_slice(stored_header).map_err(|error| error.to_string())?;
    if &stored_header != header {
        return Err("the shard was made from other settings or image files".to_owned());
    }
    let footer: ShardFooter = serde_json::from_slice(footer).map_err(|error| error.to_string())?;
    let n_bytes = footer.images.len().checked_mul(header.layout.n_image_bytes());
    if n_bytes.and_then(|n| n.checked_add(begin)) != Some(end) {
        return Err("the number of pixels does not fit the footer".to_owned());
    }
    Ok((begin, footer))
}
