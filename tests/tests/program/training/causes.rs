//! Runs on events of several causes: `[outcome]` in a run file, the estimators `fine-gray` and `cause-specific`, predictions of
//! their incidence, and several of them compared; what is about one kind of event refuses them.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fairtte_classical::{CauseSpecific, CoxSettings, FineGraySettings};
use fairtte_data::cohort::read_cohort;
use fairtte_data::predictions::{PredictionTable, Rising, read_incidence};
use fairtte_data::{Part, Split, read_predictions};
use fairtte_metrics::competing::{
    AalenJohansen, CompetingOutcomes, IncidenceCurves, IncidenceVariance, cause_brier_score,
};
use fairtte_metrics::evaluation::evaluate_cause;
use fairtte_metrics::{CensoringCurve, CensoringTies, EvaluationReport, EvaluationSettings, Reading, SubjectId};
use fairtte_tests::{fail, files, generic_data, generic_table, report, run, succeed, uniform};
use ndarray::Array2;
use serde_json::Value;

const CONFIG: i32 = 3;
const DATA: i32 = 4;
const N: usize = 600;

struct Patient {
    time: f64,
    /// 0, 1, 4 or 9, as in the table.
    code: u32,
    sex: &'static str,
    x: [f64; 2],
}

/// Cause 1 has the hazard 0.2 exp(0.8 x0), cause 4 0.15 exp(0.8 x1) in men and three times as much in women; some are
/// censored (0) or withdraw (9).
fn patient(row: usize) -> Patient {
    let x: [f64; 2] = std::array::from_fn(|k| 3.4 * uniform(row, k as u64) - 1.7);
    let sex = if uniform(row, 2) < 0.4 { "F" } else { "M" };
    let own = 0.2 * (0.8 * x[0]).exp();
    let other = if sex == "F" { 0.45 } else { 0.15 } * (0.8 * x[1]).exp();
    let event = -uniform(row, 3).ln() / (own + other);
    let ends = 1.0 + 11.0 * uniform(row, 4);
    let code = match (event <= ends, uniform(row, 5) < own / (own + other)) {
        (true, true) => 1,
        (true, false) => 4,
        (false, _) if uniform(row, 6) < 0.3 => 9,
        (false, _) => 0,
    };
    Patient { time: (event.min(ends).max(0.01) * 1e4).round() / 1e4, code, sex, x }
}

fn table(folder: &Path, code: impl Fn(usize, u32) -> String) -> PathBuf {
    let mut text = "pid,time,event,sex,x0,x1\n".to_owned();
    for row in 0..N {
        let Patient { time, code: own, sex, x } = patient(row);
        writeln!(text, "p{row:04},{time},{},{sex},{:.6},{:.6}", code(row, own), x[0], x[1]).unwrap();
    }
    let path = folder.join("patients.csv");
    std::fs::write(&path, text).unwrap();
    path
}

const OUTCOME: &str = "[outcome]\ncause = 1\ncompeting = [4]\ncensored = [9]\n";

fn config(folder: &Path, further: &str) -> String {
    let table = table(folder, |_, code| code.to_string());
    let text = format!(
        "output = '{0}/run'\ncache = '{0}/cache'\n[data.tabular]\ntable = '{1}'\nsubject = \"pid\"\ntime-unit = \"years\"\n\
         numeric = [\"x0\", \"x1\"]\ncategorical = [\"sex\"]\n[[attribute]]\nname = \"sex\"\n[time]\nintervals = 12\n\
         [evaluation]\nreplicates = 20\npermutations = 9\n{further}",
        folder.display(),
        table.display()
    );
    let path = folder.join("causes.toml");
    std::fs::write(&path, text).unwrap();
    words(&path)
}

fn words(path: &Path) -> String {
    path.display().to_string()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn train(config: &str, estimator: &str, output: &Path) {
    succeed(["train", "--config", config, "--set", &format!("estimator={estimator}"), "--output", &words(output)]);
}

fn incidence(folder: &Path) -> PredictionTable {
    read_incidence(&folder.join("predictions.parquet"), 1).unwrap()
}

/// The rows of the table by the names of the samples.
fn rows(table: &PredictionTable) -> Vec<usize> {
    table.samples.iter().map(|sample| sample.as_str()[1..].parse().unwrap()).collect()
}

/// Codes of the table as causes: 9 is censored.
fn outcomes(rows: &[usize]) -> CompetingOutcomes {
    let of = |row: &usize| {
        let Patient { time, code, .. } = patient(*row);
        (time, if code == 9 { 0 } else { code })
    };
    let (time, cause) = rows.iter().map(of).unzip();
    CompetingOutcomes::with_causes(time, cause, 4).unwrap()
}

fn part(folder: &Path, part: Part) -> Vec<usize> {
    let (cohort, _) = read_cohort(&folder.join("cohort.parquet")).unwrap();
    let split = Split::read_csv(&folder.join("split.csv"), &cohort).unwrap();
    let number = |row: &usize| cohort.samples[*row].sample_id.as_str()[1..].parse().unwrap();
    split.rows(part).iter().map(number).collect()
}

fn value(report: &EvaluationReport, metric: &str) -> f64 {
    report.metric(metric).and_then(|metric| metric.overall.value).unwrap_or_else(|| panic!("no {metric}"))
}

/// Columns x0, x1 and whether a man, x0 and x1 standardised by the mean and standard deviation of `fitted`.
fn columns(rows: &[usize], fitted: &[usize]) -> Array2<f64> {
    let moments = |k: usize| {
        let values: Vec<f64> = fitted.iter().map(|row| format!("{:.6}", patient(*row).x[k]).parse().unwrap()).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt())
    };
    let moments = [moments(0), moments(1)];
    Array2::from_shape_fn((rows.len(), 3), |(row, k)| {
        let patient = patient(rows[row]);
        match k {
            2 => f64::from(u8::from(patient.sex == "M")),
            _ => (patient.x[k] - moments[k].0) / moments[k].1,
        }
    })
}

#[test]
fn a_run_predicts_and_reports_the_incidence_of_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), OUTCOME);
    for name in ["fine-gray", "cause-specific"] {
        let output = folder.path().join(name);
        train(&path, name, &output);
        let found = report(&output);
        let test = part(&output, Part::Test);
        let about = found.cause.unwrap();
        let count = |code: u32| test.iter().filter(|row| patient(**row).code == code).count();
        assert_eq!((about.cause, about.n_competing, found.n_events), (1, count(4), count(1)));
        let names: Vec<&str> = found.metrics.iter().map(|metric| metric.name.as_str()).collect();
        let expected = ["cause-c", "cause-c-td", "cause-auc-td", "cause-ibs", "cause-ici", "cause-observed-expected"];
        assert_eq!(names, expected);
        assert!(value(&found, "cause-c") > 0.6, "{name}");
        let ratio = value(&found, "cause-observed-expected");
        assert!((0.7..1.4).contains(&ratio), "{name}: {ratio}");
        let sex = &found.metric("cause-c").unwrap().attributes[0];
        assert!(sex.gap.value.is_some() && sex.groups.len() == 2);

        // The same model by the library, whose estimates are checked against other packages.
        let train_rows = part(&output, Part::Train);
        let table = incidence(&output);
        let predicted = rows(&table);
        let (fitted_on, to_predict) = (columns(&train_rows, &train_rows), columns(&predicted, &train_rows));
        let observed = outcomes(&train_rows);
        let own = if name == "fine-gray" {
            let model = FineGraySettings::default().fit(&fitted_on, &observed).unwrap();
            model.incidence_curves(&to_predict, &table.grid).unwrap()
        } else {
            let cause = observed.cause().iter().map(|cause| (*cause).min(2)).collect();
            let two = CompetingOutcomes::new(observed.time().to_vec(), cause).unwrap();
            let model = CauseSpecific::fit(&CoxSettings::default(), &fitted_on, &two).unwrap();
            model.incidence_curves(&to_predict, 1, &table.grid).unwrap()
        };
        let largest =
            own.without().survival().iter().zip(&table.survival).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        // Columns of a run are in single precision.
        assert!(largest < 1e-5, "{name}: {largest}");

        // A score of the test part from the files, by the definition in the library.
        let places: Vec<usize> =
            test.iter().map(|row| predicted.iter().position(|known| known == row).unwrap()).collect();
        let curves = IncidenceCurves::new(table.grid.clone(), 1.0 - table.survival).unwrap().select(&places);
        let censoring = CensoringCurve::fit(observed.all_causes(), CensoringTies::EventsFirst).unwrap();
        let horizon = found.horizon.unwrap();
        let again = folder.path().join("again");
        let metric = format!("cause-brier@{horizon}");
        let (run, out) = (words(&output), words(&again));
        succeed(["evaluate", &run, "--output", &out, "--metrics", &metric, "--set", "reading=step"]);
        let brier = cause_brier_score(&outcomes(&test), 1, &curves, &censoring, Reading::Step, &[horizon]).unwrap();
        assert!((value(&report(&again), &metric) - brier.values[0]).abs() < 1e-9, "{name}");

        // The only fit has the values of the rules in the validation part; of a single incidence there is no likelihood.
        let chosen = json(&output.join("selection.json"));
        assert!(chosen["rules"]["c-td"]["value"].as_f64().unwrap() > 0.6, "{chosen}");
        assert!(chosen["rules"]["gap-ibs"]["gap"].is_number() && chosen["rules"]["nll"]["value"].is_null(), "{chosen}");
        let page = std::fs::read_to_string(output.join("report.html")).unwrap();
        assert!(page.contains("1, one of 2 causes; "), "{name}");
        let what =
            if name == "fine-gray" { "subdistribution hazard ratios of cause 1" } else { "hazard ratios of cause 4" };
        assert!(page.contains(what) && page.contains("x0 ") && page.contains("sex=M "), "{name}");
        let resolved = std::fs::read_to_string(output.join("run.toml")).unwrap();
        assert!(resolved.contains("[outcome]") && resolved.contains("cause = 1"), "{resolved}");
        let again =
            succeed(["train", "--config", &path, "--set", &format!("estimator={name}"), "--output", &words(&output)]);
        assert!(again.stderr.contains("this run is done"), "{}", again.stderr);
    }
}

/// A network without hidden layers that is trained long enough to learn the hazards of the table.
const NETWORK: &str = "[model]\nbackbone = \"mlp\"\n[head.deephit]\nalpha = 0.5\nsigma = 0.2\n[training]\nepochs = 40\n\
                       patience = 40\nbatch-size = 60\n[optimiser]\nlearning-rate = 0.01\n";

#[test]
fn a_network_learns_the_incidence_of_every_cause() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), &format!("{OUTCOME}{NETWORK}"));
    let output = folder.path().join("deephit");
    succeed(["train", "--config", &path, "--output", &words(&output)]);
    let found = report(&output);
    assert!(value(&found, "cause-c") > 0.6, "{}", value(&found, "cause-c"));
    let ratio = value(&found, "cause-observed-expected");
    assert!((0.7..1.4).contains(&ratio), "{ratio}");
    // The incidence of the other cause is in a file of its own, and is scored as curves from outside.
    let (own, other) = (incidence(&output), read_incidence(&output.join("predictions-of-cause-4.parquet"), 4).unwrap());
    assert_eq!((&own.samples, &own.grid), (&other.samples, &other.grid));
    for (own, other) in own.survival.iter().zip(&other.survival) {
        assert!((0.0..=1.0).contains(&(2.0 - own - other)), "{own} {other}");
    }
    let scored = folder.path().join("other");
    let [file, split] = ["predictions-of-cause-4.parquet", "split.csv"].map(|name| words(&output.join(name)));
    let table = folder.path().join("causes.csv");
    let mut text = "sample_id,subject_id,time,event\n".to_owned();
    for row in 0..N {
        let Patient { time, code, .. } = patient(row);
        writeln!(text, "p{row:04},p{row:04},{time},{}", if code == 9 { 0 } else { code }).unwrap();
    }
    std::fs::write(&table, text).unwrap();
    let of_other = ["evaluate", "--predictions", &file, "--cause", "4", "--cohort", &words(&table), "--split", &split];
    let sets = ["--output", &words(&scored), "--set", "replicates=0", "--permutations", "0"];
    succeed([&of_other[..], &sets[..]].concat());
    let of_4 = report(&scored);
    assert!(value(&of_4, "cause-c") > 0.6, "{}", value(&of_4, "cause-c"));
    assert!((0.7..1.4).contains(&value(&of_4, "cause-observed-expected")));
    // Validation values of every epoch are those of the cause and of the joint likelihood, and choose the weights.
    let chosen = json(&output.join("selection.json"));
    for rule in ["nll", "c-td", "auc-td", "ibs", "worst-group-c-td", "gap-c-td"] {
        assert!(chosen["rules"][rule]["value"].is_number(), "{rule}: {chosen}");
    }
    assert!(chosen["rules"]["c-td"]["value"].as_f64().unwrap() > 0.6);
    let likelihood = chosen["rules"]["nll"]["value"].as_f64().unwrap();
    assert!((likelihood - joint_likelihood(&own, &other, &output)).abs() < 1e-5, "{likelihood}");
    // The model predicts other samples without its data.
    let again = folder.path().join("again");
    succeed(["predict", &words(&output), "--data", &path, "--output", &words(&again)]);
    let again = incidence(&again);
    for (sample, curve) in own.samples.iter().zip(own.survival.rows()) {
        let place = again.samples.iter().position(|known| known == sample).unwrap();
        assert!(curve.iter().zip(again.survival.row(place)).all(|(a, b)| (a - b).abs() < 1e-6), "{sample}");
    }
}

#[test]
fn a_trial_of_a_study_is_restored_with_the_incidence_of_every_cause() {
    let folder = tempfile::tempdir().unwrap();
    config(folder.path(), &format!("{OUTCOME}{NETWORK}"));
    let text = "name = \"causes\"\ntrials = 1\n[[data]]\nrun-file = \"causes.toml\"\n[strategies]\nnames = [\"group-dro\"]\n[heads]\nnames = [\"deephit\"]\n\
                [search]\n\"optimiser.learning-rate\" = { log-uniform = [0.01, 0.02] }\n[set.training]\nepochs = 2\n";
    let file = folder.path().join("study.toml");
    std::fs::write(&file, text).unwrap();
    let [study, restored, trained] = ["study", "restored", "trained"].map(|name| folder.path().join(name));
    succeed(["study", "run", &words(&file), "--output", &words(&study)]);
    succeed(["study", "restore", &words(&study), "0", "--output", &words(&restored)]);
    succeed(["train", "--config", &words(&restored.join("run.toml")), "--output", &words(&trained)]);
    let curves = |folder: &Path| -> Vec<String> {
        files(folder).into_iter().filter(|name| name.starts_with("predictions") && name.ends_with(".parquet")).collect()
    };
    assert_eq!(curves(&restored), curves(&trained));
    assert!(curves(&restored).contains(&"predictions-of-cause-4.parquet".to_owned()), "{:?}", curves(&restored));
    for name in curves(&restored) {
        assert!(std::fs::read(restored.join(&name)).unwrap() == std::fs::read(trained.join(&name)).unwrap(), "{name}");
    }
    // Chosen models predict again for their intervals.
    succeed(["study", "report", &words(&study), "--replicates", "20"]);
    assert!(study.join("tables/intervals.csv").exists());
}

/// Mean negative logarithm of the probability of what happened to the samples of the validation part, on the cut points, which are
/// the times of the curves: an event rounds up, a censoring down.
fn joint_likelihood(own: &PredictionTable, other: &PredictionTable, output: &Path) -> f64 {
    let validation = part(output, Part::Validation);
    let predicted = rows(own);
    let grid = &own.grid;
    let term = |row: &usize| {
        let place = predicted.iter().position(|known| known == row).unwrap();
        let Patient { time, code, .. } = patient(*row);
        let before = |curves: &PredictionTable, q: usize| if q == 0 { 1.0 } else { curves.survival[[place, q - 1]] };
        let at = grid.iter().position(|cut| *cut >= time);
        let probability = match (code, at) {
            (1, Some(q)) => before(own, q) - own.survival[[place, q]],
            (4, Some(q)) => before(other, q) - other.survival[[place, q]],
            _ => {
                let q = grid.iter().rposition(|cut| *cut <= time).unwrap();
                own.survival[[place, q]] + other.survival[[place, q]] - 1.0
            }
        };
        -probability.ln()
    };
    validation.iter().map(term).sum::<f64>() / validation.len() as f64
}

#[test]
fn strategies_that_only_combine_losses_train_on_several_causes() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), &format!("{OUTCOME}{NETWORK}").replace("epochs = 40", "epochs = 2"));
    for strategy in ["group-dro", "dro-chi-square", "domain-independent", "swad", "odr"] {
        let output = words(&folder.path().join(strategy));
        succeed(["train", "--config", &path, "--set", &format!("strategy={strategy}"), "--output", &output]);
        let found = report(&folder.path().join(strategy));
        assert_eq!(found.cause.map(|cause| (cause.cause, cause.n_causes)), Some((1, 2)), "{strategy}");
    }
}

#[test]
fn codes_are_in_the_record_and_the_curves_name_their_cause() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), OUTCOME);
    let output = folder.path().join("run");
    train(&path, "fine-gray", &output);
    let (cohort, _) = read_cohort(&output.join("cohort.parquet")).unwrap();
    assert_eq!(cohort.cause, Some(1));
    for sample in &cohort.samples {
        let Patient { code, .. } = patient(sample.sample_id.as_str()[1..].parse().unwrap());
        let expected = (code == 1, (code == 4).then_some(4));
        assert_eq!((sample.event, sample.competing), expected, "{}", sample.sample_id);
    }
    let written = fairtte_data::table::Table::read(&output.join("cohort.parquet")).unwrap().text("event").unwrap();
    let codes: std::collections::BTreeSet<String> = written.into_iter().flatten().collect();
    assert_eq!(codes.into_iter().collect::<Vec<_>>(), ["0", "1", "4"]);
    let summary = json(&output.join("cohort.json"));
    let n = |code: u32| (0..N).filter(|row| patient(*row).code == code).count();
    assert_eq!(summary["total"]["n-competing"], n(4));
    let censored = summary["total"]["censoring-rate"].as_f64().unwrap();
    assert!((censored - (n(0) + n(9)) as f64 / N as f64).abs() < 1e-12, "{censored}");
    let options = summary["provenance"]["options"].to_string();
    assert!(options.contains("outcome.competing") && options.contains("outcome.censored"), "{options}");
    // F(t) rises from 0; where survival is expected it is refused.
    let raw = fairtte_data::table::Table::read(&output.join("predictions.parquet")).unwrap();
    let last = raw.names().last().map(|name| (*name).to_owned()).unwrap();
    let cells = |name: &str| raw.numbers(name).unwrap().into_iter().map(Result::unwrap).collect::<Vec<f64>>();
    assert!(cells("0").iter().all(|value| *value == 0.0) && cells(&last).iter().all(|value| *value > 0.02));
    let file = output.join("predictions.parquet");
    let said = read_predictions(&file, Rising::Refuse).unwrap_err().to_string();
    assert!(said.contains("are the cumulative incidence of cause 1, expected survival"), "{said}");
    let said = read_incidence(&file, 4).unwrap_err().to_string();
    assert!(said.ends_with("are the cumulative incidence of cause 1, expected that of cause 4"), "{said}");
    // As outside curves: the same numbers by the other way into the program.
    let outside = folder.path().join("outside");
    let [cohort, split] = ["cohort.parquet", "split.csv"].map(|name| words(&output.join(name)));
    let call = [
        "evaluate",
        "--predictions",
        &words(&file),
        "--cohort",
        &cohort,
        "--split",
        &split,
        "--output",
        &words(&outside),
    ];
    let sets = ["--set", "replicates=20", "--permutations", "9"];
    succeed([&call[..], &sets[..], &["--cause", "1"]].concat());
    assert_eq!(report(&outside).metrics, report(&output).metrics);
    fail([&call[..], &sets[..]].concat(), CONFIG, "--cause: events of patients have several causes");
}

#[test]
fn other_samples_are_predicted_and_evaluated_for_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), OUTCOME);
    let output = folder.path().join("run");
    train(&path, "cause-specific", &output);
    let other = folder.path().join("other");
    let run_words = words(&output);
    let said = succeed(["predict", &run_words, "--data", &path, "--horizon", "3", "--output", &words(&other)]).stdout;
    // The call that it names is one that is not refused.
    let next = format!("evaluate: fairtte evaluate {}", words(&other));
    assert!(said.lines().any(|line| line == next), "{said}");
    let (own, again) = (incidence(&output), incidence(&other));
    assert_eq!((again.samples.len(), &own.grid), (N, &again.grid));
    for (sample, curve) in own.samples.iter().zip(own.survival.rows()) {
        let place = again.samples.iter().position(|known| known == sample).unwrap();
        assert_eq!(curve, again.survival.row(place), "{sample}");
    }
    assert_eq!(json(&other.join("predict.json"))["incidence-of-cause"], 1);
    let risks = fairtte_data::table::Table::read(&other.join("risk.csv")).unwrap().numbers("risk_at_3_years").unwrap();
    let curves = IncidenceCurves::new(again.grid.clone(), 1.0 - &again.survival).unwrap();
    let expected = curves.all_at(3.0, fairtte_metrics::EvaluationSettings::default().reading);
    for (risk, expected) in risks.into_iter().zip(expected) {
        assert!((risk.unwrap() - expected).abs() < 1e-12);
    }
    succeed(["evaluate", &words(&other), "--set", "replicates=10", "--permutations", "0"]);
    let found = report(&other);
    assert_eq!(found.cause.map(|cause| cause.n_competing), Some((0..N).filter(|row| patient(*row).code == 4).count()));
    assert!(value(&found, "cause-c") > 0.6);
    let ratio = value(&found, "cause-observed-expected");
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
    let internal = ["evaluate", &words(&other), "--internal", &run_words];
    fail(internal, CONFIG, "--internal: two cohorts are compared by events of one kind");
    // A table without outcomes, and one whose run file is about another cause.
    let new = folder.path().join("new.csv");
    std::fs::write(&new, "pid,sex,x0,x1\nn1,F,0.5,-0.5\nn2,M,-0.5,0.5\n").unwrap();
    succeed(["predict", &run_words, "--table", &words(&new), "--output", &words(&folder.path().join("new"))]);
    assert_eq!(incidence(&folder.path().join("new")).samples.len(), 2);
    let text = std::fs::read_to_string(&path).unwrap().replace("cause = 1", "cause = 4").replace("[4]", "[1]");
    let about_4 = folder.path().join("about-4.toml");
    std::fs::write(&about_4, text).unwrap();
    let refused =
        ["predict", &run_words, "--data", &words(&about_4), "--output", &words(&folder.path().join("refused"))];
    fail(refused, CONFIG, "outcome.cause: [outcome] of the data is about cause 4, the run \"causes\" predicts cause 1");
    // The test parts of folds, pooled.
    let folds: Vec<String> = (0..2)
        .map(|fold| {
            let output = folder.path().join(format!("fold{fold}"));
            let set = format!("split.k-fold={{ folds = 2, fold = {fold} }}");
            let call = [
                "train",
                "--config",
                &path,
                "--set",
                "estimator=fine-gray",
                "--set",
                &set,
                "--output",
                &words(&output),
            ];
            succeed(call);
            words(&output)
        })
        .collect();
    let pooled = folder.path().join("pooled");
    succeed(["predict", &folds[0], &folds[1], "--out-of-fold", "--output", &words(&pooled)]);
    assert_eq!(incidence(&pooled).samples.len(), N);
    succeed(["evaluate", &words(&pooled), "--set", "replicates=0", "--permutations", "0"]);
    assert!(value(&report(&pooled), "cause-c") > 0.6);
}

#[test]
fn several_models_of_a_cause_have_paired_differences() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), OUTCOME);
    let outputs = ["fine-gray", "cause-specific"].map(|name| {
        let output = folder.path().join(name);
        train(&path, name, &output);
        output
    });
    let files = [0, 1].map(|k| words(&outputs[k].join("predictions.parquet")));
    let compared = folder.path().join("compared");
    let [cohort, split] = ["cohort.parquet", "split.csv"].map(|name| words(&outputs[0].join(name)));
    let call = [
        "evaluate",
        "--predictions",
        &files[0],
        "--predictions",
        &files[1],
        "--names",
        "fg,cs",
        "--cohort",
        &cohort,
        "--split",
        &split,
        "--cause",
        "1",
        "--output",
        &words(&compared),
        "--set",
        "replicates=20",
        "--permutations",
        "9",
    ];
    let shown = succeed(call);
    let found = json(&compared.join("evaluation.json"));
    let models = found["models"].as_array().unwrap();
    for (model, output) in models.iter().zip(&outputs) {
        let own = json(&output.join("evaluation.json"));
        assert_eq!(model["metrics"], own["metrics"], "each model is evaluated as alone");
        assert_eq!((&model["cause"], &model["curves"]), (&own["cause"], &own["curves"]));
    }
    let differences = found["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 6);
    for (k, difference) in differences.iter().enumerate() {
        let of = |model: usize| models[model]["metrics"][k]["overall"]["value"].as_f64().unwrap();
        let value = difference["overall"]["value"].as_f64().unwrap();
        assert!((value - (of(1) - of(0))).abs() < 1e-12 && difference["first"] == "cs");
        assert!(difference["attributes"][0]["gap"]["value"].is_number());
    }
    assert!(shown.stdout.contains("of cause 1,") && shown.stdout.contains("cs minus fg"), "{}", shown.stdout);
    let page = std::fs::read_to_string(compared.join("report.html")).unwrap();
    assert!(page.contains("of cause 1,") && page.contains("cumulative incidence of cause 1"));
    // In tables of their own with outcomes and attributes.
    let text = |shift: f64| {
        let mut text = "sample,time,event,sex,0,4,8\n".to_owned();
        for row in 0..200 {
            let Patient { time, code, sex, x } = patient(row);
            let risk = 0.45 + 0.15 * x[0] + shift * x[1];
            writeln!(text, "s{row},{time},{},{sex},0,{},{}", if code == 9 { 0 } else { code }, risk / 2.0, risk)
                .unwrap();
        }
        text
    };
    let tables = [("a", 0.0), ("b", 0.1)].map(|(name, shift)| {
        let file = folder.path().join(format!("{name}.csv"));
        std::fs::write(&file, text(shift)).unwrap();
        words(&file)
    });
    let single = |file: &str| {
        let output = folder.path().join("single");
        let call =
            ["evaluate", "--predictions", file, "--cause", "4", "--attributes", "sex", "--output", &words(&output)];
        succeed([&call[..], &["--set", "replicates=0", "--permutations", "0"]].concat());
        json(&output.join("evaluation.json"))["metrics"].clone()
    };
    let both = folder.path().join("both");
    let call =
        ["evaluate", "--predictions", &tables[0], "--predictions", &tables[1], "--cause", "4", "--attributes", "sex"];
    let sets = ["--output", &words(&both), "--set", "replicates=0", "--permutations", "0"];
    succeed([&call[..], &sets[..]].concat());
    let found = json(&both.join("evaluation.json"));
    for (k, file) in tables.iter().enumerate() {
        assert_eq!(found["models"][k]["metrics"], single(file));
    }
    // Events that differ in their cause alone are no common samples.
    std::fs::write(&tables[1], text(0.1).replacen(",4,F", ",1,F", 1)).unwrap();
    let said = run([&call[..], &sets[..]].concat()).stderr;
    assert!(said.contains("event of sample \"s") && said.contains("is 1 there and 4 in"), "{said}");
}

/// With one epoch every training has one set of weights, so that what is chosen of a method is its only run.
#[test]
fn models_of_a_cause_are_compared_selected_and_described() {
    let folder = tempfile::tempdir().unwrap();
    let network = NETWORK.replace("epochs = 40", "epochs = 1");
    let methods = "[compare]\nbase = \"erm\"\ntolerated-loss = 1\n[compare.strategy.group-dro]\n\
                   [compare.estimator.cause-specific]\n";
    let with_another = format!("{OUTCOME}{network}{methods}[compare.strategy.recalibration]\n");
    let refused = "recalibration would take events of other causes for censorings";
    fail(["compare", "--config", &config(folder.path(), &with_another)], 3, refused);
    let path = config(folder.path(), &format!("{OUTCOME}{network}{methods}"));
    let said = succeed(["compare", "--config", &path]);
    let output = folder.path().join("run");
    let choice = json(&output.join("choice.json"));
    let blocks = choice["blocks"].as_array().unwrap();
    let metrics: Vec<&str> = blocks.iter().map(|block| block["metric"].as_str().unwrap()).collect();
    assert_eq!(metrics, ["cause-c-td", "cause-auc-td", "cause-ibs"], "{}", said.stdout);
    let mut n_compared = 0;
    for block in blocks {
        let metric = block["metric"].as_str().unwrap();
        for row in block["rows"].as_array().unwrap() {
            let chosen = &row["chosen"];
            let run = output.join(chosen["run"].as_str().unwrap());
            let found = report(&run);
            let of = found.metric(metric).unwrap();
            let test = &chosen["test"];
            assert!((test["value"].as_f64().unwrap() - of.overall.value.unwrap()).abs() < 1e-12, "{metric}");
            assert!((test["gap"].as_f64().unwrap() - of.attributes[0].gap.value.unwrap()).abs() < 1e-12, "{metric}");
            n_compared += usize::from(chosen["change"]["lower"].is_number());
        }
    }
    assert!(n_compared >= 6, "{n_compared} changes with intervals");
    // Without skill: 0.5, and the Brier score of the Aalen-Johansen curve of the training part for everybody.
    let run = output.join(blocks[2]["rows"][0]["chosen"]["run"].as_str().unwrap());
    let fitted_on = outcomes(&part(&run, Part::Train));
    let validation = part(&run, Part::Validation);
    let grid = incidence(&run).grid;
    let observed = AalenJohansen::fit(&fitted_on, 1, IncidenceVariance::Delta).unwrap();
    let constant = Array2::from_shape_fn((validation.len(), grid.len()), |(_, k)| observed.at(grid[k]));
    let constant = IncidenceCurves::new(grid, constant).unwrap();
    let subjects: Vec<SubjectId> = validation.iter().map(|row| SubjectId::new(format!("p{row:04}"))).collect();
    let censoring = CensoringCurve::fit(fitted_on.all_causes(), CensoringTies::EventsFirst).unwrap();
    let settings = EvaluationSettings {
        metrics: vec!["cause-ibs".to_owned()],
        replicates: 0,
        permutations: 0,
        ..EvaluationSettings::default()
    };
    let alone = evaluate_cause(&subjects, &outcomes(&validation), 1, &constant, &censoring, &[], &settings).unwrap();
    let found = blocks[2]["no-skill"].as_f64().unwrap();
    assert!((found - value(&alone, "cause-ibs")).abs() < 1e-9, "{found}");
    assert_eq!((&blocks[0]["no-skill"], &blocks[1]["no-skill"]), (&serde_json::json!(0.5), &serde_json::json!(0.5)));
    // The scores of the trials, from which a study is reported, are those of the cause.
    let table = std::fs::read_to_string(output.join("tables/strategies.csv")).unwrap();
    assert!(table.contains("group-dro") && table.contains("cause-specific"), "{table}");
    // The same choice from the folders alone, and the card of one of them.
    let selected = succeed(["select", &words(&output), "--base", "erm", "--tolerated-loss", "1", "--json"]);
    let selected: Value = serde_json::from_str(&selected.stdout).unwrap();
    for (own, other) in selected["blocks"].as_array().unwrap().iter().zip(blocks) {
        assert_eq!(own["rows"][1]["chosen"]["test"], other["rows"][1]["chosen"]["test"]);
    }
    let card = folder.path().join("card.md");
    succeed(["card", &words(&run), "--output", &words(&card)]);
    let card = std::fs::read_to_string(&card).unwrap();
    let n = part(&run, Part::Test).iter().filter(|row| patient(**row).code == 1).count();
    assert!(card.contains(&format!("{n} events")) || card.contains(&format!("| {n} |")), "{card}");
}

#[test]
fn an_image_table_with_causes_is_read_with_its_covariates() {
    let folder = tempfile::tempdir().unwrap();
    let codes = |row: usize| ["0", "1", "4", "1", "9"][row % 5].to_owned();
    let cell = |row: usize, column: &str| (column == "event").then(|| codes(row));
    let table = generic_table(folder.path(), 120, cell);
    let text = format!(
        "output = '{0}/run'\ncache = '{0}/cache'\n{1}\n[image]\nsize = [16, 16]\n[evaluation]\nreplicates = 0\npermutations = 0\n\
         {OUTCOME}[estimator.cause-specific]\n[time]\nintervals = 6\n[[attribute]]\nname = \"sex\"\n",
        folder.path().display(),
        generic_data(&table)
    );
    let path = folder.path().join("images.toml");
    std::fs::write(&path, text).unwrap();
    succeed(["train", "--config", &words(&path)]);
    let (cohort, _) = read_cohort(&folder.path().join("run/cohort.parquet")).unwrap();
    let n = |code: u32| cohort.samples.iter().filter(|sample| sample.competing == Some(code)).count();
    assert_eq!((cohort.cause, n(4), cohort.n_events()), (Some(1), 24, 48));
    assert_eq!(report(&folder.path().join("run")).cause.map(|cause| cause.cause), Some(1));
}

#[test]
fn what_is_about_one_kind_of_event_refuses_several_causes() {
    let folder = tempfile::tempdir().unwrap();
    let path = config(folder.path(), &format!("{OUTCOME}[estimator.fine-gray]\n"));
    let refuse = |sets: &[&str], code: i32, sentence: &str| {
        let output = words(&folder.path().join("refused"));
        let mut arguments = vec!["train", "--config", &path, "--output", &output];
        arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
        fail(arguments, code, sentence);
        assert!(!folder.path().join("refused/predictions.parquet").exists(), "{sets:?}");
    };
    let expected = "expected [estimator.fine-gray] or [estimator.cause-specific]";
    refuse(&["estimator=cox"], CONFIG, &format!("outcome: cox models one kind of event, {expected}"));
    refuse(&["outcome.competing=[]"], CONFIG, "outcome.competing is [], expected at least one number");
    refuse(&["outcome.censored=[4]"], CONFIG, "outcome.censored is 4, expected every number once");
    refuse(&["outcome.event=1"], CONFIG, "unknown field");
    refuse(&["evaluation.thresholds=[0.2]"], DATA, "would count events of other causes as censorings");
    refuse(&["evaluation.metrics=[\"ibs\"]"], DATA, "metric \"ibs\" would count events of other causes as censorings");
    refuse(&["evaluation.sensitivity.hazard-ratios=[2]"], CONFIG, "evaluation.sensitivity");
    refuse(
        &["baseline.covariates=[\"sex\"]"],
        CONFIG,
        "baseline.covariates: the baseline beside a model is of one kind",
    );
    refuse(
        &["shift.attribute=sex", "shift.group=F", "shift.permute=0.5"],
        CONFIG,
        "shift: it changes events of one kind",
    );
    refuse(&["estimator.fine-gray.most-steps=0"], CONFIG, "most-steps is 0, expected at least 1");
    refuse(&["estimator.fine-gray.cause=4"], CONFIG, "unknown field");
    let alone = folder.path().join("alone.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&alone, text.replace(OUTCOME, "")).unwrap();
    let sentence = "estimator.fine-gray: it models the incidence of one of several causes, expected [outcome]";
    fail(["train", "--config", &words(&alone), "--output", &words(&folder.path().join("refused"))], CONFIG, sentence);
    let network = folder.path().join("network.toml");
    std::fs::write(&network, text.replace("[estimator.fine-gray]\n", "[model]\nbackbone = \"mlp\"\n")).unwrap();
    let refused = words(&folder.path().join("refused"));
    let of_network = ["train", "--config", &words(&network), "--output", &refused];
    let sentence = "outcome: head nnet-survival is about one kind of event, expected deephit for one of several causes, or \
                    [estimator.fine-gray] or [estimator.cause-specific]";
    fail(of_network, CONFIG, sentence);
    for (strategy, sentence) in [
        (
            "recalibration",
            "strategy: recalibration would take events of other causes for censorings, expected one of erm,",
        ),
        ("controlled-attribute", "strategy: controlled-attribute would take events of other causes for censorings"),
    ] {
        let set = format!("strategy={strategy}");
        fail([&of_network[..], &["--set", "head=deephit", "--set", &set]].concat(), CONFIG, sentence);
    }
    let simulated = folder.path().join("simulated.toml");
    std::fs::write(&simulated, format!("data = \"simulated\"\nestimator = \"fine-gray\"\n{OUTCOME}")).unwrap();
    fail(
        ["train", "--config", &words(&simulated)],
        DATA,
        "[data.simulated] knows one kind of event, expected [data.tabular]",
    );
    // A number that the table does not name.
    let row_17 = |row: usize, code: u32| if row == 15 { "3".to_owned() } else { code.to_string() };
    table(folder.path(), row_17);
    let sentence =
        "event of sample \"p0015\" is 3, expected 0 or 9 (censored), 1 (the event) or 4 (competing) as in [outcome]";
    refuse(&[], DATA, sentence);
    refuse(&[], DATA, "patients.csv, row 17");
    // A run that is there.
    table(folder.path(), |_, code| code.to_string());
    let output = folder.path().join("run");
    succeed(["train", "--config", &path]);
    let run_words = words(&output);
    let several = "have several causes, of which 1 is predicted, expected events of one kind";
    fail(["evaluate", &run_words, "--baseline", "sex"], DATA, several);
    fail(["evaluate", &run_words, "--sensitivity"], DATA, several);
    fail(["evaluate", &run_words, "--metrics", "c-td"], DATA, "metric \"c-td\" would count events of other causes");
    let incidence = "are the cumulative incidence of cause 1, expected survival";
    let deephit = words(&folder.path().join("deephit"));
    let sets = ["--set", "head=deephit", "--set", "training.epochs=1", "--output", &deephit];
    succeed([&["train", "--config", &words(&network)][..], &sets[..]].concat());
    // Before any weights are read: without them the sentence is the same.
    std::fs::remove_dir_all(Path::new(&deephit).join("model")).unwrap();
    let explain = ["explain", &deephit, "--horizon", "3", "--samples", "p0001"];
    fail(explain, CONFIG, "outcome: maps of a predicted risk are about one kind of event");
    let export = ["weights", "export", &deephit, "--output", &words(&folder.path().join("weights.safetensors"))];
    fail(export, CONFIG, "outcome: the description of exported weights is about one kind of event");
    let file = words(&output.join("predictions.parquet"));
    let cohort = words(&output.join("cohort.parquet"));
    let power =
        ["experiment", "power", "--predictions", &file, "--cohort", &cohort, "--attribute", "sex", "--level", "F"];
    fail(power, DATA, incidence);
}
