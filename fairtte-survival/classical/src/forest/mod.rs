//! Random survival forests (Ishwaran, Kogalur, Blackstone & Lauer 2008, <https://doi.org/10.1214/08-AOAS169>).

mod draw;
mod importance;
mod log_rank;
mod order;
mod out_of_bag;
mod settings;
mod training;
mod tree;

use std::ops::Range;

use fairtte_metrics::evaluation::Stop;
use fairtte_metrics::seeds::stream;
use fairtte_metrics::{MetricError, Outcomes, SubjectId, SurvivalCurves};
use ndarray::{Array2, ArrayViewMut2, Axis};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::draw::draw;
pub use self::importance::{ColumnImportance, Importance};
pub use self::out_of_bag::{OutOfBag, OutOfBagCurves};
pub use self::settings::{ConstantColumns, ForestSettings, NodeSizes, Preset, Sampling};
use self::training::Training;
use self::tree::{Grower, Leaf, Tree};
use crate::estimator::{NEVER, check_covariates};
use crate::units::Units;
use crate::{ClassicalError, SurvivalEstimator, SurvivalModel};

impl SurvivalEstimator for ForestSettings {
    type Model = RandomSurvivalForest;

    fn fit_until(
        &self,
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        stop: &Stop,
    ) -> Result<RandomSurvivalForest, ClassicalError> {
        RandomSurvivalForest::grow(covariates, outcomes, self, Units::default(), stop)
    }

    fn check(&self) -> Result<(), ClassicalError> {
        self.check_ranges()
    }
}

impl ForestSettings {
    /// As [`fit_until`](SurvivalEstimator::fit_until), with the subjects of the samples `[n]`: trees are grown from all samples of the
    /// subjects that are drawn for them, and those of the others are out of bag.
    ///
    /// # Errors
    /// As [`fit_until`](SurvivalEstimator::fit_until), and [`ClassicalError::Metric`] if there are not as many subjects as samples.
    pub fn fit_subjects(
        &self,
        covariates: &Array2<f64>,
        outcomes: &Outcomes,
        subjects: &[SubjectId],
        stop: &Stop,
    ) -> Result<RandomSurvivalForest, ClassicalError> {
        let units = Units::of_subjects(outcomes.n(), subjects)?;
        RandomSurvivalForest::grow(covariates, outcomes, self, units, stop)
    }
}

/// A fitted forest.
///
/// The ensemble cumulative hazard H is the mean over trees of the Nelson-Aalen curve of a sample's leaf; S = exp(-H). The risk is the
/// expected mortality, the sum of H over the different event times of the training data: how many of as many people as these would
/// have an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RandomSurvivalForest {
    settings: ForestSettings,
    /// Different times of the training data, ascending.
    times: Vec<f64>,
    n_samples: usize,
    n_columns: usize,
    #[serde(default, skip_serializing_if = "Units::are_samples")]
    units: Units,
    trees: Vec<Tree>,
}

/// Rows that go through a tree together, so that its nodes stay in the cache.
const BLOCK: usize = 256;

impl RandomSurvivalForest {
    /// Grows a forest from covariates `[n, p]` and their outcomes, and predicts every sample from the trees that were grown without
    /// it. Trees grow in parallel, and the result does not depend on the number of threads. O(trees p n log(n)^2).
    ///
    /// # Errors
    /// [`ClassicalError`] if a setting is outside its range, there is no event, or a value is not finite.
    pub fn fit(
        columns: &Array2<f64>,
        outcomes: &Outcomes,
        settings: &ForestSettings,
    ) -> Result<(Self, OutOfBag), ClassicalError> {
        let forest = Self::grow(columns, outcomes, settings, Units::default(), &NEVER)?;
        let out_of_bag = forest.out_of_bag(columns)?;
        Ok((forest, out_of_bag))
    }

    fn grow(
        columns: &Array2<f64>,
        outcomes: &Outcomes,
        settings: &ForestSettings,
        units: Units,
        stop: &Stop,
    ) -> Result<Self, ClassicalError> {
        settings.check_ranges()?;
        let training = Training::new(columns, outcomes)?;
        let n_later = training.event_times_from();
        let grown = |(grower, drawn): &mut (Grower<'_>, Vec<u32>), tree: usize| {
            stop.check()?;
            let mut rng = tree_stream(settings.seed, tree);
            draw(training.n(), &units, settings.sampling, drawn, &mut rng);
            Ok(grower.grow(drawn, &mut rng))
        };
        let room = || (Grower::new(&training, &n_later, settings), Vec::new());
        let trees = (0..settings.trees).into_par_iter().map_init(room, grown).collect::<Result<_, MetricError>>()?;
        let (n_samples, n_columns) = (training.n(), training.n_columns());
        Ok(Self { settings: settings.clone(), times: training.times, n_samples, n_columns, units, trees })
    }

    /// The settings of the fit.
    pub fn settings(&self) -> &ForestSettings {
        &self.settings
    }

    /// Memory of the forest, in bytes.
    pub fn size_in_bytes(&self) -> usize {
        size_of::<Self>()
            + self.times.capacity() * size_of::<f64>()
            + self.trees.capacity() * size_of::<Tree>()
            + self.trees.iter().map(Tree::size_in_bytes).sum::<usize>()
    }

    /// The leaves of the rows of a block, tree after tree, those for which `is_asked(tree, row)`.
    fn visit_leaves(
        &self,
        columns: &Array2<f64>,
        rows: Range<usize>,
        is_asked: impl Fn(usize, usize) -> bool,
        mut visit: impl FnMut(usize, Leaf<'_>),
    ) {
        for (place, tree) in self.trees.iter().enumerate() {
            for row in rows.clone().filter(|row| is_asked(place, *row)) {
                visit(row, tree.leaf(|column| columns[[row, column]]));
            }
        }
    }

    /// Sums over trees of the mortality, and trees, by row.
    fn mortality(&self, columns: &Array2<f64>, is_asked: impl Fn(usize, usize) -> bool + Sync) -> (Vec<f64>, Vec<u32>) {
        let mut sums = vec![(0.0, 0); columns.nrows()];
        sums.par_chunks_mut(BLOCK).enumerate().for_each(|(block, sums)| {
            let from = block * BLOCK;
            self.visit_leaves(columns, from..from + sums.len(), &is_asked, |row, leaf| {
                let (sum, n) = &mut sums[row - from];
                *sum += leaf.mortality;
                *n += 1;
            });
        });
        sums.into_iter().unzip()
    }

    /// Survival of the rows of a matrix by the trees asked for, `[n, n_times]`; rows without a tree have survival 1.
    fn survival(
        &self,
        columns: &Array2<f64>,
        grid: &[f64],
        is_asked: impl Fn(usize, usize) -> bool + Sync,
    ) -> Array2<f64> {
        // A jump counts from the first time of the grid that is not before it.
        let place: Vec<usize> = self.times.iter().map(|time| grid.partition_point(|at| at < time)).collect();
        let mut survival = Array2::<f64>::zeros((columns.nrows(), grid.len()));
        let of_block = |(block, mut survival): (usize, ArrayViewMut2<'_, f64>)| {
            let (from, n) = (block * BLOCK, survival.nrows());
            let mut n_trees = vec![0_u32; n];
            self.visit_leaves(columns, from..from + n, &is_asked, |row, leaf| {
                n_trees[row - from] += 1;
                for (time, height) in leaf.times.iter().zip(leaf.heights) {
                    if let Some(jump) = survival.get_mut((row - from, place[*time as usize])) {
                        *jump += height;
                    }
                }
            });
            for (mut curve, n_trees) in survival.axis_iter_mut(Axis(0)).zip(n_trees) {
                let mut hazard = 0.0;
                for value in &mut curve {
                    hazard += *value / f64::from(n_trees.max(1));
                    *value = (-hazard).exp();
                }
            }
        };
        survival
            .axis_chunks_iter_mut(Axis(0), BLOCK)
            .enumerate()
            .collect::<Vec<_>>()
            .into_par_iter()
            .for_each(of_block);
        survival
    }
}

impl SurvivalModel for RandomSurvivalForest {
    fn n_covariates(&self) -> usize {
        self.n_columns
    }

    fn risk(&self, columns: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        check_covariates(columns, self.n_columns)?;
        let (sums, _) = self.mortality(columns, |_, _| true);
        Ok(sums.into_iter().map(|sum| sum / self.trees.len() as f64).collect())
    }

    fn survival_curves(&self, columns: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        check_covariates(columns, self.n_columns)?;
        Ok(SurvivalCurves::new(grid.to_vec(), self.survival(columns, grid, |_, _| true))?)
    }
}

/// The random numbers of a tree: first its samples, then its columns and cuts.
fn tree_stream(seed: u64, tree: usize) -> rand_chacha::ChaCha8Rng {
    stream(seed, "classical/forest", &[tree as u64])
}

#[cfg(test)]
mod tests;
