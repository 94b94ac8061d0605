//! What can be refused of the training before any file is read.

use burn::tensor::Device;
use fairtte_classical::Estimator;
use fairtte_fairness::strategies::ExpectedBatch;
use fairtte_fairness::{Monitor, Predicted, PretrainedConfig, StrategyConfig};
use fairtte_models::computes_on_host;
use fairtte_models::{BackboneKind, UnetDecoder};
use fairtte_survival::{CutPoints, PredictionGrid, Segmentation, SurvivalError, SurvivalHead};

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
        // The name alone, so that data are prepared, and studies planned, on machines without the device too.
        let device = device::named(&self.device)?;
        CutPoints::check(self.time.intervals)?;
        PredictionGrid::check(self.time.points_per_interval).in_table("time")?;
        if self.estimator.is_some() {
            return Ok(());
        }
        self.training.validate().in_table("training")?;
        if computes_on_host(&device) {
            self.training.precision.check(&device).in_table("training")?;
        }
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

    /// Opens the device of a training.
    ///
    /// # Errors
    /// [`CliError::DeviceUnusable`] if it does not work here; [`CliError::Config`] if a network would be trained in a precision in
    /// which it does not compute.
    pub(crate) fn open_device(&self) -> Result<Device, CliError> {
        let device = device::open(&self.device)?;
        if self.estimator.is_none() {
            self.training.precision.check(&device).in_table("training")?;
        }
        Ok(device)
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
        let (wanted, name) = (self.predicted(), head.name());
        let of_head = match head {
            head if head.of_masks().is_some() => Predicted::Masks,
            head if head.predicts_class() => Predicted::Class,
            _ => Predicted::Curves,
        };
        if of_head != wanted {
            let predicts = of_head.words();
            let message = match (wanted, of_head) {
                (Predicted::Class, _) => {
                    format!("{name} predicts {predicts}, expected [head.binary] with [task] kind = \"binary\"")
                }
                (Predicted::Masks, _) => {
                    format!(
                        "{name} predicts {predicts}, expected [head.segmentation] with [task] kind = \"segmentation\""
                    )
                }
                (Predicted::Curves, Predicted::Masks) => {
                    format!("{name} predicts masks, expected [task] kind = \"segmentation\" with it")
                }
                (Predicted::Curves, _) => format!("{name} predicts a class, expected [task] kind = \"binary\" with it"),
            };
            return Err(CliError::setting("head", message, None));
        }
        if self.training.monitor.predicted() != wanted {
            let known: Vec<&str> = Monitor::of_task(wanted).map(Monitor::name).collect();
            let message = format!(
                "{} is no metric of {}, expected one of {}",
                self.training.monitor.name(),
                wanted.words(),
                known.join(", ")
            );
            return Err(CliError::setting("training.monitor", message, None));
        }
        if wanted != Predicted::Curves && self.time != TimeConfig::default() {
            let (what, have) = (wanted.words(), if wanted == Predicted::Masks { "have" } else { "has" });
            let message = format!("it has no effect on {what}, which {have} no time grid");
            return Err(CliError::setting("time", message, None));
        }
        if wanted == Predicted::Masks { self.check_network_of_masks(head) } else { Ok(()) }
    }

    /// Head, network and strategy are those that masks can be predicted with.
    fn check_network_of_masks(&self, head: &dyn SurvivalHead) -> Result<(), CliError> {
        let refused = |key: &str, message: String| Err(CliError::setting(key, message, None));
        let n_values = self.task.segmentation.as_ref().map(|task| task.values().len());
        let n_classes = head.of_masks().map(Segmentation::n_classes);
        if let (Some(n_values), Some(n_classes)) = (n_values, n_classes)
            && n_values != n_classes
        {
            let message = format!(
                "{n_classes}, but the classes of [task] segmentation have {n_values} values with the background, expected it to be left out"
            );
            return refused("head.segmentation.pixel-classes", message);
        }
        if self.model.backbone != BackboneKind::ResNet18 {
            let message = format!("{} has no decoder for masks, expected resnet18", self.model.backbone.name());
            return refused("model.backbone", message);
        }
        let layers = [
            ("model.representation", self.model.representation > 0),
            ("model.hidden", self.model.hidden > 0),
            ("model.dropout", self.model.dropout > 0.0),
        ];
        if let Some((key, _)) = layers.into_iter().find(|(_, is_given)| *is_given) {
            let message =
                "it has no effect on masks: the decoder reads the maps of the backbone, expected 0".to_owned();
            return refused(key, message);
        }
        let (size, multiple) = (&self.image.size, UnetDecoder::SIDE_MULTIPLE);
        if size.len() == 2 && size.iter().any(|side| side % multiple != 0) {
            let message = format!("{size:?} cannot be halved five times, expected multiples of {multiple}");
            return refused("image.size", message);
        }
        if !self.strategy.models_masks() {
            let (name, known) = (self.strategy.name(), StrategyConfig::of_masks().join(", "));
            return refused("strategy", format!("{name} does not work with masks, expected one of {known}"));
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
