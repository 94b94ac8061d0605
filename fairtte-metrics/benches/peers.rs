//! Times this crate on a folder of `.npy` files that `benches/peers.py` wrote, and prints one JSON object; see there.
//!
//! `peers FOLDER` expects `time`, `event`, `subject`, `group`, `grid` and `surv`.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationSettings, GroupId, Groups, Outcomes, Reading, SubjectId, SurvivalCurves,
    TiedPredictions, auc_td, concordance_td, evaluate, integrated_brier_score,
};
use ndarray::Array2;

fn main() {
    // Cargo adds `--bench`.
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let Some(folder) = folder.map(PathBuf::from) else {
        println!("no folder given: run benches/peers.py");
        return;
    };
    let cohort = Cohort::read(&folder);
    let ones = [Reading::Step, Reading::Refined { factor: 10 }, Reading::Linear];
    if std::env::var_os("QUICK").is_some() {
        println!("{}", cohort.everything(Reading::Step));
        return;
    }
    let mut lines: Vec<String> = ones.iter().flat_map(|&reading| cohort.once(reading)).collect();
    for reading in &ones[..2] {
        lines.push(cohort.everything(*reading));
    }
    println!("{{{}}}", lines.join(", "));
}

struct Cohort {
    outcomes: Outcomes,
    curves: SurvivalCurves,
    censoring: CensoringCurve,
    subjects: Vec<SubjectId>,
    groups: Groups,
    /// Evaluation times.
    times: Vec<f64>,
}

impl Cohort {
    fn read(folder: &Path) -> Self {
        let numbers = |name: &str| read_npy(&folder.join(format!("{name}.npy")));
        let time = numbers("time");
        let event = numbers("event").into_iter().map(|event| event > 0.5).collect();
        let (grid, n) = (numbers("grid"), time.len());
        let survival = Array2::from_shape_vec((n, grid.len()), numbers("surv")).expect("one row per sample");
        let outcomes = Outcomes::new(time, event).expect("times are numbers");
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "written as whole numbers")]
        let membership = numbers("group").into_iter().map(|group| Some(GroupId(group as u32))).collect();
        Self {
            censoring: CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).expect("there are samples"),
            subjects: numbers("subject").into_iter().map(|subject| SubjectId::new(format!("{subject:06}"))).collect(),
            groups: Groups::new("group", vec!["A".to_owned(), "B".to_owned()], membership).expect("two groups"),
            times: numbers("tau"),
            curves: SurvivalCurves::new(grid, survival).expect("curves fall"),
            outcomes,
        }
    }

    /// One C^td, AUC^td and IBS.
    fn once(&self, reading: Reading) -> Vec<String> {
        let (outcomes, curves, censoring, times) = (&self.outcomes, &self.curves, &self.censoring, &self.times);
        let c_td = || concordance_td(outcomes, curves, reading, TiedPredictions::Strict).expect("pairs").value;
        let auc = || {
            let auc = auc_td(outcomes, curves, censoring, reading, times).expect("times");
            auc.time_average.expect("cases and controls")
        };
        let ibs = || integrated_brier_score(outcomes, curves, censoring, reading, times).expect("times");
        vec![entry("c_td", reading, c_td), entry("auc_td", reading, auc), entry("ibs", reading, ibs)]
    }

    /// All metrics, overall and per group, with 1,000 replicates by subject.
    fn everything(&self, reading: Reading) -> String {
        let settings = EvaluationSettings { reading, times: Some(self.times.clone()), ..EvaluationSettings::default() };
        let run = || {
            let groups = std::slice::from_ref(&self.groups);
            let report = evaluate(&self.subjects, &self.outcomes, &self.curves, &self.censoring, groups, &settings);
            report.expect("valid").metrics[0].overall.value.expect("pairs")
        };
        entry("everything", reading, run)
    }
}

/// Name, value and the best wall time of three runs (one for long ones), in seconds.
fn entry(name: &str, reading: Reading, run: impl Fn() -> f64) -> String {
    let clock = || {
        let start = Instant::now();
        let value = run();
        (value, start.elapsed().as_secs_f64())
    };
    let (value, mut seconds) = clock();
    if seconds < 1.0 {
        seconds = (0..2).map(|_| clock().1).fold(seconds, f64::min);
    }
    format!("\"{name} {reading}\": {{\"value\": {value}, \"seconds\": {seconds}}}")
}

/// All values of a little-endian array of `f64`, as `numpy.save` writes it (format version 1).
fn read_npy(path: &Path) -> Vec<f64> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let header_length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let (header, data) = bytes[10..].split_at(header_length);
    let header = String::from_utf8_lossy(header);
    assert!(header.contains("'<f8'") && header.contains("'fortran_order': False"), "{}: {header}", path.display());
    data.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().expect("8 bytes"))).collect()
}
