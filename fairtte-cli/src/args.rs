//! Arguments of every command.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::exit;

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
    /// Simulate a cohort, train on it and report how fairly the model predicts: the whole job in one go
    Demo(Demo),
    /// Write a simulated cohort of films or volumes with a known cause of every bias
    Simulate(Simulate),
    /// Read a data set, decode its images once and show every exclusion
    Prepare(Run),
    /// Train a model and evaluate it; the same command goes on after an interruption
    Train(Run),
    /// Score predictions from saved files: no model, no GPU
    Evaluate(Evaluate),
    /// List what a run file can name
    List(List),
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

/// Arguments of `simulate`.
#[derive(Args, Debug)]
pub struct Simulate {
    /// Folder to write, absent or empty
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
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
    /// Say what would be written and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `train` and `prepare`.
#[derive(Args, Debug)]
pub struct Run {
    /// Run file; may be given more than once, a later one wins
    #[arg(short, long, value_name = "FILE", required = true)]
    pub config: Vec<PathBuf>,
    /// Run folder, in place of `output` in the run file
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Settings shared with the other commands
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of every command that runs a run file.
#[derive(Args, Debug)]
pub struct Common {
    /// Change a setting, for example `--set optimiser.learning-rate=3e-4`; wins over all files
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Where to compute (`fairtte list devices`), in place of `device` in the run file
    #[arg(long, env = "FAIRTTE_DEVICE")]
    pub device: Option<String>,
    /// Threads; 0 = one per core
    #[arg(long)]
    pub threads: Option<usize>,
    /// Print the resolved run file, say what would be done, and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `evaluate`.
#[derive(Args, Debug)]
pub struct Evaluate {
    /// Folder of a finished or predicted run
    #[arg(value_name = "RUN", required_unless_present = "predictions", conflicts_with = "predictions")]
    pub run: Option<PathBuf>,
    /// Survival curves of any model: `sample_id`, then one column per time (Parquet or CSV)
    #[arg(long, value_name = "FILE", requires = "cohort")]
    pub predictions: Option<PathBuf>,
    /// The samples: `sample_id`, `subject_id`, time, event and `<attribute>_group` columns (Parquet or CSV)
    #[arg(long, value_name = "FILE", requires = "predictions")]
    pub cohort: Option<PathBuf>,
    /// Parts of the subjects (`subject_id,part`); without it all samples are evaluated
    #[arg(long, value_name = "FILE", requires = "predictions")]
    pub split: Option<PathBuf>,
    /// Part to evaluate: test if not given; the files of validation are named `evaluation-validation.json` and so on
    #[arg(long, value_enum)]
    pub part: Option<EvaluatedPart>,
    /// Folder for `evaluation.json` and `report.html`; the run folder if not given
    #[arg(short, long, value_name = "DIR", required_unless_present = "run")]
    pub output: Option<PathBuf>,
    /// Change a setting, for example `--set replicates=200` or `--set reading.refined.factor=20`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Threads; 0 = one per core
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Say what would be evaluated and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Part of a split that can be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EvaluatedPart {
    /// Rows the model was chosen on.
    Validation,
    /// Rows nothing was fitted on.
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
    Backbones,
    /// Heads.
    Heads,
    /// Strategies.
    Strategies,
    /// Validation metrics.
    Monitors,
    /// Devices.
    Devices,
}
