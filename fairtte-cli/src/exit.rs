//! Exit codes, all of them here and in `fairtte --help`.

use std::process::ExitCode;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Ok = 0,
    /// A bug in this program.
    Bug = 1,
    /// Wrong arguments.
    Usage = 2,
    /// A run file or a setting is wrong.
    Config = 3,
    /// Data or files cannot be read or written.
    Data = 4,
    /// Training failed.
    Training = 5,
    /// Stopped by a signal of a scheduler; the same command resumes it (`EX_TEMPFAIL` of `sysexits.h`).
    TryAgain = 75,
    /// Interrupted by Ctrl-C; the same command resumes it.
    Interrupted = 130,
}

/// The text on exit codes in `--help`.
pub const HELP: &str = "Exit codes: 0 done; 1 a bug in fairtte; 2 wrong arguments; 3 wrong run file or setting; \
4 data or files cannot be read or written; 5 training failed; 75 stopped by a signal, try again (the same command \
resumes it); 130 interrupted by Ctrl-C (the same command resumes it).";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
