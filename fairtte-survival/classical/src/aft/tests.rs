#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use fairtte_metrics::seeds::stream;
use ndarray::{Array2, array};
use proptest::prelude::*;

use super::*;
use crate::newton::Objective as _;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Golden {
    x: Vec<Vec<f64>>,
    time: Vec<f64>,
    event: Vec<bool>,
    grid: Vec<f64>,
    fits: Vec<GoldenFit>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct GoldenFit {
    distribution: AftDistribution,
    penalty: f64,
    intercept: f64,
    coefficients: Vec<f64>,
    log_scale: f64,
    standard_errors: Vec<f64>,
    log_likelihood: f64,
    survival_of_first_rows: Vec<Vec<f64>>,
    median_of_first_rows: Vec<f64>,
}

fn golden() -> (Golden, Array2<f64>, Outcomes) {
    let golden: Golden = serde_json::from_str(include_str!("../../tests/golden/aft.json")).unwrap();
    let x = Array2::from_shape_fn((golden.x.len(), golden.x[0].len()), |(row, column)| golden.x[row][column]);
    let outcomes = Outcomes::new(golden.time.clone(), golden.event.clone()).unwrap();
    (golden, x, outcomes)
}

const ALL: [AftDistribution; 3] = [AftDistribution::Weibull, AftDistribution::LogNormal, AftDistribution::LogLogistic];

fn settings(distribution: AftDistribution, penalty: f64) -> AftSettings {
    AftSettings { distribution, penalty }
}

/// All estimates: intercept, coefficients, log scale.
fn estimates(model: &AcceleratedFailureTime) -> Vec<Estimate> {
    [model.intercept].into_iter().chain(model.coefficients.iter().copied()).chain([model.log_scale]).collect()
}

fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found - expected).abs() <= tolerance * expected.abs().max(1e-3), "{what}: {found} for {expected}");
}

#[test]
fn coefficients_errors_likelihoods_curves_and_medians_are_those_of_lifelines() {
    let (golden, x, outcomes) = golden();
    let first = x.slice(ndarray::s![..5, ..]).to_owned();
    for of in &golden.fits {
        let what = format!("{:?} {}", of.distribution, of.penalty);
        let model = AcceleratedFailureTime::fit(&x, &outcomes, &settings(of.distribution, of.penalty)).unwrap();
        let expected = [of.intercept].into_iter().chain(of.coefficients.iter().copied()).chain([of.log_scale]);
        for ((found, expected), error) in estimates(&model).iter().zip(expected).zip(&of.standard_errors) {
            assert_close(found.value, expected, 1e-7, &what);
            assert_close(found.standard_error.unwrap(), *error, 1e-8, &what);
        }
        assert_close(model.log_likelihood, of.log_likelihood, 1e-10, &what);
        let curves = model.survival_curves(&first, &golden.grid).unwrap();
        for (row, expected) in of.survival_of_first_rows.iter().enumerate() {
            for (found, expected) in curves.survival().row(row).iter().zip(expected) {
                assert!((found - expected).abs() < 1e-7, "{what}: {found} for {expected}");
            }
        }
        let medians = model.median_log_times(&first).unwrap();
        for ((log_median, risk), expected) in
            medians.iter().zip(model.risk(&first).unwrap()).zip(&of.median_of_first_rows)
        {
            assert_close(log_median.exp(), *expected, 1e-6, &what);
            assert_eq!(risk.to_bits(), (-log_median).to_bits());
        }
        let reach = 1.959_963_984_540_054 * of.standard_errors[1];
        let (lower, upper) = model.coefficients[0].interval(0.95).unwrap();
        assert_close(upper - lower, 2.0 * reach, 1e-8, &what);
    }
}

/// `survreg`, whose last coefficient is the logarithm of the scale.
#[test]
fn coefficients_errors_and_likelihoods_are_those_of_r() {
    let recorded: serde_json::Value = serde_json::from_str(include_str!("../../tests/golden/r.json")).unwrap();
    let (_, x, outcomes) = golden();
    for (distribution, name) in ALL.into_iter().zip(["weibull", "log-normal", "log-logistic"]) {
        let expected = &recorded["aft"][name];
        let numbers = |key: &str| -> Vec<f64> { serde_json::from_value(expected[key].clone()).unwrap() };
        let model = AcceleratedFailureTime::fit(&x, &outcomes, &settings(distribution, 0.0)).unwrap();
        let found = estimates(&model);
        assert_eq!((found.len(), numbers("coefficients").len()), (5, 5));
        for ((found, value), error) in found.iter().zip(numbers("coefficients")).zip(numbers("errors")) {
            assert_close(found.value, value, 1e-8, name);
            assert_close(found.standard_error.unwrap(), error, 1e-8, name);
        }
        assert_close(model.log_likelihood, expected["log-likelihood"].as_f64().unwrap(), 1e-12, name);
    }
}

/// n samples with p covariates, of which the first two matter, about a quarter of them censored.
fn sample(seed: u64, n: usize, p: usize) -> (Array2<f64>, Outcomes) {
    let mut rng = stream(seed, "test/aft", &[]);
    let x = Array2::from_shape_fn((n, p), |_| rng.random::<f64>());
    let (mut times, mut events) = (Vec::new(), Vec::new());
    for row in x.rows() {
        let wait = |uniform: f64| -(1.0 - uniform).ln();
        let event = (1.5 * row[0] - row[p - 1]).exp() * wait(rng.random()).powf(0.7) + 1e-3;
        let censored = 4.0 * wait(rng.random()) + 1e-3;
        times.push(event.min(censored));
        events.push(event <= censored);
    }
    (x, Outcomes::new(times, events).unwrap())
}

#[test]
fn derivatives_are_those_of_finite_differences() {
    let (x, outcomes) = sample(3, 60, 2);
    let log_time: Vec<f64> = outcomes.time().iter().map(|time| time.ln()).collect();
    for distribution in ALL {
        let (log_time, event) = (log_time.as_slice(), outcomes.event());
        let likelihood = Likelihood { distribution, log_time, event, x: x.view(), ridge: 0.7, spread: 1.0 };
        let at = array![0.3, -0.4, 0.9, -0.2];
        let here = likelihood.at(&at);
        for k in 0..4 {
            let h = 1e-5;
            let moved = |by: f64| {
                let mut there = at.clone();
                there[k] += by;
                likelihood.at(&there)
            };
            let (above, below) = (moved(h), moved(-h));
            let slope = (above.value - below.value) / (2.0 * h);
            assert_close(here.gradient[k], slope, 1e-7, &format!("{distribution:?} {k}"));
            for j in 0..4 {
                let bend = -(above.gradient[j] - below.gradient[j]) / (2.0 * h);
                assert_close(here.information[[j, k]], bend, 1e-7, &format!("{distribution:?} {j} {k}"));
            }
        }
    }
}

#[test]
fn without_censoring_a_log_normal_model_is_a_least_squares_line() {
    // y = 0, 1, 5 at x = 0, 1, 2: slope 2.5, intercept -0.5, residuals 0.5, -1, 0.5, sigma^2 = 1.5 / 3.
    let outcomes = Outcomes::new([0.0_f64, 1.0, 5.0].map(f64::exp).to_vec(), vec![true; 3]).unwrap();
    let x = array![[0.0], [1.0], [2.0]];
    let model = AcceleratedFailureTime::fit(&x, &outcomes, &settings(AftDistribution::LogNormal, 0.0)).unwrap();
    assert_close(model.intercept.value, -0.5, 1e-12, "intercept");
    assert_close(model.coefficients[0].value, 2.5, 1e-12, "slope");
    assert_close(model.scale(), 0.5_f64.sqrt(), 1e-12, "sigma");
    // sigma^2 (X'X)^-1 and 1 / sqrt(2 n).
    assert_close(model.coefficients[0].standard_error.unwrap(), 0.5, 1e-12, "error of the slope");
    assert_close(
        model.intercept.standard_error.unwrap(),
        (0.5 * 5.0 / 6.0_f64).sqrt(),
        1e-12,
        "error of the intercept",
    );
    assert_close(model.log_scale.standard_error.unwrap(), 1.0 / 6.0_f64.sqrt(), 1e-12, "error of log sigma");
    assert_close(model.covariance[0][1], -0.5 * 0.5, 1e-12, "covariance of intercept and slope");
    let normal = -1.5 * (std::f64::consts::TAU * 0.5).ln() - 1.5;
    assert_close(model.log_likelihood, normal - 6.0, 1e-12, "log-likelihood");
    // Without the covariate: mean 2, squares 4, 1 and 9.
    let null = -1.5 * (std::f64::consts::TAU * 14.0 / 3.0).ln() - 1.5;
    assert_close(model.log_likelihood_null, null - 6.0, 1e-12, "log-likelihood without the covariate");
}

#[test]
fn times_that_are_exponential_beside_a_covariate_without_effect_have_the_closed_form() {
    // At 1 an event, at c a censoring with c (log c - 1) = 1: the likelihood equation of a Weibull shape is solved by 1, and the
    // mean time is the total time per event, 1 + c.
    let c = 3.591_121_476_668_622;
    let outcomes = Outcomes::new(vec![1.0, c, 1.0, c], vec![true, false, true, false]).unwrap();
    let x = array![[0.0], [0.0], [1.0], [1.0]];
    let model = AcceleratedFailureTime::fit(&x, &outcomes, &AftSettings::default()).unwrap();
    assert!(model.log_scale.value.abs() < 1e-12, "{}", model.log_scale.value);
    assert!(model.coefficients[0].value.abs() < 1e-12);
    assert_close(model.intercept.value, (1.0 + c).ln(), 1e-12, "log mean time");
    // Two events of rate 1 / (1 + c): 2 log(rate) - rate times all time.
    assert_close(model.log_likelihood, -2.0 * (1.0 + c).ln() - 2.0, 1e-12, "log-likelihood");
    assert_close(model.log_likelihood_null, model.log_likelihood, 1e-12, "log-likelihood without the covariate");
    let curve = model.survival_curves(&array![[0.0]], &[0.0, 1.0, 2.0]).unwrap();
    for (found, time) in curve.survival().iter().zip([0.0_f64, 1.0, 2.0]) {
        assert_close(*found, (-time / (1.0 + c)).exp(), 1e-12, "survival");
    }
}

#[test]
fn a_penalty_shrinks_coefficients_to_0_and_admits_covariates_that_separate() {
    let (x, outcomes) = sample(5, 80, 2);
    for distribution in ALL {
        let fit = |penalty: f64| AcceleratedFailureTime::fit(&x, &outcomes, &settings(distribution, penalty)).unwrap();
        let sizes: Vec<f64> = [0.0, 0.1, 1.0, 1e9]
            .map(|penalty| fit(penalty).coefficients.iter().map(|b| b.value.powi(2)).sum::<f64>())
            .to_vec();
        assert!(sizes.windows(2).all(|pair| pair[0] > pair[1]), "{sizes:?}");
        assert!(sizes[3] < 1e-15, "{sizes:?}");
        let none = fit(1e9);
        assert_close(none.log_likelihood, none.log_likelihood_null, 1e-7, "all coefficients 0");
        // No sample with the covariate has an event.
        let level = Array2::from_shape_fn((80, 1), |(row, _)| f64::from(u8::from(!outcomes.event()[row] && row < 60)));
        assert!(AcceleratedFailureTime::fit(&level, &outcomes, &settings(distribution, 0.0)).is_err());
        let penalised = AcceleratedFailureTime::fit(&level, &outcomes, &settings(distribution, 0.01)).unwrap();
        assert!(penalised.coefficients[0].value > 0.0);
    }
}

#[test]
fn data_and_settings_that_cannot_be_are_named() {
    let (x, outcomes) = sample(7, 50, 3);
    let refused = |x: &Array2<f64>, outcomes: &Outcomes, distribution: AftDistribution| {
        settings(distribution, 0.0).fit(x, outcomes).map(drop).unwrap_err()
    };
    for distribution in ALL {
        let refused = |x: &Array2<f64>, outcomes: &Outcomes| refused(x, outcomes, distribution).to_string();
        let mut times = outcomes.time().to_vec();
        times[4] = 0.0;
        let zero = Outcomes::new(times, outcomes.event().to_vec()).unwrap();
        let expected = "time of row 4 is 0, expected a time above 0: the model is of the logarithm of time";
        assert_eq!(refused(&x, &zero), expected);
        // No sample with column 1 above 0 has an event.
        let mut separating = x.clone();
        for (row, event) in outcomes.event().iter().enumerate() {
            separating[[row, 1]] = f64::from(u8::from(!event));
        }
        let expected = "covariate 1 separates the events from the other samples, so that the likelihood has no maximum: \
                        leave it out or merge levels";
        assert_eq!(refused(&separating, &outcomes), expected, "{distribution:?}");
        // A sum of columns separates, no column alone.
        let mut together = x.clone();
        for (row, event) in outcomes.event().iter().enumerate() {
            together[[row, 2]] = together[[row, 0]] + f64::from(u8::from(!event));
        }
        let found = refused(&together, &outcomes);
        assert!(found.starts_with("covariates 0, 2 together separate"), "{distribution:?}: {found}");
        let exact = Outcomes::new(x.column(1).iter().map(|x| (2.0 * x).exp()).collect(), vec![true; 50]).unwrap();
        assert!(refused(&x, &exact).starts_with("the times of the events follow the covariates exactly"));
        let same = Outcomes::new(vec![2.0; 50], vec![true; 50]).unwrap();
        let found = refused(&x, &same);
        assert!(
            found.starts_with("the times of the events follow the covariates exactly"),
            "{distribution:?}: {found}"
        );
    }
    let mut names = ["age", "sex", "dose"].map(str::to_owned);
    let mut constant = x.clone();
    constant.column_mut(1).fill(0.3);
    let found = refused(&constant, &outcomes, AftDistribution::Weibull).with_names(&names).to_string();
    assert_eq!(found, "covariate \"sex\" is the same in all 50 samples, expected one that varies");
    constant.column_mut(1).assign(&(1.0 - &x.column(0)));
    names[0] = "years".to_owned();
    let found = refused(&constant, &outcomes, AftDistribution::Weibull).with_names(&names).to_string();
    assert_eq!(found, "covariate \"sex\" is a linear combination of others (\"years\"): leave one of them out");
    for penalty in [-1.0, f64::NAN, f64::INFINITY] {
        let found = settings(AftDistribution::Weibull, penalty).fit(&x, &outcomes).map(drop).unwrap_err().to_string();
        assert_eq!(found, format!("penalty is {penalty}, expected a finite number of at least 0"));
    }
    let model = AftSettings::default().fit(&x, &outcomes).unwrap();
    let found = model.risk(&array![[1e308, 1e308, -1e308], [0.0, 0.0, 0.0]]).unwrap_err().to_string();
    assert!(found.starts_with("the linear predictor of row 0 is "), "{found}");
    assert!(model.survival_curves(&x, &[-1.0, 2.0]).is_err());
}

#[test]
fn a_model_is_the_same_with_any_number_of_threads_and_after_it_was_written() {
    let (x, outcomes) = sample(9, 5_000, 3);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let model = AftSettings::default().fit(&x, &outcomes).unwrap();
    assert_eq!(pool.install(|| AftSettings::default().fit(&x, &outcomes)).unwrap(), model);
    let text = serde_json::to_string(&model).unwrap();
    assert_eq!(serde_json::from_str::<AcceleratedFailureTime>(&text).unwrap(), model);
    let settings: AftSettings = serde_json::from_str("{\"distribution\": \"log-normal\", \"penalty\": 0.5}").unwrap();
    assert_eq!(settings, self::settings(AftDistribution::LogNormal, 0.5));
    assert!(serde_json::from_str::<AftSettings>("{\"penalizer\": 0.5}").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn curves_start_at_1_and_never_rise_and_higher_risks_have_lower_curves(seed in 0_u64..1000, which in 0_usize..3) {
        let (x, outcomes) = sample(seed, 40, 2);
        let model = settings(ALL[which], 0.0).fit(&x, &outcomes).unwrap();
        let grid = [0.0, 0.01, 0.3, 1.0, 2.0, 5.0, 40.0];
        let curves = model.survival_curves(&x, &grid).unwrap();
        let risk = model.risk(&x).unwrap();
        for row in 0..40 {
            let survival = curves.survival();
            let curve = survival.row(row);
            prop_assert!((curve[0] - 1.0).abs() < 1e-15);
            prop_assert!(curve.iter().zip(curve.iter().skip(1)).all(|(before, after)| after <= before));
            let other = (row + 1) % 40;
            let above = if risk[row] < risk[other] { (row, other) } else { (other, row) };
            prop_assert!((0..grid.len()).all(|at| curves.survival()[[above.0, at]] >= curves.survival()[[above.1, at]]));
        }
    }

    #[test]
    fn rows_units_of_covariates_and_units_of_time_change_what_they_should(
        seed in 0_u64..1000, which in 0_usize..3, unit in 0.01_f64..100.0, penalty in prop::sample::select(vec![0.0, 0.05]),
    ) {
        let (x, outcomes) = sample(seed, 40, 2);
        let fit = |x: &Array2<f64>, outcomes: &Outcomes| settings(ALL[which], penalty).fit(x, outcomes).unwrap();
        let model = fit(&x, &outcomes);
        let near = |found: &Estimate, value: f64, error: f64| {
            let close = |found: f64, expected: f64| (found - expected).abs() < 1e-8 * (expected.abs() + error);
            close(found.value, value) && close(found.standard_error.unwrap(), error)
        };
        let errors: Vec<f64> = estimates(&model).iter().map(|of| of.standard_error.unwrap()).collect();
        // The rows in another order.
        let order: Vec<usize> = (0..40).map(|row| (row * 7 + 3) % 40).collect();
        let permuted = fit(&x.select(Axis(0), &order), &outcomes.select(&order));
        for (found, (of, error)) in estimates(&permuted).iter().zip(estimates(&model).iter().zip(&errors)) {
            prop_assert!(near(found, of.value, *error));
        }
        // A covariate in another unit and from another origin: the penalty does not depend on it either.
        let mut scaled = x.clone();
        scaled.column_mut(1).mapv_inplace(|x| x * unit + 3.0);
        let scaled = fit(&scaled, &outcomes);
        prop_assert!(near(&scaled.coefficients[1], model.coefficients[1].value / unit, errors[2] / unit));
        prop_assert!(near(&scaled.coefficients[0], model.coefficients[0].value, errors[1]));
        prop_assert!((scaled.log_likelihood - model.log_likelihood).abs() < 1e-8);
        // Time in another unit.
        let later = Outcomes::new(outcomes.time().iter().map(|time| time * unit).collect(), outcomes.event().to_vec());
        let later = fit(&x, &later.unwrap());
        prop_assert!(near(&later.intercept, model.intercept.value + unit.ln(), errors[0]));
        for (found, (of, error)) in estimates(&later).iter().zip(estimates(&model).iter().zip(&errors)).skip(1) {
            prop_assert!(near(found, of.value, *error));
        }
        let likelihood = model.log_likelihood - outcomes.n_events() as f64 * unit.ln();
        prop_assert!((later.log_likelihood - likelihood).abs() < 1e-8);
    }
}
