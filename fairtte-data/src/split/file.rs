//! Splits from a file of the user: every row gives a subject or a sample its part.
//!
//! | column | content |
//! |---|---|
//! | `sample_id` or `subject_id` | who; with both, `sample_id` decides and `subject_id` must agree with the cohort |
//! | `part` (or `split`) | `train`, `validation` (`validate`, `valid`, `val`) or `test`, in any case |
//!
//! A `subject_id` that is not a subject but a unit of one (an eye such as `9001-RE`) counts for its subject. Parts
//! always belong to subjects: a file that puts a subject, or the fellow eye, into different parts is an error that
//! names the rows. Every subject of the cohort needs a part. Samples the file does not name follow their subject; rows
//! about samples outside the cohort (excluded later) and repeated rows are counted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use fairtte_metrics::SubjectId;
use serde::{Deserialize, Serialize};

use crate::DataError;
use crate::cohort::Cohort;
use crate::table::Table;

use super::leak::{Leak, Placed};
use super::{Part, Split};

/// Maximum number of subjects and leaks named in an error or a note; the rest is counted.
pub(super) const N_NAMED: usize = 5;

/// The column that identifies the rows of a split file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKey {
    /// `subject_id`.
    Subject,
    /// `sample_id`.
    Sample,
}

impl FileKey {
    fn column(self) -> &'static str {
        match self {
            Self::Subject => "subject_id",
            Self::Sample => "sample_id",
        }
    }
}

/// The report on a split file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SplitFileReport {
    /// The file.
    pub path: PathBuf,
    /// BLAKE3 of its bytes, in hexadecimal digits.
    pub blake3: String,
    /// The column that identifies its rows.
    pub key: FileKey,
    /// Rows with a part.
    pub n_rows: usize,
    /// Rows that repeat an earlier row.
    pub n_repeated: usize,
    /// Rows about subjects or samples that the cohort does not have.
    pub n_unknown: usize,
    /// The first few of those.
    pub unknown: Vec<String>,
    /// Rows that name an eye (or another followed unit) instead of a subject.
    pub n_by_unit: usize,
    /// Samples of the cohort that the file does not name and that follow their subject.
    pub n_following: usize,
}

impl SplitFileReport {
    /// Notes for the user, one sentence each; none for a file that matches the cohort.
    pub fn notes(&self) -> Vec<String> {
        let column = self.key.column();
        let named = self.unknown.iter().map(|key| format!("\"{key}\"")).collect::<Vec<_>>().join(", ");
        let more = if self.n_unknown > self.unknown.len() { ", .." } else { "" };
        let notes = [
            (
                self.n_unknown,
                format!("rows with a {column} that the cohort does not have: {} ({named}{more})", self.n_unknown),
            ),
            (self.n_repeated, format!("rows that repeat an earlier row: {}", self.n_repeated)),
            (
                self.n_by_unit,
                format!("rows that name a unit (an eye) and assign its whole subject: {}", self.n_by_unit),
            ),
            (self.n_following, format!("samples not in the file that follow their subject: {}", self.n_following)),
        ];
        notes.into_iter().filter(|(n, _)| *n > 0).map(|(_, note)| note).collect()
    }
}

impl fmt::Display for SplitFileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} rows by {}", self.path.display(), self.n_rows, self.key.column())?;
        self.notes().iter().try_for_each(|note| write!(f, "; {note}"))
    }
}

impl Split {
    /// Reads a split file for the samples of `cohort`; a leaking split is an error.
    ///
    /// Subjects of the file that the cohort does not have are kept in the split and have no rows.
    ///
    /// # Errors
    /// [`DataError::LeakingSplit`] with the rows, [`DataError::SubjectWithoutPart`] for subjects of the cohort that the
    /// file lacks, [`DataError::InvalidCell`] for an unknown part, an empty cell or a subject that differs from the
    /// cohort's, [`DataError::AmbiguousColumn`] for `part` beside `split`, [`DataError::EmptyPart`], and what
    /// [`Table::read`] returns.
    pub fn from_file(path: &Path, cohort: &Cohort) -> Result<(Self, SplitFileReport), DataError> {
        let file = SplitFile::read(path)?;
        let mut placing = Placing::new(cohort, file.key);
        for row in &file.rows {
            placing.place(row, &file)?;
        }
        placing.refuse_leaks(path)?;
        placing.refuse_missing(path)?;
        let report = placing.report(&file)?;
        let parts = placing.parts.into_iter().map(|(subject, claims)| (SubjectId::new(subject), claims.first.part));
        let split = Self::new(cohort, parts.collect());
        let split = split.map_err(|subject| subject_without_part(&[subject.as_str()], path))?;
        split.refuse_empty_parts()?;
        Ok((split, report))
    }
}

/// The rows of a split file.
struct SplitFile {
    table: Table,
    key: FileKey,
    rows: Vec<FileRow>,
}

struct FileRow {
    /// Position in the table.
    index: usize,
    key: String,
    /// The subject given with a sample.
    subject: Option<String>,
    part: Part,
}

impl SplitFile {
    fn read(path: &Path) -> Result<Self, DataError> {
        let table = Table::read(path)?;
        let key = if table.has("sample_id") { FileKey::Sample } else { FileKey::Subject };
        let keys = table.text(key.column())?;
        let beside = key == FileKey::Sample && table.has("subject_id");
        let subjects = if beside { table.text("subject_id")? } else { vec![None; keys.len()] };
        let column = match (table.has("part"), table.has("split")) {
            (true, true) => {
                return Err(DataError::AmbiguousColumn { first: "part", second: "split", path: path.to_owned() });
            }
            (false, true) => "split",
            _ => "part",
        };
        let parts = table.text(column)?;
        let mut rows = Vec::with_capacity(keys.len());
        for (index, ((name, subject), cell)) in keys.into_iter().zip(subjects).zip(parts).enumerate() {
            if name.is_none() && cell.is_none() && subject.is_none() {
                continue;
            }
            let invalid = |column: &str, sample: String, value: String, expected| DataError::InvalidCell {
                column: column.to_owned(),
                sample,
                value,
                expected,
                place: table.place(index),
            };
            let Some(name) = name else {
                let sample = format!("row {}", table.row(index));
                return Err(invalid(key.column(), sample, "empty".to_owned(), "an identity"));
            };
            let cell = cell.unwrap_or_default();
            let part = Part::from_cell(&cell);
            let expected = "train, validation (valid, val) or test";
            let part = part.ok_or_else(|| invalid(column, name.clone(), format!("\"{cell}\""), expected))?;
            rows.push(FileRow { index, key: name, subject, part });
        }
        Ok(Self { table, key, rows })
    }
}

/// The rows of a file about one subject.
struct Claims {
    first: Placed,
    /// The first row with a different part.
    second: Option<Placed>,
}

/// Processes a file row by row and records the part of each subject of the cohort.
struct Placing<'a> {
    cohort: &'a Cohort,
    key: FileKey,
    samples: HashMap<&'a str, usize>,
    subjects: HashSet<&'a str>,
    /// The subject of every eye; an eye name that two subjects share is not included.
    units: HashMap<&'a str, &'a str>,
    parts: BTreeMap<String, Claims>,
    seen: HashSet<String>,
    named_samples: HashSet<usize>,
    unknown: Vec<String>,
    n_repeated: usize,
    n_by_unit: usize,
}

impl<'a> Placing<'a> {
    fn new(cohort: &'a Cohort, key: FileKey) -> Self {
        let mut units: HashMap<&str, Option<&str>> = HashMap::new();
        for sample in &cohort.samples {
            let subject = sample.subject_id.as_str();
            if let Some(unit) = sample.unit.as_deref() {
                let of = units.entry(unit).or_insert(Some(subject));
                *of = of.filter(|of| *of == subject);
            }
        }
        let samples = cohort.samples.iter().enumerate();
        Self {
            cohort,
            key,
            samples: samples.map(|(row, sample)| (sample.sample_id.as_str(), row)).collect(),
            subjects: cohort.samples.iter().map(|sample| sample.subject_id.as_str()).collect(),
            units: units.into_iter().filter_map(|(unit, subject)| Some((unit, subject?))).collect(),
            parts: BTreeMap::new(),
            seen: HashSet::new(),
            named_samples: HashSet::new(),
            unknown: Vec::new(),
            n_repeated: 0,
            n_by_unit: 0,
        }
    }

    fn place(&mut self, row: &FileRow, file: &SplitFile) -> Result<(), DataError> {
        if !self.seen.insert(row.key.clone()) {
            self.n_repeated += 1;
        }
        let mut placed = Placed { part: row.part, sample: None, unit: None, row: Some(file.table.row(row.index)) };
        let subject = match self.key {
            FileKey::Sample => {
                let Some(&position) = self.samples.get(row.key.as_str()) else {
                    self.unknown.push(row.key.clone());
                    return Ok(());
                };
                let sample = &self.cohort.samples[position];
                refuse_other_subject(row, &sample.subject_id, file)?;
                self.named_samples.insert(position);
                placed.sample = Some(sample.sample_id.clone());
                placed.unit.clone_from(&sample.unit);
                sample.subject_id.as_str()
            }
            FileKey::Subject => match self.units.get(row.key.as_str()) {
                _ if self.subjects.contains(row.key.as_str()) => row.key.as_str(),
                Some(subject) => {
                    self.n_by_unit += 1;
                    placed.unit = Some(row.key.clone());
                    subject
                }
                None => {
                    self.unknown.push(row.key.clone());
                    row.key.as_str()
                }
            },
        };
        match self.parts.get_mut(subject) {
            Some(Claims { first, second }) if second.is_none() && first.part != placed.part => *second = Some(placed),
            Some(_) => {}
            None => {
                self.parts.insert(subject.to_owned(), Claims { first: placed, second: None });
            }
        }
        Ok(())
    }

    fn refuse_leaks(&self, path: &Path) -> Result<(), DataError> {
        let leak = |(subject, Claims { first, second }): (&String, &Claims)| {
            let (subject, first, second) = (SubjectId::new(subject), first.clone(), second.clone()?);
            let are_fellows = first.unit.is_some() && second.unit.is_some() && first.unit != second.unit;
            Some(if are_fellows {
                Leak::Fellow { subject, first, second }
            } else {
                Leak::Subject { subject, first, second }
            })
        };
        let leaks: Vec<Leak> = self.parts.iter().filter_map(leak).collect();
        refuse(path, leaks)
    }

    fn refuse_missing(&self, path: &Path) -> Result<(), DataError> {
        let subjects: BTreeSet<&str> = self.subjects.iter().copied().collect();
        let missing: Vec<&str> = subjects.into_iter().filter(|subject| !self.parts.contains_key(*subject)).collect();
        if missing.is_empty() { Ok(()) } else { Err(subject_without_part(&missing, path)) }
    }

    fn report(&self, file: &SplitFile) -> Result<SplitFileReport, DataError> {
        let path = file.table.path().to_owned();
        let bytes = std::fs::read(&path).map_err(|source| DataError::read(&path, source))?;
        let n_following = match self.key {
            FileKey::Sample => self.cohort.n() - self.named_samples.len(),
            FileKey::Subject => 0,
        };
        Ok(SplitFileReport {
            path,
            blake3: blake3::hash(&bytes).to_hex().to_string(),
            key: self.key,
            n_rows: file.rows.len(),
            n_repeated: self.n_repeated,
            n_unknown: self.unknown.len(),
            unknown: self.unknown.iter().take(N_NAMED).cloned().collect(),
            n_by_unit: self.n_by_unit,
            n_following,
        })
    }
}

fn refuse_other_subject(row: &FileRow, subject: &SubjectId, file: &SplitFile) -> Result<(), DataError> {
    match &row.subject {
        Some(other) if other != subject.as_str() => Err(DataError::InvalidCell {
            column: "subject_id".to_owned(),
            sample: row.key.clone(),
            value: format!("\"{other}\""),
            expected: "the subject that the cohort gives the sample",
            place: file.table.place(row.index),
        }),
        _ => Ok(()),
    }
}

fn subject_without_part(missing: &[&str], path: &Path) -> DataError {
    let subjects = missing.iter().take(N_NAMED).map(|subject| (*subject).to_owned()).collect();
    DataError::SubjectWithoutPart { subjects, n_subjects: missing.len(), path: path.to_owned() }
}

/// The error over `leaks`, in the order of the rows; no error if there are none.
pub(super) fn refuse(path: &Path, mut leaks: Vec<Leak>) -> Result<(), DataError> {
    if leaks.is_empty() {
        return Ok(());
    }
    leaks.sort_by_key(Leak::row);
    let n_leaks = leaks.len();
    leaks.truncate(N_NAMED);
    Err(DataError::LeakingSplit { leaks, n_leaks, path: path.to_owned() })
}

impl Leak {
    fn row(&self) -> Option<usize> {
        match self {
            Self::Subject { second, .. } | Self::Fellow { second, .. } | Self::Image { second, .. } => second.row,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_without_anything_to_say_is_one_line() {
        let report = SplitFileReport {
            path: "split.csv".into(),
            blake3: String::new(),
            key: FileKey::Sample,
            n_rows: 3,
            n_repeated: 0,
            n_unknown: 0,
            unknown: Vec::new(),
            n_by_unit: 0,
            n_following: 0,
        };
        assert_eq!(report.to_string(), "split.csv: 3 rows by sample_id");
        let noted = SplitFileReport { n_unknown: 2, unknown: vec!["x".to_owned()], n_repeated: 1, ..report };
        assert_eq!(
            noted.to_string(),
            "split.csv: 3 rows by sample_id; rows with a sample_id that the cohort does not have: 2 (\"x\", ..); rows that repeat an earlier row: 1"
        );
    }
}
