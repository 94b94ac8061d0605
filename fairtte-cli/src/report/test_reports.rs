//! Small reports with known numbers for the tests.

use fairtte_metrics::evaluation::{
    AttributeReport, BandedCurve, CalibrationCurve, CalibrationPoint, Curve, Difference, Estimate, GapByChance,
    GroupCurves, GroupDifference, GroupReport, GroupSummary, HorizonRisk, MetricReport, NumbersAtRisk, OverTime,
    OverTimeCurve, RiskTertile, RiskTertiles, TimeWindow,
};
use fairtte_metrics::{EvaluationReport, EvaluationSettings};

pub(super) const ODD_LEVEL: &str = "<b>old & \"frail\"</b>";

pub(super) fn estimate(value: f64, lower: f64, upper: f64, [n, n_events, n_subjects]: [usize; 3]) -> Estimate {
    Estimate {
        value: Some(value),
        undefined: None,
        lower: Some(lower),
        upper: Some(upper),
        interval_undefined: None,
        caution: None,
        n,
        n_events,
        n_subjects,
        n_comparable: None,
        undefined_replicates: 0,
        partial_replicates: 0,
        undefined_times: 0,
    }
}

pub(super) fn undefined(reason: &str, [n, n_events, n_subjects]: [usize; 3]) -> Estimate {
    let none = Estimate { value: None, lower: None, upper: None, ..estimate(0.0, 0.0, 0.0, [n, n_events, n_subjects]) };
    Estimate { undefined: Some(reason.to_owned()), undefined_replicates: 1000, ..none }
}

pub(super) fn difference(first: &str, second: &str, value: f64) -> GroupDifference {
    GroupDifference {
        first: first.to_owned(),
        second: second.to_owned(),
        difference: Difference {
            value: Some(value),
            undefined: None,
            lower: Some(value - 0.19),
            upper: Some(value + 0.08),
            p_value: Some(0.25),
            p_holm: None,
            caution: None,
            undefined_replicates: 0,
        },
    }
}

fn metric(name: &str, label: &str, higher_is_better: bool, shift: f64) -> MetricReport {
    let counts_pairs = name.starts_with("c_td");
    let at = |value: f64, counts: [usize; 3]| Estimate {
        n_comparable: counts_pairs.then(|| (counts[0] * counts[1]) as u64),
        ..estimate(value + shift, value + shift - 0.05, value + shift + 0.06, counts)
    };
    let group = |level: &str, estimate| GroupReport { level: level.to_owned(), estimate };
    let mut old = at(0.61, [41, 12, 40]);
    old.undefined_replicates = 37;
    let sex = AttributeReport {
        few_events: Vec::new(),
        with_all_groups: None,
        equity_scaling_deviation: None,
        attribute: "sex".to_owned(),
        n_missing: 3,
        groups: vec![group("female", at(0.74, [60, 31, 58])), group("male", at(0.69, [57, 29, 57]))],
        gap: estimate(0.05, 0.0, 0.173, [117, 60, 115]),
        gap_corrected: Some(0.0),
        gap_by_chance: Some(GapByChance {
            mean: 0.062,
            upper: 0.148,
            p_value: 0.555,
            p_holm: None,
            n_permutations: 199,
            undefined_permutations: 0,
        }),
        worst_group: Some("male".to_owned()),
        worst: Estimate { n_comparable: None, ..at(0.69, [117, 60, 115]) },
        gap_to_overall: estimate(0.03, 0.001, 0.1, [117, 60, 115]),
        ratio: estimate(0.93, 0.8, 0.99, [117, 60, 115]),
        ratio_to_overall: estimate(0.95, 0.85, 0.99, [117, 60, 115]),
        equity_scaling: estimate(0.674, 0.601, 0.743, [117, 60, 115]),
        equity_scaling_fair_seg: estimate(0.674, 0.601, 0.743, [117, 60, 115]),
        differences: vec![difference("female", "male", 0.05)],
    };
    let age = AttributeReport {
        few_events: Vec::new(),
        with_all_groups: None,
        equity_scaling_deviation: None,
        attribute: "age".to_owned(),
        n_missing: 0,
        groups: vec![
            group("young", at(0.77, [79, 49, 78])),
            group(ODD_LEVEL, old),
            group("unknown", undefined("none of 4 samples has an observed event", [4, 0, 4])),
        ],
        gap: estimate(0.16, 0.0, 0.31, [120, 61, 118]),
        gap_corrected: None,
        gap_by_chance: None,
        worst_group: Some(ODD_LEVEL.to_owned()),
        worst: Estimate { n_comparable: None, ..at(0.61, [120, 61, 118]) },
        gap_to_overall: estimate(0.11, 0.05, 0.2, [120, 61, 118]),
        ratio: estimate(0.79, 0.7, 0.9, [120, 61, 118]),
        ratio_to_overall: estimate(0.85, 0.75, 0.95, [120, 61, 118]),
        equity_scaling: estimate(0.612, 0.533, 0.689, [120, 61, 118]),
        equity_scaling_fair_seg: estimate(0.612, 0.533, 0.689, [120, 61, 118]),
        differences: vec![difference("young", ODD_LEVEL, 0.16)],
    };
    MetricReport {
        no_best: false,
        threshold: None,
        gap_name: None,
        ratio_name: None,
        target: None,
        horizon: None,
        name: name.to_owned(),
        label: label.to_owned(),
        convention: format!("convention of {label}"),
        higher_is_better,
        overall: at(0.72, [120, 61, 118]),
        attributes: vec![sex, age],
    }
}

fn curves(attribute: Option<&str>, level: Option<&str>, n: usize, n_events: usize) -> GroupCurves {
    GroupCurves {
        attribute: attribute.map(str::to_owned),
        level: level.map(str::to_owned),
        n,
        n_events,
        kaplan_meier: BandedCurve {
            times: vec![0.0, 2.0, 5.0],
            survival: vec![1.0, 0.75, 0.0],
            lower: vec![Some(1.0), Some(0.6), None],
            upper: vec![Some(1.0), Some(0.85), None],
            n_at_risk: vec![n, n, 1],
        },
        predicted: Curve { times: vec![0.0, 3.0, 6.0], survival: vec![1.0, 0.7, 0.2] },
        at_risk: NumbersAtRisk {
            times: vec![0.0, 2.0, 4.0],
            n_at_risk: vec![n, n, n / 2],
            n_events: vec![0, n_events / 2, n_events / 2],
        },
    }
}

/// Counts and risks of the same groups as those of [`curves`]; a group without events is not followed to the horizon.
fn summary(of: &GroupCurves) -> GroupSummary {
    let n_events = of.n_events / 2;
    let has_risk = of.n_events > 0;
    let wide = n_events < 20;
    GroupSummary {
        attribute: of.attribute.clone(),
        level: of.level.clone(),
        n: of.n,
        n_subjects: of.n - of.n / 60,
        n_events: of.n_events,
        n_competing: None,
        censored: Some((of.n - of.n_events) as f64 / of.n as f64),
        median_follow_up: has_risk.then_some(6.5),
        at_horizon: has_risk.then_some(HorizonRisk {
            n_events,
            observed: 0.5,
            observed_interval: Some(if wide { (0.3, 0.7) } else { (0.42, 0.58) }),
            predicted: 0.4,
            ratio: Some(1.25),
            ratio_interval: Some(if wide { (0.75, 1.75) } else { (1.05, 1.45) }),
        }),
        at_horizon_undefined: (!has_risk).then(|| "no sample is followed to time 4".to_owned()),
    }
}

fn calibration(of: &GroupCurves) -> CalibrationCurve {
    let has_curve = of.n_events > 0;
    let point = |predicted: f64, observed: f64| CalibrationPoint {
        n: of.n / 2,
        predicted,
        observed,
        lower: Some(observed - 0.1),
        upper: Some(observed + 0.1),
    };
    CalibrationCurve {
        attribute: of.attribute.clone(),
        level: of.level.clone(),
        n_events: of.n_events / 2,
        ici: has_curve.then_some(0.08),
        undefined: (!has_curve).then(|| "none of 4 samples has an observed event".to_owned()),
        predicted: if has_curve { vec![0.1, 0.4, 0.8] } else { Vec::new() },
        observed: if has_curve { vec![0.15, 0.5, 0.85] } else { Vec::new() },
        bins: if has_curve { vec![point(0.2, 0.25), point(0.6, 0.7)] } else { Vec::new() },
    }
}

/// Four metrics, of which the second repeats the first; `age` has a level that looks like HTML and one without events.
pub(crate) fn report() -> EvaluationReport {
    let curves = vec![
        curves(None, None, 120, 61),
        curves(Some("sex"), Some("female"), 60, 31),
        curves(Some("sex"), Some("male"), 57, 29),
        curves(Some("age"), Some("young"), 79, 49),
        curves(Some("age"), Some(ODD_LEVEL), 41, 12),
        curves(Some("age"), Some("unknown"), 4, 0),
    ];
    EvaluationReport {
        class: None,
        masks: None,
        over_time: vec![over_time()],
        risk_tertiles: vec![RiskTertiles { attribute: None, level: None, tertiles: thirds() }],
        decisions: None,
        horizon: Some(4.0),
        groups_summary: curves.iter().map(summary).collect(),
        censoring_by_group: Vec::new(),
        calibration: curves.iter().map(calibration).collect(),
        horizon_undefined: None,
        n: 120,
        n_events: 61,
        n_subjects: 118,
        cause: None,
        reading: "refined x10".to_owned(),
        settings: EvaluationSettings::default(),
        times: Some(TimeWindow {
            lower: 1.5,
            upper: 8.25,
            times: (0..100).map(|k| 1.5 + f64::from(k) * 6.75 / 99.0).collect(),
            rule: "100 equally spaced times between the 0.1 and 0.9 quantiles of the 61 evaluated event times"
                .to_owned(),
        }),
        times_undefined: None,
        metrics: vec![
            metric("c_td_antolini_strict", "C^td", true, 0.0),
            metric("c_td_half", "C^td (ties 1/2)", true, 0.0),
            metric("auc_td", "AUC^td", true, 0.01),
            metric("ibs", "IBS", false, -0.5),
        ],
        curves,
    }
}

/// The AUC of everybody and of two groups at times 2 and 4; men have none at time 2.
fn over_time() -> OverTime {
    let curve = |level: Option<&str>, at_2: Option<f64>, at_4: f64| OverTimeCurve {
        attribute: level.map(|_| "sex".to_owned()),
        level: level.map(str::to_owned),
        n: 60,
        n_events: 30,
        value: vec![at_2, Some(at_4)],
        lower: vec![at_2.map(|value| value - 0.1), Some(at_4 - 0.1)],
        upper: vec![at_2.map(|value| value + 0.1), Some(at_4 + 0.1)],
    };
    OverTime {
        metric: "auc".to_owned(),
        label: "AUC".to_owned(),
        higher_is_better: true,
        times: vec![2.0, 4.0],
        replicates: 200,
        curves: vec![
            curve(None, Some(0.7), 0.72),
            curve(Some("female"), Some(0.8), 0.75),
            curve(Some("male"), None, 0.7),
        ],
    }
}

fn thirds() -> Vec<RiskTertile> {
    let third = |name: &str, above: Option<f64>, at_most: Option<f64>, last: f64| RiskTertile {
        name: name.to_owned(),
        above,
        at_most,
        n: 40,
        n_events: 20,
        kaplan_meier: BandedCurve {
            times: vec![0.0, 5.0],
            survival: vec![1.0, last],
            lower: vec![Some(1.0), None],
            upper: vec![Some(1.0), None],
            n_at_risk: vec![40, 10],
        },
        predicted: Curve { times: vec![0.0, 5.0], survival: vec![1.0, last - 0.05] },
    };
    vec![
        third("low", None, Some(0.25), 0.75),
        third("middle", Some(0.25), Some(0.5), 0.5),
        third("high", Some(0.5), None, 0.25),
    ]
}
