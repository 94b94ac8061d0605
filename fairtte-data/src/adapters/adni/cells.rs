//! Reads columns by name and cells by type from the tables of ADNI.
//!
//! Names of columns are compared by their letters and digits without regard to case: exports write `Phase` and `PHASE`,
//! and R turns `Image Data ID` into `Image.Data.ID`. Missing is an empty cell, `-4` (not applicable), `-1` (confirmed
//! missing), `NA` and `?`; rows whose cells are all empty are skipped.
//! Dates come as `2006-01-20`, `2006/01/20` or `1/20/2006`, also followed by a time of day. Any other cell is an
//! error that names its place if it affects a label, and is only counted otherwise.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::civil::Date;

use crate::DataError;
pub(super) use crate::adapters::codes::{parse_sex, present, whole_number};
pub(super) use crate::adapters::dates::parse_american_date as parse_date;
use crate::error::Place;
use crate::nearest::nearest;
use crate::table::Table;

/// The cells of one column; `None` where the cell is empty.
pub(super) type Cells = Vec<Option<String>>;

/// The accepted forms of a date, for messages.
pub(super) const EXPECTED_DATE: &str = "a date: YYYY-MM-DD, YYYY/MM/DD or M/D/YYYY";

/// A table whose columns are found whatever the case and punctuation of their names.
pub(super) struct NamedTable {
    table: Table,
    /// The rows that are not blank, by their position in `table`.
    rows: Vec<usize>,
}

/// A cell that should hold a date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DateCell {
    Missing,
    Day(Date),
    /// Neither missing nor a date.
    Odd(String),
}

impl NamedTable {
    /// Reads the table at `path`.
    ///
    /// # Errors
    /// What [`Table::read_lossy`] returns, [`DataError::EmptyTable`] if all rows below the header are empty,
    /// [`DataError::DuplicateColumn`] if two names differ in case or punctuation only.
    pub(super) fn read(path: &Path) -> Result<Self, DataError> {
        let table = Table::read_lossy(path)?;
        let names = table.names();
        for (position, name) in names.iter().enumerate() {
            if names[..position].iter().any(|earlier| plain(earlier) == plain(name)) && !plain(name).is_empty() {
                return Err(DataError::DuplicateColumn { column: (*name).to_owned(), path: path.to_owned() });
            }
        }
        let blank_rows = table.blank_rows()?;
        let rows: Vec<usize> = (0..table.n_rows()).filter(|row| !blank_rows[*row]).collect();
        if rows.is_empty() {
            return Err(DataError::EmptyTable { path: path.to_owned() });
        }
        Ok(Self { table, rows })
    }

    pub(super) fn path(&self) -> &Path {
        self.table.path()
    }

    /// Name of the file, for notes.
    pub(super) fn file(&self) -> String {
        self.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Number of rows that are not blank.
    pub(super) fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// Row `index` (from 0) as a spreadsheet counts it.
    pub(super) fn row(&self, index: usize) -> usize {
        self.table.row(self.rows[index])
    }

    /// The place (file and row) of row `index` (from 0).
    pub(super) fn place(&self, index: usize) -> Place {
        self.table.place(self.rows[index])
    }

    fn cells(&self, column: &str) -> Result<Cells, DataError> {
        let mut all = self.table.text(column)?;
        Ok(self.rows.iter().map(|&row| all[row].take()).collect())
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
        self.cells(column)
    }

    /// The cells of column `name`, all missing if there is no such column.
    ///
    /// # Errors
    /// What [`Table::text`] returns.
    pub(super) fn optional(&self, name: &str) -> Result<Cells, DataError> {
        self.find(name).map_or_else(|| Ok(vec![None; self.n_rows()]), |column| self.cells(column))
    }

    /// The first of `names` that is a column.
    pub(super) fn first_of<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        names.iter().copied().find(|name| self.find(name).is_some())
    }

    /// The dates of column `name`, all missing if there is no such column.
    ///
    /// # Errors
    /// What [`Table::text`] returns.
    pub(super) fn dates(&self, name: &str) -> Result<Vec<DateCell>, DataError> {
        let date = |cell: Option<String>| match present(cell.as_deref()) {
            None => DateCell::Missing,
            Some(text) => parse_date(text).map_or_else(|| DateCell::Odd(text.to_owned()), DateCell::Day),
        };
        Ok(self.optional(name)?.into_iter().map(date).collect())
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

/// Cells of an unexpected kind that affect no label: counted by column, with the first one as an example.
#[derive(Clone, Debug, Default)]
pub(super) struct OddCells(BTreeMap<&'static str, (usize, String)>);

impl OddCells {
    /// Counts the cell `value` of column `name` in row `index` of `table`.
    fn add(&mut self, table: &NamedTable, name: &'static str, value: &str, index: usize) {
        let first = || (0, format!("\"{value}\" in row {}", table.row(index)));
        self.0.entry(name).or_insert_with(first).0 += 1;
    }

    /// The day of a cell that affects no label if it is not a date.
    pub(super) fn day(
        &mut self,
        table: &NamedTable,
        name: &'static str,
        cell: &DateCell,
        index: usize,
    ) -> Option<Date> {
        match cell {
            DateCell::Missing => None,
            DateCell::Day(date) => Some(*date),
            DateCell::Odd(value) => {
                self.add(table, name, value, index);
                None
            }
        }
    }

    /// The value of the cell in row `index` of column `name`; `None` if it is missing or unexpected; the latter is
    /// counted.
    pub(super) fn read<T>(
        &mut self,
        table: &NamedTable,
        name: &'static str,
        column: &Cells,
        index: usize,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let cell = present(column[index].as_deref())?;
        let value = parse(cell);
        if value.is_none() {
            self.add(table, name, cell, index);
        }
        value
    }

    /// One sentence per column of `table`.
    pub(super) fn notes(&self, table: &NamedTable) -> impl Iterator<Item = String> {
        let file = table.file();
        self.0.iter().map(move |(name, (n, first))| {
            format!(
                "cells of column {name} of {file} without a known value, which count as missing: {n}, the first is {first}"
            )
        })
    }
}

/// Letters and digits of a column name in lower case.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
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
    fn blank_rows_are_no_rows_and_remarks_in_an_old_code_page_hinder_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "RID,PTID\n\n1,a\n , \r\n\"\",\"\"\n2,b\n\n\n").unwrap();
        let table = NamedTable::read(&path).unwrap();
        assert_eq!(table.required("RID").unwrap(), [Some("1".to_owned()), Some("2".to_owned())]);
        assert_eq!((table.n_rows(), table.row(0), table.place(1).row), (2, 3, 6));
        std::fs::write(&path, b"RID,REMARK\n1,caf\xe9\n").unwrap();
        let remark = NamedTable::read(&path).unwrap().required("REMARK").unwrap();
        assert_eq!(remark, [Some("caf\u{fffd}".to_owned())], "an old code page in a remark");
        std::fs::write(&path, b"\xff\xfeR\0I\0D\0").unwrap();
        assert!(NamedTable::read(&path).err().unwrap().to_string().ends_with("its text is UTF-16, expected UTF-8"));
        std::fs::write(&path, "RID,PTID\n,\n\n").unwrap();
        assert!(matches!(NamedTable::read(&path), Err(DataError::EmptyTable { .. })));
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
