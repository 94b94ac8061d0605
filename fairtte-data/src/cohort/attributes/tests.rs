//! Groups of a few made-up values.

use super::*;
use crate::cohort::Sample;

fn cohort(values: &[&str]) -> Cohort {
    let sample = |i: usize| Sample {
        sample_id: format!("s{i}").into(),
        subject_id: format!("p{i}").into(),
        unit: None,
        image: format!("s{i}.png").into(),
        time: 1.0,
        event: true,
        competing: None,
        source_row: i + 2,
    };
    let value = |text: &&str| (!text.is_empty()).then(|| (*text).to_owned());
    Cohort {
        name: "made-up".to_owned(),
        time_unit: "days".to_owned(),
        source: "made-up.csv".into(),
        samples: (0..values.len()).map(sample).collect(),
        attributes: vec![AttributeColumn::new("trait", values.iter().map(value).collect())],
        provenance: None,
        cause: None,
    }
}

fn fit(config: &str, values: &[&str], train_rows: &[usize]) -> Result<FittedAttributes, DataError> {
    let config: AttributeConfig = toml::from_str(&format!("name = 'trait'\n{config}")).unwrap();
    FittedAttributes::fit(&[config], &cohort(values), train_rows)
}

fn indices(groups: &Groups) -> Vec<Option<u32>> {
    groups.membership().iter().map(|group| group.map(|g| g.0)).collect()
}

#[test]
fn a_threshold_puts_its_own_value_into_the_lower_group() {
    let fitted = fit("threshold = 60", &["60", "60.5", "", "12"], &[0]).unwrap();
    let groups = &fitted.groups(&[0, 1, 2, 3])[0];
    assert_eq!(groups.levels(), ["<= 60", "> 60"]);
    assert_eq!(indices(groups), [Some(0), Some(1), None, Some(0)]);
    assert_eq!(fitted.ungrouped()[0].to_string(), "samples without trait, in no group: 1");
}

#[test]
fn several_thresholds_make_groups_between_them_each_with_its_upper_end() {
    let fitted = fit("threshold = [40, 60.5, 75]", &["40", "40.1", "60.5", "61", "75", "99", "", "-3"], &[0]).unwrap();
    let groups = &fitted.all()[0];
    assert_eq!(groups.levels(), ["<= 40", "> 40 to 60.5", "> 60.5 to 75", "> 75"]);
    assert_eq!(indices(groups), [Some(0), Some(1), Some(1), Some(2), Some(2), Some(3), None, Some(0)]);
    let one = fit("threshold = [60]", &["60", "61"], &[0]).unwrap();
    assert_eq!(one.all(), fit("threshold = 60", &["60", "61"], &[0]).unwrap().all());
}

#[test]
fn thresholds_that_do_not_ascend_are_refused_and_a_list_is_written_as_it_is_read() {
    for (list, shown) in
        [("[60, 40]", "[60.0, 40.0]"), ("[60, 60]", "[60.0, 60.0]"), ("[]", "[]"), ("[1, inf]", "[1.0, inf]")]
    {
        let error =
            toml::from_str::<AttributeConfig>(&format!("name = 'age'\nthreshold = {list}")).unwrap_err().to_string();
        assert!(error.contains(&format!("list {shown}")) && error.contains("ascending finite numbers"), "{error}");
    }
    let threshold = Some(Threshold::Values(vec![2.0, 1.0]));
    let config = AttributeConfig { threshold, ..AttributeConfig::new("trait") };
    let error = FittedAttributes::fit(&[config], &cohort(&["1"]), &[0]).unwrap_err().to_string();
    assert_eq!(error, "attribute \"trait\": threshold is [2.0, 1.0], expected ascending finite numbers");
    let config: AttributeConfig = toml::from_str("name = 'age'\nthreshold = [40, 60.5]").unwrap();
    assert_eq!(toml::from_str::<AttributeConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
}

#[test]
fn the_median_is_that_of_the_training_samples() {
    let fitted = fit("threshold = 'median'", &["1", "2", "4", "1000", "3000", "2000"], &[0, 1, 2, 3]).unwrap();
    assert_eq!(fitted.all()[0].levels(), ["<= 3", "> 3"]);
    let changed = fit("threshold = 'median'", &["1", "2", "4", "1000", "-7", "-9"], &[0, 1, 2, 3]).unwrap();
    assert_eq!(changed.all()[0].levels(), fitted.all()[0].levels(), "values outside the training part are not used");
}

#[test]
fn a_reference_stands_against_all_others_whatever_the_case() {
    let fitted = fit("reference = 'White'", &["WHITE", "Asian", "", "white"], &[0, 1, 2]).unwrap();
    assert_eq!(fitted.all()[0].levels(), ["Non-White", "White"]);
    assert_eq!(indices(&fitted.all()[0]), [Some(1), Some(0), None, Some(1)]);
    let message = fit("reference = 'Wihte'", &["White", "Asian"], &[0, 1]).unwrap_err().to_string();
    assert!(message.ends_with("\"Wihte\", nearest is \"White\""), "{message}");
}

#[test]
fn a_reference_that_the_data_set_knows_may_be_that_of_nobody() {
    let config =
        |reference: &str| AttributeConfig { reference: Some(reference.to_owned()), ..AttributeConfig::new("trait") };
    let mut cohort = cohort(&["BLACK", "WHITE - RUSSIAN", ""]);
    let fit =
        |cohort: &Cohort, reference: &str, rows: &[usize]| FittedAttributes::fit(&[config(reference)], cohort, rows);
    assert!(fit(&cohort, "White", &[0]).is_err(), "it may be misspelt");
    cohort.attributes[0].known = &["Non-White", "White"];
    let fitted = fit(&cohort, "white", &[0]).unwrap();
    assert_eq!(indices(&fitted.all()[0]), [Some(0), Some(0), None], "values without coding rules");
    cohort.attributes[0].coded = Some(vec![Some("Non-White"), Some("White"), Some("Non-White")]);
    let fitted = fit(&cohort, "White", &[0]).unwrap();
    assert_eq!(fitted.all()[0].levels(), ["Non-White", "White"]);
    assert_eq!(indices(&fitted.all()[0]), [Some(0), Some(1), Some(0)]);
    assert!(fit(&cohort, "Wihte", &[0, 1]).is_err());
    assert!(fit(&cohort, "Black", &[0, 1]).is_ok(), "a value that is written in the table");
}

#[test]
fn recorded_groups_are_kept_where_the_record_lacks_what_made_them() {
    let config = AttributeConfig { reference: Some("White".to_owned()), ..AttributeConfig::new("trait") };
    let mut cohort = cohort(&["BLACK", "WHITE - RUSSIAN", ""]);
    cohort.attributes[0].coded = Some(vec![Some("Non-White"), Some("White"), None]);
    let fitted = FittedAttributes::fit(&[config], &cohort, &[0, 1]).unwrap();
    // As a record is read again: the raw texts alone.
    cohort.attributes[0].coded = None;
    let made_again = FittedAttributes::apply(fitted.rules(), &cohort, &[]).unwrap();
    assert_eq!(indices(&made_again.all()[0]), [Some(0), Some(0), None], "no text of the table is White");
    let other = Groups::new("site", vec!["x".to_owned()], vec![Some(GroupId(0)); 3]).unwrap();
    let recorded = [other.clone(), fitted.all()[0].clone()];
    let found = FittedAttributes::recorded(fitted.rules(), &recorded, &cohort).unwrap();
    assert_eq!(found.all(), fitted.all());
    assert_eq!((found.rules(), found.ungrouped()), (fitted.rules(), fitted.ungrouped()));
    assert!(matches!(
        FittedAttributes::recorded(fitted.rules(), &[other], &cohort),
        Err(DataError::UnknownAttribute { .. })
    ));
    let short = [Groups::new("trait", vec!["White".to_owned()], vec![None]).unwrap()];
    assert!(matches!(
        FittedAttributes::recorded(fitted.rules(), &short, &cohort),
        Err(DataError::ShapeMismatch { found: 1, expected: 3, .. })
    ));
}

#[test]
fn a_level_seen_only_outside_training_belongs_to_no_group_and_is_counted() {
    let fitted = fit("", &["M", "F", "X", "X", ""], &[0, 1]).unwrap();
    assert_eq!(fitted.all()[0].levels(), ["F", "M"]);
    assert_eq!(indices(&fitted.groups(&[3, 1, 0])[0]), [None, Some(0), Some(1)]);
    let counts: Vec<_> = fitted.ungrouped().iter().map(|u| (u.value.as_deref(), u.n_samples)).collect();
    assert_eq!(counts, [(None, 1), (Some("X"), 2)]);
}

#[test]
fn given_levels_keep_their_order_even_if_empty() {
    let fitted = fit("levels = ['old', 'young', 'other']", &["Young", "old", "none"], &[0]).unwrap();
    assert_eq!(fitted.all()[0].levels(), ["old", "young", "other"]);
    assert_eq!(indices(&fitted.all()[0]), [Some(1), Some(0), None]);
}

#[test]
fn a_value_that_is_no_number_names_sample_and_row() {
    let message = fit("threshold = 60", &["61", "sixty"], &[0]).unwrap_err().to_string();
    assert!(message.starts_with("trait of sample \"s1\" is \"sixty\", expected a finite number"), "{message}");
    assert!(message.ends_with("(made-up.csv, row 3)"), "{message}");
}

#[test]
fn contradicting_or_impossible_settings_are_refused() {
    for (config, expected) in [
        ("threshold = 60\nreference = 'F'", "at most one of"),
        ("levels = []", "list of different names"),
        ("levels = ['a', 'A']", "list of different names"),
        ("threshold = 'median'", "no training sample has a value"),
        ("", "no training sample has a value"),
    ] {
        let message = fit(config, &["", "F"], &[0]).unwrap_err().to_string();
        assert!(message.contains(expected), "{config}: {message}");
    }
    let error = toml::from_str::<AttributeConfig>("name = 'age'\nthreshold = 'mean'").unwrap_err().to_string();
    assert!(error.contains("a finite number, \"median\", or a list of ascending finite numbers"), "{error}");
}

#[test]
fn settings_survive_a_round_trip() {
    for text in ["name = \"age\"\nthreshold = 60.5\n", "name = \"age\"\nthreshold = \"median\"\n"] {
        let config: AttributeConfig = toml::from_str(text).unwrap();
        assert_eq!(toml::to_string(&config).unwrap(), text);
    }
}
