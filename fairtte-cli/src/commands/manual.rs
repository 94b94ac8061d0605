//! `fairtte completions` and `fairtte man-pages`: shell completions and manual pages, generated from the arguments.

use std::io::Write as _;

use clap::CommandFactory as _;
use fairtte_data::write_atomically;

use super::print;
use crate::CliError;
use crate::args::{Arguments, Completions, ManPages};
use crate::progress::say;

/// Prints the script.
pub(super) fn completions(arguments: &Completions) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "fairtte", &mut script);
    let script = String::from_utf8(script).map_err(|error| CliError::Bug(error.to_string()))?;
    print(script.trim_end());
    Ok(())
}

/// Writes `fairtte.1`, `fairtte-train.1`, `fairtte-weights-import.1` ..
pub(super) fn pages(arguments: &ManPages) -> Result<(), CliError> {
    let mut program = Arguments::command();
    program.build();
    let n = write_page(&program, "fairtte", arguments)?;
    say(format!("wrote {n} manual pages to {}", arguments.folder.display()));
    Ok(())
}

/// Writes the page of a command and those of its subcommands; returns their number.
fn write_page(command: &clap::Command, name: &str, arguments: &ManPages) -> Result<usize, CliError> {
    let page = clap_mangen::Man::new(command.clone()).title(name);
    let mut text = Vec::new();
    page.render(&mut text).map_err(|error| CliError::Bug(error.to_string()))?;
    write_atomically(&arguments.folder.join(format!("{name}.1")), |file| file.write_all(&text))?;
    let mut n = 1;
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        n += write_page(below, &format!("{name}-{}", below.get_name()), arguments)?;
    }
    Ok(n)
}
