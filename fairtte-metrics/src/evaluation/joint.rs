//! C^td, AUC^td and IBS of survival curves, which share sorted samples between replicates.

use std::sync::OnceLock;

use crate::evaluation::Stop;
use crate::evaluation::chance::{RelabelledValues, Relabelling};
use crate::evaluation::evaluate::METRICS;
use crate::evaluation::evaluated::{Counted, Evaluated, Input, Kind, Predictions, Slice, SliceValue};
use crate::evaluation::replicates::{self, AUC, Cells, IBS, N_METRICS, Sorted, SortedAuc};
use crate::evaluation::resampled::{Draws, Resampled, Values};
use crate::fairness::PerGroup;
use crate::ids::to_u32;
use crate::rank::concordance_bins::BinPlan;
use crate::rank::{AucTd, PreparedAucTd, TiedPredictions, auc_td, concordance_td};
use crate::scores::PreparedBrier;
use crate::{MetricError, parallel};

impl Evaluated<'_> {
    /// The metrics of [`METRICS`], for survival curves; `relabelled` says whether groups are relabelled as well.
    pub(crate) fn of_curves(
        input: &Input<'_>,
        predictions: &Predictions<'_>,
        relabelled: bool,
    ) -> Result<Self, MetricError> {
        let Input { outcomes, groups, settings, .. } = *input;
        let curves = predictions.curves;
        curves.check_rows(outcomes.n())?;
        let bootstrap = input.bootstrap()?;
        let all_rows: Vec<usize> = (0..outcomes.n()).collect();
        // Groups come first: what replicates of the whole sample need is not in memory meanwhile.
        let slice = |rows: &[usize]| Slice::of_curves(rows, input, predictions, false).0;
        settings.stop.check()?;
        let attributes = per_attribute(input, slice)?;
        settings.stop.check()?;
        let is_drawn = settings.replicates > 0 || (relabelled && settings.permutations > 0);
        let (overall, auc, brier) = Slice::of_curves(&all_rows, input, predictions, is_drawn);

        settings.stop.check()?;
        let plan = BinPlan::new(outcomes, curves, settings.reading)?;
        let auc = auc.map(|auc| SortedAuc::new(auc, groups, bootstrap.unit_of_row()));
        let cells = Cells::new(groups, &plan.order);
        let brier = brier.ok().map(|brier| brier.subject_integrals().to_vec());
        let sorted = Sorted { curves, plan, ranked: OnceLock::new(), auc, brier, cells };
        let values = |draws: Draws<'_>| values(&sorted, draws, &settings.stop);
        let resampled = Resampled::new(input, &bootstrap, sorted.cells.n_slices(), N_METRICS, values)?;
        let by_chance = if relabelled {
            // Relabelled groups are drawn from the whole sample, and the samples of a subject may be in several.
            let every_row_a_unit: Vec<u32> = (0..to_u32(outcomes.n())).collect();
            let cells = Cells::new(&[], &sorted.plan.order);
            let auc = sorted.auc.map(|auc| auc.regrouped(&[], &every_row_a_unit));
            let sorted = Sorted { auc, cells, ..sorted };
            let of_weights = |relabelling: &Relabelling| {
                let found = self::values(&sorted, Draws::Relabelled(relabelling), &settings.stop)?.values;
                Ok(found.into_iter().map(|slices| slices[0].to_vec()).collect())
            };
            RelabelledValues::of_attributes(input, Counted::Events, of_weights)?
        } else {
            vec![]
        };
        let cells = Cells::new(groups, &[]);
        let kinds = vec![Kind::default(); N_METRICS];
        Ok(Self {
            metrics: &METRICS,
            kinds,
            counted: Counted::Events,
            overall,
            attributes,
            cells,
            resampled,
            by_chance,
        })
    }
}

/// The metrics for all weights of `draws`; an IBS above 1 is none.
fn values(sorted: &Sorted<'_>, draws: Draws<'_>, stop: &Stop) -> Result<Values<replicates::Values>, MetricError> {
    stop.expect(draws.n_blocks() * sorted.plan.batches().len());
    let found = sorted.values(draws.n(), |first, out| draws.weights_block(first, out, stop))?;
    let n_partial = found.n_partial_auc.into_iter().map(|n_partial_auc| {
        // Only the AUC is averaged over the times that define it.
        let mut n_partial = vec![0; N_METRICS];
        n_partial[AUC] = n_partial_auc;
        n_partial
    });
    let mut values = found.values;
    for of_slice in values.iter_mut().flatten() {
        of_slice[IBS] = of_slice[IBS].filter(|ibs| *ibs <= 1.0);
    }
    Ok(Values { values, n_partial: n_partial.collect() })
}

/// Every group of every attribute.
fn per_attribute(
    input: &Input<'_>,
    slice: impl Fn(&[usize]) -> Slice + Sync,
) -> Result<Vec<PerGroup<Slice>>, MetricError> {
    let Input { subjects, outcomes, groups, .. } = *input;
    let of_attribute = |groups| PerGroup::compute(groups, outcomes, Some(subjects), |rows| Ok(slice(rows)));
    parallel::try_map(groups, of_attribute)
}

impl Slice {
    /// The metrics of some rows by the exact path, and what the replicates of the whole sample are made from, the AUC only
    /// if weights are drawn (`is_drawn`).
    fn of_curves(
        rows: &[usize],
        input: &Input<'_>,
        predictions: &Predictions<'_>,
        is_drawn: bool,
    ) -> (Self, Option<PreparedAucTd>, Result<PreparedBrier, MetricError>) {
        let (outcomes, curves) = (input.outcomes.select(rows), predictions.curves.select(rows));
        let (reading, censoring) = (input.settings.reading, predictions.censoring);
        let pairs = concordance_td(&outcomes, &curves, reading, TiedPredictions::Strict);
        let concordance = |ties| SliceValue {
            value: pairs.clone().map(|pairs| pairs.value_with(ties)),
            n_comparable: Some(pairs.as_ref().map_or(0, |pairs| pairs.n_comparable)),
            undefined_times: 0,
        };
        let ones = vec![1; rows.len()];
        let times = || predictions.times.clone();
        let (auc, auc_values) = if is_drawn {
            let auc = times().and_then(|times| AucTd::prepare(&outcomes, &curves, censoring, reading, times));
            let values = auc.as_ref().map_err(MetricError::clone).and_then(|auc| auc.weighted(&ones));
            (auc.ok(), values)
        } else {
            (None, times().and_then(|times| auc_td(&outcomes, &curves, censoring, reading, times)))
        };
        let undefined_times = auc_values.as_ref().map_or(0, AucTd::n_undefined);
        let brier = times().and_then(|times| PreparedBrier::new(&outcomes, &curves, censoring, reading, times));
        let ibs = brier.as_ref().map_err(MetricError::clone).and_then(|brier| {
            let value = brier.weighted(&ones)?;
            brier.check_at_most_one(value, |row| input.subjects[rows[row]].to_string())
        });
        let auc_average = auc_values.and_then(|auc| auc.time_average);
        let values = vec![
            concordance(TiedPredictions::Strict),
            concordance(TiedPredictions::Half),
            SliceValue { value: auc_average, n_comparable: None, undefined_times },
            SliceValue { value: ibs, n_comparable: None, undefined_times: 0 },
        ];
        (Self { rows: rows.to_vec(), values }, auc, brier)
    }
}
