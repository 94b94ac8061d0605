//! Reads the golden files: inputs, subsets and the records of the other packages.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fairtte_metrics::{CensoringCurve, CensoringTies, MetricError, Outcomes, SurvivalCurves};
use ndarray::Array2;
use serde_json::Value;

/// The folder named by `FAIRTTE_GOLDEN`; without it the full set next to the repository if it is there, else the files
/// that are part of this crate.
pub fn folder() -> PathBuf {
    if let Some(named) = std::env::var_os("FAIRTTE_GOLDEN") {
        return PathBuf::from(named);
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = here.join("../../shared/golden");
    if shared.is_dir() {
        return shared;
    }
    eprintln!("only the files in tests/golden are compared: {} is absent", shared.display());
    here.join("tests/golden")
}

/// Files of the folder whose names start with `prefix`, in order.
fn files(prefix: char) -> Vec<PathBuf> {
    let folder = folder();
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(prefix) && path.extension().is_some_and(|extension| extension == "json")
    });
    paths.sort();
    paths
}

/// Why nothing of a file can be compared.
pub enum Unusable {
    /// This crate refuses its curves or its training sample.
    Refused(MetricError),
    /// Not JSON, or not of the format.
    Malformed(String),
}

/// All evaluation samples of the set, with their names (`s01_tiny`, ..).
pub fn cases() -> Vec<(String, Result<Case, Unusable>)> {
    let read = |path: &PathBuf| {
        let case = reported(|| Case::read(path)).map_err(Unusable::Malformed);
        (stem(path), case.and_then(|case| case.map_err(Unusable::Refused)))
    };
    files('s').iter().map(read).collect()
}

/// All files of tests, distances and intervals, with their names (`t_wilcoxon`, ..).
pub fn tables() -> Vec<(String, Result<Value, String>)> {
    files('t').iter().map(|path| (stem(path), reported(|| parse(path)))).collect()
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

fn parse(path: &Path) -> Value {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{} is not JSON: {error}", path.display()))
}

/// The value, or the error: a record of an unknown shape is reported, and the walk continues with the next.
pub fn reported<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        format!("malformed, or of a shape this test does not know: {}", text.unwrap_or_default())
    })
}

/// Numbers; the strings `NaN` and `Infinity` become `None`. R writes a vector of length 1 as a number.
pub fn optional_numbers(values: &Value) -> Vec<Option<f64>> {
    values.as_array().map_or_else(|| vec![values.as_f64()], |values| values.iter().map(Value::as_f64).collect())
}

pub fn numbers(values: &Value) -> Vec<f64> {
    optional_numbers(values).into_iter().map(|value| value.expect("a number")).collect()
}

pub fn flags(values: &Value) -> Vec<bool> {
    numbers(values).into_iter().map(|value| value > 0.5).collect()
}

pub fn rows(values: &Value) -> Vec<usize> {
    values.as_array().unwrap().iter().map(|row| usize::try_from(row.as_u64().unwrap()).unwrap()).collect()
}

pub fn matrix(values: &Value) -> Array2<f64> {
    let rows: Vec<Vec<f64>> = values.as_array().unwrap().iter().map(numbers).collect();
    let shape = (rows.len(), rows[0].len());
    Array2::from_shape_vec(shape, rows.concat()).unwrap()
}

/// A float64 array in C order as `numpy.save` writes it (format version 1).
fn npy_matrix(path: &Path, columns: usize) -> Array2<f64> {
    let bytes = fs::read(path).unwrap();
    let header_length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let (header, data) = bytes[10..].split_at(header_length);
    let header = String::from_utf8_lossy(header);
    assert!(header.contains("'<f8'") && header.contains("'fortran_order': False"), "{header}");
    let values: Vec<f64> = data.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect();
    Array2::from_shape_vec((values.len() / columns, columns), values).unwrap()
}

/// One golden file.
pub struct Case {
    pub name: String,
    pub subsets: Vec<Subset>,
    pub derived: Value,
    pub train: Outcomes,
    outputs: Vec<Value>,
}

/// One evaluated part of a case.
pub struct Subset {
    pub name: String,
    /// An error if this crate refuses an observed time.
    pub outcomes: Result<Outcomes, MetricError>,
    pub curves: SurvivalCurves,
    /// Scores, higher = riskier; empty if the case has none.
    pub risk: Vec<f64>,
    /// Evaluation times.
    pub tau: Vec<f64>,
}

/// The result of one package on one subset.
pub struct Record<'a> {
    pub peer: &'a str,
    pub function: &'a str,
    pub args: &'a Value,
    pub censoring: &'a str,
    /// `None` where the package raised an error.
    pub value: Option<&'a Value>,
    /// Its error message in that case.
    pub error: Option<&'a str>,
}

impl Case {
    fn read(path: &Path) -> Result<Self, MetricError> {
        let file = parse(path);
        let inputs = &file["inputs"];
        let grid = numbers(&inputs["grid"]);
        let survival = match inputs["surv_npy"].as_str() {
            Some(name) => npy_matrix(&path.with_file_name(name), grid.len()),
            None => matrix(&inputs["surv"]),
        };
        let curves = SurvivalCurves::new(grid, survival)?;
        let (time, event) = (numbers(&inputs["time"]), flags(&inputs["event"]));
        let risk = inputs["risk"].as_array().map_or_else(Vec::new, |_| numbers(&inputs["risk"]));
        let subset = |(name, subset): (&String, &Value)| {
            let rows = if subset["index"].is_string() { (0..time.len()).collect() } else { rows(&subset["index"]) };
            let times = rows.iter().map(|&row| time[row]).collect();
            Subset {
                name: name.clone(),
                outcomes: Outcomes::new(times, rows.iter().map(|&row| event[row]).collect()),
                curves: curves.select(&rows),
                risk: if risk.is_empty() { vec![] } else { rows.iter().map(|&row| risk[row]).collect() },
                tau: numbers(&subset["tau"]),
            }
        };
        Ok(Self {
            name: stem(path),
            subsets: file["subsets"].as_object().expect("subsets").iter().map(subset).collect(),
            derived: file["derived"]["values"].clone(),
            train: Outcomes::new(numbers(&inputs["train_time"]), flags(&inputs["train_event"]))?,
            outputs: file["outputs"].as_array().expect("outputs").clone(),
        })
    }

    /// All records, with the subset each one is about; or the error of an invalid one.
    pub fn records(&self) -> impl Iterator<Item = Result<(&Subset, Record<'_>), String>> {
        self.outputs.iter().enumerate().map(|(place, output)| {
            let text = |key: &str| output[key].as_str();
            let missing = |key: &str| format!("record {place} (id {}) has no usable {key}", output["id"]);
            let subset = text("subset").and_then(|name| self.subsets.iter().find(|subset| subset.name == name));
            let record = Record {
                peer: text("peer").ok_or_else(|| missing("peer"))?,
                function: text("function").ok_or_else(|| missing("function"))?,
                args: &output["args"],
                censoring: text("cens").unwrap_or("none"),
                value: output.get("value"),
                error: text("error"),
            };
            Ok((subset.ok_or_else(|| missing("subset"))?, record))
        })
    }

    /// The events-first censoring curve of a record: fitted on the training sample or on the subset itself.
    pub fn censoring(&self, name: &str, outcomes: &Outcomes) -> CensoringCurve {
        let sample = match name {
            "train" => &self.train,
            "self" => outcomes,
            other => panic!("unknown censoring sample {other}"),
        };
        CensoringCurve::fit(sample, CensoringTies::EventsFirst).unwrap()
    }
}
