#![doc = include_str!("../README.md")]

mod error;
mod estimator;
mod forest;
pub mod generator;

pub use error::ClassicalError;
pub use estimator::{Column, SurvivalEstimator, SurvivalModel};
pub use forest::{ForestSettings, OutOfBag, RandomSurvivalForest, Sampling};
