//! The mean absolute error of the predicted median time among the samples with an event: `mae-uncensored`.
//!
//! |T - median|, where the median is the first grid time at which the predicted curve is at most 1/2, or the last grid
//! time. The censored do not count, so that it is biased towards early events (Qi et al. 2023, "An effective meaningful way
//! to evaluate survival models", section 3).

use fairtte_metrics::evaluation::{Metric, PreparedMetric, ScoredSample};
use fairtte_metrics::{Direction, MetricError};

/// `mae-uncensored`.
#[derive(Debug)]
pub struct MaeUncensored;

/// The error of every sample; `None` for the censored.
struct Errors(Vec<Option<f64>>);

impl PreparedMetric for Errors {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        let (mut sum, mut n) = (0.0, 0.0);
        for (error, weight) in self.0.iter().zip(weights) {
            if let Some(error) = error {
                sum += error * f64::from(*weight);
                n += f64::from(*weight);
            }
        }
        if n > 0.0 { Ok(sum / n) } else { Err(MetricError::NoEvents { n: weights.len() }) }
    }
}

impl Metric for MaeUncensored {
    fn name(&self) -> &'static str {
        "mae-uncensored"
    }

    fn summary(&self) -> &'static str {
        "mean absolute error of the predicted median time among events"
    }

    fn label(&self) -> &'static str {
        "MAE (uncensored)"
    }

    fn convention(&self) -> &'static str {
        "mean of |time - first grid time at which the curve is at most 1/2| over samples with an event"
    }

    fn direction(&self) -> Direction {
        Direction::LowerIsBetter
    }

    fn prepare(&self, sample: &ScoredSample<'_>) -> Result<Box<dyn PreparedMetric>, MetricError> {
        let (grid, survival) = (sample.curves.grid(), sample.curves.survival());
        let error = |(row, (time, event)): (usize, (&f64, &bool))| {
            let median = survival.row(row).iter().position(|survival| *survival <= 0.5).unwrap_or(grid.len() - 1);
            event.then(|| (time - grid[median]).abs())
        };
        let outcomes = sample.outcomes.time().iter().zip(sample.outcomes.event());
        Ok(Box::new(Errors(outcomes.enumerate().map(error).collect())))
    }
}
