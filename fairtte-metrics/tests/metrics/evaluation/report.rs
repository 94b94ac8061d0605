//! The report as a whole: groups, intervals, undefined values, reproducibility.

use super::cohort::{Cohort, N_COLUMNS, cohort, groups, halves, settings};
use fairtte_metrics::estimators::KaplanMeier;
use fairtte_metrics::evaluation::Estimate;
use fairtte_metrics::rank::{TiedPredictions, concordance_td};
use fairtte_metrics::resampling::{IntervalMethod, Resample};
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationReport, EvaluationSettings, MetricError, Outcomes, Reading, SubjectId,
    SurvivalCurves, evaluate,
};

use ndarray::Array2;

fn json(report: &EvaluationReport) -> String {
    serde_json::to_string_pretty(report).unwrap()
}

#[test]
fn one_group_that_holds_everybody_equals_the_whole_in_value_interval_and_curves() {
    let cohort = cohort(120, 1);
    let everybody = groups("site", &["only"], |_| Some(0), cohort.n());
    let report = cohort.evaluate(&[everybody], &settings(50));
    assert_eq!(report.metrics.len(), 4);
    for metric in &report.metrics {
        assert_eq!(metric.overall, metric.attributes[0].groups[0].estimate, "{}", metric.name);
        assert!(metric.overall.value.is_some() && metric.overall.lower < metric.overall.upper, "{}", metric.name);
        let gap = &metric.attributes[0].gap;
        assert_eq!(gap.value, None);
        assert!(gap.undefined.as_ref().unwrap().contains("1 of 1 groups with a value, expected at least 2"));
    }
    assert_eq!(report.curves[0].kaplan_meier, report.curves[1].kaplan_meier);
    assert_eq!(report.curves[0].predicted, report.curves[1].predicted);
}

#[test]
fn the_number_of_threads_changes_no_byte_and_the_seed_changes_intervals_only() {
    let cohort = cohort(80, 2);
    let run = |threads: usize, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let settings = EvaluationSettings { seed, ..settings(60) };
        pool.install(|| cohort.evaluate(&[halves(cohort.n())], &settings))
    };
    assert_eq!(json(&run(1, 5)), json(&run(3, 5)));
    let (a, b) = (run(2, 5), run(2, 6));
    assert_eq!(a.metrics[0].overall.value, b.metrics[0].overall.value);
    assert_ne!(a.metrics[0].overall.lower, b.metrics[0].overall.lower);
}

#[test]
fn the_order_of_samples_changes_nothing_when_subjects_are_drawn() {
    let cohort = cohort(90, 3);
    let n = cohort.n();
    let order: Vec<usize> = (0..n).map(|k| (k * 37 + 11) % n).collect();
    let sex = halves(n);
    let moved = groups("sex", &["F", "M"], |row| Some(u32::from(order[row] % 2 == 1)), n);
    let (a, b) = (cohort.evaluate(&[sex], &settings(40)), cohort.select(&order).evaluate(&[moved], &settings(40)));
    let close = |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() < 1e-12;
    let same = |a: &Estimate, b: &Estimate| {
        close(a.value, b.value) && close(a.lower, b.lower) && close(a.upper, b.upper) && a.n_events == b.n_events
    };
    for (a, b) in a.metrics.iter().zip(&b.metrics) {
        assert!(same(&a.overall, &b.overall), "{}", a.name);
        let (a, b) = (&a.attributes[0], &b.attributes[0]);
        assert!(same(&a.gap, &b.gap) && same(&a.worst, &b.worst) && same(&a.equity_scaling, &b.equity_scaling));
        assert_eq!(a.worst_group, b.worst_group);
    }
}

#[test]
fn copies_of_a_sample_do_not_make_a_subject_interval_narrower() {
    let cohort = cohort(60, 4);
    let four_each: Vec<usize> = (0..4 * cohort.n()).map(|row| row / 4).collect();
    let copied = cohort.select(&four_each);
    // A fixed time window: quantiles of event times move a little when every time is written four times.
    let times = Some((1..=10).map(|k| 0.2 * f64::from(k)).collect());
    let settings = EvaluationSettings { times, ..settings(200) };
    let (once, by_subject) = (cohort.evaluate(&[], &settings), copied.evaluate(&[], &settings));
    let by_sample = copied.evaluate(&[], &EvaluationSettings { resample: Resample::Sample, ..settings });
    assert_eq!((by_subject.n, by_subject.n_subjects), (240, 60));
    let width = |estimate: &Estimate| estimate.upper.unwrap() - estimate.lower.unwrap();
    for ((once, by_subject), by_sample) in once.metrics.iter().zip(&by_subject.metrics).zip(&by_sample.metrics) {
        assert!((width(&once.overall) - width(&by_subject.overall)).abs() < 1e-12, "{}", once.name);
        assert!(width(&by_sample.overall) < 0.7 * width(&by_subject.overall), "{}", once.name);
    }
}

#[test]
fn groups_too_small_to_score_stay_visible_with_their_reason() {
    let mut cohort = cohort(60, 5);
    let event = (0..60).map(|row| row % 3 != 0 && cohort.outcomes.event()[row]).collect();
    cohort.outcomes = Outcomes::new(cohort.outcomes.time().to_vec(), event).unwrap();
    // Level 0: all censored; level 1: one member; level 2 and 3: the rest; level 4: no sample; one missing.
    let level_of = |row: usize| match row {
        1 => Some(1),
        2 => None,
        _ if row.is_multiple_of(3) => Some(0),
        _ => Some(2 + u32::from(row.is_multiple_of(2))),
    };
    let race = groups("race", &["a", "b", "c", "d", "e"], level_of, 60);
    let report = cohort.evaluate(&[race], &settings(30));
    let c_td = &report.metric("c_td_antolini_strict").unwrap().attributes[0];
    let reason = |level: usize| c_td.groups[level].estimate.undefined.clone().unwrap();
    assert_eq!(reason(0), "none of 20 samples has an observed event");
    assert!(reason(1).starts_with("no"), "{}", reason(1));
    assert_eq!(reason(4), "no samples, expected at least one");
    assert_eq!((c_td.n_missing, c_td.groups[1].estimate.n, c_td.groups[4].estimate.n), (1, 1, 0));
    assert_eq!(c_td.groups[0].estimate.undefined_replicates, 30);
    assert!(c_td.gap.value.is_some() && c_td.worst_group.is_some());
    assert_eq!(c_td.gap.n, c_td.groups[2].estimate.n + c_td.groups[3].estimate.n);
    // The Brier score needs no pair: it is defined in every group with a sample.
    let ibs = &report.metric("ibs").unwrap().attributes[0];
    assert!(ibs.groups[..4].iter().all(|group| group.estimate.value.is_some()));
    assert_eq!(report.curves.len(), 6);
    assert!(report.curves[5].kaplan_meier.times.is_empty() && report.curves[5].predicted.times.is_empty());
}

#[test]
fn replicates_without_a_value_are_counted_also_in_the_gap() {
    let cohort = cohort(40, 6);
    let sorted_event = (0..40).filter(|&row| cohort.outcomes.event()[row]).collect::<Vec<_>>();
    // A group of three with a single event: in many replicates it is not drawn.
    let lone = [sorted_event[0], (0..40).find(|&row| !cohort.outcomes.event()[row]).unwrap(), sorted_event[1]];
    let mut event = cohort.outcomes.event().to_vec();
    event[lone[2]] = false;
    let mut time = cohort.outcomes.time().to_vec();
    time[lone[0]] = 0.1;
    let cohort = Cohort { outcomes: Outcomes::new(time, event).unwrap(), ..cohort };
    let site = groups("site", &["small", "large"], |row| Some(u32::from(!lone.contains(&row))), 40);
    let report = cohort.evaluate(&[site], &settings(300));
    let site = &report.metrics[0].attributes[0];
    let (small, large) = (&site.groups[0].estimate, &site.groups[1].estimate);
    // The event is missing from a replicate with probability (1 - 1/40)^40 = 0.363, its partners more rarely.
    assert!((90..=160).contains(&small.undefined_replicates), "{}", small.undefined_replicates);
    assert_eq!(large.undefined_replicates, 0);
    assert_eq!(site.gap.undefined_replicates, small.undefined_replicates);
    assert_eq!(site.equity_scaling.undefined_replicates, small.undefined_replicates);
}

#[test]
fn a_sample_without_events_gives_a_report_of_reasons() {
    let cohort = cohort(10, 7);
    let outcomes = Outcomes::new(cohort.outcomes.time().to_vec(), vec![false; 10]).unwrap();
    let report = Cohort { outcomes, ..cohort }.evaluate(&[halves(10)], &settings(10));
    for metric in &report.metrics {
        assert_eq!(metric.overall.value, None);
        assert_eq!(metric.overall.undefined.as_deref(), Some("none of 10 samples has an observed event"));
        let scaled = metric.attributes[0].equity_scaling.undefined.as_ref().unwrap();
        assert!(scaled.starts_with("the overall value is undefined"));
    }
    assert_eq!((report.times, report.times_undefined.is_some()), (None, true));
}

#[test]
fn the_report_survives_json_and_has_the_documented_values() {
    let cohort = cohort(300, 8);
    let n = cohort.n();
    let report = cohort.evaluate(&[halves(n)], &settings(20));
    let read: EvaluationReport = serde_json::from_str(&json(&report)).unwrap();
    assert_eq!(json(&read), json(&report));
    let strict = report.metric("c_td_antolini_strict").unwrap();
    let direct = concordance_td(&cohort.outcomes, &cohort.curves, Reading::default(), TiedPredictions::Strict).unwrap();
    assert_eq!(strict.overall.value, Some(direct.value));
    let window = report.times.unwrap();
    assert_eq!((window.times.len(), report.reading.as_str()), (20, "refined x10"));
    // The curve is thinned to its steps but stays exact at every time it keeps.
    let (plotted, fitted) = (&report.curves[0].kaplan_meier, KaplanMeier::fit(&cohort.outcomes).unwrap());
    assert!(plotted.times.len() <= 201);
    assert!(plotted.times.iter().zip(&plotted.survival).all(|(t, s)| (fitted.at(*t) - s).abs() < 1e-15));
    assert_eq!(report.curves[0].predicted.times.len(), N_COLUMNS);
}

#[test]
fn no_replicates_means_no_interval() {
    let report = cohort(50, 9).evaluate(&[], &settings(0));
    let overall = &report.metrics[0].overall;
    assert_eq!((overall.lower, overall.upper, overall.undefined_replicates), (None, None, 0));
    assert!(overall.value.is_some());
}

#[test]
fn times_outside_the_support_leave_concordance_defined() {
    let cohort = cohort(50, 10);
    let settings = EvaluationSettings { times: Some(vec![1.0, 1e6]), ..settings(0) };
    let report = cohort.evaluate(&[], &settings);
    assert!(report.metric("c_td_half").unwrap().overall.value.is_some());
    for name in ["auc_td", "ibs"] {
        let reason = report.metric(name).unwrap().overall.undefined.clone().unwrap();
        assert!(reason.starts_with("evaluation time 1000000 lies outside ["), "{reason}");
    }
}

#[test]
fn settings_are_checked_and_unknown_keys_are_refused() {
    let cohort = cohort(10, 11);
    let run = |settings: &EvaluationSettings| {
        evaluate(&cohort.subjects, &cohort.outcomes, &cohort.curves, &cohort.censoring, &[], settings)
    };
    let bad = [
        EvaluationSettings { level: 1.0, ..settings(1) },
        EvaluationSettings { n_times: 1, ..settings(1) },
        EvaluationSettings { lower_quantile: 0.9, ..settings(1) },
        EvaluationSettings { upper_quantile: 1.1, ..settings(1) },
        EvaluationSettings { lower_quantile: f64::NAN, ..settings(1) },
        EvaluationSettings { reading: Reading::Refined { factor: 0 }, ..settings(1) },
    ];
    for settings in bad {
        assert!(matches!(run(&settings), Err(MetricError::InvalidSetting { .. })), "{settings:?}");
    }
    let unsorted = EvaluationSettings { times: Some(vec![2.0, 1.0]), ..settings(1) };
    assert!(matches!(run(&unsorted), Err(MetricError::InvalidGrid { index: 1, .. })));
    let parsed: EvaluationSettings = serde_json::from_str(r#"{"n-times": 7, "resample": "sample"}"#).unwrap();
    let expected = EvaluationSettings { n_times: 7, resample: Resample::Sample, ..EvaluationSettings::default() };
    assert_eq!(parsed, expected);
    let misspelt = serde_json::from_str::<EvaluationSettings>(r#"{"n_times": 7}"#).unwrap_err();
    assert!(misspelt.to_string().contains("unknown field `n_times`"));
}

#[test]
fn arguments_of_different_lengths_are_refused() {
    let cohort = cohort(10, 12);
    let Cohort { subjects, outcomes, curves, censoring } = &cohort;
    let short = |what: &str, result: Result<EvaluationReport, MetricError>| match result {
        Err(MetricError::LengthMismatch { what: found, .. }) => assert_eq!(found, what),
        other => panic!("{what}: {other:?}"),
    };
    let settings = settings(0);
    short("subjects", evaluate(&subjects[..9], outcomes, curves, censoring, &[], &settings));
    short("survival curves", evaluate(subjects, outcomes, &curves.select(&[0]), censoring, &[], &settings));
    short("group memberships", evaluate(subjects, outcomes, curves, censoring, &[halves(9)], &settings));
}

#[test]
fn replicates_that_lack_an_evaluation_time_are_counted() {
    // The first evaluation time has one case: a replicate that does not draw it averages over the other time only.
    let (time, event) = (vec![1.0, 2.0, 2.0, 3.0, 3.0, 4.0], vec![true, true, true, false, true, false]);
    let outcomes = Outcomes::new(time, event).unwrap();
    let survival = [0.1, 0.3, 0.2, 0.6, 0.5, 0.9];
    let survival = Array2::from_shape_fn((6, 2), |(row, _)| survival[row]);
    let curves = SurvivalCurves::new(vec![1.0, 2.5], survival).unwrap();
    let subjects: Vec<SubjectId> = (0..6).map(|row| SubjectId::new(row.to_string())).collect();
    let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
    let settings = EvaluationSettings { times: Some(vec![1.0, 2.5]), ..settings(400) };
    let report = evaluate(&subjects, &outcomes, &curves, &censoring, &[], &settings).unwrap();
    let auc = &report.metric("auc_td").unwrap().overall;
    // (5/6)^6 = 33 % of the replicates do not draw a given subject of six.
    assert!((90..175).contains(&auc.partial_replicates), "{auc:?}");
    assert_eq!((auc.undefined_times, report.metric("ibs").unwrap().overall.partial_replicates), (0, 0));
}

#[test]
fn the_interval_of_a_gap_agrees_with_those_of_the_differences() {
    let cohort = cohort(240, 9);
    for interval in [IntervalMethod::Percentile, IntervalMethod::Bca] {
        let settings = EvaluationSettings { interval, min_events: 0, ..settings(200) };
        let site = groups("site", &["a", "b", "c"], |row| Some(u32::try_from(row % 3).unwrap()), cohort.n());
        let report = cohort.evaluate(&[halves(cohort.n()), site], &settings);
        for metric in &report.metrics {
            let [two, three] = &metric.attributes[..] else { panic!("two attributes") };
            let difference = &two.differences[0].difference;
            let (lower, upper) = (difference.lower.unwrap(), difference.upper.unwrap());
            let low = if lower <= 0.0 && upper >= 0.0 { 0.0 } else { lower.abs().min(upper.abs()) };
            let expected = (Some(low), Some(lower.abs().max(upper.abs())));
            assert_eq!((two.gap.lower, two.gap.upper), expected, "{}", metric.name);
            // Equal groups: a simultaneous interval is wider than that of any pair, and contains 0.
            assert_eq!(three.gap.lower, Some(0.0), "{}", metric.name);
            for pair in &three.differences {
                assert!(three.gap.upper.unwrap() >= pair.difference.value.unwrap().abs(), "{}", metric.name);
            }
            let (low, high) = (three.worst.lower.unwrap(), three.worst.upper.unwrap());
            assert!(low <= three.worst.value.unwrap() && three.worst.value.unwrap() <= high, "{}", metric.name);
            assert!(three.ratio.upper.unwrap() <= 1.0 && three.ratio.lower.unwrap() < three.ratio.value.unwrap());
        }
    }
}
