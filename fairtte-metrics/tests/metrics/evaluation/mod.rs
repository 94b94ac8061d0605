//! Whole evaluations: reports, intervals, comparisons of groups and models.

#![expect(clippy::unwrap_used, reason = "a value that must exist and does not fails the test")]

mod any_metric;
mod class_cohorts;
mod cohort;
mod cohorts;
mod comparison;
mod decisions;
mod lengths;
mod models;
mod over_time;
mod report;
mod requested;
