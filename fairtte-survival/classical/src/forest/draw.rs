//! The samples that a tree is grown from.

use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use super::settings::Sampling;
use crate::units::Units;

/// How often every one of `n_samples` is drawn for a tree, `[n_samples]`: as often as its unit.
pub(super) fn draw(n_samples: usize, units: &Units, sampling: Sampling, drawn: &mut Vec<u32>, rng: &mut ChaCha8Rng) {
    let n = units.n(n_samples);
    drawn.clear();
    match sampling {
        Sampling::All => drawn.resize(n, 1),
        Sampling::Bootstrap => {
            drawn.resize(n, 0);
            let last = u32::try_from(n).unwrap_or(u32::MAX);
            (0..n).for_each(|_| drawn[rng.random_range(0..last) as usize] += 1);
        }
        Sampling::Subsample(share) => {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most n")]
            let size = ((share * n as f64).round() as usize).clamp(1, n);
            let mut rows: Vec<usize> = (0..n).collect();
            let (chosen, _) = rows.partial_shuffle(rng, size);
            drawn.resize(n, 0);
            for row in chosen.iter() {
                drawn[*row] = 1;
            }
        }
    }
    units.spread(drawn);
}
