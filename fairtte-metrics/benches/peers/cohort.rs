//! Cohorts to time: read from `.npy` files, or simulated.

use std::path::Path;

use fairtte_metrics::{CensoringCurve, CensoringTies, GroupId, Groups, Outcomes, SubjectId, SurvivalCurves, seeds};
use ndarray::Array2;
use rand::RngExt as _;

const HORIZON: f64 = 10.0;
const N_COLUMNS: usize = 128;

pub struct Cohort {
    pub outcomes: Outcomes,
    pub curves: SurvivalCurves,
    pub censoring: CensoringCurve,
    pub subjects: Vec<SubjectId>,
    pub groups: Groups,
    /// Evaluation times.
    pub times: Vec<f64>,
}

impl Cohort {
    /// The arrays `time`, `event`, `subject`, `group`, `grid`, `surv` and `tau` of a folder.
    pub fn read(folder: &Path) -> Self {
        let numbers = |name: &str| read_npy(&folder.join(format!("{name}.npy")));
        let (time, grid) = (numbers("time"), numbers("grid"));
        let survival = Array2::from_shape_vec((time.len(), grid.len()), numbers("surv")).expect("one row per sample");
        let event = numbers("event").into_iter().map(|event| event > 0.5).collect();
        Self::new(time, event, &numbers("subject"), &numbers("group"), grid, survival, numbers("tau"))
    }

    /// Exponential times, about 30 % events, noisy curves, 2.7 samples per subject.
    pub fn simulate(n: usize) -> Self {
        let mut rng = seeds::stream(1, "benchmark", &[n as u64]);
        let mut exponential = move |rate: f64| -(1.0 - rng.random::<f64>()).ln() / rate;
        let (mut time, mut event, mut rates) = (vec![], vec![], vec![]);
        for _ in 0..n {
            let rate = 0.03 + 0.1 * exponential(1.0);
            let (event_time, censored_at) = (exponential(rate), exponential(0.25).min(HORIZON));
            time.push(event_time.min(censored_at));
            event.push(event_time <= censored_at);
            rates.push((rate * (0.5 + exponential(2.0)), 0.5 + exponential(2.0)));
        }
        let grid: Vec<f64> = (0..N_COLUMNS).map(|k| HORIZON * k as f64 / (N_COLUMNS - 1) as f64).collect();
        let survival = Array2::from_shape_fn((n, N_COLUMNS), |(row, k)| {
            let (rate, shape) = rates[row];
            (-(rate * grid[k]).powf(shape)).exp()
        });
        let subject: Vec<f64> = (0..n).map(|row| (row * 10 / 27) as f64).collect();
        let group: Vec<f64> = subject.iter().map(|subject| subject % 2.0).collect();
        let tau = grid[1..N_COLUMNS - 1].to_vec();
        Self::new(time, event, &subject, &group, grid, survival, tau)
    }

    fn new(
        time: Vec<f64>,
        event: Vec<bool>,
        subject: &[f64],
        group: &[f64],
        grid: Vec<f64>,
        survival: Array2<f64>,
        times: Vec<f64>,
    ) -> Self {
        let outcomes = Outcomes::new(time, event).expect("times are numbers");
        let membership = group.iter().map(|&group| Some(GroupId(u32::from(group > 0.5)))).collect();
        Self {
            censoring: CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).expect("there are samples"),
            subjects: subject.iter().map(|subject| SubjectId::new(format!("{subject:07}"))).collect(),
            groups: Groups::new("group", vec!["A".to_owned(), "B".to_owned()], membership).expect("two groups"),
            times,
            curves: SurvivalCurves::new(grid, survival).expect("curves fall"),
            outcomes,
        }
    }
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
