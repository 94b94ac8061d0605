//! Arguments of `select`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::exports::Exports;

/// Arguments of `select`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Select {
    /// Folder with finished runs, at any depth, all on the same samples with the same split
    #[arg(value_name = "DIR")]
    pub runs: PathBuf,
    /// How weights are chosen, in the validation part
    #[arg(long, value_enum, default_value_t = Rule::Fairest)]
    pub rule: Rule,
    /// Strategy that the others are compared with; `fairest` may lose a share of its metric
    #[arg(long, value_name = "NAME", default_value = "erm")]
    pub base: String,
    /// Share of the base's metric that `fairest` may lose, 0 to 1 [default: 0.05]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub tolerated_loss: Option<f64>,
    /// What the tolerated loss of `fairest` is a share of [default: metric]
    #[arg(long, value_enum)]
    pub tolerated_loss_of: Option<LossOf>,
    /// Attributes to choose for; all of the runs if not given
    #[arg(long = "attribute", value_name = "NAME")]
    pub attributes: Vec<String>,
    /// Folder for `choice.json`, `choice.csv`, `choice.md` and the page `choice.html`
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Change a setting of the evaluation, for example `--set replicates=200`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Threads; 0 = one per core
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// What of the page `choice.html` is written as files too
    #[command(flatten)]
    pub exports: Exports,
}

/// What the tolerated loss is a share of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LossOf {
    /// The base's metric (the paper)
    #[default]
    Metric,
    /// Its part above chance: above 0.5 of `C^td` and `AUC^td`, below the Kaplan-Meier curve's IBS
    Skill,
}

/// How weights are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The smallest gap within the tolerated loss of the base (the paper); of the base the best metric
    #[default]
    Fairest,
    /// The best metric over all samples
    Overall,
    /// The best worst group on the Pareto front of the groups
    Minimax,
    /// The smallest distance to the best value of every group
    Dto,
}

const EXAMPLES: &str = "\
Examples:
  the paper's rule over everything that `fairtte compare` trained
    fairtte select runs/compare_grape --output runs/compare_grape
  the best worst group, for one attribute
    fairtte select runs/compare_grape --rule minimax --attribute age
  near chance: 5 % of what the base has above 0.5, so that a coin is never admitted
    fairtte select runs/compare_grape --tolerated-loss-of skill";
