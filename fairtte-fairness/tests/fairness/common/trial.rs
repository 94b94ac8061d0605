//! A simulated table in three parts, trained through `fit`.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use fairtte_data::features::FeatureMatrix;
use fairtte_data::{Cohort, Loader};
use fairtte_fairness::{
    FairnessError, Outputs, Scoring, StepsFile, Strategy, TrainedRun, Trainer, TrainingConfig, TrainingData,
};
use fairtte_metrics::EvaluationSettings;
use fairtte_survival::{NnetSurvival, PredictionGrid};

use super::{Plant, Study, Table};

pub struct Trial {
    pub table: Table,
    pub cohort: Cohort,
    pub features: FeatureMatrix,
    pub train: Vec<usize>,
    pub validation: Vec<usize>,
    pub test: Vec<usize>,
    pub study: Study,
    pub epochs: usize,
}

impl Trial {
    /// `n` samples for training, 200 for validation, 600 for testing.
    pub fn new(n: usize, plant: Plant, seed: u64) -> Self {
        let table = Table::planted(n + 800, seed, plant);
        let train: Vec<usize> = (0..n).collect();
        Self {
            cohort: table.cohort(),
            features: table.features(&train),
            study: Study::new(table.part(&train), seed),
            validation: (n..n + 200).collect(),
            test: (n + 200..n + 800).collect(),
            epochs: 20,
            table,
            train,
        }
    }

    pub fn loader(&self) -> Loader<'_> {
        Loader::of_features(&self.features, &self.cohort, self.table.groups.clone()).unwrap()
    }

    /// Trains in batches of 40, for all epochs unless the strategy ends the training.
    pub fn fit(
        &self,
        strategy: &mut dyn Strategy,
        folder: &Path,
        stop: &AtomicBool,
    ) -> Result<TrainedRun, FairnessError> {
        let mut steps = StepsFile::in_folder(folder);
        self.with_data(|data| {
            Trainer::new(data, &self.training(), folder).observe(&mut steps).stop_when(stop).fit(strategy)
        })
    }

    /// Batches of 40, all epochs.
    pub fn training(&self) -> TrainingConfig {
        let epochs = self.epochs;
        TrainingConfig { epochs, batch_size: 40, patience: epochs, ..TrainingConfig::default() }
    }

    pub fn with_data<T>(&self, work: impl FnOnce(&TrainingData<'_>) -> T) -> T {
        let Study { cut_points, spec, cells, .. } = &self.study;
        let outcomes = self.cohort.outcomes(&self.train).unwrap();
        let grid = PredictionGrid::at_cut_points(cut_points);
        work(&TrainingData {
            loader: &self.loader(),
            train: &self.train,
            validation: &self.validation,
            levels: &cells.levels,
            kept_for: &[],
            outputs: Outputs { head: &NnetSurvival, cut_points },
            scoring: &Scoring::new(grid, cut_points, &EvaluationSettings::default(), &outcomes).unwrap(),
            seed: spec.seed,
            device: &spec.device,
        })
    }
}
