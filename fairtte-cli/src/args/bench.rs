//! Arguments of `bench`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `bench`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Bench {
    /// Device to measure (`fairtte list devices`)
    #[arg(long, env = "FAIRTTE_DEVICE", default_value = "flex")]
    pub device: String,
    /// Threads; 0 = one per core. Several numbers, for example 1,2,4, are measured one after the other, with the efficiency
    /// relative to the fewest
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "0")]
    pub threads: Vec<usize>,
    /// Networks to measure (`fairtte list backbones`), each in a process of its own
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_values = ["efficientnet-b0", "resnet18", "resnet18-3d"]
    )]
    pub backbone: Vec<String>,
    /// Channels and size of a sample, for example 3x224x224, or 16 columns of a table; the paper's sizes if not given:
    /// 3x224x224 of pictures, 3x96x128x128 of volumes, 16 columns
    #[arg(long, value_name = "SHAPE")]
    pub shape: Option<String>,
    /// Samples of a batch; 16 pictures, 2 volumes or 256 rows of a table if not given
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// Precision of the activations in training: f32, bf16 or f16; prediction is always in f32
    #[arg(long, value_name = "NAME", default_value = "f32")]
    pub precision: String,
    /// Seconds of training steps, and of inference, that are measured of each network after the first; at least three of each
    #[arg(long, value_name = "S", default_value_t = 10.0, allow_negative_numbers = true)]
    pub seconds: f64,
    /// Samples of a data set: the hours that training on it and predicting it take are shown
    #[arg(long, value_name = "N")]
    pub samples: Option<u64>,
    /// Epochs of that training
    #[arg(long, value_name = "N", default_value_t = 1, requires = "samples")]
    pub epochs: u64,
    /// Do not measure the types of layers, which is done on `flex`
    #[arg(long)]
    pub no_layers: bool,
    /// File of the results in JSON
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
fairtte bench
fairtte bench --device cuda:0 --backbone efficientnet-b0 --batch 64 --samples 377110 --epochs 20
fairtte bench --backbone resnet18-3d --shape 1x48x64x64 --batch 2 --json
fairtte bench --backbone efficientnet-b0 --threads 1,2,4,8,16 --no-layers

Steps are forward pass, gradients and AdamW on the backbone alone; reading images, validation and the evaluation come on top.
Memory is what the device has reserved where it says it, otherwise the peak of the process on the host.";
