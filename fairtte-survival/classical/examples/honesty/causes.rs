//! One of two causes: coverage of the intervals of its metrics.

use fairtte_metrics::competing::{CompetingOutcomes, IncidenceCurves};
use fairtte_metrics::estimators::BeyondLastTime;
use fairtte_metrics::evaluation::{MetricReport, evaluate_cause};
use fairtte_metrics::seeds::stream;
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationReport, EvaluationSettings, GroupId, Groups, Reading, SubjectId,
};
use ndarray::Array2;
use rand::RngExt as _;
use rayon::prelude::*;

use crate::design::normal;
use crate::intervals::{KIND_NAMES, KINDS, numbers};
use crate::table::{Part, covered, shares};

const METRICS: [&str; 9] = [
    "cause-c-td",
    "cause-c",
    "cause-auc-td",
    "cause-auc",
    "cause-ibs",
    "cause-brier",
    "cause-observed-expected",
    "cause-calibration-slope",
    "cause-ici",
];
/// Hazard of the other cause.
const OTHER: f64 = 0.5;
/// Errors of the model in the two groups.
const NOISE: [f64; 2] = [0.6, 1.0];

pub fn parts() -> Vec<Part> {
    let columns = format!("n | censored | metric of a cause | {KIND_NAMES}");
    let part = |(n, censored): (usize, f64)| {
        let name = format!("causes-{n}-{:.0}", 100.0 * censored);
        Part::new(name, columns.clone(), 200, move |cohorts| rows(n, censored, cohorts))
    };
    [(500, 0.3), (500, 0.7)].into_iter().map(part).collect()
}

/// Hazards exp(x) of the cause and 1/2 of the other, and a constant one of censoring.
pub struct Design {
    pub censoring: f64,
    pub times: Vec<f64>,
}

pub struct Cohort {
    pub outcomes: CompetingOutcomes,
    /// Hazard of the cause, by person.
    pub hazards: Vec<f64>,
    curves: IncidenceCurves,
    groups: Groups,
}

/// Incidence of a cause with a constant hazard beside the other cause.
pub fn incidence(hazard: f64, t: f64) -> f64 {
    hazard / (hazard + OTHER) * -(-(hazard + OTHER) * t).exp_m1()
}

impl Design {
    /// With a share of censored people, of 20,000.
    pub fn new(censored: f64) -> Self {
        let (mut low, mut high) = (-6.0_f64, 4.0_f64);
        let mut design = Self { censoring: 1.0, times: vec![0.5, 1.0] };
        for _ in 0..14 {
            design.censoring = f64::midpoint(low, high).exp();
            let outcomes = design.draw(20_000, 1).outcomes;
            let found = outcomes.cause().iter().filter(|cause| **cause == 0).count() as f64 / 20_000.0;
            if found < censored { low = design.censoring.ln() } else { high = design.censoring.ln() }
        }
        let outcomes = design.draw(20_000, 1).outcomes;
        let of_cause = outcomes.time().iter().zip(outcomes.cause()).filter(|(_, cause)| **cause == 1);
        let mut times: Vec<f64> = of_cause.map(|(time, _)| *time).collect();
        times.sort_by(f64::total_cmp);
        let (first, last) = (times[times.len() / 10], times[times.len() * 8 / 10]);
        design.times = (0..20).map(|k| first + (last - first) * f64::from(k) / 19.0).collect();
        design
    }

    pub fn draw(&self, n: usize, seed: u64) -> Cohort {
        let last = self.times.last().copied().unwrap_or(1.0) * 1.25;
        let grid: Vec<f64> = (0..=30).map(|k| last * f64::from(k) / 30.0).collect();
        let (mut time, mut cause, mut hazards) = (Vec::new(), Vec::new(), Vec::new());
        let mut curves = Array2::zeros((n, grid.len()));
        for row in 0..n {
            let mut rng = stream(seed, "honesty/causes", &[row as u64]);
            let hazard = normal(&mut rng).exp();
            let mut wait = |rate: f64| -(1.0 - rng.random::<f64>()).ln() / rate;
            let [own, other, end] = [hazard, OTHER, self.censoring].map(&mut wait);
            time.push(own.min(other).min(end));
            cause.push(if end < own.min(other) { 0 } else { 1 + u32::from(other < own) });
            let predicted = hazard * (NOISE[row % 2] * normal(&mut rng)).exp();
            for (cell, t) in curves.row_mut(row).iter_mut().zip(&grid) {
                *cell = incidence(predicted, *t);
            }
            hazards.push(hazard);
        }
        let membership = (0..n).map(|row| Some(GroupId(u32::from(row % 2 == 1)))).collect();
        Cohort {
            outcomes: CompetingOutcomes::new(time, cause).unwrap(),
            hazards,
            curves: IncidenceCurves::new(grid, curves).unwrap(),
            groups: Groups::new("group", vec!["0".to_owned(), "1".to_owned()], membership).unwrap(),
        }
    }

    pub fn training(&self) -> CensoringCurve {
        let outcomes = self.draw(20_000, 999_983).outcomes;
        CensoringCurve::fit(outcomes.all_causes(), CensoringTies::EventsFirst)
            .unwrap()
            .with_beyond(BeyondLastTime::Hold)
    }

    pub fn evaluation(&self, metrics: &[&str]) -> EvaluationSettings {
        EvaluationSettings {
            metrics: metrics.iter().map(|name| (*name).to_owned()).collect(),
            times: Some(self.times.clone()),
            horizon: Some(self.times[10]),
            reading: Reading::Linear,
            min_events: 0,
            permutations: 0,
            over_time: 0,
            replicates: 0,
            ..EvaluationSettings::default()
        }
    }
}

impl Cohort {
    pub fn report(&self, censoring: &CensoringCurve, settings: &EvaluationSettings) -> Option<EvaluationReport> {
        let subjects: Vec<SubjectId> = (0..self.outcomes.n()).map(|row| SubjectId::new(format!("{row:06}"))).collect();
        let groups = std::slice::from_ref(&self.groups);
        evaluate_cause(&subjects, &self.outcomes, 1, &self.curves, censoring, groups, settings).ok()
    }
}

fn rows(n: usize, censored: f64, n_cohorts: u64) -> Vec<String> {
    let design = Design::new(censored);
    let (curve, values) = (design.training(), design.evaluation(&METRICS));
    let large = design.draw(60_000, 7).report(&curve, &values).unwrap();
    let truth: Vec<[Option<f64>; KINDS]> =
        large.metrics.iter().map(|metric| numbers(metric).map(|number| number.0)).collect();
    let settings = EvaluationSettings { replicates: 300, ..values };
    let one = |seed: u64| {
        let report = design.draw(n, 1_000 + seed).report(&curve, &settings)?;
        let pairs = report.metrics.iter().zip(&truth);
        Some(pairs.map(|(metric, truth): (&MetricReport, _)| covered(&numbers(metric), truth)).collect::<Vec<_>>())
    };
    let found: Vec<Vec<[Option<bool>; KINDS]>> = (0..n_cohorts).into_par_iter().filter_map(one).collect();
    let row = |place: usize| {
        let of_metric = found.iter().map(|cohort| cohort[place]);
        format!("| {n} | {:.0} % | {} | {} |", 100.0 * censored, METRICS[place], shares(of_metric))
    };
    (0..METRICS.len()).map(row).collect()
}
