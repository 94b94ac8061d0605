//! The arguments of `fairtte study`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

/// What to do with a study.
#[derive(Debug, Subcommand, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StudyCommand {
    /// Print a study file to start from
    Template(StudyTemplate),
    /// Expand the axes of a study, name its trials and say what they need; nothing is trained
    Plan(StudyPlan),
    /// Run what is missing of a study on this machine; the same command resumes it
    Run(StudyRun),
    /// Submit what is missing of a study to SLURM as job arrays
    Submit(StudySubmit),
    /// Run one trial of a planned study, by its place in the manifest: what jobs of a cluster call
    Trial(StudyTrial),
    /// Say what is done, running, failed and to do, from the files of the study
    Status(StudyFolderArgument),
    /// Say what keeps a study from finishing: held tasks, failing machines, insufficient memory, trials whose machine is gone
    Doctor(StudyFolderArgument),
    /// Print one command per group of open trials, for GNU parallel, `hq` and other engines
    Commands(StudyCommands),
    /// Gather the scores of all finished trials in `results.parquet`
    Collect(StudyFolderArgument),
    /// Write the tables and the page of what is finished, and say what is missing
    Report(StudyReport),
    /// Make an ordinary run folder of a finished trial: its data, curves and report
    Restore(StudyRestore),
    /// Remove the models of a finished study that no rule chooses
    Clean(StudyClean),
}

/// The arguments of `fairtte study template`.
#[derive(Args, Debug, Serialize)]
pub struct StudyTemplate {
    /// Which one
    pub kind: TemplateKind,

    /// Write it to `study.toml` in this folder, for the demo with its run files, instead of printing it
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// The templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum TemplateKind {
    /// Simulated films; ends in minutes on two cores
    Demo,
    /// The study of the paper of this project on MIMIC-CXR, ADNI and AREDS
    Paper,
    /// The protocol of MEDFAIR: eleven algorithms on the diagnosis of a class in nine data sets
    Medfair,
}

/// A study file and its settings.
#[derive(Args, Debug, Serialize)]
pub struct StudyFileArguments {
    /// The study file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Folder of the study, instead of `output` in the study file
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Change a setting of the study file, for example `--set trials=3`
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// The arguments of `fairtte study plan`.
#[derive(Args, Debug, Serialize)]
pub struct StudyPlan {
    /// The study.
    #[command(flatten)]
    pub study: StudyFileArguments,

    /// Show the plan and write nothing
    #[arg(long, conflicts_with = "estimate")]
    pub dry_run: bool,

    /// Estimate the hours from four steps of one training of every data set, head, backbone and strategy, instead of from
    /// finished trials; decodes the images of the study
    #[arg(long)]
    pub estimate: bool,

    /// Estimate the hours from the rates that `fairtte bench --output FILE` measured, on this machine or another; reads the tables
    /// of the study and decodes no image; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "estimate")]
    pub bench: Vec<PathBuf>,

    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `fairtte study run`.
#[derive(Args, Debug, Serialize)]
pub struct StudyRun {
    /// The study.
    #[command(flatten)]
    pub study: StudyFileArguments,

    /// Trials at a time, instead of `execute.jobs` in the study file
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,

    /// Threads of each trial; the cores of this machine are shared if not given
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// Only these places of the manifest
    #[arg(long, value_name = "INDEX", value_delimiter = ',')]
    pub only: Vec<usize>,

    /// Write the plan, show what would be run and stop
    #[arg(long)]
    pub dry_run: bool,
}

/// The arguments of `fairtte study submit`.
#[derive(Args, Debug, Serialize)]
pub struct StudySubmit {
    /// The study.
    #[command(flatten)]
    pub study: StudyFileArguments,

    /// Minutes that a task lasts, by the trials that are finished, instead of `execute.slurm.pack` trials (40 once a trial has
    /// finished, if neither is given; 4 trials before)
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub minutes: Option<u32>,

    /// Largest number of tasks, where a site limits the jobs of a person
    #[arg(long, value_name = "N")]
    pub max_tasks: Option<NonZeroUsize>,

    /// Print the script, the lists and the calls of sbatch, and submit nothing
    #[arg(long)]
    pub print: bool,

    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,

    /// Further options of sbatch, after `--`, for example `-- --exclude=n7`
    #[arg(last = true, value_name = "SBATCH")]
    pub options: Vec<String>,
}

/// The arguments of `fairtte study trial`.
#[derive(Args, Debug, Serialize)]
pub struct StudyTrial {
    /// Folder of the study
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// Places of the manifest, one after the other
    #[arg(value_name = "INDEX", required = true, num_args = 1..)]
    pub index: Vec<usize>,

    /// Threads; 0 = one per core
    #[arg(long, default_value_t = 0)]
    pub threads: usize,

    /// Try again also what failed for good
    #[arg(long)]
    pub again: bool,
}

/// A command that reads the folder of a study.
#[derive(Args, Debug, Serialize)]
pub struct StudyFolderArgument {
    /// Folder of the study
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `fairtte study report`.
#[derive(Args, Debug, Serialize)]
pub struct StudyReport {
    /// Folder of the study
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// Bootstrap replicates for intervals of the chosen models, for example 1000; they predict again, in `chosen/` of the study.
    /// 0 = no intervals
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub replicates: usize,

    /// Threads; 0 = one per core
    #[arg(long, default_value_t = 0)]
    pub threads: usize,

    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `fairtte study commands`.
#[derive(Args, Debug, Serialize)]
pub struct StudyCommands {
    /// Folder of the study
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// Trials per line
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub pack: u16,
}

/// The arguments of `fairtte study clean`.
#[derive(Args, Debug, Serialize)]
pub struct StudyClean {
    /// Folder of the study
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// Show what would be removed and stop
    #[arg(long)]
    pub dry_run: bool,

    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `fairtte study restore`.
#[derive(Args, Debug, Serialize)]
pub struct StudyRestore {
    /// Folder of the study
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// Place of the trial in the manifest
    #[arg(value_name = "INDEX")]
    pub index: usize,

    /// Run folder to write
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,

    /// Threads; 0 = one per core
    #[arg(long, default_value_t = 0)]
    pub threads: usize,

    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}
