//! The metrics that can be requested by name, and the registry of them.
//!
//! A metric [prepares](Metric::prepare) one slice of the samples (all of them, or one group) and then gives its value for
//! any weights of the slice's rows: 1 everywhere for the sample itself, the number of draws in a bootstrap replicate. What
//! does not depend on the weights (predictions at a time, sorted orders, terms of single samples) is computed once.
//!
//! The built-in metrics are in `built_in.rs`; a program adds its own with [`register_metric`].

mod built_in;
mod calibration;
mod causes;
mod decisions;
mod registry;
mod requested;
mod scores;

use std::fmt::Debug;

use crate::resampling::lanes::{LANES, LaneWeights};
use crate::{CensoringCurve, Direction, MetricError, Outcomes, Reading, Risk, SubjectId, SurvivalCurves, parallel};

pub use built_in::built_in_metrics;
pub use causes::cause_metrics;
pub use registry::{known_metrics, register_metric};
pub use requested::{RequestedMetric, RiskOfCurve};

/// A metric of survival curves, by name.
///
/// ```
/// use fairtte_metrics::{Direction, EvaluationSettings, MetricError};
/// use fairtte_metrics::evaluation::{Metric, PreparedMetric, ScoredSample, register_metric, rows_metric};
///
/// /// The share of the samples that have their event by the horizon: no prediction enters, as an example.
/// #[derive(Debug)]
/// struct EventShare;
///
/// impl Metric for EventShare {
///     fn name(&self) -> &'static str {
///         "event-share"
///     }
///     fn summary(&self) -> &'static str {
///         "share of samples with an event by the horizon"
///     }
///     fn label(&self) -> &'static str {
///         "Event share"
///     }
///     fn convention(&self) -> &'static str {
///         "events by the horizon divided by all samples, without censoring weights"
///     }
///     fn direction(&self) -> Direction {
///         Direction::LowerIsBetter
///     }
///     fn has_horizon(&self) -> bool {
///         true
///     }
///     fn prepare(&self, sample: &ScoredSample<'_>) -> Result<Box<dyn PreparedMetric>, MetricError> {
///         let (outcomes, horizon) = (sample.outcomes.clone(), sample.horizon()?);
///         Ok(rows_metric(move |rows| {
///             let by_then = |row: &&usize| outcomes.event()[**row] && outcomes.time()[**row] <= horizon;
///             Ok(rows.iter().filter(by_then).count() as f64 / rows.len() as f64)
///         }))
///     }
/// }
///
/// register_metric(&EventShare)?;
/// let settings = EvaluationSettings { metrics: vec!["c-td".into(), "event-share@5".into()], ..Default::default() };
/// assert_eq!(settings.validate(), Ok(()));
/// # Ok::<(), MetricError>(())
/// ```
pub trait Metric: Debug + Send + Sync {
    /// Name in settings and files, in kebab-case without `@` and `:`.
    fn name(&self) -> &'static str;

    /// One line for lists.
    fn summary(&self) -> &'static str;

    /// Short name for tables.
    fn label(&self) -> &'static str;

    /// The convention in one sentence.
    fn convention(&self) -> &'static str;

    /// Whether a higher or a lower value is better; of a metric with a [target](Self::target) it is not used.
    fn direction(&self) -> Direction;

    /// The best value, for a metric that is better the nearer it is to this value, for example 1 of a ratio.
    fn target(&self) -> Option<f64> {
        None
    }

    /// Whether the metric is a distance between what is predicted and what is observed: 0 at best, never below, and too
    /// large in small samples, more so in their replicates. Intervals are then reflected at the value
    /// ([`Basic`](crate::resampling::IntervalMethod::Basic)) where the settings say percentile.
    fn is_distance(&self) -> bool {
        false
    }

    /// Whether the metric is about one time, the horizon: `name@365`, or `name` for that of the settings.
    fn has_horizon(&self) -> bool {
        false
    }

    /// Whether the metric is about decisions at a threshold of the predicted risk: `name:0.2`, `name@365:0.2`, or `name` for
    /// each of those of the settings.
    fn has_threshold(&self) -> bool {
        false
    }

    /// Whether a value can be better than another; of a metric without a best value neither [direction](Self::direction)
    /// nor [target](Self::target) is used, and no group is the worst.
    fn has_best(&self) -> bool {
        true
    }

    /// Whether the metric is about one of several causes: then it needs outcomes with causes, and predictions are the
    /// cumulative incidence of that cause; all others would count events of other causes as censorings.
    fn needs_causes(&self) -> bool {
        false
    }

    /// What the gap between groups is called in the literature on fairness, if it has a name.
    fn gap_name(&self) -> Option<&'static str> {
        None
    }

    /// What the ratio of groups is called there, if it has a name.
    fn ratio_name(&self) -> Option<&'static str> {
        None
    }

    /// Prepares the metric for the samples of one slice.
    ///
    /// # Errors
    /// Why the metric does not exist for this slice.
    fn prepare(&self, sample: &ScoredSample<'_>) -> Result<Box<dyn PreparedMetric>, MetricError>;
}

/// A metric of one slice, for any weights of its rows.
pub trait PreparedMetric: Send + Sync {
    /// The value of the sample in which row `i` of the slice occurs `weights[i]` times; at least one weight is above 0.
    ///
    /// # Errors
    /// Why there is none; in a bootstrap replicate it then counts as undefined.
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError>;

    /// The values in several draws, `[n_draws]`; `None` where undefined, as in a draw without any row. A metric that can
    /// compute them side by side replaces this.
    fn values(&self, draws: &WeightBlock<'_>) -> Vec<Option<f64>> {
        draws.one_by_one(self)
    }
}

/// How often every row of a slice occurs in each of several draws.
#[derive(Clone, Copy, Debug)]
pub struct WeightBlock<'a> {
    rows: &'a [LaneWeights],
    n_draws: usize,
}

impl<'a> WeightBlock<'a> {
    /// The first `n_draws` lanes of `rows`.
    pub(crate) fn new(rows: &'a [LaneWeights], n_draws: usize) -> Self {
        Self { rows, n_draws: n_draws.min(LANES) }
    }

    /// Number of draws.
    pub fn n_draws(&self) -> usize {
        self.n_draws
    }

    /// Number of rows of the slice.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// The weights of all rows in one draw, `[n_rows]`; 0 everywhere beyond the last draw.
    pub fn weights(&self, draw: usize) -> Vec<u32> {
        self.rows.iter().map(|row| row.get(draw).copied().map_or(0, u32::from)).collect()
    }

    /// The values of a metric in every draw, each computed alone; `None` where undefined.
    fn one_by_one(&self, metric: &(impl PreparedMetric + ?Sized)) -> Vec<Option<f64>> {
        let value = |draw| {
            let weights = self.weights(draw);
            let drawn = weights.iter().any(|weight| *weight > 0);
            drawn.then(|| metric.value(&weights).ok()).flatten()
        };
        parallel::map(0..self.n_draws, value)
    }

    /// By row and draw; beyond [`n_draws`](Self::n_draws) the weights may be anything.
    pub(crate) fn rows(&self) -> &'a [LaneWeights] {
        self.rows
    }
}

/// A metric that is computed anew from row numbers: ascending, never empty, a row as often as it was drawn. Slow, but
/// applicable to everything that can be computed from a selection of rows.
pub fn rows_metric(
    metric: impl Fn(&[usize]) -> Result<f64, MetricError> + Send + Sync + 'static,
) -> Box<dyn PreparedMetric> {
    Box::new(OfRows(metric))
}

pub(crate) struct OfRows<F>(pub(crate) F);

impl<F: Fn(&[usize]) -> Result<f64, MetricError> + Send + Sync> PreparedMetric for OfRows<F> {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        let drawn = |(row, weight): (usize, &u32)| std::iter::repeat_n(row, *weight as usize);
        let rows: Vec<usize> = weights.iter().enumerate().flat_map(drawn).collect();
        (self.0)(&rows)
    }
}

/// The samples of one slice, with everything that a metric may need.
#[derive(Clone, Debug)]
pub struct ScoredSample<'a> {
    /// Observed outcomes, `[n]`.
    pub outcomes: &'a Outcomes,
    /// Predicted curves, `[n, n_times]`.
    pub curves: &'a SurvivalCurves,
    /// The censoring curve of the training sample; metrics with other ties take
    /// [`CensoringCurve::with_ties`].
    pub censoring: &'a CensoringCurve,
    /// How the curves are read between grid points.
    pub reading: Reading,
    /// The risk that a rank metric of one number per sample takes from a curve.
    pub risk: RiskOfCurve,
    /// Which samples had an event of another cause, `[n]`; `None` unless one of several causes is evaluated. Then the events
    /// of `outcomes` are those of the cause, and `curves` are 1 minus its cumulative incidence.
    pub competing: Option<&'a [bool]>,
    /// The subject of every sample, `[n]`.
    pub subjects: &'a [&'a SubjectId],
    pub(crate) times: &'a Result<Vec<f64>, MetricError>,
    pub(crate) horizon: &'a Result<f64, MetricError>,
    pub(crate) threshold: Option<f64>,
}

impl ScoredSample<'_> {
    /// The evaluation times, the same for every slice.
    ///
    /// # Errors
    /// Why there are none.
    pub fn times(&self) -> Result<&[f64], MetricError> {
        self.times.as_ref().map(Vec::as_slice).map_err(MetricError::clone)
    }

    /// The horizon of a metric that [has one](Metric::has_horizon).
    ///
    /// # Errors
    /// Why there is none.
    pub fn horizon(&self) -> Result<f64, MetricError> {
        self.horizon.clone()
    }

    /// The threshold of a metric that [has one](Metric::has_threshold), in (0, 1).
    ///
    /// # Errors
    /// [`MetricError::NoThreshold`] if none was given.
    pub fn threshold(&self) -> Result<f64, MetricError> {
        self.threshold.ok_or(MetricError::NoThreshold)
    }

    /// Predicted probability of the event by `time`, `[n]`.
    pub fn risk_at(&self, time: f64) -> Vec<f64> {
        self.curves.risk_at(time, self.reading)
    }

    /// One risk per sample, as [`risk`](Self::risk) says.
    ///
    /// # Errors
    /// Why there is none: no evaluation time, or no horizon.
    pub fn risks(&self) -> Result<Risk, MetricError> {
        self.risk.of(self)
    }
}

#[cfg(test)]
mod tests;
