#![expect(clippy::float_cmp, reason = "these results are exact")]

use super::*;
use crate::arrays::{on_any_number_of_threads, random};

#[test]
fn sums_pass_where_they_are_positive_on_any_number_of_threads() {
    for length in [0, 1, 17, 50_001] {
        let (mut a, b, dy) = (random(1, length), random(2, length), random(3, length));
        if length > 2 {
            a[0] = f32::NAN;
            a[1] = -b[1];
            a[2] = f32::INFINITY;
        }
        let results = on_any_number_of_threads(|| {
            let (mut y, mut gradient) = (vec![f32::NAN; length], dy.clone());
            add_relu(&a, &b, &mut y);
            add_relu_gradient(&y, &mut gradient);
            vec![y, gradient]
        });
        for place in 0..length {
            let (y, gradient, sum) = (results[0][place], results[1][place], a[place] + b[place]);
            if sum.is_nan() {
                assert!(y.is_nan(), "NaN stays");
                assert_eq!(gradient, dy[place], "NaN lets the gradient pass");
            } else {
                assert_eq!(y, if sum > 0.0 { sum } else { 0.0 });
                assert_eq!(gradient, if sum > 0.0 { dy[place] } else { 0.0 });
            }
        }
    }
}
