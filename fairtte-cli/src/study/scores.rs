//! What a finished trial leaves behind: the metrics of every epoch that a rule kept, in the validation and the test part,
//! for all samples and for every group; no curves and no replicates.

use std::collections::BTreeMap;
use std::path::Path;

use fairtte_data::cohort::Classes;
use fairtte_data::{Cohort, Part, Split, read_cohort};
use fairtte_metrics::evaluation::{AttributeReport, Estimate, HorizonReport, MetricReport};
use fairtte_metrics::{EvaluationSettings, Groups};
use serde::{Deserialize, Serialize};

use super::measures::{AUC_WITH_WEIGHTS, Measures};
use crate::CliError;
use crate::run_folder::OpenRun;
use crate::scored::{Scored, chosen_metrics, read_curves};
use crate::selection::OfClass;

/// The scores of a trial, `scores.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Scores {
    /// The version that trained.
    pub(crate) fairtte: String,
    /// Whether the strategy read groups in training.
    pub(crate) reads_groups: bool,
    /// Epochs that were trained.
    pub(crate) n_epochs: usize,
    /// Warnings of the training, by name.
    pub(crate) warnings: Vec<String>,
    /// The weights that rules kept.
    pub(crate) kept: Vec<KeptScores>,
}

/// The scores of the weights of an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct KeptScores {
    /// Counted from 1.
    pub(crate) epoch: usize,
    /// Description of the weights.
    pub(crate) weights: String,
    /// The rules that chose it, in the order of their names; the monitor comes first.
    pub(crate) rules: Vec<String>,
    /// Validation and test part.
    pub(crate) parts: Vec<PartScores>,
}

/// The scores of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PartScores {
    /// `validation` or `test`.
    pub(crate) part: String,
    pub(crate) n: usize,
    pub(crate) n_events: usize,
    pub(crate) metrics: Vec<MetricScores>,
}

/// A value, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Number {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undefined: Option<String>,
}

impl Number {
    fn of(estimate: &Estimate) -> Self {
        Self { value: estimate.value, undefined: estimate.undefined.clone() }
    }
}

/// The scores by one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct MetricScores {
    /// Name in settings: `c-td`.
    pub(crate) metric: String,
    pub(crate) overall: Number,
    /// Samples and events, where they are not those of the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) counts: Option<(usize, usize)>,
    pub(crate) attributes: Vec<AttributeScores>,
}

/// The scores of the groups of an attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct AttributeScores {
    pub(crate) attribute: String,
    pub(crate) gap: Number,
    pub(crate) worst: Number,
    pub(crate) equity_scaling: Number,
    pub(crate) groups: Vec<GroupScores>,
}

/// The score of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct GroupScores {
    pub(crate) level: String,
    pub(crate) n: usize,
    pub(crate) n_events: usize,
    #[serde(flatten)]
    pub(crate) value: Number,
}

/// Scores everything that a run kept, from its saved files.
///
/// # Errors
/// The errors of reading and evaluating.
pub(crate) fn score(run: &Path) -> Result<Scores, CliError> {
    let OpenRun { file, folder } = OpenRun::read(run)?;
    let kept = folder.kept()?;
    let (cohort, groups) = read_cohort(&folder.cohort())?;
    let split = Split::read_csv(&folder.split(), &cohort)?;
    let saved = Saved { classes: file.classes(&cohort)?, cohort, groups, split };
    let settings = saved.settings(&file.evaluation.values_only());
    let files = folder.files_of(&kept);
    let mut epochs: BTreeMap<usize, (String, Vec<String>)> = BTreeMap::new();
    let weights = kept.weights.clone().unwrap_or_else(|| format!("epoch {}", kept.epoch));
    epochs.insert(kept.epoch, (weights, vec![kept.monitor.clone()]));
    for (rule, chosen) in &kept.rules {
        let weights = chosen.weights.clone().unwrap_or_else(|| format!("epoch {}", chosen.epoch));
        let entry = epochs.entry(chosen.epoch).or_insert_with(|| (weights, Vec::new()));
        if !entry.1.contains(rule) {
            entry.1.push(rule.clone());
        }
    }
    let mut found = Vec::new();
    for (epoch, (weights, rules)) in epochs {
        let parts = match &saved.classes {
            None => saved.of_curves(&files[&epoch], &settings)?,
            Some(classes) => saved.of_class(classes, &files[&epoch], &settings)?,
        };
        found.push(KeptScores { epoch, weights, rules, parts });
    }
    Ok(Scores {
        fairtte: kept.fairtte.clone().unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()),
        reads_groups: kept.reads_groups.unwrap_or_else(|| file.strategy_reads_groups()),
        n_epochs: folder.epochs()?.len(),
        warnings: folder.warnings()?.into_iter().map(|warning| warning.name).collect(),
        kept: found,
    })
}

/// The samples of a run.
struct Saved {
    cohort: Cohort,
    groups: Vec<Groups>,
    split: Split,
    /// Where a class is predicted.
    classes: Option<Classes>,
}

/// The parts that are scored.
const PARTS: [Part; 2] = [Part::Validation, Part::Test];

impl Saved {
    /// Gaps of small groups count too: among trials they are compared on the same samples, and their events are recorded.
    fn settings(&self, of_run: &EvaluationSettings) -> EvaluationSettings {
        let metrics = match self.cohort.cause {
            Some(cause) => chosen_metrics(Some(cause)),
            // A class has all of its own.
            None if self.classes.is_some() => of_run.metrics.clone(),
            None => Measures::Curves.names().map(str::to_owned).to_vec(),
        };
        EvaluationSettings { metrics, min_events: 0, ..of_run.clone() }
    }

    /// Of one of several causes the metrics of the cause have the names of the others.
    fn of_curves(&self, file: &Path, settings: &EvaluationSettings) -> Result<Vec<PartScores>, CliError> {
        let predictions = read_curves(file, &self.cohort)?;
        let part = |part: Part| -> Result<PartScores, CliError> {
            let scored = Scored::new(predictions.clone(), &self.cohort, &self.groups, Some(&self.split), part)?;
            let report = scored.evaluate(settings)?;
            let names = Measures::Curves.names();
            let metrics = report.metrics.iter().zip(names).map(|(metric, name)| of_metric(name, metric)).collect();
            Ok(PartScores { part: part.name().to_owned(), n: report.n, n_events: report.n_events, metrics })
        };
        PARTS.into_iter().map(part).collect()
    }

    /// All metrics of a class; decisions are at the threshold with the highest F1 in the validation part. Where the class is made
    /// from times, the AUC of all samples with weights for censoring is the last.
    fn of_class(
        &self,
        classes: &Classes,
        file: &Path,
        settings: &EvaluationSettings,
    ) -> Result<Vec<PartScores>, CliError> {
        let splits = std::slice::from_ref(&self.split);
        let read = |part| OfClass::read((&self.cohort, &self.groups, classes), splits, &[file.to_owned()], part);
        let class = read(Part::Validation)?.settings()?;
        let part = |part: Part| -> Result<PartScores, CliError> {
            let of_part = read(part)?;
            let report = of_part.report(&class, settings)?;
            let mut metrics: Vec<_> = report.metrics.iter().map(|metric| of_metric(&metric.name, metric)).collect();
            if let Some(HorizonReport { weighted, .. }) = of_part.at_horizon(settings)? {
                let counts = Some((weighted.overall.n, weighted.overall.n_events));
                metrics.push(MetricScores { counts, ..of_metric(AUC_WITH_WEIGHTS, &weighted) });
            }
            Ok(PartScores { part: part.name().to_owned(), n: report.n, n_events: report.n_positive, metrics })
        };
        PARTS.into_iter().map(part).collect()
    }
}

fn of_metric(name: &str, report: &MetricReport) -> MetricScores {
    MetricScores {
        metric: name.to_owned(),
        overall: Number::of(&report.overall),
        counts: None,
        attributes: report.attributes.iter().map(of_attribute).collect(),
    }
}

fn of_attribute(report: &AttributeReport) -> AttributeScores {
    let group = |group: &fairtte_metrics::evaluation::GroupReport| GroupScores {
        level: group.level.clone(),
        n: group.estimate.n,
        n_events: group.estimate.n_events,
        value: Number::of(&group.estimate),
    };
    AttributeScores {
        attribute: report.attribute.clone(),
        gap: Number::of(&report.gap),
        worst: Number::of(&report.worst),
        equity_scaling: Number::of(&report.equity_scaling),
        groups: report.groups.iter().map(group).collect(),
    }
}
