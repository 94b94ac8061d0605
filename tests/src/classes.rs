//! Patients with a class and with times, for runs that predict a class.

use std::fmt::Write as _;
use std::path::Path;

use fairtte_data::predictions::read_probabilities;
use fairtte_data::{Part, Split, read_cohort};
use fairtte_metrics::SampleId;

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

/// AUC of probabilities and classes, by all pairs; equal probabilities count one half.
///
/// # Panics
/// If one of the classes is absent.
pub fn auc_by_pairs(rows: &[(f64, bool)]) -> f64 {
    let weighted: Vec<(f64, bool, f64)> = rows.iter().map(|(p, positive)| (*p, *positive, 1.0)).collect();
    by_pairs(&weighted)
}

/// AUC at `horizon` of all samples with weights for censoring, by its definition: a case weighs 1 / G(T-), controls weigh the same.
/// `train`: time and event of the samples that G is fitted on; `rows`: time, event and probability of the event by the horizon.
///
/// # Panics
/// If there is no case or no control.
pub fn auc_with_weights(train: &[(f64, bool)], rows: &[(f64, bool, f64)], horizon: f64) -> f64 {
    let just_before = |time: f64| {
        let mut ends: Vec<f64> =
            train.iter().filter(|(end, event)| !event && *end < time).map(|(end, _)| *end).collect();
        ends.sort_by(f64::total_cmp);
        ends.dedup();
        // An event comes before a censoring at the same time.
        let stays = |end: &f64| {
            let is_at = |other: f64| other.total_cmp(end).is_eq();
            let n_at_risk = train.iter().filter(|(other, event)| other > end || (is_at(*other) && !event)).count();
            let n_censored = train.iter().filter(|(other, event)| is_at(*other) && !event).count();
            1.0 - n_censored as f64 / n_at_risk as f64
        };
        ends.iter().map(stays).product::<f64>()
    };
    let is_known = |(time, event, _): &&(f64, bool, f64)| *event || *time > horizon;
    let weighted = rows.iter().filter(is_known).map(|(time, _, p)| {
        let positive = *time <= horizon;
        (*p, positive, if positive { 1.0 / just_before(*time) } else { 1.0 })
    });
    by_pairs(&weighted.collect::<Vec<_>>())
}

/// Probability, class and weight of the samples.
fn by_pairs(rows: &[(f64, bool, f64)]) -> f64 {
    let (mut won, mut all) = (0.0, 0.0);
    for (p, _, weight) in rows.iter().filter(|(_, positive, _)| *positive) {
        for (q, _, other) in rows.iter().filter(|(_, positive, _)| !positive) {
            all += weight * other;
            won += weight * other * if p > q { 1.0 } else { 0.5 * f64::from(u8::from(p >= q)) };
        }
    }
    assert!(all > 0.0, "a class is absent");
    won / all
}

/// A patient with the probability that a run predicted.
#[derive(Clone, Debug)]
pub struct PredictedPatient {
    /// The patient.
    pub patient: ClassPatient,
    /// Of the class.
    pub probability: f64,
}

/// The patients of a part of a run, by its files.
///
/// # Panics
/// If they cannot be read.
pub fn patients_of(run: &Path, part: Part) -> Vec<ClassPatient> {
    samples_of(run, part).iter().map(patient_of).collect()
}

/// The same with what `file`, one of the run's files of predictions, says of them.
///
/// # Panics
/// If a file cannot be read, or lacks a sample.
pub fn predicted_patients(run: &Path, file: &str, part: Part) -> Vec<PredictedPatient> {
    let table = read_probabilities(&run.join(file)).expect("a run has predictions");
    let of_sample = |sample: &SampleId| {
        let place = table.samples.iter().position(|known| known == sample).expect("every sample is predicted");
        PredictedPatient { patient: patient_of(sample), probability: table.probability[place] }
    };
    samples_of(run, part).iter().map(of_sample).collect()
}

fn samples_of(run: &Path, part: Part) -> Vec<SampleId> {
    let (cohort, _) = read_cohort(&run.join("cohort.parquet")).expect("a run has a cohort");
    let split = Split::read_csv(&run.join("split.csv"), &cohort).expect("a run has a split");
    split.rows(part).iter().map(|row| cohort.samples[*row].sample_id.clone()).collect()
}

fn patient_of(sample: &SampleId) -> ClassPatient {
    class_patient(sample.as_str()[1..].parse().expect("a sample is p and its row"))
}
