//! The maps of all groups: their fit on the validation part, and their use.

use fairtte_metrics::GroupId;
use fairtte_survival::{CutPoints, PredictionGrid};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::maps::{Curve, Map, Rows, average};
use super::{MISSING_KEY, NAME, RecalibrationConfig, RecalibrationMethod};
use crate::predict::{CurveRule, Parts};
use crate::strategies::missing::{MissingAttribute, known};
use crate::strategies::mixture::shares;
use crate::{Batch, FairnessError};

/// The maps of all groups, with the cut points and the shares of the groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecalibrationMaps {
    cut_points: CutPoints,
    /// One per group.
    pub(super) maps: Vec<Map>,
    /// Share of each group among the validation rows that have one.
    pub(super) shares: Vec<f64>,
}

impl RecalibrationMaps {
    /// One map per group on the validation part, whose curves `predict` gives without maps.
    pub(super) fn fit(
        config: &RecalibrationConfig,
        n_groups: usize,
        parts: &Parts<'_>,
        predict: impl Fn(&Batch, &CurveRule<'_>) -> Result<Array2<f64>, FairnessError>,
    ) -> Result<Self, FairnessError> {
        let (part, cut_points) = (&parts.validation, parts.outputs().cut_points);
        let grid = PredictionGrid::at_cut_points(cut_points);
        let (mut curves, mut groups) = (Vec::new(), Vec::new());
        part.for_each_batch(|batch| {
            let block = predict(batch, &part.outputs.on(&grid))?;
            curves.extend(block.rows().into_iter().map(|row| row.to_vec()));
            groups.extend(batch.groups.iter().map(|group| group.map(GroupId::index)));
            Ok(())
        })?;
        let outcomes = part.outcomes;
        let targets = cut_points.targets("validation", outcomes.time(), outcomes.event())?.intervals;
        let rows_of = |g: usize| {
            let mut rows = Rows::default();
            for i in (0..groups.len()).filter(|i| groups[*i] == Some(g)) {
                rows.survival.push(curves[i].as_slice());
                rows.index.push(targets.index[i]);
                rows.event.push(targets.event[i]);
            }
            rows
        };
        let maps = (0..n_groups).map(|g| map(config, &rows_of(g), cut_points.n())).collect();
        let counts: Vec<usize> = (0..n_groups).map(|g| rows_of(g).index.len()).collect();
        Ok(Self { cut_points: cut_points.clone(), maps, shares: shares(&counts) })
    }

    /// The curves of `batch`, which `predict` gives without maps, by the maps of its groups.
    ///
    /// # Errors
    /// [`FairnessError::NoGroupToPredict`] for a sample without a group, if `missing` refuses it; those of `predict`.
    pub(super) fn apply(
        &self,
        missing: MissingAttribute,
        batch: &Batch,
        rule: &CurveRule<'_>,
        predict: &dyn Fn(&CurveRule<'_>) -> Result<Array2<f64>, FairnessError>,
    ) -> Result<Array2<f64>, FairnessError> {
        let curves = &predict(rule)?;
        let all = vec![1.0; self.maps.len()];
        let group_of = |i: usize| known(batch.groups[i], &all);
        missing.admit(NAME, MISSING_KEY, &batch.sample_ids, |i| group_of(i).is_some())?;
        let cuts = self.cut_points.times();
        let needs_cuts = self.maps.iter().any(Map::reads_cut_points) && rule.grid.times() != cuts;
        let at_cuts = if needs_cuts {
            let grid = PredictionGrid::at_cut_points(&self.cut_points);
            Some(predict(&CurveRule { grid: &grid, ..*rule })?)
        } else {
            None
        };
        let at_cuts = at_cuts.as_ref().unwrap_or(curves);
        let mut mapped = Array2::zeros(curves.dim());
        for i in 0..batch.n() {
            let (survival, at_cuts) = (curves.row(i).to_vec(), at_cuts.row(i).to_vec());
            let curve = Curve { survival: &survival, times: rule.grid.times(), at_cuts: &at_cuts, cuts };
            let values = match group_of(i) {
                Some(g) => self.maps[g].apply(&curve),
                None => average(&self.maps, &self.shares, &curve),
            };
            mapped.row_mut(i).iter_mut().zip(values).for_each(|(place, s)| *place = s.clamp(0.0, 1.0));
        }
        Ok(mapped)
    }
}

/// The map of the rows of one group; a group without any keeps its curves.
fn map(config: &RecalibrationConfig, rows: &Rows<'_>, n_intervals: usize) -> Map {
    let RecalibrationConfig { method, prior, ridge, shared, .. } = *config;
    match method {
        _ if rows.index.is_empty() => Map::UNCHANGED,
        RecalibrationMethod::Oe => Map::exponent(rows, prior),
        RecalibrationMethod::HazardIntercept => Map::shifts(rows, ridge, shared, n_intervals),
        RecalibrationMethod::Quantile => Map::knots(rows),
        RecalibrationMethod::Platt => Map::platt(rows),
        RecalibrationMethod::Isotonic => Map::isotonic(rows),
    }
}
