//! `fairtte predict`: curves of trained runs for samples that they were not trained on.

pub(super) mod blocks;
mod folds;
pub(super) mod member;
pub(super) mod other;
pub(super) mod publish;

use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use fairtte_data::cohort::{Exclusions, RenamedLevel};
use fairtte_data::predictions::{write_prediction_blocks, write_probabilities};
use fairtte_data::{Cohort, DataError};
use ndarray::Array2;
use serde::Serialize;

use self::blocks::Blocks;
pub(super) use self::member::Member;
use self::other::{OtherData, Outcomes, groups_of, notes_on_groups};
use self::publish::{Kind, Predicted, Published, Risks, RunEntry};
use super::train::probability_of;
use super::{print, use_threads};
use crate::CliError;
use crate::args::Predict;
use crate::plural::{agreeing, counted};
use crate::pooled::{at_times, common_times};
use crate::prepared::Inputs;
use crate::progress::say;
use crate::run_file::RunFile;

/// Folder of the blocks, inside the output, until the predictions are complete.
const WORK: &str = ".predicting";
const PREDICTIONS: &str = "predictions.parquet";

pub(super) fn run(arguments: &Predict) -> Result<(), CliError> {
    use_threads(arguments.threads)?;
    publish::require_free(&arguments.output)?;
    if arguments.out_of_fold {
        return folds::run(arguments);
    }
    // On a thread of the pool, as a training.
    rayon::scope(|_| predict(arguments))
}

fn predict(arguments: &Predict) -> Result<(), CliError> {
    let started = Instant::now();
    let open = |path| Member::open(path, arguments.epoch.as_deref(), arguments.device.as_deref());
    let members = arguments.runs.iter().map(|path| open(path).map(|member| member.with_levels(&arguments.levels)));
    let members = members.collect::<Result<Vec<_>, _>>()?;
    let first = &members[0];
    require_one_unit(&members)?;
    let cause = one_cause(&members)?;
    let of_class = is_of_class(&members)?;
    require_one_kind_of_inputs(&members)?;
    if of_class {
        refuse_horizons(arguments)?;
    } else {
        publish::check_horizons(&arguments.horizon, &common_grid(&members))?;
    }
    let outcomes = Outcomes { ignored: arguments.no_outcomes, time_factor: arguments.time_factor };
    let (unit, attributes) = (&first.record.time_unit, &first.record.attributes);
    let other = OtherData::read(&arguments.other, &arguments.output, &first.run, unit, attributes, outcomes)?;
    arguments.levels.iter().try_for_each(|level| level.require(attributes, &other.cohort))?;
    if arguments.dry_run {
        return dry_run(arguments, &members, &other);
    }
    let OtherData { file, cohort, exclusions, has_outcomes, source, mut notes } = other;
    let Decoded { cohort, exclusions, inputs } = Decoded::new(&members, &file, cohort, exclusions)?;
    let cohort = &cohort;
    let found = training_images(&members, &inputs, cohort, arguments.allow_training_images)?;
    let fitted = groups_of(cohort, attributes, &arguments.levels)?;
    notes.extend(notes_on_groups(&fitted));
    notes.extend(of_other_attributes(&members));
    let belong = agreeing(found, "belongs", "belong");
    notes.extend((found > 0).then(|| format!("{found} of the images {belong} to the training part of a run")));
    for note in &notes {
        say(format!("note: {note}"));
    }

    let work = arguments.output.join(WORK);
    let kept = survival(&members, &inputs, cohort, &arguments.levels, &work)?;
    let grid = common_grid(&members);
    let path = arguments.output.join(PREDICTIONS);
    let curves = mean_curves(&members, &kept, &grid);
    let mut risks = Risks::new(&arguments.horizon, first.run.evaluation.reading);
    if of_class {
        write_probabilities(&path, &cohort.sample_ids(&cohort.all_rows()), &probabilities(curves)?)?;
    } else {
        let written = curves.map(|block| {
            let block = block?;
            risks.add(&grid, &block)?;
            // Blocks hold 1 - F of a cause, as of everything that is read again.
            Ok(if cause.is_some() { 1.0 - block } else { block })
        });
        write_prediction_blocks(&path, &cohort.sample_ids(&cohort.all_rows()), &grid, written, cause)?;
    }
    let classes = if has_outcomes { file.classes(cohort)? } else { None };
    let kind = match &members[..] {
        [one] if one.is_estimator() => Kind::Estimator,
        [_] => Kind::Network,
        _ => Kind::EnsembleMean,
    };
    let predicted = Predicted {
        kind,
        runs: members.iter().map(RunEntry::of).collect(),
        source: source.display().to_string(),
        inputs: inputs.iter().map(|inputs| inputs.fingerprint()).collect(),
        time_factor: arguments.time_factor,
        levels: &arguments.levels,
        n_training_images: found,
        has_outcomes,
        cohort,
        exclusions: &exclusions,
        groups: &fitted,
        cause,
        task: of_class.then_some(file.task),
        classes: classes.as_ref(),
        grid: &grid,
        risks,
        notes: &notes,
    };
    let published = predicted.write(&arguments.output)?;
    std::fs::remove_dir_all(&work).map_err(|source| DataError::Write { path: work, source })?;
    show(arguments, &published, started)
}

/// Prints what was predicted, and the command for the next step.
fn show(arguments: &Predict, published: &Published, started: Instant) -> Result<(), CliError> {
    if arguments.json {
        return super::print_json(published);
    }
    print(published.summary(&arguments.output, &arguments.runs[0]));
    say(format!("done in {:.1} s", started.elapsed().as_secs_f64()));
    Ok(())
}

fn dry_run(arguments: &Predict, members: &[Member], other: &OtherData) -> Result<(), CliError> {
    let name = |member: &Member| format!("{} (epoch {})", member.path.display(), member.epoch);
    let names: Vec<String> = members.iter().map(name).collect();
    let (samples, source) = (counted(other.cohort.n(), "sample"), other.source.display());
    planned(arguments, &format!("predict {samples} of {source} by {}", names.join(", ")))
}

/// Prints what a call would do.
fn planned(arguments: &Predict, what: &str) -> Result<(), CliError> {
    #[derive(Serialize)]
    struct Planned<'a> {
        would: &'a str,
        arguments: &'a Predict,
    }
    if arguments.json {
        return super::print_json(&Planned { would: what, arguments });
    }
    print(format!("would {what} into {}", arguments.output.display()));
    Ok(())
}

/// Whether the runs predict a class.
///
/// # Errors
/// [`CliError::Config`] if some do, or their classes are made at other times.
fn is_of_class(members: &[Member]) -> Result<bool, CliError> {
    let first = &members[0];
    if let Some(other) = members.iter().find(|member| member.run.task != first.run.task) {
        let (one, path) = (first.path.display(), other.path.display());
        let message = format!("{one} and {path} have other [task]s, expected runs that predict the same");
        return Err(CliError::setting("RUN", message, None));
    }
    Ok(first.run.is_of_class())
}

/// The samples are images for all runs, or columns of a table for all.
fn require_one_kind_of_inputs(members: &[Member]) -> Result<(), CliError> {
    let of = |member: &Member| if member.run.is_tabular() { "columns of a table" } else { "images" };
    match members.iter().find(|member| of(member) != of(&members[0])) {
        Some(other) => {
            let (one, path) = (members[0].path.display(), other.path.display());
            let message =
                format!("{one} reads {}, {path} {}, expected runs that read the same", of(&members[0]), of(other));
            Err(CliError::setting("RUN", message, None))
        }
        None => Ok(()),
    }
}

/// A class has no times.
fn refuse_horizons(arguments: &Predict) -> Result<(), CliError> {
    if arguments.horizon.is_empty() {
        return Ok(());
    }
    let message = "the run predicts a class, which has no times; predictions.parquet has its probability".to_owned();
    Err(CliError::setting("--horizon", message, None))
}

/// The probability of the class of all samples.
fn probabilities(curves: impl Iterator<Item = Result<Array2<f64>, DataError>>) -> Result<Vec<f64>, CliError> {
    let mut all = Vec::new();
    for block in curves {
        all.extend(probability_of(&block?));
    }
    Ok(all)
}

fn require_one_unit(members: &[Member]) -> Result<(), CliError> {
    let unit = |member: &Member| member.record.time_unit.clone();
    match members.iter().find(|member| unit(member) != unit(&members[0])) {
        Some(other) => {
            let (first, path) = (members[0].path.display(), other.path.display());
            let message =
                format!("{first} predicts in {}, {path} in {}, expected one unit", unit(&members[0]), unit(other));
            Err(CliError::setting("RUN", message, None))
        }
        None => Ok(()),
    }
}

/// The cause whose incidence all runs predict; `None` of runs of one kind of event.
fn one_cause(members: &[Member]) -> Result<Option<u32>, CliError> {
    let of = |member: &Member| member.run.outcome.as_ref().map(|outcome| outcome.cause);
    let words =
        |cause: Option<u32>| cause.map_or_else(|| "one kind of event".to_owned(), |cause| format!("cause {cause}"));
    let first = of(&members[0]);
    match members.iter().find(|member| of(member) != first) {
        Some(other) => {
            let (one, path) = (members[0].path.display(), other.path.display());
            let message = format!("{one} predicts {}, {path} {}, expected the same", words(first), words(of(other)));
            Err(CliError::setting("RUN", message, None))
        }
        None => Ok(first),
    }
}

/// The samples that every run can read, and the inputs of each run.
struct Decoded {
    cohort: Cohort,
    exclusions: Exclusions,
    /// One entry per run; runs that decode images in the same way share a store.
    inputs: Vec<Rc<Inputs>>,
}

impl Decoded {
    /// Decodes the samples of `cohort` as every run reads them. The cohort is copied only for runs that decode them differently:
    /// each decodes all of it, because the name of a store depends on its samples.
    ///
    /// # Errors
    /// As [`Member::inputs`], and [`CliError::Config`] if an image can be decoded for one run and not for another.
    fn new(members: &[Member], file: &RunFile, cohort: Cohort, exclusions: Exclusions) -> Result<Self, CliError> {
        let like =
            |member: &Member| members.iter().position(|other| std::ptr::eq(other, member) || member.decodes_as(other));
        let like: Vec<usize> = members.iter().filter_map(like).collect();
        let last = like.iter().max().copied();
        let mut labelled = Some((cohort, exclusions));
        let mut inputs: Vec<Rc<Inputs>> = Vec::with_capacity(members.len());
        let mut smallest: Option<(Cohort, Exclusions)> = None;
        for (index, (member, like)) in members.iter().zip(&like).enumerate() {
            if *like < index {
                inputs.push(Rc::clone(&inputs[*like]));
                continue;
            }
            let of_member = if last == Some(index) { labelled.take() } else { labelled.clone() };
            let Some((cohort, mut excluded)) = of_member else {
                return Err(CliError::Bug("no samples to decode".to_owned()));
            };
            let (readable, decoded) = member.inputs(file, cohort, &mut excluded)?;
            inputs.push(Rc::new(decoded));
            if smallest.as_ref().is_none_or(|(smallest, _)| readable.n() < smallest.n()) {
                smallest = Some((readable, excluded));
            }
        }
        let Some((cohort, exclusions)) = smallest else { return Err(CliError::Bug("no run to decode for".to_owned())) };
        let decoded = Self { cohort, exclusions, inputs };
        decoded.require_all(members)?;
        Ok(decoded)
    }

    /// Refuses images that only some of the runs can read.
    fn require_all(&self, members: &[Member]) -> Result<(), CliError> {
        for (member, inputs) in members.iter().zip(&self.inputs) {
            let Inputs::Images(store) = inputs.as_ref() else { continue };
            if let Some(sample) = self.cohort.samples.iter().find(|sample| store.position(&sample.sample_id).is_none())
            {
                let (sample, run) = (&sample.sample_id, member.path.display());
                let message = format!("the image of \"{sample}\" can be decoded for another run and not for {run}");
                return Err(CliError::setting("RUN", message, None));
            }
        }
        Ok(())
    }
}

/// The number of images that belong to the training part of a run, which is an error unless it is allowed.
fn training_images(
    members: &[Member],
    inputs: &[Rc<Inputs>],
    cohort: &Cohort,
    is_allowed: bool,
) -> Result<usize, CliError> {
    let mut most = 0;
    for (member, inputs) in members.iter().zip(inputs) {
        let found = member.trained_on(inputs, cohort)?;
        if let Some(sample) = found.first().filter(|_| !is_allowed) {
            let (n, of, run) = (found.len(), cohort.n(), member.path.display());
            let belong = agreeing(n, "belongs", "belong");
            let message = format!("{n} of {of} images {belong} to the training part of {run}, first \"{sample}\"");
            let help = "predictions of them say nothing about other people; --allow-training-images predicts them";
            return Err(CliError::setting("data", message, Some(help)));
        }
        most = most.max(found.len());
    }
    Ok(most)
}

/// A sentence for each run whose groups differ from those of the first.
fn of_other_attributes(members: &[Member]) -> Vec<String> {
    let first = &members[0];
    let differing = members.iter().filter(|member| member.record.attributes != first.record.attributes);
    let sentence = |member: &Member| {
        let (run, first) = (member.path.display(), first.path.display());
        format!("{run} has other thresholds or levels of its attributes; the groups are those of {first}")
    };
    differing.map(sentence).collect()
}

/// The curves of every run, each on its own grid.
fn survival(
    members: &[Member],
    inputs: &[Rc<Inputs>],
    cohort: &Cohort,
    levels: &[RenamedLevel],
    work: &Path,
) -> Result<Vec<Blocks>, CliError> {
    let one = |(index, (member, inputs)): (usize, (&Member, &Rc<Inputs>))| {
        let membership = member.membership(&groups_of(cohort, &member.record.attributes, levels)?, cohort.n())?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(inputs.fingerprint().as_bytes());
        hasher.update(member.record.epochs[&member.epoch].hash().as_bytes());
        hasher.update(format!("{:?}{:?}", member.record.intensity, member.record.fitted.grid()).as_bytes());
        for (sample, group) in cohort.samples.iter().zip(&membership) {
            hasher.update(format!("{:?}{group:?}", sample.sample_id).as_bytes());
        }
        let key = hasher.finalize().to_hex();
        let blocks = Blocks::open(&work.join(format!("run-{index:03}")), &key, cohort.n())?;
        let loader = member.loader(inputs, cohort, membership)?;
        blocks.fill("predicting", |range| member.survival(inputs, &loader, &range.collect::<Vec<_>>()))?;
        Ok(blocks)
    };
    members.iter().zip(inputs).enumerate().map(one).collect()
}

/// The times of all grids, up to the last that every run has.
fn common_grid(members: &[Member]) -> Vec<f64> {
    common_times(members.iter().map(Member::times))
}

/// The mean over the runs of their survival at the times of `grid`, block by block.
fn mean_curves<'a>(
    members: &'a [Member],
    kept: &'a [Blocks],
    grid: &'a [f64],
) -> impl Iterator<Item = Result<Array2<f64>, DataError>> + 'a {
    let mut of_runs: Vec<_> = kept.iter().map(Blocks::iter).collect();
    std::iter::from_fn(move || {
        let blocks: Option<Vec<_>> = of_runs.iter_mut().map(Iterator::next).collect();
        Some(mean_of(members, blocks?, grid))
    })
}

fn mean_of(
    members: &[Member],
    blocks: Vec<Result<Array2<f64>, DataError>>,
    grid: &[f64],
) -> Result<Array2<f64>, DataError> {
    let n = blocks.len() as f64;
    let mut mean: Option<Array2<f64>> = None;
    for (member, block) in members.iter().zip(blocks) {
        let curves = at_times(member.times(), block?, grid, member.run.evaluation.reading)?;
        mean = Some(match mean {
            Some(sum) => sum + curves,
            None => curves,
        });
    }
    let sum = mean.unwrap_or_default();
    Ok(if n > 1.0 { sum.mapv_into(|value| (value / n).clamp(0.0, 1.0)) } else { sum })
}
