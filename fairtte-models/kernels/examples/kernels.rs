//! Prints a table of the instruction set that the kernels use on this machine, and of the time that each set takes.
//!
//! `cargo run --release -p fairtte-kernels --example kernels`. The table shows the factor that a silent fallback from
//! the best set to the baseline costs; a test asserts that the best set is in use. Each set runs in a process of its
//! own, because it is chosen once, by the environment variable `FAIRTTE_ISA`.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::process::Command;
use std::time::Instant;

use fairtte_kernels::conv::{self, ConvShape};
use fairtte_kernels::norm::{batch_norm, layer_norm};
use fairtte_kernels::{Activation, InstructionSet, activation, attention, linear, simd};

const N_RUNS: usize = 15;

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some("--measure") {
        for (name, seconds) in measure() {
            println!("{name}\t{seconds}");
        }
        return Ok(());
    }
    let sets: Vec<_> = InstructionSet::ALL.into_iter().filter(|set| set.is_available()).collect();
    println!("in use: {}, best of this CPU: {}\n", InstructionSet::in_use().name(), InstructionSet::best().name());
    let mut columns = Vec::new();
    for set in &sets {
        let run = Command::new(std::env::current_exe()?).arg("--measure").env(simd::VARIABLE, set.name()).output()?;
        let text = String::from_utf8(run.stdout)?;
        columns.push(text.lines().map(parsed).collect::<Result<Vec<_>, _>>()?);
    }
    let best = columns.first().ok_or("no instruction set")?;
    let heads: Vec<_> = sets.iter().map(|set| format!("{} (ms)", set.name())).collect();
    println!("| kernel | {} | slowest / fastest |\n|---|{}---|", heads.join(" | "), "---|".repeat(sets.len()));
    for (row, (name, _)) in best.iter().enumerate() {
        let times: Vec<f64> = columns.iter().map(|column| column[row].1).collect();
        let cells: Vec<_> = times.iter().map(|seconds| format!("{:.2}", 1e3 * seconds)).collect();
        let (fastest, slowest) =
            (times.iter().copied().fold(f64::MAX, f64::min), times.iter().copied().fold(0.0, f64::max));
        println!("| {name} | {} | {:.1} |", cells.join(" | "), slowest / fastest);
    }
    Ok(())
}

fn parsed(line: &str) -> Result<(String, f64), Box<dyn Error>> {
    let (name, seconds) = line.split_once('\t').ok_or("a line of two columns")?;
    Ok((name.to_owned(), seconds.parse()?))
}

/// Medians of the kernels at shapes of EfficientNet-B0, ResNet-18 (pictures and volumes) and ViT-B/16.
fn measure() -> Vec<(&'static str, f64)> {
    let flat = |inputs, outputs, side, kernel, stride, groups| ConvShape {
        batch: 4,
        inputs,
        outputs,
        size: [1, side, side],
        kernel: [1, kernel, kernel],
        stride: [1, stride, stride],
        padding: [0, kernel / 2, kernel / 2],
        groups,
    };
    let deep = ConvShape { size: [12, 16, 16], kernel: [3; 3], padding: [1; 3], ..flat(128, 128, 0, 1, 1, 1) };
    let mut found = Vec::new();
    for (name, shape) in [
        ("1 x 1 convolution, 40 -> 240 at 28 x 28", flat(40, 240, 28, 1, 1, 1)),
        ("depthwise 5 x 5, 240 at 28 x 28", flat(240, 240, 28, 5, 1, 240)),
        ("depthwise 3 x 3 at stride 2, 96 at 112 x 112", flat(96, 96, 112, 3, 2, 96)),
        ("convolution 3 x 3, 64 -> 64 at 56 x 56", flat(64, 64, 56, 3, 1, 1)),
        ("convolution 3 x 3 x 3, 128 -> 128 at 12 x 16 x 16", deep),
    ] {
        let [of_x, of_weight, of_y] = shape.lengths();
        let (x, weight, mut y) = (wave(of_x), wave(of_weight), vec![0.0; of_y]);
        let (mut dx, mut d_weight, dy) = (vec![0.0; of_x], vec![0.0; of_weight], wave(of_y));
        let seconds = median(|| {
            conv::forward(&x, &weight, None, Activation::Identity, &shape, &mut y);
            conv::gradients(&x, &weight, &dy, &shape, Some(&mut dx), Some(&mut d_weight));
        });
        found.push((name, seconds));
    }
    found.extend(pointwise());
    found.extend(tokens());
    found
}

fn pointwise() -> [(&'static str, f64); 2] {
    let (channels, plane) = (96, 56 * 56);
    let x = wave(4 * channels * plane);
    let (mut y, mut gradient) = (vec![0.0; x.len()], wave(x.len()));
    let (ones, zeros) = (vec![1.0; channels], vec![0.0; channels]);
    let layer = batch_norm::Layer { plane, gamma: &ones, beta: &zeros, activation: Activation::Silu };
    let norm = median(|| {
        let found = batch_norm::forward(&x, &layer, 1e-5, &mut y);
        batch_norm::gradients(&x, &layer, found.normalisation(), &mut gradient);
    });
    let mut gradient = wave(x.len());
    let gelu = median(|| {
        activation::forward(Activation::Gelu, &x, &mut y);
        activation::gradient(Activation::Gelu, &x, &mut gradient);
    });
    [("batch norm and SiLU, 4 x 96 x 56 x 56", norm), ("GELU, 1.2 million values", gelu)]
}

fn tokens() -> [(&'static str, f64); 3] {
    let (rows, width, heads) = (2 * 197, 768, 12);
    let x = wave(rows * width);
    let (weight, mut y) = (wave(width * 3 * width), vec![0.0; rows * 3 * width]);
    let (mut dx, mut d_weight, dy) = (vec![0.0; x.len()], vec![0.0; weight.len()], wave(y.len()));
    let sizes = [rows, width, 3 * width];
    let dense = median(|| {
        linear::forward(&x, &weight, sizes, None, Activation::Identity, &mut y);
        linear::gradients(&x, &weight, &dy, sizes, Some(&mut dx), Some(&mut d_weight), None);
    });
    let shape = [2, 197, heads, width / heads];
    let (qkv, mut mixed) = (wave(rows * 3 * width), vec![0.0; rows * width]);
    let mut of_scores = vec![attention::Row::default(); rows * heads];
    let mut d_qkv = vec![0.0; qkv.len()];
    let attended = median(|| {
        attention::forward(&qkv, shape, &mut mixed, Some(&mut of_scores));
        attention::gradients(&qkv, &mixed, &of_scores, &x, shape, &mut d_qkv);
    });
    let (ones, zeros) = (vec![1.0; width], vec![0.0; width]);
    let (mut normed, mut gradient) = (vec![0.0; x.len()], wave(x.len()));
    let [mut mean, mut deviation] = [vec![0.0; rows], vec![0.0; rows]];
    let (mut d_gamma, mut d_beta) = (vec![0.0; width], vec![0.0; width]);
    let norm = median(|| {
        layer_norm::forward(&x, width, &ones, &zeros, 1e-6, &mut normed, Some([&mut mean, &mut deviation]));
        layer_norm::gradients(&x, width, &ones, &mean, &deviation, &mut gradient, &mut d_gamma, &mut d_beta);
    });
    [
        ("linear layer, 394 x 768 -> 2304", dense),
        ("attention, 2 x 197 tokens, 12 heads of 64", attended),
        ("layer norm, 394 x 768", norm),
    ]
}

fn wave(n: usize) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "a sine fits into single precision")]
    (0..n).map(|index| (0.37 * index as f64).sin() as f32).collect()
}

fn median(mut run: impl FnMut()) -> f64 {
    let mut seconds: Vec<f64> = (0..=N_RUNS)
        .map(|_| {
            let clock = Instant::now();
            run();
            clock.elapsed().as_secs_f64()
        })
        .skip(1)
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds[N_RUNS / 2]
}
