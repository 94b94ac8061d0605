#![doc = include_str!("../README.md")]

mod baseline;
mod classifier;
mod error;
mod heads;
mod interpolation;
mod intervals;
mod quantiles;
mod time_scale;

pub use baseline::{Baseline, BaselineFit, TiedTimes};
pub use classifier::{Classifier, ClassifierConfig};
pub use error::SurvivalError;
pub use heads::{
    Cox, CoxConfig, CoxTime, CoxTimeConfig, DeepHit, DeepHitConfig, HeadConfig, NnetSurvival, NoSettings, PcHazard,
    Pmf, Ranking, SurvivalHead, marginal_hazard,
};
pub use interpolation::{Interpolation, PredictionGrid};
pub use intervals::{CutPoints, GridKind, IntervalTargets, PieceTargets, Targets};
pub use time_scale::TimeScale;
