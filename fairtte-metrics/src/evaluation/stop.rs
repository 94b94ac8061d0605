//! A flag that ends an evaluation early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that another thread sets to end an evaluation: it then fails with [`MetricError::Stopped`](crate::MetricError)
/// before its next block of 32 replicates. Clones share the flag. Not part of what is computed: two flags are equal.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the evaluations that have this flag.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the flag was set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
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
    use crate::{
        CensoringCurve, CensoringTies, EvaluationSettings, MetricError, Outcomes, SubjectId, SurvivalCurves, evaluate,
    };

    #[test]
    fn a_flag_that_is_set_ends_the_replicates_and_nothing_before_them() {
        let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true; 3]).unwrap();
        let curves = SurvivalCurves::new(vec![1.0, 2.0], array![[0.5, 0.1], [0.7, 0.6], [0.9, 0.8]]).unwrap();
        let censoring = CensoringCurve::fit(&outcomes, CensoringTies::default()).unwrap();
        let subjects = ["a", "b", "c"].map(SubjectId::from);
        let run = |replicates: usize, is_set: bool, metric: &str| {
            let stop = Stop::default();
            if is_set {
                stop.clone().set();
            }
            let settings = EvaluationSettings {
                replicates,
                stop,
                metrics: vec![metric.to_owned()],
                ..EvaluationSettings::default()
            };
            evaluate(&subjects, &outcomes, &curves, &censoring, &[], &settings.metrics_only()).map(drop)
        };
        for metric in ["c-td", "d-calibration"] {
            assert_eq!(run(40, true, metric), Err(MetricError::Stopped));
            assert_eq!(run(40, false, metric), Ok(()));
            assert_eq!(run(0, true, metric), Ok(()));
        }
    }
}
