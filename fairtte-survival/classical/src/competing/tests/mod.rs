//! Against R `crr`, double loops over the formulas, closed forms and simulations with known truth.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use fairtte_metrics::competing::{
    AalenJohansen, CompetingOutcomes, IncidenceCurves, IncidenceVariance, cause_calibration_index,
    cause_calibration_slope,
};
use fairtte_metrics::evaluation::Stop;
use fairtte_metrics::seeds::stream;
use fairtte_metrics::{MetricError, Outcomes, Reading, SurvivalCurves};
use ndarray::{Array2, array};
use rand::RngExt as _;
use serde::Deserialize;

mod of_r;

use super::*;
use crate::{ClassicalError, CoxSettings, SurvivalEstimator, SurvivalModel};

#[derive(Deserialize)]
struct Golden {
    crr: Crr,
    direct: Vec<Direct>,
}

#[derive(Deserialize)]
struct Crr {
    time: Vec<f64>,
    cause: Vec<u32>,
    covariates: Vec<Vec<f64>>,
    coefficients: Vec<f64>,
    standard_errors: Vec<f64>,
    first_alone: [f64; 2],
}

#[derive(Deserialize)]
struct Direct {
    name: String,
    cause: u32,
    time: Vec<f64>,
    causes: Vec<u32>,
    covariates: Vec<Vec<f64>>,
    coefficients: Vec<f64>,
    standard_errors: Vec<f64>,
    log_likelihood: f64,
    times: Vec<f64>,
    baseline_at_zero: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../../tests/golden/fine_gray.json")).unwrap()
}

fn matrix(rows: &[Vec<f64>]) -> Array2<f64> {
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(row, column)| rows[row][column])
}

/// Equal in the four significant digits that R prints.
fn prints_as(found: f64, printed: f64) -> bool {
    let unit = 10_f64.powf(printed.abs().log10().floor() - 3.0);
    (found - printed).abs() <= 0.500_1 * unit
}

#[test]
fn coefficients_and_standard_errors_print_as_those_of_r_crr() {
    let crr = golden().crr;
    let (covariates, outcomes) = (matrix(&crr.covariates), CompetingOutcomes::new(crr.time, crr.cause).unwrap());
    let model = FineGraySettings::default().fit(&covariates, &outcomes).unwrap();
    for ((found, value), error) in model.coefficients.iter().zip(crr.coefficients).zip(crr.standard_errors) {
        assert!(prints_as(found.value, value), "{} {value}", found.value);
        assert!(prints_as(found.standard_error, error), "{} {error}", found.standard_error);
    }
    let first = covariates.select(ndarray::Axis(1), &[0]);
    let alone = FineGraySettings::default().fit(&first, &outcomes).unwrap().coefficients[0].clone();
    assert!(prints_as(alone.value, crr.first_alone[0]) && prints_as(alone.standard_error, crr.first_alone[1]));
}

#[test]
fn every_number_is_that_of_double_loops_over_the_formulas_with_and_without_ties() {
    let all = golden().direct;
    assert_eq!(all.len(), 4);
    for direct in all {
        let (covariates, outcomes) =
            (matrix(&direct.covariates), CompetingOutcomes::new(direct.time, direct.causes).unwrap());
        let settings = FineGraySettings { cause: direct.cause, ..FineGraySettings::default() };
        let model = settings.fit(&covariates, &outcomes).unwrap();
        let about = format!("{}, cause {}", direct.name, direct.cause);
        let mut at_zero = 0.0;
        for ((found, value), error) in model.coefficients.iter().zip(direct.coefficients).zip(direct.standard_errors) {
            assert!((found.value - value).abs() < 1e-9, "{about}: {} {value}", found.value);
            assert!((found.standard_error - error).abs() < 1e-9, "{about}: {} {error}", found.standard_error);
            at_zero -= found.value * found.mean;
        }
        assert!((model.log_likelihood - direct.log_likelihood).abs() < 1e-9, "{about}");
        assert_eq!(model.times, direct.times);
        for (found, expected) in model.cumulative_hazard.iter().zip(direct.baseline_at_zero) {
            assert!((found * at_zero.exp() - expected).abs() < 1e-9, "{about}");
        }
    }
}

#[test]
fn without_competing_events_and_ties_it_is_cox_regression_by_the_definition() {
    // The score of the partial likelihood, written out, is 0 at the estimate.
    let x = [0.0, 1.0, 0.0, 1.0, 1.0];
    let outcomes = CompetingOutcomes::new(vec![1.0, 2.0, 3.0, 4.0, 5.0], vec![1, 1, 0, 1, 0]).unwrap();
    let covariates = Array2::from_shape_fn((5, 1), |(row, _)| x[row]);
    let b = FineGraySettings::default().fit(&covariates, &outcomes).unwrap().coefficients[0].value;
    let mean = |from: usize| {
        let risks: Vec<f64> = x[from..].iter().map(|x| (b * x).exp()).collect();
        risks.iter().zip(&x[from..]).map(|(risk, x)| risk * x).sum::<f64>() / risks.iter().sum::<f64>()
    };
    let score: f64 = [0, 1, 3].into_iter().map(|row| x[row] - mean(row)).sum();
    assert!(score.abs() < 1e-10, "{score}");
}

#[test]
fn the_model_behind_calibration_in_fairtte_metrics_is_the_same() {
    let direct = golden().direct.remove(0);
    let n = direct.time.len();
    let outcomes = CompetingOutcomes::new(direct.time, direct.causes).unwrap();
    // Many predictions: the slope is the coefficient of their log(-log(1 - F)).
    let risk = |row: usize| (0.1 + 0.08 * direct.covariates[row][0] + 0.1 * direct.covariates[row][1]).clamp(0.02, 0.9);
    let transformed = Array2::from_shape_fn((n, 1), |(row, _)| (-(1.0 - risk(row)).ln()).ln());
    let curves = IncidenceCurves::new(vec![1.5], Array2::from_shape_fn((n, 1), |(row, _)| risk(row))).unwrap();
    let slope = cause_calibration_slope(&outcomes, 1, &curves, 1.5, Reading::Step).unwrap();
    let fit = |covariates: &Array2<f64>| FineGraySettings::default().fit(covariates, &outcomes).unwrap();
    let coefficient = fit(&transformed).coefficients[0].value;
    assert!((slope - coefficient).abs() < 1e-6, "{slope} {coefficient}");
    // Two predictions: the smoothed observed risk is the incidence of each.
    let two = |row: usize| if direct.covariates[row][1] > 0.5 { 0.6 } else { 0.2 };
    let curves = IncidenceCurves::new(vec![1.5], Array2::from_shape_fn((n, 1), |(row, _)| two(row))).unwrap();
    let index = cause_calibration_index(&outcomes, 1, &curves, 1.5, Reading::Step).unwrap();
    let second = Array2::from_shape_fn((n, 1), |(row, _)| direct.covariates[row][1]);
    let incidence = fit(&second).incidence_curves(&second, &[1.5]).unwrap().incidence();
    let mut sum = 0.0;
    for row in 0..n {
        assert!((index.observed[row] - incidence[[row, 0]]).abs() < 1e-6);
        sum += (incidence[[row, 0]] - two(row)).abs();
    }
    assert!((index.ici - sum / n as f64).abs() < 1e-6);
}

/// Two groups: cause 1 with the cumulative incidence 1 - (1 - 0.4 (1 - e^-t))^exp(b x), cause 2 otherwise (Fine & Gray 1999,
/// section 6); censoring uniform on (0, `last`).
fn simulated(n: usize, b: f64, last: f64, seed: u64) -> (Array2<f64>, CompetingOutcomes) {
    let mut rng = stream(seed, "tests/fine-gray", &[]);
    let covariates = Array2::from_shape_fn((n, 1), |(row, _)| f64::from(u8::from(row % 2 == 0)));
    let (mut time, mut cause) = (Vec::new(), Vec::new());
    for row in 0..n {
        let ratio = (b * covariates[[row, 0]]).exp();
        let ever = 1.0 - 0.6_f64.powf(ratio);
        let u: f64 = rng.random();
        let (event, of) = if u < ever {
            (-(1.0 - (1.0 - (1.0 - u).powf(1.0 / ratio)) / 0.4).ln(), 1)
        } else {
            (-(1.0 - rng.random::<f64>()).ln(), 2)
        };
        let censored = last * rng.random::<f64>();
        time.push(event.min(censored));
        cause.push(if event <= censored { of } else { 0 });
    }
    (covariates, CompetingOutcomes::new(time, cause).unwrap())
}

#[test]
fn the_coefficient_and_its_error_are_right_where_the_truth_is_known() {
    let (b, n_runs) = (0.7, 60);
    let fits: Vec<FineGrayCoefficient> = (0..n_runs)
        .map(|seed| {
            let (covariates, outcomes) = simulated(300, b, 3.0, seed);
            FineGraySettings::default().fit(&covariates, &outcomes).unwrap().coefficients[0].clone()
        })
        .collect();
    let mean = fits.iter().map(|fit| fit.value).sum::<f64>() / n_runs as f64;
    let deviation = (fits.iter().map(|fit| (fit.value - mean).powi(2)).sum::<f64>() / (n_runs as f64 - 1.0)).sqrt();
    let error = fits.iter().map(|fit| fit.standard_error).sum::<f64>() / n_runs as f64;
    // Three standard errors of the mean; the deviation of 60 values varies by about a tenth.
    assert!((mean - b).abs() < 3.0 * error / (n_runs as f64).sqrt(), "{mean}");
    assert!((deviation / error - 1.0).abs() < 0.3, "{deviation} {error}");
    let covered = fits.iter().filter(|fit| (fit.value - b).abs() < 1.96 * fit.standard_error).count();
    assert!(covered >= 52, "{covered} of {n_runs}");
}

#[test]
fn predicted_incidence_is_that_of_the_simulation() {
    let (covariates, outcomes) = simulated(8000, 0.7, 5.0, 1);
    let model = FineGraySettings::default().fit(&covariates, &outcomes).unwrap();
    let grid = [0.0, 0.5, 1.0, 2.0];
    let incidence = model.incidence_curves(&covariates, &grid).unwrap().incidence();
    for (column, t) in grid.into_iter().enumerate() {
        for (row, ratio) in [(0, 0.7_f64.exp()), (1, 1.0)] {
            let truth = 1.0 - (1.0 - 0.4 * (1.0 - f64::exp(-t))).powf(ratio);
            assert!((incidence[[row, column]] - truth).abs() < 0.02, "{t}: {} {truth}", incidence[[row, column]]);
        }
    }
}

/// A model whose hazard is known: S(t) = exp(-rate t), the rate the events divided by the time at risk.
struct Exponential;

struct ExponentialModel(f64);

impl SurvivalEstimator for Exponential {
    type Model = ExponentialModel;

    fn check(&self) -> Result<(), ClassicalError> {
        Ok(())
    }

    fn fit_until(&self, _: &Array2<f64>, outcomes: &Outcomes, _: &Stop) -> Result<ExponentialModel, ClassicalError> {
        Ok(ExponentialModel(outcomes.n_events() as f64 / outcomes.time().iter().sum::<f64>()))
    }
}

impl SurvivalModel for ExponentialModel {
    fn n_covariates(&self) -> usize {
        1
    }

    fn survival_curves(&self, covariates: &Array2<f64>, grid: &[f64]) -> Result<SurvivalCurves, ClassicalError> {
        assert!(covariates.nrows() <= 256, "{} samples at a time", covariates.nrows());
        let values = Array2::from_shape_fn((covariates.nrows(), grid.len()), |(_, k)| (-self.0 * grid[k]).exp());
        Ok(SurvivalCurves::new(grid.to_vec(), values)?)
    }

    fn risk(&self, covariates: &Array2<f64>) -> Result<Vec<f64>, ClassicalError> {
        Ok(vec![self.0; covariates.nrows()])
    }
}

#[test]
fn incidence_from_constant_hazards_is_the_closed_form_and_adds_up_to_one() {
    let time: Vec<f64> = (1..=40).map(|k| f64::from(k) / 4.0).collect();
    let outcomes = CompetingOutcomes::new(time, (0..40).map(|k| [1, 2, 1, 3][k % 4]).collect()).unwrap();
    let covariates = Array2::zeros((40, 1));
    let model = CauseSpecific::fit(&Exponential, &covariates, &outcomes).unwrap();
    let rates: Vec<f64> = model.models().iter().map(|model| model.0).collect();
    let all: f64 = rates.iter().sum();
    // Event times of the sample, at which the steps end.
    let grid = [0.25, 2.0, 7.5, 10.0];
    let curves: Vec<_> =
        (1..=3).map(|cause| model.incidence_curves(&covariates, cause, &grid).unwrap().incidence()).collect();
    let free = model.event_free_curves(&covariates, &grid).unwrap();
    for (k, t) in grid.into_iter().enumerate() {
        for (curve, rate) in curves.iter().zip(&rates) {
            let expected = rate / all * (1.0 - (-all * t).exp());
            assert!((curve[[7, k]] - expected).abs() < 1e-12);
        }
        let sum: f64 = curves.iter().map(|curve| curve[[7, k]]).sum();
        assert!((sum + free.survival()[[7, k]] - 1.0).abs() < 1e-12);
    }
    // Before the first event nothing has happened; after the last one nothing more does.
    let ends = model.incidence_curves(&covariates, 1, &[0.0, 10.0, 99.0]).unwrap().incidence();
    assert_eq!((ends[[0, 0]], ends[[0, 2]]), (0.0, ends[[0, 1]]));
    let unknown = model.incidence_curves(&covariates, 4, &grid);
    assert_eq!(unknown.unwrap_err(), ClassicalError::Metric(MetricError::UnknownCause { cause: 4, n_causes: 3 }));
    assert!(model.incidence_curves(&covariates, 1, &[]).is_err());
}

/// A curve per event time and cause is in memory for some samples only.
#[test]
fn many_samples_are_predicted_in_blocks_as_each_alone_and_errors_name_their_row() {
    let (covariates, outcomes) = simulated(600, 0.7, 3.0, 4);
    let grid = [0.0, 0.4, 1.1, 2.5];
    let exponential = CauseSpecific::fit(&Exponential, &covariates, &outcomes).unwrap();
    assert_eq!(exponential.incidence_curves(&covariates, 2, &grid).unwrap().incidence().nrows(), 600);
    let model = CauseSpecific::fit(&CoxSettings::default(), &covariates, &outcomes).unwrap();
    let all = model.incidence_curves(&covariates, 1, &grid).unwrap().incidence();
    for row in [0, 255, 256, 511, 512, 599] {
        let own = covariates.select(ndarray::Axis(0), &[row]);
        let alone = model.incidence_curves(&own, 1, &grid).unwrap().incidence();
        assert_eq!(all.row(row), alone.row(0), "{row}");
    }
    assert_eq!(model.event_free_curves(&Array2::zeros((0, 1)), &grid).unwrap().survival().dim(), (0, 4));
    let mut broken = covariates.clone();
    broken[[300, 0]] = f64::NAN;
    let error = model.incidence_curves(&broken, 1, &grid).unwrap_err();
    assert_eq!(error.to_string(), "covariate 0 of row 300 is NaN, expected a finite number");
}

#[test]
fn a_search_without_an_end_names_the_setting_that_gives_it_more_steps() {
    let (covariates, outcomes) = simulated(300, 0.7, 3.0, 4);
    let error = FineGraySettings { most_steps: 1, ..FineGraySettings::default() }.fit(&covariates, &outcomes);
    assert_eq!(
        error.unwrap_err().to_string(),
        "coefficients of the subdistribution hazard do not settle in 1 steps: leave out covariates that nearly repeat others, or let the \
         search take more steps (most-steps)"
    );
}

#[derive(Deserialize)]
struct Recorded {
    time: Vec<f64>,
    causes: Vec<u32>,
    covariates: Vec<Vec<f64>>,
    coefficients: std::collections::BTreeMap<u32, Vec<f64>>,
    grid: Vec<f64>,
    incidence: std::collections::BTreeMap<u32, Vec<Vec<f64>>>,
}

#[test]
fn cause_specific_cox_models_have_the_coefficients_of_lifelines_and_the_incidence_of_their_hazards() {
    let recorded: Recorded = serde_json::from_str(include_str!("../../../tests/golden/cause_specific.json")).unwrap();
    let covariates = matrix(&recorded.covariates);
    let outcomes = CompetingOutcomes::new(recorded.time, recorded.causes).unwrap();
    let model = CauseSpecific::fit(&CoxSettings::default(), &covariates, &outcomes).unwrap();
    for (cause, incidence) in recorded.incidence {
        let coefficients = &model.models()[cause as usize - 1].coefficients;
        for (found, expected) in coefficients.iter().zip(&recorded.coefficients[&cause]) {
            assert!((found.value - expected).abs() < 1e-7, "{} {expected}", found.value);
        }
        let curves = model.incidence_curves(&covariates, cause, &recorded.grid).unwrap().incidence();
        for (found, expected) in curves.iter().zip(incidence.iter().flatten()) {
            assert!((found - expected).abs() < 1e-7, "cause {cause}: {found} {expected}");
        }
    }
}

#[test]
fn one_cause_alone_has_the_incidence_of_its_model() {
    let outcomes = CompetingOutcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![1, 0, 1, 1]).unwrap();
    let covariates = Array2::zeros((4, 1));
    let model = CauseSpecific::fit(&Exponential, &covariates, &outcomes).unwrap();
    let grid = [1.0, 3.0, 4.0];
    let own = model.incidence_curves(&covariates, 1, &grid).unwrap().incidence();
    let survival = model.models()[0].survival_curves(&covariates, &grid).unwrap();
    for k in 0..grid.len() {
        assert!((own[[0, k]] - 1.0 + survival.survival()[[0, k]]).abs() < 1e-12);
    }
}

#[test]
fn covariates_without_an_estimate_are_named() {
    let outcomes = CompetingOutcomes::new(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], vec![1, 2, 1, 0, 1, 2]).unwrap();
    let fit = |covariates: Array2<f64>| FineGraySettings::default().fit(&covariates, &outcomes).unwrap_err();
    let constant = fit(array![[1.0, 2.0], [2.0, 2.0], [3.0, 2.0], [1.0, 2.0], [2.0, 2.0], [5.0, 2.0]]);
    assert!(matches!(&constant, ClassicalError::Constant { column, n: 6 } if column.place == 1), "{constant}");
    let named = constant.with_names(&["age".to_owned(), "sex".to_owned()]);
    assert_eq!(named.to_string(), "covariate \"sex\" is the same in all 6 samples, expected one that varies");
    let twice = fit(array![[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [1.0, 2.0], [2.0, 4.0], [5.0, 10.0]]);
    assert!(matches!(&twice, ClassicalError::Collinear { column, .. } if column.place == 1), "{twice}");
    // Samples with 1 have cause 1; samples with 0 never have it.
    let separates = fit(array![[1.0], [0.0], [1.0], [0.0], [1.0], [0.0]]);
    assert!(matches!(separates, ClassicalError::Separates { .. }), "{separates}");
    assert!(matches!(fit(array![[1.0], [0.0]]), ClassicalError::Length { found: 2, expected: 6 }));
    let setting = |settings: FineGraySettings| settings.fit(&Array2::zeros((6, 1)), &outcomes).unwrap_err();
    let none = setting(FineGraySettings { cause: 0, ..FineGraySettings::default() });
    assert_eq!(none.to_string(), "cause is 0, expected at least 1");
    let unknown = setting(FineGraySettings { cause: 3, ..FineGraySettings::default() });
    assert_eq!(unknown, ClassicalError::Metric(MetricError::UnknownCause { cause: 3, n_causes: 2 }));
}

#[test]
fn with_a_covariate_without_effect_both_models_are_near_aalen_johansen() {
    let (_, outcomes) = simulated(2000, 0.0, 4.0, 9);
    let covariates = Array2::from_shape_fn((2000, 1), |(row, _)| f64::from(u8::from(row % 4 < 2)));
    let curve = AalenJohansen::fit(&outcomes, 1, IncidenceVariance::Delta).unwrap();
    let model = FineGraySettings::default().fit(&covariates, &outcomes).unwrap();
    let middle = array![[0.5]];
    let grid = [0.3, 1.0, 2.5];
    let found = model.incidence_curves(&middle, &grid).unwrap().incidence();
    for (k, t) in grid.into_iter().enumerate() {
        assert!((found[[0, k]] - curve.at(t)).abs() < 2e-3, "{} {}", found[[0, k]], curve.at(t));
    }
}
