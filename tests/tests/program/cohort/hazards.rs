//! `simulate --kind hazards`: a table whose true curves are known, which the other commands read.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::path::Path;

use fairtte_data::predictions::Rising;
use fairtte_data::table::Table;
use fairtte_data::{read_cohort, read_predictions};
use fairtte_tests::{c_td, fail, report, succeed};

const CONFIG: i32 = 3;
const DATA: i32 = 4;

fn simulate(folder: &Path, extra: &[&str]) -> Vec<String> {
    let output = folder.join("people").display().to_string();
    let fixed = ["simulate", "--kind", "hazards", "--output", &output, "--seed", "5", "--set", "n=400"];
    fixed.iter().chain(extra).map(|word| (*word).to_owned()).collect()
}

/// Wide differences of risk, two subgroups, and censoring by the covariate.
const SETS: [&str; 8] = [
    "--set",
    "hazard.log-linear={rate = 0.3, treatment = -0.7, covariates = [4.0]}",
    "--set",
    "censoring.hazard=censoring-10",
    "--set",
    "subgroups={shares = [0.7, 0.3], means = [0.4, 0.6], deviation = 0.2}",
    "--set",
    "withheld=[9]",
];

#[test]
fn the_truth_itself_can_be_audited_and_beats_what_it_is_compared_with() {
    let folder = tempfile::tempdir().unwrap();
    let said = succeed(simulate(folder.path(), &SETS));
    assert!(said.stdout.starts_with("400 people, "), "{}", said.stdout);
    let people = folder.path().join("people");
    let file = |name: &str| people.join(name).display().to_string();
    let (cohort, _) = read_cohort(&people.join("cohort.csv")).unwrap();
    assert_eq!(cohort.n(), 400);
    let [observed, untreated, treated] = ["truth.parquet", "truth-untreated.parquet", "truth-treated.parquet"]
        .map(|name| read_predictions(&people.join(name), Rising::Refuse).unwrap());
    let table = Table::read(&people.join("cohort.csv")).unwrap();
    let number = |name: &str, row: usize| table.numbers(name).unwrap()[row].clone().unwrap();
    for row in 0..400 {
        let arm = if number("treatment", row) > 0.5 { &treated } else { &untreated };
        assert_eq!(observed.survival.row(row), arm.survival.row(row));
        // The printed hazard once more.
        let rate = 0.3 * (4.0 * number("x0", row) - 0.7 * number("treatment", row)).exp();
        assert!((observed.survival[[row, 1]] - (-rate * observed.grid[1]).exp()).abs() < 1e-12);
    }
    assert!(!table.has("x9") && table.has("x8"));
    let hidden = Table::read(&people.join("people.parquet")).unwrap();
    assert!(hidden.has("x9") && hidden.has("propensity"));
    let audit = folder.path().join("audit").display().to_string();
    let few = ["--set", "replicates=20", "--set", "permutations=9"];
    let call =
        ["evaluate", "--predictions", &file("truth.parquet"), "--cohort", &file("cohort.csv"), "--output", &audit];
    succeed(call.iter().chain(&few));
    let page = folder.path().join("audit");
    let found = report(&page);
    assert!(c_td(&found) > 0.6, "{}", c_td(&found));
    let attributes: Vec<&str> = found.metrics[0].attributes.iter().map(|of| of.attribute.as_str()).collect();
    assert_eq!(attributes, ["treatment", "subgroup"]);
}

/// Where the folder of temporary files has locks.
#[test]
fn processes_that_request_the_same_at_once_write_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let run = || succeed(simulate(folder.path(), &["--set", "n=5000"])).stdout;
    let said: Vec<String> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        started.into_iter().map(|process| process.join().unwrap()).collect()
    });
    let n_written = said.iter().filter(|text| text.contains("; written")).count();
    assert_eq!(n_written, 1, "{said:?}");
    assert!(!folder.path().join("people/.simulation.lock").exists());
}

#[test]
fn the_same_request_is_not_written_again_and_another_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    succeed(simulate(folder.path(), &[]));
    let bytes = || {
        let names = ["cohort.csv", "people.parquet", "truth.parquet", "truth-censoring.parquet"];
        names.map(|name| std::fs::read(folder.path().join("people").join(name)).unwrap())
    };
    let before = bytes();
    let again = succeed(simulate(folder.path(), &["--threads", "1", "--json"]));
    assert!(again.stdout.contains("\"reused\": true"), "{}", again.stdout);
    assert_eq!(bytes(), before);
    fail(simulate(folder.path(), &["--set", "treatment.probability=0.4"]), DATA, "it holds another simulation");
    std::fs::remove_file(folder.path().join("people/simulation.json")).unwrap();
    // A process that is killed leaves the file that it is writing under this name.
    let left = [".truth.parquet.x7Qp2k.tmp", ".simulation.json.x7Qp2k.tmp"]
        .map(|name| folder.path().join("people").join(name));
    for path in &left {
        std::fs::write(path, "half").unwrap();
    }
    succeed(simulate(folder.path(), &[]));
    assert_eq!(bytes(), before);
    assert!(left.iter().all(|path| !path.exists()));
    std::fs::remove_file(folder.path().join("people/simulation.json")).unwrap();
    std::fs::write(folder.path().join("people/thesis.txt"), "").unwrap();
    fail(simulate(folder.path(), &[]), DATA, "it holds other files, expected a new or empty folder");
}

#[test]
fn settings_and_rows_that_cannot_be_used_are_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let refuse = |extra: &[&str], code: i32, sentence: &str| {
        fail(simulate(folder.path(), extra), code, sentence);
        assert!(!folder.path().join("people").exists());
    };
    refuse(
        &["--set", "treatment.probability=1.5"],
        CONFIG,
        "treatment.probability is 1.5, expected a number between 0 and 1",
    );
    refuse(&["--set", "hazard=scenario-11"], CONFIG, "scenario-11");
    refuse(&["--set", "hazrad=scenario-1"], CONFIG, "hazrad");
    refuse(&["--dry-run", "--set", "follow-up.maximum=0"], CONFIG, "follow-up.maximum is 0");
    let table = folder.path().join("rows.csv");
    std::fs::write(&table, "a,b,c,d\n1,5,2,1\n2,,2,old\n3,4,2,2\n").unwrap();
    let table = table.display().to_string();
    let hazard = ["--set", "hazard=constant-1", "--set", "censoring.hazard=none"];
    let rows = |columns: &'static str| [&["--rows", table.as_str(), "--columns", columns][..], &hazard].concat();
    refuse(&rows("a,b"), DATA, "covariate \"b\" is missing, expected a finite number in every row");
    refuse(&rows("a,d"), DATA, "covariate \"d\" is \"old\", expected a finite number in every row");
    refuse(&rows("a,a"), CONFIG, "--columns: \"a\" is named twice, expected each column once");
    refuse(&rows("a,c"), DATA, "covariate \"c\" is the same in all 3 samples");
    refuse(&rows("a,e"), DATA, "\"e\"");
    refuse(&rows("a,time"), CONFIG, "\"time\" is a column that the simulation writes itself");
    refuse(&["--rows", &table, "--columns", "a"], CONFIG, "hazard is one that reads 2 covariates");
    let output = folder.path().join("films").display().to_string();
    let call = ["simulate", "--output", &output, "--rows", &table, "--columns", "a"];
    fail(call, CONFIG, "expected --kind hazards");
    succeed(simulate(folder.path(), &rows("a")));
    let cohort = Table::read(&folder.path().join("people/cohort.csv")).unwrap();
    // Three rows, taken again and again, between 0 and 1.
    let values: Vec<f64> = cohort.numbers("a").unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(values[..4], [0.0, 0.5, 1.0, 0.0]);
}
