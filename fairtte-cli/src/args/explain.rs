//! Arguments of `explain`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::Other;

/// How a map is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExplainBy {
    /// By how much the risk falls where a patch is hidden.
    Occlusion,
    /// Gradients of the risk on the line from a baseline.
    IntegratedGradients,
    /// Both.
    #[default]
    Both,
}

/// What hides a patch, and where integrated gradients begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// 0 as the network reads it: the training mean with `intensity = "standardise"` and of columns of a table.
    #[default]
    Zero,
    /// The mean of every channel of the image itself.
    ImageMean,
}

/// A part that a run did not train on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExplainPart {
    /// The validation part.
    Validation,
    /// The test part.
    #[default]
    Test,
}

/// Arguments of `explain`.
#[derive(Args, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// Folder of a finished run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Samples to explain, by their identities
    #[arg(long, value_name = "LIST", value_delimiter = ',', required_unless_present = "worst")]
    pub samples: Vec<String>,
    /// Explain the samples of every group whose risk at the horizon was predicted worst, this many
    #[arg(long, value_name = "N", conflicts_with_all = ["samples", "data", "table"])]
    pub worst: Option<usize>,
    /// Time of the risk that is explained, in the unit of the run
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub horizon: f64,
    /// How
    #[arg(long, value_enum, default_value_t = ExplainBy::Both)]
    pub method: ExplainBy,
    /// Part that --worst chooses from
    #[arg(long, value_enum, default_value_t = ExplainPart::Test, conflicts_with_all = ["samples", "data", "table"])]
    pub part: ExplainPart,
    /// Attribute whose groups are shown, and from each of which --worst chooses; the first of the run if not given
    #[arg(long, value_name = "NAME")]
    pub attribute: Option<String>,
    /// What hides a patch, and where integrated gradients begin
    #[arg(long, value_enum, default_value_t = Fill::Zero)]
    pub fill: Fill,
    /// Side of a hidden patch in pixels; an eighth of the longest side if not given
    #[arg(long, value_name = "PIXELS")]
    pub patch: Option<usize>,
    /// Distance of neighbouring patches in pixels; half a patch in pictures and a patch in volumes if not given
    #[arg(long, value_name = "PIXELS")]
    pub stride: Option<usize>,
    /// Steps of integrated gradients, 64 if not given; more bring their sum nearer to the difference of the risks
    #[arg(long, value_name = "N")]
    pub steps: Option<usize>,
    /// Also the maps of the same network with random weights: what resembles them is no explanation
    #[arg(long)]
    pub randomised: bool,
    /// Weights: an epoch (counted from 1) or the selection rule that chose one; those of `training.monitor` if not given
    #[arg(long, value_name = "EPOCH|RULE")]
    pub epoch: Option<String>,
    /// Folder for page, numbers and maps; `explain` in the run folder if not given
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Samples that the run was not trained on, instead of its own
    #[command(flatten)]
    #[serde(flatten)]
    pub other: Other,
    /// Where to compute (`fairtte list devices`), instead of the device of the run
    #[arg(long, env = "FAIRTTE_DEVICE")]
    pub device: Option<String>,
    /// Threads; 0 = one per core
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  the two samples of every sex whose risk at three years was predicted worst, beside a network with random weights
    fairtte explain runs/films --worst 2 --attribute sex --horizon 3 --randomised
  two samples of the run, by integrated gradients with more steps
    fairtte explain runs/films --samples images/s000001_v0.png,images/s000002_v0.png --horizon 3 \\
      --method integrated-gradients --steps 256
  a new image
    fairtte explain runs/films --table new.csv --samples film-17.png --horizon 3 --output explained";
