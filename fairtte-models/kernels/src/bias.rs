//! The gradient of a bias: the sum of the output's gradient over everything but the channel.

use rayon::prelude::*;

use crate::simd::vectorized;

/// Sums in double precision side by side.
const LANES: usize = 16;

/// `d_bias[channel]` = sum of `dy [batch, channels, plane]` over samples and places. One pass over `dy`.
///
/// # Panics
/// If `dy` is not a multiple of `channels * plane` long, or `d_bias` not `channels`.
pub fn gradient(dy: &[f32], channels: usize, plane: usize, d_bias: &mut [f32]) {
    assert_eq!(d_bias.len(), channels, "one bias for each channel");
    if dy.is_empty() {
        return d_bias.fill(0.0);
    }
    assert_eq!(dy.len() % (channels * plane), 0, "whole samples of {channels} channels of {plane} values");
    d_bias.par_iter_mut().enumerate().for_each(|(channel, d_bias)| {
        let planes = dy.chunks_exact(plane).skip(channel).step_by(channels);
        let total: f64 = planes.map(|plane| vectorized!(sum(plane))).sum();
        #[expect(clippy::cast_possible_truncation, reason = "a gradient in single precision")]
        {
            *d_bias = total as f32;
        }
    });
}

#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn sum(values: &[f32]) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0_f64; LANES];
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(value);
        }
    }
    lanes.iter().sum::<f64>() + rest.iter().map(|&value| f64::from(value)).sum::<f64>()
}

#[cfg(test)]
mod tests;
