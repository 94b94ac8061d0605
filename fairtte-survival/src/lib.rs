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
//! [`Binary`]: Binary
//! [`Segmentation`]: Segmentation
//! [`HeadConfig`]: HeadConfig
//! [`HeadSettings`]: HeadSettings
//! [`register_head`]: register_head
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
mod registry;
mod time_scale;

pub use baseline::{Baseline, BaselineFit, TiedTimes};
pub use classifier::{Classifier, ClassifierConfig};
pub use error::SurvivalError;
pub use heads::{
    Binary, BinaryConfig, Cox, CoxConfig, CoxTime, CoxTimeConfig, DeepHit, DeepHitConfig, HeadConfig, HeadSettings,
    NnetSurvival, NnetSurvivalConfig, NoSettings, PcHazard, PcHazardConfig, Pmf, PmfConfig, Ranking, Segmentation,
    SegmentationConfig, SurvivalHead, marginal_hazard, marginal_hazards, register_head,
};
pub use interpolation::{Interpolation, PredictionGrid};
pub use intervals::{ChosenGrid, CutPoints, GridKind, IntervalTargets, Masks, PieceTargets, Targets, crowded_share};
pub use registry::{Additions, Registered};
pub use time_scale::TimeScale;
