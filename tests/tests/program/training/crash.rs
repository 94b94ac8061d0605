//! Runs that are killed at any moment, stopped by a scheduler, or resumed for more epochs: all through the program.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "the number of killed runs, and their stages, are printed")]
#![cfg(unix)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fairtte_tests::{SmallRun, binary, fail, fairtte, files, succeed};

const CONFIG: i32 = 3;
const DATA: i32 = 4;
const TRY_AGAIN: i32 = 75;
const INTERRUPTED: i32 = 130;

/// 60 training samples: five batches of 12, three steps of two batches; the state is saved after each of them.
fn small(folder: &Path, cache: &Path, strategy: &str) -> SmallRun {
    SmallRun::new(folder)
        .set(&format!("cache={}", cache.display()))
        .set("data.simulated.n-subjects=100")
        .set(strategy)
        .set("training.epochs=3")
        .set("training.batch-size=12")
        .set("training.accumulate=2")
        .set("training.patience=9")
        .set("training.checkpoint-minutes=0.00001")
        .set("training.schedule.cosine.warm-up=2")
        .set("evaluation.replicates=2")
}

const STRATEGIES: [&str; 3] =
    ["strategy.erm={}", "strategy.group-dro.eta=0.5", "strategy.subgroup-rebalancing.by=group"];

fn start(run: &SmallRun) -> Child {
    spawn(fairtte().args(run.arguments("train")))
}

pub(super) fn spawn(command: &mut Command) -> Child {
    command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
}

fn signal(child: &Child, signal: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
}

/// The bytes of all files of predictions, by file name.
fn predictions(run: &SmallRun) -> Vec<(String, Vec<u8>)> {
    let names =
        files(&run.output()).into_iter().filter(|name| name.starts_with("predictions") || name == "selection.json");
    names.map(|name| (name.clone(), std::fs::read(run.output().join(name)).unwrap())).collect()
}

/// Numbers in [0, 1) from a seed (splitmix64).
struct Moments(u64);

impl Moments {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The stage of the run by the files in its folder.
fn stage(run: &SmallRun) -> &'static str {
    let found = files(&run.output());
    let has = |what: &str| found.iter().any(|name| name.contains(what));
    match () {
        () if has(".tmp") => "while a file was written",
        () if has("predictions") => "after the first predictions",
        () if has("-batch-") => "in the middle of an epoch",
        () if has("checkpoint/epoch") => "between epochs",
        () => "before the first state",
    }
}

#[test]
fn runs_killed_at_thirty_random_moments_end_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let mut moments = Moments(20_261_121);
    let mut stages = std::collections::BTreeMap::new();
    let (mut n_kills, mut n_ends) = (0, 0);
    for (number, strategy) in STRATEGIES.iter().enumerate() {
        let whole = small(&folder.path().join(format!("whole-{number}")), &cache, strategy);
        succeed(whole.arguments("train")); // fills the cache too
        let again = small(&folder.path().join(format!("again-{number}")), &cache, strategy);
        let began = Instant::now();
        succeed(again.arguments("train"));
        let took = began.elapsed();
        let expected = predictions(&whole);
        assert!(expected.len() >= 2 && expected == predictions(&again), "{strategy}: two runs differ");
        let mut killed = 0;
        for attempt in 0.. {
            let run = small(&folder.path().join(format!("killed-{number}-{attempt}")), &cache, strategy);
            loop {
                let mut child = start(&run);
                if killed < 10 {
                    std::thread::sleep(Duration::from_secs_f64(took.as_secs_f64() * 1.1 * moments.next()));
                    child.kill().unwrap(); // SIGKILL; no effect on a run that has ended
                }
                let status = child.wait().unwrap();
                if status.success() {
                    break;
                }
                assert_eq!(status.code(), None, "{strategy}: the signal did not end it");
                killed += 1;
                *stages.entry(stage(&run)).or_insert(0) += 1;
            }
            n_ends += 1;
            assert!(predictions(&run) == expected, "{strategy}: a killed run has other results");
            if killed >= 10 {
                break;
            }
        }
        n_kills += killed;
    }
    println!("{n_kills} kills, {n_ends} runs to the end: {stages:?}");
    assert_eq!(n_kills, 30);
}

/// Starts a training, sends `name` once it has printed `after`, and returns the exit code and standard error.
fn stop(run: &SmallRun, name: &str, after: &str) -> (i32, String) {
    send(start(run), name, after)
}

/// Sends `name` to a program once it has printed `after`, and returns its exit code and standard error.
pub(super) fn send(mut child: Child, name: &str, after: &str) -> (i32, String) {
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut seen = String::new();
    for line in lines.by_ref() {
        let line = line.unwrap();
        seen.push_str(&line);
        seen.push('\n');
        if line.starts_with(after) {
            signal(&child, name);
            break;
        }
    }
    for line in lines {
        seen.push_str(&line.unwrap());
        seen.push('\n');
    }
    (child.wait().unwrap().code().unwrap_or(-1), seen)
}

#[test]
fn a_scheduler_that_asks_for_an_end_gets_a_state_and_the_code_to_try_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    for (number, strategy) in STRATEGIES.iter().enumerate() {
        // No checkpoints by time, so that a state in the middle of an epoch was saved for the signal.
        let of = |name: &str| {
            let run = small(&folder.path().join(format!("{name}-{number}")), &cache, strategy);
            run.set("training.checkpoint-minutes=0").set("training.epochs=12").set("training.patience=40")
        };
        let whole = of("whole");
        succeed(whole.arguments("train"));
        let expected = predictions(&whole);
        for (name, code) in [("-TERM", TRY_AGAIN), ("-USR1", TRY_AGAIN), ("-INT", INTERRUPTED)] {
            let run = of(name);
            let (found, stderr) = stop(&run, name, "epoch   2 of");
            assert_eq!(found, code, "{name}: {stderr}");
            assert!(stderr.contains("the state is saved, the same command resumes from there"), "{stderr}");
            assert!(files(&run.output()).iter().any(|file| file.ends_with("trainer.json")), "{name}");
            let outcome = succeed(run.arguments("train"));
            assert!(outcome.stderr.contains("resuming after"), "{}", outcome.stderr);
            assert!(predictions(&run) == expected, "{strategy} after {name}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_training_started_to_outlive_its_terminal_does() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    // This test may itself have been started by `nohup`.
    let is_ignored = u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 1;
    let plain = if is_ignored { 0 } else { TRY_AGAIN };
    for (name, prelude, expected) in [("plain", "", plain), ("nohup", "trap '' HUP; ", 0)] {
        let run = small(&folder.path().join(name), &cache, STRATEGIES[0]).set("training.epochs=8");
        // As `nohup` does it.
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{prelude}exec \"$0\" \"$@\"")]).arg(binary()).args(run.arguments("train"));
        let (found, stderr) = send(spawn(&mut shell), "-HUP", "epoch   1 of");
        assert_eq!(found, expected, "{name}: {stderr}");
        assert_eq!(run.output().join("done").exists(), expected == 0, "{name}: {stderr}");
    }
}

#[test]
fn a_signal_after_the_last_epoch_is_obeyed_before_anything_is_predicted() {
    let folder = tempfile::tempdir().unwrap();
    // The average of weights needs one more pass over the training part.
    let run =
        small(folder.path(), &folder.path().join("cache"), "strategy.swad={}").set("data.simulated.n-subjects=600");
    let (code, stderr) = stop(&run, "-TERM", "epoch   3 of");
    assert_eq!(code, TRY_AGAIN, "{stderr}");
    assert!(stderr.contains("interrupted in epoch 3 after batch"), "{stderr}");
    assert!(!run.output().join("predictions.parquet").exists() && !run.output().join("done").exists());
    succeed(run.arguments("train"));
    assert!(run.output().join("done").exists());
}

#[test]
fn a_signal_outside_of_training_ends_the_program_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for (name, code) in [("-USR1", TRY_AGAIN), ("-INT", INTERRUPTED)] {
        let run = small(&folder.path().join(name), &folder.path().join(format!("cache{name}")), STRATEGIES[0])
            .set("data.simulated.n-subjects=2000");
        let (found, stderr) = stop(&run, name, "training \"small\"");
        assert_eq!(found, code, "{name}: {stderr}");
        assert!(!run.output().join("checkpoint").exists());
    }
}

#[test]
fn a_finished_run_goes_on_for_more_epochs_as_if_it_had_always_had_them() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let of = |name: &str, epochs: usize| {
        let run = small(&folder.path().join(name), &cache, STRATEGIES[1]).set(&format!("training.epochs={epochs}"));
        run.set("training.schedule.step.every=2").set("training.patience=20")
    };
    let (long, short) = (of("long", 5), of("short", 3));
    succeed(long.arguments("train"));
    succeed(short.arguments("train"));
    let origin = short.output().display().to_string();
    let copy = folder.path().join("copy");
    let resume = |sets: &[&str], output: Option<&Path>| {
        let mut arguments = vec!["train".to_owned(), "--resume-from".to_owned(), origin.clone()];
        arguments.extend(sets.iter().flat_map(|set| ["--set".to_owned(), (*set).to_owned()]));
        arguments.extend(output.into_iter().flat_map(|path| ["--output".to_owned(), path.display().to_string()]));
        arguments
    };
    let before = predictions(&short);

    // Settings that would change the result are refused, in the same folder and in another one.
    for output in [None, Some(copy.as_path())] {
        let refused = resume(&["training.batch-size=8", "optimiser.learning-rate=0.5"], output);
        let sentence = "holds a run with other settings: optimiser.learning-rate is 0.001 there and 0.5 here; \
                        training.batch-size is 12 there and 8 here";
        fail(refused, CONFIG, sentence);
        fail(resume(&["training.epochs=2"], output), CONFIG, "training.epochs is 3 there and 2 here");
    }
    assert!(!copy.exists() && predictions(&short) == before);

    // In another folder: the origin is unchanged.
    succeed(resume(&["training.epochs=5", "threads=1", "training.checkpoint-minutes=7", "name=longer"], Some(&copy)));
    let copied = SmallRun::new(&folder.path().join("unused"));
    assert!(!copied.output().exists());
    let read = |folder: &Path| std::fs::read(folder.join("predictions.parquet")).unwrap();
    assert!(read(&copy) == read(&long.output()), "the copy has other results");
    assert!(predictions(&short) == before);
    assert!(std::fs::read_to_string(copy.join("run.toml")).unwrap().contains("name = \"longer\""));

    // In the same folder.
    succeed(resume(&["training.epochs=5"], None));
    assert!(predictions(&short) == predictions(&long), "resumed in place");
    let outcome = succeed(resume(&[], None));
    assert!(outcome.stderr.contains("this run is done"), "{}", outcome.stderr);
    let nothing = folder.path().display().to_string();
    fail(
        ["train".to_owned(), "--resume-from".to_owned(), nothing],
        DATA,
        "this is not the folder of a run: it has no run.toml",
    );
}

/// Weights of `small-2d` with which a black picture gives 0 and a white one exceeds the range of 32 bits.
fn explosive_weights(path: &Path) {
    let widths = [1, 16, 32, 64, 64];
    let mut header = serde_json::Map::new();
    let mut data: Vec<u8> = Vec::new();
    let mut push = |key: String, shape: Vec<usize>, value: &dyn Fn(usize) -> f32| {
        let (start, n) = (data.len(), shape.iter().product::<usize>());
        data.extend((0..n).flat_map(|i| value(i).to_le_bytes()));
        let entry = serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] });
        header.insert(key, entry);
    };
    for layer in 0..4 {
        let shape = vec![widths[layer + 1], widths[layer], 3, 3];
        let weight = |i: usize| if layer == 0 { 1e38 } else { 0.2 * (i as f32 * 0.7).sin() };
        push(format!("layers.{layer}.conv.weight"), shape, &weight);
        for (part, value) in [("gamma", 1.0), ("beta", 0.1), ("running_mean", 0.0), ("running_var", 1.0)] {
            push(format!("layers.{layer}.norm.{part}"), vec![widths[layer + 1]], &|_| value);
        }
    }
    header.insert("__metadata__".to_owned(), serde_json::json!({ "fairtte.backbone": "small-2d" }));
    let header = serde_json::Value::Object(header).to_string();
    std::fs::write(path, [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()).unwrap();
}

#[test]
fn a_sample_whose_loss_explodes_is_named_and_the_last_good_state_stays() {
    const BRIGHT: usize = 33;
    let folder = tempfile::tempdir().unwrap();
    let table = fairtte_tests::generic_table(folder.path(), 80, |_, _| None);
    for row in 0..80 {
        let shade = image::Luma([if row == BRIGHT { 255_u8 } else { 0 }]);
        image::GrayImage::from_pixel(32, 32, shade).save(folder.path().join(format!("{row}.png"))).unwrap();
    }
    let weights = folder.path().join("explosive.safetensors");
    explosive_weights(&weights);
    let run = SmallRun::with_data(
        &folder.path().join("run"),
        &format!("intensity = \"unit\"\n{}", fairtte_tests::generic_data(&table)),
    )
    .set(&format!("pretrained.path='{}'", weights.display()))
    .set("training.batch-size=8")
    .set("training.checkpoint-minutes=0.00001");
    let state = || files(&run.output()).into_iter().filter(|file| file.starts_with("checkpoint")).collect::<Vec<_>>();
    let outcome = fail(run.arguments("train"), 5, "the loss is NaN in epoch 1, step ");
    let line = outcome.stderr.lines().find(|line| line.contains("the loss is NaN")).unwrap();
    let samples = line.split("(samples ").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
    let samples: Vec<&str> = samples.split(", ").collect();
    assert_eq!(samples.len(), 8, "{line}");
    assert!(samples.iter().any(|sample| sample.contains(&format!("{BRIGHT}"))), "{line}");
    let kept = state();
    assert!(kept.iter().any(|file| file.contains("epoch-00000-batch-") && file.ends_with("trainer.json")), "{kept:?}");
    // The state before that batch was saved: resuming from it fails at the same place.
    let again = fail(run.arguments("train"), 5, "the loss is NaN in epoch 1, step ");
    assert!(again.stderr.contains("resuming after batch") && again.stderr.contains(line.trim()), "{}", again.stderr);
    assert_eq!(state(), kept);
}
