//! What can be refused of the training before any file is read.

use fairtte_fairness::strategies::ExpectedBatch;
use fairtte_fairness::{Monitor, PretrainedConfig};
use fairtte_survival::{CutPoints, PredictionGrid};

use super::RunFile;
use crate::error::InTable as _;
use crate::{CliError, device};

impl RunFile {
    /// Ranges of the settings of network, head, strategy and training, and whether they fit together and the data.
    ///
    /// # Errors
    /// [`CliError`] naming the key, its value and what was expected.
    pub(super) fn check_training(&self) -> Result<(), CliError> {
        device::open(&self.device)?;
        CutPoints::check(self.time.intervals)?;
        PredictionGrid::check(self.time.points_per_interval).in_table("time")?;
        if self.estimator.is_some() {
            return Ok(());
        }
        self.training.validate().in_table("training")?;
        self.optimiser.validate().in_table("optimiser")?;
        self.model.validate().in_table("model")?;
        self.pretrained.as_ref().map_or(Ok(()), PretrainedConfig::validate).in_table("pretrained")?;
        let head = self.head.build().in_table(&self.head_table())?;
        head.check_hidden(self.model.hidden).in_table("model")?;
        self.strategy.validate().in_table(&self.strategy_table())?;
        let batch = ExpectedBatch::of_any_data(self.training.batch_size, head.as_ref());
        self.strategy.check_batches(&batch).in_table(&self.strategy_table())?;
        self.check_axes()?;
        self.check_needs_groups()
    }

    /// Where the settings of the strategy are in a run file.
    pub(crate) fn strategy_table(&self) -> String {
        format!("strategy.{}", self.strategy.name())
    }

    fn head_table(&self) -> String {
        format!("head.{}", self.head.name())
    }

    fn check_needs_groups(&self) -> Result<(), CliError> {
        let known = &self.attribute;
        if known.is_empty() && self.strategy.needs_groups() {
            let message = "it works on groups, but the run file has no [[attribute]]".to_owned();
            return Err(CliError::setting("strategy", message, None));
        }
        if known.is_empty() && self.training.monitor == Monitor::WorstGroupCTd {
            let message = "worst-group-c-td needs groups, but the run file has no [[attribute]]".to_owned();
            return Err(CliError::setting("training.monitor", message, None));
        }
        Ok(())
    }

    fn check_axes(&self) -> Result<(), CliError> {
        let (size, backbone) = (&self.image.size, self.model.backbone);
        let n_axes = if self.is_tabular() { 0 } else { size.len() };
        if n_axes == backbone.n_axes() {
            return self.check_sides();
        }
        if n_axes == 0 || backbone.n_axes() == 0 {
            let inputs = if n_axes == 0 { "columns of a table" } else { "images" };
            let message = format!("{} does not read {inputs}", backbone.name());
            let help = if n_axes == 0 { "write backbone = \"mlp\"" } else { "see `fairtte list backbones`" };
            return Err(CliError::setting("model.backbone", message, Some(help)));
        }
        let (found, expected) = (size.len(), backbone.n_axes());
        let message = format!("{size:?} has {found} axes, but backbone {} reads {expected}", backbone.name());
        let help = if expected == 2 { "write size = [height, width]" } else { "write size = [depth, height, width]" };
        Err(CliError::setting("image.size", message, Some(help)))
    }

    fn check_sides(&self) -> Result<(), CliError> {
        let (size, backbone) = (&self.image.size, self.model.backbone);
        let multiple = backbone.side_multiple();
        if multiple == 1 || size.iter().all(|side| side % multiple == 0) {
            return Ok(());
        }
        let message =
            format!("{size:?} cannot be cut into the patches of {multiple} x {multiple} of {}", backbone.name());
        let help = format!("write multiples of {multiple}, as size = [224, 224]");
        Err(CliError::setting("image.size", message, Some(&help)))
    }
}
