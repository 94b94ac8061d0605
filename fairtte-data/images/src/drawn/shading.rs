//! Drawing functions for both kinds of picture: soft edges, smooth random fields, the scale of severity.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};

/// 0 well outside, 1 well inside, smooth over a band of width `softness` around `distance` = 0 (positive inside).
pub(super) fn edge(distance: f64, softness: f64) -> f64 {
    let t = (distance / softness + 0.5).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// exp(-d2 / 2), cut to 0 where it falls below 3e-4.
pub(super) fn bell(squared_distance: f64) -> f64 {
    if squared_distance > 16.0 { 0.0 } else { (-0.5 * squared_distance).exp() }
}

pub(super) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// Disease burden in [0, 1] of severity `x_z`: linear from -3 to 4, so that every step of severity is equally visible.
pub(super) fn burden(x_z: f64) -> f64 {
    ((x_z + 3.0) / 7.0).clamp(0.0, 1.0)
}

/// Weight of spot number `index` when `count` spots (a real number) are shown: 1, then a part, then 0.
pub(super) fn spot_weight(index: usize, count: f64) -> f64 {
    (count - index as f64).clamp(0.0, 1.0)
}

/// Factor that makes the mean of `spots` over the region `mask` equal to `mean`; 0 if there is nothing to scale.
pub(super) fn scale_to_mean(spots: &[f64], mask: &[f64], mean: f64) -> f64 {
    let (found, region) = (spots.iter().sum::<f64>(), mask.iter().sum::<f64>());
    if found > 0.0 { mean * region / found } else { 0.0 }
}

/// Smooth random field over the unit cube: standard normal values on a lattice, interpolated with a smooth step.
pub(super) struct SmoothField {
    /// `[side, side, side]`
    lattice: Vec<f64>,
    side: usize,
}

impl SmoothField {
    /// Draws a lattice with `side` (at least 2) nodes on each edge.
    pub fn draw(side: usize, rng: &mut ChaCha8Rng) -> Self {
        Self { lattice: (0..side.pow(3)).map(|_| normal(rng)).collect(), side }
    }

    /// Value at a point of [-1, 1] cubed; points outside have the value of the nearest face.
    pub fn at(&self, place: [f64; 3]) -> f64 {
        let cells = place.map(|x| cell(x, self.side));
        let mut value = 0.0;
        for corner in 0..8_usize {
            let (mut weight, mut index) = (1.0, 0);
            for (axis, &(low, share)) in cells.iter().enumerate() {
                let up = (corner >> axis) & 1;
                weight *= if up == 1 { share } else { 1.0 - share };
                index = index * self.side + low + up;
            }
            value += weight * self.lattice[index];
        }
        value
    }
}

/// Lower lattice node of a coordinate in [-1, 1] and the smoothed share of the upper one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..side - 1 just before")]
fn cell(x: f64, side: usize) -> (usize, f64) {
    let along = ((x + 1.0) * 0.5 * (side - 1) as f64).clamp(0.0, (side - 1) as f64);
    let low = (along as usize).min(side - 2);
    let t = along - low as f64;
    (low, t * t * (3.0 - 2.0 * t))
}

#[cfg(test)]
mod tests {
    use fairtte_metrics::seeds::stream;

    use super::*;

    #[test]
    fn an_edge_runs_from_outside_to_inside() {
        assert!(edge(-1.0, 0.1).abs() < 1e-15 && (edge(1.0, 0.1) - 1.0).abs() < 1e-15);
        assert!((edge(0.0, 0.1) - 0.5).abs() < 1e-15);
    }

    #[test]
    fn a_smooth_field_meets_its_nodes_and_is_continuous() {
        let field = SmoothField::draw(3, &mut stream(1, "test", &[]));
        assert!((field.at([-1.0, -1.0, -1.0]) - field.lattice[0]).abs() < 1e-12);
        assert!((field.at([1.0, 1.0, 1.0]) - field.lattice[26]).abs() < 1e-12);
        assert!((field.at([0.0, 0.0, 1.0]) - field.lattice[9 + 3 + 2]).abs() < 1e-12);
        assert!((field.at([1e-9, 0.3, 0.2]) - field.at([-1e-9, 0.3, 0.2])).abs() < 1e-6);
    }

    #[test]
    fn spots_appear_one_after_the_other() {
        let shown: Vec<f64> = (0..4).map(|index| spot_weight(index, 2.25)).collect();
        assert_eq!(shown, [1.0, 1.0, 0.25, 0.0]);
    }
}
