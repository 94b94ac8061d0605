//! `fairtte evaluate` against other packages: recorded samples are written as tables, scored by the command, and every
//! value is compared with what scikit-survival, pycox, `SurvivalEVAL` or mlr3proba gave for the same rows. Where the values
//! come from is in `fairtte-metrics/tests/golden/README.md`.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::Path;

use fairtte_tests::succeed;
use serde_json::Value;

/// A name of the command, the record it is compared with, and from that record to its value.
type Compared = (String, String, f64);

fn golden(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fairtte-metrics/tests/golden").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// The table of the rows `index` of the evaluated sample.
fn predictions(inputs: &Value, index: &[usize]) -> String {
    let (time, event, grid) = (numbers(&inputs["time"]), numbers(&inputs["event"]), numbers(&inputs["grid"]));
    let mut text = "sample,time,event,group".to_owned();
    for time in &grid {
        write!(text, ",{time}").unwrap();
    }
    for &row in index {
        write!(text, "\ns{row},{},{},g{}", time[row], event[row], inputs["group"][row]).unwrap();
        for survival in numbers(&inputs["surv"][row]) {
            write!(text, ",{survival}").unwrap();
        }
    }
    text + "\n"
}

fn training(inputs: &Value) -> String {
    let rows = numbers(&inputs["train_time"]).into_iter().zip(numbers(&inputs["train_event"]));
    let lines: Vec<String> = rows.enumerate().map(|(row, (time, event))| format!("t{row},{time},{event}")).collect();
    format!("sample,time,event\n{}\n", lines.join("\n"))
}

/// What other packages computed for a subset, by name of the command.
fn expected(case: &Value, subset: &str, n: usize, tau: &[f64], horizon: f64) -> Vec<Compared> {
    let record = |id: &str, censoring: Option<&str>| -> Option<Value> {
        let outputs = case["outputs"].as_array().unwrap().iter();
        let mut of_id = outputs.filter(|record| record["id"] == id && record["subset"] == subset);
        of_id.find(|record| record["cens"].as_str() == censoring)?.get("value").cloned()
    };
    let mut found = Vec::new();
    let mut add = |name: String, id: &str, value: Option<f64>| {
        found.extend(value.map(|value| (name, id.to_owned(), value)));
    };
    let plain = |id: &str, censoring| record(id, censoring).and_then(|value| value.as_f64());
    add("c-td".into(), "pycox antolini", plain("ctd.pycox.antolini.post", None));
    add("c-td-adjusted".into(), "pycox adj_antolini", plain("ctd.pycox.adj_antolini.post", None));
    let half = record("ctd.survivaleval.step.Risk", None).and_then(|value| value["cindex"].as_f64());
    add("c-td-half".into(), "SurvivalEVAL ties Risk", half);
    add("ibs".into(), "scikit-survival", plain("ibs.sksurv", Some("train")));
    for name in ["rsbs", "risl", "isll"] {
        add(name.into(), "mlr3proba", plain(&format!("{name}.mlr3.tau"), Some("train")));
    }
    add("rcll".into(), "mlr3proba", plain("rcll.mlr3_089", None));
    add("calibration-alpha".into(), "mlr3proba", plain("alpha.mlr3", None));
    let brier = record("bs.sksurv", Some("train")).map(|value| numbers(&value));
    let auc = record("auc.sksurv", Some("train")).map(|value| value["auc"].clone());
    let aucs: Option<Vec<f64>> =
        auc.as_ref().and_then(|values| values.as_array()?.iter().map(serde_json::Value::as_f64).collect());
    add("auc-td".into(), "trapezoids over scikit-survival", aucs.and_then(|values| trapezoids(tau, &values)));
    for (place, time) in tau.iter().enumerate() {
        add(format!("brier@{time}"), "scikit-survival", brier.as_ref().map(|values| values[place]));
        add(format!("auc@{time}"), "scikit-survival", auc.as_ref().and_then(|values| values[place].as_f64()));
    }
    // n B sum (share - 1/B)^2 is the statistic of SurvivalEVAL.
    let statistic = record("dcal.survivaleval.step", None).and_then(|value| value["statistic"].as_f64());
    add("d-calibration".into(), "SurvivalEVAL", statistic.map(|statistic| statistic / (10.0 * n as f64)));
    let kaplan_meier = record("km.sksurv", None).map(|curve| {
        let (times, survival) = (numbers(&curve["time"]), numbers(&curve["surv"]));
        times.iter().rposition(|time| *time <= horizon).map_or(1.0, |place| survival[place])
    });
    let grid = numbers(&case["inputs"]["grid"]);
    let risk = |row: &usize| {
        let place = grid.iter().rposition(|time| *time <= horizon);
        1.0 - place.map_or(1.0, |place| case["inputs"]["surv"][row][place].as_f64().unwrap())
    };
    let index = index(case, subset);
    let mean = index.iter().map(risk).sum::<f64>() / index.len() as f64;
    add(
        "observed-expected".into(),
        "Kaplan-Meier of scikit-survival",
        kaplan_meier.map(|survival| (1.0 - survival) / mean),
    );
    found
}

/// The mean over the times by trapezoids; `None` of a single time.
fn trapezoids(times: &[f64], values: &[f64]) -> Option<f64> {
    let pieces = times.windows(2).zip(values.windows(2)).map(|(t, v)| (t[1] - t[0]) * (v[0] + v[1]) / 2.0);
    (times.len() > 1).then(|| pieces.sum::<f64>() / (times[times.len() - 1] - times[0]))
}

fn index(case: &Value, subset: &str) -> Vec<usize> {
    let n = usize::try_from(case["n"].as_u64().unwrap()).unwrap();
    match case["subsets"][subset]["index"].as_array() {
        Some(rows) => rows.iter().map(|row| usize::try_from(row.as_u64().unwrap()).unwrap()).collect(),
        None => (0..n).collect(),
    }
}

/// A recorded number of a subset.
fn recorded(case: &Value, subset: &str, id: &str, censoring: Option<&str>, key: Option<&str>) -> Option<f64> {
    let mut outputs = case["outputs"].as_array().unwrap().iter();
    let record =
        outputs.find(|record| record["id"] == id && record["subset"] == subset && record["cens"].as_str() == censoring);
    let value = record?.get("value")?;
    key.map_or(value, |key| &value[key]).as_f64()
}

/// Whether the risk that the command takes from a curve (the negative mean over `times`) orders the rows as the recorded risks.
fn has_recorded_order(case: &Value, index: &[usize], times: &[f64]) -> bool {
    let (grid, recorded) = (numbers(&case["inputs"]["grid"]), numbers(&case["inputs"]["risk"]));
    let of_curve = |row: &usize| {
        let curve = numbers(&case["inputs"]["surv"][*row]);
        let at = |time: &f64| curve[grid.iter().rposition(|point| point <= time).unwrap_or(0)];
        let values: Vec<f64> = times.iter().map(at).collect();
        -trapezoids(times, &values).unwrap_or(values[0])
    };
    let risks: Vec<(f64, f64)> = index.iter().map(|row| (of_curve(row), recorded[*row])).collect();
    // Risks within 1e-8 are tied in scikit-survival.
    let sign = |difference: f64| if difference.abs() <= 1e-8 { 0.0 } else { difference.signum() };
    risks.iter().all(|one| risks.iter().all(|other| (sign(one.0 - other.0) - sign(one.1 - other.1)).abs() < 0.5))
}

/// Compares one subset; returns the names that were compared.
fn compare(folder: &Path, case: &Value, subset: &str) -> Vec<String> {
    let (index, of_subset) = (index(case, subset), &case["subsets"][subset]);
    let (tau, horizon) = (numbers(&of_subset["tau"]), of_subset["target_time"].as_f64().unwrap());
    let mut expected = expected(case, subset, index.len(), &tau, horizon);
    if has_recorded_order(case, &index, &tau) {
        let value = recorded(case, subset, "harrell.sksurv", None, Some("cindex"));
        expected.extend(value.map(|value| ("harrell-c".to_owned(), "scikit-survival".to_owned(), value)));
    }
    require_equal(folder, case, (subset, &index), &expected, &tau, "step");
    let mut compared: Vec<String> = expected.into_iter().map(|(name, ..)| name).collect();
    for (reading, names) in [
        (
            "next-grid-point",
            [("c-td", "ctd.pycox.antolini.pre", None), ("c-td-adjusted", "ctd.pycox.adj_antolini.pre", None)]
                .as_slice(),
        ),
        ("linear-from-one", &[("c-td-half", "ctd.survivaleval.linear.Risk", Some("cindex"))]),
    ] {
        let value = |(name, id, key): &(&str, &str, Option<&str>)| {
            Some(((*name).to_owned(), (*id).to_owned(), recorded(case, subset, id, None, *key)?))
        };
        let expected: Vec<Compared> = names.iter().filter_map(value).collect();
        require_equal(folder, case, (subset, &index), &expected, &tau, reading);
        compared.extend(expected.iter().map(|(name, ..)| format!("{name}, {reading}")));
    }
    // The weights of these pairs end at the target time of the record, here at the last evaluation time.
    let mut times: Vec<f64> = tau.into_iter().filter(|time| *time < horizon).collect();
    times.push(horizon);
    let weighted = recorded(case, subset, "ctd.survivaleval.step.ipcw.tau", Some("train"), Some("cindex"));
    let uno = recorded(case, subset, "uno.sksurv.tau", Some("train"), None);
    let uno = uno.filter(|_| has_recorded_order(case, &index, &times));
    let of = |name: &str, source: &str, value: Option<f64>| value.map(|v| (name.to_owned(), source.to_owned(), v));
    let until: Vec<Compared> =
        of("c-td-ipcw", "SurvivalEVAL IPCW", weighted).into_iter().chain(of("uno-c", "scikit-survival", uno)).collect();
    require_equal(folder, case, (subset, &index), &until, &times, "step");
    compared.extend(until.into_iter().map(|(name, ..)| name));
    compared
}

/// Scores the rows `index` at `times`, the curves read in this way, and requires the values of other packages.
fn require_equal(
    folder: &Path,
    case: &Value,
    (subset, index): (&str, &[usize]),
    expected: &[Compared],
    times: &[f64],
    reading: &str,
) {
    if expected.is_empty() {
        return;
    }
    let horizon = &case["subsets"][subset]["target_time"];
    let (curves, train) = (folder.join("curves.csv"), folder.join("train.csv"));
    std::fs::write(&curves, predictions(&case["inputs"], index)).unwrap();
    std::fs::write(&train, training(&case["inputs"])).unwrap();
    let names: Vec<&str> = expected.iter().map(|(name, ..)| name.as_str()).collect();
    let output = folder.join("scores.html");
    let words = |text: &[&str]| text.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let mut call = words(&["evaluate", "--predictions", &curves.display().to_string()]);
    call.extend(words(&["--train", &train.display().to_string(), "--metrics", &names.join(",")]));
    call.extend(words(&["--horizon", &horizon.to_string(), "--set", "replicates=0"]));
    call.extend(words(&["--set", &format!("reading={reading}")]));
    call.extend(words(&["--set", &format!("times={times:?}"), "--output", &output.display().to_string()]));
    succeed(call);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(output.with_extension("json")).unwrap()).unwrap();
    let metrics = report.get("evaluation").unwrap_or(&report)["metrics"].as_array().unwrap().clone();
    assert_eq!(metrics.len(), expected.len());
    for (metric, (name, source, expected)) in metrics.iter().zip(expected) {
        let found = metric["overall"]["value"].as_f64();
        let found = found.unwrap_or_else(|| panic!("{subset} {name}: {}", metric["overall"]["undefined"]));
        let close = (found - expected).abs() <= 1e-9 * (1.0 + expected.abs());
        assert!(close, "{} {subset} {name} {reading}: {found}, {source}: {expected}", case["case"]);
    }
}

#[test]
fn the_command_gives_for_every_subset_what_other_packages_recorded() {
    let mut compared = Vec::new();
    for file in ["s02_small_ties_on_grid.json", "s10_heavy_ties.json"] {
        let case = golden(file);
        for subset in case["subsets"].as_object().unwrap().keys() {
            let folder = tempfile::tempdir().unwrap();
            compared.extend(compare(folder.path(), &case, subset));
        }
    }
    compared.retain(|name| !name.contains('@'));
    compared.sort();
    compared.dedup();
    let expected = [
        "auc-td",
        "c-td",
        "c-td, next-grid-point",
        "c-td-adjusted",
        "c-td-adjusted, next-grid-point",
        "c-td-half",
        "c-td-half, linear-from-one",
        "c-td-ipcw",
        "calibration-alpha",
        "d-calibration",
        "harrell-c",
        "ibs",
        "isll",
        "observed-expected",
        "rcll",
        "risl",
        "rsbs",
        "uno-c",
    ];
    assert_eq!(compared, expected);
}

/// The metrics without evaluation times, of all groups in one call: a record of a group has times of its own.
#[test]
fn one_call_gives_for_every_group_what_other_packages_recorded_for_its_rows() {
    let names = [
        ("c-td", "ctd.pycox.antolini.post", None),
        ("c-td-adjusted", "ctd.pycox.adj_antolini.post", None),
        ("c-td-half", "ctd.survivaleval.step.Risk", Some("cindex")),
        ("rcll", "rcll.mlr3_089", None),
        ("calibration-alpha", "alpha.mlr3", None),
    ];
    let mut n_compared = 0;
    for file in ["s02_small_ties_on_grid.json", "s10_heavy_ties.json"] {
        let (case, folder) = (golden(file), tempfile::tempdir().unwrap());
        let (curves, output) = (folder.path().join("curves.csv"), folder.path().join("scores.html"));
        std::fs::write(&curves, predictions(&case["inputs"], &index(&case, "all"))).unwrap();
        let (curves, shown) = (curves.display().to_string(), output.display().to_string());
        let asked = names.map(|(name, ..)| name).join(",");
        let files =
            ["evaluate", "--predictions", &curves, "--output", &shown, "--attributes", "group", "--metrics", &asked];
        let set = ["--min-events", "1", "--set", "replicates=0", "--set", "reading=step"];
        succeed(files.iter().chain(&set));
        let report: Value =
            serde_json::from_str(&std::fs::read_to_string(output.with_extension("json")).unwrap()).unwrap();
        for (metric, (name, id, key)) in report["metrics"].as_array().unwrap().iter().zip(names) {
            for group in metric["attributes"][0]["groups"].as_array().unwrap() {
                let level = group["level"].as_str().unwrap().trim_start_matches('g');
                let Some(expected) = recorded(&case, &format!("group={level}"), id, None, key) else { continue };
                let found = group["estimate"]["value"].as_f64().unwrap();
                let close = (found - expected).abs() <= 1e-9 * (1.0 + expected.abs());
                assert!(close, "{file} group {level} {name}: {found}, {id}: {expected}");
                n_compared += 1;
            }
        }
    }
    // Two groups and three.
    assert_eq!(n_compared, (2 + 3) * names.len());
}
