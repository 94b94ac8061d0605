#![doc = include_str!("../README.md")]

pub mod adapters;
mod atomic;
mod attributes;
mod augment;
mod cohort;
mod cohort_check;
mod cohort_file;
mod cohort_summary;
mod curve_columns;
mod error;
mod exclusions;
pub mod features;
pub mod image;
mod intensity;
mod label_rule;
mod loader;
mod manifest;
mod predictions_file;
mod provenance;
mod reason;
mod repeats;
mod scored_table;
mod shift;
pub mod simulated;
mod split;
pub mod table;
mod table_bytes;

pub use adapters::{
    Adapter, Adni, AdniConfig, AfterDischarge, Areds, AredsConfig, CatalogueEntry, DataConfig, Death, Generic,
    GenericConfig, MimicCxr, MimicCxrConfig, RaceChoice, Simulated, Tabular, TabularConfig, UnknownRace, catalogue,
};
pub use atomic::write_atomically;
pub use attributes::{AttributeConfig, FittedAttributes, Threshold, UngroupedValue};
pub use augment::{Augmentation, AugmentationConfig, Flip};
pub use cohort::{AttributeColumn, Cohort, Sample, build_cohort};
pub use cohort_check::{CheckLine, CohortCheck, Quantity, compare_with_paper};
pub use cohort_file::{read_cohort, write_cohort};
pub use cohort_summary::{AttributeSummary, CohortSummary, GroupSummary, SamplesSummary};
pub use curve_columns::{CurveRepairs, Rising};
pub use error::{DataError, Place};
pub use exclusions::{Exclusion, Exclusions, FlowStep};
pub use features::{FeatureConfig, FeatureMatrix, FeatureTable, LeakWarning, TabularFeatures, leak_warnings};
pub use image::{ImageConfig, ImageStore};
pub use intensity::{Intensity, IntensityConfig};
pub use label_rule::{Label, LabelRule, NamedCells, ObservedTime};
pub use loader::{Batches, HostBatch, Loader, PixelTransform, Sampling};
pub use manifest::{Manifest, ManifestRow, Unlabelled};
pub use predictions_file::{PredictionTable, match_predictions, read_predictions, write_predictions};
pub use provenance::{ContentHasher, Provenance};
pub use reason::Reason;
pub use scored_table::{ChangingAttribute, ScoredTable, read_outcomes, read_scored_table};
pub use shift::{
    ChangedSample, GaussianBlur, GroupBlur, ShiftConfig, ShiftGroup, ShiftRecord, TimeNoise, apply_shift, image_blur,
};
pub use split::{
    FileKey, IdenticalImages, IdenticalSet, KFold, Leak, LeaveSiteOut, Part, PartCounts, PartSize, Placed, Split,
    SplitConfig, SplitFileReport, SplitRecord, SplitRow, SplitTable, StratumCounts, check_identical_files,
    check_identical_images, make_split, split_by_subject,
};
