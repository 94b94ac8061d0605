//! What a resumed run must have in common with its beginning: the data.

use std::collections::BTreeSet;
use std::path::PathBuf;

use fairtte_data::cohort::OutcomeKind;
use fairtte_data::{Cohort, FittedAttributes, Part, Split, read_cohort};
use fairtte_metrics::Groups;

use super::{InputRecord, RunFolder, read_json};
use crate::CliError;

impl RunFolder {
    /// Requires that a resumed run has the same data as at its beginning: samples and outcomes, parts, groups and inputs.
    /// Otherwise a sample of the training part could now be in the test part.
    pub(crate) fn require_same_data(
        &self,
        cohort: &Cohort,
        split: &Split,
        attributes: &FittedAttributes,
        fingerprint: &str,
    ) -> Result<(), CliError> {
        self.require_same_tables(cohort, split, attributes)?;
        self.require_same_inputs(fingerprint)
    }

    /// Requires the same samples and outcomes, parts and groups.
    pub(crate) fn require_same_tables(
        &self,
        cohort: &Cohort,
        split: &Split,
        attributes: &FittedAttributes,
    ) -> Result<(), CliError> {
        let kept_groups = if self.cohort().exists() { require_same_cohort(self, cohort)? } else { Vec::new() };
        if self.split().exists() {
            require_same_split(self, cohort, split)?;
        }
        for kept in &kept_groups {
            require_same_groups(self, cohort, kept, attributes)?;
        }
        Ok(())
    }

    /// Requires the same inputs.
    pub(crate) fn require_same_inputs(&self, fingerprint: &str) -> Result<(), CliError> {
        let path = self.inputs();
        if !path.exists() {
            return Ok(());
        }
        let kept: InputRecord = read_json(&path)?;
        if kept.fingerprint == fingerprint {
            return Ok(());
        }
        Err(changed(path, "the pictures or columns of its samples have changed since the run began"))
    }
}

/// The groups of the kept cohort, if it has the samples and outcomes of `cohort`.
fn require_same_cohort(folder: &RunFolder, cohort: &Cohort) -> Result<Vec<Groups>, CliError> {
    let path = folder.cohort();
    let (kept, groups) = read_cohort(&path)?;
    let outcome = |cohort: &Cohort, row: usize| {
        let sample = &cohort.samples[row];
        (sample.sample_id.clone(), sample.subject_id.clone(), sample.time.to_bits(), sample.event, sample.competing)
    };
    let (n, now) = (kept.n(), cohort.n());
    if n != now {
        return Err(changed(path, &format!("the run began with {n} samples, the data now give {now}")));
    }
    if kept.cause != cohort.cause {
        return Err(changed(path, "the data now give the outcome of another cause than when the run began"));
    }
    let others: Vec<_> = (0..n).filter(|row| outcome(&kept, *row) != outcome(cohort, *row)).collect();
    let Some(first) = others.first().copied() else { return Ok(groups) };
    let in_words = |cohort: &Cohort| {
        let sample = &cohort.samples[first];
        let names = format!("\"{}\" of subject \"{}\"", sample.sample_id, sample.subject_id);
        let event = match (sample.event, sample.competing) {
            (true, _) => "with the event".to_owned(),
            (false, Some(cause)) => format!("with the competing event {cause}"),
            (false, None) => "censored".to_owned(),
        };
        match cohort.outcome_kind() {
            OutcomeKind::Times => format!("{names}, time {}, {event}", sample.time),
            OutcomeKind::Class => format!("{names}, {}", if sample.event { "positive" } else { "negative" }),
            OutcomeKind::Masks => names,
        }
    };
    let problem = format!(
        "samples with another outcome, subject or place in the table than when the run began: {}, first {} (then {})",
        others.len(),
        in_words(cohort),
        in_words(&kept)
    );
    Err(changed(path, &problem))
}

/// `cohort` has the samples of the kept one.
fn require_same_split(folder: &RunFolder, cohort: &Cohort, split: &Split) -> Result<(), CliError> {
    let kept = Split::read_csv(&folder.split(), cohort)?;
    let subjects: BTreeSet<_> = cohort.samples.iter().map(|sample| &sample.subject_id).collect();
    let moved: Vec<_> = subjects.into_iter().filter(|subject| kept.part(subject) != split.part(subject)).collect();
    let Some(first) = moved.first() else { return Ok(()) };
    let part = |split: &Split| split.part(first).map_or("no part", Part::name);
    let (n, before, now) = (moved.len(), part(&kept), part(split));
    let problem = format!(
        "subjects in another part than when the run began: {n}, first \"{first}\" (in {before} then, in {now} now)"
    );
    Err(changed(folder.split(), &problem))
}

/// `cohort` has the samples of the kept one, in the same order.
fn require_same_groups(
    folder: &RunFolder,
    cohort: &Cohort,
    kept: &Groups,
    attributes: &FittedAttributes,
) -> Result<(), CliError> {
    let attribute = kept.attribute();
    let Some(groups) = attributes.all().iter().find(|groups| groups.attribute() == attribute) else { return Ok(()) };
    let level =
        |groups: &Groups, row: usize| groups.membership()[row].map(|group| groups.levels()[group.index()].clone());
    let moved: Vec<_> = (0..cohort.n()).filter(|row| level(kept, *row) != level(groups, *row)).collect();
    let Some(first) = moved.first().copied() else { return Ok(()) };
    let name =
        |groups: &Groups| level(groups, first).map_or_else(|| "no group".to_owned(), |level| format!("\"{level}\""));
    let (n, sample, before, now) = (moved.len(), &cohort.samples[first].sample_id, name(kept), name(groups));
    let problem = format!(
        "samples in another group of {attribute} than when the run began: {n}, first \"{sample}\" ({before} then, {now} now)"
    );
    Err(changed(folder.cohort(), &problem))
}

pub(crate) fn changed(path: PathBuf, problem: &str) -> CliError {
    CliError::RunFolder { path, problem: format!("{problem}; choose another --output") }
}
