//! Exact, censoring-aware survival and fairness metrics for predictions of any model.
//!
//! Everything is a pure function in `f64` over a few checked types ([`Outcomes`], [`Groups`], ..). What cannot be
//! computed is a [`MetricError`] that says why; no function returns NaN.

mod error;
mod groups;
mod ids;
mod outcomes;
pub mod seeds;

pub use error::MetricError;
pub use groups::Groups;
pub use ids::{GroupId, SampleId, SubjectId};
pub use outcomes::Outcomes;
