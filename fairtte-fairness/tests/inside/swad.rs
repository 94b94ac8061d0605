//! Tests of `src/strategies/swad`; they need a back end, which `src` does not name.
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use burn::module::Module as _;
use fairtte_survival::{HeadConfig, PredictionGrid};
use ndarray::Array2;

use super::super::table::{World, is_statistic, numbers};
use super::super::{Clock, StepContext};
use super::valley::Averaged as _;
use super::*;
use crate::{CurveRule, EpochReport, Observer, Silent, TrainingConfig};

/// SWAD that keeps every iteration, as reference.
struct Recording {
    inner: Swad,
    iterations: Vec<Vec<(String, Vec<f64>)>>,
    /// Number of iterations at each evaluation.
    evaluations: Vec<usize>,
}

impl Recording {
    fn new(world: &World, config: SwadConfig) -> Self {
        let learner = Learner::new(&world.spec(), NETWORK).unwrap();
        Self { inner: Swad::new(&config, learner).unwrap(), iterations: Vec::new(), evaluations: Vec::new() }
    }
}

impl Strategy for Recording {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        let report = self.inner.step(batch, context)?;
        self.iterations.push(numbers(self.inner.learner.network()));
        Ok(report)
    }
    fn before_validation(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        self.inner.before_validation(parts)
    }
    fn validation_interval(&self) -> Option<usize> {
        self.inner.validation_interval()
    }
    fn after_validation(&mut self, validation: &Validation) -> Result<(), FairnessError> {
        self.evaluations.push(self.iterations.len());
        self.inner.after_validation(validation)
    }
    fn log_terms(&self) -> Vec<(String, f64)> {
        self.inner.log_terms()
    }
    fn wants_to_stop(&self) -> bool {
        self.inner.wants_to_stop()
    }
    fn finish(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        self.inner.finish(parts)
    }
    fn predict(&self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Array2<f64>, FairnessError> {
        self.inner.predict(batch, rule)
    }
    fn features(&self, batch: &Batch, layer: crate::Layer) -> Result<ndarray::Array2<f32>, FairnessError> {
        self.inner.features(batch, layer)
    }
    fn parts(&mut self) -> Vec<crate::strategies::NamedPart<'_>> {
        self.inner.parts()
    }

    fn save(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        self.inner.save(folder, what)
    }
    fn load(&mut self, folder: &Path, what: Saved) -> Result<(), FairnessError> {
        self.inner.load(folder, what)
    }
}

/// A valley begins early and, with a tolerance of 0, ends early.
fn short_valley() -> SwadConfig {
    SwadConfig { n_converge: 2, n_tolerance: 3, tolerance_ratio: 0.02, interval: 2, ..SwadConfig::default() }
}

fn train(world: &World, config: SwadConfig, epochs: usize) -> (Recording, crate::TrainedRun) {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = Recording::new(world, config);
    let run = world.fit(&mut recording, epochs, folder.path(), &mut Silent, &AtomicBool::new(false)).unwrap();
    (recording, run)
}

#[test]
fn the_weights_are_the_plain_average_of_the_iterations_of_the_valley() {
    let world = World::new(&HeadConfig::default());
    let (recording, run) = train(&world, short_valley(), 12);
    let swad = &recording.inner;
    let (first, last) = swad.valley.segments().unwrap();
    assert!(swad.valley.counters.start.is_some() && last > first, "no valley of several segments: {first} {last}");
    // Segment k holds the iterations after evaluation k - 1 up to evaluation k.
    let begin = if first == 1 { 0 } else { recording.evaluations[first - 2] };
    let averaged = &recording.iterations[begin..recording.evaluations[last - 1]];
    let found = numbers(swad.learner.network());
    for (at, (name, found)) in found.iter().enumerate().filter(|(_, (name, _))| !is_statistic(name)) {
        for (k, found) in found.iter().enumerate() {
            let mean = averaged.iter().map(|iteration| iteration[at].1[k]).sum::<f64>() / averaged.len() as f64;
            assert!((found - mean).abs() < 1e-6, "{name}: {found} is not {mean}");
        }
    }
    let terms = &run.epochs.last().unwrap().terms;
    let expected = [1.0, first as f64, last as f64, averaged.len() as f64];
    let names = ["valley found", "first segment", "last segment", "iterations"];
    for (name, expected) in names.into_iter().zip(expected) {
        assert!((terms[&format!("swad: {name}")] - expected).abs() < 1e-12, "{name}: {terms:?}");
    }
}

#[test]
fn without_a_valley_the_last_segment_is_used_and_the_log_says_so() {
    let world = World::new(&HeadConfig::default());
    let config = SwadConfig { n_converge: 100, ..SwadConfig::default() };
    let (recording, run) = train(&world, config, 3);
    assert_eq!(run.epochs[2].terms["swad: valley found"].to_bits(), 0.0_f64.to_bits());
    let segment = &recording.iterations[recording.evaluations[1]..recording.evaluations[2]];
    let found = numbers(recording.inner.learner.network());
    let mean = segment.iter().map(|iteration| iteration[0].1[0]).sum::<f64>() / segment.len() as f64;
    assert!((found[0].1[0] - mean).abs() < 1e-6);
}

/// Stops a training after a number of steps, as Ctrl-C would.
struct StopAfter<'a>(AtomicUsize, &'a AtomicBool);

impl Observer for StopAfter<'_> {
    fn started(&mut self, _first: usize, _epochs: usize, _n_steps: usize) {}
    fn step_done(&mut self, _epoch: usize, _report: &StepReport) {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
    fn epoch_done(&mut self, _report: &EpochReport) {}
}

#[test]
fn a_training_that_was_stopped_anywhere_ends_with_the_same_bits() {
    let world = World::new(&HeadConfig::default());
    let (whole, _) = train(&world, short_valley(), 6);
    let n_steps = whole.iterations.len();
    for stopped_after in [7, 13, n_steps - 3] {
        let folder = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let mut observer = StopAfter(AtomicUsize::new(stopped_after), &stop);
        let mut stopped = Recording::new(&world, short_valley());
        world.fit(&mut stopped, 6, folder.path(), &mut observer, &stop).unwrap_err();
        let mut resumed = Recording::new(&world, short_valley());
        world.fit(&mut resumed, 6, folder.path(), &mut Silent, &AtomicBool::new(false)).unwrap();
        let counters = |recording: &Recording| recording.inner.valley.counters.clone();
        assert_eq!(counters(&resumed), counters(&whole));
        let weights = |recording: &Recording| numbers(recording.inner.learner.network());
        assert_eq!(weights(&resumed), weights(&whole), "stopped after {stopped_after} of {n_steps} steps");
    }
}

#[test]
fn averaging_leaves_the_network_alone_and_covers_running_statistics() {
    let world = World::new(&HeadConfig::default());
    let mut learner = Learner::new(&world.spec(), NETWORK).unwrap();
    let clock = Clock::default();
    let batch = world.batch(&world.train[..20], true);
    plain_step(&mut learner, NETWORK, &batch, &world.context(0, &clock)).unwrap();
    let first = numbers(learner.network());
    let mean = Weights::of(learner.network());
    plain_step(&mut learner, NETWORK, &batch, &world.context(1, &clock)).unwrap();
    let second = numbers(learner.network());
    let mean = mean.toward(&Weights::of(learner.network()), 0.25);
    assert_eq!(numbers(learner.network()), second);
    for (((name, found), (_, a)), (_, b)) in numbers(mean.module()).iter().zip(&first).zip(&second) {
        for ((found, a), b) in found.iter().zip(a).zip(b) {
            assert!((found - (0.75 * a + 0.25 * b)).abs() < 1e-6, "{name}");
        }
    }
    let written = mean.written_into(learner.network());
    assert_eq!(numbers(&written), numbers(mean.module()));
}

// From (mean 0, variance 1) one pass gives 0.1 mean and 0.9 + 0.1 variance: the statistics of each batch, computed
// independently of the code.
#[test]
fn statistics_of_batch_norm_are_means_over_the_samples_of_one_pass() {
    let world = World::new(&HeadConfig::default());
    let learner = Learner::new(&world.spec(), NETWORK).unwrap();
    let batches = [world.batch(&world.train[..30], true), world.batch(&world.train[30..40], true)];
    let of_batch = |batch: &Batch| {
        let fresh = learner.network().valid().train();
        fresh.encoder().forward(batch.pixels.clone(), &mut Noise::Off).unwrap();
        numbers(&fresh)
    };
    let (first, second) = (of_batch(&batches[0]), of_batch(&batches[1]));
    let mut statistics = Statistics::new(learner.network().valid().train());
    assert!(!statistics.is_empty());
    for batch in &batches {
        let pass =
            |network: &SurvivalNetwork| network.encoder().forward(batch.pixels.clone(), &mut Noise::Off).map(drop);
        statistics.add(batch.n(), pass).unwrap();
    }
    let before = numbers(learner.network());
    let mut n_statistics = 0;
    for (at, (name, found)) in numbers(&statistics.finish()).iter().enumerate() {
        for (k, found) in found.iter().enumerate() {
            let start = if name.ends_with("running_var") { 0.9 } else { 0.0 };
            let one = |batch: &[(String, Vec<f64>)]| (batch[at].1[k] - start) / 0.1;
            let expected = if is_statistic(name) {
                n_statistics += 1;
                0.75 * one(&first) + 0.25 * one(&second)
            } else {
                before[at].1[k]
            };
            assert!((found - expected).abs() <= 2e-5 * expected.abs().max(1.0), "{name}: {found} is not {expected}");
        }
    }
    assert_eq!(n_statistics, 2 * (32 + 32));
}

// In one batch of all rows the statistics of the first norm are those of its inputs. Rows in the order of a feature have
// almost none of its variance within batches of 64.
#[test]
fn statistics_of_batch_norm_hold_the_variance_between_neighbours_of_an_ordered_cohort() {
    let mut world = World::of(&HeadConfig::default(), 900, 0.8, 0);
    let Pixels::Table(columns) = world.batch(&world.train, false).pixels else { panic!("a table has columns") };
    let first: Vec<f64> = columns.slice([0..world.train.len(), 0..1]).into_data().iter::<f64>().collect();
    let mut order: Vec<usize> = (0..first.len()).collect();
    order.sort_by(|a, b| first[*a].total_cmp(&first[*b]));
    world.train = order.into_iter().map(|at| world.train[at]).collect();

    let mut swad = Recording::new(&world, SwadConfig::default()).inner;
    let learner = Learner::new(&world.spec(), NETWORK).unwrap();
    swad.valley.add(Weights::of(learner.network()));
    swad.valley.evaluate(1.0);
    world.with_parts(|parts| swad.finish(parts)).unwrap();

    let mut whole = Statistics::new(learner.network().clone());
    let all = world.batch(&world.train, true);
    let pass = |network: &SurvivalNetwork| network.encoder().forward(all.pixels.clone(), &mut Noise::Off).map(drop);
    whole.add(all.n(), pass).unwrap();
    let found = numbers(swad.learner.network());
    let expected = numbers(&whole.finish());
    let at = found.iter().position(|(name, _)| name.ends_with("running_var")).unwrap();
    assert_eq!(found[at].1.len(), 32);
    for (found, expected) in found[at].1.iter().zip(&expected[at].1) {
        assert!((found / expected - 1.0).abs() < 0.1, "{found} is not {expected}");
    }
}

#[test]
fn statistics_of_frozen_norms_stay() {
    let world = World::new(&HeadConfig::default());
    let learner = Learner::new(&world.spec(), NETWORK).unwrap();
    let frozen = learner.network().clone().with_encoder(learner.network().encoder().clone().with_frozen_batch_norm());
    let statistics = Statistics::new(frozen);
    assert!(statistics.is_empty());
    assert_eq!(numbers(&statistics.finish()), numbers(learner.network()));
}

#[test]
fn the_criterion_may_be_the_worst_group_and_settings_have_ranges() {
    let world = World::new(&HeadConfig::default());
    let worst = SwadConfig { criterion: SwadCriterion::WorstGroupNll, n_converge: 1, ..SwadConfig::default() };
    let (recording, run) = train(&world, SwadConfig { tolerance_ratio: 0.0, ..worst }, 1);
    let groups = &run.epochs[0].validation.groups;
    let largest = groups.iter().map(|group| group.nll).reduce(f64::max).unwrap();
    assert!(groups.len() == 2 && largest > run.epochs[0].validation.nll);
    let threshold = recording.inner.valley.counters.start.unwrap().threshold;
    assert_eq!(threshold.to_bits(), largest.to_bits());
    let message = |config: SwadConfig| config.validate().unwrap_err().to_string();
    let config = SwadConfig { n_converge: 0, ..SwadConfig::default() };
    assert_eq!(message(config), "n-converge is 0, expected at least 1");
    let config = SwadConfig { tolerance_ratio: -0.1, ..SwadConfig::default() };
    assert_eq!(message(config), "tolerance-ratio is -0.1, expected a finite number >= 0");
}

#[test]
fn curves_come_from_the_averaged_weights() {
    let world = World::new(&HeadConfig::Cox(fairtte_survival::CoxConfig::default()));
    let (mut recording, _) = train(&world, short_valley(), 5);
    let grid = PredictionGrid::at_cut_points(&world.cut_points);
    let rule = CurveRule { head: world.head.as_ref(), grid: &grid };
    let folder = tempfile::tempdir().unwrap();
    recording.save(folder.path(), Saved::Weights).unwrap();
    let mut loaded = Recording::new(&world, short_valley());
    loaded.load(folder.path(), Saved::Weights).unwrap();
    assert_eq!(world.curves(&loaded, &world.test, &rule), world.curves(&recording, &world.test, &rule));
}

// Ns + Ne evaluations: 3 + 6 = 9 at one per epoch; 9 at three per epoch (100 steps, every 40) are 3 epochs.
#[test]
fn a_training_too_short_for_a_valley_is_said_with_both_numbers() {
    let config = SwadConfig { n_converge: 3, n_tolerance: 6, ..SwadConfig::default() };
    let training = |epochs, patience| TrainingConfig { epochs, patience, ..TrainingConfig::default() };
    assert!(config.training_notes(&training(9, 9), 100).is_empty());
    let notes = config.training_notes(&training(30, 8), 100);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("`patience` = 8 gives too few evaluations (8;"), "{notes:?}");
    assert!(notes[0].contains("n-converge + n-tolerance = 9") && notes[0].contains("= 9 or more"), "{notes:?}");
    assert_eq!(config.training_notes(&training(8, 8), 100).len(), 2);
    let often = SwadConfig { interval: 40, ..config };
    assert!(often.training_notes(&training(3, 3), 100).is_empty());
    let notes = often.training_notes(&training(3, 2), 100);
    assert!(
        notes.len() == 1 && notes[0].contains("= 2 gives too few evaluations (6;") && notes[0].contains("= 3 or more")
    );
}
