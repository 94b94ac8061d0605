//! Train, validation and test parts by subject.
//!
//! Subjects are ordered by a keyed hash of their identity (BLAKE3, keyed by the `split` stream of the seed) and the
//! order is cut into `floor(train n)`, `floor(validation n)` and the rest. A subject's place in the order depends on
//! nothing but its identity and the seed: adding images never moves a subject, and adding a subject moves at most three
//! others (one over the first cut, two over the second).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::Path;

use fairtte_metrics::SubjectId;
use fairtte_metrics::seeds::stream;
use rand::Rng as _;
use serde::{Deserialize, Serialize};

use crate::DataError;
use crate::cohort::Cohort;
use crate::table::{ColumnValues, Table, write_csv};

/// Fractions of the subjects; each in (0, 1), together 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SplitConfig {
    /// Fraction for fitting, in (0, 1); 0.6 if not given.
    pub train: f64,
    /// Fraction for choosing when to stop, in (0, 1); 0.2 if not given.
    pub validation: f64,
    /// Fraction for the reported numbers, in (0, 1); 0.2 if not given.
    pub test: f64,
}

impl Default for SplitConfig {
    fn default() -> Self {
        Self { train: 0.6, validation: 0.2, test: 0.2 }
    }
}

impl SplitConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`] naming the key.
    pub fn check(&self) -> Result<(), DataError> {
        let fractions = [("split.train", self.train), ("split.validation", self.validation), ("split.test", self.test)];
        for (key, value) in fractions {
            if !(value > 0.0 && value < 1.0) {
                return Err(DataError::InvalidSetting {
                    key,
                    value: value.to_string(),
                    expected: "a number in (0, 1)",
                });
            }
        }
        let sum = self.train + self.validation + self.test;
        if (sum - 1.0).abs() > 1e-9 {
            return Err(DataError::InvalidSetting {
                key: "split",
                value: format!("{} + {} + {} = {sum}", self.train, self.validation, self.test),
                expected: "fractions that add up to 1",
            });
        }
        Ok(())
    }

    /// Subjects in the train and validation parts of `n`; the rest is the test part.
    fn counts(&self, n: usize) -> (usize, usize) {
        (floor_of(self.train, n), floor_of(self.validation, n))
    }
}

/// `floor(fraction * n)`, where a product that is whole but for the rounding of the fraction counts as whole
/// (0.6 * 5 must be 3, 0.29 * 100 must be 29).
fn floor_of(fraction: f64, n: usize) -> usize {
    let exact = fraction * n as f64;
    let slack = 1e-9;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and n")]
    let floor = (exact + slack).floor() as usize;
    floor
}

/// A part of the split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// For fitting.
    Train,
    /// For choosing when to stop.
    Validation,
    /// For the reported numbers.
    Test,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    /// The name in `split.csv`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which part each subject and each row of a cohort belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    parts: BTreeMap<SubjectId, Part>,
    rows: [Vec<usize>; 3],
}

impl Split {
    /// Rows of the cohort in `part`, ascending.
    pub fn rows(&self, part: Part) -> &[usize] {
        &self.rows[part as usize]
    }

    /// Part of a subject; `None` if the split does not know it.
    pub fn part(&self, subject: &SubjectId) -> Option<Part> {
        self.parts.get(subject).copied()
    }

    /// Number of subjects in `part`.
    pub fn n_subjects(&self, part: Part) -> usize {
        self.parts.values().filter(|p| **p == part).count()
    }

    fn new(cohort: &Cohort, parts: BTreeMap<SubjectId, Part>) -> Result<Self, SubjectId> {
        let mut rows = [Vec::new(), Vec::new(), Vec::new()];
        for (row, sample) in cohort.samples.iter().enumerate() {
            let part = parts.get(&sample.subject_id).ok_or_else(|| sample.subject_id.clone())?;
            rows[*part as usize].push(row);
        }
        Ok(Self { parts, rows })
    }

    fn refuse_empty_parts(&self) -> Result<(), DataError> {
        let empty = Part::ALL.into_iter().find(|&part| self.rows(part).is_empty());
        empty.map_or(Ok(()), |part| Err(DataError::EmptyPart { part, n_subjects: self.parts.len() }))
    }

    /// Writes `subject_id,part`, one line per subject in the order of the identities, atomically.
    ///
    /// # Errors
    /// [`DataError::Write`] naming `path`.
    pub fn write_csv(&self, path: &Path) -> Result<(), DataError> {
        let columns = vec![
            ("subject_id".to_owned(), ColumnValues::text(self.parts.keys())),
            ("part".to_owned(), ColumnValues::text(self.parts.values())),
        ];
        write_csv(path, columns)
    }

    /// Reads what [`write_csv`](Self::write_csv) wrote, or a split made by hand, for the samples of `cohort`.
    ///
    /// Subjects that the cohort does not have are kept in the file's split and have no rows.
    ///
    /// # Errors
    /// [`DataError::SubjectInTwoParts`] with the row, [`DataError::SubjectWithoutPart`] for a subject of the cohort that
    /// the file lacks, [`DataError::InvalidCell`] for another part than `train`, `validation` and `test`,
    /// [`DataError::EmptyPart`], and what [`Table::read`] returns.
    pub fn read_csv(path: &Path, cohort: &Cohort) -> Result<Self, DataError> {
        let table = Table::read(path)?;
        let subjects = table.text("subject_id")?;
        let names = table.text("part")?;
        let mut parts: HashMap<SubjectId, Part> = HashMap::new();
        for (index, (subject, name)) in subjects.into_iter().zip(names).enumerate() {
            let (subject, name) = (subject.unwrap_or_default(), name.unwrap_or_default());
            let second =
                Part::ALL.into_iter().find(|part| part.name() == name).ok_or_else(|| DataError::InvalidCell {
                    column: "part".to_owned(),
                    sample: subject.clone(),
                    value: format!("\"{name}\""),
                    expected: "train, validation or test",
                    place: table.place(index),
                })?;
            if let Some(first) = parts.insert(SubjectId::new(&subject), second)
                && first != second
            {
                return Err(DataError::SubjectInTwoParts { subject, first, second, place: table.place(index) });
            }
        }
        let without_part =
            |subject: SubjectId| DataError::SubjectWithoutPart { subject: subject.to_string(), path: path.to_owned() };
        let split = Self::new(cohort, parts.into_iter().collect()).map_err(without_part)?;
        split.refuse_empty_parts()?;
        Ok(split)
    }
}

/// Splits the subjects of `cohort`; all samples of a subject are in the same part.
///
/// # Errors
/// [`DataError::InvalidSetting`] for fractions out of range, [`DataError::EmptyPart`] if there are too few subjects.
#[expect(clippy::missing_panics_doc, reason = "every subject of the cohort is given a part just before")]
pub fn split_by_subject(cohort: &Cohort, config: &SplitConfig, seed: u64) -> Result<Split, DataError> {
    config.check()?;
    let mut key = [0_u8; blake3::KEY_LEN];
    stream(seed, "split", &[]).fill_bytes(&mut key);
    let subjects: HashSet<&SubjectId> = cohort.samples.iter().map(|sample| &sample.subject_id).collect();
    let hash = |subject: &SubjectId| *blake3::keyed_hash(&key, subject.as_str().as_bytes()).as_bytes();
    let mut ordered: Vec<_> = subjects.into_iter().map(|subject| (hash(subject), subject)).collect();
    ordered.sort_unstable();
    let (n_train, n_validation) = config.counts(ordered.len());
    let part = |position| match position {
        _ if position < n_train => Part::Train,
        _ if position < n_train + n_validation => Part::Validation,
        _ => Part::Test,
    };
    let parts = ordered.iter().enumerate().map(|(position, (_, subject))| ((*subject).clone(), part(position)));
    let split = Split::new(cohort, parts.collect()).expect("every subject of the cohort has a part");
    split.refuse_empty_parts()?;
    Ok(split)
}
