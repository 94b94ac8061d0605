//! The contrast and the warnings that are fixed before the evaluation of the test part.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use super::*;

const C_TD: &str = "c_td_antolini_strict";

/// A base model with the C^td of some groups of `sex`.
fn base(groups: &[(&str, Option<f64>, usize)]) -> EvaluationReport {
    let mut report = Candidate::made_up("erm", 1, 0.7, 0.1).validation;
    let of_sex = &mut report.metrics[0].attributes[0];
    let sample = of_sex.groups[0].clone();
    of_sex.groups = groups
        .iter()
        .map(|(level, value, n_events)| {
            let mut group = sample.clone();
            (group.level, group.estimate.value, group.estimate.n_events) = ((*level).to_owned(), *value, *n_events);
            group
        })
        .collect();
    report
}

#[test]
fn the_contrast_is_of_the_groups_with_the_largest_and_the_smallest_value() {
    let of = |values: &[(&str, f64)]| {
        let groups: Vec<_> = values.iter().map(|(level, value)| (*level, Some(*value), 20)).collect();
        contrast(&base(&groups), "sex", C_TD).map(|found| [found.first, found.second])
    };
    assert_eq!(of(&[("a", 0.6), ("b", 0.7), ("c", 0.5), ("d", 0.65)]).unwrap(), ["b", "c"]);
    assert_eq!(of(&[("a", 0.5), ("b", 0.6)]).unwrap(), ["b", "a"]);
    // Among equal values, the first.
    assert_eq!(of(&[("a", 0.7), ("b", 0.7), ("c", 0.5), ("d", 0.5)]).unwrap(), ["a", "c"]);
    assert_eq!(of(&[("a", 0.7), ("b", 0.7)]).unwrap(), ["a", "b"]);
    assert_eq!(of(&[("a", 0.7)]), None);
    let undefined = base(&[("a", None, 0), ("b", Some(0.6), 20), ("c", Some(0.7), 20)]);
    assert_eq!(contrast(&undefined, "sex", C_TD).unwrap().second, "b");
    assert_eq!(contrast(&undefined, "height", C_TD), None);
}

#[test]
fn a_base_whose_interval_reaches_chance_is_named_with_it() {
    let warned = |value: f64, [lower, upper]: [f64; 2], higher_is_better: bool, no_skill: Option<f64>| {
        let mut report = base(&[]);
        let metric = &mut report.metrics[0];
        metric.higher_is_better = higher_is_better;
        (metric.overall.value, metric.overall.lower, metric.overall.upper) = (Some(value), Some(lower), Some(upper));
        warn_of_no_skill(&report, (C_TD, "C^td"), "erm", no_skill)
    };
    assert_eq!(warned(0.6, [0.501, 0.7], true, Some(0.5)), None);
    let text = warned(0.55, [0.5, 0.6], true, Some(0.5)).unwrap();
    let begin =
        "erm is not shown to be better than chance (0.500): its C^td in the validation part is 0.550 [0.500, 0.600].";
    assert!(text.starts_with(begin), "{text}");
    // For errors the upper end counts.
    assert_eq!(warned(0.15, [0.1, 0.199], false, Some(0.2)), None);
    let text = warned(0.15, [0.1, 0.2], false, Some(0.2)).unwrap();
    assert!(text.starts_with("erm is not shown to be better than the Kaplan-Meier curve (0.200)"), "{text}");
    assert_eq!(warned(0.55, [0.4, 0.6], true, None), None, "nothing to compare with");
}

#[test]
fn groups_below_ten_events_are_named_with_both_counts() {
    let report = base(&[("a", Some(0.6), 10), ("b", Some(0.6), 9), ("c", None, 0)]);
    let found = warn_of_few_events(&report, "sex", C_TD);
    assert_eq!(found.len(), 2, "{found:?}");
    let n = report.metrics[0].attributes[0].groups[1].estimate.n;
    let expected =
        format!("group \"b\" has 9 events among {n} samples of the validation part: too few to compare models in it");
    assert_eq!(found[0], expected);
    assert!(found[1].starts_with("group \"c\" has 0 events"), "{found:?}");
    assert!(warn_of_few_events(&report, "height", C_TD).is_empty());
}
