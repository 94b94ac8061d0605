//! The table of `golden/steps/table.json` as a cohort in two parts, with the network of the worked steps.

use std::path::PathBuf;

use burn::tensor::Device;
use fairtte_data::features::FeatureColumn;
use fairtte_data::features::{FeatureConfig, FeatureMatrix, FeatureTable, TabularFeatures};
use fairtte_data::{Cohort, Loader, Sample, Sampling};
use fairtte_fairness::Batch;
use fairtte_fairness::strategies::{Accumulation, Clock, StepContext, TrainingCells};
use fairtte_fairness::{EvaluationPart, LearnerSpec, NetworkSpec, OptimiserConfig, Outputs, Parts};
use fairtte_metrics::{GroupId, Outcomes};
use fairtte_models::{BackboneKind, EncoderConfig, MlpConfig};
use fairtte_survival::{ClassifierConfig, CutPoints, HeadConfig, SurvivalHead};
use serde::Deserialize;

#[derive(Deserialize)]
pub struct Table {
    pub batches: Vec<Vec<usize>>,
    columns: Vec<String>,
    x: Vec<Vec<f64>>,
    time: Vec<f64>,
    event: Vec<bool>,
    group: Vec<Option<u32>>,
    levels: Vec<String>,
    n_train: usize,
    n_cut_points: usize,
}

pub fn table() -> Table {
    super::golden("table")
}

/// The same samples with a class as the outcome of one interval.
pub fn class_table() -> Table {
    super::golden("class/table")
}

pub struct World {
    cohort: Cohort,
    features: FeatureMatrix,
    groups: Vec<Option<GroupId>>,
    levels: Vec<String>,
    train: Vec<usize>,
    validation: Vec<usize>,
    train_outcomes: Outcomes,
    validation_outcomes: Outcomes,
    pub head: Box<dyn SurvivalHead>,
    pub cut_points: CutPoints,
    seed: u64,
    device: Device,
}

impl World {
    pub fn new(table: Table, head: &HeadConfig, seed: u64) -> Self {
        let n = table.time.len();
        let sample = |i: usize| Sample {
            sample_id: format!("s{i}").as_str().into(),
            subject_id: format!("p{i}").as_str().into(),
            unit: None,
            image: PathBuf::new(),
            time: table.time[i],
            event: table.event[i],
            competing: None,
            source_row: i + 2,
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
        let (train, validation): (Vec<usize>, Vec<usize>) = (0..n).partition(|row| *row < table.n_train);
        let train_outcomes = cohort.outcomes(&train).unwrap();
        Self {
            features: features(&table, &cohort, &train),
            groups: table.group.iter().map(|group| group.map(GroupId)).collect(),
            levels: table.levels,
            validation_outcomes: cohort.outcomes(&validation).unwrap(),
            cut_points: if table.n_cut_points == 2 {
                CutPoints::of_class()
            } else {
                CutPoints::equidistant(&train_outcomes, table.n_cut_points).unwrap()
            },
            head: head.build().unwrap(),
            device: Device::flex(),
            cohort,
            train,
            validation,
            train_outcomes,
            seed,
        }
    }

    pub fn loader(&self) -> Loader<'_> {
        Loader::of_features(&self.features, &self.cohort, self.groups.clone()).unwrap()
    }

    /// One layer of 5 nodes with batch norm, a representation of 4 without dropout, a hidden layer of 4 in the classifier.
    pub fn spec(&self, optimiser: OptimiserConfig) -> LearnerSpec {
        let mlp = MlpConfig { widths: vec![5], dropout: 0.0, batch_norm: true };
        let encoder = EncoderConfig {
            representation: 4,
            dropout: 0.0,
            hidden: 4,
            mlp: Some(mlp),
            ..EncoderConfig::new(BackboneKind::Mlp)
        };
        let fitted =
            ClassifierConfig::for_head(self.head.as_ref(), &self.cut_points, &self.train_outcomes, encoder.hidden);
        LearnerSpec {
            network: NetworkSpec { encoder, channels: self.features.n_features(), classifier: fitted.unwrap() },
            optimiser,
            seed: self.seed,
            device: self.device.clone(),
            pretrained: None,
        }
    }

    pub fn cells(&self) -> TrainingCells {
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

    pub fn batch(&self, rows: &[usize], for_training: bool) -> Batch {
        let host = self.loader().batches(rows, rows.len(), &Sampling::Sequential, 0, 0).unwrap().next().unwrap();
        let device = if for_training { self.device.clone().autodiff() } else { self.device.clone() };
        Batch::from_host(host, &device).unwrap()
    }

    pub fn context<'a>(&'a self, step: usize, clock: &'a Clock) -> StepContext<'a> {
        StepContext {
            outputs: Outputs { head: self.head.as_ref(), cut_points: &self.cut_points },
            seed: self.seed,
            epoch: 0,
            step,
            rate: 1.0,
            accumulation: Accumulation::default(),
            loss_scale: 1.0,
            clock,
        }
    }

    pub fn with_parts<T>(&self, work: impl FnOnce(&Parts<'_>) -> T) -> T {
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
}

fn features(table: &Table, cohort: &Cohort, train: &[usize]) -> FeatureMatrix {
    let column = |k: usize| FeatureColumn {
        name: table.columns[k].clone(),
        cells: table.x.iter().map(|row| Some(row[k].to_string())).collect(),
    };
    let ids = cohort.samples.iter().map(|sample| sample.sample_id.clone()).collect();
    let source_rows = (2..table.x.len() + 2).collect();
    let columns = (0..table.columns.len()).map(column).collect();
    let read = FeatureTable::new("table.csv", ids, source_rows, columns).unwrap();
    let config = FeatureConfig { numeric: table.columns.clone(), ..FeatureConfig::default() };
    TabularFeatures::fit(&read, train, &config, &[]).unwrap().encode(&read).unwrap()
}
