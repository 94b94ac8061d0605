#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use fairtte_metrics::seeds::stream;
use ndarray::{Array1, array, s};
use proptest::prelude::*;

use super::*;
use crate::newton::Objective as _;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Golden {
    x: Vec<Vec<f64>>,
    time: Vec<f64>,
    event: Vec<bool>,
    cuts: Vec<f64>,
    rows: Vec<usize>,
    fits: Vec<GoldenFit>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct GoldenFit {
    effects: TimeEffects,
    censored: CensoredInterval,
    penalty: HazardPenalty,
    n_person_periods: usize,
    alphas: Vec<f64>,
    coefficients: Vec<f64>,
    standard_errors: Vec<f64>,
    log_likelihood: f64,
    log_likelihood_null: Option<f64>,
    hazards: Vec<Vec<f64>>,
}

fn golden() -> (Golden, Array2<f64>, Outcomes) {
    let golden: Golden = serde_json::from_str(include_str!("../../tests/golden/logistic_hazard.json")).unwrap();
    let x = Array2::from_shape_fn((golden.x.len(), golden.x[0].len()), |(row, column)| golden.x[row][column]);
    let outcomes = Outcomes::new(golden.time.clone(), golden.event.clone()).unwrap();
    (golden, x, outcomes)
}

fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found - expected).abs() <= tolerance * expected.abs().max(1.0), "{what}: {found} for {expected}");
}

fn estimates(model: &LogisticHazard) -> Vec<Estimate> {
    let alpha = |interval: &Interval| match interval.hazard {
        IntervalHazard::LogOdds(alpha) => Some(alpha),
        IntervalHazard::Zero | IntervalHazard::One => None,
    };
    let alphas = model.intervals.iter().filter_map(alpha);
    alphas.chain(model.coefficients.iter().copied()).chain(model.time_coefficients.iter().copied()).collect()
}

#[test]
fn estimates_are_those_of_statsmodels_and_scikit_learn_on_the_table_of_person_periods() {
    let (golden, x, outcomes) = golden();
    let rows = x.select(ndarray::Axis(0), &golden.rows);
    for of in &golden.fits {
        let settings = LogisticHazardSettings {
            cut_points: CutPointRule::Given(golden.cuts.clone()),
            effects: of.effects,
            penalty: of.penalty,
            censored: of.censored,
            ..LogisticHazardSettings::default()
        };
        let what = format!("{:?} {:?} {:?}", of.effects, of.censored, of.penalty);
        let model = settings.fit(&x, &outcomes).unwrap();
        assert_eq!(model.n_person_periods, of.n_person_periods, "{what}");
        let found = estimates(&model);
        assert_eq!(found.len(), of.alphas.len() + of.coefficients.len());
        let tolerance = if of.penalty == HazardPenalty::None { 1e-8 } else { 1e-6 };
        for (found, expected) in found.iter().zip(of.alphas.iter().chain(&of.coefficients)) {
            assert_close(found.value, *expected, tolerance, &what);
        }
        for (found, expected) in found.iter().zip(&of.standard_errors) {
            assert_close(found.standard_error.unwrap(), *expected, tolerance, &what);
        }
        let is_penalised = of.penalty != HazardPenalty::None;
        assert!(found.iter().all(|found| found.standard_error.is_none() == is_penalised));
        assert_close(model.log_likelihood, of.log_likelihood, 1e-9, &what);
        if let Some(null) = of.log_likelihood_null {
            assert_close(model.log_likelihood_null, null, 1e-10, &what);
        }
        let hazards = model.hazards(&rows).unwrap();
        for (found, expected) in hazards.iter().zip(of.hazards.iter().flatten()) {
            assert_close(*found, *expected, tolerance, &what);
        }
    }
}

/// n samples with p covariates, of which the first and last matter.
fn sample(seed: u64, n: usize, p: usize) -> (Array2<f64>, Outcomes) {
    let mut rng = stream(seed, "test/logistic-hazard", &[]);
    let x = Array2::from_shape_fn((n, p), |_| rng.random::<f64>());
    let (mut times, mut events) = (Vec::new(), Vec::new());
    for row in x.rows() {
        let mut wait = || -(1.0 - rng.random::<f64>()).ln();
        let (event, censored) = ((row[p - 1] - 1.5 * row[0]).exp() * wait(), 3.0 * wait());
        times.push(event.min(censored));
        events.push(event <= censored);
    }
    (x, Outcomes::new(times, events).unwrap())
}

fn without_penalty(cut_points: CutPointRule, effects: TimeEffects) -> LogisticHazardSettings {
    LogisticHazardSettings { cut_points, effects, penalty: HazardPenalty::None, ..LogisticHazardSettings::default() }
}

#[test]
fn derivatives_are_those_of_finite_differences() {
    let (x, outcomes) = sample(3, 70, 2);
    let ridge = Ridge { c: 2.0, standardise: false, intervals: true };
    for (effects, penalty) in [
        (TimeEffects::Constant, HazardPenalty::None),
        (TimeEffects::Linear, HazardPenalty::L2(Ridge { intervals: false, ..ridge })),
        (TimeEffects::Logarithmic, HazardPenalty::L2(ridge)),
    ] {
        let cut_points = CutPointRule::Quantile(4);
        let settings = LogisticHazardSettings { cut_points, effects, penalty, ..LogisticHazardSettings::default() };
        let cut_points = settings.cut_points.cut_points(&outcomes).unwrap();
        let likelihood = PersonPeriods::new(&x, &outcomes, &cut_points, &settings).unwrap().likelihood;
        let n_intervals = likelihood.n_intervals;
        let at = Array1::from_shape_fn(n_intervals + likelihood.n_others(), |k| 0.3 * (k as f64 - 4.0) % 0.7);
        let here = likelihood.at(&at);
        let information =
            |row: usize, column: usize| match (row.checked_sub(n_intervals), column.checked_sub(n_intervals)) {
                (None, None) if row == column => here.diagonal[row],
                (None, None) => 0.0,
                (None, Some(other)) => here.cross[[row, other]],
                (Some(other), None) => here.cross[[column, other]],
                (Some(row), Some(column)) => here.block[[row, column]],
            };
        for k in 0..at.len() {
            let h = 1e-5;
            let moved = |by: f64| {
                let mut there = at.clone();
                there[k] += by;
                likelihood.at(&there)
            };
            let (above, below) = (moved(h), moved(-h));
            assert_close(here.gradient[k], (above.value - below.value) / (2.0 * h), 1e-7, &format!("{effects:?} {k}"));
            for j in 0..at.len() {
                let bend = -(above.gradient[j] - below.gradient[j]) / (2.0 * h);
                assert_close(information(j, k), bend, 1e-7, &format!("{effects:?} {j} {k}"));
            }
        }
        // Newton's step solves the whole system.
        let step = likelihood.step(&at, &here).unwrap();
        for row in 0..at.len() {
            let product: f64 = (0..at.len()).map(|column| information(row, column) * step.by[column]).sum();
            assert_close(product, here.gradient[row], 1e-9, &format!("{effects:?} row {row}"));
        }
    }
}

#[test]
fn one_interval_is_a_fourfold_table() {
    // By time 1: 3 of 10 with the covariate and 6 of 9 without have the event; one more is censored before and says nothing.
    let mut rows = vec![(0.5, false, 1.0)];
    rows.extend([(0.3, true, 1.0); 3].into_iter().chain([(4.0, true, 1.0); 7]));
    rows.extend([(0.9, true, 0.0); 6].into_iter().chain([(1.0, false, 0.0); 3]));
    let outcomes =
        Outcomes::new(rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()).unwrap();
    let x = Array2::from_shape_fn((rows.len(), 1), |(row, _)| rows[row].2);
    let model = without_penalty(CutPointRule::Given(vec![1.0]), TimeEffects::Constant).fit(&x, &outcomes).unwrap();
    let Interval { n_at_risk: 19, n_events: 9, hazard: IntervalHazard::LogOdds(alpha) } = model.intervals[0] else {
        panic!("{:?}", model.intervals)
    };
    assert_close(alpha.value, 2.0_f64.ln(), 1e-12, "log odds without the covariate");
    assert_close(alpha.standard_error.unwrap(), (1.0_f64 / 6.0 + 1.0 / 3.0).sqrt(), 1e-12, "its error");
    assert_close(model.coefficients[0].value, (3.0_f64 / 7.0 / 2.0).ln(), 1e-12, "log odds ratio");
    let error = (1.0_f64 / 6.0 + 1.0 / 3.0 + 1.0 / 3.0 + 1.0 / 7.0).sqrt();
    assert_close(model.coefficients[0].standard_error.unwrap(), error, 1e-12, "error of the log odds ratio");
    let curves = model.survival_curves(&array![[0.0], [1.0]], &[0.0, 0.5, 1.0, 7.0]).unwrap();
    for (row, left) in [(0, 1.0_f64 / 3.0), (1, 0.7)] {
        for (found, expected) in curves.survival().row(row).iter().zip([1.0, left.sqrt(), left, left]) {
            assert_close(*found, expected, 1e-12, "survival");
        }
    }
    assert_eq!(model.risk(&array![[0.0], [2.0]]).unwrap(), [0.0, 2.0 * model.coefficients[0].value]);
}

#[test]
fn intervals_without_events_and_of_events_alone_have_hazards_of_0_and_1() {
    // No sample has an event in (1, 2]; the two left in (3, 4] both have one; none is left for (4, 5].
    let rows = [
        (0.5, true, 0.0),
        (0.7, true, 1.0),
        (0.7, true, 1.0),
        (1.5, false, 1.0),
        (2.5, true, 1.0),
        (2.5, true, 0.0),
        (3.0, false, 0.0),
        (3.0, false, 1.0),
        (3.5, true, 1.0),
        (4.0, true, 0.0),
    ];
    let outcomes =
        Outcomes::new(rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()).unwrap();
    let x = Array2::from_shape_fn((rows.len(), 1), |(row, _)| rows[row].2);
    let fit = |cuts: &[f64]| {
        without_penalty(CutPointRule::Given(cuts.to_vec()), TimeEffects::Constant).fit(&x, &outcomes).unwrap()
    };
    let model = fit(&[1.0, 2.0, 3.0, 4.0, 5.0]);
    let hazards = model.hazards(&x).unwrap();
    let counts: Vec<(usize, usize)> = model.intervals.iter().map(|of| (of.n_at_risk, of.n_events)).collect();
    assert_eq!(counts, [(10, 3), (6, 0), (6, 2), (2, 2), (0, 0)]);
    for row in 0..rows.len() {
        assert_eq!(hazards.slice(s![row, 1..2]).to_vec(), [0.0]);
        assert_eq!(hazards.slice(s![row, 3..]).to_vec(), [1.0, 0.0]);
    }
    let curves = model.survival_curves(&x, &[1.0, 1.5, 2.0, 3.0, 3.5, 4.0, 9.0]).unwrap();
    let survival = curves.survival();
    let curve = survival.row(0);
    assert!(curve[0] > 0.0 && curve[0] < 1.0 && curve[1] >= curve[2] && curve[0] <= curve[2], "{curve}");
    assert_eq!(curve.slice(s![5..]).to_vec(), [0.0, 0.0]);
    assert!(curves.survival().iter().all(|s| s.is_finite()));
    // What remains is the likelihood of the other two intervals: the same person-periods as with the cut points 1 and 3.
    let two = fit(&[1.0, 3.0]);
    assert_eq!(two.intervals.iter().map(|of| (of.n_at_risk, of.n_events)).collect::<Vec<_>>(), [(10, 3), (6, 2)]);
    assert_close(model.coefficients[0].value, two.coefficients[0].value, 1e-12, "coefficient");
    assert_close(model.log_likelihood, two.log_likelihood, 1e-12, "log-likelihood");
    let log_likelihood: f64 = [(10, 3), (6, 2)]
        .map(|(n, d): (u8, u8)| {
            let share = f64::from(d) / f64::from(n);
            f64::from(d) * share.ln() + f64::from(n - d) * (1.0 - share).ln()
        })
        .iter()
        .sum();
    assert_close(model.log_likelihood_null, log_likelihood, 1e-12, "log-likelihood of the hazards alone");
    // With penalised alphas every interval has one.
    let penalty = HazardPenalty::L2(Ridge { intervals: true, ..Ridge::default() });
    let cut_points = CutPointRule::Given(vec![1.0, 2.0, 3.0, 4.0, 5.0]);
    let penalised = LogisticHazardSettings { cut_points, penalty, ..LogisticHazardSettings::default() };
    let hazards = penalised.fit(&x, &outcomes).unwrap().hazards(&x).unwrap();
    assert!(hazards.iter().all(|hazard| *hazard > 0.0 && *hazard < 1.0), "{hazards}");
}

#[test]
fn a_penalty_shrinks_and_admits_what_separates() {
    let (x, outcomes) = sample(5, 80, 2);
    let fit = |x: &Array2<f64>, penalty: HazardPenalty| {
        LogisticHazardSettings { penalty, ..LogisticHazardSettings::default() }.fit(x, &outcomes)
    };
    let ridge = |c: f64| HazardPenalty::L2(Ridge { c, ..Ridge::default() });
    let size = |penalty| fit(&x, penalty).unwrap().coefficients.iter().map(|b| b.value.powi(2)).sum::<f64>();
    let sizes = [size(HazardPenalty::None), size(ridge(1.0)), size(ridge(0.01)), size(ridge(1e-10))];
    assert!(sizes.windows(2).all(|pair| pair[0] > pair[1]) && sizes[3] < 1e-15, "{sizes:?}");
    let weak = size(ridge(1e12));
    assert_close(weak, sizes[0], 1e-8, "hardly any penalty");
    let mut separating = x.clone();
    for (row, event) in outcomes.event().iter().enumerate() {
        separating[[row, 1]] = f64::from(u8::from(!event));
    }
    let expected = "covariate 1 separates the events from the other samples, so that the likelihood has no maximum: leave it \
                    out or merge levels";
    assert_eq!(fit(&separating, HazardPenalty::None).unwrap_err().to_string(), expected);
    assert!(fit(&separating, ridge(1.0)).unwrap().coefficients[1].value < -1.0);
    let mut twice = x.clone();
    twice.column_mut(1).assign(&x.column(0));
    let expected = "covariate \"b\" is a linear combination of others (\"a\"): leave one of them out";
    let names = ["a", "b"].map(str::to_owned);
    assert_eq!(fit(&twice, HazardPenalty::None).unwrap_err().with_names(&names).to_string(), expected);
    let shared = fit(&twice, ridge(1.0)).unwrap();
    assert_close(shared.coefficients[0].value, shared.coefficients[1].value, 1e-9, "equal columns");
}

#[test]
fn data_and_settings_that_cannot_be_are_named() {
    let (x, outcomes) = sample(7, 60, 2);
    let refused = |settings: &LogisticHazardSettings, outcomes: &Outcomes| {
        settings.fit(&x, outcomes).map(drop).unwrap_err().to_string()
    };
    let given = |cuts: &[f64], effects| without_penalty(CutPointRule::Given(cuts.to_vec()), effects);
    assert_eq!(
        refused(&given(&[1e-9, 2e-9], TimeEffects::Constant), &outcomes),
        "no sample has an event by 0.000000002, the last cut point, expected at least one"
    );
    let all = Outcomes::new(vec![0.5; 60], vec![true; 60]).unwrap();
    let expected = "in every interval with events all samples at risk have one, expected an interval in which some have an \
                    event and others do not";
    assert_eq!(refused(&given(&[1.0], TimeEffects::Constant), &all), expected);
    let penalty = HazardPenalty::L2(Ridge { intervals: true, ..Ridge::default() });
    assert_eq!(refused(&LogisticHazardSettings { penalty, ..given(&[1.0], TimeEffects::Constant) }, &all), expected);
    assert_eq!(
        refused(&given(&[0.5], TimeEffects::Linear), &outcomes),
        "effects is linear, expected constant, because one interval only has samples with and without event"
    );
    for c in [0.0, -1.0, f64::INFINITY, 1e-320] {
        let penalty = HazardPenalty::L2(Ridge { c, ..Ridge::default() });
        let found = refused(&LogisticHazardSettings { penalty, ..LogisticHazardSettings::default() }, &outcomes);
        assert_eq!(found, format!("penalty.l2.c is {c}, expected a finite number above 0"));
    }
    let reading =
        LogisticHazardSettings { reading: Reading::Refined { factor: 0 }, ..LogisticHazardSettings::default() };
    assert!(reading.check().is_err());
    let mut constant = x.clone();
    // Column 1 varies only in a sample that is censored before the first cut point.
    constant.column_mut(1).fill(2.0);
    constant[[4, 1]] = 3.0;
    let (mut times, mut events) = (outcomes.time().to_vec(), outcomes.event().to_vec());
    (times[4], events[4]) = (0.0, false);
    let early = Outcomes::new(times, events).unwrap();
    let found = LogisticHazardSettings::default().fit(&constant, &early).unwrap_err().to_string();
    assert!(found.starts_with("covariate 1 is the same among the samples at risk"), "{found}");
    constant.column_mut(1).fill(2.0);
    let found = LogisticHazardSettings::default().fit(&constant, &early).unwrap_err().to_string();
    assert!(found.starts_with("covariate 1 is the same in all "), "{found}");
    let model = LogisticHazardSettings::default().fit(&x, &outcomes).unwrap();
    for huge in [array![[1e308, 1e308]], array![[-1e308, 1e308]], array![[f64::MAX, -f64::MAX]]] {
        assert!(model.hazards(&huge).map_or(true, |hazards| hazards.iter().all(|hazard| (0.0..=1.0).contains(hazard))));
        assert!(model.risk(&huge).map_or(true, |risk| risk[0].is_finite()));
    }
    assert!(model.survival_curves(&x, &[f64::NAN]).is_err() && model.survival_curves(&x, &[2.0, 1.0]).is_err());
    assert_eq!(model.risk(&array![[1.0]]).unwrap_err().to_string(), "1 covariates, expected the 2 of the fit");
}

#[test]
fn a_model_is_the_same_with_any_number_of_threads_and_after_it_was_written() {
    let (x, outcomes) = sample(9, 3_000, 3);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for settings in
        [LogisticHazardSettings::default(), without_penalty(CutPointRule::Equidistant(30), TimeEffects::Linear)]
    {
        let model = settings.fit(&x, &outcomes).unwrap();
        assert_eq!(pool.install(|| settings.fit(&x, &outcomes)).unwrap(), model);
        let text = serde_json::to_string(&model).unwrap();
        assert_eq!(serde_json::from_str::<LogisticHazard>(&text).unwrap(), model);
    }
    let settings: LogisticHazardSettings = serde_json::from_str(
        "{\"cut-points\": {\"equidistant\": 3}, \"penalty\": {\"l2\": {\"c\": 0.1}}, \"effects\": \"linear\"}",
    )
    .unwrap();
    let expected = LogisticHazardSettings {
        cut_points: CutPointRule::Equidistant(3),
        penalty: HazardPenalty::L2(Ridge { c: 0.1, ..Ridge::default() }),
        effects: TimeEffects::Linear,
        ..LogisticHazardSettings::default()
    };
    assert_eq!(settings, expected);
    assert!(serde_json::from_str::<LogisticHazardSettings>("{\"C\": 1.0}").is_err());
}

const PENALTIES: [HazardPenalty; 4] = [
    HazardPenalty::None,
    HazardPenalty::L2(Ridge { c: 1.0, standardise: true, intervals: false }),
    HazardPenalty::L2(Ridge { c: 1.0, standardise: true, intervals: true }),
    HazardPenalty::L2(Ridge { c: 0.2, standardise: false, intervals: true }),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn curves_start_at_1_and_never_rise_with_any_reading(seed in 0_u64..1000, which in 0_usize..4, reading in 0_usize..4) {
        let (x, outcomes) = sample(seed, 60, 2);
        let readings = [Reading::ConstantHazard, Reading::Step, Reading::Linear, Reading::Refined { factor: 10 }];
        let settings = LogisticHazardSettings {
            cut_points: CutPointRule::Quantile(6),
            effects: TimeEffects::Linear,
            penalty: PENALTIES[which],
            reading: readings[reading],
            ..LogisticHazardSettings::default()
        };
        let model = settings.fit(&x, &outcomes).unwrap();
        let grid: Vec<f64> = (0..60).map(|k| f64::from(k) * 0.1).collect();
        let curves = model.survival_curves(&x, &grid).unwrap();
        let hazards = model.hazards(&x).unwrap();
        let ends = model.survival_curves(&x, model.cut_points.times()).unwrap();
        for row in 0..60 {
            let survival = curves.survival();
            let curve = survival.row(row);
            prop_assert!(curve[0].to_bits() == 1.0_f64.to_bits());
            prop_assert!(curve.iter().zip(curve.iter().skip(1)).all(|(before, after)| after <= before));
            let mut product = 1.0;
            for (hazard, end) in hazards.row(row).iter().zip(ends.survival().row(row)) {
                product *= 1.0 - hazard;
                prop_assert!((product - end).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn rows_and_units_change_what_they_should(
        seed in 0_u64..1000, which in 0_usize..3, unit in 0.01_f64..100.0, effects in 0_usize..3,
    ) {
        let (x, outcomes) = sample(seed, 80, 2);
        let effects = [TimeEffects::Constant, TimeEffects::Linear, TimeEffects::Logarithmic][effects];
        let cut_points = CutPointRule::Quantile(5);
        let settings = LogisticHazardSettings { cut_points, effects, penalty: PENALTIES[which], ..Default::default() };
        let model = settings.fit(&x, &outcomes).unwrap();
        let hazards = model.hazards(&x).unwrap();
        let order: Vec<usize> = (0..80).map(|row| (row * 7 + 3) % 80).collect();
        let permuted = settings.fit(&x.select(ndarray::Axis(0), &order), &outcomes.select(&order)).unwrap();
        let near = |found: &Array2<f64>| found.iter().zip(&hazards).all(|(found, of)| (found - of).abs() < 1e-9);
        prop_assert!(near(&permuted.hazards(&x).unwrap()));
        // Another unit and another origin of a covariate.
        let mut scaled = x.clone();
        scaled.column_mut(1).mapv_inplace(|x| x * unit + 3.0);
        let other = settings.fit(&scaled, &outcomes).unwrap();
        prop_assert!(near(&other.hazards(&scaled).unwrap()));
        let pairs = [(&other.coefficients, &model.coefficients), (&other.time_coefficients, &model.time_coefficients)];
        for (found, of) in pairs.into_iter().filter(|pair| !pair.0.is_empty()) {
            prop_assert!((found[1].value * unit - of[1].value).abs() < 1e-8 * (1.0 + of[1].value.abs()));
            prop_assert!((found[0].value - of[0].value).abs() < 1e-8 * (1.0 + of[0].value.abs()));
        }
        // Another unit of time moves the cut points.
        let times = outcomes.time().iter().map(|time| time * 8.0).collect();
        let later = settings.fit(&x, &Outcomes::new(times, outcomes.event().to_vec()).unwrap()).unwrap();
        prop_assert!(near(&later.hazards(&x).unwrap()));
        let moved: Vec<f64> = model.cut_points.times().iter().map(|time| time * 8.0).collect();
        prop_assert_eq!(later.cut_points.times(), moved.as_slice());
    }
}
