#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
use super::super::test_reports::report;
use super::*;

#[test]
fn three_sentences_answer_the_three_questions() {
    let said = verdict(&report(), "years");
    assert_eq!(said.len(), 3);
    assert_eq!(
        said[0],
        "The model ranks acceptably: C^td 0.720 (0.670 to 0.780), AUC^td 0.730 (0.680 to 0.790) and IBS 0.220 (0.170 \
         to 0.280) (in brackets: 95 % intervals)."
    );
    assert_eq!(
        said[1],
        "No difference between groups in C^td can be distinguished from chance; the largest is by age (gap 0.160; p = 0.500)."
    );
    assert_eq!(
        said[2],
        "The predicted risk by 4 years is 40.0 % on average, the observed one 50.0 %, O/E 1.250 (1.050 to 1.450): the \
         model underestimates. The risk is underestimated for age = young (O/E 1.250 (1.050 to 1.450)). Too few events \
         (under 20 by then) to judge sex = female, sex = male and age = <b>old & \"frail\"</b>. No observed risk by then is \
         known for age = unknown."
    );
}

/// The verdict on a report whose groups of `sex` have this p value of the gap (raw and adjusted), this interval of the gap
/// and this p value of the two groups; `age` differs by neither test.
fn said(of_gap: Option<[f64; 2]>, lower: f64, of_pair: f64) -> String {
    let mut report = report();
    let sex = &mut report.metrics[0].attributes[0];
    match (of_gap, &mut sex.gap_by_chance) {
        (Some([p, holm]), Some(by_chance)) => (by_chance.p_value, by_chance.p_holm) = (p, Some(holm)),
        (_, by_chance) => *by_chance = None,
    }
    sex.gap.lower = Some(lower);
    sex.differences[0].difference.p_value = Some(of_pair);
    largest_difference(&report.metrics[0], &report)
}

#[test]
fn groups_differ_if_both_tests_say_so_and_two_are_named_if_they_differ_by_themselves() {
    let none = "No difference between groups in C^td can be distinguished from chance; the largest is by age (gap 0.160; p = 0.500).";
    assert_eq!(said(Some([0.07, 0.14]), 0.0, 0.06), none);
    assert_eq!(
        said(Some([0.02, 0.04]), 0.01, 0.03),
        "Chance does not explain the differences in C^td by sex (gap 0.050, 0.062 by chance; p = 0.040). Most of all female \
         minus male: 0.050 (interval -0.140 to 0.130; p = 0.030)."
    );
    assert!(
        said(Some([0.02, 0.04]), 0.01, 0.06)
            .ends_with("Which of its groups differ cannot be said: no pair of them is shown to differ.")
    );
    let alone = "The difference by sex would be significant if no other attribute had been tested (p = 0.030).";
    assert_eq!(said(Some([0.03, 0.06]), 0.01, 0.03), format!("{none} {alone}"));
    assert_eq!(said(None, 0.01, 0.03), format!("{none} {alone}"), "0.03 for each of two attributes is 0.06");
    assert!(said(None, 0.01, 0.02).contains("by sex (gap 0.050; p = 0.040). Most of all female minus male"));
}

#[test]
fn where_exchanged_labels_and_the_interval_disagree_nothing_is_said_about_a_difference() {
    assert_eq!(
        said(Some([0.02, 0.04]), 0.0, 0.06),
        "Whether groups differ in C^td cannot be said: by sex (gap 0.050, 0.062 by chance; p = 0.020), interval 0.000 to \
         0.173. Groups whose labels are exchanged rarely have a gap as large (p = 0.020): the two tests disagree, so nothing \
         can be said about a difference."
    );
    let often = said(Some([0.06, 0.12]), 0.01, 0.04);
    assert!(
        often.contains("Groups whose labels are exchanged often have a gap as large (p = 0.060): the two"),
        "{often}"
    );
}

#[test]
fn the_largest_of_the_clear_differences_is_named_and_other_attributes_that_differ() {
    let mut report = report();
    let sex = &mut report.metrics[0].attributes[0];
    sex.gap.lower = Some(0.01);
    (sex.gap_by_chance.as_mut().unwrap().p_value, sex.gap_by_chance.as_mut().unwrap().p_holm) = (0.01, Some(0.01));
    let age = &mut report.metrics[0].attributes[1];
    age.gap.lower = Some(0.01);
    let mut pair = |value: f64, p: f64| {
        let mut pair = age.differences[0].clone();
        (pair.first, pair.difference.value, pair.difference.p_value) = (value.to_string(), Some(value), Some(p));
        age.differences.push(pair);
    };
    pair(-0.1, 0.001);
    pair(0.05, 0.001);
    let said = largest_difference(&report.metrics[0], &report);
    assert!(said.contains("by age (gap 0.160; p = 0.002). Most of all -0.1 minus"), "{said}");
    assert!(said.ends_with("Nor does it explain those by sex."), "{said}");
    report.metrics[0].attributes[0].gap.lower = Some(0.0);
    let said = largest_difference(&report.metrics[0], &report);
    assert!(said.ends_with("Nothing can be said about those by sex: the two tests disagree."), "{said}");
}

#[test]
fn a_poor_ranking_and_absent_intervals_are_called_by_their_names() {
    let mut report = report();
    report.metrics[0].overall.lower = Some(0.49);
    assert!(verdict(&report, "")[0].starts_with("These data do not show that the model ranks better than guessing"));
    for attribute in &mut report.metrics[0].attributes {
        attribute.differences.clear();
        attribute.gap_by_chance = None;
    }
    assert!(verdict(&report, "")[1].starts_with("Whether groups differ in C^td cannot be said"));
    report.groups_summary[0].at_horizon = None;
    report.groups_summary[0].at_horizon_undefined = Some("no follow-up".to_owned());
    let last = verdict(&report, "").pop().unwrap();
    assert_eq!(last, "Whether the predicted risks by 4 are right cannot be said: no follow-up.");
}

#[test]
fn without_an_interval_nothing_is_said_about_guessing() {
    let mut report = report();
    let all = &mut report.metrics[0].overall;
    (all.value, all.lower, all.upper) = (Some(0.95), None, None);
    let said = verdict(&report, "")[0].clone();
    assert!(said.starts_with("Whether the model ranks better than guessing was not tested: C^td 0.950, AUC"), "{said}");
    // All replicates of a single event have one value, which is no interval either.
    let all = &mut report.metrics[0].overall;
    (all.lower, all.upper, all.n_events) = (Some(0.95), Some(0.95), 1);
    assert_eq!(ranking(&report.metrics[0].overall), "Whether the model ranks better than guessing was not tested");
    report.metrics[0].overall.n_events = 61;
    assert_eq!(ranking(&report.metrics[0].overall), "The model ranks excellently");
    // A corrected interval need not contain the value.
    report.metrics[0].overall.value = Some(0.5);
    assert_eq!(ranking(&report.metrics[0].overall), "These data do not show that the model ranks better than guessing");
}

#[test]
fn a_group_of_one_subject_has_a_ratio_without_an_interval_and_a_threshold_no_equals_sign() {
    let mut report = report();
    let group = &mut report.groups_summary[1];
    group.n_subjects = 1;
    group.level = Some("<= 60".to_owned());
    let risk = group.at_horizon.as_mut().unwrap();
    (risk.ratio, risk.ratio_interval, risk.n_events) = (Some(4.922), Some((4.922, 4.922)), 1);
    let ratio = Ratio::of(&report.groups_summary[1], &report).unwrap();
    assert_eq!((ratio.to_string().as_str(), ratio.texts().1), ("4.922", None));
    assert!(ratio.side().is_none());
    assert_eq!(name(&report.groups_summary[1]), "sex <= 60");
    // No event by the horizon: every replicate has the ratio 0.
    let group = &mut report.groups_summary[2];
    let risk = group.at_horizon.as_mut().unwrap();
    (risk.ratio, risk.ratio_interval, risk.n_events) = (Some(0.0), Some((0.0, 0.0)), 0);
    assert_eq!(Ratio::of(&report.groups_summary[2], &report).unwrap().to_string(), "0.000");
}

#[test]
fn the_ranking_is_judged_by_the_metric_that_the_groups_are_compared_in() {
    let mut report = report();
    let mut first = report.metrics[0].clone();
    (first.name, first.label) = ("uno-c".to_owned(), "Uno's C".to_owned());
    report.metrics[0].overall.lower = Some(0.49);
    (first.overall.value, first.overall.lower) = (Some(0.72), Some(0.65));
    report.metrics.insert(0, first);
    let said = &verdict(&report, "")[0];
    assert!(said.starts_with("The model ranks acceptably: Uno's C 0.720 (0.650 to"), "{said}");
    assert!(said.contains("C^td "), "{said}");
}

#[test]
fn the_interval_of_the_bootstrap_is_preferred_at_the_same_horizon() {
    let mut report = report();
    let mut metric = report.metrics[0].clone();
    (metric.name, metric.horizon) = ("observed-expected".to_owned(), Some(4.0));
    report.metrics.push(metric);
    let of = |report: &EvaluationReport, group: usize| {
        Ratio::of(&report.groups_summary[group], report).map(|ratio| ratio.to_string())
    };
    assert_eq!(of(&report, 0).unwrap(), "0.720 (0.670 to 0.780)");
    assert_eq!(of(&report, 1).unwrap(), "0.740 (0.690 to 0.800)");
    report.metrics.last_mut().unwrap().horizon = Some(5.0);
    assert_eq!(of(&report, 1).unwrap(), "1.250 (0.750 to 1.750)");
    assert_eq!(of(&report, 5), None);
}
