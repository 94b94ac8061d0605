//! The page of a study: what is asked and found, with tables and critical-difference diagrams.

use serde::Serialize;

use super::ReportError;
use super::method_tests::MetricSection;
use super::plots::chart;
use super::sheet::Sheet;
use super::shown_table::ShownTable;
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
        metrics: ranks(&analysis.metrics)?.unwrap_or_default(),
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
    /// Rank tests of the metrics themselves, where one rule chooses all models.
    metrics: Vec<MetricSection>,
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
            tables: section.sheets.iter().map(shown_table).collect(),
            figures,
            more_figures,
        })
    }
}

/// Changes of the base are marked as good or bad.
fn shown_table(sheet: &Sheet) -> ShownTable<'_> {
    ShownTable::of(sheet, (sheet.name == "strategies-change").then_some(marked))
}

/// Whether a change in the column is good: an IBS or a BCE that falls, another metric that rises. Gaps are not judged: relative
/// to a gap near 0 any change is large.
fn marked(column: &str, change: f64) -> &'static str {
    let lower_is_better = matches!(column, "ibs" | "bce");
    match change {
        _ if column.starts_with("gap-") => "",
        0.0 => "",
        change if (change < 0.0) == lower_is_better => "better",
        _ => "worse",
    }
}

#[cfg(test)]
mod tests {
    use super::marked;

    #[test]
    fn a_fall_of_the_ibs_is_better_and_relative_changes_of_gaps_are_not_judged() {
        assert_eq!((marked("gap-c-td", -1.0), marked("gap-ibs", 2566.7)), ("", ""));
        assert_eq!((marked("ibs", -1.0), marked("c-td", -1.0), marked("auc-td", 2.0)), ("better", "worse", "better"));
        assert_eq!(marked("c-td", 0.0), "");
    }
}
