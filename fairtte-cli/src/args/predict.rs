//! Arguments of `predict`.

use std::path::PathBuf;

use clap::Args;
use fairtte_data::cohort::RenamedLevel;
use serde::Serialize;

use crate::CliError;

/// Arguments of `predict`.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
#[derive(Args, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(after_help = PREDICT_EXAMPLES)]
pub struct Predict {
    /// Folders of finished runs. Of several, the mean of their curves is predicted (an ensemble)
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// Which samples are predicted
    #[command(flatten)]
    #[serde(flatten)]
    pub other: Other,
    /// Folder for the predictions; it is created
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Weights: an epoch (counted from 1) or the selection rule that chose one, for example `c-td` or `gap-ibs`; those
    /// of `training.monitor` if not given
    #[arg(long, value_name = "EPOCH|RULE", conflicts_with = "out_of_fold")]
    pub epoch: Option<String>,
    /// Multiplies the times of the other data, where they are in another unit than those of the run: 365.25 for years
    /// where the run has days
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["out_of_fold", "no_outcomes"])]
    pub time_factor: Option<f64>,
    /// Level that a value of the other data has in the run, for example `sex.female=F`; may be repeated. Values that are
    /// no level of the run are in no group otherwise
    #[arg(long = "level", value_name = "ATTRIBUTE.VALUE=LEVEL", value_parser = renamed_level)]
    #[arg(conflicts_with = "out_of_fold")]
    pub levels: Vec<RenamedLevel>,
    /// Predict every row, also those without an outcome; outcomes are not read
    #[arg(long, conflicts_with = "out_of_fold")]
    pub no_outcomes: bool,
    /// Predict images that the run was trained on, which is an error otherwise
    #[arg(long, conflicts_with = "out_of_fold")]
    pub allow_training_images: bool,
    /// Times, in the unit of the run, at which `risk.csv` has the predicted risk of every sample
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true)]
    pub horizon: Vec<f64>,
    /// Pool the folds of a cross-validation: every sample has the curve of the run whose test part it is in. No network is
    /// run
    #[arg(long, conflicts_with_all = ["data", "table", "image_root", "set", "cache", "device"])]
    pub out_of_fold: bool,
    /// Where to compute (`fairtte list devices`), instead of the device of the run
    #[arg(long, env = "FAIRTTE_DEVICE")]
    pub device: Option<String>,
    /// Threads; 0 = one per core
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Show what would be predicted and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Samples that a run was not trained on.
#[derive(Args, Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Other {
    /// Run file whose `[data]` is read; its other tables are not used, and an `[image]` that differs from the run's is an
    /// error
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Table of samples (CSV, TSV or Parquet) with the columns of the run's own table, or `image` and `subject_id`; `time`
    /// and `event` may be absent
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    pub table: Option<PathBuf>,
    /// Folder that the image paths of --table are relative to; its own folder if not given
    #[arg(long, value_name = "DIR", requires = "table", conflicts_with = "data")]
    pub image_root: Option<PathBuf>,
    /// Change a setting of the other data, for example `--set data.generic.time=years`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Folder for decoded images; `cache` beside the output if not given
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
}

impl Other {
    /// Whether other data are named.
    pub(crate) fn is_given(&self) -> bool {
        self.data.is_some() || self.table.is_some()
    }

    /// Refuses settings of other data where none are named.
    pub(crate) fn require_none(&self) -> Result<(), CliError> {
        let given = [
            ("--set", !self.set.is_empty()),
            ("--cache", self.cache.is_some()),
            // clap does not require --table where another option excludes it.
            ("--image-root", self.image_root.is_some()),
        ];
        for (option, is_given) in given {
            if is_given {
                let message = format!("{option} is about other data, expected --data or --table with it");
                return Err(CliError::setting(option, message, None));
            }
        }
        Ok(())
    }
}

/// One value of `--level`.
fn renamed_level(text: &str) -> Result<RenamedLevel, String> {
    let expected = || format!("\"{text}\" is not ATTRIBUTE.VALUE=LEVEL, as in sex.female=F");
    let (from, level) = text.rsplit_once('=').ok_or_else(expected)?;
    let (attribute, value) = from.split_once('.').ok_or_else(expected)?;
    if [attribute, value, level].iter().any(|part| part.trim().is_empty()) {
        return Err(expected());
    }
    let [attribute, value, level] = [attribute, value, level].map(|part| part.trim().to_owned());
    Ok(RenamedLevel { attribute, value, level })
}

const PREDICT_EXAMPLES: &str = "\
Examples:
  another hospital, by a run file with its [data]; then its page beside that of the run's own test part
    fairtte predict runs/films --data other.toml --output external
    fairtte evaluate external --internal runs/films
  new images without outcomes, with the risk at one and two years
    fairtte predict runs/films --table new.csv --image-root films --horizon 365,730 --output new
  the mean curve of three trainings
    fairtte predict runs/a runs/b runs/c --data other.toml --output ensemble
  the five folds of a cross-validation, as one prediction of every sample
    fairtte predict runs/fold-1 runs/fold-2 runs/fold-3 runs/fold-4 runs/fold-5 --out-of-fold --output pooled";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_has_three_parts() {
        let level = renamed_level("race.Black = or African American=Non-White");
        let expected = RenamedLevel {
            attribute: "race".to_owned(),
            value: "Black = or African American".to_owned(),
            level: "Non-White".to_owned(),
        };
        assert_eq!(level, Ok(expected));
        for wrong in ["race", "race=White", "race.=White", ".x=White", "race.x="] {
            assert!(renamed_level(wrong).is_err(), "{wrong}");
        }
    }
}
