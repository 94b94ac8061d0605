//! Times this crate next to other packages, and as a function of the number of samples.
//!
//! - `cargo bench --bench peers -- scaling`: cost against n, with the exponent of C^td.
//! - `cargo bench --bench peers -- FOLDER`: one JSON object of values, seconds and memory for the cohort in FOLDER, which
//!   `benches/peers/compare.py` writes; that script prints the ratios.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]

mod cohort;
mod measure;

use std::path::Path;

use cohort::Cohort;
use fairtte_metrics::rank::{TiedPredictions, auc_td, concordance_td};
use fairtte_metrics::scores::integrated_brier_score;
use fairtte_metrics::{EvaluationSettings, Reading, evaluate};
use measure::{Measured, measure};

const READINGS: [Reading; 3] = [Reading::Step, Reading::Refined { factor: 10 }, Reading::Linear];

fn main() {
    // Cargo adds `--bench`.
    let argument = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    match argument.as_deref() {
        None => println!("give `scaling`, or a folder that benches/peers/compare.py wrote"),
        Some("scaling") => scaling(),
        Some(folder) => folder_of(Path::new(folder)),
    }
}

fn folder_of(folder: &Path) {
    let cohort = Cohort::read(folder);
    let mut lines = Vec::new();
    for reading in READINGS {
        let times = cohort.one_of_each(reading);
        lines.extend(["c_td", "auc_td", "ibs"].iter().zip(times).map(|(name, m)| m.json(name, reading)));
    }
    for reading in [Reading::Step, Reading::Refined { factor: 10 }] {
        lines.push(cohort.everything(reading, 1000).json("everything", reading));
    }
    println!("{{{}}}", lines.join(", "));
}

/// A table of seconds by n for the reading `step`, continuous times, 128 columns.
fn scaling() {
    println!("       n      C^td    AUC^td       IBS   everything, 100 replicates   (seconds, reading step, L = 128)");
    let sizes = [1_000, 5_000, 20_000, 54_000, 200_000];
    let mut of_c_td = Vec::new();
    for n in sizes {
        let cohort = Cohort::simulate(n);
        let [c_td, auc, ibs] = cohort.one_of_each(Reading::Step).map(|measured| measured.seconds);
        let everything = cohort.everything(Reading::Step, 100).seconds;
        println!("{n:8} {c_td:9.4} {auc:9.4} {ibs:9.4} {everything:9.3}");
        of_c_td.push(c_td);
    }
    let slope = |a: usize, b: usize| (of_c_td[b] / of_c_td[a]).ln() / (sizes[b] as f64 / sizes[a] as f64).ln();
    println!("exponent of C^td: {:.2} from 5,000 to 200,000, {:.2} from 54,000 to 200,000", slope(1, 4), slope(3, 4));
}

impl Cohort {
    /// One C^td, AUC^td and IBS.
    fn one_of_each(&self, reading: Reading) -> [Measured; 3] {
        let (outcomes, curves, censoring, times) = (&self.outcomes, &self.curves, &self.censoring, &self.times);
        let c_td = || concordance_td(outcomes, curves, reading, TiedPredictions::Strict).expect("pairs").value;
        let auc = || {
            let auc = auc_td(outcomes, curves, censoring, reading, times).expect("times");
            auc.time_average.expect("cases and controls")
        };
        let ibs = || integrated_brier_score(outcomes, curves, censoring, reading, times).expect("times");
        [measure(c_td), measure(auc), measure(ibs)]
    }

    /// All metrics, overall and per group, with replicates by subject.
    fn everything(&self, reading: Reading, replicates: usize) -> Measured {
        let times = Some(self.times.clone());
        let settings = EvaluationSettings { reading, times, replicates, ..EvaluationSettings::default() };
        measure(|| {
            let groups = std::slice::from_ref(&self.groups);
            let report = evaluate(&self.subjects, &self.outcomes, &self.curves, &self.censoring, groups, &settings);
            report.expect("valid").metrics[0].overall.value.expect("pairs")
        })
    }
}
