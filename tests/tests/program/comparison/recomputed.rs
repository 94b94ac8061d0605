//! The results of `fairtte compare` and `fairtte select`, computed again from the files of the runs.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "the number of rejections is printed")]

use std::collections::BTreeMap;
use std::path::Path;

use fairtte_metrics::EvaluationReport;
use fairtte_metrics::evaluation::MetricReport;
use fairtte_tests::{SmallRun, patients, succeed};
use serde_json::Value;

/// Adds a table `[compare]` to the run file.
fn with_comparison(run: SmallRun, table: &str) -> SmallRun {
    let file = run.folder.join("run.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text + table).unwrap();
    run
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Weights that a run kept, scored by `fairtte evaluate`.
struct Kept {
    strategy: String,
    seed: u64,
    epoch: u64,
    validation: EvaluationReport,
    test: EvaluationReport,
}

/// Every kept file of every run below `folder`: a copy of the run has it in place of its predictions.
fn kept_files(folder: &Path) -> Vec<Kept> {
    let mut kept = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let run = entry.unwrap().path();
        let (strategy, seed) = run.file_name().unwrap().to_str().unwrap().rsplit_once("-seed").unwrap();
        let record = json(&run.join("selection.json"));
        let mut files = BTreeMap::from([(record["epoch"].as_u64().unwrap(), "predictions.parquet".to_owned())]);
        for choice in record["rules"].as_object().unwrap().values() {
            files.insert(choice["epoch"].as_u64().unwrap(), choice["file"].as_str().unwrap().to_owned());
        }
        for (epoch, file) in files {
            let copy = tempfile::tempdir().unwrap();
            for name in ["run.toml", "cohort.parquet", "exclusions.csv", "split.csv", "steps.jsonl"] {
                std::fs::copy(run.join(name), copy.path().join(name)).unwrap();
            }
            std::fs::copy(run.join(file), copy.path().join("predictions.parquet")).unwrap();
            let of = |part: &str| -> EvaluationReport {
                let run = copy.path().display().to_string();
                let outcome = succeed(["evaluate", &run, "--part", part, "--json", "--set", "replicates=0"]);
                serde_json::from_str(&outcome.stdout).unwrap()
            };
            let (strategy, seed) = (strategy.to_owned(), seed.parse().unwrap());
            kept.push(Kept { strategy, seed, epoch, validation: of("validation"), test: of("test") });
        }
    }
    kept.sort_by_key(|kept| (kept.strategy.clone(), kept.seed, kept.epoch));
    kept
}

fn value(report: &EvaluationReport, metric: &str) -> f64 {
    report.metric(metric).unwrap().overall.value.unwrap()
}

fn groups(report: &EvaluationReport, metric: &str) -> BTreeMap<String, f64> {
    let of_metric: &MetricReport = report.metric(metric).unwrap();
    let of_sex = of_metric.attributes.iter().find(|of| of.attribute == "sex").unwrap();
    of_sex.groups.iter().map(|group| (group.level.clone(), group.estimate.value.unwrap())).collect()
}

fn gap(report: &EvaluationReport, metric: &str) -> f64 {
    let groups = groups(report, metric);
    let largest = groups.values().copied().fold(f64::NEG_INFINITY, f64::max);
    largest - groups.values().copied().fold(f64::INFINITY, f64::min)
}

/// The smallest gap among those that lose at most `tolerated` of `of_base` (lower is better for the IBS).
fn smallest_gap<'a>(pool: &[&'a Kept], metric: &str, limit: f64) -> Option<&'a Kept> {
    let sign = if metric == "ibs" { -1.0 } else { 1.0 };
    let within = pool.iter().filter(|kept| sign * value(&kept.validation, metric) >= sign * limit - 1e-12);
    within.copied().min_by(|a, b| {
        let by_gap = gap(&a.validation, metric).total_cmp(&gap(&b.validation, metric));
        by_gap.then((-sign * value(&a.validation, metric)).total_cmp(&(-sign * value(&b.validation, metric))))
    })
}

fn best<'a>(pool: &[&'a Kept], metric: &str) -> &'a Kept {
    let sign = if metric == "ibs" { -1.0 } else { 1.0 };
    let by_value = |a: &&&Kept, b: &&&Kept| {
        (sign * value(&a.validation, metric)).total_cmp(&(sign * value(&b.validation, metric)))
    };
    pool.iter().max_by(by_value).unwrap()
}

fn same(found: &Value, expected: f64, what: &str) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{what}: {found}"));
    assert!((found - expected).abs() < 1e-9, "{what}: {found}, expected {expected}");
}

#[test]
fn the_choice_and_its_changes_follow_from_the_files_of_the_runs() {
    let folder = tempfile::tempdir().unwrap();
    let run = patients(folder.path(), 300, |_, _| {}).set("training.epochs=6").set("training.patience=6");
    let run = with_comparison(
        run.set("optimiser.learning-rate=0.01").set("evaluation.replicates=60"),
        "[compare]\nseeds = [1, 2]\nattributes = [\"sex\"]\n[compare.strategy.group-dro]\neta = 0.1\n\
         [compare.strategy.domain-independent]\n[compare.strategy.recalibration]\n",
    );
    succeed(run.arguments("compare"));
    let output = run.output();
    let verdict = json(&output.join("choice.json"));
    let kept = kept_files(&output.join("sex"));
    assert!(kept.len() > 16, "{} kept files", kept.len());
    let pool = |strategy: &str, seed: Option<u64>| -> Vec<&Kept> {
        kept.iter().filter(|k| k.strategy == strategy && seed.is_none_or(|seed| k.seed == seed)).collect()
    };
    let mut n_compared = 0;
    for block in verdict["blocks"].as_array().unwrap() {
        let metric = block["metric"].as_str().unwrap();
        let base = best(&pool("erm", None), metric);
        let limit = |base: &Kept| {
            let utility = value(&base.validation, metric);
            if metric == "ibs" { 1.05 * utility } else { 0.95 * utility }
        };
        let control = smallest_gap(&pool("erm", None), metric, limit(base)).unwrap();
        let of_base = groups(&base.validation, metric);
        let highest = of_base.iter().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
        let lowest = of_base.iter().min_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
        assert_eq!(block["contrast"]["first"], **highest);
        let difference = |report: &EvaluationReport| groups(report, metric)[highest] - groups(report, metric)[lowest];
        for row in block["rows"].as_array().unwrap() {
            let (strategy, role) = (row["strategy"].as_str().unwrap(), row["role"].as_str().unwrap());
            let what = format!("{metric} {strategy} {role}");
            let expected =
                if role == "base" { Some(base) } else { smallest_gap(&pool(strategy, None), metric, limit(base)) };
            let Some(expected) = expected else {
                assert_eq!(row["none-because"], "none is within the tolerated loss", "{what}");
                continue;
            };
            let chosen = &row["chosen"];
            same(&chosen["validation"]["value"], value(&expected.validation, metric), &what);
            same(&chosen["validation"]["gap"], gap(&expected.validation, metric), &what);
            same(&chosen["validation"]["difference"], difference(&expected.validation), &what);
            same(&chosen["test"]["value"], value(&expected.test, metric), &what);
            same(&chosen["test"]["gap"], gap(&expected.test, metric), &what);
            same(&chosen["test"]["difference"], difference(&expected.test), &what);
            for (other, change, of_difference) in
                [(control, "change", "difference-change"), (base, "change-from-base", "difference-change-from-base")]
            {
                if chosen[change].is_null() {
                    continue;
                }
                let (own, other) = (&expected.test, &other.test);
                let (new, old) = (value(own, metric), value(other, metric));
                // The change from the base of the paper is described, not tested.
                assert_eq!(chosen[change]["p-value"].is_null(), change == "change-from-base", "{what}");
                same(&chosen[change]["value"], new - old, &what);
                same(&chosen[change]["percent"], 100.0 * (new - old) / old, &what);
                same(&chosen[of_difference]["value"], difference(own) - difference(other), &what);
                n_compared += 1;
            }
            let is_tested = !chosen["change"].is_null();
            assert_eq!(
                (is_tested, chosen["change-from-base"].is_null()),
                (role == "strategy", role == "base"),
                "{what}"
            );
            // Within one seed the limit is that of the base model of the seed.
            for of_seed in row["seeds"].as_array().unwrap() {
                let seed = of_seed["seed"].as_u64();
                let base = best(&pool("erm", seed), metric);
                let pool = pool(strategy, seed);
                let expected = if role == "base" { Some(base) } else { smallest_gap(&pool, metric, limit(base)) };
                assert_eq!(of_seed["run"].is_null(), expected.is_none(), "{what}");
                if let Some(expected) = expected {
                    same(&of_seed["test"]["value"], value(&expected.test, metric), &what);
                }
            }
        }
    }
    assert_eq!(verdict["n-seeds"], 2);
    // Pairs are compared only where the test of all methods rejects at 1 - level.
    let ranks = verdict["ranks"].as_array().unwrap();
    assert!(!ranks.is_empty());
    for comparison in ranks {
        let rejects = comparison["friedman-p"].as_f64().is_some_and(|p| p <= 0.05);
        assert_eq!(comparison["nemenyi-p"].is_null(), !rejects, "{comparison}");
    }
    assert!(n_compared >= 15, "{n_compared} changes compared");
    println!("{} kept files, {n_compared} changes computed again", kept.len());
}

/// `febs` with `gamma = 0` equals the training of `erm`: every group has the same weight. Compared with the base of the
/// paper, which is chosen by another rule, it would be shown as different in 12 of these 20.
#[test]
fn a_strategy_that_does_nothing_is_not_shown_as_different() {
    let mut n_shown = 0;
    for seed in 1..=20 {
        let folder = tempfile::tempdir().unwrap();
        let run = patients(folder.path(), 1200, |_, _| {})
            .set(&format!("seed={seed}"))
            .set("training.epochs=4")
            .set("training.patience=4")
            .set("optimiser.learning-rate=0.01")
            .set("evaluation.replicates=200");
        let table = "[compare]\nattributes = [\"sex\"]\n[compare.strategy.febs]\ngamma = 0\n";
        let outcome = succeed([with_comparison(run, table).arguments("compare"), vec!["--json".to_owned()]].concat());
        let verdict: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let mut is_shown = false;
        for block in verdict["blocks"].as_array().unwrap() {
            let row = block["rows"].as_array().unwrap().iter().find(|row| row["strategy"] == "febs").unwrap();
            let chosen = &row["chosen"];
            assert!(!chosen["change"]["p-holm"].is_null(), "nothing was compared: {row}");
            for change in ["change", "difference-change"] {
                let ends = [&chosen[change]["lower"], &chosen[change]["upper"]].map(|end| end.as_f64().unwrap());
                let excludes_zero = ends[0] > 0.0 || ends[1] < 0.0;
                is_shown |= excludes_zero || chosen[change]["different"] == true;
            }
        }
        n_shown += usize::from(is_shown);
    }
    println!("a placebo is shown as different in {n_shown} of 20 comparisons");
    assert!(n_shown <= 2, "a placebo is shown as different in {n_shown} of 20 comparisons");
}

#[test]
fn heads_are_compared_within_themselves() {
    let folder = tempfile::tempdir().unwrap();
    for head in ["nnet-survival", "pmf"] {
        for strategy in ["erm", "sam"] {
            let name = format!("{head}-{strategy}");
            let run = patients(&folder.path().join("table"), 120, |_, _| {});
            let output = folder.path().join("runs").join(name).display().to_string();
            let set = [format!("head={head}"), format!("strategy={strategy}")].map(|set| ["--set".to_owned(), set]);
            let train = [run.arguments("train"), set.concat(), vec!["--output".to_owned(), output]].concat();
            succeed(train);
        }
    }
    let runs = folder.path().join("runs").display().to_string();
    let outcome = succeed(["select", &runs, "--json", "--set", "replicates=0"]);
    let verdict: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let blocks = verdict["blocks"].as_array().unwrap();
    assert_eq!(blocks.len(), 6, "two heads, three metrics");
    for block in blocks {
        let head = block["head"].as_str().unwrap();
        for row in block["rows"].as_array().unwrap() {
            let run = row["chosen"]["run"].as_str().unwrap_or(head);
            assert!(run.starts_with(head), "{run} in a block of {head}");
        }
    }
    let text = succeed(["select", &runs, "--set", "replicates=0"]).stdout;
    assert!(text.contains("sex, C^td (higher is better); nnet-survival, mlp, scratch"), "{text}");
    assert!(text.contains("sex, C^td (higher is better); pmf, mlp, scratch"), "{text}");
}

/// The inputs contain no information on the outcome.
#[test]
fn a_base_without_skill_is_said_and_five_percent_of_no_skill_is_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let noise = |row: usize, cells: &mut [String; 9]| {
        for (k, cell) in cells[4..].iter_mut().enumerate() {
            *cell = format!("{:.6}", ((row * 7919 + k * 104_729) as f64 * 0.377).sin());
        }
    };
    let run = with_comparison(patients(folder.path(), 160, noise), "[compare]\n[compare.strategy.sam]\n");
    let text = succeed(run.arguments("compare")).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("warning: erm is not shown to be better than chance (0.500): its C^td in the validation part is"),
        "{text}"
    );
    assert!(text.contains("warning: erm is not shown to be better than the Kaplan-Meier curve"), "{text}");
    for part in ["test", "validation"] {
        assert!(text.contains(&format!(" samples of the {part} part: too few to compare models in it")), "{text}");
    }
    let runs = run.output().display().to_string();
    let select = |of: &str| -> Value {
        let set = ["--set", "replicates=20", "--tolerated-loss", "0.5", "--tolerated-loss-of", of, "--json"];
        serde_json::from_str(&succeed([&["select", &runs][..], &set].concat()).stdout).unwrap()
    };
    let control = |verdict: &Value| verdict["blocks"][0]["rows"][1]["chosen"]["validation"]["value"].as_f64().unwrap();
    let base = |verdict: &Value| verdict["blocks"][0]["rows"][0]["chosen"]["validation"]["value"].as_f64().unwrap();
    let (of_metric, of_skill) = (select("metric"), select("skill"));
    assert_eq!(of_skill["tolerated-loss-of"], "skill");
    let limit = base(&of_skill) - 0.5 * (base(&of_skill) - 0.5).max(0.0);
    assert!(control(&of_skill) >= limit - 1e-12, "{} below {limit}", control(&of_skill));
    assert!(control(&of_metric) >= 0.5 * base(&of_metric));
}

/// A strategy of groups is compared for the attribute that it worked on, one without groups for every attribute.
#[test]
fn runs_are_compared_for_the_attributes_that_they_worked_on() {
    let folder = tempfile::tempdir().unwrap();
    let run = patients(folder.path(), 200, |_, _| {});
    let run = run.set("attribute=[{ name = \"sex\" }, { name = \"age\", threshold = 60 }]");
    let table = "[compare]\nattributes = [\"sex\", \"age\"]\n[compare.strategy.febs]\n[compare.strategy.sam]\n";
    let run = with_comparison(run.set("evaluation.replicates=0"), table);
    let outcome = succeed([run.arguments("compare"), vec!["--json".to_owned()]].concat());
    let verdict: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let blocks = verdict["blocks"].as_array().unwrap();
    assert_eq!(blocks.len(), 6, "two attributes, three metrics");
    for block in blocks {
        let attribute = block["attribute"].as_str().unwrap();
        let rows = block["rows"].as_array().unwrap();
        let strategies: Vec<&str> = rows.iter().map(|row| row["strategy"].as_str().unwrap()).collect();
        assert_eq!(strategies, ["erm", "erm", "febs", "sam"]);
        for row in rows {
            assert!(row["n-candidates"].as_u64().unwrap() > 0, "{row}");
            let found = row["seeds"][0]["run"].as_str();
            let belongs = |run: &str| row["strategy"] != "febs" || run.starts_with(attribute);
            assert!(found.is_none_or(belongs), "{attribute}: {row}");
        }
        let of_erm = rows[0]["n-candidates"].as_u64().unwrap();
        let erm_of_other = blocks.iter().map(|other| other["rows"][0]["n-candidates"].as_u64().unwrap());
        assert!(erm_of_other.clone().all(|n| n == of_erm), "{:?}", erm_of_other.collect::<Vec<_>>());
    }
}

#[test]
fn selection_json_holds_the_values_of_the_files_it_names() {
    for (strategy, weights) in [
        ("swad={ n-converge = 1, n-tolerance = 8 }", "averaged over epochs "),
        ("recalibration", ", recalibrated by group"),
        ("controlled-attribute", "by group, the best epoch of its own network"),
        ("erm", "epoch "),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let run = patients(folder.path(), 300, |_, _| {})
            .set(&format!(
                "strategy.{}",
                if strategy.contains('=') { strategy.to_owned() } else { format!("{strategy}={{}}") }
            ))
            .set("training.epochs=6")
            .set("training.patience=6")
            .set("optimiser.learning-rate=0.02");
        succeed(run.arguments("train"));
        // In the form of a run of a comparison, so that the files are scored by the same function.
        let runs = tempfile::tempdir().unwrap();
        let name = strategy.split('=').next().unwrap();
        let moved = runs.path().join(format!("{name}-seed1"));
        std::fs::rename(run.output(), &moved).or_else(|_| copy_files(&run.output(), &moved)).unwrap();
        let record = json(&moved.join("selection.json"));
        let kept = kept_files(runs.path());
        let mut n_checked = 0;
        for (rule, choice) in record["rules"].as_object().unwrap() {
            assert!(choice["weights"].as_str().unwrap().contains(weights), "{strategy}: {choice}");
            let file = kept.iter().find(|kept| Some(kept.epoch) == choice["epoch"].as_u64()).unwrap();
            let metric = match rule.trim_start_matches("gap-") {
                "c-td" => "c_td_antolini_strict",
                "auc-td" => "auc_td",
                "ibs" => "ibs",
                _ => continue,
            };
            let what = format!("{strategy}: {rule}");
            same(&choice["value"], value(&file.validation, metric), &what);
            same(&choice["gap"], gap(&file.validation, metric), &what);
            n_checked += 1;
        }
        assert_eq!(n_checked, 6, "{strategy}: {record}");
    }
}

fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        if path.is_file() {
            std::fs::copy(&path, to.join(path.file_name().unwrap()))?;
        }
    }
    Ok(())
}
