//! Training and prediction on another device than `flex`: the same curves, up to rounding.
//!
//! The device is `wgpu` if the binary was built for it and there is an adapter, for example Mesa's software Vulkan:
//!
//! ```sh
//! cargo build -p fairtte-cli --features wgpu
//! cargo test -p fairtte-tests --features wgpu --test program devices
//! ```
//!
//! `FAIRTTE_TEST_DEVICE` names another one (`tch`, `cuda:0`, ..; `flex` shows that nothing but the device makes a difference).
//! Without a device the tests are skipped and say why. Every training is a few steps long, with networks so small that the
//! difference of two devices is rounding, and not what many steps make of it.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;
use std::sync::OnceLock;

use fairtte_data::predictions::Rising;
use fairtte_data::read_predictions;
use fairtte_tests::{SmallRun, fail, patients, run, succeed};

const CONFIG: i32 = 3;

/// Largest allowed difference of a probability of survival between two devices. `AdamW` divides gradients by their size, so in its
/// first steps an entry near 0 moves by the learning rate, 1e-3, in a direction that rounding may decide. On `flex` with and without
/// kernels (`FAIRTTE_KERNELS=off`: other sums) these trainings differ by 2e-8 (`small-2d`) to 1.3e-4 (`resnet18`); a GPU also
/// approximates exponentials, for which ten times as much and a margin are allowed.
const BETWEEN_DEVICES: f64 = 2e-3;

/// Heads of other tasks than survival, which a run without this task refuses. Nothing else is refused.
const REFUSED: [&str; 2] = ["binary", "segmentation"];

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

/// Trains by `make` on both devices and says where the curves differ by more than rounding; `is_refused` says whether both are to
/// refuse the training before it begins.
fn compare(what: &str, device: &str, is_refused: bool, make: impl Fn(&Path) -> SmallRun) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str, device: &str| {
        let settings = make(&folder.path().join(name));
        let settings = settings.set("evaluation.replicates=0").set(&format!("device={device}"));
        let outcome = run(settings.arguments("train"));
        match outcome.code {
            0 => Ok(curves(&settings)),
            CONFIG if is_refused => Err(String::new()),
            code => Err(format!("exit code {code}: {}", outcome.stderr)),
        }
    };
    match (of("flex", "flex"), of("other", device)) {
        (Ok(_), _) | (_, Ok(_)) if is_refused => Some(format!("{what} was to be refused and is trained")),
        (Ok(expected), Ok(found)) => {
            let apart = apart(&expected, &found);
            eprintln!("{what}: {apart:.1e}");
            (apart.is_nan() || apart > BETWEEN_DEVICES).then(|| format!("{what}: {apart:.1e} apart"))
        }
        (Err(one), Err(other)) if one.is_empty() && other.is_empty() => {
            eprintln!("{what}: refused on both");
            None
        }
        (flex, other) => Some(format!("{what}: flex {:?}, {device} {:?}", flex.err(), other.err())),
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
    let of = |head: &String| {
        let is_refused = REFUSED.contains(&head.as_str());
        compare(head, &device, is_refused, |folder| films(folder).set(&format!("head.{head}={{}}")))
    };
    assert_none(heads.iter().map(of));
}

#[test]
fn every_strategy_predicts_the_same_on_another_device() {
    let Some(device) = other_device() else { return };
    let strategies = listed("strategies");
    assert!(strategies.len() >= 16);
    let of =
        |name: &String| compare(name, &device, false, |folder| films(folder).set(&format!("strategy.{name}={{}}")));
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
    let pictures = ["small-2d", "efficientnet-b0", "resnet18", "vit-base/16"];
    let found = pictures.map(|name| {
        let make = |folder: &Path| {
            let run = films(folder).set(&format!("model.backbone={name}"));
            // Of a transformer whole branches are dropped in training.
            if name.starts_with("vit") { run.set("model.vit.drop-path=0.0") } else { run }
        };
        compare(name, &device, false, make)
    });
    let volumes = ["small-3d", "medicalnet-resnet10", "resnet18-3d"]
        .map(|name| compare(name, &device, false, |folder| of_volumes(folder).set(&format!("model.backbone={name}"))));
    let columns = compare("mlp", &device, false, |folder| {
        patients(folder, 120, |_, _| ()).set("training.epochs=2").set("model.dropout=0.0")
    });
    assert_none(found.into_iter().chain(volumes).chain([columns]));
}

#[test]
fn a_model_trained_on_another_device_predicts_the_same_on_flex() {
    let Some(device) = other_device() else { return };
    let folder = tempfile::tempdir().unwrap();
    let trained = films(&folder.path().join("trained")).set(&format!("device={device}"));
    succeed(trained.arguments("train"));
    let on = |name: &str, device: &str| {
        let output = folder.path().join(name);
        let (own, to) = (trained.output().display().to_string(), output.display().to_string());
        let config = trained.output().join("run.toml").display().to_string();
        let more = ["--allow-training-images", "--device", device];
        succeed(["predict", &own, "--data", &config, "--output", &to].into_iter().chain(more));
        let path = output.join("predictions.parquet");
        read_predictions(&path, Rising::Refuse).unwrap().survival.iter().copied().collect::<Vec<_>>()
    };
    let apart = apart(&on("flex", "flex"), &on("other", &device));
    eprintln!("predicted: {apart:.1e}");
    // The same weights, and no step between them.
    assert!(apart < 1e-4, "{apart:e}");
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

#[test]
fn a_device_of_another_machine_is_planned_for_and_prepared_for_and_trains_there_only() {
    let absent = match (cfg!(feature = "tch"), cfg!(feature = "cuda")) {
        (true, _) => "tch-cuda:99",
        (_, true) => "cuda:99",
        _ => {
            eprintln!("skipped: this build has no device with a number");
            return;
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let small = films(folder.path()).set(&format!("device={absent}"));
    succeed(small.arguments("prepare"));
    fail(small.arguments("train"), CONFIG, &format!("device \"{absent}\" cannot be used: "));
}
