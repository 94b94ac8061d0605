//! Text tables as dbGaP distributes them: tab-separated, with `#` comments above the header.
//!
//! The header is the first line that starts with `dbGaP` (`dbGaP SubjID`, in newer releases `dbGaP_Subject_ID`); the
//! number of lines above it differs from table to table. Below it, blank lines, `#` lines and lines that repeat the
//! header (files of two consent groups joined by a user) are skipped. Trailing empty fields belong to the row; where an
//! editor removed them, they are restored, and such rows are counted. A non-empty field beyond the header is an error,
//! because it has no name. Lines end in `\n` or `\r\n`; gzip is recognised by the content. Bytes that are not UTF-8 can
//! only occur in free text and become U+FFFD.

use std::borrow::Cow;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::DataError;
use crate::nearest::nearest;

/// A dbGaP table in memory; cells are text without surrounding blanks.
///
/// ```
/// use fairtte_data::adapters::areds::DbgapTable;
///
/// let text = "# Study accession: phs000001.v3.p1\n\ndbGaP SubjID\tID2\tVISNO\n1\t9001\t00\n";
/// let table = DbgapTable::parse("fundus.txt".as_ref(), text.as_bytes())?;
/// assert_eq!(table.column("VISNO")?, 2);
/// assert_eq!(table.rows()[0].cell(1), Some("9001"));
/// assert_eq!(table.rows()[0].line, 4);
/// # Ok::<(), fairtte_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DbgapTable {
    path: PathBuf,
    names: Vec<String>,
    rows: Vec<DbgapRow>,
    n_padded: usize,
}

/// One row of a [`DbgapTable`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DbgapRow {
    /// Line in the file, counted from 1.
    pub line: usize,
    /// The line without its end.
    text: String,
    /// Start and end of each field in `text`.
    fields: Vec<(usize, usize)>,
}

impl DbgapRow {
    /// The cell in column `column` (from 0); `None` if it is empty or there is no such column.
    pub fn cell(&self, column: usize) -> Option<&str> {
        let &(start, end) = self.fields.get(column)?;
        let cell = self.text[start..end].trim();
        (!cell.is_empty()).then_some(cell)
    }
}

impl DbgapTable {
    /// Reads the table at `path`, plain or gzipped.
    ///
    /// # Errors
    /// [`DataError::Read`] if the file cannot be read or unpacked, and what [`parse`](Self::parse) returns.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let bytes = std::fs::read(path).and_then(unpacked).map_err(|source| DataError::read(path, source))?;
        Self::parse(path, &bytes)
    }

    /// Reads the table that `bytes` hold; `path` is used in messages only.
    ///
    /// # Errors
    /// [`DataError::InvalidTable`] if there is no header or a row has a field beyond the header,
    /// [`DataError::DuplicateColumn`] if a name appears twice in the header.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, DataError> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut lines = (1..).zip(text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)));
        let header = lines.find(|(_, line)| is_header(line));
        let Some((header_line, header)) = header else { return Err(no_header(path, text)) };
        let names: Vec<String> = header.split('\t').map(|name| name.trim().to_owned()).collect();
        refuse_repeated_names(path, &names)?;
        let mut rows: Vec<DbgapRow> = Vec::new();
        for (line, text) in lines {
            if text.trim().is_empty() || text.starts_with('#') || text == header {
                continue;
            }
            rows.push(row(path, line, text, (header_line, names.len()))?);
        }
        let n_padded = rows.iter().filter(|row| row.fields.len() < names.len()).count();
        Ok(Self { path: path.to_owned(), names, rows, n_padded })
    }

    /// The file the table came from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of the columns, in the order of the file.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The rows, in the order of the file.
    pub fn rows(&self) -> &[DbgapRow] {
        &self.rows
    }

    /// Number of rows with fewer fields than the header, whose last cells are taken as empty.
    pub fn n_padded(&self) -> usize {
        self.n_padded
    }

    /// Whether names and rows are the same, at whatever lines of their files.
    pub(super) fn holds_the_same(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.rows.iter().map(|row| &row.text), other.rows.iter().map(|row| &row.text));
        self.names == other.names && mine.eq(theirs)
    }

    /// Position of the column `name`, ignoring case.
    ///
    /// # Errors
    /// [`DataError::MissingColumn`] with the nearest existing name.
    pub fn column(&self, name: &str) -> Result<usize, DataError> {
        let position = self.names.iter().position(|column| column.eq_ignore_ascii_case(name));
        position.ok_or_else(|| DataError::MissingColumn {
            column: name.to_owned(),
            path: self.path.clone(),
            nearest: nearest(name, self.names.iter().map(String::as_str)),
        })
    }
}

/// The content of `bytes`, unpacked if they start like gzip; several members in a row are one text.
pub(super) fn unpacked(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut plain)?;
    Ok(plain)
}

fn is_header(line: &str) -> bool {
    line.as_bytes().get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"dbGaP"))
}

fn no_header(path: &Path, text: &str) -> DataError {
    let found = match text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        None if text.trim().is_empty() => Cow::Borrowed("the file is empty"),
        None => Cow::Borrowed("the file holds only comments"),
        Some(line) => Cow::Owned(format!("the first line without # starts with {:?}", first_characters(line))),
    };
    let expected = "expected a header that starts with \"dbGaP SubjID\" or \"dbGaP_Subject_ID\"";
    DataError::invalid_table(path, format!("{found}, {expected}"))
}

/// Enough of a line to recognise it.
fn first_characters(line: &str) -> String {
    line.chars().take(20).collect()
}

fn refuse_repeated_names(path: &Path, names: &[String]) -> Result<(), DataError> {
    for (position, name) in names.iter().enumerate() {
        let repeats = |other: &String| other.eq_ignore_ascii_case(name);
        if !name.is_empty() && names[..position].iter().any(repeats) {
            return Err(DataError::DuplicateColumn { column: name.clone(), path: path.to_owned() });
        }
    }
    Ok(())
}

/// `header`: line of the header and number of its fields.
fn row(path: &Path, line: usize, text: &str, header: (usize, usize)) -> Result<DbgapRow, DataError> {
    let mut fields = Vec::with_capacity(header.1);
    let mut start = 0;
    for field in text.split('\t') {
        fields.push((start, start + field.len()));
        start += field.len() + 1;
    }
    // A surplus tab at the end of a line adds nothing; a cell beyond the header has no name.
    while fields.len() > header.1 && fields.last().is_some_and(|&(start, end)| text[start..end].trim().is_empty()) {
        fields.pop();
    }
    if fields.len() > header.1 {
        let (n_fields, (header_line, n_names)) = (fields.len(), header);
        let detail =
            format!("row {line} has {n_fields} fields, expected {n_names} as in the header, row {header_line}");
        return Err(DataError::invalid_table(path, detail));
    }
    Ok(DbgapRow { line, text: text.to_owned(), fields })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "# Study accession: phs000001.v3.p1\n\n##\tphv1\tphv2\ndbGaP SubjID\tID2\tSMOKEDYN\n\
                        1\t0007\t\n# between\n\n2\t8\tY\n";

    fn cells(table: &DbgapTable) -> Vec<(usize, Option<&str>, Option<&str>)> {
        table.rows().iter().map(|row| (row.line, row.cell(1), row.cell(2))).collect()
    }

    fn message(text: &str) -> String {
        DbgapTable::parse(Path::new("t.txt"), text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn comments_blank_lines_and_trailing_empty_fields_are_read_as_they_are_meant() {
        for text in [TEXT.to_owned(), TEXT.replace('\n', "\r\n"), format!("\u{feff}{TEXT}"), TEXT.trim_end().to_owned()]
        {
            let table = DbgapTable::parse(Path::new("t.txt"), text.as_bytes()).unwrap();
            assert_eq!(cells(&table), [(5, Some("0007"), None), (8, Some("8"), Some("Y"))]);
            assert_eq!(table.names(), ["dbGaP SubjID", "ID2", "SMOKEDYN"]);
        }
    }

    #[test]
    fn the_header_of_newer_releases_and_a_header_repeated_below_are_known() {
        let text = "dbGaP_Subject_ID\tid2\n1\ta\ndbGaP_Subject_ID\tid2\n2\tb\t\n";
        let table = DbgapTable::parse(Path::new("t.txt"), text.as_bytes()).unwrap();
        assert_eq!(cells(&table), [(2, Some("a"), None), (4, Some("b"), None)]);
        assert_eq!(table.column("ID2").unwrap(), 1);
    }

    #[test]
    fn gzip_is_known_by_its_content_also_in_several_members() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.txt");
        let member = |text: &str| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        let (one, two) = TEXT.split_at(40);
        std::fs::write(&path, [member(one), member(two)].concat()).unwrap();
        assert_eq!(cells(&DbgapTable::read(&path).unwrap()).len(), 2);
        let packed = member(TEXT);
        std::fs::write(&path, &packed[..packed.len() - 6]).unwrap();
        let message = DbgapTable::read(&path).unwrap_err().to_string();
        assert!(message.starts_with("cannot read ") && message.contains("t.txt"), "{message}");
    }

    #[test]
    fn a_file_without_header_says_what_it_starts_with() {
        let expected = "expected a header that starts with \"dbGaP SubjID\" or \"dbGaP_Subject_ID\"";
        for (text, found) in [
            ("", "the file is empty"),
            ("\r\n \n", "the file is empty"),
            ("# only\n#comments\n", "the file holds only comments"),
            ("# x\nID2\tVISNO\n9001\t00\n", "the first line without # starts with \"ID2\\tVISNO\""),
        ] {
            assert_eq!(message(text), format!("t.txt cannot be read as a table: {found}, {expected}"));
        }
    }

    #[test]
    fn a_row_whose_last_tabs_were_removed_is_read_and_counted_and_one_that_is_too_long_is_refused() {
        let text = "# x\ndbGaP SubjID\tID2\tVISNO\tSCALE\n1\t9001\n2\t9002\t00\n3\t9003\t02\t\t \t\n4\t9004\t\t\n";
        let table = DbgapTable::parse(Path::new("t.txt"), text.as_bytes()).unwrap();
        let expected = [(3, Some("9001"), None), (4, Some("9002"), Some("00")), (5, Some("9003"), Some("02"))];
        assert_eq!(cells(&table)[..3], expected);
        assert_eq!((table.n_padded(), table.rows()[0].cell(3)), (2, None));
        assert_eq!(
            message("dbGaP SubjID\tID2\n1\t9001\t\t7\n"),
            "t.txt cannot be read as a table: row 2 has 4 fields, expected 2 as in the header, row 1"
        );
        assert_eq!(
            message("dbGaP SubjID\tID2\tid2\n"),
            "column \"id2\" appears more than once in t.txt, expected each name once"
        );
    }

    #[test]
    fn a_missing_column_names_the_nearest() {
        let table = DbgapTable::parse(Path::new("t.txt"), TEXT.as_bytes()).unwrap();
        let message = table.column("SMOKED").unwrap_err().to_string();
        assert_eq!(message, "column \"SMOKED\" is not in t.txt, nearest is \"SMOKEDYN\"");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            lines in prop::collection::vec("(dbGaP|#|\\t|\\PC|\r){0,8}", 0..6),
            tail in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let bytes = [lines.join("\n").into_bytes(), tail].concat();
            if let Ok(table) = DbgapTable::parse(Path::new("t.txt"), &bytes) {
                for row in table.rows() {
                    prop_assert_eq!(row.cell(table.names().len()), None);
                }
            }
        }
    }
}
