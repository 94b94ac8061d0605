//! The assignment of images to shards, and the fingerprints that show whether a stored shard is still valid.
//!
//! Images are taken in the order of their paths, so folders are read sequentially, and the order of the cohort's rows
//! does not matter. A shard's fingerprint covers the settings, the recipe (decoder, filter, crate versions) and
//! identity, path, size and modification time of each of its images (of a series: of each slice; of a pair of header and
//! voxels: of both); the fingerprint of the store covers its shards. Images added after all others leave the full shards
//! before them unchanged; an image added in the middle moves the borders of all later shards, which are then written
//! again.

use std::fs::Metadata;
use std::path::Path;
use std::time::UNIX_EPOCH;

use fairtte_images::{halves_of_pair, slice_files};
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use serde::{Deserialize, Serialize};

use super::StoreOptions;
use crate::cohort::{Cohort, Sample};
use crate::image::{ImageConfig, recipe};

/// Incremented when the layout of the files changes.
const LAYOUT_VERSION: u32 = 2;

/// Changed when TIFF or DICOM pictures come out differently, or are refused from then on, although no version of the recipe
/// says so. Stores of JPEG and PNG files alone stay valid.
const TIFF_AND_DICOM: &[u8] = b"2: thumbnails and tables of gray levels are refused";

/// Maximum bytes of pixels of a shard (but always one image), and maximum number of its images: the work lost when a
/// process is killed, and the memory held until the shard is written.
const MOST_SHARD_BYTES: usize = 64 << 20;
const MOST_SHARD_IMAGES: usize = 512;

/// How a pixel is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Element {
    /// Pictures: intensity = value / 255.
    U8,
    /// Volumes: intensity = value / 65535, little endian.
    U16,
}

/// The properties common to all shards of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Layout {
    pub element: Element,
    /// `[channels, height, width]` or `[1, depth, height, width]` as stored.
    pub shape: Vec<usize>,
    /// Image files per shard, except for the last one.
    pub images_per_shard: usize,
    /// Decoder, scaling rule, filter and crate versions.
    pub recipe: String,
}

impl Layout {
    pub(super) fn new(config: &ImageConfig, options: &StoreOptions) -> Self {
        let (element, n_channels) = if config.is_volume() { (Element::U16, 1) } else { (Element::U8, config.channels) };
        let shape: Vec<usize> = std::iter::once(n_channels).chain(config.size.iter().copied()).collect();
        let mut layout = Self { element, shape, images_per_shard: 1, recipe: recipe(config) };
        let fitting = (MOST_SHARD_BYTES / layout.n_image_bytes()).clamp(1, MOST_SHARD_IMAGES);
        layout.images_per_shard = options.images_per_shard.unwrap_or(fitting).max(1);
        layout
    }

    /// Bytes of one image; sides are at most 4096, so the product fits 64 bits.
    pub(super) fn n_image_bytes(&self) -> usize {
        let n_bytes = match self.element {
            Element::U8 => 1,
            Element::U16 => 2,
        };
        self.shape.iter().fold(n_bytes, |product: usize, extent| product.saturating_mul(*extent))
    }
}

/// One planned shard: its fingerprint and the rows of the cohort whose images it holds.
#[derive(Clone, Debug)]
pub(super) struct ShardPlan {
    pub number: usize,
    pub key: String,
    pub rows: Vec<usize>,
}

impl ShardPlan {
    pub(super) fn file_name(&self) -> String {
        format!("shard-{:05}.bin", self.number)
    }
}

/// All shards of a store.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Fingerprint of the store.
    pub key: String,
    pub layout: Layout,
    pub shards: Vec<ShardPlan>,
}

impl Plan {
    pub(super) fn new(cohort: &Cohort, config: &ImageConfig, options: &StoreOptions) -> Self {
        let layout = Layout::new(config, options);
        let mut rows = cohort.all_rows();
        rows.sort_by_key(|row| {
            let sample = &cohort.samples[*row];
            (&sample.image, &sample.sample_id)
        });
        let print = |row: &usize| file_print(&cohort.samples[*row], config);
        let prints: Vec<blake3::Hash> = rows.par_iter().map(print).collect();
        let common = common_print(config, &layout);
        let shards = rows.chunks(layout.images_per_shard).zip(prints.chunks(layout.images_per_shard)).enumerate();
        let shards = shards.map(|(number, (rows, prints))| {
            let key = combined(std::iter::once(&common).chain(prints)).to_hex().to_string();
            ShardPlan { number, key, rows: rows.to_vec() }
        });
        let shards: Vec<ShardPlan> = shards.collect();
        let mut hasher = blake3::Hasher::new();
        for shard in &shards {
            add(&mut hasher, shard.key.as_bytes());
        }
        Self { key: hasher.finalize().to_hex().to_string(), layout, shards }
    }

    /// Name of the folder: the beginning of the fingerprint, which the index holds in full.
    pub(super) fn folder_name(&self) -> String {
        format!("images-{}", &self.key[..16])
    }
}

fn common_print(config: &ImageConfig, layout: &Layout) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    add(&mut hasher, &LAYOUT_VERSION.to_le_bytes());
    for text in [serde_json::to_string(config), serde_json::to_string(layout)] {
        add(&mut hasher, text.expect("numbers and texts have a JSON form").as_bytes());
    }
    hasher.finalize()
}

/// The metadata of one image in the file system.
fn file_print(sample: &Sample, config: &ImageConfig) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    add(&mut hasher, sample.sample_id.as_str().as_bytes());
    add(&mut hasher, sample.image.as_os_str().as_encoded_bytes());
    add_file(&mut hasher, &sample.image);
    if config.is_volume() {
        for half in halves_of_pair(&sample.image).into_iter().flatten().filter(|half| *half != sample.image) {
            add_file(&mut hasher, &half);
        }
    } else if may_be_tiff_or_dicom(&sample.image) {
        add(&mut hasher, TIFF_AND_DICOM);
    }
    hasher.finalize()
}

/// By the name: pictures of other endings are JPEG and PNG files in practice.
fn may_be_tiff_or_dicom(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    !["jpg", "jpeg", "png"].iter().any(|other| ending.eq_ignore_ascii_case(other))
}

/// Of a folder: name, size and time of each slice, because rewriting a file changes nothing about its folder.
fn add_file(hasher: &mut blake3::Hasher, path: &Path) {
    let Ok(metadata) = std::fs::metadata(path) else { return add(hasher, b"missing") };
    if metadata.is_dir() {
        let Ok(slices) = slice_files(path) else { return add(hasher, b"unlisted") };
        add(hasher, &(slices.len() as u64).to_le_bytes());
        for slice in slices {
            add(hasher, slice.file_name().unwrap_or_default().as_encoded_bytes());
            match std::fs::metadata(&slice) {
                Ok(metadata) => add_metadata(hasher, &metadata),
                Err(_) => add(hasher, b"missing"),
            }
        }
        return;
    }
    add_metadata(hasher, &metadata);
}

fn add_metadata(hasher: &mut blake3::Hasher, metadata: &Metadata) {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    add(hasher, &metadata.len().to_le_bytes());
    add(hasher, &modified.map_or(0, |age| age.as_nanos()).to_le_bytes());
}

/// Includes the length, so that adjacent texts cannot be confused.
fn add(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

fn combined<'p>(prints: impl Iterator<Item = &'p blake3::Hash>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for print in prints {
        add(&mut hasher, print.as_bytes());
    }
    hasher.finalize()
}
