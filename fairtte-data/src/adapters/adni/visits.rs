//! Visits: their codes and months, and the tables `REGISTRY` and `ADNIMERGE` that date them.
//!
//! `VISCODE2` (in ADNIMERGE: `VISCODE`) is `sc`, `scmri` or `bl` for the baseline and `m06`, `m12`, .. for the month
//! after it. Rows of failed screenings (`f`), visits that did not take place (`nv`) and tau scans (`tau`) hold no
//! diagnosis of a visit and are skipped; `uns1` is an unscheduled visit.

use std::collections::HashMap;

use jiff::civil::Date;

use super::cells::{Cells, NamedTable, present};
use super::config::{AdniConfig, UndatedDiagnosis, UnscheduledVisits};
use super::diagnoses::{Diagnosis, diagnosis_in_words};
use super::rule::{History, days_between};
use super::subjects::{People, Subjects};
use crate::DataError;

/// One row of a table of visits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Visit {
    /// Position of the subject; `None` for a person without images.
    pub subject: Option<usize>,
    /// Code of the visit.
    pub code: VisitCode,
    /// Scheduled month after baseline.
    pub month: Option<i32>,
    /// Day of the exam.
    pub date: Option<Date>,
    /// What was found.
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

    fn is_no_visit(&self) -> bool {
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
    /// Everything that may decide a label, as one text.
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

/// Every row of `REGISTRY`: the dates of visits.
///
/// # Errors
/// [`DataError::MissingColumn`] without `EXAMDATE` or a person, [`DataError::InvalidCell`] for a bad date.
pub(super) fn read_registry(table: &NamedTable, subjects: &Subjects) -> Result<Vec<Visit>, DataError> {
    table.required("EXAMDATE")?;
    let people = People::read(table)?;
    let dates = table.dates("EXAMDATE", |index| people.display(index))?;
    let codes = VisitCodes::read(table)?;
    let visit = |index: usize| {
        let code = codes.code(index);
        let subject = people.subject(table, subjects, index)?;
        Ok(Visit { subject, month: code.month(), code, date: dates[index], diagnosis: None, is_event: false })
    };
    (0..table.n_rows()).map(visit).collect()
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

/// What `ADNIMERGE` holds.
#[derive(Clone, Debug, Default)]
pub(super) struct AdniMerge {
    /// One entry per row.
    pub visits: Vec<Visit>,
    /// Age at baseline by subject.
    pub baselines: HashMap<usize, Baseline>,
}

/// Every row of `ADNIMERGE`; diagnoses (`DX`) only if `with_diagnoses`.
///
/// # Errors
/// [`DataError::MissingColumn`] without `EXAMDATE`, a person, or `DX` where it is asked for;
/// [`DataError::InvalidCell`] for a bad date, age or diagnosis.
pub(super) fn read_adnimerge(
    table: &NamedTable,
    subjects: &Subjects,
    with_diagnoses: bool,
) -> Result<AdniMerge, DataError> {
    const EXPECTED: &str = "CN, NL, MCI, AD or Dementia, or a change such as \"MCI to Dementia\"";
    table.required("EXAMDATE")?;
    let people = People::read(table)?;
    let who = |index| people.display(index);
    let (dates, first_dates) = (table.dates("EXAMDATE", who)?, table.dates("EXAMDATE_bl", who)?);
    let codes = VisitCodes::read(table)?;
    let states = if with_diagnoses { table.required("DX")? } else { vec![None; table.n_rows()] };
    let (ages, months) = (table.optional("AGE")?, table.optional("M")?);
    let mut merge = AdniMerge::default();
    let mut ages_by_subject: HashMap<usize, Vec<Baseline>> = HashMap::new();
    for index in 0..table.n_rows() {
        let subject = people.subject(table, subjects, index)?;
        let code = codes.code(index);
        let state = present(states[index].as_deref())
            .map(|cell| diagnosis_in_words(cell).ok_or_else(|| table.invalid("DX", who(index), cell, EXPECTED, index)));
        let diagnosis = state.transpose()?;
        let age = present(ages[index].as_deref())
            .map(|cell| parse_age(cell).ok_or_else(|| table.invalid("AGE", who(index), cell, EXPECTED_AGE, index)));
        let first_date = first_dates[index].or(dates[index].filter(|_| code.main() == "bl"));
        if let (Some(subject), Some(age), Some(date)) = (subject, age.transpose()?, first_date) {
            ages_by_subject.entry(subject).or_default().push(Baseline { age, date });
        }
        let month = present(months[index].as_deref()).and_then(|cell| cell.parse::<f64>().ok());
        #[expect(clippy::cast_possible_truncation, reason = "checked to be a small whole number")]
        let month = month.filter(|month| month.fract() == 0.0 && (0.0..1200.0).contains(month)).map(|m| m as i32);
        let is_event = diagnosis == Some(Diagnosis::Dementia);
        let month = month.or(code.month());
        merge.visits.push(Visit { subject, month, code, date: dates[index], diagnosis, is_event });
    }
    // Every row repeats the age at baseline; should rows differ, the earliest baseline is taken whatever their order.
    let earliest = |baselines: Vec<Baseline>| {
        baselines.into_iter().min_by(|a, b| a.date.cmp(&b.date).then(a.age.total_cmp(&b.age)))
    };
    let earliest = ages_by_subject.into_iter().filter_map(|(subject, ages)| Some((subject, earliest(ages)?)));
    merge.baselines = earliest.collect();
    Ok(merge)
}

/// What an age may be, for messages.
pub(super) const EXPECTED_AGE: &str = "an age in years from 0 to 130, or missing (empty, -4, -1, NA, ?)";

/// A number of years from 0 to 130.
pub(super) fn parse_age(cell: &str) -> Option<f64> {
    cell.parse::<f64>().ok().filter(|age| (0.0..=130.0).contains(age))
}

/// What happened to the rows of a table of diagnoses.
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
    /// Of these undated ones, those of the event, which therefore dates nothing.
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
        let Some(subject) = visit.subject else { continue };
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
        if let Some(subject) = visit.subject {
            note_month(&mut histories[subject], visit.date, visit.month);
        }
    }
    (histories, counts)
}

/// Should two visits of one day claim different months, the earlier month is taken whatever their order.
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
            if let (Some(subject), Some(date), false) = (visit.subject, visit.date, visit.code.main().is_empty()) {
                here.entry((subject, visit.code.main())).and_modify(|first| *first = date.min(*first)).or_insert(date);
            }
        }
        for (visit, date) in here {
            all.entry(visit).or_insert(date);
        }
    }
    all
}
