//! The result of a choice: the content of `choice.json`, from which the tables are made.

use serde::Serialize;

pub(crate) use crate::args::{LossOf, Rule};

/// Everything that was chosen.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Verdict {
    pub(crate) rule: Rule,
    /// Relative loss of the base model's metric that `fairest` tolerates.
    pub(crate) tolerated_loss: f64,
    pub(crate) tolerated_loss_of: LossOf,
    pub(crate) base: String,
    /// Level of the intervals; a change whose adjusted p value is at most 1 minus this is called different.
    pub(crate) level: f64,
    pub(crate) replicates: usize,
    /// The most training seeds of a strategy.
    pub(crate) n_seeds: usize,
    /// Folds of a cross-validation, whose test parts are evaluated together; 1 without.
    pub(crate) n_folds: usize,
    /// Samples and events of the test part.
    pub(crate) n_test: usize,
    pub(crate) n_test_events: usize,
    /// Where the class is made from times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) horizon: Option<Horizon>,
    pub(crate) blocks: Vec<Block>,
    /// Rank tests over blocks, where there are several.
    pub(crate) ranks: Vec<RankComparison>,
    /// Runs of a comparison that could not be trained.
    pub(crate) not_trained: Vec<NotTrained>,
}

/// Who has no class at the horizon, in the test part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Horizon {
    /// In the unit of the data set.
    pub(crate) time: f64,
    /// Samples of the test part, with and without a class.
    pub(crate) n: usize,
    /// Those that are censored by the horizon.
    pub(crate) n_left_out: usize,
}

/// Runs that were not trained for one reason: the method refused the data, or the training diverged.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct NotTrained {
    pub(crate) runs: Vec<String>,
    pub(crate) because: String,
}

/// What kind of network is trained: strategies are compared within one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Network {
    pub(crate) head: String,
    pub(crate) backbone: String,
    /// `scratch`, or the name of the file with pre-trained weights.
    pub(crate) start: String,
}

impl Network {
    /// In the place of a network where only estimators on columns are compared.
    pub(crate) fn none() -> Self {
        let none = || "none".to_owned();
        Self { head: none(), backbone: none(), start: none() }
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { head, backbone, start } = self;
        write!(out, "{head}, {backbone}, {start}")
    }
}

/// All strategies under one network, attribute and metric: one family of tests.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Block {
    pub(crate) attribute: String,
    /// Stable name of the metric.
    pub(crate) metric: String,
    /// Its short name.
    pub(crate) label: String,
    pub(crate) higher_is_better: bool,
    #[serde(flatten)]
    pub(crate) network: Network,
    /// Groups of the test part.
    pub(crate) groups: Vec<GroupSize>,
    /// The groups whose signed difference is compared.
    pub(crate) contrast: Option<Contrast>,
    /// Value of a model without skill in the validation part.
    pub(crate) no_skill: Option<f64>,
    /// Warnings that must be read before the numbers.
    pub(crate) warnings: Vec<String>,
    pub(crate) rows: Vec<Standing>,
}

/// A group of the test part.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct GroupSize {
    pub(crate) level: String,
    pub(crate) n: usize,
    pub(crate) n_events: usize,
}

/// The groups with the largest and the smallest metric of the base model in the validation part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Contrast {
    pub(crate) first: String,
    /// Its value is subtracted.
    pub(crate) second: String,
}

/// The role of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// The base strategy under its own rule: with `fairest` the best metric.
    Base,
    /// The base strategy under the rule of all others, with which they are compared.
    Control,
    /// Any other strategy.
    Strategy,
}

/// One strategy in a block.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Standing {
    pub(crate) strategy: String,
    pub(crate) role: Role,
    /// Weights to choose from.
    pub(crate) n_candidates: usize,
    /// Why nothing was chosen.
    pub(crate) none_because: Option<String>,
    pub(crate) chosen: Option<Chosen>,
    /// The choice within each training seed alone.
    pub(crate) seeds: Vec<OfSeed>,
    /// Test values over those seeds.
    pub(crate) over_seeds: OverSeeds,
}

/// Chosen weights.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Chosen {
    pub(crate) run: String,
    pub(crate) epoch: usize,
    /// Description of the weights: `epoch 6`, `averaged over epochs 9 to 12`, ..
    pub(crate) weights: String,
    /// Rules of the training that kept them.
    pub(crate) kept_by: String,
    pub(crate) validation: Scores,
    pub(crate) test: Scores,
    /// Where the class is made from times: the same in all samples of the test part. No choice, change or rank reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weighted: Option<Weighted>,
    /// Change of the metric from the control row.
    pub(crate) change: Option<Change>,
    /// Change of the signed difference from that of the control row.
    pub(crate) difference_change: Option<Change>,
    /// The same two from the base row, without a test.
    pub(crate) change_from_base: Option<Change>,
    pub(crate) difference_change_from_base: Option<Change>,
}

/// The AUC at the horizon with weights for censoring.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Weighted {
    pub(crate) value: Option<f64>,
    /// Largest minus smallest group.
    pub(crate) gap: Option<f64>,
    /// The AUC of those with a class minus this one: what leaving out the others does, with its paired interval.
    pub(crate) naive_minus_this: Option<f64>,
    pub(crate) lower: Option<f64>,
    pub(crate) upper: Option<f64>,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) undefined: Option<String>,
}

/// A metric over all samples and between groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Scores {
    pub(crate) value: Option<f64>,
    /// Largest minus smallest group.
    pub(crate) gap: Option<f64>,
    /// The signed difference of the two groups of the contrast.
    pub(crate) difference: Option<f64>,
}

/// A paired difference of two chosen models in units of the metric, with its bootstrap interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Change {
    pub(crate) value: Option<f64>,
    pub(crate) lower: Option<f64>,
    pub(crate) upper: Option<f64>,
    /// Of a metric: the ratio of the two values minus 1, in percent, with the interval of the ratio.
    pub(crate) percent: Option<f64>,
    pub(crate) percent_lower: Option<f64>,
    pub(crate) percent_upper: Option<f64>,
    /// Two-sided p value of no difference.
    pub(crate) p_value: Option<f64>,
    /// The same, adjusted (Holm) within the block.
    pub(crate) p_holm: Option<f64>,
    /// Whether the adjusted p value is at most 1 minus the level.
    pub(crate) different: bool,
    /// Draws in which one of the two is undefined or nothing is chosen.
    pub(crate) undefined_replicates: usize,
    /// Why there is no value or no interval.
    pub(crate) undefined: Option<String>,
}

/// The choice among the weights of one training seed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct OfSeed {
    pub(crate) seed: u64,
    /// Absent if nothing is within the tolerated loss of the base model of this seed.
    pub(crate) run: Option<String>,
    pub(crate) weights: Option<String>,
    /// Values in the test part.
    pub(crate) test: Scores,
}

/// Test values over training seeds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct OverSeeds {
    pub(crate) value: Option<Spread>,
    pub(crate) gap: Option<Spread>,
    pub(crate) difference: Option<Spread>,
}

/// Median and range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Spread {
    pub(crate) n: usize,
    pub(crate) median: f64,
    pub(crate) smallest: f64,
    pub(crate) largest: f64,
}

impl Spread {
    /// The median and range of the values that exist; `None` if there are none.
    pub(crate) fn of(values: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let mut values: Vec<f64> = values.flatten().collect();
        values.sort_by(f64::total_cmp);
        let (smallest, largest) = (*values.first()?, *values.last()?);
        let n = values.len();
        Some(Self { n, median: f64::midpoint(values[(n - 1) / 2], values[n / 2]), smallest, largest })
    }
}

/// What a rank test compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ranked {
    /// Gaps; smaller is better.
    Gap,
    /// The metric over all samples.
    Metric,
}

/// Ranks of the strategies over blocks, with Friedman's test and Nemenyi's.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct RankComparison {
    pub(crate) metric: String,
    pub(crate) label: String,
    pub(crate) of: Ranked,
    /// Blocks with a value of every method: attribute x network x training seed.
    pub(crate) n_blocks: usize,
    /// Blocks left out because one of the methods has no value.
    pub(crate) n_incomplete: usize,
    /// Methods left out because they have a value in less than half of the blocks.
    pub(crate) left_out: Vec<String>,
    pub(crate) methods: Vec<String>,
    /// Average rank of every method; 1 is best.
    pub(crate) average_ranks: Vec<f64>,
    pub(crate) friedman_chi_square: Option<f64>,
    pub(crate) friedman_p: Option<f64>,
    /// p values of all pairs (Nemenyi), where Friedman's test rejects.
    pub(crate) nemenyi_p: Option<Vec<Vec<f64>>>,
    /// The interpretation of the test and its limits.
    pub(crate) note: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_two() {
        let of = |values: &[Option<f64>]| Spread::of(values.iter().copied());
        let found = of(&[Some(4.0), None, Some(1.0), Some(2.0), Some(8.0)]);
        assert_eq!(found, Some(Spread { n: 4, median: 3.0, smallest: 1.0, largest: 8.0 }));
        assert_eq!(of(&[Some(5.0), Some(1.0), Some(2.0)]).map(|spread| spread.median), Some(2.0));
        assert_eq!(of(&[None]), None);
    }
}
