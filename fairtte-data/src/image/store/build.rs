//! Writes the missing shards of a store.
//!
//! Images are handed out to all cores one by one in the order of their paths; while one wave of shards is written, the
//! next is decoded. Memory holds two waves: twice the size of a shard, or twice four images per thread, whichever is
//! more. A shard is written under a temporary name and renamed, the index comes last. So a killed run leaves complete
//! shards, which the next run keeps after checking length, header and footer, and a temporary file, which it removes.
//!
//! A file that could not be read may be readable again with the same size and time: a network folder was away, or the right
//! to read it was missing. So the files that a kept shard leaves out for that are tried again, and if one is no longer
//! unreadable, the shard is written anew.
//!
//! One process at a time builds in a folder: the others wait for a lock that the operating system releases when its
//! holder ends, however it ends. If the file system has no locks, two processes do the same work twice; the renames
//! leave one of two equal files.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use fairtte_metrics::SampleId;
use rayon::iter::{IntoParallelRefIterator as _, ParallelBridge as _, ParallelIterator as _};

use super::index::Index;
use super::plan::{Plan, ShardPlan};
use super::shard::{Shard, ShardFooter, ShardHeader, StoredImage, write_shard};
use crate::DataError;
use crate::atomic::lock_folder;
use crate::cohort::exclusions::{Exclusion, Exclusions};
use crate::cohort::{Cohort, Reason, Sample};
use crate::image::{ImageConfig, Pixels, Undecodable, prepare_image};

pub(super) type Progress<'p> = dyn Fn(usize, usize) + Sync + 'p;

/// The file whose lock a build takes.
const LOCK: &str = ".lock";
/// Images decoded at a time, per thread: enough that threads seldom wait for the slowest image.
const IMAGES_PER_THREAD: usize = 4;

/// The input and state of one build.
pub(super) struct Build<'b> {
    pub cohort: &'b Cohort,
    pub config: &'b ImageConfig,
    pub plan: &'b Plan,
    pub folder: &'b Path,
}

/// A decoded shard to be written.
struct Decoded<'p> {
    shard: &'p ShardPlan,
    footer: ShardFooter,
    images: Vec<Vec<u8>>,
}

impl Build<'_> {
    /// Writes the missing shards, and the index; returns all shards.
    pub(super) fn run(&self, on_progress: &Progress<'_>) -> Result<Vec<Shard>, DataError> {
        std::fs::create_dir_all(self.folder).map_err(|source| DataError::write(self.folder, source))?;
        let lock =
            lock_folder(self.folder, LOCK).map_err(|source| DataError::write(&self.folder.join(LOCK), source))?;
        if lock.is_some() {
            // Without a lock the temporary file may belong to a living process.
            remove_temporary_files(self.folder);
        }
        let missing: Vec<&ShardPlan> = self.plan.shards.iter().filter(|shard| !self.keep_or_reuse(shard)).collect();
        self.write_missing(&missing, on_progress)?;
        let shards = self.plan.shards.par_iter().map(|shard| self.open(shard)).collect::<Result<Vec<_>, _>>()?;
        if shards.iter().all(|shard| shard.n() == 0) {
            return self.nothing_decoded(shards).map(|()| Vec::new());
        }
        Index::of(self.plan).write(self.folder)?;
        drop(lock);
        Ok(shards)
    }

    fn header(&self, shard: &ShardPlan) -> ShardHeader {
        ShardHeader { key: shard.key.clone(), layout: self.plan.layout.clone() }
    }

    fn open(&self, shard: &ShardPlan) -> Result<Shard, DataError> {
        Shard::open(&self.folder.join(shard.file_name()), &self.header(shard))
    }

    /// All shards, if they exist and no file that they leave out can be read by now.
    pub(super) fn existing(&self) -> Option<Vec<Shard>> {
        self.plan.shards.par_iter().map(|shard| self.settled(shard)).collect()
    }

    /// The shard, if it exists and no file that it leaves out can be read by now.
    pub(super) fn settled(&self, shard: &ShardPlan) -> Option<Shard> {
        self.open(shard).ok().filter(|stored| self.is_settled(shard, stored))
    }

    /// Whether the files that `stored` leaves out because they could not be read still cannot.
    fn is_settled(&self, shard: &ShardPlan, stored: &Shard) -> bool {
        let unread = stored.footer.exclusions.iter().filter(|exclusion| is_about_reading(exclusion.reason));
        let unread: HashSet<&SampleId> = unread.map(|exclusion| &exclusion.sample_id).collect();
        let samples = shard.rows.iter().map(|row| &self.cohort.samples[*row]);
        samples.filter(|sample| unread.contains(&sample.sample_id)).all(|sample| {
            let again = prepare_image(&sample.image, self.config);
            again.is_err_and(|undecodable| is_about_reading(undecodable.fault.into()))
        })
    }

    /// Whether `shard` exists, or could be linked from another store of the same cache.
    fn keep_or_reuse(&self, shard: &ShardPlan) -> bool {
        if self.settled(shard).is_some() {
            return true;
        }
        let path = self.folder.join(shard.file_name());
        let header = self.header(shard);
        let mut siblings = sibling_folders(self.folder).into_iter().map(|sibling| sibling.join(shard.file_name()));
        // Their pixels are compared with their checksums: a shard may be missing here because it was found damaged, and
        // the other store may hold a link to the very same file.
        let is_intact = |sibling: &PathBuf| {
            Shard::open(sibling, &header).is_ok_and(|stored| self.is_settled(shard, &stored) && stored.is_all_intact())
        };
        let Some(same) = siblings.find(is_intact) else { return false };
        // A link fails over a damaged file of the same name.
        let _ = std::fs::remove_file(&path);
        std::fs::hard_link(same, &path).is_ok()
    }

    fn write_missing(&self, missing: &[&ShardPlan], on_progress: &Progress<'_>) -> Result<(), DataError> {
        let total = self.cohort.n();
        let n_to_do: usize = missing.iter().map(|shard| shard.rows.len()).sum();
        let n_done = AtomicUsize::new(total - n_to_do);
        on_progress(total - n_to_do, total);
        let prepare = |row: usize| {
            let prepared = prepare_image(&self.cohort.samples[row].image, self.config).map(bytes_and_hash);
            on_progress(n_done.fetch_add(1, Ordering::Relaxed) + 1, total);
            prepared
        };
        let per_wave = (IMAGES_PER_THREAD * rayon::current_num_threads()).div_ceil(self.plan.layout.images_per_shard);
        let mut decoded: Vec<Decoded<'_>> = Vec::new();
        let mut n_missing_bytes = n_to_do * self.plan.layout.n_image_bytes();
        for wave in missing.chunks(per_wave) {
            let (written, next) = rayon::join(|| self.write(&decoded, n_missing_bytes), || self.decode(wave, &prepare));
            written?;
            n_missing_bytes -= decoded.iter().map(|shard| shard.n_planned_bytes(self.plan)).sum::<usize>();
            decoded = next;
        }
        self.write(&decoded, n_missing_bytes)
    }

    fn decode<'p>(
        &self,
        wave: &[&'p ShardPlan],
        prepare: &(impl Fn(usize) -> Result<(Vec<u8>, blake3::Hash), Undecodable> + Sync),
    ) -> Vec<Decoded<'p>> {
        let rows: Vec<usize> = wave.iter().flat_map(|shard| shard.rows.iter().copied()).collect();
        // A parallel bridge distributes the files in their order, each to a free thread.
        let prepared = rows.iter().copied().enumerate().par_bridge().map(|(at, row)| (at, prepare(row)));
        let mut prepared: Vec<_> = prepared.collect();
        prepared.sort_unstable_by_key(|(at, _)| *at);
        let mut prepared = prepared.into_iter().map(|(_, prepared)| prepared);
        let shard = |shard: &&'p ShardPlan| {
            let mut decoded = Decoded { shard, footer: ShardFooter::default(), images: Vec::new() };
            for (&row, prepared) in shard.rows.iter().zip(&mut prepared) {
                decoded.push(&self.cohort.samples[row], prepared);
            }
            decoded
        };
        wave.iter().map(shard).collect()
    }

    fn write(&self, decoded: &[Decoded<'_>], n_missing_bytes: usize) -> Result<(), DataError> {
        for shard in decoded {
            let path = self.folder.join(shard.shard.file_name());
            write_shard(&path, &self.header(shard.shard), &shard.footer, &shard.images)
                .map_err(|error| with_size(error, n_missing_bytes))?;
        }
        Ok(())
    }

    /// No image could be decoded: leaves no shard and returns the reasons as an error.
    fn nothing_decoded(&self, shards: Vec<Shard>) -> Result<(), DataError> {
        let mut exclusions = Exclusions::new(self.cohort.n());
        exclusions.extend(shards.iter().flat_map(|shard| shard.footer.exclusions.iter().cloned()));
        let paths: Vec<PathBuf> = shards.iter().map(|shard| shard.path.clone()).collect();
        // Some systems do not remove a file that is mapped.
        drop(shards);
        // The lock file stays: another process may wait for it, and one that comes later would lock a new one. A shard that
        // cannot be removed holds no image; the error is more important.
        for path in paths.into_iter().chain([Index::path(self.folder)]) {
            let _ = std::fs::remove_file(path);
        }
        self.cohort.without(exclusions.list()).require_samples("after decoding the images", &exclusions)
    }
}

impl Decoded<'_> {
    fn push(&mut self, sample: &Sample, prepared: Result<(Vec<u8>, blake3::Hash), Undecodable>) {
        match prepared {
            Ok((bytes, hash)) => {
                let blake3 = hash.to_hex().to_string();
                self.footer.images.push(StoredImage { sample: sample.sample_id.clone(), blake3 });
                self.images.push(bytes);
            }
            Err(undecodable) => self.footer.exclusions.push(exclusion(sample, &undecodable)),
        }
    }

    fn n_planned_bytes(&self, plan: &Plan) -> usize {
        self.shard.rows.len() * plan.layout.n_image_bytes()
    }
}

/// Whether the file may be read some other time although its size and time stay the same.
fn is_about_reading(reason: Reason) -> bool {
    matches!(reason, Reason::ImageMissing | Reason::ImageUnopened)
}

fn bytes_and_hash(pixels: Pixels) -> (Vec<u8>, blake3::Hash) {
    let bytes = match pixels {
        Pixels::Picture(pixels) => pixels,
        Pixels::Volume(voxels) => bytemuck::cast_slice(&voxels).to_vec(),
    };
    let hash = blake3::hash(&bytes);
    (bytes, hash)
}

fn exclusion(sample: &Sample, undecodable: &Undecodable) -> Exclusion {
    Exclusion {
        sample_id: sample.sample_id.clone(),
        reason: undecodable.fault.into(),
        source: format!("{}: {}", sample.image.display(), undecodable.detail),
    }
}

/// Turns a full disk into an error that also gives the space needed.
fn with_size(error: DataError, n_missing_bytes: usize) -> DataError {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error {
        DataError::Write { path, source } if matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge) => {
            DataError::NoRoom { path, n_bytes: n_missing_bytes as u64, source }
        }
        other => other,
    }
}

/// Removes temporary files of killed runs; one that cannot be removed is harmless.
fn remove_temporary_files(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        if entry.path().extension().is_some_and(|ending| ending == "tmp") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The other stores beside `folder`, sorted.
fn sibling_folders(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.parent().and_then(|cache| std::fs::read_dir(cache).ok());
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let is_store = |path: &PathBuf| {
        path != folder && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("images-"))
    };
    let mut folders: Vec<_> = paths.filter(is_store).collect();
    folders.sort();
    folders
}
