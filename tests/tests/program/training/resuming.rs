//! The conditions of resuming a run: unchanged data, parts, groups, inputs and checkpoints, and exclusive use of the
//! folder.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fairtte_tests::{SmallRun, fail, files, succeed};

const DATA: i32 = 4;

/// A table of 80 patients in `folder` with a given split; `change` may replace the cells of a row (pid, time, event,
/// sex, age).
fn write_table(folder: &Path, change: impl Fn(usize, &mut [String; 5])) -> PathBuf {
    let mut text = "pid,time,event,sex,age\n".to_owned();
    for row in 0..80 {
        let sex = if row % 3 == 0 { "F" } else { "M" };
        let time = format!("{}.5", 1 + (row * 7) % 23);
        let age = 40 + (row * 11) % 37;
        let event = u8::from(row % 2 == 0);
        let mut cells = [format!("p{row:02}"), time, event.to_string(), sex.to_owned(), age.to_string()];
        change(row, &mut cells);
        writeln!(text, "{}", cells.join(",")).unwrap();
    }
    let path = folder.join("table.csv");
    std::fs::write(&path, text).unwrap();
    path
}

/// Every fourth patient is in the test part, another fourth in the validation part; `moved` go to the training part.
fn write_split(folder: &Path, moved: &[usize]) {
    let part = |row: usize| match row % 8 {
        _ if moved.contains(&row) => "train",
        0 | 5 => "test",
        2 | 7 => "validation",
        _ => "train",
    };
    let rows: String = (0..80).fold("subject_id,part\n".to_owned(), |mut text, row| {
        writeln!(text, "p{row:02},{}", part(row)).unwrap();
        text
    });
    std::fs::write(folder.join("split.csv"), rows).unwrap();
}

fn of_table(folder: &Path) -> SmallRun {
    let table = write_table(folder, |_, _| {});
    write_split(folder, &[]);
    let data = format!(
        "[data.tabular]\ntable = '{}'\nsubject = \"pid\"\ntime-unit = \"years\"\nfeatures = \"all\"\n",
        table.display()
    );
    SmallRun::with_data(folder, &data)
        .set("model.backbone=mlp")
        .set(&format!("split.file='{}'", folder.join("split.csv").display()))
        .set("evaluation.replicates=2")
}

/// Every file of the run folder with its bytes.
fn content(run: &SmallRun) -> Vec<(String, Vec<u8>)> {
    files(&run.output())
        .into_iter()
        .map(|name| (name.clone(), std::fs::read(run.output().join(name)).unwrap()))
        .collect()
}

fn resume(run: &SmallRun, more: &[&str]) -> Vec<String> {
    let path = run.output().display().to_string();
    ["train", "--resume-from", &path].iter().chain(more).map(|argument| (*argument).to_owned()).collect()
}

#[test]
fn changed_data_are_refused_by_name_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let run = of_table(folder.path());
    succeed(run.arguments("train"));
    let before = content(&run);
    let elsewhere = folder.path().join("elsewhere").display().to_string();
    let longer = ["--set", "training.epochs=3"];
    let refused = |sentence: &str| {
        fail(resume(&run, &longer), DATA, sentence);
        fail(resume(&run, &[longer[0], longer[1], "--output", &elsewhere]), DATA, sentence);
        // Nor is the evaluation of other data shown as that of these.
        fail(run.arguments("train"), DATA, sentence);
        assert!(content(&run) == before, "{sentence}: the folder was changed");
    };
    write_split(folder.path(), &[0, 8]);
    refused("subjects in another part than when the run began: 2, first \"p00\" (in test then, in train now)");
    write_split(folder.path(), &[]);
    write_table(folder.path(), |row, cells| {
        if row == 1 {
            cells[3] = "F".to_owned();
        }
    });
    refused("samples in another group of sex than when the run began: 1, first \"p01\" (\"M\" then, \"F\" now)");
    write_table(folder.path(), |row, cells| {
        if row == 4 {
            cells[4] = "77".to_owned();
        }
    });
    refused("the pictures or columns of its samples have changed since the run began");
    write_table(folder.path(), |row, cells| {
        if row == 4 {
            cells[1] = "9".to_owned();
        }
    });
    refused("samples with another outcome, subject or place in the table than when the run began: 1, first \"p04\"");
    write_table(folder.path(), |_, _| {});
    assert!(succeed(run.arguments("train")).stderr.contains("this run is done"));
    succeed(resume(&run, &longer));
}

#[test]
fn a_finished_run_whose_samples_changed_is_not_shown_as_that_of_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let run = of_table(folder.path());
    succeed(run.arguments("train"));
    write_table(folder.path(), |row, cells| {
        if row == 4 {
            cells[0] = "other".to_owned();
        }
    });
    fail(
        run.arguments("train"),
        DATA,
        "samples that the run was trained with and the data no longer have: 1, first \"p04\"",
    );
    let table = folder.path().join("table.csv");
    write_table(folder.path(), |_, _| {});
    let text = std::fs::read_to_string(&table).unwrap();
    let (first, rest) = text.trim_end().rsplit_once('\n').unwrap();
    std::fs::write(&table, format!("{first}\n{rest}\n{}\n", rest.replacen("p79", "new", 1))).unwrap();
    fail(
        run.arguments("train"),
        DATA,
        "samples that the data now have and the run was trained without: 1, first \"new\"",
    );
    // A table that can be read but has no such column is no table that was moved.
    std::fs::write(&table, text.replacen("event", "status", 1)).unwrap();
    fail(run.arguments("train"), DATA, "column \"event\" is not in");
    std::fs::remove_file(&table).unwrap();
    let outcome = succeed(run.arguments("train"));
    assert!(outcome.stderr.contains("note: whether the data have changed since the training was not checked"));
    assert!(outcome.stderr.contains("this run is done"), "{}", outcome.stderr);
}

#[test]
fn changed_pictures_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let table = fairtte_tests::generic_table(folder.path(), 80, |_, _| None);
    let draw = |shift: u8| {
        for row in 0..80_u8 {
            let shade = image::Luma([row.wrapping_mul(3).wrapping_add(if row == 7 { shift } else { 0 })]);
            image::GrayImage::from_pixel(32, 32, shade).save(folder.path().join(format!("{row}.png"))).unwrap();
        }
    };
    draw(0);
    let run = SmallRun::with_data(&folder.path().join("run"), &fairtte_tests::generic_data(&table));
    succeed(run.arguments("train"));
    let longer = ["--set", "training.epochs=3"];
    draw(40);
    fail(resume(&run, &longer), DATA, "the pictures or columns of its samples have changed since the run began");
    draw(0); // written again with the same pixels
    succeed(resume(&run, &longer));
}

#[test]
fn a_folder_in_which_another_process_trains_is_refused_and_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let run = of_table(folder.path());
    succeed(run.arguments("train"));
    let lock = std::fs::File::options().write(true).open(run.output().join(".lock")).unwrap();
    lock.lock().unwrap();
    let longer = ["--set", "training.epochs=3"];
    fail(resume(&run, &longer), DATA, "another process trains here");
    succeed(["evaluate", &run.output().display().to_string()]);
    lock.unlock().unwrap();
    succeed(resume(&run, &longer));
}

#[test]
fn resuming_with_another_output_leaves_the_origin_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let run = of_table(folder.path());
    succeed(run.arguments("train"));
    let before = content(&run);
    let other = folder.path().join("other");
    succeed(resume(&run, &["--set", "training.epochs=3", "--set", &format!("output='{}'", other.display())]));
    assert!(other.join("done").exists());
    assert!(content(&run) == before, "the origin was changed");
}

#[test]
fn settings_spelled_out_or_left_to_their_default_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let run = of_table(folder.path());
    succeed(run.arguments("train"));
    let same = run.set("training-seed=1").set("groups.train=[\"sex\"]");
    assert!(succeed(same.arguments("train")).stderr.contains("this run is done"));
}

#[test]
fn damaged_states_are_refused_by_name_and_foreign_folders_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let run = of_table(folder.path());
    succeed(run.arguments("train"));
    let checkpoint = run.output().join("checkpoint");
    std::fs::create_dir_all(checkpoint.join("epoch-junk")).unwrap();
    std::fs::write(checkpoint.join("epoch-99999.txt"), "").unwrap();
    let longer = ["--set", "training.epochs=3"];
    let found = files(&run.output());
    let tensors = found.iter().find(|file| file.contains("/last/")).unwrap();
    let damage = |file: &str, change: &dyn Fn(&mut Vec<u8>), sentence: &str| {
        let path = run.output().join(file);
        let bytes = std::fs::read(&path).unwrap();
        let mut other = bytes.clone();
        change(&mut other);
        std::fs::write(&path, other).unwrap();
        let outcome = fail(resume(&run, &longer), DATA, sentence);
        assert!(outcome.stderr.contains(file), "{}", outcome.stderr);
        std::fs::write(&path, bytes).unwrap();
    };
    let last_byte = |bytes: &mut Vec<u8>| *bytes.last_mut().unwrap() ^= 1;
    damage("checkpoint/epoch-00002/trainer.json", &|bytes| bytes.truncate(100), "cannot be used: EOF");
    damage(tensors, &last_byte, "its content has changed since it was written");
    succeed(resume(&run, &longer));
}

#[test]
fn epochs_that_several_rules_chose_are_predicted_once() {
    let folder = tempfile::tempdir().unwrap();
    let run = of_table(folder.path()).set("training.epochs=6").set("training.patience=6");
    succeed(run.arguments("train"));
    let record = std::fs::read_to_string(run.output().join("selection.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let mut named: Vec<String> = Vec::new();
    for choice in record["rules"].as_object().unwrap().values() {
        let (epoch, file) = (choice["epoch"].as_u64().unwrap(), choice["file"].as_str().unwrap());
        let of_epoch = format!("predictions-epoch-{epoch:05}.parquet");
        assert_eq!(file, if choice["epoch"] == record["epoch"] { "predictions.parquet" } else { &of_epoch });
        named.push(file.to_owned());
    }
    named.push("predictions.parquet".to_owned());
    named.sort();
    named.dedup();
    let mut found = files(&run.output());
    found.retain(|name| name.starts_with("predictions"));
    found.sort();
    assert_eq!(found, named);
    assert!(named.len() > 1, "every rule chose the same epoch");
}

#[test]
fn a_run_whose_strategy_ended_it_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let run = of_table(folder.path())
        .set("strategy.swad={ n-converge = 1, n-tolerance = 1, tolerance-ratio = 0.0 }")
        .set("optimiser.learning-rate=0.1")
        .set("training.epochs=30")
        .set("training.patience=30");
    succeed(run.arguments("train"));
    let n_epochs = std::fs::read_to_string(run.output().join("steps.jsonl")).unwrap().lines().count();
    assert!(n_epochs < 30, "it did not stop early");
    let before = content(&run);
    let outcome = succeed(resume(&run, &[]));
    assert!(outcome.stderr.contains("this run is done"), "{}", outcome.stderr);
    let predictions =
        |content: &[(String, Vec<u8>)]| content.iter().find(|(name, _)| name == "predictions.parquet").cloned();
    assert!(predictions(&content(&run)) == predictions(&before));
}
