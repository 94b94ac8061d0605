//! Finds the tables of dbGaP, the directory map and the list of photographs below the root folder.
//!
//! The names that dbGaP gives carry study, table, version and consent group
//! (`phs000001.v3.pht000375.v2.p1.c1.fundus.EDO.txt`); only the table is compared here, so other versions are found
//! too, in whatever folder they were unpacked. A table may exist both plain and gzipped, or twice, if its rows are the
//! same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::AredsConfig;
use super::dbgap::DbgapTable;
use super::images::{Below, files_below};
use crate::DataError;

/// A kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    /// The content of the tables, for messages.
    what: &'static str,
    /// Parts of the lower-cased name, one of which must occur.
    marks: [&'static str; 2],
    /// The name for messages.
    pattern: &'static str,
}

const FUNDUS: Kind = Kind {
    what: "the fundus gradings of AREDS",
    marks: [".pht000375.", ".fundus."],
    pattern: "phs000001.*.pht000375.*.c{1,2}.fundus.*.txt(.gz)",
};
const ENROLMENT: Kind = Kind {
    what: "the enrolment table of AREDS",
    marks: [".pht000373.", ".enrollment_randomization."],
    pattern: "phs000001.*.pht000373.*.c{1,2}.enrollment_randomization.*.txt(.gz)",
};

/// The usual name of the list of photographs, in lower case.
const IMAGE_LIST: &str = "areds_images.txt";

/// Every file that the adapter reads before images.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Files {
    /// Gradings, one table per consent group.
    pub fundus: Vec<DbgapTable>,
    /// Enrolment, one table per consent group.
    pub enrolment: Vec<DbgapTable>,
    /// `ID2` of the image directories.
    pub map: Option<PathBuf>,
    /// Text file with the paths of the photographs, in the root folder itself.
    pub image_list: Option<PathBuf>,
    /// Folders that cannot be listed.
    pub unlisted: Vec<PathBuf>,
}

impl Files {
    /// Finds the files below `config.root`; the folder of images, if one is given, is not searched.
    ///
    /// # Errors
    /// [`DataError::Read`] for a root or table that cannot be read, [`DataError::FileNotFound`] without a table of
    /// either kind, [`DataError::SeveralFiles`] if two files could be the map or the list, [`DataError::InvalidTable`]
    /// for a table that is damaged, exists only encrypted, or exists with two different contents.
    pub fn find(config: &AredsConfig) -> Result<Self, DataError> {
        // Only text files are relevant here, among hundreds of thousands of photographs.
        let is_text = |name: &str| {
            let name = name.to_lowercase();
            !name.starts_with('.') && [".txt", ".txt.gz", ".ncbi_enc"].iter().any(|ending| name.ends_with(ending))
        };
        let Below { files, unlisted } = files_below(&config.root, config.images.as_deref(), is_text)?;
        Ok(Self {
            fundus: tables(FUNDUS, &files, &config.root)?,
            enrolment: tables(ENROLMENT, &files, &config.root)?,
            map: find_map(config, &files)?,
            image_list: find_image_list(config, &files)?,
            unlisted,
        })
    }
}

fn find_map(config: &AredsConfig, files: &[PathBuf]) -> Result<Option<PathBuf>, DataError> {
    if config.mapping.is_some() {
        return Ok(config.mapping.clone());
    }
    let maps: Vec<&PathBuf> = files.iter().filter(|path| is_map(&lower_case_name(path))).collect();
    // The same file, plain and gzipped side by side, counts as one map.
    let is_packed_copy = |path: &Path| {
        path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"))
            && maps.iter().any(|other| path.with_extension("") == **other)
    };
    let maps = maps.iter().copied().filter(|path| !is_packed_copy(path));
    only("the map from image directories to ID2 (key mapping)", maps)
}

fn find_image_list(config: &AredsConfig, files: &[PathBuf]) -> Result<Option<PathBuf>, DataError> {
    if config.images.is_some() {
        return Ok(None);
    }
    let in_root = files.iter().filter(|path| path.parent() == Some(config.root.as_path()));
    let lists: Vec<&PathBuf> = in_root.filter(|path| is_image_list(&lower_case_name(path))).collect();
    if let Some(usual) = lists.iter().find(|path| lower_case_name(path) == IMAGE_LIST) {
        return Ok(Some((*usual).clone()));
    }
    only("the list of photographs (key images)", lists.into_iter())
}

fn lower_case_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default()
}

fn is_map(name: &str) -> bool {
    name.contains("imagedir") && name.contains("id2") && is_plain_text(name.strip_suffix(".gz").unwrap_or(name))
}

fn is_plain_text(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "txt")
}

fn is_image_list(name: &str) -> bool {
    name.contains("images") && is_plain_text(name) && !is_map(name) && !name.starts_with("phs")
}

/// The only file of `found`, or none.
fn only<'a>(what: &'static str, mut found: impl Iterator<Item = &'a PathBuf>) -> Result<Option<PathBuf>, DataError> {
    let Some(first) = found.next() else { return Ok(None) };
    match found.next() {
        None => Ok(Some(first.clone())),
        Some(second) => Err(DataError::SeveralFiles { what, first: first.clone(), second: second.clone() }),
    }
}

/// The tables of one kind, in the order of their names, each once.
fn tables(kind: Kind, files: &[PathBuf], root: &Path) -> Result<Vec<DbgapTable>, DataError> {
    let is_kind = |name: &str| kind.marks.iter().any(|mark| name.contains(mark)) && !name.contains("data_dict");
    let mut copies: BTreeMap<String, Vec<&PathBuf>> = BTreeMap::new();
    let mut encrypted = Vec::new();
    for path in files {
        let name = lower_case_name(path);
        if !is_kind(&name) {
            continue;
        }
        let stem = |name: &str| name.strip_suffix(".gz").unwrap_or(name).to_owned();
        match name.strip_suffix(".ncbi_enc") {
            Some(plain) => encrypted.push((stem(plain), path)),
            None => copies.entry(stem(&name)).or_default().push(path),
        }
    }
    if let Some((_, path)) = encrypted.iter().find(|(stem, _)| !copies.contains_key(stem)) {
        let detail = "it is encrypted and no decrypted copy is there, run vdb-decrypt on it first";
        return Err(DataError::invalid_table(path, detail));
    }
    if copies.is_empty() {
        return Err(DataError::FileNotFound {
            what: kind.what,
            looked_for: kind.pattern.to_owned(),
            root: root.to_owned(),
        });
    }
    copies.values().map(|paths| read_copies(paths)).collect()
}

/// Reads every copy of one table; all must have the same rows.
fn read_copies(paths: &[&PathBuf]) -> Result<DbgapTable, DataError> {
    let mut first: Option<DbgapTable> = None;
    for path in paths {
        let table = DbgapTable::read(path)?;
        match &first {
            None => first = Some(table),
            Some(first) if first.holds_the_same(&table) => {}
            Some(first) => {
                let detail =
                    format!("{} has the same name and different rows, expected one of them", first.path().display());
                return Err(DataError::invalid_table(path, detail));
            }
        }
    }
    Ok(first.expect("a name is only listed with a path"))
}

/// The consent groups in the names of `tables`: `c1, c2`; `unnamed` for a name without one.
pub(super) fn consent_groups(tables: &[DbgapTable]) -> String {
    let group = |table: &DbgapTable| {
        let name = lower_case_name(table.path());
        let is_group = |part: &&str| {
            part.strip_prefix('c')
                .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
        };
        name.split('.').find(is_group).unwrap_or("unnamed").to_owned()
    };
    let mut groups: Vec<String> = tables.iter().map(group).collect();
    groups.dedup();
    groups.join(", ")
}
