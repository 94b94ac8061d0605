//! The data sets of a study by group, as Table A1 of the paper has them.

use fairtte_data::cohort::CohortSummary;

use super::{Measures, Section, Study};
use crate::plural::counted;
use crate::report::sheet::{Cell, Sheet};

/// A data set that could not be read again is named with the reason.
pub(crate) type Read = Result<CohortSummary, String>;

/// One row per data set, attribute of the study and group; `cohorts` in the order of the data sets.
pub(super) fn section(study: &Study<'_>, cohorts: &[Read]) -> Section {
    let columns = [
        ("data", "data"),
        ("group", "group"),
        ("samples", "samples"),
        ("events", "events"),
        ("censored", "censored %"),
        ("mean-event-time", "mean time of events"),
        ("unit", "unit"),
    ];
    let (mut rows, mut verdict) = (Vec::new(), Vec::new());
    for (data, cohort) in cohorts.iter().enumerate() {
        let name = &study.plan.study().data[data].name;
        let summary = match cohort {
            Ok(summary) => summary,
            Err(problem) => {
                verdict.push(format!("{name} cannot be read any more: {problem}."));
                continue;
            }
        };
        let excluded: usize = summary.excluded.values().sum();
        verdict.push(format!(
            "{name}: {} of {}, {}; {} of {} rows left out.",
            counted(summary.total.n, "sample"),
            counted(summary.n_subjects, "subject"),
            counted(summary.total.n_events, "event"),
            excluded,
            summary.n_read
        ));
        let is_asked =
            |attribute: &str| study.points.levels.keys().any(|of| of.data == data && of.attribute == attribute);
        let asked = summary.attributes.iter().filter(|attribute| is_asked(&attribute.name));
        let groups = asked
            .flat_map(|of| of.groups.iter().map(move |group| (format!("{} {}", of.name, group.level), &group.samples)));
        for (group, samples) in std::iter::once(("all".to_owned(), &summary.total)).chain(groups) {
            rows.push(vec![
                Cell::Text(name.clone()),
                Cell::Text(group),
                Cell::Count(samples.n),
                Cell::Count(samples.n_events),
                Cell::or_missing(samples.censoring_rate.map(|rate| 100.0 * rate), Cell::Value),
                Cell::or_missing(samples.mean_event_time, Cell::Value),
                Cell::Text(summary.time_unit.clone()),
            ]);
        }
    }
    let caption = "Samples of every group before the split, thresholds over all samples.".to_owned();
    let mut sheet = Sheet::new("cohorts".to_owned(), caption, &columns, rows);
    if study.measures() == Measures::Class {
        let of_class = "Of a class that was read from a column, events are positive samples, the censored ones negative samples, and \
                        times mean nothing. The tables below count positive samples as events.";
        sheet.notes.push(of_class.to_owned());
    }
    Section {
        id: "cohorts",
        title: "Data".to_owned(),
        question: "What are the data?".to_owned(),
        verdict,
        sheets: vec![sheet],
        charts: Vec::new(),
    }
}
