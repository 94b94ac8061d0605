//! What can go wrong when a cohort is simulated.

use std::io;
use std::path::PathBuf;

/// Why a simulation was refused or could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// A setting lies outside its range.
    #[error("{key} is {value}, expected {expected}")]
    Setting {
        /// Name of the setting, as in the run file.
        key: &'static str,
        /// The value found.
        value: String,
        /// The range allowed.
        expected: &'static str,
    },
    /// The output folder holds something that this simulation did not write.
    #[error("folder {} holds {found}, expected a new or empty folder or one of the same simulation", folder.display())]
    FolderInUse {
        /// The output folder.
        folder: PathBuf,
        /// What was found in it.
        found: String,
    },
    /// A finished simulation has lost one of its tables.
    #[error("{} is missing from a finished simulation; remove the folder to simulate again", path.display())]
    Incomplete {
        /// The missing file.
        path: PathBuf,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was attempted: `read`, `write`, `create`, ..
        action: &'static str,
        /// File or folder concerned.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// A picture could not be encoded.
    #[error("cannot encode {}", path.display())]
    Encode {
        /// The file the picture was meant for.
        path: PathBuf,
        /// The encoder's reason.
        #[source]
        source: image::ImageError,
    },
    /// The record of a simulation is not what this version writes.
    #[error("cannot read the record {} as one of a simulation", path.display())]
    Record {
        /// The record's path.
        path: PathBuf,
        /// Where the text stops making sense.
        #[source]
        source: serde_json::Error,
    },
}
