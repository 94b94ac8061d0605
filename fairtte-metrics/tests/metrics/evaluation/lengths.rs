//! Arguments that describe another number of samples are refused by every evaluation.

use std::fmt::Debug;

use fairtte_metrics::classification::ClassPredictions;
use fairtte_metrics::competing::{CompetingOutcomes, IncidenceCurves};
use fairtte_metrics::evaluation::{
    ClassSettings, MaskMetric, MaskSamples, MetricDescription, evaluate_at_horizon, evaluate_cause, evaluate_classes,
    evaluate_masks, evaluate_metric,
};
use fairtte_metrics::masks::{LabelPair, Labels, MaskClass, MaskGrid, MaskSettings, score_pair};
use fairtte_metrics::sensitivity::{SensitivitySettings, sensitivity};
use fairtte_metrics::{Direction, EvaluationSettings, MetricError, compare_models, evaluate};

use super::cohort::{Cohort, cohort, groups, halves, settings};

const N: usize = 40;

fn is_refused<T: Debug>(call: &str, expected: &str, found: Result<T, MetricError>) {
    match found {
        Err(MetricError::LengthMismatch { what, expected: n, .. }) => assert_eq!((what, n), (expected, N), "{call}"),
        other => panic!("{call}: {other:?}"),
    }
}

/// More memberships than samples name rows that are not there.
#[test]
fn groups_of_another_length_are_refused_by_every_evaluation() {
    let cohort = cohort(N, 41);
    let Cohort { subjects, outcomes, curves, censoring } = &cohort;
    let settings = settings(3);
    let probability: Vec<f64> = (0..N).map(|row| 1.0 - curves.survival()[[row, 3]]).collect();
    let predictions = ClassPredictions::new(probability.clone(), outcomes.event().to_vec()).unwrap();
    let causes = outcomes.event().iter().map(|event| u32::from(*event)).collect();
    let of_causes = CompetingOutcomes::new(outcomes.time().to_vec(), causes).unwrap();
    let incidence = IncidenceCurves::new(curves.grid().to_vec(), curves.survival().mapv(|s| 1.0 - s)).unwrap();
    let cup = [MaskClass { name: "cup".to_owned(), values: vec![1] }];
    let masks = MaskSettings::default();
    let labels = Labels { truth: &[0, 1, 0, 1], predicted: &[1, 1, 0, 1] };
    let pair = LabelPair::new(MaskGrid::new(&[2, 2], &[1.0, 1.0]).unwrap(), labels).unwrap();
    let scores = [vec![score_pair(&pair, &cup[0], &masks); N]];
    let samples = MaskSamples { classes: &cup, scores: &scores, cup_to_disc: None, unit: "pixels" };
    let direction = Direction::HigherIsBetter;
    let description = MetricDescription { name: "share", label: "Share", convention: "of all", direction };
    let share = |rows: &[usize]| Ok(rows.len() as f64 / N as f64);
    for n in [N - 1, N + 3] {
        let groups = [halves(N), groups("site", &["a", "b"], |row| Some(u32::from(row % 3 == 1)), n)];
        let refused = "group memberships";
        is_refused("evaluate", refused, evaluate(subjects, outcomes, curves, censoring, &groups, &settings));
        let found = evaluate_classes(&predictions, subjects, &groups, &ClassSettings::default(), &settings);
        is_refused("evaluate_classes", refused, found);
        let found = evaluate_metric(description, share, subjects, outcomes, &groups, &settings);
        is_refused("evaluate_metric", refused, found);
        let found = evaluate_masks(&samples, subjects, &groups, &[MaskMetric::Dice], &masks, &settings);
        is_refused("evaluate_masks", refused, found);
        let found = evaluate_at_horizon(&probability, outcomes, censoring, 1.0, subjects, &groups, &settings);
        is_refused("evaluate_at_horizon", refused, found);
        let of_cause = EvaluationSettings { metrics: vec!["cause-c".to_owned()], ..settings.clone() };
        let found = evaluate_cause(subjects, &of_causes, 1, &incidence, censoring, &groups, &of_cause);
        is_refused("evaluate_cause", refused, found);
        let tilt = SensitivitySettings::default();
        let found = sensitivity(subjects, outcomes, curves, censoring, &groups, &settings, &tilt);
        is_refused("sensitivity", refused, found);
    }
}

#[test]
fn curves_of_another_length_are_refused_where_models_are_compared() {
    let cohort = cohort(N, 42);
    let Cohort { subjects, outcomes, curves, censoring } = &cohort;
    let rows: Vec<usize> = (0..=N).map(|row| row % N).collect();
    for other in [curves.select(&rows), curves.select(&rows[..3])] {
        let models = [("own", curves), ("other", &other)];
        let found = compare_models(&models, subjects, outcomes, censoring, &[], &settings(3));
        is_refused("compare_models", "survival curves", found);
    }
}
