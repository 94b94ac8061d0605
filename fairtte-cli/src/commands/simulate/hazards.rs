//! `fairtte simulate --kind hazards`: a table whose true survival curves are known.

use std::path::{Path, PathBuf};

use fairtte_classical::generator::{Arm, Generated, GeneratorSettings, generate, generate_on};
use fairtte_data::simulated::{LOCK, write_alone};
use fairtte_data::table::{ColumnValues, Table, write_csv, write_parquet};
use fairtte_data::{remove_unfinished, unfinished_name, write_atomically, write_predictions};
use fairtte_metrics::{SampleId, SurvivalCurves};
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::{print, print_json, use_threads};
use crate::CliError;
use crate::args::Simulate;
use crate::merged::Merged;
use crate::progress::say;

/// The record, written last.
const RECORD: &str = "simulation.json";
/// Changes whenever the same settings would give other people.
const GENERATOR_VERSION: u32 = 1;

/// What was requested: a folder of the same request is not written again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Request {
    generator_version: u32,
    seed: u64,
    settings: GeneratorSettings,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Rows>,
}

/// The table that the covariates come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Rows {
    table: PathBuf,
    columns: Vec<String>,
    /// Hash of the values that were used.
    hash: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Record {
    #[serde(flatten)]
    request: Request,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Counts {
    n: usize,
    n_events: usize,
    n_treated: usize,
}

pub(super) fn run(arguments: &Simulate, merged: Merged) -> Result<(), CliError> {
    let settings: GeneratorSettings = merged.into_config()?;
    use_threads(arguments.threads)?;
    let out = &arguments.output;
    let (rows, covariates) = match &arguments.rows {
        Some(table) => {
            let (rows, covariates) = read_rows(table, &arguments.columns)?;
            (Some(rows), Some(covariates))
        }
        None => (None, None),
    };
    let request = Request { generator_version: GENERATOR_VERSION, seed: arguments.seed, settings, rows };
    say(format!("simulating {} people with known hazards into {}", request.settings.n, out.display()));
    // What is refused is refused before there is a folder, and by a dry run as well.
    let one = GeneratorSettings { n: request.settings.n.min(1), ..request.settings.clone() };
    people(&Request { settings: one, ..request.clone() }, covariates.as_ref())?;
    if arguments.dry_run {
        return dry_run(arguments, &request);
    }
    let write = |is_locked| write(out, &request, covariates.as_ref(), is_locked);
    let (counts, reused) = write_alone(out, || finished(out, &request), write)?;
    if arguments.json {
        return print_json(&json!({
            "folder": out, "cohort": out.join("cohort.csv"), "truth": out.join("truth.parquet"),
            "n": counts.n, "n-events": counts.n_events, "n-treated": counts.n_treated, "reused": reused,
        }));
    }
    let fate = if reused { "was already there" } else { "written" };
    let Counts { n, n_events, n_treated } = counts;
    print(format!("{n} people, {n_treated} treated, {n_events} with an observed event; {fate}"));
    print(format!("table: {}", out.join("cohort.csv").display()));
    print(format!("true curves: {}", out.join("truth.parquet").display()));
    Ok(())
}

fn dry_run(arguments: &Simulate, request: &Request) -> Result<(), CliError> {
    if arguments.json {
        return print_json(&json!({
            "would": "simulate", "folder": arguments.output, "seed": request.seed, "threads": arguments.threads,
            "rows": request.rows, "settings": request.settings,
        }));
    }
    say(format!("dry run: the seed would be {}", request.seed));
    let text = toml::to_string(&request.settings).map_err(|error| CliError::Bug(error.to_string()))?;
    print(text.trim_end());
    Ok(())
}

fn people(request: &Request, covariates: Option<&Array2<f64>>) -> Result<Generated, CliError> {
    let names = request.rows.as_ref().map(|rows| rows.columns.clone()).unwrap_or_default();
    let generated = match covariates {
        Some(rows) => generate_on(&request.settings, rows, request.seed),
        None => generate(&request.settings, request.seed),
    };
    generated.map_err(|error| CliError::Estimator(error.with_names(&names)))
}

/// Columns that the tables of the people have beside the covariates.
const OWN_COLUMNS: [&str; 13] = [
    "sample_id",
    "subject_id",
    "time",
    "event",
    "treatment",
    "treatment_group",
    "subgroup_group",
    "event_time",
    "event_time_untreated",
    "event_time_treated",
    "censoring_time",
    "propensity",
    "unmeasured",
];

/// Columns of numbers without missing cells, in the order in which hazards read them.
fn read_rows(path: &Path, columns: &[String]) -> Result<(Rows, Array2<f64>), CliError> {
    if let Some(name) = columns.iter().find(|name| OWN_COLUMNS.contains(&name.as_str())) {
        let message = format!(
            "\"{name}\" is a column that the simulation writes itself, expected covariates of the table with other names ({})",
            OWN_COLUMNS.join(", ")
        );
        return Err(CliError::setting("--columns", message, Some("rename the column in the table")));
    }
    if let Some((_, name)) = columns.iter().enumerate().find(|(place, name)| columns[..*place].contains(name)) {
        let message = format!("\"{name}\" is named twice, expected each column once");
        return Err(CliError::setting("--columns", message, None));
    }
    let table = Table::read(path)?;
    let mut values = Array2::zeros((table.n_rows(), columns.len()));
    let mut hasher = blake3::Hasher::new();
    for (place, name) in columns.iter().enumerate() {
        for (row, cell) in table.numbers(name)?.into_iter().enumerate() {
            let refused = |found: &str| CliError::Cell {
                problem: format!("covariate \"{name}\" is {found}, expected a finite number in every row"),
                place: format!("{}, row {}, column \"{name}\"", path.display(), table.row(row)),
                help: Some("fill or remove missing values first".to_owned()),
            };
            let value = match cell {
                Ok(value) if value.is_finite() => value,
                Ok(value) => return Err(refused(&value.to_string())),
                Err(text) if text.is_empty() => return Err(refused("missing")),
                Err(text) => return Err(refused(&format!("\"{text}\""))),
            };
            values[[row, place]] = value;
            hasher.update(&value.to_le_bytes());
        }
    }
    let (columns, hash) = (columns.to_vec(), hasher.finalize().to_hex().to_string());
    Ok((Rows { table: path.to_owned(), columns, hash }, values))
}

/// The counts of a finished simulation of the same request; `None` of a folder that is absent, empty or interrupted.
fn finished(out: &Path, request: &Request) -> Result<Option<Counts>, CliError> {
    let problem = |problem: &str| CliError::RunFolder { path: out.to_owned(), problem: problem.to_owned() };
    let Ok(text) = std::fs::read_to_string(out.join(RECORD)) else {
        let is_known = |name: &std::ffi::OsStr| {
            name.to_str()
                .is_some_and(|name| FILES.contains(&name) || name == LOCK || unfinished_name(name).is_some_and(is_ours))
        };
        let mut entries = std::fs::read_dir(out).into_iter().flatten().flatten();
        return match entries.find(|entry| !is_known(&entry.file_name())) {
            Some(_) => {
                Err(problem("it holds other files, expected a new or empty folder or one of the same simulation"))
            }
            None => Ok(None),
        };
    };
    let record: Result<Record, _> = serde_json::from_str(&text);
    match record {
        Ok(Record { request: found, counts }) if found == *request => Ok(Some(counts)),
        _ => Err(problem("it holds another simulation, expected a new or empty folder or one of the same simulation")),
    }
}

/// The files beside the record.
const FILES: [&str; 6] = [
    "cohort.csv",
    "people.parquet",
    "truth.parquet",
    "truth-untreated.parquet",
    "truth-treated.parquet",
    "truth-censoring.parquet",
];

fn is_ours(name: &str) -> bool {
    name == RECORD || FILES.contains(&name)
}

fn write(out: &Path, request: &Request, covariates: Option<&Array2<f64>>, is_locked: bool) -> Result<Counts, CliError> {
    let cohort = people(request, covariates)?;
    let n = request.settings.n;
    let width = n.to_string().len();
    let samples: Vec<String> = (1..=n).map(|row| format!("p{row:0width$}")).collect();
    let names = request.rows.as_ref().map_or_else(
        || (0..cohort.covariates.ncols()).map(|place| format!("x{place}")).collect(),
        |rows| rows.columns.clone(),
    );
    if is_locked {
        remove_unfinished(out, is_ours);
    }
    write_csv(&out.join(FILES[0]), cohort_columns(&cohort, &samples, &names))?;
    write_parquet(&out.join(FILES[1]), people_columns(&cohort, &samples, &names), &[])?;
    let grid = request.settings.grid();
    let ids: Vec<SampleId> = samples.iter().map(SampleId::new).collect();
    let save = |file: &str, curves: SurvivalCurves| write_predictions(&out.join(file), &ids, &grid, curves.survival());
    for (file, arm) in [(FILES[2], Arm::Observed), (FILES[3], Arm::Untreated), (FILES[4], Arm::Treated)] {
        save(file, cohort.survival(arm, &grid)?)?;
    }
    save(FILES[5], cohort.censoring_survival(&grid)?)?;
    let n_treated = cohort.treatment.iter().filter(|treated| **treated).count();
    let counts = Counts { n, n_events: cohort.outcomes.n_events(), n_treated };
    let record = serde_json::to_string_pretty(&Record { request: request.clone(), counts });
    let record = record.map_err(|error| CliError::Bug(error.to_string()))?;
    write_atomically(&out.join(RECORD), |writer| std::io::Write::write_all(writer, record.as_bytes()))?;
    Ok(counts)
}

type Columns<'a> = Vec<(String, ColumnValues<'a>)>;

/// What a model may see, in the layout that `[data.tabular]` and `evaluate --cohort` read.
fn cohort_columns<'a>(cohort: &Generated, samples: &'a [String], names: &[String]) -> Columns<'a> {
    let ids = || ColumnValues::Borrowed(samples.iter().map(|sample| Some(sample.as_str())).collect());
    let flags = |flags: &[bool]| ColumnValues::Integer(flags.iter().map(|flag| i64::from(*flag)).collect());
    let arm = |treated: &bool| if *treated { "treated" } else { "untreated" };
    let mut columns = vec![
        ("sample_id".to_owned(), ids()),
        ("subject_id".to_owned(), ids()),
        ("time".to_owned(), ColumnValues::Number(cohort.outcomes.time().to_vec())),
        ("event".to_owned(), flags(cohort.outcomes.event())),
        ("treatment_group".to_owned(), ColumnValues::text(cohort.treatment.iter().map(arm))),
    ];
    if !cohort.subgroup.is_empty() {
        columns.push(("subgroup_group".to_owned(), ColumnValues::text(&cohort.subgroup)));
    }
    columns.push(("treatment".to_owned(), flags(&cohort.treatment)));
    for place in &cohort.visible {
        columns.push((names[*place].clone(), ColumnValues::Number(cohort.covariates.column(*place).to_vec())));
    }
    columns
}

/// What is true of every person beside the curves; times that never come are empty.
fn people_columns<'a>(cohort: &Generated, samples: &'a [String], names: &[String]) -> Columns<'a> {
    let times = |of: &dyn Fn(usize) -> f64| {
        let finite = |row: usize| Some(of(row)).filter(|time| time.is_finite());
        ColumnValues::OptionalNumber((0..samples.len()).map(finite).collect())
    };
    let mut columns = vec![
        ("sample_id".to_owned(), ColumnValues::Borrowed(samples.iter().map(|sample| Some(sample.as_str())).collect())),
        ("event_time".to_owned(), times(&|row| cohort.event_time[row])),
        ("event_time_untreated".to_owned(), times(&|row| cohort.potential_times[row][0])),
        ("event_time_treated".to_owned(), times(&|row| cohort.potential_times[row][1])),
        ("censoring_time".to_owned(), times(&|row| cohort.censoring_time[row])),
        ("propensity".to_owned(), ColumnValues::Number(cohort.propensity.clone())),
        ("unmeasured".to_owned(), ColumnValues::Number(cohort.unmeasured.clone())),
    ];
    for (place, name) in names.iter().enumerate().filter(|(place, _)| !cohort.visible.contains(place)) {
        columns.push((name.clone(), ColumnValues::Number(cohort.covariates.column(place).to_vec())));
    }
    columns
}
