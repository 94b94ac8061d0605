#![doc = include_str!("../README.md")]

mod error;
mod estimator;
mod forest;
mod registry;

pub use error::ClassicalError;
pub use estimator::{Column, SurvivalEstimator, SurvivalModel};
pub use forest::{ForestSettings, OutOfBag, RandomSurvivalForest, Sampling};
pub use registry::{Columns, Estimator, FittedEstimator};
