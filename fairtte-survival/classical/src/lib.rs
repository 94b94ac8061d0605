#![doc = include_str!("../README.md")]

mod competing;
mod error;
mod estimator;
mod forest;

pub use competing::{CauseSpecific, FineGrayCoefficient, FineGrayModel, FineGraySettings};
pub use error::ClassicalError;
pub use estimator::{Column, SurvivalEstimator, SurvivalModel};
pub use forest::{ForestSettings, OutOfBag, RandomSurvivalForest, Sampling};
