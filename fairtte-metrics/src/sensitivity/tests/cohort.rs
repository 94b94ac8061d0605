//! A generator with a known dependence of censoring and event.

use ndarray::Array2;
use rand::RngExt as _;

use crate::seeds::stream;
use crate::sensitivity::{MetricSensitivity, SensitivityReport, SensitivitySettings, sensitivity};
use crate::{
    CensoringCurve, CensoringTies, EvaluationSettings, GroupId, Groups, Outcomes, Reading, SubjectId, SurvivalCurves,
};

/// All follow-up ends here.
pub(super) const END: f64 = 1.2;

/// Samples with risk x from a normal distribution, event hazard exp(x) and drop-out hazard `dropout`; after the drop-out the
/// hazard is multiplied by exp(`delta`) of the group. The model predicts exp(-t exp(x + noise)).
pub(super) struct Design {
    pub(super) n: usize,
    pub(super) dropout: f64,
    /// By group, in turn.
    pub(super) delta: [f64; 2],
    pub(super) noise: [f64; 2],
}

pub(super) struct Cohort {
    /// What is observed: events, drop-outs, and the end of follow-up.
    pub(super) observed: Outcomes,
    /// What would be observed without drop-out, up to the end of follow-up.
    pub(super) complete: Outcomes,
    pub(super) curves: SurvivalCurves,
    pub(super) groups: Groups,
    pub(super) subjects: Vec<SubjectId>,
}

impl Design {
    pub(super) fn draw(&self, seed: u64) -> Cohort {
        let mut rng = stream(seed, "informative", &[]);
        let (mut observed, mut complete, mut risks) = (vec![], vec![], vec![]);
        for row in 0..self.n {
            let group = row % 2;
            let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
            let (x, noise) = (normal(), normal());
            risks.push((x + self.noise[group] * noise).exp());
            let mut exponential = || 1e-9 - (1.0 - rng.random::<f64>()).ln();
            let (event, dropout) = (exponential() / x.exp(), exponential() / self.dropout);
            let after = exponential() / (x + self.delta[group]).exp();
            let event = if event <= dropout { event } else { dropout + after };
            let until = |time: f64, is_event: bool| (time.min(END), is_event && time <= END);
            complete.push(until(event, true));
            observed.push(if dropout < event { until(dropout, false) } else { until(event, true) });
        }
        let outcomes = |rows: Vec<(f64, bool)>| {
            let (time, event) = rows.into_iter().unzip();
            Outcomes::new(time, event).unwrap()
        };
        let grid: Vec<f64> = (0..=24).map(|k| END * f64::from(k) / 24.0).collect();
        let survival = Array2::from_shape_fn((self.n, grid.len()), |(row, k)| (-grid[k] * risks[row]).exp());
        let membership = (0..self.n).map(|row| Some(GroupId::from_index(row % 2))).collect();
        Cohort {
            observed: outcomes(observed),
            complete: outcomes(complete),
            curves: SurvivalCurves::new(grid, survival).unwrap(),
            groups: Groups::new("group", vec!["a".to_owned(), "b".to_owned()], membership).unwrap(),
            subjects: (0..self.n).map(|row| SubjectId::new(format!("{row:06}"))).collect(),
        }
    }
}

pub(super) fn settings(metrics: &[&str]) -> EvaluationSettings {
    EvaluationSettings {
        metrics: metrics.iter().map(|name| (*name).to_owned()).collect(),
        times: Some((1..=10).map(|k| 0.1 * f64::from(k)).collect()),
        horizon: Some(0.6),
        reading: Reading::ConstantHazard,
        permutations: 0,
        over_time: 0,
        ..EvaluationSettings::default()
    }
}

impl Cohort {
    pub(super) fn censoring(&self) -> CensoringCurve {
        CensoringCurve::fit(&self.observed, CensoringTies::EventsFirst).unwrap()
    }

    pub(super) fn analyse(&self, metrics: &[&str], tilt: &SensitivitySettings) -> SensitivityReport {
        let tilt = SensitivitySettings { administrative: tilt.administrative.or(Some(END)), ..tilt.clone() };
        let groups = std::slice::from_ref(&self.groups);
        let (observed, censoring) = (&self.observed, self.censoring());
        sensitivity(&self.subjects, observed, &self.curves, &censoring, groups, &settings(metrics), &tilt).unwrap()
    }

    /// The metrics of the complete outcomes: of all, and of every group.
    pub(super) fn truth(&self, metrics: &[&str]) -> Vec<[f64; 3]> {
        let censoring = CensoringCurve::fit(&self.complete, CensoringTies::EventsFirst).unwrap();
        let settings = EvaluationSettings { replicates: 0, ..settings(metrics) };
        let groups = std::slice::from_ref(&self.groups);
        let found =
            crate::evaluate(&self.subjects, &self.complete, &self.curves, &censoring, groups, &settings).unwrap();
        let of_metric = |metric: &crate::evaluation::MetricReport| {
            let group = |k: usize| metric.attributes[0].groups[k].estimate.value.unwrap();
            [metric.overall.value.unwrap(), group(0), group(1)]
        };
        found.metrics.iter().map(of_metric).collect()
    }
}

/// The values of all and of every group at the delta of this place.
pub(super) fn values(metric: &MetricSensitivity, place: usize) -> [f64; 3] {
    let point = &metric.points[place];
    let group = |k: usize| point.groups[k].estimate.value.unwrap();
    [point.overall.value.unwrap(), group(0), group(1)]
}
