//! The label rule of MIMIC-CXR: days from the image to death, or to a year after the last discharge.
//!
//! Death known: `tte = death - study date`, 0 on the same day; later images are `after_death`. Otherwise the last
//! discharge must be known (`no_censor_date`) and not before the image (`after_last_discharge`);
//! `tte = last discharge + 365 d - study date`, so that every censored time is at least 365 days. Times are whole days;
//! times of day are ignored.

use std::fmt::{self, Display};

use jiff::ToSpan as _;
use jiff::civil::Date;

use super::config::AfterDischarge;
use crate::DataError;
use crate::cohort::Manifest;
use crate::cohort::Reason;
use crate::cohort::{Label, LabelRule};

/// Days after the last discharge at which people without recorded death are censored.
pub(super) const FOLLOW_UP: i32 = 365;

/// Reasons for which this rule leaves out a row, in the order in which they are checked.
pub(super) const REASONS: [Reason; 8] = [
    Reason::DuplicateDicomId,
    Reason::MissingSample,
    Reason::MissingSubject,
    Reason::MissingDate,
    Reason::NoPatient,
    Reason::NoCensorDate,
    Reason::AfterDeath,
    Reason::AfterLastDischarge,
];

/// The evidence about one person; dates in days since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Course {
    /// Whether the person is in the table of patients.
    pub(super) is_patient: bool,
    /// Date of death, by the chosen definition.
    pub(super) death: Option<i32>,
    /// Date of the last discharge.
    pub(super) last_discharge: Option<i32>,
    /// Whether the options leave the person out because the race is not known.
    pub(super) is_dropped: bool,
}

/// The evidence about one image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Film {
    /// Position of the person in [`MimicRule::courses`]; `None` without a subject.
    pub(super) person: Option<u32>,
    /// Date of the study in days since 1970; `None` if its cell is empty.
    pub(super) day: Option<i32>,
    /// Row (as a spreadsheet counts) of the first image of the same identity, if that is an earlier row.
    pub(super) repeats: Option<usize>,
}

/// The rule with its evidence.
#[derive(Clone, Debug)]
pub(super) struct MimicRule {
    pub(super) after_discharge: AfterDischarge,
    /// Name of the metadata file, for the exclusion list.
    pub(super) file: String,
    pub(super) films: Vec<Film>,
    pub(super) courses: Vec<Course>,
}

impl LabelRule for MimicRule {
    fn label(&self, manifest: &Manifest, index: usize) -> Result<Label, DataError> {
        let film = &self.films[index];
        let row = &manifest.rows[index];
        let excluded = |reason, why: &dyn Display| {
            Label::excluded(reason, format!("{why} ({}, row {})", self.file, row.source_row))
        };
        if row.sample_id.is_none() {
            return Ok(excluded(Reason::MissingSample, &"dicom_id is empty"));
        }
        if let Some(first) = film.repeats {
            return Ok(excluded(Reason::DuplicateDicomId, &format_args!("the image is listed in row {first} already")));
        }
        let Some(person) = film.person else { return Ok(excluded(Reason::MissingSubject, &"subject_id is empty")) };
        let Some(day) = film.day else { return Ok(excluded(Reason::MissingDate, &"StudyDate is empty")) };
        let course = &self.courses[person as usize];
        if !course.is_patient {
            return Ok(excluded(Reason::NoPatient, &"the subject is not in the table of patients"));
        }
        Ok(match self.outcome(course, day) {
            Err((reason, why)) => excluded(reason, &why),
            Ok(_) if course.is_dropped => excluded(Reason::UnknownRace, &"the race of the subject is not known"),
            Ok((days, event)) => Label::Kept { time: f64::from(days), event },
        })
    }
}

impl MimicRule {
    /// Days and event of an image taken on `day`, or why it has none.
    fn outcome(&self, course: &Course, day: i32) -> Result<(i32, bool), (Reason, Why)> {
        let after = |reason, what, end| (reason, Why::After { day, what, end });
        let is_after_discharge = |discharge: &i32| day > *discharge;
        match (course.death, course.last_discharge) {
            (None, None) => Err((Reason::NoCensorDate, Why::NoEnd)),
            (Some(death), _) if day > death => Err(after(Reason::AfterDeath, "death", death)),
            (Some(_), Some(discharge))
                if self.after_discharge == AfterDischarge::All && is_after_discharge(&discharge) =>
            {
                Err(after(Reason::AfterLastDischarge, "last discharge", discharge))
            }
            (Some(death), _) => Ok((death - day, true)),
            (None, Some(discharge)) if is_after_discharge(&discharge) => {
                Err(after(Reason::AfterLastDischarge, "last discharge", discharge))
            }
            (None, Some(discharge)) => Ok((discharge + FOLLOW_UP - day, false)),
        }
    }
}

/// Why an image of a known person has no outcome.
enum Why {
    NoEnd,
    After { day: i32, what: &'static str, end: i32 },
}

impl Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoEnd => f.write_str("the subject has no recorded death and no recorded discharge"),
            Self::After { day, what, end } => write!(f, "taken on {}, {what} {}", date(day), date(end)),
        }
    }
}

fn date(day: i32) -> Date {
    jiff::civil::date(1970, 1, 1).saturating_add(day.days())
}
