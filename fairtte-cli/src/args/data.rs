//! Arguments of the commands that read data without a model: `prepare`, `cohort` and `inspect`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Run;

/// Arguments of `prepare`.
#[derive(Args, Debug)]
pub struct Prepare {
    /// Arguments shared with `train`
    #[command(flatten)]
    pub run: Run,
    /// Build the cohort and the exclusion table from the tables alone: no image is opened, nothing is split
    #[arg(long)]
    pub tables_only: bool,
    /// Write the cohort as `cohort.csv` too
    #[arg(long)]
    pub csv: bool,
    /// Read the decoded images again and compare every checksum
    #[arg(long, conflicts_with = "tables_only")]
    pub verify: bool,
    /// Samples of every group and part whose pictures `samples.html` shows as they enter the model; 0 = no page (2 if not
    /// given)
    #[arg(long, value_name = "N", conflicts_with = "tables_only")]
    pub samples: Option<usize>,
}

/// The commands of `cohort`.
#[derive(Debug, Subcommand)]
pub enum CohortCommand {
    /// Compare counts, censoring rate, mean time and group sizes with Table A1 of the paper
    Check(CohortCheck),
}

/// Arguments of `cohort check`.
#[derive(Args, Debug)]
pub struct CohortCheck {
    /// A run folder with a prepared cohort; without it the tables of `--config` are read
    #[arg(value_name = "RUN", required_unless_present = "config", conflicts_with = "config")]
    pub run: Option<PathBuf>,
    /// Run file; may be given more than once, a later one wins
    #[arg(short, long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
    /// Change a setting, for example `--set data.areds.stereo=one`; wins over all files
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "config", conflicts_with = "run")]
    pub set: Vec<String>,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `inspect`.
#[derive(Args, Debug)]
pub struct Inspect {
    /// JPEG, PNG, TIFF, DICOM or NIfTI files, or folders of DICOM slices
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Show the value at this place (column,row of a picture; x,y,z or x,y,z,t of a volume; from 0); may be repeated
    #[arg(long, value_name = "X,Y[,Z[,T]]", value_parser = index)]
    pub at: Vec<Vec<usize>>,
    /// Refuse pictures of more pixels than this
    #[arg(long, value_name = "N")]
    pub max_pixels: Option<u64>,
    /// Refuse images that take more memory than this many bytes
    #[arg(long, value_name = "N")]
    pub max_bytes: Option<u64>,
    /// Results as JSON on standard output, one list with one entry per file
    #[arg(long)]
    pub json: bool,
}

/// One value of `--at`.
fn index(text: &str) -> Result<Vec<usize>, String> {
    let parse = |part: &str| part.trim().parse::<usize>().map_err(|_| format!("\"{part}\" is not a whole number >= 0"));
    let index = text.split(',').map(parse).collect::<Result<Vec<_>, _>>()?;
    if (2..=4).contains(&index.len()) { Ok(index) } else { Err("expected 2 to 4 numbers, as in 10,20,5".to_owned()) }
}

pub(super) const INSPECT_EXAMPLES: &str = "\
Examples:
  what a reader sees, and two voxels
    fairtte inspect scan.nii.gz --at 90,108,90 --at 0,0,0
  which files of a folder are refused, and why (exit code 4 if any is)
    fairtte inspect films/*.png --json";
