use super::*;
use crate::activation::Activation;
use crate::arrays::{assert_near, on_any_number_of_threads, random};
use crate::conv;
use crate::conv::depthwise::tests::{self as depthwise, shape};
use crate::norm::batch_norm;

const EPSILON: f64 = 1e-5;

/// Arguments of [`shape`]: planes of several, of one and of parts of a buffer.
const SHAPES: [(usize, usize, [usize; 2], usize, usize, usize); 8] = [
    (3, 40, [9, 9], 3, 1, 1),
    (2, 37, [14, 14], 5, 1, 2),
    (16, 33, [17, 19], 3, 2, 1),
    (2, 35, [28, 20], 5, 2, 2),
    (1, 33, [40, 12], 3, 1, 0),
    (2, 34, [112, 112], 3, 2, 1),
    (1, 33, [30, 31], 3, 3, 1),
    (11, 32, [112, 112], 3, 1, 1),
];

#[test]
fn the_layer_has_the_bits_of_its_parts_one_after_the_other_on_any_number_of_threads() {
    for (batch, channels, size, side, stride, padding) in SHAPES {
        let shape = shape(batch, channels, size, side, stride, padding);
        assert!(covers(&shape));
        let [inputs, weights, outputs] = shape.lengths();
        let mut x = random(1, inputs);
        let plane = shape.input_plane();
        x.iter_mut().enumerate().for_each(|(place, x)| *x = *x * 2.0 + (place / plane % 7) as f32);
        let (w, dy) = (random(2, weights), random(3, outputs));
        let gamma: Vec<f32> = random(4, shape.inputs).iter().map(|gamma| gamma + 1.5).collect();
        let beta = random(5, shape.inputs);
        for activation in [Activation::Silu, Activation::Relu] {
            let norm = Layer { plane, gamma: &gamma, beta: &beta, activation };
            let found = on_any_number_of_threads(|| {
                let [mut y, mut dx, mut dw] = [outputs, inputs, weights].map(|length| vec![f32::NAN; length]);
                let statistics = forward(&x, &norm, EPSILON, &w, &shape, &mut y);
                let measured = (statistics.normalisation(), statistics.applied());
                let found = gradients(&x, &norm, measured, &w, &dy, &shape, &mut dx, &mut dw);
                [y, dx, dw, found.gamma, found.beta, statistics.mean, statistics.variance]
            });
            let [mut h, mut y, mut dx, mut dw] = [inputs, outputs, inputs, weights].map(|length| vec![0.0; length]);
            let statistics = batch_norm::forward(&x, &norm, EPSILON, &mut h);
            conv::forward(&h, &w, None, Activation::Identity, &shape, &mut y);
            conv::gradients(&h, &w, &dy, &shape, Some(&mut dx), Some(&mut dw));
            let [_, _, exact_dw] = depthwise::expected(&h, &w, &dy, &shape);
            let parts = batch_norm::gradients(&x, &norm, statistics.normalisation(), &mut dx);
            let expected = [y, dx, dw, parts.gamma, parts.beta, statistics.mean, statistics.variance];
            for (what, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert!(found.iter().all(|value| value.is_finite()), "result {what} at {shape:?}, {activation:?}");
                let what = format!("result {what} at {shape:?}, {activation:?}");
                if what.starts_with("result 2") {
                    // Summed over all samples before single precision is left, not over a few: compared with the definition, within the
                    // bound of the convolution alone.
                    assert_near(&what, found, &exact_dw, 3e-6);
                } else {
                    assert!(found == expected, "{what}");
                }
            }
        }
    }
}

#[test]
fn small_planes_and_other_convolutions_are_not_covered() {
    assert!(!covers(&shape(2, 16, [8, 8], 3, 1, 1)));
    assert!(!covers(&shape(2, 16, [16, 16], 3, 2, 1)));
    assert!(!covers(&ConvShape { groups: 1, ..shape(2, 16, [20, 20], 3, 1, 1) }));
    assert!(covers(&shape(2, 16, [9, 2], 3, 1, 1)));
}

#[test]
#[should_panic(expected = "plane and channels of the norm")]
fn a_norm_of_other_channels_is_refused() {
    let shape = shape(1, 2, [9, 9], 3, 1, 1);
    let norm = Layer { plane: 81, gamma: &[1.0], beta: &[0.0], activation: Activation::Relu };
    let _ = forward(&[0.0; 162], &norm, EPSILON, &[0.0; 18], &shape, &mut [0.0; 162]);
}
