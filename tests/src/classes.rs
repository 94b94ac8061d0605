//! Patients with a class and with times, for runs that predict a class.

use std::fmt::Write as _;
use std::path::Path;

use crate::uniform;

/// A made-up patient.
#[derive(Clone, Debug)]
pub struct ClassPatient {
    /// Time to event or censoring, in years.
    pub time: f64,
    /// Whether it is an event.
    pub event: bool,
    /// Another outcome, without a time.
    pub positive: bool,
    /// `F` or `M`.
    pub sex: &'static str,
    /// Covariates from -1.7 to 1.7.
    pub x: [f64; 2],
}

/// Hazard 0.12 exp(1.2 x0), with ends of follow-up from 1 to 10; the label is positive with probability sigmoid(2 x0 - 0.5).
pub fn class_patient(row: usize) -> ClassPatient {
    let x: [f64; 2] = std::array::from_fn(|k| 3.4 * uniform(row, k as u64) - 1.7);
    let sex = if uniform(row, 2) < 0.4 { "F" } else { "M" };
    let event = -uniform(row, 3).ln() / (0.12 * (1.2 * x[0]).exp());
    let end = 1.0 + 9.0 * uniform(row, 4);
    let time = (event.min(end).max(0.01) * 1e4).round() / 1e4;
    let positive = uniform(row, 5) < 1.0 / (1.0 + (0.5 - 2.0 * x[0]).exp());
    ClassPatient { time, event: event <= end, positive, sex, x }
}

/// Writes a table of patients, in these columns: `pid`, then those named of `time`, `event`, `disease`, `sex`, `x0`, `x1`.
///
/// # Panics
/// If the file cannot be written, or a column is another.
pub fn class_table(path: &Path, rows: std::ops::Range<usize>, columns: &[&str]) {
    let mut text = format!("pid,{}\n", columns.join(","));
    for row in rows {
        let ClassPatient { time, event, positive, sex, x } = class_patient(row);
        write!(text, "p{row:04}").expect("a string can be written");
        for column in columns {
            let cell = match *column {
                "time" => time.to_string(),
                "event" => u8::from(event).to_string(),
                "disease" => (if positive { "Yes" } else { "no" }).to_owned(),
                "sex" => sex.to_owned(),
                "x0" => format!("{:.6}", x[0]),
                "x1" => format!("{:.6}", x[1]),
                other => panic!("no column {other}"),
            };
            write!(text, ",{cell}").expect("a string can be written");
        }
        text.push('\n');
    }
    std::fs::write(path, text).expect("a temporary folder can be written");
}

/// All columns of [`class_table`].
pub const CLASS_COLUMNS: [&str; 6] = ["time", "event", "disease", "sex", "x0", "x1"];

/// Writes a run file, `classes.toml`, on `n` patients; `data` are further keys of the table, `further` of `[task]` and what
/// comes after it. Returns its path.
///
/// # Panics
/// If the folder cannot be written.
pub fn class_run(folder: &Path, n: usize, data: &str, further: &str) -> String {
    let table = folder.join("patients.csv");
    class_table(&table, 0..n, &CLASS_COLUMNS);
    let text = format!(
        "output = '{0}/run'\ncache = '{0}/cache'\n[data.tabular]\ntable = '{1}'\nsubject = \"pid\"\ntime-unit = \"years\"\n\
         numeric = [\"x0\", \"x1\"]\nexclude = [\"disease\"]\n{data}\n[[attribute]]\nname = \"sex\"\n[model]\nhidden = 0\n[model.mlp]\nwidths = [8]\n\
         dropout = 0.0\n[training]\nepochs = 6\n[optimiser]\nlearning-rate = 0.02\n[evaluation]\nreplicates = 20\n\
         permutations = 9\n[task]\nkind = \"binary\"\n{further}",
        folder.display(),
        table.display()
    );
    let path = folder.join("classes.toml");
    std::fs::write(&path, text).expect("a temporary folder can be written");
    path.display().to_string()
}
