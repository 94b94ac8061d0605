//! Arguments of every command.

#[cfg(feature = "train")]
mod bench;
mod bias;
mod card;
mod classes;
mod data;
mod evaluate;
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
mod simulate;
#[cfg(feature = "train")]
mod study;
mod test;
#[cfg(feature = "train")]
mod weights;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
use data::INSPECT_EXAMPLES;
pub use data::{CohortCheck, CohortCommand, Inspect, Prepare};
pub use evaluate::{Evaluate, EvaluatedPart, Repair};
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
pub use simulate::{Simulate, SimulationKind};
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
