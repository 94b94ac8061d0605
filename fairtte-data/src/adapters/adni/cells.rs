//! Columns by name and cells by type, as the tables of ADNI spell them.
//!
//! Names of columns are compared by their letters and digits without regard to case: exports write `Phase` and `PHASE`,
//! and R turns `Image Data ID` into `Image.Data.ID`. Missing is an empty cell, `-4` (not applicable), `-1` (confirmed
//! missing), `NA` and `?`; several answers in one cell (`1:3`, `1|3`) are no answer.
//! Dates come as `2006-01-20`, `2006/01/20` or `1/20/2006`, also followed by a time of day. A cell that is none of these
//! is a mistake and is refused with its place.

use std::path::Path;

use jiff::civil::Date;

use crate::DataError;
pub(super) use crate::adapters::dates::parse_american_date as parse_date;
use crate::error::{Place, nearest};
use crate::table::Table;

/// The cells of one column; `None` where the cell is empty.
pub(super) type Cells = Vec<Option<String>>;

/// What a date may look like, for messages.
pub(super) const EXPECTED_DATE: &str = "a date: YYYY-MM-DD, YYYY/MM/DD or M/D/YYYY";

/// A table whose columns are found whatever the case and punctuation of their names.
pub(super) struct NamedTable {
    table: Table,
}

impl NamedTable {
    /// Reads the table at `path`.
    ///
    /// # Errors
    /// What [`Table::read`] returns, [`DataError::EmptyTable`] for a header without rows,
    /// [`DataError::DuplicateColumn`] if two names differ in case or punctuation only.
    pub(super) fn read(path: &Path) -> Result<Self, DataError> {
        let table = Table::read(path)?;
        let names = table.names();
        for (position, name) in names.iter().enumerate() {
            if names[..position].iter().any(|earlier| plain(earlier) == plain(name)) && !plain(name).is_empty() {
                return Err(DataError::DuplicateColumn { column: (*name).to_owned(), path: path.to_owned() });
            }
        }
        if table.n_rows() == 0 {
            return Err(DataError::EmptyTable { path: path.to_owned() });
        }
        Ok(Self { table })
    }

    pub(super) fn path(&self) -> &Path {
        self.table.path()
    }

    pub(super) fn n_rows(&self) -> usize {
        self.table.n_rows()
    }

    /// Row `index` (from 0) as a spreadsheet counts it.
    pub(super) fn row(&self, index: usize) -> usize {
        self.table.row(index)
    }

    /// Where row `index` (from 0) stands.
    pub(super) fn place(&self, index: usize) -> Place {
        self.table.place(index)
    }

    fn find(&self, name: &str) -> Option<&str> {
        self.table.names().into_iter().find(|column| plain(column) == plain(name))
    }

    /// The cells of column `name`.
    ///
    /// # Errors
    /// [`DataError::MissingColumn`] with the nearest existing name.
    pub(super) fn required(&self, name: &str) -> Result<Cells, DataError> {
        let column = self.find(name).ok_or_else(|| DataError::MissingColumn {
            column: name.to_owned(),
            path: self.path().to_owned(),
            nearest: nearest(name, self.table.names()),
        })?;
        self.table.text(column)
    }

    /// The cells of column `name`, all missing if there is no such column.
    ///
    /// # Errors
    /// What [`Table::text`] returns.
    pub(super) fn optional(&self, name: &str) -> Result<Cells, DataError> {
        self.find(name).map_or_else(|| Ok(vec![None; self.n_rows()]), |column| self.table.text(column))
    }

    /// The first of `names` that is a column.
    pub(super) fn first_of<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        names.iter().copied().find(|name| self.find(name).is_some())
    }

    /// The dates of column `name`, all missing if there is no such column; `who` names the sample of a row.
    ///
    /// # Errors
    /// [`DataError::InvalidCell`] for a cell that is neither missing nor a date.
    pub(super) fn dates(&self, name: &str, who: impl Fn(usize) -> String) -> Result<Vec<Option<Date>>, DataError> {
        let parse = |(index, cell): (usize, Option<String>)| {
            let Some(cell) = present(cell.as_deref()) else { return Ok(None) };
            let date = parse_date(cell);
            date.map(Some).ok_or_else(|| self.invalid(name, who(index), cell, EXPECTED_DATE, index))
        };
        self.optional(name)?.into_iter().enumerate().map(parse).collect()
    }

    /// The error for the cell `value` of column `name` in row `index`.
    pub(super) fn invalid(
        &self,
        name: &str,
        sample: String,
        value: &str,
        expected: &'static str,
        index: usize,
    ) -> DataError {
        let value = format!("\"{value}\"");
        DataError::InvalidCell { column: name.to_owned(), sample, value, expected, place: self.place(index) }
    }
}

/// Letters and digits of a column name in lower case.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The cell, unless it says that there is no value.
pub(super) fn present(cell: Option<&str>) -> Option<&str> {
    const MISSING: [&str; 11] = ["-4", "-4.0", "-1", "-1.0", "NA", "N/A", "nan", "null", "none", "?", "."];
    cell.map(str::trim).filter(|cell| !cell.is_empty() && !MISSING.iter().any(|code| code.eq_ignore_ascii_case(cell)))
}

/// Whether a cell holds several answers, `1:3` or `1|3`.
pub(super) fn is_several_answers(cell: &str) -> bool {
    let mut answers = cell.split([':', '|']);
    answers.clone().count() > 1 && answers.all(|answer| answer.parse::<u8>().is_ok())
}

/// A code such as `2` or, from software that knows no missing whole numbers, `2.0`.
pub(super) fn parse_code(cell: &str) -> Option<u8> {
    let whole = cell.strip_suffix(".0").unwrap_or(cell);
    whole.bytes().all(|byte| byte.is_ascii_digit()).then(|| whole.parse().ok()).flatten()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn every_documented_form_of_a_date_is_read() {
        for text in ["2006-01-20", "2006/01/20", "1/20/2006", "01/20/2006", "2006-01-20 00:00:00.0"] {
            assert_eq!(parse_date(text), Some(date(2006, 1, 20)), "{text}");
        }
        assert_eq!(parse_date("9/01/2013"), Some(date(2013, 9, 1)));
        assert_eq!(parse_date("2/29/2012"), Some(date(2012, 2, 29)));
    }

    #[test]
    fn what_could_be_another_day_is_no_date() {
        let wrong = ["20/1/2006", "1/20/06", "2006-13-01", "2006-02-30", "2/29/2013", "1-20-2006", "2006", "2006-01"];
        for text in wrong.into_iter().chain(["", "today", "2006-01-20-3", "+200-1-1", "1//2006", "2006-01-20 noon"]) {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }

    #[test]
    fn codes_for_missing_are_no_values() {
        for text in ["", " ", "-4", "-1", "NA", "nan", "?", "-4.0"] {
            assert_eq!(present(Some(text)), None, "{text}");
        }
        assert_eq!((present(Some(" 0 ")), present(None)), (Some("0"), None));
    }

    #[test]
    fn codes_are_whole_numbers_whatever_software_saved_them() {
        assert_eq!((parse_code("3"), parse_code("3.0"), parse_code("12")), (Some(3), Some(3), Some(12)));
        assert!(["3.5", "-3", "three", "", "+3", "1e0"].into_iter().all(|text| parse_code(text).is_none()));
        assert!(is_several_answers("1:3") && is_several_answers("1|2|3"));
        assert!(!is_several_answers("1") && !is_several_answers("MCI:AD") && !is_several_answers("1:"));
    }

    #[test]
    fn columns_are_found_whatever_case_and_punctuation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "Image.Data.ID,PHASE\r\nI1,ADNI3\r\n").unwrap();
        let table = NamedTable::read(&path).unwrap();
        assert_eq!(table.required("Image Data ID").unwrap(), [Some("I1".to_owned())]);
        assert_eq!(table.optional("Phase").unwrap(), [Some("ADNI3".to_owned())]);
        assert_eq!(table.optional("PTID").unwrap(), [None]);
        let message = table.required("Image Date").unwrap_err().to_string();
        assert_eq!(
            message,
            format!("column \"Image Date\" is not in {}, nearest is \"Image.Data.ID\"", path.display())
        );
        std::fs::write(&path, "Phase,PHASE\n1,2\n").unwrap();
        let message = NamedTable::read(&path).err().unwrap().to_string();
        assert!(message.starts_with("column \"PHASE\" appears more than once in "), "{message}");
        std::fs::write(&path, "Phase,RID\n").unwrap();
        let message = NamedTable::read(&path).err().unwrap().to_string();
        assert!(message.ends_with("a.csv has no rows, expected at least one"), "{message}");
    }
}
