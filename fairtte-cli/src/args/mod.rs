//! Arguments of every command.

#[cfg(feature = "train")]
mod bench;
mod bias;
mod card;
mod classes;
mod experiment;
#[cfg(feature = "train")]
mod explain;
mod exports;
mod external;
mod features;
mod masks;
mod models;
mod own_table;
#[cfg(feature = "train")]
mod predict;
mod scores;
mod select;
mod sensitivity;
#[cfg(feature = "train")]
mod study;
mod test;
#[cfg(feature = "train")]
mod weights;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use fairtte_data::AttributeConfig;
use serde::Serialize;

use crate::exit;

#[cfg(feature = "train")]
pub use bench::Bench;
#[cfg(feature = "train")]
pub use explain::{Explain, ExplainBy, ExplainPart, Fill};
#[cfg(feature = "train")]
pub use features::Features;
#[cfg(feature = "train")]
pub use predict::{Other, Predict};
#[cfg(feature = "train")]
pub use study::{
    StudyClean, StudyCommand, StudyCommands, StudyFileArguments, StudyFolderArgument, StudyPlan, StudyReport,
    StudyRestore, StudyRun, StudySubmit, StudyTemplate, StudyTrial, TemplateKind,
};
#[cfg(feature = "train")]
pub use weights::{WeightsCommand, WeightsExport, WeightsImport, WeightsInspect};

#[cfg(feature = "train")]
pub(crate) use bias::BIAS_COMPONENTS;
pub use bias::{Bias, CohortColumns};
pub use card::Card;
pub use classes::{Classes, Task};
pub use experiment::{BiasingExperiment, ExperimentCommand, ForestPreset, PowerExperiment};
pub use exports::Exports;
pub use external::{CensoringOf, External};
pub use features::{FeatureLayer, FeaturePart};
pub use masks::{EvaluateMasks, HausdorffName, MaskMetricName, OwnMasks};
pub use models::Models;
pub use own_table::OwnTable;
pub(crate) use own_table::join_thresholds;
pub use scores::Scores;
pub use select::{LossOf, Rule, Select};
pub use sensitivity::Sensitivity;
pub use test::{Alternatives, Families, Test, TestColumns};

/// Trains time-to-event models on medical images and measures how fairly they predict.
#[derive(Debug, Parser)]
#[command(name = "fairtte", version, after_help = exit::HELP, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[cfg(feature = "train")]
    /// Simulate a cohort, train on it and report how fairly the model predicts, all in one command
    Demo(Demo),
    /// Write a simulated cohort of films or volumes with a known cause of every bias
    Simulate(Simulate),
    /// Read a data set, decode its images once and show every exclusion
    Prepare(Prepare),
    /// Compare a cohort with what was published about it
    #[command(subcommand)]
    Cohort(CohortCommand),
    /// Show what an image or volume contains, or why it is refused
    #[command(after_help = INSPECT_EXAMPLES)]
    Inspect(Inspect),
    #[cfg(feature = "train")]
    /// Train a model and evaluate it; the same command resumes a run that was interrupted
    Train(Train),
    #[cfg(feature = "train")]
    /// Predict samples that a run was not trained on: another hospital, new images, folds of a cross-validation
    Predict(Box<Predict>),
    #[cfg(feature = "train")]
    /// Write the features of a network for every sample
    Features(Box<Features>),
    #[cfg(feature = "train")]
    /// Map which parts of an image, or columns of a table, the predicted risk of single samples depends on
    Explain(Box<Explain>),
    /// Score predictions from saved files: no model, no GPU
    Evaluate(Box<Evaluate>),
    /// Score predicted masks of images from their files, by group: overlap, distances, cup-to-disc ratio
    EvaluateMasks(Box<EvaluateMasks>),
    /// Measure how the data of groups differ, before any model: features, times, censoring and their dependence
    Bias(Box<Bias>),
    /// Find out what a metric or an evaluation would have noticed: bias of known size, planted in a table or in predictions
    #[command(subcommand)]
    Experiment(ExperimentCommand),
    /// Write the model card of a finished run: data, training, results by group, and what its owner says
    Card(Card),
    #[cfg(feature = "train")]
    /// Train several strategies on the same data, split and network, and choose among them
    Compare(Compare),
    #[cfg(feature = "train")]
    /// Train a whole study: data sets, attributes, heads, starts, strategies, shifts and draws of hyper-parameters
    #[command(subcommand)]
    Study(StudyCommand),
    /// Choose among finished runs by their validation part, and show the test results of the chosen ones
    Select(Select),
    /// Test whether methods differ over settings, from any table of values: ranks, Friedman, Nemenyi, signed-rank tests
    Test(Box<Test>),
    /// List what a run file can name
    List(List),
    #[cfg(feature = "train")]
    /// Measure how fast this machine trains and applies the networks, and how long a data set takes
    Bench(Bench),
    #[cfg(feature = "train")]
    /// Inspect weights that other programs saved, and convert them for use in run files
    #[command(subcommand)]
    Weights(WeightsCommand),
    #[cfg(feature = "schema")]
    /// Print a JSON Schema of the run file, with which editors complete and check its keys
    #[command(after_help = SCHEMA_EXAMPLE)]
    Schema(Schema),
    /// Print a script that completes commands and options in a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(Completions),
    /// Write a manual page of the program and of every command into a folder
    #[command(after_help = "man ./man/fairtte-train.1 shows one; a folder man1 on MANPATH serves all.")]
    ManPages(ManPages),
}

const COMPLETIONS_EXAMPLES: &str = "\
bash: fairtte completions bash > ~/.local/share/bash-completion/completions/fairtte
zsh:  fairtte completions zsh > a folder of $fpath, as _fairtte
fish: fairtte completions fish > ~/.config/fish/completions/fairtte.fish";

#[cfg(feature = "schema")]
const SCHEMA_EXAMPLE: &str = "\
fairtte schema --output run-file.json, and this as the first line of a run file beside it, for editors with taplo:
  #:schema ./run-file.json";

/// Arguments of `schema`.
#[cfg(feature = "schema")]
#[derive(Args, Debug)]
pub struct Schema {
    /// File to write, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub struct Completions {
    /// Shell that the script is for
    pub shell: clap_complete::Shell,
}

/// Arguments of `man-pages`.
#[derive(Args, Debug)]
pub struct ManPages {
    /// Folder to write; pages in it are replaced
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Arguments of `demo`.
#[derive(Args, Debug)]
pub struct Demo {
    /// Folder for the simulated cohort and the run
    #[arg(long, value_name = "DIR", default_value = "fairtte-demo")]
    pub output: PathBuf,
    /// Smallest setting: a few seconds, not a good model
    #[arg(long)]
    pub quick: bool,
    /// Settings shared with the other commands
    #[command(flatten)]
    pub common: Common,
}

/// What `simulate` makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SimulationKind {
    /// Films or volumes with known causes of every bias
    #[default]
    Images,
    /// A table of treated and untreated people whose hazards and survival curves are known
    Hazards,
    /// Pictures of optic discs with their masks, of which one group has cups of lower contrast
    Discs,
}

/// Arguments of `simulate`.
#[derive(Args, Debug)]
pub struct Simulate {
    /// Folder to write, absent or empty
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
    /// What is simulated
    #[arg(long, value_enum, default_value_t)]
    pub kind: SimulationKind,
    /// With --kind hazards: a table whose rows are the covariates, in place of normal ones
    #[arg(long, value_name = "TABLE", requires = "columns")]
    pub rows: Option<PathBuf>,
    /// Columns of --rows, comma-separated: the first one is x0 of the hazards
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "rows")]
    pub columns: Vec<String>,
    /// TOML file with the settings of the simulation
    #[arg(short, long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
    /// Change a setting, for example `--set n-subjects=2000` or `--set bias.mi-time=1`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of the simulation
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Threads; 0 = one per core
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Show what would be written and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `prepare`.
#[derive(Args, Debug)]
pub struct Prepare {
    /// Arguments shared with `train`
    #[command(flatten)]
    pub run: Run,
    /// Build the cohort and the exclusion table from the tables alone: no image is opened, nothing is split
    #[arg(long)]
    pub tables_only: bool,
    /// Write the cohort as `cohort.csv` too
    #[arg(long)]
    pub csv: bool,
    /// Read the decoded images again and compare every checksum
    #[arg(long, conflicts_with = "tables_only")]
    pub verify: bool,
    /// Samples of every group and part whose pictures `samples.html` shows as they enter the model; 0 = no page (2 if not
    /// given)
    #[arg(long, value_name = "N", conflicts_with = "tables_only")]
    pub samples: Option<usize>,
}

/// The commands of `cohort`.
#[derive(Debug, Subcommand)]
pub enum CohortCommand {
    /// Compare counts, censoring rate, mean time and group sizes with Table A1 of the paper
    Check(CohortCheck),
}

/// Arguments of `cohort check`.
#[derive(Args, Debug)]
pub struct CohortCheck {
    /// A run folder with a prepared cohort; without it the tables of `--config` are read
    #[arg(value_name = "RUN", required_unless_present = "config", conflicts_with = "config")]
    pub run: Option<PathBuf>,
    /// Run file; may be given more than once, a later one wins
    #[arg(short, long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
    /// Change a setting, for example `--set data.areds.stereo=one`; wins over all files
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "config", conflicts_with = "run")]
    pub set: Vec<String>,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `inspect`.
#[derive(Args, Debug)]
pub struct Inspect {
    /// JPEG, PNG, TIFF, DICOM or NIfTI files, or folders of DICOM slices
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Show the value at this place (column,row of a picture; x,y,z or x,y,z,t of a volume; from 0); may be repeated
    #[arg(long, value_name = "X,Y[,Z[,T]]", value_parser = index)]
    pub at: Vec<Vec<usize>>,
    /// Refuse pictures of more pixels than this
    #[arg(long, value_name = "N")]
    pub max_pixels: Option<u64>,
    /// Refuse images that take more memory than this many bytes
    #[arg(long, value_name = "N")]
    pub max_bytes: Option<u64>,
    /// Results as JSON on standard output, one list with one entry per file
    #[arg(long)]
    pub json: bool,
}

/// One value of `--at`.
fn index(text: &str) -> Result<Vec<usize>, String> {
    let parse = |part: &str| part.trim().parse::<usize>().map_err(|_| format!("\"{part}\" is not a whole number >= 0"));
    let index = text.split(',').map(parse).collect::<Result<Vec<_>, _>>()?;
    if (2..=4).contains(&index.len()) { Ok(index) } else { Err("expected 2 to 4 numbers, as in 10,20,5".to_owned()) }
}

const INSPECT_EXAMPLES: &str = "\
Examples:
  what a reader sees, and two voxels
    fairtte inspect scan.nii.gz --at 90,108,90 --at 0,0,0
  which files of a folder are refused, and why (exit code 4 if any is)
    fairtte inspect films/*.png --json";

/// Arguments of `train`.
#[derive(Args, Debug)]
pub struct Train {
    /// Run file; may be given more than once, a later one wins
    #[arg(short, long, value_name = "FILE", required_unless_present = "resume_from")]
    pub config: Vec<PathBuf>,
    /// Resume the run in this folder with its settings, also a finished run for more epochs or patience. With another
    /// --output its state is copied there. Changes of settings that affect the completed training are refused
    #[arg(long, value_name = "RUN")]
    pub resume_from: Option<PathBuf>,
    /// Run folder, instead of `output` in the run file
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Settings shared with the other commands
    #[command(flatten)]
    pub common: Common,
}

/// A run file and the arguments that take precedence over it.
#[derive(Args, Debug)]
pub struct Run {
    /// Run file; may be given more than once, a later one wins
    #[arg(short, long, value_name = "FILE", required = true)]
    pub config: Vec<PathBuf>,
    /// Run folder, instead of `output` in the run file
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Settings shared with the other commands
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `compare`.
#[derive(Args, Debug)]
pub struct Compare {
    /// The run file with its settings.
    #[command(flatten)]
    pub run: Run,
    /// Trainings at a time, each with its share of the threads
    #[arg(long, value_name = "N", default_value = "1")]
    pub jobs: std::num::NonZeroUsize,
    /// What of the page `choice.html` is written as files too
    #[command(flatten)]
    pub exports: Exports,
}

/// Arguments of every command that runs a run file.
#[derive(Args, Debug)]
pub struct Common {
    /// Change a setting, for example `--set optimiser.learning-rate=3e-4`; wins over all files
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Where to compute (`fairtte list devices`), instead of `device` in the run file
    #[arg(long, env = "FAIRTTE_DEVICE")]
    pub device: Option<String>,
    /// Threads; 0 = one per core
    #[arg(long)]
    pub threads: Option<usize>,
    /// Print the resolved run file, show what would be done, and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `evaluate`. Clap drops the `requires` of an option whose required option conflicts with a given one, so
/// that an option that needs `--predictions` also conflicts with RUN.
#[derive(Args, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(after_help = EVALUATE_EXAMPLES)]
pub struct Evaluate {
    /// Folder of a finished run, or one that `fairtte predict` wrote for other data
    #[arg(value_name = "RUN", required_unless_present = "predictions", conflicts_with = "predictions")]
    pub run: Option<PathBuf>,
    /// Survival curves of any model (Parquet or CSV): `sample`, then one column per time, named by it. Without --cohort
    /// also `time`, `event` (1 or 0), the --attributes, and `subject` if a person has more than one sample. Given more than
    /// once, the models are compared on the samples that all files have. With --task binary probabilities of a class
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "models::one_or_more")]
    pub predictions: Vec<PathBuf>,
    /// Attributes to compare by, columns of the predictions: `sex` (every value is a group), `age:60` or `age:median` (a
    /// number cut in two), `age:40,60,75` (in several), `race=White` (one value against all others)
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = own_table::attribute, requires = "predictions")]
    #[arg(conflicts_with_all = ["cohort", "run"])]
    pub attributes: Vec<AttributeConfig>,
    /// Compare by every pair of attributes too
    #[arg(long, requires = "predictions", conflicts_with = "run")]
    pub intersections: bool,
    /// Outcomes of the training sample (`time`, `event`) to fit the censoring curve on, recommended; without it the curve
    /// is fitted on the evaluated sample
    #[arg(long, value_name = "FILE", requires = "predictions", conflicts_with_all = ["cohort", "run"])]
    pub train: Option<PathBuf>,
    /// Cause that the predictions are about, where `event` holds causes (0 = censored, 1, 2, ..): they are its cumulative
    /// incidence, the probability of an event of this cause by each time, which rises
    #[arg(long, value_name = "CAUSE", value_parser = clap::value_parser!(u32).range(1..), requires = "predictions")]
    #[arg(conflicts_with_all = ["run", "repair", "event_value", "baseline", "threshold"])]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<u32>,
    /// How to repair curves that rise, which are otherwise an error; changes are counted and reported
    #[arg(long, value_enum, requires = "predictions", conflicts_with = "run")]
    pub repair: Option<Repair>,
    /// Separate file of the samples: `sample_id`, `subject_id`, time, event and `<attribute>_group` columns
    #[arg(long, value_name = "FILE", requires = "predictions", conflicts_with = "run")]
    pub cohort: Option<PathBuf>,
    /// Parts of the subjects (`subject_id,part`); without it all samples are evaluated
    #[arg(long, value_name = "FILE", requires = "cohort", conflicts_with = "run")]
    pub split: Option<PathBuf>,
    /// Part to evaluate: test if not given; the files of validation are named `evaluation-validation.json` and so on
    #[arg(long, value_enum)]
    pub part: Option<EvaluatedPart>,
    /// Folder for `evaluation.json` and `report.html` (the run folder if not given), or a name ending in .html: then
    /// the page is that file, and the numbers are next to it in a file of the same name ending in .json
    #[arg(short, long, value_name = "PATH", required_unless_present = "run")]
    pub output: Option<PathBuf>,
    /// Change a setting, for example `--set replicates=200`, `--set level=0.9`, `--set reading=step`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Threads; 0 = one per core
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Show what would be evaluated and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Probabilities of a class
    #[command(flatten)]
    #[serde(skip_serializing_if = "Classes::is_default")]
    pub classes: Classes,
    /// What is computed
    #[command(flatten)]
    pub scores: Scores,
    /// What the columns and values of the table mean
    #[command(flatten)]
    pub own: OwnTable,
    /// Which models are compared
    #[command(flatten)]
    #[serde(skip_serializing_if = "Models::is_default")]
    pub models: Models,
    /// What other data are compared with
    #[command(flatten)]
    #[serde(skip_serializing_if = "External::is_default")]
    pub external: External,
    /// What is written as files too
    #[command(flatten)]
    #[serde(flatten)]
    pub exports: Exports,
}

const EVALUATE_EXAMPLES: &str = "\
Examples:
  a run, again, with curves read as steps
    fairtte evaluate runs/films --set reading=step --output runs/films-step
  the curves of any model, with outcomes and attributes beside them
    fairtte evaluate --predictions curves.parquet --attributes sex,age:60 --train outcomes.csv --output report.html
  a table with columns of other names
    fairtte evaluate --predictions curves.csv --time os_days --event status --event-value dead --output report.html
  the cumulative incidence of one of several causes, where the column event contains 0, 1, 2, ..
    fairtte evaluate --predictions incidence.csv --cause 1 --attributes sex --output report.html
  two models on the same samples, with the differences from the first
    fairtte evaluate --predictions cnn.csv --predictions cox.csv --names CNN,Cox --attributes sex --output both.html
  the probabilities of a class, with the threshold that has the highest F1 on other samples
    fairtte evaluate --task binary --predictions test.csv --validation validation.csv --attributes sex --output report.html
  the class of an event within 365 days, from a table with times: those censored before have none, and are counted
    fairtte evaluate --task binary --predictions risk.csv --horizon 365 --attributes sex --output report.html
  the curves of any model for the test part of a cohort
    fairtte evaluate --predictions curves.csv --cohort cohort.csv --split split.csv --output scores
  how informative censoring must be to turn the verdict on race, if it is so among black people only
    fairtte evaluate --predictions curves.csv --attributes race --sensitivity --tilt race=black --output report.html
  a run on other data (external validation), beside its own test part
    fairtte evaluate external --internal runs/films
  a run, again, with every figure and table as a file
    fairtte evaluate runs/films --output runs/films-again --figures paper --tables paper";

/// Repairs of curves that rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repair {
    /// Each value becomes the lowest of its row up to that time; refused if it changes over 5 % of the cells by over 0.01
    Monotone,
    /// The same, whatever it changes
    #[value(name = "monotone:all")]
    MonotoneAll,
}

impl Repair {
    /// Its name as an argument.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Monotone => "monotone",
            Self::MonotoneAll => "monotone:all",
        }
    }
}

/// Part of a split that can be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvaluatedPart {
    /// Rows that the model was chosen on.
    Validation,
    /// Rows that nothing was fitted on.
    Test,
}

/// Arguments of `list`.
#[derive(Args, Debug)]
pub struct List {
    /// What to list; everything if not given
    #[arg(value_enum)]
    pub what: Option<Listed>,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Kinds of things a run file can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Data sets.
    Data,
    /// Backbones.
    #[cfg(feature = "train")]
    Backbones,
    /// Heads.
    #[cfg(feature = "train")]
    Heads,
    /// Strategies.
    #[cfg(feature = "train")]
    Strategies,
    /// Estimators on columns.
    Estimators,
    /// Metrics of an evaluation.
    Metrics,
    /// Metrics of the probability of a class.
    ClassMetrics,
    /// Validation metrics.
    Monitors,
    /// Devices.
    #[cfg(feature = "train")]
    Devices,
}
