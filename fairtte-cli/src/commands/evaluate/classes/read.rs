//! The tables of one or several models: the samples that all of them have, their classes, and whether they agree on these.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use fairtte_data::predictions::{ClassOptions, ClassTable, OutsideTable as _, Rising, read_class_table, read_outcomes};
use fairtte_data::{AttributeConfig, Cohort, DataError, Sample};
use fairtte_metrics::classification::{ClassPredictions, HorizonClasses, best_f1_threshold, binary_at_horizon};
use fairtte_metrics::{CensoringCurve, CensoringTies, Groups, Outcomes, SampleId, SubjectId};
use fairtte_records::Warning;

use super::super::models::read::{SampleCounts, require_agreement};
use super::super::notes::{about_censoring, censoring_fact, note_on_ignored, notes_on_samples};
use super::super::outside::with_pairs;
use super::super::own_table;
use super::super::publish::CensoringSample;
use super::settings::{Threshold, Validation};
use crate::CliError;
use crate::args::Evaluate;
use crate::plural::counted;
use crate::scored::restrict;
use crate::shell::quoted;
use crate::training_sample::about_training;

/// Several models, or one, with the samples that all of them predict.
pub(super) struct Tables {
    pub(super) models: Vec<Model>,
    pub(super) samples: SampleCounts,
    /// All common samples.
    pub(super) cohort: Cohort,
    pub(super) has_subjects: bool,
    /// The samples of the cohort that have a class.
    pub(super) rows: Vec<usize>,
    /// Their subjects.
    pub(super) subjects: Vec<SubjectId>,
    /// Their sample ids.
    pub(super) ids: Vec<SampleId>,
    pub(super) groups: Vec<Groups>,
    /// Where the class is made from times.
    pub(super) times: Option<Times>,
    pub(super) notes: Vec<String>,
    pub(super) facts: Vec<(String, String)>,
}

/// One model on the common samples.
pub(super) struct Model {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) n_noisy: usize,
    pub(super) ignored: Vec<String>,
    /// Of all common samples.
    pub(super) probability: Vec<f64>,
    /// Of those with a class.
    pub(super) predictions: ClassPredictions,
}

/// What the class is made from.
pub(super) struct Times {
    pub(super) horizon: f64,
    pub(super) outcomes: Outcomes,
    /// Groups of all samples.
    pub(super) groups: Vec<Groups>,
    pub(super) censoring: CensoringCurve,
    pub(super) censoring_sample: CensoringSample,
    /// A warning about the sample of the censoring curve.
    pub(super) training: Option<Warning>,
}

impl Tables {
    /// Reads every file as if it were the only one.
    ///
    /// # Errors
    /// Those of [`read_class_table`]; [`CliError::Config`] if no sample is in all files, or none has one of the classes;
    /// [`CliError::RunFolder`] if the files disagree on a sample.
    pub(super) fn read(
        arguments: &Evaluate,
        names: Option<Vec<String>>,
        configs: &[AttributeConfig],
    ) -> Result<Self, CliError> {
        let options = options(arguments)?;
        let attributes: Vec<&str> = configs.iter().map(|attribute| attribute.name.as_str()).collect();
        let read = |path: &PathBuf| read_table(arguments, path, &attributes, &options);
        let tables = arguments.predictions.iter().map(read).collect::<Result<Vec<ClassTable>, _>>()?;
        let names = names.unwrap_or_else(|| vec!["model".to_owned()]);
        let (samples, tables) = common(&names, tables)?;
        let cohorts: Vec<(&Cohort, bool)> = tables.iter().map(|table| (&table.cohort, table.has_subjects)).collect();
        require_agreement(&cohorts, |sample| outcome_of(sample, options.from_times))?;

        let first = &tables[0];
        let fitted = first.fit_attributes(configs).map_err(|error| with_help(error, arguments))?;
        let all_groups = with_pairs(fitted.all(), arguments.intersections)?;
        let mut cohort = first.cohort.clone();
        own_table::name_unit(&mut cohort, &arguments.own)?;
        let mut notes = samples.notes("probability");
        notes.extend(notes_on_samples(configs, first.has_subjects, &first.changing_attributes(configs)));
        notes.extend(notes_of_files(&names, &tables));
        notes.extend(fitted.ungrouped().iter().map(|value| format!("{value}.")));
        notes.extend(own_table::notes_on_columns(first.likely_subjects(), &first.doubtful_levels()));
        let mut facts: Vec<(String, String)> = match &names[..] {
            [_] => vec![("predictions".to_owned(), arguments.predictions[0].display().to_string())],
            several => {
                let files = arguments.predictions.iter().map(|path| path.display().to_string());
                several.iter().cloned().zip(files).collect()
            }
        };
        let mut times = None;
        let mut rows = cohort.all_rows();
        if let Some(horizon) = arguments.scores.horizon {
            let (found, classes) = Times::new(arguments, &options, &cohort, all_groups.clone(), horizon)?;
            rows = classes.rows;
            notes.extend(found.note());
            facts.push((
                "censoring curve fitted on".to_owned(),
                censoring_fact(&found.censoring_sample, arguments.train.as_ref()),
            ));
            times = Some(found);
        }
        facts.extend(fact_on_columns(arguments));
        let positive: Vec<bool> = rows.iter().map(|row| is_positive(&cohort.samples[*row], times.as_ref())).collect();
        require_both(&positive, times.as_ref())?;
        let (has_subjects, mut models) = (first.has_subjects, Vec::new());
        for ((name, path), table) in names.into_iter().zip(&arguments.predictions).zip(tables) {
            let ClassTable { probability, n_noisy, ignored, .. } = table;
            let of_rows = rows.iter().map(|row| probability[*row]).collect();
            let predictions = ClassPredictions::new(of_rows, positive.clone())?;
            models.push(Model { name, path: path.clone(), n_noisy, ignored, probability, predictions });
        }
        Ok(Self {
            models,
            samples,
            has_subjects,
            subjects: cohort.subjects(&rows),
            ids: rows.iter().map(|row| cohort.samples[*row].sample_id.clone()).collect(),
            groups: all_groups.iter().map(|groups| restrict(groups, &rows)).collect::<Result<_, _>>()?,
            rows,
            cohort,
            times,
            notes,
            facts,
        })
    }
}

impl Times {
    fn new(
        arguments: &Evaluate,
        options: &ClassOptions,
        cohort: &Cohort,
        groups: Vec<Groups>,
        horizon: f64,
    ) -> Result<(Self, HorizonClasses), CliError> {
        let outcomes = cohort.outcomes(&cohort.all_rows())?;
        let train = arguments.train.as_deref().map(|path| read_outcomes(path, &options.columns)).transpose();
        let train = train.map_err(|error| with_help(error, arguments))?;
        let training = about_training(train.as_ref(), &outcomes)?;
        let fitted_on = train.as_ref().unwrap_or(&outcomes);
        let censoring = CensoringCurve::fit(fitted_on, CensoringTies::EventsFirst)?;
        let censoring_sample = about_censoring(fitted_on, if train.is_some() { "train" } else { "evaluated" });
        let classes = binary_at_horizon(&outcomes, horizon)?;
        Ok((Self { horizon, outcomes, groups, censoring, censoring_sample, training }, classes))
    }

    /// What the weights come from, where it is not the recommended sample.
    fn note(&self) -> Option<String> {
        (self.censoring_sample.fitted_on == "evaluated").then(|| {
            "There is no --train: the censoring curve of the weighted AUC is fitted on the evaluated sample itself, and not, as \
             recommended, on the sample that the model was trained on."
                .to_owned()
        })
    }
}

/// The threshold with the highest F1 on the samples of `path`.
///
/// # Errors
/// Those of the table; [`CliError::Config`] if it has one class only, or is a file that is evaluated.
pub(super) fn threshold_of(arguments: &Evaluate, path: &Path, tables: &Tables) -> Result<Threshold, CliError> {
    if arguments.predictions.iter().any(|evaluated| evaluated == path) {
        let message = format!("{} is evaluated too, expected other samples", path.display());
        return Err(CliError::setting("--validation", message, None));
    }
    let table = read_table(arguments, path, &[], &options(arguments)?)?;
    let rows = table.cohort.all_rows();
    let (rows, n_left_out) = match arguments.scores.horizon {
        None => (rows, None),
        Some(horizon) => {
            let classes = binary_at_horizon(&table.cohort.outcomes(&rows)?, horizon)?;
            (classes.rows, Some(classes.n_left_out))
        }
    };
    let samples = || rows.iter().map(|row| &table.cohort.samples[*row]);
    let positive: Vec<bool> = samples().map(|sample| is_positive(sample, tables.times.as_ref())).collect();
    let n_positive = positive.iter().filter(|positive| **positive).count();
    if n_positive == 0 || n_positive == positive.len() {
        let message = format!(
            "{n_positive} of {} with a class in {} are positive, expected both classes",
            counted(positive.len(), "sample"),
            path.display()
        );
        return Err(CliError::setting("--validation", message, None));
    }
    let (ids, subjects): (HashSet<&SampleId>, HashSet<&SubjectId>) =
        (tables.ids.iter().collect(), tables.subjects.iter().collect());
    let is_shared = |sample: &&Sample| {
        ids.contains(&sample.sample_id)
            || table.has_subjects && tables.has_subjects && subjects.contains(&sample.subject_id)
    };
    let n_shared = samples().filter(is_shared).count();
    let n = rows.len();
    let predictions = ClassPredictions::new(rows.iter().map(|row| table.probability[*row]).collect(), positive)?;
    let best = best_f1_threshold(&predictions)?;
    let validation = Validation { file: path.to_owned(), n, n_positive, n_left_out, f1: best.f1, n_shared };
    Ok(Threshold { value: best.threshold, chosen: "f1-on-validation", validation: Some(validation) })
}

fn options(arguments: &Evaluate) -> Result<ClassOptions, CliError> {
    let classes = &arguments.classes;
    let own = own_table::columns(&arguments.own).into_iter().map(|(option, _, named)| (option, named));
    let usual = "label".to_owned();
    let label = classes.label.as_ref().unwrap_or(&usual);
    let label = Some(label).filter(|_| arguments.scores.horizon.is_none());
    let of_class = [("--label", label), ("--probability", classes.probability.as_ref())];
    own_table::require_different(own.chain(of_class))?;
    let usual = own_table::options(&arguments.own, Rising::Refuse)?;
    Ok(ClassOptions {
        columns: usual.columns,
        probability: classes.probability.clone(),
        label: classes.label.clone(),
        label_value: classes.label_value.clone(),
        from_times: arguments.scores.horizon.is_some(),
        missing: usual.missing,
    })
}

fn read_table(
    arguments: &Evaluate,
    path: &Path,
    attributes: &[&str],
    options: &ClassOptions,
) -> Result<ClassTable, CliError> {
    // Without attributes there is nothing that could be missing.
    let missing = if attributes.is_empty() { Vec::new() } else { options.missing.clone() };
    read_class_table(path, attributes, &ClassOptions { missing, ..options.clone() })
        .map_err(|error| with_help(error, arguments))
}

/// The tables restricted to the samples that all of them have, in the order of the first.
fn common(names: &[String], tables: Vec<ClassTable>) -> Result<(SampleCounts, Vec<ClassTable>), CliError> {
    let ids = |table: &'_ ClassTable| -> Vec<SampleId> {
        table.cohort.samples.iter().map(|sample| sample.sample_id.clone()).collect()
    };
    let of_tables: Vec<Vec<SampleId>> = tables.iter().map(ids).collect();
    let mut seen = HashSet::new();
    let known: Vec<&SampleId> = of_tables.iter().flatten().filter(|id| seen.insert(*id)).collect();
    let predicted: Vec<HashSet<&SampleId>> = of_tables.iter().map(|ids| ids.iter().collect()).collect();
    let samples = SampleCounts::of(names, &known, &predicted)?;
    let common: Vec<&SampleId> =
        of_tables[0].iter().filter(|id| predicted.iter().all(|ids| ids.contains(id))).collect();
    let select = |(table, ids): (ClassTable, &Vec<SampleId>)| {
        let row_of: HashMap<&SampleId, usize> = ids.iter().enumerate().map(|(row, id)| (id, row)).collect();
        table.select(&common.iter().filter_map(|id| row_of.get(*id).copied()).collect::<Vec<_>>())
    };
    Ok((samples, tables.into_iter().zip(&of_tables).map(select).collect()))
}

/// Whether a sample is positive: its label, or an event by the horizon.
pub(super) fn is_positive(sample: &Sample, times: Option<&Times>) -> bool {
    times.map_or(sample.event, |times| sample.time <= times.horizon)
}

fn outcome_of(sample: &Sample, from_times: bool) -> Vec<(&'static str, String)> {
    let event = u8::from(sample.event).to_string();
    if from_times { vec![("time", sample.time.to_string()), ("event", event)] } else { vec![("label", event)] }
}

/// Samples of both classes are needed to say anything.
pub(super) fn require_both(positive: &[bool], times: Option<&Times>) -> Result<(), CliError> {
    let n_positive = positive.iter().filter(|positive| **positive).count();
    if n_positive > 0 && n_positive < positive.len() {
        return Ok(());
    }
    let n = counted(positive.len(), "sample");
    let Some(times) = times else {
        let message = format!("{n_positive} of {n} are positive, expected both classes");
        return Err(CliError::setting("--label", message, None));
    };
    let last = times.outcomes.time().iter().copied().fold(0.0, f64::max);
    let horizon = times.horizon;
    let message = if n_positive == 0 {
        format!("no sample has an event by {horizon}, expected both classes")
    } else {
        format!("no sample is followed beyond {horizon} (the last time is {last}), expected both classes")
    };
    Err(CliError::setting("--horizon", message, None))
}

/// The notes on every file, once where one applies to all.
fn notes_of_files(names: &[String], tables: &[ClassTable]) -> Vec<String> {
    let noise = |table: &ClassTable| {
        (table.n_noisy > 0).then(|| {
            let n = counted(table.n_noisy, "probability").replace("probabilitys", "probabilities");
            format!("{n} outside [0, 1] by numerical noise, which was removed.")
        })
    };
    let of_tables: Vec<Vec<String>> =
        tables.iter().map(|table| noise(table).into_iter().chain(note_on_ignored(&table.ignored)).collect()).collect();
    let is_of_all = |note: &String| of_tables.iter().all(|notes| notes.contains(note));
    let mut seen = BTreeSet::new();
    let notes = names.iter().zip(&of_tables).flat_map(|(name, notes)| {
        notes.iter().map(move |note| if is_of_all(note) { note.clone() } else { format!("{name}: {note}") })
    });
    notes.filter(|note| seen.insert(note.clone())).collect()
}

/// The columns and values with other names, for the page.
fn fact_on_columns(arguments: &Evaluate) -> Option<(String, String)> {
    let classes = &arguments.classes;
    let named = [("probability", &classes.probability), ("label", &classes.label)];
    let named = named.into_iter().filter_map(|(usual, named)| Some(format!("{usual} is \"{}\"", named.as_ref()?)));
    let value = classes.label_value.iter().map(|value| format!("a positive sample is \"{value}\""));
    let own = own_table::fact(&arguments.own).map(|(_, text)| text);
    let all: Vec<String> = named.chain(value).chain(own).collect();
    (!all.is_empty()).then(|| ("columns and values".to_owned(), all.join(", ")))
}

/// Adds the option that names the right column or value to an error about a table.
fn with_help(error: DataError, arguments: &Evaluate) -> CliError {
    let classes = &arguments.classes;
    let help = match &error {
        DataError::MissingColumn { column, nearest, .. } => match (column.as_str(), nearest) {
            ("probability", Some(nearest)) if classes.probability.is_none() => {
                Some(format!("name it with --probability {}", quoted(nearest)))
            }
            ("probability", None) if classes.probability.is_none() => {
                Some("name it with --probability COLUMN".to_owned())
            }
            ("label", Some(nearest)) if classes.label.is_none() => {
                Some(format!("name it with --label {}", quoted(nearest)))
            }
            ("label", None) if classes.label.is_none() => Some(
                "name it with --label COLUMN, or make the class from time and event with --horizon TIME".to_owned(),
            ),
            _ => None,
        },
        DataError::InvalidCell { column, value, expected, .. }
            if column == classes.label.as_deref().unwrap_or("label")
                && value != "empty"
                && expected.starts_with("1 (positive)") =>
        {
            Some(format!("name the value of a positive sample, as in --label-value {}", quoted(value)))
        }
        _ => None,
    };
    match help {
        Some(help) => CliError::Curves { source: Box::new(error), help },
        None => own_table::with_help(error, &arguments.own),
    }
}
