//! Features of made-up pictures and volumes: the backbones, what they read and give, and what noise and seed change.
//!
//! `cargo run --release -p fairtte-models --example features [-- WEIGHTS]`
//!
//! WEIGHTS is a file of pre-trained ResNet-18 weights (torchvision, `.pth` or `.safetensors`); without it weights are
//! drawn from a seed.

#![expect(clippy::print_stdout, reason = "an example prints what it computed")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use burn::module::Module as _;
use burn::tensor::{Device, Tensor};
use fairtte_metrics::seeds::stream;
use fairtte_models::weights::{Fit, Gray, Layout, WeightFile};
use fairtte_models::{BackboneKind, EncoderConfig, Noise, Pixels, initialise};

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::flex();

    // Two pictures: a bright disc on black, and the same disc further right.
    let side = 64;
    let films = Pixels::from_host([disc(side, 24), disc(side, 40)].concat(), vec![2, 1, side, side], &device)?;

    println!("{:<22} {:<16} {:>8} {:>11} {:>6}", "backbone", "input", "features", "parameters", "ms");
    for kind in [BackboneKind::Small2d, BackboneKind::ResNet18, BackboneKind::Small3d] {
        let input = if kind.n_axes() == 3 { volumes(&device) } else { films.clone() };
        let shape = format!("{:?}", input.shape());
        let backbone = initialise(kind.build(1, &device), stream(7, "weights", &[]));
        let begin = Instant::now();
        let features = numbers(backbone.forward(input, &mut Noise::Off)?)?; // [2, n_features]
        let (ms, n) = (begin.elapsed().as_secs_f64() * 1e3, features.len() / 2);
        println!("{:<22} {shape:<16} {n:>8} {:>11} {ms:>6.1}", kind.name(), backbone.num_params());
    }

    // An encoder is a backbone, a linear layer to a short representation, and dropout.
    let config = EncoderConfig { representation: 8, ..EncoderConfig::new(BackboneKind::Small2d) };
    config.validate()?;
    let encoder = |seed| initialise(config.build(1, &device), stream(seed, "weights", &[]));
    let represent = |seed, noise: &mut Noise| numbers(encoder(seed).forward(films.clone(), noise)?);
    let without = represent(7, &mut Noise::Off)?;
    println!("\nrepresentation of the first picture: {}", shown(&without[..8]));
    println!("representation of the second:        {}", shown(&without[8..]));
    let dropped = represent(7, &mut Noise::on(stream(7, "dropout", &[0])))?;
    println!("the first with dropout 0.5:          {}", shown(&dropped[..8]));
    println!("the same seed gives the same numbers: {}", without == represent(7, &mut Noise::Off)?);
    println!("another seed gives others:            {}", without != represent(8, &mut Noise::Off)?);

    // A backbone refuses what it cannot read.
    if let Err(error) = encoder(7).forward(volumes(&device), &mut Noise::Off) {
        println!("\na volume: {error}");
    }

    // Published weights have three input channels; for gray pictures their sum is one.
    if let Some(path) = std::env::args().nth(1) {
        let backbone = BackboneKind::ResNet18.build(1, &device);
        let file = WeightFile::open(Path::new(&path))?;
        let fit = Fit::new(&file, &backbone, Layout::Auto, Gray::Sum)?;
        println!("\n{path}: {} tensors match, {} are missing", fit.matched().len(), fit.missing().len());
        let features = numbers(fit.load(backbone)?.forward(films, &mut Noise::Off)?)?;
        println!("pre-trained features begin with {}", shown(&features[..8]));
    }
    Ok(())
}

/// A picture `[side, side]`, row by row: 1 in a disc whose centre is in the middle row, 0 elsewhere.
fn disc(side: usize, centre: usize) -> Vec<f32> {
    let inside = |row: usize, column: usize| row.abs_diff(side / 2).pow(2) + column.abs_diff(centre).pow(2) < 100;
    (0..side * side).map(|at| if inside(at / side, at % side) { 1.0 } else { 0.0 }).collect()
}

/// Two volumes, `[batch, channels, depth, height, width]`.
fn volumes(device: &Device) -> Pixels {
    Pixels::Volume(Tensor::ones([2, 1, 16, 24, 24], device))
}

fn numbers(tensor: Tensor<2>) -> Result<Vec<f32>, Box<dyn Error>> {
    tensor.into_data().try_to_vec().map_err(|error| format!("{error:?}").into())
}

fn shown(values: &[f32]) -> String {
    values.iter().map(|value| format!("{value:>8.4}")).collect::<Vec<_>>().join(" ")
}
