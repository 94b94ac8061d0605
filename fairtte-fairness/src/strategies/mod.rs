//! Training strategies, one file each, and their registry.
//!
//! A method that only changes the loss implements [`Objective`]; one with a second network, a second pass or weight
//! averaging implements [`Strategy`]. No strategy has a loop over epochs: the trainer has the only one.

mod adversary;
mod batch_cells;
mod cfair;
mod erm;
mod group_dro;
mod laftr;
mod lnl;
mod objective;
mod odr;
mod reversal;
mod subgroup_rebalancing;

use std::path::Path;

use burn::tensor::Tensor;
use fairtte_data::Sampling;
use fairtte_metrics::GroupId;
use fairtte_metrics::seeds::stream;
use fairtte_models::{Batch, Noise};
use fairtte_survival::{CutPoints, NoSettings, SurvivalHead, Targets};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::predict::{CurveRule, TrainingPart};
use crate::{FairnessError, Learner, LearnerSpec};

pub use erm::Erm;
pub use group_dro::{AbsentGroup, GroupDro, GroupDroConfig};
pub use objective::{Objective, ObjectiveStrategy, Terms, Value};
pub use subgroup_rebalancing::{Cells, RebalancingMode, SubgroupRebalancing, SubgroupRebalancingConfig};

/// How one batch changes the model, and how the model predicts.
pub trait Strategy {
    /// Name in run files.
    fn name(&self) -> &'static str;

    /// How the training samples of an epoch are drawn.
    fn sampling(&self) -> Sampling {
        Sampling::Shuffled
    }

    /// One training step: as many passes, losses and optimisers as the method has.
    ///
    /// # Errors
    /// [`FairnessError::NotFinite`] if a loss leaves the number range.
    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError>;

    /// Told the validation loss after each validation (weight averaging needs it).
    fn after_validation(&mut self, _loss: f64) {}

    /// Whether [`predict`](Self::predict) reads `batch.groups`.
    fn needs_group_to_predict(&self) -> bool {
        false
    }

    /// Fits the baseline hazard of every network for its present weights; called before each validation if the head needs
    /// one. The baseline is saved with the weights.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read the part, [`FairnessError::Survival`] if an output is not finite.
    fn fit_baseline(&mut self, part: &TrainingPart<'_>) -> Result<(), FairnessError>;

    /// Survival at the times of the rule in evaluation mode, `[batch, n_times]`; must not change any state.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read the batch, [`FairnessError::Survival`] if the head needs a
    /// baseline and none was fitted.
    fn predict(&self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Array2<f64>, FairnessError>;

    /// Writes its networks (and, for [`Saved::Everything`], optimisers and own state) into `folder`.
    ///
    /// # Errors
    /// [`FairnessError::Data`] if a file cannot be written.
    fn save(&self, folder: &Path, what: Saved) -> Result<(), FairnessError>;

    /// Reads what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// [`FairnessError::Checkpoint`] if a file cannot be read or does not fit.
    fn load(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError>;
}

/// How much of a strategy is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// What prediction needs.
    Weights,
    /// What going on with training needs too.
    Everything,
}

/// What a step knows besides its batch.
#[derive(Clone, Copy, Debug)]
pub struct StepContext<'a> {
    /// Loss and prediction rule.
    pub head: &'a dyn SurvivalHead,
    /// Time grid fitted on the training part.
    pub cut_points: &'a CutPoints,
    /// Seed of the run.
    pub seed: u64,
    /// Epoch, counted from 0.
    pub epoch: usize,
    /// Step within the epoch, counted from 0.
    pub step: usize,
}

impl StepContext<'_> {
    /// The training noise of pass `name` in this step.
    pub fn noise(&self, name: &str) -> Noise {
        Noise::on(stream(self.seed, &format!("noise/{name}"), &[self.epoch as u64, self.step as u64]))
    }

    /// What the head reads of the outcomes of a training batch.
    ///
    /// # Errors
    /// [`FairnessError::Survival`] for a negative time.
    pub fn targets(&self, batch: &Batch) -> Result<Targets, FairnessError> {
        Ok(self.cut_points.targets("training", &batch.time, &batch.event)?)
    }

    /// Times at which a network for this head is evaluated; empty unless it reads times.
    pub fn query_times(&self, targets: &Targets) -> Vec<f64> {
        self.head.query_times(targets)
    }

    /// Loss of every sample, `[batch]`: 0 for the samples that are not counted. A second call in the same step draws the
    /// same controls.
    pub fn subject_losses(&self, outputs: Tensor<2>, targets: &Targets) -> Tensor<1> {
        let mut controls = stream(self.seed, "controls", &[self.epoch as u64, self.step as u64]);
        self.head.subject_losses(outputs, targets, &mut controls)
    }

    pub(crate) fn require_finite(&self, what: &'static str, value: f64) -> Result<(), FairnessError> {
        if value.is_finite() {
            return Ok(());
        }
        Err(FairnessError::NotFinite { what, value, epoch: self.epoch + 1, step: self.step + 1 })
    }
}

/// What happened in one step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReport {
    /// Mean task loss of the samples that count, before any weighting.
    pub task_loss: f64,
    /// What the optimiser descended.
    pub objective: f64,
    /// L2 norm of the gradient before clipping.
    pub gradient_norm: f64,
    /// Groups without a sample that counts in the batch.
    pub absent_groups: usize,
    /// Further terms by name, for example the weight of a group.
    pub terms: Vec<(String, f64)>,
}

/// Group and event of every training sample, which sampling and weights are computed from.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingCells {
    /// Name of the attribute.
    pub attribute: String,
    /// Names of its levels.
    pub levels: Vec<String>,
    /// Group of every training sample, `[n]`.
    pub groups: Vec<Option<GroupId>>,
    /// Event indicator of every training sample, `[n]`.
    pub event: Vec<bool>,
}

impl TrainingCells {
    /// Number of training samples in each group.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.levels.len()];
        for group in self.groups.iter().flatten() {
            counts[group.index()] += 1;
        }
        counts
    }

    fn require_groups(&self, strategy: &'static str) -> Result<(), FairnessError> {
        if self.groups.iter().all(Option::is_none) {
            return Err(FairnessError::NoGroups { strategy, attribute: self.attribute.clone() });
        }
        Ok(())
    }
}

/// The registry of strategies; in run files `[strategy.erm]`, `[strategy.group-dro]`, ..
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StrategyConfig {
    /// [`Erm`].
    Erm(NoSettings),
    /// [`SubgroupRebalancing`].
    SubgroupRebalancing(SubgroupRebalancingConfig),
    /// [`GroupDro`].
    GroupDro(GroupDroConfig),
}

impl Default for StrategyConfig {
    fn default() -> Self {
        Self::Erm(NoSettings::default())
    }
}

impl StrategyConfig {
    /// Name and one-line summary of every strategy.
    pub const CATALOGUE: [(&'static str, &'static str); 3] = [
        ("erm", "empirical risk minimisation: the plain mean loss"),
        ("subgroup-rebalancing", "every group (or group x event) is drawn equally often (Kamiran & Calders 2012)"),
        ("group-dro", "groups with a larger loss gain weight (Sagawa et al. 2020)"),
    ];

    /// Whether training reads the groups of the samples.
    pub fn needs_groups(&self) -> bool {
        match self {
            Self::Erm(_) => false,
            Self::SubgroupRebalancing(config) => config.by != Cells::Event || config.mode == RebalancingMode::Reweigh,
            Self::GroupDro(_) => true,
        }
    }

    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the key, its value and its range.
    pub fn validate(&self) -> Result<(), FairnessError> {
        match self {
            Self::Erm(_) => Ok(()),
            Self::SubgroupRebalancing(config) => config.validate(),
            Self::GroupDro(config) => config.validate(),
        }
    }

    /// Checks the settings and builds the strategy with freshly drawn weights.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] if groups are needed and no
    /// training sample has one.
    pub fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        let learner = || Learner::new(spec, "network");
        Ok(match self {
            Self::Erm(_) => Box::new(ObjectiveStrategy::new(Erm, learner()?)),
            Self::SubgroupRebalancing(config) => {
                Box::new(ObjectiveStrategy::new(SubgroupRebalancing::new(config, cells)?, learner()?))
            }
            Self::GroupDro(config) => Box::new(ObjectiveStrategy::new(GroupDro::new(config, cells)?, learner()?)),
        })
    }
}

#[cfg(test)]
#[path = "../../tests/inside/adversary_cases.rs"]
mod adversary_cases;
