//! Which files are the tables: the image list by its header, the others by their names with or without a date.
//!
//! `DXSUM_PDXCONV_ADNIALL.csv`, `DXSUM_PDXCONV_ADNIALL_12Oct2023.csv`, `DXSUM_20Nov2024.csv` and `dxsum.csv` are all the
//! diagnostic summary; likewise `REGISTRY..csv` and `ADNIMERGE..csv`, each also gzipped. How folders are searched, and
//! which of several dated files is taken, is said in `find.rs`.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use super::cells::plain;
use super::config::{AdniConfig, AgeSource, DementiaCause, DiagnosisSource, MissingCurrent};
use super::image_list::{ID, SUBJECT};
use crate::DataError;
use crate::adapters::find::{CSV, Wanted, find_all, find_file, find_optional};

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
    /// [`DataError::FileNotFound`], [`DataError::SeveralFiles`], [`DataError::InvalidSetting`] for options that ask for
    /// what the source of diagnoses does not hold, [`DataError::Read`] for a root that cannot be listed.
    pub(super) fn find(config: &AdniConfig) -> Result<Self, DataError> {
        let from_merge = config.diagnosis_source == DiagnosisSource::Adnimerge;
        if from_merge && config.dementia_cause == DementiaCause::Alzheimer {
            return Err(only_in_dxsum("data.adni.dementia-cause", "alzheimer"));
        }
        if from_merge && config.missing_current == MissingCurrent::Conversion {
            return Err(only_in_dxsum("data.adni.missing-current", "conversion"));
        }
        let root = config.root.as_path();
        let needed = |given: &Option<PathBuf>, wanted| given.clone().map_or_else(|| find_file(root, wanted), Ok);
        let optional = |given: &Option<PathBuf>, wanted| {
            given.clone().map_or_else(|| find_optional(root, wanted), |path| Ok(Some(path)))
        };
        let image_list = config.image_list.clone().map_or_else(|| find_image_list(root), Ok)?;
        let adnimerge = if from_merge || config.age == AgeSource::Adnimerge {
            Some(needed(&config.adnimerge, &ADNIMERGE)?)
        } else {
            optional(&config.adnimerge, &ADNIMERGE)?
        };
        let diagnoses = match &adnimerge {
            Some(merge) if from_merge => merge.clone(),
            _ => needed(&config.dxsum, &DXSUM)?,
        };
        Ok(Self { image_list, diagnoses, registry: optional(&config.registry, &REGISTRY)?, adnimerge })
    }
}

fn only_in_dxsum(key: &'static str, value: &str) -> DataError {
    let expected = "the default where diagnosis-source is adnimerge, which does not hold what this needs";
    DataError::InvalidSetting { key, value: value.to_owned(), expected }
}

/// The only table below `root` with the header of an image list.
fn find_image_list(root: &Path) -> Result<PathBuf, DataError> {
    let tables = match find_all(root, &ANY_TABLE) {
        Err(DataError::FileNotFound { .. }) => Vec::new(),
        other => other?,
    };
    let mut lists = tables.into_iter().filter(|path| is_image_list(path));
    match (lists.next(), lists.next()) {
        (Some(list), None) => Ok(list),
        (Some(first), Some(second)) => Err(DataError::SeveralFiles { what: IMAGE_LIST, first, second }),
        (None, _) => Err(DataError::FileNotFound {
            what: IMAGE_LIST,
            looked_for: format!("a .csv or .csv.gz file whose header has \"{ID}\" and \"{SUBJECT}\""),
            root: root.to_owned(),
        }),
    }
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
