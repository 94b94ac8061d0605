#![doc = include_str!("../README.md")]

pub mod biasing;
mod columns;
mod error;
mod estimator;
mod forest;

pub use columns::ColumnsPerSplit;
pub use error::ClassicalError;
pub use estimator::{Column, SurvivalEstimator, SurvivalModel};
pub use forest::{
    ColumnImportance, ConstantColumns, ForestSettings, Importance, OutOfBag, OutOfBagCurves, Preset,
    RandomSurvivalForest, Sampling,
};
