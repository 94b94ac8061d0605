//! Arguments of `evaluate --task binary`: probabilities of a class in place of survival curves.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

/// What is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Survival curves (the default)
    TimeToEvent,
    /// The probability of a class: one column, and the class in another
    Binary,
}

/// What is read and decided with `--task binary`.
#[derive(Args, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Probabilities of a class")]
pub struct Classes {
    /// What --predictions predict. `binary`: the probability of a class, in the column `probability`, with the class (1 or 0) in
    /// `label`, or made from `time` and `event` by --horizon
    #[arg(long, value_enum, requires = "predictions", conflicts_with = "run")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// Column of the probabilities, instead of `probability`; also of --validation
    #[arg(long, value_name = "COLUMN", requires = "task", conflicts_with = "run")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<String>,
    /// Column of the classes, instead of `label`; also of --validation
    #[arg(long, value_name = "COLUMN", requires = "task", conflicts_with = "run")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Value of a positive sample, for example `melanoma`; every other value is negative
    #[arg(long, value_name = "VALUE", requires = "task", conflicts_with = "run")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_value: Option<String>,
    /// Probabilities and classes of other samples, on which the threshold with the highest F1 is chosen (without it and without
    /// --threshold: 0.5)
    #[arg(long, value_name = "FILE", requires = "task", conflicts_with_all = ["run", "threshold"])]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<PathBuf>,
}

impl Classes {
    /// Whether nothing was given.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether probabilities of a class are evaluated.
    pub(crate) fn is_binary(&self) -> bool {
        self.task == Some(Task::Binary)
    }

    /// The first option that only a class has, if one is given.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--probability", self.probability.is_some()),
            ("--label", self.label.is_some()),
            ("--label-value", self.label_value.is_some()),
            ("--validation", self.validation.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }
}
