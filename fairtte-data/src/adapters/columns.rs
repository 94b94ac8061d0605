//! Chosen columns of a hospital's CSV table as text, found by name whatever the case, the order and the line ends.
//!
//! The table is scanned lazily, so that columns that nobody asked for are never kept: of sixteen columns of admissions,
//! five are needed. Cells stay text until an adapter reads them, so that a cell which is not what its column promises
//! can be named by file, column, row and value. A line without any cell is no row.

use std::path::{Path, PathBuf};

use polars::prelude::{
    DataFrame, LazyCsvReader, LazyFileListReader as _, LazyFrame, PlRefPath, PolarsError, StringChunked, col,
};

use crate::DataError;
use crate::error::{Place, nearest};

/// A column to be read: the names under which releases have it, the usual first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedColumn {
    pub(crate) names: &'static [&'static str],
    pub(crate) required: bool,
}

/// A column that must be there.
pub(crate) const fn required(names: &'static [&'static str]) -> WantedColumn {
    WantedColumn { names, required: true }
}

/// A column that may be absent.
pub(crate) const fn optional(names: &'static [&'static str]) -> WantedColumn {
    WantedColumn { names, required: false }
}

/// The chosen columns of one table.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    path: PathBuf,
    n_rows: usize,
    /// In the order in which the columns were asked for.
    columns: Vec<Option<(String, StringChunked)>>,
}

impl Columns {
    /// Reads `wanted` from the comma-separated table at `path` (`.csv`, or `.csv.gz`).
    ///
    /// # Errors
    /// [`DataError::Read`], [`DataError::InvalidTable`], [`DataError::MissingColumn`], [`DataError::DuplicateColumn`].
    pub(crate) fn read(path: &Path, wanted: &[WantedColumn]) -> Result<Self, DataError> {
        // The scan would only say that it found nothing.
        drop(std::fs::File::open(path).map_err(|source| DataError::read(path, source))?);
        let invalid = |error: PolarsError| DataError::invalid_table(path, error);
        let mut scan = scan(path).map_err(invalid)?;
        let header: Vec<String> =
            scan.collect_schema().map_err(invalid)?.iter_names().map(ToString::to_string).collect();
        refuse_repeated_names(path, &header)?;
        let found = wanted.iter().map(|column| find_column(path, &header, column)).collect::<Result<Vec<_>, _>>()?;
        let mut names: Vec<&str> = found.iter().flatten().map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let chosen: Vec<_> = names.iter().map(|name| col(*name)).collect();
        let frame = scan.select(chosen).collect().map_err(invalid)?;
        Self::of_frame(path, &frame, found).map_err(invalid)
    }

    fn of_frame(path: &Path, frame: &DataFrame, found: Vec<Option<String>>) -> Result<Self, PolarsError> {
        let cells = |name: String| {
            let cells = frame.column(&name)?.str()?.rechunk().into_owned();
            Ok::<_, PolarsError>((name, cells))
        };
        let columns = found.into_iter().map(|name| name.map(cells).transpose()).collect::<Result<_, _>>()?;
        Ok(Self { path: path.to_owned(), n_rows: frame.height(), columns })
    }

    /// Number of lines below the header, also those without any cell.
    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Whether the column that was asked for at `position` is there.
    pub(crate) fn has(&self, position: usize) -> bool {
        self.columns[position].is_some()
    }

    /// Whether no chosen column has a cell in row `index`: a blank line.
    pub(crate) fn is_blank(&self, index: usize) -> bool {
        (0..self.columns.len()).all(|position| self.cell(position, index).is_none())
    }

    /// The cell of the column asked for at `position` in row `index` (from 0), trimmed; `None` if empty or absent.
    pub(crate) fn cell(&self, position: usize, index: usize) -> Option<&str> {
        let (_, cells) = self.columns[position].as_ref()?;
        let cell = cells.get(index)?.trim();
        (!cell.is_empty()).then_some(cell)
    }

    /// Row `index` (from 0) as a spreadsheet counts it.
    pub(crate) fn row(index: usize) -> usize {
        index + 2
    }

    /// That a cell is not what its column should hold; `whose` says whose cell it is.
    pub(crate) fn invalid(&self, position: usize, index: usize, whose: &str, expected: &'static str) -> DataError {
        DataError::InvalidCell {
            column: self.columns[position].as_ref().map(|(name, _)| name.clone()).unwrap_or_default(),
            sample: whose.to_owned(),
            value: self.cell(position, index).map_or_else(|| "empty".to_owned(), |cell| format!("\"{cell}\"")),
            expected,
            place: Place { file: self.path.clone(), row: Self::row(index) },
        }
    }
}

/// Every column as text; nothing is inferred, so `007` stays a name.
fn scan(path: &Path) -> Result<LazyFrame, PolarsError> {
    let frame = LazyCsvReader::new(PlRefPath::try_from_path(path)?)
        // A folder may well be called `data[1]`.
        .with_glob(false)
        .with_infer_schema_length(Some(0))
        .finish()?;
    Ok(frame)
}

fn refuse_repeated_names(path: &Path, header: &[String]) -> Result<(), DataError> {
    let repeated = header.iter().find_map(|name| {
        let column = name.strip_suffix("_duplicated_0")?;
        header.iter().any(|other| other == column).then(|| column.to_owned())
    });
    repeated.map_or(Ok(()), |column| Err(DataError::DuplicateColumn { column, path: path.to_owned() }))
}

fn find_column(path: &Path, header: &[String], wanted: &WantedColumn) -> Result<Option<String>, DataError> {
    let find = |name: &&str| header.iter().find(|column| column.trim().eq_ignore_ascii_case(name));
    match wanted.names.iter().find_map(find) {
        Some(name) => Ok(Some(name.clone())),
        None if !wanted.required => Ok(None),
        None => Err(DataError::MissingColumn {
            column: wanted.names.join("\" or \""),
            path: path.to_owned(),
            nearest: nearest(wanted.names[0], header.iter().map(String::as_str)),
        }),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use std::io::Write as _;

    use super::*;

    const RACE: [WantedColumn; 3] = [required(&["subject_id"]), required(&["race", "ethnicity"]), optional(&["dod"])];

    fn read(name: &str, text: &str) -> Result<Vec<Vec<Option<String>>>, DataError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        if name.ends_with(".gz") {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            std::fs::write(&path, encoder.finish().unwrap()).unwrap();
        } else {
            std::fs::write(&path, text).unwrap();
        }
        let columns = Columns::read(&path, &RACE)?;
        let cell = |position, index| columns.cell(position, index).map(str::to_owned);
        Ok((0..columns.n_rows()).map(|index| (0..3).map(|position| cell(position, index)).collect()).collect())
    }

    #[test]
    fn columns_are_found_by_either_name_in_any_case_order_and_packing() {
        let text = "other,Ethnicity,SUBJECT_ID\n1,\"WHITE, OTHER\",007\nx, ,8\n";
        let expected = vec![
            vec![Some("007".to_owned()), Some("WHITE, OTHER".to_owned()), None],
            vec![Some("8".to_owned()), None, None],
        ];
        for (name, text) in [
            ("plain.csv", text.to_owned()),
            ("zipped.csv.gz", text.to_owned()),
            ("windows.csv", text.replace('\n', "\r\n")),
            ("windows.csv.gz", text.replace('\n', "\r\n")),
            ("marked.csv", format!("\u{feff}{text}")),
            ("unended.csv", text.trim_end().to_owned()),
            ("quoted.csv", text.replace("Ethnicity", "\"Ethnicity\"").replace("SUBJECT_ID", "\"SUBJECT_ID\"")),
        ] {
            assert_eq!(read(name, &text).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn a_missing_column_is_named_with_all_its_names() {
        let error = read("a.csv", "subject_id,rase\n1,WHITE\n").unwrap_err().to_string();
        assert!(
            error.starts_with("column \"race\" or \"ethnicity\" is not in ") && error.ends_with("\"rase\""),
            "{error}"
        );
        let error = read("a.csv", "subject_id,race,race\n1,WHITE,x\n").unwrap_err().to_string();
        assert!(error.starts_with("column \"race\" appears more than once"), "{error}");
    }

    #[test]
    fn an_empty_damaged_or_absent_file_is_an_error_that_names_it() {
        for (name, text) in [("empty.csv", ""), ("empty.csv.gz", ""), ("wide.csv", "subject_id,race\n1,2,3\n")] {
            let error = read(name, text).unwrap_err().to_string();
            assert!(error.contains(&format!("{name} cannot be read as a table")), "{error}");
        }
        let error = Columns::read(Path::new("/nowhere/patients.csv"), &RACE).unwrap_err().to_string();
        assert!(error.starts_with("cannot read /nowhere/patients.csv"), "{error}");
    }
}
