//! Tables of which another character separates the columns than the ending of their name says.

use super::decimal;
use crate::table::bytes::cell_ends;

/// What separates columns in files of other programs, with its name in the plural.
const SEPARATORS: [(u8, &str); 4] = [(b',', "commas"), (b';', "semicolons"), (b'\t', "tabs"), (b'|', "vertical bars")];

/// Refuses a table whose first two lines have more of another separator than of `separator`, both the same number. Commas
/// of numbers do not count (`id;0,5;1,5`).
pub(super) fn refuse_other_separator(bytes: &[u8], separator: u8) -> Result<(), String> {
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let Some(header) = lines.next() else { return Ok(()) };
    let second = lines.next();
    let count = |line: &[u8], separator: u8| cell_ends(line, separator).count();
    let n_decimal_commas = |line: &[u8], other: u8| {
        if other == b',' { 0 } else { line.split(|byte| *byte == other).filter(|cell| has_decimal_comma(cell)).count() }
    };
    let is_used = |other: u8| {
        let n = count(header, other);
        let n_own = count(header, separator);
        let n_own = if separator == b',' { n_own.saturating_sub(n_decimal_commas(header, other)) } else { n_own };
        n > n_own && second.is_none_or(|line| count(line, other) == n)
    };
    let Some(&(other, found)) = SEPARATORS.iter().find(|(other, _)| *other != separator && is_used(*other)) else {
        return Ok(());
    };
    let expected = SEPARATORS.iter().find(|(byte, _)| *byte == separator).map_or("separators", |(_, name)| *name);
    let also = if n_decimal_commas(header, other) + second.map_or(0, |line| n_decimal_commas(line, other)) > 0 {
        " and decimal points instead of decimal commas"
    } else {
        ""
    };
    let ending = match (separator, other) {
        (b',', b'\t') => ", or a name ending in .tsv",
        (b'\t', b',') => ", or a name ending in .csv",
        _ => "",
    };
    Err(format!("its columns are separated by {found}, expected {expected}{also}{ending}"))
}

/// Whether a cell is a number such as `0,5`.
fn has_decimal_comma(cell: &[u8]) -> bool {
    let cell = cell.trim_ascii();
    let cell = cell.strip_prefix(b"\"").and_then(|cell| cell.strip_suffix(b"\"")).unwrap_or(cell);
    std::str::from_utf8(cell).is_ok_and(decimal::has_decimal_comma)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn another_separator_is_named() {
        for (text, message) in [
            ("id;x\na;1\n", "its columns are separated by semicolons, expected commas"),
            (
                "id;0,5;1\na;0,9;0,8\n",
                "its columns are separated by semicolons, expected commas and decimal points instead of decimal commas",
            ),
            (
                "0,5;1,5;2,5\n1;0,8;0,7\n",
                "its columns are separated by semicolons, expected commas and decimal points instead of decimal commas",
            ),
            ("id\tx\r\na\t1\r\n", "its columns are separated by tabs, expected commas, or a name ending in .tsv"),
            ("\"id\"|\"x\"|y", "its columns are separated by vertical bars, expected commas"),
        ] {
            assert_eq!(refuse_other_separator(text.as_bytes(), b',').unwrap_err(), message);
        }
        let message = refuse_other_separator(b"id,x\na,1\n", b'\t').unwrap_err();
        assert_eq!(message, "its columns are separated by commas, expected tabs, or a name ending in .csv");
        // One column, and other characters in its cells and in quotation marks.
        for text in ["id\na;b\n", "a;b\nc\n", "\"a;b;c\",x\n\"a;b;c\",1\n", "a;b,x\nc;d,1\n", "id\n\"1,5\"\n"] {
            assert!(refuse_other_separator(text.as_bytes(), b',').is_ok(), "{text}");
        }
    }
}
