#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
use super::super::test_reports::{ODD_LEVEL, estimate, report};
use super::*;

/// The sentences on `age` in a report with a fourth group, `middle`, whose value lies between the two of the others.
fn on_age(change: impl Fn(&mut MetricReport)) -> String {
    let mut report = report();
    let age = &mut report.metrics[0].attributes[1];
    age.groups.push(GroupReport { level: "middle".to_owned(), estimate: estimate(0.7, 0.65, 0.76, [40, 20, 40]) });
    change(&mut report.metrics[0]);
    let said = statements(&report).into_iter().find(|statement| statement.topic == "By age");
    said.unwrap().lines.concat()
}

#[test]
fn a_group_with_few_events_is_neither_worst_nor_best_and_is_named() {
    let said = on_age(|metric| {
        let age = &mut metric.attributes[1];
        (age.few_events, age.gap) = (vec![ODD_LEVEL.to_owned()], estimate(0.07, 0.0, 0.2, [119, 69, 118]));
    });
    let min_events = report().settings.min_events;
    let expected = format!(
        "C^td differs by 0.070 (interval 0.000 to 0.200) between middle (0.700), the worst, and young (0.770), the best. Only 3 of \
         4 groups have a value. Not compared, with fewer than {min_events} events: {ODD_LEVEL} (0.610). "
    );
    assert!(said.starts_with(&expected), "{said}");
    let all = on_age(|_| {});
    assert!(all.contains("(0.610), the worst, and young (0.770), the best. Only 3 of 4"), "{all}");
    assert!(!all.contains("Not compared"), "{all}");
}

#[test]
fn where_no_direction_is_better_the_lowest_and_the_highest_group_are_named() {
    let expected = format!("between {ODD_LEVEL} (0.610), the lowest, and young (0.770), the highest.");
    let with_target = on_age(|metric| (metric.higher_is_better, metric.target) = (false, Some(1.0)));
    assert!(with_target.contains(&expected), "{with_target}");
    let without_best = on_age(|metric| (metric.higher_is_better, metric.no_best) = (false, true));
    assert!(without_best.contains(&expected), "{without_best}");
    let lower = on_age(|metric| metric.higher_is_better = false);
    assert!(lower.contains(&format!("young (0.770), the worst, and {ODD_LEVEL} (0.610), the best.")), "{lower}");
}
