//! What a finished trial leaves behind: the metrics of every epoch that a rule kept, in the validation and the test part,
//! for everybody and for every group; no curves and no replicates.

use std::collections::BTreeMap;
use std::path::Path;

use fairtte_data::{Part, Split, read_cohort};
use fairtte_metrics::EvaluationSettings;
use fairtte_metrics::evaluation::{AttributeReport, Estimate, MetricReport};
use serde::{Deserialize, Serialize};

use crate::CliError;
use crate::run_folder::OpenRun;
use crate::scored::{Scored, chosen_metrics, read_curves};

/// The metrics by which models are chosen and compared; of one of several causes those of the cause, under the same names.
pub(crate) const METRICS: [&str; 3] = ["c-td", "auc-td", "ibs"];

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
    // Gaps of small groups count too: among trials they are compared on the same samples, and their events are recorded.
    let settings = EvaluationSettings {
        metrics: match cohort.cause {
            Some(cause) => chosen_metrics(Some(cause)),
            None => METRICS.map(str::to_owned).to_vec(),
        },
        min_events: 0,
        ..file.evaluation.values_only()
    };
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
        let predictions = read_curves(&files[&epoch], &cohort)?;
        let part = |part: Part| -> Result<PartScores, CliError> {
            let scored = Scored::new(predictions.clone(), &cohort, &groups, Some(&split), part)?;
            let report = scored.evaluate(&settings)?;
            let metrics = report.metrics.iter().zip(METRICS).map(|(metric, name)| of_metric(name, metric)).collect();
            Ok(PartScores { part: part.name().to_owned(), n: report.n, n_events: report.n_events, metrics })
        };
        let parts = vec![part(Part::Validation)?, part(Part::Test)?];
        found.push(KeptScores { epoch, weights, rules, parts });
    }
    Ok(Scores {
        fairtte: env!("CARGO_PKG_VERSION").to_owned(),
        reads_groups: kept.reads_groups.unwrap_or_else(|| file.strategy_reads_groups()),
        n_epochs: folder.epochs()?.len(),
        warnings: folder.warnings()?.into_iter().map(|warning| warning.name).collect(),
        kept: found,
    })
}

fn of_metric(name: &str, report: &MetricReport) -> MetricScores {
    MetricScores {
        metric: name.to_owned(),
        overall: Number::of(&report.overall),
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
