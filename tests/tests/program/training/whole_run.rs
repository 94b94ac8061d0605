//! All steps through the binary: demo, files of a run, evaluation without a model, outside curves, determinism, and
//! runs that are stopped in the middle.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use fairtte_tests::{SmallRun, c_td, fail, fairtte, files, patients, report, succeed};

#[test]
fn the_quick_demo_runs_from_nothing_and_shows_its_result_again() {
    let folder = tempfile::tempdir().unwrap();
    let demo = |extra: &[&str]| {
        let output = folder.path().join("demo").display().to_string();
        let arguments = ["demo", "--quick", "--output", &output];
        succeed(arguments.iter().chain(extra).map(|argument| (*argument).to_owned()))
    };
    let first = demo(&[]);
    for expected in ["C^td", "AUC^td", "IBS", "sex", "gap", "worst", "equity", "report:"] {
        assert!(first.stdout.contains(expected), "{expected} is missing in\n{}", first.stdout);
    }
    assert!(first.stderr.contains("epoch   1 of 2"), "plain lines where there is no terminal: {}", first.stderr);
    let run = folder.path().join("demo/run");
    let found = files(&run);
    for file in [
        "cohort.parquet",
        "done",
        "evaluation.json",
        "exclusions.csv",
        "predictions.parquet",
        "report.html",
        "run.toml",
        "split.csv",
        "steps.jsonl",
    ] {
        assert!(found.contains(&file.to_owned()), "{file} is missing in {found:?}");
    }
    assert!(found.iter().all(|file| !file.contains(".tmp")), "{found:?}");
    let steps = std::fs::read_to_string(run.join("steps.jsonl")).unwrap();
    assert_eq!(steps.lines().count(), 2);
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("<script"), "a page without script, with figures");

    let again = demo(&["--json"]);
    assert!(again.stderr.contains("this run is done"), "{}", again.stderr);
    let shown: fairtte_metrics::EvaluationReport = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(shown, report(&run));
}

#[test]
fn a_finished_run_is_evaluated_again_without_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path());
    let before = run.train();
    let output = run.output();
    std::fs::remove_dir_all(output.join("checkpoint")).unwrap();
    std::fs::remove_dir_all(folder.path().join("cache")).unwrap();
    std::fs::remove_file(output.join("evaluation.json")).unwrap();
    let path = output.display().to_string();
    succeed(["evaluate", &path]);
    assert_eq!(report(&output), before);

    let step = folder.path().join("step").display().to_string();
    succeed(["evaluate", &path, "--set", "reading=step", "--set", "replicates=0", "--output", &step]);
    let other = report(step.as_ref());
    assert_eq!((other.reading.as_str(), other.settings.replicates), ("step", 0));
    assert_eq!(report(&output), before, "another output does not change the run folder");
    succeed(["evaluate", &path, "--part", "validation"]);
    assert_eq!(report(&output), before, "the validation part has files of its own");
    let text = std::fs::read_to_string(output.join("evaluation-validation.json")).unwrap();
    assert!(text.contains("\"part\": \"validation\"") && text.contains("\"device\": \"flex\""), "{text}");
}

#[test]
fn curves_of_an_outside_model_are_scored_the_same_way() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    // Computed by hand: comparable pairs are (a,b), (a,c), (a,d), (b,c), (b,d); the curve of d is below b's at time 2.
    let cohort =
        write("cohort.csv", "sample_id,subject_id,time,event,sex_group\na,1,1,1,F\nb,2,2,1,F\nc,3,3,0,M\nd,4,4,1,M\n");
    let predictions = write(
        "predictions.csv",
        "sample_id,0,1,2,3,4\nd,1,0.9,0.3,0.2,0.1\na,1,0.4,0.3,0.2,0.1\nb,1,0.6,0.5,0.4,0.3\nc,1,0.8,0.7,0.6,0.5\n",
    );
    let output = folder.path().join("scored").display().to_string();
    let outcome =
        succeed(["evaluate", "--predictions", &predictions, "--cohort", &cohort, "--output", &output, "--json"]);
    assert!((c_td(&report(output.as_ref())) - 4.0 / 5.0).abs() < 1e-12, "{}", outcome.stdout);

    let lacking = write("lacking.csv", "sample_id,0,1\na,1,0.5\n");
    let sentence = "sample \"b\" has no prediction, expected one for every evaluated sample";
    fail(["evaluate", "--predictions", &lacking, "--cohort", &cohort, "--output", &output], 4, sentence);
    let strange = write("strange.csv", "sample_id,0,1\nz,1,0.5\n");
    let sentence = "sample \"z\" is predicted but is not in the cohort";
    fail(["evaluate", "--predictions", &strange, "--cohort", &cohort, "--output", &output], 4, sentence);
    let beyond = write("beyond.csv", "sample_id,0,1\na,1,1.5\n");
    let sentence = "survival of sample \"a\" at time 1 is 1.5, expected a probability in [0, 1]";
    fail(["evaluate", "--predictions", &beyond, "--cohort", &cohort, "--output", &output], 4, sentence);
}

#[test]
fn the_same_seed_gives_the_same_bytes_with_one_and_two_threads() {
    let folder = tempfile::tempdir().unwrap();
    let predictions = |name: &str, threads: usize, seed: u64| {
        let run = SmallRun::new(&folder.path().join(name))
            .set(&format!("threads={threads}"))
            .set(&format!("seed={seed}"))
            .set("strategy.group-dro.eta=0.05");
        run.train();
        std::fs::read(run.output().join("predictions.parquet")).unwrap()
    };
    let first = predictions("first", 2, 1);
    assert!(first == predictions("second", 2, 1), "two runs of one seed differ");
    assert!(first == predictions("one-thread", 1, 1), "the number of threads changes the result");
    assert!(first != predictions("other", 2, 2), "another seed gives the same predictions");
}

#[test]
fn a_strategy_that_predicts_by_group_says_so_before_it_trains() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path()).set("strategy.recalibration.method=\"hazard-intercept\"");
    let outcome = succeed(run.arguments("train"));
    let note = "note: recalibration predicts by \"sex\", which is missing in 0 of ";
    assert!(outcome.stderr.contains(note), "{}", outcome.stderr);
    let plain = SmallRun::new(&folder.path().join("plain"));
    assert!(!succeed(plain.arguments("train")).stderr.contains("predicts by"));
    let bytes = |run: &SmallRun| std::fs::read(run.output().join("predictions.parquet")).unwrap();
    assert!(bytes(&run) != bytes(&plain), "the maps change nothing");
}

/// Starts a training, waits for its second epoch to end, sends `signal`, and returns the exit code and standard error.
#[cfg(unix)]
fn stop_after_two_epochs(run: &SmallRun, signal: &str) -> (i32, String) {
    let mut child =
        fairtte().args(run.arguments("train")).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut seen = String::new();
    for line in lines.by_ref() {
        let line = line.unwrap();
        seen += &line;
        seen.push('\n');
        if line.starts_with("epoch   2 of") {
            let id = child.id().to_string();
            assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
            break;
        }
    }
    for line in lines {
        seen += &line.unwrap();
        seen.push('\n');
    }
    (child.wait().unwrap().code().unwrap_or(-1), seen)
}

#[test]
#[cfg(unix)]
fn a_run_that_is_stopped_or_killed_goes_on_and_ends_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let run =
        |name: &str| SmallRun::new(&folder.path().join(name)).set("training.epochs=30").set("training.patience=30");
    let whole = run("whole");
    let expected = whole.train();
    let expected_bytes = std::fs::read(whole.output().join("predictions.parquet")).unwrap();
    for (name, signal, code) in [("interrupted", "-INT", 130), ("killed", "-KILL", -1)] {
        let stopped = run(name);
        let (found, stderr) = stop_after_two_epochs(&stopped, signal);
        assert_eq!(found, code, "{name}: {stderr}");
        if code == 130 {
            assert!(stderr.contains("interrupted in epoch"), "{stderr}");
            assert!(stderr.contains("the same command resumes from there"), "{stderr}");
        }
        assert!(!stopped.output().join("done").exists(), "{name}");
        assert!(!stopped.output().join("predictions.parquet").exists(), "{name}");
        let outcome = succeed(stopped.arguments("train"));
        assert!(outcome.stderr.contains("resuming after epoch"), "{}", outcome.stderr);
        assert!(std::fs::read(stopped.output().join("predictions.parquet")).unwrap() == expected_bytes, "{name}");
        assert_eq!(report(&stopped.output()), expected, "{name}");
    }
}

#[test]
fn a_log_that_a_kill_cut_off_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path());
    run.train();
    let output = run.output();
    let log = output.join("steps.jsonl");
    let whole = std::fs::read_to_string(&log).unwrap();
    // As if the run had been killed between the last checkpoint and the log.
    std::fs::write(&log, whole.lines().next().unwrap()).unwrap();
    std::fs::remove_file(output.join("done")).unwrap();
    run.train();
    assert_eq!(std::fs::read_to_string(&log).unwrap(), whole);
}

#[test]
#[cfg(unix)]
fn a_reader_who_leaves_early_is_no_error() {
    let script = format!("'{}' list | head -1; exit ${{PIPESTATUS[0]}}", fairtte_tests::binary().display());
    let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
}

// A shift changes the training outcomes, cox curves begin at 1 and have a time of their own, the grid is finer than the cuts.
#[test]
fn validation_in_training_gives_the_numbers_of_the_evaluation() {
    let folder = tempfile::tempdir().unwrap();
    for (name, head) in [("cox", "head.cox.ties=efron"), ("pc", "head.pc-hazard={}"), ("pmf", "head.pmf={}")] {
        let run = SmallRun::new(&folder.path().join(name))
            .set(head)
            .set(&format!("cache={}", folder.path().join("cache").display()))
            .set("time.points-per-interval=3")
            .set("shift={ attribute = \"sex\", group = \"F\", censoring-flip = 0.5 }")
            .set("evaluation.n-times=17")
            .set("training.epochs=3");
        run.train();
        let output = run.output();
        succeed(["evaluate", &output.display().to_string(), "--part", "validation"]);
        let text = std::fs::read_to_string(output.join("evaluation-validation.json")).unwrap();
        let report: fairtte_metrics::EvaluationReport = serde_json::from_str(&text).unwrap();
        let steps = std::fs::read_to_string(output.join("steps.jsonl")).unwrap();
        let epochs: Vec<serde_json::Value> = steps.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let best = epochs.iter().rfind(|epoch| epoch["best"] == true).unwrap();
        for (metric, key) in [("c_td_antolini_strict", "c_td"), ("auc_td", "auc_td"), ("ibs", "ibs")] {
            let metric = report.metric(metric).unwrap();
            let validation = &best["validation"];
            assert!(metric.overall.value.is_some(), "{name} {key}");
            assert_eq!(validation[key].as_f64(), metric.overall.value, "{name} {key}");
            for (group, found) in metric.attributes[0].groups.iter().zip(validation["groups"].as_array().unwrap()) {
                assert_eq!(found["level"], group.level.as_str());
                assert_eq!(found[key].as_f64(), group.estimate.value, "{name} {key} of {}", group.level);
            }
        }
    }
}

#[test]
fn the_automatic_time_grid_is_said_in_the_log_in_the_record_and_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    for (name, power, kind) in [("even", 0.5, "equidistant"), ("skewed", 4.0, "quantile")] {
        let changed = |_, cells: &mut [String; 9]| cells[1] = cells[1].parse::<f64>().unwrap().powf(power).to_string();
        let run = patients(&folder.path().join(name), 200, changed).set("time.grid=auto").set("training.epochs=1");
        let said = succeed(run.arguments("train")).stderr;
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let (table, split) = (read(&run.folder.join("patients.csv")), read(&run.output().join("split.csv")));
        let rows = table.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
        let rows = rows.filter(|row| split.contains(&format!("{},train", row[0])));
        let train: Vec<(f64, bool)> = rows.map(|row| (row[1].parse().unwrap(), row[2] == "1")).collect();
        // The share of the events in the fullest of nine equal intervals, each with its end.
        let step = train.iter().map(|(time, _)| *time).fold(0.0, f64::max) / 9.0;
        let events: Vec<f64> = train.iter().filter(|(_, event)| *event).map(|(time, _)| *time).collect();
        let place = |time: f64| (1..9).position(|k| time <= f64::from(k) * step).unwrap_or(8);
        let most = (0..9).map(|k| events.iter().filter(|time| place(**time) == k).count()).max().unwrap();
        let share = most as f64 / events.len() as f64;
        let record: serde_json::Value = serde_json::from_str(&read(&run.output().join("time-grid.json"))).unwrap();
        assert_eq!((&record["asked"], &record["kind"]), (&"auto".into(), &kind.into()), "{name}");
        let of_record = record["largest-share"].as_f64().unwrap();
        assert!((of_record - share).abs() < 1e-12, "{name}: {of_record}, counted {share}");
        assert_eq!(kind == "quantile", share > 4.0 / 9.0, "{name}: {share}");
        let sentence = format!(
            "{kind}, {} cut points (chosen: of equal intervals the fullest has {:.0} % of the training events, limit 44 %)",
            record["n"],
            100.0 * share
        );
        assert_eq!(record["sentence"], sentence.as_str());
        assert!(said.lines().any(|line| line.ends_with(&format!("time grid: {sentence}"))), "{said}");
        assert!(read(&run.output().join("report.html")).contains(&sentence), "{name}");
    }
}

#[test]
fn a_dry_run_writes_nothing_and_prints_what_a_run_file_says() {
    let folder = tempfile::tempdir().unwrap();
    let run = SmallRun::new(folder.path()).set("training.epochs=7");
    let mut arguments = run.arguments("train");
    arguments.push("--dry-run".to_owned());
    let outcome = succeed(&arguments);
    assert!(outcome.stdout.contains("epochs = 7"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("gradient-clip = 5.0"), "defaults are written out: {}", outcome.stdout);
    assert_eq!(files(folder.path()), ["run.toml"]);
}

#[test]
fn simulate_writes_a_table_that_the_generic_adapter_reads() {
    let folder = tempfile::tempdir().unwrap();
    let films = folder.path().join("films").display().to_string();
    let sets = ["--set", "n-subjects=60", "--set", "size=[32, 32]", "--set", "bias.censoring-rate=0.5"];
    let simulate = ["simulate", "--output", &films].into_iter().chain(sets);
    let outcome = succeed(simulate);
    assert!(outcome.stdout.contains("60 images, 60 subjects"), "{}", outcome.stdout);
    let table = folder.path().join("films/manifest.csv");
    let run = SmallRun::with_data(&folder.path().join("run"), &fairtte_tests::generic_data(&table));
    assert_eq!(run.train().n, 12);
}
