use std::process::Command;

use super::*;
use crate::arrays::{on_any_number_of_threads, random};
use crate::{blocks, conv, gate};

/// Blocks with every kind of plane: several vectors, less than one, sums in several blocks, groups of channels with a remainder.
fn shapes() -> Vec<BlockShape> {
    let shape = |batch, [inputs, wide, narrow, outputs]: [usize; 4], size, side, stride| BlockShape {
        batch,
        inputs,
        wide,
        narrow,
        outputs,
        size,
        side,
        stride,
        padding: side / 2,
    };
    vec![
        shape(3, [5, 5, 2, 7], [20, 23], 3, 1),
        shape(2, [3, 18, 1, 3], [130, 127], 3, 2),
        shape(4, [16, 96, 4, 16], [28, 28], 5, 1),
        shape(9, [11, 70, 3, 11], [7, 7], 3, 1),
        shape(5, [20, 330, 21, 40], [14, 14], 5, 2),
        shape(17, [340, 400, 19, 340], [4, 3], 3, 1),
        shape(6, [4, 24, 1, 4], [1, 1], 3, 1),
        shape(2, [2, 40, 2, 2], [150, 260], 3, 1),
    ]
}

/// Arrays of the layers: weights, factors and biases of expand, depthwise and project, weights and biases of the others.
fn arrays(shape: &BlockShape) -> Vec<[Vec<f32>; 3]> {
    let BlockShape { inputs, wide, narrow, outputs, side, .. } = *shape;
    let sizes = [[inputs, wide], [side * side, wide], [wide, narrow], [narrow, wide], [wide, outputs]];
    let layer = |(seed, [from, to]): (u64, [usize; 2])| {
        let small: Vec<f32> = random(seed, from * to).iter().map(|value| value / (from as f32).sqrt()).collect();
        [small, random(seed + 10, to), random(seed + 20, to)]
    };
    (1..).zip(sizes).map(layer).collect()
}

fn layers<'a>(arrays: &'a [[Vec<f32>; 3]], shape: &BlockShape, expands: bool) -> Layers<'a> {
    let layer = |index: usize, scaled: bool| {
        let [weights, scale, bias] = &arrays[index];
        Layer { weights, scale: scaled.then_some(&scale[..]), bias }
    };
    Layers {
        expand: expands.then(|| layer(0, true)),
        depthwise: layer(1, true),
        squeeze: layer(2, false),
        excite: layer(3, false),
        project: layer(4, true),
        activation: Activation::Silu,
        residual: shape.inputs == shape.outputs && shape.stride == 1,
    }
}

/// The layers one after the other.
fn one_by_one(x: &[f32], shape: &BlockShape, layers: &Layers) -> Vec<f32> {
    let BlockShape { batch, inputs, wide, narrow, outputs, .. } = *shape;
    let deep = shape.depthwise();
    let point = |inputs, outputs, size| {
        let one = [1; 3];
        ConvShape { batch, inputs, outputs, size, kernel: one, stride: one, padding: [0; 3], groups: 1 }
    };
    let conv = |x: &[f32], layer: &Layer, activation, shape: &ConvShape| {
        let of_output = layer.weights.len() / shape.outputs;
        let scale = |output: usize| layer.scale.map_or(1.0, |scale| scale[output]);
        let scaled: Vec<f32> =
            layer.weights.iter().enumerate().map(|(place, weight)| weight * scale(place / of_output)).collect();
        let mut y = vec![f32::NAN; shape.lengths()[2]];
        conv::forward(x, &scaled, Some(layer.bias), activation, shape, &mut y);
        y
    };
    let expanded = match &layers.expand {
        Some(layer) => conv(x, layer, layers.activation, &point(inputs, wide, deep.size)),
        None => x.to_vec(),
    };
    let convolved = conv(&expanded, &layers.depthwise, layers.activation, &deep);
    let mut means = vec![f32::NAN; batch * wide];
    pooling::average(&convolved, deep.output_plane(), &mut means);
    let squeezed = conv(&means, &layers.squeeze, layers.activation, &point(wide, narrow, [1; 3]));
    let gates = conv(&squeezed, &layers.excite, Activation::Sigmoid, &point(narrow, wide, [1; 3]));
    let mut scaled = vec![f32::NAN; convolved.len()];
    gate::forward(&convolved, deep.output_plane(), &gates, &mut scaled);
    let mut y = conv(&scaled, &layers.project, Activation::Identity, &point(wide, outputs, deep.output()));
    if layers.residual {
        y.iter_mut().zip(x).for_each(|(y, x)| *y += x);
    }
    y
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn a_block_has_the_bits_of_its_layers_one_after_the_other_on_any_number_of_threads() {
    for shape in shapes() {
        let expands = shape.inputs != shape.wide;
        let arrays = arrays(&shape);
        let layers = layers(&arrays, &shape, expands);
        let [plane, deep_plane] = shape.planes();
        let x = random(40, shape.batch * shape.inputs * plane);
        let expected = one_by_one(&x, &shape, &layers);
        assert!(expected.iter().any(|value| value.abs() > 1e-3), "{shape:?}: all values are nearly zero");
        let [y] = &on_any_number_of_threads(|| {
            let mut y = vec![f32::NAN; shape.batch * shape.outputs * deep_plane];
            forward(&x, &shape, &layers, &mut y);
            [y]
        });
        assert!(bits(y) == bits(&expected), "{shape:?}");
    }
}

/// Of the planes of 128 samples, which one thread takes together, those of 14 channels fill half of the cache.
#[test]
fn small_planes_of_more_samples_than_the_cache_holds_are_computed_in_whole_blocks_of_channels() {
    const NAME: &str = "small_planes_of_more_samples_than_the_cache_holds_are_computed_in_whole_blocks_of_channels";
    const CACHE: &str = "512K";
    if std::env::var(blocks::VARIABLE).as_deref() != Ok(CACHE) {
        let program = std::env::current_exe().expect("the test binary knows its path");
        let name = format!("conv::inverted_residual::tests::{NAME}");
        let mut command = Command::new(program);
        let run = command.args(["--exact", &name]).env(blocks::VARIABLE, CACHE).output().expect("the test starts");
        let text = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool of threads");
    for wide in [24, 32, 5] {
        let size = [6, 6];
        let shape =
            BlockShape { batch: 128, inputs: 4, wide, narrow: 1, outputs: 4, size, side: 5, stride: 2, padding: 0 };
        let arrays = arrays(&shape);
        let layers = layers(&arrays, &shape, true);
        let x = random(40, 128 * 4 * 36);
        let mut y = vec![f32::NAN; 128 * 4];
        pool.install(|| forward(&x, &shape, &layers, &mut y));
        assert!(bits(&y) == bits(&one_by_one(&x, &shape, &layers)), "{wide} channels");
    }
}

#[test]
fn what_is_not_a_number_stays_in_its_sample() {
    for shape in shapes() {
        let arrays = arrays(&shape);
        let layers = layers(&arrays, &shape, shape.inputs != shape.wide);
        let [plane, deep_plane] = shape.planes();
        let mut x = random(40, shape.batch * shape.inputs * plane);
        x[shape.inputs * plane + plane / 2] = f32::NAN;
        let mut y = vec![0.0; shape.batch * shape.outputs * deep_plane];
        forward(&x, &shape, &layers, &mut y);
        for (sample, y) in y.chunks_exact(shape.outputs * deep_plane).enumerate() {
            assert_eq!(y.iter().any(|value| value.is_nan()), sample == 1, "{shape:?}, sample {sample}");
        }
    }
}

#[test]
fn a_block_pays_where_its_arrays_are_large_and_the_samples_are_shared_evenly() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().expect("a pool of threads");
    let large = BlockShape {
        batch: 16,
        inputs: 16,
        wide: 96,
        narrow: 4,
        outputs: 24,
        size: [112, 112],
        side: 3,
        stride: 2,
        padding: 1,
    };
    assert_eq!(large.depthwise().kind(), Some(ConvKind::Depthwise));
    let pays = |shape: BlockShape| pool.install(|| shape.pays());
    assert!(pays(large));
    for other in [
        BlockShape { batch: 1, ..large },
        BlockShape { batch: 5, ..large },
        BlockShape { size: [4, 4], ..large },
        BlockShape { side: 7, ..large },
        BlockShape { stride: 3, ..large },
        BlockShape { narrow: 0, ..large },
        // With one group it is a dense convolution.
        BlockShape { wide: 1, size: [2000, 2000], ..large },
    ] {
        assert!(!pays(other), "{other:?}");
    }
}

#[test]
#[should_panic(expected = "channels in every layer")]
fn a_block_without_a_channel_to_squeeze_to_is_refused() {
    let shape = BlockShape { narrow: 0, ..shapes()[0] };
    let arrays = arrays(&shape);
    let [plane, deep_plane] = shape.planes();
    let x = vec![0.0; shape.batch * shape.inputs * plane];
    let mut y = vec![0.0; shape.batch * shape.outputs * deep_plane];
    forward(&x, &shape, &layers(&arrays, &shape, false), &mut y);
}
