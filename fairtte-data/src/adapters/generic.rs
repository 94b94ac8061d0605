//! Generic table: one row per image, columns mapped by name.
//!
//! | card | |
//! |---|---|
//! | modality | any 2D picture (JPEG, PNG, TIFF, DICOM) or 3D volume (NIfTI-1, NIfTI-2, or the folder of a DICOM series) |
//! | subject, visit | one subject per value of the subject column; every row is a visit |
//! | event, time origin | the event column is 0/1, or with `[outcome]` the number of a cause; time runs from the image to event or censoring |
//! | class | with `label` in place of time and event: the column is 1/0, or `label-value` names the positive value |
//! | masks | with `mask` in place of time and event: the column has the file of the mask of every image, a PNG or TIFF picture (`image/label_map.rs`) |
//! | censoring | event 0: the time is the last time the subject was known to be free of the event |
//! | attributes | every column that is not mapped to something else; the texts of `missing-values` count as empty in every column |
//! | expected folder | the table anywhere; image paths relative to `image-root` or to the folder of the table |
//! | source, licence, access | the user's own |

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fairtte_metrics::SubjectId;
use serde::{Deserialize, Serialize};

use super::observed::{Observed, OutcomeColumns, boxed, outcome_cells, provenance_of};
use crate::cohort::Reason;
use crate::cohort::{AttributeColumn, refuse_duplicates};
use crate::cohort::{Cohort, OutcomeConfig, Sample};
use crate::cohort::{ContentHasher, Provenance};
use crate::cohort::{Manifest, ManifestRow, Unlabelled, unnamed_unit};
use crate::error::Place;
use crate::features::default_missing_values;
use crate::table::Table;
use crate::{Adapter, DataError};

pub(super) const NAME: &str = "generic";

const RULE_VERSION: u32 = 1;

const REASONS: [Reason; 3] = [Reason::MissingSample, Reason::MissingSubject, Reason::MissingImage];

/// Settings of [`Generic`], the table `[data.generic]` of a run file.
///
/// ```
/// let config: fairtte_data::GenericConfig = toml::from_str(r#"
///     table = "cohort.csv"
///     time = "years_to_progression"
///     time-unit = "years"
/// "#)?;
/// assert_eq!(config.event, "event");
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GenericConfig {
    /// The table: `.csv`, `.tsv` (either also `.gz`) or `.parquet`.
    pub table: PathBuf,
    /// Name of the data set in reports; the file name of the table without its ending if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Folder that image paths are relative to; the folder of the table if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_root: Option<PathBuf>,
    /// Column with the path of the image; `image` if not given.
    #[serde(default = "image_column")]
    pub image: String,
    /// Column with the identity of the person; `subject_id` if not given.
    #[serde(default = "subject_column")]
    pub subject: String,
    /// Column with the identity of the sample, unique per row; the text of the image path if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<String>,
    /// Column with the time from the image to event or censoring, > 0; `time` if not given.
    #[serde(default = "time_column")]
    pub time: String,
    /// Column with 1 (event observed) or 0 (censored), or with the numbers that `[outcome]` names; `event` if not given.
    #[serde(default = "event_column")]
    pub event: String,
    /// Column with the class in place of time and event, for `[task] kind = "binary"`: 1 (positive) or 0 (negative), or see
    /// `label-value`. Default: none, there are times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The value of `label` of a positive sample, whatever its case; every other value is negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_value: Option<String>,
    /// Column with the path of the mask of every image in place of time and event, for `[task] kind = "segmentation"`; relative like
    /// those of images. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,
    /// Unit of the time column, for axis labels; `time units` if not given.
    #[serde(default = "unnamed_unit")]
    pub time_unit: String,
    /// Texts that count as an empty cell in every column, without regard to case; `NA`, `N/A`, `NaN`, `null` and `.` if not given.
    #[serde(default = "default_missing_values")]
    pub missing_values: Vec<String>,
}

fn image_column() -> String {
    "image".to_owned()
}

fn subject_column() -> String {
    "subject_id".to_owned()
}

pub(super) fn time_column() -> String {
    "time".to_owned()
}

pub(super) fn event_column() -> String {
    "event".to_owned()
}

impl GenericConfig {
    /// The defaults for the table at `table`.
    pub fn new(table: impl Into<PathBuf>) -> Self {
        Self {
            table: table.into(),
            name: None,
            image_root: None,
            image: image_column(),
            subject: subject_column(),
            sample: None,
            time: time_column(),
            event: event_column(),
            label: None,
            label_value: None,
            mask: None,
            time_unit: unnamed_unit(),
            missing_values: default_missing_values(),
        }
    }

    fn outcome_columns(&self) -> OutcomeColumns<'_> {
        let (label, label_value) = (self.label.as_deref(), self.label_value.as_deref());
        OutcomeColumns { time: &self.time, event: &self.event, label, label_value, mask: self.mask.as_deref() }
    }

    pub(super) fn resolve_paths(&mut self, base: &Path) {
        self.table = base.join(&self.table);
        self.image_root = self.image_root.as_ref().map(|root| base.join(root));
    }
}

/// Adapter of the generic table; see the module documentation.
#[derive(Clone, Debug)]
pub struct Generic {
    config: GenericConfig,
}

impl Generic {
    /// An adapter for the table that `config` describes.
    pub fn new(config: GenericConfig) -> Self {
        Self { config }
    }

    fn image_root(&self) -> Result<PathBuf, DataError> {
        let table = &self.config.table;
        let root = self.config.image_root.as_deref().or(table.parent()).unwrap_or(Path::new(""));
        std::path::absolute(root.join("")).map_err(|source| DataError::read(root, source))
    }

    /// The same samples with the files of their masks in place of those of their images.
    ///
    /// # Errors
    /// [`DataError::MissingColumn`], [`DataError::InvalidCell`] for a sample of `cohort` without a mask, and what reading the table
    /// returns.
    pub fn masks_of(&self, cohort: &Cohort) -> Result<Cohort, DataError> {
        let column = self.config.mask.clone().unwrap_or_default();
        let table = Table::read(&self.config.table)?;
        let cells = self.cells(&table, &column)?;
        let ids = self.cells(&table, self.config.sample.as_ref().unwrap_or(&self.config.image))?;
        let root = self.image_root()?;
        let files: HashMap<&str, &str> =
            ids.iter().zip(&cells).filter_map(|(id, cell)| Some((id.as_deref()?, cell.as_deref()?))).collect();
        let with_mask = |sample: &Sample| {
            let file = files.get(sample.sample_id.as_str()).ok_or_else(|| DataError::InvalidCell {
                column: column.clone(),
                sample: sample.sample_id.as_str().to_owned(),
                value: "empty".to_owned(),
                expected: "the path of a mask",
                place: Place { file: self.config.table.clone(), row: sample.source_row },
            })?;
            Ok(Sample { image: root.join(file), ..sample.clone() })
        };
        let samples = cohort.samples.iter().map(with_mask).collect::<Result<Vec<_>, DataError>>()?;
        Ok(Cohort { samples, ..cohort.clone() })
    }

    fn dataset_name(&self) -> String {
        let file_name = self.config.table.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let stem = file_name.split('.').next().unwrap_or_default().to_owned();
        self.config.name.clone().unwrap_or(stem)
    }
}

impl Adapter for Generic {
    fn name(&self) -> &'static str {
        NAME
    }

    fn read(&self) -> Result<Unlabelled, DataError> {
        self.read_labelled(None)
    }

    fn read_causes(&self, outcome: &OutcomeConfig) -> Result<Unlabelled, DataError> {
        outcome.check()?;
        self.read_labelled(Some(outcome))
    }

    fn read_without_outcomes(&self) -> Result<Unlabelled, DataError> {
        self.read_rows(&Table::read(&self.config.table)?, None)
    }
}

impl Generic {
    fn cells(&self, table: &Table, column: &str) -> Result<Vec<Option<String>>, DataError> {
        table.text_without(column, &self.config.missing_values)
    }

    fn read_labelled(&self, outcome: Option<&OutcomeConfig>) -> Result<Unlabelled, DataError> {
        let table = Table::read(&self.config.table)?;
        let rule = self.config.outcome_columns().read(&self.config.table, outcome, |name| self.cells(&table, name))?;
        self.read_rows(&table, Some(rule))
    }

    fn read_rows(&self, table: &Table, rule: Option<Observed>) -> Result<Unlabelled, DataError> {
        let config = &self.config;
        let image = self.cells(table, &config.image)?;
        let subject = self.cells(table, &config.subject)?;
        let sample = config.sample.as_ref().map(|name| self.cells(table, name)).transpose()?;
        let mapped = [Some(&config.image), Some(&config.subject), config.sample.as_ref()];
        let mapped = mapped.into_iter().flatten().chain([&config.time, &config.event]).chain(config.label.as_ref());
        let mapped = mapped.chain(config.mask.as_ref());
        let mapped: Vec<&str> = mapped.map(String::as_str).collect();
        let names = table.names().into_iter().filter(|name| !mapped.contains(name));
        let attributes = names.map(|name| Ok(AttributeColumn::new(name, self.cells(table, name)?)));
        let attributes = attributes.collect::<Result<Vec<_>, DataError>>()?;
        let provenance = self.provenance(&image, &subject, sample.as_deref(), rule.as_ref(), &attributes);
        let root = self.image_root()?;
        let row = |index: usize| ManifestRow {
            sample_id: sample.as_ref().unwrap_or(&image)[index].clone(),
            subject_id: subject[index].as_deref().map(SubjectId::from),
            unit: None,
            image: image[index].as_ref().map(|path| root.join(path)),
            source_row: table.row(index),
        };
        let manifest = Manifest {
            name: self.dataset_name(),
            source: config.table.clone(),
            time_unit: config.time_unit.clone(),
            rows: (0..table.n_rows()).map(row).collect(),
            attributes,
            roles: mapped.into_iter().map(str::to_owned).collect(),
        };
        // An export of a hospital may list an image twice, but in a table of samples it is a mistake.
        refuse_duplicates(&manifest, &vec![true; manifest.rows.len()])?;
        Ok(Unlabelled { manifest, rule: boxed(rule), provenance })
    }

    fn provenance(
        &self,
        image: &[Option<String>],
        subject: &[Option<String>],
        sample: Option<&[Option<String>]>,
        rule: Option<&Observed>,
        attributes: &[AttributeColumn],
    ) -> Provenance {
        let mut hasher = ContentHasher::new().table("samples");
        for index in 0..image.len() {
            let named = [&sample.unwrap_or(image)[index], &subject[index], &image[index]];
            let outcome = outcome_cells(rule, index);
            let values = attributes.iter().map(|column| &column.values[index]);
            hasher.row(named.into_iter().chain(outcome).chain(values).map(Option::as_deref));
        }
        let options = vec![
            ("time-unit".to_owned(), self.config.time_unit.clone()),
            ("missing-values".to_owned(), self.config.missing_values.join(", ")),
        ];
        provenance_of(hasher, (NAME, RULE_VERSION), options, &REASONS, rule)
    }
}

#[cfg(test)]
mod tests;
