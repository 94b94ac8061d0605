//! Parts that are run once, and their tables.

use std::path::Path;
use std::time::Instant;

/// A value with the ends of its interval.
pub type Number = (Option<f64>, Option<(f64, f64)>);

/// The rows of one table, or some of them.
pub struct Part {
    /// Name of its file.
    pub name: String,
    /// Names of the columns; parts with the same ones become one table.
    pub columns: String,
    /// Cohorts, unless another number is requested.
    pub n_cohorts: u64,
    /// Computes the rows from so many cohorts.
    pub rows: Box<dyn Fn(u64) -> Vec<String>>,
}

impl Part {
    pub fn new(
        name: String,
        columns: impl Into<String>,
        n_cohorts: u64,
        rows: impl Fn(u64) -> Vec<String> + 'static,
    ) -> Self {
        Self { name, columns: columns.into(), n_cohorts, rows: Box::new(rows) }
    }

    pub fn run(&self, folder: &Path, n_cohorts: u64) {
        let file = folder.join(&self.name);
        if file.exists() {
            return;
        }
        let (start, n) = (Instant::now(), if n_cohorts == 0 { self.n_cohorts } else { n_cohorts });
        let text = (self.rows)(n).join("\n") + "\n";
        let unfinished = folder.join("unfinished");
        std::fs::write(&unfinished, text).unwrap();
        std::fs::rename(unfinished, file).unwrap();
        println!("{}: {n} cohorts, {:.0} s", self.name, start.elapsed().as_secs_f64());
    }
}

/// Prints the tables of all parts that have been run.
pub fn print(folder: &Path, parts: &[Part]) {
    let mut columns = "";
    for part in parts {
        let Ok(text) = std::fs::read_to_string(folder.join(&part.name)) else { continue };
        if part.columns != columns {
            columns = &part.columns;
            println!("\n| {columns} |\n|{}", "---|".repeat(columns.split('|').count()));
        }
        print!("{text}");
    }
}

/// A share in percent with its standard error.
pub fn percent(hits: usize, n: usize) -> String {
    if n == 0 {
        return "none".to_owned();
    }
    let share = hits as f64 / n as f64;
    format!("{:.1} ({:.1})", 100.0 * share, 100.0 * (share * (1.0 - share) / n as f64).sqrt())
}

/// Whether each interval contains its true value; `None` where one of them does not exist.
pub fn covered<const N: usize>(numbers: &[Number; N], truth: &[Option<f64>; N]) -> [Option<bool>; N] {
    std::array::from_fn(|kind| {
        let ((lower, upper), truth) = (numbers[kind].1?, truth[kind]?);
        Some(lower <= truth && truth <= upper)
    })
}

/// Shares in percent of what is true, of every kind a cell.
pub fn shares<const N: usize>(cohorts: impl Iterator<Item = [Option<bool>; N]>) -> String {
    let cohorts: Vec<[Option<bool>; N]> = cohorts.collect();
    let share = |kind: usize| {
        let defined: Vec<bool> = cohorts.iter().filter_map(|cohort| cohort[kind]).collect();
        percent(defined.iter().filter(|is| **is).count(), defined.len())
    };
    (0..N).map(share).collect::<Vec<_>>().join(" | ")
}

/// Mean and its standard error.
pub fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}
