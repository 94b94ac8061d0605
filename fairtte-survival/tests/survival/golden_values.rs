//! Losses, gradients, curves, baselines and cut points against values recorded from pycox 0.3.0 in `f64` and from R survival
//! (`golden/*.json`, each with its provenance). Here the networks' outputs are `f32`, and pycox adds 1e-7 inside some
//! logarithms: hence the tolerances.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::sync::LazyLock;

use crate::common::{assert_close, gradient, losses, mean_loss};
use fairtte_metrics::Outcomes;
use fairtte_survival::{
    Baseline, Cox, CoxConfig, CoxTime, CoxTimeConfig, CutPoints, DeepHit, DeepHitConfig, GridKind, HeadConfig,
    Interpolation, NnetSurvival, PcHazard, PcHazardConfig, Pmf, PredictionGrid, Ranking, SurvivalHead, Targets,
    TiedTimes, TimeScale,
};
use ndarray::{Array2, s};
use serde_json::Value;

static PYCOX: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(include_str!("../golden/pycox.json")).unwrap());
static R: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(include_str!("../golden/cox_r.json")).unwrap());

fn numbers(json: &Value) -> Vec<f64> {
    serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn flags(json: &Value) -> Vec<bool> {
    numbers(json).into_iter().map(|bit| bit > 0.5).collect()
}

fn matrix(json: &Value) -> Array2<f64> {
    let rows: Vec<Vec<f64>> = serde_json::from_value(json.clone()).unwrap();
    Array2::from_shape_vec((rows.len(), rows[0].len()), rows.concat()).unwrap()
}

#[expect(clippy::cast_possible_truncation, reason = "outputs are f32")]
fn outputs(json: &Value) -> Array2<f32> {
    matrix(json).mapv(|x| x as f32)
}

fn column(json: &Value) -> Array2<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "outputs are f32")]
    let values: Vec<f32> = numbers(json).into_iter().map(|x| x as f32).collect();
    Array2::from_shape_vec((values.len(), 1), values).unwrap()
}

fn outcomes(case: &Value) -> Outcomes {
    Outcomes::new(numbers(&case["time"]), flags(&case["event"])).unwrap()
}

/// Cut points 0, 2, .., 10: those of the recorded discrete cases.
fn cuts() -> CutPoints {
    let train = Outcomes::new(vec![1.0, 10.0], vec![true, false]).unwrap();
    CutPoints::equidistant(&train, 6).unwrap()
}

fn discrete_targets() -> Targets {
    let case = &PYCOX["discrete"];
    assert_close(cuts().times(), &numbers(&case["cuts"]), 1e-15, "cut");
    cuts().targets("test", &numbers(&case["time"]), &flags(&case["event"])).unwrap()
}

fn deephit(alpha: f64, sigma: f64, ranking: Ranking) -> DeepHit {
    DeepHit::new(&DeepHitConfig { alpha, sigma, ranking }).unwrap()
}

/// Curves at `times`, by rows.
fn curves(head: &dyn SurvivalHead, x: &Array2<f32>, times: &[f64], baseline: &Baseline) -> Vec<f64> {
    let at = |time: f64| {
        let train = Outcomes::new(vec![time / 2.0, time], vec![true, false]).unwrap();
        let grid = PredictionGrid::at_cut_points(&CutPoints::equidistant(&train, 2).unwrap());
        head.survival(x.view(), &grid, Some(baseline)).unwrap().column(1).to_owned() // the grid is 0, time
    };
    let columns: Vec<_> = times.iter().map(|time| at(*time)).collect();
    (0..x.nrows()).flat_map(|row| columns.iter().map(move |column| column[row])).collect()
}

#[test]
fn times_become_the_indices_and_fractions_of_pycox() {
    let (case, targets) = (&PYCOX["discrete"], discrete_targets());
    let index = |indices: &[usize]| indices.iter().map(|i| *i as f64).collect::<Vec<f64>>();
    assert_eq!(index(&targets.intervals.index), numbers(&case["index"]));
    assert_eq!(targets.intervals.event, flags(&case["interval_event"]));
    assert_eq!(index(&targets.pieces.index), numbers(&case["piece_index"]));
    assert_close(&targets.pieces.fraction, &numbers(&case["fraction"]), 1e-7, "fraction"); // pycox rounds to f32
}

#[test]
fn losses_and_gradients_of_the_discrete_heads_are_those_of_pycox() {
    let (case, targets) = (&PYCOX["discrete"], discrete_targets());
    let x = outputs(&case["outputs"]);
    let heads: [(&str, Box<dyn SurvivalHead>); 5] = [
        ("pmf", Box::new(Pmf)),
        ("nnet-survival", Box::new(NnetSurvival)),
        ("deephit 0.2 0.1", Box::new(deephit(0.2, 0.1, Ranking::Pycox))),
        ("deephit 0.5 1.0", Box::new(deephit(0.5, 1.0, Ranking::Pycox))),
        ("deephit 0.0 0.3", Box::new(deephit(0.0, 0.3, Ranking::Pycox))),
    ];
    for (name, head) in heads {
        if let Value::Array(_) = &case["losses"][name] {
            assert_close(&losses(head.as_ref(), &x, &targets), &numbers(&case["losses"][name]), 3e-6, name);
        } else {
            let expected = case["losses"][name].as_f64().unwrap();
            assert_close(&[mean_loss(head.as_ref(), &x, &targets)], &[expected], 3e-6, name);
        }
        let expected: Vec<f64> = matrix(&case["gradients"][name]).into_iter().collect();
        assert_close(&gradient(head.as_ref(), &x, &targets), &expected, 3e-6, name);
    }
    let x = x.slice(s![.., ..5]).to_owned();
    assert_close(&losses(&PcHazard, &x, &targets), &numbers(&case["losses"]["pc-hazard"]), 1e-6, "pc-hazard");
    let expected: Vec<f64> = matrix(&case["gradients"]["pc-hazard"]).into_iter().collect();
    assert_close(&gradient(&PcHazard, &x, &targets), &expected, 1e-6, "pc-hazard");
}

// Same outputs, same outcomes, both ranking terms: pycox's mean over n^2 pairs and the printed sum.
#[test]
fn the_two_ranking_terms_differ_as_their_formulas_say() {
    let (case, targets) = (&PYCOX["discrete"], discrete_targets());
    let x = outputs(&case["outputs"]);
    let pycox = mean_loss(&deephit(0.0, 0.3, Ranking::Pycox), &x, &targets);
    assert_close(&[pycox], &[case["losses"]["deephit 0.0 0.3"].as_f64().unwrap()], 3e-6, "pycox");
    // The printed sum at the same sigma, from the formula in Python 3.11 over the pairs with an event at the earlier time.
    let printed = mean_loss(&deephit(0.0, 0.3, Ranking::Paper), &x, &targets);
    assert_close(&[printed], &[PAPER_AT_0_3], 3e-6, "paper at the same sigma");
    let paper = deephit(0.0, 0.5, Ranking::Paper);
    let expected = case["losses"]["deephit_paper 0.5"].as_f64().unwrap();
    assert_close(&[mean_loss(&paper, &x, &targets)], &[expected], 3e-6, "paper");
    let expected: Vec<f64> = matrix(&case["gradients"]["deephit_paper 0.5"]).into_iter().collect();
    assert_close(&gradient(&paper, &x, &targets), &expected, 1e-5, "paper");
    assert_eq!(expected.len(), 14 * 6);
}

const PAPER_AT_0_3: f64 = 318.652_584_1;

#[test]
fn curves_between_the_cut_points_are_those_of_pycox() {
    let case = &PYCOX["curves"];
    let (x, times) = (outputs(&case["outputs"]), numbers(&case["times"]));
    let finer = |rule| PredictionGrid::new(&cuts(), 4, rule).unwrap();
    let coarse = PredictionGrid::at_cut_points(&cuts());
    let curve = |head: &dyn SurvivalHead, x: &Array2<f32>, grid: &PredictionGrid, name: &str, tolerance| {
        let found: Vec<f64> = head.survival(x.view(), grid, None).unwrap().into_iter().collect();
        assert_close(&found, &matrix(&case["curves"][name]).into_iter().collect::<Vec<f64>>(), tolerance, name);
    };
    assert_close(finer(Interpolation::Linear).times(), &times, 1e-15, "times");
    curve(&Pmf, &x, &coarse, "pmf cuts", 1e-6);
    curve(&Pmf, &x, &finer(Interpolation::Linear), "pmf linear", 1e-6);
    curve(&NnetSurvival, &x, &coarse, "nnet-survival cuts", 1e-6);
    curve(&NnetSurvival, &x, &finer(Interpolation::Linear), "nnet-survival linear", 1e-6);
    curve(&NnetSurvival, &x, &finer(Interpolation::ConstantHazard), "nnet-survival constant-hazard", 1e-6);
    let x = x.slice(s![.., ..5]).to_owned();
    for rule in [Interpolation::Linear, Interpolation::ConstantHazard] {
        curve(&PcHazard, &x, &finer(rule), "pc-hazard", 1e-7);
    }
}

#[test]
fn quantile_cut_points_are_those_of_pycox() {
    let cases = PYCOX["quantile"].as_array().unwrap();
    for case in cases {
        let n = usize::try_from(case["n"].as_u64().unwrap()).unwrap();
        let found = CutPoints::fit(&outcomes(case), n, GridKind::Quantile).unwrap();
        assert_eq!(found.times(), numbers(&case["cuts"]), "{} {n}", case["name"]);
    }
    assert_eq!(cases.len(), 12);
}

#[test]
fn cox_losses_gradients_baselines_and_curves_without_ties_are_those_of_pycox() {
    let case = &PYCOX["cox"];
    let (train, x) = (outcomes(case), column(&case["outputs"]));
    let targets = cuts().targets("test", train.time(), train.event()).unwrap();
    for ties in [TiedTimes::Efron, TiedTimes::Breslow] {
        let head = Cox::new(&CoxConfig { ties });
        assert_close(&[mean_loss(&head, &x, &targets)], &[case["loss"].as_f64().unwrap()], 1e-6, "loss");
        assert_close(&gradient(&head, &x, &targets), &numbers(&case["gradient"]), 1e-6, "gradient");
        let own = losses(&head, &x, &targets);
        for (sample, expected) in case["event_losses"].as_object().unwrap() {
            assert_close(&[own[sample.parse::<usize>().unwrap()]], &[expected.as_f64().unwrap()], 1e-6, sample);
        }
        let mut fit = head.baseline_fit(&train).unwrap();
        fit.add(&x.view(), train.time(), train.event());
        let baseline = fit.finish().unwrap();
        assert_eq!(baseline.times(), numbers(&case["baseline_time"]));
        let hazards: Vec<f64> = baseline.log_hazards().iter().map(|h| h.exp()).collect();
        assert_close(&hazards, &numbers(&case["baseline_hazard"]), 1e-7, "baseline");
        let times = numbers(&case["curve_times"]);
        let found = curves(&head, &x.slice(s![..4, ..]).to_owned(), &times, &baseline);
        assert_close(&found, &matrix(&case["curves"]).into_iter().collect::<Vec<f64>>(), 1e-7, "curve");
    }
}

#[test]
fn cox_with_ties_has_the_likelihood_gradient_and_baseline_of_r() {
    let cases = R["cases"].as_array().unwrap();
    for case in cases {
        let (train, x) = (outcomes(case), column(&case["outputs"]));
        let ties = serde_json::from_value(case["ties"].clone()).unwrap();
        let head = Cox::new(&CoxConfig { ties });
        let targets = cuts().targets("test", train.time(), train.event()).unwrap();
        let total: f64 = losses(&head, &x, &targets).iter().map(|loss| f64::from(*loss)).sum();
        assert_close(&[total], &[-case["loglik"].as_f64().unwrap()], 1e-6, "log likelihood");
        let mut fit = head.baseline_fit(&train).unwrap();
        for (block, rows) in x.axis_chunks_iter(ndarray::Axis(0), 50).enumerate() {
            let range = block * 50..block * 50 + rows.nrows();
            fit.add(&rows, &train.time()[range.clone()], &train.event()[range]);
        }
        let baseline = fit.finish().unwrap();
        assert_eq!(baseline.times(), numbers(&case["baseline_time"]));
        assert_close(&baseline.cumulative(), &numbers(&case["baseline_cumhaz"]), 2e-6, "baseline");
        // At R's coefficients the likelihood is at its maximum: the gradient is orthogonal to every column.
        if case.get("columns").is_some() {
            let gradient = gradient(&head, &x, &targets);
            for column in matrix(&case["columns"]).columns() {
                let size: f64 = column.iter().map(|value| value.abs()).sum();
                let slope: f64 = column.iter().zip(&gradient).map(|(value, g)| value * f64::from(*g)).sum();
                assert!(slope.abs() < 1e-6 * size, "{slope} is not 0 beside {size}");
            }
        }
    }
    assert_eq!(cases.len(), 6);
}

#[test]
fn cox_time_losses_gradients_baseline_and_curves_are_those_of_pycox() {
    let case = &PYCOX["cox_time"];
    let (train, x) = (outcomes(case), outputs(&case["outputs"]));
    let targets = cuts().targets("test", train.time(), train.event()).unwrap();
    assert_eq!(targets.event_times(), numbers(&case["event_times"]));
    for expected in case["cases"].as_array().unwrap() {
        let shrink = expected["shrink"].as_f64().unwrap();
        // 0 = everyone at risk; 100 draws exceed the samples, so everyone at risk is drawn.
        for controls in [0, 100] {
            let head = CoxTime::new(&CoxTimeConfig { controls, shrink, log_time: false }).unwrap();
            assert_close(&losses(&head, &x, &targets), &numbers(&expected["losses"]), 1e-6, "loss");
            let gradients: Vec<f64> = matrix(&expected["gradient"]).into_iter().collect();
            assert_close(&gradient(&head, &x, &targets), &gradients, 1e-6, "gradient");
        }
    }
    let head = CoxTime::new(&CoxTimeConfig::default()).unwrap();
    let mut fit = head.baseline_fit(&train).unwrap();
    assert_eq!(fit.times(), numbers(&case["event_times"]));
    fit.add(&x.slice(s![..5, ..]), &train.time()[..5], &train.event()[..5]);
    fit.add(&x.slice(s![5.., ..]), &train.time()[5..], &train.event()[5..]);
    let baseline = fit.finish().unwrap();
    let hazards: Vec<f64> = baseline.log_hazards().iter().map(|h| h.exp()).collect();
    assert_close(&hazards, &numbers(&case["baseline_hazard"]), 2e-6, "baseline"); // pycox's times are f32
    let times = numbers(&case["curve_times"]);
    let found = curves(&head, &x.slice(s![..4, ..]).to_owned(), &times, &baseline);
    assert_close(&found, &matrix(&case["curves"]).into_iter().collect::<Vec<f64>>(), 2e-6, "curve");
}

#[test]
fn times_are_scaled_as_in_pycox() {
    let case = &PYCOX["cox_time"];
    let train = outcomes(case);
    for (log, key) in [(false, "scaled_time"), (true, "scaled_log_time")] {
        let scale = TimeScale::fit(&train, log).unwrap();
        let found: Vec<f64> = train.time().iter().map(|time| scale.scale(*time)).collect();
        assert_close(&found, &numbers(&case[key]), 1e-6, key); // pycox's times are f32
    }
}

#[test]
fn heads_without_a_baseline_say_so() {
    let grid = PredictionGrid::at_cut_points(&cuts());
    for config in [HeadConfig::Cox(CoxConfig::default()), HeadConfig::CoxTime(CoxTimeConfig::default())] {
        let head = config.build().unwrap();
        let error = head.survival(Array2::zeros((1, 1)).view(), &grid, None).unwrap_err();
        let expected = "has no baseline hazard yet, expected one that was fitted on the training part";
        assert_eq!(error.to_string(), format!("head {} {expected}", head.name()));
    }
    let head = HeadConfig::PcHazard(PcHazardConfig::default()).build().unwrap();
    assert!(head.survival(Array2::zeros((1, 5)).view(), &grid, None).is_ok());
}
