#![doc = include_str!("../README.md")]

mod aft;
mod error;
mod estimate;
mod estimator;
mod forest;
mod logistic_hazard;
mod newton;
mod standardised;

pub use aft::{AcceleratedFailureTime, AftDistribution, AftSettings};
pub use error::ClassicalError;
pub use estimate::Estimate;
pub use estimator::{Column, SurvivalEstimator, SurvivalModel};
pub use forest::{ForestSettings, OutOfBag, RandomSurvivalForest, Sampling};
pub use logistic_hazard::{
    CensoredInterval, CutPointRule, CutPoints, HazardPenalty, Interval, IntervalHazard, LogisticHazard,
    LogisticHazardSettings, Ridge, TimeEffects,
};
