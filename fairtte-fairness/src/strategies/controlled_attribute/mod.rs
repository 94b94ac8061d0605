//! Controlling for the sensitive attribute (CSA; Pope & Sydnor 2011, Zhao & Ng 2023; the paper's D.2.5).
//!
//! Acts on the whole model: one network per group, trained on that group alone; the prediction is the mean of all of them,
//! S(t|x) = `sum_g` `pi_g` `S_g(t|x)` with `pi_g` the training shares, for any group of the sample. The attribute is read in
//! training only. The mean of curves is not the curve of the mean hazard. G networks: the time of one training, G times the
//! memory, and G passes for a prediction.
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `min-events` | 10 | >= 2 | a group with fewer training events cannot have a network of its own |
//! | `small-group` | `refuse` | `refuse`, `drop` | such a group is an error, or it is left out and the other shares are scaled to 1 |
//!
//! Each batch comes from one group, so batch norm, `DeepHit`'s pairs and the risk sets of the Cox heads are those of the group;
//! groups follow each other in an order that every epoch draws anew. When several batches make one step, the gradients of
//! each group's batches among them are averaged. Samples without the attribute, and of groups left out, train nothing: their
//! number is the term `csa: samples left out` in the log.
//! Each network keeps the weights at which the likelihood of its own curves on its own group's validation rows is best, and
//! predicts with them; the monitor scores the mean of these curves and, since they no longer change once every group has had
//! its best epoch, serves patience only. The networks of the best epoch of every group are used in the end.
//! Survival: one time grid for all, fitted on the whole training part; every Cox network has a baseline fitted on its group.
//! Where we differ: Pope & Sydnor average over the values of the attribute within one regression, the paper over networks.
//! Golden values: our worked cases `golden/csa.json` (`mixture.rs`).

mod model;
mod settings;

use std::path::Path;

use burn::module::Module as _;
use fairtte_data::Sampling;
use fairtte_metrics::GroupId;
use ndarray::{Array2, Axis, concatenate};

use self::model::{GroupModel, GroupPart};
use super::mixture::{mixture, shares};
use super::saved::{read_state, write_state};
use super::{
    NamedPart, Saved, StepContext, StepReport, Strategy, StrategySettings as _, TrainingCells, load_parts, save_parts,
};
use crate::explain::Traced;
use crate::features::Layer;
use crate::predict::{CurveRule, Parts};
use crate::{Batch, Export, FairnessError, LearnerSpec};

pub use settings::{ControlledAttributeConfig, SmallGroup};

/// One network per group, whose curves are averaged.
#[derive(Debug)]
pub struct ControlledAttribute {
    models: Vec<GroupModel>,
    /// Share of each model, `[n_models]`.
    weights: Vec<f64>,
    /// Group of every training sample that is used.
    groups: Vec<Option<GroupId>>,
}

const NAME: &str = "controlled-attribute";

impl ControlledAttribute {
    /// Builds a network for every group of the training part.
    ///
    /// # Errors
    /// As [`ControlledAttributeConfig::validate`] and [`Learner::new`](crate::Learner::new); [`FairnessError::NoGroups`] if no
    /// training sample has a group, [`FairnessError::FewEvents`] naming a group with too few events (the largest, if all are left out).
    pub fn new(
        config: &ControlledAttributeConfig,
        spec: &LearnerSpec,
        cells: &TrainingCells,
    ) -> Result<Self, FairnessError> {
        config.validate()?;
        cells.require_groups(NAME)?;
        let n_events = cells.event_counts();
        let too_small: Vec<usize> = (0..n_events.len()).filter(|g| n_events[*g] < config.min_events).collect();
        let is_refused = config.small_group == SmallGroup::Refuse || too_small.len() == n_events.len();
        if let Some(g) = too_small.iter().copied().max_by_key(|g| n_events[*g]).filter(|_| is_refused) {
            let (group, n_events, needed) = (cells.levels[g].clone(), n_events[g], config.min_events);
            return Err(FairnessError::FewEvents { strategy: NAME, group, part: "training", n_events, needed });
        }
        let kept = (0..).map(GroupId).zip(&cells.levels).filter(|(group, _)| !too_small.contains(&group.index()));
        let kept: Vec<(GroupId, &String)> = kept.collect();
        let is_kept = |group: &GroupId| kept.iter().any(|(other, _)| other == group);
        let counts = cells.counts();
        let models = kept.iter().map(|(group, level)| GroupModel::new(spec, *group, level));
        Ok(Self {
            models: models.collect::<Result<_, _>>()?,
            weights: shares(&kept.iter().map(|(group, _)| counts[group.index()]).collect::<Vec<_>>()),
            groups: cells.groups.iter().map(|group| group.filter(is_kept)).collect(),
        })
    }
}

impl Strategy for ControlledAttribute {
    fn name(&self) -> &'static str {
        NAME
    }

    fn sampling(&self) -> Sampling {
        Sampling::WithinGroups(self.groups.clone())
    }

    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        let of_batch = batch.groups.first().copied().flatten();
        let model = self.models.iter_mut().find(|model| Some(model.group) == of_batch);
        let report = model.expect("batches come from the groups that have a network").step(batch, context)?;
        if context.accumulation.of > 1 && context.accumulation.last {
            self.models.iter_mut().try_for_each(|model| model.move_on(context))?;
        }
        Ok(report)
    }

    fn before_validation(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        self.models.iter_mut().try_for_each(|model| model.choose(parts))
    }

    fn log_terms(&self) -> Vec<(String, f64)> {
        let n_left_out = self.groups.iter().filter(|group| group.is_none()).count() as f64;
        let best = |model: &GroupModel| Some((format!("csa: best nll of {}", model.level), model.best.as_ref()?.1));
        let best = self.models.iter().filter_map(best);
        best.chain([("csa: samples left out".to_owned(), n_left_out)]).collect()
    }

    fn finish(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        for model in &mut self.models {
            if let Some((network, _)) = &model.best {
                model.chosen.replace(network.valid());
                model.chosen.fit_baseline(&GroupPart::new(&parts.train, model.group).part(&parts.train))?;
            }
        }
        Ok(())
    }

    fn describe_weights(&self, _epoch: usize) -> String {
        // Whichever epoch the training chooses: every group has its own.
        "by group, the best epoch of its own network".to_owned()
    }

    fn predict(&self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Array2<f64>, FairnessError> {
        let curves = mixture(&self.weights, |model| self.models[model].chosen.survival(batch, rule))?;
        Ok(curves.expect("at least one group has a network"))
    }

    fn predict_by(
        &self,
        group: GroupId,
        batch: &Batch,
        rule: &CurveRule<'_>,
    ) -> Result<Option<Array2<f64>>, FairnessError> {
        let of_group = self.models.iter().find(|model| model.group == group);
        of_group.map(|model| model.chosen.survival(batch, rule)).transpose()
    }

    fn traced<'a>(&'a self, batch: &'a Batch, rule: &CurveRule<'_>) -> Result<Traced<'a>, FairnessError> {
        let weighted = |model: &usize| self.weights[*model] > 0.0;
        let models: Vec<usize> = (0..self.models.len()).filter(weighted).collect();
        let parts = models.iter().map(|model| self.models[*model].chosen.traced(batch, rule));
        let weights: Vec<f64> = models.iter().map(|model| self.weights[*model]).collect();
        Ok(Traced::joined(parts.collect::<Result<_, _>>()?, move |_, curves| {
            Ok(mixture(&weights, curves)?.expect("at least one group has a network"))
        }))
    }

    fn features(&self, batch: &Batch, layer: Layer) -> Result<Array2<f32>, FairnessError> {
        let of_models = self.models.iter().map(|model| model.chosen.features(batch, layer));
        let of_models = of_models.collect::<Result<Vec<_>, _>>()?;
        let views: Vec<_> = of_models.iter().map(|features| features.view()).collect();
        Ok(concatenate(Axis(1), &views).expect("every network has the rows of the batch"))
    }

    fn export(&self) -> Result<Export, FairnessError> {
        let models = self.models.iter().zip(&self.weights);
        Export::of_groups(models.map(|(model, weight)| (model.group.index(), *weight, &model.chosen)))
    }

    fn parts(&mut self) -> Vec<NamedPart<'_>> {
        self.models.iter_mut().flat_map(GroupModel::parts).collect()
    }

    fn save(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        save_parts(self.parts(), folder, what)?;
        if what == Saved::Everything {
            let best = |model: &GroupModel| model.best.as_ref().map(|(_, nll)| *nll);
            let best: Vec<Option<f64>> = self.models.iter().map(best).collect();
            write_state(folder, NAME, &best)?;
        }
        Ok(())
    }

    fn load(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        let mut best = vec![None; self.models.len()];
        if what == Saved::Everything {
            let expected = best.len();
            best = read_state(folder, NAME, |best: &Vec<Option<f64>>| {
                let found = best.len();
                if found == expected { Ok(()) } else { Err(format!("it has {found} networks, expected {expected}")) }
            })?;
        }
        load_parts(self.parts(), folder, what)?;
        if what == Saved::Everything {
            for (model, best) in self.models.iter_mut().zip(best) {
                model.pending = None;
                // Between epochs the best weights are used for prediction.
                model.best = best.map(|nll: f64| (model.chosen.network().valid(), nll));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "../../../tests/inside/controlled_attribute.rs"]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests;
