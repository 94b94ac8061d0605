//! The loops over one plane, in which h is computed from x in registers.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use crate::activation::Curve;
use crate::norm::batch_norm::Affine;
use crate::simd::lanes::{last_lanes, load_last, masked, store_last, total};
use crate::simd::{Kernel, Vectors};

/// Values whose sum is taken in single precision, as in `pooling` and `gate`.
const BLOCK: usize = 1 << 12;

/// Norm and activation of a channel, in registers.
#[derive(Clone, Copy)]
struct Normalised<S: Vectors, C> {
    simd: S,
    mean: S::f32s,
    scale: S::f32s,
    shift: S::f32s,
    curve: C,
}

impl<S: Vectors, C: Curve> Normalised<S, C> {
    #[inline(always)]
    fn new(simd: S, affine: Affine, curve: C) -> Self {
        let Affine { mean, scale, shift } = affine;
        let [mean, scale, shift] = [simd.splat_f32s(mean), simd.splat_f32s(scale), simd.splat_f32s(shift)];
        Self { simd, mean, scale, shift, curve }
    }

    #[inline(always)]
    fn value(self, x: S::f32s) -> S::f32s {
        let centred = self.simd.sub_f32s(x, self.mean);
        self.curve.value(self.simd, self.simd.multiply_add(centred, self.scale, self.shift))
    }
}

/// y = h gate.
pub(super) struct Gated<'a, C> {
    pub(super) x: &'a [f32],
    pub(super) affine: Affine,
    pub(super) curve: C,
    pub(super) gate: f32,
    pub(super) y: &'a mut [f32],
}

impl<C: Curve> Kernel for Gated<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let Self { x, affine, curve, gate, y } = self;
        let (normalised, gate) = (Normalised::new(simd, affine, curve), simd.splat_f32s(gate));
        for (y, &x) in S::as_mut_simd_f32s(y).0.iter_mut().zip(S::as_simd_f32s(x).0) {
            *y = simd.mul_f32s(normalised.value(x), gate);
        }
        if !x.len().is_multiple_of(S::F32_LANES) {
            store_last(simd, y, simd.mul_f32s(normalised.value(load_last(simd, x)), gate));
        }
    }
}

/// The sum of h, in the order of [`pooling::average`](crate::pooling::average).
pub(super) struct Means<'a, C> {
    pub(super) x: &'a [f32],
    pub(super) affine: Affine,
    pub(super) curve: C,
}

impl<C: Curve> Kernel for Means<'_, C> {
    type Output = f64;

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) -> f64 {
        let normalised = Normalised::new(simd, self.affine, self.curve);
        let mut sum = 0.0;
        for block in self.x.chunks(BLOCK) {
            let zero = simd.splat_f32s(0.0);
            let (mut even, mut odd) = (zero, zero);
            let (pairs, last) = S::as_simd_f32s(block).0.as_chunks::<2>();
            for &[first, second] in pairs {
                even = simd.add_f32s(even, normalised.value(first));
                odd = simd.add_f32s(odd, normalised.value(second));
            }
            for &vector in last {
                even = simd.add_f32s(even, normalised.value(vector));
            }
            let rest = block.len() % S::F32_LANES;
            if rest != 0 {
                let vector = normalised.value(load_last(simd, block));
                even = simd.add_f32s(even, masked(simd, last_lanes(simd, rest), vector));
            }
            sum += total(simd, simd.add_f32s(even, odd));
        }
        sum
    }
}

/// The sum of the products of h and dy, in the order of [`gate::gradients`](crate::gate::gradients).
pub(super) struct Products<'a, C> {
    pub(super) x: &'a [f32],
    pub(super) affine: Affine,
    pub(super) curve: C,
    pub(super) dy: &'a [f32],
}

impl<C: Curve> Kernel for Products<'_, C> {
    type Output = f64;

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) -> f64 {
        let normalised = Normalised::new(simd, self.affine, self.curve);
        let mut sum = 0.0;
        for (x, dy) in self.x.chunks(BLOCK).zip(self.dy.chunks(BLOCK)) {
            let rest = x.len() % S::F32_LANES;
            let last = (load_last(simd, x), load_last(simd, dy));
            let ((x, x_rest), (dy, dy_rest)) =
                (S::as_simd_f32s(x).0.as_chunks::<4>(), S::as_simd_f32s(dy).0.as_chunks::<4>());
            let zero = simd.splat_f32s(0.0);
            let (mut first, mut second, mut third, mut fourth) = (zero, zero, zero, zero);
            for (x, dy) in x.iter().zip(dy) {
                first = simd.multiply_add(dy[0], normalised.value(x[0]), first);
                second = simd.multiply_add(dy[1], normalised.value(x[1]), second);
                third = simd.multiply_add(dy[2], normalised.value(x[2]), third);
                fourth = simd.multiply_add(dy[3], normalised.value(x[3]), fourth);
            }
            for (&x, &dy) in x_rest.iter().zip(dy_rest) {
                first = simd.multiply_add(dy, normalised.value(x), first);
            }
            if rest != 0 {
                let product = simd.mul_f32s(last.1, normalised.value(last.0));
                second = simd.add_f32s(second, masked(simd, last_lanes(simd, rest), product));
            }
            let sums = simd.add_f32s(simd.add_f32s(first, second), simd.add_f32s(third, fourth));
            sum += total(simd, sums);
        }
        sum
    }
}

/// values = values factor + shift, rounded twice as two layers do.
pub(super) struct ScaleAndShift<'a> {
    pub(super) factor: f32,
    pub(super) shift: f32,
    pub(super) values: &'a mut [f32],
}

impl Kernel for ScaleAndShift<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let (factor, shift) = (simd.splat_f32s(self.factor), simd.splat_f32s(self.shift));
        let last = load_last(simd, self.values);
        for value in S::as_mut_simd_f32s(self.values).0 {
            *value = simd.add_f32s(simd.mul_f32s(*value, factor), shift);
        }
        if !self.values.len().is_multiple_of(S::F32_LANES) {
            store_last(simd, self.values, simd.add_f32s(simd.mul_f32s(last, factor), shift));
        }
    }
}
