//! A small made-up table with two groups, for the tests of single strategies, without random draws or files.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::Batch;
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};
use fairtte_data::features::FeatureColumn;
use fairtte_data::features::{FeatureConfig, FeatureMatrix, FeatureTable, TabularFeatures};
use fairtte_data::{Cohort, Loader, Sample, Sampling};
use fairtte_metrics::{EvaluationSettings, GroupId, Outcomes};
use fairtte_models::{BackboneKind, EncoderConfig};
use fairtte_survival::{ClassifierConfig, CutPoints, HeadConfig, PredictionGrid, SurvivalHead};
use ndarray::Array2;

use crate::strategies::{Accumulation, Clock, StepContext, TrainingCells};
use crate::{
    CurveRule, EvaluationPart, FairnessError, LearnerSpec, Monitor, NetworkSpec, Observer, OptimiserConfig, Outputs,
    Parts, Scoring, Strategy, TrainedRun, Trainer, TrainingConfig, TrainingData, predict,
};

pub(crate) const SEED: u64 = 11;
const COLUMNS: [&str; 3] = ["x0", "x1", "x2"];

/// Samples, features, groups and the three parts.
pub(crate) struct World {
    pub(crate) cohort: Cohort,
    features: FeatureMatrix,
    pub(crate) groups: Vec<Option<GroupId>>,
    pub(crate) levels: Vec<String>,
    pub(crate) train: Vec<usize>,
    pub(crate) validation: Vec<usize>,
    pub(crate) test: Vec<usize>,
    pub(crate) head: Box<dyn SurvivalHead>,
    pub(crate) cut_points: CutPoints,
    pub(crate) train_outcomes: Outcomes,
    pub(crate) validation_outcomes: Outcomes,
    pub(crate) device: Device,
}

/// Spread evenly over (0, 1), differently for every `irrational`.
fn spread(i: usize, irrational: f64) -> f64 {
    ((i as f64 + 0.5) * irrational).fract()
}

/// A third of the samples with an attribute are of group b, a fifth have none.
fn group(i: usize) -> Option<GroupId> {
    if i % 5 == 4 { None } else { Some(GroupId(u32::from(i.is_multiple_of(3)))) }
}

impl World {
    pub(crate) fn new(head: &HeadConfig) -> Self {
        Self::of(head, 180, 0.8, 0)
    }

    /// `n` samples in which x1 raises the risk of group b by as much as it lowers that of the others: `effect`.
    pub(crate) fn of(head: &HeadConfig, n: usize, effect: f64, seed: usize) -> Self {
        let first = seed * 10_007;
        let x = |i: usize, k: usize| ((first + i) as f64 * (0.7 + 0.31 * k as f64) + k as f64).sin();
        let sample = |i: usize| {
            let sign = if group(i) == Some(GroupId(1)) { -1.0 } else { 1.0 };
            let risk = 1.2 * x(i, 0) - effect * x(i, 1) * sign;
            let event_time = -spread(first + i, 0.618_033_988_75).ln() * (-risk).exp() * 2.0;
            let censored_at = 0.3 + 6.0 * spread(first + i, 0.754_877_666_25);
            Sample {
                sample_id: format!("s{i}").as_str().into(),
                subject_id: format!("p{i}").as_str().into(),
                unit: None,
                image: PathBuf::new(),
                time: event_time.min(censored_at),
                event: event_time <= censored_at,
                competing: None,
                source_row: i + 2,
            }
        };
        let cohort = Cohort {
            name: "table".to_owned(),
            time_unit: "years".to_owned(),
            source: PathBuf::from("table.csv"),
            samples: (0..n).map(sample).collect(),
            attributes: Vec::new(),
            provenance: None,
            cause: None,
        };
        let column = |k: usize| FeatureColumn {
            name: COLUMNS[k].to_owned(),
            cells: (0..n).map(|i| Some(x(i, k).to_string())).collect(),
        };
        let ids = cohort.samples.iter().map(|sample| sample.sample_id.clone()).collect();
        let table = FeatureTable::new("table.csv", ids, (2..n + 2).collect(), (0..3).map(column).collect()).unwrap();
        let numeric = COLUMNS.map(str::to_owned).to_vec();
        let part =
            |p: usize| -> Vec<usize> { (0..n).filter(|i| [0, 0, 0, 1, 0, 0, 2, 1, 0, 0, 2][i % 11] == p).collect() };
        let (train, validation, test) = (part(0), part(1), part(2));
        let config = FeatureConfig { numeric, ..FeatureConfig::default() };
        let features = TabularFeatures::fit(&table, &train, &config, &[]).unwrap().encode(&table).unwrap();
        let train_outcomes = cohort.outcomes(&train).unwrap();
        Self {
            validation_outcomes: cohort.outcomes(&validation).unwrap(),
            cut_points: CutPoints::equidistant(&train_outcomes, 6).unwrap(),
            train_outcomes,
            cohort,
            features,
            groups: (0..n).map(group).collect(),
            levels: vec!["a".to_owned(), "b".to_owned()],
            train,
            validation,
            test,
            head: head.build().unwrap(),
            device: Device::flex(),
        }
    }

    pub(crate) fn loader(&self) -> Loader<'_> {
        Loader::of_features(&self.features, &self.cohort, self.groups.clone()).unwrap()
    }

    /// A perceptron with batch norm and dropout.
    pub(crate) fn spec(&self) -> LearnerSpec {
        let encoder = EncoderConfig { dropout: 0.2, representation: 8, ..EncoderConfig::new(BackboneKind::Mlp) };
        let fitted =
            ClassifierConfig::for_head(self.head.as_ref(), &self.cut_points, &self.train_outcomes, encoder.hidden);
        LearnerSpec {
            network: NetworkSpec { encoder, channels: self.features.n_features(), classifier: fitted.unwrap() },
            optimiser: OptimiserConfig { learning_rate: 5e-3, ..OptimiserConfig::default() },
            seed: SEED,
            device: self.device.clone(),
            pretrained: None,
        }
    }

    pub(crate) fn cells(&self) -> TrainingCells {
        let outcomes = &self.train_outcomes;
        let targets = self.cut_points.targets("training", outcomes.time(), outcomes.event()).unwrap();
        TrainingCells {
            attribute: "kind".to_owned(),
            levels: self.levels.clone(),
            groups: self.train.iter().map(|row| self.groups[*row]).collect(),
            event: outcomes.event().to_vec(),
            interval: targets.intervals.index,
            n_cut_points: self.cut_points.n(),
        }
    }

    /// The batch of these rows, on the device with autodiff if it is for training.
    pub(crate) fn batch(&self, rows: &[usize], for_training: bool) -> Batch {
        let host = self.loader().batches(rows, rows.len(), &Sampling::Sequential, 0, 0).unwrap().next().unwrap();
        let device = if for_training { self.device.clone().autodiff() } else { self.device.clone() };
        Batch::from_host(host, &device).unwrap()
    }

    /// Rows of the training part of one group, or without any.
    pub(crate) fn train_rows(&self, group: Option<u32>, n: usize) -> Vec<usize> {
        let of_group = |row: &&usize| self.groups[**row] == group.map(GroupId);
        self.train.iter().filter(of_group).take(n).copied().collect()
    }

    pub(crate) fn context<'a>(&'a self, step: usize, clock: &'a Clock) -> StepContext<'a> {
        StepContext {
            outputs: Outputs { head: self.head.as_ref(), cut_points: &self.cut_points },
            seed: SEED,
            epoch: 0,
            step,
            rate: 1.0,
            accumulation: Accumulation::default(),
            loss_scale: 1.0,
            clock,
        }
    }

    pub(crate) fn with_parts<T>(&self, work: impl FnOnce(&Parts<'_>) -> T) -> T {
        let loader = self.loader();
        let (outputs, device) = (Outputs { head: self.head.as_ref(), cut_points: &self.cut_points }, &self.device);
        let train = EvaluationPart {
            loader: &loader,
            rows: &self.train,
            outcomes: &self.train_outcomes,
            outputs,
            device,
            stop: None,
        };
        let validation = EvaluationPart { rows: &self.validation, outcomes: &self.validation_outcomes, ..train };
        work(&Parts { train, validation, levels: &self.levels })
    }

    pub(crate) fn fit(
        &self,
        strategy: &mut dyn Strategy,
        epochs: usize,
        folder: &Path,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<TrainedRun, FairnessError> {
        let loader = self.loader();
        let grid = PredictionGrid::at_cut_points(&self.cut_points);
        let settings = EvaluationSettings::default();
        let scoring = Scoring::new(grid, &self.cut_points, &settings, &self.train_outcomes)?;
        let data = TrainingData {
            loader: &loader,
            train: &self.train,
            validation: &self.validation,
            levels: &self.levels,
            kept_for: &[],
            outputs: Outputs { head: self.head.as_ref(), cut_points: &self.cut_points },
            scoring: &scoring,
            seed: SEED,
            device: &self.device,
        };
        let config =
            TrainingConfig { epochs, batch_size: 20, monitor: Monitor::Nll, patience: 100, ..Default::default() };
        Trainer::new(&data, &config, folder).observe(observer).stop_when(stop).fit(strategy)
    }

    pub(crate) fn curves(&self, strategy: &dyn Strategy, rows: &[usize], rule: &CurveRule<'_>) -> Array2<f64> {
        predict(strategy, &self.loader(), rows, rule, &self.device).unwrap()
    }
}

/// All numbers of a module in order, with their names.
pub(crate) fn numbers<M: Module>(module: &M) -> Vec<(String, Vec<f64>)> {
    #[derive(Default)]
    struct Collect(Vec<String>, Vec<(String, Vec<f64>)>);
    impl ModuleVisitor for Collect {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.0.push(name.to_owned());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.0.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.1.push((self.0.join("."), param.val().into_data().iter::<f64>().collect()));
        }
    }
    let mut collect = Collect::default();
    module.valid().visit(&mut collect); // also applies the last update of running statistics
    collect.1
}

pub(crate) fn is_statistic(name: &str) -> bool {
    name.ends_with("running_mean") || name.ends_with("running_var")
}
