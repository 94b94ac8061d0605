//! Tables read as text by column name, so that a cell that cannot be parsed can be named by column, row and value.
//!
//! CSV and TSV (plain or gzipped) and Parquet, chosen by the ending of the name. Cells are trimmed; an empty cell is
//! missing. Numbers in Parquet columns become their shortest decimal that reads back as the same number.

pub(crate) mod bytes;
pub(crate) mod cells;
pub(crate) mod decimal;
mod guard;
mod pages;
pub(crate) mod repeats;
mod separator;

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::{Path, PathBuf};

use polars::prelude::{
    Column, CsvParseOptions, CsvReadOptions, DataFrame, DataType, IntoColumn as _, KeyValueMetadata, NamedFrom as _,
    ParquetCompression, ParquetReader, ParquetWriter, SerReader as _, SerWriter as _, Series,
};
use rayon::prelude::*;

pub use self::cells::is_missing;
use self::guard::{guarded, require_threads};
use crate::error::Place;
use crate::nearest::nearest;
use crate::{DataError, write_atomically};

/// A table in memory: named columns of equal length.
#[derive(Clone, Debug)]
pub struct Table {
    path: PathBuf,
    frame: DataFrame,
    first_row: usize,
    metadata: Vec<(String, String)>,
}

/// A column to be written: its name and its values.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValues<'a> {
    /// Text; `None` becomes an empty cell.
    Text(Vec<Option<String>>),
    /// Borrowed text; `None` becomes an empty cell.
    Borrowed(Vec<Option<&'a str>>),
    /// Numbers.
    Number(Vec<f64>),
    /// Numbers; `None` becomes an empty cell.
    OptionalNumber(Vec<Option<f64>>),
    /// Whole numbers.
    Integer(Vec<i64>),
    /// Whole numbers; `None` becomes an empty cell.
    OptionalInteger(Vec<Option<i64>>),
}

impl ColumnValues<'_> {
    /// Text without missing cells.
    pub fn text<T: ToString>(values: impl IntoIterator<Item = T>) -> Self {
        Self::Text(values.into_iter().map(|value| Some(value.to_string())).collect())
    }

    fn into_column(self, name: &str) -> Column {
        let series = match self {
            Self::Text(values) => Series::new(name.into(), values),
            Self::Borrowed(values) => Series::new(name.into(), values),
            Self::Number(values) => Series::new(name.into(), values),
            Self::OptionalNumber(values) => Series::new(name.into(), values),
            Self::Integer(values) => Series::new(name.into(), values),
            Self::OptionalInteger(values) => Series::new(name.into(), values),
        };
        series.into_column()
    }
}

/// The format given by the ending of a name.
enum Format {
    Separated { separator: u8, gzipped: bool },
    Parquet,
}

impl Format {
    fn of(path: &Path) -> Result<Self, DataError> {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let stem = name.strip_suffix(".gz").unwrap_or(&name);
        let gzipped = stem.len() < name.len();
        match stem.rsplit_once('.').map(|(_, ending)| ending) {
            Some("csv") => Ok(Self::Separated { separator: b',', gzipped }),
            Some("tsv") => Ok(Self::Separated { separator: b'\t', gzipped }),
            Some("parquet") if !gzipped => Ok(Self::Parquet),
            _ => Err(DataError::UnknownTableFormat { path: path.to_owned() }),
        }
    }
}

impl Table {
    /// Reads the table at `path`.
    ///
    /// # Errors
    /// [`DataError::Read`] if the file cannot be read, [`DataError::UnknownTableFormat`] for another ending,
    /// [`DataError::InvalidTable`] if it cannot be parsed (also when a row has a cell beyond the header or fewer cells, for a
    /// misplaced quotation mark, and for gzipped bytes that unpack to an implausible size),
    /// [`DataError::DuplicateColumn`] if a name appears twice in the header, [`DataError::ForkedReader`] in a process that was
    /// forked from one that has read tables.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        match Format::of(path)? {
            Format::Parquet => Self::read_parquet(path),
            Format::Separated { .. } => {
                Self::parse(path, std::fs::read(path).map_err(|source| DataError::read(path, source))?)
            }
        }
    }

    /// Parses the bytes of a CSV or TSV file, plain or gzipped as the ending of `path` says; the file itself is not
    /// read.
    ///
    /// # Errors
    /// Those of [`read`](Self::read); [`DataError::UnknownTableFormat`] also for Parquet.
    pub fn parse(path: &Path, bytes: Vec<u8>) -> Result<Self, DataError> {
        let Format::Separated { separator, gzipped } = Format::of(path)? else {
            return Err(DataError::UnknownTableFormat { path: path.to_owned() });
        };
        let bytes = if gzipped { bytes::unpack(path, &bytes)? } else { bytes };
        Self::parse_text(path, bytes, separator)
    }

    /// Like [`read`](Self::read), but bytes that are not UTF-8, as in remarks of old exports, become U+FFFD.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub(crate) fn read_lossy(path: &Path) -> Result<Self, DataError> {
        let Format::Separated { separator, gzipped } = Format::of(path)? else { return Self::read(path) };
        let bytes = std::fs::read(path).map_err(|source| DataError::read(path, source))?;
        let bytes = if gzipped { bytes::unpack(path, &bytes)? } else { bytes };
        Self::parse_text(path, bytes::lossy(bytes), separator)
    }

    fn parse_text(path: &Path, bytes: Vec<u8>, separator: u8) -> Result<Self, DataError> {
        let invalid = |detail: String| DataError::invalid_table(path, detail);
        let bytes = bytes::check(path, bytes, separator)?;
        bytes::refuse_short_rows(&bytes, separator).map_err(invalid)?;
        require_threads(path)?;
        let read = |bytes: &[u8]| {
            let options = CsvReadOptions::default()
                // No inference: every cell is kept as text, so "007" remains a name.
                .with_infer_schema_length(Some(0))
                .with_parse_options(CsvParseOptions::default().with_separator(separator));
            guarded(|| options.into_reader_with_file_handle(Cursor::new(bytes)).finish())
        };
        // The reader refuses rows that are longer than the header; only then are empty cells beyond the header searched
        // for.
        let frame = match read(&bytes) {
            Ok(frame) => frame,
            Err(error) => match bytes::without_surplus_cells(&bytes, separator).map_err(invalid)? {
                Some(cleaned) => read(&cleaned).map_err(invalid)?,
                None => return Err(invalid(error)),
            },
        };
        let table = Self { path: path.to_owned(), frame, first_row: 2, metadata: Vec::new() };
        table.refuse_repeated_names()?;
        Ok(table)
    }

    fn read_parquet(path: &Path) -> Result<Self, DataError> {
        require_threads(path)?;
        let file = File::open(path).map_err(|source| DataError::read(path, source))?;
        let mut reader = ParquetReader::new(file);
        let invalid = |detail| DataError::invalid_table(path, detail);
        let footer = guarded(|| reader.get_metadata().cloned()).map_err(invalid)?;
        let mut pages = BufReader::new(File::open(path).map_err(|source| DataError::read(path, source))?);
        for rows in &footer.row_groups {
            for column in rows.parquet_columns() {
                let range = guarded(|| Ok(column.byte_range())).map_err(invalid)?;
                pages::check_counts(&mut pages, (range.start, range.end), column.num_values()).map_err(invalid)?;
            }
        }
        let entries = footer.key_value_metadata().clone().unwrap_or_default();
        let metadata = entries.into_iter().filter_map(|entry| Some((entry.key, entry.value?))).collect();
        // Fails for the same reasons as the reader, whose message is the better one.
        let schema = guarded(|| reader.schema()).ok();
        let frame = guarded(|| reader.finish()).map_err(|detail| {
            let mut columns = schema.iter().flat_map(|schema| schema.iter());
            let named = columns.find_map(|(name, field)| unread_type(name, &format!("{:?}", field.dtype())));
            DataError::invalid_table(path, named.unwrap_or(detail))
        })?;
        Ok(Self { path: path.to_owned(), frame, first_row: 1, metadata })
    }

    /// The reader renames the second `time` to `time_duplicated_0`; only the user knows which of the two is meant.
    fn refuse_repeated_names(&self) -> Result<(), DataError> {
        let names: HashSet<&str> = self.names().into_iter().collect();
        for name in self.names() {
            // Separators at the end of the header make columns without names, of which there may be several.
            if let Some(column) = name.strip_suffix("_duplicated_0")
                && !column.is_empty()
                && names.contains(column)
            {
                return Err(DataError::DuplicateColumn { column: column.to_owned(), path: self.path.clone() });
            }
        }
        Ok(())
    }

    /// The file the table came from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of the columns, in the order of the file.
    pub fn names(&self) -> Vec<&str> {
        self.frame.columns().iter().map(|column| column.name().as_str()).collect()
    }

    /// Number of rows, without the header.
    pub fn n_rows(&self) -> usize {
        self.frame.height()
    }

    /// Whether a column of this name exists.
    pub fn has(&self, name: &str) -> bool {
        self.names().contains(&name)
    }

    /// The place (file and row) of row `index` (from 0).
    pub fn place(&self, index: usize) -> Place {
        Place { file: self.path.clone(), row: self.row(index) }
    }

    /// Row `index` (from 0) as a spreadsheet counts it: from 1, and the header of a CSV file is row 1.
    pub fn row(&self, index: usize) -> usize {
        index + self.first_row
    }

    /// Whether every cell of a row is empty, for each row. Cost: one pass over the cells.
    ///
    /// # Errors
    /// [`DataError::InvalidTable`] if a column of a Parquet file cannot be read as text.
    pub(crate) fn blank_rows(&self) -> Result<Vec<bool>, DataError> {
        let invalid = |error| DataError::invalid_table(&self.path, error);
        let mut is_blank = vec![true; self.n_rows()];
        for column in self.frame.columns() {
            let as_text = column.cast(&DataType::String).map_err(invalid)?;
            for (is_blank, cell) in is_blank.iter_mut().zip(as_text.str().map_err(invalid)?.iter()) {
                *is_blank &= cell.is_none_or(|cell| cell.trim().is_empty());
            }
        }
        Ok(is_blank)
    }

    /// The metadata text of a Parquet file under `key`.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The cells of column `name`, trimmed; an empty cell is `None`.
    ///
    /// # Errors
    /// [`DataError::MissingColumn`] with the nearest existing name.
    pub fn text(&self, name: &str) -> Result<Vec<Option<String>>, DataError> {
        let column = self.column(name)?;
        let as_text = column.cast(&DataType::String).map_err(|error| DataError::invalid_table(&self.path, error))?;
        let cells = as_text.str().map_err(|error| DataError::invalid_table(&self.path, error))?;
        let trimmed = cells.iter().map(|cell| {
            let cell = cell?.trim();
            (!cell.is_empty()).then(|| cell.to_owned())
        });
        Ok(trimmed.collect())
    }

    /// As [`text`](Self::text); a cell that [`is_missing`] is `None` as well.
    pub(crate) fn text_without(&self, name: &str, missing: &[String]) -> Result<Vec<Option<String>>, DataError> {
        let mut cells = self.text(name)?;
        for cell in &mut cells {
            cell.take_if(|cell| is_missing(missing, cell));
        }
        Ok(cells)
    }

    /// The cells of column `name` as numbers; `Err` holds the text of a cell that is not a number (empty if missing).
    ///
    /// # Errors
    /// [`DataError::MissingColumn`] with the nearest existing name.
    pub fn numbers(&self, name: &str) -> Result<Vec<Result<f64, String>>, DataError> {
        let column = self.column(name)?;
        if column.dtype().is_primitive_numeric() {
            let invalid = |error| DataError::invalid_table(&self.path, error);
            let as_f64 = column.cast(&DataType::Float64).map_err(invalid)?;
            let values = as_f64.f64().map_err(invalid)?;
            return Ok(values.iter().map(|value| value.ok_or_else(String::new)).collect());
        }
        let parse = |cell: Option<String>| {
            let cell = cell.unwrap_or_default();
            cell.parse::<f64>().map_err(|_| cell)
        };
        Ok(self.text(name)?.into_iter().map(parse).collect())
    }

    fn column(&self, name: &str) -> Result<&Column, DataError> {
        self.frame.column(name).map_err(|_| DataError::MissingColumn {
            column: name.to_owned(),
            path: self.path.clone(),
            nearest: nearest(name, self.names()),
        })
    }
}

/// The sentence about column `name` if its cells, of the Arrow type `kind`, are neither text nor numbers that are read.
fn unread_type(name: &str, kind: &str) -> Option<String> {
    const READ: [&str; 15] = [
        "Null",
        "Boolean",
        "Int8",
        "Int16",
        "Int32",
        "Int64",
        "UInt8",
        "UInt16",
        "UInt32",
        "UInt64",
        "Float32",
        "Float64",
        "Utf8",
        "LargeUtf8",
        "Utf8View",
    ];
    let expected = "text, true or false, whole numbers of 8 to 64 bits, or numbers of 32 or 64 bits";
    let kind = kind.split('(').next().unwrap_or(kind); // without what the type is made of
    (!READ.contains(&kind)).then(|| format!("column \"{name}\" has the type {kind}, expected {expected}"))
}

/// Writes `columns` as Parquet, atomically; `metadata` is kept in the footer of the file.
///
/// The same columns give the same bytes.
///
/// # Errors
/// [`DataError::Write`] naming `path`.
pub fn write_parquet(
    path: &Path,
    columns: Vec<(String, ColumnValues<'_>)>,
    metadata: &[(&str, String)],
) -> Result<(), DataError> {
    let mut frame = to_frame(path, columns)?;
    write_atomically(path, |writer| {
        ParquetWriter::new(writer)
            .with_compression(ParquetCompression::Zstd(None))
            .with_key_value_metadata(entries_of(metadata))
            .finish(&mut frame)
            .map_err(std::io::Error::other)
    })?;
    Ok(())
}

fn entries_of(metadata: &[(&str, String)]) -> Option<KeyValueMetadata> {
    let entries: Vec<_> = metadata.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    (!entries.is_empty()).then(|| KeyValueMetadata::from_static(entries))
}

/// Writes the columns of each of `batches` as row groups of one Parquet file with Zstandard compression, atomically; every
/// batch has the same columns, with `metadata` of the file. Memory: one batch.
///
/// # Errors
/// [`DataError::Write`] naming `path`, and the first error of `batches`.
pub fn write_parquet_batches<'a>(
    path: &Path,
    mut batches: impl Iterator<Item = Result<Vec<(String, ColumnValues<'a>)>, DataError>>,
    metadata: &[(&str, String)],
) -> Result<(), DataError> {
    let Some(first) = batches.next() else { return write_parquet(path, Vec::new(), metadata) };
    let first = to_frame(path, first?)?;
    write_atomically(path, |writer| {
        let writer = ParquetWriter::new(writer)
            .with_compression(ParquetCompression::Zstd(None))
            .with_key_value_metadata(entries_of(metadata));
        let mut writer = writer.batched(first.schema()).map_err(std::io::Error::other)?;
        writer.write_batch(&first).map_err(std::io::Error::other)?;
        for batch in batches {
            let frame = batch.and_then(|columns| to_frame(path, columns)).map_err(std::io::Error::other)?;
            writer.write_batch(&frame).map_err(std::io::Error::other)?;
        }
        writer.finish().map_err(std::io::Error::other)
    })?;
    Ok(())
}

/// Writes `columns` as CSV (or TSV, by the ending of `path`), atomically.
///
/// # Errors
/// [`DataError::Write`] naming `path`.
pub fn write_csv(path: &Path, columns: Vec<(String, ColumnValues<'_>)>) -> Result<(), DataError> {
    let mut frame = to_frame(path, columns)?;
    let separator =
        if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("tsv")) { b'\t' } else { b',' };
    write_atomically(path, |writer| {
        let writer = polars::prelude::CsvWriter::new(writer).with_separator(separator);
        let mut writer = writer;
        writer.finish(&mut frame).map_err(std::io::Error::other)
    })
}

/// The text of [`write_csv`], separated by commas.
///
/// # Errors
/// [`DataError`] if the columns differ in length.
pub fn csv_text(columns: Vec<(String, ColumnValues<'_>)>) -> Result<String, DataError> {
    let path = Path::new("table");
    let mut frame = to_frame(path, columns)?;
    let mut bytes = Vec::new();
    let written = polars::prelude::CsvWriter::new(&mut bytes).finish(&mut frame);
    written.map_err(|error| DataError::write(path, std::io::Error::other(error)))?;
    String::from_utf8(bytes).map_err(|error| DataError::write(path, std::io::Error::other(error)))
}

fn to_frame(path: &Path, columns: Vec<(String, ColumnValues<'_>)>) -> Result<DataFrame, DataError> {
    let columns = columns.into_par_iter().map(|(name, values)| values.into_column(&name)).collect();
    DataFrame::new_infer_height(columns).map_err(|error| DataError::write(path, std::io::Error::other(error)))
}
