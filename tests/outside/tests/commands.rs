//! The strategy of this program works like those of FairTTE, from the run file to the report.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

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

/// Exit code, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_fairtte-outside")).args(arguments).current_dir(folder).output().unwrap();
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
