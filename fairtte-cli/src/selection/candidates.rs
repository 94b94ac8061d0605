//! Finished runs and the weights they kept, with the evaluation of their validation part.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fairtte_data::cohort::Classes;
use fairtte_data::{Cohort, Part, Split, read_cohort};
use fairtte_metrics::evaluation::{HorizonReport, SampledMetrics};
use fairtte_metrics::{EvaluationReport, EvaluationSettings, Groups};
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use super::choose::{METRICS_OF_CLASSES, metrics};
use super::scored_part::{OfClass, ScoredPart};
use super::trainings::{Training, trainings};
use super::verdict::Network;
use crate::CliError;
use crate::pooled::{FoldRows, fold_of_rows, pooled};
use crate::run_file::RunFile;
use crate::run_folder::RunFolder;
use crate::scored::{Scored, chosen_metrics, read_curves};

/// Weights that a run kept, by their predictions.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Path of the run below the folder that was searched; of several folds what their paths share.
    pub(crate) run: String,
    /// Name of its strategy.
    pub(crate) strategy: String,
    /// The network that it trains; `None` of an estimator on columns, which is compared with every network.
    pub(crate) network: Option<Network>,
    /// Seed of the training.
    pub(crate) seed: u64,
    /// Attributes whose groups the strategy worked on, or for whose groups its epochs were kept; empty if it had and
    /// needed none.
    pub(crate) trained_on: Vec<String>,
    /// Rules of the training that chose these weights, joined by commas.
    pub(crate) kept_by: String,
    /// The attributes that these rules name, if all of them name one: the weights are candidates for no other.
    pub(crate) kept_for: Option<BTreeSet<String>>,
    /// Epoch of the weights, counted from 1; of the first of several folds.
    pub(crate) epoch: usize,
    /// Description of the weights: `epoch 6`, `averaged over epochs 9 to 12`, ..; of several folds in their order.
    pub(crate) weights: String,
    /// Its predictions, one file per fold.
    pub(super) paths: Vec<PathBuf>,
    /// Its validation part, without intervals.
    pub(crate) validation: EvaluationReport,
}

/// Runs of one cohort and split, or of the folds of one, with all their candidates.
pub(crate) struct Candidates {
    pub(crate) all: Vec<Candidate>,
    common: Common,
}

/// What all runs share.
struct Common {
    cohort: Cohort,
    groups: Vec<Groups>,
    /// One per fold; one without folds.
    splits: Vec<Split>,
    /// Where a class is predicted.
    classes: Option<Classes>,
}

impl Candidates {
    /// Attributes of the runs.
    pub(crate) fn attributes(&self) -> Vec<&str> {
        self.common.groups.iter().map(Groups::attribute).collect()
    }

    /// Metrics for which a choice is made: stable name and short name.
    pub(super) fn metrics(&self) -> &'static [(&'static str, &'static str)] {
        if self.common.classes.is_some() { &METRICS_OF_CLASSES } else { metrics(self.common.cohort.cause) }
    }

    /// Folds of the cross-validation; 1 without.
    pub(crate) fn n_folds(&self) -> usize {
        self.common.splits.len()
    }

    /// Values and replicates of a candidate in the test part, or in the test parts of all folds together.
    pub(crate) fn test(
        &self,
        candidate: &Candidate,
        settings: &EvaluationSettings,
    ) -> Result<SampledMetrics, CliError> {
        self.common.scored(&candidate.paths, Part::Test, settings)?.sample(settings)
    }

    /// The AUC of a class that is made from times beside the one with weights for censoring, in the same test part.
    pub(super) fn test_at_horizon(
        &self,
        candidate: &Candidate,
        settings: &EvaluationSettings,
    ) -> Result<Option<HorizonReport>, CliError> {
        if self.common.classes.as_ref().is_none_or(|classes| classes.horizon.is_none()) {
            return Ok(None);
        }
        self.common.scored(&candidate.paths, Part::Test, settings)?.at_horizon(settings)
    }

    /// The validation part of a candidate with intervals.
    pub(crate) fn validation(
        &self,
        candidate: &Candidate,
        settings: &EvaluationSettings,
    ) -> Result<EvaluationReport, CliError> {
        let settings = self.common.of_choice(settings);
        self.common.scored(&candidate.paths, Part::Validation, &settings)?.evaluate(&settings)
    }

    /// The evaluation of the validation part if every sample has the Kaplan-Meier curve of the training part, at the
    /// times of a candidate. With folds the curve is that of all samples that are evaluated.
    pub(crate) fn without_skill(
        &self,
        candidate: &Candidate,
        settings: &EvaluationSettings,
    ) -> Result<EvaluationReport, CliError> {
        let quick = self.common.of_choice(settings).values_only();
        let scored = self.common.curves(&candidate.paths, Part::Validation, &quick)?;
        let rows = match &self.common.splits[..] {
            [split] => split.rows(Part::Train),
            _ => &scored.rows,
        };
        let train = rows.to_vec();
        scored.with_one_curve(&train)?.evaluate(&quick)
    }
}

impl Common {
    /// The evaluation that a choice needs: its metrics only, and all groups, also those of few events, because the gap of every
    /// candidate must be that of the same groups; the choice states that they are few. No rule of choice reads the gap by
    /// chance.
    fn of_choice(&self, settings: &EvaluationSettings) -> EvaluationSettings {
        let metrics = chosen_metrics(self.cohort.cause);
        EvaluationSettings { metrics, min_events: 0, ..settings.metrics_only() }
    }

    /// What was predicted of a part.
    fn scored(&self, paths: &[PathBuf], part: Part, settings: &EvaluationSettings) -> Result<ScoredPart, CliError> {
        match &self.classes {
            None => Ok(ScoredPart::Curves(Box::new(self.curves(paths, part, settings)?))),
            Some(classes) => {
                let data = (&self.cohort, &self.groups[..], classes);
                Ok(ScoredPart::Class(Box::new(OfClass::read(data, &self.splits, paths, part)?)))
            }
        }
    }

    /// The curves of a part. With folds every sample has the curve of the fold in whose part it is, and the censoring curve is
    /// that of these samples.
    fn curves(&self, paths: &[PathBuf], part: Part, settings: &EvaluationSettings) -> Result<Scored, CliError> {
        let read = |path: &PathBuf| read_curves(path, &self.cohort);
        if let ([path], [split]) = (paths, &self.splits[..]) {
            return Scored::new(read(path)?, &self.cohort, &self.groups, Some(split), part);
        }
        let tables = paths.iter().map(read).collect::<Result<Vec<_>, CliError>>()?;
        let mut folds = Vec::new();
        for (split, predictions) in self.splits.iter().zip(&tables) {
            folds.push(FoldRows { rows: split.rows(part), predictions, reading: settings.reading });
        }
        let (rows, table) = pooled(&self.cohort, &folds, settings, &[])?;
        let fitted_on = rows.clone();
        Scored::of_rows(table, &self.cohort, &self.groups, rows, &fitted_on)
    }
}

/// Finished trainings on the same samples with the same split, or with the same folds.
pub(crate) struct Runs {
    root: PathBuf,
    trainings: Vec<Training>,
    common: Common,
}

impl Runs {
    /// All finished runs in `folder` and below.
    ///
    /// # Errors
    /// As [`Runs::of`].
    pub(crate) fn below(folder: &Path) -> Result<Self, CliError> {
        RunFolder::new(folder).require_folder()?;
        let mut found = Vec::new();
        finished_runs(folder, &mut found)?;
        found.sort();
        Self::of(folder, &found)
    }

    /// The finished runs among `folders`, which are named by their path below `root`. Runs that differ in nothing but the fold
    /// are one training.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if none is finished, two differ in samples, outcomes, groups, split, distribution shift or
    /// settings of the evaluation, no training has all folds, or the validation parts of folds overlap; the errors of reading.
    pub(crate) fn of(root: &Path, folders: &[PathBuf]) -> Result<Self, CliError> {
        let done = folders.iter().filter(|folder| RunFolder::new(folder).done().exists());
        let read = |folder: &PathBuf| Ok((folder.clone(), RunFile::read(&[RunFolder::new(folder).run_file()], &[])?));
        let found = done.map(read).collect::<Result<Vec<_>, CliError>>()?;
        if found.is_empty() {
            let problem = "there is no finished run in it (a folder with run.toml and done)".to_owned();
            return Err(CliError::RunFolder { path: root.to_owned(), problem });
        }
        let trainings = trainings(root, found)?;
        let first = &trainings[0];
        let parts = first.folds.iter().map(|(path, _)| read_parts(path)).collect::<Result<Vec<_>, _>>()?;
        let of_first = &first.folds[0];
        for (fold, (other, run)) in trainings.iter().flat_map(|training| training.folds.iter().enumerate()) {
            let (cohort, groups, _) = &parts[0];
            require_same(&of_first.0, (cohort, groups), other, (&first.folds[fold].0, &parts[fold].2))?;
            let differs = |what: &str| {
                let first = of_first.0.display();
                let problem = format!("{what} differs from that of {first}; runs of one comparison share it");
                Err(CliError::RunFolder { path: other.clone(), problem })
            };
            if run.shift != of_first.1.shift {
                return differs("[shift]");
            }
            if run.task != of_first.1.task {
                return differs("[task]");
            }
            if run.evaluation != of_first.1.evaluation {
                return differs("[evaluation]");
            }
        }
        let splits: Vec<Split> = parts.iter().map(|(_, _, split)| split.clone()).collect();
        let (cohort, groups, _) = parts.into_iter().next().ok_or_else(|| CliError::Bug("no run".to_owned()))?;
        if let Err((row, [a, b])) = fold_of_rows(splits.iter().map(|split| split.rows(Part::Validation))) {
            let (sample, n) = (&cohort.samples[row].sample_id, splits.len());
            let [a, b] = [a, b].map(|fold| first.folds[fold].0.display());
            let message = format!(
                "\"{sample}\" is in the validation parts of {a} and {b}, expected at most one of {n} folds: the choice pools them"
            );
            let help = "write [split] validation = 1 / folds, test = 1 / folds and train = the rest";
            return Err(CliError::setting("split.validation", message, Some(help)));
        }
        of_first.1.require_no_masks("the choice among runs")?;
        let classes = of_first.1.classes(&cohort)?;
        Ok(Self { root: root.to_owned(), trainings, common: Common { cohort, groups, splits, classes } })
    }

    /// How the runs themselves were evaluated.
    pub(crate) fn evaluation(&self) -> &EvaluationSettings {
        &self.trainings[0].folds[0].1.evaluation
    }

    /// Evaluates the validation part of everything that the runs kept.
    ///
    /// # Errors
    /// The errors of reading and evaluating.
    pub(crate) fn candidates(self, settings: &EvaluationSettings) -> Result<Candidates, CliError> {
        let Self { root, trainings, common } = self;
        let quick = common.of_choice(settings).values_only();
        let mut all = Vec::new();
        for training in &trainings {
            let scored = training.kept(&root)?.into_par_iter().map(|kept| {
                let validation = common.scored(&kept.paths, Part::Validation, &quick)?.evaluate(&quick)?;
                Ok(kept.into_candidate(validation))
            });
            all.extend(scored.collect::<Result<Vec<_>, CliError>>()?);
        }
        Ok(Candidates { all, common })
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

/// Requires the samples, outcomes and groups of the first run and the split of the first run with this fold, without which
/// models cannot be compared.
fn require_same(
    first: &Path,
    (cohort, groups): (&Cohort, &[Groups]),
    other: &Path,
    (with_fold, split): (&Path, &Split),
) -> Result<(), CliError> {
    let (its_cohort, its_groups, its_split) = read_parts(other)?;
    let differs = |what: &str, first: &Path| {
        let problem = format!("{what} differ from those of {}; runs of one comparison share them", first.display());
        Err(CliError::RunFolder { path: other.to_owned(), problem })
    };
    let outcome = |cohort: &Cohort| -> Vec<(String, u64, bool, Option<u32>)> {
        let sample = |s: &fairtte_data::Sample| (s.sample_id.to_string(), s.time.to_bits(), s.event, s.competing);
        cohort.samples.iter().map(sample).collect()
    };
    if outcome(cohort) != outcome(&its_cohort) {
        return differs("samples or outcomes", first);
    }
    if Part::ALL.into_iter().any(|part| split.rows(part) != its_split.rows(part)) {
        return differs("the parts of the split", with_fold);
    }
    let same = |a: &Groups, b: &Groups| a.attribute() == b.attribute() && a.membership() == b.membership();
    if groups.len() != its_groups.len() || groups.iter().zip(&its_groups).any(|(a, b)| !same(a, b)) {
        return differs("the groups", first);
    }
    Ok(())
}

impl Candidate {
    /// Whether it is compared with trainings of this network.
    pub(super) fn is_beside(&self, network: &Network) -> bool {
        self.network.as_ref().is_none_or(|of_candidate| of_candidate == network)
    }

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
            network: Some(network("pmf")),
            seed,
            trained_on: Vec::new(),
            kept_by: "nll".to_owned(),
            kept_for: None,
            epoch: 1,
            weights: "epoch 1".to_owned(),
            paths: Vec::new(),
            validation,
        }
    }
}
