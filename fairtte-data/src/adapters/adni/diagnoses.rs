//! The diagnostic summary `DXSUM`: the codes of the current diagnosis in every phase of ADNI.
//!
//! | column | phase | codes |
//! |---|---|---|
//! | `DIAGNOSIS` | ADNI3, ADNI4, all phases of new exports | 1 CN, 2 MCI, 3 dementia |
//! | `DXCHANGE` | ADNIGO, ADNI2 | 1 2 3 stable CN, MCI, dementia; 4 5 6 to MCI, dementia, dementia; 7 8 9 back to CN, MCI, CN |
//! | `DXCURREN` | ADNI1 | 1 NL, 2 MCI, 3 AD |
//!
//! The first of these columns that holds one of its codes is used, whatever the phase; a row without any holds no
//! diagnosis. Other values (`0`, `7` in `DIAGNOSIS`, several answers such as `1:3`) are skipped and counted. Words in
//! place of codes (`MCI`, `MCI to Dementia`), as the R packages write them, are read too. On request, ADNI1 rows
//! without a current diagnosis take it from the recorded conversion: `DXCONV` 1 with `DXCONTYP` 1 2 3 = to MCI, AD, AD
//! and `DXCONV` 2 with `DXREV` 1 2 3 = back to NL, MCI, NL.

use super::cells::{Cells, DateCell, EXPECTED_DATE, NamedTable, OddCells, whole_number};
use super::config::{AdniConfig, DementiaCause, MissingCurrent};
use super::subjects::{People, Subjects};
use super::visits::{Visit, VisitCodes};
use crate::DataError;

/// The diagnosis made at a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Diagnosis {
    /// Cognitively normal.
    Normal,
    /// Mild cognitive impairment.
    Impaired,
    /// Dementia.
    Dementia,
}

use Diagnosis::{Dementia, Impaired, Normal};

/// The rows of the diagnostic summary about people with images, and notes for the user.
///
/// # Errors
/// [`DataError::MissingColumn`] without any column of diagnoses, without `EXAMDATE`, without `PTID` and `RID`, or
/// without `DXDDUE` if the cause is needed; [`DataError::InvalidCell`] for a bad date of a diagnosis.
pub(super) fn read_dxsum(
    table: &NamedTable,
    subjects: &Subjects,
    config: &AdniConfig,
) -> Result<(Vec<Visit>, Vec<String>), DataError> {
    let people = People::read(table, subjects)?;
    let columns = Columns::read(table, config)?;
    table.required("EXAMDATE")?;
    let dates = table.dates("EXAMDATE")?;
    let codes = VisitCodes::read(table)?;
    let mut odd = OddCells::default();
    let mut visits = Vec::new();
    for (index, subject) in people.rows() {
        let mut row = Row { table, index, odd: &mut odd };
        let diagnosis = columns.diagnosis(&mut row);
        let is_event = diagnosis == Some(Dementia) && columns.is_cause(&mut row);
        let code = codes.code(index);
        let date = match &dates[index] {
            DateCell::Odd(cell) if diagnosis.is_some() && !code.is_no_visit() => {
                return Err(table.invalid("EXAMDATE", people.display(index), cell, EXPECTED_DATE, index));
            }
            cell => odd.day(table, "EXAMDATE", cell, index),
        };
        visits.push(Visit { subject, month: code.month(), code, date, diagnosis, is_event });
    }
    let notes = people.notes(table).into_iter().chain(odd.notes(table)).collect();
    Ok((visits, notes))
}

/// The columns of diagnoses; a column that the file lacks is all missing.
struct Columns {
    state: Cells,
    change: Cells,
    current: Cells,
    conversion: Option<[Cells; 3]>,
    cause: Option<Cells>,
}

impl Columns {
    fn read(table: &NamedTable, config: &AdniConfig) -> Result<Self, DataError> {
        if table.first_of(&["DIAGNOSIS", "DXCHANGE", "DXCURREN"]).is_none() {
            table.required("DIAGNOSIS")?;
        }
        let conversion = match config.missing_current {
            MissingCurrent::Missing => None,
            MissingCurrent::Conversion => {
                Some([table.required("DXCONV")?, table.optional("DXCONTYP")?, table.optional("DXREV")?])
            }
        };
        let cause = match config.dementia_cause {
            DementiaCause::Any => None,
            DementiaCause::Alzheimer => Some(table.required("DXDDUE")?),
        };
        Ok(Self {
            state: table.optional("DIAGNOSIS")?,
            change: table.optional("DXCHANGE")?,
            current: table.optional("DXCURREN")?,
            conversion,
            cause,
        })
    }

    fn diagnosis(&self, row: &mut Row<'_>) -> Option<Diagnosis> {
        let state = |code| [Normal, Impaired, Dementia].get(usize::from(code).wrapping_sub(1)).copied();
        let found = row.found(&self.state, "DIAGNOSIS", state);
        let found = found.or_else(|| row.found(&self.change, "DXCHANGE", after_change));
        let found = found.or_else(|| row.found(&self.current, "DXCURREN", state));
        found.or_else(|| self.recorded_conversion(row))
    }

    fn recorded_conversion(&self, row: &mut Row<'_>) -> Option<Diagnosis> {
        let [conversion, to, back] = self.conversion.as_ref()?;
        match row.code(conversion, "DXCONV", 0..=2)? {
            1 => row.code(to, "DXCONTYP", 1..=3).map(|kind| if kind == 1 { Impaired } else { Dementia }),
            2 => row.code(back, "DXREV", 1..=3).map(|kind| if kind == 2 { Impaired } else { Normal }),
            _ => None,
        }
    }

    fn is_cause(&self, row: &mut Row<'_>) -> bool {
        self.cause.as_ref().is_none_or(|cause| row.code(cause, "DXDDUE", 1..=2) == Some(1))
    }
}

fn after_change(code: u8) -> Option<Diagnosis> {
    match code {
        1 | 7 | 9 => Some(Normal),
        2 | 4 | 8 => Some(Impaired),
        3 | 5 | 6 => Some(Dementia),
        _ => None,
    }
}

/// One row, for reading codes and counting cells without a known code.
struct Row<'a> {
    table: &'a NamedTable,
    index: usize,
    odd: &'a mut OddCells,
}

impl Row<'_> {
    fn found(
        &mut self,
        column: &Cells,
        name: &'static str,
        meaning: impl Fn(u8) -> Option<Diagnosis>,
    ) -> Option<Diagnosis> {
        let parse = |cell: &str| whole_number(cell).and_then(meaning).or_else(|| diagnosis_in_words(cell));
        self.odd.read(self.table, name, column, self.index, parse)
    }

    fn code(&mut self, column: &Cells, name: &'static str, range: std::ops::RangeInclusive<u8>) -> Option<u8> {
        let parse = |cell: &str| whole_number(cell).filter(|code| range.contains(code));
        self.odd.read(self.table, name, column, self.index, parse)
    }
}

/// `CN`, `MCI`, `Dementia`, `MCI to Dementia`, `Conversion: MCI to Dementia`, ..: the last word is the current state.
pub(super) fn diagnosis_in_words(text: &str) -> Option<Diagnosis> {
    let state = text.rsplit_once(" to ").map_or(text, |(_, now)| now);
    let state = state.rsplit_once(':').map_or(state, |(_, state)| state);
    match state.trim().to_ascii_lowercase().as_str() {
        "cn" | "nl" => Some(Normal),
        "mci" => Some(Impaired),
        "ad" | "dementia" | "dem" => Some(Dementia),
        _ => None,
    }
}
