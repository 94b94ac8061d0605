//! Ranks of the strategies over several blocks: Friedman's test, and Nemenyi's where it rejects.
//!
//! A block is an attribute, a network and a training seed: in it every method is represented by the model that its rule
//! chooses among the trainings of this seed. All blocks share the test subjects, so the p values say whether the
//! trainings differ reliably on these subjects, not in the population (Demšar 2006, section 3.2, assumes independent
//! data sets).

use std::collections::BTreeMap;

use fairtte_metrics::Direction;
use fairtte_metrics::statistics::{RankTable, RankTies, friedman, nemenyi};
use ndarray::Array2;

use super::verdict::{Block, RankComparison, Ranked, Role, Scores};
use crate::CliError;

/// Number of blocks below which Friedman's chi-square is not a good approximation.
const FEW_BLOCKS: usize = 5;

/// For each metric, a comparison of gaps and one of the metric itself; none with fewer than two blocks or methods.
pub(super) fn rank_comparisons(
    blocks: &[Block],
    metrics: &[(&str, &str)],
    base: &str,
    alpha: f64,
) -> Result<Vec<RankComparison>, CliError> {
    let mut found = Vec::new();
    for &(metric, label) in metrics {
        for of in [Ranked::Gap, Ranked::Metric] {
            let blocks: Vec<&Block> = blocks.iter().filter(|block| block.metric == metric).collect();
            let table = Table::new(&blocks, of, base);
            found.extend(table.compare(metric, label, alpha)?);
        }
    }
    Ok(found)
}

/// Values of the methods in every block.
struct Table {
    of: Ranked,
    higher_is_better: bool,
    methods: Vec<String>,
    /// By block: value of every method.
    rows: Vec<Vec<Option<f64>>>,
}

impl Table {
    fn new(blocks: &[&Block], of: Ranked, base: &str) -> Self {
        let value = |scores: &Scores| match of {
            Ranked::Gap => scores.gap,
            Ranked::Metric => scores.value,
        };
        // The base under the rule of the others, where there is such a row.
        let mut values: BTreeMap<(usize, u64), BTreeMap<String, Option<f64>>> = BTreeMap::new();
        for (place, block) in blocks.iter().enumerate() {
            let has_control = block.rows.iter().any(|row| row.role == Role::Control);
            for row in block.rows.iter().filter(|row| row.role != Role::Base || !has_control) {
                for of_seed in &row.seeds {
                    let of_block = values.entry((place, of_seed.seed)).or_default();
                    of_block.insert(row.strategy.clone(), value(&of_seed.test));
                }
            }
        }
        let mut methods: Vec<String> = values.values().flat_map(BTreeMap::keys).cloned().collect();
        methods.sort_by_key(|method| (method != base, method.clone()));
        methods.dedup();
        let row = |of_block: &BTreeMap<String, Option<f64>>| {
            methods.iter().map(|method| of_block.get(method).copied().flatten()).collect()
        };
        let rows = values.values().map(row).collect();
        let higher_is_better = of == Ranked::Metric && blocks.first().is_some_and(|block| block.higher_is_better);
        Self { of, higher_is_better, methods, rows }
    }

    fn compare(&self, metric: &str, label: &str, alpha: f64) -> Result<Option<RankComparison>, CliError> {
        let n_with = |method: &usize| self.rows.iter().filter(|row| row[*method].is_some()).count();
        let (kept, left_out): (Vec<usize>, Vec<usize>) =
            (0..self.methods.len()).partition(|method| 2 * n_with(method) >= self.rows.len());
        let complete: Vec<Vec<f64>> =
            self.rows.iter().filter_map(|row| kept.iter().map(|method| row[*method]).collect()).collect();
        if kept.len() < 2 || complete.len() < 2 {
            return Ok(None);
        }
        let direction = if self.higher_is_better { Direction::HigherIsBetter } else { Direction::LowerIsBetter };
        let values = Array2::from_shape_fn((complete.len(), kept.len()), |(row, method)| complete[row][method]);
        let ranks = RankTable::new(values, direction)?;
        let test = friedman(&ranks, RankTies::Corrected).ok();
        let rejects = test.is_some_and(|test| test.p_value <= alpha);
        let pairs = rejects.then(|| nemenyi(&ranks).rows().into_iter().map(|row| row.to_vec()).collect());
        let few = complete.len() < FEW_BLOCKS;
        let name = |methods: &[usize]| methods.iter().map(|method| self.methods[*method].clone()).collect();
        Ok(Some(RankComparison {
            metric: metric.to_owned(),
            label: label.to_owned(),
            of: self.of,
            n_blocks: complete.len(),
            n_incomplete: self.rows.len() - complete.len(),
            left_out: name(&left_out),
            methods: name(&kept),
            average_ranks: ranks.average_ranks(),
            friedman_chi_square: test.map(|test| test.chi_square),
            friedman_p: test.map(|test| test.p_value),
            nemenyi_p: pairs,
            note: note(test.is_some(), rejects, few).to_owned(),
        }))
    }
}

fn note(is_defined: bool, rejects: bool, few: bool) -> &'static str {
    match (is_defined, rejects, few) {
        (false, ..) => "all methods tie in every block",
        (true, false, false) => "Friedman's test does not reject: the ranks show no difference",
        (true, false, true) => "fewer than 5 blocks: the test is not meant for so few; it does not reject",
        (true, true, false) => "Friedman's test rejects: at least two methods differ on these test subjects",
        (true, true, true) => "fewer than 5 blocks: the test is not meant for so few, although it rejects",
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::super::choose::metrics;
    use super::super::verdict::{Network, OfSeed, OverSeeds, Standing};
    use super::*;

    /// A block of one seed with gaps by method; the metric is 1 minus the gap.
    fn block(attribute: &str, gaps: &[(Role, &str, Option<f64>)]) -> Block {
        let row = |(role, strategy, gap): &(Role, &str, Option<f64>)| Standing {
            strategy: (*strategy).to_owned(),
            role: *role,
            n_candidates: 1,
            none_because: None,
            chosen: None,
            seeds: vec![OfSeed {
                seed: 1,
                run: None,
                weights: None,
                test: Scores { value: gap.map(|gap| 1.0 - gap), gap: *gap, difference: None },
            }],
            over_seeds: OverSeeds::default(),
        };
        let network = Network { head: String::new(), backbone: String::new(), start: String::new() };
        Block {
            attribute: attribute.to_owned(),
            metric: "auc_td".to_owned(),
            label: "AUC^td".to_owned(),
            higher_is_better: true,
            network,
            groups: Vec::new(),
            contrast: None,
            no_skill: None,
            warnings: Vec::new(),
            rows: gaps.iter().map(row).collect(),
        }
    }

    const BASE: (Role, &str, Option<f64>) = (Role::Base, "erm", Some(9.0));

    fn three(gaps: [Option<f64>; 3]) -> Vec<(Role, &'static str, Option<f64>)> {
        // The base is not ranked, wherever it is in the list.
        vec![(Role::Control, "erm", gaps[0]), BASE, (Role::Strategy, "a", gaps[1]), (Role::Strategy, "b", gaps[2])]
    }

    // Ranks 1, 2, 3 in each of 6 blocks: chi^2 = N (k - 1) = 12, p = exp(-6); Nemenyi's q = 2 / sqrt(3 * 4 / 72) = 4.899.
    #[test]
    fn the_base_stands_in_its_control_row_and_all_blocks_agree() {
        let gaps = three([Some(0.1), Some(0.2), Some(0.3)]);
        let blocks: Vec<Block> = (0..6).map(|k| block(&k.to_string(), &gaps)).collect();
        let found = rank_comparisons(&blocks, metrics(None), "erm", 0.05).unwrap();
        assert_eq!(found.len(), 2, "one metric: its gap and itself");
        for (comparison, of) in found.iter().zip([Ranked::Gap, Ranked::Metric]) {
            // The smallest gap has rank 1, and so has the largest metric, which belongs to it here.
            assert_eq!((comparison.of, &comparison.average_ranks[..]), (of, &[1.0, 2.0, 3.0][..]));
            assert_eq!(comparison.methods, ["erm", "a", "b"]);
            assert!((comparison.friedman_chi_square.unwrap() - 12.0).abs() < 1e-12);
            assert!((comparison.friedman_p.unwrap() - (-6_f64).exp()).abs() < 1e-12);
            let p = comparison.nemenyi_p.as_ref().unwrap();
            // scipy 1.17.1: studentized_range.sf(4.898979485566356, 3, inf) = 0.00155.
            assert!((p[0][2] - 0.001_55).abs() < 5e-5 && p[0][1] > 0.05, "{p:?}");
        }
    }

    #[test]
    fn incomplete_blocks_and_methods_without_a_choice_are_left_out_by_number_and_name() {
        let full = three([Some(0.1), Some(0.2), None]);
        let lacking = three([Some(0.1), None, Some(0.3)]);
        let of = |gaps: &[&Vec<_>]| {
            let blocks: Vec<Block> = gaps.iter().enumerate().map(|(k, gaps)| block(&k.to_string(), gaps)).collect();
            rank_comparisons(&blocks, metrics(None), "erm", 0.05).unwrap()
        };
        // b has a choice in 1 of 3 blocks, and in 2 of 5.
        for (gaps, n_blocks, n_incomplete) in
            [(vec![&full, &full, &lacking], 2, 1), (vec![&full, &lacking, &full, &full, &lacking], 3, 2)]
        {
            let found = &of(&gaps)[0];
            assert_eq!((found.n_blocks, found.n_incomplete), (n_blocks, n_incomplete));
            let name = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            assert_eq!((&found.left_out, &found.methods), (&name(&["b"]), &name(&["erm", "a"])));
            assert!(found.nemenyi_p.is_none() && found.note.starts_with("fewer than 5 blocks"), "{found:?}");
        }
        // Half of the blocks are enough.
        let all = three([Some(0.1), Some(0.2), Some(0.3)]);
        let half = &of(&[&full, &full, &all, &all])[0];
        assert_eq!((half.n_blocks, half.n_incomplete, half.methods.len()), (2, 2, 3));
        assert!(of(&[&full]).is_empty(), "one block is no comparison");
    }

    #[test]
    fn without_a_control_the_base_is_ranked_itself() {
        let gaps = vec![(Role::Base, "erm", Some(0.3)), (Role::Strategy, "a", Some(0.2))];
        let blocks: Vec<Block> = (0..2).map(|k| block(&k.to_string(), &gaps)).collect();
        let found = rank_comparisons(&blocks, metrics(None), "erm", 0.05).unwrap();
        assert_eq!(
            (&found[0].methods[..], &found[0].average_ranks[..]),
            (&["erm", "a"].map(str::to_owned)[..], &[2.0, 1.0][..])
        );
    }

    #[test]
    fn a_note_says_how_far_a_comparison_can_be_read() {
        let of = |gaps: [f64; 3], n: usize| {
            let gaps = three(gaps.map(Some));
            let blocks: Vec<Block> = (0..n).map(|k| block(&k.to_string(), &gaps)).collect();
            rank_comparisons(&blocks, metrics(None), "erm", 0.05).unwrap().remove(0).note
        };
        assert_eq!(of([0.1, 0.1, 0.1], 5), "all methods tie in every block");
        // Four blocks that agree reject (chi-square 8, p = 0.018), two do not (chi-square 4).
        assert!(of([0.1, 0.2, 0.3], 5).starts_with("Friedman's test rejects"));
        assert_eq!(
            of([0.1, 0.2, 0.3], 4),
            "fewer than 5 blocks: the test is not meant for so few, although it rejects"
        );
        assert_eq!(of([0.1, 0.2, 0.3], 2), "fewer than 5 blocks: the test is not meant for so few; it does not reject");
        let alternating: Vec<Block> = (0..6)
            .map(|k| {
                let gaps = if k % 2 == 0 { [0.1, 0.2, 0.3] } else { [0.3, 0.2, 0.1] };
                block(&k.to_string(), &three(gaps.map(Some)))
            })
            .collect();
        let note = &rank_comparisons(&alternating, metrics(None), "erm", 0.05).unwrap()[0].note;
        assert_eq!(note, "Friedman's test does not reject: the ranks show no difference");
    }
}
