//! What a run file may say, how files and `--set` are merged, and how a wrong key is reported.
//!
//! Later files win over earlier ones and `--set` over all files. A variant (data set, head, strategy) is chosen by the
//! name of its table; naming another one later replaces the earlier one. Unknown keys are errors.

use std::path::{Path, PathBuf};

use fairtte_data::{AttributeConfig, DataConfig, ImageConfig, IntensityConfig, SplitConfig};
use fairtte_fairness::{Monitor, OptimiserConfig, StrategyConfig, TrainingConfig};
use fairtte_metrics::EvaluationSettings;
use fairtte_models::EncoderConfig;
use fairtte_survival::{CutPoints, HeadConfig};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::{CliError, device};

/// Everything that decides a run. Paths of the data are relative to the file that names them, `output` and `cache` to
/// the current folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunFile {
    /// Title of the run.
    pub name: String,
    /// One seed for split, weights, order and noise, each from a stream of its own. Default 1.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Run folder.
    pub output: PathBuf,
    /// Folder for decoded images and simulated cohorts, shared by runs. Default: `cache` beside the run folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
    /// Where to compute (`fairtte list devices`). Default `flex`.
    #[serde(default = "default_device")]
    pub device: String,
    /// Threads; 0 = one per core.
    #[serde(default)]
    pub threads: usize,
    /// The data set.
    pub data: DataConfig,
    /// Sensitive attributes and how they become groups; at least one for an evaluation by group.
    #[serde(default)]
    pub attribute: Vec<AttributeConfig>,
    /// Which groups training and reports use.
    #[serde(default)]
    pub groups: GroupsConfig,
    /// Shares of the three parts.
    #[serde(default)]
    pub split: SplitConfig,
    /// Size and channels of the decoded images.
    #[serde(default)]
    pub image: ImageConfig,
    /// Scaling of the intensities, fitted on the training part.
    #[serde(default)]
    pub intensity: IntensityConfig,
    /// Discretisation of time.
    #[serde(default)]
    pub time: TimeConfig,
    /// The network up to the representation.
    pub model: EncoderConfig,
    /// Loss and prediction rule.
    pub head: HeadConfig,
    /// Training strategy.
    pub strategy: StrategyConfig,
    /// Settings of `AdamW`.
    #[serde(default)]
    pub optimiser: OptimiserConfig,
    /// Settings of the training loop.
    #[serde(default)]
    pub training: TrainingConfig,
    /// Settings of the evaluation.
    #[serde(default)]
    pub evaluation: EvaluationSettings,
}

/// Which groups training and reports use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct GroupsConfig {
    /// Attributes whose groups (or intersections, if more than one) the strategy works on. Default: the first attribute.
    pub train: Vec<String>,
    /// Intersections to report beside the single attributes, for example `[["sex", "age"]]`.
    pub intersections: Vec<Vec<String>>,
}

/// Discretisation of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct TimeConfig {
    /// Number of equally spaced cut points from 0 to the largest training time, at least 2; also the number of network
    /// outputs. The paper: 14 for AREDS, 28 for ADNI, 128 for MIMIC-CXR.
    pub intervals: usize,
}

impl Default for TimeConfig {
    fn default() -> Self {
        Self { intervals: 20 }
    }
}

fn default_seed() -> u64 {
    1
}

fn default_device() -> String {
    "flex".to_owned()
}

/// Tables in which the name of one sub-table is a choice.
const CHOICES: [&str; 4] = ["data", "head", "strategy", "reading"];

impl RunFile {
    /// Reads and merges `files` and `sets`, in that order.
    ///
    /// # Errors
    /// [`CliError`] naming file, key and what was expected.
    pub fn read(files: &[PathBuf], sets: &[String]) -> Result<Self, CliError> {
        let mut merged = Merged::default();
        let mut folder = PathBuf::new();
        for file in files {
            if merged.add_file(file)? {
                folder = file.parent().map(Path::to_owned).unwrap_or_default();
            }
        }
        merged.set_all(sets)?;
        let mut run: Self = merged.into_config()?;
        // One name for one folder, so that the resolved file means the same wherever it is read from.
        let base = Path::new(".").join(&folder).canonicalize();
        run.data.resolve_paths(&base.map_err(|source| CliError::ReadRunFile { path: folder, source })?);
        Ok(run)
    }

    /// Reads a run file from text, for runs whose settings are part of the program.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn from_text(text: &str, origin: &str, sets: &[String]) -> Result<Self, CliError> {
        let mut merged = Merged::default();
        merged.add_text(text, origin)?;
        merged.set_all(sets)?;
        merged.into_config()
    }

    /// The resolved run file, every default written out.
    ///
    /// # Errors
    /// [`CliError::Bug`] if a setting has no form in TOML.
    pub fn to_toml(&self) -> Result<String, CliError> {
        toml::to_string(self).map_err(|error| CliError::Bug(format!("the run file cannot be written: {error}")))
    }

    /// Where decoded images and simulated cohorts are kept.
    pub fn cache(&self) -> PathBuf {
        let beside = || self.output.parent().map_or_else(|| PathBuf::from("cache"), |parent| parent.join("cache"));
        self.cache.clone().unwrap_or_else(beside)
    }

    /// Attributes whose groups the strategy works on.
    pub fn training_attributes(&self) -> Vec<&str> {
        match self.groups.train.as_slice() {
            [] => self.attribute.first().map(|attribute| attribute.name.as_str()).into_iter().collect(),
            names => names.iter().map(String::as_str).collect(),
        }
    }
}

impl RunFile {
    /// What can be refused before any file is read: ranges, names of attributes, and settings that do not fit together.
    ///
    /// # Errors
    /// [`CliError`] naming the key, its value and what was expected.
    pub fn check(&self) -> Result<(), CliError> {
        device::open(&self.device)?;
        self.split.check()?;
        self.image.check()?;
        self.training.validate()?;
        self.optimiser.validate()?;
        self.model.validate()?;
        self.head.build()?;
        self.strategy.validate()?;
        self.evaluation.validate()?;
        CutPoints::check(self.time.intervals)?;
        if let DataConfig::Simulated(config) = &self.data {
            config.validate()?;
        }
        self.check_axes()?;
        self.check_groups()
    }

    fn check_axes(&self) -> Result<(), CliError> {
        let (size, backbone) = (&self.image.size, self.model.backbone);
        if size.len() == backbone.n_axes() {
            return Ok(());
        }
        let (found, expected) = (size.len(), backbone.n_axes());
        let message = format!("{size:?} has {found} axes, but backbone {} reads {expected}", backbone.name());
        let help = if expected == 2 { "write size = [height, width]" } else { "write size = [depth, height, width]" };
        Err(CliError::setting("image.size", message, Some(help)))
    }

    fn check_groups(&self) -> Result<(), CliError> {
        let known: Vec<&str> = self.attribute.iter().map(|attribute| attribute.name.as_str()).collect();
        let intersections = self.groups.intersections.iter().map(|names| ("groups.intersections", names));
        for (key, names) in intersections.chain([("groups.train", &self.groups.train)]) {
            if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
                return Err(CliError::unknown_attribute(key, unknown, &known));
            }
            let distinct = names.iter().collect::<std::collections::BTreeSet<_>>().len();
            if distinct < names.len() || (key == "groups.intersections" && distinct < 2) {
                let message = format!("{names:?} is no intersection, expected two or more different attributes");
                return Err(CliError::setting(key, message, None));
            }
        }
        if known.is_empty() && self.strategy.needs_groups() {
            let message = "it works on groups, but the run file has no [[attribute]]".to_owned();
            return Err(CliError::setting("strategy", message, None));
        }
        if known.is_empty() && self.training.monitor == Monitor::WorstGroupCTd {
            let message = "worst-group-c-td needs groups, but the run file has no [[attribute]]".to_owned();
            return Err(CliError::setting("training.monitor", message, None));
        }
        Ok(())
    }
}

/// Settings merged from files and arguments, with the texts that keys are searched in.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    table: Table,
    sources: Vec<(String, String)>,
    sets: Vec<String>,
}

impl Merged {
    /// Says whether the file names a data set.
    pub(crate) fn add_file(&mut self, path: &Path) -> Result<bool, CliError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| CliError::ReadRunFile { path: path.to_owned(), source })?;
        self.add_text(&text, &path.display().to_string())
    }

    /// Says whether the text names a data set.
    pub(crate) fn add_text(&mut self, text: &str, origin: &str) -> Result<bool, CliError> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map(|span| text[..span.start].lines().count().max(1));
            let place = line.map_or_else(String::new, |line| format!(", line {line}"));
            CliError::Toml { origin: format!("{origin}{place}"), message: error.message().to_owned() }
        })?;
        let names_data = table.contains_key("data");
        merge(&mut self.table, table);
        self.sources.push((origin.to_owned(), text.to_owned()));
        Ok(names_data)
    }

    pub(crate) fn set_all(&mut self, sets: &[String]) -> Result<(), CliError> {
        self.sets.extend(sets.iter().cloned());
        sets.iter().try_for_each(|set| self.set(set))
    }

    fn set(&mut self, set: &str) -> Result<(), CliError> {
        let malformed = |problem: &str| CliError::Config {
            key: format!("--set {set}"),
            message: problem.to_owned(),
            place: String::new(),
            help: Some("write --set key.path=value, for example --set training.epochs=3".to_owned()),
        };
        let (path, text) = set.split_once('=').ok_or_else(|| malformed("there is no = in it"))?;
        // A bare word is text: nobody wants to write --set device='"flex"'.
        let value = format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
        let value = value.unwrap_or_else(|| Value::String(text.to_owned()));
        let keys: Vec<&str> = path.split('.').collect();
        let (last, parents) = keys.split_last().filter(|_| !path.is_empty()).ok_or_else(|| malformed("no key"))?;
        let mut node = &mut self.table;
        let mut keys = parents.iter().peekable();
        while let Some(key) = keys.next() {
            let entry = node.entry(*key).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Array(items) = entry {
                let n = items.len();
                let index = keys.next().and_then(|key| key.parse::<usize>().ok());
                let item = index.and_then(|index| items.get_mut(index)).and_then(Value::as_table_mut);
                let problem = format!("{key} has {n} entries, expected {key}.0 to {key}.{}", n.saturating_sub(1));
                node = item.ok_or_else(|| malformed(&problem))?;
                continue;
            }
            if CHOICES.contains(key) && entry.is_str() {
                *entry = Value::Table(Table::new()); // another choice was written as a plain word
            }
            if !entry.is_table() {
                return Err(malformed(&format!("{key} is a value, not a table")));
            }
            if CHOICES.contains(key) {
                let chosen = keys.peek().map_or(*last, |next| **next);
                keep_only(entry.as_table_mut().expect("checked above"), chosen);
            }
            node = entry.as_table_mut().expect("checked above");
        }
        node.insert((*last).to_owned(), value);
        Ok(())
    }

    /// Checks names and types of all keys.
    pub(crate) fn into_config<T: DeserializeOwned>(self) -> Result<T, CliError> {
        serde_path_to_error::deserialize(Value::Table(self.table)).map_err(|error| {
            let path = error.path().to_string();
            let message = error.inner().message().to_owned();
            let (key, help) = explain(&path, &message);
            let from_set = self.sets.iter().rev().find(|set| set.split('=').next().is_some_and(|path| path == key));
            let from_file = || self.sources.iter().rev().find_map(|(origin, text)| place(origin, text, &key));
            let place = from_set.map(|set| format!(" (--set {set})")).or_else(from_file);
            CliError::Config { key, message: shorten(&message), place: place.unwrap_or_default(), help }
        })
    }
}

/// Merges `later` into `earlier`; where the name of a table is a choice, the later choice replaces the earlier one.
fn merge(earlier: &mut Table, later: Table) {
    for (key, value) in later {
        match (earlier.get_mut(&key), value) {
            (Some(Value::Table(old)), Value::Table(new)) => {
                if CHOICES.contains(&key.as_str())
                    && let Some(chosen) = new.keys().next().cloned()
                {
                    keep_only(old, &chosen);
                }
                merge(old, new);
            }
            (_, value) => {
                earlier.insert(key, value);
            }
        }
    }
}

fn keep_only(table: &mut Table, chosen: &str) {
    table.retain(|name, _| name == chosen);
}

/// The key in question and the nearest valid name, from serde's message.
fn explain(path: &str, message: &str) -> (String, Option<String>) {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    match quoted.split_first() {
        Some((found, valid)) if unknown => {
            let already_named = path == *found || path.ends_with(&format!(".{found}"));
            let key = match path {
                "" | "." => (*found).to_owned(),
                path if already_named || message.starts_with("unknown variant") => path.to_owned(),
                path => format!("{path}.{found}"),
            };
            let distance = |name: &&&str| strsim::osa_distance(found, name);
            let nearest = valid.iter().min_by_key(distance).map(|name| format!("did you mean \"{name}\"?"));
            (key, nearest)
        }
        _ if path == "." => ("run file".to_owned(), None),
        _ => (path.to_owned(), None),
    }
}

fn shorten(message: &str) -> String {
    message.replace('`', "\"").trim_end().to_owned()
}

/// File and line of a key: the line that assigns it below the header of its table, or the header itself.
fn place(origin: &str, text: &str, key: &str) -> Option<String> {
    let mut table = String::new();
    let stands_on = |line: &str| {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            header.trim_matches(['[', ']', ' ']).clone_into(&mut table);
            return table == key;
        }
        let name = line.split('=').next().unwrap_or_default().trim();
        let path = if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") };
        path == key
    };
    let line = text.lines().position(stands_on)? + 1;
    Some(format!(" ({origin}, line {line})"))
}
