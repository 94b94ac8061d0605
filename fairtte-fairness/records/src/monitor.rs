//! The metrics of the validation part by name, and their values after an epoch.
//!
//! Each task has its own: survival curves `nll`, `c-td`, `auc-td`, `ibs`; the probability of a class `bce`, `auc`,
//! `balanced-accuracy`; masks `dice-ce`, `dice`. A [`Validation`] holds them by name, so that what trains and selects knows no metric.

use std::collections::BTreeMap;

use fairtte_metrics::Direction;
use fairtte_metrics::fairness::Comparison;
use serde::{Deserialize, Serialize};

/// What a model predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predicted {
    /// Survival curves.
    Curves,
    /// The probability of a class.
    Class,
    /// The class of every pixel.
    Masks,
}

impl Predicted {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Curves => "survival curves",
            Self::Class => "a class",
            Self::Masks => "masks",
        }
    }
}

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
    /// Binary cross-entropy of the predicted probabilities of a class; lower is better.
    Bce,
    /// AUC of the predicted probabilities of a class; higher is better.
    Auc,
    /// The lowest AUC of any group in which it is defined; higher is better.
    WorstGroupAuc,
    /// Balanced accuracy at the threshold with the highest F1 in the validation part, one for all groups; higher is better.
    BalancedAccuracy,
    /// Mean loss of predicted masks, that of the head; lower is better.
    DiceCe,
    /// Mean Dice of the predicted masks over samples and values other than the background; higher is better.
    Dice,
    /// The lowest mean Dice of any group; higher is better.
    WorstGroupDice,
}

impl Monitor {
    /// All of them, in the order in which they are listed to users.
    pub const ALL: [Self; 12] = [
        Self::Nll,
        Self::CTd,
        Self::AucTd,
        Self::Ibs,
        Self::WorstGroupCTd,
        Self::Bce,
        Self::Auc,
        Self::BalancedAccuracy,
        Self::WorstGroupAuc,
        Self::DiceCe,
        Self::Dice,
        Self::WorstGroupDice,
    ];

    /// Those of what is predicted.
    pub fn of_task(predicted: Predicted) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |monitor| monitor.predicted() == predicted)
    }

    /// What it is a metric of.
    pub fn predicted(self) -> Predicted {
        match self {
            Self::Nll | Self::CTd | Self::WorstGroupCTd | Self::AucTd | Self::Ibs => Predicted::Curves,
            Self::Bce | Self::Auc | Self::WorstGroupAuc | Self::BalancedAccuracy => Predicted::Class,
            Self::DiceCe | Self::Dice | Self::WorstGroupDice => Predicted::Masks,
        }
    }

    /// Whether it is the value of the worst group.
    pub fn is_worst_group(self) -> bool {
        self.overall() != self
    }

    /// The metric whose worst group it is, or itself.
    #[must_use]
    pub fn overall(self) -> Self {
        match self {
            Self::WorstGroupCTd => Self::CTd,
            Self::WorstGroupAuc => Self::Auc,
            Self::WorstGroupDice => Self::Dice,
            other => other,
        }
    }

    /// Name in run files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nll => "nll",
            Self::CTd => "c-td",
            Self::WorstGroupCTd => "worst-group-c-td",
            Self::AucTd => "auc-td",
            Self::Ibs => "ibs",
            Self::Bce => "bce",
            Self::Auc => "auc",
            Self::WorstGroupAuc => "worst-group-auc",
            Self::BalancedAccuracy => "balanced-accuracy",
            Self::DiceCe => "dice-ce",
            Self::Dice => "dice",
            Self::WorstGroupDice => "worst-group-dice",
        }
    }

    /// The name of its number in a validation; the likelihood of a class is its cross-entropy, and the loss of masks is kept with it.
    fn key(self) -> &'static str {
        match self {
            Self::Nll | Self::Bce | Self::DiceCe => NLL,
            Self::CTd | Self::WorstGroupCTd => "c_td",
            Self::AucTd => "auc_td",
            Self::Ibs => "ibs",
            Self::Auc | Self::WorstGroupAuc => AUC,
            Self::BalancedAccuracy => "balanced_accuracy",
            Self::Dice | Self::WorstGroupDice => DICE,
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
            Self::Bce => "of a class: binary cross-entropy (lower is better)",
            Self::Auc => "of a class: area under the ROC curve (higher is better)",
            Self::WorstGroupAuc => "of a class: lowest AUC of any group (higher is better)",
            Self::BalancedAccuracy => {
                "of a class: balanced accuracy at the threshold with the highest F1 (higher is better)"
            }
            Self::DiceCe => "of masks: cross-entropy and Dice loss of the head (lower is better)",
            Self::Dice => "of masks: mean Dice over samples and values but the background (higher is better)",
            Self::WorstGroupDice => "of masks: lowest mean Dice of any group (higher is better)",
        }
    }

    /// The direction in which the metric improves.
    pub fn direction(self) -> Direction {
        match self {
            Self::Nll | Self::Ibs | Self::Bce | Self::DiceCe => Direction::LowerIsBetter,
            Self::CTd
            | Self::WorstGroupCTd
            | Self::AucTd
            | Self::Auc
            | Self::WorstGroupAuc
            | Self::BalancedAccuracy
            | Self::Dice
            | Self::WorstGroupDice => Direction::HigherIsBetter,
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

const NLL: &str = "nll";
/// A validation that has this number, defined or not, is one of a class.
const AUC: &str = "auc";
/// A validation that has this number is one of masks.
const DICE: &str = "dice";

/// Metrics by name; `None` where one is undefined.
pub type Metrics = BTreeMap<String, Option<f64>>;

/// The metrics of these monitors with their values.
pub fn metrics_of(values: impl IntoIterator<Item = (Monitor, Option<f64>)>) -> Metrics {
    values.into_iter().map(|(monitor, value)| (monitor.key().to_owned(), value)).collect()
}

/// Metrics of the validation part after one epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Mean negative log-likelihood: of the curves, or of the class (its cross-entropy); of masks the mean loss of the head.
    pub nll: f64,
    /// The other metrics of the task, by name: `c_td`, `auc_td` and `ibs`, `auc` and `balanced_accuracy`, or `dice`.
    #[serde(flatten)]
    pub metrics: Metrics,
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
    /// Number of events, or of positive samples.
    pub n_events: usize,
    /// Mean negative log-likelihood.
    pub nll: f64,
    /// The other metrics within the group, as in [`Validation::metrics`].
    #[serde(flatten)]
    pub metrics: Metrics,
}

fn number(nll: f64, metrics: &Metrics, key: &str) -> Option<f64> {
    if key == NLL { Some(nll) } else { metrics.get(key).copied().flatten() }
}

impl GroupValidation {
    /// The metric within the group; absent where it is undefined, and for one that compares groups.
    pub fn value(&self, metric: Monitor) -> Option<f64> {
        if metric.is_worst_group() { None } else { number(self.nll, &self.metrics, metric.key()) }
    }
}

impl Validation {
    /// What was scored.
    pub fn predicted(&self) -> Predicted {
        match &self.metrics {
            metrics if metrics.contains_key(AUC) => Predicted::Class,
            metrics if metrics.contains_key(DICE) => Predicted::Masks,
            _ => Predicted::Curves,
        }
    }

    /// The metric; absent where it is undefined.
    pub fn value(&self, metric: Monitor) -> Option<f64> {
        self.value_for(metric, None)
    }

    /// The metric, which for the worst group is that of an attribute, or of the training's own groups without one; absent
    /// where it is undefined.
    pub fn value_for(&self, metric: Monitor, attribute: Option<&str>) -> Option<f64> {
        if metric.is_worst_group() {
            let of_groups = self.groups_of(attribute).iter().filter_map(|group| group.value(metric.overall()));
            return of_groups.reduce(f64::min);
        }
        number(self.nll, &self.metrics, metric.key())
    }

    /// Largest minus smallest value of a group; absent with fewer than two groups that have one, and for a metric that
    /// compares groups already.
    pub fn gap(&self, metric: Monitor) -> Option<f64> {
        self.gap_for(metric, None)
    }

    /// The same between the groups of an attribute, or the training's own groups without one.
    pub fn gap_for(&self, metric: Monitor, attribute: Option<&str>) -> Option<f64> {
        let values: Vec<f64> = self.groups_of(attribute).iter().filter_map(|group| group.value(metric)).collect();
        Comparison::Gap.of(&values, 0.0, metric.direction())
    }

    /// None for an attribute that was not scored.
    fn groups_of(&self, attribute: Option<&str>) -> &[GroupValidation] {
        let Some(name) = attribute else { return &self.groups };
        self.attributes.iter().find(|of| of.attribute == name).map_or(&[], |of| &of.groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(level: &str, auc: Option<f64>) -> GroupValidation {
        GroupValidation { level: level.to_owned(), metrics: metrics_of([(Monitor::Auc, auc)]), ..Default::default() }
    }

    #[test]
    fn the_worst_group_and_the_gap_are_of_the_groups_that_have_a_value() {
        let groups = vec![group("a", Some(0.75)), group("b", None), group("c", Some(0.5))];
        let metrics = metrics_of([(Monitor::Auc, Some(0.625)), (Monitor::BalancedAccuracy, None)]);
        let validation = Validation { nll: 0.25, metrics, groups, ..Validation::default() };
        let value = |monitor| validation.value(monitor);
        assert_eq!(
            [Monitor::Bce, Monitor::Auc, Monitor::WorstGroupAuc, Monitor::BalancedAccuracy, Monitor::CTd].map(value),
            [Some(0.25), Some(0.625), Some(0.5), None, None]
        );
        assert_eq!((validation.gap(Monitor::Auc), validation.gap(Monitor::WorstGroupAuc)), (Some(0.25), None));
        let of = [validation.predicted(), Validation::default().predicted()];
        assert_eq!(of, [Predicted::Class, Predicted::Curves]);
    }

    #[test]
    fn a_validation_of_an_older_version_is_read() -> Result<(), serde_json::Error> {
        let text = r#"{"nll":1.5,"c_td":0.75,"auc_td":null,"monitored":1.5,
            "groups":[{"level":"F","n":3,"n_events":1,"nll":2.0,"c_td":0.5,"auc_td":null,"ibs":0.25}]}"#;
        let found: Validation = serde_json::from_str(text)?;
        let value = |monitor| found.value(monitor);
        assert_eq!(
            [Monitor::Nll, Monitor::CTd, Monitor::AucTd, Monitor::Ibs, Monitor::WorstGroupCTd].map(value),
            [Some(1.5), Some(0.75), None, None, Some(0.5)]
        );
        assert_eq!((found.groups[0].value(Monitor::Ibs), found.predicted()), (Some(0.25), Predicted::Curves));
        let again: Validation = serde_json::from_str(&serde_json::to_string(&found)?)?;
        assert_eq!(again, found);
        Ok(())
    }

    #[test]
    fn every_monitor_is_of_one_task() {
        let names = |predicted| Monitor::of_task(predicted).map(Monitor::name).collect::<Vec<_>>();
        assert_eq!(names(Predicted::Class), ["bce", "auc", "balanced-accuracy", "worst-group-auc"]);
        assert_eq!(names(Predicted::Masks), ["dice-ce", "dice", "worst-group-dice"]);
        assert_eq!(names(Predicted::Curves).len() + 7, Monitor::ALL.len());
        let metrics = metrics_of([(Monitor::Dice, Some(0.75))]);
        let masks = Validation { nll: 0.25, metrics, ..Validation::default() };
        assert_eq!(masks.predicted(), Predicted::Masks);
        assert_eq!(
            [Monitor::DiceCe, Monitor::Dice, Monitor::CTd].map(|of| masks.value(of)),
            [Some(0.25), Some(0.75), None]
        );
    }
}
