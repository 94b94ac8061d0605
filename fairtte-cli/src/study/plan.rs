//! The plan of a study: its cells and trials, each resolved to a run file and named by its content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fairtte_data::table::{ColumnValues, write_csv};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::cells::{AXES, Cell, expand};
use super::file::StudyFile;
use super::folder::StudyFolder;
use super::search::{self};
use crate::CliError;
use crate::merged::Merged;
use crate::prepare::label;
use crate::run_file::RunFile;
use crate::run_folder::{essence, read_json, write_json, write_text};

/// Raised when the same settings would train something else, so that trials of earlier versions are not taken for theirs.
const ENGINE: u32 = 1;

/// A data set of the study as its trials see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Base {
    name: String,
    /// The run file with every default written out and absolute paths.
    run: Table,
    /// Attributes of the study.
    attributes: Vec<String>,
    /// Hash over everything that determines the labels.
    content: String,
    /// Hash of the file of the split, if it is given.
    split: Option<String>,
}

/// What a trial is resolved from, `plan.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Record {
    engine: u32,
    fairtte: String,
    study: StudyFile,
    data: Vec<Base>,
    /// SHA-256 of files with weights, by path.
    weights: BTreeMap<PathBuf, String>,
    /// The names of the trials by place in the manifest, once it is written.
    #[serde(default)]
    trials: Vec<String>,
}

/// A study with all its cells.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    record: Record,
    cells: Vec<Cell>,
    folder: StudyFolder,
}

/// A cell and a trial, resolved.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// First 16 hexadecimal digits of the BLAKE3 hash of what determines the training; several cells may have the same.
    pub(crate) id: String,
    /// The run file, whose folder is that of the trial.
    pub(crate) run: RunFile,
    /// Bootstrap replicates of the run file; trials are scored without any.
    pub(crate) replicates: usize,
    /// The searched keys that apply, with their values.
    pub(crate) draws: Vec<(String, Value)>,
}

impl Plan {
    /// Reads the data sets of a study and expands its cells. Reads tables; decodes no image.
    ///
    /// # Errors
    /// [`CliError`] for a wrong run file, unknown attributes and data that cannot be read.
    pub(crate) fn make(study: StudyFile) -> Result<Self, CliError> {
        let folder = StudyFolder::new(&study.output);
        let data = (0..study.data.len()).map(|i| base(&study, i, &folder)).collect::<Result<Vec<_>, _>>()?;
        let weights = weights(&study, &data)?;
        let record = Record {
            engine: ENGINE,
            fairtte: env!("CARGO_PKG_VERSION").to_owned(),
            study,
            data,
            weights,
            trials: Vec::new(),
        };
        Self::of(record, folder)
    }

    /// Reads a plan that [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// [`CliError::RunFolder`] if there is none, or it is of another version.
    pub(crate) fn read(folder: &Path) -> Result<Self, CliError> {
        let folder = StudyFolder::new(folder);
        let path = folder.plan();
        let mut record: Record = read_json(&path)?;
        if record.engine != ENGINE {
            let problem = format!("it was planned by fairtte {}; plan the study again", record.fairtte);
            return Err(CliError::RunFolder { path, problem });
        }
        // The folder may have been moved.
        folder.path().clone_into(&mut record.study.output);
        Self::of(record, folder)
    }

    fn of(record: Record, folder: StudyFolder) -> Result<Self, CliError> {
        let attributes: Vec<Vec<String>> = record.data.iter().map(|data| data.attributes.clone()).collect();
        let cells = expand(&record.study, &attributes)?;
        if cells.is_empty() {
            return Err(CliError::setting("blocks", "the study has no cell".to_owned(), None));
        }
        Ok(Self { record, cells, folder })
    }

    pub(crate) fn study(&self) -> &StudyFile {
        &self.record.study
    }

    pub(crate) fn folder(&self) -> &StudyFolder {
        &self.folder
    }

    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The names of the trials by place in the manifest; empty before it is written.
    pub(crate) fn ids(&self) -> &[String] {
        &self.record.trials
    }

    /// Number of cells times trials.
    pub(crate) fn n(&self) -> usize {
        self.cells.len() * self.study().trials
    }

    /// Whether the manifest has a place.
    ///
    /// # Errors
    /// [`CliError::Config`] if it has not.
    pub(crate) fn check_place(&self, index: usize) -> Result<(), CliError> {
        if index < self.n() {
            return Ok(());
        }
        let message = format!("{index} is not in the manifest, which has the places 0 to {}", self.n() - 1);
        Err(CliError::setting("INDEX", message, None))
    }

    /// The cell and the trial, both counted from 0, of a place in the manifest: the first trial of every cell comes first, so
    /// that an unfinished study has whole trials.
    pub(crate) fn place(&self, index: usize) -> (usize, usize) {
        (index % self.cells.len(), index / self.cells.len())
    }

    /// The run files of the data sets as they are without the axes of the study, for preparation.
    pub(crate) fn data(&self) -> Result<Vec<RunFile>, CliError> {
        let run = |data: &Base| {
            let mut run = RunFile::from_table(data.run.clone(), &data.name)?;
            self.settle(&mut run, &data.name);
            Ok(run)
        };
        self.record.data.iter().map(run).collect()
    }

    /// Resolves a place of the manifest.
    ///
    /// # Errors
    /// [`CliError`] naming the key that the run file of this cell cannot have.
    pub(crate) fn resolve(&self, index: usize) -> Result<Planned, CliError> {
        let (cell, trial) = self.place(index);
        let cell = &self.cells[cell];
        let data = &self.record.data[cell.data];
        let mut merged = Merged::default();
        merged.add_table(data.run.clone(), &data.name);
        for (table, origin) in self.tables(cell) {
            merged.add_table(table, origin);
        }
        let study = self.study();
        let mut draws = Vec::new();
        for (key, range) in &study.search {
            if merged.has_in_use(key) {
                let value = range.draw(study.seed, key, trial);
                merged.add_table(nested(key, value.clone()), "[search]");
                draws.push((key.clone(), value));
            }
        }
        let seed = i64::from(search::training_seed(study.seed, trial));
        merged.add_table(nested("training-seed", Value::Integer(seed)), "the study");
        let mut run = RunFile::from_merged(merged)?;
        if !run.serves_all_attributes() {
            run.groups.train = vec![cell.attribute.clone()];
        }
        if let Some(config) = &mut run.pretrained
            && let Some(hash) = self.record.weights.get(&config.path)
        {
            config.sha256 = Some(hash.clone());
        }
        let id = id(&run, data)?;
        let replicates = run.evaluation.replicates;
        let title = format!("{}: {}", study.name, self.title(cell, trial));
        self.settle(&mut run, &title);
        self.folder.trial(&id).path().clone_into(&mut run.output);
        Ok(Planned { id, run, replicates, draws })
    }

    /// The title of a trial: its axes.
    fn title(&self, cell: &Cell, trial: usize) -> String {
        let words = AXES[1..].iter().filter_map(|axis| cell.word(axis, self.study())).filter(|word| !word.is_empty());
        format!("{}, trial {}", words.collect::<Vec<_>>().join(", "), trial + 1)
    }

    /// What is the same for all trials, and changes nothing of what is trained.
    fn settle(&self, run: &mut RunFile, title: &str) {
        title.clone_into(&mut run.name);
        run.output = self.folder.path().join("data");
        run.cache = Some(self.folder.cache());
        run.evaluation.replicates = 0;
    }

    /// The tables that the axes of a cell add to the run file.
    fn tables(&self, cell: &Cell) -> Vec<(Table, &'static str)> {
        let study = self.study();
        let chosen = |table: &str, name: &str| {
            let of = Table::from_iter([(name.to_owned(), Value::Table(Table::new()))]);
            Table::from_iter([(table.to_owned(), Value::Table(of))])
        };
        let mut tables = vec![
            (study.set.clone(), "[set]"),
            (chosen("head", &cell.head), "[heads]"),
            (chosen("strategy", &cell.strategy), "[strategies]"),
            (study.starts.get(&cell.start).cloned().unwrap_or_default(), "[starts]"),
        ];
        if let Some(backbone) = cell.backbone.as_ref().and_then(|name| study.backbones.get(name)) {
            tables.push((backbone.settings.clone(), "[backbones]"));
        }
        if let Some(shift) = &cell.shift
            && let Some(group) = study.shift_group.get(&cell.attribute)
            && let Ok(group) = Value::try_from(group)
        {
            let attribute = ("attribute".to_owned(), Value::String(cell.attribute.clone()));
            let table = [attribute, ("group".to_owned(), group), (shift.key.clone(), shift.level.clone())];
            tables.push((nested("shift", Value::Table(Table::from_iter(table))), "[shifts]"));
        }
        if study.data[cell.data].split_per_attribute {
            let by = ["event".to_owned(), cell.attribute.clone()].map(Value::String).to_vec();
            tables.push((nested("split.stratify", Value::Array(by)), "split-per-attribute"));
        }
        tables
    }

    /// Writes `plan.json`, `study.toml` and `manifest.csv`, whose rows are `planned`.
    ///
    /// # Errors
    /// [`CliError::Data`] if a file cannot be written.
    pub(crate) fn write(&mut self, planned: &[Planned]) -> Result<(), CliError> {
        self.record.trials = planned.iter().map(|planned| planned.id.clone()).collect();
        let failed = |error: std::io::Error| CliError::RunFolder {
            path: self.folder.path().to_owned(),
            problem: error.to_string(),
        };
        std::fs::create_dir_all(self.folder.path()).map_err(failed)?;
        let text = toml::to_string(self.study()).map_err(|error| CliError::Bug(error.to_string()))?;
        write_text(&self.folder.study(), &text)?;
        write_csv(&self.folder.manifest(), self.manifest(planned))?;
        write_json(&self.folder.plan(), &self.record)
    }

    fn manifest(&self, planned: &[Planned]) -> Vec<(String, ColumnValues<'static>)> {
        let text = |of: &dyn Fn(usize) -> String| ColumnValues::Text((0..planned.len()).map(|i| Some(of(i))).collect());
        #[expect(clippy::cast_possible_wrap, reason = "a study has far fewer rows")]
        let whole =
            |of: &dyn Fn(usize) -> usize| ColumnValues::Integer((0..planned.len()).map(|i| of(i) as i64).collect());
        let cell = |i: usize| &self.cells[self.place(i).0];
        let mut columns = vec![
            ("index".to_owned(), whole(&|i| i)),
            ("id".to_owned(), text(&|i| planned[i].id.clone())),
            ("trial".to_owned(), whole(&|i| self.place(i).1 + 1)),
        ];
        for axis in AXES {
            columns.push((axis.to_owned(), text(&|i| cell(i).word(axis, self.study()).unwrap_or_default())));
        }
        for key in self.study().search.keys() {
            let drawn =
                |i: usize| planned[i].draws.iter().find(|(name, _)| name == key).map(|(_, value)| value.to_string());
            columns.push((key.clone(), ColumnValues::Text((0..planned.len()).map(drawn).collect())));
        }
        columns
    }
}

/// `a.b = value` as a table.
fn nested(key: &str, value: Value) -> Table {
    let (first, value) = match key.split_once('.') {
        Some((first, rest)) => (first, Value::Table(nested(rest, value))),
        None => (key, value),
    };
    Table::from_iter([(first.to_owned(), value)])
}

fn base(study: &StudyFile, data: usize, folder: &StudyFolder) -> Result<Base, CliError> {
    let of = &study.data[data];
    let mut run = RunFile::read(std::slice::from_ref(&of.run_file), &[])?;
    let path = of.run_file.display();
    if !run.groups.train.is_empty() {
        let message = format!("{path} sets it, but the study sets the attributes that strategies work on");
        return Err(CliError::setting("groups.train", message, Some("write attributes in [[data]] instead")));
    }
    let known: Vec<&str> = run.attribute.iter().map(|attribute| attribute.name.as_str()).collect();
    if known.is_empty() {
        return Err(CliError::setting(
            "attribute",
            format!("{path} has no [[attribute]], so there are no groups"),
            None,
        ));
    }
    let key = format!("data.{data}.attributes");
    if let Some(unknown) = of.attributes.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(CliError::unknown_attribute(&key, unknown, &known));
    }
    let attributes =
        if of.attributes.is_empty() { known.into_iter().map(str::to_owned).collect() } else { of.attributes.clone() };
    run.cache = Some(folder.cache());
    run.shift = None;
    let (cohort, exclusions) = label(&run)?;
    cohort.require_samples("after labelling", &exclusions)?;
    let content = cohort.provenance.as_ref().map(|provenance| provenance.content_hash.clone());
    let content = content.ok_or_else(|| CliError::Bug(format!("the cohort of {path} has no content hash")))?;
    let split = run.split.file.as_ref().map(|file| file_hash(file)).transpose()?;
    let table = run.to_toml()?.parse().map_err(|error: toml::de::Error| CliError::Bug(error.to_string()))?;
    Ok(Base { name: of.name.clone(), run: table, attributes, content, split })
}

/// The hashes of all files with weights.
fn weights(study: &StudyFile, data: &[Base]) -> Result<BTreeMap<PathBuf, String>, CliError> {
    let tables = study.starts.values().chain(study.backbones.values().map(|backbone| &backbone.settings));
    let path = |table: &Table| Some(PathBuf::from(table.get("pretrained")?.as_table()?.get("path")?.as_str()?));
    let mut found = BTreeMap::new();
    for path in tables.chain(data.iter().map(|data| &data.run)).filter_map(path) {
        if let std::collections::btree_map::Entry::Vacant(new) = found.entry(path) {
            let bytes =
                std::fs::read(new.key()).map_err(|source| CliError::ReadRunFile { path: new.key().clone(), source })?;
            new.insert(fairtte_models::weights::sha256(&bytes));
        }
    }
    Ok(found)
}

fn file_hash(path: &Path) -> Result<String, CliError> {
    let bytes = std::fs::read(path).map_err(|source| CliError::ReadRunFile { path: path.to_owned(), source })?;
    Ok(blake3::hash(&bytes).to_hex().to_string())
}

/// The name of a training: what determines it, without paths and machines.
fn id(run: &RunFile, data: &Base) -> Result<String, CliError> {
    let mut settings = essence(run)?;
    // What the data are is in the content; where they are changes nothing.
    settings.remove("data");
    if let Some(Value::Table(split)) = settings.get_mut("split") {
        split.remove("file");
    }
    let what = (ENGINE, run.data.name(), &data.content, &data.split, settings);
    let text = serde_json::to_string(&what).map_err(|error| CliError::Bug(error.to_string()))?;
    Ok(blake3::hash(text.as_bytes()).to_hex().to_string()[..16].to_owned())
}
