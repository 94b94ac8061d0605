//! How often tests of k models on N data sets reject at 5 % where no model is better: any difference, and any pair.

use fairtte_metrics::Direction;
use fairtte_metrics::seeds::stream;
use fairtte_metrics::statistics::{
    Adjustment, RankTable, RankTies, SignedRankMethod, ZeroDifferences, adjust_pairwise, friedman, iman_davenport,
    nemenyi, pairwise_wilcoxon,
};
use ndarray::Array2;
use rand::RngExt as _;
use rayon::prelude::*;

use crate::table::{Part, percent};

const COLUMNS: &str = "models | data sets | Friedman | Iman-Davenport | Nemenyi, any pair | Wilcoxon, one pair | \
                       Wilcoxon, any pair | Wilcoxon with Holm, any pair";

pub fn parts() -> Vec<Part> {
    let sizes = [(3, 5), (3, 20), (7, 5), (7, 10), (7, 40), (15, 10)];
    let part = |(k, n): (usize, usize)| {
        Part::new(format!("ranks-{k}-{n}"), COLUMNS, 20_000, move |tables| vec![row(k, n, tables)])
    };
    sizes.into_iter().map(part).collect()
}

fn row(k: usize, n: usize, n_tables: u64) -> String {
    let one = |seed: u64| {
        let mut rng = stream(seed, "honesty/ranks", &[k as u64, n as u64]);
        // Data sets differ, models do not.
        let values = Array2::from_shape_fn((n, k), |(data_set, _)| data_set as f64 + rng.random::<f64>());
        let table = RankTable::new(values, Direction::HigherIsBetter).unwrap();
        let any = |p: &Array2<f64>| p.indexed_iter().any(|((i, j), p)| i != j && *p <= 0.05);
        let wilcoxon = pairwise_wilcoxon(&table, ZeroDifferences::Drop, SignedRankMethod::Exact).unwrap();
        [
            friedman(&table, RankTies::default()).is_ok_and(|found| found.p_value <= 0.05),
            iman_davenport(&table, RankTies::default()).is_ok_and(|found| found.p_value <= 0.05),
            any(&nemenyi(&table)),
            wilcoxon[[0, 1]] <= 0.05,
            any(&wilcoxon),
            any(&adjust_pairwise(&wilcoxon, Adjustment::Holm).unwrap()),
        ]
    };
    let found: Vec<[bool; 6]> = (0..n_tables).into_par_iter().map(one).collect();
    let share = |kind: usize| percent(found.iter().filter(|table| table[kind]).count(), found.len());
    let shares: Vec<String> = (0..6).map(share).collect();
    format!("| {k} | {n} | {} |", shares.join(" | "))
}
