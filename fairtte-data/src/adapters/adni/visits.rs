//! Visits: their codes and months, and the tables `REGISTRY` and `ADNIMERGE` that date them.
//!
//! `VISCODE2` (in ADNIMERGE: `VISCODE`) is `sc`, `scmri` or `bl` for the baseline and `m06`, `m12`, .. for the month
//! after it. Rows of failed screenings (`f`), visits that did not take place (`nv`) and tau scans (`tau`) hold no
//! diagnosis of a visit and are skipped; `uns1` is an unscheduled visit.

use std::collections::HashMap;

use jiff::civil::Date;

use super::cells::{Cells, DateCell, EXPECTED_DATE, NamedTable, OddCells, present, whole_number};
use super::config::{AdniConfig, UndatedDiagnosis, UnscheduledVisits};
use super::diagnoses::{Diagnosis, diagnosis_in_words};
use super::rule::{History, days_between};
use super::subjects::{People, Subjects};
use crate::DataError;

/// One row of a table of visits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Visit {
    /// Position of the subject.
    pub subject: usize,
    /// Code of the visit.
    pub code: VisitCode,
    /// Scheduled month after baseline.
    pub month: Option<i32>,
    /// Day of the exam.
    pub date: Option<Date>,
    /// The diagnosis.
    pub diagnosis: Option<Diagnosis>,
    /// Whether the finding is the event.
    pub is_event: bool,
}

/// The codes of a visit in lower case: of the study phase (`VISCODE`), and for all phases (`VISCODE2`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct VisitCode {
    phase: String,
    common: String,
}

impl VisitCode {
    fn main(&self) -> &str {
        if self.common.is_empty() { &self.phase } else { &self.common }
    }

    pub(super) fn is_no_visit(&self) -> bool {
        [&self.phase, &self.common].into_iter().any(|code| ["f", "nv", "tau"].contains(&code.as_str()))
    }

    fn is_unscheduled(&self) -> bool {
        [&self.phase, &self.common].into_iter().any(|code| code.starts_with("uns"))
    }

    /// 0 for the baseline, 6 for `m06`.
    pub(super) fn month(&self) -> Option<i32> {
        match self.main() {
            "sc" | "scmri" | "bl" => Some(0),
            code => code.strip_prefix('m').filter(|month| month.len() <= 3)?.parse::<u16>().ok().map(i32::from),
        }
    }
}

impl Visit {
    /// Everything that may affect a label, as one text.
    pub(super) fn evidence(&self) -> String {
        let Self { subject: _, code, month, date, diagnosis, is_event } = self;
        let date = date.map(|date| date.to_string()).unwrap_or_default();
        format!("{}|{}|{month:?}|{date}|{diagnosis:?}|{is_event}", code.phase, code.common)
    }
}

/// The columns of visit codes.
pub(super) struct VisitCodes {
    phase: Cells,
    common: Cells,
}

impl VisitCodes {
    pub(super) fn read(table: &NamedTable) -> Result<Self, DataError> {
        Ok(Self { phase: table.optional("VISCODE")?, common: table.optional("VISCODE2")? })
    }

    pub(super) fn code(&self, index: usize) -> VisitCode {
        let lower = |cells: &Cells| present(cells[index].as_deref()).unwrap_or_default().to_ascii_lowercase();
        VisitCode { phase: lower(&self.phase), common: lower(&self.common) }
    }
}

/// The rows of `REGISTRY` about people with images: the dates of visits, and notes for the user.
///
/// # Errors
/// [`DataError::MissingColumn`] without `EXAMDATE` or a person.
pub(super) fn read_registry(table: &NamedTable, subjects: &Subjects) -> Result<(Vec<Visit>, Vec<String>), DataError> {
    table.required("EXAMDATE")?;
    let people = People::read(table, subjects)?;
    let dates = table.dates("EXAMDATE")?;
    let codes = VisitCodes::read(table)?;
    let mut odd = OddCells::default();
    let visit = |(index, subject): (usize, usize)| {
        let (code, date) = (codes.code(index), odd.day(table, "EXAMDATE", &dates[index], index));
        Visit { subject, month: code.month(), code, date, diagnosis: None, is_event: false }
    };
    let visits = people.rows().map(visit).collect();
    Ok((visits, people.notes(table).into_iter().chain(odd.notes(table)).collect()))
}

/// Age at a day, from which the age at any other follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Baseline {
    age: f64,
    date: Date,
}

impl Baseline {
    /// Age in years on `date`: a year has 365.25 days.
    pub(super) fn age_on(&self, date: Date) -> f64 {
        self.age + days_between(self.date, date) as f64 / 365.25
    }
}

/// What `ADNIMERGE` holds about people with images.
#[derive(Clone, Debug, Default)]
pub(super) struct AdniMerge {
    /// One entry per row.
    pub visits: Vec<Visit>,
    /// Age at baseline by subject.
    pub baselines: HashMap<usize, Baseline>,
}

/// The rows of `ADNIMERGE` about people with images, diagnoses (`DX`) only if `with_diagnoses`, and notes for
/// the user.
///
/// # Errors
/// [`DataError::MissingColumn`] without `EXAMDATE`, a person, or `DX` if it is needed;
/// [`DataError::InvalidCell`] for a bad date of a diagnosis.
pub(super) fn read_adnimerge(
    table: &NamedTable,
    subjects: &Subjects,
    with_diagnoses: bool,
) -> Result<(AdniMerge, Vec<String>), DataError> {
    table.required("EXAMDATE")?;
    let people = People::read(table, subjects)?;
    let (dates, first_dates) = (table.dates("EXAMDATE")?, table.dates("EXAMDATE_bl")?);
    let codes = VisitCodes::read(table)?;
    let states = if with_diagnoses { table.required("DX")? } else { vec![None; table.n_rows()] };
    let (ages, months) = (table.optional("AGE")?, table.optional("M")?);
    let mut odd = OddCells::default();
    let mut merge = AdniMerge::default();
    let mut ages_by_subject: HashMap<usize, Vec<Baseline>> = HashMap::new();
    for (index, subject) in people.rows() {
        let code = codes.code(index);
        let diagnosis = odd.read(table, "DX", &states, index, diagnosis_in_words);
        let date = match &dates[index] {
            DateCell::Odd(cell) if diagnosis.is_some() && !code.is_no_visit() => {
                return Err(table.invalid("EXAMDATE", people.display(index), cell, EXPECTED_DATE, index));
            }
            cell => odd.day(table, "EXAMDATE", cell, index),
        };
        let first_date = odd.day(table, "EXAMDATE_bl", &first_dates[index], index);
        let first_date = first_date.or(date.filter(|_| code.main() == "bl"));
        let age = odd.read(table, "AGE", &ages, index, parse_age);
        if let (Some(age), Some(date)) = (age, first_date) {
            ages_by_subject.entry(subject).or_default().push(Baseline { age, date });
        }
        let month = odd.read(table, "M", &months, index, parse_month).or(code.month());
        let is_event = diagnosis == Some(Diagnosis::Dementia);
        merge.visits.push(Visit { subject, code, month, date, diagnosis, is_event });
    }
    // Every row repeats the age at baseline; if rows differ, the earliest baseline is used, whatever their order.
    let earliest = |baselines: Vec<Baseline>| {
        baselines.into_iter().min_by(|a, b| a.date.cmp(&b.date).then(a.age.total_cmp(&b.age)))
    };
    let earliest = ages_by_subject.into_iter().filter_map(|(subject, ages)| Some((subject, earliest(ages)?)));
    merge.baselines = earliest.collect();
    Ok((merge, people.notes(table).into_iter().chain(odd.notes(table)).collect()))
}

/// Months since baseline.
fn parse_month(cell: &str) -> Option<i32> {
    whole_number::<u16>(cell).filter(|month| *month < 1200).map(i32::from)
}

/// The accepted values of an age, for messages.
pub(super) const EXPECTED_AGE: &str = "an age in years from 0 to 130, or missing (empty, -4, -1, NA, ?)";

/// A number of years from 0 to 130.
pub(super) fn parse_age(cell: &str) -> Option<f64> {
    cell.parse::<f64>().ok().filter(|age| (0.0..=130.0).contains(age))
}

/// Counts of the rows of a table of diagnoses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "counts are called n_* everywhere")]
pub(super) struct DiagnosisCounts {
    /// Rows about people with images.
    pub n_rows: usize,
    /// Of them, with a diagnosis at a visit that is used.
    pub n_diagnoses: usize,
    /// Of these, dated by another table.
    pub n_dated_elsewhere: usize,
    /// Of these, without any date.
    pub n_undated: usize,
    /// Of the undated ones, those of the event, which therefore have no event date.
    pub n_undated_events: usize,
}

/// The history of every subject from the visits with diagnoses; `dating` are visits of other tables that date them, the
/// more trusted table first.
pub(super) fn histories(
    diagnosed: &[Visit],
    dating: &[&[Visit]],
    n_subjects: usize,
    config: &AdniConfig,
) -> (Vec<History>, DiagnosisCounts) {
    let mut histories = vec![History::default(); n_subjects];
    let mut counts = DiagnosisCounts::default();
    let dates = dates_by_visit(dating);
    for visit in diagnosed {
        let subject = visit.subject;
        let history = &mut histories[subject];
        counts.n_rows += 1;
        let elsewhere = || dates.get(&(subject, visit.code.main())).copied();
        let date = visit.date.or_else(elsewhere);
        note_month(history, date, visit.month);
        let is_skipped = visit.code.is_no_visit()
            || visit.code.is_unscheduled() && config.unscheduled_visits == UnscheduledVisits::Skipped;
        if visit.diagnosis.is_none() || is_skipped {
            continue;
        }
        counts.n_diagnoses += 1;
        counts.n_dated_elsewhere += usize::from(date.is_some() && visit.date.is_none());
        counts.n_undated += usize::from(date.is_none());
        counts.n_undated_events += usize::from(date.is_none() && visit.is_event);
        history.is_diagnosed |= date.is_some() || config.undated_diagnosis == UndatedDiagnosis::Record;
        if visit.is_event {
            history.event = history.event.into_iter().chain(date).min();
        }
    }
    for visit in dating.iter().copied().flatten() {
        note_month(&mut histories[visit.subject], visit.date, visit.month);
    }
    (histories, counts)
}

/// If two visits of one day have different months, the earlier month is used, whatever their order.
fn note_month(history: &mut History, date: Option<Date>, month: Option<i32>) {
    if let (Some(date), Some(month)) = (date, month) {
        history.months.entry(date).and_modify(|earlier| *earlier = month.min(*earlier)).or_insert(month);
    }
}

fn dates_by_visit<'a>(tables: &[&'a [Visit]]) -> HashMap<(usize, &'a str), Date> {
    let mut all: HashMap<(usize, &str), Date> = HashMap::new();
    for table in tables {
        let mut here: HashMap<(usize, &str), Date> = HashMap::new();
        for visit in *table {
            if let (Some(date), false) = (visit.date, visit.code.main().is_empty()) {
                here.entry((visit.subject, visit.code.main()))
                    .and_modify(|first| *first = date.min(*first))
                    .or_insert(date);
            }
        }
        for (visit, date) in here {
            all.entry(visit).or_insert(date);
        }
    }
    all
}
