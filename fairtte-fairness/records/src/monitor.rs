//! The metrics of the validation part by name, and their values after an epoch.

use fairtte_metrics::Direction;
use fairtte_metrics::fairness::Comparison;
use serde::{Deserialize, Serialize};

/// A named metric of the validation part, which early stopping may watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Monitor {
    /// Mean negative log-likelihood of the predicted curves on the time grid; lower is better.
    #[default]
    Nll,
    /// Time-dependent concordance (Antolini et al. 2005), strict; higher is better.
    CTd,
    /// The lowest concordance of any group in which it is defined; higher is better.
    WorstGroupCTd,
    /// Cumulative/dynamic AUC, weighted for censoring and averaged over time; higher is better.
    AucTd,
    /// Integrated Brier score, weighted for censoring; lower is better.
    Ibs,
}

impl Monitor {
    /// All of them, in the order in which they are listed to users.
    pub const ALL: [Self; 5] = [Self::Nll, Self::CTd, Self::AucTd, Self::Ibs, Self::WorstGroupCTd];

    /// Name in run files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nll => "nll",
            Self::CTd => "c-td",
            Self::WorstGroupCTd => "worst-group-c-td",
            Self::AucTd => "auc-td",
            Self::Ibs => "ibs",
        }
    }

    /// One line for `fairtte list`.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Nll => "mean negative log-likelihood of the curves on the time grid (lower is better)",
            Self::CTd => "time-dependent concordance (higher is better)",
            Self::WorstGroupCTd => "lowest time-dependent concordance of any group (higher is better)",
            Self::AucTd => "cumulative/dynamic AUC averaged over time (higher is better)",
            Self::Ibs => "integrated Brier score (lower is better)",
        }
    }

    /// The direction in which the metric improves.
    pub fn direction(self) -> Direction {
        match self {
            Self::Nll | Self::Ibs => Direction::LowerIsBetter,
            Self::CTd | Self::WorstGroupCTd | Self::AucTd => Direction::HigherIsBetter,
        }
    }

    /// Whether `value` is better than `best`.
    pub fn is_better(self, value: f64, best: f64) -> bool {
        match self.direction() {
            Direction::LowerIsBetter => value < best,
            Direction::HigherIsBetter => value > best,
        }
    }
}

/// Metrics of the validation part after one epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Mean negative log-likelihood.
    pub nll: f64,
    /// Concordance; absent where it is undefined.
    pub c_td: Option<f64>,
    /// Cumulative/dynamic AUC; absent where it is undefined.
    #[serde(default)]
    pub auc_td: Option<f64>,
    /// Integrated Brier score; absent where it is undefined.
    #[serde(default)]
    pub ibs: Option<f64>,
    /// The value of the watched metric.
    pub monitored: f64,
    /// Largest difference between the curves of two samples at one time; absent with fewer than two.
    #[serde(default)]
    pub spread: Option<f64>,
    /// The same for every group that has a sample in the part; with `attributes`, those of the first.
    #[serde(default)]
    pub groups: Vec<GroupValidation>,
    /// The groups of every attribute for which epochs are kept, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<AttributeValidation>,
}

/// Metrics of the groups of one attribute after one epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttributeValidation {
    /// Name of the attribute.
    pub attribute: String,
    /// Those that have a sample in the part.
    pub groups: Vec<GroupValidation>,
}

/// Metrics of one group of the validation part after one epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupValidation {
    /// Name of the group.
    pub level: String,
    /// Number of samples.
    pub n: usize,
    /// Number of events.
    pub n_events: usize,
    /// Mean negative log-likelihood.
    pub nll: f64,
    /// Concordance within the group; absent where it is undefined.
    pub c_td: Option<f64>,
    /// Cumulative/dynamic AUC within the group.
    #[serde(default)]
    pub auc_td: Option<f64>,
    /// Integrated Brier score of the group.
    #[serde(default)]
    pub ibs: Option<f64>,
}

impl Validation {
    /// The metric; absent where it is undefined.
    pub fn value(&self, metric: Monitor) -> Option<f64> {
        self.value_for(metric, None)
    }

    /// The metric, which for the worst group is that of an attribute, or of the training's own groups without one; absent
    /// where it is undefined.
    pub fn value_for(&self, metric: Monitor, attribute: Option<&str>) -> Option<f64> {
        match metric {
            Monitor::Nll => Some(self.nll),
            Monitor::CTd => self.c_td,
            Monitor::AucTd => self.auc_td,
            Monitor::Ibs => self.ibs,
            Monitor::WorstGroupCTd => self.groups_of(attribute).iter().filter_map(|group| group.c_td).reduce(f64::min),
        }
    }

    /// Largest minus smallest value of a group; absent with fewer than two groups that have one, and for a metric that
    /// compares groups already.
    pub fn gap(&self, metric: Monitor) -> Option<f64> {
        self.gap_for(metric, None)
    }

    /// The same between the groups of an attribute, or the training's own groups without one.
    pub fn gap_for(&self, metric: Monitor, attribute: Option<&str>) -> Option<f64> {
        let of_group = |group: &GroupValidation| match metric {
            Monitor::Nll => Some(group.nll),
            Monitor::CTd => group.c_td,
            Monitor::AucTd => group.auc_td,
            Monitor::Ibs => group.ibs,
            Monitor::WorstGroupCTd => None,
        };
        let values: Vec<f64> = self.groups_of(attribute).iter().filter_map(of_group).collect();
        Comparison::Gap.of(&values, 0.0, metric.direction())
    }

    /// None for an attribute that was not scored.
    fn groups_of(&self, attribute: Option<&str>) -> &[GroupValidation] {
        let Some(name) = attribute else { return &self.groups };
        self.attributes.iter().find(|of| of.attribute == name).map_or(&[], |of| &of.groups)
    }
}
