//! How a cohort was split, for the record of a run.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::assign::Parts;
use super::config::SplitConfig;
use super::file::SplitFileReport;
use super::strata::{Strata, name_of};
use super::{Part, Split};

/// A number for each part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PartCounts {
    /// Of the training part.
    pub train: usize,
    /// Of the validation part.
    pub validation: usize,
    /// Of the test part.
    pub test: usize,
}

impl PartCounts {
    /// The number of `part`.
    pub fn get(&self, part: Part) -> usize {
        match part {
            Part::Train => self.train,
            Part::Validation => self.validation,
            Part::Test => self.test,
        }
    }

    /// The numbers of all parts together.
    pub fn total(&self) -> usize {
        self.train + self.validation + self.test
    }

    fn add(&mut self, part: Part) {
        match part {
            Part::Train => self.train += 1,
            Part::Validation => self.validation += 1,
            Part::Test => self.test += 1,
        }
    }
}

/// Subjects of one stratum in each part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StratumCounts {
    /// For example `event=1, sex=F`; `all` where nothing is stratified.
    pub stratum: String,
    /// Subjects by part.
    pub subjects: PartCounts,
}

/// How a cohort was split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SplitRecord {
    /// In words, for example `fold 2 of 0..5 as test part, stratified by event`.
    pub method: String,
    /// The settings.
    pub config: SplitConfig,
    /// The seed; a split by file does not depend on it.
    pub seed: u64,
    /// Subjects by part.
    pub subjects: PartCounts,
    /// The same by stratum, in the order of the names.
    pub strata: Vec<StratumCounts>,
    /// The split file, if there was one.
    pub file: Option<SplitFileReport>,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
}

impl SplitRecord {
    pub(super) fn new(
        config: &SplitConfig,
        seed: u64,
        parts: &Parts<'_>,
        strata: &Strata<'_>,
        notes: Vec<String>,
    ) -> Self {
        let mut subjects = PartCounts::default();
        let mut by_stratum: BTreeMap<&[String], PartCounts> = BTreeMap::new();
        for (subject, part) in parts {
            subjects.add(*part);
            by_stratum.entry(&strata[subject]).or_default().add(*part);
        }
        let strata = by_stratum.into_iter().map(|(stratum, subjects)| (name_of(stratum), subjects));
        Self {
            method: config.to_string(),
            config: config.clone(),
            seed,
            subjects,
            strata: strata.map(|(stratum, subjects)| StratumCounts { stratum, subjects }).collect(),
            file: None,
            notes,
        }
    }

    pub(super) fn of_file(config: &SplitConfig, seed: u64, split: &Split, report: SplitFileReport) -> Self {
        let mut subjects = PartCounts::default();
        for part in split.parts.values() {
            subjects.add(*part);
        }
        Self {
            method: config.to_string(),
            config: config.clone(),
            seed,
            subjects,
            strata: vec![StratumCounts { stratum: name_of(&[]), subjects }],
            notes: report.notes(),
            file: Some(report),
        }
    }
}

impl fmt::Display for SplitRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PartCounts { train, validation, test } = self.subjects;
        write!(f, "{} (seed {}): {train} train, {validation} validation, {test} test", self.method, self.seed)?;
        self.notes.iter().try_for_each(|note| write!(f, "\nnote: {note}"))
    }
}
