//! The output of an evaluation of masks: numbers as JSON and CSV, the numbers of every sample, the page, and the terminal.

use std::path::Path;

use fairtte_data::DataError;
use fairtte_data::table::{ColumnValues, write_csv};
use fairtte_metrics::evaluation::{EmptyMasks, MaskReport, MetricReport};
use fairtte_metrics::masks::{MaskClass, MaskSettings, PairScore};
use fairtte_metrics::{EvaluationReport, EvaluationSettings};
use fairtte_records::Warning;
use serde::Serialize;

use super::super::super::print;
use super::super::publish::{TERMINAL_WIDTH, Target, colour_is_wanted};
use super::super::{Outputs, Shown};
use super::Input;
use super::score::{BACKGROUND, Scored};
use super::settings::written;
use crate::CliError;
use crate::args::EvaluateMasks;
use crate::plural::counted;
use crate::progress::say;
use crate::report::{MaskPage, SampleRow, list, render_mask_page, render_mask_table, tables_of_masks, write_masks};
use crate::run_folder::write_text;

/// Samples on the page with the lowest Dice.
const N_LOWEST: usize = 10;
/// Name of the warning on a class that only true, or only predicted, masks have.
const ONE_SIDED: &str = "class-in-one-kind-of-masks";
/// Name of the warning on a class that no mask has.
const ABSENT: &str = "class-in-no-mask";
/// Name of the warning on values that no class has.
const OTHER_VALUES: &str = "values-of-no-class";
/// Name of the warning on groups that are not compared.
const FEW_VALUES: &str = "few-values";

/// `evaluation.json`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Record<'a> {
    task: &'static str,
    table: &'a Path,
    ignored_columns: &'a [String],
    has_subjects: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    notes: &'a [String],
    warnings: &'a [Warning],
    classes: &'a [MaskClass],
    unit: &'a str,
    masks: &'a MaskSettings,
    #[serde(serialize_with = "written")]
    settings: &'a EvaluationSettings,
    n: usize,
    n_subjects: usize,
    metrics: &'a [MetricReport],
    empty: &'a [EmptyMasks],
}

/// The source of the masks, and the notes on them.
pub(super) struct Source<'a> {
    pub(super) table: &'a Path,
    pub(super) title: Option<&'a str>,
    /// As given; empty where it is that of the masks.
    pub(super) spacing: &'a [f64],
    /// Of the training, if a run predicted the masks.
    pub(super) warnings: Vec<Warning>,
}

impl<'a> Source<'a> {
    pub(super) fn of_arguments(arguments: &'a EvaluateMasks) -> Self {
        let (table, title) = (arguments.table.as_path(), arguments.own.title.as_deref());
        Self { table, title, spacing: &arguments.spacing, warnings: Vec::new() }
    }
}

/// Writes the four files and shows the result.
pub(super) fn publish(
    source: &Source<'_>,
    input: &Input,
    scored: &Scored,
    report: &MaskReport,
    target: &Target,
    outputs: &Outputs,
) -> Result<(), CliError> {
    let mut all_warnings = source.warnings.clone();
    all_warnings.extend(warnings(scored, report));
    let warnings = all_warnings;
    let record = Record {
        task: "masks",
        table: source.table,
        ignored_columns: &input.table.ignored,
        has_subjects: input.table.has_subjects,
        title: source.title,
        notes: &input.notes,
        warnings: &warnings,
        classes: &report.classes,
        unit: &report.unit,
        masks: &report.masks,
        settings: &report.settings,
        n: report.n,
        n_subjects: report.n_subjects,
        metrics: &report.metrics,
        empty: &report.empty,
    };
    let text = serde_json::to_string_pretty(&record).map_err(|error| CliError::Bug(error.to_string()))?;
    write_text(target.evaluation(), &text)?;
    let all = samples(input, scored);
    write_samples(&target.samples(), &all, scored)?;
    let mut facts = input.facts.clone();
    facts.extend(facts_of(source, scored, report));
    let lowest = lowest(all);
    let evaluation = EvaluationReport::of_masks(report);
    let page = MaskPage {
        title: source.title.unwrap_or("Evaluation of masks"),
        subtitle: &input.table.cohort.name,
        facts: &facts,
        report,
        evaluation: &evaluation,
        scores: &scored.scores,
        groups: &input.groups,
        lowest: &lowest,
        warnings: &warnings,
        notes: &input.notes,
        csv: &target.csv_name(),
    };
    write_masks(&target.csv(), &page)?;
    target.write_page(&render_mask_page(&page)?, || tables_of_masks(&page))?;
    for warning in &warnings {
        say(format!("warning: {}", warning.text));
    }
    for note in &input.notes {
        say(format!("note: {note}"));
    }
    if outputs.shown == Shown::Json {
        print(text);
        return Ok(());
    }
    print(render_mask_table(&page, TERMINAL_WIDTH, colour_is_wanted()));
    target.written().into_iter().for_each(print);
    say(format!("done in {:.1} s", outputs.started.elapsed().as_secs_f64()));
    Ok(())
}

fn facts_of(source: &Source<'_>, scored: &Scored, report: &MaskReport) -> Vec<(String, String)> {
    let class = |class: &MaskClass| {
        let values: Vec<String> = class.values.iter().map(ToString::to_string).collect();
        format!("{} = {}", class.name, values.join(" + "))
    };
    let classes: Vec<String> = report.classes.iter().map(class).collect();
    let spacing = match source.spacing {
        [] if scored.unit == "pixels" => "1 pixel".to_owned(),
        [] => "that in the header of each volume".to_owned(),
        given => given.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x "),
    };
    let fact = |name: &str, value: String| (name.to_owned(), value);
    vec![
        fact("classes", classes.join(", ")),
        fact("spacing", spacing),
        fact("HD95", format!("convention of {}", report.masks.hausdorff.name())),
        fact("NSD", format!("tolerance {} {}", report.masks.tolerance, report.unit)),
        fact("fairtte", env!("CARGO_PKG_VERSION").to_owned()),
    ]
}

/// Every class of every sample.
fn samples(input: &Input, scored: &Scored) -> Vec<SampleRow> {
    let rows = input.table.cohort.samples.iter().enumerate().flat_map(|(row, sample)| {
        scored.classes.iter().zip(&scored.scores).map(move |(class, scores)| SampleRow {
            sample: sample.sample_id.as_str().to_owned(),
            subject: sample.subject_id.as_str().to_owned(),
            class: class.name.clone(),
            score: scores[row],
        })
    });
    rows.collect()
}

fn write_samples(path: &Path, rows: &[SampleRow], scored: &Scored) -> Result<(), DataError> {
    let text = |of: fn(&SampleRow) -> &str| ColumnValues::Borrowed(rows.iter().map(|row| Some(of(row))).collect());
    let number = |of: fn(&PairScore) -> Option<f64>| {
        ColumnValues::OptionalNumber(rows.iter().map(|row| of(&row.score)).collect())
    };
    let count = |of: fn(&PairScore) -> usize| {
        let whole = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        ColumnValues::Integer(rows.iter().map(|row| whole(of(&row.score))).collect())
    };
    let reason = rows.iter().map(|row| row.score.hd95().err().map(|reason| reason.to_string())).collect();
    let mut columns = vec![
        ("sample", text(|row| &row.sample)),
        ("subject", text(|row| &row.subject)),
        ("class", text(|row| &row.class)),
        ("true-pixels", count(|score| score.n_truth)),
        ("predicted-pixels", count(|score| score.n_predicted)),
        ("common-pixels", count(|score| score.n_common)),
        ("dice", number(|score| Some(score.dice()))),
        ("iou", number(|score| Some(score.iou()))),
        ("hd95", number(|score| score.hd95().ok())),
        ("asd", number(|score| score.asd().ok())),
        ("nsd", number(|score| Some(score.nsd()))),
        ("reason", ColumnValues::Text(reason)),
    ];
    if let Some(errors) = &scored.cup_to_disc {
        // A number of the sample stands in the rows of all its classes.
        let of_rows =
            errors.iter().flat_map(|error| std::iter::repeat_n(error.as_ref().ok().copied(), scored.classes.len()));
        columns.push(("cup-to-disc-error", ColumnValues::OptionalNumber(of_rows.collect())));
    }
    write_csv(path, columns.into_iter().map(|(name, values)| (name.to_owned(), values)).collect())
}

/// The samples with the lowest Dice, in their order where it is the same.
fn lowest(mut rows: Vec<SampleRow>) -> Vec<SampleRow> {
    rows.sort_by(|a, b| a.score.dice().total_cmp(&b.score.dice()));
    rows.truncate(N_LOWEST);
    rows
}

/// What must be read before the numbers.
fn warnings(scored: &Scored, report: &MaskReport) -> Vec<Warning> {
    let warning = |name: &str, text: String| Warning { name: name.to_owned(), text };
    let mut found = Vec::new();
    let absent = classes_without_pixels(scored, [true, true]);
    if !absent.is_empty() {
        found.push(warning(
            ABSENT,
            format!(
                "No true and no predicted mask has a pixel of {}: two empty masks have an overlap of 1, which says nothing of the model.",
                list(&absent)
            ),
        ));
    }
    let sides = [
        ("predicted", "true", classes_without_pixels(scored, [false, true])),
        ("true", "predicted", classes_without_pixels(scored, [true, false])),
    ];
    for (without, with, classes) in sides.into_iter().filter(|(.., classes)| !classes.is_empty()) {
        found.push(warning(
            ONE_SIDED,
            format!(
                "No {without} mask has a pixel of {}, which {with} masks have: are both kinds of masks written with the same values?",
                list(&classes)
            ),
        ));
    }
    let is_other =
        |value: &&i32| **value != BACKGROUND && !scored.classes.iter().any(|class| class.values.contains(value));
    let others: Vec<String> = scored
        .values
        .iter()
        .filter(|(value, _)| is_other(value))
        .map(|(value, [n_true, n_predicted])| format!("{value} ({n_true} true, {n_predicted} predicted)"))
        .collect();
    if !others.is_empty() {
        found.push(warning(
            OTHER_VALUES,
            format!("Values that no class has count as background (masks with them): {}.", others.join(", ")),
        ));
    }
    let few = few_values(report);
    if !few.is_empty() {
        let needed = counted(report.settings.min_events, "sample");
        found.push(warning(
            FEW_VALUES,
            format!("Groups with fewer than {needed} with a value are in no comparison: {}.", few.join("; ")),
        ));
    }
    found
}

/// The classes of which all true masks are empty, or not, and all predicted ones, as `wanted` says in this order.
fn classes_without_pixels(scored: &Scored, wanted: [bool; 2]) -> Vec<String> {
    let is_empty = |scores: &[PairScore], n_of: fn(&PairScore) -> usize| scores.iter().all(|score| n_of(score) == 0);
    let both =
        |scores: &[PairScore]| [is_empty(scores, |score| score.n_truth), is_empty(scores, |score| score.n_predicted)];
    let classes = scored.classes.iter().zip(&scored.scores).filter(|(_, scores)| both(scores) == wanted);
    classes.map(|(class, _)| class.name.clone()).collect()
}

/// The groups that are not compared, with the metrics in which they are not.
fn few_values(report: &MaskReport) -> Vec<String> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for metric in &report.metrics {
        for attribute in &metric.attributes {
            for level in &attribute.few_events {
                let name = format!("{} = {level}", attribute.attribute);
                match found.iter_mut().find(|known| known.0 == name) {
                    Some(known) => known.1.push(&metric.label),
                    None => found.push((name, vec![&metric.label])),
                }
            }
        }
    }
    let shown = |(name, metrics): (String, Vec<&str>)| {
        if metrics.len() == report.metrics.len() { name } else { format!("{name} in {}", metrics.join(", ")) }
    };
    found.into_iter().map(shown).collect()
}
