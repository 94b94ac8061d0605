//! Chosen columns of a hospital's CSV table as text, found by name, independent of case, order and line ends.
//!
//! The file is unpacked and split as a stream, and only the cells of the requested columns are kept, end to end in one
//! text per column: of sixteen columns of half a million admissions, five are needed. Cells stay text until an adapter
//! reads them, so that an error can name file, column, row and value of an invalid cell. Quotes follow RFC 4180; a
//! row with fewer cells than the header, as a download that was cut leaves one, is refused; a line without any text is
//! skipped. Whether a file is gzipped is recognised by its first bytes, not by its name; whether its lines end by `\r`
//! alone, by the end of the header.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::DataError;
use crate::error::Place;
use crate::nearest::nearest;

/// A word of eight bytes of 1.
const ONES: u64 = u64::from_ne_bytes([1; 8]);
/// The highest bit of each of eight bytes.
const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);

/// Replaces the position of a cell that is not kept.
const SKIPPED: usize = usize::MAX;

/// Bytes unpacked at once.
const CHUNK: usize = 1 << 17;

/// A column to be read: its names in the releases, the usual one first.
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
    texts: Vec<TextColumn>,
    /// The position in `texts` of every requested column; `None` if it is absent.
    found: Vec<Option<usize>>,
}

/// The cells of one column, end to end.
#[derive(Clone, Debug)]
struct TextColumn {
    name: String,
    text: String,
    /// Where each cell ends.
    ends: Vec<u32>,
}

impl Columns {
    /// Reads `wanted` from the comma-separated table at `path`, gzipped or not.
    ///
    /// # Errors
    /// [`DataError::Read`], [`DataError::InvalidTable`], [`DataError::MissingColumn`], [`DataError::DuplicateColumn`].
    pub(crate) fn read(path: &Path, wanted: &[WantedColumn]) -> Result<Self, DataError> {
        let read_error = |source| DataError::read(path, source);
        let mut file = File::open(path).map_err(read_error)?;
        let mut start = Vec::new();
        file.by_ref().take(2).read_to_end(&mut start).map_err(read_error)?;
        let is_gzipped = start == [0x1f, 0x8b];
        let whole = start.as_slice().chain(file);
        if is_gzipped {
            Self::read_from(MultiGzDecoder::new(BufReader::with_capacity(CHUNK, whole)), path, wanted)
        } else {
            Self::read_from(whole, path, wanted)
        }
    }

    fn read_from(mut source: impl Read, path: &Path, wanted: &[WantedColumn]) -> Result<Self, DataError> {
        let mut splitter = Splitter::new(path, wanted);
        let mut chunk = vec![0; CHUNK];
        loop {
            match source.read(&mut chunk) {
                Ok(0) => return splitter.finish(),
                Ok(n) => splitter.take(&chunk[..n])?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(DataError::read(path, error)),
            }
        }
    }

    /// Number of lines below the header, also those without any cell.
    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Whether no chosen column has a cell in row `index`: a blank line.
    pub(crate) fn is_blank(&self, index: usize) -> bool {
        (0..self.found.len()).all(|position| self.cell(position, index).is_none())
    }

    /// The cell of the requested column `position` in row `index` (from 0), trimmed; `None` if empty or absent.
    pub(crate) fn cell(&self, position: usize, index: usize) -> Option<&str> {
        let column = self.column(position)?;
        let start = index.checked_sub(1).map_or(0, |before| column.ends[before] as usize);
        let cell = column.text.get(start..column.ends[index] as usize)?;
        let is_bare = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_graphic);
        if is_bare(cell.as_bytes().first()) && is_bare(cell.as_bytes().last()) {
            // Fast path for nearly every cell: no lookup of spaces beyond ASCII is needed.
            return Some(cell);
        }
        let cell = cell.trim();
        (!cell.is_empty()).then_some(cell)
    }

    fn column(&self, position: usize) -> Option<&TextColumn> {
        self.found[position].map(|found| &self.texts[found])
    }

    /// Row `index` (from 0) as a spreadsheet counts it.
    pub(crate) fn row(index: usize) -> usize {
        index + 2
    }

    /// The error for a cell that does not hold what its column should; `whose` names the person or sample.
    pub(crate) fn invalid(&self, position: usize, index: usize, whose: &str, expected: &'static str) -> DataError {
        DataError::InvalidCell {
            column: self.column(position).map(|column| column.name.clone()).unwrap_or_default(),
            sample: whose.to_owned(),
            value: self.cell(position, index).map_or_else(|| "empty".to_owned(), |cell| format!("\"{cell}\"")),
            expected,
            place: Place { file: self.path.clone(), row: Self::row(index) },
        }
    }
}

/// Splits a stream of bytes into cells.
struct Splitter<'a> {
    path: &'a Path,
    wanted: &'a [WantedColumn],
    /// Cells of the header; complete once `has_header`.
    header: Vec<Vec<u8>>,
    /// Position in `cells` of every field that is kept.
    slots: Vec<usize>,
    has_header: bool,
    /// For every wanted column its position in `cells`.
    found: Vec<Option<usize>>,
    cells: Vec<(Vec<u8>, Vec<u32>)>,
    n_rows: usize,
    /// Number of the field that is being read, from 0.
    field: usize,
    state: State,
    record: Record,
    /// How many `\r` in a row the header ends with so far.
    n_returns: usize,
    /// Whether `\r` alone ends a line, as on old Macs.
    is_by_return: bool,
}

/// What was seen of the current record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Record {
    Nothing,
    /// Separators, quotes and spaces.
    Blank,
    Text,
}

/// The place of the next byte in a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Plain,
    Quoted,
    /// After a quote inside a quoted field: its end, or the first of two quotes.
    QuoteInQuoted,
}

impl<'a> Splitter<'a> {
    fn new(path: &'a Path, wanted: &'a [WantedColumn]) -> Self {
        Self {
            path,
            wanted,
            header: vec![Vec::new()],
            slots: Vec::new(),
            has_header: false,
            found: Vec::new(),
            cells: Vec::new(),
            n_rows: 0,
            field: 0,
            state: State::Start,
            record: Record::Nothing,
            n_returns: 0,
            is_by_return: false,
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        let mut rest = if self.has_header { bytes } else { self.take_header(bytes)? };
        while let Some(&byte) = rest.first() {
            self.record = self.record.max(Record::Blank);
            match (self.state, byte) {
                (State::Quoted, _) => {
                    let end = rest.iter().position(|&b| b == b'"').unwrap_or(rest.len());
                    self.push(&rest[..end])?;
                    if end < rest.len() {
                        self.state = State::QuoteInQuoted;
                    }
                    rest = rest.get(end + 1..).unwrap_or_default();
                }
                (State::Start, b'"') => {
                    self.state = State::Quoted;
                    rest = &rest[1..];
                }
                (State::QuoteInQuoted, b'"') => {
                    self.push(b"\"")?;
                    self.state = State::Quoted;
                    rest = &rest[1..];
                }
                _ => {
                    let end = self.plain_end(rest);
                    self.push(&rest[..end])?;
                    self.state = State::Plain;
                    match rest.get(end) {
                        None => {}
                        Some(b',') => self.end_field()?,
                        Some(_) => self.end_record()?,
                    }
                    rest = rest.get(end + 1..).unwrap_or_default();
                }
            }
        }
        Ok(())
    }

    /// Consumes bytes up to the end of the header and returns the rest.
    fn take_header<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], DataError> {
        for (i, &byte) in bytes.iter().enumerate() {
            if self.n_returns > 0 && !matches!(byte, b'\r' | b'\n') {
                self.is_by_return = true;
                for _ in 0..self.n_returns {
                    self.end_record()?;
                }
                return Ok(&bytes[i..]);
            }
            self.record = self.record.max(Record::Blank);
            match (self.state, byte) {
                (State::Quoted, b'"') => self.state = State::QuoteInQuoted,
                (State::Quoted, _) => self.push(&[byte])?,
                (State::Start, b'"') => self.state = State::Quoted,
                (State::QuoteInQuoted, b'"') => {
                    self.push(b"\"")?;
                    self.state = State::Quoted;
                }
                (_, b',') => self.end_field()?,
                (_, b'\n') => {
                    self.end_record()?;
                    return Ok(&bytes[i + 1..]);
                }
                (_, b'\r') => self.n_returns += 1,
                _ => {
                    self.push(&[byte])?;
                    self.state = State::Plain;
                }
            }
        }
        Ok(&[])
    }

    /// Number of bytes before the next comma or end of line.
    #[inline]
    fn plain_end(&self, bytes: &[u8]) -> usize {
        if self.is_by_return {
            return bytes.iter().position(|b| matches!(b, b',' | b'\r' | b'\n')).unwrap_or(bytes.len());
        }
        // The lowest high bit of the result marks the first zero byte; above it others may be marked wrongly.
        let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
        let (words, tail) = bytes.as_chunks::<8>();
        for (i, word) in words.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            let found = zeros(word ^ (ONES * u64::from(b','))) | zeros(word ^ (ONES * u64::from(b'\n')));
            if found != 0 {
                return 8 * i + found.trailing_zeros() as usize / 8;
            }
        }
        let is_end = |b: &u8| matches!(b, b',' | b'\n');
        tail.iter().position(is_end).map_or(bytes.len(), |end| bytes.len() - tail.len() + end)
    }

    /// Adds `bytes` to the current cell.
    #[inline]
    fn push(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        if self.record != Record::Text && !bytes.trim_ascii().is_empty() {
            self.record = Record::Text;
        }
        match self.slots.get(self.field) {
            Some(&SKIPPED) => {}
            Some(&slot) => self.cells[slot].0.extend_from_slice(bytes),
            None if !self.has_header => self.header[self.field].extend_from_slice(bytes),
            None if bytes.trim_ascii().is_empty() => {}
            None => {
                let (row, n) = (Columns::row(self.n_rows), self.slots.len());
                return Err(self.invalid(format!("row {row} has more cells than the {n} of the header")));
            }
        }
        Ok(())
    }

    #[inline]
    fn end_field(&mut self) -> Result<(), DataError> {
        self.state = State::Start;
        match self.slots.get(self.field) {
            Some(&SKIPPED) => {}
            Some(&slot) => {
                let (text, ends) = &mut self.cells[slot];
                let end = u32::try_from(text.len());
                ends.push(end.map_err(|_| DataError::invalid_table(self.path, "a column has more than 4 GB"))?);
            }
            None if !self.has_header => self.header.push(Vec::new()),
            None => {}
        }
        self.field += 1;
        Ok(())
    }

    fn end_record(&mut self) -> Result<(), DataError> {
        if self.has_header {
            self.refuse_short_row()?;
            let n_fields = self.slots.len().max(self.field + 1);
            while self.field < n_fields {
                self.end_field()?;
            }
            self.n_rows += 1;
        } else {
            self.end_header()?;
        }
        (self.field, self.state, self.record) = (0, State::Start, Record::Nothing);
        Ok(())
    }

    /// Refuses a record with text that ends before the last name of the header.
    fn refuse_short_row(&self) -> Result<(), DataError> {
        let n_names = self.header.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1);
        let n_cells = self.field + 1;
        if self.record != Record::Text || n_cells >= n_names {
            return Ok(());
        }
        let (row, noun) = (Columns::row(self.n_rows), if n_cells == 1 { "cell" } else { "cells" });
        Err(self.invalid(format!("row {row} has {n_cells} {noun}, expected {n_names} as in the header")))
    }

    fn end_header(&mut self) -> Result<(), DataError> {
        let cells = self.header.iter().enumerate().map(|(i, cell)| {
            let cell = cell.strip_prefix(b"\xef\xbb\xbf").filter(|_| i == 0).unwrap_or(cell);
            // A byte order mark hides the quotes behind it.
            String::from_utf8_lossy(cell).trim().trim_matches('"').to_owned()
        });
        let header: Vec<String> = cells.collect();
        if header.iter().all(String::is_empty) {
            return Err(self.invalid("the first line holds no names of columns".to_owned()));
        }
        let mut slots = vec![SKIPPED; header.len()];
        for wanted in self.wanted {
            let position = find_column(self.path, &header, wanted)?;
            self.found.push(position.map(|position| {
                let next = self.cells.len();
                if slots[position] == SKIPPED {
                    slots[position] = next;
                    self.cells.push((Vec::new(), Vec::new()));
                }
                slots[position]
            }));
        }
        self.header = header.into_iter().map(String::into_bytes).collect();
        (self.slots, self.has_header) = (slots, true);
        Ok(())
    }

    fn finish(mut self) -> Result<Columns, DataError> {
        if self.state == State::Quoted {
            let row = if self.has_header { Columns::row(self.n_rows) } else { 1 };
            return Err(self.invalid(format!("a quote opened in row {row} is never closed")));
        }
        if self.record != Record::Nothing {
            self.end_record()?;
        }
        if !self.has_header {
            return Err(self.invalid("it is empty".to_owned()));
        }
        let names: Vec<String> = self.header.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let name =
            |slot: usize| self.slots.iter().position(|s| *s == slot).map(|i| names[i].clone()).unwrap_or_default();
        let mut texts = Vec::with_capacity(self.cells.len());
        for (slot, (text, ends)) in std::mem::take(&mut self.cells).into_iter().enumerate() {
            let text = String::from_utf8(text).map_err(|error| {
                let at = error.utf8_error().valid_up_to();
                let row = Columns::row(ends.partition_point(|end| (*end as usize) <= at));
                self.invalid(format!("{} in row {row} is no UTF-8 text", name(slot)))
            })?;
            texts.push(TextColumn { name: name(slot), text, ends });
        }
        Ok(Columns { path: self.path.to_owned(), n_rows: self.n_rows, texts, found: self.found })
    }

    fn invalid(&self, detail: String) -> DataError {
        DataError::invalid_table(self.path, detail)
    }
}

/// Position of the wanted column in `header`.
fn find_column(path: &Path, header: &[String], wanted: &WantedColumn) -> Result<Option<usize>, DataError> {
    let is_called = |position: &usize, name: &str| header[*position].eq_ignore_ascii_case(name);
    for name in wanted.names {
        let mut positions = (0..header.len()).filter(|position| is_called(position, name));
        if let Some(position) = positions.next() {
            // Only the user knows which of the two is meant.
            return match positions.next() {
                None => Ok(Some(position)),
                Some(_) => Err(DataError::DuplicateColumn { column: (*name).to_owned(), path: path.to_owned() }),
            };
        }
    }
    if !wanted.required {
        return Ok(None);
    }
    Err(DataError::MissingColumn {
        column: wanted.names.join("\" or \""),
        path: path.to_owned(),
        nearest: nearest(wanted.names[0], header.iter().map(String::as_str)),
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests;
