//! Layouts of the backbones against the parameter counts of their references, and properties at full size. More
//! properties, and the parity with the references, are tested on miniatures inside the crate.
//!
//! The counts of the references are those of torchvision 0.29.2 without the last layer: `efficientnet_b0` 5,288,548 -
//! (1280 x 1000 + 1000), `resnet18` 11,689,512 - (512 x 1000 + 1000), `r3d_18` 33,371,472 - (512 x 400 + 400); of
//! `MedicalNet` (20f76aa) without `conv_seg`; of timm 1.0.31's `VisionTransformer` without `head`.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use burn::module::{Module as _, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};
use fairtte_metrics::seeds::stream;
use fairtte_models::{Backbone, BackboneKind, EncoderConfig, MlpConfig, ModelError, Noise, Pixels};
use fairtte_models::{VitConfig, initialise};

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
    Pixels::from_host(wave(&shape), shape, device).unwrap()
}

fn built(kind: BackboneKind, channels: usize, seed: u64, device: &Device) -> Backbone {
    initialise(kind.build(channels, device), stream(seed, "weights", &[]))
}

/// The backbones that are small enough to be initialised and run at full size in a test.
const AFFORDABLE: [BackboneKind; 8] = [
    BackboneKind::EfficientNetB0,
    BackboneKind::ResNet18,
    BackboneKind::ResNet18Volume,
    BackboneKind::MedicalNet10,
    BackboneKind::MedicalNet18,
    BackboneKind::Small2d,
    BackboneKind::Small3d,
    BackboneKind::Mlp,
];

fn values(tensor: Tensor<2>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

/// Counts the parameters that the optimiser may change; the running statistics of batch norm are visited too, but have
/// no gradient.
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
    assert_eq!(count(BackboneKind::ResNet18, 3), 11_689_512 - 513_000);
    assert_eq!(count(BackboneKind::ResNet18Volume, 3), 33_371_472 - 205_200);
    assert_eq!(count(BackboneKind::MedicalNet10, 1), 14_355_520);
    assert_eq!(count(BackboneKind::MedicalNet18, 1), 32_986_176);
    assert_eq!(count(BackboneKind::MedicalNet34, 1), 63_295_808);
    assert_eq!(count(BackboneKind::MedicalNet50, 1), 46_155_072);
    assert_eq!(count(BackboneKind::VitBase16, 3), 85_798_656);
    assert_eq!(count(BackboneKind::VitLarge16, 3), 303_301_632);
    // 9 (1 x 16 + 16 x 32 + 32 x 64 + 64 x 64) + 2 (16 + 32 + 64 + 64); 27 (1 x 8 + 8 x 16 + ..) + 2 (8 + 16 + ..)
    assert_eq!(count(BackboneKind::Small2d, 1), 60_400);
    assert_eq!(count(BackboneKind::Small3d, 1), 73_032);
    // 9 columns: 9 x 32 + 32 x 32 weights, 2 x 32 biases, 4 x 32 of batch norm
    assert_eq!(count(BackboneKind::Mlp, 9), 288 + 1024 + 64 + 128);
}

#[test]
fn every_backbone_gives_the_features_that_it_announces() {
    // Batch statistics, as in training: with the initial running statistics, the activations of a deep network vanish.
    let device = Device::flex().autodiff();
    for kind in AFFORDABLE {
        for channels in [1, 3] {
            let net = built(kind, channels, 1, &device);
            let features = net.forward(pixels(kind, 4, channels, &device), &mut Noise::Off).unwrap();
            assert_eq!(features.dims(), [4, kind.n_features()], "{}", kind.name());
            let features = values(features);
            assert!(features.iter().all(|x| x.is_finite()), "{}", kind.name());
            let spread = features.iter().copied().fold(0.0_f32, |a, x| a.max(x.abs()));
            assert!(spread > 1e-6, "{} gives only zeros", kind.name());
        }
    }
}

#[test]
fn a_seed_means_the_same_weights_and_another_seed_others() {
    let device = Device::flex();
    for kind in AFFORDABLE {
        let features =
            |seed| values(built(kind, 1, seed, &device).forward(pixels(kind, 2, 1, &device), &mut Noise::Off).unwrap());
        assert_eq!(features(1), features(1), "{}", kind.name());
        assert_ne!(features(1), features(2), "{}", kind.name());
    }
}

#[test]
fn inference_does_not_depend_on_the_other_samples_of_the_batch() {
    let device = Device::flex();
    for kind in AFFORDABLE {
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
    assert_eq!(config.validate().unwrap_err().to_string(), "dropout is 1, expected a number in [0, 1)");
    let mlp = |settings| EncoderConfig { mlp: Some(settings), ..EncoderConfig::new(BackboneKind::Mlp) };
    let said = |config: EncoderConfig| config.validate().unwrap_err().to_string();
    let empty = mlp(MlpConfig { widths: vec![], ..MlpConfig::default() });
    assert_eq!(said(empty), "mlp.widths is [], expected 1 to 32 whole numbers from 1 to 65536");
    let certain = mlp(MlpConfig { dropout: -0.1, ..MlpConfig::default() });
    assert_eq!(said(certain), "mlp.dropout is -0.1, expected a number in [0, 1)");
    let vit =
        EncoderConfig { vit: Some(VitConfig { drop_path: f64::NAN }), ..EncoderConfig::new(BackboneKind::VitBase16) };
    assert_eq!(said(vit), "vit.drop-path is NaN, expected a number in [0, 1)");
    let other = EncoderConfig { backbone: BackboneKind::ResNet18, ..EncoderConfig::new(BackboneKind::Mlp) };
    assert_eq!(said(other), "mlp is given, but backbone is \"resnet18\", expected no settings of another backbone");
}

#[test]
fn names_are_those_of_run_files_and_defaults_are_written_out() {
    for kind in BackboneKind::ALL {
        let config: EncoderConfig = serde_json::from_value(serde_json::json!({"backbone": kind.name()})).unwrap();
        assert_eq!(config, EncoderConfig::new(kind));
        config.validate().unwrap();
        let written = serde_json::to_value(&config).unwrap();
        assert_eq!(written["backbone"], kind.name());
        assert_eq!(serde_json::from_value::<EncoderConfig>(written).unwrap(), config);
    }
    let vit = serde_json::to_value(EncoderConfig::new(BackboneKind::VitLarge16)).unwrap();
    assert_eq!(
        vit,
        serde_json::json!({
            "backbone": "vit-large/16", "representation": 64, "dropout": 0.5, "hidden": 16, "vit": {"drop-path": 0.2}
        })
    );
    let partly = serde_json::json!({"backbone": "mlp", "mlp": {"widths": [8]}});
    let partly: EncoderConfig = serde_json::from_value(partly).unwrap();
    assert_eq!(partly.mlp, Some(MlpConfig { widths: vec![8], dropout: 0.0, batch_norm: true }));
    assert!(
        serde_json::from_value::<EncoderConfig>(serde_json::json!({"backbone": "mlp", "mlp": {"width": 8}})).is_err()
    );
    assert!(serde_json::from_value::<EncoderConfig>(serde_json::json!({"backbone": "mlp", "extra": 8})).is_err());
}

#[test]
fn a_representation_of_length_zero_is_the_features_of_the_backbone() {
    let device = Device::flex();
    let config = EncoderConfig { representation: 0, ..EncoderConfig::new(BackboneKind::Small2d) };
    config.validate().unwrap();
    let encoder = initialise(config.build(1, &device), stream(1, "weights", &[]));
    let backbone = built(BackboneKind::Small2d, 1, 1, &device);
    let x = || pixels(BackboneKind::Small2d, 2, 1, &device);
    let features = values(backbone.forward(x(), &mut Noise::Off).unwrap());
    assert_eq!(config.n_representation(), features.len() / 2);
    assert_eq!(values(encoder.forward(x(), &mut Noise::Off).unwrap()), features);
    // Dropout still applies, with its probability of 0.5.
    let dropped = values(encoder.forward(x(), &mut Noise::on(stream(1, "noise", &[]))).unwrap());
    for (dropped, feature) in dropped.iter().zip(&features) {
        assert!(*dropped == 0.0 || (dropped - 2.0 * feature).abs() <= 1e-6 * feature.abs(), "{dropped} from {feature}");
    }
    assert_eq!(
        EncoderConfig { representation: 65_537, ..config }.validate().unwrap_err().to_string(),
        "representation is 65537, expected a whole number from 0 to 65536"
    );
}

#[test]
fn the_number_of_axes_says_what_pixels_are() {
    let of = |shape: &[usize]| Pixels::from_host(wave(shape), shape.to_vec(), &Device::flex());
    assert!(matches!(of(&[2, 3]), Ok(Pixels::Table(_))));
    assert!(matches!(of(&[2, 1, 4, 4]), Ok(Pixels::Image(_))));
    let Ok(Pixels::Volume(voxels)) = of(&[2, 1, 2, 3, 4]) else { panic!("five axes are a volume") };
    assert_eq!(voxels.into_data().try_to_vec::<f32>().unwrap(), wave(&[2, 1, 2, 3, 4]));
    let shape = vec![2, 4, 4];
    assert!(matches!(of(&shape), Err(ModelError::WrongInput { shape: found, .. }) if found == shape));
    assert_eq!(
        Pixels::from_host(vec![0.0; 31], vec![2, 1, 4, 4], &Device::flex()).unwrap_err(),
        ModelError::IncompleteBatch { shape: vec![2, 1, 4, 4], found: 31 }
    );
}
