//! The made-up tables of `tests/fixtures/mimic` under the default and every option.

mod laws;

use std::io::Write as _;
use std::path::Path;

use super::*;
use crate::cohort::Exclusions;
use crate::{Cohort, DataConfig, FittedAttributes, build_cohort};

const METADATA_FILE: &str = "mimic-cxr-2.0.0-metadata.csv";
pub(super) const FILES: [&str; 3] = [METADATA_FILE, "patients.csv", "admissions.csv"];

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mimic");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// The three tables of the fixtures, each written below `folder` under the path given for it.
fn unpack(folder: &Path, paths: [&str; 3], change: &dyn Fn(&str, String) -> String) {
    for (name, path) in FILES.into_iter().zip(paths) {
        let text = change(name, fixture(name));
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        if path.extension().is_some_and(|ending| ending == "gz") {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            std::fs::write(path, encoder.finish().unwrap()).unwrap();
        } else {
            std::fs::write(path, text).unwrap();
        }
    }
}

fn unchanged(_: &str, text: String) -> String {
    text
}

/// One line per row of the metadata, as `expected_mimic.csv` has it: identity (last two digits), subject, kept, reason,
/// time, event, and of kept rows age, its group, sex, race, its group.
fn lines(cohort: &Cohort, exclusions: &Exclusions) -> Vec<String> {
    let fitted = FittedAttributes::fit(
        &MimicCxr::new(MimicCxrConfig::default()).default_attributes(),
        cohort,
        &cohort.all_rows(),
    );
    let fitted = fitted.unwrap();
    let group = |attribute: usize, row: usize| {
        fitted.all()[attribute].membership()[row].map(|group| group.0.to_string()).unwrap_or_default()
    };
    let value = |attribute: usize, row: usize| cohort.attributes[attribute].values[row].clone().unwrap_or_default();
    let mut lines: Vec<String> = (0..cohort.n())
        .map(|row| {
            let sample = &cohort.samples[row];
            let id = sample.sample_id.as_str();
            format!(
                "{},{},1,,{},{},{},{},{},{},{}",
                &id[id.len() - 2..],
                sample.subject_id,
                sample.time,
                u8::from(sample.event),
                value(0, row),
                group(0, row),
                group(1, row),
                value(2, row),
                group(2, row)
            )
        })
        .collect();
    for exclusion in exclusions.list() {
        let id = exclusion.sample_id.as_str();
        lines.push(format!("{},,0,{},,,,,,,", &id[id.len() - 2..], exclusion.reason));
    }
    lines.sort();
    lines
}

/// The lines of `expected_mimic.csv` in the same form, after those of `changes` (by identity) took their place.
fn expected(changes: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = fixture("expected_mimic.csv").lines().skip(1).map(str::to_owned).collect();
    for line in &mut lines {
        if let Some(change) = changes.iter().find(|change| change[..2] == line[..2]) {
            (*change).clone_into(line);
        }
        // The exclusion list names no subject.
        let cells: Vec<&str> = line.split(',').collect();
        if cells[2] == "0" {
            *line = format!("{},,0,{},,,,,,,", cells[0], cells[3]);
        }
    }
    lines.sort();
    lines
}

fn labelled(config: &str) -> (Cohort, Exclusions) {
    let folder = tempfile::tempdir().unwrap();
    unpack(folder.path(), FILES, &unchanged);
    let mut config: MimicCxrConfig = toml::from_str(config).unwrap();
    config.root = Some(folder.path().to_owned());
    cohort_of(config).unwrap()
}

pub(super) fn cohort_of(config: MimicCxrConfig) -> Result<(Cohort, Exclusions), DataError> {
    let adapter = MimicCxr::new(config);
    build_cohort(adapter.read()?, &adapter.default_attributes())
}

fn check(config: &str, changes: &[&str]) {
    let (cohort, exclusions) = labelled(config);
    exclusions.check(cohort.n()).unwrap();
    assert_eq!(lines(&cohort, &exclusions), expected(changes), "{config}");
}

#[test]
fn every_fixture_row_gets_the_label_or_the_reason_that_is_listed() {
    check("", &[]);
}

#[test]
fn every_option_changes_the_rows_that_are_listed_and_no_other() {
    check("after-discharge = 'all'", &["12,99000006,0,after_last_discharge,,,,,,,"]);
    let in_hospital = [
        "10,99000005,1,,370,0,45,0,1,PORTUGUESE,0",
        "11,99000006,1,,370,0,61,1,0,PATIENT DECLINED TO ANSWER,0",
        "12,99000006,0,after_last_discharge,,,,,,,",
    ];
    check("death = 'in-hospital'", &in_hospital);
    let last = [
        "01,99000001,1,,50,1,60,0,0,WHITE,1",
        "02,99000001,1,,50,1,60,0,0,WHITE,1",
        "03,99000001,1,,0,1,60,0,0,WHITE,1",
    ];
    check("race = 'last'", &last);
    check("race = 'mode'", &[]);
    check("portuguese-white = true", &["10,99000005,1,,100,1,45,0,1,PORTUGUESE,1"]);
    let missing = [
        "11,99000006,1,,296,1,61,1,0,PATIENT DECLINED TO ANSWER,",
        "12,99000006,1,,274,1,61,1,0,PATIENT DECLINED TO ANSWER,",
        "14,99000008,1,,369,0,61,1,0,,",
        "17,99000011,1,,366,0,40,0,0,?,",
    ];
    check("unknown-race = 'missing'", &missing);
    let dropped = missing.map(|line| format!("{},0,unknown_race,,,,,,,", &line[..11]));
    check("unknown-race = 'drop'", &dropped.each_ref().map(String::as_str));
}

#[test]
fn a_person_without_admission_has_the_race_that_the_option_says() {
    let with_death = |name: &str, text: String| match name {
        "patients.csv" => text.replace("99000004,F,91,2170,2014 - 2016,", "99000004,F,91,2170,2014 - 2016,2170-02-01"),
        _ => text,
    };
    let folder = tempfile::tempdir().unwrap();
    unpack(folder.path(), FILES, &with_death);
    let outcome = |option: &str| {
        let mut config: MimicCxrConfig = toml::from_str(option).unwrap();
        config.root = Some(folder.path().to_owned());
        let (cohort, exclusions) = cohort_of(config).unwrap();
        lines(&cohort, &exclusions).into_iter().find(|line| line.starts_with("09")).unwrap()
    };
    assert_eq!(outcome(""), "09,99000004,1,,31,1,91,1,0,,0");
    assert_eq!(outcome("race-without-admission = 'missing'"), "09,99000004,1,,31,1,91,1,0,,");
    assert_eq!(outcome("unknown-race = 'drop'"), "09,,0,unknown_race,,,,,,,");
    assert_eq!(outcome("unknown-race = 'drop'\nrace-without-admission = 'non-white'"), "09,99000004,1,,31,1,91,1,0,,0");
}

/// Lines after the header in reverse order.
fn reversed(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1..].reverse();
    lines.join("\n")
}

#[test]
fn packing_folders_line_ends_and_the_order_of_rows_change_no_label_and_no_hash() {
    type Change = fn(&str, String) -> String;
    let old_names: Change = |_, text| text.replace(",race,", ",ethnicity,").replace("admit_provider_id,", "provider,");
    let windows: Change = |_, text| text.replace('\n', "\r\n");
    let floats: Change = |name, text| match name {
        METADATA_FILE => text.replace(",21500110,", ",21500110.0,"),
        _ => text,
    };
    let gz = |stem: &str| format!("{stem}.gz");
    let cases: [([String; 3], Change); 6] = [
        (FILES.map(gz), unchanged),
        (
            ["cxr/mimic-cxr-2.0.0-metadata.csv.gz", "iv/hosp/patients.csv.gz", "iv/core/admissions.csv"]
                .map(str::to_owned),
            old_names,
        ),
        (
            [
                "a/files/mimic-cxr-jpg/2.1.0/MIMIC-CXR-2.0.0-METADATA.CSV",
                "a/files/mimiciv/3.1/hosp/patients.csv",
                "a/files/mimiciv/3.1/hosp/admissions.csv.gz",
            ]
            .map(str::to_owned),
            unchanged,
        ),
        (FILES.map(str::to_owned), windows),
        (FILES.map(str::to_owned), |_, text| reversed(&text)),
        (FILES.map(str::to_owned), floats),
    ];
    let (cohort, _) = labelled("");
    let hash = cohort.provenance.unwrap().content_hash;
    for (number, (paths, change)) in cases.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        unpack(folder.path(), paths.each_ref().map(String::as_str), &change);
        let (cohort, exclusions) = cohort_of(MimicCxrConfig::new(folder.path())).unwrap();
        assert_eq!(lines(&cohort, &exclusions), expected(&[]), "case {number}");
        let same = cohort.provenance.unwrap().content_hash == hash;
        assert_eq!(same, number != 5, "case {number}: a rewritten cell is another content");
    }
}

#[test]
fn options_and_cells_that_decide_are_part_of_the_hash_and_others_are_not() {
    let hash = |config: &str, change: &dyn Fn(&str, String) -> String| {
        let folder = tempfile::tempdir().unwrap();
        unpack(folder.path(), FILES, change);
        let mut config: MimicCxrConfig = toml::from_str(config).unwrap();
        config.root = Some(folder.path().to_owned());
        cohort_of(config).unwrap().0.provenance.unwrap().content_hash
    };
    let first = hash("", &unchanged);
    assert_ne!(first, hash("race = 'last'", &unchanged));
    assert_ne!(first, hash("", &|_, text| text.replace("2161-01-05 00:00:01", "2161-01-06 00:00:01")));
    assert_eq!(first, hash("", &|_, text| text.replace("Medicare", "Private").replace("2011 - 2013", "2014 - 2016")));
}

#[test]
fn without_outcomes_only_a_repeated_row_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    unpack(folder.path(), FILES, &unchanged);
    let read = MimicCxr::new(MimicCxrConfig::new(folder.path())).read_without_outcomes().unwrap();
    let (cohort, exclusions) = build_cohort(read, &[]).unwrap();
    assert_eq!((cohort.n(), exclusions.summary().as_str()), (17, "duplicate_dicom_id 1"));
    assert!(cohort.samples.iter().all(|sample| sample.time == 0.0 && !sample.event));
}

#[test]
fn images_lie_beside_the_metadata_or_where_the_settings_say() {
    let (cohort, _) = labelled("images = '/films'");
    let file = "files/p99/p99000001/s98000001/aaaaaaaa-00000000-00000000-00000000-00000001.jpg";
    assert_eq!(cohort.samples[0].image, Path::new("/films").join(file));
    let (cohort, _) = labelled("images = '/films/files'");
    assert_eq!(cohort.samples[0].image, Path::new("/films").join(file));
    let (cohort, _) = labelled("");
    assert!(cohort.samples[0].image.ends_with(file) && cohort.samples[0].image.is_absolute());
}

fn message(change: &dyn Fn(&str, String) -> String) -> String {
    let folder = tempfile::tempdir().unwrap();
    unpack(folder.path(), FILES, change);
    let error = cohort_of(MimicCxrConfig::new(folder.path())).unwrap_err().to_string();
    error.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn a_cell_that_is_not_what_its_column_promises_is_named_by_file_column_row_and_value() {
    let in_table = |table: &'static str, from: &'static str, to: &'static str| {
        message(&|name, text| if name == table { text.replacen(from, to, 1) } else { text })
    };
    assert_eq!(
        in_table(METADATA_FILE, "21500301", "21500230"),
        "StudyDate of sample \"aaaaaaaa-00000000-00000000-00000000-00000003\" is \"21500230\", expected a date such as \
         21500110 (mimic-cxr-2.0.0-metadata.csv, row 4)"
    );
    assert!(in_table(METADATA_FILE, "99000003,", "p3,").starts_with("subject_id of sample \"aaaaaaaa-"));
    assert_eq!(
        in_table("patients.csv", "2150-03-01", "2150-02-29"),
        "dod of sample \"99000001\" is \"2150-02-29\", expected a date such as 2150-01-31 (patients.csv, row 2)"
    );
    assert!(in_table("patients.csv", "F,60,", "F,sixty,").contains("anchor_age of sample \"99000001\" is \"sixty\""));
    assert!(in_table("patients.csv", "99000002,", "x,").starts_with("subject_id of sample \"row 3\" is \"x\""));
    let twice = in_table("patients.csv", "99000002,M", "99000001,M");
    assert!(
        twice.contains("is \"99000001\", expected each subject once, or the same line again (patients.csv, row 3)"),
        "{twice}"
    );
    let error = in_table("admissions.csv", "2150-01-15 12:00:00", "15.01.2150");
    assert!(
        error.starts_with("dischtime of sample \"99000001\" is \"15.01.2150\"")
            && error.ends_with("(admissions.csv, row 2)"),
        "{error}"
    );
}

#[test]
fn a_missing_file_or_column_says_what_was_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    unpack(folder.path(), [METADATA_FILE, "hosp/patients.csv", "hosp/stays.csv"], &unchanged);
    let error = cohort_of(MimicCxrConfig::new(folder.path())).unwrap_err().to_string();
    let expected = "the table of admissions of MIMIC-IV was not found: looked for admissions{.csv|.csv.gz} in ";
    assert!(error.starts_with(expected), "{error}");
    let error = message(&|_, text| text.replace("StudyDate", "StudyDates"));
    assert!(
        error.starts_with("column \"StudyDate\" is not in ") && error.ends_with("nearest is \"StudyDates\""),
        "{error}"
    );
}

#[test]
fn the_default_is_offered_by_the_run_file_too() {
    let config: DataConfig = toml::from_str("[mimic-cxr]\nroot = '/r'").unwrap();
    let names: Vec<String> = config.default_attributes().into_iter().map(|attribute| attribute.name).collect();
    assert_eq!(names, ["age", "sex", "race"]);
    assert!(config.adapter(0, Path::new("")).data_use().unwrap().contains("PhysioNet"));
}

#[test]
fn how_many_have_no_known_race_is_noted() {
    let notes = labelled("").0.provenance.unwrap().notes;
    let expected = "images of people whose race is not known: 5 (counted as Non-White: 5, in no \
                    group: 0, left out: 0)";
    assert_eq!(notes, [expected]);
}

/// The cohort of the fixtures after `change`.
fn changed(change: &dyn Fn(&str, String) -> String) -> (Cohort, Exclusions) {
    let folder = tempfile::tempdir().unwrap();
    unpack(folder.path(), FILES, change);
    cohort_of(MimicCxrConfig::new(folder.path())).unwrap()
}

#[test]
fn an_odd_time_of_day_decides_nothing_and_is_noted() {
    let (cohort, exclusions) = changed(&|name, text| match name {
        METADATA_FILE => text.replace(",80556.875,", ",246060,").replace(",556.0,", ",noon,"),
        _ => text,
    });
    assert_eq!(lines(&cohort, &exclusions), expected(&[]));
    let provenance = cohort.provenance.unwrap();
    let note = "cells of StudyTime that are no time of day such as 213014.531: 2 (the first is \"246060\" in row 4); the time of \
                day does not affect the labels";
    assert_eq!(provenance.notes[0], note);
    assert_eq!(provenance.content_hash, labelled("").0.provenance.unwrap().content_hash);
}

#[test]
fn a_repeated_identity_is_that_before_anything_else_is_missing() {
    let last = "00000015,99000009,98000014,CHEST (PA AND LAT),PA,3056,2544,21551231";
    for with in ["00000015,,98000014,CHEST (PA AND LAT),PA,3056,2544,21551231", "00000015,99000009,,,,,,"] {
        let (cohort, exclusions) = changed(&|name, text| match text.rsplit_once(last) {
            Some((before, after)) if name == METADATA_FILE => format!("{before}{with}{after}"),
            _ => text,
        });
        assert_eq!(lines(&cohort, &exclusions), expected(&[]), "{with}");
    }
    let flow = labelled("").1.flow();
    let steps: Vec<(&str, usize)> = flow.iter().map(|step| (step.label.as_str(), step.n_excluded)).collect();
    let expected = [
        ("rows read", 0),
        ("listed once", 1),
        ("with sample, subject and image path", 0),
        ("of a subject with records", 1),
        ("with a known end of follow-up", 1),
        ("taken before death", 1),
        ("taken before the last discharge", 1),
        ("with a readable image", 0),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn tables_without_anybody_white_have_an_empty_group() {
    let (cohort, exclusions) = changed(&|name, text| match name {
        "admissions.csv" => text.replace("WHITE", "ASIAN").replace("PORTUGUESE", "OTHER"),
        _ => text,
    });
    let adapter = MimicCxr::new(MimicCxrConfig::default());
    let fitted = FittedAttributes::fit(&adapter.default_attributes(), &cohort, &cohort.all_rows()).unwrap();
    let race = &fitted.all()[2];
    assert_eq!(race.levels(), ["Non-White", "White"]);
    assert!(race.membership().iter().all(|group| group.is_some_and(|group| group.0 == 0)));
    exclusions.check(cohort.n()).unwrap();
    let nobody_in_training = FittedAttributes::fit(&adapter.default_attributes(), &labelled("").0, &[4, 5]).unwrap();
    assert_eq!(nobody_in_training.all()[2].rows(fairtte_metrics::GroupId(1)).len(), 4);
}

#[test]
fn tables_of_which_every_row_is_left_out_are_a_cohort_of_nobody() {
    let header = |name: &str, text: String| match name {
        "patients.csv" => format!("{}\n", text.lines().next().unwrap()),
        _ => text,
    };
    let (cohort, exclusions) = changed(&header);
    assert_eq!((cohort.n(), exclusions.n()), (0, 18));
    assert_eq!(exclusions.summary(), "duplicate_dicom_id 1, no_patient 17");
    let attributes = MimicCxr::new(MimicCxrConfig::default()).default_attributes();
    let fitted = FittedAttributes::fit(&attributes, &cohort, &[]).unwrap();
    let summary = crate::cohort::CohortSummary::new(&cohort, &exclusions, &fitted);
    let levels: Vec<usize> = summary.attributes.iter().map(|attribute| attribute.groups.len()).collect();
    assert_eq!((summary.total.n, summary.total.mean_time, levels), (0, None, vec![2, 2, 2]));
}
