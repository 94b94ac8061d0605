//! Training strategies, one file each, and their registry.
//!
//! A method that only changes the loss implements [`Objective`]; one with a second network, a second pass or weight
//! averaging implements [`Strategy`]. No strategy has a loop over epochs: the trainer has the only one.

mod adversary;
mod batch_cells;
mod cells;
mod cfair;
mod controlled_attribute;
mod domain_independent;
mod dro_chi_square;
mod end;
mod erm;
mod fair_representation;
mod febs;
mod group_dro;
mod groups;
mod laftr;
mod lnl;
mod missing;
mod mixture;
mod numbers;
mod objective;
mod odr;
mod pass;
mod recalibration;
mod reversal;
mod sam;
mod step;
mod strata;
mod subgroup_rebalancing;
mod swad;
mod task;
#[cfg(test)]
#[path = "../../tests/inside/worked_cases.rs"]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod worked_cases;

use std::path::Path;

use fairtte_data::Sampling;
use fairtte_models::Batch;
use fairtte_survival::{NoSettings, SurvivalHead};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::monitor::Validation;
use crate::predict::{CurveRule, Parts};
use crate::{FairnessError, Learner, LearnerSpec};

pub use adversary::{Activation, Adversary, AdversarySpec};
pub use cells::TrainingCells;
pub use cfair::{Cfair, CfairConfig, CfairMode, CfairNetwork, CfairScaling, CfairWeights};
pub use controlled_attribute::{ControlledAttribute, ControlledAttributeConfig, SmallGroup};
pub use domain_independent::{DomainIndependent, DomainIndependentConfig, DomainInference, DomainNetwork};
pub use dro_chi_square::{DroChiSquare, DroChiSquareConfig};
pub use end::{Disentangling, End, EndConfig};
pub use erm::Erm;
pub use fair_representation::{Estimator, FairRepresentation, FairRepresentationConfig, Kernels, Representation};
pub use febs::{Febs, FebsConfig};
pub use group_dro::{AbsentGroup, GroupDro, GroupDroConfig};
pub use groups::GroupMeans;
pub use laftr::{Laftr, LaftrConfig, LaftrMode};
pub use lnl::{Lnl, LnlConfig};
pub use missing::MissingAttribute;
pub use objective::{Objective, ObjectiveStrategy, Terms, Value};
pub use odr::{Odr, OdrConfig, OdrNetwork};
pub use recalibration::{Recalibration, RecalibrationConfig, RecalibrationMethod};
pub use reversal::reverse_gradient;
pub use sam::{Sam, SamConfig};
pub use step::{Accumulation, Clock, Phase, StepContext, StepReport};
pub use strata::{Strata, StratumConfig, StratumKind};
pub use subgroup_rebalancing::{Cells, RebalancingMode, SubgroupRebalancing, SubgroupRebalancingConfig};
pub use swad::{Swad, SwadConfig, SwadCriterion};

/// How one batch changes the model, and how the model predicts.
pub trait Strategy {
    /// Name in run files.
    fn name(&self) -> &'static str;

    /// How the training samples of an epoch are drawn.
    fn sampling(&self) -> Sampling {
        Sampling::Shuffled
    }

    /// Refuses a number of samples per step, or a head, with which the method cannot work; asked before training.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the key, its value and what was expected.
    fn check_batch_size(&self, _batch_size: usize, _head: &dyn SurvivalHead) -> Result<(), FairnessError> {
        Ok(())
    }

    /// One training step: as many passes, losses and optimisers as the method has.
    ///
    /// # Errors
    /// [`FairnessError::NotFinite`] if a loss leaves the number range.
    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError>;

    /// Called before each validation, whose predictions it prepares: fits the baseline hazard of every network for its
    /// present weights if the head needs one, chooses among weights. What it makes is saved with the weights.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read a part, [`FairnessError::Survival`] if an output is not finite.
    fn before_validation(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError>;

    /// Steps between validations within an epoch, for methods that watch the loss closely; `None` = only at its end.
    fn validation_interval(&self) -> Option<usize> {
        None
    }

    /// Told what each validation gave (weight averaging needs it).
    ///
    /// # Errors
    /// Whatever the method needs to refuse.
    fn after_validation(&mut self, _validation: &Validation) -> Result<(), FairnessError> {
        Ok(())
    }

    /// Whether the method itself is done before the epochs are; asked after each validation.
    fn wants_to_stop(&self) -> bool {
        false
    }

    /// Called when training has ended and weights are chosen and loaded. Must depend on the weights, the saved state and the
    /// data only: it runs again when a killed run goes on.
    ///
    /// # Errors
    /// As [`before_validation`](Self::before_validation).
    fn finish(&mut self, _parts: &Parts<'_>) -> Result<(), FairnessError> {
        Ok(())
    }

    /// Whether [`predict`](Self::predict) reads `batch.groups`.
    fn needs_group_to_predict(&self) -> bool {
        false
    }

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
    /// [`DomainIndependent`].
    DomainIndependent(DomainIndependentConfig),
    /// [`ControlledAttribute`].
    ControlledAttribute(ControlledAttributeConfig),
    /// [`Sam`].
    Sam(SamConfig),
    /// [`Swad`].
    Swad(SwadConfig),
    /// [`Recalibration`].
    Recalibration(RecalibrationConfig),
    /// [`Laftr`].
    Laftr(LaftrConfig),
    /// [`Cfair`].
    Cfair(CfairConfig),
    /// [`Lnl`].
    Lnl(LnlConfig),
    /// [`Odr`].
    Odr(OdrConfig),
    /// [`FairRepresentation`].
    FairRepresentation(FairRepresentationConfig),
    /// [`End`].
    End(EndConfig),
    /// [`DroChiSquare`].
    DroChiSquare(DroChiSquareConfig),
    /// [`Febs`].
    Febs(FebsConfig),
}

impl Default for StrategyConfig {
    fn default() -> Self {
        Self::Erm(NoSettings::default())
    }
}

impl StrategyConfig {
    /// Name and one-line summary of every strategy.
    pub const CATALOGUE: [(&'static str, &'static str); 16] = [
        ("erm", "empirical risk minimisation: the plain mean loss"),
        ("subgroup-rebalancing", "every group (or group x event) is drawn equally often (Kamiran & Calders 2012)"),
        ("group-dro", "groups with a larger loss gain weight (Sagawa et al. 2020)"),
        ("domain-independent", "one encoder, one classifier per group (Wang et al. 2020)"),
        ("controlled-attribute", "one network per group, whose curves are averaged (Pope & Sydnor 2011)"),
        ("sam", "the loss at the sharpest place nearby, in two passes (Foret et al. 2021)"),
        ("swad", "the mean of the weights of a valley of the validation loss (Cha et al. 2021)"),
        ("recalibration", "as erm, then the curves of each group are mapped by what the validation part showed"),
        ("laftr", "an adversary guesses the group from the representation, which makes that hard (Madras et al. 2018)"),
        ("cfair", "one adversary per stratum through gradient reversal, balanced errors (Zhao et al. 2020)"),
        ("lnl", "the representation unlearns what a predictor of the group finds in it (Kim et al. 2019)"),
        ("odr", "two orthogonal codes, one for the task and one for the group (Sarhan et al. 2020)"),
        (
            "fair-representation",
            "representations of the groups come closer by maximum mean discrepancy (the paper's D.2.3)",
        ),
        ("end", "representations of a group are told apart, those of a stratum joined (Tartaglione et al. 2021)"),
        ("dro-chi-square", "the worst subpopulation of a given size, without groups (Hu & Chen 2022, 2024)"),
        ("febs", "groups with a larger loss weigh more, an adaptation of FairSeg's scaling (Tian et al. 2024)"),
    ];

    /// Whether training reads the groups of the samples.
    pub fn needs_groups(&self) -> bool {
        match self {
            Self::Erm(_) | Self::Sam(_) | Self::DroChiSquare(_) => false,
            Self::SubgroupRebalancing(config) => config.by != Cells::Event || config.mode == RebalancingMode::Reweigh,
            Self::Swad(config) => config.criterion == SwadCriterion::WorstGroupNll,
            Self::GroupDro(_)
            | Self::DomainIndependent(_)
            | Self::ControlledAttribute(_)
            | Self::Recalibration(_)
            | Self::Laftr(_)
            | Self::Cfair(_)
            | Self::Lnl(_)
            | Self::Odr(_)
            | Self::FairRepresentation(_)
            | Self::End(_)
            | Self::Febs(_) => true,
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
            Self::DomainIndependent(config) => config.validate(),
            Self::ControlledAttribute(config) => config.validate(),
            Self::Sam(config) => config.validate(),
            Self::Swad(config) => config.validate(),
            Self::Recalibration(config) => config.validate(),
            Self::Laftr(config) => config.validate(),
            Self::Cfair(config) => config.validate(),
            Self::Lnl(config) => config.validate(),
            Self::Odr(config) => config.validate(),
            Self::FairRepresentation(config) => config.validate(),
            Self::End(config) => config.validate(),
            Self::DroChiSquare(config) => config.validate(),
            Self::Febs(config) => config.validate(),
        }
    }

    /// Refuses a number of samples per step, or a head, with which the method cannot work.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the key, its value and what was expected.
    pub fn check_batch_size(&self, batch_size: usize, head: &dyn SurvivalHead) -> Result<(), FairnessError> {
        match self {
            Self::DroChiSquare(config) => config.check_batch_size(batch_size, head),
            _ => Ok(()),
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
            Self::DomainIndependent(config) => Box::new(DomainIndependent::new(config, spec, cells)?),
            Self::ControlledAttribute(config) => Box::new(ControlledAttribute::new(config, spec, cells)?),
            Self::Sam(config) => Box::new(Sam::new(config, learner()?)?),
            Self::Swad(config) => Box::new(Swad::new(config, learner()?)?),
            Self::Recalibration(config) => Box::new(Recalibration::new(config, learner()?, cells)?),
            Self::Laftr(config) => Box::new(Laftr::new(config, spec, cells)?),
            Self::Cfair(config) => Box::new(Cfair::new(config, spec, cells)?),
            Self::Lnl(config) => Box::new(Lnl::new(config, spec, cells)?),
            Self::Odr(config) => Box::new(Odr::new(config, spec, cells)?),
            Self::FairRepresentation(config) => {
                Box::new(ObjectiveStrategy::new(FairRepresentation::new(config, cells)?, learner()?))
            }
            Self::End(config) => Box::new(ObjectiveStrategy::new(End::new(config, cells)?, learner()?)),
            Self::DroChiSquare(config) => Box::new(ObjectiveStrategy::new(DroChiSquare::new(config)?, learner()?)),
            Self::Febs(config) => Box::new(ObjectiveStrategy::new(Febs::new(config, cells)?, learner()?)),
        })
    }
}

#[cfg(test)]
#[path = "../../tests/inside/adversary_cases.rs"]
mod adversary_cases;
