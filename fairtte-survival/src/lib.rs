//! Discrete-time survival heads: intervals, losses and curves, each checked against pycox.

mod classifier;
mod error;
mod heads;
mod intervals;

pub use classifier::Classifier;
pub use error::SurvivalError;
pub use heads::{DeepHit, DeepHitConfig, HeadConfig, NnetSurvival, NoSettings, Pmf, SurvivalHead};
pub use intervals::{CutPoints, IntervalTargets};
