//! Relabelled groups against their definition and closed forms.

use approx::assert_relative_eq;
use ndarray::Array2;

use super::*;
use crate::chi_square::chi_square_upper_tail;
use crate::evaluation::evaluated::Predictions;
use crate::evaluation::metrics::RequestedMetric;
use crate::evaluation::prepared::RequestedAt;
use crate::evaluation::{MetricDescription, MetricReport, evaluate_metric};
use crate::normal::normal_quantile;
use crate::{CensoringCurve, CensoringTies, Direction, EvaluationSettings, Groups, Outcomes, SurvivalCurves};

const N: usize = 90;

impl Relabelling {
    /// The weights of group `number`.
    fn weights(&self, number: usize) -> Vec<u32> {
        let (labels, level) = (self.labels(number / self.levels.len()), self.levels[number % self.levels.len()]);
        labels.iter().map(|label| u32::from(*label == Some(level))).collect()
    }
}

fn subjects(per_subject: usize) -> Vec<SubjectId> {
    (0..N).map(|row| SubjectId::new(format!("p{:03}", row / per_subject))).collect()
}

fn outcomes() -> Outcomes {
    let time = (0..N).map(|row| 0.5 + (row * 37 % N) as f64 / 20.0).collect();
    Outcomes::new(time, (0..N).map(|row| row % 3 != 0).collect()).unwrap()
}

/// Level `row / 2 % n_levels`, so that the two samples of a subject share it.
fn groups(n_levels: usize) -> Groups {
    let levels = (0..n_levels).map(|level| level.to_string()).collect();
    Groups::new("site", levels, (0..N).map(|row| Some(GroupId::from_index(row / 2 % n_levels))).collect()).unwrap()
}

fn settings() -> EvaluationSettings {
    EvaluationSettings { replicates: 200, permutations: 30, min_events: 1, ..EvaluationSettings::default() }
}

#[test]
fn a_block_of_weights_contains_the_groups_of_every_labelling_in_turn() {
    let (subjects, outcomes, groups, settings) = (subjects(2), outcomes(), [groups(5)], settings());
    let input =
        Input { subjects: &subjects, outcomes: &outcomes, competing: None, groups: &groups, settings: &settings };
    let relabelling = Relabelling::new(&input, 0, Counted::Events).unwrap().unwrap();
    assert_eq!(relabelling.n_groups(), 31 * 5);
    let mut block = vec![7; N * LANES];
    for first in (0..relabelling.n_groups()).step_by(LANES) {
        relabelling.weights_block(first, &mut block);
        for lane in 0..LANES {
            let found: Vec<u32> = (0..N).map(|row| u32::from(block[row * LANES + lane])).collect();
            let expected = first + lane;
            let expected = if expected < relabelling.n_groups() { relabelling.weights(expected) } else { vec![0; N] };
            assert_eq!(found, expected, "group {}", first + lane);
        }
    }
    let observed: Vec<u32> = groups[0].membership().iter().map(|level| u32::from(*level == Some(GroupId(3)))).collect();
    assert_eq!(relabelling.weights(3), observed);
    assert_ne!(relabelling.weights(8), observed);
}

#[test]
fn labels_move_with_subjects_or_with_samples_and_keep_group_sizes() {
    let (subjects, outcomes, groups) = (subjects(2), outcomes(), [groups(3)]);
    let together = |resample| {
        let settings = EvaluationSettings { resample, ..settings() };
        let input =
            Input { subjects: &subjects, outcomes: &outcomes, competing: None, groups: &groups, settings: &settings };
        let relabelling = Relabelling::new(&input, 0, Counted::Events).unwrap().unwrap();
        let weights: Vec<Vec<u32>> = (3..relabelling.n_groups()).map(|number| relabelling.weights(number)).collect();
        assert!(weights.iter().all(|weights| weights.iter().sum::<u32>() == 30));
        weights.iter().all(|weights| weights.chunks(2).all(|pair| pair[0] == pair[1]))
    };
    assert!(together(Resample::Subject));
    assert!(!together(Resample::Sample));
}

#[test]
fn levels_with_few_events_are_not_relabelled() {
    let (subjects, outcomes) = (subjects(1), outcomes());
    // 60 events: 29 in each of the first two levels, 2 in the last.
    let level = |row: usize| if row > 86 { 2 } else { row % 2 };
    let membership = (0..N).map(|row| Some(GroupId::from_index(level(row)))).collect();
    let groups = [Groups::new("site", vec!["a".into(), "b".into(), "c".into()], membership).unwrap()];
    let of = |min_events| {
        let settings = EvaluationSettings { min_events, ..settings() };
        let input =
            Input { subjects: &subjects, outcomes: &outcomes, competing: None, groups: &groups, settings: &settings };
        Relabelling::new(&input, 0, Counted::Events).unwrap().map(|relabelling| relabelling.levels.len())
    };
    assert_eq!((of(1), of(3), of(40)), (Some(3), Some(2), None));
}

fn curves() -> SurvivalCurves {
    let survival = |(row, time): (usize, usize)| {
        let risk = 0.2 + 0.6 * ((row as f64 * 0.7).sin() * 0.5 + 0.5);
        (1.0 - risk).powi(i32::try_from(time).unwrap() + 1)
    };
    SurvivalCurves::new(vec![1.0, 2.0, 4.0], Array2::from_shape_fn((N, 3), survival)).unwrap()
}

#[test]
fn metrics_that_share_sorted_samples_and_prepared_metrics_have_the_same_relabelled_values() {
    let (subjects, outcomes, settings, curves) = (subjects(1), outcomes(), settings(), curves());
    let groups = [groups(3), groups(2)];
    let input =
        Input { subjects: &subjects, outcomes: &outcomes, competing: None, groups: &groups, settings: &settings };
    let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
    let times = [1.0, 2.0, 3.0];
    let predictions = Predictions { curves: &curves, censoring: &censoring, times: Ok(&times) };
    let joint = Evaluated::of_curves(&input, &predictions, true).unwrap();
    let names = ["c-td", "c-td-half", "auc-td", "ibs"];
    let requested =
        names.map(|name| RequestedAt::new(&RequestedMetric::parse(name).unwrap(), &Err(MetricError::NoSamples)));
    let descriptions =
        names.map(|name| MetricDescription { name, label: name, convention: "", direction: Direction::HigherIsBetter });
    let prepared = Evaluated::of_requested(&input, &predictions, &requested, &descriptions, true).unwrap();
    for attribute in 0..2 {
        for metric in 0..names.len() {
            let of = |evaluated: &Evaluated<'_>| evaluated.gap_by_chance(metric, attribute, 1, 0.95).unwrap();
            let (joint, prepared) = (of(&joint), of(&prepared));
            assert_relative_eq!(joint.mean, prepared.mean, max_relative = 1e-9);
            assert_relative_eq!(joint.upper, prepared.upper, max_relative = 1e-9);
            assert_eq!((joint.p_value, joint.n_permutations), (prepared.p_value, 30));
        }
    }
}

/// The gap of the mean of `value` over rows, with `n_levels` groups.
fn gap_of_means(value: impl Fn(usize) -> f64 + Sync, n_levels: usize, settings: &EvaluationSettings) -> MetricReport {
    let description =
        MetricDescription { name: "mean", label: "mean", convention: "", direction: Direction::HigherIsBetter };
    let mean = |rows: &[usize]| Ok(rows.iter().map(|row| value(*row)).sum::<f64>() / rows.len() as f64);
    let groups = [groups(n_levels), groups(3)];
    evaluate_metric(description, mean, &subjects(1), &outcomes(), &groups, settings).unwrap()
}

/// Standard normal values, the same distribution in every group.
fn noise(row: usize) -> f64 {
    normal_quantile(((row * 29 % N) as f64 + 0.5) / N as f64)
}

#[test]
fn the_gap_of_two_equal_groups_has_the_distribution_of_a_half_normal() {
    let settings = EvaluationSettings { replicates: 2_000, permutations: 2_000, min_events: 1, ..settings() };
    // Groups of 46 and 44, so that the standard error of the difference is sqrt(1/46 + 1/44).
    let standard_error = (1.0_f64 / 46.0 + 1.0 / 44.0).sqrt() * 0.98;
    let equal = gap_of_means(noise, 2, &settings);
    let by_chance = equal.attributes[0].gap_by_chance.clone().unwrap();
    assert_relative_eq!(by_chance.mean, (2.0 / std::f64::consts::PI).sqrt() * standard_error, max_relative = 0.05);
    assert_relative_eq!(by_chance.upper, 1.96 * standard_error, max_relative = 0.07);
    let half_normal = |gap: f64| chi_square_upper_tail((gap / standard_error).powi(2), 1);
    let gap = equal.attributes[0].gap.value.unwrap();
    assert!((by_chance.p_value - half_normal(gap)).abs() < 0.04, "{gap} {}", by_chance.p_value);
    // The second attribute makes a family of two.
    let holm: Vec<f64> = equal.attributes.iter().map(|a| a.gap_by_chance.as_ref().unwrap().p_holm.unwrap()).collect();
    let smaller = by_chance.p_value.min(equal.attributes[1].gap_by_chance.as_ref().unwrap().p_value);
    assert_relative_eq!(holm[0].min(holm[1]), (2.0 * smaller).min(1.0), max_relative = 1e-12);

    let shifted = gap_of_means(|row| noise(row) + if row / 2 % 2 == 0 { 3.0 } else { 0.0 }, 2, &settings);
    assert_relative_eq!(shifted.attributes[0].gap_by_chance.as_ref().unwrap().p_value, 1.0 / 2_001.0);
}

#[test]
fn the_corrected_gap_of_two_groups_is_the_root_of_the_squared_gap_less_the_squared_standard_error() {
    let settings = EvaluationSettings { replicates: 4_000, permutations: 0, ..settings() };
    let shifted = gap_of_means(|row| noise(row) + if row / 2 % 2 == 0 { 0.5 } else { 0.0 }, 2, &settings);
    let (gap, corrected) = (shifted.attributes[0].gap.value.unwrap(), shifted.attributes[0].gap_corrected.unwrap());
    // Of each group: the mean, and the variance with the divisor n, divided by n.
    let [first, second] = [0, 1].map(|level| {
        let values: Vec<f64> = (0..N).filter(|row| row / 2 % 2 == level).map(noise).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n * n))
    });
    let squared_error = first.1 + second.1;
    assert_relative_eq!(gap * gap - corrected * corrected, squared_error, max_relative = 0.06);
    assert_eq!(shifted.attributes[0].gap_by_chance, None);
    // A gap of half a standard error.
    let half = |row| noise(row) + if row / 2 % 2 == 0 { 0.5 * squared_error.sqrt() - first.0 } else { -second.0 };
    assert_eq!(gap_of_means(half, 2, &settings).attributes[0].gap_corrected, Some(0.0));
    let none = gap_of_means(noise, 2, &EvaluationSettings { replicates: 0, ..settings });
    assert_eq!(none.attributes[0].gap_corrected, None);
}
