#![doc = include_str!("../README.md")]

mod classifier;
mod error;
mod heads;
mod intervals;

pub use classifier::Classifier;
pub use error::SurvivalError;
pub use heads::{DeepHit, DeepHitConfig, HeadConfig, NnetSurvival, NoSettings, Pmf, SurvivalHead, marginal_hazard};
pub use intervals::{CutPoints, IntervalTargets};
