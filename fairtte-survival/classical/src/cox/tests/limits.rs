//! Strata, what is refused, and what is stored.

use super::*;

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
    let error = model.survival_curves(&other, &[1.0]).unwrap_err();
    let expected = "is in the stratum 0=7, expected one with events in the fit: 0=0; 0=1; 0=2";
    assert_eq!(error.to_string(), format!("row 4 {expected}"));
    let ids: Vec<SampleId> = (0..90).map(|row| SampleId::new(format!("s{row}"))).collect();
    assert_eq!(error.with_samples(&ids).to_string(), format!("sample \"s4\" {expected}"));
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
    // A column and its double in three decimals, whose difference no coefficient of bearable size can weigh.
    let double = noise.mapv(|value| (2000.0 * value).round() / 1000.0);
    let message =
        refuse(&concatenate![Axis(1), noise.clone().insert_axis(Axis(1)), double.insert_axis(Axis(1))], &plain);
    assert!(message.contains("or nearly repeat each other, so that the likelihood has no maximum"), "{message}");
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
