//! Which cells are missing, and values that no cell has.

use std::path::Path;

use crate::DataError;
use crate::nearest::nearest;

/// Whether `cell` is empty or one of `missing_values`, whatever the case of ASCII letters; spaces around either do not count.
pub fn is_missing(missing_values: &[String], cell: &str) -> bool {
    let cell = cell.trim();
    cell.is_empty() || missing_values.iter().any(|text| text.trim().eq_ignore_ascii_case(cell))
}

/// Refuses a value that no cell of a column has, `is_it` being true of none.
pub(crate) fn refuse_unused(
    path: &Path,
    column: &str,
    value: &str,
    cells: &[Option<String>],
    is_it: impl Fn(&str) -> bool,
) -> Result<(), DataError> {
    if cells.is_empty() || cells.iter().flatten().any(|text| is_it(text)) {
        return Ok(());
    }
    Err(DataError::NoSuchValue {
        column: column.to_owned(),
        value: value.to_owned(),
        path: path.to_owned(),
        nearest: nearest(value, cells.iter().flatten().map(String::as_str)),
    })
}
