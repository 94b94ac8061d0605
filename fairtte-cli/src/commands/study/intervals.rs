//! Bootstrap replicates of the models that a study chose, which predict again in the folder `chosen/` of the study.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fairtte_data::predictions::PredictionTable;
use fairtte_data::{Part, Split, read_cohort};
use fairtte_metrics::EvaluationSettings;
use fairtte_metrics::evaluation::SampledMetrics;

use super::restore::rebuild;
use crate::CliError;
use crate::progress::{Files, say};
use crate::run_folder::{OpenRun, RunFolder};
use crate::scored::{Scored, read_curves};
use crate::selection::OfClass;
use crate::study::{Measures, Model, Plan, Samples, TrialFolder};

/// Replicates of the test part of every model, paired: a replicate has the same subjects in all models of a setting. A model whose
/// training kept no weights is left out with a note.
///
/// # Errors
/// [`CliError::Config`] for a study with folds or repeats; the errors of preparation, prediction and evaluation.
pub(super) fn samples(plan: &Plan, models: &BTreeSet<Model>, replicates: usize) -> Result<Samples, CliError> {
    if plan.study().trainings_per_trial() > 1 {
        let message =
            "a study with folds or repeats has no intervals: its values are means over them, with standard errors";
        return Err(CliError::setting("--replicates", message.to_owned(), None));
    }
    let (mut found, mut without) = (Samples::new(), BTreeSet::new());
    let bar = Files::new("scoring chosen models");
    for (done, model) in models.iter().enumerate() {
        bar.update(done, models.len());
        let id = &plan.ids()[model.place];
        if let Some(run) = run_folder(plan, model.place)? {
            found.insert(*model, sampled(&run, model.epoch, replicates)?);
        } else {
            without.insert(id);
        }
    }
    bar.update(models.len(), models.len());
    if !without.is_empty() {
        let n = without.len();
        say(format!("no intervals for {n} chosen trainings, which kept no model (execute.keep, or `study clean`)"));
    }
    Ok(found)
}

/// A run folder with the curves of a finished trial: its own if it was kept, or one in `chosen/`, which is made.
pub(super) fn run_folder(plan: &Plan, place: usize) -> Result<Option<PathBuf>, CliError> {
    let trial: TrialFolder = plan.folder().trial(&plan.ids()[place]);
    if RunFolder::new(trial.path()).done().exists() {
        return Ok(Some(trial.path().to_owned()));
    }
    let path = plan.folder().chosen(&plan.ids()[place]);
    if RunFolder::new(&path).done().exists() {
        return Ok(Some(path));
    }
    if !trial.model().exists() {
        return Ok(None);
    }
    rebuild(plan.resolve(place)?, &trial, &path)?;
    Ok(Some(path))
}

/// The test part of a kept epoch, with replicates.
fn sampled(run: &Path, epoch: usize, replicates: usize) -> Result<SampledMetrics, CliError> {
    let open = OpenRun::read(run)?;
    let settings = EvaluationSettings { min_events: 0, replicates, ..open.file.evaluation.metrics_only() };
    if open.file.is_of_class() {
        return sampled_class(&open, epoch, &settings);
    }
    let settings = EvaluationSettings { metrics: Measures::Curves.names().map(str::to_owned).to_vec(), ..settings };
    test_part(run, Curves::Kept(epoch))?.sample(&settings)
}

/// The same of a class; the threshold is the one with the highest F1 in the validation part.
fn sampled_class(open: &OpenRun, epoch: usize, settings: &EvaluationSettings) -> Result<SampledMetrics, CliError> {
    let OpenRun { file, folder } = open;
    let (cohort, groups) = read_cohort(&folder.cohort())?;
    let split = Split::read_csv(&folder.split(), &cohort)?;
    let classes = file.classes(&cohort)?.ok_or_else(|| CliError::Bug("a run without a class".to_owned()))?;
    let path = kept_file(folder, epoch)?;
    let read = |part| {
        let data = (&cohort, &groups[..], &classes);
        OfClass::read(data, std::slice::from_ref(&split), std::slice::from_ref(&path), part)
    };
    let class = read(Part::Validation)?.settings()?;
    read(Part::Test)?.sample(&class, settings)
}

/// The predictions of a kept epoch.
fn kept_file(folder: &RunFolder, epoch: usize) -> Result<PathBuf, CliError> {
    folder.files_of(&folder.kept()?).remove(&epoch).ok_or_else(|| CliError::RunFolder {
        path: folder.selection(),
        problem: format!("epoch {epoch} is not among those that the training kept"),
    })
}

/// Curves of a run.
pub(super) enum Curves {
    /// Those of a kept epoch, counted from 1.
    Kept(usize),
    /// Others of the same samples.
    Given(PredictionTable),
}

/// The test part of a run with its outcomes and groups.
///
/// # Errors
/// [`CliError::RunFolder`] if the epoch was not kept; the errors of reading.
pub(super) fn test_part(run: &Path, curves: Curves) -> Result<Scored, CliError> {
    let folder = OpenRun::read(run)?.folder;
    let (cohort, groups) = read_cohort(&folder.cohort())?;
    let predictions = match curves {
        Curves::Given(predictions) => predictions,
        Curves::Kept(epoch) => read_curves(&kept_file(&folder, epoch)?, &cohort)?,
    };
    let split = Split::read_csv(&folder.split(), &cohort)?;
    Scored::new(predictions, &cohort, &groups, Some(&split), Part::Test)
}
