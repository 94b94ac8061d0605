use approx::assert_abs_diff_eq;

use super::*;

fn per_group(values: &[Result<f64, MetricError>]) -> PerGroup<f64> {
    let group = |(level, value): (usize, &Result<f64, MetricError>)| GroupValue {
        group: GroupId(u32::try_from(level).unwrap()),
        level: format!("level {level}"),
        n: 10,
        n_events: 5,
        n_subjects: None,
        n_comparable: None,
        value: value.clone(),
    };
    let groups = values.iter().enumerate().map(group).collect();
    PerGroup { attribute: "race".to_owned(), groups, n_missing: 0 }
}

#[test]
fn differences_leave_out_undefined_groups_and_count_them() {
    let values = per_group(&[Ok(0.6), Err(MetricError::NoEvents { n: 10 }), Ok(0.8), Ok(0.7)]);
    assert_eq!((values.n_defined(), values.n_undefined()), (3, 1));
    assert_abs_diff_eq!(values.gap().unwrap(), 0.2, epsilon = 1e-15);
    assert_abs_diff_eq!(values.ratio().unwrap(), 0.75, epsilon = 1e-15);
    assert_abs_diff_eq!(values.gap_to_overall(0.65).unwrap(), 0.15, epsilon = 1e-15);
    assert_eq!(values.worst(Direction::HigherIsBetter).unwrap().0.level, "level 0");
    assert_eq!(values.worst(Direction::LowerIsBetter).unwrap().0.level, "level 2");
}

#[test]
fn equity_scaling_uses_one_minus_the_value_where_lower_is_better() {
    let values = per_group(&[Ok(0.2), Ok(0.3)]);
    let up = values.equity_scaling(0.25, Direction::HigherIsBetter).unwrap();
    let down = values.equity_scaling(0.25, Direction::LowerIsBetter).unwrap();
    assert_abs_diff_eq!(up, 0.25 / 1.1, epsilon = 1e-15);
    assert_abs_diff_eq!(down, 0.75 / 1.1, epsilon = 1e-15);
}

#[test]
fn one_defined_group_has_no_gap_and_an_equity_scaling_that_says_so() {
    let values = per_group(&[Ok(0.0), Err(MetricError::NoSamples)]);
    let expected = MetricError::TooFewGroups { attribute: "race".to_owned(), n_defined: 1, n_levels: 2 };
    assert_eq!(values.gap(), Err(expected.clone()));
    assert_eq!(values.worst(Direction::HigherIsBetter), Err(expected.clone()));
    assert_eq!(values.ratio_to_overall(0.5), Err(expected));
    let scaled = values.equity_scaled(EquityScaling::FairTte, 0.25, Direction::HigherIsBetter).unwrap();
    assert_eq!(scaled, EquityScaled { value: 0.2, n_groups: 1, n_undefined: 1 });
    let none = per_group(&[Err(MetricError::NoSamples)]).equity_scaling(0.5, Direction::HigherIsBetter);
    assert_eq!(none, Err(MetricError::NoDefinedGroup { attribute: "race".to_owned(), n_levels: 1 }));
    let small = || Err(MetricError::FewEvents { n_events: 6, needed: 10 });
    let said = per_group(&[Ok(0.7), small()]).gap().unwrap_err().to_string();
    let expected = "groups that are large enough to be compared (min-events 10), expected at least";
    assert_eq!(said, format!("attribute \"race\" has 1 of 2 {expected} 2"));
    let of_class = Err(MetricError::FewOfClass { n: 6, needed: 10 });
    let scaled = per_group(&[of_class, small()]).equity_scaling(0.5, Direction::HigherIsBetter).unwrap_err();
    assert_eq!(scaled.to_string(), format!("attribute \"race\" has 0 of 2 {expected} 1"));
    let no_gap = per_group(&[Err(MetricError::NoSamples)]).gap();
    let expected = MetricError::TooFewGroups { attribute: "race".to_owned(), n_defined: 0, n_levels: 1 };
    assert_eq!(no_gap, Err(expected));
}

#[test]
fn a_ratio_of_zeros_or_of_negative_values_is_refused() {
    let zero = per_group(&[Ok(0.0), Ok(0.0)]);
    assert!(matches!(zero.ratio(), Err(MetricError::ZeroDenominator { .. })));
    assert!(matches!(zero.ratio_to_overall(0.0), Err(MetricError::ZeroDenominator { .. })));
    assert_eq!(zero.ratio_to_overall(0.5), Ok(0.0));
    let negative = per_group(&[Ok(0.5), Ok(-0.25)]);
    let expected = MetricError::NegativeRatio { attribute: "race".to_owned(), value: -0.25 };
    assert_eq!(negative.ratio(), Err(expected.clone()));
    assert_eq!(negative.ratio_to_overall(0.5), Err(expected));
    let overall = per_group(&[Ok(0.5), Ok(0.25)]).ratio_to_overall(-1.0);
    assert_eq!(overall, Err(MetricError::NegativeRatio { attribute: "race".to_owned(), value: -1.0 }));
}

#[test]
fn a_value_that_is_no_finite_number_is_refused() {
    let found = per_group(&[Ok(0.5), Ok(f64::NAN)]).gap();
    assert!(matches!(found, Err(MetricError::NotFinite { what: "group value", .. })));
    let found = per_group(&[Ok(0.5), Ok(0.6)]).gap_to_overall(f64::INFINITY);
    assert!(matches!(found, Err(MetricError::NotFinite { what: "overall value", .. })));
    let found = per_group(&[Ok(f64::MAX), Ok(f64::MIN)]).gap();
    assert!(matches!(found, Err(MetricError::NotFinite { what: "difference of group values", .. })));
}

#[test]
fn zeros_of_both_signs_have_a_worst_group() {
    let values = per_group(&[Ok(0.0), Ok(-0.0)]);
    assert_eq!(values.worst(Direction::HigherIsBetter).unwrap().0.level, "level 0");
}

#[test]
fn small_groups_are_named_and_pairs_are_counted() {
    let mut values = per_group(&[Ok(0.6), Err(MetricError::NoEvents { n: 3 }), Ok(0.8)]);
    values.groups[1].n = 3;
    let values = values.with_comparable(|_| 45).map(|value| Ok(*value));
    assert_eq!(values.smallest().unwrap().level, "level 1");
    assert_eq!(values.smaller_than(10).map(|group| group.n).collect::<Vec<_>>(), [3]);
    let pairs: Vec<_> = values.groups.iter().map(|group| group.n_comparable).collect();
    assert_eq!(pairs, [Some(45), Some(0), Some(45)]);
}

#[test]
fn every_level_is_listed_with_its_counts_even_when_it_is_empty() {
    let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, false, true]).unwrap();
    let levels = vec!["F".to_owned(), "M".to_owned(), "other".to_owned()];
    let membership = vec![Some(GroupId(0)), None, Some(GroupId(0))];
    let groups = Groups::new("sex", levels, membership).unwrap();
    let subjects = ["a", "b", "a"].map(SubjectId::from);
    let rows = PerGroup::compute(&groups, &outcomes, Some(&subjects), |rows| Ok(rows.to_vec())).unwrap();
    assert_eq!(rows.groups[0].value, Ok(vec![0, 2]));
    assert_eq!((rows.groups[0].n, rows.groups[0].n_events, rows.groups[0].n_subjects), (2, 2, Some(1)));
    assert_eq!(rows.groups[2].value, Err(MetricError::NoSamples));
    assert_eq!((rows.groups.len(), rows.n_missing), (3, 1));
    let short = PerGroup::compute(&groups, &outcomes, Some(&subjects[..2]), |_| Ok(0.0));
    assert!(matches!(short, Err(MetricError::LengthMismatch { what: "subjects", found: 2, expected: 3 })));
}
