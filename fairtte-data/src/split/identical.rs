//! Samples with the same image: a picture stored for two patients, or twice for one.
//!
//! Images are compared by a hash (BLAKE3). Files are compared in three steps of growing cost, each only for images that
//! the previous step could not distinguish: file size; bytes at the beginning, in the middle and at the end; all bytes.
//! So most pictures of a folder are distinguished by size alone, and volumes of one shape by a few windows. A header file
//! (`.hdr`) and its voxels (`.img` beside it) count as one image, whichever of them is named. So do the slices in the
//! folder of a DICOM series, whatever their file names: hashes of slices are sorted.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs::File;
use std::hash::Hash;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use fairtte_images::{halves_of_pair, slice_files};
use fairtte_metrics::{SampleId, SubjectId};
use rayon::prelude::*;
use serde::Serialize;

use crate::DataError;
use crate::cohort::Cohort;

use super::leak::{Leak, Placed};
use super::{Part, Split, file};

/// Bytes read at the beginning, in the middle and at the end of each file.
const WINDOW: u64 = 1 << 16;

/// Samples that have the same image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct IdenticalSet {
    /// Rows of the cohort, ascending; two or more.
    pub rows: Vec<usize>,
    /// The samples, in the order of `rows`.
    pub samples: Vec<SampleId>,
    /// Their subjects, in the order of `rows`.
    pub subjects: Vec<SubjectId>,
    /// Their parts, in the order of `rows`.
    pub parts: Vec<Part>,
}

impl IdenticalSet {
    fn new(cohort: &Cohort, parts: &[Part], rows: Vec<usize>) -> Self {
        Self {
            samples: cohort.sample_ids(&rows),
            subjects: cohort.subjects(&rows),
            parts: rows.iter().map(|&row| parts[row]).collect(),
            rows,
        }
    }

    /// Whether the image is in two parts.
    pub fn is_leak(&self) -> bool {
        self.parts.iter().any(|part| *part != self.parts[0])
    }

    /// Number of different subjects.
    pub fn n_subjects(&self) -> usize {
        self.subjects.iter().collect::<BTreeSet<_>>().len()
    }

    /// The first sample and the first of another part.
    fn leak(&self) -> Option<Leak> {
        let other = self.parts.iter().position(|part| *part != self.parts[0])?;
        let placed =
            |i: usize| Placed { part: self.parts[i], sample: Some(self.samples[i].clone()), unit: None, row: None };
        let subjects = [self.subjects[0].clone(), self.subjects[other].clone()];
        Some(Leak::Image { subjects, first: placed(0), second: placed(other) })
    }
}

/// The result of a search for identical images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct IdenticalImages {
    /// Images compared.
    pub n_compared: usize,
    /// Images that could not be read and were not compared.
    pub n_unread: usize,
    /// Sets of samples with the same image, in the order of their first rows.
    pub sets: Vec<IdenticalSet>,
}

impl IdenticalImages {
    fn new(cohort: &Cohort, split: &Split, n_unread: usize, mut sets: Vec<Vec<usize>>) -> Self {
        let parts = split.part_of_rows();
        for rows in &mut sets {
            rows.sort_unstable();
        }
        sets.sort_unstable();
        let sets = sets.into_iter().map(|rows| IdenticalSet::new(cohort, &parts, rows)).collect();
        Self { n_compared: cohort.n() - n_unread, n_unread, sets }
    }

    /// Sets whose image is in two parts.
    pub fn n_leaks(&self) -> usize {
        self.sets.iter().filter(|set| set.is_leak()).count()
    }

    /// The leaks, one for each set whose image is in two parts.
    pub fn leaks(&self) -> Vec<Leak> {
        self.sets.iter().filter_map(IdenticalSet::leak).collect()
    }

    /// Returns an error for the split in `path` if an image is in two parts.
    ///
    /// # Errors
    /// [`DataError::LeakingSplit`] with the first few leaks and their number.
    pub fn refuse_leaks(&self, path: &Path) -> Result<(), DataError> {
        file::refuse(path, self.leaks())
    }
}

impl fmt::Display for IdenticalImages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_between = self.sets.iter().filter(|set| set.n_subjects() > 1).count();
        write!(f, "images compared: {}, shared by more than one sample: {}", self.n_compared, self.sets.len())?;
        write!(f, " (by more than one subject: {n_between}, in more than one part: {})", self.n_leaks())?;
        if self.n_unread > 0 {
            write!(f, ", unreadable: {}", self.n_unread)?;
        }
        Ok(())
    }
}

/// Looks for samples of `cohort` with the same hash; `hash_of` gives the hash of the image of a row, or `None` if it
/// cannot be read. Rows are hashed in parallel.
///
/// For hashes that are already known, such as those of decoded pixels; [`check_identical_files`] reads the files.
///
/// # Panics
/// If `split` was made for another cohort.
pub fn check_identical_images<H: Hash + Eq + Send>(
    cohort: &Cohort,
    split: &Split,
    hash_of: impl Fn(usize) -> Option<H> + Sync,
) -> IdenticalImages {
    let (sets, n_unread) = regroup(vec![cohort.all_rows()], hash_of);
    IdenticalImages::new(cohort, split, n_unread, sets)
}

/// Looks for samples of `cohort` whose image files hold the same bytes.
///
/// # Panics
/// If `split` was made for another cohort.
pub fn check_identical_files(cohort: &Cohort, split: &Split) -> IdenticalImages {
    let files: Vec<Option<Files>> = cohort.samples.par_iter().map(|sample| Files::of(&sample.image).ok()).collect();
    let (sets, n_unopened) = regroup(vec![cohort.all_rows()], |row| Some(files[row].as_ref()?.sizes()));
    let (sets, n_unread) = regroup(sets, |row| files[row].as_ref()?.hash_of_windows().ok());
    let (sets, n_unread_later) = regroup(sets, |row| files[row].as_ref()?.hash().ok());
    IdenticalImages::new(cohort, split, n_unopened + n_unread + n_unread_later, sets)
}

/// Divides every set by the key of its rows, and keeps the sets of two or more; also counts the rows without a key.
fn regroup<K: Hash + Eq + Send>(
    sets: Vec<Vec<usize>>,
    key_of: impl Fn(usize) -> Option<K> + Sync,
) -> (Vec<Vec<usize>>, usize) {
    let rows = sets.into_iter().enumerate().flat_map(|(set, rows)| rows.into_iter().map(move |row| (set, row)));
    let rows: Vec<(usize, usize)> = rows.collect();
    let keys: Vec<Option<K>> = rows.par_iter().map(|(_, row)| key_of(*row)).collect();
    let mut by_key: HashMap<(usize, K), Vec<usize>> = HashMap::new();
    let mut n_without = 0;
    for ((set, row), key) in rows.into_iter().zip(keys) {
        match key {
            Some(key) => by_key.entry((set, key)).or_default().push(row),
            None => n_without += 1,
        }
    }
    (by_key.into_values().filter(|rows| rows.len() > 1).collect(), n_without)
}

/// The files of one image with their sizes, in a fixed order.
struct Files {
    files: Vec<(PathBuf, u64)>,
    /// Whether they are the slices of a series, whose names and order are irrelevant.
    is_series: bool,
}

impl Files {
    fn of(image: &Path) -> io::Result<Self> {
        let is_series = image.is_dir();
        let paths = if is_series { slice_files(image)? } else { files_of(image) };
        let with_size = |path: PathBuf| {
            let size = path.metadata()?.len();
            Ok((path, size))
        };
        let files = paths.into_iter().map(with_size).collect::<io::Result<Vec<_>>>()?;
        // A folder without slices is not an image, and two of them are not the same image.
        if files.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(Self { files, is_series }) }
    }

    fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.files.iter().map(|(_, size)| *size).collect();
        if self.is_series {
            sizes.sort_unstable();
        }
        sizes
    }

    fn hash_of_windows(&self) -> io::Result<[u8; 32]> {
        self.combined(|hasher, path, size| {
            let mut file = File::open(path)?;
            for begin in [0, (size / 2).saturating_sub(WINDOW / 2), size.saturating_sub(WINDOW)] {
                file.seek(SeekFrom::Start(begin))?;
                hasher.update_reader((&mut file).take(WINDOW))?;
            }
            Ok(())
        })
    }

    fn hash(&self) -> io::Result<[u8; 32]> {
        self.combined(|hasher, path, _| hasher.update_reader(File::open(path)?).map(|_| ()))
    }

    /// A hash of the hashes of the files.
    fn combined(&self, mut add: impl FnMut(&mut blake3::Hasher, &Path, u64) -> io::Result<()>) -> io::Result<[u8; 32]> {
        let hash_of = |(path, size): &(PathBuf, u64)| {
            let mut hasher = blake3::Hasher::new();
            add(&mut hasher, path, *size)?;
            Ok(*hasher.finalize().as_bytes())
        };
        let mut hashes = self.files.iter().map(hash_of).collect::<io::Result<Vec<[u8; 32]>>>()?;
        if self.is_series {
            hashes.sort_unstable();
        }
        Ok(*blake3::hash(hashes.as_flattened()).as_bytes())
    }
}

/// The file at `image`; of a pair header and voxels, as the decoder finds them.
fn files_of(image: &Path) -> Vec<PathBuf> {
    let pair = halves_of_pair(image).filter(|halves| halves.iter().all(|half| half.is_file()));
    pair.map_or_else(|| vec![image.to_owned()], Vec::from)
}
