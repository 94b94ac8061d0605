//! Arguments of `features`.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
#[cfg(feature = "train")]
pub use with_training::Features;

/// Place of the features in a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureLayer {
    /// Output of the backbone, averaged over space.
    #[default]
    Backbone,
    /// Input of the classifier, before dropout.
    Representation,
}

impl FeatureLayer {
    /// Its name as an argument.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Backbone => "backbone",
            Self::Representation => "representation",
        }
    }
}

/// Samples of a run's own data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeaturePart {
    /// All samples.
    #[default]
    All,
    /// The training part.
    Train,
    /// The validation part.
    Validation,
    /// The test part.
    Test,
}

impl FeaturePart {
    /// Its name as an argument.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

#[cfg(feature = "train")]
mod with_training {
    use std::path::PathBuf;

    use clap::Args;

    use super::{FeatureLayer, FeaturePart};
    use crate::args::Other;

    /// Arguments of `features`.
    #[derive(Args, Debug, Default)]
    #[command(after_help = EXAMPLES)]
    pub struct Features {
        /// Folder of a finished run
        #[arg(value_name = "RUN", required_unless_present = "pretrained", conflicts_with = "pretrained")]
        pub run: Option<PathBuf>,
        /// File of weights for the backbone of --config instead of a run: a network that was not trained on these outcomes
        #[arg(long, value_name = "FILE", requires = "config")]
        pub pretrained: Option<PathBuf>,
        /// Run file with data, images, intensity and backbone for --pretrained; may be given more than once, a later one wins
        #[arg(short, long, value_name = "FILE", requires = "pretrained", conflicts_with = "run")]
        pub config: Vec<PathBuf>,
        /// Place in the network
        #[arg(long, value_enum, default_value_t = FeatureLayer::Backbone)]
        pub layer: FeatureLayer,
        /// Samples of the run's own data
        #[arg(long, value_enum, default_value_t = FeaturePart::All, conflicts_with_all = ["data", "table"])]
        pub part: FeaturePart,
        /// Weights: an epoch (counted from 1) or the selection rule that chose one; those of `training.monitor` if not given
        #[arg(long, value_name = "EPOCH|RULE", conflicts_with = "pretrained")]
        pub epoch: Option<String>,
        /// File to write, which ends in .parquet; its record beside it ends in .json. `features-LAYER.parquet` in the run folder
        /// if not given
        #[arg(short, long, value_name = "FILE")]
        pub output: Option<PathBuf>,
        /// Samples that the run was not trained on, instead of its own
        #[command(flatten)]
        pub other: Other,
        /// Where to compute (`fairtte list devices`), instead of the device of the run
        #[arg(long, env = "FAIRTTE_DEVICE")]
        pub device: Option<String>,
        /// Threads; 0 = one per core
        #[arg(long, default_value_t = 0)]
        pub threads: usize,
        /// Results as JSON on standard output
        #[arg(long)]
        pub json: bool,
    }

    const EXAMPLES: &str = "\
Examples:
  the features of all samples of a run, from which its sources of bias are computed
    fairtte features runs/films
    fairtte bias runs/films
  the 64 numbers that the classifier reads, of the test part
    fairtte features runs/films --layer representation --part test
  a backbone that was pre-trained elsewhere and not trained here
    fairtte features --pretrained resnet18.safetensors --config films.toml --output features.parquet";
}
