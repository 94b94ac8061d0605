//! The loops of batch normalisation over the parts of one channel.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use crate::activation::Curve;
use crate::norm::batch_norm::{Affine, Backward, Channel};
use crate::norm::moments::{BLOCK, Segment};
use crate::simd::lanes::{last_lanes, load_last, masked, store_last, total};
use crate::simd::{Kernel, Vectors};

/// values = activation((x - mean) scale + shift).
pub(super) struct Normalise<'a, 'b, C> {
    pub(super) segments: &'a mut [Segment<'b>],
    pub(super) affine: Affine,
    pub(super) curve: C,
}

impl<C: Curve> Kernel for Normalise<'_, '_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let mean = simd.splat_f32s(self.affine.mean);
        let scale = simd.splat_f32s(self.affine.scale);
        let shift = simd.splat_f32s(self.affine.shift);
        for Segment { x, values } in self.segments {
            let vectors = S::as_mut_simd_f32s(values).0.iter_mut().zip(S::as_simd_f32s(x).0);
            for (value, &x) in vectors {
                let normalised = simd.multiply_add(simd.sub_f32s(x, mean), scale, shift);
                *value = self.curve.value(simd, normalised);
            }
            if !x.len().is_multiple_of(S::F32_LANES) {
                let normalised = simd.multiply_add(simd.sub_f32s(load_last(simd, x), mean), scale, shift);
                store_last(simd, values, self.curve.value(simd, normalised));
            }
        }
    }
}

/// values = activation(values scale + shift).
pub(super) struct Apply<'a, C> {
    pub(super) scale: f32,
    pub(super) shift: f32,
    pub(super) curve: C,
    pub(super) values: &'a mut [f32],
}

impl<C: Curve> Kernel for Apply<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let (scale, shift) = (simd.splat_f32s(self.scale), simd.splat_f32s(self.shift));
        let last = load_last(simd, self.values);
        for value in S::as_mut_simd_f32s(self.values).0 {
            *value = self.curve.value(simd, simd.multiply_add(*value, scale, shift));
        }
        if !self.values.len().is_multiple_of(S::F32_LANES) {
            let value = self.curve.value(simd, simd.multiply_add(last, scale, shift));
            store_last(simd, self.values, value);
        }
    }
}

/// A channel in registers.
#[derive(Clone, Copy)]
struct Parameters<S: Vectors> {
    mean: S::f32s,
    inverse_deviation: S::f32s,
    offset: S::f32s,
    gamma: S::f32s,
    beta: S::f32s,
}

impl<S: Vectors> Parameters<S> {
    #[inline(always)]
    fn new(simd: S, channel: Channel) -> Self {
        Self {
            mean: simd.splat_f32s(channel.mean),
            inverse_deviation: simd.splat_f32s(channel.inverse_deviation),
            offset: simd.splat_f32s(channel.offset),
            gamma: simd.splat_f32s(channel.gamma),
            beta: simd.splat_f32s(channel.beta),
        }
    }

    #[inline(always)]
    fn normalised(&self, simd: S, x: S::f32s) -> S::f32s {
        simd.multiply_add(simd.sub_f32s(x, self.mean), self.inverse_deviation, self.offset)
    }

    /// h and q.
    #[inline(always)]
    fn backward<C: Curve>(&self, simd: S, curve: C, x: S::f32s, gradient: S::f32s) -> (S::f32s, S::f32s) {
        let h = self.normalised(simd, x);
        (h, curve.backward(simd, simd.multiply_add(h, self.gamma, self.beta), gradient))
    }
}

/// Sums of q and of q h. A costly q replaces the gradient, so that [`Finish`] can read it.
pub(super) struct Sums<'a, 'b, C> {
    pub(super) segments: &'a mut [Segment<'b>],
    pub(super) channel: Channel,
    pub(super) curve: C,
}

impl<C: Curve> Kernel for Sums<'_, '_, C> {
    type Output = [f64; 2];

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) -> [f64; 2] {
        let parameters = Parameters::new(simd, self.channel);
        let mut sums = Totals::new(simd);
        for Segment { x, values } in self.segments {
            for (x, values) in x.chunks(BLOCK).zip(values.chunks_mut(BLOCK)) {
                let rest = x.len() % S::F32_LANES;
                let last = load_last(simd, values);
                let vectors = S::as_mut_simd_f32s(values).0.iter_mut().zip(S::as_simd_f32s(x).0);
                for (lane, (value, &x)) in vectors.enumerate() {
                    let (h, q) = parameters.backward(simd, self.curve, x, *value);
                    if C::COSTLY {
                        *value = q;
                    }
                    sums.add(simd, lane % 2, h, q);
                }
                if rest != 0 {
                    let (h, q) = parameters.backward(simd, self.curve, load_last(simd, x), last);
                    if C::COSTLY {
                        store_last(simd, values, q);
                    }
                    let mask = last_lanes(simd, rest);
                    sums.add(simd, 0, masked(simd, mask, h), masked(simd, mask, q));
                }
                sums.count(simd, x.len());
            }
        }
        sums.finish(simd)
    }
}

/// Sums in single precision that are added to totals before they have many terms.
struct Totals<S: Vectors> {
    constant: [S::f32s; 2],
    slope: [S::f32s; 2],
    count: usize,
    double: [f64; 2],
}

impl<S: Vectors> Totals<S> {
    #[inline(always)]
    fn new(simd: S) -> Self {
        let zero = simd.splat_f32s(0.0);
        Self { constant: [zero; 2], slope: [zero; 2], count: 0, double: [0.0; 2] }
    }

    #[inline(always)]
    fn add(&mut self, simd: S, lane: usize, h: S::f32s, q: S::f32s) {
        self.constant[lane] = simd.add_f32s(self.constant[lane], q);
        self.slope[lane] = simd.multiply_add(q, h, self.slope[lane]);
    }

    #[inline(always)]
    fn count(&mut self, simd: S, count: usize) {
        self.count += count;
        if self.count >= BLOCK {
            *self = Self { double: self.sums(simd), ..Self::new(simd) };
        }
    }

    #[inline(always)]
    fn sums(&self, simd: S) -> [f64; 2] {
        let sum = |pair: [S::f32s; 2]| total(simd, simd.add_f32s(pair[0], pair[1]));
        [self.double[0] + sum(self.constant), self.double[1] + sum(self.slope)]
    }

    #[inline(always)]
    fn finish(self, simd: S) -> [f64; 2] {
        self.sums(simd)
    }
}

/// values = dx, from x and from q or the gradient that [`Sums`] left.
pub(super) struct Finish<'a, 'b, C> {
    pub(super) segments: &'a mut [Segment<'b>],
    pub(super) channel: Channel,
    pub(super) backward: Backward,
    pub(super) curve: C,
}

impl<C: Curve> Kernel for Finish<'_, '_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let parameters = Parameters::new(simd, self.channel);
        let factor = simd.splat_f32s(self.backward.factor);
        let slope = simd.splat_f32s(self.backward.slope);
        let constant = simd.splat_f32s(self.backward.constant);
        for Segment { x, values } in self.segments {
            let last = load_last(simd, values);
            let vectors = S::as_mut_simd_f32s(values).0.iter_mut().zip(S::as_simd_f32s(x).0);
            for (value, &x) in vectors {
                let (h, q) = finish_backward(simd, &parameters, self.curve, x, *value);
                *value = simd.multiply_add(q, factor, simd.multiply_add(h, slope, constant));
            }
            if !x.len().is_multiple_of(S::F32_LANES) {
                let (h, q) = finish_backward(simd, &parameters, self.curve, load_last(simd, x), last);
                let value = simd.multiply_add(q, factor, simd.multiply_add(h, slope, constant));
                store_last(simd, values, value);
            }
        }
    }
}

/// h and q, where `value` is q already if that is costly.
#[inline(always)]
fn finish_backward<S: Vectors, C: Curve>(
    simd: S,
    parameters: &Parameters<S>,
    curve: C,
    x: S::f32s,
    value: S::f32s,
) -> (S::f32s, S::f32s) {
    if C::COSTLY {
        return (parameters.normalised(simd, x), value);
    }
    parameters.backward(simd, curve, x, value)
}
