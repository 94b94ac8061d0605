//! Numbers with a decimal point, and with a decimal comma, which no reader of this crate takes for numbers.

/// What is expected instead of a number with a decimal comma.
pub(crate) const DECIMAL_POINT: &str = "a number with a decimal point, not a comma";

/// The number in a column name, if it is one (not necessarily a valid time).
pub(crate) fn time_of(name: &str) -> Option<f64> {
    name.trim().parse().ok()
}

/// Whether `text` is a number written with a decimal comma, as `0,5`.
pub(crate) fn has_decimal_comma(text: &str) -> bool {
    text.matches(',').count() == 1 && time_of(&text.replace(',', ".")).is_some()
}
