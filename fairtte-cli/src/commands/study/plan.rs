//! `fairtte study plan`: the trials of a study, and what they need.

use std::collections::BTreeSet;
use std::time::SystemTime;

use fairtte_fairness::StrategyConfig;
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};
use serde::Serialize;

use super::run::open;
use super::{read, timing};
use crate::CliError;
use crate::args::StudyPlan;
use crate::commands::{print, print_json};
use crate::plural::counted;
use crate::progress::say;
use crate::study::{Block, Plan, Planned, Seconds, TrialState};

pub(super) fn run(arguments: &StudyPlan) -> Result<(), CliError> {
    let mut plan = read(&arguments.study)?;
    let planned = resolve(&plan)?;
    if !arguments.dry_run {
        plan.write(&planned)?;
    }
    let mut needs = Needs::of(&plan, &planned)?;
    let places = || Ok::<_, CliError>(open(&plan, &[])?.into_iter().map(|(place, _)| place).collect::<Vec<usize>>());
    if arguments.estimate {
        needs.hours_at_most = Some(super::estimate::hours(&plan, &planned, &places()?)?);
        needs.hours_are_from = Some("timed steps".to_owned());
    }
    if !arguments.bench.is_empty() {
        let (hours, source) = super::estimate::hours_of_bench(&arguments.bench, &plan, &planned, &places()?)?;
        needs.hours_at_most = Some(hours);
        needs.hours_are_from = Some(source);
    }
    if arguments.json {
        return print_json(&needs);
    }
    print(needs.table());
    if arguments.dry_run {
        say("dry run: nothing is written");
    } else {
        say(format!("written: {}", plan.folder().manifest().display()));
    }
    Ok(())
}

/// Resolves every place of the manifest; the first trial of every cell is checked as a run file is.
pub(in crate::commands) fn resolve(plan: &Plan) -> Result<Vec<Planned>, CliError> {
    let n_cells = plan.cells().len();
    let one = |index: usize| {
        let planned = plan.resolve(index)?;
        if index < n_cells {
            planned.run.check()?;
        }
        Ok(planned)
    };
    let planned = (0..plan.n()).into_par_iter().map(one).collect::<Result<Vec<_>, CliError>>()?;
    // A study that an earlier version planned may have them, and is continued and collected as it is.
    if !plan.folder().plan().exists() {
        check_search(plan, &planned)?;
        check_rungs(plan, &planned)?;
    }
    Ok(planned)
}

/// Refuses a searched setting that no cell has: all its trials would have the default.
fn check_search(plan: &Plan, planned: &[Planned]) -> Result<(), CliError> {
    let study = plan.study();
    let is_drawn = |key: &String, strategy: Option<&String>| {
        let of = |index: usize| strategy.is_none_or(|name| plan.cells()[plan.place(index).0].strategy == *name);
        planned
            .iter()
            .enumerate()
            .any(|(index, planned)| of(index) && planned.draws.iter().any(|(drawn, _)| drawn == key))
    };
    let wrong = |table: &str, key: &str| {
        let message =
            "no training of the study has this setting, expected one of its run files, strategies or estimators";
        Err(CliError::setting(&format!("{table}.\"{key}\""), message.to_owned(), None))
    };
    // Of all trainings some may be left out: the settings of a strategy that is in no cell, or of a backbone.
    let is_in_a_cell = |name: &str| plan.cells().iter().any(|cell| cell.strategy == name);
    let may_be_elsewhere = |key: &str| match key.split_once('.').map(|(table, rest)| (table, rest.split('.').next())) {
        Some(("strategy", Some(name))) => {
            !is_in_a_cell(name) && StrategyConfig::catalogue().iter().any(|(known, _)| *known == name)
        }
        Some(("estimator", Some(name))) => !is_in_a_cell(name),
        _ => !study.backbones.is_empty(),
    };
    if let Some(key) = study.search.keys().find(|key| !is_drawn(key, None) && !may_be_elsewhere(key)) {
        return wrong("search", key);
    }
    for (strategy, ranges) in &study.strategies.search {
        // A strategy may be in no cell: blocks and excluded cells decide.
        if let Some(key) = ranges.keys().find(|key| is_in_a_cell(strategy) && !is_drawn(key, Some(strategy))) {
            return wrong(&format!("strategies.search.{strategy}"), key);
        }
    }
    Ok(())
}

/// Refuses a rung that is no earlier than the end of a training: nothing would be saved there, and finished trials would be left out.
fn check_rungs(plan: &Plan, planned: &[Planned]) -> Result<(), CliError> {
    let Some(last) = plan.study().halving.as_ref().and_then(|halving| halving.rungs.last()) else { return Ok(()) };
    let trained = planned.iter().filter(|planned| planned.run.estimator.is_none());
    match trained.map(|planned| planned.run.training.epochs).min() {
        Some(epochs) if *last >= epochs => {
            let message = format!("the last is {last}, expected less than the {epochs} epochs that a training has");
            Err(CliError::setting("halving.rungs", message, None))
        }
        _ => Ok(()),
    }
}

/// What a study needs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Needs {
    /// What a run of the study does.
    would: &'static str,
    study: String,
    folder: std::path::PathBuf,
    cells: usize,
    trials_per_cell: usize,
    /// Rows of the manifest.
    rows: usize,
    /// Different trainings.
    trainings: usize,
    done: usize,
    blocks: Vec<BlockNeeds>,
    /// Epochs of every rung of successive halving, and the trials of a cell that continue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rungs: Vec<(usize, usize)>,
    /// Hours on one machine with one trial at a time for what is missing, from finished trials of the same data set and head.
    #[serde(skip_serializing_if = "Option::is_none")]
    hours: Option<f64>,
    /// The same from timed steps or measured rates, if no training stops early.
    #[serde(skip_serializing_if = "Option::is_none")]
    hours_at_most: Option<f64>,
    /// What these hours were computed from.
    #[serde(skip_serializing_if = "Option::is_none")]
    hours_are_from: Option<String>,
    /// Gigabytes of all trials when they are finished, from those that are.
    #[serde(skip_serializing_if = "Option::is_none")]
    gigabytes: Option<f64>,
}

/// What a block needs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct BlockNeeds {
    block: &'static str,
    cells: usize,
    rows: usize,
    /// Different trainings of the block.
    trainings: usize,
    /// Those that no earlier block has.
    new: usize,
}

impl Needs {
    fn of(plan: &Plan, planned: &[Planned]) -> Result<Self, CliError> {
        let mut seen = BTreeSet::new();
        let mut blocks = Vec::new();
        let is_there = |block: &Block| plan.cells().iter().any(|cell| cell.block == *block);
        for block in Block::ALL.into_iter().filter(is_there) {
            let is_of = |index: &usize| plan.cells()[plan.place(*index).0].block == block;
            let of_block: Vec<&Planned> = (0..plan.n()).filter(is_of).map(|index| &planned[index]).collect();
            let trainings: BTreeSet<&str> = of_block.iter().map(|planned| planned.id.as_str()).collect();
            let new = trainings.iter().filter(|id| !seen.contains(*id)).count();
            blocks.push(BlockNeeds {
                block: block.name(),
                cells: plan.cells().iter().filter(|cell| cell.block == block).count(),
                rows: of_block.len(),
                trainings: trainings.len(),
                new,
            });
            seen.extend(trainings);
        }
        let finished = Finished::of(plan, planned)?;
        let halving = plan.study().halving.as_ref();
        let rungs =
            halving.map(|halving| halving.rungs.iter().copied().zip(halving.numbers(plan.study().trials)).collect());
        let rungs = rungs.unwrap_or_default();
        Ok(Self {
            would: "train",
            study: plan.study().name.clone(),
            folder: plan.folder().path().to_owned(),
            cells: plan.cells().len(),
            trials_per_cell: plan.study().trials,
            rows: plan.n(),
            trainings: seen.len(),
            done: finished.n,
            blocks,
            rungs,
            hours: finished.hours,
            hours_at_most: None,
            hours_are_from: None,
            gigabytes: finished.gigabytes,
        })
    }

    fn table(&self) -> String {
        let line = |block: &str, cells: &str, rows: &str, trainings: &str, new: &str| {
            format!("  {block:<10} {cells:>6} {rows:>8} {trainings:>10} {new:>8}")
        };
        let mut lines = vec![self.study.clone(), String::new(), line("block", "cells", "rows", "trainings", "new")];
        lines.extend(self.blocks.iter().map(|of| {
            let [cells, rows, trainings, new] = [of.cells, of.rows, of.trainings, of.new].map(|n| n.to_string());
            line(of.block, &cells, &rows, &trainings, &new)
        }));
        let trials = counted(self.trials_per_cell, "trial");
        let shared = match self.rows - self.trainings {
            0 => ".".to_owned(),
            shared => format!("; {shared} of {} rows share the training of another row.", self.rows),
        };
        let done = if self.done > 0 { format!(" {} are done.", self.done) } else { String::new() };
        let (cells, trainings) = (counted(self.cells, "cell"), counted(self.trainings, "training"));
        lines.extend([String::new(), format!("{cells} of {trials} each are {trainings}{shared}{done}")]);
        if !self.rungs.is_empty() {
            let rungs = self.rungs.iter().map(|(epochs, n)| format!("{n} continue after epoch {epochs}"));
            let rungs = rungs.collect::<Vec<_>>().join(", ");
            lines.push(format!("Successive halving: of the {trials} of a cell, {rungs}. Hours are those without it."));
        }
        if let (Some(hours), Some(source)) = (self.hours_at_most, &self.hours_are_from) {
            lines.push(format!(
                "From {source}: at most {hours:.2} hours for the rest, one at a time; early stopping saves some."
            ));
        }
        lines.push(match (self.hours, self.gigabytes) {
            (Some(hours), Some(gigabytes)) => format!(
                "From the finished trials: {hours:.2} hours for the rest, one at a time; {gigabytes:.2} GB for all."
            ),
            _ if self.hours_at_most.is_some() => "Disk is estimated once a trial has finished.".to_owned(),
            _ => "Time and disk are estimated once a trial has finished; --estimate times a few steps instead, and \
                  --bench FILE takes measured rates."
                .to_owned(),
        });
        lines.join("\n")
    }
}

/// What finished trials say about the others.
struct Finished {
    n: usize,
    hours: Option<f64>,
    gigabytes: Option<f64>,
}

impl Finished {
    fn of(plan: &Plan, planned: &[Planned]) -> Result<Self, CliError> {
        let stale = timing(plan).stale;
        let (mut seconds, mut missing) = (Seconds::default(), Vec::new());
        let (mut bytes, mut n, mut seen) = (0, 0, BTreeSet::new());
        for (index, Planned { id, .. }) in planned.iter().enumerate().filter(|(_, planned)| seen.insert(&planned.id)) {
            let folder = plan.folder().trial(id);
            match TrialState::of(&folder, SystemTime::now(), stale)? {
                TrialState::Done => {
                    n += 1;
                    bytes += size(folder.path());
                    seconds.add(plan, index, &folder)?;
                }
                TrialState::Refused(_) => {}
                _ => missing.push(index),
            }
        }
        let left: Option<f64> = missing.into_iter().map(|index| seconds.expected(plan, index)).sum();
        let n_all = seen.len() as f64;
        Ok(Self {
            n,
            hours: left.filter(|_| n > 0).map(|seconds| seconds / 3600.0),
            gigabytes: (n > 0).then(|| bytes as f64 / n as f64 * n_all / 1e9),
        })
    }
}

/// Bytes of the files of a folder; a file that vanishes meanwhile counts nothing.
fn size(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.metadata().map_or(0, |about| if about.is_dir() { size(&entry.path()) } else { about.len() }))
        .sum()
}
