//! The study file: the axes of a study, on top of ordinary run files.

mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fairtte_data::shift::ShiftGroup;
use fairtte_records::TOLERATED_LOSS;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub(crate) use self::tables::{
    Backbone, BiasOfStudy, Estimators, Execute, Heads, Keep, OneOrMore, Strategies, StudyData,
};
use super::cells::Block;
use super::halving::Halving;
use super::search::Range;
use crate::CliError;
use crate::args::Rule;
use crate::merged::Merged;
use crate::run_file::RunFile;

/// A study file. `docs/src/studies.md` shows one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct StudyFile {
    /// Title. Default: the name of the file without its ending.
    pub(crate) name: String,
    /// Folder of the study. Default: `studies/` and the name of the file without its ending.
    pub(crate) output: PathBuf,
    /// Seed of the draws and of the training seeds; data and split have the seed of their run file.
    #[serde(default = "one")]
    pub(crate) seed: u64,
    /// Trials per cell, each with its own draw of the searched keys and its own training seed.
    #[serde(default = "ten")]
    pub(crate) trials: usize,
    /// The training seeds of the trials, one trial each, in place of seeds drawn from `seed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) seeds: Vec<u64>,
    /// Folds of a cross-validation: every trial is trained once per fold, and its values are means over the folds. 1 = the
    /// split of the run file.
    #[serde(default = "one_fold", skip_serializing_if = "is_one")]
    pub(crate) folds: usize,
    /// Training seeds of every trial, whose values are means over them: noise of the training changes a choice less.
    #[serde(default = "one_fold", skip_serializing_if = "is_one")]
    pub(crate) repeats: usize,
    /// How models are chosen in the validation part.
    #[serde(default, skip_serializing_if = "is_fairest")]
    pub(crate) rule: Rule,
    /// Relative loss of the base's metric that is tolerated for the smallest gap.
    #[serde(default = "five_percent")]
    pub(crate) tolerated_loss: f64,
    /// Stops trials that fall behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) halving: Option<Halving>,
    /// What is trained.
    #[serde(default = "Block::defaults")]
    pub(crate) blocks: BTreeSet<Block>,
    /// The data sets.
    pub(crate) data: Vec<StudyData>,
    /// The heads.
    #[serde(default)]
    pub(crate) heads: Heads,
    /// Whether the file names no head: then it is that of the task.
    #[serde(skip)]
    pub(crate) has_default_heads: bool,
    /// Tables of a run file that say how a training starts, by name; one, `scratch`, without any table if not given.
    #[serde(default = "from_scratch")]
    pub(crate) starts: BTreeMap<String, Table>,
    /// The start of the strategies, shifts and backbones. Needed with more than one start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base_start: Option<String>,
    /// The strategies.
    #[serde(default)]
    pub(crate) strategies: Strategies,
    /// Estimators on columns, in the block `fair` beside the strategies.
    #[serde(default, skip_serializing_if = "Estimators::is_empty")]
    pub(crate) estimators: Estimators,
    /// Ranges of keys of a run file.
    #[serde(default)]
    pub(crate) search: BTreeMap<String, Range>,
    /// Levels of distribution shifts by name, each with one key of `[shift]`.
    #[serde(default)]
    pub(crate) shifts: BTreeMap<String, BTreeMap<String, Vec<Value>>>,
    /// The group of every attribute whose training samples are shifted.
    #[serde(default)]
    pub(crate) shift_group: BTreeMap<String, ShiftGroup>,
    /// Tables of a run file with other backbones, by name.
    #[serde(default)]
    pub(crate) backbones: BTreeMap<String, Backbone>,
    /// Cells beside those of the blocks: one per combination of the values of an entry; axes without a value are those of the
    /// base.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) include: Vec<BTreeMap<String, OneOrMore>>,
    /// Cells to leave out: those that have all the values of an entry.
    #[serde(default)]
    pub(crate) exclude: Vec<BTreeMap<String, OneOrMore>>,
    /// What the report says about the causes of gaps; nothing without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bias: Option<BiasOfStudy>,
    /// Further settings of every run file, for example `training.epochs = 5`.
    #[serde(default)]
    pub(crate) set: Table,
    /// How trials are run.
    #[serde(default)]
    pub(crate) execute: Execute,
}

fn one() -> u64 {
    1
}

fn ten() -> usize {
    10
}

fn one_fold() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(n: &usize) -> bool {
    *n == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_fairest(rule: &Rule) -> bool {
    *rule == Rule::Fairest
}

fn five_percent() -> f64 {
    TOLERATED_LOSS
}

fn from_scratch() -> BTreeMap<String, Table> {
    BTreeMap::from([("scratch".to_owned(), Table::new())])
}

/// Keys of a run file that an axis of the study sets.
const OF_THE_STUDY: [&str; 10] =
    ["name", "output", "cache", "head", "strategy", "estimator", "shift", "training-seed", "groups.train", "data"];

impl StudyFile {
    /// Reads a study file with settings of the command line; paths become absolute.
    ///
    /// # Errors
    /// [`CliError`] naming file, key and what was expected.
    pub(crate) fn read(path: &Path, sets: &[String]) -> Result<Self, CliError> {
        let mut merged = Merged::default();
        merged.add_file(path)?;
        merged.set_all(sets)?;
        merged.name_after_file_below("studies");
        if merged.has_table("data") {
            let message =
                format!("{} has one table, as a run file, expected [[data]] with run-file = \"FILE\"", path.display());
            let help = "`fairtte train` runs a run file; `fairtte study template` prints a study file to start from";
            return Err(CliError::setting("data", message, Some(help)));
        }
        let has_trials = merged.is_given("trials");
        let has_heads = merged.is_given("heads");
        let mut study: Self = merged.into_config()?;
        study.has_default_heads = !has_heads;
        if !study.seeds.is_empty() {
            let (n, trials) = (study.seeds.len(), study.trials);
            if has_trials && trials != n {
                return Err(CliError::setting(
                    "seeds",
                    format!("{n} seeds for {trials} trials, expected one each"),
                    None,
                ));
            }
            study.trials = n;
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let base = Path::new(".").join(folder).canonicalize();
        let base = base.map_err(|source| CliError::ReadRunFile { path: folder.to_owned(), source })?;
        for data in &mut study.data {
            data.run_file = base.join(&data.run_file);
            if data.name.is_empty() {
                data.name = data.run_file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            }
        }
        let tables =
            study.starts.values_mut().chain(study.backbones.values_mut().map(|backbone| &mut backbone.settings));
        tables.for_each(|table| resolve_weights(table, &base));
        if let Some(template) = &mut study.execute.slurm.template {
            *template = base.join(&*template);
        }
        study.check()?;
        Ok(study)
    }

    /// A study of one run file as it is, with its head, in its folder; whole run folders are kept.
    pub(crate) fn of_run(run: &RunFile, attributes: &[String]) -> Self {
        Self {
            name: run.name.clone(),
            output: run.output.clone(),
            seed: one(),
            trials: 1,
            seeds: vec![1],
            folds: one_fold(),
            repeats: one_fold(),
            rule: Rule::default(),
            tolerated_loss: five_percent(),
            halving: None,
            blocks: Block::defaults(),
            data: vec![StudyData {
                name: run.data.name().to_owned(),
                run_file: PathBuf::new(),
                attributes: attributes.to_vec(),
                split_per_attribute: false,
            }],
            heads: Heads { names: vec![run.written().choice("head")], base_head: None },
            has_default_heads: false,
            starts: from_scratch(),
            base_start: None,
            strategies: Strategies::default(),
            estimators: Estimators::default(),
            search: BTreeMap::new(),
            shifts: BTreeMap::new(),
            shift_group: BTreeMap::new(),
            backbones: BTreeMap::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            bias: None,
            set: Table::new(),
            execute: Execute { keep: Keep::Everything, ..Execute::default() },
        }
    }

    /// Trainings of a trial in a cell: its folds, with every seed.
    pub(crate) fn trainings_per_trial(&self) -> usize {
        self.folds * self.repeats
    }

    /// What is compared with the base: the other strategies, and the estimators.
    pub(crate) fn others(&self) -> impl Iterator<Item = &String> {
        self.strategies.names.iter().chain(&self.estimators.names)
    }

    /// The head of strategies, shifts and backbones.
    pub(crate) fn base_head(&self) -> &str {
        self.heads.base_head.as_deref().or(self.heads.names.first().map(String::as_str)).unwrap_or_default()
    }

    /// The start of strategies, shifts and backbones.
    pub(crate) fn base_start(&self) -> &str {
        self.base_start.as_deref().or(self.starts.keys().next().map(String::as_str)).unwrap_or_default()
    }

    /// Checks what can be checked without the run files.
    ///
    /// # Errors
    /// [`CliError::Config`] naming the key.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        let wrong = |key: &str, message: String| Err(CliError::setting(key, message, None));
        let at_least_one = "expected at least one".to_owned();
        if self.data.is_empty() {
            return wrong("data", at_least_one);
        }
        if self.heads.names.is_empty() {
            return wrong("heads.names", at_least_one);
        }
        if self.starts.is_empty() {
            return wrong("starts", at_least_one);
        }
        if self.trials == 0 {
            return wrong("trials", "0 trials, expected at least 1".to_owned());
        }
        if self.folds == 0 {
            return wrong("folds", "0 folds, expected 1 for the split of the run file, or at least 2".to_owned());
        }
        if self.repeats == 0 {
            return wrong("repeats", "0 repeats, expected at least 1 training seed per trial".to_owned());
        }
        if self.repeats > 1 && !self.seeds.is_empty() {
            return wrong("seeds", "they name one training seed per trial, expected no repeats beside them".to_owned());
        }
        if self.blocks.contains(&Block::Include) {
            return wrong(
                "blocks",
                "\"include\" is the block of the entries of [[include]], which need no name here".to_owned(),
            );
        }
        if !(0.0..=1.0).contains(&self.tolerated_loss) {
            let message = format!("{} is no share, expected a number from 0 to 1", self.tolerated_loss);
            return wrong("tolerated-loss", message);
        }
        if let Some(halving) = &self.halving {
            halving.check()?;
        }
        if let Some(twice) = self.seeds.iter().enumerate().find(|(i, seed)| self.seeds[..*i].contains(seed)) {
            return wrong("seeds", format!("{} is there twice", twice.1));
        }
        let strategies = || std::iter::once(&self.strategies.base).chain(&self.strategies.names);
        if let Some(unused) = self.strategies.settings.keys().find(|name| !strategies().any(|known| known == *name)) {
            let message = "it is neither strategies.base nor one of strategies.names".to_owned();
            return wrong(&format!("strategies.settings.{unused}"), message);
        }
        if let Some(unused) = self.strategies.search.keys().find(|name| !strategies().any(|known| known == *name)) {
            let message = "it is neither strategies.base nor one of strategies.names".to_owned();
            return wrong(&format!("strategies.search.{unused}"), message);
        }
        self.estimators.check(&strategies().map(String::as_str).collect::<Vec<_>>())?;
        for (key, names) in self.lists() {
            if let Some(twice) = repeated(&names) {
                return wrong(key, format!("\"{twice}\" is there twice"));
            }
        }
        if self.strategies.names.contains(&self.strategies.base) {
            return wrong("strategies.names", format!("\"{}\" is the base, expected the others", self.strategies.base));
        }
        if self.base_start.is_none() && self.starts.len() > 1 {
            let starts: Vec<&str> = self.starts.keys().map(String::as_str).collect();
            return wrong("base-start", format!("expected one of {}: there are several starts", starts.join(", ")));
        }
        if !self.starts.contains_key(self.base_start()) {
            return wrong("base-start", format!("\"{}\" is not in [starts]", self.base_start()));
        }
        if !self.heads.names.iter().any(|head| head == self.base_head()) {
            let names = self.heads.names.join(", ");
            return wrong("heads.base-head", format!("\"{}\" is not in heads.names ({names})", self.base_head()));
        }
        self.check_axes()?;
        for (strategy, ranges) in &self.strategies.search {
            ranges.iter().try_for_each(|(key, range)| range.check(&format!("strategies.search.{strategy}"), key))?;
        }
        self.search.iter().try_for_each(|(key, range)| range.check("search", key))
    }

    /// The searched keys of a strategy with their ranges: its own, otherwise those of all.
    pub(crate) fn ranges(&self, strategy: &str) -> BTreeMap<&String, &Range> {
        let own = self.strategies.search.get(strategy);
        self.search.iter().chain(own.into_iter().flatten()).collect()
    }

    /// The keys that are searched for any strategy.
    pub(crate) fn searched(&self) -> BTreeSet<&String> {
        self.search.keys().chain(self.strategies.search.values().flat_map(BTreeMap::keys)).collect()
    }

    fn lists(&self) -> [(&'static str, Vec<&str>); 3] {
        fn words(names: &[String]) -> Vec<&str> {
            names.iter().map(String::as_str).collect()
        }
        let data = self.data.iter().map(|data| data.name.as_str()).collect();
        [("data", data), ("heads.names", words(&self.heads.names)), ("strategies.names", words(&self.strategies.names))]
    }

    /// What each axis may set.
    fn check_axes(&self) -> Result<(), CliError> {
        let wrong = |key: String, message: String| Err(CliError::setting(&key, message, None));
        let keys = self.searched().into_iter().map(|key| ("search", key.as_str()));
        for (table, key) in keys.chain(self.set.keys().map(|key| ("set", key.as_str()))) {
            if OF_THE_STUDY.contains(&key) {
                return wrong(format!("{table}.\"{key}\""), "an axis of the study sets it".to_owned());
            }
        }
        // A key of a table is a dotted one in [search] only.
        if self.set.get("groups").and_then(Value::as_table).is_some_and(|groups| groups.contains_key("train")) {
            return wrong("set.groups.train".to_owned(), "an axis of the study sets it".to_owned());
        }
        for (name, levels) in &self.shifts {
            let keys: Vec<&str> = levels.keys().map(String::as_str).collect();
            if !matches!(keys[..], ["blur" | "time-noise" | "censoring-flip" | "permute" | "undersample"]) {
                let message = format!(
                    "found {keys:?}, expected one of blur, time-noise, censoring-flip, permute, undersample with its levels"
                );
                return wrong(format!("shifts.{name}"), message);
            }
            if levels.values().any(Vec::is_empty) {
                return wrong(format!("shifts.{name}.{}", keys[0]), "expected at least one level".to_owned());
            }
        }
        for (name, backbone) in &self.backbones {
            let known: Vec<&str> = self.data.iter().map(|data| data.name.as_str()).collect();
            if let Some(unknown) = backbone.data.iter().find(|data| !known.contains(&data.as_str())) {
                let message = format!("\"{unknown}\" is no data set of the study ({})", known.join(", "));
                return wrong(format!("backbones.{name}.data"), message);
            }
        }
        let execute = &self.execute;
        if execute.jobs == 0 {
            return wrong("execute.jobs".to_owned(), "0 jobs, expected at least 1".to_owned());
        }
        let (beat, stale) = (execute.heartbeat_seconds, execute.stale_minutes * 60.0);
        if !(beat > 0.0 && stale.is_finite() && stale >= 2.0 * beat) {
            let message = format!("{beat}, expected more than 0 and at most half of stale-minutes, which is {stale} s");
            return wrong("execute.heartbeat-seconds".to_owned(), message);
        }
        execute.slurm.check()
    }
}

fn repeated<'a>(names: &[&'a str]) -> Option<&'a str> {
    let mut seen = BTreeSet::new();
    names.iter().copied().find(|name| !seen.insert(*name))
}

/// Makes the path of pre-trained weights absolute.
fn resolve_weights(table: &mut Table, base: &Path) {
    let path = table.get_mut("pretrained").and_then(Value::as_table_mut).and_then(|table| table.get_mut("path"));
    if let Some(Value::String(path)) = path {
        *path = base.join(&*path).display().to_string();
    }
}
