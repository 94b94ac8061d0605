//! From the metrics of imputations and draws to estimates with intervals, by the same code as in the main report.

use crate::evaluation::evaluated::{Counted, Evaluated, Input, Kind, Slice, SliceValue};
use crate::evaluation::replicates::Cells;
use crate::evaluation::report::{AttributeReport, MetricDescription};
use crate::evaluation::resampled::Resampled;
use crate::evaluation::summary::Summary;
use crate::fairness::PerGroup;
use crate::sensitivity::SensitivityPoint;
use crate::sensitivity::completed::WITHIN;
use crate::sensitivity::scores::Scores;
use crate::{Groups, MetricError};

/// One number of the completed data.
#[derive(Clone, Debug)]
pub(super) struct Pooled {
    /// Mean over the imputations.
    pub(super) value: Result<f64, MetricError>,
    /// One per draw: its mean over imputations, contracted to the variance of the value.
    pub(super) replicates: Vec<Option<f64>>,
    /// Variance between imputations divided by the variance of the value; `None` without replicates.
    pub(super) imputation_share: Option<f64>,
}

impl Pooled {
    /// `imputations` are those of the sample itself, `draws` those of each bootstrap draw.
    pub(super) fn new(imputations: &[Result<f64, MetricError>], draws: &[[Option<f64>; WITHIN]]) -> Self {
        let values: Result<Vec<f64>, MetricError> = imputations.iter().cloned().collect();
        let means: Vec<Option<f64>> = draws.iter().map(|of_draw| Some(mean(&defined(of_draw)?))).collect();
        let values = match values {
            Ok(values) => values,
            Err(error) => return Self { value: Err(error), replicates: means, imputation_share: None },
        };
        let (value, between_imputations) = (mean(&values), variance(&values));
        let n_imputations = values.len() as f64;
        let of_draws: Vec<f64> = means.iter().flatten().copied().collect();
        if of_draws.len() < 2 {
            return Self { value: Ok(value), replicates: means, imputation_share: None };
        }
        let within: Vec<f64> = draws.iter().filter_map(|of_draw| Some(variance(&defined(of_draw)?))).collect();
        let (centre, of_means) = (mean(&of_draws), variance(&of_draws));
        // (MSB - MSW) / m, where MSB = m times the variance of the means.
        let between_draws = (of_means - mean(&within) / WITHIN as f64).max(0.0);
        let of_value = between_draws + between_imputations / n_imputations;
        let contraction = if of_means > 0.0 { (of_value / of_means).sqrt().min(1.0) } else { 1.0 };
        let replicates = means.into_iter().map(|mean| Some(centre + contraction * (mean? - centre))).collect();
        let imputation_share = (of_value > 0.0).then(|| between_imputations / of_value);
        Self { value: Ok(value), replicates, imputation_share }
    }
}

fn defined(values: &[Option<f64>; WITHIN]) -> Option<Vec<f64>> {
    values.iter().copied().collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// With the divisor n - 1.
fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

/// What all deltas share.
pub(super) struct Assembly<'a> {
    pub(super) input: &'a Input<'a>,
    pub(super) metrics: &'a [MetricDescription<'a>],
    pub(super) kinds: &'a [Kind],
}

impl Assembly<'_> {
    /// All metrics at one delta.
    ///
    /// # Errors
    /// [`MetricError::LengthMismatch`] for groups of other samples.
    pub(super) fn points(
        &self,
        delta: f64,
        imputations: &[Scores],
        draws: &[[Scores; WITHIN]],
    ) -> Result<Vec<SensitivityPoint>, MetricError> {
        let n_slices = 1 + self.input.groups.first().map_or(0, |groups| groups.levels().len());
        let pooled = |slice: usize, metric: usize| {
            let values: Vec<_> = imputations.iter().map(|found| found[slice][metric].clone()).collect();
            let of_draw = |found: &[Scores; WITHIN]| std::array::from_fn(|k| found[k][slice][metric].clone().ok());
            Pooled::new(&values, &draws.iter().map(of_draw).collect::<Vec<_>>())
        };
        let pooled: Vec<Vec<Pooled>> =
            (0..n_slices).map(|slice| (0..self.metrics.len()).map(|metric| pooled(slice, metric)).collect()).collect();
        let evaluated = self.evaluated(&pooled)?;
        let point = |metric: usize| {
            let summary = Summary { input: self.input, evaluated: &evaluated }.metric(metric);
            let (min_events, settings) = (self.input.settings.min_events, self.input.settings);
            let attribute = summary.attributes.into_iter().next();
            let gap_margin = attribute.as_ref().and_then(|_| evaluated.gap_margin(metric, 0, min_events, settings));
            let (groups, gap, worst_group, worst, differences) = match attribute {
                Some(AttributeReport { groups, gap, worst_group, worst, differences, .. }) => {
                    (groups, Some(gap), worst_group, Some(worst), differences)
                }
                None => (vec![], None, None, None, vec![]),
            };
            SensitivityPoint {
                delta,
                hazard_ratio: delta.exp(),
                overall: summary.overall,
                groups,
                gap,
                gap_margin,
                worst_group,
                worst,
                differences,
                imputation_share: pooled[0][metric].imputation_share,
            }
        };
        Ok((0..self.metrics.len()).map(point).collect())
    }

    /// The numbers in the form of the main report.
    fn evaluated(&self, pooled: &[Vec<Pooled>]) -> Result<Evaluated<'_>, MetricError> {
        let Input { subjects, outcomes, groups, .. } = *self.input;
        let slice = |rows: Vec<usize>, of_slice: &[Pooled]| {
            let value =
                |pooled: &Pooled| SliceValue { value: pooled.value.clone(), n_comparable: None, undefined_times: 0 };
            Slice { rows, values: of_slice.iter().map(value).collect() }
        };
        let attribute = |groups: &Groups| {
            let mut of_levels = pooled[1..].iter();
            let of_level = |rows: &[usize]| {
                of_levels.next().map(|of_level| slice(rows.to_vec(), of_level)).ok_or(MetricError::NoSamples)
            };
            PerGroup::compute_all(groups, outcomes, Some(subjects), of_level)
        };
        let replicates =
            pooled.iter().map(|of_slice| of_slice.iter().map(|pooled| pooled.replicates.clone()).collect()).collect();
        let n_partial = vec![vec![0; self.metrics.len()]; pooled.len()];
        Ok(Evaluated {
            metrics: self.metrics,
            kinds: self.kinds.to_vec(),
            counted: Counted::Events,
            overall: slice((0..outcomes.n()).collect(), &pooled[0]),
            attributes: groups.iter().map(attribute).collect::<Result<_, _>>()?,
            cells: Cells::new(groups, &[]),
            resampled: Resampled { replicates, n_partial, jackknife: None, nested: None },
            by_chance: vec![],
        })
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;

    #[test]
    fn replicates_have_the_variance_of_the_components() {
        let imputations = [1.0, 1.2, 1.1, 1.3].map(Ok);
        let draws = [[0.9, 1.1], [1.5, 1.3], [0.6, 0.8], [1.2, 1.6], [0.7, 0.5]];
        let draws: Vec<[Option<f64>; 2]> = draws.map(|draw| draw.map(Some)).to_vec();
        let found = Pooled::new(&imputations, &draws);
        assert_relative_eq!(found.value.unwrap(), 1.15, max_relative = 1e-14);
        // Means of draws 1, 1.4, 0.7, 1.4, 0.6 with variance 0.142; within 0.02, 0.02, 0.02, 0.08, 0.02 with mean 0.032, so
        // that MSB = 0.284 and (MSB - MSW) / 2 = 0.126. Between imputations 0.05 / 3.
        let expected = 0.126 + 0.05 / 3.0 / 4.0;
        let replicates: Vec<f64> = found.replicates.into_iter().map(Option::unwrap).collect();
        assert_relative_eq!(variance(&replicates), expected, max_relative = 1e-12);
        assert_relative_eq!(mean(&replicates), 1.02, max_relative = 1e-12);
        assert_relative_eq!(found.imputation_share.unwrap(), 0.05 / 3.0 / expected, max_relative = 1e-12);
    }

    #[test]
    fn draws_without_a_value_are_left_out_and_an_imputation_without_one_undefines_the_number() {
        let draws = [[Some(1.0), None], [Some(1.0), Some(3.0)], [Some(2.0), Some(2.0)], [Some(4.0), Some(6.0)]];
        let found = Pooled::new(&[Ok(1.0), Ok(3.0)], &draws);
        assert_eq!(found.replicates[0], None);
        assert!(found.replicates[1..].iter().all(Option::is_some));
        let undefined = Pooled::new(&[Ok(1.0), Err(MetricError::NoSamples)], &draws);
        assert_eq!(undefined.value, Err(MetricError::NoSamples));
        let alone = Pooled::new(&[Ok(1.0), Ok(3.0)], &[[Some(1.0); 2]]);
        assert_eq!((alone.replicates, alone.imputation_share), (vec![Some(1.0)], None));
        // All of the spread is noise of imputation: what is left is the share of the M imputations, never more than all.
        let noise = Pooled::new(&[Ok(0.0), Ok(0.2)], &[[Some(0.0), Some(2.0)], [Some(1.9), Some(0.0)]]);
        let spread = noise.replicates[0].unwrap() - noise.replicates[1].unwrap();
        assert!(spread > 0.0 && spread <= 0.05 + 1e-12, "{spread}");
    }
}
