//! The diagnostic summary `DXSUM`: what every phase of ADNI calls the current diagnosis.
//!
//! | column | phase | codes |
//! |---|---|---|
//! | `DIAGNOSIS` | ADNI3, ADNI4, all phases of new exports | 1 CN, 2 MCI, 3 dementia |
//! | `DXCHANGE` | ADNIGO, ADNI2 | 1 2 3 stable CN, MCI, dementia; 4 5 6 to MCI, dementia, dementia; 7 8 9 back to CN, MCI, CN |
//! | `DXCURREN` | ADNI1 | 1 NL, 2 MCI, 3 AD |
//!
//! The first of them that holds a value decides, whatever the phase; a row without a value is no diagnosis. Words in
//! place of codes (`MCI`, `MCI to Dementia`), as the R packages write them, are read too. On request, ADNI1 rows without
//! a current diagnosis take it from the recorded conversion: `DXCONV` 1 with `DXCONTYP` 1 2 3 = to MCI, AD, AD and
//! `DXCONV` 2 with `DXREV` 1 2 3 = back to NL, MCI, NL.

use super::cells::{Cells, NamedTable, is_several_answers, parse_code, present};
use super::config::{AdniConfig, DementiaCause, MissingCurrent};
use super::subjects::{People, Subjects};
use super::visits::{Visit, VisitCodes};
use crate::DataError;

/// What a visit found.
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

const EXPECTED_STATE: &str = "1 (CN), 2 (MCI), 3 (dementia), or missing (empty, -4, -1, NA, ?)";
const EXPECTED_CHANGE: &str = "1 to 9, or missing (empty, -4, -1, NA, ?)";
const EXPECTED_CONVERSION: &str = "0 (no), 1 (conversion), 2 (reversion), or missing (empty, -4, -1, NA, ?)";
const EXPECTED_KIND: &str = "1, 2, 3, or missing (empty, -4, -1, NA, ?)";
const EXPECTED_CAUSE: &str = "1 (Alzheimer's disease), 2 (other), or missing (empty, -4, -1, NA, ?)";

/// Every row of the diagnostic summary.
///
/// # Errors
/// [`DataError::MissingColumn`] without any column of diagnoses, without `EXAMDATE`, without `PTID` and `RID`, or
/// without `DXDDUE` where the cause is asked for; [`DataError::InvalidCell`] for an unknown code or a bad date.
pub(super) fn read_dxsum(
    table: &NamedTable,
    subjects: &Subjects,
    config: &AdniConfig,
) -> Result<Vec<Visit>, DataError> {
    let people = People::read(table)?;
    let columns = Columns::read(table, config)?;
    table.required("EXAMDATE")?;
    let dates = table.dates("EXAMDATE", |index| people.display(index))?;
    let codes = VisitCodes::read(table)?;
    let visit = |index: usize| {
        let cells = Cell { table, people: &people, index };
        let diagnosis = columns.diagnosis(&cells)?;
        let is_event = diagnosis == Some(Dementia) && columns.is_cause(&cells)?;
        let subject = people.subject(table, subjects, index)?;
        let code = codes.code(index);
        Ok(Visit { subject, month: code.month(), code, date: dates[index], diagnosis, is_event })
    };
    (0..table.n_rows()).map(visit).collect()
}

/// The columns that say what was found, each all missing if the file has it not.
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

    fn diagnosis(&self, cell: &Cell<'_>) -> Result<Option<Diagnosis>, DataError> {
        let state = |code| [Normal, Impaired, Dementia].get(usize::from(code).wrapping_sub(1)).copied();
        if let Some(found) = cell.found(&self.state, "DIAGNOSIS", state, EXPECTED_STATE)? {
            return Ok(Some(found));
        }
        if let Some(found) = cell.found(&self.change, "DXCHANGE", after_change, EXPECTED_CHANGE)? {
            return Ok(Some(found));
        }
        if let Some(found) = cell.found(&self.current, "DXCURREN", state, EXPECTED_STATE)? {
            return Ok(Some(found));
        }
        let Some([conversion, to, back]) = &self.conversion else { return Ok(None) };
        match cell.code(conversion, "DXCONV", 0..=2, EXPECTED_CONVERSION)? {
            Some(1) => {
                let kind = cell.code(to, "DXCONTYP", 1..=3, EXPECTED_KIND)?;
                Ok(kind.map(|kind| if kind == 1 { Impaired } else { Dementia }))
            }
            Some(2) => {
                let kind = cell.code(back, "DXREV", 1..=3, EXPECTED_KIND)?;
                Ok(kind.map(|kind| if kind == 2 { Impaired } else { Normal }))
            }
            _ => Ok(None),
        }
    }

    fn is_cause(&self, cell: &Cell<'_>) -> Result<bool, DataError> {
        let Some(cause) = &self.cause else { return Ok(true) };
        Ok(cell.code(cause, "DXDDUE", 1..=2, EXPECTED_CAUSE)? == Some(1))
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

/// One row, for reading codes and naming it in messages.
struct Cell<'a> {
    table: &'a NamedTable,
    people: &'a People,
    index: usize,
}

impl Cell<'_> {
    fn found(
        &self,
        column: &Cells,
        name: &str,
        meaning: impl Fn(u8) -> Option<Diagnosis>,
        expected: &'static str,
    ) -> Result<Option<Diagnosis>, DataError> {
        let Some(cell) = self.answer(column) else { return Ok(None) };
        let found = parse_code(cell).and_then(meaning).or_else(|| diagnosis_in_words(cell));
        found.map(Some).ok_or_else(|| self.invalid(name, cell, expected))
    }

    fn code(
        &self,
        column: &Cells,
        name: &str,
        range: std::ops::RangeInclusive<u8>,
        expected: &'static str,
    ) -> Result<Option<u8>, DataError> {
        let Some(cell) = self.answer(column) else { return Ok(None) };
        let code = parse_code(cell).filter(|code| range.contains(code));
        code.map(Some).ok_or_else(|| self.invalid(name, cell, expected))
    }

    fn answer<'a>(&self, column: &'a Cells) -> Option<&'a str> {
        present(column[self.index].as_deref()).filter(|cell| !is_several_answers(cell))
    }

    fn invalid(&self, name: &str, cell: &str, expected: &'static str) -> DataError {
        self.table.invalid(name, self.people.display(self.index), cell, expected, self.index)
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
