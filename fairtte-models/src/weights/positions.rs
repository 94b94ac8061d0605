//! Learned positions of a Vision Transformer on another grid of patches.
//!
//! The position of the class token stays; those of the patches are resampled along both axes as PyTorch's bicubic
//! interpolation without anti-aliasing does it (`cubic.rs`).

use crate::cubic::taps;

/// Side of the square grid of `n` positions, the first of which is the class token's.
pub(super) fn grid(n: usize) -> Option<usize> {
    let n_patches = n.checked_sub(1)?;
    let side = n_patches.isqrt();
    (side > 0 && side * side == n_patches).then_some(side)
}

/// `[1 + from * from, width]` to `[1 + to * to, width]`.
pub(super) fn resample(values: &[f32], from: usize, to: usize, width: usize) -> Vec<f32> {
    let (of_class, of_patches) = values.split_at(width);
    let line = taps(from, to);
    // [from, from, width] -> [to, from, width] -> [to, to, width]
    let along = |source: &dyn Fn(usize, usize) -> usize, n_outer: usize, values: &[f64]| -> Vec<Vec<f64>> {
        let mut all = Vec::with_capacity(n_outer * to);
        for outer in 0..n_outer {
            for taps in &line {
                let mut sum = vec![0.0; width];
                for (place, weight) in taps {
                    let start = source(outer, *place) * width;
                    for (sum, value) in sum.iter_mut().zip(&values[start..start + width]) {
                        *sum += weight * value;
                    }
                }
                all.push(sum);
            }
        }
        all
    };
    let wide: Vec<f64> = of_patches.iter().map(|value| f64::from(*value)).collect();
    let by_columns = along(&|row, column| row * from + column, from, &wide).concat(); // [from, to, width]
    let by_rows = along(&|column, row| row * to + column, to, &by_columns); // [to of columns, to of rows, width]
    let mut resampled = of_class.to_vec();
    for row in 0..to {
        for column in 0..to {
            #[expect(clippy::cast_possible_truncation, reason = "weights are f32")]
            resampled.extend(by_rows[column * to + row].iter().map(|value| *value as f32));
        }
    }
    resampled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_resampled_as_torch_does_it() {
        let positions = [
            7.0, 8.0, 0.0, 0.1, 2.0, 0.9, 4.0, 2.5, 6.0, 4.9, 8.0, 8.1, 10.0, 12.1, 12.0, 16.9, 14.0, 22.5, 16.0, 28.9,
        ];
        // torch 2.15.0, torch.nn.functional.interpolate(size=(2, 2), mode="bicubic", align_corners=False) in f64.
        let expected =
            [7.0, 8.0, 1.531_25, 0.978_552_2, 4.765_625, 3.662_073, 11.234_375, 15.305_823, 14.468_75, 24.266_052];
        for (found, expected) in resample(&positions, 3, 2, 2).into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{found} in place of {expected}");
        }
        for (found, expected) in resample(&positions, 3, 3, 2).into_iter().zip(positions) {
            assert!((found - expected).abs() < 1e-6, "the same grid stays");
        }
    }

    #[test]
    fn only_a_square_and_one_is_a_grid() {
        assert_eq!([197, 577, 2, 1, 0, 196].map(grid), [Some(14), Some(24), Some(1), None, None, None]);
    }
}
