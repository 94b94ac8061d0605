//! `fairtte bias`: how the data of groups differ, before any model, from a table of features and a cohort, or from a run.

mod of_run;

pub(super) use self::of_run::{OfRun, measure as measure_run};

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use fairtte_data::features::{NumericFeatures, read_numeric_features};
use fairtte_data::predictions::{OutsideTable as _, Rising, SampleTable, match_features, read_sample_table};
use fairtte_data::{AttributeConfig, Cohort};
use fairtte_metrics::bias::{BiasSettings, bias_sources, principal_components_fitted, separability};
use fairtte_metrics::{Groups, Outcomes};
use ndarray::Axis;

use super::evaluate::{attributes_to_compare, own_table, with_help, with_pairs};
use super::{print, print_json, use_threads};
use crate::CliError;
use crate::args::{Bias, OwnTable};
use crate::merged::Merged;
use crate::progress::say;
use crate::report::bias::{AttributeBias, BiasReport, GroupCounts, render_page, render_table, write_flat};
use crate::run_folder::{write_json, write_text};
use crate::scored::restrict;

/// Columns of the table on the terminal.
const WIDTH: usize = 80;

pub(super) fn run(arguments: &Bias) -> Result<(), CliError> {
    use_threads(arguments.threads)?;
    let started = Instant::now();
    let report = match &arguments.run {
        Some(run) => {
            let (layer, part) = (arguments.layer.unwrap_or_default(), arguments.part.unwrap_or_default());
            of_run::measure(run, OfRun { layer, part, components: arguments.components }, settings(arguments)?)?
        }
        None => measure(arguments)?,
    };
    let folder = arguments.output.as_ref().or(arguments.run.as_ref());
    if let Some(folder) = folder {
        write(&report, folder)?;
    }
    if arguments.run.is_some() && arguments.output.is_none() {
        of_run::add_to_report(&report, arguments, started)?;
    }
    report.notes.iter().for_each(|note| say(format!("note: {note}")));
    if arguments.json {
        print_json(&report)?;
    } else {
        print(render_table(&report, WIDTH));
        if let Some(folder) = folder {
            print(format!("report: {}", folder.join("bias.html").display()));
        }
    }
    say(format!("done in {:.1} s", started.elapsed().as_secs_f64()));
    Ok(())
}

fn write(report: &BiasReport, folder: &Path) -> Result<(), CliError> {
    write_json(&folder.join("bias.json"), report)?;
    write_flat(&folder.join("bias.csv"), report)?;
    write_text(&folder.join("bias.html"), &render_page(report)?)
}

fn measure(arguments: &Bias) -> Result<BiasReport, CliError> {
    let settings = settings(arguments)?;
    let configs = attributes_to_compare(&arguments.attributes, arguments.intersections)?;
    let own = arguments.own.as_own_table();
    let (Some(features), Some(cohort)) = (&arguments.features, &arguments.cohort) else {
        return Err(CliError::setting("bias", "expected RUN, or --features with --cohort".to_owned(), None));
    };
    let table = read_cohort(cohort, &configs, &own)?;
    let fitted = table.fit_attributes(&configs).map_err(with_help)?;
    let mut notes = notes_on(&table, &configs);
    notes.extend(fitted.ungrouped().iter().map(|value| format!("{value}.")));
    let numbers = read_numeric_features(features, own.sample.as_deref(), &reserved(&own, &configs))?;
    let measured = Measured {
        features: features.display().to_string(),
        file: cohort.display().to_string(),
        columns: own_table::fact(&own).map(|(_, text)| text),
        notes,
        rows: table.cohort.all_rows(),
        fitted_on: table.cohort.all_rows(),
        groups: with_pairs(fitted.all(), arguments.intersections)?,
        cohort: &table.cohort,
    };
    measured.report(&numbers, arguments.components, settings)
}

/// What is measured: samples, their groups and where both are from.
struct Measured<'a> {
    features: String,
    file: String,
    columns: Option<String>,
    notes: Vec<String>,
    cohort: &'a Cohort,
    /// Groups of all samples of the cohort.
    groups: Vec<Groups>,
    /// Rows of the cohort that are compared.
    rows: Vec<usize>,
    /// Rows among them by whose features components are chosen.
    fitted_on: Vec<usize>,
}

impl Measured<'_> {
    fn report(
        self,
        features: &NumericFeatures,
        n_components: usize,
        settings: BiasSettings,
    ) -> Result<BiasReport, CliError> {
        let Self { cohort, rows, .. } = &self;
        let order = match_features(cohort, &features.samples)?;
        let order: Vec<usize> = rows.iter().map(|row| order[*row]).collect();
        let place: HashMap<usize, usize> = rows.iter().copied().zip(0..).collect();
        let fitted_on: Vec<usize> = self.fitted_on.iter().filter_map(|row| place.get(row).copied()).collect();
        let values = features.values.select(Axis(0), &order);
        let components = principal_components_fitted(&values, &fitted_on, n_components)?;
        let (subjects, outcomes) = (cohort.subjects(rows), cohort.outcomes(rows)?);
        let of_attribute = |groups: &Groups| -> Result<AttributeBias, CliError> {
            let groups = &restrict(groups, rows)?;
            if groups.membership().iter().all(Option::is_none) {
                let (name, file) = (groups.attribute(), &self.file);
                let message = format!(
                    "no compared sample of {file} is in a group of {name}, expected samples in at least two groups"
                );
                return Err(CliError::Check(message));
            }
            Ok(AttributeBias {
                groups: counts(groups, &outcomes, cohort, rows),
                sources: bias_sources(&subjects, &components.scores, &outcomes, groups, &settings)?,
                separability: separability(&subjects, &components.scores, groups, &settings)?,
            })
        };
        Ok(BiasReport {
            features: self.features.clone(),
            cohort: self.file.clone(),
            n: outcomes.n(),
            n_events: outcomes.n_events(),
            n_subjects: n_distinct(cohort, rows),
            reduction: components.reduction,
            columns: self.columns.clone(),
            attributes: self.groups.iter().map(of_attribute).collect::<Result<_, _>>()?,
            notes: self.notes.clone(),
            settings,
        })
    }
}

/// The defaults, changed by `--set` and by the arguments.
fn settings(arguments: &Bias) -> Result<BiasSettings, CliError> {
    let mut merged = Merged::default();
    merged.set_all(&arguments.set)?;
    let mut settings: BiasSettings = merged.into_config()?;
    settings.seed = arguments.seed.unwrap_or(settings.seed);
    settings.n_permutations = arguments.permutations.unwrap_or(settings.n_permutations);
    settings.min_group_size = arguments.min_events.unwrap_or(settings.min_group_size);
    settings.validate()?;
    Ok(settings)
}

fn read_cohort(path: &Path, configs: &[AttributeConfig], own: &OwnTable) -> Result<SampleTable, CliError> {
    let names: Vec<&str> = configs.iter().map(|attribute| attribute.name.as_str()).collect();
    let options = own_table::options(own, Rising::Refuse)?;
    let read = read_sample_table(path, &names, &options.columns, &options.missing);
    read.map_err(|error| own_table::with_help(error, own))
}

/// Columns of the cohort that are no features, if the table of features has them too.
fn reserved<'a>(own: &'a OwnTable, configs: &'a [AttributeConfig]) -> Vec<&'a str> {
    let named = [&own.subject, &own.time, &own.event].into_iter().flatten().map(String::as_str);
    let attributes = configs.iter().map(|attribute| attribute.name.as_str());
    ["subject_id", "subject", "time", "event"].into_iter().chain(named).chain(attributes).collect()
}

fn notes_on(table: &SampleTable, configs: &[AttributeConfig]) -> Vec<String> {
    let mut notes = Vec::new();
    if !table.has_subjects {
        notes.push(
            "The cohort has no column \"subject\": every sample counts as a subject of its own. If a person has several \
             samples, p values are too small and the intervals too narrow."
                .to_owned(),
        );
    }
    notes.extend(table.changing_attributes(configs).iter().map(|changing| format!("{changing}.")));
    notes.extend(own_table::notes_on_levels(&table.doubtful_levels()));
    notes
}

/// The sizes of groups of these `rows` of the cohort.
fn counts(groups: &Groups, outcomes: &Outcomes, cohort: &Cohort, rows: &[usize]) -> Vec<GroupCounts> {
    let count = |group| {
        let members = groups.rows(group);
        GroupCounts {
            level: groups.levels()[group.index()].clone(),
            n: members.len(),
            n_events: members.iter().filter(|member| outcomes.event()[**member]).count(),
            n_subjects: n_distinct(cohort, &members.iter().map(|member| rows[*member]).collect::<Vec<_>>()),
        }
    };
    groups.ids().map(count).collect()
}

fn n_distinct(cohort: &Cohort, rows: &[usize]) -> usize {
    rows.iter().map(|row| &cohort.samples[*row].subject_id).collect::<std::collections::BTreeSet<_>>().len()
}
