use super::*;
use crate::classification::CalibrationError;
use crate::evaluation::evaluate_metric;
use crate::{GroupId, seeds};
use rand::RngExt as _;

struct Cohort {
    predictions: ClassPredictions,
    subjects: Vec<SubjectId>,
    groups: Vec<Groups>,
}

/// Group b is predicted less well; two samples per subject.
fn cohort(n: usize, noise: f64) -> Cohort {
    let mut rng = seeds::stream(3, "classes", &[n as u64]);
    let (mut probability, mut positive) = (Vec::new(), Vec::new());
    for row in 0..n {
        let p = 0.1 + 0.8 * rng.random::<f64>();
        positive.push(rng.random::<f64>() < p);
        let own = if row / 2 % 2 == 0 { 0.0 } else { noise };
        probability.push((1.0 - own) * p + own * rng.random::<f64>());
    }
    let of = |name: &str, step: usize| {
        let membership = (0..n).map(|row| Some(GroupId(crate::ids::to_u32(row / step % 2)))).collect();
        Groups::new(name, vec!["a".into(), "b".into()], membership).unwrap()
    };
    Cohort {
        predictions: ClassPredictions::new(probability, positive).unwrap(),
        subjects: (0..n).map(|row| SubjectId::new(format!("p{:06}", row / 2))).collect(),
        groups: vec![of("site", 2), of("age", 4)],
    }
}

fn settings() -> EvaluationSettings {
    EvaluationSettings { replicates: 70, permutations: 19, ..EvaluationSettings::default() }
}

#[test]
fn every_number_is_that_of_the_metric_recomputed_from_rows() {
    let Cohort { predictions, subjects, groups } = cohort(300, 0.9);
    let class = ClassSettings { threshold: 0.4, ..ClassSettings::default() };
    let report = evaluate_classes(&predictions, &subjects, &groups, &class, &settings()).unwrap();
    let outcomes = outcomes(&predictions).unwrap();
    let recomputed = |place: usize, metric: &(dyn Fn(&ClassPredictions) -> Result<f64, MetricError> + Sync)| {
        let of_rows = |rows: &[usize]| metric(&predictions.select(rows));
        let expected =
            evaluate_metric(CLASS_METRICS[place], of_rows, &subjects, &outcomes, &groups, &settings()).unwrap();
        let found = &report.metrics[place];
        let near = |a: Option<f64>, b: Option<f64>| a.zip(b).is_some_and(|(a, b)| (a - b).abs() < 1e-7);
        let pairs = [
            (&found.overall, &expected.overall),
            (&found.attributes[0].gap, &expected.attributes[0].gap),
            (&found.attributes[1].groups[1].estimate, &expected.attributes[1].groups[1].estimate),
        ];
        for (found, expected) in pairs {
            assert!(near(found.value, expected.value), "{place}");
            // Distances have intervals of another kind.
            if place != ECE {
                assert!(near(found.lower, expected.lower) && near(found.upper, expected.upper), "{place}");
            }
        }
        let chance = |metric: &MetricReport| metric.attributes[0].gap_by_chance.as_ref().map(|gap| gap.upper);
        assert!(near(chance(found), chance(&expected)), "{place}");
    };
    recomputed(0, &auc);
    recomputed(1, &average_precision);
    recomputed(2, &cross_entropy);
    recomputed(ECE, &|p| expected_calibration_error(p, CalibrationError::default()));
    recomputed(SLOPE, &|p| Ok(calibration_line(p)?.slope));
    recomputed(INTERCEPT, &calibration_intercept);
    recomputed(FNR, &|p| confusion(p, 0.4)?.false_negative_rate());
    recomputed(12, &|p| tpr_at_tnr(p, 0.8, RocReading::Interpolated));
    let kinds = [SLOPE, INTERCEPT].map(|place| report.metrics[place].target);
    assert_eq!((kinds, report.metrics[SELECTION].no_best), ([Some(1.0), Some(0.0)], true));
    let at_threshold = report.metrics.iter().filter(|metric| metric.threshold == Some(0.4));
    let names: Vec<&str> = at_threshold.map(|metric| metric.name.as_str()).collect();
    assert_eq!(names, ["accuracy", "balanced-accuracy", "f1", "fpr", "fnr", "selection-rate"]);
}

#[test]
fn criteria_come_from_the_gaps_of_the_groups() {
    let Cohort { predictions, subjects, groups } = cohort(400, 0.9);
    let of = |underdiagnosis| {
        let class = ClassSettings { underdiagnosis, ..ClassSettings::default() };
        evaluate_classes(&predictions, &subjects, &groups, &class, &settings()).unwrap()
    };
    let report = of(Underdiagnosis::MissedDisease);
    let gap = |place: usize| report.metrics[place].attributes[0].gap.clone();
    let parity = &report.parity[0];
    let (negative, positive) = (1.0 - gap(FPR).value.unwrap(), 1.0 - gap(FNR).value.unwrap());
    assert_eq!(parity.equal_opportunity_negative.value, Some(negative));
    assert_eq!(parity.equal_opportunity_positive.lower, gap(FNR).upper.map(|upper| 1.0 - upper));
    let odds = &parity.equalised_odds;
    assert_eq!(odds.value, Some(0.5 * (negative + positive)));
    assert!(odds.lower < odds.value && odds.upper >= odds.value);
    assert_eq!(parity.demographic_parity_difference, gap(SELECTION));
    assert_eq!(parity.underdiagnosis_difference, gap(FNR));
    assert_eq!(of(Underdiagnosis::CalledNoFinding).parity[0].underdiagnosis_difference, gap(FPR));
    let delong = report.delong.unwrap();
    assert_eq!(Some(delong.auc), report.metrics[0].overall.value);
}

#[test]
fn models_are_compared_with_the_same_draws() {
    let (good, bad) = (cohort(300, 0.2), cohort(300, 0.9));
    let bad =
        ClassPredictions::new(bad.predictions.probability().to_vec(), good.predictions.positive().to_vec()).unwrap();
    let compare = |second: &ClassPredictions| {
        let models = [("good", &good.predictions), ("other", second)];
        compare_classes(&models, &good.subjects, &good.groups, &ClassSettings::default(), &settings())
    };
    let found = compare(&bad).unwrap();
    assert_eq!((found.pairs.len(), found.pairs[0].metric.as_str()), (N_CLASS_METRICS, "auc"));
    let expected = auc(&good.predictions).unwrap() - auc(&bad).unwrap();
    assert!((found.pairs[0].overall.value.unwrap() - expected).abs() < 1e-12);
    let same = compare(&good.predictions).unwrap();
    assert_eq!((same.pairs[0].overall.lower, same.pairs[0].overall.upper), (Some(0.0), Some(0.0)));
    let flipped = good.predictions.positive().iter().map(|positive| !positive).collect();
    let flipped = ClassPredictions::new(good.predictions.probability().to_vec(), flipped).unwrap();
    assert!(matches!(compare(&flipped), Err(MetricError::InvalidSetting { .. })));
}

#[test]
fn settings_out_of_range_are_refused() {
    let Cohort { predictions, subjects, groups } = cohort(40, 0.5);
    let error = CalibrationError { n_bins: 0, ..CalibrationError::default() };
    for class in [
        ClassSettings { threshold: 1.5, ..ClassSettings::default() },
        ClassSettings { tnr: 1.0, ..ClassSettings::default() },
        ClassSettings { calibration_error: error, ..ClassSettings::default() },
    ] {
        assert!(evaluate_classes(&predictions, &subjects, &groups, &class, &settings()).is_err());
    }
}

#[test]
fn a_group_with_few_negative_samples_is_not_compared() {
    let Cohort { predictions, subjects, groups } = cohort(300, 0.9);
    // Of the second site, all but 9 of its negative samples are left out.
    let mut left = 9;
    let in_b = |row: &usize| groups[0].membership()[*row] == Some(GroupId(1));
    let rows: Vec<usize> = (0..300)
        .filter(|row| {
            let is_rare = in_b(row) && !predictions.positive()[*row];
            left -= usize::from(is_rare && left > 0);
            !is_rare || left > 0
        })
        .collect();
    let few = predictions.select(&rows);
    let subjects: Vec<SubjectId> = rows.iter().map(|row| subjects[*row].clone()).collect();
    let membership = rows.iter().map(|row| groups[0].membership()[*row]).collect();
    let site = Groups::new("site", vec!["a".into(), "b".into()], membership).unwrap();
    let evaluate = |min_events: usize| {
        let settings = EvaluationSettings { min_events, ..settings() };
        evaluate_classes(&few, &subjects, std::slice::from_ref(&site), &ClassSettings::default(), &settings).unwrap()
    };
    let report = evaluate(10);
    let of_site = &report.metrics[0].attributes[0];
    assert_eq!((&of_site.few_events[..], of_site.gap.value), (&["b".to_owned()][..], None));
    assert!(of_site.groups[1].estimate.n_events > 50 && of_site.gap_by_chance.is_none());
    let why = of_site.differences[0].difference.undefined.as_deref();
    assert_eq!(why, Some("samples of the rarer class: 8, fewer than min-events 10: the group is not compared"));
    let caution = of_site.groups[1].estimate.caution.as_deref();
    assert_eq!(caution, Some("8 samples of the rarer class, fewer than 30: the interval is too narrow"));
    let compared = evaluate(8);
    assert!(compared.metrics[0].attributes[0].gap.value.is_some());
    assert!(compared.metrics[0].attributes[0].gap_by_chance.is_some());
}

#[test]
fn reports_of_several_models_are_those_of_each_and_differences_are_from_the_reference() {
    let good = cohort(300, 0.2);
    let bad = cohort(300, 0.9).predictions.probability().to_vec();
    let bad = ClassPredictions::new(bad, good.predictions.positive().to_vec()).unwrap();
    let models = [("good", &good.predictions), ("bad", &bad)];
    let class = ClassSettings { threshold: 0.4, ..ClassSettings::default() };
    let Cohort { subjects, groups, .. } = &good;
    let found = evaluate_class_models(&models, 1, subjects, groups, &class, &settings()).unwrap();
    for ((name, report), (of, predictions)) in found.models.iter().zip(models) {
        assert_eq!(name, of);
        assert_eq!(*report, evaluate_classes(predictions, subjects, groups, &class, &settings()).unwrap());
    }
    assert_eq!((found.reference.as_str(), found.pairs.len()), ("bad", N_CLASS_METRICS));
    assert_eq!((found.pairs[0].first.as_str(), found.pairs[0].second.as_str()), ("good", "bad"));
    let compared = compare_classes(&models, subjects, groups, &class, &settings()).unwrap();
    assert_eq!(found.pairs, compared.pairs, "of two models, the pair is the same");
    let front: Vec<bool> = found.trade_offs[0].points.iter().map(|point| point.on_front).collect();
    assert_eq!((found.trade_offs.len(), front[0]), (2 * N_CLASS_METRICS, true));
    assert!(evaluate_class_models(&models, 2, subjects, groups, &class, &settings()).is_err());
}
