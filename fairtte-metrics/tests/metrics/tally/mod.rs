//! Counts what the golden test compared, refused and skipped, and collects every mismatch.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A difference of two roundings around zero is no mismatch.
const ABSOLUTE_FLOOR: f64 = 1e-15;
const MAX_LISTED: usize = 40;

/// The verdict of a family of metrics on one record.
pub enum Verdict {
    /// The record belongs to another family, or to none.
    NotMine,
    /// At least one value was compared.
    Compared,
    /// The record is of a convention that we offer, but this case of it is not compared; with the reason.
    Skipped(String),
    /// The other package gives no number here; what ours gives: a value that is right, or a typed error.
    Refused(String),
}

/// One line of the printed table.
#[derive(Default)]
struct Line {
    compared: usize,
    values: usize,
    refused: BTreeMap<String, usize>,
    skipped: BTreeMap<String, usize>,
    unclaimed: usize,
}

/// The running count of one walk over the golden files.
#[derive(Default)]
pub struct Tally {
    lines: BTreeMap<String, Line>,
    /// Line and full name of the current record.
    line: String,
    record: String,
    /// Values of the current record compared so far.
    n_of_record: usize,
    mismatches: Vec<String>,
    n_mismatches: usize,
}

impl Tally {
    /// Starts the next record: `line` is its line of the table, `record` names it in a mismatch.
    pub fn begin(&mut self, line: impl Into<String>, record: impl Into<String>) {
        (self.line, self.record, self.n_of_record) = (line.into(), record.into(), 0);
    }

    /// Compares one value: `|found - expected| <= tolerance * |expected|`.
    pub fn close(&mut self, found: f64, expected: f64, tolerance: f64) {
        self.at("", found, expected, tolerance);
    }

    /// As [`close`](Self::close); `what` says which value of the record.
    pub fn at(&mut self, what: &str, found: f64, expected: f64, tolerance: f64) {
        self.lines.entry(self.line.clone()).or_default().values += 1;
        self.n_of_record += 1;
        // Written so that a NaN on either side is a mismatch.
        if (found - expected).abs() <= tolerance * expected.abs() + ABSOLUTE_FLOOR {
            return;
        }
        self.mismatch(&format!("{what} found {found:?}, expected {expected:?}"));
    }

    /// Compares two slices value by value, and their lengths.
    pub fn all_close(&mut self, what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
        if found.len() != expected.len() {
            self.mismatch(&format!("{what} found {} values, expected {}", found.len(), expected.len()));
            return;
        }
        for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
            self.at(&format!("{what}[{k}]"), *found, *expected, tolerance);
        }
    }

    /// Notes a mismatch that is not a difference of two numbers.
    pub fn mismatch(&mut self, what: &str) {
        self.n_mismatches += 1;
        if self.mismatches.len() < MAX_LISTED {
            self.mismatches.push(format!("{}: {what}", self.record));
        }
    }

    /// Notes an error of the current record.
    pub fn mismatch_if_err(&mut self, compared: Result<(), String>) {
        if let Err(what) = compared {
            self.mismatch(&what);
        }
    }

    /// Counts the verdicts of all families on the current record.
    pub fn book(&mut self, verdicts: impl IntoIterator<Item = Verdict>) {
        let line = self.lines.entry(self.line.clone()).or_default();
        // A curve may be compared at most of its times and refused at one.
        let (mut compared, mut claimed) = (self.n_of_record > 0, false);
        for verdict in verdicts {
            claimed |= !matches!(verdict, Verdict::NotMine);
            match verdict {
                Verdict::NotMine => {}
                Verdict::Compared => compared = true,
                Verdict::Skipped(why) => *line.skipped.entry(why).or_default() += 1,
                Verdict::Refused(ours) => *line.refused.entry(ours).or_default() += 1,
            }
        }
        line.compared += usize::from(compared);
        line.unclaimed += usize::from(!claimed);
    }

    /// Prints the table and fails on any mismatch, or if fewer than `at_least` values were compared.
    pub fn finish(self, at_least: usize) {
        let mut table = String::new();
        for (name, line) in &self.lines {
            let _ = writeln!(table, "{name}: {} records compared ({} values)", line.compared, line.values);
            for (word, reasons) in [("refused there; ours", &line.refused), ("skipped", &line.skipped)] {
                for (reason, count) in reasons {
                    let _ = writeln!(table, "    {count} {word}: {reason}");
                }
            }
            if line.unclaimed > 0 {
                let _ = writeln!(table, "    {} not of a convention this crate offers", line.unclaimed);
            }
        }
        let lines = || self.lines.values();
        let n_values: usize = lines().map(|line| line.values).sum();
        let _ = writeln!(
            table,
            "all: {} records compared ({n_values} values), {} refused by the other package, {} skipped, {} not offered",
            lines().map(|line| line.compared).sum::<usize>(),
            lines().flat_map(|line| line.refused.values()).sum::<usize>(),
            lines().flat_map(|line| line.skipped.values()).sum::<usize>(),
            lines().map(|line| line.unclaimed).sum::<usize>(),
        );
        eprintln!("{table}");
        let listed = self.mismatches.join("\n");
        assert!(self.n_mismatches == 0, "{} mismatches, the first:\n{listed}", self.n_mismatches);
        assert!(n_values >= at_least, "only {n_values} values were compared, expected at least {at_least}");
    }
}
