//! Figures and tables of a page as files of their own (`--figures`, `--tables`).

use crate::CliError;
use crate::args::Exports;
use crate::report::{Table, figures_of};
use crate::run_folder::write_text;

/// Writes the figures of the page and its tables where there are folders for them.
///
/// # Errors
/// [`CliError`] naming the file that cannot be written.
pub(super) fn write_exports(
    exports: &Exports,
    html: &str,
    tables: impl FnOnce() -> Vec<Table>,
) -> Result<(), CliError> {
    if let Some(folder) = &exports.figures {
        for (name, svg) in figures_of(html) {
            write_text(&folder.join(format!("{name}.svg")), &svg)?;
        }
    }
    if let Some(folder) = &exports.tables {
        for table in tables() {
            write_text(&folder.join(format!("{}.md", table.name)), &table.markdown())?;
            write_text(&folder.join(format!("{}.tex", table.name)), &table.latex())?;
        }
    }
    Ok(())
}

/// The closing lines about these folders.
pub(super) fn exported(exports: &Exports) -> Vec<String> {
    let figures = exports.figures.iter().map(|folder| format!("figures: {}", folder.display()));
    figures.chain(exports.tables.iter().map(|folder| format!("tables: {}", folder.display()))).collect()
}
