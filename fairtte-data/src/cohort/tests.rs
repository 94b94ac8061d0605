//! Tables of a few rows as cohorts, and empty cohorts.

use super::*;
use crate::cohort::{CohortSummary, OutcomeConfig, Reason, Threshold, read_cohort_of_cause};
use crate::predictions::{
    Rising, read_incidence, read_predictions, write_incidence, write_prediction_blocks, write_predictions,
};
use crate::{Adapter as _, FittedAttributes, Generic, GenericConfig, read_cohort, write_cohort};

const HEADER: &str = "image,subject_id,time,event,sex\n";

fn cohort_of(rows: &str, attributes: &[AttributeConfig]) -> Result<(Cohort, Exclusions), DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cohort.csv");
    std::fs::write(&path, format!("{HEADER}{rows}")).unwrap();
    let adapter = Generic::new(GenericConfig::new(&path));
    build_cohort(adapter.read()?, attributes)
}

fn message(rows: &str) -> String {
    let message = cohort_of(rows, &[]).unwrap_err().to_string();
    let (before, after) = message.rsplit_once('(').unwrap();
    let file = after.split("cohort.csv").next().unwrap();
    format!("{before}({}", after.replacen(file, "", 1))
}

#[test]
fn every_spelling_of_an_event_is_read() {
    let rows = "a,1,1,1,F\nb,1,2,0,F\nc,2,3,1.0,M\nd,2,4,0.0,\ne,3,5e-1,true,M\nf,3,6,False,M\n";
    let (cohort, exclusions) = cohort_of(rows, &[AttributeConfig::new("sex")]).unwrap();
    let events: Vec<bool> = cohort.samples.iter().map(|sample| sample.event).collect();
    assert_eq!(events, [true, false, true, false, true, false]);
    assert_eq!(cohort.outcomes(&[4]).unwrap().time(), [0.5]);
    assert_eq!((cohort.n(), cohort.n_subjects(), cohort.n_events(), exclusions.n()), (6, 3, 3, 0));
    assert_eq!(cohort.attributes[0].values[3], None, "a missing attribute excludes no sample");
}

#[test]
fn empty_cells_are_counted_exclusions() {
    let rows = "a,1,1,1,F\nb,,1,1,F\n,2,1,1,F\nc,3,,1,F\nd,4,1,,F\ne,5,,,\n";
    let (cohort, exclusions) = cohort_of(rows, &[]).unwrap();
    assert_eq!(cohort.n(), 1);
    assert_eq!(exclusions.summary(), "missing_subject 1, missing_image 1, missing_time 2, missing_event 1");
    assert_eq!(exclusions.list()[1].sample_id.as_str(), "row 4");
    assert!(exclusions.list()[2].source.contains("column \"time\" is empty"));
    exclusions.check(1).unwrap();
}

#[test]
fn a_cell_that_is_no_time_names_sample_value_file_and_row() {
    let expected = |value| format!("time of sample \"b\" is {value}, expected a finite number > 0 (cohort.csv, row 3)");
    for value in ["-3", "0", "inf", "-NaN", "two", "1;5"] {
        assert_eq!(message(&format!("a,1,1,1,F\nb,1,{value},1,F\n")), expected(value));
    }
}

#[test]
fn an_event_other_than_0_or_1_is_refused() {
    for value in ["2", "-1", "yes", "0.5"] {
        let rows = format!("a,1,1,{value},F\n");
        let expected = "expected 1 (observed) or 0 (censored) (cohort.csv, row 2)";
        assert_eq!(message(&rows), format!("event of sample \"a\" is {value}, {expected}"));
    }
}

#[test]
fn a_duplicate_sample_names_both_rows() {
    let expected = "sample \"a\" appears twice, expected each sample once (cohort.csv, row 4; first in row 2)";
    assert_eq!(message("a,1,1,1,F\nb,1,1,1,F\na,2,1,0,F\n"), expected);
}

#[test]
fn an_unknown_attribute_names_the_nearest_column() {
    let error = cohort_of("a,1,1,1,F\n", &[AttributeConfig::new("Sx")]).unwrap_err().to_string();
    assert!(error.starts_with("attribute \"Sx\"") && error.ends_with("nearest is \"sex\""), "{error}");
    for role in ["time", "event", "subject_id", "image"] {
        let error = cohort_of("a,1,1,1,F\n", &[AttributeConfig::new(role)]).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("attribute \"{role}\": it is an identity or an outcome, expected a property of the subjects")
        );
    }
}

#[test]
fn a_cohort_without_samples_says_where_they_went() {
    let error = |rows: &str| {
        let (cohort, exclusions) = cohort_of(rows, &[]).unwrap();
        cohort.require_samples("after labelling", &exclusions).unwrap_err().to_string()
    };
    let message = error("a,1,,1,F\nb,1,,1,F\n");
    assert!(message.contains("2 read from") && message.contains("missing_time 2"), "{message}");
    assert!(error("").ends_with("cohort.csv has no rows, expected at least one"), "{}", error(""));
    let (cohort, exclusions) = cohort_of("a,1,1,1,F\n", &[]).unwrap();
    cohort.require_samples("after labelling", &exclusions).unwrap();
}

#[test]
fn of_several_cells_that_cannot_be_read_the_first_is_named() {
    let rows: Vec<String> = (0..500).map(|i| format!("s{i},{i},{},1,F\n", if i < 40 { "1" } else { "x" })).collect();
    for _ in 0..20 {
        assert!(message(&rows.concat()).starts_with("time of sample \"s40\" is x"));
    }
}

#[test]
fn a_cohort_of_which_nothing_is_left_is_grouped_counted_written_and_read_back() {
    let attributes = [
        AttributeConfig { threshold: Some(Threshold::Value(60.0)), ..AttributeConfig::new("age") },
        AttributeConfig { threshold: Some(Threshold::Median), ..AttributeConfig::new("age") },
        AttributeConfig { levels: Some(vec!["F".to_owned(), "M".to_owned()]), ..AttributeConfig::new("sex") },
        AttributeConfig { reference: Some("White".to_owned()), ..AttributeConfig::new("race") },
        AttributeConfig::new("site"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let header = "image,subject_id,time,event,age,sex,race,site";
    std::fs::write(&path, format!("{header}\na,1,,1,61,F,White,x\nb,1,,0,59,M,Black,y\n")).unwrap();
    for attributes in [&attributes[..1], &attributes[1..], &[]] {
        let read = Generic::new(GenericConfig::new(&path)).read().unwrap();
        let (cohort, exclusions) = build_cohort(read, attributes).unwrap();
        let fitted = FittedAttributes::fit(attributes, &cohort, &cohort.all_rows()).unwrap();
        assert_eq!((cohort.n(), exclusions.n(), fitted.ungrouped().len()), (0, 2, 0));
        let summary = CohortSummary::new(&cohort, &exclusions, &fitted);
        let shown = format!("{summary}");
        let numbers = shown.lines().filter(|line| !line.contains("missing-values"));
        assert!(numbers.into_iter().all(|line| !line.contains("NaN")), "{summary}");
        let json = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<CohortSummary>(&json).unwrap(), summary);
        for name in ["cohort.parquet", "cohort.csv", "cohort.tsv"] {
            let path = folder.path().join(name);
            write_cohort(&path, &cohort, &fitted).unwrap();
            let (again, groups) = read_cohort(&path).unwrap();
            assert_eq!(again.n(), 0, "{name}");
            assert!(groups.iter().all(|groups| groups.n() == 0), "{name}");
        }
        let text = std::fs::read_to_string(folder.path().join("cohort.csv")).unwrap();
        assert!(text.starts_with("sample_id,subject_id,time,event") && text.lines().count() == 1, "{text}");
        let path = folder.path().join("exclusions.csv");
        exclusions.write_csv(&path).unwrap();
        assert_eq!(Exclusions::read_csv(&path, 0, &[]).unwrap().n(), 2);
    }
}

#[test]
fn samples_left_out_later_leave_with_their_attributes() {
    let (cohort, _) = cohort_of("a,1,1,1,F\nb,1,2,1,M\nc,2,3,0,F\n", &[AttributeConfig::new("sex")]).unwrap();
    let gone = Exclusion { sample_id: "b".into(), reason: Reason::ImageEmpty, source: String::new() };
    let rest = cohort.without(&[gone]);
    let ids: Vec<_> = rest.samples.iter().map(|sample| sample.sample_id.as_str()).collect();
    assert_eq!(ids, ["a", "c"]);
    assert_eq!(rest.attributes[0].values, [Some("F".to_owned()), Some("F".to_owned())]);
    assert_eq!(rest.outcomes(&[1, 0]).unwrap().time(), [3.0, 1.0]);
}

#[test]
fn the_exclusion_of_a_repeated_row_does_not_remove_the_row_that_was_kept() {
    let (cohort, _) = cohort_of("a,1,1,1,F\nb,1,2,1,M\n", &[]).unwrap();
    let repeated = Exclusion { sample_id: "b".into(), reason: Reason::DuplicateDicomId, source: String::new() };
    assert_eq!(cohort.without(&[repeated]), cohort);
}

#[test]
fn an_attribute_named_twice_is_given_twice() {
    let sex = AttributeConfig::new("sex");
    let (cohort, _) = cohort_of("a,1,1,1,F\nb,1,,1,M\n", &[sex.clone(), sex]).unwrap();
    assert_eq!(cohort.attributes[0], cohort.attributes[1]);
    assert_eq!(cohort.attributes[0].values, [Some("F".to_owned())]);
}

#[test]
fn a_cohort_with_causes_survives_the_file_and_does_not_pass_for_one_kind_of_event() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("causes.csv");
    std::fs::write(&table, "image,subject_id,time,event\na,1,2,3\nb,2,3,0\nc,3,4,2\nd,4,5,3\n").unwrap();
    let outcome = OutcomeConfig { cause: 3, competing: vec![2], censored: Vec::new() };
    let read = Generic::new(GenericConfig::new(&table)).read_causes(&outcome).unwrap();
    let (cohort, exclusions) = build_cohort(read, &[]).unwrap();
    assert_eq!((cohort.cause, cohort.n_events(), exclusions.n()), (Some(3), 2, 0));
    let said = cohort.outcomes(&[0, 1, 2, 3]).unwrap_err().to_string();
    assert!(said.starts_with("events of causes have several causes, of which 3 is predicted"), "{said}");
    let of_event = cohort.outcomes_of_event(&[0, 1, 2, 3]).unwrap();
    let of_any = cohort.outcomes_of_any_cause(&[0, 1, 2, 3]).unwrap();
    assert_eq!((of_event.event(), of_any.event()), (&[true, false, false, true][..], &[true, false, true, true][..]));
    assert_eq!(cohort.competing_outcomes(&[0, 1, 2, 3], 3).unwrap().cause(), [3, 0, 2, 3]);
    assert_eq!(cohort.select(&[1, 2]).cause, Some(3));
    let fitted = FittedAttributes::fit(&[], &cohort, &cohort.all_rows()).unwrap();
    let summary = CohortSummary::new(&cohort, &exclusions, &fitted);
    assert_eq!((summary.total.n_competing, summary.total.censoring_rate), (1, Some(0.25)));
    let path = folder.path().join("cohort.parquet");
    write_cohort(&path, &cohort, &fitted).unwrap();
    let (again, _) = read_cohort(&path).unwrap();
    let ends = |cohort: &Cohort| -> Vec<_> { cohort.samples.iter().map(|s| (s.event, s.competing)).collect() };
    assert_eq!((again.cause, ends(&again)), (Some(3), ends(&cohort)));
    // For another cause than the one it was made for.
    let (other, _) = read_cohort_of_cause(&path, 2).unwrap();
    assert_eq!(other.cause, Some(2));
    assert_eq!(ends(&other), [(false, Some(3)), (false, None), (true, None), (false, Some(3))]);
    // Delimited text has no metadata.
    let path = folder.path().join("cohort.csv");
    write_cohort(&path, &cohort, &fitted).unwrap();
    assert_eq!(ends(&read_cohort_of_cause(&path, 3).unwrap().0), ends(&cohort));
    assert!(read_cohort(&path).unwrap_err().to_string().contains("is 3, expected 1 (observed) or 0 (censored)"));
}

#[test]
fn curves_of_a_cause_name_it_and_are_no_survival() {
    let folder = tempfile::tempdir().unwrap();
    let samples = ["a", "b"].map(SampleId::from);
    let incidence = ndarray::array![[0.0, 0.125, 0.5], [0.0, 0.25, 0.25]];
    let grid = [0.0, 1.0, 2.0];
    let whole = folder.path().join("whole.parquet");
    write_incidence(&whole, &samples, &grid, incidence.view(), 2).unwrap();
    let blocks = folder.path().join("blocks.parquet");
    let rows = incidence.rows().into_iter().map(|row| Ok(row.to_owned().insert_axis(ndarray::Axis(0))));
    write_prediction_blocks(&blocks, &samples, &grid, rows, Some(2)).unwrap();
    for path in [&whole, &blocks] {
        let read = read_incidence(path, 2).unwrap();
        assert_eq!((read.survival, read.grid), (1.0 - &incidence, grid.to_vec()));
        let said = read_incidence(path, 1).unwrap_err().to_string();
        assert!(said.ends_with("are the cumulative incidence of cause 2, expected that of cause 1"), "{said}");
        let said = read_predictions(path, Rising::RunningMinimumOfAll).unwrap_err().to_string();
        assert!(said.contains("expected survival"), "{said}");
    }
    // Survival names no cause, and is refused by its course.
    write_predictions(&whole, &samples, &grid, (1.0 - &incidence).view()).unwrap();
    assert!(read_predictions(&whole, Rising::Refuse).is_ok());
    assert!(matches!(read_incidence(&whole, 2), Err(DataError::NotIncidence { .. })));
    let said = write_incidence(&whole, &samples, &grid, (2.0 * &incidence + 0.5).view(), 2).unwrap_err().to_string();
    assert!(said.contains("expected a probability"), "{said}");
}

#[test]
fn curves_are_text_by_every_ending_of_text() {
    let folder = tempfile::tempdir().unwrap();
    let samples = ["a", "b"].map(SampleId::from);
    let survival = ndarray::array![[1.0, 0.5], [1.0, 0.25]];
    for (name, first_line) in [("a.CSV", "sample_id,0,2"), ("a.tsv", "sample_id\t0\t2"), ("b.TSV", "sample_id\t0\t2")] {
        let path = folder.path().join(name);
        write_predictions(&path, &samples, &[0.0, 2.0], survival.view()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().next(), Some(first_line));
        assert_eq!(read_predictions(&path, Rising::Refuse).unwrap().survival, survival);
    }
}

#[test]
fn curves_of_no_sample_have_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.parquet");
    write_prediction_blocks(&path, &[], &[0.0, 0.5], std::iter::empty(), None).unwrap();
    let table = crate::table::Table::read(&path).unwrap();
    assert_eq!((table.names(), table.n_rows()), (vec!["sample_id", "0", "0.5"], 0));
    assert!(table.numbers("0.5").unwrap().is_empty());
}
