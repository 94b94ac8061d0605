//! Tests of `src/strategies/lnl.rs`; they need a back end, which `src` does not name.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "how many values were compared is worth seeing")]
use burn::tensor::activation::log_softmax;
use serde_json::Value as Json;

use super::super::adversary_cases::{Compared, LinearModel, case, descended, gradient, groups, matrix, number, values};
use super::*;

fn golden() -> Json {
    serde_json::from_str(include_str!("../golden/lnl.json")).unwrap()
}

#[test]
fn terms_and_their_gradients_are_those_of_the_worked_case() {
    let (golden, mut compared) = (golden(), Compared::default());
    let case = case(&golden, "terms");
    let expected = &case["expected"];
    let cells = BatchCells::of_groups(&groups(&case["inputs"]["group"]), 3);
    let logits = matrix(&case["inputs"]["predictor_logits"]);
    let log = log_softmax(logits.clone(), 1);
    let of_sample = (log.clone().exp() * log).sum_dim(1);
    compared.same("per sample", &values(&of_sample), &expected["negative_entropy_per_sample"]);
    compared.same("least", &[-3.0_f64.ln()], &expected["minimum_possible"]);
    let entropy = negative_entropy(logits.clone(), &cells);
    compared.same("entropy", &values(&entropy), &expected["negative_entropy"]);
    compared.same("entropy", &gradient(&entropy.backward(), &logits), &expected["d_negative_entropy_d_logits"]);
    let entropy = cross_entropy(logits.clone(), &cells);
    compared.same("cross-entropy", &values(&entropy), &expected["cross_entropy"]);
    compared.same("cross-entropy", &gradient(&entropy.backward(), &logits), &expected["d_cross_entropy_d_logits"]);
    println!("LNL, terms: {} numbers of 1 case compared", compared.n);
    assert_eq!(compared.n, 31);
}

#[test]
fn a_training_step_is_the_worked_one() {
    let (golden, mut compared) = (golden(), Compared::default());
    let case = case(&golden, "one training step");
    let (inputs, first, second) = (&case["inputs"], &case["expected"]["phase1"], &case["expected"]["phase2"]);
    let rate = number(&inputs["learning_rate"]);
    let (lambda, mu) = (number(&inputs["entropy_weight_lambda"]), number(&inputs["reversal_scale_mu"]));
    let cells = BatchCells::of_groups(&groups(&inputs["group"]), 3);
    let (mut model, mut u) = (LinearModel::new(inputs), matrix(&inputs["U"]));

    let z = model.representation();
    let entropy = negative_entropy(z.clone().matmul(u.clone().transpose()), &cells);
    let task = model.task(&z);
    compared.same("task", &values(&task), &first["task_loss"]);
    compared.same("entropy", &values(&entropy), &first["negative_entropy"]);
    let loss = for_network(task, entropy, lambda);
    compared.same("objective", &values(&loss), &first["objective"]);
    let gradients = loss.backward();
    compared.same("grad W", &gradient(&gradients, &model.weight), &first["grad_W"]);
    model.descend(&gradients, rate); // the predictor is unchanged
    compared.same("W", &values(&model.weight), &first["W"]);
    compared.same("v", &values(&model.v), &first["v"]);
    compared.same("b", &values(&model.b), &first["b"]);

    // A scale of -1 leaves the gradient as it is.
    let plain = for_predictor(model.representation(), -1.0, |z| z.matmul(u.clone().transpose()), &cells).backward();
    compared.same("before", &gradient(&plain, &model.weight), &second["grad_W_before_reversal"]);
    let loss = for_predictor(model.representation(), mu, |z| z.matmul(u.clone().transpose()), &cells);
    compared.same("cross-entropy", &values(&loss), &second["cross_entropy"]);
    let gradients = loss.backward();
    compared.same("grad U", &gradient(&gradients, &u), &second["grad_U"]);
    model.descend(&gradients, rate);
    u = descended(&u, &gradients, rate);
    compared.same("W", &values(&model.weight), &second["W"]);
    compared.same("U", &values(&u), &second["U"]);
    compared.same("v", &values(&model.v), &first["v"]);
    println!("LNL, training step: {} numbers of 1 case compared", compared.n);
    assert_eq!(compared.n, 37);
}
