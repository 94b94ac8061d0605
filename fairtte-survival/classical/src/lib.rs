#![doc = include_str!("../README.md")]

pub mod biasing;
mod error;
mod estimator;
mod forest;

pub use error::ClassicalError;
pub use estimator::{Column, SurvivalEstimator, SurvivalModel};
pub use forest::{ForestSettings, OutOfBag, RandomSurvivalForest, Sampling};
