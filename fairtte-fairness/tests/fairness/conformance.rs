//! One test over every strategy x head x kind of input (films, volumes, tables): it learns on a few samples, predicts the
//! same after saving and loading, and an interrupted and resumed training ends bit-identical to an uninterrupted one.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::common::{Plant, Table};
use burn::tensor::Device;
use fairtte_data::features::FeatureMatrix;
use fairtte_data::loader::Intensity;
use fairtte_data::simulated::{PictureKind, SimulationConfig};
use fairtte_data::{
    AttributeConfig, Cohort, DataConfig, FittedAttributes, ImageConfig, ImageStore, Loader, Part, Sampling, Split,
    SplitConfig, build_cohort, split_by_subject,
};
use fairtte_fairness::explain::{RiskAt, risks, risks_and_gradients};
use fairtte_fairness::strategies::{
    Cells, CfairConfig, ControlledAttributeConfig, Disentangling, DomainIndependentConfig, DroChiSquareConfig,
    EndConfig, Estimator, FairRepresentationConfig, FebsConfig, GroupDroConfig, Kernels, LaftrConfig, LnlConfig,
    OdrConfig, RebalancingMode, RecalibrationConfig, SamConfig, StepReport, SubgroupRebalancingConfig, SwadConfig,
    TrainingCells,
};
use fairtte_fairness::{
    CurveRule, EpochReport, FairnessError, LearnerSpec, NetworkSpec, Observer, OptimiserConfig, Outputs, Scoring,
    Silent, Strategy, StrategyConfig, TrainedRun, Trainer, TrainingConfig, TrainingData, predict,
};
use fairtte_metrics::{EvaluationSettings, GroupId, Groups, Reading};
use fairtte_models::{BackboneKind, EncoderConfig};
use fairtte_survival::{
    ClassifierConfig, CoxConfig, CoxTimeConfig, CutPoints, DeepHitConfig, HeadConfig, NnetSurvivalConfig, NoSettings,
    PcHazardConfig, PmfConfig, PredictionGrid, SurvivalHead,
};
use ndarray::Array2;

const SEED: u64 = 5;

/// The kind of input of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pictures(PictureKind),
    Table,
}

const FILMS: Kind = Kind::Pictures(PictureKind::Films);

enum Input {
    Images(ImageStore),
    Features(FeatureMatrix),
}

/// A small simulated cohort with its inputs.
struct Study {
    cohort: Cohort,
    input: Input,
    split: Split,
    groups: Groups,
    backbone: BackboneKind,
    channels: usize,
}

impl Study {
    fn new(folder: &Path, kind: Kind) -> Self {
        match kind {
            Kind::Pictures(kind) => Self::pictures(folder, kind),
            Kind::Table => Self::table(),
        }
    }

    fn table() -> Self {
        let table = Table::planted(160, SEED, Plant::default());
        let cohort = table.cohort();
        let split = split_by_subject(&cohort, &SplitConfig::default(), SEED).unwrap();
        let features = table.features(split.rows(Part::Train));
        let levels = ["level 0", "level 1"].map(str::to_owned).to_vec();
        Self {
            groups: Groups::new("group", levels, table.groups.clone()).unwrap(),
            backbone: BackboneKind::Mlp,
            channels: features.n_features(),
            input: Input::Features(features),
            cohort,
            split,
        }
    }

    fn pictures(folder: &Path, kind: PictureKind) -> Self {
        let size = match kind {
            PictureKind::Films => vec![16, 16],
            PictureKind::Volumes => vec![12, 12, 12],
        };
        let mut config = SimulationConfig { n_subjects: 120, ..SimulationConfig::default() };
        config.kind = kind;
        config.size.clone_from(&size);
        let adapter = DataConfig::Simulated(config).adapter(SEED, folder);
        let attributes = [AttributeConfig::new("sex")];
        let (cohort, _) = build_cohort(adapter.read().unwrap(), &attributes).unwrap();
        let image = ImageConfig { size: size.clone(), channels: 1, ..ImageConfig::default() };
        let (store, undecodable) = ImageStore::open_or_build(&cohort, &image, folder, &|_, _| {}).unwrap();
        assert!(undecodable.is_empty());
        let split = split_by_subject(&cohort, &SplitConfig::default(), SEED).unwrap();
        let fitted = FittedAttributes::fit(&attributes, &cohort, split.rows(Part::Train)).unwrap();
        let groups = fitted.all()[0].clone();
        let backbone = if size.len() == 2 { BackboneKind::Small2d } else { BackboneKind::Small3d };
        Self { cohort, input: Input::Images(store), split, groups, backbone, channels: 1 }
    }

    fn loader(&self) -> Loader<'_> {
        let membership = self.groups.membership().to_vec();
        match &self.input {
            Input::Images(store) => {
                let intensity = Intensity::fit(store, &self.cohort, self.split.rows(Part::Train)).unwrap();
                Loader::new(store, &self.cohort, membership, &intensity).unwrap()
            }
            Input::Features(features) => Loader::of_features(features, &self.cohort, membership).unwrap(),
        }
    }
}

/// The inputs of one training.
struct Bench<'a> {
    study: &'a Study,
    loader: Loader<'a>,
    membership: Vec<Option<GroupId>>,
    head: Box<dyn SurvivalHead>,
    cut_points: CutPoints,
    scoring: Scoring,
    device: Device,
}

impl<'a> Bench<'a> {
    fn new(study: &'a Study, head: &HeadConfig) -> Self {
        let train = study.split.rows(Part::Train);
        let membership = study.groups.membership().to_vec();
        let outcomes = study.cohort.outcomes(train).unwrap();
        let cut_points = CutPoints::equidistant(&outcomes, 8).unwrap();
        let grid = PredictionGrid::at_cut_points(&cut_points);
        Self {
            scoring: Scoring::new(grid, &cut_points, &EvaluationSettings::default(), &outcomes).unwrap(),
            loader: study.loader(),
            membership,
            head: head.build().unwrap(),
            cut_points,
            device: Device::flex(),
            study,
        }
    }

    fn classifier(&self, hidden: usize) -> ClassifierConfig {
        let train = self.study.cohort.outcomes(self.study.split.rows(Part::Train)).unwrap();
        // Started at equal outputs, from which six epochs suffice to show learning.
        let fitted = ClassifierConfig::for_head(self.head.as_ref(), &self.cut_points, &train, hidden).unwrap();
        ClassifierConfig { start: None, ..fitted }
    }

    fn strategy(&self, config: &StrategyConfig) -> Box<dyn Strategy> {
        let train = self.study.split.rows(Part::Train);
        let encoder = EncoderConfig { dropout: 0.1, ..EncoderConfig::new(self.study.backbone) };
        let classifier = self.classifier(encoder.hidden);
        let spec = LearnerSpec {
            network: NetworkSpec { encoder, channels: self.study.channels, classifier },
            optimiser: OptimiserConfig { learning_rate: 5e-3, ..OptimiserConfig::default() },
            seed: SEED,
            device: self.device.clone(),
            pretrained: None,
        };
        let outcomes = self.study.cohort.outcomes(train).unwrap();
        let cells = TrainingCells {
            attribute: "sex".to_owned(),
            levels: self.study.groups.levels().to_vec(),
            groups: train.iter().map(|row| self.membership[*row]).collect(),
            event: train.iter().map(|row| self.study.cohort.samples[*row].event).collect(),
            interval: self.cut_points.targets("training", outcomes.time(), outcomes.event()).unwrap().intervals.index,
            n_cut_points: self.cut_points.n(),
        };
        config.build(&spec, &cells).unwrap()
    }

    fn fit(
        &self,
        strategy: &mut dyn Strategy,
        epochs: usize,
        folder: &Path,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<TrainedRun, FairnessError> {
        let config = TrainingConfig { epochs, batch_size: 18, patience: 100, ..TrainingConfig::default() };
        let data = TrainingData {
            loader: &self.loader,
            train: self.study.split.rows(Part::Train),
            validation: self.study.split.rows(Part::Validation),
            levels: self.study.groups.levels(),
            kept_for: &[],
            outputs: Outputs { head: self.head.as_ref(), cut_points: &self.cut_points },
            scoring: &self.scoring,
            seed: SEED,
            device: &self.device,
        };
        Trainer::new(&data, &config, folder).observe(observer).stop_when(stop).fit(strategy)
    }

    fn curves(&self, strategy: &dyn Strategy) -> Array2<f64> {
        let rows = self.study.split.rows(Part::Test);
        self.try_curves(strategy, rows).unwrap()
    }

    fn try_curves(&self, strategy: &dyn Strategy, rows: &[usize]) -> Result<Array2<f64>, FairnessError> {
        let grid = PredictionGrid::at_cut_points(&self.cut_points);
        predict(strategy, &self.loader, rows, &CurveRule { head: self.head.as_ref(), grid: &grid }, &self.device)
    }
}

fn heads() -> [HeadConfig; 6] {
    [
        HeadConfig::Pmf(PmfConfig::default()),
        HeadConfig::DeepHit(DeepHitConfig::default()),
        HeadConfig::NnetSurvival(NnetSurvivalConfig::default()),
        HeadConfig::Cox(CoxConfig::default()),
        HeadConfig::CoxTime(CoxTimeConfig { controls: 3, shrink: 0.01, ..CoxTimeConfig::default() }),
        HeadConfig::PcHazard(PcHazardConfig::default()),
    ]
}

fn strategies() -> Vec<StrategyConfig> {
    vec![
        StrategyConfig::Erm(NoSettings {}),
        StrategyConfig::SubgroupRebalancing(SubgroupRebalancingConfig::default()),
        StrategyConfig::GroupDro(GroupDroConfig { eta: 0.1, ..GroupDroConfig::default() }),
        StrategyConfig::Laftr(LaftrConfig { aud_steps: 2, ..LaftrConfig::default() }),
        StrategyConfig::Cfair(CfairConfig::default()),
        StrategyConfig::Lnl(LnlConfig::default()),
        // Its priors keep the noise of the codes near 1: with their full weight six epochs are too few.
        StrategyConfig::Odr(OdrConfig { lambda_orthogonality: 0.01, gamma_entropy: 1.5, ..OdrConfig::default() }),
        StrategyConfig::FairRepresentation(FairRepresentationConfig {
            kernels: Kernels::MedianScaled,
            conditional: true,
            ..FairRepresentationConfig::default()
        }),
        StrategyConfig::End(EndConfig::default()),
        StrategyConfig::DroChiSquare(DroChiSquareConfig::default()),
        StrategyConfig::Febs(FebsConfig { decay: 0.9, ..FebsConfig::default() }),
        StrategyConfig::DomainIndependent(DomainIndependentConfig::default()),
        StrategyConfig::ControlledAttribute(ControlledAttributeConfig { min_events: 4, ..Default::default() }),
        StrategyConfig::Sam(SamConfig::default()),
        StrategyConfig::Swad(SwadConfig {
            n_converge: 2,
            n_tolerance: 6,
            tolerance_ratio: 0.3,
            interval: 3,
            ..SwadConfig::default()
        }),
        StrategyConfig::Recalibration(RecalibrationConfig::default()),
    ]
}

/// Options of the strategies that change what they compute, for one head.
fn options() -> Vec<StrategyConfig> {
    let rebalancing = |by, mode| StrategyConfig::SubgroupRebalancing(SubgroupRebalancingConfig { by, mode });
    vec![
        rebalancing(Cells::GroupXEvent, RebalancingMode::Oversample),
        rebalancing(Cells::Group, RebalancingMode::Reweigh),
        StrategyConfig::FairRepresentation(FairRepresentationConfig {
            estimator: Estimator::Unbiased,
            ..FairRepresentationConfig::default()
        }),
        StrategyConfig::End(EndConfig { disentangling: Disentangling::PairSum, ..EndConfig::default() }),
    ]
}

/// Stops a training after a number of steps, as Ctrl-C would.
struct StopAfter<'a> {
    steps: AtomicUsize,
    stop: &'a AtomicBool,
}

impl Observer for StopAfter<'_> {
    fn started(&mut self, _first: usize, _epochs: usize, _n_steps: usize) {}
    fn step_done(&mut self, _epoch: usize, _report: &StepReport) {
        if self.steps.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
    fn epoch_done(&mut self, _report: &EpochReport) {}
}

/// The risk is the one that is predicted, and its gradient along a direction is a difference of predictions: on one side at
/// least, because a unit may switch on within the step.
fn check_gradients(bench: &Bench<'_>, strategy: &dyn Strategy, name: &str) {
    let grid = PredictionGrid::at_cut_points(&bench.cut_points);
    let rule = CurveRule { head: bench.head.as_ref(), grid: &grid };
    // Between two cut points.
    let horizon = 0.4 * grid.times()[3] + 0.6 * grid.times()[4];
    let at = RiskAt { horizon, reading: Reading::Linear };
    let rows: Vec<usize> = bench.study.split.rows(Part::Test)[..6].to_vec();
    let batch = || bench.loader.batches(&rows, 6, &Sampling::Sequential, 0, 0).unwrap().next().unwrap();
    let (found, gradients) = risks_and_gradients(strategy, batch(), &rule, at, &bench.device).unwrap();
    let predicted = bench.try_curves(strategy, &rows).unwrap();
    let predicted = at.of(grid.times(), &predicted).unwrap();
    for (found, predicted) in found.iter().zip(&predicted) {
        assert!((found - predicted).abs() < 1e-5, "{name}: {found} is not {predicted}");
    }
    let n = gradients.len() / rows.len();
    // A smooth direction of its own for every sample.
    let direction: Vec<f32> = (0..gradients.len()).map(|i| ((i % n) as f32 * 0.37 + (i / n) as f32).sin()).collect();
    let moved = |step: f32| {
        let mut moved = batch();
        moved.pixels.iter_mut().zip(&direction).for_each(|(pixel, along)| *pixel += step * along);
        risks(strategy, moved, &rule, at, &bench.device).unwrap()
    };
    let of = |values: &[f32], row: usize| -> f64 {
        let range = row * n..(row + 1) * n;
        values[range.clone()].iter().zip(&direction[range]).map(|(value, along)| f64::from(value * along)).sum()
    };
    let largest = (0..rows.len()).map(|row| of(&gradients, row).abs()).fold(0.0, f64::max);
    assert!(largest > 1e-4, "{name}: the risk does not depend on the input");
    let whole = moved(0.0);
    let mut nearest = vec![f64::INFINITY; rows.len()];
    for step in [4e-3, 1e-3, 2.5e-4] {
        let (above, below) = (moved(step), moved(-step));
        for (row, nearest) in nearest.iter_mut().enumerate() {
            for difference in [above[row] - whole[row], whole[row] - below[row]] {
                *nearest = nearest.min((of(&gradients, row) - difference / f64::from(step)).abs());
            }
        }
    }
    for (row, nearest) in nearest.into_iter().enumerate() {
        let along = of(&gradients, row);
        // Curvature, and the rounding of predictions in single precision, about 1e-7 / step.
        assert!(nearest < 0.03 * largest + 5e-4, "{name}: {along} is {nearest} off");
    }
}

/// Trains every strategy with every head, saves, loads and resumes it.
fn check_every_strategy(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::new(&folder.path().join(format!("{kind:?}")), kind);
    for head in heads() {
        let bench = Bench::new(&study, &head);
        let has_options = kind == FILMS && bench.head.name() == "nnet-survival";
        let configs = strategies().into_iter().chain(if has_options { options() } else { vec![] });
        for (number, config) in configs.enumerate() {
            let name = format!("{kind:?} {} {} {number}", bench.head.name(), bench.strategy(&config).name());
            let run = folder.path().join(name.replace(' ', "-"));
            let mut whole = bench.strategy(&config);
            let never = AtomicBool::new(false);
            let trained = bench.fit(whole.as_mut(), 6, &run.join("whole"), &mut Silent, &never).unwrap();

            let losses: Vec<f64> = trained.epochs.iter().map(|epoch| epoch.train_loss).collect();
            // Single epochs of four steps are noisy; the best of the later ones must be clearly better.
            let best = losses[1..].iter().copied().fold(f64::INFINITY, f64::min);
            assert!(best < 0.95 * losses[0], "{name} does not learn: {losses:?}");
            let curves = bench.curves(whole.as_ref());
            assert_eq!(curves.dim(), (study.split.rows(Part::Test).len(), 8), "{name}");
            assert!(curves.iter().all(|s| (0.0..=1.0).contains(s)), "{name}");

            check_gradients(&bench, whole.as_ref(), &name);

            // Saved and loaded into a strategy with other weights.
            let saved = run.join("saved");
            whole.save(&saved, fairtte_fairness::strategies::Saved::Weights).unwrap();
            let mut loaded = bench.strategy(&config);
            match bench.try_curves(loaded.as_ref(), study.split.rows(Part::Test)) {
                Ok(untrained) => assert_ne!(untrained, curves, "{name}: untrained weights predict the same"),
                Err(error) => assert!(error.to_string().contains("has no baseline hazard yet"), "{name}: {error}"),
            }
            loaded.load(&saved, fairtte_fairness::strategies::Saved::Weights).unwrap();
            assert_eq!(bench.curves(loaded.as_ref()), curves, "{name}");

            // Stopped in the middle of the third epoch, then started again by the same call.
            let stop = AtomicBool::new(false);
            let n_batches = trained.epochs[0].n_steps;
            let steps = AtomicUsize::new(2 * n_batches + 2);
            let mut observer = StopAfter { steps, stop: &stop };
            let mut stopped = bench.strategy(&config);
            let error = bench.fit(stopped.as_mut(), 6, &run.join("stopped"), &mut observer, &stop).unwrap_err();
            let place = format!("in epoch 3 after batch 2 of {n_batches}");
            let message = format!("interrupted {place}; the state is saved, the same command resumes from there");
            assert_eq!(error.to_string(), message, "{name}");
            let mut resumed = bench.strategy(&config);
            bench.fit(resumed.as_mut(), 6, &run.join("stopped"), &mut Silent, &never).unwrap();
            assert_eq!(bench.curves(resumed.as_ref()), curves, "{name}: a resumed training ends with other curves");
        }
    }
}

#[test]
fn every_strategy_learns_saves_and_resumes_with_every_head_on_films() {
    check_every_strategy(FILMS);
}

#[test]
fn every_strategy_learns_saves_and_resumes_with_every_head_on_volumes() {
    check_every_strategy(Kind::Pictures(PictureKind::Volumes));
}

#[test]
fn every_strategy_learns_saves_and_resumes_with_every_head_on_tables() {
    check_every_strategy(Kind::Table);
}

#[test]
fn one_and_two_threads_train_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::new(folder.path(), FILMS);
    let bench = Bench::new(&study, &HeadConfig::NnetSurvival(NnetSurvivalConfig::default()));
    let curves = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let mut strategy = bench.strategy(&StrategyConfig::Erm(NoSettings {}));
            let run = folder.path().join(format!("{n_threads}-threads"));
            bench.fit(strategy.as_mut(), 2, &run, &mut Silent, &AtomicBool::new(false)).unwrap();
            bench.curves(strategy.as_ref())
        })
    };
    assert_eq!(curves(1), curves(2));
}

#[test]
fn a_validation_part_without_an_event_is_refused_before_training() {
    let folder = tempfile::tempdir().unwrap();
    let mut study = Study::new(folder.path(), FILMS);
    for row in study.split.rows(Part::Validation).to_vec() {
        study.cohort.samples[row].event = false;
    }
    let bench = Bench::new(&study, &HeadConfig::Pmf(PmfConfig::default()));
    let mut strategy = bench.strategy(&StrategyConfig::Erm(NoSettings {}));
    let run = folder.path().join("run");
    let error = bench.fit(strategy.as_mut(), 1, &run, &mut Silent, &AtomicBool::new(false)).unwrap_err();
    let expected = "the validation part has no observed event (samples: 24), expected at least one";
    assert_eq!(error.to_string(), expected);
    assert!(!run.exists(), "a rejected training leaves no files");
}

#[test]
fn a_damaged_checkpoint_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::new(folder.path(), FILMS);
    let bench = Bench::new(&study, &HeadConfig::Pmf(PmfConfig::default()));
    let train = |epochs| {
        let mut strategy = bench.strategy(&StrategyConfig::Erm(NoSettings {}));
        bench.fit(strategy.as_mut(), epochs, folder.path(), &mut Silent, &AtomicBool::new(false))
    };
    train(1).unwrap();
    let weights = folder.path().join("checkpoint/epoch-00001/last/network.weights.bpk");
    let bytes = std::fs::read(&weights).unwrap();
    std::fs::write(&weights, &bytes[..bytes.len() / 2]).unwrap();
    let error = train(2).unwrap_err();
    assert!(matches!(&error, FairnessError::Checkpoint { path, .. } if *path == weights), "{error}");
}

#[test]
fn a_learning_rate_that_explodes_ends_in_an_error_not_in_nan() {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::new(folder.path(), FILMS);
    let bench = Bench::new(&study, &HeadConfig::DeepHit(DeepHitConfig::default()));
    let encoder = EncoderConfig::new(BackboneKind::Small2d);
    let spec = LearnerSpec {
        network: NetworkSpec { classifier: bench.classifier(encoder.hidden), encoder, channels: 1 },
        optimiser: OptimiserConfig { learning_rate: 1e30, weight_decay: 0.0, gradient_clip: 0.0 },
        seed: SEED,
        device: Device::flex(),
        pretrained: None,
    };
    let cells = TrainingCells {
        attribute: String::new(),
        levels: vec![],
        groups: vec![None],
        event: vec![true],
        interval: vec![0],
        n_cut_points: 2,
    };
    let mut strategy = StrategyConfig::Erm(NoSettings {}).build(&spec, &cells).unwrap();
    let error = bench.fit(strategy.as_mut(), 3, folder.path(), &mut Silent, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, FairnessError::NotFinite { .. }), "{error}");
}
