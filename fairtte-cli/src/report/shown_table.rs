//! A table of numbers as a page shows it, filled in by the filter `sheet`.

use serde::Serialize;

use super::p_matrix::shade;
use super::sheet::{Cell, Sheet};

/// Rows at or above which a table is folded.
const LONG: usize = 40;

#[derive(Serialize)]
pub(super) struct ShownTable<'a> {
    name: &'a str,
    caption: &'a str,
    header: Vec<&'a str>,
    rows: Vec<Vec<ShownCell>>,
    notes: &'a [String],
    /// Folded, because it is long.
    is_long: bool,
}

#[derive(Serialize)]
struct ShownCell {
    text: String,
    /// `better` or `worse` for a change, the shade of a p value, empty otherwise.
    mark: &'static str,
    is_number: bool,
}

impl<'a> ShownTable<'a> {
    /// The table; `change` marks the values of a table of changes by the name of their column.
    pub(super) fn of(sheet: &'a Sheet, change: Option<fn(&str, f64) -> &'static str>) -> Self {
        let cell = |((cell, text), (key, _)): ((&Cell, String), &(String, String))| {
            let is_number = !matches!(cell, Cell::Text(_));
            let (text, mark) = match (cell, change) {
                (Cell::Value(value), Some(marked)) => (format!("{value:+.1}"), marked(key, *value)),
                (Cell::P(p), _) => (text, shade(*p)),
                _ => (text, ""),
            };
            ShownCell { text: text.replace('-', if is_number { "\u{2212}" } else { "-" }), mark, is_number }
        };
        let row =
            |(cells, texts): (&Vec<Cell>, Vec<String>)| cells.iter().zip(texts).zip(&sheet.columns).map(cell).collect();
        Self {
            name: &sheet.name,
            caption: &sheet.caption,
            header: sheet.columns.iter().map(|(_, title)| title.as_str()).collect(),
            rows: sheet.rows.iter().zip(sheet.shown()).map(row).collect(),
            notes: &sheet.notes,
            is_long: sheet.rows.len() >= LONG,
        }
    }
}
