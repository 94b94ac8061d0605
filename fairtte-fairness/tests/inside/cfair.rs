//! Tests of `src/strategies/cfair.rs`; they need a back end, which `src` does not name.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "how many values were compared is worth seeing")]
use serde_json::Value as Json;

use super::super::adversary_cases::{
    Compared, case, gradient, groups, list, matrix, number, numbers, strata, values, whole,
};
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

/// Both tables of weights; the second one, which the original code uses, is no option here and enters by hand.
#[test]
fn weights_of_the_training_part_are_those_of_the_worked_cases() {
    let (golden, mut compared) = (golden(), Compared::default());
    let (right, exchanged) = (case(&golden, "training-set weights"), case(&golden, "for comparison only"));
    let joint = &right["inputs"]["joint_P_A_Y"];
    let p = |a: usize, y: usize| number(&joint[format!("A{a}Y{y}")]);
    // As many training samples per cell as make these shares.
    let counts: Vec<Vec<usize>> = (0..2).map(|y| (0..2).map(|a| whole(1000.0 * p(a, y)) as usize).collect()).collect();
    let weights = training_weights(&counts);
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
