//! Schoenfeld residuals and the test of proportional hazards.

use super::*;

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
