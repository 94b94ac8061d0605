//! Cox regression: how covariates multiply the hazard.
//!
//! h(t | x) = h0(t) exp(x b). The coefficients b have the largest partial likelihood (Cox 1972,
//! doi:10.1111/j.2517-6161.1972.tb00899.x; Newton's method), tied events by Efron's (1977,
//! doi:10.1080/01621459.1977.10480613) or Breslow's (1974, doi:10.2307/2529620) approximation. The cumulative baseline
//! hazard uses the same approximation, as R `survfit` does; lifelines and scikit-survival use Breslow's with both.
//!
//! [`CoxSettings`] fits a [`CoxModel`] to a matrix; [`CoxRegression`] is the same for named covariates with levels.
//! [`CoxElasticNetSettings`] fits a path of penalised models, [`CoxTimeVaryingSettings`] coefficients that change with time.

mod cross_fitted;
mod elastic_net;
mod model;
mod newton;
mod ordered;
mod proportionality;
mod regression;
mod samples;
mod score_residuals;
mod settings;
mod time_varying;

pub use cross_fitted::{CrossFitted, cross_fitted_curves};
pub use elastic_net::{CoxElasticNetModel, CoxElasticNetSettings, LambdaChoice, LambdaValidation};
pub use model::{ChiSquareTest, CoxBaseline, CoxCoefficient, CoxModel};
pub use ordered::CoxTies;
pub use proportionality::{CovariateProportionality, ProportionalityTest, SchoenfeldResiduals, TimeTransform};
pub use regression::CoxRegression;
pub use samples::CoxSamples;
pub use settings::{CoxErrors, CoxSettings};
pub use time_varying::{CoxTimeVaryingModel, CoxTimeVaryingSettings, TimeFunction};

#[cfg(test)]
pub(crate) mod tests;
