#![expect(clippy::unwrap_used, reason = "a value that must exist and does not fails the test")]

use approx::assert_relative_eq;
use serde_json::Value;

use super::likelihood::VaryingLikelihood;
use super::*;
use crate::cox::newton::Concave as _;
use crate::cox::tests::{assert_recorded, golden, numbers, of_r};
use crate::{CoxSettings, SurvivalModel as _};

fn of(function: TimeFunction) -> CoxTimeVaryingSettings {
    CoxTimeVaryingSettings { function, ..CoxTimeVaryingSettings::default() }
}

/// Rows split at event times: `tests/golden/cox.py`.
#[test]
fn coefficients_errors_and_likelihoods_are_those_of_lifelines_on_split_rows() {
    let golden = golden();
    let recorded = &golden.values["time-varying"];
    let check = |settings: &CoxTimeVaryingSettings, times: &str, expected: &Value| {
        let outcomes = golden.outcomes(times);
        let samples = CoxSamples::new(&golden.x, &outcomes).named(&golden.names);
        let model = settings.fit_samples(&samples).unwrap();
        assert_recorded(&model.coefficients, expected, 1e-8);
        assert_relative_eq!(model.log_likelihood, expected["log-likelihood"].as_f64().unwrap(), max_relative = 1e-11);
        model
    };
    check(&of(TimeFunction::Identity), "tied", &recorded["identity"]);
    check(&of(TimeFunction::Log), "distinct", &recorded["log"]);
    let steps = check(&of(TimeFunction::Steps(numbers(&recorded["knots"]))), "tied", &recorded["steps"]);
    let names: Vec<&str> = steps.coefficients.iter().map(|term| term.name.as_str()).collect();
    assert_eq!(names[3..7], ["d", "a * (t > 3)", "a * (t > 6)", "b * (t > 3)"]);
    let only = CoxTimeVaryingSettings { varying: Some(vec!["b".to_owned()]), ..of(TimeFunction::Identity) };
    assert_eq!(check(&only, "tied", &recorded["only-b"]).coefficients[4].name, "b * t");
}

/// `coxph(.., tt =)`.
#[test]
fn coefficients_and_errors_are_those_of_r() {
    let (golden, recorded) = (golden(), of_r());
    for (function, times, name) in
        [(TimeFunction::Identity, "tied", "varying-identity"), (TimeFunction::Log, "distinct", "varying-log")]
    {
        let model = of(function).fit(&golden.x, &golden.outcomes(times)).unwrap();
        assert_recorded(&model.coefficients, &recorded["cox"][name], 1e-8);
    }
}

#[test]
fn gradient_and_information_are_the_slopes_of_the_likelihood() {
    let golden = golden();
    let outcomes = golden.outcomes("tied");
    let layout = Layout::new(&golden.x, Vec::new());
    for (function, ties) in [
        (TimeFunction::Identity, CoxTies::Efron),
        (TimeFunction::Log, CoxTies::Breslow),
        (TimeFunction::Steps(vec![2.0, 5.0]), CoxTies::Efron),
    ] {
        let settings = CoxTimeVaryingSettings { ties, ..of(function) };
        let prepared = Prepared::new(&golden.x, &outcomes, &layout, ties).unwrap();
        let (terms, _) = settings.terms(&golden.names, &[0, 2]);
        let scale = settings.scale(&outcomes).unwrap();
        let likelihood = VaryingLikelihood::new(&prepared.ordered, &settings.function, &scale, &terms);
        let b = Array1::from_shape_fn(terms.len(), |k| 0.3 * (1.7 * k as f64).sin());
        let here = likelihood.derivatives(&b);
        for place in 0..terms.len() {
            let at = |step: f64| {
                let mut moved = b.clone();
                moved[place] += step;
                likelihood.derivatives(&moved)
            };
            let (up, down) = (at(1e-5), at(-1e-5));
            let slope = (up.value - down.value) / 2e-5;
            assert_relative_eq!(slope, here.gradient[place], max_relative = 1e-6, epsilon = 1e-6);
            for other in 0..terms.len() {
                let slope = (up.gradient[other] - down.gradient[other]) / -2e-5;
                assert_relative_eq!(slope, here.information[[place, other]], max_relative = 1e-5, epsilon = 1e-5);
            }
        }
    }
}

/// The cumulative hazard by loops over event times and samples at risk, Breslow's ties.
#[test]
fn curves_and_risks_follow_their_definition() {
    let golden = golden();
    let outcomes = golden.outcomes("tied");
    for function in [TimeFunction::Identity, TimeFunction::Steps(vec![3.0, 6.0])] {
        let settings = CoxTimeVaryingSettings { ties: CoxTies::Breslow, ..of(function) };
        let model = settings.fit(&golden.x, &outcomes).unwrap();
        let eta = |row: usize, time: f64| -> f64 {
            let at = model.coefficients_at(time).unwrap();
            at.iter().zip(golden.x.row(row)).map(|(term, x)| term.value * (x - term.mean)).sum()
        };
        let grid = [0.5, 1.0, 4.5, 9.0];
        let curves = model.survival_curves(&golden.x, &grid).unwrap();
        let risks = model.risk(&golden.x).unwrap();
        for row in [0, 7, 40] {
            let hazard = |until: f64| -> f64 {
                let times = model.times.iter().filter(|time| **time <= until);
                let of_time = |time: &f64| {
                    let is_event = |k: &usize| outcomes.event()[*k] && (outcomes.time()[*k] - time).abs() < 1e-9;
                    let d = (0..90).filter(is_event).count() as f64;
                    let at_risk = (0..90).filter(|k| outcomes.time()[*k] >= *time);
                    d * eta(row, *time).exp() / at_risk.map(|k| eta(k, *time).exp()).sum::<f64>()
                };
                times.map(of_time).sum()
            };
            for (place, time) in grid.iter().enumerate() {
                assert_relative_eq!(curves.survival()[[row, place]], (-hazard(*time)).exp(), max_relative = 1e-9);
            }
            assert_relative_eq!(risks[row], hazard(9.0).ln(), max_relative = 1e-9);
        }
    }
}

#[test]
fn where_no_coefficient_may_change_it_is_the_cox_regression() {
    let golden = golden();
    let outcomes = golden.outcomes("tied");
    let settings = CoxTimeVaryingSettings { varying: Some(Vec::new()), ridge: 2.0, ..of(TimeFunction::Identity) };
    let model = settings.fit(&golden.x, &outcomes).unwrap();
    let cox = CoxSettings { ridge: 2.0, ..CoxSettings::default() }.fit(&golden.x, &outcomes).unwrap();
    for (found, expected) in model.coefficients.iter().zip(&cox.coefficients) {
        assert_relative_eq!(found.value, expected.value, max_relative = 1e-9);
        assert_relative_eq!(found.standard_error.unwrap(), expected.standard_error.unwrap(), max_relative = 1e-9);
    }
    let grid = [0.0, 1.0, 3.5, 20.0];
    let (found, expected) =
        (model.survival_curves(&golden.x, &grid).unwrap(), cox.survival_curves(&golden.x, &grid).unwrap());
    for (found, expected) in found.survival().iter().zip(expected.survival()) {
        assert_relative_eq!(*found, *expected, max_relative = 1e-9);
    }
    assert!(model.time_variation_test().is_none());
    let (risk, linear) = (model.risk(&golden.x).unwrap(), cox.risk(&golden.x).unwrap());
    assert_relative_eq!(risk[3] - risk[8], linear[3] - linear[8], max_relative = 1e-9);
}

/// Made-up samples whose log hazard ratio is 1.5 until time 1 and -0.5 after it.
#[test]
fn a_hazard_ratio_that_changes_is_found_with_its_errors() {
    let n = 4000;
    let x = Array2::from_shape_fn((n, 1), |(row, _)| f64::from(u8::from(row % 2 == 0)));
    let time = |row: usize| {
        let hazard = -(1.0 - ((row / 2) as f64 + 0.5) / (n / 2) as f64).ln();
        let (early, late) =
            if row.is_multiple_of(2) { (1.5_f64.exp() * 0.3, (-0.5_f64).exp() * 0.3) } else { (0.3, 0.3) };
        if hazard < early { hazard / early } else { 1.0 + (hazard - early) / late }
    };
    let times: Vec<f64> = (0..n).map(time).collect();
    let outcomes = fairtte_metrics::Outcomes::new(times, vec![true; n]).unwrap();
    let model = of(TimeFunction::Steps(vec![1.0])).fit(&x, &outcomes).unwrap();
    let at = |time: f64| model.coefficients_at(time).unwrap().remove(0);
    assert!((at(0.5).value - 1.5).abs() < 0.05 && (at(1.0).value - 1.5).abs() < 0.05, "{:?}", at(0.5));
    assert!((at(1.5).value + 0.5).abs() < 0.05, "{:?}", at(1.5));
    let (base, change) = (&model.coefficients[0], &model.coefficients[1]);
    assert_relative_eq!(at(0.5).standard_error.unwrap(), base.standard_error.unwrap(), max_relative = 1e-12);
    // Early and late are separate samples at risk, so that variances add up.
    let variance = change.standard_error.unwrap().powi(2) - base.standard_error.unwrap().powi(2);
    assert_relative_eq!(at(2.0).standard_error.unwrap(), variance.sqrt(), max_relative = 1e-8);
    let test = model.time_variation_test().unwrap();
    let expected = (change.value / change.standard_error.unwrap()).powi(2);
    assert_relative_eq!(test.statistic, expected, max_relative = 1e-10);
    assert!(model.coefficients_at(-1.0).is_err());
}

/// Where time begins changes no order of events: b + c t is b + 1000 c + c (t - 1000).
#[test]
fn times_far_from_0_have_the_coefficients_of_the_same_times_near_it_and_separation_is_still_found() {
    let golden = golden();
    let near = golden.outcomes("distinct");
    let later = |outcomes: &Outcomes| {
        let times = outcomes.time().iter().map(|time| time + 1000.0).collect();
        Outcomes::new(times, outcomes.event().to_vec()).unwrap()
    };
    let settings = of(TimeFunction::Identity);
    let expected = settings.fit(&golden.x, &near).unwrap();
    let found = settings.fit(&golden.x, &later(&near)).unwrap();
    assert_relative_eq!(found.log_likelihood, expected.log_likelihood, max_relative = 1e-9);
    for time in [1.0, 6.0, 12.0] {
        let (found, expected) =
            (found.coefficients_at(1000.0 + time).unwrap(), expected.coefficients_at(time).unwrap());
        for (found, expected) in found.iter().zip(&expected) {
            assert_relative_eq!(found.value, expected.value, max_relative = 1e-6, epsilon = 1e-7);
            let [error, known] = [found, expected].map(|term| term.standard_error.unwrap());
            assert_relative_eq!(error, known, max_relative = 1e-6);
        }
    }
    // In standard deviations of its column the first coefficient is 94.
    let deviation = golden.x.std_axis(ndarray::Axis(0), 0.0)[0];
    assert_relative_eq!(found.coefficients[0].value * deviation, 94.194, max_relative = 1e-4);
    let order: Vec<f64> =
        near.time().iter().zip(near.event()).map(|(t, event)| -t - 0.4 * f64::from(u8::from(!event))).collect();
    let early = Array2::from_shape_fn((90, 1), |(row, _)| order[row]);
    for outcomes in [later(&near), near] {
        let error = settings.fit(&early, &outcomes).unwrap_err();
        assert!(matches!(error, ClassicalError::Separates { .. }), "{error}");
    }
}

#[test]
fn what_cannot_be_fitted_is_refused_by_name() {
    let golden = golden();
    let outcomes = golden.outcomes("tied");
    let refuse = |settings: &CoxTimeVaryingSettings| {
        let samples = CoxSamples::new(&golden.x, &outcomes).named(&golden.names);
        settings.fit_samples(&samples).unwrap_err().to_string()
    };
    let sentence = |value: &str, expected: &str| format!("function.steps is {value}, expected {expected}");
    let order = "at least one finite time, in ascending order";
    assert_eq!(refuse(&of(TimeFunction::Steps(vec![]))), sentence("[]", order));
    assert_eq!(refuse(&of(TimeFunction::Steps(vec![3.0, 2.0]))), sentence("[3.0, 2.0]", order));
    assert_eq!(
        refuse(&of(TimeFunction::Steps(vec![2.0, 9.0]))),
        sentence("9", "a time with events before and after it")
    );
    let unknown = CoxTimeVaryingSettings { varying: Some(vec!["e".to_owned()]), ..of(TimeFunction::Log) };
    assert_eq!(refuse(&unknown), "varying names the covariate \"e\", expected one of: a, b, c, d");
    // No event without c = 1 after the step.
    let late: Vec<bool> =
        (0..90).map(|row| outcomes.event()[row] && (outcomes.time()[row] < 6.5 || golden.x[[row, 2]] > 0.5)).collect();
    let separated = fairtte_metrics::Outcomes::new(outcomes.time().to_vec(), late).unwrap();
    let only = CoxTimeVaryingSettings { varying: Some(vec!["c".to_owned()]), ..of(TimeFunction::Steps(vec![6.0])) };
    let samples = CoxSamples::new(&golden.x, &separated).named(&golden.names);
    let message = only.fit_samples(&samples).unwrap_err().to_string();
    assert!(message.starts_with("covariate \"c * (t > 6)\" separates the events"), "{message}");
    let same = fairtte_metrics::Outcomes::new(vec![2.0; 90], outcomes.event().to_vec()).unwrap();
    let error = of(TimeFunction::Log).fit(&golden.x, &same).unwrap_err();
    assert_eq!(error.to_string(), "all events are at time 2, expected events at different times");
    assert!(serde_json::from_str::<CoxTimeVaryingSettings>(r#"{"function": {"steps": [1.0]}, "knots": 1}"#).is_err());
}
