//! Random survival forests (Ishwaran, Kogalur, Blackstone & Lauer 2008, <https://doi.org/10.1214/08-AOAS169>).

mod log_rank;
mod training;
mod tree;

use fairtte_metrics::seeds::stream;
use fairtte_metrics::{Outcomes, SurvivalCurves};
use ndarray::{Array2, Axis};
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::training::Training;
use self::tree::{Tree, grow};
use crate::estimator::check_covariates;
use crate::{ClassicalError, SurvivalEstimator, SurvivalModel};

/// What a tree is grown from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// As many samples as there are, drawn with replacement.
    Bootstrap,
    /// This share of the samples, drawn without replacement, in (0, 1).
    Subsample(f64),
    /// All samples: then nothing is out of bag.
    All,
}

/// Settings of a forest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ForestSettings {
    /// Trees, at least 1.
    pub trees: usize,
    /// Columns that are tried per split; 0 = the square root of their number, rounded up. Constant ones do not count.
    pub columns_per_split: usize,
    /// Random cuts per column; `None` = all cuts.
    pub cuts_per_column: Option<usize>,
    /// Samples of a node that may be split, at least 2.
    pub min_samples_split: u32,
    /// Samples of a child, at least 1.
    pub min_samples_leaf: u32,
    /// Events of a child.
    pub min_events_leaf: u32,
    /// Splits on the way to a leaf; `None` = no limit.
    pub max_depth: Option<usize>,
    /// What a tree is grown from.
    pub sampling: Sampling,
    /// Seed of samples, columns and cuts.
    pub seed: u64,
}

impl Default for ForestSettings {
    /// 500 trees of bootstrap samples, all cuts, leaves of 15 samples with an event.
    fn default() -> Self {
        Self {
            trees: 500,
            columns_per_split: 0,
            cuts_per_column: None,
            min_samples_split: 2,
            min_samples_leaf: 15,
            min_events_leaf: 1,
            max_depth: None,
            sampling: Sampling::Bootstrap,
            seed: 0,
        }
    }
}

impl SurvivalEstimator for ForestSettings {
    type Model = RandomSurvivalForest;

    fn fit(&self, covariates: &Array2<f64>, outcomes: &Outcomes) -> Result<RandomSurvivalForest, ClassicalError> {
        RandomSurvivalForest::fit(covariates, outcomes, self).map(|(forest, _)| forest)
    }

    fn check(&self) -> Result<(), ClassicalError> {
        let wrong = |setting: &'static str, value: String, expected: &'static str| {
            Err(ClassicalError::Setting { setting, value, expected })
        };
        if self.trees == 0 {
            return wrong("trees", "0".to_owned(), "at least 1");
        }
        if self.min_samples_split < 2 {
            return wrong("min-samples-split", self.min_samples_split.to_string(), "at least 2");
        }
        if self.min_samples_leaf == 0 {
            return wrong("min-samples-leaf", "0".to_owned(), "at least 1");
        }
        if self.cuts_per_column == Some(0) {
            return wrong("cuts-per-column", "0".to_owned(), "at least 1");
        }
        match self.sampling {
            Sampling::Subsample(share) if !(share > 0.0 && share < 1.0) => {
                wrong("sampling.subsample", share.to_string(), "a share between 0 and 1")
            }
            _ => Ok(()),
        }
    }
}

/// Predictions of every training sample by the trees that were grown without it.
#[derive(Clone, Debug, PartialEq)]
pub struct OutOfBag {
    /// Expected mortality, `[n]`; `None` of a sample that every tree was grown from.
    pub risk: Vec<Option<f64>>,
    /// Trees behind each, `[n]`.
    pub n_trees: Vec<u32>,
}

/// A fitted forest.
///
/// The ensemble cumulative hazard is the mean over trees of the Nelson-Aalen curve of a sample's leaf; S = exp(-H). The risk is the
/// expected mortality, the sum of H over the different event times of the training data: how many of as many people as these would
/// have an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RandomSurvivalForest {
    settings: ForestSettings,
    /// Different times of the training data, ascending.
    times: Vec<f64>,
    n_columns: usize,
    trees: Vec<Tree>,
}

impl RandomSurvivalForest {
    /// Grows a forest from covariates `[n, p]` and their outcomes; trees grow in parallel, and the result does not depend on the
    /// number of threads. O(trees p n log(n)^2).
    ///
    /// # Errors
    /// [`ClassicalError`] if a setting is outside its range, there is no event, or a value is not finite.
    pub fn fit(
        columns: &Array2<f64>,
        outcomes: &Outcomes,
        settings: &ForestSettings,
    ) -> Result<(Self, OutOfBag), ClassicalError> {
        SurvivalEstimator::check(settings)?;
        let training = Training::new(columns, outcomes)?;
        let p = training.n_columns();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the root of a number of columns")]
        let root = (p as f64).sqrt().ceil() as usize;
        let tried = if settings.columns_per_split == 0 { root } else { settings.columns_per_split.min(p) };
        let used = ForestSettings { columns_per_split: tried, ..settings.clone() };
        let n_later = event_times_from(&training);
        let grown = |tree: usize| {
            let mut rng = stream(settings.seed, "classical/forest", &[tree as u64]);
            let drawn = draw(training.n(), settings.sampling, &mut rng);
            (grow(&training, &drawn, &n_later, &used, &mut rng), drawn)
        };
        let all: Vec<(Tree, Vec<u32>)> = (0..settings.trees).into_par_iter().map(grown).collect();
        let out_of_bag = out_of_bag(columns, &all);
        let trees = all.into_iter().map(|(tree, _)| tree).collect();
        Ok((Self { settings: settings.clone(), times: training.times, n_columns: p, trees }, out_of_bag))
    }

    /// The settings of the fit.
    pub fn settings(&self) -> &ForestSettings {
        &self.settings
    }
}

impl SurvivalModel for RandomSurvivalForest {
    fn n_covariates(&self) -> usize {
        self.n_columns
    }

    fn risk(&self, columns: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        check_covariates(columns, self.n_columns)?;
        let of_row = |row: usize| {
            let of_tree = |tree: &Tree| tree.leaf(|column| columns[[row, column]]).1;
            self.trees.iter().map(of_tree).sum::<f64>() / self.trees.len() as f64
        };
        Ok((0..columns.nrows()).into_par_iter().map(of_row).collect())
    }

    fn survival_curves(&self, columns: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        check_covariates(columns, self.n_columns)?;
        // A jump counts from the first time of the grid that is not before it.
        let place: Vec<usize> = self.times.iter().map(|time| grid.partition_point(|at| at < time)).collect();
        let mut survival = Array2::<f64>::zeros((columns.nrows(), grid.len()));
        let rows: Vec<_> = survival.axis_iter_mut(Axis(0)).enumerate().collect();
        rows.into_par_iter().for_each(|(row, mut curve)| {
            for tree in &self.trees {
                for (time, height) in tree.leaf(|column| columns[[row, column]]).0 {
                    if let Some(hazard) = curve.get_mut(place[*time as usize]) {
                        *hazard += height;
                    }
                }
            }
            let mut hazard = 0.0;
            for value in &mut curve {
                hazard += *value / self.trees.len() as f64;
                *value = (-hazard).exp();
            }
        });
        Ok(SurvivalCurves::new(grid.to_vec(), survival)?)
    }
}

/// How often every sample is drawn for a tree.
fn draw(n: usize, sampling: Sampling, rng: &mut ChaCha8Rng) -> Vec<u32> {
    match sampling {
        Sampling::All => vec![1; n],
        Sampling::Bootstrap => {
            let mut drawn = vec![0; n];
            (0..n).for_each(|_| drawn[rng.random_range(0..n)] += 1);
            drawn
        }
        Sampling::Subsample(share) => {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most n")]
            let size = ((share * n as f64).round() as usize).clamp(1, n);
            let mut rows: Vec<usize> = (0..n).collect();
            let (chosen, _) = rows.partial_shuffle(rng, size);
            let mut drawn = vec![0; n];
            for row in chosen.iter() {
                drawn[*row] = 1;
            }
            drawn
        }
    }
}

/// By place of a time, the different event times that are not before it.
fn event_times_from(training: &Training) -> Vec<u32> {
    let mut has_event = vec![false; training.times.len()];
    for (time, event) in training.time.iter().zip(&training.event) {
        has_event[*time as usize] |= event;
    }
    let mut n = 0;
    let mut later: Vec<u32> = has_event
        .iter()
        .rev()
        .map(|has| {
            n += u32::from(*has);
            n
        })
        .collect();
    later.reverse();
    later
}

fn out_of_bag(columns: &Array2<f64>, trees: &[(Tree, Vec<u32>)]) -> OutOfBag {
    let of_row = |row: usize| {
        let without = trees.iter().filter(|(_, drawn)| drawn[row] == 0);
        let risks = without.map(|(tree, _)| tree.leaf(|column| columns[[row, column]]).1);
        let (sum, n) = risks.fold((0.0, 0_u32), |(sum, n), risk| (sum + risk, n + 1));
        ((n > 0).then(|| sum / f64::from(n)), n)
    };
    let (risk, n_trees) = (0..columns.nrows()).into_par_iter().map(of_row).unzip();
    OutOfBag { risk, n_trees }
}

#[cfg(test)]
mod tests;
