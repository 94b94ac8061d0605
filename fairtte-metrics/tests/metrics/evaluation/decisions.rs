//! Decisions of a whole evaluation against recorded values of other packages.
//!
//! The weights are 1/G(T-) of cases and 1/G(t) of controls from scikit-survival 0.28.0 `CensoringDistributionEstimator`; with
//! them as sample weights, sensitivity and PPV are `recall_score` and `precision_score`, the table `confusion_matrix` of
//! scikit-learn 1.9.1, and the comparisons of groups `equal_opportunity_difference`, `equalized_odds_difference`,
//! `MetricFrame.difference`, `demographic_parity_difference` and `demographic_parity_ratio` of fairlearn 0.15.0; the net
//! benefit is its formula in numpy 2.4.6.

use fairtte_metrics::{
    CensoringCurve, CensoringTies, EvaluationReport, EvaluationSettings, Outcomes, SubjectId, SurvivalCurves,
};
use ndarray::Array2;

use super::cohort::{Cohort, groups, settings};

const N: usize = 40;

/// Ten times, so that events and censorings tie; risks that are exact in binary, one of them 0.25.
fn cohort() -> Cohort {
    let outcomes = |time: &dyn Fn(usize) -> usize, event: &dyn Fn(usize) -> bool| {
        let time = (0..N).map(|k| 1.0 + time(k) as f64).collect();
        Outcomes::new(time, (0..N).map(event).collect()).unwrap()
    };
    let train = outcomes(&|k| k * 3 % 11, &|k| k % 3 != 1);
    let survival = Array2::from_shape_fn((N, 1), |(k, _)| 1.0 - (1 + k * 29 % N) as f64 / 64.0);
    Cohort {
        subjects: (0..N).map(|k| SubjectId::new(format!("p{k}"))).collect(),
        outcomes: outcomes(&|k| k * 7 % 10, &|k| !(k * 11 % N).is_multiple_of(3)),
        curves: SurvivalCurves::new(vec![6.0], survival).unwrap(),
        censoring: CensoringCurve::fit(&train, CensoringTies::EventsFirst).unwrap(),
    }
}

fn report() -> EvaluationReport {
    let sex = groups("sex", &["F", "M"], |k| Some(u32::from((k * k + 3 * k) % 7 > 2)), N);
    let site = groups("site", &["a", "b"], |k| Some(u32::from((5 * k + 3) % 9 > 3)), N);
    let settings = EvaluationSettings { thresholds: vec![0.25], horizon: Some(6.0), ..settings(30) };
    cohort().evaluate(&[sex, site], &settings)
}

fn near(name: &str, found: Option<f64>, expected: f64) {
    let found = found.unwrap_or_else(|| panic!("{name} is undefined"));
    assert!((found - expected).abs() < 1e-12, "{name}: {found}, expected {expected}");
}

#[test]
fn numbers_of_everybody_and_of_groups_are_those_of_other_packages() {
    let report = report();
    // The whole sample, F, M.
    let expected = [
        ("sensitivity", [0.704_887_928_076_844_5, 0.260_526_315_789_473_66, 0.901_509_275_268_952_9]),
        ("specificity", [0.375, 0.714_285_714_285_714_3, 0.111_111_111_111_111_1]),
        ("false-positive-rate", [0.625, 0.285_714_285_714_285_7, 0.888_888_888_888_889]),
        ("ppv", [0.455_221_722_505_969_4, 0.321_428_571_428_571_45, 0.480_813_570_846_570_1]),
        ("npv", [0.631_684_997_061_539_8, 0.650_280_024_891_101_1, 0.552_666_372_851_476_4]),
        ("selection-rate", [0.625, 0.25, 0.785_714_285_714_285_7]),
        ("net-benefit", [0.180_321_273_624_667_13, 0.026_390_763_232_868_493, 0.275_410_611_734_945]),
    ];
    for (name, [all, f, m]) in expected {
        let metric = report.metric(&format!("{name}:0.25")).unwrap();
        near(name, metric.overall.value, all);
        let groups = &metric.attributes[0].groups;
        near(name, groups[0].estimate.value, f);
        near(name, groups[1].estimate.value, m);
    }
    let at = &report.decisions.as_ref().unwrap().thresholds[0];
    let [f, m] = [0, 1].map(|level| &at.attributes[0].groups[level].decided);
    for (decided, all, weight) in [
        (&at.overall, 0.234_115_284_551_957_51, 0.939_496_100_164_203_5),
        (f, 0.122_507_122_507_122_52, 1.195_835_899_014_778_2),
        (m, 0.303_060_331_440_552_94, 0.829_636_186_371_1),
    ] {
        near("net benefit of all", decided.net_benefit_of_all, all);
        near("weight", decided.weight, weight);
    }
    assert_eq!([f.n_positive, m.n_positive], [Some(3), Some(22)]);
}

#[test]
fn comparisons_of_groups_are_those_of_fairlearn() {
    let report = report();
    let of = |name: &str| &report.metric(name).unwrap().attributes[0];
    near("equal opportunity", of("sensitivity:0.25").gap.value, 0.640_982_959_479_478_9);
    near("predictive equality", of("false-positive-rate:0.25").gap.value, 0.603_174_603_174_603_1);
    near("demographic parity", of("selection-rate:0.25").gap.value, 0.535_714_285_714_285_7);
    near("disparate impact", of("selection-rate:0.25").ratio.value, 0.318_181_818_181_818_2);
    let odds = |attribute: usize| {
        let at = &report.decisions.as_ref().unwrap().thresholds[0];
        at.attributes[attribute].equalized_odds_difference.value
    };
    near("equalized odds, by the sensitivity", odds(0), 0.640_982_959_479_478_9);
    // By site the gap of the sensitivity is 0.326.
    near("equalized odds, by the false-positive rate", odds(1), 0.466_666_666_666_666_73);
}

/// Of the 26 events 11 are in group F.
#[test]
fn the_caution_of_equalised_odds_is_that_of_its_smallest_group() {
    let report = report();
    let odds = &report.decisions.as_ref().unwrap().thresholds[0].attributes[0].equalized_odds_difference;
    let expected = "11 events in the smallest group, fewer than 30: the interval is too narrow";
    assert!(odds.lower.is_some());
    assert_eq!(odds.caution.as_deref(), Some(expected));
    let gap = &report.metric("sensitivity:0.25").unwrap().attributes[0].gap;
    assert_eq!(gap.caution, odds.caution);
}
