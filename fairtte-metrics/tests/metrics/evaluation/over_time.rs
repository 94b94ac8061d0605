//! AUC and Brier score over time, and survival by third of the predicted risk.

use fairtte_metrics::estimators::KaplanMeier;
use fairtte_metrics::{EvaluationSettings, Reading};

use super::cohort::{cohort, groups, halves, settings};

#[test]
fn values_and_intervals_over_time_are_those_of_the_metrics_at_these_times() {
    let cohort = cohort(160, 41);
    let asked = EvaluationSettings { over_time: 6, ..settings(80) };
    let sex = [halves(160)];
    let report = cohort.evaluate(&sex, &asked);
    let window = report.times.as_ref().unwrap();
    assert_eq!(report.over_time.iter().map(|found| found.metric.as_str()).collect::<Vec<_>>(), ["auc", "brier"]);
    for found in &report.over_time {
        assert_eq!((found.times.len(), found.times[0], found.times[5]), (6, window.lower, window.upper));
        assert_eq!((found.higher_is_better, found.replicates), (found.metric == "auc", 80));
        let names = found.times.iter().map(|time| format!("{}@{time}", found.metric)).collect();
        let at_times = cohort.evaluate(&sex, &EvaluationSettings { metrics: names, ..asked.clone() });
        for (k, metric) in at_times.metrics.iter().enumerate() {
            let groups = metric.attributes[0].groups.iter().map(|group| &group.estimate);
            for (curve, estimate) in found.curves.iter().zip(std::iter::once(&metric.overall).chain(groups)) {
                assert!(estimate.value.is_some(), "{metric:?}");
                assert_eq!(
                    (curve.value[k], curve.lower[k], curve.upper[k]),
                    (estimate.value, estimate.lower, estimate.upper)
                );
                assert_eq!((curve.n, curve.n_events), (estimate.n, estimate.n_events));
            }
        }
        let names: Vec<_> =
            found.curves.iter().map(|curve| (curve.attribute.as_deref(), curve.level.as_deref())).collect();
        assert_eq!(names, [(None, None), (Some("sex"), Some("F")), (Some("sex"), Some("M"))]);
    }
    let many = cohort.evaluate(&[], &EvaluationSettings { replicates: 300, ..asked.clone() });
    assert_eq!(many.over_time[0].replicates, 200);
    assert!(cohort.evaluate(&sex, &EvaluationSettings { over_time: 0, ..asked }).over_time.is_empty());
}

#[test]
fn a_group_without_events_has_no_auc_over_time_and_the_others_have() {
    let cohort = cohort(120, 42);
    let censored = |row: usize| Some(u32::from(!cohort.outcomes.event()[row]));
    let report = cohort.evaluate(&[groups("seen", &["event", "censored"], censored, 120)], &settings(10));
    let [_, event, censored] = &report.over_time[0].curves[..] else { panic!("three curves") };
    assert!(censored.value.iter().all(Option::is_none) && censored.n > 0 && censored.n_events == 0);
    assert!(event.value.iter().any(Option::is_some));
}

#[test]
fn the_thirds_are_those_of_the_whole_sample_and_each_has_its_own_curves() {
    let cohort = cohort(150, 43);
    let asked = EvaluationSettings { horizon: Some(1.0), reading: Reading::Step, ..settings(0) };
    let report = cohort.evaluate(&[halves(150)], &asked);
    let risk = |row: usize| 1.0 - cohort.curves.at(row, 1.0, Reading::Step);
    let mut order: Vec<usize> = (0..150).collect();
    order.sort_by(|a, b| risk(*a).total_cmp(&risk(*b)));
    let all = &report.risk_tertiles[0].tertiles;
    for (third, rows) in order.chunks(50).enumerate() {
        let mut rows = rows.to_vec();
        rows.sort_unstable();
        let outcomes = cohort.outcomes.select(&rows);
        assert_eq!((all[third].n, all[third].n_events), (50, outcomes.n_events()), "{third}");
        let last = *KaplanMeier::fit(&outcomes).unwrap().survival().last().unwrap();
        assert_eq!(all[third].kaplan_meier.survival.last(), Some(&last));
        assert_eq!(all[third].predicted.survival, cohort.curves.select(&rows).mean().unwrap());
        assert!(all[third].above.is_none_or(|above| rows.iter().all(|row| risk(*row) > above)));
        assert!(all[third].at_most.is_none_or(|at_most| rows.iter().all(|row| risk(*row) <= at_most)));
        // The thirds of women and men together are those of all: the cuts are the same.
        let of_groups: usize = report.risk_tertiles[1..].iter().map(|group| group.tertiles[third].n).sum();
        assert_eq!(of_groups, 50);
    }
    assert_eq!(report.risk_tertiles[2].level.as_deref(), Some("M"));
    assert_eq!(all.iter().map(|third| third.name.as_str()).collect::<Vec<_>>(), ["low", "middle", "high"]);
}

#[test]
fn predictions_without_thirds_have_none() {
    let mut cohort = cohort(60, 44);
    cohort.curves = cohort.curves.select(&[0; 60]);
    assert!(cohort.evaluate(&[], &settings(0)).risk_tertiles.is_empty());
}
