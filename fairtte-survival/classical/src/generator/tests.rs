//! Expected values are the printed formulas, integrals computed by Simpson's rule, and the laws that the draws must follow.

#![expect(clippy::unwrap_used, clippy::float_cmp, reason = "a failed test may panic, and copies are exact")]

use ndarray::Array2;

use super::course::{Course, SHIFT};
use super::*;

const X: [f64; 4] = [0.3, 0.8, 0.6, 0.2];

type Printed = fn(f64, [f64; 4], f64) -> f64;

/// The printed hazards again, as functions of a, x and t.
fn printed() -> Vec<(Hazard, Printed)> {
    vec![
        (Hazard::Constant1, |a, x, _| 0.5 * (-2.0 + a + x[0]).exp()),
        (Hazard::Constant2, |a, x, _| 0.5 * (-2.0 + a * x[0] + x[0]).exp()),
        (Hazard::Scenario1, |a, x, _| 0.3 * (0.1 * a + 0.3 * a * x[0] + 0.2 * a * x[1]).exp()),
        (Hazard::Scenario2, |a, x, _| 0.3 * (0.1 * a + (if x[0] > 0.0 { 0.1 } else { 0.5 }) * a * x[0]).exp()),
        (Hazard::Scenario3, |a, _, t| 0.5 * (0.1 * a + 0.5 * a * t).exp()),
        (Hazard::Scenario4, |a, _, t| 0.5 * (0.1 * a + (if t > 10.0 { 0.05 } else { 0.01 }) * a * t).exp()),
        (Hazard::Scenario5, |a, _, t| 0.8 * (0.8 * a - 0.05 * a * t).exp()),
        (Hazard::Scenario6, |a, _, t| 0.8 * (0.8 * a - (if t > 10.0 { 0.05 } else { 0.01 }) * a * t).exp()),
        (Hazard::Scenario7, |a, x, t| 0.5 * (0.3 * a * x[0] - 0.1 * a * t + 0.1 * x[2] * t).exp()),
        (Hazard::Scenario8, |a, x, t| 0.5 * (-0.3 * a * x[0] + 0.1 * a * t + 0.01 * x[2] * t).exp()),
        (Hazard::Scenario9, |a, x, t| 0.3 * (0.2 * a * x[0] * (t + 0.01).ln() + 0.2 * a).exp()),
        (Hazard::Scenario10, |a, x, t| {
            0.3 * (0.2 * a * x[0] * (t + 0.01).ln() - 0.1 * a * x[1] * (t + 0.01).ln() + 0.2 * a).exp()
        }),
        (Hazard::Censoring1, |_, x, _| 0.2 * (0.1 * x[2]).exp()),
        (Hazard::Censoring3, |_, x, t| 0.3 * (0.01 * x[2].powi(2) * t).exp()),
        (Hazard::Censoring10, |_, x, _| 0.1 * (0.2 * x[0]).exp()),
    ]
}

/// Simpson's rule over `[from, to]`.
fn integral(of: impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
    let n = 20_000;
    let width = (to - from) / f64::from(n);
    let at = |k: i32| {
        let weight = if k == 0 || k == n {
            1.0
        } else if k % 2 == 1 {
            4.0
        } else {
            2.0
        };
        weight * of(from + width * f64::from(k))
    };
    (0..=n).map(at).sum::<f64>() * width / 3.0
}

/// The integral of a hazard from 0 to `t`, of log(t + 0.01) so that its steep start is resolved, in parts at the knee.
fn integrated(hazard: impl Fn(f64) -> f64, t: f64) -> f64 {
    let knees = [0.0, t.min(10.0), t];
    let part = |from: f64, to: f64| {
        // Just beyond the knee the hazard is that of later times.
        let inside = |v: f64| (v.exp() - SHIFT).clamp(from + if from > 0.0 { 1e-12 } else { 0.0 }, to);
        integral(|v| hazard(inside(v)) * v.exp(), (from + SHIFT).ln(), (to + SHIFT).ln())
    };
    knees.windows(2).filter(|ends| ends[1] > ends[0]).map(|ends| part(ends[0], ends[1])).sum()
}

#[test]
fn every_printed_hazard_has_its_formula_its_integral_and_the_inverse_of_it() {
    for x in [X, [-0.7, 0.4, -1.2, 0.0]] {
        for (hazard, formula) in printed() {
            for a in [0.0, 1.0] {
                let course = hazard.course(a, &x);
                for t in [0.001, 0.5, 3.0, 9.9, 12.5] {
                    let (found, expected) = (course.hazard(t), formula(a, x, t));
                    assert!((found / expected - 1.0).abs() < 1e-12, "{hazard:?} {a} {t}: {found} {expected}");
                    let (found, expected) = (course.cumulative(t), integrated(|t| formula(a, x, t), t));
                    assert!((found / expected - 1.0).abs() < 1e-9, "{hazard:?} {a} {t}: {found} {expected}");
                    let back = course.inverse(found);
                    assert!((back / t - 1.0).abs() < 1e-9, "{hazard:?} {a} {t}: {back}");
                }
            }
        }
    }
}

#[test]
fn hazards_of_our_own_follow_their_formulas() {
    let gauss = Gauss { covariates: 2, rate: 0.5, treatment: 0.3, height: 1.5, width: 0.25 };
    let bump = (-(0.04 + 0.09) / 2.0 / (2.0 * 0.0625_f64)).exp();
    let expected = 0.5 * (0.3 + 1.5 * bump).exp();
    assert!((Hazard::Gauss(gauss).course(1.0, &X).hazard(4.0) - expected).abs() < 1e-12);
    let piece = Piece { covariates: 4, rate: 0.5, treatment: 0.3, below: 0.4, above: 2.0 };
    let sum = 0.4 * 0.3 + (0.2 + 2.0 * 0.3) + (0.2 + 2.0 * 0.1) + 0.4 * 0.2;
    let expected = 0.5 * (0.3_f64 + sum / 2.0).exp();
    assert!((Hazard::Piece(piece).course(1.0, &X).hazard(0.0) - expected).abs() < 1e-12);
    let log_linear = LogLinear {
        rate: 0.2,
        treatment: 0.5,
        covariates: vec![1.0, 2.0],
        treatment_covariates: vec![0.0, 0.0, -1.0],
        time: 0.1,
        treatment_time: 0.2,
        covariates_time: vec![-0.3],
        clock: Clock::Linear,
    };
    let formula = |a: f64, c: f64| {
        let slope = 0.1 + 0.2 * a - 0.3 * 0.3;
        0.2 * (0.5 * a + 0.3 + 2.0 * 0.8 - a * 0.6 + slope * c).exp()
    };
    for a in [0.0, 1.0] {
        let linear = Hazard::LogLinear(log_linear.clone()).course(a, &X);
        assert!((linear.hazard(2.0) / formula(a, 2.0) - 1.0).abs() < 1e-12);
        let log = Hazard::LogLinear(LogLinear { clock: Clock::Log, ..log_linear.clone() }).course(a, &X);
        assert!((log.hazard(2.0) / formula(a, 2.01_f64.ln()) - 1.0).abs() < 1e-12);
        let expected = integrated(|t| formula(a, (t + 0.01).ln()), 2.0);
        assert!((log.cumulative(2.0) / expected - 1.0).abs() < 1e-9);
    }
    assert_eq!(Hazard::LogLinear(log_linear).n_covariates(), 3);
}

#[test]
fn a_hazard_that_dies_out_leaves_some_without_an_event_and_extremes_stay_numbers() {
    // The integral of exp(-t) stays below 1.
    let dying = Course::Growth { rate: 1.0, slope: -1.0 };
    assert_eq!(dying.inverse(1.0), f64::INFINITY);
    assert!((dying.inverse(0.5) - 2.0_f64.ln()).abs() < 1e-12);
    let inverse_time = Course::Power { rate: 2.0, power: -1.0 };
    assert!((inverse_time.cumulative(0.99) - 2.0 * 100.0_f64.ln()).abs() < 1e-9);
    assert!((inverse_time.inverse(2.0 * 100.0_f64.ln()) - 0.99).abs() < 1e-9);
    let steep = Course::Power { rate: 1.0, power: -3.0 };
    assert_eq!(steep.inverse(1e9), f64::INFINITY);
    assert!((steep.cumulative(1e9) - 5000.0).abs() < 1e-6);
    assert_eq!(Course::constant(0.0).inverse(1.0), f64::INFINITY);
    assert_eq!(Course::Growth { rate: 1.0, slope: 10.0 }.cumulative(1e6), f64::INFINITY);
    assert_eq!(Course::constant(0.0).cumulative(f64::INFINITY), 0.0);
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, n) = values.into_iter().fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    sum / n
}

fn covariance(x: &[f64], y: &[f64]) -> f64 {
    let (of_x, of_y) = (mean(x.iter().copied()), mean(y.iter().copied()));
    mean(x.iter().zip(y).map(|(x, y)| (x - of_x) * (y - of_y)))
}

#[test]
fn event_and_censoring_times_follow_the_true_curves() {
    let hazards = [Hazard::Scenario4, Hazard::Scenario7, Hazard::Scenario10, Hazard::Piece(Piece::default())];
    for hazard in hazards {
        let censoring = CensoringSettings { hazard: Hazard::Censoring10, ..CensoringSettings::default() };
        let follow_up = FollowUpSettings { maximum: 12.0, accrual: 6.0, ..FollowUpSettings::default() };
        let settings = GeneratorSettings { n: 20_000, hazard, censoring, follow_up, ..GeneratorSettings::default() };
        let cohort = generate(&settings, 3).unwrap();
        let grid = [0.3, 1.0, 2.5, 7.0, 11.0];
        let arms = [Arm::Observed, Arm::Untreated, Arm::Treated];
        let curves = arms.map(|arm| cohort.survival(arm, &grid).unwrap().mean().unwrap());
        let censored = cohort.censoring_survival(&grid).unwrap().mean().unwrap();
        // Standard error of a share of 20,000: at most 0.0035.
        for (k, t) in grid.into_iter().enumerate() {
            let later = |times: &[f64]| mean(times.iter().map(|time| f64::from(u8::from(*time > t))));
            let [untreated, treated] =
                [0, 1].map(|a| cohort.potential_times.iter().map(|times| times[a]).collect::<Vec<_>>());
            assert!((later(&cohort.event_time) - curves[0][k]).abs() < 0.013, "{t}");
            assert!((later(&untreated) - curves[1][k]).abs() < 0.013, "{t}");
            assert!((later(&treated) - curves[2][k]).abs() < 0.013, "{t}");
            assert!((later(&cohort.censoring_time) - censored[k]).abs() < 0.013, "{t}");
        }
        for row in 0..200 {
            let (t, c) = (cohort.event_time[row], cohort.censoring_time[row]);
            assert_eq!(cohort.outcomes.time()[row], t.min(c));
            assert_eq!(cohort.outcomes.event()[row], t <= c);
            assert_eq!(t, cohort.potential_times[row][usize::from(cohort.treatment[row])]);
            assert!(c <= 12.0);
        }
    }
}

#[test]
fn covariates_and_the_unmeasured_one_have_the_correlations_asked_for() {
    for r in [0.4, -0.2] {
        let covariates = CovariateSettings { count: 4, correlation: r, scale: Scale::None };
        let unmeasured = UnmeasuredSettings { correlation: 0.25, ..UnmeasuredSettings::default() };
        let settings = GeneratorSettings { n: 20_000, covariates, unmeasured, ..GeneratorSettings::default() };
        let cohort = generate(&settings, 5).unwrap();
        let columns: Vec<Vec<f64>> = (0..4).map(|place| cohort.covariates.column(place).to_vec()).collect();
        for (i, x) in columns.iter().enumerate() {
            assert!((covariance(x, &cohort.unmeasured) - 0.25).abs() < 0.03, "{i}");
            for (j, y) in columns.iter().enumerate() {
                assert!((covariance(x, y) - if i == j { 1.0 } else { r }).abs() < 0.04, "{r} {i} {j}");
            }
        }
        assert!((covariance(&cohort.unmeasured, &cohort.unmeasured) - 1.0).abs() < 0.04);
        let scaled = CovariateSettings { scale: Scale::Unit, ..settings.covariates.clone() };
        let unit = generate(&GeneratorSettings { covariates: scaled, ..settings.clone() }, 5).unwrap();
        let expected = ((cohort.covariates[[7, 2]] + 4.0) / 8.0).clamp(0.0, 1.0);
        assert!((unit.covariates[[7, 2]] - expected).abs() < 1e-15);
        assert!(unit.covariates.iter().all(|x| (0.0..=1.0).contains(x)));
    }
}

#[test]
fn confounding_moves_the_treated_and_the_propensity_is_the_printed_one() {
    let treatment = TreatmentSettings { probability: 0.3, confounders: vec![0, 2], weight: 2.0, unmeasured: -1.5 };
    let hazard = Hazard::Piece(Piece { covariates: 4, ..Piece::default() });
    let settings = GeneratorSettings { n: 20_000, treatment, hazard, ..GeneratorSettings::default() };
    let cohort = generate(&settings, 2).unwrap();
    for row in [0, 11, 4_000] {
        let x = cohort.covariates.row(row);
        let logit = (0.3_f64 / 0.7).ln() + 2.0 * (x[0] + x[2]) - 1.5 * cohort.unmeasured[row];
        assert!((cohort.propensity[row] - 1.0 / (1.0 + (-logit).exp())).abs() < 1e-15);
    }
    let treated = mean(cohort.treatment.iter().map(|treated| f64::from(u8::from(*treated))));
    assert!((treated - mean(cohort.propensity.iter().copied())).abs() < 0.01);
    let arm = |treated: bool, place: usize| {
        mean((0..20_000).filter(|row| cohort.treatment[*row] == treated).map(|row| cohort.covariates[[row, place]]))
    };
    assert!(arm(true, 0) - arm(false, 0) > 0.02 && (arm(true, 1) - arm(false, 1)).abs() < 0.006);
}

#[test]
fn an_unmeasured_confounder_acts_on_both_hazards_and_is_no_covariate() {
    let unmeasured = UnmeasuredSettings { correlation: 0.0, hazard: 0.7, censoring: -0.4 };
    let settings = GeneratorSettings { n: 50, unmeasured, ..GeneratorSettings::default() };
    let (cohort, plain) =
        (generate(&settings, 1).unwrap(), generate(&GeneratorSettings { n: 50, ..Default::default() }, 1).unwrap());
    let log = |cohort: &Generated, row: usize| {
        let event = cohort.survival(Arm::Treated, &[2.0]).unwrap().survival()[[row, 0]].ln();
        (event, cohort.censoring_survival(&[2.0]).unwrap().survival()[[row, 0]].ln())
    };
    for row in 0..50 {
        let ((event, censoring), before) = (log(&cohort, row), log(&plain, row));
        let z = cohort.unmeasured[row];
        assert!((event / before.0 - (0.7 * z).exp()).abs() < 1e-9);
        assert!((censoring / before.1 - (-0.4 * z).exp()).abs() < 1e-9);
    }
    assert_eq!(cohort.inputs().ncols(), 11);
}

#[test]
fn dependence_has_the_kendall_tau_asked_for_and_keeps_the_censoring_curve() {
    for tau in [0.5, -0.3, 0.9] {
        let censoring = CensoringSettings { dependence: tau, ..CensoringSettings::default() };
        let follow_up = FollowUpSettings { maximum: 1e6, ..FollowUpSettings::default() };
        let settings = GeneratorSettings { n: 3_000, censoring, follow_up, ..GeneratorSettings::default() };
        let cohort = generate(&settings, 4).unwrap();
        let u: Vec<f64> = (0..3_000)
            .map(|row| {
                let rate = cohort.people[row].event[usize::from(cohort.treatment[row])];
                (-rate.cumulative(cohort.event_time[row])).exp()
            })
            .collect();
        let v: Vec<f64> = (0..3_000)
            .map(|row| (-cohort.people[row].censoring.cumulative(cohort.censoring_time[row])).exp())
            .collect();
        let mut concordant = 0.0;
        for i in 0..3_000 {
            for j in 0..i {
                concordant += ((u[i] - u[j]) * (v[i] - v[j])).signum();
            }
        }
        let found = concordant / (3_000.0 * 2_999.0 / 2.0);
        assert!((found - tau).abs() < 0.04, "{tau}: {found}");
        for q in [0.2, 0.5, 0.9] {
            assert!((mean(v.iter().map(|v| f64::from(u8::from(*v <= q)))) - q).abs() < 0.035, "{tau} {q}");
        }
    }
}

#[test]
fn more_people_do_not_change_the_first_ones_and_seeds_differ() {
    let of = |n: usize, seed: u64| generate(&GeneratorSettings { n, ..GeneratorSettings::default() }, seed).unwrap();
    let (few, many, other) = (of(40, 9), of(400, 9), of(40, 10));
    assert_eq!(few.outcomes.time(), &many.outcomes.time()[..40]);
    assert_eq!(few.treatment, many.treatment[..40]);
    assert_eq!(few.covariates, many.covariates.slice(ndarray::s![..40, ..]));
    assert_ne!(few.outcomes.time(), other.outcomes.time());
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| of(400, 9));
    assert_eq!(one.outcomes, many.outcomes);
}

#[test]
fn subgroups_have_their_shares_means_and_effects() {
    let subgroups = SubgroupSettings {
        shares: vec![0.8, 0.2],
        means: vec![0.3, 0.7],
        deviation: 0.1,
        hazards: vec![0.0, 0.5],
        censoring: vec![0.2, 0.0],
        ..SubgroupSettings::default()
    };
    let settings = GeneratorSettings { n: 20_000, subgroups, ..GeneratorSettings::default() };
    let cohort = generate(&settings, 6).unwrap();
    let rows = |group: usize| (0..20_000).filter(|row| cohort.subgroup[*row] == group).collect::<Vec<_>>();
    assert!((rows(1).len() as f64 / 20_000.0 - 0.2).abs() < 0.01);
    for (group, expected) in [(0, 0.3), (1, 0.7)] {
        let x: Vec<f64> = rows(group).into_iter().map(|row| cohort.covariates[[row, 0]]).collect();
        assert!((mean(x.iter().copied()) - expected).abs() < 0.006);
        assert!((covariance(&x, &x).sqrt() - 0.1).abs() < 0.004);
    }
    let first = rows(1)[0];
    let (x0, x1) = (cohort.covariates[[first, 0]], cohort.covariates[[first, 1]]);
    let hazard = 0.3 * (0.1 + 0.3 * x0 + 0.2 * x1).exp() * 0.5_f64.exp();
    let treated = cohort.survival(Arm::Treated, &[1.0]).unwrap();
    assert!((treated.survival()[[first, 0]] - (-hazard).exp()).abs() < 1e-12);
    let first = rows(0)[0];
    let x2_of_first = cohort.covariates[[first, 2]];
    let censoring = 0.2 * (0.1 * x2_of_first).exp() * 0.2_f64.exp();
    let found = cohort.censoring_survival(&[1.0]).unwrap().survival()[[first, 0]];
    assert!((found - (-censoring).exp()).abs() < 1e-12);
    let through = SubgroupSettings { through: Through::Unmeasured, ..settings.subgroups.clone() };
    let hidden = generate(&GeneratorSettings { subgroups: through, ..settings.clone() }, 6).unwrap();
    let z =
        |group: usize| mean((0..20_000).filter(|row| hidden.subgroup[*row] == group).map(|row| hidden.unmeasured[row]));
    assert!((z(0) - 0.3).abs() < 0.006 && (z(1) - 0.7).abs() < 0.006);
}

#[test]
fn intervals_have_the_hazards_of_equation_2_and_ties_are_events() {
    let follow_up = FollowUpSettings { maximum: 5.0, interval: Some(0.5), ..FollowUpSettings::default() };
    let censoring = CensoringSettings { hazard: Hazard::None, ..CensoringSettings::default() };
    let settings =
        GeneratorSettings { n: 20_000, hazard: Hazard::Scenario3, censoring, follow_up, ..Default::default() };
    let cohort = generate(&settings, 8).unwrap();
    let truth = cohort.survival(Arm::Observed, &[0.5, 1.0, 1.5]).unwrap();
    // Of those at risk, the share that fails in the third interval.
    let at_risk: Vec<usize> = (0..20_000).filter(|row| cohort.outcomes.time()[*row] > 1.0).collect();
    let failed =
        at_risk.iter().filter(|row| cohort.outcomes.time()[**row] <= 1.5).count() as f64 / at_risk.len() as f64;
    let expected = mean(at_risk.iter().map(|row| 1.0 - truth.survival()[[*row, 2]] / truth.survival()[[*row, 1]]));
    assert!((failed - expected).abs() < 0.02);
    assert!(cohort.outcomes.time().iter().all(|t| (t / 0.5).fract() == 0.0 && (0.5..=5.0).contains(t)));
    for row in 0..20_000 {
        // Without censoring by hazard every event before the end is seen.
        assert_eq!(cohort.outcomes.event()[row], cohort.event_time[row] <= 5.0);
    }
    let tied =
        GeneratorSettings { censoring: CensoringSettings { factor: 50.0, ..CensoringSettings::default() }, ..settings };
    let tied = generate(&tied, 8).unwrap();
    let same = |row: &usize| (tied.event_time[*row] / 0.5).ceil() == (tied.censoring_time[*row] / 0.5).ceil();
    let rows: Vec<usize> =
        (0..20_000).filter(same).filter(|row| tied.censoring_time[*row] < tied.event_time[*row]).collect();
    assert!(rows.len() > 100 && rows.iter().all(|row| tied.outcomes.event()[*row]));
}

#[test]
fn given_rows_are_scaled_by_column_and_taken_again() {
    let rows = Array2::from_shape_fn((10, 3), |(row, column)| (row * (column + 1)) as f64 - 4.0);
    let unmeasured = UnmeasuredSettings { correlation: 0.9, ..UnmeasuredSettings::default() };
    let settings = GeneratorSettings { n: 25, withheld: vec![1], unmeasured, ..GeneratorSettings::default() };
    let cohort = generate_on(&settings, &rows, 1).unwrap();
    assert!((cohort.covariates[[3, 1]] - 3.0 / 9.0).abs() < 1e-15);
    assert_eq!(cohort.covariates.row(3), cohort.covariates.row(23));
    assert_ne!(cohort.event_time[3], cohort.event_time[23]);
    assert_eq!((cohort.visible.clone(), cohort.visible_covariates().ncols()), (vec![0, 2], 2));
    assert_eq!(cohort.inputs()[[3, 2]], cohort.covariates[[3, 2]]);
    assert_eq!(cohort.inputs_if(true).column(0).sum(), 25.0);
    let low: f64 = mean([0, 10, 20].map(|row| cohort.unmeasured[row]));
    let high: f64 = mean([9, 19].map(|row| cohort.unmeasured[row]));
    assert!(high - low > 0.1);
    let constant = Array2::from_elem((4, 3), 2.0);
    let error = generate_on(&settings, &constant, 1).unwrap_err();
    assert_eq!(error.to_string(), "covariate 0 is the same in all 4 samples, expected one that varies");
    assert!(generate_on(&settings, &Array2::zeros((0, 3)), 1).is_err());
}

#[test]
fn settings_are_read_from_kebab_case_and_refused_in_one_sentence() {
    let text = r#"{"hazard": {"piece": {"covariates": 9}}, "treatment": {"confounders": [0, 8], "weight": 3.0},
        "censoring": {"hazard": "none"}, "follow-up": {"maximum": 4.0}, "withheld": [3]}"#;
    let settings: GeneratorSettings = serde_json::from_str(text).unwrap();
    assert_eq!(settings.hazard, Hazard::Piece(Piece { covariates: 9, ..Piece::default() }));
    settings.check().unwrap();
    assert!(serde_json::from_str::<GeneratorSettings>(r#"{"hazards": "scenario-1"}"#).is_err());
    let refused =
        |text: &str| serde_json::from_str::<GeneratorSettings>(text).unwrap().check().unwrap_err().to_string();
    let cases = [
        (r#"{"n": 0}"#, "n is 0, expected at least 1"),
        (r#"{"hazard": "none"}"#, "hazard is none, expected a hazard above 0"),
        (r#"{"covariates": {"count": 2}, "hazard": "scenario-7"}"#, "hazard is one that reads 3 covariates"),
        (r#"{"covariates": {"count": 5, "correlation": -0.25}}"#, "covariates.correlation is -0.25"),
        (r#"{"unmeasured": {"correlation": 0.5}}"#, "unmeasured.correlation is 0.5"),
        (r#"{"treatment": {"confounders": [2]}}"#, "treatment.confounders is 2, expected covariates that the hazard"),
        (r#"{"treatment": {"probability": 1.0}}"#, "treatment.probability is 1, expected a number between 0 and 1"),
        (r#"{"censoring": {"factor": -1.0}}"#, "censoring.factor is -1"),
        (r#"{"censoring": {"dependence": 1.0}}"#, "censoring.dependence is 1"),
        (r#"{"censoring": {"hazard": "none", "dependence": 0.2}}"#, "censoring.dependence is 0.2, expected 0 where"),
        (r#"{"subgroups": {"shares": [0.5, 0.4]}}"#, "subgroups.shares is [0.5, 0.4]"),
        (r#"{"subgroups": {"shares": [0.5, 0.5], "means": [0.1]}}"#, "subgroups.means is [0.1]"),
        (r#"{"subgroups": {"deviation": 0.0}}"#, "subgroups.deviation is 0"),
        (r#"{"follow-up": {"accrual": 20.0}}"#, "follow-up.accrual is 20"),
        (r#"{"follow-up": {"interval": 30.0}}"#, "follow-up.interval is 30"),
        (r#"{"follow-up": {"grid": 0}}"#, "follow-up.grid is 0"),
        (r#"{"withheld": [10]}"#, "withheld is 10"),
        (r#"{"covariates": {"count": 3}, "withheld": [0, 1, 2]}"#, "withheld is all covariates"),
        (r#"{"hazard": {"gauss": {"width": 0.0}}}"#, "gauss.width is 0, expected a finite number > 0"),
        (r#"{"hazard": {"log-linear": {"rate": -1.0}}}"#, "log-linear.rate is -1"),
    ];
    for (text, expected) in cases {
        let sentence = refused(text);
        assert!(sentence.starts_with(expected), "{sentence}");
    }
    let overflow = r#"{"n": 5, "hazard": {"log-linear": {"covariates": [1e308]}}, "covariates": {"scale": "none"}}"#;
    let settings: GeneratorSettings = serde_json::from_str(overflow).unwrap();
    assert!(matches!(generate(&settings, 1), Err(ClassicalError::Overflow { what: "hazard of the event", .. })));
}
