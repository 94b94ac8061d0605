//! Bootstrap intervals of chosen models: kept in the study's folder, because a model has to predict again for them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fairtte_metrics::EvaluationReport;
use serde::{Deserialize, Serialize};

use super::plan::Plan;
use super::scores::METRICS;
use crate::CliError;
use crate::run_folder::{read_json, write_json};

/// A kept epoch of a trial.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Model {
    /// Place in the manifest.
    pub(crate) place: usize,
    pub(crate) epoch: usize,
}

/// Both ends by group.
type OfGroups = BTreeMap<String, (f64, f64)>;

/// Intervals of the groups of models, `intervals.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Intervals {
    /// Replicates over the subjects of the test part.
    pub(crate) replicates: usize,
    /// By training and epoch, metric, attribute and group.
    models: BTreeMap<String, BTreeMap<String, BTreeMap<String, OfGroups>>>,
}

impl Intervals {
    /// None yet.
    pub(crate) fn of_replicates(replicates: usize) -> Self {
        Self { replicates, models: BTreeMap::new() }
    }

    /// Those that are kept; none if nothing is.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if the file cannot be read.
    pub(crate) fn read(plan: &Plan) -> Result<Self, CliError> {
        let path = path(plan);
        if path.exists() { read_json(&path) } else { Ok(Self::default()) }
    }

    /// # Errors
    /// [`CliError`] if the file cannot be written.
    pub(crate) fn write(&self, plan: &Plan) -> Result<(), CliError> {
        write_json(&path(plan), self)
    }

    pub(crate) fn has(&self, plan: &Plan, model: &Model) -> bool {
        self.models.contains_key(&key(plan, model))
    }

    /// Takes the intervals of the groups from an evaluation.
    pub(crate) fn add(&mut self, plan: &Plan, model: &Model, report: &EvaluationReport) {
        let of = self.models.entry(key(plan, model)).or_default();
        for (metric, name) in report.metrics.iter().zip(METRICS) {
            let of_metric = of.entry(name.to_owned()).or_default();
            for attribute in &metric.attributes {
                let groups = attribute
                    .groups
                    .iter()
                    .filter_map(|group| Some((group.level.clone(), group.estimate.lower.zip(group.estimate.upper)?)));
                of_metric.insert(attribute.attribute.clone(), groups.collect());
            }
        }
    }

    /// The interval of a group.
    pub(crate) fn of(
        &self,
        plan: &Plan,
        model: &Model,
        metric: usize,
        (attribute, group): (&str, &str),
    ) -> Option<(f64, f64)> {
        self.models.get(&key(plan, model))?.get(METRICS[metric])?.get(attribute)?.get(group).copied()
    }
}

fn path(plan: &Plan) -> PathBuf {
    plan.folder().path().join("intervals.json")
}

/// The content of a training does not change, whatever its place.
fn key(plan: &Plan, model: &Model) -> String {
    format!("{} {}", plan.ids()[model.place], model.epoch)
}
