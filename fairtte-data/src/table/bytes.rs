//! The bytes of a CSV or TSV file before they are parsed: unpacked within limits, and refused if a parser would have to
//! guess.
//!
//! After a single quotation mark a parser skips lines until the next one, and rows are lost silently. The same happens
//! with tables in UTF-16, in an old code page, or with other line ends. Quotation marks follow RFC 4180: a cell is
//! either quoted from its first to its last character, marks inside doubled, or it holds none.

use std::io::Read as _;
use std::path::Path;

use crate::DataError;
use crate::table::separator::refuse_other_separator;

/// A gzipped table may unpack to this many times its size ..
const MOST_RATIO: u64 = 100;
/// .. or to this many bytes, whichever is more. Tables of numbers and codes shrink 5 to 20 times.
const ALWAYS_ALLOWED: u64 = 256 << 20;
/// Maximum number of columns; more mean a file without line ends. Curves on a grid of days have several thousand.
const MOST_COLUMNS: usize = 100_000;

/// The text of a gzipped table, of any number of members.
///
/// # Errors
/// [`DataError::Read`] for damaged bytes, [`DataError::InvalidTable`] if it unpacks to more than 100 times its size and
/// more than 256 MiB, which a real table would not.
pub(crate) fn unpack(path: &Path, bytes: &[u8]) -> Result<Vec<u8>, DataError> {
    let most = (bytes.len() as u64).saturating_mul(MOST_RATIO).max(ALWAYS_ALLOWED);
    unpack_at_most(path, bytes, most)
}

fn unpack_at_most(path: &Path, bytes: &[u8], most: u64) -> Result<Vec<u8>, DataError> {
    let mut plain = Vec::new();
    let decoder = flate2::read::MultiGzDecoder::new(bytes);
    decoder.take(most + 1).read_to_end(&mut plain).map_err(|source| DataError::read(path, source))?;
    if plain.len() as u64 > most {
        let n = bytes.len();
        let detail = format!("its {n} bytes unpack to more than {most}, expected at most {MOST_RATIO} times as many");
        return Err(DataError::invalid_table(path, detail));
    }
    Ok(plain)
}

/// The bytes with U+FFFD for invalid UTF-8; UTF-16 is kept and refused by [`check`].
pub(crate) fn lossy(bytes: Vec<u8>) -> Vec<u8> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return bytes;
    }
    match String::from_utf8(bytes) {
        Ok(text) => text.into_bytes(),
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned().into_bytes(),
    }
}

/// Removes a byte order mark, converts line ends of `\r` alone to `\n`, and checks the rest.
///
/// # Errors
/// [`DataError::InvalidTable`] with the line for UTF-16, bytes that are not UTF-8, a zero byte, a misplaced or
/// unmatched quotation mark, columns that another character separates, and for more than 100,000 columns.
pub(crate) fn check(path: &Path, mut bytes: Vec<u8>, separator: u8) -> Result<Vec<u8>, DataError> {
    let invalid = |detail: String| DataError::invalid_table(path, detail);
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(invalid("its text is UTF-16, expected UTF-8".to_owned()));
    }
    if bytes.starts_with(&[0xef, 0xbb, 0xbf]) {
        bytes.drain(..3);
    }
    if !bytes.contains(&b'\n') {
        bytes.iter_mut().filter(|byte| **byte == b'\r').for_each(|byte| *byte = b'\n');
    }
    if let Err(error) = std::str::from_utf8(&bytes) {
        let (at, line) = (error.valid_up_to(), line(&bytes, error.valid_up_to()));
        return Err(invalid(format!("line {line} holds the byte 0x{:02x}, which is no UTF-8 text", bytes[at])));
    }
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(invalid(format!("line {} holds a zero byte, expected text", line(&bytes, at))));
    }
    refuse_other_separator(&bytes, separator).map_err(invalid)?;
    if bytes.contains(&b'"') {
        check_quotes(&bytes, separator).map_err(invalid)?;
    }
    let header = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let n_columns = header.split(|byte| *byte == separator).count();
    if n_columns > MOST_COLUMNS {
        return Err(invalid(format!("its first line has {n_columns} columns, expected at most {MOST_COLUMNS}")));
    }
    Ok(bytes)
}

/// The bytes without the empty cells that rows have beyond the header, as spreadsheets leave them; `None` if there are
/// none. The bytes were checked.
///
/// # Errors
/// The line of a cell beyond the header that is not empty.
pub(crate) fn without_surplus_cells(bytes: &[u8], separator: u8) -> Result<Option<Vec<u8>>, String> {
    let mut n_columns = None;
    let mut kept: Vec<u8> = Vec::new();
    // What was copied to `kept`; nothing as long as no row has a surplus.
    let mut copied = 0;
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    for (start, record) in records(text, separator) {
        let end = start + record.len();
        let n_cells = cell_ends(record, separator).count() + 1;
        let n_columns = *n_columns.get_or_insert(n_cells);
        if n_cells > n_columns {
            let surplus = start + cell_ends(record, separator).nth(n_columns - 1).unwrap_or_default();
            if !are_blank_cells(&bytes[surplus..end], separator) {
                let line = line(bytes, surplus);
                return Err(format!("line {line} has {n_cells} cells, expected {n_columns} as in the first line"));
            }
            kept.extend_from_slice(&bytes[copied..surplus]);
            copied = end;
        }
    }
    if copied == 0 {
        return Ok(None);
    }
    kept.extend_from_slice(&bytes[copied..]);
    Ok(Some(kept))
}

/// Refuses a row that has fewer cells than the header has names, as a download that was cut leaves one: its cells would count as missing.
/// A row without any text is none. The bytes were checked.
///
/// # Errors
/// The line of the row.
pub(crate) fn refuse_short_rows(bytes: &[u8], separator: u8) -> Result<(), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let mut records = records(text, separator);
    let header = records.next().map(|(_, header)| header).unwrap_or_default();
    // Spreadsheets leave separators after the last name.
    let is_named = |(_, cell): &(usize, &[u8])| !is_blank(cell);
    let n_columns = cells(header, separator).enumerate().filter(is_named).last().map_or(0, |(place, _)| place + 1);
    for (start, record) in records {
        let n_cells = cell_ends(record, separator).count() + 1;
        if n_cells < n_columns && !are_blank_cells(record, separator) {
            let (line, noun) = (line(bytes, start), if n_cells == 1 { "cell" } else { "cells" });
            return Err(format!(
                "line {line} has {n_cells} {noun}, expected {n_columns} as in the first line: the file may be cut; if empty cells at \
                 the end were left out, write their separators"
            ));
        }
    }
    Ok(())
}

/// The records from the header on, each with the place where it begins; a blank line above the header is not the header.
fn records(text: &str, separator: u8) -> impl Iterator<Item = (usize, &[u8])> {
    let mut next = 0;
    let all = std::iter::from_fn(move || {
        let start = next;
        if start >= text.len() {
            return None;
        }
        let end = record_end(text, start);
        next = end + 1;
        Some((start, &text.as_bytes()[start..end]))
    });
    all.skip_while(move |(_, record)| record.trim_ascii().is_empty() && !record.contains(&separator))
}

/// Where the record that begins at `start` ends: at the first line end that is not in quotation marks.
fn record_end(text: &str, start: usize) -> usize {
    let mut end = start;
    let mut is_quoted = false;
    loop {
        let line = &text[end..];
        let length = line.find('\n').unwrap_or(line.len());
        is_quoted ^= line[..length].matches('"').count() % 2 == 1;
        end += length;
        if !is_quoted || end == text.len() {
            return end;
        }
        end += 1;
    }
}

/// The positions of the separators between cells of a record.
pub(super) fn cell_ends(record: &[u8], separator: u8) -> impl Iterator<Item = usize> {
    let mut is_quoted = false;
    let ends_cell = move |(at, byte): (usize, &u8)| {
        is_quoted ^= *byte == b'"';
        (*byte == separator && !is_quoted).then_some(at)
    };
    record.iter().enumerate().filter_map(ends_cell)
}

/// Whether no cell of this piece of a record holds anything but blanks.
fn are_blank_cells(piece: &[u8], separator: u8) -> bool {
    cells(piece, separator).all(is_blank)
}

/// The cells of this piece of a record, as they are written.
fn cells(piece: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    piece.split(move |byte| {
        is_quoted ^= *byte == b'"';
        *byte == separator && !is_quoted
    })
}

/// Whether a cell holds nothing but blanks, in quotation marks or not.
fn is_blank(cell: &[u8]) -> bool {
    let cell = cell.trim_ascii();
    let inner = cell.strip_prefix(b"\"").and_then(|cell| cell.strip_suffix(b"\"")).unwrap_or(cell);
    inner.trim_ascii().is_empty()
}

fn line(bytes: &[u8], at: usize) -> usize {
    bytes[..at].split(|byte| *byte == b'\n').count()
}

/// The state of the scan in a cell.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Begin,
    Plain,
    Quoted,
    /// After a quotation mark in a quoted cell: its end, or the first of two.
    Closed,
}

fn check_quotes(bytes: &[u8], separator: u8) -> Result<(), String> {
    let mut within = Within::Begin;
    let mut line = 1;
    let mut opened = 1;
    for &byte in bytes {
        within = match (within, byte) {
            (Within::Quoted, b'"') => Within::Closed,
            (Within::Closed, b'"') | (Within::Quoted, _) => Within::Quoted,
            (Within::Begin, b'"') => {
                opened = line;
                Within::Quoted
            }
            (Within::Plain, b'"') => {
                return Err(format!(
                    "line {line} has a quotation mark inside a cell that does not begin with one, expected the whole \
                     cell in quotation marks and each mark inside doubled"
                ));
            }
            (_, b'\n') => Within::Begin,
            (_, byte) if byte == separator => Within::Begin,
            (Within::Closed, byte) if byte != b'\r' => {
                return Err(format!(
                    "line {line} has text after the closing quotation mark of a cell, expected the next cell or \
                     line, or each mark inside the cell doubled"
                ));
            }
            _ => Within::Plain,
        };
        line += usize::from(byte == b'\n');
    }
    if within == Within::Quoted {
        return Err(format!("the quotation mark that begins a cell in line {opened} is never closed"));
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;
    use crate::table::Table;

    fn parsed(bytes: &[u8]) -> Result<Table, String> {
        let table = Table::parse(Path::new("t.csv"), bytes.to_vec());
        table.map_err(|error| error.to_string())
    }

    fn refused(bytes: &[u8]) -> String {
        let message = parsed(bytes).unwrap_err();
        message.strip_prefix("t.csv cannot be read as a table: ").unwrap().to_owned()
    }

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    const TOKENS: [&str; 14] =
        ["a", "7", ",", ",", ",", "\n", "\n", "\r\n", "\r", " ", "\t", "\"", "\"b,\"", "\"\"\"x\ny\""];

    /// Cells by row, as RFC 4180 has them, for text that passes `check`.
    fn cells(text: &str) -> Vec<Vec<String>> {
        let mut rows = vec![vec![String::new()]];
        let mut is_quoted = false;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let row = rows.last_mut().unwrap();
            match character {
                '"' if is_quoted && characters.peek() == Some(&'"') => {
                    characters.next();
                    row.last_mut().unwrap().push('"');
                }
                '"' => is_quoted = !is_quoted,
                '\r' if !is_quoted && characters.peek() == Some(&'\n') => {}
                ',' if !is_quoted => row.push(String::new()),
                '\n' if !is_quoted => rows.push(vec![String::new()]),
                _ => row.last_mut().unwrap().push(character),
            }
        }
        if text.is_empty() || text.ends_with('\n') {
            rows.pop();
        }
        rows
    }

    #[test]
    fn a_byte_order_mark_and_any_line_end_are_read() {
        for text in ["\u{feff}id,x\na,1\nb,2\n", "id,x\r\na,1\r\nb,2\r\n", "id,x\ra,1\rb,2\r", "id,x\na,1\nb,2"] {
            let table = parsed(text.as_bytes()).unwrap();
            assert_eq!(table.names(), ["id", "x"], "{text:?}");
            assert_eq!(table.text("id").unwrap(), [Some("a".to_owned()), Some("b".to_owned())], "{text:?}");
            assert_eq!(table.text("x").unwrap()[1].as_deref(), Some("2"), "{text:?}");
        }
    }

    #[test]
    fn text_that_is_not_utf_8_is_refused_with_its_line() {
        assert_eq!(refused(b"\xff\xfei\0d\0"), "its text is UTF-16, expected UTF-8");
        assert_eq!(refused(b"id,x\na,M\xfcller\n"), "line 2 holds the byte 0xfc, which is no UTF-8 text");
        assert_eq!(refused(b"id,x\na,1\nb,\0\n"), "line 3 holds a zero byte, expected text");
        assert!(parsed(b"").unwrap_err().starts_with("t.csv cannot be read as a table: "));
    }

    #[test]
    fn a_quotation_mark_out_of_place_swallows_no_rows() {
        let message = refused(b"id,size\na,5\"\nb,6\nc,7\"\n");
        assert!(message.starts_with("line 2 has a quotation mark inside a cell that does not begin with one"));
        let message = refused(b"id,size\na,1\n\"b\"c,2\n");
        assert!(message.starts_with("line 3 has text after the closing quotation mark of a cell"), "{message}");
        let message = refused(b"id,size\na,\"1\nb,2\n");
        assert_eq!(message, "the quotation mark that begins a cell in line 2 is never closed");
        let table = parsed(b"id,size\r\n\"a, \"\"b\"\"\nc\",\"\"\r\nd,\"2\"\r\n").unwrap();
        assert_eq!(table.text("id").unwrap(), [Some("a, \"b\"\nc".to_owned()), Some("d".to_owned())]);
        assert_eq!(table.text("size").unwrap(), [None, Some("2".to_owned())]);
    }

    #[test]
    fn empty_cells_beyond_the_header_are_no_cells_and_others_are_refused() {
        let table = parsed(b"id,x\r\na,1,\r\n\"b, c\",\"2\n\",\"\", ,\r\nd,,,\n\ne,3").unwrap();
        assert_eq!(table.names(), ["id", "x"]);
        let text = |cells: [Option<&str>; 5]| cells.map(|cell| cell.map(str::to_owned)).to_vec();
        assert_eq!(table.text("id").unwrap(), text([Some("a"), Some("b, c"), Some("d"), None, Some("e")]));
        assert_eq!(table.text("x").unwrap(), text([Some("1"), Some("2"), None, None, Some("3")]));
        assert_eq!(table.blank_rows().unwrap(), [false, false, false, true, false]);
        assert_eq!(parsed(b"id,x,,\na,1,,\n").unwrap().text("x").unwrap(), [Some("1".to_owned())]);
        assert_eq!(refused(b"id,x\na,\"1\n\"\nb,2,,3\n"), "line 4 has 4 cells, expected 2 as in the first line");
        assert_eq!(refused(b"id,x\nb,2,\",\""), "line 2 has 3 cells, expected 2 as in the first line");
        assert_eq!(refused(b"id,x\nb,2,3"), "line 2 has 3 cells, expected 2 as in the first line");
    }

    #[test]
    fn a_row_with_too_few_cells_is_refused_and_one_without_text_is_none() {
        let advice = "the file may be cut; if empty cells at the end were left out, write their separators";
        for (table, begin) in [
            (&b"id,x,y\na,1,2\nb,1\n"[..], "line 3 has 2 cells, expected 3 as in the first line"),
            (&b"id,x,y\na,1,2\nb"[..], "line 3 has 1 cell, expected 3 as in the first line"),
            (&b"\nid,x\n\"a\n\",1\n\"b,\"\n"[..], "line 5 has 1 cell, expected 2 as in the first line"),
        ] {
            assert_eq!(refused(table), format!("{begin}: {advice}"));
        }
        let table = parsed(b"id,x,y\n\na,1,\n,\n \nb,,\n").unwrap();
        let text = |cells: [Option<&str>; 5]| cells.map(|cell| cell.map(str::to_owned)).to_vec();
        assert_eq!(table.text("id").unwrap(), text([None, Some("a"), None, None, Some("b")]));
        // Cells are missing only below a name.
        assert_eq!(parsed(b"id,x,,\na,1\n").unwrap().text("x").unwrap(), [Some("1".to_owned())]);
    }

    #[test]
    fn a_header_of_a_million_columns_is_refused() {
        let message = refused("a,".repeat(1_000_000).as_bytes());
        assert_eq!(message, "its first line has 1000001 columns, expected at most 100000");
    }

    #[test]
    fn a_gzip_bomb_is_refused_before_it_fills_the_memory() {
        let bomb = gzipped(&vec![b'0'; 1 << 20]);
        let message = unpack_at_most(Path::new("t.csv.gz"), &bomb, 100_000).unwrap_err().to_string();
        let n = bomb.len();
        assert_eq!(
            message,
            format!(
                "t.csv.gz cannot be read as a table: its {n} bytes unpack to more than 100000, expected at most 100 times as many"
            )
        );
        let two_members = [gzipped(b"id\na\n"), gzipped(b"b\n")].concat();
        assert_eq!(unpack(Path::new("t.csv.gz"), &two_members).unwrap(), b"id\na\nb\n");
        assert!(unpack(Path::new("t.csv.gz"), &two_members[..30]).is_err());
    }

    proptest! {
        #[test]
        fn text_is_read_as_rfc_4180_has_it_or_refused(
            tokens in prop::collection::vec(prop::sample::select(&TOKENS[..]), 0..30),
        ) {
            let text = tokens.concat();
            let Ok(table) = Table::parse(Path::new("t.csv"), format!("p,q\n{text}").into_bytes()) else {
                return Ok(());
            };
            let expected: Vec<Vec<String>> = cells(&text);
            let found = [table.text("p").unwrap(), table.text("q").unwrap()];
            prop_assert_eq!(found[0].len(), expected.len(), "{:?} became {:?}", text, found);
            for (row, expected) in expected.iter().enumerate() {
                let is_surplus_empty = expected.iter().skip(2).all(|cell| cell.trim().is_empty());
                prop_assert!(is_surplus_empty, "{:?} became {:?}", text, found);
                for (column, cells) in found.iter().enumerate() {
                    let expected = expected.get(column).map(|cell| cell.trim()).filter(|cell| !cell.is_empty());
                    prop_assert_eq!(cells[row].as_deref(), expected, "{:?} became {:?}", text, found);
                }
            }
        }
    }
}
