//! `evaluate --task binary`: probabilities of a class, made from labels or from times, of one model and of several; every number
//! that is compared is recomputed here from the rows, by double loops.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::Path;

use fairtte_data::table::{ColumnValues, write_parquet};
use fairtte_tests::{Outcome, fail, files, run, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const DATA: i32 = 4;

/// One sample.
#[derive(Clone)]
struct Row {
    p: f64,
    label: bool,
    time: f64,
    event: bool,
    sex: &'static str,
}

/// 240 samples; group M is ranked less well, drop-out depends on the risk.
fn rows(n: usize, turn: usize) -> Vec<Row> {
    let share = |i: usize, k: usize| ((i * k + turn) % 997) as f64 / 997.0;
    (0..n)
        .map(|i| {
            let sex = if i % 3 == 0 { "M" } else { "F" };
            let risk = share(i, 389);
            let noise = if sex == "M" { 0.6 } else { 0.2 };
            // Two decimals, so that there are ties.
            let p = (100.0 * ((1.0 - noise) * risk + noise * share(i, 617))).round() / 100.0;
            let (own, end) = (3.0 * (1.2 - risk) * (0.1 + share(i, 271)), 0.4 + 3.0 * (1.3 - risk) * share(i, 523));
            Row { p: p.clamp(0.01, 0.99), label: share(i, 811) < risk, time: own.min(end), event: own <= end, sex }
        })
        .collect()
}

fn csv(rows: &[Row], prefix: &str) -> String {
    let mut text = "sample,subject,probability,label,time,event,sex,note\n".to_owned();
    for (i, Row { p, label, time, event, sex }) in rows.iter().enumerate() {
        writeln!(text, "{prefix}{i},p{prefix}{i},{p},{},{time},{},{sex},x", u8::from(*label), u8::from(*event))
            .unwrap();
    }
    text
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn arguments(folder: &Path, table: &str, extra: &[&str]) -> Vec<String> {
    let page = folder.join("scores.html").display().to_string();
    let fixed = ["evaluate", "--task", "binary", "--predictions", table, "--output", &page, "--set", "replicates=30"];
    fixed.iter().chain(extra).map(|text| (*text).to_owned()).collect()
}

fn numbers(folder: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("scores.json")).unwrap()).unwrap()
}

fn page(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("scores.html")).unwrap()
}

/// Evaluates a text into `scores.html`.
fn evaluate(folder: &Path, text: &str, extra: &[&str]) -> Outcome {
    let table = write(folder, "table.csv", text);
    succeed(arguments(folder, &table, extra))
}

fn metric<'a>(numbers: &'a Value, name: &str) -> &'a Value {
    numbers["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == name).unwrap()
}

fn near(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{found} is no number, expected {expected}"));
    assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
}

/// P(positive above negative) + 1/2 P(equal), pair by pair.
fn auc(rows: &[(f64, bool)]) -> f64 {
    let (mut wins, mut pairs) = (0.0, 0.0);
    for (p, _) in rows.iter().filter(|(_, positive)| *positive) {
        for (q, _) in rows.iter().filter(|(_, positive)| !*positive) {
            pairs += 1.0;
            wins += if p > q { 1.0 } else { 0.5 * f64::from(u8::from((p - q).abs() <= 0.0)) };
        }
    }
    wins / pairs
}

fn labelled(rows: &[Row]) -> Vec<(f64, bool)> {
    rows.iter().map(|row| (row.p, row.label)).collect()
}

/// False positive and false negative rate from a threshold on.
fn errors(rows: &[(f64, bool)], threshold: f64) -> (f64, f64) {
    let count = |positive: bool, called: bool| {
        rows.iter().filter(|(p, label)| *label == positive && (*p >= threshold) == called).count() as f64
    };
    let (fp, tn, fneg, tp) = (count(false, true), count(false, false), count(true, false), count(true, true));
    (fp / (fp + tn), fneg / (fneg + tp))
}

#[test]
fn every_number_is_that_of_the_rows_and_csv_and_parquet_agree() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(240, 0);
    let outcome = evaluate(folder.path(), &csv(&rows, "s"), &["--attributes", "sex", "--threshold", "0.4"]);
    assert_eq!(files(folder.path()), ["scores.csv", "scores.html", "scores.json", "table.csv"]);
    assert!(outcome.stdout.contains("Threshold 0.4, as given; the same for all groups."), "{}", outcome.stdout);
    let found = numbers(folder.path());
    let all = labelled(&rows);
    near(&metric(&found, "auc")["overall"]["value"], auc(&all));
    let (fpr, fnr) = errors(&all, 0.4);
    near(&metric(&found, "fpr")["overall"]["value"], fpr);
    near(&metric(&found, "fnr")["overall"]["value"], fnr);
    let of_sex = |sex: &str| -> Vec<(f64, bool)> {
        rows.iter().filter(|row| row.sex == sex).map(|row| (row.p, row.label)).collect()
    };
    let [f, m] = ["F", "M"].map(of_sex);
    let groups = &metric(&found, "auc")["attributes"][0]["groups"];
    near(&groups[0]["estimate"]["value"], auc(&f));
    near(&groups[1]["estimate"]["value"], auc(&m));
    let ((false_alarms_f, missed_f), (false_alarms_m, missed_m)) = (errors(&f, 0.4), errors(&m, 0.4));
    let parity = &found["parity"][0];
    near(&parity["equal-opportunity-negative"]["value"], 1.0 - (false_alarms_f - false_alarms_m).abs());
    near(
        &parity["equalised-odds"]["value"],
        1.0 - 0.5 * ((false_alarms_f - false_alarms_m).abs() + (missed_f - missed_m).abs()),
    );
    near(&parity["underdiagnosis-difference"]["value"], (missed_f - missed_m).abs());
    assert_eq!(
        (&found["task"], &found["n"], &found["threshold"]["chosen"]),
        (&"binary".into(), &240.into(), &"given".into())
    );
    let decisions = &found["groups"]["summary"][2]["decisions"];
    let n_false = m.iter().filter(|(p, label)| !*label && *p >= 0.4).count() as f64;
    near(&decisions["false-positive"], n_false);

    let html = page(folder.path());
    for id in ["says", "groups", "decisions", "roc", "calibration", "numbers"] {
        assert!(html.contains(&format!("<section id=\"{id}\">")), "{id}");
    }
    // The address of the embedded table has the column `events` of every flat table.
    let (before, rest) = html.split_once("href=\"data:").unwrap();
    let shown = before.to_owned() + rest.split_once('"').unwrap().1.split("<section id=\"reading\">").next().unwrap();
    for absent in ["Curves read", "survival", "Kaplan-Meier", "evaluation times", "id=\"horizon\"", "events"] {
        assert!(!shown.contains(absent), "{absent} is about curves");
    }
    let flat = std::fs::read_to_string(folder.path().join("scores.csv")).unwrap();
    for row in ["auc,sex,group,M,", "equalised-odds,sex,criterion,,", "mean-probability,,all,,", "fnr,sex,gap,,"] {
        assert!(flat.contains(row), "{row} is not in the flat table");
    }

    let parquet = folder.path().join("table.parquet");
    let text = |of: fn(usize, &Row) -> String| {
        ColumnValues::Text(rows.iter().enumerate().map(|(i, r)| Some(of(i, r))).collect())
    };
    let columns = [
        ("sample", text(|i, _| format!("s{i}"))),
        ("subject", text(|i, _| format!("ps{i}"))),
        ("probability", ColumnValues::Number(rows.iter().map(|row| row.p).collect())),
        ("label", ColumnValues::Integer(rows.iter().map(|row| i64::from(row.label)).collect())),
        ("sex", text(|_, row| row.sex.to_owned())),
    ];
    write_parquet(&parquet, columns.map(|(name, values)| (name.to_owned(), values)).into(), &[]).unwrap();
    succeed(arguments(folder.path(), &parquet.display().to_string(), &["--attributes", "sex", "--threshold", "0.4"]));
    let again = numbers(folder.path());
    for key in ["metrics", "parity", "groups", "delong", "n-positive"] {
        assert_eq!(found[key], again[key], "{key}");
    }
}

/// G(t-) and G(t) of the censoring times, events first at equal times.
fn censoring(rows: &[Row], t: f64, before: bool) -> f64 {
    let mut times: Vec<f64> = rows.iter().filter(|row| !row.event).map(|row| row.time).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let mut g = 1.0;
    for time in times.into_iter().filter(|time| if before { *time < t } else { *time <= t }) {
        let censored = rows.iter().filter(|row| !row.event && (row.time - time).abs() <= 0.0).count() as f64;
        let at_risk = rows.iter().filter(|row| row.time > time || (row.time >= time && !row.event)).count() as f64;
        g *= 1.0 - censored / at_risk;
    }
    g
}

#[test]
fn a_class_from_times_counts_the_left_out_and_shows_the_weighted_auc_beside_the_naive_one() {
    let folder = tempfile::tempdir().unwrap();
    let (rows, train, horizon) = (rows(240, 0), rows(300, 41), 0.9);
    let train_file = write(folder.path(), "train.csv", &csv(&train, "t"));
    let extra = ["--horizon", "0.9", "--train", &train_file, "--attributes", "sex", "--time-unit", "years"];
    let outcome = evaluate(folder.path(), &csv(&rows, "s"), &extra);
    let found = numbers(folder.path());
    let has_class = |row: &&Row| row.time > horizon || row.event;
    let classes: Vec<(f64, bool)> = rows.iter().filter(has_class).map(|row| (row.p, row.time <= horizon)).collect();
    let n_left_out = rows.len() - classes.len();
    assert!(n_left_out > 20, "{n_left_out}");
    let at = &found["horizon"];
    assert_eq!(at["left-out"][0]["n-left-out"], n_left_out);
    let of_m = rows.iter().filter(|row| row.sex == "M").count()
        - rows.iter().filter(has_class).filter(|r| r.sex == "M").count();
    assert_eq!(at["left-out"][2]["n-left-out"], of_m);
    near(&at["naive"]["overall"]["value"], auc(&classes));
    near(&metric(&found, "auc")["overall"]["value"], auc(&classes));
    // Cases weigh 1 / G(T-), controls the same all.
    let (mut wins, mut pairs) = (0.0, 0.0);
    for case in rows.iter().filter(|row| row.event && row.time <= horizon) {
        let weight = 1.0 / censoring(&train, case.time, true);
        for control in rows.iter().filter(|row| row.time > horizon) {
            pairs += weight;
            let half = 0.5 * f64::from(u8::from((case.p - control.p).abs() <= 0.0));
            wins += weight * if case.p > control.p { 1.0 } else { half };
        }
    }
    let weighted = wins / pairs;
    assert!((weighted - auc(&classes)).abs() > 1e-3, "both are the same");
    near(&at["weighted"]["overall"]["value"], weighted);
    near(&at["differences"][0]["value"], auc(&classes) - weighted);

    let said = format!("{n_left_out} of 240 samples");
    assert!(outcome.stdout.contains(&said) && outcome.stdout.contains("AUC with weights"), "{}", outcome.stdout);
    let html = page(folder.path());
    assert!(
        html.contains("<section id=\"horizon\">")
            && html.contains(&said)
            && html.contains("fitted on the training sample")
    );
    let flat = std::fs::read_to_string(folder.path().join("scores.csv")).unwrap();
    assert!(flat.contains(&format!("left-out,,all,,{n_left_out},")), "{flat}");
    assert!(flat.contains("auc-naive-minus-weighted,sex,group,M,") && flat.contains("auc-weighted,,all,,"));

    let table = folder.path().join("table.csv").display().to_string();
    let beyond = "no sample is followed beyond 100 (the last time is";
    fail(arguments(folder.path(), &table, &["--horizon", "100"]), CONFIG, beyond);
    fail(arguments(folder.path(), &table, &["--horizon", "0.0001"]), CONFIG, "no sample has an event by 0.0001");
    fail(arguments(folder.path(), &table, &["--horizon", "0"]), CONFIG, "0 is not a finite number > 0");
}

#[test]
fn the_threshold_of_the_highest_f1_is_chosen_on_other_samples() {
    let folder = tempfile::tempdir().unwrap();
    let (test, validation) = (rows(240, 0), rows(150, 77));
    let file = write(folder.path(), "validation.csv", &csv(&validation, "v"));
    let outcome = evaluate(folder.path(), &csv(&test, "s"), &["--validation", &file]);
    let f1 = |threshold: f64| {
        let count = |positive: bool, called: bool| {
            validation.iter().filter(|row| row.label == positive && (row.p >= threshold) == called).count() as f64
        };
        2.0 * count(true, true) / (2.0 * count(true, true) + count(false, true) + count(true, false))
    };
    let mut best = (0.0, -1.0);
    for row in &validation {
        let found = f1(row.p);
        if found > best.1 || (found >= best.1 && row.p > best.0) {
            best = (row.p, found);
        }
    }
    let found = numbers(folder.path());
    near(&found["threshold"]["value"], best.0);
    near(&found["threshold"]["validation"]["f1"], best.1);
    near(&metric(&found, "fnr")["overall"]["value"], errors(&labelled(&test), best.0).1);
    assert!(outcome.stdout.contains("the highest F1"), "{}", outcome.stdout);
    assert!(!outcome.stderr.contains("chosen on"), "{}", outcome.stderr);

    let table = folder.path().join("table.csv").display().to_string();
    fail(
        arguments(folder.path(), &table, &["--validation", &table]),
        CONFIG,
        "is evaluated too, expected other samples",
    );
    let copy = write(folder.path(), "copy.csv", &csv(&test[..50], "s"));
    let outcome = succeed(arguments(folder.path(), &table, &["--validation", &copy]));
    assert!(
        outcome.stderr.contains("The threshold was chosen on 50 samples that are evaluated too"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn several_models_are_compared_on_the_samples_that_all_have() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(240, 0);
    let guess = |i: usize| ((i * 37) % 101) as f64 / 101.0;
    let other: Vec<Row> = rows.iter().enumerate().map(|(i, row)| Row { p: guess(i), ..row.clone() }).collect();
    let first = write(folder.path(), "good.csv", &csv(&rows, "s"));
    let second = write(folder.path(), "guess.csv", &csv(&other[..230], "s"));
    let extra = ["--predictions", &second, "--attributes", "sex", "--reference-model", "guess"];
    let outcome = succeed(arguments(folder.path(), &first, &extra));
    assert!(
        outcome.stderr.contains("guess has no probability for 10 of 240 samples (first \"s230\")."),
        "{}",
        outcome.stderr
    );
    let found = numbers(folder.path());
    let expected = auc(&labelled(&rows[..230])) - auc(&labelled(&other[..230]));
    let pair = &found["differences"][0];
    assert_eq!((&pair["metric"], &pair["first"], &pair["second"]), (&"auc".into(), &"good".into(), &"guess".into()));
    near(&pair["overall"]["value"], expected);
    assert_eq!((&found["models"][1]["name"], &found["models"][0]["n"]), (&"guess".into(), &230.into()));
    assert!(page(folder.path()).contains("<section id=\"class\">"));
    assert!(outcome.stderr.contains("guess: The AUC is"), "that of a model that guesses: {}", outcome.stderr);

    let mut flipped = other.clone();
    flipped[7].label = !flipped[7].label;
    let third = write(folder.path(), "flipped.csv", &csv(&flipped, "s"));
    let sentence = "label of sample \"s7\" (row 9) is";
    fail(arguments(folder.path(), &first, &["--predictions", &third]), DATA, sentence);
}

#[test]
fn what_a_number_cannot_say_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut few = rows(240, 0);
    // Group M has 4 negative samples.
    let mut left = 4;
    few.retain(|row| {
        let is_rare = row.sex == "M" && !row.label;
        left -= i32::from(is_rare);
        !is_rare || left >= 0
    });
    few[0].p = 1.0;
    few[1].p = 0.0;
    let outcome = evaluate(folder.path(), &csv(&few, "s"), &["--attributes", "sex"]);
    let is_said = |outcome: &Outcome, text: &str| assert!(outcome.stderr.contains(text), "{text}: {}", outcome.stderr);
    is_said(&outcome, "Groups with fewer than 10 samples of a class are in no comparison: sex = M (");
    is_said(&outcome, "positive, 4 negative)");
    is_said(&outcome, "Probabilities of 0 or 1, which have no logit: 2 of ");
    let found = numbers(folder.path());
    assert!(metric(&found, "calibration-slope")["overall"]["value"].is_null());
    assert!(metric(&found, "fpr")["attributes"][0]["gap"]["value"].is_null());
    let names: Vec<&str> = found["warnings"].as_array().unwrap().iter().map(|w| w["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["certain-probabilities", "few-of-a-class"]);

    let same: Vec<Row> = few.iter().map(|row| Row { p: 0.3, ..row.clone() }).collect();
    let outcome = evaluate(folder.path(), &csv(&same, "s"), &[]);
    is_said(&outcome, "probabilities are equal: the model does not distinguish any samples");
    is_said(&outcome, "At the threshold 0.5 nobody is called positive");
    let turned: Vec<Row> = rows(240, 0).iter().map(|row| Row { p: 1.0 - row.p, ..row.clone() }).collect();
    is_said(&evaluate(folder.path(), &csv(&turned, "s"), &[]), "The probabilities may be those of the other class");
    let hard: Vec<Row> = few.iter().map(|row| Row { p: row.p.round(), ..row.clone() }).collect();
    is_said(&evaluate(folder.path(), &csv(&hard, "s"), &[]), "All probabilities are 0 or 1: they look like decisions");
}

#[test]
fn wrong_tables_and_options_get_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let good = csv(&rows(60, 0), "s");
    let fails = |text: &str, extra: &[&str], code: i32, sentence: &str| {
        let table = write(folder.path(), "table.csv", text);
        let outcome = fail(arguments(folder.path(), &table, extra), code, sentence);
        assert_eq!(files(folder.path()), ["table.csv"], "nothing is left");
        outcome
    };
    let percent: Vec<Row> = rows(60, 0).iter().map(|row| Row { p: 100.0 * row.p, ..row.clone() }).collect();
    fails(&csv(&percent, "s"), &[], DATA, "look like percent");
    let logit: Vec<Row> = rows(60, 0).iter().map(|r| Row { p: (r.p / (1.0 - r.p)).ln(), ..r.clone() }).collect();
    fails(&csv(&logit, "s"), &[], DATA, "look like logits or scores");
    let outcome = fails(&good.replacen("probability", "prob", 1), &[], DATA, "nearest is \"prob\"");
    assert!(outcome.stderr.contains("--probability prob"), "{}", outcome.stderr);
    let outcome = fails(&good.replacen("probability", "quantity", 1), &[], DATA, "column \"probability\" is not in");
    assert!(outcome.stderr.contains("name it with --probability COLUMN"), "{}", outcome.stderr);
    let outcome = fails(&good.replacen("label", "dx", 1), &[], DATA, "nearest is \"dx\"");
    assert!(outcome.stderr.contains("--label dx"), "{}", outcome.stderr);
    let outcome = fails(&good.replacen("label", "nothing", 1), &[], DATA, "column \"label\" is not in");
    assert!(outcome.stderr.contains("--horizon TIME"), "{}", outcome.stderr);
    let words = good.lines().enumerate().map(|(k, line)| {
        let mut cells: Vec<&str> = line.split(',').collect();
        if k > 0 {
            cells[3] = if cells[3] == "1" { "sick" } else { "well" };
        }
        cells.join(",") + "\n"
    });
    let outcome = fails(&words.collect::<String>(), &[], DATA, "expected 1 (positive) or 0 (negative)");
    assert!(outcome.stderr.contains("--label-value"), "{}", outcome.stderr);
    let one: Vec<Row> = rows(60, 0).iter().map(|row| Row { label: true, ..row.clone() }).collect();
    fails(&csv(&one, "s"), &[], CONFIG, "60 of 60 samples are positive, expected both classes");

    fails(&good, &["--set", "reading=step"], CONFIG, "it has no effect on a class");
    fails(&good, &["--set", "tnr=2"], CONFIG, "true negative rate");
    fails(&good, &["--set", "calibration-error.n-bin=3"], CONFIG, "n-bin");
    fails(&good, &["--threshold", "1.5"], CONFIG, "1.5 is not a number in [0, 1]");
    fails(&good, &["--threshold", "0.2,0.3"], CONFIG, "number of thresholds: 2, expected one");
    fails(&good, &["--metrics", "c-td"], CONFIG, "\"c-td\" is no metric of a class");
    fails(&good, &["--probability", "label"], CONFIG, "\"label\"");
    let curves = ["evaluate", "--task", "time-to-event", "--label", "x", "--predictions", "t.csv", "--output", "o"];
    assert!(run(curves).stderr.contains("expected --task binary"));
}
