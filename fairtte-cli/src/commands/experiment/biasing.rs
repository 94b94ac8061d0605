//! `fairtte experiment biasing`: the biasing experiment on tables, cell by cell, so that it can be interrupted.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fairtte_classical::biasing::{
    Analysis, BiasingSettings, BiasingTable, Cell, CellResult, Measure, analyse, cells, run_cell,
};
use fairtte_classical::{ClassicalError, Estimator, ForestSettings, Preset, SurvivalEstimator as _};
use fairtte_data::adapters::{Tabular, TabularConfig};
use fairtte_data::features::{TabularFeatures, leak_warnings};
use fairtte_data::{Adapter as _, DataError, build_cohort};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::{print, print_json, use_threads};
use super::write_page;
use crate::CliError;
use crate::args::BiasingExperiment;
use crate::design;
use crate::plural::counted;
use crate::progress::{Files, say};
use crate::report::experiment::biasing::{page, rows};
use crate::report::experiment::plain;
use crate::run_folder::{read_json, write_json, write_text};

/// Results of the cells, one line each.
const CELLS: &str = "cells.jsonl";
/// What the cells were computed with.
const SETTINGS: &str = "settings.json";

/// What has to be the same when a folder is continued.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Record {
    settings: BiasingSettings,
    estimator: Estimator,
    /// By name of a table, the hash of its content and of how it was read.
    tables: BTreeMap<String, String>,
}

/// A table and what is known about it.
struct Read {
    table: BiasingTable,
    hash: String,
}

/// The content of `biasing.json`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Found<'a> {
    settings: &'a BiasingSettings,
    estimator: &'a Estimator,
    tables: Vec<About<'a>>,
    analysis: &'a Analysis,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct About<'a> {
    name: &'a str,
    n: usize,
    n_events: usize,
    n_columns: usize,
    content_hash: &'a str,
}

pub(super) fn run(arguments: &BiasingExperiment) -> Result<(), CliError> {
    use_threads(arguments.threads)?;
    let (settings, estimator) = (settings(arguments)?, estimator(arguments)?);
    let mut read: Vec<Read> = Vec::new();
    for path in &arguments.tables {
        let table = table(path, arguments, &estimator)?;
        if read.iter().any(|other| other.table.name() == table.table.name()) {
            let message = format!("\"{}\" is the name of two tables, expected different names", table.table.name());
            return Err(CliError::setting("TABLE", message, None));
        }
        read.push(table);
    }
    let results = compute(arguments.output.as_deref(), &settings, &estimator, &read)?;
    let analysis = analyse(&results).map_err(|error| of_experiment(&error))?;
    let about = |read: &'_ Read| (read.table.outcomes().n(), read.table.outcomes().n_events());
    let tables = read.iter().map(|read| About {
        name: read.table.name(),
        n: about(read).0,
        n_events: about(read).1,
        n_columns: read.table.covariates().ncols(),
        content_hash: &read.hash,
    });
    let found = Found { settings: &settings, estimator: &estimator, tables: tables.collect(), analysis: &analysis };
    let facts = facts(&settings, &estimator, &read);
    let shown = page(&analysis, facts)?;
    if let Some(folder) = &arguments.output {
        write_json(&folder.join("biasing.json"), &found)?;
        write_text(&folder.join("biasing.csv"), &rows(&results).csv()?)?;
        write_page(folder, "biasing", &shown)?;
    }
    if arguments.json {
        return print_json(&found);
    }
    shown.sections.iter().flat_map(|section| &section.verdict).for_each(print);
    for section in &shown.sections {
        section.sheets.iter().take(2).for_each(|sheet| print(format!("\n{}", plain(sheet))));
    }
    if let Some(folder) = &arguments.output {
        print(format!("report: {}", folder.join("biasing.html").display()));
    }
    Ok(())
}

fn settings(arguments: &BiasingExperiment) -> Result<BiasingSettings, CliError> {
    let default = BiasingSettings::default();
    let settings = BiasingSettings {
        methods: arguments.methods.clone(),
        shares: if arguments.shares.is_empty() { default.shares.clone() } else { arguments.shares.clone() },
        repeats: arguments.repeats,
        measures: if arguments.measures.is_empty() { Measure::PAPER.to_vec() } else { arguments.measures.clone() },
        seed: arguments.seed,
        ..default
    };
    settings.check().map_err(|error| of_experiment(&error))?;
    Ok(settings)
}

/// The estimator that is requested, with the settings of a forest where it is one.
fn estimator(arguments: &BiasingExperiment) -> Result<Estimator, CliError> {
    let name = arguments.estimator.as_str();
    let unknown = || {
        let known: Vec<&str> = Estimator::CATALOGUE.iter().map(|(name, _)| *name).collect();
        CliError::setting("--estimator", format!("\"{name}\", expected one of {}", known.join(", ")), None)
    };
    let found = Estimator::by_name(name).ok_or_else(unknown)?;
    let estimator = match found {
        Estimator::Forest(_) => {
            let preset = Preset::from(arguments.preset.unwrap_or_default()).settings();
            Estimator::Forest(ForestSettings { trees: arguments.trees.unwrap_or(preset.trees), ..preset })
        }
        other => {
            let given = [("--preset", arguments.preset.is_some()), ("--trees", arguments.trees.is_some())];
            if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
                let message = format!("it is about a forest, but --estimator is {name}");
                return Err(CliError::setting(option, message, None));
            }
            other
        }
    };
    estimator.check().map_err(|error| of_experiment(&error))?;
    Ok(estimator)
}

/// The covariates of a table, encoded as in `[data.tabular]` for the estimator.
fn table(path: &Path, arguments: &BiasingExperiment, estimator: &Estimator) -> Result<Read, CliError> {
    let config = TabularConfig {
        time: arguments.time.clone(),
        event: arguments.event.clone(),
        categorical: arguments.categorical.clone(),
        exclude: arguments.exclude.clone(),
        ..TabularConfig::new(path)
    };
    let adapter = Tabular::new(config.clone());
    let (cohort, exclusions) = build_cohort(adapter.read()?, &[])?;
    cohort.require_samples("after labelling", &exclusions)?;
    let all = cohort.all_rows();
    let features = adapter.features()?.aligned(&cohort)?;
    let fitted = TabularFeatures::fit(&features, &all, &config.feature_config(), &[]);
    let fitted = fitted.map_err(|error| without_covariates(path, error))?;
    let about = |line: &dyn std::fmt::Display| say(format!("note: {}: {line}", cohort.name));
    fitted.left_out.iter().for_each(|column| about(column));
    if exclusions.n() > 0 {
        about(&format!("{} left out for want of a time > 0 or an event", counted(exclusions.n(), "row")));
    }
    for warning in leak_warnings(&fitted, &features, &cohort, &all)? {
        say(format!("warning: {}: {warning}", cohort.name));
    }
    let matrix = fitted.encode(&features)?;
    let names = design::chosen(&fitted, estimator.columns(), &matrix, &all);
    let variable = |name: &String| fitted.columns.iter().position(|column| column.names().contains(name)).unwrap_or(0);
    let variables: Vec<usize> = names.iter().map(variable).collect();
    let values = design::columns(&matrix, &names, &all)?;
    let outcomes = cohort.outcomes(&all)?;
    let table = BiasingTable::new(&cohort.name, values, variables, outcomes)
        .map_err(|error| CliError::Check(format!("{}: {error}", path.display())))?;
    let mut hasher = blake3::Hasher::new();
    for name in &names {
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
    }
    for value in table.covariates() {
        hasher.update(&value.to_le_bytes());
    }
    for (time, event) in table.outcomes().time().iter().zip(table.outcomes().event()) {
        hasher.update(&time.to_le_bytes()).update(&[u8::from(*event)]);
    }
    let hash = hasher.finalize().to_hex().to_string();
    Ok(Read { table, hash })
}

/// A table without a covariate, in the words of this command.
fn without_covariates(path: &Path, error: DataError) -> CliError {
    match error {
        DataError::InvalidSetting { field: "features", .. } => {
            let message = format!(
                "{} has no covariate, expected a column beside time and event that differs between samples",
                path.display()
            );
            CliError::setting("TABLE", message, None)
        }
        other => other.into(),
    }
}

/// All cells of all tables, those of the folder read and the others computed, in the order of tables and cells.
fn compute(
    folder: Option<&Path>,
    settings: &BiasingSettings,
    estimator: &Estimator,
    read: &[Read],
) -> Result<Vec<CellResult>, CliError> {
    let known = folder.map(|folder| continued(folder, settings, estimator, read)).transpose()?.unwrap_or_default();
    let key = |table: &str, cell: &Cell| (table.to_owned(), cell.method, cell.share.to_bits(), cell.repeat);
    let known: BTreeMap<_, CellResult> =
        known.into_iter().map(|result| (key(&result.table, &result.cell), result)).collect();
    let all: Vec<(&BiasingTable, Cell)> =
        read.iter().flat_map(|read| cells(settings).into_iter().map(move |cell| (&read.table, cell))).collect();
    let open: Vec<&(&BiasingTable, Cell)> =
        all.iter().filter(|(table, cell)| !known.contains_key(&key(table.name(), cell))).collect();
    if open.len() < all.len() {
        say(format!("{} of {} are there already", counted(all.len() - open.len(), "cell"), all.len()));
    }
    let file = folder.map(|folder| open_to_append(&folder.join(CELLS))).transpose()?.map(Mutex::new);
    let (progress, done) = (Files::new("cells"), AtomicUsize::new(0));
    let of_cell = |(table, cell): &&(&BiasingTable, Cell)| {
        let seeded = |seed| estimator.clone().with_seed(seed);
        let result = run_cell(table, *cell, settings, seeded).map_err(|error| of_experiment(&error))?;
        if let Some(file) = &file {
            append(file, &result)?;
        }
        progress.update(done.fetch_add(1, Ordering::Relaxed) + 1, open.len());
        Ok((key(table.name(), cell), result))
    };
    let mut found: BTreeMap<_, CellResult> = open.par_iter().map(of_cell).collect::<Result<_, CliError>>()?;
    found.extend(known);
    Ok(all.iter().filter_map(|(table, cell)| found.remove(&key(table.name(), cell))).collect())
}

/// The results of the folder, after a check that they were computed with the same settings and tables. A line that was not written to
/// its end is removed.
fn continued(
    folder: &Path,
    settings: &BiasingSettings,
    estimator: &Estimator,
    read: &[Read],
) -> Result<Vec<CellResult>, CliError> {
    let path = folder.join(SETTINGS);
    let tables = read.iter().map(|read| (read.table.name().to_owned(), read.hash.clone()));
    let mut record = Record { settings: settings.clone(), estimator: estimator.clone(), tables: tables.collect() };
    if path.exists() {
        let before: Record = read_json(&path)?;
        let other = |difference: String| CliError::OtherRun {
            folder: folder.to_owned(),
            difference,
            help: "choose another --output".to_owned(),
        };
        if before.settings != record.settings {
            let words = differences("", &value_of(&before.settings)?, &value_of(&record.settings)?);
            return Err(other(words.join("; ")));
        }
        if before.estimator != record.estimator {
            let [there, here] = [before.estimator.name(), record.estimator.name()];
            if there != here {
                return Err(other(format!("estimator is {there} there and {here} here")));
            }
            let words = differences("estimator", &value_of(&before.estimator)?, &value_of(&record.estimator)?);
            return Err(other(words.join("; ")));
        }
        let changed =
            record.tables.iter().find(|(name, hash)| before.tables.get(*name).is_some_and(|old| old != *hash));
        if let Some((name, _)) = changed {
            return Err(other(format!("the table \"{name}\" has changed")));
        }
        // Tables may be added.
        record.tables.extend(before.tables);
    } else if folder.join(CELLS).exists() {
        let problem =
            format!("there is no {SETTINGS} beside it that says how its cells were computed; choose another --output");
        return Err(CliError::RunFolder { path: folder.join(CELLS), problem });
    }
    write_json(&path, &record)?;
    let path = folder.join(CELLS);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let damaged = |problem: String| CliError::RunFolder { path: path.clone(), problem };
    let text = std::fs::read_to_string(&path).map_err(|error| damaged(error.to_string()))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    if whole.len() < text.len() {
        write_text(&path, whole)?;
    }
    let lines = whole.lines().enumerate();
    let lines = lines
        .map(|(line, text)| serde_json::from_str(text).map_err(|error| damaged(format!("line {}: {error}", line + 1))));
    lines.collect()
}

fn value_of(settings: &impl Serialize) -> Result<Value, CliError> {
    serde_json::to_value(settings).map_err(|error| CliError::Bug(error.to_string()))
}

/// Keys with different values, each as `seed is 0 there and 3 here`.
fn differences(key: &str, there: &Value, here: &Value) -> Vec<String> {
    if there == here {
        return Vec::new();
    }
    if let (Value::Object(there), Value::Object(here)) = (there, here) {
        let names: BTreeSet<&String> = there.keys().chain(here.keys()).collect();
        let below = |name: &String| {
            let path = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            differences(&path, there.get(name).unwrap_or(&Value::Null), here.get(name).unwrap_or(&Value::Null))
        };
        return names.into_iter().flat_map(below).collect();
    }
    let shown = |value: &Value| if value.is_null() { "not set".to_owned() } else { value.to_string() };
    vec![format!("{key} is {} there and {} here", shown(there), shown(here))]
}

fn open_to_append(path: &Path) -> Result<(PathBuf, std::fs::File), CliError> {
    let file = std::fs::File::options().create(true).append(true).open(path);
    let file = file.map_err(|error| CliError::RunFolder { path: path.to_owned(), problem: error.to_string() })?;
    Ok((path.to_owned(), file))
}

/// Adds the line of a result, in one call to the system.
fn append(file: &Mutex<(PathBuf, std::fs::File)>, result: &CellResult) -> Result<(), CliError> {
    let text = serde_json::to_string(result).map_err(|error| CliError::Bug(error.to_string()))?;
    let mut file = file.lock().map_err(|error| CliError::Bug(error.to_string()))?;
    let written = file.1.write_all(format!("{text}\n").as_bytes());
    written.map_err(|error| CliError::RunFolder { path: file.0.clone(), problem: error.to_string() })
}

fn facts(settings: &BiasingSettings, estimator: &Estimator, read: &[Read]) -> Vec<(String, String)> {
    let sizes = read.iter().map(|read| {
        let outcomes = read.table.outcomes();
        format!("{} ({} of {})", read.table.name(), counted(outcomes.n_events(), "event"), outcomes.n())
    });
    let words = |values: Vec<String>| values.join(", ");
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let fitted = match estimator {
        Estimator::Forest(settings) => format!("forest of {}", counted(settings.trees, "tree")),
        other => other.name().to_owned(),
    };
    vec![
        fact("tables", words(sizes.collect())),
        fact("shares", words(settings.shares.iter().map(ToString::to_string).collect())),
        fact("repeats", settings.repeats.to_string()),
        fact("folds within a half", settings.folds.to_string()),
        fact("estimator", fitted),
        fact("seed", settings.seed.to_string()),
        fact("fairtte", env!("CARGO_PKG_VERSION").to_owned()),
    ]
}

/// The error with the option that is meant.
fn of_experiment(error: &ClassicalError) -> CliError {
    match error {
        ClassicalError::Setting { setting, value, expected } => {
            CliError::Setting { key: format!("--{setting}"), value: value.clone(), expected: (*expected).to_owned() }
        }
        other => CliError::Check(other.to_string()),
    }
}
