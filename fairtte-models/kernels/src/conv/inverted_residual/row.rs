//! A linear layer of one row, whose weights are turned once for all rows.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use super::Layer;
use crate::activation::{self, Activation};
use crate::gemm::{self, SLACK};
use crate::simd::lanes::{LONGEST, load, load_rest, store, store_rest};
use crate::simd::{self, Kernel, Vectors};

/// Vectors of outputs side by side.
const VECTORS: usize = 4;

/// A layer with its weights as `[inputs][outputs]`.
pub(super) struct Turned<'a> {
    weights: &'a [f32],
    bias: &'a [f32],
}

/// Length of the buffer of the turned weights.
pub(super) fn turned_length(inputs: usize, outputs: usize) -> usize {
    inputs * outputs + SLACK + LONGEST
}

impl<'a> Turned<'a> {
    /// `turned` has [`turned_length`]; the layer has no factors.
    pub fn new(layer: &Layer<'a>, [inputs, outputs]: [usize; 2], turned: &'a mut [f32]) -> Self {
        assert!(layer.scale.is_none(), "a layer without batch norm");
        gemm::transpose(layer.weights, inputs, inputs, outputs, outputs, turned);
        Self { weights: turned, bias: layer.bias }
    }

    /// `activation(x w + bias)`: sums in the order and in the blocks of [`gemm::product`], because they decide the last bits.
    pub fn forward(&self, x: &[f32], activation: Activation, y: &mut [f32]) {
        let (steps, outputs) = (x.len(), self.bias.len());
        for steps in gemm::sum_blocks(steps) {
            let (weights, add) = (&self.weights[steps.start * outputs..], steps.start > 0);
            simd::run(Sums { x: &x[steps], weights, add, y });
        }
        y.iter_mut().zip(self.bias).for_each(|(y, bias)| *y += bias);
        activation::in_place(activation, y);
    }
}

struct Sums<'a> {
    x: &'a [f32],
    weights: &'a [f32],
    add: bool,
    y: &'a mut [f32],
}

impl Kernel for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { x, weights, add, y } = self;
        let outputs = y.len();
        let several = VECTORS * S::F32_LANES;
        let mut first = 0;
        while first + several <= outputs {
            write::<S, VECTORS>(simd, x, weights, outputs, first, add, y);
            first += several;
        }
        while first < outputs {
            write::<S, 1>(simd, x, weights, outputs, first, add, y);
            first += S::F32_LANES;
        }
    }
}

/// The outputs from `first` on, `N` vectors or as many as are left.
#[inline(always)]
fn write<S: Vectors, const N: usize>(
    simd: S,
    x: &[f32],
    weights: &[f32],
    outputs: usize,
    first: usize,
    add: bool,
    y: &mut [f32],
) {
    let mut sums = [simd.splat_f32s(0.0); N];
    for (step, &x) in x.iter().enumerate() {
        let row = &weights[step * outputs + first..][..N * S::F32_LANES];
        for (index, sum) in sums.iter_mut().enumerate() {
            *sum = simd.multiply_add(simd.splat_f32s(x), load(simd, row, index * S::F32_LANES), *sum);
        }
    }
    for (index, &sum) in sums.iter().enumerate() {
        let at = first + index * S::F32_LANES;
        let rest = &mut y[at..];
        if rest.len() >= S::F32_LANES {
            let sum = if add { simd.add_f32s(load(simd, rest, 0), sum) } else { sum };
            store(simd, rest, 0, sum);
        } else {
            let sum = if add { simd.add_f32s(load_rest(simd, rest), sum) } else { sum };
            store_rest(simd, rest, sum);
        }
    }
}
