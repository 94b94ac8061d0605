//! The inputs of a model, through the program: columns of a table, augmented and shifted images, damaged stores, split
//! files with leaks.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fairtte_data::table::Table;
use fairtte_tests::{SmallRun, c_td, fail, files, generic_data, generic_table, report, run, succeed};

const CONFIG: i32 = 3;
const DATA: i32 = 4;

/// 300 subjects whose time to the event depends on one column and one category.
fn people(folder: &Path) -> PathBuf {
    let mut text = "pid,time,event,sex,marker,kind,noise\n".to_owned();
    for i in 0..300_u64 {
        let (marker, kind, noise) = (i * 37 % 101, ["a", "b", "c"][(i % 3) as usize], i * 53 % 97);
        let time = 20.0 - 0.15 * marker as f64 - 2.0 * (i % 3) as f64 + 0.01 * noise as f64;
        let missing = if i % 29 == 0 { String::new() } else { marker.to_string() };
        let sex = ["F", "M"][(i / 2 % 2) as usize];
        writeln!(text, "p{i},{time:.3},{},{sex},{missing},{kind},{noise}", u8::from(i % 5 != 0)).unwrap();
    }
    let path = folder.join("people.csv");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_table_of_columns_is_learnt_from_ten_lines() {
    let folder = tempfile::tempdir().unwrap();
    let table = people(folder.path());
    let config = folder.path().join("people.toml");
    let text = format!(
        "[data.tabular]\ntable = '{}'\nsubject = \"pid\"\nfeatures = \"all\"\n[[attribute]]\nname = \"sex\"\n",
        table.display()
    );
    assert!(text.lines().count() <= 10);
    std::fs::write(&config, text).unwrap();
    let output = folder.path().join("run");
    let (config, out) = (config.display().to_string(), output.display().to_string());
    let outcome = succeed(["train", "--config", &config, "--output", &out, "--set", "training.epochs=15"]);
    // Random guessing gives 0.5; no more than 0.01 of the time is not determined by the columns.
    let c_td = c_td(&report(&output));
    assert!(c_td > 0.8, "C^td {c_td}\n{}", outcome.stdout);
    let fitted = std::fs::read_to_string(output.join("features.json")).unwrap();
    for word in ["marker", "kind", "noise"] {
        assert!(fitted.contains(word), "{word} is missing in\n{fitted}");
    }
    assert!(!fitted.contains("\"sex\""), "an attribute is not a feature unless it is named as one");
    let dry = ["train", "--dry-run", "--config", &config, "--set"];
    fail([&dry[..], &["model.backbone=small-2d"]].concat(), CONFIG, "small-2d does not read columns of a table");
    fail([&dry[..], &["augmentation.rotation=5"]].concat(), CONFIG, "columns of a table");
}

#[test]
fn a_shift_changes_the_training_of_one_group_and_leaves_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let plain = SmallRun::new(&folder.path().join("plain"));
    plain.train();
    let cache = format!("cache={}", plain.folder.join("cache").display());
    let shifted = SmallRun::new(&folder.path().join("shifted"))
        .set(&cache)
        .set("shift.attribute=sex")
        .set("shift.group=F")
        .set("shift.blur=1.5")
        .set("shift.censoring-flip=0.9")
        .set("shift.time-noise={ fraction = [-0.1, 0.1] }");
    shifted.train();
    let read = |run: &SmallRun, name: &str| std::fs::read(run.output().join(name)).unwrap();
    assert_eq!(read(&plain, "cohort.parquet"), read(&shifted, "cohort.parquet"), "the evaluated samples are unchanged");
    assert_eq!(read(&plain, "split.csv"), read(&shifted, "split.csv"));
    assert_ne!(read(&plain, "predictions.parquet"), read(&shifted, "predictions.parquet"));
    assert!(!files(&plain.output()).iter().any(|name| name.starts_with("shift")));
    let record: serde_json::Value = serde_json::from_slice(&read(&shifted, "shift.json")).unwrap();
    let count = |key: &str| record[key].as_f64().unwrap();
    assert!((count("n-flipped") - 0.9 * count("n-group-events")).abs() <= 0.5, "{record}");
    let table = Table::read(&shifted.output().join("shift.csv")).unwrap();
    assert_eq!(
        Some(table.n_rows() as u64),
        record["n-group"].as_u64(),
        "every image of the group in the training part is blurred"
    );
    fail(
        SmallRun::new(&folder.path().join("wrong"))
            .set("shift.attribute=age")
            .set("shift.group=F")
            .set("shift.blur=1")
            .arguments("train"),
        CONFIG,
        "shift.attribute: \"age\" is not an [[attribute]] of this run",
    );
}

#[test]
fn cropped_and_turned_pictures_are_trained_on_and_the_centre_is_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path())
        .set("augmentation.crop=[24, 24]")
        .set("augmentation.rotation=10")
        .set("augmentation.flip=horizontal");
    let first = run.train();
    std::fs::remove_dir_all(run.output()).unwrap();
    assert_eq!(c_td(&first).to_bits(), c_td(&run.train()).to_bits(), "the changes follow from the seed");
}

#[test]
fn a_damaged_store_is_found_and_mended_by_verify() {
    let folder = tempfile::tempdir().unwrap();
    let table = generic_table(folder.path(), 24, |_, _| None);
    let small = SmallRun::with_data(&folder.path().join("small"), &generic_data(&table));
    let mut prepare = small.arguments("prepare");
    succeed(&prepare);
    let cache = small.folder.join("cache");
    let shard = files(&cache).into_iter().find(|name| name.contains("shard-")).unwrap();
    let mut bytes = std::fs::read(cache.join(&shard)).unwrap();
    let whole = bytes.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(cache.join(&shard), &bytes).unwrap();
    prepare.push("--verify".to_owned());
    let told = succeed(&prepare).stderr;
    assert!(told.contains("do not have their checksum") && told.contains("decoded again"), "{told}");
    assert!(succeed(&prepare).stderr.contains("verified: 24 images have their checksums\n"));
    assert_eq!(std::fs::read(cache.join(&shard)).unwrap(), whole);
}

#[test]
fn a_split_file_that_leaks_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    // Rows 4 and 5 are the same subject; pictures 6 and 7 the same file.
    let table =
        generic_table(folder.path(), 24, |row, column| (column == "subject_id" && row == 5).then(|| "p4".to_owned()));
    std::fs::copy(folder.path().join("6.png"), folder.path().join("7.png")).unwrap();
    let small = SmallRun::with_data(&folder.path().join("small"), &generic_data(&table)).set("split.file=split.csv");
    let part = |row: usize| ["train", "validation", "test"][row % 3];
    let write = |part_of: &dyn Fn(usize) -> &'static str| {
        let mut text = "sample_id,part\n".to_owned();
        (0..24).for_each(|row| writeln!(text, "{row}.png,{}", part_of(row)).unwrap());
        std::fs::write(small.folder.join("split.csv"), text).unwrap();
    };
    write(&part);
    fail(small.arguments("prepare"), DATA, "subject \"p4\"");
    write(&|row| if row == 5 { part(4) } else { part(row) });
    let refused = run(small.arguments("prepare"));
    assert_eq!(refused.code, DATA, "{}", refused.stderr);
    assert!(refused.stderr.contains("6.png") && refused.stderr.contains("7.png"), "{}", refused.stderr);
    write(&|row| {
        if row == 5 {
            part(4)
        } else if row == 7 {
            part(6)
        } else {
            part(row)
        }
    });
    succeed(small.arguments("prepare"));
}
