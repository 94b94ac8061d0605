//! Means by hand, and the same intervals as the evaluation of any metric.

use approx::assert_abs_diff_eq;

use super::*;
use crate::GroupId;
use crate::evaluation::evaluate_metric;
use crate::masks::SurfaceScore;

const UNIT: &str = "pixels";

/// A score of `n_common` of 10 pixels, with the distance `hd95`, or without any.
fn score(n_common: usize, hd95: Option<f64>) -> PairScore {
    let surface = hd95.map(|hd95| SurfaceScore { hd95, asd: 0.5 * hd95, nsd: 0.25 });
    PairScore { n_truth: 10, n_predicted: if hd95.is_some() { 10 } else { 0 }, n_common, surface }
}

struct Case {
    classes: Vec<MaskClass>,
    scores: Vec<Vec<PairScore>>,
    subjects: Vec<SubjectId>,
    groups: Vec<Groups>,
}

impl Case {
    /// 60 samples of 30 subjects in two groups; every fifth has no predicted pixel, and in group b more is wrong.
    fn new() -> Self {
        let of = |k: usize| {
            let hd95 = (!k.is_multiple_of(5)).then(|| 1.0 + (k * 7 % 11) as f64);
            score(if hd95.is_none() { 0 } else { 9 - k % 3 - 2 * usize::from(k % 4 > 1) }, hd95)
        };
        let membership = (0..60).map(|k| Some(GroupId(u32::from(k % 4 > 1)))).collect();
        Self {
            classes: vec![MaskClass { name: "cup".to_owned(), values: vec![2] }],
            scores: vec![(0..60).map(of).collect()],
            subjects: (0..60).map(|k| SubjectId::new(format!("p{:02}", k / 2))).collect(),
            groups: vec![Groups::new("sex", vec!["a".into(), "b".into()], membership).unwrap()],
        }
    }

    fn samples<'a>(&'a self, cup_to_disc: Option<&'a [Result<f64, MetricError>]>) -> MaskSamples<'a> {
        MaskSamples { classes: &self.classes, scores: &self.scores, cup_to_disc, unit: UNIT }
    }

    fn evaluate(&self, metrics: &[MaskMetric], settings: &EvaluationSettings) -> MaskReport {
        let masks = MaskSettings::default();
        evaluate_masks(&self.samples(None), &self.subjects, &self.groups, metrics, &masks, settings).unwrap()
    }
}

fn settings() -> EvaluationSettings {
    EvaluationSettings { replicates: 60, permutations: 19, ..EvaluationSettings::default() }
}

#[test]
fn values_intervals_and_gaps_are_those_of_any_metric_that_is_the_mean_over_samples() {
    let case = Case::new();
    let report = case.evaluate(&[MaskMetric::Hd95, MaskMetric::Dice], &settings());
    let names: Vec<&str> = report.metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(names, ["hd95-cup", "dice-cup"], "in the order that was asked for");
    for (place, metric) in [MaskMetric::Hd95, MaskMetric::Dice].into_iter().enumerate() {
        let values: Vec<Option<f64>> = case.scores[0].iter().map(|score| metric.value(score).ok()).collect();
        let mean = |rows: &[usize]| {
            let found: Vec<f64> = rows.iter().filter_map(|row| values[*row]).collect();
            if found.is_empty() {
                Err(MetricError::NoSamples)
            } else {
                Ok(found.iter().sum::<f64>() / found.len() as f64)
            }
        };
        let outcomes = Outcomes::new(vec![1.0; 60], values.iter().map(Option::is_some).collect()).unwrap();
        let about = MetricDescription { name: "x", label: "x", convention: "x", direction: metric.direction() };
        let any = evaluate_metric(about, mean, &case.subjects, &outcomes, &case.groups, &settings()).unwrap();
        let found = &report.metrics[place];
        let same = |a: &Estimate, b: &Estimate| {
            for (a, b) in [(a.value, b.value), (a.lower, b.lower), (a.upper, b.upper)] {
                assert_abs_diff_eq!(a.unwrap(), b.unwrap(), epsilon = 1e-12);
            }
            assert_eq!((a.n, a.n_events, a.n_subjects), (b.n, b.n_events, b.n_subjects));
        };
        same(&found.overall, &any.overall);
        let (found, any) = (&found.attributes[0], &any.attributes[0]);
        same(&found.gap, &any.gap);
        same(&found.groups[1].estimate, &any.groups[1].estimate);
        assert_eq!(found.worst_group, any.worst_group);
        let p = |of: &AttributeReport| of.gap_by_chance.as_ref().unwrap().p_value;
        assert_abs_diff_eq!(p(found), p(any), epsilon = 1e-12);
    }
}

#[test]
fn samples_without_a_value_are_left_out_and_counted() {
    let mut case = Case::new();
    let found = case.evaluate(&[MaskMetric::Dice, MaskMetric::Hd95], &settings());
    let [dice, hd95] = &found.metrics[..] else { panic!("two metrics") };
    assert_eq!((dice.overall.n, dice.overall.n_events, hd95.overall.n_events), (60, 60, 48));
    let expected = (0..60).filter(|k| k % 5 != 0).map(|k| 1.0 + f64::from(k * 7 % 11)).sum::<f64>() / 48.0;
    assert_abs_diff_eq!(hd95.overall.value.unwrap(), expected, epsilon = 1e-12);
    let all = &found.empty[0];
    assert_eq!((all.n, all.n_both, all.n_truth, all.n_predicted), (60, 0, 0, 12));
    assert_eq!(found.empty[2].level.as_deref(), Some("b"));
    assert_eq!(found.empty[1].n_predicted + found.empty[2].n_predicted, 12);
    // Of group b all but three have no predicted mask: the distances of three samples are compared with nothing.
    let rows = case.groups[0].rows(GroupId(1));
    for row in rows.iter().filter(|row| case.scores[0][**row].surface.is_some()).skip(3).copied().collect::<Vec<_>>() {
        case.scores[0][row] = score(0, None);
    }
    let found = case.evaluate(&[MaskMetric::Hd95, MaskMetric::Dice], &settings());
    let attribute = &found.metrics[0].attributes[0];
    assert_eq!((attribute.few_events.as_slice(), attribute.gap.value), (&["b".to_owned()][..], None));
    let reason = attribute.differences[0].difference.undefined.as_deref().unwrap();
    assert!(reason.contains("samples with a value: 3, fewer than min-events 10"), "{reason}");
    assert!(attribute.groups[1].estimate.value.is_some(), "it stays visible");
    assert!(found.metrics[1].attributes[0].gap.value.is_some(), "overlap has a value for every sample");
    for row in rows {
        case.scores[0][row] = PairScore::default();
    }
    let found = case.evaluate(&[MaskMetric::Hd95], &settings());
    let reason = found.metrics[0].attributes[0].groups[1].estimate.undefined.clone().unwrap();
    assert_eq!(reason, "the metric has no value for any of 30 samples: both masks have no pixels");
    assert_eq!(found.empty[2].n_both, 30);
}

#[test]
fn overlap_has_all_forms_of_equity_scaling_and_distances_have_none() {
    let case = Case::new();
    let found = case.evaluate(&[MaskMetric::Dice, MaskMetric::Asd], &settings());
    let [dice, asd] = &found.metrics[..] else { panic!("two metrics") };
    let overall = dice.overall.value.unwrap();
    let values: Vec<f64> = dice.attributes[0].groups.iter().map(|group| group.estimate.value.unwrap()).collect();
    let sum = overall / (1.0 + values.iter().map(|value| (value - overall).abs()).sum::<f64>());
    let half = 0.5 * (values[0] - values[1]);
    let deviation = overall / (1.0 + (2.0 * half * half).sqrt());
    let of = &dice.attributes[0];
    assert_abs_diff_eq!(of.equity_scaling.value.unwrap(), sum, epsilon = 1e-14);
    assert_abs_diff_eq!(of.equity_scaling_fair_seg.value.unwrap(), sum, epsilon = 1e-14);
    assert_abs_diff_eq!(of.equity_scaling_deviation.as_ref().unwrap().value.unwrap(), deviation, epsilon = 1e-14);
    assert_eq!(of.worst_group.as_deref(), Some("b"));
    let of = &asd.attributes[0];
    for estimate in [&of.equity_scaling, &of.equity_scaling_fair_seg, of.equity_scaling_deviation.as_ref().unwrap()] {
        assert!(estimate.value.is_none() && estimate.lower.is_none() && estimate.undefined.is_some());
    }
    assert!(of.gap.value.is_some() && !asd.higher_is_better && dice.higher_is_better);
}

#[test]
fn the_error_of_the_ratio_is_one_more_metric_and_needs_its_values() {
    let case = Case::new();
    let errors: Vec<Result<f64, MetricError>> = (0..60)
        .map(|k| if k == 7 { Err(MetricError::EmptyMask { which: "the true disc" }) } else { Ok(0.1) })
        .collect();
    let masks = MaskSettings::default();
    let evaluate = |samples: MaskSamples<'_>, metrics: &[MaskMetric], settings: &EvaluationSettings| {
        evaluate_masks(&samples, &case.subjects, &case.groups, metrics, &masks, settings)
    };
    let found = evaluate(case.samples(Some(&errors)), &[MaskMetric::CupToDisc, MaskMetric::Nsd], &settings()).unwrap();
    let names: Vec<&str> = found.metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(names, ["nsd-cup", "cup-to-disc-error"]);
    assert!(
        names.into_iter().all(MaskMetric::is_named) && !MaskMetric::is_named("c-td") && !MaskMetric::is_named("dice")
    );
    assert_abs_diff_eq!(found.metrics[1].overall.value.unwrap(), 0.1, epsilon = 1e-14);
    assert_eq!(found.metrics[1].overall.n_events, 59);
    let refused = |samples, metrics: &[MaskMetric], settings: &EvaluationSettings| {
        evaluate(samples, metrics, settings).unwrap_err().to_string()
    };
    assert!(refused(case.samples(None), &[MaskMetric::CupToDisc], &settings()).contains("cup and disc"));
    assert!(refused(case.samples(None), &[], &settings()).contains("metrics"));
    assert!(refused(case.samples(Some(&errors[1..])), &[MaskMetric::Dice], &settings()).contains("cup-to-disc"));
    let by_event = EvaluationSettings { stratify: Stratify::Event, ..settings() };
    assert!(refused(case.samples(None), &[MaskMetric::Dice], &by_event).contains("no events"));
    let none = MaskSamples { classes: &[], ..case.samples(None) };
    assert!(refused(none, &[MaskMetric::Dice], &settings()).contains("classes"));
    let without_values = [MaskClass { name: "cup".to_owned(), values: vec![] }];
    let none = MaskSamples { classes: &without_values, ..case.samples(None) };
    assert!(refused(none, &[MaskMetric::Dice], &settings()).contains("values of a class is none for cup"));
    let short = [case.scores[0][1..].to_vec()];
    let short = MaskSamples { scores: &short, ..case.samples(None) };
    assert!(refused(short, &[MaskMetric::Dice], &settings()).contains("scores of a class"));
}
