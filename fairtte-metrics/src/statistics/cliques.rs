//! Groups of models that a test does not distinguish: the bars of a critical-difference diagram.
//!
//! Three rules, which can differ on the same table (N = 5, k = 3: {0, 2}, {1, 2} by the first two, {0, 1, 2} by the
//! third): intervals of average ranks no wider than the critical difference (autorank 1.3.0); maximal cliques of the
//! graph of pairs with p >= alpha, found by Bron & Kerbosch, Communications of the ACM 16 (1973) 575-577
//! (scikit-posthocs 0.17.1); and critdd 0.0.5: one single group unless the F test of Iman and Davenport rejects, else
//! maximal cliques after signed-rank tests (Pratt, table of untied ranks) with Holm's adjustment, widened to every
//! model whose average rank lies within the clique's, where those contained in another one are dropped.
//!
//! Here every model is in at least one group, possibly alone (as critdd reports; the others draw no bar for it).

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::friedman::{RankTies, iman_davenport};
use super::nemenyi::{RangeQuantile, critical_difference, nemenyi};
use super::signed_rank_settings::{SignedRankMethod, ZeroDifferences};
use super::{Adjustment, RankTable, adjust_pairwise, check_alpha, pairwise_wilcoxon};
use crate::MetricError;

/// When models belong to one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CliqueRule {
    /// Average ranks within the critical difference of Nemenyi's test (autorank, with [`RangeQuantile::Gleason`]).
    RankInterval(RangeQuantile),
    /// All pairs have p >= alpha in Nemenyi's test (scikit-posthocs).
    NemenyiCliques,
    /// All pairs have p >= alpha in signed-rank tests after Holm, widened over the ranks between (critdd).
    WidenedWilcoxonHolm,
}

/// Groups of models that do not differ at level `alpha`, from the lowest average ranks to the highest.
///
/// Each group lists models (columns of the table) by average rank, ties in column order.
///
/// ```
/// use fairtte_metrics::Direction;
/// use fairtte_metrics::statistics::{CliqueRule, RangeQuantile, RankTable, cliques};
/// use ndarray::array;
///
/// // Average ranks 1, 2, 3 and a critical difference of 3.31 sqrt(3 * 4 / (12 * 9)) = 1.10.
/// let values = ndarray::Array2::from_shape_fn((9, 3), |(_, model)| model as f64);
/// let table = RankTable::new(values, Direction::LowerIsBetter)?;
/// let groups = cliques(&table, 0.05, CliqueRule::RankInterval(RangeQuantile::Exact))?;
/// assert_eq!(groups, [vec![0, 1], vec![1, 2]]);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// If `alpha` is out of range, or what the rule builds on fails: one data set only, too many data sets for exact tests.
///
/// Cost: that of the p values; the number of maximal cliques can grow as `3^(k/3)` for k models in the worst case.
pub fn cliques(table: &RankTable, alpha: f64, rule: CliqueRule) -> Result<Vec<Vec<usize>>, MetricError> {
    check_alpha(alpha)?;
    match rule {
        CliqueRule::RankInterval(quantile) => {
            let apart = critical_difference(table.n_models(), table.n_data_sets(), alpha, quantile)?;
            Ok(rank_intervals(table, apart))
        }
        CliqueRule::NemenyiCliques => p_value_cliques(table, &nemenyi(table), alpha),
        CliqueRule::WidenedWilcoxonHolm => widened_cliques(table, alpha),
    }
}

/// Maximal sets of models whose pairs all have p >= `alpha` in a symmetric matrix, e.g. of [`nemenyi`] or
/// [`adjust_pairwise`]; in the order of [`cliques`]. The diagonal is not read.
///
/// # Errors
/// If the matrix does not have one row and column per model, or `alpha` is out of range.
pub fn p_value_cliques(table: &RankTable, p_values: &Array2<f64>, alpha: f64) -> Result<Vec<Vec<usize>>, MetricError> {
    check_alpha(alpha)?;
    let n_models = table.n_models();
    if p_values.dim() != (n_models, n_models) {
        let (rows, columns) = p_values.dim();
        return Err(MetricError::PairwiseShape { rows, columns, n_models });
    }
    let joined = p_values.mapv(|p| p >= alpha);
    let mut found = Vec::new();
    bron_kerbosch(&joined, &mut Vec::new(), (0..n_models).collect(), Vec::new(), &mut found);
    Ok(in_rank_order(table, found))
}

/// autorank: from every model in rank order as far as `apart` allows, unless an earlier interval reaches as far.
fn rank_intervals(table: &RankTable, apart: f64) -> Vec<Vec<usize>> {
    let (ranks, order) = (table.average_ranks(), table.by_rank());
    let mut groups = Vec::new();
    let mut reached = 0;
    for (start, &model) in order.iter().enumerate() {
        let within = |other: &usize| ranks[*other] - ranks[model] <= apart;
        let end = start + order[start..].iter().take_while(|other| within(other)).count();
        if end > reached {
            groups.push(order[start..end].to_vec());
            reached = end;
        }
    }
    groups
}

/// critdd's groups.
fn widened_cliques(table: &RankTable, alpha: f64) -> Result<Vec<Vec<usize>>, MetricError> {
    let rejected = match iman_davenport(table, RankTies::Uncorrected) {
        Ok(test) => test.p_value < alpha,
        // F is infinite, its tail 0.
        Err(MetricError::PerfectAgreement { .. }) => true,
        Err(error) => return Err(error),
    };
    if !rejected {
        return Ok(vec![table.by_rank()]);
    }
    let p = pairwise_wilcoxon(table, ZeroDifferences::Pratt, SignedRankMethod::UntiedTable)?;
    let narrow = p_value_cliques(table, &adjust_pairwise(&p, Adjustment::HolmUnclipped)?, alpha)?;
    let ranks = table.average_ranks();
    // A clique is in rank order, so its ends are its extreme ranks.
    let ends: Vec<(f64, f64)> = narrow.iter().map(|group| (ranks[group[0]], ranks[group[group.len() - 1]])).collect();
    let mut wide: Vec<Vec<usize>> = Vec::new();
    for &(low, high) in &ends {
        let inside = |&(l, h): &(f64, f64)| (l <= low && h > high) || (l < low && h >= high);
        let group: Vec<usize> =
            table.by_rank().into_iter().filter(|&model| ranks[model] >= low && ranks[model] <= high).collect();
        if !ends.iter().any(inside) && !wide.contains(&group) {
            wide.push(group);
        }
    }
    Ok(wide)
}

/// Adds every maximal clique that contains `clique`, models of `candidates` and none of `done`.
fn bron_kerbosch(
    joined: &Array2<bool>,
    clique: &mut Vec<usize>,
    mut candidates: Vec<usize>,
    mut done: Vec<usize>,
    found: &mut Vec<Vec<usize>>,
) {
    // Every clique contains the pivot or a model that is not joined to it; starting from those only saves branches.
    let n_joined = |pivot: &usize| candidates.iter().filter(|model| joined[[*pivot, **model]]).count();
    let Some(pivot) = candidates.iter().chain(&done).copied().max_by_key(n_joined) else {
        found.push(clique.clone());
        return;
    };
    let starts: Vec<usize> = candidates.iter().copied().filter(|&m| m == pivot || !joined[[pivot, m]]).collect();
    for model in starts {
        candidates.retain(|&other| other != model);
        let joined_to = |others: &[usize]| others.iter().copied().filter(|&other| joined[[model, other]]).collect();
        clique.push(model);
        bron_kerbosch(joined, clique, joined_to(&candidates), joined_to(&done), found);
        clique.pop();
        done.push(model);
    }
}

/// Models of every group by rank, and groups by the places of their models.
fn in_rank_order(table: &RankTable, mut groups: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut place = vec![0; table.n_models()];
    for (at, model) in table.by_rank().into_iter().enumerate() {
        place[model] = at;
    }
    for group in &mut groups {
        group.sort_unstable_by_key(|&model| place[model]);
    }
    groups.sort_by_cached_key(|group| group.iter().map(|&model| place[model]).collect::<Vec<_>>());
    groups
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;
    use crate::Direction;

    /// `n` data sets that all rank the models 0, 1, 2, ..
    fn agreeing(n: usize, k: usize) -> RankTable {
        let values = Array2::from_shape_fn((n, k), |(set, model)| (set + 1) as f64 * model as f64);
        RankTable::new(values, Direction::LowerIsBetter).unwrap()
    }

    #[test]
    fn maximal_cliques_equal_those_of_trying_every_set() {
        // Graphs of six models from the bits of a number.
        for bits in (0..1_u32 << 15).step_by(37) {
            let pair = |i: usize, j: usize| i.max(j) * (i.max(j) - 1) / 2 + i.min(j);
            let joined = |i: usize, j: usize| i != j && bits >> pair(i, j) & 1 == 1;
            let p = Array2::from_shape_fn((6, 6), |(i, j)| if joined(i, j) { 1.0 } else { 0.0 });
            let is_clique = |set: u32| (0..6).all(|i| (0..i).all(|j| set >> i & set >> j & 1 == 0 || joined(i, j)));
            let maximal = |set: &u32| is_clique(*set) && (0..6).all(|i| set >> i & 1 == 1 || !is_clique(set | 1 << i));
            let mut expected: Vec<Vec<usize>> =
                (1..64_u32).filter(maximal).map(|set| (0..6).filter(|i| set >> i & 1 == 1).collect()).collect();
            expected.sort();
            assert_eq!(p_value_cliques(&agreeing(2, 6), &p, 0.05).unwrap(), expected, "graph {bits}");
        }
    }

    #[test]
    fn interval_and_clique_rules_agree_for_average_ranks_in_a_row() {
        for k in 2..7 {
            let table = agreeing(9, k);
            let cliques_of = |rule| cliques(&table, 0.05, rule).unwrap();
            let intervals = cliques_of(CliqueRule::RankInterval(RangeQuantile::Exact));
            assert_eq!(intervals, cliques_of(CliqueRule::NemenyiCliques));
            assert_eq!(intervals, cliques_of(CliqueRule::RankInterval(RangeQuantile::Gleason)));
        }
    }

    #[test]
    fn a_model_that_differs_from_all_others_is_a_group_of_its_own() {
        let table = agreeing(200, 3);
        for rule in [
            CliqueRule::RankInterval(RangeQuantile::Exact),
            CliqueRule::NemenyiCliques,
            CliqueRule::WidenedWilcoxonHolm,
        ] {
            assert_eq!(cliques(&table, 0.05, rule).unwrap(), [[0], [1], [2]]);
        }
    }

    #[test]
    fn an_omnibus_test_that_does_not_reject_gives_one_group() {
        let values = array![[1., 2., 3.], [3., 1., 2.], [2., 3., 1.]];
        let table = RankTable::new(values, Direction::LowerIsBetter).unwrap();
        assert_eq!(cliques(&table, 0.05, CliqueRule::WidenedWilcoxonHolm).unwrap(), [[0, 1, 2]]);
    }

    #[test]
    fn one_data_set_has_no_omnibus_test() {
        let error = cliques(&agreeing(1, 3), 0.05, CliqueRule::WidenedWilcoxonHolm).unwrap_err();
        assert!(matches!(error, MetricError::TooSmallComparison { n_data_sets: 1, .. }));
    }

    #[test]
    fn a_matrix_of_another_size_is_refused() {
        let error = p_value_cliques(&agreeing(2, 3), &Array2::ones((2, 2)), 0.05).unwrap_err();
        assert_eq!(error, MetricError::PairwiseShape { rows: 2, columns: 2, n_models: 3 });
    }
}
