//! Tests of `src/strategies/laftr`; they need a back end, which `src` does not name.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "how many values were compared is worth seeing")]
use fairtte_metrics::GroupId;
use serde_json::Value as Json;

use super::super::adversary_cases::{
    Compared, LinearModel, descended, gradient, groups, list, matrix, number, scalar, strata, values,
};
use super::*;

fn golden() -> Json {
    serde_json::from_str(include_str!("../golden/laftr.json")).unwrap()
}

fn mode(inputs: &Json) -> LaftrMode {
    serde_json::from_value(inputs["mode"].clone()).unwrap()
}

/// Probabilities of both groups from that of group 1.
fn of_both(h: Tensor<1>) -> Tensor<2> {
    Tensor::stack(vec![h.clone().neg() + 1.0, h], 1)
}

/// A binary adversary has one output, the logit of group 1; that of group 0 is then 0.
fn with_zero(logit: Tensor<1>) -> Tensor<2> {
    Tensor::stack(vec![logit.zeros_like(), logit], 1)
}

/// The logits of probabilities, as leaves of a graph.
fn logit_of(h: &Tensor<1>) -> Tensor<1> {
    let h = h.clone().inner();
    Tensor::from_inner((h.clone() / (h.neg() + 1.0)).log()).require_grad()
}

#[test]
fn gains_and_their_gradients_are_those_of_the_worked_cases() {
    let (golden, mut compared, mut n_cases) = (golden(), Compared::default(), 0);
    for case in golden["cases"].as_array().unwrap() {
        let (inputs, expected, name) = (&case["inputs"], &case["expected"], case["name"].as_str().unwrap());
        if inputs.get("adversary_probability").is_none() {
            continue; // the two tests below
        }
        n_cases += 1;
        let strata = strata(&inputs["stratum"]);
        let cells = mode(inputs).cells(&groups(&inputs["group"]), &strata, (2, 2));
        let h = list(&inputs["adversary_probability"]);
        let errors = errors(of_both(h.clone()), &cells);
        let of_sample = values(&errors);
        for (key, mean) in expected["mean_absolute_error_by_cell"].as_object().unwrap() {
            // "(group,)" or "(group, stratum)"
            let cell: Vec<usize> =
                key.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
            let stratum = cell.get(1).copied().unwrap_or(0);
            let inside = cells.coefficients(|y, g| if (y, g) == (stratum, cell[0]) { 1.0 } else { 0.0 });
            let sum: f64 = inside.iter().zip(&of_sample).map(|(inside, error)| inside * error).sum();
            compared.same(name, &[sum / inside.iter().sum::<f64>()], mean);
        }
        let gain = adversary_gain(errors, &cells, 2);
        compared.same(name, &values(&gain), &expected["L_adv"]);
        let Some(by_probability) = expected.get("d_Ladv_d_probability") else {
            assert_eq!(cells.n(0, 0), 0, "the cell that is missing");
            continue;
        };
        compared.same(name, &gradient(&gain.backward(), &h), by_probability);
        let logit = logit_of(&h);
        let gain = gain_of_logits(with_zero(logit.clone()), &cells, 2);
        compared.same(name, &gradient(&gain.backward(), &logit), &expected["d_Ladv_d_logit"]);
    }
    println!("LAFTR, two groups: {} numbers of {n_cases} cases compared", compared.n);
    assert_eq!((compared.n, n_cases), (82, 5));
}

#[test]
fn three_groups_are_those_of_the_worked_case() {
    let golden = golden();
    let case = super::super::adversary_cases::case(&golden, "three groups");
    let (inputs, expected, mut compared) = (&case["inputs"], &case["expected"], Compared::default());
    let groups = groups(&inputs["group"]);
    let cells = mode(inputs).cells(&groups, &vec![None; groups.len()], (3, 2));
    let logits = matrix(&inputs["adversary_logits"]);
    let of_sample = values(&errors(softmax(logits.clone(), 1), &cells));
    let means = [of_sample[0] + of_sample[1], 2.0 * of_sample[2], of_sample[3] + of_sample[4]].map(|sum| sum / 2.0);
    compared.same("means", &means, &expected["mean_error_by_group"]);
    let gain = gain_of_logits(logits.clone(), &cells, 3);
    compared.same("gain", &values(&gain), &expected["L_adv"]);
    compared.same("gradient", &gradient(&gain.backward(), &logits), &expected["d_Ladv_d_logits"]);
    println!("LAFTR, three groups: {} numbers of 1 case compared", compared.n);
    assert_eq!(compared.n, 19);
}

#[test]
fn a_training_step_is_the_worked_one() {
    let golden = golden();
    let case = super::super::adversary_cases::case(&golden, "one training step");
    let (inputs, mut compared) = (&case["inputs"], Compared::default());
    let (gamma, rate) = (number(&inputs["fair_coefficient"]), number(&inputs["learning_rate"]));
    let mut model = LinearModel::new(inputs);
    let (u, c) = (list(&inputs["u"]), scalar(&inputs["c"]));
    let cells = LaftrMode::Eqodd.cells(&groups(&inputs["group"]), &strata(&inputs["event"]), (2, 2));
    let gain = |z: Tensor<2>, u: &Tensor<1>, c: &Tensor<1>| {
        let logit = z.matmul(u.clone().unsqueeze_dim(1)).flatten(0, 1) + c.clone();
        gain_of_logits(with_zero(logit), &cells, 2)
    };

    let first = &case["expected"]["step1"];
    let z = model.representation();
    let (task, of_adversary) = (model.task(&z), gain(z, &u, &c));
    compared.same("L_c", &values(&task), &first["L_c"]);
    compared.same("L_adv", &values(&of_adversary), &first["L_adv"]);
    let loss = for_network(task, of_adversary, gamma);
    compared.same("objective", &values(&loss), &first["objective"]);
    let gradients = loss.backward();
    compared.same("grad W", &gradient(&gradients, &model.weight), &first["grad_W"]);
    compared.same("grad v", &gradient(&gradients, &model.v), &first["grad_v"]);
    compared.same("grad b", &gradient(&gradients, &model.b), &first["grad_b"]);
    model.descend(&gradients, rate); // encoder and head only
    compared.same("W", &values(&model.weight), &first["W"]);
    compared.same("v", &values(&model.v), &first["v"]);
    compared.same("b", &values(&model.b), &first["b"]);

    let second = &case["expected"]["step2"];
    let z = model.representation().detach();
    let before = gain(z.clone(), &u, &c);
    compared.same("L_adv before", &values(&before), &second["L_adv_before"]);
    let gradients = for_adversary(before, gamma).backward();
    compared.same("grad u", &gradient(&gradients, &u), &second["grad_u_of_minus_gamma_Ladv"]);
    compared.same("grad c", &gradient(&gradients, &c), &second["grad_c_of_minus_gamma_Ladv"]);
    let (u, c) = (descended(&u, &gradients, rate), descended(&c, &gradients, rate));
    compared.same("u", &values(&u), &second["u"]);
    compared.same("c", &values(&c), &second["c"]);
    compared.same("L_adv after", &values(&gain(z, &u, &c)), &second["L_adv_after"]);
    println!("LAFTR, training step: {} numbers of 1 case compared", compared.n);
    assert_eq!(compared.n, 25);
}

// The mean error of guessing among G groups is 1 - 1/G, regardless of the groups in the batch.
#[test]
fn the_advantage_is_nothing_for_a_guess_and_one_for_certainty() {
    let of = |n_groups: usize, error_of_group: &[f64]| {
        let groups: Vec<Option<GroupId>> =
            (0..error_of_group.len()).map(|g| Some(GroupId(u32::try_from(g).unwrap()))).collect();
        let cells = LaftrMode::Dp.cells(&groups, &vec![None; groups.len()], (n_groups, 1));
        let errors = super::super::worked_cases::tensor(error_of_group.to_vec(), [error_of_group.len()]);
        advantage_of_gain(values(&adversary_gain(errors, &cells, n_groups))[0], &cells, n_groups)
    };
    for (n_groups, errors, expected) in [
        (2, vec![0.5, 0.5], 0.0),
        (2, vec![0.0, 0.0], 1.0),
        (2, vec![0.25, 0.5], 0.25),
        (3, vec![2.0 / 3.0, 2.0 / 3.0], 0.0),
        (3, vec![0.0, 0.0], 1.0),
        (3, vec![1.0, 1.0, 1.0], -0.5),
    ] {
        assert!((of(n_groups, &errors) - expected).abs() < 1e-12, "{n_groups} groups, errors {errors:?}");
    }
}
