//! Theorem 1 of the paper as a number: the gap of a model between two groups is at most eta + D.
//!
//! With `Er(S, S', D_a)` the mean over the samples of group a of the mean absolute difference of two curves over time,
//!
//! ```text
//! F(h) = |Er(f_a, h, D_a) - Er(f_b, h, D_b)| <= eta + D
//! eta  = min over h' of Er(f_a, h', D_a) + Er(f_b, h', D_b)
//! D    = max over h', h'' of |Er(h', h'', D_a) - Er(h', h'', D_b)|
//! ```
//!
//! where `f_a` is the true curve in group a. eta is large if no single model is right in both groups: the outcome given the
//! image differs. D is large if two models disagree more in one group than in the other: the groups look different to the
//! models. Here the set of models is finite and fitted curves take the place of the true ones; the inequality holds exactly for
//! both. The models must not read the group: one that does can be right in both groups for a trivial reason, and eta is 0.
//! Source: FairTTE, Theorem 1 and appendix E.

use ndarray::{Array2, ArrayView1, Axis};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{LabelPermutations, PermutationTest};
use crate::resampling::bootstrap::MAX_REPLICATES;
use crate::resampling::{Bootstrap, Resample, percentile_interval};
use crate::{GroupId, Groups, MetricError, SubjectId, SurvivalCurves, parallel};

/// Pairs of models whose distances are in memory at a time.
const PAIRS_AT_ONCE: usize = 64;

/// How [`gap_bound`] tells chance from difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct GapBoundSettings {
    /// Bootstrap replicates of subjects behind the intervals, at most 1,000,000; 0 = no intervals.
    pub n_replicates: usize,
    /// Permutations of group labels behind the value of D that chance gives, at most 1,000,000; 0 = none.
    pub n_permutations: usize,
    /// Level of the intervals.
    pub level: f64,
    /// Seed of both.
    pub seed: u64,
}

impl Default for GapBoundSettings {
    fn default() -> Self {
        Self { n_replicates: 200, n_permutations: 200, level: 0.95, seed: 0 }
    }
}

/// The bound of every pair of groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GapBound {
    /// Models in the set.
    pub n_models: usize,
    /// Pairs of groups that have samples, (0, 1), (0, 2), .., (1, 2), ...
    pub pairs: Vec<PairBound>,
}

/// The bound of two groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PairBound {
    /// The groups a and b.
    pub groups: (GroupId, GroupId),
    /// Samples of each.
    pub n: (usize, usize),
    /// F(h) of every model, in [0, 1].
    pub gaps: Vec<f64>,
    /// eta, in [0, 2].
    pub eta: f64,
    /// The model at which it is attained.
    pub best: usize,
    /// Percentile interval of eta over subjects.
    pub eta_interval: Option<(f64, f64)>,
    /// D, in [0, 1].
    pub disparity: f64,
    /// The two models at which it is attained.
    pub most_different: (usize, usize),
    /// Percentile interval of D over subjects. D is a maximum, so it lies above the truth in small samples.
    pub disparity_interval: Option<(f64, f64)>,
    /// D with labels exchanged between the two groups: what chance alone gives. `None` without permutations.
    pub by_chance: Option<PermutationTest>,
}

impl PairBound {
    /// eta + D.
    pub fn bound(&self) -> f64 {
        self.eta + self.disparity
    }
}

/// The terms of Theorem 1 for a finite set of models; all curves are `[n, n_times]` on one grid of at least two times, of the
/// same samples in the same order. `fitted` has, in the row of a sample, the curve of the model that was fitted to its own group.
/// Curves are straight lines between the times of the grid.
/// `O(n_models^2 n (n_times + n_replicates + n_groups n_permutations))`.
///
/// ```
/// use fairtte_metrics::bias::{GapBoundSettings, gap_bound};
/// use fairtte_metrics::{GroupId, Groups, SubjectId, SurvivalCurves};
/// use ndarray::array;
///
/// let curves = |a: f64, b: f64| SurvivalCurves::new(vec![0.0, 1.0], array![[a, a], [b, b]]);
/// let groups = Groups::new("sex", vec!["F".into(), "M".into()], vec![Some(GroupId(0)), Some(GroupId(1))])?;
/// let subjects: Vec<SubjectId> = ["s1", "s2"].map(SubjectId::new).to_vec();
/// let settings = GapBoundSettings { n_replicates: 0, n_permutations: 0, ..GapBoundSettings::default() };
/// let bound = gap_bound(&[curves(0.5, 0.5)?, curves(0.75, 0.5)?], &curves(0.75, 0.25)?, &groups, &subjects, &settings)?;
/// let pair = &bound.pairs[0];
/// // Distances from the fitted curves: 0.25 and 0.25 of the first model, 0 and 0.25 of the second.
/// assert_eq!((pair.eta, pair.best, pair.disparity), (0.25, 1, 0.25));
/// assert_eq!(pair.gaps, [0.0, 0.25]);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::InvalidSetting`] with fewer than two models, another grid than that of `fitted`, a grid of one time, a level
/// outside (0, 1) or too many replicates or permutations; [`MetricError::LengthMismatch`] if the numbers of samples differ.
pub fn gap_bound(
    models: &[SurvivalCurves],
    fitted: &SurvivalCurves,
    groups: &Groups,
    subjects: &[SubjectId],
    settings: &GapBoundSettings,
) -> Result<GapBound, MetricError> {
    check(models, fitted, groups, subjects)?;
    let present: Vec<GroupId> = groups.ids().filter(|group| !groups.rows(*group).is_empty()).collect();
    let pairs: Vec<(usize, usize)> =
        (0..present.len()).flat_map(|a| (a + 1..present.len()).map(move |b| (a, b))).collect();
    let of_pairs: Vec<[GroupId; 2]> = pairs.iter().map(|(a, b)| [present[*a], present[*b]]).collect();
    let draws = Draws::new(groups, subjects, settings, of_pairs)?;
    // From the fitted curves: gaps and eta.
    let all: Vec<(&SurvivalCurves, &SurvivalCurves)> = models.iter().map(|model| (fitted, model)).collect();
    let errors = distances(&all);
    let means: Vec<Array2<f64>> = parallel::map(0..draws.n_unpermuted(), |draw| draws.means(draw, &errors, &present));
    // Between models: D.
    let mut widest = vec![vec![(-1.0, 0); pairs.len()]; draws.n()];
    let of_models: Vec<(usize, usize)> =
        (0..models.len()).flat_map(|i| (i + 1..models.len()).map(move |j| (i, j))).collect();
    for (block, chunk) in of_models.chunks(PAIRS_AT_ONCE).enumerate() {
        let chunk: Vec<_> = chunk.iter().map(|(i, j)| (&models[*i], &models[*j])).collect();
        let apart = distances(&chunk);
        widest.par_iter_mut().enumerate().for_each(|(draw, widest)| {
            let widen = |found: &mut (f64, usize), one: ArrayView1<f64>, other: ArrayView1<f64>| {
                for (k, (x, y)) in one.iter().zip(other).enumerate() {
                    // A group without a sample in this draw has no mean, which is never greater.
                    if (x - y).abs() > found.0 {
                        *found = ((x - y).abs(), block * PAIRS_AT_ONCE + k);
                    }
                }
            };
            if let Some(permutation) = draw.checked_sub(draws.n_unpermuted()) {
                for (place, found) in widest.iter_mut().enumerate() {
                    let means = draws.permuted_means(permutation, place, &apart);
                    widen(found, means.row(0), means.row(1));
                }
            } else {
                let means = draws.means(draw, &apart, &present);
                widest.iter_mut().zip(&pairs).for_each(|(found, (a, b))| widen(found, means.row(*a), means.row(*b)));
            }
        });
    }
    let bound = |(place, (a, b)): (usize, &(usize, usize))| {
        let etas: Vec<(f64, usize)> = means.iter().map(|means| smallest_sum(means, *a, *b)).collect();
        let disparities: Vec<f64> = widest.iter().map(|of_draw| of_draw[place].0).collect();
        let (replicates, permuted) = disparities[1..].split_at(settings.n_replicates);
        let interval = |values: &mut dyn Iterator<Item = f64>| {
            let defined: Vec<f64> = values.filter(|value| value.is_finite() && *value >= 0.0).collect();
            percentile_interval(&defined, settings.level)
        };
        let permuted: Vec<Option<f64>> = permuted.iter().map(|value| (*value >= 0.0).then_some(*value)).collect();
        Ok(PairBound {
            groups: (present[*a], present[*b]),
            n: (groups.rows(present[*a]).len(), groups.rows(present[*b]).len()),
            gaps: means[0].row(*a).iter().zip(means[0].row(*b)).map(|(x, y)| (x - y).abs()).collect(),
            eta: etas[0].0,
            best: etas[0].1,
            eta_interval: interval(&mut etas[1..].iter().map(|(eta, _)| *eta))?,
            disparity: disparities[0],
            most_different: of_models[widest[0][place].1],
            disparity_interval: interval(&mut replicates.iter().copied())?,
            by_chance: (!permuted.is_empty()).then(|| PermutationTest::new(disparities[0], &permuted)).transpose()?,
        })
    };
    let pairs = pairs.iter().enumerate().map(bound).collect::<Result<_, MetricError>>()?;
    Ok(GapBound { n_models: models.len(), pairs })
}

fn check(
    models: &[SurvivalCurves],
    fitted: &SurvivalCurves,
    groups: &Groups,
    subjects: &[SubjectId],
) -> Result<(), MetricError> {
    if models.len() < 2 {
        let (setting, value, expected) = ("number of models", models.len().to_string(), "at least 2");
        return Err(MetricError::InvalidSetting { setting, value, expected });
    }
    check_curves(models, fitted)?;
    let expected = fitted.n();
    let lengths = [("group memberships", groups.n()), ("subjects", subjects.len())];
    match lengths.into_iter().find(|(_, found)| *found != expected) {
        Some((what, found)) => Err(MetricError::LengthMismatch { what, found, expected }),
        None => Ok(()),
    }
}

/// Checks that all curves are of the same number of samples on one grid.
fn check_curves(models: &[SurvivalCurves], fitted: &SurvivalCurves) -> Result<(), MetricError> {
    if fitted.grid().len() < 2 {
        let (setting, value, expected) = ("times of the grid", fitted.grid().len().to_string(), "at least 2");
        return Err(MetricError::InvalidSetting { setting, value, expected });
    }
    if let Some(model) = models.iter().position(|model| model.grid() != fitted.grid()) {
        let (setting, value) = ("time grid", format!("that of model {model}"));
        return Err(MetricError::InvalidSetting { setting, value, expected: "the grid of the fitted curves" });
    }
    models.iter().try_for_each(|model| model.check_rows(fitted.n()))
}

/// The samples as they are, then bootstrap replicates, then permutations of the labels.
struct Draws<'a> {
    membership: &'a [Option<GroupId>],
    bootstrap: Bootstrap,
    /// The two groups of every pair.
    pairs: Vec<[GroupId; 2]>,
    /// Of every pair those of its own labels: with a third group that differs, two groups that are alike would otherwise be compared
    /// with mixtures of all three. Empty without permutations.
    permutations: Vec<LabelPermutations>,
    n_permutations: usize,
}

impl<'a> Draws<'a> {
    fn new(
        groups: &'a Groups,
        subjects: &[SubjectId],
        settings: &GapBoundSettings,
        pairs: Vec<[GroupId; 2]>,
    ) -> Result<Self, MetricError> {
        let counts = [("n-replicates", settings.n_replicates), ("n-permutations", settings.n_permutations)];
        if let Some((setting, value)) = counts.into_iter().find(|(_, n)| *n > MAX_REPLICATES) {
            let expected = "a whole number from 0 to 1000000";
            return Err(MetricError::InvalidSetting { setting, value: value.to_string(), expected });
        }
        let (membership, n_permutations, seed) = (groups.membership(), settings.n_permutations, settings.seed);
        let of_pair = |pair: &[GroupId; 2]| {
            let own: Vec<Option<GroupId>> =
                membership.iter().map(|label| label.filter(|group| pair.contains(group))).collect();
            LabelPermutations::new(subjects, &own, None, n_permutations, seed)
        };
        let permuted: &[[GroupId; 2]] = if n_permutations > 0 { &pairs } else { &[] };
        let permutations = permuted.iter().map(of_pair).collect::<Result<_, _>>()?;
        let bootstrap = Bootstrap::new(subjects, Resample::Subject, settings.n_replicates, settings.seed);
        Ok(Self { membership, bootstrap, pairs, permutations, n_permutations })
    }

    fn n_unpermuted(&self) -> usize {
        1 + self.bootstrap.n_replicates()
    }

    fn n(&self) -> usize {
        self.n_unpermuted() + self.n_permutations
    }

    /// Means of the columns of `values`, `[n, n_columns]`, in every group of a draw that is no permutation, `[n_groups, n_columns]`;
    /// not a number in a group without samples.
    fn means(&self, draw: usize, values: &Array2<f64>, present: &[GroupId]) -> Array2<f64> {
        let weights = draw.checked_sub(1).map(|replicate| self.bootstrap.weights(replicate));
        means_of(values, self.membership, weights.as_deref(), present)
    }

    /// The same in the two groups of a pair, whose labels are exchanged between its subjects, `[2, n_columns]`.
    fn permuted_means(&self, permutation: usize, pair: usize, values: &Array2<f64>) -> Array2<f64> {
        means_of(values, &self.permutations[pair].labels(permutation), None, &self.pairs[pair])
    }
}

/// Weighted means of the columns of `values` in `groups`.
fn means_of(
    values: &Array2<f64>,
    labels: &[Option<GroupId>],
    weights: Option<&[u32]>,
    groups: &[GroupId],
) -> Array2<f64> {
    let mut sums = Array2::<f64>::zeros((groups.len(), values.ncols()));
    let mut totals = vec![0.0; groups.len()];
    for (row, label) in labels.iter().enumerate() {
        let weight = weights.map_or(1.0, |weights| f64::from(weights[row]));
        let group = label.and_then(|label| groups.iter().position(|group| *group == label));
        let Some(group) = group.filter(|_| weight > 0.0) else { continue };
        totals[group] += weight;
        sums.row_mut(group).scaled_add(weight, &values.row(row));
    }
    for (mut row, total) in sums.axis_iter_mut(Axis(0)).zip(totals) {
        row /= total;
    }
    sums
}

/// Distances of pairs of models in every sample, `[n, n_pairs]`.
fn distances(pairs: &[(&SurvivalCurves, &SurvivalCurves)]) -> Array2<f64> {
    let n = pairs.first().map_or(0, |(model, _)| model.n());
    let mut found = vec![0.0; n * pairs.len()];
    found.par_chunks_mut(pairs.len().max(1)).enumerate().for_each(|(row, found)| {
        for (found, (first, second)) in found.iter_mut().zip(pairs) {
            *found = distance(first.grid(), first.curve(row), second.curve(row));
        }
    });
    Array2::from_shape_vec((n, pairs.len()), found).expect("one value per sample and pair")
}

/// Mean over time of the absolute difference of the curves of every sample, `[n]`, in [0, 1]: the distance of [`gap_bound`].
///
/// # Errors
/// As [`gap_bound`].
pub fn curve_distances(first: &SurvivalCurves, second: &SurvivalCurves) -> Result<Vec<f64>, MetricError> {
    check_curves(std::slice::from_ref(second), first)?;
    Ok(distances(&[(first, second)]).into_raw_vec_and_offset().0)
}

/// Mean over time of the absolute difference of two curves of straight lines, exact also where they cross.
fn distance(grid: &[f64], first: &[f64], second: &[f64]) -> f64 {
    let of_step = |k: usize| {
        let (before, after) = (first[k] - second[k], first[k + 1] - second[k + 1]);
        let (size, width) = (before.abs() + after.abs(), grid[k + 1] - grid[k]);
        if before * after >= 0.0 {
            return 0.5 * size * width;
        }
        0.5 * (before * before + after * after) / size * width // two triangles
    };
    (0..grid.len() - 1).map(of_step).sum::<f64>() / (grid[grid.len() - 1] - grid[0])
}

/// The smallest sum of the means of two groups over the columns, and the column; not a number if a group has no mean.
fn smallest_sum(means: &Array2<f64>, a: usize, b: usize) -> (f64, usize) {
    let sums = means.row(a).into_iter().zip(means.row(b)).map(|(x, y)| x + y).enumerate();
    let smallest = sums.min_by(|one, other| one.1.total_cmp(&other.1));
    smallest.map_or((f64::NAN, 0), |(column, sum)| (sum, column))
}

#[cfg(test)]
mod tests;
