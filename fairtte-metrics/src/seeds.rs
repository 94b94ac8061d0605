//! Independent random streams derived by name from one seed.
//!
//! A run has one `seed`; the split, the initial weights, the batch order, the noise and the bootstrap each
//! draw from a stream of their own, so that changing how much one of them draws never moves another.
//! `ChaCha` takes a 64-bit seed and a 64-bit stream number; the stream is the FNV-1a hash of the name
//! (Fowler, Noll & Vo 1991) and of any counters (epoch, step), so a stream can be opened in the middle of
//! a run without replaying what came before it.

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// Opens the stream `name` of `seed` at the given `counters` (for example `[epoch, step]`).
///
/// The same arguments give the same numbers on every platform and in every version of this crate.
///
/// ```
/// use fairtte_metrics::seeds::stream;
/// use rand::RngExt as _;
///
/// let a: u64 = stream(7, "split", &[]).random();
/// let b: u64 = stream(7, "split", &[]).random();
/// let c: u64 = stream(7, "order", &[]).random();
/// assert_eq!(a, b);
/// assert_ne!(a, c);
/// ```
pub fn stream(seed: u64, name: &str, counters: &[u64]) -> ChaCha8Rng {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let counter_bytes = counters.iter().flat_map(|counter| counter.to_le_bytes());
    // The zero byte keeps ("a", [..]) apart from ("a\x01..", []).
    let bytes = name.bytes().chain([0]).chain(counter_bytes);
    let hash = bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(hash);
    rng
}
