//! A simulated cohort for tests of whole evaluations.

use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationReport, EvaluationSettings, GroupId, Groups, Outcomes, SubjectId,
    SurvivalCurves, evaluate, seeds,
};
use ndarray::Array2;
use rand::RngExt as _;

pub const N_COLUMNS: usize = 12;

pub struct Cohort {
    pub subjects: Vec<SubjectId>,
    pub outcomes: Outcomes,
    pub curves: SurvivalCurves,
    pub censoring: CensoringCurve,
}

/// Exponential event times with a rate that the model knows with noise; about a third censored; one sample each.
pub fn cohort(n: usize, seed: u64) -> Cohort {
    let mut rng = seeds::stream(seed, "test cohort", &[]);
    let (mut time, mut event, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let rate = 0.1 + rng.random::<f64>();
        let mut exponential = |rate: f64| -(1.0 - rng.random::<f64>()).ln() / rate + 1e-3;
        let (event_time, censored_at) = (exponential(rate), exponential(0.3));
        time.push(event_time.min(censored_at));
        event.push(event_time <= censored_at);
        rates.push(rate * (0.5 + rng.random::<f64>()));
    }
    let outcomes = Outcomes::new(time, event).unwrap();
    let grid: Vec<f64> = (0..N_COLUMNS).map(|k| k as f64 * 0.5).collect();
    let survival = Array2::from_shape_fn((n, N_COLUMNS), |(row, k)| (-rates[row] * grid[k]).exp());
    Cohort {
        subjects: (0..n).map(|row| SubjectId::new(format!("p{row:04}"))).collect(),
        censoring: CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap(),
        outcomes,
        curves: SurvivalCurves::new(grid, survival).unwrap(),
    }
}

impl Cohort {
    pub fn n(&self) -> usize {
        self.subjects.len()
    }

    pub fn select(&self, index: &[usize]) -> Self {
        Self {
            subjects: index.iter().map(|&row| self.subjects[row].clone()).collect(),
            outcomes: self.outcomes.select(index),
            curves: self.curves.select(index),
            censoring: self.censoring.clone(),
        }
    }

    pub fn evaluate(&self, groups: &[Groups], settings: &EvaluationSettings) -> EvaluationReport {
        evaluate(&self.subjects, &self.outcomes, &self.curves, &self.censoring, groups, settings).unwrap()
    }
}

pub fn groups(name: &str, levels: &[&str], level_of: impl Fn(usize) -> Option<u32>, n: usize) -> Groups {
    let levels = levels.iter().map(|level| (*level).to_owned()).collect();
    Groups::new(name, levels, (0..n).map(|row| level_of(row).map(GroupId)).collect()).unwrap()
}

pub fn halves(n: usize) -> Groups {
    groups("sex", &["F", "M"], |row| Some(u32::from(row % 2 == 1)), n)
}

/// The metrics that share sorted samples between replicates.
pub const JOINT: [&str; 4] = ["c-td", "c-td-half", "auc-td", "ibs"];

/// Those metrics, with small groups compared too.
pub fn settings(replicates: usize) -> EvaluationSettings {
    EvaluationSettings {
        replicates,
        n_times: 20,
        metrics: JOINT.map(str::to_owned).to_vec(),
        min_events: 0,
        ..EvaluationSettings::default()
    }
}
