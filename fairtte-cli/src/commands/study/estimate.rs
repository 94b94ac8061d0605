//! Hours of a study: `fairtte study plan --estimate` from the first steps of one training of every kind, `--bench FILE` from the
//! rates that `fairtte bench` measured.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use fairtte_data::{Part, make_split};

use crate::CliError;
use crate::commands::bench::Report;
use crate::commands::compare::is_about_the_method;
use crate::commands::train::seconds_of;
use crate::prepared::label;
use crate::progress::say;
use crate::run_file::RunFile;
use crate::study::{Plan, Planned};

/// Data set, head, backbone and strategy: what the length of a training depends on most.
type Kind<'a> = (usize, &'a str, Option<&'a str>, &'a str);

/// Hours of the trainings at `places` on this machine, one at a time with all of its threads, if none stops early. Trains four
/// steps of the first training of every kind, which also prepares the data. A kind that cannot be trained takes no time.
///
/// # Errors
/// The errors of training, but for those that are about the method.
pub(super) fn hours(plan: &Plan, planned: &[Planned], places: &[usize]) -> Result<f64, CliError> {
    let folder = plan.folder().path().join(".estimate");
    let mut seconds: BTreeMap<Kind<'_>, f64> = BTreeMap::new();
    let mut all = 0.0;
    for place in places {
        let cell = &plan.cells()[plan.place(*place).0];
        let kind = (cell.data, cell.head.as_str(), cell.backbone.as_deref(), cell.strategy.as_str());
        if let Entry::Vacant(new) = seconds.entry(kind) {
            let mut run = planned[*place].run.clone();
            run.output = folder.join(&planned[*place].id);
            let found = seconds_of_first(&run)?;
            say(format!("{}: {found:.1} s", run.name));
            new.insert(found);
            remove(&folder)?;
        }
        all += seconds[&kind];
    }
    Ok(all / 3600.0)
}

/// Hours of the trainings at `places`, one at a time, at the rates of files that `fairtte bench` wrote, if none stops early; and the
/// files whose rates these are, with their devices. Every epoch trains on the training part and predicts the validation part; the parts
/// are those of the tables, of one fold for all. A method of several passes or networks takes longer than the steps that were measured. Estimators,
/// which train no network, take no time. Cost: the tables of every data set are read once.
///
/// # Errors
/// [`CliError::RunFolder`] naming the files if they have no rates of a network in the size and precision and on the kind of device of a
/// training, or cannot be read; the errors of the data.
pub(super) fn hours_of_bench(
    paths: &[PathBuf],
    plan: &Plan,
    planned: &[Planned],
    places: &[usize],
) -> Result<(f64, String), CliError> {
    let reports = paths.iter().map(|path| Report::read(path)).collect::<Result<Vec<_>, _>>()?;
    let mut parts: BTreeMap<usize, [usize; 2]> = BTreeMap::new();
    let (mut seconds, mut used) = (0.0, BTreeSet::new());
    for place in places {
        let run = &planned[*place].run;
        if run.estimator.is_some() {
            continue;
        }
        let n = match parts.entry(plan.cells()[plan.place(*place).0].data) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(parts_of(run)?),
        };
        let found = reports.iter().enumerate().find_map(|(file, report)| Some((file, seconds_at(report, run, n)?)));
        let (file, found) = found.ok_or_else(|| lacks(paths, run))?;
        seconds += found;
        used.insert(file);
    }
    let sources: Vec<String> =
        used.into_iter().map(|file| format!("{} ({})", paths[file].display(), reports[file].device_words())).collect();
    Ok((seconds / 3600.0, format!("the rates of {}", sources.join(", "))))
}

/// Channels and size of what the network of a run reads.
fn sample(run: &RunFile) -> Vec<usize> {
    let size = run.augmentation.crop.as_ref().unwrap_or(&run.image.size);
    std::iter::once(run.image.channels).chain(size.iter().copied()).collect()
}

/// Samples of the training and the validation part of a run by its tables: with those whose images cannot be decoded or whom a shift leaves
/// out, without training samples that have no class.
fn parts_of(run: &RunFile) -> Result<[usize; 2], CliError> {
    let (cohort, exclusions) = label(run)?;
    cohort.require_samples("after labelling", &exclusions)?;
    let (mut split, _) = make_split(&cohort, &run.split, &run.attribute, run.seed)?;
    if let Some(classes) = run.classes(&cohort)? {
        split = split.without_rows(Part::Train, &classes.left_out().into_iter().collect());
    }
    Ok([Part::Train, Part::Validation].map(|part| split.rows(part).len()))
}

/// Seconds of a training with parts of these sizes; `None` if its network was not measured on such a device.
fn seconds_at(report: &Report, run: &RunFile, [train, validation]: [usize; 2]) -> Option<f64> {
    if !report.is_of(&run.device) {
        return None;
    }
    let (training, inference) = report.rates(run.model.backbone, &sample(run), run.training.precision)?;
    let per_epoch = train as f64 / training + validation as f64 / inference;
    Some(per_epoch * run.training.epochs as f64)
}

fn lacks(paths: &[PathBuf], run: &RunFile) -> CliError {
    let (backbone, precision) = (run.model.backbone, run.training.precision);
    let shape = match backbone.n_axes() {
        0 => String::new(),
        _ => format!(" --shape {}", sample(run).iter().map(usize::to_string).collect::<Vec<_>>().join("x")),
    };
    let nor: Vec<String> = paths.iter().skip(1).map(|path| format!(", nor has {}", path.display())).collect();
    let problem = format!(
        "it has no rates of what \"{}\" trains{}, expected those of `fairtte bench --device {} --backbone {}{shape} --precision \
         {precision} --output FILE`",
        run.name,
        nor.concat(),
        run.device,
        backbone.name()
    );
    CliError::RunFolder { path: paths.first().cloned().unwrap_or_default(), problem }
}

/// Seconds of a training, 0 if its method cannot be trained on the data.
fn seconds_of_first(run: &RunFile) -> Result<f64, CliError> {
    match seconds_of(run) {
        Err(CliError::Training(cause)) if is_about_the_method(&cause) => {
            say(format!("not trained: {cause}"));
            Ok(0.0)
        }
        found => found,
    }
}

/// Removes the folder of the timed trainings.
fn remove(folder: &std::path::Path) -> Result<(), CliError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(CliError::RunFolder { path: folder.to_owned(), problem: error.to_string() })
        }
        _ => Ok(()),
    }
}
