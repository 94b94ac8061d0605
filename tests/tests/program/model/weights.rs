//! Weights of other programs, through the program: the output of `inspect` and `import`, and runs that start from a
//! file.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::{Path, PathBuf};

use fairtte_tests::{Outcome, SmallRun, fail, run, succeed};
use serde_json::{Map, Value, json};

const CONFIG: i32 = 3;
const DATA: i32 = 4;

/// A file that torch wrote.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fairtte-models/tests/weights").join(name)
}

/// A safetensors file of type `f32`; value `i` of a tensor is `base(key) + sin(0.7 i) / 5`.
fn safetensors(tensors: &[(String, Vec<usize>)], metadata: &[(&str, &str)]) -> Vec<u8> {
    let metadata: Map<String, Value> = metadata.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let mut header = Map::from_iter([("__metadata__".to_owned(), Value::Object(metadata))]);
    let mut data = Vec::new();
    for (key, shape) in tensors {
        let (start, n) = (data.len(), shape.iter().product::<usize>());
        let base = if shape.len() > 1 { 0.0 } else { 1.0 };
        data.extend((0..n).flat_map(|i| (base + 0.2 * (i as f32 * 0.7).sin()).to_le_bytes()));
        header.insert(key.clone(), json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] }));
    }
    let header = Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}

/// Weights of `small-2d` as `fairtte weights import` writes them.
fn small() -> Vec<u8> {
    let widths = [1, 16, 32, 64, 64];
    let mut tensors = Vec::new();
    for layer in 0..4 {
        tensors.push((format!("layers.{layer}.conv.weight"), vec![widths[layer + 1], widths[layer], 3, 3]));
        for part in ["gamma", "beta", "running_mean", "running_var"] {
            tensors.push((format!("layers.{layer}.norm.{part}"), vec![widths[layer + 1]]));
        }
    }
    safetensors(&tensors, &[("fairtte.backbone", "small-2d")])
}

/// Keys and shapes of torchvision's `resnet18`.
fn resnet18() -> Vec<(String, Vec<usize>)> {
    let text = std::fs::read_to_string(fixture("keys/torchvision-resnet18.txt")).unwrap();
    let entry = |line: &str| {
        let (key, shape) = line.split_once(' ').unwrap();
        (key.to_owned(), shape.split('x').filter_map(|size| size.parse().ok()).collect())
    };
    text.lines().filter(|line| !line.starts_with('#') && !line.contains("num_batches")).map(entry).collect()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The output of a call, without the folder of the file.
fn said(outcome: &Outcome, path: &Path) -> String {
    outcome.stdout.replace(&text(path), "[file]").trim_end().to_owned()
}

#[test]
fn inspect_shows_a_checkpoint_and_builds_nothing() {
    let path = fixture("training.legacy.pth");
    let outcome = succeed(["weights", "inspect", &text(&path)]);
    let shown: Vec<String> = said(&outcome, &path).lines().take(23).map(str::to_owned).collect();
    assert_eq!(shown.join("\n"), include_str!("shown/inspected_checkpoint.txt").trim_end());
    let outcome = succeed(["weights", "inspect", "--json", &text(&path)]);
    let json: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(
        json["tensors"][0],
        json!({ "group": ["model"], "key": "0.weight", "type": "f32", "shape": [2, 1, 3, 3] })
    );
    assert_eq!(json["not_built"][1], "argparse.Namespace");
}

#[test]
fn a_damaged_file_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.pth");
    let whole = std::fs::read(fixture("types.zip.pth")).unwrap();
    std::fs::write(&path, &whole[..3000]).unwrap();
    let sentence =
        "cut.pth, byte 3000: expected the end of a zip archive (its table of contents), found the end of the file";
    fail(["weights", "inspect", &text(&path)], DATA, sentence);
    fail(["weights", "inspect", "/no/such/file"], DATA, "cannot read /no/such/file: No such file or directory");
}

#[test]
fn import_prints_a_table_and_refuses_what_does_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("resnet18-0000000a.safetensors");
    let mut tensors = resnet18();
    tensors.retain(|(key, _)| key != "bn1.bias");
    tensors[1].1 = vec![65];
    tensors.push(("layer5.weight".to_owned(), vec![2]));
    std::fs::write(&path, safetensors(&tensors, &[])).unwrap();
    let output = folder.path().join("w.safetensors");
    let arguments = ["weights", "import", &text(&path), "--arch", "resnet18", "-o", &text(&output)];
    let sentence = "does not hold the weights of resnet18: in the layout torchvision, missing keys: 1 (first: bn1.bias); \
        unexpected keys: 1 (first: layer5.weight); tensors of another shape: 1 (first: bn1.weight with f32 [65] instead \
        of [64])";
    fail(arguments, DATA, sentence);
    assert!(!output.exists());
    let shown = said(&run(arguments), &path);
    let shown: Vec<&str> = shown.lines().filter(|line| !line.starts_with("source.sha256")).collect();
    assert_eq!(shown.join("\n"), include_str!("shown/import_that_does_not_fit.txt").trim_end());
}

#[test]
fn import_writes_weights_for_gray_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    std::fs::write(&path, safetensors(&resnet18(), &[])).unwrap();
    let output = folder.path().join("gray.safetensors");
    let outcome =
        succeed(["weights", "import", &text(&path), "--arch", "resnet18", "--gray", "sum", "-o", &text(&output)]);
    let note = "first convolution: 3 input channels in the file, 1 here; summed over the channels";
    assert!(outcome.stdout.contains(note), "{}", outcome.stdout);
    let json = succeed(["weights", "inspect", "--json", &text(&output)]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["tensors"][0]["shape"], json!([64, 1, 7, 7]));
    assert!(json["metadata"]["notes"].as_str().unwrap().starts_with(note), "{}", json["metadata"]["notes"]);
    let many = ["weights", "import", &text(&path), "--arch", "resnet18", "--channels", "100000000000"];
    fail(many, CONFIG, "--channels: 100000000000, expected a whole number from 1 to 1024");
    let wrong = ["weights", "import", &text(&path), "--arch", "resnet18", "--layout", "timn"];
    fail(wrong, 2, "expected one of auto, torchvision, timm, medicalnet, mae, dinov2, native");
}

#[test]
fn a_run_begins_with_a_file_records_its_hash_and_goes_on_with_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("small.safetensors"), folder.path().join("copy.safetensors"));
    std::fs::write(&path, small()).unwrap();
    std::fs::write(&copy, small()).unwrap();
    let begun = |file: &Path| {
        let run = SmallRun::new(&folder.path().join("run")).set("pretrained.freeze=all-but-head");
        run.set(&format!("pretrained.path='{}'", file.display())).set("pretrained.head-learning-rate=0.01")
    };
    let outcome = succeed(begun(&path).arguments("train"));
    assert!(outcome.stderr.contains("starting from 20 tensors"), "{}", outcome.stderr);
    let record = std::fs::read_to_string(begun(&path).output().join("run.toml")).unwrap();
    for line in ["freeze = \"all-but-head\"", "head-learning-rate = 0.01", "sha256 = \"", "layout = \"auto\""] {
        assert!(record.contains(line), "{line} is missing in\n{record}");
    }
    // The same weights may be at another path; other weights are refused.
    std::fs::remove_file(begun(&path).output().join("done")).unwrap();
    succeed(begun(&copy).arguments("train"));
    let mut other = small();
    *other.last_mut().unwrap() ^= 1;
    std::fs::write(&copy, other).unwrap();
    // A finished run shows its evaluation and reads no weights.
    let outcome = succeed(begun(&copy).arguments("train"));
    assert!(outcome.stderr.contains("this run is done") && !outcome.stderr.contains("starting from"));
    std::fs::remove_file(begun(&path).output().join("done")).unwrap();
    fail(begun(&copy).arguments("train"), CONFIG, "holds a run with other settings: pretrained.sha256 is \"");
}

#[test]
fn weights_that_cannot_be_used_are_refused_before_anything_is_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.safetensors");
    std::fs::write(&path, small()).unwrap();
    let begun = |sets: &[&str]| {
        let run = SmallRun::new(&folder.path().join("run")).set(&format!("pretrained.path='{}'", path.display()));
        sets.iter().fold(run, |run, set| run.set(set)).arguments("train")
    };
    let other = begun(&["model.backbone='resnet18'"]);
    fail(other, DATA, "does not hold the weights of resnet18: it holds the weights of small-2d, expected resnet18");
    let wrong = format!("pretrained.sha256='{}'", "0".repeat(64));
    fail(begun(&[&wrong]), CONFIG, "pretrained.sha256: ");
    fail(begun(&["pretrained.head-learning-rate=0"]), CONFIG, "pretrained.head-learning-rate is 0");
    fail(begun(&["pretrained.freeze='everything'"]), CONFIG, "pretrained.freeze");
    fail(begun(&["pretrained.path='/no/such/file'"]), DATA, "cannot read /no/such/file");
    fail(begun(&["model.mlp.dropout=0.1"]), CONFIG, "model.mlp");
    let table = "[data.tabular]\ntable = 'patients.csv'\nfeatures = 'all'";
    let run = SmallRun::with_data(&folder.path().join("table"), table).set("model.backbone='mlp'");
    let run = run.set(&format!("pretrained.path='{}'", path.display()));
    fail(
        run.arguments("train"),
        CONFIG,
        "pretrained: no layout of pre-trained weights is known for columns of a table",
    );
    assert!(!folder.path().join("cache").exists() && !folder.path().join("run/cache").exists());
}
