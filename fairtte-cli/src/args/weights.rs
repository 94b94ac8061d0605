//! Arguments of `fairtte weights`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fairtte_models::BackboneKind;
use fairtte_models::weights::{Gray, Layout};

/// The commands of `weights`.
#[derive(Debug, Subcommand)]
pub enum WeightsCommand {
    /// Show container, keys, shapes and types of a file of weights; nothing in it is executed
    Inspect(WeightsInspect),
    /// Compare a file of weights with a backbone and write it under fairtte's names, with its origin
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(WeightsImport),
    /// Write the trained model of a run as safetensors in the names of torchvision, timm or `MedicalNet`, with a JSON file that
    /// says how its numbers become curves
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(WeightsExport),
}

/// Arguments of `weights inspect`.
#[derive(Args, Debug)]
pub struct WeightsInspect {
    /// A safetensors file, what torch.save wrote, the folder of a run, or a file of weights in it
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weights import`.
#[derive(Args, Debug)]
pub struct WeightsImport {
    /// A safetensors file, or what torch.save wrote
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Backbone whose weights they are (`fairtte list backbones`)
    #[arg(long, value_name = "NAME", value_parser = backbone)]
    pub arch: BackboneKind,
    /// Names of the keys: auto, torchvision, timm, medicalnet, mae, dinov2 or native
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = layout)]
    pub layout: Layout,
    /// Input channels to write; those of the file if not given
    #[arg(long, value_name = "N")]
    pub channels: Option<usize>,
    /// How to adapt the first convolution to another number of channels: sum or mean (several to one), replicate
    /// (one to several; needs --channels), auto (sum or replicate). sum and mean without --channels write weights for
    /// one channel
    #[arg(long, value_name = "RULE", default_value = "auto", value_parser = gray)]
    pub gray: Gray,
    /// File to write (safetensors); without it the weights are compared and nothing is written
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weights export`.
#[derive(Args, Debug)]
pub struct WeightsExport {
    /// Folder of a finished run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// File to write, which ends in .safetensors; the description beside it ends in .json
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Weights: an epoch (counted from 1) or the selection rule that chose one, for example `c-td` or `gap-ibs`; those
    /// of `training.monitor` if not given
    #[arg(long, value_name = "EPOCH|RULE")]
    pub epoch: Option<String>,
    /// The description as JSON on standard output, too
    #[arg(long)]
    pub json: bool,
}

/// One value of `--arch`.
fn backbone(text: &str) -> Result<BackboneKind, String> {
    named(text, &BackboneKind::ALL, BackboneKind::name)
}

/// One value of `--layout`.
fn layout(text: &str) -> Result<Layout, String> {
    named(text, &Layout::ALL, Layout::name)
}

/// One value of `--gray`.
fn gray(text: &str) -> Result<Gray, String> {
    named(text, &Gray::ALL, Gray::name)
}

fn named<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, String> {
    let names = || all.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ");
    all.iter().copied().find(|one| name(*one) == text).ok_or_else(|| format!("expected one of {}", names()))
}

const IMPORT_EXAMPLES: &str = "\
Nothing is downloaded: the guide says where to get weights, and their licences. Exit code 4 if the file does not fit.
Examples:
  what would be taken from a file
    fairtte weights import efficientnet_b0_rwightman-7f5810bc.pth --arch efficientnet-b0
  weights for gray pictures
    fairtte weights import resnet18-f37072fd.pth --arch resnet18 --gray sum -o resnet18-gray.safetensors";

const EXPORT_EXAMPLES: &str = "\
The guide has a Python program of 30 lines that reads both files and computes the same curves.
Examples:
  the model that predictions.parquet is from
    fairtte weights export runs/films -o films.safetensors
  the weights that another rule chose
    fairtte weights export runs/films -o fair.safetensors --epoch gap-ibs";
