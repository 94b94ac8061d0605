//! The values of metrics in bootstrap replicates and leave-out samples, and where their sample weights come from.

use crate::evaluation::Stop;
use crate::evaluation::chance::Relabelling;
use crate::evaluation::evaluated::Input;
use crate::resampling::lanes::LANES;
use crate::resampling::{Bootstrap, IntervalMethod, Jackknife, Nested, NestedValues};
use crate::{EvaluationSettings, MetricError};

/// Values by slice, metric and replicate. Slice 0 is the whole sample; then comes every level of every attribute.
pub(crate) type Series = Vec<Vec<Vec<Option<f64>>>>;

/// The source of the sample weights.
#[derive(Clone, Copy)]
pub(crate) enum Draws<'a> {
    Bootstrap(&'a Bootstrap),
    Jackknife(&'a Jackknife),
    Nested(&'a Nested<'a>),
    Relabelled(&'a Relabelling),
}

impl Draws<'_> {
    pub(crate) fn n(self) -> usize {
        match self {
            Self::Bootstrap(bootstrap) => bootstrap.n_replicates(),
            Self::Jackknife(jackknife) => jackknife.n_blocks(),
            Self::Nested(nested) => nested.n(),
            Self::Relabelled(relabelling) => relabelling.n_groups(),
        }
    }

    /// Blocks of [`LANES`] weight vectors.
    pub(crate) fn n_blocks(self) -> usize {
        self.n().div_ceil(LANES)
    }

    /// The weights of a block; an error once `stop` is set.
    pub(crate) fn weights_block(self, first: usize, out: &mut [u16], stop: &Stop) -> Result<(), MetricError> {
        stop.begin_block()?;
        match self {
            Self::Bootstrap(bootstrap) => bootstrap.weights_block(first, LANES, out),
            Self::Jackknife(jackknife) => jackknife.weights_block(first, LANES, out),
            Self::Nested(nested) => nested.weights_block(first, LANES, out),
            Self::Relabelled(relabelling) => {
                relabelling.weights_block(first, out);
                Ok(())
            }
        }
    }
}

/// Metrics for many weight vectors; `V` contains one value per metric.
pub(crate) struct Values<V> {
    /// By weight vector and slice.
    pub(crate) values: Vec<Vec<V>>,
    /// By slice and metric: weight vectors whose value averages over fewer evaluation times than that of the sample.
    pub(crate) n_partial: Vec<Vec<usize>>,
}

/// The values that intervals are computed from.
pub(crate) struct Resampled {
    pub(crate) replicates: Series,
    /// By slice and metric: replicates that average over fewer evaluation times than the value.
    pub(crate) n_partial: Vec<Vec<usize>>,
    pub(crate) jackknife: Option<(Jackknife, Series)>,
    /// The sample without every block of units, and every replicate without every block of its draws.
    pub(crate) nested: Option<LeftOut>,
}

/// What studentised intervals need.
pub(crate) struct LeftOut {
    jackknife: Jackknife,
    own: Series,
    bootstrap: Bootstrap,
    of_replicates: Series,
}

impl LeftOut {
    /// The leave-out values of one number, computed by `of` from each of two series.
    pub(crate) fn collect(&self, of: impl Fn(&Series) -> Vec<Option<f64>>) -> Result<NestedValues, MetricError> {
        let own = self.jackknife.collect(of(&self.own))?;
        Nested::new(&self.bootstrap, Nested::DEFAULT_BLOCKS).collect(own, of(&self.of_replicates))
    }
}

impl Resampled {
    /// The bootstrap replicates and, where intervals ask for them, the leave-out samples. `values` are those of
    /// `n_slices` slices in `n_metrics` metrics.
    pub(crate) fn new<V: AsRef<[Option<f64>]>>(
        input: &Input<'_>,
        bootstrap: &Bootstrap,
        n_slices: usize,
        n_metrics: usize,
        values: impl Fn(Draws<'_>) -> Result<Values<V>, MetricError>,
    ) -> Result<Self, MetricError> {
        let Values { values: replicates, n_partial } = values(Draws::Bootstrap(bootstrap))?;
        let EvaluationSettings { interval, replicates: n_replicates, .. } = *input.settings;
        let jackknife = if interval == IntervalMethod::Bca && n_replicates > 0 {
            let jackknife = Jackknife::new(bootstrap, Jackknife::DEFAULT_BLOCKS);
            let without_a_block = values(Draws::Jackknife(&jackknife))?.values;
            Some((jackknife, series(&without_a_block, n_slices, n_metrics)))
        } else {
            None
        };
        let nested = if interval == IntervalMethod::Studentised && n_replicates > 0 {
            let jackknife = Nested::of_sample(bootstrap, Nested::DEFAULT_BLOCKS);
            let own = series(&values(Draws::Jackknife(&jackknife))?.values, n_slices, n_metrics);
            let nested = Nested::new(bootstrap, Nested::DEFAULT_BLOCKS);
            let of_replicates = series(&values(Draws::Nested(&nested))?.values, n_slices, n_metrics);
            Some(LeftOut { jackknife, own, bootstrap: bootstrap.clone(), of_replicates })
        } else {
            None
        };
        Ok(Self { replicates: series(&replicates, n_slices, n_metrics), n_partial, jackknife, nested })
    }
}

/// From values by weight vector and slice to series by slice and metric.
fn series<V: AsRef<[Option<f64>]>>(values: &[Vec<V>], n_slices: usize, n_metrics: usize) -> Series {
    let of_metric = |slice: usize, metric: usize| values.iter().map(|found| found[slice].as_ref()[metric]).collect();
    let of_slice = |slice: usize| (0..n_metrics).map(|metric| of_metric(slice, metric)).collect();
    (0..n_slices).map(of_slice).collect()
}
