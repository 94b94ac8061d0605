//! Random halves, and folds within them.

use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

/// The rows 0 to n - 1 in two random halves, each ascending; of an odd number the second has one more.
pub(super) fn halves(n: usize, rng: &mut ChaCha8Rng) -> [Vec<usize>; 2] {
    let mut rows: Vec<usize> = (0..n).collect();
    rows.shuffle(rng);
    let mut second = rows.split_off(n / 2);
    rows.sort_unstable();
    second.sort_unstable();
    [rows, second]
}

/// The fold of every one of `n` samples: as equal in size as can be.
pub(super) fn folds(n: usize, n_folds: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut folds: Vec<usize> = (0..n).map(|place| place % n_folds).collect();
    folds.shuffle(rng);
    folds
}
