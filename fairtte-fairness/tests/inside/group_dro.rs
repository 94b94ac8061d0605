use approx::assert_relative_eq;
use serde_json::Value as Json;

use super::*;
use crate::strategies::groups::on_host;
use crate::strategies::worked_cases::{
    Compared, cases, differences, gradient, name, numbers, tensor, values, whole_numbers,
};

fn from_case(inputs: &Json) -> GroupDro {
    let counts = whole_numbers(&inputs["train_counts"]);
    GroupDro {
        eta: inputs["eta"].as_f64().unwrap(),
        absent: serde_json::from_value(inputs["absent"].clone()).unwrap(),
        adjustments: numbers(&inputs["C"]).iter().zip(&counts).map(|(c, n)| c / (*n as f64).sqrt()).collect(),
        log_weights: numbers(&inputs["initial_weights"]).iter().map(|w| w.ln()).collect(),
        levels: counts.iter().map(ToString::to_string).collect(),
        sampling: Sampling::Shuffled,
        weigh_by: WeighBy::Loss,
    }
}

/// Numbers of which some are null: the values, and which are present.
fn present(json: &Json) -> (Vec<f64>, Vec<bool>) {
    let entries: Vec<Option<f64>> = serde_json::from_value(json.clone()).unwrap();
    (entries.iter().flatten().copied().collect(), entries.iter().map(Option::is_some).collect())
}

#[test]
fn weights_values_and_gradients_are_those_of_the_worked_cases() {
    let mut compared = Compared::default();
    for case in cases(include_str!("../golden/group_dro.json")) {
        let (what, mut dro) = (name(&case), from_case(&case["inputs"]));
        compared.cases += 1;
        if let Some(means) = case["inputs"].get("group_mean_loss") {
            // One sample per group, so that the mean of a group is its loss.
            let means = numbers(means);
            let groups: Vec<_> = (0..means.len()).map(|code| Some(group(code))).collect();
            let losses = tensor(means.clone(), [means.len()]).require_grad();
            let (coefficients, _) = dro.coefficients(&on_host(&losses), &vec![true; means.len()], &groups);
            compared.close(what, &dro.weights(), &numbers(&case["expected"]["weights_after"]));
            let value = weighted_sum(&losses, coefficients);
            compared.close(what, &values(&value), &numbers(&case["expected"]["loss"]));
            assert!(gradient(&value, &losses).iter().all(|slope| slope.is_finite()));
            continue;
        }
        for step in case["expected"]["steps"].as_array().unwrap() {
            compare_step(&mut compared, what, &mut dro, step);
        }
    }
    println!("group-dro: {} numbers of {} cases compared", compared.numbers, compared.cases);
    assert_eq!(compared, Compared { numbers: 268, cases: 6 });
}

fn compare_step(compared: &mut Compared, what: &str, dro: &mut GroupDro, step: &Json) {
    let of_batch = numbers(&step["batch"]["losses"]);
    let losses = tensor(of_batch.clone(), [of_batch.len()]).require_grad();
    let groups: Vec<_> = whole_numbers(&step["batch"]["group"]).into_iter().map(|code| Some(group(code))).collect();
    let counted = vec![true; of_batch.len()];
    let of_groups = GroupMeans::new(&groups, &counted, dro.log_weights.len());
    let counts: Vec<f64> = of_groups.counts().iter().map(|n| *n as f64).collect();
    compared.close(what, &counts, &numbers(&step["group_count_in_batch"]));
    let means = of_groups.of(&of_batch);
    let (expected, is_present) = present(&step["group_mean_loss"]);
    assert_eq!(means.iter().map(Option::is_some).collect::<Vec<_>>(), is_present, "{what}");
    compared.close(what, &means.iter().flatten().copied().collect::<Vec<_>>(), &expected);
    let adjusted = means.iter().zip(&dro.adjustments).filter_map(|(mean, c)| mean.map(|mean| mean + c));
    compared.close(what, &adjusted.collect::<Vec<_>>(), &present(&step["adjusted_loss"]).0);
    let (coefficients, absent) = dro.coefficients(&on_host(&losses), &counted, &groups);
    assert_eq!(absent, is_present.iter().filter(|is_present| !**is_present).count(), "{what}");
    compared.close(what, &dro.weights(), &numbers(&step["weights_after"]));
    let value = weighted_sum(&losses, coefficients.clone());
    compared.close(what, &values(&value), &numbers(&step["loss"]));
    compared.close(what, &gradient(&value, &losses), &numbers(&step["d_loss_d_sample_loss"]));
    // The weights carry no gradient: at fixed weights the differences agree.
    let numeric = differences(&of_batch, |losses| {
        let n = losses.len();
        values(&weighted_sum(&tensor(losses, [n]), coefficients.clone()))[0]
    });
    for (analytic, numeric) in coefficients.iter().zip(&numeric) {
        assert!((analytic - numeric).abs() < 1e-9, "{what}: {analytic} {numeric}");
    }
}

fn group(code: usize) -> GroupId {
    GroupId(u32::try_from(code).unwrap())
}

/// Groups of equal weight.
fn equal(n_groups: usize, absent: AbsentGroup) -> GroupDro {
    GroupDro {
        eta: 0.1,
        absent,
        adjustments: vec![0.0; n_groups],
        log_weights: vec![-(n_groups as f64).ln(); n_groups],
        levels: (0..n_groups).map(|g| g.to_string()).collect(),
        sampling: Sampling::Shuffled,
        weigh_by: WeighBy::Loss,
    }
}

#[test]
fn samples_without_the_attribute_train_the_task() {
    let groups = [Some(group(0)), None, Some(group(1)), None];
    let (coefficients, absent) = equal(2, AbsentGroup::Unit).coefficients(&[1.0; 4], &[true; 4], &groups);
    assert_eq!(absent, 0);
    for coefficient in coefficients {
        assert_relative_eq!(coefficient, 0.25); // equal losses leave equal weights
    }
    let mut dro = equal(2, AbsentGroup::Unit);
    let (coefficients, absent) = dro.coefficients(&[1.0, 3.0], &[true; 2], &[None, None]);
    assert_eq!((coefficients, absent), (vec![0.5, 0.5], 2), "a batch without any group");
    assert_relative_eq!(dro.weights()[0], 0.5);
}

// Three events and a censoring without a loss: group 1 has no sample with a loss term.
#[test]
fn samples_without_a_loss_are_not_counted_and_may_leave_a_group_absent() {
    let mut dro = equal(2, AbsentGroup::Hold);
    let groups = [Some(group(0)), Some(group(0)), Some(group(1)), None];
    let (coefficients, absent) = dro.coefficients(&[1.0, 3.0, 0.0, 2.0], &[true, true, false, true], &groups);
    assert_eq!(absent, 1);
    // Two of three counted samples have a group; its weight of 1/2 is split between them.
    for (found, expected) in coefficients.iter().zip([1.0 / 6.0, 1.0 / 6.0, 0.0, 1.0 / 3.0]) {
        assert_relative_eq!(*found, expected, max_relative = 1e-12);
    }
    let (coefficients, absent) = dro.coefficients(&[0.0; 4], &[false; 4], &groups);
    assert_eq!((coefficients, absent), (vec![0.0; 4], 2));
}

// exp(0.1 * 2) against exp(0.1 * 1) and exp(0.1 * 4), one sample of the last.
#[test]
fn three_groups_with_one_of_a_single_sample_worked_by_hand() {
    let mut dro = equal(3, AbsentGroup::Unit);
    let groups = [Some(group(0)), Some(group(0)), Some(group(1)), Some(group(1)), Some(group(2))];
    let (coefficients, _) = dro.coefficients(&[1.0, 3.0, 0.5, 1.5, 4.0], &[true; 5], &groups);
    let mass = [0.2_f64.exp(), 0.1_f64.exp(), 0.4_f64.exp()];
    let total: f64 = mass.iter().sum();
    for (found, (g, n)) in coefficients.iter().zip([(0, 2.0), (0, 2.0), (1, 2.0), (1, 2.0), (2, 1.0)]) {
        assert_relative_eq!(*found, mass[g] / total / n, max_relative = 1e-12);
    }
}

#[test]
fn settings_out_of_range_name_their_key() {
    let default = GroupDroConfig::default();
    assert!(default.validate().is_ok());
    let message = |config: GroupDroConfig| config.validate().unwrap_err().to_string();
    for eta in [0.0, -0.5, f64::INFINITY] {
        let found = message(GroupDroConfig { eta, ..default });
        assert_eq!(found, format!("eta is {eta}, expected a finite number > 0"));
    }
    for adjustment in [-0.5, f64::INFINITY] {
        let found = message(GroupDroConfig { adjustment, ..default });
        assert_eq!(found, format!("adjustment is {adjustment}, expected a finite number >= 0"));
    }
}

#[test]
fn a_loss_that_is_no_finite_number_moves_no_weight() {
    let log_weights = vec![0.25_f64.ln(), 0.75_f64.ln()];
    for loss in [f64::INFINITY, f64::NAN] {
        let mut strategy = GroupDro {
            eta: 1.0,
            absent: AbsentGroup::Unit,
            adjustments: vec![0.0; 2],
            log_weights: log_weights.clone(),
            levels: vec!["a".to_owned(), "b".to_owned()],
            sampling: Sampling::Shuffled,
            weigh_by: WeighBy::Loss,
        };
        strategy.update(&[Some(loss), Some(1.0)]);
        assert_eq!(strategy.log_weights, log_weights);
    }
}
