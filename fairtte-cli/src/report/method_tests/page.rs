//! The page: the verdicts, one section per metric, how to read them, and where the values are from.

use fairtte_metrics::statistics::Alternative;
use serde::Serialize;

use super::super::ReportError;
use super::super::format::{count, short};
use super::super::template::{environment, fill_in};
use super::section::left_out_sentence;
use super::{MetricSection, TestReport};
use crate::args::TestColumns;
use crate::method_tests::{FEWEST_SETTINGS, Family};

const TEMPLATE: &str = include_str!("page.html");

pub(super) fn render(report: &TestReport<'_>) -> Result<String, ReportError> {
    fill_in(&environment(TEMPLATE)?, &Context::new(report)?)
}

#[derive(Serialize)]
struct Context<'a> {
    sections: Vec<MetricSection>,
    notes: Vec<&'a str>,
    left_out: Option<String>,
    facts: Vec<(&'static str, String)>,
    level: String,
    alternative: &'static str,
    family: &'static str,
    fewest: usize,
    has_trials: bool,
}

impl<'a> Context<'a> {
    fn new(report: &'a TestReport<'_>) -> Result<Self, ReportError> {
        let tests = report.tests;
        Ok(Self {
            sections: MetricSection::all(tests)?,
            notes: report.notes.iter().map(String::as_str).collect(),
            left_out: left_out_sentence(tests),
            facts: facts(report),
            level: short(tests.level),
            alternative: match tests.alternative {
                Alternative::TwoSided => "two-sided: the first method differs from the second",
                Alternative::Less => "one-sided: the values of the first method are lower than those of the second",
                Alternative::Greater => "one-sided: the values of the first method are higher than those of the second",
            },
            family: match tests.family {
                Family::Metric => "all signed-rank tests of one metric",
                Family::Table => "all signed-rank tests of all metrics; Friedman's p values over all metrics",
            },
            fewest: FEWEST_SETTINGS,
            has_trials: tests.metrics.iter().any(|metric| metric.trials.is_some()),
        })
    }
}

fn facts(report: &TestReport<'_>) -> Vec<(&'static str, String)> {
    let TestColumns { setting, method, value, metric, trial, wide } = report.columns;
    let named = [("setting", setting), ("method", method), ("value", value), ("metric", metric), ("trial", trial)];
    let named = named.into_iter().filter_map(|(meaning, name)| Some(format!("{meaning} = {}", name.as_ref()?)));
    let columns: Vec<String> = named.chain(wide.then(|| "one per method".to_owned())).collect();
    let mut facts = vec![("table", report.table.clone())];
    if !columns.is_empty() {
        facts.push(("columns", columns.join(", ")));
    }
    facts.push(("values", count(report.n_values, "value")));
    facts.push(("level", short(report.tests.level)));
    facts.push(("fairtte", env!("CARGO_PKG_VERSION").to_owned()));
    facts
}
