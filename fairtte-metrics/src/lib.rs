// In the documentation the names of the README lead to the items; the README itself has links to the source.
//! [`Outcomes`]: Outcomes
//! [`SurvivalCurves`]: SurvivalCurves
//! [`Groups`]: Groups
//! [`CensoringCurve`]: CensoringCurve
//! [`evaluate`]: evaluate
//! [`EvaluationSettings`]: EvaluationSettings
//! [`EvaluationReport`]: EvaluationReport
//! [`compare_models`]: compare_models
//! [`evaluate_metric`]: evaluation::evaluate_metric
//! [`PerGroup`]: fairness::PerGroup
//! [`Reading`]: Reading
//! [`MetricError`]: MetricError
//! [`seeds`]: seeds
//! [`estimators`]: estimators
//! [`rank`]: rank
//! [`scores`]: scores
//! [`calibration`]: calibration
//! [`decision`]: decision
//! [`effects`]: effects
//! [`fairness`]: fairness
//! [`resampling`]: resampling
//! [`evaluation`]: evaluation
//! [`competing`]: competing
//! [`classification`]: classification
//! [`masks`]: masks
//! [`bias`]: bias
//! [`statistics`]: statistics
//! [`selection`]: selection
//! [`linear_algebra`]: linear_algebra
//! [`sensitivity`]: mod@sensitivity
#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    expect(clippy::unwrap_used, clippy::float_cmp, reason = "a test may panic, and its values are exact in binary")
)]

pub mod bias;
pub mod calibration;
mod chi_square;
pub mod classification;
pub mod competing;
mod curves;
pub mod decision;
pub mod effects;
mod error;
pub mod estimators;
pub mod evaluation;
pub mod fairness;
mod finite;
mod folds;
mod ids;
pub mod linear_algebra;
pub mod masks;
mod names;
mod normal;
mod outcomes;
mod pairwise_sum;
mod parallel;
pub mod rank;
mod reading;
pub mod resampling;
mod risk;
pub mod scores;
pub mod seeds;
pub mod selection;
pub mod sensitivity;
pub mod statistics;
mod value_or_reason;
mod weights;

pub use curves::{SURVIVAL_TOLERANCE, SharedValues, SurvivalCurves};
pub use error::MetricError;
pub use estimators::{CensoringCurve, CensoringTies};
pub use evaluation::{EvaluationReport, EvaluationSettings, compare_models, evaluate};
pub use fairness::{Direction, Groups};
pub use ids::{GroupId, SampleId, SubjectId};
pub use outcomes::Outcomes;
pub use reading::Reading;
pub use risk::Risk;
