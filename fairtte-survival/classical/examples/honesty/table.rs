//! Parts that are run once, and their tables.

use std::path::Path;
use std::time::Instant;

/// The rows of one table, or some of them.
pub struct Part {
    /// Name of its file.
    pub name: String,
    /// Names of the columns; parts with the same ones become one table.
    pub columns: &'static str,
    /// Cohorts, unless another number is asked for.
    pub n_cohorts: u64,
    /// Computes the rows from so many cohorts.
    pub rows: Box<dyn Fn(u64) -> Vec<String>>,
}

impl Part {
    pub fn new(
        name: String,
        columns: &'static str,
        n_cohorts: u64,
        rows: impl Fn(u64) -> Vec<String> + 'static,
    ) -> Self {
        Self { name, columns, n_cohorts, rows: Box::new(rows) }
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
            columns = part.columns;
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

/// Mean and its standard error.
pub fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}
