//! `fairtte bench`: what is in its results and how they depend on one another, never how large they are.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use fairtte_tests::{Outcome, fail, fairtte, patients, run, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const DATA: i32 = 4;

fn json(line: &str) -> Value {
    serde_json::from_str(&succeed(line.split_whitespace()).stdout).unwrap()
}

fn close(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap();
    assert!((found / expected - 1.0).abs() < 1e-9, "{found}, expected {expected}");
}

#[test]
fn rates_and_hours_follow_from_the_seconds_of_a_batch() {
    let line = "bench --backbone mlp --shape 8 --batch 32 --seconds 0.01 --samples 1000 --epochs 2 --no-layers --json";
    let report = json(line);
    assert_eq!(report["device"], "flex");
    assert!(report["layers"].is_null());
    assert_eq!(report["networks"][0]["precision"], "f32");
    let blocks = &report["blocks"];
    assert!(
        blocks["l2"].as_u64().unwrap() >= 256 << 10 && blocks["rows"].as_u64().unwrap().is_multiple_of(42),
        "{blocks}"
    );
    let half =
        json("bench --backbone small-2d --shape 1x16x16 --batch 4 --seconds 0.01 --precision bf16 --no-layers --json");
    assert_eq!(half["networks"][0]["precision"], "bf16");
    assert!(report["networks"][0]["training"]["efficiency"].is_null(), "one number of threads was measured");
    let [network] = &report["networks"].as_array().unwrap()[..] else { panic!("one network was asked for") };
    assert_eq!(network["shape"], serde_json::json!([32, 8]));
    for what in ["training", "inference"] {
        let rate = &network[what];
        assert!(rate["batches"].as_u64().unwrap() >= 3, "{rate}");
        close(&rate["samples-per-second"], 32.0 / rate["seconds"].as_f64().unwrap());
    }
    let per_second = |what: &str| network[what]["samples-per-second"].as_f64().unwrap();
    close(&network["estimate"]["training-hours"], 2000.0 / per_second("training") / 3600.0);
    close(&network["estimate"]["inference-hours"], 1000.0 / per_second("inference") / 3600.0);
}

#[test]
fn several_networks_are_measured_one_after_the_other_and_printed_in_80_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.json").display().to_string();
    let line = format!("bench --backbone small-2d,small-3d --shape 1x20x24 --seconds 0.01 --output {path}");
    fail(line.split_whitespace(), CONFIG, "--shape is \"1x20x24\", expected sizes of small-3d as 3x96x128x128");
    assert!(!std::path::Path::new(&path).exists());
    let line =
        format!("bench --backbone small-2d,vit-base/16 --shape 3x32x32 --batch 2 --seconds 0.01 --output {path}");
    let outcome = succeed(line.split_whitespace());
    let too_long: Vec<_> = outcome.stdout.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(too_long.is_empty(), "{too_long:?}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let networks = report["networks"].as_array().unwrap();
    let names: Vec<_> = networks.iter().map(|network| network["backbone"].as_str().unwrap()).collect();
    assert_eq!(names, ["small-2d", "vit-base/16"]);
    if cfg!(target_os = "linux") {
        let memory = |place: usize| networks[place]["peak-memory"].as_f64().unwrap();
        // The weights of the second alone, with their gradients and two moments, are 1.28 GiB.
        assert!(memory(0) < 0.5e9 && memory(1) > 1.2e9, "{} and {}", memory(0), memory(1));
    }
    let layers = report["layers"]["measured"].as_array().unwrap();
    let winograd = layers.iter().find(|layer| layer["algorithm"] == "Winograd").unwrap();
    let share = winograd["share-of-peak"].as_f64().unwrap();
    assert!(share > 0.0, "{winograd}");
}

#[test]
fn numbers_of_threads_are_compared_with_the_fewest() {
    let line = "bench --backbone mlp --shape 8 --batch 16 --seconds 0.01 --no-layers --threads 2,1";
    let report = json(&format!("{line} --json"));
    assert_eq!(report["threads"], 2);
    let networks = report["networks"].as_array().unwrap();
    let threads: Vec<_> = networks.iter().map(|network| network["threads"].as_u64().unwrap()).collect();
    assert_eq!(threads, [1, 2]);
    for what in ["training", "inference"] {
        let per_second = |place: usize| networks[place][what]["samples-per-second"].as_f64().unwrap();
        close(&networks[0][what]["efficiency"], 1.0);
        close(&networks[1][what]["efficiency"], per_second(1) / per_second(0) / 2.0);
    }
    let shown = succeed(line.split_whitespace()).stdout;
    let of_threads: Vec<_> = shown.lines().filter(|line| line.starts_with("mlp ")).collect();
    // The table of the most threads has one row, and that of the threads has two.
    assert_eq!(of_threads.len(), 3, "{shown}");
    assert!(of_threads[1].contains("100 %") && of_threads[2].contains(" %"), "{shown}");
    // Hours are those of the first table.
    let hours = succeed(format!("{line} --samples 100").split_whitespace()).stdout;
    let of_hours: Vec<_> = hours.lines().filter(|line| line.starts_with("mlp: ")).collect();
    assert!(matches!(of_hours[..], [one] if one.starts_with("mlp: an epoch of 100 samples takes ")), "{hours}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
}

#[test]
fn all_threads_beside_their_number_are_measured_once_and_the_most_are_shown_first() {
    let line = "bench --backbone mlp --shape 8 --batch 16 --seconds 0.01 --no-layers --json --threads";
    let measured = |threads: &str| {
        let mut command = fairtte();
        command.env("RAYON_NUM_THREADS", "2").args(line.split_whitespace()).arg(threads);
        let outcome: Outcome = command.output().unwrap().into();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let networks = report["networks"].as_array().unwrap().iter();
        let threads: Vec<_> = networks.map(|network| network["threads"].as_u64().unwrap()).collect();
        (report["threads"].as_u64().unwrap(), threads)
    };
    assert_eq!(measured("0,2"), (2, vec![2]));
    assert_eq!(measured("0,3"), (3, vec![2, 3]));
}

#[test]
fn flex_with_its_number_is_flex() {
    let report = json("bench --device flex:0 --backbone mlp --shape 8 --batch 16 --seconds 0.01 --no-layers --json");
    assert!(report["instruction-set"].is_string() && report["blocks"]["l2"].is_u64(), "{report}");
}

#[test]
fn what_was_measured_is_shown_even_if_the_file_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file").join("bench.json").display().to_string();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let line = "bench --backbone mlp --shape 8 --batch 16 --seconds 0.01 --no-layers --output";
    let outcome = fail(line.split_whitespace().chain([path.as_str()]), DATA, "bench.json");
    assert!(outcome.stdout.lines().any(|line| line.starts_with("mlp ")), "{}", outcome.stdout);
}

#[test]
fn hours_of_folds_are_those_of_their_parts() {
    let folder = tempfile::tempdir().unwrap();
    let data = patients(folder.path(), 120, |_, _| ());
    let text = std::fs::read_to_string(data.folder.join("run.toml")).unwrap().replace("small-2d", "mlp");
    std::fs::write(folder.path().join("run.toml"), text).unwrap();
    let plan = "trials = 1\nfolds = 2\n[[data]]\nrun-file = \"run.toml\"\n[heads]\nnames = [\"pmf\"]\n[strategies]\n\
                names = [\"sam\"]\n[set.training]\nepochs = 5\n";
    let file = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(file("study.toml"), plan).unwrap();
    let line = format!("bench --backbone mlp --seconds 0.01 --no-layers --json --output {}", file("mlp.json"));
    let rates = json(&line);
    let per_second = |what: &str| rates["networks"][0][what]["samples-per-second"].as_f64().unwrap();
    let (study, planned, measured) = (file("study.toml"), file("planned"), file("mlp.json"));
    let needs = succeed(["study", "plan", &study, "--output", &planned, "--bench", &measured, "--json"]).stdout;
    let needs: Value = serde_json::from_str(&needs).unwrap();
    // Two folds of erm, the base, and two of sam, of five epochs. Half of the samples is the test part; of the 60 others, 45 are
    // trained on and 15 predicted.
    assert_eq!(needs["trainings"], 4);
    close(&needs["hours-at-most"], 20.0 * (45.0 / per_second("training") + 15.0 / per_second("inference")) / 3600.0);
}

#[test]
fn hours_of_a_study_follow_from_measured_rates_and_the_samples_of_its_tables() {
    let folder = tempfile::tempdir().unwrap();
    let data = patients(folder.path(), 120, |_, _| ());
    let text = std::fs::read_to_string(data.folder.join("run.toml")).unwrap().replace("small-2d", "mlp");
    std::fs::write(folder.path().join("run.toml"), text).unwrap();
    let study = folder.path().join("study.toml");
    let plan = "trials = 3\n[[data]]\nrun-file = \"run.toml\"\n[heads]\nnames = [\"pmf\"]\n[strategies]\nnames = [\"sam\"]\n\
                [set.training]\nepochs = 5\n[set.split]\ntrain = 0.5\nvalidation = 0.2\ntest = 0.3\n";
    std::fs::write(&study, plan).unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let measure = |name: &str, backbone: &str| {
        let line = format!("bench --backbone {backbone} --seconds 0.01 --no-layers --json --output {}", file(name));
        json(&line)
    };
    let rates = measure("mlp.json", "mlp --shape 8 --batch 16");
    let per_second = |what: &str| rates["networks"][0][what]["samples-per-second"].as_f64().unwrap();
    let plan = |rates: &str| {
        ["study", "plan", &file("study.toml"), "--output", &file("planned"), "--bench", rates].map(str::to_owned)
    };
    let needs = succeed(plan(&file("mlp.json")).into_iter().chain(["--json".to_owned()])).stdout;
    let needs: Value = serde_json::from_str(&needs).unwrap();
    // Three trainings of erm, the base, and three of sam, of five epochs: 60 samples are trained on, and 24 predicted.
    assert_eq!(needs["trainings"], 6);
    let seconds = 30.0 * (60.0 / per_second("training") + 24.0 / per_second("inference"));
    close(&needs["hours-at-most"], seconds / 3600.0);
    let shown = succeed(plan(&file("mlp.json"))).stdout;
    assert!(shown.contains("mlp.json (flex"), "{shown}");
    // Of several files the one that has the network is taken.
    measure("small.json", "small-2d --shape 1x16x16 --batch 2");
    let of_both = succeed(
        plan(&file("small.json")).into_iter().chain(["--bench", &file("mlp.json"), "--json"].map(str::to_owned)),
    );
    assert_eq!(serde_json::from_str::<Value>(&of_both.stdout).unwrap()["hours-at-most"], needs["hours-at-most"]);

    // Rates of another network or precision are none of this study.
    fail(
        plan(&file("small.json")),
        DATA,
        "expected those of `fairtte bench --device flex --backbone mlp --precision f32 --output FILE`",
    );
    measure("half.json", "mlp --shape 8 --batch 16 --precision bf16");
    fail(plan(&file("half.json")), DATA, "half.json: it has no rates of what");
    fail(plan(&file("absent.json")), DATA, "absent.json: ");
    let of_gpu =
        std::fs::read_to_string(file("mlp.json")).unwrap().replace("\"device\": \"flex\"", "\"device\": \"cuda:0\"");
    std::fs::write(file("gpu.json"), of_gpu).unwrap();
    let arguments = plan(&file("gpu.json")).into_iter().chain(["--bench", &file("half.json")].map(str::to_owned));
    fail(arguments, DATA, "half.json, expected those of `fairtte bench --device flex");

    // A network reads the crop of an image.
    let films = "[data.simulated]\nn-subjects = 60\nsize = [16, 16]\n[[attribute]]\nname = \"sex\"\n[image]\nsize = [16, 16]\n\
                 [model]\nbackbone = \"small-2d\"\n[augmentation]\ncrop = [12, 12]\n";
    std::fs::write(folder.path().join("run.toml"), films).unwrap();
    fail(plan(&file("small.json")), DATA, "--backbone small-2d --shape 1x12x12 --precision f32");
    measure("crop.json", "small-2d --shape 1x12x12 --batch 2");
    succeed(plan(&file("crop.json")));
}

#[test]
fn what_cannot_be_measured_is_refused_by_name() {
    let refused = |arguments: &str, sentence: &str| {
        fail(["bench"].into_iter().chain(arguments.split_whitespace()), CONFIG, sentence);
    };
    refused("--backbone resnet19", "--backbone is \"resnet19\", expected one of efficientnet-b0, resnet18");
    refused("--backbone mlp --shape 3x8", "--shape is \"3x8\", expected sizes of mlp as 16");
    refused("--backbone mlp --precision f64", "--precision is \"f64\", expected one of f32, bf16, f16");
    refused("--backbone mlp --batch 0", "--batch is 0, expected at least 1");
    refused(
        "--backbone mlp --batch 1000000000000",
        "--batch is 1000000000000, expected a batch of at most 4294967296 values",
    );
    refused("--backbone mlp --shape 18446744073709551615", "--batch is 256, expected a batch of at most");
    refused("--backbone mlp --seconds 0", "--seconds is 0, expected a number above 0");
    refused("--backbone mlp --samples 0", "--samples is 0, expected at least 1");
    refused("--device tpu", "device \"tpu\" is unknown");
    let without = run(["bench", "--epochs", "3"]);
    assert_eq!(without.code, 2, "{}", without.stderr);
    assert!(without.stderr.contains("--samples"), "{}", without.stderr);
    let sentence = "vit-base/16";
    let line = "bench --backbone vit-base/16 --shape 3x20x20 --seconds 0.01";
    let outcome = run(line.split_whitespace());
    assert!(outcome.code != 0 && outcome.code != 1 && outcome.stderr.contains(sentence), "{}", outcome.stderr);
    // In a process of its own it ends alike.
    let sentence = "device \"flex\" did not measure vit-base/16 (batches of 16 x 3x20x20, exit status: ";
    fail(line.split_whitespace().chain(["--threads", "1,2"]), outcome.code, sentence);
}
