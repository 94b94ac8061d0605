//! Train, validation and test parts by subject.
//!
//! Subjects are ordered by a keyed hash of their identity (BLAKE3, keyed by the `split` stream of the seed) and the
//! order is cut into `floor(train n)`, `floor(validation n)` and the rest. The position of a subject in the order
//! depends only on its identity and the seed: adding images never moves a subject, and adding a subject moves at most
//! three others (one over the first cut, two over the second). Folds, a site left out and strata cut the same order
//! differently (`assign.rs`, `strata.rs`); parts may also come from a file (`file.rs`), which is checked for leaks.
//!
//! With stratification, the stratum of a subject depends on all of its samples, so an image that changes it
//! (the first event of a subject, say) may move that subject and others; images that change no stratum move no subject.

mod assign;
mod config;
mod file;
mod identical;
pub(crate) mod leak;
pub(crate) mod part;
mod record;
mod rounding;
mod site;
mod strata;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use fairtte_metrics::SubjectId;

use crate::DataError;
use crate::cohort::AttributeConfig;
use crate::cohort::Cohort;
use crate::table::{ColumnValues, write_csv};

pub use config::{KFold, LeaveSiteOut, SplitConfig};
pub use file::{FileKey, SplitFileReport};
pub use identical::{IdenticalImages, IdenticalSet, check_identical_files, check_identical_images};
pub use leak::{Leak, Placed};
pub use part::Part;
pub use record::{PartCounts, SplitRecord, StratumCounts};
pub use summary::{PartSize, SplitRow, SplitTable};

use config::Way;

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

    /// The same parts without these rows in `part`: their subjects keep the part, which is what is recorded and what the validation
    /// and test part are distinguished by.
    #[must_use]
    pub fn without_rows(&self, part: Part, left_out: &std::collections::BTreeSet<usize>) -> Self {
        let mut split = self.clone();
        split.rows[part as usize].retain(|row| !left_out.contains(row));
        split
    }

    /// Part of a subject; `None` if it is not in the split.
    pub fn part(&self, subject: &SubjectId) -> Option<Part> {
        self.parts.get(subject).copied()
    }

    /// Number of subjects in `part`.
    pub fn n_subjects(&self, part: Part) -> usize {
        self.parts.values().filter(|p| **p == part).count()
    }

    /// Part of every row of the cohort that the split was made for.
    pub(crate) fn part_of_rows(&self) -> Vec<Part> {
        let n = self.rows.iter().flatten().max().map_or(0, |last| last + 1);
        let mut parts = vec![Part::Train; n];
        for part in Part::ALL {
            for &row in self.rows(part) {
                parts[row] = part;
            }
        }
        parts
    }

    /// The split of `cohort` by the parts of its subjects; `Err` holds the first subject without a part.
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

    /// Reads what [`write_csv`](Self::write_csv) wrote, or a split of the user, for the samples of `cohort`; see
    /// [`from_file`](Self::from_file).
    ///
    /// # Errors
    /// Those of [`from_file`](Self::from_file).
    pub fn read_csv(path: &Path, cohort: &Cohort) -> Result<Self, DataError> {
        Ok(Self::from_file(path, cohort)?.0)
    }
}

/// Splits the subjects of `cohort`; all samples of a subject are in the same part. Strata are formed from the raw
/// values of the attributes; [`make_split`] forms them from groups and records the procedure.
///
/// # Errors
/// Those of [`make_split`].
pub fn split_by_subject(cohort: &Cohort, config: &SplitConfig, seed: u64) -> Result<Split, DataError> {
    Ok(make_split(cohort, config, &[], seed)?.0)
}

/// Splits the subjects of `cohort` by `config`, and records the procedure.
///
/// `attributes` are the settings by which the attributes named in `stratify` become groups (a threshold, a reference
/// level, ..); an attribute without settings stratifies by its values. A threshold at the median is here the median of
/// the whole cohort, because strata are only used for the split.
///
/// # Errors
/// [`DataError::InvalidSetting`] for settings out of range, [`DataError::EmptyPart`] if there are too few subjects,
/// [`DataError::UnknownAttribute`] if the cohort lacks a column of [`SplitConfig::columns`],
/// [`DataError::TooManyLevels`] or [`DataError::InvalidAttribute`] for an attribute that gives no strata,
/// [`DataError::UnknownSite`] and [`DataError::MissingSite`] for a site to leave out, and for a file those of
/// [`Split::from_file`].
#[expect(clippy::missing_panics_doc, reason = "every subject of the cohort is given a part just before")]
pub fn make_split(
    cohort: &Cohort,
    config: &SplitConfig,
    attributes: &[AttributeConfig],
    seed: u64,
) -> Result<(Split, SplitRecord), DataError> {
    config.check()?;
    if let Way::File(path) = config.way() {
        let (split, report) = Split::from_file(path, cohort)?;
        let record = SplitRecord::of_file(config, seed, &split, report);
        return Ok((split, record));
    }
    let strata = strata::strata(cohort, &config.stratify, attributes)?;
    let order = assign::Order::new(cohort, &strata, seed, config.repeat);
    let mut notes = Vec::new();
    let parts = match config.way() {
        Way::KFold(folds) => order.cut_fold(folds, config.validation_of_rest()),
        Way::LeaveSiteOut(left_out) => {
            let subjects = site::subjects_at(cohort, left_out)?;
            notes.extend(subjects.notes(left_out));
            order.cut_left_out(&subjects.at_site, config.validation_of_rest())
        }
        Way::Fractions | Way::File(_) => order.cut_fractions([config.train, config.validation, config.test]),
    };
    let record = SplitRecord::new(config, seed, &parts, &strata, notes);
    let owned = parts.into_iter().map(|(subject, part)| (subject.clone(), part));
    let split = Split::new(cohort, owned.collect()).expect("every subject of the cohort has a part");
    split.refuse_empty_parts()?;
    Ok((split, record))
}

/// The distinct subjects of `cohort`, in arbitrary order.
fn subjects(cohort: &Cohort) -> HashSet<&SubjectId> {
    cohort.samples.iter().map(|sample| &sample.subject_id).collect()
}
