//! Competing risks against values that other packages computed: `golden/competing.json`, which says which and how.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::collections::BTreeMap;

use fairtte_metrics::competing::{
    AalenJohansen, CompetingOutcomes, IncidenceCurves, IncidenceVariance, cause_brier_score, cause_concordance,
    integrated_cause_brier_score,
};
use fairtte_metrics::{CensoringCurve, CensoringTies, Reading, Risk};
use ndarray::Array2;
use serde::Deserialize;

#[derive(Deserialize)]
struct Recorded {
    time: Vec<f64>,
    cause: Vec<u32>,
    grid: Vec<f64>,
    incidence: Vec<Vec<f64>>,
    lifelines: BTreeMap<u32, Lifelines>,
    #[serde(rename = "scikit-survival")]
    sksurv: Sksurv,
    hazardous: BTreeMap<u32, Hazardous>,
}

#[derive(Deserialize)]
struct Lifelines {
    times: Vec<f64>,
    incidence: Vec<f64>,
    variance: Vec<Option<f64>>,
}

#[derive(Deserialize)]
struct Sksurv {
    times: Vec<f64>,
    cif: Vec<Vec<f64>>,
    interval: Vec<[Vec<Option<f64>>; 2]>,
}

#[derive(Deserialize)]
struct Hazardous {
    times: Vec<f64>,
    brier: Vec<f64>,
    integrated: f64,
    concordance: Vec<Concordance>,
}

#[derive(Deserialize)]
struct Concordance {
    tau: f64,
    value: f64,
}

impl Recorded {
    fn read() -> Self {
        serde_json::from_str(include_str!("golden/competing.json")).unwrap()
    }

    fn outcomes(&self) -> CompetingOutcomes {
        CompetingOutcomes::new(self.time.clone(), self.cause.clone()).unwrap()
    }

    fn curves(&self) -> IncidenceCurves {
        let values = Array2::from_shape_fn((self.time.len(), self.grid.len()), |(row, k)| self.incidence[row][k]);
        IncidenceCurves::new(self.grid.clone(), values).unwrap()
    }
}

#[test]
fn incidence_and_delta_variance_are_those_of_lifelines() {
    let recorded = Recorded::read();
    for (cause, expected) in &recorded.lifelines {
        let curve = AalenJohansen::fit(&recorded.outcomes(), *cause, IncidenceVariance::Delta).unwrap();
        let mut n_variances = 0;
        // lifelines starts with time 0.
        for k in 1..expected.times.len() {
            assert!((curve.times()[k - 1] - expected.times[k]).abs() < 1e-12);
            assert!((curve.incidence()[k - 1] - expected.incidence[k]).abs() < 1e-12);
            if let Some(variance) = expected.variance[k] {
                assert!((curve.variance()[k - 1].unwrap() - variance).abs() < 1e-14, "{variance}");
                n_variances += 1;
            }
        }
        assert!(n_variances >= expected.times.len() - 2);
    }
}

#[test]
fn incidence_and_aalens_variance_are_those_of_scikit_survival() {
    let recorded = Recorded::read();
    let z = 1.959_963_984_540_054_f64;
    for cause in [1, 2] {
        let curve = AalenJohansen::fit(&recorded.outcomes(), cause, IncidenceVariance::Aalen).unwrap();
        let place = cause as usize - 1;
        assert_eq!(curve.times(), recorded.sksurv.times);
        let mut n_compared = 0;
        for (k, incidence) in curve.incidence().iter().enumerate() {
            assert!((incidence - recorded.sksurv.cif[place][k]).abs() < 1e-12);
            let Some(variance) = curve.variance()[k].filter(|_| *incidence > 0.0) else { continue };
            // Its interval is on the scale of log(-log F).
            let reach = z * variance.sqrt() / (incidence * incidence.ln()).abs();
            let [lower, upper] = [0, 1].map(|end: usize| recorded.sksurv.interval[place][end][k].unwrap());
            assert!((incidence.powf(reach.exp()) - lower).abs() < 1e-12, "{k}");
            assert!((incidence.powf((-reach).exp()) - upper).abs() < 1e-12, "{k}");
            n_compared += 1;
        }
        assert!(n_compared > 50);
    }
}

#[test]
fn brier_score_and_concordance_are_those_of_hazardous() {
    let recorded = Recorded::read();
    let (outcomes, curves) = (recorded.outcomes(), recorded.curves());
    let censoring = CensoringCurve::fit(outcomes.all_causes(), CensoringTies::EventsFirst).unwrap();
    for (cause, expected) in &recorded.hazardous {
        let times = &expected.times;
        let brier = cause_brier_score(&outcomes, *cause, &curves, &censoring, Reading::Step, times).unwrap();
        for (found, expected) in brier.values.iter().zip(&expected.brier) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        let reading = Reading::Step;
        let integrated = integrated_cause_brier_score(&outcomes, *cause, &curves, &censoring, reading, times).unwrap();
        assert!((integrated - expected.integrated).abs() < 1e-12);
        for Concordance { tau, value } in &expected.concordance {
            let risk = Risk::new(curves.all_at(*tau, Reading::Step)).unwrap();
            let found = cause_concordance(&outcomes, *cause, &risk, &censoring, Some(*tau)).unwrap();
            assert!((found.value - value).abs() < 1e-12, "{tau}: {} {value}", found.value);
            assert!(found.n_competing > 0);
        }
    }
}
