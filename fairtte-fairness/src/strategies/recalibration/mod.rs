//! Recalibration of the survival curves of each group after training: a post-processing baseline that the paper lacks.
//!
//! Acts on prediction: trains as `erm`; once the weights are chosen, one map per group is fitted on the validation part and
//! applied to all later predictions (`maps.rs` has the formulas). Needs the attribute at prediction.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `method` | `oe` | `oe`, `hazard-intercept`, `quantile`; of a class `platt` (then the default of run files), `isotonic` | which map |
//! | `prior` | 1 | > 0 | `oe`: events added on both sides; draws the exponent to 1 |
//! | `ridge` | 1 | > 0 | `hazard-intercept`: penalty of the shift |
//! | `shared` | false | | `hazard-intercept`: one shift per group in place of one per interval |
//! | `min-events` | 50 | >= 1 | `quantile`: validation events that a group with validation rows needs |
//! | `missing-attribute` | `average` | `average`, `refuse` | without the attribute: the mean of the curves of all maps with the validation shares, or an error |
//!
//! `oe` makes expected and observed events of a group agree: it multiplies the cumulative hazard, keeps the order within a
//! group at every time, and between groups changes it, so that the overall C^td may move either way. `hazard-intercept` may
//! change ranks within a group. `quantile` makes F(T) uniform in each group; it is the strongest and needs the most
//! events. Isotonic regression per horizon is not offered for curves: those fitted at different horizons may cross, and its steps
//! make ties. The probability of a class has two maps of its own (`probability.rs`): `platt`, which keeps the order within a group,
//! and `isotonic`, which makes ties and needs more samples; curves have neither, and a class none of the others.
//!
//! Finer grids and the Cox heads: maps are fitted at the cut points; `oe` and `quantile` map values of S, at any time;
//! `hazard-intercept` stretches the cumulative hazard evenly within each interval. A group without a validation row keeps its
//! curves; one with too few events for `quantile` ends the run in its first epoch. Validation during training scores the unmapped curves, so the choice of the epoch does not see the maps; the
//! predictions of the validation part are mapped by what was fitted on them, so a comparison of models there is too
//! optimistic. Survival: `oe` is unbiased under independent censoring because both sides count events and hazards of
//! those at risk. Golden values: our worked cases `golden/recalibration.json`.

mod maps;
mod probability;

use std::path::Path;

use crate::Batch;
use crate::explain::Traced;
use fairtte_metrics::GroupId;
use fairtte_survival::{CutPoints, PredictionGrid};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use self::maps::{Curve, Map, Rows, average};
use super::missing::{MissingAttribute, known};
use super::mixture::shares;
use super::saved::{read_state, write_state};
use super::{
    Erm, ExpectedBatch, NETWORK, NamedPart, ObjectiveStrategy, Saved, StepContext, StepReport, Strategy,
    StrategySettings, TrainingCells,
};
use crate::features::Layer;
use crate::predict::{CurveRule, Parts};
use crate::{Export, FairnessError, Learner, LearnerSpec, check};

/// The map that is fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RecalibrationMethod {
    /// S^a, so that expected events equal observed ones.
    #[default]
    Oe,
    /// A shift of the logits of the hazards.
    HazardIntercept,
    /// The distribution of F at the observed times.
    Quantile,
    /// Of a class: intercept and slope of the logit (Platt 1999).
    Platt,
    /// Of a class: isotonic regression (Zadrozny & Elkan 2002).
    Isotonic,
}

/// Settings of the recalibration by group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct RecalibrationConfig {
    /// The map that is fitted.
    pub method: RecalibrationMethod,
    /// Events added on both sides of `oe`, above 0.
    pub prior: f64,
    /// Penalty of the shifts of `hazard-intercept`, above 0.
    pub ridge: f64,
    /// One shift per group in place of one per interval.
    pub shared: bool,
    /// Validation events that `quantile` needs in each group with validation rows, at least 1.
    pub min_events: usize,
    /// The prediction for a sample without the attribute.
    pub missing_attribute: MissingAttribute,
}

impl Default for RecalibrationConfig {
    fn default() -> Self {
        let (method, missing_attribute) = (RecalibrationMethod::default(), MissingAttribute::default());
        Self { method, prior: 1.0, ridge: 1.0, shared: false, min_events: 50, missing_attribute }
    }
}

const NAME: &str = "recalibration";
const MISSING_KEY: &str = "missing-attribute";

impl StrategySettings for RecalibrationConfig {
    fn name(&self) -> &'static str {
        "recalibration"
    }

    fn summary(&self) -> &'static str {
        "as erm, then the curves of each group are recalibrated on the validation part"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        let Self { method, prior, ridge, shared, min_events, .. } = *self;
        check("prior", prior, prior > 0.0 && prior.is_finite(), "a finite number > 0")?;
        check("ridge", ridge, ridge > 0.0 && ridge.is_finite(), "a finite number > 0")?;
        check("min-events", min_events, min_events >= 1, "at least 1")?;
        let default = Self::default();
        let only = |other, is_default, key, value: String| {
            let expected = format!("no value without method = \"{}\"", name_of(other));
            check(key, value, method == other || is_default, &expected)
        };
        let (oe, intercept) = (RecalibrationMethod::Oe, RecalibrationMethod::HazardIntercept);
        let is_same = |a: f64, b: f64| a.total_cmp(&b).is_eq();
        only(oe, is_same(prior, default.prior), "prior", prior.to_string())?;
        only(intercept, is_same(ridge, default.ridge), "ridge", ridge.to_string())?;
        only(intercept, !shared, "shared", shared.to_string())?;
        let is_default = min_events == default.min_events;
        let value = min_events.to_string();
        only(RecalibrationMethod::Quantile, is_default, "min-events", value)
    }

    fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        let of_class = matches!(self.method, RecalibrationMethod::Platt | RecalibrationMethod::Isotonic);
        let fits = of_class == expected.head.predicts_class();
        let wanted = if of_class {
            "oe, hazard-intercept or quantile: the head predicts survival curves"
        } else {
            "platt or isotonic: the head predicts a class"
        };
        check("method", name_of(self.method), fits, wanted)
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        Ok(Box::new(Recalibration::new(self, Learner::new(spec, NETWORK)?, cells)?))
    }
}

fn name_of(method: RecalibrationMethod) -> &'static str {
    match method {
        RecalibrationMethod::Oe => "oe",
        RecalibrationMethod::HazardIntercept => "hazard-intercept",
        RecalibrationMethod::Quantile => "quantile",
        RecalibrationMethod::Platt => "platt",
        RecalibrationMethod::Isotonic => "isotonic",
    }
}

/// The maps of all groups, with the cut points and the shares of the groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecalibrationMaps {
    cut_points: CutPoints,
    /// One per group.
    maps: Vec<Map>,
    /// Share of each group among the validation rows that have one.
    shares: Vec<f64>,
}

/// Recalibrates the curves of every group after training.
#[derive(Debug)]
pub struct Recalibration {
    config: RecalibrationConfig,
    inner: ObjectiveStrategy<Erm>,
    /// `None` before the end of the training.
    fitted: Option<RecalibrationMaps>,
    n_groups: usize,
    /// Whether the validation part was found sufficient for the maps.
    is_checked: bool,
}

impl Recalibration {
    /// Combines the settings and the network that is trained.
    ///
    /// # Errors
    /// As [`RecalibrationConfig::validate`]; [`FairnessError::NoGroups`] if no training sample has a group.
    pub fn new(config: &RecalibrationConfig, learner: Learner, cells: &TrainingCells) -> Result<Self, FairnessError> {
        config.validate()?;
        cells.require_groups(NAME)?;
        let inner = ObjectiveStrategy::new(Erm, learner);
        Ok(Self { config: *config, inner, fitted: None, n_groups: cells.levels.len(), is_checked: false })
    }
}

impl Recalibration {
    /// The map of the rows of one group; a group without any keeps its curves.
    fn map(&self, rows: &Rows<'_>, n_intervals: usize) -> Map {
        let RecalibrationConfig { method, prior, ridge, shared, .. } = self.config;
        match method {
            _ if rows.index.is_empty() => Map::UNCHANGED,
            RecalibrationMethod::Oe => Map::exponent(rows, prior),
            RecalibrationMethod::HazardIntercept => Map::shifts(rows, ridge, shared, n_intervals),
            RecalibrationMethod::Quantile => Map::knots(rows),
            RecalibrationMethod::Platt => Map::platt(rows),
            RecalibrationMethod::Isotonic => Map::isotonic(rows),
        }
    }

    /// Rejects, already in the first epoch, a validation part on which no maps can be fitted.
    fn check_validation(&self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        let part = &parts.validation;
        let of_rows = part.rows.iter().map(|row| part.loader.groups()[*row]);
        let groups: Vec<Option<usize>> = of_rows.map(|group| group.map(GroupId::index)).collect();
        if groups.iter().all(Option::is_none) {
            let group = parts.levels.first().cloned().unwrap_or_default();
            return Err(FairnessError::EmptyGroup { strategy: NAME, group, part: "validation" });
        }
        if self.config.method != RecalibrationMethod::Quantile {
            return Ok(());
        }
        let needed = self.config.min_events;
        for g in 0..self.n_groups {
            let events = groups.iter().zip(part.outcomes.event()).filter(|(group, _)| **group == Some(g));
            let (n_rows, n_events) =
                events.fold((0, 0), |(rows, events), (_, event)| (rows + 1, events + usize::from(*event)));
            if n_rows > 0 && n_events < needed {
                let group = parts.levels.get(g).cloned().unwrap_or_default();
                return Err(FairnessError::FewEvents { strategy: NAME, group, part: "validation", n_events, needed });
            }
        }
        Ok(())
    }

    fn mapped(
        &self,
        fitted: &RecalibrationMaps,
        batch: &Batch,
        rule: &CurveRule<'_>,
        predict: &dyn Fn(&CurveRule<'_>) -> Result<Array2<f64>, FairnessError>,
    ) -> Result<Array2<f64>, FairnessError> {
        let curves = &predict(rule)?;
        let all = vec![1.0; self.n_groups];
        let group_of = |i: usize| known(batch.groups[i], &all);
        self.config.missing_attribute.admit(NAME, MISSING_KEY, &batch.sample_ids, |i| group_of(i).is_some())?;
        let cuts = fitted.cut_points.times();
        let needs_cuts = fitted.maps.iter().any(Map::reads_cut_points) && rule.grid.times() != cuts;
        let at_cuts = if needs_cuts {
            let grid = PredictionGrid::at_cut_points(&fitted.cut_points);
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
                Some(g) => fitted.maps[g].apply(&curve),
                None => average(&fitted.maps, &fitted.shares, &curve),
            };
            mapped.row_mut(i).iter_mut().zip(values).for_each(|(place, s)| *place = s.clamp(0.0, 1.0));
        }
        Ok(mapped)
    }
}

impl Strategy for Recalibration {
    fn name(&self) -> &'static str {
        NAME
    }

    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        self.inner.step(batch, context)
    }

    fn before_validation(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        if !self.is_checked {
            self.check_validation(parts)?;
            self.is_checked = true;
        }
        self.inner.before_validation(parts)
    }

    fn finish(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        self.check_validation(parts)?;
        let part = &parts.validation;
        let grid = PredictionGrid::at_cut_points(parts.outputs().cut_points);
        let (mut curves, mut groups) = (Vec::new(), Vec::new());
        part.for_each_batch(|batch| {
            let block = self.inner.predict(batch, &part.outputs.on(&grid))?;
            curves.extend(block.rows().into_iter().map(|row| row.to_vec()));
            groups.extend(batch.groups.iter().map(|group| group.map(GroupId::index)));
            Ok(())
        })?;
        let outcomes = part.outcomes;
        let targets = parts.outputs().cut_points.targets("validation", outcomes.time(), outcomes.event())?.intervals;
        let rows_of = |g: usize| {
            let mut rows = Rows::default();
            for i in (0..groups.len()).filter(|i| groups[*i] == Some(g)) {
                rows.survival.push(curves[i].as_slice());
                rows.index.push(targets.index[i]);
                rows.event.push(targets.event[i]);
            }
            rows
        };
        let maps = (0..self.n_groups).map(|g| self.map(&rows_of(g), parts.outputs().cut_points.n())).collect();
        let counts: Vec<usize> = (0..self.n_groups).map(|g| rows_of(g).index.len()).collect();
        self.fitted =
            Some(RecalibrationMaps { cut_points: parts.outputs().cut_points.clone(), maps, shares: shares(&counts) });
        Ok(())
    }

    fn describe_weights(&self, epoch: usize) -> String {
        format!("epoch {epoch}, recalibrated by group")
    }

    fn needs_group_to_predict(&self) -> bool {
        true
    }

    fn predict(&self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Array2<f64>, FairnessError> {
        match &self.fitted {
            Some(fitted) => self.mapped(fitted, batch, rule, &|rule| self.inner.predict(batch, rule)),
            None => self.inner.predict(batch, rule),
        }
    }

    fn traced<'a>(&'a self, batch: &'a Batch, rule: &CurveRule<'_>) -> Result<Traced<'a>, FairnessError> {
        let inner = self.inner.traced(batch, rule)?;
        Ok(match &self.fitted {
            Some(fitted) => inner.then(move |rule, predict| self.mapped(fitted, batch, rule, predict)),
            None => inner,
        })
    }

    fn features(&self, batch: &Batch, layer: Layer) -> Result<Array2<f32>, FairnessError> {
        self.inner.features(batch, layer)
    }

    fn export(&self) -> Result<Export, FairnessError> {
        Ok(Export { recalibration: self.fitted.clone(), ..self.inner.export()? })
    }

    fn parts(&mut self) -> Vec<NamedPart<'_>> {
        self.inner.parts()
    }

    fn save(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        self.inner.save(folder, what)?;
        if let Some(fitted) = &self.fitted {
            write_state(folder, NAME, fitted)?;
        }
        Ok(())
    }

    fn load(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        self.inner.load(folder, what)?;
        self.fitted = None;
        if folder.join(format!("{NAME}.json")).exists() {
            let n = self.n_groups;
            self.fitted = Some(read_state(folder, NAME, |fitted: &RecalibrationMaps| {
                let fits = fitted.maps.len() == n && fitted.shares.len() == n;
                if fits { Ok(()) } else { Err(format!("it has {} maps, expected {n}", fitted.maps.len())) }
            })?);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "../../../tests/inside/recalibration.rs"]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests;
