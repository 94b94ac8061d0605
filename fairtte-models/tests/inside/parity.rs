//! The backbones against their references, with the same random weights: features in evaluation mode (1e-5 absolute) and
//! parameter gradients of one training step (1e-4 of the largest entry of each parameter's gradient; where that is 0
//! except for rounding, as for a shift that the next batch norm removes, 1e-5 of the largest entry of all).
//!
//! `parity/references.py` writes the files and records the versions. The miniatures are in `tests/parity`; networks of
//! full size are compared if `FAIRTTE_PARITY` names a folder of them (`just torch-parity`). The names of weights are
//! translated here independently of the importer of weights, so that each checks the other.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::module::{Module, ModuleVisitor, Param};
use burn::store::{ModuleSnapshot as _, ModuleStore as _, PyTorchToBurnAdapter, SafetensorsStore, bridge};
use burn::tensor::{Device, Gradients, Tensor, TensorData};

use crate::backbone::{Backbone, BackboneKind};
use crate::miniature::{miniature, mlp};
use crate::weights::{Fit, Gray, Layout, WeightFile};
use crate::{Noise, Pixels};

const FEATURES_WITHIN: f32 = 1e-5;
pub(crate) const GRADIENTS_WITHIN: f32 = 1e-4;

pub(crate) type Tensors = BTreeMap<String, TensorData>;

pub(crate) fn read(path: &Path) -> Tensors {
    let mut store = SafetensorsStore::from_file(path);
    let tensors = store.get_all_tensors().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    tensors.iter().map(|(name, tensor)| (name.clone(), bridge::to_data(tensor).unwrap())).collect()
}

/// Name here of the reference's weight `key`; `repeats` are the blocks of each stage.
fn named(kind: BackboneKind, repeats: &[usize], key: &str) -> String {
    let parts: Vec<&str> = key.split('.').collect();
    let brick = |name: &str, layer: &str, rest: &[&str]| {
        let layer = if matches!(layer, "0" | "conv1" | "conv2" | "conv3") { "conv" } else { "norm" };
        format!("{name}.{layer}.{}", rest.join("."))
    };
    let block = |stage: usize, within: &str| repeats[..stage].iter().sum::<usize>() + within.parse::<usize>().unwrap();
    let stage = |text: &str| text.trim_start_matches("layer").parse::<usize>().unwrap() - 1;
    let path = match (kind, parts.as_slice()) {
        (BackboneKind::EfficientNetB0, ["features", "0", layer, rest @ ..]) => brick("stem", layer, rest),
        (BackboneKind::EfficientNetB0, ["features", s, b, "block", i, layer, rest @ ..]) => {
            let names = ["expand", "depthwise", "squeeze", "project"];
            let skipped = usize::from(*s == "1");
            let name = format!("blocks.{}.{}", block(stage(s), b), names[i.parse::<usize>().unwrap() + skipped]);
            match *layer {
                "fc1" => format!("{name}.{}", rest.join(".")),
                "fc2" => format!("{}.{}", name.replace("squeeze", "excite"), rest.join(".")),
                layer => brick(&name, layer, rest),
            }
        }
        (BackboneKind::EfficientNetB0, ["features", _, layer, rest @ ..]) => brick("last", layer, rest),
        (BackboneKind::VitBase16 | BackboneKind::VitLarge16, _) => {
            let names = [
                ("cls_token", "class_token"),
                ("pos_embed", "positions"),
                ("patch_embed.proj", "patches"),
                ("norm1", "first_norm"),
                ("norm2", "second_norm"),
                ("attn.qkv", "qkv"),
                ("attn.proj", "project"),
                ("mlp.fc1", "widen"),
                ("mlp.fc2", "narrow"),
                ("fc_norm", "norm"),
            ];
            names.iter().fold(key.to_owned(), |key, (theirs, ours)| key.replace(theirs, ours))
        }
        (BackboneKind::Mlp, _) => {
            key.replace("net.", "layers.").replace(".linear.", ".dense.").replace(".batch_norm.", ".norm.")
        }
        (_, ["stem", layer, rest @ ..] | [layer @ ("conv1" | "bn1"), rest @ ..]) => brick("stem", layer, rest),
        (_, [s, b, "downsample", layer, rest @ ..]) => {
            brick(&format!("blocks.{}.shortcut", block(stage(s), b)), layer, rest)
        }
        (_, [s, b, layer, rest @ ..]) => {
            let position = ["first", "second", "third"][layer[layer.len() - 1..].parse::<usize>().unwrap() - 1];
            let name = format!("blocks.{}.{position}", block(stage(s), b));
            match (kind, rest) {
                (BackboneKind::ResNet18Volume, [layer, rest @ ..]) => brick(&name, layer, rest),
                _ => brick(&name, layer, rest),
            }
        }
        _ => panic!("{} has no weight {key}", kind.name()),
    };
    format!("network.{path}")
}

/// Puts the tensors whose names begin with `prefix` into `backbone`; each must have a place, and with `all` each parameter
/// must be among them.
pub(crate) fn load(mut backbone: Backbone, repeats: &[usize], tensors: &Tensors, prefix: &str, all: bool) -> Backbone {
    let kind = backbone.kind();
    let renamed = tensors
        .iter()
        .filter_map(|(key, data)| Some((key.strip_prefix(prefix)?, data)))
        .filter(|(key, _)| !key.ends_with("num_batches_tracked"))
        .map(|(key, data)| bridge::from_data(data.clone(), named(kind, repeats, key), None));
    let applied = backbone.apply(renamed.collect(), None, Some(Box::new(PyTorchToBurnAdapter)), true);
    assert!(applied.errors.is_empty() && applied.unused.is_empty(), "{}: {applied:?}", kind.name());
    let missing = applied.missing.iter().filter(|(path, _)| all || !path.contains("running"));
    assert_eq!(missing.count(), 0, "{}: {applied:?}", kind.name());
    backbone
}

pub(crate) fn pixels(data: &TensorData, device: &Device) -> Pixels {
    match data.shape().len() {
        2 => Pixels::Table(Tensor::from_data(data.clone(), device)),
        4 => Pixels::Image(Tensor::from_data(data.clone(), device)),
        _ => Pixels::Volume(Tensor::from_data(data.clone(), device)),
    }
}

pub(crate) fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().unwrap()
}

pub(crate) fn furthest(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Values, or gradients, of all parameters in the order of the network.
pub(crate) struct Collected<'a> {
    pub(crate) gradients: Option<&'a Gradients>,
    pub(crate) parameters: Vec<Option<Vec<f32>>>,
}

impl ModuleVisitor for Collected<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        if tensor.is_require_grad() {
            let found = match self.gradients {
                Some(gradients) => tensor.grad(gradients).map(values),
                None => Some(values(tensor.inner())),
            };
            self.parameters.push(found);
        }
    }
}

pub(crate) fn collect(backbone: &Backbone, gradients: Option<&Gradients>) -> Vec<Option<Vec<f32>>> {
    let mut collected = Collected { gradients, parameters: Vec::new() };
    backbone.visit(&mut collected);
    collected.parameters
}

fn compare(name: &str, folder: &Path, repeats: &[usize], build: &dyn Fn(&Device) -> Backbone) {
    let weights = read(&folder.join(format!("{name}.safetensors")));
    let expected = read(&folder.join(format!("{name}.expected.safetensors")));
    let device = Device::flex();
    let inference = load(build(&device), repeats, &weights, "", true);
    for (input, data) in expected.iter().filter(|(key, _)| key.starts_with("input")) {
        let features = values(inference.forward(pixels(data, &device), &mut Noise::Off).unwrap());
        let of_reference: Vec<f32> = expected[&input.replace("input", "features")].clone().try_to_vec().unwrap();
        let worst = furthest(&features, &of_reference);
        eprintln!("{name}: features of {input} differ by {worst:.1e} at most");
        assert!(worst <= FEATURES_WITHIN, "{name}: features of {input} differ by {worst:e}");
    }
    drop(inference);
    if let Some(probe) = expected.get("probe") {
        let own = folder.join(format!("{name}.training.safetensors"));
        let weights = if own.exists() { read(&own) } else { weights };
        compare_gradients(name, repeats, build, [&weights, &expected], probe);
    }
}

fn compare_gradients(
    name: &str,
    repeats: &[usize],
    build: &dyn Fn(&Device) -> Backbone,
    [weights, expected]: [&Tensors; 2],
    probe: &TensorData,
) {
    let device = Device::flex().autodiff();
    let trained = load(build(&device), repeats, weights, "", true);
    let input = expected.get("training.input").unwrap_or(&expected["input"]);
    let features = trained.forward(pixels(input, &device), &mut Noise::Off).unwrap();
    let of_reference: Vec<f32> = expected["training.features"].clone().try_to_vec().unwrap();
    let worst = furthest(&values(features.clone().inner()), &of_reference);
    let gradients = (features * Tensor::from_data(probe.clone(), &device)).sum().backward();
    let found = collect(&trained, Some(&gradients));
    // A second network whose weights are the gradients of the reference, so that they are loaded in the same way.
    let of_reference = collect(&load(build(&device), repeats, expected, "gradient.", false), None);
    let of_reference: Vec<Vec<f32>> = of_reference.into_iter().map(Option::unwrap).collect();
    let largest = |gradient: &[f32]| gradient.iter().fold(0.0_f32, |a, x| a.max(x.abs()));
    let largest_of_all = of_reference.iter().map(|gradient| largest(gradient)).fold(0.0, f32::max);
    let mut worst_gradient = 0.0_f32;
    for (i, (found, of_reference)) in found.iter().zip(&of_reference).enumerate() {
        let found = found.as_ref().unwrap_or_else(|| panic!("{name}: parameter {i} has no gradient"));
        let (difference, largest) = (furthest(found, of_reference), largest(of_reference));
        if largest > 1e-9 * largest_of_all {
            worst_gradient = worst_gradient.max(difference / largest);
        } else {
            assert!(difference <= 1e-5 * largest_of_all, "{name}: parameter {i} should have no gradient");
        }
    }
    eprintln!(
        "{name}: in training, features differ by {worst:.1e} and {} gradients by {worst_gradient:.1e}",
        found.len()
    );
    // Twice the error of PyTorch's own float32, where the network of full size is too steep for the bound.
    let rounding: Vec<f32> = expected["training.rounding"].clone().try_to_vec().unwrap();
    let within = GRADIENTS_WITHIN.max(2.0 * rounding[0]);
    assert!(worst_gradient <= within, "{name}: gradients differ by {worst_gradient:e}, more than {within:e}");
}

pub(crate) fn miniatures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity")
}

#[test]
fn miniatures_give_the_features_and_gradients_of_their_references() {
    let cases: [(BackboneKind, usize, &[usize]); 6] = [
        (BackboneKind::EfficientNetB0, 3, &[1, 2, 1]),
        (BackboneKind::ResNet18, 3, &[2, 2, 2, 2]),
        (BackboneKind::ResNet18Volume, 3, &[2, 2, 2, 2]),
        (BackboneKind::MedicalNet10, 1, &[1, 1, 1, 1]),
        (BackboneKind::MedicalNet18, 1, &[2, 2, 2, 2]),
        (BackboneKind::MedicalNet50, 1, &[1, 2, 1, 1]),
    ];
    for (kind, channels, repeats) in cases {
        compare(kind.name(), &miniatures(), repeats, &|device| miniature(kind, channels, device));
    }
}

#[test]
fn a_miniature_vision_transformer_gives_them_too_at_other_sizes_than_that_of_its_positions() {
    compare("vit", &miniatures(), &[], &|device| miniature(BackboneKind::VitBase16, 3, device));
}

/// The networks whose layers are numbered as at full size, so that their files have the layout of full size.
#[test]
fn the_importer_of_weights_gives_the_features_of_the_references() {
    let device = Device::flex();
    for (name, kind, channels) in [
        ("resnet18", BackboneKind::ResNet18, 3),
        ("resnet18-3d", BackboneKind::ResNet18Volume, 3),
        ("medicalnet-resnet10", BackboneKind::MedicalNet10, 1),
        ("medicalnet-resnet18", BackboneKind::MedicalNet18, 1),
        ("vit", BackboneKind::VitBase16, 3),
    ] {
        let file = WeightFile::open(&miniatures().join(format!("{name}.safetensors"))).unwrap();
        let expected = read(&miniatures().join(format!("{name}.expected.safetensors")));
        let backbone = miniature(kind, channels, &device);
        let imported = Fit::new(&file, &backbone, Layout::Auto, Gray::Auto).unwrap().load(backbone).unwrap();
        let (input, of_reference) = (&expected["input"], expected["features"].clone());
        let features = values(imported.forward(pixels(input, &device), &mut Noise::Off).unwrap());
        let worst = furthest(&features, &of_reference.try_to_vec::<f32>().unwrap());
        assert!(worst <= FEATURES_WITHIN, "{name}: features differ by {worst:e}");
    }
}

/// The others at full size: every weight is where the names of this file, independent of the importer's, put it.
#[test]
fn the_importer_of_weights_puts_each_where_the_names_here_put_it() {
    let device = Device::flex();
    let cases: [(&str, BackboneKind, usize, &[usize]); 2] = [
        ("torchvision-efficientnet-b0", BackboneKind::EfficientNetB0, 3, &[1, 2, 2, 3, 3, 4, 1]),
        ("medicalnet-resnet50", BackboneKind::MedicalNet50, 1, &[3, 4, 6, 3]),
    ];
    for (name, kind, channels, repeats) in cases {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/weights/keys/{name}.txt"));
        let text = std::fs::read_to_string(path).unwrap();
        let mut tensors = Tensors::new();
        for (i, line) in text.lines().filter(|line| !line.starts_with('#')).enumerate() {
            let (key, shape) = line.split_once(' ').unwrap();
            if key.starts_with("classifier.") || key.ends_with("num_batches_tracked") {
                continue;
            }
            let shape: Vec<usize> = shape.split('x').filter_map(|size| size.parse().ok()).collect();
            let numbers: Vec<f32> =
                (0..shape.iter().product()).map(|j: usize| ((31 * i + 7 * j) % 251) as f32).collect();
            tensors.insert(key.to_owned(), TensorData::new(numbers, shape));
        }
        let file = WeightFile::parse(Path::new("w.safetensors"), safetensors(&tensors)).unwrap();
        let backbone = kind.build(channels, &device);
        let imported = Fit::new(&file, &backbone, Layout::Auto, Gray::Auto).unwrap().load(backbone).unwrap();
        let prefix = if tensors.keys().all(|key| key.starts_with("module.")) { "module." } else { "" };
        let named = load(kind.build(channels, &device), repeats, &tensors, prefix, true);
        let (imported, named) = (all_values(&imported), all_values(&named));
        assert_eq!(imported.len(), tensors.len(), "{name}: running statistics among them");
        assert!(imported == named, "{name}: {:?}", imported.iter().zip(&named).position(|(a, b)| a != b));
    }
}

fn safetensors(tensors: &Tensors) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (key, tensor) in tensors {
        let start = data.len();
        data.extend_from_slice(tensor.as_bytes());
        let shape: Vec<usize> = tensor.shape().to_vec();
        header.insert(
            key.clone(),
            serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] }),
        );
    }
    let header = serde_json::Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}

/// Values of all parameters and running statistics in the order of the network.
fn all_values(backbone: &Backbone) -> Vec<Vec<f32>> {
    #[derive(Default)]
    struct All(Vec<Vec<f32>>);
    impl ModuleVisitor for All {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push(values(param.val()));
        }
    }
    let mut all = All::default();
    backbone.visit(&mut all);
    all.0
}

#[test]
fn the_network_for_tables_is_mlp_vanilla_with_and_without_batch_norm() {
    compare("mlp", &miniatures(), &[], &|device| mlp(true, 7, device));
    compare("mlp-without-norm", &miniatures(), &[], &|device| mlp(false, 7, device));
}

#[test]
fn networks_of_full_size_give_the_features_and_gradients_of_their_references() {
    let Some(folder) = std::env::var_os("FAIRTTE_PARITY").map(PathBuf::from) else {
        eprintln!("skipped: FAIRTTE_PARITY names no folder of references of full size (just torch-parity)");
        return;
    };
    let mut n_compared = 0;
    for (kind, name, channels, repeats) in FULL_SIZE {
        if folder.join(format!("{name}.safetensors")).exists() {
            compare(name, &folder, repeats, &|device| kind.build(channels, device));
            import_every_container(&folder, name, &kind.build(channels, &Device::flex()));
            n_compared += 1;
        } else {
            eprintln!("skipped: {} holds no {name}.safetensors", folder.display());
        }
    }
    assert!(n_compared > 0, "{} holds no reference", folder.display());
}

/// Safetensors and both kinds of `torch.save` through the importer: the same weights in each, and the features of the
/// reference.
fn import_every_container(folder: &Path, name: &str, backbone: &Backbone) {
    let device = Device::flex();
    let expected = read(&folder.join(format!("{name}.expected.safetensors")));
    let reference = expected["features"].clone().try_to_vec::<f32>().unwrap();
    let mut first: Option<Vec<Vec<f32>>> = None;
    for ending in ["safetensors", "pth", "legacy.pth"] {
        let path = folder.join(format!("{name}.{ending}"));
        if !path.exists() {
            eprintln!("skipped: no {}", path.display());
            continue;
        }
        let file = WeightFile::open(&path).unwrap();
        let fit = Fit::new(&file, backbone, Layout::Auto, Gray::Auto).unwrap();
        fit.require().unwrap();
        let imported = fit.load(backbone.clone()).unwrap();
        let features = values(imported.forward(pixels(&expected["input"], &device), &mut Noise::Off).unwrap());
        let worst = furthest(&features, &reference);
        eprintln!("{name}.{ending} ({}): features within {worst:.1e}", file.container().name());
        assert!(worst <= FEATURES_WITHIN, "{name}.{ending}: features differ by {worst:e}");
        let weights = all_values(&imported);
        assert!(first.get_or_insert_with(|| weights.clone()) == &weights, "{name}.{ending} holds other weights");
    }
}

pub(crate) const FULL_SIZE: [(BackboneKind, &str, usize, &[usize]); 9] = [
    (BackboneKind::EfficientNetB0, "efficientnet-b0", 3, &[1, 2, 2, 3, 3, 4, 1]),
    (BackboneKind::ResNet18, "resnet18", 3, &[2, 2, 2, 2]),
    (BackboneKind::ResNet18Volume, "resnet18-3d", 3, &[2, 2, 2, 2]),
    (BackboneKind::MedicalNet10, "medicalnet-resnet10", 1, &[1, 1, 1, 1]),
    (BackboneKind::MedicalNet18, "medicalnet-resnet18", 1, &[2, 2, 2, 2]),
    (BackboneKind::MedicalNet34, "medicalnet-resnet34", 1, &[3, 4, 6, 3]),
    (BackboneKind::MedicalNet50, "medicalnet-resnet50", 1, &[3, 4, 6, 3]),
    (BackboneKind::VitBase16, "vit-base-16", 3, &[]),
    (BackboneKind::VitLarge16, "vit-large-16", 3, &[]),
];
