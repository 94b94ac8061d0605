//! `predictions.parquet`: survival curves of samples on a grid of times, the interface between training and evaluation.
//!
//! Columns: `sample_id` (or `sample`), then one column of numbers per grid time whose name is the time as the shortest
//! decimal that reads back as the same number (`0`, `0.5`, `13`); the cell is the predicted probability S(t) of no
//! event up to that time. Where events have several causes, the cell is the cumulative incidence F(t) of one of them, the
//! probability of an event of this cause up to that time, and the metadata of the file name the cause. Curves of any other
//! model can be evaluated by writing a `.csv` with the same columns.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::Path;

use fairtte_metrics::SampleId;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use crate::DataError;
use crate::cohort::{AttributeColumn, Cohort};
use crate::error::Place;
use crate::predictions::curve_columns::{Curves, check_grid, read_survival, refuse_decimal_comma};
use crate::predictions::repairs::{CurveRepairs, Rising};
use crate::predictions::values::read_attributes;
use crate::table::decimal::time_of;
use crate::table::{ColumnValues, Table, write_csv, write_parquet, write_parquet_batches};

const METADATA_KEY: &str = "fairtte.predictions";

/// What the metadata of a file say.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Metadata {
    /// The cause whose cumulative incidence the curves are; absent of survival.
    incidence_of_cause: Option<u32>,
}

impl Metadata {
    /// The entries of a file of curves of `cause`; none of survival.
    fn entries(path: &Path, cause: Option<u32>) -> Result<Vec<(&'static str, String)>, DataError> {
        let Some(cause) = cause else { return Ok(Vec::new()) };
        let text = serde_json::to_string(&Self { incidence_of_cause: Some(cause) });
        Ok(vec![(METADATA_KEY, text.map_err(|error| DataError::write(path, error.into()))?)])
    }

    /// The cause in the metadata of `table`, if there is one.
    fn cause_of(table: &Table) -> Result<Option<u32>, DataError> {
        let Some(text) = table.metadata(METADATA_KEY) else { return Ok(None) };
        let found: Self = serde_json::from_str(text).map_err(|error| DataError::damaged(table.path(), error))?;
        Ok(found.incidence_of_cause)
    }
}

/// The two names that the column of samples may have.
pub(crate) const SAMPLE: [&str; 2] = ["sample_id", "sample"];

/// Survival curves of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictionTable {
    /// The samples in the order of the file.
    pub samples: Vec<SampleId>,
    /// Times of the columns, ascending, >= 0, in the time unit of the cohort.
    pub grid: Vec<f64>,
    /// Survival `[n_samples, n_times]`, in \[0, 1\], non-increasing along a row; of the incidence of a cause 1 minus it.
    pub survival: Array2<f64>,
    /// The changes made while reading.
    pub repairs: CurveRepairs,
}

/// Writes survival curves, atomically; Parquet, or CSV or TSV by the ending of `path`. The same curves give the same bytes.
///
/// `survival` is `[n_samples, n_times]` with values in \[0, 1\]; `grid` holds `n_times` ascending times >= 0 in the
/// time unit of the cohort.
///
/// # Errors
/// [`DataError::ShapeMismatch`], [`DataError::InvalidGrid`], [`DataError::NoGrid`], [`DataError::RepeatedTime`],
/// [`DataError::UnsortedGrid`], [`DataError::InvalidSurvival`], [`DataError::UnmatchedSample`] if a sample appears
/// twice, [`DataError::Write`].
#[expect(clippy::needless_pass_by_value, reason = "a view is a reference already")]
pub fn write_predictions(
    path: &Path,
    samples: &[SampleId],
    grid: &[f64],
    survival: ArrayView2<'_, f64>,
) -> Result<(), DataError> {
    write_curves(path, samples, grid, &survival, None)
}

/// As [`write_predictions`], of the cumulative incidence of `cause`, which rises from 0; a Parquet file names the cause, and is
/// refused where survival is expected.
///
/// # Errors
/// As [`write_predictions`].
#[expect(clippy::needless_pass_by_value, reason = "a view is a reference already")]
pub fn write_incidence(
    path: &Path,
    samples: &[SampleId],
    grid: &[f64],
    incidence: ArrayView2<'_, f64>,
    cause: u32,
) -> Result<(), DataError> {
    write_curves(path, samples, grid, &incidence, Some(cause))
}

fn write_curves(
    path: &Path,
    samples: &[SampleId],
    grid: &[f64],
    curves: &ArrayView2<'_, f64>,
    cause: Option<u32>,
) -> Result<(), DataError> {
    for (what, found, expected) in
        [("rows of curves", curves.nrows(), samples.len()), ("columns of curves", curves.ncols(), grid.len())]
    {
        if found != expected {
            return Err(DataError::ShapeMismatch { what, found, expected });
        }
    }
    let names = names_of_times(path, grid)?;
    refuse_repeated(samples)?;
    require_probabilities(samples, &names, curves)?;
    let columns = columns_of(samples, &names, curves);
    let is_text = |ending: &OsStr| ["csv", "tsv"].iter().any(|text| ending.eq_ignore_ascii_case(text));
    if path.extension().is_some_and(is_text) {
        return write_csv(path, columns);
    }
    write_parquet(path, columns, &Metadata::entries(path, cause)?)
}

/// As [`write_predictions`], for curves that do not fit into memory at once: `blocks` are those of the first samples, of
/// the next ones and so on. Always Parquet, with a row group per block. With a cause the curves are its cumulative incidence,
/// as in [`write_incidence`].
///
/// # Errors
/// As [`write_predictions`], and the first error of `blocks`.
pub fn write_prediction_blocks(
    path: &Path,
    samples: &[SampleId],
    grid: &[f64],
    blocks: impl Iterator<Item = Result<Array2<f64>, DataError>>,
    cause: Option<u32>,
) -> Result<(), DataError> {
    let names = names_of_times(path, grid)?;
    refuse_repeated(samples)?;
    let metadata = Metadata::entries(path, cause)?;
    let check = |samples: &[SampleId], block: &ArrayView2<'_, f64>| require_probabilities(samples, &names, block);
    write_blocks(path, samples, &names, blocks, (&metadata, check))
}

/// Writes one row of numbers per sample, such as the features of a network: `sample_id`, then the columns `names`.
/// `blocks` are the rows of the first samples, of the next ones and so on, `[n, n_names]`. Always Parquet.
///
/// # Errors
/// [`DataError::UnmatchedSample`] if a sample appears twice, [`DataError::ShapeMismatch`] if the blocks do not fill the
/// table, [`DataError::Write`], and the first error of `blocks`.
pub fn write_feature_blocks(
    path: &Path,
    samples: &[SampleId],
    names: &[String],
    blocks: impl Iterator<Item = Result<Array2<f64>, DataError>>,
) -> Result<(), DataError> {
    refuse_repeated(samples)?;
    write_blocks(path, samples, names, blocks, (&[], |_: &[SampleId], _: &ArrayView2<'_, f64>| Ok(())))
}

fn write_blocks(
    path: &Path,
    samples: &[SampleId],
    names: &[String],
    blocks: impl Iterator<Item = Result<Array2<f64>, DataError>>,
    (metadata, check): (&[(&str, String)], impl Fn(&[SampleId], &ArrayView2<'_, f64>) -> Result<(), DataError>),
) -> Result<(), DataError> {
    let done = Cell::new(0);
    let fits = |what, found, expected| {
        if found == expected { Ok(()) } else { Err(DataError::ShapeMismatch { what, found, expected }) }
    };
    let written = blocks.map(|block| {
        let block = block?;
        let of_block = &samples[done.get()..samples.len().min(done.get() + block.nrows())];
        fits("rows of a block", block.nrows(), of_block.len())?;
        fits("columns of a block", block.ncols(), names.len())?;
        check(of_block, &block.view())?;
        done.set(done.get() + block.nrows());
        Ok(Some(columns_of(of_block, names, &block.view())))
    });
    let end = std::iter::once_with(|| fits("rows of all blocks", done.get(), samples.len()).map(|()| None));
    // Without samples no block says what the columns are.
    let no_rows = Array2::<f64>::zeros((0, names.len()));
    let columns = samples.is_empty().then(|| Ok(columns_of(samples, names, &no_rows.view())));
    let blocks = columns.into_iter().chain(written.chain(end).filter_map(Result::transpose));
    write_parquet_batches(path, blocks, metadata)
}

/// Names of the columns of these times.
fn names_of_times(path: &Path, grid: &[f64]) -> Result<Vec<String>, DataError> {
    let names: Vec<String> = grid.iter().map(f64::to_string).collect();
    check_grid(path, &names, grid)?;
    Ok(names)
}

pub(crate) fn refuse_repeated(samples: &[SampleId]) -> Result<(), DataError> {
    let mut seen = HashSet::with_capacity(samples.len());
    match samples.iter().find(|sample| !seen.insert(*sample)) {
        Some(sample) => Err(DataError::UnmatchedSample { sample: sample.to_string(), problem: "is predicted twice" }),
        None => Ok(()),
    }
}

fn require_probabilities(
    samples: &[SampleId],
    names: &[String],
    survival: &ArrayView2<'_, f64>,
) -> Result<(), DataError> {
    match survival.indexed_iter().find(|(_, value)| !is_probability(**value)) {
        Some(((row, column), value)) => Err(DataError::InvalidSurvival {
            sample: samples[row].to_string(),
            time: names[column].clone(),
            value: value.to_string(),
            place: None,
        }),
        None => Ok(()),
    }
}

fn columns_of<'a>(
    samples: &'a [SampleId],
    names: &[String],
    values: &ArrayView2<'_, f64>,
) -> Vec<(String, ColumnValues<'a>)> {
    let numbers = values.columns().into_iter().map(|values| ColumnValues::Number(values.to_vec()));
    let ids = ("sample_id".to_owned(), ColumnValues::text(samples));
    std::iter::once(ids).chain(names.iter().cloned().zip(numbers)).collect()
}

/// Reads survival curves; `rising` gives the treatment of curves that rise by more than noise.
///
/// # Errors
/// [`DataError::MissingColumn`] without `sample_id`, [`DataError::InvalidGrid`] naming a column that is not a time,
/// [`DataError::NoGrid`], [`DataError::RepeatedTime`], [`DataError::UnsortedGrid`], [`DataError::InvalidCell`] for a
/// row without sample, [`DataError::DuplicateSample`], [`DataError::NotSurvival`], [`DataError::TooManyRepairs`],
/// [`DataError::InvalidSurvival`] and [`DataError::RisingSurvival`] naming column and row, [`DataError::OtherCurves`] for a file
/// that says that its curves are the incidence of a cause, and what [`Table::read`] returns.
pub fn read_predictions(path: &Path, rising: Rising) -> Result<PredictionTable, DataError> {
    Ok(read_curves(path, Curves::Survival(rising), None, &[])?.0)
}

/// The curves of [`read_predictions`], or of [`read_incidence`] with a `cause`, and those of the `attributes` that the file has as
/// columns beside them.
///
/// # Errors
/// Those of the two, and of attributes [`DataError::EmptyColumn`] and [`DataError::InvalidCell`] for one that mixes numbers and text.
pub fn read_predictions_with_attributes(
    path: &Path,
    rising: Rising,
    cause: Option<u32>,
    attributes: &[&str],
) -> Result<(PredictionTable, Vec<AttributeColumn>), DataError> {
    read_curves(path, cause.map_or(Curves::Survival(rising), |_| Curves::Incidence), cause, attributes)
}

/// Reads a table of the cumulative incidence of `cause`, which rises from 0; kept is 1 minus it, the probability of not having
/// had this cause.
///
/// # Errors
/// Those of [`read_predictions`], but for curves: [`DataError::NotIncidence`], [`DataError::InvalidIncidence`] and
/// [`DataError::FallingIncidence`]; [`DataError::OtherCurves`] for a file that says that its curves are those of another cause.
pub fn read_incidence(path: &Path, cause: u32) -> Result<PredictionTable, DataError> {
    Ok(read_curves(path, Curves::Incidence, Some(cause), &[])?.0)
}

fn read_curves(
    path: &Path,
    curves: Curves,
    cause: Option<u32>,
    attributes: &[&str],
) -> Result<(PredictionTable, Vec<AttributeColumn>), DataError> {
    let table = Table::read(path)?;
    if let Some(found) = Metadata::cause_of(&table)?
        && cause != Some(found)
    {
        let expected = cause.map_or_else(
            || "survival, which what was asked for needs".to_owned(),
            |cause| format!("that of cause {cause}"),
        );
        return Err(DataError::OtherCurves { path: path.to_owned(), found, expected });
    }
    let id = either_column(&table, SAMPLE)?.unwrap_or(SAMPLE[0]);
    let samples = read_samples(&table, id)?;
    let attributes: Vec<&str> = attributes.iter().copied().filter(|name| *name != id && table.has(name)).collect();
    let columns = read_attributes(&table, &attributes, &[], &samples)?;
    let is_time = |name: &&str| *name != id && !attributes.contains(name);
    let names: Vec<String> = table.names().into_iter().filter(is_time).map(str::to_owned).collect();
    refuse_decimal_comma(path, names.iter().map(String::as_str))?;
    let parse = |name: &String| {
        let problem = "its name is no number";
        time_of(name).ok_or_else(|| DataError::InvalidGrid { column: name.clone(), path: path.to_owned(), problem })
    };
    let grid = names.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    check_grid(path, &names, &grid)?;
    let (survival, repairs) = read_survival(&table, &samples, &names, &grid, curves)?;
    Ok((PredictionTable { samples, grid, survival, repairs }, columns))
}

/// For every sample of `cohort` at `rows`, the row of its prediction. Other samples of the cohort may be predicted too.
///
/// # Errors
/// [`DataError::UnmatchedSample`] naming the first evaluated sample without a prediction, or the first prediction of a
/// sample that is not in `cohort` at all.
pub fn match_predictions(cohort: &Cohort, rows: &[usize], predicted: &[SampleId]) -> Result<Vec<usize>, DataError> {
    let stranger = "is predicted but is not in the cohort";
    match_samples(cohort, rows, predicted, stranger, "has no prediction, expected one for every evaluated sample")
}

/// For every sample of `cohort`, the row of its features.
///
/// # Errors
/// [`DataError::UnmatchedSample`] naming the first sample without features, or the first with features that is not in
/// `cohort`.
pub fn match_features(cohort: &Cohort, described: &[SampleId]) -> Result<Vec<usize>, DataError> {
    let (stranger, missing) = ("has features but is not in the cohort", "has no row of features");
    match_samples(cohort, &cohort.all_rows(), described, stranger, missing)
}

fn match_samples(
    cohort: &Cohort,
    rows: &[usize],
    found: &[SampleId],
    stranger: &'static str,
    missing: &'static str,
) -> Result<Vec<usize>, DataError> {
    let unmatched = |sample: &SampleId, problem| DataError::UnmatchedSample { sample: sample.to_string(), problem };
    let known: HashSet<&SampleId> = cohort.samples.iter().map(|sample| &sample.sample_id).collect();
    if let Some(sample) = found.iter().find(|id| !known.contains(id)) {
        return Err(unmatched(sample, stranger));
    }
    let row_of: HashMap<&SampleId, usize> = found.iter().enumerate().map(|(row, id)| (id, row)).collect();
    let find = |row: &usize| {
        let id = &cohort.samples[*row].sample_id;
        row_of.get(id).copied().ok_or_else(|| unmatched(id, missing))
    };
    rows.iter().map(find).collect()
}

/// The one of two names that is a column of `table`.
///
/// # Errors
/// [`DataError::AmbiguousColumn`] if both are.
pub(crate) fn either_column(table: &Table, names: [&'static str; 2]) -> Result<Option<&'static str>, DataError> {
    let [first, second] = names;
    match names.map(|name| table.has(name)) {
        [true, true] => Err(DataError::AmbiguousColumn { first, second, path: table.path().to_owned() }),
        [true, false] => Ok(Some(first)),
        [false, true] => Ok(Some(second)),
        [false, false] => Ok(None),
    }
}

/// The samples in column `id`: present in every row and unique.
pub(crate) fn read_samples(table: &Table, id: &str) -> Result<Vec<SampleId>, DataError> {
    let cells = table.text(id)?;
    let mut first_rows = HashMap::with_capacity(cells.len());
    let mut samples = Vec::with_capacity(cells.len());
    for (index, cell) in cells.into_iter().enumerate() {
        let place: Place = table.place(index);
        let Some(sample) = cell else {
            return Err(DataError::NoSampleName { place });
        };
        if let Some(first_row) = first_rows.insert(sample.clone(), place.row) {
            return Err(DataError::DuplicateSample { sample, place, first_row });
        }
        samples.push(SampleId::new(sample));
    }
    Ok(samples)
}

fn is_probability(value: f64) -> bool {
    (0.0..=1.0).contains(&value)
}
