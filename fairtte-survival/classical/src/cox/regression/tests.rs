#![expect(clippy::unwrap_used, reason = "a value that must exist and does not fails the test")]

use approx::assert_relative_eq;
use fairtte_metrics::SubjectId;
use ndarray::array;

use super::*;
use crate::{CovariateValues, cross_fitted_curves};

const N: usize = 60;

fn numbers(name: &str, of: impl Fn(usize) -> f64) -> (String, CovariateValues) {
    (name.to_owned(), CovariateValues::Numbers((0..N).map(of).collect()))
}

fn levels(name: &str, of: impl Fn(usize) -> &'static str) -> (String, CovariateValues) {
    (name.to_owned(), CovariateValues::Levels((0..N).map(|row| of(row).to_owned()).collect()))
}

fn age(row: usize) -> f64 {
    40.0 + ((row * 37) % 41) as f64 + 0.5 * ((row * 11) % 3) as f64
}

fn sex(row: usize) -> &'static str {
    match (row * 7) % 5 {
        0 | 1 => "F",
        2 | 3 => "M",
        _ => "X",
    }
}

/// 43 events at 6 times.
fn outcomes() -> Outcomes {
    let time = (0..N).map(|row| 1.0 + ((row * row * 3 + row * 5) % 12) as f64).collect();
    Outcomes::new(time, (0..N).map(|row| (row * 13) % 7 > 1).collect()).unwrap()
}

fn covariates() -> Covariates {
    let marker = numbers("marker", |row| (1.7 * row as f64).sin());
    Covariates::new(vec![numbers("age", age), marker, levels("sex", sex)]).unwrap()
}

fn refused(columns: Vec<(String, CovariateValues)>) -> String {
    let covariates = match Covariates::new(columns) {
        Ok(covariates) => covariates,
        Err(error) => return error.to_string(),
    };
    CoxRegression::fit(&outcomes(), &covariates, CoxTies::Efron).unwrap_err().to_string()
}

/// lifelines 0.30.3: `CoxPHFitter().fit(d, "time", "event", fit_options={"precision": 1e-13, "step_size": 1.0})`, on age,
/// marker and the dummies sex == "M" and sex == "X".
#[test]
fn with_efron_ties_coefficients_errors_and_likelihood_are_those_of_lifelines() {
    let model = CoxRegression::fit(&outcomes(), &covariates(), CoxTies::Efron).unwrap();
    let names: Vec<&str> = model.coefficients.iter().map(|term| term.name.as_str()).collect();
    assert_eq!(names, ["age", "marker", "sex=M", "sex=X"]);
    let expected = [
        (0.001_205_657_084_086_725_6, 0.014_607_147_027_248_283),
        (-0.045_071_514_325_904_1, 0.226_449_488_313_917_6),
        (-0.006_090_189_438_117_954, 0.347_741_615_672_761_96),
        (0.086_759_125_871_113_6, 0.433_798_814_408_461_24),
    ];
    for (found, (value, error)) in model.coefficients.iter().zip(expected) {
        assert_relative_eq!(found.value, value, max_relative = 1e-8);
        assert_relative_eq!(found.standard_error.unwrap(), error, max_relative = 1e-9);
    }
    assert_relative_eq!(model.log_likelihood, -137.694_217_411_801_73, max_relative = 1e-12);
    assert_eq!((model.n, model.n_events, model.times.len()), (60, 43, 6));
}

/// scikit-survival 0.28.0: `CoxPHSurvivalAnalysis(ties="breslow", tol=1e-14, n_iter=200)`, and
/// `predict_survival_function` of rows 0, 1 and 17 at times 1, 5 and 11.
#[test]
fn with_breslow_ties_coefficients_and_curves_are_those_of_scikit_survival() {
    let model = CoxRegression::fit(&outcomes(), &covariates(), CoxTies::Breslow).unwrap();
    let expected =
        [0.002_737_828_878_407_856_7, -0.068_417_019_454_528_81, -0.013_473_666_445_444_557, 0.020_057_415_821_866_73];
    for (found, value) in model.coefficients.iter().zip(expected) {
        assert_relative_eq!(found.value, value, max_relative = 1e-8);
    }
    let curves = model.survival_curves(&covariates().select(&[0, 1, 17]), &[0.5, 1.0, 5.5, 11.0, 99.0]).unwrap();
    let expected = [
        [1.0, 0.895_620_058_442_569_4, 0.664_638_023_557_304_8, 0.180_755_039_034_626_2, 0.180_755_039_034_626_2],
        [1.0, 0.893_354_350_329_461_3, 0.658_428_633_827_006, 0.173_788_294_639_297_93, 0.173_788_294_639_297_93],
        [1.0, 0.885_315_294_592_396_8, 0.636_738_205_319_857_5, 0.151_043_776_122_938_62, 0.151_043_776_122_938_62],
    ];
    for (row, expected) in curves.survival().rows().into_iter().zip(expected) {
        for (found, expected) in row.iter().zip(expected) {
            assert_relative_eq!(*found, expected, max_relative = 1e-9);
        }
    }
}

/// The definitions, row by row: Efron takes the tied events out of the samples at risk in equal steps.
#[test]
fn the_hazard_and_the_likelihood_without_covariates_follow_their_definitions() {
    let (outcomes, covariates) = (outcomes(), covariates());
    let model = CoxRegression::fit(&outcomes, &covariates, CoxTies::Efron).unwrap();
    let risk: Vec<f64> = model.linear_predictor(&covariates).unwrap().into_iter().map(f64::exp).collect();
    let (mut hazard, mut null) = (0.0, 0.0);
    for (time, found) in model.times.iter().zip(&model.cumulative_hazard) {
        let at_risk = |row: &usize| outcomes.time()[*row] >= *time;
        let is_event = |row: &usize| outcomes.event()[*row] && (outcomes.time()[*row] - time).abs() < 1e-9;
        let sum = |chosen: &dyn Fn(&usize) -> bool| (0..N).filter(chosen).map(|row| risk[row]).sum::<f64>();
        let d = (0..N).filter(is_event).count();
        for k in 0..d {
            let share = k as f64 / d as f64;
            hazard += (sum(&at_risk) - share * sum(&is_event)).recip();
            null -= ((0..N).filter(at_risk).count() as f64 - k as f64).ln();
        }
        assert_relative_eq!(*found, hazard, max_relative = 1e-12);
    }
    assert_relative_eq!(model.log_likelihood_null, null, max_relative = 1e-12);
}

#[test]
fn units_and_the_order_of_rows_do_not_matter() {
    let (outcomes, covariates) = (outcomes(), covariates());
    let model = CoxRegression::fit(&outcomes, &covariates, CoxTies::Efron).unwrap();
    let in_months = vec![
        numbers("age", |row| 12.0 * age(row) - 5.0),
        numbers("marker", |row| (1.7 * row as f64).sin()),
        levels("sex", sex),
    ];
    let in_months = Covariates::new(in_months).unwrap();
    let other = CoxRegression::fit(&outcomes, &in_months, CoxTies::Efron).unwrap();
    assert_relative_eq!(12.0 * other.coefficients[0].value, model.coefficients[0].value, max_relative = 1e-9);
    let order: Vec<usize> = (0..N).map(|row| (row * 23 + 7) % N).collect();
    let turned = CoxRegression::fit(&outcomes.select(&order), &covariates.select(&order), CoxTies::Efron).unwrap();
    let grid = [1.0, 4.0, 8.0];
    let curves = model.survival_curves(&covariates, &grid).unwrap();
    for other in
        [other.survival_curves(&in_months, &grid).unwrap(), turned.survival_curves(&covariates, &grid).unwrap()]
    {
        for (found, expected) in other.survival().iter().zip(curves.survival()) {
            assert_relative_eq!(*found, *expected, max_relative = 1e-10);
        }
    }
}

#[test]
fn the_hazard_ratio_of_two_groups_solves_the_score_equation() {
    // One covariate of 0 and 1, no ties: the gradient of the log partial likelihood, written out, is 0 at the estimate.
    let time: Vec<f64> = (0..30).map(|k| f64::from((k * 7) % 30) + 1.0).collect();
    let outcomes = Outcomes::new(time.clone(), (0..30).map(|k| k % 4 != 0).collect()).unwrap();
    let group: Vec<String> = (0..30).map(|k| if k % 3 == 0 { "a" } else { "b" }.to_owned()).collect();
    let covariates = Covariates::new(vec![("g".to_owned(), CovariateValues::Levels(group.clone()))]).unwrap();
    let model = CoxRegression::fit(&outcomes, &covariates, CoxTies::Efron).unwrap();
    let ratio = model.coefficients[0].value.exp();
    let mut score = 0.0;
    for k in (0..30).filter(|k| outcomes.event()[*k]) {
        let n = |name: &str| (0..30).filter(|j| time[*j] >= time[k] && group[*j] == name).count() as f64;
        score += f64::from(u8::from(group[k] == "b")) - n("b") * ratio / (n("b") * ratio + n("a"));
    }
    assert!(score.abs() < 1e-10, "{score}");
    let (found, lower, upper) = model.coefficients[0].hazard_ratio(0.95).unwrap();
    let error = model.coefficients[0].standard_error.unwrap();
    assert_relative_eq!(found, ratio);
    assert_relative_eq!((upper / lower).ln(), 2.0 * 1.959_963_984_540_054 * error, max_relative = 1e-9);
    assert_eq!(model.coefficients[0].hazard_ratio(1.0), None);
}

#[test]
fn covariates_that_say_nothing_or_everything_are_refused_by_name() {
    let of_age = |factor: f64| numbers("twice", move |row| factor * age(row));
    assert_eq!(
        refused(vec![numbers("one", |_| 1.0)]),
        "covariate \"one\" is the same in all 60 samples, expected one that varies"
    );
    assert_eq!(
        refused(vec![numbers("age", age), levels("sex", sex), of_age(2.0)]),
        "covariate \"twice\" is a linear combination of others (\"age\"): leave one of them out"
    );
    let separates = numbers("early", |row| -outcomes().time()[row] - f64::from(u8::from(!outcomes().event()[row])));
    assert!(refused(vec![separates]).starts_with("covariate \"early\" separates the events"));
    let no_event = levels("ward", |row| if outcomes().event()[row] || row < 30 { "a" } else { "b" });
    assert!(refused(vec![no_event]).starts_with("covariate \"ward=b\" separates the events"));
    assert_eq!(refused(vec![]), "no covariates, expected at least one");
    assert_eq!(
        refused(vec![numbers("age", age), numbers("age", age)]),
        "covariate \"age\" is named twice, expected once"
    );
    assert_eq!(
        refused(vec![numbers("age", |row| if row == 7 { f64::NAN } else { age(row) })]),
        "covariate \"age\" of row 7 is NaN, expected a finite number"
    );
    let short = ("b".to_owned(), CovariateValues::Numbers(vec![1.0]));
    assert_eq!(refused(vec![numbers("age", age), short]), "covariate \"b\" has 1 values, expected 60, one per sample");
    let few =
        Outcomes::new((0..N).map(|row| row as f64 + 1.0).collect(), (0..N).map(|row| row == 3).collect()).unwrap();
    let error = CoxRegression::fit(&few, &covariates(), CoxTies::Efron).unwrap_err();
    assert_eq!(error.to_string(), "number of events: 1, expected at least 4, the number of coefficients");
}

#[test]
fn new_samples_need_the_columns_and_levels_of_the_fit() {
    let model = CoxRegression::fit(&outcomes(), &covariates(), CoxTies::Efron).unwrap();
    let said = |columns: Vec<(String, CovariateValues)>| {
        model.linear_predictor(&Covariates::new(columns).unwrap()).unwrap_err().to_string()
    };
    let marker = || numbers("marker", |_| 0.0);
    assert_eq!(
        said(vec![marker(), levels("sex", sex)]),
        "the covariates are marker, sex, expected those of the fit: age, marker, sex"
    );
    assert_eq!(
        said(vec![numbers("age", age), marker(), levels("sex", |row| if row == 4 { "Y" } else { "F" })]),
        "covariate \"sex\" is \"Y\" in row 4, expected a level of the fit: F, M, X"
    );
    assert_eq!(
        said(vec![numbers("age", age), marker(), numbers("sex", age)]),
        "the covariates are sex (numbers), expected those of the fit: sex (levels)"
    );
    let text = serde_json::to_string(&model).unwrap();
    assert_eq!(serde_json::from_str::<CoxRegression>(&text).unwrap(), model);
}

#[test]
fn a_cross_fitted_curve_is_that_of_a_model_without_the_subject() {
    let (outcomes, covariates) = (outcomes(), covariates());
    // Two samples of every subject.
    let subjects: Vec<SubjectId> = (0..N).map(|row| SubjectId::new(format!("s{}", row / 2))).collect();
    let grid = [2.0, 6.0];
    let found = cross_fitted_curves(&subjects, &outcomes, &covariates, &grid, (5, 3)).unwrap();
    let again = cross_fitted_curves(&subjects, &outcomes, &covariates, &grid, (5, 3)).unwrap();
    assert_eq!(found.curves.survival(), again.curves.survival());
    let other = cross_fitted_curves(&subjects, &outcomes, &covariates, &grid, (5, 4)).unwrap();
    assert_ne!(found.curves.survival(), other.curves.survival());
    // Leave-one-subject-out, of which every fold is known.
    let alone = cross_fitted_curves(&subjects, &outcomes, &covariates, &grid, (30, 0)).unwrap();
    let strata = |row: usize| outcomes.event()[row] || outcomes.event()[row ^ 1];
    let n_with_event = (0..N).step_by(2).filter(|row| strata(*row)).count();
    assert!(n_with_event < 30, "both strata have subjects");
    let model = CoxRegression::fit(&outcomes, &covariates, CoxTies::Efron).unwrap();
    let seen = model.survival_curves(&covariates, &grid).unwrap();
    assert_ne!(alone.curves.survival(), seen.survival());
    // The curve of a sample does not change with its own outcome.
    let mut time = outcomes.time().to_vec();
    (time[8], time[9]) = (3.0, 3.0);
    let changed = Outcomes::new(time, outcomes.event().to_vec()).unwrap();
    let after = cross_fitted_curves(&subjects, &changed, &covariates, &grid, (5, 3)).unwrap();
    for (curves, changed) in [(&found.curves, &after.curves), (&found.kaplan_meier, &after.kaplan_meier)] {
        assert_eq!(curves.survival().row(8), changed.survival().row(8));
        assert_eq!(curves.survival().row(9), changed.survival().row(9));
        assert_ne!(curves.survival(), changed.survival());
    }
}

#[test]
fn without_a_covariate_that_varies_the_curve_is_that_of_nobodys_covariates() {
    let all = Covariates::new(vec![levels("ward", |row| if row == 12 { "b" } else { "a" })]).unwrap();
    let rows: Vec<usize> = (0..N).filter(|row| *row != 12).collect();
    let part = outcomes().select(&rows);
    let model = CoxRegression::fit_with_levels_of(&all, &part, &all.select(&rows), CoxTies::Breslow).unwrap();
    assert_eq!((model.coefficients[0].value.to_bits(), model.coefficients[0].standard_error), (0, None));
    let mut hazard = 0.0;
    for (time, found) in model.times.iter().zip(&model.cumulative_hazard) {
        let events = (0..part.n()).filter(|row| part.event()[*row] && (part.time()[*row] - time).abs() < 1e-9).count();
        hazard += events as f64 / part.time().iter().filter(|other| **other >= *time).count() as f64;
        assert_relative_eq!(*found, hazard, max_relative = 1e-12);
    }
}

#[test]
fn a_level_of_one_fold_is_predicted_as_the_first_level() {
    let subjects: Vec<SubjectId> = (0..N).map(|row| SubjectId::new(format!("s{row}"))).collect();
    let rare = levels("ward", |row| if row == 12 { "rare" } else { "common" });
    let covariates = Covariates::new(vec![numbers("age", age), rare]).unwrap();
    let found = cross_fitted_curves(&subjects, &outcomes(), &covariates, &[2.0], (4, 0)).unwrap();
    let ages = Covariates::new(vec![numbers("age", age)]).unwrap();
    let without = cross_fitted_curves(&subjects, &outcomes(), &ages, &[2.0], (4, 0)).unwrap();
    assert_relative_eq!(found.curves.survival()[[12, 0]], without.curves.survival()[[12, 0]], max_relative = 1e-9);
    assert!(cross_fitted_curves(&subjects, &outcomes(), &ages, &[2.0], (1, 0)).is_err());
    assert_eq!(
        deviations(&array![[0.1, 1.0], [0.1, 3.0], [0.1, 2.0]], &array![0.1, 2.0])[0].to_bits(),
        0.0_f64.to_bits()
    );
}
