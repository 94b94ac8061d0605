use approx::{assert_abs_diff_eq, assert_relative_eq};
use rand::RngExt as _;

use super::*;
use crate::normal::normal_quantile;
use crate::seeds::stream;

const DIRECTIONS: [Direction; 2] = [Direction::HigherIsBetter, Direction::LowerIsBetter];

fn sampled(value: f64, replicates: Vec<f64>) -> Sampled {
    Sampled {
        value: Ok(value),
        replicates: replicates.into_iter().map(Some).collect(),
        jackknife: None,
        nested: None,
        n_partial: 0,
        is_distance: false,
    }
}

/// A comparison of these numbers, of the sample and of every replicate.
fn of_numbers(groups: &[Sampled], number: impl Fn(&[f64]) -> f64) -> Sampled {
    let replicate = |k: usize| number(&groups.iter().map(|group| group.replicates[k].unwrap()).collect::<Vec<f64>>());
    let values: Vec<f64> = groups.iter().map(|group| group.value.clone().unwrap()).collect();
    sampled(number(&values), (0..groups[0].replicates.len()).map(replicate).collect())
}

/// The mean of the groups, which are of equal size.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn model(groups: &[Sampled], comparison: Comparison, direction: Direction) -> OfModel {
    OfModel {
        compared: of_numbers(groups, |values| comparison.of(values, mean(values), direction).unwrap()),
        groups: groups.to_vec(),
        overall: of_numbers(groups, mean),
    }
}

fn compare(
    (comparison, direction): (Comparison, Direction),
    [groups, others]: [&[Sampled]; 2],
    level: f64,
) -> Difference {
    let settings = EvaluationSettings { level, ..EvaluationSettings::default() };
    let models = [groups, others].map(|groups| model(groups, comparison, direction));
    difference_of_models(comparison, direction, [&models[0], &models[1]], &settings)
}

/// What is compared between models: all but the form whose distance is a deviation, not a sum over the groups.
fn each() -> impl Iterator<Item = (Comparison, Direction)> {
    let deviation = Comparison::EquityScaling(EquityScaling::FairSegDeviation);
    let compared = Comparison::ALL.into_iter().filter(move |comparison| *comparison != deviation);
    compared.flat_map(|comparison| DIRECTIONS.map(|direction| (comparison, direction)))
}

/// Standard normal numbers.
fn normal(rng: &mut impl rand::Rng) -> f64 {
    normal_quantile(rng.random_range(1e-9..1.0 - 1e-9))
}

/// Two models in some groups whose true values are given: errors of `noise`, of which the models share the most.
fn drawn(truth: &[[f64; 2]], noise: f64, n_replicates: usize, seed: u64) -> [Vec<Sampled>; 2] {
    let mut rng = stream(seed, "difference of gaps", &[]);
    let mut errors = || -> [f64; 2] {
        let shared = noise * normal(&mut rng);
        [(); 2].map(|()| shared + 0.3 * noise * normal(&mut rng))
    };
    let mut models = [Vec::new(), Vec::new()];
    for of_group in truth {
        let error = errors();
        let found = [of_group[0] + error[0], of_group[1] + error[1]];
        let draws: Vec<[f64; 2]> = (0..n_replicates).map(|_| errors()).collect();
        for model in 0..2 {
            let replicates = draws.iter().map(|errors| found[model] + errors[model]).collect();
            models[model].push(sampled(found[model], replicates));
        }
    }
    models
}

fn ends(found: &Difference) -> (f64, f64) {
    (found.lower.unwrap(), found.upper.unwrap())
}

#[test]
fn a_copy_differs_by_nothing() {
    let [groups, _] = drawn(&[[0.9, 0.7], [0.2, 0.2], [0.5, 0.5]], 0.01, 400, 1);
    for comparison in each() {
        let copy = compare(comparison, [&groups, &groups], 0.95);
        assert_eq!((copy.value, copy.p_value, copy.undefined), (Some(0.0), Some(1.0), None), "{comparison:?}");
        assert_abs_diff_eq!(copy.lower.unwrap(), 0.0, epsilon = 1e-12);
        assert_abs_diff_eq!(copy.upper.unwrap(), 0.0, epsilon = 1e-12);
    }
}

#[test]
fn clear_gaps_have_the_interval_of_their_change() {
    let [groups, others] = drawn(&[[0.9, 0.7], [0.2, 0.2]], 0.01, 4_000, 1);
    let found = compare((Comparison::Gap, Direction::HigherIsBetter), [&groups, &others], 0.95);
    // The change of the difference of two groups: own errors of 0.3 * 0.01 in four values; a, b and c together need the
    // two-sided quantile of about two independent numbers, because a and b share most of their errors.
    let (lower, upper) = ends(&found);
    assert!((2.0..2.45).contains(&((upper - lower) / 2.0 / (2.0 * 0.3 * 0.01))), "{found:?}");
    assert_relative_eq!(f64::midpoint(upper, lower), found.value.unwrap(), epsilon = 1e-9);
    assert!(found.p_value.unwrap() <= 1.0 / 4_000.0, "{found:?}");
}

#[test]
fn a_clear_worst_group_has_the_interval_of_its_change() {
    // The worst group is the second where higher is better, and the first where lower is.
    let [groups, others] = drawn(&[[0.9, 0.7], [0.2, 0.25]], 0.01, 4_000, 1);
    for (direction, worst) in [(Direction::HigherIsBetter, 1), (Direction::LowerIsBetter, 0)] {
        let found = compare((Comparison::Worst, direction), [&groups, &others], 0.95);
        let (lower, upper) = ends(&found);
        let value = |model: &[Sampled]| model[worst].value.clone().unwrap();
        assert_relative_eq!(found.value.unwrap(), value(&groups) - value(&others), max_relative = 1e-12);
        // Own errors of 0.3 * 0.01 in two values; of six numbers, two of each group are nearly the same: about four.
        assert!((2.3..2.7).contains(&((upper - lower) / 2.0 / (0.3 * 0.01 * 2.0_f64.sqrt()))), "{found:?}");
        assert_relative_eq!(f64::midpoint(upper, lower), found.value.unwrap(), epsilon = 1e-9);
    }
}

#[test]
fn the_interval_contains_0_exactly_if_p_is_above_the_error_level() {
    for seed in 0..40 {
        let [groups, others] = drawn(&[[0.5, 0.5], [0.54, 0.5], [0.5, 0.47]], 0.02, 199, seed);
        for comparison in each() {
            let p = compare(comparison, [&groups, &others], 0.95).p_value.unwrap();
            for error in [0.06, 0.2, 0.5, 0.8] {
                let found = compare(comparison, [&groups, &others], 1.0 - error);
                assert_eq!(contains_zero(ends(&found)), p > error, "{comparison:?} {seed} {p} {error}");
            }
        }
    }
}

/// Standard error of a share of 400 near 0.95: 0.011.
#[test]
fn intervals_contain_the_true_difference_as_often_as_they_say() {
    let cases: [&[[f64; 2]]; 3] =
        [&[[0.5, 0.5], [0.5, 0.5]], &[[0.5, 0.5], [0.5, 0.53], [0.5, 0.5]], &[[0.6, 0.5], [0.5, 0.53]]];
    for truth in cases {
        let models: Vec<[Vec<Sampled>; 2]> = (0..400).map(|seed| drawn(truth, 0.02, 199, 1_000 + seed)).collect();
        for (comparison, direction) in each() {
            let true_value = |model: usize| {
                let values: Vec<f64> = truth.iter().map(|group| group[model]).collect();
                comparison.of(&values, mean(&values), direction).unwrap()
            };
            let expected = true_value(0) - true_value(1);
            let covers = |[groups, others]: &&[Vec<Sampled>; 2]| {
                let (lower, upper) = ends(&compare((comparison, direction), [groups, others], 0.95));
                lower <= expected && expected <= upper
            };
            let share = models.iter().filter(covers).count() as f64 / 400.0;
            assert!(share >= 0.93, "{comparison:?} {direction:?} {truth:?}: {share}");
        }
    }
}

/// The exact range of the difference over values of all numbers within their simultaneous intervals, at random points: all lie
/// within the interval, and without noise of the signs some come near its ends.
#[test]
fn equity_scaling_has_the_range_over_its_regions() {
    let [groups, others] = drawn(&[[0.7, 0.66], [0.5, 0.52]], 0.02, 999, 3);
    let comparison = Comparison::EquityScaling(EquityScaling::FairTte);
    for direction in DIRECTIONS {
        let [first, second] = [&groups, &others].map(|groups| model(groups, comparison, direction));
        let models = Models::new(comparison, direction, [&first, &second]).unwrap();
        let (lower, upper) = models.difference(0.95);
        let regions = models.regions(0.95);
        let mut rng = stream(5, "points", &[]);
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for _ in 0..20_000 {
            // Corners, where extremes are, or points between.
            let points: Vec<[f64; 2]> = regions
                .iter()
                .map(|region| {
                    let corners = region.corners(&[]);
                    let [one, two] = [(); 2].map(|()| corners[rng.random_range(0..corners.len())]);
                    let share = if rng.random::<f64>() < 0.5 { 0.0 } else { rng.random::<f64>() };
                    [0, 1].map(|k| one[k] + share * (two[k] - one[k]))
                })
                .collect();
            let scaled = |model: usize| {
                let distance: f64 = points[..2].iter().map(|point| point[model].abs()).sum();
                EquityScaling::FairTte.utility(points[2][model], direction) / (1.0 + distance)
            };
            let found = scaled(0) - scaled(1);
            (least, most) = (least.min(found), most.max(found));
        }
        assert!(lower <= least + 1e-12 && upper >= most - 1e-12, "{lower} {upper}: {least} {most}");
        assert_abs_diff_eq!(lower, least, epsilon = 1e-3 + 0.02 * (upper - lower));
        assert_abs_diff_eq!(upper, most, epsilon = 1e-3 + 0.02 * (upper - lower));
    }
}

#[test]
fn a_ratio_with_a_value_of_0_has_no_interval_and_says_so() {
    let groups = [sampled(0.5, vec![0.5; 99]), sampled(0.0, vec![0.0; 99])];
    let others = [sampled(0.5, vec![0.5; 99]), sampled(0.4, vec![0.4; 99])];
    let found = compare((Comparison::Ratio, Direction::HigherIsBetter), [&groups, &others], 0.95);
    assert_relative_eq!(found.value.unwrap(), -0.8);
    assert_eq!((found.lower, found.p_value), (None, None));
    assert!(found.undefined.unwrap().contains("no logarithm"));
}

#[test]
fn without_replicates_there_is_a_value_and_nothing_else() {
    let groups = [sampled(0.5, vec![]), sampled(0.7, vec![])];
    for comparison in each() {
        let found = compare(comparison, [&groups, &groups], 0.95);
        assert_relative_eq!(found.value.unwrap(), 0.0);
        assert_eq!((found.lower, found.p_value, found.undefined), (None, None, None), "{comparison:?}");
    }
}
