//! Values and gradients compared with those of burn's own operations, over random shapes.

use burn::module::Module as _;
use burn::nn::conv::{Conv2dConfig, Conv3dConfig};
use burn::nn::{BatchNormConfig, PaddingConfig2d, PaddingConfig3d};
use burn::tensor::Tensor;
use proptest::prelude::*;

use super::super::{self as fast, Activation};
use super::{assert_close, by_burn, device, difference_of_scale, plain_device, tensor, values};

/// Single precision of two sums in different order, relative to the largest value.
const BOUND: f32 = 2e-5;

const ACTIVATIONS: [Activation; 5] =
    [Activation::Identity, Activation::Relu, Activation::Silu, Activation::Gelu, Activation::Sigmoid];

/// Output and gradients of `compute` with respect to its inputs, for a fixed gradient of the output.
fn with_gradients<const D: usize, const N: usize>(
    inputs: [Tensor<D>; N],
    compute: impl Fn(&[Tensor<D>; N]) -> Tensor<D>,
) -> Vec<Vec<f32>> {
    let inputs = inputs.map(Tensor::require_grad);
    let output = compute(&inputs);
    let weights = tensor(output.dims(), 77, &output.device());
    let gradients = (output.clone() * weights).sum().backward();
    let mut found = vec![values(output.inner())];
    found.extend(inputs.iter().map(|input| values(input.grad(&gradients).expect("a gradient"))));
    found
}

fn compare(what: &str, found: &[Vec<f32>], expected: &[Vec<f32>]) {
    let names = ["output", "first gradient", "second gradient", "third gradient"];
    let n_outputs = found[0].len();
    for ((found, expected), name) in found.iter().zip(expected).zip(names) {
        // A gradient with fewer values than the output has sums of terms in [-1, 1], of root mean square 1/3. Where there is
        // only one of them it may be near zero, and then its rounding error is large relative to it, though not
        // relative to the terms.
        let n_terms = n_outputs as f32 / found.len() as f32;
        let typical = if n_terms > 1.0 { n_terms.sqrt() / 3.0 } else { 0.0 };
        let difference = difference_of_scale(typical.max(1e-6), found, expected);
        assert!(difference <= BOUND, "{what}, {name}: {difference:e} apart, expected at most {BOUND:e}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn convolutions_of_pictures_are_burns(
        (batch, inputs, outputs) in (1_usize..4, 1_usize..20, 1_usize..36),
        (height, width) in (1_usize..24, 1_usize..24),
        kernel in 1_usize..6,
        stride in 1_usize..4,
        padding in 0_usize..3,
        depthwise in any::<bool>(),
        biased in any::<bool>(),
    ) {
        prop_assume!(height + 2 * padding >= kernel && width + 2 * padding >= kernel);
        let (outputs, groups) = if depthwise { (inputs, inputs) } else { (outputs, 1) };
        let conv = Conv2dConfig::new([inputs, outputs], [kernel; 2])
            .with_stride([stride; 2])
            .with_groups(groups)
            .with_padding(PaddingConfig2d::Explicit(padding, padding, padding, padding))
            .with_bias(biased)
            .init(&device());
        let x = tensor([batch, inputs, height, width], 1, &device());
        let weight = tensor(conv.weight.dims(), 2, &device());
        let run = || with_gradients([x.clone(), weight.clone()], |[x, weight]| {
            let mut conv = conv.clone();
            conv.weight = conv.weight.map(|_| weight.clone());
            fast::conv2d(&conv, x.clone())
        });
        compare(&format!("{:?}", x.dims()), &run(), &by_burn(run));
    }

    #[test]
    fn convolutions_of_volumes_are_burns(
        (batch, inputs, outputs) in (1_usize..3, 1_usize..9, 1_usize..18),
        size in prop::array::uniform3(1_usize..9),
        kernel in prop::array::uniform3(1_usize..4),
        stride in prop::array::uniform3(1_usize..3),
        padding in prop::array::uniform3(0_usize..2),
    ) {
        prop_assume!((0..3).all(|axis| size[axis] + 2 * padding[axis] >= kernel[axis]));
        let conv = Conv3dConfig::new([inputs, outputs], kernel)
            .with_stride(stride)
            .with_padding(PaddingConfig3d::Explicit(padding[0], padding[1], padding[2]))
            .with_bias(false)
            .init(&device());
        let x = tensor([batch, inputs, size[0], size[1], size[2]], 3, &device());
        let weight = tensor(conv.weight.dims(), 4, &device());
        let run = || with_gradients([x.clone(), weight.clone()], |[x, weight]| {
            let mut conv = conv.clone();
            conv.weight = conv.weight.map(|_| weight.clone());
            fast::conv3d(&conv, x.clone())
        });
        compare(&format!("{:?}", x.dims()), &run(), &by_burn(run));
    }

    #[test]
    fn batch_norms_are_burns(
        (batch, channels, height, width) in (1_usize..5, 1_usize..9, 1_usize..12, 1_usize..12),
        activation in prop::sample::select(ACTIVATIONS.to_vec()),
        trains in any::<bool>(),
    ) {
        // With two values a channel is always +-1, and its gradient is only rounding error.
        prop_assume!(batch * height * width > 4);
        let x = tensor([batch, channels, height, width], 5, &device()) * 3.0 + 0.5;
        let run = || {
            let mut norm = BatchNormConfig::new(channels).init(&device());
            norm.gamma = norm.gamma.map(|_| tensor([channels], 6, &device()) + 1.5);
            norm.beta = norm.beta.map(|_| tensor([channels], 7, &device()));
            norm.running_mean.update(tensor([channels], 8, &device()));
            norm.running_var.update(tensor([channels], 9, &device()) + 2.0);
            if !trains {
                norm = norm.freeze();
            }
            let x = x.clone().require_grad();
            let y = fast::bn_act(&norm, x.clone(), activation);
            let weights = tensor(y.dims(), 10, &device());
            let gradients = (y.clone() * weights).sum().backward();
            let of = |tensor: &Tensor<1>| tensor.grad(&gradients).map(values).unwrap_or_default();
            let parameters = [of(&norm.gamma.val()), of(&norm.beta.val())];
            let running = [norm.running_mean.value_sync(), norm.running_var.value_sync()].map(values);
            (vec![values(y.inner()), values(x.grad(&gradients).expect("a gradient"))], parameters, running)
        };
        let (found, expected) = (run(), by_burn(run));
        compare(&format!("{activation:?} {:?}", x.dims()), &found.0, &expected.0);
        for place in 0..2 {
            assert_close("gradient of a parameter", &found.1[place], &expected.1[place], BOUND);
            assert_close("running statistics", &found.2[place], &expected.2[place], BOUND);
        }
    }

    #[test]
    fn activations_gates_and_sums_are_burns(
        (batch, channels, height, width) in (1_usize..5, 1_usize..9, 1_usize..12, 1_usize..12),
        activation in prop::sample::select(ACTIVATIONS.to_vec()),
    ) {
        let shape = [batch, channels, height, width];
        let (a, b) = (tensor(shape, 11, &device()) * 6.0, tensor(shape, 12, &device()));
        let gate = tensor([batch, channels, 1, 1], 13, &device());
        let activated = || with_gradients([a.clone()], |[a]| fast::act(a.clone(), activation));
        compare("activation", &activated(), &by_burn(activated));
        let gated = || with_gradients([a.clone(), gate.clone()], |[a, gate]| fast::gate(a.clone(), gate.clone()));
        compare("gate", &gated(), &by_burn(gated));
        let added = || with_gradients([a.clone(), b.clone()], |[a, b]| fast::add_relu(a.clone(), b.clone()));
        compare("sum", &added(), &by_burn(added));
        let averaged = || with_gradients([a.clone()], |[a]| fast::average(a.clone()));
        compare("average", &averaged(), &by_burn(averaged));
    }

    #[test]
    fn maxima_over_windows_are_burns(
        (batch, channels, height, width) in (1_usize..4, 1_usize..5, 1_usize..14, 1_usize..14),
        kernel in prop::array::uniform2(1_usize..4),
        stride in prop::array::uniform2(1_usize..4),
        ties in any::<bool>(),
    ) {
        let padding = kernel.map(|kernel| kernel / 2);
        prop_assume!(height + 2 * padding[0] >= kernel[0] && width + 2 * padding[1] >= kernel[1]);
        let x = tensor([batch, channels, height, width], 14, &device());
        let x = if ties { (x * 2.0).floor() } else { x };
        let pooled = || with_gradients([x.clone()], |[x]| fast::max_pool(x.clone(), kernel, stride, padding));
        compare("maximum", &pooled(), &by_burn(pooled));
    }
}

#[test]
fn inference_with_a_folded_batch_norm_is_that_of_the_layers() {
    let device = plain_device();
    for activation in ACTIVATIONS {
        let conv = Conv2dConfig::new([5, 7], [3, 3]).with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init(&device);
        let mut norm = BatchNormConfig::new(7).init(&device);
        norm.gamma = norm.gamma.map(|_| tensor([7], 20, &device) + 1.5);
        norm.beta = norm.beta.map(|_| tensor([7], 21, &device));
        norm.running_mean.update(tensor([7], 22, &device));
        norm.running_var.update(tensor([7], 23, &device) + 2.0);
        // The output of a small picture has fewer values than the weights, and is scaled instead of them.
        for size in [[9, 11], [2, 3]] {
            let x = tensor([3, 5, size[0], size[1]], 24, &device);
            let run = || values(fast::conv_norm_2d(&conv, &norm, x.clone().into(), activation).finish());
            assert_close("folded", &run(), &by_burn(run), BOUND);
        }

        let conv = Conv3dConfig::new([5, 7], [3; 3]).with_stride([2; 3]).with_bias(false).init(&device);
        for size in [[6, 9, 5], [15, 17, 13]] {
            let x = tensor([2, 5, size[0], size[1], size[2]], 25, &device);
            let run = || values(fast::conv_norm_3d(&conv, &norm, x.clone().into(), activation).finish());
            assert_close("folded, volume", &run(), &by_burn(run), BOUND);
        }
    }
}

#[test]
fn doubled_pixels_beside_others_are_those_of_burn() {
    use super::super::double_beside;
    let plain = plain_device();
    for (batch, [channels, others], [height, width]) in
        [(1, [1, 0], [1, 1]), (3, [4, 2], [1, 1]), (2, [3, 5], [4, 7]), (2, [2, 0], [17, 3])]
    {
        let x = |device| tensor([batch, channels, height, width], 1, device);
        let beside = |device| (others > 0).then(|| tensor([batch, others, 2 * height, 2 * width], 2, device));
        assert_eq!(fast::doubling_link(&x(&plain), beside(&plain).as_ref()).is_some(), fast::has_kernels(&x(&plain)));
        let found = double_beside(x(&plain), beside(&plain));
        let expected = by_burn(|| double_beside(x(&plain), beside(&plain)));
        assert_eq!(found.dims(), expected.dims());
        assert_eq!(values(found), values(expected), "{channels} and {others} of {height} x {width}");
        let [of_x, of_beside] = [Some(x(&device())), beside(&device())];
        let trained: Vec<Tensor<4>> = of_x.into_iter().chain(of_beside).collect();
        let doubled = || match trained.as_slice() {
            [x, beside] => {
                let both = [x.clone(), beside.clone()];
                with_gradients(both, |[x, beside]| double_beside(x.clone(), Some(beside.clone())))
            }
            _ => with_gradients([trained[0].clone()], |[x]| double_beside(x.clone(), None)),
        };
        compare("doubled", &doubled(), &by_burn(doubled));
    }
    let x = tensor([2, 3, 4, 5], 1, &plain);
    assert!(fast::doubling_link(&x, Some(&tensor([2, 1, 8, 9], 2, &plain))).is_none(), "sizes that do not fit");
}
