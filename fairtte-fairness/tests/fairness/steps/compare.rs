//! Numbers in single precision against numbers in double precision.
//!
//! Training computes in f32, the worked numbers are f64. Each of them has its `rounding`: the largest
//! difference of five runs of the same definitions in float32, four of them with inputs moved by one unit in the last place.
//! A difference consists of: rounded sums; `AdamW`'s bias correction 1 - 0.999^t, of which f32 keeps four digits; and the
//! effect of both on the next steps (where a gradient g is small, Adam's g / |g| is less certain). Another order of sums,
//! that of our kernels or of another instruction set, produces errors of the same size, but not the same ones: the
//! tolerance is 8 times the rounding, and at least 8 units in the last place of the computed value (2^-24 = 6e-8 of its
//! size). On the machine of the first run 0.25 of that was needed.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::record::{Numbers, v};

const FACTOR: f64 = 8.0;
/// Losses are sums of a dozen terms of size 1, tensors consist of numbers below 2 that were updated a few times.
const FLOOR: f64 = 5e-7;

/// The number of comparisons, and the largest error relative to the tolerance.
#[derive(Debug, Default)]
pub struct Compared {
    pub numbers: usize,
    pub worst: f64,
}

impl Compared {
    /// `size` is that of the numbers from which the value was computed.
    pub fn close(&mut self, what: &str, (found, expected): (f64, f64), rounding: f64, size: f64) {
        let allowed = FACTOR * rounding + FLOOR * size.max(1.0);
        let off = (found - expected).abs();
        assert!(off <= allowed, "{what}: {found} is not {expected}: off by {off:.2e}, allowed are {allowed:.2e}");
        self.numbers += 1;
        self.worst = self.worst.max(off / allowed);
    }

    pub fn exact(&mut self, what: &str, found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-12, "{what}: {found} is not {expected}");
        self.numbers += 1;
    }
}

/// How far a tensor is from its initial value.
#[derive(Debug, Deserialize)]
pub struct Displacement {
    entries: Vec<f64>,
    probe: f64,
    norm: f64,
    /// Of entries, probe and norm.
    rounding: [f64; 3],
}

#[derive(Debug, Deserialize)]
pub enum Unmoved {
    #[serde(rename = "unmoved")]
    Unmoved,
}

/// The expected state of one network after a step.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Network {
    /// "unmoved": to the last bit as after the step before.
    Unmoved(Unmoved),
    /// By tensor; `None` = to the last bit at its initial value.
    Tensors(BTreeMap<String, Option<Displacement>>),
}

/// The numbers of one network.
#[derive(Debug)]
pub struct Moving<'a> {
    pub initial: &'a Numbers,
    pub before: &'a Numbers,
    pub now: &'a Numbers,
}

impl Moving<'_> {
    pub fn compare(&self, place: &str, expected: &Network, compared: &mut Compared) {
        let tensors = match expected {
            Network::Unmoved(Unmoved::Unmoved) => {
                assert_eq!(self.now, self.before, "{place} moved");
                compared.numbers += self.now.len();
                return;
            }
            Network::Tensors(tensors) => tensors,
        };
        assert_eq!(self.now.keys().collect::<Vec<_>>(), tensors.keys().collect::<Vec<_>>(), "{place}");
        for (name, expected) in tensors {
            let (now, initial) = (&self.now[name], &self.initial[name]);
            match expected {
                None => {
                    assert_eq!(now, initial, "{place} {name} changed");
                    compared.numbers += 1;
                }
                Some(expected) => displaced(&format!("{place} {name}"), now, initial, expected, compared),
            }
        }
    }
}

fn displaced(place: &str, now: &[f64], initial: &[f64], expected: &Displacement, compared: &mut Compared) {
    let delta: Vec<f64> = now.iter().zip(initial).map(|(now, initial)| now - initial).collect();
    let n = delta.len();
    let stride = (n / 6).max(1);
    let entries: Vec<f64> = delta.iter().step_by(stride).take(6).copied().collect();
    assert_eq!(entries.len(), expected.entries.len(), "{place}");
    let [of_entries, of_probe, of_norm] = expected.rounding;
    for (k, pair) in entries.into_iter().zip(expected.entries.iter().copied()).enumerate() {
        compared.close(&format!("{place}, entry {}", k * stride), pair, of_entries, 1.0);
    }
    // A sum of n entries, each rounded.
    let size = (n as f64).sqrt();
    let probe = delta.iter().enumerate().map(|(i, d)| v(77, i) * d).sum();
    compared.close(&format!("{place}, probe"), (probe, expected.probe), of_probe.max(of_entries), size);
    let norm = delta.iter().map(|d| d * d).sum::<f64>().sqrt();
    compared.close(&format!("{place}, norm"), (norm, expected.norm), of_norm.max(of_entries), size);
}
