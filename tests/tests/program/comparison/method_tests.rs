//! `fairtte test` from files: the paper's Table A4 from its Table 1, files and formats, and every refusal with its place.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fairtte_data::table::{ColumnValues, Table, write_parquet};
use fairtte_tests::{fail, files, succeed};
use serde_json::Value;

const CONFIG: i32 = 3;
const DATA: i32 = 4;

/// Table A4 of the paper, by metric; rows and columns in its order.
const ORDER: [&str; 6] = ["DI", "CSA", "DRO", "DeepHit", "FRL", "SR"];
const TABLE_A4: [(&str, [[f64; 6]; 6]); 3] = [
    (
        "C^td",
        [
            [1.000, 0.995, 0.684, 0.420, 1.000, 0.967],
            [0.995, 1.000, 0.340, 0.765, 0.985, 1.000],
            [0.684, 0.340, 1.000, 0.011, 0.765, 0.206],
            [0.420, 0.765, 0.011, 1.000, 0.340, 0.894],
            [1.000, 0.985, 0.765, 0.340, 1.000, 0.937],
            [0.967, 1.000, 0.206, 0.894, 0.937, 1.000],
        ],
    ),
    (
        "AUC^td",
        [
            [1.000, 0.206, 0.894, 0.894, 0.340, 0.596],
            [0.206, 1.000, 0.836, 0.836, 1.000, 0.985],
            [0.894, 0.836, 1.000, 1.000, 0.937, 0.995],
            [0.894, 0.836, 1.000, 1.000, 0.937, 0.995],
            [0.340, 1.000, 0.937, 0.937, 1.000, 0.999],
            [0.596, 0.985, 0.995, 0.995, 0.999, 1.000],
        ],
    ),
    (
        "IBS",
        [
            [1.000, 0.995, 0.985, 0.985, 0.596, 0.894],
            [0.995, 1.000, 1.000, 0.836, 0.894, 0.995],
            [0.985, 1.000, 1.000, 0.765, 0.937, 0.999],
            [0.985, 0.836, 0.765, 1.000, 0.206, 0.507],
            [0.596, 0.894, 0.937, 0.206, 1.000, 0.995],
            [0.894, 0.995, 0.999, 0.507, 0.995, 1.000],
        ],
    ),
];

fn table_1() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/paper/table-1.csv")
}

fn test(table: &Path, more: &[&str]) -> Value {
    let table = table.display().to_string();
    let arguments = ["test", &table, "--json"].into_iter().chain(more.iter().copied());
    serde_json::from_str(&succeed(arguments).stdout).unwrap()
}

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

fn place(metric: &Value, method: &str) -> usize {
    metric["methods"].as_array().unwrap().iter().position(|name| name == method).unwrap()
}

#[track_caller]
fn close(found: &Value, expected: f64, within: f64) {
    let found = found.as_f64().unwrap();
    assert!((found - expected).abs() <= within, "{found}, expected {expected}");
}

#[test]
fn table_a4_follows_from_table_1() {
    let found = test(&table_1(), &["--gap"]);
    let metrics = found["metrics"].as_array().unwrap();
    assert_eq!((metrics.len(), &found["n-values"]), (3, &Value::from(144)));
    for (metric, (name, printed)) in metrics.iter().zip(TABLE_A4) {
        assert_eq!(metric["metric"], name);
        let p = &metric["ranks"]["tested"]["nemenyi-p"];
        for (row, printed) in ORDER.iter().zip(printed) {
            for (column, printed) in ORDER.iter().zip(printed) {
                let p = p[place(metric, row)][place(metric, column)].as_f64().unwrap();
                assert_eq!(format!("{p:.3}"), format!("{printed:.3}"), "{name}, {row} and {column}");
            }
        }
    }
}

// scipy 1.17.1 on tests/paper/table-1.csv: friedmanchisquare; stats.f.sf(F, 5, 35) with
// F = 7 chi2 / (40 - chi2); studentized_range.ppf(0.95, 6, inf) * sqrt(6 * 7 / (12 * 8)).
#[test]
fn ranks_and_friedman_of_table_1_are_those_of_scipy() {
    let expected = [
        ([3.25, 3.75, 1.875, 5.0, 3.125, 4.0], 12.357_142_857_142_861, 0.030_208_613_752_241_71, 0.019_418_857_533_887),
        (
            [4.75, 2.625, 3.75, 3.75, 2.875, 3.25],
            6.642_857_142_857_139,
            0.248_584_785_076_144_76,
            0.250_452_914_785_922,
        ),
        ([4.0, 3.5, 3.375, 4.625, 2.5, 3.0], 6.357_142_857_142_861, 0.273_001_561_525_915_4, 0.277_259_144_873_280),
    ];
    let found = test(&table_1(), &["--gap"]);
    for (metric, (ranks, chi_square, p, p_of_f)) in found["metrics"].as_array().unwrap().iter().zip(expected) {
        let average = numbers(&metric["ranks"]["average-ranks"]);
        let shown = ORDER.map(|method| average[place(metric, method)].to_bits());
        assert_eq!(shown, ranks.map(f64::to_bits), "ranks are multiples of 1/8");
        let tested = &metric["ranks"]["tested"];
        close(&tested["friedman"]["chi-square"], chi_square, 1e-12);
        close(&tested["friedman"]["p-value"], p, 1e-13);
        close(&tested["iman-davenport"]["p-value"], p_of_f, 1e-13);
        close(&tested["critical-difference"], 2.665_655_333_353_374_3, 1e-12);
        assert_eq!((&metric["ranks"]["n-settings"], &metric["base"]), (&Value::from(8), &Value::from("DeepHit")));
    }
    // At the level 0.1: studentized_range.ppf(0.9, 6, inf) * sqrt(6 * 7 / (12 * 8)).
    let tested = &test(&table_1(), &["--gap", "--level", "0.1"])["metrics"][0]["ranks"]["tested"];
    close(&tested["critical-difference"], 2.421_339_307_749_821, 1e-12);
}

// scipy 1.17.1: wilcoxon(method - DeepHit, alternative = .., method = "exact"), and of other pairs; Holm by hand.
#[test]
fn signed_rank_tests_of_table_1_are_those_of_scipy() {
    let order = ["DRO", "SR", "FRL", "DI", "CSA"];
    let c_td = |more: &[&str]| {
        let found = test(&table_1(), &[&["--gap"], more].concat());
        found["metrics"][0]["pairs"].as_array().unwrap().clone()
    };
    let p =
        |pairs: &[Value]| -> Vec<f64> { pairs.iter().map(|pair| pair["test"]["p-value"].as_f64().unwrap()).collect() };
    let two_sided = c_td(&[]);
    let p_two_sided = [0.007_812_5, 0.148_437_5, 0.054_687_5, 0.195_312_5, 0.078_125];
    assert_eq!(p(&two_sided), p_two_sided);
    let medians = [-1.159_950_5, -0.329_412_5, -1.023_339_5, -0.447_408, -0.878_17];
    let holm = [5.0 * 0.007_812_5, 2.0 * 0.148_437_5, 4.0 * 0.054_687_5, 2.0 * 0.148_437_5, 3.0 * 0.078_125];
    for (k, pair) in two_sided.iter().enumerate() {
        assert_eq!((&pair["first"], &pair["second"]), (&Value::from(order[k]), &Value::from("DeepHit")));
        assert_eq!((&pair["n-pairs"], &pair["n-zero"]), (&Value::from(8), &Value::from(0)));
        close(&pair["median-difference"], medians[k], 1e-10);
        close(&pair["p-holm"], holm[k], 1e-12);
    }
    let less = c_td(&["--alternative", "less"]);
    assert_eq!(p(&less), [0.003_906_25, 0.074_218_75, 0.027_343_75, 0.097_656_25, 0.039_062_5]);
    let greater = c_td(&["--alternative", "greater"]);
    assert_eq!(p(&greater), [1.0, 0.945_312_5, 0.980_468_75, 0.925_781_25, 0.972_656_25]);
    let all = c_td(&["--all-pairs"]);
    assert_eq!(p(&all)[..5], p_two_sided);
    let others = [
        ("SR", "DRO", 0.078_125),
        ("FRL", "DRO", 0.460_937_5),
        ("DI", "DRO", 0.195_312_5),
        ("CSA", "DRO", 0.109_375),
        ("FRL", "SR", 0.148_437_5),
        ("DI", "SR", 0.460_937_5),
        ("CSA", "SR", 0.312_5),
        ("DI", "FRL", 0.742_187_5),
        ("CSA", "FRL", 0.742_187_5),
        ("CSA", "DI", 0.945_312_5),
    ];
    for (pair, (first, second, expected)) in all[5..].iter().zip(others) {
        assert_eq!((&pair["first"], &pair["second"]), (&Value::from(first), &Value::from(second)));
        close(&pair["test"]["p-value"], expected, 1e-12);
    }
    assert_eq!(all.len(), 15);
    // The smallest of 15 tests.
    close(&all[0]["p-holm"], 15.0 * 0.007_812_5, 1e-12);
}

#[test]
fn the_files_say_what_the_terminal_says() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("tests");
    let (table, folder) = (table_1().display().to_string(), output.display().to_string());
    let shown = succeed(["test", &table, "--gap", "--output", &folder]).stdout;
    let stems = ["nemenyi", "ranks", "signed-rank", "values"];
    let metrics = ["auc-td", "c-td", "ibs"];
    let mut expected = vec!["test.html".to_owned(), "test.json".to_owned()];
    expected.extend(metrics.iter().map(|metric| format!("figures/cd-{metric}.svg")));
    let tables = stems.iter().flat_map(|stem| metrics.iter().map(move |metric| format!("{stem}-{metric}")));
    for table in tables.chain(["friedman".to_owned()]) {
        expected.extend(["csv", "md", "tex"].map(|ending| format!("tables/{table}.{ending}")));
    }
    expected.sort();
    assert_eq!(files(&output), expected);
    let verdict = "Friedman does not reject equal ranks (p = 0.249, 8 settings, 6 methods): no difference between methods is shown";
    let page = std::fs::read_to_string(output.join("test.html")).unwrap();
    assert!(page.contains(verdict) && !page.contains("<script"), "{page}");
    let flowing = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flowing.contains(verdict), "{shown}");
    assert!(
        flowing.contains("Holm's adjustment for the 3 metrics of the table gives p = 0.091: it no longer rejects.")
    );
    assert!(shown.lines().all(|line| line.chars().count() <= 80 || line.starts_with("report: ")), "{shown}");
    let json: Value = serde_json::from_str(&std::fs::read_to_string(output.join("test.json")).unwrap()).unwrap();
    assert_eq!(json, test(&table_1(), &["--gap"]));
    let friedman = Table::read(&output.join("tables/friedman.csv")).unwrap();
    let p: Vec<f64> = friedman.numbers("p").unwrap().into_iter().map(Result::unwrap).collect();
    let of_json = |metric: &Value| metric["ranks"]["tested"]["friedman"]["p-value"].as_f64().unwrap();
    assert_eq!(p, json["metrics"].as_array().unwrap().iter().map(of_json).collect::<Vec<_>>());
}

/// The cells of Table 1 as text: metric, setting, method, value.
fn cells() -> [Vec<String>; 4] {
    let table = Table::read(&table_1()).unwrap();
    ["metric", "setting", "method", "value"]
        .map(|column| table.text(column).unwrap().into_iter().map(Option::unwrap).collect())
}

#[test]
fn other_names_formats_and_orders_give_the_same_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let expected = test(&table_1(), &["--gap"])["metrics"].clone();
    let [metrics, settings, methods, values] = cells();
    let n = metrics.len();
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let line = |k: usize| format!("{}\t{}\t{}\t{}\n", values[k], methods[k], settings[k], metrics[k]);
    let renamed =
        write("renamed.tsv", (0..n).map(line).fold("F\tstrategy\tdata\tof\n".to_owned(), |text, line| text + &line));
    let named = ["--gap", "--value", "F", "--method", "strategy", "--setting", "data", "--metric", "of"];
    assert_eq!(test(&renamed, &named)["metrics"], expected);
    let parquet = folder.path().join("table.parquet");
    let columns = vec![
        ("metric".to_owned(), ColumnValues::text(&metrics)),
        ("setting".to_owned(), ColumnValues::text(&settings)),
        ("method".to_owned(), ColumnValues::text(&methods)),
        ("value".to_owned(), ColumnValues::Number(values.iter().map(|value| value.parse().unwrap()).collect())),
    ];
    write_parquet(&parquet, columns, &[]).unwrap();
    assert_eq!(test(&parquet, &["--gap"])["metrics"], expected);
    // Wide: one line per metric and setting, six methods.
    let wide = |k: usize| format!("{},{},{}\n", metrics[k], settings[k], values[k..k + 6].join(","));
    let header = format!("metric,setting,{}\n", methods[..6].join(","));
    let text = (0..n).step_by(6).map(wide).fold(header, |text, line| text + &line);
    assert_eq!(test(&write("wide.csv", text.clone()), &["--gap", "--wide"])["metrics"], expected);
    // An empty cell is a method without a value: its setting is left out of the metric.
    let without = text.replacen(&values[8], "", 1);
    let found = test(&write("gap.csv", without), &["--gap", "--wide"]);
    let metric = &found["metrics"][0];
    assert_eq!(metric["left-out"], serde_json::json!([{ "setting": "ADNI-Sex", "lacks": ["SR"] }]));
    assert_eq!((&metric["ranks"]["n-settings"], &found["metrics"][1]), (&Value::from(7), &expected[1]));
}

#[test]
fn directions_can_differ_between_metrics() {
    let c_td = |more: &[&str]| {
        let found = test(&table_1(), more);
        let of = |k: usize| {
            (found["metrics"][k]["goal"].clone(), numbers(&found["metrics"][k]["ranks"]["average-ranks"])[0])
        };
        [of(0), of(1), of(2)]
    };
    let (higher, lower, gap) = ("higher-is-better", "lower-is-better", "gap");
    let found = c_td(&["--higher-is-better", "--lower-is-better=IBS"]);
    assert_eq!(found, [(higher.into(), 2.0), (higher.into(), 3.25), (lower.into(), 4.625)]);
    let found = c_td(&["--higher-is-better=C^td,AUC^td", "--gap"]);
    assert_eq!(found, [(higher.into(), 2.0), (higher.into(), 3.25), (gap.into(), 4.625)]);
}

#[test]
fn trials_are_found_by_their_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.csv");
    for column in ["trial", "repeat", "seed"] {
        let mut text = format!("setting,method,{column},value\n");
        for (setting, trial, a, b) in [("x", 1, 1, 3), ("x", 2, 2, 1), ("y", 1, 5, 5), ("y", 2, 4, 9)] {
            writeln!(text, "{setting},a,{trial},{a}\n{setting},b,{trial},{b}").unwrap();
        }
        std::fs::write(&path, text).unwrap();
        let more: &[&str] = if column == "seed" { &["--trial", "seed"] } else { &[] };
        let found = test(&path, &[&["--lower-is-better"], more].concat());
        let metric = &found["metrics"][0];
        assert_eq!((&metric["metric"], &metric["trials"]), (&Value::from("value"), &serde_json::json!([2, 2])));
        assert_eq!(metric["settings"][1]["means"], serde_json::json!([4.5, 7.0]));
        assert_eq!((&metric["pairs"][0]["n-pairs"], &metric["pairs"][0]["n-zero"]), (&Value::from(4), &Value::from(1)));
    }
}

/// Requires that a table is refused with this sentence and that nothing is written.
#[track_caller]
fn refused(text: &str, more: &[&str], code: i32, sentence: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, text).unwrap();
    let (path, output) = (path.display().to_string(), folder.path().join("out").display().to_string());
    let arguments = ["test", &path, "--output", &output].into_iter().chain(more.iter().copied());
    let outcome = fail(arguments, code, sentence);
    assert!(outcome.stdout.is_empty() && files(folder.path()) == ["t.csv"], "{outcome:?}");
    outcome.stderr
}

#[test]
fn wrong_tables_are_refused_with_row_and_column() {
    const GOOD: &str = "setting,method,value\nx,a,1\nx,b,2\ny,a,3\ny,b,4\n";
    let gap = ["--gap"];
    let with = |from: &str, to: &str| GOOD.replacen(from, to, 1);
    refused(&with("x,b,2", "x,b,"), &gap, DATA, "value is missing, expected a finite number (");
    let said = refused(&with("x,b,2", "x,b,two"), &gap, DATA, "value is \"two\", expected a finite number (");
    assert!(said.contains("t.csv, row 3)"), "{said}");
    for odd in ["nan", "inf", "-inf"] {
        refused(&with("y,a,3", &format!("y,a,{odd}")), &gap, DATA, "expected a finite number (");
    }
    let said =
        refused(&with("y,a,3", "y,a,-3"), &gap, DATA, "value of \"a\" in setting \"y\" is -3, expected a number >= 0");
    assert!(said.contains("t.csv, row 4, column \"value\""), "{said}");
    let said = refused(
        &with("y,a,3", "x,a,3"),
        &gap,
        DATA,
        "value of \"a\" in setting \"x\" appears twice, expected one value",
    );
    assert!(said.contains("row 4, column \"value\"; first in row 2") && said.contains("--trial COLUMN"), "{said}");
    refused(&with("y,a", ",a"), &gap, DATA, "setting is missing, expected a name");
    refused(&with("y,a", "y,"), &gap, DATA, "method is missing, expected a name");
    refused("setting,method,value\n", &gap, DATA, "it has no row below its header");
    refused("setting,method,value\nx,a,1\ny,a,2\n", &gap, DATA, "value has one method, a, expected at least two");
    let said = refused(&with("method", "model"), &gap, DATA, "column \"method\" is not in");
    assert!(said.contains("--method COLUMN names it, or --wide"), "{said}");
    let said = refused(&with("setting", "dataset"), &gap, DATA, "column \"setting\" is not in");
    assert!(said.contains("--setting COLUMN names it") && !said.contains("--wide"), "{said}");
    refused(GOOD, &["--gap", "--metric", "of"], DATA, "column \"of\" is not in");
    refused(GOOD, &["--gap", "--trial", "seed"], DATA, "column \"seed\" is not in");
    let trials = "setting,method,trial,value\nx,a,1,1\nx,b,,2\n";
    refused(trials, &gap, DATA, "trial is missing, expected a name");
    let wide = "setting,a,b\nx,1,2\ny,3,high\n";
    let said = refused(wide, &["--gap", "--wide"], DATA, "b is \"high\", expected a finite number (");
    assert!(said.contains("every column but those of settings, metrics and trials is a method"), "{said}");
    refused("setting,a\nx,1\n", &["--gap", "--wide"], DATA, "value has one method, a");
    refused("setting\nx\n", &["--gap", "--wide"], DATA, "there is no value");
}

#[test]
fn wrong_arguments_are_refused_by_name() {
    const GOOD: &str = "setting,method,value\nx,a,1\nx,b,2\ny,a,3\ny,b,4\n";
    let none =
        refused(GOOD, &[], CONFIG, "value has no direction, expected --higher-is-better, --lower-is-better or --gap");
    assert!(none.contains("gaps between groups"), "{none}");
    refused(GOOD, &["--gap", "--lower-is-better"], CONFIG, "--lower-is-better both speak of all metrics");
    refused(GOOD, &["--gap=ibs"], CONFIG, "\"ibs\" is no metric of the table, expected one of value");
    refused(GOOD, &["--gap=value,value"], CONFIG, "\"value\" is named twice");
    refused(GOOD, &["--gap=value", "--lower-is-better=value"], CONFIG, "\"value\" is named twice");
    refused(
        GOOD,
        &["--gap", "--base", "c"],
        CONFIG,
        "the base is \"c\", which has no value of value, expected one of a, b",
    );
    for level in ["0", "0.95", "-0.05", "nan"] {
        refused(GOOD, &["--gap", "--level", level], CONFIG, "expected a level of significance above 0 and at most 0.5");
    }
    refused(GOOD, &["--gap", "--setting", "method"], CONFIG, "the column \"method\" has two meanings, expected one");
    refused(GOOD, &["--gap", "--trial", "value"], CONFIG, "the column \"value\" has two meanings");
    let both = "setting,method,trial,repeat,value\nx,a,1,1,1\nx,b,1,1,2\n";
    refused(both, &["--gap"], CONFIG, "the table has the columns trial and repeat, expected one of them to be named");
    refused(GOOD, &["--gap", "--wide", "--method", "method"], 2, "cannot be used with");
    refused(GOOD, &["--gap", "--alternative", "smaller"], 2, "invalid value 'smaller'");
}

#[test]
fn columns_that_are_not_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "setting,method,value,head\nx,a,1,pmf\nx,b,2,pmf\n").unwrap();
    let path = path.display().to_string();
    let outcome = succeed(["test", &path, "--gap"]);
    assert!(outcome.stderr.contains("note: Columns that are not read: head."), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("not meant for so few settings"), "{}", outcome.stdout);
}
