//! From the evidence of a data set to (time, event), or to a reason why a row has no label.
//!
//! A rule is made by the adapter, holds its evidence in typed form and labels a row of the manifest by its index; it
//! may use all rows (the first of two equal images, the last visit of a person). A row is kept with a time >= 0 in the
//! unit of the data set, excluded with a reason code, or gives an error if a cell does not hold what its column should.
//! An empty cell is a missing value and is counted; a cell that cannot be read is an error and stops the run.

use crate::DataError;
use crate::cohort::Manifest;
use crate::cohort::Reason;
use crate::cohort::attributes::same_ignoring_case;
use crate::cohort::class::CLASS_TIME;
use crate::cohort::outcome::{CauseOfEnd, OutcomeConfig};

/// The result of a rule for one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Label {
    /// The row becomes a sample.
    Kept {
        /// Time from the image to event or censoring, finite and >= 0, in the unit of the data set.
        time: f64,
        /// `true` = event observed.
        event: bool,
    },
    /// The row becomes a sample whose observation was ended by an event of another cause than the one that is predicted.
    Competing {
        /// Time from the image to that event, finite and >= 0, in the unit of the data set.
        time: f64,
        /// Number of its cause, at least 1.
        cause: u32,
    },
    /// The row is left out.
    Excluded {
        /// The reason.
        reason: Reason,
        /// One sentence for the exclusion list.
        detail: String,
    },
}

impl Label {
    /// The row is left out for `reason`.
    pub fn excluded(reason: Reason, detail: impl Into<String>) -> Self {
        Self::Excluded { reason, detail: detail.into() }
    }
}

/// Determines time and event of the rows of one manifest; called from several threads.
pub trait LabelRule: Sync {
    /// Labels row `index` of `manifest`, the manifest that the rule was made for.
    ///
    /// A row without sample or subject is excluded with [`Reason::MissingSample`] or [`Reason::MissingSubject`].
    ///
    /// # Errors
    /// [`DataError::InvalidCell`] if a cell is not what its column should hold.
    fn label(&self, manifest: &Manifest, index: usize) -> Result<Label, DataError>;

    /// The number of the event that is predicted, if events have several causes.
    fn cause(&self) -> Option<u32> {
        None
    }
}

/// A column of cells with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedCells {
    /// Name of the column.
    pub name: String,
    /// One cell per row of the manifest; `None` if it is empty.
    pub cells: Vec<Option<String>>,
}

/// The table already holds the time to event or censoring and the event indicator.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedTime {
    /// Times, > 0.
    pub time: NamedCells,
    /// Event indicators, or numbers of causes.
    pub event: NamedCells,
    /// Which number is what, if events have several causes.
    pub outcome: Option<OutcomeConfig>,
}

/// The table holds the class of every row.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedLabel {
    /// Labels.
    pub label: NamedCells,
    /// The label of a positive row, whatever its case; every other one is negative. `None`: 1 is positive and 0 negative.
    pub positive: Option<String>,
}

/// The table names the mask of every row: what is known of it is in the mask, and as an outcome it is an event at time 1.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedMask {
    /// Files of masks.
    pub mask: NamedCells,
}

/// Nothing is known about the outcomes: every row is censored at time 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoOutcome;

impl LabelRule for NoOutcome {
    fn label(&self, manifest: &Manifest, index: usize) -> Result<Label, DataError> {
        Ok(incomplete(manifest, index).unwrap_or(Label::Kept { time: 0.0, event: false }))
    }
}

/// The rule of a data set without its outcomes: rows are left out because of who and what they show (no identity, listed twice,
/// another kind of image, another image of the same visit), and every other row is censored at time 0.
pub struct WithoutOutcome(
    /// The rule with outcomes.
    pub Box<dyn LabelRule>,
);

impl LabelRule for WithoutOutcome {
    fn label(&self, manifest: &Manifest, index: usize) -> Result<Label, DataError> {
        match self.0.label(manifest, index)? {
            Label::Excluded { reason, detail } if !reason.is_of_outcome() => Ok(Label::Excluded { reason, detail }),
            _ => NoOutcome.label(manifest, index),
        }
    }
}

/// The row is left out because its `what` is empty.
fn empty(manifest: &Manifest, index: usize, reason: Reason, what: &str) -> Label {
    Label::excluded(reason, format!("{what} is empty ({})", manifest.place(index)))
}

/// The reason why row `index` is no sample, whatever its outcome: it lacks subject, image or identity.
fn incomplete(manifest: &Manifest, index: usize) -> Option<Label> {
    let row = &manifest.rows[index];
    let checked = [
        (row.subject_id.is_none(), Reason::MissingSubject, "the subject"),
        (row.image.is_none(), Reason::MissingImage, "the image path"),
        (row.sample_id.is_none(), Reason::MissingSample, "the sample identity"),
    ];
    let (_, reason, what) = checked.into_iter().find(|(is_missing, ..)| *is_missing)?;
    Some(empty(manifest, index, reason, what))
}

impl LabelRule for ObservedTime {
    fn label(&self, manifest: &Manifest, index: usize) -> Result<Label, DataError> {
        if let Some(label) = incomplete(manifest, index) {
            return Ok(label);
        }
        let row = &manifest.rows[index];
        let empty = |reason, what: &str| Ok(empty(manifest, index, reason, what));
        let in_column = |cells: &NamedCells| format!("column \"{}\"", cells.name);
        let Some(time) = &self.time.cells[index] else { return empty(Reason::MissingTime, &in_column(&self.time)) };
        let Some(event) = &self.event.cells[index] else { return empty(Reason::MissingEvent, &in_column(&self.event)) };
        let invalid = |column: &NamedCells, value: &str, expected| DataError::InvalidCell {
            column: column.name.clone(),
            sample: row.display_id(),
            value: value.to_owned(),
            expected,
            place: manifest.place(index),
        };
        let parsed = time.parse::<f64>().ok().filter(|time| time.is_finite() && *time > 0.0);
        let time = parsed.ok_or_else(|| invalid(&self.time, time, "a finite number > 0"))?;
        let Some(outcome) = &self.outcome else {
            let event = parse_event(event).ok_or_else(|| invalid(&self.event, event, ZERO_OR_ONE))?;
            return Ok(Label::Kept { time, event });
        };
        let end = outcome.end(event).ok_or_else(|| DataError::UnknownCause {
            column: self.event.name.clone(),
            sample: row.display_id(),
            value: event.as_str().into(),
            expected: outcome.expected().into(),
            place: manifest.place(index),
        })?;
        Ok(match end {
            CauseOfEnd::Competing(cause) => Label::Competing { time, cause },
            CauseOfEnd::Event => Label::Kept { time, event: true },
            CauseOfEnd::Censored => Label::Kept { time, event: false },
        })
    }

    fn cause(&self) -> Option<u32> {
        self.outcome.as_ref().map(|outcome| outcome.cause)
    }
}

impl ObservedLabel {
    /// Whether a row with this label is positive; `None` for a label that is neither.
    pub(crate) fn is_positive(&self, cell: &str) -> Option<bool> {
        match &self.positive {
            Some(positive) => Some(same_ignoring_case(cell, positive)),
            None => parse_event(cell),
        }
    }
}

impl LabelRule for ObservedLabel {
    fn label(&self, manifest: &Manifest, index: usize) -> Result<Label, DataError> {
        if let Some(label) = incomplete(manifest, index) {
            return Ok(label);
        }
        let NamedCells { name, cells } = &self.label;
        let Some(cell) = &cells[index] else {
            return Ok(empty(manifest, index, Reason::MissingLabel, &format!("column \"{name}\"")));
        };
        let event = self.is_positive(cell).ok_or_else(|| DataError::InvalidCell {
            column: name.clone(),
            sample: manifest.rows[index].display_id(),
            value: cell.clone(),
            expected: "1 (positive) or 0 (negative), or label-value naming the positive one",
            place: manifest.place(index),
        })?;
        Ok(Label::Kept { time: CLASS_TIME, event })
    }
}

impl LabelRule for ObservedMask {
    fn label(&self, manifest: &Manifest, index: usize) -> Result<Label, DataError> {
        if let Some(label) = incomplete(manifest, index) {
            return Ok(label);
        }
        let NamedCells { name, cells } = &self.mask;
        Ok(match &cells[index] {
            Some(_) => Label::Kept { time: CLASS_TIME, event: true },
            None => empty(manifest, index, Reason::MissingLabel, &format!("column \"{name}\"")),
        })
    }
}

/// What is expected of an event.
pub(crate) const ZERO_OR_ONE: &str = "1 (observed) or 0 (censored)";
/// What is expected of an event that has a cause.
pub(crate) const CAUSE: &str = "0 (censored) or the number of a cause";

/// Whether the event is that of `cause`, and otherwise of which other cause it is; `None` for anything but a whole number.
pub(crate) fn parse_cause(text: &str, cause: u32) -> Option<(bool, Option<u32>)> {
    let found: u32 = text.strip_suffix(".0").unwrap_or(text).parse().ok()?;
    Some((found == cause, Some(found).filter(|found| *found != cause && *found > 0)))
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
