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
}

/// Arguments of `weights inspect`.
#[derive(Args, Debug)]
pub struct WeightsInspect {
    /// A safetensors file, or what torch.save wrote
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
