//! The tables of a run file that are about training.
//!
//! With the feature `train` they have the types of the crates that train. Without it they are kept as they are written
//! and are not checked: a program that only reads data and finished runs needs no tensor library.

#[cfg(feature = "train")]
mod typed {
    use std::path::PathBuf;

    pub use fairtte_fairness::{OptimiserConfig, PretrainedConfig, StrategyConfig, TrainingConfig};
    pub use fairtte_models::EncoderConfig;
    pub use fairtte_survival::HeadConfig;
    use fairtte_survival::{GridKind, Interpolation};
    use serde::{Deserialize, Serialize};

    /// Discretisation of time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
    pub struct TimeConfig {
        /// Number of cut points from 0 to the largest training time, at least 2; also the number of network outputs of the
        /// discrete heads. The paper: 14 for AREDS, 28 for ADNI, 128 for MIMIC-CXR. Default 20.
        pub intervals: usize,
        /// How cut points are placed: `equidistant`, `quantile` of the Kaplan-Meier curve of the training part (which may
        /// give fewer), or `auto`: equidistant, unless one interval would contain more than 30 % of the training events (and
        /// four times an equal share), then quantiles. Default `auto`.
        pub grid: GridKind,
        /// Predicted points per interval, 1 to 1,000; 1 = the cut points only.
        pub points_per_interval: usize,
        /// Interpolation between cut points with more than one point: `linear` survival or `constant-hazard`. The heads
        /// `pc-hazard` (constant hazard) and `cox`, `cox-time` (steps at event times) have a rule of their own.
        pub interpolation: Interpolation,
    }

    impl Default for TimeConfig {
        fn default() -> Self {
            Self { intervals: 20, grid: GridKind::Auto, points_per_interval: 1, interpolation: Interpolation::Linear }
        }
    }

    /// Where the file of pre-trained weights is.
    pub fn path_of_weights(pretrained: &mut PretrainedConfig) -> &mut PathBuf {
        &mut pretrained.path
    }

    /// Whether the strategy reads groups in training.
    pub fn reads_groups(strategy: &StrategyConfig) -> bool {
        strategy.needs_groups()
    }
}

#[cfg(not(feature = "train"))]
mod unread {
    use std::path::PathBuf;

    use serde::{Deserialize, Serialize};

    /// A table that is kept as it is written.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[serde(transparent)]
    pub struct Unread(
        #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))] toml::Table,
    );

    pub type EncoderConfig = Unread;
    pub type HeadConfig = Unread;
    pub type OptimiserConfig = Unread;
    pub type StrategyConfig = Unread;
    pub type TimeConfig = Unread;
    pub type TrainingConfig = Unread;

    /// The weights that a run begins with; their path is made absolute like every other.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub struct PretrainedConfig {
        path: PathBuf,
        #[serde(flatten)]
        #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
        others: toml::Table,
    }

    pub fn path_of_weights(pretrained: &mut PretrainedConfig) -> &mut PathBuf {
        &mut pretrained.path
    }

    /// Whether the strategy reads groups in training, by its name: settings are not read.
    pub fn reads_groups(strategy: &StrategyConfig) -> bool {
        let without = ["erm", "sam", "dro-chi-square"];
        strategy.0.keys().all(|name| !without.contains(&name.as_str()))
    }
}

#[cfg(feature = "train")]
pub use typed::*;
#[cfg(not(feature = "train"))]
pub(crate) use unread::*;
