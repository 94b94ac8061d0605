//! Runs that predict masks: simulated discs and cups with a planted difference between groups, their files, their evaluation, which is
//! that of `evaluate-masks`, and what refuses them.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "the numbers behind a bound are printed")]

use std::path::{Path, PathBuf};

use fairtte_data::image::{Limits, read_label_map, write_mask};
use fairtte_tests::{fail, fairtte, files, succeed};
use serde_json::Value;

#[cfg(unix)]
use super::crash::{send, spawn};

const CONFIG: i32 = 3;

fn words(path: &Path) -> String {
    path.display().to_string()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Simulated eyes, and a run file on them; `further` is added at its end.
fn eyes(folder: &Path, sets: &[&str], further: &str) -> String {
    let data = words(&folder.join("eyes"));
    let mut arguments = vec!["simulate", "--kind", "discs", "--output", &data];
    for set in sets {
        arguments.extend(["--set", set]);
    }
    succeed(arguments);
    run_file(folder, further)
}

fn run_file(folder: &Path, further: &str) -> String {
    let text = format!(
        "output = '{0}/run'\ncache = '{0}/cache'\n[data.generic]\ntable = '{0}/eyes/manifest.csv'\nmask = \"mask\"\n\
         [[attribute]]\nname = \"sex\"\n[task]\nkind = \"segmentation\"\n\
         segmentation = {{ classes = {{ disc = [1, 2], cup = [2] }}, cup = \"cup\", disc = \"disc\" }}\n\
         [evaluation]\nreplicates = 20\npermutations = 0\nmin-events = 3\n{further}",
        folder.display()
    );
    let path = folder.join("eyes.toml");
    std::fs::write(&path, text).unwrap();
    words(&path)
}

const SMALL: &str = "[image]\nsize = [32, 32]\n[training]\nepochs = 2\nbatch-size = 8\n";

/// Value of a metric of a class: of everybody, or of a level of the attribute.
fn value(evaluation: &Value, name: &str, level: Option<&str>) -> f64 {
    let metrics = evaluation["metrics"].as_array().unwrap();
    let metric = metrics.iter().find(|metric| metric["name"] == name);
    let metric =
        metric.unwrap_or_else(|| panic!("{name}: {:?}", metrics.iter().map(|m| &m["name"]).collect::<Vec<_>>()));
    let estimate = match level {
        None => &metric["overall"],
        Some(level) => {
            let groups = metric["attributes"][0]["groups"].as_array().unwrap();
            &groups.iter().find(|group| group["level"] == level).unwrap()["estimate"]
        }
    };
    estimate["value"].as_f64().unwrap()
}

/// True and predicted values of the pixels of a sample.
type Pair = [Vec<i64>; 2];

/// The masks that a table of a run names.
fn pairs_of(run: &Path, table: &str) -> Vec<Pair> {
    let text = std::fs::read_to_string(run.join(table)).unwrap();
    let pair = |line: &str| {
        let files: Vec<PathBuf> = line.split(',').skip(2).take(2).map(|file| run.join(file)).collect();
        [0, 1].map(|k| {
            let map = read_label_map(&files[k], &Limits::default()).unwrap();
            map.labels.iter().map(|label| i64::from(*label)).collect()
        })
    };
    text.lines().skip(1).map(pair).collect()
}

/// 2 |A and B| / (|A| + |B|), 1 of two empty masks.
fn dice([truth, predicted]: &Pair, values: &[i64]) -> f64 {
    let n = |is: &dyn Fn(i64, i64) -> bool| truth.iter().zip(predicted).filter(|(a, b)| is(**a, **b)).count() as f64;
    let (a, b) = (n(&|a, _| values.contains(&a)), n(&|_, b| values.contains(&b)));
    let both = n(&|a, b| values.contains(&a) && values.contains(&b));
    if a + b > 0.0 { 2.0 * both / (a + b) } else { 1.0 }
}

#[test]
fn masks_are_learnt_written_and_evaluated_as_those_of_any_model() {
    let folder = tempfile::tempdir().unwrap();
    let config = eyes(folder.path(), &["n-subjects=60", "size=48"], SMALL);
    succeed(["train", "--config", &config]);
    let run: PathBuf = folder.path().join("run");
    for name in ["masks.csv", "masks-validation.csv", "evaluation.json", "report.html", "samples.csv", "done"] {
        assert!(run.join(name).exists(), "{name}");
    }
    assert!(!run.join("predictions.parquet").exists());
    // Predicted masks have the size of the true ones, and only their values.
    let table = std::fs::read_to_string(run.join("masks.csv")).unwrap();
    let mut n = 0;
    for line in table.lines().skip(1) {
        let predicted = run.join(line.split(',').nth(3).unwrap());
        let found = read_label_map(&predicted, &Limits::default()).unwrap();
        assert_eq!(found.extents, [48, 48]);
        assert!(found.labels.iter().all(|label| (0..=2).contains(label)));
        n += 1;
    }
    let evaluation = json(&run.join("evaluation.json"));
    assert_eq!((&evaluation["task"], evaluation["n"].as_u64()), (&Value::from("masks"), Some(n)));
    // The run is evaluated by what evaluates any model's masks.
    let outside = words(&folder.path().join("outside"));
    succeed([
        "evaluate-masks",
        "--table",
        &words(&run.join("masks.csv")),
        "--classes",
        "disc=1+2,cup=2",
        "--cup",
        "cup",
        "--disc",
        "disc",
        "--attributes",
        "sex",
        "--output",
        &outside,
        "--min-samples",
        "3",
        "--set",
        "replicates=20",
        "--set",
        "permutations=0",
    ]);
    let outside = json(&Path::new(&outside).join("evaluation.json"));
    for metric in outside["metrics"].as_array().unwrap() {
        let name = metric["name"].as_str().unwrap();
        let own = evaluation["metrics"].as_array().unwrap().iter().find(|own| own["name"] == name).unwrap();
        assert_eq!(metric["overall"], own["overall"], "{name}");
    }
    // The epochs are those of the metrics of masks, and `evaluate` scores the other part.
    let steps = std::fs::read_to_string(run.join("steps.jsonl")).unwrap();
    let epoch: Value = serde_json::from_str(steps.lines().last().unwrap()).unwrap();
    assert!(epoch["validation"]["dice"].as_f64().is_some() && epoch["validation"].get("c_td").is_none(), "{epoch}");
    let selection = json(&run.join("selection.json"));
    let rules: Vec<&String> = selection["rules"].as_object().unwrap().keys().collect();
    assert_eq!(rules, ["dice", "dice-ce", "gap-dice", "worst-group-dice"]);
    let again = succeed(["evaluate", &words(&run), "--part", "validation", "--set", "replicates=0", "--json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    let validation = pairs_of(&run, "masks-validation.csv");
    assert!(validation.len() >= 6 && again["n"] == validation.len(), "{again}");
    for (class, values) in [("disc", &[1, 2][..]), ("cup", &[2][..])] {
        let expected = validation.iter().map(|pair| dice(pair, values)).sum::<f64>() / validation.len() as f64;
        let found = value(&again, &format!("dice-{class}"), None);
        assert!((found - expected).abs() < 1e-12, "{class}: {found} is not {expected}");
        assert!(
            (found - value(&evaluation, &format!("dice-{class}"), None)).abs() > 1e-9,
            "{class}: it is the test part"
        );
    }
    let comparison = words(&folder.path().join("comparison.toml"));
    let table = "[compare]\nattributes = [\"sex\"]\nseeds = [1]\n[compare.strategy.erm]\n";
    std::fs::write(&comparison, std::fs::read_to_string(&config).unwrap() + table).unwrap();
    let study = words(&folder.path().join("study.toml"));
    std::fs::write(&study, format!("trials = 1\n[[data]]\nrun-file = '{config}'\n[strategies]\nnames = [\"febs\"]\n"))
        .unwrap();
    for (arguments, sentence) in [
        (vec!["evaluate", "RUN", "--horizon", "2"], "masks have no times"),
        (vec!["evaluate", "RUN", "--set", "reading=step"], "it has no effect on masks"),
        (vec!["card", "RUN"], "predicts masks"),
        (vec!["bias", "RUN"], "predicts masks"),
        (vec!["explain", "RUN", "--horizon", "2", "--samples", "000000"], "predicts masks"),
        (vec!["features", "RUN"], "predicts masks"),
        (vec!["weights", "export", "RUN", "--output", "weights.safetensors"], "predicts masks"),
        (vec!["predict", "RUN", "--data", "FILE", "--output", "OTHER"], "predicts masks"),
        (vec!["predict", "RUN", "RUN", "--out-of-fold", "--output", "OTHER"], "predicts masks"),
        (vec!["select", "RUN"], "predicts masks"),
        (vec!["compare", "--config", "COMPARISON"], "predicts masks"),
        (vec!["study", "plan", "STUDY"], "predicts masks"),
    ] {
        let of = |word: &str| match word {
            "RUN" => words(&run),
            "FILE" => config.clone(),
            "STUDY" => study.clone(),
            "COMPARISON" => comparison.clone(),
            "OTHER" => words(&folder.path().join("other")),
            word => word.to_owned(),
        };
        fail(arguments.into_iter().map(of), CONFIG, sentence);
    }
}

#[test]
fn a_class_that_no_mask_of_a_part_has_is_a_warning_for_a_run_and_refused_in_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let config = eyes(folder.path(), &["n-subjects=40", "size=32"], SMALL);
    succeed(["train", "--config", &config]);
    let run = folder.path().join("run");
    // As in a test part in which nobody has the rare class: without cups, true and predicted.
    let table = std::fs::read_to_string(run.join("masks.csv")).unwrap();
    for file in table.lines().skip(1).flat_map(|line| line.split(',').skip(2).take(2)) {
        let path = run.join(file);
        let map = read_label_map(&path, &Limits::default()).unwrap();
        let labels: Vec<u8> = map.labels.iter().map(|label| u8::from(*label > 0)).collect();
        write_mask(&path, &labels, [map.extents[0], map.extents[1]]).unwrap();
    }
    let outcome = succeed(["evaluate", &words(&run)]);
    assert!(outcome.stderr.contains("No true and no predicted mask has a pixel of cup"), "{}", outcome.stderr);
    let evaluation = json(&run.join("evaluation.json"));
    let names: Vec<&str> =
        evaluation["warnings"].as_array().unwrap().iter().map(|warning| warning["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"class-in-no-mask") && !names.contains(&"class-in-one-kind-of-masks"), "{names:?}");
    let (table, output) = (words(&run.join("masks.csv")), words(&folder.path().join("again")));
    let call = ["evaluate-masks", "--table", &table, "--classes", "disc=1+2,cup=2", "--output", &output];
    fail(call, CONFIG, "no mask has a pixel of class \"cup\" (2)");
}

/// The bytes of all masks and of their tables, by file name.
fn masks_of(run: &Path) -> Vec<(String, Vec<u8>)> {
    let names = files(run).into_iter().filter(|name| name.starts_with("masks") || name == "selection.json");
    names.map(|name| (name.clone(), std::fs::read(run.join(name)).unwrap())).collect()
}

/// Killed in the first epoch's wake, in the second's, and while masks are written. The running Dice losses of `febs` are part of its
/// state.
#[test]
#[cfg(unix)]
fn a_run_of_masks_that_is_killed_ends_with_the_same_masks() {
    let folder = tempfile::tempdir().unwrap();
    let small = SMALL.replace("epochs = 2", "epochs = 4\ncheckpoint-minutes = 0.00001");
    let config = eyes(folder.path(), &["n-subjects=40", "size=32"], &small);
    let arguments = |name: &str| {
        let output = words(&folder.path().join(name));
        let set = "strategy.febs.decay=0.5".to_owned();
        ["train", "--config", &config, "--output", &output]
            .map(str::to_owned)
            .into_iter()
            .chain(["--set".to_owned(), set])
    };
    succeed(arguments("whole"));
    let expected = masks_of(&folder.path().join("whole"));
    assert!(expected.len() > 16, "{}", expected.len());
    let killed = folder.path().join("killed");
    let start = || spawn(fairtte().args(arguments("killed")));
    for (round, line) in ["epoch   1 of", "epoch   2 of"].into_iter().enumerate() {
        let (code, said) = send(start(), "-KILL", line);
        assert_eq!(code, -1, "the signal did not end it: {said}");
        assert_eq!(round > 0, said.contains("resuming after"), "{said}");
        assert!(files(&killed).iter().any(|file| file.starts_with("checkpoint/")), "no state was saved");
        assert!(!killed.join("masks").exists());
    }
    let mut last = start();
    while !files(&killed.join("masks"))
        .iter()
        .any(|file| Path::new(file).extension().is_some_and(|extension| extension == "png"))
    {
        assert!(last.try_wait().unwrap().is_none(), "it ended before a mask was seen");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    last.kill().unwrap();
    assert_eq!(last.wait().unwrap().code(), None, "the signal did not end it");
    assert!(!killed.join("done").exists());
    let outcome = succeed(arguments("killed"));
    assert!(outcome.stderr.contains("resuming after"), "{}", outcome.stderr);
    assert!(masks_of(&killed) == expected, "a killed run has other masks");
}

/// The network computes in half precision; logits, losses and sums over pixels are in single.
#[test]
fn masks_are_learnt_in_half_precision() {
    let folder = tempfile::tempdir().unwrap();
    let config = eyes(folder.path(), &["n-subjects=40", "size=32"], &SMALL.replace("epochs = 2", "epochs = 1"));
    let loss = |precision: &str| {
        let output = words(&folder.path().join(precision));
        // Hardly an update: in f16 the first ones may be left out until the gradients' scale fits.
        let sets = [format!("training.precision={precision}"), "optimiser.learning-rate=1e-9".to_owned()];
        let mut arguments = vec!["train", "--config", &config, "--output", &output];
        arguments.extend(sets.iter().flat_map(|set| ["--set", set.as_str()]));
        succeed(arguments);
        let steps = std::fs::read_to_string(Path::new(&output).join("steps.jsonl")).unwrap();
        let epoch: Value = serde_json::from_str(steps.lines().next().unwrap()).unwrap();
        epoch["train_loss"].as_f64().unwrap()
    };
    let expected = loss("f32");
    for precision in ["bf16", "f16"] {
        let found = loss(precision);
        assert!((found - expected).abs() < 0.01 * expected, "{precision}: {found} where f32 has {expected}");
    }
}

#[test]
fn a_run_of_masks_is_the_same_again_and_other_masks_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = eyes(folder.path(), &["n-subjects=40", "size=32"], &SMALL.replace("epochs = 2", "epochs = 1"));
    succeed(["train", "--config", &config]);
    let other = words(&folder.path().join("again"));
    succeed(["train", "--config", &config, "--output", &other, "--threads", "1"]);
    for name in ["masks.csv", "masks-validation.csv"] {
        let read = |folder: &Path| std::fs::read_to_string(folder.join(name)).unwrap();
        let (first, again) = (read(&folder.path().join("run")), read(Path::new(&other)));
        assert_eq!(first, again);
        for line in first.lines().skip(1) {
            let file = line.split(',').nth(3).unwrap();
            let bytes = |run: &Path| std::fs::read(run.join(file)).unwrap();
            assert!(bytes(&folder.path().join("run")) == bytes(Path::new(&other)), "{file}");
        }
    }
    // Another mask is another input: the run is not continued with it.
    let mask = folder.path().join("eyes/masks/000003.png");
    image::GrayImage::new(32, 32).save(&mask).unwrap();
    std::fs::remove_file(folder.path().join("run/done")).unwrap();
    fail(["train", "--config", &config], 4, "inputs");
}

#[test]
fn strategies_that_read_losses_or_the_bottleneck_work_on_masks_and_the_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let small = SMALL.replace("epochs = 2", "epochs = 1");
    let config = eyes(folder.path(), &["n-subjects=60", "size=32"], &small);
    let train = |strategy: &str, sets: &[&str]| {
        let output = words(&folder.path().join(strategy));
        let strategy = format!("strategy={strategy}");
        let mut arguments: Vec<&str> = vec!["train", "--config", &config, "--output", &output, "--set", &strategy];
        for set in sets {
            arguments.extend(["--set", set]);
        }
        succeed(arguments);
        let steps = std::fs::read_to_string(Path::new(&output).join("steps.jsonl")).unwrap();
        serde_json::from_str::<Value>(steps.lines().last().unwrap()).unwrap()
    };
    let febs = train("febs", &[]);
    let weight = |epoch: &Value, level: &str| epoch["terms"][format!("weight of {level}")].as_f64().unwrap();
    let largest = weight(&febs, "F").max(weight(&febs, "M"));
    assert!(largest <= 1.0_f64.tanh() + 1e-9, "weights of the published form: {febs}");
    let dro = train("group-dro", &[]);
    assert!((weight(&dro, "F") + weight(&dro, "M") - 1.0).abs() < 1e-6, "{dro}");
    let laftr = train("laftr", &["strategy.laftr.mode=dp"]);
    assert!(laftr["terms"]["adversary gain"].as_f64().is_some(), "{laftr}");
    let refused = |sets: &[&str], sentence: &str| {
        let mut arguments: Vec<&str> = vec!["train", "--config", &config, "--dry-run"];
        for set in sets {
            arguments.extend(["--set", set]);
        }
        fail(arguments, CONFIG, sentence);
    };
    refused(&["strategy=cfair"], "cfair does not work with masks, expected one of erm, group-dro, laftr, febs");
    refused(&["strategy=laftr"], "expected dp where masks are predicted");
    refused(&["strategy.febs.weigh-by=likelihood"], "expected loss where masks are predicted");
    refused(&["strategy=febs", "head.segmentation.dice=0"], "the scaling is inside the Dice loss");
    refused(&["head=pmf"], "pmf predicts survival curves, expected [head.segmentation]");
    refused(&["head.segmentation.pixel-classes=2"], "have 3 values with the background");
    refused(&["training.monitor=c-td"], "c-td is no metric of masks, expected one of dice-ce, dice, worst-group-dice");
    refused(&["model.backbone=small-2d"], "small-2d has no decoder for masks, expected resnet18");
    refused(&["model.hidden=16"], "it has no effect on masks");
    refused(&["image.size=[48, 64]"], "expected multiples of 32");
    refused(&["augmentation.crop=[32, 32]"], "masks are predicted for whole images");
    refused(&["task.binary={ horizon = 1 }"], "it makes a class from times");
    refused(&["task.segmentation.cup=lens"], "there is no class \"lens\"");
    refused(&["task.segmentation.classes.cup=[0]"], "0 is the background");
    refused(&["evaluation.reading=step"], "it has no effect on masks");
    refused(&["time.intervals=5"], "it has no effect on masks, which have no time grid");
    refused(&["task.kind=time-to-event"], "expected [task] kind = \"segmentation\"");
}

/// The cup of group F has a quarter of the contrast. The expectation before the run: the disc is found alike in both groups, the
/// cup worse in F by more than 0.1 in Dice.
#[test]
fn a_planted_difference_of_contrast_is_a_gap_in_the_dice_of_the_cup() {
    let folder = tempfile::tempdir().unwrap();
    let further = "[image]\nsize = [64, 64]\n[training]\nepochs = 12\nbatch-size = 16\npatience = 12\n[optimiser]\nlearning-rate = 2e-3\n\
                   [augmentation]\nflip = \"both\"\n";
    let config = eyes(folder.path(), &["n-subjects=240"], further);
    succeed(["train", "--config", &config]);
    let evaluation = json(&folder.path().join("run/evaluation.json"));
    let dice = |class: &str, level| value(&evaluation, &format!("dice-{class}"), level);
    let of = |class: &str| [dice(class, None), dice(class, Some("M")), dice(class, Some("F"))];
    let (disc, cup) = (of("disc"), of("cup"));
    println!("Dice of all, M and F: disc {disc:.3?}, cup {cup:.3?}");
    assert!(disc[1] > 0.9 && disc[2] > 0.9, "{disc:?}");
    assert!((disc[1] - disc[2]).abs() < 0.05, "{disc:?}");
    assert!(cup[1] > 0.7 && cup[1] - cup[2] > 0.1, "{cup:?}");
}
