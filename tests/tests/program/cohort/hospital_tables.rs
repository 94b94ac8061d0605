//! The invented tables of the three hospitals' data sets through the program: every label, every group and every reason
//! for the exclusion of a row, with the defaults and with every option that changes one.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "the number of comparisons is printed")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fairtte_data::table::Table;
use fairtte_tests::{files, succeed};

/// Cells of one row by column name; an empty cell is an empty text.
type Row = BTreeMap<String, String>;

fn rows(path: &Path) -> Vec<Row> {
    let table = Table::read(path).unwrap();
    let names: Vec<String> = table.names().into_iter().map(str::to_owned).collect();
    let columns: Vec<_> = names.iter().map(|name| table.text(name).unwrap()).collect();
    let cells = |i: usize| names.iter().zip(&columns).map(move |(n, c)| (n.clone(), c[i].clone().unwrap_or_default()));
    (0..table.n_rows()).map(|i| cells(i).collect()).collect()
}

/// One data set: its fixture folder, the names of the expected columns, and the location of a sample.
struct DataSet {
    name: &'static str,
    folder: &'static str,
    config: &'static str,
    time: &'static str,
    /// (expected column, column of `cohort.csv`)
    groups: &'static [(&'static str, &'static str)],
    header: &'static [&'static str],
    sample: fn(&Row) -> String,
}

const MIMIC: DataSet = DataSet {
    name: "mimic",
    folder: "mimic",
    config: "[data.mimic-cxr]\nroot = \"{}\"\n",
    time: "tte",
    groups: &[("age", "age"), ("age_grp", "age_group"), ("sex", "sex"), ("race_raw", "race"), ("white", "race_group")],
    header: &["sample_id", "subject_id", "time", "event", "age", "age_group", "sex", "race", "race_group"],
    sample: |row| format!("aaaaaaaa-00000000-00000000-00000000-000000{}", row["dicom"]),
};

const ADNI: DataSet = DataSet {
    name: "adni",
    folder: "adni",
    config: "[data.adni]\nroot = \"{}\"\n",
    time: "tte6",
    groups: &[("age", "age"), ("age_grp", "age_group"), ("sex", "sex")],
    header: &["sample_id", "subject_id", "time", "event", "age", "age_group", "sex"],
    sample: |row| row["image"].clone(),
};

const AREDS: DataSet = DataSet {
    name: "areds",
    folder: "areds",
    config: "[data.areds]\nroot = \"{}\"\nstereo = \"one\"\n",
    time: "tte_y",
    groups: &[("age", "age"), ("age_grp", "age_group"), ("sex", "sex"), ("white", "race_group")],
    header: &["sample_id", "subject_id", "time", "event", "age", "age_group", "sex", "race", "race_group"],
    sample: |row| row["path"].clone(),
};

fn fixtures(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fairtte-data/tests/fixtures").join(folder).canonicalize().unwrap()
}

/// Runs `prepare --tables-only --csv` on the fixtures of `set` and returns (cohort, exclusions).
fn prepare(set: &DataSet, options: &[&str]) -> (Vec<Row>, Vec<Row>) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join(format!("{}.toml", set.name));
    let root = fixtures(set.folder).display().to_string();
    std::fs::write(&config, set.config.replace("{}", &root)).unwrap();
    let out = folder.path().join("out");
    let (config, output) = (config.display().to_string(), out.display().to_string());
    let mut arguments = vec!["prepare", "--tables-only", "--csv", "--config", &config, "--output", &output];
    for option in options {
        arguments.extend(["--set", option]);
    }
    succeed(arguments);
    let written = files(&out);
    for file in ["cohort.csv", "cohort.parquet", "exclusions.csv", "run.toml"] {
        assert!(written.iter().any(|name| name == file), "{file} is missing among {written:?}");
    }
    let header = std::fs::read_to_string(out.join("cohort.csv")).unwrap();
    assert_eq!(header.lines().next().unwrap(), set.header.join(","));
    (rows(&out.join("cohort.csv")), rows(&out.join("exclusions.csv")))
}

fn same(expected: &str, found: &str) -> bool {
    match (expected.parse::<f64>(), found.parse::<f64>()) {
        (Ok(expected), Ok(found)) => (expected - found).abs() < 1e-9,
        _ => expected == found,
    }
}

/// Compares with the expected table in which `changes` replace the rows of the same sample.
fn compare(set: &DataSet, options: &[&str], changes: &[&[(&str, &str)]]) {
    let mut expected = rows(&fixtures(set.folder).join(format!("expected_{}.csv", set.name)));
    for change in changes {
        let (key, value) = change[0];
        let row = expected.iter_mut().find(|row| row[key] == value).unwrap();
        row.extend(change.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    }
    let (cohort, exclusions) = prepare(set, options);
    let kept: BTreeMap<&str, &Row> = cohort.iter().map(|row| (row["sample_id"].as_str(), row)).collect();
    assert_eq!(kept.len(), cohort.len(), "a sample occurs twice in the cohort");
    let mut left_out: Vec<(String, String)> =
        exclusions.iter().map(|row| (row["sample_id"].clone(), row["reason"].clone())).collect();
    for row in &expected {
        let sample = (set.sample)(row);
        if row["keep"] == "0" {
            let found = left_out.iter().position(|(id, reason)| *id == sample && *reason == row["reason"]);
            let found =
                found.unwrap_or_else(|| panic!("{sample} is not left out as {} in {left_out:?}", row["reason"]));
            left_out.remove(found);
            continue;
        }
        let found = kept.get(sample.as_str()).unwrap_or_else(|| panic!("{sample} is not in the cohort, {options:?}"));
        for (wanted, column) in [(set.time, "time"), ("event", "event")].iter().chain(set.groups) {
            let (wanted, value) = (&row[*wanted], &found[*column]);
            assert!(same(wanted, value), "{column} of {sample} is {value:?}, expected {wanted:?}, {options:?}");
        }
    }
    assert!(left_out.is_empty(), "left out without being expected: {left_out:?}");
    let n_kept = expected.iter().filter(|row| row["keep"] == "1").count();
    assert_eq!(cohort.len(), n_kept, "{options:?}");
    let subjects: BTreeSet<&String> = cohort.iter().map(|row| &row["subject_id"]).collect();
    println!("{} {options:?}: {} rows, {n_kept} kept of {} subjects", set.name, expected.len(), subjects.len());
}

fn left_out(key: &'static str, value: &'static str, reason: &'static str) -> Vec<(&'static str, &'static str)> {
    vec![(key, value), ("keep", "0"), ("reason", reason)]
}

fn kept<'a>(key: &'a str, value: &'a str, cells: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [(key, value), ("keep", "1"), ("reason", "")].into_iter().chain(cells.iter().copied()).collect()
}

#[test]
fn mimic_cxr_gets_the_expected_labels_under_every_option() {
    compare(&MIMIC, &[], &[]);
    let after = left_out("dicom", "12", "after_last_discharge");
    compare(&MIMIC, &["data.mimic-cxr.after-discharge=all"], &[&after]);
    let portuguese = kept("dicom", "10", &[("tte", "370"), ("event", "0"), ("age", "45"), ("white", "0")]);
    let declined = kept("dicom", "11", &[("tte", "370"), ("event", "0"), ("age", "61")]);
    // 99000001 died in hospital on the day of the last discharge: nothing changes for that patient.
    compare(&MIMIC, &["data.mimic-cxr.death=in-hospital"], &[&portuguese, &declined, &after]);
}

#[test]
fn tables_of_which_every_row_is_left_out_are_written_with_the_reasons() {
    let data = tempfile::tempdir().unwrap();
    for name in ["mimic-cxr-2.0.0-metadata.csv", "patients.csv", "admissions.csv"] {
        let text = std::fs::read_to_string(fixtures(MIMIC.folder).join(name)).unwrap();
        let header = text.lines().next().unwrap();
        let text = if name == "patients.csv" { format!("{header}\n") } else { text };
        std::fs::write(data.path().join(name), text).unwrap();
    }
    let root = format!("data.mimic-cxr.root={}", data.path().display());
    let (cohort, exclusions) = prepare(&MIMIC, &[&root]);
    assert_eq!((cohort.len(), exclusions.len()), (0, 18));
    let n_unknown = exclusions.iter().filter(|row| row["reason"] == "no_patient").count();
    assert_eq!(n_unknown, 17, "and one image is listed twice");
}

#[test]
fn adni_gets_the_expected_labels_under_every_option() {
    compare(&ADNI, &[], &[]);
    let literal = ["I900005", "I900010", "I900013", "I900018"].map(|image| left_out("image", image, "final_visit"));
    let literal: Vec<&[(&str, &str)]> = literal.iter().map(Vec::as_slice).collect();
    compare(&ADNI, &["data.adni.final-visit=literal"], &literal);
}

#[test]
fn areds_gets_the_expected_labels_under_every_option() {
    compare(&AREDS, &[], &[]);
    let last = [
        "59011/10/59011 10 F2 LE LS.jpg",
        "59012/00/59012 00 F2 LE LS.jpg",
        "59013/10/59013 10 F2 RE LS.jpg",
        "59016/06/59016 06 F2 RE LS.jpg",
        "9007/9007_26_F2_LE_LS.jpg",
    ];
    let literal = last.map(|path| left_out("path", path, "final_visit"));
    let literal: Vec<&[(&str, &str)]> = literal.iter().map(Vec::as_slice).collect();
    compare(&AREDS, &["data.areds.final-visit=literal"], &literal);
    let cells = [("tte_y", "5.0"), ("event", "0"), ("age", "68.0"), ("age_grp", "0"), ("sex", "0"), ("white", "1")];
    let other_side = kept("path", "59011/00/59011 00 F2 RE RS.jpg", &cells);
    compare(&AREDS, &["data.areds.stereo=both"], &[&other_side]);
}
