//! `EnD`: entangling and disentangling representations (Tartaglione, Barbano & Grangetto 2021, CVPR,
//! arXiv 2103.02023).
//!
//! Acts on the representation. With u = z / |z| and g the group, y the stratum of a sample,
//! disentangle = (1/M) sum over groups of |sum of `u_i` . `u_j` over its `M_b` pairs i < j|, M all these pairs;
//! entangle = (1/M') sum of (1 - `u_i` . `u_j`) / 2 over the M' pairs i < j of the same stratum and different groups;
//! loss = mean `l_i` + alpha disentangle + beta entangle. A term without a pair is 0; a batch of one group has neither
//! term. Only the terms use u; the head uses z. Needs the attribute in training only.
//!
//! | setting | default | values | meaning |
//! |---|---|---|---|
//! | `alpha` | 0.1 | >= 0 | weight of the disentangling term; MEDFAIR searches 0.01 to 5 |
//! | `beta` | 0.1 | >= 0 | weight of the entangling term; MEDFAIR searches 0.01 to 5 |
//! | `disentangling` | `group-sum` | `group-sum`, `pair-sum` | absolute value of the sum over a group, or sum of absolute values |
//! | `stratum` | `status-at-horizon` | see `strata.rs` | what takes the place of the class |
//! | `balanced-sampler` | false | | every group is drawn equally often: rare groups are in every batch |
//!
//! Survival: the class becomes the stratum; a sample censored before the horizon has none and enters the disentangling
//! term only. Where we differ from the released code (and MEDFAIR): there the entangling term keeps a pair only if the later
//! sample of the batch has the smaller group code, so that it depends on the order; here it has all pairs.
//! A representation shorter than 1e-12 has no direction: u = 0 with gradient 0. Memory O(groups n^2).
//! Golden values: our worked cases `golden/end.json`.

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use fairtte_data::Sampling;
use fairtte_metrics::GroupId;
use serde::{Deserialize, Serialize};

use super::compared::ComparedGroups;
use super::groups::n_absent;
use super::numbers::constant;
use super::objective::{Objective, Terms, Value};
use super::step::named;
use super::{ExpectedBatch, ObjectiveStrategy, Strata, Strategy, StrategySettings, StratumConfig, TrainingCells};
use crate::{FairnessError, LearnerSpec, check_not_negative};

/// Below this length a representation has no direction.
const SHORTEST: f64 = 1e-12;

/// How the products within groups are summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Disentangling {
    /// The absolute value of the sum over a group.
    #[default]
    GroupSum,
    /// The sum of absolute values.
    PairSum,
}

/// Settings of entangling and disentangling.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct EndConfig {
    /// Weight of the disentangling term, at least 0.
    pub alpha: f64,
    /// Weight of the entangling term, at least 0.
    pub beta: f64,
    /// How the products within groups are summed.
    pub disentangling: Disentangling,
    /// What takes the place of the class.
    pub stratum: StratumConfig,
    /// Draw every group equally often.
    pub balanced_sampler: bool,
}

impl Default for EndConfig {
    fn default() -> Self {
        Self {
            alpha: 0.1,
            beta: 0.1,
            disentangling: Disentangling::GroupSum,
            stratum: StratumConfig::default(),
            balanced_sampler: false,
        }
    }
}

impl StrategySettings for EndConfig {
    fn name(&self) -> &'static str {
        "end"
    }

    fn summary(&self) -> &'static str {
        "representations are disentangled within groups, entangled within strata (Tartaglione et al. 2021)"
    }

    fn validate(&self) -> Result<(), FairnessError> {
        check_not_negative("alpha", self.alpha)?;
        check_not_negative("beta", self.beta)?;
        self.stratum.validate()
    }

    fn check_batches(&self, expected: &ExpectedBatch<'_>) -> Result<(), FairnessError> {
        self.stratum.check_head(expected.head)
    }

    fn build(&self, spec: &LearnerSpec, cells: &TrainingCells) -> Result<Box<dyn Strategy>, FairnessError> {
        ObjectiveStrategy::boxed(End::new(self, cells)?, spec)
    }
}

/// Disentangles the directions of a group and entangles those of a stratum across groups.
#[derive(Clone, Debug)]
pub struct End {
    config: EndConfig,
    strata: Strata,
    groups: ComparedGroups,
}

impl End {
    /// Checks the settings and finds the strata.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] or [`FairnessError::OneGroup`]
    /// without two groups; as [`Strata::fit`].
    pub fn new(config: &EndConfig, cells: &TrainingCells) -> Result<Self, FairnessError> {
        config.validate()?;
        let groups = ComparedGroups::new(cells, config.balanced_sampler, "end")?;
        let strata = Strata::fit(&config.stratum, cells, "end")?;
        Ok(Self { config: *config, strata, groups })
    }
}

impl Objective for End {
    fn name(&self) -> &'static str {
        "end"
    }

    fn sampling(&self) -> Sampling {
        self.groups.sampling.clone()
    }

    fn value(&mut self, terms: &Terms<'_>) -> Result<Value, FairnessError> {
        let EndConfig { alpha, beta, disentangling, .. } = self.config;
        let strata = self.strata.of(&terms.targets.intervals);
        let pairs = EndTerms::new(terms.representation.clone(), terms.groups, &strata, disentangling);
        let EndTerms { disentangle, n_within, entangle, n_across } = pairs;
        let absent_groups = n_absent(terms.groups, self.groups.n_levels);
        let mut objective = terms.mean();
        if self.groups.n_levels - absent_groups >= 2 {
            objective = objective + disentangle.clone() * alpha + entangle.clone() * beta;
        }
        let terms = named([("pairs within groups", n_within as f64), ("pairs across groups", n_across as f64)]);
        let unread = named([("disentangle", disentangle), ("entangle", entangle)]);
        Ok(Value { objective, absent_groups, terms, unread })
    }
}

/// z / |z|, or 0 with gradient 0 where |z| is below [`SHORTEST`]: `[n, length]` -> `[n, length]`.
fn directions(z: Tensor<2>) -> Tensor<2> {
    let squared = z.clone().square().sum_dim(1); // [n, 1]
    let short = squared.clone().lower_elem(SHORTEST * SHORTEST);
    let length = squared.mask_fill(short.clone(), 1.0).sqrt();
    let [_, width] = z.dims();
    (z / length).mask_fill(short.repeat_dim(1, width), 0.0)
}

/// Both terms, `[1]` each, and the pairs behind them.
#[derive(Debug)]
struct EndTerms {
    disentangle: Tensor<1>,
    n_within: usize,
    entangle: Tensor<1>,
    n_across: usize,
}

impl EndTerms {
    fn new(
        representation: Tensor<2>,
        groups: &[Option<GroupId>],
        strata: &[Option<usize>],
        disentangling: Disentangling,
    ) -> Self {
        let n = groups.len();
        let u = directions(representation);
        let products = u.clone().matmul(u.transpose()).reshape([n * n, 1]); // u_i . u_j
        let pairs = || (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        let mut within: BTreeMap<GroupId, Vec<usize>> = BTreeMap::new();
        let mut across = Vec::new();
        for (i, j) in pairs() {
            match (groups[i], groups[j]) {
                (Some(a), Some(b)) if a == b => within.entry(a).or_default().push(i * n + j),
                (Some(_), Some(_)) if strata[i].is_some() && strata[i] == strata[j] => across.push(i * n + j),
                _ => {}
            }
        }
        let n_within = within.values().map(Vec::len).sum();
        let groups: Vec<&Vec<usize>> = within.values().collect();
        let sums = |products: Tensor<2>| {
            means(&groups, n_within, n, &products).matmul(products).abs().sum() // [n_groups, 1] -> [1]
        };
        let disentangle = match disentangling {
            _ if n_within == 0 => none(&products),
            Disentangling::GroupSum => sums(products.clone()),
            Disentangling::PairSum => sums(products.clone().abs()),
        };
        let entangle = if across.is_empty() {
            none(&products)
        } else {
            let mean: Tensor<1> = means(&[&across], across.len(), n, &products).matmul(products).flatten(0, 1);
            (-mean + 1.0) / 2.0
        };
        Self { disentangle, n_within, entangle, n_across: across.len() }
    }
}

/// A row for each set of pairs that sums its products and divides by `n_pairs`: `[n_sets, n * n]`.
fn means(sets: &[&Vec<usize>], n_pairs: usize, n: usize, like: &Tensor<2>) -> Tensor<2> {
    let mut coefficients = vec![0.0; sets.len() * n * n];
    for (row, set) in sets.iter().enumerate() {
        for pair in *set {
            coefficients[row * n * n + pair] = 1.0 / n_pairs as f64;
        }
    }
    constant(coefficients, [sets.len(), n * n], like)
}

fn none(like: &Tensor<2>) -> Tensor<1> {
    constant(vec![0.0], [1], like)
}

#[cfg(test)]
#[path = "../../tests/inside/end.rs"]
#[expect(clippy::unwrap_used, clippy::print_stdout, reason = "a failed test may panic; counts are worth seeing")]
mod tests;
