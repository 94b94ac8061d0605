//! Identifies the tables: the image list by its header, the others by their names with or without a date.
//!
//! `DXSUM_PDXCONV_ADNIALL.csv`, `DXSUM_PDXCONV_ADNIALL_12Oct2023.csv`, `DXSUM_20Nov2024.csv` and `dxsum.csv` are all
//! the diagnostic summary; likewise `REGISTRY..csv` and `ADNIMERGE..csv`, each also gzipped. `find.rs` describes how
//! folders are searched and which of several dated files is used. All image lists are used.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use super::cells::{NamedTable, plain};
use super::config::{AdniConfig, AgeSource, DementiaCause, DiagnosisSource, MissingCurrent};
use super::image_list::{DATE, ID, MODALITY, SUBJECT};
use crate::adapters::find::{CSV, Wanted, find_all, find_file, find_optional};
use crate::{DataError, SettingsOf};

/// Bytes of a first line that are read to recognise it.
const MOST_HEADER_BYTES: u64 = 1 << 16;

const ANY_TABLE: Wanted = Wanted { what: IMAGE_LIST, patterns: &["*"], endings: CSV, dated: true };
const IMAGE_LIST: &str = "the image list of ADNI (key image-list)";
const DXSUM: Wanted = Wanted {
    what: "the table of diagnoses of ADNI (key dxsum)",
    patterns: &["DXSUM_PDXCONV_ADNIALL", "DXSUM_PDXCONV", "DXSUM"],
    endings: CSV,
    dated: true,
};
const REGISTRY: Wanted =
    Wanted { what: "the registry of ADNI (key registry)", patterns: &["REGISTRY"], endings: CSV, dated: true };
const ADNIMERGE: Wanted =
    Wanted { what: "the merged table of ADNI (key adnimerge)", patterns: &["ADNIMERGE"], endings: CSV, dated: true };

/// The tables of one cohort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tables {
    pub image_lists: Vec<Source>,
    /// `DXSUM`, or `ADNIMERGE` if that is the source of diagnoses.
    pub diagnoses: PathBuf,
    pub registry: Option<Source>,
    pub adnimerge: Option<Source>,
}

/// One table file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub path: PathBuf,
    /// Whether a key names it or an option needs it; otherwise an unusable file is left out.
    pub is_needed: bool,
}

impl Source {
    /// Reads the file and extracts what `read` needs, with its notes; returns only a note if it is unusable and not
    /// needed.
    ///
    /// # Errors
    /// Those of [`NamedTable::read`] and of `read`, for a file that is needed.
    pub(super) fn read<T: Default>(
        &self,
        notes: &mut Vec<String>,
        read: impl FnOnce(&NamedTable) -> Result<(T, Vec<String>), DataError>,
    ) -> Result<T, DataError> {
        match NamedTable::read(&self.path).and_then(|table| read(&table)) {
            Ok((found, more)) => {
                notes.extend(more);
                Ok(found)
            }
            Err(error) if self.is_needed => Err(error),
            Err(error) => {
                notes.push(format!("{} was found and is not used: {error}", self.path.display()));
                Ok(T::default())
            }
        }
    }
}

impl Tables {
    /// Finds the files that `config` does not name.
    ///
    /// # Errors
    /// [`DataError::FileNotFound`], [`DataError::SeveralFiles`], [`DataError::InvalidSetting`] for options that ask for
    /// what the source of diagnoses does not hold, [`DataError::Read`] for a root that cannot be listed.
    pub(super) fn find(config: &AdniConfig) -> Result<Self, DataError> {
        let from_merge = config.diagnosis_source == DiagnosisSource::Adnimerge;
        if from_merge && config.dementia_cause == DementiaCause::Alzheimer {
            return Err(only_in_dxsum("dementia-cause", "alzheimer"));
        }
        if from_merge && config.missing_current == MissingCurrent::Conversion {
            return Err(only_in_dxsum("missing-current", "conversion"));
        }
        let root = config.root.as_path();
        let needed = |path: PathBuf| Source { path, is_needed: true };
        let find = |given: &Option<PathBuf>, wanted| given.clone().map_or_else(|| find_file(root, wanted), Ok);
        let optional = |given: &Option<PathBuf>, wanted| -> Result<_, DataError> {
            let found = || find_optional(root, wanted).map(|path| path.map(|path| Source { path, is_needed: false }));
            given.clone().map_or_else(found, |path| Ok(Some(needed(path))))
        };
        let image_lists = if config.image_list.is_empty() {
            find_image_lists(root)?
        } else {
            config.image_list.iter().cloned().map(needed).collect()
        };
        let adnimerge = if from_merge || config.age == AgeSource::Adnimerge {
            Some(needed(find(&config.adnimerge, &ADNIMERGE)?))
        } else {
            optional(&config.adnimerge, &ADNIMERGE)?
        };
        let diagnoses = match &adnimerge {
            Some(merge) if from_merge => merge.path.clone(),
            _ => find(&config.dxsum, &DXSUM)?,
        };
        Ok(Self { image_lists, diagnoses, registry: optional(&config.registry, &REGISTRY)?, adnimerge })
    }

    /// Reads the image lists; of several that were found, those without rows are left out with a note.
    ///
    /// # Errors
    /// What [`NamedTable::read`] returns.
    pub(super) fn read_image_lists(&self, notes: &mut Vec<String>) -> Result<Vec<NamedTable>, DataError> {
        let mut lists = Vec::new();
        let mut empty = Vec::new();
        for source in &self.image_lists {
            match NamedTable::read(&source.path) {
                Err(DataError::EmptyTable { path }) if !source.is_needed => empty.push(path),
                list => lists.push(list?),
            }
        }
        match empty.first() {
            Some(path) if lists.is_empty() => Err(DataError::EmptyTable { path: path.clone() }),
            _ => {
                notes.extend(empty.iter().map(|path| format!("the image list {} has no rows", path.display())));
                Ok(lists)
            }
        }
    }
}

fn only_in_dxsum(field: &'static str, value: &str) -> DataError {
    let expected = "the default where diagnosis-source is adnimerge, which does not hold what this needs";
    DataError::setting(SettingsOf::Adni, field, value, expected)
}

/// The tables below `root` with the header of an image list: those with all four columns; if there are none, those with
/// the two identifying columns, so that the error names the missing column.
fn find_image_lists(root: &Path) -> Result<Vec<Source>, DataError> {
    let tables = match find_all(root, &ANY_TABLE) {
        Err(DataError::FileNotFound { .. }) => Vec::new(),
        other => other?,
    };
    let header = |path: &Path| -> Vec<String> {
        let line = first_line(path).unwrap_or_default();
        line.split(',').map(plain).collect()
    };
    let has = |names: &[String], wanted: &[&str]| wanted.iter().all(|name| names.contains(&plain(name)));
    let mut lists: Vec<(PathBuf, Vec<String>)> = tables
        .into_iter()
        .map(|path| (path.clone(), header(&path)))
        .filter(|(_, names)| has(names, &[ID, SUBJECT]))
        .collect();
    let is_complete = |names: &[String]| has(names, &[MODALITY, DATE]);
    if lists.iter().any(|(_, names)| is_complete(names)) {
        lists.retain(|(_, names)| is_complete(names));
    }
    if lists.is_empty() {
        return Err(DataError::FileNotFound {
            what: IMAGE_LIST,
            looked_for: format!("a .csv or .csv.gz file whose header has \"{ID}\" and \"{SUBJECT}\""),
            root: root.to_owned(),
        });
    }
    Ok(lists.into_iter().map(|(path, _)| Source { path, is_needed: false }).collect())
}

/// The first line; `None` for a file that cannot be read, which is then ignored.
fn first_line(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let is_gzipped = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
    let plain: Box<dyn Read> =
        if is_gzipped { Box::new(flate2::read::MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut line = Vec::new();
    BufReader::new(plain.take(MOST_HEADER_BYTES)).read_until(b'\n', &mut line).ok()?;
    Some(String::from_utf8_lossy(&line).into_owned())
}
