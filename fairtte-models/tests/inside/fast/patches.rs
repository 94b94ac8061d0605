//! The embedding of patches, a convolution whose stride is the size of its kernel, on the test device beside `flex`.

use burn::module::{Module, ModuleVisitor, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Gradients, Tensor};
use fairtte_metrics::seeds::stream;

use super::super::{self as fast, adamw};
use super::{device, difference, tensor, values};
use crate::{BackboneKind, Noise, Pixels, initialise};

/// The gradient of the weights, and the weights after a step.
fn trained([batch, channels, outputs, side]: [usize; 4], device: &Device) -> [Vec<f32>; 2] {
    let mut conv: Conv2d = Conv2dConfig::new([channels, outputs], [side; 2]).with_stride([side; 2]).init(device);
    let weights = tensor([outputs, channels, side, side], 1, device);
    conv.weight = Param::initialized(conv.weight.id, weights.require_grad());
    let x = tensor([batch, channels, 2 * side, 2 * side], 2, device);
    // As a transformer takes them: [batch, patches, outputs].
    let y: Tensor<3> = fast::conv2d(&conv, x).flatten(2, 3).swap_dims(1, 2);
    let of_output: Tensor<3> = tensor(y.dims(), 3, device);
    let gradients = (y * of_output).sum().backward();
    let of_weights = values(conv.weight.val().grad(&gradients).expect("a gradient"));
    let gradients = GradientsParams::from_grads(gradients, &conv);
    let conv = adamw(1e-8, 1e-2).step(1e-2, conv, gradients);
    [of_weights, values(conv.valid().weight.val())]
}

/// With `CUBECL_AUTOTUNE_LEVEL=minimal` on a device of `CubeCL`, steps from the gradients of weights of one channel went wrong.
#[test]
fn an_embedding_of_patches_is_trained_as_on_flex() {
    for shape in [
        [72, 1, 768, 16],
        [3, 1, 768, 16],
        [72, 3, 768, 16],
        [4, 1, 64, 7],
        [4, 2, 12, 4],
        [72, 64, 768, 1],
        [8, 1, 12, 1],
    ] {
        let [found, expected] = [device(), Device::flex().autodiff()].map(|device| trained(shape, &device));
        let [of_gradient, of_weights] = [0, 1].map(|n| difference(&found[n], &expected[n]));
        eprintln!("{shape:?}: gradient {of_gradient:.1e}, weights {of_weights:.1e}");
        // A step moves an entry whose gradient is near 0 by up to 0.01 in a direction that rounding decides.
        assert!(of_gradient < 1e-5 && of_weights < 0.03, "{shape:?}: {of_gradient:e}, {of_weights:e}");
    }
}

/// On a device of `CubeCL`, the gradient of patches that become tokens was wrong; other devices have the kernels of `flex`, or
/// `LibTorch`'s, which whole networks in miniature are compared with.
#[test]
fn patches_of_a_transformer_have_the_gradient_of_flex() {
    if fast::place::of_device(&device()).is_some() {
        return;
    }
    let [found, expected] = [device(), Device::flex().autodiff()].map(|device| {
        let net = initialise(BackboneKind::VitBase16.build(3, &device), stream(3, "weights", &[]));
        let x = values(tensor([72, 3, 32, 32], 1, &device));
        let pixels = Pixels::from_host(x, vec![72, 3, 32, 32], &device).expect("a batch");
        let features = net.forward(pixels, &mut Noise::Off).expect("features");
        let weights = tensor(features.dims(), 3, &device);
        let gradients = (features * weights).mean().backward();
        let mut of_patches = OfPatches { gradients: &gradients, values: vec![] };
        net.visit(&mut of_patches);
        of_patches.values
    });
    assert!(!expected.is_empty());
    let apart = difference(&found, &expected);
    eprintln!("gradient of patches: {apart:.1e}");
    assert!(apart < 1e-3, "{apart:e}");
}

/// The gradients of weights of convolutions.
struct OfPatches<'a> {
    gradients: &'a Gradients,
    values: Vec<f32>,
}

impl ModuleVisitor for OfPatches<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if D == 4 {
            self.values.extend(values(param.val().grad(self.gradients).expect("a gradient")));
        }
    }
}
