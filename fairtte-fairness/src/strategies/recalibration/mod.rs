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
//! make ties. The probability of a class has two maps of its own (`probability.rs`): `platt`, which keeps the order within a group
//! (or turns it around, where the model ranks the group the wrong way round in the validation part), and `isotonic`, which makes ties
//! and needs more samples; curves have neither, and a class none of the others.
//!
//! Finer grids and the Cox heads: maps are fitted at the cut points; `oe` and `quantile` map values of S, at any time;
//! `hazard-intercept` stretches the cumulative hazard evenly within each interval. A group without a validation row keeps its
//! curves; one with too few events for `quantile` ends the run in its first epoch. Validation during training scores the unmapped curves, so the choice of the epoch does not see the maps; the
//! predictions of the validation part are mapped by what was fitted on them, so a comparison of models there is too
//! optimistic. Survival: `oe` is unbiased under independent censoring because both sides count events and hazards of
//! those at risk. Golden values: our worked cases `golden/recalibration.json`.

mod fitted;
mod maps;
mod probability;
mod settings;

use std::path::Path;

use fairtte_metrics::GroupId;
use ndarray::Array2;

use super::saved::{read_state, write_state};
use super::{
    Erm, NamedPart, ObjectiveStrategy, Saved, StepContext, StepReport, Strategy, StrategySettings as _, TrainingCells,
};
use crate::explain::Traced;
use crate::features::Layer;
use crate::predict::{CurveRule, Parts};
use crate::{Batch, Export, FairnessError, Learner};

pub use fitted::RecalibrationMaps;
pub use settings::{RecalibrationConfig, RecalibrationMethod};

const NAME: &str = "recalibration";
const MISSING_KEY: &str = "missing-attribute";

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
        let predict = |batch: &Batch, rule: &CurveRule<'_>| self.inner.predict(batch, rule);
        self.fitted = Some(RecalibrationMaps::fit(&self.config, self.n_groups, parts, predict)?);
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
            Some(fitted) => {
                fitted.apply(self.config.missing_attribute, batch, rule, &|rule| self.inner.predict(batch, rule))
            }
            None => self.inner.predict(batch, rule),
        }
    }

    fn traced<'a>(&'a self, batch: &'a Batch, rule: &CurveRule<'_>) -> Result<Traced<'a>, FairnessError> {
        let inner = self.inner.traced(batch, rule)?;
        Ok(match &self.fitted {
            Some(fitted) => {
                inner.then(move |rule, predict| fitted.apply(self.config.missing_attribute, batch, rule, predict))
            }
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
