//! Weights on their way out: names and shapes are those of the libraries, and a file that was written is read back bit by
//! bit.
#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};
use fairtte_models::weights::{
    Fit, Gray, Layout, NamedTensor, WeightFile, backbone_tensors, encoder_tensors, tensors, write_export,
};
use fairtte_models::{Backbone, BackboneKind, EncoderConfig, MlpConfig, Noise, Pixels, initialise};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// Keys and shapes of `keys/NAME.txt` that a backbone needs: without classifier and counters.
fn keys(name: &str, dropped: &[&str]) -> BTreeMap<String, Vec<usize>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/weights/keys/{name}.txt"));
    let text = std::fs::read_to_string(path).unwrap();
    let entry = |line: &str| {
        let (key, shape) = line.split_once(' ').unwrap();
        // MedicalNet's files have a prefix for the parallel module around the network.
        let key = key.strip_prefix("module.").unwrap_or(key);
        (key.to_owned(), shape.split('x').filter_map(|size| size.parse().ok()).collect())
    };
    let is_needed = |line: &&str| {
        let key = line.strip_prefix("module.").unwrap_or(line);
        !line.starts_with('#') && !line.contains("num_batches") && !dropped.iter().any(|start| key.starts_with(start))
    };
    text.lines().filter(is_needed).map(entry).collect()
}

fn drawn(kind: BackboneKind, channels: usize, seed: u64) -> Backbone {
    initialise(kind.build(channels, &Device::flex()), ChaCha8Rng::seed_from_u64(seed))
}

fn file(tensors: &[NamedTensor], kind: BackboneKind) -> WeightFile {
    let mut bytes = Vec::new();
    write_export(tensors, kind, &[("fairtte.channels", "1".to_owned())], &mut bytes).unwrap();
    WeightFile::parse(Path::new("m.safetensors"), bytes).unwrap()
}

/// Bits of every tensor by name.
fn bits(tensors: &[NamedTensor]) -> BTreeMap<String, Vec<u32>> {
    tensors.iter().map(|t| (t.name.clone(), t.values.iter().map(|value| value.to_bits()).collect())).collect()
}

/// Every value of a different size, running statistics too, so that a tensor in the place of another is seen.
fn distinct(backbone: Backbone) -> Backbone {
    struct Distinct(f32);
    impl burn::module::ModuleMapper for Distinct {
        fn map_float<const D: usize>(
            &mut self,
            param: burn::module::Param<Tensor<D>>,
        ) -> burn::module::Param<Tensor<D>> {
            self.0 += 1.0;
            let first = self.0;
            param.map(|tensor| {
                let n = tensor.shape().num_elements();
                let values: Vec<f32> = (0..n).map(|i| first + i as f32 / n as f32).collect();
                Tensor::from_data(TensorData::new(values, tensor.shape()), &tensor.device())
            })
        }
    }
    burn::module::Module::map(backbone, &mut Distinct(0.0))
}

#[test]
fn names_and_shapes_are_those_of_the_library() {
    use BackboneKind as Kind;
    let cases = [
        ("torchvision-efficientnet-b0", Kind::EfficientNetB0, 3, vec!["classifier."]),
        ("torchvision-resnet18", Kind::ResNet18, 3, vec!["fc."]),
        ("torchvision-resnet18-3d", Kind::ResNet18Volume, 3, vec!["fc."]),
        ("medicalnet-resnet10", Kind::MedicalNet10, 1, vec!["conv_seg."]),
        ("medicalnet-resnet18", Kind::MedicalNet18, 1, vec!["conv_seg."]),
        ("medicalnet-resnet34", Kind::MedicalNet34, 1, vec!["conv_seg."]),
        ("medicalnet-resnet50", Kind::MedicalNet50, 1, vec!["conv_seg."]),
        ("timm-vit-base-fc-norm", Kind::VitBase16, 3, vec!["head."]),
    ];
    for (name, kind, channels, dropped) in cases {
        let written = backbone_tensors(&drawn(kind, channels, 1)).unwrap();
        let found: BTreeMap<String, Vec<usize>> = written.iter().map(|t| (t.name.clone(), t.shape.clone())).collect();
        assert_eq!(found.len(), written.len(), "{name}: a name is used once");
        assert_eq!(found, keys(name, &dropped), "{name}");
    }
}

#[test]
fn what_was_written_is_read_back_bit_by_bit() {
    let kinds = BackboneKind::ALL.into_iter().filter(|kind| {
        // The larger depths add no name and a minute.
        !matches!(kind, BackboneKind::VitLarge16 | BackboneKind::MedicalNet34 | BackboneKind::MedicalNet50)
    });
    for kind in kinds {
        let channels = if kind == BackboneKind::Mlp { 32 } else { 1 };
        let written = backbone_tensors(&distinct(drawn(kind, channels, 2))).unwrap();
        let file = file(&written, kind);
        let other = drawn(kind, channels, 3);
        assert_ne!(bits(&backbone_tensors(&other).unwrap()), bits(&written), "{}", kind.name());
        let fit = Fit::new(&file, &other, Layout::Auto, Gray::Auto).unwrap();
        assert_eq!(fit.layout(), Layout::home(kind), "{}", kind.name());
        assert_eq!((fit.missing(), fit.unexpected(), fit.left_out()), (&[][..], &[][..], &[][..]), "{}", kind.name());
        assert_eq!(fit.facts(&other), None, "preprocessing of published weights is not that of a run");
        assert!(fit.provenance(&other).contains(&("origin.fairtte.export".to_owned(), kind.name().to_owned())));
        let loaded = fit.load(other).unwrap();
        assert_eq!(bits(&backbone_tensors(&loaded).unwrap()), bits(&written), "{}", kind.name());
    }
}

// torch's Linear: y = x weight^T + bias. A square layer hides a wrong order of its axes, so it is computed.
#[test]
fn a_linear_layer_is_written_as_torch_reads_it() {
    let device = Device::flex();
    let config = EncoderConfig {
        representation: 3,
        mlp: Some(MlpConfig { widths: vec![2], batch_norm: false, ..MlpConfig::default() }),
        ..EncoderConfig::new(BackboneKind::Mlp)
    };
    let encoder = initialise(config.build(2, &device), ChaCha8Rng::seed_from_u64(4));
    let written = encoder_tensors(&encoder).unwrap();
    let names: Vec<(&str, &[usize])> = written.iter().map(|t| (t.name.as_str(), t.shape.as_slice())).collect();
    let expected: [(&str, &[usize]); 4] = [
        ("layers.0.dense.weight", &[2, 2]),
        ("layers.0.dense.bias", &[2]),
        ("projection.weight", &[3, 2]),
        ("projection.bias", &[3]),
    ];
    assert_eq!(names, expected);
    let layer = |x: &[f32], weight: &NamedTensor, bias: &NamedTensor| -> Vec<f32> {
        let n_inputs = weight.shape[1];
        let row = |(weights, bias): (&[f32], &f32)| weights.iter().zip(x).map(|(w, x)| w * x).sum::<f32>() + bias;
        weight.values.chunks_exact(n_inputs).zip(&bias.values).map(row).collect()
    };
    let x = [0.7_f32, -1.3];
    let hidden: Vec<f32> = layer(&x, &written[0], &written[1]).into_iter().map(|value| value.max(0.0)).collect();
    let expected = layer(&hidden, &written[2], &written[3]);
    let input = Pixels::Table(Tensor::from_data(TensorData::new(x.to_vec(), [1, 2]), &device));
    let found: Vec<f32> = encoder.forward(input, &mut Noise::Off).unwrap().into_data().iter::<f32>().collect();
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-6, "{found} in place of {expected}");
    }
    let projection = tensors(encoder.projection().unwrap());
    assert_eq!(projection.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["weight", "bias"]);
}

#[test]
fn the_layers_after_the_backbone_are_left_out_and_named() {
    let kind = BackboneKind::Small2d;
    let backbone = drawn(kind, 1, 5);
    let one = |name: &str| NamedTensor { name: name.to_owned(), shape: vec![1], values: vec![1.0] };
    let mut all = backbone_tensors(&backbone).unwrap();
    all.extend(["projection.bias", "group-1.classifier.output.bias", "target.mean.bias"].map(one));
    let whole = file(&all, kind);
    let fit = Fit::new(&whole, &backbone, Layout::Auto, Gray::Auto).unwrap();
    fit.require().unwrap();
    assert_eq!(fit.left_out(), ["projection.bias", "group-1.classifier.output.bias", "target.mean.bias"]);

    all.push(one("layers.9.conv.weight"));
    let error = Fit::new(&file(&all, kind), &backbone, Layout::Auto, Gray::Auto).unwrap().require().unwrap_err();
    assert!(error.to_string().contains("unexpected keys: 1 (first: layers.9.conv.weight)"), "{error}");
}

#[test]
fn a_file_with_several_networks_or_of_another_backbone_is_refused() {
    let kind = BackboneKind::Small2d;
    let backbone = drawn(kind, 1, 6);
    let written = backbone_tensors(&backbone).unwrap();
    let of_groups: Vec<NamedTensor> =
        ["group-0.", "group-1."].iter().flat_map(|group| written.iter().map(|t| t.clone().below(group))).collect();
    let refusal = |tensors: &[NamedTensor], kind, backbone: &Backbone| {
        Fit::new(&file(tensors, kind), backbone, Layout::Auto, Gray::Auto).unwrap_err().to_string()
    };
    let error = refusal(&of_groups, kind, &backbone);
    assert!(error.ends_with("it holds one network per group (group-0 and others), expected one network"), "{error}");
    let error = refusal(&written, kind, &drawn(BackboneKind::ResNet18, 1, 7));
    assert!(error.ends_with("it holds the weights of small-2d, expected resnet18"), "{error}");
}
