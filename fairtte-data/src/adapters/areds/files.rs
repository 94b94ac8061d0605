//! Finds the tables of dbGaP, the directory map and the list of photographs below the root folder.
//!
//! The names that dbGaP gives carry study, table, version and consent group
//! (`phs000001.v3.pht000375.v2.p1.c1.fundus.EDO.txt`); only the table decides here, so other versions are found too, in
//! whatever folder they were unpacked. A table may be there plain and gzipped, or twice, as long as its rows are the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::AredsConfig;
use super::dbgap::DbgapTable;
use super::images::walk_error;
use crate::DataError;

/// A kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    /// Marks in the lower-cased name, one of which must be there.
    marks: [&'static str; 2],
    /// The name for messages.
    pattern: &'static str,
}

const FUNDUS: Kind =
    Kind { marks: [".pht000375.", ".fundus."], pattern: "phs000001.*.pht000375.*.c{1,2}.fundus.*.txt(.gz)" };
const ENROLMENT: Kind = Kind {
    marks: [".pht000373.", ".enrollment_randomization."],
    pattern: "phs000001.*.pht000373.*.c{1,2}.enrollment_randomization.*.txt(.gz)",
};

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
}

impl Files {
    /// Looks for the files below `config.root`; the folder of images, if one is named, is not searched.
    ///
    /// # Errors
    /// [`DataError::Read`] for a folder or table that cannot be read, [`DataError::InvalidTable`] where a table is
    /// missing, encrypted, or there with two contents.
    pub fn find(config: &AredsConfig) -> Result<Self, DataError> {
        let files = files_below(config)?;
        let in_root = |path: &&PathBuf| path.parent() == Some(config.root.as_path());
        let list = files.iter().filter(in_root).filter(|path| is_image_list(&lower_case_name(path)));
        Ok(Self {
            fundus: tables(FUNDUS, &files, &config.root)?,
            enrolment: tables(ENROLMENT, &files, &config.root)?,
            map: match &config.mapping {
                Some(path) => Some(path.clone()),
                None => only("mapping", files.iter().filter(|path| is_map(&lower_case_name(path))))?,
            },
            image_list: if config.images.is_some() { None } else { only("images", list)? },
        })
    }
}

fn files_below(config: &AredsConfig) -> Result<Vec<PathBuf>, DataError> {
    let root = &config.root;
    let is_images = |path: &Path| config.images.as_deref() == Some(path) && path != root.as_path();
    let entries = WalkDir::new(root).follow_links(true).sort_by_file_name().into_iter();
    let mut files = Vec::new();
    for entry in entries.filter_entry(|entry| !is_images(entry.path())) {
        let entry = entry.map_err(|error| walk_error(root, error))?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        // Among hundreds of thousands of photographs, only text is of interest here.
        let is_text = [".txt", ".txt.gz", ".ncbi_enc"].iter().any(|ending| name.ends_with(ending));
        if is_text && !name.starts_with('.') && entry.file_type().is_file() {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

fn lower_case_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default()
}

fn is_map(name: &str) -> bool {
    name.contains("imagedir") && name.contains("id2") && name.ends_with(".txt")
}

fn is_image_list(name: &str) -> bool {
    name.contains("images") && name.ends_with(".txt") && !is_map(name) && !name.starts_with("phs")
}

/// The one file of `found`, or none.
fn only<'a>(key: &'static str, mut found: impl Iterator<Item = &'a PathBuf>) -> Result<Option<PathBuf>, DataError> {
    let Some(first) = found.next() else { return Ok(None) };
    if let Some(second) = found.next() {
        let detail = format!("{} could be meant as well, name one of them by the key {key}", second.display());
        return Err(DataError::invalid_table(first, detail));
    }
    Ok(Some(first.clone()))
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
        let looked_for = format!("no file named like {} is in this folder or below", kind.pattern);
        return Err(DataError::invalid_table(root, looked_for));
    }
    copies.values().map(|paths| read_copies(paths)).collect()
}

/// Reads every copy of one table; they must hold the same.
fn read_copies(paths: &[&PathBuf]) -> Result<DbgapTable, DataError> {
    let mut first: Option<DbgapTable> = None;
    for path in paths {
        let table = DbgapTable::read(path)?;
        match &first {
            None => first = Some(table),
            Some(first) if first.holds_the_same(&table) => {}
            Some(first) => {
                let detail = format!("{} has the same name and other rows, expected one of them", first.path().display());
                return Err(DataError::invalid_table(path, detail));
            }
        }
    }
    Ok(first.expect("a name is only listed with a path"))
}

/// The consent groups that the names of `tables` announce: `c1, c2`; `unnamed` for a name without one.
pub(super) fn consent_groups(tables: &[DbgapTable]) -> String {
    let group = |table: &DbgapTable| {
        let name = lower_case_name(table.path());
        let is_group = |part: &&str| part.strip_prefix('c').is_some_and(|digits| {
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        name.split('.').find(is_group).unwrap_or("unnamed").to_owned()
    };
    let mut groups: Vec<String> = tables.iter().map(group).collect();
    groups.dedup();
    groups.join(", ")
}
