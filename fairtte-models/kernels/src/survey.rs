//! How fast the kernels are on this machine, beside what its processors can do at most.
//!
//! Every layer is measured at a shape that the networks of FairTTE have, with the instruction set and the threads in use.

use std::hint::black_box;
use std::time::Instant;

use crate::conv::{self, ConvKind, ConvShape};
use crate::norm::{batch_norm, layer_norm};
use crate::simd::{self, Kernel, Vectors};
use crate::{Activation, activation, attention, linear};

/// Runs of every layer that are timed, after one that is not.
const RUNS: usize = 15;

/// Time of one layer: its output and all of its gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layer {
    /// What is computed, with its shape.
    pub name: &'static str,
    /// How: the algorithm that the kernels chose for this shape.
    pub algorithm: &'static str,
    /// Median time in seconds.
    pub seconds: f64,
    /// Multiplications and additions of the sums that define the results; `None` if the layer computes few per value, so that
    /// memory limits it. Winograd's convolution needs fewer than this number.
    pub operations: Option<f64>,
}

/// Measures every type of layer; takes a few seconds.
pub fn layers() -> Vec<Layer> {
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
    let mut found: Vec<Layer> = [
        ("1 x 1 convolution, 40 -> 240, 28 x 28", flat(40, 240, 28, 1, 1, 1)),
        ("5 x 5 depthwise, 240, 28 x 28", flat(240, 240, 28, 5, 1, 240)),
        ("3 x 3 depthwise, stride 2, 96, 112 x 112", flat(96, 96, 112, 3, 2, 96)),
        ("3 x 3 convolution, 64 -> 64, 56 x 56", flat(64, 64, 56, 3, 1, 1)),
        ("3 x 3 convolution, stride 2, 64 -> 128, 56 x 56", flat(64, 128, 56, 3, 2, 1)),
        ("3 x 3 x 3 convolution, 128 -> 128, 12 x 16 x 16", deep),
    ]
    .map(|(name, shape)| convolution(name, &shape))
    .into();
    found.extend(pointwise());
    found.extend(tokens());
    found
}

/// Operations per second that the instruction set in use reaches on all threads of the current rayon pool with numbers in
/// registers: fused multiply-adds count twice. The best of runs of a few milliseconds each in half a second, long
/// enough for the system to move apart two threads that it woke on one core.
pub fn peak() -> f64 {
    const STEPS: usize = 2_000_000;
    let run = || {
        let clock = Instant::now();
        let operations: f64 = rayon::broadcast(|_| simd::run(MultiplyAdd { steps: STEPS })).iter().sum();
        operations / clock.elapsed().as_secs_f64()
    };
    let began = Instant::now();
    std::iter::repeat_with(run).take_while(|_| began.elapsed().as_secs_f64() < 0.5).fold(run(), f64::max)
}

/// Multiply-adds on enough independent sums to fill the pipelines of the processor; gives their number of operations.
struct MultiplyAdd {
    steps: usize,
}

impl Kernel for MultiplyAdd {
    type Output = f64;

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) -> f64 {
        let (factor, term) = (simd.splat_f32s(black_box(0.999)), simd.splat_f32s(black_box(0.001)));
        let mut sums = [simd.splat_f32s(black_box(1.0)); 12];
        for _ in 0..self.steps {
            for sum in &mut sums {
                *sum = simd.multiply_add(*sum, factor, term);
            }
        }
        let total = sums.into_iter().fold(simd.splat_f32s(0.0), |total, sum| simd.add_f32s(total, sum));
        black_box(simd.reduce_sum_f32s(total));
        (2 * S::F32_LANES * sums.len() * self.steps) as f64
    }
}

fn convolution(name: &'static str, shape: &ConvShape) -> Layer {
    let [of_x, of_weight, of_y] = shape.lengths();
    let (x, weight, mut y) = (wave(of_x), wave(of_weight), vec![0.0; of_y]);
    let (mut dx, mut d_weight, dy) = (vec![0.0; of_x], vec![0.0; of_weight], wave(of_y));
    let seconds = median(|| {
        conv::forward(&x, &weight, None, Activation::Identity, shape, &mut y);
        conv::gradients(&x, &weight, &dy, shape, Some(&mut dx), Some(&mut d_weight));
    });
    let algorithm = match shape.kind() {
        Some(ConvKind::Pointwise) => "GEMM",
        Some(ConvKind::Depthwise) => "direct",
        _ if conv::has_fewer_products(shape) => "Winograd",
        _ => "implicit GEMM",
    };
    let of_output = shape.inputs / shape.groups * shape.taps();
    Layer { name, algorithm, seconds, operations: Some((3 * 2 * of_y * of_output) as f64) }
}

fn pointwise() -> [Layer; 2] {
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
    [
        Layer { name: "batch norm and SiLU, 4 x 96 x 56 x 56", algorithm: "fused", seconds: norm, operations: None },
        Layer { name: "GELU, 1.2 million values", algorithm: "vectors", seconds: gelu, operations: None },
    ]
}

fn tokens() -> [Layer; 3] {
    let (n_rows, width, heads) = (2 * 197, 768, 12);
    let x = wave(n_rows * width);
    let (weight, mut y) = (wave(width * 3 * width), vec![0.0; n_rows * 3 * width]);
    let (mut dx, mut d_weight, dy) = (vec![0.0; x.len()], vec![0.0; weight.len()], wave(y.len()));
    let sizes = [n_rows, width, 3 * width];
    let dense = median(|| {
        linear::forward(&x, &weight, sizes, None, Activation::Identity, &mut y);
        linear::gradients(&x, &weight, &dy, sizes, Some(&mut dx), Some(&mut d_weight), None);
    });
    let shape = [2, 197, heads, width / heads];
    let (qkv, mut mixed) = (wave(n_rows * 3 * width), vec![0.0; n_rows * width]);
    let mut of_scores = vec![attention::Row::default(); n_rows * heads];
    let mut d_qkv = vec![0.0; qkv.len()];
    let attended = median(|| {
        attention::forward(&qkv, shape, &mut mixed, Some(&mut of_scores));
        attention::gradients(&qkv, &mixed, &of_scores, &x, shape, &mut d_qkv);
    });
    let (ones, zeros) = (vec![1.0; width], vec![0.0; width]);
    let (mut normed, mut gradient) = (vec![0.0; x.len()], wave(x.len()));
    let [mut mean, mut deviation] = [vec![0.0; n_rows], vec![0.0; n_rows]];
    let (mut d_gamma, mut d_beta) = (vec![0.0; width], vec![0.0; width]);
    let norm = median(|| {
        layer_norm::forward(&x, width, &ones, &zeros, 1e-6, &mut normed, Some([&mut mean, &mut deviation]));
        layer_norm::gradients(&x, width, &ones, &mean, &deviation, &mut gradient, &mut d_gamma, &mut d_beta);
    });
    // Two products forward and four for the gradients, each a multiplication and an addition per pair of tokens and column.
    let products = (6 * 2 * 2 * 197 * 197 * width) as f64;
    [
        Layer {
            name: "linear layer, 394 x 768 -> 2304",
            algorithm: "GEMM",
            seconds: dense,
            operations: Some((3 * 2 * n_rows * width * 3 * width) as f64),
        },
        Layer {
            name: "attention, 2 x 197 tokens, 12 heads of 64",
            algorithm: "row by row",
            seconds: attended,
            operations: Some(products),
        },
        Layer { name: "layer norm, 394 x 768", algorithm: "fused", seconds: norm, operations: None },
    ]
}

fn wave(n: usize) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "a sine fits into single precision")]
    (0..n).map(|index| (0.37 * index as f64).sin() as f32).collect()
}

fn median(mut run: impl FnMut()) -> f64 {
    run();
    let mut seconds: Vec<f64> = (0..RUNS)
        .map(|_| {
            let clock = Instant::now();
            run();
            clock.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds[RUNS / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of operations is that of the loop: on the plainest set a multiplication and an addition of four values.
    #[test]
    fn a_multiply_add_counts_two_operations_of_every_lane() {
        let lanes = match simd::InstructionSet::in_use() {
            simd::InstructionSet::Avx512 => 16.0,
            simd::InstructionSet::Avx2 => 8.0,
            simd::InstructionSet::Baseline => 4.0,
        };
        let counted = simd::run(MultiplyAdd { steps: 5 });
        assert!((counted - 2.0 * lanes * 12.0 * 5.0).abs() < 1e-9, "{counted}");
    }

    #[test]
    fn the_algorithm_named_is_the_one_that_runs() {
        let shape = |side, channels| ConvShape {
            batch: 1,
            inputs: channels,
            outputs: channels,
            size: [1, side, side],
            kernel: [1, 3, 3],
            stride: [1; 3],
            padding: [0, 1, 1],
            groups: 1,
        };
        assert_eq!(convolution("wide", &shape(28, 64)).algorithm, "Winograd");
        let narrow = convolution("narrow", &shape(8, 4));
        assert_eq!(narrow.algorithm, "implicit GEMM");
        // 64 places x 4 outputs x 4 inputs x 9 taps, forward and two gradients, two operations each.
        assert_eq!(narrow.operations, Some(55_296.0));
    }
}
