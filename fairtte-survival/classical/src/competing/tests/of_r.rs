//! Values that R computes.

use super::*;

/// `tests/golden/r.R`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct OfR {
    fine_gray: std::collections::BTreeMap<String, Vec<Subdistribution>>,
    cause_specific: Vec<OfCause>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Subdistribution {
    coefficients: Vec<f64>,
    errors: Vec<f64>,
    log_likelihood: f64,
    log_likelihood_null: f64,
    times: Vec<f64>,
    incidence: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
struct OfCause {
    coefficients: Vec<f64>,
    incidence: Vec<Vec<f64>>,
}

fn of_r() -> (OfR, Recorded) {
    let people = serde_json::from_str(include_str!("../../../tests/golden/cause_specific.json")).unwrap();
    (serde_json::from_str(include_str!("../../../tests/golden/r.json")).unwrap(), people)
}

#[test]
fn coefficients_errors_likelihoods_and_incidence_are_those_of_r_crr() {
    let (of_r, people) = of_r();
    let covariates = matrix(&people.covariates);
    let first = covariates.slice(ndarray::s![..5, ..]).to_owned();
    for (name, by_cause) in of_r.fine_gray {
        let quarters = |time: &f64| if name == "tied" { (4.0 * time).ceil() / 4.0 } else { *time };
        let times = people.time.iter().map(quarters).collect();
        let outcomes = CompetingOutcomes::new(times, people.causes.clone()).unwrap();
        assert_eq!(by_cause.len(), 2);
        for (cause, expected) in (1..).zip(by_cause) {
            let about = format!("{name}, cause {cause}");
            let model = FineGraySettings { cause, ..FineGraySettings::default() }.fit(&covariates, &outcomes).unwrap();
            for ((found, value), error) in model.coefficients.iter().zip(&expected.coefficients).zip(&expected.errors) {
                assert!((found.value - value).abs() < 1e-8, "{about}: {} {value}", found.value);
                // With tied times crr weighs its errors otherwise (2e-4 apart at the most seen); the double loops over the formula of the paper
                // are the check there.
                let tolerance = if name == "tied" { 1e-3 * error } else { 1e-8 };
                assert!((found.standard_error - error).abs() < tolerance, "{about}: {} {error}", found.standard_error);
            }
            assert!((model.log_likelihood - expected.log_likelihood).abs() < 1e-9, "{about}");
            assert!((model.log_likelihood_null - expected.log_likelihood_null).abs() < 1e-9, "{about}");
            let curves = model.incidence_curves(&first, &expected.times).unwrap().incidence();
            for (found, expected) in curves.iter().zip(expected.incidence.iter().flatten()) {
                assert!((found - expected).abs() < 1e-8, "{about}: {found} {expected}");
            }
        }
    }
}

/// riskRegression sums S(u-) h(u), whose steps this module replaces by ones that add up to 1: the plain sum of the same hazards is
/// compared.
#[test]
fn cause_specific_cox_models_have_the_coefficients_and_hazards_of_risk_regression() {
    let (of_r, people) = of_r();
    let covariates = matrix(&people.covariates);
    let outcomes = CompetingOutcomes::new(people.time, people.causes).unwrap();
    let model = CauseSpecific::fit(&CoxSettings::default(), &covariates, &outcomes).unwrap();
    let first = covariates.slice(ndarray::s![..5, ..]).to_owned();
    let mut times: Vec<f64> = outcomes.time().to_vec();
    times.sort_by(f64::total_cmp);
    let hazards: Vec<Array2<f64>> = model
        .models()
        .iter()
        .map(|model| model.survival_curves(&first, &times).unwrap().survival().mapv(|survival| -survival.ln()))
        .collect();
    for (place, expected) in of_r.cause_specific.iter().enumerate() {
        for (found, expected) in model.models()[place].coefficients.iter().zip(&expected.coefficients) {
            assert!((found.value - expected).abs() < 1e-8, "{} {expected}", found.value);
        }
        let cause = u32::try_from(place).unwrap() + 1;
        let own = model.incidence_curves(&first, cause, &people.grid).unwrap().incidence();
        for row in 0..5 {
            let (mut before, mut sum, mut k) = ([0.0_f64; 2], 0.0_f64, 0);
            for (column, at) in people.grid.iter().enumerate() {
                while k < times.len() && times[k] <= *at {
                    let now = [hazards[0][[row, k]], hazards[1][[row, k]]];
                    sum += (-before[0] - before[1]).exp() * (now[place] - before[place]);
                    (before, k) = (now, k + 1);
                }
                assert!((sum - expected.incidence[row][column]).abs() < 1e-8, "{sum}");
                assert!(own[[row, column]] <= sum + 1e-12, "{row} {column}");
            }
        }
    }
}
