//! The tables of a study file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fairtte_classical::Estimator;
use serde::{Deserialize, Serialize};
use toml::Table;

use super::super::search::Range;
use super::super::slurm::Slurm;
use crate::CliError;
use crate::args::FeatureLayer;

/// A data set of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct StudyData {
    /// Its name in tables. Default: the name of the run file without its ending.
    #[serde(default)]
    pub(crate) name: String,
    /// An ordinary run file; its head, strategy and shift are replaced.
    pub(crate) run_file: PathBuf,
    /// Attributes of the study. Default: all of the run file.
    #[serde(default)]
    pub(crate) attributes: Vec<String>,
    /// Whether every attribute has a split of its own, stratified by it.
    #[serde(default)]
    pub(crate) split_per_attribute: bool,
}

/// The heads of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Heads {
    /// Heads of the block `base`.
    pub(crate) names: Vec<String>,
    /// The head of strategies, shifts and backbones. Default: the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base_head: Option<String>,
}

impl Default for Heads {
    fn default() -> Self {
        Self { names: vec!["nnet-survival".to_owned()], base_head: None }
    }
}

/// The strategies of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Strategies {
    /// The strategy that the others are compared with.
    #[serde(default = "erm")]
    pub(crate) base: String,
    /// The others.
    #[serde(default)]
    pub(crate) names: Vec<String>,
    /// Settings by name of a strategy, as in `[strategy.NAME]` of a run file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) settings: BTreeMap<String, Table>,
    /// Ranges of keys of a run file by name of a strategy, in place of those of `[search]`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) search: BTreeMap<String, BTreeMap<String, Range>>,
}

impl Default for Strategies {
    fn default() -> Self {
        Self { base: erm(), names: Vec::new(), settings: BTreeMap::new(), search: BTreeMap::new() }
    }
}

/// The estimators of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Estimators {
    /// Their names (`fairtte list estimators`).
    #[serde(default)]
    pub(crate) names: Vec<String>,
    /// Settings by name of an estimator, as in `[estimator.NAME]` of a run file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) settings: BTreeMap<String, Table>,
}

impl Estimators {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// Refuses names that are repeated or those of strategies, unknown ones, and settings of no estimator of the study.
    ///
    /// # Errors
    /// [`CliError::Config`] naming the key.
    pub(crate) fn check(&self, strategies: &[&str]) -> Result<(), CliError> {
        let wrong = |key: &str, message: String| Err(CliError::setting(key, message, None));
        let names = "estimators.names";
        let known: Vec<&str> = Estimator::CATALOGUE.iter().map(|(name, _)| *name).collect();
        for (place, name) in self.names.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                return wrong(names, format!("\"{name}\" is no estimator, expected one of {}", known.join(", ")));
            }
            if self.names[..place].contains(name) {
                return wrong(names, format!("\"{name}\" is there twice"));
            }
            if strategies.contains(&name.as_str()) {
                return wrong(names, format!("\"{name}\" is also a strategy of the study"));
            }
        }
        match self.settings.keys().find(|name| !self.contains(name)) {
            Some(unused) => {
                wrong(&format!("estimators.settings.{unused}"), "it is not one of estimators.names".to_owned())
            }
            None => Ok(()),
        }
    }
}

/// A backbone beside that of the run files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Backbone {
    /// Data sets that it is trained on. Default: all.
    #[serde(default)]
    pub(crate) data: Vec<String>,
    /// Tables of a run file, such as `model` and `pretrained`.
    #[serde(flatten)]
    pub(crate) settings: Table,
}

/// One word or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMore {
    /// One.
    One(String),
    /// Several.
    More(Vec<String>),
}

impl OneOrMore {
    pub(crate) fn words(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::More(words) => words,
        }
    }
}

/// What a report says about the causes of gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct BiasOfStudy {
    /// Place in the network of the chosen base model whose numbers stand for an image.
    pub(crate) features: FeatureLayer,
    /// Whether all models predict again for the terms of Theorem 1.
    pub(crate) bound: bool,
}

/// How trials are run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Execute {
    /// Trials at a time on this machine.
    pub(crate) jobs: usize,
    /// What a finished trial keeps.
    pub(crate) keep: Keep,
    /// Seconds between two heartbeats of a trial.
    pub(crate) heartbeat_seconds: f64,
    /// Minutes without a heartbeat after which another process takes a trial over.
    pub(crate) stale_minutes: f64,
    /// What `study submit` asks of SLURM.
    pub(crate) slurm: Slurm,
}

impl Default for Execute {
    fn default() -> Self {
        Self { jobs: 1, keep: Keep::Weights, heartbeat_seconds: 60.0, stale_minutes: 10.0, slurm: Slurm::default() }
    }
}

/// What a finished trial keeps beside its settings, its log and its scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Keep {
    /// Nothing: the chosen models must be trained again for intervals and curves.
    Scores,
    /// The trained model, in one file.
    #[default]
    Weights,
    /// The whole run folder.
    Everything,
}

fn erm() -> String {
    "erm".to_owned()
}
