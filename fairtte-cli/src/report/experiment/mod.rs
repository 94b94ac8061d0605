//! The page of an experiment: what is asked and found, figures, tables.

pub(crate) mod biasing;
pub(crate) mod power;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::ReportError;
use super::format::clean;
use super::plots::{Chart, chart};
use super::sheet::Sheet;
use super::shown_table::ShownTable;
use super::template::{environment, fill_in};

const TEMPLATE: &str = include_str!("page.html");

/// What a page shows.
pub(crate) struct ExperimentPage {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) sections: Vec<ExperimentSection>,
    /// Terms with their meaning.
    pub(crate) reading: Vec<(&'static str, String)>,
    pub(crate) sources: Vec<&'static str>,
    pub(crate) facts: Vec<(String, String)>,
}

/// A question with its answer.
pub(crate) struct ExperimentSection {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) question: String,
    pub(crate) verdict: Vec<String>,
    /// Figures that are drawn already, before those of `charts`.
    pub(crate) drawn: Vec<DrawnFigure>,
    pub(crate) charts: Vec<Chart>,
    pub(crate) sheets: Vec<Sheet>,
}

/// A figure as SVG.
#[derive(Serialize)]
pub(crate) struct DrawnFigure {
    pub(crate) svg: String,
    pub(crate) caption: String,
}

#[derive(Serialize)]
struct Context<'a> {
    title: &'a str,
    subtitle: &'a str,
    sections: Vec<Shown<'a>>,
    reading: &'a [(&'static str, String)],
    sources: &'a [&'static str],
    facts: &'a [(String, String)],
}

#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    title: &'a str,
    question: &'a str,
    verdict: &'a [String],
    figures: Vec<DrawnFigure>,
    tables: Vec<ShownTable<'a>>,
}

/// The table for a terminal: the first column to the left, all others to the right.
pub(crate) fn plain(sheet: &Sheet) -> String {
    let header = sheet.columns.iter().map(|(_, title)| title.clone()).collect();
    let cells = sheet.shown().into_iter().map(|row| row.iter().map(|cell| clean(cell)).collect());
    let lines: Vec<Vec<String>> = std::iter::once(header).chain(cells).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..sheet.columns.len()).map(width).collect();
    let padded = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).enumerate();
        let cells =
            cells.map(|(k, (cell, width))| if k == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let lines: Vec<String> = lines.iter().map(padded).collect();
    format!("{}\n{}", sheet.caption, lines.join("\n"))
}

/// The page, one file.
///
/// # Errors
/// [`ReportError`] if a figure or the template fails, which no input should cause.
pub(crate) fn render(page: &ExperimentPage) -> Result<String, ReportError> {
    let shown = |section: &'_ ExperimentSection| -> Result<Vec<DrawnFigure>, ReportError> {
        let drawn = section.drawn.iter();
        let mut figures: Vec<DrawnFigure> =
            drawn.map(|figure| DrawnFigure { svg: figure.svg.clone(), caption: figure.caption.clone() }).collect();
        for of in &section.charts {
            figures.extend(chart(of)?.map(|svg| DrawnFigure { svg, caption: of.caption.clone() }));
        }
        Ok(figures)
    };
    let sections = page.sections.iter().map(|section| {
        Ok(Shown {
            id: &section.id,
            title: &section.title,
            question: &section.question,
            verdict: &section.verdict,
            figures: shown(section)?,
            tables: section.sheets.iter().map(|sheet| ShownTable::of(sheet, None)).collect(),
        })
    });
    let sections = sections.collect::<Result<Vec<_>, ReportError>>()?;
    let ExperimentPage { title, subtitle, reading, sources, facts, .. } = page;
    fill_in(&environment(TEMPLATE)?, &Context { title, subtitle, sections, reading, sources, facts })
}
