//! Exact, censoring-aware survival and fairness metrics for predictions of any model.
//!
//! Everything is a pure function in `f64` over a few checked types ([`Outcomes`], [`SurvivalCurves`],
//! [`CensoringCurve`], [`Groups`]). What cannot be computed is a [`MetricError`] that says why; no function returns
//! NaN. [`evaluate`] puts all of it together for one set of predictions.
#![cfg_attr(
    test,
    expect(clippy::unwrap_used, clippy::float_cmp, reason = "a test may panic, and its values are exact in binary")
)]

mod auc_convention;
mod auc_td;
mod bootstrap;
mod brier;
mod censoring;
mod comparison;
mod concordance_bins;
mod concordance_td;
mod curves;
mod error;
mod evaluated;
mod evaluation;
mod fenwick;
mod finite;
mod groups;
mod ids;
mod integrate;
mod intervals;
mod jackknife;
mod kaplan_meier;
mod normal;
mod outcomes;
mod paired;
mod per_group;
mod reading;
mod replicates;
mod report;
pub mod seeds;
mod settings;
mod stratify;
mod summary;
mod time_window;

pub use auc_convention::AucConvention;
pub use auc_td::{AucTd, PreparedAucTd, TIE_TOLERANCE, auc_td, auc_td_with};
pub use bootstrap::{Bootstrap, Resample, percentile_interval};
pub use brier::{BrierScore, PreparedBrier, brier_score, integrated_brier_score};
pub use censoring::{BeyondLastTime, CensoringCurve, CensoringTies};
pub use comparison::{Comparison, EquityScaling};
pub use concordance_td::{ConcordanceTd, PreparedConcordanceTd, TiedPredictions, concordance_td};
pub use curves::{SURVIVAL_TOLERANCE, SurvivalCurves};
pub use error::MetricError;
pub use evaluation::evaluate;
pub use groups::Groups;
pub use ids::{GroupId, SampleId, SubjectId};
pub use intervals::{Interval, IntervalMethod, Replicated};
pub use jackknife::{Jackknife, JackknifeValues};
pub use kaplan_meier::KaplanMeier;
pub use outcomes::Outcomes;
pub use paired::{PairedDifference, paired_difference};
pub use per_group::{Direction, EquityScaled, GroupValue, PerGroup};
pub use reading::Reading;
pub use report::{
    AttributeReport, BandedCurve, Curve, Difference, Estimate, EvaluationReport, GroupCurves, GroupDifference,
    GroupReport, MetricReport,
};
pub use settings::EvaluationSettings;
pub use stratify::Stratify;
pub use time_window::TimeWindow;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
