//! An inverted residual block computed sample by sample has the bits of its layers one after the other.

use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, PaddingConfig2d};
use burn::tensor::{Device, Tensor};

use super::super::{self as fast, Activation, InvertedResidual, Unnormed};
use super::{assert_close, by_burn, device, plain_device, tensor, values};

const SAMPLES: usize = 24;

/// A block from `input` to `output` channels through `wide` ones.
#[derive(Clone)]
struct Block {
    expand: Option<(Conv2d, BatchNorm)>,
    depthwise: (Conv2d, BatchNorm),
    squeeze: Conv2d,
    excite: Conv2d,
    project: (Conv2d, BatchNorm),
    residual: bool,
}

/// A parameter, which has a gradient on a device that records a graph.
fn parameter<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    if tensor.device().is_autodiff() { tensor.require_grad() } else { tensor }
}

fn conv(channels: [usize; 2], side: usize, stride: usize, groups: usize, bias: bool, device: &Device) -> Conv2d {
    let pad = side / 2;
    let config = Conv2dConfig::new(channels, [side, side]).with_stride([stride, stride]).with_groups(groups);
    let mut conv = config.with_padding(PaddingConfig2d::Explicit(pad, pad, pad, pad)).with_bias(bias).init(device);
    let scale = (2.0 / ((channels[0] / groups) * side * side) as f64).sqrt();
    let shape = conv.weight.dims();
    conv.weight = conv.weight.map(|_| parameter(tensor(shape, 11, device) * scale));
    conv.bias = conv.bias.map(|bias| bias.map(|_| parameter(tensor([channels[1]], 12, device))));
    conv
}

fn norm(channels: usize, salt: u32, device: &Device) -> BatchNorm {
    let mut norm = BatchNormConfig::new(channels).init(device);
    norm.gamma = norm.gamma.map(|_| parameter(tensor([channels], salt, device) + 1.5));
    norm.beta = norm.beta.map(|_| parameter(tensor([channels], salt + 1, device)));
    let plain = plain_device();
    norm.running_mean.update(tensor([channels], salt + 2, &plain) * 0.1);
    norm.running_var.update(tensor([channels], salt + 3, &plain) * 0.4 + 0.6);
    norm
}

impl Block {
    fn new([input, wide, output]: [usize; 3], side: usize, stride: usize, device: &Device) -> Self {
        let narrow = (input / 4).max(1);
        let normed = |channels: [usize; 2], side, stride, groups, salt| {
            (conv(channels, side, stride, groups, false, device), norm(channels[1], salt, device))
        };
        Self {
            expand: (input != wide).then(|| normed([input, wide], 1, 1, 1, 20)),
            depthwise: normed([wide, wide], side, stride, wide, 30),
            squeeze: conv([wide, narrow], 1, 1, 1, true, device),
            excite: conv([narrow, wide], 1, 1, 1, true, device),
            project: normed([wide, output], 1, 1, 1, 40),
            residual: stride == 1 && input == output,
        }
    }

    fn together(&self, x: &Tensor<4>) -> Option<Tensor<4>> {
        fn parts((conv, norm): &(Conv2d, BatchNorm)) -> (&Conv2d, &BatchNorm) {
            (conv, norm)
        }
        let layers = InvertedResidual {
            expand: self.expand.as_ref().map(parts),
            depthwise: parts(&self.depthwise),
            squeeze: &self.squeeze,
            excite: &self.excite,
            project: parts(&self.project),
            activation: Activation::Silu,
            residual: self.residual,
        };
        fast::inverted_residual(&layers, x)
    }

    /// As training computes it.
    fn unnormed(&self, input: &Tensor<4>) -> Tensor<4> {
        let mut x = Unnormed::from(input.clone());
        if let Some((conv, norm)) = &self.expand {
            x = fast::conv_norm_2d(conv, norm, x, Activation::Silu);
        }
        let x = fast::conv_norm_2d(&self.depthwise.0, &self.depthwise.1, x, Activation::Silu);
        let x = fast::squeeze_excite(x, [&self.squeeze, &self.excite], Activation::Silu);
        let x = fast::conv_norm_2d(&self.project.0, &self.project.1, x, Activation::Identity).finish();
        if self.residual { x + input.clone() } else { x }
    }

    /// Output, gradients of `x` and of all parameters, and the running statistics.
    fn trained(&self, x: &Tensor<4>, compute: impl Fn(&Self, &Tensor<4>) -> Tensor<4>) -> Vec<(String, Vec<f32>)> {
        let x = x.clone().require_grad();
        let y = compute(self, &x);
        let weights = tensor(y.dims(), 50, &y.device());
        let gradients = (y.clone() * weights).sum().backward();
        let mut all = vec![("output".to_owned(), values(y.inner()))];
        all.push(("input".to_owned(), values(x.grad(&gradients).expect("of the input"))));
        let convs = [&self.depthwise.0, &self.squeeze, &self.excite, &self.project.0];
        for (index, conv) in convs.into_iter().chain(self.expand.iter().map(|layer| &layer.0)).enumerate() {
            let of_weight = conv.weight.val().grad(&gradients).expect("of a weight");
            all.push((format!("weight {index}"), values(of_weight)));
            let biases = conv.bias.iter().map(|bias| bias.val().grad(&gradients).expect("of a bias"));
            all.extend(biases.map(|of_bias| (format!("bias {index}"), values(of_bias))));
        }
        let norms = [&self.depthwise.1, &self.project.1];
        for (index, norm) in norms.into_iter().chain(self.expand.iter().map(|layer| &layer.1)).enumerate() {
            let of_norm = [&norm.gamma, &norm.beta].map(|parameter| parameter.val().grad(&gradients));
            all.extend(of_norm.map(|gradient| (format!("norm {index}"), values(gradient.expect("of a norm")))));
            let running = [&norm.running_mean, &norm.running_var].map(|running| values(running.value_sync().inner()));
            all.extend(running.map(|running| (format!("running {index}"), running)));
        }
        all
    }

    fn one_by_one(&self, input: &Tensor<4>) -> Tensor<4> {
        let normed = |(conv, norm): &(Conv2d, BatchNorm), x: Tensor<4>, activation| {
            fast::conv_norm_2d(conv, norm, x.into(), activation).finish()
        };
        let x = self.expand.iter().fold(input.clone(), |x, expand| normed(expand, x, Activation::Silu));
        let x = normed(&self.depthwise, x, Activation::Silu);
        let squeezed = fast::act(fast::conv2d(&self.squeeze, fast::average(x.clone())), Activation::Silu);
        let gate = fast::act(fast::conv2d(&self.excite, squeezed), Activation::Sigmoid);
        let x = normed(&self.project, fast::gate(x, gate), Activation::Identity);
        if self.residual { x + input.clone() } else { x }
    }
}

fn bits<const D: usize>(tensor: Tensor<D>) -> Vec<u32> {
    values(tensor).into_iter().map(f32::to_bits).collect()
}

/// Runs `work` on two threads, whatever the machine has, because the choice of the way depends on their number.
fn on_two_threads<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("a pool of threads").install(work)
}

#[test]
fn a_block_has_the_bits_of_its_layers_one_after_the_other() {
    let device = plain_device();
    for (channels, side, stride, size) in [
        ([16, 96, 24], 3, 2, [56, 53]),
        ([24, 144, 24], 5, 1, [30, 28]),
        ([40, 240, 40], 3, 1, [14, 14]),
        ([48, 700, 48], 5, 1, [9, 7]),
        ([32, 32, 16], 3, 1, [56, 56]),
    ] {
        let block = Block::new(channels, side, stride, &device);
        let x = tensor([SAMPLES, channels[0], size[0], size[1]], 1, &device);
        on_two_threads(|| {
            let expected = block.one_by_one(&x);
            match block.together(&x) {
                Some(found) => {
                    assert_eq!(found.dims(), expected.dims());
                    assert!(bits(found) == bits(expected), "{channels:?} {side} {stride} {size:?}");
                }
                // Only a device without kernels computes layer by layer here.
                None => assert!(!fast::has_kernels_on_host(&x), "{channels:?} {side} {stride} {size:?} is not covered"),
            }
        });
    }
}

/// In training the batch norms of a block are computed with what follows them. On planes that are small for the depthwise convolution,
/// for squeeze and excitation, and for neither.
#[test]
fn a_block_trains_as_its_layers_one_after_the_other() {
    let device = device();
    for (channels, side, stride, size) in [
        ([8, 48, 8], 3, 1, [14, 13]),
        ([8, 48, 12], 5, 2, [21, 19]),
        ([8, 40, 8], 5, 1, [7, 7]),
        ([8, 40, 8], 3, 1, [2, 3]),
        ([12, 12, 10], 3, 1, [16, 16]),
    ] {
        // Clones would share the running statistics.
        let [block, alone, of_burn] = [(); 3].map(|()| Block::new(channels, side, stride, &device));
        let x = tensor([5, channels[0], size[0], size[1]], 1, &device);
        let found = block.trained(&x, Block::unnormed);
        let expected = alone.trained(&x, Block::one_by_one);
        let by_burn = by_burn(|| of_burn.trained(&x, Block::unnormed));
        assert_eq!(found.len(), by_burn.len());
        for (((what, found), (_, expected)), (_, by_burn)) in found.iter().zip(&expected).zip(&by_burn) {
            let what = format!("{what}, {channels:?} {side} {stride} {size:?}");
            // The gradients of the gates come from the output, and that of the depthwise kernels is summed in another order.
            let bound = if what.starts_with("output") || what.starts_with("running") { 0.0 } else { 2e-6 };
            assert_close(&what, found, expected, bound);
            assert_close(&format!("{what}, burn"), found, by_burn, 2e-4);
        }
    }
}

#[test]
fn what_is_trained_small_or_not_covered_is_computed_layer_by_layer() {
    let plain = plain_device();
    let channels = [16, 96, 16];
    let block = Block::new(channels, 3, 1, &plain);
    let x = tensor([SAMPLES, 16, 56, 56], 1, &plain);
    on_two_threads(|| {
        assert_eq!(block.together(&x).is_some(), fast::has_kernels_on_host(&x));
        assert!(by_burn(|| block.together(&x)).is_none(), "without kernels");
        let trained = device();
        assert!(Block::new(channels, 3, 1, &trained).together(&tensor([SAMPLES, 16, 56, 56], 1, &trained)).is_none());
        for small in [[1, 16, 56, 56], [SAMPLES, 16, 2, 2]] {
            assert!(block.together(&tensor(small, 1, &plain)).is_none(), "{small:?}");
        }
        let mut biased = block.clone();
        biased.project.0 = conv([96, 16], 1, 1, 1, true, &plain);
        let mut grouped = block.clone();
        grouped.squeeze = conv([96, 4], 1, 1, 4, true, &plain);
        let mut unbiased = block.clone();
        unbiased.excite = conv([4, 96], 1, 1, 1, false, &plain);
        let mut far = block.clone();
        far.depthwise.0 = conv([96, 96], 3, 3, 96, false, &plain);
        for (what, block) in [("bias", biased), ("groups", grouped), ("no bias", unbiased), ("stride", far)] {
            assert!(block.together(&x).is_none(), "{what}");
        }
        assert!(block.together(&tensor([0, 16, 56, 56], 1, &plain)).is_none(), "no samples");
        let wrong = tensor([SAMPLES, 15, 56, 56], 1, &plain);
        assert!(block.together(&wrong).is_none(), "channels that do not fit");
    });
}
