//! The average ranks of MEDFAIR (Zong et al. 2023, Tables A9 and A10) from the means that it prints: those printed for the distribution
//! of the training do not follow from them, those printed for other distributions do.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use fairtte_metrics::Direction;
use fairtte_metrics::statistics::{RangeQuantile, RankTable, critical_difference};
use ndarray::Array2;
use serde_json::Value;

const METRICS: [&str; 3] = ["overall", "worst", "gap"];
const ERM: usize = 0;
const END: usize = 6;
const SWAD: usize = 9;

fn tables() -> Value {
    serde_json::from_str(include_str!("../golden/medfair_tables.json")).unwrap()
}

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

/// Settings by methods.
fn table(of: &Value, metric: &str) -> RankTable {
    let rows: Vec<Vec<f64>> = of[metric].as_array().unwrap().iter().map(numbers).collect();
    let values = Array2::from_shape_vec((rows.len(), rows[0].len()), rows.concat()).unwrap();
    let direction = if metric == "gap" { Direction::LowerIsBetter } else { Direction::HigherIsBetter };
    RankTable::new(values, direction).unwrap()
}

/// The methods whose average rank is not the recorded one, to two decimals.
fn differing(found: &[f64], recorded: &Value) -> Vec<usize> {
    let recorded = numbers(recorded);
    assert_eq!(found.len(), recorded.len());
    (0..found.len()).filter(|method| (found[*method] - recorded[*method]).abs() > 0.005_000_1).collect()
}

#[test]
fn average_ranks_are_those_counted_from_the_printed_means() {
    let tables = tables();
    for (of, n_settings) in [("in-distribution", 18), ("out-of-distribution", 8)] {
        for metric in METRICS {
            assert_eq!(tables[of][metric].as_array().unwrap().len(), n_settings);
            let found = table(&tables[of], metric).average_ranks();
            assert!(differing(&found, &tables[of]["counted-ranks"][metric]).is_empty(), "{of} {metric}: {found:?}");
        }
    }
}

#[test]
fn the_printed_ranks_do_not_follow_in_the_distribution_of_the_training_and_do_in_others() {
    let tables = tables();
    let n_differing = |of: &str, metric: &str| {
        let printed = &tables[of]["printed-ranks"][metric];
        let sum: f64 = numbers(printed).iter().sum();
        // The ranks of 11 methods have the sum 66.
        assert!((sum - 66.0).abs() < 0.66, "{sum}");
        differing(&table(&tables[of], metric).average_ranks(), printed).len()
    };
    assert_eq!(METRICS.map(|metric| n_differing("in-distribution", metric)), [11, 11, 11]);
    // Of the gaps LNL and SAM are half a rank in one setting apart.
    assert_eq!(METRICS.map(|metric| n_differing("out-of-distribution", metric)), [0, 0, 2]);
}

/// SWAD is first, and not different from ERM: the claim of the paper, which printed and counted ranks support.
#[test]
fn swad_is_first_and_within_the_critical_difference_of_erm() {
    let tables = tables();
    let critical = |n| critical_difference(11, n, 0.05, RangeQuantile::Exact).unwrap();
    assert!((critical(18) - 3.558).abs() < 0.002, "{}", critical(18));
    for (of, n) in [("in-distribution", 18), ("out-of-distribution", 8)] {
        for metric in ["overall", "worst"] {
            let printed = numbers(&tables[of]["printed-ranks"][metric]);
            for ranks in [table(&tables[of], metric).average_ranks(), printed] {
                let best = ranks.iter().copied().fold(f64::INFINITY, f64::min);
                assert_eq!(ranks[SWAD].to_bits(), best.to_bits(), "{of} {metric}");
                assert!(ranks[ERM] - ranks[SWAD] < critical(n), "{of} {metric}: {ranks:?}");
                let is_first = of == "in-distribution" || metric == "overall";
                assert_eq!(ranks[END] - ranks[SWAD] > critical(n), is_first, "{of} {metric}: {ranks:?}");
            }
        }
    }
}
