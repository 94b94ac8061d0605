//! The table of runs that a model selection chooses from.
//!
//! A value that a run does not have (a metric that is undefined in a group) is kept with its reason, never as a number.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::{Direction, MetricError};

/// A number of a run, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// The number.
    Value(f64),
    /// Why there is none.
    Undefined(String),
}

impl Measured {
    /// The number, if there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Value(value) => Some(*value),
            Self::Undefined(_) => None,
        }
    }
}

impl From<Result<f64, MetricError>> for Measured {
    fn from(value: Result<f64, MetricError>) -> Self {
        value.map_or_else(|error| Self::Undefined(error.to_string()), Self::Value)
    }
}

/// The validation metrics of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Run {
    /// Name, distinct in its table.
    pub run: String,
    /// Utility over all samples.
    pub utility: Measured,
    /// Utility of every group, in the order of [`RunTable::groups`].
    pub group_utilities: Vec<Measured>,
    /// Fairness gap, >= 0; smaller is fairer.
    pub gap: Measured,
}

/// The runs to choose from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunTable {
    /// Whether a higher or a lower utility is better (both overall and in the groups).
    pub direction: Direction,
    /// Names of the groups.
    pub groups: Vec<String>,
    /// One entry per run.
    pub runs: Vec<Run>,
}

/// Distinct names, one finite utility per group, gaps >= 0.
pub(crate) fn check_table(table: &RunTable) -> Result<(), MetricError> {
    if table.runs.is_empty() {
        return Err(MetricError::NoRuns);
    }
    let mut names = HashSet::new();
    for Run { run, utility, group_utilities, gap } in &table.runs {
        if !names.insert(run) {
            return Err(MetricError::RepeatedRun { run: run.clone() });
        }
        let (found, expected) = (group_utilities.len(), table.groups.len());
        if found != expected {
            return Err(MetricError::RunGroupsMismatch { run: run.clone(), found, expected });
        }
        let of_groups = table.groups.iter().map(|group| format!("utility of group \"{group}\"")).zip(group_utilities);
        for (what, measured) in std::iter::once(("utility".to_owned(), utility)).chain(of_groups) {
            if let Some(value) = measured.value().filter(|value| !value.is_finite()) {
                return Err(MetricError::InvalidRunValue {
                    run: run.clone(),
                    what,
                    value,
                    expected: "a finite number",
                });
            }
        }
        if let Some(value) = gap.value().filter(|value| !(value.is_finite() && *value >= 0.0)) {
            let (what, expected) = ("gap".to_owned(), "a finite number >= 0");
            return Err(MetricError::InvalidRunValue { run: run.clone(), what, value, expected });
        }
    }
    Ok(())
}
