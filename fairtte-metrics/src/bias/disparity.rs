//! The statistics behind the five sources of bias, for many arrangements of the same samples at once.
//!
//! An arrangement says in which group every sample is and how often it counts: the data, a permutation of the labels
//! or a bootstrap replicate. What does not depend on it (sorted projections, clusters, bins) is computed once:
//! transport needs one pass over the sorted values per projection and pair of groups, rate (and information, in
//! `information.rs`) one pass over the samples.

use std::collections::BTreeMap;

use ndarray::ArrayRef2;

use super::wasserstein::{check_finite, representable};
use crate::ids::to_u32;
use crate::{GroupId, MetricError, parallel};

/// Arrangements that share one pass over sorted values: their sums advance side by side in vector registers.
pub(super) const LANES: usize = 8;

/// Group and weight of every sample.
pub(super) struct Arrangement {
    pub(super) group: Vec<Option<GroupId>>,
    pub(super) weight: Vec<u32>,
}

/// Two groups that are compared.
pub(super) type Pair = (GroupId, GroupId);

/// How much groups differ in one respect, in [0, 1] for every pair; `None` where a group has no sample.
pub(super) trait Disparity: Sync {
    /// The value of every pair in at most [`LANES`] arrangements.
    fn of(&self, arrangements: &[Arrangement], pairs: &[Pair]) -> Vec<Option<Vec<f64>>>;
}

/// Values of the samples that take part, sorted, with the distances between neighbours divided by the normaliser.
struct SortedLine {
    /// Positions in [`Transport::rows`], ascending by value.
    order: Vec<u32>,
    /// Step from each value to the next; 0 after the last.
    steps: Vec<f64>,
}

impl SortedLine {
    /// A normaliser of 0 means that all values are equal: the distance is 0.
    fn new(values: &[f64], normaliser: f64) -> Self {
        let mut order: Vec<u32> = (0..to_u32(values.len())).collect();
        order.sort_unstable_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
        let step = |pair: &[u32]| {
            let step = values[pair[1] as usize] - values[pair[0] as usize];
            if normaliser > 0.0 { step / normaliser } else { 0.0 }
        };
        let steps = order.windows(2).map(step).chain([0.0]).collect();
        Self { order, steps }
    }
}

/// Wasserstein-1 distance between groups divided by a normaliser, averaged over lines.
pub(super) struct Transport {
    rows: Vec<usize>,
    lines: Vec<SortedLine>,
}

impl Transport {
    /// `values[i] / normaliser` of row `rows[i]`.
    pub(super) fn of_values(rows: Vec<usize>, values: &[f64], normaliser: f64) -> Self {
        Self { lines: vec![SortedLine::new(values, normaliser)], rows }
    }

    /// The rows of `matrix` `[rows.len(), d]` along every column of `projections` `[d, k]`, each divided by the range
    /// of the projected values.
    pub(super) fn of_projections(
        rows: Vec<usize>,
        matrix: &ArrayRef2<f64>,
        projections: &ArrayRef2<f64>,
    ) -> Result<Self, MetricError> {
        let projected: Vec<Vec<f64>> = matrix.dot(projections).columns().into_iter().map(|c| c.to_vec()).collect();
        let line = |values: &Vec<f64>| {
            check_finite("projected representation", values)?;
            let (low, high) =
                values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
            Ok(SortedLine::new(values, representable("range of the projected representation", high - low)?))
        };
        let lines = parallel::try_map(&projected, line)?;
        Ok(Self { rows, lines })
    }

    /// Shares of the mass per sample: 1/W of the first group, -1/W of the second, lane by lane.
    fn shares(
        &self,
        arrangements: &[Arrangement],
        totals: &[BTreeMap<GroupId, u64>],
        (a, b): Pair,
    ) -> Vec<[f64; LANES]> {
        let mut shares = vec![[0.0; LANES]; self.rows.len()];
        for (lane, (arrangement, totals)) in arrangements.iter().zip(totals).enumerate() {
            let total = |group| totals.get(&group).map_or(0.0, |total| *total as f64);
            let (total_a, total_b) = (total(a), total(b));
            for (share, &row) in shares.iter_mut().zip(&self.rows) {
                let weight = f64::from(arrangement.weight[row]);
                if arrangement.group[row] == Some(a) {
                    share[lane] = weight / total_a;
                } else if arrangement.group[row] == Some(b) {
                    share[lane] = -weight / total_b;
                }
            }
        }
        shares
    }

    /// The area between the distribution functions, averaged over lines.
    fn areas(&self, shares: &[[f64; LANES]]) -> [f64; LANES] {
        let mut areas = [0.0; LANES];
        for line in &self.lines {
            let mut difference = [0.0; LANES];
            for (&place, &step) in line.order.iter().zip(&line.steps) {
                let share = &shares[place as usize];
                for lane in 0..LANES {
                    difference[lane] += share[lane];
                    areas[lane] += difference[lane].abs() * step;
                }
            }
        }
        // Rounding may exceed 1 when all mass moves across the whole range.
        areas.map(|area| (area / self.lines.len() as f64).min(1.0))
    }
}

impl Disparity for Transport {
    fn of(&self, arrangements: &[Arrangement], pairs: &[Pair]) -> Vec<Option<Vec<f64>>> {
        let totals: Vec<_> = arrangements.iter().map(|arrangement| group_totals(&self.rows, arrangement)).collect();
        let areas: Vec<[f64; LANES]> =
            pairs.iter().map(|pair| self.areas(&self.shares(arrangements, &totals, *pair))).collect();
        let values = |(lane, totals): (usize, &BTreeMap<GroupId, u64>)| {
            let present = pairs.iter().all(|(a, b)| totals.contains_key(a) && totals.contains_key(b));
            present.then(|| areas.iter().map(|area| area[lane]).collect())
        };
        totals.iter().enumerate().map(values).collect()
    }
}

/// Weight of every group whose weight is above 0.
fn group_totals(rows: &[usize], arrangement: &Arrangement) -> BTreeMap<GroupId, u64> {
    let mut totals = BTreeMap::new();
    for &row in rows.iter().filter(|&&row| arrangement.weight[row] > 0) {
        if let Some(group) = arrangement.group[row] {
            *totals.entry(group).or_default() += u64::from(arrangement.weight[row]);
        }
    }
    totals
}

/// Share of marked samples.
pub(super) struct Rate {
    pub(super) rows: Vec<usize>,
    /// Whether each of `rows` is marked.
    pub(super) marked: Vec<bool>,
}

impl Rate {
    /// The share in every group that has a sample.
    pub(super) fn by_group(&self, arrangement: &Arrangement) -> BTreeMap<GroupId, f64> {
        let mut counts: BTreeMap<GroupId, (u64, u64)> = BTreeMap::new();
        for (&row, &marked) in self.rows.iter().zip(&self.marked) {
            let weight = u64::from(arrangement.weight[row]);
            if let (Some(group), true) = (arrangement.group[row], weight > 0) {
                let count = counts.entry(group).or_default();
                count.0 += if marked { weight } else { 0 };
                count.1 += weight;
            }
        }
        counts.into_iter().map(|(group, (marked, all))| (group, marked as f64 / all as f64)).collect()
    }
}

impl Disparity for Rate {
    fn of(&self, arrangements: &[Arrangement], pairs: &[Pair]) -> Vec<Option<Vec<f64>>> {
        let values = |arrangement: &Arrangement| {
            let groups = self.by_group(arrangement);
            differences(pairs, |group| groups.get(&group).copied())
        };
        arrangements.iter().map(values).collect()
    }
}

pub(super) fn differences(pairs: &[Pair], value: impl Fn(GroupId) -> Option<f64>) -> Option<Vec<f64>> {
    pairs.iter().map(|(a, b)| Some((value(*a)? - value(*b)?).abs())).collect()
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use ndarray::{Array2, Axis};
    use rand::RngExt as _;

    use super::*;
    use crate::bias::{Distribution, seeded_projections, sliced_wasserstein, wasserstein_1};
    use crate::seeds;

    const PAIR: Pair = (GroupId(0), GroupId(1));

    fn arrangement(n: usize, name: u64) -> Arrangement {
        let mut rng = seeds::stream(6, "arrangement", &[name]);
        let group =
            (0..n).map(|_| if rng.random::<f64>() < 0.1 { None } else { Some(GroupId(rng.random_range(0..3))) });
        let group = group.collect();
        Arrangement { group, weight: (0..n).map(|_| rng.random_range(0..3)).collect() }
    }

    /// The values of a group, each as often as it counts.
    fn repeated(values: &[f64], arrangement: &Arrangement, group: GroupId) -> Distribution {
        let rows = (0..values.len()).filter(|&row| arrangement.group[row] == Some(group));
        let weighted = rows.flat_map(|row| vec![values[row]; arrangement.weight[row] as usize]);
        Distribution::new(&weighted.collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn transport_of_many_arrangements_is_the_distance_of_each() {
        let mut rng = seeds::stream(1, "values", &[]);
        let values: Vec<f64> = (0..300).map(|_| f64::from(rng.random_range(0..40_u32))).collect(); // with ties
        let transport = Transport::of_values((0..300).collect(), &values, 8.0);
        let arrangements: Vec<Arrangement> = (0..LANES as u64).map(|name| arrangement(300, name)).collect();
        let pairs = [PAIR, (GroupId(1), GroupId(2))];
        for (found, arrangement) in transport.of(&arrangements, &pairs).iter().zip(&arrangements) {
            for (found, (a, b)) in found.as_ref().unwrap().iter().zip(pairs) {
                let distance = |g| repeated(&values, arrangement, g);
                let expected = wasserstein_1(&distance(a), &distance(b)).unwrap() / 8.0;
                assert_relative_eq!(*found, expected, max_relative = 1e-11);
            }
        }
    }

    #[test]
    fn transport_along_projections_is_the_mean_of_distances_by_range() {
        let mut rng = seeds::stream(1, "matrix", &[]);
        let matrix = Array2::from_shape_fn((60, 4), |_| rng.random::<f64>());
        let projections = seeded_projections(4, 7, 5).unwrap();
        let transport = Transport::of_projections((0..60).collect(), &matrix, &projections).unwrap();
        let group = (0..60).map(|row| Some(GroupId(row % 2))).collect();
        let found = transport.of(&[Arrangement { group, weight: vec![1; 60] }], &[PAIR]);
        let half = |first: usize| matrix.select(Axis(0), &(first..60).step_by(2).collect::<Vec<_>>());
        let sliced = sliced_wasserstein(&half(0), &half(1), &projections, 1.0).unwrap();
        let range =
            |column: usize| Distribution::new(&matrix.dot(&projections.column(column)).to_vec()).unwrap().range();
        let normalised = sliced.powers.iter().enumerate().map(|(k, power)| power / (range(k).1 - range(k).0));
        assert_relative_eq!(found[0].as_ref().unwrap()[0], normalised.sum::<f64>() / 7.0, max_relative = 1e-12);
    }

    #[test]
    fn a_group_without_weight_has_no_disparity() {
        let group = vec![Some(GroupId(0)), Some(GroupId(1)), Some(GroupId(1))];
        let arrangement = |weight: Vec<u32>| Arrangement { group: group.clone(), weight };
        let arrangements = [arrangement(vec![1, 1, 1]), arrangement(vec![0, 2, 1])];
        let rate = Rate { rows: vec![0, 1, 2], marked: vec![true, false, true] };
        assert_eq!(rate.of(&arrangements, &[PAIR]), [Some(vec![0.5]), None]);
        let transport = Transport::of_values(vec![0, 1, 2], &[0.0, 1.0, 2.0], 2.0);
        assert_eq!(transport.of(&arrangements, &[PAIR]), [Some(vec![0.75]), None]);
    }
}
