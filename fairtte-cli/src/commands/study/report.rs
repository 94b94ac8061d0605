//! `fairtte study report`: the tables and the page of what is finished.

use std::collections::BTreeMap;
use std::path::Path;

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
use crate::report::sheet::Sheet;
use crate::report::study::{StudyFacts, render};
use crate::report::{chart, figures_of};
use crate::run_file::RunFile;
use crate::run_folder::{read_json, remove_file, write_json, write_text};
use crate::study::{Analysis, Plan, Points, ReadCohort, Study};

/// The numbers of the report, with the names of its tables and figures.
const RECORD: &str = "study.json";

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
    let files = parts(&analysis)?;
    for name in files_of_last(folder).iter().filter(|name| !files.contains_key(*name)) {
        remove_file(&folder.join(name))?;
    }
    let record = json!({ "study": facts, "analysis": analysis, "files": files.keys().collect::<Vec<_>>() });
    // Before the files, so that it names all that are there, also where this call is killed.
    write_json(&folder.join(RECORD), &record)?;
    for (name, text) in &files {
        write_text(&folder.join(name), text)?;
    }
    write_text(&folder.join("study.html"), &render(&facts, &analysis)?)?;
    say(format!("report: {}", folder.join("study.html").display()));
    Ok((facts, analysis))
}

/// Texts of tables and figures by their path in the folder of the study.
fn parts(analysis: &Analysis) -> Result<BTreeMap<String, String>, CliError> {
    let mut files = BTreeMap::new();
    let mut add_table = |name: String, sheet: &Sheet| -> Result<(), CliError> {
        let table = sheet.table();
        for (ending, text) in [("csv", sheet.csv()?), ("md", table.markdown()), ("tex", table.latex())] {
            files.insert(format!("tables/{name}.{ending}"), text);
        }
        Ok(())
    };
    let tests = [("", &analysis.gaps), ("control-", &analysis.gaps_against_control), ("metric-", &analysis.metrics)];
    let tests: Vec<_> = tests.into_iter().filter_map(|(prefix, tests)| Some((prefix, tests.as_ref()?))).collect();
    for sheet in analysis.sections.iter().flat_map(|section| &section.sheets) {
        add_table(sheet.name.clone(), sheet)?;
    }
    for (prefix, tests) in &tests {
        sheets(tests).iter().try_for_each(|sheet| add_table(format!("{prefix}{}", sheet.name), sheet))?;
    }
    let mut drawn = Vec::new();
    for of in analysis.sections.iter().flat_map(|section| &section.charts) {
        drawn.extend(chart(of)?.iter().flat_map(|svg| figures_of(svg)));
    }
    for (prefix, tests) in &tests {
        drawn.extend(figures(tests)?.into_iter().map(|(name, svg)| (format!("{prefix}{name}"), svg)));
    }
    files.extend(drawn.into_iter().map(|(name, svg)| (format!("figures/{name}.svg"), svg)));
    Ok(files)
}

/// Names of the tables and figures of the last report; none where it cannot be read.
fn files_of_last(folder: &Path) -> Vec<String> {
    let record = folder.join(RECORD);
    if !record.exists() {
        return Vec::new();
    }
    let found: serde_json::Value = match read_json(&record) {
        Ok(found) => found,
        Err(error) => {
            say(format!("note: {}; tables of the last report may stay", sentence(&error)));
            return Vec::new();
        }
    };
    let names = found["files"].as_array().into_iter().flatten().filter_map(|name| name.as_str());
    let is_ours = |name: &&str| ["tables", "figures"].iter().any(|of| Path::new(name).parent() == Some(Path::new(of)));
    names.filter(is_ours).map(str::to_owned).collect()
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
