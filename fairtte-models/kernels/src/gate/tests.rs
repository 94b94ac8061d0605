#![expect(clippy::float_cmp, reason = "these results are exact")]

use super::*;
use crate::arrays::{assert_near, on_any_number_of_threads, random};

#[test]
fn planes_are_scaled_and_gradients_are_sums_on_any_number_of_threads() {
    for (planes, plane) in [(1, 1), (3, 1), (7, 5), (5, 16), (6, 49), (3, 5000), (2, 70_001), (400, 196)] {
        let (x, gates, dy) = (random(1, planes * plane), random(2, planes), random(3, planes * plane));
        let results = on_any_number_of_threads(|| {
            let (mut y, mut dx, mut d_gate) = (vec![f32::NAN; x.len()], dy.clone(), vec![f32::NAN; planes]);
            forward(&x, plane, &gates, &mut y);
            gradients(&x, plane, &gates, &mut dx, &mut d_gate);
            vec![y, dx, d_gate]
        });
        for place in 0..x.len() {
            assert_eq!(results[0][place], x[place] * gates[place / plane]);
            assert_eq!(results[1][place], dy[place] * gates[place / plane]);
        }
        let sum = |index: usize| -> f64 {
            (index * plane..(index + 1) * plane).map(|place| f64::from(x[place]) * f64::from(dy[place])).sum()
        };
        let expected: Vec<f64> = (0..planes).map(sum).collect();
        assert_near("gradient of the gates", &results[2], &expected, 1e-5);
    }
}

#[test]
fn no_planes_and_empty_planes_are_fine() {
    forward(&[], 4, &[], &mut []);
    let mut d_gate = [1.0; 2];
    gradients(&[], 0, &[1.0, 2.0], &mut [], &mut d_gate);
    assert_eq!(d_gate, [0.0; 2]);
}

#[test]
fn nan_stays_in_its_plane() {
    let mut x = random(1, 4 * 35);
    x[35] = f32::NAN;
    let (mut y, mut dx, mut d_gate) = (vec![0.0; 140], vec![1.0; 140], vec![0.0; 4]);
    forward(&x, 35, &[1.0; 4], &mut y);
    gradients(&x, 35, &[1.0; 4], &mut dx, &mut d_gate);
    assert_eq!(y.iter().filter(|y| y.is_nan()).count(), 1);
    assert!(y[35].is_nan() && d_gate[1].is_nan() && d_gate[0].is_finite() && d_gate[2].is_finite());
}
