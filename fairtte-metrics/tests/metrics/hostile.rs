//! Hostile input never makes a function panic, return a number that is not finite, or give two results for the same
//! input.
//!
//! The cases are those of the fuzz target in `fuzz/`, here from seeded random bytes and a few patterns, so that every
//! run of the tests tries some thousands of them.

#[path = "../hostile/mod.rs"]
mod cases;

use fairtte_metrics::seeds;
use rand::RngExt as _;

const N_CASES: u64 = 10_000;

#[test]
fn random_bytes_find_no_panic_no_nan_and_no_second_answer() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    for case in 0..N_CASES {
        let mut rng = seeds::stream(17, "hostile-bytes", &[case]);
        let length = rng.random_range(1..600);
        let mut bytes: Vec<u8> = (0..length).map(|_| rng.random()).collect();
        // The first byte chooses what is tried: every choice equally often.
        bytes[0] = u8::try_from(case % 256).expect("below 256");
        pool.install(|| cases::try_everything(&bytes));
    }
}

#[test]
fn patterns_that_make_everything_equal_or_empty_are_survived() {
    for first in 0..cases::N_FAMILIES {
        for rest in 0..=255 {
            for length in [0, 1, 40, 400] {
                let bytes: Vec<u8> = std::iter::once(first).chain(std::iter::repeat_n(rest, length)).collect();
                cases::try_everything(&bytes);
            }
        }
    }
}
