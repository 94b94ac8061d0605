#![expect(clippy::unwrap_used, reason = "a value that must exist and does not fails the test")]

use approx::assert_relative_eq;
use fairtte_metrics::SubjectId;
use ndarray::concatenate;

use super::*;
use crate::cox::newton::Concave as _;
use crate::cox::ordered::Ordered;
use crate::cox::tests::{assert_close, golden, matrix, numbers};
use crate::estimator::NEVER;
use crate::{CoxSettings, SurvivalModel as _};

/// scikit-survival has Breslow's ties; with distinct times Efron's are the same.
#[test]
fn paths_are_those_of_scikit_survival() {
    let golden = golden();
    let x = golden.standardised();
    let mut worst: f64 = 0.0;
    for recorded in golden.values["coxnet"].as_array().unwrap() {
        let clock = recorded["times"].as_str().unwrap();
        let ties = if clock == "tied" { CoxTies::Breslow } else { CoxTies::Efron };
        let lambdas = numbers(&recorded["lambdas"]);
        let settings = CoxElasticNetSettings {
            ties,
            l1_ratio: recorded["l1-ratio"].as_f64().unwrap(),
            lambdas: lambdas.len(),
            choice: LambdaChoice::Fixed(*lambdas.last().unwrap()),
            ..CoxElasticNetSettings::default()
        };
        let model = settings.fit(&x, &golden.outcomes(clock)).unwrap();
        assert_close(model.lambdas.iter().copied(), &lambdas, 1e-10);
        let expected = matrix(&recorded["coefficients"]);
        for (found, expected) in model.path.iter().zip(expected.rows()) {
            for (found, expected) in found.iter().zip(expected) {
                worst = worst.max((found - expected).abs());
            }
        }
        // With ties its ratio is below 0 at coefficients of 0, so that of a model with them is by definition.
        if clock == "distinct" {
            assert_close(model.deviance_ratios.iter().copied(), &numbers(&recorded["deviance-ratio"]), 1e-8);
        }
    }
    assert!(worst < 1e-6, "{worst}");
}

/// The conditions of the optimum, with a gradient by differences of the likelihood.
#[test]
fn with_efrons_ties_every_model_of_the_path_is_an_optimum() {
    let golden = golden();
    let (x, tied) = (golden.standardised(), golden.outcomes("tied"));
    let ordered = Ordered::new((tied.time(), tied.event()), &[0; 90], &x, CoxTies::Efron);
    for l1_ratio in [0.3, 1.0] {
        let settings = CoxElasticNetSettings {
            l1_ratio,
            lambdas: 8,
            choice: LambdaChoice::Fixed(0.01),
            ..CoxElasticNetSettings::default()
        };
        let model = settings.fit(&x, &tied).unwrap();
        for (lambda, b) in model.lambdas.iter().zip(&model.path) {
            for place in 0..4 {
                let at = |step: f64| {
                    let mut moved = Array1::from_vec(b.clone());
                    moved[place] += step;
                    ordered.derivatives(&moved).value / 90.0
                };
                let slope = (at(1e-5) - at(-1e-5)) / 2e-5 - lambda * (1.0 - l1_ratio) * b[place];
                if b[place].abs() > 0.0 {
                    assert_relative_eq!(slope, lambda * l1_ratio * b[place].signum(), epsilon = 1e-8);
                } else {
                    assert!(slope.abs() <= lambda * l1_ratio + 1e-8, "{slope} {lambda}");
                }
            }
        }
        // Of d tied events with infinite risks, Efron's likelihood is 1 over the orders of d events.
        let d = |time: f64| (0..90).filter(|row| tied.event()[*row] && (tied.time()[*row] - time).abs() < 1e-9).count();
        let saturated: f64 = (1..10).map(|time| -(1..=d(f64::from(time))).map(|k| (k as f64).ln()).sum::<f64>()).sum();
        let value = |b: &[f64]| ordered.derivatives(&Array1::from_vec(b.to_vec())).value;
        let (null, last) = (value(&[0.0; 4]), value(&model.path[7]));
        assert_relative_eq!(model.deviance_ratios[7], (last - null) / (saturated - null), max_relative = 1e-10);
        let n_selected = |place: usize| model.path[place].iter().filter(|b| b.abs() > 0.0).count();
        assert_eq!(n_selected(0), 0, "at the largest lambda nothing is selected");
        assert!(n_selected(1) > 0 && n_selected(7) > n_selected(1));
        assert!(model.deviance_ratios.windows(2).all(|pair| pair[0] <= pair[1]) && model.deviance_ratios[7] < 1.0);
    }
}

#[test]
fn without_absolute_values_it_is_the_ridge_regression() {
    let golden = golden();
    let tied = golden.outcomes("tied");
    let settings =
        CoxElasticNetSettings { l1_ratio: 0.0, choice: LambdaChoice::Fixed(0.07), ..CoxElasticNetSettings::default() };
    let found = settings.fit(&golden.x, &tied).unwrap();
    let ridge = CoxSettings { ridge: 0.07 * 90.0, ..CoxSettings::default() }.fit(&golden.x, &tied).unwrap();
    for (found, expected) in found.coefficients.iter().zip(&ridge.coefficients) {
        assert_relative_eq!(found.value, expected.value, max_relative = 1e-8);
    }
    assert_close(found.risk(&golden.x).unwrap(), &ridge.risk(&golden.x).unwrap(), 1e-8);
    let (grid, curves) = ([1.0, 4.0], |model: &dyn crate::SurvivalModel| model.survival_curves(&golden.x, &[1.0, 4.0]));
    let (found, expected) = (curves(&found).unwrap(), curves(&ridge).unwrap());
    assert_close(found.survival().iter().copied(), &expected.survival().iter().copied().collect::<Vec<_>>(), 1e-8);
    assert_eq!(found.grid(), grid);
}

/// The deviance of one fold by its definition, from fits without the fold.
#[test]
fn the_cross_validated_deviance_follows_its_definition() {
    let golden = golden();
    let tied = golden.outcomes("tied");
    let settings = CoxElasticNetSettings { lambdas: 6, folds: 3, seed: 5, ..CoxElasticNetSettings::default() };
    let model = settings.fit(&golden.x, &tied).unwrap();
    let found = model.validation.as_ref().unwrap();
    let subjects: Vec<SubjectId> = (0..90).map(|row: usize| SubjectId::new(row.to_string())).collect();
    let strata: Vec<_> = tied.event().iter().map(|event| Some(fairtte_metrics::GroupId(u32::from(!event)))).collect();
    let fold_of = fairtte_metrics::resampling::folds_by_subject(&subjects, &strata, 3, (5, "cox-elastic-net"));
    let likelihood = |rows: &[usize], b: &[f64]| {
        let (x, outcomes) = (golden.x.select(ndarray::Axis(0), rows), tied.select(rows));
        let ordered = Ordered::new((outcomes.time(), outcomes.event()), &vec![0; rows.len()], &x, CoxTies::Efron);
        ordered.derivatives(&Array1::from_vec(b.to_vec())).value
    };
    let all: Vec<usize> = (0..90).collect();
    for place in [0, 3, 5] {
        let (mut folds, mut n_events) = (Vec::new(), Vec::new());
        for fold in 0..3 {
            let kept: Vec<usize> = (0..90).filter(|row| fold_of[*row] != fold).collect();
            let of_fold =
                CoxElasticNetSettings { choice: LambdaChoice::Fixed(model.lambdas[place]), ..settings.clone() };
            let fitted = of_fold.fit(&golden.x.select(ndarray::Axis(0), &kept), &tied.select(&kept)).unwrap();
            let b: Vec<f64> = fitted.coefficients.iter().map(|term| term.value).collect();
            let events = (tied.n_events() - tied.select(&kept).n_events()) as f64;
            folds.push(-2.0 * (likelihood(&all, &b) - likelihood(&kept, &b)) / events);
            n_events.push(events);
        }
        let total: f64 = n_events.iter().sum();
        let mean = folds.iter().zip(&n_events).map(|(value, n)| value * n).sum::<f64>() / total;
        let variance = folds.iter().zip(&n_events).map(|(value, n)| (value - mean).powi(2) * n).sum::<f64>() / total;
        assert_relative_eq!(found.deviances[place], mean, max_relative = 1e-8);
        assert_relative_eq!(found.standard_errors[place], (variance / 2.0).sqrt(), max_relative = 1e-6);
    }
    let lowest = found.deviances.iter().copied().fold(f64::MAX, f64::min);
    assert_eq!(found.deviances[found.lowest].to_bits(), lowest.to_bits());
    let limit = lowest + found.standard_errors[found.lowest];
    assert!(found.deviances[found.one_standard_error] <= limit);
    assert!(found.deviances[..found.one_standard_error].iter().all(|deviance| *deviance > limit));
    let one =
        CoxElasticNetSettings { choice: LambdaChoice::OneStandardError, ..settings }.fit(&golden.x, &tied).unwrap();
    assert_eq!((model.chosen, one.chosen), (found.lowest, found.one_standard_error));
}

#[test]
fn more_covariates_than_samples_and_collinear_ones_have_a_path_and_noise_is_left_out() {
    let golden = golden();
    let tied = golden.outcomes("tied");
    let noise =
        Array2::from_shape_fn((90, 100), |(row, column)| ((row * (column + 3)) as f64 * 0.77 + column as f64).sin());
    let x = concatenate![ndarray::Axis(1), golden.x, golden.x, noise];
    let settings = CoxElasticNetSettings {
        l1_ratio: 0.9,
        lambdas: 10,
        choice: LambdaChoice::LowestDeviance,
        folds: 5,
        ..CoxElasticNetSettings::default()
    };
    let model = settings.fit(&x, &tied).unwrap();
    let selected: Vec<&str> = model.selected().collect();
    assert!(selected.contains(&"0") && selected.contains(&"4"), "{selected:?}");
    assert!(selected.len() < 40, "{selected:?}");
    // Equal columns share their coefficient.
    assert_relative_eq!(model.coefficients[0].value, model.coefficients[4].value, max_relative = 1e-6);
    let pool = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let again = pool(1).install(|| settings.fit(&x, &tied).unwrap());
    assert_eq!(again, model);
    let other = CoxElasticNetSettings { seed: 9, ..settings }.fit(&x, &tied).unwrap();
    assert_ne!(other.validation, model.validation);
}

#[test]
fn samples_of_a_subject_share_a_fold_and_settings_out_of_range_are_named() {
    let golden = golden();
    let tied = golden.outcomes("tied");
    let settings = CoxElasticNetSettings { lambdas: 5, folds: 4, ..CoxElasticNetSettings::default() };
    let subjects: Vec<SubjectId> = (0..90).map(|row: usize| SubjectId::new((row / 3).to_string())).collect();
    let samples = CoxSamples::new(&golden.x, &tied);
    let together = settings.fit_samples(&samples.of_subjects(&subjects)).unwrap();
    assert_ne!(together.validation, settings.fit_samples(&samples).unwrap().validation);
    let refuse = |settings: CoxElasticNetSettings| settings.fit(&golden.x, &tied).unwrap_err().to_string();
    let of = CoxElasticNetSettings::default;
    assert_eq!(
        refuse(CoxElasticNetSettings { l1_ratio: 1.5, ..of() }),
        "l1-ratio is 1.5, expected a number between 0 and 1"
    );
    for settings in [CoxElasticNetSettings { lambdas: 10_001, ..of() }, CoxElasticNetSettings { folds: 10_001, ..of() }]
    {
        assert!(refuse(settings).ends_with(" to 10000"));
    }
    assert_eq!(
        refuse(CoxElasticNetSettings { lambdas: 0, ..of() }),
        "lambdas is 0, expected a whole number from 1 to 10000"
    );
    assert_eq!(
        refuse(CoxElasticNetSettings { smallest: Some(1.0), ..of() }),
        "smallest is 1, expected a share between 0 and 1"
    );
    assert_eq!(
        refuse(CoxElasticNetSettings { folds: 1, ..of() }),
        "folds is 1, expected a whole number from 2 to 10000"
    );
    assert_eq!(
        refuse(CoxElasticNetSettings { choice: LambdaChoice::Fixed(0.0), ..of() }),
        "choice.fixed is 0, expected a number > 0"
    );
    let one = fairtte_metrics::Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, false, false]).unwrap();
    let error = of().fit(&ndarray::array![[1.0], [2.0], [0.0]], &one).unwrap_err();
    let sentence = "cross-validation: all events (1) are in one fold, expected events in at least two; more subjects with events or \
                    another seed may help, choice = { fixed = .. } needs no folds";
    assert_eq!(error.to_string(), sentence);
}

/// The search with an old curvature ends at the conditions of the optimum, whatever the columns: many, correlated, with outliers.
#[test]
fn the_search_ends_at_the_optimum_with_many_correlated_columns_and_with_outliers() {
    let mut rng = fairtte_metrics::seeds::stream(7, "test/elastic-net", &[]);
    let mut uniform = move || rand::RngExt::random::<f64>(&mut rng);
    for (n, p, l1_ratio) in [(150, 30, 1.0), (150, 30, 0.2), (60, 150, 0.9)] {
        let mut x = Array2::from_shape_fn((n, p), |_| uniform() - 0.5);
        for mut row in x.rows_mut() {
            let common = uniform();
            row.slice_mut(ndarray::s![..10]).mapv_inplace(|value| value + common);
        }
        x[[3, 1]] = 40.0;
        let rate = |row: usize| (2.0 * x[[row, 0]] - x[[row, 5]] + x[[row, 12]]).exp();
        let times: Vec<f64> = (0..n).map(|row| (-20.0 * (1.0 - uniform()).ln() / rate(row)).ceil()).collect();
        let outcomes = Outcomes::new(times, (0..n).map(|row| row % 3 > 0).collect()).unwrap();
        let layout = Layout::new(&x, Vec::new());
        let ordered = Prepared::new(&x, &outcomes, &layout, CoxTies::Efron).unwrap().ordered;
        let largest = largest_lambda(&ordered, l1_ratio);
        let lambdas: Vec<f64> = (0..25).map(|k| largest * 0.85_f64.powi(k)).collect();
        let found = path(&ordered, Penalty { lambdas: &lambdas, l1_ratio }, &NEVER).unwrap();
        let mut n_selected = 0;
        for (lambda, b) in lambdas.iter().zip(&found) {
            let slope = ordered.derivatives(b).gradient / n as f64 - &(b * (lambda * (1.0 - l1_ratio)));
            for (slope, b) in slope.iter().zip(b) {
                if b.abs() > 0.0 {
                    assert!((slope - lambda * l1_ratio * b.signum()).abs() < 1e-8, "{n} {p} {lambda}: {slope}");
                    n_selected += 1;
                } else {
                    assert!(slope.abs() <= lambda * l1_ratio + 1e-8, "{n} {p} {lambda}: {slope}");
                }
            }
        }
        assert!(n_selected > 100);
    }
}
