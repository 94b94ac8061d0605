//! Arguments of `bias`.

use std::path::PathBuf;

use clap::Args;
use fairtte_data::AttributeConfig;

use super::{FeatureLayer, FeaturePart, OwnTable};

/// Principal components of features that are kept.
pub(crate) const BIAS_COMPONENTS: usize = 64;

/// Arguments of `bias`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Bias {
    /// Folder of a finished run: its data, grouped as in the run, with the features of its network. The files are written
    /// into it, and its report shows them as a section
    #[arg(value_name = "RUN", required_unless_present = "features", conflicts_with_all = ["features", "cohort"])]
    pub run: Option<PathBuf>,
    /// Place in the network of the run: `backbone` if not given
    #[arg(long, value_enum, conflicts_with_all = ["features", "cohort"])]
    pub layer: Option<FeatureLayer>,
    /// Samples of the run: all if not given. Directions and scale of the features are those of the training part
    #[arg(long, value_enum, conflicts_with_all = ["features", "cohort"])]
    pub part: Option<FeaturePart>,
    /// Numbers of every sample (Parquet or CSV), such as the representation of a network: `sample_id` or `sample`, and
    /// numbers in all other columns
    #[arg(long, value_name = "FILE", requires = "cohort")]
    pub features: Option<PathBuf>,
    /// The same samples (Parquet or CSV): `sample_id` or `sample`, `time`, `event` (1 or 0), the --attributes, and
    /// `subject_id` or `subject` if a person has more than one sample
    #[arg(long, value_name = "FILE", requires_all = ["features", "attributes"])]
    pub cohort: Option<PathBuf>,
    /// Attributes to compare by, columns of the cohort: `sex` (every value is a group), `age:60` or `age:median` (a
    /// number cut in two), `age:40,60,75` (in several), `race=White` (one value against all others)
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = super::own_table::attribute)]
    #[arg(conflicts_with = "run")]
    pub attributes: Vec<AttributeConfig>,
    /// Compare by every pair of attributes too
    #[arg(long, conflicts_with = "run")]
    pub intersections: bool,
    /// Principal components of the standardised features that are kept; fewer features are kept as they are
    #[arg(long, value_name = "N", default_value_t = BIAS_COMPONENTS)]
    pub components: usize,
    /// Seed of projections, clusters, permutations, replicates and folds (0 if not given)
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Permutations behind every p value (1000 if not given)
    #[arg(long, value_name = "N")]
    pub permutations: Option<usize>,
    /// Samples that a group needs to be compared, and events for the sources among events; smaller groups are named (10
    /// if not given)
    #[arg(long, value_name = "N")]
    pub min_events: Option<usize>,
    /// Folder for `bias.json`, `bias.csv` and `bias.html`; without it the table is printed alone, and those of a run are
    /// written into its folder
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Change a setting, for example `--set n-replicates=200`, `--set n-clusters=5`, `--set level=0.9`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Threads; 0 = one per core
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// What the columns and values of the cohort mean
    #[command(flatten)]
    pub own: CohortColumns,
}

/// What the columns and values of the cohort mean.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Own columns")]
pub struct CohortColumns {
    /// Column of the samples, instead of `sample` or `sample_id`; also of --features, if it is there
    #[arg(long, value_name = "COLUMN", conflicts_with = "run")]
    pub sample: Option<String>,
    /// Column of the subjects, instead of `subject` or `subject_id`
    #[arg(long, value_name = "COLUMN", conflicts_with = "run")]
    pub subject: Option<String>,
    /// Column of the observed times, instead of `time`
    #[arg(long, value_name = "COLUMN", conflicts_with = "run")]
    pub time: Option<String>,
    /// Column of the events, instead of `event`
    #[arg(long, value_name = "COLUMN", conflicts_with = "run")]
    pub event: Option<String>,
    /// Value of an event, for example `dead`; every other value is censored
    #[arg(long, value_name = "VALUE", conflicts_with = "run")]
    pub event_value: Option<String>,
    /// Values of the --attributes that mean a missing one, for example `unknown,n/a`, in any case
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "run")]
    pub missing: Vec<String>,
}

impl CohortColumns {
    /// The same as arguments of `evaluate`.
    pub(crate) fn as_own_table(&self) -> OwnTable {
        OwnTable {
            sample: self.sample.clone(),
            subject: self.subject.clone(),
            time: self.time.clone(),
            event: self.event.clone(),
            event_value: self.event_value.clone(),
            missing: self.missing.clone(),
            ..OwnTable::default()
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  a run: can its groups be told apart by the features, and do times and censoring differ?
    fairtte bias runs/films
  features of a network, compared by sex and by age at 60
    fairtte bias --features features.parquet --cohort outcomes.csv --attributes sex,age:60 --output bias
  a table with columns of other names
    fairtte bias --features f.csv --cohort c.csv --attributes sex --time days --event status --event-value dead";
