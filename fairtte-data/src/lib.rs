// In the documentation the names of the README lead to the items; the README itself has links to the source.
//! [`Adapter`]: Adapter
//! [`Generic`]: Generic
//! [`Tabular`]: adapters::Tabular
//! [`DataConfig`]: DataConfig
//! [`build_cohort`]: build_cohort
//! [`Cohort`]: Cohort
//! [`Exclusions`]: cohort::Exclusions
//! [`split_by_subject`]: split_by_subject
//! [`make_split`]: make_split
//! [`FittedAttributes`]: FittedAttributes
//! [`ImageStore`]: ImageStore
//! [`TabularFeatures`]: features::TabularFeatures
//! [`Loader`]: Loader
//! [`write_predictions`]: write_predictions
//! [`read_predictions`]: read_predictions
//! [`DataError`]: DataError
//! [`write_atomically`]: write_atomically
//! [`adapters`]: mod@adapters
//! [`cohort`]: mod@cohort
//! [`split`]: mod@split
//! [`image`]: mod@image
//! [`features`]: mod@features
//! [`shift`]: mod@shift
//! [`loader`]: mod@loader
//! [`predictions`]: mod@predictions
//! [`simulated`]: mod@simulated
//! [`table`]: mod@table
#![doc = include_str!("../README.md")]

pub mod adapters;
mod atomic;
pub mod cohort;
mod error;
pub mod features;
pub mod image;
pub mod loader;
mod nearest;
pub mod predictions;
#[cfg(feature = "schema")]
mod schema;
pub mod shift;
pub mod simulated;
pub mod split;
pub mod table;

pub use adapters::{Adapter, DataConfig, Generic, GenericConfig};
pub use atomic::{remove_unfinished, unfinished_name, write_atomically};
pub use cohort::{AttributeConfig, Cohort, FittedAttributes, Sample, build_cohort, read_cohort, write_cohort};
pub use error::{DataError, Place, SettingsOf};
pub use image::{ImageConfig, ImageStore};
pub use loader::{HostBatch, IntensityConfig, Loader, Sampling};
pub use predictions::{read_predictions, write_predictions};
pub use split::{Part, Split, SplitConfig, make_split, split_by_subject};
