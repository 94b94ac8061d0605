//! Errors of the simulation of a cohort.

use std::io;
use std::path::PathBuf;

/// The reason why a simulation was refused or could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// A setting is outside its range.
    #[error("{key} is {value}, expected {expected}")]
    Setting {
        /// Name of the setting, as in the run file.
        key: &'static str,
        /// The value found.
        value: String,
        /// The range allowed.
        expected: &'static str,
    },
    /// The output folder has content that this simulation did not write.
    #[error("folder {} holds {found}, expected a new or empty folder or one of the same simulation", folder.display())]
    FolderInUse {
        /// The output folder.
        folder: PathBuf,
        /// The content found.
        found: String,
    },
    /// A table of a finished simulation is missing.
    #[error("{} is missing from a finished simulation; remove the folder to simulate again", path.display())]
    Incomplete {
        /// The missing file.
        path: PathBuf,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation: `read`, `write`, `create`, ..
        action: &'static str,
        /// File or folder concerned.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A picture could not be encoded.
    #[error("cannot encode {}", path.display())]
    Encode {
        /// The file the picture was meant for.
        path: PathBuf,
        /// The error of the encoder.
        #[source]
        source: image::ImageError,
    },
    /// The record of a simulation does not have the format of this version.
    #[error("cannot read the record {} as one of a simulation", path.display())]
    Record {
        /// The record's path.
        path: PathBuf,
        /// The parse error.
        #[source]
        source: serde_json::Error,
    },
}
