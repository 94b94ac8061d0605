#![doc = include_str!("../README.md")]

mod boosting;
mod columns;
mod error;
mod estimator;
mod forest;

pub use boosting::{BoostingSettings, BoostingTrace, EarlyStopping, GradientBoostedCox, HeldOut};
pub use columns::ColumnsPerSplit;
pub use error::ClassicalError;
pub use estimator::{Column, SurvivalEstimator, SurvivalModel};
pub use forest::{
    ColumnImportance, ConstantColumns, ForestSettings, Importance, OutOfBag, OutOfBagCurves, Preset,
    RandomSurvivalForest, Sampling,
};
