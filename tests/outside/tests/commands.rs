//! The strategy, head and metric of this program work like those of FairTTE, from the run file to the report.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const RUN_FILE: &str = r#"
[data.simulated]
n-subjects = 120
size = [32, 32]
[[attribute]]
name = "sex"
[image]
size = [32, 32]
[model]
backbone = "small-2d"
[training]
epochs = 1
[evaluation]
replicates = 20
[strategy.worst-group]
weight = 2.0
"#;

/// Two trials of `erm`, places 0 and 2 of the manifest, and two of `lost-device`.
const STUDY_FILE: &str = r#"
name = "a device that fails"
output = "study"
trials = 2
[[data]]
run-file = "run.toml"
attributes = ["sex"]
[heads]
names = ["pmf"]
base-head = "pmf"
[strategies]
names = ["lost-device"]
[search]
"optimiser.learning-rate" = { log-uniform = [1e-3, 1e-2] }
[execute]
jobs = 1
"#;

/// Exit code, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    run_with(folder, arguments, &[])
}

/// As [`run`], with variables of the environment.
fn run_with(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairtte-outside"));
    let output = command.args(arguments).envs(variables.iter().copied()).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_strategy_from_outside_is_listed_trained_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (_, list, _) = run(folder.path(), &["list", "strategies"]);
    assert!(list.contains("worst-group           the loss of the worst group is added to the mean loss"), "{list}");
    assert!(list.contains("group-dro"), "{list}");
    let (_, schema, _) = run(folder.path(), &["schema"]);
    assert!(schema.contains("\"worst-group\": {") && schema.contains("\"group-dro\": {"));

    std::fs::write(folder.path().join("run.toml"), RUN_FILE).unwrap();
    let (code, _, errors) = run(folder.path(), &["train", "--config", "run.toml", "--set", "output=out"]);
    assert_eq!(code, 0, "{errors}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    assert!(read("run.toml").contains("[strategy.worst-group]\nweight = 2.0"), "{}", read("run.toml"));
    assert!(read("report.html").contains("worst-group (weight = 2.0)"));

    // The same run is done; other settings of the strategy are another run.
    let (code, _, errors) = run(folder.path(), &["train", "--config", "run.toml", "--set", "output=out"]);
    assert!(code == 0 && errors.contains("this run is done"), "{errors}");
    let other = ["train", "--config", "run.toml", "--set", "output=out", "--set", "strategy.worst-group.weight=1"];
    let (code, _, errors) = run(folder.path(), &other);
    assert!(code == 3 && errors.contains("strategy.worst-group.weight is 2.0 there and 1"), "{code}: {errors}");
}

#[test]
fn its_settings_are_checked_like_all_others() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.toml"), RUN_FILE).unwrap();
    for (set, message) in [
        ("strategy.worst-group.weight=-1", "strategy.worst-group.weight is -1, expected a finite number >= 0"),
        ("strategy.worst-group.wait=1", "unknown field \"wait\", expected \"weight\""),
        ("strategy=worst-grup", "did you mean \"worst-group\"?"),
    ] {
        let (code, _, errors) = run(folder.path(), &["train", "--config", "run.toml", "--set", set, "--dry-run"]);
        assert!(code == 3 && errors.contains(message), "{set}, {code}: {errors}");
    }
}

#[test]
fn a_head_from_outside_is_listed_trained_resumed_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (_, list, _) = run(folder.path(), &["list", "heads"]);
    let entries: Vec<&str> = list.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    let own = ["pmf", "deephit", "nnet-survival", "cox", "cox-time", "pc-hazard", "binary", "segmentation"];
    assert_eq!(entries, [&own[..], &["cloglog"]].concat());
    let (_, schema, _) = run(folder.path(), &["schema"]);
    assert!(schema.contains("\"cloglog\": {") && schema.contains("\"cox-time\": {"));

    // With this learning rate the last epoch has the best predictions, so they are those of the run.
    let tables = "[optimiser]\nlearning-rate = 3e-3\n[time]\npoints-per-interval = 2\n[head.cloglog]\n";
    let text = RUN_FILE.replace("[strategy.worst-group]\nweight = 2.0\n", tables);
    std::fs::write(folder.path().join("run.toml"), text).unwrap();
    let train = |output: &str, epochs: usize| {
        let (output, epochs) = (format!("output={output}"), format!("training.epochs={epochs}"));
        let arguments = ["train", "--config", "run.toml", "--set", &output, "--set", &epochs];
        let (code, _, errors) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{errors}");
    };
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let text = |name: &str| String::from_utf8(read(name)).unwrap();
    train("whole", 2);
    assert!(text("whole/run.toml").contains("\n[head.cloglog]\n"), "{}", text("whole/run.toml"));
    assert!(text("whole/report.html").contains("cloglog"));
    assert_eq!(text("whole/steps.jsonl").lines().count(), 2);

    // One epoch, then the other in the same folder: as if it had not stopped.
    train("halves", 1);
    let same = |name: &str| read(&format!("halves/{name}")) == read(&format!("whole/{name}"));
    assert!(!same("predictions.parquet"));
    let (code, _, errors) = run(folder.path(), &["train", "--resume-from", "halves", "--set", "training.epochs=2"]);
    assert_eq!(code, 0, "{errors}");
    assert_eq!(text("halves/steps.jsonl").lines().count(), 2);
    assert!(same("predictions.parquet"));

    // Another head is another run.
    let other = ["train", "--config", "run.toml", "--set", "output=whole", "--set", "head=pmf"];
    let (code, _, errors) = run(folder.path(), &other);
    assert!(code == 3 && errors.contains("holds a run with other settings"), "{code}: {errors}");
}

#[test]
fn the_name_and_settings_of_the_head_are_checked_like_all_others() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.toml"), RUN_FILE).unwrap();
    for (set, message) in [
        ("head.cloglog.link=1", "unknown field \"link\", there are no fields"),
        ("head=clog-log", "did you mean \"cloglog\"?"),
    ] {
        let (code, _, errors) = run(folder.path(), &["train", "--config", "run.toml", "--set", set, "--dry-run"]);
        assert!(code == 3 && errors.contains(message), "{set}, {code}: {errors}");
    }
}

#[test]
fn a_metric_from_outside_is_listed_and_scored_by_group() {
    let folder = tempfile::tempdir().unwrap();
    let (_, list, _) = run(folder.path(), &["list", "metrics"]);
    assert!(list.contains("mae-uncensored") && list.contains("brier"), "{list}");
    // The predicted median is 2 for everybody, and the events of F are at 1 and those of M at 5.
    let mut table = "sample,time,event,sex,0,2,4\n".to_owned();
    for k in 0..80 {
        let (sex, time) = if k % 2 == 0 { ("F", 1) } else { ("M", 5) };
        let (time, event) = if k % 4 < 2 { (time, 1) } else { (3, 0) };
        writeln!(table, "s{k},{time},{event},{sex},1,0.5,0.{}", 1 + k % 4).unwrap();
    }
    std::fs::write(folder.path().join("table.csv"), table).unwrap();
    let call = ["evaluate", "--predictions", "table.csv", "--attributes", "sex", "--output", "scores"];
    let more = ["--metrics", "mae-uncensored,c-td", "--set", "replicates=20"];
    let (code, shown, errors) = run(folder.path(), &[&call[..], &more[..]].concat());
    assert!(code == 0 && shown.contains("MAE (uncensored): lower is better"), "{code}: {errors}");
    let json = std::fs::read_to_string(folder.path().join("scores/evaluation.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let metric = &json["metrics"][0];
    assert_eq!(metric["name"], "mae-uncensored");
    assert_eq!(metric["attributes"][0]["groups"][0]["estimate"]["value"], 1.0);
    assert_eq!(metric["attributes"][0]["worst"]["value"], 3.0);
    let (code, _, errors) = run(folder.path(), &[&call[..], &["--metrics", "mae"]].concat());
    assert!(code != 0 && errors.contains("metric \"mae\" does not exist, expected one of: c-td"), "{errors}");
}

#[test]
fn a_device_that_fails_in_a_step_leaves_a_state_from_which_the_same_bytes_follow() {
    let folder = tempfile::tempdir().unwrap();
    let text = RUN_FILE.replace("[strategy.worst-group]\nweight = 2.0\n", "[strategy.lost-device]\n");
    // Two epochs of six batches; the state is saved after every step.
    let training = "[training]\nbatch-size = 12\ncheckpoint-minutes = 0.00001\nepochs = 2\n";
    std::fs::write(folder.path().join("run.toml"), text.replace("[training]\nepochs = 1\n", training)).unwrap();
    let train = |output: &str, step: &str, message: &str| {
        let output = format!("output={output}");
        let arguments = ["train", "--config", "run.toml", "--set", &output, "--set", "cache=cache"];
        run_with(folder.path(), &arguments, &[("FAILS_IN_STEP", step), ("FAILS_WITH", message)])
    };
    let predictions = |output: &str| std::fs::read(folder.path().join(output).join("predictions.parquet")).unwrap();
    let (code, _, errors) = train("whole", "never", "");
    assert_eq!(code, 0, "{errors}");

    // In its second step of the second epoch, in words of CubeCL for a GPU without memory: the cause is in the third line.
    let no_memory = "An IO error happened\nCaused by:\n  out of device memory allocating 1073741824 bytes\n";
    let (code, _, errors) = train("failed", "8", no_memory);
    assert_eq!(code, 5, "{errors}");
    let shown = errors.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "device \"flex\" failed: out of device memory allocating 1073741824 bytes",
        "a smaller training.batch-size with training.accumulate",
        "A training resumes from its last checkpoint by the same command",
    ] {
        assert!(shown.contains(part), "{part}\n{errors}");
    }
    assert!(!folder.path().join("failed/predictions.parquet").exists());
    // The device is lost once more, in the next step but one of the same command.
    let (code, _, errors) = train("failed", "2", "Parent device is lost");
    assert!(code == 5 && errors.contains("device is lost") && !errors.contains("batch-size"), "{code}: {errors}");
    assert!(errors.contains("resuming after batch 1 of the unfinished epoch"), "{errors}");
    let (code, _, errors) = train("failed", "never", "");
    assert!(code == 0 && errors.contains("resuming after batch 2 of the unfinished epoch"), "{code}: {errors}");
    assert!(predictions("failed") == predictions("whole"), "a run whose device failed twice has other predictions");

    // The same place, and a message that says nothing of a device: a bug.
    let (code, _, errors) = train("bug", "8", "allocated 3 buffers, index out of bounds");
    assert!(code == 1 && errors.contains("index out of bounds") && !errors.contains("resumes"), "{code}: {errors}");
}

#[test]
fn a_device_that_fails_in_a_trial_of_a_study_counts_as_an_attempt_and_the_others_are_trained() {
    let folder = tempfile::tempdir().unwrap();
    let text = RUN_FILE.replace("[strategy.worst-group]\nweight = 2.0\n", "");
    std::fs::write(folder.path().join("run.toml"), text).unwrap();
    std::fs::write(folder.path().join("study.toml"), STUDY_FILE).unwrap();
    let call = |arguments: &[&str], message: &str| {
        let step = if message.is_empty() { "never" } else { "1" };
        run_with(folder.path(), arguments, &[("FAILS_IN_STEP", step), ("FAILS_WITH", message)])
    };
    let study = ["study", "run", "study.toml"];
    let state = |place: usize, file: &str| {
        let manifest = std::fs::read_to_string(folder.path().join("study/manifest.csv")).unwrap();
        let id = manifest.lines().nth(place + 1).unwrap().split(',').nth(1).unwrap();
        let found = Path::new("study/trials").join(&id[..2]).join(id).join(file);
        std::fs::read_to_string(folder.path().join(found)).ok()
    };
    let attempts = || {
        [1, 3].map(|place| {
            let failed: serde_json::Value = serde_json::from_str(&state(place, "failed.json").unwrap()).unwrap();
            failed["attempts"].as_u64().unwrap()
        })
    };

    // The child says what happened, and `erm` is trained.
    let no_memory = "Caused by:\n  out of device memory allocating 1073741824 bytes\n";
    let (code, _, errors) = call(&study, no_memory);
    assert!(code == 4 && errors.contains("2 trials failed") && errors.contains("failed (device failed)"), "{errors}");
    let (_, status, _) = call(&["study", "status", "study"], "");
    assert!(
        status.contains("device failed: 2 trials (1, 3) on ") && status.contains("out of device memory"),
        "{status}"
    );
    assert!(state(0, "scores.json").is_some() && state(2, "scores.json").is_some());
    assert_eq!(attempts(), [1, 1]);

    // Without memory for one, the other of its pack is tried; on a lost device it stays as it is.
    let trials = ["study", "trial", "study", "1", "3"];
    let (code, _, errors) = call(&trials, no_memory);
    assert_eq!((code, attempts()), (5, [2, 2]), "{errors}");
    let (code, _, errors) = call(&trials, "Parent device is lost");
    assert!(code == 5 && errors.contains("Parent device is lost"), "{code}: {errors}");
    assert_eq!(attempts(), [3, 2]);

    // After the third only on request; a bug is no failure of the device.
    let (code, _, errors) = call(&study, "index out of bounds");
    assert!(code == 4 && errors.contains("failed (unknown): ") && errors.contains("index out of bounds"), "{errors}");
    assert_eq!(attempts(), [3, 3]);
    let (code, _, errors) = call(&[&trials[..], &["--again"]].concat(), "");
    assert!(code == 0 && state(1, "scores.json").is_some() && state(3, "scores.json").is_some(), "{code}: {errors}");
}
