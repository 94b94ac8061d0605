//! Simulated tables with a planted bias, and a probe for the group, shared by the tests of the strategies' effects.
//!
//! Of eight columns, column 0 depends on the group (+-1 with deviation 0.5: the best rule is right for 97.7 %), columns 1
//! and 2 determine the risk, five columns are noise. Unless a [`Plant`] specifies otherwise, groups are of equal size and
//! have no effect on the risk.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

mod trial;

use std::path::PathBuf;

use burn::tensor::{Device, Tensor, TensorData};
use fairtte_data::features::FeatureColumn;
use fairtte_data::features::{FeatureConfig, FeatureMatrix, FeatureTable, TabularFeatures};
use fairtte_data::{Cohort, Sample};
use fairtte_fairness::Batch;
use fairtte_fairness::strategies::TrainingCells;
use fairtte_fairness::{LearnerSpec, NetworkSpec, OptimiserConfig};
use fairtte_metrics::seeds::stream;
use fairtte_metrics::{GroupId, Outcomes, SampleId};
use fairtte_models::{BackboneKind, EncoderConfig, Pixels};
use fairtte_survival::{ClassifierConfig, CutPoints, NnetSurvival};
use rand::RngExt as _;

#[allow(unused_imports, reason = "as above")]
pub use trial::Trial;

pub const N_COLUMNS: usize = 8;

/// The planted differences of group 1.
#[derive(Clone, Copy, Debug)]
pub struct Plant {
    /// Its share of the samples.
    pub share: f64,
    /// Distance of the mean of column 0 from 0, in opposite directions in the two groups; 0 = the group is not visible.
    pub visible: f64,
    /// Coefficient of column 1 in its log hazard; 1 in group 0.
    pub effect: f64,
    /// Factor of its hazard.
    pub hazard: f64,
}

impl Default for Plant {
    fn default() -> Self {
        Self { share: 0.5, visible: 1.0, effect: 1.0, hazard: 1.0 }
    }
}

/// A simulated table.
#[derive(Clone, Debug)]
pub struct Table {
    pub rows: Vec<[f32; N_COLUMNS]>,
    pub groups: Vec<Option<GroupId>>,
    pub time: Vec<f64>,
    pub event: Vec<bool>,
}

impl Table {
    pub fn new(n: usize, seed: u64) -> Self {
        Self::planted(n, seed, Plant::default())
    }

    pub fn planted(n: usize, seed: u64, plant: Plant) -> Self {
        let mut stream = stream(seed, "simulate-table", &[n as u64]);
        let mut uniform = || stream.random::<f64>();
        let mut table = Self { rows: Vec::new(), groups: Vec::new(), time: Vec::new(), event: Vec::new() };
        for i in 0..n {
            let group_1 = ((i + 1) as f64 * plant.share).floor() > (i as f64 * plant.share).floor();
            let (side, effect, hazard) = if group_1 { (1.0, plant.effect, plant.hazard) } else { (-1.0, 1.0, 1.0) };
            let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            let mut row: [f64; N_COLUMNS] = std::array::from_fn(|_| normal());
            row[0] = side * plant.visible + 0.5 * row[0];
            let time = -uniform().max(1e-9).ln() / (hazard * (effect * row[1] + 0.5 * row[2]).exp());
            let censoring = 3.0 * uniform();
            #[expect(clippy::cast_possible_truncation, reason = "inputs are f32")]
            table.rows.push(row.map(|x| x as f32));
            table.groups.push(Some(GroupId(u32::from(group_1))));
            table.time.push(time.min(censoring).max(1e-3));
            table.event.push(time <= censoring);
        }
        table
    }

    /// Some of its rows.
    pub fn part(&self, rows: &[usize]) -> Self {
        Self {
            rows: rows.iter().map(|row| self.rows[*row]).collect(),
            groups: rows.iter().map(|row| self.groups[*row]).collect(),
            time: rows.iter().map(|row| self.time[*row]).collect(),
            event: rows.iter().map(|row| self.event[*row]).collect(),
        }
    }

    pub fn batch(&self, rows: &[usize], device: &Device) -> Batch {
        let values: Vec<f32> = rows.iter().flat_map(|row| self.rows[*row]).collect();
        Batch {
            rows: rows.to_vec(),
            sample_ids: rows.iter().map(|row| SampleId::new(format!("s{row}"))).collect(),
            pixels: Pixels::Table(Tensor::from_data(TensorData::new(values, [rows.len(), N_COLUMNS]), device)),
            time: rows.iter().map(|row| self.time[*row]).collect(),
            event: rows.iter().map(|row| self.event[*row]).collect(),
            competing: vec![0; rows.len()],
            groups: rows.iter().map(|row| self.groups[*row]).collect(),
            masks: None,
        }
    }

    pub fn whole(&self) -> Batch {
        self.batch(&(0..self.rows.len()).collect::<Vec<_>>(), &Device::flex())
    }

    /// The samples as a cohort: one per subject.
    pub fn cohort(&self) -> Cohort {
        let sample = |i: usize| Sample {
            sample_id: format!("s{i}").as_str().into(),
            subject_id: format!("p{i}").as_str().into(),
            unit: None,
            image: PathBuf::new(),
            time: self.time[i],
            event: self.event[i],
            competing: None,
            source_row: i + 2,
        };
        Cohort {
            name: "table".to_owned(),
            time_unit: "years".to_owned(),
            source: PathBuf::from("table.csv"),
            samples: (0..self.rows.len()).map(sample).collect(),
            attributes: Vec::new(),
            provenance: None,
            cause: None,
        }
    }

    /// All columns, scaled by the statistics of the training rows.
    pub fn features(&self, train: &[usize]) -> FeatureMatrix {
        let names: Vec<String> = (0..N_COLUMNS).map(|k| format!("x{k}")).collect();
        let column = |k: usize| FeatureColumn {
            name: names[k].clone(),
            cells: self.rows.iter().map(|row| Some(row[k].to_string())).collect(),
        };
        let ids = self.cohort().samples.into_iter().map(|sample| sample.sample_id).collect();
        let source_rows = (2..self.rows.len() + 2).collect();
        let table = FeatureTable::new("table.csv", ids, source_rows, (0..N_COLUMNS).map(column).collect()).unwrap();
        let config = FeatureConfig { numeric: names.clone(), ..FeatureConfig::default() };
        TabularFeatures::fit(&table, train, &config, &[]).unwrap().encode(&table).unwrap()
    }
}

/// A training part, and the objects fitted on it.
#[derive(Clone, Debug)]
pub struct Study {
    pub train: Table,
    pub cut_points: CutPoints,
    pub spec: LearnerSpec,
    pub cells: TrainingCells,
}

impl Study {
    pub fn new(train: Table, seed: u64) -> Self {
        let outcomes = Outcomes::new(train.time.clone(), train.event.clone()).unwrap();
        let cut_points = CutPoints::equidistant(&outcomes, 8).unwrap();
        let encoder = EncoderConfig { dropout: 0.0, ..EncoderConfig::new(BackboneKind::Mlp) };
        let classifier = ClassifierConfig::for_head(&NnetSurvival, &cut_points, &outcomes, encoder.hidden).unwrap();
        let spec = LearnerSpec {
            network: NetworkSpec { encoder, channels: N_COLUMNS, classifier },
            optimiser: OptimiserConfig::default(),
            seed,
            device: Device::flex(),
            pretrained: None,
        };
        let n_levels = train.groups.iter().flatten().map(|group| group.index() + 1).max().unwrap_or(0);
        let cells = TrainingCells {
            attribute: "group".to_owned(),
            levels: (0..n_levels).map(|g| format!("level {g}")).collect(),
            groups: train.groups.clone(),
            event: train.event.clone(),
            interval: cut_points.targets("training", &train.time, &train.event).unwrap().intervals.index,
            n_cut_points: cut_points.n(),
        };
        Self { train, cut_points, spec, cells }
    }
}

/// Entries of `[n, width]`, row by row.
pub fn rows_of(tensor: &Tensor<2>) -> Vec<Vec<f64>> {
    let width = tensor.dims()[1];
    let values: Vec<f64> = tensor.clone().into_data().iter::<f64>().collect();
    values.chunks(width).map(<[f64]>::to_vec).collect()
}

/// Accuracy of a linear rule for the group, fitted on one table and evaluated on another, each `[n, width]`.
pub fn probe(train: (&Tensor<2>, &Table), test: (&Tensor<2>, &Table)) -> f64 {
    let side = |table: &Table| -> Vec<f64> {
        table.groups.iter().map(|group| if *group == Some(GroupId(1)) { 1.0 } else { -1.0 }).collect()
    };
    let (mut of_train, mut of_test) = (rows_of(train.0), rows_of(test.0));
    let n = of_train.len() as f64;
    for k in 0..of_train[0].len() {
        let mean = of_train.iter().map(|row| row[k]).sum::<f64>() / n;
        let deviation = (of_train.iter().map(|row| (row[k] - mean).powi(2)).sum::<f64>() / n).sqrt().max(1e-12);
        for row in of_train.iter_mut().chain(&mut of_test) {
            row[k] = (row[k] - mean) / deviation;
        }
    }
    let coefficients = least_squares(&of_train, &side(train.1));
    let right = of_test.iter().zip(side(test.1)).filter(|(row, side)| {
        let value: f64 = row.iter().zip(&coefficients).map(|(x, c)| x * c).sum();
        value * side > 0.0
    });
    right.count() as f64 / of_test.len() as f64
}

/// Least squares with a ridge of 0.01 n, by elimination of the normal equations. Rows are centred and groups of
/// equal size, so no constant is needed.
fn least_squares(rows: &[Vec<f64>], side: &[f64]) -> Vec<f64> {
    let (n, width) = (rows.len() as f64, rows[0].len());
    let entry = |j: usize, k: usize| match k {
        k if k == width => rows.iter().zip(side).map(|(row, side)| row[j] * side).sum::<f64>(),
        k => rows.iter().map(|row| row[j] * row[k]).sum::<f64>() + if j == k { 0.01 * n } else { 0.0 },
    };
    let mut system: Vec<Vec<f64>> = (0..width).map(|j| (0..=width).map(|k| entry(j, k)).collect()).collect();
    for pivot in 0..width {
        let row = system[pivot].clone();
        for (j, other) in system.iter_mut().enumerate().filter(|(j, _)| *j != pivot) {
            let factor = other[pivot] / row[pivot];
            debug_assert!(factor.is_finite(), "row {j}");
            for k in pivot..=width {
                other[k] -= factor * row[k];
            }
        }
    }
    (0..width).map(|j| system[j][width] / system[j][j]).collect()
}
