//! `DeepHit` with several causes: losses, gradients and incidence against pycox (`golden/deephit_causes.json`, by the script beside
//! it), gradients in `f64` against finite differences, the ranking of each cause against a double loop, one cause against the
//! head of one event, and the start at the marginal incidence.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::sync::LazyLock;

use crate::common::{assert_close, gradient, losses, mean_loss};
use burn::tensor::{DType, Device, Tensor, TensorData};
use fairtte_metrics::Outcomes;
use fairtte_metrics::competing::{AalenJohansen, CompetingOutcomes, IncidenceVariance};
use fairtte_metrics::seeds::stream;
use fairtte_survival::{
    ClassifierConfig, CutPoints, DeepHit, DeepHitConfig, HeadConfig, Interpolation, PredictionGrid, Ranking,
    SurvivalHead, Targets, marginal_hazard, marginal_hazards,
};
use ndarray::{Array2, s};
use serde_json::Value;

static PYCOX: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../golden/deephit_causes.json")).unwrap());

fn numbers(json: &Value) -> Vec<f64> {
    match json {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

fn indices(json: &Value) -> Vec<usize> {
    serde_json::from_value(json.clone()).unwrap()
}

fn recorded() -> Array2<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "outputs are f32")]
    let values: Vec<f32> = numbers(&PYCOX["outputs"]).into_iter().map(|x| x as f32).collect();
    let n = indices(&PYCOX["index"]).len();
    Array2::from_shape_vec((n, values.len() / n), values).unwrap()
}

/// Cut points 0, 1, .., n - 1.
fn cuts(n: usize) -> CutPoints {
    let train = Outcomes::new(vec![0.5, (n - 1) as f64], vec![true, false]).unwrap();
    CutPoints::equidistant(&train, n).unwrap()
}

/// Targets at whole times, so that time and index are the same number.
fn targets_of(n_cuts: usize, index: &[usize], causes: &[usize]) -> Targets {
    let time: Vec<f64> = index.iter().map(|index| *index as f64).collect();
    let event: Vec<bool> = causes.iter().map(|cause| *cause == 1).collect();
    let competing: Vec<usize> = causes.iter().map(|cause| if *cause > 1 { *cause } else { 0 }).collect();
    cuts(n_cuts).targets_of_causes("test", &time, &event, &competing).unwrap()
}

fn targets() -> Targets {
    let targets = targets_of(6, &indices(&PYCOX["index"]), &indices(&PYCOX["cause"]));
    assert_eq!((&targets.intervals.index, &targets.causes), (&indices(&PYCOX["index"]), &indices(&PYCOX["cause"])));
    targets
}

fn deephit(n_causes: usize, alpha: f64, sigma: f64, ranking: Ranking) -> DeepHit {
    DeepHit::new(&DeepHitConfig { alpha, sigma, ranking }).unwrap().for_causes(n_causes)
}

fn tensor(values: &[f64], n: usize, device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [n, values.len() / n]), (device, DType::F64))
}

fn losses_in_f64(head: &DeepHit, x: Tensor<2>, targets: &Targets, half: Option<&[bool]>) -> Vec<f64> {
    let stream = &mut stream(1, "controls", &[]);
    let losses = match half {
        Some(half) => head.losses_against_other_half(x, targets, half, stream),
        None => head.subject_losses(x, targets, stream),
    };
    losses.into_data().try_to_vec().unwrap()
}

#[test]
fn losses_gradients_and_incidence_are_those_of_pycox() {
    let (x, targets) = (recorded(), targets());
    for case in PYCOX["cases"].as_array().unwrap() {
        let (alpha, sigma) = (case["alpha"].as_f64().unwrap(), case["sigma"].as_f64().unwrap());
        let head = deephit(3, alpha, sigma, Ranking::Pycox);
        let what = format!("alpha {alpha}, sigma {sigma}");
        // pycox adds 1e-7 to every probability; outputs here are f32.
        assert_close(&[mean_loss(&head, &x, &targets)], &[case["loss"].as_f64().unwrap()], 2e-6, &what);
        assert_close(&gradient(&head, &x, &targets), &numbers(&case["gradient"]), 3e-6, &what);
    }
    let likelihood = deephit(3, 1.0, 0.1, Ranking::Pycox);
    assert_close(&losses(&likelihood, &x, &targets), &numbers(&PYCOX["nll"]), 1e-5, "likelihood");
    let misfits = deephit(3, 0.2, 0.1, Ranking::Pycox).misfits(
        crate::common::tensor(&x, &Device::flex()),
        &targets,
        None,
        &mut stream(1, "controls", &[]),
    );
    let misfits: Vec<f32> = misfits.into_data().try_to_vec().unwrap();
    assert_close(&misfits, &numbers(&PYCOX["nll"]), 1e-5, "misfit");
    // Blocks of 1 - F_k at the cut points.
    let grid = PredictionGrid::at_cut_points(&cuts(6));
    let curves = likelihood.survival(x.view(), &grid, None).unwrap();
    let incidence: Vec<f64> = curves.iter().map(|s| 1.0 - s).collect();
    assert_close(&incidence, &numbers(&PYCOX["incidence"]), 1e-12, "incidence");
}

/// The definition, pair by pair in `f64`.
fn ranking_by_hand(x: &[f64], targets: &Targets, sigma: f64, ranking: Ranking, half: Option<&[bool]>) -> Vec<f64> {
    let (n, n_causes, n_cuts) = (targets.n(), 3, 6);
    let incidence = |i: usize, cause: usize, q: usize| {
        let row = &x[i * n_causes * n_cuts..(i + 1) * n_causes * n_cuts];
        let whole = 1.0 + row.iter().map(|x| x.exp()).sum::<f64>();
        row[(cause - 1) * n_cuts..=(cause - 1) * n_cuts + q].iter().map(|x| x.exp()).sum::<f64>() / whole
    };
    let (index, causes) = (&targets.intervals.index, &targets.causes);
    let of = |i: usize| {
        let others: Vec<usize> = (0..n).filter(|j| half.is_none_or(|half| half[i] != half[*j])).collect();
        let mut sum = 0.0;
        for &j in &others {
            let (own, cause) = (index[i], causes[i]);
            let later = match ranking {
                Ranking::Pycox => own < index[j] || (own == index[j] && causes[j] == 0),
                Ranking::Paper => targets.time[i] < targets.time[j],
            };
            if cause == 0 || !later {
                continue;
            }
            let read_at = if ranking == Ranking::Pycox { own } else { index[j] };
            sum += ((incidence(j, cause, read_at) - incidence(i, cause, own)) / sigma).exp();
        }
        let n = others.len().max(1) as f64;
        if ranking == Ranking::Pycox { sum / n } else { sum * n }
    };
    (0..n).map(of).collect()
}

#[test]
fn pairs_are_ranked_by_the_cause_of_the_earlier_event() {
    let targets = targets();
    let x: Vec<f64> = recorded().iter().map(|x| f64::from(*x)).collect();
    let half: Vec<bool> = (0..targets.n()).map(|i| i % 3 == 0).collect();
    for ranking in [Ranking::Pycox, Ranking::Paper] {
        for half in [None, Some(&half[..])] {
            let head = deephit(3, 0.0, 0.3, ranking);
            let found = losses_in_f64(&head, tensor(&x, targets.n(), &Device::flex()), &targets, half);
            assert_close(&found, &ranking_by_hand(&x, &targets, 0.3, ranking, half), 1e-12, "ranking");
            assert!(found.iter().any(|loss| *loss > 0.1));
        }
    }
}

#[test]
fn gradients_agree_with_finite_differences() {
    let targets = targets();
    let n = targets.n();
    let x: Vec<f64> = recorded().iter().map(|x| f64::from(*x)).collect();
    for ranking in [Ranking::Pycox, Ranking::Paper] {
        let head = deephit(3, 0.4, 0.5, ranking);
        let leaf = tensor(&x, n, &Device::flex().autodiff()).require_grad();
        let loss = head.subject_losses(leaf.clone(), &targets, &mut stream(1, "controls", &[])).sum();
        let gradient: Vec<f64> = leaf.grad(&loss.backward()).unwrap().into_data().try_to_vec().unwrap();
        assert!(gradient.iter().filter(|g| g.abs() > 1e-3).count() > x.len() / 2, "nothing to compare");
        for (position, gradient) in gradient.iter().enumerate() {
            let moved = |by: f64| {
                let mut x = x.clone();
                x[position] += by;
                losses_in_f64(&head, tensor(&x, n, &Device::flex()), &targets, None).iter().sum::<f64>()
            };
            let numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((gradient - numeric).abs() < 1e-7 * numeric.abs().max(1.0), "{position}: {gradient} {numeric}");
        }
    }
}

#[test]
fn with_events_of_one_cause_and_no_mass_elsewhere_it_is_the_head_of_one_event() {
    let (index, causes) = (indices(&PYCOX["index"]), indices(&PYCOX["cause"]));
    let events: Vec<usize> = causes.iter().map(|cause| usize::from(*cause == 1)).collect();
    let targets = targets_of(6, &index, &events);
    let one = recorded().slice(s![.., ..6]).to_owned();
    // The second cause has a probability of 1e-35 or less.
    let two = Array2::from_shape_fn((one.nrows(), 12), |(row, k)| if k < 6 { one[[row, k]] } else { -80.0 });
    for ranking in [Ranking::Pycox, Ranking::Paper] {
        let [single, double] = [1, 2].map(|n| deephit(n, 0.3, 0.4, ranking));
        assert_close(&losses(&double, &two, &targets), &losses(&single, &one, &targets), 1e-6, "loss");
        let grid = PredictionGrid::new(&cuts(6), 3, Interpolation::ConstantHazard).unwrap();
        let (own, all) = (single.survival(one.view(), &grid, None), double.survival(two.view(), &grid, None));
        let (own, all) = (own.unwrap(), all.unwrap());
        assert_eq!((own.ncols(), all.ncols()), (16, 32));
        for (a, b) in own.iter().zip(all.slice(s![.., ..16])) {
            assert!((a - b).abs() < 1e-12);
        }
        assert!(all.slice(s![.., 16..]).iter().all(|s| 1.0 - s < 1e-12));
    }
}

#[test]
fn an_event_of_a_cause_that_a_head_does_not_have_is_a_censoring() {
    let (index, causes) = (indices(&PYCOX["index"]), indices(&PYCOX["cause"]));
    let without = |last: usize| causes.iter().map(|c| if *c > last { 0 } else { *c }).collect::<Vec<usize>>();
    for ranking in [Ranking::Pycox, Ranking::Paper] {
        for n_causes in [1, 2] {
            let head = deephit(n_causes, 0.3, 0.4, ranking);
            let x = recorded().slice(s![.., ..6 * n_causes]).to_owned();
            let expected = losses(&head, &x, &targets_of(6, &index, &without(n_causes)));
            assert_eq!(losses(&head, &x, &targets()), expected, "{ranking:?} {n_causes}");
        }
    }
}

#[test]
fn the_incidences_of_all_causes_rise_and_leave_survivors_also_between_cut_points() {
    let head = deephit(3, 0.2, 0.1, Ranking::Pycox);
    for rule in [Interpolation::Linear, Interpolation::ConstantHazard] {
        let grid = PredictionGrid::new(&cuts(6), 4, rule).unwrap();
        let width = grid.times().len();
        let curves = head.survival((recorded() * 8.0).view(), &grid, None).unwrap();
        assert_eq!(curves.ncols(), 3 * width);
        for row in curves.rows() {
            for time in 0..width {
                let sum: f64 = (0..3).map(|cause| 1.0 - row[cause * width + time]).sum();
                assert!((0.0..=1.0 + 1e-12).contains(&sum), "{sum}");
                let falls = |cause: usize| time == 0 || row[cause * width + time] <= row[cause * width + time - 1];
                assert!((0..3).all(falls));
            }
        }
    }
}

#[test]
fn training_starts_at_the_marginal_incidence_of_every_cause() {
    // Hundreds of samples, so that what is added to every interval does not matter; time 0 has no event.
    let (n, n_cuts) = (3_000, 6);
    let index: Vec<usize> = (0..n).map(|i| 1 + i * 7 % 5).collect();
    let causes: Vec<usize> = (0..n).map(|i| [0, 1, 2, 1, 3, 0, 2][i * 5 % 7]).collect();
    let targets = targets_of(n_cuts, &index, &causes);
    let head = deephit(3, 0.2, 0.1, Ranking::Pycox);
    let train = Outcomes::new(targets.time.clone(), targets.event.clone()).unwrap();
    let config = ClassifierConfig::for_head_and_targets(&head, &cuts(n_cuts), (&train, &targets), 0).unwrap();
    assert_eq!(config.n_outputs, 18);
    #[expect(clippy::cast_possible_truncation, reason = "outputs are f32")]
    let start: Vec<f32> = config.start.unwrap().iter().map(|x| *x as f32).collect();
    let start = Array2::from_shape_vec((1, 18), start).unwrap();
    let curves = head.survival(start.view(), &PredictionGrid::at_cut_points(&cuts(n_cuts)), None).unwrap();
    let numbered = causes.iter().map(|cause| u32::try_from(*cause).unwrap()).collect();
    let outcomes = CompetingOutcomes::new(targets.time.clone(), numbered).unwrap();
    for cause in 1..=3_u32 {
        let observed = AalenJohansen::fit(&outcomes, cause, IncidenceVariance::Delta).unwrap();
        for (q, time) in cuts(n_cuts).times().iter().enumerate().take(5) {
            let predicted = 1.0 - curves[[0, (cause as usize - 1) * n_cuts + q]];
            assert!((predicted - observed.at(*time)).abs() < 1e-3, "{cause} at {time}: {predicted}");
        }
    }
    // Seven samples, by hand: at risk 7, 6 and 4; a twentieth of an event is divided between two causes.
    let few = targets_of(3, &[0, 1, 1, 2, 2, 2, 2], &[0, 1, 0, 2, 1, 1, 0]);
    let found = marginal_hazards(&few, 2, 3).concat();
    let expected = [0.025 / 7.1, 1.025 / 6.1, 2.025 / 4.1, 0.025 / 7.1, 0.025 / 6.1, 1.025 / 4.1];
    assert_close(&found, &expected, 1e-15, "hazard of two causes");
    // With one cause they are the hazards of one event.
    let one = targets_of(n_cuts, &index, &causes.iter().map(|cause| usize::from(*cause == 1)).collect::<Vec<_>>());
    assert_close(&marginal_hazards(&one, 1, n_cuts)[0], &marginal_hazard(&one.intervals, n_cuts), 1e-15, "hazard");
}

#[test]
fn only_deephit_is_built_for_several_causes() {
    assert_eq!(HeadConfig::of_causes(), ["deephit"]);
    let built = HeadConfig::DeepHit(DeepHitConfig::default()).build_for(3).unwrap();
    assert_eq!((built.n_causes(), built.n_outputs(&cuts(6))), (3, 18));
    assert_eq!(HeadConfig::DeepHit(DeepHitConfig::default()).build_for(1).unwrap().n_causes(), 1);
    let refused = HeadConfig::default().build_for(2).unwrap_err();
    let expected = "head nnet-survival is about one kind of event, expected deephit for one of several causes";
    assert_eq!(refused.to_string(), expected);
    let invalid = HeadConfig::DeepHit(DeepHitConfig { sigma: 0.0, ..DeepHitConfig::default() });
    assert!(invalid.build_for(2).unwrap_err().to_string().starts_with("sigma is 0"));
}
