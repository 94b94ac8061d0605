//! Tabular data: one row per sample; the inputs of the model are columns of the table.
//!
//! | card | |
//! |---|---|
//! | modality | numbers and categories, see [`crate::features`]; no images |
//! | subject, visit | one subject per value of the subject column, or per row if there is none; every row is a visit |
//! | event, time origin | the event column is 0/1, or with `[outcome]` the number of a cause; time runs from when the features were measured |
//! | class | with `label` in place of time and event: the column is 1/0, or `label-value` names the positive value |
//! | censoring | event 0: the time is the last time the subject was known to be free of the event |
//! | attributes | every column that is not mapped to something else; an attribute is a feature only if named as one |
//! | expected folder | the table anywhere |
//! | source, licence, access | the user's own |
//!
//! The texts of `missing-values` count as empty in every column. A sample without a `sample` column is named like its
//! subject if no subject has two rows, and `row 17` otherwise; a table without a subject column is thus the one kind of
//! data where the order of the rows matters, because nothing else names them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use fairtte_metrics::{SampleId, SubjectId};
use serde::{Deserialize, Serialize};

use super::generic::{event_column, time_column};
use super::observed::{Observed, OutcomeColumns, boxed, outcome_cells, provenance_of};
use crate::cohort::OutcomeConfig;
use crate::cohort::Reason;
use crate::cohort::{AttributeColumn, refuse_duplicates};
use crate::cohort::{ContentHasher, Provenance};
use crate::cohort::{Manifest, ManifestRow, Unlabelled, unnamed_unit};
use crate::features::{
    FeatureChoice, FeatureColumn, FeatureConfig, FeatureTable, MissingPolicy, default_max_levels,
    default_missing_values,
};
use crate::table::Table;
use crate::{Adapter, DataError};

pub(super) const NAME: &str = "tabular";

const RULE_VERSION: u32 = 1;

const REASONS: [Reason; 2] = [Reason::MissingSample, Reason::MissingSubject];

/// Settings of [`Tabular`], the table `[data.tabular]` of a run file.
///
/// ```
/// let config: fairtte_data::adapters::TabularConfig = toml::from_str(r#"
///     table = "patients.csv.gz"
///     time-unit = "days"
///     numeric = ["age", "creatinine"]
///     categorical = ["cancer"]
/// "#)?;
/// assert_eq!((config.time.as_str(), config.event.as_str()), ("time", "event"));
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TabularConfig {
    /// The table: `.csv`, `.tsv` (either also `.gz`) or `.parquet`.
    pub table: PathBuf,
    /// Name of the data set in reports; the file name of the table without its ending if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Column with the identity of the person; if not given, every row is a separate person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Column with the identity of the sample, unique per row; see the module documentation if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<String>,
    /// Column with the time to event or censoring, > 0; `time` if not given.
    #[serde(default = "time_column")]
    pub time: String,
    /// Column with 1 (event observed) or 0 (censored), or with the numbers that `[outcome]` names; `event` if not given.
    #[serde(default = "event_column")]
    pub event: String,
    /// Column with the class in place of time and event, for `[task] kind = "binary"`: 1 (positive) or 0 (negative), or see
    /// `label-value`. Columns named by `time` and `event` are then not read and are no features. Default: none, there are times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The value of `label` of a positive sample, whatever its case; every other value is negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_value: Option<String>,
    /// Unit of the time column, for axis labels; `time units` if not given.
    #[serde(default = "unnamed_unit")]
    pub time_unit: String,
    /// `"all"`: every column that is not mapped, excluded, or a sensitive attribute. Without it, the listed columns
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<FeatureChoice>,
    /// Columns of numbers; also names a sensitive attribute to be used as a feature.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numeric: Vec<String>,
    /// Columns of categories; also names a sensitive attribute to be used as a feature.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categorical: Vec<String>,
    /// Columns that are never features.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// What replaces a missing value; `"mean-and-indicator"` if not given.
    #[serde(default)]
    pub missing: MissingPolicy,
    /// Texts that count as missing in every column, without regard to case; `NA`, `N/A`, `NaN`, `null` and `.` if not
    /// given.
    #[serde(default = "default_missing_values")]
    pub missing_values: Vec<String>,
    /// Most categories of a column, >= 1; 100 if not given.
    #[serde(default = "default_max_levels")]
    pub max_levels: usize,
}

impl TabularConfig {
    /// The defaults for the table at `table`, with every column that has no other role as a feature.
    pub fn new(table: impl Into<PathBuf>) -> Self {
        Self {
            table: table.into(),
            name: None,
            subject: None,
            sample: None,
            time: time_column(),
            event: event_column(),
            label: None,
            label_value: None,
            time_unit: unnamed_unit(),
            features: Some(FeatureChoice::All),
            numeric: Vec::new(),
            categorical: Vec::new(),
            exclude: Vec::new(),
            missing: MissingPolicy::default(),
            missing_values: default_missing_values(),
            max_levels: default_max_levels(),
        }
    }

    /// The settings that say which columns become features, and how.
    pub fn feature_config(&self) -> FeatureConfig {
        FeatureConfig {
            features: self.features,
            numeric: self.numeric.clone(),
            categorical: self.categorical.clone(),
            exclude: self.exclude.clone(),
            missing: self.missing,
            missing_values: self.missing_values.clone(),
            max_levels: self.max_levels,
        }
    }

    pub(super) fn resolve_paths(&mut self, base: &Path) {
        self.table = base.join(&self.table);
    }

    /// Mapped columns with their content.
    fn mapped(&self) -> Vec<(String, &'static str)> {
        let identities = [
            (self.label.as_ref(), "the class"),
            (self.subject.as_ref(), "the subject"),
            (self.sample.as_ref(), "the sample identity"),
        ];
        let outcome = [(Some(&self.time), "the time"), (Some(&self.event), "the event")];
        let mapped = outcome.into_iter().chain(identities);
        mapped.filter_map(|(column, holds)| Some((column?.clone(), holds))).collect()
    }
}

/// Adapter of a table of features; see the module documentation.
#[derive(Clone, Debug)]
pub struct Tabular {
    config: TabularConfig,
}

/// What is read of the outcomes.
#[derive(Clone, Copy)]
enum Read<'a> {
    Nothing,
    Events,
    Causes(&'a OutcomeConfig),
}

/// The table with its columns separated by role.
struct Parts {
    table: Table,
    samples: Vec<Option<String>>,
    subjects: Vec<Option<String>>,
    /// `None` if outcomes are not read.
    rule: Option<Observed>,
    /// Every column that is not mapped.
    others: Vec<AttributeColumn>,
}

impl Tabular {
    /// An adapter for the table that `config` describes.
    pub fn new(config: TabularConfig) -> Self {
        Self { config }
    }

    /// The settings.
    pub fn config(&self) -> &TabularConfig {
        &self.config
    }

    /// The raw cells from which features are computed, for every row of the table.
    ///
    /// [`FeatureTable::aligned`] brings them into the order of a cohort.
    ///
    /// # Errors
    /// What [`Table::read`] returns, [`DataError::MissingColumn`] for a mapped column.
    pub fn features(&self) -> Result<FeatureTable, DataError> {
        let Parts { table, samples, others, .. } = self.parts(Read::Nothing)?;
        let rows: Vec<usize> = (0..table.n_rows()).map(|index| table.row(index)).collect();
        let name = |(sample, row): (Option<String>, &usize)| sample.unwrap_or_else(|| format!("row {row}"));
        let names = samples.into_iter().zip(&rows).map(name).map(SampleId::new).collect();
        let columns = others.into_iter().map(|column| FeatureColumn { name: column.name, cells: column.values });
        let features = FeatureTable::new(&self.config.table, names, rows, columns.collect())?;
        Ok(features.with_mapped(self.config.mapped()))
    }

    fn parts(&self, outcomes: Read<'_>) -> Result<Parts, DataError> {
        let config = &self.config;
        let table = Table::read(&config.table)?;
        let cells = |name: &str| table.text_without(name, &config.missing_values);
        let numbered = |index| Some(format!("row {}", table.row(index)));
        let subjects = match &config.subject {
            Some(column) => cells(column)?,
            None => (0..table.n_rows()).map(numbered).collect(),
        };
        let samples = match &config.sample {
            Some(column) => cells(column)?,
            None if all_differ(&subjects) => subjects.clone(),
            None => (0..table.n_rows()).map(numbered).collect(),
        };
        let (label, label_value) = (config.label.as_deref(), config.label_value.as_deref());
        let columns = OutcomeColumns { time: &config.time, event: &config.event, label, label_value, mask: None };
        let read = |outcome| columns.read(&config.table, outcome, cells).map(Some);
        let rule = match outcomes {
            Read::Nothing => None,
            Read::Events => read(None)?,
            Read::Causes(outcome) => read(Some(outcome))?,
        };
        let mapped = config.mapped();
        let others = table.names().into_iter().filter(|name| mapped.iter().all(|(column, _)| column != name));
        let others = others.map(|name| Ok(AttributeColumn::new(name, cells(name)?)));
        let others = others.collect::<Result<Vec<_>, DataError>>()?;
        Ok(Parts { table, samples, subjects, rule, others })
    }

    fn dataset_name(&self) -> String {
        let file_name = self.config.table.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let stem = file_name.split('.').next().unwrap_or_default().to_owned();
        self.config.name.clone().unwrap_or(stem)
    }

    fn provenance(&self, parts: &Parts) -> Provenance {
        let mut hasher = ContentHasher::new().table("samples");
        for index in 0..parts.samples.len() {
            let named = [&parts.samples[index], &parts.subjects[index]];
            let outcome = outcome_cells(parts.rule.as_ref(), index);
            let values = parts.others.iter().map(|column| &column.values[index]);
            hasher.row(named.into_iter().chain(outcome).chain(values).map(Option::as_deref));
        }
        let options = vec![
            ("time-unit".to_owned(), self.config.time_unit.clone()),
            ("missing-values".to_owned(), self.config.missing_values.join(", ")),
        ];
        provenance_of(hasher, (NAME, RULE_VERSION), options, &REASONS, parts.rule.as_ref())
    }
}

/// Whether the cells that are not empty are all different.
fn all_differ(cells: &[Option<String>]) -> bool {
    let mut seen = HashSet::with_capacity(cells.len());
    cells.iter().flatten().all(|cell| seen.insert(cell))
}

impl Adapter for Tabular {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read(&self) -> Result<Unlabelled, DataError> {
        self.read_rows(Read::Events)
    }

    fn read_without_outcomes(&self) -> Result<Unlabelled, DataError> {
        self.read_rows(Read::Nothing)
    }

    fn read_causes(&self, outcome: &OutcomeConfig) -> Result<Unlabelled, DataError> {
        outcome.check()?;
        self.read_rows(Read::Causes(outcome))
    }
}

impl Tabular {
    fn read_rows(&self, outcomes: Read<'_>) -> Result<Unlabelled, DataError> {
        let parts = self.parts(outcomes)?;
        let provenance = self.provenance(&parts);
        let Parts { table, samples, subjects, rule, others } = parts;
        let row = |(index, (sample_id, subject)): (usize, (Option<String>, Option<String>))| ManifestRow {
            sample_id,
            subject_id: subject.map(SubjectId::from),
            unit: None,
            // There is no image, which differs from a missing image.
            image: Some(PathBuf::new()),
            source_row: table.row(index),
        };
        let manifest = Manifest {
            name: self.dataset_name(),
            source: self.config.table.clone(),
            time_unit: self.config.time_unit.clone(),
            rows: samples.into_iter().zip(subjects).enumerate().map(row).collect(),
            attributes: others,
            roles: self.config.mapped().into_iter().map(|(column, _)| column).collect(),
        };
        refuse_duplicates(&manifest, &vec![true; manifest.rows.len()])?;
        Ok(Unlabelled { manifest, rule: boxed(rule), provenance })
    }
}
