//! The `fairtte` command: arguments, run files, device choice, progress and reports around the library crates.
//!
//! [`main`] is the whole program; [`run_file::RunFile`] is what a run file may say.

pub mod args;
mod commands;
mod device;
mod error;
mod exit;
mod interrupt;
pub mod memory;
mod merged;
mod prepare;
mod progress;
mod report;
mod run_file;
mod run_folder;
mod selection;

use std::process::ExitCode;

use clap::Parser as _;

pub use error::CliError;
pub use exit::Exit;
pub use run_file::RunFile;

/// Parses the arguments, runs the command, and says what went wrong on standard error.
pub fn main() -> ExitCode {
    let arguments = match args::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // clap answers --help and --version this way too, on standard output.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
            return if error.print().is_ok() { exit.into() } else { Exit::Bug.into() };
        }
    };
    interrupt::install();
    // A panic is a bug: its message is out already, and it has its exit code.
    let Ok(result) = std::panic::catch_unwind(|| commands::run(arguments.command)) else {
        return Exit::Bug.into();
    };
    match result {
        Ok(()) => Exit::Ok.into(),
        Err(error) => {
            let exit = error.exit();
            error::print(&error);
            exit.into()
        }
    }
}
