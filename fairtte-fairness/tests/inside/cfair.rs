//! Tests of `src/strategies/cfair`; they need a back end, which `src` does not name.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "how many values were compared is worth seeing")]
use burn::module::{ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Gradients, TensorData};
use fairtte_models::Pixels;
use fairtte_survival::HeadConfig;
use ndarray::{Array2, Axis};
use serde_json::Value as Json;

use super::super::Clock;
use super::super::StratumConfig;
use super::super::adversary_cases::{
    Compared, case, gradient, groups, list, matrix, number, numbers, strata, values, whole,
};
use super::super::table::{World, numbers as numbers_of};
use super::losses::task_coefficients;
use super::*;

fn golden() -> Json {
    serde_json::from_str(include_str!("../golden/cfair.json")).unwrap()
}

/// The worked cases give every sample's logits by the adversary of its own stratum.
fn losses(inputs: &Json, weights: &Weights) -> (Tensor<2>, Vec<Tensor<1>>) {
    let cells = BatchCells::new(&groups(&inputs["group"]), &strata(&inputs["stratum"]), (2, 2));
    let logits = matrix(&inputs["adversary_logits_of_own_stratum"]);
    (
        logits.clone(),
        adversary_losses(&cells, weights, |_, rows| logits.clone().select(0, indices(rows, &logits.device()))),
    )
}

fn flat(losses: &[Tensor<1>]) -> Vec<f64> {
    losses.iter().flat_map(values).collect()
}

#[test]
fn losses_and_gradients_are_those_of_the_worked_cases() {
    let (golden, mut compared) = (golden(), Compared::default());

    let balanced = case(&golden, "balanced adversary loss");
    let (logits, by_stratum) = losses(&balanced["inputs"], &Weights::Batch);
    let expected = &balanced["expected"];
    compared.same("stratum 0", &values(&by_stratum[0]), &expected["balanced_loss_by_stratum"]["0"]);
    compared.same("stratum 1", &values(&by_stratum[1]), &expected["balanced_loss_by_stratum"]["1"]);
    let loss = mean_over_strata(by_stratum).unwrap();
    compared.same("adversary", &values(&loss), &expected["adversary_loss"]);
    compared.same("gradient", &gradient(&loss.backward(), &logits), &expected["d_adversary_loss_d_logits"]);

    let one_group = case(&golden, "stratum 1 has only group 1");
    let (_, by_stratum) = losses(&one_group["inputs"], &Weights::Batch);
    compared.same("one group", &flat(&by_stratum), &one_group["expected"]["balanced_loss_by_stratum"]);
    let loss = mean_over_strata(by_stratum).unwrap();
    compared.same("one group", &values(&loss), &one_group["expected"]["adversary_loss"]);
    println!("CFair, cell means of the batch: {} numbers of 2 cases compared", compared.n);
    assert_eq!(compared.n, 22);
}

/// Both tables of weights; the second one, which the original code uses, is not an option here and is set directly.
#[test]
fn weights_of_the_training_part_are_those_of_the_worked_cases() {
    let (golden, mut compared) = (golden(), Compared::default());
    let (right, exchanged) = (case(&golden, "training-set weights"), case(&golden, "for comparison only"));
    let joint = &right["inputs"]["joint_P_A_Y"];
    let p = |a: usize, y: usize| number(&joint[format!("A{a}Y{y}")]);
    // As many training samples per cell as make these shares.
    let counts: Vec<Vec<usize>> = (0..2).map(|y| (0..2).map(|a| whole(1000.0 * p(a, y)) as usize).collect()).collect();
    let weights = training_weights(&counts, &[1.0; 2]);
    let Weights::Training(table) = &weights else { panic!("weights of the training part") };
    compared.same("weights", &table.concat(), &right["expected"]["weight_by_stratum_then_group"]);
    let swapped = (0..2).map(|y| (0..2).map(|a| (p(y, 0) + p(y, 1)) / p(y, a)).collect()).collect();
    let swapped = Weights::Training(swapped);
    let Weights::Training(table) = &swapped else { panic!("weights of the training part") };
    compared.same("exchanged", &table.concat(), &exchanged["expected"]["weight_by_stratum_then_group"]);
    for (case, weights) in [(right, &weights), (exchanged, &swapped)] {
        let (_, by_stratum) = losses(&case["inputs"], weights);
        compared.same("losses", &flat(&by_stratum), &case["expected"]["loss_by_stratum"]);
        let loss = mean_over_strata(by_stratum).unwrap();
        compared.same("loss", &values(&loss), &case["expected"]["adversary_loss"]);
    }
    println!("CFair, weights of the training part: {} numbers of 2 cases compared", compared.n);
    assert_eq!(compared.n, 14);
}

// Cells of 90 and 10 samples, and of 30 and 30: groups of 120 and 40. Drawn equally often, a sample of the second comes
// three times as often as one of the first: 90 to 30, and 30 to 90.
#[test]
fn weights_of_the_training_part_follow_the_balanced_sampler() {
    let counts = [vec![90, 10], vec![30, 30]];
    let weights = training_weights(&counts, &[1.0 / 120.0, 1.0 / 40.0]);
    let Weights::Training(table) = weights else { panic!("weights of the training part") };
    for (found, expected) in table.concat().iter().zip([4.0 / 3.0, 4.0, 4.0, 4.0 / 3.0]) {
        assert!((found - expected).abs() < 1e-12, "{table:?}");
    }
    // The weights of a cell's samples, as often as they are drawn, sum to the same for every group of a stratum.
    let setting = Setting::new();
    let training = setting.world.cells();
    let outcomes = IntervalTargets { index: training.interval.clone(), event: training.event.clone() };
    let mut tables = Vec::new();
    for balanced_sampler in [false, true] {
        let config = CfairConfig { weights: CfairWeights::Training, balanced_sampler, ..CfairConfig::default() };
        let cfair = Cfair::new(&config, &setting.world.spec(), &training).unwrap();
        let all_once = vec![1.0; training.groups.len()];
        let drawn = if let Sampling::Weighted(weights) = cfair.sampling() { weights } else { all_once };
        let Weights::Training(table) = &cfair.weights else { panic!("weights of the training part") };
        let strata = cfair.strata.of(&outcomes);
        for (y, weights) in table.iter().enumerate() {
            let mass = |g: usize| -> f64 {
                let is_of = |i: usize| training.groups[i].is_some_and(|group| group.index() == g);
                let of_cell = |i: &usize| strata[*i] == Some(y) && is_of(*i);
                (0..drawn.len()).filter(of_cell).map(|i| drawn[i]).sum::<f64>() * weights[g]
            };
            let (first, second) = (mass(0), mass(1));
            assert!((first / second - 1.0).abs() < 1e-9, "{balanced_sampler}, stratum {y}: {first} {second}");
        }
        tables.push(table.concat());
    }
    assert!((tables[0][0] - tables[1][0]).abs() > 1e-2, "the groups of the table have equal shares: {tables:?}");
}

#[test]
fn the_task_loss_and_the_objective_are_those_of_the_worked_case() {
    let (golden, mut compared) = (golden(), Compared::default());
    let (task, balanced) = (case(&golden, "task loss"), case(&golden, "balanced adversary loss"));
    let (inputs, expected) = (&task["inputs"], &task["expected"]);
    let (per_sample, strata) = (list(&inputs["task_loss_per_sample"]), strata(&inputs["stratum"]));
    let counted = vec![true; strata.len()];
    let losses_of = |y| {
        let of_stratum =
            numbers(&inputs["task_loss_per_sample"]).into_iter().zip(&strata).filter(|(_, of)| **of == Some(y));
        of_stratum.map(|(loss, _)| loss).sum::<f64>()
    };
    compared.same("means", &[losses_of(0) / 4.0, losses_of(1) / 4.0], &expected["stratum_mean"]);
    for (mode, key) in [(CfairMode::Cfair, "cfair_task"), (CfairMode::CfairEo, "cfair_eo_task")] {
        let loss = mode.task(&per_sample, &per_sample.clone().mean(), &strata, &counted);
        compared.same(key, &values(&loss), &expected[key]);
        let (_, by_stratum) = losses(&balanced["inputs"], &Weights::Batch);
        let adversary = mean_over_strata(by_stratum).unwrap();
        let objective = loss - adversary.clone() * number(&inputs["lambda"]);
        compared.same(key, &values(&objective), &expected["encoder_objective_cfair"]);
        compared.same(key, &values(&adversary), &expected["adversary_objective"]);
    }
    println!("CFair, objective: {} numbers of 1 case compared", compared.n);
    assert_eq!(compared.n, 8);
}

// Two of four samples have a stratum, one of them alone in it: the strata share the mass 3/4 of the counted samples that
// have one, and the sample without keeps its quarter.
#[test]
fn samples_without_a_stratum_keep_their_share_of_the_task() {
    let strata = [Some(0), Some(0), Some(1), None, Some(1)];
    let coefficients = task_coefficients(&strata, &[true, true, true, true, false]);
    assert_eq!(coefficients, [0.1875, 0.1875, 0.375, 0.25, 0.0]);
    assert_eq!(task_coefficients(&[None, None], &[true, true]), [0.5, 0.5]);
    assert_eq!(task_coefficients(&[Some(0), None], &[false, false]), [0.0, 0.0]);
}

const LAMBDA: f64 = 0.3;

/// The loss and gradients of the adversaries of a network for a batch, by plain sums over its samples.
#[derive(Default)]
struct ByHand {
    /// Mean loss over the strata.
    loss: f64,
    /// Its derivative by the input of the adversaries' relu, `[batch][representation]`.
    by_representation: Vec<Vec<f64>>,
    /// Its derivatives by weights and biases, under their names in the network.
    by_parameter: Vec<(String, Vec<f64>)>,
}

impl ByHand {
    /// For representations `z` of samples in cells (stratum, group), each of the weight that the cell has in its stratum.
    fn new(
        named: &[(String, Vec<f64>)],
        z: &Array2<f64>,
        cell: &[Option<(usize, usize)>],
        weight: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let mut found = Self { by_representation: vec![vec![0.0; z.ncols()]; z.nrows()], ..Self::default() };
        let members = |y: usize| (0..cell.len()).filter(move |i| cell[*i].is_some_and(|(of, _)| of == y));
        let present: Vec<usize> = (0..2).filter(|y| members(*y).next().is_some()).collect();
        for y in present.iter().copied() {
            let read = |name: &str, rows: usize| {
                let name = format!("adversaries.{y}.{name}");
                let values = named.iter().find(|(of, _)| *of == name).unwrap().1.clone();
                Array2::from_shape_vec((rows, values.len() / rows), values).unwrap()
            };
            let (w1, b1) = (read("hidden.weight", z.ncols()), read("hidden.bias", 1));
            let (w2, b2) = (read("output.weight", w1.ncols()), read("output.bias", 1));
            let total: f64 = members(y).map(|i| weight(y, cell[i].unwrap().1)).sum();
            let mut gradients = [&w1, &b1, &w2, &b2].map(|of| Array2::<f64>::zeros(of.dim()));
            for i in members(y) {
                let group = cell[i].unwrap().1;
                let share = weight(y, group) / total / present.len() as f64;
                let row = z.row(i).insert_axis(Axis(0)).to_owned();
                let r = row.mapv(|v| v.max(0.0));
                let before = r.dot(&w1) + &b1;
                let hidden = before.mapv(|v| v.max(0.0));
                let exponentials = (hidden.dot(&w2) + &b2).mapv(f64::exp);
                let p = &exponentials / exponentials.sum();
                found.loss -= share * p[[0, group]].ln();
                let mut by_logits = p * share;
                by_logits[[0, group]] -= share;
                let by_hidden = by_logits.dot(&w2.t()) * before.mapv(|v| f64::from(u8::from(v > 0.0)));
                let by_z = by_hidden.dot(&w1.t()) * row.mapv(|v| f64::from(u8::from(v > 0.0)));
                found.by_representation[i] = by_z.iter().copied().collect();
                gradients[0] += &r.t().dot(&by_hidden);
                gradients[2] += &hidden.t().dot(&by_logits);
                gradients[1] += &by_hidden;
                gradients[3] += &by_logits;
            }
            for (name, of) in ["hidden.weight", "hidden.bias", "output.weight", "output.bias"].iter().zip(gradients) {
                found.by_parameter.push((format!("adversaries.{y}.{name}"), of.iter().copied().collect()));
            }
        }
        found
    }
}

/// Gradients by name; none for a parameter without a gradient.
fn by_name(gradients: Gradients, network: &CfairNetwork) -> Vec<(String, Vec<f64>)> {
    struct Collect(GradientsParams, Vec<String>, Vec<(String, Vec<f64>)>);
    impl ModuleVisitor for Collect {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.1.push(name.to_owned());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.1.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.0.get::<D>(param.id) {
                self.2.push((self.1.join("."), gradient.into_data().iter::<f64>().collect()));
            }
        }
    }
    let mut collect = Collect(GradientsParams::from_grads(gradients, network), Vec::new(), Vec::new());
    network.visit(&mut collect);
    collect.2
}

/// Computed in `f32`.
fn close(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let size = expected.iter().map(|x| x.abs()).fold(0.0, f64::max);
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-4 * expected.abs() + 1e-5 * size, "{what}: {found} is not {expected}");
    }
}

/// A table, its first 40 training rows, and the cells of these and of the whole training part.
struct Setting {
    world: World,
    cell: Vec<Option<(usize, usize)>>,
    in_batch: [[f64; 2]; 2],
    in_training: [[f64; 2]; 2],
}

impl Setting {
    fn new() -> Self {
        let world = World::of(&HeadConfig::default(), 900, 0.8, 0);
        let cells = world.cells();
        let rule = Strata::fit(&StratumConfig::default(), &cells, "cfair").unwrap();
        let strata = rule.of(&IntervalTargets { index: cells.interval.clone(), event: cells.event.clone() });
        let of = |(group, stratum): (&Option<fairtte_metrics::GroupId>, &Option<usize>)| {
            Some(((*stratum)?, (*group)?.index()))
        };
        let cell: Vec<_> = cells.groups.iter().zip(&strata).map(of).collect();
        let counts = |cell: &[Option<(usize, usize)>]| {
            let mut counts = [[0.0; 2]; 2];
            cell.iter().flatten().for_each(|(y, a)| counts[*y][*a] += 1.0);
            counts
        };
        Self { in_batch: counts(&cell[..40]), in_training: counts(&cell), cell: cell[..40].to_vec(), world }
    }

    fn cfair(&self, scaling: CfairScaling, weights: CfairWeights) -> Cfair {
        let config = CfairConfig { lambda: LAMBDA, scaling, weights, ..CfairConfig::default() };
        Cfair::new(&config, &self.world.spec(), &self.world.cells()).unwrap()
    }

    fn by_hand(&self, cfair: &Cfair, z: &Tensor<2>) -> ByHand {
        let z = Array2::from_shape_vec(z.dims(), z.clone().into_data().iter::<f64>().collect()).unwrap();
        ByHand::new(&numbers_of(cfair.learner.network()), &z, &self.cell, |y, a| match cfair.config.weights {
            CfairWeights::Batch => 1.0 / self.in_batch[y][a],
            CfairWeights::Training => self.in_training[y].iter().sum::<f64>() / self.in_training[y][a],
        })
    }
}

const CHOICES: [(CfairScaling, CfairWeights); 4] = [
    (CfairScaling::Reversal, CfairWeights::Batch),
    (CfairScaling::Reversal, CfairWeights::Training),
    (CfairScaling::Both, CfairWeights::Batch),
    (CfairScaling::Both, CfairWeights::Training),
];

// The encoder z = x W^T maximises lambda x the mean loss with both scalings; the adversaries minimise it, or lambda x it.
#[test]
fn one_pass_gives_a_linear_encoder_and_the_adversaries_the_gradients_found_by_hand() {
    let setting = Setting::new();
    let batch = setting.world.batch(&setting.world.train[..40], true);
    let Pixels::Table(x) = batch.pixels.clone() else { panic!("a table has columns") };
    let mut losses = Vec::new();
    for (scaling, weights) in CHOICES {
        let cfair = setting.cfair(scaling, weights);
        let start: Vec<f32> = (0..24_u8).map(|k| f32::from(k * 7 % 11) / 10.0 - 0.5).collect();
        let w = Tensor::<2>::from_data(TensorData::new(start, [8, 3]), &x.device()).require_grad();
        let z = x.clone().matmul(w.clone().transpose());
        let strata: Vec<_> = setting.cell.iter().map(|cell| cell.map(|(y, _)| y)).collect();
        let cells = BatchCells::new(&batch.groups, &strata, (2, 2));
        let (mean, term) = cfair.adversaries(z.clone(), &cells).unwrap();
        let expected = setting.by_hand(&cfair, &z);
        close("loss", &[mean.into_data().iter::<f64>().sum()], &[expected.loss]);
        losses.push(expected.loss);

        let of_adversaries = if scaling == CfairScaling::Both { LAMBDA } else { 1.0 };
        let gradients = term.backward();
        let of_encoder: Vec<f64> = w.grad(&gradients).unwrap().into_data().iter::<f64>().collect();
        let found = by_name(gradients, cfair.learner.network());
        assert_eq!(found.len(), 8, "the parameters of two adversaries only");
        for (name, expected) in &expected.by_parameter {
            let expected: Vec<f64> = expected.iter().map(|g| g * of_adversaries).collect();
            close(name, &found.iter().find(|(of, _)| of == name).unwrap().1, &expected);
        }
        let x: Vec<f64> = x.clone().into_data().iter::<f64>().collect();
        let climbs = |j: usize, k: usize| {
            let of_sample = |i: usize| expected.by_representation[i][j] * x[3 * i + k];
            -LAMBDA * (0..40).map(of_sample).sum::<f64>()
        };
        let expected: Vec<f64> = (0..24).map(|at| climbs(at / 3, at % 3)).collect();
        assert!(expected.iter().any(|g| g.abs() > 1e-4), "{expected:?}");
        close("encoder", &of_encoder, &expected);
    }
    // The weights of the training part differ from those of these 40 samples, and so do the losses.
    assert!((losses[0] - losses[1]).abs() > 1e-3 * losses[0], "{losses:?}");
}

// Everything in a step except the adversaries' own gradient is the same with both scalings.
#[test]
fn a_step_descends_what_was_found_by_hand() {
    let setting = Setting::new();
    let (clock, batch) = (Clock::default(), setting.world.batch(&setting.world.train[..40], true));
    let mut norms = Vec::new();
    for (scaling, weights) in CHOICES {
        let mut cfair = setting.cfair(scaling, weights);
        let context = setting.world.context(0, &clock);
        let noise = &mut context.noise(NETWORK);
        // A copy has running statistics of its own; in training form they are not read.
        let network = cfair.learner.network().valid().train().survival;
        let pass = Pass::new(&batch, &context, |query| network.forward(&batch, query, noise)).unwrap();
        let expected = setting.by_hand(&cfair, &pass.representation);
        let report = cfair.step(&batch, &context).unwrap();
        close("adversary loss", &[report.terms[0].1], &[expected.loss]);
        let squared = expected.by_parameter.iter().flat_map(|(_, of)| of).map(|g| g * g).sum::<f64>();
        norms.push((report.gradient_norm, squared, report.objective + LAMBDA * expected.loss));
    }
    for weights in 0..2 {
        let (reversal, both) = (&norms[weights], &norms[weights + 2]);
        close("norms", &[reversal.0.powi(2) - both.0.powi(2)], &[(1.0 - LAMBDA * LAMBDA) * reversal.1]);
        close("task", &[reversal.2], &[both.2]);
    }
}
