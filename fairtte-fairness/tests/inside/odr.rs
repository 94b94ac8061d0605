//! Tests of `src/strategies/odr`; they need a back end, which `src` does not name.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "how many values were compared is worth seeing")]
use fairtte_survival::HeadConfig;
use serde_json::Value as Json;

use super::super::Clock;
use super::super::adversary_cases::{Compared, case, gradient, groups, list, matrix, number, numbers, values};
use super::super::table::{World, numbers as numbers_of};
use super::*;

fn golden() -> Json {
    serde_json::from_str(include_str!("../golden/odr.json")).unwrap()
}

#[test]
fn terms_schedule_and_gradients_are_those_of_the_worked_case() {
    let (golden, mut compared) = (golden(), Compared::default());
    let case = case(&golden, "terms");
    let (inputs, expected) = (&case["inputs"], &case["expected"]);
    let of = |key: &str| number(&inputs[key]);
    // Steps there, epochs here: only their ratio counts.
    let config = OdrConfig {
        lambda_entropy: of("lambda_e"),
        lambda_orthogonality: of("lambda_od"),
        gamma_entropy: of("gamma_e"),
        gamma_orthogonality: of("gamma_od"),
        schedule_epochs: of("step_size"),
        ..OdrConfig::default()
    };
    for moment in expected["schedule"].as_array().unwrap() {
        let weights = config.weights(number(&moment["step"]));
        compared.same("lambda_e", &[weights.entropy], &moment["lambda_e"]);
        compared.same("lambda_od", &[weights.orthogonality], &moment["lambda_od"]);
    }

    let [mean_t, log_var_t, mean_s, log_var_s] =
        ["mean_target", "log_var_target", "mean_sensitive", "log_var_sensitive"].map(|key| matrix(&inputs[key]));
    let priors = prior_means(4);
    assert_eq!(priors[0], numbers(&inputs["prior_mean_target"]));
    assert_eq!(priors[1], numbers(&inputs["prior_mean_sensitive"]));
    let kl_t = Code { mean: mean_t.clone(), log_var: log_var_t.clone() }.kl_to(&priors[0]);
    let kl_s = Code { mean: mean_s.clone(), log_var: log_var_s.clone() }.kl_to(&priors[1]);
    compared.same("kl target", &values(&kl_t), &expected["kl_target"]);
    compared.same("kl sensitive", &values(&kl_s), &expected["kl_sensitive"]);
    compared.same("L_od", &values(&(kl_t.clone().mean() + kl_s.clone().mean())), &expected["L_od"]);
    let cells = BatchCells::of_groups(&groups(&inputs["group"]), 2);
    let on_target = matrix(&inputs["sensitive_logits_from_target_code"]);
    let entropy = negative_entropy(on_target.clone(), &cells);
    compared.same("L_e", &values(&entropy), &expected["L_e_negative_entropy"]);
    let task = list(&inputs["task_loss_per_sample"]).mean();
    compared.same("task", &values(&task), &expected["L_task"]);
    let loss = objective(task, entropy, [kl_t, kl_s], config.weights(of("step")));
    compared.same("objective", &values(&loss), &expected["objective_without_L_s"]);
    let gradients = loss.backward();
    compared.same("mean", &gradient(&gradients, &mean_t), &expected["d_objective_d_mean_target"]);
    compared.same("log var", &gradient(&gradients, &log_var_t), &expected["d_objective_d_log_var_target"]);
    compared.same("mean", &gradient(&gradients, &mean_s), &expected["d_objective_d_mean_sensitive"]);
    compared.same("log var", &gradient(&gradients, &log_var_s), &expected["d_objective_d_log_var_sensitive"]);
    compared.same("logits", &gradient(&gradients, &on_target), &expected["d_objective_d_logits_target_code"]);

    let on_sensitive = matrix(&inputs["sensitive_logits_from_sensitive_code"]);
    let loss = cross_entropy(on_sensitive.clone(), &cells);
    compared.same("L_s", &values(&loss), &expected["L_s_cross_entropy"]);
    compared.same("L_s", &gradient(&loss.backward(), &on_sensitive), &expected["d_L_s_d_logits_sensitive_code"]);
    println!("ODR, terms: {} numbers of 1 case compared", compared.n);
    assert_eq!(compared.n, 79);
}

#[test]
fn codes_in_training_and_in_evaluation_are_those_of_the_worked_case() {
    let (golden, mut compared) = (golden(), Compared::default());
    let case = case(&golden, "reparameterisation");
    let inputs = &case["inputs"];
    let [mean, log_var, noise] = ["mean_target", "log_var_target", "noise"].map(|key| matrix(&inputs[key]));
    let code = Code { mean, log_var };
    compared.same("training", &values(&code.value(Some(noise))), &case["expected"]["z_target_training"]);
    compared.same("evaluation", &values(&code.value(None)), &case["expected"]["z_target_evaluation"]);
    println!("ODR, codes: {} numbers of 1 case compared", compared.n);
    assert_eq!(compared.n, 24);
}

// A batch without the attribute has no L_s: with the other weights at 0 the two batches may differ only in the
// parameters that L_s trains.
#[test]
fn the_loss_of_the_sensitive_code_moves_that_code_and_not_the_shared_encoder() {
    let mut world = World::new(&HeadConfig::default());
    let config = OdrConfig { lambda_entropy: 0.0, lambda_orthogonality: 0.0, ..OdrConfig::default() };
    // Joint clipping would let the size of L_s affect all other parameters.
    let mut spec = world.spec();
    spec.optimiser.gradient_clip = 0.0;
    let cells = world.cells();
    let stepped = |world: &World| {
        let mut odr = Odr::new(&config, &spec, &cells).unwrap();
        let (batch, clock) = (world.batch(&world.train[..20], true), Clock::default());
        let report = odr.step(&batch, &world.context(0, &clock)).unwrap();
        (numbers_of(odr.network()), report.terms[2].clone())
    };
    let (with, of_group) = stepped(&world);
    world.groups = vec![None; world.groups.len()];
    let (without, no_term) = stepped(&world);
    assert!(of_group.1 > 0.1 && no_term.1.to_bits() == 0.0_f64.to_bits(), "{of_group:?} {no_term:?}");
    let mut n_moved = 0;
    for ((name, with), (_, without)) in with.iter().zip(&without) {
        if name.starts_with("sensitive") {
            n_moved += usize::from(with != without);
        } else {
            assert_eq!(with, without, "{name}");
        }
    }
    assert_eq!(n_moved, 4, "weight and bias of mean and log variance");
}
