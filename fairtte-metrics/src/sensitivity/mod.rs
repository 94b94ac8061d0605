//! How metrics and gaps change if censoring is informative: the hazard of the censored is tilted.
//!
//! Every metric of a report rests on the assumption that the censored have the same hazard after their censoring as those
//! who were still followed. Here the time after censoring is imputed from a model of the event time given survival up to the
//! censoring, with the hazard multiplied by exp(delta): delta = 0 is censoring at random given the model, delta > 0 says
//! that who left was about to have the event, delta < 0 that who left was well (Jackson, White, Seaman, Evans, Baisley &
//! Carpenter 2014, doi:10.1002/sim.6274, where delta is called gamma). What a metric, a gap and their intervals are at every
//! delta shows how strong the dependence must be to turn the verdict: the tipping point.
//!
//! **Follow-up.** All follow-up ends at one time, the `administrative` end: a sample that is observed up to it has no
//! imputed time, and an imputed time beyond it is event-free at it. Who is censored before it is a drop-out. Completed data
//! are therefore censored at this time only, and metrics of earlier times need no censoring weights; rank metrics without
//! weights are those of the follow-up up to it.
//!
//! **Imputation.** With cumulative hazard H of the stratum, hazard ratio r of the sample, censoring at c and a unit
//! exponential E, the event is at the time t with `H(t) = H(c) + E / (r exp(delta))`. Between two event times H is linear (the
//! hazard is constant), where Jackson et al. take steps: t tends to c for large delta. After the last event time of the stratum
//! the hazard is 0, as there. The models are described at [`ImputationModel`].
//!
//! **Estimate and interval.** The estimate is the mean over M imputations, for each of which the model is fitted to a
//! bootstrap draw of the subjects, as in Jackson et al. (approximate Bayesian bootstrap). The interval comes from bootstrap
//! followed by imputation (von Hippel & Bartlett 2021, doi:10.1214/20-STS793; valid also where imputation model and metric do not agree:
//! Bartlett & Hughes 2020, doi:10.1177/0962280220932189): B draws of subjects, the model fitted to each draw, the draw
//! imputed m = 2 times. With mean squares MSB and MSW between and within draws, `s = (MSB - MSW) / m` estimates the variance of
//! the estimate for infinitely many imputations. To it is added the variance between the M imputations divided by M. The
//! replicates of a number are the means of its draws, contracted around their mean to this variance; intervals of values,
//! differences, gap and worst group are made from them as in the main report.
//!
//! The same draws, models and random numbers serve every delta, so curves over delta are smooth.

mod analysis;
mod assemble;
mod completed;
mod hazard;
mod impute;
mod report;
mod scores;
mod settings;
mod tipping;

#[cfg(test)]
mod tests;

pub use analysis::{sensitivity, sensitivity_of};
pub use report::{
    AttributeSensitivity, FollowUp, MetricSensitivity, ObservedValues, SensitivityPoint, SensitivityReport,
};
pub use settings::{ImputationModel, SensitivitySettings, TiltedGroup};
pub use tipping::{TippingPoint, Verdict};
