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

mod discrepancy;

use fairtte_data::Sampling;
use serde::{Deserialize, Serialize};

use self::discrepancy::{Contrast, kernel_values, squared_distances};
use super::compared::ComparedGroups;
use super::groups::n_absent;
use super::objective::{Objective, Terms, Value};
use super::{
    ExpectedBatch, Idle, ObjectiveStrategy, Strata, Strategy, StrategySettings, StratumConfig, TrainingCells, Warns,
    Watch,
};
use crate::{FairnessError, LearnerSpec, check, check_not_negative, check_positive, written};

pub use discrepancy::{Estimator, Kernels};

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
        check_not_negative("lambda", lambda)?;
        check_positive("gamma", gamma)?;
        let has_effect = self.kernels == Kernels::Single || gamma.total_cmp(&default.gamma).is_eq();
        check("gamma", gamma, has_effect, "no value without kernels = \"single\"")?;
        let has_effect = self.conditional || self.stratum == default.stratum;
        check("stratum", written(self.stratum.kind), has_effect, "no value without conditional = true")?;
        self.stratum.validate()
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
    groups: ComparedGroups,
    /// Pairs of groups that occur in training, in all strata.
    n_pairs: usize,
}

impl FairRepresentation {
    /// Checks the settings, and finds the strata if there are any.
    ///
    /// # Errors
    /// [`FairnessError::Setting`] for a value outside its range, [`FairnessError::NoGroups`] or [`FairnessError::OneGroup`]
    /// without two groups to compare; if `conditional`, as [`Strata::fit`].
    pub fn new(config: &FairRepresentationConfig, cells: &TrainingCells) -> Result<Self, FairnessError> {
        config.validate()?;
        let groups = ComparedGroups::new(cells, config.balanced_sampler, "fair-representation")?;
        let fit = || Strata::fit(&config.stratum, cells, "fair-representation");
        let strata = if config.conditional { Some(fit()?) } else { None };
        let n_pairs = strata.map_or(1, |strata| strata.n()) * groups.n_trained * (groups.n_trained - 1) / 2;
        Ok(Self { config: *config, strata, groups, n_pairs })
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
        self.groups.sampling.clone()
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch {
            name: "no-discrepancy",
            terms: vec![DISCREPANCY.to_owned()],
            idle: Idle::Near { center: 0.0, by: SMALLEST_DISCREPANCY },
            warns: Warns::InTheEnd,
            means: "the discrepancy between the groups is 0: either all representations are the same, or no batch had two \
                    groups to compare",
            change: "lower `lambda` in the first case; in the second (\"pairs skipped\" in \
                     steps.jsonl) set `balanced-sampler` or raise `batch-size`",
        }]
    }

    fn value(&mut self, terms: &Terms<'_>) -> Result<Value, FairnessError> {
        let FairRepresentationConfig { lambda, kernels, gamma, estimator, .. } = self.config;
        let contrast = Contrast::new(&self.cells(terms), estimator, SMALLEST_GROUP);
        let skipped = ("pairs skipped".to_owned(), self.n_pairs.saturating_sub(contrast.n_used) as f64);
        let absent_groups = n_absent(terms.groups, self.groups.n_levels);
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

#[cfg(test)]
#[path = "../../../tests/inside/fair_representation.rs"]
#[expect(clippy::unwrap_used, clippy::print_stdout, reason = "a failed test may panic; counts are worth seeing")]
mod tests;
