//! Compares every stored image with its checksum, and removes the shards that fail.

use std::fmt;
use std::path::PathBuf;

use fairtte_metrics::SampleId;
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use serde::Serialize;

use super::{ImageStore, Shard};
use crate::DataError;

/// A stored image whose pixels do not match their checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DamagedImage {
    /// The sample.
    pub sample_id: SampleId,
    /// The file that holds it.
    pub shard: PathBuf,
    /// Its index among the images of that file, counted from 0.
    pub slot: usize,
}

impl fmt::Display for DamagedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sample_id, shard, slot } = self;
        write!(
            f,
            "the pixels of sample \"{sample_id}\" (image {slot} of {}) do not have their checksum",
            shard.display()
        )
    }
}

impl ImageStore {
    /// Every image whose pixels do not match their checksum, in the order of the store.
    ///
    /// # Cost
    /// Reads the whole store, on all cores.
    pub fn damaged_images(&self) -> Vec<DamagedImage> {
        let damaged = |(number, slot): &(u32, u32)| {
            let (shard, slot) = (&self.shards[*number as usize], *slot as usize);
            (!shard.is_intact(slot)).then(|| DamagedImage {
                sample_id: shard.footer.images[slot].sample.clone(),
                shard: shard.path.clone(),
                slot,
            })
        };
        self.places.par_iter().filter_map(damaged).collect()
    }

    /// Compares every image with its checksum; for a store that was copied from elsewhere, or a disk that may be
    /// faulty.
    ///
    /// # Errors
    /// [`DataError::DamagedFile`] naming the shard and the sample of the first image that differs, and how many do.
    ///
    /// # Cost
    /// Reads the whole store, on all cores.
    pub fn verify(&self) -> Result<(), DataError> {
        let damaged = self.damaged_images();
        let Some(first) = damaged.first() else { return Ok(()) };
        let more = if damaged.len() > 1 { format!(" ({} images in all)", damaged.len()) } else { String::new() };
        let detail = format!(
            "the pixels of sample \"{}\" (image {} of this shard) do not have their checksum{more}",
            first.sample_id, first.slot
        );
        Err(DataError::damaged(&first.shard, detail))
    }

    /// Removes the shards with damaged images, so that [`open_or_build`](Self::open_or_build) writes only these again.
    ///
    /// # Errors
    /// [`DataError::Write`] if a shard cannot be removed.
    ///
    /// # Cost
    /// Reads the whole store, on all cores.
    pub fn discard_damaged(self) -> Result<Vec<DamagedImage>, DataError> {
        let damaged = self.damaged_images();
        let mut paths: Vec<&PathBuf> = damaged.iter().map(|image| &image.shard).collect();
        paths.dedup();
        // Some systems do not remove a file that is mapped.
        drop::<Vec<Shard>>(self.shards);
        for path in paths {
            std::fs::remove_file(path).map_err(|source| DataError::write(path, source))?;
        }
        Ok(damaged)
    }
}
