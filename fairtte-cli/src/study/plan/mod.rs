//! The plan of a study: its cells and trials, each resolved to a run file and named by its content.

mod base;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fairtte_data::table::{ColumnValues, write_csv};
use serde::{Deserialize, Serialize};
use toml::Value;

use self::base::{Base, base, id, weights};
use self::tables::{fold_table, nested};
use super::cells::{AXES, Cell, check_size, expand};
use super::file::{Keep, StudyData, StudyFile};
use super::folder::StudyFolder;
use super::measures::Measures;
use super::search::{self};
use crate::CliError;
use crate::merged::Merged;
use crate::run_file::RunFile;
use crate::run_folder::{read_json, write_json, write_text};

/// Raised when the same settings would train something else, so that trials of earlier versions are not treated as theirs.
const ENGINE: u32 = 1;

/// Folder of the trainings of a comparison that serve all attributes.
const ALL_ATTRIBUTES: &str = "all-attributes";

/// What a trial is resolved from, `plan.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Record {
    engine: u32,
    fairtte: String,
    study: StudyFile,
    data: Vec<Base>,
    /// What is predicted.
    #[serde(default)]
    measures: Measures,
    /// How the folders of trials are named.
    #[serde(default)]
    folders: Folders,
    /// SHA-256 of files with weights, by path.
    weights: BTreeMap<PathBuf, String>,
    /// The names of the trials by place in the manifest, once it is written.
    #[serde(default)]
    trials: Vec<String>,
}

/// How the folders of trials are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Folders {
    /// By their content, which determines the training: `trials/ab/ab12..`.
    #[default]
    Content,
    /// By attribute, strategy and seed, for a person who opens them: `sex/group-dro-seed1`. Only for a study whose cells differ
    /// in nothing else.
    Words,
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
    /// First 16 hexadecimal digits of the BLAKE3 hash of what determines the training, or in a comparison the attribute, the
    /// strategy and the seed. Several cells may have the same.
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
        let cache = StudyFolder::new(&study.output).cache();
        let read = |of: &StudyData| {
            let mut run = RunFile::read(std::slice::from_ref(&of.run_file), &[])?;
            run.require_no_masks("a study")?;
            run.cache = Some(cache.clone());
            Ok(run)
        };
        let runs = study.data.iter().map(read).collect::<Result<Vec<_>, CliError>>()?;
        let mut study = study;
        if study.has_default_heads && measures_of(&study, &runs)? == Measures::Class {
            study.heads.names = vec!["binary".to_owned()];
        }
        study.has_default_heads = false;
        Self::from_runs(study, runs, Folders::Content)
    }

    /// The plan of a comparison: one run file, one head and start, and trials in folders that are named by attribute, strategy
    /// and seed.
    ///
    /// # Errors
    /// As [`make`](Self::make).
    pub(crate) fn of_comparison(study: StudyFile, run: RunFile) -> Result<Self, CliError> {
        let cache = Some(run.cache());
        Self::from_runs(study, vec![RunFile { cache, ..run }], Folders::Words)
    }

    fn from_runs(study: StudyFile, runs: Vec<RunFile>, folders: Folders) -> Result<Self, CliError> {
        let folder = StudyFolder::new(&study.output);
        let measures = measures_of(&study, &runs)?;
        let data = runs
            .into_iter()
            .enumerate()
            .map(|(i, run)| base(&study, i, run, folders))
            .collect::<Result<Vec<_>, _>>()?;
        let weights = weights(&study, &data)?;
        let record = Record {
            engine: ENGINE,
            fairtte: env!("CARGO_PKG_VERSION").to_owned(),
            study,
            data,
            measures,
            folders,
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
        check_size(&record.study, cells.len())?;
        Ok(Self { record, cells, folder })
    }

    pub(crate) fn study(&self) -> &StudyFile {
        &self.record.study
    }

    /// What is predicted, and the metrics by which models are compared.
    pub(crate) fn measures(&self) -> Measures {
        self.record.measures
    }

    pub(crate) fn folder(&self) -> &StudyFolder {
        &self.folder
    }

    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Whether a cell fits an estimator in place of a network.
    pub(crate) fn is_of_estimator(&self, cell: usize) -> bool {
        self.study().estimators.contains(&self.cells[cell].strategy)
    }

    /// The names of the trials by place in the manifest; empty before it is written.
    pub(crate) fn ids(&self) -> &[String] {
        &self.record.trials
    }

    /// Every training of the written manifest once, at its first place: several places may have the same.
    pub(crate) fn trainings(&self) -> impl Iterator<Item = (usize, &String)> {
        let mut seen = BTreeSet::new();
        self.ids().iter().enumerate().filter(move |(_, id)| seen.insert(*id))
    }

    /// Number of cells times trials times folds times repeats.
    pub(crate) fn n(&self) -> usize {
        self.cells.len() * self.study().trials * self.study().trainings_per_trial()
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
        (index % self.cells.len(), index / self.cells.len() / self.study().trainings_per_trial())
    }

    /// The fold of a place in the manifest, counted from 0.
    pub(crate) fn fold(&self, index: usize) -> usize {
        index / self.cells.len() % self.study().folds
    }

    /// Which of the training seeds of its trial a place has, counted from 0.
    pub(crate) fn repeat(&self, index: usize) -> usize {
        index / self.cells.len() % self.study().trainings_per_trial() / self.study().folds
    }

    /// Whether a place is the first of its trial: that of the first fold with the first seed.
    pub(crate) fn is_first(&self, index: usize) -> bool {
        self.fold(index) == 0 && self.repeat(index) == 0
    }

    /// The places of all folds of the trial at `place`, with every seed: the folds of the first seed come first.
    pub(crate) fn folds_of(&self, place: usize) -> impl Iterator<Item = usize> + use<> {
        let (cell, trial) = self.place(place);
        self.places_of(cell, trial)
    }

    /// The places of all folds of a trial of a cell, both counted from 0, with every seed.
    pub(crate) fn places_of(&self, cell: usize, trial: usize) -> impl Iterator<Item = usize> + use<> {
        let (cells, n) = (self.cells.len(), self.study().trainings_per_trial());
        (0..n).map(move |training| (trial * n + training) * cells + cell)
    }

    /// The axes of a cell, for people.
    pub(crate) fn words_of_cell(&self, cell: usize) -> String {
        self.axes_in_words(&self.cells[cell], &AXES)
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
        if study.estimators.contains(&cell.strategy) {
            merged = merged.without_networks();
            let settings = study.estimators.settings.get(&cell.strategy).cloned().unwrap_or_default();
            merged.add_table(nested(&format!("estimator.{}", cell.strategy), Value::Table(settings)), "[estimators]");
        }
        if study.folds > 1 {
            merged.add_table(fold_table(study.folds, self.fold(index), [&data.run, &study.set]), "folds");
        }
        let mut draws = Vec::new();
        for (key, range) in study.ranges(&cell.strategy) {
            if merged.has_in_use(key) {
                let value = range.draw(study.seed, key, trial);
                merged.add_table(nested(key, value.clone()), "[search]");
                draws.push((key.clone(), value));
            }
        }
        let of_study = || u64::from(search::training_seed(study.seed, trial, self.repeat(index)));
        let seed = study.seeds.get(trial).copied().unwrap_or_else(of_study);
        let value = Value::Integer(i64::try_from(seed).unwrap_or(i64::MAX));
        merged.add_table(nested("training-seed", value), "the study");
        let mut run = RunFile::from_merged(merged)?;
        // One training for the only attribute of a comparison keeps no epochs for others.
        let is_only = self.record.folders == Folders::Words && data.attributes.len() == 1;
        let serves_all = run.serves_all_attributes() && !is_only;
        if !serves_all && run.estimator.is_none() {
            run.groups.train = vec![cell.attribute.clone()];
        }
        if let Some(config) = &mut run.pretrained
            && let Some(hash) = self.record.weights.get(&config.path)
        {
            config.sha256 = Some(hash.clone());
        }
        let id = match self.record.folders {
            Folders::Content => id(&run, data)?,
            Folders::Words => self.words(cell, seed, index, serves_all),
        };
        let replicates = run.evaluation.replicates;
        let title = format!("{}: {}", study.name, self.title(cell, index));
        self.settle(&mut run, &title);
        self.folder.trial(&id).path().clone_into(&mut run.output);
        Ok(Planned { id, run, replicates, draws })
    }

    /// What is the same for all trials, and changes nothing of what is trained.
    fn settle(&self, run: &mut RunFile, title: &str) {
        title.clone_into(&mut run.name);
        run.output = self.folder.path().join("data");
        match self.record.folders {
            Folders::Content => run.cache = Some(self.folder.cache()),
            // The cache of a run file serves a comparison as it serves a training.
            Folders::Words => run.cache = Some(run.cache()),
        }
        if self.study().execute.keep != Keep::Everything {
            run.evaluation.replicates = 0;
        }
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
        if self.study().folds > 1 {
            columns.push(("fold".to_owned(), whole(&|i| self.fold(i) + 1)));
        }
        if self.study().repeats > 1 {
            columns.push(("repeat".to_owned(), whole(&|i| self.repeat(i) + 1)));
        }
        for axis in AXES {
            columns.push((axis.to_owned(), text(&|i| cell(i).word(axis, self.study()).unwrap_or_default())));
        }
        for key in self.study().searched() {
            let drawn =
                |i: usize| planned[i].draws.iter().find(|(name, _)| name == key).map(|(_, value)| value.to_string());
            columns.push((key.clone(), ColumnValues::Text((0..planned.len()).map(drawn).collect())));
        }
        columns
    }
}

/// What all data sets of a study predict.
///
/// # Errors
/// [`CliError::Config`] if they predict classes and times, or the study asks for what classes do not have.
fn measures_of(study: &StudyFile, runs: &[RunFile]) -> Result<Measures, CliError> {
    let of = |run: &RunFile| Measures::of_class(run.is_of_class());
    let first = runs.first().map(of).unwrap_or_default();
    if let Some(place) = runs.iter().position(|run| of(run) != first) {
        let (one, other) = (&study.data[0].name, &study.data[place].name);
        let message = format!("{one} and {other} are of two tasks, expected one: their metrics differ");
        return Err(CliError::setting("data", message, Some("a study of each")));
    }
    if first == Measures::Class {
        let of_curves = [
            ("bias", study.bias.is_some()),
            ("shifts", !study.shifts.is_empty()),
            ("estimators", !study.estimators.is_empty()),
        ];
        if let Some((key, _)) = of_curves.into_iter().find(|(_, is_given)| *is_given) {
            return Err(CliError::setting(key, "it is of survival curves, expected no class".to_owned(), None));
        }
    }
    Ok(first)
}
