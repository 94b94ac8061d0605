//! `fairtte card`: the model card of a finished run, from its files alone.

mod external;
mod facts;

use std::collections::HashSet;
use std::path::Path;

use fairtte_data::cohort::{Classes, Exclusions};
use fairtte_data::shift::ShiftRecord;
use fairtte_data::split::SplitRecord;
use fairtte_data::{Cohort, Part, Split, read_cohort};
use fairtte_metrics::Groups;
use fairtte_metrics::evaluation::{GroupSummary, describe_groups, describe_groups_of_cause};

use self::external::read_external;
use super::evaluate::{Published, PublishedThreshold, flow_rows, with_intersections};
use super::print;
use crate::CliError;
use crate::args::Card as Arguments;
use crate::merged::Merged;
use crate::report::card::{About, Attribute, Card, CardClass, ClassCount, External, Who};
use crate::report::{ClassNumbers, threshold_sentence};
use crate::run_file::RunFile;
use crate::run_folder::{OpenRun, RunFolder, read_json, write_text};
use crate::shell::quoted_path;

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
    folder.require_trained(&folder.done())?;
    if folder.evaluation(Part::Test).exists() {
        return Ok(());
    }
    let problem = format!("there is no evaluation.json; `fairtte evaluate {}` writes it", quoted_path(path));
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
    run.require_no_masks("card")?;
    let (cohort, groups) = read_cohort(&folder.cohort())?;
    let groups = with_intersections(groups, &run)?;
    let split = Split::read_csv(&folder.split(), &cohort)?;
    let record: SplitRecord = read_json(&folder.split_record())?;
    let reasons = cohort.provenance.as_ref().map(|provenance| provenance.reasons.as_slice()).unwrap_or_default();
    let exclusions = Exclusions::read_csv(&folder.exclusions(), cohort.n(), reasons)?;
    let classes = run.classes(&cohort)?;
    let published = Published::read(&folder.evaluation(Part::Test))?;
    let shift = folder.shift();
    let shift: Option<ShiftRecord> = if shift.exists() { Some(read_json(&shift)?) } else { None };
    let externals = arguments.external.iter().map(|text| read_external(text, &arguments.run));
    let externals = externals.collect::<Result<Vec<_>, _>>()?;
    require_same_task(&arguments.run, &published, &externals)?;
    let who = |rows: &[usize]| match &classes {
        Some(classes) => Ok(Who::Class(counted_classes(&cohort, &groups, classes, rows))),
        None => described(&cohort, &groups, rows).map(Who::Curves),
    };
    let parts = Part::ALL.map(|part| Ok((part, who(split.rows(part))?)));
    let parts = parts.into_iter().collect::<Result<Vec<_>, CliError>>()?;
    let class = published.class.as_ref();
    let threshold = class.map(|class| threshold_of(&class.threshold));
    let class = class.zip(threshold.as_deref()).map(|(class, threshold)| CardClass {
        numbers: ClassNumbers {
            report: &class.report,
            evaluation: &published.report,
            groups: &class.groups,
            horizon: class.horizon.as_ref(),
            time_unit: &cohort.time_unit,
        },
        threshold,
    });
    let coverage = published.coverage.map(|coverage| coverage.sentences(published.report.settings.reading));
    Ok(Card {
        name: &run.name,
        about,
        model: &facts::of_model(&run, &folder)?,
        data: &facts::of_data(&cohort, &record, classes.as_ref().is_some_and(|classes| classes.horizon.is_none())),
        attributes: &attributes(&run, &groups),
        split: &facts::of_split(&record),
        flow: &flow_rows(&exclusions, run.is_tabular()),
        parts: &parts,
        shift: shift.map(|shift| shift.to_string()).as_deref(),
        evaluation: &published.report,
        class,
        time_unit: &cohort.time_unit,
        coverage: &coverage.unwrap_or_default(),
        warnings: &published.warnings,
        externals: &externals,
    }
    .markdown())
}

/// The evaluations of a card are of one task.
fn require_same_task(run: &Path, published: &Published, externals: &[External]) -> Result<(), CliError> {
    let words = |is_class: bool| if is_class { "a class" } else { "survival curves" };
    let own = published.report.class.is_some();
    let Some(other) = externals.iter().find(|external| external.report.class.is_some() != own) else { return Ok(()) };
    let message = format!(
        "{} is the evaluation of {}, {} predicts {}, expected an evaluation of the same",
        other.name,
        words(!own),
        run.display(),
        words(own)
    );
    Err(CliError::setting("--external", message, None))
}

/// Where the threshold comes from, in a sentence without paths.
fn threshold_of(threshold: &PublishedThreshold) -> String {
    let PublishedThreshold { value, chosen, validation } = threshold;
    let validation = validation.as_ref().map(|of| ("the validation part", of.f1, of.n, of.n_positive));
    threshold_sentence(*value, chosen == "given", validation)
}

/// The classes of the samples at `rows`: of all, then of every group.
fn counted_classes(cohort: &Cohort, groups: &[Groups], classes: &Classes, rows: &[usize]) -> Vec<ClassCount> {
    let count = |name: Option<(&str, &str)>, rows: &[usize]| {
        let subjects: HashSet<_> = rows.iter().map(|row| &cohort.samples[*row].subject_id).collect();
        let of = |class: Option<bool>| rows.iter().filter(|row| classes.positive[**row] == class).count();
        ClassCount {
            attribute: name.map(|(attribute, _)| attribute.to_owned()),
            level: name.map(|(_, level)| level.to_owned()),
            n: rows.len(),
            n_subjects: subjects.len(),
            n_positive: of(Some(true)),
            n_without: of(None),
        }
    };
    let mut counts = vec![count(None, rows)];
    for groups in groups {
        counts.extend(groups.ids().map(|group| {
            let is_in = |row: &&usize| groups.membership()[**row] == Some(group);
            let own: Vec<usize> = rows.iter().filter(is_in).copied().collect();
            count(Some((groups.attribute(), &groups.levels()[group.index()])), &own)
        }));
    }
    counts
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
