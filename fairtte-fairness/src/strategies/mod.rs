//! Training strategies, one file each, and their registry.
//!
//! A method that only changes the loss implements [`Objective`]; one with a second network, a second pass or weight
//! averaging implements [`Strategy`]. The only loop over epochs is that of the trainer.

mod adversary;
mod batch_cells;
mod cells;
mod cfair;
mod compared;
mod controlled_attribute;
mod domain_independent;
mod dro_chi_square;
mod end;
mod erm;
mod expected_batch;
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
mod one_network;
mod pass;
mod recalibration;
mod registry;
mod reversal;
mod sam;
mod saved;
mod settings;
mod step;
mod strata;
mod subgroup_rebalancing;
mod swad;
mod watch;
mod weigh_by;
#[cfg(test)]
#[path = "../../tests/inside/worked_cases.rs"]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod worked_cases;

use std::path::Path;

use crate::Batch;
use fairtte_data::Sampling;
use fairtte_metrics::GroupId;
use ndarray::Array2;

use crate::FairnessError;
use crate::explain::Traced;
use crate::export::Export;
use crate::features::Layer;
use crate::monitor::Validation;
use crate::predict::{CurveRule, Parts};

pub use adversary::{Activation, Adversary, AdversarySpec};
pub use cells::{CellCounts, TrainingCells};
pub use cfair::{Cfair, CfairConfig, CfairMode, CfairNetwork, CfairScaling, CfairWeights};
pub use controlled_attribute::{ControlledAttribute, ControlledAttributeConfig, SmallGroup};
pub use domain_independent::{DomainIndependent, DomainIndependentConfig, DomainInference, DomainNetwork};
pub use dro_chi_square::{DroChiSquare, DroChiSquareConfig};
pub use end::{Disentangling, End, EndConfig};
pub use erm::Erm;
pub use expected_batch::ExpectedBatch;
pub use fair_representation::{Estimator, FairRepresentation, FairRepresentationConfig, Kernels, Representation};
pub use febs::{Febs, FebsConfig};
pub use group_dro::{AbsentGroup, GroupDro, GroupDroConfig};
pub use groups::GroupMeans;
pub use laftr::{Laftr, LaftrConfig, LaftrMode};
pub use lnl::{Lnl, LnlConfig};
pub use missing::MissingAttribute;
pub use objective::{Objective, ObjectiveStrategy, Terms, Value};
pub use odr::{Odr, OdrConfig, OdrNetwork};
pub use recalibration::{Recalibration, RecalibrationConfig, RecalibrationMaps, RecalibrationMethod};
pub use registry::{StrategyConfig, register};
pub use reversal::reverse_gradient;
pub use sam::{Sam, SamConfig};
pub use saved::{NamedPart, Part, Saved, State, load_parts, save_parts};
pub use settings::StrategySettings;
pub use step::{Accumulation, Clock, Phase, StepContext, StepReport};
pub use strata::{SMALLEST_CELL, Strata, StratumConfig, StratumKind};
pub use subgroup_rebalancing::{Cells, RebalancingMode, SubgroupRebalancing, SubgroupRebalancingConfig};
pub use swad::{Swad, SwadConfig, SwadCriterion};
pub use watch::{EQUAL_PREDICTIONS, Idle, Warning, Warns, Watch, Watched};
pub(crate) use watch::{first_epoch, predictions_differ, warnings};
pub use weigh_by::WeighBy;

/// How one batch changes the model, and how the model predicts.
pub trait Strategy {
    /// Name in run files.
    fn name(&self) -> &'static str;

    /// How the training samples of an epoch are drawn. Called at the start of an epoch, and again when a run resumes in
    /// the middle of it: it may change between epochs only.
    fn sampling(&self) -> Sampling {
        Sampling::Shuffled
    }

    /// Rejects batches, or a head, with which the method cannot work; called before training.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] naming the key, its value and what was expected.
    fn check_batches(&self, _expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        Ok(())
    }

    /// One training step: as many passes, losses and optimisers as the method has.
    ///
    /// # Errors
    /// [`FairnessError::NotFinite`] if a loss is not finite.
    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError>;

    /// Called before each validation, whose predictions it prepares: fits the baseline hazard of every network for its
    /// present weights if the head needs one, chooses among weights. Its results are saved with the weights.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read a part, [`FairnessError::Survival`] if an output is not finite.
    fn before_validation(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError>;

    /// Steps between validations within an epoch, for methods that watch the loss closely; `None` = only at its end.
    fn validation_interval(&self) -> Option<usize> {
        None
    }

    /// Receives the result of each validation (needed by weight averaging).
    ///
    /// # Errors
    /// Any error of the method.
    fn after_validation(&mut self, _validation: &Validation) -> Result<(), FairnessError> {
        Ok(())
    }

    /// Values of the method's state for the log, called at the end of every epoch, after its validation.
    fn log_terms(&self) -> Vec<(String, f64)> {
        Vec::new()
    }

    /// Parts of the method that may be without effect although there is no error, with the values of the log that show it.
    fn watches(&self) -> Vec<Watch> {
        Vec::new()
    }

    /// Whether the method itself ends the training before the last epoch; called after each validation.
    fn wants_to_stop(&self) -> bool {
        false
    }

    /// Called when training has ended and the weights are chosen and loaded. Must depend on the weights, the saved
    /// state and the data only: it runs again when a killed run is resumed.
    ///
    /// # Errors
    /// As [`before_validation`](Self::before_validation).
    fn finish(&mut self, _parts: &Parts<'_>) -> Result<(), FairnessError> {
        Ok(())
    }

    /// Description of the weights that are used for prediction after [`finish`](Self::finish), if those of `epoch`
    /// (counted from 1) were loaded before it; human-readable, without a capital.
    fn describe_weights(&self, epoch: usize) -> String {
        format!("epoch {epoch}")
    }

    /// Whether [`predict`](Self::predict) reads `batch.groups`.
    fn needs_group_to_predict(&self) -> bool {
        false
    }

    /// Survival at the times of the rule in evaluation mode, `[batch, n_times]`, or the probabilities of the classes of pixels where
    /// masks are predicted, `[batch, n_classes n_pixels]`; must not change any state.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read the batch, [`FairnessError::Survival`] if the head needs a
    /// baseline and none was fitted.
    fn predict(&self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Array2<f64>, FairnessError>;

    /// Survival as by [`predict`](Self::predict), but by the network that was trained on `group` alone, whatever the groups of
    /// the batch; `None` if the strategy has no such network.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    fn predict_by(
        &self,
        _group: GroupId,
        _batch: &Batch,
        _rule: &CurveRule<'_>,
    ) -> Result<Option<Array2<f64>>, FairnessError> {
        Ok(None)
    }

    /// Features of `layer` in evaluation mode, `[batch, n_features]`; must not change any state. A method with several
    /// networks returns the features of all of them side by side.
    ///
    /// # Errors
    /// [`FairnessError::Model`] if the backbone cannot read the batch.
    fn features(&self, batch: &Batch, layer: Layer) -> Result<Array2<f32>, FairnessError>;

    /// As [`predict`](Self::predict) on a batch on a device with autodiff, with the outputs of the networks in the graph of
    /// its pixels, for explanations of single predictions. By default it is refused.
    ///
    /// # Errors
    /// [`FairnessError::NotTraced`] if the method does not say; otherwise as [`predict`](Self::predict).
    fn traced<'a>(&'a self, _batch: &'a Batch, _rule: &CurveRule<'_>) -> Result<Traced<'a>, FairnessError> {
        Err(FairnessError::NotTraced { strategy: self.name() })
    }

    /// What prediction needs, for other programs: exactly what [`predict`](Self::predict) computes. By default it is
    /// refused.
    ///
    /// # Errors
    /// [`FairnessError::NotExported`] if the method does not say; [`FairnessError::Model`] for a parameter without a name
    /// outside this program.
    fn export(&self) -> Result<Export, FairnessError> {
        Err(FairnessError::NotExported { strategy: self.name() })
    }

    /// The parts that are saved, each under a name of its own: what [`save`](Self::save) and [`load`](Self::load) take by
    /// default.
    fn parts(&mut self) -> Vec<NamedPart<'_>>;

    /// Writes weights (and, for [`Saved::Everything`], optimisers and numbers) into `folder`.
    ///
    /// # Errors
    /// [`FairnessError::Data`] if a file cannot be written.
    fn save(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        save_parts(self.parts(), folder, what)
    }

    /// Reads what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// [`FairnessError::Checkpoint`] if a file cannot be read or does not fit.
    fn load(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        load_parts(self.parts(), folder, what)
    }
}

/// Name of the stream of weights, and of the files, of a strategy's network.
const NETWORK: &str = "network";

#[cfg(test)]
#[path = "../../tests/inside/adversary_cases.rs"]
mod adversary_cases;

#[cfg(test)]
#[path = "../../tests/inside/table.rs"]
pub(crate) mod table;

#[cfg(test)]
#[path = "../../tests/inside/differing_labels.rs"]
#[expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failing unwrap is a failing test; gaps are worth seeing"
)]
mod differing_labels;
