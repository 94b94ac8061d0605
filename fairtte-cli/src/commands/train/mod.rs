//! `fairtte train`: the ten steps of ARCHITECTURE.md, in order.

mod estimator;
mod masks;
mod probe;
mod resume;
mod selected;
mod times;

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use burn::tensor::Device;
use fairtte_data::loader::Intensity;
use fairtte_data::{Part, Split, read_cohort};
use fairtte_fairness::strategies::{CellCounts, Strategy, TrainingCells, Warning};
use fairtte_fairness::{
    EpochReport, FairnessError, FittedModel, LearnerSpec, NetworkSpec, Observer, Outputs, Pretrained, PretrainedConfig,
    Scoring, StepsFile, TensorBoard, TrainedRun, Trainer, TrainingData, targets_of,
};
use fairtte_metrics::{GroupId, Outcomes, SampleId};
use fairtte_models::weights::{NamedHash, WeightFile, sha256};
use fairtte_survival::{ChosenGrid, ClassifierConfig, CutPoints, PredictionGrid};
use serde::Serialize;

use self::estimator::fit_estimator;
use self::probe::Probe;
use self::selected::predict_all;
pub(super) use self::selected::{predicted_rows, probability_of, write_predicted};
use super::evaluate::{Shown, evaluate_run};
use super::prepare::{dry_run, print_summary};
use super::use_threads;
use crate::args::Train;
use crate::error::InTable as _;
use crate::prepared::{Care, Inputs, Prepared, prepare, require_unchanged_tables};
use crate::progress::{Training, say};
use crate::run_file::RunFile;
use crate::run_folder::{Fitted, FittedKind, OpenRun, RunFolder, write_json, write_text};
use crate::{CliError, device, interrupt};

pub(super) fn run(arguments: &Train) -> Result<(), CliError> {
    let run = resume::read(arguments)?;
    if arguments.common.dry_run {
        run.check()?;
        run.open_device()?;
        return dry_run(&run, "prepare the data, train, predict and evaluate", arguments.common.json);
    }
    use_threads(run.threads)?;
    train_from(arguments.resume_from.as_deref(), &run, Shown::json(arguments.common.json))
}

/// Trains, predicts and evaluates in the run folder, continuing an earlier call.
pub(super) fn train(run: &RunFile, shown: Shown) -> Result<(), CliError> {
    train_from(None, run, shown)
}

/// As [`train`], but pauses ([`interrupt::pause`]) once `epochs` epochs are done, if the training has more.
///
/// # Errors
/// As [`train`], and the error of a request to stop where it pauses.
pub(super) fn train_until(run: &RunFile, shown: Shown, epochs: usize) -> Result<(), CliError> {
    rayon::scope(|_| steps(None, run, shown, Extra::Until(epochs)))
}

/// What ends a training before its end.
#[derive(Clone, Copy)]
enum Extra<'a> {
    None,
    /// A few steps are timed.
    Probe(&'a Probe),
    /// Epochs after which it pauses.
    Until(usize),
}

/// Pauses a training after an epoch.
struct Pause {
    epochs: usize,
    of: usize,
}

impl Observer for Pause {
    fn epoch_done(&mut self, report: &EpochReport) {
        if report.epoch >= self.epochs && report.epoch < self.of {
            interrupt::pause();
        }
    }
}

/// As [`train`]; `origin` is the folder of a run to resume.
///
/// Runs on a thread of the pool, where an operation wakes one thread less than from outside. This matters for small
/// operations: a training step of `efficientnet-b0` on 32 pictures of 64 x 64 takes 0.87 times as long.
fn train_from(origin: Option<&Path>, run: &RunFile, shown: Shown) -> Result<(), CliError> {
    rayon::scope(|_| steps(origin, run, shown, Extra::None))
}

/// Seconds that a training takes if it does not stop early, from its first steps, in the folder of the run, which must be new. A
/// validation pass is counted as a third of a pass with gradients.
///
/// # Errors
/// As [`train`].
pub(super) fn seconds_of(run: &RunFile) -> Result<f64, CliError> {
    let probe = Probe::default();
    let started = Instant::now();
    match rayon::scope(|_| steps(None, run, Shown::Unscored, Extra::Probe(&probe))) {
        Err(CliError::Training(FairnessError::Interrupted { .. })) if !interrupt::is_wanted() => {}
        other => other?,
    }
    if run.estimator.is_some() {
        return Ok(started.elapsed().as_secs_f64());
    }
    let folder = RunFolder::new(&run.output);
    let (cohort, _) = read_cohort(&folder.cohort())?;
    let split = Split::read_csv(&folder.split(), &cohort)?;
    let [train, validation] = [Part::Train, Part::Validation].map(|part| split.rows(part).len() as f64);
    let per_epoch = probe.seconds_per_epoch().unwrap_or_default() * (1.0 + validation / train / 3.0);
    Ok(per_epoch * run.training.epochs as f64)
}

fn steps(origin: Option<&Path>, run: &RunFile, shown: Shown, extra: Extra<'_>) -> Result<(), CliError> {
    let started = Instant::now();
    run.check()?;
    let device = run.open_device()?;
    device::use_threads(&run.device);
    let outputs = super::evaluate::Outputs { shown, part: Part::Test, started };
    say(format!("training \"{}\" on {} in {}", run.name, run.device, run.output.display()));
    if let Some(finished) = OpenRun::finished(run, origin.is_some())? {
        if matches!(shown, Shown::Table | Shown::Json) {
            require_unchanged_tables(&finished)?;
        }
        say("this run is done; showing its evaluation");
        return score(&finished, &outputs);
    }
    let (run, pretrained) = with_weights(run, &device)?;
    let open = OpenRun::open_from(origin, run)?;
    let OpenRun { file: run, folder } = &open;
    // Steps 1 to 4: files to a cohort with exclusions, split, groups and decoded images.
    let prepared = prepare(&open, Care::Usual)?;
    open.begin()?;
    if shown == Shown::Table {
        print_summary(run, &prepared);
    }
    let (cohort, split) = (prepared.training_cohort(), &prepared.split);
    let (train, validation) = (split.rows(Part::Train), prepared.validation());
    // Step 4: everything is fitted on the training part only.
    let outcomes = cohort.outcomes_of_event(train)?;
    let cut_points = if run.has_times() { time_grid(&open, &outcomes)? } else { CutPoints::of_class() };
    if let Some(estimator) = &run.estimator {
        fit_estimator(&open, &prepared, estimator, &cut_points)?;
        score(&open, &outputs)?;
        return write_text(&folder.done(), "");
    }
    // Step 5: one loader for training and prediction.
    let groups = prepared.membership();
    let (loader, intensity) = prepared.loader(run, groups.clone())?;
    // Steps 6 to 8: network, loss and strategy, trained by the only loop.
    let causes = cohort.causes();
    let head = run.head.build_for(causes.len())?;
    let targets = targets_of("training", cohort, train, &cut_points)?;
    let spec = LearnerSpec {
        network: NetworkSpec {
            encoder: run.model.clone(),
            channels: n_channels(run, &prepared.inputs),
            classifier: ClassifierConfig::for_head_and_targets(
                head.as_ref(),
                &cut_points,
                (&outcomes, &targets),
                run.model.hidden,
            )?,
        },
        optimiser: run.optimiser,
        seed: run.training_seed(),
        device: device.clone(),
        pretrained,
    };
    let cells = TrainingCells::of(prepared.training_groups.as_ref(), &loader, train, &cut_points)?;
    let mut strategy = run.strategy.build(&spec, &cells).in_table("pretrained")?;
    let n_steps = train.len().div_ceil(run.training.batch_size * run.training.accumulate);
    say_notes(run, n_steps);
    let predicted = predicted_rows(&prepared);
    if strategy.needs_group_to_predict() {
        say_who_has_no_group(&predicted, &groups, strategy.name(), &cells.attribute);
    }
    let grid = times::of_network(run, &cut_points, head.as_ref(), &outcomes, predicted.len())?;
    let scoring = scoring_of(run, &prepared, grid, &cut_points)?;
    let kept_for = prepared.kept_for(run)?;
    let data = TrainingData {
        loader: &loader,
        train,
        validation: &validation,
        levels: &cells.levels,
        kept_for: &kept_for,
        outputs: Outputs { head: head.as_ref(), cut_points: &cut_points },
        scoring: &scoring,
        seed: run.training_seed(),
        device: &device,
    };
    let trained = fit(&data, run, folder.path(), strategy.as_mut(), extra).in_table(&run.strategy_table())?;
    stop_as_asked(&trained)?;
    let ending = if trained.stopped_early { "stopped early" } else { "all epochs done" };
    say(format!(
        "{ending} after epoch {}; predicting with the weights of epoch {}",
        trained.epochs.len(),
        trained.best_epoch
    ));
    folder.write_warnings(&warnings_in_keys(&trained.warnings, run))?;
    // Step 9: curves of everything that was not trained on, with the weights of every epoch that a rule chose.
    let model = FittedModel {
        channels: spec.network.channels,
        cut_points: cut_points.clone(),
        grid: scoring.grid().clone(),
        classifier: spec.network.classifier.clone(),
        cells: CellCounts::from(&cells),
        causes,
    };
    predict_all(
        &open,
        &prepared,
        strategy.as_mut(),
        &data,
        &trained,
        kept_model(&prepared, intensity, FittedKind::Network(model)),
    )?;
    // Step 10: from the saved files.
    score(&open, &outputs)?;
    write_text(&folder.done(), "")
}

/// Prints what of the settings of the training does not suit the strategy.
fn say_notes(run: &RunFile, n_steps: usize) {
    for note in run.strategy.training_notes(&run.training, n_steps) {
        say(format!("warning: {}", in_keys(&note, run)));
    }
}

fn warnings_in_keys(warnings: &[Warning], run: &RunFile) -> Vec<Warning> {
    let of_keys = |warning: &Warning| Warning { text: in_keys(&warning.text, run), ..warning.clone() };
    warnings.iter().map(of_keys).collect()
}

/// A sentence about a training with the keys of the run file in place of the names of settings.
fn in_keys(text: &str, run: &RunFile) -> String {
    run.written().with_keys(text, &[&run.strategy_table(), "training", "optimiser"])
}

/// Says how many of the samples that are to be predicted have no group for a strategy that predicts by it.
fn say_who_has_no_group(rows: &[usize], groups: &[Option<GroupId>], strategy: &str, attribute: &str) {
    let (n, n_without) = (rows.len(), rows.iter().filter(|row| groups[**row].is_none()).count());
    say(format!(
        "note: {strategy} predicts by \"{attribute}\", which is missing in {n_without} of {n} samples to predict"
    ));
}

/// The cut points of the training part, with their record in the run folder.
fn time_grid(open: &OpenRun, outcomes: &Outcomes) -> Result<CutPoints, CliError> {
    let OpenRun { file: run, folder } = open;
    let cut_points = CutPoints::fit(outcomes, run.time.intervals, run.time.grid)?;
    let grid = CutPoints::choose(outcomes, run.time.intervals, run.time.grid)?;
    let grid = ChosenGrid { n: cut_points.n(), ..grid };
    say(format!("time grid: {grid}"));
    write_json(&folder.time_grid(), &GridRecord { sentence: grid.to_string(), grid })?;
    if cut_points.n() < run.time.intervals {
        let (n, wanted) = (cut_points.n(), run.time.intervals);
        say(format!("the training part has {n} different quantile cut points, not {wanted}: {n} are used"));
    }
    Ok(cut_points)
}

/// How the validation part is scored: curves with the weights for censoring of the evaluation, from the unchanged outcomes of
/// the data. A class and masks have none.
fn scoring_of(
    run: &RunFile,
    prepared: &Prepared,
    grid: PredictionGrid,
    cut_points: &CutPoints,
) -> Result<Scoring, CliError> {
    let cohort = if run.has_times() { &prepared.cohort } else { prepared.training_cohort() };
    let train = cohort.outcomes_of_any_cause(prepared.split.rows(Part::Train))?;
    Ok(Scoring::new(grid, cut_points, &run.evaluation, &train)?)
}

/// Trains with logs and progress, and with what ends the training early.
fn fit(
    data: &TrainingData<'_>,
    run: &RunFile,
    folder: &Path,
    strategy: &mut dyn Strategy,
    extra: Extra<'_>,
) -> Result<TrainedRun, FairnessError> {
    let (mut bar, mut steps, mut board) =
        (Training::new(), StepsFile::in_folder(folder), TensorBoard::in_folder(folder));
    let (probe, mut pause) = match extra {
        Extra::None => (None, None),
        Extra::Probe(probe) => (Some(probe), None),
        Extra::Until(epochs) => (None, Some(Pause { epochs, of: run.training.epochs })),
    };
    let mut timed = probe;
    interrupt::stoppable(|stop| {
        let mut trainer = Trainer::new(data, &run.training, folder).stop_when(probe.map_or(stop, Probe::stop));
        if let Some(timed) = &mut timed {
            trainer = trainer.observe(timed);
        }
        if let Some(pause) = &mut pause {
            trainer = trainer.observe(pause);
        }
        trainer.observe(&mut steps).observe(&mut board).observe(&mut bar).fit(strategy)
    })
}

/// Evaluates the run, unless it is scored elsewhere.
fn score(run: &OpenRun, outputs: &super::evaluate::Outputs) -> Result<(), CliError> {
    if outputs.shown == Shown::Unscored { Ok(()) } else { evaluate_run(run, outputs) }
}

/// How the cut points were placed, `time-grid.json`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct GridRecord {
    /// The same in words, for the report.
    sentence: String,
    #[serde(flatten)]
    grid: ChosenGrid,
}

/// Returns an error if a stop was requested after the last step, while the weights were finished; the state is saved.
fn stop_as_asked(trained: &TrainedRun) -> Result<(), FairnessError> {
    let Some(last) = trained.epochs.last().filter(|_| interrupt::is_wanted()) else { return Ok(()) };
    Err(FairnessError::Interrupted { epoch: last.epoch, step: last.n_steps, n_steps: last.n_steps })
}

/// Reads the weights that the run starts from and compares them with its backbone, before any long computation; their
/// hash goes into the record of the run.
fn with_weights(run: &RunFile, device: &Device) -> Result<(RunFile, Option<Pretrained>), CliError> {
    let Some(config) = &run.pretrained else { return Ok((run.clone(), None)) };
    let file = WeightFile::open(&config.path)?;
    let hash = sha256(file.bytes());
    if let Some(expected) = config.sha256.as_ref().filter(|expected| **expected != hash) {
        let message = format!("{} has the SHA-256 {hash}, expected {expected}", config.path.display());
        return Err(CliError::setting("pretrained.sha256", message, None));
    }
    if let NamedHash::Differs(digits) = NamedHash::of(&config.path, &hash) {
        let path = config.path.display();
        say(format!("warning: the name of {path} says SHA-256 {digits}.., but the file has {}..", &hash[..8]));
    }
    let config = PretrainedConfig { sha256: Some(hash), ..config.clone() };
    let pretrained = Pretrained { file: Arc::new(file), config: config.clone() };
    let encoder = run.model.build(run.image.channels, device);
    let fit = pretrained.fit(encoder.backbone())?;
    fit.require()?;
    let (n, layout) = (fit.matched().len(), fit.layout().name());
    say(format!("starting from {n} tensors of {} (layout {layout})", config.path.display()));
    fit.notes().iter().for_each(|note| say(format!("note: {note}")));
    Ok((RunFile { pretrained: Some(config), ..run.clone() }, Some(pretrained)))
}

/// What `model/` keeps of a training besides its weights.
fn kept_model(prepared: &Prepared, intensity: Option<Intensity>, model: FittedKind) -> Fitted {
    let train = prepared.split.rows(Part::Train);
    let inputs = match &prepared.inputs {
        Inputs::Images(store) => {
            let of_train: HashSet<SampleId> = prepared.cohort.sample_ids(train).into_iter().collect();
            let hashes = store.pixel_hashes().filter(|(sample, _)| of_train.contains(sample));
            hashes.map(|(_, hash)| hash.to_owned()).collect()
        }
        Inputs::Features { .. } => BTreeSet::new(),
    };
    Fitted {
        time_unit: prepared.cohort.time_unit.clone(),
        intensity,
        features: prepared.inputs.encodings().cloned(),
        attributes: prepared.attributes.rules().to_vec(),
        model,
        inputs,
    }
}

/// Channels of an image, or columns of a table.
fn n_channels(run: &RunFile, inputs: &Inputs) -> usize {
    match inputs {
        Inputs::Images(_) => run.image.channels,
        Inputs::Features { matrix, .. } => matrix.n_features(),
    }
}
