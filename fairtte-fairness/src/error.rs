//! Errors of training.

use std::path::PathBuf;

use fairtte_data::DataError;
use fairtte_metrics::{MetricError, SampleId};
use fairtte_models::ModelError;
use fairtte_survival::SurvivalError;

/// Why a training could not start, continue or end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FairnessError {
    /// A setting is outside its range.
    #[error("{key} is {value}, expected {expected}")]
    Setting {
        /// Name of the setting as it is written: the field in kebab case, `gradient-clip`.
        key: &'static str,
        /// Value found.
        value: String,
        /// Range in words.
        expected: String,
    },
    /// A strategy does not say what of it is exported.
    #[error("strategy {strategy} cannot be exported: it does not say which of its networks predict, and how")]
    NotExported {
        /// Name of the strategy.
        strategy: &'static str,
    },
    /// A network of masks was to be exported.
    #[error(
        "a network that predicts masks cannot be exported: the layout of its decoder has no names outside this program"
    )]
    MasksNotExported,
    /// The head predicts masks and the batches have none, or the other way round.
    #[error(
        "head {head} and the masks of the data do not fit together, expected masks for a head that predicts them and none for others"
    )]
    MasksAndHead {
        /// Name of the head.
        head: &'static str,
    },
    /// A strategy does not say how its predictions depend on the inputs.
    #[error(
        "strategy {strategy} has no gradients for the inputs: it does not say which of its networks predict, and how"
    )]
    NotTraced {
        /// Name of the strategy.
        strategy: &'static str,
    },
    /// A strategy needs groups and no sample has one.
    #[error("strategy {strategy} needs groups, but no training sample has a value of attribute \"{attribute}\"")]
    NoGroups {
        /// Name of the strategy.
        strategy: &'static str,
        /// Name of the attribute.
        attribute: String,
    },
    /// The loss or its gradient is not finite.
    #[error(
        "{what} is {value} in epoch {epoch}, step {step}{}; a lower learning rate, or a lower limit of the gradient norm, may help",
        of_samples(samples)
    )]
    NotFinite {
        /// Loss or gradient norm.
        what: &'static str,
        /// The value.
        value: f64,
        /// Epoch, counted from 1.
        epoch: usize,
        /// Step within the epoch, counted from 1.
        step: usize,
        /// The samples of its batch.
        samples: Vec<SampleId>,
    },
    /// The validation metric cannot be computed.
    #[error("validation metric \"{monitor}\" is undefined in epoch {epoch}: {reason}")]
    Monitor {
        /// Name of the metric.
        monitor: &'static str,
        /// Epoch, counted from 1.
        epoch: usize,
        /// Why.
        reason: String,
    },
    /// A stop was requested; the state after the named step is kept.
    #[error("{}, the same command resumes from there", interrupted(*epoch, *step, *n_steps))]
    Interrupted {
        /// Epoch in progress, counted from 1; 0 of several trainings, of which this is said as a whole.
        epoch: usize,
        /// Batches of it that are done.
        step: usize,
        /// Batches of an epoch.
        n_steps: usize,
    },
    /// A checkpoint cannot be read or does not fit the network.
    #[error("checkpoint {path} cannot be used: {reason}")]
    Checkpoint {
        /// File or folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A strategy needs strata of the outcome and there is no event from which to derive the horizon.
    #[error("strategy {strategy} needs strata of the outcome, but the training part has no event")]
    NoStrata {
        /// Name of the strategy.
        strategy: &'static str,
    },
    /// A cell of group and stratum is too small to learn from.
    #[error(
        "strategy {strategy} needs {needed} training samples in every cell of group and stratum; group {group}, {stratum}, has {n}"
    )]
    SmallCell {
        /// Name of the strategy.
        strategy: &'static str,
        /// The group.
        group: String,
        /// The stratum in words.
        stratum: String,
        /// Training samples found.
        n: usize,
        /// Training samples needed.
        needed: usize,
    },
    /// A group has too few events for a fit.
    #[error("strategy {strategy} needs {needed} events of group {group} in the {part} part, found {n_events}")]
    FewEvents {
        /// Name of the strategy.
        strategy: &'static str,
        /// The group.
        group: String,
        /// Name of the part.
        part: &'static str,
        /// Events found.
        n_events: usize,
        /// Events needed.
        needed: usize,
    },
    /// A group has no sample in a part that a strategy uses for fitting or selection.
    #[error("strategy {strategy} needs samples of group {group} in the {part} part, found none")]
    EmptyGroup {
        /// Name of the strategy.
        strategy: &'static str,
        /// The group.
        group: String,
        /// Name of the part.
        part: &'static str,
    },
    /// A method that reads the attribute at prediction is given a sample without it.
    #[error(
        "strategy {strategy} predicts by group, but sample \"{sample}\" has no known group; \
         set {key} = \"average\" to predict without one"
    )]
    NoGroupToPredict {
        /// Name of the strategy.
        strategy: &'static str,
        /// The sample.
        sample: SampleId,
        /// Key of the setting that allows it.
        key: &'static str,
    },
    /// From the data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// From the network.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// From the head.
    #[error(transparent)]
    Survival(#[from] SurvivalError),
    /// From a metric.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// A strategy needs at least two groups and there is only one.
    #[error(
        "strategy {strategy} needs at least two groups, but all training samples with a value of \
         attribute \"{attribute}\" are in group {group}"
    )]
    OneGroup {
        /// Name of the strategy.
        strategy: &'static str,
        /// Name of the attribute.
        attribute: String,
        /// The group.
        group: String,
    },
}

impl FairnessError {
    /// The same error, naming the samples of the batch if it is about one.
    pub(crate) fn in_batch(self, of_batch: &[SampleId]) -> Self {
        match self {
            Self::NotFinite { what, value, epoch, step, .. } => {
                Self::NotFinite { what, value, epoch, step, samples: of_batch.to_vec() }
            }
            other => other,
        }
    }
}

/// The samples of a batch in a message.
fn of_samples(samples: &[SampleId]) -> String {
    if samples.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = samples.iter().map(SampleId::as_str).collect();
    format!(" (samples {})", names.join(", "))
}

fn interrupted(epoch: usize, step: usize, n_steps: usize) -> String {
    match epoch {
        0 => "interrupted; finished and saved trainings are kept".to_owned(),
        _ => format!("interrupted in epoch {epoch} after batch {step} of {n_steps}; the state is saved"),
    }
}
