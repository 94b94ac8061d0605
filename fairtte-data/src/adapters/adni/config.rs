//! Settings of the ADNI adapter: where the files are, and one option per choice that the paper leaves open.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};

pub use crate::adapters::final_visit::FinalVisit;

/// Settings of [`Adni`](super::Adni), the table `[data.adni]` of a run file. Every option names its default first.
///
/// ```
/// let config: fairtte_data::adapters::AdniConfig = toml::from_str(r#"
///     root = "/data/adni"
///     final-visit = "literal"
/// "#)?;
/// assert_eq!(config.rounding, fairtte_data::adapters::adni::Rounding::Days);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = crate::schema::underscores))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AdniConfig {
    /// Folder that holds the tables and, usually below it, the images.
    pub root: PathBuf,
    /// Name of the data set in reports; `ADNI` if not given.
    #[serde(default = "dataset_name")]
    pub name: String,
    /// The image collection lists, CSV files: one path or several in brackets; recognised by their header if not given.
    #[serde(default, alias = "image_list", deserialize_with = "one_or_several", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Paths"))]
    pub image_list: Vec<PathBuf>,
    /// The diagnostic summary, `DXSUM..csv`; found by its name if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dxsum: Option<PathBuf>,
    /// The registry of visits, `REGISTRY..csv`; if not given, found by its name if it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<PathBuf>,
    /// The merged table, `ADNIMERGE..csv`; if not given, found by its name if it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adnimerge: Option<PathBuf>,
    /// Folder below which the image files are searched; `root` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<PathBuf>,
    /// Which scans count as those of the final visit.
    #[serde(default, alias = "final_visit")]
    pub final_visit: FinalVisit,
    /// How time becomes half-years.
    #[serde(default)]
    pub rounding: Rounding,
    /// Which dementia is the event.
    #[serde(default, alias = "dementia_cause")]
    pub dementia_cause: DementiaCause,
    /// How a diagnosis without an exam date is used.
    #[serde(default, alias = "undated_diagnosis")]
    pub undated_diagnosis: UndatedDiagnosis,
    /// Whether diagnoses of unscheduled visits (`uns1`) are used.
    #[serde(default, alias = "unscheduled_visits")]
    pub unscheduled_visits: UnscheduledVisits,
    /// Which scan of a day is kept.
    #[serde(default, alias = "scan_of_day")]
    pub scan_of_day: ScanOfDay,
    /// Where diagnoses come from.
    #[serde(default, alias = "diagnosis_source")]
    pub diagnosis_source: DiagnosisSource,
    /// The source of the diagnosis for a row of ADNI1 without a current one.
    #[serde(default, alias = "missing_current")]
    pub missing_current: MissingCurrent,
    /// Where ages come from.
    #[serde(default)]
    pub age: AgeSource,
}

fn dataset_name() -> String {
    "ADNI".to_owned()
}

/// `"list.csv"` or `["one.csv", "two.csv"]`.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "a path, or several in brackets")]
enum Paths {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    Ok(match Paths::deserialize(deserializer)? {
        Paths::One(path) => vec![path],
        Paths::Several(paths) => paths,
    })
}

impl AdniConfig {
    /// The defaults for the files in `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            name: dataset_name(),
            image_list: Vec::new(),
            dxsum: None,
            registry: None,
            adnimerge: None,
            images: None,
            final_visit: FinalVisit::default(),
            rounding: Rounding::default(),
            dementia_cause: DementiaCause::default(),
            undated_diagnosis: UndatedDiagnosis::default(),
            unscheduled_visits: UnscheduledVisits::default(),
            scan_of_day: ScanOfDay::default(),
            diagnosis_source: DiagnosisSource::default(),
            missing_current: MissingCurrent::default(),
            age: AgeSource::default(),
        }
    }

    pub(in crate::adapters) fn resolve_paths(&mut self, base: &Path) {
        self.root = base.join(&self.root);
        self.image_list.iter_mut().for_each(|path| *path = base.join(&*path));
        let tables = [&mut self.dxsum, &mut self.registry, &mut self.adnimerge];
        for path in tables.into_iter().chain([&mut self.images]).flatten() {
            *path = base.join(&*path);
        }
    }
}

/// How the time between two dates becomes a number of half-years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = crate::schema::underscores))]
#[serde(rename_all = "kebab-case")]
pub enum Rounding {
    /// `floor(days / 182.625 + 0.5)`.
    #[default]
    Days,
    /// Sixths of the difference of the months at which the visits were scheduled, halves up.
    #[serde(alias = "visit_month")]
    VisitMonth,
}

/// Which dementia is the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DementiaCause {
    /// Dementia of any cause.
    #[default]
    Any,
    /// Only dementia due to Alzheimer's disease, `DXDDUE = 1`.
    Alzheimer,
}

/// How a diagnosis without an exam date is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum UndatedDiagnosis {
    /// It counts as a record, so its subject has been diagnosed, but it dates no event.
    #[default]
    Record,
    /// It is ignored.
    Ignored,
}

/// Whether diagnoses of unscheduled visits are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum UnscheduledVisits {
    /// Like those of all other visits.
    #[default]
    Used,
    /// They are ignored.
    Skipped,
}

/// Which of several scans of one subject on one day is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = crate::schema::underscores))]
#[serde(rename_all = "kebab-case")]
pub enum ScanOfDay {
    /// The one that the image list names first.
    #[default]
    #[serde(alias = "first_listed")]
    FirstListed,
    /// `Scaled` before `Scaled_2` before everything else; ties go to the lowest image id.
    #[serde(alias = "best_description")]
    BestDescription,
}

/// Where diagnoses come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DiagnosisSource {
    /// The diagnostic summary, `DXSUM..csv`.
    #[default]
    Dxsum,
    /// Column `DX` of `ADNIMERGE..csv`.
    Adnimerge,
}

/// The source of the diagnosis for a row of ADNI1 without a current one (`DXCURREN`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MissingCurrent {
    /// None: the row holds no diagnosis.
    #[default]
    Missing,
    /// From the recorded conversion or reversion (`DXCONV` with `DXCONTYP` or `DXREV`).
    Conversion,
}

/// Where ages come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = crate::schema::underscores))]
#[serde(rename_all = "kebab-case")]
pub enum AgeSource {
    /// Column `Age` of the image list; an empty cell is filled from ADNIMERGE if that table exists.
    #[default]
    #[serde(alias = "image_list")]
    ImageList,
    /// ADNIMERGE: age at baseline plus the years from baseline to the scan.
    Adnimerge,
}
