#![doc = include_str!("../README.md")]

mod aft;
pub mod biasing;
mod boosting;
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
mod registry;
mod standardised;

pub use aft::{AcceleratedFailureTime, AftDistribution, AftSettings};
pub use boosting::{BoostingSettings, BoostingTrace, EarlyStopping, GradientBoostedCox, HeldOut};
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
pub use estimator::{Column, SurvivalEstimator, SurvivalModel};
pub use forest::{
    ColumnImportance, ConstantColumns, ForestSettings, Importance, NodeSizes, OutOfBag, OutOfBagCurves, Preset,
    RandomSurvivalForest, Sampling,
};
pub use logistic_hazard::{
    CensoredInterval, CutPointRule, CutPoints, HazardPenalty, Interval, IntervalHazard, LogisticHazard,
    LogisticHazardSettings, Ridge, TimeEffects,
};
pub use registry::{Columns, Estimator, FittedEstimator, Ratios};
