//! The probabilities of a class of one model in two cohorts.

use approx::assert_abs_diff_eq;
use fairtte_metrics::classification::{ClassPredictions, auc, delong};
use fairtte_metrics::evaluation::{
    CLASS_METRICS, ClassCohort, ClassCohorts, ClassSettings, CohortReports, describe_classes, evaluate_class_cohorts,
    evaluate_classes,
};
use fairtte_metrics::{EvaluationSettings, GroupId, Groups, SubjectId, seeds};
use rand::RngExt as _;

/// People of two groups; `noise` is how far their probabilities are from their risks, in F and in M.
struct Made {
    subjects: Vec<SubjectId>,
    predictions: ClassPredictions,
    groups: Vec<Groups>,
}

fn made(n: usize, noise: [f64; 2], seed: u64) -> Made {
    let mut rng = seeds::stream(seed, "class cohort", &[]);
    let person = |row: usize| {
        let (risk, other): (f64, f64) = (rng.random(), rng.random());
        let own = noise[row % 2];
        ((1.0 - own) * risk + own * other, rng.random::<f64>() < risk)
    };
    let (probability, positive) = (0..n).map(person).unzip();
    let level = |row: usize| Some(GroupId(u32::from(row % 2 == 1)));
    Made {
        subjects: (0..n).map(|row| SubjectId::new(format!("p{row:04}"))).collect(),
        predictions: ClassPredictions::new(probability, positive).unwrap(),
        groups: vec![Groups::new("sex", vec!["F".into(), "M".into()], (0..n).map(level).collect()).unwrap()],
    }
}

impl Made {
    fn cohort(&self) -> ClassCohort<'_> {
        ClassCohort { subjects: &self.subjects, predictions: &self.predictions, groups: &self.groups }
    }
}

fn settings(replicates: usize) -> EvaluationSettings {
    EvaluationSettings { replicates, permutations: 0, ..EvaluationSettings::default() }
}

fn compare(internal: &Made, external: &Made, settings: &EvaluationSettings) -> ClassCohorts {
    let class = ClassSettings { threshold: 0.4, ..ClassSettings::default() };
    evaluate_class_cohorts(&internal.cohort(), &external.cohort(), &class, settings).unwrap()
}

#[test]
fn every_metric_has_the_values_of_each_cohort_by_itself_and_changes_by_external_minus_internal() {
    let (internal, external) = (made(300, [0.1, 0.1], 1), made(200, [0.9, 0.2], 2));
    let found = compare(&internal, &external, &settings(200));
    let alone = |made: &Made| {
        let Made { subjects, predictions, groups } = made;
        evaluate_classes(predictions, subjects, groups, &found.internal.class, &settings(200).metrics_only()).unwrap()
    };
    assert_eq!((&found.internal, &found.external), (&alone(&internal), &alone(&external)));
    assert_eq!(found.metrics.len(), CLASS_METRICS.len());
    for (place, metric) in found.metrics.iter().enumerate() {
        assert_eq!(metric.name, CLASS_METRICS[place].name);
        let (own, other) = (&found.internal.metrics[place], &found.external.metrics[place]);
        let sex = &metric.attributes[0];
        let groups = [0, 1].map(|k| (&sex.groups[k].1, [own, other].map(|of| &of.attributes[0].groups[k].estimate)));
        let gap = (&sex.gap, [own, other].map(|of| &of.attributes[0].gap));
        for (both, [own, other]) in [(&metric.overall, [&own.overall, &other.overall]), groups[0], groups[1], gap] {
            assert_eq!((both.internal.value, both.external.value), (own.value, other.value), "{}", metric.name);
            let expected = other.value.unwrap() - own.value.unwrap();
            assert_abs_diff_eq!(both.difference.value.unwrap(), expected, epsilon = 1e-12);
        }
        let change = |k: usize| sex.groups[k].1.difference.value.unwrap();
        assert_abs_diff_eq!(sex.changes[0].difference.value.unwrap(), change(0) - change(1), epsilon = 1e-12);
    }
    let auc = &found.metrics[0].overall;
    assert_abs_diff_eq!(auc.external.value.unwrap(), self::auc(&external.predictions).unwrap(), epsilon = 1e-12);
    // The probabilities of women are noise in the external cohort.
    let of_women = &found.metrics[0].attributes[0].groups[0].1.difference;
    assert!(of_women.upper.unwrap() < 0.0 && of_women.p_holm.unwrap() < 0.05, "{of_women:?}");
}

#[test]
fn the_interval_of_a_change_of_auc_is_that_of_two_independent_ones() {
    let (internal, external) = (made(500, [0.3, 0.3], 3), made(250, [0.6, 0.6], 4));
    let found = compare(&internal, &external, &settings(3_000));
    let [own, other] = [&internal, &external].map(|made| delong(&made.predictions).unwrap());
    let difference = &found.metrics[0].overall.difference;
    let (value, error) = (other.auc - own.auc, (own.variance + other.variance).sqrt());
    assert_abs_diff_eq!(difference.value.unwrap(), value, epsilon = 1e-12);
    assert_abs_diff_eq!(difference.lower.unwrap(), value - 1.96 * error, epsilon = 0.15 * error);
    assert_abs_diff_eq!(difference.upper.unwrap(), value + 1.96 * error, epsilon = 0.15 * error);
}

#[test]
fn a_group_needs_samples_of_both_classes_in_both_cohorts() {
    let (internal, mut external) = (made(300, [0.2, 0.2], 5), made(200, [0.2, 0.2], 6));
    // All women of the external cohort but four are positive: many events, few samples of the rarer class.
    let few: Vec<bool> =
        (0..200).map(|row| if row % 2 == 0 { row >= 8 } else { external.predictions.positive()[row] }).collect();
    external.predictions = ClassPredictions::new(external.predictions.probability().to_vec(), few).unwrap();
    let found = compare(&internal, &external, &EvaluationSettings { min_events: 5, ..settings(50) });
    let sex = &found.metrics[0].attributes[0];
    assert_eq!(sex.compared, ["M"]);
    let of_women = &sex.groups[0].1;
    assert!(of_women.external.value.is_some() && of_women.difference.lower.is_none());
    let why = of_women.difference.undefined.as_deref().unwrap();
    assert!(why.contains('4') && why.contains("class"), "{why}");
    assert_eq!(sex.gap.difference.value, None, "one group has no gap");
    let found = compare(&internal, &external, &EvaluationSettings { min_events: 4, ..settings(50) });
    assert_eq!(found.metrics[0].attributes[0].compared, ["F", "M"]);
}

#[test]
fn the_common_form_keeps_the_cohorts_apart() {
    let (internal, external) = (made(120, [0.2, 0.2], 7), made(90, [0.2, 0.2], 8));
    let found = compare(&internal, &external, &settings(20));
    let describe = |made: &Made| {
        describe_classes(&made.predictions, &made.subjects, &made.groups, &found.internal.class, 0.95).unwrap()
    };
    let (own, other) = (describe(&internal), describe(&external));
    let reports = CohortReports::of_classes(&found, [&own, &other]);
    assert_eq!((reports.internal.n, reports.external.n), (120, 90));
    assert_eq!((&reports.internal.calibration, &reports.external.calibration), (&own.calibration, &other.calibration));
    assert_eq!(
        (&reports.internal.metrics, &reports.external.metrics),
        (&found.internal.metrics, &found.external.metrics)
    );
    assert_eq!(reports.metrics, found.metrics);
}
