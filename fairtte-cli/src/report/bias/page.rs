//! The page: collects everything into one context and fills in the template.

use serde::Serialize;

use super::super::ReportError;
use super::super::format::count;
use super::super::template::{environment, fill_in};
use super::table::reduction;
use super::{BiasReport, BiasSection};

const TEMPLATE: &str = include_str!("page.html");

pub(super) fn render(report: &BiasReport) -> Result<String, ReportError> {
    fill_in(&environment(TEMPLATE)?, &Context::new(report)?)
}

#[derive(Serialize)]
struct Context<'a> {
    samples: String,
    facts: Vec<(&'static str, String)>,
    notes: &'a [String],
    section: BiasSection,
    n_projections: usize,
    n_clusters: usize,
    n_bins: usize,
    min_events: usize,
}

impl<'a> Context<'a> {
    fn new(report: &'a BiasReport) -> Result<Self, ReportError> {
        let settings = &report.settings;
        let (samples, subjects) = (count(report.n, "sample"), count(report.n_subjects, "subject"));
        Ok(Self {
            samples: format!("{samples} of {subjects}, {}", count(report.n_events, "event")),
            facts: facts(report),
            notes: &report.notes,
            section: BiasSection::new(report)?,
            n_projections: settings.n_projections,
            n_clusters: settings.n_clusters,
            n_bins: settings.n_bins,
            min_events: settings.min_group_size,
        })
    }
}

fn facts(report: &BiasReport) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("features", report.features.clone()),
        ("cohort", report.cohort.clone()),
        ("representation", reduction(report)),
    ];
    facts.extend(report.columns.iter().map(|text| ("columns and values", text.clone())));
    facts.push(("seed", report.settings.seed.to_string()));
    facts.push(("fairtte", env!("CARGO_PKG_VERSION").to_owned()));
    facts
}
