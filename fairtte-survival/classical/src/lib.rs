#![doc = include_str!("../README.md")]

mod covariates;
mod cox;
mod error;
mod estimator;
mod forest;
mod registry;

pub use covariates::{Coding, CovariateValues, Covariates};
pub use cox::{
    ChiSquareTest, CovariateProportionality, CoxBaseline, CoxCoefficient, CoxElasticNetModel, CoxElasticNetSettings,
    CoxErrors, CoxModel, CoxRegression, CoxSamples, CoxSettings, CoxTies, CoxTimeVaryingModel, CoxTimeVaryingSettings,
    CrossFitted, LambdaChoice, LambdaValidation, ProportionalityTest, SchoenfeldResiduals, TimeFunction, TimeTransform,
    cross_fitted_curves,
};
pub use error::ClassicalError;
pub use estimator::{Column, SurvivalEstimator, SurvivalModel};
pub use forest::{ForestSettings, OutOfBag, RandomSurvivalForest, Sampling};
pub use registry::{Columns, Estimator, FittedEstimator};
