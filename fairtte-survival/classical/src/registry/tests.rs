#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
use fairtte_metrics::{MetricError, SubjectId};

use super::*;

/// A column per level and the intercept say the same, which a penalty alone settles; the catalogue and the fit agree on it.
#[test]
fn a_penalty_takes_a_column_per_level_and_without_one_a_level_is_left_out() {
    let level = |row: usize| (row * 7) % 3;
    let covariates = Array2::from_shape_fn((60, 3), |(row, column)| f64::from(u8::from(level(row) == column)));
    let time: Vec<f64> = (0..60).map(|row| 1.0 + (level(row) * 10 + (row * 37) % 59) as f64).collect();
    let outcomes = Outcomes::new(time, (0..60).map(|row| row % 4 != 0).collect()).unwrap();
    let of = |penalty: f64| {
        let steps = crate::TimeFunction::Steps(vec![30.0]);
        [
            Estimator::Aft(AftSettings { penalty, ..AftSettings::default() }),
            Estimator::Cox(CoxSettings { ridge: penalty, ..CoxSettings::default() }),
            Estimator::CoxTimeVarying(CoxTimeVaryingSettings {
                ridge: penalty,
                function: steps,
                ..CoxTimeVaryingSettings::default()
            }),
        ]
    };
    for estimator in of(0.0) {
        assert_eq!(estimator.columns(), Columns::Independent, "{}", estimator.name());
        let found = estimator.fit(&covariates, &outcomes);
        assert!(matches!(found, Err(ClassicalError::Collinear { .. })), "{found:?}");
    }
    for estimator in of(0.01) {
        assert_eq!(estimator.columns(), Columns::Any, "{}", estimator.name());
        let model = estimator.fit(&covariates, &outcomes).unwrap();
        assert_eq!(model.n_covariates(), 3);
        // Of all coefficients that say the same, the penalty takes those whose standardised sum is 0.
        if let FittedEstimator::Cox(model) = model {
            let scale = |column: usize| covariates.column(column).std(0.0);
            let sum: f64 = (0..3).map(|k| model.coefficients[k].value * scale(k).powi(2)).sum();
            assert!(sum.abs() < 1e-8, "{sum}");
        }
    }
}

#[test]
fn a_flag_that_is_set_ends_every_fit() {
    let covariates = Array2::from_shape_fn((60, 2), |(row, column)| ((row * (7 + 6 * column)) % 61) as f64);
    let time = (0..60).map(|row| 1.0 + f64::from((row * 37) % 59)).collect();
    let outcomes = Outcomes::new(time, (0..60).map(|row| row % 4 != 0).collect()).unwrap();
    let stop = Stop::default();
    stop.set();
    let names = ["a", "b"].map(str::to_owned);
    let subjects: Vec<SubjectId> = (0..60).map(|row| SubjectId::new(row.to_string())).collect();
    for (name, _) in Estimator::CATALOGUE {
        let estimator = Estimator::by_name(name).unwrap();
        let is_stopped = |found: Result<FittedEstimator, ClassicalError>| match found {
            Err(ClassicalError::OfCause { source, .. }) => {
                matches!(*source, ClassicalError::Metric(MetricError::Stopped))
            }
            found => matches!(found, Err(ClassicalError::Metric(MetricError::Stopped))),
        };
        assert!(is_stopped(estimator.fit_until(&covariates, &outcomes, &stop)), "{name}");
        assert!(is_stopped(estimator.fit_named(&covariates, &outcomes, &names, &subjects, &stop)), "{name}");
    }
}

#[test]
fn every_name_of_the_catalogue_is_an_estimator_that_fits_predicts_and_is_read_again() {
    let covariates = Array2::from_shape_fn((60, 2), |(row, column)| ((row * (7 + 6 * column)) % 61) as f64);
    let noise = |row: usize| ((row * 37) % 59) as f64;
    let time: Vec<f64> = (0..60).map(|row| 1.0 + covariates[[row, 0]] + noise(row)).collect();
    let outcomes = Outcomes::new(time, (0..60).map(|row| row % 4 != 0).collect()).unwrap();
    for (name, _) in Estimator::CATALOGUE {
        let estimator = Estimator::by_name(name).unwrap().with_seed(3);
        assert_eq!(estimator.name(), *name);
        estimator.check().unwrap();
        let text = serde_json::to_string(&estimator).unwrap();
        assert_eq!(serde_json::from_str::<Estimator>(&text).unwrap(), estimator);
        let model = estimator.fit(&covariates, &outcomes).unwrap();
        assert_eq!((model.name(), model.n_covariates()), (*name, 2));
        let kept: FittedEstimator = serde_json::from_str(&serde_json::to_string(&model).unwrap()).unwrap();
        let grid = [0.0, 20.0, 60.0, 90.0];
        let curves = kept.survival_curves(&covariates, &grid).unwrap();
        assert_eq!(curves, model.survival_curves(&covariates, &grid).unwrap(), "{name}");
        // The sample with the highest risk has the lower curve.
        let risk = kept.risk(&covariates).unwrap();
        let by_risk = |a: &usize, b: &usize| risk[*a].total_cmp(&risk[*b]);
        let (low, high) = ((0..60).min_by(by_risk).unwrap(), (0..60).max_by(by_risk).unwrap());
        assert!(curves.survival()[[high, 2]] < curves.survival()[[low, 2]], "{name}");
        // The event comes early where the first covariate is low.
        assert!(covariates[[high, 0]] < covariates[[low, 0]], "{name}");
    }
    assert_eq!(Estimator::by_name("erm"), None);
}

/// 90 samples of which cause 2 is frequent where the covariate is high; cause 7 is the other.
fn two_causes() -> (Array2<f64>, CompetingOutcomes) {
    let covariates = Array2::from_shape_fn((90, 2), |(row, column)| ((row * (37 + 6 * column)) % 89) as f64 / 89.0);
    let time = (0..90).map(|row| 1.0 + ((row * 53) % 83) as f64 / 10.0 - covariates[[row, 0]]).collect();
    let cause = |row: usize| match ((row * 29) % 13) as f64 / 13.0 {
        u if u < 0.2 => 0,
        u if u < 0.2 + 0.7 * covariates[[row, 0]] => 2,
        _ => 7,
    };
    (covariates.clone(), CompetingOutcomes::new(time, (0..90).map(cause).collect()).unwrap())
}

#[test]
fn numbers_of_causes_may_have_gaps_and_curves_are_one_minus_the_incidence() {
    let (covariates, outcomes) = two_causes();
    let names = ["a", "b"].map(str::to_owned);
    let subjects: Vec<SubjectId> = (0..90).map(|row| SubjectId::new(format!("p{row}"))).collect();
    let grid = [0.0, 3.0, 6.0, 12.0];
    // The same outcomes with causes 1 and 2, by the models of the library.
    let numbered = outcomes.cause().iter().map(|cause| [0, 1, 2][usize::from(*cause > 0) + usize::from(*cause > 2)]);
    let plain = CompetingOutcomes::new(outcomes.time().to_vec(), numbered.collect()).unwrap();
    let combined = crate::CauseSpecific::fit(&CoxSettings::default(), &covariates, &plain).unwrap();
    for (cause, number) in [(2, 1), (7, 2)] {
        let fit = |name: &str| {
            let estimator = Estimator::by_name(name).unwrap();
            let fitted = estimator.fit_causes(&covariates, &outcomes, cause, &names, &subjects).unwrap();
            (fitted.survival_curves(&covariates, &grid).unwrap(), fitted)
        };
        let (curves, fitted) = fit("cause-specific");
        let expected = combined.incidence_curves(&covariates, number, &grid).unwrap();
        assert_eq!(curves, *expected.without());
        let risk = fitted.risk(&covariates).unwrap();
        let last = combined.incidence_curves(&covariates, number, &[9.3]).unwrap().incidence();
        assert!(risk.iter().zip(last.column(0)).all(|(a, b)| (a - b).abs() < 1e-15 && *a > 0.0));
        let whats: Vec<String> = fitted.ratios(0.95, &names).into_iter().map(|ratios| ratios.what).collect();
        assert_eq!(whats, ["hazard ratios of cause 2", "hazard ratios of cause 7"]);
        let (curves, fitted) = fit("fine-gray");
        let model = FineGraySettings { cause: number, ..FineGraySettings::default() };
        let model = model.fit(&covariates, &plain).unwrap();
        assert_eq!(curves, *model.incidence_curves(&covariates, &grid).unwrap().without());
        let ratios = fitted.ratios(0.95, &names);
        assert_eq!(ratios[0].what, format!("subdistribution hazard ratios of cause {cause}"));
        let crate::Ratio { name, value: ratio, interval } = &ratios[0].terms[0];
        let (lower, upper) = interval.unwrap();
        let [b, error] = [model.coefficients[0].value, model.coefficients[0].standard_error];
        let reach = 1.959_963_984_540_054 * error;
        assert!(name == "a" && (ratio - b.exp()).abs() < 1e-12);
        assert!((lower - (b - reach).exp()).abs() < 1e-9 && (upper - (b + reach).exp()).abs() < 1e-9);
    }
}

#[test]
fn with_one_kind_of_event_both_are_cox_models_and_no_other_estimator_models_causes() {
    let (covariates, outcomes) = two_causes();
    let events = outcomes.all_causes();
    let grid = [0.0, 2.0, 5.0, 8.0];
    let curves = |estimator: &Estimator| {
        estimator.fit(&covariates, events).unwrap().survival_curves(&covariates, &grid).unwrap()
    };
    let cox = |ties| curves(&Estimator::Cox(CoxSettings { ties, ..CoxSettings::default() }));
    let named = |name: &str| curves(&Estimator::by_name(name).unwrap());
    let pairs = [("cause-specific", crate::CoxTies::Efron), ("fine-gray", crate::CoxTies::Breslow)];
    for (name, ties) in pairs {
        let (own, other) = (named(name), cox(ties));
        let largest = own.survival().iter().zip(other.survival()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(largest < 1e-9, "{name}: {largest}");
    }
    assert_eq!(Estimator::of_causes().collect::<Vec<_>>(), ["fine-gray", "cause-specific"]);
    let columns = ["a", "b"].map(str::to_owned);
    let cox = Estimator::by_name("cox").unwrap().fit_causes(&covariates, &outcomes, 2, &columns, &[]).unwrap_err();
    assert_eq!(
        cox.to_string(),
        "cox models one kind of event, expected one of fine-gray, cause-specific for one of several causes"
    );
}

#[test]
fn with_one_kind_of_event_columns_keep_their_names_and_robust_errors_count_subjects() {
    let (covariates, outcomes) = two_causes();
    let names = ["age", "dose"].map(str::to_owned);
    let subjects: Vec<SubjectId> = (0..90).map(|row| SubjectId::new(format!("p{}", row / 3))).collect();
    let fit = |estimator: Estimator, subjects: &[SubjectId]| {
        estimator.fit_named(&covariates, outcomes.all_causes(), &names, subjects, &Stop::default()).unwrap()
    };
    let robust = CoxSettings { errors: crate::CoxErrors::Robust, ..CoxSettings::default() };
    let FittedEstimator::Cox(cox) = fit(Estimator::Cox(robust.clone()), &subjects) else { panic!("another model") };
    let specific = Estimator::CauseSpecific(CauseSpecificSettings(robust));
    let FittedEstimator::CauseSpecific(specific) = fit(specific, &subjects) else { panic!("another model") };
    assert_eq!(specific.model(1), Some(&cox));
    let fine_gray = Estimator::FineGray(FineGraySettings { cause: 5, ..FineGraySettings::default() });
    let FittedEstimator::FineGray(fine_gray) = fit(fine_gray, &subjects) else { panic!("another model") };
    let terms: Vec<&str> = fine_gray.coefficients.iter().map(|term| term.name.as_str()).collect();
    assert_eq!((terms, fine_gray.cause), (vec!["age", "dose"], 1));
}

/// Three wards: 1 has no event of cause 7, 2 has none at all.
#[test]
fn a_stratum_without_events_of_one_cause_has_the_incidence_of_the_others() {
    let (covariates, outcomes) = two_causes();
    let ward = |row: usize| [0.0, 1.0, 2.0][row % 3];
    let x = Array2::from_shape_fn((90, 3), |(row, k)| if k == 0 { ward(row) } else { covariates[[row, k - 1]] });
    let cause = outcomes.cause().iter().zip(0..).map(|(cause, row)| match (row % 3, cause) {
        (1, 7) => 2,
        (2, _) => 0,
        (_, cause) => *cause,
    });
    let outcomes = CompetingOutcomes::new(outcomes.time().to_vec(), cause.collect()).unwrap();
    let names = ["ward", "a", "b"].map(str::to_owned);
    let subjects: Vec<SubjectId> = (0..90).map(|row| SubjectId::new(format!("p{row}"))).collect();
    let settings = CoxSettings { strata: vec!["ward".to_owned()], ..CoxSettings::default() };
    let estimator = Estimator::CauseSpecific(CauseSpecificSettings(settings));
    let fit = |cause: u32| estimator.fit_causes(&x, &outcomes, cause, &names, &subjects).unwrap();
    assert_eq!(fit(2).strata(), ["ward"]);
    let (grid, rows) = ([0.0, 2.0, 5.0, 9.0], [1, 4, 31, 88]);
    let of_ward = x.select(ndarray::Axis(0), &rows);
    let FittedEstimator::CauseSpecific(own) = fit(2) else { panic!("another model") };
    let expected = own.model(2).unwrap().survival_curves(&of_ward, &grid).unwrap();
    let found = fit(2).survival_curves(&of_ward, &grid).unwrap();
    for (found, expected) in found.survival().iter().zip(expected.survival()) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
    assert!(expected.survival()[[0, 3]] < 0.9);
    let none = fit(7).survival_curves(&of_ward, &grid).unwrap();
    assert!(none.survival().iter().all(|survival| (survival - 1.0).abs() < 1e-12));
    let error = fit(2).survival_curves(&x, &grid).unwrap_err().to_string();
    assert_eq!(error, "row 2 is in the stratum ward=2, expected one with events in the fit: ward=0; ward=1");
}

#[test]
fn names_in_settings_may_stand_for_several_columns() {
    let levels = |name: &str| match name {
        "site" => vec!["site=B".to_owned(), "site=C".to_owned()],
        other => vec![other.to_owned()],
    };
    let wanted = ["age", "site"].map(str::to_owned).to_vec();
    let expected = ["age", "site=B", "site=C"].map(str::to_owned).to_vec();
    let cox = |strata: Vec<String>| CoxSettings { strata, ..CoxSettings::default() };
    let varying = |names| CoxTimeVaryingSettings { varying: names, ..CoxTimeVaryingSettings::default() };
    for (given, expanded) in [
        (Estimator::Cox(cox(wanted.clone())), Estimator::Cox(cox(expected.clone()))),
        (
            Estimator::CauseSpecific(CauseSpecificSettings(cox(wanted.clone()))),
            Estimator::CauseSpecific(CauseSpecificSettings(cox(expected.clone()))),
        ),
        (Estimator::CoxTimeVarying(varying(Some(wanted))), Estimator::CoxTimeVarying(varying(Some(expected)))),
        (Estimator::CoxTimeVarying(varying(None)), Estimator::CoxTimeVarying(varying(None))),
        (Estimator::Forest(ForestSettings::default()), Estimator::Forest(ForestSettings::default())),
    ] {
        assert_eq!(given.with_columns(levels), expanded);
    }
}

#[test]
fn errors_name_cause_and_column() {
    let (mut covariates, outcomes) = two_causes();
    let names = ["age", "copy"].map(str::to_owned);
    let subjects: Vec<SubjectId> = (0..90).map(|row| SubjectId::new(format!("p{row}"))).collect();
    let specific = Estimator::by_name("cause-specific").unwrap();
    let no_event = specific.fit_causes(&covariates, &outcomes, 3, &names, &subjects).unwrap_err().to_string();
    assert_eq!(no_event, "the model of cause 3: no sample has an event, expected at least one");
    let own = covariates.column(0).to_owned();
    covariates.column_mut(1).assign(&own);
    for (name, start) in
        [("cause-specific", "the model of cause 2: covariate \"copy\""), ("fine-gray", "covariate \"copy\"")]
    {
        let estimator = Estimator::by_name(name).unwrap();
        let said = estimator.fit_causes(&covariates, &outcomes, 2, &names, &subjects).unwrap_err().to_string();
        assert!(said.starts_with(start) && said.contains("linear combination of others (\"age\")"), "{said}");
    }
}

/// 60 people with three columns of noise, `copies` samples each.
fn noise(copies: usize) -> (Array2<f64>, Outcomes, Vec<SubjectId>) {
    let person = |row: usize| row / copies;
    let spread = |k: usize, step: f64| ((k as f64 + 0.5) * step).fract();
    let covariates =
        Array2::from_shape_fn((60 * copies, 3), |(row, k)| spread(person(row), [0.754_877, 0.569_84, 0.430_159][k]));
    let time = (0..60 * copies).map(|row| 1.0 + spread(person(row), 0.618_034) * 10.0).collect();
    let outcomes = Outcomes::new(time, (0..60 * copies).map(|row| person(row) % 3 != 0).collect()).unwrap();
    let subjects = (0..60 * copies).map(|row| SubjectId::new(format!("p{}", person(row)))).collect();
    (covariates, outcomes, subjects)
}

#[test]
fn samples_of_a_subject_are_drawn_together_and_noise_predicts_nothing() {
    let names = ["a", "b", "c"].map(str::to_owned);
    let forest = Estimator::Forest(ForestSettings { trees: 100, ..ForestSettings::default() });
    let error = |copies: usize, by_subject: bool| {
        let (covariates, outcomes, mut subjects) = noise(copies);
        if !by_subject {
            subjects = (0..subjects.len()).map(|row| SubjectId::new(row.to_string())).collect();
        }
        let fitted = forest.fit_named(&covariates, &outcomes, &names, &subjects, &Stop::default()).unwrap();
        let checks = fitted.checks(&covariates, &outcomes, &names, &subjects);
        // The file of the model keeps who was drawn.
        let read: FittedEstimator = serde_json::from_str(&serde_json::to_string(&fitted).unwrap()).unwrap();
        assert_eq!(read, fitted);
        checks.out_of_bag_error.unwrap()
    };
    let (alone, together, by_sample) = (error(1, true), error(4, true), error(4, false));
    assert!(alone > 0.35 && together > 0.35, "{alone} {together}");
    assert!(by_sample < 0.2, "copies of a sample predict it: {by_sample}");
    // One sample per subject is drawn as without subjects.
    let (covariates, outcomes, subjects) = noise(1);
    let alone_too = forest.fit_named(&covariates, &outcomes, &names, &subjects, &Stop::default()).unwrap();
    assert_eq!(alone_too, forest.fit(&covariates, &outcomes).unwrap());
}

#[test]
fn boosting_holds_out_all_samples_of_a_subject() {
    let early_stopping = Some(crate::EarlyStopping { share: 0.3, patience: 5, tolerance: 0.0 });
    let settings =
        BoostingSettings { trees: 300, early_stopping, subsample: 0.5, max_depth: 6, ..BoostingSettings::default() };
    let trees = |copies: usize, by_subject: bool| {
        let (covariates, outcomes, mut subjects) = noise(copies);
        if !by_subject {
            subjects = (0..subjects.len()).map(|row| SubjectId::new(row.to_string())).collect();
        }
        settings.fit_subjects(&covariates, &outcomes, &subjects, &Stop::default()).unwrap().n_trees()
    };
    // The loss of people who are held out rises soon; copies of samples of the fit are predicted better with every tree.
    let (alone, together, by_sample) = (trees(1, true), trees(4, true), trees(4, false));
    assert!(alone < 40 && together < 40, "{alone} {together}");
    assert!(by_sample > 100, "{by_sample}");
    let (covariates, outcomes, subjects) = noise(1);
    let fitted = settings.fit_subjects(&covariates, &outcomes, &subjects, &Stop::default()).unwrap();
    assert_eq!(fitted, settings.fit(&covariates, &outcomes).unwrap());
}
