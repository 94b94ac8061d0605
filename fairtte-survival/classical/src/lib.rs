#![doc = include_str!("../README.md")]

mod error;
mod forest;

pub use error::ClassicalError;
pub use forest::{ForestSettings, OutOfBag, RandomSurvivalForest, Sampling};
