//! Draws of an imputation that have no model.

use super::cohort::{Cohort, Design, END, settings};
use crate::evaluation::evaluated::Input;
use crate::resampling::bootstrap::MAX_REPLICATES;
use crate::sensitivity::completed::{MOST_REDRAWS, drawn_rows};
use crate::sensitivity::{ImputationModel, SensitivitySettings, sensitivity};
use crate::{EvaluationSettings, GroupId, Groups, MetricError};

/// Whether Cox's partial likelihood of one covariate has a maximum in these rows: there are events, and neither every event has the
/// highest value of those at risk nor every event the lowest.
fn has_maximum(cohort: &Cohort, rows: &[usize]) -> bool {
    let (time, event) = (cohort.observed.time(), cohort.observed.event());
    // The prediction rises as survival falls.
    let risk = |row: usize| 1.0 - cohort.curves.survival()[[row, 12]];
    let events: Vec<usize> = rows.iter().copied().filter(|row| event[*row]).collect();
    let compared = |is_worse: &dyn Fn(f64, f64) -> bool| {
        events.iter().any(|e| rows.iter().any(|other| time[*other] >= time[*e] && is_worse(risk(*other), risk(*e))))
    };
    compared(&|other, own| other > own) && compared(&|other, own| other < own)
}

/// Small cohorts, of which some draws order the events exactly as predicted: others take their place, and are counted.
#[test]
fn draws_without_an_imputation_model_are_replaced_and_counted() {
    let mut counts = Vec::new();
    for seed in 0..6 {
        let cohort = Design { n: 14, dropout: 0.8, delta: [0.0; 2], noise: [0.4; 2] }.draw(seed);
        let tilt = SensitivitySettings {
            deltas: vec![0.0],
            model: ImputationModel::Cox,
            imputations: 25,
            replicates: 0,
            administrative: None,
            ..SensitivitySettings::default()
        };
        let evaluation = EvaluationSettings { replicates: 0, ..settings(&["brier@0.3"]) };
        let Cohort { subjects, observed, curves, .. } = &cohort;
        let found = sensitivity(subjects, observed, curves, &cohort.censoring(), &[], &evaluation, &tilt);
        let groups = [];
        let input = Input { subjects, outcomes: observed, groups: &groups, settings: &evaluation, competing: None };
        let bootstrap = input.bootstrap().unwrap();
        let draws = |k: usize| {
            let of = |again: usize| drawn_rows(&bootstrap, MAX_REPLICATES + k + again * tilt.imputations);
            (0..=MOST_REDRAWS).position(|again| has_maximum(&cohort, &of(again)))
        };
        match (0..tilt.imputations).map(draws).sum::<Option<usize>>() {
            Some(expected) => {
                assert_eq!(found.unwrap().attributes[0].n_redrawn, expected, "seed {seed}");
                counts.push(expected);
            }
            None => assert!(matches!(found, Err(MetricError::ImputationModel { .. })), "seed {seed}"),
        }
    }
    assert!(counts.iter().any(|count| *count > 0), "{counts:?}");
}

/// Group b is one event and one drop-out: a draw without both has no model for the drop-out, and another one takes its place.
#[test]
fn draws_without_anybody_of_a_group_are_replaced_and_counted() {
    let mut counts = Vec::new();
    for seed in 0..3 {
        let cohort = Design { n: 60, dropout: 0.8, delta: [0.0; 2], noise: [0.4; 2] }.draw(seed);
        let (time, event) = (cohort.observed.time(), cohort.observed.event());
        let has_event = (0..60).find(|row| event[*row]).unwrap();
        let drops_out = (0..60).find(|row| !event[*row] && time[*row] < END).unwrap();
        let of_b = |row: &usize| [has_event, drops_out].contains(row);
        let membership = (0..60).map(|row| Some(GroupId(u32::from(of_b(&row))))).collect();
        let groups = [Groups::new("group", vec!["a".to_owned(), "b".to_owned()], membership).unwrap()];
        let tilt = SensitivitySettings {
            deltas: vec![0.0],
            model: ImputationModel::KaplanMeier,
            imputations: 25,
            replicates: 0,
            administrative: Some(END),
            ..SensitivitySettings::default()
        };
        let evaluation = EvaluationSettings { replicates: 0, min_events: 1, ..settings(&["brier@0.3"]) };
        let Cohort { subjects, observed, curves, .. } = &cohort;
        let input = Input { subjects, outcomes: observed, groups: &groups, settings: &evaluation, competing: None };
        let bootstrap = input.bootstrap().unwrap();
        let draws = |k: usize| {
            let of = |again: usize| drawn_rows(&bootstrap, MAX_REPLICATES + k + again * tilt.imputations);
            (0..=MOST_REDRAWS).position(|again| of(again).iter().any(of_b)).unwrap()
        };
        let expected: usize = (0..tilt.imputations).map(draws).sum();
        let found = sensitivity(subjects, observed, curves, &cohort.censoring(), &groups, &evaluation, &tilt).unwrap();
        assert_eq!(found.attributes[0].n_redrawn, expected, "seed {seed}");
        counts.push(expected);
    }
    assert!(counts.iter().any(|count| *count > 0), "{counts:?}");
}
