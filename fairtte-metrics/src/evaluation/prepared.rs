//! Metrics that are prepared for every slice of the samples and then computed for any weights of its rows.

use crate::evaluation::Stop;
use crate::evaluation::any_metric::RowMetric;
use crate::evaluation::chance::{RelabelledValues, Relabelling};
use crate::evaluation::evaluated::{Counted, Evaluated, Input, Kind, Predictions, Slice, SliceValue};
use crate::evaluation::metrics::{Metric, OfRows, PreparedMetric, RequestedMetric, ScoredSample, WeightBlock};
use crate::evaluation::replicates::Cells;
use crate::evaluation::report::MetricDescription;
use crate::evaluation::resampled::{Draws, Resampled, Values};
use crate::evaluation::time_window::KnownTimes;
use crate::fairness::PerGroup;
use crate::finite::finite;
use crate::resampling::lanes::{LANES, LaneWeights};
use crate::{MetricError, SubjectId, parallel};

/// A metric by name, with its horizon or why there is none.
pub(crate) struct RequestedAt {
    pub(crate) metric: &'static dyn Metric,
    pub(crate) horizon: Result<f64, MetricError>,
    /// The time that was asked for, known or not.
    wanted: Option<f64>,
    /// The threshold of a metric of decisions.
    pub(crate) threshold: Option<f64>,
}

impl RequestedAt {
    /// The metric at its own time, or at `horizon`.
    pub(crate) fn new(requested: &RequestedMetric, horizon: &Result<f64, MetricError>) -> Self {
        let RequestedMetric { metric, at, threshold } = *requested;
        let horizon = at.map_or_else(|| horizon.clone(), Ok);
        Self { metric, wanted: horizon.as_ref().ok().copied(), horizon, threshold }
    }

    /// Without a horizon where curves or outcomes are not known at it.
    pub(crate) fn within(self, known: KnownTimes) -> Self {
        let horizon = self.horizon.and_then(|time| known.require(time));
        Self { horizon, ..self }
    }

    /// The horizon that was asked for, of a metric that has one.
    pub(crate) fn shown_horizon(&self) -> Option<f64> {
        self.wanted.filter(|_| self.metric.has_horizon())
    }

    /// The metric's label, with its horizon and threshold.
    pub(crate) fn label(&self) -> String {
        let threshold = self.threshold.map(|threshold| format!("threshold {threshold}"));
        let about: Vec<String> = self.shown_horizon().map(short).into_iter().chain(threshold).collect();
        let label = self.metric.label();
        if about.is_empty() { label.to_owned() } else { format!("{label} ({})", about.join(", ")) }
    }
}

/// A time in at most four decimals, without trailing zeros.
fn short(time: f64) -> String {
    let text = format!("{time:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A metric prepared for one slice, or why it is not defined there.
pub(crate) type Prepared<'p> = Result<Box<dyn PreparedMetric + 'p>, MetricError>;

/// What is called with the metrics of a slice, one after another, so that not all of them need memory at a time.
pub(crate) type Visit<'v, 'p> = &'v mut dyn FnMut(Prepared<'p>);

impl<'a> Evaluated<'a> {
    /// Metrics by name, each with its description; `relabelled` says whether groups are relabelled as well.
    pub(crate) fn of_requested(
        input: &Input<'_>,
        predictions: &Predictions<'_>,
        requested: &[RequestedAt],
        descriptions: &'a [MetricDescription<'a>],
        relabelled: bool,
    ) -> Result<Self, MetricError> {
        let times = predictions.times.clone().map(<[f64]>::to_vec);
        let prepare = |rows: &[usize], visit: Visit<'_, 'static>| {
            let (outcomes, curves) = (input.outcomes.select(rows), predictions.curves.select(rows));
            let subjects: Vec<&SubjectId> = rows.iter().map(|row| &input.subjects[*row]).collect();
            let competing = input.competing_of(rows);
            let prepare = |RequestedAt { metric, horizon, threshold, .. }: &RequestedAt| {
                metric.prepare(&ScoredSample {
                    outcomes: &outcomes,
                    curves: &curves,
                    censoring: predictions.censoring,
                    reading: input.settings.reading,
                    risk: input.settings.risk,
                    competing: competing.as_deref(),
                    subjects: &subjects,
                    times: &times,
                    horizon,
                    threshold: *threshold,
                })
            };
            requested.iter().map(prepare).for_each(visit);
        };
        let kinds = requested.iter().map(|requested| Kind::of(requested.metric)).collect();
        Ok(Self { kinds, ..Self::of_prepared(input, descriptions, prepare, relabelled)? })
    }

    /// Any metric, recomputed from the rows of every slice and replicate; `relabelled` as in
    /// [`of_requested`](Self::of_requested).
    pub(crate) fn of_metric<'m>(
        input: &Input<'_>,
        description: &'a MetricDescription<'a>,
        metric: &'m RowMetric<'m>,
        relabelled: bool,
    ) -> Result<Self, MetricError> {
        let prepare = |of_slice: &[usize], visit: Visit<'_, 'm>| {
            let of_slice = of_slice.to_vec();
            visit(Ok(Box::new(OfRows(move |rows: &[usize]| {
                metric(&rows.iter().map(|row| of_slice[*row]).collect::<Vec<_>>())
            }))));
        };
        Self::of_prepared(input, std::slice::from_ref(description), prepare, relabelled)
    }

    /// The metrics whose values for any weights of a slice's rows `prepare` makes. Without replicates and relabelled groups each
    /// is dropped once it has given its value.
    pub(crate) fn of_prepared<'p>(
        input: &Input<'_>,
        metrics: &'a [MetricDescription<'a>],
        prepare: impl Fn(&[usize], Visit<'_, 'p>),
        relabelled: bool,
    ) -> Result<Self, MetricError> {
        let Input { outcomes, groups, .. } = *input;
        let bootstrap = input.bootstrap()?;
        let cells = Cells::new(groups, &[]);
        let keep = input.settings.replicates > 0 || (relabelled && input.settings.permutations > 0);
        let slice = |(_, rows)| {
            input.settings.stop.check()?;
            Ok(PreparedSlice::new(rows, metrics.len(), &prepare, keep))
        };
        let slices: Vec<PreparedSlice<'_>> = input.slices().map(slice).collect::<Result<_, MetricError>>()?;
        // The groups of every attribute come in the order of the slices.
        let mut of_groups = slices[1..].iter();
        let attributes = groups.iter().map(|groups| {
            let of_group = |_: &[usize]| of_groups.next().map(PreparedSlice::to_slice).ok_or(MetricError::NoSamples);
            PerGroup::compute_all(groups, outcomes, Some(input.subjects), of_group)
        });
        let attributes = attributes.collect::<Result<Vec<_>, _>>()?;
        let values = |draws: Draws<'_>| values(&slices, metrics.len(), draws, &input.settings.stop);
        let resampled = Resampled::new(input, &bootstrap, slices.len(), metrics.len(), values)?;
        let by_chance = if relabelled {
            let of_weights = |relabelling: &Relabelling| {
                let found =
                    self::values(&slices[..1], metrics.len(), Draws::Relabelled(relabelling), &input.settings.stop)?
                        .values;
                Ok(found.into_iter().flatten().collect())
            };
            RelabelledValues::of_attributes(input, Counted::Events, of_weights)?
        } else {
            vec![]
        };
        let (kinds, overall) = (vec![Kind::default(); metrics.len()], slices[0].to_slice());
        Ok(Self { metrics, kinds, counted: Counted::Events, overall, attributes, cells, resampled, by_chance })
    }
}

/// The metrics of every slice for all weights of `draws`, in parallel over blocks of them.
///
/// # Errors
/// Those of [`Draws::weights_block`].
fn values(
    slices: &[PreparedSlice<'_>],
    n_metrics: usize,
    draws: Draws<'_>,
    stop: &Stop,
) -> Result<Values<Vec<Option<f64>>>, MetricError> {
    let n_rows = slices[0].rows.len();
    stop.expect(draws.n_blocks());
    let of_block = |block: usize| -> Result<Vec<Vec<Vec<Option<f64>>>>, MetricError> {
        let first = block * LANES;
        let mut weights: Vec<LaneWeights> = vec![[0; LANES]; n_rows];
        draws.weights_block(first, weights.as_flattened_mut(), stop)?;
        let n_draws = LANES.min(draws.n() - first);
        let by_slice: Vec<Vec<Vec<Option<f64>>>> = slices.iter().map(|slice| slice.values(&weights, n_draws)).collect();
        let of_draw = |draw: usize| by_slice.iter().map(|of_slice| of_slice[draw].clone()).collect();
        Ok((0..n_draws).map(of_draw).collect())
    };
    let values = parallel::try_map(0..draws.n_blocks(), of_block)?.into_iter().flatten().collect();
    Ok(Values { values, n_partial: vec![vec![0; n_metrics]; slices.len()] })
}

/// One slice with the metrics that are prepared for it.
struct PreparedSlice<'p> {
    rows: Vec<usize>,
    metrics: Vec<PreparedValue<'p>>,
}

/// A metric of a slice: its value, and what its value for other weights is computed from.
struct PreparedValue<'p> {
    value: Result<f64, MetricError>,
    prepared: Option<Box<dyn PreparedMetric + 'p>>,
}

impl<'p> PreparedSlice<'p> {
    /// `keep`: values for other weights will be asked for.
    fn new(rows: Vec<usize>, n_metrics: usize, prepare: impl Fn(&[usize], Visit<'_, 'p>), keep: bool) -> Self {
        if rows.is_empty() {
            let none = || PreparedValue { value: Err(MetricError::NoSamples), prepared: None };
            return Self { rows, metrics: (0..n_metrics).map(|_| none()).collect() };
        }
        let ones = vec![1; rows.len()];
        let mut metrics = Vec::with_capacity(n_metrics);
        prepare(&rows, &mut |prepared| {
            metrics.push(match prepared {
                Ok(prepared) => {
                    let value = prepared.value(&ones).and_then(|value| finite("value of the metric", value));
                    PreparedValue { value, prepared: keep.then_some(prepared) }
                }
                Err(error) => PreparedValue { value: Err(error), prepared: None },
            });
        });
        Self { rows, metrics }
    }

    fn to_slice(&self) -> Slice {
        let value = |metric: &PreparedValue<'_>| SliceValue {
            value: metric.value.clone(),
            n_comparable: None,
            undefined_times: 0,
        };
        Slice { rows: self.rows.clone(), values: self.metrics.iter().map(value).collect() }
    }

    /// The metrics in the first `n_draws` lanes of the weights of all rows of the sample, by draw; `None` where
    /// undefined.
    fn values(&self, weights: &[LaneWeights], n_draws: usize) -> Vec<Vec<Option<f64>>> {
        let of_slice: Vec<LaneWeights>;
        let rows = if self.rows.len() == weights.len() {
            weights
        } else {
            of_slice = self.rows.iter().map(|row| weights[*row]).collect();
            &of_slice
        };
        let block = WeightBlock::new(rows, n_draws);
        let of_metric = |metric: &PreparedValue<'_>| match &metric.prepared {
            Some(prepared) => prepared.values(&block),
            None => vec![None; n_draws],
        };
        let by_metric: Vec<Vec<Option<f64>>> = self.metrics.iter().map(of_metric).collect();
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let of_draw = |draw: usize| by_metric.iter().map(|of_metric| finite(of_metric[draw])).collect();
        (0..n_draws).map(of_draw).collect()
    }
}
