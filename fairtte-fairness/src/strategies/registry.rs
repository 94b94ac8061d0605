//! The registry of strategies: one variant, one line in the catalogue and one match arm each.

use fairtte_survival::NoSettings;
use serde::{Deserialize, Serialize};

use super::{
    Cells, Cfair, CfairConfig, ControlledAttribute, ControlledAttributeConfig, DomainIndependent,
    DomainIndependentConfig, DroChiSquare, DroChiSquareConfig, End, EndConfig, Erm, ExpectedBatch, FairRepresentation,
    FairRepresentationConfig, Febs, FebsConfig, GroupDro, GroupDroConfig, Laftr, LaftrConfig, Lnl, LnlConfig,
    ObjectiveStrategy, Odr, OdrConfig, RebalancingMode, Recalibration, RecalibrationConfig, Sam, SamConfig, Strategy,
    SubgroupRebalancing, SubgroupRebalancingConfig, Swad, SwadConfig, SwadCriterion, TrainingCells,
};
use crate::{FairnessError, Learner, LearnerSpec, TrainingConfig};

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
        ("sam", "the loss at the worst nearby weights, in two passes (Foret et al. 2021)"),
        ("swad", "the mean of the weights over a valley of the validation loss (Cha et al. 2021)"),
        ("recalibration", "as erm, then the curves of each group are recalibrated on the validation part"),
        ("laftr", "the representation is trained against an adversary that predicts the group (Madras et al. 2018)"),
        ("cfair", "one adversary per stratum through gradient reversal, balanced errors (Zhao et al. 2020)"),
        ("lnl", "the representation is trained to hide the group from a predictor (Kim et al. 2019)"),
        ("odr", "two orthogonal codes, one for the task and one for the group (Sarhan et al. 2020)"),
        (
            "fair-representation",
            "representations of the groups are aligned by maximum mean discrepancy (the paper's D.2.3)",
        ),
        ("end", "representations are disentangled within groups, entangled within strata (Tartaglione et al. 2021)"),
        ("dro-chi-square", "the worst subpopulation of a given size, without groups (Hu & Chen 2022, 2024)"),
        ("febs", "groups with a larger loss get more weight, an adaptation of FairSeg's scaling (Tian et al. 2024)"),
    ];

    /// Whether training reads the groups of the samples.
    pub fn needs_groups(&self) -> bool {
        match self {
            Self::Erm(_) | Self::DroChiSquare(_) | Self::Sam(_) => false,
            Self::SubgroupRebalancing(config) => config.by != Cells::Event || config.mode == RebalancingMode::Reweigh,
            Self::Swad(config) => config.criterion == SwadCriterion::WorstGroupNll,
            Self::GroupDro(_)
            | Self::Laftr(_)
            | Self::Cfair(_)
            | Self::Lnl(_)
            | Self::Odr(_)
            | Self::FairRepresentation(_)
            | Self::End(_)
            | Self::Febs(_)
            | Self::DomainIndependent(_)
            | Self::ControlledAttribute(_)
            | Self::Recalibration(_) => true,
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

    /// Rejects batches, or a head, with which the method cannot work; training checks again once the outcomes are known.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the key, its value and what was expected.
    pub fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        match self {
            Self::DroChiSquare(config) => config.check_batches(expected),
            _ => Ok(()),
        }
    }

    /// The settings of `training` that are too short for the method to work as described, one sentence each; `n_steps` is
    /// the number of optimiser steps in an epoch.
    pub fn training_notes(&self, training: &TrainingConfig, n_steps: usize) -> Vec<String> {
        match self {
            Self::Swad(config) => config.training_notes(training, n_steps),
            _ => Vec::new(),
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
