// In the documentation the names of the README lead to the items; the README itself has links to the source.
//! [`CutPoints`]: CutPoints
//! [`GridKind`]: GridKind
//! [`Targets`]: Targets
//! [`SurvivalHead`]: SurvivalHead
//! [`NnetSurvival`]: NnetSurvival
//! [`Pmf`]: Pmf
//! [`DeepHit`]: DeepHit
//! [`PcHazard`]: PcHazard
//! [`Cox`]: Cox
//! [`CoxTime`]: CoxTime
//! [`HeadConfig`]: HeadConfig
//! [`PredictionGrid`]: PredictionGrid
//! [`Baseline`]: Baseline
//! [`BaselineFit`]: BaselineFit
//! [`Classifier`]: Classifier
//! [`ClassifierConfig`]: ClassifierConfig
//! [`marginal_hazard`]: marginal_hazard
//! [`SurvivalError`]: SurvivalError
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
