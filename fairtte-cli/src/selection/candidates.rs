//! Finished runs and the weights they kept, with the evaluation of their validation part.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fairtte_data::predictions::Rising;
use fairtte_data::{Cohort, Part, Split, read_cohort, read_predictions};
use fairtte_metrics::evaluation::SampledMetrics;
use fairtte_metrics::{EvaluationReport, EvaluationSettings, Groups};
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};

use super::verdict::Network;
use crate::CliError;
use crate::run_file::{RunFile, Written};
use crate::run_folder::RunFolder;
use crate::scored::Scored;

/// Weights that a run kept, by their predictions.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Path of the run below the folder that was searched.
    pub(crate) run: String,
    /// Name of its strategy.
    pub(crate) strategy: String,
    /// The network that it trains.
    pub(crate) network: Network,
    /// Seed of the training.
    pub(crate) seed: u64,
    /// Attributes whose groups the strategy worked on, or for whose groups its epochs were kept; empty if it had and
    /// needed none.
    pub(crate) trained_on: Vec<String>,
    /// Rules of the training that chose these weights, joined by commas.
    pub(crate) kept_by: String,
    /// The attributes that these rules name, if all of them name one: the weights are candidates for no other.
    pub(crate) kept_for: Option<BTreeSet<String>>,
    /// Epoch of the weights, counted from 1.
    pub(crate) epoch: usize,
    /// Description of the weights: `epoch 6`, `averaged over epochs 9 to 12`, ..
    pub(crate) weights: String,
    /// Its predictions.
    path: PathBuf,
    /// Its validation part, without intervals.
    pub(crate) validation: EvaluationReport,
}

/// Runs of one cohort and split with all their candidates.
pub(crate) struct Candidates {
    pub(crate) all: Vec<Candidate>,
    cohort: Cohort,
    groups: Vec<Groups>,
    split: Split,
}

impl Candidates {
    /// Attributes of the runs.
    pub(crate) fn attributes(&self) -> Vec<&str> {
        self.groups.iter().map(Groups::attribute).collect()
    }

    /// Values and replicates of a candidate in the test part.
    pub(crate) fn test(
        &self,
        candidate: &Candidate,
        settings: &EvaluationSettings,
    ) -> Result<SampledMetrics, CliError> {
        self.scored(candidate, Part::Test)?.sample(settings)
    }

    /// The validation part of a candidate with intervals.
    pub(crate) fn validation(
        &self,
        candidate: &Candidate,
        settings: &EvaluationSettings,
    ) -> Result<EvaluationReport, CliError> {
        self.scored(candidate, Part::Validation)?.evaluate(&of_choice(settings))
    }

    /// The evaluation of the validation part if every sample has the Kaplan-Meier curve of the training part, at the
    /// times of a candidate.
    pub(crate) fn without_skill(
        &self,
        candidate: &Candidate,
        settings: &EvaluationSettings,
    ) -> Result<EvaluationReport, CliError> {
        let train = self.cohort.outcomes(self.split.rows(Part::Train))?;
        let quick = of_choice(settings).values_only();
        self.scored(candidate, Part::Validation)?.with_one_curve(&train)?.evaluate(&quick)
    }

    fn scored(&self, candidate: &Candidate, part: Part) -> Result<Scored, CliError> {
        let predictions = read_predictions(&candidate.path, Rising::Refuse)?;
        Scored::new(predictions, &self.cohort, &self.groups, Some(&self.split), part)
    }
}

/// The evaluation that a choice needs: its metrics only, and all groups, also those of few events, because the gap of every
/// candidate must be that of the same groups; that they are few is said with the choice. No rule of choice reads the gap by
/// chance.
fn of_choice(settings: &EvaluationSettings) -> EvaluationSettings {
    let metrics = ["c-td", "c-td-half", "auc-td", "ibs"].map(str::to_owned).to_vec();
    EvaluationSettings { metrics, min_events: 0, ..settings.metrics_only() }
}

/// Finished runs on the same samples with the same split.
pub(crate) struct Runs {
    root: PathBuf,
    found: Vec<(PathBuf, RunFile)>,
    cohort: Cohort,
    groups: Vec<Groups>,
    split: Split,
}

impl Runs {
    /// All finished runs in `folder` and below.
    ///
    /// # Errors
    /// As [`Runs::of`].
    pub(crate) fn below(folder: &Path) -> Result<Self, CliError> {
        let mut found = Vec::new();
        finished_runs(folder, &mut found)?;
        found.sort();
        Self::of(folder, &found)
    }

    /// The finished runs among `folders`, which are named by their path below `root`.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if none is finished, or two differ in samples, outcomes, groups, split, distribution shift or
    /// settings of the evaluation; the errors of reading.
    pub(crate) fn of(root: &Path, folders: &[PathBuf]) -> Result<Self, CliError> {
        let done = folders.iter().filter(|folder| RunFolder::new(folder).done().exists());
        let read = |folder: &PathBuf| Ok((folder.clone(), RunFile::read(&[RunFolder::new(folder).run_file()], &[])?));
        let found = done.map(read).collect::<Result<Vec<_>, CliError>>()?;
        let Some((first, of_first)) = found.first() else {
            let problem = "there is no finished run in it (a folder with run.toml and done)".to_owned();
            return Err(CliError::RunFolder { path: root.to_owned(), problem });
        };
        let (cohort, groups, split) = read_parts(first)?;
        for (other, run) in &found[1..] {
            require_same(first, (&cohort, &groups, &split), other)?;
            let differs = |what: &str| {
                let problem =
                    format!("{what} differs from that of {}; runs of one comparison share it", first.display());
                Err(CliError::RunFolder { path: other.clone(), problem })
            };
            if run.shift != of_first.shift {
                return differs("[shift]");
            }
            if run.evaluation != of_first.evaluation {
                return differs("[evaluation]");
            }
        }
        Ok(Self { root: root.to_owned(), found, cohort, groups, split })
    }

    /// How the runs themselves were evaluated.
    pub(crate) fn evaluation(&self) -> &EvaluationSettings {
        &self.found[0].1.evaluation
    }

    /// Evaluates the validation part of everything that the runs kept.
    ///
    /// # Errors
    /// The errors of reading and evaluating.
    pub(crate) fn candidates(self, settings: &EvaluationSettings) -> Result<Candidates, CliError> {
        let Self { root, found, cohort, groups, split } = self;
        let quick = of_choice(settings).values_only();
        let mut all = Vec::new();
        for (path, run) in &found {
            let kept = kept_weights(&root, path, run)?;
            let scored = kept.par_iter().map(|(about, path)| {
                let predictions = read_predictions(path, Rising::Refuse)?;
                let scored = Scored::new(predictions, &cohort, &groups, Some(&split), Part::Validation)?;
                let About { run, strategy, network, seed, trained_on, kept_by, kept_for, epoch, weights } =
                    about.clone();
                let (path, validation) = (path.clone(), scored.evaluate(&quick)?);
                Ok(Candidate {
                    run,
                    strategy,
                    network,
                    seed,
                    trained_on,
                    kept_by,
                    kept_for,
                    epoch,
                    weights,
                    path,
                    validation,
                })
            });
            all.extend(scored.collect::<Result<Vec<_>, CliError>>()?);
        }
        Ok(Candidates { all, cohort, groups, split })
    }
}

/// Finds run folders with a `done` file at any depth in `folder`.
fn finished_runs(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), CliError> {
    let run = RunFolder::new(folder);
    if run.run_file().exists() && run.done().exists() {
        found.push(folder.to_owned());
        return Ok(()); // a run folder contains no others
    }
    let failed = |error: std::io::Error| CliError::RunFolder { path: folder.to_owned(), problem: error.to_string() };
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            finished_runs(&path, found)?;
        }
    }
    Ok(())
}

fn read_parts(run: &Path) -> Result<(Cohort, Vec<Groups>, Split), CliError> {
    let folder = RunFolder::new(run);
    let (cohort, groups) = read_cohort(&folder.cohort())?;
    let split = Split::read_csv(&folder.split(), &cohort)?;
    Ok((cohort, groups, split))
}

/// Requires the same samples, outcomes, groups and split, without which models cannot be compared.
fn require_same(
    first: &Path,
    (cohort, groups, split): (&Cohort, &[Groups], &Split),
    other: &Path,
) -> Result<(), CliError> {
    let (its_cohort, its_groups, its_split) = read_parts(other)?;
    let differs = |what: &str| {
        let problem = format!("{what} differ from those of {}; runs of one comparison share them", first.display());
        Err(CliError::RunFolder { path: other.to_owned(), problem })
    };
    let outcome = |cohort: &Cohort| -> Vec<(String, u64, bool)> {
        let sample = |s: &fairtte_data::Sample| (s.sample_id.to_string(), s.time.to_bits(), s.event);
        cohort.samples.iter().map(sample).collect()
    };
    if outcome(cohort) != outcome(&its_cohort) {
        return differs("samples or outcomes");
    }
    if Part::ALL.into_iter().any(|part| split.rows(part) != its_split.rows(part)) {
        return differs("the parts of the split");
    }
    let same = |a: &Groups, b: &Groups| a.attribute() == b.attribute() && a.membership() == b.membership();
    if groups.len() != its_groups.len() || groups.iter().zip(&its_groups).any(|(a, b)| !same(a, b)) {
        return differs("the groups");
    }
    Ok(())
}

#[derive(Clone)]
struct About {
    run: String,
    strategy: String,
    network: Network,
    seed: u64,
    trained_on: Vec<String>,
    kept_by: String,
    kept_for: Option<BTreeSet<String>>,
    epoch: usize,
    weights: String,
}

fn network_of(run: &Written) -> Network {
    let file = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let weights = run.word("pretrained.path");
    let start = if weights.is_empty() { "scratch".to_owned() } else { file(Path::new(&weights)) };
    Network { head: run.choice("head"), backbone: run.word("model.backbone"), start }
}

/// Every epoch that a rule of the training kept, once, with its predictions. A strategy that averages weights over
/// epochs has the same predictions for all of them, which are one candidate.
fn kept_weights(root: &Path, path: &Path, run: &RunFile) -> Result<Vec<(About, PathBuf)>, CliError> {
    let folder = RunFolder::new(path);
    let damaged = |problem: String| CliError::RunFolder { path: folder.selection(), problem };
    let kept = folder.kept()?;
    let mut rules: BTreeMap<usize, BTreeSet<String>> = BTreeMap::from([(kept.epoch, BTreeSet::from([kept.monitor]))]);
    let mut files = BTreeMap::from([(kept.epoch, folder.predictions())]);
    let mut weights = BTreeMap::from([(kept.epoch, kept.weights)]);
    for (rule, chosen) in kept.rules {
        rules.entry(chosen.epoch).or_default().insert(rule);
        files.entry(chosen.epoch).or_insert_with(|| path.join(&chosen.file));
        weights.entry(chosen.epoch).or_insert(chosen.weights);
    }
    let mut distinct: Vec<(usize, BTreeSet<String>, Vec<u8>)> = Vec::new();
    for (epoch, rules) in rules {
        let bytes = std::fs::read(&files[&epoch]).map_err(|error| damaged(error.to_string()))?;
        match distinct.iter_mut().find(|(_, _, same)| *same == bytes) {
            Some((_, by, _)) => by.extend(rules),
            None => distinct.push((epoch, rules, bytes)),
        }
    }
    let written = run.written();
    let (strategy, network) = (written.choice("strategy"), network_of(&written));
    let is_bound = kept.reads_groups.unwrap_or_else(|| run.strategy_reads_groups()) || !run.groups.train.is_empty();
    let attributes = || run.training_attributes().into_iter().map(str::to_owned).collect();
    let trained_on: Vec<String> = if is_bound { attributes() } else { Vec::new() };
    let below = path.strip_prefix(root).ok().filter(|below| !below.as_os_str().is_empty()).unwrap_or(path);
    let about = |(epoch, rules, _): (usize, BTreeSet<String>, Vec<u8>)| {
        let about = About {
            run: below.display().to_string(),
            strategy: strategy.clone(),
            network: network.clone(),
            seed: run.training_seed(),
            trained_on: trained_on.clone(),
            kept_for: attributes_named(&rules),
            kept_by: rules.into_iter().collect::<Vec<_>>().join(", "),
            epoch,
            // Runs of earlier versions do not record it.
            weights: weights[&epoch].clone().unwrap_or_else(|| format!("epoch {epoch}")),
        };
        (about, files[&epoch].clone())
    };
    Ok(distinct.into_iter().map(about).collect())
}

/// The attributes after the `@` of rules, if every rule names one.
fn attributes_named(rules: &BTreeSet<String>) -> Option<BTreeSet<String>> {
    rules.iter().map(|rule| rule.split_once('@').map(|(_, attribute)| attribute.to_owned())).collect()
}

impl Candidate {
    /// Whether the weights take part in the choice for an attribute: the training worked on its groups or on none, and a
    /// rule for it, or for all, kept them.
    pub(super) fn serves(&self, attribute: &str) -> bool {
        let is_trained = self.trained_on.is_empty() || self.trained_on.iter().any(|name| name == attribute);
        is_trained && self.kept_for.as_ref().is_none_or(|names| names.contains(attribute))
    }
}

#[cfg(test)]
impl Candidate {
    /// A candidate without a file, by the values that a choice uses: C^td and its gap between the levels of `sex`.
    pub(super) fn made_up(strategy: &str, seed: u64, c_td: f64, gap: f64) -> Self {
        let mut validation = crate::report::test_reports::report();
        let metric = &mut validation.metrics[0];
        metric.overall.value = Some(c_td);
        metric.attributes[0].gap.value = Some(gap);
        let network = |head: &str| Network { head: head.to_owned(), backbone: "mlp".to_owned(), start: String::new() };
        Self {
            run: format!("{strategy}-seed{seed}"),
            strategy: strategy.to_owned(),
            network: network("pmf"),
            seed,
            trained_on: Vec::new(),
            kept_by: "nll".to_owned(),
            kept_for: None,
            epoch: 1,
            weights: "epoch 1".to_owned(),
            path: PathBuf::new(),
            validation,
        }
    }
}
