#![doc = include_str!("../README.md")]

pub mod adapters;
mod atomic;
pub mod cohort;
mod error;
pub mod features;
pub mod image;
pub mod loader;
pub mod predictions;
pub mod shift;
pub mod simulated;
pub mod split;
pub mod table;

pub use adapters::{Adapter, DataConfig, Generic, GenericConfig};
pub use atomic::write_atomically;
pub use cohort::{AttributeConfig, Cohort, FittedAttributes, Sample, build_cohort, read_cohort, write_cohort};
pub use error::{DataError, Place};
pub use image::{ImageConfig, ImageStore};
pub use loader::{HostBatch, IntensityConfig, Loader, Sampling};
pub use predictions::{read_predictions, write_predictions};
pub use split::{Part, Split, SplitConfig, make_split, split_by_subject};
