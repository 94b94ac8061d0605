//! Arguments of `test`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fairtte_metrics::statistics::Alternative;
use serde::Serialize;

use crate::method_tests::Family;

/// Arguments of `test`.
#[derive(Args, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(after_help = EXAMPLES)]
pub struct Test {
    /// Table (CSV, TSV or Parquet) with one value per row: `setting`, `method`, `value`; `metric` if there are several, and
    /// `trial` or `repeat` if the methods were trained several times
    #[arg(value_name = "TABLE")]
    pub table: PathBuf,
    /// Higher values are better: of all metrics, or of those named after `=`
    #[arg(long, value_name = "METRICS", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    pub higher_is_better: Option<Vec<String>>,
    /// Lower values are better, likewise
    #[arg(long, value_name = "METRICS", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    pub lower_is_better: Option<Vec<String>>,
    /// The values are gaps between groups, likewise: smaller is better, and none is below 0
    #[arg(long, value_name = "METRICS", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    pub gap: Option<Vec<String>>,
    /// Method that all others are compared with; `erm` if not given, or the first one of the table
    #[arg(long, value_name = "METHOD")]
    pub base: Option<String>,
    /// Signed-rank tests of all pairs of methods, not only of those with the base
    #[arg(long)]
    pub all_pairs: bool,
    /// Alternative of the signed-rank tests
    #[arg(long, value_enum, default_value_t)]
    pub alternative: Alternatives,
    /// Level of significance: of verdicts, and of the critical difference
    #[arg(long, value_name = "P", default_value_t = 0.05, allow_negative_numbers = true)]
    pub level: f64,
    /// Tests that Holm's method adjusts together
    #[arg(long, value_enum, default_value_t)]
    pub family: Families,
    /// Folder for `test.html`, `test.json`, `figures/*.svg` and `tables/*.{csv,md,tex}`; without it the tests are printed
    /// alone
    #[arg(short, long, value_name = "DIR")]
    #[serde(skip)]
    pub output: Option<PathBuf>,
    /// Results as JSON on standard output
    #[arg(long)]
    #[serde(skip)]
    pub json: bool,
    /// What the columns mean
    #[command(flatten)]
    #[serde(flatten)]
    pub columns: TestColumns,
}

/// What the columns of the table mean.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Own columns")]
pub struct TestColumns {
    /// Column of the settings, instead of `setting`
    #[arg(long, value_name = "COLUMN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// Column of the methods, instead of `method`
    #[arg(long, value_name = "COLUMN", conflicts_with = "wide")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Column of the values, instead of `value`
    #[arg(long, value_name = "COLUMN", conflicts_with = "wide")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Column of the metrics, instead of `metric`
    #[arg(long, value_name = "COLUMN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Column of the trials, instead of `trial` or `repeat`: a trial is one training of every method in a setting
    #[arg(long, value_name = "COLUMN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<String>,
    /// The table has one column per method: all but those of settings, metrics and trials
    #[arg(long)]
    pub wide: bool,
}

/// Alternative hypotheses, about the first method of a pair: any method against the base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alternatives {
    /// Its values differ.
    #[default]
    TwoSided,
    /// Its values are lower.
    Less,
    /// Its values are higher.
    Greater,
}

impl From<Alternatives> for Alternative {
    fn from(alternative: Alternatives) -> Self {
        match alternative {
            Alternatives::TwoSided => Self::TwoSided,
            Alternatives::Less => Self::Less,
            Alternatives::Greater => Self::Greater,
        }
    }
}

/// Families of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Families {
    /// The signed-rank tests of one metric.
    #[default]
    Metric,
    /// Those of all metrics; Friedman's test is then decided by its p adjusted for all metrics.
    Table,
}

impl From<Families> for Family {
    fn from(families: Families) -> Self {
        match families {
            Families::Metric => Self::Metric,
            Families::Table => Self::Table,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  do methods differ in their gaps over data sets?
    fairtte test gaps.csv --gap --base erm --output tests
  one column per method, accuracy over data sets
    fairtte test accuracy.csv --wide --setting dataset --higher-is-better
  two metrics of different directions, ten trainings of every method in every setting
    fairtte test results.csv --higher-is-better --lower-is-better=ibs --trial seed --all-pairs";
