//! A study through the program: plan, trials that are killed and resumed, results and report.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use fairtte_tests::{fail, fairtte, files, run, small_study, succeed};
use serde_json::Value;

fn words<'a>(first: &'a [&'a str], file: &'a Path, output: &'a Path) -> Vec<String> {
    let mut all: Vec<String> = first.iter().map(|word| (*word).to_owned()).collect();
    all.extend([file.display().to_string(), "--output".to_owned(), output.display().to_string()]);
    all
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The rows of the manifest by the names of its columns.
fn manifest(study: &Path) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(study.join("manifest.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(|cell| cell.trim_matches('"').to_owned()));
    let header: Vec<String> = lines.next().unwrap().collect();
    lines.map(|line| header.iter().cloned().zip(line).collect()).collect()
}

fn trial(study: &Path, id: &str) -> PathBuf {
    study.join("trials").join(&id[..2]).join(id)
}

#[test]
fn a_plan_draws_by_trial_and_key_and_names_trials_by_their_content() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (small_study(folder.path()), folder.path().join("a"));
    let said = succeed(words(&["study", "plan"], &file, &output)).stdout;
    let rows = manifest(&output);
    // Base: 2 attributes x 2 heads; fair: 2 x 2; shift: 2 x 3.
    assert_eq!(rows.len(), 2 * (4 + 4 + 6));
    let ids: BTreeSet<&String> = rows.iter().map(|row| &row["id"]).collect();
    // erm reads no groups: one training serves both attributes, unless the data of one attribute's group are shifted.
    assert_eq!(ids.len(), 2 * (2 + 4 + 6));
    assert!(said.contains("14 cells of 2 trials each are 24 trainings; 4 of 28 rows share"), "{said}");
    let rates = |trial: &str| -> BTreeSet<&String> {
        rows.iter().filter(|row| row["trial"] == trial).map(|row| &row["optimiser.learning-rate"]).collect()
    };
    assert!(rates("1").len() == 1 && rates("2").len() == 1 && rates("1") != rates("2"), "a draw per trial");
    let is_dro = |row: &&BTreeMap<String, String>| row["strategy"] == "group-dro";
    assert!(rows.iter().filter(is_dro).all(|row| !row["strategy.group-dro.eta"].is_empty()));
    assert!(rows.iter().filter(|row| !is_dro(row)).all(|row| row["strategy.group-dro.eta"].is_empty()));
    // Another folder, more trials and another key change no name; another value of a setting does.
    let names = |name: &str, set: &str| -> BTreeSet<String> {
        let other = folder.path().join(name);
        let mut arguments = words(&["study", "plan"], &file, &other);
        arguments.extend(["--set".to_owned(), set.to_owned()]);
        succeed(arguments);
        manifest(&other).into_iter().map(|mut row| row.remove("id").unwrap()).collect()
    };
    let ids: BTreeSet<String> = ids.into_iter().cloned().collect();
    assert!(names("b", "trials=5").is_superset(&ids));
    assert_eq!(names("c", "execute.jobs=7"), ids);
    assert!(names("d", "set.training.epochs=3").is_disjoint(&ids));
    assert!(names("e", "seed=2").is_disjoint(&ids));
}

#[test]
fn what_no_study_can_be_is_refused_by_key() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (small_study(folder.path()), folder.path().join("a"));
    for (set, code, sentence) in [
        ("trials=0", 3, "trials: 0 trials, expected at least 1"),
        ("trials=1000000000000", 3, "are more than 1000000 trainings"),
        ("heads.names=[\"cix\"]", 3, "cix"),
        ("strategies.names=[\"erm\"]", 3, "\"erm\" is the base, expected the others"),
        ("data=[{run-file=\"run.toml\",attributes=[\"race\"]}]", 3, "\"race\" is not an [[attribute]]"),
        ("shift-group={sex=\"F\"}", 3, "shift-group.age: which group is shifted is never guessed"),
        ("shifts.censoring={blur=[1.0]}", 3, "blur"),
        ("search={head={choice=[\"pmf\"]}}", 3, "an axis of the study sets it"),
        ("set.groups.train=[\"sex\"]", 3, "set.groups.train: an axis of the study sets it"),
        ("search={\"optimiser.learning-rate\"={uniform=[2,1]}}", 3, "the lower first"),
        ("search={\"optimiser.learning-rat\"={uniform=[1,2]}}", 3, "learning-rat"),
        ("search={\"strategy.group-droo.eta\"={uniform=[1,2]}}", 3, "search.\"strategy.group-droo.eta\": no training"),
        ("heads.base-head=\"cox-time\"", 3, "heads.base-head: \"cox-time\" is not in heads.names"),
        ("exclude=[{colour=\"red\"}]", 3, "there is no axis \"colour\""),
        ("exclude=[{head=\"cox\"}]", 3, "it excludes no cell"),
        ("execute.stale-minutes=0.5", 3, "at most half of stale-minutes, which is 30 s"),
        ("nothing=1", 3, "nothing"),
    ] {
        let mut arguments = words(&["study", "plan"], &file, &output);
        arguments.extend(["--set".to_owned(), set.to_owned()]);
        fail(&arguments, code, sentence);
        assert!(!output.exists(), "{set}: something was written");
    }
    fail(["study", "status", &folder.path().display().to_string()], 4, "this is not the folder of a study");
    let of_a_run = folder.path().join("plain.toml");
    std::fs::write(&of_a_run, "[data.generic]\ntable = \"cohort.csv\"\n[[attribute]]\nname = \"sex\"\n").unwrap();
    let refused = fail(words(&["study", "plan"], &of_a_run, &output), 3, "data: ");
    assert!(
        refused.stderr.contains("as a run file") && refused.stderr.contains("fairtte study template"),
        "{}",
        refused.stderr
    );
}

#[test]
fn shifts_that_permute_and_undersample_have_levels_like_all_others() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (small_study(folder.path()), folder.path().join("a"));
    let mut arguments = words(&["study", "plan"], &file, &output);
    let shifts = "shifts={mixed-up={permute=[0.2,0.5]},missing={undersample=[0.5]}}";
    arguments.extend(["--set".to_owned(), shifts.to_owned()]);
    succeed(arguments);
    let rows = manifest(&output);
    let shifted = rows.iter().filter(|row| row["block"] == "shift");
    let levels: BTreeSet<_> = shifted.map(|row| (row["shift"].as_str(), row["level"].as_str())).collect();
    assert_eq!(levels, BTreeSet::from([("missing", "0.5"), ("mixed-up", "0.2"), ("mixed-up", "0.5")]));
}

#[test]
fn a_plan_counts_every_block_its_cells_and_what_is_new_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (small_study(folder.path()), folder.path().join("a"));
    for set in ["folds=2", "include=[{head=\"pmf\",strategy=\"group-dro\"}]"] {
        let mut arguments = words(&["study", "plan"], &file, &output);
        arguments.extend(["--set".to_owned(), set.to_owned(), "--json".to_owned()]);
        let plan: serde_json::Value = serde_json::from_str(&succeed(arguments).stdout).unwrap();
        let blocks = plan["blocks"].as_array().unwrap();
        let sum = |key: &str| blocks.iter().map(|block| block[key].as_u64().unwrap()).sum::<u64>();
        let ids: BTreeSet<String> = manifest(&output).into_iter().map(|mut row| row.remove("id").unwrap()).collect();
        let n = |key: &str| plan[key].as_u64().unwrap();
        assert_eq!([sum("cells"), sum("rows"), sum("new")], [n("cells"), n("rows"), n("trainings")], "{set}: {plan}");
        assert_eq!(usize::try_from(n("trainings")).unwrap(), ids.len(), "{set}");
        assert_eq!(blocks.iter().any(|block| block["block"] == "include"), set.starts_with("include"));
    }
}

/// `kill PID`, `timeout` and `docker stop` reach the first process alone.
#[test]
#[cfg(unix)]
fn a_study_that_is_asked_to_stop_asks_its_trials_which_save_their_state() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (small_study(folder.path()), folder.path().join("a"));
    let long = ["--set", "set.training.epochs=100000", "--set", "set.training.patience=100000", "--jobs", "2"];
    let mut study =
        fairtte().args(words(&["study", "run"], &file, &output)).args(long).stderr(Stdio::null()).spawn().unwrap();
    // Folders of states come and go meanwhile: only the two levels of the trials are read.
    let inside = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let trains = |trial: &PathBuf| trial.join("steps.jsonl").exists();
    for _ in 0..600 {
        if inside(output.join("trials")).flat_map(inside).filter(trains).count() >= 2 {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let id = study.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(study.wait().unwrap().code(), Some(75));
    // Both have given their trial back, with the state that the next call resumes from.
    let held: Vec<String> = files(&output).into_iter().filter(|name| name.ends_with("lease.0")).collect();
    assert!(held.len() >= 2, "{held:?}");
    for name in held {
        let lease = output.join(&name);
        assert_eq!(lease.metadata().unwrap().modified().unwrap(), std::time::UNIX_EPOCH, "{name}");
        let states = files(lease.parent().unwrap()).into_iter().filter(|name| name.starts_with("checkpoint/")).count();
        assert!(states > 0, "{name}");
    }
    let status = succeed(["study", "status", &output.display().to_string()]).stdout;
    assert!(status.contains("to do") && !status.contains("running"), "{status}");
}

#[test]
fn a_study_that_is_killed_again_and_again_ends_with_the_same_results() {
    let folder = tempfile::tempdir().unwrap();
    let (file, whole, killed) = (small_study(folder.path()), folder.path().join("whole"), folder.path().join("killed"));
    succeed(words(&["study", "run"], &file, &whole));
    let results = |study: &Path| {
        succeed(["study", "collect", &study.display().to_string()]);
        std::fs::read(study.join("results.parquet")).unwrap()
    };
    let expected = results(&whole);
    for i in 0..8_u32 {
        let call = fairtte()
            .args(words(&["study", "run"], &file, &killed))
            .args(["--jobs", "2"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut call = call.unwrap();
        std::thread::sleep(Duration::from_millis(u64::from(150 + i * 137 % 700)));
        call.kill().unwrap(); // its children go on, and are met by the next call
        call.wait().unwrap();
    }
    let mut arguments = words(&["study", "run"], &file, &killed);
    arguments.extend(["--jobs".to_owned(), "2".to_owned()]);
    for _ in 0..100 {
        let outcome = run(&arguments);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let status = succeed(["study", "status", &killed.display().to_string()]).stdout;
        if !status.contains("running") && !status.contains("to do") {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(results(&killed), expected);
    for row in manifest(&killed) {
        let files = files(&trial(&killed, &row["id"]));
        let kept: Vec<&String> = files.iter().filter(|name| !name.starts_with("lease.")).collect();
        assert!(kept.len() <= 5, "{kept:?}");
        assert!(!files.iter().any(|name| name.ends_with(".parquet") || name.starts_with('.')), "{files:?}");
    }
    // Nothing is left to do, and nothing is done.
    let again = succeed(words(&["study", "run"], &file, &killed)).stderr;
    assert!(again.contains("0 of 24 trainings to run"), "{again}");
    the_report_follows_from_the_scores(&whole);
    intervals_are_of_the_chosen_models(&whole);
    a_trial_is_restored_to_the_run_that_training_gives(folder.path(), &whole);
    only_models_that_a_rule_chooses_stay(&whole);
}

fn a_trial_is_restored_to_the_run_that_training_gives(folder: &Path, study: &Path) {
    let place = manifest(study).iter().position(|row| row["strategy"] == "group-dro").unwrap();
    let (restored, trained) = (folder.join("restored"), folder.join("trained"));
    let restore = || {
        let words =
            ["study", "restore", &study.display().to_string(), &place.to_string(), "--output"].map(str::to_owned);
        words.into_iter().chain([restored.display().to_string()]).collect::<Vec<_>>()
    };
    succeed(restore());
    let id = &manifest(study)[place]["id"];
    let run_file = trial(study, id).join("run.toml").display().to_string();
    let output = trained.display().to_string();
    succeed(["train", "--config", &run_file, "--set", "evaluation.replicates=20", "--output", &output]);
    let curves =
        |folder: &Path| files(folder).into_iter().filter(|name| name.ends_with(".parquet")).collect::<Vec<_>>();
    assert_eq!(curves(&restored), curves(&trained));
    for name in curves(&trained).iter().map(String::as_str).chain(["selection.json", "split.csv", "evaluation.csv"]) {
        assert!(std::fs::read(restored.join(name)).unwrap() == std::fs::read(trained.join(name)).unwrap(), "{name}");
    }
    fail(restore(), 4, "this is the folder of a run; choose another --output");
}

/// The rows of a table of the report by the names of its columns.
fn table(study: &Path, name: &str) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(study.join("tables").join(name)).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let header: Vec<String> = lines.next().unwrap().collect();
    lines.map(|line| header.iter().cloned().zip(line).collect()).collect()
}

/// The models predict again, and their values are those of their training; the figures are drawn.
fn intervals_are_of_the_chosen_models(study: &Path) {
    succeed(["study", "report", &study.display().to_string(), "--replicates", "40"]);
    let chosen = table(study, "strategies.csv");
    let value = |setting: &str, strategy: &str, metric: &str| -> f64 {
        let row = chosen.iter().find(|row| row["setting"] == setting && row["strategy"] == strategy).unwrap();
        row[metric].parse().unwrap()
    };
    let rows = table(study, "intervals.csv");
    // Settings x strategies x metrics, as far as a model is within the tolerated loss.
    let chosen_gaps = |row: &&BTreeMap<String, String>| !row["strategy"].starts_with("erm");
    let n_chosen: usize = chosen
        .iter()
        .filter(chosen_gaps)
        .map(|row| ["c-td", "auc-td", "ibs"].iter().filter(|metric| !row[**metric].is_empty()).count())
        .sum();
    assert!(rows.len() == n_chosen && n_chosen <= 2 * 2 * 3, "{} of {n_chosen}", rows.len());
    let mut n = 0;
    for row in rows.iter().filter(|row| !row["change"].is_empty()) {
        let metric = row["metric"].replace('^', "-").to_lowercase();
        let control = value(&row["setting"], "erm (same rule)", &metric);
        let expected = value(&row["setting"], &row["strategy"], &metric) - control;
        let [change, lower, upper] = ["change", "lower", "upper"].map(|name| row[name].parse::<f64>().unwrap());
        assert!((change - expected).abs() < 1e-9, "{row:?}: {expected}");
        assert!(lower <= upper && lower < change + 0.2 && upper > change - 0.2, "{row:?}");
        n += 1;
    }
    assert!(n > 0);
    // 2 settings x 3 metrics; the pages of the folder are the same for every command, and the figures have intervals now.
    let figures = files(&study.join("figures"));
    for name in ["groups-c-td.svg", "es-ibs.svg", "shift-censoring-utility.svg", "shift-run-sex.svg"] {
        assert!(figures.iter().any(|figure| figure == name), "{name} is not in {figures:?}");
    }
    let svg = std::fs::read_to_string(study.join("figures/groups-c-td.svg")).unwrap();
    assert!(svg.contains(" to "), "an interval is said: {svg}");
    let cohorts = table(study, "cohorts.csv");
    assert_eq!((cohorts[0]["group"].as_str(), cohorts[0]["samples"].as_str()), ("all", "160"));
    // A report without intervals keeps no table of the last one, but what somebody else put there.
    let own = study.join("tables/own.csv");
    std::fs::write(&own, "").unwrap();
    succeed(["study", "report", &study.display().to_string()]);
    let listed = json(&study.join("study.json"))["files"].as_array().unwrap().clone();
    let listed: BTreeSet<String> = listed.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    let found = |of: &str| files(&study.join(of)).into_iter().map(|name| format!("{of}/{name}")).collect::<Vec<_>>();
    let found: BTreeSet<String> = [found("tables"), found("figures")].concat().into_iter().collect();
    assert_eq!(found.difference(&listed).collect::<Vec<_>>(), ["tables/own.csv"]);
    assert!(found.is_superset(&listed) && listed.contains("tables/strategies.csv"), "{listed:?}");
    assert!(!found.iter().any(|name| name.starts_with("tables/intervals.")), "{found:?}");
}

fn only_models_that_a_rule_chooses_stay(study: &Path) {
    let models = || files(study).into_iter().filter(|name| name.ends_with("model.tar")).collect::<BTreeSet<_>>();
    let all = models();
    let would = succeed(["study", "clean", &study.display().to_string(), "--dry-run"]).stdout;
    assert_eq!(models(), all, "{would}");
    succeed(["study", "clean", &study.display().to_string()]);
    let kept = models();
    assert!(kept.len() < all.len() && kept.is_subset(&all), "{} of {}", kept.len(), all.len());
    // The best of every cell stays: of two trials at least one, by any metric.
    let cells = manifest(study).into_iter().fold(BTreeMap::<String, Vec<String>>::new(), |mut cells, row| {
        let axes = ["block", "attribute", "head", "strategy", "shift"].map(|axis| row[axis].clone()).join(" ");
        cells.entry(axes).or_default().push(row["id"].clone());
        cells
    });
    for (cell, ids) in cells {
        assert!(ids.iter().any(|id| trial(study, id).join("model.tar").exists()), "{cell} has no model");
    }
}

/// The choice of the paper, computed here from the scores alone.
fn the_report_follows_from_the_scores(study: &Path) {
    succeed(["study", "report", &study.display().to_string()]);
    let table = std::fs::read_to_string(study.join("tables/strategies.csv")).unwrap();
    let header: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|title| *title == name).unwrap();
    let shown = |setting: &str, strategy: &str, name: &str| -> Option<f64> {
        let line = table.lines().find(|line| line.starts_with(&format!("{setting},{strategy},")))?;
        line.split(',').nth(column(name))?.parse().ok()
    };
    // (validation value, validation gap, test value, test gap) of every kept epoch that serves the attribute.
    let models = |attribute: &str, strategy: &str, metric: &str| -> Vec<[Option<f64>; 4]> {
        let mut found = Vec::new();
        for row in manifest(study) {
            let block = if strategy == "erm" { "base" } else { "fair" };
            let is_of = row["attribute"] == attribute && row["strategy"] == strategy && row["block"] == block;
            let path = trial(study, &row["id"]).join("scores.json");
            if !is_of || row["head"] != "nnet-survival" || !path.exists() {
                continue;
            }
            for kept in json(&path)["kept"].as_array().unwrap() {
                let rules = kept["rules"].as_array().unwrap().iter().map(|rule| rule.as_str().unwrap());
                if !rules.clone().any(|rule| rule.split_once('@').is_none_or(|(_, of)| of == attribute)) {
                    continue;
                }
                let value = |part: usize| {
                    let metrics = kept["parts"][part]["metrics"].as_array().unwrap();
                    let metric = metrics.iter().find(|found| found["metric"] == metric).unwrap();
                    let of = metric["attributes"].as_array().unwrap();
                    let of = of.iter().find(|found| found["attribute"] == attribute).unwrap();
                    [metric["overall"]["value"].as_f64(), of["gap"]["value"].as_f64()]
                };
                let ([a, b], [c, d]) = (value(0), value(1));
                found.push([a, b, c, d]);
            }
        }
        found
    };
    let mut n_checked = 0;
    for attribute in ["sex", "age"] {
        let setting = ["", "*"].map(|star| format!("run {attribute}{star}"));
        let setting = setting.iter().find(|setting| table.contains(&format!("{setting},"))).unwrap();
        for (metric, sign) in [("c-td", 1.0), ("auc-td", 1.0), ("ibs", -1.0)] {
            let base = models(attribute, "erm", metric);
            let best = base.iter().filter(|m| m[0].is_some()).map(|m| sign * m[0].unwrap()).fold(f64::MIN, f64::max);
            let chosen = base.iter().find(|m| m[0] == Some(sign * best)).unwrap();
            assert_eq!(shown(setting, "erm", metric), chosen[2], "{setting} {metric}");
            let limit = best - 0.05 * best.abs();
            for strategy in ["group-dro", "laftr"] {
                let within = models(attribute, strategy, metric);
                let within =
                    within.iter().filter(|m| m[0].is_some_and(|value| sign * value >= limit) && m[1].is_some());
                let Some(fairest) = within.clone().map(|m| m[1].unwrap()).reduce(f64::min) else {
                    assert_eq!(shown(setting, strategy, metric), None);
                    continue;
                };
                let gap = shown(setting, strategy, &format!("gap-{metric}"));
                let of_fairest: Vec<Option<f64>> = within.filter(|m| m[1] == Some(fairest)).map(|m| m[3]).collect();
                assert!(of_fairest.contains(&gap), "{setting} {strategy} {metric}: {gap:?} of {of_fairest:?}");
                n_checked += 1;
            }
        }
    }
    assert!(n_checked >= 6, "only {n_checked} choices were checked");
    let page = std::fs::read_to_string(study.join("study.html")).unwrap();
    assert!(page.contains("Changes from erm in %") && !page.contains("<script"), "no scripts on the page");
    let before =
        files(study).into_iter().map(|name| (std::fs::read(study.join(&name)).unwrap(), name)).collect::<Vec<_>>();
    succeed(["study", "report", &study.display().to_string()]);
    let after =
        files(study).into_iter().map(|name| (std::fs::read(study.join(&name)).unwrap(), name)).collect::<Vec<_>>();
    assert!(before == after, "the same bytes again");
}

#[test]
fn a_method_that_cannot_be_trained_is_a_result_and_a_failure_is_tried_again_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (small_study(folder.path()), folder.path().join("a"));
    let mut arguments = words(&["study", "run"], &file, &output);
    let sets = ["strategies.names=[\"laftr\"]", "shifts={}", "trials=1", "heads.names=[\"pmf\"]"];
    arguments.extend(sets.iter().flat_map(|set| ["--set".to_owned(), (*set).to_owned()]));
    // More strata than the training part can fill.
    let stratum = "search={\"strategy.laftr.stratum\"={fixed={kind=\"event-x-bin\",bins=40}}}";
    arguments.extend(["--set".to_owned(), stratum.to_owned()]);
    let said = succeed(&arguments).stderr;
    assert!(said.contains("1 done, 2 not trained"), "{said}");
    let status = succeed(["study", "status", &output.display().to_string()]).stdout;
    assert!(status.contains("not trained: 1 trial (2): strategy laftr needs 10 training samples"), "{status}");
    let report = succeed(["study", "report", &output.display().to_string()]).stdout;
    assert!(report.contains("1 done, 2 not trained"), "{report}");
    // A failure for good is left alone until it is requested.
    let id = &manifest(&output)[0]["id"];
    let folder = trial(&output, id);
    std::fs::remove_file(folder.join("scores.json")).unwrap();
    let failure = "{\"class\":\"data\",\"message\":\"no table\",\"host\":\"n1\",\"attempts\":1}";
    std::fs::write(folder.join("failed.json"), failure).unwrap();
    fail(&arguments, 4, "1 trial failed; `fairtte study status` says why");
    let status = succeed(["study", "status", &output.display().to_string()]).stdout;
    assert!(status.contains("unreadable data: 1 trial (0) on n1: no table"), "{status}");
    succeed(["study", "trial", &output.display().to_string(), "0", "--again"]);
    assert!(folder.join("scores.json").exists() && !folder.join("failed.json").exists());
    // A trial that fails does not keep the others of its pack from running.
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "in the way").unwrap();
    let place = manifest(&output).iter().position(|row| row["strategy"] == "laftr").unwrap();
    let refused = trial(&output, &manifest(&output)[place]["id"]).join("refused.json");
    std::fs::remove_file(&refused).unwrap();
    let id = id.clone();
    fail(["study", "trial", &output.display().to_string(), "0", &place.to_string()], 4, &id);
    assert!(refused.exists());
}

/// In group F the images say little about the time: Harrell's C of what they say is 0.56 instead of 0.74.
#[test]
fn a_planted_difference_between_groups_is_said_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let run_file = "seed = 3\n[data.simulated]\nn-subjects = 2500\nsize = [24, 24]\nbias = { mi-time = 1.0 }\n\
                    [[attribute]]\nname = \"sex\"\n[image]\nsize = [24, 24]\n[time]\nintervals = 8\n\
                    [model]\nbackbone = \"small-2d\"\n[training]\nepochs = 8\nbatch-size = 64\nmonitor = \"c-td\"\n";
    let study = "trials = 8\nblocks = [\"base\", \"fair\"]\n[[data]]\nrun-file = \"films.toml\"\n\
                 [strategies]\nnames = [\"controlled-attribute\"]\n[bias]\nbound = true\n\
                 [search]\n\"optimiser.learning-rate\" = { log-uniform = [1e-3, 1e-2] }\n";
    std::fs::write(folder.path().join("films.toml"), run_file).unwrap();
    std::fs::write(folder.path().join("study.toml"), study).unwrap();
    let (file, output) = (folder.path().join("study.toml"), folder.path().join("a"));
    let mut arguments = words(&["study", "run"], &file, &output);
    arguments.extend(["--jobs".to_owned(), "2".to_owned()]);
    succeed(&arguments);
    let said = succeed(["study", "report", &output.display().to_string()]).stdout;
    let sentence = "films sex: F is predicted worse than M: C^td is lower by 0.";
    assert!(said.contains(sentence) && said.contains("in the median of 8 pairs"), "{said}");
    assert!(std::fs::read_to_string(output.join("study.html")).unwrap().contains("F is predicted worse than M"));
    let medians: Vec<f64> =
        table(&output, "p-between-groups.csv").iter().map(|row| row["median-difference"].parse().unwrap()).collect();
    assert!(medians[0] < -0.05 && medians[1] < -0.05 && medians[2] > 0.0, "F - M in C^td, AUC^td and IBS: {medians:?}");
    the_planted_source_and_the_bound_are_shown(&output, &said);
}

/// What the images say about the time differs, and not when events happen or who is censored.
fn the_planted_source_and_the_bound_are_shown(study: &Path, said: &str) {
    let sentence = said.lines().find(|line| line.contains("films sex: Largest after correction for chance")).unwrap();
    assert!(sentence.contains("features and time"), "{sentence}");
    let sources = table(study, "bias-sources.csv");
    let p =
        |name: &str| -> f64 { sources.iter().find(|row| row["source"] == name).unwrap()["p-holm"].parse().unwrap() };
    assert!(p("features and time") < 0.05, "{sources:?}");
    assert!(p("event times") > 0.05 && p("censoring rate") > 0.05, "{sources:?}");
    let bound = table(study, "bound.csv");
    let number = |name: &str| -> f64 { bound[0][name].parse().unwrap() };
    assert_eq!((bound.len(), bound[0]["groups"].as_str()), (1, "F and M"));
    assert_eq!(bound[0]["models"], "16", "eight trials of two strategies");
    assert!(number("gap-of-base") > 0.0 && number("gap-of-base") <= number("bound"), "{bound:?}");
    assert!((number("eta") + number("d") - number("bound")).abs() < 1e-12 && number("p") < 0.05, "{bound:?}");
    assert!(number("d-lower") <= number("d") && number("eta-lower") <= number("eta-upper"), "{bound:?}");
    assert!(said.contains("films sex, F and M: the gap in error of erm is 0."), "{said}");
}
