//! `fairtte bias` from files alone: a planted source is found, none is found where there is none, and wrong files are
//! refused with their place.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::Path;

use fairtte_data::features::read_numeric_features;
use fairtte_tests::{fail, succeed};
use serde_json::Value;

const N: usize = 400;

/// The one respect in which the groups of a simulated cohort differ.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Planted {
    Nothing,
    Features,
    InformationOnTime,
    Times,
    Censoring,
}

/// A number in [0, 1) that looks random: `SplitMix64` (Steele, Lea & Flood 2014) of `place`.
fn uniform(place: u64) -> f64 {
    let mix = |value: u64, shift: u32, factor: u64| (value ^ (value >> shift)).wrapping_mul(factor);
    let first = mix(place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15), 30, 0xbf58_476d_1ce4_e5b9);
    let mixed = mix(first, 27, 0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Writes 400 people with 20 features, of which eight follow a latent risk, and half of whom are in group M.
fn write(folder: &Path, planted: Planted, seed: u64) {
    let mut cohort = "sample,time,event,sex\n".to_owned();
    let names: Vec<String> = (0..20).map(|k| format!("f{k}")).collect();
    let mut features = format!("sample,{}\n", names.join(","));
    for row in 0..N {
        let number = |name: u64| uniform((seed * N as u64 + row as u64) * 64 + name);
        let is_m = row % 2 == 1;
        let shown = number(0);
        let hidden = if is_m && planted == Planted::InformationOnTime { number(1) } else { shown };
        // Times follow the risk closely, so that there is information to lose.
        let scale = if is_m && planted == Planted::Times { 0.4 } else { 1.0 };
        let time = scale * (1.0 + 9.0 * hidden + 0.3 * number(2));
        let event = number(3) >= if is_m && planted == Planted::Censoring { 0.6 } else { 0.2 };
        writeln!(cohort, "s{row},{time},{},{}", u8::from(event), if is_m { "M" } else { "F" }).unwrap();
        let shift = if is_m && planted == Planted::Features { 0.8 } else { 0.0 };
        let cells: Vec<String> = (0..20)
            .map(|k| {
                let signal = if k < 8 { 3.0 * shown } else { 0.0 };
                (signal + number(10 + k) + shift).to_string()
            })
            .collect();
        writeln!(features, "s{row},{}", cells.join(",")).unwrap();
    }
    std::fs::write(folder.join("cohort.csv"), cohort).unwrap();
    std::fs::write(folder.join("features.csv"), features).unwrap();
}

fn call(folder: &Path, more: &[&str]) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    let (features, cohort) = (path("features.csv"), path("cohort.csv"));
    let base = ["bias", "--features", &features, "--cohort", &cohort, "--attributes", "sex"];
    base.iter().chain(more).map(|text| (*text).to_owned()).collect()
}

/// Name, value above chance and p of every source.
fn sources(folder: &Path) -> Vec<(String, f64, f64)> {
    let quick = ["--json", "--permutations", "199", "--set", "n-replicates=0"];
    let found: Value = serde_json::from_str(&succeed(call(folder, &quick)).stdout).unwrap();
    let source = |source: &Value| {
        let estimate = &source["estimate"]["value"];
        let number = |value: &Value| value.as_f64().unwrap();
        let name = source["source"].as_str().unwrap().to_owned();
        (name, number(&estimate["null-corrected"]), number(&estimate["permutation"]["p-value"]))
    };
    found["attributes"][0]["sources"].as_array().unwrap().iter().map(source).collect()
}

#[test]
fn the_planted_source_is_the_largest_above_chance_and_significant() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (Planted::Features, "image-features"),
        (Planted::InformationOnTime, "mi-time"),
        (Planted::Times, "time-distribution"),
        (Planted::Censoring, "censoring-rate"),
    ];
    for (planted, name) in cases {
        for seed in 0..3 {
            write(folder.path(), planted, seed);
            let sources = sources(folder.path());
            let largest = sources.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            assert!(largest.0 == name && largest.2 <= 0.01, "{planted:?}, seed {seed}: {sources:?}");
        }
    }
}

#[test]
fn without_a_planted_source_few_p_values_are_small() {
    let folder = tempfile::tempdir().unwrap();
    let mut small = 0;
    for seed in 0..8 {
        write(folder.path(), Planted::Nothing, seed);
        small += sources(folder.path()).iter().filter(|source| source.2 <= 0.05).count();
    }
    // 40 tests at 0.05: two on average; more than 7 has a probability below 0.001.
    assert!(small <= 7, "{small} of 40 p values are at most 0.05");
}

#[test]
fn the_order_of_rows_and_the_units_of_features_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Planted::Features, 1);
    let before = sources(folder.path());
    let path = folder.path().join("features.csv");
    let table = read_numeric_features(&path, None, &[]).unwrap();
    let mut text = format!("sample,{}\n", table.names.join(","));
    for row in (0..N).rev() {
        let cells: Vec<String> = table.values.row(row).iter().map(|value| (value * 1024.0).to_string()).collect();
        writeln!(text, "{},{}", table.samples[row], cells.join(",")).unwrap();
    }
    std::fs::write(path, text).unwrap();
    for (one, other) in before.iter().zip(sources(folder.path())) {
        assert!((one.1 - other.1).abs() < 1e-9, "{one:?} {other:?}");
    }
}

#[test]
fn wrong_files_are_refused_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Planted::Nothing, 1);
    let path = folder.path().join("features.csv");
    let good = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    let with = |text: String, sentence: &str| {
        std::fs::write(&path, text).unwrap();
        fail(call(folder.path(), &[]), 4, sentence);
    };
    with(good.replacen(lines[3], &lines[3].replacen("s2,", "s2,x", 1), 1), "f0 of sample \"s2\" is x");
    with(good.replacen(&format!("{}\n", lines[3]), "", 1), "sample \"s2\" has no row of features");
    with(format!("{good}{}\n", lines[3].replacen("s2,", "s400,", 1)), "\"s400\" has features but is not in the cohort");
    with(format!("{good}{}\n", lines[3]), "s2");
    std::fs::write(&path, good.replacen("f7", "time", 1)).unwrap();
    fail(call(folder.path(), &[]), 3, "column \"time\" of");
    std::fs::write(&path, &good).unwrap();
    fail(call(folder.path(), &["--components", "0"]), 3, "components is 0, expected a whole number >= 1");
    fail(call(folder.path(), &["--permutations", "0"]), 3, "n-permutations is 0");
    fail(call(folder.path(), &["--intersections"]), 3, "number of --attributes: 1, expected at least two");
    fail(call(folder.path(), &["--set", "replicates=5"]), 3, "replicates");
    fail(call(folder.path(), &["--time", "days"]), 4, "days");
    // Sex is known of some people, the ward of the others, and both of none.
    let cohort = std::fs::read_to_string(folder.path().join("cohort.csv")).unwrap();
    let mut with_ward = "sample,time,event,sex,ward\n".to_owned();
    for (row, line) in cohort.lines().skip(1).enumerate() {
        let (known, sex) = line.rsplit_once(',').unwrap();
        let ward = ["a", "b"][row % 2];
        let both = if row % 4 < 2 { format!("{sex},") } else { format!(",{ward}") };
        writeln!(with_ward, "{known},{both}").unwrap();
    }
    std::fs::write(folder.path().join("cohort.csv"), with_ward).unwrap();
    let pair = ["--attributes", "ward", "--intersections", "--permutations", "9", "--set", "n-replicates=0"];
    fail(
        call(folder.path(), &pair),
        4,
        "cohort.csv is in a group of sex x ward, expected samples in at least two groups",
    );
    std::fs::write(folder.path().join("cohort.csv"), cohort).unwrap();
    let few = succeed(call(folder.path(), &["--min-events", "190", "--permutations", "9", "--set", "n-replicates=0"]));
    assert!(few.stdout.contains("events, expected at least 190)"), "{}", few.stdout);
}
