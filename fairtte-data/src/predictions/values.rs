//! The values of the attributes of a table of curves.

use fairtte_metrics::SampleId;

use crate::DataError;
use crate::cohort::AttributeColumn;
use crate::cohort::attributes::same_ignoring_case;
use crate::nearest::nearest;
use crate::predictions::outcomes::invalid;
use crate::table::Table;

/// Texts that R and pandas write for a missing value.
pub(crate) const MISSING: [&str; 5] = ["NA", "<NA>", "NaN", "nan", "null"];

/// The values of the attributes `names`. The texts in `missing` stand for a missing value, whatever their case.
///
/// # Errors
/// [`DataError::UnknownMissing`] for a text that no attribute has; [`DataError::EmptyColumn`];
/// [`DataError::InvalidCell`] for an attribute that mixes numbers and text.
pub(crate) fn read_attributes(
    table: &Table,
    names: &[&str],
    missing: &[String],
    samples: &[SampleId],
) -> Result<Vec<AttributeColumn>, DataError> {
    let mut cells = names.iter().map(|name| table.text(name)).collect::<Result<Vec<_>, _>>()?;
    for text in missing {
        let is_named = |value: &mut String| same_ignoring_case(value, text);
        let taken: Vec<String> = cells.iter_mut().flatten().filter_map(|value| value.take_if(is_named)).collect();
        if taken.is_empty() {
            let values = cells.iter().flatten().flatten().map(String::as_str);
            let (value, path) = (text.clone(), table.path().to_owned());
            return Err(DataError::UnknownMissing { value, path, nearest: nearest(text, values) });
        }
    }
    names.iter().zip(cells).map(|(name, cells)| read_attribute(table, name, cells, samples)).collect()
}

/// The values of an attribute, all of one kind; `61.0` is written as `61` where all are whole numbers.
fn read_attribute(
    table: &Table,
    name: &str,
    mut values: Vec<Option<String>>,
    samples: &[SampleId],
) -> Result<AttributeColumn, DataError> {
    for value in &mut values {
        value.take_if(|text| MISSING.contains(&text.as_str()));
    }
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    let n_numbers = values.iter().flatten().filter(|text| is_number(text)).count();
    let n_texts = values.iter().flatten().count() - n_numbers;
    if n_numbers + n_texts == 0 {
        return Err(DataError::EmptyColumn { column: name.to_owned(), path: table.path().to_owned() });
    }
    let (odd_is_number, expected) = if n_numbers < n_texts {
        (true, "text like most cells of the column")
    } else {
        (false, "a number like most cells of the column")
    };
    let is_odd = |value: &Option<String>| value.as_deref().is_some_and(|text| is_number(text) == odd_is_number);
    if n_numbers > 0
        && n_texts > 0
        && let Some(row) = values.iter().position(is_odd)
    {
        return Err(invalid(table, row, samples, name, values[row].take(), expected));
    }
    let whole = |text: &String| text.strip_suffix(".0").unwrap_or(text).parse::<i64>().is_ok();
    if values.iter().flatten().all(whole) {
        values.iter_mut().flatten().for_each(|text| text.truncate(text.strip_suffix(".0").unwrap_or(text).len()));
    }
    Ok(AttributeColumn::new(name, values))
}
