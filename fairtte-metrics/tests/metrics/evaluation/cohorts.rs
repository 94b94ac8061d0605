//! One model in two cohorts: unpaired differences, common times, and groups that only one cohort has.

use approx::assert_abs_diff_eq;
use fairtte_metrics::evaluation::{CohortReports, InBoth, ScoredCohort, evaluate_cohorts};
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationSettings, GroupId, Groups, Outcomes, SubjectId, SurvivalCurves, seeds,
};
use ndarray::Array2;
use rand::RngExt as _;

use super::cohort::{Cohort, cohort, groups, halves, settings};

fn scored<'a>(cohort: &'a Cohort, groups: &'a [Groups]) -> ScoredCohort<'a> {
    let Cohort { subjects, outcomes, curves, censoring } = cohort;
    ScoredCohort { subjects, outcomes, curves, censoring, groups }
}

/// Everybody is followed beyond time 1; with probability `risk` the event happens before it, and `predicted` is predicted.
fn complete(n: usize, risk: f64, predicted: f64, seed: u64) -> Cohort {
    let mut rng = seeds::stream(seed, "complete cohort", &[]);
    let event: Vec<bool> = (0..n).map(|_| rng.random::<f64>() < risk).collect();
    let time = event.iter().enumerate().map(|(k, event)| if *event { 0.5 } else { 2.0 } + k as f64 * 1e-6).collect();
    let outcomes = Outcomes::new(time, event.iter().enumerate().map(|(k, e)| *e || k % 2 == 0).collect()).unwrap();
    Cohort {
        subjects: (0..n).map(|row| SubjectId::new(format!("p{row:04}"))).collect(),
        censoring: CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap(),
        outcomes,
        curves: SurvivalCurves::new(
            vec![0.0, 1.0, 3.0],
            Array2::from_shape_fn((n, 3), |(_, k)| [1.0, 1.0 - predicted, 0.0][k]),
        )
        .unwrap(),
    }
}

fn brier(replicates: usize) -> EvaluationSettings {
    let metrics = vec!["brier@1".to_owned()];
    EvaluationSettings { replicates, metrics, min_events: 0, ..EvaluationSettings::default() }
}

#[test]
fn the_difference_of_two_brier_scores_has_the_standard_error_of_two_means() {
    let (internal, external) = (complete(400, 0.3, 0.2, 1), complete(150, 0.5, 0.2, 2));
    let found = evaluate_cohorts(&scored(&internal, &[]), &scored(&external, &[]), &brier(4_000)).unwrap();
    // A score is 0.64 with the event and 0.04 without: 0.04 + 0.6 share, variance 0.36 share (1 - share).
    let of = |cohort: &Cohort| {
        let n_events = cohort.outcomes.time().iter().filter(|time| **time < 1.0).count();
        let share = n_events as f64 / cohort.n() as f64;
        (0.04 + 0.6 * share, 0.36 * share * (1.0 - share) / cohort.n() as f64)
    };
    let ((own, own_variance), (other, variance)) = (of(&internal), of(&external));
    let both = &found.metrics[0].overall;
    assert_abs_diff_eq!(both.internal.value.unwrap(), own, epsilon = 1e-12);
    assert_abs_diff_eq!(both.difference.value.unwrap(), other - own, epsilon = 1e-12);
    let error = (own_variance + variance).sqrt();
    assert_abs_diff_eq!(both.difference.lower.unwrap(), other - own - 1.96 * error, epsilon = 0.12 * error);
    assert_abs_diff_eq!(both.difference.upper.unwrap(), other - own + 1.96 * error, epsilon = 0.12 * error);
}

#[test]
fn a_cohort_differs_from_itself_by_0_within_an_interval() {
    let one = cohort(200, 3);
    let sexes = [halves(200)];
    let settings = EvaluationSettings { metrics: vec!["c-td".into(), "ibs".into(), "ici".into()], ..settings(200) };
    let found = evaluate_cohorts(&scored(&one, &sexes), &scored(&one, &sexes), &settings).unwrap();
    assert_eq!(found.internal, found.external);
    for metric in &found.metrics {
        let of_sex = &metric.attributes[0];
        let groups = of_sex.groups.iter().map(|(_, both)| &both.difference);
        let changes = of_sex.changes.iter().map(|change| &change.difference);
        let all = [&metric.overall.difference, &of_sex.gap.difference];
        for difference in all.into_iter().chain(groups).chain(changes) {
            assert_eq!(difference.value, Some(0.0), "{}", metric.name);
            let (lower, upper) = (difference.lower.unwrap(), difference.upper.unwrap());
            assert!(lower < 0.0 && upper > 0.0, "{}: {lower} {upper}", metric.name);
            assert!(difference.p_value.unwrap() > 0.8 && difference.p_holm.is_none_or(|p| p > 0.9), "{difference:?}");
        }
    }
}

#[test]
fn every_side_has_the_values_and_intervals_of_its_own_evaluation() {
    let (internal, external) = (cohort(150, 4), cohort(90, 5));
    let (own, other) = ([halves(150)], [halves(90)]);
    let settings = EvaluationSettings { metrics: vec!["c-td".into()], permutations: 0, ..settings(60) };
    let found = evaluate_cohorts(&scored(&internal, &own), &scored(&external, &other), &settings).unwrap();
    let expected = external.evaluate(&other, &settings);
    // C^td has no evaluation times.
    assert_eq!(found.external.metrics, expected.metrics);
    assert_eq!(found.metrics[0].attributes[0].gap.external, expected.metrics[0].attributes[0].gap);
    assert_eq!(
        found.metrics[0].attributes[0].groups[1].1.external,
        expected.metrics[0].attributes[0].groups[1].estimate
    );
}

#[test]
fn both_are_evaluated_at_the_times_that_both_cover() {
    let (internal, mut external) = (cohort(200, 6), cohort(200, 7));
    let rows: Vec<usize> = (0..200).filter(|row| external.outcomes.time()[*row] < 1.5).collect();
    external = external.select(&rows);
    let found = evaluate_cohorts(&scored(&internal, &[]), &scored(&external, &[]), &settings(20)).unwrap();
    let (own, other) = (found.internal_times.unwrap(), found.external_times.unwrap());
    assert!(other.upper < own.upper, "{} {}", other.upper, own.upper);
    let times = found.internal.times.unwrap();
    assert_eq!(found.external.times, Some(times.clone()));
    assert_eq!((times.lower, times.upper), (own.lower.max(other.lower), other.upper));
    assert_eq!(times.times.len(), 20);
    assert!(
        times.rule.starts_with("20 equally spaced times that both cohorts cover; internal: 20 equally"),
        "{}",
        times.rule
    );
    assert_eq!(found.internal.horizon, found.external.horizon);
    let mut events: Vec<f64> =
        (0..200).filter(|row| internal.outcomes.event()[*row]).map(|row| internal.outcomes.time()[row]).collect();
    events.sort_by(f64::total_cmp);
    let k = events.len();
    let median = f64::midpoint(events[(k - 1) / 2], events[k / 2]);
    assert_abs_diff_eq!(found.internal.horizon.unwrap(), median.clamp(times.lower, times.upper), epsilon = 1e-12);

    let late = EvaluationSettings { times: Some(vec![0.5, own.upper]), ..settings(20) };
    let refused = evaluate_cohorts(&scored(&internal, &[]), &scored(&external, &[]), &late).unwrap();
    assert!(refused.internal.times_undefined.is_some() && refused.external.times_undefined.is_some());
}

#[test]
fn levels_are_compared_by_name_and_need_events_in_both_cohorts() {
    let (internal, external) = (cohort(300, 8), cohort(200, 9));
    let own = [groups("race", &["A", "B", "C"], |row| u32::try_from(row % 3).ok(), 300), halves(300)];
    // The levels in another order, one instead of another, and one with few events.
    let level = |row: usize| Some(if row < 20 { 0 } else { 1 + u32::from(row % 2 == 1) });
    let other = [groups("race", &["B", "D", "A"], level, 200)];
    let settings = EvaluationSettings { metrics: vec!["c-td".into()], min_events: 30, ..settings(100) };
    let found = evaluate_cohorts(&scored(&internal, &own), &scored(&external, &other), &settings).unwrap();
    let of_metric = &found.metrics[0].attributes;
    assert_eq!(of_metric.iter().map(|a| a.attribute.as_str()).collect::<Vec<_>>(), ["race"], "sex is not in both");
    let race = &of_metric[0];
    assert_eq!(race.groups.iter().map(|(level, _)| level.as_str()).collect::<Vec<_>>(), ["A", "B", "C", "D"]);
    let group = |level: usize| -> &InBoth { &race.groups[level].1 };
    let by_name = |report: &fairtte_metrics::EvaluationReport, level: usize| {
        report.metrics[0].attributes[0].groups[level].estimate.clone()
    };
    assert_eq!(group(0).internal, by_name(&found.internal, 0));
    assert_eq!(group(0).external, by_name(&found.external, 2));
    let of_a = group(0).external.value.unwrap() - group(0).internal.value.unwrap();
    assert_eq!(group(0).difference.value, Some(of_a));
    assert!(group(0).difference.p_value.is_some() && group(1).difference.p_value.is_none());
    let few = group(1).difference.undefined.as_deref().unwrap();
    assert!(few.contains("fewer than min-events 30"), "{few}");
    assert_eq!(group(2).difference.undefined.as_deref(), Some("there is no group \"C\" in the external cohort"));
    assert_eq!(group(3).internal.undefined.as_deref(), Some("there is no group \"D\" in the internal cohort"));
    assert_eq!(race.compared, ["A"]);
    assert_eq!((race.gap.difference.value, race.gap.internal.value), (None, None), "one group has no gap");
    assert_eq!(race.changes.len(), 1, "A and B have a value in both");
    assert!(race.changes[0].difference.value.is_some() && race.changes[0].difference.p_value.is_none());
}

#[test]
fn a_change_is_compared_with_that_of_another_group_and_p_values_are_adjusted_by_family() {
    let (internal, external) = (cohort(300, 10), cohort(240, 11));
    let (own, other) = ([halves(300)], [halves(240)]);
    let settings = EvaluationSettings { metrics: vec!["c-td".into()], ..settings(300) };
    let found = evaluate_cohorts(&scored(&internal, &own), &scored(&external, &other), &settings).unwrap();
    let metric = &found.metrics[0];
    let sex = &metric.attributes[0];
    let change = |level: usize| sex.groups[level].1.difference.value.unwrap();
    assert_abs_diff_eq!(sex.changes[0].difference.value.unwrap(), change(0) - change(1), epsilon = 1e-12);
    assert_eq!(sex.changes[0].difference.p_holm, None, "a single one");
    let four = [&metric.overall, &sex.groups[0].1, &sex.groups[1].1, &sex.gap];
    let smallest = four.iter().map(|both| both.difference.p_value.unwrap()).fold(1.0, f64::min);
    let adjusted = four.iter().map(|both| both.difference.p_holm.unwrap()).fold(1.0, f64::min);
    assert_abs_diff_eq!(adjusted, (4.0 * smallest).min(1.0), epsilon = 1e-12);
    // With a reference, each other group minus it.
    let reference = [("sex".to_owned(), "F".to_owned())].into();
    let settings = EvaluationSettings { reference, ..settings };
    let found = evaluate_cohorts(&scored(&internal, &own), &scored(&external, &other), &settings).unwrap();
    let changes = &found.metrics[0].attributes[0].changes;
    assert_eq!((changes[0].first.as_str(), changes[0].second.as_str()), ("M", "F"));
}

/// Differences of cohorts of 300 and 60 subjects in which neither risks nor groups differ.
fn null(trial: u64, settings: &EvaluationSettings) -> CohortReports {
    let (internal, external) = (complete(300, 0.4, 0.3, 2 * trial), complete(60, 0.4, 0.3, 2 * trial + 1));
    let level = |row: usize| u32::try_from(row % 3).ok().map(GroupId);
    let of = |n: usize| {
        [Groups::new("race", ["A", "B", "C"].map(str::to_owned).into(), (0..n).map(level).collect()).unwrap()]
    };
    evaluate_cohorts(&scored(&internal, &of(300)), &scored(&external, &of(60)), settings).unwrap()
}

/// The gap of the small cohort is larger by chance alone, in about 9 of 10 trials, and must not be called so.
#[test]
fn a_small_external_cohort_does_not_seem_less_fair() {
    let settings = EvaluationSettings { seed: 5, ..brier(200) };
    let (mut larger, mut gap, mut overall, mut change) = (0, 0, 0, 0);
    let trials = 200;
    for trial in 0..trials {
        let found = null(trial, &settings);
        let metric = &found.metrics[0];
        let race = &metric.attributes[0];
        let is_small = |p: Option<f64>| usize::from(p.unwrap() < 0.05);
        larger += usize::from(race.gap.difference.value.unwrap() > 0.0);
        gap += is_small(race.gap.difference.p_value);
        overall += is_small(metric.overall.difference.p_value);
        change += is_small(race.changes[0].difference.p_value);
        for difference in [&race.gap.difference, &metric.overall.difference] {
            let excludes = difference.lower.unwrap() > 0.0 || difference.upper.unwrap() < 0.0;
            assert_eq!(excludes, difference.p_value.unwrap() < 0.05, "{difference:?}");
        }
    }
    let seen = format!("{trials} trials: gap larger {larger}; p < 0.05: gap {gap}, overall {overall}, change {change}");
    assert!(larger > 140, "{seen}");
    // 10 of 200 are expected at most; groups of 20 subjects make intervals a little narrow.
    assert!(gap <= 10, "{gap}");
    assert!((3..=24).contains(&overall) && (3..=28).contains(&change), "{overall} {change}");
}
