//! Samples that a run was not trained on: read by their adapter, labelled if they have outcomes, in the groups of the run.

use std::path::{Path, PathBuf};

use fairtte_data::adapters::{GenericConfig, TabularConfig};
use fairtte_data::cohort::{Exclusions, FittedAttribute, OutcomeConfig, RenamedLevel};
use fairtte_data::table::Table;
use fairtte_data::{AttributeConfig, Cohort, DataConfig, FittedAttributes, build_cohort};
use serde::Serialize;

use crate::CliError;
use crate::args;
use crate::progress::say;
use crate::run_file::{RunFile, TaskConfig};

/// The samples to predict.
pub(crate) struct OtherData {
    /// The run file of the samples; its `[data]` and cache are used.
    pub(crate) file: RunFile,
    pub(crate) cohort: Cohort,
    pub(crate) exclusions: Exclusions,
    /// Whether the samples have outcomes; otherwise all are censored at time 0.
    pub(crate) has_outcomes: bool,
    /// Name of the file that was read, as the user gave it.
    pub(crate) source: PathBuf,
    pub(crate) notes: Vec<String>,
}

/// How outcomes are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcomes {
    /// They are not read.
    pub(crate) ignored: bool,
    /// Factor from their unit to that of the run, if the user gave one.
    pub(crate) time_factor: Option<f64>,
}

impl OtherData {
    /// Reads and labels the samples that `other` names, for `run`, whose times are in `time_unit` and whose fitted
    /// attributes are `attributes`.
    ///
    /// # Errors
    /// [`CliError`] if they cannot be read, are of another kind than the inputs of the run, or are in another unit of time; for a factor
    /// of times that is none, or where there are no times.
    pub(crate) fn read(
        other: &args::Other,
        output: &Path,
        run: &RunFile,
        time_unit: &str,
        attributes: &[FittedAttribute],
        outcomes: Outcomes,
    ) -> Result<Self, CliError> {
        outcomes.require_factor()?;
        let (mut file, source) = run_file(other, run)?;
        file.cache = Some(other.cache.clone().unwrap_or_else(|| beside(output)));
        require_same_kind(run, &file)?;
        file.task = task_of(&file, run)?;
        let mut notes = Vec::new();
        let has_outcomes = !outcomes.ignored && (other.table.is_none() || table_has_outcomes(&file.data)?);
        let adapter = file.data.adapter(file.seed, &file.cache());
        if let Some(terms) = adapter.data_use() {
            say(format!("data use: {terms}"));
        }
        let read = match outcome_of(&file, run)?.filter(|_| has_outcomes) {
            Some(outcome) => adapter.read_causes(outcome)?,
            None if has_outcomes => adapter.read()?,
            None => adapter.read_without_outcomes()?,
        };
        let known = read.manifest.attribute_names();
        let (present, absent): (Vec<_>, Vec<_>) =
            attributes.iter().partition(|attribute| known.contains(&attribute.name.as_str()));
        for attribute in absent {
            let name = &attribute.name;
            notes.push(format!("{} has no column \"{name}\": its samples are in no group of {name}", source.display()));
        }
        let columns: Vec<AttributeConfig> =
            present.iter().map(|attribute| AttributeConfig::new(attribute.name.as_str())).collect();
        let (mut cohort, exclusions) = build_cohort(read, &columns)?;
        cohort.require_samples("after labelling", &exclusions)?;
        notes.extend(cohort.provenance.iter().flat_map(|provenance| provenance.notes.iter().cloned()));
        let has_times = has_outcomes && cohort.label().is_none();
        if has_times && (!run.is_of_class() || run.task.binary.is_some()) {
            notes.extend(in_unit_of_run(&mut cohort, time_unit, outcomes.time_factor, other)?);
        } else if has_times {
            // Their class is at a horizon of their own, in their unit.
            outcomes
                .refuse_factor("the run predicts a class that was read from a column, which has no unit of time")?;
        } else {
            let why = if has_outcomes { "the outcome is a label and not a time" } else { "there are no outcomes" };
            outcomes.refuse_factor(why)?;
            time_unit.clone_into(&mut cohort.time_unit);
        }
        Ok(Self { file, cohort, exclusions, has_outcomes, source, notes })
    }
}

impl Outcomes {
    /// Refuses what is no factor of times, before anything is read.
    fn require_factor(self) -> Result<(), CliError> {
        match self.time_factor.filter(|factor| !(factor.is_finite() && *factor > 0.0)) {
            Some(factor) => {
                let message = format!("{factor} is no factor of times, expected a finite number > 0");
                Err(CliError::setting("--time-factor", message, None))
            }
            None => Ok(()),
        }
    }

    /// Refuses a factor that would multiply nothing; `why` says why.
    fn refuse_factor(self, why: &str) -> Result<(), CliError> {
        match self.time_factor {
            Some(factor) => {
                let message = format!("{factor} has no effect, because {why}, expected no --time-factor");
                Err(CliError::setting("--time-factor", message, None))
            }
            None => Ok(()),
        }
    }
}

/// The groups of the samples by those attributes of a run that they have.
///
/// # Errors
/// As [`FittedAttributes::apply`].
pub(crate) fn groups_of(
    cohort: &Cohort,
    attributes: &[FittedAttribute],
    levels: &[RenamedLevel],
) -> Result<FittedAttributes, CliError> {
    let columns: Vec<&str> = cohort.attributes.iter().map(|column| column.name.as_str()).collect();
    let present = attributes.iter().filter(|attribute| columns.contains(&attribute.name.as_str()));
    let present: Vec<FittedAttribute> = present.cloned().collect();
    Ok(FittedAttributes::apply(&present, cohort, levels)?)
}

/// Sentences on the groups: values in no group, and levels of the run that no sample has.
pub(crate) fn notes_on_groups(groups: &FittedAttributes) -> Vec<String> {
    let mut notes: Vec<String> = groups.ungrouped().iter().map(ToString::to_string).collect();
    for attribute in groups.all() {
        for (index, level) in attribute.levels().iter().enumerate() {
            if !attribute.membership().iter().flatten().any(|group| group.index() == index) {
                notes.push(format!("no sample has {} \"{level}\"", attribute.attribute()));
            }
        }
    }
    notes
}

/// How a class is made in the other data: as their run file says, otherwise as for the run.
///
/// # Errors
/// [`CliError::Config`] if the other run file is about another class, or the run predicts none.
fn task_of(file: &RunFile, run: &RunFile) -> Result<TaskConfig, CliError> {
    let refused = |key: &str, message: String| Err(CliError::setting(key, message, None));
    if !file.is_of_class() {
        return Ok(run.task.clone());
    }
    if !run.is_of_class() {
        return refused("task", format!("the data have a class, the run \"{}\" predicts survival curves", run.name));
    }
    let horizon = |file: &RunFile| file.task.binary.map(|binary| binary.horizon);
    match (horizon(file), horizon(run)) {
        (Some(own), Some(of_run)) if own.to_bits() != of_run.to_bits() => {
            let message =
                format!("the class of the data is at {own}, the run \"{}\" predicts that at {of_run}", run.name);
            refused("task.binary.horizon", message)
        }
        _ => Ok(file.task.clone()),
    }
}

/// Which number of an event is what in the other data: what their run file says, otherwise as for the run.
///
/// # Errors
/// [`CliError::Config`] if the other run file is about another cause.
fn outcome_of<'a>(file: &'a RunFile, run: &'a RunFile) -> Result<Option<&'a OutcomeConfig>, CliError> {
    let (own, of_run) = (file.outcome.as_ref(), run.outcome.as_ref());
    let cause = |outcome: &OutcomeConfig| outcome.cause;
    if let Some(own) = own.filter(|own| Some(own.cause) != of_run.map(cause)) {
        let predicts = of_run.map_or_else(|| "one kind of event".to_owned(), |run| format!("cause {}", run.cause));
        let message =
            format!("[outcome] of the data is about cause {}, the run \"{}\" predicts {predicts}", own.cause, run.name);
        return Err(CliError::setting("outcome.cause", message, None));
    }
    Ok(own.or(of_run))
}

fn beside(output: &Path) -> PathBuf {
    output.parent().map_or_else(|| PathBuf::from("cache"), |parent| parent.join("cache"))
}

/// The part of a run file that names the data.
#[derive(Serialize)]
struct Written {
    data: DataConfig,
}

/// The run file of the samples, and the file that the user named.
fn run_file(other: &args::Other, run: &RunFile) -> Result<(RunFile, PathBuf), CliError> {
    refuse_without_effect(&other.set)?;
    if let Some(path) = &other.data {
        let file = RunFile::read(std::slice::from_ref(path), &other.set)?;
        let text =
            std::fs::read_to_string(path).map_err(|source| CliError::ReadRunFile { path: path.clone(), source })?;
        let given = text.parse::<toml::Table>().ok().and_then(|table| table.get("image")?.as_table().cloned());
        let mut keys: Vec<String> = given.into_iter().flatten().map(|(key, _)| key).collect();
        keys.extend(image_keys(&other.set));
        require_same_images(&path.display().to_string(), &keys, run, &file)?;
        return Ok((file, path.clone()));
    }
    let Some(path) = &other.table else {
        return Err(CliError::setting("--data", "no samples to predict, expected --data or --table".to_owned(), None));
    };
    let data = data_of_table(other, path, run)?;
    let text = toml::to_string(&Written { data }).map_err(|error| CliError::Bug(error.to_string()))?;
    let file = RunFile::from_text(&text, "--table", &other.set)?;
    require_same_images("--set", &image_keys(&other.set), run, &file)?;
    Ok((file, path.clone()))
}

/// The settings of `--table`: those of the run's own table, if it has one.
fn data_of_table(other: &args::Other, path: &Path, run: &RunFile) -> Result<DataConfig, CliError> {
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|source| CliError::ReadRunFile { path: path.to_owned(), source })
    };
    let table = absolute(path)?;
    Ok(match &run.data {
        DataConfig::Tabular(own) => {
            if other.image_root.is_some() {
                let message = "the run reads columns of a table, which have no images".to_owned();
                return Err(CliError::setting("--image-root", message, None));
            }
            DataConfig::Tabular(TabularConfig { table, name: None, ..own.clone() })
        }
        own => {
            let own = match own {
                DataConfig::Generic(config) => config.clone(),
                _ => GenericConfig::new(&table),
            };
            let image_root = other.image_root.as_deref().map(absolute).transpose()?;
            DataConfig::Generic(GenericConfig { table, name: None, image_root, ..own })
        }
    })
}

/// Whether the table of `data` has outcomes: both columns, or none; of a class its column.
fn table_has_outcomes(data: &DataConfig) -> Result<bool, CliError> {
    let (path, time, event, label) = match data {
        DataConfig::Generic(config) => (&config.table, &config.time, &config.event, &config.label),
        DataConfig::Tabular(config) => (&config.table, &config.time, &config.event, &config.label),
        _ => return Ok(true),
    };
    let table = Table::read(path)?;
    if let Some(label) = label {
        return Ok(table.has(label));
    }
    match (table.has(time), table.has(event)) {
        (true, true) => Ok(true),
        (false, false) => Ok(false),
        (has_time, _) => {
            let (there, absent) = if has_time { (time, event) } else { (event, time) };
            let file = path.display();
            let message = format!(
                "{file} has the column \"{there}\" and not \"{absent}\", expected both or neither (--no-outcomes ignores them)"
            );
            Err(CliError::setting("--table", message, None))
        }
    }
}

fn require_same_kind(run: &RunFile, file: &RunFile) -> Result<(), CliError> {
    let kind = |is_tabular: bool| if is_tabular { "columns of a table" } else { "images" };
    if run.is_tabular() == file.is_tabular() {
        return Ok(());
    }
    let (expected, found) = (kind(run.is_tabular()), kind(file.is_tabular()));
    let message = format!("the run \"{}\" reads {expected}, [data.{}] has {found}", run.name, file.data.name());
    Err(CliError::setting("data", message, None))
}

/// The tables of a run file that are about its samples; `[image]` is compared with that of the run.
const ABOUT_SAMPLES: [&str; 5] = ["data", "seed", "outcome", "task", "image"];

/// Refuses a `--set` that changes nothing, because everything else is as the run was trained.
fn refuse_without_effect(sets: &[String]) -> Result<(), CliError> {
    let keys = sets.iter().map(|set| set.split('=').next().unwrap_or_default().trim());
    let is_about_samples = |key: &str| ABOUT_SAMPLES.contains(&key.split('.').next().unwrap_or_default());
    match keys.into_iter().find(|key| !is_about_samples(key)) {
        Some(key) => {
            let known = ABOUT_SAMPLES.join(", ");
            let message = format!("--set {key} has no effect on samples to predict, expected a key of {known}");
            let help = "everything else is as the run was trained; --cache names the folder of decoded images";
            Err(CliError::setting(key, message, Some(help)))
        }
        None => Ok(()),
    }
}

/// The keys of `[image]` that `--set` gives: `size` of `image.size=[32, 32]`, every one of `image={ size = .. }`.
fn image_keys(sets: &[String]) -> Vec<String> {
    let of = |set: &String| -> Vec<String> {
        let (key, value) = set.split_once('=').unwrap_or((set, ""));
        let mut parts = key.trim().split('.');
        match (parts.next(), parts.next()) {
            (Some("image"), Some(key)) => vec![key.to_owned()],
            (Some("image"), None) => {
                let table = format!("image = {value}").parse::<toml::Table>().ok();
                let table = table.and_then(|table| table.get("image")?.as_table().cloned());
                table.into_iter().flatten().map(|(key, _)| key).collect()
            }
            _ => Vec::new(),
        }
    };
    sets.iter().flat_map(of).collect()
}

/// Refuses settings of images, named by their `keys`, that are not those of the run. Without them images are decoded as those
/// of the run.
fn require_same_images(origin: &str, keys: &[String], run: &RunFile, file: &RunFile) -> Result<(), CliError> {
    let table = |file: &RunFile| toml::Table::try_from(&file.image).map_err(|error| CliError::Bug(error.to_string()));
    let (found, expected) = (table(file)?, table(run)?);
    let shown = |value: Option<&toml::Value>| value.map_or_else(|| "no value".to_owned(), ToString::to_string);
    match keys.iter().find(|key| found.get(key.as_str()) != expected.get(key.as_str())) {
        Some(key) => {
            let (found, expected) = (shown(found.get(key)), shown(expected.get(key)));
            let message = format!("{origin} has {found}, the run \"{}\" was trained on {expected}", run.name);
            let help = "images are decoded as those of the run; leave [image] out";
            Err(CliError::setting(&format!("image.{key}"), message, Some(help)))
        }
        None => Ok(()),
    }
}

/// Brings the times of `cohort` into the unit of the run, and returns what there is to say about it.
fn in_unit_of_run(
    cohort: &mut Cohort,
    unit: &str,
    factor: Option<f64>,
    other: &args::Other,
) -> Result<Option<String>, CliError> {
    let (is_table, is_named) = (other.table.is_some(), cohort.has_time_unit());
    let own = std::mem::replace(&mut cohort.time_unit, unit.to_owned());
    let Some(factor) = factor else {
        if own == unit || (is_table && !is_named) {
            let note = format!("times of the table are read in {unit}, the unit of the run");
            return Ok(is_table.then_some(note));
        }
        let message = format!("the times of the data are in {own}, those of the run in {unit}");
        let help = "--time-factor multiplies them (365.25 from years to days, 30.44 from months to days)";
        return Err(CliError::setting("--time-factor", message, Some(help)));
    };
    // Other settings of a table are those of the run's own, whose unit says nothing about this one.
    let is_given =
        other.set.iter().any(|set| set.split('=').next().is_some_and(|key| key.trim().ends_with(".time-unit")));
    let is_known = is_named && (is_given || !is_table);
    if is_known && own == unit && factor.total_cmp(&1.0).is_ne() {
        let message =
            format!("{factor} would change times that are in {unit} as those of the run, expected no --time-factor");
        let help = "if they are in another unit, name it as the time-unit of [data]";
        return Err(CliError::setting("--time-factor", message, Some(help)));
    }
    for sample in &mut cohort.samples {
        sample.time *= factor;
    }
    let from =
        if is_known { format!("times in {own}") } else { "times of the data, whose unit is not named,".to_owned() };
    let to = if cohort.has_time_unit() { format!(" to {unit}") } else { String::new() };
    Ok(Some(format!("{from} were multiplied by {factor}{to}")))
}
