//! `explain`: maps of single predictions are of the risk that `predict` states, from the kept model alone; what cannot be
//! explained is refused.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::BTreeMap;
use std::path::Path;

use fairtte_data::predictions::Rising;
use fairtte_data::read_predictions;
use fairtte_data::table::Table;
use fairtte_tests::{SmallRun, fail, files, generic_data, generic_table, patients, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The values of an array of `NumPy`, and its shape as the header says it.
fn array(path: &Path) -> (String, Vec<f64>) {
    let bytes = std::fs::read(path).unwrap();
    let begin = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8_lossy(&bytes[10..begin]).into_owned();
    let shape = header[header.find('(').unwrap()..=header.find(')').unwrap()].to_owned();
    (shape, bytes[begin..].chunks_exact(8).map(|value| f64::from_le_bytes(value.try_into().unwrap())).collect())
}

/// Predicted risk, time and event of every sample of the test part at a time of the grid.
fn risks(run: &SmallRun, place: usize) -> (f64, BTreeMap<String, f64>) {
    let table = read_predictions(&run.output().join("predictions.parquet"), Rising::Refuse).unwrap();
    let risk = |row: usize| 1.0 - table.survival[[row, place]];
    let all = table.samples.iter().enumerate().map(|(row, sample)| (sample.to_string(), risk(row)));
    (table.grid[place], all.collect())
}

/// The checks that hold for every explanation.
fn require_sound(folder: &Path, n_maps: usize) -> Value {
    let record = json(&folder.join("explain.json"));
    let html = std::fs::read_to_string(folder.join("explain.html")).unwrap().replace("&#x2f;", "/");
    assert!(!html.contains("<script") && !html.contains("http"), "the page needs nothing from elsewhere");
    for sample in record["samples"].as_array().unwrap() {
        let maps = sample["maps"].as_array().unwrap();
        assert_eq!(maps.len(), n_maps);
        assert!(html.contains(sample["sample-id"].as_str().unwrap()));
        for map in maps {
            let (shape, values) = array(&folder.join(map["file"].as_str().unwrap()));
            let sides: Vec<String> = map["shape"].as_array().unwrap().iter().map(ToString::to_string).collect();
            assert_eq!(shape.replace([',', ' ', '(', ')'], ""), sides.concat());
            assert!(values.iter().all(|value| value.is_finite()) && values.iter().any(|value| *value != 0.0));
            let sum: f64 = values.iter().sum();
            assert!((sum - map["sum"].as_f64().unwrap()).abs() < 1e-9);
            if map["method"] == "integrated-gradients" {
                let difference = map["risk"].as_f64().unwrap() - map["baseline-risk"].as_f64().unwrap();
                assert!((sum - difference).abs() < 0.01 + 0.1 * difference.abs(), "{sum} is not {difference}");
            }
        }
    }
    record
}

#[test]
fn the_worst_samples_of_every_group_are_explained_with_the_predicted_risk() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path());
    succeed(run.arguments("train"));
    let (horizon, risks) = risks(&run, 4);
    let told =
        succeed(["explain", &text(&run.output()), "--worst", "2", "--horizon", &horizon.to_string(), "--randomised"]);
    let explained = run.output().join("explain");
    assert!(told.stdout.contains("explain.html"), "{}", told.stdout);
    let record = require_sound(&explained, 4);
    let samples = record["samples"].as_array().unwrap();
    assert_eq!((samples.len(), files(&explained.join("maps")).len()), (4, 16));

    // By hand, from the files of the run: the largest error of every sex among known outcomes of the test part.
    let (cohort, split) = (cohort(&run), parts(&run));
    let mut by_sex: BTreeMap<&str, Vec<(f64, &str)>> = BTreeMap::new();
    for (sample, (subject, time, event, sex)) in &cohort {
        let error = match (*event && *time <= horizon, *time > horizon) {
            _ if split[subject] != "test" => continue,
            (true, _) => (1.0 - risks[sample]).powi(2),
            (_, true) => risks[sample].powi(2),
            _ => continue,
        };
        by_sex.entry(sex).or_default().push((error, sample));
    }
    let mut expected = Vec::new();
    for worst in by_sex.values_mut() {
        worst.sort_by(|a, b| b.0.total_cmp(&a.0));
        expected.extend(worst[..2].iter().map(|(_, sample)| *sample));
    }
    let found: Vec<&str> = samples.iter().map(|sample| sample["sample-id"].as_str().unwrap()).collect();
    assert_eq!(found, expected);
    for sample in samples {
        let id = sample["sample-id"].as_str().unwrap();
        assert!((sample["risk"].as_f64().unwrap() - risks[id]).abs() < 1e-6, "{id}");
        assert_eq!(sample["groups"]["sex"].as_str().unwrap(), cohort[id].3, "{id}");
        assert_eq!(sample["part"], "test");
        let maps = sample["maps"].as_array().unwrap();
        let randomised: Vec<bool> = maps.iter().map(|map| map["randomised"].as_bool().unwrap()).collect();
        assert_eq!(randomised, [false, false, true, true]);
        assert!(maps[2]["risk"] != maps[0]["risk"] && maps[2]["rank-correlation"].is_number());
        let (shape, _) = array(&explained.join(maps[0]["file"].as_str().unwrap()));
        assert_eq!(shape, "(32, 32)");
    }
    // Another call replaces the maps.
    let one = ["--samples", expected[0], "--method", "occlusion", "--patch", "8"];
    let horizon = horizon.to_string();
    let again = || {
        succeed([&["explain", &text(&run.output()), "--horizon", &horizon][..], &one[..]].concat());
        assert_eq!(files(&explained.join("maps")).len(), 1);
    };
    again();
    // So does one after a call that was killed before it wrote the record: the page is no file of somebody else.
    std::fs::remove_file(explained.join("explain.json")).unwrap();
    again();
    // A resumed training removes the explanation of the old weights.
    let own = text(&run.output());
    succeed(["train", "--resume-from", &own, "--set", "training.epochs=3"]);
    assert!(!explained.exists());
}

/// Subject, time, event and sex of every sample.
fn cohort(run: &SmallRun) -> BTreeMap<String, (String, f64, bool, String)> {
    let folder = files(&run.folder.join("cache")).into_iter().find(|name| name.ends_with("manifest.csv")).unwrap();
    let table = Table::read(&run.folder.join("cache").join(folder)).unwrap();
    let column = |name: &str| table.text(name).unwrap().into_iter().map(Option::unwrap).collect::<Vec<_>>();
    let (images, subjects, times) = (column("image"), column("subject_id"), column("time"));
    let rows = images.into_iter().zip(subjects).zip(times).zip(column("event")).zip(column("sex"));
    rows.map(|((((image, subject), time), event), sex)| (image, (subject, time.parse().unwrap(), event == "1", sex)))
        .collect()
}

fn parts(run: &SmallRun) -> BTreeMap<String, String> {
    let table = Table::read(&run.output().join("split.csv")).unwrap();
    let (subjects, parts) = (table.text("subject_id").unwrap(), table.text("part").unwrap());
    subjects.into_iter().flatten().zip(parts.into_iter().flatten()).collect()
}

/// A run on 60 pictures.
fn on_pictures(folder: &Path) -> SmallRun {
    let table = generic_table(&folder.join("data"), 60, |_, _| None);
    let run = SmallRun::with_data(folder, &generic_data(&table));
    succeed(run.arguments("train"));
    run
}

#[test]
fn a_sample_needs_the_kept_model_and_its_own_image_only() {
    let folder = tempfile::tempdir().unwrap();
    let run = on_pictures(folder.path());
    let explain = |output: &str| {
        let output = text(&folder.path().join(output));
        succeed(["explain", &text(&run.output()), "--samples", "7.png", "--horizon", "3", "--output", &output]);
        require_sound(Path::new(&output), 2)
    };
    let before = explain("before");
    std::fs::remove_dir_all(folder.path().join("cache")).unwrap();
    for row in (0..60).filter(|row| *row != 7) {
        std::fs::remove_file(folder.path().join(format!("data/{row}.png"))).unwrap();
    }
    assert_eq!(explain("after"), before);
    // The same picture as one of another data set.
    let output = text(&folder.path().join("other"));
    let table = text(&folder.path().join("data/table.csv"));
    let of_table = ["--table", &table, "--samples", "7.png", "--horizon", "3", "--output", &output];
    succeed([&["explain", &text(&run.output())][..], &of_table[..]].concat());
    let other = require_sound(Path::new(&output), 2);
    assert_eq!(other["samples"][0]["risk"], before["samples"][0]["risk"]);
    assert_eq!(other["samples"][0]["maps"], before["samples"][0]["maps"]);
    assert!(other["samples"][0]["time"].is_null(), "outcomes of other data are not read");
}

#[test]
fn what_cannot_be_explained_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let run = on_pictures(folder.path());
    let own = text(&run.output());
    let refuse = |more: &[&str], sentence: &str| {
        fail([&["explain", &own][..], more].concat(), CONFIG, sentence);
    };
    let one = ["--samples", "7.png", "--horizon", "3"];
    let with = |more: &[&'static str]| [&one[..], more].concat();
    refuse(&["--samples", "99.png", "--horizon", "3"], "\"99.png\" is unknown, expected one of the 60 samples");
    refuse(&["--samples", "7.png", "--horizon", "1000"], "1000 is no time of the curves");
    refuse(&["--samples", "7.png", "--horizon", "0"], "0 is no time of the curves");
    refuse(&["--worst", "0", "--horizon", "3"], "0 samples to explain, expected at least 1");
    refuse(&with(&["--patch", "33"]), "33 is no side of a patch, expected 1 to 32");
    refuse(&with(&["--patch", "4", "--stride", "5"]), "expected 1 to 4, the patch");
    refuse(&with(&["--steps", "0"]), "0 steps, expected 1 to 1000000");
    refuse(&with(&["--steps", "1000000000000"]), "1000000000000 steps, expected 1 to 1000000");
    refuse(&with(&["--steps", "8", "--method", "occlusion"]), "occlusion has no steps");
    refuse(&with(&["--patch", "8", "--method", "integrated-gradients"]), "integrated gradients have no patches");
    refuse(&with(&["--attribute", "age"]), "age");
    std::fs::write(folder.path().join("data/notes.txt"), "mine").unwrap();
    let taken = text(&folder.path().join("data"));
    let arguments = [&["explain", &own][..], &one[..], &["--output", &taken][..]].concat();
    assert_ne!(fairtte_tests::run(arguments).code, 0, "a folder with other files is not written to");
    assert!(folder.path().join("data/notes.txt").exists());
    std::fs::remove_dir_all(run.output().join("model")).unwrap();
    let outcome = fairtte_tests::run([&["explain", &own][..], &one[..]].concat());
    assert!(outcome.code != 0 && outcome.stderr.contains("model"), "{}", outcome.stderr);
}

#[test]
fn a_strategy_that_predicts_by_group_needs_the_group() {
    let folder = tempfile::tempdir().unwrap();
    let table = generic_table(&folder.path().join("data"), 60, |_, _| None);
    let run = SmallRun::with_data(folder.path(), &generic_data(&table))
        .set("strategy.domain-independent={ inference = \"own-group\" }");
    succeed(run.arguments("train"));
    let explain = |table: &Path, output: &str| {
        let arguments = ["explain", &text(&run.output()), "--table", &text(table), "--samples", "7.png"];
        let output = text(&folder.path().join(output));
        [&arguments[..], &["--horizon", "3", "--steps", "256", "--output", &output][..]]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    succeed(explain(&table, "with"));
    require_sound(&folder.path().join("with"), 2);
    let without = folder.path().join("data/without.csv");
    let lines = std::fs::read_to_string(&table).unwrap();
    let lines: Vec<&str> = lines.lines().map(|line| line.rsplit_once(',').unwrap().0).collect();
    std::fs::write(&without, lines.join("\n")).unwrap();
    fail(explain(&without, "none"), CONFIG, "predicts by the group of a sample");
}

#[test]
fn columns_of_a_table_are_explained_by_heads_with_a_baseline() {
    let folder = tempfile::tempdir().unwrap();
    for head in ["cox", "cox-time", "pc-hazard"] {
        let run = patients(&folder.path().join(head), 150, |_, _| {}).set(&format!("head={head}"));
        succeed(run.arguments("train"));
        let (horizon, risks) = risks(&run, 5);
        let arguments = ["explain", &text(&run.output()), "--worst", "1", "--horizon", &horizon.to_string()];
        succeed(arguments);
        let explained = run.output().join("explain");
        let record = require_sound(&explained, 2);
        let columns: Vec<&str> =
            record["columns"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        for sample in record["samples"].as_array().unwrap() {
            let id = sample["sample-id"].as_str().unwrap();
            assert!((sample["risk"].as_f64().unwrap() - risks[id]).abs() < 1e-6, "{head}: {id}");
            for map in sample["maps"].as_array().unwrap() {
                assert_eq!(map["shape"], serde_json::json!([columns.len()]), "{head}");
            }
        }
        let html = std::fs::read_to_string(explained.join("explain.html")).unwrap();
        assert!(columns.iter().all(|column| html.contains(&format!("<th scope=\"row\">{column}</th>"))), "{head}");
        fail(arguments.iter().chain(&["--patch", "4"]), CONFIG, "the inputs are columns of a table");
        fail(arguments.iter().chain(&["--fill", "image-mean"]), CONFIG, "image-mean is about images");
    }
}

#[test]
fn maps_of_volumes_have_three_axes_and_their_slices_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let data = "[data.simulated]\nkind = \"volumes\"\nn-subjects = 60\nsize = [12, 16, 14]\n";
    let run = SmallRun::with_data(folder.path(), data).set("image.size=[12, 16, 14]").set("model.backbone=small-3d");
    succeed(run.arguments("train"));
    succeed(["explain", &text(&run.output()), "--worst", "1", "--horizon", "3", "--patch", "4"]);
    let explained = run.output().join("explain");
    let record = require_sound(&explained, 2);
    for sample in record["samples"].as_array().unwrap() {
        assert_eq!(sample["maps"][1]["shape"], serde_json::json!([12, 16, 14]));
    }
    let html = std::fs::read_to_string(explained.join("explain.html")).unwrap();
    // Three slices, and for each of two maps five.
    let n = record["samples"].as_array().unwrap().len();
    assert_eq!(html.matches("<img src=\"data:image/png;base64,").count(), n * (3 + 2 * 5));
    assert!(html.contains("axial, most of the map"));
}
