//! The input of an evaluation: the cohort and the predictions, written and read back.

use std::path::Path;

use fairtte_data::cohort::{AttributeColumn, Threshold};
use fairtte_data::predictions::{CurveRepairs, PredictionTable, Rising, match_predictions};
use fairtte_data::{AttributeConfig, FittedAttributes, read_cohort, read_predictions, write_cohort, write_predictions};
use fairtte_metrics::SampleId;
use ndarray::{Array2, array};
use proptest::prelude::*;

use crate::make::cohort_of_subjects;

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn a_cohort_with_its_groups_survives_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let subjects: Vec<String> = ["a", "b", "b", "c, d", "e"].map(str::to_owned).to_vec();
    let mut cohort = cohort_of_subjects(&subjects);
    cohort.samples[1].time = 0.1 + 0.2;
    let config = AttributeConfig {
        levels: Some(vec!["unseen".to_owned(), "M".to_owned(), "F".to_owned()]),
        ..AttributeConfig::new("sex")
    };
    let fitted = FittedAttributes::fit(&[config], &cohort, &[0, 1, 2]).unwrap();
    let path = folder.path().join("cohort.parquet");
    write_cohort(&path, &cohort, &fitted).unwrap();
    let (read, groups) = read_cohort(&path).unwrap();
    assert_eq!(groups, fitted.all(), "levels keep their order, also the one without a sample");
    assert_eq!((read.name.as_str(), read.time_unit.as_str()), ("made-up", "days"));
    assert_eq!(read.attributes, cohort.attributes);
    for (read, written) in read.samples.iter().zip(&cohort.samples) {
        let mut written = written.clone();
        written.source_row = read.source_row;
        assert_eq!(*read, written);
    }
    let again = folder.path().join("again.parquet");
    write_cohort(&again, &cohort, &fitted).unwrap();
    assert_eq!(bytes(&path), bytes(&again), "the same cohort gives the same bytes");
}

#[test]
fn a_cohort_in_csv_can_be_read_too() {
    let folder = tempfile::tempdir().unwrap();
    let cohort = cohort_of_subjects(&["a".to_owned(), "b".to_owned(), "c".to_owned()]);
    let fitted = FittedAttributes::fit(&[AttributeConfig::new("sex")], &cohort, &[0, 1, 2]).unwrap();
    let path = folder.path().join("cohort.csv");
    write_cohort(&path, &cohort, &fitted).unwrap();
    let header = std::fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(header, "sample_id,subject_id,time,event,sex");
    let rows = std::fs::read_to_string(&path).unwrap().lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rows, ["sample 0,a,0.5,1,0", "sample 1,b,1.5,0,", "sample 2,c,2.5,0,1"]);
    let (read, groups) = read_cohort(&path).unwrap();
    assert_eq!(groups, fitted.all());
    assert_eq!(read.attributes, cohort.attributes, "0 is F and 1 is M");
    assert_eq!(read.outcomes(&[0, 1, 2]).unwrap(), cohort.outcomes(&[0, 1, 2]).unwrap());
}

#[test]
fn attributes_that_are_cut_keep_their_value_beside_the_number_of_their_group() {
    let folder = tempfile::tempdir().unwrap();
    let mut cohort = cohort_of_subjects(&["a".to_owned(), "b".to_owned(), "c".to_owned()]);
    cohort.samples[0].time = 583.0;
    cohort.samples[1].unit = Some("b-RE".to_owned());
    let text = |cells: [&str; 3]| cells.map(|cell| (!cell.is_empty()).then(|| cell.to_owned())).to_vec();
    let race = AttributeColumn {
        coded: Some(vec![Some("White"), Some("Non-White"), None]),
        ..AttributeColumn::new("race", text(["WHITE - RUSSIAN", "", "?"]))
    };
    cohort.attributes.insert(0, AttributeColumn::new("age", text(["60", "60.5", ""])));
    cohort.attributes.push(race);
    let configs = [
        AttributeConfig { threshold: Some(Threshold::Value(60.0)), ..AttributeConfig::new("age") },
        AttributeConfig::new("sex"),
        AttributeConfig { reference: Some("White".to_owned()), ..AttributeConfig::new("race") },
    ];
    let fitted = FittedAttributes::fit(&configs, &cohort, &[0, 1, 2]).unwrap();
    let path = folder.path().join("cohort.csv");
    write_cohort(&path, &cohort, &fitted).unwrap();
    let expected = "sample_id,subject_id,time,event,age,age_group,sex,race,race_group\n\
                    sample 0,a,583,1,60,0,0,WHITE - RUSSIAN,1\n\
                    sample 1,b,1.5,0,60.5,1,,,0\n\
                    sample 2,c,2.5,0,,,1,?,\n";
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    for (name, separator) in [("cohort.CSV", ","), ("cohort.tsv", "\t"), ("cohort.Tsv", "\t")] {
        let path = folder.path().join(name);
        write_cohort(&path, &cohort, &fitted).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected.replace(',', separator), "{name}");
        assert_eq!(read_cohort(&path).unwrap().0.n(), 3);
    }
    for name in ["cohort", "cohort.txt", "cohort.csv.gz"] {
        let error = write_cohort(&folder.path().join(name), &cohort, &fitted).unwrap_err();
        assert!(matches!(error, fairtte_data::DataError::UnknownTableFormat { .. }), "{name}: {error}");
        assert!(!folder.path().join(name).exists(), "{name}");
    }
    let (_, groups) = read_cohort(&path).unwrap();
    let names: Vec<_> = groups.iter().map(|g| (g.attribute(), g.levels().join(" "))).collect();
    assert_eq!(names, [("age", "0 1".to_owned()), ("sex", "F M".to_owned()), ("race", "0 1".to_owned())]);

    let path = folder.path().join("cohort.parquet");
    write_cohort(&path, &cohort, &fitted).unwrap();
    let (read, groups) = read_cohort(&path).unwrap();
    assert_eq!(groups, fitted.all());
    assert_eq!(read.samples[1].unit.as_deref(), Some("b-RE"));
    for (read, written) in read.attributes.iter().zip(&cohort.attributes) {
        assert_eq!((&read.name, &read.values), (&written.name, &written.values));
    }
}

#[test]
fn a_table_made_by_hand_may_name_its_groups() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cohort.csv");
    let text = "sample_id,subject_id,time,event,sex_group,centre_group,sex\na,1,0,1,female,10,1\nb,2,2,0,male,9,0\n";
    std::fs::write(&path, text).unwrap();
    let (read, groups) = read_cohort(&path).unwrap();
    let names: Vec<_> = groups.iter().map(|g| (g.attribute(), g.levels().join(" "))).collect();
    assert_eq!(names, [("sex", "female male".to_owned()), ("centre", "9 10".to_owned())]);
    assert_eq!(read.attributes[0].values, [Some("1".to_owned()), Some("0".to_owned())]);
    assert_eq!(read.samples[0].time.to_bits(), 0, "a time of 0 is a time");
}

#[test]
fn a_bad_cohort_file_names_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cohort.csv");
    let message = |rows: &str| {
        std::fs::write(&path, format!("sample_id,subject_id,image,time,event\n{rows}")).unwrap();
        read_cohort(&path).unwrap_err().to_string()
    };
    let place = |row: usize| format!("({}, row {row})", path.display());
    assert_eq!(
        message("a,1,,-2,0\n"),
        format!("time of sample \"a\" is -2, expected a finite number >= 0 {}", place(2))
    );
    assert_eq!(
        message("a,1,,2,3\n"),
        format!("event of sample \"a\" is 3, expected 1 (observed) or 0 (censored) {}", place(2))
    );
    assert!(message("a,1,,2,1\na,1,,2,1\n").starts_with("sample \"a\" appears twice"));
    assert!(message("a,,,2,1\n").starts_with("subject_id of sample \"a\" is empty"));
    std::fs::write(&path, "sample_id,subject_id,image,tmie,event\n").unwrap();
    assert!(read_cohort(&path).unwrap_err().to_string().contains("nearest is \"tmie\""));
}

fn ids(names: &[&str]) -> Vec<SampleId> {
    names.iter().map(|name| SampleId::from(*name)).collect()
}

#[test]
fn predictions_keep_every_bit_in_both_formats() {
    let folder = tempfile::tempdir().unwrap();
    let samples = ids(&["b", "a, with comma", "c"]);
    let grid = [0.0, 0.1 + 0.2, 1e-7, 13.0];
    let mut grid = grid.to_vec();
    grid.sort_by(f64::total_cmp);
    let survival = array![[1.0, 0.9, 0.5, 0.0], [1.0, 1.0 / 3.0, 1e-300, 0.0], [1.0, 1.0, 1.0, 1.0]];
    for name in ["p.parquet", "p.csv"] {
        let path = folder.path().join(name);
        write_predictions(&path, &samples, &grid, survival.view()).unwrap();
        let read = read_predictions(&path, Rising::Refuse).unwrap();
        let repairs = CurveRepairs::default();
        let (samples, grid, survival) = (samples.clone(), grid.clone(), survival.clone());
        assert_eq!(read, PredictionTable { samples, grid, survival, repairs }, "{name}");
        let first = bytes(&path);
        write_predictions(&path, &read.samples, &read.grid, read.survival.view()).unwrap();
        assert_eq!(first, bytes(&path), "{name}: the same predictions give the same bytes");
    }
    let header = std::fs::read_to_string(folder.path().join("p.csv")).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(header, "sample_id,0,0.0000001,0.30000000000000004,13");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn any_curves_survive_the_file(values in prop::collection::vec(0.0_f64..=1.0, 12), step in 1e-6_f64..1e6) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("predictions.parquet");
        let mut survival = Array2::from_shape_vec((3, 4), values).unwrap();
        for mut curve in survival.rows_mut() {
            curve.as_slice_mut().unwrap().sort_by(|a, b| b.total_cmp(a));
        }
        let grid: Vec<f64> = (0..4).map(|i| f64::from(i) * step).collect();
        write_predictions(&path, &ids(&["x", "y", "z"]), &grid, survival.view()).unwrap();
        let read = read_predictions(&path, Rising::Refuse).unwrap();
        prop_assert_eq!((read.samples, read.grid, read.survival), (ids(&["x", "y", "z"]), grid, survival));
        prop_assert_eq!(read.repairs, CurveRepairs::default());
    }
}

#[test]
fn predictions_of_an_outside_model_are_checked_cell_by_cell() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outside.csv");
    let message = |text: &str| {
        std::fs::write(&path, text).unwrap();
        read_predictions(&path, Rising::Refuse).unwrap_err().to_string()
    };
    let shown = path.display();
    assert!(message("id,0,1\na,1,1\n").starts_with("column \"sample_id\" is not in "));
    assert!(message("sample_id\na\n").starts_with("no column of "));
    assert!(message("sample_id,0,later\na,1,1\n").starts_with("column \"later\" of "));
    assert!(
        message("sample_id,1,0\na,1,1\n")
            .contains("comes after column \"1\", expected the grid times in ascending order")
    );
    assert!(message("sample_id,-1,0\na,1,1\n").contains("no finite number >= 0"));
    assert!(message("sample_id,NaN\na,1\n").contains("no finite number >= 0"));
    let bad = |value: &str| {
        let shown_value = if value.is_empty() { "empty" } else { value };
        let expected = format!(
            "survival of sample \"b\" at time 1.5 is {shown_value}, expected a probability in [0, 1] ({shown}, row 3)"
        );
        assert_eq!(message(&format!("sample_id,0,1.5\na,1,0.5\nb,1,{value}\n")), expected);
    };
    ["1.0001", "-0.5", "NaN", "half", ""].into_iter().for_each(bad);
    let twice = message("sample_id,0\na,1\na,1\n");
    assert_eq!(
        twice,
        format!("sample \"a\" appears twice, expected each sample once ({shown}, row 3; first in row 2)")
    );
    let unnamed = message("sample_id,0\n,1\n");
    assert_eq!(unnamed, format!("the name of the sample is empty, expected one in every row ({shown}, row 2)"));
}

#[test]
fn nothing_but_probabilities_is_ever_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.parquet");
    let write = |names: &[&str], grid: &[f64], survival: Array2<f64>| {
        write_predictions(&path, &ids(names), grid, survival.view()).unwrap_err().to_string()
    };
    assert!(write(&["a"], &[0.0], array![[f64::NAN]]).contains("survival of sample \"a\" at time 0 is NaN"));
    assert!(write(&["a"], &[0.0], array![[1.5]]).contains("is 1.5"));
    assert!(write(&["a", "a"], &[0.0], array![[1.0], [1.0]]).contains("predicted twice"));
    assert!(write(&["a"], &[0.0, 0.0], array![[1.0, 1.0]]).contains("both name the time 0"));
    assert!(write(&["a"], &[0.0, 1.0], array![[1.0]]).contains("expected 2"));
    assert!(!path.exists());
}

#[test]
fn predictions_are_matched_to_samples_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cohort.csv");
    std::fs::write(&path, "sample_id,subject_id,time,event\na,1,1,1\nb,2,2,0\nc,3,3,1\n").unwrap();
    let (cohort, _) = read_cohort(&path).unwrap();
    assert_eq!(match_predictions(&cohort, &[0, 1], &ids(&["b", "c", "a"])).unwrap(), [2, 0]);
    let message = |predicted: &[&str]| match_predictions(&cohort, &[0, 1], &ids(predicted)).unwrap_err().to_string();
    assert!(message(&["a"]).starts_with("sample \"b\" has no prediction"));
    assert!(message(&["a", "b", "d"]).starts_with("sample \"d\" is predicted but is not in the cohort"));
}
