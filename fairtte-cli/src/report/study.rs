//! The page of a study: what is asked and found, with tables and critical-difference diagrams.

use serde::Serialize;

use super::ReportError;
use super::method_tests::MetricSection;
use super::p_matrix::shade;
use super::plots::chart;
use super::sheet::{Cell, Sheet};
use super::template::{environment, fill_in};
use crate::method_tests::MethodTests;
use crate::study::{Analysis, Section};

const TEMPLATE: &str = include_str!("study.html");

/// Facts about a study.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct StudyFacts {
    pub(crate) name: String,
    /// `144 done, 3 failed`.
    pub(crate) counts: String,
    pub(crate) is_finished: bool,
    pub(crate) facts: Vec<(&'static str, String)>,
    /// Trials that could not be trained, with their reasons.
    pub(crate) not_trained: Vec<String>,
}

/// The page, one file.
///
/// # Errors
/// [`ReportError`] if the template fails, which no input should cause.
pub(crate) fn render(facts: &StudyFacts, analysis: &Analysis) -> Result<String, ReportError> {
    let ranks = |tests: &Option<MethodTests>| tests.as_ref().map(MetricSection::all).transpose();
    let context = Context {
        study: facts,
        sections: analysis.sections.iter().map(Shown::of).collect::<Result<_, _>>()?,
        gaps: ranks(&analysis.gaps)?.unwrap_or_default(),
        control: ranks(&analysis.gaps_against_control)?.unwrap_or_default(),
    };
    fill_in(&environment(TEMPLATE)?, &context)
}

#[derive(Serialize)]
struct Context<'a> {
    study: &'a StudyFacts,
    sections: Vec<Shown<'a>>,
    /// Rank tests by metric, the base by its own rule, and by the rule of the others.
    gaps: Vec<MetricSection>,
    control: Vec<MetricSection>,
}

#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    title: &'a str,
    question: &'a str,
    verdict: &'a [String],
    tables: Vec<ShownTable<'a>>,
    figures: Vec<ShownFigure<'a>>,
    /// Folded, because there are many.
    more_figures: Vec<ShownFigure<'a>>,
}

#[derive(Serialize)]
struct ShownFigure<'a> {
    svg: String,
    caption: &'a str,
}

/// Figures of a section that are not folded.
const FIGURES: usize = 6;

#[derive(Serialize)]
struct ShownTable<'a> {
    name: &'a str,
    caption: &'a str,
    header: Vec<&'a str>,
    rows: Vec<Vec<ShownCell>>,
    notes: &'a [String],
    /// Folded, because it is long.
    is_long: bool,
}

#[derive(Serialize)]
struct ShownCell {
    text: String,
    /// `better` or `worse` for a change of the base, the shade of a p value, empty otherwise.
    mark: &'static str,
    is_number: bool,
}

/// Rows from which on a table is folded.
const LONG: usize = 40;

impl<'a> Shown<'a> {
    fn of(section: &'a Section) -> Result<Self, ReportError> {
        let mut figures = Vec::new();
        for of in &section.charts {
            figures.extend(chart(of)?.map(|svg| ShownFigure { svg, caption: &of.caption }));
        }
        let more_figures = figures.split_off(figures.len().min(FIGURES));
        Ok(Self {
            id: section.id,
            title: &section.title,
            question: &section.question,
            verdict: &section.verdict,
            tables: section.sheets.iter().map(ShownTable::of).collect(),
            figures,
            more_figures,
        })
    }
}

impl<'a> ShownTable<'a> {
    fn of(sheet: &'a Sheet) -> Self {
        let is_change = sheet.name == "strategies-change";
        let cell = |(place, cell): (usize, &Cell)| {
            let (key, _) = &sheet.columns[place];
            let is_number = !matches!(cell, Cell::Text(_));
            let (text, mark) = match cell {
                Cell::Value(change) if is_change => (format!("{change:+.1}"), marked(key, *change)),
                Cell::P(p) => (cell.shown(), shade(*p)),
                _ => (cell.shown(), ""),
            };
            ShownCell { text: text.replace('-', if is_number { "\u{2212}" } else { "-" }), mark, is_number }
        };
        Self {
            name: &sheet.name,
            caption: &sheet.caption,
            header: sheet.columns.iter().map(|(_, title)| title.as_str()).collect(),
            rows: sheet.rows.iter().map(|row| row.iter().enumerate().map(cell).collect()).collect(),
            notes: &sheet.notes,
            is_long: sheet.rows.len() >= LONG,
        }
    }
}

/// Whether a change in the column is good: a gap or an IBS that falls, another metric that rises.
fn marked(column: &str, change: f64) -> &'static str {
    let lower_is_better = column.starts_with("gap-") || column == "ibs";
    match change {
        0.0 => "",
        change if (change < 0.0) == lower_is_better => "better",
        _ => "worse",
    }
}

#[cfg(test)]
mod tests {
    use super::marked;

    #[test]
    fn a_fall_of_a_gap_or_of_the_ibs_is_better() {
        assert_eq!((marked("gap-c-td", -1.0), marked("gap-ibs", 1.0)), ("better", "worse"));
        assert_eq!((marked("ibs", -1.0), marked("c-td", -1.0), marked("auc-td", 2.0)), ("better", "worse", "better"));
        assert_eq!(marked("c-td", 0.0), "");
    }
}
