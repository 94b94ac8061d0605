//! From rows and their label rule to samples with a time and an event, in groups; all rows left out are counted.

mod attribute_column;
pub(crate) mod attributes;
mod check;
mod class;
pub(crate) mod exclusions;
mod file;
pub(crate) mod label_rule;
mod manifest;
mod outcome;
mod provenance;
mod reason;
mod summary;

pub use attribute_column::AttributeColumn;
pub use attributes::{AttributeConfig, FittedAttribute, FittedAttributes, RenamedLevel, Threshold, UngroupedValue};
pub use check::{CheckLine, CohortCheck, Quantity, compare_with_paper};
pub use class::{Classes, HorizonConfig};
pub use exclusions::{Exclusion, Exclusions, FlowStep};
pub(crate) use file::is_record;
pub use file::{read_cohort, read_cohort_of_cause, write_cohort};
pub use label_rule::{
    Label, LabelRule, NamedCells, NoOutcome, ObservedLabel, ObservedMask, ObservedTime, WithoutOutcome,
};
pub use manifest::{Manifest, ManifestRow, Unlabelled};
pub use outcome::{CauseOfEnd, OutcomeConfig};
pub use provenance::{ContentHasher, OutcomeKind, Provenance};
pub use reason::Reason;
pub use summary::{AttributeSummary, CohortSummary, GroupSummary, SamplesSummary};

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use fairtte_metrics::competing::CompetingOutcomes;
use fairtte_metrics::{Outcomes, SampleId, SubjectId};
use rayon::iter::Either;
use rayon::prelude::*;

use crate::DataError;
use crate::error::Place;
use crate::nearest::nearest;
use crate::table::repeats::repeats;

/// One image with its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Identity, unique in the cohort.
    pub sample_id: SampleId,
    /// The person.
    pub subject_id: SubjectId,
    /// The unit that is followed if it is a part of the person: `9001-RE` for one eye. `None` if it is the person.
    pub unit: Option<String>,
    /// Absolute path of the image file; empty if it is not known.
    pub image: PathBuf,
    /// Time to event or censoring, finite, in [`Cohort::time_unit`]; >= 0, and > 0 where the data set's rule says so.
    pub time: f64,
    /// `true` = event observed, `false` = censored, or ended by an event of another cause.
    pub event: bool,
    /// The cause of an event of another kind that ended the observation at [`time`](Self::time), from 1 on; `None` otherwise,
    /// and wherever events have no causes.
    pub competing: Option<u32>,
    /// Row in the source table as a spreadsheet counts it.
    pub source_row: usize,
}

impl Sample {
    /// The place of the competing cause among `causes`, counted from 1; 0 without one.
    pub(crate) fn place_of_competing(&self, causes: &[u32]) -> usize {
        let place = |cause| causes.iter().position(|known| *known == cause).map_or(0, |place| place + 1);
        self.competing.map_or(0, place)
    }
}

/// All samples of a data set that have a label, in the order of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Cohort {
    /// Name of the data set, for reports.
    pub name: String,
    /// Unit of the times: `days`, `years`, ..
    pub time_unit: String,
    /// The table the samples came from.
    pub source: PathBuf,
    /// The samples.
    pub samples: Vec<Sample>,
    /// The attributes, each with one value per sample.
    pub attributes: Vec<AttributeColumn>,
    /// Rule and content hash of the labels; `None` if not known.
    pub provenance: Option<Provenance>,
    /// The number of the event, where events have several causes: then [`Sample::competing`] says which events of other causes
    /// ended an observation. `None` where there is one kind of event.
    pub cause: Option<u32>,
}

/// Unit of times whose unit is not known.
pub(crate) fn unnamed_unit() -> String {
    "time units".to_owned()
}

impl Cohort {
    /// Number of samples.
    pub fn n(&self) -> usize {
        self.samples.len()
    }

    /// Whether the unit of the times is known.
    pub fn has_time_unit(&self) -> bool {
        self.time_unit != unnamed_unit()
    }

    /// What the outcomes of the samples are; times where that is not known.
    pub fn outcome_kind(&self) -> OutcomeKind {
        self.provenance.as_ref().map(Provenance::outcome_kind).unwrap_or_default()
    }

    /// The column with the mask of every sample; `None` of a cohort without masks.
    pub fn mask(&self) -> Option<&str> {
        self.provenance.as_ref()?.mask.as_deref()
    }

    /// The same samples as a training on masks reads them: every sample has its outcome, which is in its mask.
    #[must_use]
    pub fn of_masks(&self) -> Self {
        Self { provenance: None, time_unit: unnamed_unit(), ..self.clone() }
    }

    /// Number of observed events.
    pub fn n_events(&self) -> usize {
        self.samples.iter().filter(|sample| sample.event).count()
    }

    /// Number of different subjects.
    pub fn n_subjects(&self) -> usize {
        self.samples.iter().map(|sample| &sample.subject_id).collect::<HashSet<_>>().len()
    }

    /// Times and events of the samples at `rows`, in that order.
    ///
    /// # Errors
    /// [`DataError::SeveralCauses`] if events have several causes, so that nothing takes those of others for censorings;
    /// [`DataError::NoTimes`] of a class and [`DataError::OnlyMasks`] of masks, so that nothing takes them for times;
    /// [`DataError::Metric`] if a time is not finite and >= 0.
    ///
    /// # Panics
    /// If a row is not below [`n`](Self::n).
    pub fn outcomes(&self, rows: &[usize]) -> Result<Outcomes, DataError> {
        match self.cause {
            Some(cause) => Err(DataError::SeveralCauses { cohort: self.name.clone(), cause }),
            None => match (self.label(), self.mask()) {
                (Some(label), _) => Err(self.no_times(label)),
                (None, Some(mask)) => Err(DataError::OnlyMasks { cohort: self.name.clone(), column: mask.to_owned() }),
                (None, None) => self.outcomes_of_event(rows),
            },
        }
    }

    /// Times of the samples at `rows`, in that order, and whether the event that is predicted ended their observation. Where
    /// events have several causes, those of others count as censorings, which is right for the times of the event and for its
    /// hazard, and wrong for its risk.
    ///
    /// # Errors
    /// [`DataError::Metric`] if a time is not finite and >= 0.
    ///
    /// # Panics
    /// If a row is not below [`n`](Self::n).
    pub fn outcomes_of_event(&self, rows: &[usize]) -> Result<Outcomes, DataError> {
        let time = rows.iter().map(|&row| self.samples[row].time).collect();
        let event = rows.iter().map(|&row| self.samples[row].event).collect();
        Ok(Outcomes::new(time, event)?)
    }

    /// Times of the samples at `rows`, in that order, and whether an event of any cause ended their observation: they say who
    /// is censored.
    ///
    /// # Errors
    /// [`DataError::Metric`] if a time is not finite and >= 0.
    ///
    /// # Panics
    /// If a row is not below [`n`](Self::n).
    pub fn outcomes_of_any_cause(&self, rows: &[usize]) -> Result<Outcomes, DataError> {
        let is_end = |&row: &usize| self.samples[row].event || self.samples[row].competing.is_some();
        let time = rows.iter().map(|&row| self.samples[row].time).collect();
        Ok(Outcomes::new(time, rows.iter().map(is_end).collect())?)
    }

    /// Times and causes of the samples at `rows`, in that order, of a cohort that was read for `cause`.
    ///
    /// # Errors
    /// [`DataError::Metric`] if a time is not finite and >= 0.
    ///
    /// # Panics
    /// If a row is not below [`n`](Self::n).
    pub fn competing_outcomes(&self, rows: &[usize], cause: u32) -> Result<CompetingOutcomes, DataError> {
        let cause_of = |sample: &Sample| if sample.event { cause } else { sample.competing.unwrap_or(0) };
        let time = rows.iter().map(|&row| self.samples[row].time).collect();
        let causes = rows.iter().map(|&row| cause_of(&self.samples[row])).collect();
        let known = self.causes().into_iter().chain([cause]);
        Ok(CompetingOutcomes::of_known_causes(time, causes, known)?)
    }

    /// The number of the event and those of the other causes that ended an observation, ascending, of all samples; empty where
    /// there is one kind of event.
    pub fn causes(&self) -> Vec<u32> {
        let others: BTreeSet<u32> = self.samples.iter().filter_map(|sample| sample.competing).collect();
        self.cause.map_or_else(Vec::new, |cause| std::iter::once(cause).chain(others).collect())
    }

    /// What ended the observation of the samples at `rows` besides the event: 0 = nothing, or the place among
    /// [`causes`](Self::causes) of another cause, counted from 1, so 2 for the first of them.
    ///
    /// # Panics
    /// If a row is not below [`n`](Self::n).
    pub fn competing(&self, rows: &[usize]) -> Vec<usize> {
        let causes = self.causes();
        rows.iter().map(|&row| self.samples[row].place_of_competing(&causes)).collect()
    }

    /// Subjects of the samples at `rows`, in that order.
    ///
    /// # Panics
    /// If a row is not below [`n`](Self::n).
    pub fn subjects(&self, rows: &[usize]) -> Vec<SubjectId> {
        rows.iter().map(|&row| self.samples[row].subject_id.clone()).collect()
    }

    /// Identities of the samples at `rows`, in that order.
    ///
    /// # Panics
    /// If a row is not below [`n`](Self::n).
    pub fn sample_ids(&self, rows: &[usize]) -> Vec<SampleId> {
        rows.iter().map(|&row| self.samples[row].sample_id.clone()).collect()
    }

    /// All rows, ascending.
    pub fn all_rows(&self) -> Vec<usize> {
        (0..self.n()).collect()
    }

    /// The cohort without the samples that `exclusions` names; the order of the others is kept.
    ///
    /// An exclusion of a repeated row has the name of the sample that was kept and does not remove it.
    #[must_use]
    pub fn without(&self, exclusions: &[Exclusion]) -> Self {
        let about_samples = exclusions.iter().filter(|exclusion| !exclusion.reason.is_repetition());
        let excluded: HashSet<&SampleId> = about_samples.map(|exclusion| &exclusion.sample_id).collect();
        let kept = (0..self.n()).filter(|&row| !excluded.contains(&self.samples[row].sample_id));
        self.select(&kept.collect::<Vec<_>>())
    }

    /// The samples at `rows`, in this order.
    ///
    /// # Panics
    /// If a row is not below [`n`](Self::n).
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            name: self.name.clone(),
            time_unit: self.time_unit.clone(),
            source: self.source.clone(),
            samples: rows.iter().map(|&row| self.samples[row].clone()).collect(),
            attributes: self.attributes.iter().map(|attribute| attribute.select(rows)).collect(),
            provenance: self.provenance.clone(),
            cause: self.cause,
        }
    }

    /// Checks that at least one sample is left.
    ///
    /// # Errors
    /// [`DataError::EmptyTable`] if none was read, otherwise [`DataError::NoSamples`] with the counts of `exclusions`.
    pub fn require_samples(&self, stage: &'static str, exclusions: &Exclusions) -> Result<(), DataError> {
        if self.n() > 0 {
            return Ok(());
        }
        if exclusions.n_read() == 0 {
            return Err(DataError::EmptyTable { path: self.source.clone() });
        }
        // One of those left out for the most frequent reason shows what is wrong: a path, a column.
        let counts = exclusions.counts();
        let most = counts.iter().max_by_key(|(_, n)| *n).map(|(reason, _)| *reason);
        let first = exclusions.list().iter().find(|exclusion| Some(exclusion.reason) == most);
        let first = first.map_or_else(String::new, |first| format!("; \"{}\": {}", first.sample_id, first.source));
        Err(DataError::NoSamples {
            stage,
            n_read: exclusions.n_read(),
            n_excluded: exclusions.n(),
            reasons: exclusions.summary() + &first,
            source_file: self.source.clone(),
        })
    }
}

/// Labels every row by the rule that came with it and keeps the columns that `attributes` names.
///
/// A row with an empty cell where one is needed is excluded with its reason and counted. A row whose attribute is
/// missing is kept: it belongs to no group of that attribute. The rows are consumed, because a second copy of every
/// name and path of a large data set would take most of the memory. A cohort without samples is a valid result,
/// explained by its exclusions; a caller that needs samples checks with [`Cohort::require_samples`].
///
/// # Errors
/// [`DataError::UnknownAttribute`], [`DataError::InvalidAttribute`] for a column with a role, what the rule returns
/// ([`DataError::InvalidCell`]; that of the first row that has one), [`DataError::DuplicateSample`] if two kept rows have the same name.
pub fn build_cohort(read: Unlabelled, attributes: &[AttributeConfig]) -> Result<(Cohort, Exclusions), DataError> {
    let Unlabelled { mut manifest, rule, provenance } = read;
    let cause = rule.cause();
    let columns = attributes.iter().map(|attribute| attribute_position(&manifest, &attribute.name));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let labels = label_rows(&manifest, rule.as_ref())?;
    drop(rule);
    let is_kept: Vec<bool> = labels.iter().map(|label| !matches!(label, Label::Excluded { .. })).collect();
    refuse_duplicates(&manifest, &is_kept)?;
    let mut exclusions = Exclusions::new(manifest.rows.len()).expecting(&provenance.reasons);
    let rows = std::mem::take(&mut manifest.rows).into_par_iter().zip(labels);
    let (samples, left_out): (Vec<_>, Vec<_>) = rows.partition_map(|(row, label)| match label {
        Label::Kept { time, event } => Either::Left(sample(&manifest, row, time, (event, None))),
        Label::Competing { time, cause } => Either::Left(sample(&manifest, row, time, (false, Some(cause)))),
        Label::Excluded { reason, detail } => {
            Either::Right(Exclusion { sample_id: row.into_display_id().into(), reason, source: detail })
        }
    });
    let samples = samples.into_iter().collect::<Result<Vec<_>, _>>()?;
    exclusions.extend(left_out);
    let cohort = Cohort {
        attributes: chosen_columns(&mut manifest, &columns, &is_kept),
        name: manifest.name,
        time_unit: manifest.time_unit,
        source: manifest.source,
        samples,
        provenance: Some(provenance),
        cause,
    };
    exclusions.check(cohort.n())?;
    Ok((cohort, exclusions))
}

/// The label of every row; rows are independent, so they are labelled in parallel.
fn label_rows(manifest: &Manifest, rule: &dyn LabelRule) -> Result<Vec<Label>, DataError> {
    let rows = 0..manifest.rows.len();
    let labels: Result<Vec<Label>, DataError> =
        rows.clone().into_par_iter().map(|index| rule.label(manifest, index)).collect();
    // In parallel, any of several errors may come first; sequentially, it is always that of the first row.
    labels.or_else(|_| rows.map(|index| rule.label(manifest, index)).collect())
}

/// What is wrong with an attribute that is a column with a role.
pub(crate) const HAS_A_ROLE: &str = "it is an identity or an outcome, expected a property of the subjects";

fn attribute_position(manifest: &Manifest, name: &str) -> Result<usize, DataError> {
    if manifest.roles.iter().any(|role| role == name) {
        return Err(DataError::InvalidAttribute { attribute: name.to_owned(), problem: HAS_A_ROLE.to_owned() });
    }
    let names = manifest.attribute_names();
    names.iter().position(|column| *column == name).ok_or_else(|| DataError::UnknownAttribute {
        attribute: name.to_owned(),
        data: manifest.source.display().to_string(),
        nearest: nearest(name, names),
    })
}

fn chosen_columns(manifest: &mut Manifest, columns: &[usize], is_kept: &[bool]) -> Vec<AttributeColumn> {
    let chosen = manifest.attributes.par_iter_mut().enumerate().filter(|(position, _)| columns.contains(position));
    chosen.for_each(|(_, column)| column.retain(is_kept));
    let is_needed_again = |i: usize| columns[i + 1..].contains(&columns[i]);
    let mut take = |(i, &position): (usize, &usize)| {
        let column = &mut manifest.attributes[position];
        if is_needed_again(i) {
            column.clone()
        } else {
            std::mem::replace(column, AttributeColumn::new(String::new(), Vec::new()))
        }
    };
    columns.iter().enumerate().map(&mut take).collect()
}

/// Returns an error if two rows marked by `is_kept` have the same name.
pub(crate) fn refuse_duplicates(manifest: &Manifest, is_kept: &[bool]) -> Result<(), DataError> {
    let names = manifest.rows.par_iter().zip(is_kept);
    let names: Vec<Option<&str>> = names.map(|(row, kept)| row.sample_id.as_deref().filter(|_| *kept)).collect();
    let Some(&(first, again)) = repeats(&names).first() else { return Ok(()) };
    Err(DataError::DuplicateSample {
        sample: names[again].unwrap_or_default().to_owned(),
        place: manifest.place(again),
        first_row: manifest.rows[first].source_row,
    })
}

fn sample(
    manifest: &Manifest,
    row: ManifestRow,
    time: f64,
    (event, competing): (bool, Option<u32>),
) -> Result<Sample, DataError> {
    let invalid = |column: &str, value: String, expected| DataError::InvalidCell {
        column: column.to_owned(),
        sample: row.display_id(),
        value,
        expected,
        place: Place { file: manifest.source.clone(), row: row.source_row },
    };
    if !(time.is_finite() && time >= 0.0) {
        return Err(invalid("time", time.to_string(), "a finite number >= 0"));
    }
    if row.sample_id.is_none() {
        return Err(invalid("sample", "empty".to_owned(), "a name"));
    }
    let Some(subject_id) = row.subject_id.clone() else {
        return Err(invalid("subject", "empty".to_owned(), "a name"));
    };
    Ok(Sample {
        sample_id: SampleId::new(row.sample_id.unwrap_or_default()),
        subject_id,
        unit: row.unit,
        image: row.image.unwrap_or_default(),
        time,
        event,
        competing,
        source_row: row.source_row,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests;
