//! Layouts of weights against the keys and shapes of the networks of torchvision, timm and MONAI.
#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use fairtte_models::weights::{Fit, Gray, Layout, NamedHash, StoredTensor, WeightFile, sha256};
use fairtte_models::{Backbone, BackboneKind, ModelError};

/// Keys and shapes of `keys/NAME.txt`.
fn keys(name: &str) -> Vec<(String, Vec<usize>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/weights/keys/{name}.txt"));
    let text = std::fs::read_to_string(path).unwrap();
    let entry = |line: &str| {
        let (key, shape) = line.split_once(' ').unwrap();
        (key.to_owned(), shape.split('x').filter_map(|size| size.parse().ok()).collect())
    };
    text.lines().filter(|line| !line.starts_with('#')).map(entry).collect()
}

/// A safetensors file with these tensors of bytes; element `j` of tensor `i` is `(31 i + 7 j) mod 251`.
fn file(keys: &[(String, Vec<usize>)]) -> Vec<u8> {
    let (mut entries, mut end) = (serde_json::Map::new(), 0);
    for (key, shape) in keys {
        let start = end;
        end += shape.iter().product::<usize>();
        entries.insert(key.clone(), serde_json::json!({ "dtype": "U8", "shape": shape, "data_offsets": [start, end] }));
    }
    let header = serde_json::Value::Object(entries).to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    for (i, (_, shape)) in keys.iter().enumerate() {
        bytes.extend((0..shape.iter().product()).map(|j: usize| u8::try_from((31 * i + 7 * j) % 251).unwrap()));
    }
    bytes
}

fn parse(keys: &[(String, Vec<usize>)]) -> WeightFile {
    WeightFile::parse(Path::new("w.safetensors"), file(keys)).unwrap()
}

fn build(kind: BackboneKind, channels: usize) -> Backbone {
    kind.build(channels, &Device::flex())
}

fn fit<'a>(file: &'a WeightFile, backbone: &Backbone) -> Fit<'a> {
    Fit::new(file, backbone, Layout::Auto, Gray::Auto).unwrap()
}

#[test]
fn every_key_of_every_reference_finds_its_place() {
    use BackboneKind as Kind;
    // (keys, backbone, layout, channels, left out except counters, allowed to be missing)
    let cases = [
        ("torchvision-efficientnet-b0", Kind::EfficientNetB0, Layout::Torchvision, 3, 2, 0),
        ("timm-efficientnet-b0", Kind::EfficientNetB0, Layout::Timm, 3, 2, 0),
        ("torchvision-resnet18", Kind::ResNet18, Layout::Torchvision, 3, 2, 0),
        ("timm-resnet18", Kind::ResNet18, Layout::Torchvision, 3, 2, 0),
        ("torchvision-resnet18-3d", Kind::ResNet18Volume, Layout::Torchvision, 3, 2, 0),
        ("medicalnet-resnet10", Kind::MedicalNet10, Layout::Medicalnet, 1, 0, 0),
        ("medicalnet-resnet18", Kind::MedicalNet18, Layout::Medicalnet, 1, 0, 0),
        ("medicalnet-resnet34", Kind::MedicalNet34, Layout::Medicalnet, 1, 0, 0),
        ("medicalnet-resnet50", Kind::MedicalNet50, Layout::Medicalnet, 1, 0, 0),
        ("timm-vit-base", Kind::VitBase16, Layout::Timm, 3, 4, 2),
        ("timm-vit-base-fc-norm", Kind::VitBase16, Layout::Timm, 3, 2, 0),
    ];
    for (name, kind, layout, channels, n_left_out, n_missing) in cases {
        let keys = keys(name);
        let file = parse(&keys);
        assert_eq!(Fit::channels_of(&file, kind, Layout::Auto).unwrap(), Some(channels), "{name}");
        let fit = fit(&file, &build(kind, channels));
        fit.require().unwrap();
        assert_eq!(fit.layout(), layout, "{name}");
        let left_out = fit.left_out().iter().filter(|key| !key.ends_with("num_batches_tracked"));
        assert_eq!(left_out.count(), n_left_out, "{name}: {:?}", fit.left_out());
        assert_eq!(fit.missing().len(), n_missing, "{name}: {:?}", fit.missing());
        assert_eq!(fit.matched().len() + fit.left_out().len(), keys.len(), "{name}: a key is used once");
    }
}

#[test]
fn a_deeper_network_of_the_same_family_is_refused() {
    for (name, kind) in
        [("medicalnet-resnet34", BackboneKind::MedicalNet18), ("medicalnet-resnet18", BackboneKind::MedicalNet34)]
    {
        let file = parse(&keys(name));
        let error = fit(&file, &build(kind, 1)).require().unwrap_err().to_string();
        assert!(error.contains(" keys: "), "{error}");
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let plain = keys("torchvision-resnet18");
    let backbone = build(BackboneKind::ResNet18, 3);
    let refusal = |keys: &[(String, Vec<usize>)]| fit(&parse(keys), &backbone).require().unwrap_err().to_string();

    let missing: Vec<_> = plain.iter().filter(|(key, _)| key != "layer3.1.bn2.bias").cloned().collect();
    assert_eq!(
        refusal(&missing),
        "w.safetensors does not hold the weights of resnet18: in the layout torchvision, missing keys: 1 (first: \
         layer3.1.bn2.bias)"
    );
    let mut wrong = plain.clone();
    wrong[6].1 = vec![64, 64, 1, 1];
    assert!(refusal(&wrong).contains(
        "tensors of another shape: 1 (first: layer1.0.conv1.weight with u8 [64, 64, 1, 1] instead of [64, 64, 3, 3])"
    ));
    let mut more = plain.clone();
    more.push(("layer5.0.conv1.weight".to_owned(), vec![2]));
    assert!(refusal(&more).contains("unexpected keys: 1 (first: layer5.0.conv1.weight)"));

    let mut swiglu = keys("timm-vit-base");
    swiglu.push(("blocks.0.mlp.w12.weight".to_owned(), vec![2, 2]));
    let error = fit(&parse(&swiglu), &build(BackboneKind::VitBase16, 3)).require().unwrap_err().to_string();
    assert!(error.contains("SwiGLU"), "{error}");

    let unknown = [("encoder.w".to_owned(), vec![2_usize])];
    let error = Fit::new(&parse(&unknown), &backbone, Layout::Auto, Gray::Auto).unwrap_err().to_string();
    assert!(error.contains("its layout cannot be recognised from keys such as encoder.w"), "{error}");
    let vit = build(BackboneKind::VitBase16, 3);
    let error = Fit::new(&parse(&plain), &vit, Layout::Auto, Gray::Auto).unwrap_err().to_string();
    assert!(error.contains("its keys are in the layout torchvision, which has no such network"), "{error}");
}

fn native(file: &WeightFile, backbone: &Backbone, folder: &Path, gray: Gray) -> (PathBuf, WeightFile) {
    let path = folder.join("native.safetensors");
    std::fs::create_dir_all(folder).unwrap();
    let mut out = std::fs::File::create(&path).unwrap();
    Fit::new(file, backbone, Layout::Auto, gray).unwrap().write(backbone, &mut out).unwrap();
    let native = WeightFile::open(&path).unwrap();
    (path, native)
}

fn values(file: &WeightFile, key: &str) -> Vec<f32> {
    file.values(file.tensors().iter().find(|tensor| tensor.key == key).unwrap()).unwrap()
}

#[test]
fn a_written_file_holds_the_same_numbers_under_our_names_with_their_origin() {
    let folder = tempfile::tempdir().unwrap();
    let source = parse(&keys("torchvision-resnet18"));
    let backbone = build(BackboneKind::ResNet18, 3);
    let (_, native) = native(&source, &backbone, folder.path(), Gray::Auto);
    for (key, name) in [
        ("conv1.weight", "stem.conv.weight"),
        ("bn1.running_var", "stem.norm.running_var"),
        ("layer2.0.downsample.0.weight", "blocks.2.shortcut.conv.weight"),
        ("layer4.1.bn2.weight", "blocks.7.second.norm.gamma"),
    ] {
        assert_eq!(values(&native, name), values(&source, key), "{name}");
    }
    let metadata = |key: &str| native.metadata().iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
    assert_eq!(metadata("source.sha256"), Some(sha256(source.bytes()).as_str()));
    assert_eq!(metadata("fairtte.backbone"), Some("resnet18"));
    assert_eq!(metadata("input.mean"), Some("0.485, 0.456, 0.406"));
    assert_eq!(metadata("norm.eps"), Some("0.00001"));

    let again = Fit::new(&native, &backbone, Layout::Auto, Gray::Auto).unwrap();
    assert_eq!(again.layout(), Layout::Native);
    again.require().unwrap();
    let origin = again.provenance(&backbone).into_iter().find(|(key, _)| key == "origin.sha256").unwrap().1;
    assert_eq!(origin, sha256(source.bytes()), "the first source stays known");
}

#[test]
fn an_imported_vision_transformer_without_its_last_norm_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let source = parse(&keys("timm-vit-base"));
    let backbone = build(BackboneKind::VitBase16, 3);
    let (_, native) = native(&source, &backbone, folder.path(), Gray::Auto);
    let again = fit(&native, &backbone);
    assert_eq!(again.layout(), Layout::Native);
    again.require().unwrap();
    let missing = |name: &str| (name.to_owned(), name.to_owned(), true);
    assert_eq!(again.missing(), [missing("norm.gamma"), missing("norm.beta")]);
    again.load(backbone).unwrap();
}

#[test]
fn gray_inputs_get_the_sum_or_the_mean_and_colours_get_shares() {
    let folder = tempfile::tempdir().unwrap();
    let source = parse(&keys("torchvision-resnet18"));
    let gray = build(BackboneKind::ResNet18, 1);
    let kernel = values(&source, "conv1.weight");
    let sum = |place: usize| kernel[place] + kernel[49 + place] + kernel[98 + place];
    let (_, summed) = native(&source, &gray, folder.path(), Gray::Auto);
    assert_eq!(values(&summed, "stem.conv.weight")[..49], (0..49).map(sum).collect::<Vec<_>>());
    let colour = build(BackboneKind::ResNet18, 3);
    let (_, shared) = native(&summed, &colour, &folder.path().join("b"), Gray::Auto);
    assert_eq!(values(&shared, "stem.conv.weight")[..49], (0..49).map(|place| sum(place) / 3.0).collect::<Vec<_>>());
    let (_, mean) = native(&source, &gray, &folder.path().join("c"), Gray::Mean);
    assert_eq!(values(&mean, "stem.conv.weight")[..49], (0..49).map(|place| sum(place) / 3.0).collect::<Vec<_>>());
    let fit = Fit::new(&source, &gray, Layout::Auto, Gray::Replicate).unwrap();
    assert_eq!(fit.wrong_shape().len(), 1);
    let fit = Fit::new(&source, &gray, Layout::Auto, Gray::Auto).unwrap();
    assert_eq!(fit.notes()[0], "first convolution: 3 input channels in the file, 1 here; summed over the channels");
}

/// A safetensors file of `f32` or `f64` ones, except the element `index` of `key`.
fn ones_but(keys: &[(String, Vec<usize>)], wide: bool, key: &str, index: usize, value: f64) -> WeightFile {
    let size = if wide { 8 } else { 4 };
    let (mut entries, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, shape) in keys {
        let (start, n) = (data.len(), shape.iter().product::<usize>());
        for at in 0..n {
            let value = if name == key && at == index { value } else { 1.0 };
            #[expect(clippy::cast_possible_truncation, reason = "a file of f32")]
            if wide { data.extend(value.to_le_bytes()) } else { data.extend((value as f32).to_le_bytes()) }
        }
        assert_eq!(data.len(), start + size * n);
        let dtype = if wide { "F64" } else { "F32" };
        entries.insert(
            name.clone(),
            serde_json::json!({ "dtype": dtype, "shape": shape, "data_offsets": [start, data.len()] }),
        );
    }
    let header = serde_json::Value::Object(entries).to_string();
    let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat();
    WeightFile::parse(Path::new("w.safetensors"), bytes).unwrap()
}

#[test]
fn a_value_that_is_no_weight_is_named_and_neither_loaded_nor_written() {
    let keys = keys("torchvision-resnet18");
    let weight = "expected a finite weight within f32";
    let variance = "expected a finite variance >= 0 within f32";
    for (wide, key, index, value, sentence) in [
        (false, "layer1.0.conv1.weight", 5, f64::NAN, format!("{weight}, found NaN")),
        (false, "bn1.bias", 63, f64::NEG_INFINITY, format!("{weight}, found -inf")),
        (false, "bn1.running_var", 2, -0.5, format!("{variance}, found -0.5")),
        (true, "bn1.bias", 1, 1e300, format!("{weight}, found inf once rounded from f64")),
    ] {
        let file = ones_but(&keys, wide, key, index, value);
        let expected = format!("w.safetensors, element {index} of {key}: {sentence}");
        let backbone = build(BackboneKind::ResNet18, 3);
        assert_eq!(fit(&file, &backbone).write(&backbone, &mut Vec::new()).unwrap_err().to_string(), expected);
        assert_eq!(fit(&file, &backbone).load(backbone).map(|_| ()).unwrap_err().to_string(), expected);
    }
    let backbone = build(BackboneKind::ResNet18, 3);
    fit(&ones_but(&keys, false, "bn1.running_mean", 2, -0.5), &backbone).load(backbone).unwrap();
}

#[test]
fn no_network_is_built_for_a_number_of_channels_that_no_picture_has() {
    let mut keys = keys("torchvision-resnet18");
    let first = keys.iter().position(|(key, _)| key == "conv1.weight").unwrap();
    for channels in [0, 1025] {
        keys[first].1 = vec![1, channels, 1, 1];
        let error = Fit::channels_of(&parse(&keys), BackboneKind::ResNet18, Layout::Auto).unwrap_err().to_string();
        assert!(error.ends_with(&format!("conv1.weight has {channels} input channels, expected 1 to 1024")), "{error}");
    }
}

#[test]
fn both_programs_weights_of_efficientnet_land_in_the_same_places() {
    // Both list their layers in the order of computation, so tensor i of one is tensor i of the other.
    let folder = tempfile::tempdir().unwrap();
    let backbone = build(BackboneKind::EfficientNetB0, 3);
    let [theirs, others] = ["torchvision-efficientnet-b0", "timm-efficientnet-b0"].map(|name| {
        let keys = keys(name);
        let shapes: Vec<_> = keys.iter().map(|(_, shape)| shape.clone()).collect();
        let (_, native) = native(&parse(&keys), &backbone, &folder.path().join(name), Gray::Auto);
        let values = |tensor: &StoredTensor| (tensor.key.clone(), native.values(tensor).unwrap());
        let tensors: Vec<_> = native.tensors().iter().map(values).collect();
        (shapes, tensors)
    });
    assert_eq!(theirs.0, others.0);
    assert!(theirs.1 == others.1);
}

/// The metadata of an imported file under `key`.
fn said(fit: &Fit<'_>, backbone: &Backbone, key: &str) -> String {
    fit.provenance(backbone).into_iter().find(|(found, _)| found == key).unwrap().1
}

#[test]
fn keys_that_two_programs_share_are_not_taken_for_one_of_them() {
    let file = parse(&keys("timm-resnet18"));
    let backbone = build(BackboneKind::ResNet18, 3);
    let told = fit(&file, &backbone);
    let resize = "torchvision: 256 bilinear, centre 224; timm: see config.json of the model";
    assert_eq!(said(&told, &backbone, "input.resize"), resize);
    assert!(told.notes()[0].contains("have the same keys"), "{:?}", told.notes());
    let asked = Fit::new(&file, &backbone, Layout::Timm, Gray::Auto).unwrap();
    assert!(said(&asked, &backbone, "input.resize").contains("as in config.json"));
    assert!(said(&asked, &backbone, "licence").starts_with("timm is Apache-2.0"));
    assert!(asked.notes().is_empty());
    let asked = Fit::new(&file, &backbone, Layout::Torchvision, Gray::Auto).unwrap();
    assert_eq!(said(&asked, &backbone, "input.resize"), "256 bilinear, centre 224");

    // Outside a checkpoint, a masked autoencoder is recognised by a decoder.
    let mut masked = keys("timm-vit-base");
    masked.retain(|(key, _)| !key.starts_with("head."));
    masked.push(("decoder_embed.weight".to_owned(), vec![2, 2]));
    let (file, backbone) = (parse(&masked), build(BackboneKind::VitBase16, 3));
    let told = fit(&file, &backbone);
    assert_eq!(told.layout(), Layout::Mae);
    assert!(said(&told, &backbone, "licence").starts_with("if this is MAE or RETFound: CC BY-NC 4.0"));
    assert!(said(&told, &backbone, "input.resize").starts_with("if this is MAE or RETFound: "));
    assert!(told.notes()[0].contains("DeiT"), "{:?}", told.notes());
    let asked = Fit::new(&file, &backbone, Layout::Mae, Gray::Auto).unwrap();
    assert_eq!(said(&asked, &backbone, "licence"), "MAE and RETFound: CC BY-NC 4.0, no commercial use");
}

#[test]
fn beside_the_backbone_of_dinov2_only_its_heads_are_left_out() {
    let mut keys: Vec<_> =
        keys("timm-vit-base").into_iter().map(|(key, shape)| (format!("backbone.{key}"), shape)).collect();
    keys.retain(|(key, _)| !key.starts_with("backbone.head."));
    keys.push(("dino_head.mlp.0.weight".to_owned(), vec![2, 2]));
    keys.push(("ibot_head.last_layer.weight".to_owned(), vec![2, 2]));
    let backbone = build(BackboneKind::VitBase16, 3);
    let file = parse(&keys);
    let whole = Fit::new(&file, &backbone, Layout::Dinov2, Gray::Auto).unwrap();
    whole.require().unwrap();
    for head in ["dino_head.mlp.0.weight", "ibot_head.last_layer.weight"] {
        assert!(whole.left_out().iter().any(|key| key == head), "{:?}", whole.left_out());
    }
    keys.push(("blocks.12.attn.qkv.weight".to_owned(), vec![2, 2]));
    keys.push(("cls_token".to_owned(), vec![1, 1, 768]));
    let file = parse(&keys);
    let more = Fit::new(&file, &backbone, Layout::Dinov2, Gray::Auto).unwrap();
    assert_eq!(more.unexpected(), ["blocks.12.attn.qkv.weight", "cls_token"]);
    more.require().unwrap_err();
}

#[test]
fn a_file_of_ours_for_another_backbone_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let source = parse(&keys("medicalnet-resnet10"));
    let (_, native) = native(&source, &build(BackboneKind::MedicalNet10, 1), folder.path(), Gray::Auto);
    for layout in [Layout::Auto, Layout::Native] {
        let other = build(BackboneKind::MedicalNet18, 1);
        let error = Fit::new(&native, &other, layout, Gray::Auto).unwrap_err().to_string();
        let expected = "it holds the weights of medicalnet-resnet10, expected medicalnet-resnet18";
        assert!(error.ends_with(expected), "{error}");
    }
}

#[test]
fn keys_in_errors_cannot_steer_a_terminal() {
    let mut steering = keys("torchvision-resnet18");
    steering.push(("\u{1b}[2Jlayer9".to_owned(), vec![2]));
    let error = fit(&parse(&steering), &build(BackboneKind::ResNet18, 3)).require().unwrap_err().to_string();
    assert!(error.contains("first: \\u{1b}[2Jlayer9") && !error.contains('\u{1b}'), "{error}");
    let unknown = parse(&[("\u{1b}[2J".to_owned(), vec![2_usize])]);
    let backbone = build(BackboneKind::ResNet18, 3);
    let error = Fit::new(&unknown, &backbone, Layout::Auto, Gray::Auto).unwrap_err().to_string();
    assert!(error.contains("as \\u{1b}[2J") && !error.contains('\u{1b}'), "{error}");
}

#[test]
fn nothing_is_written_from_a_file_that_does_not_fit() {
    let source = parse(&keys("torchvision-resnet18-3d"));
    let backbone = build(BackboneKind::ResNet18Volume, 2);
    let mut out = Vec::new();
    let error = fit(&source, &backbone).write(&backbone, &mut out).unwrap_err();
    assert!(matches!(error, ModelError::WeightsDoNotFit { .. }), "{error}");
    assert!(out.is_empty());
}

#[test]
fn a_hash_in_the_name_is_compared() {
    let hash = sha256(b"abc");
    assert_eq!(NamedHash::of(Path::new("a-ba7816bf.pth"), &hash), NamedHash::Agrees("ba7816bf".to_owned()));
    assert_eq!(NamedHash::of(Path::new("a-b3b3357e.pth"), &hash), NamedHash::Differs("b3b3357e".to_owned()));
    assert_eq!(NamedHash::of(Path::new("a.pth"), &hash), NamedHash::None);
}
