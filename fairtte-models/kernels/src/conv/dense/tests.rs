//! Dense convolutions and their gradients against plain loops in double precision.

use super::sums::WeightSum as _;
use super::winograd::choice::{Edge, tiles, tiles_of_weights};
use super::winograd::tiling::{FourByFour, Tiling, TwoByTwo};
use super::winograd::weights::TileSum;
use super::*;
use crate::arrays::{assert_near, on_any_number_of_threads, random};

/// Calls `visit` with the index into input, weights and output of every product that the convolution sums.
fn every_product(shape: &ConvShape, mut visit: impl FnMut(usize, usize, usize)) {
    let ConvShape { batch, inputs, outputs, size, kernel, stride, padding, .. } = *shape;
    let output = shape.output();
    let inside = |place: usize, tap: usize, axis: usize| {
        let padded = place * stride[axis] + tap;
        (padded >= padding[axis] && padded < size[axis] + padding[axis]).then(|| padded - padding[axis])
    };
    for (sample, to) in (0..batch).flat_map(|sample| (0..outputs).map(move |to| (sample, to))) {
        for [od, oh, ow] in positions(output) {
            let at = (((sample * outputs + to) * output[0] + od) * output[1] + oh) * output[2] + ow;
            for (from, [kd, kh, kw]) in (0..inputs).flat_map(|from| positions(kernel).map(move |tap| (from, tap))) {
                let (Some(d), Some(h), Some(w)) = (inside(od, kd, 0), inside(oh, kh, 1), inside(ow, kw, 2)) else {
                    continue;
                };
                let x = (((sample * inputs + from) * size[0] + d) * size[1] + h) * size[2] + w;
                let weight = (((to * inputs + from) * kernel[0] + kd) * kernel[1] + kh) * kernel[2] + kw;
                visit(x, weight, at);
            }
        }
    }
}

/// A sum and the sum of the magnitudes of its terms.
type Sum = [f64; 2];

/// Output, gradient of the input and gradient of the weights.
fn plain(shape: &ConvShape, x: &[f32], w: &[f32], dy: &[f32]) -> [Vec<Sum>; 3] {
    let [mut y, mut dx, mut dw] = [dy.len(), x.len(), w.len()].map(|length| vec![[0.0, 0.0]; length]);
    let add = |sum: &mut Sum, a: f32, b: f32| {
        let term = f64::from(a) * f64::from(b);
        *sum = [sum[0] + term, sum[1] + term.abs()];
    };
    every_product(shape, |from, weight, to| {
        add(&mut y[to], x[from], w[weight]);
        add(&mut dx[from], dy[to], w[weight]);
        add(&mut dw[weight], dy[to], x[from]);
    });
    [y, dx, dw]
}

/// Compares a result that was computed in tiles of a size, if any.
fn compare(what: &str, shape: &ConvShape, edge: Option<Edge>, found: &[f32], expected: &[Sum]) {
    let largest = expected.iter().map(|&[_, size]| size).fold(0.0, f64::max);
    for (index, (&found, &[sum, size])) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(found) - sum).abs();
        // Large tiles mix the values of 6 x 6 places, so the error of a small sum at the edge is that of the sums beside it.
        let size = if edge == Some(Edge::Four) { largest } else { size };
        assert!(error <= 1e-6 * size + 1e-30, "{what} of {shape:?} at {index}: {found} instead of {sum}");
    }
}

/// Compares output, gradient of the input and gradient of the weights.
fn compare_all(shape: &ConvShape, edges: [Option<Edge>; 3], found: &[Vec<f32>; 3], expected: &[Vec<Sum>; 3]) {
    let what = ["output", "gradient of the input", "gradient of the weights"];
    for (index, what) in what.iter().enumerate() {
        compare(what, shape, edges[index], &found[index], &expected[index]);
    }
}

/// The tiles of output, gradient of the input and gradient of the weights.
fn tiles_in(shape: &ConvShape) -> [Option<Edge>; 3] {
    [tiles(shape), shape.transposed().as_ref().and_then(tiles), tiles_of_weights(shape)]
}

/// A convolution over pictures.
fn picture(
    batch: usize,
    channels: [usize; 2],
    size: [usize; 2],
    kernel: [usize; 2],
    stride: usize,
    pad: usize,
) -> ConvShape {
    ConvShape {
        batch,
        inputs: channels[0],
        outputs: channels[1],
        size: [1, size[0], size[1]],
        kernel: [1, kernel[0], kernel[1]],
        stride: [1, stride, stride],
        padding: [0, pad, pad],
        groups: 1,
    }
}

fn volume(
    batch: usize,
    channels: [usize; 2],
    size: [usize; 3],
    kernel: [usize; 3],
    stride: [usize; 3],
    padding: [usize; 3],
) -> ConvShape {
    ConvShape { batch, inputs: channels[0], outputs: channels[1], size, kernel, stride, padding, groups: 1 }
}

fn shapes() -> Vec<ConvShape> {
    vec![
        picture(1, [1, 1], [1, 1], [1, 1], 2, 0),
        picture(1, [1, 1], [1, 1], [3, 3], 1, 1),
        picture(2, [3, 5], [17, 19], [7, 7], 2, 3),
        picture(3, [4, 15], [7, 7], [3, 3], 1, 1),
        picture(2, [17, 16], [14, 14], [3, 3], 2, 1),
        picture(1, [5, 33], [9, 70], [3, 3], 1, 1),
        picture(2, [6, 7], [8, 5], [1, 1], 2, 0),
        picture(2, [3, 20], [32, 32], [16, 16], 16, 0),
        picture(1, [2, 3], [5, 6], [2, 4], 3, 2),
        picture(1, [40, 30], [12, 11], [3, 3], 1, 0),
        picture(1, [2, 2], [4, 4], [3, 3], 1, 4),
        picture(1, [2, 2], [3, 30], [1, 1], 5, 0),
        // No element of the kernel is ever inside.
        picture(1, [2, 3], [1, 1], [2, 2], 5, 3),
        picture(3, [40, 20], [7, 7], [3, 3], 2, 1),
        picture(2, [20, 140], [6, 6], [3, 3], 1, 1),
        // In tiles, 16 of each picture, but for the gradient of the weights.
        picture(9, [32, 40], [7, 8], [3, 3], 1, 1),
        volume(2, [1, 6], [6, 9, 10], [3, 7, 7], [1, 2, 2], [1, 3, 3]),
        // Rows of the kernel that are copied side by side for the gradient of the weights.
        volume(2, [1, 20], [5, 9, 40], [3, 7, 7], [1, 2, 2], [1, 3, 3]),
        picture(2, [4, 40], [23, 21], [5, 5], 1, 2),
        volume(1, [5, 4], [5, 6, 7], [3, 3, 3], [1; 3], [1; 3]),
        volume(2, [4, 9], [6, 4, 4], [3, 3, 3], [2; 3], [1; 3]),
        volume(2, [3, 8], [7, 5, 6], [1; 3], [2; 3], [0; 3]),
        volume(1, [3, 3], [9, 2, 3], [3, 1, 1], [2, 1, 1], [1, 0, 0]),
        volume(1, [30, 20], [3, 2, 2], [3, 3, 3], [1; 3], [1; 3]),
    ]
    .into_iter()
    .chain(shapes_of_few_products())
    .chain(shapes_of_few_places())
    .collect()
}

/// Shapes whose samples are innermost.
fn shapes_of_few_places() -> Vec<ConvShape> {
    vec![
        picture(17, [30, 25], [4, 4], [3, 3], 1, 1),
        // Two products; and 13 with places behind the last whole vector.
        picture(40, [20, 33], [4, 4], [3, 3], 1, 1),
        picture(100, [3, 2], [7, 9], [3, 3], 1, 1),
        picture(70, [9, 16], [5, 3], [3, 3], 2, 1),
        picture(15, [31, 17], [2, 2], [3, 3], 2, 1),
        picture(16, [3, 20], [14, 15], [7, 7], 2, 3),
        // Of the kernel only the centre, and four elements of nine, are ever inside.
        picture(16, [40, 20], [1, 1], [3, 3], 1, 1),
        picture(30, [50, 4], [2, 2], [3, 3], 3, 1),
        picture(16, [400, 30], [2, 2], [1, 1], 2, 0),
        volume(16, [8, 20], [2, 3, 2], [3, 3, 3], [1; 3], [1; 3]),
        volume(8, [6, 10], [8, 7, 6], [3, 3, 3], [2; 3], [1; 3]),
    ]
}

/// Shapes that are computed in tiles.
fn shapes_of_few_products() -> Vec<ConvShape> {
    vec![
        // Several pictures in a task, in the last one fewer.
        picture(5, [61, 70], [13, 10], [3, 3], 1, 1),
        picture(3, [40, 32], [19, 20], [3, 3], 1, 0),
        picture(1, [32, 47], [12, 45], [3, 3], 1, 2),
        // More tiles than a task has.
        picture(1, [50, 32], [50, 61], [3, 3], 1, 1),
        volume(1, [32, 33], [5, 8, 9], [3, 3, 3], [1; 3], [1; 3]),
        volume(2, [34, 32], [10, 18, 17], [3, 3, 3], [1; 3], [1; 3]),
        volume(1, [45, 50], [9, 8, 6], [2, 3, 3], [1; 3], [0, 1, 1]),
        volume(1, [32, 32], [4, 10, 11], [5, 3, 3], [1; 3], [3, 0, 2]),
        volume(1, [64, 32], [7, 31, 19], [3, 3, 3], [1; 3], [1; 3]),
    ]
}

/// Shapes whose kernels are larger than their inputs, which all tasks then share.
fn shapes_of_many_channels() -> Vec<ConvShape> {
    vec![picture(3, [40, 70], [7, 6], [3, 3], 1, 1), volume(2, [33, 60], [2, 4, 6], [3, 3, 3], [1; 3], [1; 3])]
}

/// Output and gradients by the kernels.
fn compute(shape: &ConvShape, x: &[f32], w: &[f32], dy: &[f32]) -> [Vec<f32>; 3] {
    let [mut y, mut dx, mut dw] = [dy.len(), x.len(), w.len()].map(|length| vec![f32::NAN; length]);
    forward(x, w, None, Activation::Identity, shape, &mut y);
    input_gradient(w, dy, shape, &mut dx);
    weight_gradient(x, dy, shape, &mut dw);
    [y, dx, dw]
}

fn arrays(shape: &ConvShape) -> [Vec<f32>; 3] {
    let [x, w, y] = shape.lengths();
    [random(1, x), random(2, w), random(3, y)]
}

#[test]
fn output_and_gradients_are_the_sums_of_all_products() {
    for shape in shapes() {
        let [x, w, dy] = arrays(&shape);
        let found = compute(&shape, &x, &w, &dy);
        compare_all(&shape, tiles_in(&shape), &found, &plain(&shape, &x, &w, &dy));
    }
}

#[test]
fn a_stride_beyond_the_picture_has_a_phase_for_every_place_alone() {
    let shape = picture(2, [3, 2], [4, 5], [3, 3], 700, 1);
    assert_eq!(phases(&shape).len(), 20);
    let [x, w, dy] = arrays(&shape);
    compare_all(&shape, [None; 3], &compute(&shape, &x, &w, &dy), &plain(&shape, &x, &w, &dy));
}

#[test]
fn samples_are_innermost_where_rows_are_short() {
    let is_small = |shape: &ConvShape| {
        let ConvShape { batch, inputs: channels, size, stride, .. } = *shape;
        let taps: Vec<_> = positions(shape.kernel).map(|tap| offsets(tap, shape.padding)).collect();
        Sliding { source: &[], channels, size, grid: shape.output(), stride, taps: &taps }.is_small(batch)
    };
    for shape in shapes_of_few_places() {
        assert!(is_small(&shape) && !has_fewer_products(&shape), "{shape:?}");
    }
    // Of one sample a row has two values.
    assert!(!is_small(&picture(1, [8, 8], [2, 2], [3, 3], 1, 1)));
    assert!(!is_small(&picture(16, [8, 8], [9, 9], [3, 3], 1, 1)));
}

#[test]
fn tiles_are_taken_where_they_save_time() {
    for shape in shapes_of_few_products() {
        assert!(has_fewer_products(&shape) && tiles_of_weights(&shape).is_some(), "{shape:?}");
        assert!(shape.transposed().is_some_and(|shape| has_fewer_products(&shape)), "gradient of {shape:?}");
    }
    let large = picture(4, [64, 64], [56, 56], [3, 3], 1, 1);
    let sides = |side: usize| ConvShape { size: [1, side, side], ..large };
    assert_eq!([56, 28].map(|side| tiles(&sides(side))), [Some(Edge::Four); 2]);
    // Rows of two large tiles leave most of a vector empty, unless the products of many channels take longer than the transforms.
    assert_eq!(tiles(&sides(8)), Some(Edge::Two));
    assert_eq!(tiles(&ConvShape { inputs: 256, outputs: 256, batch: 16, ..sides(8) }), Some(Edge::Four));
    // The transforms of larger kernels would take more than 64 MiB.
    let deep = volume(2, [512, 512], [6, 8, 8], [3; 3], [1; 3], [1; 3]);
    assert_eq!([tiles(&deep), tiles(&ConvShape { inputs: 256, ..deep })], [Some(Edge::Two), Some(Edge::Four)]);
    // 10 places are two and a half large tiles.
    assert_eq!(tiles(&sides(10)), Some(Edge::Two));
    // 16 large tiles in the batch, 12 of them or 48 small ones, 4 of them or 16 small ones.
    let of_weights =
        |batch: usize, depth: usize| tiles_of_weights(&volume(batch, [64, 64], [depth, 7, 7], [3; 3], [1; 3], [1; 3]));
    let expected = [Some(Edge::Four), Some(Edge::Two), None];
    assert_eq!([(4, 1), (3, 1), (1, 1)].map(|(batch, depth)| of_weights(batch, depth)), expected);
    assert_eq!([(1, 4), (1, 3)].map(|(batch, depth)| of_weights(batch, depth)), expected[..2]);
    let narrow = ConvShape { inputs: 16, ..large };
    assert_eq!((tiles(&narrow), tiles_of_weights(&narrow)), (Some(Edge::Four), None));
    let narrow = ConvShape { size: [4, 56, 56], kernel: [3; 3], padding: [1; 3], ..narrow };
    assert_eq!((tiles(&narrow), tiles_of_weights(&narrow)), (Some(Edge::Four), Some(Edge::Four)));
    let others = [
        ConvShape { size: [50, 3, 3], ..large },
        ConvShape { outputs: 512, inputs: 512, batch: 1, ..sides(7) },
        ConvShape { inputs: 2048, outputs: 2048, batch: 64, ..sides(7) },
        ConvShape { inputs: 3, ..large },
        ConvShape { outputs: 8, ..large },
        ConvShape { stride: [1, 2, 2], ..large },
        ConvShape { kernel: [1, 3, 5], ..large },
        ConvShape { padding: [0, 3, 3], ..large },
        ConvShape { groups: 64, ..large },
    ];
    for shape in others {
        assert_eq!((tiles(&shape), has_fewer_products(&shape)), (None, false), "{shape:?}");
    }
}

/// The results of [`compute`] by tiles of one size, and whether each of them can be used.
fn compute_in_tiles<T: Tiling>(shape: &ConvShape, x: &[f32], w: &[f32], dy: &[f32]) -> ([Vec<f32>; 3], [bool; 3]) {
    let [mut y, mut dx, mut dw] = [dy.len(), x.len(), w.len()].map(|length| vec![f32::NAN; length]);
    let transposed = shape.transposed().expect("a convolution with a gradient in tiles");
    let forward = Winograd { shape: *shape, source: x, weights: w, transposed: false };
    let backward = Winograd { shape: transposed, source: dy, weights: w, transposed: true };
    let used = [
        forward.compute_in::<T>(None, Activation::Identity, &mut y),
        backward.compute_in::<T>(None, Activation::Identity, &mut dx),
        sums::sum_weights(&TileSum::<T>::new(x, dy, shape), &mut dw),
    ];
    ([y, dx, dw], used)
}

fn tiles_of_one_size_are_used_unless_a_number_is_not_finite<T: Tiling>(edge: Edge) {
    for shape in shapes_of_few_products().into_iter().chain(shapes_of_many_channels()) {
        let [mut x, mut w, dy] = arrays(&shape);
        let (found, used) = compute_in_tiles::<T>(&shape, &x, &w, &dy);
        assert_eq!(used, [true; 3], "{edge:?}: {shape:?}");
        compare_all(&shape, [Some(edge); 3], &found, &plain(&shape, &x, &w, &dy));
        let at = x.len() - 1;
        let number = std::mem::replace(&mut x[at], f32::NEG_INFINITY);
        assert_eq!(
            compute_in_tiles::<T>(&shape, &x, &w, &dy).1,
            [false, true, false],
            "{edge:?}: infinity in {shape:?}"
        );
        x[at] = number;
        w[0] = f32::NAN;
        assert_eq!(compute_in_tiles::<T>(&shape, &x, &w, &dy).1, [false, false, true], "{edge:?}: NaN in {shape:?}");
    }
}

#[test]
fn small_tiles_are_used_unless_a_number_is_not_finite() {
    tiles_of_one_size_are_used_unless_a_number_is_not_finite::<TwoByTwo>(Edge::Two);
}

#[test]
fn large_tiles_are_used_unless_a_number_is_not_finite() {
    tiles_of_one_size_are_used_unless_a_number_is_not_finite::<FourByFour>(Edge::Four);
}

#[test]
fn weights_in_tiles_are_those_of_the_plain_sum_for_many_channels() {
    fn check<T: Tiling>(shape: &ConvShape, x: &[f32], dy: &[f32], plain: &[f64]) {
        let mut in_tiles = vec![f32::NAN; plain.len()];
        assert!(sums::sum_weights(&TileSum::<T>::new(x, dy, shape), &mut in_tiles));
        assert_near("gradient of the weights", &in_tiles, plain, 2e-6);
    }
    // Several groups of outputs; several bands for one part, and several parts; bands of several samples, also of volumes.
    for shape in [
        picture(40, [33, 32], [7, 7], [3, 3], 1, 1),
        volume(6, [40, 36], [3, 7, 7], [3; 3], [1; 3], [1; 3]),
        volume(2, [96, 72], [4, 8, 9], [5, 3, 3], [1; 3], [2, 1, 1]),
        picture(1, [32, 130], [24, 24], [3, 3], 1, 1),
        picture(3, [70, 200], [20, 26], [3, 3], 1, 1),
    ] {
        let [x, w, dy] = arrays(&shape);
        let mut plain = vec![f32::NAN; w.len()];
        sums::sum_weights(&Staged::new(&x, &dy, &shape), &mut plain);
        let plain: Vec<f64> = plain.into_iter().map(f64::from).collect();
        assert!(tiles_of_weights(&shape).is_some(), "{shape:?}");
        check::<TwoByTwo>(&shape, &x, &dy, &plain);
        check::<FourByFour>(&shape, &x, &dy, &plain);
    }
}

#[test]
fn numbers_that_only_tiles_cannot_hold_are_summed_one_by_one() {
    let shape = picture(1, [32, 32], [16, 16], [3, 3], 1, 1);
    // Differences of neighbours overflow single precision, sums of products do not.
    let x: Vec<f32> = (0..32 * 256).map(|place| if place % 4 < 2 { 3e38 } else { -3e38 }).collect();
    let [_, w, y] = shape.lengths();
    let w: Vec<f32> = random(1, w).iter().map(|value| 1e-3 * value).collect();
    assert!(!compute_in_tiles::<TwoByTwo>(&shape, &x, &w, &vec![0.0; y]).1[0]);
    assert!(!compute_in_tiles::<FourByFour>(&shape, &x, &w, &vec![0.0; y]).1[0]);
    let [found, ..] = compute(&shape, &x, &w, &vec![0.0; y]);
    let expected = plain(&shape, &x, &w, &vec![0.0; y]);
    compare("output", &shape, tiles(&shape), &found, &expected[0]);
}

#[test]
fn many_steps_and_channels_are_summed_in_full() {
    // More steps than a block holds, more rows and columns than a task; every result known in advance.
    let shape = picture(2, [150, 200], [30, 30], [3, 3], 1, 1);
    let [x, w, y] = shape.lengths();
    let [found, dx, dw] = compute(&shape, &vec![1.0; x], &vec![0.5; w], &vec![0.25; y]);
    let neighbours = |place: usize| if place == 0 || place == 29 { 2.0 } else { 3.0 };
    for (index, (y, dx)) in found.iter().zip(&dx[..150 * 900]).enumerate() {
        let seen = neighbours(index / 30 % 30) * neighbours(index % 30);
        assert!((y - 75.0 * seen).abs() < 2e-3, "output at {index}: {y}");
        assert!((dx - 25.0 * seen).abs() < 2e-3, "gradient of the input at {index}: {dx}");
    }
    for (index, dw) in dw.iter().enumerate() {
        let seen = |tap: usize| if tap == 1 { 30.0 } else { 29.0 };
        let expected = 0.5 * seen(index / 3 % 3) * seen(index % 3);
        assert!((dw - expected).abs() < 1e-2, "gradient of the weights at {index}: {dw} instead of {expected}");
    }
}

#[test]
fn finite_differences_agree_with_the_gradients() {
    let shape = volume(1, [2, 3], [3, 4, 5], [3, 3, 3], [1, 2, 2], [1; 3]);
    let [mut x, mut w, dy] = arrays(&shape);
    let [_, dx, dw] = compute(&shape, &x, &w, &dy);
    // The loss, sum(dy * y), is linear in each element, so a step of any size will do.
    let loss = |x: &[f32], w: &[f32]| {
        let mut sum = 0.0;
        every_product(&shape, |from, weight, to| sum += f64::from(x[from]) * f64::from(w[weight]) * f64::from(dy[to]));
        sum
    };
    let before = loss(&x, &w);
    for at in [0, 7, 59, 119] {
        x[at] += 1.0;
        assert!((loss(&x, &w) - before - f64::from(dx[at])).abs() < 1e-4, "input {at}");
        x[at] -= 1.0;
    }
    let before = loss(&x, &w);
    for at in [0, 26, 80, 161] {
        w[at] += 1.0;
        assert!((loss(&x, &w) - before - f64::from(dw[at])).abs() < 1e-4, "weight {at}");
        w[at] -= 1.0;
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let mut shapes = shapes();
    shapes.extend([
        picture(5, [20, 40], [28, 28], [3, 3], 1, 1),
        picture(1, [3, 64], [56, 56], [7, 7], 2, 3),
        picture(16, [40, 70], [7, 7], [3, 3], 2, 1),
        // In tiles, in one part and in several: units of one to three blocks of channels, of which the last is not full.
        picture(16, [70, 150], [7, 7], [3, 3], 1, 1),
        picture(12, [70, 72], [28, 28], [3, 3], 1, 1),
    ]);
    for shape in shapes {
        let [x, w, dy] = arrays(&shape);
        on_any_number_of_threads(|| compute(&shape, &x, &w, &dy));
    }
}

#[test]
fn few_threads_take_large_units_of_the_gradient_of_the_weights() {
    let groups = |channels: [usize; 2], size: usize, parts: usize, threads: usize| {
        let shape = picture(16, channels, [size; 2], [3, 3], 1, 1);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool of threads");
        pool.install(|| TileSum::<FourByFour>::new(&[], &[], &shape).groups(parts))
    };
    // Seven parts are enough for two threads; sixteen threads take as many units as there are.
    assert_eq!([2, 16].map(|threads| groups([64, 64], 56, 7, threads)), [[1, 1], [2, 1]]);
    // Two units for each thread, which transform every channel twice instead of the gradient four times.
    assert_eq!([1, 2].map(|threads| groups([128, 128], 28, 1, threads)), [[1, 2], [2, 2]]);
    // The sums of a unit have a largest size: two by two units would exceed it.
    assert_eq!(groups([512, 512], 7, 1, 2), [2, 3]);
}

#[test]
fn bias_and_activation_follow_the_sums() {
    for shape in shapes() {
        let [x, w, _] = arrays(&shape);
        let bias = random(4, shape.outputs);
        let length = shape.lengths()[2];
        let [mut plain, mut finished] = [vec![0.0; length], vec![0.0; length]];
        forward(&x, &w, None, Activation::Identity, &shape, &mut plain);
        forward(&x, &w, Some(&bias), Activation::Relu, &shape, &mut finished);
        for (index, (plain, finished)) in plain.iter().zip(&finished).enumerate() {
            let expected = (plain + bias[index / shape.output_plane() % shape.outputs]).max(0.0);
            assert!((finished - expected).abs() <= 1e-6, "{shape:?} at {index}: {finished} instead of {expected}");
        }
    }
}

#[test]
fn what_is_not_a_number_reaches_what_sees_it_and_nothing_else() {
    for shape in shapes() {
        let [mut x, w, mut dy] = arrays(&shape);
        let at = x.len() / 2;
        let number = std::mem::replace(&mut x[at], f32::NAN);
        let [y, _, dw] = compute(&shape, &x, &w, &dy);
        let [mut in_output, mut in_gradient] = [vec![false; y.len()], vec![false; w.len()]];
        every_product(&shape, |from, weight, to| {
            in_output[to] |= from == at;
            in_gradient[weight] |= from == at;
        });
        assert!(y.iter().zip(&in_output).all(|(y, &expected)| y.is_nan() == expected), "output of {shape:?}");
        assert!(dw.iter().zip(&in_gradient).all(|(dw, &expected)| dw.is_nan() == expected), "gradient of {shape:?}");
        x[at] = number;
        let at = dy.len() / 2;
        dy[at] = f32::INFINITY;
        let [_, dx, _] = compute(&shape, &x, &w, &dy);
        let mut in_gradient = vec![false; x.len()];
        every_product(&shape, |from, _, to| in_gradient[from] |= to == at);
        let alike = |(dx, &expected): (&f32, &bool)| dx.is_infinite() == expected && !dx.is_nan();
        assert!(dx.iter().zip(&in_gradient).all(alike), "gradient of the input of {shape:?}");
    }
}

#[test]
fn huge_and_zero_values_are_ordinary_ones() {
    let shape = picture(1, [2, 3], [6, 6], [3, 3], 1, 1);
    let [x, w, y] = shape.lengths();
    let [found, dx, dw] = compute(&shape, &vec![0.0; x], &random(1, w), &vec![0.0; y]);
    assert!(found.iter().chain(&dx).chain(&dw).all(|&value| value == 0.0));
    let [found, ..] = compute(&shape, &vec![1e37; x], &vec![0.5; w], &vec![0.0; y]);
    assert!((found[7] - 9e37).abs() < 1e32, "{}", found[7]);
}
