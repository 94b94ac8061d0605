//! From raw label cells to (time, event), or to a reason why a row has no label.
//!
//! A rule decides row by row: kept with a time > 0 in the unit of the data set, excluded with a reason code, or an error
//! when the cell is not what the column promises. An empty cell is a gap in the data and is counted; a cell that cannot
//! be read is a mistake in the data and stops the run.

use crate::DataError;
use crate::exclusions::Reason;
use crate::manifest::{Manifest, ManifestRow};

/// What a rule says about one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Label {
    /// The row becomes a sample.
    Kept {
        /// Time from the image to event or censoring, finite and > 0, in the unit of the data set.
        time: f64,
        /// `true` = event observed.
        event: bool,
    },
    /// The row is left out.
    Excluded {
        /// Why.
        reason: Reason,
        /// One sentence for the exclusion list.
        detail: String,
    },
}

/// Makes time and event of one row.
pub trait LabelRule {
    /// One sentence for the run record.
    fn describe(&self) -> String;

    /// Labels `row` of `manifest`.
    ///
    /// # Errors
    /// [`DataError::InvalidCell`] if a cell is not what its column should hold.
    fn label(&self, manifest: &Manifest, row: &ManifestRow) -> Result<Label, DataError>;
}

/// The table already holds the time to event or censoring and the event indicator.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedTime {
    /// Column with the time.
    pub time: String,
    /// Column with the event indicator.
    pub event: String,
}

impl LabelRule for ObservedTime {
    fn describe(&self) -> String {
        format!("time from column \"{}\", event from column \"{}\"", self.time, self.event)
    }

    fn label(&self, manifest: &Manifest, row: &ManifestRow) -> Result<Label, DataError> {
        let empty = |reason, column: &str| {
            Ok(Label::Excluded { reason, detail: format!("column \"{column}\" is empty ({})", manifest.place(row)) })
        };
        let Some(time) = manifest.label(row, &self.time) else { return empty(Reason::MissingTime, &self.time) };
        let Some(event) = manifest.label(row, &self.event) else { return empty(Reason::MissingEvent, &self.event) };
        let invalid = |column: &str, value: &str, expected| DataError::InvalidCell {
            column: column.to_owned(),
            sample: row.display_id(),
            value: value.to_owned(),
            expected,
            place: manifest.place(row),
        };
        let parsed = time.parse::<f64>().ok().filter(|time| time.is_finite() && *time > 0.0);
        let time = parsed.ok_or_else(|| invalid(&self.time, time, "a finite number > 0"))?;
        let event = parse_event(event).ok_or_else(|| invalid(&self.event, event, "1 (observed) or 0 (censored)"))?;
        Ok(Label::Kept { time, event })
    }
}

/// `0`, `1`, `0.0`, `1.0`, `true` or `false`.
pub(crate) fn parse_event(text: &str) -> Option<bool> {
    match text {
        "1" | "1.0" => Some(true),
        "0" | "0.0" => Some(false),
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}
