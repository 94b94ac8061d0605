//! Every label and reason of the made-up tables in `tests/fixtures/adni`, whose expected column was written manually.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::{Path, PathBuf};

use super::super::*;
use crate::cohort::Exclusions;
use crate::table::Table;
use crate::{Cohort, FittedAttributes, build_cohort};

pub(super) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/adni")
}

/// A copy of the fixture tables in a new folder, each text changed by `change(file name, text)`.
pub(super) fn changed_tables(change: impl Fn(&str, String) -> String) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["adni_images.csv", "DXSUM_PDXCONV_ADNIALL.csv"] {
        let text = std::fs::read_to_string(fixtures().join(name)).unwrap();
        std::fs::write(folder.path().join(name), change(name, text)).unwrap();
    }
    folder
}

/// One row of the result: image, kept, reason, time and event.
pub(super) type Row = (String, bool, String, String, String);

/// The outcome of every row of the image list, in its order.
pub(super) fn outcome(config: AdniConfig) -> Result<Vec<Row>, DataError> {
    let Unlabelled { manifest, rule, .. } = Adni::new(config).read()?;
    let row = |index: usize| {
        let name = manifest.rows[index].display_id();
        Ok(match rule.label(&manifest, index)? {
            Label::Kept { time, event } => (name, true, String::new(), time.to_string(), u8::from(event).to_string()),
            Label::Competing { .. } => unreachable!("one kind of event"),
            Label::Excluded { reason, .. } => (name, false, reason.code().to_owned(), String::new(), String::new()),
        })
    };
    (0..manifest.rows.len()).map(row).collect()
}

pub(super) fn cohort(config: AdniConfig) -> (Cohort, Exclusions) {
    let adapter = Adni::new(config);
    let attributes = adapter.default_attributes();
    build_cohort(adapter.read().unwrap(), &attributes).unwrap()
}

/// The expected rows, and expected age group and sex.
fn expected(path: &Path) -> (Vec<Row>, Vec<[String; 2]>) {
    let table = Table::read(path).unwrap();
    let column =
        |name: &str| -> Vec<String> { table.text(name).unwrap().into_iter().map(Option::unwrap_or_default).collect() };
    let (images, keep, reasons) = (column("image"), column("keep"), column("reason"));
    let (times, events) = (column("tte6"), column("event"));
    let (age_groups, sexes) = (column("age_grp"), column("sex"));
    let row = |i: usize| (images[i].clone(), keep[i] == "1", reasons[i].clone(), times[i].clone(), events[i].clone());
    let groups = |i: usize| [age_groups[i].clone(), sexes[i].clone()];
    let n = table.n_rows();
    ((0..n).map(row).collect(), (0..n).map(groups).collect())
}

fn check_folder(folder: &Path) {
    let (rows, groups) = expected(&folder.join("expected_adni.csv"));
    assert_eq!(outcome(AdniConfig::new(folder)).unwrap(), rows);

    let (cohort, exclusions) = cohort(AdniConfig::new(folder));
    assert_eq!(cohort.n() + exclusions.n(), rows.len(), "rows read = kept + excluded");
    let attributes = Adni::new(AdniConfig::new(folder)).default_attributes();
    let all_rows = cohort.all_rows();
    let fitted = FittedAttributes::fit(&attributes, &cohort, &all_rows).unwrap();
    assert_eq!(fitted.all()[0].levels(), ["<= 80", "> 80"]);
    assert_eq!(fitted.all()[1].levels(), ["F", "M"]);
    let text = |group: Option<fairtte_metrics::GroupId>| group.map(|group| group.0.to_string()).unwrap_or_default();
    let [ages, sexes] = [0, 1].map(|i| fitted.all()[i].membership().to_vec());
    let found: Vec<_> = ages.into_iter().zip(sexes).map(|(age, sex)| [text(age), text(sex)]).collect();
    let kept = rows.iter().zip(groups).filter(|(row, _)| row.1).map(|(_, groups)| groups);
    assert_eq!(found, kept.collect::<Vec<_>>());

    let mut literal = AdniConfig::new(folder);
    literal.final_visit = FinalVisit::Literal;
    let mut literal_rows = rows;
    for row in &mut literal_rows {
        if ["I900005", "I900010", "I900013", "I900018"].contains(&row.0.as_str()) {
            *row = (row.0.clone(), false, "final_visit".to_owned(), String::new(), String::new());
        }
    }
    assert_eq!(outcome(literal).unwrap(), literal_rows);
}

#[test]
fn every_label_reason_and_group_of_the_fixture_tables_is_as_listed_by_rule_and_literally() {
    check_folder(&fixtures());
}

#[test]
fn the_shared_copy_of_the_fixture_tables_gives_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures");
    if folder.join("expected_adni.csv").exists() {
        check_folder(&folder);
    } else {
        eprintln!("skipped: {} is absent", folder.display());
    }
}

#[test]
fn a_subject_without_any_diagnosis_has_a_reason_of_its_own() {
    let folder = changed_tables(|name, text| {
        let keep = |line: &&str| name == "adni_images.csv" || !line.contains("906_S_6006");
        text.lines().filter(keep).collect::<Vec<_>>().join("\n")
    });
    let before = outcome(AdniConfig::new(fixtures())).unwrap();
    let after = outcome(AdniConfig::new(folder.path())).unwrap();
    for (before, after) in before.into_iter().zip(after) {
        let expected = if before.0 == "I900016" { "no_diagnosis" } else { &before.2 };
        assert_eq!(after.2, expected, "{}", before.0);
    }
}

#[test]
fn line_ends_of_other_systems_and_missing_columns_change_no_label() {
    let before = outcome(AdniConfig::new(fixtures())).unwrap();
    let folder = changed_tables(|_, text| format!("\u{feff}{}", text.replace('\n', "\r\n")));
    assert_eq!(outcome(AdniConfig::new(folder.path())).unwrap(), before);

    // ADNI4 writes PHASE; PTID may be missing, so that RID alone identifies the person.
    let without_ptid = changed_tables(|name, text| {
        if name == "adni_images.csv" { text } else { without_columns(&text, &["PTID", "USERDATE2"], "Phase", "PHASE") }
    });
    assert_eq!(outcome(AdniConfig::new(without_ptid.path())).unwrap(), before);
    let without_rid = changed_tables(|name, text| {
        if name == "adni_images.csv" { text } else { without_columns(&text, &["RID"], "EXAMDATE", "ExamDate") }
    });
    assert_eq!(outcome(AdniConfig::new(without_rid.path())).unwrap(), before);
}

/// The table without `names`, and with one column renamed.
pub(super) fn without_columns(text: &str, names: &[&str], from: &str, to: &str) -> String {
    let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let drop: Vec<bool> = header.iter().map(|cell| names.contains(&cell.trim_matches('"'))).collect();
    let line = |line: &str| {
        let kept = line.split(',').zip(&drop).filter(|(_, drop)| !**drop).map(|(cell, _)| cell);
        kept.collect::<Vec<_>>().join(",")
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    lines.join("\n").replacen(&format!("\"{from}\""), &format!("\"{to}\""), 1)
}

#[test]
fn without_the_column_of_one_phase_only_that_phase_loses_its_diagnoses() {
    for (column, lost) in
        [("DXCHANGE", vec!["I900011", "I900012", "I900013"]), ("DIAGNOSIS", vec!["I900014", "I900015", "I900016"])]
    {
        let folder =
            changed_tables(
                |name, text| {
                    if name == "adni_images.csv" { text } else { without_columns(&text, &[column], "-", "-") }
                },
            );
        let rows = outcome(AdniConfig::new(folder.path())).unwrap();
        let without = rows.iter().filter(|row| row.2 == "no_diagnosis").map(|row| row.0.as_str());
        assert_eq!(without.collect::<Vec<_>>(), lost);
    }
}
