//! `fairtte card`: the model card of a finished run, from its files alone.

mod external;
mod facts;

use std::path::Path;

use fairtte_data::cohort::Exclusions;
use fairtte_data::shift::ShiftRecord;
use fairtte_data::split::SplitRecord;
use fairtte_data::{Cohort, Part, Split, read_cohort};
use fairtte_metrics::Groups;
use fairtte_metrics::evaluation::{GroupSummary, describe_groups, describe_groups_of_cause};

use self::external::read_external;
use super::evaluate::{Published, flow_rows, with_intersections};
use super::print;
use crate::CliError;
use crate::args::Card as Arguments;
use crate::merged::Merged;
use crate::report::card::{About, Attribute, Card};
use crate::run_file::RunFile;
use crate::run_folder::{OpenRun, RunFolder, read_json, write_text};

pub(super) fn run(arguments: &Arguments) -> Result<(), CliError> {
    require_finished(&arguments.run)?;
    let about = arguments.about.as_deref().map_or_else(|| Ok(About::default()), read_about)?;
    let text = card(arguments, &about)?;
    let path = arguments.output.clone().unwrap_or_else(|| RunFolder::new(&arguments.run).card());
    write_text(&path, &text)?;
    print(format!("model card: {}", path.display()));
    let missing = about.missing();
    if !missing.is_empty() {
        print(format!("not stated (keys of the file --about): {}", missing.join(", ")));
    }
    Ok(())
}

/// Checks that the run is done and evaluated; the error says what to do otherwise.
fn require_finished(path: &Path) -> Result<(), CliError> {
    let folder = RunFolder::new(path);
    let shown = path.display();
    let problem = if !folder.run_file().exists() {
        "this is not the folder of a run: it has no run.toml".to_owned()
    } else if !folder.done().exists() {
        let file = folder.run_file();
        let train = format!("fairtte train --config {} --output {shown}", file.display());
        format!("the training is not finished; `{train}` finishes it")
    } else if !folder.evaluation(Part::Test).exists() {
        format!("there is no evaluation.json; `fairtte evaluate {shown}` writes it")
    } else {
        return Ok(());
    };
    Err(CliError::RunFolder { path: path.to_owned(), problem })
}

fn read_about(path: &Path) -> Result<About, CliError> {
    let failed = |error: std::io::Error| CliError::RunFolder { path: path.to_owned(), problem: error.to_string() };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let mut merged = Merged::default();
    merged.add_text(&text, &path.display().to_string())?;
    merged.into_config()
}

fn card(arguments: &Arguments, about: &About) -> Result<String, CliError> {
    let OpenRun { file: run, folder } = OpenRun::read(&arguments.run)?;
    run.require_curves("card")?;
    let (cohort, groups) = read_cohort(&folder.cohort())?;
    let groups = with_intersections(groups, &run)?;
    let split = Split::read_csv(&folder.split(), &cohort)?;
    let record: SplitRecord = read_json(&folder.split_record())?;
    let reasons = cohort.provenance.as_ref().map(|provenance| provenance.reasons.as_slice()).unwrap_or_default();
    let exclusions = Exclusions::read_csv(&folder.exclusions(), cohort.n(), reasons)?;
    let published = Published::read(&folder.evaluation(Part::Test))?;
    let shift = folder.shift();
    let shift: Option<ShiftRecord> = if shift.exists() { Some(read_json(&shift)?) } else { None };
    let externals = arguments.external.iter().map(|text| read_external(text, &arguments.run));
    let externals = externals.collect::<Result<Vec<_>, _>>()?;
    let parts = Part::ALL.map(|part| Ok((part, described(&cohort, &groups, split.rows(part))?)));
    let parts = parts.into_iter().collect::<Result<Vec<_>, CliError>>()?;
    let coverage = published.coverage.map(|coverage| coverage.sentences(published.report.settings.reading));
    Ok(Card {
        name: &run.name,
        about,
        model: &facts::of_model(&run, &folder)?,
        data: &facts::of_data(&cohort, &record),
        attributes: &attributes(&run, &groups),
        split: &facts::of_split(&record),
        flow: &flow_rows(&exclusions, run.is_tabular()),
        parts: &parts,
        shift: shift.map(|shift| shift.to_string()).as_deref(),
        evaluation: &published.report,
        time_unit: &cohort.time_unit,
        coverage: &coverage.unwrap_or_default(),
        warnings: &published.warnings,
        externals: &externals,
    }
    .markdown())
}

/// Who the samples at `rows` are.
fn described(cohort: &Cohort, groups: &[Groups], rows: &[usize]) -> Result<Vec<GroupSummary>, CliError> {
    let restricted = |groups: &Groups| {
        let membership = rows.iter().map(|row| groups.membership()[*row]).collect();
        Groups::new(groups.attribute(), groups.levels().to_vec(), membership)
    };
    let groups = groups.iter().map(restricted).collect::<Result<Vec<_>, _>>()?;
    let subjects = cohort.subjects(rows);
    if let Some(cause) = cohort.cause {
        return Ok(describe_groups_of_cause(&subjects, (&cohort.competing_outcomes(rows, cause)?, cause), &groups)?);
    }
    Ok(describe_groups(&subjects, &cohort.outcomes(rows)?, &groups)?)
}

/// How the groups were made; those of no attribute of the run file are intersections.
fn attributes(run: &RunFile, groups: &[Groups]) -> Vec<Attribute> {
    let attribute = |groups: &Groups| {
        let config = run.attribute.iter().find(|config| config.name == groups.attribute());
        Attribute {
            name: groups.attribute().to_owned(),
            levels: groups.levels().to_vec(),
            made: config.map_or_else(|| "every combination of groups".to_owned(), facts::of_attribute),
            n_missing: groups.membership().iter().filter(|group| group.is_none()).count(),
            is_intersection: config.is_none(),
        }
    };
    groups.iter().map(attribute).collect()
}
