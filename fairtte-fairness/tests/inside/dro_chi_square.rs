use burn::tensor::Tensor;
use fairtte_metrics::Outcomes;
use fairtte_survival::{Cox, CutPoints, DeepHit, DeepHitConfig, NnetSurvival, Pmf, Ranking, SurvivalHead};

use super::*;
use crate::Outputs;
use crate::strategies::groups::on_host;
use crate::strategies::{Accumulation, Clock};

use crate::strategies::worked_cases::{
    Compared, cases, differences, gradient, leaf, name, numbers, tensor, values, whole_numbers,
};

fn dro(alpha: f64) -> DroChiSquare {
    DroChiSquare::new(&DroChiSquareConfig { alpha, ..Default::default() }).unwrap()
}

/// `n` cut points at 0, 1, .., n - 1.
fn whole_cuts(n: usize) -> CutPoints {
    CutPoints::equidistant(&Outcomes::new(vec![0.5, (n - 1) as f64], vec![true, false]).unwrap(), n).unwrap()
}

fn context<'a>(
    head: &'a dyn SurvivalHead,
    cut_points: &'a CutPoints,
    clock: &'a Clock,
    step: usize,
) -> StepContext<'a> {
    let accumulation = Accumulation::default();
    StepContext {
        outputs: Outputs { head, cut_points },
        seed: 5,
        epoch: 0,
        step,
        rate: 1.0,
        accumulation,
        loss_scale: 1.0,
        clock,
    }
}

/// C sqrt(mean (l - eta)_+^2) + eta.
fn value_at(losses: &[f64], squared_radius: f64, eta: f64) -> f64 {
    let squares: f64 = losses.iter().map(|loss| (loss - eta).max(0.0).powi(2)).sum();
    (squared_radius * squares / losses.len() as f64).sqrt() + eta
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn values_and_gradients_are_those_of_the_worked_cases() {
    let (mut compared, mut left_out) = (Compared::default(), 0);
    for case in cases(include_str!("../golden/chi_square_dro.json")) {
        let (what, inputs, expected) = (name(&case), &case["inputs"], &case["expected"]);
        let dro = dro(inputs["alpha"].as_f64().unwrap());
        let squared_radius = dro.config.squared_radius();
        if what.contains("event indicator ignored") {
            println!("dro-chi-square, left out: {what}");
            left_out += 1;
            continue;
        }
        compared.cases += 1;
        if inputs.get("logits").is_some() {
            compare_split(&mut compared, &case, dro);
            continue;
        }
        let losses = numbers(&inputs["losses"]);
        let found = optimum(&losses, squared_radius);
        compared.close(what, &[squared_radius.sqrt()], &numbers(&expected["C"]));
        compared.close(what, &[dot(&found.weights, &losses)], &numbers(&expected["loss"]));
        compared.close(what, &found.weights, &numbers(&expected["d_loss_d_sample_loss"]));
        let active = found.weights.iter().filter(|weight| **weight > 0.0).count();
        compared.close(what, &[active as f64], &numbers(&expected["active_samples"]));
        match expected["optimal_eta"].as_f64() {
            Some(eta) => compared.close(what, &[found.eta.unwrap()], &[eta]),
            None => assert_eq!(found.eta, None, "{what}"),
        }
    }
    println!("dro-chi-square: {} numbers of {} cases compared, {left_out} left out", compared.numbers, compared.cases);
    assert_eq!((compared, left_out), (Compared { numbers: 232, cases: 19 }, 1));
}

/// Both halves with `DeepHit`, from the outputs of the network to the gradient by them.
fn compare_split(compared: &mut Compared, case: &serde_json::Value, dro: DroChiSquare) {
    let (what, inputs, expected) = (name(case), &case["inputs"], &case["expected"]);
    let number = |key: &str| inputs[key].as_f64().unwrap();
    let config =
        DeepHitConfig { alpha: number("deephit_alpha"), sigma: number("deephit_sigma"), ranking: Ranking::Pycox };
    let (head, cuts, clock) = (DeepHit::new(&config).unwrap(), whole_cuts(4), Clock::default());
    let event: Vec<bool> = numbers(&inputs["event"]).iter().map(|event| *event > 0.5).collect();
    let targets = cuts.targets("test", &numbers(&inputs["time_index"]), &event).unwrap();
    let halves = ["half_a", "half_b"].map(|key| whole_numbers(&inputs[key]));
    let half: Vec<bool> = (0..targets.n()).map(|i| halves[1].contains(&i)).collect();
    let context = context(&head, &cuts, &clock, 0);
    let logits = leaf(&inputs["logits"]);
    let losses = context.losses_against_other_half(logits.clone(), &targets, &half);
    let of_sample = values(&losses);
    let weights = dro.weights(&of_sample, &[true; 6], Some(&half), &context).unwrap();
    for (name, members) in ["a", "b"].into_iter().zip(&halves) {
        let of_half: Vec<f64> = members.iter().map(|i| of_sample[*i]).collect();
        compared.close(what, &of_half, &numbers(&expected[format!("per_sample_loss_half_{name}")]));
        let found = optimum(&of_half, dro.config.squared_radius());
        compared.close(what, &[found.eta.unwrap()], &numbers(&expected[format!("eta_half_{name}")]));
        compared.close(what, &[dot(&found.weights, &of_half)], &numbers(&expected[format!("dro_half_{name}")]));
    }
    let total = weighted_sum(&losses, weights);
    compared.close(what, &values(&total), &numbers(&expected["total"]));
    compared.close(what, &gradient(&total, &logits), &numbers(&expected["d_total_d_logits"]));
}

// The value is an infimum: no other eta may give less, for any losses, ties and alpha.
#[test]
fn no_other_eta_gives_less() {
    let mut n_tried = 0;
    for n in [1_usize, 2, 3, 7, 40] {
        for kind in 0..4 {
            let of = |i: usize| match kind {
                0 => ((i * 37 + 11) % 23) as f64 / 7.0 - 1.0,
                1 => ((i * 37 + 11) % 3) as f64, // ties
                2 => 1e6 + ((i * 5) % 11) as f64 * 1e-4,
                _ => (((i * 29) % 17) as f64).exp(),
            };
            let losses: Vec<f64> = (0..n).map(of).collect();
            let (least, most) = losses.iter().fold((f64::MAX, f64::MIN), |(a, b), l| (a.min(*l), b.max(*l)));
            for alpha in [0.01, 0.1, 0.3, 0.5, 0.8, 0.99, 0.999_999] {
                let squared_radius = dro(alpha).config.squared_radius();
                let found = optimum(&losses, squared_radius);
                assert!((found.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{found:?}");
                assert!(found.weights.iter().all(|weight| *weight >= 0.0));
                let value = dot(&found.weights, &losses);
                for at in -400..=100 {
                    let eta = most + (most - least + 1e-3) * f64::from(at) / 100.0;
                    let other = value_at(&losses, squared_radius, eta);
                    assert!(value <= other + 1e-9 * other.abs().max(1.0), "{losses:?} {alpha}: {value} {other}");
                    n_tried += 1;
                }
                let own = found.eta.map_or(value, |eta| value_at(&losses, squared_radius, eta));
                assert!((value - own).abs() <= 1e-7 * own.abs().max(1.0), "{losses:?} {alpha}: {value} {own}");
            }
        }
    }
    assert_eq!(n_tried, 5 * 4 * 7 * 501);
}

#[test]
fn gradients_agree_with_differences_through_losses_and_halves() {
    let head = DeepHit::new(&DeepHitConfig { alpha: 0.2, sigma: 0.5, ranking: Ranking::Pycox }).unwrap();
    let (cuts, clock, dro) = (whole_cuts(3), Clock::default(), dro(0.8));
    let targets =
        cuts.targets("test", &[1.0, 2.0, 0.0, 2.0, 1.0, 1.0], &[true, true, true, false, false, true]).unwrap();
    let context = context(&head, &cuts, &clock, 3);
    let half = halves(&targets.event, &context);
    let z: Vec<f64> = (0..18).map(|k| f64::from((k * 7) % 11) / 5.0 - 1.0).collect();
    let objective = |logits: &Tensor<2>| {
        let losses = context.losses_against_other_half(logits.clone(), &targets, &half);
        let weights = dro.weights(&on_host(&losses), &[true; 6], Some(&half), &context).unwrap();
        weighted_sum(&losses, weights)
    };
    let logits = tensor(z.clone(), [6, 3]).require_grad();
    let analytic = gradient(&objective(&logits), &logits);
    // The weights change with the losses too; by the envelope theorem this does not affect the derivative.
    let numeric = differences(&z, |z| values(&objective(&tensor(z, [6, 3])))[0]);
    assert!(analytic.iter().any(|slope| slope.abs() > 1e-2));
    for (analytic, numeric) in analytic.iter().zip(&numeric) {
        assert!((analytic - numeric).abs() < 1e-8, "{analytic} {numeric}");
    }
}

#[test]
fn only_samples_that_count_have_weight() {
    let (head, cuts, clock) = (Cox::default(), whole_cuts(3), Clock::default());
    let context = context(&head, &cuts, &clock, 0);
    let counted = [true, false, true, true, false];
    let half = [true, true, true, false, false];
    // Half of 0 and 2: C^2 = 3 is not below 2, so its largest loss; half of 3: its only loss.
    let weights = dro(0.5).weights(&[1.0, 9.0, 2.0, 0.5, 7.0], &counted, Some(&half), &context).unwrap();
    assert_eq!(weights, [0.0, 0.0, 1.0, 1.0, 0.0]);
    let weights = dro(0.5).weights(&[0.0; 5], &[false; 5], Some(&half), &context).unwrap();
    assert_eq!(weights, [0.0; 5], "a batch without an event");
    let error = dro(0.5).weights(&[1.0, f64::NAN], &[true; 2], None, &context).unwrap_err();
    assert!(error.to_string().starts_with("the loss of a sample is NaN in epoch 1, step 1"), "{error}");
}

#[test]
fn halves_share_samples_and_events_and_change_with_the_step() {
    let (head, cuts, clock) = (Pmf, whole_cuts(3), Clock::default());
    let event: Vec<bool> = (0..13).map(|i| i % 3 == 0).collect();
    let of = |step| halves(&event, &context(&head, &cuts, &clock, step));
    let mut seen = Vec::new();
    for step in 0..20 {
        let half = of(step);
        let n = half.iter().filter(|half| **half).count();
        let n_events = half.iter().zip(&event).filter(|(half, event)| **half && **event).count();
        assert_eq!((n, n_events), (6, 2), "of 13 samples with 5 events");
        assert_eq!(half, of(step), "the same again");
        seen.push(half);
    }
    seen.sort();
    seen.dedup();
    assert!(seen.len() > 15, "only {} different ones", seen.len());
    assert_eq!(halves(&[true], &context(&head, &cuts, &clock, 0)), [false]);
}

#[test]
fn an_alpha_of_which_only_the_maximum_would_be_left_is_refused_with_both_numbers() {
    let check = |alpha, n, head: &dyn SurvivalHead| {
        DroChiSquareConfig { alpha, ..Default::default() }.check_batches(&ExpectedBatch::of_any_data(n, head))
    };
    let deephit = DeepHit::new(&DeepHitConfig::default()).unwrap();
    let message = check(0.2, 33, &NnetSurvival).unwrap_err().to_string();
    let expected = "alpha is 0.2, expected an alpha with 2 (1/alpha - 1)^2 + 1 (here 33) \
                    below batch-size 33: otherwise only the largest loss of a batch would count";
    assert_eq!(message, expected);
    assert!(check(0.2, 34, &NnetSurvival).is_ok());
    for head in [&deephit as &dyn SurvivalHead, &Cox::default()] {
        let message = check(0.5, 7, head).unwrap_err().to_string();
        let part = format!("below half of batch-size 7, as head {} is split", head.name());
        assert!(message.contains(&part), "{message}");
        assert!(check(0.5, 8, head).is_ok());
    }
    assert!(check(1.0, 2, &deephit).is_ok(), "the plain mean");
}

// C^2 = 3. Of 20 samples 6 have their event: 10 in a half, and 3 of them with a loss; of 21 no more; of 22 it is 3.3.
#[test]
fn with_the_cox_heads_the_check_counts_the_events_of_a_half() {
    let (cuts, event) = (whole_cuts(3), (0..20).map(|i| i < 6).collect::<Vec<_>>());
    let train = cuts.targets("test", &[1.0; 20], &event).unwrap();
    let config = DroChiSquareConfig { alpha: 0.5, ..Default::default() };
    let check = |n, head: &dyn SurvivalHead| config.check_batches(&ExpectedBatch::of_training(n, head, &train));
    let message = check(21, &Cox::default()).unwrap_err().to_string();
    let expected = "alpha is 0.5, expected an alpha with 2 (1/alpha - 1)^2 + 1 (here 3) below the 3 \
                    events expected in half of batch-size 21, as head cox is split (30 % of the training samples \
                    have one): otherwise only the largest loss of a batch would count";
    assert_eq!(message, expected);
    assert!(check(22, &Cox::default()).is_ok());
    let deephit = DeepHit::new(&DeepHitConfig::default()).unwrap();
    assert!(check(8, &deephit).is_ok(), "every sample has a loss there");
    assert!(check(4, &NnetSurvival).is_ok());
}

#[test]
fn settings_out_of_range_name_their_key() {
    assert!(DroChiSquareConfig::default().validate().is_ok());
    for alpha in [0.0, -0.1, 1.1, f64::NAN, 1e-200] {
        let message = DroChiSquareConfig { alpha, ..Default::default() }.validate().unwrap_err().to_string();
        assert!(message.starts_with("alpha is"), "{message}");
        assert!(message.ends_with("expected a number > 0 and <= 1"), "{message}");
    }
}

// With a head whose losses are independent the given losses are used, with one that ranks those against the other half.
#[test]
fn the_objective_splits_the_batch_only_where_losses_depend_on_it() {
    let (cuts, clock) = (whole_cuts(3), Clock::default());
    let event = [true, true, true, false, false, true, true, false];
    let targets = cuts.targets("test", &[1.0, 2.0, 0.0, 2.0, 1.0, 1.0, 0.0, 2.0], &event).unwrap();
    let outputs = tensor((0..24).map(|k| f64::from((k * 7) % 11) / 5.0 - 1.0).collect(), [8, 3]);
    let given = [0.3, 2.0, 0.7, 0.1, 5.0, 0.4, 0.9, 1.6];
    let deephit = DeepHit::new(&DeepHitConfig::default()).unwrap();
    let value = |head: &dyn SurvivalHead| {
        let context = context(head, &cuts, &clock, 0);
        let terms = Terms {
            losses: tensor(given.to_vec(), [8]),
            counted: &[true; 8],
            outputs: outputs.clone(),
            representation: outputs.clone(),
            before_dropout: outputs.clone(),
            targets: &targets,
            groups: &[None; 8],
            context: &context,
        };
        let found = dro(0.6).value(&terms).unwrap();
        let half = halves(&event, &context);
        let ranked = values(&context.losses_against_other_half(outputs.clone(), &targets, &half));
        (values(&found.objective)[0], found.terms[0].1, half, ranked)
    };
    let squared_radius = dro(0.6).config.squared_radius();
    let of = |losses: &[f64]| {
        let weights = optimum(losses, squared_radius).weights;
        (dot(&weights, losses), weights.iter().filter(|weight| **weight > 0.0).count() as f64)
    };
    let (found, n_weighted, ..) = value(&NnetSurvival);
    assert_eq!((found, n_weighted), of(&given));
    let (found, n_weighted, half, ranked) = value(&deephit);
    let side = |side: bool| -> Vec<f64> { (0..8).filter(|i| half[*i] == side).map(|i| ranked[i]).collect() };
    let (first, second) = (of(&side(false)), of(&side(true)));
    assert!((found - first.0 - second.0).abs() < 1e-13, "{found} {first:?} {second:?}");
    assert!((n_weighted - first.1 - second.1).abs() < 1e-9);
}

// The worst part is found by the likelihood of each half, and the losses of its members are minimised.
#[test]
fn by_likelihood_the_weights_change_and_the_losses_stay() {
    let (cuts, clock) = (whole_cuts(3), Clock::default());
    let (time, event) = ([0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6], [true, true, false, true, true, true, true, false]);
    let targets = cuts.targets("test", &time, &event).unwrap();
    let outputs = tensor((0..8).map(|k| f64::from((k * 5) % 7) / 3.0 - 1.0).collect(), [8, 1]);
    let head = Cox::default();
    let context = context(&head, &cuts, &clock, 0);
    let half = halves(&event, &context);
    let losses = context.losses_against_other_half(outputs.clone(), &targets, &half);
    let value = |weigh_by| {
        let terms = Terms {
            losses: losses.clone(),
            counted: &event,
            outputs: outputs.clone(),
            representation: outputs.clone(),
            before_dropout: outputs.clone(),
            targets: &targets,
            groups: &[None; 8],
            context: &context,
        };
        let config = DroChiSquareConfig { alpha: 0.6, weigh_by };
        values(&DroChiSquare::new(&config).unwrap().value(&terms).unwrap().objective)[0]
    };
    let by = values(&context.misfits(outputs.clone(), &targets, Some(&half)));
    let squared_radius = dro(0.6).config.squared_radius();
    let mut expected = 0.0;
    for side in [false, true] {
        let members: Vec<usize> = (0..8).filter(|i| event[*i] && half[*i] == side).collect();
        let of_members = |numbers: &[f64]| members.iter().map(|i| numbers[*i]).collect::<Vec<_>>();
        expected += dot(&optimum(&of_members(&by), squared_radius).weights, &of_members(&values(&losses)));
    }
    assert!((value(WeighBy::Likelihood) - expected).abs() < 1e-12, "{} {expected}", value(WeighBy::Likelihood));
    assert!((value(WeighBy::Loss) - expected).abs() > 1e-3);
}
