//! Leaks between the parts of a split: the same person, or the same picture, on both sides of the fence.

use std::fmt;

use fairtte_metrics::{SampleId, SubjectId};
use serde::Serialize;

use super::Part;

/// What was found in two parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Leak {
    /// A subject is in two parts.
    Subject {
        /// The subject.
        subject: SubjectId,
        /// Where it was found first.
        first: Placed,
        /// Where it was found in another part.
        second: Placed,
    },
    /// Two things followed on one subject (its two eyes) are in different parts.
    Fellow {
        /// The subject.
        subject: SubjectId,
        /// Where the first was found.
        first: Placed,
        /// Where its fellow was found.
        second: Placed,
    },
    /// Samples with the same image are in two parts.
    Image {
        /// The subjects of the two samples; the same or two.
        subjects: [SubjectId; 2],
        /// The first sample.
        first: Placed,
        /// A sample of another part.
        second: Placed,
    },
}

/// A subject, eye or sample in a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Placed {
    /// The part.
    pub part: Part,
    /// The sample, where the split goes by samples.
    pub sample: Option<SampleId>,
    /// What is followed (the eye), where it is known.
    pub unit: Option<String>,
    /// Row of the split file as a spreadsheet counts it; `None` where the split came from no file.
    pub row: Option<usize>,
}

impl Placed {
    /// ` (sample "a")`, or nothing where no sample is known.
    fn of_sample(&self) -> String {
        self.sample.as_ref().map(|sample| format!(" (sample \"{sample}\")")).unwrap_or_default()
    }

    fn unit(&self) -> &str {
        self.unit.as_deref().unwrap_or("?")
    }
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = match self {
            Self::Subject { subject, first, second } => {
                write!(f, "subject \"{subject}\" is in the {} part{}", second.part, second.of_sample())?;
                write!(f, " and in the {} part{}, expected one part", first.part, first.of_sample())?;
                (first, second)
            }
            Self::Fellow { subject, first, second } => {
                write!(f, "\"{}\" of subject \"{subject}\" is in the {} part", second.unit(), second.part)?;
                write!(f, "{} and its fellow \"{}\" in the {}", second.of_sample(), first.unit(), first.part)?;
                write!(f, " part{}, expected one part", first.of_sample())?;
                (first, second)
            }
            Self::Image { subjects: [a, b], first, second } => {
                let name = |placed: &Placed| placed.sample.as_ref().map(ToString::to_string).unwrap_or_default();
                write!(f, "sample \"{}\" (subject \"{b}\", {} part) has the same image", name(second), second.part)?;
                write!(f, " as sample \"{}\" (subject \"{a}\", {} part)", name(first), first.part)?;
                write!(f, ", expected each image in one part")?;
                (first, second)
            }
        };
        match (first.row, second.row) {
            (Some(first), Some(second)) => write!(f, " (rows {second} and {first})"),
            _ => Ok(()),
        }
    }
}
