//! Arguments of `evaluate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fairtte_data::AttributeConfig;
use serde::Serialize;

use super::{Classes, Exports, External, Models, OwnTable, Scores};

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
    #[arg(long, value_name = "FILE", requires = "output")]
    #[serde(serialize_with = "super::models::one_or_more")]
    pub predictions: Vec<PathBuf>,
    /// Attributes to compare by, columns of the predictions or of --cohort (all `<attribute>_group` columns of it if not
    /// given): `sex` (every value is a group), `age:60` or `age:median` (a
    /// number cut in two), `age:40,60,75` (in several), `race=White` (one value against all others)
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::own_table::attribute, requires = "predictions")]
    #[arg(conflicts_with = "run")]
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
    /// Separate file of the samples: `sample_id`, `subject_id`, time, event, and `<attribute>_group` columns or the
    /// --attributes
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
    #[arg(short, long, value_name = "PATH")]
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

impl Evaluate {
    /// The files that are read.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &PathBuf> {
        let single = [&self.train, &self.cohort, &self.split, &self.classes.validation];
        self.predictions.iter().chain(single.into_iter().flatten())
    }
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
