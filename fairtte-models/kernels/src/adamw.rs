//! One step of `AdamW` (Loshchilov and Hutter, 2019, arXiv:1711.05101) in one pass over the parameter.
//!
//! `m = beta_1 m + (1 - beta_1) g`, `v = beta_2 v + (1 - beta_2) g^2`, then
//! `p = (1 - rate decay) p - rate (m / (1 - beta_1^t)) / (sqrt(v / (1 - beta_2^t)) + epsilon)`.
//!
//! The operations, their order and the roundings are those of burn 0.22.1 (`burn-optim`, `AdamW` without `AMSGrad` and without
//! cautious decay), which takes fifteen passes over arrays for them; only the sign of a zero may differ, after the first step.
//! One pass is limited by memory bandwidth: three arrays are read and written and one is read, 28 bytes for each
//! parameter.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

use rayon::prelude::*;

use crate::simd::vectorized;

/// Settings of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Step size.
    pub learning_rate: f64,
    /// Decay of the mean of the gradients.
    pub beta_1: f32,
    /// Decay of the mean of their squares.
    pub beta_2: f32,
    /// Added to the root of the second moment.
    pub epsilon: f32,
    /// Share of the parameter that is removed in a step of size 1.
    pub weight_decay: f32,
}

/// Values per task.
const PIECE: usize = 1 << 14;

/// Moves `parameter` against `gradient` and updates both moments. `time` is the number of this step, from 1; before the
/// first the moments are zeros.
///
/// # Panics
/// If the lengths differ.
pub fn update(
    parameter: &mut [f32],
    gradient: &[f32],
    first_moment: &mut [f32],
    second_moment: &mut [f32],
    settings: &Settings,
    time: usize,
) {
    let lengths = [gradient.len(), first_moment.len(), second_moment.len()];
    assert_eq!(lengths, [parameter.len(); 3], "lengths of gradient and moments");
    let factors = Factors::new(settings, time);
    let moments = first_moment.par_chunks_mut(PIECE).zip(second_moment.par_chunks_mut(PIECE));
    let pieces = parameter.par_chunks_mut(PIECE).zip(gradient.par_chunks(PIECE)).zip(moments);
    pieces.for_each(|((parameter, gradient), moments)| {
        vectorized!(update_piece(parameter, gradient, moments, &factors));
    });
}

/// The factors and divisors of a step, each rounded once to single precision as burn does.
struct Factors {
    keep_first: f32,
    add_first: f32,
    keep_second: f32,
    add_second: f32,
    correct_first: f32,
    correct_second: f32,
    epsilon: f32,
    decay: f32,
    learning_rate: f32,
}

impl Factors {
    #[expect(clippy::cast_possible_truncation, reason = "rounded where burn rounds")]
    fn new(settings: &Settings, time: usize) -> Self {
        let Settings { learning_rate, beta_1, beta_2, epsilon, weight_decay } = *settings;
        let time = i32::try_from(time).unwrap_or(i32::MAX);
        Self {
            keep_first: beta_1,
            add_first: 1.0 - beta_1,
            keep_second: beta_2,
            add_second: 1.0 - beta_2,
            correct_first: 1.0 - beta_1.powi(time),
            correct_second: 1.0 - beta_2.powi(time),
            epsilon,
            decay: (1.0 - learning_rate * f64::from(weight_decay)) as f32,
            learning_rate: learning_rate as f32,
        }
    }
}

type Moments<'a> = (&'a mut [f32], &'a mut [f32]);

#[inline(always)]
fn update_piece(parameter: &mut [f32], gradient: &[f32], (first, second): Moments, factors: &Factors) {
    let moments = first.iter_mut().zip(second);
    for ((parameter, &gradient), (first, second)) in parameter.iter_mut().zip(gradient).zip(moments) {
        *parameter = moved(*parameter, gradient, first, second, factors);
    }
}

/// The new parameter.
#[inline(always)]
fn moved(parameter: f32, gradient: f32, first: &mut f32, second: &mut f32, factors: &Factors) -> f32 {
    *first = *first * factors.keep_first + gradient * factors.add_first;
    *second = *second * factors.keep_second + gradient * gradient * factors.add_second;
    let root = (*second / factors.correct_second).sqrt() + factors.epsilon;
    let change = *first / factors.correct_first / root;
    parameter * factors.decay - change * factors.learning_rate
}

#[cfg(test)]
mod tests;
