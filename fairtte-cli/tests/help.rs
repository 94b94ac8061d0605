//! The output before any run: help, lists, exit codes.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;
use std::process::Command;

/// A run file of masks, for what is about masks alone.
const MASKS: &str = "output = 'run'\n[data.generic]\ntable = 'manifest.csv'\nmask = 'mask'\n[[attribute]]\nname = 'sex'\n\
    [image]\nsize = [32, 32]\n[task]\nkind = 'segmentation'\nsegmentation = { classes = { disc = [1] } }\n";

fn stdout(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fairtte")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_names_every_command_and_every_exit_code() {
    let help = stdout(&["--help"]);
    for word in [
        "demo",
        "simulate",
        "prepare",
        "cohort",
        "inspect",
        "train",
        "evaluate",
        "bias",
        "card",
        "test",
        "list",
        "schema",
        "Exit codes: 0 done",
        "130 interrupted",
    ] {
        assert!(help.contains(word), "{word} is missing in\n{help}");
    }
}

#[test]
fn every_command_has_help() {
    for command in [
        "demo", "simulate", "prepare", "cohort", "inspect", "train", "evaluate", "bias", "card", "test", "list",
        "schema",
    ] {
        assert!(stdout(&[command, "--help"]).contains("Usage: fairtte"), "{command}");
    }
}

#[test]
fn the_lists_are_those_of_the_registries() {
    let heads = "heads ([head.NAME])\n  \
        pmf            probability mass over the intervals (Kvamme & Borgan 2021)\n  \
        deephit        probability mass with a ranking term (Lee et al. 2018)\n  \
        nnet-survival  hazard in each interval, also known as logistic hazard (Gensheimer & Narasimhan 2019)\n  \
        cox            log risk with a baseline fitted on the training part, also known as DeepSurv (Katzman et al. 2018)\n  \
        cox-time       log risk that depends on the time, with a baseline (Kvamme, Borgan & Scheel 2019)\n  \
        pc-hazard      constant hazard within each interval (Kvamme & Borgan 2021)\n  \
        binary         probability of a class, cross-entropy or focal loss (Lin et al. 2017); [task] kind = \"binary\"\n  \
        segmentation   class of every pixel, cross-entropy and Dice (Tian et al. 2024); [task] kind = \"segmentation\"\n";
    assert_eq!(stdout(&["list", "heads"]), heads);
    let all = stdout(&["list"]);
    for name in ["generic", "simulated", "efficientnet-b0", "resnet18-3d", "group-dro", "worst-group-c-td", "flex"] {
        assert!(all.contains(name), "{name} is missing in\n{all}");
    }
}

#[test]
fn every_listed_name_is_one_that_a_run_file_can_say() {
    let json = stdout(&["list", "--json"]);
    let lists: serde_json::Value = serde_json::from_str(&json).unwrap();
    let names = |kind: &str| lists[kind].as_object().unwrap().keys().cloned().collect::<Vec<String>>();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/demo.toml");
    let accepted = |set: &str| {
        stdout(&["train", "--dry-run", "--config", config, "--set", set]);
    };
    let masks = Path::new(env!("CARGO_TARGET_TMPDIR")).join("masks.toml");
    std::fs::write(&masks, MASKS).unwrap();
    let of_masks = |monitor: &str| {
        let monitor = format!("training.monitor={monitor}");
        stdout(&[
            "train",
            "--dry-run",
            "--config",
            masks.to_str().unwrap(),
            "--set",
            "head.segmentation={}",
            "--set",
            &monitor,
        ]);
    };
    // What is about a class needs the task, and the task a metric of a class.
    let of_class = |monitor: &str| {
        let task = "task={ kind = 'binary', binary = { horizon = 3 } }";
        let monitor = format!("training.monitor={monitor}");
        let sets = ["--set", task, "--set", "head.binary={}", "--set", &monitor];
        stdout(&[&["train", "--dry-run", "--config", config][..], &sets].concat());
    };
    for name in names("heads") {
        if name != "binary" && name != "segmentation" {
            accepted(&format!("head.{name}={{}}"));
        }
    }
    for name in names("strategies") {
        accepted(&format!("strategy.{name}={{}}"));
    }
    for name in names("monitors") {
        match name.as_str() {
            "bce" | "auc" | "balanced-accuracy" | "worst-group-auc" => of_class(&name),
            "dice-ce" | "dice" | "worst-group-dice" => of_masks(&name),
            _ => accepted(&format!("training.monitor={name}")),
        }
    }
    for name in names("backbones") {
        if name == "mlp" {
            // It reads the columns of a table, not pictures.
            let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/support.toml");
            stdout(&["train", "--dry-run", "--config", config, "--set", "model.backbone=mlp"]);
            continue;
        }
        let config = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/demo.toml");
        let is_for_volumes = name.ends_with("3d") || name.starts_with("medicalnet");
        let size = if is_for_volumes { "image.size=[16, 16, 16]" } else { "image.size=[16, 16]" };
        let backbone = format!("model.backbone={name}");
        stdout(&["train", "--dry-run", "--config", config, "--set", size, "--set", &backbone]);
    }
}
