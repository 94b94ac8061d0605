//! The parts of a split.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A part of the split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// For fitting.
    Train,
    /// For early stopping.
    Validation,
    /// For the reported numbers.
    Test,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    /// The name in `split.csv`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }

    /// The part named by a cell of a split file, ignoring case: `train`, `validation` (also `validate`, `valid`,
    /// `val`), `test`.
    ///
    /// ```
    /// use fairtte_data::Part;
    ///
    /// assert_eq!(Part::from_cell("VAL"), Some(Part::Validation));
    /// assert_eq!(Part::from_cell("holdout"), None);
    /// ```
    pub fn from_cell(cell: &str) -> Option<Self> {
        match cell.trim().to_ascii_lowercase().as_str() {
            "train" => Some(Self::Train),
            "validation" | "validate" | "valid" | "val" => Some(Self::Validation),
            "test" => Some(Self::Test),
            _ => None,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
