//! Metrics by name, groups with few events, and scores that censoring weights make senseless.

use fairtte_metrics::estimators::KaplanMeier;
use fairtte_metrics::evaluation::{CAUTION_OF_DISTANCES, GroupDifference, Metric, RiskOfCurve, built_in_metrics};
use fairtte_metrics::resampling::IntervalMethod;
use fairtte_metrics::scores::kaplan_meier_curves;
use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationSettings, GroupId, Groups, Outcomes, Reading, SubjectId, SurvivalCurves,
    evaluate,
};

use super::cohort::{Cohort, cohort, groups, halves, settings};

fn with(metrics: &[&str], min_events: usize) -> EvaluationSettings {
    let metrics = metrics.iter().map(|name| (*name).to_owned()).collect();
    EvaluationSettings { metrics, min_events, ..settings(60) }
}

#[test]
fn every_built_in_metric_has_a_value_an_interval_and_a_gap() {
    let cohort = cohort(200, 21);
    // Those of decisions at a threshold have tests of their own.
    let names: Vec<&str> = built_in_metrics().filter(|metric| !metric.has_threshold()).map(Metric::name).collect();
    let report = cohort.evaluate(&[halves(200)], &EvaluationSettings { replicates: 20, ..with(&names, 10) });
    assert_eq!(report.metrics.len(), names.len());
    let horizon = report.horizon.unwrap();
    for (metric, name) in report.metrics.iter().zip(names) {
        let value = metric.overall.value.unwrap_or_else(|| panic!("{name}: {:?}", metric.overall.undefined));
        assert!(metric.overall.lower.unwrap() <= metric.overall.upper.unwrap(), "{name}");
        let sex = &metric.attributes[0];
        let (f, m) = (sex.groups[0].estimate.value.unwrap(), sex.groups[1].estimate.value.unwrap());
        assert!((sex.gap.value.unwrap() - (f - m).abs()).abs() < 1e-12, "{name}");
        let worst = match metric.target {
            Some(target) => {
                if (f - target).abs() > (m - target).abs() {
                    f
                } else {
                    m
                }
            }
            None if metric.higher_is_better => f.min(m),
            None => f.max(m),
        };
        assert_eq!(sex.worst.value, Some(worst), "{name}");
        // Losses above 1 have no utility above 0.
        let utility = if metric.higher_is_better { value } else { 1.0 - value };
        assert_eq!(sex.equity_scaling.value.is_some(), metric.target.is_none() && utility >= 0.0, "{name}");
        assert_eq!(
            metric.horizon.is_some(),
            metric.label.ends_with(&format!("({})", (horizon * 1e4).round() / 1e4)),
            "{name}"
        );
        assert!(value.is_finite());
    }
}

#[test]
fn a_time_after_the_name_wins_over_the_horizon() {
    let cohort = cohort(120, 22);
    let at = |settings: &EvaluationSettings, k: usize| cohort.evaluate(&[], settings).metrics[k].overall.value.unwrap();
    let settings = EvaluationSettings { horizon: Some(1.0), replicates: 0, ..with(&["brier", "brier@0.5"], 10) };
    let moved = EvaluationSettings { horizon: Some(0.5), ..settings.clone() };
    assert!((at(&settings, 1) - at(&moved, 1)).abs() <= 0.0);
    assert!((at(&moved, 0) - at(&moved, 1)).abs() <= 0.0);
    assert!((at(&settings, 0) - at(&settings, 1)).abs() > 1e-6);
}

#[test]
fn a_group_with_few_events_keeps_its_value_and_is_in_no_comparison() {
    let cohort = cohort(90, 23);
    let events: Vec<usize> = (0..90).filter(|&row| cohort.outcomes.event()[row]).collect();
    let few = &events[..4];
    let level = |row: usize| Some(if few.contains(&row) { 2 } else { u32::from(row.is_multiple_of(2)) });
    let race = [groups("race", &["a", "b", "rare"], level, 90)];
    let report = cohort.evaluate(&race, &with(&["c-td", "d-calibration"], 10));
    for metric in &report.metrics {
        let race = &metric.attributes[0];
        assert_eq!(race.few_events, ["rare"], "{}", metric.name);
        let values: Vec<f64> = race.groups.iter().map(|group| group.estimate.value.unwrap()).collect();
        assert!((race.gap.value.unwrap() - (values[0] - values[1]).abs()).abs() < 1e-12);
        let all = race.with_all_groups.as_ref().unwrap();
        let (low, high) = (values.iter().copied().fold(1.0, f64::min), values.iter().copied().fold(0.0, f64::max));
        assert!((all.gap.value.unwrap() - (high - low)).abs() < 1e-12);
        assert_eq!(race.gap.n + 4, all.gap.n);
        for difference in &race.differences {
            let with_rare = difference.second == "rare";
            assert_eq!(difference.difference.p_value.is_none(), with_rare);
            let reason = difference.difference.undefined.clone().unwrap_or_default();
            assert_eq!(reason.contains("number of events: 4, fewer than min-events 10"), with_rare, "{reason}");
        }
    }
    let everybody = cohort.evaluate(&race, &with(&["c-td"], 0));
    let race = &everybody.metrics[0].attributes[0];
    // Holm: the smallest of three p values times 3, the next times 2, none below the one before it.
    let mut pairs: Vec<(f64, f64)> = race
        .differences
        .iter()
        .map(|pair| (pair.difference.p_value.unwrap(), pair.difference.p_holm.unwrap()))
        .collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!((pairs[0].1 - (3.0 * pairs[0].0).min(1.0)).abs() < 1e-12, "{pairs:?}");
    assert!((pairs[1].1 - (2.0 * pairs[1].0).max(pairs[0].1).min(1.0)).abs() < 1e-12, "{pairs:?}");
    assert!(race.few_events.is_empty() && race.with_all_groups.is_none());
}

#[test]
fn a_brier_score_above_one_is_refused_with_the_subject_that_carries_it() {
    // 100 of 101 samples of the training part are censored at 1.1: a sample followed longer has a weight of 101.
    let train = (0..101).map(|k| if k == 0 { 5.0 } else { 1.1 }).collect();
    let train = Outcomes::new(train, vec![false; 101]).unwrap();
    let time = (0..30).map(|k| 2.0 + 0.1 * f64::from(k)).collect();
    let outcomes = Outcomes::new(time, (0..30).map(|k| k > 27).collect()).unwrap();
    let flat = cohort(30, 24);
    let curves = flat.curves.clone();
    let certain = ndarray::Array2::from_elem(curves.survival().dim(), 0.0);
    let curves = fairtte_metrics::SurvivalCurves::new(curves.grid().to_vec(), certain).unwrap();
    let censoring = fairtte_metrics::CensoringCurve::fit(&train, fairtte_metrics::CensoringTies::EventsFirst).unwrap();
    let cohort = Cohort { outcomes, curves, censoring, ..flat };
    let settings =
        EvaluationSettings { times: Some(vec![2.1, 2.2, 2.3]), horizon: Some(2.2), ..with(&["ibs", "brier"], 0) };
    let report = cohort.evaluate(&[], &settings);
    for metric in &report.metrics {
        let reason = metric.overall.undefined.clone().unwrap_or_default();
        assert!(metric.overall.value.is_none() && reason.contains("above 1"), "{}: {reason}", metric.name);
        assert!(reason.contains("% of it come from subject"), "{reason}");
    }
}

#[test]
fn with_a_reference_every_other_group_is_compared_with_it_alone() {
    let cohort = cohort(150, 23);
    let membership = (0..150).map(|row| Some(GroupId(row % 3))).collect();
    let site = Groups::new("site", ["a", "b", "c"].map(str::to_owned).to_vec(), membership).unwrap();
    let differences = |settings: &EvaluationSettings| {
        let report = cohort.evaluate(std::slice::from_ref(&site), settings);
        report.metrics[0].attributes[0].differences.clone()
    };
    let pairs =
        |of: &[GroupDifference]| of.iter().map(|pair| (pair.first.clone(), pair.second.clone())).collect::<Vec<_>>();
    let named =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
    let settings = with(&["ibs"], 1);
    let all = differences(&settings);
    assert_eq!(pairs(&all), named(&[("a", "b"), ("a", "c"), ("b", "c")]));
    let to = |attribute: &str, level: &str| EvaluationSettings {
        reference: [(attribute.to_owned(), level.to_owned())].into(),
        ..settings.clone()
    };
    let found = differences(&to("site", "b"));
    assert_eq!(pairs(&found), named(&[("a", "b"), ("c", "b")]));
    assert_eq!(found[0].difference.value, all[0].difference.value);
    assert_eq!(found[1].difference.value.unwrap().to_bits(), (-all[2].difference.value.unwrap()).to_bits());
    // Two comparisons are adjusted, not three.
    let p = |pair: &GroupDifference| pair.difference.p_value.unwrap();
    let smaller = p(&found[0]).min(p(&found[1]));
    let holm = found.iter().map(|pair| pair.difference.p_holm.unwrap()).fold(1.0, f64::min);
    assert!((holm - (2.0 * smaller).min(1.0)).abs() < 1e-12, "{holm} {smaller}");
    for (attribute, level, expected) in [("site", "d", "a, b, c"), ("sex", "F", "evaluated: site")] {
        let Cohort { subjects, outcomes, curves, censoring } = &cohort;
        let groups = std::slice::from_ref(&site);
        let refused = evaluate(subjects, outcomes, curves, censoring, groups, &to(attribute, level)).unwrap_err();
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}

#[test]
fn intervals_of_distances_are_reflected_at_the_value_and_not_below_0() {
    let cohort = cohort(120, 24);
    let report = |interval| {
        let settings = with(&["rcll", "d-calibration", "ici", "integrated-calibration", "one-calibration"], 1);
        cohort.evaluate(&[halves(120)], &EvaluationSettings { interval, replicates: 200, ..settings })
    };
    let (percentile, basic) = (report(IntervalMethod::Percentile), report(IntervalMethod::Basic));
    assert_ne!(percentile.metrics[0].overall.lower, basic.metrics[0].overall.lower);
    for (percentile, basic) in percentile.metrics.iter().zip(&basic.metrics).skip(1) {
        assert_eq!(percentile, basic);
        let groups = percentile.attributes[0].groups.iter().map(|group| &group.estimate);
        for estimate in groups.chain([&percentile.overall]) {
            assert!(estimate.lower.unwrap() >= 0.0 && estimate.upper.unwrap() >= estimate.lower.unwrap());
        }
    }
    // The D-calibration of 60 samples is mostly noise.
    let noisy = &percentile.metrics[1].attributes[0].groups[0].estimate;
    assert!(noisy.lower.unwrap() < 0.5 * noisy.value.unwrap());
}

#[test]
fn intervals_of_few_events_say_so() {
    let cohort = cohort(200, 25);
    let small = Groups::new(
        "site",
        vec!["small".to_owned(), "large".to_owned()],
        (0..200).map(|row| Some(GroupId(u32::from(row >= 35)))).collect(),
    );
    let of = |replicates| {
        let settings = EvaluationSettings { replicates, ..with(&["c-td"], 1) };
        cohort.evaluate(&[small.clone().unwrap()], &settings).metrics[0].clone()
    };
    let found = of(20);
    let [small, large] = [0, 1].map(|level| found.attributes[0].groups[level].estimate.clone());
    assert!(small.n_events < 30 && large.n_events >= 30);
    assert!(small.caution.unwrap().starts_with(&format!("{} events, fewer than 30", small.n_events)));
    assert_eq!((large.caution, found.overall.caution), (None, None));
    // A comparison is as uncertain as its smallest group.
    let by = &found.attributes[0];
    let few = format!("{} events", small.n_events);
    assert_eq!(by.differences[0].difference.caution, Some(format!("{few}, fewer than 30: the interval is too narrow")));
    for of_groups in [&by.gap, &by.worst, &by.ratio, &by.equity_scaling] {
        let expected = format!("{few} in the smallest group, fewer than 30: the interval is too narrow");
        assert_eq!(of_groups.caution, Some(expected));
    }
    let without = of(0).attributes[0].clone();
    assert_eq!((&without.groups[0].estimate.caution, &without.gap.caution), (&None, &None));
    assert_eq!(without.differences[0].difference.caution, None);
}

#[test]
fn every_interval_of_a_distance_says_that_it_is_a_little_too_narrow() {
    let cohort = cohort(300, 26);
    let found = cohort.evaluate(&[halves(300)], &EvaluationSettings { replicates: 20, ..with(&["ici", "ibs"], 1) });
    for (metric, expected) in found.metrics.iter().zip([Some(CAUTION_OF_DISTANCES), None]) {
        let by = &metric.attributes[0];
        assert!(by.groups.iter().all(|group| group.estimate.n_events >= 30), "few events have a caution of their own");
        let of_groups = by.groups.iter().map(|group| group.estimate.caution.as_deref());
        let others = [&metric.overall.caution, &by.gap.caution, &by.differences[0].difference.caution];
        for caution in of_groups.chain(others.map(Option::as_deref)) {
            assert_eq!(caution, expected, "{}", metric.name);
        }
    }
}

#[test]
fn a_rank_metric_names_the_risk_that_it_takes_from_a_curve() {
    let cohort = cohort(60, 27);
    for (risk, words) in [
        (RiskOfCurve::NegativeRestrictedMean, "negative restricted mean survival time"),
        (RiskOfCurve::ExpectedMortality, "expected mortality"),
        (RiskOfCurve::AtHorizon, "predicted risk at the horizon, 1 - S"),
    ] {
        let settings = EvaluationSettings { risk, replicates: 0, ..with(&["harrell-c", "uno-c"], 1) };
        for metric in cohort.evaluate(&[], &settings).metrics {
            let convention = &metric.convention;
            assert!(convention.contains(words) && !convention.contains('{'), "{risk:?}: {convention}");
        }
    }
}

#[test]
fn thresholds_add_decisions_by_group_with_the_equalised_odds_difference() {
    let cohort = cohort(200, 26);
    let settings = EvaluationSettings { thresholds: vec![0.3, 0.6], horizon: Some(1.0), ..with(&["c-td"], 1) };
    let report = cohort.evaluate(&[halves(200)], &settings);
    let metric = |name: &str| report.metrics.iter().find(|metric| metric.name == name).unwrap();
    assert_eq!(report.metrics.len(), 1 + 2 * 7);
    let gap = |name: &str| metric(name).attributes[0].gap.value.unwrap();
    let decisions = report.decisions.as_ref().unwrap();
    for (at, threshold) in decisions.thresholds.iter().zip(["0.3", "0.6"]) {
        let [sensitivity, false_positive] =
            ["sensitivity", "false-positive-rate"].map(|name| gap(&format!("{name}:{threshold}")));
        let odds = &at.attributes[0].equalized_odds_difference;
        assert_eq!(odds.value, Some(sensitivity.max(false_positive)));
        assert!(odds.lower.unwrap() <= odds.value.unwrap() && odds.value.unwrap() <= odds.upper.unwrap());
        let selected = metric(&format!("selection-rate:{threshold}"));
        let n_positive = at.overall.n_positive.unwrap() as f64;
        assert!((selected.overall.value.unwrap() - n_positive / 200.0).abs() < 1e-12);
        assert!(selected.no_best && selected.attributes[0].worst_group.is_none());
        assert_eq!(selected.attributes[0].equity_scaling.value, None);
        assert_eq!(selected.ratio_name.as_deref(), Some("demographic parity ratio, disparate impact"));
        let specificity = metric(&format!("specificity:{threshold}")).overall.value.unwrap();
        let rate = metric(&format!("false-positive-rate:{threshold}")).overall.value.unwrap();
        assert!((specificity + rate - 1.0).abs() < 1e-12);
    }
    // The curve goes through the net benefit at a threshold.
    let curve = &decisions.curves[0];
    let place = curve.thresholds.iter().position(|threshold| (threshold - 0.3).abs() < 1e-9).unwrap();
    assert!((curve.net_benefit[place] - metric("net-benefit:0.3").overall.value.unwrap()).abs() < 1e-12);
    assert_eq!(metric("sensitivity:0.3").gap_name.as_deref(), Some("equal opportunity difference"));
    let chosen = EvaluationSettings { metrics: vec!["ppv@2".into()], ..settings.clone() };
    assert_eq!(
        cohort.evaluate(&[], &chosen).metrics.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(),
        ["ppv@2:0.3", "ppv@2:0.6"]
    );
    for (thresholds, metrics) in [(vec![], "sensitivity"), (vec![1.0], "c-td"), (vec![0.2, 0.2], "c-td")] {
        let settings = EvaluationSettings { thresholds, ..with(&[metrics], 1) };
        assert!(settings.validate().is_err(), "{settings:?}");
    }
}

/// The scores of a loop over the definition in `NumPy` (2026-11-28), with a censoring curve that is above 0 at all events, with one that
/// falls to 0 before the last two, and (a loop in Python, 2026-11-30) with one that ends at 1/2 before them, where it stays.
#[test]
fn a_reweighted_score_is_refused_where_an_event_has_no_weight() {
    let outcomes =
        Outcomes::new(vec![1.0, 2.0, 2.5, 3.0, 5.0, 5.0], vec![true, true, false, true, true, true]).unwrap();
    let survival = ndarray::array![
        [1.0, 0.6, 0.4, 0.3, 0.2, 0.1],
        [1.0, 0.7, 0.5, 0.4, 0.3, 0.2],
        [1.0, 0.8, 0.7, 0.5, 0.4, 0.3],
        [1.0, 0.8, 0.7, 0.6, 0.5, 0.4],
        [1.0, 0.9, 0.8, 0.7, 0.6, 0.5],
        [1.0, 0.9, 0.8, 0.7, 0.6, 0.5],
    ];
    let curves = SurvivalCurves::new(vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0], survival).unwrap();
    let settings = EvaluationSettings {
        times: Some(vec![1.0, 2.0, 3.0]),
        reading: Reading::Step,
        ..with(&["rsbs", "risl", "ibs"], 0)
    };
    let of = |last: f64, ends_with_event: bool| {
        let event = vec![true, true, true, false, ends_with_event];
        let train = Outcomes::new(vec![1.0, 2.0, 3.0, last, last], event).unwrap();
        let censoring = CensoringCurve::fit(&train, CensoringTies::EventsFirst).unwrap();
        let subjects: Vec<SubjectId> = (0..6).map(|row| format!("p{row}").into()).collect();
        let report = evaluate(&subjects, &outcomes, &curves, &censoring, &[], &settings).unwrap();
        report.metrics.iter().map(|metric| metric.overall.clone()).collect::<Vec<_>>()
    };
    let rounded = |value: Option<f64>| format!("{:.3}", value.unwrap());
    let long = of(6.0, false);
    assert_eq!([0, 1, 2].map(|metric| rounded(long[metric].value)), ["0.103", "0.342", "0.112"]);
    let short = of(4.0, false);
    assert_eq!(rounded(short[2].value), "0.112", "no event by time 3 is without weight");
    for refused in &short[..2] {
        assert!(refused.undefined.as_ref().unwrap().contains("time 5"), "{refused:?}");
    }
    let held = of(4.0, true);
    for (metric, expected) in [0.1175, 0.418_103_594_672].into_iter().enumerate() {
        assert!((held[metric].value.unwrap() - expected).abs() < 1e-11, "{:?}", held[metric]);
    }
}

/// The curve of Kaplan-Meier explains nothing, however coarse the curves of the model are.
#[test]
fn explained_variation_compares_with_kaplan_meier_at_the_evaluation_times() {
    let cohort = cohort(80, 31);
    let mut times: Vec<f64> = cohort.outcomes.time().to_vec();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let fine = kaplan_meier_curves(&KaplanMeier::fit(&cohort.outcomes).unwrap(), &times, 80).unwrap();
    let last = times[times.len() - 1];
    let flat =
        SurvivalCurves::new(vec![0.0, last], ndarray::Array2::from_shape_fn((80, 2), |(_, at)| 1.0 - 0.5 * at as f64))
            .unwrap();
    let settings =
        EvaluationSettings { reading: Reading::Step, replicates: 0, ..with(&["ibs", "explained-variation"], 0) };
    let of = |curves: &SurvivalCurves| {
        let report = evaluate(&cohort.subjects, &cohort.outcomes, curves, &cohort.censoring, &[], &settings).unwrap();
        [0, 1].map(|metric| report.metrics[metric].overall.value.unwrap())
    };
    let ([own, explained], [of_flat, of_coarse]) = (of(&fine), of(&flat));
    assert!(explained.abs() < 1e-12, "{explained}");
    assert!((of_coarse - (1.0 - of_flat / own)).abs() < 1e-12 && of_coarse < -0.1, "{of_coarse}");
}
