//! All images of a cohort in one memory-mapped file: decoded once, read without copies by every later run.
//!
//! The name of the file is a fingerprint of the settings and of the path, size and modification time of every image, so
//! a changed image or setting gives another file and an unchanged cohort is never decoded again. Images that cannot be
//! decoded are remembered with their reasons. The file is written to a temporary name and renamed.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

use fairtte_metrics::SampleId;
use memmap2::Mmap;
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};

use super::store_file::{Element, Index, PIXELS_BEGIN, StoreWriter, read_index};
use super::{ImageConfig, Pixels, Undecodable, mmap, prepare_image};
use crate::cohort::{Cohort, Sample};
use crate::exclusions::{Exclusion, Exclusions};
use crate::{DataError, write_atomically};

/// Counts up when decoding, scaling or resizing changes, so that stores of an older program are not taken for new.
const PREPARATION_VERSION: u32 = 1;

/// Images decoded between two writes; bounds memory to this many images in their prepared size.
const CHUNK: usize = 32;

/// Decoded and resized images of a cohort, found by sample.
#[derive(Debug)]
pub struct ImageStore {
    path: PathBuf,
    map: Mmap,
    index: Index,
    positions: HashMap<SampleId, usize>,
    n_channels: usize,
    n_image_bytes: usize,
    pixel_hash: [u8; 32],
}

/// The pixels of one image as they are stored; intensities in \[0, 1\] are value / 255 or value / 65535.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StoredPixels<'a> {
    /// A picture, `[channels, height, width]`.
    Picture(&'a [u8]),
    /// A volume, `[depth, height, width]`.
    Volume(&'a [u16]),
}

impl ImageStore {
    /// Opens the store of `cohort` in `cache_dir`, or decodes all its images in parallel and writes it.
    ///
    /// Also returns the samples whose images cannot be decoded, with their reasons; pass them to
    /// [`Cohort::without`]. `on_progress` is called with (images decoded, images in all) from several threads, and never
    /// if the store already exists. Call it with the cohort as labelled, before `without`: the excluded samples are part
    /// of the fingerprint.
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`], [`DataError::NoSamples`] if not one image can be decoded, [`DataError::Read`] and
    /// [`DataError::Write`] for the store file (disk full). A damaged store is written again.
    ///
    /// # Cost
    /// One decoding per image, once; then one `stat` per image and a memory map.
    pub fn open_or_build(
        cohort: &Cohort,
        config: &ImageConfig,
        cache_dir: &Path,
        on_progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<(Self, Vec<Exclusion>), DataError> {
        config.check()?;
        let key = fingerprint(cohort, config);
        let path = cache_dir.join(format!("images-{}.store", &key[..16]));
        let existing = if path.exists() { Self::open(&path, config, &key) } else { Ok(None) };
        let store = match existing {
            Ok(Some(store)) => store,
            Ok(None) | Err(DataError::DamagedFile { .. }) => {
                build(cohort, config, &path, &key, on_progress)?;
                let built = Self::open(&path, config, &key)?;
                built.ok_or_else(|| DataError::damaged(&path, "it was replaced while it was opened"))?
            }
            Err(error) => return Err(error),
        };
        let exclusions = store.index.exclusions.clone();
        Ok((store, exclusions))
    }

    /// `None` if the file is the store of something else whose fingerprint begins alike.
    fn open(path: &Path, config: &ImageConfig, key: &str) -> Result<Option<Self>, DataError> {
        let file = File::open(path).map_err(|source| DataError::read(path, source))?;
        let map = mmap::map(&file).map_err(|source| DataError::read(path, source))?;
        let (index, pixel_hash) = read_index(&map).map_err(|detail| DataError::damaged(path, detail))?;
        if index.key != key {
            return Ok(None);
        }
        let positions = index.samples.iter().cloned().zip(0..).collect();
        let n_image_bytes = index.n_image_bytes();
        let n_image_bytes = n_image_bytes.ok_or_else(|| DataError::damaged(path, "an image has an impossible size"))?;
        let n_channels = config.channels;
        Ok(Some(Self { path: path.to_owned(), map, index, positions, n_channels, n_image_bytes, pixel_hash }))
    }

    /// The store file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of images.
    pub fn n(&self) -> usize {
        self.index.samples.len()
    }

    /// Channels of an image as a model sees it: 1 or 3.
    pub fn n_channels(&self) -> usize {
        self.n_channels
    }

    /// Channels as stored; a volume is stored once and repeated for a model that wants 3 channels.
    pub(crate) fn n_stored_channels(&self) -> usize {
        self.index.shape[0]
    }

    /// `[height, width]` or `[depth, height, width]`.
    pub fn size(&self) -> &[usize] {
        &self.index.shape[1..]
    }

    /// Position of a sample in the store.
    pub fn position(&self, sample: &SampleId) -> Option<usize> {
        self.positions.get(sample).copied()
    }

    /// The pixels at `position`.
    ///
    /// # Panics
    /// If `position` is not below [`n`](Self::n).
    pub fn pixels(&self, position: usize) -> StoredPixels<'_> {
        let begin = PIXELS_BEGIN + position * self.n_image_bytes;
        assert!(position < self.n(), "image {position} of a store of {}", self.n());
        let bytes = &self.map[begin..begin + self.n_image_bytes];
        match self.index.element {
            Element::U8 => StoredPixels::Picture(bytes),
            Element::U16 => StoredPixels::Volume(bytemuck::cast_slice(bytes)),
        }
    }

    /// Reads all pixels and compares their checksum; for a store that came from elsewhere.
    ///
    /// # Errors
    /// [`DataError::DamagedFile`] if it differs.
    pub fn verify(&self) -> Result<(), DataError> {
        let pixels = &self.map[PIXELS_BEGIN..PIXELS_BEGIN + self.n_image_bytes * self.n()];
        if blake3::hash(pixels).as_bytes() == &self.pixel_hash {
            return Ok(());
        }
        Err(DataError::damaged(&self.path, "the pixels do not have their checksum"))
    }
}

/// Fingerprint of the settings and of what the file system says about every image.
fn fingerprint(cohort: &Cohort, config: &ImageConfig) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(&PREPARATION_VERSION.to_le_bytes());
    add(&1_u16.to_ne_bytes());
    add(format!("{:?} {}", config.size, config.channels).as_bytes());
    for sample in &cohort.samples {
        add(sample.sample_id.as_str().as_bytes());
        add(sample.image.to_string_lossy().as_bytes());
        if let Ok(metadata) = std::fs::metadata(&sample.image) {
            let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            add(&metadata.len().to_le_bytes());
            add(&modified.map_or(0, |age| age.as_nanos()).to_le_bytes());
        } else {
            add(b"missing");
        }
    }
    hasher.finalize().to_hex().to_string()
}

fn build(
    cohort: &Cohort,
    config: &ImageConfig,
    path: &Path,
    key: &str,
    on_progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<(), DataError> {
    let (element, n_stored_channels) =
        if config.is_volume() { (Element::U16, 1) } else { (Element::U8, config.channels) };
    let mut index = Index {
        key: key.to_owned(),
        element,
        shape: std::iter::once(n_stored_channels).chain(config.size.iter().copied()).collect(),
        samples: Vec::new(),
        exclusions: Vec::new(),
    };
    let n_done = AtomicUsize::new(0);
    let prepare = |sample: &Sample| {
        let prepared = prepare_image(&sample.image, config);
        on_progress(n_done.fetch_add(1, Ordering::Relaxed) + 1, cohort.n());
        prepared
    };
    let written = write_atomically(path, |writer| {
        let mut store = StoreWriter::new(writer)?;
        for chunk in cohort.samples.chunks(CHUNK) {
            let prepared: Vec<_> = chunk.par_iter().map(prepare).collect();
            for (sample, prepared) in chunk.iter().zip(prepared) {
                match prepared {
                    Ok(Pixels::Picture(pixels)) => store.write_image(&pixels)?,
                    Ok(Pixels::Volume(pixels)) => store.write_image(bytemuck::cast_slice(&pixels))?,
                    Err(undecodable) => {
                        index.exclusions.push(exclusion(sample, &undecodable));
                        continue;
                    }
                }
                index.samples.push(sample.sample_id.clone());
            }
        }
        if index.samples.is_empty() {
            // Ends the write, so that no store without images is left behind; the true reason is told below.
            return Err(std::io::Error::other("not one image can be decoded"));
        }
        store.finish(&index)
    });
    if index.samples.is_empty() {
        let mut exclusions = Exclusions::new(cohort.n());
        exclusions.extend(index.exclusions);
        cohort.without(exclusions.list()).require_samples("after decoding the images", &exclusions)?;
    }
    written
}

fn exclusion(sample: &Sample, undecodable: &Undecodable) -> Exclusion {
    Exclusion {
        sample_id: sample.sample_id.clone(),
        reason: undecodable.reason,
        source: format!("{}: {}", sample.image.display(), undecodable.detail),
    }
}
