//! Selection of the files of a folder that may be slices, and reading of their first bytes.
//!
//! A slice ends in `.dcm`, or has no ending (`IM0001`, `MR.1.2.840.113619`: digits after a dot are not an ending) and
//! the DICOM signature after its preamble. Hidden files and the directory file of a medium (`DICOMDIR`) are excluded.
//! Sub-folders are not entered, so there are no cycles of links; links to files are followed.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

#[cfg(feature = "dicom")]
use super::HEADER_BYTES;
#[cfg(feature = "dicom")]
use crate::picture::Kind;
#[cfg(feature = "dicom")]
use crate::picture::dicom::Slice;
#[cfg(feature = "dicom")]
use crate::{Fault, Limits, Undecodable};

/// The files of `folder` that may be slices, in the order of their names.
///
/// # Errors
/// If the folder cannot be listed.
///
/// # Cost
/// Opens the files without an ending, and no others.
pub fn slice_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(ending) = Ending::of(&name.to_string_lossy()) else { continue };
        let path = entry.path();
        // A broken link is kept: reading it gives the error.
        let kind = entry.file_type()?;
        let is_file =
            if kind.is_symlink() { path.metadata().map_or(true, |target| target.is_file()) } else { kind.is_file() };
        if is_file && (ending == Ending::Dcm || has_signature(&path)) {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Dcm,
    Absent,
}

impl Ending {
    /// `None` if a file of this name is not a slice.
    fn of(name: &str) -> Option<Self> {
        if name.starts_with('.') || name.eq_ignore_ascii_case("DICOMDIR") {
            return None;
        }
        match name.rsplit_once('.') {
            Some((_, ending)) if ending.eq_ignore_ascii_case("dcm") => Some(Self::Dcm),
            Some((_, ending)) if !ending.bytes().all(|byte| byte.is_ascii_digit()) => None,
            _ => Some(Self::Absent),
        }
    }
}

fn has_signature(path: &Path) -> bool {
    let mut start = [0; 132];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start.ends_with(b"DICM")
}

/// The header of the slice at `path`: from its first bytes, or from all of them if it does not end there.
#[cfg(feature = "dicom")]
pub(super) fn header(path: &Path, limits: &Limits) -> Result<Slice, Undecodable> {
    let (start, n_bytes) = bytes(path, HEADER_BYTES, limits)?;
    if Kind::announced(&start) != Some(Kind::Dicom) {
        return Err(Undecodable::new(Fault::Unreadable, "the content is not DICOM"));
    }
    let is_whole = start.len() as u64 >= n_bytes;
    match Slice::read(&start, limits) {
        Ok(Some(slice)) => return Ok(slice),
        Err(refused) if is_whole || refused.fault == Fault::Unsupported => return Err(refused),
        _ => {}
    }
    let whole = if is_whole { start } else { bytes(path, u64::MAX, limits)?.0 };
    let no_pixels = || Undecodable::new(Fault::Unreadable, "the DICOM file has no pixel data");
    Slice::read(&whole, limits)?.ok_or_else(no_pixels)
}

/// The first `most` bytes of a file and its length, which must be within the limit of memory.
#[cfg(feature = "dicom")]
pub(super) fn bytes(path: &Path, most: u64, limits: &Limits) -> Result<(Vec<u8>, u64), Undecodable> {
    let unopened = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Undecodable::new(Fault::Missing, "there is no such file"),
        _ => Undecodable::new(Fault::Unopened, error.to_string()),
    };
    let file = File::open(path).map_err(unopened)?;
    let n_bytes = file.metadata().map_err(unopened)?.len();
    if n_bytes > limits.max_bytes {
        let limit = limits.max_bytes;
        let detail = format!("the file has {n_bytes} bytes, more than image.limits.max-bytes = {limit}");
        return Err(Undecodable::new(Fault::Unsupported, detail));
    }
    let mut bytes = Vec::new();
    file.take(most.min(limits.max_bytes)).read_to_end(&mut bytes).map_err(unopened)?;
    if bytes.is_empty() {
        return Err(Undecodable::new(Fault::Empty, "the file has no bytes"));
    }
    Ok((bytes, n_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_may_be_slices_end_in_dcm_or_have_no_ending() {
        for (name, ending) in [
            ("1.dcm", Some(Ending::Dcm)),
            ("IM.0001.DCM", Some(Ending::Dcm)),
            ("IM0001", Some(Ending::Absent)),
            ("MR.1.2.840.113619.2.5", Some(Ending::Absent)),
            ("._1.dcm", None),
            ("DICOMDIR", None),
            ("notes.txt", None),
            ("1.dcm.gz", None),
        ] {
            assert_eq!(Ending::of(name), ending, "{name}");
        }
    }
}
