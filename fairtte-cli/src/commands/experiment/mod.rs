//! `fairtte experiment`: what metrics and evaluations would have noticed.

mod biasing;
mod power;

use std::path::Path;

use crate::CliError;
use crate::args::ExperimentCommand;
use crate::report::experiment::{ExperimentPage, render};
use crate::report::{chart, figures_of};
use crate::run_folder::write_text;

pub(super) fn run(command: &ExperimentCommand) -> Result<(), CliError> {
    match command {
        ExperimentCommand::Biasing(arguments) => biasing::run(arguments),
        ExperimentCommand::Power(arguments) => power::run(arguments),
    }
}

/// Writes the page `name`.html, its figures and its tables.
fn write_page(folder: &Path, name: &str, page: &ExperimentPage) -> Result<(), CliError> {
    for section in &page.sections {
        let drawn = section.charts.iter().map(chart).collect::<Result<Vec<_>, _>>()?;
        for svg in drawn.into_iter().flatten().chain(section.drawn.iter().map(|figure| figure.svg.clone())) {
            for (name, svg) in figures_of(&svg) {
                write_text(&folder.join("figures").join(format!("{name}.svg")), &svg)?;
            }
        }
        for sheet in &section.sheets {
            let table = sheet.table();
            for (ending, text) in [("csv", sheet.csv()?), ("md", table.markdown()), ("tex", table.latex())] {
                write_text(&folder.join("tables").join(format!("{}.{ending}", sheet.name)), &text)?;
            }
        }
    }
    write_text(&folder.join(format!("{name}.html")), &render(page)?)
}
