//! The samples that can be explained: of the run's own data, or of others.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use fairtte_data::cohort::Exclusions;
use fairtte_data::loader::Sampling;
use fairtte_data::table::Table;
use fairtte_data::{Cohort, FittedAttributes, HostBatch, ImageStore, Loader};

use super::part_of;
use crate::CliError;
use crate::args::Explain;
use crate::commands::predict::Member;
use crate::commands::predict::other::{OtherData, Outcomes, groups_of};
use crate::prepared::{Inputs, label};
use crate::progress::say;
use crate::run_file::RunFile;
use crate::run_folder::RunFolder;

/// Samples with their inputs.
pub(super) struct Source {
    pub(super) cohort: Cohort,
    pub(super) inputs: Inputs,
    pub(super) has_outcomes: bool,
    /// Part of every subject of the run's own data; empty for other data.
    pub(super) parts: BTreeMap<String, String>,
    /// In words.
    pub(super) name: String,
    /// Images that cannot be decoded are here.
    exclusions: Exclusions,
    other: OtherData,
}

impl Source {
    /// Opens what the arguments name. Of the run's own images only those are decoded that are needed, unless all are already.
    pub(super) fn open(arguments: &Explain, member: &Member, output: &Path) -> Result<Self, CliError> {
        if arguments.other.is_given() {
            let ignored = Outcomes { ignored: true, time_factor: None };
            let (unit, attributes) = (&member.record.time_unit, &member.record.attributes);
            let other = OtherData::read(&arguments.other, output, &member.run, unit, attributes, ignored)?;
            other.notes.iter().for_each(|note| say(format!("note: {note}")));
            let rows = named_rows(&arguments.samples, &other.cohort, &other.exclusions)?;
            let name = other.source.display().to_string();
            return Self::decoded(member, other, &rows, BTreeMap::new(), name);
        }
        arguments.other.require_none()?;
        let (cohort, exclusions) = label(&member.run)?;
        let parts = parts(&RunFolder::new(&arguments.run).split())?;
        let rows = if arguments.worst.is_some() {
            let part = part_of(arguments.part).name();
            let is_in = |row: &usize| parts.get(cohort.samples[*row].subject_id.as_str()).is_some_and(|of| of == part);
            (0..cohort.n()).filter(is_in).collect()
        } else {
            named_rows(&arguments.samples, &cohort, &exclusions)?
        };
        let own = OtherData {
            file: RunFile { cache: Some(member.run.cache()), ..member.run.clone() },
            cohort,
            exclusions,
            has_outcomes: true,
            source: arguments.run.clone(),
            notes: Vec::new(),
        };
        let name = if arguments.worst.is_some() {
            format!("{} part of the run", part_of(arguments.part).name())
        } else {
            "the run's own data".to_owned()
        };
        Self::decoded(member, own, &rows, parts, name)
    }

    fn decoded(
        member: &Member,
        mut other: OtherData,
        rows: &[usize],
        parts: BTreeMap<String, String>,
        name: String,
    ) -> Result<Self, CliError> {
        let all_are_decoded = !member.run.is_tabular()
            && ImageStore::estimate(&other.cohort, &member.run.image, &other.file.cache())?.n_bytes_missing == 0;
        let mut exclusions = if all_are_decoded { other.exclusions.clone() } else { Exclusions::new(rows.len()) };
        let whole = if all_are_decoded { other.cohort.clone() } else { other.cohort.select(rows) };
        let wanted: HashSet<_> = rows.iter().map(|row| other.cohort.samples[*row].sample_id.clone()).collect();
        let (cohort, inputs) = member.inputs(&other.file, whole, &mut exclusions)?;
        let kept: Vec<usize> = (0..cohort.n()).filter(|row| wanted.contains(&cohort.samples[*row].sample_id)).collect();
        // The features of a table are one row per sample of the cohort; a store is asked by the name of the sample.
        let cohort = if matches!(inputs, Inputs::Images(_)) { cohort.select(&kept) } else { cohort };
        other.cohort = cohort.clone();
        let has_outcomes = other.has_outcomes;
        Ok(Self { cohort, inputs, has_outcomes, parts, name, exclusions, other })
    }

    /// The groups of the samples by the attributes of the run.
    pub(super) fn groups(&self, member: &Member) -> Result<FittedAttributes, CliError> {
        groups_of(&self.other.cohort, &member.record.attributes, &[])
    }

    /// The row of a sample.
    pub(super) fn row(&self, sample: &str) -> Result<usize, CliError> {
        let found = self.cohort.samples.iter().position(|known| known.sample_id.as_str() == sample);
        found.ok_or_else(|| {
            let excluded = self.exclusions.list().iter().find(|row| row.sample_id.as_str() == sample);
            let why = excluded.map_or_else(|| "it has no input".to_owned(), |row| row.source.clone());
            CliError::setting("--samples", format!("\"{sample}\" cannot be explained: {why}"), None)
        })
    }

    /// Part of the run that a sample is in.
    pub(super) fn part(&self, row: usize) -> Option<&str> {
        self.parts.get(self.cohort.samples[row].subject_id.as_str()).map(String::as_str)
    }
}

/// The input of one sample, as the network reads it.
pub(super) fn input(loader: &Loader<'_>, row: usize) -> Result<HostBatch, CliError> {
    let mut batches = loader.batches(&[row], 1, &Sampling::Sequential, 0, 0)?;
    batches.next().ok_or_else(|| CliError::Bug(format!("no batch of row {row}")))
}

/// Part of every subject.
fn parts(path: &Path) -> Result<BTreeMap<String, String>, CliError> {
    let table = Table::read(path)?;
    let (subjects, parts) = (table.text("subject_id")?, table.text("part")?);
    Ok(subjects.into_iter().zip(parts).filter_map(|(subject, part)| Some((subject?, part?))).collect())
}

/// The rows of the named samples.
fn named_rows(samples: &[String], cohort: &Cohort, exclusions: &Exclusions) -> Result<Vec<usize>, CliError> {
    let row = |sample: &String| {
        let found = cohort.samples.iter().position(|known| known.sample_id.as_str() == sample);
        found.ok_or_else(|| {
            let excluded = exclusions.list().iter().find(|row| row.sample_id.as_str() == sample);
            let message = if let Some(row) = excluded {
                format!("\"{sample}\" was excluded: {}", row.source)
            } else {
                let known: Vec<&str> = cohort.samples.iter().take(2).map(|known| known.sample_id.as_str()).collect();
                let (n, known) = (super::samples(cohort.n()), known.join(", "));
                format!("\"{sample}\" is unknown, expected one of the {n} of {} ({known}, ..)", cohort.name)
            };
            CliError::setting("--samples", message, None)
        })
    };
    samples.iter().map(row).collect()
}
