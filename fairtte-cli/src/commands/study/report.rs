//! `fairtte study report`: the tables and the page of what is finished.

use fairtte_data::cohort::CohortSummary;
use serde_json::json;

use super::planned;
use super::status::Counts;
use crate::CliError;
use crate::args::StudyReport;
use crate::commands::{print, print_json, use_threads};
use crate::error::sentence;
use crate::prepared::read_tables;
use crate::progress::say;
use crate::report::method_tests::{figures, sheets};
use crate::report::study::{StudyFacts, render};
use crate::report::{chart, figures_of};
use crate::run_file::RunFile;
use crate::run_folder::{write_json, write_text};
use crate::study::{Analysis, Plan, Points, ReadCohort, Study};

pub(super) fn run(arguments: &StudyReport) -> Result<(), CliError> {
    let plan = planned(&arguments.folder)?;
    use_threads(arguments.threads)?;
    let (facts, analysis) = write(&plan, arguments.replicates)?;
    if arguments.json {
        return print_json(&json!({ "study": facts, "analysis": analysis }));
    }
    print(&facts.counts);
    for section in &analysis.sections {
        print(format!("\n{}: {}", section.title, section.question));
        section.verdict.iter().for_each(|sentence| print(format!("  {sentence}")));
    }
    for metric in analysis.gaps.iter().chain(&analysis.metrics).flat_map(|tests| &tests.metrics) {
        print(format!("\n{}", metric.question));
        metric.verdict.iter().for_each(|sentence| print(format!("  {sentence}")));
    }
    Ok(())
}

/// Writes the page, the tables and the figures of what is finished; `replicates` of the bootstrap for intervals, 0 = none.
///
/// # Errors
/// [`CliError::RunFolder`] if nothing is finished, and for files that cannot be read or written.
pub(in crate::commands) fn write(plan: &Plan, replicates: usize) -> Result<(StudyFacts, Analysis), CliError> {
    let counts = Counts::of(plan)?;
    let points = Points::read(plan)?;
    if points.trials.is_empty() {
        let problem = "no trial has finished; `fairtte study run` runs them".to_owned();
        return Err(CliError::RunFolder { path: plan.folder().path().to_owned(), problem });
    }
    let mut of_points = Study::new(plan, &points);
    if replicates > 0 {
        let models = of_points.chosen()?;
        of_points = of_points.with(super::intervals::samples(plan, &models, replicates)?);
    }
    let causes = super::causes::measure(plan, &of_points)?;
    of_points = of_points.with_causes(causes);
    let analysis = of_points.analyse(&cohorts(plan)?)?;
    let study = plan.study();
    let facts = StudyFacts {
        name: study.name.clone(),
        counts: counts.sentence(),
        is_finished: counts.is_finished(),
        facts: vec![
            ("study", plan.folder().path().display().to_string()),
            ("cells", plan.cells().len().to_string()),
            ("trials per cell", study.trials.to_string()),
            ("trainings", counts.n().to_string()),
            ("seed", study.seed.to_string()),
            ("fairtte", env!("CARGO_PKG_VERSION").to_owned()),
        ],
        not_trained: counts.lines(),
    };
    let folder = plan.folder().path();
    for sheet in analysis.sections.iter().flat_map(|section| &section.sheets) {
        let table = sheet.table();
        for (ending, text) in [("csv", sheet.csv()?), ("md", table.markdown()), ("tex", table.latex())] {
            write_text(&folder.join("tables").join(format!("{}.{ending}", sheet.name)), &text)?;
        }
    }
    for of in analysis.sections.iter().flat_map(|section| &section.charts) {
        for (name, svg) in chart(of)?.iter().flat_map(|svg| figures_of(svg)) {
            write_text(&folder.join("figures").join(format!("{name}.svg")), &svg)?;
        }
    }
    for (prefix, tests) in
        [("", &analysis.gaps), ("control-", &analysis.gaps_against_control), ("metric-", &analysis.metrics)]
    {
        let Some(tests) = tests else { continue };
        for (name, svg) in figures(tests)? {
            write_text(&folder.join("figures").join(format!("{prefix}{name}.svg")), &svg)?;
        }
        for sheet in sheets(tests) {
            let table = sheet.table();
            for (ending, text) in [("csv", sheet.csv()?), ("md", table.markdown()), ("tex", table.latex())] {
                write_text(&folder.join("tables").join(format!("{prefix}{}.{ending}", sheet.name)), &text)?;
            }
        }
    }
    let record = json!({ "study": facts, "analysis": analysis });
    write_json(&folder.join("study.json"), &record)?;
    write_text(&folder.join("study.html"), &render(&facts, &analysis)?)?;
    say(format!("report: {}", folder.join("study.html").display()));
    Ok((facts, analysis))
}

/// The data sets of the study, read again; one that has moved is named on the page.
fn cohorts(plan: &Plan) -> Result<Vec<ReadCohort>, CliError> {
    let read = |run: &RunFile| {
        let (cohort, exclusions, attributes) = read_tables(run)?;
        Ok(CohortSummary::new(&cohort, &exclusions, &attributes))
    };
    let all = plan.data()?;
    Ok(all.iter().map(|run| read(run).map_err(|error: CliError| sentence(&error))).collect())
}
