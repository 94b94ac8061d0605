//! A chain gives the same bits as its single operations, keeps less in memory, and falls back to them.

use burn::nn::conv::{Conv2d, Conv2dConfig, Conv3d, Conv3dConfig};
use burn::nn::{
    BatchNorm, BatchNormConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig, PaddingConfig2d, PaddingConfig3d,
};
use burn::tensor::{Device, Gradients, Tensor};

use super::super::{self as fast, Activation, Unnormed};
use super::{by_burn, device, tensor, values};

const EPSILON: f64 = 1e-6;
const WIDTH: usize = 24;
const HEADS: usize = 3;

/// The layers of a block of tokens, each with its own values.
#[derive(Clone)]
struct Layers {
    norm: LayerNorm,
    qkv: Linear,
    project: Linear,
    widen: Linear,
    narrow: Linear,
}

impl Layers {
    fn new(device: &Device) -> Self {
        let mut norm = LayerNormConfig::new(WIDTH).with_epsilon(EPSILON).init(device);
        norm.gamma = norm.gamma.map(|_| (tensor([WIDTH], 1, device) + 1.5).require_grad());
        norm.beta = norm.beta.map(|beta| beta.map(|_| tensor([WIDTH], 2, device).require_grad()));
        let linear = |from, to, salt| {
            let mut linear = LinearConfig::new(from, to).init(device);
            linear.weight = linear.weight.map(|_| (tensor([from, to], salt, device) * 0.3).require_grad());
            linear.bias = linear.bias.map(|bias| bias.map(|_| tensor([to], salt + 1, device).require_grad()));
            linear
        };
        Self {
            norm,
            qkv: linear(WIDTH, 3 * WIDTH, 3),
            project: linear(WIDTH, WIDTH, 5),
            widen: linear(WIDTH, 4 * WIDTH, 7),
            narrow: linear(4 * WIDTH, WIDTH, 9),
        }
    }

    /// Both chains, in a block of a transformer.
    fn in_chains(&self, x: Tensor<3>) -> Tensor<3> {
        let qkv = fast::normed_linear(&self.norm, EPSILON, &self.qkv, x.clone());
        let x = x + fast::linear(&self.project, fast::attention(qkv, HEADS));
        let dense = [&self.widen, &self.narrow];
        fast::feed_forward(&self.norm, EPSILON, dense, Activation::Gelu, x.clone()) + x
    }

    /// The block by single operations.
    fn one_by_one(&self, x: Tensor<3>) -> Tensor<3> {
        let qkv = fast::linear(&self.qkv, fast::layer_norm(&self.norm, EPSILON, x.clone()));
        let x = x + fast::linear(&self.project, fast::attention(qkv, HEADS));
        let wide = fast::linear(&self.widen, fast::layer_norm(&self.norm, EPSILON, x.clone()));
        fast::linear(&self.narrow, fast::act(wide, Activation::Gelu)) + x
    }

    fn frozen(mut self) -> Self {
        for linear in [&mut self.qkv, &mut self.narrow] {
            linear.weight = linear.weight.clone().map(|weight| weight.set_require_grad(false));
        }
        self.norm.gamma = self.norm.gamma.map(|gamma| gamma.set_require_grad(false));
        self
    }

    /// The gradients of all parameters; empty for those that have none.
    fn gradients(&self, gradients: &Gradients) -> Vec<Vec<u32>> {
        let linears = [&self.qkv, &self.project, &self.widen, &self.narrow];
        let weights = linears.map(|linear| linear.weight.val().grad(gradients).map(bits));
        let biases = linears.map(|linear| linear.bias.as_ref().and_then(|bias| bias.val().grad(gradients)).map(bits));
        let beta = self.norm.beta.as_ref().and_then(|beta| beta.val().grad(gradients)).map(bits);
        let of_norm = [self.norm.gamma.val().grad(gradients).map(bits), beta];
        weights.into_iter().chain(biases).chain(of_norm).map(Option::unwrap_or_default).collect()
    }
}

fn bits<const D: usize>(tensor: Tensor<D>) -> Vec<u32> {
    values(tensor).into_iter().map(f32::to_bits).collect()
}

/// Bits of the output, of the gradient of `x` if it has one, and of those of the parameters.
fn run(layers: &Layers, x: &Tensor<3>, compute: impl Fn(&Layers, Tensor<3>) -> Tensor<3>) -> Vec<Vec<u32>> {
    let output = compute(layers, x.clone());
    let weights = tensor(output.dims(), 11, &output.device());
    let gradients = (output.clone() * weights).sum().backward();
    let mut found = vec![bits(output.inner()), x.grad(&gradients).map(bits).unwrap_or_default()];
    found.extend(layers.gradients(&gradients));
    found
}

#[test]
fn chains_have_the_bits_of_single_operations() {
    let device = device();
    let layers = Layers::new(&device);
    for tokens in [1, 7, 50] {
        let x = tensor([2, tokens, WIDTH], 12, &device);
        for (what, x) in [("plain", x.clone()), ("with a gradient", x.require_grad())] {
            for (which, layers) in [("all", layers.clone()), ("some", layers.clone().frozen())] {
                let found = run(&layers, &x, Layers::in_chains);
                let expected = run(&layers, &x, Layers::one_by_one);
                assert!(found == expected, "{tokens} tokens, input {what}, {which} parameters trained");
                assert_eq!(found.iter().filter(|gradient| gradient.is_empty()).count(), {
                    usize::from(what == "plain") + if which == "some" { 3 } else { 0 }
                });
            }
        }
    }
}

#[test]
fn nan_and_infinity_pass_through_a_chain_as_through_its_operations() {
    let device = device();
    let layers = Layers::new(&device);
    for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e38] {
        let mut numbers = values(tensor([2, 5, WIDTH], 13, &device));
        numbers[WIDTH + 3] = odd;
        let x = Tensor::<1>::from_floats(numbers.as_slice(), &device).reshape([2, 5, WIDTH]).require_grad();
        let found = run(&layers, &x, Layers::in_chains);
        assert!(found == run(&layers, &x, Layers::one_by_one), "{odd}");
        let of_first_sample = &found[0][..5 * WIDTH];
        assert!(of_first_sample.iter().any(|&bits| !f32::from_bits(bits).is_finite()) || odd.is_finite(), "{odd}");
        assert!(found[0][5 * WIDTH..].iter().all(|&bits| f32::from_bits(bits).is_finite()), "{odd} in another sample");
    }
}

/// The middle norm is computed twice; its running statistics move once.
#[test]
fn two_convolutions_have_the_bits_of_one_after_the_other() {
    let device = device();
    let layer = |salt| {
        let config =
            Conv3dConfig::new([4, 4], [3; 3]).with_padding(PaddingConfig3d::Explicit(1, 1, 1)).with_bias(false);
        let mut conv = config.init(&device);
        conv.weight = conv.weight.map(|_| tensor([4, 4, 3, 3, 3], salt, &device).require_grad());
        (conv, BatchNormConfig::new(4).init(&device))
    };
    for activation in [Activation::Relu, Activation::Silu] {
        // Clones would share the running statistics.
        let [[first, second], [others_first, others_second]] = [(); 2].map(|()| [layer(20), layer(21)]);
        let x = tensor([2, 4, 5, 7, 6], 22, &device).require_grad();
        let middle = fast::conv_norm_3d(&first.0, &first.1, x.clone().into(), activation);
        let found = fast::conv_norm_3d(&second.0, &second.1, middle, Activation::Identity).finish();
        let middle = fast::conv_norm_3d(&others_first.0, &others_first.1, x.clone().into(), activation).finish();
        let expected =
            fast::conv_norm_3d(&others_second.0, &others_second.1, middle.into(), Activation::Identity).finish();
        let weights = tensor(found.dims(), 23, &device);
        let all = |output: Tensor<5>, layers: [&(Conv3d, BatchNorm); 2]| {
            let gradients = (output.clone() * weights.clone()).sum().backward();
            let mut all = vec![bits(output.inner()), bits(x.grad(&gradients).expect("of the input"))];
            for (conv, norm) in layers {
                all.push(bits(conv.weight.val().grad(&gradients).expect("of the weight")));
                let [gamma, beta] = [&norm.gamma, &norm.beta].map(|parameter| parameter.val().grad(&gradients));
                all.extend([gamma, beta].map(|gradient| bits(gradient.expect("of the norm"))));
                all.extend([&norm.running_mean, &norm.running_var].map(|running| bits(running.value_sync().inner())));
            }
            all
        };
        let (found, expected) = (all(found, [&first, &second]), all(expected, [&others_first, &others_second]));
        assert!(found == expected, "{activation:?}");
        assert!(found[5] != vec![0; 4], "the running mean has moved");
    }
}

/// Of the input, of the convolution and of the norm: the gradients' bits.
fn gradients_of(output: Tensor<4>, trained: &[Tensor<4>], (conv, norm): (&Conv2d, &BatchNorm)) -> Vec<Vec<u32>> {
    let weights = tensor(output.dims(), 30, &output.device());
    let gradients = (output.clone() * weights).sum().backward();
    let mut all = vec![bits(output.inner())];
    all.extend(trained.iter().map(|x| bits(x.grad(&gradients).expect("of an input"))));
    all.push(bits(conv.weight.val().grad(&gradients).expect("of the weight")));
    all.extend(conv.bias.iter().map(|bias| bits(bias.val().grad(&gradients).expect("of the bias"))));
    let of_norm = [&norm.gamma, &norm.beta].map(|parameter| parameter.val().grad(&gradients));
    all.extend(of_norm.map(|gradient| bits(gradient.expect("of the norm"))));
    all.push(bits(norm.running_mean.value_sync().inner()));
    all
}

/// Dense and depthwise ones, with and without bias, from planes of one value to wider than a vector.
#[test]
fn a_norm_with_the_convolution_after_it_has_the_bits_of_both_alone() {
    let device = device();
    for (channels, groups, bias) in [(6, 1, false), (5, 1, true), (16, 16, false)] {
        for size in [[1, 1], [5, 3], [9, 20]] {
            let config = Conv2dConfig::new([channels, channels], [3, 3])
                .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
                .with_groups(groups)
                .with_bias(bias);
            let mut conv = config.init(&device);
            conv.weight = conv.weight.map(|weight| tensor(weight.dims(), 31, &device).require_grad());
            // Clones would share the running statistics.
            let [norm, others] = [(); 2].map(|()| BatchNormConfig::new(channels).init(&device));
            let x = tensor([3, channels, size[0], size[1]], 32, &device).require_grad();
            for activation in [Activation::Identity, Activation::Relu, Activation::Silu] {
                let unnormed = Unnormed::new(x.clone(), &norm, activation);
                let found = gradients_of(fast::conv_2d_of(&conv, unnormed), std::slice::from_ref(&x), (&conv, &norm));
                let alone = fast::conv2d(&conv, fast::bn_act(&others, x.clone(), activation));
                let expected = gradients_of(alone, std::slice::from_ref(&x), (&conv, &others));
                assert!(found == expected, "{channels} channels of {size:?} in {groups} groups, {activation:?}");
            }
        }
    }
}

#[test]
fn a_norm_with_the_doubling_and_convolution_after_it_has_the_bits_of_all_alone() {
    let device = device();
    let mut conv = Conv2dConfig::new([7, 4], [3, 3])
        .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
        .with_bias(false)
        .init(&device);
    conv.weight = conv.weight.map(|_| tensor([4, 7, 3, 3], 33, &device).require_grad());
    // Clones would share the running statistics.
    let [norm, others] = [(); 2].map(|()| BatchNormConfig::new(5).init(&device));
    let [after, others_after] = [(); 2].map(|()| BatchNormConfig::new(4).init(&device));
    let trained = [tensor([2, 5, 3, 7], 34, &device).require_grad(), tensor([2, 2, 6, 14], 35, &device).require_grad()];
    let [x, beside] = trained.clone();
    for with_norm in [true, false] {
        let unnormed = if with_norm { Unnormed::new(x.clone(), &norm, Activation::Relu) } else { x.clone().into() };
        let found =
            fast::doubled_conv_norm_2d(&conv, &after, unnormed, Some(beside.clone()), Activation::Relu).finish();
        let normed = if with_norm { fast::bn_act(&others, x.clone(), Activation::Relu) } else { x.clone() };
        let doubled = fast::double_beside(normed, Some(beside.clone()));
        let expected = fast::bn_act(&others_after, fast::conv2d(&conv, doubled), Activation::Relu);
        let found = gradients_of(found, &trained, (&conv, &after));
        assert!(found == gradients_of(expected, &trained, (&conv, &others_after)), "with a norm before: {with_norm}");
        let before = [&norm, &others].map(|norm| bits(norm.running_mean.value_sync().inner()));
        assert!(before[0] == before[1], "the running mean of the norm before");
    }
}

#[test]
fn chains_fall_back_to_burns_own_layers() {
    let device = device();
    let layers = Layers::new(&device);
    let x = tensor([2, 6, WIDTH], 14, &device);
    let (found, expected) = by_burn(|| {
        let normed = layers.norm.forward(x.clone());
        let wide = fast::act(layers.widen.forward(normed.clone()), Activation::Gelu);
        let expected = [layers.qkv.forward(normed), layers.narrow.forward(wide)];
        let dense = [&layers.widen, &layers.narrow];
        let found = [
            fast::normed_linear(&layers.norm, EPSILON, &layers.qkv, x.clone()),
            fast::feed_forward(&layers.norm, EPSILON, dense, Activation::Gelu, x.clone()),
        ];
        (found.map(|tensor| bits(tensor.inner())), expected.map(|tensor| bits(tensor.inner())))
    });
    assert!(found == expected);
}

/// The kernels do not support a linear layer without bias, so neither do they support the chain.
#[test]
fn a_chain_with_a_layer_that_has_no_kernel_is_computed_link_by_link() {
    let device = device();
    let mut layers = Layers::new(&device);
    layers.narrow.bias = None;
    let x = tensor([2, 6, WIDTH], 15, &device);
    let dense = [&layers.widen, &layers.narrow];
    let found = fast::feed_forward(&layers.norm, EPSILON, dense, Activation::Gelu, x.clone());
    let wide = fast::linear(&layers.widen, fast::layer_norm(&layers.norm, EPSILON, x));
    let expected = layers.narrow.forward(fast::act(wide, Activation::Gelu));
    assert_eq!(bits(found.inner()), bits(expected.inner()));
}

#[cfg(feature = "flex")]
#[test]
fn a_chain_holds_its_inputs_alone_and_a_single_operation_what_it_needs() {
    use burn::backend::Flex;
    use burn::tensor::TensorData;
    use burn_flex::FlexTensor;

    use super::super::chain::{Stage, forward};
    use super::super::operation::{Convolution, Operation};

    let made = |sizes: &[usize]| FlexTensor::from_data(TensorData::ones::<f32, _>(sizes.to_vec()));
    let norm = Stage { operation: Operation::LayerNorm { epsilon: EPSILON }, n_parameters: 2 };
    let linear = Stage { operation: Operation::Linear, n_parameters: 2 };
    let inputs = vec![made(&[2, 3, 4]), made(&[4]), made(&[4]), made(&[4, 5]), made(&[5])];
    let storage = |tensors: &[FlexTensor]| tensors.iter().map(|tensor| tensor.bytes().as_ptr()).collect::<Vec<_>>();
    let expected = storage(&inputs);
    assert_eq!(storage(&forward::<Flex>(&[norm, linear], inputs.clone(), true).saved), expected);
    assert!(forward::<Flex>(&[norm, linear], inputs.clone(), false).saved.is_empty());
    let alone = forward::<Flex>(&[norm], inputs[..3].to_vec(), true).saved;
    assert_eq!(alone.len(), 4, "input, gamma, mean and inverse deviation");

    let norm = Operation::BatchNorm { epsilon: EPSILON, activation: Activation::Relu };
    let conv = Convolution { stride: [1; 3], padding: [0; 3], groups: 1, activation: Activation::Identity };
    let stages = [(norm, 2), (Operation::Conv(conv), 1)];
    let stages = stages.map(|(operation, n_parameters)| Stage { operation, n_parameters });
    let inputs = vec![made(&[2, 3, 4, 5]), made(&[3]), made(&[3]), made(&[6, 3, 1, 1])];
    let saved = forward::<Flex>(&stages, inputs.clone(), true).saved;
    assert_eq!(storage(&saved[..3]), storage(&inputs[..3]));
    assert_eq!(storage(&saved[8..]), storage(&inputs[3..]));
    let sizes: Vec<usize> = saved[3..8].iter().map(|tensor| tensor.bytes().len() / size_of::<f32>()).collect();
    assert_eq!(sizes, [3; 5], "mean, inverse deviation, offset, scale and shift");
}

/// A weight may be a view with its axes exchanged.
#[test]
fn a_weight_that_is_a_view_trains_in_a_chain_as_alone() {
    let device = device();
    let mut layers = Layers::new(&device);
    layers.qkv.weight = layers.qkv.weight.map(|_| tensor([3 * WIDTH, WIDTH], 16, &device).transpose().require_grad());
    let x = tensor([2, 6, WIDTH], 17, &device).require_grad();
    let gradient = |qkv: Tensor<3>| {
        let weights = tensor(qkv.dims(), 18, &device);
        bits(x.grad(&(qkv * weights).sum().backward()).expect("of the input"))
    };
    let found = gradient(fast::normed_linear(&layers.norm, EPSILON, &layers.qkv, x.clone()));
    let normed = fast::layer_norm(&layers.norm, EPSILON, x.clone());
    assert!(found == gradient(fast::linear(&layers.qkv, normed)));
}
