//! The whole analysis on cohorts whose censoring is known.

mod cohort;
mod coverage;
mod input;
mod limits;
mod recovery;
mod redrawn;
mod strata;
