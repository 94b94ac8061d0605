//! Competing risks against values that other packages computed: `golden/competing.json` and `golden/competing_r.json`, which say which
//! and how.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::collections::BTreeMap;

use fairtte_metrics::competing::{
    AalenJohansen, CompetingOutcomes, Controls, IncidenceCurves, IncidenceVariance, cause_auc, cause_brier_score,
    cause_concordance, integrated_cause_brier_score,
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
        serde_json::from_str(include_str!("../golden/competing.json")).unwrap()
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

#[derive(Deserialize)]
struct OfR {
    samples: BTreeMap<String, Sample>,
}

#[derive(Deserialize)]
struct Sample {
    time: Vec<f64>,
    cause: Vec<u32>,
    times: Vec<f64>,
    causes: BTreeMap<u32, OfCause>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct OfCause {
    predicted: Vec<Vec<f64>>,
    auc: Vec<f64>,
    brier: Vec<f64>,
    c_wolbers: Vec<f64>,
    prodlim: Curve,
    cuminc: Curve,
}

#[derive(Deserialize)]
struct Curve {
    times: Vec<f64>,
    incidence: Vec<f64>,
    variance: Option<Vec<f64>>,
}

fn assert_close(found: f64, expected: f64, about: &str) {
    assert!((found - expected).abs() < 1e-12, "{about}: {found} {expected}");
}

#[test]
fn brier_score_auc_concordance_and_incidence_are_those_of_risk_regression_pec_prodlim_and_cmprsk() {
    let of_r: OfR = serde_json::from_str(include_str!("../golden/competing_r.json")).unwrap();
    assert_eq!(of_r.samples.len(), 3);
    for (name, Sample { time, cause, times, causes }) in of_r.samples {
        let n = time.len();
        let outcomes = CompetingOutcomes::new(time, cause).unwrap();
        let censoring = CensoringCurve::fit(outcomes.all_causes(), CensoringTies::EventsFirst).unwrap();
        for (cause, expected) in causes {
            let about = format!("{name}, cause {cause}");
            let values = Array2::from_shape_fn((n, times.len()), |(row, k)| expected.predicted[row][k]);
            let curves = IncidenceCurves::new(times.clone(), values.clone()).unwrap();
            let reading = Reading::Step;
            let brier = cause_brier_score(&outcomes, cause, &curves, &censoring, reading, &times).unwrap();
            let controls = Controls::WithoutTheCause;
            let auc = cause_auc(&outcomes, cause, &curves, &censoring, reading, &times, controls).unwrap();
            for (k, time) in times.iter().enumerate() {
                let about = format!("{about}, time {time}");
                assert_close(brier.values[k], expected.brier[k], &about);
                assert_close(*auc.values[k].as_ref().unwrap(), expected.auc[k], &about);
                // pec weights by 1 / (G(T-) G(T)), which is another number where an event and a censoring share a time.
                if name != "tied" {
                    let risk = Risk::new(values.column(k).to_vec()).unwrap();
                    let c = cause_concordance(&outcomes, cause, &risk, &censoring, Some(*time)).unwrap();
                    assert_close(c.value, expected.c_wolbers[k], &about);
                }
            }
            let curve = AalenJohansen::fit(&outcomes, cause, IncidenceVariance::Aalen).unwrap();
            for recorded in [&expected.prodlim, &expected.cuminc] {
                for (time, incidence) in recorded.times.iter().zip(&recorded.incidence) {
                    assert_close(curve.at(*time), *incidence, &about);
                }
            }
            // With tied events `cuminc` has another variance, 1e-7 away.
            if name != "distinct" {
                continue;
            }
            let variances = expected.cuminc.variance.as_ref().unwrap();
            for (time, variance) in expected.cuminc.times.iter().zip(variances) {
                let place = curve.times().partition_point(|at| at <= time);
                if let Some(found) = place.checked_sub(1).and_then(|place| curve.variance()[place]) {
                    assert_close(found, *variance, &format!("{about}, variance at {time}"));
                }
            }
        }
    }
}
