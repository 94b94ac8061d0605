//! What the presentation must keep: every number once, names escaped, small groups said.
#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use fairtte_metrics::bias::{BiasSettings, bias_sources, principal_components, separability};
use fairtte_metrics::{GroupId, Groups, Outcomes, SubjectId};
use ndarray::Array2;

use super::*;

/// 90 people in three groups, the last with 4 events; the features of `<b>` are shifted, its times are not.
fn report() -> BiasReport {
    let n: u32 = 90;
    let group = |row: u32| if row % 9 == 8 { 2 } else { row % 2 };
    let time = (0..n).map(|row| f64::from(1 + (row * 37) % 90)).collect();
    let event = (0..n).map(|row| if group(row) == 2 { row < 36 } else { row % 3 != 0 }).collect();
    let outcomes = Outcomes::new(time, event).unwrap();
    let membership = (0..n).map(|row| Some(GroupId(group(row)))).collect();
    let groups = Groups::new("site", vec!["a".into(), "<b>".into(), "c".into()], membership).unwrap();
    let values = Array2::from_shape_fn((90, 3), |(row, column)| {
        let row = u32::try_from(row).unwrap();
        let shift = if group(row) == 1 { 1.5 } else { 0.0 };
        (f64::from(row) * (1.3 + column as f64)).sin() + shift
    });
    let subjects: Vec<SubjectId> = (0..n).map(|row| SubjectId::new(format!("s{row}"))).collect();
    let settings = BiasSettings { n_permutations: 99, n_replicates: 50, ..BiasSettings::default() };
    let components = principal_components(&values, 64).unwrap();
    let counts = |group: GroupId| {
        let rows = groups.rows(group);
        let n_events = rows.iter().filter(|row| outcomes.event()[**row]).count();
        let level = groups.levels()[group.index()].clone();
        GroupCounts { level, n: rows.len(), n_events, n_subjects: rows.len() }
    };
    let attribute = AttributeBias {
        groups: groups.ids().map(counts).collect(),
        sources: bias_sources(&subjects, &components.scores, &outcomes, &groups, &settings).unwrap(),
        separability: separability(&subjects, &components.scores, &groups, &settings).unwrap(),
    };
    BiasReport {
        features: "f.csv".to_owned(),
        cohort: "c.csv".to_owned(),
        n: 90,
        n_events: outcomes.n_events(),
        n_subjects: 90,
        reduction: components.reduction,
        columns: None,
        settings,
        attributes: vec![attribute],
        notes: vec!["A <note>.".to_owned()],
    }
}

#[test]
fn the_table_fits_eighty_columns_and_says_what_is_not_compared() {
    let report = report();
    let table = render_table(&report, 10);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(table.contains("not compared: c (4 events, expected at least 10)"), "{table}");
    assert!(table.contains("between a and <b>"), "{table}");
    assert!(table.contains("Largest after correction for chance: features, 0."), "{table}");
    for line in report.attributes[0].lines() {
        let row = table.lines().find(|row| row.trim_start().starts_with(&format!("{}  ", line.name))).unwrap();
        let found = line.found.unwrap();
        assert!(row.contains(&number(found.value)) && row.contains(&number(found.chance)), "{row}");
    }
}

#[test]
fn p_values_are_adjusted_over_the_five_sources() {
    let lines = report().attributes[0].lines();
    let p: Vec<(f64, f64)> =
        lines[..5].iter().map(|l| l.found.as_ref().unwrap()).map(|f| (f.p.unwrap(), f.p_holm.unwrap())).collect();
    let smallest = p.iter().fold((1.0, 1.0), |a: (f64, f64), b| if b.0 < a.0 { *b } else { a });
    assert!((smallest.1 - 5.0 * smallest.0).abs() < 1e-12, "{p:?}");
    assert!(lines[5].found.as_ref().unwrap().p.is_none());
}

#[test]
fn the_page_has_every_line_and_escapes_names() {
    let page = render_page(&report()).unwrap();
    assert!(!page.contains("<b>") || page.contains("&lt;b&gt;"), "names are escaped");
    assert!(page.contains("&lt;b&gt;") && page.contains("A &lt;note&gt;."));
    assert!(page.contains("--ink:"), "the style sheet of all pages");
    for line in report().attributes[0].lines() {
        let row = format!("<th scope=\"row\">{}</th>", line.name);
        assert!(page.contains(&row), "{row}");
    }
    assert_eq!(page.matches("<svg ").count(), 1);
}

#[test]
fn the_flat_table_has_a_row_per_line_and_group() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bias.csv");
    let report = report();
    write_flat(&path, &report).unwrap();
    let table = fairtte_data::table::Table::read(&path).unwrap();
    assert_eq!(table.n_rows(), 6 + 3);
    let values = table.text("value").unwrap();
    for (line, cell) in report.attributes[0].lines().iter().zip(values) {
        assert_eq!(cell.unwrap(), line.found.as_ref().unwrap().value.to_string());
    }
    assert_eq!(table.text("events").unwrap()[8].as_deref(), Some("4"));
    assert!(table.text("reason").unwrap()[1].as_deref().unwrap().contains("4 events"));
}

#[test]
fn without_a_difference_beyond_chance_the_sentence_says_so() {
    let mut report = report();
    for source in &mut report.attributes[0].sources.sources {
        source.estimate.as_mut().unwrap().permutation.p_value = 0.04;
    }
    assert!(report.attributes[0].sentence().starts_with("No source differs"), "Holm's adjustment: 5 times 0.04");
}
