//! What can be refused of the training before any file is read.

use fairtte_classical::Estimator;
use fairtte_fairness::strategies::ExpectedBatch;
use fairtte_fairness::{Monitor, PretrainedConfig, StrategyConfig};
use fairtte_survival::{CutPoints, PredictionGrid, SurvivalError, SurvivalHead};

use super::RunFile;
use super::training::TimeConfig;
use crate::error::InTable as _;
use crate::{CliError, device};

impl RunFile {
    /// Ranges of the settings of network, head, strategy and training, and whether they fit together and the data.
    ///
    /// # Errors
    /// [`CliError`] naming the key, its value and what was expected.
    pub(super) fn check_training(&self) -> Result<(), CliError> {
        let device = device::open(&self.device)?;
        CutPoints::check(self.time.intervals)?;
        PredictionGrid::check(self.time.points_per_interval).in_table("time")?;
        if self.estimator.is_some() {
            return Ok(());
        }
        self.training.validate().in_table("training")?;
        self.training.precision.check(&device).in_table("training")?;
        self.optimiser.validate().in_table("optimiser")?;
        self.model.validate().in_table("model")?;
        self.pretrained.as_ref().map_or(Ok(()), PretrainedConfig::validate).in_table("pretrained")?;
        let head = self.head.build().in_table(&self.head_table())?;
        self.check_causes()?;
        head.check_hidden(self.model.hidden).in_table("model")?;
        self.check_head_and_monitor(head.as_ref())?;
        self.strategy.validate().in_table(&self.strategy_table())?;
        let batch = ExpectedBatch::of_any_data(self.training.batch_size, head.as_ref());
        self.strategy.check_batches(&batch).in_table(&self.strategy_table())?;
        self.check_axes()?;
        self.check_needs_groups()
    }

    /// Refuses a head or a strategy of one kind of event where `[outcome]` names several causes.
    fn check_causes(&self) -> Result<(), CliError> {
        let Some(outcome) = &self.outcome else { return Ok(()) };
        let refused = |key: &str, message: String| Err(CliError::setting(key, message, None));
        let n_causes = 1 + outcome.competing.len();
        if let Err(error @ SurvivalError::OneKind { .. }) = self.head.build_for(n_causes) {
            let estimators: Vec<String> = Estimator::of_causes().map(|name| format!("[estimator.{name}]")).collect();
            return refused("outcome", format!("{error}, or {}", estimators.join(" or ")));
        }
        if !self.strategy.models_causes() {
            let (name, known) = (self.strategy.name(), StrategyConfig::of_causes().join(", "));
            let message = format!(
                "{name} would take events of other causes for censorings, expected one of {known}, or no [outcome]"
            );
            return refused("strategy", message);
        }
        Ok(())
    }

    /// Where the settings of the strategy are in a run file.
    pub(crate) fn strategy_table(&self) -> String {
        format!("strategy.{}", self.strategy.name())
    }

    /// Head and monitor are those of the task.
    fn check_head_and_monitor(&self, head: &dyn SurvivalHead) -> Result<(), CliError> {
        let of_class = self.is_of_class();
        if head.predicts_class() != of_class {
            let message = if of_class {
                format!(
                    "{} predicts survival curves, expected [head.binary] with [task] kind = \"binary\"",
                    head.name()
                )
            } else {
                format!("{} predicts a class, expected [task] kind = \"binary\" with it", head.name())
            };
            return Err(CliError::setting("head", message, None));
        }
        if self.training.monitor.is_of_class() != of_class {
            let known: Vec<&str> = Monitor::of_task(of_class).map(Monitor::name).collect();
            let what = if of_class { "a class" } else { "survival curves" };
            let message = format!(
                "{} is no metric of {what}, expected one of {}",
                self.training.monitor.name(),
                known.join(", ")
            );
            return Err(CliError::setting("training.monitor", message, None));
        }
        if of_class && self.time != TimeConfig::default() {
            let message = "it has no effect on a class, which has no time grid".to_owned();
            return Err(CliError::setting("time", message, None));
        }
        Ok(())
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
        if known.is_empty() && self.training.monitor.is_worst_group() {
            let message =
                format!("{} needs groups, but the run file has no [[attribute]]", self.training.monitor.name());
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
