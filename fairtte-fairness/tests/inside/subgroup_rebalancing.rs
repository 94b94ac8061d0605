use approx::assert_relative_eq;
use serde_json::Value as Json;

use super::*;
use crate::strategies::worked_cases::{
    Compared, cases, differences, gradient, name, numbers, tensor, values, whole_numbers,
};

fn groups(codes: &[usize]) -> Vec<Option<GroupId>> {
    codes.iter().map(|code| Some(GroupId(u32::try_from(*code).unwrap()))).collect()
}

fn as_numbers(counts: &[usize]) -> Vec<f64> {
    counts.iter().map(|n| *n as f64).collect()
}

// The draws at given uniform numbers are compared where they are made, in the loader of fairtte-data.
#[test]
fn weights_and_counts_are_those_of_the_worked_cases() {
    let mut compared = Compared::default();
    for case in cases(include_str!("../golden/subgroup_rebalancing.json")) {
        let (what, inputs, expected) = (name(&case), &case["inputs"], &case["expected"]);
        let groups = groups(&whole_numbers(&inputs["group"]));
        let event: Vec<bool> = whole_numbers(&inputs["event"]).iter().map(|event| *event == 1).collect();
        compared.cases += 1;
        if inputs.get("by").is_none() {
            let weights = loss_weights(&groups, &event);
            let found = SubgroupRebalancing { sampling: Sampling::Shuffled, weights }.of_samples(&groups, &event);
            compared.close(what, &found, &numbers(&expected["weight"]));
            compared.close(what, &[found.iter().sum()], &numbers(&expected["sum_of_weights"]));
            continue;
        }
        let cells = cells_of(serde_json::from_value(inputs["by"].clone()).unwrap(), &groups, &event);
        let of_sample: Vec<usize> = cells.iter().flatten().copied().collect();
        compared.close(what, &as_numbers(&of_sample), &numbers(&expected["cell_of_sample"]));
        let nonempty = whole_numbers(&expected["nonempty_cells"]);
        let count = |cell: &usize| of_sample.iter().filter(|other| *other == cell).count();
        let counts: Vec<usize> = nonempty.iter().map(count).collect();
        assert_eq!(counts.iter().sum::<usize>(), 10, "{what}: no other cell");
        compared.close(what, &as_numbers(&counts), &numbers(&expected["cell_counts"]));
        let weights = sampling_weights(&cells);
        compared.close(what, &weights, &numbers(&expected["sampling_weight"]));
        let of_cell = |cell: &usize| (0..10).filter(|i| of_sample[*i] == *cell).map(|i| 10.0 * weights[i]).sum();
        let draws: Vec<f64> = nonempty.iter().map(of_cell).collect();
        compared.close(what, &draws, &numbers(&expected["expected_draws_per_epoch_of_10"]));
        let draws: Vec<f64> = weights.iter().map(|weight| 10.0 * weight).collect();
        compared.close(what, &draws, &numbers(&expected["expected_draws_per_sample"]));
        let unnormalised: Vec<f64> = weights.iter().map(|weight| weight * nonempty.len() as f64).collect();
        compared.close(what, &unnormalised, &numbers(&expected["unnormalised_weights_1_over_count"]));
        compare_oversampled(&mut compared, what, &cells, &expected["oversample"], &nonempty);
    }
    println!("subgroup-rebalancing: {} numbers of {} cases compared", compared.numbers, compared.cases);
    assert_eq!(compared, Compared { numbers: 184, cases: 4 });
}

/// Counts of a whole epoch: every member occurs at least `least` times, and some members of a cell one more time.
fn compare_oversampled(
    compared: &mut Compared,
    what: &str,
    cells: &[Option<usize>],
    expected: &Json,
    nonempty: &[usize],
) {
    let rows: Vec<usize> = (0..10).collect();
    let order = Sampling::Oversampled(cells.to_vec()).order(&rows, 7, 2).unwrap();
    compared.close(what, &[order.len() as f64], &numbers(&expected["epoch_length"]));
    let (mut in_cell, mut copies, mut once_more) = (Vec::new(), Vec::new(), Vec::new());
    for cell in nonempty {
        let draws = |row: &usize| order.iter().filter(|other| *other == row).count();
        let members: Vec<usize> = (0..10).filter(|row| cells[*row] == Some(*cell)).map(|row| draws(&row)).collect();
        let least = *members.iter().min().unwrap();
        assert!(members.iter().all(|n| *n <= least + 1), "{what}: drawn without replacement");
        in_cell.push(members.iter().sum::<usize>() as f64);
        copies.push(least as f64);
        once_more.push(members.iter().filter(|n| **n > least).count() as f64);
    }
    let target = numbers(&expected["target_per_cell"])[0];
    compared.close(what, &in_cell, &vec![target; nonempty.len()]);
    compared.close(what, &copies, &numbers(&expected["full_copies"]));
    compared.close(what, &once_more, &numbers(&expected["remainder_drawn_without_replacement"]));
}

#[test]
fn a_sample_without_the_attribute_keeps_its_natural_share() {
    let groups = [Some(GroupId(0)), Some(GroupId(0)), Some(GroupId(1)), None];
    let cells = cells_of(Cells::Group, &groups, &[true, false, true, false]);
    let weights = sampling_weights(&cells);
    assert_relative_eq!(weights[3], 0.25);
    assert_relative_eq!(weights[2], 0.375);
    assert_relative_eq!(weights.iter().sum::<f64>(), 1.0);
    let mut order = Sampling::Oversampled(cells).order(&[0, 1, 2, 3], 1, 0).unwrap();
    order.sort_unstable();
    assert_eq!(order, [0, 1, 2, 2, 3], "oversampled, it comes once");
}

#[test]
fn a_cell_without_a_sample_divides_nothing() {
    // Group 1 has no event, and group 2 no sample.
    let cells = TrainingCells {
        attribute: "site".to_owned(),
        levels: ["a", "b", "c"].map(str::to_owned).to_vec(),
        groups: groups(&[0, 0, 0, 1]),
        event: vec![true, true, false, false],
        interval: vec![0; 4],
        n_cut_points: 2,
    };
    let build = |by, mode| SubgroupRebalancing::new(&SubgroupRebalancingConfig { by, mode }, &cells).unwrap();
    let Sampling::Weighted(weights) = build(Cells::GroupXEvent, RebalancingMode::Resample).sampling else { panic!() };
    for (found, expected) in weights.iter().zip([1.0 / 6.0, 1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0]) {
        assert_relative_eq!(*found, expected, max_relative = 1e-12);
    }
    let oversampled = build(Cells::GroupXEvent, RebalancingMode::Oversample).sampling;
    assert_eq!(oversampled.order(&[0, 1, 2, 3], 1, 0).unwrap().len(), 6);
    let reweighed = build(Cells::Group, RebalancingMode::Reweigh);
    let found = reweighed.of_samples(&cells.groups, &cells.event);
    // P(g) P(d) / P(g, d): group 0 has 3/4, each status 1/2.
    for (found, expected) in found.iter().zip([0.75, 0.75, 1.5, 0.5]) {
        assert_relative_eq!(*found, expected, max_relative = 1e-12);
    }
    // The empty cell may still occur where groups are defined anew; its samples then have weight 1.
    assert_eq!(reweighed.of_samples(&groups(&[1, 2]), &[true, true]), [1.0, 1.0]);
}

#[test]
fn reweighing_makes_group_and_event_independent() {
    let groups = groups(&[0, 0, 0, 0, 1, 1]);
    let event = [true, true, true, false, true, false];
    let weights = loss_weights(&groups, &event);
    // 4/6 of the samples are in group 0 and 4/6 have the event: 3 samples represent 6 * 16/36.
    assert_relative_eq!(weights[&(GroupId(0), true)], 16.0 / 18.0);
    let total = |event_is: bool| -> f64 {
        let cells = groups.iter().zip(&event).filter(|(g, d)| **g == Some(GroupId(1)) && **d == event_is);
        cells.map(|(g, d)| weights[&(g.unwrap(), *d)]).sum()
    };
    assert_relative_eq!(total(true) / (total(true) + total(false)), 4.0 / 6.0);
}

#[test]
fn gradients_agree_with_differences() {
    let losses = [0.4, 1.3, 0.2, 2.0];
    let weights = loss_weights(&groups(&[0, 0, 1, 1]), &[true, false, false, false]);
    let strategy = SubgroupRebalancing { sampling: Sampling::Shuffled, weights };
    let of_samples = strategy.of_samples(&groups(&[0, 0, 1, 1]), &[true, false, false, false]);
    let leaf = tensor(losses.to_vec(), [4]).require_grad();
    let analytic = gradient(&weighted_sum(&leaf, of_samples.clone()), &leaf);
    let numeric = differences(&losses, |losses| values(&weighted_sum(&tensor(losses, [4]), of_samples.clone()))[0]);
    for (analytic, numeric) in analytic.iter().zip(&numeric) {
        assert!((analytic - numeric).abs() < 1e-9, "{analytic} {numeric}");
    }
}

#[test]
fn a_setting_without_effect_names_its_key() {
    let config = SubgroupRebalancingConfig { by: Cells::Event, mode: RebalancingMode::Reweigh };
    let message = config.validate().unwrap_err().to_string();
    assert!(message.starts_with("by is event, expected no value with mode"), "{message}");
    assert!(SubgroupRebalancingConfig { mode: RebalancingMode::Oversample, ..config }.validate().is_ok());
}
