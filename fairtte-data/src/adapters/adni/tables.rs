//! Which files are the tables: the image list by its header, the others by their names with or without a date.
//!
//! `DXSUM_PDXCONV_ADNIALL.csv`, `DXSUM_PDXCONV_ADNIALL_12Oct2023.csv`, `DXSUM_20Nov2024.csv` and `dxsum.csv` are all the
//! diagnostic summary; likewise `REGISTRY..csv` and `ADNIMERGE..csv`, each also gzipped. They are searched in the root
//! and the folders in it; what lies higher wins, and two on one level are for the user to choose from.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::cells::plain;
use super::config::{AdniConfig, AgeSource, DementiaCause, DiagnosisSource, MissingCurrent};
use super::image_list::{ID, SUBJECT};
use crate::DataError;

/// Levels of folders that are searched: the root and the folders in it.
const DEPTH: usize = 2;
/// Bytes of a first line that are read to recognise it.
const MOST_HEADER_BYTES: u64 = 1 << 16;

/// The tables of one cohort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tables {
    pub image_list: PathBuf,
    /// `DXSUM`, or `ADNIMERGE` if that is the source of diagnoses.
    pub diagnoses: PathBuf,
    pub registry: Option<PathBuf>,
    pub adnimerge: Option<PathBuf>,
}

impl Tables {
    /// Finds what `config` does not name.
    ///
    /// # Errors
    /// [`DataError::TableNotFound`], [`DataError::TwoTables`], [`DataError::InvalidSetting`] for options that ask for
    /// what the source of diagnoses does not hold, [`DataError::Read`] for a folder that cannot be listed.
    pub(super) fn find(config: &AdniConfig) -> Result<Self, DataError> {
        let from_merge = config.diagnosis_source == DiagnosisSource::Adnimerge;
        if from_merge && config.dementia_cause == DementiaCause::Alzheimer {
            return Err(only_in_dxsum("data.adni.dementia-cause", "alzheimer"));
        }
        if from_merge && config.missing_current == MissingCurrent::Conversion {
            return Err(only_in_dxsum("data.adni.missing-current", "conversion"));
        }
        let folder = Folder::list(&config.root)?;
        let or_found = |given: &Option<PathBuf>, kind: &Kind| match given {
            Some(path) => Ok(Some(path.clone())),
            None => folder.one(kind),
        };
        let found = |path: Option<PathBuf>, kind: &Kind| path.ok_or_else(|| folder.missing(kind));
        let image_list = found(or_found(&config.image_list, &IMAGE_LIST)?, &IMAGE_LIST)?;
        let adnimerge = or_found(&config.adnimerge, &ADNIMERGE)?;
        if config.age == AgeSource::Adnimerge {
            found(adnimerge.clone(), &ADNIMERGE)?;
        }
        let diagnoses = if from_merge {
            found(adnimerge.clone(), &ADNIMERGE)?
        } else {
            found(or_found(&config.dxsum, &DXSUM)?, &DXSUM)?
        };
        Ok(Self { image_list, diagnoses, registry: or_found(&config.registry, &REGISTRY)?, adnimerge })
    }
}

fn only_in_dxsum(key: &'static str, value: &str) -> DataError {
    let expected = "the default where diagnosis-source is adnimerge, which does not hold what this needs";
    DataError::InvalidSetting { key, value: value.to_owned(), expected }
}

/// A kind of table and how it is recognised.
struct Kind {
    what: &'static str,
    looked_for: &'static str,
    recognises: fn(&Path) -> bool,
    key: &'static str,
}

const IMAGE_LIST: Kind = Kind {
    what: "image list",
    looked_for: "a .csv or .csv.gz file whose header has \"Image Data ID\" and \"Subject\"",
    recognises: is_image_list,
    key: "image-list",
};
const DXSUM: Kind = Kind {
    what: "table of diagnoses",
    looked_for: "DXSUM_PDXCONV_ADNIALL.csv, DXSUM_<date>.csv or dxsum.csv, also .csv.gz",
    recognises: |path| is_named(path, "dxsum"),
    key: "dxsum",
};
const ADNIMERGE: Kind = Kind {
    what: "ADNIMERGE table",
    looked_for: "ADNIMERGE.csv or ADNIMERGE_<date>.csv, also .csv.gz",
    recognises: |path| is_named(path, "adnimerge"),
    key: "adnimerge",
};
const REGISTRY: Kind = Kind {
    what: "registry",
    looked_for: "REGISTRY.csv or REGISTRY_<date>.csv, also .csv.gz",
    recognises: |path| is_named(path, "registry"),
    key: "registry",
};

/// The CSV files of the root and the folders in it, those of the root first, then by path.
struct Folder {
    root: PathBuf,
    files: Vec<(usize, PathBuf)>,
}

impl Folder {
    fn list(root: &Path) -> Result<Self, DataError> {
        let mut files = Vec::new();
        for entry in WalkDir::new(root).max_depth(DEPTH).follow_links(true) {
            let entry = entry.map_err(|error| {
                let path = error.path().unwrap_or(root).to_owned();
                DataError::Read { path, source: error.into() }
            })?;
            let name = entry.file_name().to_string_lossy().to_lowercase();
            let ending = name.strip_suffix(".gz").unwrap_or(&name).rsplit_once('.').map(|(_, ending)| ending);
            if entry.file_type().is_file() && ending == Some("csv") {
                files.push((entry.depth(), entry.into_path()));
            }
        }
        files.sort();
        Ok(Self { root: root.to_owned(), files })
    }

    /// The only file of this kind on the highest level where there is any.
    fn one(&self, kind: &Kind) -> Result<Option<PathBuf>, DataError> {
        let mut found = self.files.iter().filter(|(_, path)| (kind.recognises)(path));
        let Some((depth, first)) = found.next() else { return Ok(None) };
        match found.next() {
            Some((other_depth, second)) if other_depth == depth => Err(DataError::TwoTables {
                what: kind.what,
                first: first.clone(),
                second: second.clone(),
                key: kind.key,
            }),
            _ => Ok(Some(first.clone())),
        }
    }

    fn missing(&self, kind: &Kind) -> DataError {
        let folder = self.root.clone();
        DataError::TableNotFound { what: kind.what, looked_for: kind.looked_for, folder, n_seen: self.files.len() }
    }
}

/// `prefix`, alone or followed by `_` or `-`; dictionaries of columns (`.._DICT.csv`) are no tables.
fn is_named(path: &Path, prefix: &str) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let stem = name.split_once('.').map_or(name.as_str(), |(stem, _)| stem);
    let rest = stem.strip_prefix(prefix);
    rest.is_some_and(|rest| (rest.is_empty() || rest.starts_with(['_', '-'])) && !rest.contains("dict"))
}

fn is_image_list(path: &Path) -> bool {
    let header = first_line(path).unwrap_or_default();
    let names: Vec<String> = header.split(',').map(plain).collect();
    [ID, SUBJECT].into_iter().all(|name| names.contains(&plain(name)))
}

/// The first line; `None` for a file that cannot be read, which is then nothing we know.
fn first_line(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let is_gzipped = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
    let plain: Box<dyn Read> =
        if is_gzipped { Box::new(flate2::read::MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut line = Vec::new();
    BufReader::new(plain.take(MOST_HEADER_BYTES)).read_until(b'\n', &mut line).ok()?;
    Some(String::from_utf8_lossy(&line).into_owned())
}
