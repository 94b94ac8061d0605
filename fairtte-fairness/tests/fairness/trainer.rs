//! The training loop, on columns of a table: gradient accumulation, schedules, states in the middle of an epoch, and the
//! weights that selection rules choose.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use burn::tensor::Device;
use fairtte_data::adapters::{Tabular, TabularConfig};
use fairtte_data::features::{FeatureMatrix, TabularFeatures};
use fairtte_data::loader::PixelTransform;
use fairtte_data::{
    AttributeConfig, Cohort, DataConfig, FittedAttributes, Loader, Part, Split, SplitConfig, build_cohort,
    split_by_subject,
};
use fairtte_fairness::strategies::{GroupDroConfig, NamedPart, SamConfig, StepContext, StepReport, TrainingCells};
use fairtte_fairness::{
    Batch, CosineSchedule, CurveRule, EpochReport, EpochRule, FairnessError, Layer, LearnerSpec, Monitor, NetworkSpec,
    Observer, OptimiserConfig, Outputs, Parts, ScheduleConfig, Scoring, Strategy, StrategyConfig, TrainedRun, Trainer,
    TrainingConfig, TrainingData, predict, use_epoch,
};
use fairtte_metrics::{CensoringCurve, CensoringTies, EvaluationSettings, GroupId, Groups, SurvivalCurves, evaluate};
use fairtte_models::{BackboneKind, EncoderConfig, Precision};
use fairtte_survival::{
    ClassifierConfig, CoxConfig, CutPoints, HeadConfig, NnetSurvivalConfig, NoSettings, PredictionGrid, SurvivalHead,
};
use ndarray::Array2;

const SEED: u64 = 3;

/// 160 subjects in two groups, whose time depends on two columns.
struct Study {
    cohort: Cohort,
    features: FeatureMatrix,
    split: Split,
    groups: Groups,
    membership: Vec<Option<GroupId>>,
    head: Box<dyn SurvivalHead>,
    cut_points: CutPoints,
    scoring: Scoring,
    device: Device,
}

impl Study {
    fn new(folder: &Path) -> Self {
        let mut text = "pid,time,event,sex,a,b\n".to_owned();
        for i in 0..160_u32 {
            let (a, b, sex) = (i * 37 % 101, i * 53 % 97, i % 3 % 2);
            let time = 20.0 - 0.1 * f64::from(a) + 0.05 * f64::from(b * sex);
            writeln!(text, "p{i},{time:.3},{},{},{a},{b}", u8::from(i % 4 != 0), ["F", "M"][sex as usize]).unwrap();
        }
        let table = folder.join("people.csv");
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(&table, text).unwrap();
        let json = serde_json::json!({ "table": table, "subject": "pid", "features": "all" });
        let config: TabularConfig = serde_json::from_value(json).unwrap();
        let adapter = DataConfig::Tabular(config.clone()).adapter(SEED, folder);
        let attributes = [AttributeConfig::new("sex")];
        let (cohort, _) = build_cohort(adapter.read().unwrap(), &attributes).unwrap();
        let split = split_by_subject(&cohort, &SplitConfig::default(), SEED).unwrap();
        let train = split.rows(Part::Train);
        let table = Tabular::new(config.clone()).features().unwrap().aligned(&cohort).unwrap();
        let fitted = TabularFeatures::fit(&table, train, &config.feature_config(), &["sex"]).unwrap();
        let groups = FittedAttributes::fit(&attributes, &cohort, train).unwrap().all()[0].clone();
        let outcomes = cohort.outcomes(train).unwrap();
        let cut_points = CutPoints::equidistant(&outcomes, 8).unwrap();
        let grid = PredictionGrid::at_cut_points(&cut_points);
        let scoring = Scoring::new(grid, &cut_points, &EvaluationSettings::default(), &outcomes).unwrap();
        Self {
            features: fitted.encode(&table).unwrap(),
            membership: groups.membership().to_vec(),
            head: HeadConfig::NnetSurvival(NnetSurvivalConfig::default()).build().unwrap(),
            device: Device::flex(),
            cohort,
            split,
            groups,
            cut_points,
            scoring,
        }
    }

    /// A network without batch norm and dropout: the loss of a batch is the mean over its samples.
    fn strategy(&self, config: &StrategyConfig) -> Box<dyn Strategy> {
        let train = self.split.rows(Part::Train);
        let outcomes = self.cohort.outcomes(train).unwrap();
        let mut encoder = EncoderConfig { dropout: 0.0, ..EncoderConfig::new(BackboneKind::Mlp) };
        let mut mlp = encoder.mlp.unwrap_or_default();
        mlp.batch_norm = false;
        encoder.mlp = Some(mlp);
        let classifier = ClassifierConfig::for_head(self.head.as_ref(), &self.cut_points, &outcomes, 16).unwrap();
        let spec = LearnerSpec {
            network: NetworkSpec { encoder, channels: self.features.n_features(), classifier },
            optimiser: OptimiserConfig { learning_rate: 5e-3, ..OptimiserConfig::default() },
            seed: SEED,
            device: self.device.clone(),
            pretrained: None,
        };
        let cells = TrainingCells {
            attribute: "sex".to_owned(),
            levels: self.groups.levels().to_vec(),
            groups: train.iter().map(|row| self.membership[*row]).collect(),
            event: outcomes.event().to_vec(),
            interval: self.cut_points.targets("training", outcomes.time(), outcomes.event()).unwrap().intervals.index,
            n_cut_points: self.cut_points.n(),
        };
        config.build(&spec, &cells).unwrap()
    }

    fn with_data<T>(&self, work: impl FnOnce(&TrainingData<'_>) -> T) -> T {
        self.with_groups(&self.groups, &[], work)
    }

    /// The data with other groups, and with attributes for which epochs are kept.
    fn with_groups<T>(&self, groups: &Groups, kept_for: &[Groups], work: impl FnOnce(&TrainingData<'_>) -> T) -> T {
        let loader = Loader::of_features(&self.features, &self.cohort, groups.membership().to_vec()).unwrap();
        work(&TrainingData {
            loader: &loader,
            train: self.split.rows(Part::Train),
            validation: self.split.rows(Part::Validation),
            levels: groups.levels(),
            kept_for,
            outputs: Outputs { head: self.head.as_ref(), cut_points: &self.cut_points },
            scoring: &self.scoring,
            seed: SEED,
            device: &self.device,
        })
    }

    fn train(&self, strategy: &mut dyn Strategy, config: &TrainingConfig, folder: &Path) -> TrainedRun {
        let never = AtomicBool::new(false);
        self.with_data(|data| Trainer::new(data, config, folder).stop_when(&never).fit(strategy)).unwrap()
    }

    fn curves(&self, strategy: &dyn Strategy, part: Part) -> Array2<f64> {
        let rule = CurveRule { head: self.head.as_ref(), grid: self.scoring.grid() };
        self.with_data(|data| predict(strategy, data.loader, self.split.rows(part), &rule, data.device)).unwrap()
    }
}

fn erm() -> StrategyConfig {
    StrategyConfig::Erm(NoSettings {})
}

fn config(epochs: usize, batch_size: usize, accumulate: usize) -> TrainingConfig {
    TrainingConfig { epochs, batch_size, accumulate, patience: 100, ..TrainingConfig::default() }
}

#[test]
fn several_batches_make_the_step_of_one_large_batch() {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::new(folder.path());
    assert_eq!(study.split.rows(Part::Train).len(), 96);
    let curves = |name: &str, batch_size, accumulate| {
        let mut strategy = study.strategy(&erm());
        study.train(strategy.as_mut(), &config(2, batch_size, accumulate), &folder.path().join(name));
        study.curves(strategy.as_ref(), Part::Test)
    };
    let large = curves("large", 48, 1);
    let distance = |other: &Array2<f64>| (&large - other).mapv(f64::abs).fold(0.0, |a: f64, b| a.max(*b));
    let together = distance(&curves("together", 12, 4));
    let apart = distance(&curves("apart", 12, 1));
    // Sums in another order, in 32 bits; AdamW divides by the size of the gradient.
    assert!(together < 1e-5, "{together}");
    assert!(apart > 100.0 * together && apart > 1e-3, "{apart} beside {together}");
}

/// Stops a training after a number of batches.
struct StopAfter<'a> {
    n: usize,
    stop: &'a AtomicBool,
}

impl Observer for StopAfter<'_> {
    fn started(&mut self, _first: usize, _epochs: usize, _n_steps: usize) {}
    fn step_done(&mut self, _epoch: usize, _report: &StepReport) {
        self.n = self.n.saturating_sub(1);
        if self.n == 0 {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
    fn epoch_done(&mut self, _report: &EpochReport) {}
}

// 96 samples in batches of 10 are ten batches (9 of 10, one of 6): steps of 4, 4 and 2 batches.
#[test]
fn a_training_stopped_anywhere_ends_its_step_and_goes_on_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::new(folder.path());
    let dro = StrategyConfig::GroupDro(GroupDroConfig { eta: 0.5, ..GroupDroConfig::default() });
    let cosine = ScheduleConfig::Cosine(CosineSchedule { warm_up: 3, floor: 0.1 });
    for (name, strategy) in [("erm", erm()), ("dro", dro)] {
        let config = TrainingConfig { schedule: cosine, ..config(3, 10, 4) };
        let mut whole = study.strategy(&strategy);
        let trained = study.train(whole.as_mut(), &config, &folder.path().join(name));
        let expected = study.curves(whole.as_ref(), Part::Test);
        for (n, after) in [(1, 4), (4, 4), (5, 8), (9, 10), (10, 10), (13, 4), (28, 8)] {
            let run = folder.path().join(format!("{name}-{n}"));
            let stop = AtomicBool::new(false);
            let mut stopped = study.strategy(&strategy);
            let mut observer = StopAfter { n, stop: &stop };
            let error = study
                .with_data(|data| {
                    Trainer::new(data, &config, &run).observe(&mut observer).stop_when(&stop).fit(stopped.as_mut())
                })
                .unwrap_err();
            let place = |e: &FairnessError| match e {
                FairnessError::Interrupted { epoch, step, n_steps } => (*epoch, *step, *n_steps),
                other => panic!("{other}"),
            };
            assert_eq!(place(&error), (1 + (n - 1) / 10, after, 10), "{name} after {n}");
            let mut resumed = study.strategy(&strategy);
            let again = study.train(resumed.as_mut(), &config, &run);
            assert_eq!(study.curves(resumed.as_ref(), Part::Test), expected, "{name} after {n}");
            for (one, other) in again.epochs.iter().zip(&trained.epochs) {
                assert_eq!((one.train_loss, one.n_steps, &one.validation), (other.train_loss, 10, &other.validation));
                assert_eq!(one.watched, other.watched, "{name} after {n}");
            }
        }
    }
}

/// A strategy during whose validation of one epoch a stop is requested.
struct StopInValidation<'a> {
    inner: Box<dyn Strategy>,
    stop: &'a AtomicBool,
    /// Validations until then.
    n: usize,
}

impl Strategy for StopInValidation<'_> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn step(&mut self, batch: &Batch, context: &StepContext<'_>) -> Result<StepReport, FairnessError> {
        self.inner.step(batch, context)
    }
    fn before_validation(&mut self, parts: &Parts<'_>) -> Result<(), FairnessError> {
        self.n -= 1;
        self.stop.store(self.n == 0, Ordering::Relaxed);
        self.inner.before_validation(parts)
    }
    fn predict(&self, batch: &Batch, rule: &CurveRule<'_>) -> Result<Array2<f64>, FairnessError> {
        assert!(self.n > 0, "a batch was predicted after the stop was requested");
        self.inner.predict(batch, rule)
    }
    fn features(&self, batch: &Batch, layer: Layer) -> Result<Array2<f32>, FairnessError> {
        self.inner.features(batch, layer)
    }
    fn parts(&mut self) -> Vec<NamedPart<'_>> {
        self.inner.parts()
    }
}

#[test]
fn a_stop_during_a_validation_ends_the_pass_and_the_same_bits_follow() {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::new(folder.path());
    let config = config(3, 10, 4);
    let mut whole = study.strategy(&erm());
    let trained = study.train(whole.as_mut(), &config, &folder.path().join("whole"));
    for n in [1, 3] {
        let (run, stop) = (folder.path().join(format!("stopped-{n}")), AtomicBool::new(false));
        let mut stopped = StopInValidation { inner: study.strategy(&erm()), stop: &stop, n };
        let error =
            study.with_data(|data| Trainer::new(data, &config, &run).stop_when(&stop).fit(&mut stopped)).unwrap_err();
        assert!(
            matches!(error, FairnessError::Interrupted { epoch, step: 10, n_steps: 10 } if epoch == n),
            "{error} in validation {n}"
        );
        let mut resumed = study.strategy(&erm());
        let again = study.train(resumed.as_mut(), &config, &run);
        let losses = |run: &TrainedRun| -> Vec<(f64, usize)> {
            run.epochs.iter().map(|epoch| (epoch.train_loss, epoch.n_steps)).collect()
        };
        assert_eq!(losses(&again), losses(&trained), "validation {n}");
        assert_eq!(study.curves(resumed.as_ref(), Part::Test), study.curves(whole.as_ref(), Part::Test));
    }
}

#[test]
fn a_stop_ends_the_pass_that_fits_a_baseline_and_the_same_bits_follow() {
    let folder = tempfile::tempdir().unwrap();
    let mut study = Study::new(folder.path());
    study.head = HeadConfig::Cox(CoxConfig::default()).build().unwrap();
    let config = config(2, 24, 1);
    let mut whole = study.strategy(&erm());
    study.train(whole.as_mut(), &config, &folder.path().join("whole"));
    let made = Arc::new(AtomicUsize::new(0));
    let loader = Loader::of_features(&study.features, &study.cohort, study.membership.clone()).unwrap();
    let loader = loader.with_transform(Box::new(Made(Arc::clone(&made))));
    let (run, stop) = (folder.path().join("stopped"), AtomicBool::new(false));
    let mut stopped = StopInValidation { inner: study.strategy(&erm()), stop: &stop, n: 1 };
    let fit = |data: &TrainingData<'_>| {
        let data = TrainingData { loader: &loader, ..*data };
        Trainer::new(&data, &config, &run).stop_when(&stop).fit(&mut stopped).unwrap_err()
    };
    let error = study.with_data(fit);
    assert!(matches!(error, FairnessError::Interrupted { epoch: 1, step: 4, n_steps: 4 }), "{error}");
    // The steps of the epoch, and of the pass of 96 samples the batch of 64 before which the stop is seen.
    assert_eq!(made.load(Ordering::SeqCst), N_TRAIN + 64);
    let mut resumed = study.strategy(&erm());
    study.train(resumed.as_mut(), &config, &run);
    assert_eq!(study.curves(resumed.as_ref(), Part::Test), study.curves(whole.as_ref(), Part::Test));
}

#[test]
fn the_schedule_reaches_the_optimiser() {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::new(folder.path());
    let train = |name: &str, schedule| {
        let mut strategy = study.strategy(&erm());
        let config = TrainingConfig { schedule, ..config(2, 24, 2) };
        let rates = study.train(strategy.as_mut(), &config, &folder.path().join(name)).epochs;
        (study.curves(strategy.as_ref(), Part::Test), rates.iter().map(|epoch| epoch.rate).collect::<Vec<_>>())
    };
    let (constant, rates) = train("constant", ScheduleConfig::default());
    assert_eq!(rates, [1.0, 1.0]);
    let slow = ScheduleConfig::Cosine(CosineSchedule { warm_up: 1_000_000_000, floor: 0.0 });
    let (slow, rates) = train("slow", slow);
    assert_eq!(rates, [2e-9, 4e-9], "two steps an epoch");
    let fresh = study.curves(study.strategy(&erm()).as_ref(), Part::Test);
    let distance = |a: &Array2<f64>| (a - &fresh).mapv(f64::abs).fold(0.0, |a: f64, b| a.max(*b));
    assert!(distance(&slow) < 1e-6 && distance(&constant) > 1e-2, "{} {}", distance(&slow), distance(&constant));
}

/// Folders below `checkpoint`.
fn states(run: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(run.join("checkpoint")).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Records the checkpoints between batches.
struct Look {
    run: PathBuf,
    seen: Vec<Vec<String>>,
}

impl Observer for Look {
    fn started(&mut self, _first: usize, _epochs: usize, _n_steps: usize) {}
    fn step_done(&mut self, _epoch: usize, _report: &StepReport) {
        let checkpoint = self.run.join("checkpoint");
        self.seen.push(if checkpoint.exists() { states(&self.run) } else { Vec::new() });
    }
    fn epoch_done(&mut self, _report: &EpochReport) {
        self.seen.push(states(&self.run));
    }
}

#[test]
fn checkpoints_by_the_clock_stand_between_steps_and_are_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::new(folder.path());
    let config = TrainingConfig { checkpoint_minutes: 1e-9, ..config(1, 24, 2) };
    let mut look = Look { run: folder.path().to_owned(), seen: Vec::new() };
    let mut strategy = study.strategy(&erm());
    let never = AtomicBool::new(false);
    study
        .with_data(|data| {
            Trainer::new(data, &config, folder.path()).observe(&mut look).stop_when(&never).fit(strategy.as_mut())
        })
        .unwrap();
    let middle = vec!["epoch-00000-batch-0000002".to_owned()];
    assert_eq!(look.seen, [vec![], vec![], middle.clone(), middle, vec!["epoch-00001".to_owned()]]);
    let run = folder.path().join("never");
    let config = TrainingConfig { checkpoint_minutes: 0.0, ..config };
    let mut look = Look { run: run.clone(), seen: Vec::new() };
    let mut strategy = study.strategy(&erm());
    study
        .with_data(|data| Trainer::new(data, &config, &run).observe(&mut look).stop_when(&never).fit(strategy.as_mut()))
        .unwrap();
    let ends = vec!["epoch-00001".to_owned()];
    assert_eq!(look.seen, [vec![], vec![], vec![], vec![], ends], "0 minutes: at the end of epochs only");
}

/// Counts the samples that were made.
#[derive(Debug)]
struct Made(Arc<AtomicUsize>);

impl PixelTransform for Made {
    fn apply(&self, _row: usize, _epoch: u64, _intensities: &mut [f32], _shape: &[usize]) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Samples of the training part.
const N_TRAIN: usize = 96;

/// Records how many samples were made at the end of every step, which waits until there are `wanted` more than those of the
/// steps so far, if the epoch has them.
struct Pace {
    made: Arc<AtomicUsize>,
    batch_size: usize,
    wanted: usize,
    ahead: Vec<usize>,
}

impl Observer for Pace {
    fn started(&mut self, _first: usize, _epochs: usize, _n_steps: usize) {}
    fn step_done(&mut self, _epoch: usize, _report: &StepReport) {
        let used = (self.ahead.len() + 1) * self.batch_size;
        let clock = Instant::now();
        let wanted = (used + self.wanted).min(N_TRAIN);
        while self.made.load(Ordering::SeqCst) < wanted && clock.elapsed() < Duration::from_mins(1) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.ahead.push(self.made.load(Ordering::SeqCst) - used);
    }
    fn epoch_done(&mut self, _report: &EpochReport) {}
}

// In batches of 12: at the end of step k, counted from 1, the epoch has 8 - k further batches.
#[test]
fn while_a_batch_is_computed_the_next_ones_are_made_and_no_more_than_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::new(folder.path());
    let ahead = |n: usize| {
        let made = Arc::new(AtomicUsize::new(0));
        let mut pace = Pace { made: made.clone(), batch_size: 12, wanted: 12 * n, ahead: Vec::new() };
        let loader = Loader::of_features(&study.features, &study.cohort, study.membership.clone()).unwrap();
        let loader = loader.with_transform(Box::new(Made(made)));
        let config = TrainingConfig { prefetch: Some(n), ..config(1, 12, 1) };
        let mut strategy = study.strategy(&erm());
        study
            .with_data(|data| {
                let data = TrainingData { loader: &loader, ..*data };
                let run = folder.path().join(n.to_string());
                Trainer::new(&data, &config, &run).observe(&mut pace).fit(strategy.as_mut())
            })
            .unwrap();
        pace.ahead
    };
    assert_eq!(ahead(0), [0; 8]);
    assert_eq!(ahead(2), [24, 24, 24, 24, 24, 24, 12, 0]);
}

// A strategy that reads no groups: what one training keeps for two attributes is what two trainings keep for one each.
#[test]
fn one_training_keeps_for_every_attribute_what_a_training_for_it_alone_keeps() {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::new(folder.path());
    let half = (0..study.cohort.n()).map(|row| Some(GroupId(u32::try_from(row * 7 / 5 % 2).unwrap()))).collect();
    let half = Groups::new("half", vec!["first".to_owned(), "second".to_owned()], half).unwrap();
    let choices = |name: &str, groups: &Groups, kept_for: &[Groups]| {
        let mut strategy = study.strategy(&erm());
        let config = config(12, 12, 1);
        let folder = folder.path().join(name);
        let fit = |data: &TrainingData<'_>| Trainer::new(data, &config, &folder).fit(strategy.as_mut()).unwrap();
        let trained = study.with_groups(groups, kept_for, fit);
        let choices = trained.choices.into_iter().map(|(rule, choice)| (rule.name(), choice));
        choices.collect::<std::collections::BTreeMap<_, _>>()
    };
    let both = choices("both", &study.groups, &[study.groups.clone(), half.clone()]);
    assert_eq!(both.len(), 12, "{:?}", both.keys());
    let mut differing = 0;
    for (name, groups) in [("sex", &study.groups), ("half", &half)] {
        let alone = choices(name, groups, &[]);
        assert_eq!(alone.len(), 8);
        for (rule, choice) in &alone {
            let compares_groups = rule.starts_with("gap-") || rule.starts_with("worst-");
            let named = if compares_groups { format!("{rule}@{name}") } else { rule.clone() };
            let kept = &both[&named];
            assert_eq!((kept.epoch, kept.value), (choice.epoch, choice.value), "{named}");
            // The gap beside a rule that compares no groups is that of the first attribute.
            assert!(kept.gap == choice.gap || (name == "half" && !compares_groups), "{named}");
            let other = both.get(&format!("{rule}@sex"));
            differing += usize::from(name == "half" && other.is_some_and(|other| other.gap != choice.gap));
        }
    }
    assert!(differing > 0, "the gaps of both attributes are equal");
}

#[test]
fn the_weights_of_every_choice_are_kept_and_give_the_value_they_were_chosen_for() {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::new(folder.path());
    let mut strategy = study.strategy(&erm());
    let trained = study.train(strategy.as_mut(), &config(12, 12, 1), folder.path());
    assert_eq!(trained.choices.len(), EpochRule::all(&[]).len(), "{:?}", trained.choices);
    let epochs: std::collections::BTreeSet<usize> = trained.choices.values().map(|choice| choice.epoch).collect();
    assert!(epochs.len() > 1, "every rule chooses epoch {epochs:?}");
    let rows = study.split.rows(Part::Validation);
    let (outcomes, subjects) = (study.cohort.outcomes(rows).unwrap(), study.cohort.subjects(rows));
    let train = study.cohort.outcomes(study.split.rows(Part::Train)).unwrap();
    let censoring = CensoringCurve::fit(&train, CensoringTies::EventsFirst).unwrap();
    let membership = rows.iter().map(|row| study.membership[*row]).collect();
    let groups = Groups::new("sex", study.groups.levels().to_vec(), membership).unwrap();
    let settings = EvaluationSettings { replicates: 0, ..EvaluationSettings::default() };
    for (rule, choice) in &trained.choices {
        study.with_data(|data| use_epoch(strategy.as_mut(), data, folder.path(), choice.epoch)).unwrap();
        let curves = study.curves(strategy.as_ref(), Part::Validation);
        let curves = SurvivalCurves::new(study.scoring.grid().times().to_vec(), curves).unwrap();
        let report =
            evaluate(&subjects, &outcomes, &curves, &censoring, std::slice::from_ref(&groups), &settings).unwrap();
        let metric = |name: &str| report.metric(name).unwrap();
        let (value, gap) = match rule.name().trim_start_matches("gap-") {
            "c-td" => {
                (metric("c_td_antolini_strict").overall.value, metric("c_td_antolini_strict").attributes[0].gap.value)
            }
            "auc-td" => (metric("auc_td").overall.value, metric("auc_td").attributes[0].gap.value),
            "ibs" => (metric("ibs").overall.value, metric("ibs").attributes[0].gap.value),
            "worst-group-c-td" => (metric("c_td_antolini_strict").attributes[0].worst.value, None),
            _ => continue,
        };
        assert_eq!((Some(choice.value), choice.gap), (value, gap), "{}", rule.name());
    }
    let error = study.with_data(|data| use_epoch(strategy.as_mut(), data, folder.path(), 99)).unwrap_err();
    assert!(matches!(error, FairnessError::Checkpoint { .. }), "{error}");
}

#[test]
fn what_a_report_contains_does_not_change_how_epochs_are_scored() {
    let folder = tempfile::tempdir().unwrap();
    let mut study = Study::new(folder.path());
    let choices = |study: &Study, name: &str| {
        let config = TrainingConfig { monitor: Monitor::CTd, ..config(4, 12, 1) };
        let trained = study.train(study.strategy(&erm()).as_mut(), &config, &folder.path().join(name));
        format!("{:?}", trained.choices)
    };
    let usual = choices(&study, "usual");
    let train = study.cohort.outcomes(study.split.rows(Part::Train)).unwrap();
    let settings = EvaluationSettings {
        metrics: vec!["d-calibration".to_owned()],
        permutations: 0,
        thresholds: vec![0.2],
        ..EvaluationSettings::default()
    };
    study.scoring = Scoring::new(study.scoring.grid().clone(), &study.cut_points, &settings, &train).unwrap();
    assert_eq!(choices(&study, "other"), usual);
}

/// Multiplies what the network reads.
#[derive(Debug)]
struct Times(f32);

impl PixelTransform for Times {
    fn apply(&self, _row: usize, _epoch: u64, intensities: &mut [f32], _shape: &[usize]) {
        for value in intensities {
            *value *= self.0;
        }
    }
}

/// Counts the batches that are to come, those that made a step and those that made none.
#[derive(Debug, Default)]
struct Batches {
    expected: usize,
    stepped: usize,
    skipped: usize,
}

impl Observer for Batches {
    fn started(&mut self, first: usize, epochs: usize, n_steps: usize) {
        self.expected = (epochs - first) * n_steps;
    }

    fn step_done(&mut self, _epoch: usize, _report: &StepReport) {
        self.stepped += 1;
    }

    fn batch_skipped(&mut self, _epoch: usize) {
        self.skipped += 1;
    }
}

// Features of a few hundreds times gradients of losses times 65,536 are beyond f16, and are not if the factor is small enough.
#[test]
fn a_step_that_overflows_in_f16_is_left_out_and_halves_the_factor_also_across_a_resumption() {
    // Of `sam` both gradients of a step can overflow; what the first leads to is then NaN.
    for strategy in [erm(), StrategyConfig::Sam(SamConfig::default())] {
        overflowing_in_f16(&strategy);
    }
}

fn overflowing_in_f16(strategy: &StrategyConfig) {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::new(folder.path());
    let loader = Loader::of_features(&study.features, &study.cohort, study.membership.clone()).unwrap();
    let loader = loader.with_transform(Box::new(Times(300.0)));
    let train = |run: &str, epochs: usize, precision: Precision| {
        let mut strategy = study.strategy(strategy);
        let config = TrainingConfig { precision, ..config(epochs, 12, 1) };
        let fit = |data: &TrainingData<'_>| {
            let data = TrainingData { loader: &loader, ..*data };
            let mut seen = Batches::default();
            let path = folder.path().join(run);
            let trained = Trainer::new(&data, &config, &path).observe(&mut seen).fit(strategy.as_mut()).unwrap();
            (trained, seen)
        };
        let (trained, seen) = study.with_data(fit);
        assert_eq!(seen.stepped + seen.skipped, seen.expected, "a progress bar ends at its end");
        (trained, study.curves(strategy.as_ref(), Part::Test))
    };
    let (whole, expected) = train("whole", 4, Precision::F16);
    let terms = |epoch: usize| &whole.epochs[epoch].terms;
    let left_out = terms(3)["steps left out"];
    assert!((1.0..16.0).contains(&left_out), "{left_out} of 32 steps");
    assert!((terms(3)["loss scale"] - 65_536.0 / left_out.exp2()).abs() < 1e-9);
    assert!(whole.epochs.iter().all(|epoch| epoch.train_loss.is_finite() && epoch.train_loss > 0.0));
    train("halves", 1, Precision::F16);
    let (halves, curves) = train("halves", 4, Precision::F16);
    assert_eq!(curves, expected, "the factor is part of the state");
    assert_eq!(halves.epochs[3].terms, whole.epochs[3].terms);
    // bf16 has the range of f32: nothing is scaled or left out.
    let (range, _) = train("range", 1, Precision::Bf16);
    assert!(!range.epochs[0].terms.contains_key("loss scale"));
}
