//! `fairtte card` on a run of the demo: its numbers are those of the files, what is not stated is named, and what is missing
//! is named with the command that makes it.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::Path;

use fairtte_tests::{fail, fairtte, report, succeed};

/// The run of `demo --quick` with crossed attributes, in `folder`.
fn demo(folder: &Path) -> std::path::PathBuf {
    let output = folder.join("demo");
    let sets = [
        "training.epochs=1",
        "evaluation.replicates=20",
        "data.simulated.n-subjects=400",
        "groups.intersections=[[\"sex\", \"age\"]]",
    ];
    let mut arguments =
        vec!["demo".to_owned(), "--quick".to_owned(), "--output".to_owned(), output.display().to_string()];
    arguments.extend(sets.iter().flat_map(|set| ["--set".to_owned(), (*set).to_owned()]));
    succeed(arguments);
    output.join("run")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Requires a row whose first cell is `name`, maybe with letters of footnotes, before these cells.
fn has_row(card: &str, name: &str, cells: &str) {
    let is_named = |line: &str| {
        let rest = line.strip_prefix(&format!("| &emsp;{name}")).or_else(|| line.strip_prefix(&format!("| {name}")));
        rest.is_some_and(|rest| rest.starts_with(" | ") || rest.starts_with("<sup>"))
    };
    assert!(card.lines().any(|line| is_named(line) && line.contains(cells)), "no row {name} with\n{cells}\nin\n{card}");
}

#[test]
fn the_card_has_the_numbers_of_the_run_and_says_what_nobody_stated() {
    let folder = tempfile::tempdir().unwrap();
    let run = demo(folder.path());
    let shown = run.display().to_string();
    let outcome = succeed(["card", &shown]);
    let card = read(&run.join("model-card.md"));
    assert!(outcome.stdout.contains("model card: ") && outcome.stdout.contains(": owner, contact, licence, "));
    // The numbers of evaluation.json, in three decimals.
    let evaluation = report(&run);
    let metric = evaluation.metric("c_td_antolini_strict").unwrap();
    let women = &metric.attributes[0].groups[0];
    let (value, lower, upper) =
        (women.estimate.value.unwrap(), women.estimate.lower.unwrap(), women.estimate.upper.unwrap());
    let (n, n_events) = (women.estimate.n, women.estimate.n_events);
    has_row(&card, "F", &format!(" | {n} | {n_events} | {value:.3} ({lower:.3} to {upper:.3}) | "));
    let gap = &metric.attributes[0].gap;
    let (value, lower, upper) = (gap.value.unwrap(), gap.lower.unwrap(), gap.upper.unwrap());
    has_row(&card, "sex", &format!(" | {value:.3} | {lower:.3} to {upper:.3} | "));
    // The counts of cohort.json and split.json.
    let json = |name: &str| serde_json::from_str::<serde_json::Value>(&read(&run.join(name))).unwrap();
    let (cohort, split) = (json("cohort.json"), json("split.json"));
    let size = format!(
        "- **size**: {} samples of {} subjects, {} events\n",
        cohort["total"]["n"], cohort["n-subjects"], cohort["total"]["n-events"]
    );
    assert!(card.contains(&size), "{size}\n{card}");
    // One film per subject.
    has_row(&card, "all", &format!(" | {0} | {0} | ", split["subjects"]["train"]));
    assert!(card.contains(cohort["provenance"]["content-hash"].as_str().unwrap()));
    for said in [
        "- **backbone**: small-2d: four-layer ReLU network for pictures, quick on a CPU\n",
        "- **training strategy**: erm: empirical risk minimisation: the plain mean loss\n",
        "- **epochs**: trained for 1 of at most 1; the weights are those of epoch 1, chosen on the validation part by nll, ",
        "- **licence**: *not stated*\n",
        "**Out-of-scope uses.** *not stated*\n",
        "| &emsp;F &amp; &lt;= 60",
        "- **sex x age** (every combination of groups): F &amp; &lt;= 60, F &amp; &gt; 60, M &amp; &lt;= 60, M &amp; &gt; 60.\n",
    ] {
        assert!(card.contains(said), "{said}\n{card}");
    }
    // The same again, and with statements in another file.
    succeed(["card", &shown]);
    assert_eq!(read(&run.join("model-card.md")), card);
    let about = folder.path().join("about.toml");
    std::fs::write(&about, "licence = \"CC BY 4.0\"\n").unwrap();
    let other = folder.path().join("card.md");
    let [about, other_path] = [&about, &other].map(|path| path.display().to_string());
    let outcome = succeed(["card", &shown, "--about", &about, "--output", &other_path]);
    assert!(read(&other).contains("- **licence**: CC BY 4.0\n") && !outcome.stdout.contains("licence"));
    assert_eq!(read(&run.join("model-card.md")), card);
}

#[test]
fn an_evaluation_on_other_data_stands_beside_the_test_part() {
    let folder = tempfile::tempdir().unwrap();
    let run = demo(folder.path());
    let shown = run.display().to_string();
    let mut curves = "sample,time,event,sex,0,1,2,4\n".to_owned();
    for i in 0..40 {
        let (time, event, sex) = (0.5 + f64::from(i * 7 % 40) / 12.0, i / 2 % 2, if i % 2 == 0 { "F" } else { "M" });
        let risk = 0.1 + f64::from(i % 5) / 20.0;
        let at = |time: f64| 1.0 - risk * time / 2.0;
        writeln!(curves, "s{i},{time},{event},{sex},1,{},{},{}", at(1.0), at(2.0), at(4.0)).unwrap();
    }
    let table = folder.path().join("curves.csv");
    std::fs::write(&table, curves).unwrap();
    let external = folder.path().join("hospital-b");
    let [table, external] = [&table, &external].map(|path| path.display().to_string());
    succeed([
        "evaluate",
        "--predictions",
        &table,
        "--attributes",
        "sex",
        "--output",
        &external,
        "--set",
        "replicates=20",
    ]);
    succeed(["card", &shown, "--external", &external]);
    let card = read(&run.join("model-card.md"));
    assert!(card.contains("- **hospital-b**: 40 samples of 40 subjects, 20 events; "), "{card}");
    let value = fairtte_tests::c_td(&report(Path::new(&external)));
    has_row(&card, "all", &format!(" | 40 | 20 | {value:.3} ("));
    assert!(card.contains("\n### External results\n") && card.contains("| &emsp;gap by sex"), "{card}");
    let named = format!("Hospital B={external}");
    succeed(["card", &shown, "--external", &named]);
    assert!(read(&run.join("model-card.md")).contains("- **Hospital B**: 40 samples"));

    fail(["card", &shown, "--external", &shown], 3, "is the run itself, expected an evaluation on other data");
    let nowhere = folder.path().join("nowhere").display().to_string();
    fail(
        ["card", &shown, "--external", &nowhere],
        4,
        "there is no evaluation.json and no external.json; `fairtte evaluate .. --output`",
    );
    let empty = format!("={external}");
    fail(["card", &shown, "--external", &empty], 3, "has an empty name, expected DIR or NAME=DIR");
}

#[test]
fn a_prediction_of_the_run_shows_whose_curves_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let run = demo(folder.path());
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (shown, other) = (run.display().to_string(), at("other.toml"));
    std::fs::write(&other, "seed = 8\n[data.simulated]\nn-subjects = 90\nsize = [64, 64]\n").unwrap();
    let [alone, beside, bare] = ["alone", "beside", "bare"].map(at);
    for output in [&alone, &beside, &bare] {
        succeed(["predict", &shown, "--data", &other, "--output", output]);
    }
    let sets = ["--set", "replicates=20"];
    succeed([&["evaluate", &alone][..], &sets[..]].concat());
    succeed([&["evaluate", &beside, "--internal", &shown][..], &sets[..]].concat());
    assert!(!Path::new(&beside).join("evaluation.json").exists());
    succeed(["card", &shown, "--external", &alone, "--external", &format!("Two hospitals={beside}")]);
    let card = read(&run.join("model-card.md"));
    let json = |path: &Path| serde_json::from_str::<serde_json::Value>(&read(path)).unwrap();
    let record = json(&Path::new(&alone).join("predict.json"));
    let by = format!(
        "; curves of the weights of epoch 1 (BLAKE3 {})",
        record["runs"][0]["weights-blake3"].as_str().unwrap()
    );
    for name in ["alone", "Two hospitals"] {
        let line = card.lines().find(|line| line.starts_with(&format!("- **{name}**: 90 samples"))).unwrap();
        assert!(line.ends_with(&by), "{line}");
    }
    assert!(
        !card.contains("their files do not show it") && !card.contains("was validated on a part of the data"),
        "{card}"
    );
    // The numbers of both files.
    let value = |report: &serde_json::Value| {
        let metrics = report["metrics"].as_array().unwrap();
        let metric = metrics.iter().find(|metric| metric["name"] == "c_td_antolini_strict").unwrap();
        metric["overall"]["value"].as_f64().unwrap()
    };
    let of_alone = value(&json(&Path::new(&alone).join("evaluation.json")));
    let of_beside = value(&json(&Path::new(&beside).join("external.json"))["external"]);
    for value in [of_alone, of_beside] {
        has_row(&card, "all", &format!(" | 90 | {} | {value:.3} (", record["n-events"]));
    }
    // Without an evaluation, and with curves of another run.
    let sentence = format!("there is no evaluation.json and no external.json; `fairtte evaluate {bare}` writes it");
    fail(["card", &shown, "--external", &bare], 4, &sentence);
    let changed = read(&Path::new(&alone).join("predict.json"));
    let hash = record["runs"][0]["weights-blake3"].as_str().unwrap();
    std::fs::write(Path::new(&alone).join("predict.json"), changed.replace(hash, &"0".repeat(64))).unwrap();
    let sentence =
        format!("its predict.json says that it was predicted by {shown} (epoch 1), expected weights of {shown}");
    fail(["card", &shown, "--external", &alone], 4, &sentence);
}

#[test]
fn what_is_missing_is_said_with_the_command_that_makes_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = demo(folder.path());
    let shown = run.display().to_string();
    let about = folder.path().join("about.toml");
    std::fs::write(&about, "owner = \"A\"\nlicense = \"B\"\n").unwrap();
    let about = about.display().to_string();
    let refused = fail(["card", &shown, "--about", &about], 3, "license: unknown field \"license\"");
    assert!(refused.stderr.contains("about.toml, line 2") && refused.stderr.contains("did you mean \"licence\"?"));
    assert!(!run.join("model-card.md").exists(), "nothing is written");
    let absent = folder.path().join("absent.toml").display().to_string();
    fail(["card", &shown, "--about", &absent], 4, "absent.toml");

    std::fs::remove_file(run.join("evaluation.json")).unwrap();
    fail(["card", &shown], 4, &format!("there is no evaluation.json; `fairtte evaluate {shown}` writes it"));
    std::fs::remove_file(run.join("done")).unwrap();
    let sentence =
        format!("the training is not finished; `fairtte train --config {shown}/run.toml --output {shown}` finishes it");
    fail(["card", &shown], 4, &sentence);
    fail(["card", &folder.path().display().to_string()], 4, "this is not the folder of a run: it has no run.toml");
    // The command does finish it.
    let line = ["train", "--config", &format!("{shown}/run.toml"), "--output", &shown];
    assert!(fairtte().args(line).output().unwrap().status.success());
    succeed(["card", &shown]);
}
