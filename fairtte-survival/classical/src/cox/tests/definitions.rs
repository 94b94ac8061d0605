//! Residuals, derivatives and tests against their definitions, written out.

use super::*;

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
