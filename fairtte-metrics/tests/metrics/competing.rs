//! Competing risks against values that other packages computed: `golden/competing.json` and `golden/competing_r.json`, which say which
//! and how.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::collections::BTreeMap;

use fairtte_metrics::competing::{
    AalenJohansen, CompetingOutcomes, Controls, IncidenceCurves, IncidenceVariance, cause_auc, cause_brier_score,
    cause_calibration_index, cause_calibration_slope, cause_concordance, integrated_cause_brier_score,
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

/// A sample of the calibration by its definition: transformed prediction x, and spline term if there is one.
type Basis = Vec<[f64; 2]>;

/// G(t-): the Kaplan-Meier curve of the censoring just before `t`, by its product over all censored samples before it.
fn censoring_before(time: &[f64], cause: &[u32], t: f64) -> f64 {
    let censored = (0..time.len()).filter(|row| cause[*row] == 0 && time[*row] < t);
    censored.map(|row| 1.0 - 1.0 / time.iter().filter(|other| **other >= time[row]).count() as f64).product()
}

/// Weight of row `j` in the risk set at `t`: 1 while it is observed, G(t-) / G(T-) after an event of another cause.
fn weight(time: &[f64], cause: &[u32], j: usize, t: f64) -> f64 {
    match cause[j] {
        _ if time[j] >= t => 1.0,
        2 => censoring_before(time, cause, t) / censoring_before(time, cause, time[j]),
        _ => 0.0,
    }
}

/// Sums over the risk set of w exp(eta) times 1, x, and x x', at the time of row `i`.
fn sums(time: &[f64], cause: &[u32], basis: &Basis, b: [f64; 2], i: usize) -> (f64, [f64; 2], [[f64; 2]; 2]) {
    let (mut zero, mut one, mut two) = (0.0, [0.0; 2], [[0.0; 2]; 2]);
    for (j, row) in basis.iter().enumerate() {
        let risk = weight(time, cause, j, time[i]) * (row[0] * b[0] + row[1] * b[1]).exp();
        zero += risk;
        for k in 0..2 {
            one[k] += risk * row[k];
            for l in 0..2 {
                two[k][l] += risk * row[k] * row[l];
            }
        }
    }
    (zero, one, two)
}

/// The coefficients of Fine and Gray's model of cause 1 by Newton's method with double loops; of x alone if the second column is 0.
fn coefficients(time: &[f64], cause: &[u32], basis: &Basis) -> [f64; 2] {
    let alone = basis.iter().all(|row| row[1] == 0.0);
    let mut b = [0.0; 2];
    for _ in 0..30 {
        let (mut score, mut information) = ([0.0; 2], [[0.0; 2]; 2]);
        for i in (0..time.len()).filter(|row| cause[*row] == 1) {
            let (zero, one, two) = sums(time, cause, basis, b, i);
            for k in 0..2 {
                score[k] += basis[i][k] - one[k] / zero;
                for l in 0..2 {
                    information[k][l] += two[k][l] / zero - one[k] * one[l] / zero / zero;
                }
            }
        }
        let [[a, c], [_, d]] = information;
        let step = if alone {
            [score[0] / a, 0.0]
        } else {
            let determinant = a * d - c * c;
            [(d * score[0] - c * score[1]) / determinant, (a * score[1] - c * score[0]) / determinant]
        };
        b = [b[0] + step[0], b[1] + step[1]];
    }
    b
}

/// Quantile with linear interpolation between order statistics.
fn interpolated(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * (sorted.len() - 1) as f64;
    // The last order statistic at or below the place.
    let below = (0..sorted.len()).rev().find(|rank| *rank as f64 <= place).unwrap();
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

#[test]
fn calibration_of_many_predictions_is_that_of_double_loops_over_its_definition() {
    let n = 90;
    let unit = |row: usize, step: f64| ((row as f64 + 0.5) * step).fract();
    let time: Vec<f64> = (0..n).map(|row| 0.2 + 6.0 * unit(row, 0.618_033_988_749_895)).collect();
    let fifth = |share: f64| (1..5).filter(|part| f64::from(*part) <= 5.0 * share).count();
    let cause: Vec<u32> = (0..n).map(|row| [1, 2, 0, 1, 2][fifth(unit(row, 0.754_877_666_246_693))]).collect();
    // Early events have high predictions, with noise.
    let risk: Vec<f64> = (0..n)
        .map(|row| 0.03 + 0.75 * (0.6 * (1.0 - time[row] / 6.3) + 0.4 * unit(row, 0.569_840_290_998_053)))
        .collect();
    let outcomes = CompetingOutcomes::new(time.clone(), cause.clone()).unwrap();
    let curves = IncidenceCurves::new(vec![3.5], Array2::from_shape_fn((n, 1), |(row, _)| risk[row])).unwrap();

    let x: Vec<f64> = risk.iter().map(|p| (-(1.0 - p).ln()).ln()).collect();
    let alone: Basis = x.iter().map(|x| [*x, 0.0]).collect();
    let slope = cause_calibration_slope(&outcomes, 1, &curves, 3.5, Reading::Step).unwrap();
    let expected = coefficients(&time, &cause, &alone)[0];
    assert!((slope - expected).abs() < 1e-6 * expected.abs(), "{slope} for {expected}");

    let [first, second, third] = [0.1, 0.5, 0.9].map(|share| interpolated(&x, share));
    let cube = |x: f64| x.max(0.0).powi(3);
    // Harrell's restricted cubic spline: straight beyond the first and the last knot.
    let term = |x: f64| {
        cube(x - first) - cube(x - second) * (third - first) / (third - second)
            + cube(x - third) * (second - first) / (third - second)
    };
    let basis: Basis = x.iter().map(|x| [*x, term(*x)]).collect();
    let b = coefficients(&time, &cause, &basis);
    let events = (0..n).filter(|row| cause[*row] == 1 && time[*row] <= 3.5);
    let hazard: f64 = events.map(|row| 1.0 / sums(&time, &cause, &basis, b, row).0).sum();
    let observed = basis.iter().map(|row| 1.0 - (-hazard * (row[0] * b[0] + row[1] * b[1]).exp()).exp());
    let errors: Vec<f64> = observed.zip(&risk).map(|(o, p)| (o - p).abs()).collect();
    let found = cause_calibration_index(&outcomes, 1, &curves, 3.5, Reading::Step).unwrap();
    let ici = errors.iter().sum::<f64>() / n as f64;
    let largest = errors.iter().copied().fold(0.0, f64::max);
    assert!(ici > 0.02 && (found.ici - ici).abs() < 1e-6, "{} for {ici}", found.ici);
    assert!(
        (found.e50 - interpolated(&errors, 0.5)).abs() < 1e-6 && (found.e90 - interpolated(&errors, 0.9)).abs() < 1e-6
    );
    assert!((found.e_max - largest).abs() < 1e-6);
}
