//! Values that R, lifelines and scikit-survival compute.

use super::*;

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

/// `tests/golden/r.R`: with and without ties, by both approximations, with strata, robust and clustered.
#[test]
fn regressions_on_made_up_samples_are_those_of_r() {
    let golden = golden();
    let recorded = &of_r()["cox"];
    let breslow = CoxSettings { ties: CoxTies::Breslow, ..CoxSettings::default() };
    for (name, times, settings) in [
        ("efron", "tied", CoxSettings::default()),
        ("breslow", "tied", breslow.clone()),
        ("distinct", "distinct", CoxSettings::default()),
    ] {
        let expected = &recorded[name];
        let model = fit(&settings, &golden.x, &golden.outcomes(times));
        assert_recorded(&model.coefficients, expected, 1e-8);
        let number = |key: &str| expected[key].as_f64().unwrap();
        assert_relative_eq!(model.log_likelihood, number("log-likelihood"), max_relative = 1e-12);
        assert_relative_eq!(model.log_likelihood_null, number("log-likelihood-null"), max_relative = 1e-12);
        assert_relative_eq!(model.score_test().unwrap().statistic, number("score"), max_relative = 1e-8);
        assert_relative_eq!(model.wald_test().unwrap().statistic, number("wald"), max_relative = 1e-8);
        let means: f64 = model.coefficients.iter().map(|term| term.value * term.mean).sum();
        let at = model.baselines[0].at(&numbers(&expected["times"])).into_iter().map(|hazard| hazard * (-means).exp());
        assert_close(at, &numbers(&expected["hazard"]), 1e-8);
    }
    let tied = golden.outcomes("tied");
    let robust = |settings: CoxSettings| CoxSettings { errors: CoxErrors::Robust, ..settings };
    let with_ties = fit(&robust(CoxSettings::default()), &golden.x, &tied);
    assert_recorded(&with_ties.coefficients, &recorded["robust"], 1e-8);
    assert_recorded(&fit(&robust(breslow), &golden.x, &tied).coefficients, &recorded["robust-breslow"], 1e-8);
    let subjects = golden.subjects();
    let samples = CoxSamples::new(&golden.x, &tied).of_subjects(&subjects);
    let clustered = robust(CoxSettings::default()).fit_samples(&samples).unwrap();
    assert_recorded(&clustered.coefficients, &recorded["clustered"], 1e-8);
    let (x, names) = golden.with_stratum();
    let strata = CoxSettings { strata: vec!["ward".to_owned()], ..CoxSettings::default() };
    let samples = CoxSamples::new(&x, &tied).named(&names);
    assert_recorded(&strata.fit_samples(&samples).unwrap().coefficients, &recorded["strata"], 1e-8);
    let strata = robust(strata).fit_samples(&samples).unwrap();
    assert_recorded(&strata.coefficients, &recorded["robust-strata"], 1e-8);
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
