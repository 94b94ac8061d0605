//! What the tests of the kernels share.

use super::*;

/// `length` numbers in [-1, 1) by a linear congruential generator.
pub(crate) fn random(seed: u64, length: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..length).map(|_| next()).collect()
}

/// The result of `compute`, after checking that its bits are the same on 1, 2 and 4 threads.
pub(crate) fn on_any_number_of_threads(compute: impl Fn() -> Vec<Vec<f32>> + Sync) -> Vec<Vec<f32>> {
    let [one, two, four] = [1, 2, 4].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool of threads");
        pool.install(&compute)
    });
    let bits = |arrays: &[Vec<f32>]| -> Vec<Vec<u32>> {
        arrays.iter().map(|array| array.iter().map(|value| value.to_bits()).collect()).collect()
    };
    assert_eq!(bits(&one), bits(&two), "bits on one thread and on two");
    assert_eq!(bits(&one), bits(&four), "bits on one thread and on four");
    one
}

/// Asserts that values are near what they should be, relative to the greatest of them.
pub(crate) fn assert_near(what: &str, values: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(values.len(), expected.len(), "{what}: lengths");
    let scale = expected.iter().fold(1e-30, |scale: f64, value| scale.max(value.abs()));
    for (place, (&value, &expected)) in values.iter().zip(expected).enumerate() {
        let error = (f64::from(value) - expected).abs() / scale;
        assert!(error <= tolerance, "{what} at {place}: {value}, expected {expected}, error {error:e} of the greatest");
    }
}

#[test]
fn every_number_is_in_one_part() {
    let mut values: Vec<f32> = (0u8..2 * 5 * 3).map(f32::from).collect();
    let groups = by_channels(&mut values, 5, 3, 2);
    assert_eq!(groups.len(), 3);
    assert_eq!(groups[1], [&[6.0, 7.0, 8.0, 9.0, 10.0, 11.0][..], &[21.0, 22.0, 23.0, 24.0, 25.0, 26.0][..]]);
    assert_eq!(groups[2], [&[12.0, 13.0, 14.0][..], &[27.0, 28.0, 29.0][..]]);
    assert_eq!(units_per_task(10, 7, 20), 2);
    assert_eq!(units_per_task(10, 100, 20), 1);
    assert_eq!(units_per_task(10, 0, 20), 10);
}
