//! A table whose numbers are known: shown with rounded numbers, written with all digits.

use fairtte_data::DataError;
use fairtte_data::table::{ColumnValues, csv_text};

use super::format::{column_of, number, p_value, short};
use super::tables::{Line, Table};

/// A table with its numbers.
#[derive(Debug)]
pub(crate) struct Sheet {
    /// Stem of the files.
    pub(crate) name: String,
    pub(crate) caption: String,
    /// Name in the CSV file, and title.
    pub(crate) columns: Vec<(String, String)>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Sentences below the table.
    pub(crate) notes: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Text(String),
    /// A value of the table.
    Value(f64),
    /// A rank, a statistic or a difference of ranks.
    Statistic(f64),
    P(f64),
    Count(usize),
    Missing,
}

impl Cell {
    pub(crate) fn or_missing(value: Option<f64>, of: fn(f64) -> Self) -> Self {
        value.map_or(Self::Missing, of)
    }

    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Value(value) => short(*value),
            Self::Statistic(value) => number(*value),
            Self::P(p) => p_value(*p),
            Self::Count(n) => n.to_string(),
            Self::Missing => "–".to_owned(),
        }
    }

    fn exact(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Value(value) | Self::Statistic(value) | Self::P(value) => Some(value.to_string()),
            Self::Count(n) => Some(n.to_string()),
            Self::Missing => None,
        }
    }
}

impl Sheet {
    /// The table for papers, with rounded numbers.
    pub(crate) fn table(&self) -> Table {
        let cells = |cells: Vec<String>| Line::Cells { cells, indented: false, remarks: Vec::new() };
        Table {
            name: self.name.clone(),
            caption: self.caption.clone(),
            header: self.columns.iter().map(|(_, title)| title.clone()).collect(),
            lines: self.shown().into_iter().map(cells).chain(self.notes.iter().cloned().map(Line::Note)).collect(),
        }
    }

    /// The cells of every row as texts; the values of a column have one number of decimals.
    pub(crate) fn shown(&self) -> Vec<Vec<String>> {
        let mut rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(Cell::shown).collect()).collect();
        for place in 0..self.columns.len() {
            let value = |row: &Vec<Cell>| if let Cell::Value(value) = row[place] { Some(value) } else { None };
            for (row, text) in rows.iter_mut().zip(column_of(self.rows.iter().map(value))) {
                if let Some(text) = text {
                    row[place] = text;
                }
            }
        }
        rows
    }

    /// The text of the CSV file, with all digits.
    ///
    /// # Errors
    /// [`DataError`] if the table cannot be made, which no input should cause.
    pub(crate) fn csv(&self) -> Result<String, DataError> {
        let mut columns: Vec<(String, ColumnValues<'_>)> = Vec::new();
        for (place, (key, _)) in self.columns.iter().enumerate() {
            // A method may have the name of the first column.
            let mut key = key.clone();
            while columns.iter().any(|(other, _)| *other == key) {
                key.push('_');
            }
            columns.push((key, ColumnValues::Text(self.rows.iter().map(|row| row[place].exact()).collect())));
        }
        csv_text(columns)
    }

    /// A table without rows may not be written; every row has a cell per column.
    pub(crate) fn new(name: String, caption: String, columns: &[(&str, &str)], rows: Vec<Vec<Cell>>) -> Self {
        let columns = columns.iter().map(|(key, title)| ((*key).to_owned(), (*title).to_owned())).collect();
        Self { name, caption, columns, rows, notes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_a_column_have_one_number_of_decimals_and_the_file_all_digits() {
        let row = |name: &str, value| vec![Cell::Text(name.to_owned()), value, Cell::Count(3)];
        let rows = vec![row("a", Cell::Value(37.8)), row("b", Cell::Missing), row("c", Cell::Value(49.558))];
        let columns = [("name", "name"), ("censored", "censored %"), ("n", "n")];
        let sheet = Sheet::new("s".to_owned(), String::new(), &columns, rows);
        assert_eq!(sheet.shown(), [["a", "37.80", "3"], ["b", "\u{2013}", "3"], ["c", "49.56", "3"]]);
        let Some(Line::Cells { cells, .. }) = sheet.table().lines.into_iter().next() else { panic!("a row") };
        assert_eq!(cells, ["a", "37.80", "3"]);
        assert!(sheet.csv().expect("a table").contains("37.8,3"));
    }
}
