//! `cohort.parquet`: everything an evaluation needs to know about the samples, in one file.
//!
//! Columns: `sample_id`, `subject_id`, `image`, `time`, `event` (0/1), then per attribute its raw values under its name
//! and its group under `<attribute>_group`. Name of the data set, time unit and the order of the levels (which group is
//! 0, also for levels without a sample) stand in the metadata of the Parquet file. A `.csv` of the same columns can be
//! written and read too; it has no metadata, so its levels are sorted by name and its time unit is unknown.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use fairtte_metrics::{GroupId, Groups};
use serde::{Deserialize, Serialize};

use crate::DataError;
use crate::adapters::unnamed_unit;
use crate::cohort::{AttributeColumn, Cohort, Sample};
use crate::label_rule::parse_event;
use crate::provenance::Provenance;
use crate::table::{ColumnValues, Table, write_csv, write_parquet};

const METADATA_KEY: &str = "fairtte.cohort";
const GROUP_SUFFIX: &str = "_group";

/// What does not fit into columns.
#[derive(Serialize, Deserialize)]
struct Metadata {
    name: String,
    time_unit: String,
    levels: Vec<(String, Vec<String>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provenance: Option<Provenance>,
}

/// Writes `cohort` with the `groups` of all its samples, atomically; Parquet or CSV by the ending of `path`.
///
/// # Errors
/// [`DataError::ShapeMismatch`] if a grouping is not about all samples of the cohort, [`DataError::Write`].
pub fn write_cohort(path: &Path, cohort: &Cohort, groups: &[Groups]) -> Result<(), DataError> {
    if let Some(other) = groups.iter().find(|groups| groups.n() != cohort.n()) {
        return Err(DataError::ShapeMismatch { what: "grouping", found: other.n(), expected: cohort.n() });
    }
    let columns = columns(cohort, groups);
    if path.extension().is_some_and(|ending| ending == "csv") {
        return write_csv(path, columns);
    }
    let metadata = Metadata {
        name: cohort.name.clone(),
        time_unit: cohort.time_unit.clone(),
        levels: groups.iter().map(|g| (g.attribute().to_owned(), g.levels().to_vec())).collect(),
        provenance: cohort.provenance.clone(),
    };
    let metadata = serde_json::to_string(&metadata).map_err(|error| DataError::write(path, error.into()))?;
    write_parquet(path, columns, &[(METADATA_KEY, metadata)])
}

fn columns(cohort: &Cohort, groups: &[Groups]) -> Vec<(String, ColumnValues)> {
    let samples = &cohort.samples;
    let mut columns = vec![
        ("sample_id".to_owned(), ColumnValues::text(samples.iter().map(|s| &s.sample_id))),
        ("subject_id".to_owned(), ColumnValues::text(samples.iter().map(|s| &s.subject_id))),
        ("image".to_owned(), ColumnValues::text(samples.iter().map(|s| s.image.display()))),
        ("time".to_owned(), ColumnValues::Number(samples.iter().map(|s| s.time).collect())),
        ("event".to_owned(), ColumnValues::Integer(samples.iter().map(|s| i64::from(s.event)).collect())),
    ];
    for attribute in &cohort.attributes {
        columns.push((attribute.name.clone(), ColumnValues::Text(attribute.values.clone())));
    }
    for groups in groups {
        let level = |group: &Option<GroupId>| group.map(|group| groups.levels()[group.index()].clone());
        let names = groups.membership().iter().map(level).collect();
        columns.push((format!("{}{GROUP_SUFFIX}", groups.attribute()), ColumnValues::Text(names)));
    }
    columns
}

/// Reads what [`write_cohort`] wrote, or a table of the same columns: the cohort and the groups of all its samples.
///
/// The source row of a sample is then its row in this file.
///
/// # Errors
/// [`DataError::MissingColumn`], [`DataError::InvalidCell`], [`DataError::DuplicateSample`],
/// [`DataError::DamagedFile`] if a group is not among the levels the file lists, and what [`Table::read`] returns.
pub fn read_cohort(path: &Path) -> Result<(Cohort, Vec<Groups>), DataError> {
    let table = Table::read(path)?;
    let metadata = table.metadata(METADATA_KEY).map(serde_json::from_str::<Metadata>).transpose();
    let metadata = metadata.map_err(|error| DataError::damaged(path, error))?;
    let samples = read_samples(&table)?;
    let fixed = ["sample_id", "subject_id", "image", "time", "event"];
    let (mut attributes, mut groups) = (Vec::new(), Vec::new());
    for name in table.names().into_iter().filter(|name| !fixed.contains(name)) {
        let values = table.text(name)?;
        // Our own files say which attributes have a grouping; in a table made by hand, every `x_group` is one.
        let is_grouped = |attribute: &&str| {
            metadata.as_ref().is_none_or(|metadata| metadata.levels.iter().any(|(name, _)| name == attribute))
        };
        match name.strip_suffix(GROUP_SUFFIX).filter(is_grouped) {
            Some(attribute) => groups.push(read_groups(path, attribute, &values, metadata.as_ref())?),
            None => attributes.push(AttributeColumn::new(name, values)),
        }
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let (name, time_unit, provenance) =
        metadata.map_or_else(|| (stem, unnamed_unit(), None), |m| (m.name, m.time_unit, m.provenance));
    let cohort = Cohort { name, time_unit, source: path.to_owned(), samples, attributes, provenance };
    Ok((cohort, groups))
}

fn read_samples(table: &Table) -> Result<Vec<Sample>, DataError> {
    let (ids, subjects) = (table.text("sample_id")?, table.text("subject_id")?);
    // An evaluation needs no images, so a table made by hand may leave them out.
    let images = if table.has("image") { table.text("image")? } else { vec![None; table.n_rows()] };
    let (times, events) = (table.numbers("time")?, table.text("event")?);
    let mut first_rows = HashMap::with_capacity(ids.len());
    let mut samples = Vec::with_capacity(ids.len());
    for index in 0..table.n_rows() {
        let sample = ids[index].clone().unwrap_or_default();
        let invalid = |column: &str, value: Option<&String>, expected| DataError::InvalidCell {
            column: column.to_owned(),
            sample: sample.clone(),
            value: value.cloned().unwrap_or_else(|| "empty".to_owned()),
            expected,
            place: table.place(index),
        };
        if sample.is_empty() {
            return Err(invalid("sample_id", None, "a name"));
        }
        if let Some(first_row) = first_rows.insert(sample.clone(), table.row(index)) {
            return Err(DataError::DuplicateSample { sample, place: table.place(index), first_row });
        }
        let subject = subjects[index].clone().ok_or_else(|| invalid("subject_id", None, "a name"))?;
        let time = match &times[index] {
            Ok(time) if time.is_finite() && *time >= 0.0 => *time,
            Ok(time) => return Err(invalid("time", Some(&time.to_string()), "a finite number >= 0")),
            Err(text) => return Err(invalid("time", Some(text), "a finite number >= 0")),
        };
        let event = events[index].as_deref().and_then(parse_event);
        let event = event.ok_or_else(|| invalid("event", events[index].as_ref(), "1 (observed) or 0 (censored)"))?;
        samples.push(Sample {
            sample_id: sample.into(),
            subject_id: subject.into(),
            unit: None,
            image: images[index].clone().unwrap_or_default().into(),
            time,
            event,
            source_row: table.row(index),
        });
    }
    Ok(samples)
}

fn read_groups(
    path: &Path,
    attribute: &str,
    values: &[Option<String>],
    metadata: Option<&Metadata>,
) -> Result<Groups, DataError> {
    let listed = metadata.and_then(|m| m.levels.iter().find(|(name, _)| name == attribute)).map(|(_, levels)| levels);
    let levels = listed
        .cloned()
        .unwrap_or_else(|| values.iter().flatten().cloned().collect::<BTreeSet<_>>().into_iter().collect());
    let group = |value: &Option<String>| {
        let Some(value) = value else { return Ok(None) };
        let position = levels.iter().position(|level| level == value).and_then(|level| u32::try_from(level).ok());
        let unknown = || DataError::damaged(path, format!("\"{value}\" is no level of {attribute}"));
        position.map(|level| Some(GroupId(level))).ok_or_else(unknown)
    };
    let membership = values.iter().map(group).collect::<Result<Vec<_>, _>>()?;
    Ok(Groups::new(attribute, levels, membership)?)
}
