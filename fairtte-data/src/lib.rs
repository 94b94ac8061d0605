#![doc = include_str!("../README.md")]

pub mod adapters;
mod atomic;
mod attributes;
mod cohort;
mod cohort_check;
mod cohort_file;
mod cohort_summary;
mod curve_columns;
mod error;
mod exclusions;
pub mod image;
mod intensity;
mod label_rule;
mod loader;
mod manifest;
mod predictions_file;
mod provenance;
mod scored_table;
pub mod simulated;
mod split;
pub mod table;

pub use adapters::{
    Adapter, Adni, AdniConfig, AfterDischarge, Areds, AredsConfig, CatalogueEntry, DataConfig, Death, Generic,
    GenericConfig, MimicCxr, MimicCxrConfig, RaceChoice, Simulated, UnknownRace, catalogue,
};
pub use atomic::write_atomically;
pub use attributes::{AttributeConfig, FittedAttributes, Threshold, UngroupedValue};
pub use cohort::{AttributeColumn, Cohort, Sample, build_cohort};
pub use cohort_check::{CheckLine, CohortCheck, Quantity, compare_with_paper};
pub use cohort_file::{read_cohort, write_cohort};
pub use cohort_summary::{AttributeSummary, CohortSummary, GroupSummary, SamplesSummary};
pub use curve_columns::{CurveRepairs, Rising};
pub use error::{DataError, Place};
pub use exclusions::{Exclusion, Exclusions, FlowStep, Reason};
pub use image::{ImageConfig, ImageStore};
pub use intensity::{Intensity, IntensityConfig};
pub use label_rule::{Label, LabelRule, NamedCells, ObservedTime};
pub use loader::{Batches, HostBatch, Loader, Sampling};
pub use manifest::{Manifest, ManifestRow, Unlabelled};
pub use predictions_file::{PredictionTable, match_predictions, read_predictions, write_predictions};
pub use provenance::{ContentHasher, Provenance};
pub use scored_table::{ChangingAttribute, ScoredTable, read_outcomes, read_scored_table};
pub use split::{Part, Split, SplitConfig, split_by_subject};
