//! Errors of predicted hazards and of treatment effects against a known truth, as a simulation has it. *The benchmark* is
//! "Benchmarking survival models: treatment effects, bias, and equity" (anonymous, under review).
//!
//! Curves are read at the ends t(1) < t(2) < .. of intervals; the first interval starts at 0, where survival is 1. The hazard of an
//! interval is the probability of the event in it given survival up to its start, h(k) = 1 - S(t(k)) / S(t(k - 1)).

mod contrasts;
mod errors;
mod interval_hazards;
mod logit_errors;

pub use contrasts::{Contrast, Contrasts, MeanRule};
pub use errors::{ContrastErrors, ErrorSummary, contrast_errors};
pub use interval_hazards::IntervalHazards;
pub use logit_errors::{IntervalError, LogitErrors, LogitMean};

use crate::{MetricError, SurvivalCurves};

/// Checks that two sets of curves are of as many samples at the same times.
fn check_alike(one: &SurvivalCurves, other: &SurvivalCurves) -> Result<(), MetricError> {
    other.check_rows(one.n())?;
    let (expected, found) = (one.grid(), other.grid());
    if found.len() != expected.len() {
        return Err(MetricError::LengthMismatch {
            what: "times of the curves",
            found: found.len(),
            expected: expected.len(),
        });
    }
    let differs = |place: &usize| found[*place].to_bits() != expected[*place].to_bits();
    match (0..found.len()).find(differs) {
        Some(place) => Err(MetricError::OtherGrid { index: place, found: found[place], expected: expected[place] }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
