//! What the axes of a cell add to the run file of a trial, and how a trial is called.

use fairtte_data::split::SplitConfig;
use toml::{Table, Value};

use super::{ALL_ATTRIBUTES, Plan};
use crate::study::cells::{AXES, Cell};

impl Plan {
    /// The title of a trial: its axes.
    pub(super) fn title(&self, cell: &Cell, index: usize) -> String {
        let words = self.axes_in_words(cell, &AXES[1..]);
        let trial = self.place(index).1;
        let fold = if self.study().folds > 1 { format!(", fold {}", self.fold(index) + 1) } else { String::new() };
        let seed =
            if self.study().repeats > 1 { format!(", repeat {}", self.repeat(index) + 1) } else { String::new() };
        format!("{words}, trial {}{fold}{seed}", trial + 1)
    }

    pub(super) fn axes_in_words(&self, cell: &Cell, axes: &[&str]) -> String {
        let words = axes.iter().filter_map(|axis| cell.word(axis, self.study()));
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// The folder of a training of a comparison: `sex/group-dro-seed1`. One that serves all attributes is in a folder of its own.
    pub(super) fn words(&self, cell: &Cell, seed: u64, index: usize, serves_all: bool) -> String {
        let below = if serves_all { ALL_ATTRIBUTES } else { &cell.attribute };
        let fold = if self.study().folds > 1 { format!("-fold{}", self.fold(index) + 1) } else { String::new() };
        format!("{below}/{}-seed{seed}{fold}", cell.strategy)
    }

    /// The tables that the axes of a cell add to the run file.
    pub(super) fn tables(&self, cell: &Cell) -> Vec<(Table, &'static str)> {
        let study = self.study();
        let chosen = |table: &str, name: &str| {
            let of = Table::from_iter([(name.to_owned(), Value::Table(Table::new()))]);
            Table::from_iter([(table.to_owned(), Value::Table(of))])
        };
        let mut tables = vec![
            (study.set.clone(), "[set]"),
            (chosen("head", &cell.head), "[heads]"),
            (chosen("strategy", &cell.strategy), "[strategies]"),
            (study.starts.get(&cell.start).cloned().unwrap_or_default(), "[starts]"),
        ];
        if let Some(settings) = study.strategies.settings.get(&cell.strategy) {
            let table = nested(&format!("strategy.{}", cell.strategy), Value::Table(settings.clone()));
            tables.push((table, "[strategies.settings]"));
        }
        if let Some(backbone) = cell.backbone.as_ref().and_then(|name| study.backbones.get(name)) {
            tables.push((backbone.settings.clone(), "[backbones]"));
        }
        if let Some(shift) = &cell.shift
            && let Some(group) = study.shift_group.get(&cell.attribute)
            && let Ok(group) = Value::try_from(group)
        {
            let attribute = ("attribute".to_owned(), Value::String(cell.attribute.clone()));
            let table = [attribute, ("group".to_owned(), group), (shift.key.clone(), shift.level.clone())];
            tables.push((nested("shift", Value::Table(Table::from_iter(table))), "[shifts]"));
        }
        if study.data[cell.data].split_per_attribute {
            let by = ["event".to_owned(), cell.attribute.clone()].map(Value::String).to_vec();
            tables.push((nested("split.stratify", Value::Array(by)), "split-per-attribute"));
        }
        tables
    }
}

/// `[split]` of a fold. With more than five folds the validation parts of the default fractions would overlap, and the choice
/// among models pools them: they become folds too, unless the run file or `[set]` has other fractions.
pub(super) fn fold_table(folds: usize, fold: usize, [run, set]: [&Table; 2]) -> Table {
    let whole = |n: usize| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
    let of = [("folds".to_owned(), whole(folds)), ("fold".to_owned(), whole(fold))];
    let mut split = Table::from_iter([("k-fold".to_owned(), Value::Table(Table::from_iter(of)))]);
    let default = SplitConfig::default();
    let is_default = |key: &str, default: f64| {
        let given = |table: &Table| table.get("split").and_then(|split| split.get(key)).and_then(Value::as_float);
        let given = given(set).or_else(|| given(run));
        given.is_none_or(|given| (given - default).abs() < 1e-12)
    };
    let keys = [("train", default.train), ("validation", default.validation), ("test", default.test)];
    if folds > 5 && keys.iter().all(|(key, default)| is_default(key, *default)) {
        let share = 1.0 / folds as f64;
        let shares = [1.0 - 2.0 * share, share, share];
        split.extend(keys.iter().zip(shares).map(|((key, _), share)| ((*key).to_owned(), Value::Float(share))));
    }
    Table::from_iter([("split".to_owned(), Value::Table(split))])
}

/// `a.b = value` as a table.
pub(super) fn nested(key: &str, value: Value) -> Table {
    let (first, value) = match key.split_once('.') {
        Some((first, rest)) => (first, Value::Table(nested(rest, value))),
        None => (key, value),
    };
    Table::from_iter([(first.to_owned(), value)])
}
