//! Estimators on columns through the program: same files, report, prediction, comparison and study as a network, on a table and
//! on the covariates of images; what would have no effect is refused.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::{Path, PathBuf};

use fairtte_data::predictions::{PredictionTable, Rising};
use fairtte_data::read_predictions;
use fairtte_tests::{SmallRun, c_td, fail, files, generic_table, patients, report, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const DATA: i32 = 4;
const NAMES: [&str; 7] = ["cox", "cox-elastic-net", "cox-time-varying", "logistic-hazard", "aft", "forest", "boosting"];

/// A run file on the columns of a made-up table, without tables about networks.
fn config(folder: &Path, further: &str) -> PathBuf {
    patients(folder, 400, |_, _| ());
    let text = format!(
        "output = '{0}/run'\ncache = '{0}/cache'\n[data.tabular]\ntable = '{0}/patients.csv'\nsubject = \"pid\"\n\
         time-unit = \"years\"\nnumeric = [\"x0\", \"x1\", \"x2\", \"x3\"]\ncategorical = [\"sex\"]\n\
         [[attribute]]\nname = \"sex\"\n[[attribute]]\nname = \"age\"\nthreshold = 57\n[time]\nintervals = 8\n\
         [evaluation]\nreplicates = 20\npermutations = 0\n{further}\n",
        folder.display()
    );
    let path = folder.join("estimator.toml");
    std::fs::write(&path, text).unwrap();
    path
}

fn words(path: &Path) -> String {
    path.display().to_string()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn curves(folder: &Path) -> PredictionTable {
    read_predictions(&folder.join("predictions.parquet"), Rising::Refuse).unwrap()
}

#[test]
fn every_estimator_trains_reports_and_predicts_other_data_as_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), "");
    let listed = succeed(["list", "estimators"]).stdout;
    let mut grids = Vec::new();
    for name in NAMES {
        assert!(listed.contains(&format!("  {name} ")), "{listed}");
        let output = folder.path().join(name);
        let estimator = format!("estimator={name}");
        succeed(["train", "--config", &words(&path), "--set", &estimator, "--output", &words(&output)]);
        // x0 alone orders samples by their risk with C^td of about 0.68.
        let found = c_td(&report(&output));
        assert!(found > 0.6, "{name}: {found}");
        let selection = json(&output.join("selection.json"));
        assert_eq!(selection["reads-groups"], false);
        assert_eq!(selection["rules"]["gap-c-td@age"]["epoch"], 1, "one fit serves every attribute");
        let resolved = std::fs::read_to_string(output.join("run.toml")).unwrap();
        assert!(!resolved.contains("[model]") && !resolved.contains("[training]"), "{resolved}");
        // The same command finds the finished run.
        let again = succeed(["train", "--config", &words(&path), "--set", &estimator, "--output", &words(&output)]);
        assert!(again.stderr.contains("this run is done"), "{}", again.stderr);
        // The kept model predicts what the run predicted.
        let predicted = folder.path().join(format!("{name}-again"));
        succeed(["predict", &words(&output), "--data", &words(&path), "--output", &words(&predicted)]);
        assert_eq!(json(&predicted.join("predict.json"))["prediction"], "estimator", "{name}");
        let (own, other) = (curves(&output), curves(&predicted));
        assert_eq!(own.grid, other.grid);
        for (sample, curve) in own.samples.iter().zip(own.survival.rows()) {
            let place = other.samples.iter().position(|known| known == sample).unwrap();
            assert_eq!(curve, other.survival.row(place), "{name}: {sample}");
        }
        let page = std::fs::read_to_string(output.join("report.html")).unwrap();
        assert!(page.contains(&format!("<dt>estimator</dt><dd>{name}")), "{name}");
        let facts: &[&str] = match name {
            "cox" => &["hazard ratios</dt>", "proportional hazards</dt>"],
            "cox-elastic-net" => &["hazard ratios of "],
            "cox-time-varying" => &["hazard ratios at ", "change of coefficients</dt>"],
            "logistic-hazard" => &["odds ratios of the hazard of an interval</dt>"],
            "aft" => &["ratios of times</dt>"],
            "forest" => &["out-of-bag error</dt>", "permutation importance</dt>"],
            _ => &[],
        };
        let of_any =
            ["hazard ratios", "odds ratios", "ratios of times", "proportional", "out-of-bag", "permutation imp"];
        let n_facts = of_any.iter().filter(|fact| page.contains(&format!("<dt>{fact}"))).count();
        assert_eq!(n_facts, facts.iter().filter(|fact| !fact.starts_with("change")).count(), "{name}");
        for fact in facts {
            assert!(page.contains(&format!("<dt>{fact}")), "{name}: {fact}");
        }
        let sex = if name == "forest" || name == "boosting" { "" } else { "sex=M " };
        assert!(page.contains(sex), "{name}: ratios have the names of the columns");
        let card = succeed(["card", &words(&output), "--output", &words(&folder.path().join("card.md"))]);
        assert!(card.stdout.contains("card.md"));
        assert!(
            std::fs::read_to_string(folder.path().join("card.md")).unwrap().contains(&format!("**estimator**: {name}"))
        );
        grids.push(own.grid);
    }
    assert!(grids.iter().all(|grid| *grid == grids[0]), "all predict at the times of the run's grid");
}

#[test]
fn the_coefficients_of_a_cox_run_are_those_that_the_table_was_made_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), "[estimator.cox]");
    succeed(["train", "--config", &words(&path)]);
    let kept = json(&folder.path().join("run/model/epoch-00001/estimator.json"));
    let terms = kept["cox"]["coefficients"].as_array().unwrap();
    let of = |name: &str| {
        let term = terms.iter().find(|term| term["name"] == name).unwrap_or_else(|| panic!("no {name} in {terms:?}"));
        (term["value"].as_f64().unwrap(), term["standard-error"].as_f64().unwrap())
    };
    // x0 is 1.3 per unit and has a standard deviation of 0.71; columns are standardised.
    let (value, error) = of("x0");
    assert!((value - 1.3 * 0.707).abs() < 4.0 * error && error < 0.15, "{value} ({error})");
    let (noise, error) = of("x2");
    assert!(noise.abs() < 4.0 * error, "{noise} ({error})");
    // The first level of a category is the reference.
    assert!(terms.iter().any(|term| term["name"] == "sex=M") && !terms.iter().any(|term| term["name"] == "sex=F"));
    // Strata are named as columns are, and leave no coefficient.
    let stratified = folder.path().join("stratified");
    let strata = "estimator.cox.strata=[\"sex=M\"]";
    succeed(["train", "--config", &words(&path), "--set", strata, "--output", &words(&stratified)]);
    let kept = json(&stratified.join("model/epoch-00001/estimator.json"));
    let names: Vec<&Value> = kept["cox"]["coefficients"].as_array().unwrap().iter().map(|term| &term["name"]).collect();
    assert_eq!(names, ["x0", "x1", "x2", "x3"]);
}

/// The number of a fact of a page that comes after `before`.
fn shown(page: &str, fact: &str, before: &str) -> f64 {
    let (_, after) = page.split_once(&format!("<dt>{fact}</dt><dd>")).unwrap_or_else(|| panic!("no {fact}"));
    let (_, number) = after.split_once(before).unwrap_or_else(|| panic!("no {before} in {fact}"));
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap();
    number[..end].parse().unwrap()
}

#[test]
fn the_page_shows_ratios_and_tests_of_the_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), "[estimator.cox]");
    let train = |name: &str, sets: &[&str]| {
        let output = folder.path().join(name);
        let mut arguments = vec!["train".to_owned(), "--config".to_owned(), words(&path)];
        arguments.extend(["--output".to_owned(), words(&output)]);
        arguments.extend(sets.iter().flat_map(|set| ["--set".to_owned(), (*set).to_owned()]));
        succeed(arguments);
        (std::fs::read_to_string(output.join("report.html")).unwrap(), json(&output.join("fit.json")), output)
    };
    // The hazard of the table is exp(1.3 x0 ..) at all times, and x0 has a standard deviation of 0.71.
    let (page, checks, _) = train("cox", &[]);
    let ratio = shown(&page, "hazard ratios", "x0 ");
    assert!((ratio.ln() - 1.3 * 0.707).abs() < 0.4, "{ratio}");
    let p = checks["proportionality"]["global"]["p-value"].as_f64().unwrap();
    assert!((shown(&page, "proportional hazards", "p = ") - p).abs() < 0.000_6 && p > 0.001, "{p}");
    let columns = checks["proportionality"]["covariates"].as_array().unwrap();
    let of_x0 = &columns.iter().find(|column| column["name"] == "x0").unwrap()["test"]["p-value"];
    let of_x0 = of_x0.as_f64().unwrap();
    let on_page = shown(&page, "proportional hazards", "x0 ");
    assert!((on_page - of_x0).abs() < 0.000_6 && of_x0 > 0.001, "{on_page}, {of_x0} in {columns:?}");
    // Times are exponential, so that a Weibull model divides times by what multiplies the hazard.
    let (page, checks, _) = train("aft", &["estimator=aft"]);
    assert!((shown(&page, "ratios of times", "x0 ") * ratio - 1.0).abs() < 0.15, "{ratio}");
    assert!(
        checks["proportionality"].is_null() && checks["columns"].as_array().unwrap().iter().any(|name| name == "x0")
    );
}

#[test]
fn a_seed_changes_what_is_random_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), "[estimator.forest]\ntrees = 20");
    let train = |name: &str, sets: &[&str]| {
        let output = folder.path().join(name);
        let mut arguments = vec!["train".to_owned(), "--config".to_owned(), words(&path)];
        arguments.extend(["--output".to_owned(), words(&output)]);
        arguments.extend(sets.iter().flat_map(|set| ["--set".to_owned(), (*set).to_owned()]));
        succeed(arguments);
        std::fs::read(output.join("predictions.parquet")).unwrap()
    };
    let first = train("first", &[]);
    assert_eq!(first, train("threads", &["threads=1"]));
    assert_ne!(first, train("training-seed", &["training-seed=2"]));
    assert_ne!(first, train("own-seed", &["estimator.forest.seed=1"]));
    assert_eq!(train("one", &["training-seed=2"]), train("other", &["training-seed=2", "threads=2"]));
    let aft = train("aft", &["estimator=aft"]);
    assert_eq!(aft, train("aft-seed", &["estimator=aft", "training-seed=2"]), "nothing in it is random");
    assert_ne!(aft, train("log-normal", &["estimator.aft.distribution=log-normal"]));
}

#[test]
fn what_has_no_effect_and_what_cannot_be_fitted_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), "[estimator.cox]");
    let refuse = |sets: &[&str], code: i32, sentence: &str| {
        let output = folder.path().join("refused");
        let mut arguments = vec!["train".to_owned(), "--config".to_owned(), words(&path)];
        arguments.extend(["--output".to_owned(), words(&output)]);
        arguments.extend(sets.iter().flat_map(|set| ["--set".to_owned(), (*set).to_owned()]));
        fail(arguments, code, sentence);
        assert!(!output.join("predictions.parquet").exists());
        let _ = std::fs::remove_dir_all(output);
    };
    for key in ["model.hidden=3", "head=pmf", "strategy=swad", "training.epochs=3", "optimiser.learning-rate=0.1"] {
        let table = key.split(['.', '=']).next().unwrap();
        refuse(&[key], CONFIG, &format!("{table}: it has no effect beside [estimator.cox], which trains no network"));
    }
    refuse(&["groups.train=[\"sex\"]"], CONFIG, "groups.train: it has no effect: cox reads no groups");
    refuse(&["estimator.cox.ridge=-1"], CONFIG, "estimator.cox.ridge is -1, expected a number >= 0");
    refuse(&["estimator.cox.strata=[\"height\"]"], CONFIG, "strata names the covariate \"height\", expected one of");
    refuse(&["estimator=coks"], CONFIG, "unknown variant \"coks\"");
    refuse(&["baseline.covariates=[\"height\"]"], CONFIG, "\"height\" is not an [[attribute]] of this run");
    // A column twice, under two names.
    let table = folder.path().join("patients.csv");
    let text = std::fs::read_to_string(&table).unwrap();
    let twice = |(n, line): (usize, &str)| {
        let x0 = line.split(',').nth(5).unwrap();
        if n == 0 { format!("{line},copy\n") } else { format!("{line},{x0}\n") }
    };
    std::fs::write(&table, text.lines().enumerate().map(twice).collect::<String>()).unwrap();
    let numeric = "data.tabular.numeric=[\"x0\", \"x1\", \"copy\"]";
    refuse(&[numeric], DATA, "covariate \"copy\" is a linear combination of others (\"x0\"): leave one of them out");
}

#[test]
fn commands_about_networks_say_that_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), "[estimator.boosting]\ntrees = 5");
    succeed(["train", "--config", &words(&path)]);
    let run = words(&folder.path().join("run"));
    let sentence = "fitted an estimator, expected a run that trained a network";
    let before = files(&folder.path().join("run"));
    fail(["features", &run], CONFIG, sentence);
    fail(["bias", &run], CONFIG, sentence);
    fail(["weights", "export", &run, "--output", &words(&folder.path().join("x.safetensors"))], CONFIG, sentence);
    fail(["explain", &run, "--horizon", "2", "--samples", "p0001"], CONFIG, sentence);
    assert_eq!(files(&folder.path().join("run")), before);
    assert!(!folder.path().join("x.safetensors").exists());
}

#[test]
fn an_estimator_on_images_reads_their_covariates_and_has_the_same_samples_as_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "output = '{0}/run'\ncache = '{0}/cache'\n[data.simulated]\nn-subjects = 200\nsize = [32, 32]\n\
         [[attribute]]\nname = \"sex\"\n[[attribute]]\nname = \"age\"\nthreshold = 60\n[image]\nsize = [32, 32]\n\
         [evaluation]\nreplicates = 0\npermutations = 0\n[estimator.cox]\n",
        folder.path().display()
    );
    let path = folder.path().join("covariates.toml");
    std::fs::write(&path, text).unwrap();
    let outcome = succeed(["train", "--config", &words(&path)]);
    assert!(outcome.stderr.contains("with 2 columns"), "age, and one of two sexes: {}", outcome.stderr);
    let network =
        SmallRun::with_data(&folder.path().join("network"), "[data.simulated]\nn-subjects = 200\nsize = [32, 32]\n");
    network.set("training.epochs=1").train();
    let samples = |folder: &Path| curves(folder).samples;
    assert_eq!(samples(&folder.path().join("run")), samples(&folder.path().join("network/run")));
    let one = folder.path().join("age-alone");
    let chosen = "baseline.covariates=[\"age\"]";
    let outcome = succeed(["train", "--config", &words(&path), "--set", chosen, "--output", &words(&one)]);
    assert!(outcome.stderr.contains("with 1 column"), "{}", outcome.stderr);
    // The baseline of the report has the same covariates.
    assert_eq!(json(&one.join("evaluation.json"))["baseline"]["covariates"], serde_json::json!(["age"]));
    // Other images by their covariates.
    let other = folder.path().join("other");
    succeed(["predict", &words(&folder.path().join("run")), "--data", &words(&path), "--output", &words(&other)]);
    let (own, again) = (curves(&folder.path().join("run")), curves(&other));
    let place = again.samples.iter().position(|sample| *sample == own.samples[0]).unwrap();
    assert_eq!(own.survival.row(0), again.survival.row(place));
    // A hospital with few ages, which writes the sex in words: both are read as the fit read them.
    let table = generic_table(&folder.path().join("hospital"), 4, |_, _| None);
    let people = [("male", 50), ("M", 50), ("male", 70), ("F", 70)];
    let line = |(row, (sex, age)): (usize, &(&str, i32))| format!("{row}.png,p{row},{sex},{age}");
    let lines: Vec<String> = people.iter().enumerate().map(line).collect();
    std::fs::write(&table, format!("image,subject_id,sex,age\n{}\n", lines.join("\n"))).unwrap();
    let (run, output) = (words(&folder.path().join("run")), folder.path().join("of-hospital"));
    let call = ["predict", &run, "--table", &words(&table), "--level", "sex.male=M", "--output", &words(&output)];
    succeed(call);
    let found = curves(&output).survival;
    assert_eq!(found.row(0), found.row(1), "male is M");
    assert_ne!(found.row(0), found.row(2), "70 is not 50");
    assert_ne!(found.row(2), found.row(3), "M is not F");
}

#[test]
fn estimators_are_compared_with_strategies_and_are_in_studies() {
    let folder = tempfile::tempdir().unwrap();
    let compared = "[training]\nepochs = 2\n[compare]\nseeds = [1, 2]\n[compare.strategy.erm]\n\
                    [compare.strategy.group-dro]\n[compare.estimator.cox]\n[compare.estimator.forest]\ntrees = 10\n";
    let path = config(folder.path(), compared);
    let output = folder.path().join("compared");
    succeed(["compare", "--config", &words(&path), "--output", &words(&output)]);
    let choice = json(&output.join("choice.json"));
    for block in choice["blocks"].as_array().unwrap() {
        let rows = block["rows"].as_array().unwrap();
        let named = |name: &str| rows.iter().any(|row| row["strategy"] == name && row["chosen"].is_object());
        assert!(named("cox") && named("forest") && named("erm"), "{block:#}");
    }
    // An estimator reads no groups, so that one fit serves both attributes.
    assert!(output.join("all-attributes/cox-seed1/done").exists() && !output.join("sex/cox-seed1").exists());
    let kept = std::fs::read_to_string(output.join("all-attributes/forest-seed1/run.toml")).unwrap();
    assert!(kept.contains("trees = 10") && !kept.contains("[training]"), "{kept}");
    fail(
        ["compare", "--config", &words(&path), "--set", "compare.estimator.erm={}", "--output", &words(&output)],
        CONFIG,
        "compare.estimator: \"erm\" is no estimator, expected one of cox",
    );

    let run_file = folder.path().join("of_study.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&run_file, text.split("[compare]").next().unwrap()).unwrap();
    let study = folder.path().join("study.toml");
    let text = format!(
        "output = '{}/study'\ntrials = 2\n[[data]]\nrun-file = \"of_study.toml\"\n[strategies]\nnames = [\"group-dro\"]\n\
         [estimators]\nnames = [\"cox\", \"aft\"]\n[estimators.settings.aft]\ndistribution = \"log-normal\"\n\
         [search.\"optimiser.learning-rate\"]\nlog-uniform = [1e-3, 1e-2]\n",
        folder.path().display()
    );
    std::fs::write(&study, text).unwrap();
    succeed(["study", "run", &words(&study)]);
    let folder = folder.path().join("study");
    let manifest = std::fs::read_to_string(folder.join("manifest.csv")).unwrap();
    assert!(manifest.contains(",cox,") && manifest.contains(",aft,"), "{manifest}");
    succeed(["study", "report", &words(&folder)]);
    let table = std::fs::read_to_string(folder.join("tables/strategies.csv")).unwrap();
    assert!(table.contains("cox") && table.contains("aft"), "{table}");
}
