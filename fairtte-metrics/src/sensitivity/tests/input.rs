//! Settings that are refused, groups with few events, and what the result does not depend on.

use super::cohort::{Cohort, Design, settings};
use crate::sensitivity::{ImputationModel, SensitivityReport, SensitivitySettings, TiltedGroup, sensitivity};
use crate::{EvaluationSettings, GroupId, Groups, MetricError, Outcomes};

fn analyse(
    cohort: &Cohort,
    evaluation: &EvaluationSettings,
    tilt: &SensitivitySettings,
) -> Result<SensitivityReport, MetricError> {
    let Cohort { subjects, observed, curves, groups, .. } = cohort;
    sensitivity(subjects, observed, curves, &cohort.censoring(), std::slice::from_ref(groups), evaluation, tilt)
}

fn small() -> SensitivitySettings {
    SensitivitySettings { imputations: 4, replicates: 20, ..SensitivitySettings::default() }
}

#[test]
fn the_result_depends_on_the_seed_and_not_on_threads() {
    let cohort = Design { n: 120, dropout: 0.8, delta: [0.0; 2], noise: [0.5; 2] }.draw(1);
    let evaluation = settings(&["c-td", "ibs"]);
    let with = |threads: usize, evaluation: &EvaluationSettings| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| analyse(&cohort, evaluation, &small()).unwrap())
    };
    let one = with(1, &evaluation);
    assert_eq!(one, with(3, &evaluation));
    let other = with(1, &EvaluationSettings { seed: 1, ..evaluation });
    assert_ne!(one.attributes[0].metrics[0].points[0].overall, other.attributes[0].metrics[0].points[0].overall);
    let json = serde_json::to_string(&one).unwrap();
    assert_eq!(serde_json::from_str::<SensitivityReport>(&json).unwrap(), one);
}

#[test]
fn a_group_with_few_events_takes_the_model_of_all_and_is_not_compared() {
    let cohort = Design { n: 240, dropout: 0.8, delta: [0.0; 2], noise: [0.5; 2] }.draw(2);
    // Group c: the last twelve samples; missing: the first five.
    let membership = |row: usize| match row {
        0..5 => None,
        228.. => Some(GroupId(2)),
        _ => Some(GroupId::from_index(row % 2)),
    };
    let levels = ["a", "b", "c", "nobody"].map(str::to_owned).to_vec();
    let groups = Groups::new("group", levels, (0..240).map(membership).collect()).unwrap();
    let cohort = Cohort { groups, ..cohort };
    let evaluation = EvaluationSettings { min_events: 12, ..settings(&["ibs"]) };
    for model in [ImputationModel::Cox, ImputationModel::RiskStrata { n: 2 }, ImputationModel::KaplanMeier] {
        let found = analyse(&cohort, &evaluation, &SensitivitySettings { model, ..small() }).unwrap();
        let attribute = &found.attributes[0];
        let pooled: Vec<bool> = attribute.follow_up.iter().map(|of| of.pooled).collect();
        assert_eq!(pooled, [false, false, false, true, true]);
        let point = &attribute.metrics[0].points[0];
        assert!(point.groups[2].estimate.value.is_some() && point.groups[3].estimate.value.is_none());
        let value = |k: usize| point.groups[k].estimate.value.unwrap();
        assert_eq!(point.gap.as_ref().unwrap().value, Some((value(0) - value(1)).abs()));
        let mut sums = attribute.follow_up.iter().map(|of| of.n_events + of.n_dropouts + of.n_administrative == of.n);
        assert!(sums.all(|each| each));
        assert_eq!(attribute.follow_up[0].n, 240);
    }
}

#[test]
fn the_default_end_is_the_earliest_last_time_of_the_groups_with_a_model() {
    let cohort = Design { n: 200, dropout: 0.8, delta: [0.0; 2], noise: [0.5; 2] }.draw(3);
    // Group b is followed to 0.9 at most.
    let row = |(row, (time, event)): (usize, (&f64, &bool))| {
        if row % 2 == 1 { (time.min(0.9), *event && *time <= 0.9) } else { (*time, *event) }
    };
    let rows = cohort.observed.time().iter().zip(cohort.observed.event()).enumerate().map(row);
    let (time, event): (Vec<f64>, Vec<bool>) = rows.unzip();
    let cohort = Cohort { observed: Outcomes::new(time, event).unwrap(), ..cohort };
    let evaluation = EvaluationSettings { times: None, ..settings(&["ibs"]) };
    let found = analyse(&cohort, &evaluation, &small()).unwrap();
    let attribute = &found.attributes[0];
    assert_eq!(attribute.end, 0.9);
    assert!(attribute.times.is_some_and(|(_, last, _)| last < 0.9));
    let whole = {
        let Cohort { subjects, observed, curves, .. } = &cohort;
        sensitivity(subjects, observed, curves, &cohort.censoring(), &[], &evaluation, &small()).unwrap()
    };
    assert_eq!((whole.attributes[0].end, &whole.attributes[0].attribute), (1.2, &None));
    let point = &whole.attributes[0].metrics[0].points[0];
    assert!(
        point.overall.value.is_some() && point.gap.is_none() && point.worst.is_none() && point.gap_margin.is_none()
    );
}

#[test]
fn a_prediction_that_does_not_vary_needs_no_coefficient() {
    let cohort = Design { n: 200, dropout: 0.8, delta: [0.0; 2], noise: [0.5; 2] }.draw(4);
    let same = cohort.curves.select(&[7; 200]);
    let cohort = Cohort { curves: same, ..cohort };
    let value = |model| {
        let found = analyse(&cohort, &settings(&["observed-expected"]), &SensitivitySettings { model, ..small() });
        found.unwrap().attributes[0].metrics[0].points[3].overall.value.unwrap()
    };
    assert_eq!(value(ImputationModel::Cox), value(ImputationModel::KaplanMeier));
}

#[test]
fn settings_that_cannot_be_used_are_refused() {
    let cohort = Design { n: 60, dropout: 0.8, delta: [0.0; 2], noise: [0.5; 2] }.draw(5);
    let refused = |tilt: SensitivitySettings| analyse(&cohort, &settings(&["ibs"]), &tilt).unwrap_err().to_string();
    let with = |deltas: &[f64]| refused(SensitivitySettings { deltas: deltas.to_vec(), ..small() });
    let expected = "expected ascending numbers in [-50, 50] with 0 among them";
    assert_eq!(with(&[-1.0, 1.0]), format!("sensitivity.deltas is [-1.0, 1.0], {expected}"));
    for deltas in [&[0.0, 0.0][..], &[1.0, 0.0], &[0.0, f64::NAN], &[0.0, 51.0], &[]] {
        assert!(with(deltas).contains(expected), "{deltas:?}");
    }
    let imputations = refused(SensitivitySettings { imputations: 1, ..small() });
    assert_eq!(imputations, "sensitivity.imputations is 1, expected a whole number from 2 to 10000");
    let replicates = refused(SensitivitySettings { replicates: 1_000_001, ..small() });
    assert_eq!(replicates, "sensitivity.replicates is 1000001, expected a whole number from 0 to 1000000");
    let strata = refused(SensitivitySettings { model: ImputationModel::RiskStrata { n: 1 }, ..small() });
    assert_eq!(strata, "sensitivity.model.risk-strata.n is 1, expected a whole number from 2 to 100");
    let end = |end| refused(SensitivitySettings { administrative: Some(end), ..small() });
    assert_eq!(end(0.0), "sensitivity.administrative is 0, expected a finite number > 0");
    let last = cohort.observed.time().iter().copied().fold(0.0, f64::max);
    let after =
        format!("sensitivity.administrative is 2 with a last observed time of {last}, expected a time up to it");
    assert_eq!(end(2.0), after);
    let group = |attribute: &str, level: &str| {
        let group = Some(TiltedGroup { attribute: attribute.to_owned(), level: level.to_owned() });
        refused(SensitivitySettings { group, ..small() })
    };
    assert_eq!(group("sex", "a"), "no attribute is called \"sex\", expected one of: group");
    assert_eq!(group("group", "c"), "attribute \"group\" has no level \"c\", expected one of: a, b");
    let without_events = Outcomes::new(vec![1.0; 60], vec![false; 60]).unwrap();
    let cohort =
        Cohort { observed: without_events, ..Design { n: 60, dropout: 0.8, delta: [0.0; 2], noise: [0.5; 2] }.draw(5) };
    let evaluation = EvaluationSettings { horizon: None, times: None, ..settings(&["ibs"]) };
    assert!(matches!(analyse(&cohort, &evaluation, &small()), Err(MetricError::NoEvents { n: 60 })));
}

#[test]
fn settings_are_read_from_a_file_and_refuse_other_keys() {
    let read = |text: &str| serde_json::from_str::<SensitivitySettings>(text);
    let found =
        read(r#"{"deltas": [-1, 0], "group": {"attribute": "sex", "level": "F"}, "model": {"risk-strata": {"n": 4}}}"#);
    let found = found.unwrap();
    assert_eq!((found.deltas, found.model), (vec![-1.0, 0.0], ImputationModel::RiskStrata { n: 4 }));
    assert_eq!(found.imputations, 20);
    assert_eq!(read(r#"{"model": "kaplan-meier"}"#).unwrap().model, ImputationModel::KaplanMeier);
    assert!(read(r#"{"delta": [0]}"#).is_err() && read(r#"{"group": {"atribute": "sex"}}"#).is_err());
}
