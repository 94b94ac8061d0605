//! Mean losses of the groups of a batch.

use burn::tensor::Tensor;
use fairtte_metrics::GroupId;

use super::numbers::constant;
use super::{Idle, Warns, Watch};

/// The groups of a batch: which samples of each have a loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMeans {
    /// Samples with a loss term in each group, by their position in the batch; `[n_groups]`.
    pub members: Vec<Vec<usize>>,
}

impl GroupMeans {
    /// Sorts the samples with a loss term by group; those without a group are in none.
    pub fn new(groups: &[Option<GroupId>], counted: &[bool], n_groups: usize) -> Self {
        let mut members = vec![Vec::new(); n_groups];
        for (i, (group, counted)) in groups.iter().zip(counted).enumerate() {
            if let (Some(group), true) = (group, counted) {
                members[group.index()].push(i);
            }
        }
        Self { members }
    }

    /// Number of samples with a loss term in each group.
    pub fn counts(&self) -> Vec<usize> {
        self.members.iter().map(Vec::len).collect()
    }

    /// Groups without a sample that has a loss term.
    pub fn n_absent(&self) -> usize {
        self.members.iter().filter(|members| members.is_empty()).count()
    }

    /// Number of samples with a loss term and a group.
    pub fn n_known(&self) -> usize {
        self.members.iter().map(Vec::len).sum()
    }

    /// Mean loss of each group on the host; `None` for an absent one. `losses` is `[batch]`.
    pub fn of(&self, losses: &[f64]) -> Vec<Option<f64>> {
        let mean = |members: &Vec<usize>| {
            let sum: f64 = members.iter().map(|i| losses[*i]).sum();
            (!members.is_empty()).then(|| sum / members.len() as f64)
        };
        self.members.iter().map(mean).collect()
    }
}

/// Number of groups without a sample in a batch.
pub(crate) fn n_absent(groups: &[Option<GroupId>], n_groups: usize) -> usize {
    GroupMeans::new(groups, &vec![true; groups.len()], n_groups).n_absent()
}

/// Name of the weight of a group in the log.
fn weight_term(level: &str) -> String {
    format!("weight of {level}")
}

/// The weights of groups under their names in the log; `None` for an absent group, which has no entry.
pub(crate) fn weight_terms(levels: &[String], weights: impl IntoIterator<Item = Option<f64>>) -> Vec<(String, f64)> {
    levels.iter().zip(weights).filter_map(|(level, weight)| Some((weight_term(level), weight?))).collect()
}

/// The relative difference from equal weights at or above which the weights count as changed.
const MOVED: f64 = 0.05;

/// The watch on the weights of groups, which are `equal` as long as the losses of the groups do not change them.
pub(crate) fn unmoved_weights<'a>(
    levels: impl Iterator<Item = &'a String>,
    equal: f64,
    means: &'static str,
    change: &'static str,
) -> Watch {
    let (terms, idle) =
        (levels.map(|level| weight_term(level)).collect(), Idle::Near { center: equal, by: MOVED * equal });
    Watch { name: "unmoved-weights", terms, idle, warns: Warns::Throughout, means, change }
}

/// Losses of a batch in host memory, `[batch]`.
pub(crate) fn on_host(losses: &Tensor<1>) -> Vec<f64> {
    losses.clone().inner().into_data().iter::<f64>().collect()
}

/// Sum of `losses` with constant `coefficients`, `[1]`; both are `[batch]`.
pub(crate) fn weighted_sum(losses: &Tensor<1>, coefficients: Vec<f64>) -> Tensor<1> {
    (losses.clone() * constant(coefficients, losses.dims(), losses)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_without_a_group_or_a_loss_enter_no_mean() {
        let group = |g| Some(GroupId(g));
        let groups = [group(0), group(2), None, group(0), group(2)];
        let means = GroupMeans::new(&groups, &[true, true, true, true, false], 3);
        assert_eq!(means.of(&[1.0, 2.0, 4.0, 8.0, 16.0]), [Some(4.5), None, Some(2.0)]);
        assert_eq!((means.counts(), means.n_absent(), means.n_known()), (vec![2, 0, 1], 1, 3));
    }
}
