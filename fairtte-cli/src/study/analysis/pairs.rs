//! Signed-rank tests of pairs of trainings, with Holm's adjustment over a family.

use std::collections::BTreeSet;

use fairtte_metrics::MetricError;
use fairtte_metrics::statistics::{Adjustment, Alternative, SignedRankSettings, adjust_p_values, wilcoxon_signed_rank};

use super::{columns, sheet};
use crate::CliError;
use crate::report::sheet::{Cell, Sheet};

/// Adjusted p below which a difference is called shown.
const SHOWN: f64 = 0.05;

/// Pairs of values: one row of a table of tests.
#[derive(Debug)]
pub(super) struct PairRow {
    /// The cells that name it.
    pub(super) names: Vec<String>,
    /// The rows that are adjusted together have the same.
    pub(super) family: String,
    pub(super) pairs: Vec<(f64, f64)>,
}

/// The tests of a table.
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
    pub(super) shown: Vec<ShownPair>,
    /// Those whose raw p is above 0.05.
    pub(super) n_above: usize,
    /// Groups of tests that are adjusted together.
    n_families: usize,
    /// Those with so few pairs that no p could be below 0.05 after the adjustment.
    n_hopeless: usize,
}

/// A difference that is shown.
pub(super) struct ShownPair {
    /// The cells that name its row.
    pub(super) names: Vec<String>,
    /// Median of first minus second.
    pub(super) median: f64,
    pub(super) n_pairs: usize,
    /// After the adjustment.
    pub(super) p: f64,
}

impl Tested {
    /// What cannot be shown with so few pairs; `None` if everything could.
    pub(super) fn too_few(&self) -> Option<String> {
        (self.n_hopeless > 0).then(|| {
            let which = if self.n_hopeless == self.n_families { "any of them" } else { "some of them" };
            format!("There are too few pairs to show {which}, whatever their values: more trials are needed.")
        })
    }
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
                Err(MetricError::NotFinite { .. }) => {
                    return Err(CliError::Bug(format!("a pair of {name} is not finite")));
                }
                Err(_) => None,
            });
        }
        let raw: Vec<f64> = p_values.iter().flatten().copied().collect();
        let families: BTreeSet<&str> = self.rows.iter().map(|row| row.family.as_str()).collect();
        let mut holm = vec![None; p_values.len()];
        let mut n_hopeless = 0;
        for family in &families {
            let is_of = |place: &usize| self.rows[*place].family == *family && p_values[*place].is_some();
            let places: Vec<usize> = (0..self.rows.len()).filter(is_of).collect();
            let of_family: Vec<f64> = places.iter().filter_map(|place| p_values[*place]).collect();
            for (place, p) in places.iter().zip(adjust_p_values(&of_family, Adjustment::Holm)?) {
                holm[*place] = Some(p);
            }
            // The smallest p of m pairs is 2^-m, twice that if both directions count.
            let sides = if self.alternative == Alternative::TwoSided { 2.0 } else { 1.0 };
            let smallest = |place: &usize| sides * 0.5_f64.powf(self.rows[*place].pairs.len() as f64);
            let least = places.iter().map(smallest).fold(f64::INFINITY, f64::min);
            n_hopeless += usize::from(!places.is_empty() && least * places.len() as f64 >= 0.05);
        }
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
        let shown = |(row, p): (&PairRow, &Option<f64>)| {
            let differences: Vec<f64> = row.pairs.iter().map(|(first, second)| first - second).collect();
            let (p, median) = (p.filter(|p| *p < SHOWN)?, median(&differences)?);
            Some(ShownPair { names: row.names.clone(), median, n_pairs: differences.len(), p })
        };
        let mut header = columns(names);
        header.extend(columns(&["pairs", "first larger", "median difference", "p"]));
        header.push(("p-holm".to_owned(), "p (Holm)".to_owned()));
        let over = if families.len() > 1 { "one kind of shift" } else { "this table" };
        let note = format!(
            "Wilcoxon's signed-rank test, exact given ties, zeros dropped; Holm over all rows of {over}. The pairs of a \
                    setting share its test samples: p says that the trainings differ reliably on them, not in the population."
        );
        Ok(Tested {
            sheet: sheet(name, caption, &header, rows, &[&note]),
            n_tests: raw.len(),
            shown: self.rows.iter().zip(&holm).filter_map(shown).collect(),
            n_families: families.len(),
            n_hopeless,
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
