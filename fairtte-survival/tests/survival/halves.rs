//! Losses of samples that are compared with the other half of their batch only, in `f64`: against the batch of one sample
//! and that half, against finite differences, and with no sample at risk in the other half.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use burn::tensor::{DType, Device, Tensor, TensorData};
use fairtte_metrics::Outcomes;
use fairtte_metrics::seeds::stream;
use fairtte_survival::{
    Cox, CoxConfig, CoxTime, CoxTimeConfig, CutPoints, DeepHit, DeepHitConfig, NnetSurvival, PcHazard, Pmf, Ranking,
    SurvivalHead, Targets, TiedTimes,
};
use ndarray::{Array2, Axis, array};

const HALF: [bool; 6] = [true, false, true, false, true, false];

fn cuts() -> CutPoints {
    CutPoints::equidistant(&Outcomes::new(vec![0.5, 3.0], vec![true, false]).unwrap(), 4).unwrap()
}

/// Two of the events are tied, one in each half.
fn targets() -> Targets {
    cuts().targets("test", &[2.0, 1.0, 3.0, 2.0, 1.5, 2.5], &[true, true, false, true, false, true]).unwrap()
}

fn outputs() -> Array2<f64> {
    array![
        [0.5, -1.0, 2.0, 0.0],
        [0.2, -0.3, 0.1, 0.4],
        [-2.0, 1.0, 0.3, -0.7],
        [0.9, 0.1, -0.2, 1.5],
        [-0.4, 0.8, 0.6, -1.1],
        [1.1, -0.6, 0.7, 0.3]
    ]
}

fn deephit(alpha: f64, ranking: Ranking) -> Box<dyn SurvivalHead> {
    Box::new(DeepHit::new(&DeepHitConfig { alpha, sigma: 0.5, ranking }).unwrap())
}

fn heads() -> Vec<Box<dyn SurvivalHead>> {
    vec![
        Box::new(Pmf),
        Box::new(NnetSurvival),
        Box::new(PcHazard),
        deephit(0.4, Ranking::Pycox),
        deephit(0.4, Ranking::Paper),
        Box::new(Cox::new(&CoxConfig { ties: TiedTimes::Efron })),
        Box::new(Cox::new(&CoxConfig { ties: TiedTimes::Breslow })),
        Box::new(CoxTime::new(&CoxTimeConfig { shrink: 0.1, ..CoxTimeConfig::default() }).unwrap()),
    ]
}

fn columns(head: &dyn SurvivalHead, targets: &Targets) -> usize {
    head.n_outputs(&cuts()).max(head.query_times(targets).len())
}

fn tensor(values: &Array2<f64>, device: &Device) -> Tensor<2> {
    let data = TensorData::new(values.iter().copied().collect::<Vec<f64>>(), [values.nrows(), values.ncols()]);
    Tensor::from_data(data, (device, DType::F64))
}

fn against_half(head: &dyn SurvivalHead, x: Tensor<2>, targets: &Targets, half: &[bool]) -> Tensor<1> {
    head.losses_against_other_half(x, targets, half, &mut stream(1, "controls", &[]))
}

fn values(losses: Tensor<1>) -> Vec<f64> {
    losses.into_data().try_to_vec().unwrap()
}

/// The batch of sample `i`, in front, and the half to which it does not belong.
fn alone(i: usize, x: &Array2<f64>, targets: &Targets, head: &dyn SurvivalHead) -> (Array2<f64>, Targets) {
    let rows: Vec<usize> = [i].into_iter().chain((0..6).filter(|j| HALF[*j] != HALF[i])).collect();
    let chosen = cuts()
        .targets(
            "test",
            &rows.iter().map(|j| targets.time[*j]).collect::<Vec<_>>(),
            &rows.iter().map(|j| targets.event[*j]).collect::<Vec<_>>(),
        )
        .unwrap();
    let x = x.select(Axis(0), &rows);
    if head.query_times(targets).is_empty() {
        return (x, chosen);
    }
    // A head that reads times has one column for each time of its own batch.
    let times = head.query_times(targets);
    let kept: Vec<usize> = head
        .query_times(&chosen)
        .iter()
        .map(|time| times.iter().position(|t| t.total_cmp(time).is_eq()).unwrap_or(0))
        .collect();
    (x.select(Axis(1), &kept), chosen)
}

#[test]
fn a_sample_pays_what_it_would_pay_if_it_alone_were_added_to_the_other_half() {
    let (all, targets) = (outputs(), targets());
    let mut n_compared = 0;
    for head in heads() {
        let head = head.as_ref();
        let x = all.slice(ndarray::s![.., ..columns(head, &targets)]).to_owned();
        let found = values(against_half(head, tensor(&x, &Device::flex()), &targets, &HALF));
        for (i, found) in found.into_iter().enumerate() {
            let (x, targets) = alone(i, &x, &targets, head);
            let losses = head.subject_losses(tensor(&x, &Device::flex()), &targets, &mut stream(1, "controls", &[]));
            let mut expected = values(losses)[0];
            if head.name() == "deephit" {
                // n is the size of the half (3), not of the half and the sample (4); it only enters the ranking term.
                let pmf =
                    values(Pmf.subject_losses(tensor(&x, &Device::flex()), &targets, &mut stream(1, "c", &[])))[0];
                let ranking = expected - 0.4 * pmf;
                let paper = head.depends_on_batch() && format!("{head:?}").contains("Paper");
                expected += ranking * if paper { -0.25 } else { 1.0 / 3.0 };
            }
            assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{head:?} {i}: {found} {expected}");
            n_compared += 1;
        }
    }
    assert_eq!(n_compared, 48);
}

// The purpose of the halves: losses that are combined into one number do not depend on each other.
#[test]
fn outputs_of_the_own_half_move_no_other_loss_of_it() {
    let targets = targets();
    for head in heads() {
        let head = head.as_ref();
        let x = outputs().slice(ndarray::s![.., ..columns(head, &targets)]).to_owned();
        let before = values(against_half(head, tensor(&x, &Device::flex()), &targets, &HALF));
        let mut moved = x.clone();
        moved.row_mut(0).mapv_inplace(|x| 1.5 - x);
        let after = values(against_half(head, tensor(&moved, &Device::flex()), &targets, &HALF));
        for j in [2, 4] {
            assert!((before[j] - after[j]).abs() < 1e-12, "{head:?} {j}: {} {}", before[j], after[j]);
        }
        assert!((before[0] - after[0]).abs() > 1e-3, "{head:?}: its own loss");
        if head.depends_on_batch() {
            assert!([1, 3, 5].iter().any(|j| (before[*j] - after[*j]).abs() > 1e-3), "{head:?}: the other half");
        }
    }
}

#[test]
fn gradients_flow_through_both_halves() {
    let targets = targets();
    let weights = [0.3, 1.0, 0.7, 0.2, 0.9, 0.5];
    for head in heads() {
        let head = head.as_ref();
        let x = outputs().slice(ndarray::s![.., ..columns(head, &targets)]).to_owned();
        let total = |x: &Array2<f64>| -> f64 {
            let losses = values(against_half(head, tensor(x, &Device::flex()), &targets, &HALF));
            losses.iter().zip(&weights).map(|(l, w)| l * w).sum()
        };
        let leaf = tensor(&x, &Device::flex().autodiff()).require_grad();
        let losses = against_half(head, leaf.clone(), &targets, &HALF);
        let w = Tensor::<1>::from_data(TensorData::from(weights), (&losses.device(), DType::F64));
        let gradients = (losses * w).sum().backward();
        let analytic: Vec<f64> = leaf.grad(&gradients).unwrap().into_data().try_to_vec().unwrap();
        let width = x.ncols();
        for (position, analytic) in analytic.into_iter().enumerate() {
            let moved = |by: f64| {
                let mut x = x.clone();
                x[[position / width, position % width]] += by;
                total(&x)
            };
            let numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            let close = (analytic - numeric).abs() < 1e-7 * numeric.abs().max(1.0);
            assert!(close, "{head:?} {position}: {analytic} {numeric}");
        }
    }
}

// exp(-(F_0(2) - F_j(2)) / sigma) over the one later sample of the other half, and risk sets by hand.
#[test]
fn terms_worked_by_hand() {
    let targets = targets();
    let x = outputs();
    // Cox: the event of sample 1 at time 1 meets the half of 0, 2 and 4, all at risk.
    let first = x.slice(ndarray::s![.., ..1]).to_owned();
    let cox = Cox::new(&CoxConfig { ties: TiedTimes::Breslow });
    let found = values(against_half(&cox, tensor(&first, &Device::flex()), &targets, &HALF));
    let expected = (0.2_f64.exp() + 0.5_f64.exp() + (-2.0_f64).exp() + (-0.4_f64).exp()).ln() - 0.2;
    assert!((found[1] - expected).abs() < 1e-14);
    // The event of sample 0 at time 2 meets 3 (tied) and 5 (later), not 1.
    let at_risk = [0.5_f64, 0.9, 1.1].map(f64::exp);
    assert!((found[0] - (at_risk.iter().sum::<f64>().ln() - 0.5)).abs() < 1e-14);
    // The released code of Hu & Chen (DRO_COX 2946138, negLogLikelihood_per_sample_for_splitting, torch 2.15.0, f32).
    for (found, expected) in found.iter().zip([1.461_852_4, 1.101_765_2, 0.0, 0.545_426_0, 0.0, 0.044_063_9]) {
        assert!((found - expected).abs() < 2e-7, "{found} {expected}");
    }
    // Efron: the mean over both ranks of the two tied events.
    let cox = Cox::new(&CoxConfig { ties: TiedTimes::Efron });
    let found = values(against_half(&cox, tensor(&first, &Device::flex()), &targets, &HALF));
    let all: f64 = at_risk.iter().sum();
    let expected = 0.5 * (all.ln() + (all - 0.5 * (at_risk[0] + at_risk[1])).ln()) - 0.5;
    assert!((found[0] - expected).abs() < 1e-14, "{} {expected}", found[0]);
}

#[test]
fn a_half_that_offers_nobody_leaves_a_defined_loss() {
    let targets = targets();
    for head in heads() {
        let head = head.as_ref();
        let x = outputs().slice(ndarray::s![.., ..columns(head, &targets)]).to_owned();
        let leaf = tensor(&x, &Device::flex().autodiff()).require_grad();
        let losses = against_half(head, leaf.clone(), &targets, &[true; 6]);
        assert!(values(losses.clone()).iter().all(|loss| loss.is_finite()), "{head:?}");
        let gradients = losses.clone().sum().backward();
        let gradient: Vec<f64> = leaf.grad(&gradients).unwrap().into_data().try_to_vec().unwrap();
        assert!(gradient.iter().all(|g| g.is_finite()), "{head:?}");
        if head.name() == "cox" {
            assert_eq!(values(losses), [0.0; 6], "log exp(g) - g");
        }
    }
}
