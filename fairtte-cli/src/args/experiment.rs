//! Arguments of `experiment`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use fairtte_classical::Preset;
use fairtte_classical::biasing::{Biasing, Measure};
use fairtte_data::AttributeConfig;
use serde::Serialize;

use super::own_table;

/// What to find out.
#[derive(Debug, Subcommand)]
pub enum ExperimentCommand {
    /// Would a metric have noticed? Bias one half of a table and compare what measures say about both halves
    Biasing(Box<BiasingExperiment>),
    /// Would an evaluation have noticed? Degrade the predictions of one group and count how often its gap is found
    Power(Box<PowerExperiment>),
}

/// Arguments of `experiment biasing`.
#[derive(Args, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(after_help = BIASING_EXAMPLES)]
pub struct BiasingExperiment {
    /// Tables (CSV, TSV or Parquet): times, events and covariates, one sample per row
    #[arg(value_name = "TABLE", required = true)]
    pub tables: Vec<PathBuf>,
    /// Column of the times
    #[arg(long, value_name = "COLUMN", default_value = "time")]
    pub time: String,
    /// Column of the events, 1 or 0
    #[arg(long, value_name = "COLUMN", default_value = "event")]
    pub event: String,
    /// Columns that are categories although they hold numbers
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub categorical: Vec<String>,
    /// Columns that are no covariates
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub exclude: Vec<String>,
    /// How a half is biased: `permutation`, `column-permutation`, `undersampling`
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "permutation,undersampling", value_parser = method)]
    pub methods: Vec<Biasing>,
    /// Measures: `rsbs`, `risl`, `snl`, `rcll`, `harrell-c`, `uno-c`, `calibration-alpha`, `d-calibration`, `snl-interval`,
    /// `rcll-interval`; the first eight if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = measure)]
    pub measures: Vec<Measure>,
    /// Probabilities with which a sample of the half is biased; 0 to 0.9 in steps of 0.1 if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true)]
    pub shares: Vec<f64>,
    /// Repeats of every share
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub repeats: usize,
    /// Estimator that is cross-validated (`fairtte list estimators`), with its default settings
    #[arg(long, value_name = "NAME", default_value = "forest")]
    pub estimator: String,
    /// Settings of the forest: those of randomForestSRC (the paper's; if not given), of ranger, or of scikit-survival
    #[arg(long, value_enum)]
    pub preset: Option<ForestPreset>,
    /// Trees of a forest, in place of those of the preset
    #[arg(long, value_name = "N")]
    pub trees: Option<usize>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Folder for `biasing.html`, `biasing.json`, `biasing.csv`, `figures` and `tables`; the same command continues what was
    /// interrupted there. Without it the tables are printed alone
    #[arg(short, long, value_name = "DIR")]
    #[serde(skip)]
    pub output: Option<PathBuf>,
    /// Threads; 0 = one per core
    #[arg(long, default_value_t = 0)]
    #[serde(skip)]
    pub threads: usize,
    /// Results as JSON on standard output
    #[arg(long)]
    #[serde(skip)]
    pub json: bool,
}

/// Settings of a forest by the name of a package.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForestPreset {
    /// R randomForestSRC.
    #[default]
    Rfsrc,
    /// R ranger.
    Ranger,
    /// scikit-survival.
    ScikitSurvival,
}

impl From<ForestPreset> for Preset {
    fn from(preset: ForestPreset) -> Self {
        match preset {
            ForestPreset::Rfsrc => Self::Rfsrc,
            ForestPreset::Ranger => Self::Ranger,
            ForestPreset::ScikitSurvival => Self::ScikitSurvival,
        }
    }
}

/// Arguments of `experiment power`.
#[derive(Args, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(after_help = POWER_EXAMPLES)]
pub struct PowerExperiment {
    /// Survival curves of any model (Parquet or CSV), as `evaluate` reads them: `sample`, then one column per time. Without --cohort
    /// also `time`, `event` and the --attribute, and `subject` if a person has more than one sample
    #[arg(long, value_name = "FILE")]
    pub predictions: PathBuf,
    /// Attribute with the groups: a column of the predictions (`sex`, `age:60`, `race=White`), or a grouped attribute of the cohort
    #[arg(long, value_name = "ATTRIBUTE", value_parser = own_table::attribute)]
    pub attribute: AttributeConfig,
    /// Group whose predictions are degraded
    #[arg(long, value_name = "LEVEL")]
    pub level: String,
    /// Separate file of the samples
    #[arg(long, value_name = "FILE")]
    pub cohort: Option<PathBuf>,
    /// Parts of the subjects of the cohort: the test part is used; without it all samples
    #[arg(long, value_name = "FILE", requires = "cohort")]
    pub split: Option<PathBuf>,
    /// Outcomes of the training sample (`time`, `event`) to fit the censoring curve on
    #[arg(long, value_name = "FILE", conflicts_with = "cohort")]
    pub train: Option<PathBuf>,
    /// Column of the samples, instead of `sample`
    #[arg(long, value_name = "COLUMN", conflicts_with = "cohort")]
    pub sample: Option<String>,
    /// Column of the subjects, instead of `subject`
    #[arg(long, value_name = "COLUMN", conflicts_with = "cohort")]
    pub subject: Option<String>,
    /// Column of the times, instead of `time`
    #[arg(long, value_name = "COLUMN", conflicts_with = "cohort")]
    pub time: Option<String>,
    /// Column of the events, instead of `event`
    #[arg(long, value_name = "COLUMN", conflicts_with = "cohort")]
    pub event: Option<String>,
    /// Value of an event; every other value is censored
    #[arg(long, value_name = "VALUE", conflicts_with = "cohort")]
    pub event_value: Option<String>,
    /// Metrics, as of `evaluate`
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Change a setting of the evaluation, for example `--set replicates=1000` (200 if not given) or `--set level=0.9`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Probabilities with which the curve of a sample of the group is exchanged; 0 to 1 in steps of 0.1 if not given
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true)]
    pub shares: Vec<f64>,
    /// Repeats of every share
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub repeats: usize,
    /// Power that is requested
    #[arg(long, value_name = "P", default_value_t = 0.8, allow_negative_numbers = true)]
    pub target: f64,
    /// Seed of labels and exchanges
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Folder for `power.html`, `power.json`, `figures` and `tables`; without it the table is printed alone
    #[arg(short, long, value_name = "DIR")]
    #[serde(skip)]
    pub output: Option<PathBuf>,
    /// Threads; 0 = one per core
    #[arg(long, default_value_t = 0)]
    #[serde(skip)]
    pub threads: usize,
    /// Results as JSON on standard output
    #[arg(long)]
    #[serde(skip)]
    pub json: bool,
}

fn method(name: &str) -> Result<Biasing, String> {
    let names: Vec<&str> = Biasing::ALL.iter().map(|method| method.name()).collect();
    Biasing::from_name(name).ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

fn measure(name: &str) -> Result<Measure, String> {
    let names: Vec<&str> = Measure::ALL.iter().map(|measure| measure.name()).collect();
    Measure::from_name(name).ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

const BIASING_EXAMPLES: &str = "\
Examples:
  the experiment of Sonabend et al. (2022) on three tables
    fairtte experiment biasing lung.csv whas.csv gbsg.csv --output biasing
  a quick look: four shares, two repeats, fewer trees
    fairtte experiment biasing lung.csv --shares 0,0.3,0.6,0.9 --repeats 2 --trees 50
  columns of other names, and one that is no covariate
    fairtte experiment biasing patients.csv --time os_days --event dead --exclude patient_id --output biasing";

const POWER_EXAMPLES: &str = "\
Examples:
  how much worse must the predictions for women get before a gap is found?
    fairtte experiment power --predictions curves.csv --attribute sex --level F --train outcomes.csv --output power
  the test part of a run
    fairtte experiment power --predictions run/predictions.parquet --cohort run/cohort.parquet --split run/split.csv \\
      --attribute sex --level F --output power";
