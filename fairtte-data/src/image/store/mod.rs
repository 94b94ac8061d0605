//! All images of a cohort decoded once, in memory-mapped shards of a fixed number of images.
//!
//! A store is a folder of the cache, named by a fingerprint of the settings, the decoder and the path, size and
//! modification time of every image: a changed image or setting gives a new store, and an unchanged cohort is never
//! decoded again. `shard-00000.bin` and so on hold the pixels, each with header and checksums (see `shard.rs`);
//! `index.json` is written last. Building can be killed at any moment and is resumed at the first missing shard; the
//! bytes are those of an uninterrupted build, whatever the number of threads (see `build.rs`). Images that cannot be
//! decoded are recorded with their reasons and take no space. Files that could not be read are tried again (`build.rs`).

mod build;
mod damage;
mod index;
mod mmap;
mod plan;
mod shard;
#[cfg(all(test, feature = "dicom"))]
#[expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "a failing unwrap is a failing test; made-up values are small"
)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use fairtte_metrics::SampleId;
use serde::Serialize;

pub use damage::DamagedImage;

use self::build::Build;
use self::index::Index;
use self::plan::{Element, Layout, Plan};
use self::shard::Shard;
use super::{ImageConfig, StoredPixels};
use crate::DataError;
use crate::cohort::Cohort;
use crate::cohort::exclusions::Exclusion;

#[cfg(target_endian = "big")]
compile_error!("stored voxels are little endian and read without conversion: big-endian machines are not supported");

/// Decoded and resized images of a cohort, found by sample.
#[derive(Debug)]
pub struct ImageStore {
    folder: PathBuf,
    layout: Layout,
    shards: Vec<Shard>,
    /// Shard and slot of every image.
    places: Vec<(u32, u32)>,
    positions: HashMap<SampleId, usize>,
    n_channels: usize,
}

/// A file of a store: from byte `begin` on the pixels of `n` images, one after the other, little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredShard<'a> {
    /// The file.
    pub path: &'a Path,
    /// Where the pixels begin, a multiple of 4096.
    pub begin: usize,
    /// Images.
    pub n: usize,
}

/// How a store is divided into shards; the defaults suit every cohort.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreOptions {
    /// Image files per shard, >= 1. If not given, as many as fill 64 MiB, but at least 1 and at most 512.
    pub images_per_shard: Option<usize>,
}

/// The size of a store to be built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct StoreEstimate {
    /// The folder.
    pub folder: PathBuf,
    /// Image files.
    pub n_images: usize,
    /// Bytes of pixels if every file can be decoded.
    pub n_bytes: u64,
    /// Shards in all.
    pub n_shards: usize,
    /// Shards that already exist.
    pub n_shards_kept: usize,
    /// Bytes of pixels still to be written.
    pub n_bytes_missing: u64,
}

impl fmt::Display for StoreEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |n_bytes: u64| n_bytes as f64 / 1e6;
        write!(f, "{} images, {:.1} MB, number of shards: {}", self.n_images, megabytes(self.n_bytes), self.n_shards)?;
        if self.n_shards_kept > 0 {
            let missing = megabytes(self.n_bytes_missing);
            write!(f, " (already present: {}, {missing:.1} MB to be written)", self.n_shards_kept)?;
        }
        write!(f, ", {}", self.folder.display())
    }
}

impl ImageStore {
    /// Opens the store of `cohort` in `cache_dir`, or decodes its images in parallel and writes it.
    ///
    /// Also returns the samples whose images cannot be decoded, with their reasons, in the order of the cohort; pass
    /// them to [`Cohort::without`]. Call it with the cohort as labelled, before `without`: the excluded samples are
    /// part of the fingerprint.
    ///
    /// `on_progress` is called with (image files done, image files in all): once before the first image is decoded,
    /// with the files of shards that an earlier, interrupted build left, then after every image, from several threads;
    /// never if the store is complete. Time left is to be estimated from the files done since the first call.
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`], [`DataError::NoSamples`] if no image can be decoded, [`DataError::NoRoom`]
    /// for a full disk, [`DataError::Read`] and [`DataError::Write`] for the files of the store. Damaged shards are
    /// written again.
    ///
    /// # Cost
    /// One decoding per image, once; then one `stat` per image and a memory map. Files that could not be read are tried again
    /// at every call, and where one can be read by now, the images of its shard are decoded again.
    pub fn open_or_build(
        cohort: &Cohort,
        config: &ImageConfig,
        cache_dir: &Path,
        on_progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<(Self, Vec<Exclusion>), DataError> {
        Self::open_or_build_with(cohort, config, cache_dir, &StoreOptions::default(), on_progress)
    }

    /// Like [`open_or_build`](Self::open_or_build), with a given shard size.
    ///
    /// # Errors
    /// See [`open_or_build`](Self::open_or_build).
    pub fn open_or_build_with(
        cohort: &Cohort,
        config: &ImageConfig,
        cache_dir: &Path,
        options: &StoreOptions,
        on_progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<(Self, Vec<Exclusion>), DataError> {
        config.check()?;
        let plan = Plan::new(cohort, config, options);
        let folder = cache_dir.join(plan.folder_name());
        let build = Build { cohort, config, plan: &plan, folder: &folder };
        let existing = if Index::of(&plan).stands_in(&folder) { build.existing() } else { None };
        let shards = match existing {
            Some(shards) => shards,
            None => build.run(on_progress)?,
        };
        let mut exclusions: Vec<Exclusion> =
            shards.iter().flat_map(|shard| shard.footer.exclusions.iter().cloned()).collect();
        if !exclusions.is_empty() {
            let rows: HashMap<&SampleId, usize> =
                cohort.samples.iter().map(|sample| &sample.sample_id).zip(0..).collect();
            exclusions.sort_by_key(|exclusion| rows.get(&exclusion.sample_id).copied());
        }
        Ok((Self::new(folder, plan.layout, shards, config.channels), exclusions))
    }

    /// Estimates what [`open_or_build`](Self::open_or_build) would write.
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`].
    ///
    /// # Cost
    /// One `stat` per image; files that could not be read are tried again.
    pub fn estimate(cohort: &Cohort, config: &ImageConfig, cache_dir: &Path) -> Result<StoreEstimate, DataError> {
        config.check()?;
        let plan = Plan::new(cohort, config, &StoreOptions::default());
        let folder = cache_dir.join(plan.folder_name());
        let build = Build { cohort, config, plan: &plan, folder: &folder };
        let n_image_bytes = plan.layout.n_image_bytes();
        let missing: Vec<_> = plan.shards.iter().filter(|shard| build.settled(shard).is_none()).collect();
        let n_files: usize = missing.iter().map(|shard| shard.rows.len()).sum();
        Ok(StoreEstimate {
            n_images: cohort.n(),
            n_bytes: (cohort.n() * n_image_bytes) as u64,
            n_shards: plan.shards.len(),
            n_shards_kept: plan.shards.len() - missing.len(),
            n_bytes_missing: (n_files * n_image_bytes) as u64,
            folder,
        })
    }

    fn new(folder: PathBuf, layout: Layout, shards: Vec<Shard>, n_channels: usize) -> Self {
        let shard_places = |(number, shard): (u32, &Shard)| (0..).take(shard.n()).map(move |slot| (number, slot));
        let places: Vec<(u32, u32)> = (0..).zip(&shards).flat_map(shard_places).collect();
        let images = shards.iter().flat_map(|shard| &shard.footer.images);
        let positions = images.map(|image| image.sample.clone()).zip(0..).collect();
        Self { folder, layout, shards, places, positions, n_channels }
    }

    /// The folder of the store.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Number of images.
    pub fn n(&self) -> usize {
        self.places.len()
    }

    /// A hash of the samples and the checksums of their pixels: the same for the same pixels in another folder or
    /// decoded again.
    pub fn fingerprint(&self) -> String {
        let images = self.shards.iter().flat_map(|shard| &shard.footer.images);
        let mut of_samples: Vec<_> = images.map(|image| (&image.sample, &image.blake3)).collect();
        of_samples.sort();
        let mut hasher = blake3::Hasher::new();
        for (sample, pixels) in of_samples {
            let name = sample.as_str().as_bytes();
            hasher.update(&(name.len() as u64).to_le_bytes()).update(name).update(pixels.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// BLAKE3 of the stored pixels of every image, 64 hexadecimal digits each, with its sample. Two images with the same
    /// hash give a model the same input, also if their files differ.
    pub fn pixel_hashes(&self) -> impl Iterator<Item = (&SampleId, &str)> {
        self.shards.iter().flat_map(|shard| &shard.footer.images).map(|image| (&image.sample, image.blake3.as_str()))
    }

    /// Channels of an image as a model sees it: 1 or 3.
    pub fn n_channels(&self) -> usize {
        self.n_channels
    }

    /// Channels as stored; a volume is stored once and repeated for a model that wants 3 channels.
    pub(crate) fn n_stored_channels(&self) -> usize {
        self.layout.shape[0]
    }

    /// `[height, width]` or `[depth, height, width]`.
    pub fn size(&self) -> &[usize] {
        &self.layout.shape[1..]
    }

    /// Decoder, scaling rule, filter and crate versions that made the pixels.
    pub fn recipe(&self) -> &str {
        &self.layout.recipe
    }

    /// The shards in the order of the positions, for programs that map the files themselves.
    pub fn shards(&self) -> impl Iterator<Item = StoredShard<'_>> {
        self.shards.iter().map(|shard| StoredShard { path: &shard.path, begin: shard.pixels_begin(), n: shard.n() })
    }

    /// The samples in the order of the positions.
    pub fn samples(&self) -> impl Iterator<Item = &SampleId> {
        self.shards.iter().flat_map(|shard| &shard.footer.images).map(|image| &image.sample)
    }

    /// Shape of one image as stored: `[channels, height, width]` of a picture (8 bits), `[1, depth, height, width]` of a
    /// volume (16 bits).
    pub fn stored_shape(&self) -> &[usize] {
        &self.layout.shape
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
        let (shard, slot) = self.places[position];
        let bytes = self.shards[shard as usize].image(slot as usize);
        match self.layout.element {
            Element::U8 => StoredPixels::Picture(bytes),
            Element::U16 => StoredPixels::Volume(bytemuck::cast_slice(bytes)),
        }
    }
}
