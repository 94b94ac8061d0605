//! `predict` and `features`: curves of a run for samples that it was not trained on are those of its network, whatever the
//! strategy; other inputs, units, groups and training images are refused or said.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use fairtte_data::predictions::{PredictionTable, Rising};
use fairtte_data::table::Table;
use fairtte_data::{read_cohort, read_predictions};
use fairtte_tests::{SmallRun, fail, fairtte, files, generic_table, patients, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const DATA: i32 = 4;

fn read(folder: &Path) -> PredictionTable {
    read_predictions(&folder.join("predictions.parquet"), Rising::Refuse).unwrap()
}

/// Curves by sample.
fn curves(table: &PredictionTable) -> HashMap<String, Vec<u64>> {
    let rows = table.samples.iter().zip(table.survival.rows());
    rows.map(|(sample, row)| (sample.to_string(), row.iter().map(|value| value.to_bits()).collect())).collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Predicts the run's own data and compares the curves of its validation and test part with those of the training.
fn require_same_curves(run: &SmallRun, what: &str) {
    let (own, again) = (run.output(), run.folder.join("again"));
    let config = text(&own.join("run.toml"));
    let output = text(&again);
    succeed(["predict", &text(&own), "--data", &config, "--output", &output, "--allow-training-images"]);
    let (trained, predicted) = (read(&own), read(&again));
    assert_eq!(predicted.grid, trained.grid, "{what}");
    let predicted = curves(&predicted);
    assert!(predicted.len() > trained.samples.len(), "{what}: the training part is predicted too");
    for (sample, curve) in curves(&trained) {
        assert_eq!(predicted[&sample], curve, "{what}: {sample}");
    }
    std::fs::remove_dir_all(again).unwrap();
}

#[test]
fn the_kept_model_predicts_what_the_trained_network_predicted() {
    let folder = tempfile::tempdir().unwrap();
    // Those whose predictions need more than the weights of one network: maps and shares fitted at the end, several
    // networks, averaged weights, a group at prediction, another code.
    for strategy in [
        "erm={}",
        "recalibration={}",
        "swad={}",
        "controlled-attribute={ min-events = 2 }",
        "domain-independent={ inference = \"own-group\" }",
        "odr={}",
        "cfair={}",
    ] {
        let run = SmallRun::new(&folder.path().join(strategy.split('=').next().unwrap()))
            .set(&format!("strategy.{strategy}"))
            .set(&format!("cache={}", folder.path().join("cache").display()));
        succeed(run.arguments("train"));
        require_same_curves(&run, strategy);
    }
}

#[test]
fn baselines_and_encodings_of_columns_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    for head in ["cox", "cox-time", "pc-hazard"] {
        let run = patients(&folder.path().join(head), 150, |_, _| {}).set(&format!("head={head}"));
        succeed(run.arguments("train"));
        require_same_curves(&run, head);
    }
}

#[test]
fn a_table_without_outcomes_gives_curves_and_risks_and_no_cohort() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(&folder.path().join("trained"));
    succeed(run.arguments("train"));
    let table = generic_table(&folder.path().join("new"), 6, |_, _| None);
    let without = folder.path().join("new/without.csv");
    let (image, subject) = ("image", "subject_id");
    let cells = Table::read(&table).unwrap();
    let column = |name: &str| cells.text(name).unwrap();
    let mut lines = vec![format!("{image},{subject},sex")];
    for (film, person) in column(image).into_iter().zip(column(subject)) {
        lines.push(format!("{},{},F", film.unwrap(), person.unwrap()));
    }
    std::fs::write(&without, lines.join("\n")).unwrap();
    let output = folder.path().join("out");
    let arguments = ["predict", &text(&run.output()), "--table", &text(&without), "--output", &text(&output)];
    // Times of the curves, so that nothing is read between them.
    let times = [3, 6].map(|k| read(&run.output()).grid[k]);
    let horizons = format!("{},{}", times[0], times[1]);
    let outcome = succeed(arguments.iter().chain(&["--horizon", &horizons]));
    assert!(outcome.stdout.contains("there are no outcomes"), "{}", outcome.stdout);
    assert_eq!(files(&output), ["exclusions.csv", "predict.json", "predictions.parquet", "risk.csv"]);
    let (predicted, risk) = (read(&output), Table::read(&output.join("risk.csv")).unwrap());
    for (k, time) in [3, 6].into_iter().zip(times) {
        let cells = risk.text(&format!("risk_at_{time}_years")).unwrap();
        let found: Vec<f64> = cells.into_iter().map(|cell| cell.unwrap().parse().unwrap()).collect();
        for (found, survival) in found.iter().zip(predicted.survival.column(k)) {
            assert!((found - (1.0 - survival)).abs() < 1e-12, "{time}: {found} and 1 - {survival}");
        }
    }
    let record = json(&output.join("predict.json"));
    assert_eq!((&record["n-labelled"], &record["n-predicted"]), (&Value::from(0), &Value::from(6)));
    // One of the two columns of an outcome is a mistake.
    std::fs::write(&without, lines.join(",time\n") + ",1").unwrap();
    let half =
        ["predict", &text(&run.output()), "--table", &text(&without), "--output", &text(&folder.path().join("x"))];
    fail(half, CONFIG, "has the column \"time\" and not \"event\", expected both or neither");
}

#[test]
fn what_does_not_fit_is_refused_in_one_sentence_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(&folder.path().join("trained"));
    succeed(run.arguments("train"));
    let trained = text(&run.output());
    let output = folder.path().join("out");
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        text(&path)
    };
    let simulated = |more: &str| format!("seed = 9\n[data.simulated]\nn-subjects = 20\nsize = [32, 32]\n{more}");
    let refuse = |data: &str, more: &[&str], code: i32, sentence: &str| {
        let base = ["predict", &trained, "--data", data, "--output"].map(str::to_owned);
        let cache = ["--cache".to_owned(), text(&folder.path().join("cache"))];
        let arguments =
            base.into_iter().chain([text(&output)]).chain(cache).chain(more.iter().map(|s| (*s).to_owned()));
        fail(arguments, code, sentence);
        assert!(!output.exists(), "{sentence}");
    };
    let own = text(&run.folder.join("run.toml"));
    refuse(&own, &[], CONFIG, "of 120 images belong to the training part of");
    let days = file("days.toml", &simulated("time-unit = \"days\""));
    refuse(&days, &[], CONFIG, "the times of the data are in days, those of the run in years");
    let large = file("large.toml", &simulated("[image]\nsize = [48, 32]"));
    refuse(&large, &[], CONFIG, "has [48, 32], the run \"small\" was trained on [32, 32]");
    let colour = file("colour.toml", &simulated("[image]\nchannels = 3"));
    refuse(&colour, &[], CONFIG, "has 3, the run \"small\" was trained on 1");
    let other = file("other.toml", &simulated(""));
    for (set, sentence) in [
        ("image.size=[48, 32]", "image.size: "),
        ("image={ channels = 3 }", "image.channels: "),
        ("image.exact=true", "image.exact: "),
        (
            "intensity=unit",
            "--set intensity has no effect on samples to predict, expected a key of data, seed, outcome",
        ),
        ("cache=elsewhere", "--cache names the folder of decoded images"),
        ("model.dropout=0.5", "--set model.dropout has no effect"),
    ] {
        refuse(&other, &["--set", set], CONFIG, sentence);
    }
    let same = ["--set", "image.size=[32, 32]", "--set", "image.channels=1", "--set", "seed=9", "--dry-run"];
    succeed([&["predict", &trained, "--data", &other, "--output", &text(&output)][..], &same[..]].concat());
    let columns = file("columns.toml", "[data.tabular]\ntable = \"absent.csv\"");
    refuse(&columns, &[], CONFIG, "the run \"small\" reads images, [data.tabular] has columns of a table");
    refuse(&other, &["--epoch", "99"], CONFIG, "\"99\" is no epoch whose weights were kept, expected one of");
    refuse(&other, &["--horizon", "1000"], CONFIG, "1000 is no time of the curves");
    refuse(&other, &["--horizon", "-1"], CONFIG, "-1 is no time of the curves");
    refuse(&other, &["--level", "sex.X=W"], CONFIG, "\"X\" is given the level \"W\", expected one of F, M");
    refuse(
        &other,
        &["--level", "sex.Femal=F"],
        CONFIG,
        "attribute \"sex\": no sample has the value \"Femal\", nearest is \"F\"",
    );
    refuse(&other, &["--time-factor", "0"], CONFIG, "0 is no factor of times");
    let again = "2 would change times that are in years as those of the run, expected no --time-factor";
    refuse(&other, &["--time-factor", "2"], CONFIG, again);
    // The unit is agreed on by a factor, which multiplies the times.
    let by_factor = ["--time-factor", "0.5", "--cache", &text(&folder.path().join("cache"))];
    succeed(["predict", &trained, "--data", &days, "--output", &text(&output)].iter().chain(&by_factor));
    let times = |path: &Path| -> Vec<f64> {
        let cells = Table::read(path).unwrap().text("time").unwrap();
        cells.into_iter().map(|cell| cell.unwrap().parse().unwrap()).collect()
    };
    let record = json(&output.join("predict.json"));
    assert_eq!(record["time-factor"], 0.5);
    let halved = times(&output.join("cohort.parquet"));
    let plain = folder.path().join("plain");
    let whole = ["--time-factor", "1", "--cache", &text(&folder.path().join("cache"))];
    succeed(["predict", &trained, "--data", &days, "--output", &text(&plain)].iter().chain(&whole));
    for (half, whole) in halved.iter().zip(times(&plain.join("cohort.parquet"))) {
        assert!((2.0 * half - whole).abs() < 1e-9);
    }
    // A folder with a prediction is not overwritten.
    fail(
        ["predict", &trained, "--data", &other, "--output", &text(&output)],
        DATA,
        "there is already a prediction here",
    );
    // Nor is a file of somebody else that has the name of one of its files.
    let mine = folder.path().join("mine");
    std::fs::create_dir(&mine).unwrap();
    std::fs::write(mine.join("risk.csv"), "mine").unwrap();
    let call = ["predict", &trained, "--data", &other, "--output", &text(&mine), "--horizon", "1"];
    fail(call, DATA, "risk.csv: there is already a file of this name here; choose another --output");
    assert_eq!(std::fs::read_to_string(mine.join("risk.csv")).unwrap(), "mine");
    assert_eq!(files(&mine), ["risk.csv"]);
}

#[test]
fn runs_that_predict_or_read_something_else_are_no_ensemble_and_a_missing_column_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let trained = |run: SmallRun| {
        let run = run.set("training.epochs=1");
        succeed(run.arguments("train"));
        run
    };
    let years = trained(patients(&at("years"), 80, |_, _| ()));
    let days = trained(patients(&at("days"), 80, |_, _| ()).set("data.tabular.time-unit=days"));
    let class = patients(&at("class"), 80, |_, _| ()).set("task.kind=binary").set("task.binary.horizon=3");
    // A class has no time grid.
    let file = at("class").join("run.toml");
    let content = std::fs::read_to_string(&file).unwrap();
    let (before, after) = content.split_once("[time]\nintervals = 10\ngrid = \"equidistant\"\n").unwrap();
    std::fs::write(&file, format!("{before}{after}")).unwrap();
    let class = trained(class.set("head=binary").set("training.monitor=bce"));
    let films = trained(SmallRun::new(&at("films")));
    let output = text(&at("out"));
    let data = text(&years.folder.join("run.toml"));
    let refuse = |runs: [&SmallRun; 2], sentence: &str| {
        let [one, other] = runs.map(|run| text(&run.output()));
        fail(["predict", &one, &other, "--data", &data, "--output", &output], CONFIG, sentence);
        assert!(!Path::new(&output).exists(), "{sentence}");
    };
    let [in_years, in_days, of_class, of_films] = [&years, &days, &class, &films].map(|run| text(&run.output()));
    refuse([&years, &days], &format!("RUN: {in_years} predicts in years, {in_days} in days, expected one unit"));
    refuse([&years, &class], &format!("RUN: {in_years} and {of_class} have other [task]s, expected runs that predict"));
    let sentence =
        format!("RUN: {in_years} reads columns of a table, {of_films} images, expected runs that read the same");
    refuse([&years, &films], &sentence);
    // The unit of a table is not that of the run's own.
    let (own, multiplied) = (text(&years.folder.join("patients.csv")), at("multiplied"));
    succeed(["predict", &in_years, "--table", &own, "--time-factor", "365.25", "--output", &text(&multiplied)]);
    let said = "times of the data, whose unit is not named, were multiplied by 365.25 to years";
    assert!(json(&multiplied.join("predict.json"))["notes"].to_string().contains(said));
    // A column that the network reads.
    let table = std::fs::read_to_string(years.folder.join("patients.csv")).unwrap();
    let without = at("without.csv");
    std::fs::write(&without, table.replace(",x1,", ",renamed,")).unwrap();
    let call = ["predict", &in_years, "--table", &text(&without), "--output", &output];
    let refused = fail(call, DATA, "x1");
    assert!(refused.stderr.contains("without.csv"), "{}", refused.stderr);
    assert!(!Path::new(&output).join("predict.json").exists());
}

#[test]
fn an_ensemble_of_runs_with_other_sizes_and_scales_of_images_is_the_mean_of_its_runs() {
    let folder = tempfile::tempdir().unwrap();
    let trained = |name: &str, sets: &[&str]| {
        let run = sets.iter().fold(SmallRun::new(&folder.path().join(name)), |run, set| run.set(set));
        succeed(run.set("training.epochs=1").arguments("train"));
        text(&folder.path().join(name).join("run"))
    };
    let (one, two) = (trained("one", &[]), trained("two", &["training-seed=5", "intensity=unit"]));
    let small = trained("small", &["image.size=[16, 16]"]);
    let other = folder.path().join("other.toml");
    std::fs::write(&other, "seed = 3\n[data.simulated]\nn-subjects = 20\nsize = [32, 32]\n").unwrap();
    let predict = |runs: &[&str], name: &str| {
        let (output, cache) = (folder.path().join(name), folder.path().join(format!("cache-{name}")));
        let [data, shown, cache] = [&other, &output, &cache].map(|path| text(path));
        let more = ["--data", &data, "--output", &shown, "--cache", &cache];
        let said = succeed([&["predict"][..], runs, &more[..]].concat()).stderr;
        (read(&output).survival, said.matches("decoding 20 images").count())
    };
    let alone = [("a", &one), ("b", &two), ("c", &small)].map(|(name, run)| predict(&[run], name).0);
    let (mean, n_decoded) = predict(&[&one, &two, &small], "all");
    assert_eq!(n_decoded, 2);
    for (k, mean) in mean.iter().enumerate() {
        let expected = alone.iter().map(|curves| curves.iter().nth(k).unwrap()).sum::<f64>() / 3.0;
        assert!((mean - expected).abs() < 1e-12, "{mean} and {expected}");
    }
}

/// The files of a finished prediction with their bytes.
fn bytes(folder: &Path) -> Vec<(String, Vec<u8>)> {
    files(folder).into_iter().map(|name| (name.clone(), std::fs::read(folder.join(name)).unwrap())).collect()
}

#[test]
fn a_prediction_that_is_killed_between_blocks_ends_with_the_bytes_of_an_unbroken_one() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(&folder.path().join("trained"));
    succeed(run.arguments("train"));
    let (trained, other) = (text(&run.output()), folder.path().join("other.toml"));
    std::fs::write(&other, "seed = 3\n[data.simulated]\nn-subjects = 3000\nsize = [16, 16]\n").unwrap();
    let cache = text(&folder.path().join("cache"));
    let horizon = read(&run.output()).grid[4].to_string();
    let call = |output: &Path| {
        let arguments =
            ["predict", &trained, "--data", &text(&other), "--cache", &cache, "--horizon", &horizon, "--output"];
        arguments.into_iter().map(str::to_owned).chain([text(output)]).collect::<Vec<_>>()
    };
    let whole = folder.path().join("whole");
    succeed(call(&whole)); // decodes too
    let expected = bytes(&whole);
    let mut n_killed = 0;
    for attempt in 0..20 {
        let output = folder.path().join(format!("killed-{attempt}"));
        let blocks = output.join(".predicting/run-000");
        let mut child = fairtte().args(call(&output)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // From the first block to the last but one.
        let wanted = blocks.join(format!("block-{:06}", attempt % 5));
        while !wanted.exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().unwrap(); // SIGKILL; no effect on a call that has ended
        if child.wait().unwrap().success() || output.join("predict.json").exists() {
            continue;
        }
        assert!(wanted.exists(), "the call ended by itself");
        n_killed += 1;
        succeed(call(&output));
        assert!(bytes(&output) == expected, "killed after block {}", attempt % 5);
        if n_killed == 3 {
            break;
        }
    }
    assert!(n_killed > 0, "no call was killed before its end");
}

#[test]
fn groups_are_those_of_the_run_and_a_strategy_that_needs_them_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(&folder.path().join("trained")).set("strategy.recalibration={}");
    succeed(run.arguments("train"));
    let images = folder.path().join("new");
    let table = generic_table(&images, 12, |_, _| None);
    let cells = Table::read(&table).unwrap();
    let column = |name: &str| cells.text(name).unwrap();
    let mut lines = vec!["image,subject_id,time,event,gender,sex".to_owned()];
    for (row, (film, person)) in column("image").into_iter().zip(column("subject_id")).enumerate() {
        let sex = ["female", "M", "unknown"][row % 3];
        lines.push(format!("{},{},{},1,{sex},{sex}", film.unwrap(), person.unwrap(), row + 1));
    }
    let path = images.join("coded.csv");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let predict = |output: &str, more: &[&str]| {
        let base = ["predict", &text(&run.output()), "--table", &text(&path), "--output"].map(str::to_owned);
        let output = folder.path().join(output);
        succeed(base.into_iter().chain([text(&output)]).chain(more.iter().map(|s| (*s).to_owned())));
        output
    };
    let (plain, mapped) = (predict("plain", &[]), predict("mapped", &["--level", "sex.female=F"]));
    let notes = |folder: &Path| json(&folder.join("predict.json"))["notes"].to_string();
    assert!(notes(&plain).contains("samples with sex \\\"female\\\""), "{}", notes(&plain));
    assert!(!notes(&mapped).contains("female") && notes(&mapped).contains("unknown"), "{}", notes(&mapped));
    let groups = |folder: &Path| Table::read(&folder.join("cohort.parquet")).unwrap().text("sex").unwrap();
    let of = |code: Option<&str>| code.map(str::to_owned);
    assert_eq!(groups(&plain)[..3], [of(None), of(Some("1")), of(None)]);
    assert_eq!(groups(&mapped)[..3], [of(Some("0")), of(Some("1")), of(None)]);
    let (plain, mapped) = (read(&plain), read(&mapped));
    assert_ne!(plain.survival.row(0), mapped.survival.row(0), "the map of F is applied");
    assert_eq!(plain.survival.row(1), mapped.survival.row(1));
    // Without the column there is no map to choose.
    std::fs::write(&path, lines.join("\n").replace(",sex\n", ",other\n")).unwrap();
    let arguments =
        ["predict", &text(&run.output()), "--table", &text(&path), "--output", &text(&folder.path().join("x"))];
    fail(arguments, CONFIG, "needs_group_to_predict");
}

#[test]
fn an_ensemble_is_the_mean_of_survival_and_folds_are_pooled() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let trained = |name: &str, sets: &[&str]| {
        let mut run = SmallRun::new(&folder.path().join(name)).set(&format!("cache={}", cache.display()));
        for set in sets {
            run = run.set(set);
        }
        succeed(run.arguments("train"));
        text(&run.output())
    };
    let (first, second) = (trained("a", &[]), trained("b", &["training-seed=5"]));
    let other = folder.path().join("other.toml");
    std::fs::write(&other, "seed = 3\n[data.simulated]\nn-subjects = 20\nsize = [32, 32]\n").unwrap();
    let predict = |runs: &[&str], output: &str| {
        let output = folder.path().join(output);
        let arguments =
            ["--data", &text(&other), "--output", &text(&output), "--cache", &text(&cache)].map(str::to_owned);
        let runs = runs.iter().map(|run| (*run).to_owned());
        succeed(["predict".to_owned()].into_iter().chain(runs).chain(arguments));
        assert_eq!(
            json(&output.join("predict.json"))["runs"].as_array().unwrap().len() > 1,
            text(&output).ends_with("both")
        );
        read(&output)
    };
    let (one, two, both) = (predict(&[&first], "one"), predict(&[&second], "two"), predict(&[&first, &second], "both"));
    assert_eq!(one.grid, both.grid);
    assert_ne!(one.survival, two.survival);
    for ((one, two), mean) in one.survival.iter().zip(&two.survival).zip(&both.survival) {
        assert!((f64::midpoint(*one, *two) - mean).abs() < 1e-12);
    }
    // Three folds: every sample once, each curve from the run that has it in its test part.
    let fold =
        |fold: usize| trained(&format!("fold-{fold}"), &[&format!("split.k-fold={{ folds = 3, fold = {fold} }}")]);
    let folds: Vec<String> = (0..3).map(fold).collect();
    let pooled = folder.path().join("pooled");
    let arguments = folds.iter().cloned().chain(["--out-of-fold".to_owned(), "--output".to_owned(), text(&pooled)]);
    succeed(["predict".to_owned()].into_iter().chain(arguments));
    let table = read(&pooled);
    assert_eq!(table.samples.len(), 120);
    let last = table.grid.last().copied().unwrap();
    for run in &folds {
        let own = read(Path::new(run));
        let own_curves: HashMap<_, _> = own.samples.iter().zip(own.survival.rows()).collect();
        let split = std::fs::read_to_string(Path::new(run).join("split.csv")).unwrap();
        let in_test = |subject: &str| split.contains(&format!("{subject},test"));
        let place = |grid: &[f64], time: f64| grid.iter().position(|t| t.to_bits() == time.to_bits());
        let mut n = 0;
        for (sample, row) in table.samples.iter().zip(table.survival.rows()) {
            let subject = sample.as_str().trim_start_matches("images/").split('_').next().unwrap();
            if !in_test(subject) {
                continue;
            }
            n += 1;
            for (k, time) in own.grid.iter().enumerate().filter(|(_, time)| **time <= last) {
                let found = row[place(&table.grid, *time).unwrap()];
                assert!((found - own_curves[sample][k]).abs() < 1e-9, "{run}: {sample} at {time}");
            }
        }
        assert_eq!(n, 40, "{run}");
    }
    let twice = ["predict", &folds[0], &folds[0], "--out-of-fold", "--output", &text(&folder.path().join("x"))];
    fail(twice, CONFIG, "is in the test parts of");
    succeed([
        "evaluate",
        "--predictions",
        &text(&pooled.join("predictions.parquet")),
        "--cohort",
        &text(&pooled.join("cohort.parquet")),
        "--output",
        &text(&folder.path().join("scores")),
        "--set",
        "replicates=5",
    ]);
}

#[test]
fn pooled_folds_are_weighed_and_grouped_as_pooled_samples_and_keep_the_rows_that_every_fold_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let fold = |fold: usize| {
        let without_time = |row: usize, cells: &mut [String; 9]| {
            if row == 7 {
                cells[1].clear();
            }
        };
        let run = patients(&folder.path().join(format!("fold-{fold}")), 90, without_time)
            .set(&format!("split.k-fold={{ folds = 3, fold = {fold} }}"))
            .set("attribute=[{ name = \"sex\" }, { name = \"age\", threshold = \"median\" }]");
        succeed(run.arguments("train"));
        text(&run.output())
    };
    let folds: Vec<String> = (0..3).map(fold).collect();
    let pooled = folder.path().join("pooled");
    let arguments = folds.iter().cloned().chain(["--out-of-fold".to_owned(), "--output".to_owned(), text(&pooled)]);
    let outcome = succeed(["predict".to_owned()].into_iter().chain(arguments));
    assert!(outcome.stderr.contains("their groups are those that"), "{}", outcome.stderr);
    let record = json(&pooled.join("predict.json"));
    let counts = ["n-read", "n-excluded", "n-predicted"].map(|name| record[name].as_u64().unwrap());
    assert_eq!(counts, [90, 1, 89], "the row without a time is one of those that were read");
    let excluded = |folder: &Path| std::fs::read_to_string(folder.join("exclusions.csv")).unwrap();
    assert_eq!(excluded(&pooled), excluded(Path::new(&folds[0])));
    // One meaning of a group for all: that of the first fold.
    let groups = |folder: &Path| read_cohort(&folder.join("cohort.parquet")).unwrap().1;
    assert_eq!(groups(&pooled), groups(Path::new(&folds[0])));

    let shown = text(&pooled);
    succeed(["evaluate", &shown, "--permutations", "0"]);
    let fitted_on = |evaluation: &Value| {
        let censoring = &evaluation["input"]["censoring"];
        (censoring["fitted-on"].clone(), censoring["n"].clone(), evaluation["baseline"]["fitted-on"].clone())
    };
    let own = json(&pooled.join("evaluation.json"));
    // The training part of a fold consists of samples that are evaluated here.
    assert_eq!(fitted_on(&own), ("evaluated".into(), 89.into(), "evaluated".into()));
    let page = std::fs::read_to_string(pooled.join("report.html")).unwrap();
    assert!(page.contains("the pooled samples: 89 samples") && page.contains("pooled test parts of"));
    assert!(!page.contains("the training part of the run"));
    succeed(["evaluate", &shown, "--permutations", "0", "--censoring", "train"]);
    let of_fold = json(&pooled.join("evaluation.json"));
    let (fitted, n, baseline) = fitted_on(&of_fold);
    assert_eq!((fitted, baseline), ("train".into(), "evaluated".into()));
    assert!(n.as_u64().unwrap() < 60, "that of the first fold");
}

#[test]
fn features_do_not_depend_on_the_part_and_their_sources_of_bias_are_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(&folder.path().join("trained")).set("model.representation=16");
    succeed(run.arguments("train"));
    let trained = text(&run.output());
    succeed(["features", &trained]);
    succeed(["features", &trained, "--layer", "representation", "--part", "test"]);
    let columns = |name: &str| Table::read(&run.output().join(name)).unwrap();
    let (all, test) = (columns("features-backbone.parquet"), columns("features-representation-test.parquet"));
    assert_eq!((all.n_rows(), test.n_rows()), (120, 24));
    assert_eq!(test.names().len(), 1 + 16);
    // The same images as other data have the same features, whatever the part.
    let again = folder.path().join("again.parquet");
    let own = text(&run.folder.join("run.toml"));
    succeed(["features", &trained, "--data", &own, "--output", &text(&again)]);
    let again = Table::read(&again).unwrap();
    for name in ["sample_id", "f0", "f3"] {
        assert_eq!(again.text(name).unwrap(), all.text(name).unwrap(), "{name}");
    }
    let small = ["--permutations", "19", "--set", "n-replicates=5"];
    let outcome = succeed(["bias", &trained].iter().chain(&small));
    assert!(outcome.stdout.contains("sex"), "{}", outcome.stdout);
    let report = std::fs::read_to_string(run.output().join("report.html")).unwrap();
    assert!(report.contains("id=\"bias\"") && report.contains("the backbone of the network"));
    let (of_run, by_files) = (json(&run.output().join("bias.json")), folder.path().join("files"));
    assert_eq!(of_run["n"], 120);
    // The same numbers from files, if components are left as they are.
    let cohort = folder.path().join("cohort.csv");
    succeed(
        run.arguments("prepare")
            .into_iter()
            .chain(["--csv", "--output"].map(str::to_owned))
            .chain([text(&folder.path().join("prepared"))]),
    );
    std::fs::copy(folder.path().join("prepared/cohort.csv"), &cohort).unwrap();
    let features = text(&run.output().join("features-backbone.parquet"));
    let arguments = [
        "bias",
        "--features",
        &features,
        "--cohort",
        &text(&cohort),
        "--attributes",
        "sex",
        "--output",
        &text(&by_files),
    ];
    succeed(arguments.iter().chain(&small));
    let by_files = json(&by_files.join("bias.json"));
    for k in [3, 4] {
        // Event times and censoring rates do not depend on the scale of the features.
        let value = |report: &Value| report["attributes"][0]["sources"][k]["estimate"].to_string();
        assert_eq!(value(&of_run), value(&by_files), "source {k}");
    }
    // A further training removes what was computed from the old weights.
    succeed(
        run.clone()
            .set("training.epochs=3")
            .arguments("train")
            .into_iter()
            .chain(["--resume-from".to_owned(), trained.clone()]),
    );
    assert!(!run.output().join("features-backbone.parquet").exists() && !run.output().join("bias.json").exists());
    assert!(!std::fs::read_to_string(run.output().join("report.html")).unwrap().contains("id=\"bias\""));
}
