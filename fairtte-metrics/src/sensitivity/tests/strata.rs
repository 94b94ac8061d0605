//! Strata and references are those of the evaluation, whichever attribute is analysed and wherever follow-up ends.

use std::collections::BTreeMap;

use super::cohort::{Cohort, Design, settings};
use crate::evaluation::ScoredCohort;
use crate::resampling::Stratify;
use crate::sensitivity::{ImputationModel, SensitivitySettings, sensitivity, sensitivity_of};
use crate::{EvaluationSettings, GroupId, Groups, MetricError};

fn tilt() -> SensitivitySettings {
    SensitivitySettings {
        deltas: vec![-1.0, 0.0],
        model: ImputationModel::KaplanMeier,
        imputations: 3,
        replicates: 10,
        ..SensitivitySettings::default()
    }
}

#[test]
fn a_bootstrap_within_one_attribute_serves_the_analysis_of_another() {
    let cohort = Design { n: 200, dropout: 0.8, delta: [0.0; 2], noise: [0.5; 2] }.draw(21);
    let Cohort { subjects, observed: outcomes, curves, groups, .. } = &cohort;
    let censoring = cohort.censoring();
    let membership = (0..200).map(|row| Some(GroupId::from_index(row / 100))).collect();
    let half = Groups::new("half", vec!["first".to_owned(), "last".to_owned()], membership).unwrap();
    let groups = [groups.clone(), half];
    let evaluation = EvaluationSettings {
        stratify: Stratify::Attribute("half".to_owned()),
        reference: BTreeMap::from([("half".to_owned(), "last".to_owned())]),
        ..settings(&["ibs"])
    };
    let both = sensitivity(subjects, outcomes, curves, &censoring, &groups, &evaluation, &tilt()).unwrap();
    let names: Vec<Option<&str>> = both.attributes.iter().map(|found| found.attribute.as_deref()).collect();
    assert_eq!(names, [Some("group"), Some("half")]);
    let scored = ScoredCohort { subjects, outcomes, curves, censoring: &censoring, groups: &groups };
    let of = |names: &[&str]| sensitivity_of(&scored, names, &evaluation, &tilt());
    assert_eq!(of(&["group"]).unwrap().attributes[..], both.attributes[..1]);
    let free = EvaluationSettings { stratify: Stratify::None, ..evaluation.clone() };
    assert_ne!(sensitivity_of(&scored, &["group"], &free, &tilt()).unwrap().attributes[..], both.attributes[..1]);
    let unknown = MetricError::UnknownAttribute { attribute: "race".to_owned(), known: "group, half".to_owned() };
    assert_eq!(of(&["group", "race"]), Err(unknown));
}

/// Both samples of a subject have the event, one of them after the end: they are in one stratum all the same.
#[test]
fn strata_of_events_are_those_before_follow_up_is_cut() {
    let mut cohort = Design { n: 120, dropout: 0.8, delta: [0.0; 2], noise: [0.5; 2] }.draw(22);
    let with_event = |is_in: &dyn Fn(f64) -> bool| {
        let mut rows = cohort.observed.time().iter().zip(cohort.observed.event());
        rows.position(|(time, event)| *event && is_in(*time)).unwrap()
    };
    let (early, late) = (with_event(&|time| time < 0.4), with_event(&|time| time > 0.4));
    cohort.subjects[late] = cohort.subjects[early].clone();
    let evaluation = EvaluationSettings {
        stratify: Stratify::Event,
        times: Some(vec![0.1, 0.3]),
        horizon: Some(0.3),
        ..settings(&["brier"])
    };
    let Cohort { subjects, observed, curves, groups, .. } = &cohort;
    let groups = std::slice::from_ref(groups);
    let tilt = SensitivitySettings { administrative: Some(0.4), ..tilt() };
    let found = sensitivity(subjects, observed, curves, &cohort.censoring(), groups, &evaluation, &tilt).unwrap();
    assert!(found.attributes[0].metrics[0].points[0].overall.lower.is_some());
}
