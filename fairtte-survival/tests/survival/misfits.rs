//! The misfits that methods weight groups by when the loss depends on the time of an event, in `f64`: an uninformative
//! model fits every event equally well at any time; values computed by hand; the likelihood alone for the other heads.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use burn::tensor::{DType, Device, Tensor, TensorData};
use fairtte_metrics::Outcomes;
use fairtte_metrics::seeds::stream;
use fairtte_survival::{
    Cox, CoxConfig, CoxTime, CoxTimeConfig, CutPoints, DeepHit, DeepHitConfig, NnetSurvival, PcHazard, Pmf, Ranking,
    SurvivalHead, Targets, TiedTimes,
};

fn targets(time: &[f64], event: &[bool]) -> Targets {
    let train = Outcomes::new(vec![0.5, 4.0], vec![true, false]).unwrap();
    CutPoints::equidistant(&train, 5).unwrap().targets("test", time, event).unwrap()
}

/// Outputs of sample i in column k, `[n, width]`.
fn tensor(n: usize, width: usize, output: impl Fn(usize, usize) -> f64) -> Tensor<2> {
    let values: Vec<f64> = (0..n).flat_map(|i| (0..width).map(move |k| (i, k))).map(|(i, k)| output(i, k)).collect();
    Tensor::from_data(TensorData::new(values, [n, width]), (&Device::flex(), DType::F64))
}

fn misfits(head: &dyn SurvivalHead, x: Tensor<2>, targets: &Targets, half: Option<&[bool]>) -> Vec<f64> {
    head.misfits(x, targets, half, &mut stream(1, "controls", &[])).into_data().try_to_vec().unwrap()
}

fn losses(head: &dyn SurvivalHead, x: Tensor<2>, targets: &Targets) -> Vec<f64> {
    head.subject_losses(x, targets, &mut stream(1, "controls", &[])).into_data().try_to_vec().unwrap()
}

fn cox(ties: TiedTimes) -> Box<dyn SurvivalHead> {
    Box::new(Cox::new(&CoxConfig { ties }))
}

fn cox_time(controls: usize) -> Box<dyn SurvivalHead> {
    Box::new(CoxTime::new(&CoxTimeConfig { controls, shrink: 0.3, ..CoxTimeConfig::default() }).unwrap())
}

#[test]
fn a_model_that_knows_nothing_fits_every_event_alike_whenever_it_happens() {
    // Events from the first to the last, two of them tied, the last with no other sample at risk; two censored.
    let event = [true, true, true, false, true, true, false, true];
    let targets = targets(&[0.5, 1.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5], &event);
    let half = [false, true, false, true, false, true, false, true];
    for head in [cox(TiedTimes::Efron), cox(TiedTimes::Breslow), cox_time(0), cox_time(1), cox_time(3)] {
        let width = head.query_times(&targets).len().max(1);
        let equal = || tensor(8, width, |_, _| 1.7);
        for half in [None, Some(&half[..])] {
            let found = misfits(head.as_ref(), equal(), &targets, half);
            for (i, misfit) in found.iter().enumerate() {
                let expected = if event[i] { 8.0_f64.ln() } else { 0.0 };
                assert!((misfit - expected).abs() < 1e-12, "{} {half:?} sample {i}: {misfit}", head.name());
            }
        }
        // The losses do depend on the time, except with one control per event.
        let of_loss = losses(head.as_ref(), equal(), &targets);
        assert!(of_loss[0] > of_loss[7] + 0.5, "{}: {of_loss:?}", head.name());
    }
}

// Times 1, 2, 3, all events, g = (0.5, -1, 2) and n = 3. The third is alone at risk.
#[test]
fn the_number_at_risk_is_taken_out_of_the_loss_of_an_event() {
    let targets = targets(&[1.0, 2.0, 3.0], &[true; 3]);
    let g: [f64; 3] = [0.5, -1.0, 2.0];
    let at_risk = |from: usize| g[from..].iter().map(|g| g.exp()).sum::<f64>();
    let expected = [at_risk(0).ln() - 0.5, at_risk(1).ln() + 1.0 - 2.0_f64.ln() + 3.0_f64.ln(), 3.0_f64.ln()];
    for head in [cox(TiedTimes::Efron), cox(TiedTimes::Breslow), cox_time(0)] {
        let width = head.query_times(&targets).len().max(1);
        let found = misfits(head.as_ref(), tensor(3, width, |i, _| g[i]), &targets, None);
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{}: {found} {expected}", head.name());
        }
    }
}

// Two of four have their event at the same time: Efron's loss is the mean of log S and log(S - T/2), for an
// uninformative model that of log 4 and log 3.
#[test]
fn tied_events_are_held_against_the_rule_of_the_head() {
    let targets = targets(&[1.0, 1.0, 2.0, 3.0], &[true, true, false, false]);
    let g: [f64; 4] = [0.3, -0.4, 0.9, 0.0];
    let all: f64 = g.iter().map(|g| g.exp()).sum();
    let tied = g[0].exp() + g[1].exp();
    let gain = |i: usize| {
        f64::midpoint(4.0_f64.ln(), 3.0_f64.ln()) - (f64::midpoint(all.ln(), (all - tied / 2.0).ln()) - g[i])
    };
    let found = misfits(cox(TiedTimes::Efron).as_ref(), tensor(4, 1, |i, _| g[i]), &targets, None);
    for (i, found) in found[..2].iter().enumerate() {
        assert!((found - (4.0_f64.ln() - gain(i))).abs() < 1e-12, "{found}");
    }
    assert_eq!(found[2..], [0.0; 2]);
}

#[test]
fn deephit_gives_its_likelihood_and_heads_whose_samples_stand_alone_their_loss() {
    let targets = targets(&[0.5, 1.0, 2.0, 3.5], &[true, false, true, true]);
    let x = || tensor(4, 5, |i, k| ((i * 7 + k * 3) % 5) as f64 / 2.0 - 1.0);
    let likelihood = losses(&Pmf, x(), &targets);
    for ranking in [Ranking::Pycox, Ranking::Paper] {
        let deephit = DeepHit::new(&DeepHitConfig { alpha: 0.2, sigma: 0.5, ranking }).unwrap();
        assert_eq!(misfits(&deephit, x(), &targets, None), likelihood);
        assert_eq!(misfits(&deephit, x(), &targets, Some(&[true, false, true, false])), likelihood);
        assert_ne!(losses(&deephit, x(), &targets), likelihood);
    }
    for head in [&Pmf as &dyn SurvivalHead, &NnetSurvival, &PcHazard] {
        assert_eq!(misfits(head, x(), &targets, None), losses(head, x(), &targets), "{}", head.name());
    }
}

#[test]
fn a_batch_without_an_event_has_nothing_to_fit() {
    let targets = targets(&[1.0, 2.0], &[false; 2]);
    for head in [cox(TiedTimes::Efron), cox_time(0)] {
        assert_eq!(misfits(head.as_ref(), tensor(2, 1, |i, _| i as f64), &targets, None), [0.0; 2]);
    }
}
