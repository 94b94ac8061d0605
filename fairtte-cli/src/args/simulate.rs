//! Arguments of `simulate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
