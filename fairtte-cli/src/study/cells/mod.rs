//! The cells of a study: every combination of its axes that a block asks for.

mod include;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use toml::Value;

use super::file::{OneOrMore, StudyFile};
use crate::CliError;

/// A part of a study that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Block {
    /// All heads and starts with the base strategy.
    Base,
    /// The strategies, with the base head and start.
    Fair,
    /// The base and the strategies on shifted training data.
    Shift,
    /// The base strategy with other backbones.
    Backbone,
    /// The cells of `[[include]]`.
    Include,
}

impl Block {
    pub(crate) const ALL: [Self; 5] = [Self::Base, Self::Fair, Self::Shift, Self::Backbone, Self::Include];

    /// Name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Fair => "fair",
            Self::Shift => "shift",
            Self::Backbone => "backbone",
            Self::Include => "include",
        }
    }

    /// Those that a study has unless its file says otherwise; [`Include`](Self::Include) follows from its entries.
    pub(super) fn defaults() -> BTreeSet<Self> {
        BTreeSet::from([Self::Base, Self::Fair, Self::Shift, Self::Backbone])
    }
}

/// A shift of the training data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShiftLevel {
    /// Name of the shift in the study file.
    pub(crate) name: String,
    /// Key of `[shift]`.
    pub(crate) key: String,
    /// Its value.
    pub(crate) level: Value,
}

/// One combination of the axes; it is trained once per trial.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) block: Block,
    /// Place of the data set in the study file.
    pub(crate) data: usize,
    pub(crate) attribute: String,
    pub(crate) head: String,
    pub(crate) start: String,
    /// Name of a backbone of the study file; `None` = that of the run file.
    pub(crate) backbone: Option<String>,
    pub(crate) strategy: String,
    pub(crate) shift: Option<ShiftLevel>,
}

impl Cell {
    /// The value of an axis in words, for tables and `[[exclude]]`.
    pub(crate) fn word(&self, axis: &str, study: &StudyFile) -> Option<String> {
        if study.estimators.contains(&self.strategy) && matches!(axis, "head" | "start" | "backbone") {
            return Some(String::new()); // an estimator has no network
        }
        Some(match axis {
            "block" => self.block.name().to_owned(),
            "data" => study.data[self.data].name.clone(),
            "attribute" => self.attribute.clone(),
            "head" => self.head.clone(),
            "start" => self.start.clone(),
            "backbone" => self.backbone.clone().unwrap_or_default(),
            "strategy" => self.strategy.clone(),
            "shift" => self.shift.as_ref().map(|shift| shift.name.clone()).unwrap_or_default(),
            "level" => self.shift.as_ref().map(|shift| shift.level.to_string()).unwrap_or_default(),
            _ => return None,
        })
    }
}

/// The axes in the order of tables.
pub(crate) const AXES: [&str; 9] =
    ["block", "data", "attribute", "head", "start", "backbone", "strategy", "shift", "level"];

/// Most trainings of a study: more are a mistake, and their names alone would fill the memory.
const MOST_TRAININGS: usize = 1_000_000;

/// Checks that a study of `n_cells` cells is of a size that can be planned.
///
/// # Errors
/// [`CliError::Config`] if it has more than a million trainings.
pub(crate) fn check_size(study: &StudyFile, n_cells: usize) -> Result<(), CliError> {
    let StudyFile { trials, folds, repeats, .. } = study;
    let n = [trials, folds, repeats].into_iter().try_fold(n_cells, |n, factor| n.checked_mul(*factor));
    if n.is_some_and(|n| n <= MOST_TRAININGS) {
        return Ok(());
    }
    let message = format!(
        "{n_cells} cells of {trials} trials each, with {folds} folds and {repeats} repeats, are more than {MOST_TRAININGS} trainings"
    );
    Err(CliError::setting("trials", message, None))
}

/// All cells, in the order of the blocks; `attributes` by data set.
///
/// # Errors
/// [`CliError::Config`] if a shifted group is not given, or an exclusion or inclusion names no axis or no value of it.
pub(crate) fn expand(study: &StudyFile, attributes: &[Vec<String>]) -> Result<Vec<Cell>, CliError> {
    let mut cells = Vec::new();
    let strategies = || std::iter::once(&study.strategies.base).chain(&study.strategies.names);
    for block in &study.blocks {
        for (data, attributes) in attributes.iter().enumerate() {
            for attribute in attributes {
                let cell = base_cell(study, *block, data, attribute);
                match block {
                    Block::Base => cells.extend(study.heads.names.iter().flat_map(|head| {
                        let cell = Cell { head: head.clone(), ..cell.clone() };
                        study.starts.keys().map(move |start| Cell { start: start.clone(), ..cell.clone() })
                    })),
                    // Estimators are shown beside the strategies with the base head, with which they are compared.
                    Block::Fair => {
                        cells.extend(study.others().map(|name| Cell { strategy: name.clone(), ..cell.clone() }));
                    }
                    Block::Shift => {
                        for shift in levels(study, attribute)? {
                            let with = |name: &String| Cell {
                                strategy: name.clone(),
                                shift: Some(shift.clone()),
                                ..cell.clone()
                            };
                            cells.extend(strategies().map(with));
                        }
                    }
                    Block::Backbone => {
                        let name = &study.data[data].name;
                        let here =
                            study.backbones.iter().filter(|(_, of)| of.data.is_empty() || of.data.contains(name));
                        cells.extend(here.map(|(name, _)| Cell { backbone: Some(name.clone()), ..cell.clone() }));
                    }
                    Block::Include => {}
                }
            }
        }
    }
    cells.extend(include::cells(study, attributes)?);
    exclude(study, &mut cells)?;
    Ok(cells)
}

/// The cell of the base strategy.
fn base_cell(study: &StudyFile, block: Block, data: usize, attribute: &str) -> Cell {
    Cell {
        block,
        data,
        attribute: attribute.to_owned(),
        head: study.base_head().to_owned(),
        start: study.base_start().to_owned(),
        backbone: None,
        strategy: study.strategies.base.clone(),
        shift: None,
    }
}

fn levels(study: &StudyFile, attribute: &str) -> Result<Vec<ShiftLevel>, CliError> {
    let mut found = Vec::new();
    for (name, keys) in &study.shifts {
        if !study.shift_group.contains_key(attribute) {
            let message = "which group is shifted is never guessed; write its level".to_owned();
            return Err(CliError::setting(&format!("shift-group.{attribute}"), message, None));
        }
        let of_key = |(key, levels): (&String, &Vec<Value>)| {
            let (name, key) = (name.clone(), key.clone());
            let level = move |level: &Value| ShiftLevel { name: name.clone(), key: key.clone(), level: level.clone() };
            levels.iter().map(level).collect::<Vec<_>>()
        };
        found.extend(keys.iter().flat_map(of_key));
    }
    Ok(found)
}

fn exclude(study: &StudyFile, cells: &mut Vec<Cell>) -> Result<(), CliError> {
    for (i, entry) in study.exclude.iter().enumerate() {
        let key = format!("exclude.{i}");
        if let Some(unknown) = entry.keys().find(|axis| !AXES.contains(&axis.as_str())) {
            let message = format!("there is no axis \"{unknown}\", expected {}", AXES.join(", "));
            return Err(CliError::setting(&key, message, None));
        }
        let is_out = |cell: &Cell| {
            let is = |(axis, words): (&String, &OneOrMore)| {
                cell.word(axis, study).is_some_and(|word| words.words().contains(&word))
            };
            !entry.is_empty() && entry.iter().all(is)
        };
        let before = cells.len();
        cells.retain(|cell| !is_out(cell));
        if cells.len() == before {
            return Err(CliError::setting(&key, format!("it excludes no cell: {entry:?}"), None));
        }
    }
    Ok(())
}
