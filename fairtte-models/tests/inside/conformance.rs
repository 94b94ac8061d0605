//! Properties of every backbone, on the miniatures.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use burn::module::{Module as _, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};
use fairtte_metrics::seeds::stream;

use crate::backbone::{Backbone, BackboneKind};
use crate::miniature::{KINDS, miniature};
use crate::{Noise, Pixels, initialise};

/// Deterministic, not constant, in [-1, 1].
fn pixels(shape: &[usize], device: &Device) -> Pixels {
    let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| ((i as f32) * 0.37).sin()).collect();
    Pixels::from_host(values, shape.to_vec(), device).unwrap()
}

fn input(kind: BackboneKind, batch: usize, channels: usize, device: &Device) -> Pixels {
    match kind.n_axes() {
        0 => pixels(&[batch, channels], device),
        2 => pixels(&[batch, channels, 24, 16], device),
        _ => pixels(&[batch, channels, 9, 16, 13], device),
    }
}

fn built(kind: BackboneKind, channels: usize, device: &Device) -> Backbone {
    initialise(miniature(kind, channels, device), stream(3, "weights", &[]))
}

fn features(net: &Backbone, pixels: Pixels) -> Vec<f32> {
    net.forward(pixels, &mut Noise::Off).unwrap().into_data().try_to_vec().unwrap()
}

/// Runs one training pass, so that the running statistics are those of an input.
fn trained_once(kind: BackboneKind, channels: usize) -> Backbone {
    let device = Device::flex().autodiff();
    let net = built(kind, channels, &device);
    for _ in 0..20 {
        net.forward(input(kind, 4, channels, &device), &mut Noise::Off).unwrap();
    }
    net.valid()
}

struct WithoutGradient<'a> {
    gradients: &'a Gradients,
    n_parameters: usize,
    n_without: usize,
}

impl ModuleVisitor for WithoutGradient<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        if !tensor.is_require_grad() {
            return;
        }
        self.n_parameters += 1;
        let largest = tensor.grad(self.gradients).map(|gradient| gradient.abs().max().into_scalar::<f32>());
        if !largest.is_some_and(|largest| largest > 0.0 && largest.is_finite()) {
            self.n_without += 1;
        }
    }
}

#[test]
fn the_gradient_reaches_every_parameter() {
    let device = Device::flex().autodiff();
    for kind in KINDS {
        let net = built(kind, 3, &device);
        let output = net.forward(input(kind, 4, 3, &device), &mut Noise::Off).unwrap();
        let [batch, n] = output.dims();
        let weights = pixels(&[batch, n], &device);
        let Pixels::Table(weights) = weights else { panic!("two axes are a table") };
        let gradients = (output * weights).sum().backward();
        let mut visitor = WithoutGradient { gradients: &gradients, n_parameters: 0, n_without: 0 };
        net.visit(&mut visitor);
        assert!(visitor.n_parameters > 0);
        assert_eq!(
            visitor.n_without,
            0,
            "{} of {} parameters of {}",
            visitor.n_without,
            visitor.n_parameters,
            kind.name()
        );
    }
}

#[test]
fn inference_gives_the_same_bits_again_and_with_one_thread_and_two() {
    for kind in KINDS {
        let net = trained_once(kind, 3);
        let device = Device::flex();
        let with = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| features(&net, input(kind, 4, 3, &device)))
        };
        let one = with(1);
        assert_eq!(one, with(1), "{}", kind.name());
        assert_eq!(one, with(2), "{}", kind.name());
    }
}

#[test]
fn a_sample_alone_gives_what_it_gives_in_a_batch() {
    let device = Device::flex();
    for kind in KINDS {
        for channels in [1, 3] {
            let net = trained_once(kind, channels);
            let both = features(&net, input(kind, 2, channels, &device));
            let alone = features(&net, input(kind, 1, channels, &device));
            assert_eq!(both.len(), 2 * alone.len());
            for (alone, together) in alone.iter().zip(&both) {
                assert!((alone - together).abs() <= 1e-5 * together.abs().max(1.0), "{}", kind.name());
            }
        }
    }
}

#[test]
fn sizes_may_be_odd_small_and_unequal() {
    let device = Device::flex();
    for kind in KINDS {
        let sizes: [&[usize]; 3] = match kind {
            BackboneKind::Mlp => [&[], &[], &[]],
            BackboneKind::VitBase16 => [&[4, 4], &[20, 12], &[32, 4]],
            _ if kind.n_axes() == 2 => [&[1, 1], &[31, 17], &[5, 64]],
            _ => [&[1, 1, 1], &[7, 17, 11], &[2, 33, 5]],
        };
        let net = trained_once(kind, 1);
        for size in sizes {
            let found = features(&net, pixels(&[&[2, 1], size].concat(), &device));
            assert!(found.iter().all(|x| x.is_finite()), "{} at {size:?}", kind.name());
            assert_eq!(found.len() % 2, 0);
        }
    }
}

#[test]
fn sides_that_patches_do_not_divide_and_other_channels_are_refused() {
    let device = Device::flex();
    let refused =
        |net: &Backbone, shape: &[usize]| net.forward(pixels(shape, &device), &mut Noise::Off).unwrap_err().to_string();
    let vit = miniature(BackboneKind::VitBase16, 3, &device);
    assert_eq!(
        refused(&vit, &[1, 3, 16, 18]),
        "backbone vit-base/16 got a batch of shape [1, 3, 16, 18], expected [batch, channels, height, width] with height and \
         width multiples of 16"
    );
    for kind in KINDS {
        let net = miniature(kind, 3, &device);
        let shape = input(kind, 2, 1, &device).shape();
        let expected = format!(
            "backbone {} got a batch of shape {shape:?}, expected 3 channels (columns of a table)",
            kind.name()
        );
        assert_eq!(refused(&net, &shape), expected);
    }
}

#[test]
fn branches_of_the_vision_transformer_are_dropped_in_training_only() {
    let device = Device::flex();
    let net = built(BackboneKind::VitBase16, 1, &device);
    let x = || input(BackboneKind::VitBase16, 8, 1, &device);
    let dropped = |epoch| -> Vec<f32> {
        let mut noise = Noise::on(stream(1, "noise", &[epoch]));
        net.forward(x(), &mut noise).unwrap().into_data().try_to_vec().unwrap()
    };
    assert_eq!(dropped(0), dropped(0));
    assert_ne!(dropped(0), dropped(1));
    assert_eq!(features(&net, x()), features(&net, x()));
}
