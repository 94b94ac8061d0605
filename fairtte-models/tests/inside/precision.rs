//! Networks in half precision against the same in single precision, on the miniatures, and stored pixels that a device scales.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use burn::module::{Module as _, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Gradients, Tensor, TensorData};
use fairtte_metrics::seeds::stream;

use crate::backbone::{Backbone, BackboneKind};
use crate::fast::{computes_on_host, plain_device};
use crate::miniature::{KINDS, miniature};
use crate::{ModelError, Noise, Pixels, Precision, initialise};

fn pixels(kind: BackboneKind, device: &Device) -> Pixels {
    let shape: &[usize] = match kind.n_axes() {
        0 => &[6, 3],
        2 => &[8, 3, 64, 48],
        _ => &[4, 3, 20, 36, 32],
    };
    let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| ((i as f32) * 0.37).sin()).collect();
    Pixels::from_host(values, shape.to_vec(), device).unwrap()
}

struct Collected<'a> {
    gradients: &'a Gradients,
    values: Vec<f32>,
}

impl ModuleVisitor for Collected<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        assert_eq!(param.val().dtype(), DType::F32, "a parameter stays in single precision");
        let Some(gradient) = param.val().grad(self.gradients) else { return };
        assert_eq!(gradient.dtype(), DType::F32, "as does its gradient");
        self.values.extend(gradient.into_data().iter::<f32>());
    }
}

/// Features and gradients of a network in training.
fn trained(kind: BackboneKind, precision: Precision) -> (Vec<f32>, Vec<f32>) {
    let device = plain_device().autodiff();
    let net: Backbone = initialise(miniature(kind, 3, &device), stream(3, "weights", &[]));
    let features = net.forward(pixels(kind, &device).in_precision(precision), &mut Noise::Off).unwrap();
    assert_eq!(features.dtype(), DType::F32, "what follows the backbone computes in single precision");
    // With weights, because the squares of normed features hardly depend on the parameters; times a number as in a training in
    // f16, where smaller gradients would have fewer digits.
    let [batch, n] = features.dims();
    let weights: Vec<f32> = (0..batch * n).map(|i| (i as f32 * 0.61).cos()).collect();
    let weights: Tensor<2> = Tensor::from_data(TensorData::new(weights, [batch, n]), &device);
    let gradients = ((features.clone() * weights).mean() * 1024.0).backward();
    let mut collected = Collected { gradients: &gradients, values: Vec::new() };
    net.visit(&mut collected);
    (features.into_data().iter::<f32>().collect(), collected.values)
}

/// Length of the difference relative to the length of the expected values.
fn apart(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let square = |x: f32| f64::from(x) * f64::from(x);
    let difference: f64 = found.iter().zip(expected).map(|(a, b)| square(a - b)).sum();
    (difference / expected.iter().map(|x| square(*x)).sum::<f64>()).sqrt()
}

// bf16 rounds to 2^-9 and f16 to 2^-12 of a number, and in smooth networks the errors of a few layers add up. The others were first
// held to 0.04 and 0.15 (bf16), 0.005 and 0.02 (f16), and missed that: a ReLU that is on in one precision and off in the other
// is a difference of 1 in a gradient whatever the rounding, batch norms of 4 to 10 channels magnify it, and `flex` adds the products of
// some convolutions in f16 up in f16 (burn-flex 0.22.1, `conv.rs`; bf16 by way of f32). They are held to
// features that agree and gradients that point the same way; that they learn the same is a test of the program (`learning.rs`).
#[test]
fn every_network_computes_in_half_precision_what_it_computes_in_single() {
    let mut problems = Vec::new();
    let device = plain_device();
    let (computed, absent): (Vec<_>, Vec<_>) =
        [Precision::Bf16, Precision::F16].into_iter().partition(|precision| precision.is_supported(&device));
    assert!(computed.len() == 2 || !computes_on_host(&device), "a CPU has both");
    for precision in absent {
        eprintln!("skipped: {device:?} does not compute in {precision}");
    }
    for kind in KINDS {
        let (features, gradients) = trained(kind, Precision::F32);
        let is_smooth = matches!(kind, BackboneKind::VitBase16 | BackboneKind::Mlp);
        for precision in computed.iter().copied() {
            let (of_features, of_gradients) = match (is_smooth, precision) {
                (true, Precision::Bf16) => (0.01, 0.03),
                (true, _) => (0.001, 0.003),
                (false, _) => (0.1, 0.9),
            };
            let (found, found_gradients) = trained(kind, precision);
            let (of_found, of_its_gradients) = (apart(&found, &features), apart(&found_gradients, &gradients));
            let line =
                format!("{} in {precision}: features {of_found:.1e}, gradients {of_its_gradients:.1e}", kind.name());
            eprintln!("{line}");
            // Equal features would mean that the precision has no effect.
            if !(1e-6..of_features).contains(&of_found) || !(1e-6..of_gradients).contains(&of_its_gradients) {
                problems.push(line);
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn a_precision_that_a_device_does_not_have_is_refused_with_those_that_it_has() {
    for precision in Precision::ALL {
        precision.check(&Device::flex()).unwrap();
        precision.check(&Device::flex().autodiff()).unwrap();
    }
    let error = ModelError::Precision { precision: Precision::Bf16, supported: "f32, f16".to_owned() };
    assert_eq!(error.to_string(), "precision is bf16, expected one in which the device computes: f32, f16");
}

fn numbers(pixels: Pixels) -> Vec<f32> {
    match pixels {
        Pixels::Table(x) => x.into_data(),
        Pixels::Image(x) => x.into_data(),
        Pixels::Volume(x) => x.into_data(),
    }
    .iter::<f32>()
    .collect()
}

#[test]
fn stored_values_are_scaled_on_the_device() {
    let device = Device::flex();
    // Bytes 1, 2, 3, 254, 255, 0 of one picture with two channels of 1 x 3.
    let words = vec![i32::from_le_bytes([1, 2, 3, 254]), i32::from_le_bytes([255, 0, 0, 0])];
    let scale = [(2.0, 0.5), (-1.0, 1.0)];
    let found = Pixels::from_stored(words.clone(), 8, vec![1, 2, 1, 3], 2, &scale, &device).unwrap();
    assert_eq!(found.shape(), [1, 2, 1, 3]);
    assert_eq!(numbers(found), [2.5, 4.5, 6.5, -253.0, -254.0, 1.0]);
    // Two volumes of one channel with voxels 65535 and 7, 0 and 40000, for a model of two channels.
    let wide = vec![i32::from_le_bytes([255, 255, 7, 0]), i32::from_le_bytes([0, 0, 64, 156])];
    let found = Pixels::from_stored(wide, 16, vec![2, 2, 1, 1, 2], 1, &scale, &device).unwrap();
    assert_eq!(numbers(found), [131_070.5, 14.5, -65_534.0, -6.0, 0.5, 80_000.5, 1.0, -39_999.0]);
    for (words, bits, n_channels) in [(vec![0], 8, 2), (vec![0; 3], 8, 2), (words.clone(), 4, 2), (words, 8, 3)] {
        let refused = Pixels::from_stored(words, bits, vec![1, 2, 1, 3], n_channels, &scale, &device);
        assert!(matches!(refused, Err(ModelError::IncompleteBatch { .. })));
    }
}
