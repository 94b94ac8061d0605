//! Locates the image files: one walk over the folder of images builds an index from image number to path.
//!
//! Downloads come as `<PTID>/<description>/<date>/<S.. or I..>/ADNI_<PTID>_MR_.._S<series>_I<image>.nii`, in older and
//! newer shapes of these folders, so only the end of the file name counts: `_I<image>.`, or, where a file was renamed,
//! a folder `I<image>`. Numbers have any length. A series of DICOM slices (`.dcm`) is its folder, which is read as one
//! volume (`image/dicom_series/`). For one image, NIfTI (`.nii`, `.nii.gz`) comes before a header with its voxels
//! beside it (`.hdr`), DICOM and MINC (`.mnc`, which is found but not read).
//!
//! No error here stops the reading of tables: folders that cannot be listed and ambiguous files are kept for the notes,
//! and their images count as missing when they are decoded.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// Kinds of image files, the preferred first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Nifti,
    NiftiGzipped,
    HeaderAndVoxels,
    Dicom,
    Minc,
}

impl Kind {
    fn of(file_name: &str) -> Option<Self> {
        const ENDINGS: [(&str, Kind); 5] = [
            (".nii", Kind::Nifti),
            (".nii.gz", Kind::NiftiGzipped),
            (".hdr", Kind::HeaderAndVoxels),
            (".dcm", Kind::Dicom),
            (".mnc", Kind::Minc),
        ];
        let lower = file_name.to_ascii_lowercase();
        ENDINGS.into_iter().find(|(ending, _)| lower.ends_with(ending)).map(|(_, kind)| kind)
    }
}

/// The files of every image found: per kind and path, how many files (slices of a DICOM series).
#[derive(Clone, Debug, Default)]
pub(super) struct ImageFiles {
    by_id: HashMap<u64, BTreeMap<(Kind, PathBuf), usize>>,
    /// Folders that cannot be listed.
    unlisted: Vec<PathBuf>,
}

/// Two different files have the number of one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InTwoFiles {
    /// One file.
    pub first: PathBuf,
    /// The other file.
    pub second: PathBuf,
}

impl ImageFiles {
    /// Walks `folder` with everything below it; a folder that does not exist and a broken link hold no images.
    pub(super) fn find(folder: &Path) -> Self {
        let mut files = Self::default();
        for entry in WalkDir::new(folder).follow_links(true).sort_by_file_name() {
            match entry {
                Ok(entry) if entry.file_type().is_dir() => {}
                Ok(entry) => files.add(entry.path()),
                // A link to a parent folder, whose files are found already, or a broken link.
                Err(error) if error.loop_ancestor().is_some() => {}
                Err(error) if error.io_error().is_some_and(|error| error.kind() == ErrorKind::NotFound) => {}
                Err(error) => files.unlisted.push(error.path().unwrap_or(folder).to_owned()),
            }
        }
        files
    }

    /// Notes for the user about the folders.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.unlisted.iter().map(|path| format!("images below {} are not found: it cannot be listed", path.display()))
    }

    fn add(&mut self, path: &Path) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
        let Some(kind) = Kind::of(name) else { return };
        let parent = path.parent();
        let leaf = parent.and_then(Path::file_name).and_then(|leaf| leaf.to_str()).unwrap_or_default();
        let Some(id) = id_in_name(name).or_else(|| digits(leaf.strip_prefix('I')?)) else { return };
        let place = if kind == Kind::Dicom { parent.unwrap_or(path) } else { path };
        *self.by_id.entry(id).or_default().entry((kind, place.to_owned())).or_default() += 1;
    }

    /// The file (or DICOM folder) of image `id`; `None` if there is none.
    ///
    /// Of copies (one name, one size) in several folders the first in the order of paths is taken.
    ///
    /// # Errors
    /// [`InTwoFiles`] if two different files of the preferred kind have the number of this image.
    pub(super) fn path(&self, id: u64) -> Result<Option<&Path>, InTwoFiles> {
        let Some(found) = self.by_id.get(&id) else { return Ok(None) };
        let mut found = found.iter();
        let Some(((kind, first), n_first)) = found.next() else { return Ok(None) };
        for ((_, other), n_other) in found.take_while(|((other_kind, _), _)| other_kind == kind) {
            let is_size_equal = || size(first).is_some_and(|bytes| size(other) == Some(bytes));
            if first.file_name() != other.file_name() || n_first != n_other || !is_size_equal() {
                return Err(InTwoFiles { first: first.clone(), second: other.clone() });
            }
        }
        Ok(Some(first))
    }
}

/// The size of a file in bytes; 0 for a folder, whose size says nothing about its content; `None` if unknown.
fn size(path: &Path) -> Option<u64> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(if metadata.is_dir() { 0 } else { metadata.len() })
}

/// The number `120917` of `ADNI_002_S_0413_.._S54591_I120917.nii` and of `I120917.nii.gz`: the last `_I`, digits and a
/// dot.
fn id_in_name(name: &str) -> Option<u64> {
    let id_before_dot = |rest: &str| digits(rest.split_once('.')?.0);
    let starts = name.rmatch_indices("_I").map(|(position, mark)| &name[position + mark.len()..]);
    starts.chain(name.strip_prefix('I')).find_map(id_before_dot)
}

fn digits(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}
