//! Layouts of the backbones against the parameter counts of their references, and the laws that every one obeys.
//!
//! The counts of the references are those of torchvision 0.24 without the last layer: `efficientnet_b0` 5,288,548 -
//! (1280 x 1000 + 1000), `r3d_18` 33,371,472 - (512 x 400 + 400).
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use burn::module::{Module as _, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor, TensorData};
use fairtte_data::HostBatch;
use fairtte_metrics::seeds::stream;
use fairtte_models::{Backbone, BackboneKind, Batch, EncoderConfig, ModelError, Noise, Pixels, initialise};

/// Deterministic, not constant, in [-1, 1].
fn wave(shape: &[usize]) -> Vec<f32> {
    (0..shape.iter().product::<usize>()).map(|i| ((i as f32) * 0.37).sin()).collect()
}

fn pixels(kind: BackboneKind, batch: usize, channels: usize, device: &Device) -> Pixels {
    let shape: Vec<usize> = match kind.n_axes() {
        0 => vec![batch, channels],
        2 => vec![batch, channels, 32, 32],
        _ => vec![batch, channels, 8, 16, 16],
    };
    let data = TensorData::new(wave(&shape), shape.clone());
    match shape.len() {
        2 => Pixels::Table(Tensor::from_data(data, device)),
        4 => Pixels::Image(Tensor::from_data(data, device)),
        _ => Pixels::Volume(Tensor::from_data(data, device)),
    }
}

fn built(kind: BackboneKind, channels: usize, seed: u64, device: &Device) -> Backbone {
    initialise(kind.build(channels, device), stream(seed, "weights", &[]))
}

fn values(tensor: Tensor<2>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

/// Counts what the optimiser may change; the running statistics of batch norm are visited too, but have no gradient.
struct Trainable(usize);

impl ModuleVisitor for Trainable {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if param.val().is_require_grad() {
            self.0 += param.val().shape().num_elements();
        }
    }
}

#[test]
fn parameter_counts_are_those_of_the_references() {
    let device = Device::flex().autodiff();
    let count = |kind: BackboneKind, channels| {
        let mut trainable = Trainable(0);
        kind.build(channels, &device).visit(&mut trainable);
        trainable.0
    };
    assert_eq!(count(BackboneKind::EfficientNetB0, 3), 5_288_548 - 1_281_000);
    assert_eq!(count(BackboneKind::ResNet18Volume, 3), 33_371_472 - 205_200);
    // 9 (1 x 16 + 16 x 32 + 32 x 64 + 64 x 64) + 2 (16 + 32 + 64 + 64); 27 (1 x 8 + 8 x 16 + ..) + 2 (8 + 16 + ..)
    assert_eq!(count(BackboneKind::Small2d, 1), 60_400);
    assert_eq!(count(BackboneKind::Small3d, 1), 73_032);
    // 9 columns: 9 x 32 + 32 x 32 weights, 2 x 32 biases, 4 x 32 of batch norm
    assert_eq!(count(BackboneKind::Mlp, 9), 288 + 1024 + 64 + 128);
}

#[test]
fn every_backbone_gives_the_features_that_it_announces() {
    // Batch statistics, as in training: with the running statistics of no step at all, the activations of a deep
    // network fade.
    let device = Device::flex().autodiff();
    for kind in BackboneKind::ALL {
        for channels in [1, 3] {
            let net = built(kind, channels, 1, &device);
            let features = net.forward(pixels(kind, 4, channels, &device), &mut Noise::Off).unwrap();
            assert_eq!(features.dims(), [4, kind.n_features()], "{}", kind.name());
            let features = values(features);
            assert!(features.iter().all(|x| x.is_finite()), "{}", kind.name());
            let spread = features.iter().copied().fold(0.0_f32, |a, x| a.max(x.abs()));
            assert!(spread > 1e-6, "{} gives nothing but zeros", kind.name());
        }
    }
}

#[test]
fn a_seed_means_the_same_weights_and_another_seed_others() {
    let device = Device::flex();
    for kind in BackboneKind::ALL {
        let features =
            |seed| values(built(kind, 1, seed, &device).forward(pixels(kind, 2, 1, &device), &mut Noise::Off).unwrap());
        assert_eq!(features(1), features(1), "{}", kind.name());
        assert_ne!(features(1), features(2), "{}", kind.name());
    }
}

#[test]
fn inference_does_not_depend_on_the_other_samples_of_the_batch() {
    let device = Device::flex();
    for kind in BackboneKind::ALL {
        let net = built(kind, 1, 1, &device);
        let both = values(net.forward(pixels(kind, 2, 1, &device), &mut Noise::Off).unwrap());
        let one = values(net.forward(pixels(kind, 1, 1, &device), &mut Noise::Off).unwrap());
        for (alone, together) in one.iter().zip(&both) {
            assert!((alone - together).abs() < 1e-5 * together.abs().max(1.0), "{}", kind.name());
        }
    }
}

#[test]
fn pictures_are_refused_by_a_network_for_volumes() {
    let device = Device::flex();
    let net = built(BackboneKind::Small3d, 1, 1, &device);
    let error = net.forward(pixels(BackboneKind::Small2d, 1, 1, &device), &mut Noise::Off).unwrap_err();
    let expected =
        "backbone small-3d got a batch of shape [1, 1, 32, 32], expected [batch, channels, depth, height, width]";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn dropout_keeps_the_mean_and_is_drawn_from_the_named_stream() {
    let device = Device::flex();
    let ones = || Tensor::<2>::ones([100, 100], &device);
    let dropped = |epoch| values(Noise::on(stream(1, "noise", &[epoch])).dropout(ones(), 0.25));
    let first = dropped(0);
    assert_eq!(first, dropped(0));
    assert_ne!(first, dropped(1));
    assert!(first.iter().all(|x| *x == 0.0 || (*x - 4.0 / 3.0).abs() < 1e-6));
    // 10,000 draws: the share that is kept has a standard deviation of 0.0043.
    let kept = first.iter().filter(|x| **x > 0.0).count() as f64 / 1e4;
    assert!((kept - 0.75).abs() < 0.02, "{kept} kept");
    assert_eq!(values(Noise::Off.dropout(ones(), 0.25)), vec![1.0; 10_000]);
}

#[test]
fn stochastic_depth_drops_whole_samples() {
    let device = Device::flex();
    let x = Tensor::<2>::ones([64, 8], &device);
    let rows = values(Noise::on(stream(1, "noise", &[])).drop_samples(x, 0.5));
    let mut n_dropped = 0;
    for row in rows.chunks(8) {
        assert!(row.iter().all(|x| x.to_bits() == row[0].to_bits()));
        n_dropped += usize::from(row[0] == 0.0);
    }
    assert!((10..54).contains(&n_dropped), "{n_dropped} of 64 dropped");
}

#[test]
fn settings_outside_their_range_are_named() {
    let config = EncoderConfig { dropout: 1.0, ..EncoderConfig::new(BackboneKind::Small2d) };
    assert_eq!(config.validate().unwrap_err().to_string(), "model.dropout is 1, expected a number in [0, 1)");
}

#[test]
fn a_batch_keeps_ids_beside_pixels() {
    let host = HostBatch {
        rows: vec![4, 7],
        sample_ids: vec!["a".into(), "b".into()],
        pixels: wave(&[2, 1, 4, 4]),
        shape: vec![2, 1, 4, 4],
        time: vec![1.0, 2.0],
        event: vec![true, false],
        groups: vec![None, None],
    };
    let short = HostBatch { pixels: vec![0.0; 31], ..host.clone() };
    let batch = Batch::from_host(host, &Device::flex()).unwrap();
    assert_eq!((batch.n(), batch.rows.as_slice(), batch.pixels.shape()), (2, &[4, 7][..], vec![2, 1, 4, 4]));
    assert_eq!(
        Batch::from_host(short, &Device::flex()).unwrap_err(),
        ModelError::IncompleteBatch { shape: vec![2, 1, 4, 4], found: 31 }
    );
}
