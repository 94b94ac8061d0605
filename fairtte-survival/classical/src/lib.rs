// In the documentation the names of the README lead to the items; the README itself has links to the source.
//! [`CoxSettings`]: CoxSettings
//! [`CoxElasticNetSettings`]: CoxElasticNetSettings
//! [`CoxTimeVaryingSettings`]: CoxTimeVaryingSettings
//! [`LogisticHazardSettings`]: LogisticHazardSettings
//! [`AftSettings`]: AftSettings
//! [`ForestSettings`]: ForestSettings
//! [`BoostingSettings`]: BoostingSettings
//! [`FineGraySettings`]: FineGraySettings
//! [`CauseSpecificSettings`]: CauseSpecificSettings
//! [`SurvivalEstimator`]: SurvivalEstimator
//! [`SurvivalModel`]: SurvivalModel
//! [`Estimator`]: Estimator
//! [`FittedEstimator`]: FittedEstimator
//! [`CoxModel`]: CoxModel
//! [`CoxRegression`]: CoxRegression
//! [`Covariates`]: Covariates
//! [`CoxElasticNetModel`]: CoxElasticNetModel
//! [`CoxTimeVaryingModel`]: CoxTimeVaryingModel
//! [`LogisticHazard`]: LogisticHazard
//! [`AcceleratedFailureTime`]: AcceleratedFailureTime
//! [`RandomSurvivalForest`]: RandomSurvivalForest
//! [`OutOfBag`]: OutOfBag
//! [`Importance`]: Importance
//! [`GradientBoostedCox`]: GradientBoostedCox
//! [`FineGrayModel`]: FineGrayModel
//! [`CauseSpecific`]: CauseSpecific
//! [`CauseSpecificCox`]: CauseSpecificCox
//! [`Ratios`]: Ratios
//! [`FitChecks`]: FitChecks
//! [`ClassicalError`]: ClassicalError
#![doc = include_str!("../README.md")]

mod aft;
pub mod biasing;
mod boosting;
mod checks;
mod columns;
mod competing;
mod covariates;
mod cox;
mod error;
mod estimate;
mod estimator;
mod forest;
pub mod generator;
mod logistic_hazard;
mod newton;
mod ratios;
mod registry;
mod standardised;
mod units;

pub use aft::{AcceleratedFailureTime, AftDistribution, AftSettings};
pub use boosting::{BoostingSettings, BoostingTrace, EarlyStopping, GradientBoostedCox, HeldOut};
pub use checks::FitChecks;
pub use columns::ColumnsPerSplit;
pub use competing::{
    CauseSpecific, CauseSpecificCox, CauseSpecificSettings, FineGrayCoefficient, FineGrayModel, FineGraySettings,
};
pub use covariates::{Coding, CovariateValues, Covariates};
pub use cox::{
    ChiSquareTest, CovariateProportionality, CoxBaseline, CoxCoefficient, CoxElasticNetModel, CoxElasticNetSettings,
    CoxErrors, CoxModel, CoxRegression, CoxSamples, CoxSettings, CoxTies, CoxTimeVaryingModel, CoxTimeVaryingSettings,
    CrossFitted, LambdaChoice, LambdaValidation, ProportionalityTest, SchoenfeldResiduals, TimeFunction, TimeTransform,
    cross_fitted_curves,
};
pub use error::ClassicalError;
pub use estimate::Estimate;
pub use estimator::{Column, Row, SurvivalEstimator, SurvivalModel};
pub use forest::{
    ColumnImportance, ConstantColumns, ForestSettings, Importance, NodeSizes, OutOfBag, OutOfBagCurves, Preset,
    RandomSurvivalForest, Sampling,
};
pub use logistic_hazard::{
    CensoredInterval, CutPointRule, CutPoints, HazardPenalty, Interval, IntervalHazard, LogisticHazard,
    LogisticHazardSettings, Ridge, TimeEffects,
};
pub use ratios::{Ratio, Ratios};
pub use registry::{Columns, Estimator, FittedEstimator};
