//! Ranks of the strategies over several blocks: Friedman's test, and Nemenyi's where it rejects.
//!
//! A block is an attribute, a network and a training seed: within it every method has the model that its rule chooses among
//! the trainings of this seed. All blocks share the test subjects, so the p values say whether the trainings differ reliably
//! on these subjects, not in the population (Demšar 2006, section 3.2, assumes independent data sets).

use std::collections::BTreeMap;

use fairtte_metrics::{Direction, RankTable, RankTies, friedman, nemenyi};
use ndarray::Array2;

use super::choose::METRICS;
use super::verdict::{Block, RankComparison, Ranked, Role, Scores};
use crate::CliError;

/// Blocks below which Friedman's chi-square is no good approximation.
const FEW_BLOCKS: usize = 5;

/// One per metric for gaps and one for the metric itself; none with fewer than two blocks or methods.
pub(super) fn rank_comparisons(blocks: &[Block], base: &str, alpha: f64) -> Result<Vec<RankComparison>, CliError> {
    let mut found = Vec::new();
    for (metric, label) in METRICS {
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
