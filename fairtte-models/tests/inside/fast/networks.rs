//! Whole networks: the same bits on any number of threads, and training compared with burn's own operations.

use burn::module::{Module as _, ModuleVisitor, Param};
use burn::optim::{AdamWConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Tensor};
use fairtte_metrics::seeds::stream;

use super::{assert_close, by_burn, device, difference, plain_device, tensor, values};
use crate::miniature::{KINDS, miniature};
use crate::{Backbone, BackboneKind, Noise, Pixels, initialise};

const N_STEPS: u32 = 50;

/// Pixels that fit the miniature of `kind`.
pub(super) fn pixels(kind: BackboneKind, salt: u32, scale: f32, device: &Device) -> Pixels {
    match kind.n_axes() {
        0 => Pixels::Table(tensor([12, 3], salt, device) * scale),
        2 => Pixels::Image(tensor([6, 3, 24, 16], salt, device) * scale),
        _ => Pixels::Volume(tensor([3, 3, 9, 16, 13], salt, device) * scale),
    }
}

/// Losses of some steps of `AdamW`, and all parameters after them, value by value. The pixels are multiplied by
/// `scale`.
fn train(kind: BackboneKind, n_steps: u32, scale: f32) -> (Vec<f32>, Vec<f32>) {
    train_on(&device(), kind, n_steps, scale)
}

fn train_on(device: &Device, kind: BackboneKind, n_steps: u32, scale: f32) -> (Vec<f32>, Vec<f32>) {
    let mut net = initialise(miniature(kind, 3, device), stream(1, "weights", &[]));
    let mut optimiser: ModuleOptimizer = AdamWConfig::new().init();
    let mut losses = Vec::new();
    for step in 0..n_steps {
        let features = features(&net, pixels(kind, 1 + step % 3, scale, device));
        let loss = (features - 0.5).powi_scalar(2).mean();
        losses.extend(values(loss.clone().inner()));
        let gradients = GradientsParams::from_grads(loss.backward(), &net);
        net = optimiser.step(1e-3, net, gradients);
    }
    (losses, parameters(&net))
}

pub(super) fn features(net: &Backbone, pixels: Pixels) -> Tensor<2> {
    net.forward(pixels, &mut Noise::Off).expect("pixels that the network takes")
}

struct Parameters(Vec<f32>);

impl ModuleVisitor for Parameters {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.extend(values(param.val().inner()));
    }
}

pub(super) fn parameters(net: &Backbone) -> Vec<f32> {
    let mut found = Parameters(Vec::new());
    net.visit(&mut found);
    found.0
}

#[test]
fn training_gives_the_same_bits_on_any_number_of_threads() {
    for kind in KINDS {
        let [alone, others @ ..] = [1, 2, 4].map(|n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("a pool of threads");
            let (losses, parameters) = pool.install(|| train(kind, 3, 1.0));
            let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            (bits(losses), bits(parameters))
        });
        for (other, n_threads) in others.into_iter().zip([2, 4]) {
            assert!(alone == other, "{}: {n_threads} threads differ from one", kind.name());
        }
    }
}

/// Loss curves by kernels and by burn agree. Small networks with `ReLU` and batch norm amplify small differences, so
/// the bound is how far burn's own curve moves when its pixels change in the last place.
#[test]
fn a_training_curve_is_that_of_burns_operations() {
    for kind in KINDS {
        let (losses, _) = train(kind, N_STEPS, 1.0);
        let (expected, _) = by_burn(|| train(kind, N_STEPS, 1.0));
        assert!(expected[N_STEPS as usize - 1] < 0.97 * expected[0], "{}: nothing was learned", kind.name());
        let moved = [1.0 - f32::EPSILON, 1.0 + f32::EPSILON, 1.0 + 2.0 * f32::EPSILON]
            .map(|scale| difference(&by_burn(|| train(kind, N_STEPS, scale)).0, &expected))
            .into_iter()
            .fold(0.0, f32::max);
        let apart = difference(&losses, &expected);
        eprintln!("{}: curves {apart:.1e} apart, burn's own by {moved:.1e}", kind.name());
        assert!(apart <= 4.0 * moved + 1e-5, "{}: {apart:e}, and burn's own {moved:e}", kind.name());
    }
}

#[test]
fn evaluation_is_that_of_burns_operations() {
    for kind in KINDS {
        let device = device();
        let net = initialise(miniature(kind, 3, &device), stream(1, "weights", &[]));
        for salt in 1..6 {
            features(&net, pixels(kind, salt, 1.0, &device));
        }
        let net = net.valid();
        let device = plain_device();
        let run = || values(features(&net, pixels(kind, 9, 1.0, &device)));
        assert_close(kind.name(), &run(), &by_burn(run), 2e-5);
    }
}

/// `ndarray` has no kernels: the same calls use burn's operations, and training gives the same result as on `flex` with
/// kernels.
#[cfg(feature = "ndarray")]
#[test]
fn a_device_without_kernels_trains_and_evaluates_the_same_networks() {
    #[expect(deprecated, reason = "deprecated upstream, and part of the design all the same while burn 0.22 is pinned")]
    let plain = Device::ndarray();
    let has_kernels = |device| super::super::has_kernels(&tensor([2, 3], 1, device));
    let other = plain.clone().autodiff();
    assert!(!has_kernels(&plain) && !has_kernels(&other) && has_kernels(&device()));
    for kind in KINDS {
        let apart = |scale| difference(&train_on(&other, kind, 5, scale).0, &train(kind, 5, scale).0);
        // Rounding can turn a `ReLU` on or off, which makes two curves diverge, but not also those of pixels one unit
        // in the last place above and below.
        let [exact, below, above] = [1.0, 1.0 - f32::EPSILON, 1.0 + f32::EPSILON];
        let agree = apart(exact) <= 1e-4 || (apart(below) <= 1e-4 && apart(above) <= 1e-4);
        assert!(agree, "losses of {}: {:e}, {:e} and {:e}", kind.name(), apart(exact), apart(below), apart(above));
        let evaluated = |plain: &Device, device: &Device| {
            let net = initialise(miniature(kind, 3, device), stream(1, "weights", &[])).valid();
            values(features(&net, pixels(kind, 9, 1.0, plain)))
        };
        let (found, expected) = (evaluated(&plain, &other), evaluated(&plain_device(), &device()));
        assert_close(&format!("features of {}", kind.name()), &found, &expected, 2e-5);
    }
}
