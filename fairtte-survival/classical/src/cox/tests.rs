//! Recorded values of R, lifelines and scikit-survival, and definitions written out.

#![expect(clippy::unwrap_used, reason = "a value that must exist and does not fails the test")]

use std::path::Path;

use approx::assert_relative_eq;
use fairtte_metrics::{Outcomes, SubjectId};
use ndarray::{Array1, Array2, Axis, concatenate};
use serde_json::Value;

use super::newton::Concave as _;
use super::ordered::Ordered;
use super::samples::Layout;
use super::score_residuals::score_residuals;
use super::*;
use crate::{ClassicalError, SurvivalEstimator as _, SurvivalModel as _};

pub(super) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|cell| cell.as_f64().unwrap()).collect()
}

pub(super) fn matrix(value: &Value) -> Array2<f64> {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(numbers).collect();
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(row, column)| rows[row][column])
}

/// The recorded samples with the values of `tests/golden/cox.py`.
pub(super) struct Golden {
    pub(super) values: Value,
    pub(super) x: Array2<f64>,
    pub(super) names: Vec<String>,
}

pub(super) fn golden() -> Golden {
    let values: Value = serde_json::from_str(include_str!("../../tests/golden/cox.json")).unwrap();
    let names = values["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    Golden { x: matrix(&values["x"]), names, values }
}

impl Golden {
    /// Outcomes with the times `tied` or `distinct`.
    pub(super) fn outcomes(&self, times: &str) -> Outcomes {
        let event = self.values["event"].as_array().unwrap().iter().map(|event| event.as_bool().unwrap()).collect();
        Outcomes::new(numbers(&self.values[times]), event).unwrap()
    }

    /// Covariates of mean 0 and standard deviation 1.
    pub(super) fn standardised(&self) -> Array2<f64> {
        (&self.x - &self.x.mean_axis(Axis(0)).unwrap()) / &self.x.std_axis(Axis(0), 0.0)
    }

    fn with_stratum(&self) -> (Array2<f64>, Vec<String>) {
        let stratum = Array1::from_vec(numbers(&self.values["stratum"])).insert_axis(Axis(1));
        let names = ["ward".to_owned()].into_iter().chain(self.names.clone()).collect();
        (concatenate![Axis(1), stratum, self.x], names)
    }

    fn subjects(&self) -> Vec<SubjectId> {
        numbers(&self.values["subject"]).iter().map(|number| SubjectId::new(number.to_string())).collect()
    }
}

fn fit(settings: &CoxSettings, x: &Array2<f64>, outcomes: &Outcomes) -> CoxModel {
    settings.fit(x, outcomes).unwrap()
}

pub(super) fn assert_close(found: impl IntoIterator<Item = f64>, expected: &[f64], tolerance: f64) {
    let found: Vec<f64> = found.into_iter().collect();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= tolerance * (1.0 + expected.abs()), "{found} {expected}");
    }
}

pub(super) fn assert_recorded(terms: &[CoxCoefficient], recorded: &Value, tolerance: f64) {
    assert_close(terms.iter().map(|term| term.value), &numbers(&recorded["coefficients"]), tolerance);
    assert_close(terms.iter().map(|term| term.standard_error.unwrap()), &numbers(&recorded["errors"]), tolerance);
}

/// Values of R `coxph` and `survfit` on three published data sets, which are not in the repository.
#[test]
fn coefficients_errors_likelihoods_and_baselines_are_those_of_r() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden/t_cox.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: {} is absent", path.display());
        return;
    };
    let recorded: Value = serde_json::from_str(&text).unwrap();
    for case in recorded["cases"].as_array().unwrap() {
        let x = matrix(&case["X"]);
        let event = case["event"].as_array().unwrap().iter();
        let event = event.map(|event| event.as_bool().unwrap_or_else(|| event.as_f64() == Some(1.0))).collect();
        let outcomes = Outcomes::new(numbers(&case["time"]), event).unwrap();
        for (ties, name) in [(CoxTies::Efron, "R_efron"), (CoxTies::Breslow, "R_breslow")] {
            let expected = &case["outputs"][name];
            let model = fit(&CoxSettings { ties, ..CoxSettings::default() }, &x, &outcomes);
            for (term, expected) in model.coefficients.iter().zip(numbers(&expected["coef"])) {
                assert_relative_eq!(term.value, expected, max_relative = 1e-8);
            }
            for (term, expected) in model.coefficients.iter().zip(numbers(&expected["se"])) {
                assert_relative_eq!(term.standard_error.unwrap(), expected, max_relative = 1e-8);
            }
            let likelihoods = [model.log_likelihood_null, model.log_likelihood];
            assert_close(likelihoods, &numbers(&expected["loglik"]), 1e-12);
            // R's baseline is that of covariates 0, at all times.
            let means: f64 = model.coefficients.iter().map(|term| term.value * term.mean).sum();
            let times = numbers(&expected["baseline_time"]);
            let at = model.baselines[0].at(&times).into_iter().map(|hazard| hazard * (-means).exp());
            for (found, expected) in at.zip(numbers(&expected["baseline_cumhaz"])) {
                assert_relative_eq!(found, expected, max_relative = 1e-8);
            }
        }
    }
}

/// The maximum along the linear predictor of R's coefficients is R's: its coefficient is 1.
#[test]
fn a_regression_on_the_predictor_of_r_has_the_coefficient_1() {
    let text = include_str!("../../../tests/golden/cox_r.json");
    let recorded: Value = serde_json::from_str(text).unwrap();
    for case in recorded["cases"].as_array().unwrap() {
        let ties = if case["ties"] == "efron" { CoxTies::Efron } else { CoxTies::Breslow };
        let event = case["event"].as_array().unwrap().iter();
        let event = event.map(|event| event.as_bool().unwrap_or_else(|| event.as_f64() == Some(1.0))).collect();
        let outcomes = Outcomes::new(numbers(&case["time"]), event).unwrap();
        let predictors = Array1::from_vec(numbers(&case["outputs"])).insert_axis(Axis(1));
        let model = fit(&CoxSettings { ties, ..CoxSettings::default() }, &predictors, &outcomes);
        assert_relative_eq!(model.coefficients[0].value, 1.0, max_relative = 1e-8);
    }
}

#[test]
fn efron_ties_strata_and_penalties_are_those_of_lifelines_and_scikit_survival() {
    let golden = golden();
    let (values, tied) = (&golden.values, golden.outcomes("tied"));
    let efron = fit(&CoxSettings::default(), &golden.x, &tied);
    assert_recorded(&efron.coefficients, &values["efron"], 1e-10);
    assert_relative_eq!(
        efron.log_likelihood,
        values["efron"]["log-likelihood"].as_f64().unwrap(),
        max_relative = 1e-12
    );
    let ratio = efron.likelihood_ratio_test().unwrap();
    assert_relative_eq!(ratio.statistic, values["likelihood-ratio"].as_f64().unwrap(), max_relative = 1e-10);
    assert_eq!(ratio.degrees_of_freedom, 4);

    let (x, names) = golden.with_stratum();
    let settings = CoxSettings { strata: vec!["ward".to_owned()], ..CoxSettings::default() };
    let strata = settings.fit_samples(&CoxSamples::new(&x, &tied).named(&names)).unwrap();
    assert_recorded(&strata.coefficients, &values["strata"], 1e-10);
    assert_eq!(strata.coefficients[0].name, "a");

    // lifelines divides the likelihood by n and the columns by their deviations with n - 1.
    let n = tied.n() as f64;
    let recorded = &values["penalised"];
    let ridge = recorded["penalizer"].as_f64().unwrap() * n * n / (n - 1.0);
    let penalised = fit(&CoxSettings { ridge, ..CoxSettings::default() }, &golden.x, &tied);
    assert_recorded(&penalised.coefficients, recorded, 1e-8);
    assert!(penalised.likelihood_ratio_test().is_none() && penalised.wald_test().is_none());

    for recorded in values["ridge"].as_array().unwrap() {
        let approximation = if recorded["ties"] == "efron" { CoxTies::Efron } else { CoxTies::Breslow };
        let ridge = recorded["alpha"].as_f64().unwrap();
        let settings = CoxSettings { ties: approximation, ridge, ..CoxSettings::default() };
        let model = fit(&settings, &golden.standardised(), &tied);
        assert_close(model.coefficients.iter().map(|term| term.value), &numbers(&recorded["coefficients"]), 1e-8);
    }
}

/// lifelines' sandwich knows no ties, so times are distinct.
#[test]
fn robust_errors_are_those_of_lifelines() {
    let golden = golden();
    let (values, distinct) = (&golden.values, golden.outcomes("distinct"));
    let plain = fit(&CoxSettings::default(), &golden.x, &distinct);
    assert_recorded(&plain.coefficients, &values["distinct-plain"], 1e-10);
    let settings = CoxSettings { errors: CoxErrors::Robust, ..CoxSettings::default() };
    let robust = fit(&settings, &golden.x, &distinct);
    assert_recorded(&robust.coefficients, &values["robust"], 1e-10);
    let subjects = golden.subjects();
    let samples = CoxSamples::new(&golden.x, &distinct).of_subjects(&subjects);
    assert_recorded(&settings.fit_samples(&samples).unwrap().coefficients, &values["clustered"], 1e-10);
    let (x, names) = golden.with_stratum();
    let strata = CoxSettings { strata: vec!["ward".to_owned()], ..settings };
    let strata = strata.fit_samples(&CoxSamples::new(&x, &distinct).named(&names)).unwrap();
    assert_recorded(&strata.coefficients, &values["robust-strata"], 1e-10);
}

/// The definition, by loops over all samples, with ties in the middle and in strata.
#[test]
fn score_residuals_with_ties_follow_their_definition() {
    let golden = golden();
    let (outcomes, x) = (golden.outcomes("tied"), golden.standardised());
    let stratum: Vec<usize> = (0..outcomes.n()).map(|row| row % 2).collect();
    let b = Array1::from_vec(vec![0.3, -0.2, 0.5, 0.1]);
    let risk = x.dot(&b).mapv(f64::exp);
    for ties in [CoxTies::Efron, CoxTies::Breslow] {
        let ordered = Ordered::new((outcomes.time(), outcomes.event()), &stratum, &x, ties);
        let sweep = ordered.sweep(&ordered.x.dot(&b), &ordered.all());
        let steps = ordered.steps(&sweep, &ordered.all());
        let found = score_residuals(&ordered, &sweep, &steps);
        for (row, found) in ordered.rows.iter().zip(found.rows()) {
            let mut expected = Array1::<f64>::zeros(4);
            let is_tied = |a: usize, b: usize| {
                outcomes.event()[b]
                    && stratum[a] == stratum[b]
                    && outcomes.time()[a].total_cmp(&outcomes.time()[b]).is_eq()
            };
            for event in (0..outcomes.n()).filter(|event| outcomes.event()[*event] && stratum[*event] == stratum[*row])
            {
                // Each of d tied events stands for one of the d steps.
                let d = (0..outcomes.n()).filter(|other| is_tied(event, *other)).count();
                let k = (0..event).filter(|other| is_tied(event, *other)).count();
                let share = if ties == CoxTies::Efron { k as f64 / d as f64 } else { 0.0 };
                let weight = |other: usize| {
                    let at_risk = stratum[other] == stratum[event] && outcomes.time()[other] >= outcomes.time()[event];
                    let left = if is_tied(event, other) { 1.0 - share } else { 1.0 };
                    if at_risk { left * risk[other] } else { 0.0 }
                };
                let total: f64 = (0..outcomes.n()).map(weight).sum();
                let mut mean = Array1::<f64>::zeros(4);
                (0..outcomes.n()).for_each(|other| mean.scaled_add(weight(other) / total, &x.row(other)));
                let own = &x.row(*row) - &mean;
                expected.scaled_add(-weight(*row) / total, &own);
                if is_tied(event, *row) && outcomes.event()[*row] {
                    expected.scaled_add(1.0 / d as f64, &own);
                }
            }
            assert_close(found.iter().copied(), expected.as_slice().unwrap(), 1e-12);
        }
        let gradient = ordered.derivatives(&b).gradient;
        assert_close(found.sum_axis(Axis(0)), gradient.as_slice().unwrap(), 1e-11);
    }
}

#[test]
fn gradient_and_information_are_the_slopes_of_the_likelihood() {
    let golden = golden();
    let (outcomes, x) = (golden.outcomes("tied"), golden.standardised());
    let stratum: Vec<usize> = (0..outcomes.n()).map(|row| row % 3).collect();
    for ties in [CoxTies::Efron, CoxTies::Breslow] {
        let ordered = Ordered::new((outcomes.time(), outcomes.event()), &stratum, &x, ties);
        let b = Array1::from_vec(vec![0.4, -0.3, 0.2, 0.6]);
        let here = ordered.derivatives(&b);
        for place in 0..4 {
            let at = |step: f64| {
                let mut moved = b.clone();
                moved[place] += step;
                ordered.derivatives(&moved)
            };
            let (up, down) = (at(1e-5), at(-1e-5));
            assert_relative_eq!(
                (up.value - down.value) / 2e-5,
                here.gradient[place],
                max_relative = 1e-6,
                epsilon = 1e-6
            );
            let slope = (&up.gradient - &down.gradient) / -2e-5;
            assert_close(slope, &here.information.row(place).to_vec(), 1e-6);
        }
    }
}

#[test]
fn the_score_test_of_two_groups_is_the_log_rank_test_and_all_three_tests_agree_far_from_nothing() {
    // Without ties the score test of one indicator is the log-rank test: observed minus expected, squared, over its variance.
    let golden = golden();
    let outcomes = golden.outcomes("distinct");
    let group = golden.x.column(2).to_owned().insert_axis(Axis(1));
    let model = fit(&CoxSettings::default(), &group, &outcomes);
    let (mut observed_minus_expected, mut variance) = (0.0, 0.0);
    for row in (0..outcomes.n()).filter(|row| outcomes.event()[*row]) {
        let at_risk: Vec<usize> = (0..outcomes.n()).filter(|k| outcomes.time()[*k] >= outcomes.time()[row]).collect();
        let share = at_risk.iter().map(|k| group[[*k, 0]]).sum::<f64>() / at_risk.len() as f64;
        observed_minus_expected += group[[row, 0]] - share;
        variance += share * (1.0 - share);
    }
    let score = model.score_test().unwrap();
    assert_relative_eq!(score.statistic, observed_minus_expected.powi(2) / variance, max_relative = 1e-10);
    let wald = model.wald_test().unwrap();
    assert_relative_eq!(wald.statistic, model.coefficients[0].wald_test().unwrap().statistic, max_relative = 1e-10);
    // Of several coefficients: b' V^-1 b, by solving V y = b.
    let model = fit(&CoxSettings::default(), &golden.x, &outcomes);
    let b: Array1<f64> = model.coefficients.iter().map(|term| term.value).collect();
    let y = fairtte_metrics::linear_algebra::cholesky_solve(model.covariance(), &b).unwrap();
    assert_relative_eq!(model.wald_test().unwrap().statistic, b.dot(&y), max_relative = 1e-9);
    let statistics = [model.wald_test(), model.score_test(), model.likelihood_ratio_test()];
    for test in statistics.map(Option::unwrap) {
        assert!(test.statistic > 15.0 && test.p_value < 0.01 && test.degrees_of_freedom == 4, "{test:?}");
    }
}

#[test]
fn schoenfeld_residuals_and_the_test_of_proportional_hazards_are_those_of_lifelines() {
    let golden = golden();
    let (values, tied) = (&golden.values, golden.outcomes("tied"));
    let model = fit(&CoxSettings::default(), &golden.x, &tied);
    let samples = CoxSamples::new(&golden.x, &tied);
    let found = model.schoenfeld_residuals(&samples).unwrap();
    // lifelines lists events by row.
    let mut by_row: Vec<usize> = (0..found.rows.len()).collect();
    by_row.sort_by_key(|place| found.rows[*place]);
    let (plain, scaled) = (matrix(&values["schoenfeld"]), matrix(&values["scaled-schoenfeld"]));
    for (expected, place) in by_row.iter().enumerate() {
        assert_close(found.residuals.row(*place).to_vec(), &plain.row(expected).to_vec(), 1e-8);
        let without: Vec<f64> = found
            .scaled
            .row(*place)
            .iter()
            .zip(&model.coefficients)
            .map(|(scaled, term)| scaled - term.value)
            .collect();
        assert_close(without, &scaled.row(expected).to_vec(), 1e-8);
    }
    let transforms = [
        (TimeTransform::Identity, "identity"),
        (TimeTransform::Log, "log"),
        (TimeTransform::Rank, "rank"),
        (TimeTransform::KaplanMeier, "km"),
    ];
    for (transform, name) in transforms {
        let test = model.proportionality_test(&samples, transform).unwrap();
        let statistics = test.covariates.iter().map(|covariate| covariate.test.statistic);
        assert_close(statistics, &numbers(&values["proportionality"][name]), 1e-8);
    }
    let distinct = golden.outcomes("distinct");
    let plain = fit(&CoxSettings::default(), &golden.x, &distinct);
    let test = plain.proportionality_test(&CoxSamples::new(&golden.x, &distinct), TimeTransform::Rank).unwrap();
    let statistics = test.covariates.iter().map(|covariate| covariate.test.statistic);
    assert_close(statistics, &numbers(&values["proportionality"]["rank-distinct"]), 1e-8);
}

#[test]
fn the_global_test_follows_its_definition_and_the_correlation_has_the_sign_of_the_drift() {
    let golden = golden();
    let tied = golden.outcomes("tied");
    let samples = CoxSamples::new(&golden.x, &tied);
    let model = fit(&CoxSettings::default(), &golden.x, &tied);
    let found = model.schoenfeld_residuals(&samples).unwrap();
    let test = model.proportionality_test(&samples, TimeTransform::Identity).unwrap();
    let mean = found.times.iter().sum::<f64>() / found.times.len() as f64;
    let centred: Array1<f64> = found.times.iter().map(|time| time - mean).collect();
    let along = centred.dot(&found.residuals);
    let expected = along.dot(&model.covariance().dot(&along)) * centred.len() as f64 / centred.dot(&centred);
    assert_relative_eq!(test.global.statistic, expected, max_relative = 1e-9);
    assert_eq!(test.global.degrees_of_freedom, 4);
    for (place, covariate) in test.covariates.iter().enumerate() {
        let scaled = found.scaled.column(place);
        let spread = scaled.mapv(|value| (value - scaled.mean().unwrap()).powi(2)).sum();
        let expected = centred.dot(&scaled) / (spread * centred.dot(&centred)).sqrt();
        assert_relative_eq!(covariate.correlation.unwrap(), expected, max_relative = 1e-9);
    }
    let one = golden.x.column(0).to_owned().insert_axis(Axis(1));
    let model = fit(&CoxSettings::default(), &one, &tied);
    let test = model.proportionality_test(&CoxSamples::new(&one, &tied), TimeTransform::Identity).unwrap();
    assert_relative_eq!(test.global.statistic, test.covariates[0].test.statistic, max_relative = 1e-12);
}

#[test]
fn every_stratum_has_its_own_baseline_and_a_new_one_is_refused() {
    let golden = golden();
    let (x, names) = golden.with_stratum();
    let tied = golden.outcomes("tied");
    let settings = CoxSettings { strata: vec!["0".to_owned()], ..CoxSettings::default() };
    let model = fit(&settings, &x, &tied);
    assert_eq!(model.baselines.len(), 3);
    // Breslow's increments by hand, with the risks of the model.
    let breslow = fit(&CoxSettings { ties: CoxTies::Breslow, ..settings }, &x, &tied);
    let risk: Vec<f64> = breslow.risk(&x).unwrap().into_iter().map(f64::exp).collect();
    let is_in = |row: &usize| (x[[*row, 0]] - 1.0).abs() < 1e-12;
    let baseline = breslow.baselines.iter().find(|baseline| baseline.stratum == [1.0]).unwrap();
    let mut hazard = 0.0;
    for (time, found) in baseline.times.iter().zip(&baseline.cumulative_hazard) {
        let events =
            (0..tied.n()).filter(is_in).filter(|row| tied.event()[*row] && (tied.time()[*row] - time).abs() < 1e-9);
        let at_risk: f64 =
            (0..tied.n()).filter(is_in).filter(|row| tied.time()[*row] >= *time).map(|row| risk[row]).sum();
        hazard += events.count() as f64 / at_risk;
        assert_relative_eq!(*found, hazard, max_relative = 1e-12);
    }
    let curves = model.survival_curves(&x, &[2.0, 5.0]).unwrap();
    let row = (0..tied.n()).find(is_in).unwrap();
    let baseline = model.baselines.iter().find(|baseline| baseline.stratum == [1.0]).unwrap();
    let expected = (-baseline.at(&[5.0])[0] * model.risk(&x).unwrap()[row].exp()).exp();
    assert_relative_eq!(curves.survival()[[row, 1]], expected, max_relative = 1e-12);
    let mut other = x.clone();
    other[[4, 0]] = 7.0;
    assert_eq!(
        model.survival_curves(&other, &[1.0]).unwrap_err().to_string(),
        "row 4 is in the stratum 0=7, expected one with events in the fit: 0=0; 0=1; 0=2"
    );
    let unknown = CoxSettings { strata: vec!["hall".to_owned()], ..CoxSettings::default() };
    assert_eq!(
        unknown.fit_samples(&CoxSamples::new(&x, &tied).named(&names)).unwrap_err().to_string(),
        "strata names the covariate \"hall\", expected one of: ward, a, b, c, d"
    );
    let layout = Layout::new(&x, vec![0]);
    assert_eq!((layout.used, layout.keys.len()), (vec![1, 2, 3, 4], 3));
}

#[test]
fn what_cannot_be_fitted_is_refused_by_name_and_a_penalty_lifts_it() {
    let golden = golden();
    let tied = golden.outcomes("tied");
    let refuse = |x: &Array2<f64>, settings: &CoxSettings| settings.fit(x, &tied).unwrap_err().to_string();
    let plain = CoxSettings::default();
    let with = |column: Array1<f64>| concatenate![Axis(1), golden.x, column.insert_axis(Axis(1))];
    let sum = with(&golden.x.column(1) * 2.0 - golden.x.column(3));
    assert_eq!(refuse(&sum, &plain), "covariate 4 is a linear combination of others (1, 3): leave one of them out");
    let ridge = CoxSettings { ridge: 1.0, ..CoxSettings::default() };
    assert!(ridge.fit(&sum, &tied).is_ok());
    assert_eq!(
        refuse(&with(Array1::ones(tied.n())), &ridge),
        "covariate 4 is the same in all 90 samples, expected one that varies"
    );
    // Neither of two columns separates alone: their difference is the order of the events.
    let noise: Array1<f64> = (0..tied.n()).map(|row| (row as f64 * 1.3).sin() * 3.0).collect();
    let early: Array1<f64> =
        tied.time().iter().zip(tied.event()).map(|(t, e)| -t - 0.4 * f64::from(u8::from(!e))).collect();
    let together = concatenate![Axis(1), (&noise + &early).insert_axis(Axis(1)), noise.clone().insert_axis(Axis(1))];
    let message = refuse(&together, &plain);
    assert!(message.starts_with("covariates 0, 1 together separate the events from the other samples"), "{message}");
    // Only samples that leave before the first event differ.
    let first = tied.time().iter().zip(tied.event()).filter(|(_, event)| **event).map(|(time, _)| *time);
    let first = first.fold(f64::MAX, f64::min);
    let times = tied.time().iter().map(|time| time + 1.0).chain([first]).collect();
    let events = tied.event().iter().copied().chain([false]).collect();
    let more = Outcomes::new(times, events).unwrap();
    let outside = Array2::from_shape_fn((91, 2), |(row, column)| match column {
        0 => golden.x[[row.min(89), 0]],
        _ => f64::from(u8::from(row == 90)),
    });
    let error = plain.fit(&outside, &more).unwrap_err();
    assert!(matches!(&error, ClassicalError::NotAtRisk { column } if column.place == 1), "{error}");
    let few = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, false, true]).unwrap();
    let error = plain.fit(&ndarray::array![[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [1.0, 1.0, 5.0]], &few).unwrap_err();
    assert_eq!(error.to_string(), "number of events: 2, expected at least 3, the number of coefficients");
    for ridge in [-1.0, f64::NAN, f64::INFINITY] {
        let error = CoxSettings { ridge, ..CoxSettings::default() }.fit(&golden.x, &tied).unwrap_err();
        assert_eq!(error.to_string(), format!("ridge is {ridge}, expected a number >= 0"));
    }
    let huge = golden.x.mapv(|value| value * 1e200);
    assert!(matches!(plain.fit(&huge, &tied).unwrap_err(), ClassicalError::TooLarge { .. }));
}

#[test]
fn settings_and_models_survive_serialisation_and_misspelt_keys_are_refused() {
    let settings: CoxSettings = serde_json::from_str(r#"{"ties": "breslow", "errors": "robust"}"#).unwrap();
    assert_eq!((settings.ties, settings.errors), (CoxTies::Breslow, CoxErrors::Robust));
    assert!(serde_json::from_str::<CoxSettings>(r#"{"tie": "breslow"}"#).is_err());
    let golden = golden();
    let model = fit(&settings, &golden.x, &golden.outcomes("tied"));
    let text = serde_json::to_string(&model).unwrap();
    assert_eq!(serde_json::from_str::<CoxModel>(&text).unwrap(), model);
}
