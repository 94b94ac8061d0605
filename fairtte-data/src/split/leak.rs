//! Leaks between the parts of a split: the same person, or the same picture, in two parts.

use std::fmt;

use fairtte_metrics::{SampleId, SubjectId};
use serde::Serialize;

use super::part::Part;

/// A leak: an item found in two parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Leak {
    /// A subject is in two parts.
    Subject {
        /// The subject.
        subject: SubjectId,
        /// Its first occurrence.
        first: Placed,
        /// Its occurrence in another part.
        second: Placed,
    },
    /// Two units of one subject (its two eyes) are in different parts.
    Fellow {
        /// The subject.
        subject: SubjectId,
        /// The occurrence of the first unit.
        first: Placed,
        /// The occurrence of the other unit.
        second: Placed,
    },
    /// Samples with the same image are in two parts.
    Image {
        /// The subjects of the two samples, which may be the same.
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
    /// The sample, if the split is by samples.
    pub sample: Option<SampleId>,
    /// The followed unit (the eye), if known.
    pub unit: Option<String>,
    /// Row of the split file as a spreadsheet counts it; `None` if the split is not from a file.
    pub row: Option<usize>,
}

impl Placed {
    /// ` (sample "a")`, or nothing if no sample is known.
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
