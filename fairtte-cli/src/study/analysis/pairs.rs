//! Signed-rank tests of pairs of trainings, with Holm's adjustment over a family.

use fairtte_metrics::MetricError;
use fairtte_metrics::statistics::{Alternative, Adjustment, SignedRankSettings, adjust_p_values, wilcoxon_signed_rank};

use super::{columns, sheet};
use crate::CliError;
use crate::report::sheet::{Cell, Sheet};

/// Pairs of values: one row of a table of tests.
#[derive(Debug)]
pub(super) struct PairRow {
    /// The cells that name it.
    pub(super) names: Vec<String>,
    pub(super) pairs: Vec<(f64, f64)>,
}

/// Tests of one figure, which are adjusted together.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) rows: Vec<PairRow>,
    /// About the first value of a pair.
    pub(super) alternative: Alternative,
}

/// The result of a family.
pub(super) struct Tested {
    pub(super) sheet: Sheet,
    /// Tests that were made.
    pub(super) n_tests: usize,
    /// Those whose adjusted p is below 0.05.
    pub(super) n_shown: usize,
    /// Those whose raw p is above 0.05.
    pub(super) n_above: usize,
}

impl Family {
    /// Tests every row that has a pair with a difference.
    pub(super) fn test(&self, name: &str, caption: &str, names: &[&str]) -> Result<Tested, CliError> {
        let settings = SignedRankSettings { alternative: self.alternative, ..SignedRankSettings::default() };
        let mut p_values = Vec::new();
        for row in &self.rows {
            let (first, second): (Vec<f64>, Vec<f64>) = row.pairs.iter().copied().unzip();
            p_values.push(match wilcoxon_signed_rank(&first, &second, &settings) {
                Ok(test) => Some(test.p_value),
                // No pair, or no difference in any.
                Err(MetricError::NotFinite { .. }) => return Err(CliError::Bug(format!("a pair of {name} is not finite"))),
                Err(_) => None,
            });
        }
        let raw: Vec<f64> = p_values.iter().flatten().copied().collect();
        let mut adjusted = adjust_p_values(&raw, Adjustment::Holm)?.into_iter();
        let holm: Vec<Option<f64>> = p_values.iter().map(|p| p.and_then(|_| adjusted.next())).collect();
        let cells = |(row, (p, holm)): (&PairRow, (&Option<f64>, &Option<f64>))| {
            let differences: Vec<f64> = row.pairs.iter().map(|(first, second)| first - second).collect();
            let n_above = differences.iter().filter(|difference| **difference > 0.0).count();
            let mut cells: Vec<Cell> = row.names.iter().cloned().map(Cell::Text).collect();
            cells.extend([
                Cell::Count(differences.len()),
                Cell::Count(n_above),
                Cell::or_missing(median(&differences), Cell::Value),
                Cell::or_missing(*p, Cell::P),
                Cell::or_missing(*holm, Cell::P),
            ]);
            cells
        };
        let rows = self.rows.iter().zip(p_values.iter().zip(&holm)).map(cells).collect();
        let mut header = columns(names);
        header.extend(columns(&["pairs", "first larger", "median difference", "p"]));
        header.push(("p-holm".to_owned(), "p (Holm)".to_owned()));
        let note = "Wilcoxon's signed-rank test, exact given ties, zeros dropped; Holm over all rows of this table. The pairs of a \
                    setting share its test samples: p says that the trainings differ reliably on them, not in the population.";
        Ok(Tested {
            sheet: sheet(name, caption, &header, rows, &[note]),
            n_tests: raw.len(),
            n_shown: holm.iter().flatten().filter(|p| **p < 0.05).count(),
            n_above: raw.iter().filter(|p| **p > 0.05).count(),
        })
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}
