//! `fairtte test`: do methods differ over settings? From any table of values.

mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{print, print_json};
use crate::CliError;
use crate::args::Test;
use crate::method_tests::{Goal, Observation, Question, TestsError, compare};
use crate::progress::say;
use crate::report::method_tests::{TestReport, figures, render_page, render_table, sheets};
use crate::run_folder::{write_json, write_text};

/// Columns of the table on the terminal.
const WIDTH: usize = 80;

pub(super) fn run(arguments: &Test) -> Result<(), CliError> {
    let values = read::read(&arguments.table, &arguments.columns)?;
    let question = Question {
        base: arguments.base.clone(),
        level: arguments.level,
        alternative: arguments.alternative.into(),
        all_pairs: arguments.all_pairs,
        family: arguments.family.into(),
        goals: goals(arguments, &values.observations)?,
    };
    let tests = compare(&values.observations, &question).map_err(|error| explain(error, &values))?;
    let report = TestReport {
        table: arguments.table.display().to_string(),
        n_values: values.observations.len(),
        columns: &arguments.columns,
        notes: values.notes,
        tests: &tests,
    };
    if let Some(folder) = &arguments.output {
        write(&report, folder)?;
    }
    report.notes.iter().for_each(|note| say(format!("note: {note}")));
    if arguments.json {
        return print_json(&report);
    }
    print(render_table(&tests, WIDTH));
    if let Some(folder) = &arguments.output {
        print(format!("\nreport: {}", folder.join("test.html").display()));
    }
    Ok(())
}

fn write(report: &TestReport<'_>, folder: &Path) -> Result<(), CliError> {
    write_json(&folder.join("test.json"), report)?;
    for (name, svg) in figures(report.tests)? {
        write_text(&folder.join("figures").join(format!("{name}.svg")), &svg)?;
    }
    for sheet in sheets(report.tests) {
        let table = sheet.table();
        for (ending, text) in [("csv", sheet.csv()?), ("md", table.markdown()), ("tex", table.latex())] {
            write_text(&folder.join("tables").join(format!("{}.{ending}", sheet.name)), &text)?;
        }
    }
    write_text(&folder.join("test.html"), &render_page(report)?)
}

/// The goal of every metric: that of the option that names it, or of the option without names.
fn goals(arguments: &Test, observations: &[Observation]) -> Result<BTreeMap<String, Goal>, CliError> {
    let options = [
        ("--higher-is-better", Goal::HigherIsBetter, &arguments.higher_is_better),
        ("--lower-is-better", Goal::LowerIsBetter, &arguments.lower_is_better),
        ("--gap", Goal::Gap, &arguments.gap),
    ];
    let metrics: BTreeSet<&str> = observations.iter().map(|observation| observation.metric.as_str()).collect();
    let given = options.into_iter().filter_map(|(option, goal, names)| Some((option, goal, names.as_ref()?)));
    let (of_all, named): (Vec<_>, Vec<_>) = given.partition(|(_, _, names)| names.is_empty());
    if let [(first, ..), (second, ..), ..] = of_all[..] {
        let message =
            format!("it and {first} both speak of all metrics, expected one of them, or the names of its metrics");
        return Err(CliError::setting(second, message, Some(&format!("{second}=METRIC,METRIC names metrics"))));
    }
    let mut goals = BTreeMap::new();
    for (option, goal, name) in
        named.iter().flat_map(|(option, goal, names)| names.iter().map(move |n| (option, goal, n)))
    {
        let problem = if !metrics.contains(name.as_str()) {
            let known = metrics.iter().copied().collect::<Vec<_>>().join(", ");
            format!("\"{name}\" is no metric of the table, expected one of {known}")
        } else if goals.insert(name.clone(), *goal).is_some() {
            format!("\"{name}\" is named twice, expected one direction of each metric")
        } else {
            continue;
        };
        return Err(CliError::setting(option, problem, None));
    }
    for metric in metrics {
        if goals.contains_key(metric) {
            continue;
        }
        let Some((_, goal, _)) = of_all.first() else {
            let message = format!(
                "{metric} has no direction, expected --higher-is-better, --lower-is-better or --gap (gaps between groups, \
                 smaller is better): ranks depend on it"
            );
            return Err(CliError::setting("test", message, None));
        };
        goals.insert(metric.to_owned(), *goal);
    }
    Ok(goals)
}

/// Adds the row of the value, or says which option is meant.
fn explain(error: TestsError, values: &read::Values) -> CliError {
    let problem = error.to_string();
    match error {
        TestsError::NotFinite { index, .. }
        | TestsError::NegativeGap { index, .. }
        | TestsError::SomeTrials { index, .. } => CliError::Cell { problem, place: values.place(index), help: None },
        TestsError::Repeated { index, first, .. } => CliError::Cell {
            place: format!("{}; first in {}", values.place(index), values.row(first)),
            problem,
            help: Some(
                "name the column that tells them apart: --trial COLUMN if the methods were trained several times, --metric \
                 COLUMN if there are several metrics"
                    .to_owned(),
            ),
        },
        TestsError::UnknownBase { .. } => CliError::setting("--base", problem, None),
        TestsError::Level(_) => CliError::setting("--level", problem, None),
        TestsError::NoGoal { .. } => CliError::Bug(problem),
        TestsError::Metric(error) => error.into(),
        TestsError::OneMethod { .. } | TestsError::NoValues => CliError::Check(problem),
    }
}
