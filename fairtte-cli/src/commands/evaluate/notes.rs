//! What a call says of its tables: notes, and facts with a name each.

use std::path::PathBuf;

use fairtte_data::predictions::{ChangingAttribute, CurveRepairs, OutsideTable as _, ScoredTable};
use fairtte_data::{AttributeConfig, Part};
use fairtte_metrics::evaluation::EvaluatedCause;
use fairtte_metrics::{EvaluationReport, Outcomes, SURVIVAL_TOLERANCE};

use super::publish::CensoringSample;
use crate::args::{Evaluate, Repair};
use crate::plural::counted;

/// Maximum number of names that are listed; the JSON has all.
const MOST_NAMES: usize = 12;

/// What an event of another cause is treated as.
pub(super) fn note_on_causes(report: &EvaluationReport) -> Option<String> {
    let cause = report.cause?.cause;
    Some(format!(
        "The curves are the cumulative incidence of cause {cause}. An event of another cause is not taken for a censoring: a subject who \
         had one is known not to have cause {cause} any more."
    ))
}

/// The cause that is evaluated, of how many.
pub(super) fn fact_of_cause(report: &EvaluationReport) -> Option<(String, String)> {
    let EvaluatedCause { cause, n_causes, n_competing } = report.cause?;
    let others = match n_competing {
        0 => "no event of another cause".to_owned(),
        n => format!("{} of other causes", counted(n, "event")),
    };
    Some(("cause".to_owned(), format!("{cause}, one of {}; {others}", counted(n_causes, "cause"))))
}

/// The sample that the censoring curve was fitted on, in words.
pub(super) fn censoring_sample(fitted_on: &str, part: Option<Part>) -> &'static str {
    match (fitted_on, part) {
        ("evaluated", _) => "the evaluated sample",
        (_, Some(_)) => "the training part",
        _ => "the training sample",
    }
}

pub(super) fn notes_on_table(table: &ScoredTable, configs: &[AttributeConfig], repair: Option<Repair>) -> Vec<String> {
    let mut notes = notes_on_samples(configs, table.has_subjects, &table.changing_attributes(configs));
    notes.extend(note_on_repairs(&table.repairs, repair, table.cohort.n()));
    notes.extend(note_on_ignored(&table.ignored));
    notes
}

/// Notes on attributes and subjects.
pub(super) fn notes_on_samples(
    configs: &[AttributeConfig],
    has_subjects: bool,
    changing: &[ChangingAttribute],
) -> Vec<String> {
    let mut notes = Vec::new();
    if configs.is_empty() {
        notes.push("There are no --attributes: only the whole sample is evaluated.".to_owned());
    }
    if !has_subjects {
        notes.push(
            "There is no column \"subject\": every sample counts as a subject of its own. If a person has several \
             samples, the intervals are too narrow."
                .to_owned(),
        );
    }
    notes.extend(changing.iter().map(|changing| format!("{changing}.")));
    notes
}

/// A note on the columns that were not used; `None` if all were.
pub(super) fn note_on_ignored(ignored: &[String]) -> Option<String> {
    let (shown, more) = shorten(ignored)?;
    let (noun, verb) = if ignored.len() == 1 { ("column", "was") } else { ("columns", "were") };
    Some(format!("{} {noun} {verb} not used: {shown}{more}.", ignored.len()))
}

fn shorten(names: &[String]) -> Option<(String, String)> {
    let shown = names.iter().take(MOST_NAMES).map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MOST_NAMES);
    (!names.is_empty()).then(|| (shown, if more == 0 { String::new() } else { format!(" and {more} more") }))
}

/// A note on the changes of the curves; `None` if nothing was changed and no repair was requested.
pub(super) fn note_on_repairs(repairs: &CurveRepairs, repair: Option<Repair>, n: usize) -> Option<String> {
    let CurveRepairs { n_rows, n_cells, largest_change } = *repairs;
    if n_cells == 0 {
        return repair.map(|repair| format!("--repair {} found nothing to change.", repair.name()));
    }
    let changed = format!(
        "changed cells of survival: {n_cells}, in {n_rows} of {n} rows, by at most {}",
        short_change(largest_change)
    );
    Some(if repairs.is_noise() {
        format!("{changed}; numerical noise up to {SURVIVAL_TOLERANCE:e} is accepted and removed.")
    } else {
        let name = repair.map_or("monotone", Repair::name);
        format!("{changed}; --repair {name} made every curve its running minimum.")
    })
}

/// Three significant digits, for changes of any size.
fn short_change(change: f64) -> String {
    if change < 1e-3 { format!("{change:.2e}") } else { format!("{change:.3}") }
}

pub(super) fn about_censoring(outcomes: &Outcomes, fitted_on: &'static str) -> CensoringSample {
    CensoringSample { fitted_on, n: outcomes.n(), n_events: outcomes.n_events() }
}

pub(super) fn censoring_fact(fitted: &CensoringSample, train: Option<&PathBuf>) -> String {
    let name = train.map_or_else(|| "the evaluated sample".to_owned(), |path| path.display().to_string());
    format!("{name}: {}, {}", counted(fitted.n, "sample"), counted(fitted.n_events, "event"))
}

pub(super) fn grid_fact(grid: &[f64]) -> (String, String) {
    let ends = grid.first().zip(grid.last());
    let text = ends.map_or_else(String::new, |(first, last)| match grid.len() {
        1 => format!("1 time, {first}"),
        n => format!("{n} times from {first} to {last}"),
    });
    ("grid of the curves".to_owned(), text)
}

pub(super) fn repair_fact(arguments: &Evaluate, repairs: &CurveRepairs) -> Option<(String, String)> {
    let CurveRepairs { n_rows, n_cells, largest_change } = *repairs;
    arguments.repair.map(Repair::name).map(|name| {
        let text = if n_cells == 0 {
            format!("{name}: nothing to change")
        } else {
            format!("{name}: changed cells {n_cells}, rows {n_rows}, largest change {}", short_change(largest_change))
        };
        ("repair of curves".to_owned(), text)
    })
}
