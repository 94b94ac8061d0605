//! Training and prediction on another device than `flex`: the same curves, up to rounding.
//!
//! The device is `wgpu` if the binary was built for it and there is an adapter, for example Mesa's software Vulkan:
//!
//! ```sh
//! cargo build -p fairtte-cli --features wgpu
//! cargo test -p fairtte-tests --features wgpu --test program devices
//! ```
//!
//! `FAIRTTE_TEST_DEVICE` names another one (`tch`, `cuda:0`, ..). Without a device the tests are skipped and say why. Every training is a few steps long, with networks so small that the
//! difference of two devices is rounding, and not what many steps make of it.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;
use std::sync::OnceLock;

use fairtte_data::predictions::Rising;
use fairtte_data::read_predictions;
use fairtte_tests::{SmallRun, patients, run, succeed};

/// Largest allowed difference of a probability of survival between two devices.
const BETWEEN_DEVICES: f64 = 2e-3;

/// The device to be tested; `None` and a line on standard error without one.
fn other_device() -> Option<String> {
    static PROBED: OnceLock<Result<(), String>> = OnceLock::new();
    if let Ok(named) = std::env::var("FAIRTTE_TEST_DEVICE") {
        return Some(named);
    }
    let probe = || {
        let line = "bench --device wgpu --backbone mlp --batch 4 --seconds 0.01 --no-layers --json";
        let outcome = run(line.split_whitespace());
        if outcome.code == 0 { Ok(()) } else { Err(outcome.stderr.trim().to_owned()) }
    };
    match PROBED.get_or_init(probe) {
        Ok(()) => Some("wgpu".to_owned()),
        Err(why) => {
            eprintln!(
                "skipped: FAIRTTE_TEST_DEVICE names no device to compare with flex, and wgpu does not work: {why}"
            );
            None
        }
    }
}

/// Survival of all samples in the validation and the test part at all times.
fn curves(run: &SmallRun) -> Vec<f64> {
    let path = run.output().join("predictions.parquet");
    read_predictions(&path, Rising::Refuse).unwrap().survival.iter().copied().collect()
}

fn apart(one: &[f64], other: &[f64]) -> f64 {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Names that `fairtte list WHAT` gives.
fn listed(what: &str) -> Vec<String> {
    let outcome = succeed(["list", what, "--json"]);
    let lists: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    lists[what].as_object().unwrap().keys().cloned().collect()
}

/// Two steps of training on films of a simulated cohort.
fn films(folder: &Path) -> SmallRun {
    SmallRun::new(folder).set("training.epochs=1").set("training.batch-size=42").set("model.dropout=0.0")
}

/// Trains by `make` on both devices and says where the curves differ by more than rounding.
fn compare(what: &str, device: &str, make: impl Fn(&Path) -> SmallRun) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let of = |device: &str| {
        let settings = make(&folder.path().join(device.replace(':', "-")))
            .set("evaluation.replicates=0")
            .set(&format!("device={device}"));
        let outcome = run(settings.arguments("train"));
        (outcome.code == 0).then(|| curves(&settings)).ok_or(outcome.stderr)
    };
    match (of("flex"), of(device)) {
        (Ok(expected), Ok(found)) => {
            let apart = apart(&expected, &found);
            eprintln!("{what}: {apart:.1e}");
            (apart.is_nan() || apart > BETWEEN_DEVICES).then(|| format!("{what}: {apart:.1e} apart"))
        }
        (Err(_), Err(_)) => {
            eprintln!("{what}: refused on both");
            None
        }
        (_, Err(problem)) => Some(format!("{what} fails on {device} alone: {problem}")),
        (Err(problem), _) => Some(format!("{what} fails on flex alone: {problem}")),
    }
}

fn assert_none(problems: impl IntoIterator<Item = Option<String>>) {
    let problems: Vec<String> = problems.into_iter().flatten().collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_head_predicts_the_same_on_another_device() {
    let Some(device) = other_device() else { return };
    let heads = listed("heads");
    assert!(heads.len() >= 6);
    let of = |head: &String| compare(head, &device, |folder| films(folder).set(&format!("head.{head}={{}}")));
    assert_none(heads.iter().map(of));
}

#[test]
fn every_strategy_predicts_the_same_on_another_device() {
    let Some(device) = other_device() else { return };
    let strategies = listed("strategies");
    assert!(strategies.len() >= 16);
    let of = |name: &String| compare(name, &device, |folder| films(folder).set(&format!("strategy.{name}={{}}")));
    assert_none(strategies.iter().map(of));
}

#[test]
fn networks_for_pictures_volumes_and_columns_predict_the_same_on_another_device() {
    let Some(device) = other_device() else { return };
    let volumes = "[data.simulated]\nkind = \"volumes\"\nn-subjects = 60\nsize = [12, 16, 14]\n";
    let of_volumes = |folder: &Path| {
        let sized = SmallRun::with_data(folder, volumes).set("image.size=[12,16,14]").set("training.epochs=1");
        sized.set("training.batch-size=20").set("model.dropout=0.0")
    };
    let pictures = ["small-2d", "efficientnet-b0", "resnet18"];
    let found =
        pictures.map(|name| compare(name, &device, |folder| films(folder).set(&format!("model.backbone={name}"))));
    let volumes = ["small-3d", "medicalnet-resnet10", "resnet18-3d"]
        .map(|name| compare(name, &device, |folder| of_volumes(folder).set(&format!("model.backbone={name}"))));
    let columns = compare("mlp", &device, |folder| {
        patients(folder, 120, |_, _| ()).set("training.epochs=2").set("model.dropout=0.0")
    });
    assert_none(found.into_iter().chain(volumes).chain([columns]));
}

#[test]
fn a_training_resumed_on_another_device_is_the_one_that_was_not_interrupted() {
    let Some(device) = other_device() else { return };
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str| SmallRun::new(&folder.path().join(name)).set(&format!("device={device}"));
    let whole = of("whole").set("training.epochs=3");
    succeed(whole.arguments("train"));
    let halves = of("halves").set("training.epochs=1");
    succeed(halves.arguments("train"));
    let output = halves.output().display().to_string();
    succeed(["train", "--resume-from", &output, "--set", "training.epochs=3"]);
    let apart = apart(&curves(&whole), &curves(&halves));
    eprintln!("resumed: {apart:.1e}");
    assert!(apart < 1e-6, "{apart:e}");
}
