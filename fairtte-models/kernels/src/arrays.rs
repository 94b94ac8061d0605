//! Arrays for the tests of the kernels: random values, comparisons, and a check that results have the same bits on any
//! number of threads.

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
pub(crate) fn on_any_number_of_threads<A: AsRef<[Vec<f32>]> + Send>(compute: impl Fn() -> A + Sync) -> A {
    let [one, two, four] = [1, 2, 4].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool of threads");
        pool.install(&compute)
    });
    let bits = |arrays: &A| -> Vec<Vec<u32>> {
        arrays.as_ref().iter().map(|array| array.iter().map(|value| value.to_bits()).collect()).collect()
    };
    assert!(bits(&one) == bits(&two), "bits on one thread and on two");
    assert!(bits(&one) == bits(&four), "bits on one thread and on four");
    one
}

/// Asserts that values are close to the expected ones, relative to the greatest of these.
pub(crate) fn assert_near(what: &str, values: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(values.len(), expected.len(), "{what}: lengths");
    let scale = expected.iter().fold(1e-30, |scale: f64, value| scale.max(value.abs()));
    for (place, (&value, &expected)) in values.iter().zip(expected).enumerate() {
        let error = (f64::from(value) - expected).abs() / scale;
        assert!(error <= tolerance, "{what} at {place}: {value}, expected {expected}, error {error:e} of the greatest");
    }
}

/// Asserts that each value is close to the expected one, relative to it, or absolutely where it is below 1.
#[track_caller]
pub(crate) fn assert_close(values: &[f32], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(values.len(), expected.len(), "{what}: lengths");
    for (place, (&value, &expected)) in values.iter().zip(expected).enumerate() {
        let error = (f64::from(value) - expected).abs();
        assert!(error <= tolerance * (1.0 + expected.abs()), "{what} at {place}: {value} instead of {expected}");
    }
}

/// The values in double precision.
pub(crate) fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}
