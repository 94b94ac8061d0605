//! Tests of `src/strategies/domain_independent`; they need a back end, which `src` does not name.
use burn::tensor::activation::{log_softmax, sigmoid, softmax};
use burn::tensor::{DType, Device, Tensor, TensorData};
use fairtte_metrics::GroupId;
use fairtte_survival::{CoxConfig, CutPoints, HeadConfig, PmfConfig, PredictionGrid};
use serde_json::Value as Json;

use super::super::table::{World, numbers};
use super::super::{Clock, MissingAttribute, StrategyConfig};
use super::network::{routed, weighted_sum};
use super::*;

fn of(json: &Json) -> Vec<f64> {
    json.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Outputs of the heads, `[sample, interval]` each.
fn heads(inputs: &Json, device: &Device) -> Vec<Tensor<2>> {
    let samples = inputs["logits"].as_array().unwrap();
    let head = |g: usize| {
        let rows: Vec<f64> = samples.iter().flat_map(|heads| of(&heads[g])).collect();
        Tensor::from_data(TensorData::new(rows, [samples.len(), 3]), (device, DType::F64))
    };
    (0..3).map(head).collect()
}

/// The curves that both heads give, in f64 from their formulas: the crate's heads read f32.
fn curves(head: &str, logits: Tensor<2>) -> Array2<f64> {
    let values = |tensor: Tensor<2>| tensor.into_data().iter::<f64>().collect::<Vec<_>>();
    let [n, width] = logits.dims();
    let steps = if head == "pmf" {
        let zeros = Tensor::from_data(TensorData::new(vec![0.0_f64; n], [n, 1]), (&logits.device(), DType::F64));
        values(softmax(Tensor::cat(vec![logits, zeros], 1), 1).slice([0..n, 0..width]))
    } else {
        values(sigmoid(logits))
    };
    Array2::from_shape_fn((n, width), |(row, k)| {
        let until = &steps[row * width..=row * width + k];
        if head == "pmf" { 1.0 - until.iter().sum::<f64>() } else { until.iter().map(|h| 1.0 - h).product() }
    })
}

fn compare(found: &Array2<f64>, expected: &Json, tolerance: f64, what: &str) -> usize {
    for (row, expected) in found.rows().into_iter().zip(expected.as_array().unwrap()) {
        for (found, expected) in row.iter().zip(of(expected)) {
            let close = (found - expected).abs() <= tolerance * expected.abs() + 1e-12;
            assert!(close, "{what}: {found} is not {expected}");
        }
    }
    found.len()
}

// `sum_logits_MEDFAIR` is not an option here; it is compared because a sum is the mean with weights of 1.
#[test]
#[expect(clippy::print_stdout, reason = "how many values were compared is worth seeing")]
fn every_inference_rule_gives_the_curves_of_the_worked_cases() {
    let golden: Json = serde_json::from_str(include_str!("../golden/domain_independence.json")).unwrap();
    let device = Device::flex();
    let (mut n_compared, mut n_cases) = (0, 0);
    for case in &golden["cases"].as_array().unwrap()[..2] {
        let (inputs, expected) = (&case["inputs"], &case["expected"]);
        let head = inputs["head"].as_str().unwrap();
        let outputs = heads(inputs, &device);
        let (equal, shares) = (vec![1.0 / 3.0; 3], of(&inputs["training_shares"]));
        let combined = |weights: &[f64]| weighted_sum(outputs.iter().cloned().zip(weights.iter().copied()));
        for (weights, key) in
            [(&equal, "mean_logits"), (&shares, "share_weighted_logits"), (&vec![1.0; 3], "sum_logits_MEDFAIR")]
        {
            n_compared += compare(&curves(head, combined(weights)), &expected[key], 1e-9, key);
            // The same through the head of the crate, in f32.
            let config = if head == "pmf" { HeadConfig::Pmf(PmfConfig::default()) } else { HeadConfig::default() };
            let outcomes = fairtte_metrics::Outcomes::new(vec![1.0, 2.0], vec![true, true]).unwrap();
            let grid = PredictionGrid::at_cut_points(&CutPoints::equidistant(&outcomes, 3).unwrap());
            let narrow = on_host(combined(weights).cast(DType::F32));
            let found = config.build().unwrap().survival(narrow.view(), &grid, None).unwrap();
            compare(&found, &expected[key], 2e-5, key);
        }
        for (weights, key) in [(&equal, "mean_survival"), (&shares, "share_weighted_survival")] {
            let found = mixture(weights, |g| Ok::<_, ()>(curves(head, outputs[g].clone()))).unwrap().unwrap();
            n_compared += compare(&found, &expected[key], 1e-9, key);
        }
        for (sample, of_heads) in expected["survival_per_group_head"].as_array().unwrap().iter().enumerate() {
            for (g, expected) in of_heads.as_array().unwrap().iter().enumerate() {
                let found = curves(head, outputs[g].clone().slice([sample..sample + 1, 0..3]));
                n_compared += compare(&found, &Json::Array(vec![expected.clone()]), 1e-9, "one head");
            }
        }
        let groups: Vec<usize> = serde_json::from_value(inputs["group"].clone()).unwrap();
        let groups: Vec<Option<usize>> = groups.into_iter().map(Some).collect();
        let own = routed(&groups, &device, |group, rows| outputs[group.unwrap()].clone().select(0, rows));
        n_compared += compare(&curves(head, own), &expected["own_group"], 1e-9, "own_group");
        n_cases += 1;
    }
    println!("domain independence: {n_compared} values of {n_cases} cases compared");
    assert_eq!((n_cases, n_compared), (2, 2 * (5 * 6 + 18 + 6)));
}

#[test]
#[expect(clippy::print_stdout, reason = "how many values were compared is worth seeing")]
fn each_sample_trains_the_classifier_of_its_group_as_in_the_worked_case() {
    let golden: Json = serde_json::from_str(include_str!("../golden/domain_independence.json")).unwrap();
    let case = &golden["cases"][2];
    let device = Device::flex().autodiff();
    let outputs: Vec<Tensor<2>> = heads(&case["inputs"], &device).into_iter().map(Tensor::require_grad).collect();
    let own = routed(&[Some(2), Some(0)], &device, |group, rows| outputs[group.unwrap()].clone().select(0, rows));
    let zeros = Tensor::from_data(TensorData::new(vec![0.0_f64; 2], [2, 1]), (&device, DType::F64));
    let log_mass = log_softmax(Tensor::cat(vec![own, zeros], 1), 1);
    // Sample 0: an event in interval 1. Sample 1: censored in interval 2, so it survives the grid.
    let losses = [log_mass.clone().slice([0..1, 1..2]), log_mass.slice([1..2, 3..4])];
    let loss = -Tensor::cat(losses.to_vec(), 0).mean();
    let found: f64 = loss.clone().into_data().iter::<f64>().sum();
    let expected = case["expected"]["mean_loss"].as_f64().unwrap();
    assert!((found - expected).abs() < 1e-9 * expected, "{found} is not {expected}");
    let gradients = loss.backward();
    let mut n_compared = 1;
    for (g, head) in outputs.iter().enumerate() {
        let found = head.grad(&gradients).map(|gradient| gradient.into_data().iter::<f64>().collect::<Vec<_>>());
        assert_eq!(found.is_none(), g == 1, "the classifier of the absent group has no gradient at all");
        for sample in 0..2 {
            for (k, expected) in of(&case["expected"]["d_loss_d_logits"][sample][g]).iter().enumerate() {
                let found = found.as_ref().map_or(0.0, |found| found[3 * sample + k]);
                assert!((found - expected).abs() <= 1e-9 * expected.abs() + 1e-12, "{found} is not {expected}");
                n_compared += 1;
            }
        }
    }
    println!("domain independence, training: {n_compared} values compared");
    assert_eq!(n_compared, 19);
}

fn strategy(world: &World, config: DomainIndependentConfig) -> DomainIndependent {
    let mut spec = world.spec();
    spec.optimiser.weight_decay = 0.1; // changes every parameter that has a gradient, even 0
    DomainIndependent::new(&config, &spec, &world.cells()).unwrap()
}

/// Names of the parameters that a step on these rows changes.
fn moved(world: &World, strategy: &mut DomainIndependent, rows: &[usize], step: usize) -> (Vec<String>, StepReport) {
    let before = numbers(strategy.learner.network());
    let clock = Clock::default();
    let report = strategy.step(&world.batch(rows, true), &world.context(step, &clock)).unwrap();
    let after = numbers(strategy.learner.network());
    let changed = before.into_iter().zip(after).filter(|(a, b)| a.1 != b.1);
    (changed.map(|(a, _)| a.0).collect(), report)
}

#[test]
fn the_classifier_of_an_absent_group_keeps_every_bit_while_momentum_and_decay_wait() {
    for head in [HeadConfig::default(), HeadConfig::Cox(CoxConfig::default())] {
        let world = World::new(&head);
        let mut strategy = strategy(&world, DomainIndependentConfig::default());
        let (a, b) = (world.train_rows(Some(0), 8), world.train_rows(Some(1), 8));
        let none = world.train_rows(None, 8);
        let of = |names: &[String], g: usize| names.iter().any(|name| name.starts_with(&format!("classifiers.{g}")));
        // Both are trained first, so that both have momentum.
        let (all, report) = moved(&world, &mut strategy, &[a.as_slice(), &b].concat(), 0);
        assert!(of(&all, 0) && of(&all, 1) && report.absent_groups == 0);
        let (only_a, report) = moved(&world, &mut strategy, &a, 1);
        assert!(of(&only_a, 0) && !of(&only_a, 1) && report.absent_groups == 1, "{only_a:?}");
        let (only_b, _) = moved(&world, &mut strategy, &b, 2);
        assert!(!of(&only_b, 0) && of(&only_b, 1), "{only_b:?}");
        // Without the attribute: the encoder learns, no classifier does.
        let (without, report) = moved(&world, &mut strategy, &none, 3);
        assert!(!of(&without, 0) && !of(&without, 1) && report.absent_groups == 2, "{without:?}");
        assert!(without.iter().any(|name| name.starts_with("encoder")), "{without:?}");
    }
}

#[test]
fn a_classifier_has_gradient_from_the_samples_of_its_group_only() {
    let world = World::new(&HeadConfig::default());
    let strategy = strategy(&world, DomainIndependentConfig::default());
    let network = strategy.learner.network();
    let (a, b, none) = (world.train_rows(Some(0), 5), world.train_rows(Some(1), 4), world.train_rows(None, 3));
    let batch = world.batch(&[a, b, none].concat(), true);
    let representation = network.represent(&batch, &mut Noise::Off).unwrap().detach();
    let gradient = |rows: std::ops::Range<usize>, g: usize| {
        let outputs = network.own(&batch.groups, &strategy.equal, &representation, &[]);
        let gradients = outputs.slice([rows, 0..6]).square().sum().backward();
        let gradients = burn::optim::GradientsParams::from_grads(gradients, network);
        crate::gradients::squared_norm(network.classifier(g), &gradients)
            .map_or(0.0, |sum| sum.into_data().iter::<f64>().sum::<f64>())
    };
    for (rows, of) in [(0..5, Some(0)), (5..9, Some(1)), (9..12, None)] {
        for g in 0..2 {
            let found = gradient(rows.clone(), g);
            assert_eq!(found > 0.0, of == Some(g), "rows {rows:?}, classifier {g}: {found}");
        }
    }
}

/// Curves of some test samples under each rule, from the same weights.
fn predicted(world: &World, config: DomainIndependentConfig, batch: &Batch) -> Array2<f64> {
    let mut strategy = strategy(world, config);
    world.with_parts(|parts| strategy.before_validation(parts)).unwrap();
    let grid = PredictionGrid::at_cut_points(&world.cut_points);
    strategy.predict(batch, &CurveRule { head: world.head.as_ref(), grid: &grid }).unwrap()
}

#[test]
fn own_group_reads_the_attribute_and_averages_by_share_without_it() {
    for head in [HeadConfig::default(), HeadConfig::Cox(CoxConfig::default())] {
        let world = World::new(&head);
        let config = |inference| DomainIndependentConfig { inference, ..DomainIndependentConfig::default() };
        let batch = world.batch(&world.test, false);
        let own = predicted(&world, config(DomainInference::OwnGroup), &batch);
        let mixed = predicted(&world, config(DomainInference::ShareWeighted), &batch);
        let logits = predicted(&world, config(DomainInference::MeanLogits), &batch);
        let mut swapped = batch.clone();
        swapped.groups = batch.groups.iter().map(|group| group.map(|g| GroupId(1 - g.0))).collect();
        let other = predicted(&world, config(DomainInference::OwnGroup), &swapped);
        let shares = strategy(&world, config(DomainInference::OwnGroup)).shares;
        let mut n = [0, 0];
        for (i, group) in batch.groups.iter().enumerate() {
            n[usize::from(group.is_some())] += 1;
            match group {
                None => assert_eq!(own.row(i), mixed.row(i)),
                Some(g) => {
                    let mean =
                        own.row(i).mapv(|s| s * shares[g.index()]) + other.row(i).mapv(|s| s * shares[1 - g.index()]);
                    for (found, mean) in mixed.row(i).iter().zip(&mean) {
                        assert!((found - mean).abs() < 1e-12, "{found} is not {mean}");
                    }
                }
            }
        }
        assert!(n[0] >= 3 && n[1] >= 10, "{n:?}");
        assert_ne!(logits, mixed);
        let strategy = strategy(&world, config(DomainInference::OwnGroup));
        assert!(strategy.needs_group_to_predict());
    }
}

#[test]
fn a_sample_without_the_attribute_is_refused_if_the_settings_say_so() {
    let world = World::new(&HeadConfig::default());
    let config =
        DomainIndependentConfig { inference: DomainInference::OwnGroup, missing_attribute: MissingAttribute::Refuse };
    let strategy = strategy(&world, config);
    let grid = PredictionGrid::at_cut_points(&world.cut_points);
    let rule = CurveRule { head: world.head.as_ref(), grid: &grid };
    let row = world.test.iter().copied().find(|row| world.groups[*row].is_none()).unwrap();
    let error = strategy.predict(&world.batch(&[world.test[0], row], false), &rule).unwrap_err().to_string();
    let expected = format!(
        "strategy domain-independent predicts by group, but sample \"s{row}\" has no known group; set \
         missing-attribute = \"average\" to predict without one"
    );
    assert_eq!(error, expected);
    let useless = DomainIndependentConfig { inference: DomainInference::MeanLogits, ..config };
    let error = StrategyConfig::DomainIndependent(useless).validate().unwrap_err().to_string();
    assert!(error.contains("expected average, unless inference = \"own-group\""), "{error}");
}

#[test]
fn a_level_without_training_samples_has_no_weight() {
    let world = World::new(&HeadConfig::default());
    let mut cells = world.cells();
    cells.levels.push("nobody".to_owned());
    let strategy = DomainIndependent::new(&DomainIndependentConfig::default(), &world.spec(), &cells).unwrap();
    assert_eq!(strategy.equal, [0.5, 0.5, 0.0]);
    let of = |level| cells.groups.iter().flatten().filter(|group| **group == GroupId(level)).count() as f64;
    let (a, b) = (of(0), of(1));
    assert_eq!(strategy.shares, [a / (a + b), b / (a + b), 0.0]);
}
