//! The page of an explanation: which parts of single inputs a predicted risk depends on.

use serde::Serialize;

use super::ReportError;
use super::samples::Plane;
use super::template::{environment, fill_in};

const TEMPLATE: &str = include_str!("explain.html");

/// Everything that the page shows.
#[derive(Serialize)]
pub(crate) struct ExplainPage {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) question: String,
    pub(crate) is_table: bool,
    pub(crate) is_volume: bool,
    /// Whether there are maps of random weights.
    pub(crate) has_control: bool,
    /// Name and meaning of every method.
    pub(crate) methods: Vec<(&'static str, String)>,
    /// What black and white are, of pictures.
    pub(crate) shades: Option<String>,
    pub(crate) samples: Vec<Sample>,
}

/// One sample.
#[derive(Serialize)]
pub(crate) struct Sample {
    pub(crate) id: String,
    #[serde(serialize_with = "three")]
    pub(crate) risk: f64,
    pub(crate) horizon: String,
    pub(crate) outcome: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) part: Option<String>,
    /// The picture or slices; empty for a table.
    pub(crate) planes: Vec<Plane>,
    pub(crate) maps: Vec<MapView>,
    /// Columns of a table; empty for pictures.
    pub(crate) columns: Vec<Column>,
}

/// A map of a sample.
#[derive(Serialize)]
pub(crate) struct MapView {
    pub(crate) name: String,
    /// The absolute value of the strongest colour.
    #[serde(serialize_with = "short")]
    pub(crate) end: f64,
    /// Of values that add up to something.
    #[serde(serialize_with = "some_signed")]
    pub(crate) sum: Option<f64>,
    pub(crate) remarks: Vec<String>,
    pub(crate) planes: Vec<Plane>,
}

/// A column of a table.
#[derive(Serialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Its features as the network reads them.
    pub(crate) input: String,
    /// One per map.
    pub(crate) bars: Vec<Bar>,
}

/// A value and its length as a bar.
#[derive(Serialize)]
pub(crate) struct Bar {
    #[serde(serialize_with = "signed")]
    pub(crate) value: f64,
    /// Of the width, 0 to 50.
    pub(crate) percent: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of serde")]
fn three<S: serde::Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{value:.3}"))
}

/// Two digits that are not 0.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of serde")]
fn short<S: serde::Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&digits(*value))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of serde")]
fn signed<S: serde::Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let sign = if *value < 0.0 { "\u{2212}" } else { "+" };
    serializer.serialize_str(&format!("{sign}{}", digits(value.abs())))
}

#[expect(clippy::ref_option, reason = "the signature of serde")]
fn some_signed<S: serde::Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => signed(value, serializer),
        None => serializer.serialize_none(),
    }
}

fn digits(value: f64) -> String {
    if value >= 0.001 || value == 0.0 { format!("{value:.4}") } else { format!("{value:.1e}") }
}

/// The HTML page: one file without script or anything from elsewhere.
///
/// # Errors
/// [`ReportError`] if the template fails, which no input should cause.
pub(crate) fn render_explain(page: &ExplainPage) -> Result<String, ReportError> {
    fill_in(&environment(TEMPLATE)?, page)
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn small_values_keep_their_digits() {
        assert_eq!([0.0, 0.25, 0.0012, 0.000_34].map(digits), ["0.0000", "0.2500", "0.0012", "3.4e-4"]);
    }
}
