//! The reasons for which rows are left out, and the corresponding steps.
//!
//! The order of the reasons is that of the steps and their precedence: a row to which several apply has the first.
//! Each data set uses some of them; the codes are those written to the exclusion lists.

use std::fmt;

use fairtte_images::Fault;
use serde::{Deserialize, Serialize};

/// The reason why a row was left out; the order is that of the steps, and the first that applies is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The cell of the sample identity is empty.
    MissingSample,
    /// The cell of the subject is empty.
    MissingSubject,
    /// The cell of the image path is empty.
    MissingImage,
    /// The name of an image file does not identify the person or the visit.
    UnreadableName,
    /// The date on which the image was taken is not known.
    MissingDate,
    /// A row above has the same DICOM identity.
    DuplicateDicomId,
    /// A row above has the same image identity.
    DuplicateImageId,
    /// The scan is not an MRI.
    NotMri,
    /// The photograph does not show field 2 (the macula).
    NotField2,
    /// Another scan of the same subject and day was chosen.
    RepeatScanSameVisit,
    /// Another photograph of the same eye and visit was chosen (of the same side, where both sides are kept).
    StereoOrRepeat,
    /// The subject is not in the table of patients.
    NoPatient,
    /// The subject is not in the table of gradings.
    NoPhenotype,
    /// The subject has no usable diagnosis.
    NoDiagnosis,
    /// The eye has no usable grade at any visit.
    NeverGraded,
    /// No event, and no date until which the subject was followed.
    NoCensorDate,
    /// The cell of the time is empty.
    MissingTime,
    /// The cell of the event is empty.
    MissingEvent,
    /// The cell of the label is empty.
    MissingLabel,
    /// The image is dated after the death of the subject.
    AfterDeath,
    /// The image is dated after the last discharge of the subject.
    AfterLastDischarge,
    /// The event had already occurred when the image was taken.
    AtOrAfterEvent,
    /// There is no follow-up after the image: it was taken at the last visit.
    FinalVisit,
    /// The race of the subject is not known, and the options exclude such rows.
    UnknownRace,
    /// There is no file at the image path.
    ImageMissing,
    /// The image file has no bytes.
    ImageEmpty,
    /// The file exists but cannot be opened or read.
    ImageUnopened,
    /// The file is truncated, damaged or not an image.
    ImageUnreadable,
    /// An image of a kind that is not supported (colour or complex voxels, header without voxels, ..).
    ImageUnsupported,
    /// A picture where volumes are expected, a volume where pictures are expected, a 4D series, a single slice.
    ImageWrongDimensions,
    /// The image holds values that are not finite numbers.
    ImageNonFinite,
    /// Followed until a time by which the class "event by the horizon" is not known.
    CensoredByHorizon,
}

impl Reason {
    /// Every reason, in the order of the steps.
    pub const ALL: [Self; 32] = [
        Self::MissingSample,
        Self::MissingSubject,
        Self::MissingImage,
        Self::UnreadableName,
        Self::MissingDate,
        Self::DuplicateDicomId,
        Self::DuplicateImageId,
        Self::NotMri,
        Self::NotField2,
        Self::RepeatScanSameVisit,
        Self::StereoOrRepeat,
        Self::NoPatient,
        Self::NoPhenotype,
        Self::NoDiagnosis,
        Self::NeverGraded,
        Self::NoCensorDate,
        Self::MissingTime,
        Self::MissingEvent,
        Self::MissingLabel,
        Self::AfterDeath,
        Self::AfterLastDischarge,
        Self::AtOrAfterEvent,
        Self::FinalVisit,
        Self::UnknownRace,
        Self::ImageMissing,
        Self::ImageEmpty,
        Self::ImageUnopened,
        Self::ImageUnreadable,
        Self::ImageUnsupported,
        Self::ImageWrongDimensions,
        Self::ImageNonFinite,
        Self::CensoredByHorizon,
    ];

    /// The code in `exclusions.csv` and in reports.
    pub fn code(self) -> &'static str {
        match self {
            Self::MissingSample => "missing_sample",
            Self::MissingSubject => "missing_subject",
            Self::MissingImage => "missing_image",
            Self::UnreadableName => "unreadable_name",
            Self::MissingDate => "missing_date",
            Self::DuplicateDicomId => "duplicate_dicom_id",
            Self::DuplicateImageId => "duplicate_image_id",
            Self::NotMri => "not_mri",
            Self::NotField2 => "not_field2",
            Self::RepeatScanSameVisit => "repeat_scan_same_visit",
            Self::StereoOrRepeat => "stereo_or_repeat",
            Self::NoPatient => "no_patient",
            Self::NoPhenotype => "no_phenotype",
            Self::NoDiagnosis => "no_diagnosis",
            Self::NeverGraded => "never_graded",
            Self::NoCensorDate => "no_censor_date",
            Self::MissingTime => "missing_time",
            Self::MissingEvent => "missing_event",
            Self::MissingLabel => "missing_label",
            Self::AfterDeath => "after_death",
            Self::AfterLastDischarge => "after_last_discharge",
            Self::AtOrAfterEvent => "at_or_after_event",
            Self::FinalVisit => "final_visit",
            Self::UnknownRace => "unknown_race",
            Self::ImageMissing => Fault::Missing.code(),
            Self::ImageEmpty => Fault::Empty.code(),
            Self::ImageUnopened => Fault::Unopened.code(),
            Self::ImageUnreadable => Fault::Unreadable.code(),
            Self::ImageUnsupported => Fault::Unsupported.code(),
            Self::ImageWrongDimensions => Fault::WrongDimensions.code(),
            Self::ImageNonFinite => Fault::NonFinite.code(),
            Self::CensoredByHorizon => "censored_by_horizon",
        }
    }

    /// Whether the row repeats another row of the same sample identity, which may have been kept.
    pub fn is_repetition(self) -> bool {
        matches!(self, Self::DuplicateDicomId | Self::DuplicateImageId)
    }

    /// Whether an image or a mask is the reason, not the tables.
    pub fn is_of_image(self) -> bool {
        self.step() == Step::Image
    }

    /// Whether the row may be predicted all the same: what follows the image, or the group of the subject, is the reason, not
    /// the identity and kind of the image.
    pub(crate) fn is_of_outcome(self) -> bool {
        // An image that is not dated is of an unknown visit, so it may be another image of one that is used.
        !matches!(self.step(), Step::Identity | Step::Once | Step::Kind | Step::OnePerVisit | Step::Image)
    }

    pub(crate) fn step(self) -> Step {
        match self {
            Self::MissingSample
            | Self::MissingSubject
            | Self::MissingImage
            | Self::UnreadableName
            | Self::MissingDate => Step::Identity,
            Self::DuplicateDicomId | Self::DuplicateImageId => Step::Once,
            Self::NotMri | Self::NotField2 => Step::Kind,
            Self::RepeatScanSameVisit | Self::StereoOrRepeat => Step::OnePerVisit,
            Self::NoPatient | Self::NoPhenotype => Step::Known,
            Self::NoDiagnosis | Self::NeverGraded | Self::NoCensorDate => Step::End,
            Self::MissingTime | Self::MissingEvent => Step::Outcome,
            Self::MissingLabel => Step::Label,
            Self::AfterDeath => Step::BeforeDeath,
            Self::AfterLastDischarge => Step::BeforeDischarge,
            Self::AtOrAfterEvent | Self::FinalVisit => Step::Followed,
            Self::UnknownRace => Step::Attribute,
            Self::ImageMissing
            | Self::ImageEmpty
            | Self::ImageUnopened
            | Self::ImageUnreadable
            | Self::ImageUnsupported
            | Self::ImageWrongDimensions
            | Self::ImageNonFinite => Step::Image,
            Self::CensoredByHorizon => Step::Class,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl From<Fault> for Reason {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Missing => Self::ImageMissing,
            Fault::Empty => Self::ImageEmpty,
            Fault::Unopened => Self::ImageUnopened,
            Fault::Unreadable => Self::ImageUnreadable,
            Fault::Unsupported => Self::ImageUnsupported,
            Fault::WrongDimensions => Self::ImageWrongDimensions,
            Fault::NonFinite => Self::ImageNonFinite,
        }
    }
}

/// The steps at which rows are left out, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Identity,
    Once,
    Kind,
    OnePerVisit,
    Known,
    End,
    Outcome,
    Label,
    BeforeDeath,
    BeforeDischarge,
    Followed,
    Attribute,
    Image,
    Class,
}

impl Step {
    /// The property of the rows that pass the step.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Identity => "with sample, subject and image path",
            Self::Once => "listed once",
            Self::Kind => "of the kind that is studied",
            Self::OnePerVisit => "one image per visit",
            Self::Known => "of a subject with records",
            Self::End => "with a known end of follow-up",
            Self::Outcome => "with time and event",
            Self::Label => "with a label",
            Self::BeforeDeath => "taken before death",
            Self::BeforeDischarge => "taken before the last discharge",
            Self::Followed => "before the event and with follow-up",
            Self::Attribute => "with the requested attributes",
            Self::Image => "with a readable image",
            Self::Class => "with a class at the horizon",
        }
    }
}
