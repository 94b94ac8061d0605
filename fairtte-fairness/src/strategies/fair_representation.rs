//! Fair representation learning by maximum mean discrepancy (the paper's D.2.3; Gretton et al. 2012, JMLR 13;
//! the bank of kernels and the biased estimator as in `DomainBed`, Gulrajani & Lopez-Paz 2021, arXiv 2007.01434).
//!
//! Acts on the representation: loss = mean `l_i` + lambda * mean over pairs of groups of MMD^2(z | g, z | g'), with
//! MMD^2 = mean k(x, x') + mean k(y, y') - 2 mean k(x, y) and k(x, y) = sum over gamma of exp(-gamma |x - y|^2).
//! Needs the attribute in training only.
//!
//! | setting | default | values | meaning |
//! |---|---|---|---|
//! | `lambda` | 0.1 | >= 0 | weight of the term; `DomainBed` 1, the paper searches 1e-5 to 1e2 |
//! | `representation` | `after-dropout` | `after-dropout`, `before-dropout` | z: what the head receives, or the same without the encoder's dropout, whose noise inflates distances |
//! | `kernels` | `domainbed` | `domainbed`, `median-scaled`, `single` | gamma = 1e-3, 1e-2, .., 1e3; 1 / (2 c M) with c = 1/4, 1/2, 1, 2, 4 and M the median squared distance of the batch, held constant; `gamma` |
//! | `gamma` | 1 | > 0 | the one kernel of `kernels = "single"` |
//! | `estimator` | `biased` | `biased`, `unbiased` | means with or without the diagonals; without, the term can be negative |
//! | `conditional` | false | | pairs of groups within a stratum, so that groups may differ in risk |
//! | `stratum` | `status-at-horizon` | see `strata.rs` | the strata of `conditional` |
//! | `balanced-sampler` | false | | every group is drawn equally often: rare groups are in every batch |
//!
//! A pair with a group of fewer than 2 samples in the batch is skipped and counted in the report; the mean is over the
//! others, so that lambda means the same for any number of groups; without any the step trains the task. At 64 dimensions
//! squared distances are large and mostly the small gammas of `domainbed` carry gradient: `median-scaled` suits better.
//! Censoring: the term reads no outcome unless `conditional`, whose strata leave out outcomes unknown due to censoring.
//! Distances are sums of squared differences, never differences of squares: not negative, and 0 on the diagonal.
//! Golden values: our worked cases `golden/frl_mmd.json`.

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use fairtte_data::Sampling;
use serde::{Deserialize, Serialize};

use super::adversary::n_trained_groups;
use super::groups::{GroupMeans, on_host};
use super::numbers::constant;
use super::objective::{Objective, Terms, Value};
use super::{
    ExpectedBatch, Idle, ObjectiveStrategy, Strata, Strategy, StrategySettings, StratumConfig, TrainingCells, Warns,
    Watch,
};
use crate::{FairnessError, LearnerSpec, check};

/// gamma of `DomainBed`.
const DOMAINBED: [f64; 7] = [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3];
/// c of the median-scaled bank.
const MULTIPLIERS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
/// Samples that each group of a pair needs.
const SMALLEST_GROUP: usize = 2;

/// Name of the term in the log.
const DISCREPANCY: &str = "mmd2";
/// A mean discrepancy below this is rounding error.
const SMALLEST_DISCREPANCY: f64 = 1e-6;

/// The representation z that is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Representation {
    /// The input of the head.
    #[default]
    AfterDropout,
    /// The same without the encoder's dropout.
    BeforeDropout,
}

/// Which Gaussian kernels are summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kernels {
    /// gamma from 1e-3 to 1e3 by factors of 10.
    #[serde(rename = "domainbed")]
    #[default]
    DomainBed,
    /// Five widths around the median distance of the batch.
    MedianScaled,
    /// One gamma.
    Single,
}

/// Which mean over kernel values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Over all pairs, including a sample with itself.
    #[default]
    Biased,
    /// Over pairs of two different samples.
    Unbiased,
}

/// Settings of fair representation learning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FairRepresentationConfig {
    /// Weight of the term, at least 0.
    pub lambda: f64,
    /// The representation z that is compared.
    pub representation: Representation,
    /// Which kernels are summed.
    pub kernels: Kernels,
    /// The one kernel of `kernels = "single"`, above 0.
    pub gamma: f64,
    /// Which mean over kernel values.
    pub estimator: Estimator,
    /// Whether groups are compared within strata.
    pub conditional: bool,
    /// The strata, if they are.
    pub stratum: StratumConfig,
    /// Draw every group equally often.
    pub balanced_sampler: bool,
}

impl Default for FairRepresentationConfig {
    fn default() -> Self {
        Self {
            lambda: 0.1,
            representation: Representation::AfterDropout,
            kernels: Kernels::DomainBed,
            gamma: 1.0,
            estimator: Estimator::Biased,
            conditional: false,
            stratum: StratumConfig::default(),
            balanced_sampler: false,
        }
    }
}

impl StrategySettings for FairRepresentationConfig {
    fn name(&self) -> &'static str {
        "fair-representation"
    }

    fn summary(&self) -> &'static str {
        "representations of the groups are aligned by maximum mean discrepancy (the paper's D.2.3)"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        let Self { lambda, gamma, .. } = *self;
        let default = Self::default();
        let in_range = lambda >= 0.0 && lambda.is_finite();
        check("lambda", lambda, in_range, "a finite number >= 0")?;
        let key = "gamma";
        check(key, gamma, gamma > 0.0 && gamma.is_finite(), "a finite number > 0")?;
        let has_effect = self.kernels == Kernels::Single || gamma.total_cmp(&default.gamma).is_eq();
        check(key, gamma, has_effect, "no value without kernels = \"single\"")?;
        let has_effect = self.conditional || self.stratum == default.stratum;
        let kind = format!("{:?}", self.stratum.kind);
        check("stratum", kind, has_effect, "no value without conditional = true")?;
        self.stratum.validate("stratum.bins")
    }

    fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        self.stratum.check_head(expected.head)
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        ObjectiveStrategy::boxed(FairRepresentation::new(self, cells)?, spec)
    }
}

/// Reduces the discrepancy between the representations of the groups.
#[derive(Clone, Debug)]
pub struct FairRepresentation {
    config: FairRepresentationConfig,
    /// The strata within which groups are compared; `None` = over all samples.
    strata: Option<Strata>,
    n_groups: usize,
    /// Pairs of groups that occur in training, in all strata.
    n_pairs: usize,
    sampling: Sampling,
}

impl FairRepresentation {
    /// Checks the settings, and finds the strata if there are any.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] or [`FairnessError::OneGroup`]
    /// without two groups to compare; if `conditional`, as [`Strata::fit`].
    pub fn new(config: &FairRepresentationConfig, cells: &TrainingCells) -> Result<Self, FairnessError> {
        config.validate()?;
        let n_trained = n_trained_groups(cells, "fair-representation")?;
        let fit = || Strata::fit(&config.stratum, cells, "fair-representation");
        let strata = if config.conditional { Some(fit()?) } else { None };
        let n_pairs = strata.map_or(1, |strata| strata.n()) * n_trained * (n_trained - 1) / 2;
        let (n_groups, sampling) = (cells.levels.len(), cells.sampling(config.balanced_sampler));
        Ok(Self { config: *config, strata, n_groups, n_pairs, sampling })
    }

    /// Stratum and group of every sample, `[batch]`.
    fn cells(&self, terms: &Terms<'_>) -> Vec<Option<(usize, u32)>> {
        let groups = || terms.groups.iter().map(|group| group.map(|group| group.0));
        match self.strata {
            None => groups().map(|group| group.map(|group| (0, group))).collect(),
            Some(strata) => {
                strata.of(&terms.targets.intervals).into_iter().zip(groups()).map(|(y, g)| y.zip(g)).collect()
            }
        }
    }
}

impl Objective for FairRepresentation {
    fn name(&self) -> &'static str {
        "fair-representation"
    }

    fn sampling(&self) -> Sampling {
        self.sampling.clone()
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch {
            name: "no-discrepancy",
            terms: vec![DISCREPANCY.to_owned()],
            idle: Idle::Near { center: 0.0, by: SMALLEST_DISCREPANCY },
            warns: Warns::InTheEnd,
            means: "the discrepancy between the groups is 0: either all representations are the same, or no batch had two \
                    groups to compare",
            change: "lower strategy.fair-representation.lambda in the first case; in the second (\"pairs skipped\" in \
                     steps.jsonl) set strategy.fair-representation.balanced-sampler or raise training.batch-size",
        }]
    }

    fn value(&mut self, terms: &Terms<'_>) -> Result<Value, FairnessError> {
        let FairRepresentationConfig { lambda, kernels, gamma, estimator, .. } = self.config;
        let contrast = Contrast::new(&self.cells(terms), estimator, SMALLEST_GROUP);
        let skipped = ("pairs skipped".to_owned(), self.n_pairs.saturating_sub(contrast.n_used) as f64);
        let everyone = vec![true; terms.groups.len()];
        let absent_groups = GroupMeans::new(terms.groups, &everyone, self.n_groups).n_absent();
        if contrast.n_used == 0 {
            let terms_of_step = vec![skipped, (DISCREPANCY.to_owned(), 0.0)];
            return Ok(Value { objective: terms.mean(), absent_groups, terms: terms_of_step, unread: Vec::new() });
        }
        let z = match self.config.representation {
            Representation::AfterDropout => &terms.representation,
            Representation::BeforeDropout => &terms.before_dropout,
        };
        let distances = squared_distances(z.clone());
        let mmd = contrast.of(kernel_values(&distances, &kernels.gammas(gamma, &distances)));
        let objective = terms.mean() + mmd.clone() * lambda;
        Ok(Value { objective, absent_groups, terms: vec![skipped], unread: vec![(DISCREPANCY.to_owned(), mmd)] })
    }
}

/// |`z_i` - `z_j`|^2: `[n, length]` -> `[n, n]`. Cost O(n^2 length), also in memory.
fn squared_distances(z: Tensor<2>) -> Tensor<2> {
    let [n, length] = z.dims();
    let difference = z.clone().reshape([n, 1, length]) - z.reshape([1, n, length]); // [n, n, length]
    difference.square().sum_dim(2).reshape([n, n])
}

/// Sum over the kernels, `[n, n]` -> `[n, n]`.
fn kernel_values(distances: &Tensor<2>, gammas: &[f64]) -> Tensor<2> {
    let kernel = |gamma: &f64| (distances.clone() * -gamma).exp();
    gammas.iter().map(kernel).reduce(|sum, kernel| sum + kernel).expect("a bank has a kernel")
}

/// The median of the squared distances of all pairs of two samples (of those that are not 0, where most are), `n >= 2`;
/// `None` if all samples are the same.
fn median_squared_distance(distances: &[f64], n: usize) -> Option<f64> {
    let mut pairs: Vec<f64> = (0..n).flat_map(|i| &distances[i * n + i + 1..(i + 1) * n]).copied().collect();
    pairs.sort_by(f64::total_cmp);
    let median = |sorted: &[f64]| {
        let half = sorted.len() / 2;
        if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
    };
    if pairs.is_empty() || median(&pairs) > 0.0 {
        return pairs.first().map(|_| median(&pairs));
    }
    pairs.retain(|distance| *distance > 0.0);
    (!pairs.is_empty()).then(|| median(&pairs))
}

impl Kernels {
    /// gamma of every kernel, given the squared distances of a batch, `[n, n]`.
    fn gammas(self, single: f64, distances: &Tensor<2>) -> Vec<f64> {
        match self {
            Self::DomainBed => DOMAINBED.to_vec(),
            Self::Single => vec![single],
            Self::MedianScaled => {
                let median = median_squared_distance(&on_host(&distances.clone().flatten(0, 1)), distances.dims()[0]);
                // If all distances are 0, every kernel is 1 regardless of gamma.
                MULTIPLIERS
                    .iter()
                    .map(|c| median.map_or(1.0, |median| 1.0 / (2.0 * c * median.max(SMALLEST_MEDIAN))))
                    .collect()
            }
        }
    }
}

/// Below it gamma would exceed the range of `f32`, and the diagonal would be 0 times infinity.
const SMALLEST_MEDIAN: f64 = 1e-30;

/// The term as a weighted sum over kernel values.
#[derive(Debug)]
struct Contrast {
    /// Coefficient of the kernel of i and j, `[n, n]`.
    coefficients: Vec<f64>,
    /// Pairs of cells behind it.
    n_used: usize,
}

impl Contrast {
    /// The mean of MMD^2 over the pairs of groups (within a stratum) of which each has at least `smallest` samples.
    /// `cells` are stratum and group of every sample, `[n]`.
    fn new(cells: &[Option<(usize, u32)>], estimator: Estimator, smallest: usize) -> Self {
        let n = cells.len();
        let mut members: BTreeMap<(usize, u32), Vec<usize>> = BTreeMap::new();
        for (i, cell) in cells.iter().enumerate() {
            if let Some(cell) = cell {
                members.entry(*cell).or_default().push(i);
            }
        }
        members.retain(|_, samples| samples.len() >= smallest);
        let mut pairs = Vec::new();
        for (position, ((stratum, _), first)) in members.iter().enumerate() {
            let others = members.iter().skip(position + 1).take_while(|((other, _), _)| other == stratum);
            pairs.extend(others.map(|(_, second)| (first, second)));
        }
        let mut coefficients = vec![0.0; n * n];
        let mut add = |rows: &[usize], columns: &[usize], coefficient: f64, diagonal: bool| {
            for i in rows {
                for j in columns.iter().filter(|j| diagonal || i != *j) {
                    coefficients[i * n + j] += coefficient / pairs.len() as f64;
                }
            }
        };
        for (first, second) in &pairs {
            for group in [first, second] {
                let size = group.len() as f64;
                match estimator {
                    Estimator::Biased => add(group, group, 1.0 / (size * size), true),
                    Estimator::Unbiased => add(group, group, 1.0 / (size * (size - 1.0)), false),
                }
            }
            let across = -1.0 / (first.len() * second.len()) as f64;
            add(first, second, across, true);
            add(second, first, across, true);
        }
        Self { coefficients, n_used: pairs.len() }
    }

    /// The term, `[1]`, from the kernel values, `[n, n]`.
    fn of(&self, kernels: Tensor<2>) -> Tensor<1> {
        let coefficients = constant(self.coefficients.clone(), kernels.dims(), &kernels);
        (kernels * coefficients).sum()
    }
}

#[cfg(test)]
#[path = "../../tests/inside/fair_representation.rs"]
#[expect(clippy::unwrap_used, clippy::print_stdout, reason = "a failed test may panic; counts are worth seeing")]
mod tests;
