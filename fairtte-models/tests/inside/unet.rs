//! The decoder of a U-Net on ResNet-18 against `segmentation_models_pytorch` in PyTorch: logits, and gradients of a training step.
//! Recorded by `parity/references.py`, as the features of the backbones.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use burn::module::Module;
use burn::store::{ModuleSnapshot as _, PyTorchToBurnAdapter, bridge};
use burn::tensor::{Device, Tensor};
use fairtte_metrics::seeds::stream;

use crate::backbone::{Backbone, BackboneKind};
use crate::miniature::miniature;
use crate::parity::{Collected, GRADIENTS_WITHIN, Tensors, furthest, load, miniatures, pixels, read, values};
use crate::{EncoderConfig, ModelError, Noise, Pixels, UnetDecoder, initialise};

/// Logits of the reference are up to 11; its own single precision is 2e-6 of that off.
const LOGITS_WITHIN: f32 = 1e-5;

/// A backbone with its decoder.
#[derive(Module, Debug)]
struct Whole {
    backbone: Backbone,
    decoder: UnetDecoder,
}

impl Whole {
    fn new(device: &Device) -> Self {
        let decoder = UnetDecoder::with_widths([4, 6, 8, 10], [9, 7, 6, 5, 4], 3, device);
        Self { backbone: miniature(BackboneKind::ResNet18, 3, device), decoder }
    }

    fn logits(&self, input: Pixels) -> Tensor<4> {
        let (features, maps) = self.backbone.with_maps(input.clone()).unwrap();
        let sides: Vec<usize> = maps.iter().map(|map| map.dims()[2]).collect();
        assert_eq!(sides, [32, 16, 8, 4, 2], "half of the side to 1/32");
        let alone = self.backbone.forward(input, &mut Noise::Off).unwrap();
        assert_eq!(values(features), values(alone), "the features are those of the backbone alone");
        self.decoder.forward(maps)
    }

    /// With the tensors whose names begin with `prefix`; each has a place.
    fn loaded(device: &Device, tensors: &Tensors, prefix: &str) -> Self {
        let Self { backbone, mut decoder } = Self::new(device);
        let all = prefix.is_empty();
        let encoder = format!("{prefix}encoder.");
        let backbone = load(backbone, &[2, 2, 2, 2], tensors, &encoder, all);
        let own = |key: &str| {
            let key = key.strip_prefix(prefix)?;
            let name = match key.split('.').collect::<Vec<_>>().as_slice() {
                ["decoder", "blocks", n, conv, layer, rest] => {
                    let place = if *conv == "conv1" { "first" } else { "second" };
                    let layer = if *layer == "0" { "conv" } else { "norm" };
                    format!("blocks.{n}.{place}.{layer}.{rest}")
                }
                ["segmentation_head", "0", rest] => format!("output.{rest}"),
                _ => return None,
            };
            (!key.ends_with("num_batches_tracked")).then_some(name)
        };
        let renamed = tensors.iter().filter_map(|(key, data)| Some(bridge::from_data(data.clone(), own(key)?, None)));
        let applied = decoder.apply(renamed.collect(), None, Some(Box::new(PyTorchToBurnAdapter)), true);
        assert!(applied.errors.is_empty() && applied.unused.is_empty(), "{applied:?}");
        assert!(applied.missing.iter().all(|(path, _)| !all && path.contains("running")), "{applied:?}");
        Self { backbone, decoder }
    }
}

/// The numbers that the optimiser may change, or their gradients, of every tensor; running statistics are none of them.
fn collected<M: Module>(network: &M, gradients: Option<&burn::tensor::Gradients>) -> Vec<Vec<f32>> {
    let mut collected = Collected { gradients, parameters: Vec::new() };
    network.visit(&mut collected);
    collected.parameters.into_iter().map(|values| values.expect("every parameter has one")).collect()
}

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |a, x| a.max(x.abs()))
}

#[test]
fn logits_and_gradients_are_those_of_the_reference() {
    let weights = read(&miniatures().join("unet.safetensors"));
    let expected = read(&miniatures().join("unet.expected.safetensors"));
    let host = |key: &str| expected[key].clone().try_to_vec::<f32>().unwrap();

    let device = Device::flex();
    let logits = Whole::loaded(&device, &weights, "").logits(pixels(&expected["input"], &device));
    assert_eq!(logits.dims(), [3, 3, 64, 32]);
    let of_reference = host("features");
    let apart = furthest(&values(logits), &of_reference) / largest(&of_reference);
    assert!(apart <= LOGITS_WITHIN, "logits are {apart:e} apart");

    let device = Device::flex().autodiff();
    let trained = Whole::loaded(&device, &weights, "");
    let (_, maps) = trained.backbone.with_maps(pixels(&expected["input"], &device)).unwrap();
    let logits: Tensor<2> = trained.decoder.forward(maps).flatten(1, 3);
    let of_reference = host("training.features");
    let apart = furthest(&values(logits.clone().inner()), &of_reference) / largest(&of_reference);
    assert!(apart <= LOGITS_WITHIN, "logits in training are {apart:e} apart");
    let probe = Tensor::from_data(expected["probe"].clone(), &device);
    let gradients = (logits * probe).sum().backward();
    let found = collected(&trained, Some(&gradients));
    let of_reference = collected(&Whole::loaded(&device, &expected, "gradient."), None);
    assert_eq!(found.len(), of_reference.len());
    let scale = of_reference.iter().map(|gradient| largest(gradient)).fold(0.0, f32::max);
    for (n, (found, of_reference)) in found.iter().zip(&of_reference).enumerate() {
        let own = largest(of_reference);
        // Some gradients are 0 but for rounding: that of a shift which the next batch norm takes out again.
        let apart = furthest(found, of_reference) / if own > 1e-9 * scale { own } else { scale };
        assert!(apart <= GRADIENTS_WITHIN, "gradient {n} is {apart:e} apart");
    }
}

#[test]
fn the_network_of_full_size_has_the_parameters_of_the_reference() {
    let device = Device::flex().autodiff();
    let n = |parameters: Vec<Vec<f32>>| parameters.iter().map(Vec::len).sum::<usize>();
    let decoder = n(collected(&UnetDecoder::new(3, &device), None));
    assert_eq!(decoder, 3_151_987);
    // `Unet("resnet18", classes=3)` of the reference has 14,328,499.
    assert_eq!(decoder + n(collected(&BackboneKind::ResNet18.build(3, &device), None)), 14_328_499);
}

#[test]
fn the_same_seed_gives_the_same_weights() {
    let device = Device::flex().autodiff();
    let decoder = || collected(&initialise(UnetDecoder::new(2, &device), stream(5, "decoder", &[])), None);
    let (first, again) = (decoder(), decoder());
    assert!(first == again && first[0].iter().any(|weight| *weight != 0.0));
}

#[test]
fn what_a_u_net_cannot_read_is_refused() {
    let device = Device::flex();
    let of = |kind: BackboneKind, shape: Vec<usize>| {
        let pixels = Pixels::from_host(vec![0.0; shape.iter().product()], shape, &device).unwrap();
        let encoder = EncoderConfig { representation: 0, ..EncoderConfig::new(kind) }.build(1, &device);
        encoder.with_maps(pixels).map(|_| ()).unwrap_err()
    };
    assert_eq!(of(BackboneKind::Small2d, vec![1, 1, 32, 32]), ModelError::NoMaps { backbone: "small-2d" });
    assert_eq!(
        of(BackboneKind::ResNet18, vec![1, 1, 32, 48]).to_string(),
        "a U-Net got a batch of shape [1, 1, 32, 48], expected heights and widths that are multiples of 32"
    );
    assert!(matches!(of(BackboneKind::ResNet18, vec![1, 2, 32, 32]), ModelError::WrongChannels { expected: 1, .. }));
    assert!(matches!(of(BackboneKind::ResNet18, vec![1, 1, 8, 32, 32]), ModelError::WrongInput { .. }));
}
