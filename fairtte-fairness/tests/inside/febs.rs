use fairtte_metrics::GroupId;

use super::*;

use crate::strategies::worked_cases::{
    Compared, cases, differences, gradient, name, numbers, tensor, values, whole_numbers,
};

#[test]
fn weights_are_those_of_the_worked_cases() {
    let mut compared = Compared::default();
    for case in cases(include_str!("../golden/febs.json")) {
        let (what, inputs, expected) = (name(&case), &case["inputs"], &case["expected"]);
        let means: Vec<Option<f64>> = serde_json::from_value(inputs["group_mean_loss"].clone()).unwrap();
        let counts = whole_numbers(&inputs["group_count"]);
        // Only the case on the effect of epsilon has one.
        let epsilon = inputs.get("epsilon").map_or(0.0, |epsilon| epsilon.as_f64().unwrap());
        let found = weights(&means, &counts, inputs["gamma"].as_f64().unwrap(), epsilon);
        let wanted: Vec<Option<f64>> = serde_json::from_value(expected["loss_weight"].clone()).unwrap();
        let absent = |weights: &[Option<f64>]| weights.iter().map(Option::is_none).collect::<Vec<_>>();
        assert_eq!(absent(&found), absent(&wanted), "{what}");
        let present = |weights: &[Option<f64>]| weights.iter().flatten().copied().collect::<Vec<_>>();
        compared.close(what, &present(&found), &present(&wanted));
        // W up to the factor that normalises: 1 / v in units of the group with the smallest loss, whose W is tanh(1).
        let scaled: Vec<Option<f64>> = serde_json::from_value(expected["W"].clone()).unwrap();
        let smallest = found.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let of_v: Vec<f64> = found.iter().flatten().map(|v| 1.0_f64.tanh() * smallest / v).collect();
        compared.close(what, &of_v, &present(&scaled));
        if let Some(mean) = expected.get("per_sample_weighted_mean") {
            let n = counts.iter().sum::<usize>() as f64;
            let of = |g: usize| counts[g] as f64 / n * means[g].unwrap();
            let weighted: f64 = (0..counts.len()).map(|g| of(g) * found[g].unwrap()).sum();
            compared.close(what, &[weighted], &numbers(mean));
            compared.close(what, &[(0..counts.len()).map(of).sum()], &numbers(&expected["unweighted_mean"]));
        }
        compared.cases += 1;
    }
    println!("febs: {} numbers of {} cases compared", compared.numbers, compared.cases);
    assert_eq!(compared, Compared { numbers: 44, cases: 7 });
}

fn febs(decay: f64) -> Febs {
    let config = FebsConfig { gamma: 1.0, decay, ..FebsConfig::default() };
    Febs { config, levels: ["a", "b", "c"].map(str::to_owned).to_vec(), running: vec![None; 3] }
}

fn of(codes: &[Option<u32>], counted: &[bool]) -> GroupMeans {
    let groups: Vec<Option<GroupId>> = codes.iter().map(|code| code.map(GroupId)).collect();
    GroupMeans::new(&groups, counted, 3)
}

// Mean losses 1 and 2, so W = tanh(1) and tanh(1/2); two samples of a, one of b: the mean of 1/W is their weighted mean.
#[test]
fn coefficients_worked_by_hand() {
    let counted = [true, true, true, true, false];
    let present = of(&[Some(0), None, Some(1), Some(0), Some(2)], &counted);
    let (found, weights) = febs(0.0).coefficients(&[0.5, 9.0, 2.0, 1.5, 0.0], &present, &counted);
    let inverse = [1.0 / 1.0_f64.tanh(), 1.0 / 0.5_f64.tanh()];
    let mean = (2.0 * inverse[0] + inverse[1]) / 3.0;
    let (a, b) = (inverse[0] / mean, inverse[1] / mean);
    for (found, expected) in found.iter().zip([a / 4.0, 0.25, b / 4.0, a / 4.0, 0.0]) {
        assert!((found - expected).abs() < 1e-8, "{found} {expected}");
    }
    assert_eq!(weights[2], None, "its only sample has no loss");
    assert_eq!(present.n_absent(), 1);
}

#[test]
fn a_batch_without_groups_or_without_losses_has_the_plain_mean() {
    let (found, _) = febs(0.0).coefficients(&[1.0, 3.0], &of(&[None, None], &[true; 2]), &[true; 2]);
    assert_eq!(found, [0.5, 0.5]);
    let (found, _) = febs(0.0).coefficients(&[0.0, 0.0], &of(&[Some(0), Some(1)], &[false; 2]), &[false; 2]);
    assert_eq!(found, [0.0, 0.0]);
}

#[test]
fn extreme_losses_leave_finite_weights_with_mean_1() {
    for gamma in [0.0, 1.0, 40.0, 100.0] {
        for losses in [[0.0, 0.0], [0.0, 1e30], [-3.0, 2.0], [1e-30, 1e-30]] {
            let found = weights(&losses.map(Some), &[3, 1], gamma, EPSILON);
            let mean: f64 = (3.0 * found[0].unwrap() + found[1].unwrap()) / 4.0;
            assert!((mean - 1.0).abs() < 1e-12, "{gamma} {losses:?}: {found:?}");
        }
    }
}

#[test]
fn earlier_batches_count_and_absent_groups_keep_theirs() {
    let mut febs = febs(0.9);
    assert_eq!(febs.with_past(vec![Some(1.0), None, Some(4.0)]), [Some(1.0), None, Some(4.0)]);
    let second = febs.with_past(vec![Some(2.0), Some(3.0), None]);
    assert!((second[0].unwrap() - 1.1).abs() < 1e-15);
    assert_eq!(second[1..], [Some(3.0), None]);
    let saved = febs.state();
    assert_eq!(saved, [1.0, second[0].unwrap(), 1.0, 3.0, 1.0, 4.0]);
    let mut resumed = self::febs(0.9);
    assert!(resumed.restore(&saved));
    let next = vec![None, Some(1.0), Some(1.0)];
    assert_eq!(resumed.with_past(next.clone()), febs.with_past(next));
    assert_eq!(self::febs(0.9).state(), [0.0; 6]);
    assert!(!resumed.restore(&saved[..4]));
}

// Weights carry no gradient: the slope of every loss is its coefficient at the present losses.
#[test]
fn gradients_are_those_of_the_losses_at_fixed_weights() {
    let (counted, losses) = ([true; 4], [0.5, 2.0, 1.5, 0.7]);
    let present = of(&[Some(0), Some(1), Some(2), None], &counted);
    let (coefficients, _) = febs(0.0).coefficients(&losses, &present, &counted);
    let value = |losses: Vec<f64>| weighted_sum(&tensor(losses, [4]), coefficients.clone());
    let leaf = tensor(losses.to_vec(), [4]).require_grad();
    let slopes = gradient(&weighted_sum(&leaf, coefficients.clone()), &leaf);
    assert_eq!(slopes, coefficients);
    for (slope, numeric) in slopes.iter().zip(differences(&losses, |losses| values(&value(losses))[0])) {
        assert!((slope - numeric).abs() < 1e-9);
    }
}

#[test]
fn settings_out_of_range_name_their_key() {
    let default = FebsConfig::default();
    assert!(default.validate().is_ok());
    let message = |config: FebsConfig| config.validate().unwrap_err().to_string();
    let gamma = message(FebsConfig { gamma: -1.0, ..default });
    assert_eq!(gamma, "gamma is -1, expected a number in [0, 100]");
    let decay = message(FebsConfig { decay: 1.0, ..default });
    assert_eq!(decay, "decay is 1, expected a number in [0, 1)");
}
