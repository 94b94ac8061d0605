//! The files of several models: the samples that all of them have, and whether they agree on these.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use fairtte_data::cohort::read_cohort_of_cause;
use fairtte_data::predictions::{
    CurveRepairs, OutsideTable as _, PredictionTable, ReadOptions, ScoredTable, read_outcomes, read_scored_table,
};
use fairtte_data::{AttributeConfig, Cohort, Part, Sample, Split, read_cohort};
use fairtte_metrics::{CensoringCurve, CensoringTies, SampleId, SurvivalCurves};
use fairtte_records::Warning;
use serde::Serialize;

use super::super::baseline::{self, Inputs};
use super::super::cohort_attributes::{Asked, Predicted};
use super::super::facts_of_parts;
use super::super::notes::{about_censoring, censoring_fact, grid_fact, note_on_repairs, notes_on_table};
use super::super::outside::{Call, refuse_causes_without_option, rising, with_help, with_pairs};
use super::super::own_table;
use super::super::publish::CensoringSample;
use crate::CliError;
use crate::args::Evaluate;
use crate::plural::counted;
use crate::scored::Scored;
use crate::training_sample::about_training;

/// Several models with the samples that all of them predict.
pub(super) struct Compared {
    pub(super) models: Vec<Model>,
    pub(super) samples: SampleCounts,
    /// Whether there is a split, of which one part is evaluated.
    pub(super) has_parts: bool,
    pub(super) has_subjects: bool,
    pub(super) censoring: CensoringSample,
    /// A warning about the sample of the censoring curve.
    pub(super) training: Option<Warning>,
    /// The covariates of `--baseline`.
    pub(super) baseline: Option<Inputs>,
    pub(super) notes: Vec<String>,
    pub(super) facts: Vec<(String, String)>,
}

impl Compared {
    /// The first model, which has the samples, groups and censoring curve of all.
    pub(super) fn any(&self) -> Result<&Scored, CliError> {
        let none = || CliError::Bug("a comparison without models".to_owned());
        self.models.first().map(|model| &model.scored).ok_or_else(none)
    }
}

/// One model on the common samples.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Model {
    #[serde(skip)]
    pub(super) name: String,
    predictions: PathBuf,
    repairs: CurveRepairs,
    ignored_columns: Vec<String>,
    #[serde(skip)]
    pub(super) scored: Scored,
}

/// The samples that are evaluated, and those that some file lacks.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(in super::super) struct SampleCounts {
    /// Samples of the cohort or its part; without a cohort those of any file.
    n_known: usize,
    /// Samples that all files have.
    n_evaluated: usize,
    /// One entry per model that lacks some.
    missing: Vec<Missing>,
}

/// What one file lacks.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Missing {
    model: String,
    n: usize,
    /// The first of them.
    first: String,
}

impl SampleCounts {
    /// `known`: all samples in their order; `predicted`: those of every model.
    ///
    /// # Errors
    /// [`CliError::Config`] if no sample is in all files.
    pub(in super::super) fn of(
        names: &[String],
        known: &[&SampleId],
        predicted: &[HashSet<&SampleId>],
    ) -> Result<Self, CliError> {
        let n_evaluated = known.iter().filter(|id| predicted.iter().all(|ids| ids.contains(*id))).count();
        let missing = |(name, ids): (&String, &HashSet<&SampleId>)| {
            let mut lacking = known.iter().filter(|id| !ids.contains(*id));
            let first = lacking.next()?.to_string();
            Some(Missing { model: name.clone(), n: 1 + lacking.count(), first })
        };
        let missing: Vec<Missing> = names.iter().zip(predicted).filter_map(missing).collect();
        if n_evaluated == 0 {
            let lacks = |of: &Missing| format!("{} lacks {} (first \"{}\")", of.model, of.n, of.first);
            let lacks = missing.iter().map(lacks).collect::<Vec<_>>().join(", ");
            let message = format!("no sample is in all files: of {} samples {lacks}", known.len());
            return Err(CliError::setting("--predictions", message, None));
        }
        Ok(Self { n_known: known.len(), n_evaluated, missing })
    }

    /// What is missing where, in words; `what` is a curve or a probability.
    pub(in super::super) fn notes(&self, what: &str) -> Vec<String> {
        let lacks = |of: &Missing| {
            let all = counted(self.n_known, "sample");
            format!("{} has no {what} for {} of {all} (first \"{}\").", of.model, of.n, of.first)
        };
        let mut notes: Vec<String> = self.missing.iter().map(lacks).collect();
        if !notes.is_empty() {
            let common = counted(self.n_evaluated, "sample");
            notes.push(format!("All models are evaluated on the {common} that every file has."));
        }
        notes
    }
}

/// Curves of the samples in a cohort file.
pub(super) fn with_cohort(
    arguments: &Evaluate,
    (names, attributes): (&[String], &[AttributeConfig]),
    cohort_file: &Path,
    call: &Call<'_>,
) -> Result<Compared, CliError> {
    let (mut cohort, groups) = match arguments.cause {
        None => read_cohort(cohort_file)?,
        Some(cause) => read_cohort_of_cause(cohort_file, cause)?,
    };
    refuse_causes_without_option(&cohort, arguments)?;
    own_table::require_cause(&cohort, arguments.cause)?;
    own_table::name_unit(&mut cohort, &arguments.own)?;
    let split = arguments.split.as_ref().map(|path| Split::read_csv(path, &cohort)).transpose()?;
    let part = split.as_ref().map(|split| split.rows(call.outputs.part).to_vec());
    let mut rows = part.unwrap_or_else(|| cohort.all_rows());
    let read = |path: &PathBuf| Predicted::read(path, arguments, attributes);
    let predicted = arguments.predictions.iter().map(read).collect::<Result<Vec<Predicted>, _>>()?;
    let files: Vec<(&PathBuf, &Predicted)> = arguments.predictions.iter().zip(&predicted).collect();
    let trained_on = split.as_ref().map_or_else(|| rows.clone(), |split| split.rows(Part::Train).to_vec());
    let asked = Asked::of(&mut cohort, groups, attributes, &files, &trained_on)?;
    let (groups, tables): (_, Vec<PredictionTable>) =
        (asked.groups, predicted.into_iter().map(|predicted| predicted.table).collect());
    let id = |row: &usize| &cohort.samples[*row].sample_id;
    let predicted: Vec<HashSet<&SampleId>> = tables.iter().map(|table| table.samples.iter().collect()).collect();
    let samples = SampleCounts::of(names, &rows.iter().map(id).collect::<Vec<_>>(), &predicted)?;
    rows.retain(|row| predicted.iter().all(|ids| ids.contains(id(row))));
    drop(predicted);

    let mut notes = samples.notes("curve");
    if split.is_none() {
        notes.push(
            "There is no split: all samples are evaluated, and the censoring curve is fitted on them too.".to_owned(),
        );
    }
    notes.extend(asked.notes);
    notes.extend(own_table::notes_on_groups(&groups));
    let mut facts = vec![("cohort".to_owned(), cohort_file.display().to_string())];
    facts.extend(split.iter().flat_map(|split| facts_of_parts(&cohort, split)));
    let groups = with_pairs(&groups, arguments.intersections)?;
    let fitted_on = split.as_ref().map_or_else(|| rows.clone(), |split| split.rows(Part::Train).to_vec());
    let baseline = Inputs::asked_of_cohort(&arguments.scores.baseline, (&cohort, &groups, split.as_ref()), &rows)?;
    let mut models = Vec::new();
    for ((name, path), table) in names.iter().zip(&arguments.predictions).zip(tables) {
        notes.extend(of_model(name, note_on_repairs(&table.repairs, arguments.repair, table.samples.len())));
        facts.extend(facts_of_file(name, path, &table.grid));
        let repairs = table.repairs;
        let scored = Scored::of_rows(table, &cohort, &groups, rows.clone(), &fitted_on)?;
        let (name, predictions) = (name.clone(), path.clone());
        models.push(Model { name, predictions, repairs, ignored_columns: Vec::new(), scored });
    }
    Ok(Compared {
        models,
        samples,
        has_parts: split.is_some(),
        has_subjects: true,
        censoring: about_censoring(
            &cohort.outcomes_of_any_cause(&fitted_on)?,
            if split.is_some() { "train" } else { "evaluated" },
        ),
        training: None,
        baseline,
        notes,
        facts,
    })
}

/// Tables that each have curves, outcomes and attributes.
pub(super) fn alone(arguments: &Evaluate, names: &[String], configs: &[AttributeConfig]) -> Result<Compared, CliError> {
    let own = &arguments.own;
    let mut options = own_table::options(own, rising(arguments))?;
    options.columns.cause = arguments.cause;
    let covariates = baseline::named(&arguments.scores.baseline)?;
    let mut columns: Vec<&str> = configs.iter().map(|attribute| attribute.name.as_str()).collect();
    columns.extend(covariates.iter().filter(|name| configs.iter().all(|attribute| attribute.name != **name)));
    let tables = read_tables(arguments, &columns, &options)?;
    let known: Vec<&SampleId> = {
        let mut seen = HashSet::new();
        tables.iter().flat_map(ids).filter(|id| seen.insert(*id)).collect()
    };
    let predicted: Vec<HashSet<&SampleId>> = tables.iter().map(|table| ids(table).collect()).collect();
    let samples = SampleCounts::of(names, &known, &predicted)?;
    let first = &tables[0].cohort.samples;
    let is_common = |row: &usize| predicted.iter().all(|ids| ids.contains(&first[*row].sample_id));
    let common: Vec<&SampleId> = (0..first.len()).filter(is_common).map(|row| &first[row].sample_id).collect();
    let selected: Vec<ScoredTable> = tables.iter().map(|table| table.select(&rows_of(table, &common))).collect();
    let cohorts: Vec<(&Cohort, bool)> = selected.iter().map(|table| (&table.cohort, table.has_subjects)).collect();
    let cause = cohorts[0].0.cause.unwrap_or(1);
    require_agreement(&cohorts, |sample| {
        let event = sample.competing.unwrap_or(if sample.event { cause } else { 0 });
        vec![("time", sample.time.to_string()), ("event", event.to_string())]
    })?;
    drop(predicted);

    let help = |error| own_table::with_help(error, own);
    let mut cohort = selected[0].cohort.clone();
    own_table::name_unit(&mut cohort, own)?;
    own_table::require_cause(&cohort, arguments.cause)?;
    let fitted = selected[0].fit_attributes(configs).map_err(with_help)?;
    let evaluated = cohort.outcomes_of_any_cause(&cohort.all_rows())?;
    let train =
        arguments.train.as_deref().map(|path| read_outcomes(path, &options.columns)).transpose().map_err(help)?;
    let training = about_training(train.as_ref(), &evaluated)?;
    let fitted_on = train.as_ref().unwrap_or(&evaluated);
    let mut notes = samples.notes("curve");
    notes.extend(notes_of_tables(names, &selected, configs, arguments));
    notes.extend(fitted.ungrouped().iter().map(|value| format!("{value}.")));
    notes.extend(own_table::notes(&selected[0]));
    if train.is_none() {
        notes.push(
            "There is no --train: the censoring curve is fitted on the evaluated sample itself, and not, as recommended, \
             on the sample that the models were trained on."
                .to_owned(),
        );
    }
    let rows = cohort.all_rows();
    let covariates = covariates.iter().map(|name| baseline::column(&cohort, name, &rows)).collect();
    let of_train = (arguments.train.as_deref(), train.clone(), &own.missing[..]);
    let baseline = Inputs::of_table(covariates, of_train, &mut notes)?;
    let censoring = about_censoring(fitted_on, if train.is_some() { "train" } else { "evaluated" });
    let mut facts = Vec::new();
    let groups = with_pairs(fitted.all(), arguments.intersections)?;
    let curve = CensoringCurve::fit(fitted_on, CensoringTies::EventsFirst)?;
    let has_subjects = selected[0].has_subjects;
    let mut models = Vec::new();
    for ((name, path), table) in names.iter().zip(&arguments.predictions).zip(selected) {
        facts.extend(facts_of_file(name, path, &table.grid));
        let scored = Scored {
            cause: cohort.cause,
            rows: cohort.all_rows(),
            groups: groups.clone(),
            curves: SurvivalCurves::new(table.grid, table.survival)?,
            censoring: curve.clone(),
            cohort: cohort.clone(),
        };
        let (name, predictions, repairs) = (name.clone(), path.clone(), table.repairs);
        models.push(Model { name, predictions, repairs, ignored_columns: table.ignored, scored });
    }
    facts.push(("censoring curve fitted on".to_owned(), censoring_fact(&censoring, arguments.train.as_ref())));
    facts.extend(own_table::fact(own));
    Ok(Compared { models, samples, has_parts: false, has_subjects, censoring, training, baseline, notes, facts })
}

fn read_tables(arguments: &Evaluate, columns: &[&str], options: &ReadOptions) -> Result<Vec<ScoredTable>, CliError> {
    let read = |path: &PathBuf| {
        read_scored_table(path, columns, options).map_err(|error| own_table::with_help(error, &arguments.own))
    };
    arguments.predictions.iter().map(read).collect()
}

fn ids(table: &ScoredTable) -> impl Iterator<Item = &SampleId> {
    table.cohort.samples.iter().map(|sample| &sample.sample_id)
}

/// The rows of `samples` in a table that has all of them.
fn rows_of(table: &ScoredTable, samples: &[&SampleId]) -> Vec<usize> {
    let row_of: HashMap<&SampleId, usize> = ids(table).enumerate().map(|(row, id)| (id, row)).collect();
    samples.iter().filter_map(|id| row_of.get(*id).copied()).collect()
}

/// Requires the same subjects, outcomes and attributes of the common samples in all tables, each a cohort and whether it has
/// subjects; `outcome` names and writes the outcome of a sample.
///
/// # Errors
/// [`CliError::RunFolder`] with the file, the sample and both values.
pub(in super::super) fn require_agreement(
    tables: &[(&Cohort, bool)],
    outcome: impl Fn(&Sample) -> Vec<(&'static str, String)>,
) -> Result<(), CliError> {
    let Some(((first, has_subjects), others)) = tables.split_first() else { return Ok(()) };
    let first_file = first.source.display();
    for (other, other_has_subjects) in others {
        let differs = |problem: String| Err(CliError::RunFolder { path: other.source.clone(), problem });
        if has_subjects != other_has_subjects {
            let (with, without) = if *other_has_subjects { ("a", "has none") } else { ("no", "has one") };
            return differs(format!("there is {with} column of subjects, but {first_file} {without}"));
        }
        for (row, (own, its)) in first.samples.iter().zip(&other.samples).enumerate() {
            let mut values = vec![("subject", own.subject_id.to_string(), its.subject_id.to_string())];
            let outcomes = outcome(own).into_iter().zip(outcome(its));
            values.extend(outcomes.map(|((name, own), (_, its))| (name, own, its)));
            let attributes = first.attributes.iter().zip(&other.attributes);
            let cell = |value: &Option<String>| value.clone().unwrap_or_else(|| "missing".to_owned());
            values.extend(
                attributes.map(|(own, its)| (own.name.as_str(), cell(&own.values[row]), cell(&its.values[row]))),
            );
            if let Some((what, own, its)) = values.into_iter().find(|(_, own, its)| !is_same(own, its)) {
                let (sample, at) = (&other.samples[row].sample_id, other.samples[row].source_row);
                return differs(format!(
                    "{what} of sample \"{sample}\" (row {at}) is {its} there and {own} in {first_file}, expected the same"
                ));
            }
        }
    }
    Ok(())
}

/// The same text, or the same number written differently.
fn is_same(one: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
    one == other || number(one).zip(number(other)).is_some_and(|(one, other)| one.to_bits() == other.to_bits())
}

/// The notes on every file, once where one applies to all.
fn notes_of_tables(
    names: &[String],
    tables: &[ScoredTable],
    configs: &[AttributeConfig],
    arguments: &Evaluate,
) -> Vec<String> {
    let of_tables: Vec<Vec<String>> =
        tables.iter().map(|table| notes_on_table(table, configs, arguments.repair)).collect();
    let is_of_all = |note: &String| of_tables.iter().all(|notes| notes.contains(note));
    let mut seen = BTreeSet::new();
    let notes = names.iter().zip(&of_tables).flat_map(|(name, notes)| {
        notes.iter().map(move |note| if is_of_all(note) { note.clone() } else { format!("{name}: {note}") })
    });
    notes.filter(|note| seen.insert(note.clone())).collect()
}

fn of_model(name: &str, note: Option<String>) -> Option<String> {
    note.map(|note| format!("{name}: {note}"))
}

fn facts_of_file(name: &str, path: &Path, grid: &[f64]) -> [(String, String); 2] {
    let (what, grid) = grid_fact(grid);
    [(name.to_owned(), path.display().to_string()), (format!("{what}, {name}"), grid)]
}
