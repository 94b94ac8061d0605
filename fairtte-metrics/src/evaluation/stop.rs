//! A flag that ends a computation early, and how far an evaluation is.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::MetricError;

/// A flag that another thread sets to end a computation: an evaluation then fails with [`MetricError::Stopped`](crate::MetricError)
/// before its next part or block of 32 replicates. Clones share the flag. Not part of what is computed: two flags are equal.
#[derive(Clone, Default)]
pub struct Stop(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_set: AtomicBool,
    n_begun: AtomicUsize,
    n_expected: AtomicUsize,
}

impl Stop {
    /// Ends the computations that have this flag.
    pub fn set(&self) {
        self.0.is_set.store(true, Ordering::Relaxed);
    }

    /// Whether the flag was set.
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed)
    }

    /// Blocks of replicates and permutations that were begun, and how many are known to be needed so far; the second number grows
    /// when another metric begins.
    pub fn progress(&self) -> (usize, usize) {
        (self.0.n_begun.load(Ordering::Relaxed), self.0.n_expected.load(Ordering::Relaxed))
    }

    /// So many blocks are needed in addition.
    pub(crate) fn expect(&self, n_blocks: usize) {
        self.0.n_expected.fetch_add(n_blocks, Ordering::Relaxed);
    }

    /// A block begins.
    pub(crate) fn begin_block(&self) -> Result<(), MetricError> {
        self.0.n_begun.fetch_add(1, Ordering::Relaxed);
        self.check()
    }

    /// Nothing as long as the flag is not set.
    ///
    /// # Errors
    /// [`MetricError::Stopped`](crate::MetricError) once it is.
    pub fn check(&self) -> Result<(), MetricError> {
        if self.is_set() { Err(MetricError::Stopped) } else { Ok(()) }
    }
}

/// Without how far the evaluation is, so that equal results are written in the same way.
impl fmt::Debug for Stop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Stop").field(&self.is_set()).finish()
    }
}

impl PartialEq for Stop {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::{CensoringCurve, CensoringTies, EvaluationSettings, Outcomes, SubjectId, SurvivalCurves, evaluate};

    #[test]
    fn a_flag_that_is_set_ends_an_evaluation_which_counts_its_blocks() {
        let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true; 3]).unwrap();
        let curves = SurvivalCurves::new(vec![1.0, 2.0], array![[0.5, 0.1], [0.7, 0.6], [0.9, 0.8]]).unwrap();
        let censoring = CensoringCurve::fit(&outcomes, CensoringTies::default()).unwrap();
        let subjects = ["a", "b", "c"].map(SubjectId::from);
        let run = |replicates: usize, is_set: bool, metric: &str| {
            let stop = Stop::default();
            if is_set {
                stop.clone().set();
            }
            let counted = stop.clone();
            let settings = EvaluationSettings {
                replicates,
                stop,
                metrics: vec![metric.to_owned()],
                ..EvaluationSettings::default()
            };
            let found = evaluate(&subjects, &outcomes, &curves, &censoring, &[], &settings.metrics_only());
            found.map(|_| counted.progress())
        };
        for metric in ["c-td", "d-calibration"] {
            assert_eq!(run(40, true, metric), Err(MetricError::Stopped));
            assert_eq!(run(0, true, metric), Err(MetricError::Stopped));
            assert_eq!(run(40, false, metric), Ok((2, 2)));
            assert_eq!(run(0, false, metric), Ok((0, 0)));
        }
    }
}
