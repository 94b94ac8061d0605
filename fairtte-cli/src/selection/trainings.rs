//! Trainings and the weights they kept: a run, or the runs of all folds of a cross-validation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fairtte_metrics::EvaluationReport;

use super::candidates::Candidate;
use super::verdict::Network;
use crate::CliError;
use crate::progress::say;
use crate::run_file::{RunFile, Written};
use crate::run_folder::RunFolder;

/// A run, or runs that differ in the fold alone, in the order of the folds.
pub(super) struct Training {
    pub(super) folds: Vec<(PathBuf, RunFile)>,
}

/// Weights that every fold kept by the same rules.
pub(super) struct Kept<'a> {
    training: &'a Training,
    name: String,
    rules: BTreeSet<String>,
    epoch: usize,
    weights: String,
    reads_groups: bool,
    pub(super) paths: Vec<PathBuf>,
}

/// An epoch that a run kept.
struct Epoch {
    /// Counted from 1.
    number: usize,
    rules: BTreeSet<String>,
    weights: String,
    path: PathBuf,
}

/// Groups runs that differ in nothing but the fold. Trainings that lack a fold are left out with a note.
///
/// # Errors
/// [`CliError::RunFolder`] if no training has all folds.
pub(super) fn trainings(root: &Path, found: Vec<(PathBuf, RunFile)>) -> Result<Vec<Training>, CliError> {
    let fold = |run: &RunFile| run.split.k_fold.map(|of| of.fold);
    let folds: BTreeSet<_> = found.iter().map(|(_, run)| fold(run)).collect();
    if folds.len() == 1 {
        return Ok(found.into_iter().map(|run| Training { folds: vec![run] }).collect());
    }
    let n = found.iter().find_map(|(_, run)| run.split.k_fold).map_or(1, |of| of.folds);
    let mut by_settings: BTreeMap<String, Vec<(PathBuf, RunFile)>> = BTreeMap::new();
    for (path, run) in found {
        by_settings.entry(without_fold(&run)?).or_default().push((path, run));
    }
    let (mut complete, mut incomplete) = (Vec::new(), Vec::new());
    for mut folds in by_settings.into_values() {
        folds.sort_by_key(|(_, run)| fold(run));
        let has: Vec<usize> = folds.iter().filter_map(|(_, run)| fold(run)).collect();
        if has.iter().copied().eq(0..n) {
            complete.push(Training { folds });
        } else {
            let has = has.iter().map(|fold| (fold + 1).to_string()).collect::<Vec<_>>().join(", ");
            incomplete.push(format!("{} has folds {has} of {n}", folds[0].0.display()));
        }
    }
    complete.sort_by(|a, b| a.folds[0].0.cmp(&b.folds[0].0));
    if complete.is_empty() {
        let problem = format!("no training has all folds: {}", incomplete.join("; "));
        return Err(CliError::RunFolder { path: root.to_owned(), problem });
    }
    for line in incomplete {
        say(format!("left out: {line}"));
    }
    Ok(complete)
}

/// The settings of a run but for its fold, its title and its places.
fn without_fold(run: &RunFile) -> Result<String, CliError> {
    let mut same = RunFile { name: String::new(), output: PathBuf::new(), cache: None, threads: 0, ..run.clone() };
    if let Some(of) = &mut same.split.k_fold {
        of.fold = 0;
    }
    same.to_toml()
}

impl Training {
    /// Everything that the rules of the training kept in every fold, once.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if a file of a run is damaged.
    pub(super) fn kept(&self, root: &Path) -> Result<Vec<Kept<'_>>, CliError> {
        let mut reads_groups = false;
        let mut folds = Vec::new();
        for (path, run) in &self.folds {
            let (epochs, reads) = kept_epochs(path, run)?;
            reads_groups |= reads;
            folds.push(epochs);
        }
        let rules: BTreeSet<&String> = folds[0].iter().flat_map(|epoch| &epoch.rules).collect();
        let mut distinct: BTreeMap<Vec<usize>, BTreeSet<String>> = BTreeMap::new();
        for rule in rules {
            let place = |epochs: &Vec<Epoch>| epochs.iter().position(|epoch| epoch.rules.contains(rule));
            if let Some(places) = folds.iter().map(place).collect() {
                distinct.entry(places).or_default().insert(rule.clone());
            }
        }
        let of = |(places, rules): (Vec<usize>, BTreeSet<String>)| {
            let chosen: Vec<&Epoch> = folds.iter().zip(places).map(|(epochs, place)| &epochs[place]).collect();
            Kept {
                training: self,
                name: self.name(root),
                rules,
                epoch: chosen[0].number,
                weights: chosen.iter().map(|epoch| epoch.weights.as_str()).collect::<Vec<_>>().join("; "),
                reads_groups,
                paths: chosen.iter().map(|epoch| epoch.path.clone()).collect(),
            }
        };
        Ok(distinct.into_iter().map(of).collect())
    }

    /// The path below `root`; of several folds without the number of the fold.
    fn name(&self, root: &Path) -> String {
        let path = &self.folds[0].0;
        let below = path.strip_prefix(root).ok().filter(|below| !below.as_os_str().is_empty()).unwrap_or(path);
        let name = below.display().to_string();
        match self.folds.len() {
            1 => name,
            n => {
                format!("{}, {n} folds", name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches("-fold"))
            }
        }
    }
}

/// Every epoch that a rule of the training kept, once, and whether the training read groups. A strategy that averages weights
/// over epochs has the same predictions for all of them, which are one.
fn kept_epochs(path: &Path, run: &RunFile) -> Result<(Vec<Epoch>, bool), CliError> {
    let folder = RunFolder::new(path);
    let damaged = |problem: String| CliError::RunFolder { path: folder.selection(), problem };
    let kept = folder.kept()?;
    let files = folder.files_of(&kept);
    let mut rules: BTreeMap<usize, BTreeSet<String>> = BTreeMap::from([(kept.epoch, BTreeSet::from([kept.monitor]))]);
    let mut weights = BTreeMap::from([(kept.epoch, kept.weights)]);
    for (rule, chosen) in kept.rules {
        rules.entry(chosen.epoch).or_default().insert(rule);
        weights.entry(chosen.epoch).or_insert(chosen.weights);
    }
    let mut distinct: Vec<(Epoch, Vec<u8>)> = Vec::new();
    for (number, rules) in rules {
        let bytes = std::fs::read(&files[&number]).map_err(|error| damaged(error.to_string()))?;
        if let Some((known, _)) = distinct.iter_mut().find(|(_, same)| *same == bytes) {
            known.rules.extend(rules);
            continue;
        }
        // Runs of earlier versions do not record it.
        let weights = weights[&number].clone().unwrap_or_else(|| format!("epoch {number}"));
        distinct.push((Epoch { number, rules, weights, path: files[&number].clone() }, bytes));
    }
    let reads_groups = kept.reads_groups.unwrap_or_else(|| run.strategy_reads_groups());
    Ok((distinct.into_iter().map(|(epoch, _)| epoch).collect(), reads_groups))
}

/// The strategy of a training, or the estimator that was fitted in place of a network.
fn method_of(run: &Written) -> String {
    let strategy = run.choice("strategy");
    if strategy.is_empty() { run.choice("estimator") } else { strategy }
}

fn network_of(run: &Written) -> Option<Network> {
    if run.choice("head").is_empty() {
        return None;
    }
    let file = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let weights = run.word("pretrained.path");
    let start = if weights.is_empty() { "scratch".to_owned() } else { file(Path::new(&weights)) };
    Some(Network { head: run.choice("head"), backbone: run.word("model.backbone"), start })
}

impl Kept<'_> {
    /// The candidate, with its validation part.
    pub(super) fn into_candidate(self, validation: EvaluationReport) -> Candidate {
        let run = &self.training.folds[0].1;
        let written = run.written();
        let is_bound = self.reads_groups || !run.groups.train.is_empty();
        let attributes = || run.training_attributes().into_iter().map(str::to_owned).collect();
        Candidate {
            run: self.name,
            strategy: method_of(&written),
            network: network_of(&written),
            seed: run.training_seed(),
            trained_on: if is_bound { attributes() } else { Vec::new() },
            kept_for: attributes_named(&self.rules),
            kept_by: self.rules.into_iter().collect::<Vec<_>>().join(", "),
            epoch: self.epoch,
            weights: self.weights,
            paths: self.paths,
            validation,
        }
    }
}

/// The attributes after the `@` of rules, if every rule names one.
fn attributes_named(rules: &BTreeSet<String>) -> Option<BTreeSet<String>> {
    rules.iter().map(|rule| rule.split_once('@').map(|(_, attribute)| attribute.to_owned())).collect()
}
