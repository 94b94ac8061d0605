//! Nearest-neighbour upsampling by two, beside another array: the start of a block of a U-Net's decoder, in one pass.
//!
//! Ronneberger et al. (2015), U-Net, arXiv:1505.04597, with doubled pixels in place of transposed convolutions. Values are only copied.

use rayon::prelude::*;

use crate::simd::vectorized;

/// `y` `[batch, channels + others, 2 height, 2 width]`: `x` `[batch, channels, height, width]`, each value four times, and after its
/// channels those of `beside` `[batch, others, 2 height, 2 width]`, which may have none.
///
/// Costs one pass over the arrays; samples are copied in parallel.
///
/// # Panics
/// If the lengths do not fit together.
pub fn double_beside(x: &[f32], [channels, height, width]: [usize; 3], beside: &[f32], others: usize, y: &mut [f32]) {
    let (of_x, of_plane) = (channels * height * width, 4 * height * width);
    let (of_beside, of_y) = (others * of_plane, (channels + others) * of_plane);
    let batch = x.len().checked_div(of_x).unwrap_or(0);
    let lengths = [x.len(), beside.len(), y.len()];
    assert_eq!(lengths, [of_x, of_beside, of_y].map(|length| batch * length), "lengths of both inputs and the output");
    let doubled = |(sample, y): (usize, &mut [f32])| {
        let (doubled, copied) = y.split_at_mut(4 * of_x);
        let x = &x[sample * of_x..][..of_x];
        vectorized!(double(x, width, doubled));
        copied.copy_from_slice(&beside[sample * of_beside..][..of_beside]);
    };
    if batch > 0 {
        y.par_chunks_mut(of_y).enumerate().for_each(doubled);
    }
}

/// The gradient of `x` in [`double_beside`], from `dy`, that of `y`: the sum of the four values that were one.
///
/// # Panics
/// If the lengths do not fit together.
pub fn doubled_gradient(dy: &[f32], [channels, height, width]: [usize; 3], others: usize, dx: &mut [f32]) {
    let (of_x, of_dy) = (channels * height * width, 4 * (channels + others) * height * width);
    assert_eq!(dy.len() * of_x, dx.len() * of_dy, "lengths of both gradients");
    if dx.is_empty() {
        return;
    }
    dx.par_chunks_mut(of_x).zip(dy.par_chunks(of_dy)).for_each(|(dx, dy)| vectorized!(halve(dy, width, dx)));
}

/// The gradient of `beside` in [`double_beside`], from `dy`, that of `y`.
///
/// # Panics
/// If the lengths do not fit together.
pub fn beside_gradient(dy: &[f32], [channels, height, width]: [usize; 3], others: usize, d_beside: &mut [f32]) {
    let (plane, all) = (4 * height * width, channels + others);
    assert_eq!(dy.len() * others, d_beside.len() * all, "lengths of both gradients");
    if d_beside.is_empty() {
        return;
    }
    let samples = d_beside.par_chunks_mut(others * plane).zip(dy.par_chunks(all * plane));
    samples.for_each(|(d_beside, dy)| d_beside.copy_from_slice(&dy[channels * plane..]));
}

/// Sums of two values beside each other in two rows.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn halve(dy: &[f32], width: usize, dx: &mut [f32]) {
    for (dx, dy) in dx.chunks_exact_mut(width).zip(dy.chunks_exact(4 * width)) {
        let (first, second) = dy.split_at(2 * width);
        let pairs = first.as_chunks::<2>().0.iter().zip(second.as_chunks::<2>().0);
        for (dx, (first, second)) in dx.iter_mut().zip(pairs) {
            *dx = (first[0] + first[1]) + (second[0] + second[1]);
        }
    }
}

/// Every row twice, and in it every value.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]
#[inline(always)]
fn double(x: &[f32], width: usize, y: &mut [f32]) {
    for (y, x) in y.chunks_exact_mut(4 * width).zip(x.chunks_exact(width)) {
        let (first, second) = y.split_at_mut(2 * width);
        for (pair, &value) in first.as_chunks_mut::<2>().0.iter_mut().zip(x) {
            *pair = [value; 2];
        }
        second.copy_from_slice(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::{on_any_number_of_threads, random};

    #[test]
    fn every_value_is_there_four_times_and_the_others_after_them_and_gradients_are_their_sums() {
        for (batch, [channels, height, width], others) in [
            (1, [1, 1, 1], 0),
            (3, [2, 1, 1], 5),
            (2, [3, 4, 5], 1),
            (5, [7, 3, 17], 2),
            (1, [2, 16, 33], 0),
            (0, [2, 3, 4], 1),
        ] {
            let x = random(1, batch * channels * height * width);
            let plane = 4 * height * width;
            let beside = random(2, batch * others * plane);
            let [y] = on_any_number_of_threads(|| {
                let mut y = vec![f32::NAN; batch * (channels + others) * plane];
                double_beside(&x, [channels, height, width], &beside, others, &mut y);
                [y]
            });
            for (place, &value) in y.iter().enumerate() {
                let (sample, channel) = (place / plane / (channels + others), place / plane % (channels + others));
                let (row, column) = (place % plane / (2 * width), place % (2 * width));
                let expected = if channel < channels {
                    x[((sample * channels + channel) * height + row / 2) * width + column / 2]
                } else {
                    beside[(sample * others + channel - channels) * plane + place % plane]
                };
                assert_eq!(value.to_bits(), expected.to_bits(), "{channels} x {height} x {width} at {place}");
            }
            // A value's gradient is the sum over what it becomes.
            let dy = random(3, y.len());
            let [dx, d_beside] = on_any_number_of_threads(|| {
                let [mut dx, mut d_beside] = [&x, &beside].map(|input| vec![f32::NAN; input.len()]);
                doubled_gradient(&dy, [channels, height, width], others, &mut dx);
                beside_gradient(&dy, [channels, height, width], others, &mut d_beside);
                [dx, d_beside]
            });
            for place in 0..dx.len() {
                let mut unit = vec![0.0; x.len()];
                unit[place] = 1.0;
                let mut seen = vec![f32::NAN; y.len()];
                double_beside(&unit, [channels, height, width], &vec![0.0; beside.len()], others, &mut seen);
                let expected: f32 = seen.iter().zip(&dy).map(|(seen, dy)| seen * dy).sum();
                assert!((dx[place] - expected).abs() < 1e-6, "{channels} x {height} x {width} at {place}");
            }
            for (place, &found) in d_beside.iter().enumerate() {
                let (sample, inside) = (place / (others * plane), place % (others * plane));
                let expected = dy[(sample * (channels + others) + channels) * plane + inside];
                assert_eq!(found.to_bits(), expected.to_bits(), "{others} others at {place}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "lengths of both inputs and the output")]
    fn arrays_that_do_not_fit_are_refused() {
        double_beside(&[0.0; 4], [1, 2, 2], &[0.0; 15], 1, &mut [0.0; 32]);
    }
}
