//! `cohort.parquet` and `cohort.csv` (or `.tsv`): the record of a cohort, one row per sample.
//!
//! Columns: `sample_id`, `subject_id`, `time`, `event` (0/1, or the number of a cause), then every attribute. An attribute whose groups are its
//! own levels (`sex`) is one column with the number of the group; one cut by a threshold or by a reference is its raw
//! value and then the number of its group (`age`, `age_group`). A missing value is an empty cell. Parquet files also
//! have `image` and, if the data set follows eyes, `unit`; the name of the data set, the time unit, levels, provenance and,
//! where events have several causes, the number of the one that is predicted, are in the metadata.
//!
//! A CSV has no metadata. When it is read back, its time unit is unknown, a column `sex` of 0 and 1 is F and M (the
//! coding of every adapter), and every `x_group` is a grouping of `x` whose levels are the cells, integers in ascending
//! order. A user-written table may have names instead of numbers there, and no `image`.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use fairtte_metrics::{GroupId, Groups};
use serde::{Deserialize, Serialize};

use crate::DataError;
use crate::cohort::FittedAttributes;
use crate::cohort::Provenance;
use crate::cohort::label_rule::{CAUSE, ZERO_OR_ONE, parse_cause, parse_event};
use crate::cohort::unnamed_unit;
use crate::cohort::{AttributeColumn, Cohort, Sample};
use crate::table::{ColumnValues, Table, write_csv, write_parquet};

const METADATA_KEY: &str = "fairtte.cohort";
const GROUP_SUFFIX: &str = "_group";
const SEX: &str = "sex";
const SEXES: [&str; 2] = ["F", "M"];

/// The metadata that do not fit into columns.
#[derive(Serialize, Deserialize)]
struct Metadata {
    name: String,
    time_unit: String,
    levels: Vec<(String, Vec<String>)>,
    /// Whether groups are written by their number; in older files, by the name of their level.
    #[serde(default)]
    numbered: bool,
    /// Attributes whose own column holds the number of the group.
    #[serde(default)]
    own_levels: Vec<String>,
    /// Whether there is a column `unit`.
    #[serde(default)]
    units: bool,
    /// The number of the event, where the column `event` has numbers of causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provenance: Option<Provenance>,
}

impl Metadata {
    fn levels(&self, attribute: &str) -> Option<&[String]> {
        self.levels.iter().find(|(name, _)| name == attribute).map(|(_, levels)| levels.as_slice())
    }
}

/// Writes `cohort` with the groups of all its samples, atomically; the ending of `path` gives the format: `.parquet`,
/// `.csv` or `.tsv`, in any case.
///
/// # Errors
/// [`DataError::UnknownTableFormat`] for another ending, [`DataError::ShapeMismatch`] if a grouping does not cover all
/// samples of the cohort, [`DataError::Write`].
pub fn write_cohort(path: &Path, cohort: &Cohort, attributes: &FittedAttributes) -> Result<(), DataError> {
    if let Some(other) = attributes.all().iter().find(|groups| groups.n() != cohort.n()) {
        return Err(DataError::ShapeMismatch { what: "grouping", found: other.n(), expected: cohort.n() });
    }
    let samples = &cohort.samples;
    let is_separated = is_separated(path)?;
    let times = if is_separated {
        // A reader of the table sees 583, not 583.0.
        ColumnValues::text(samples.iter().map(|s| s.time))
    } else {
        ColumnValues::Number(samples.iter().map(|s| s.time).collect())
    };
    let mut columns = vec![
        ("sample_id".to_owned(), texts(samples, |s| s.sample_id.as_str())),
        ("subject_id".to_owned(), texts(samples, |s| s.subject_id.as_str())),
        ("time".to_owned(), times),
        ("event".to_owned(), ColumnValues::Integer(samples.iter().map(|s| code(s, cohort.cause)).collect())),
    ];
    columns.extend(attribute_columns(cohort, attributes));
    if is_separated {
        return write_csv(path, columns);
    }
    columns.push(("image".to_owned(), paths(samples)));
    let units = samples.iter().any(|sample| sample.unit.is_some());
    if units {
        columns.push(("unit".to_owned(), ColumnValues::Borrowed(samples.iter().map(|s| s.unit.as_deref()).collect())));
    }
    let own = attributes.all().iter().filter(|groups| attributes.has_own_levels(groups.attribute()));
    let metadata = Metadata {
        name: cohort.name.clone(),
        time_unit: cohort.time_unit.clone(),
        levels: attributes.all().iter().map(|g| (g.attribute().to_owned(), g.levels().to_vec())).collect(),
        numbered: true,
        own_levels: own.map(|groups| groups.attribute().to_owned()).collect(),
        units,
        cause: cohort.cause,
        provenance: cohort.provenance.clone(),
    };
    let metadata = serde_json::to_string(&metadata).map_err(|error| DataError::write(path, error.into()))?;
    write_parquet(path, columns, &[(METADATA_KEY, metadata)])
}

/// 0 = censored, otherwise 1, or the number of the cause where events have several.
fn code(sample: &Sample, cause: Option<u32>) -> i64 {
    let event = if sample.event { cause.unwrap_or(1) } else { 0 };
    i64::from(sample.competing.filter(|_| !sample.event).unwrap_or(event))
}

/// A text of every sample, borrowed from it.
fn texts<'a>(samples: &'a [Sample], text: impl Fn(&'a Sample) -> &'a str) -> ColumnValues<'a> {
    ColumnValues::Borrowed(samples.iter().map(|sample| Some(text(sample))).collect())
}

/// The path of every image.
fn paths(samples: &[Sample]) -> ColumnValues<'_> {
    let unicode: Option<Vec<_>> = samples.iter().map(|sample| sample.image.to_str().map(Some)).collect();
    unicode.map_or_else(|| ColumnValues::text(samples.iter().map(|s| s.image.display())), ColumnValues::Borrowed)
}

/// Whether the ending of `path` means delimited text; the other format is Parquet.
fn is_separated(path: &Path) -> Result<bool, DataError> {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    match ending.as_str() {
        "csv" | "tsv" => Ok(true),
        "parquet" => Ok(false),
        _ => Err(DataError::UnknownTableFormat { path: path.to_owned() }),
    }
}

/// The columns of every attribute: its values and its group, or its group alone.
fn attribute_columns<'a>(cohort: &'a Cohort, attributes: &FittedAttributes) -> Vec<(String, ColumnValues<'a>)> {
    let mut columns = Vec::new();
    for attribute in &cohort.attributes {
        let name = &attribute.name;
        let raw = || (name.clone(), ColumnValues::Borrowed(attribute.values.iter().map(Option::as_deref).collect()));
        let groups = attributes.all().iter().find(|groups| groups.attribute() == name);
        let numbers = groups.map(|groups| {
            let numbers = groups.membership().iter().map(|group| group.map(|group| i64::from(group.0)));
            ColumnValues::OptionalInteger(numbers.collect())
        });
        match numbers {
            None => columns.push(raw()),
            Some(numbers) if attributes.has_own_levels(name) => columns.push((name.clone(), numbers)),
            Some(numbers) => columns.extend([raw(), (format!("{name}{GROUP_SUFFIX}"), numbers)]),
        }
    }
    columns
}

/// Whether `table` is what [`write_cohort`] writes as Parquet.
pub(crate) fn is_record(table: &Table) -> bool {
    table.metadata(METADATA_KEY).is_some()
}

/// Reads what [`write_cohort`] wrote, or a table of the same columns: the cohort and the groups of all its samples.
///
/// The source row of a sample is then its row in this file. A record of events of several causes is read for the cause in its
/// metadata, [`Cohort::cause`].
///
/// # Errors
/// [`DataError::MissingColumn`], [`DataError::InvalidCell`], [`DataError::DuplicateSample`],
/// [`DataError::DamagedFile`] if a group is not among the levels the file lists, and what [`Table::read`] returns.
pub fn read_cohort(path: &Path) -> Result<(Cohort, Vec<Groups>), DataError> {
    read_events(path, None)
}

/// As [`read_cohort`], of a table whose column `event` holds causes: 0 = censored, `cause` = the event, any other whole number
/// the cause of an event of another kind ([`Sample::competing`]).
///
/// # Errors
/// Those of [`read_cohort`].
pub fn read_cohort_of_cause(path: &Path, cause: u32) -> Result<(Cohort, Vec<Groups>), DataError> {
    read_events(path, Some(cause))
}

fn read_events(path: &Path, cause: Option<u32>) -> Result<(Cohort, Vec<Groups>), DataError> {
    let table = Table::read(path)?;
    let metadata = table.metadata(METADATA_KEY).map(serde_json::from_str::<Metadata>).transpose();
    let metadata = metadata.map_err(|error| DataError::damaged(path, error))?;
    let has_units = metadata.as_ref().is_some_and(|metadata| metadata.units);
    let cause = cause.or(metadata.as_ref().and_then(|metadata| metadata.cause));
    let samples = read_samples(&table, has_units, cause)?;
    let fixed = ["sample_id", "subject_id", "image", "time", "event"];
    let is_fixed = |name: &&str| fixed.contains(name) || (has_units && *name == "unit");
    let (mut attributes, mut groups) = (Vec::new(), Vec::new());
    for name in table.names().into_iter().filter(|name| !is_fixed(name)) {
        let values = table.text(name)?;
        match kind(&table, name, &values, metadata.as_ref()) {
            Kind::Raw => attributes.push(AttributeColumn::new(name, values)),
            Kind::GroupOf(attribute) => groups.push(read_groups(path, &attribute, &values, metadata.as_ref())?),
            Kind::OwnLevels(levels) => {
                let grouping = numbered_groups(path, name, &levels, &values)?;
                let level = |group: &Option<GroupId>| group.map(|group| levels[group.index()].clone());
                attributes.push(AttributeColumn::new(name, grouping.membership().iter().map(level).collect()));
                groups.push(grouping);
            }
        }
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let (name, time_unit, provenance) =
        metadata.map_or_else(|| (stem, unnamed_unit(), None), |m| (m.name, m.time_unit, m.provenance));
    let cohort = Cohort { name, time_unit, source: path.to_owned(), samples, attributes, provenance, cause };
    Ok((cohort, groups))
}

/// The content of a column that is not one of the fixed ones.
enum Kind {
    /// Raw values of an attribute.
    Raw,
    /// Groups of the attribute of this name.
    GroupOf(String),
    /// Numbers of the groups of an attribute with these levels.
    OwnLevels(Vec<String>),
}

fn kind(table: &Table, name: &str, values: &[Option<String>], metadata: Option<&Metadata>) -> Kind {
    let base = name.strip_suffix(GROUP_SUFFIX);
    if let Some(metadata) = metadata {
        // The metadata of files written here list the groupings and their columns.
        let own = metadata.own_levels.iter().any(|own| own == name);
        return match (metadata.levels(name).filter(|_| own), base.filter(|base| metadata.levels(base).is_some())) {
            (Some(levels), _) => Kind::OwnLevels(levels.to_vec()),
            (None, Some(base)) => Kind::GroupOf(base.to_owned()),
            (None, None) => Kind::Raw,
        };
    }
    let is_number = |cell: &String| cell == "0" || cell == "1";
    let is_numbered_sex = name == SEX
        && !table.has(&format!("{SEX}{GROUP_SUFFIX}"))
        && values.iter().flatten().all(is_number)
        && values.iter().any(Option::is_some);
    match base {
        Some(base) => Kind::GroupOf(base.to_owned()),
        None if is_numbered_sex => Kind::OwnLevels(SEXES.map(str::to_owned).to_vec()),
        None => Kind::Raw,
    }
}

fn read_samples(table: &Table, has_units: bool, cause: Option<u32>) -> Result<Vec<Sample>, DataError> {
    let (ids, subjects) = (table.text("sample_id")?, table.text("subject_id")?);
    // An evaluation needs no images, so a user-written table may omit them.
    let mut images = if table.has("image") { table.text("image")? } else { vec![None; table.n_rows()] };
    let mut units = if has_units { table.text("unit")? } else { vec![None; table.n_rows()] };
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
        let (parsed, expected) = match cause {
            None => (events[index].as_deref().and_then(parse_event).map(|event| (event, None)), ZERO_OR_ONE),
            Some(cause) => (events[index].as_deref().and_then(|text| parse_cause(text, cause)), CAUSE),
        };
        let (event, competing) = parsed.ok_or_else(|| invalid("event", events[index].as_ref(), expected))?;
        samples.push(Sample {
            sample_id: sample.into(),
            subject_id: subject.into(),
            unit: units[index].take(),
            image: images[index].take().unwrap_or_default().into(),
            time,
            event,
            competing,
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
    let listed = metadata.and_then(|metadata| metadata.levels(attribute));
    if let Some(levels) = listed.filter(|_| metadata.is_some_and(|metadata| metadata.numbered)) {
        return numbered_groups(path, attribute, levels, values);
    }
    let levels = listed.map_or_else(|| levels_seen(values), <[String]>::to_vec);
    let group = |value: &Option<String>| {
        let Some(value) = value else { return Ok(None) };
        let position = levels.iter().position(|level| level == value).and_then(|level| u32::try_from(level).ok());
        let unknown = || DataError::damaged(path, format!("\"{value}\" is no level of {attribute}"));
        position.map(|level| Some(GroupId(level))).ok_or_else(unknown)
    };
    let membership = values.iter().map(group).collect::<Result<Vec<_>, _>>()?;
    Ok(Groups::new(attribute, levels, membership)?)
}

/// Distinct values sorted by name, or numerically if all are integers, so that 10 follows 9.
fn levels_seen(values: &[Option<String>]) -> Vec<String> {
    let seen: BTreeSet<&String> = values.iter().flatten().collect();
    let mut levels: Vec<String> = seen.into_iter().cloned().collect();
    let numbers: Option<Vec<u32>> = levels.iter().map(|level| level.parse().ok()).collect();
    if numbers.is_some() {
        levels.sort_by_key(|level| level.parse::<u32>().unwrap_or(u32::MAX));
    }
    levels
}

/// Groups of cells that hold the position of their level.
fn numbered_groups(
    path: &Path,
    attribute: &str,
    levels: &[String],
    values: &[Option<String>],
) -> Result<Groups, DataError> {
    let group = |value: &Option<String>| {
        let Some(value) = value else { return Ok(None) };
        let number = value.parse::<u32>().ok().filter(|number| (*number as usize) < levels.len());
        let unknown = || DataError::damaged(path, format!("\"{value}\" is no number of a level of {attribute}"));
        number.map(|number| Some(GroupId(number))).ok_or_else(unknown)
    };
    let membership = values.iter().map(group).collect::<Result<Vec<_>, _>>()?;
    Ok(Groups::new(attribute, levels.to_vec(), membership)?)
}
