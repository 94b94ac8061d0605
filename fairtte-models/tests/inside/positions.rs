//! Resampling of positions against PyTorch.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
use super::*;

#[test]
fn resampled_positions_are_those_of_pytorch() {
    // torch 2.15.0: interpolate(arange(4.).reshape(1, 1, 1, 4) ** 2, (1, 7), mode="bicubic", align_corners=False)[0, 0, 0]
    // and the same to 3 points.
    let device = Device::flex();
    let line = Tensor::<2>::from_floats([[0.0], [1.0], [4.0], [9.0]], &device);
    let cases: [(usize, &[f32]); 2] = [
        (7, &[-0.099_216, 0.156_249, 0.804_208, 2.125, 4.424_658, 7.480_775, 9.496_082]),
        (3, &[0.091_435, 2.125, 8.334_492]),
    ];
    for (to, expected) in cases {
        let found: Vec<f32> = cubic_weights(4, to, &device).matmul(line.clone()).into_data().try_to_vec().unwrap();
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{to} points: {found} for {expected}");
        }
    }
}

#[test]
fn a_length_that_stays_is_resampled_to_itself() {
    let device = Device::flex();
    let identity = cubic_weights(14, 14, &device) - Tensor::eye(14, &device);
    assert!(identity.abs().max().into_scalar::<f32>() < 1e-6);
}
