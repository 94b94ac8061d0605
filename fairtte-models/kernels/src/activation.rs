//! Activation functions and their gradients.
//!
//! ReLU, `SiLU` x p(x) with the logistic function p, GELU x P(x) with the normal distribution function P (the exact form, `PyTorch`'s
//! default; Hendrycks and Gimpel, 2016, arXiv:1606.08415) and the logistic function itself. Gradients are computed from
//! the argument, so a layer keeps only its input. With `Curve`, other kernels apply one to values in registers.
//!
//! Special values are those of `PyTorch`: NaN stays NaN, ReLU passes no gradient at 0 and one at NaN, `SiLU` of minus infinity
//! is NaN (its formula is infinity times 0), and large finite arguments give the limits.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use rayon::prelude::*;

pub use crate::simd::elementary::NORMAL_TAIL;
use crate::simd::elementary::{exp_of_any, logistic, normal};
use crate::simd::lanes::{load_rest, store_rest};
use crate::simd::{self, Kernel, Vectors};

/// A function applied element by element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// x.
    #[default]
    Identity,
    /// max(x, 0).
    Relu,
    /// x / (1 + e^-x).
    Silu,
    /// x times the normal distribution function at x.
    Gelu,
    /// 1 / (1 + e^-x).
    Sigmoid,
}

/// Evaluates the body with the name bound to the [`Curve`] of an [`Activation`].
macro_rules! with_curve {
    ($activation:expr, $name:ident => $body:expr) => {
        match $activation {
            $crate::activation::Activation::Identity => {
                let $name = $crate::activation::Identity;
                $body
            }
            $crate::activation::Activation::Relu => {
                let $name = $crate::activation::Relu;
                $body
            }
            $crate::activation::Activation::Silu => {
                let $name = $crate::activation::Silu;
                $body
            }
            $crate::activation::Activation::Gelu => {
                let $name = $crate::activation::Gelu;
                $body
            }
            $crate::activation::Activation::Sigmoid => {
                let $name = $crate::activation::Sigmoid;
                $body
            }
        }
    };
}
pub(crate) use with_curve;

/// Values per task: 64 KiB, which stay in the cache of a core.
const PIECE: usize = 1 << 14;

/// `y = activation(x)`, in parallel.
///
/// # Panics
/// If the lengths differ.
pub fn forward(activation: Activation, x: &[f32], y: &mut [f32]) {
    assert_eq!(x.len(), y.len(), "lengths of input and output");
    y.par_chunks_mut(PIECE).zip(x.par_chunks(PIECE)).for_each(|(y, x)| {
        y.copy_from_slice(x);
        in_place(activation, y);
    });
}

/// Replaces each value by its activation, on the calling thread.
pub fn in_place(activation: Activation, values: &mut [f32]) {
    if activation != Activation::Identity {
        with_curve!(activation, curve => simd::run(Apply { curve, values }));
    }
}

/// Adds `bias` to each value and applies the activation, on the calling thread.
pub(crate) fn with_bias(activation: Activation, bias: f32, values: &mut [f32]) {
    with_curve!(activation, curve => simd::run(ApplyWithBias { curve, bias, values }));
}

/// Turns the gradient with respect to `activation(x)` into that with respect to `x`, in place and in parallel.
///
/// # Panics
/// If the lengths differ.
pub fn gradient(activation: Activation, x: &[f32], gradient: &mut [f32]) {
    assert_eq!(x.len(), gradient.len(), "lengths of input and gradient");
    if activation == Activation::Identity {
        return;
    }
    gradient.par_chunks_mut(PIECE).zip(x.par_chunks(PIECE)).for_each(|(gradient, x)| {
        with_curve!(activation, curve => simd::run(Backward { curve, x, gradient }));
    });
}

/// An activation on vectors, known when the kernel around it is compiled.
pub(crate) trait Curve: Copy + Send + Sync {
    /// Whether computing it twice costs more than writing the first result to the cache and reading it again.
    const COSTLY: bool;
    fn value<S: Vectors>(self, simd: S, x: S::f32s) -> S::f32s;
    /// The gradient with respect to `x`, given that with respect to the value.
    fn backward<S: Vectors>(self, simd: S, x: S::f32s, gradient: S::f32s) -> S::f32s;
}

#[derive(Clone, Copy)]
pub(crate) struct Identity;
#[derive(Clone, Copy)]
pub(crate) struct Relu;
#[derive(Clone, Copy)]
pub(crate) struct Silu;
#[derive(Clone, Copy)]
pub(crate) struct Gelu;
#[derive(Clone, Copy)]
pub(crate) struct Sigmoid;

impl Curve for Identity {
    const COSTLY: bool = false;

    #[inline(always)]
    fn value<S: Vectors>(self, _: S, x: S::f32s) -> S::f32s {
        x
    }

    #[inline(always)]
    fn backward<S: Vectors>(self, _: S, _: S::f32s, gradient: S::f32s) -> S::f32s {
        gradient
    }
}

impl Curve for Relu {
    const COSTLY: bool = false;

    #[inline(always)]
    fn value<S: Vectors>(self, simd: S, x: S::f32s) -> S::f32s {
        simd.at_least(x, 0.0)
    }

    #[inline(always)]
    fn backward<S: Vectors>(self, simd: S, x: S::f32s, gradient: S::f32s) -> S::f32s {
        let zero = simd.splat_f32s(0.0);
        simd.select_f32s(simd.less_than_or_equal_f32s(x, zero), zero, gradient)
    }
}

impl Curve for Silu {
    const COSTLY: bool = true;

    #[inline(always)]
    fn value<S: Vectors>(self, simd: S, x: S::f32s) -> S::f32s {
        let tail = exp_of_any(simd, simd.neg_f32s(x));
        simd.div_f32s(x, simd.add_f32s(tail, simd.splat_f32s(1.0)))
    }

    #[inline(always)]
    fn backward<S: Vectors>(self, simd: S, x: S::f32s, gradient: S::f32s) -> S::f32s {
        let one = simd.splat_f32s(1.0);
        let tail = exp_of_any(simd, simd.neg_f32s(x));
        let p = simd.div_f32s(one, simd.add_f32s(tail, one));
        // 1 - p in the form that has the smaller error; near -1.28, where the slope is 0, it decides about that of the slope.
        let negative = simd.less_than_f32s(x, simd.splat_f32s(0.0));
        let rest = simd.select_f32s(negative, simd.sub_f32s(one, p), simd.mul_f32s(tail, p));
        let slope = simd.mul_f32s(p, simd.multiply_add(x, rest, one));
        simd.mul_f32s(gradient, slope)
    }
}

impl Curve for Gelu {
    const COSTLY: bool = true;

    #[inline(always)]
    fn value<S: Vectors>(self, simd: S, x: S::f32s) -> S::f32s {
        simd.mul_f32s(x, normal(simd, x).0)
    }

    #[inline(always)]
    fn backward<S: Vectors>(self, simd: S, x: S::f32s, gradient: S::f32s) -> S::f32s {
        let (below, density) = normal(simd, x);
        simd.mul_f32s(gradient, simd.multiply_add(x, density, below))
    }
}

impl Curve for Sigmoid {
    const COSTLY: bool = true;

    #[inline(always)]
    fn value<S: Vectors>(self, simd: S, x: S::f32s) -> S::f32s {
        logistic(simd, x).0
    }

    #[inline(always)]
    fn backward<S: Vectors>(self, simd: S, x: S::f32s, gradient: S::f32s) -> S::f32s {
        let (p, rest) = logistic(simd, x);
        simd.mul_f32s(gradient, simd.mul_f32s(p, rest))
    }
}

struct Apply<'a, C> {
    curve: C,
    values: &'a mut [f32],
}

impl<C: Curve> Kernel for Apply<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let (vectors, rest) = S::as_mut_simd_f32s(self.values);
        for vector in vectors {
            *vector = self.curve.value(simd, *vector);
        }
        if !rest.is_empty() {
            let vector = self.curve.value(simd, load_rest(simd, rest));
            store_rest(simd, rest, vector);
        }
    }
}

struct ApplyWithBias<'a, C> {
    curve: C,
    bias: f32,
    values: &'a mut [f32],
}

impl<C: Curve> Kernel for ApplyWithBias<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let bias = simd.splat_f32s(self.bias);
        let (vectors, rest) = S::as_mut_simd_f32s(self.values);
        for vector in vectors {
            *vector = self.curve.value(simd, simd.add_f32s(*vector, bias));
        }
        if !rest.is_empty() {
            let vector = self.curve.value(simd, simd.add_f32s(load_rest(simd, rest), bias));
            store_rest(simd, rest, vector);
        }
    }
}

struct Backward<'a, C> {
    curve: C,
    x: &'a [f32],
    gradient: &'a mut [f32],
}

impl<C: Curve> Kernel for Backward<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on<S: Vectors>(self, simd: S) {
        let (x, x_rest) = S::as_simd_f32s(self.x);
        let (gradient, rest) = S::as_mut_simd_f32s(self.gradient);
        for (gradient, &x) in gradient.iter_mut().zip(x) {
            *gradient = self.curve.backward(simd, x, *gradient);
        }
        if !rest.is_empty() {
            let vector = self.curve.backward(simd, load_rest(simd, x_rest), load_rest(simd, rest));
            store_rest(simd, rest, vector);
        }
    }
}

#[cfg(test)]
mod tests;
